"""Starting, stopping and looking after the process."""

import json
import re
import shutil
import signal
import socket
import time

import pytest
import requests

from harness.chains import SAVE, Chain, script
from harness.rest import telemetry
from harness.server import CUSTOMER, SYSADMIN, TENANT, StartFailed, eventually, run_cli
from harness.wire import V5, V311, Wire, publish

GENERATED = re.compile(r"sysadmin@thingsboard\.org\s*/\s*(\S+)")
# Three times what a release build takes.
MOST_MIB_AT_START = 200


def test_a_start_with_an_empty_directory_answers_and_is_small(make_server):
    server = make_server()
    started = time.monotonic()
    server.start()
    took, resident = time.monotonic() - started, server.memory_kib() / 1024
    # How long it takes is measured on a quiet machine: docs/performance.md.
    print(f"ready after {took:.2f} s, {resident:.0f} MiB resident")
    assert server.running and requests.get(f"{server.http}/healthz", timeout=30).status_code == 200
    assert server.rest().get("/api/auth/user").json()["authority"] == "TENANT_ADMIN"
    assert resident < MOST_MIB_AT_START


def test_probes_and_metrics_answer_anybody(shared):
    assert requests.get(f"{shared.http}/healthz", timeout=5).status_code == 200
    assert requests.get(f"{shared.http}/readyz", timeout=5).status_code == 200
    metrics = requests.get(f"{shared.http}/metrics", timeout=5)
    assert metrics.headers["Content-Type"].startswith("text/plain")
    assert re.search(r"^# TYPE \S+ (counter|gauge|histogram|summary)$", metrics.text, re.M)


def test_metrics_count_what_devices_send(shared, device):
    before = shared.metrics()
    with Wire(shared.mqtt_address, V311) as connection:
        assert connection.connect(username=device.token) == 0
        for packet_id in range(1, 11):
            assert connection.publish("v1/devices/me/telemetry", '{"a":1}', packet_id=packet_id) == 0
    after = shared.metrics()
    grown = {name for name, value in after.items() if value >= before.get(name, 0) + 10}
    assert any("mqtt" in name for name in grown), f"only {grown} grew by the ten messages"


