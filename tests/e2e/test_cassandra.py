"""The program with its journal on Kafka, values in Cassandra, and entities and positions in PostgreSQL."""

import os
import time

import pytest

from harness.cassandra import Cassandra, cassandra_server
from harness.engines import on_cassandra, on_kafka, on_postgres
from harness.kafka import kafka_server
from harness.load import Load, Tally
from harness.postgres import create_database, postgres_server
from harness.server import StartFailed, eventually, run_cli

DEVICES = 6
# `make scale` sets it.
KILLS = int(os.environ.get("SCALE_KILLS", 2))
BASE_TS = 1_600_000_000_000
TENANT_LOGIN = ("tenant@thingsboard.org", "tenant")


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="module")
def cassandra():
    with cassandra_server() as cassandra:
        yield cassandra


@pytest.fixture
def settings(postgres, cassandra) -> dict[str, str]:
    return on_postgres(create_database(postgres)) | on_cassandra(cassandra.address)


def check(rest, tally: Tally) -> None:
    """Insists on every acknowledged point, once; what only the journal has yet is applied after the start."""
    eventually(lambda: tally.check(rest.points(tally.device.id, tally.key)) or True)


@pytest.mark.timeout(260 + 20 * KILLS)
def test_kills_on_kafka_and_cassandra_lose_nothing_that_was_acknowledged(make_server, settings, seed):
    with kafka_server() as kafka:
        # Small, so that rows are packed into chunks meanwhile.
        settings |= on_kafka(kafka.address, partitions=6) | {"FIELDLINE_SERIES_PACK_BYTES": "64KiB"}
        server = make_server(env=settings)
        rest = server.start(within=90).rest()
        devices = [rest.create_device() for _ in range(DEVICES)]
        every = []
        for number in range(KILLS):
            tallies = [Tally(device, f"round{number}") for device in devices]
            with Load(server, tallies, window=20, base_ts=BASE_TS + number * 10_000_000, http=1) as load:
                eventually(lambda load=load: load.acknowledged > 100)
                time.sleep(seed.uniform(0.5, 1.5))
                server.kill()
            rest = server.start(within=60).rest()
            for tally in tallies:
                check(rest, tally)
            every += tallies
        for tally in every:
            check(rest, tally)
        assert sum(len(tally.acknowledged) for tally in every) > KILLS * 100
        assert not (server.data_dir / "journal").exists()
        assert not (server.data_dir / "series").exists()
        server.stop()

        # Nothing depends on the data directory.
        moved = make_server("moved", demo=False, env=settings)
        moved.start(within=60)
        rest = moved.rest(*TENANT_LOGIN)
        for tally in every:
            tally.check(rest.points(tally.device.id, tally.key))
        moved.stop()


@pytest.mark.timeout(240)
def test_devices_are_acknowledged_while_cassandra_is_frozen(make_server, cassandra: Cassandra, settings):
    server = make_server(env=settings)
    rest = server.start(within=90).rest()
    tallies = [Tally(rest.create_device(), "n") for _ in range(DEVICES)]
    with Load(server, tallies, window=20, base_ts=BASE_TS) as load:
        eventually(lambda: load.acknowledged > 200 and rest.points(tallies[0].device.id, "n"))
        cassandra.freeze()
        try:
            before = load.acknowledged
            eventually(lambda: load.acknowledged > before + 500)
        finally:
            cassandra.thaw()
    for tally in tallies:
        check(rest, tally)
    server.stop()


def test_what_cassandra_needs_is_said_and_its_password_is_kept_secret():
    kind = {"FIELDLINE_SERIES_KIND": "cassandra"}
    refused = run_cli("config", env=kind)
    assert refused.returncode != 0 and "needs `sql.url`" in refused.stderr
    stored = kind | {"FIELDLINE_SQL_URL": "postgres://127.0.0.1:1/none"}
    refused = run_cli("config", env=stored | {"FIELDLINE_CASSANDRA_KEYSPACE": "a-b"})
    assert refused.returncode != 0 and "`cassandra.keyspace`" in refused.stderr
    secret = {"FIELDLINE_CASSANDRA_USER": "iot", "FIELDLINE_CASSANDRA_PASSWORD": "hidden-password"}
    shown = run_cli("config", env=stored | secret)
    assert shown.returncode == 0 and "hidden-password" not in shown.stdout + shown.stderr


@pytest.mark.timeout(120)
def test_a_start_without_cassandra_says_so(make_server, settings):
    with pytest.raises(StartFailed, match="Cassandra cannot be reached"):
        make_server(env=settings | {"FIELDLINE_CASSANDRA_NODES": "127.0.0.1:1"}).start(within=100)
