"""Nodes that move, gather and relate messages and entities, as they work in chains of the product."""

import pytest

from harness.chains import SAVE, SWITCH, Chain, post, script, transform
from harness.live import Live
from harness.people import create_tenancy
from harness.rest import unique
from harness.server import eventually


@pytest.fixture
def server(shared):
    return shared


@pytest.fixture
def device(rest):
    """A device that is there before the chain of the test, which else would hear of its creation."""
    return rest.create_device()


def test_a_checkpoint_inside_a_nested_chain_finds_its_way_back(server, rest, device):
    inner = Chain()
    moved = inner.node(("flow.TbCheckpointNode", {}), queueName="HighPriority")
    again = inner.node(("flow.TbCheckpointNode", {}), queueName="SequentialByOriginator")
    out = inner.node(("flow.TbRuleChainOutputNode", {}), "Through")
    inner.connect(moved, "Success", again).connect(again, "Success", out)
    middle = Chain()
    call = middle.node(("flow.TbRuleChainInputNode", {"ruleChainId": inner.save(rest)["id"]["id"]}))
    turn = middle.node(transform("JS", "{middle: msg.n}"))
    middle.connect(call, "Through", turn)
    middle.connect(turn, "Success", middle.node(("flow.TbRuleChainOutputNode", {}), "Back"))
    outer = Chain()
    # What is no telemetry would fail, and a queue that tries again for ever would be held up.
    switch = outer.node(SWITCH)
    call = outer.node(("flow.TbRuleChainInputNode", {"ruleChainId": middle.save(rest)["id"]["id"]}))
    outer.connect(switch, "Post telemetry", call).connect(call, "Back", outer.node(SAVE))
    outer.save(rest, root=True)
    for n in range(10):
        post(server, device, {"ts": 1000 + n, "values": {"n": n}})
    eventually(lambda: rest.values(device.id, "middle") == list(range(10)))
    assert rest.values(device.id, "n") == []


def test_deduplication_makes_one_message_of_many(server, sysadmin):
    def gather(strategy: str, kept: dict) -> tuple:
        """Each in a tenant of its own, so that the windows of all pass together."""
        rest = create_tenancy(sysadmin).admin
        device, other = rest.create_device(), rest.create_device()
        window = {"interval": 4, "strategy": strategy, "maxPendingMsgs": 100, "maxRetries": 3}
        window["outMsgType"] = "POST_TELEMETRY_REQUEST" if strategy == "ALL" else None
        chain = Chain()
        switch = chain.node(SWITCH)
        gather = chain.node(("deduplication.TbMsgDeduplicationNode", window))
        chain.connect(switch, "Post telemetry", gather)
        sums = "count: msg.length, sum: msg.reduce((sum, one) => sum + one.msg.n, 0)"
        total = f"{{{sums}, told: Object.keys(msg[0].metadata).sort().join(',')}}"
        turn = chain.node(transform("JS", total if strategy == "ALL" else "msg"))
        chain.connect(gather, "Success", turn).connect(turn, "Success", chain.node(SAVE))
        chain.save(rest, root=True)
        for n in range(5):
            post(server, device, {"ts": 1_700_000_000_000 + n, "values": {"n": n}})
        post(server, other, {"n": 7})
        return rest, device, other, kept

    gathered = [
        gather("FIRST", {"n": 0}),
        gather("LAST", {"n": 4}),
        gather("ALL", {"count": 5, "sum": 10, "told": "deviceName,deviceType,ts"}),
    ]
    for rest, device, other, kept in gathered:
        eventually(lambda: rest.latest(device.id) == kept)
        assert [len(rest.values(device.id, key)) for key in kept] == [1] * len(kept)
        # Each originator has a window of its own.
        assert eventually(lambda: rest.latest(other.id)) != kept


