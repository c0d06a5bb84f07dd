"""The CoAP device API: with libcoap's client, and with datagrams that it would not send."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.chains import SWITCH, Chain, script
from harness.coap import (
    ACK,
    BLOCK1,
    BLOCK2,
    CON,
    EMPTY,
    GET,
    NON,
    OBSERVE,
    POST,
    PUT,
    RST,
    SIZE1,
    SIZE2,
    CoapPeer,
    Message,
    block,
    code,
    observe,
    observers,
    path,
    uint,
)
from harness.people import create_tenancy
from harness.rest import telemetry, unique
from harness.server import eventually


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def peer(shared):
    with CoapPeer(shared.coap_address) as peer:
        yield peer


# -- what devices send --


def test_libcoap_posts_telemetry_and_attributes_and_reads_them(run, tenant, device):
    for kind in ([], ["-N"]):
        sent = run(path(device, "telemetry"), *kind, method="post", payload='{"temperature":21.5}').finish()
        assert sent.codes == ["2.01"], sent.log
    assert eventually(lambda: len(tenant.values(device.id, "temperature")) == 2)
    sent = run(path(device, "attributes"), method="post", payload='{"model":"X","serial":7}').finish()
    assert sent.codes == ["2.01"], sent.log
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})

    def asked() -> dict:
        read = run(path(device, "attributes") + "?clientKeys=model,absent&sharedKeys=interval").finish()
        assert read.codes == ["2.05"], read.log
        return json.loads(read.received)

    assert eventually(lambda: asked() == {"client": {"model": "X"}, "shared": {"interval": 30}})
    assert run(path(device, "attributes") + "?clientKeys=absent").finish().codes == ["4.04"]


def test_libcoap_uploads_and_downloads_in_blocks(run, tenant, device):
    long = {f"key-{number}": "x" * 200 for number in range(30)}
    sent = run(path(device, "attributes"), "-b", "256", method="post", payload=json.dumps(long)).finish()
    assert sent.codes[-1] == "2.01", sent.log
    # What is acknowledged is durable, and can be read once the rule chain has saved it.
    assert eventually(lambda: tenant.attributes(device.id, "CLIENT_SCOPE") == long)
    for size in ("64", "1024"):
        read = run(path(device, "attributes"), "-b", size).finish()
        assert json.loads(read.received) == {"client": long}, read.log
    # Shorter than a block, and an answer longer than a datagram without being asked for blocks.
    read = run(path(device, "attributes")).finish()
    assert json.loads(read.received) == {"client": long}, read.log
    too_large = run(path(device, "telemetry"), method="post", payload=json.dumps({"a": "x" * 70_000})).finish()
    assert too_large.codes == ["4.13"], too_large.log


def test_what_is_refused_says_why(peer, device, shared):
    before = shared.metrics()
    for method, target, payload, status in [
        (POST, path(device, "telemetry"), "{oops", "4.00"),
        (POST, path(device, "telemetry"), "", "4.00"),
        (POST, path(device, "attributes"), "[]", "4.00"),
        (POST, path(device, "rpc/1"), "17", "4.00"),
        (POST, path(device, "rpc"), '{"params":{}}', "4.00"),
        (POST, path(device, "weather"), "{}", "4.00"),
        (POST, "api/v1/nobody/telemetry", '{"a":1}', "4.01"),
        (POST, "api/v1/telemetry", '{"a":1}', "4.01"),
        (GET, path(device, "telemetry"), "", "4.00"),
        (GET, path(device, "rpc"), "", "4.00"),
        (GET, "weather", "", "4.04"),
        (PUT, path(device, "telemetry"), '{"a":1}', "4.05"),
        (POST, "api/v1/provision", '{"provisionDeviceKey":"k","provisionDeviceSecret":"s"}', "4.00"),
        (POST, "api/v1/provision", "[]", "4.00"),
    ]:
        answer = peer.ask(method, target, payload)
        assert answer.status == status, (target, payload, answer)
        assert status != "4.01" or answer.payload == b"", "a stranger gets no more than it has sent"
    assert b"expected" in peer.ask(POST, path(device, "telemetry"), "[17]").payload
    after = shared.metrics()
    for name in ("rejected_messages", "refused_logins"):
        sample = f'fieldline_transport_{name}_total{{transport="coap"}}'
        assert after[sample] > before[sample]


def test_broken_and_strange_datagrams_are_ignored_or_reset(peer, tenant, device):
    for ignored in (
        b"",
        b"\x40",
        b"\x80\x01\x00\x01",
        b"\x51\x01\x00\x01",
        Message(NON, EMPTY, 9),
        Message(ACK, EMPTY, 9),
    ):
        peer.send(ignored)
    for reset in (
        Message(CON, EMPTY, 5),
        b"\x49\x01\x00\x05" + bytes(9),
        b"\x40\x01\x00\x05\xff",
        b"\x40\x01\x00\x05\xbd",
        b"\x40\x00\x00\x05\x01",
        Message(CON, code("2.05"), 5, b"\x01"),
    ):
        peer.send(reset)
        answer = peer.receive()
        assert (answer.kind, answer.code, answer.id) == (RST, EMPTY, 5), reset
    unknown = (9999, b"x")
    assert peer.ask(POST, path(device, "telemetry"), '{"no":1}', options=[unknown]).status == "4.02"
    assert peer.ask(GET, path(device, "attributes"), options=[(35, b"coap://else")]).status == "5.05"
    peer.send(peer.request(POST, path(device, "telemetry"), '{"no":1}', options=[unknown], kind=NON))
    assert peer.ask(POST, path(device, "telemetry"), '{"yes":1}', options=[(9998, b"x")]).status == "2.01"
    assert peer.silent()
    assert eventually(lambda: tenant.values(device.id, "yes")) == [1]
    assert tenant.values(device.id, "no") == []


def test_a_repeated_message_is_taken_once_and_answered_as_before(peer, tenant, device):
    message = peer.request(POST, path(device, "telemetry"), '{"once":1}')
    answers = []
    for _ in range(3):
        peer.send(message)
        answers.append(peer.receive())
    assert {answer.encode() for answer in answers} == {answers[0].encode()} and answers[0].status == "2.01"
    peer.ask(POST, path(device, "telemetry"), '{"once":2}')
    assert eventually(lambda: sorted(tenant.values(device.id, "once")) == [1, 2])


def test_blocks_that_do_not_fit_together_are_refused(peer, tenant, device):
    def upload(number: int, more: bool, payload: bytes, exponent: int = 0, **options) -> Message:
        sizes = [(SIZE1, uint(options["size"]))] if "size" in options else []
        return peer.ask(
            POST, path(device, "telemetry"), payload, options=[(BLOCK1, block(number, more, exponent)), *sizes]
        )

    body = b'{"blocks":"' + b"y" * 40 + b'"}'
    parts = [body[at : at + 16] for at in range(0, len(body), 16)]
    assert upload(1, True, parts[1]).status == "4.08"
    assert upload(0, True, b"short").status == "4.00"
    assert upload(0, True, b"x" * 16, 7).status == "4.00"
    refused = upload(0, True, parts[0], size=65_537)
    assert (refused.status, refused.option(SIZE1)) == ("4.13", 65_536)
    first = upload(0, True, parts[0])
    assert (first.status, first.option(BLOCK1)) == ("2.31", 0x08)
    # The size may change on the way: what counts is where a block begins.
    middle = peer.ask(POST, path(device, "telemetry"), parts[1], options=[(BLOCK1, block(1, True, 0))])
    assert middle.status == "2.31"
    last = peer.ask(POST, path(device, "telemetry"), body[32:], options=[(BLOCK1, block(1, False, 1))])
    assert (last.status, last.option(BLOCK1)) == ("2.01", 0x11)
    assert eventually(lambda: tenant.values(device.id, "blocks")) == ["y" * 40]
    # Nobody else's blocks, and none of a stranger.
    stranger = peer.ask(POST, "api/v1/nobody/telemetry", parts[0], options=[(BLOCK1, block(0, True, 0))])
    assert stranger.status == "4.01"


def test_a_response_comes_in_the_blocks_that_are_asked_for(peer, tenant, device):
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"text": "z" * 100})
    whole = peer.ask(GET, path(device, "attributes") + "?sharedKeys=text").payload
    got = b""
    for number in range(4):
        wish = [(BLOCK2, block(number, False, 1))]
        answer = peer.ask(GET, path(device, "attributes") + "?sharedKeys=text", options=wish)
        assert (answer.status, answer.option(SIZE2)) == ("2.05", len(whole))
        assert answer.option(BLOCK2) == number << 4 | (number < 3) << 3 | 1
        got += answer.payload
    assert got == whole
    beyond = peer.ask(GET, path(device, "attributes") + "?sharedKeys=text", options=[(BLOCK2, block(4, False, 1))])
    assert beyond.status == "4.00"
    assert peer.ask(POST, path(device, "rpc"), options=[(BLOCK2, block(1, False, 1))]).status == "4.08"


# -- observing --


def test_libcoap_observes_shared_attributes(run, shared, tenant, device):
    before = observers(shared)
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 1})
    client = run(path(device, "attributes"), "-s", "2")
    assert eventually(lambda: client.received) == '{"interval":1}\n'
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 2})
    assert eventually(lambda: client.received.count("\n") == 2)
    tenant.delete(telemetry(device.id, "SHARED_SCOPE"), keys="interval")
    client.finish()
    lines = [json.loads(line) for line in client.received.splitlines()]
    assert lines[:3] == [{"interval": 1}, {"interval": 2}, {"deleted": ["interval"]}], client.log
    # It has ended the observation without waiting for the answer.
    assert eventually(lambda: observers(shared) == before)


def test_an_observation_is_acknowledged_replaced_and_ended(shared, peer, tenant, device):
    def change(value: int) -> None:
        tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"value": value})

    change(0)
    first = observe(peer, device, "attributes")
    assert (first.status, first.payload) == ("2.05", b'{"value":0}') and first.option(OBSERVE) is not None
    change(1)
    told = peer.receive()
    assert (told.kind, told.token, told.payload) == (CON, b"\x21", b'{"value":1}')
    assert told.option(OBSERVE) > first.option(OBSERVE)
    # The next one waits until this one has arrived; it is sent again until then.
    change(2)
    again = peer.receive()
    assert again.encode() == told.encode()
    peer.acknowledge(told)
    second = peer.receive()
    assert second.payload == b'{"value":2}' and second.option(OBSERVE) > told.option(OBSERVE)
    peer.acknowledge(second)
    with CoapPeer(shared.coap_address) as other:
        before = observers(shared)
        observe(other, device, "attributes", b"\x22", NON)
        ended = peer.receive()
        assert (ended.status, ended.token, ended.option(OBSERVE)) == ("2.02", b"\x21", None)
        change(3)
        told = other.receive()
        assert (told.kind, told.token, told.payload) == (NON, b"\x22", b'{"value":3}')
        other.acknowledge(told, RST)
        assert eventually(lambda: observers(shared) == before - 1)
        change(4)
        assert other.silent() and peer.silent(0.05)
        # Who asks for the end of an observation that there is not is answered as anybody.
        assert observe(other, device, "attributes", b"\x22", register=False).status == "2.05"
        observe(other, device, "attributes", b"\x23")
        assert observe(other, device, "attributes", b"\x23", register=False).status == "2.02"
        change(5)
        assert other.silent()


def test_a_device_that_observes_anew_from_elsewhere_gets_what_was_on_its_way(shared, pool, rest):
    device = rest.create_device()
    call = {"method": "set", "params": {}, "timeout": 20_000}
    with CoapPeer(shared.coap_address) as former, CoapPeer(shared.coap_address) as now:
        observe(former, device, "rpc")
        answer = pool.submit(rest.post, f"/api/rpc/twoway/{device.id}", call)
        lost = former.receive()
        # It has another address after a restart, and nobody acknowledges what went to the former one.
        observe(now, device, "rpc", b"\x22")
        told = now.receive()
        assert (told.kind, told.token, told.payload) == (CON, b"\x22", lost.payload)
        now.acknowledge(told)
        number = json.loads(told.payload)["id"]
        assert now.ask(POST, path(device, f"rpc/{number}"), '{"ok":true}').status == "2.01"
        assert answer.result().json() == {"ok": True}


def test_an_observer_is_told_when_the_device_is_deleted_or_the_server_stops(make_server):
    server = make_server(env={"FIELDLINE_COAP_LISTEN": "127.0.0.1:0"}).start()
    tenant = server.rest()
    devices = [tenant.create_device() for _ in range(2)]
    with CoapPeer(server.coap_address) as peer:
        for number, device in enumerate(devices):
            observe(peer, device, "attributes", bytes([number + 1]))
        tenant.delete(f"/api/device/{devices[0].id}")
        assert (peer.receive().status, peer.ask(POST, path(devices[0], "telemetry"), '{"a":1}').status) == (
            "4.01",
            "4.01",
        )
        assert peer.ask(POST, path(devices[1], "telemetry"), '{"a":1}').status == "2.01"
        server.stop()
        ended = peer.receive()
        assert (ended.status, ended.token) == ("5.03", b"\x02")
    # Acknowledged before the stop, and there after it.
    server.start()
    assert eventually(lambda: server.rest().values(devices[1].id, "a")) == [1]
    with CoapPeer(server.coap_address) as peer:
        assert peer.ask(POST, path(devices[1], "telemetry"), '{"a":2}').status == "2.01"
        server.kill()
    server.start()
    assert eventually(lambda: sorted(server.rest().values(devices[1].id, "a")) == [1, 2])


def test_what_is_for_a_device_that_sleeps_waits_until_it_is_heard(peer, pool, tenant):
    settings = {"powerMode": "PSM", "psmActivityTimer": 300}
    transport = {"type": "COAP", "clientSettings": settings}
    profile = {
        "name": unique("sleepers"),
        "type": "DEFAULT",
        "transportType": "COAP",
        "profileData": {"configuration": {"type": "DEFAULT"}, "transportConfiguration": transport},
    }
    profile = tenant.post("/api/deviceProfile", profile).json()
    device = tenant.create_device(type=None, deviceProfileId=profile["id"])
    observe(peer, device, "attributes", b"\x31")
    observe(peer, device, "rpc", b"\x32")
    assert peer.silent(0.4)
    call = pool.submit(tenant.post, f"/api/rpc/twoway/{device.id}", {"method": "wake", "params": {}})
    assert peer.silent(0.3)
    tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30})
    assert peer.silent(0.3)
    peer.send(peer.request(POST, path(device, "telemetry"), '{"up":1}'))
    received = [peer.receive(), peer.receive()]
    told = next(message for message in received if message.kind == CON)
    assert told.token == b"\x32" and json.loads(told.payload)["method"] == "wake"
    peer.acknowledge(told)
    update = peer.receive()
    assert (update.token, update.payload) == (b"\x31", b'{"interval":30}')
    peer.acknowledge(update)
    assert peer.ask(POST, path(device, f"rpc/{json.loads(told.payload)['id']}"), '{"awake":true}').status == "2.01"
    assert call.result().json() == {"awake": True}


# -- calls --


def test_calls_to_the_device(run, peer, pool, tenant, device):
    client = run(path(device, "rpc"), "-s", "15")
    call = {"method": "setGpio", "params": {"pin": 7}}
    answer = pool.submit(tenant.post, f"/api/rpc/twoway/{device.id}", call)
    got = json.loads(eventually(lambda: client.received.strip()))
    assert (got["method"], got["params"]) == ("setGpio", {"pin": 7})
    done = run(path(device, f"rpc/{got['id']}"), method="post", payload='{"done":true}').finish()
    assert done.codes == ["2.01"], done.log
    assert answer.result().json() == {"done": True}
    client.end()
    # A newer observation takes its place, and a persistent call is delivered when it is acknowledged.
    begun = observe(peer, device, "rpc")
    assert (begun.status, begun.payload) == ("2.03", b"")
    body = {"method": "update", "params": {}, "persistent": True, "timeout": 60_000}
    stored = tenant.post(f"/api/rpc/twoway/{device.id}", body).json()["rpcId"]
    status = lambda: tenant.get(f"/api/rpc/persistent/{stored}").json()["status"]
    told = peer.receive()
    assert eventually(lambda: status() == "SENT")
    peer.acknowledge(told)
    assert eventually(lambda: status() == "DELIVERED")
    assert peer.ask(POST, path(device, f"rpc/{json.loads(told.payload)['id']}"), '{"v":2}').status == "2.01"
    assert eventually(lambda: status() == "SUCCESSFUL")


def test_a_call_of_the_device_is_answered_apart_when_that_takes_long(run, shared, sysadmin):
    tenant = create_tenancy(sysadmin).admin
    chain = Chain()
    ways = chain.node(SWITCH)
    turn = "return {msg: {method: msg.method, who: metadata.deviceName}, metadata: metadata, msgType: msgType};"
    work = chain.node(script("transform.TbTransformMsgNode", "JS", turn))
    delay = chain.node(("delay.TbMsgDelayNode", {"periodInSeconds": 1, "maxPendingMsgs": 10}))
    reply = chain.node(("rpc.TbSendRPCReplyNode", {}))
    chain.connect(ways, "RPC Request from Device", work)
    chain.connect(work, "Success", delay).connect(delay, "Success", reply)
    chain.save(tenant, root=True)
    device = tenant.create_device()
    expected = {"method": "getTime", "who": device.name}
    client = run(path(device, "rpc"), method="post", payload='{"method":"getTime","params":{}}').finish()
    assert client.codes == ["2.05"] and json.loads(client.received) == expected, client.log
    with CoapPeer(shared.coap_address) as peer:
        message = peer.request(POST, path(device, "rpc"), '{"method":"getTime","params":{}}')
        peer.send(message)
        taken = peer.receive()
        assert (taken.kind, taken.code, taken.id) == (ACK, EMPTY, message.id)
        answer = peer.receive()
        assert (answer.kind, answer.status, answer.token) == (CON, "2.05", message.token)
        assert json.loads(answer.payload) == expected
        peer.acknowledge(answer)


# -- coming to the platform --


def test_a_device_is_provisioned_and_claimed(run, shared, sysadmin):
    home = create_tenancy(sysadmin)
    key, secret = unique("key"), unique("secret")
    provision = {"type": "ALLOW_CREATE_NEW_DEVICES", "provisionDeviceSecret": secret}
    profile = {
        "name": unique("profile"),
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "provisionType": "ALLOW_CREATE_NEW_DEVICES",
        "provisionDeviceKey": key,
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "DEFAULT"},
            "provisionConfiguration": provision,
        },
    }
    home.admin.post("/api/deviceProfile", profile)
    name = unique("made")
    wish = {"deviceName": name, "provisionDeviceKey": key, "provisionDeviceSecret": secret}
    made = run("api/v1/provision", method="post", payload=json.dumps(wish)).finish()
    assert made.codes == ["2.01"], made.log
    token = json.loads(made.received)["credentialsValue"]
    allowed = run(f"api/v1/{token}/claim", method="post", payload='{"secretKey":"s","durationMs":60000}').finish()
    assert allowed.codes == ["2.01"], allowed.log
    claimed = home.customer_user.post(f"/api/customer/device/{name}/claim", {"secretKey": "s"}).json()
    assert claimed["response"] == "SUCCESS"
    # Whoever has one already is told, with the same shape.
    with CoapPeer(shared.coap_address) as peer:
        again = peer.ask(POST, "api/v1/provision", json.dumps(wish))
    assert (again.status, json.loads(again.payload)["status"]) == ("4.00", "FAILURE")


# -- updates --


def test_libcoap_downloads_firmware_and_software(run, peer, sysadmin):
    rest = create_tenancy(sysadmin).admin
    device, data = rest.create_device(), random.Random(11).randbytes(150_001)
    for kind, feature, field in [("FIRMWARE", "fw", "firmwareId"), ("SOFTWARE", "sw", "softwareId")]:
        assert peer.ask(GET, f"{feature}/{device.token}").status == "4.04"
        profile = rest.get("/api/deviceProfileInfo/default").json()["id"]
        package = {"deviceProfileId": profile, "type": kind, "title": unique("pump"), "version": "1.0"}
        package = rest.post("/api/otaPackage", package).json()
        files = {"file": ("pump.bin", data, "application/octet-stream")}
        path = f"/api/otaPackage/{package['id']['id']}"
        rest.call("POST", path, files=files, params={"checksumAlgorithm": "SHA256"}, expect=200)
        rest.post("/api/device", rest.get(f"/api/device/{device.id}").json() | {field: package["id"]})
        named = f"{feature}/{device.token}?title={package['title']}&version=1.0"
        got = run(named, "-b", "1024", lines=False, wait=60).finish(60)
        assert got.output.read_bytes() == data, got.log[-2000:]
        # A chunk that is no multiple of a block, the one at the end, and one behind it.
        chunk = run(f"{named}&size=70000&chunk=1", "-b", "512", lines=False).finish()
        assert chunk.output.read_bytes() == data[70_000:140_000], chunk.log[-2000:]
        assert peer.ask(GET, f"{named}&size=150000&chunk=1").payload == data[150_000:]
        assert peer.ask(GET, f"{named}&size=150000&chunk=2").payload == b""
        for target in (f"{named}x", f"{named}&size=x", f"{feature}/{device.token}?title=other"):
            assert peer.ask(GET, target).status == "4.00", target
        assert peer.ask(POST, f"{feature}/{device.token}", "x").status == "4.05"
        assert peer.ask(GET, f"{feature}/nobody").status == "4.01"
