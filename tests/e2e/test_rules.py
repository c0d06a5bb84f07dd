"""Rule chains through the product: chains as ThingsBoard exports them, scripts, alarms, events, queues."""

import threading
import time

import pytest

from harness.chains import (
    CALL,
    SAVE,
    SWITCH,
    Chain,
    Service,
    alarms,
    change_default_profile,
    events,
    post,
    queue,
    script,
)
from harness.rest import telemetry
from harness.server import eventually


@pytest.fixture
def server(shared):
    return shared


@pytest.fixture
def device(rest):
    """A device that is there before the chain of the test, which else would hear of its creation."""
    return rest.create_device()


def test_a_new_tenant_has_the_default_chain_and_it_stores_telemetry_and_attributes(server, rest, device):
    chains = rest.get("/api/ruleChains", pageSize=10, page=0).json()["data"]
    assert [(chain["name"], chain["root"]) for chain in chains] == [("Root Rule Chain", True)]
    post(server, device, {"ts": 1_700_000_000_000, "values": {"temperature": 21.5}})
    post(server, device, {"fw": "one"}, "attributes")
    eventually(lambda: rest.points(device.id, "temperature") == [{"ts": 1_700_000_000_000, "value": 21.5}])
    eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE") == {"fw": "one"})


@pytest.mark.parametrize("lang", ["JS", "TBEL"])
def test_scripts_filter_switch_and_transform(server, rest, device, lang):
    chain = Chain()
    only = chain.node(script("filter.TbJsFilterNode", lang, "return msg.temperature > 20;"))
    switch = "if (msg.temperature > 50) { return ['hot', 'any']; } return ['any'];"
    ways = chain.node(script("filter.TbJsSwitchNode", lang, switch))
    body = "metadata.unit = 'F'; msg.fahrenheit = msg.temperature * 9 / 5 + 32; return {msg: msg, metadata: metadata, msgType: msgType};"
    turn = chain.node(script("transform.TbTransformMsgNode", lang, body))
    mark = chain.node(
        script(
            "transform.TbTransformMsgNode", lang, "return {msg: {alarm: true}, metadata: metadata, msgType: msgType};"
        )
    )
    save = chain.node(SAVE)
    chain.connect(only, "True", ways).connect(ways, "any", turn).connect(ways, "hot", mark)
    chain.connect(turn, "Success", save).connect(mark, "Success", save)
    chain.save(rest, root=True)
    for ts, temperature in ((1000, 10), (2000, 25), (3000, 60)):
        post(server, device, {"ts": ts, "values": {"temperature": temperature}})
    eventually(lambda: [point["ts"] for point in rest.points(device.id, "fahrenheit")] == [2000, 3000])
    assert [round(value) for value in rest.values(device.id, "fahrenheit")] == [77, 140]
    eventually(lambda: rest.points(device.id, "alarm") == [{"ts": 3000, "value": True}])
    assert [point["ts"] for point in rest.points(device.id, "temperature")] == [2000, 3000]


def test_a_chain_is_swapped_when_it_is_saved_and_a_wrong_one_is_refused_by_name(server, rest, device):
    keep = Chain().line((SAVE, "Success"))
    chain = keep.save(rest, root=True)
    post(server, device, {"a": 1})
    eventually(lambda: rest.values(device.id, "a") == [1])
    add = "return {msg: {b: msg.a + 1}, metadata: metadata, msgType: msgType};"
    Chain().line((script("transform.TbTransformMsgNode", "TBEL", add), "Success"), (SAVE, "Success")).update(
        rest, chain["id"]
    )
    post(server, device, {"a": 2})
    eventually(lambda: rest.values(device.id, "b") == [3])
    assert rest.values(device.id, "a") == [1]

    wrong = Chain()
    wrong.node(script("filter.TbJsFilterNode", "TBEL", "return msg.a >;"), "fetch it")
    answer = wrong.update(rest, chain["id"], expect=400)
    assert "fetch it" in answer["message"] and "tbelScript" in answer["message"], answer
    unknown = Chain()
    unknown.node(("filter.TbNoSuchNode", {}), "what is this")
    assert "what is this" in unknown.update(rest, chain["id"], expect=400)["message"]
    circle = Chain().line((SWITCH, "Other"), (SWITCH, "Other"))
    circle.connect(1, "Other", 0)
    circle.update(rest, chain["id"], expect=400)
    post(server, device, {"a": 5})
    eventually(lambda: rest.values(device.id, "b") == [3, 6])


