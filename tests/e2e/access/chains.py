"""Rule chains, their queues and events."""

from __future__ import annotations

from access.rows import AT_DEVICE, LIST, PAGE, call, fetched, nodes, row, thing
from harness.chains import queue
from harness.rest import unique

# -- rule chains --

CHAIN, NEW_CHAIN = call(ruleChainId=thing("chain")), call(ruleChainId=thing("chain", "make_chain"))
row("GET /api/ruleChain/{ruleChainId}", "- + - - -", CHAIN)
row("GET /api/ruleChain/{ruleChainId}/metadata", "- + - - -", CHAIN)
row("GET /api/ruleChain/{ruleChainId}/counters", "- + - - -", CHAIN)
row("GET /api/ruleChain/{ruleChainId}/output/labels", "- + - - -", CHAIN, shows="treasure-3")
row("GET /api/ruleChain/{ruleChainId}/output/labels/usage", "- + - - -", CHAIN, shows="calling_chain")
row(
    "GET /api/ruleChain/{ruleChainId}/versions",
    "- + - - -",
    call(query=PAGE, ruleChainId=thing("chain")),
    shows="treasure",
)
row(
    "GET /api/ruleChain/{ruleChainId}/versions/{version}",
    "- + - - -",
    call(ruleChainId=thing("chain"), version=thing("chain_version")),
)
row("POST /api/ruleChain", "- + - - o", call(lambda w, fresh: {"name": unique("chain"), "type": "CORE"}))
row("POST /api/ruleChain", "- + - - -", call(fetched("ruleChain", "chain", "make_chain", debugMode=True)))
row("POST /api/ruleChain/device/default", "- + - - o", call(lambda w, fresh: {"name": unique("chain")}))
row("DELETE /api/ruleChain/{ruleChainId}", "- + - - -", NEW_CHAIN)
row("POST /api/ruleChain/{ruleChainId}/root", "- + - - -", NEW_CHAIN)

row("POST /api/ruleChain/metadata", "- + - - -", call(nodes(thing("chain", "make_chain"))))
row("GET /api/ruleChains", "- + - - o", LIST, shows="chain")
row("GET /api/ruleChains", "- + - - o", call(query=lambda w, fresh: PAGE | {"ruleChainIds": w.chain}), shows="chain")
row("GET /api/ruleChains/list", "- + - - o", call(query=lambda w, fresh: {"ruleChainIds": w.chain}), shows="chain")
row("GET /api/ruleChains/export", "- + - - o", call(query={"limit": 100}), shows="treasure-3")
IMPORTED = {"entityType": "RULE_CHAIN", "id": "2b2b2b2b-0000-4000-8000-000000000001"}
IMPORT = {
    "ruleChains": [{"id": IMPORTED, "name": "imported", "type": "CORE", "root": False}],
    "metadata": [{"ruleChainId": IMPORTED, "firstNodeIndex": None, "nodes": [], "connections": []}],
}
row(
    "POST /api/ruleChains/import",
    "- + - - o",
    call(IMPORT, query={"overwrite": "false"}),
    shows="imported",
)
row("GET /api/ruleNode/{ruleNodeId}/debugIn", "- + - - -", call(ruleNodeId=thing("rule_node")))
row("GET /api/ruleChain/tbelEnabled", "- + - - o")
TRY = {
    "script": "return msg.a > 1;",
    "scriptType": "filter",
    "argNames": ["msg", "metadata", "msgType"],
    "msg": '{"a": 2}',
    "metadata": {},
    "msgType": "POST_TELEMETRY_REQUEST",
}
row("POST /api/ruleChain/testScript", "- + - - o", call(TRY, query={"scriptLang": "TBEL"}))
SPAN = {"startTs": 0, "endTs": 5000}
REPLAY = lambda w, fresh: SPAN | {"deviceIds": [w.device]}
row("POST /api/ruleChain/{ruleChainId}/replay", "- + - - -", call(REPLAY, ruleChainId=thing("chain")))
row("GET /api/components", "+ + - - +", call(query={"componentTypes": "FILTER,ACTION"}), shows="TbJsFilterNode")
row("GET /api/components/{componentType}", "+ + - - +", call(componentType="FILTER"), shows="TbJsFilterNode")
SAVE_CLASS = "org.thingsboard.rule.engine.telemetry.TbMsgTimeseriesNode"
row("GET /api/component/{componentDescriptorClazz}", "+ + - - +", call(componentDescriptorClazz=SAVE_CLASS))

