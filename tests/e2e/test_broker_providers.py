"""The other ways in which clients of the broker show who they are: tokens, published keys, servers that are asked, and SCRAM."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qsl

import jwt
import pytest
import scramp
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import RSAAlgorithm

from harness import wire
from harness.broker import (
    AUTH_DATA,
    AUTH_METHOD,
    BrokerClient,
    auth_packet,
    auth_properties,
    broker_settings,
    read_properties,
)
from harness.certificates import Authority
from harness.rest import Rest, unique
from harness.server import SYSADMIN, Server
from harness.web_server import WebServer
from harness.wire import V5, Wire

PROVIDER = "/api/mqtt/auth/provider"
ORDER = "/api/admin/settings"
SECRET = "0123456789abcdef" * 4
ALL = {"pubAuthRulePatterns": [".*"], "subAuthRulePatterns": [".*"]}
OWN = {"pubAuthRulePatterns": ["own/.*"], "subAuthRulePatterns": ["own/.*"]}
REFUSED, UNAVAILABLE = 0x87, 0x88


@pytest.fixture(scope="module")
def broker(tmp_path_factory, authority: Authority):
    identity = authority.issue("localhost", server=True)
    env = broker_settings(
        access="credentials",
        tls_listen="127.0.0.1:0",
        certificate=identity.certificate,
        private_key=identity.key,
        client_authorities=authority.path,
    )
    with Server(tmp_path_factory.mktemp("providers"), env=env).lent() as server:
        yield server


@pytest.fixture(scope="module")
def admin(broker: Server) -> Rest:
    return broker.rest(*SYSADMIN)


@pytest.fixture(autouse=True)
def as_at_first(admin: Rest):
    """Each test begins with the providers of a new installation."""
    yield
    for kind in "X_509", "JWT", "SCRAM", "HTTP":
        switch(admin, kind, False)
    switch(admin, "MQTT_BASIC", True)
    set_order(admin, ["MQTT_BASIC", "X_509", "JWT", "HTTP"])


def switch(admin: Rest, kind: str, enabled: bool) -> None:
    provider = admin.get(f"{PROVIDER}/type/{kind}").json()
    admin.post(f"{PROVIDER}/{provider['id']}/{'enable' if enabled else 'disable'}")


def configure(admin: Rest, kind: str, **configuration) -> dict:
    """Enables a provider with these settings."""
    body = {"type": kind, "enabled": True, "configuration": {"type": kind} | configuration}
    return admin.post(PROVIDER, body).json()


def set_order(admin: Rest, order: list[str]) -> None:
    admin.post(ORDER, {"key": "mqttAuthorization", "jsonValue": {"priorities": order}})


def connects(broker: Server, client_id: str | None = None, version: str = "5.0", **login) -> int:
    client = BrokerClient(broker.broker_address, version, client_id or unique("client"), **login)
    try:
        return client.connect()
    finally:
        client.leave()


def reason(admin: Rest, client_id: str) -> str:
    return admin.get("/api/unauthorized/client", clientId=client_id).json()["reason"]


# -- tokens --


def hmac(**more) -> dict:
    signature = {"algorithm": "HMAC_BASED", "secret": SECRET}
    verifier = {"jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": signature}
    return {"jwtVerifierConfiguration": verifier, "authRules": ALL} | more


def token(key=SECRET, algorithm: str = "HS256", headers: dict | None = None, **claims) -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


@pytest.mark.parametrize("version", ["3.1.1", "5.0"])
def test_a_token_lets_its_client_in(broker, admin, version):
    configure(admin, "JWT", **hmac())
    for algorithm in "HS256", "HS384", "HS512":
        assert connects(broker, version=version, username="u", password=token(algorithm=algorithm)) == 0
    client_id = unique("client")
    wrong = [
        token("x" * 64),
        token() + "x",
        "a.b.c",
        token(exp=int(time.time()) - 1),
        token(nbf=int(time.time()) + 600),
        token(headers={"crit": ["exp2"], "exp2": 1}),
    ]
    wrong.append(jwt.encode({}, None, algorithm="none"))
    for password in wrong:
        assert connects(broker, client_id, version, username="u", password=password) == REFUSED, password
    assert "JWT" in reason(admin, client_id)
    assert connects(broker, client_id, version, username="u", password=token(exp=int(time.time()) + 60)) == 0


def pem(key) -> tuple[str, str]:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


KEYS = {
    "RS256": lambda: rsa.generate_private_key(65_537, 2_048),
    "PS512": lambda: rsa.generate_private_key(65_537, 2_048),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


@pytest.mark.parametrize("algorithm", KEYS)
def test_a_public_key_takes_tokens_of_its_own_kind_alone(broker, admin, algorithm):
    private, public = pem(KEYS[algorithm]())
    signature = {"algorithm": "PEM_KEY", "publicPemKey": public, "publicPemKeyFileName": "key.pem"}
    verifier = {"jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": signature}
    configure(admin, "JWT", jwtVerifierConfiguration=verifier)
    assert connects(broker, username="u", password=token(private, algorithm)) == 0
    other, _ = pem(KEYS[algorithm]())
    assert connects(broker, username="u", password=token(other, algorithm)) == REFUSED
    # A public key is no secret, so that nobody can sign with it.
    signer = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    head, body, _ = token("x" * 64).split(".")
    forged = signer.sign(f"{head}.{body}".encode(), public.encode())
    forged = f"{head}.{body}.{jwt.utils.base64url_encode(forged).decode()}"
    assert connects(broker, username="u", password=forged) == REFUSED


def test_keys_that_tokens_are_not_checked_with_are_refused_with_the_reason(broker, admin):
    private, _ = pem(KEYS["ES256"]())
    _, unknown = pem(ec.generate_private_key(ec.SECP521R1()))
    _, short = pem(rsa.generate_private_key(65_537, 1_024))
    refusals = [(private, "private"), (unknown, "P-256 or P-384"), (short, "2048 to 4096 bits"), ("no key", "parse")]
    for key, why in refusals:
        signature = {"algorithm": "PEM_KEY", "publicPemKey": key, "publicPemKeyFileName": "key.pem"}
        verifier = {"jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": signature}
        body = {"type": "JWT", "configuration": {"type": "JWT", "jwtVerifierConfiguration": verifier}}
        assert why in admin.post(PROVIDER, body, expect=400).json()["message"]


def test_the_key_of_a_certificate_takes_tokens(broker, admin, authority):
    identity = authority.issue("issuer")
    certificate, key = (open(path).read() for path in (identity.certificate, identity.key))
    signature = {"algorithm": "PEM_KEY", "publicPemKey": certificate, "publicPemKeyFileName": "issuer.pem"}
    verifier = {"jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": signature}
    configure(admin, "JWT", jwtVerifierConfiguration=verifier)
    algorithm = "ES256" if "EC" in key or "BEGIN PRIVATE KEY" in key and len(key) < 400 else "RS256"
    assert connects(broker, username="u", password=token(key, algorithm)) == 0


def test_claims_have_to_be_what_the_settings_say(broker, admin):
    configure(admin, "JWT", **hmac(authClaims={"iss": "us", "sub": "${username}", "cid": "${clientId}", "level": "3"}))
    client_id = unique("client")
    right = {"iss": "us", "sub": "ann", "cid": client_id, "level": 3}
    assert connects(broker, client_id, username="ann", password=token(**right)) == 0
    for wrong in {"iss": "them"}, {"sub": "bob"}, {"cid": "other"}, {"level": [3]}, {"level": None}:
        claims = {name: value for name, value in (right | wrong).items() if value is not None}
        assert connects(broker, client_id, username="ann", password=token(**claims)) == REFUSED, wrong
    # No user name is not the same as a claim that is not there.
    claims = {name: value for name, value in right.items() if name != "sub"}
    with Wire(broker.broker_address, V5) as client:
        assert client.connect(client_id, None, token(**claims)) == REFUSED


def test_a_token_says_which_topics_are_its_clients_and_of_what_type_it_is(broker, admin):
    settings = hmac(
        authRules=OWN,
        pubAuthRuleClaim="pub",
        subAuthRuleClaim="sub_topics",
        clientTypeClaims={"kind": "big", "tier": "1"},
    )
    configure(admin, "JWT", **settings)

    def joined(**claims) -> BrokerClient:
        client = BrokerClient(broker.broker_address, client_id=unique("client"), username="u", password=token(**claims))
        assert client.connect() == 0
        return client

    def may(client: BrokerClient, topic: str) -> tuple[bool, bool]:
        return client.publish(topic, "x") in (0, 0x10), client.subscribe(topic) == [1]

    client = joined()
    assert may(client, "own/a") == (True, True) and may(client, "other/a") == (False, False)
    client.leave()
    # Each list for itself; one that is not there is that of the settings.
    client = joined(pub=["other/.*"])
    assert may(client, "own/a") == (False, True) and may(client, "other/a") == (True, False)
    client.leave()
    client = joined(sub_topics=[])
    assert may(client, "own/a") == (True, False)
    client.leave()
    # One that cannot be used is no reason to permit more.
    for claims in {"pub": ["("]}, {"sub_topics": "other/.*"}, {"pub": [7]}, {"pub": ["a"] * 101}:
        assert connects(broker, username="u", password=token(**claims)) == REFUSED
    for claims, kind in ({"kind": "big", "tier": 1}, "APPLICATION"), ({"kind": "big"}, "DEVICE"), ({}, "DEVICE"):
        client = joined(**claims)
        session = admin.get("/api/client-session", clientId=client.client_id).json()
        assert session["clientType"] == kind
        client.leave()


def published(*keys: tuple[str, object], **more) -> dict:
    """The keys as a server publishes them."""
    return {"keys": [json.loads(RSAAlgorithm.to_jwk(key.public_key())) | {"kid": kid} | more for kid, key in keys]}


def test_published_keys_take_tokens_and_are_not_fetched_for_each(broker, admin):
    one, two = (rsa.generate_private_key(65_537, 2_048) for _ in range(2))
    with WebServer(lambda request: (200, published(("one", one), alg="RS256"))) as server:
        verifier = {
            "jwtVerifierType": "JWKS",
            "endpoint": f"{server.url}/keys",
            "refreshInterval": 1,
            "headers": {"X-Asked-By": "broker", "X-Api-Key": "key"},
            "credentials": {"type": "basic", "username": "u", "password": "p"},
        }
        saved = configure(admin, "JWT", jwtVerifierConfiguration=verifier)
        # A header with a secret stays, and is not shown.
        verifier = saved["configuration"]["jwtVerifierConfiguration"]
        assert verifier["headers"] == {"X-Asked-By": "broker", "X-Api-Key": ""}
        saved = configure(admin, "JWT", jwtVerifierConfiguration=verifier)
        assert saved["configuration"]["jwtVerifierConfiguration"]["refreshInterval"] == 300
        assert "password" not in saved["configuration"]["jwtVerifierConfiguration"]["credentials"]
        login = {"username": "u"}
        for _ in range(3):
            assert connects(broker, **login, password=token(one, "RS256", {"kid": "one"})) == 0
        # Without a name, each of them is tried.
        assert connects(broker, **login, password=token(one, "RS256")) == 0
        assert len(server.requests) == 1
        asked = server.requests[0]
        assert (asked.method, asked.path, asked.headers["x-asked-by"]) == ("GET", "/keys", "broker")
        assert (asked.headers["authorization"], asked.headers["x-api-key"]) == ("Basic dTpw", "key")
        # It is for one algorithm alone.
        assert connects(broker, **login, password=token(one, "RS512", {"kid": "one"})) == REFUSED
        for forged in token(two, "RS256", {"kid": "one"}), token(two, "RS256", {"kid": "two"}), token(SECRET):
            assert connects(broker, **login, password=forged) == REFUSED
        # Whoever shows made-up tokens does not make the server work.
        assert len(server.requests) == 1
    # Nor does a log-in need it.
    assert connects(broker, **login, password=token(one, "RS256", {"kid": "one"})) == 0


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}),
        (200, "no JSON"),
        (200, {"keys": [{"kty": "oct", "k": "eA"}]}),
        (200, {"keys": 7}),
        (200, "x" * 3_000_000),
    ],
    ids=["error", "no JSON", "a secret", "no keys", "too large"],
)
def test_keys_that_cannot_be_used_let_nobody_in(broker, admin, answer):
    with WebServer(lambda request: answer) as server:
        verifier = {"jwtVerifierType": "JWKS", "endpoint": server.url}
        configure(admin, "JWT", jwtVerifierConfiguration=verifier)
        client_id = unique("client")
        # Without keys nobody can tell; a set without usable ones knows nobody.
        has_keys = answer[0] == 200 and isinstance(answer[1], dict) and isinstance(answer[1]["keys"], list)
        code = connects(broker, client_id, username="u", password=token("x" * 64))
        assert code == (REFUSED if has_keys else UNAVAILABLE)
        assert server.requests
        # The next one is asked, who may know the client.
        set_order(admin, ["JWT", "MQTT_BASIC"])
        save(admin, {"clientId": client_id, "authRules": ALL})
        assert connects(broker, client_id, username="u", password=token("x" * 64)) == 0


# -- servers that are asked --


def save(admin: Rest, value: dict, kind: str = "MQTT_BASIC", **fields) -> dict:
    body = {"name": unique("credentials"), "credentialsType": kind, "credentialsValue": json.dumps(value)}
    return admin.post("/api/mqtt/client/credentials", body | fields).json()


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


# -- SCRAM --

MECHANISMS = {"SCRAM-SHA-256": "SHA_256", "SCRAM-SHA-512": "SHA_512"}


def scram_user(admin: Rest, mechanism: str = "SCRAM-SHA-256", rules: dict = ALL, **fields) -> tuple[str, str]:
    user, password = unique("user"), unique("password")
    value = {"userName": user, "password": password, "algorithm": MECHANISMS[mechanism], "authRules": rules}
    saved = save(admin, value, "SCRAM", **fields)
    assert saved["credentialsId"] == f"scram|{user}"
    shown = json.loads(saved["credentialsValue"])
    assert password not in json.dumps(saved)
    assert [shown[secret] for secret in ("salt", "serverKey", "storedKey")] == [None] * 3
    return user, password


def proving(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> scramp.ScramClient:
    return scramp.ScramClient([mechanism], user, password)


def begin(client: Wire, scram: scramp.ScramClient, mechanism: str = "SCRAM-SHA-256", client_id: str = "") -> None:
    """Sends CONNECT with the first message."""
    properties = auth_properties(mechanism, scram.get_client_first())
    client.send(wire.connect(V5, client_id or unique("client"), props=properties))


def said(packet: wire.Packet) -> dict[int, object]:
    """The properties of an AUTH, or of a CONNACK."""
    return read_properties(packet.body, 1 if packet.kind == wire.AUTH else 2)[0]


def answer(client: Wire, scram: scramp.ScramClient, mechanism: str = "SCRAM-SHA-256") -> None:
    """Answers the broker's first message."""
    packet = client.expect(wire.AUTH)
    assert packet.body[0] == 0x18 and said(packet)[AUTH_METHOD] == mechanism.encode()
    scram.set_server_first(said(packet)[AUTH_DATA].decode())
    client.send(auth_packet(0x18, mechanism, scram.get_client_final()))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_proves_that_it_knows_its_password(broker, admin, mechanism):
    switch(admin, "SCRAM", True)
    user, password = scram_user(admin, mechanism, OWN, clientType="APPLICATION")
    client_id = unique("client")
    with Wire(broker.broker_address, V5) as client:
        scram = proving(user, password, mechanism)
        begin(client, scram, mechanism, client_id)
        answer(client, scram, mechanism)
        packet = client.expect(wire.CONNACK)
        assert packet.body[1] == 0
        fields = said(packet)
        assert fields[AUTH_METHOD] == mechanism.encode()
        # The broker has proven that it knows the password, too.
        scram.set_server_final(fields[AUTH_DATA].decode())
        assert client.publish("own/a", "x") in (0, 0x10)
        assert client.publish("other/a", "x") == REFUSED
        assert admin.get("/api/client-session", clientId=client_id).json()["clientType"] == "APPLICATION"


