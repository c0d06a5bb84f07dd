"""CONNECT: credentials, versions and sessions, as in the reference's §3.1."""

import hashlib
import json
import time

import pytest

from harness import wire
from harness.paho_device import VERSIONS, PahoDevice
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5, V31, V311

ALL = [V31, V311, V5]
TELEMETRY = "v1/devices/me/telemetry"


def by_version(version: int, v3: int, v5: int) -> int:
    return v5 if version == V5 else v3


@pytest.fixture
def basic(tenant):
    """Makes a device with MQTT basic credentials."""

    def make(**fields):
        device = tenant.create_device()
        tenant.set_credentials(
            device.id, "MQTT_BASIC", None, json.dumps({"clientId": None, "userName": None, "password": None} | fields)
        )
        return device

    return make


# -- access tokens --


@pytest.mark.parametrize("version", VERSIONS)
def test_paho_connects_with_an_access_token_and_publishes(shared, tenant, device, version):
    with PahoDevice(shared.mqtt_address, version, username=device.token) as client:
        assert client.connect() == 0
        assert client.publish(TELEMETRY, '{"a":1}') == 0
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]


@pytest.mark.parametrize("version", VERSIONS)
def test_paho_is_told_that_its_token_is_wrong(shared, version):
    with PahoDevice(shared.mqtt_address, version, username="no-such-token") as client:
        # paho reports version 3 codes as their version 5 equivalents: 5 reads as 0x87.
        assert client.connect() == (0x86 if version == "5.0" else 0x87)


# What is given, and the code of the CONNACK for version 3 and version 5.
REFUSED = {
    "only a wrong user name": (dict(username="nobody"), 5, 0x86),
    "only a password": (dict(password="secret"), 5, 0x86),
    "user name, password and client id": (dict(username="nobody", password="secret", client_id="c"), 5, 0x86),
    "user name and client id": (dict(username="nobody", client_id="c"), 5, 0x86),
    "only a client id": (dict(client_id="nobody"), 2, 0x85),
    "nothing": (dict(), 5, 0x87),
    "user name and password": (dict(username="nobody", password="secret"), 5, 0x86),
    "an empty user name and a client id": (dict(username="", client_id="c"), 5, 0x86),
}


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("given", REFUSED)
def test_a_refused_connect_gets_the_code_of_its_case_and_the_connection_is_closed(dial, version, given):
    fields, v3, v5 = REFUSED[given]
    if version != V5 and "password" in fields and "username" not in fields:
        pytest.skip("MQTT 3.1.1 §3.1.2.9 forbids a password without a user name: malformed before it is refused")
    connection = dial(version)
    code = by_version(version, v3, v5)
    assert connection.connect(**fields) == code
    # MQTT 5 §3.14 forbids a DISCONNECT after a CONNACK that refuses; ThingsBoard sends it, and its own client waits for it.
    connection.ended(code)


@pytest.mark.parametrize("version", ALL)
def test_password_and_client_id_are_ignored_with_an_access_token(dial, device, version):
    assert dial(version).connect("any", device.token, "whatever") == 0


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("clean", [True, False])
def test_the_session_present_flag_echoes_the_request(dial, device, version, clean):
    """Version 3.1 has no such flag."""
    connection = dial(version)
    connection.send(wire.connect(version, "c", device.token, clean=clean))
    assert connection.expect(wire.CONNACK).body[:2] == bytes([not clean, 0])


@pytest.mark.parametrize("level", [1, 2, 6, 77])
def test_an_unknown_protocol_level_is_treated_as_3_1_1(dial, device, level):
    connection = dial(V311)
    connection.send(wire.connect(V311, username=device.token, level=level))
    assert connection.connack() == 0
    assert connection.publish(TELEMETRY, '{"a":1}') == 0


def test_a_connack_of_version_5_is_well_formed(dial, device):
    connection = dial(V5)
    connection.send(wire.connect(V5, username=device.token))
    body = connection.expect(wire.CONNACK).body
    assert body[:2] == b"\0\0"
    length, start = wire.take_varint(body, 2)
    assert start + length == len(body)


