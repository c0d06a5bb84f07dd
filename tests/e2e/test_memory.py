"""Memory is a budget: however much strangers store, ask for and leave unread, the server holds what its settings allow,
says who must wait, and serves the others."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from harness.live import Live
from harness.people import create_tenancy
from harness.rest import telemetry
from harness.server import SYSADMIN, eventually
from harness.wire import V311, Wire

MIB = 1 << 20
TEXT_BYTES = 1_000_000
TEXTS = 300
# Small enough that an attack reaches them at once.
SMALL = {
    "FIELDLINE_API_ANSWER_MEMORY": "64MiB",
    "FIELDLINE_API_SOCKET_MEMORY": "64MiB",
    "FIELDLINE_API_REQUEST_MEMORY": "256MiB",
    "FIELDLINE_API_QUERY_MEMORY": "64MiB",
    "FIELDLINE_HTTP_DEVICE_BODY_MEMORY": "64MiB",
    "FIELDLINE_HTTP_MAX_DEVICE_BODY": "16MiB",
    "FIELDLINE_MQTT_PARTIAL_MEMORY": "64MiB",
    "FIELDLINE_MQTT_CHUNK_MEMORY": "96MiB",
}
HISTORY = "values/timeseries"


@pytest.fixture
def server(make_server):
    return make_server(env=SMALL).start()


@pytest.fixture
def neighbour(server):
    """Another tenant's administrator and device."""
    admin = create_tenancy(server.rest(*SYSADMIN)).admin
    return admin, admin.create_device()


def store_texts(server, device, count: int = TEXTS, size: int = TEXT_BYTES) -> None:
    """Has a device post long texts, each at a time of its own."""
    with requests.Session() as session:
        for number in range(count):
            body = {"ts": 1_700_000_000_000 + number, "values": {"text": f"{number:06}" + "x" * size}}
            url = f"{server.http}/api/v1/{device.token}/telemetry"
            assert session.post(url, json=body, timeout=60).status_code == 200
    admin = server.rest()
    last = {"keys": "text", "startTs": 0, "endTs": 2_000_000_000_000, "limit": 1}
    newest = lambda: admin.get(telemetry(device.id, HISTORY), **last).json()["text"][0]["value"][:6]  # noqa: E731
    assert eventually(lambda: newest() == f"{count - 1:06}", within=60)


def ask(rest, path: str) -> socket.socket:
    """Sends a request whose answer is not read."""
    host, port = rest.base.removeprefix("http://").split(":")
    connection = socket.socket()
    # Little room on this side: what is not read stays with the server.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(60)
    connection.connect((host, int(port)))
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Authorization: Bearer {rest.token}\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def peak_while(server, work) -> int:
    """The greatest memory of the server while something is done, MiB."""
    peak, over = [server.memory_kib()], threading.Event()

    def look():
        while not over.wait(0.02):
            peak.append(server.memory_kib())

    looker = threading.Thread(target=look)
    looker.start()
    try:
        work()
    finally:
        over.set()
        looker.join()
    return max(peak) >> 10


def serves(neighbour, server) -> None:
    """Another tenant's device publishes, and its user reads what it has published."""
    admin, device = neighbour
    with Wire(server.mqtt_address, V311) as connection:
        assert connection.connect(username=device.token) == 0
        number = time.monotonic_ns()
        assert connection.publish("v1/devices/me/telemetry", f'{{"n":{number}}}', packet_id=1) == 0
    assert eventually(lambda: admin.latest(device.id, "n") == {"n": number})


def long_range(device, **params) -> str:
    query = {"keys": "text", "startTs": 0, "endTs": 2_000_000_000_000, "limit": 50_000} | params
    return telemetry(device.id, HISTORY) + "?" + "&".join(f"{key}={value}" for key, value in query.items())


