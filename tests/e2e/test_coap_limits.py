"""What one CoAP device, or a stranger, may take of a server, and how long it waits for them."""

import contextlib
import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.chains import SWITCH, Chain
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
    RST,
    SIZE1,
    TIMEOUT_S,
    CoapPeer,
    block,
    observe,
    path,
    uint,
)
from harness.people import create_tenancy
from harness.rest import telemetry, unique
from harness.server import SYSADMIN


@pytest.fixture
def small(make_server):
    """A server with little room and patience."""
    return make_server(
        env={
            "FIELDLINE_COAP_LISTEN": "127.0.0.1:0",
            "FIELDLINE_COAP_MAX_REQUESTS": "80",
            "FIELDLINE_COAP_OBSERVER_SILENCE": "1s",
            "FIELDLINE_CALLS_SUBMIT_STRATEGY": "sequential-on-ack-from-device",
            "FIELDLINE_CALLS_ACKNOWLEDGE_TIMEOUT": "200ms",
        }
    ).start()


def test_a_device_that_sends_too_often_is_refused(shared, sysadmin):
    device = create_tenancy(sysadmin, transportDeviceTelemetryMsgRateLimit="2:600").admin.create_device()
    with CoapPeer(shared.coap_address) as peer:
        answers = [peer.ask(POST, path(device, "telemetry"), '{"a":1}') for _ in range(3)]
    assert [answer.status for answer in answers] == ["2.01", "2.01", "5.00"]
    assert b"rate limit" in answers[2].payload


def test_what_one_peer_may_leave_behind_is_bounded(make_server):
    server = make_server(env={"FIELDLINE_COAP_LISTEN": "127.0.0.1:0", "FIELDLINE_COAP_BLOCK_MEMORY": "64KiB"})
    tenant = server.start().rest()
    device = tenant.create_device()
    begin = [(BLOCK1, block(0, True, 6))]
    with CoapPeer(server.coap_address) as peer:
        statuses = [
            peer.ask(POST, f"{path(device, 'telemetry')}?n={number}", bytes(1024), options=begin).status
            for number in range(6)
        ]
        assert statuses == ["2.31"] * 4 + ["5.03"] * 2
    peers = [CoapPeer(server.coap_address) for _ in range(60)]
    statuses = {one.ask(POST, path(device, "telemetry"), bytes(1024), options=begin).status for one in peers}
    assert statuses == {"2.31", "5.03"}
    # Others are served meanwhile.
    assert peers[0].ask(POST, path(device, "telemetry"), '{"a":1}').status == "2.01"
    for one in peers:
        one.socket.close()


def test_provisioning_has_little_room_of_its_own(shared):
    with CoapPeer(shared.coap_address) as peer:
        begin = [(BLOCK1, block(0, True, 6))]
        announced = peer.ask(POST, "api/v1/provision", bytes(1024), options=[*begin, (SIZE1, uint(4097))])
        assert (announced.status, announced.option(SIZE1)) == ("4.13", 4096)
        for number in range(4):
            options = [(BLOCK1, block(number, True, 6))]
            assert peer.ask(POST, "api/v1/provision", bytes(1024), options=options).status == "2.31"
        options = [(BLOCK1, block(4, False, 6))]
        beyond = peer.ask(POST, "api/v1/provision", b"x", options=options)
        assert (beyond.status, beyond.option(SIZE1)) == ("4.13", 4096)
        whole = peer.ask(POST, "api/v1/provision", bytes(5000))
        assert (whole.status, whole.option(SIZE1)) == ("4.13", 4096)


def test_blocks_beyond_those_of_a_download_are_messages(shared, sysadmin):
    rest = create_tenancy(sysadmin, transportDeviceMsgRateLimit="2:600").admin
    device, data = rest.create_device(), random.Random(12).randbytes(5_000)
    profile = rest.get("/api/deviceProfileInfo/default").json()["id"]
    package = {"deviceProfileId": profile, "type": "FIRMWARE", "title": unique("pump"), "version": "1.0"}
    package = rest.post("/api/otaPackage", package).json()
    files = {"file": ("pump.bin", data, "application/octet-stream")}
    where = f"/api/otaPackage/{package['id']['id']}"
    rest.call("POST", where, files=files, params={"checksumAlgorithm": "SHA256"}, expect=200)
    saved = rest.post("/api/device", rest.get(f"/api/device/{device.id}").json() | {"firmwareId": package["id"]})
    with CoapPeer(shared.coap_address) as peer:

        def asked(number: int):
            return peer.ask(GET, f"fw/{device.token}", options=[(BLOCK2, block(number, False, 6))])

        # Some blocks are asked for twice, as answers get lost.
        got = b"".join(asked(number).payload for number in range(5))
        assert got == data
        assert asked(2).payload == data[2048:3072]
        refused = next(answer for answer in (asked(4) for _ in range(30)) if answer.status != "2.05")
        assert refused.status == "5.00" and b"rate limit" in refused.payload
        # What is assigned no more is not handed out any further.
        rest.post("/api/device", saved.json() | {"firmwareId": None})
        assert asked(3).status == "4.04"