def test_alarms_are_created_updated_and_cleared_by_nodes(server, rest, device):
    chain = Chain()
    # The chain also hears of the alarms that it raises.
    switch = chain.node(SWITCH)
    hot = chain.node(script("filter.TbJsFilterNode", "TBEL", "return msg.temperature > 50;"))
    chain.connect(switch, "Post telemetry", hot)
    details = "var details = {}; details.temperature = msg.temperature; return details;"
    alarm = {
        "alarmType": "Overheated",
        "scriptLang": "TBEL",
        "alarmDetailsBuildTbel": details,
        "alarmDetailsBuildJs": details,
    }
    create = chain.node(("action.TbCreateAlarmNode", alarm | {"severity": "MAJOR", "propagate": True}))
    clear = chain.node(("action.TbClearAlarmNode", alarm))
    chain.connect(hot, "True", create).connect(hot, "False", clear)
    chain.save(rest, root=True)

    def raised() -> list[dict]:
        return alarms(rest, device.id)

    post(server, device, {"temperature": 60})
    [first] = eventually(raised)
    assert (first["type"], first["severity"], first["status"]) == ("Overheated", "MAJOR", "ACTIVE_UNACK")
    post(server, device, {"temperature": 70})
    eventually(lambda: raised()[0]["details"] == {"temperature": 70})
    assert raised()[0]["id"] == first["id"]
    post(server, device, {"temperature": 20})
    eventually(lambda: raised()[0]["status"] == "CLEARED_UNACK")
    rest.post(f"/api/alarm/{first['id']['id']}/ack")
    assert raised()[0]["status"] == "CLEARED_ACK"
    post(server, device, {"temperature": 80})
    eventually(lambda: len(raised()) == 2)


def test_alarm_rules_of_a_device_profile_run_in_the_device_profile_node(server, rest, device):
    def rule(operation: str, limit: int, spec: dict) -> dict:
        key = {"type": "TIME_SERIES", "key": "level"}
        predicate = {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": limit}}
        condition = {"condition": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}], "spec": spec}
        return {"condition": condition, "schedule": None, "alarmDetails": "level is ${level}"}

    simple = {"type": "SIMPLE"}
    repeating = {"type": "REPEATING", "predicate": {"defaultValue": 3}}
    rules = [
        {
            "id": "low",
            "alarmType": "Low",
            "createRules": {"WARNING": rule("LESS", 20, simple), "CRITICAL": rule("LESS", 5, simple)},
            "clearRule": rule("GREATER", 50, simple),
        },
        {"id": "often", "alarmType": "Often", "createRules": {"MINOR": rule("LESS", 20, repeating)}, "clearRule": None},
    ]
    change_default_profile(rest, profileData={"alarms": rules})
    chain = Chain().line((("profile.TbDeviceProfileNode", {}), "Success"), (SAVE, "Success"))
    chain.save(rest, root=True)

    def found(kind: str) -> list[tuple]:
        return [(alarm["severity"], alarm["status"]) for alarm in alarms(rest, device.id) if alarm["type"] == kind]

    for number, level in enumerate((60, 15, 3)):
        post(server, device, {"ts": 1_700_000_000_000 + number * 1000, "values": {"level": level}})
    eventually(lambda: found("Low") == [("CRITICAL", "ACTIVE_UNACK")])
    assert found("Often") == []
    post(server, device, {"ts": 1_700_000_009_000, "values": {"level": 2}})
    eventually(lambda: found("Often") == [("MINOR", "ACTIVE_UNACK")])
    post(server, device, {"ts": 1_700_000_010_000, "values": {"level": 90}})
    eventually(lambda: found("Low") == [("CRITICAL", "CLEARED_UNACK")])
    eventually(lambda: rest.values(device.id, "level") == [60, 15, 3, 2, 90])


def test_debug_events_show_what_came_and_went(server, rest, device):
    chain = Chain()
    debug = {"debugSettings": {"failuresEnabled": True, "allEnabled": True}}
    filtering = chain.node(script("filter.TbJsFilterNode", "JS", "return msg.a.b > 1;"), "looks", **debug)
    chain.connect(filtering, "True", chain.node(SAVE))
    saved = chain.save(rest, root=True)
    node = rest.get(f"/api/ruleChain/{saved['id']['id']}/metadata").json()["nodes"][0]
    post(server, device, {"a": {"b": 2}})
    post(server, device, {"x": 1})

    def seen() -> list[dict]:
        bodies = [event["body"] for event in events(rest, "RULE_NODE", node["id"]["id"], "DEBUG_RULE_NODE")]
        return [body for body in bodies if body["msgType"] == "POST_TELEMETRY_REQUEST"]

    eventually(lambda: len(seen()) >= 4)
    kinds = sorted((body["type"], body.get("relationType") or "") for body in seen())
    assert kinds == [("IN", ""), ("IN", ""), ("OUT", "Failure"), ("OUT", "True")]
    [failure] = [body for body in seen() if body.get("error")]
    assert failure["msgType"] == "POST_TELEMETRY_REQUEST" and '"x"' in failure["data"]


