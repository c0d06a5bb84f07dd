"""Ten times what can be sustained: senders are slowed down, memory stays bounded, nothing is lost, and the log and the
metrics say what is held back and why.

What is slow here is made slow, so that ten times of it is a modest load on any machine. `OVERLOAD_MINUTES=10 make overload`
runs it for as long as the promise says.
"""

import os
import re
import statistics
import time
from dataclasses import dataclass

import pytest
import requests

from harness import wire
from harness.faults import READ_AT, SYNC, Faults
from harness.flood import Flood, check_stored
from harness.server import eventually
from harness.wire import V311, Wire

SECONDS = float(os.environ.get("OVERLOAD_MINUTES", 0)) * 60 or 8.0
OVERLOAD = 10
DEVICES = 40
PINGERS = 10
# Devices that ping every second are thrown out when they are not heard for three.
KEEP_ALIVE_S = 2

KIB, MIB = 1 << 10, 1 << 20
# Small enough that each limit is reached within seconds.
LIMITS = {
    "FIELDLINE_MQTT_MAX_PACKET": "16KiB",
    "FIELDLINE_JOURNAL_MAX_APPEND": "32KiB",
    "FIELDLINE_JOURNAL_MAX_PENDING": "64KiB",
    "FIELDLINE_JOURNAL_SEGMENT_BYTES": "64KiB",
    "FIELDLINE_JOURNAL_MAX_BYTES": "1MiB",
    "FIELDLINE_INGEST_BATCH": "4KiB",
    "FIELDLINE_SERIES_MEMTABLE": "1MiB",
    "FIELDLINE_SERIES_PACK_BYTES": "4MiB",
    "FIELDLINE_SERIES_CELLS_CACHE": "2MiB",
    "FIELDLINE_SERIES_BLOCK_CACHE": "4MiB",
}
# Less than the messages wait for being stored.
ACTIVITY = {
    "FIELDLINE_ACTIVITY_INACTIVITY_TIMEOUT": "2s",
    "FIELDLINE_ACTIVITY_CHECK_INTERVAL": "200ms",
    "FIELDLINE_ACTIVITY_REPORT_INTERVAL": "200ms",
}
# What these settings let the server take besides what it had when it was idle: five tables up to four times each, the
# caches, packing, and what the allocator keeps of all that.
MEMORY_BOUND_KIB = 96 * KIB


@dataclass
class Slow:
    """What is made slow, and what the server must say of it."""

    calls: int
    thread: str
    delay: float
    setting: str
    limit: str
    why: str


CASES = {
    "storing is slow": Slow(READ_AT, "ingest-", 0.1, "journal.max-bytes", "1MiB", "storing is slower"),
    "the journal's disk is slow": Slow(SYNC, "journal", 0.5, "journal.max-pending", "64KiB", "disk is slower"),
}


