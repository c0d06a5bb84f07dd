"""The topics of devices, V1 and V2 short form, as in the reference's §2 and §3.2."""

import json

import pytest

from harness import wire
from harness.paho_device import VERSIONS, PahoDevice
from harness.rest import now_ms, telemetry
from harness.server import eventually
from harness.wire import V5, V31, V311

ALL = [V31, V311, V5]
TELEMETRY_TOPICS = ["v1/devices/me/telemetry", "v2/t", "v2/t/j"]
ATTRIBUTE_TOPICS = ["v1/devices/me/attributes", "v2/a", "v2/a/j"]


@pytest.fixture
def online(dial, device):
    """A connected device on MQTT 3.1.1."""
    connection = dial(V311)
    assert connection.connect(username=device.token) == 0
    return connection


# -- telemetry and attributes --


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("topic", TELEMETRY_TOPICS)
@pytest.mark.parametrize("qos", [0, 1])
def test_telemetry_is_stored(shared, tenant, device, version, topic, qos):
    with PahoDevice(shared.mqtt_address, version, username=device.token) as client:
        client.connect()
        client.publish(topic, json.dumps({"ts": 1_700_000_000_000, "values": {"t": 21.5, "on": True}}), qos)
        expected = [{"ts": 1_700_000_000_000, "value": 21.5}]
        assert eventually(lambda: tenant.points(device.id, "t")) == expected
        assert tenant.points(device.id, "on")[0]["value"] is True


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("topic", ATTRIBUTE_TOPICS)
def test_client_attributes_are_stored(shared, tenant, device, version, topic):
    with PahoDevice(shared.mqtt_address, version, username=device.token) as client:
        client.connect()
        client.publish(topic, '{"firmware":"1.2","serial":7,"ok":true,"cal":{"a":[1,2]}}')
    stored = eventually(lambda: tenant.attributes(device.id, "CLIENT_SCOPE"))
    assert stored == {"firmware": 1.2, "serial": 7, "ok": True, "cal": {"a": [1, 2]}}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_is_stored_once_whatever_its_quality_of_service(shared, tenant, device, version, qos):
    with PahoDevice(shared.mqtt_address, version, username=device.token) as client:
        client.connect()
        for value in range(20):
            client.publish("v1/devices/me/telemetry", f'{{"v":{value}}}', qos)
    assert eventually(lambda: sorted(tenant.values(device.id, "v")) == list(range(20)))


# Each body of the reference's §2, and what it must become: key, value, and the time if it was given.
BODIES = {
    "a flat object": ('{"a":1,"b":"x"}', {"a": [1], "b": ["x"]}),
    "with time": ('{"ts":1700000000000,"values":{"a":1}}', {"a": [1]}),
    "ts without values is a key": ('{"ts":1700000000000,"a":1}', {"ts": [1700000000000], "a": [1]}),
    "an array with times": (
        '[{"ts":1700000000000,"values":{"a":1}},{"ts":1700000000001,"values":{"a":2}}]',
        {"a": [1, 2]},
    ),
    "an array of both forms": ('[{"b":5},{"ts":1700000000000,"values":{"a":1}}]', {"a": [1], "b": [5]}),
    "unquoted keys": ("{temperature:25,humidity:40.5}", {"temperature": [25], "humidity": [40.5]}),
    "single quotes": ("{'a':'it is','b':2}", {"a": ["it is"], "b": [2]}),
    "unquoted strings": ("{state:on}", {"state": ["on"]}),
    "decimal of an integral value": ('{"a":25.0}', {"a": [25.0]}),
    "exponent of an integral value": ('{"a":1e3,"b":1.5E1}', {"a": [1000], "b": [15]}),
    "a number beyond 64 bits": ('{"a":92233720368547758080}', {"a": ["92233720368547758080"]}),
    "a number with too many decimals": ('{"a":0.012345678901234567}', {"a": ["0.012345678901234567"]}),
    "strings that are numbers": ('{"a":"007","b":"1.0","c":"-5"}', {"a": [7], "b": [1.0], "c": [-5]}),
    "strings that only look like numbers": (
        '{"a":"1e3","b":"1.","c":"1.2.3","d":"-"}',
        {"a": ["1e3"], "b": ["1."], "c": ["1.2.3"], "d": ["-"]},
    ),
    "nested values": ('{"a":{"x":[1,{"y":null}]},"b":[1,"z"]}', {"a": [{"x": [1, {"y": None}]}], "b": [[1, "z"]]}),
    "null is skipped": ('{"a":null,"b":1}', {"a": [], "b": [1]}),
    "unicode": ('{"größe":"ü€😀"}', {"größe": ["ü€😀"]}),
    "booleans": ('{"a":true,"b":false}', {"a": [True], "b": [False]}),
    "the limits of 64 bits": (
        '{"a":9223372036854775807,"b":-9223372036854775808}',
        {"a": [9223372036854775807], "b": [-9223372036854775808]},
    ),
}