def test_nodes_relate_an_originator_to_what_they_find_or_make_and_take_it_back(server, rest, device):
    hall = unique("hall")
    place = {
        "direction": "TO",
        "relationType": "Contains",
        "entityType": "ASSET",
        "entityNamePattern": "$[hall]",
        "entityTypePattern": "building",
    }
    chain = Chain()
    switch = chain.node(SWITCH)
    comes = chain.node(("filter.TbJsFilterNode", {"scriptLang": "TBEL", "tbelScript": "return msg.comes == true;"}))
    create = chain.node(
        ("action.TbCreateRelationNode", place | {"createEntityIfNotExists": True}), configurationVersion=1
    )
    delete = chain.node(
        ("action.TbDeleteRelationNode", place | {"deleteForSingleEntity": True}), configurationVersion=1
    )
    save = chain.node(SAVE)
    chain.connect(switch, "Post telemetry", comes)
    chain.connect(comes, "True", create).connect(comes, "False", delete)
    chain.connect(create, "Success", save).connect(delete, "Success", save)
    chain.save(rest, root=True)
    post(server, device, {"hall": hall, "comes": True})
    eventually(lambda: rest.values(device.id, "comes") == [True])
    asset = rest.get("/api/tenant/assets", assetName=hall).json()
    assert asset["type"] == "building"

    def related() -> list[tuple]:
        found = rest.get("/api/relations", toId=device.id, toType="DEVICE").json()
        return [(one["from"]["id"], one["type"]) for one in found]

    assert related() == [(asset["id"]["id"], "Contains")]
    post(server, device, {"hall": hall, "comes": False})
    eventually(lambda: rest.values(device.id, "comes") == [True, False])
    assert related() == []


def test_nodes_assign_an_originator_to_a_customer_that_they_make_and_take_it_back(server, rest, device):
    name = unique("customer")
    whom = {"customerNamePattern": "$[customer]", "createCustomerIfNotExists": True}
    chain = Chain()
    switch = chain.node(SWITCH)
    comes = chain.node(("filter.TbJsFilterNode", {"scriptLang": "TBEL", "tbelScript": "return msg.comes == true;"}))
    assign = chain.node(("action.TbAssignToCustomerNode", whom), configurationVersion=1)
    unassign = chain.node(("action.TbUnassignFromCustomerNode", {"customerNamePattern": ""}), configurationVersion=1)
    save = chain.node(SAVE)
    chain.connect(switch, "Post telemetry", comes)
    chain.connect(comes, "True", assign).connect(comes, "False", unassign)
    chain.connect(assign, "Success", save).connect(unassign, "Success", save)
    chain.save(rest, root=True)

    def customer() -> str:
        return rest.get(f"/api/device/info/{device.id}").json().get("customerTitle")

    post(server, device, {"customer": name, "comes": True})
    eventually(lambda: rest.values(device.id, "comes") == [True])
    assert customer() == name
    post(server, device, {"comes": False})
    eventually(lambda: rest.values(device.id, "comes") == [True, False])
    assert not customer()


@pytest.mark.parametrize("lang", ["JS", "TBEL"])
@pytest.mark.parametrize(
    ("use", "body", "expected"),
    [
        ("filter", "return msg.a > 1 && metadata.unit == 'C' && msgType == 'POST_TELEMETRY_REQUEST';", "true"),
        ("switch", "return msg.a > 1 ? ['high', 'any'] : ['any'];", '["high","any"]'),
        ("json", "return msg;", '{"a":2}'),
        ("string", "return 'a is ' + msg.a;", "a is 2"),
    ],
)
def test_scripts_are_tried_out(rest, lang, use, body, expected):
    assert tried(rest, lang, use, body) == {"output": expected, "error": ""}


@pytest.mark.parametrize("lang", ["JS", "TBEL"])
def test_a_transformation_that_is_tried_out_shows_the_whole_message(rest, lang):
    body = "msg.b = msg.a * 2; metadata.unit = 'F'; return {msg: msg, metadata: metadata, msgType: 'X'};"
    answer = tried(rest, lang, "update", body)
    assert answer["error"] == ""
    assert '"msgType":"X"' in answer["output"] and '"unit":"F"' in answer["output"], answer
    assert '"b":4' in answer["output"].replace("\\", ""), answer


