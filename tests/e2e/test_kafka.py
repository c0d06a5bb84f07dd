"""The program with its journal on Kafka, and everything that is stored in PostgreSQL."""

import os
import time

import pytest
import requests

from harness.engines import on_kafka, on_postgres
from harness.kafka import Kafka, kafka_cluster, kafka_server
from harness.load import Load, Tally
from harness.postgres import create_database, postgres_server
from harness.server import StartFailed, eventually, run_cli

DEVICES = 6
# `make scale` sets it.
KILLS = int(os.environ.get("SCALE_KILLS", 3))
BASE_TS = 1_600_000_000_000
TENANT_LOGIN = ("tenant@thingsboard.org", "tenant")
# A broker takes its time to come back, and clients to notice.
BACK_WITHIN_S = 60


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="module")
def kafka():
    with kafka_server() as kafka:
        yield kafka


@pytest.fixture
def settings(postgres, kafka) -> dict[str, str]:
    return on_postgres(create_database(postgres)) | on_kafka(kafka.address, partitions=6)


def check(rest, tally: Tally) -> None:
    """Insists on every acknowledged point, once; what only Kafka has yet is applied after the start."""
    eventually(lambda: tally.check(rest.points(tally.device.id, tally.key)) or True)


@pytest.mark.timeout(180 + 20 * KILLS)
def test_kills_lose_nothing_that_was_acknowledged(make_server, settings, seed):
    server = make_server(env=settings)
    rest = server.start(within=60).rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    every = []
    for number in range(KILLS):
        tallies = [Tally(device, f"round{number}") for device in devices]
        with Load(server, tallies, window=20, base_ts=BASE_TS + number * 10_000_000, http=1) as load:
            eventually(lambda load=load: load.acknowledged > 50)
            time.sleep(seed.uniform(0.2, 0.8))
            server.kill()
        rest = server.start().rest()
        for tally in tallies:
            check(rest, tally)
        every += tallies
    for tally in every:
        check(rest, tally)
    assert sum(len(tally.acknowledged) for tally in every) > KILLS * 50
    assert not (server.data_dir / "journal").exists()
    server.stop()

    # Nothing depends on the data directory.
    moved = make_server("moved", demo=False, env=settings)
    moved.start()
    rest = moved.rest(*TENANT_LOGIN)
    for tally in every:
        tally.check(rest.points(tally.device.id, tally.key))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fate", ["killed", "frozen"])
def test_a_broker_that_is_away_costs_nobody_anything(make_server, kafka: Kafka, settings, fate):
    limits = {"FIELDLINE_JOURNAL_MAX_PENDING": "1MiB", "FIELDLINE_JOURNAL_MAX_APPEND": "256KiB"}
    limits |= {"FIELDLINE_MQTT_MAX_PACKET": "64KiB", "FIELDLINE_COAP_MAX_PAYLOAD": "64KiB"}
    server = make_server(env=settings | limits)
    rest = server.start(within=60).rest()
    tallies = [Tally(rest.create_device(), "n") for _ in range(DEVICES)]
    with Load(server, tallies, window=50, base_ts=BASE_TS) as load:
        eventually(lambda: load.acknowledged > 500 and rest.points(tallies[0].device.id, "n"))
        kafka.kill() if fate == "killed" else kafka.freeze()
        eventually(lambda: not server.is_ready())
        ready = requests.get(f"{server.http}/readyz", timeout=5)
        assert (ready.status_code, ready.text.strip()) == (503, "the journal's servers do not answer")
        assert "Kafka does not answer: devices" in server.log()
        metrics = server.metrics()
        assert metrics["fieldline_journal_kafka_reachable"] == 0
        assert 0 < metrics["fieldline_journal_pending_bytes"] <= 1 << 20
        before = load.acknowledged
        # People are served meanwhile.
        assert rest.points(tallies[0].device.id, "n")
        time.sleep(1)
        assert load.acknowledged == before, "nothing is acknowledged that Kafka does not have"
        kafka.start() if fate == "killed" else kafka.thaw()
        eventually(lambda: load.acknowledged > before + 500, within=BACK_WITHIN_S)
    for tally in tallies:
        check(rest, tally)
    assert not any(tally.refusals for tally in tallies)
    eventually(lambda: "Kafka answers again" in server.log())
    eventually(server.is_ready)
    server.stop()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_one_of_three_brokers_may_die(make_server, postgres, kafka: Kafka, tmp_path):
    with kafka_cluster(kafka.classpath, tmp_path) as brokers:
        server = make_server(
            env=on_postgres(create_database(postgres))
            | on_kafka(",".join(broker.address for broker in brokers), partitions=6, prefix="fl")
        )
        rest = server.start(within=60).rest()
        told = brokers[0].topics("--describe", "--topic", "fl.q.Main")
        assert "ReplicationFactor: 3" in told and "min.insync.replicas=2" in told, told
        tallies = [Tally(rest.create_device(), "n") for _ in range(DEVICES)]
        with Load(server, tallies, window=20, base_ts=BASE_TS) as load:
            eventually(lambda: load.acknowledged > 500)
            brokers[1].kill()
            # Those whose partition has lost its leader wait for another one.
            before = [len(tally.acknowledged) for tally in tallies]
            eventually(
                lambda: all(
                    len(tally.acknowledged) > number + 50 for tally, number in zip(tallies, before, strict=True)
                ),
                within=BACK_WITHIN_S,
            )
            server.kill()
        rest = server.start(within=60).rest()
        for tally in tallies:
            check(rest, tally)
        server.stop()


