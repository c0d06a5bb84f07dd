"""Protobuf payloads of device profiles over MQTT, and the topics that profiles may name."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.paho_device import PahoDevice
from harness.people import create_tenancy
from harness.protobuf import message, parse
from harness.rest import Device, telemetry, unique
from harness.server import eventually

HEAD = 'syntax ="proto3";\n\npackage test;\n\n'
FIELDS = """  optional string key1 = 1;
  optional bool key2 = 2;
  optional double key3 = 3;
  optional int32 key4 = 4;
  JsonObject key5 = 5;

  message JsonObject {
    optional int32 someNumber = 6;
    repeated int32 someArray = 7;
    optional NestedJsonObject someNestedObject = 8;
    message NestedJsonObject {
       optional string key = 9;
    }
  }
}"""
CALL = (
    'syntax ="proto3";\npackage rpc;\n\nmessage RpcRequestMsg {\n  optional string method = 1;\n'
    "  optional int32 requestId = 2;\n  optional string params = 3;\n}"
)
ANSWER = 'syntax ="proto3";\npackage rpc;\n\nmessage RpcResponseMsg {\n  optional string payload = 1;\n}'
DEFAULTS = {
    "transportPayloadType": "PROTOBUF",
    "deviceTelemetryProtoSchema": f"{HEAD}message PostTelemetry {{\n{FIELDS}",
    "deviceAttributesProtoSchema": f"{HEAD}message PostAttributes {{\n{FIELDS}",
    "deviceRpcRequestProtoSchema": CALL,
    "deviceRpcResponseProtoSchema": ANSWER,
    "enableCompatibilityWithJsonPayloadFormat": False,
    "useJsonPayloadFormatForDefaultDownlinkTopics": False,
}
VALUES = message(
    (1, "value1"),
    (2, True),
    (3, 3.0),
    (4, -4),
    (5, message((6, 42), (7, b"\1\2\3"), (8, message((9, "value"))))),
)
READ = {
    "key1": "value1",
    "key2": True,
    "key3": 3.0,
    "key4": -4,
    "key5": {"someNumber": 42, "someArray": [1, 2, 3], "someNestedObject": {"key": "value"}},
}
JSON_TOO = {"enableCompatibilityWithJsonPayloadFormat": True}
ATTRIBUTES = "v1/devices/me/attributes"
REFUSED = 0x99


def profile_of(payloads: dict | None = None, **transport) -> dict:
    configuration = {"type": "MQTT", "transportPayloadTypeConfiguration": DEFAULTS | (payloads or {})} | transport
    return {
        "name": unique("protobuf"),
        "type": "DEFAULT",
        "transportType": "MQTT",
        "provisionType": "DISABLED",
        "profileData": {"configuration": {"type": "DEFAULT"}, "transportConfiguration": configuration},
    }


@pytest.fixture
def connect(connect, tenant):
    """Connects a device, of a profile of its own where none is named."""

    def open_one(payloads: dict | None = None, *, who: Device | None = None, version="5.0", transport=None, **fields):
        if who is None:
            profile = tenant.post("/api/deviceProfile", profile_of(payloads, **(transport or {}))).json()
            who = tenant.create_device(type=None, deviceProfileId=profile["id"], **fields)
        return who, connect(version, username=who.token)

    return open_one


def test_telemetry_and_attributes_are_read_by_the_schemas_of_the_profile(tenant, connect):
    device, client = connect()
    for topic in ["v1/devices/me/telemetry", "v2/t", "v2/t/p"]:
        assert client.publish(topic, VALUES) == 0
    assert eventually(lambda: len(tenant.values(device.id, "key1")) == 3)
    assert tenant.latest(device.id) == READ
    for number, topic in enumerate([ATTRIBUTES, "v2/a", "v2/a/p"]):
        assert client.publish(topic, VALUES + message((4, number))) == 0
        expected = READ | {"key4": number}
        assert eventually(lambda expected=expected: tenant.attributes(device.id, "CLIENT_SCOPE") == expected)
    assert client.publish("v2/t/j", '{"json":1}') == 0
    assert eventually(lambda: tenant.values(device.id, "json") == [1])
    timed = message((1, 1_700_000_000_000), (2, message((1, 21.5))))
    schema = f"{HEAD}message T {{ optional int64 ts = 1; V values = 2; message V {{ double out_side = 1; }} }}"
    device, client = connect({"deviceTelemetryProtoSchema": schema})
    assert client.publish("v2/t", timed) == 0
    assert eventually(lambda: tenant.points(device.id, "outSide")) == [{"ts": 1_700_000_000_000, "value": 21.5}]


def test_what_does_not_follow_the_schema_is_refused_as_wrong_json_is(tenant, connect):
    device, client = connect()
    for topic in ["v1/devices/me/telemetry", ATTRIBUTES, "v2/t/p", "v1/devices/me/rpc/response/1", "v2/a/req/p/1"]:
        for wrong in ['{"key1":"json"}', b"\x0a\x05ab", b"\x22" * 60_000]:
            assert client.publish(topic, wrong) == REFUSED
    assert client.publish("v1/devices/me/telemetry", VALUES) == 0
    assert eventually(lambda: tenant.values(device.id, "key1") == ["value1"])
    _, old = connect(who=device, version="3.1.1")
    old.send("v2/t", b"\xff", 1)
    assert old.disconnected() is None
    # Without schemas there is nothing to read by.
    _, client = connect(who=tenant.create_device())
    assert client.publish("v2/t/p", VALUES) == REFUSED
    assert client.publish("v2/t", '{"a":1}') == 0


@pytest.mark.parametrize("prefix", ["v1/devices/me/attributes", "v2/a", "v2/a/p"])
def test_shared_attributes_come_as_messages(tenant, connect, prefix):
    device, client = connect()
    ask, answer = (
        ("v2/a/req/p/7", "v2/a/res/p/7")
        if prefix == "v2/a/p"
        else (
            f"{prefix}/{'request' if 'v1' in prefix else 'req'}/7",
            f"{prefix}/{'response' if 'v1' in prefix else 'res'}/7",
        )
    )
    client.subscribe((prefix, 1), (answer.replace("/7", "/+"), 1))
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30, "mode": "eco", "deep": {"a": [1]}})
    topic, payload = client.message()
    updated = [parse(parse(one)[2][0]) for one in parse(payload)[1]]
    assert topic == prefix
    assert {one[1][0]: one for one in updated} == {
        b"interval": {1: [b"interval"], 2: [1], 4: [30]},
        b"mode": {1: [b"mode"], 2: [3], 6: [b"eco"]},
        b"deep": {1: [b"deep"], 2: [4], 7: [b'{"a":[1]}']},
    }
    tenant.delete(telemetry(device.id, "SHARED_SCOPE"), keys="mode")
    assert client.message() == (prefix, message((2, "mode")))
    assert client.publish("v2/a/p", message((1, "x"))) == 0
    assert eventually(lambda: tenant.attributes(device.id, "CLIENT_SCOPE") == {"key1": "x"})
    assert client.publish(ask, message((1, "key1,absent"), (2, "interval"))) == 0
    topic, payload = client.message()
    found = parse(payload)
    assert topic == answer and found[1] == [7] and found[4] == [1]
    assert parse(parse(found[2][0])[2][0])[6] == [b"x"]
    assert parse(parse(found[3][0])[2][0])[4] == [30]


@pytest.mark.parametrize("calls", ["v1/devices/me/rpc/{}/", "v2/r/{}/", "v2/r/{}/p/"])
def test_calls_go_both_ways_as_messages(tenant, connect, calls):
    request, response = ("request", "response") if "v1" in calls else ("req", "res")
    device, client = connect()
    client.subscribe((calls.format(request) + "+", 1), (calls.format(response) + "+", 1))
    with ThreadPoolExecutor(1) as pool:
        path = f"/api/rpc/twoway/{device.id}"
        answer = pool.submit(tenant.post, path, {"method": "setGpio", "params": {"pin": 7}})
        topic, payload = client.message()
        number = topic.rsplit("/", 1)[1]
        assert topic == calls.format(request) + number
        assert payload == message((1, "setGpio"), (2, int(number)), (3, '{"pin":7}'))
        assert client.publish(calls.format(response) + number, message((1, "done"))) == 0
        assert answer.result().json() == {"payload": "done"}
    assert client.publish(calls.format(request) + "5", message((1, "getSessionLimits"), (2, "{}"))) == 0
    topic, payload = client.message()
    assert topic == calls.format(response) + "5" and parse(payload)[1] == [5]
    assert json.loads(parse(payload)[2][0])["maxPayloadSize"] == 65_536
    assert client.publish(calls.format(request) + "6", message((2, "{}"))) == REFUSED


def test_a_call_is_written_by_the_schema_or_fails(tenant, connect):
    schema = f"""{HEAD}message Call {{ optional string method = 1; optional int32 requestId = 2; Params params = 3;
        message Params {{ int32 pin = 1; string name = 2; }} }}"""
    device, client = connect({"deviceRpcRequestProtoSchema": schema})
    client.subscribe(("v1/devices/me/rpc/request/+", 1))
    path = f"/api/rpc/oneway/{device.id}"
    tenant.post(path, {"method": "set", "params": {"pin": 7, "name": "a", "other": 1}})
    assert parse(client.message()[1])[3] == [message((1, 7), (2, "a"))]
    answer = tenant.post(f"/api/rpc/twoway/{device.id}", {"method": "set", "params": {"pin": "x"}})
    assert answer.json() == {"error": "field `pin` takes a whole number of 32 bits"}


def test_json_is_taken_and_sent_where_the_profile_says_so(tenant, connect):
    device, client = connect(JSON_TOO | {"useJsonPayloadFormatForDefaultDownlinkTopics": True})
    assert client.publish("v1/devices/me/telemetry", '{"a":1}') == 0
    assert client.publish("v2/t", VALUES) == 0
    assert client.publish("v2/t/p", '{"a":1}') == REFUSED
    assert eventually(lambda: tenant.values(device.id, "a") == [1] and tenant.values(device.id, "key4") == [-4])
    client.subscribe((ATTRIBUTES, 1))
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
    assert client.message() == (ATTRIBUTES, b'{"interval":30}')
    client.subscribe(("v2/a", 1))
    tenant.delete(telemetry(device.id, "SHARED_SCOPE"), keys="interval")
    assert client.message() == ("v2/a", message((2, "interval")))


def test_a_session_follows_its_profile(tenant, connect):
    saved = tenant.post("/api/deviceProfile", profile_of()).json()
    device, client = connect(who=tenant.create_device(type=None, deviceProfileId=saved["id"]))
    assert client.publish("v2/t", VALUES) == 0
    path = f"/api/deviceProfile/{saved['id']['id']}"
    assert (
        tenant.get(path).json()["profileData"]["transportConfiguration"]
        == saved["profileData"]["transportConfiguration"]
    )
    payloads = saved["profileData"]["transportConfiguration"]["transportPayloadTypeConfiguration"]
    assert payloads == DEFAULTS
    payloads["deviceTelemetryProtoSchema"] = "message Broken {"
    tenant.post("/api/deviceProfile", saved, expect=400)
    assert client.publish("v2/t", VALUES) == 0
    payloads["deviceTelemetryProtoSchema"] = f"{HEAD}message Other {{ string renamed = 1; }}"
    saved = tenant.post("/api/deviceProfile", saved).json()
    assert client.publish("v2/t", message((1, "new"))) == 0
    assert eventually(lambda: tenant.values(device.id, "renamed") == ["new"])
    assert tenant.values(device.id, "key1") == ["value1", "value1"]
    saved["profileData"]["transportConfiguration"]["transportPayloadTypeConfiguration"] = {
        "transportPayloadType": "JSON"
    }
    tenant.post("/api/deviceProfile", saved)
    assert client.publish("v2/t", message((1, "new"))) == REFUSED
    assert client.publish("v2/t", '{"a":1}') == 0


@pytest.mark.parametrize("kind", ["MQTT", "COAP"])
def test_wrong_schemas_are_refused_with_their_reason(tenant, kind):
    def refusal(field: str, schema: str) -> str:
        profile = profile_of({field: schema})
        if kind == "COAP":
            payloads = profile["profileData"]["transportConfiguration"]["transportPayloadTypeConfiguration"]
            device_type = {"coapDeviceType": "DEFAULT", "transportPayloadTypeConfiguration": payloads}
            profile["profileData"]["transportConfiguration"] = {
                "type": "COAP",
                "coapDeviceTypeConfiguration": device_type,
            }
            profile["transportType"] = "COAP"
        return tenant.post("/api/deviceProfile", profile, expect=400).json()["message"]

    attributes, call = "deviceAttributesProtoSchema", "deviceRpcRequestProtoSchema"
    prefix = "[Transport Configuration] "
    for schema, reason in [
        (
            'syntax = "proto2"; message A { optional int32 a = 1; }',
            "invalid schema syntax: proto2 for attributes proto schema provided! Only proto3 allowed!",
        ),
        (
            f'{HEAD}import "google/protobuf/any.proto"; message A {{}}',
            "invalid attributes proto schema provided! Schema imports don't support!",
        ),
        (f"{HEAD}message A {{ Unknown a = 1; }}", "failed to parse attributes proto schema due to: "),
        (HEAD + "message A {" * 2_000, "failed to parse attributes proto schema due to: Syntax error in :5:"),
        (HEAD + "// long" * 10_000, "invalid attributes proto schema provided! Schema exceeds 32768 bytes!"),
    ]:
        assert refusal(attributes, schema).startswith(prefix + reason)
    expected = "invalid rpc request proto schema provided! A message should always contains 3 fields: method, requestId and params!"
    assert refusal(call, f"{HEAD}message A {{ string method = 1; }}") == prefix + expected


def test_topics_of_a_profile_hold_with_their_wildcards(tenant, connect):
    topics = {
        "deviceTelemetryTopic": "meters/+/data/#",
        "deviceAttributesTopic": "meters/+/about",
        "deviceAttributesSubscribeTopic": "meters/+/shared",
    }
    device, client = connect(transport=topics)
    for topic in ["meters/7/data", "meters/8/data/a/b", "v2/t"]:
        assert client.publish(topic, VALUES) == 0
    assert client.publish("meters/7/about", VALUES) == 0
    unknown = 0x90
    assert client.publish("v1/devices/me/telemetry", VALUES) == unknown
    assert client.publish("meters/7/other", VALUES) == unknown
    assert eventually(lambda: len(tenant.values(device.id, "key4")) == 3)
    assert eventually(lambda: tenant.attributes(device.id, "CLIENT_SCOPE") == READ)
    assert client.subscribe(("meters/7/shared", 1), ("meters/+/shared", 1), ("meters/7", 1)) == [1, 1, 0x8F]
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
    assert client.message()[0] == ATTRIBUTES
    for name in topics:
        for wrong in ["a/#/b", "a+/b", "a/b#", 7]:
            answer = tenant.post("/api/deviceProfile", profile_of(**{name: wrong}), expect=400).json()
            assert answer["message"].startswith(f"[Transport Configuration] invalid {name} provided!")


def test_a_gateway_speaks_in_messages(tenant, connect):
    gateway, client = connect(additionalInfo={"gateway": True})
    meter, pump = unique("meter"), unique("pump")
    client.subscribe(("v1/gateway/attributes", 1), ("v1/gateway/attributes/response", 1), ("v1/gateway/rpc", 1))
    assert client.publish("v1/gateway/connect", message((1, meter), (2, "meters"))) == 0
    found = tenant.device_by_name(meter)
    assert found["type"] == "meters"
    device = found["id"]["id"]
    value = message((1, "t"), (2, 2), (5, 21.5))
    row = message((1, 1_700_000_000_000), (2, value), (2, message((1, "j"), (2, 4), (7, "{a:1}"))))
    body = message((1, message((1, meter), (3, message((1, row))))), (1, message((1, pump), (3, message((1, row))))))
    assert client.publish("v1/gateway/telemetry", body) == 0
    assert eventually(lambda: tenant.points(device, "t")) == [{"ts": 1_700_000_000_000, "value": 21.5}]
    assert tenant.values(device, "j") == [{"a": 1}]
    assert eventually(lambda: tenant.values(tenant.device_by_name(pump)["id"]["id"], "t") == [21.5])
    about = message((1, message((1, meter), (2, message((1, message((1, "fw"), (2, 3), (6, "1.0"))))))))
    assert client.publish("v1/gateway/attributes", about) == 0
    assert eventually(lambda: tenant.attributes(device, "CLIENT_SCOPE") == {"fw": "1.0"})
    assert client.publish("v1/gateway/attributes/request", message((1, 5), (2, meter), (3, True), (4, "fw"))) == 0
    topic, payload = client.message()
    answer = parse(parse(payload)[2][0])
    assert topic == "v1/gateway/attributes/response" and parse(payload)[1] == [meter.encode()]
    assert answer[1] == [5] and parse(parse(answer[2][0])[2][0])[6] == [b"1.0"]
    tenant.post(telemetry(device, "SHARED_SCOPE"), {"interval": 30})
    topic, payload = client.message()
    assert topic == "v1/gateway/attributes" and parse(payload)[1] == [meter.encode()]
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(tenant.post, f"/api/rpc/twoway/{device}", {"method": "get", "params": [1]})
        topic, payload = client.message()
        call = parse(parse(payload)[2][0])
        assert topic == "v1/gateway/rpc" and call[2] == [b"get"] and call[3] == [b"[1]"]
        assert client.publish("v1/gateway/rpc", message((1, meter), (2, call[1][0]), (3, '{"ok":true}'))) == 0
        assert reply.result().json() == {"ok": True}
    for topic in ["telemetry", "attributes", "connect", "claim", "rpc"]:
        for wrong in ["", '{"A":[{"t":1}]}', b"\x0a\x7f"]:
            assert client.publish(f"v1/gateway/{topic}", wrong) == REFUSED
    assert client.publish("v1/gateway/disconnect", message((1, meter))) == 0


def test_devices_are_provisioned_and_claimed_by_messages(shared, sysadmin, connect):
    home = create_tenancy(sysadmin)
    kind = "ALLOW_CREATE_NEW_DEVICES"
    profile = profile_of() | {"provisionType": kind, "provisionDeviceKey": unique("key")}
    profile["profileData"]["provisionConfiguration"] = {"type": kind, "provisionDeviceSecret": unique("secret")}
    saved = home.admin.post("/api/deviceProfile", profile).json()
    secret = saved["profileData"]["provisionConfiguration"]["provisionDeviceSecret"]

    def provision(name: str, secret: str, *more) -> dict:
        with PahoDevice(shared.mqtt_address, "5.0", username="provision") as client:
            client.connect()
            client.subscribe(("/provision/response", 1))
            shown = message((1, saved["provisionDeviceKey"]), (2, secret))
            client.publish("/provision/request", message((1, name), (3, shown), *more))
            return parse(client.message()[1])

    name = unique("device")
    assert provision(name, "guess") == {1: [2]}
    made = provision(name, secret, (2, 2), (4, message((3, message((1, unique("client")), (2, "user"), (3, "word"))))))
    assert made[1] == [1] and made[2] == [2] and json.loads(made[3][0])["userName"] == "user"
    assert provision(name, secret) == {1: [3]}
    other = unique("device")
    token = provision(other, secret)[3][0].decode()
    _, client = connect(who=Device("", other, token, {}))
    assert client.publish("v1/devices/me/claim", message((1, "mine"), (2, 60_000))) == 0
    claimed = home.customer_user.post(f"/api/customer/device/{other}/claim", {"secretKey": "mine"}).json()
    assert claimed["response"] == "SUCCESS"
