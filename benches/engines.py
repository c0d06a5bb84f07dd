"""The same loads on files, and on Kafka, PostgreSQL and Cassandra:
`tests/services/with-kafka.sh tests/services/with-postgres.sh tests/services/with-cassandra.sh python3 benches/engines.py [ENGINES...]`.

ENGINES are of `embedded`, `postgres`, `kafka+postgres` and `kafka+postgres+cassandra`; all of them if none is named. Each load runs
once to warm everything up, servers of Java above all, and is measured after that, with the processor time of every process apart
while the load runs.
The published scenarios follow, at the rate that they name. ENGINES_SECONDS is the length of each, ENGINES_PROGRAM the program.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from api import import_devices
from clients import Rest, harness, quantile
from lab import BUILT, Failed, Lab, Server, lab, number, say, table
from services import CassandraNode, PostgresProcesses, compacted_bytes, create_database, kafka_cpu_s

SECONDS = float(os.environ.get("ENGINES_SECONDS") or 20)
# Points a message of the payload.
POINTS = 3
LOADS = {
    "1,000 × 10": ["--device-end", "1000", "--in-flight", "10"],
    "5,000 × 1": ["--device-end", "5000", "--in-flight", "1"],
    "5,000 × 10": ["--device-end", "5000", "--in-flight", "10"],
}
# Published scenarios, and the part of their devices and rate for which a process has file handles.
SCENARIOS = {"B": 1, "C": 0.6, "E": 0.15}
STORED_WITHIN_S = 120
# Nothing was packed for so long: the program looks for what is due every five seconds.
PACKED_FOR_S = 8
# One series that is aggregated, and devices whose latest values are asked for.
SERIES = 1_000_000
A_REQUEST = 20_000
BUCKETS = 500
KNOWN = 10_000
BASE_TS = 1_600_000_000_000
TIMES = 9


def settings(engines: str) -> dict[str, str]:
    """What leads a server to such engines, with names of its own on each."""
    lead, chosen = harness("engines"), {}
    if "postgres" in engines:
        chosen |= lead.on_postgres(create_database())
    if "kafka" in engines:
        chosen |= lead.on_kafka(os.environ["FIELDLINE_TEST_KAFKA"])
    if "cassandra" in engines:
        chosen |= lead.on_cassandra(os.environ["FIELDLINE_TEST_CASSANDRA_NODES"])
    return chosen


def metrics(server: Server) -> dict[str, float]:
    """The metrics without labels, and the sum over labels of the others."""
    found: dict[str, float] = {}
    with urllib.request.urlopen(f"{server.http}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                name = name.partition("{")[0]
                found[name] = found.get(name, 0) + float(value)
    return found


class ClockSampler:
    """Reads processor times again and again, so that those of the moments in which a load began and ended are known."""

    INTERVAL_S = 0.1

    def __init__(self, clocks: dict[str, Callable[[], float]]):
        self.clocks = clocks
        self.samples: list[tuple[float, dict[str, float]]] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> ClockSampler:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def spent(self, name: str, began_s: float, ended_s: float) -> float:
        """What was spent between two moments of the clock on the wall."""
        return self._at(name, ended_s) - self._at(name, began_s)

    def _at(self, name: str, moment: float) -> float:
        after = next((n for n, (at, _) in enumerate(self.samples) if at >= moment), len(self.samples) - 1)
        (earlier, before), (later, behind) = self.samples[max(after - 1, 0)], self.samples[after]
        share = (moment - earlier) / (later - earlier) if later > earlier else 0
        return before[name] + min(max(share, 0), 1) * (behind[name] - before[name])

    def _sample(self) -> None:
        while not self.ended.wait(self.INTERVAL_S):
            self.samples.append((time.time(), {name: read() for name, read in self.clocks.items()}))


def becomes_stored(server: Server) -> float:
    """Seconds until everything acknowledged is stored."""
    began = time.monotonic()
    while metrics(server).get("fieldline_ingest_lag_records", 0) > 0:
        if time.monotonic() > began + STORED_WITHIN_S:
            say(f"not everything was stored after {STORED_WITHIN_S} s")
            break
        time.sleep(0.05)
    return time.monotonic() - began


def becomes_packed(server: Server) -> None:
    """Starts the server anew, and lets it pack all that is stored, however young."""
    becomes_stored(server)
    server.stop()
    os.environ["FIELDLINE_SERIES_PACK_AGE"] = "1s"
    try:
        server.start()
        packed, since = -1.0, time.monotonic()
        ends = since + STORED_WITHIN_S
        while time.monotonic() < since + PACKED_FOR_S:
            if time.monotonic() > ends:
                raise Failed(f"not everything was packed after {STORED_WITHIN_S} s")
            time.sleep(0.5)
            known = metrics(server)
            now = known.get("fieldline_series_packed_points_total", 0)
            if now != packed or known.get("fieldline_series_sealed_epochs", 0) > 0:
                packed, since = now, time.monotonic()
        server.stop()
    finally:
        del os.environ["FIELDLINE_SERIES_PACK_AGE"]
    server.start()


def measure(bench: Lab, engines: str, clocks: dict[str, Callable[[], float]]) -> list[list]:
    """The rows of one server, and what its points take."""
    chosen = settings(engines)
    rows, acknowledged = [], 0
    os.environ |= chosen
    try:
        with bench.server(engines) as server:
            clocks = {"Fieldline": server.cpu_s} | clocks

            def measured(name: str, load: Callable[[str], dict]) -> None:
                nonlocal acknowledged
                server.settle()
                with ClockSampler(clocks) as sampler:
                    report = load(f"{engines} {name}")
                outcome = report["outcome"]
                acknowledged += outcome["acknowledged"]
                began = report["startedAt"] / 1000
                ended = began + report["load"]["durationSeconds"]
                spent = {clock: 1e6 * sampler.spent(clock, began, ended) / outcome["acknowledged"] for clock in clocks}
                spent["load generator"] = outcome["generatorUsPerMessage"]
                rows.append(
                    [f"{engines}, {name}", outcome["rate"], POINTS * outcome["rate"]]
                    + [spent.get(clock) for clock in COLUMNS]
                    + [outcome["latency"]["p99"] / 1000, report["queryable"]["p99"] / 1000, outcome.get("lagEnd")]
                )
                say(" | ".join(cell if isinstance(cell, str) else number(cell) for cell in rows[-1]))

            for name, load in LOADS.items():
                options = [*load, "--payload", "ENERGY", "--probes", "20"]
                acknowledged += bench.load(f"{engines} {name} warm up", server, *options)["outcome"]["acknowledged"]
                becomes_stored(server)
                measured(name, lambda row, options=options: bench.load(row, server, *options))
            for name, scale in SCENARIOS.items():
                address = ["--rest-url", server.http, "--mqtt", server.listening["mqtt"]]
                options = [name, *address, "--scale", scale, "--duration", bench.seconds, "--quiet"]
                row = f"scenario {name}" + (f" × {scale}" if scale != 1 else "")
                measured(row, lambda row, options=options: bench.bench(row, "scenario", *options))
            tell_sizes(engines, server, chosen, POINTS * acknowledged)
    finally:
        for name in chosen:
            os.environ.pop(name)
    return rows


def tell_sizes(engines: str, server: Server, chosen: dict[str, str], points: int) -> None:
    """Says what all points take on the disk once their engine has compacted them."""
    becomes_packed(server)
    if "cassandra" in engines:
        node, keyspace = CassandraNode(), chosen["FIELDLINE_CASSANDRA_KEYSPACE"]
        sizes = {name: node.table_bytes(keyspace, name) for name in ("chunk", "recent")}
    elif "postgres" in engines:
        sizes = {name: compacted_bytes(chosen["FIELDLINE_SQL_URL"], name) for name in ("series_chunk", "series_block")}
    else:
        sizes = {"series": sum(file.stat().st_size for file in (server.data / "series").rglob("*") if file.is_file())}
    parts = "; ".join(f"{name}: {number(size / (1 << 20))} MiB" for name, size in sizes.items())
    print(
        f"\n{engines}: {number(points)} points, {parts}; {number(sum(sizes.values()) / points)} bytes a point",
        flush=True,
    )


def queries(bench: Lab, engines: str) -> list:
    """What is asked of a server that has just started, and again."""
    chosen = settings(engines)
    os.environ |= chosen
    try:
        with bench.server(f"{engines} queries") as server:
            rest = Rest.administrator(server.http)
            import_devices(rest, range(KNOWN), lambda n: n)
            device = rest.post("/api/device", {"name": "Long", "type": "meter"})["id"]["id"]
            path = f"/api/plugins/telemetry/DEVICE/{device}"
            for first in range(0, SERIES, A_REQUEST):
                points = [{"ts": BASE_TS + 1000 * n, "values": {"n": n}} for n in range(first, first + A_REQUEST)]
                rest.post(f"{path}/timeseries/ANY", points)
            becomes_stored(server)
            server.settle()
            server.stop()
            server.start()
            rest = Rest.administrator(server.http)
            interval = 1000 * SERIES // BUCKETS
            aggregated = f"{path}/values/timeseries?keys=n&agg=AVG&interval={interval}&startTs={BASE_TS}"
            aggregated += f"&endTs={BASE_TS + 1000 * SERIES}&limit={BUCKETS}"

            def averages() -> None:
                assert len(rest.get(aggregated)["n"]) == BUCKETS

            latest = {
                "entityFilter": {"type": "deviceType", "deviceTypes": ["meter"], "deviceNameFilter": "Device"},
                "pageLink": {"pageSize": KNOWN, "page": 0},
                "latestValues": [{"type": "TIME_SERIES", "key": key} for key in ("temperature", "humidity")],
            }

            def values() -> None:
                found = rest.post("/api/entitiesQuery/find", latest)["data"]
                assert len(found) == KNOWN and found[-1]["latest"]["TIME_SERIES"]["humidity"]["value"]

            asked = [*timed(averages), *timed(values)]
            becomes_packed(server)
            rest = Rest.administrator(server.http)
            return [engines, *asked, *timed(averages)]
    finally:
        for name in chosen:
            os.environ.pop(name)


def timed(ask: Callable[[], None]) -> list[float]:
    """Milliseconds that the first time took, and the median of others."""
    took = []
    for _ in range(TIMES + 1):
        began = time.perf_counter()
        ask()
        took.append(1000 * (time.perf_counter() - began))
    return [took[0], quantile(took[1:], 0.5)]


COLUMNS = ["Fieldline", "Kafka", "PostgreSQL", "Cassandra", "load generator"]


def main() -> None:
    wanted = sys.argv[1:] or ["embedded", "postgres", "kafka+postgres", "kafka+postgres+cassandra"]
    rows, asked = [], []
    with lab(SECONDS, Path(os.environ.get("ENGINES_PROGRAM") or BUILT)) as bench:
        for engines in wanted:
            clocks: dict[str, Callable[[], float]] = {}
            if "kafka" in engines:
                clocks["Kafka"] = kafka_cpu_s
            if "postgres" in engines:
                clocks["PostgreSQL"] = PostgresProcesses().cpu_s
            if "cassandra" in engines:
                clocks["Cassandra"] = CassandraNode().cpu_s
            rows += measure(bench, engines, clocks)
            asked.append(queries(bench, engines))
    head = ["engines, devices × in flight", "messages/s", "points/s", *(f"{name}, µs a message" for name in COLUMNS)]
    table("Engines", [*head, "acknowledged p99 ms", "queryable p99 ms", "messages not stored at the end"], rows)
    averages = f"{SERIES:,} points into {BUCKETS} averages"
    what = averages, f"latest values of {KNOWN:,} devices", f"{averages} once they are packed"
    head = ["engines", *(f"{one}, {when} ms" for one in what for when in ("the first time,", "again,"))]
    table("Queries", head, asked)


if __name__ == "__main__":
    main()