def test_a_slow_reader_of_long_texts_makes_the_server_hold_a_piece(server, neighbour):
    tenant = server.rest()
    device = tenant.create_device()
    store_texts(server, device)
    before = server.memory_kib() >> 10

    def read_slowly():
        readers = [ask(tenant, long_range(device, orderBy=order)) for order in ("ASC", "DESC")]
        for reader in readers:
            assert reader.recv(1_000).startswith(b"HTTP/1.1 200")
        serves(neighbour, server)
        for reader in readers:
            reader.close()

    peak = peak_while(server, read_slowly)
    # All of it is 300 MB for each.
    assert peak - before < 200, f"{before} MiB before, {peak} MiB with slow readers"
    # Read to its end, it is whole.
    answer = tenant.get(long_range(device, orderBy="ASC"))
    values = [point["value"][:6] for point in answer.json()["text"]]
    assert values == [f"{number:06}" for number in range(TEXTS)]


def test_too_many_slow_readers_are_told_so_and_others_are_not(server, neighbour):
    tenant = server.rest()
    device = tenant.create_device()
    store_texts(server, device, 40)
    before = server.memory_kib() >> 10
    readers = []

    def read_slowly():
        readers.extend(ask(tenant, long_range(device)) for _ in range(150))
        statuses = [reader.recv(1_000).split(b" ", 2)[1] for reader in readers]
        assert b"200" in statuses and b"429" in statuses, statuses
        serves(neighbour, server)

    peak = peak_while(server, read_slowly)
    assert peak - before < 400, f"{before} MiB before, {peak} MiB with many readers"
    held = server.metrics()['fieldline_memory_pool_held_bytes{pool="api.answer-memory"}']
    assert held <= 24 * MIB, "three eighths of it are one tenant's part"
    refusal = tenant.get(long_range(device), expect=429)
    assert "api.answer-memory" in refusal.text
    for reader in readers:
        reader.close()
    assert eventually(lambda: tenant.get(long_range(device, limit=1), expect=None).status_code == 200, within=60)
    refused = 'fieldline_memory_pool_refusals_total{pool="api.answer-memory",exhausted="part"}'
    assert server.metrics()[refused] >= 1


def test_buckets_are_counted_by_their_true_interval(server):
    tenant = server.rest()
    device = tenant.create_device()
    tenant.post(telemetry(device.id, "timeseries/ANY"), {"ts": 1, "values": {"n": 1}})
    fine = {"keys": "n", "startTs": 0, "endTs": 700_998, "agg": "COUNT", "interval": 1}
    before = server.memory_kib() >> 10

    def attack():
        def one(_):
            answer = requests.get(
                server.http + telemetry(device.id, HISTORY),
                params=fine,
                headers={"X-Authorization": f"Bearer {tenant.token}"},
                timeout=60,
            )
            assert answer.status_code == 400 and "Too many intervals: 700998" in answer.text

        with ThreadPoolExecutor(40) as clients:
            list(clients.map(one, range(300)))

    peak = peak_while(server, attack)
    assert peak - before < 100, f"{before} MiB before, {peak} MiB with aggregations"
    found = tenant.get(telemetry(device.id, HISTORY), **(fine | {"endTs": 700}))
    assert [point["value"] for point in found.json()["n"]] == ["1"]
    command = {"type": "TIMESERIES", "cmdId": 1, "entityType": "DEVICE", "entityId": device.id, "keys": "n"}
    with contextlib.closing(Live.authenticated(tenant)) as live:
        live.commands(command | {"startTs": 0, "timeWindow": 700_998, "agg": "COUNT", "interval": 1})
        assert "Too many intervals" in live.until(lambda message: message.get("errorCode"))["errorMsg"]


