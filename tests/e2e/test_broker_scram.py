"""Clients of the broker that prove with SCRAM that they know their passwords."""

from __future__ import annotations

import json

import pytest
import scramp

from harness import wire
from harness.broker import AUTH_DATA, AUTH_METHOD, BrokerClient, auth_packet, auth_properties, read_properties
from harness.certificates import Authority
from harness.providers import (
    ALL,
    OWN,
    REFUSED,
    configure,
    connects,
    credentials_broker,
    reason,
    reset_providers,
    save,
    switch,
)
from harness.rest import Rest, unique
from harness.server import SYSADMIN, Server
from harness.wire import V5, Wire


@pytest.fixture(scope="module")
def broker(tmp_path_factory, authority: Authority):
    with credentials_broker(tmp_path_factory.mktemp("scram"), authority) as server:
        yield server


@pytest.fixture(scope="module")
def admin(broker: Server) -> Rest:
    return broker.rest(*SYSADMIN)


@pytest.fixture(autouse=True)
def as_at_first(admin: Rest):
    yield
    reset_providers(admin)


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
