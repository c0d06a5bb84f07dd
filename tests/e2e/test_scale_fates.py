"""Kafka, PostgreSQL and Cassandra under one server, each of them frozen, killed and cut off in turn, and the server killed.

`make scale SCALE_SECONDS=60 SCALE_KILLS=25` lets each fate last so long, and kills so often. `SCALE_FATES="kafka_killed postgres_frozen"`
chooses some, "all" is every one of them. A fate of each server is what there is time for in `make test`.
"""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager

import pytest

from harness.cassandra import cassandra_server
from harness.engines import on_cassandra, on_kafka, on_postgres
from harness.kafka import kafka_server
from harness.postgres import Postgres, PostgresRelay, create_database, postgres_server
from harness.relay import Relay
from harness.server import eventually
from harness.watched import SETTINGS, WatchedDevices

SECONDS = float(os.environ.get("SCALE_SECONDS", 2))
KILLS = int(os.environ.get("SCALE_KILLS", 1))
CHOSEN = os.environ.get("SCALE_FATES", "kafka_killed cassandra_frozen postgres_cut_off").split()
DEVICES = 6
BACK_WITHIN_S = 120
"""A server of these takes its time to come back, and clients to notice."""
START_WITHIN_S = 90
FATES = 9


@contextmanager
def during(begin: Callable[[], None], end: Callable[[], None]):
    begin()
    try:
        yield
    finally:
        end()


@pytest.mark.timeout(900 + FATES * (60 + 4 * SECONDS) + 90 * KILLS)
def test_nothing_is_lost_or_doubled_whatever_becomes_of_the_servers(make_server, seed):
    with ExitStack() as stack:
        # Clients reach each through a relay.
        kafka_relay = stack.enter_context(Relay())
        kafka = stack.enter_context(kafka_server(relay=kafka_relay))
        cassandra = stack.enter_context(cassandra_server(durable=True, broadcast="127.0.0.2"))
        cassandra_relay = stack.enter_context(Relay(("127.0.0.1", cassandra.port), ("127.0.0.2", cassandra.port)))
        database = create_database(stack.enter_context(postgres_server(durable=True)))
        postgres_relay = stack.enter_context(PostgresRelay(database))
        postgres = Postgres(database)
        server = make_server(
            env=on_postgres(postgres_relay.url)
            | on_cassandra(cassandra_relay.address)
            | on_kafka(kafka_relay.address, partitions=6)
            # Small, so that rows are packed into chunks meanwhile.
            | {"FIELDLINE_SERIES_PACK_BYTES": "256KiB"}
            | SETTINGS
        )
        devices = WatchedDevices(server.start(within=START_WITHIN_S), DEVICES)
        fates = {}
        for name, one, relay in [
            ("kafka", kafka, kafka_relay),
            ("cassandra", cassandra, cassandra_relay),
            ("postgres", postgres, postgres_relay),
        ]:
            fates[f"{name}_frozen"] = (one.freeze, one.thaw)
            fates[f"{name}_killed"] = (one.kill, one.start)
            fates[f"{name}_cut_off"] = (relay.cut, relay.mend)
        chosen = list(fates) if CHOSEN == ["all"] else CHOSEN
        assert len(fates) == FATES and chosen and not set(chosen).difference(fates), sorted(fates)
        memory = {}
        for fate in chosen:
            began = time.monotonic()
            # With little in flight, so that what waits meanwhile is stored soon.
            with devices.load(server, window=2) as load:
                eventually(lambda load=load: load.acknowledged > 500, within=BACK_WITHIN_S)
                with during(*fates[fate]):
                    time.sleep(SECONDS)
                before = load.acknowledged
                eventually(
                    lambda load=load, before=before: load.acknowledged > before + 500, within=BACK_WITHIN_S, every=0.1
                )
            loaded = time.monotonic() - began
            eventually(lambda: server.lag() == 0, within=BACK_WITHIN_S, every=0.1)
            drained = time.monotonic() - began
            memory[fate] = server.memory_kib()
            devices.check(server)
            assert not any(tally.refusals for tally in load.tallies)
            print(
                f"{fate}: {load.acknowledged} points acknowledged in {loaded:.0f} s, stored {drained - loaded:.1f} s later, "
                f"{memory[fate] >> 10} MiB; checked in {time.monotonic() - began - drained:.0f} s",
                flush=True,
            )
        check_memory(memory)
        for number in range(KILLS):
            with devices.load(server, window=20, http=1) as load:
                eventually(lambda load=load: load.acknowledged > 100, within=BACK_WITHIN_S)
                time.sleep(seed.uniform(0.2, 1.5))
                server.kill()
            server.start(within=START_WITHIN_S)
            devices.check(server)
            print(f"kill {number + 1}: {load.acknowledged} points acknowledged", flush=True)
        devices.check(server, slice(None))
        assert devices.alarms > 0
        print(f"{devices.acknowledged} points acknowledged and {devices.alarms} alarms raised, all of them there once")
        server.stop()


def check_memory(memory: dict[str, int]) -> None:
    """Insists that memory behind the last fate is not much more than behind the first one."""
    first, *later = memory.values()
    assert all(one < 1.5 * first + (64 << 10) for one in later), f"memory in KiB behind each: {memory}"
