"""Processes that are not children of this one, and their ports."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path


def children(process: int) -> list[int]:
    """The processes that a process has started and that still are there."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False)
    return [int(child) for child in found.stdout.split()]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def is_gone(process: int) -> bool:
    """Whether a process has ended, though nobody may have asked yet how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