@pytest.mark.parametrize("what", BODIES)
def test_a_telemetry_body_becomes_the_values_that_the_reference_says(tenant, device, online, what):
    body, expected = BODIES[what]
    assert online.publish("v1/devices/me/telemetry", body) == 0
    # The mark comes behind the body, so that what is absent then was not stored.
    assert online.publish("v1/devices/me/telemetry", '{"mark":1}', packet_id=2) == 0
    eventually(lambda: tenant.values(device.id, "mark"))
    for key, values in expected.items():
        stored = tenant.values(device.id, key)
        assert stored == values and [type(v) for v in stored] == [type(v) for v in values]


def test_two_hundred_messages_within_a_moment_are_two_hundred_points(tenant, device, online):
    online.send(b"".join(wire.publish(V311, "v1/devices/me/telemetry", f'{{"n":{n}}}', 1, n) for n in range(1, 201)))
    for packet_id in range(1, 201):
        assert online.puback(packet_id) == 0
    points = eventually(lambda: len(found := tenant.points(device.id, "n")) >= 200 and found)
    assert [point["value"] for point in points] == list(range(1, 201)), "the order of the messages is lost"
    times = [point["ts"] for point in points]
    assert times == sorted(set(times)), "times are not strictly increasing"
    assert abs(times[0] - now_ms()) < 30_000


def test_elements_without_a_time_share_the_one_of_their_message(tenant, device, online):
    assert online.publish("v1/devices/me/telemetry", '[{"a":1},{"b":2}]') == 0
    eventually(lambda: tenant.points(device.id, "b"))
    assert tenant.points(device.id, "a")[0]["ts"] == tenant.points(device.id, "b")[0]["ts"]


def test_the_latest_value_is_the_one_with_the_greatest_time(tenant, device, online):
    for packet_id, (ts, value) in enumerate([(2000, 2), (3000, 3), (1000, 1)], 1):
        assert (
            online.publish("v1/devices/me/telemetry", f'{{"ts":{ts},"values":{{"a":{value}}}}}', packet_id=packet_id)
            == 0
        )
    eventually(lambda: len(tenant.points(device.id, "a")) == 3)
    assert tenant.latest(device.id, "a") == {"a": 3}


def test_a_device_that_sends_becomes_active(dial, tenant, device):
    assert tenant.attributes(device.id, "SERVER_SCOPE")["active"] is False
    connection = dial(V311)
    assert connection.connect(username=device.token) == 0
    assert connection.publish("v1/devices/me/telemetry", '{"a":1}') == 0
    seen = eventually(
        lambda: (found := tenant.attributes(device.id, "SERVER_SCOPE")).get("active") and found, within=15
    )
    assert abs(seen["lastActivityTime"] - now_ms()) < 60_000
    assert tenant.get(f"/api/device/info/{device.id}").json()["active"] is True


# -- attribute requests --

# Topic of the request, filter and topic of the response.
REQUESTS = [
    (
        "v1/devices/me/attributes/request/{}",
        "v1/devices/me/attributes/response/+",
        "v1/devices/me/attributes/response/{}",
    ),
    ("v2/a/req/{}", "v2/a/res/+", "v2/a/res/{}"),
    ("v2/a/req/j/{}", "v2/a/res/j/+", "v2/a/res/j/{}"),
]