@pytest.mark.parametrize("version", ALL)
def test_a_will_is_accepted_and_ignored(dial, device, version):
    connection = dial(version)
    assert connection.connect(username=device.token, will=("last/words", b"gone")) == 0
    assert connection.publish(TELEMETRY, '{"a":1}') == 0


def test_version_5_properties_of_a_connect_are_accepted(dial, device):
    # Session expiry 60, receive maximum 10, maximum packet size 10000, topic alias maximum 5, request problem
    # information 1, user property a=b.
    given = (
        b"\x11\0\0\0\x3c" + b"\x21\0\x0a" + b"\x27\0\0\x27\x10" + b"\x22\0\x05" + b"\x17\x01" + b"\x26\0\x01a\0\x01b"
    )
    assert dial(V5).connect(username=device.token, props=given) == 0


@pytest.mark.parametrize("version", ALL)
def test_packets_that_come_right_behind_the_connect_are_served(dial, tenant, device, version):
    connection = dial(version)
    publishes = b"".join(wire.publish(version, TELEMETRY, f'{{"a":{n}}}', 1, n) for n in range(1, 51))
    connection.send(wire.connect(version, username=device.token) + publishes)
    assert connection.connack() == 0
    for packet_id in range(1, 51):
        assert connection.puback(packet_id) == 0
    assert eventually(lambda: len(values := tenant.values(device.id, "a")) == 50 and values) == list(range(1, 51))


# -- MQTT basic --


@pytest.mark.parametrize("version", ALL)
def test_basic_credentials_with_all_three_fields_must_match_in_each(dial, basic, version):
    client, user = unique("client"), unique("user")
    basic(clientId=client, userName=user, password="secret")
    assert dial(version).connect(client, user, "secret") == 0
    assert dial(version).connect(client, user, "wrong") == by_version(version, 5, 0x86)
    assert dial(version).connect(client, user) == by_version(version, 5, 0x86)
    assert dial(version).connect("other", user, "secret") == by_version(version, 5, 0x86)


@pytest.mark.parametrize("version", ALL)
def test_basic_credentials_with_a_user_name_take_any_client_id(dial, basic, version):
    user = unique("user")
    basic(userName=user, password="secret")
    assert dial(version).connect("any-client", user, "secret") == 0
    assert dial(version).connect("any-client", user, "wrong") == by_version(version, 5, 0x86)


@pytest.mark.parametrize("version", ALL)
def test_basic_credentials_with_only_a_client_id_need_nothing_else(dial, basic, version):
    client = unique("client")
    basic(clientId=client)
    assert dial(version).connect(client) == 0


def test_the_id_of_basic_credentials_is_the_hash_of_what_identifies_the_device(tenant, basic):
    def digest(text: str) -> str:
        return hashlib.sha3_256(text.encode()).hexdigest()

    client, user = unique("client"), unique("user")
    both = basic(clientId=client, userName=user, password="p")
    assert tenant.credentials(both.id)["credentialsId"] == digest(f"{client}|{user}")
    only_client = basic(clientId=client)
    assert tenant.credentials(only_client.id)["credentialsId"] == digest(client)
    only_user = basic(userName=user, password="p")
    assert tenant.credentials(only_user.id)["credentialsId"] == user


def test_basic_credentials_that_identify_nobody_are_refused(tenant, device):
    for value in ({"password": "p"}, {"clientId": unique("c"), "password": "p"}):
        changed = tenant.credentials(device.id) | {
            "credentialsType": "MQTT_BASIC",
            "credentialsId": None,
            "credentialsValue": json.dumps(value),
        }
        assert tenant.post("/api/device/credentials", changed, expect=400).json()["status"] == 400


# -- sessions --


@pytest.mark.parametrize("version", ALL)
def test_a_second_session_replaces_the_first(dial, device, version):
    first, second = dial(version), dial(version)
    assert first.connect(username=device.token) == 0
    assert second.connect(username=device.token) == 0
    first.ended(0x8E)
    assert second.publish(TELEMETRY, '{"a":1}') == 0


