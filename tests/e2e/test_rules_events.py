"""What chains hear and tell besides telemetry: connections, activity, debug events, statistics, messages of their own."""

import pytest

from harness.chains import SAVE, SWITCH, Chain, counted, events, post, script, transform
from harness.paho_device import PahoDevice
from harness.people import create_tenancy
from harness.rest import now_ms, telemetry
from harness.server import SYSADMIN, eventually

TELEMETRY = "v1/devices/me/telemetry"


@pytest.fixture
def server(shared):
    return shared


@pytest.fixture
def device(rest):
    """A device that is there before the chain of the test, which else would hear of its creation."""
    return rest.create_device()


def test_a_chain_hears_when_a_device_connects_speaks_falls_silent_and_leaves(make_server):
    server = make_server(env={"FIELDLINE_ACTIVITY_CHECK_INTERVAL": "200ms"}).start()
    rest = create_tenancy(server.rest(*SYSADMIN)).admin
    device = rest.create_device()
    rest.post(telemetry(device.id, "SERVER_SCOPE"), {"inactivityTimeout": 1500})
    chain = Chain()
    switch = chain.node(SWITCH)
    # The name of the event becomes the key, what the metadata says the value.
    named = transform("JS", "{[msgType]: metadata.deviceName + ' ' + metadata.deviceType + ' ' + metadata.scope}")
    told = chain.node(named)
    for label in ("Connect Event", "Activity Event", "Inactivity Event", "Disconnect Event"):
        chain.connect(switch, label, told)
    chain.connect(told, "Success", chain.node(SAVE))
    chain.save(rest, root=True)
    expected = f"{device.name} default SERVER_SCOPE"

    def heard(name: str) -> list:
        return rest.values(device.id, name)

    with PahoDevice(server.mqtt_address, username=device.token) as connection:
        assert connection.connect() == 0
        eventually(lambda: heard("CONNECT_EVENT") == [expected])
        connection.publish(TELEMETRY, '{"a":1}')
        eventually(lambda: heard("ACTIVITY_EVENT") == [expected])
        assert heard("DISCONNECT_EVENT") == []
        eventually(lambda: heard("INACTIVITY_EVENT") == [expected])
        connection.publish(TELEMETRY, '{"a":2}')
        eventually(lambda: heard("ACTIVITY_EVENT") == [expected] * 2)
    eventually(lambda: heard("DISCONNECT_EVENT") == [expected])
    assert heard("CONNECT_EVENT") == [expected]


def test_everything_is_a_debug_event_within_the_window_and_after_it_failures_only(server, sysadmin):
    rest = create_tenancy(sysadmin, maxDebugModeDurationMinutes=10).admin
    device = rest.create_device()
    chain = Chain()
    debug = {"failuresEnabled": True, "allEnabled": True}
    chain.node(script("filter.TbJsFilterNode", "JS", "return msg.a.b > 1;"), "looks", debugSettings=debug)
    saved = chain.save(rest, root=True)

    def node() -> dict:
        return rest.get(f"/api/ruleChain/{saved['id']['id']}/metadata").json()["nodes"][0]

    until = node()["debugSettings"]["allEnabledUntil"]
    assert now_ms() + 9 * 60_000 < until <= now_ms() + 10 * 60_000, "the tenant profile says ten minutes"

    chain.nodes[0] |= {
        "id": node()["id"],
        "debugSettings": {"failuresEnabled": True, "allEnabled": False, "allEnabledUntil": now_ms() + 4_000},
    }
    chain.update(rest, saved["id"])
    ends = node()["debugSettings"]["allEnabledUntil"]

    def seen(marker: str) -> list[tuple]:
        found = [event["body"] for event in events(rest, "RULE_NODE", node()["id"]["id"], "DEBUG_RULE_NODE")]
        return sorted((body["type"], body.get("relationType") or "") for body in found if marker in body["data"])

    post(server, device, {"a": {"b": 2}, "within": 1})
    eventually(lambda: seen("within") == [("IN", ""), ("OUT", "True")])
    assert now_ms() < ends, "the machine was too slow for the window of this test"
    eventually(lambda: now_ms() > ends)
    post(server, device, {"a": {"b": 2}, "after": 1})
    post(server, device, {"failing": 1, "after": 1})
    eventually(lambda: seen("failing"))
    assert seen("after") == [("OUT", "Failure")]


def test_a_generator_makes_as_many_messages_as_it_says(server, rest, device):
    def generator(key: str, count: int) -> tuple[str, dict]:
        body = (
            f"return {{msg: {{{key}: (prevMsg.{key} || 0) + 1}}, metadata: {{}}, msgType: 'POST_TELEMETRY_REQUEST'}};"
        )
        return "debug.TbMsgGeneratorNode", {
            "msgCount": count,
            "periodInSeconds": 1,
            "originatorType": "DEVICE",
            "originatorId": device.id,
            "scriptLang": "JS",
            "jsScript": body,
        }

    chain = Chain()
    few, many, save = chain.node(generator("few", 2)), chain.node(generator("many", 4)), chain.node(SAVE)
    chain.connect(few, "Success", save).connect(many, "Success", save)
    chain.save(rest, root=True)
    eventually(lambda: rest.values(device.id, "many") == [1, 2, 3, 4])
    assert rest.values(device.id, "few") == [1, 2]


def test_messages_are_counted_for_the_tenant(server, rest, device):
    chain = Chain()
    switch = chain.node(SWITCH)
    count = chain.node(("action.TbMsgCountNode", {"interval": 1, "telemetryPrefix": "seen"}))
    chain.connect(switch, "Post telemetry", count).connect(count, "Success", chain.node(SAVE))
    chain.save(rest, root=True)
    for n in range(7):
        post(server, device, {"n": n})
    eventually(lambda: counted(rest, "seen") == 7)


def test_queues_keep_statistics_of_what_went_well_and_what_did_not(server, rest, device):
    chain = Chain()
    fails = chain.node(script("filter.TbJsFilterNode", "JS", "return msg.a.b > 1;"), "the one that fails")
    chain.connect(fails, "True", chain.node(SAVE))
    begun = now_ms()
    saved = chain.save(rest, root=True)
    for n in range(5):
        post(server, device, {"ts": 1000 + n, "values": {"a": {"b": 2}, "n": n}})
    for n in range(3):
        post(server, device, {"n": n})
    [stats] = [
        found["id"]["id"]
        for found in rest.get("/api/queueStats", pageSize=100, page=0).json()["data"]
        if found["queueName"] == "Main"
    ]

    def series(key: str) -> list:
        query = {"startTs": begun, "endTs": now_ms() + 60_000, "limit": 1000, "useStrictDataTypes": "true"}
        path = f"/api/plugins/telemetry/QUEUE_STATS/{stats}/values/timeseries"
        return [point["value"] for point in rest.get(path, keys=key, **query).json().get(key, [])]

    # They are written every few seconds.
    eventually(lambda: sum(series("totalMsgs")) >= 8 and sum(series("failedMsgs")) >= 3, within=30)
    assert sum(series("totalMsgs")) == sum(series("successfulMsgs")) + sum(series("failedMsgs"))
    assert sum(series("failedIterations")) >= 1
    assert (sum(series("timeoutMsgs")), sum(series("tmpTimeout"))) == (0, 0)
    [*_, exception] = series("ruleEngineException")
    assert "the one that fails" in str(exception) and saved["name"] in str(exception), exception
