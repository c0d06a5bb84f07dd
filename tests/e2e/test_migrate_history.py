"""What ThingsBoard has stored becomes the history of the entities of the same names."""

import signal
import subprocess
import uuid

import pytest

from harness.postgres import create_database, postgres_server, sql
from harness.server import BINARY, environment, eventually, run_cli

# What is moved begins on files; the other places are named.
pytestmark = pytest.mark.files

JANUARY = 1_672_531_200_000
FEBRUARY = 1_675_209_600_000
MINUTE = 60_000
POINTS = 3_000
"""A series across two partitions."""

# The tables, as far as they are read. From 3.7 on, attributes have numbers for their scopes and names.
SCHEMA = """
CREATE TABLE tenant (id uuid PRIMARY KEY, title varchar);
CREATE TABLE customer (id uuid PRIMARY KEY, tenant_id uuid, title varchar);
CREATE TABLE tb_user (id uuid PRIMARY KEY, tenant_id uuid, email varchar);
CREATE TABLE device (id uuid PRIMARY KEY, tenant_id uuid, name varchar);
CREATE TABLE asset (id uuid PRIMARY KEY, tenant_id uuid, name varchar);
CREATE TABLE entity_view (id uuid PRIMARY KEY, tenant_id uuid, name varchar);
CREATE TABLE {dictionary} (key varchar PRIMARY KEY, key_id serial UNIQUE);
CREATE TABLE ts_kv (entity_id uuid NOT NULL, key int NOT NULL, ts bigint NOT NULL, bool_v boolean, str_v varchar,
    long_v bigint, dbl_v double precision, json_v json, PRIMARY KEY (entity_id, key, ts)) PARTITION BY RANGE (ts);
CREATE TABLE ts_kv_2023_01 PARTITION OF ts_kv FOR VALUES FROM (1672531200000) TO (1675209600000);
CREATE TABLE ts_kv_indefinite PARTITION OF ts_kv DEFAULT;
CREATE TABLE ts_kv_latest (entity_id uuid NOT NULL, key int NOT NULL, ts bigint NOT NULL, bool_v boolean, str_v varchar,
    long_v bigint, dbl_v double precision, json_v json, PRIMARY KEY (entity_id, key));
"""
ATTRIBUTES_BY_NUMBER = """
CREATE TABLE attribute_kv (entity_id uuid, attribute_type int, attribute_key int, bool_v boolean, str_v varchar,
    long_v bigint, dbl_v double precision, json_v json, last_update_ts bigint,
    PRIMARY KEY (entity_id, attribute_type, attribute_key));
"""
ATTRIBUTES_BY_NAME = """
CREATE TABLE attribute_kv (entity_type varchar, entity_id uuid, attribute_type varchar, attribute_key varchar,
    bool_v boolean, str_v varchar, long_v bigint, dbl_v double precision, json_v json, last_update_ts bigint,
    PRIMARY KEY (entity_type, entity_id, attribute_type, attribute_key));
"""
SCOPES = {"CLIENT_SCOPE": 1, "SERVER_SCOPE": 2, "SHARED_SCOPE": 3}


def literal(value) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def columns(value) -> str:
    """The five columns of a value."""
    if isinstance(value, bool):
        return f"{value}, NULL, NULL, NULL, NULL"
    if isinstance(value, int):
        return f"NULL, NULL, {value}, NULL, NULL"
    if isinstance(value, float):
        return f"NULL, NULL, NULL, {value!r}, NULL"
    if isinstance(value, dict):
        text = str(value).replace("'", '"')
        return f"NULL, NULL, NULL, NULL, {literal(text)}"
    return f"NULL, {literal(value)}, NULL, NULL, NULL"


