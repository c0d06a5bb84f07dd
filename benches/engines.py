"""The same loads on files, and on Kafka, PostgreSQL and Cassandra:
`tests/services/with-kafka.sh tests/services/with-postgres.sh tests/services/with-cassandra.sh python3 benches/engines.py [ENGINES...]`.

ENGINES are of `embedded`, `postgres`, `kafka+postgres` and `kafka+postgres+cassandra`; all of them if none is named. Each load runs
once to warm everything up, servers of Java above all, and is measured after that, with the processor time of every process apart.
ENGINES_SECONDS is its length, ENGINES_PROGRAM the program.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from api import import_devices
from clients import Rest, harness, quantile
from lab import BUILT, Lab, Server, lab, number, say, table
from services import CassandraNode, create_database, kafka_cpu_s, postgres_bytes, postgres_cpu_s

SECONDS = float(os.environ.get("ENGINES_SECONDS") or 20)
# Points a message of the payload.
POINTS = 3
LOADS = {
    "1,000 × 10": ["--device-end", "1000", "--in-flight", "10"],
    "5,000 × 1": ["--device-end", "5000", "--in-flight", "1"],
    "5,000 × 10": ["--device-end", "5000", "--in-flight", "10"],
}
STORED_WITHIN_S = 120
# One series that is aggregated, and devices whose latest values are asked for.
SERIES = 1_000_000
A_REQUEST = 20_000
BUCKETS = 500
KNOWN = 10_000
BASE_TS = 1_600_000_000_000
TIMES = 9
CHUNKS = "fieldline_series_chunk_bytes_total"
PACKED = "fieldline_series_packed_points_total"


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


def generator_cpu_s() -> float:
    """Processor time of all load generators that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def becomes_stored(server: Server) -> float:
    """Seconds until everything acknowledged is stored."""
    began = time.monotonic()
    while metrics(server).get("fieldline_ingest_lag_records", 0) > 0:
        if time.monotonic() > began + STORED_WITHIN_S:
            say(f"not everything was stored after {STORED_WITHIN_S} s")
            break
        time.sleep(0.05)
    return time.monotonic() - began


def measure(bench: Lab, engines: str, clocks: dict[str, Callable[[], float]]) -> list[list]:
    """The rows of one server, and what its points take."""
    chosen = settings(engines)
    rows, acknowledged = [], 0
    os.environ |= chosen
    try:
        with bench.server(engines) as server:
            clocks = {"Fieldline": server.cpu_s} | clocks
            for name, load in LOADS.items():
                options = [*load, "--payload", "ENERGY", "--probes", "20"]
                acknowledged += bench.load(f"{engines} {name} warm up", server, *options)["outcome"]["acknowledged"]
                becomes_stored(server)
                server.settle()
                before = {clock: read() for clock, read in clocks.items()}
                report = bench.load(f"{engines} {name}", server, *options)
                behind = becomes_stored(server)
                spent = {clock: read() - before[clock] for clock, read in clocks.items()}
                outcome = report["outcome"]
                sent = outcome["acknowledged"]
                acknowledged += sent
                rows.append(
                    [f"{engines}, {name}", outcome["rate"], POINTS * outcome["rate"]]
                    + [1e6 * spent[clock] / sent if clock in spent else None for clock in COLUMNS]
                    + [report["queryable"]["p99"] / 1000, outcome.get("lagEnd"), behind]
                )
            tell_sizes(engines, server, chosen, POINTS * acknowledged)
    finally:
        for name in chosen:
            os.environ.pop(name)
    return rows


def tell_sizes(engines: str, server: Server, chosen: dict[str, str], points: int) -> None:
    """Says what all points take on the disk, those that are not packed yet included."""
    while metrics(server).get("fieldline_series_sealed_epochs", 0) > 0:
        time.sleep(0.5)
    said = metrics(server)
    line = f"{engines}: {number(points)} points, {number(said.get(CHUNKS, 0) / max(said.get(PACKED, 0), 1))} bytes a point in chunks as they are written"
    if "cassandra" in engines:
        node, keyspace = CassandraNode(), chosen["FIELDLINE_CASSANDRA_KEYSPACE"]
        sizes = {name: node.table_bytes(keyspace, name) for name in ("chunk", "recent")}
    elif "postgres" in engines:
        sizes = {name: postgres_bytes(chosen["FIELDLINE_SQL_URL"], name) for name in ("series_chunk", "series_block")}
    else:
        sizes = {}
    for name, size in sizes.items():
        line += f"; {name}: {number(size / (1 << 20))} MiB"
    if sizes:
        line += f"; {number(sum(sizes.values()) / points)} bytes a point on the disk"
    print(f"\n{line}", flush=True)


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

            return [engines, *timed(averages), *timed(values)]
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
            clocks: dict[str, Callable[[], float]] = {"load generator": generator_cpu_s}
            if "kafka" in engines:
                clocks["Kafka"] = kafka_cpu_s
            if "postgres" in engines:
                clocks["PostgreSQL"] = postgres_cpu_s
            if "cassandra" in engines:
                clocks["Cassandra"] = CassandraNode().cpu_s
            rows += measure(bench, engines, clocks)
            asked.append(queries(bench, engines))
    head = ["engines, devices × in flight", "messages/s", "points/s", *(f"{name}, µs a message" for name in COLUMNS)]
    table("Engines", [*head, "queryable p99 ms", "behind at the end", "stored s later"], rows)
    what = f"{SERIES:,} points into {BUCKETS} averages", f"latest values of {KNOWN:,} devices"
    head = ["engines", *(f"{one}, {when} ms" for one in what for when in ("the first time,", "again,"))]
    table("Queries", head, asked)


if __name__ == "__main__":
    main()
