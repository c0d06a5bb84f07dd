"""Who may connect to the publish/subscribe broker with credentials of its own, and on which topics."""

from __future__ import annotations

import json
import ssl

import pytest

from harness.certificates import Authority
from harness.paho_device import PahoDevice
from harness.providers import PROVIDER, credentials_broker
from harness.rest import Rest, unique
from harness.server import SYSADMIN, Server, split_address

CREDENTIALS = "/api/mqtt/client/credentials"
NOT_AUTHORIZED = {"3.1.1": 0x87, "5.0": 0x87}


@pytest.fixture(scope="module")
def broker(tmp_path_factory, authority: Authority):
    with credentials_broker(tmp_path_factory.mktemp("broker-access"), authority) as server:
        yield server


@pytest.fixture(scope="module")
def admin(broker: Server) -> Rest:
    return broker.rest(*SYSADMIN)


@pytest.fixture
def client(broker: Server):
    """Makes clients of the broker."""
    made: list[PahoDevice] = []

    def make(client_id: str, version: str = "5.0", *, tls: ssl.SSLContext | None = None, **login) -> PahoDevice:
        address = split_address(broker.listening["broker_tls" if tls else "broker"])
        device = PahoDevice(address, version, client_id=client_id, tls=tls, **login)
        made.append(device)
        return device

    yield make
    for device in made:
        device.__exit__()


def rules(publish: list[str] | None, subscribe: list[str] | None = None) -> dict:
    return {"pubAuthRulePatterns": publish, "subAuthRulePatterns": subscribe or publish}


def save(admin: Rest, value: dict, kind: str = "MQTT_BASIC", **fields) -> dict:
    body = {"name": unique("credentials"), "credentialsType": kind, "credentialsValue": json.dumps(value)}
    return admin.post(CREDENTIALS, body | fields).json()


def unauthorized(admin: Rest, client_id: str) -> dict:
    return admin.get("/api/unauthorized/client", clientId=client_id).json()


@pytest.mark.parametrize("version", ["3.1.1", "5.0"])
def test_the_password_of_a_client_is_checked(admin, client, version):
    name = unique("client")
    value = {"clientId": name, "userName": "u", "password": "secret", "authRules": rules([".*"])}
    save(admin, value)
    assert client(name, version, username="u", password="wrong").connect() == NOT_AUTHORIZED[version]
    assert client(name, version, username="u").connect() == NOT_AUTHORIZED[version]
    assert client(name, version).connect() == NOT_AUTHORIZED[version]
    refused = unauthorized(admin, name)
    assert refused["ipAddress"] == "127.0.0.1" and not refused["passwordProvided"]
    assert client(name, version, username="u", password="secret").connect() == 0
    admin.get("/api/unauthorized/client", clientId=name, expect=404)


def test_credentials_name_a_client_a_user_or_both(admin, client):
    one, other, user = unique("client"), unique("client"), unique("user")
    save(admin, {"clientId": one, "authRules": rules([".*"])})
    save(admin, {"userName": user, "password": "secret", "authRules": rules([".*"])})
    assert client(one).connect() == 0, "any password will do"
    assert client(other).connect() == 0x87
    assert client(other, username=user, password="secret").connect() == 0


def test_what_no_rule_permits_is_not_published(admin, client):
    name = unique("client")
    save(admin, {"clientId": name, "authRules": rules([f"{name}/.*"], [f"{name}/(\\+|a)"])})
    new = client(name)
    assert new.connect() == 0
    assert new.publish(f"{name}/a", b"1") in (0, 0x10)
    assert new.publish("other/a", b"1") == 0x87
    # Of QoS 0 nobody is told: paho says itself that it has been sent.
    assert new.publish("other/a", b"1", qos=0) == 0
    assert new.publish(f"{name}/a", b"2") in (0, 0x10)
    assert new.subscribe((f"{name}/+", 1), (f"{name}/#", 1), ("#", 0)) == [1, 0x87, 0x87]
    assert new.subscribe((f"$share/group/{name}/a", 1)) == [1], "the rule sees the filter without its group"

    old = client(name, "3.1.1")
    assert old.connect() == 0
    assert old.subscribe((f"{name}/a", 1), ("#", 1)) == [1, 0x80]
    old.send("other/a", b"1", qos=1)
    assert old.disconnected() is None, "the connection is closed"


def test_no_rules_permit_nothing(admin, client):
    name = unique("client")
    save(admin, {"clientId": name, "authRules": rules([], [])})
    device = client(name)
    assert device.connect() == 0
    assert device.publish("a", b"1") == 0x87
    assert device.subscribe(("a", 0)) == [0x87]


