"""Very many known devices, of which few are connected: starting, memory and the cost of a message hardly change.

`make devices DEVICES=1000000 CONNECTED=15000` measures at full size.
"""

import os
import resource
import time
from dataclasses import dataclass

import pytest

from harness.fleet import add_devices
from harness.flood import Flood, check_stored
from harness.server import eventually

# Devices are written into SQLite directly.
pytestmark = pytest.mark.files

KNOWN = int(os.environ.get("DEVICES", 20_000))
CONNECTED = int(os.environ.get("CONNECTED", 500))
# What it is compared with: little more than those that are connected.
FEW = max(1000, CONNECTED)
RATE = 4000
WINDOW_S = 2.5
WINDOWS = 4


@dataclass
class Cost:
    """What a server with so many known devices takes."""

    start_s: float
    idle_mib: float
    connected_mib: float
    logins_per_s: float
    us_per_message: float
    list_s: float

    def __str__(self) -> str:
        return (
            f"started in {self.start_s:.2f} s, {self.idle_mib:.0f} MiB; connected at {self.logins_per_s:.0f}/s, "
            f"{self.connected_mib:.0f} MiB; {self.us_per_message:.1f} µs CPU a message; a page of devices in {self.list_s:.3f} s"
        )


@pytest.mark.timeout(180 + KNOWN / 2000 + CONNECTED / 50)
def test_devices_that_are_known_and_not_connected_cost_hardly_anything(make_server):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CONNECTED + 1000:
        pytest.skip(f"needs {CONNECTED + 1000} open files for a process, {hard} are allowed here")
    few = measure(make_server("few"), FEW)
    print(f"{FEW} known, {CONNECTED} connected: {few}")
    many = measure(make_server("many"), KNOWN)
    print(f"{KNOWN} known, {CONNECTED} connected: {many}")
    assert many.start_s < 5
    assert many.idle_mib < few.idle_mib + 32
    assert many.connected_mib < few.connected_mib + 48
    assert many.us_per_message < 1.5 * few.us_per_message + 10


def measure(server, known: int) -> Cost:
    template = server.start().rest().create_device()
    server.stop()
    # All of them were active when the server stopped: it takes them up again.
    devices = add_devices(server.data_dir, template, known, active=True)
    # Those that connect are spread over all of them.
    connected = devices[:: known // CONNECTED][:CONNECTED]

    began = time.monotonic()
    rest = server.start().rest()
    start_s = time.monotonic() - began
    idle_mib = server.memory_kib() / 1024
    began = time.monotonic()
    with Flood(server, connected, rate=RATE, window=10, keep_alive=600) as flood:
        logins_per_s = CONNECTED / (flood.started - began)
        eventually(lambda: flood.now().acknowledged > CONNECTED, within=60)
        costs = [cost_of_a_message(server, flood) for _ in range(WINDOWS)]
        connected_mib = server.memory_kib() / 1024
        outcomes = flood.finish()
    for outcome in outcomes[:: len(outcomes) // 10]:
        assert outcome.closed_after is None and outcome.acknowledged == outcome.sent > 0
        eventually(lambda: check_stored(rest, outcome, "n") or True)
    began = time.monotonic()
    page = rest.get("/api/tenant/devices", pageSize=20, page=0).json()
    list_s = time.monotonic() - began
    assert page["totalElements"] > known
    # They were active when the server is killed, and are taken up again by the next start.
    server.kill()
    began = time.monotonic()
    server.start()
    start_s = max(start_s, time.monotonic() - began)
    server.stop()
    # The best of several: others use the machine, too.
    return Cost(start_s, idle_mib, connected_mib, logins_per_s, min(costs), list_s)


def cost_of_a_message(server, flood: Flood) -> float:
    """Microseconds of processor time for each message that is acknowledged."""
    before, cpu, until = flood.now().acknowledged, server.cpu_seconds(), time.monotonic() + WINDOW_S
    while time.monotonic() < until:
        time.sleep(0.05)
    spent, messages = server.cpu_seconds() - cpu, flood.now().acknowledged - before
    assert messages > 0
    return spent / messages * 1e6
