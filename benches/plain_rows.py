"""What `series.plain-rows` costs: `tests/services/with-postgres.sh python3 benches/plain_rows.py [PROGRAM]`.

The same load with the setting and without it, twice in turn, each on a database of its own: processor time of the program and of
PostgreSQL a message, and what the tables take on the disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lab import BUILT, Failed, Lab, Server, table
from services import PostgresProcesses, create_database, postgres_bytes, psql

DEVICES = 500
RATE = 4_000
SECONDS = 15
OWN_TABLES = "series_block", "series_chunk", "series_latest"


def measure(folder: Path, program: Path, number: int, is_on: bool) -> list:
    url = create_database()
    os.environ |= {
        "FIELDLINE_SQL_URL": url,
        "FIELDLINE_SERIES_KIND": "sql",
        "FIELDLINE_SERIES_PLAIN_ROWS": str(is_on).lower(),
    }
    place = folder / str(number)
    place.mkdir()
    server = Server(Lab(place, 0, program), "server").start()
    load = [
        program,
        "bench",
        "telemetry",
        *server.options(),
        "--device-start",
        "0",
        "--device-end",
        str(DEVICES),
    ]
    load += ["--rate", str(RATE)]
    subprocess.run([*load, "--duration", "3"], check=True, capture_output=True, timeout=300)
    server.settle()
    points = "SELECT count(*) FROM telemetry" if is_on else None
    processes = PostgresProcesses()
    before = server.cpu_s(), processes.cpu_s()
    told = subprocess.run([*load, "--duration", str(SECONDS)], text=True, capture_output=True, timeout=300)
    if told.returncode != 0:
        raise Failed(told.stdout + told.stderr)
    server.settle()
    own, databases = server.cpu_s() - before[0], processes.cpu_s() - before[1]
    messages = RATE * SECONDS
    rows = int(psql(url, points)) if points else 0
    plain = postgres_bytes(url, "telemetry") / rows if rows else 0
    kept = sum(postgres_bytes(url, table) for table in OWN_TABLES) / (1 << 20)
    server.stop()
    return [
        "on" if is_on else "off",
        own / messages * 1e6,
        databases / messages * 1e6,
        rows,
        plain,
        kept,
    ]


def main() -> None:
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), program, number, number % 2 == 1) for number in range(4)]
    head = [
        "plain rows",
        "Fieldline, µs of processor time a message",
        "PostgreSQL, the same",
        "rows",
        "bytes a row",
        "own tables, MiB",
    ]
    table(f"{RATE:,} messages a second of {DEVICES} devices for {SECONDS} s", head, rows)


if __name__ == "__main__":
    main()
