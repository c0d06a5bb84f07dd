"""Protobuf payloads of device profiles over CoAP."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.chains import SWITCH, Chain, script
from harness.coap import (
    ACK,
    CON,
    CONTENT_FORMAT,
    EMPTY,
    GET,
    POST,
    CoapClient,
    CoapPeer,
    observe,
    path,
)
from harness.people import create_tenancy
from harness.protobuf import message, parse
from harness.rest import telemetry, unique
from harness.server import eventually

HEAD = 'syntax = "proto3"; '
OCTETS = 42
PAYLOADS = {
    "transportPayloadType": "PROTOBUF",
    "deviceTelemetryProtoSchema": HEAD + "message T { optional double temperature = 1; optional string mode = 2; }",
    "deviceAttributesProtoSchema": HEAD + "message A { optional string model = 1; optional int32 serial = 2; }",
    "deviceRpcRequestProtoSchema": HEAD + "message C { optional string method = 1; optional int32 requestId = 2;"
    " P params = 3; message P { optional int32 pin = 1; } }",
    "deviceRpcResponseProtoSchema": HEAD + "message R { optional bool done = 1; }",
    # Says something over MQTT alone.
    "enableCompatibilityWithJsonPayloadFormat": True,
}


def profile_of(payloads: dict | None = None, kind: str = "DEFAULT", **fields) -> dict:
    of_type = {"coapDeviceType": kind, "transportPayloadTypeConfiguration": PAYLOADS | (payloads or {})}
    return {
        "name": unique("protobuf"),
        "type": "DEFAULT",
        "transportType": "COAP",
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "COAP", "coapDeviceTypeConfiguration": of_type},
            **fields.pop("data", {}),
        },
        **fields,
    }


@pytest.fixture
def peer(shared):
    with CoapPeer(shared.coap_address) as peer:
        yield peer


@pytest.fixture
def profile(tenant):
    return tenant.post("/api/deviceProfile", profile_of()).json()


@pytest.fixture
def device(tenant, profile):
    return tenant.create_device(type=None, deviceProfileId=profile["id"])


def next_told(peer: CoapPeer, token: bytes) -> bytes:
    """The body of the next notification."""
    told = peer.receive()
    assert (told.kind, told.token, told.option(CONTENT_FORMAT)) == (CON, token, OCTETS)
    peer.acknowledge(told)
    return told.payload


def test_telemetry_and_attributes_are_messages_of_the_profile(shared, peer, tenant, device):
    values = message((1, 21.5), (2, "eco"))
    sent = CoapClient(shared.coap_address, path(device, "telemetry"), method="post", payload=values).finish()
    assert sent.codes == ["2.01"], sent.log
    assert eventually(lambda: tenant.latest(device.id) == {"temperature": 21.5, "mode": "eco"})
    assert peer.ask(POST, path(device, "attributes"), message((1, "X"), (2, 7))).status == "2.01"
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
    wanted = path(device, "attributes") + "?clientKeys=model,absent&sharedKeys=interval"

    def asked() -> dict:
        answer = peer.ask(GET, wanted)
        assert (answer.status, answer.option(CONTENT_FORMAT)) == ("2.05", OCTETS)
        return parse(answer.payload)

    found = eventually(lambda: (found := asked()) and 2 in found and 3 in found and found)
    assert found[4] == [1] and 1 not in found, "several were asked for, in a request without a number"
    assert parse(parse(found[2][0])[2][0])[6] == [b"X"]
    assert parse(parse(found[3][0])[2][0])[4] == [30]
    assert peer.ask(GET, path(device, "attributes") + "?clientKeys=absent").status == "4.04"
    # What is no message of the schema is refused, JSON with it.
    for feature in ("telemetry", "attributes", "rpc/1"):
        for wrong in (b"\x0a\x05ab", '{"temperature":1}'):
            refused = peer.ask(POST, path(device, feature), wrong)
            assert refused.status == "4.00" and refused.payload, feature


def test_schemas_are_those_of_ordinary_devices(peer, tenant):
    profile = tenant.post("/api/deviceProfile", profile_of(kind="EFENTO")).json()
    device = tenant.create_device(type=None, deviceProfileId=profile["id"])
    assert peer.ask(POST, path(device, "telemetry"), message((1, 21.5))).status == "4.00"
    assert peer.ask(POST, path(device, "telemetry"), '{"a":1}').status == "2.01"


def test_what_is_told_and_called_comes_in_messages(peer, tenant, device):
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 1})
    first = observe(peer, device, "attributes", b"\x41")
    assert (first.status, first.option(CONTENT_FORMAT)) == ("2.05", OCTETS)
    assert parse(parse(parse(first.payload)[1][0])[2][0]) == {1: [b"interval"], 2: [1], 4: [1]}
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 2})
    assert parse(parse(parse(next_told(peer, b"\x41"))[1][0])[2][0])[4] == [2]
    tenant.delete(telemetry(device.id, "SHARED_SCOPE"), keys="interval")
    assert next_told(peer, b"\x41") == message((2, "interval"))
    assert observe(peer, device, "rpc", b"\x42").status == "2.03"
    with ThreadPoolExecutor(1) as pool:
        where = f"/api/rpc/twoway/{device.id}"
        failed = tenant.post(where, {"method": "set", "params": {"pin": "x"}}).json()
        assert failed == {"error": "field `pin` takes a whole number of 32 bits"}
        answer = pool.submit(tenant.post, where, {"method": "set", "params": {"pin": 7}})
        told = parse(next_told(peer, b"\x42"))
        assert told[1] == [b"set"] and told[3] == [message((1, 7))]
        assert peer.ask(POST, path(device, f"rpc/{told[2][0]}"), message((1, True))).status == "2.01"
        assert answer.result().json() == {"done": True}


def test_observers_follow_a_saved_profile(peer, tenant, device, profile):
    observe(peer, device, "attributes", b"\x43")
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 1})
    assert 1 in parse(next_told(peer, b"\x43"))
    of_type = profile["profileData"]["transportConfiguration"]["coapDeviceTypeConfiguration"]
    of_type["transportPayloadTypeConfiguration"] = {"transportPayloadType": "JSON"}
    tenant.post("/api/deviceProfile", profile)
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 2})
    told = peer.receive()
    peer.acknowledge(told)
    assert told.payload == b'{"interval":2}' and told.option(CONTENT_FORMAT) != OCTETS
    assert peer.ask(POST, path(device, "telemetry"), '{"a":1}').status == "2.01"


def test_a_device_calls_the_platform_and_lets_itself_be_claimed(peer, sysadmin):
    home = create_tenancy(sysadmin)
    chain = Chain()
    ways = chain.node(SWITCH)
    turn = "return {msg: {asked: msg.method, with: msg.params}, metadata: metadata, msgType: msgType};"
    work = chain.node(script("transform.TbTransformMsgNode", "JS", turn))
    reply = chain.node(("rpc.TbSendRPCReplyNode", {}))
    chain.connect(ways, "RPC Request from Device", work).connect(work, "Success", reply)
    chain.save(home.admin, root=True)
    key, secret, kind = unique("key"), unique("secret"), "ALLOW_CREATE_NEW_DEVICES"
    provision = {"provisionConfiguration": {"type": kind, "provisionDeviceSecret": secret}}
    home.admin.post("/api/deviceProfile", profile_of(provisionType=kind, provisionDeviceKey=key, data=provision))
    name = unique("made")
    wish = message((1, name), (3, message((1, key), (2, secret))))
    made = peer.ask(POST, "api/v1/provision", wish)
    assert (made.status, made.option(CONTENT_FORMAT)) == ("2.01", OCTETS)
    told = parse(made.payload)
    assert told[1] == [1]
    token = told[3][0].decode()
    again = peer.ask(POST, "api/v1/provision", wish)
    assert (again.status, parse(again.payload)[1]) == ("4.00", [3])
    asked = peer.ask(POST, f"api/v1/{token}/rpc", message((1, "getTime"), (2, "[1]")))
    if (asked.kind, asked.code) == (ACK, EMPTY):
        asked = peer.receive()
        peer.acknowledge(asked)
    assert (asked.status, asked.option(CONTENT_FORMAT)) == ("2.05", OCTETS)
    assert json.loads(parse(asked.payload)[2][0]) == {"asked": "getTime", "with": [1]}
    assert peer.ask(POST, f"api/v1/{token}/claim", message((1, "mine"), (2, 60_000))).status == "2.01"
    claimed = home.customer_user.post(f"/api/customer/device/{name}/claim", {"secretKey": "mine"}).json()
    assert claimed["response"] == "SUCCESS"
