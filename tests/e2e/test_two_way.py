"""What the platform sends to devices, and calls in both directions, over MQTT and HTTP."""

import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from harness.chains import SWITCH, Chain, script
from harness.paho_device import VERSIONS, PahoDevice
from harness.people import create_tenancy
from harness.rest import now_ms, telemetry
from harness.server import eventually

ATTRIBUTES = "v1/devices/me/attributes"
CALLS = "v1/devices/me/rpc/request/+"


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as pool:
        yield pool


@pytest.fixture
def connect(connect, device):
    """Connects a device, this test's own where none is named."""
    return lambda version="3.1.1", who=device: connect(version, username=who.token)


def http(shared, device, path: str, method: str = "GET", **more) -> requests.Response:
    more.setdefault("timeout", 90)
    return requests.request(method, f"{shared.http}/api/v1/{device.token}/{path}", **more)


def read(message) -> tuple[str, dict]:
    topic, payload = message
    return topic, json.loads(payload)


def calls(tenant, device, kind: str, body: dict, **more) -> requests.Response:
    return tenant.post(f"/api/rpc/{kind}/{device.id}", body, **more)


# -- shared attributes --


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("topic", [ATTRIBUTES, "v2/a", "v2/a/j"])
@pytest.mark.parametrize("qos", [0, 1])
def test_shared_attributes_reach_the_device_that_has_subscribed(tenant, device, connect, version, topic, qos):
    client = connect(version)
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"before": 1})
    assert client.subscribe((topic, qos)) == [qos]
    tenant.post(telemetry(device.id, "attributes/SHARED_SCOPE"), {"interval": 30, "mode": "eco"})
    assert read(client.message()) == (topic, {"interval": 30, "mode": "eco"})
    tenant.post(telemetry(device.id, "SERVER_SCOPE"), {"hidden": 1})
    tenant.delete(telemetry(device.id, "SHARED_SCOPE"), keys="mode,absent")
    assert read(client.message()) == (topic, {"deleted": ["mode"]})
    client.unsubscribe(topic)
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 31})
    assert client.silent()


def test_updates_come_in_their_order_and_none_is_lost(tenant, device, connect):
    client = connect()
    client.subscribe((ATTRIBUTES, 1))
    for value in range(150):
        tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"value": value})
    assert [read(client.message())[1]["value"] for _ in range(150)] == list(range(150))


def test_a_profile_may_name_the_filter_of_updates(tenant, shared, connect):
    transport = {"type": "MQTT", "deviceAttributesSubscribeTopic": "my/attributes"}
    profile = {
        "name": f"two-way-{uuid.uuid4()}",
        "type": "DEFAULT",
        "transportType": "MQTT",
        "profileData": {"configuration": {"type": "DEFAULT"}, "transportConfiguration": transport},
    }
    profile = tenant.post("/api/deviceProfile", profile).json()
    device = tenant.create_device(type=None, deviceProfileId=profile["id"])
    client = connect(who=device)
    assert client.subscribe(("my/attributes", 1), ("their/attributes", 1)) == [1, 128]
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
    # The topic is the one that all devices know.
    assert read(client.message()) == (ATTRIBUTES, {"interval": 30})


def test_a_long_poll_gets_the_next_update(shared, tenant, device, pool):
    assert http(shared, device, "attributes/updates?timeout=300").status_code == 408
    waiting = [pool.submit(http, shared, device, "attributes/updates?timeout=20000") for _ in range(2)]
    time.sleep(0.5)
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
    for answer in (one.result() for one in waiting):
        assert (answer.status_code, answer.json()) == (200, {"interval": 30})
    gone = pool.submit(http, shared, device, "attributes/updates?timeout=20000")
    time.sleep(0.5)
    tenant.delete(f"/api/device/{device.id}")
    answer = gone.result()
    assert (answer.status_code, answer.text) == (403, "Device was deleted!")


def test_a_device_that_does_not_read_is_cut_off_and_holds_up_nobody(shared, tenant, device, dial, connect):
    other = tenant.create_device()
    slow = dial(4)
    assert slow.connect(username=device.token) == 0
    slow.subscribe((ATTRIBUTES, 1))
    quick = connect(who=other)
    quick.subscribe((ATTRIBUTES, 1))
    # It acknowledges nothing: one hundred are on their way, and the rest waits until there is too much of it.
    for round_ in range(160):
        tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"text": "x" * 5000, "round": round_})
    tenant.post(telemetry(other.id, "SHARED_SCOPE"), {"fine": True})
    assert read(quick.message())[1] == {"fine": True}
    # What was written by then is still there to be read, and then the connection ends.
    received = 0
    while slow.receive() is not None:
        received += 1
    assert received >= 100


