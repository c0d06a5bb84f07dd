"""The same loads on two programs in turn: `python3 benches/loads_in_turn.py BEFORE AFTER [LOADS...]`.

LOADS are of those below, named by their first column; all of them if none is named. Both programs are alive; what is told is the
messages a second and the processor time of the server a message, the medians of the rounds, and the medians of the rounds' ratios.
LOADS_ROUNDS is how many rounds there are, LOADS_SECONDS the length of each load in one.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from clients import Rest
from lab import Failed, Lab, Server, say, table

ROUNDS = int(os.environ.get("LOADS_ROUNDS") or 5)
SECONDS = float(os.environ.get("LOADS_SECONDS") or 5)
LOADS = {
    "5,000 × 10": ["--device-end", "5000", "--in-flight", "10"],
    "5,000 × 1": ["--device-end", "5000", "--in-flight", "1"],
    "1,000 × 10": ["--device-end", "1000", "--in-flight", "10"],
}
# Each message of the last one counts towards an alarm rule that is never met.
ALARM_RULE = "1,000 × 10, alarm rule"
FIGURES = "rate", "serverUsPerMessage"


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
    """A server of one of the programs."""

    def __init__(self, program: Path, folder: Path):
        folder.mkdir()
        self.lab = Lab(folder, SECONDS, program)
        self.server = Server(self.lab, "server").start()

    def prepare(self, load: str) -> None:
        """Makes devices with a first load, and the rule where it is about that."""
        self.measure(load)
        if load != ALARM_RULE:
            return
        rest = Rest.administrator(self.server.http)
        device = rest.get("/api/tenant/devices?pageSize=1&page=0&sortProperty=createdTime&sortOrder=DESC")["data"][0]
        keys = rest.get(f"/api/plugins/telemetry/DEVICE/{device['id']['id']}/keys/timeseries")
        rest.post("/api/alarm/rule", {"entityId": device["deviceProfileId"]} | rule(sorted(keys)[0]))
        self.measure(load)

    def measure(self, load: str) -> list[float]:
        """Messages a second, and processor time of the server a message in microseconds."""
        options = LOADS["1,000 × 10" if load == ALARM_RULE else load]
        outcome = self.lab.load(load, self.server, *options, "--payload", "ENERGY", "--probes", "0")["outcome"]
        return [outcome[figure] for figure in FIGURES]


def compare(before: Side, after: Side, load: str) -> list:
    """The row of a load."""
    for side in (before, after):
        side.prepare(load)
    rounds = []
    for number in range(ROUNDS):
        took = {side: side.measure(load) for side in ((before, after) if number % 2 == 0 else (after, before))}
        rounds.append((took[before], took[after]))
        say(f"{load}: {rounds[-1]}")
    row: list = [load]
    for place in range(len(FIGURES)):
        pairs = [(then[place], now[place]) for then, now in rounds]
        row += [statistics.median(side) for side in zip(*pairs, strict=True)]
        row.append(statistics.median(now / then for then, now in pairs))
    return row


def main() -> None:
    programs, loads = sys.argv[1:3], sys.argv[3:] or [*LOADS, ALARM_RULE]
    if len(programs) != 2 or set(loads) - {*LOADS, ALARM_RULE}:
        raise Failed(f"two programs have to be named, and loads of {[*LOADS, ALARM_RULE]}")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        before, after = (Side(Path(program), Path(folder) / str(n)) for n, program in enumerate(programs))
        # The rule stays, so that what has it comes last.
        rows = [compare(before, after, load) for load in sorted(loads, key=lambda load: load == ALARM_RULE)]
        for side in (before, after):
            side.server.stop()
    head = [
        "devices × in flight",
        "messages/s before",
        "after",
        "ratio",
        "server µs a message before",
        "after",
        "ratio",
    ]
    table("Two programs in turn", head, rows)


if __name__ == "__main__":
    main()
