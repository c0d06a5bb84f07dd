"""Faults of the machine that a running server is given: slow disks, stalled disks, texts that kill, clocks that are set.

They are injected by a small library that is preloaded into the server (`faults.c`), because it needs no privileges, holds
up only the threads it is asked to, and ends a stall when the test says so rather than after a time.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

SOURCE = Path(__file__).with_name("faults.c")

SYNC, WRITE, READ_AT = 1, 2, 4
"""Calls that can be held up: fsync and fdatasync; write; positioned reads."""

# The layout is that of faults.c.
_RULES = 8
_CLOCK = struct.Struct("<q")
_RULE = struct.Struct("<16sIIQQQ")
_STALLED = struct.Struct("<I")
_COUNTS = struct.Struct("<QQ")
_DEADLY = struct.Struct("<16s56sQ")
_DEADLY_AT = _CLOCK.size + _RULES * _RULE.size
_SIZE = _DEADLY_AT + _DEADLY.size


@cache
def library() -> Path:
    """The library, compiled once a test run."""
    built = Path(mkdtemp(prefix="fieldline-faults-")) / "faults.so"
    compiler = os.environ.get("CC", "cc")
    command = [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", built, SOURCE, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))} failed:\n{done.stderr}"
    return built


class Held:
    """Calls of some threads that are held up."""

    def __init__(self, faults: Faults, slot: int):
        self._faults, self._at = faults, _CLOCK.size + slot * _RULE.size

    @property
    def waiting(self) -> int:
        """Calls that are held up now."""
        return self._counts()[0]

    @property
    def count(self) -> int:
        """Calls that were held up and have gone on."""
        return self._counts()[1]

    def _counts(self) -> tuple[int, int]:
        return _COUNTS.unpack_from(self._faults._memory, self._at + 32)

    def release(self) -> None:
        """Lets all calls through from now on."""
        _STALLED.pack_into(self._faults._memory, self._at + 16, 0)
        _STALLED.pack_into(self._faults._memory, self._at + 20, 0)


class Faults:
    """The faults of one server; give `env` to it."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "faults"
        path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SIZE)
        self._used = 0
        self.env = {"LD_PRELOAD": library(), "TEST_FAULTS": path}

    @contextlib.contextmanager
    def hold_up(self, calls: int, *, thread: str = "", delay: float = 0, stall: bool = False) -> Iterator[Held]:
        """Holds up calls of the threads whose names begin so: each for `delay` seconds, or until the end of the block."""
        assert self._used < _RULES, "no more room for faults"
        slot, self._used = self._used, self._used + 1
        at = _CLOCK.size + slot * _RULE.size
        # The calls come last: a rule counts once they are there.
        _RULE.pack_into(self._memory, at, thread.encode(), 0, int(stall), int(delay * 1e6), 0, 0)
        _STALLED.pack_into(self._memory, at + 16, calls)
        held = Held(self, slot)
        try:
            yield held
        finally:
            held.release()

    def slow(self, calls: int, delay: float, thread: str = "") -> contextlib.AbstractContextManager[Held]:
        """Each call takes so many seconds longer."""
        return self.hold_up(calls, thread=thread, delay=delay)

    def stall(self, calls: int, thread: str = "") -> contextlib.AbstractContextManager[Held]:
        """Calls do not return before the end of the block."""
        return self.hold_up(calls, thread=thread, stall=True)

    @contextlib.contextmanager
    def die_of(self, text: str, thread: str = "") -> Iterator[None]:
        """Ends the process, and each further one, when a thread whose name begins so writes this text anywhere."""
        marker = text.encode()
        assert 0 < len(marker) <= 56
        _DEADLY.pack_into(self._memory, _DEADLY_AT, thread.encode(), marker, len(marker))
        try:
            yield
        finally:
            _DEADLY.pack_into(self._memory, _DEADLY_AT, b"", b"", 0)

    def set_clock(self, seconds: float) -> None:
        """Sets the wall clock so far from the true time, ahead or back; monotonic time goes on."""
        _CLOCK.pack_into(self._memory, 0, int(seconds * 1e6))