@pytest.fixture
def chained(sysadmin):
    """An administrator of a tenant whose chains are the test's own."""
    return create_tenancy(sysadmin).admin


@pytest.mark.parametrize(
    ("configured", "metadata", "told"), [(True, "false", True), (False, "true", True), (False, "false", False)]
)
def test_attributes_that_a_rule_chain_saves_reach_the_device_if_asked_for(
    shared, chained, connect, configured, metadata, told
):
    chain = Chain()
    turn = "return {msg: {interval: msg.wish}, metadata: {notifyDevice: '%s'}, msgType: 'POST_ATTRIBUTES_REQUEST'};"
    save = {"scope": "SHARED_SCOPE", "notifyDevice": configured, "sendAttributesUpdatedNotification": False}
    delete = {"scope": "SHARED_SCOPE", "keys": ["interval"], "notifyDevice": configured}
    chain.line(
        (script("transform.TbTransformMsgNode", "JS", turn % metadata), "Success"),
        (("telemetry.TbMsgAttributesNode", save), "Success"),
        (("telemetry.TbMsgDeleteAttributesNode", delete), "Success"),
    )
    chain.save(chained, root=True)
    device = chained.create_device()
    client = connect(who=device)
    client.subscribe((ATTRIBUTES, 1))
    http(shared, device, "telemetry", "POST", json={"wish": 17})
    if told:
        assert read(client.message()) == (ATTRIBUTES, {"interval": 17})
        assert read(client.message()) == (ATTRIBUTES, {"deleted": ["interval"]})
    else:
        assert client.silent(1.5)


# -- calls to the device --


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("family", ["v1/devices/me/rpc/{}/", "v2/r/{}/", "v2/r/{}/j/"])
def test_a_two_way_call_is_answered(tenant, device, connect, pool, version, family):
    short = family.startswith("v2")
    request, response = (
        (family.format("req"), family.format("res")) if short else map(family.format, ("request", "response"))
    )
    client = connect(version)
    assert client.subscribe((request + "+", 1)) == [1]
    for kind in ("/api/rpc", "/api/plugins/rpc"):
        call = {"method": "setGpio", "params": {"pin": 7, "value": True}}
        answer = pool.submit(tenant.post, f"{kind}/twoway/{device.id}", call)
        topic, body = read(client.message())
        assert topic.startswith(request) and body == call
        client.publish(response + topic.removeprefix(request), '{"value":true}')
        assert answer.result().json() == {"value": True}


def test_answers_of_any_kind_and_one_that_is_no_json(tenant, device, connect, pool):
    client = connect()
    client.subscribe((CALLS, 0))
    for reply, status, shown in [(b"17", 200, "17"), (b'"on"', 200, '"on"'), (b"", 200, ""), (b"{oops", 406, "")]:
        answer = pool.submit(calls, tenant, device, "twoway", {"method": "get", "params": "x"}, expect=None)
        topic, body = read(client.message())
        assert body == {"method": "get", "params": "x"}
        client.publish(topic.replace("request", "response"), reply)
        assert (answer.result().status_code, answer.result().text) == (status, shown)


def test_a_one_way_call_returns_when_it_is_sent_or_times_out(tenant, device, connect, pool):
    offline = [
        pool.submit(tenant.post, f"{path}/oneway/{device.id}", {"method": "m", "params": {}, "timeout": 1}, expect=None)
        for path in ("/api/rpc", "/api/plugins/rpc")
    ]
    assert [answer.result().status_code for answer in offline] == [504, 409]
    client = connect()
    client.subscribe((CALLS, 1))
    answer = calls(tenant, device, "oneway", {"method": "reboot", "params": {}})
    assert (answer.status_code, answer.text) == (200, "")
    assert read(client.message())[1] == {"method": "reboot", "params": {}}
    # It was sent, but nobody answers.
    silent_ones = [
        pool.submit(tenant.post, f"{path}/twoway/{device.id}", {"method": "m", "params": 1, "timeout": 1}, expect=None)
        for path in ("/api/rpc", "/api/plugins/rpc")
    ]
    assert [answer.result().status_code for answer in silent_ones] == [504, 408]


