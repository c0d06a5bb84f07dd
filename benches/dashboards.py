"""What open dashboards cost the server: `python3 benches/dashboards.py [--browsers 50] [--devices 100] [--seconds 20] [--program P]`.

Devices send a value a second each, first with nobody looking, then with that many sockets open, each with the subscriptions of a
dashboard of all devices: a table of latest values and a chart of the last minute. What is told is the server's processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

from clients import Crowd, Live, Rest
from lab import BUILT, Failed, Lab, Server, say, table

LATEST = [{"type": "TIME_SERIES", "key": "temperature"}, {"type": "TIME_SERIES", "key": "humidity"}]
FIELDS = [{"type": "ENTITY_FIELD", "key": "name"}, {"type": "ENTITY_FIELD", "key": "label"}]


def dashboard(devices: int) -> dict:
    """The subscription of a dashboard, as a browser sends it."""
    return {
        "type": "ENTITY_DATA",
        "cmdId": 1,
        "query": {
            "entityFilter": {"type": "deviceType", "deviceTypes": ["bench"], "deviceNameFilter": ""},
            "pageLink": {"pageSize": devices, "page": 0, "sortOrder": {"key": FIELDS[0], "direction": "ASC"}},
            "entityFields": FIELDS,
            "latestValues": LATEST,
        },
        "latestCmd": {"keys": LATEST},
        "tsCmd": {
            "keys": ["temperature"],
            "startTs": int(time.time() * 1000) - 60_000,
            "timeWindow": 60_000,
            "interval": 1000,
            "limit": 100,
            "agg": "NONE",
        },
    }


class Devices:
    """Devices that send a value a second each, in turn over the second."""

    def __init__(self, rest: Rest, count: int):
        self.rest, self.tokens, self.stopped, self.sent = rest.again(), [], threading.Event(), 0
        for number in range(count):
            made = rest.post("/api/device", {"name": f"Bench {number:04}", "type": "bench"})["id"]["id"]
            self.tokens.append(rest.get(f"/api/device/{made}/credentials")["credentialsId"])
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        """Until it is stopped."""
        begun = time.monotonic()
        while not self.stopped.is_set():
            token = self.tokens[self.sent % len(self.tokens)]
            values = {"temperature": self.sent % 977 / 10, "humidity": self.sent % 101}
            self.rest.send("POST", f"/api/v1/{token}/telemetry", values)
            self.sent += 1
            time.sleep(max(0.0, begun + self.sent / len(self.tokens) - time.monotonic()))


def measured(server: Server, crowd: Crowd | None, seconds: float) -> tuple[float, int]:
    """Cores that the server used for a time, and the messages that came."""
    begun, cpu = time.monotonic(), server.cpu_s()
    if crowd is None:
        time.sleep(seconds)
        return (server.cpu_s() - cpu) / (time.monotonic() - begun), 0
    crowd.counted = 0
    crowd.count(begun + seconds)
    return (server.cpu_s() - cpu) / (time.monotonic() - begun), crowd.counted


def main() -> None:
    """Both, one after the other."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--browsers", type=int, default=50)
    arguments.add_argument("--devices", type=int, default=100)
    arguments.add_argument("--seconds", type=float, default=20)
    arguments.add_argument("--program", type=Path, default=BUILT)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Lab(Path(folder), given.seconds, given.program), "server").start()
        try:
            rest = Rest.administrator(server.http)
            devices = Devices(rest, given.devices)
            time.sleep(2)
            alone, _ = measured(server, None, given.seconds)
            crowd = Crowd([Live(rest, dashboard(given.devices)) for _ in range(given.browsers)])
            crowd.count(time.monotonic() + 3)
            watched, messages = measured(server, crowd, given.seconds)
            memory = server.resident_mib()
            crowd.close()
            devices.stopped.set()
        finally:
            server.stop()
    if messages < given.browsers * given.seconds:
        raise Failed(f"only {messages} messages came")
    say(f"{given.browsers} browsers, {given.devices} devices that send a value a second each")
    rows = [["nobody looks", alone, 0, "–"], ["all look", watched, messages / given.seconds, memory]]
    table("dashboards", ["", "cores of the server", "messages a second", "MiB"], rows)


if __name__ == "__main__":
    main()
