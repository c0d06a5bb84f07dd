"""Nineteen thousand idle devices on one server."""

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from harness.wire import V311, Wire

CONNECTIONS = 19_000
NEEDED_FILES = 20_000
CLIENTS = Path(__file__).parent / "harness" / "idle_clients.py"


def create_devices(server, count: int) -> list[str]:
    """Makes devices and returns their tokens."""
    tokens = [f"idle-{number}" for number in range(count)]
    columns = [{"type": "NAME"}, {"type": "TYPE"}, {"type": "ACCESS_TOKEN"}]
    file = "\n".join(f"{token},default,{token}" for token in tokens)
    mapping = {"columns": columns, "delimiter": ",", "update": False}
    answer = server.rest().call("POST", "/api/device/bulk_import", json={"file": file, "mapping": mapping}, timeout=200)
    assert answer.json()["created"] == count, answer.text[:1000]
    return tokens


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