def test_a_call_waits_for_the_device_to_come(tenant, device, connect, pool):
    answer = pool.submit(calls, tenant, device, "twoway", {"method": "get", "params": {}, "timeout": 20000})
    time.sleep(0.5)
    client = connect("5.0")
    client.subscribe((CALLS, 1))
    topic, _ = client.message()
    client.publish(topic.replace("request", "response"), "{}")
    assert answer.result().json() == {}


def test_wrong_calls_are_refused(tenant, device, sysadmin):
    path = f"/api/rpc/oneway/{device.id}"
    for body in (
        "{",
        "[]",
        '{"params":{}}',
        '{"method":"m","params":{},"requestUUID":"x"}',
        '{"method":"m","timeout":"x"}',
    ):
        answer = tenant.call("POST", path, data=body, expect=400)
        assert answer.text
    tenant.call("POST", path, data=b'{"method":"' + b"m" * 70_000 + b'"}', expect=413)
    tenant.call("POST", "/api/rpc/oneway/x", json={"method": "m"}, expect=400)
    tenant.call("POST", f"/api/rpc/oneway/{uuid.uuid4()}", json={"method": "m"}, expect=404)
    sysadmin.call("POST", path, json={"method": "m"}, expect=403)


def test_calls_over_http(shared, tenant, device, pool):
    assert http(shared, device, "rpc?timeout=300").status_code == 408
    answer = pool.submit(calls, tenant, device, "twoway", {"method": "get", "params": [1]})
    got = http(shared, device, "rpc?timeout=20000")
    assert got.status_code == 200
    call = got.json()
    assert (call["method"], call["params"]) == ("get", [1])
    assert http(shared, device, f"rpc/{call['id']}", "POST", data='{"ok":1}').status_code == 200
    assert answer.result().json() == {"ok": 1}
    # Nobody waits for it any more, which is no fault of the device.
    assert http(shared, device, f"rpc/{call['id']}", "POST", data="{}").status_code == 200
    assert http(shared, device, "rpc/x", "POST", data="{}").status_code == 400


# -- persistent calls --


def persistent(tenant, device, kind="twoway", **more) -> str:
    body = {"method": "update", "params": {"to": 2}, "persistent": True, "timeout": 60000} | more
    return calls(tenant, device, kind, body).json()["rpcId"]


def stands(tenant, rpc_id: str, *statuses: str) -> dict:
    def found():
        rpc = tenant.get(f"/api/rpc/persistent/{rpc_id}").json()
        return rpc if rpc["status"] in statuses else None

    return eventually(found)


def test_a_persistent_call_goes_through_its_states(tenant, device, connect):
    rpc_id = persistent(tenant, device, additionalInfo={"why": "test"}, retries=3)
    rpc = stands(tenant, rpc_id, "QUEUED")
    assert rpc["id"] == {"entityType": "RPC", "id": rpc_id} and rpc["deviceId"]["id"] == device.id
    assert rpc["additionalInfo"] == {"why": "test"} and rpc["response"] is None
    assert rpc["request"]["body"] == {"method": "update", "params": '{"to":2}'} and rpc["request"]["retries"] == 3
    client = connect()
    client.subscribe((CALLS, 1))
    topic, body = read(client.message())
    assert body == {"method": "update", "params": {"to": 2}}
    stands(tenant, rpc_id, "DELIVERED")
    client.publish(topic.replace("request", "response"), '{"done":true}')
    assert stands(tenant, rpc_id, "SUCCESSFUL")["response"] == {"done": True}
    oneway = persistent(tenant, device, "oneway")
    client.message()
    stands(tenant, oneway, "DELIVERED")
    listed = tenant.get(
        f"/api/rpc/persistent/device/{device.id}", pageSize=10, page=0, sortProperty="createdTime", sortOrder="ASC"
    )
    assert [rpc["id"]["id"] for rpc in listed.json()["data"]] == [rpc_id, oneway]
    filtered = tenant.get(f"/api/rpc/persistent/device/{device.id}", pageSize=10, page=0, rpcStatus="SUCCESSFUL").json()
    assert (filtered["totalElements"], filtered["data"][0]["id"]["id"]) == (1, rpc_id)
    tenant.get(f"/api/rpc/persistent/device/{device.id}", pageSize=10, page=0, rpcStatus="DELETED", expect=400)
    tenant.delete(f"/api/rpc/persistent/{rpc_id}")
    tenant.get(f"/api/rpc/persistent/{rpc_id}", expect=404)


