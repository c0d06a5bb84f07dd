"""Nineteen thousand idle devices on one server."""

import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from harness.rest import Rest
from harness.wire import V311, Wire

CONNECTIONS = 19_000
NEEDED_FILES = 20_000
CLIENTS = Path(__file__).parent / "harness" / "idle_clients.py"
CREATORS = 4


def create_devices(server, count: int) -> list[str]:
    """Makes devices over several connections and returns their tokens."""

    def create(part: int) -> list[str]:
        rest = Rest(server.http)
        rest.session.headers["X-Authorization"] = authorization
        tokens = [f"idle-{number}" for number in range(part, count, CREATORS)]
        for token in tokens:
            rest.post("/api/device", {"name": token}, accessToken=token)
        return tokens

    authorization = server.rest().session.headers["X-Authorization"]
    with ThreadPoolExecutor(CREATORS) as pool:
        return [token for tokens in pool.map(create, range(CREATORS)) for token in tokens]


@pytest.mark.timeout(300)
def test_nineteen_thousand_idle_devices_stay_connected(make_server):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < NEEDED_FILES:
        pytest.skip(f"needs {NEEDED_FILES} open files for a process, {hard} are allowed here")
    server = make_server()
    server.start()
    started = time.monotonic()
    tokens = create_devices(server, CONNECTIONS)
    created = time.monotonic()
    print(f"{CONNECTIONS} devices made in {created - started:.0f} s")
    before = server.memory_kib()

    host, port = server.mqtt_address
    with subprocess.Popen(
        [sys.executable, CLIENTS, host, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as clients:
        try:
            clients.stdin.write("\n".join(tokens) + "\n\n")
            clients.stdin.flush()
            assert clients.stdout.readline().split() == ["connected", str(CONNECTIONS)]
            connected = time.monotonic()
            grown = server.memory_kib() - before
            print(
                f"connected in {connected - created:.0f} s ({CONNECTIONS / (connected - created):.0f}/s); "
                f"{grown} KiB more resident, {grown / CONNECTIONS:.2f} KiB a connection"
            )
            # Others are served as if nobody else was there.
            device = server.rest().create_device()
            with Wire(server.mqtt_address, V311) as connection:
                assert connection.connect(username=device.token) == 0
                assert connection.publish("v1/devices/me/telemetry", '{"a":1}') == 0
            assert requests.get(f"{server.http}/readyz", timeout=5).status_code == 200
            clients.stdin.write("ping\n")
            clients.stdin.flush()
            assert clients.stdout.readline().split() == ["alive", str(CONNECTIONS)]
            print(f"stopped with all of them connected in {server.stop():.1f} s")
        finally:
            clients.kill()
