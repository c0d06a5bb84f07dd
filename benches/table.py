"""Measures the whole system and prints one Markdown table for each group: `make bench`, or `make bench BENCH="a c"`.

Every row that has a limit is measured in one run with it: a server that only parses and acknowledges (or, for durable loads,
appends and commits first), before and after the load. BENCH_SECONDS is the length of a load, BENCH_DIR where data is kept.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
import types
from collections import namedtuple
from pathlib import Path

import api
from clients import harness
from lab import BUILT, COMPARED, REPOSITORY, Failed, Lab, Server, compared, lab, number, ratio, say, table

SECONDS = float(os.environ.get("BENCH_SECONDS") or 5)
DEVICES = 5_000
USERS = 500
FSYNC = "fieldline_journal_fsync_seconds"
IDLE_AFTER_S = 5


def many_devices(lab: Lab) -> None:
    """(a) 5,000 devices that are acknowledged durably"""
    with lab.server("a") as server:
        rows = [
            compared(
                f"{DEVICES:,} devices × {in_flight}",
                lab.load(f"a {in_flight} in flight", server, *meters(in_flight), "--limit", "fsync"),
                goal,
            )
            for in_flight, goal in ((1, "≥ 0.7"), (10, "≥ 0.3"))
        ]
    table("a. Telemetry of 3 points, QoS 1, stored, against parse + append + group commit", COMPARED, rows)


def meters(in_flight: int) -> list:
    """A closed loop of the devices that most rows have."""
    return ["--device-end", DEVICES, "--payload", "ENERGY", "--in-flight", in_flight]


def half_load(lab: Lab) -> None:
    """(b) latencies at half of the maximum"""
    with lab.server("b") as server:
        most = lab.load("b maximum", server, *meters(1), "--probes", 0)["outcome"]["rate"]
        before = server.histogram(FSYNC)
        open_loop = ["--device-end", DEVICES, "--payload", "ENERGY", "--rate", round(most / 2), "--limit", "fsync"]
        report = lab.load("b half", server, *open_loop)
        fsync = server.histogram(FSYNC).since(before)
    outcome, queryable = report["outcome"], report.get("queryable", {})
    p99, limit = outcome["latency"]["p99"] / 1000, report["limit"]["latency"]["p99"] / 1000
    head = ["load", "messages/s", "unsent", "ack p50 ms", "ack p99 ms", "fdatasync mean ms", "fdatasync p99 ms"]
    head += ["ack p99 / fdatasync p99", "goal", "limit's ack p99 ms", "ratio", "queryable p99 ms", "goal"]
    row = [
        f"half of {number(most)}/s, open loop",
        outcome["rate"],
        f"{outcome['unsent']:,}",
        outcome["latency"]["p50"] / 1000,
        p99,
        fsync.mean_ms(),
        fsync.quantile_ms(0.99),
        ratio(p99, fsync.quantile_ms(0.99)),
        "≤ 4",
        limit,
        ratio(p99, limit),
        queryable["p99"] / 1000 if queryable else None,
        "< 1,000",
    ]
    table("b. Latency at half of the maximum, from the scheduled time; the limit has the same load", head, [row])


def http(lab: Lab) -> None:
    """(c) HTTP against a bare handler that appends to the journal"""
    with lab.server("c") as server:
        options = ["--device-api", "HTTP", "--device-end", USERS, "--users", USERS, "--in-flight", 1]
        report = lab.load("c HTTP", server, *options, "--payload", "ENERGY", "--limit", "fsync")
    table(
        "c. HTTP posts, against a bare handler that appends to the journal",
        COMPARED,
        [compared(f"{USERS} users", report, "≥ 0.5")],
    )


def idle_connections(lab: Lab) -> None:
    """(d) memory of idle connections, and how fast they are opened"""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(15_000, files - 1_000)
    with lab.server("d") as server:
        counts = ["--counts", f"1000,{most}", "--settle", 10]
        report = lab.bench("d connections", "connections", *server.options(), *counts)
    opened, limit = report["steps"][-1]["connectionsPerSecond"], report.get("limitConnectionsPerSecond")
    head = ["connections", "KiB anonymous memory each", "goal", "opened/s", "limit's", "ratio", "goal"]
    row = [
        f"1,000 → {most:,}",
        report["bytesPerConnection"] / 1024,
        "≤ 2",
        opened,
        limit,
        ratio(opened, limit),
        "≥ 0.7",
    ]
    table("d. Idle MQTT connections of distinct devices, against parse and acknowledge", head, [row])


def payloads(lab: Lab) -> None:
    """(e) keys a message, and bytes a message"""
    rows = []
    kinds = [(f"{keys:,} keys", f"KEYS:{keys}") for keys in (1, 10, 100, 1000)]
    kinds += [(f"{size:,} bytes", f"BYTES:{size}") for size in (100, 1_000, 10_000, 65_000)]
    for name, payload in kinds:
        # Each on a server of its own, which has no series of the others.
        with lab.server("e") as server:
            options = ["--device-end", 500, "--in-flight", 1, "--payload", payload, "--limit", "fsync", "--probes", 0]
            report = lab.load(f"e {name}", server, *options)
        load, rate = report["load"], report["outcome"]["rate"]
        rows.append([*compared(name, report), rate * load["points"], rate * load["payloadBytes"] / 1e6])
    head = [*COMPARED, "points/s", "MB/s"]
    table("e. 500 devices × 1, by what a message holds, against parse + append + group commit", head, rows)


def known_devices(lab: Lab) -> None:
    """(f) 1,000 and 1,000,000 known devices, of which 1,000 send"""
    rows = []
    for known in (1_000, 1_000_000):
        name = f"{known:,} known"
        with lab.server(f"f{known}") as server:
            senders = ["--device-end", 1_000]
            lab.load(f"f {name}, making", server, *senders, "--enabled", "false")
            server.stop()
            if known > 1_000:
                say(f"f {name}: adding devices to the database")
                fleet().add_devices(server.data, TEMPLATE, known - 1_000)
            server.start()
            time.sleep(IDLE_AFTER_S)
            start_s, idle_mib = server.start_s, server.resident_mib()
            options = ["--payload", "ENERGY", "--in-flight", 1, "--limit", "fsync"]
            report = lab.load(f"f {name}", server, *senders, *options)
            connecting = report["connecting"]
            rows.append(
                [
                    *compared(f"{name}, 1,000 × 1", report),
                    ratio(connecting["connected"], connecting["seconds"]),
                    f"{start_s:.2f}",
                    f"{idle_mib:.0f}",
                ]
            )
    head = [*COMPARED, "connected/s", "start s", "idle MiB"]
    table("f. Known devices, of which 1,000 send, against parse + append + group commit", head, rows)


# What is known of a device that others are copies of.
Device = namedtuple("Device", "id name token json")
TEMPLATE = Device("", "DW00000000", "DW00000000", {})


def fleet() -> types.ModuleType:
    """The end-to-end tests' way to add very many devices; of its neighbours it needs the shape of a device only, and they
    need more than the standard library."""
    rest = types.ModuleType("harness.rest")
    rest.Device = Device
    sys.modules["harness.rest"] = rest
    return harness("fleet")


def series(lab: Lab) -> None:
    """(g) disk bytes a point, and aggregation over 1,000,000 points"""
    rows = []
    head = ["points", "rows applied/s", "bytes a point", "goal", "avg of 1,000,000 into 700, ms", "into 1, ms", "goal"]
    for interval, devices, points in ((900, 300, 3_500), (10, 500, 3_000)):
        example = ["cargo", "run", "--release", "--locked", "--quiet", "-p", "fieldline-storage", "--example", "series"]
        say(f"g: {' '.join(example)} -- {interval} {devices} {points}")
        done = subprocess.run(
            [*example, "--", str(interval), str(devices), str(points)],
            cwd=REPOSITORY,
            env=os.environ | {"TMPDIR": str(lab.folder)},
            capture_output=True,
            text=True,
            timeout=1_800,
        )
        if done.returncode != 0:
            raise Failed(f"g: the example ended with {done.returncode}:\n{done.stderr[-2000:]}")

        def found(pattern: str, text: str = done.stdout) -> list[float]:
            return [float(match.replace(",", "")) for match in re.findall(pattern, text)]

        applied, bytes_a_point = found(r"([\d,.]+) rows/s"), found(r"([\d.]+) bytes a point")
        if not (applied and bytes_a_point):
            raise Failed(f"g: the example says something new:\n{done.stdout[-2000:]}")
        slowest = [max(found(rf"in {into}: ([\d.]+) ms"), default=None) for into in ("700 buckets", "1 bucket")]
        name = f"{devices} devices × {points:,}, every {interval} s"
        rows.append([name, applied[0], bytes_a_point[0], "≤ 3", *slowest, "< 100"])
    table("g. Time series of smart meters on disk after compaction (the slowest of three keys)", head, rows)


def process(lab: Lab) -> None:
    """(h) start, memory and size of the program"""
    starts, server = [], Server(lab, "h")
    try:
        for _ in range(2):
            server.start()
            time.sleep(IDLE_AFTER_S)
            starts.append((server.start_s, server.resident_mib()))
            server.stop()
    finally:
        server.stop()
    (first_s, first_mib), (later_s, later_mib) = starts
    size_mib = BUILT.stat().st_size / (1 << 20)
    rows = [
        ["first start with the demo tenant, s", f"{first_s:.2f}", "< 1"],
        ["later start, s", f"{later_s:.2f}", "< 1"],
        ["idle after the first start, MiB resident", first_mib, "< 60"],
        ["idle after a later start, MiB resident", later_mib, "< 60"],
        ["binary, MiB", size_mib, "< 60"],
    ]
    table("h. The process", ["", "measured", "goal"], rows)


GROUPS = {
    "a": many_devices,
    "b": half_load,
    "c": http,
    "d": idle_connections,
    "e": payloads,
    "f": known_devices,
    "g": series,
    "h": process,
    "api": api.measure,
}


def main() -> int:
    """Measures the groups that are asked for, or all."""
    wanted = sys.argv[1:] or list(GROUPS)
    if unknown := set(wanted).difference(GROUPS):
        about = "\n".join(f"  {name}  {group.__doc__}" for name, group in GROUPS.items())
        print(f"there is no group {', '.join(sorted(unknown))}, only\n{about}", file=sys.stderr)
        return 2
    if not BUILT.exists():
        print(f"{BUILT} does not exist: build it first (make build)", file=sys.stderr)
        return 2
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} cores, {cpu[1] if cpu else 'unknown'}; ", end="")
    print(f"loads of {SECONDS:g} s, load generator on the same machine; load average {os.getloadavg()[0]:.1f} before")
    failed = False
    with lab(SECONDS) as found:
        for name in wanted:
            try:
                GROUPS[name](found)
            except (Failed, OSError, subprocess.SubprocessError) as error:
                failed = True
                print(f"\n### {name}. could not be measured\n\n{error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
