"""Clients of the broker that show tokens, checked with secrets, keys, certificates and published keys."""

from __future__ import annotations

import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import RSAAlgorithm

from harness.broker import BrokerClient
from harness.certificates import Authority
from harness.providers import (
    ALL,
    OWN,
    PROVIDER,
    REFUSED,
    SECRET,
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
from harness.wire import V5, Wire


@pytest.fixture(scope="module")
def broker(tmp_path_factory, authority: Authority):
    with credentials_broker(tmp_path_factory.mktemp("tokens"), authority) as server:
        yield server


@pytest.fixture(scope="module")
def admin(broker: Server) -> Rest:
    return broker.rest(*SYSADMIN)


@pytest.fixture(autouse=True)
def as_at_first(admin: Rest):
    yield
    reset_providers(admin)


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