@pytest.mark.parametrize("lang", ["JS", "TBEL"])
@pytest.mark.parametrize("body", ["return nothing.at.all;", "return 5;", "while (true) {}"])
def test_a_script_that_fails_when_it_is_tried_out_says_why(rest, lang, body):
    answer = tried(rest, lang, "filter", body)
    assert answer["output"] == "" and answer["error"], answer


def tried(rest, lang: str, use: str, body: str) -> dict:
    return rest.post(
        "/api/ruleChain/testScript",
        {
            "script": body,
            "scriptType": use,
            "argNames": ["msg", "metadata", "msgType"],
            "msg": '{"a": 2}',
            "metadata": {"unit": "C"},
            "msgType": "POST_TELEMETRY_REQUEST",
        },
        scriptLang=lang,
    ).json()


def test_what_is_stored_and_what_is_shown_to_sockets_are_settings_of_their_own(server, rest, device):
    def saves(node: tuple[str, dict], stored: bool, shown: bool) -> tuple[str, dict]:
        stored, shown = ({"type": "ON_EVERY_MESSAGE" if on else "SKIP"} for on in (stored, shown))
        settings = {"type": "ADVANCED", "webSockets": shown, "calculatedFields": stored}
        class_name, configuration = node
        parts = ("timeseries", "latest") if node is SAVE else ("attributes",)
        return class_name, configuration | {"processingSettings": settings | dict.fromkeys(parts, stored)}

    save_attributes = ("telemetry.TbMsgAttributesNode", {"scope": "CLIENT_SCOPE"})
    chain = Chain()
    switch = chain.node(SWITCH)
    for label, node, version in (("Post telemetry", SAVE, 1), ("Post attributes", save_attributes, 3)):
        quiet = chain.node(script("filter.TbJsFilterNode", "JS", "return msg.quiet != null;"))
        chain.connect(switch, label, quiet)
        for way, stored in (("True", True), ("False", False)):
            chain.connect(quiet, way, chain.node(saves(node, stored, not stored), configurationVersion=version))
    chain.save(rest, root=True)
    strategy = {"type": "IMMEDIATE", "saveTimeSeries": True, "saveLatest": True, "sendWsUpdate": False}
    calculated = {
        "entityId": device.json["id"],
        "type": "SIMPLE",
        "name": "doubled",
        "configuration": {
            "type": "SIMPLE",
            "arguments": {"n": {"refEntityKey": {"key": "quiet", "type": "TS_LATEST"}}},
            "expression": "n * 2",
            "output": {"type": "TIME_SERIES", "name": "doubled", "decimalsByDefault": 0, "strategy": strategy},
        },
    }
    rest.post("/api/calculatedField", calculated)
    followed = {"entityType": "DEVICE", "entityId": device.id}
    live = Live.authenticated(
        rest,
        followed | {"type": "TIMESERIES", "cmdId": 1},
        followed | {"type": "ATTRIBUTES", "cmdId": 2, "scope": "CLIENT_SCOPE"},
    )
    assert sorted(live.receive()["subscriptionId"] for _ in range(2)) == [1, 2]
    path = f"/api/plugins/telemetry/DEVICE/{device.id}"

    def attributes() -> dict:
        return {found["key"]: found["value"] for found in rest.get(f"{path}/values/attributes/CLIENT_SCOPE").json()}

    post(server, device, {"quiet": 1})
    post(server, device, {"quiet": 2}, "attributes")
    eventually(lambda: rest.values(device.id, "doubled") == [2] and attributes() == {"quiet": 2})
    post(server, device, {"ts": 1000, "values": {"loud": 3}})
    told = live.receive()
    assert (told["subscriptionId"], told["data"]) == (1, {"loud": [[1000, "3"]]})
    post(server, device, {"loud": 4}, "attributes")
    told = live.receive()
    assert (told["subscriptionId"], list(told["data"])) == (2, ["loud"])
    assert sorted(rest.get(f"{path}/keys/timeseries").json()) == ["doubled", "quiet"]
    assert attributes() == {"quiet": 2}