@pytest.mark.timeout(180)
def test_a_stop_does_not_wait_for_kafka(make_server, kafka: Kafka, settings):
    server = make_server(env=settings)
    rest = server.start(within=60).rest()
    tally = Tally(rest.create_device(), "n")
    kafka.freeze()
    try:
        with Load(server, [tally], window=20, base_ts=BASE_TS):
            eventually(lambda: not server.is_ready())
            server.stop()
    finally:
        kafka.thaw()
    rest = server.start().rest()
    check(rest, tally)
    server.stop()


@pytest.mark.timeout(180)
def test_a_topic_that_is_gone_is_told_of_and_made_again(make_server, kafka: Kafka, settings):
    server = make_server(env=settings)
    rest = server.start(within=60).rest()
    device = rest.create_device()
    before = Tally(device, "before")
    with Load(server, [before], window=5) as load:
        eventually(lambda: load.acknowledged > 100)
    check(rest, before)
    kafka.topics("--delete", "--topic", f"{settings['FIELDLINE_JOURNAL_KAFKA_PREFIX']}.q.Main")

    # Messages may fail until it is there again.
    def works() -> bool:
        after = Tally(device, f"after{time.monotonic_ns()}")
        with Load(server, [after], window=1) as load:
            eventually(lambda: load.acknowledged > 20, within=10)
        check(rest, after)
        return True

    eventually(works, within=BACK_WITHIN_S)
    log = server.log()
    assert "has lost the end of a partition" in log or "is gone from Kafka" in log
    check(rest, before)
    server.stop()


@pytest.mark.timeout(180)
def test_a_log_that_moves_to_kafka_or_begins_anew_there_costs_nothing_new(make_server, kafka: Kafka, settings):
    """Positions of what was stored before mean nothing in the new log."""
    embedded = {name: value for name, value in settings.items() if "JOURNAL" not in name}
    server = make_server(env=embedded)
    rest = server.start().rest()
    device = rest.create_device()
    every = [send(server, device, "embedded")]
    server.stop()
    server.env |= settings
    rest = server.start(within=60).rest()
    assert "not used: the settings have it in Kafka" in server.log()
    every.append(send(server, device, "kafka"))
    check(rest, every[-1])
    server.stop()

    kafka.topics("--delete", "--topic", f"{settings['FIELDLINE_JOURNAL_KAFKA_PREFIX']}.q.Main")
    rest = server.start(within=60).rest()
    assert "it was created again" in server.log()
    every.append(send(server, device, "again"))
    for tally in every:
        check(rest, tally)
    server.stop()


def send(server, device, key: str) -> Tally:
    """Sends some points, and waits until all are acknowledged."""
    tally = Tally(device, key)
    with Load(server, [tally], window=5) as load:
        eventually(lambda: load.acknowledged > 100)
    return tally


def test_what_kafka_needs_is_said_and_passwords_are_kept_secret(make_server, postgres):
    refused = run_cli(
        "config", env={"FIELDLINE_JOURNAL_KIND": "kafka", "FIELDLINE_JOURNAL_KAFKA_SERVERS": "localhost:9092"}
    )
    assert refused.returncode != 0 and "`series.kind`" in refused.stderr
    stored = {"FIELDLINE_SQL_URL": create_database(postgres), "FIELDLINE_SERIES_KIND": "sql"}
    refused = run_cli("config", env=stored | {"FIELDLINE_JOURNAL_KIND": "kafka"})
    assert refused.returncode != 0 and "kafka.servers" in refused.stderr
    shown = run_cli("config", env=stored | {"FIELDLINE_JOURNAL_KAFKA_PASSWORD": "hidden-password"})
    assert shown.returncode == 0 and "hidden-password" not in shown.stdout + shown.stderr
    # ThingsBoard's names.
    shown = run_cli("config", env=stored | {"TB_QUEUE_TYPE": "kafka", "TB_KAFKA_SERVERS": "kafka:9092"})
    assert shown.returncode == 0 and '"kafka:9092"' in shown.stdout, shown.stderr


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_start_without_kafka_says_so(make_server, postgres):
    stored = {"FIELDLINE_SQL_URL": create_database(postgres), "FIELDLINE_SERIES_KIND": "sql"}
    absent = {"FIELDLINE_JOURNAL_KIND": "kafka", "FIELDLINE_JOURNAL_KAFKA_SERVERS": "127.0.0.1:1"}
    with pytest.raises(StartFailed, match="Kafka at 127.0.0.1:1 does not answer"):
        make_server(env=stored | absent).start(within=100)