class ThingsBoard:
    """The database of a ThingsBoard with one tenant."""

    def __init__(self, url: str, tmp_path, title: str, is_old: bool = False):
        self.url = url
        self.is_old = is_old
        self.dictionary = "ts_kv_dictionary" if is_old else "key_dictionary"
        sql(url, SCHEMA.format(dictionary=self.dictionary))
        sql(url, ATTRIBUTES_BY_NAME if is_old else ATTRIBUTES_BY_NUMBER)
        self.tenant = self.entity("tenant", title)
        self.settings = tmp_path / "thingsboard.conf"
        address = url.split("@")[1].split("?")[0]
        self.settings.write_text(
            'export JAVA_OPTS="$JAVA_OPTS -Xmx2g"\n'
            "export DATABASE_TS_TYPE=sql\n"
            f"export SPRING_DATASOURCE_URL=jdbc:postgresql://{address}?sslmode=disable\n"
            "export SPRING_DATASOURCE_USERNAME=postgres\n"
        )

    def entity(self, table: str, name: str) -> str:
        """Adds an entity; gives its id."""
        made = str(uuid.uuid1())
        if table == "tenant":
            sql(self.url, f"INSERT INTO tenant VALUES ({literal(made)}, {literal(name)})")
        else:
            sql(self.url, f"INSERT INTO {table} VALUES ({literal(made)}, {literal(self.tenant)}, {literal(name)})")
        return made

    def key(self, name: str) -> str:
        """The number of a name."""
        sql(self.url, f"INSERT INTO {self.dictionary} (key) VALUES ({literal(name)}) ON CONFLICT DO NOTHING")
        return sql(self.url, f"SELECT key_id FROM {self.dictionary} WHERE key = {literal(name)}")[0][0]

    def points(self, entity: str, key: str, points: list[tuple]) -> None:
        """Adds points (time, value); the last one is the latest value."""
        number = self.key(key)
        rows = ", ".join(f"({literal(entity)}, {number}, {ts}, {columns(value)})" for ts, value in points)
        sql(self.url, f"INSERT INTO ts_kv VALUES {rows}")
        self.latest(entity, key, *points[-1])

    def latest(self, entity: str, key: str, ts: int, value) -> None:
        row = f"({literal(entity)}, {self.key(key)}, {ts}, {columns(value)})"
        sql(self.url, f"DELETE FROM ts_kv_latest WHERE entity_id = {literal(entity)} AND key = {self.key(key)}")
        sql(self.url, f"INSERT INTO ts_kv_latest VALUES {row}")

    def series(self, entity: str, key: str, count: int, start: int) -> None:
        """Adds points of a minute each, with their number as value."""
        number = self.key(key)
        sql(
            self.url,
            "INSERT INTO ts_kv (entity_id, key, ts, long_v) "
            f"SELECT {literal(entity)}, {number}, {start} + n * {MINUTE}::bigint, n FROM generate_series(0, {count} - 1) n",
        )

    def attribute(self, kind: str, entity: str, scope: str, key: str, value, ts: int) -> None:
        if self.is_old:
            row = f"{literal(kind)}, {literal(entity)}, {literal(scope)}, {literal(key)}"
        else:
            row = f"{literal(entity)}, {SCOPES[scope]}, {self.key(key)}"
        sql(self.url, f"INSERT INTO attribute_kv VALUES ({row}, {columns(value)}, {ts})")


class Target:
    """An installation that is filled."""

    def __init__(self, make_server, tmp_path):
        self.server = make_server()
        self.progress = tmp_path / "progress"

    def arguments(self, source: ThingsBoard, *more: str) -> list[str]:
        places = ["--from", str(source.settings), "--to", str(self.server.data_dir), "--progress", str(self.progress)]
        return ["migrate-history", *places, *more]

    def fill(self, source: ThingsBoard, *more: str) -> str:
        told = run_cli(*self.arguments(source, *more), timeout=120)
        assert told.returncode == 0, told.stdout + told.stderr
        return told.stdout


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as url:
        yield url


def history(rest, device, key: str) -> list[tuple]:
    path = f"/api/plugins/telemetry/DEVICE/{device.id}/values/timeseries"
    given = {"keys": key, "startTs": 0, "endTs": FEBRUARY * 2, "limit": 100_000, "useStrictDataTypes": "true"}
    points = rest.get(path, **given).json().get(key, [])
    return sorted((point["ts"], point["value"]) for point in points)