def refused(broker: Server, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> str:
    """Fails to log in, and returns with which identifier."""
    client_id = unique("client")
    with Wire(broker.broker_address, V5) as client:
        scram = proving(user, password, mechanism)
        begin(client, scram, mechanism, client_id)
        packet = client.receive()
        if packet.kind == wire.AUTH:
            scram.set_server_first(said(packet)[AUTH_DATA].decode())
            client.send(auth_packet(0x18, mechanism, scram.get_client_final()))
            packet = client.receive()
        assert packet.kind == wire.CONNACK and packet.body[1] == REFUSED
        assert client.receive() is None
    return client_id


def test_who_proves_nothing_is_refused(broker, admin):
    user, password = scram_user(admin)
    assert "disabled" in reason(admin, refused(broker, user, password))
    switch(admin, "SCRAM", True)
    assert "proof" in reason(admin, refused(broker, user, "wrong"))
    assert "no credentials" in reason(admin, refused(broker, "nobody", password))
    assert "no credentials" in reason(admin, refused(broker, user, password, "SCRAM-SHA-512"))
    admin.post("/api/blockedClient", {"type": "USERNAME", "username": user, "expirationTime": 0})
    with Wire(broker.broker_address, V5) as client:
        begin(client, proving(user, password))
        assert client.connack() == 0x8A


def test_methods_and_messages_that_are_none_are_refused(broker, admin):
    switch(admin, "SCRAM", True)
    user, password = scram_user(admin)

    def code(properties: bytes) -> int:
        with Wire(broker.broker_address, V5) as client:
            client.send(wire.connect(V5, unique("client"), props=properties))
            return client.connack()

    assert code(auth_properties("PLAIN", "x")) == 0x8C
    assert code(auth_properties("SCRAM-SHA-256", None)) == 0x80
    assert code(auth_properties("SCRAM-SHA-256", "p=tls,,n=a,r=12345678")) == REFUSED
    for wrong, expected in [
        (auth_packet(0x18, "SCRAM-SHA-512", "x"), 0x8C),
        (auth_packet(0x18, "SCRAM-SHA-256", "x"), REFUSED),
        (auth_packet(0x19, "SCRAM-SHA-256", "x"), 0x82),
        (wire.PING, 0x82),
        (wire.publish(V5, "a", "x", 1), 0x82),
        (auth_packet(0x18, "SCRAM-SHA-256", "x" * 30_000), 0x95),
    ]:
        with Wire(broker.broker_address, V5) as client:
            begin(client, proving(user, password))
            client.expect(wire.AUTH)
            client.send(wrong)
            assert client.connack() == expected, wrong[:40]
    # A client that goes away, or says nothing, leaves nothing behind.
    with Wire(broker.broker_address, V5) as client:
        begin(client, proving(user, password))
        client.expect(wire.AUTH)
    assert connects(broker, username="nobody", password="x") == REFUSED


def test_a_connected_client_proves_again_who_it_is(broker, admin):
    switch(admin, "SCRAM", True)
    user, password = scram_user(admin, rules=OWN)
    other, other_password = scram_user(admin, rules=ALL)
    with Wire(broker.broker_address, V5) as client:
        scram = proving(user, password)
        begin(client, scram)
        answer(client, scram)
        assert client.connack() == 0
        assert client.publish("other/a", "x") == REFUSED
        again = proving(other, other_password)
        client.send(auth_packet(0x19, "SCRAM-SHA-256", again.get_client_first()))
        answer(client, again)
        packet = client.expect(wire.AUTH)
        assert packet.body[0] == 0
        again.set_server_final(said(packet)[AUTH_DATA].decode())
        # Its topics are those of the other credentials now.
        assert client.publish("other/a", "x") in (0, 0x10)
        # Whoever may not have its subscriptions cannot become this client.
        assert client.subscribe(("other/a", 1)) == [1]
        # Messages go on in the middle of an exchange.
        third = proving(other, "wrong")
        client.send(auth_packet(0x19, "SCRAM-SHA-256", third.get_client_first()) + wire.PING)
        packets = [client.receive(), client.receive()]
        assert sorted(packet.kind for packet in packets) == [wire.PINGRESP, wire.AUTH]
        challenge = next(packet for packet in packets if packet.kind == wire.AUTH)
        third.set_server_first(said(challenge)[AUTH_DATA].decode())
        client.send(auth_packet(0x18, "SCRAM-SHA-256", third.get_client_final()))
        client.ended(REFUSED)


def test_a_client_that_becomes_another_user_has_to_be_permitted_its_subscriptions(broker, admin):
    switch(admin, "SCRAM", True)
    (user, password), (other, other_password) = scram_user(admin, rules=ALL), scram_user(admin, rules=OWN)
    with Wire(broker.broker_address, V5) as client:
        scram = proving(user, password)
        begin(client, scram)
        answer(client, scram)
        assert client.connack() == 0
        assert client.subscribe(("other/a", 1)) == [1]
        again = proving(other, other_password)
        client.send(auth_packet(0x19, "SCRAM-SHA-256", again.get_client_first()))
        answer(client, again)
        client.ended(REFUSED)


def test_nothing_makes_up_for_a_certificate_that_is_required(broker, admin, authority, tmp_path):
    switch(admin, "SCRAM", True)
    configure(admin, "X_509", clientAuthType="CLIENT_AUTH_REQUIRED")
    user, password = scram_user(admin)
    client_id = unique("client")
    save(admin, {"clientId": client_id, "authRules": ALL})
    # Anybody can make a certificate.
    stranger = authority.client(Authority(tmp_path / "stranger").issue("stranger"))
    for tls in authority.client(), stranger:
        with Wire(broker.broker_tls_address, V5, tls=tls) as client:
            begin(client, proving(user, password))
            assert client.connack() == REFUSED
        client = BrokerClient(broker.broker_tls_address, client_id=client_id, tls=tls)
        assert client.connect() == REFUSED
        client.leave()
    client = BrokerClient(
        broker.broker_tls_address, client_id=client_id, tls=authority.client(authority.issue("pump-8"))
    )
    assert client.connect() == 0
    client.leave()


def test_scram_alone_lets_nobody_else_in(broker, admin):
    switch(admin, "SCRAM", True)
    switch(admin, "MQTT_BASIC", False)
    assert connects(broker) == REFUSED


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (("SCRAM-SHA-512", 0x19), 0x8C),
        (("SCRAM-SHA-256", 0x18), 0x82),
        (("SCRAM-SHA-256", 0x19), REFUSED),
    ],
    ids=["another method", "an answer to nothing", "no first message"],
)
def test_an_exchange_of_a_connected_client_that_goes_wrong_ends_its_connection(broker, admin, sent, code):
    switch(admin, "SCRAM", True)
    user, password = scram_user(admin)
    with Wire(broker.broker_address, V5) as client:
        scram = proving(user, password)
        begin(client, scram)
        answer(client, scram)
        assert client.connack() == 0
        method, kind = sent
        client.send(auth_packet(kind, method, "x"))
        client.ended(code)


def test_a_new_password_of_scram_counts_and_an_old_one_stays_where_none_is_given(broker, admin):
    switch(admin, "SCRAM", True)
    user, password = scram_user(admin)
    stored = admin.get("/api/mqtt/client/credentials", pageSize=100, page=0).json()["data"]
    mine = next(
        one
        for one in stored
        if admin.get(f"/api/mqtt/client/credentials/{one['id']}").json()["credentialsId"].endswith(user)
    )
    credentials = admin.get(f"/api/mqtt/client/credentials/{mine['id']}").json()
    admin.post("/api/mqtt/client/credentials", credentials | {"name": unique("renamed")})

    def lets_in(secret: str) -> bool:
        with Wire(broker.broker_address, V5) as client:
            scram = proving(user, secret)
            begin(client, scram)
            answer(client, scram)
            return client.connack() == 0

    assert lets_in(password)
    value = json.loads(credentials["credentialsValue"]) | {"password": "another"}
    admin.post("/api/mqtt/client/credentials", credentials | {"credentialsValue": json.dumps(value)})
    assert lets_in("another") and not lets_in(password)
