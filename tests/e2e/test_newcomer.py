"""What somebody does in the first five minutes, with the tools that people have: mosquitto_pub and curl."""

import json
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from harness.rest import now_ms, telemetry
from harness.server import BINARY, CUSTOMER, SYSADMIN, TENANT, environment, eventually

DEMO_LOGINS = {
    SYSADMIN: "SYS_ADMIN",
    TENANT: "TENANT_ADMIN",
    CUSTOMER: "CUSTOMER_USER",
    ("customerA@thingsboard.org", "customer"): "CUSTOMER_USER",
    ("customerB@thingsboard.org", "customer"): "CUSTOMER_USER",
    ("customerC@thingsboard.org", "customer"): "CUSTOMER_USER",
}

DEMO_DEVICES = {
    "Test Device A1": "A1_TEST_TOKEN",
    "Test Device A2": "A2_TEST_TOKEN",
    "Test Device A3": "A3_TEST_TOKEN",
    "Test Device B1": "B1_TEST_TOKEN",
    "Test Device C1": "C1_TEST_TOKEN",
    "DHT11 Demo Device": "DHT11_DEMO_TOKEN",
    "Raspberry Pi Demo Device": "RASPBERRY_PI_DEMO_TOKEN",
    "Thermostat T1": "T1_TEST_TOKEN",
    "Thermostat T2": "T2_TEST_TOKEN",
}


def shell(*command: str) -> str:
    """Runs a command that must succeed, and returns what it printed."""
    done = subprocess.run(command, text=True, capture_output=True, timeout=30)
    assert done.returncode == 0, f"{command} failed with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def mosquitto_pub(server, token: str, message: str, *more: str) -> None:
    host, port = server.mqtt_address
    shell(
        "mosquitto_pub",
        "-d",
        "-h",
        host,
        "-p",
        str(port),
        "-t",
        "v1/devices/me/telemetry",
        "-q",
        "1",
        "-u",
        token,
        "-m",
        message,
        *more,
    )


def curl_login(server) -> str:
    body = json.dumps({"username": TENANT[0], "password": TENANT[1]})
    answer = shell(
        "curl", "-sS", "--fail", f"{server.http}/api/auth/login", "-H", "Content-Type: application/json", "-d", body
    )
    return json.loads(answer)["token"]


@pytest.mark.parametrize("login", DEMO_LOGINS, ids=lambda login: login[0])
def test_the_demo_accounts_log_in(shared, login):
    user = shared.rest(*login).get("/api/auth/user").json()
    assert (user["email"], user["authority"]) == (login[0], DEMO_LOGINS[login])


def test_the_demo_devices_have_their_well_known_tokens(tenant):
    tokens = {
        name: tenant.credentials(tenant.device_by_name(name)["id"]["id"])["credentialsId"] for name in DEMO_DEVICES
    }
    assert tokens == DEMO_DEVICES


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
@pytest.mark.parametrize("message", ['{"temperature": 25}', "{temperature:25}", "{'temperature':25}"])
def test_mosquitto_pub_publishes_and_curl_reads_it_back(shared, tenant, version, message):
    device = tenant.create_device()
    mosquitto_pub(shared, device.token, message, "-V", version)

    address = f"{shared.http}{telemetry(device.id, 'values/timeseries')}?keys=temperature"
    header = f"X-Authorization: Bearer {curl_login(shared)}"
    read = eventually(lambda: has_value(json.loads(shell("curl", "-sS", "--fail", address, "-H", header))))
    assert read["temperature"][0]["value"] == "25"
    assert abs(read["temperature"][0]["ts"] - now_ms()) < 30_000


def has_value(latest: dict) -> dict | None:
    return latest if latest["temperature"][0]["value"] is not None else None


def test_curl_posts_telemetry_over_http(shared, tenant, device):
    status = shell(
        "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"{shared.http}/api/v1/{device.token}/telemetry",
        "-H", "Content-Type: application/json", "-d", "{temperature:25.5, state: on}",
    )  # fmt: skip
    assert status == "200"
    assert eventually(lambda: tenant.points(device.id, "temperature"))[0]["value"] == 25.5
    assert tenant.latest(device.id)["state"] == "on"


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
def test_mosquitto_sub_is_granted_the_filters_of_devices_and_refused_others(shared, device, version):
    host, port = shared.mqtt_address
    base = ["mosquitto_sub", "-h", host, "-p", str(port), "-u", device.token, "-V", version, "-q", "1", "-E", "-d"]
    printed = shell(*base, "-t", "v1/devices/me/attributes", "-t", "v1/devices/me/attributes/response/+")
    assert re.search(r"Subscribed \(mid: \d+\): 1, 1", printed), printed
    refused = subprocess.run([*base, "-t", "#"], text=True, capture_output=True, timeout=30)
    assert "denied" in refused.stdout + refused.stderr


def test_the_commands_that_the_server_prints_work_as_they_are(make_server, tmp_path):
    server = make_server().start()
    printed = server.log()
    for login, password in (SYSADMIN, TENANT):
        assert re.search(rf"{re.escape(login)}\b.*\b{password}\b", printed), f"the login {login} is not printed"
    for address in server.listening.values():
        assert address in printed, f"{address} is not printed"

    commands = re.findall(r"^.*?\b((?:mosquitto_pub|curl) .*)$", printed, re.M)
    assert {command.split()[0] for command in commands} >= {"mosquitto_pub", "curl"}, f"printed were {commands}"
    before = len(demo_points(server))
    for command in commands:
        done = subprocess.run(["bash", "-c", command], text=True, capture_output=True, timeout=30)
        assert done.returncode == 0, f"`{command}` failed: {done.stdout}{done.stderr}"
    eventually(lambda: len(demo_points(server)) > before)


def demo_points(server) -> list:
    """All latest values of the demo devices that have been written by somebody."""
    rest = server.rest()
    found = []
    for name in DEMO_DEVICES:
        device = rest.device_by_name(name)["id"]["id"]
        keys = rest.get(telemetry(device, "keys/timeseries")).json()
        found += [(name, key, point["ts"]) for key in keys for point in rest.points(device, key)]
    return found


@pytest.mark.root
def test_the_demo_listens_on_loopback_only_unless_told_otherwise(tmp_path):
    """In a network namespace of its own, where the default ports are free."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode:
        pytest.skip("needs a network namespace, which is not permitted here")
    assert listening_in_namespace(tmp_path / "demo", "--demo") == {"http": "127.0.0.1:8080", "mqtt": "127.0.0.1:1883"}
    assert listening_in_namespace(tmp_path / "plain") == {"http": "0.0.0.0:8080", "mqtt": "0.0.0.0:1883"}


def listening_in_namespace(data_dir, *arguments: str) -> dict:
    script = textwrap.dedent("""
        import fcntl, pathlib, signal, socket, struct, subprocess, sys, time
        # The loopback interface of a new namespace is down: SIOCSIFFLAGS with IFF_UP and IFF_RUNNING.
        fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack("16sH14x", b"lo", 0x41))
        server = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
        listening = pathlib.Path(sys.argv[4]) / "listening.json"
        deadline = time.monotonic() + 20
        while not listening.exists() and server.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        print(listening.read_text())
        server.terminate()
        sys.exit(server.wait(10))
    """)
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", script, BINARY, "serve", "--data-dir", data_dir, *arguments],
        env=environment(), text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
