"""The administration of the publish/subscribe broker, which is off in the server for all tests: `test_broker_admin` turns it on."""

from __future__ import annotations

from access.rows import PAGE, call, row

CLIENT = {"clientId": "somebody"}
SESSION = CLIENT | {"sessionId": "00000000-0000-4000-8000-000000000001"}

row("GET /api/client-session", "! - - - -", call(query=PAGE))
row("GET /api/client-session", "! - - - -", call(query=CLIENT))
row("GET /api/v2/client-session", "! - - - -", call(query=PAGE))
row("GET /api/client-session/info", "! - - - -")
row("GET /api/client-session/details", "! - - - -", call(query=CLIENT))
row("GET /api/client-session/queues", "! - - - -", call(query=PAGE))
row("DELETE /api/client-session/remove", "! - - - -", call(query=SESSION))
row("DELETE /api/client-session/disconnect", "! - - - -", call(query=SESSION))
row("GET /api/subscription", "! - - - -", call(query=PAGE))
row("GET /api/subscription", "! - - - -", call(query=CLIENT))
row("GET /api/subscription/all", "! - - - -", call(query=PAGE))
row("POST /api/subscription", "! - - - -", call(CLIENT | {"subscriptions": []}))
row("DELETE /api/subscription/topic-trie/clear", "! - - - -")
row("GET /api/retained-msg", "! - - - -", call(query=PAGE))
row("GET /api/retained-msg", "! - - - -", call(query={"topicName": "a"}))
row("GET /api/retained-msg/v2", "! - - - -", call(query=PAGE))
row("DELETE /api/retained-msg", "! - - - -", call(query={"topicName": "a"}))
row("DELETE /api/retained-msg/topic-trie/clear", "! - - - -")
row("GET /api/timeseries/latest", "! - - - -", call(query={"entityId": "total"}))
row(
    "GET /api/timeseries/{entityId}/values",
    "! - - - -",
    call(query={"keys": "sessions", "startTs": 0, "endTs": 1}, entityId="total"),
)
row(
    "DELETE /api/timeseries/{entityId}/delete",
    "! - - - -",
    call(query={"keys": "sessions", "deleteAllDataForKeys": "true"}, entityId="total"),
)
for path in ("config", "brokers", "service/info", "cluster-info", "cluster-info/v2"):
    row(f"GET /api/app/{path}", "! - - - -")
for path in ("kafka-topics", "kafka-topics/v2", "consumer-groups", "consumer-groups/v2"):
    row(f"GET /api/app/{path}", "! - - - -", call(query=PAGE))
row("GET /api/app/listener/port", "! - - - -", call(query={"listenerName": "MQTT"}))
row("DELETE /api/app/consumer-group", "! - - - -", call(query={"groupId": "somebody"}))
row("POST /api/app/shared/subs", "! - - - -", call({"name": "a", "topicFilter": "a", "partitions": 1}))
row("GET /api/app/shared/subs", "! - - - -", call(query=PAGE))
row("GET /api/app/shared/subs", "! - - - -", call(query={"topic": "a"}))
row("GET /api/app/shared/subs/{sharedSubscriptionId}", "! - - - -", call(sharedSubscriptionId=SESSION["sessionId"]))
row("DELETE /api/app/shared/subs/{sharedSubscriptionId}", "! - - - -", call(sharedSubscriptionId=SESSION["sessionId"]))