def test_a_socket_reads_no_more_than_so_many_bytes(server):
    tenant = server.rest()
    device = tenant.create_device()
    store_texts(server, device, 60)
    before = server.memory_kib() >> 10
    command = {
        "type": "TIMESERIES_HISTORY",
        "cmdId": 1,
        "entityType": "DEVICE",
        "entityId": device.id,
        "keys": "text",
        "startTs": 0,
        "endTs": 2_000_000_000_000,
    }

    def ask_often():
        with contextlib.closing(Live.authenticated(tenant)) as live:
            for _ in range(5):
                live.commands(command | {"limit": 50_000})
                refused = live.until(lambda message: message.get("errorCode"), within=30)
                assert re.search("24MiB|api.socket-memory", refused["errorMsg"]), refused
            live.commands(command | {"limit": 3})
            update = live.until(lambda message: message.get("data"), within=30)
            assert [value[:6] for _, value in update["data"]["text"]] == ["000059", "000058", "000057"]

    assert peak_while(server, ask_often) - before < 200


def test_what_slow_sockets_make_the_server_hold_is_bounded(server, neighbour):
    """Sockets that follow long texts and do not read are closed, and the memory comes back."""
    tenant = server.rest()
    devices = [tenant.create_device() for _ in range(4)]
    sockets = []
    for _ in range(60):
        live = Live.authenticated(tenant)
        live.socket.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        live.commands(
            *(
                {"type": "TIMESERIES", "cmdId": at, "entityType": "DEVICE", "entityId": device.id, "keys": "a,b,c,d"}
                for at, device in enumerate(devices, 1)
            )
        )
        for _ in devices:
            live.receive()
        sockets.append(live)
    before = server.memory_kib() >> 10

    def publish():
        with requests.Session() as session:
            for number in range(60):
                device = devices[number % 4]
                body = {name: f"{number}" + "y" * 300_000 for name in "abcd"}
                url = f"{server.http}/api/v1/{device.token}/telemetry"
                assert session.post(url, json=body, timeout=60).status_code == 200
        serves(neighbour, server)

    peak = peak_while(server, publish)
    held = server.metrics()['fieldline_memory_pool_held_bytes{pool="api.socket-memory"}']
    assert held <= 24 * MIB, "three eighths of it are one tenant's part"
    assert peak - before < 400, f"{before} MiB before, {peak} MiB with slow sockets"
    for live in sockets:
        live.socket.sock.close()
    pool = 'fieldline_memory_pool_held_bytes{pool="api.socket-memory"}'
    assert eventually(lambda: server.metrics()[pool] == 0, within=60)
    with contextlib.closing(Live.authenticated(tenant)) as live:
        live.commands({"type": "TIMESERIES", "cmdId": 1, "entityType": "DEVICE", "entityId": devices[0].id})
        assert live.receive()["subscriptionId"] == 1