def test_nested_chains_return_through_their_outputs(server, rest, device):
    inner = Chain()
    big = inner.node(script("filter.TbJsFilterNode", "TBEL", "return msg.n > 10;"))
    inner.connect(big, "True", inner.node(("flow.TbRuleChainOutputNode", {}), "Big"))
    inner.connect(big, "False", inner.node(("flow.TbRuleChainOutputNode", {}), "Small"))
    called = inner.save(rest)
    outer = Chain()
    call = outer.node(("flow.TbRuleChainInputNode", {"ruleChainId": called["id"]["id"]}))
    mark = "return {msg: {big: msg.n}, metadata: metadata, msgType: msgType};"
    outer.connect(call, "Big", outer.node(script("transform.TbTransformMsgNode", "JS", mark)))
    outer.connect(1, "Success", outer.node(SAVE))
    outer.connect(call, "Small", 2)
    outer.save(rest, root=True)
    post(server, device, {"n": 5})
    post(server, device, {"n": 50})
    eventually(lambda: rest.values(device.id, "big") == [50])
    eventually(lambda: rest.values(device.id, "n") == [5])


def test_a_call_to_a_service_carries_the_message_and_brings_the_answer(server, rest, device):
    with Service() as service:
        chain = Chain()
        switch = chain.node(SWITCH)
        call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
        chain.connect(switch, "Post telemetry", call).connect(call, "Success", chain.node(SAVE))
        chain.save(rest, root=True)
        post(server, device, {"n": 7})
        eventually(lambda: rest.values(device.id, "answered") == [42])
        assert service.received == [{"n": 7}]


def test_a_slow_service_holds_back_its_own_queue_only(server, rest, device):
    go_on = threading.Event()

    def wait(_) -> int:
        go_on.wait(60)
        return 200

    with Service(wait) as service:
        chain = Chain()
        slow = chain.node(script("filter.TbJsFilterNode", "TBEL", "return msg.slow == true;"))
        moved = chain.node(("flow.TbCheckpointNode", {"queueName": "HighPriority"}), queueName="HighPriority")
        call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
        save = chain.node(SAVE)
        chain.connect(slow, "True", moved).connect(moved, "Success", call).connect(call, "Success", save)
        chain.connect(slow, "False", save)
        chain.save(rest, root=True)
        for n in range(20):
            post(server, device, {"ts": 1000 + n, "values": {"slow": True}})
        begun = time.monotonic()
        post(server, device, {"n": 1})
        eventually(lambda: rest.values(device.id, "n") == [1])
        assert time.monotonic() - begun < 10, "the main queue waited for the slow service"
        go_on.set()
        # All of them: what fails once the service is gone is tried again for ever, and holds up everybody's queue.
        eventually(lambda: rest.values(device.id, "answered") == [42] * 20, within=30)


def test_a_queue_that_retries_gives_up_nothing(server, rest, device, sysadmin):
    refused = {"left": 3}

    def answer(_) -> int:
        if refused["left"]:
            refused["left"] -= 1
            return 503
        return 200

    retrying = queue(submit="SEQUENTIAL_BY_ORIGINATOR", processing="RETRY_FAILED")
    sysadmin.post("/api/queues", retrying, serviceType="TB_RULE_ENGINE")
    change_default_profile(rest, defaultQueueName=retrying["name"])
    with Service(answer) as service:
        chain = Chain()
        # What comes after the service is gone must not be tried again for ever.
        switch = chain.node(SWITCH)
        call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
        chain.connect(switch, "Post telemetry", call).connect(call, "Success", chain.node(SAVE))
        chain.save(rest, root=True)
        for n in range(5):
            post(server, device, {"n": n})
        eventually(lambda: len(rest.values(device.id, "answered")) == 5, within=30)
        assert len(service.received) == 8, "three were refused, and each of the five was accepted once"