# What is slow is the disk of the program's own files.
@pytest.mark.files
@pytest.mark.timeout(240 + 3 * SECONDS)
@pytest.mark.parametrize("slow", CASES.values(), ids=CASES)
def test_ten_times_the_sustainable_rate_slows_senders_down_and_loses_nothing(make_server, tmp_path, slow):
    faults = Faults(tmp_path)
    server = make_server(env=LIMITS | ACTIVITY | faults.env)
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    pingers = [rest.create_device() for _ in range(PINGERS)]
    idle = server.memory_kib()
    held_ms = f'fieldline_journal_held_back_milliseconds_total{{setting="{slow.setting}"}}'

    with faults.slow(slow.calls, slow.delay, slow.thread) as throttle:
        sustainable = measure(server, devices, slow)
        offered_rate = OVERLOAD * sustainable
        with Flood(server, devices, pingers=pingers, rate=offered_rate, keep_alive=KEEP_ALIVE_S, key="n") as flood:
            eventually(lambda: server.metrics()["fieldline_journal_waiting_senders"] > 0, within=60)
            everybody = devices + pingers
            eventually(lambda: all(rest.activity(device.id)[0] for device in everybody), within=60)
            active = {device: rest.activity(device.id) for device in everybody}
            started, memory = time.monotonic(), []
            first, first_held = flood.now(), server.metrics()[held_ms]
            while time.monotonic() < started + SECONDS:
                time.sleep(0.25)
                memory.append(server.memory_kib())
            last, metrics = flood.now(), server.metrics()
            took, third = time.monotonic() - started, len(memory) // 3

            stored = (last.acknowledged - first.acknowledged) / took
            offered = (last.offered - first.offered) / took
            held_share = (metrics[held_ms] - first_held) / 1000 / took
            lag = server.lag()
            print(
                f"{took:.0f} s: {sustainable:.0f}/s are sustained, {offered:.0f}/s were offered, {stored:.0f}/s taken; "
                f"held back {held_share:.0%} of the time; lag {lag:.0f} records, {metrics['fieldline_journal_log_bytes'] / MIB:.1f} MiB; "
                f"memory {idle} KiB idle, {statistics.median(memory[:third]):.0f} in the first third, "
                f"{statistics.median(memory[-third:]):.0f} in the last, {max(memory)} at most"
            )
            assert offered >= 0.8 * offered_rate, "the load is not what it should be"
            assert stored < offered / 3, "nothing was held back"
            # The counter moves about once a second.
            assert held_share > 0.2, f"held back only {held_share:.0%} of the time"
            assert metrics["fieldline_journal_pending_bytes"] <= 64 * KIB
            assert max(memory) - idle < MEMORY_BOUND_KIB
            assert statistics.median(memory[-third:]) < 1.25 * statistics.median(memory[:third])
            # Who only pings is served as ever, and nobody is thrown out for what the server makes them wait.
            assert last.closed == 0
            assert max(latency for _, latency in flood.series("ping")) < 5
            # Reading goes on.
            rest.latest(devices[0].id)
            if slow.calls == READ_AT:
                assert metrics["fieldline_ingest_behind_seconds"] > 5
                # Who sends is not taken for silent because it takes long until that is stored.
                assert not [device.name for device in everybody if rest.activity(device.id) != active[device]]
            throttle.release()
            outcomes = flood.finish(within=120)

    assert not [outcome for outcome in outcomes if outcome.closed_after is not None]
    eventually(lambda: server.lag() == 0, within=60)
    eventually(lambda: server.metrics()["fieldline_journal_waiting_senders"] == 0)
    eventually(lambda: requests.get(f"{server.http}/readyz", timeout=5).status_code == 200)
    taken = sorted(outcome.acknowledged for outcome in outcomes[:DEVICES])
    print(f"of each device {taken[0]} to {taken[-1]} messages were taken, {statistics.median(taken):.0f} of most")
    if SECONDS > 60:
        assert taken[0] > statistics.median(taken) / 2, "some devices are held back more than others"
    for outcome in outcomes[:DEVICES]:
        assert outcome.acknowledged == outcome.sent
        check_stored(rest, outcome, "n")
    says_what_is_held_back(server, slow, took)
    if slow.calls == READ_AT:
        assert "storing is slower than what devices send" in server.log()
        eventually(lambda: "storing has caught up" in server.log())


def measure(server, devices, slow: Slow) -> float:
    """Messages a second that go through when the limits are reached."""
    stored = lambda: server.metrics().get("fieldline_ingest_records_total", 0)
    with Flood(server, devices, window=200, key="calibration"):
        eventually(lambda: server.metrics()["fieldline_journal_waiting_senders"] > 0, within=60)
        first, started = stored(), time.monotonic()
        time.sleep(3)
        rate = (stored() - first) / (time.monotonic() - started)
    assert rate > 0
    return rate


def says_what_is_held_back(server, slow: Slow, took: float) -> None:
    """Insists on a line that names the cause and the setting, on one that says it is over, and on few of them."""
    log = re.sub(r"\x1b\[[0-9;]*m", "", server.log())
    held = [line for line in log.splitlines() if "senders are held back" in line]
    assert any(slow.setting in line and slow.limit in line and slow.why in line for line in held), held or log[-3000:]
    assert len(held) <= 6 + 2 * took / 60, f"{len(held)} lines say that senders are held back"
    over = lambda: "senders are no longer held back" in server.log()
    eventually(over)


def test_many_small_messages_at_once_are_taken_whatever_an_append_may_hold(make_server):
    # The smallest append that the largest packet allows; what one read of small packets becomes is more.
    server = make_server(env={"FIELDLINE_JOURNAL_MAX_APPEND": "128KiB", "FIELDLINE_JOURNAL_MAX_PENDING": "256KiB"})
    rest = server.start().rest()
    device = rest.create_device()
    count = 10_000
    with Wire(server.mqtt_address, V311) as connection:
        assert connection.connect(username=device.token) == 0
        packets = (wire.publish(V311, "v2/t", f'{{"n":{number}}}', 1, number + 1) for number in range(count))
        connection.send(b"".join(packets))
        for number in range(count):
            connection.puback(number + 1)
    eventually(lambda: rest.values(device.id, "n") == list(range(count)))