def test_sigterm_ends_the_process_cleanly_with_everybody_connected(make_server):
    server = make_server()
    rest = server.start().rest()
    connections = [Wire(server.mqtt_address, version) for version in (V311, V5)]
    for connection in connections:
        assert connection.connect(username=rest.create_device().token) == 0
    # A request that never ends must not hold the stop up either.
    dripping = socket.create_connection(server.http_address)
    dripping.sendall(b"POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    polling = socket.create_connection(server.http_address)
    polling.sendall(f"GET /api/v1/{rest.create_device().token}/attributes/updates HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    took = server.stop()
    print(f"stopped in {took:.2f} s")
    connections[0].ended()
    packet = connections[1].receive()
    assert packet is None or packet.body[:1] == b"\x8b", "version 5 is told that the server shuts down"
    for connection in (*connections, dripping, polling):
        connection.close()


def test_sigint_ends_the_process_too(make_server):
    server = make_server().start()
    process, server.process = server.process, None
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0


def test_what_was_written_is_there_after_a_stop(make_server):
    server = make_server()
    rest = server.start().rest()
    device = rest.create_device()
    pair = rest.post("/api/auth/login", {"username": "tenant@thingsboard.org", "password": "tenant"}).json()
    rest.post(telemetry(device.id, "timeseries/ANY"), {"ts": 1000, "values": {"a": 1}})
    rest.post(telemetry(device.id, "attributes/SERVER_SCOPE"), {"b": "two"})
    requests.post(f"{server.http}/api/v1/{device.token}/attributes", data='{"c":true}', timeout=10)
    for _ in range(3):
        server.stop()
        rest = server.start().rest()
        assert rest.points(device.id, "a") == [{"ts": 1000, "value": 1}]
        assert rest.attributes(device.id, "SERVER_SCOPE")["b"] == "two"
        assert eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE")) == {"c": True}
        assert rest.credentials(device.id)["credentialsId"] == device.token
    # Who was logged in still is.
    rest.use(pair)
    assert rest.get("/api/auth/user").json()["email"] == "tenant@thingsboard.org"


@pytest.mark.files
def test_a_stop_lets_what_was_acknowledged_go_through_its_rule_chain(make_server):
    server = make_server()
    rest = server.start().rest()
    device = rest.create_device()
    slow = script("filter.TbJsFilterNode", "JS", "var end = Date.now() + 10; while (Date.now() < end) {} return true;")
    Chain().line((slow, "True"), (SAVE, "Success")).save(rest, root=True)
    with Wire(server.mqtt_address, V311) as connection:
        assert connection.connect(username=device.token) == 0
        for number in range(60):
            connection.send(publish(V311, "v1/devices/me/telemetry", json.dumps({"a": number}), 1, number + 1))
        for number in range(60):
            assert connection.puback(number + 1) == 0
        server.stop()
    # As where the settings name another log from here on.
    shutil.rmtree(server.data_dir / "journal")
    rest = server.start().rest()
    assert sorted(rest.values(device.id, "a")) == list(range(60))


def test_what_people_write_survives_a_kill(make_server):
    server = make_server()
    rest = server.start().rest()
    for number in range(5):
        device = rest.create_device()
        rest.post(telemetry(device.id, "timeseries/ANY"), {"ts": 1000, "values": {"a": number}})
        rest.post(telemetry(device.id, "attributes/SHARED_SCOPE"), {"b": number})
        gone = rest.create_device()
        rest.delete(f"/api/device/{gone.id}")
        server.kill()
        rest = server.start().rest()
        assert rest.values(device.id, "a") == [number]
        assert rest.attributes(device.id, "SHARED_SCOPE") == {"b": number}
        rest.get(f"/api/device/{gone.id}", expect=404)


def test_a_deletion_is_not_undone_by_the_replay_after_a_kill(make_server):
    server = make_server(env={"FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "1h"})
    rest = server.start().rest()
    device = rest.create_device()
    for body in ('{"ts":1000,"values":{"a":1,"b":1}}', '{"ts":2000,"values":{"a":2,"b":2}}'):
        assert requests.post(f"{server.http}/api/v1/{device.token}/telemetry", data=body, timeout=10).status_code == 200
    eventually(lambda: len(rest.points(device.id, "b")) == 2)
    rest.delete(telemetry(device.id, "timeseries/delete"), keys="a", deleteAllDataForKeys="true")
    rest.post(telemetry(device.id, "timeseries/ANY"), {"ts": 2000, "values": {"b": 99}})
    server.kill()
    rest = server.start().rest()
    assert rest.points(device.id, "a") == []
    assert rest.latest(device.id) == {"b": 99}
    assert rest.values(device.id, "b") == [1, 99]


def test_the_first_start_prints_a_generated_password_once(make_server):
    server = make_server(demo=False).start()
    printed = GENERATED.findall(server.log())
    assert len(printed) == 1, f"not printed once: {server.log()}"
    password = printed[0]
    assert len(password) >= 12
    assert server.rest(SYSADMIN[0], password).get("/api/auth/user").json()["authority"] == "SYS_ADMIN"
    answer = requests.post(
        f"{server.http}/api/auth/login", json=dict(zip(("username", "password"), SYSADMIN, strict=True)), timeout=10
    )
    assert answer.status_code == 401, "the demo password works without the demo"
    server.stop()
    server.start()
    assert server.log().count(password) == 1, "the password is printed again"
    assert server.rest(SYSADMIN[0], password)


def test_the_first_start_takes_the_password_it_is_given(make_server):
    server = make_server(demo=False, env={"FIELDLINE_ADMIN_PASSWORD": "correct horse battery"}).start()
    assert server.rest(SYSADMIN[0], "correct horse battery")
    assert "correct horse battery" not in server.log()
    assert requests.get(f"{server.http}/api/tenants?pageSize=1&page=0", timeout=5).status_code == 401
    # Without the demo there is nobody else.
    assert (
        server.rest(SYSADMIN[0], "correct horse battery")
        .get("/api/tenants", pageSize=10, page=0)
        .json()["totalElements"]
        == 0
    )


@pytest.mark.parametrize("demo", [False, True])
def test_a_kill_during_the_first_start_leaves_a_directory_that_starts(make_server, seed, demo):
    env = {} if demo else {"FIELDLINE_ADMIN_PASSWORD": "correct horse battery"}
    for attempt in range(4):
        server = make_server(f"server{attempt}", demo=demo, env=env)
        for _ in range(4):
            server.spawn()
            time.sleep(seed.uniform(0, 0.3))
            server.kill()
        server.start()
        if demo:
            for login in (SYSADMIN, TENANT, CUSTOMER):
                assert server.rest(*login)
            assert server.rest().device_by_name("Thermostat T2")
        else:
            assert server.rest(SYSADMIN[0], "correct horse battery")
        server.stop()


def test_two_servers_do_not_share_a_data_directory(make_server):
    first = make_server("first").start()
    second = make_server("second", data_dir=first.data_dir)
    addresses = (first.data_dir / "listening.json").read_text()
    with pytest.raises(StartFailed) as failed:
        second.start()
    assert str(first.data_dir) in str(failed.value) or "in use" in str(failed.value) or "lock" in str(failed.value)
    (first.data_dir / "listening.json").write_text(addresses)
    assert first.rest()


def test_an_address_in_use_is_named(make_server, shared):
    taken = shared.listening["mqtt"]
    server = make_server(env={"FIELDLINE_MQTT_LISTEN": taken})
    with pytest.raises(StartFailed) as failed:
        server.start()
    assert taken in str(failed.value)


def test_the_version_and_the_help_are_printed():
    assert re.search(r"\d+\.\d+\.\d+", run_cli("--version").stdout)
    help_text = run_cli("--help").stdout
    assert "serve" in help_text and "config" in help_text


def test_repeated_wrong_passwords_lock_the_account_for_a_while(make_server):
    server = make_server(env={"FIELDLINE_API_MAX_FAILED_LOGINS": "3", "FIELDLINE_API_LOCKOUT": "2s"}).start()

    def login(password: str) -> int:
        body = {"username": "tenant@thingsboard.org", "password": password}
        return requests.post(f"{server.http}/api/auth/login", json=body, timeout=10).status_code

    assert [login("wrong") for _ in range(3)] == [401] * 3
    assert login("tenant") == 401
    assert eventually(lambda: login("tenant") == 200, every=0.5)


def test_one_device_cannot_flood_the_log(make_server):
    server = make_server().start()
    before = len(server.log())
    for _ in range(1500):
        with Wire(server.mqtt_address, V311) as connection:
            connection.send(b"\x00\x00")
            connection.receive()
    assert len(server.log()) - before < 100_000
