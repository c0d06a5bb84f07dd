"""Kafka, PostgreSQL and Cassandra under one server, each of them frozen or cut off in turn, and the server killed.

`make scale SCALE_SECONDS=60 SCALE_KILLS=25` lets each fate last so long, and kills so often.
"""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import contextmanager

import pytest

from harness.cassandra import cassandra_server
from harness.kafka import kafka_server
from harness.load import Load, Tally
from harness.postgres import Relay, create_database, postgres_server, sql
from harness.server import Server, eventually

SECONDS = float(os.environ.get("SCALE_SECONDS", 3))
KILLS = int(os.environ.get("SCALE_KILLS", 1))
DEVICES = 6
BASE_TS = 1_600_000_000_000
BACK_WITHIN_S = 120
"""A server of these takes its time to come back, and clients to notice."""


def postgres_processes(url: str) -> list[int]:
    """All processes of the server, the first one last, so that it starts none while they are stopped."""
    directory = sql(url, "SHOW data_directory")[0][0]
    with open(f"{directory}/postmaster.pid", encoding="utf-8") as file:
        first = int(file.readline())
    children = subprocess.run(["pgrep", "-P", str(first)], capture_output=True, text=True, check=False).stdout
    return [*map(int, children.split()), first]


@contextmanager
def frozen_postgres(url: str):
    processes = postgres_processes(url)
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in reversed(processes):
            os.kill(process, signal.SIGCONT)


@contextmanager
def during(begin: Callable[[], None], end: Callable[[], None]):
    begin()
    try:
        yield
    finally:
        end()


def lag(server: Server) -> float:
    metrics = server.metrics()
    return sum(value for name, value in metrics.items() if name.startswith("fieldline_ingest_lag_records"))


@pytest.mark.timeout(600 + 5 * SECONDS + 60 * KILLS)
def test_nothing_is_lost_or_doubled_whatever_becomes_of_the_servers(make_server, seed):
    with postgres_server() as url, kafka_server() as kafka, cassandra_server() as cassandra:
        database = create_database(url)
        relay = Relay(database)
        server = make_server(
            env={
                "FIELDLINE_SQL_URL": relay.url,
                "FIELDLINE_SERIES_KIND": "cassandra",
                "FIELDLINE_CASSANDRA_NODES": cassandra.address,
                "FIELDLINE_CASSANDRA_KEYSPACE": f"test_{uuid.uuid4().hex}",
                "FIELDLINE_CASSANDRA_REPLICATION": "SimpleStrategy:1",
                "FIELDLINE_JOURNAL_KIND": "kafka",
                "FIELDLINE_JOURNAL_KAFKA_SERVERS": kafka.address,
                "FIELDLINE_JOURNAL_KAFKA_PARTITIONS": "6",
                # Small, so that rows are packed into chunks meanwhile.
                "FIELDLINE_SERIES_PACK_BYTES": "256KiB",
            }
        )
        rest = server.start(within=90).rest()
        devices = [rest.create_device() for _ in range(DEVICES)]
        fates = {
            "kafka_frozen": lambda: during(kafka.freeze, kafka.thaw),
            "cassandra_frozen": lambda: during(cassandra.freeze, cassandra.thaw),
            "postgres_frozen": lambda: frozen_postgres(database),
            "postgres_cut_off": lambda: during(relay.cut, relay.mend),
        }
        every: list[Tally] = []
        memory = {}
        for number, (fate, holds) in enumerate(fates.items()):
            tallies = [Tally(device, fate) for device in devices]
            with Load(server, tallies, window=10, base_ts=BASE_TS + number * 100_000_000) as load:
                eventually(lambda load=load: load.acknowledged > 500, within=BACK_WITHIN_S)
                with holds():
                    time.sleep(SECONDS)
                before = load.acknowledged
                eventually(
                    lambda load=load, before=before: load.acknowledged > before + 500, within=BACK_WITHIN_S, every=0.1
                )
            eventually(lambda: lag(server) == 0, within=BACK_WITHIN_S, every=0.1)
            memory[fate] = server.memory_kib()
            every += tallies
            check(server, every)
        print(f"memory in KiB behind each: {memory}")
        for number in range(KILLS):
            tallies = [Tally(device, f"kill{number}") for device in devices]
            with Load(server, tallies, window=20, base_ts=BASE_TS - (number + 1) * 100_000_000, http=1) as load:
                eventually(lambda load=load: load.acknowledged > 100, within=BACK_WITHIN_S)
                time.sleep(seed.uniform(0.2, 1.5))
                server.kill()
            server.start(within=90)
            every += tallies
            check(server, tallies)
        check(server, every)
        print(f"{sum(len(tally.acknowledged) for tally in every)} points acknowledged, all of them there once")
        server.stop()
        relay.close()


def check(server: Server, tallies: list[Tally]) -> None:
    """Insists on every acknowledged point, once."""
    rest = server.rest()
    for tally in tallies:
        eventually(lambda tally=tally: tally.check(rest.points(tally.device.id, tally.key)) or True, within=60)
