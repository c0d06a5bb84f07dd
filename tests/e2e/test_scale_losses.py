"""Kafka, PostgreSQL and Cassandra that lose something, cannot write in time, or have no room: what was acknowledged comes back.

`SCALE_BACK_SECONDS=30` sets PostgreSQL back by so much.
"""

import os
import socket
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cassandra import cassandra_server
from harness.disk import fill, small_disk
from harness.engines import on_cassandra, on_kafka, on_postgres
from harness.kafka import Kafka, kafka_server
from harness.load import Load, Tally
from harness.postgres import Postgres, create_database, postgres_server
from harness.server import Server, eventually, split_address
from harness.watched import SETTINGS, WatchedDevices

BACK_SECONDS = float(os.environ.get("SCALE_BACK_SECONDS", 3))
SECONDS = float(os.environ.get("SCALE_SECONDS", 2))
DEVICES = 6
PARTITIONS = 6
BASE_TS = 1_600_000_000_000
BACK_WITHIN_S = 120
"""A server of these takes its time to come back, and clients to notice."""
START_WITHIN_S = 90


@pytest.fixture(scope="module")
def kafka():
    with kafka_server() as kafka:
        yield kafka


@pytest.fixture(scope="module")
def postgres_url():
    with postgres_server(durable=True) as url:
        yield url


@pytest.fixture(scope="module")
def cassandra():
    with cassandra_server(durable=True) as cassandra:
        yield cassandra


def on(kafka: Kafka, postgres_url: str) -> dict[str, str]:
    """The settings of a server on both."""
    # Small, so that rows are packed into chunks meanwhile.
    packed = {"FIELDLINE_SERIES_PACK_BYTES": "256KiB"}
    return on_kafka(kafka.address, PARTITIONS) | on_postgres(create_database(postgres_url)) | packed | SETTINGS


def drained(server: Server) -> None:
    eventually(lambda: server.lag() == 0, within=BACK_WITHIN_S, every=0.1)


def acknowledges(load: Load, more: int = 500) -> None:
    before = load.acknowledged
    eventually(lambda: load.acknowledged > before + more, within=BACK_WITHIN_S, every=0.05)


@pytest.mark.timeout(600 + 4 * BACK_SECONDS)
@pytest.mark.parametrize("values", ["postgres", pytest.param("cassandra", marks=pytest.mark.long)])
def test_postgres_set_back_to_a_copy_gets_what_has_come_in_since_from_kafka(
    make_server, kafka, postgres_url, values, request
):
    env = on(kafka, postgres_url)
    if values == "cassandra":
        env |= on_cassandra(request.getfixturevalue("cassandra").address)
    postgres = Postgres(env["FIELDLINE_SQL_URL"])
    server = make_server(env=env)
    devices = WatchedDevices(server.start(within=START_WITHIN_S), DEVICES)
    with devices.load(server, window=2) as load:
        acknowledges(load)
    drained(server)
    devices.check(server)
    with devices.load(server, window=2) as load:
        acknowledges(load)
        copy = postgres.copy(f"copy-{values}")
        copied = time.monotonic()
        time.sleep(BACK_SECONDS)
        acknowledges(load)
        server.kill()
        lost = time.monotonic() - copied
    postgres.kill()
    postgres.set_back(copy)
    postgres.start()
    server.start(within=START_WITHIN_S)
    drained(server)
    devices.check(server)
    with devices.load(server, window=2) as load:
        acknowledges(load)
    drained(server)
    devices.check(server, slice(None))
    assert devices.alarms > 0
    print(
        f"set back by {lost:.1f} s: {devices.acknowledged} points acknowledged and {devices.alarms} alarms raised, "
        "all of them there once"
    )
    server.stop()


