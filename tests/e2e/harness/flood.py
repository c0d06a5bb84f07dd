"""A load of many devices from processes of its own, which tells each moment how it stands."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from .rest import Device
from .server import eventually

CLIENT = Path(__file__).with_name("flood_client.py")
CONNECT_WITHIN_S = 60


@dataclass
class Moment:
    """How the load stands, all processes together."""

    offered: int = 0
    """Messages that the devices had to send."""
    sent: int = 0
    """Messages that they could give to their sockets."""
    acknowledged: int = 0
    closed: int = 0
    """Connections that have ended."""


@dataclass
class Outcome:
    """What became of one device: its messages are numbered from 0, and acknowledged in their order."""

    device: Device
    sent: int
    acknowledged: int
    closed_after: float | None


@dataclass
class _Process:
    running: subprocess.Popen
    lines: list[dict] = field(default_factory=list)
    reader: threading.Thread | None = None


class Flood:
    """Devices that send, at a rate or as fast as they are acknowledged, and devices that only ping, once a second."""

    def __init__(
        self,
        server,
        senders: list[Device],
        *,
        pingers: list[Device] = (),
        rate: float | None = None,
        window: int = 1000,
        keep_alive: int = 60,
        key: str = "n",
        processes: int = 1,
    ):
        self.key, self.devices = key, {device.token: device for device in [*senders, *pingers]}
        host, port = server.mqtt_address
        plan = {"host": host, "port": port, "window": window, "keep_alive": keep_alive, "key": key}
        self._plans = [
            plan
            | {
                "senders": [device.token for device in senders[part::processes]],
                "pingers": [device.token for device in pingers[part::processes]],
                "rate": None if rate is None else rate / processes,
            }
            for part in range(processes)
        ]
        self._processes: list[_Process] = []

    def __enter__(self) -> Flood:
        """Connects all devices, then lets them begin."""
        try:
            for plan in self._plans:
                running = subprocess.Popen(
                    [sys.executable, CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                process = _Process(running)
                self._processes.append(process)
                process.reader = threading.Thread(target=self._read, args=(process,), daemon=True)
                process.reader.start()
                self._tell(process, json.dumps(plan))
            eventually(self._all_connected, within=CONNECT_WITHIN_S)
            for process in self._processes:
                self._tell(process, "start")
            self.started = time.monotonic()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._kill()

    def _kill(self) -> None:
        for process in self._processes:
            process.running.kill()
            process.running.wait()
            process.reader.join()

    @staticmethod
    def _tell(process: _Process, line: str) -> None:
        process.running.stdin.write(line + "\n")
        process.running.stdin.flush()

    @staticmethod
    def _read(process: _Process) -> None:
        for line in process.running.stdout:
            process.lines.append(json.loads(line))

    def _all_connected(self) -> bool:
        for process in self._processes:
            assert process.lines or process.running.poll() is None, "the load ended before it was connected"
        return all(process.lines for process in self._processes)

    def _latest(self) -> list[dict]:
        latest = [process.lines[-1] for process in self._processes]
        for line in latest:
            assert not line.get("failures"), line["failures"]
        return latest

    def now(self) -> Moment:
        """How it stands, half a second ago at most."""
        latest = self._latest()
        return Moment(**{name: sum(line.get(name, 0) for line in latest) for name in Moment.__annotations__})

    def series(self, name: str) -> list[tuple[float, float]]:
        """What each report of each process has said of one thing (`p50`, `p99`, `ping`), with its monotonic time."""
        lines = [line for process in self._processes for line in list(process.lines)]
        return sorted((line["t"], line[name]) for line in lines if line.get(name) is not None)

    def finish(self, within: float = 60) -> list[Outcome]:
        """Sends nothing new, waits until all that was sent is acknowledged, and says what became of each device."""
        for process in self._processes:
            self._tell(process, "stop")
        eventually(lambda: all("final" in line for line in self._latest()), within=within)
        return [
            Outcome(self.devices[one["token"]], one["sent"], one["acknowledged"], one["closed_after"])
            for line in self._latest()
            for one in line["final"]
        ]


def check_stored(rest, outcome: Outcome, key: str, **params) -> None:
    """Insists that every acknowledged message of a device is stored, once, at strictly increasing times."""
    points = rest.points(outcome.device.id, key, **params)
    stored = [point["value"] for point in points]
    missing = set(range(outcome.acknowledged)).difference(stored)
    assert not missing, (
        f"{len(missing)} of {outcome.acknowledged} acknowledged messages of {outcome.device.name} are lost, "
        f"among them {sorted(missing)[:10]}"
    )
    assert len(set(stored)) == len(stored), f"messages of {outcome.device.name} are stored more than once"
    # Times are the server's, so they have the order in which the messages came.
    assert stored == sorted(stored), f"messages of {outcome.device.name} are not in their order"
    assert all(value < outcome.sent for value in stored), f"{outcome.device.name} holds points that nobody sent"
