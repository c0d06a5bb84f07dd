"""A disk that is slow, and one that does not answer for a while: acknowledgements wait, and nothing else happens."""

import re
import threading
import time

import pytest
import requests

from harness import wire
from harness.faults import SYNC, Faults
from harness.flood import Flood, check_stored
from harness.load import TELEMETRY
from harness.server import eventually
from harness.wire import V5, Wire

pytestmark = pytest.mark.files

DEVICES = 20
PINGERS = 10
KEEP_ALIVE_S = 2
# Longer than a device may be silent: three seconds with that keep-alive, which is checked once a second.
STALL_S = 6


def test_on_a_slow_disk_acknowledgements_come_later_and_nothing_is_lost(make_server, tmp_path):
    faults = Faults(tmp_path)
    server = make_server(env=faults.env)
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    # Each block of the journal, checkpoint and transaction.
    with faults.slow(SYNC, 0.3) as throttle, Flood(server, devices, window=10, keep_alive=KEEP_ALIVE_S) as flood:
        eventually(lambda: flood.now().acknowledged >= DEVICES * 10 * 3, within=60)
        assert throttle.count > 0
        # One block at a time, with what has gathered meanwhile: no acknowledgement was faster than the disk.
        assert min(latency for _, latency in flood.series("p50")) >= 0.3
        # People are served meanwhile, and what they write waits for the disk as well.
        assert rest.latest(devices[0].id, "n")
        started = time.monotonic()
        rest.create_device()
        assert time.monotonic() - started >= 0.3
        outcomes = flood.finish()
    assert not [outcome for outcome in outcomes if outcome.closed_after is not None]
    for outcome in outcomes:
        assert outcome.acknowledged == outcome.sent
        eventually(lambda: check_stored(rest, outcome, "n") or True)


def test_while_the_disk_does_not_answer_devices_wait_and_stay(make_server, tmp_path):
    faults = Faults(tmp_path)
    server = make_server(
        env={"FIELDLINE_JOURNAL_MAX_PENDING": "1MiB", "FIELDLINE_JOURNAL_MAX_APPEND": "256KiB"} | faults.env
    )
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    pingers = [rest.create_device() for _ in range(PINGERS)]
    unacknowledged = rest.create_device()
    newcomer = rest.create_device()
    posted: list[int] = []

    def post() -> None:
        url = f"{server.http}/api/v1/{devices[0].token}/telemetry"
        posted.append(requests.post(url, data='{"posted":1}', timeout=60).status_code)

    with Flood(server, devices, pingers=pingers, window=50, keep_alive=KEEP_ALIVE_S) as flood:
        eventually(lambda: flood.now().acknowledged > 1000)
        with Wire(server.mqtt_address, V5) as careless:
            assert careless.connect(username=unacknowledged.token, keep_alive=KEEP_ALIVE_S) == 0
            with faults.stall(SYNC) as stalled:
                eventually(lambda: stalled.waiting > 0)
                before, memory = server.memory_kib(), []
                posting = threading.Thread(target=post)
                posting.start()
                # Who asks for no acknowledgement goes on until the limit, and is not read any more then.
                sent_without = send_until_blocked(careless)
                time.sleep(1)
                standing, started = flood.now(), time.monotonic()
                while time.monotonic() < started + STALL_S:
                    time.sleep(0.25)
                    memory.append(server.memory_kib())
                # Nobody was acknowledged, nobody was thrown out, and who only pings is answered.
                assert flood.now().acknowledged == standing.acknowledged
                assert flood.now().closed == 0 and not posted
                pings = [latency for at, latency in flood.series("ping") if at > started]
                # A ping that waited for the disk would not have come back yet. They go out once a second.
                assert len(pings) >= STALL_S - 2, f"only {len(pings)} reports say that pings were answered"
                assert max(pings) < STALL_S
                assert max(memory) - before < 32 * 1024, "memory grows while the disk does not answer"
                # A device that comes now is let in, and waits with the others.
                with Wire(server.mqtt_address, V5) as late:
                    assert late.connect(username=newcomer.token) == 0
                    late.send(wire.publish(V5, TELEMETRY, '{"a":1}', 1, 1))
                    assert late.silent(1)
                    assert rest.latest(devices[0].id, "n")
                    assert requests.get(f"{server.http}/healthz", timeout=5).status_code == 200
                    metrics = server.metrics()
                    assert metrics["fieldline_journal_commit_age_seconds"] > STALL_S - 2
                    assert metrics["fieldline_journal_waiting_senders"] >= 1
                    assert 'held_back_milliseconds_total{setting="journal.max-pending"}' in str(metrics)
                    stalled.release()
                    assert late.puback(1) == 0
            assert careless_is_read_again(careless)
        posting.join(30)
        assert posted == [200]
        eventually(lambda: flood.now().acknowledged > standing.acknowledged + 1000, within=30)
        outcomes = flood.finish()
    assert not [outcome for outcome in outcomes if outcome.closed_after is not None]
    for outcome in outcomes[:DEVICES]:
        assert outcome.acknowledged == outcome.sent
        eventually(lambda: check_stored(rest, outcome, "n") or True)
    assert eventually(lambda: rest.values(newcomer.id, "a")) == [1]
    eventually(lambda: len(rest.values(unacknowledged.id, "q")) == sent_without)
    log = re.sub(r"\x1b\[[0-9;]*m", "", server.log())
    silent = [line for line in log.splitlines() if "the journal's disk does not answer" in line]
    assert 1 <= len(silent) <= 2, silent
    eventually(lambda: "the journal's disk answers again" in server.log())


def send_until_blocked(connection: Wire) -> int:
    """Publishes without quality of service until the socket takes nothing for a while; returns how many went out whole."""
    body = '{"q":1,"pad":"' + "x" * 4000 + '"}'
    packet = wire.publish(V5, TELEMETRY, body, 0)
    connection.socket.settimeout(1)
    count = 0
    rest = b""
    try:
        while True:
            rest = packet
            while rest:
                rest = rest[connection.socket.send(rest) :]
            count += 1
    except TimeoutError:
        connection.unsent = rest
    return count + 1


def careless_is_read_again(connection: Wire) -> bool:
    """Sends the rest of the packet that did not go out whole, and sees that the server reads on."""
    connection.socket.settimeout(30)
    connection.send(connection.unsent)
    connection.ping()
    return True