def test_calls_that_wait_leave_room_for_others(small):
    tenant = create_tenancy(small.rest(*SYSADMIN)).admin
    chain = Chain()
    chain.node(SWITCH)
    chain.save(tenant, root=True)
    devices = [tenant.create_device() for _ in range(2)]
    with CoapPeer(small.coap_address) as peer:

        def refused(device, calls: int) -> int:
            for number in range(calls):
                body = '{"method":"getTime","params":{}}'
                peer.send(peer.request(POST, path(device, "rpc"), body, token=bytes([number + 1])))
            found = 0
            for _ in range(calls):
                answer = peer.receive()
                # The others are told that they wait.
                assert (answer.kind, answer.code) == (ACK, EMPTY) or answer.status == "5.03"
                found += answer.code != EMPTY
            return found

        assert refused(devices[0], 17) == 1
        assert refused(devices[1], 5) == 1, "a quarter of all"
        for device in devices:
            assert peer.ask(POST, path(device, "telemetry"), '{"a":1}').status == "2.01"


def test_an_observer_that_only_listens_is_asked_whether_it_is_there(small):
    tenant = small.rest()
    saves_power = {"type": "COAP", "clientSettings": {"powerMode": "PSM", "psmActivityTimer": 300}}
    profile = {
        "name": unique("sleepers"),
        "type": "DEFAULT",
        "transportType": "COAP",
        "profileData": {"configuration": {"type": "DEFAULT"}, "transportConfiguration": saves_power},
    }
    profile = tenant.post("/api/deviceProfile", profile).json()
    device, asleep = tenant.create_device(), tenant.create_device(type=None, deviceProfileId=profile["id"])
    with CoapPeer(small.coap_address) as peer, CoapPeer(small.coap_address) as sleeper:
        sleeper.ask(GET, path(asleep, "attributes"), options=[(OBSERVE, uint(0))])
        peer.ask(GET, path(device, "attributes"), options=[(OBSERVE, uint(0))], token=b"\x21", kind=NON)
        asked, heard = [], []

        def take(within: float) -> None:
            told = peer.receive(within)
            if (told.kind, told.code) == (CON, EMPTY):
                asked.append(told)
                peer.acknowledge(told, RST)
            else:
                heard.append(json.loads(told.payload)["value"])

        while len(asked) < 2 and len(heard) < 100:
            value = len(heard)
            tenant.post(telemetry(device.id, "SHARED_SCOPE"), {"value": value})
            while len(heard) == value:
                take(TIMEOUT_S)
            with contextlib.suppress(TimeoutError):
                take(0.1)
        assert len(asked) == 2 and heard == list(range(len(heard)))
        assert sleeper.silent(0.01), "it would not hear that, and observes when it wakes up"
        tenant.post(telemetry(asleep.id, "SHARED_SCOPE"), {"value": 1})
        sleeper.send(sleeper.request(POST, path(asleep, "telemetry"), '{"up":1}'))
        assert b'{"value":1}' in [sleeper.receive().payload for _ in range(2)]


def test_a_call_is_handed_to_an_observer_once_however_late_it_acknowledges(small):
    tenant = small.rest()
    device = tenant.create_device()
    with CoapPeer(small.coap_address) as peer, ThreadPoolExecutor(2) as pool:
        peer.ask(GET, path(device, "rpc"), options=[(OBSERVE, uint(0))], token=b"\x22")
        where = f"/api/rpc/twoway/{device.id}"
        calls = [pool.submit(tenant.post, where, {"method": "first", "params": {}})]
        first = peer.receive()
        calls.append(pool.submit(tenant.post, where, {"method": "second", "params": {}}))
        # Longer than a device may take over MQTT, and shorter than what CoAP waits for before it sends it again.
        assert peer.silent(0.9)
        peer.acknowledge(first)
        second = next(told for told in iter(peer.receive, None) if told.id != first.id)
        peer.acknowledge(second)
        told = [json.loads(message.payload) for message in (first, second)]
        assert [call["method"] for call in told] == ["first", "second"]
        assert peer.silent(0.5)
        for call in told:
            assert peer.ask(POST, path(device, f"rpc/{call['id']}"), "{}").status == "2.01"
        assert [call.result().json() for call in calls] == [{}, {}]


def test_many_observers_behind_one_address_are_all_told(shared, rest):
    """Of one peer 16 messages may wait for being acknowledged."""
    devices = {bytes([number]): rest.create_device() for number in range(20)}
    with CoapPeer(shared.coap_address) as peer:
        for token, device in devices.items():
            observe(peer, device, "attributes", token)
        for device in devices.values():
            rest.post(telemetry(device.id, "SHARED_SCOPE"), {"all": 1})
        first, told = [peer.receive() for _ in range(16)], set()
        for message in first:
            peer.acknowledge(message)
        told.update(message.token for message in first if message.payload)
        while len(told) < len(devices):
            message = peer.receive()
            assert (message.kind, message.payload) == (CON, b'{"all":1}')
            peer.acknowledge(message)
            told.add(message.token)
        assert told == set(devices)
