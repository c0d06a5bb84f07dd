"""What a device is told when a message cannot be taken, as in the reference's §3.3, and the limits on size."""

import pytest

from harness import wire
from harness.paho_device import PahoDevice
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5, V31, V311

ALL = [V31, V311, V5]
TELEMETRY = "v1/devices/me/telemetry"
ATTRIBUTES = "v1/devices/me/attributes"
# 65536 bytes behind a fixed header of four.
MAX_PACKET = 65540

BAD = [
    (TELEMETRY, "{"), (TELEMETRY, "nonsense"), (TELEMETRY, "5"), (TELEMETRY, "null"), (TELEMETRY, ""), (TELEMETRY, "[1]"),
    (TELEMETRY, b"\xff\xfe\x00"), (TELEMETRY, '{"a":1}}'), (TELEMETRY, '{"ts":"soon","values":{"a":1}}'),
    (ATTRIBUTES, "["), (ATTRIBUTES, '[{"a":1}]'), (ATTRIBUTES, ""), (ATTRIBUTES + "/request/1", ""),
    ("v2/t", "{"), ("v2/a", "[]"), ("v2/t/j", "5"),
]  # fmt: skip


@pytest.fixture
def online(dial, device):
    """Connects the device of the test."""

    def connect(version: int) -> wire.Wire:
        connection = dial(version)
        assert connection.connect(username=device.token) == 0
        return connection

    return connect


@pytest.mark.parametrize(("topic", "body"), BAD)
def test_a_bad_payload_of_qos_1_is_refused_with_0x99_and_version_5_stays_connected(online, topic, body):
    connection = online(V5)
    assert connection.publish(topic, body) == 0x99
    assert connection.publish(TELEMETRY, '{"a":1}', packet_id=2) == 0


@pytest.mark.parametrize(("topic", "body"), BAD)
@pytest.mark.parametrize("qos", [0, 1])
def test_a_bad_payload_closes_a_connection_of_version_3(online, topic, body, qos):
    connection = online(V311)
    connection.send(wire.publish(V311, topic, body, qos))
    connection.ended()


@pytest.mark.parametrize(("topic", "body"), BAD)
def test_a_bad_payload_of_qos_0_closes_a_connection_of_version_5_with_0x99(online, topic, body):
    connection = online(V5)
    connection.send(wire.publish(V5, topic, body, 0))
    connection.ended(0x99)


def test_a_bad_payload_leaves_nothing_behind(online, tenant, device):
    connection = online(V5)
    assert connection.publish(TELEMETRY, '[{"bad":1},{"bad":2},7]') == 0x99
    assert connection.publish(TELEMETRY, '{"good":1}', packet_id=2) == 0
    eventually(lambda: tenant.values(device.id, "good"))
    assert tenant.values(device.id, "bad") == []


def test_paho_of_version_5_sees_the_reason_codes(shared, device):
    with PahoDevice(shared.mqtt_address, "5.0", username=device.token) as client:
        client.connect()
        assert client.publish(TELEMETRY, '{"a":1}') == 0x00
        assert client.publish("some/topic", '{"a":1}') == 0x90
        assert client.publish(TELEMETRY, "{") == 0x99
        client.send(TELEMETRY, "{", 0)
        assert client.disconnected() == 0x99


@pytest.mark.parametrize("version", ["3.1", "3.1.1"])
def test_paho_of_version_3_is_disconnected_for_a_bad_payload(shared, device, version):
    with PahoDevice(shared.mqtt_address, version, username=device.token) as client:
        client.connect()
        client.send(TELEMETRY, "{", 1)
        client.disconnected()


def test_a_profile_may_ask_for_acknowledgement_of_bad_payloads(shared, tenant, dial):
    profile = tenant.post(
        "/api/deviceProfile",
        {
            "name": unique("acknowledges"),
            "type": "DEFAULT",
            "transportType": "MQTT",
            "provisionType": "DISABLED",
            "profileData": {
                "configuration": {"type": "DEFAULT"},
                "transportConfiguration": {"type": "MQTT", "sendAckOnValidationException": True},
                "provisionConfiguration": {"type": "DISABLED", "provisionDeviceSecret": None},
                "alarms": None,
            },
        },
    ).json()
    device = tenant.create_device(deviceProfileId=profile["id"], type=None)
    connection = dial(V311)
    assert connection.connect(username=device.token) == 0
    assert connection.publish(TELEMETRY, "{") == 0
    assert connection.publish(TELEMETRY, '{"a":1}', packet_id=2) == 0
    assert eventually(lambda: tenant.values(device.id, "a")) == [1]