@pytest.mark.parametrize("is_old", [False, True], ids=["numbered attributes", "named attributes"])
@pytest.mark.timeout(180)
def test_values_of_thingsboard_become_the_history_of_devices_of_their_names(make_server, tmp_path, postgres, is_old):
    source = ThingsBoard(create_database(postgres), tmp_path, "Acme", is_old)
    target = Target(make_server, tmp_path)
    rest = target.server.start().rest()
    meter = rest.create_device("Meter 1")
    hall = rest.post("/api/asset", {"name": "Hall", "type": "default"}).json()["id"]["id"]
    newer = f"/api/plugins/telemetry/DEVICE/{meter.id}"
    rest.post(f"{newer}/SERVER_SCOPE", {"site": "here"})
    rest.post(f"{newer}/timeseries/ANY", {"ts": FEBRUARY * 2 - 1, "values": {"level": -1}})

    there = source.entity("device", "Meter 1")
    typed = [
        (JANUARY + 1, True),
        (JANUARY + 2, 2**53 + 1),
        (JANUARY + 3, 0.1),
        (FEBRUARY + 4, "O'Neil ä"),
        (FEBRUARY + 5, {"a": [1, 2.5]}),
    ]
    source.points(there, "mixed", typed)
    source.series(there, "level", POINTS, FEBRUARY - POINTS // 2 * MINUTE)
    source.latest(there, "level", FEBRUARY + POINTS * MINUTE, 5)
    source.latest(there, "only latest", JANUARY, "kept")
    source.points(source.entity("asset", "Hall"), "people", [(JANUARY, 7)])
    source.attribute("DEVICE", there, "SERVER_SCOPE", "site", "there", JANUARY)
    source.attribute("DEVICE", there, "SERVER_SCOPE", "serial", 42, JANUARY)
    source.attribute("DEVICE", there, "SERVER_SCOPE", "active", True, JANUARY)
    source.attribute("DEVICE", there, "SHARED_SCOPE", "target", 21.5, JANUARY)
    source.attribute("DEVICE", there, "CLIENT_SCOPE", "model", "M1", JANUARY)
    absent = source.entity("device", "Meter 2")
    source.points(absent, "level", [(JANUARY, 1), (FEBRUARY, 2)])

    in_use = run_cli(*target.arguments(source))
    assert in_use.returncode == 1 and "another process" in in_use.stderr, in_use.stderr
    target.server.stop()
    unknown = run_cli(*target.arguments(source, "--tenant", "Acme=Nobody"))
    assert unknown.returncode == 1 and "--tenant Acme=Nobody" in unknown.stderr
    elsewhere = target.fill(source)
    assert "0 points" in elsewhere and "Meter 1" in elsewhere
    told = target.fill(source, "--tenant", "Acme=Tenant")
    assert f"{POINTS + len(typed) + 1} points" in told
    assert "1 entities of ThingsBoard are not here: DEVICE Meter 2" in told

    rest = target.server.start().rest()
    assert history(rest, meter, "mixed") == [(ts, value) for ts, value in typed]
    begin = FEBRUARY - POINTS // 2 * MINUTE
    expected = [*((begin + n * MINUTE, n) for n in range(POINTS)), (FEBRUARY * 2 - 1, -1)]
    assert history(rest, meter, "level") == expected
    assert rest.latest(meter.id, "level", "only latest") == {"level": -1, "only latest": "kept"}
    attributes = rest.attributes(meter.id, "SERVER_SCOPE")
    assert (attributes["site"], attributes["serial"]) == ("here", 42)
    assert not attributes.get("active")
    assert rest.attributes(meter.id, "SHARED_SCOPE") == {"target": 21.5}
    assert rest.attributes(meter.id, "CLIENT_SCOPE") == {"model": "M1"}
    people = rest.get(f"/api/plugins/telemetry/ASSET/{hall}/values/timeseries", keys="people").json()["people"]
    assert people == [{"ts": JANUARY, "value": "7"}]

    # A device that is imported later gets its own, and the others what has come since.
    later = rest.create_device("Meter 2")
    target.server.stop()
    source.points(there, "mixed", [(FEBRUARY + 6, 6)])
    again = target.fill(source, "--tenant", "Acme=Tenant")
    assert "3 points" in again and "are not here" not in again
    rest = target.server.start().rest()
    assert history(rest, later, "level") == [(JANUARY, 1), (FEBRUARY, 2)]
    assert history(rest, meter, "mixed")[-1] == (FEBRUARY + 6, 6)
    assert history(rest, meter, "level") == expected


@pytest.mark.timeout(180)
def test_a_history_that_is_cut_off_goes_on_where_it_was(make_server, tmp_path, postgres):
    source = ThingsBoard(create_database(postgres), tmp_path, "Tenant")
    target = Target(make_server, tmp_path)
    rest = target.server.start().rest()
    devices = [rest.create_device(f"Meter {number}") for number in range(20)]
    target.server.stop()
    many = 30_000
    for number in range(len(devices)):
        source.series(source.entity("device", f"Meter {number}"), "level", many, JANUARY)

    command = [BINARY, *target.arguments(source)]
    for batches in (1, 6):
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as copy:
            lines = batches * 15
            eventually(lambda lines=lines: target.progress.exists() and count_lines(target.progress) > lines)
            copy.kill()
        assert copy.returncode == -signal.SIGKILL
    before = count_lines(target.progress)
    told = target.fill(source)
    copied = int(told.split(" points,")[0].split()[-1])
    assert copied < len(devices) * many, "it began anew"
    assert count_lines(target.progress) > before

    rest = target.server.start().rest()
    for device in devices:
        span = {"startTs": 0, "endTs": FEBRUARY * 2, "agg": "COUNT", "interval": FEBRUARY * 2, "keys": "level"}
        counted = rest.get(f"/api/plugins/telemetry/DEVICE/{device.id}/values/timeseries", **span).json()
        assert counted["level"][0]["value"] == str(many)
    target.server.stop()
    assert " 0 points," in target.fill(source)


def count_lines(path) -> int:
    return path.read_bytes().count(b"\n")


@pytest.mark.timeout(60)
def test_what_is_no_thingsboard_is_refused(make_server, tmp_path, postgres):
    source = ThingsBoard(create_database(postgres), tmp_path, "Tenant")
    target = Target(make_server, tmp_path)
    target.server.start()
    target.server.stop()
    source.settings.write_text("export DATABASE_TS_TYPE=sql\n")
    refused = run_cli(*target.arguments(source))
    assert refused.returncode == 1 and "SPRING_DATASOURCE_URL" in refused.stderr
    empty = create_database(postgres).split("@")[1].split("?")[0]
    source.settings.write_text(f"SPRING_DATASOURCE_URL=jdbc:postgresql://{empty}?user=postgres&sslmode=disable\n")
    refused = run_cli(*target.arguments(source))
    assert refused.returncode == 1 and "no tables of ThingsBoard" in refused.stderr
