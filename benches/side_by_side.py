"""Two programs measured in alternation, both alive: `python3 benches/side_by_side.py BEFORE AFTER [--devices N] [--rounds N]`.

What the machine does otherwise comes and goes by the minute, so that two runs one after the other prove little. Here each round asks
both, in turn first, and what is told is the middle of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from api import import_devices
from clients import Live, Rest, harness, quantile
from lab import Failed, Lab, Server, table

POINTS = 10_000
A_CALL = 10_000
FOLLOWED = 10_000
NUMBERS = count()


class Side:
    """A server of one of the programs, with devices, points and a device that listens."""

    def __init__(self, program: Path, folder: Path, devices: int):
        folder.mkdir()
        self.server = Server(Lab(folder, 0, program), "server").start()
        self.rest = Rest.administrator(self.server.http)
        for first in range(0, devices, A_CALL):
            import_devices(self.rest, range(first, min(first + A_CALL, devices)), lambda n: n)
        self.device, self.token = self.make_device()
        self.base = f"/api/plugins/telemetry/DEVICE/{self.device}"
        start = int(time.time() * 1000) - POINTS * 1000
        for first in range(0, POINTS, 1000):
            points = [{"ts": start + n * 1000, "values": {"power": n % 977 / 10}} for n in range(first, first + 1000)]
            self.rest.post(f"{self.base}/timeseries/ANY", points)
        self.range = f"keys=power&startTs={start}&endTs={start + POINTS * 1000}&limit={POINTS}"
        self.wire = harness("wire")
        host, _, port = self.server.listening["mqtt"].rpartition(":")
        self.listener = self.wire.Wire((host, int(port)))
        if self.listener.connect(username=self.token) != 0:
            raise Failed("a device was refused")
        self.listener.subscribe(("v1/devices/me/attributes", 1), ("v1/devices/me/rpc/request/+", 1))

    def make_device(self) -> tuple[str, str]:
        """A device and its token."""
        made = self.rest.post("/api/device", {"name": f"Side {next(NUMBERS)}", "type": "bench"})["id"]["id"]
        return made, self.rest.get(f"/api/device/{made}/credentials")["credentialsId"]

    def get(self, path: str) -> Callable[[], object]:
        """A request that is made again and again."""
        return lambda: self.rest.send("GET", path)

    def post_of_device(self) -> None:
        """What a device sends over HTTP."""
        self.rest.send("POST", f"/api/v1/{self.token}/telemetry", {"n": next(NUMBERS)})

    def shared_attribute(self) -> None:
        """From the request to the device and the answer."""
        self.rest.start("POST", f"{self.base}/SHARED_SCOPE", {"setting": next(NUMBERS)})
        self.listener.message()
        self.rest.finish()

    def call(self) -> None:
        """A call to the device, which answers."""
        self.rest.start(
            "POST", f"/api/plugins/rpc/twoway/{self.device}", {"method": "get", "params": {}, "timeout": 10_000}
        )
        request = self.listener.message().topic.rpartition("/")[2]
        answer = self.wire.publish(self.wire.V311, f"v1/devices/me/rpc/response/{request}", b'{"ok":true}', 0)
        self.listener.send(answer)
        self.rest.finish()

    def query(self) -> None:
        """An entity query with a condition on a latest value."""
        predicate = {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 20}}
        key = {"type": "TIME_SERIES", "key": "temperature"}
        body = {
            "entityFilter": {"type": "entityType", "entityType": "DEVICE"},
            "keyFilters": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}],
            "entityFields": [{"type": "ENTITY_FIELD", "key": "name"}],
            "latestValues": [key],
            "pageLink": {"pageSize": 100, "page": 0, "sortOrder": {"key": key, "direction": "DESC"}},
        }
        self.rest.send("POST", "/api/entitiesQuery/find", body)

    def follow(self) -> None:
        """What a map of ten thousand devices asks over a socket, and begins to follow."""
        values = [{"type": "TIME_SERIES", "key": key} for key in ("temperature", "humidity")]
        fields = [{"type": "ENTITY_FIELD", "key": key} for key in ("name", "label")]
        query = {
            "entityFilter": {"type": "deviceType", "deviceTypes": ["meter"], "deviceNameFilter": ""},
            "entityFields": fields,
            "latestValues": values,
            "pageLink": {"pageSize": FOLLOWED, "page": 0, "sortOrder": {"key": fields[0], "direction": "ASC"}},
        }
        live = Live(self.rest, {"type": "ENTITY_DATA", "cmdId": 1, "query": query, "latestCmd": {"keys": values}})
        live.wait()
        live.close()

    def works(self) -> dict[str, tuple[int, Callable[[], object]]]:
        """What is measured, and how often a round."""
        values = f"{self.base}/values/timeseries"
        listed = "/api/tenant/devices?pageSize=100&page=0&sortProperty=name&sortOrder=ASC&textSearch=device%2000"
        return {
            "the own user": (200, self.get("/api/auth/user")),
            "a latest value": (200, self.get(f"{values}?keys=power")),
            "10,000 raw points": (30, self.get(f"{values}?{self.range}&agg=NONE")),
            "10,000 points aggregated to 100": (60, self.get(f"{values}?{self.range}&agg=AVG&interval={POINTS * 10}")),
            "page of 100 devices with text search": (40, self.get(listed)),
            "entity query": (30, self.query),
            "10,000 entities followed": (6, self.follow),
            "device created": (40, self.make_device),
            "post of a device": (200, self.post_of_device),
            "shared attribute to a device": (100, self.shared_attribute),
            "RPC to a device": (100, self.call),
        }


def middle(work: Callable[[], object], times: int) -> float:
    """The median of what it takes, milliseconds."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - began))
    return quantile(took, 0.5)


def compare(before: Side, after: Side, rounds: int) -> list[list]:
    """Rows of the table."""
    rows = []
    olds, news = before.works(), after.works()
    for name, (times, old) in olds.items():
        new = news[name][1]
        both = []
        for number in range(rounds):
            if number % 2:
                took_new = middle(new, times)
                both.append((middle(old, times), took_new))
            else:
                took_old = middle(old, times)
                both.append((took_old, middle(new, times)))
        ratios = sorted(b / a for a, b in both)
        first, last = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        row = [statistics.median(a for a, _ in both), statistics.median(b for _, b in both), statistics.median(ratios)]
        rows.append([name, *row, f"{first:.2f} to {last:.2f}"])
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """The table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("before", type=Path)
    options.add_argument("after", type=Path)
    options.add_argument("--devices", type=int, default=30_000)
    options.add_argument("--rounds", type=int, default=12)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="fieldline-sides-") as folder:
        sides = [
            Side(program.resolve(), Path(folder) / name, asked.devices)
            for name, program in (("before", asked.before), ("after", asked.after))
        ]
        try:
            for side in sides:
                side.server.settle()
            head = ["one after the other", "before, ms", "after, ms", "ratio", "half of the rounds"]
            table("Two programs in alternation", head, compare(*sides, asked.rounds))
        finally:
            for side in sides:
                side.server.stop()


if __name__ == "__main__":
    main()
