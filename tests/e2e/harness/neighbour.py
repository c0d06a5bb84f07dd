"""An innocent tenant beside a hostile one: what its device and its user get to feel."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from .people import Tenancy, create_tenancy
from .rest import Device, Rest
from .server import Server

CLIENT = Path(__file__).with_name("neighbour_client.py")

# The promise: receipt to queryable, and any request of a user, whatever another tenant does.
QUERYABLE_P99_MS = 2000
READ_P99_MS = 500
RECOVERS_WITHIN_S = 5.0
# What counts as recovered: so long without anything slower than this.
CALM_S = 1.0
CALM_MS = {"queryable": 1000, "acknowledged": 500, "read": 300}


@dataclass
class Sample:
    """One thing that the neighbour did: how long it took from when it was due, and what it was answered."""

    kind: str
    at: float
    ms: float
    status: int | str = 200


def percentile(samples: list[float], fraction: float) -> float:
    """The value below which that fraction of the samples is."""
    ordered = sorted(samples)
    return ordered[min(int(len(ordered) * fraction), len(ordered) - 1)]


class Neighbour:
    """Publishes ten times a second and reads twenty times a second, in a process of its own."""

    def __init__(self, server: Server, sysadmin: Rest):
        self.server = server
        self.tenancy: Tenancy = create_tenancy(sysadmin)
        self.device: Device = self.tenancy.admin.create_device()
        self.samples: list[Sample] = []
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> Neighbour:
        self.process = subprocess.Popen(
            [sys.executable, CLIENT, self.server.http, self.device.token, self.tenancy.admin.token, self.device.id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._gather, args=(self.process,), daemon=True).start()
        return self

    def _gather(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            self.samples.append(Sample(**json.loads(line)))

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def between(self, kind: str, since: float, until: float) -> list[Sample]:
        """What it did in a time."""
        return [sample for sample in list(self.samples) if sample.kind == kind and since <= sample.at <= until]

    def settle(self, within: float = 20.0) -> None:
        """Waits until all is as it is without anybody's doing."""
        self.recovers(time.monotonic(), within)

    def recovers(self, since: float, within: float = RECOVERS_WITHIN_S) -> float:
        """Waits until nothing is slow any more, and returns how long that took; fails when it takes too long."""
        while True:
            now = time.monotonic()
            if self._is_calm(since, now):
                return max(now - CALM_S - since, 0.0)
            seen = {kind: [round(s.ms) for s in self.between(kind, now - CALM_S, now)] for kind in CALM_MS}
            assert now - since < within + CALM_S, f"not recovered {within} s after the attack: {seen}"
            time.sleep(0.05)

    def _is_calm(self, since: float, now: float) -> bool:
        if now - since < CALM_S:
            return False
        for kind, limit in CALM_MS.items():
            seen = self.between(kind, now - CALM_S, now)
            # Something has to have happened: nothing at all is not calm but dead.
            if len(seen) < 3 or any(sample.ms > limit or sample.status != 200 for sample in seen):
                return False
        return True

    def check(self, since: float, until: float, is_timed: bool = True) -> dict[str, float]:
        """Holds what it felt in a time to the promise, and returns the figures.

        Where nothing is timed, everything only has to be answered, and answered well.
        """
        felt = {}
        for kind, limit in (("queryable", QUERYABLE_P99_MS), ("read", READ_P99_MS)):
            # What was due in the time and came later counts, too.
            samples = self.between(kind, since, until)
            late = [s for s in self.between(kind, until, time.monotonic()) if s.at - s.ms / 1000 <= until]
            times = [sample.ms for sample in samples + late]
            assert times, f"nothing became {kind} during the attack"
            felt[kind] = percentile(times, 0.99)
            wrong = [s.status for s in samples if s.status != 200]
            assert not wrong, f"{kind}: answered {wrong[:5]}"
            assert not is_timed or felt[kind] < limit, (
                f"{kind}: p99 {felt[kind]:.0f} ms of {len(times)}, the promise is {limit} ms; worst {max(times):.0f} ms"
            )
        refused = [s.status for s in self.between("acknowledged", since, until) if s.status != 200]
        assert not refused, f"posts of the neighbour were answered {refused[:5]}"
        return felt