# -- topics --


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("topic", ["some/topic", "v1/devices/me/unknown", "$SYS/broker", "v3/t", "/"])
def test_an_unknown_topic_is_acknowledged_and_the_connection_stays(online, version, topic):
    connection = online(version)
    assert connection.publish(topic, "whatever") == (0x90 if version == V5 else 0)
    assert connection.publish(topic, "whatever", qos=0) is None
    connection.ping()


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("topic", ["v1/gateway/telemetry", "v1/gateway/connect"])
def test_a_gateway_topic_from_a_plain_device_gets_no_answer(online, version, topic):
    connection = online(version)
    connection.send(wire.publish(version, topic, "{}", 1, 5))
    # The answer to the ping is the next thing that is heard.
    connection.ping()


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("topic", ["v1/devices/+/telemetry", "v1/#", b"v1/\xff/x", b"v1/\0/x"])
def test_a_topic_that_no_publish_may_have_ends_the_connection(online, version, topic):
    connection = online(version)
    connection.send(wire.publish(version, topic, "{}", 1, 5))
    packet = connection.receive()
    if packet is not None and packet.kind == wire.PUBACK:
        assert version == V5 and packet.body[2] == 0x90, "acknowledged a topic that is not allowed"
        return
    assert packet is None or packet.kind == wire.DISCONNECT, packet


def test_an_empty_topic_or_a_topic_alias_is_refused_as_none_was_offered(online):
    for props in (b"", b"\x23\0\x01"):
        connection = online(V5)
        connection.send(wire.publish(V5, "", '{"a":1}', 1, 5, props=props))
        packet = connection.receive()
        reason = packet.body[0] if packet is not None and packet.kind == wire.DISCONNECT else None
        assert packet is None or reason in (0x81, 0x82, 0x94) or (packet.kind == wire.PUBACK and packet.body[2] == 0x90)


# -- sizes --


def packet_of(version: int, size: int) -> bytes:
    """A valid telemetry PUBLISH of exactly so many bytes."""
    for filling in range(size, 0, -1):
        made = wire.publish(version, TELEMETRY, '{"a":"' + "x" * filling + '"}', 1, 1)
        if len(made) <= size:
            break
    # No packet has a length that its length field would grow past.
    assert size - len(made) <= 1
    return made


def header_of(first: int, size: int) -> bytes:
    """The fixed header of a packet of so many bytes."""
    return bytes([first]) + wire.varint(size - 1 - len(wire.varint(size - 5)))


# Each power at which the length field grows by a byte, and the largest packet that is taken.
SIZES = [50, 128, 129, 130, 131, 16385, 16386, 16387, 16388, 16389, MAX_PACKET - 1, MAX_PACKET]


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("size", SIZES)
def test_a_packet_up_to_the_limit_is_stored(online, tenant, device, version, size):
    connection = online(version)
    connection.send(packet_of(version, size))
    assert connection.puback(1) == 0
    stored = eventually(lambda: tenant.values(device.id, "a"))
    assert len(stored[0]) == packet_of(version, size).count(b"x")


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("size", [MAX_PACKET + 1, MAX_PACKET + 100, 1 << 20, 1 << 28])
def test_a_larger_packet_ends_the_connection_at_its_header(online, shared, version, size):
    connection = online(version)
    before = shared.memory_kib()
    # The header alone says it: nothing is read, or made room for, that would be thrown away.
    connection.send(header_of(0x32, size))
    connection.ended(0x81)
    assert shared.memory_kib() - before < 64 * 1024


@pytest.mark.parametrize("version", ALL)
def test_a_larger_packet_that_is_sent_whole_ends_the_connection_too(online, version):
    connection = online(version)
    try:
        connection.send(packet_of(version, 4 * MAX_PACKET))
    except (ConnectionResetError, BrokenPipeError):
        return
    packet = connection.receive()
    assert packet is None or (packet.kind, packet.body[0]) == (wire.DISCONNECT, 0x81)


@pytest.mark.parametrize("size", [MAX_PACKET + 1, 1 << 20, 1 << 28])
def test_a_connect_that_announces_too_much_is_not_waited_for(dial, size):
    connection = dial(V311)
    connection.send(header_of(0x10, size))
    connection.ended()