def test_a_persistent_call_expires_and_one_that_is_deleted_is_not_sent(tenant, device, connect):
    expiring = persistent(tenant, device, expirationTime=now_ms() + 2000)
    deleted = persistent(tenant, device)
    tenant.delete(f"/api/rpc/persistent/{deleted}")
    stands(tenant, expiring, "EXPIRED")
    client = connect()
    client.subscribe((CALLS, 1))
    assert client.silent()


def test_a_call_that_is_not_acknowledged_is_sent_again_on_the_next_connection(tenant, device, dial, connect):
    deaf = dial(4)
    assert deaf.connect(username=device.token) == 0
    deaf.subscribe((CALLS, 1))
    rpc_id = persistent(tenant, device, retries=1)
    stands(tenant, rpc_id, "SENT")
    stands_late = lambda: tenant.get(f"/api/rpc/persistent/{rpc_id}").json()["status"] == "TIMEOUT"
    assert eventually(stands_late)
    client = connect()
    client.subscribe((CALLS, 1))
    topic, _ = client.message()
    stands(tenant, rpc_id, "DELIVERED")
    client.publish(topic.replace("request", "response"), "1")
    assert stands(tenant, rpc_id, "SUCCESSFUL")["response"] == 1


def test_persistent_calls_survive_a_crash(make_server):
    server = make_server().start()
    tenant = server.rest()
    device = tenant.create_device()
    kept = [persistent(tenant, device, params=number) for number in range(3)]
    server.kill()
    server.start()
    tenant = server.rest()
    with PahoDevice(server.mqtt_address, username=device.token) as client:
        client.connect()
        client.subscribe((CALLS, 1))
        for number in range(3):
            topic, body = read(client.message())
            assert body["params"] == number
            client.publish(topic.replace("request", "response"), str(number))
        for number, rpc_id in enumerate(kept):
            assert stands(tenant, rpc_id, "SUCCESSFUL")["response"] == number


def test_a_call_that_was_answered_is_not_sent_again_after_a_crash(make_server, pool):
    # No checkpoint comes in between: the message of the call is processed again.
    server = make_server(env={"FIELDLINE_INGEST_CHECKPOINT_INTERVAL": "60s"}).start()
    tenant = server.rest()
    device = tenant.create_device()
    with PahoDevice(server.mqtt_address, username=device.token) as client:
        client.connect()
        client.subscribe((CALLS, 1))
        called = pool.submit(calls, tenant, device, "twoway", {"method": "open", "params": {}, "timeout": 60_000})
        topic, _ = read(client.message())
        client.publish(topic.replace("request", "response"), '"done"')
        assert called.result().json() == "done"
        server.kill()
    server.start()
    tenant = server.rest()
    with PahoDevice(server.mqtt_address, username=device.token) as client:
        client.connect()
        client.subscribe((CALLS, 1))
        calls(tenant, device, "oneway", {"method": "close", "params": {}})
        assert read(client.message())[1]["method"] == "close"


def test_the_rule_engine_is_told_how_it_stands_with_a_call(shared, chained, connect):
    chain = Chain()
    ways = chain.node(SWITCH)
    request = chain.node(("rpc.TbSendRPCRequestNode", {"timeoutInSeconds": 60}))
    chain.connect(ways, "RPC Request to Device", request)
    turn = script(
        "transform.TbTransformMsgNode",
        "JS",
        "return {msg: {[msg.status]: true}, metadata: metadata, msgType: 'POST_TELEMETRY_REQUEST'};",
    )
    note = chain.node(turn)
    save = chain.node(("telemetry.TbMsgTimeseriesNode", {"defaultTTL": 0}))
    chain.connect(note, "Success", save)
    for label in ("Queued", "Sent", "Delivered", "Successful", "Deleted"):
        chain.connect(ways, f"RPC {label}", note)
    chain.save(chained, root=True)
    device = chained.create_device()
    rpc_id = persistent(chained, device)
    client = connect(who=device)
    client.subscribe((CALLS, 1))
    topic, _ = client.message()
    stands(chained, rpc_id, "DELIVERED")
    client.publish(topic.replace("request", "response"), "{}")
    stands(chained, rpc_id, "SUCCESSFUL")
    chained.delete(f"/api/rpc/persistent/{rpc_id}")
    states = ["QUEUED", "SENT", "DELIVERED", "SUCCESSFUL", "DELETED"]
    path = f"/api/plugins/telemetry/DEVICE/{device.id}/values/timeseries"
    told = eventually(
        lambda: (found := chained.get(path, keys=",".join(states)).json()).keys() == set(states) and found
    )
    # Two may have come in the same millisecond.
    times = [told[state][0]["ts"] for state in states]
    assert times == sorted(times)