@pytest.mark.timeout(300)
def test_postgres_set_back_to_before_the_first_message_gets_all_from_kafka(make_server, kafka, postgres_url):
    # No position is stored yet when the copy is taken.
    env = on(kafka, postgres_url) | {"FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "20s"}
    postgres = Postgres(env["FIELDLINE_SQL_URL"])
    server = make_server(env=env)
    rest = server.start(within=START_WITHIN_S).rest()
    tallies = [Tally(rest.create_device(), "n") for _ in range(DEVICES)]
    copy = postgres.copy("copy-empty")
    with Load(server, tallies, window=2, base_ts=BASE_TS) as load:
        acknowledges(load)
    drained(server)
    # How far things are is told to Kafka once they are stored.
    eventually(lambda: all(at == end for at, end in group_offsets(kafka, env)), within=60, every=1)
    server.kill()
    postgres.kill()
    postgres.set_back(copy)
    postgres.start()
    server.start(within=START_WITHIN_S)
    drained(server)
    rest = server.rest()
    for tally in tallies:
        tally.check(rest.points(tally.device.id, tally.key))
    server.stop()


def group_offsets(kafka: Kafka, env: dict[str, str]) -> list[tuple[str, str]]:
    """How far Kafka believes that the main queue is consumed, and its end, a partition each."""
    prefix = env["FIELDLINE_JOURNAL_KAFKA_PREFIX"]
    told = kafka.tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", f"{prefix}.ingest")
    rows = [line.split() for line in told.splitlines()]
    return [(row[3], row[4]) for row in rows if len(row) > 4 and row[1] == f"{prefix}.q.Main"]


def partition_of(device_id: str) -> int:
    """The partition that the records of a device are in."""
    bits = uuid.UUID(device_id).int
    folded = (bits ^ bits >> 64) & 0xFFFF_FFFF_FFFF_FFFF
    return ((folded * 0x9E37_79B9_7F4A_7C15 & 0xFFFF_FFFF_FFFF_FFFF) >> 32) % PARTITIONS


def delete_all_records(kafka: Kafka, topic: str, partitions: list[int], home: Path) -> None:
    """Empties partitions with Kafka's own tool."""
    rows = ",".join(f'{{"topic":"{topic}","partition":{partition},"offset":-1}}' for partition in partitions)
    wanted = home / "delete.json"
    wanted.write_text(f'{{"partitions":[{rows}],"version":1}}')
    told = kafka.tool("DeleteRecordsCommand", "--offset-json-file", wanted)
    assert told.count("low_watermark") == len(partitions), told


@pytest.mark.long
@pytest.mark.timeout(600)
def test_records_that_somebody_has_deleted_are_told_of_and_cost_nothing_else(
    make_server, kafka, postgres_url, tmp_path
):
    env = on(kafka, postgres_url)
    # Little is taken out of Kafka before it is stored.
    env |= {
        "FIELDLINE_JOURNAL_KAFKA_FETCH_MEMORY": "64KiB",
        "FIELDLINE_SERIES_MEMTABLE": "1MiB",
        "FIELDLINE_INGEST_BATCH": "16KiB",
    }
    topic = f"{env['FIELDLINE_JOURNAL_KAFKA_PREFIX']}.q.Main"
    postgres = Postgres(env["FIELDLINE_SQL_URL"])
    server = make_server(env=env)
    rest = server.start(within=START_WITHIN_S).rest()
    devices = [rest.create_device()]
    while len(set(map(partition_of, (device.id for device in devices)))) < 4:
        devices.append(rest.create_device())
    used = sorted({partition_of(device.id) for device in devices})
    emptied, kept = used[:2], used[2:]
    relocated = "fieldline_ingest_relocated_partitions_total"
    text = "x" * 2000

    def send(key: str, count: int, hold=lambda: None) -> list[Tally]:
        tallies = [Tally(device, key) for device in devices]
        with Load(server, tallies, window=20, base_ts=BASE_TS, more=lambda _: {"text": text}) as load:
            eventually(lambda: load.acknowledged > 200, within=BACK_WITHIN_S)
            hold()
            acknowledges(load, count)
        return tallies

    def check(tally: Tally) -> None:
        eventually(lambda: tally.check(rest.points(tally.device.id, tally.key)) or True, within=60)

    before = send("before", 100)
    drained(server)
    for tally in before:
        check(tally)
    assert server.metrics().get(relocated, 0) == 0
    during = send("during", 15_000, postgres.freeze)
    try:
        delete_all_records(kafka, topic, emptied, tmp_path)
    finally:
        postgres.thaw()
    after = send("after", 500)
    drained(server)
    assert server.metrics()[relocated] == len(emptied)
    assert server.log().count("records that were not stored yet are gone from the journal") == len(emptied)
    for tally in [*before, *after, *(tally for tally in during if partition_of(tally.device.id) in kept)]:
        check(tally)
    lost = 0
    for tally in during:
        if partition_of(tally.device.id) in kept:
            continue
        stored = set(rest.values(tally.device.id, tally.key))
        missing = tally.acknowledged - stored
        lost += len(missing)
        # What was stored before is there, without a gap, and nothing is there twice.
        assert not missing or all(number < min(missing) for number in stored), f"{tally.device.name} has gaps"
        assert len(rest.values(tally.device.id, tally.key)) == len(stored)
    assert lost > 0
    print(f"{lost} records are gone that had been deleted before they were stored, and no others")

    # The same while the program does not run.
    during = send("stopped", 500, postgres.freeze)
    server.kill()
    try:
        delete_all_records(kafka, topic, emptied, tmp_path)
    finally:
        postgres.thaw()
    rest = server.start(within=START_WITHIN_S).rest()
    after.extend(send("restarted", 500))
    drained(server)
    assert server.metrics()[relocated] == len(emptied)
    assert server.log().count("records that were not stored yet are gone from the journal") == 2 * len(emptied)
    for tally in [*before, *after, *(tally for tally in during if partition_of(tally.device.id) in kept)]:
        check(tally)
    server.stop()


@pytest.mark.long
@pytest.mark.timeout(900 + 2 * SECONDS)
def test_writes_that_time_out_in_cassandra_are_stored_later(make_server, kafka, postgres_url, tmp_path):
    with cassandra_server(durable=True) as one, one.joined_by(tmp_path / "other") as other:
        server = make_server(env=on(kafka, postgres_url) | on_cassandra(one.address, copies=2))
        devices = WatchedDevices(server.start(within=START_WITHIN_S), DEVICES)
        with devices.load(server, window=2) as load:
            acknowledges(load)
            other.freeze()
            try:
                frozen = time.monotonic()
                # Both copies have to be written: devices are acknowledged, and nothing is stored.
                while time.monotonic() < frozen + SECONDS:
                    acknowledges(load)
                eventually(lambda: server.lag() > 0)
            finally:
                other.thaw()
            acknowledges(load)
        drained(server)
        all_is_there(server, devices, load)


@contextmanager
def disk(mib: int):
    """A small disk that the user of PostgreSQL may use, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with small_disk(Path(folder) / "disk", mib) as mounted:
            yield mounted


@contextmanager
def kept_full(home: Path):
    """Fills a disk, and takes what is freed meanwhile, until the end of the block."""
    ballast, ended = home / "ballast", threading.Event()

    def fill_up() -> None:
        while not ended.wait(0.05):
            fill(ballast)

    fill(ballast)
    filling = threading.Thread(target=fill_up, daemon=True)
    filling.start()
    try:
        yield
    finally:
        ended.set()
        filling.join()
        ballast.unlink()


def answers(address: str) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(split_address(address), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.long
@pytest.mark.root
@pytest.mark.timeout(900 + 4 * SECONDS)
def test_a_kafka_without_room_acknowledges_nothing_and_goes_on_when_there_is(make_server, postgres_url):
    with disk(256) as home, kafka_server(home=home) as kafka:
        full_disk(
            make_server(env=on(kafka, postgres_url)),
            home,
            has_effect=lambda load: not kafka.is_running or stands_still(load),
            go_on=lambda: None if kafka.is_running else kafka.start(),
        )


@pytest.mark.long
@pytest.mark.root
@pytest.mark.timeout(900 + 4 * SECONDS)
def test_a_cassandra_without_room_stores_nothing_and_gets_it_when_there_is(make_server, kafka, postgres_url):
    def start_again() -> None:
        # It stops serving clients by itself, and has to be started again then.
        if not (cassandra.is_running and answers(cassandra.address)):
            cassandra.kill()
            cassandra.start()

    with disk(512) as home, cassandra_server(durable=True, home=home) as cassandra:
        full_disk(
            make_server(env=on(kafka, postgres_url) | on_cassandra(cassandra.address)),
            home,
            go_on=start_again,
        )


@pytest.mark.root
@pytest.mark.timeout(900 + 4 * SECONDS)
def test_a_postgres_without_room_stores_nothing_and_gets_it_when_there_is(make_server, kafka):
    with disk(256) as home, postgres_server(durable=True, home=home) as url:
        env = on(kafka, url)
        postgres = Postgres(env["FIELDLINE_SQL_URL"])
        full_disk(
            make_server(env=env),
            home,
            go_on=lambda: None if postgres.is_running else postgres.start(),
        )


def stands_still(load: Load) -> bool:
    """Whether nobody is acknowledged for a while."""
    before = load.acknowledged
    time.sleep(1)
    return load.acknowledged == before


def full_disk(server: Server, home: Path, go_on, has_effect=None) -> None:
    """Fills the disk of a server's store under load, and frees it after a while."""
    devices = WatchedDevices(server.start(within=START_WITHIN_S), DEVICES)
    with devices.load(server, window=2) as load:
        acknowledges(load)
        with kept_full(home):
            if has_effect is None:
                # Devices are acknowledged meanwhile.
                stuck = server.lag()
                eventually(lambda: server.lag() > stuck + 1000, within=BACK_WITHIN_S, every=0.1)
            else:
                eventually(lambda: has_effect(load), within=BACK_WITHIN_S, every=0.1)
            time.sleep(SECONDS)
        go_on()
        acknowledges(load)
    drained(server)
    all_is_there(server, devices, load)


def all_is_there(server: Server, devices: WatchedDevices, load: Load) -> None:
    """Insists that nobody was refused, and that all is stored once."""
    devices.check(server)
    assert not any(tally.refusals for tally in load.tallies)
    print(f"{devices.acknowledged} points acknowledged and {devices.alarms} alarms raised, all of them there once")
    server.stop()
