"""Disks that fill up, and bytes that rot."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Path]:
    """A file system of its own with so much room; skips the test where mounting is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"needs to mount a tmpfs, which is not permitted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def free_bytes(folder: Path) -> int:
    """Room left on the file system."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def fill(ballast: Path, leave: int = 0) -> None:
    """Grows the ballast file until only so many bytes are left on its file system."""
    with ballast.open("ab") as file:
        while (room := free_bytes(ballast.parent) - leave) > 0:
            try:
                size = os.fstat(file.fileno()).st_size
                os.posix_fallocate(file.fileno(), size, min(room, 1 << 20))
            except OSError:
                if room < 4096:
                    return


def written_length(path: Path) -> int:
    """Bytes of a file without the zeros at its end, which a file that was made longer in advance has."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - (1 << 20))
            file.seek(start)
            block = file.read(end - start).rstrip(b"\0")
            if block:
                return start + len(block)
            end = start
    return 0


def flip(path: Path, position: int, count: int = 1) -> None:
    """Damages bytes, one unless told."""
    with path.open("r+b") as file:
        file.seek(position)
        damaged = bytes(byte ^ 0x5A for byte in file.read(count))
        file.seek(position)
        file.write(damaged)
