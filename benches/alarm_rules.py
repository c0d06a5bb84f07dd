"""What an alarm rule that is a calculated field costs, in two programs in turn: `python3 benches/alarm_rules.py BEFORE AFTER`.

Each message of a load of 1,000 devices counts towards a rule that is never met. Both programs are alive; what is told is the
processor time of the server a message, its medians, and the median of the rounds' ratios. ALARM_ROUNDS is how many rounds there
are, of 5 s for each.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from clients import Rest
from lab import Failed, Lab, Server, table

ROUNDS = int(os.environ.get("ALARM_ROUNDS") or 5)
SECONDS = 5
LOAD = ["--device-end", "1000", "--in-flight", "10", "--payload", "ENERGY", "--probes", "0"]


def rule(key: str) -> dict:
    """A rule that counts and is never met."""
    predicate = {"type": "NUMERIC", "operation": "GREATER", "value": {"staticValue": 1e300}}
    filters = [{"argument": "value", "valueType": "NUMERIC", "operation": "AND", "predicates": [predicate]}]
    condition = {"expression": {"type": "SIMPLE", "operation": "AND", "filters": filters}}
    return {
        "name": "Never",
        "configuration": {
            "type": "ALARM",
            "arguments": {"value": {"refEntityKey": {"key": key, "type": "TS_LATEST"}}},
            "createRules": {"MAJOR": {"condition": condition | {"type": "REPEATING", "count": {"staticValue": 3}}}},
        },
    }


class Side:
    """A server of one of the programs, with devices that have the rule."""

    def __init__(self, program: Path, folder: Path):
        folder.mkdir()
        self.lab = Lab(folder, SECONDS, program)
        self.server = Server(self.lab, "server").start()
        # The first load makes the devices.
        self.measure()
        rest = Rest.administrator(self.server.http)
        device = rest.get("/api/tenant/devices?pageSize=1&page=0&sortProperty=createdTime&sortOrder=DESC")["data"][0]
        keys = rest.get(f"/api/plugins/telemetry/DEVICE/{device['id']['id']}/keys/timeseries")
        rest.post("/api/alarm/rule", {"entityId": device["deviceProfileId"]} | rule(sorted(keys)[0]))
        self.measure()

    def measure(self) -> float:
        """Processor time of the server a message, in microseconds."""
        return self.lab.load("alarm rules", self.server, *LOAD)["outcome"]["serverUsPerMessage"]


def main() -> None:
    if len(sys.argv) != 3:
        raise Failed("two programs have to be named")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        before, after = (Side(Path(program), Path(folder) / str(n)) for n, program in enumerate(sys.argv[1:]))
        rounds = []
        for number in range(ROUNDS):
            took = {side: side.measure() for side in ((before, after) if number % 2 == 0 else (after, before))}
            rounds.append((took[before], took[after]))
        for side in (before, after):
            side.server.stop()
    medians = [statistics.median(side) for side in zip(*rounds, strict=True)]
    ratio = statistics.median(then / now for then, now in rounds)
    head = ["", "before, µs a message", "after", "ratio"]
    table("An alarm rule for each message", head, [["1,000 × 10", *medians, ratio]])


if __name__ == "__main__":
    main()