# -- calls of the device --


@pytest.fixture
def answering(chained):
    """A tenant whose rule chain answers the calls of devices with what they have sent."""
    chain = Chain()
    ways = chain.node(SWITCH)
    turn = "var answer = {method: msg.method, params: msg.params, who: metadata.deviceName}; return {msg: answer, metadata: metadata, msgType: msgType};"
    work = chain.node(script("transform.TbTransformMsgNode", "JS", turn))
    reply = chain.node(("rpc.TbSendRPCReplyNode", {}))
    chain.connect(ways, "RPC Request from Device", work).connect(work, "Success", reply)
    chain.save(chained, root=True)
    return chained


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("family", ["v1/devices/me/rpc/{}/", "v2/r/{}/", "v2/r/{}/j/"])
def test_a_device_calls_the_platform(answering, connect, version, family):
    short = family.startswith("v2")
    request, response = (
        (family.format("req"), family.format("res")) if short else map(family.format, ("request", "response"))
    )
    device = answering.create_device()
    client = connect(version, device)
    assert client.subscribe((response + "+", 1)) == [1]
    for number in range(1, 4):
        assert client.publish(f"{request}{number}", json.dumps({"method": "getTime", "params": {"n": number}})) == 0
        expected = {"method": "getTime", "params": {"n": number}, "who": device.name}
        assert read(client.message()) == (f"{response}{number}", expected)


def test_a_device_calls_the_platform_over_http(shared, answering):
    device = answering.create_device()
    answer = http(shared, device, "rpc", "POST", data='{"method":"getTime","params":{}}')
    assert (answer.status_code, answer.json()) == (200, {"method": "getTime", "params": {}, "who": device.name})
    for wrong in ("", "{", "[]", '{"params":{}}'):
        assert http(shared, device, "rpc", "POST", data=wrong).status_code == 500


def test_a_call_that_no_chain_answers_times_out_after_a_minute(shared, tenant, device, connect, pool):
    client = connect()
    client.subscribe(("v1/devices/me/rpc/response/+", 1))
    over_http = pool.submit(http, shared, device, "rpc", "POST", data='{"method":"m","params":{}}')
    client.publish("v1/devices/me/rpc/request/5", '{"method":"m","params":{}}')
    assert read(client.message(within=75)) == ("v1/devices/me/rpc/response/5", {"error": "timeout"})
    assert over_http.result().json() == {"error": "timeout"}


@pytest.mark.parametrize("payload", ["", "{", "[]", "17", '{"params":{}}'])
def test_a_wrong_call_is_refused(device, connect, payload):
    client = connect("5.0")
    assert client.publish("v1/devices/me/rpc/request/1", payload) == 0x99


def test_many_devices_are_called_at_once(shared, tenant, pool):
    devices = [tenant.create_device() for _ in range(10)]
    answered = []

    def serve(device):
        with PahoDevice(shared.mqtt_address, username=device.token) as client:
            client.connect()
            client.subscribe((CALLS, 1))
            ready.wait()
            for _ in range(20):
                topic, payload = client.message()
                client.publish(topic.replace("request", "response"), payload)

    ready = threading.Barrier(11)
    threads = [threading.Thread(target=serve, args=(device,)) for device in devices]
    for thread in threads:
        thread.start()
    ready.wait()

    def call(device, number):
        body = {"method": "echo", "params": [device.name, number]}
        answered.append(calls(tenant_of(shared), device, "twoway", body).json() == body)

    with ThreadPoolExecutor(20) as many:
        for number in range(20):
            for device in devices:
                many.submit(call, device, number)
    for thread in threads:
        thread.join()
    assert len(answered) == 200 and all(answered)


_rest = threading.local()


def tenant_of(shared):
    """An administrator for each thread."""
    if not hasattr(_rest, "tenant"):
        _rest.tenant = shared.rest()
    return _rest.tenant