def test_bodies_of_people_share_their_memory(server, neighbour):
    tenant = server.rest()
    size = 15 * MIB
    body = b'{"a":"' + b"x" * size + b'"}'

    def announce():
        connection = socket.create_connection(server.http_address, 10)
        head = (
            f"POST /api/asset HTTP/1.1\r\nHost: x\r\nX-Authorization: Bearer {tenant.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode())
        # All but its end: it cannot be answered yet.
        with contextlib.suppress(OSError):
            connection.sendall(body[:-10])
        return connection

    before = server.memory_kib() >> 10
    opened = []

    def flood():
        for _ in range(12):
            opened.append(announce())
        statuses = set()
        for connection in opened[1:]:
            connection.settimeout(20)
            with contextlib.suppress(OSError):
                statuses.add(connection.recv(1_000).split(b" ", 2)[1])
        assert statuses == {b"429"}, statuses
        serves(neighbour, server)

    peak = peak_while(server, flood)
    assert peak - before < 200, f"{before} MiB before, {peak} MiB with large bodies"
    for connection in opened:
        connection.close()
    eventually(lambda: tenant.post("/api/asset", {"name": f"after {time.monotonic_ns()}"}))


def test_slow_lists_leave_log_ins_of_devices_and_lists_of_others_alone(make_server):
    server = make_server(env=SMALL | {"FIELDLINE_SQL_LIST_TIMEOUT": "2s"}).start()
    tenant = server.rest()
    admin = create_tenancy(server.rest(*SYSADMIN)).admin
    devices = [admin.create_device() for _ in range(20)]
    over = threading.Event()

    def list_on_and_on(_):
        statuses = set()
        while not over.is_set():
            answer = requests.get(
                f"{server.http}/api/tenant/deviceInfos",
                params={"pageSize": 10_000, "page": 0, "textSearch": "e"},
                headers={"X-Authorization": f"Bearer {tenant.token}"},
                timeout=60,
            )
            statuses.add(answer.status_code)
        return statuses

    tenant.post("/api/device/bulk_import", bulk(3_000))
    with ThreadPoolExecutor(100) as clients:
        lists = [clients.submit(list_on_and_on, at) for at in range(100)]
        try:
            slowest = 0.0
            for device in devices:
                begun = time.monotonic()
                with Wire(server.mqtt_address, V311) as connection:
                    assert connection.connect(username=device.token) == 0
                slowest = max(slowest, time.monotonic() - begun)
            found = admin.get("/api/tenant/deviceInfos", pageSize=10, page=0).json()
            assert found["totalElements"] == len(devices)
        finally:
            over.set()
        statuses = set().union(*(one.result() for one in lists))
    assert slowest < 5, f"a log-in took {slowest:.1f} s"
    assert 200 in statuses and statuses <= {200, 429, 503}, statuses


def bulk(count: int) -> dict:
    rows = "\n".join(f"device number {number},default" for number in range(count))
    columns = [{"type": "NAME"}, {"type": "TYPE"}]
    return {
        "file": "name,type\n" + rows,
        "mapping": {"columns": columns, "delimiter": ",", "header": True, "update": False},
    }


def test_an_address_space_of_twice_the_budget_is_survived(make_server):
    server = make_server(env=SMALL).start()
    server.limit_address_space()
    tenant = server.rest()
    neighbour_admin = create_tenancy(server.rest(*SYSADMIN)).admin
    neighbour = neighbour_admin, neighbour_admin.create_device()
    device = tenant.create_device()
    store_texts(server, device, 150)
    attacks = [
        lambda: attack_answers(tenant, device),
        lambda: attack_sockets(tenant, device),
        lambda: attack_bodies(tenant),
    ]
    with ThreadPoolExecutor(3) as at_once:
        under_way = [at_once.submit(attack) for attack in attacks]
        while not all(one.done() for one in under_way):
            serves(neighbour, server)
        for one in under_way:
            one.result()
    assert server.running
    serves(neighbour, server)
    assert tenant.get(long_range(device, limit=1)).json()["text"]


def attack_answers(tenant, device) -> None:
    for _ in range(2):
        readers = [ask(tenant, long_range(device)) for _ in range(200)]
        for reader in readers:
            with contextlib.suppress(OSError):
                reader.recv(100)
        for reader in readers:
            reader.close()


def attack_sockets(tenant, device) -> None:
    command = {"entityType": "DEVICE", "entityId": device.id, "keys": "text", "startTs": 0, "endTs": 2_000_000_000_000}
    sockets = [Live.authenticated(tenant) for _ in range(30)]
    for live in sockets:
        with contextlib.suppress(OSError):
            live.commands(*(command | {"type": "TIMESERIES_HISTORY", "cmdId": at, "limit": 20} for at in range(10)))
    for live in sockets:
        with contextlib.suppress(Exception):
            live.receive(5)
        live.close()


def attack_bodies(tenant) -> None:
    body = b'{"name":"x","additionalInfo":[' + b"[]," * (4 * MIB) + b"[]]}"

    def one(_):
        with contextlib.suppress(requests.RequestException):
            requests.post(
                f"{tenant.base}/api/asset",
                data=body,
                headers={"X-Authorization": f"Bearer {tenant.token}", "Content-Type": "application/json"},
                timeout=60,
            )

    with ThreadPoolExecutor(20) as clients:
        list(clients.map(one, range(40)))