# -- calls into chains, which all chains of the two tenants answer --

CALL = "/api/rule-engine/{entityType}/{entityId}"
row("POST /api/rule-engine/", "! + + + o", call({"a": 1}))
row(f"POST {CALL}", "- + + - -", call({"a": 1}, **AT_DEVICE))
row(f"POST {CALL}/{{timeout}}", "- + + - -", call({"a": 1}, timeout="20000", **AT_DEVICE))
row(f"POST {CALL}/{{queueName}}/{{timeout}}", "- + + - -", call({}, queueName="Main", timeout="20000", **AT_DEVICE))
row(f"POST {CALL}", "+ - - - -", call({}, entityType="TENANT", entityId=lambda w, fresh: w.other_tenant_id))

# -- queues and their statistics --

RULE_ENGINE = {"serviceType": "TB_RULE_ENGINE"}
# Those that all tenants share.
row("GET /api/queues/{queueId}", "+ + - - +", call(queueId=thing("queue")))
row("GET /api/queues/name/{queueName}", "+ + - - +", call(queueName="HighPriority"))
row("GET /api/queues", "+ + - - +", call(query=PAGE | RULE_ENGINE), shows="queue")
row("POST /api/queues", "+ - - - -", call(lambda w, fresh: queue(), query=RULE_ENGINE))
row("DELETE /api/queues/{queueId}", "+ - - - -", call(queueId=thing("queue", "make_queue")))
# Those of a tenant that has its own, which none of these is.
row("GET /api/queues/{queueId}", "- - - - -", call(queueId=thing("isolated_queue")))
row("DELETE /api/queues/{queueId}", "- - - - -", call(queueId=thing("isolated_queue")))
row("GET /api/queueStats", "o + - - o", LIST, shows="queue_stats")


stats = thing("queue_stats")

row(
    "GET /api/queueStats",
    "o + - - o",
    call(query=lambda w, fresh: PAGE | {"queueStatsIds": stats(w, fresh)}),
    shows="queue_stats",
)
row(
    "GET /api/queueStats/list",
    "o + - - o",
    call(query=lambda w, fresh: {"queueStatsIds": stats(w, fresh)}),
    shows="queue_stats",
)
row("GET /api/queueStats/{queueStatsId}", "- + - - -", call(queueStatsId=stats))
row("GET /api/usage", "- + - - o")
row("GET /api/ruleEngine/usage", "+ + - - o")

# -- events --

EVENTS = "/api/events/{entityType}/{entityId}"
OF_HOME = lambda w, fresh: PAGE | {"tenantId": w.tenant_id}
AT_CHAIN = {"entityType": "RULE_CHAIN", "entityId": thing("chain")}
AT_NODE = {"entityType": "RULE_NODE", "entityId": thing("rule_node")}
# Without a type, it is those of the life of the entity. A device has none, and a node only if it cannot run.
for at, columns, kind, shows in (
    (AT_DEVICE, "- + + - -", "LC_EVENT", ""),
    (AT_CHAIN, "- + - - -", "LC_EVENT", "STARTED"),
    (AT_NODE, "- + - - -", "DEBUG_RULE_NODE", "DEBUG_RULE_NODE"),
):
    row(f"GET {EVENTS}", columns, call(query=OF_HOME, **at), shows=shows if kind == "LC_EVENT" else "")
    row(f"GET {EVENTS}/{{eventType}}", columns, call(query=OF_HOME, eventType=kind, **at), shows=shows)
    row(f"POST {EVENTS}", columns, call({"eventType": kind}, query=OF_HOME, **at), shows=shows)
    row(f"POST {EVENTS}/clear", columns, call({"eventType": kind}, **at))
