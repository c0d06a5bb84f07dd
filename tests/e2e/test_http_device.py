"""The HTTP API of devices, as in the reference's §4."""

import socket

import pytest
import requests

from harness.rest import now_ms, telemetry
from harness.server import eventually

BODY_LIMIT = 52_428_800


@pytest.fixture
def api(shared, device):
    """Base address of the test's device."""
    return f"{shared.http}/api/v1/{device.token}"


def test_telemetry_is_stored_and_answered_with_an_empty_200(api, tenant, device):
    answer = requests.post(f"{api}/telemetry", data='{"ts":1700000000000,"values":{"a":1}}', timeout=10)
    assert (answer.status_code, answer.content) == (200, b"")
    assert eventually(lambda: tenant.points(device.id, "a")) == [{"ts": 1_700_000_000_000, "value": 1}]


def test_no_content_type_is_asked_for_and_any_is_taken(api, tenant, device):
    for number, kind in enumerate([None, "application/json", "text/plain", "application/x-www-form-urlencoded"]):
        headers = {"Content-Type": kind} if kind else {}
        assert (
            requests.post(f"{api}/telemetry", data=f"{{k{number}:1}}", headers=headers, timeout=10).status_code == 200
        )
    assert eventually(lambda: len(tenant.latest(device.id)) == 4)


def test_attributes_are_stored_and_read_back(api, tenant, device):
    answer = requests.post(f"{api}/attributes", json={"a": 1, "b": "two"}, timeout=10)
    assert (answer.status_code, answer.content) == (200, b"")
    eventually(lambda: len(tenant.attributes(device.id, "CLIENT_SCOPE")) == 2)
    tenant.post(telemetry(device.id, "attributes/SHARED_SCOPE"), {"c": True})

    def get(**params) -> dict:
        return requests.get(f"{api}/attributes", params=params, timeout=10).json()

    assert get(clientKeys="a,missing", sharedKeys="c") == {"client": {"a": 1}, "shared": {"c": True}}
    assert get() == {"client": {"a": 1, "b": "two"}, "shared": {"c": True}}
    assert get(clientKeys="b") == {"client": {"b": "two"}}
    assert get(sharedKeys="missing") == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "telemetry"), ("POST", "attributes"), ("GET", "attributes")],
)
def test_an_unknown_token_is_answered_with_an_empty_401(shared, method, path):
    answer = requests.request(method, f"{shared.http}/api/v1/no-such-token/{path}", data="{}", timeout=10)
    assert (answer.status_code, answer.content) == (401, b"")


@pytest.mark.parametrize("body", ["{", "nonsense", "5", "null", "", "[1]", '{"a":1}}', b"\xff\xfe"])
def test_malformed_telemetry_is_answered_with_500_and_a_message(api, body):
    answer = requests.post(f"{api}/telemetry", data=body, timeout=10)
    assert answer.status_code == 500
    assert answer.text


@pytest.mark.parametrize("body", ["[", '[{"a":1}]', ""])
def test_malformed_attributes_are_answered_with_500_and_a_message(api, body):
    answer = requests.post(f"{api}/attributes", data=body, timeout=10)
    assert answer.status_code == 500
    assert answer.text


def test_a_connection_is_kept_through_errors(api):
    with requests.Session() as session:
        for body, status in (("{}}", 500), ('{"a":1}', 200)):
            assert session.post(f"{api}/telemetry", data=body, timeout=10).status_code == status


@pytest.mark.parametrize(
    ("path", "length", "status"), [("telemetry", BODY_LIMIT + 1, 413), ("attributes", BODY_LIMIT + 1, 413)]
)
def test_a_body_over_the_limit_is_refused_by_its_announced_length(shared, device, path, length, status):
    with socket.create_connection(shared.http_address, 10) as connection:
        connection.sendall(
            f"POST /api/v1/{device.token}/{path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        answer = connection.recv(4096)
        assert answer.startswith(f"HTTP/1.1 {status}".encode()) and answer.endswith(b"Payload size exceeds the limit")


def test_a_chunked_body_over_the_limit_is_refused(shared, device):
    block = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    before = shared.memory_kib()
    with socket.create_connection(shared.http_address, 30) as connection:
        connection.sendall(
            f"POST /api/v1/{device.token}/telemetry HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        try:
            for _ in range(BODY_LIMIT // 0x10000 + 2):
                connection.sendall(block)
        except OSError:
            pass
        try:
            assert connection.recv(64).startswith(b"HTTP/1.1 413")
        except ConnectionResetError:
            pass
    assert shared.memory_kib() - before < 300 * 1024


def test_a_large_body_under_the_limit_is_stored(api, tenant, device):
    base = now_ms() - 100_000
    body = "[" + ",".join(f'{{"ts":{base + n},"values":{{"a":{n},"text":"{"x" * 80}"}}}}' for n in range(10_000)) + "]"
    assert len(body) > 1_000_000
    assert requests.post(f"{api}/telemetry", data=body, timeout=30).status_code == 200
    assert eventually(lambda: len(values := tenant.values(device.id, "a")) == 10_000 and values, 20) == list(
        range(10_000)
    )


@pytest.mark.parametrize("path", ["", "/nothing", "/telemetry/more"])
def test_an_unknown_path_is_not_found(api, path):
    assert requests.post(f"{api}{path}", data="{}", timeout=10).status_code in (404, 405)


def test_a_chunked_body_is_taken(api, tenant, device):
    answer = requests.post(f"{api}/telemetry", data=iter([b'{"a"', b":1}"]), timeout=10)
    assert answer.status_code == 200
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]


def test_pages_of_the_origins_that_are_named_may_use_the_api(make_server):
    server = make_server(env={"FIELDLINE_HTTP_CORS_ORIGINS": "https://a.example, https://shop.example"}).start()
    api = f"{server.http}/api/v1/{server.rest().create_device().token}"
    origin = {"Origin": "https://shop.example"}
    asked = origin | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-authorization",
    }
    for url in (f"{api}/telemetry", f"{server.http}/api/auth/login"):
        answer = requests.options(url, headers=asked, timeout=10)
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == origin["Origin"]
        assert answer.headers["Access-Control-Allow-Headers"] == asked["Access-Control-Request-Headers"]
    answer = requests.post(f"{api}/telemetry", data='{"a":1}', headers=origin, timeout=10)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, origin["Origin"])
    for url, page in ((f"{server.http}/readyz", origin), (f"{api}/attributes", {"Origin": "https://b.example"})):
        assert "Access-Control-Allow-Origin" not in requests.get(url, headers=page, timeout=10).headers


def test_a_demo_is_for_pages_of_this_machine(shared):
    def may(origin: str) -> bool:
        answer = requests.get(f"{shared.http}/api/noauth/oauth2Clients", headers={"Origin": origin}, timeout=10)
        return answer.headers.get("Access-Control-Allow-Origin") == origin

    assert all(map(may, ("http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080")))
    assert not any(map(may, ("https://shop.example", "http://localhost.example", "null", "http://10.0.0.1")))