def test_paho_is_told_that_its_session_was_taken_over(shared, device):
    with PahoDevice(shared.mqtt_address, "5.0", username=device.token) as first:
        first.connect()
        with PahoDevice(shared.mqtt_address, "5.0", username=device.token) as second:
            assert second.connect() == 0
            assert first.disconnected() == 0x8E


@pytest.mark.parametrize("version", ALL)
def test_a_change_of_credentials_closes_the_session(dial, tenant, device, version):
    connection = dial(version)
    assert connection.connect(username=device.token) == 0
    token = unique("token")
    tenant.set_credentials(device.id, "ACCESS_TOKEN", token, None)
    connection.ended(0x98)
    assert dial(version).connect(username=device.token) == by_version(version, 5, 0x86)
    assert dial(version).connect(username=token) == 0


@pytest.mark.parametrize("version", ALL)
def test_the_deletion_of_a_device_closes_its_session(dial, tenant, device, version):
    connection = dial(version)
    assert connection.connect(username=device.token) == 0
    tenant.delete(f"/api/device/{device.id}")
    connection.ended(0x98)
    assert dial(version).connect(username=device.token) == by_version(version, 5, 0x86)


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("keep_alive", [1, 2, 3])
def test_a_silent_device_is_disconnected_after_one_and_a_half_keep_alives(dial, device, version, keep_alive):
    connection = dial(version)
    started = time.monotonic()
    assert connection.connect(username=device.token, keep_alive=keep_alive) == 0
    connection.ended(by_version(version, None, 0x8D), within=1.5 * keep_alive + 30)
    # A coarse wheel may be late, but never early.
    assert 1.5 * keep_alive <= time.monotonic() - started


def test_pings_and_messages_keep_a_session_alive(dial, device):
    connection = dial(V311)
    assert connection.connect(username=device.token, keep_alive=1) == 0
    for round in range(4):
        assert connection.silent(0.7), "closed although the device was not silent"
        if round % 2:
            connection.ping()
        else:
            assert connection.publish(TELEMETRY, '{"a":1}') == 0


def test_a_keep_alive_of_zero_switches_it_off(dial, device):
    connection = dial(V311)
    assert connection.connect(username=device.token, keep_alive=0) == 0
    assert connection.silent(3)
    connection.ping()


@pytest.mark.parametrize("version", ALL)
def test_a_disconnect_ends_the_connection_without_an_answer(dial, device, version):
    connection = dial(version)
    assert connection.connect(username=device.token) == 0
    connection.send(wire.BYE)
    connection.ended()


# -- protocol errors --

MALFORMED = {
    "the reserved packet type 0": b"\x00\x00",
    "wrong flags of a PINGREQ": b"\xc1\x00",
    "a length of five bytes": b"\x30\xff\xff\xff\xff\x01",
    "a PUBLISH with QoS 3": wire.frame(wire.PUBLISH, wire.text("v1/devices/me/telemetry") + b"\0\x01\0{}", 6),
    "a PUBLISH whose topic runs past its end": wire.frame(wire.PUBLISH, b"\xff\xffab", 2),
    "a SUBSCRIBE without flags": wire.frame(wire.SUBSCRIBE, b"\0\x01\0\x01a\0", 0),
    "a second CONNECT": None,
}


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_packet_ends_the_connection_and_nothing_else(dial, shared, device, version, what):
    connection = dial(version)
    assert connection.connect(username=device.token) == 0
    connection.send(MALFORMED[what] or wire.connect(version, username=device.token))
    packet = connection.receive()
    if packet is not None:
        assert version == V5 and packet.kind == wire.DISCONNECT and packet.body[0] in (0x81, 0x82), packet
        connection.ended()
    assert dial(version).connect(username=device.token) == 0


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n\r\n", wire.PING, b"\x16\x03\x01\x02\x00\x01\x00", b"\xff" * 64])
def test_a_connection_that_does_not_begin_with_connect_is_closed(dial, first):
    connection = dial(V311)
    connection.send(first)
    connection.ended()
