"""HTTP servers that decide about the broker's clients, the order of providers, and settings that cannot work."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qsl

import pytest

from harness.broker import BrokerClient
from harness.certificates import Authority
from harness.providers import (
    ALL,
    ORDER,
    OWN,
    PROVIDER,
    REFUSED,
    UNAVAILABLE,
    configure,
    connects,
    credentials_broker,
    hmac,
    reason,
    reset_providers,
    save,
    set_order,
)
from harness.rest import Rest, unique
from harness.server import SYSADMIN, Server
from harness.web_server import WebServer


@pytest.fixture(scope="module")
def broker(tmp_path_factory, authority: Authority):
    with credentials_broker(tmp_path_factory.mktemp("servers"), authority) as server:
        yield server


@pytest.fixture(scope="module")
def admin(broker: Server) -> Rest:
    return broker.rest(*SYSADMIN)


@pytest.fixture(autouse=True)
def as_at_first(admin: Rest):
    yield
    reset_providers(admin)


def test_a_server_decides_about_clients(broker, admin):
    answers = {
        "yes": (200, {}),
        "empty": (200, ""),
        "null": (200, None),
        "own": (200, {"result": "SUCCESS", "clientType": "application", "authRules": OWN}),
        "odd": (200, {"result": "success", "clientType": "king", "authRules": {"pubAuthRulePatterns": ["("]}}),
        "no": (200, {"result": "failure"}),
        "who": (200, {"result": "skipped"}),
        "what": (200, {"result": "?"}),
        "broken": (200, "no JSON"),
        "list": (200, []),
        "text": (200, '"success"'),
        "error": (503, {}),
        "unknown": (404, {}),
        "large": (200, "x" * 600_000),
    }
    with WebServer(lambda request: answers[json.loads(request.body)["user"]]) as server:
        body = json.dumps({"user": "${username}", "client": "id=${clientId}", "secret": "${password}", "n": 1})
        configure(admin, "HTTP", restEndpointUrl=server.url, requestBody=body, authRules=ALL)
        for user in "yes", "empty", "null", "own":
            assert connects(broker, username=user, password="p") == 0, user
        for user in "no", "who", "what", "broken", "list", "text", "odd", "unknown":
            assert connects(broker, username=user, password="p") == REFUSED, user
        # What cannot be told now is no wrong password.
        for user in "error", "large":
            assert connects(broker, username=user, password="p") == UNAVAILABLE, user
        client_id = 'a"b${username}'
        client = BrokerClient(broker.broker_address, client_id=client_id, username="own", password='"}')
        assert client.connect() == 0
        # What a client says is a text, and no more.
        asked = server.requests[-1]
        assert json.loads(asked.body) == {"user": "own", "client": f"id={client_id}", "secret": '"}', "n": 1}
        assert asked.headers["content-type"] == "application/json"
        assert client.publish("own/a", "x") in (0, 0x10)
        assert client.publish("other/a", "x") == REFUSED
        assert admin.get("/api/client-session", clientId=client_id).json()["clientType"] == "APPLICATION"
        client.leave()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_server_is_asked_by_a_query_and_knows_the_certificate(broker, admin, authority, method):
    with WebServer(lambda request: (200, {})) as server:
        settings = {
            "restEndpointUrl": f"{server.url}/a?x=1",
            "requestMethod": method,
            "requestBody": json.dumps({"user": "${username}", "name": "${commonName}"}),
            "credentials": None,
        }
        saved = configure(admin, "HTTP", **settings)
        assert saved["configuration"]["credentials"] == {"type": "anonymous"}
        assert connects(broker, username="a&b=c", password="p") == 0
        asked = server.requests[-1]
        assert (asked.method, asked.body) == (method, "")
        assert asked.query == {"x": "1", "user": "a&b=c", "name": ""}
        client = BrokerClient(
            broker.broker_tls_address, client_id=unique("client"), tls=authority.client(authority.issue("pump-7"))
        )
        assert client.connect() == 0
        client.leave()
        assert server.requests[-1].query["name"] == "pump-7"


def test_what_a_client_says_stays_within_its_field_of_a_form(broker, admin):
    with WebServer(lambda request: (200, {})) as server:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = "user=${username}&password=${password}"
        configure(admin, "HTTP", restEndpointUrl=server.url, headers=headers, requestBody=body)
        assert connects(broker, username="ann&user=root", password="p +%") == 0
        assert parse_qsl(server.requests[-1].body) == [("user", "ann&user=root"), ("password", "p +%")]


def test_a_server_that_is_silent_keeps_nobody_waiting_for_longer_than_it_may(broker, admin):
    ended = threading.Event()

    def answer(request):
        ended.wait(30)
        return 200, {}

    with WebServer(answer) as server:
        settings = {"readTimeoutMs": 1_000, "maxParallelRequestsCount": 1, "authRules": ALL}
        configure(admin, "HTTP", restEndpointUrl=server.url, **settings)
        set_order(admin, ["HTTP", "MQTT_BASIC"])
        client_id = unique("client")
        save(admin, {"clientId": client_id, "authRules": OWN})
        # Its silence is no answer, so that the next one is asked, whose rules count.
        client = BrokerClient(broker.broker_address, client_id=client_id)
        assert client.connect() == 0 and len(server.requests) == 1
        assert client.publish("own/a", "x") in (0, 0x10)
        assert client.publish("other/a", "x") == REFUSED
        client.leave()
        # One request runs at a time, and those that wait for it give up as soon.
        began = time.monotonic()
        with ThreadPoolExecutor(16) as pool:
            codes = list(pool.map(lambda _: connects(broker), range(16)))
        assert codes == [UNAVAILABLE] * 16
        # One after the other, they would take twice as long.
        assert time.monotonic() - began < 8
        stranger = unique("client")
        assert connects(broker, stranger) == UNAVAILABLE
        assert "no answer in time" in reason(admin, stranger)
        ended.set()


def test_a_wrong_password_is_one_whatever_a_server_cannot_tell(broker, admin):
    with WebServer(lambda request: (503, {})) as server:
        configure(admin, "HTTP", restEndpointUrl=server.url)
        client_id, stranger = unique("client"), unique("client")
        save(admin, {"clientId": client_id, "password": "right", "authRules": ALL})
        assert connects(broker, client_id, username="u", password="wrong") == REFUSED
        assert "does not match" in reason(admin, client_id)
        assert connects(broker, client_id, username="u", password="right") == 0
        # Nothing was compared.
        assert connects(broker, stranger, username="u", password="wrong") == UNAVAILABLE
        assert "503" in reason(admin, stranger)


def test_the_order_says_who_is_asked_first_and_who_is_not(broker, admin):
    client_id = unique("client")
    save(admin, {"clientId": client_id, "authRules": ALL})
    with WebServer(lambda request: (200, {"result": "failure"})) as server:
        configure(admin, "HTTP", restEndpointUrl=server.url)
        assert admin.get(f"{ORDER}/mqttAuthorization").json()["jsonValue"] == {
            "priorities": ["MQTT_BASIC", "X_509", "JWT", "HTTP"]
        }
        assert connects(broker, client_id) == 0 and not server.requests
        set_order(admin, ["HTTP", "MQTT_BASIC"])
        # It refuses, and nobody else is asked.
        assert connects(broker, client_id) == REFUSED and len(server.requests) == 1
        set_order(admin, ["JWT"])
        assert connects(broker, client_id) == REFUSED and len(server.requests) == 1
        assert reason(admin, client_id) == "JWT authentication is disabled"
        for wrong in {"priorities": ["LDAP"]}, {"priorities": ["JWT", "JWT"]}, {}:
            body = {"key": "mqttAuthorization", "jsonValue": wrong}
            admin.post(ORDER, body, expect=400)


def test_a_server_can_be_tried_before_it_is_saved(broker, admin):
    status = {"now": 200}
    with WebServer(lambda request: (status["now"], {})) as server:
        credentials = {"type": "basic", "username": "u", "password": "p"}
        body = {"type": "HTTP", "configuration": {"restEndpointUrl": server.url, "credentials": credentials}}
        admin.post(f"{PROVIDER}/http/check", body)
        assert server.requests[-1].method == "HEAD"
        assert server.requests[-1].headers["authorization"] == "Basic dTpw"
        status["now"] = 404
        admin.post(f"{PROVIDER}/http/check", body, expect=500)
        admin.post(f"{PROVIDER}/http/check", {"type": "JWT", "configuration": {}}, expect=400)


def test_settings_that_cannot_work_are_refused(broker, admin):
    key = {"algorithm": "PEM_KEY", "publicPemKey": "no key", "publicPemKeyFileName": "a"}
    bad = [
        ("HTTP", {"restEndpointUrl": ""}),
        ("HTTP", {"restEndpointUrl": "ftp://a"}),
        ("HTTP", {"requestBody": " "}),
        ("HTTP", {"authRules": None}),
        ("HTTP", {"defaultClientType": "INTEGRATION"}),
        ("HTTP", {"requestMethod": "FETCH"}),
        ("HTTP", {"restEndpointUrl": "http://a:99999"}),
        ("HTTP", {"restEndpointUrl": "http://[::1"}),
        ("HTTP", {"requestBody": '{"user": ${username}}'}),
        ("HTTP", {"requestBody": "user=${username}", "headers": {}, "requestMethod": "GET"}),
        ("HTTP", {"credentials": {"type": "guess"}}),
        ("HTTP", {"credentials": {"type": "sas", "sasKey": "a2V5"}}),
        ("HTTP", {"headers": {"no name": "x"}}),
        ("JWT", hmac(authRules={"pubAuthRulePatterns": ["("]})),
        ("JWT", {"jwtVerifierConfiguration": {"jwtVerifierType": "JWKS", "endpoint": "nowhere"}}),
        ("JWT", {"jwtVerifierConfiguration": {"jwtVerifierType": "JWKS", "endpoint": "http://a:99999"}}),
        (
            "JWT",
            {"jwtVerifierConfiguration": {"jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": key}},
        ),
        ("JWT", {"jwtVerifierConfiguration": {"jwtVerifierType": "JWKS", "credentials": {"type": "guess"}}}),
        ("JWT", {"jwtVerifierConfiguration": {"jwtVerifierType": "GUESS"}}),
    ]
    for kind, configuration in bad:
        body = {"type": kind, "configuration": {"type": kind} | configuration}
        admin.post(PROVIDER, body, expect=400)
    shown = admin.get(f"{PROVIDER}s", pageSize=10, page=0).json()["data"]
    assert [one["type"] for one in shown] == ["MQTT_BASIC", "X_509", "JWT", "SCRAM", "HTTP"]
    sorting = {"sortProperty": "type", "sortOrder": "DESC"}
    page = admin.get(f"{PROVIDER}s", pageSize=2, page=1, **sorting).json()
    assert [one["type"] for one in page["data"]] == ["MQTT_BASIC", "JWT"]
    assert page["totalElements"] == 5 and page["hasNext"]
    admin.get(f"{PROVIDER}s", pageSize=2, page=0, sortProperty="secret", expect=400)
