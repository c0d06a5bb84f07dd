"""The program on PostgreSQL: entities and time series in one database, the journal in the data directory."""

import time

import pytest

from harness.load import Load, Tally
from harness.postgres import PostgresRelay, create_database, postgres_server, sql
from harness.rest import telemetry
from harness.server import StartFailed, eventually, run_cli

DEVICES = 4
KILLS = 6
BASE_TS = 1_600_000_000_000
# Sizes at which rows are packed all the time, so that kills hit that too.
SMALL = {
    "FIELDLINE_SERIES_MEMTABLE": "1MiB",
    "FIELDLINE_SERIES_PACK_BYTES": "64KiB",
    "FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "50ms",
}


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as url:
        yield url


@pytest.fixture
def database(postgres) -> str:
    return create_database(postgres)


def settings(url: str) -> dict[str, str]:
    return {"FIELDLINE_SQL_URL": url, "FIELDLINE_SERIES_KIND": "sql"}


def check(rest, tally: Tally) -> None:
    """Insists on every acknowledged point, once; what only the journal has yet is applied after the start."""
    eventually(lambda: tally.check(rest.points(tally.device.id, tally.key)) or True)


@pytest.mark.timeout(180)
def test_kills_lose_nothing_that_was_acknowledged(make_server, database, seed):
    server = make_server(env=settings(database) | SMALL)
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    every = []
    for number in range(KILLS):
        tallies = [Tally(device, f"round{number}") for device in devices]
        with Load(server, tallies, window=20, base_ts=BASE_TS + number * 10_000_000, http=1):
            time.sleep(seed.uniform(0.2, 0.8))
            server.kill()
        rest = server.start().rest()
        for tally in tallies:
            check(rest, tally)
        every += tallies
    for tally in every:
        check(rest, tally)
    assert sum(len(tally.acknowledged) for tally in every) > KILLS * 50
    assert not (server.data_dir / "series").exists() and not (server.data_dir / "entities.db").exists()
    server.stop()

    # What is stored does not depend on the data directory.
    moved = make_server("moved", demo=False, env=settings(database))
    moved.start()
    rest = moved.rest(*TENANT_LOGIN)
    for tally in every:
        tally.check(rest.points(tally.device.id, tally.key))


TENANT_LOGIN = ("tenant@thingsboard.org", "tenant")


@pytest.mark.timeout(120)
def test_devices_are_served_while_the_database_is_out_of_reach(make_server, database):
    relay = PostgresRelay(database)
    server = make_server(env=settings(relay.url))
    rest = server.start().rest()
    tallies = [Tally(rest.create_device(), "n") for _ in range(DEVICES)]
    with Load(server, tallies, window=5) as load:
        eventually(lambda: load.acknowledged > 200)
        relay.cut()
        before = load.acknowledged
        eventually(lambda: load.acknowledged > before + 500)
        relay.mend()
        after = load.acknowledged
        eventually(lambda: load.acknowledged > after + 200)
    for tally in tallies:
        check(rest, tally)
    assert not any(tally.refusals for tally in tallies)
    assert rest.get(telemetry(tallies[0].device.id, "values/timeseries"), keys="n").json()["n"]
    server.stop()
    relay.close()


def test_the_last_process_on_a_database_has_it(make_server, database):
    first = make_server("first", env=settings(database))
    rest = first.start().rest()
    tally = Tally(rest.create_device(), "n")
    second = make_server("second", env=settings(database)).start()
    # What it takes from now on stays in its journal, and is stored once it has the database again.
    with Load(first, [tally], window=5) as load:
        eventually(lambda: load.acknowledged > 100)
    eventually(lambda: "another process has opened the time series" in first.log())
    second.stop()
    first.stop()
    rest = first.start().rest()
    check(rest, tally)
    first.stop()


def test_a_database_in_use_gets_no_well_known_passwords(make_server, database):
    server = make_server(demo=False, env=settings(database) | {"FIELDLINE_ADMIN_PASSWORD": "secret-of-a-test"})
    server.start().stop()
    with pytest.raises(StartFailed, match="is in use without the demo"):
        make_server("demo", env=settings(database)).start()


def test_the_address_of_the_database_is_needed_and_kept_secret(make_server, database):
    refused = run_cli("config", env={"FIELDLINE_SERIES_KIND": "sql"})
    assert refused.returncode != 0 and "`sql.url`" in refused.stderr
    url = "postgres://somebody:hidden-password@127.0.0.1:1/none"
    shown = run_cli("config", env=settings(url))
    assert shown.returncode == 0 and "hidden-password" not in shown.stdout + shown.stderr
    with pytest.raises(StartFailed) as failed:
        make_server(env=settings(url)).start()
    assert "hidden-password" not in str(failed.value)


def test_the_tables_are_those_that_the_guide_names(make_server, database):
    make_server(env=settings(database)).start().stop()
    tables = {
        name
        for (name,) in sql(
            database, "SELECT relname FROM pg_class WHERE relname ~ '^series_[a-z]+$' AND relkind IN ('r', 'p')"
        )
    }
    assert tables == {
        "series_owner",
        "series_meta",
        "series_state",
        "series_latest",
        "series_attribute",
        "series_chunk",
        "series_stuck",
        "series_block",
    }