def test_scripts_that_loop_for_ever_cost_their_message_and_not_their_neighbours(server, rest, device):
    other = rest.create_device()
    chain = Chain()
    which = chain.node(script("filter.TbJsFilterNode", "TBEL", "return msg.loop == true;"))
    loop = chain.node(script("filter.TbJsFilterNode", "TBEL", "while (true) { } return true;"))
    save = chain.node(SAVE)
    chain.connect(which, "True", loop).connect(which, "False", save).connect(loop, "True", save)
    chain.save(rest, root=True)
    for _ in range(5):
        post(server, device, {"loop": True})
    post(server, other, {"n": 1})
    eventually(lambda: rest.values(other.id, "n") == [1])
    assert rest.values(device.id, "loop") == []


def test_attributes_saved_by_people_reach_the_chain(server, rest, device):
    chain = Chain()
    switch = chain.node(SWITCH)
    turn = "return {msg: {seen: msg.limit}, metadata: metadata, msgType: 'POST_TELEMETRY_REQUEST'};"
    chain.connect(switch, "Attributes Updated", chain.node(script("transform.TbTransformMsgNode", "JS", turn)))
    chain.connect(1, "Success", chain.node(SAVE))
    chain.save(rest, root=True)
    rest.post(telemetry(device.id, "SERVER_SCOPE"), {"limit": 5})
    eventually(lambda: rest.values(device.id, "seen") == [5])


def test_a_calculated_field_follows_what_devices_send(server, rest, device):
    profile = rest.get("/api/deviceProfileInfo/default").json()
    argument = {"refEntityKey": {"key": "celsius", "type": "TS_LATEST"}}
    rest.post(
        "/api/calculatedField",
        {
            "entityId": profile["id"],
            "type": "SIMPLE",
            "name": "fahrenheit",
            "configuration": {
                "type": "SIMPLE",
                "arguments": {"c": argument},
                "expression": "c * 1.8 + 32",
                "output": {"type": "TIME_SERIES", "name": "fahrenheit", "decimalsByDefault": 1},
            },
        },
    )
    post(server, device, {"celsius": 21.5})
    eventually(lambda: rest.latest(device.id, "fahrenheit") == {"fahrenheit": 70.7})


def test_a_calculated_field_is_reprocessed_over_what_was_sent_before_it_was_there(server, rest, device):
    begin = 1_700_000_000_000
    for n in range(10):
        post(server, device, {"ts": begin + n * 1000, "values": {"celsius": n}})
    eventually(lambda: len(rest.values(device.id, "celsius")) == 10)
    argument = {"refEntityKey": {"key": "celsius", "type": "TS_LATEST"}}
    configuration = {
        "type": "SIMPLE",
        "arguments": {"c": argument},
        "expression": "c * 10",
        "output": {"type": "TIME_SERIES", "name": "tenfold", "decimalsByDefault": 0},
    }
    body = {"entityId": {"entityType": "DEVICE", "id": device.id}, "type": "SIMPLE", "name": "tenfold"}
    saved = rest.post("/api/calculatedField", body | {"configuration": configuration}).json()
    path = f"/api/calculatedField/{saved['id']['id']}/reprocess"
    assert rest.post(path, {"startTs": begin + 2000, "endTs": begin + 6000}).json()["status"] == "RUNNING"
    eventually(lambda: rest.get(path).json()["status"] == "COMPLETED")
    done = rest.get(path).json()
    assert (done["entities"], done["processedEntities"], done["values"], done["results"]) == (1, 1, 4, 4), done
    assert [value for value in rest.values(device.id, "tenfold") if value < 90] == [20, 30, 40, 50]


def test_a_draft_is_tried_on_what_was_sent_and_changes_nothing(server, rest, device):
    for n in range(20):
        post(server, device, {"ts": 1_700_000_000_000 + n * 1000, "values": {"n": n}})
    eventually(lambda: len(rest.values(device.id, "n")) == 20)
    [root] = rest.get("/api/ruleChains", pageSize=10, page=0).json()["data"]
    draft = Chain()
    draft.connect(
        draft.node(script("filter.TbJsFilterNode", "TBEL", "return msg.n >= 5;"), "big"), "True", draft.node(SAVE)
    )
    body = {
        "startTs": 1_700_000_000_000,
        "endTs": 1_700_000_100_000,
        "deviceIds": [device.id],
        "metadata": {
            "ruleChainId": root["id"],
            "firstNodeIndex": 0,
            "nodes": draft.nodes,
            "connections": draft.connections,
        },
    }
    report = rest.post(f"/api/ruleChain/{root['id']['id']}/replay", body).json()
    assert report["summary"]["messages"] == 20, report
    [big] = [node for node in report["nodes"] if node["name"] == "big"]
    assert (big["input"], big["output"]) == (20, {"True": 15, "False": 5}), report["nodes"]
    assert rest.values(device.id, "n") == list(range(20))