def test_a_will_needs_a_rule_too(admin, client):
    name = unique("client")
    save(admin, {"clientId": name, "authRules": rules(["mine"])})
    for topic, code in [("other", 0x87), ("mine", 0)]:
        device = client(name)
        device.client.will_set(topic, b"gone")
        assert device.connect() == code


def test_what_is_changed_or_deleted_counts_for_new_connections(admin, client):
    name = unique("client")
    value = {"clientId": name, "password": "first", "authRules": rules(["a"])}
    stored = save(admin, value)
    path = f"{CREDENTIALS}/{stored['id']}"
    before = client(name, username="u", password="first")
    assert before.connect() == 0
    value["authRules"] = rules(["b"])
    admin.post(CREDENTIALS, stored | {"credentialsValue": json.dumps(value)})
    assert before.publish("a", b"1") in (0, 0x10), "a connection keeps its rules"
    after = client(name, username="u", password="first")
    assert after.connect() == 0
    assert after.publish("a", b"1") == 0x87
    admin.post(path, {"currentPassword": "first", "newPassword": "second"})
    assert client(name, username="u", password="first").connect() == 0x87
    assert client(name, username="u", password="second").connect() == 0
    admin.delete(path)
    assert client(name, username="u", password="second").connect() == 0x87


def test_the_type_of_a_client_comes_from_its_credentials(admin, client):
    name = unique("client")
    before = admin.get(f"{CREDENTIALS}/info").json()
    stored = save(admin, {"clientId": name, "authRules": rules([".*"])}, clientType="APPLICATION")
    assert stored["clientType"] == "APPLICATION"
    after = admin.get(f"{CREDENTIALS}/info").json()
    assert after["applicationCredentialsCount"] == before["applicationCredentialsCount"] + 1
    assert after["deviceCredentialsCount"] == before["deviceCredentialsCount"]
    assert client(name).connect() == 0


def test_a_blocked_client_may_not_connect(admin, client):
    name, user = unique("client"), unique("user")
    save(admin, {"userName": user, "authRules": rules([".*"])})
    assert client(name, username=user).connect() == 0
    blocks = [
        {"type": "CLIENT_ID", "value": name},
        {"type": "USERNAME", "value": user},
        {"type": "REGEX", "value": f"{name[:-1]}.", "regexMatchTarget": "BY_CLIENT_ID"},
    ]
    for block in blocks:
        admin.post("/api/blockedClient", block)
        assert client(name, username=user).connect() == 0x8A, block
        assert client(name, "3.1.1", username=user).connect() == 0x87, block
        admin.delete("/api/blockedClient", **block)
        assert client(name, username=user).connect() == 0, block
    past = {"type": "CLIENT_ID", "value": name, "expirationTime": 1}
    assert admin.post("/api/blockedClient", past).json()["status"] == "DELETING_SOON"
    assert client(name, username=user).connect() == 0


@pytest.fixture
def certificates(admin):
    """Certificates are asked for as well."""
    provider = admin.get(f"{PROVIDER}/type/X_509").json()["id"]
    admin.post(f"{PROVIDER}/{provider}/enable")
    yield
    admin.post(f"{PROVIDER}/{provider}/disable")


def test_a_certificate_lets_its_client_in(admin, client, authority, tmp_path, certificates):
    name = unique("certified")
    mapping = {".*": rules(["d/${cn}/.*"])}
    save(admin, {"certCnPattern": f"^{name}-[0-9]$", "certCnIsRegex": True, "authRulesMapping": mapping}, "X_509")
    own = authority.client(authority.issue(f"{name}-1"))
    device = client(unique("client"), tls=own)
    assert device.connect() == 0
    assert device.publish(f"d/{name}-1/a", b"1") in (0, 0x10)
    assert device.publish(f"d/{name}-2/a", b"1") == 0x87
    # Of an authority that nobody has named.
    stranger = Authority(tmp_path / "stranger").issue(f"{name}-1")
    identity = unique("client")
    assert client(identity, tls=authority.client(stranger)).connect() == 0x87
    assert "X509 auth failure" in unauthorized(admin, identity)["reason"]
    assert client(unique("client"), tls=authority.client(authority.issue(f"{name}-x"))).connect() == 0x87
    assert client(unique("client"), tls=authority.client()).connect() == 0x87


def test_credentials_survive_a_restart(make_server):
    server = make_server(
        env={"FIELDLINE_BROKER_LISTEN": "127.0.0.1:0", "FIELDLINE_BROKER_ACCESS": "credentials"},
    ).start()
    save(server.rest(*SYSADMIN), {"clientId": "kept", "password": "secret", "authRules": rules([".*"])})
    server.kill()
    server.start()
    address = split_address(server.listening["broker"])
    with PahoDevice(address, "5.0", client_id="kept", username="u", password="secret") as device:
        assert device.connect() == 0