@pytest.fixture
def with_attributes(tenant, device, online):
    """A device with client attributes a and b and shared attributes c and d."""
    assert online.publish("v1/devices/me/attributes", '{"a":1,"b":"two"}', packet_id=9) == 0
    tenant.post(telemetry(device.id, "attributes/SHARED_SCOPE"), {"c": True, "d": {"x": 1}})
    eventually(lambda: len(tenant.attributes(device.id, "CLIENT_SCOPE")) == 2)
    return device


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("ask", "listen", "answer"), REQUESTS)
def test_attributes_are_answered_on_the_topic_of_the_request(shared, with_attributes, version, ask, listen, answer):
    with PahoDevice(shared.mqtt_address, version, username=with_attributes.token) as client:
        client.connect()
        assert client.subscribe((listen, 1)) == [1]
        client.publish(ask.format(5), '{"clientKeys":"a,missing","sharedKeys":"c"}')
        topic, payload = client.message()
        assert topic == answer.format(5)
        assert json.loads(payload) == {"client": {"a": 1}, "shared": {"c": True}}


ATTRIBUTE_ANSWERS = {
    "{}": {"client": {"a": 1, "b": "two"}, "shared": {"c": True, "d": {"x": 1}}},
    '{"clientKeys":"a,b"}': {"client": {"a": 1, "b": "two"}},
    '{"sharedKeys":"d"}': {"shared": {"d": {"x": 1}}},
    "{clientKeys:b}": {"client": {"b": "two"}},
    '{"clientKeys":"nothing"}': {},
}


@pytest.mark.parametrize("body", ATTRIBUTE_ANSWERS)
def test_an_attribute_request_names_what_it_wants(with_attributes, online, body):
    assert online.subscribe(("v1/devices/me/attributes/response/+", 1)) == [1]
    online.send(publish_request(body))
    seen = online.receive(), online.receive()
    # The acknowledgement of the request and its answer may come in either order.
    answer = next(wire.read_publish(V311, packet) for packet in seen if packet.kind == wire.PUBLISH)
    assert answer.topic == "v1/devices/me/attributes/response/1"
    assert json.loads(answer.payload) == ATTRIBUTE_ANSWERS[body]


def publish_request(body: str) -> bytes:
    return wire.publish(V311, "v1/devices/me/attributes/request/1", body, 1, 33)


def test_the_answer_comes_with_the_quality_of_service_of_its_subscription(with_attributes, dial):
    for granted in (0, 1):
        connection = dial(V311)
        assert connection.connect(username=with_attributes.token) == 0
        assert connection.subscribe(("v1/devices/me/attributes/response/+", granted)) == [granted]
        assert connection.publish("v1/devices/me/attributes/request/1", "{}", qos=0) is None
        assert connection.message().qos == granted


# -- subscriptions --

LITERAL = [
    "v1/devices/me/attributes", "v1/devices/me/attributes/response/+", "v1/devices/me/rpc/request/+",
    "v1/devices/me/rpc/response/+", "v2/a", "v2/a/j", "v2/a/res/+", "v2/a/res/j/+",
]  # fmt: skip
NOT_LITERAL = [
    "#", "+/devices/me/attributes", "v1/devices/me/#", "v1/devices/+/attributes", "$share/g/v1/devices/me/attributes",
    "v1/devices/me/attributes/response/1", "v1/devices/me/telemetry/#", "$SYS/#", "$SYS/broker/uptime", "some/topic",
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_filters_are_literals_and_qos_2_is_granted_as_1(shared, device, version):
    with PahoDevice(shared.mqtt_address, version, username=device.token) as client:
        client.connect()
        assert client.subscribe(*((topic, qos) for topic in LITERAL for qos in (0, 1, 2))) == [0, 1, 1] * len(LITERAL)


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("topic", NOT_LITERAL)
def test_any_other_filter_fails_and_the_connection_stays(dial, device, version, topic):
    connection = dial(version)
    assert connection.connect(username=device.token) == 0
    failure = 0x8F if version == V5 else 0x80
    assert connection.subscribe((topic, 1)) == [failure]
    assert connection.subscribe(("v1/devices/me/attributes", 0), (topic, 0), packet_id=2) == [0, failure]
    connection.ping()


def test_unsuback_of_version_5_says_what_was_there(dial, device):
    connection = dial(V5)
    assert connection.connect(username=device.token) == 0
    assert connection.subscribe(("v1/devices/me/attributes", 1)) == [1]
    assert connection.unsubscribe("v1/devices/me/attributes", "v2/a", "some/topic") == [0x00, 0x11, 0x8F]


def test_unsuback_of_version_3_has_no_codes(dial, device):
    for version in (V31, V311):
        connection = dial(version)
        assert connection.connect(username=device.token) == 0
        assert connection.unsubscribe("v1/devices/me/attributes", "some/topic") == []
