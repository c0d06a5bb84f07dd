"""Rows of the table for assets, views, relations, alarms, calculated fields, rule chains, queues and events.

The columns are those of `access_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.chains import SAVE, Chain, script
from harness.people import activated
from harness.rest import NULL_ID, Rest, unique

ROWS: list[tuple[str, str, Callable[[Any, bool], dict]]] = []
"""Endpoint, columns, and what makes the parts of the request."""


def row(endpoint: str, columns: str, make: Callable[[Any, bool], dict] | None = None) -> None:
    ROWS.append((endpoint, columns, make or (lambda w, fresh: {})))


class Things:
    """What else the tenant has."""

    tenant: Rest
    sysadmin: Rest
    other: Rest
    device: str
    customer_id: str

    def make_all(self) -> None:
        self.asset_profile = self.make_asset_profile()
        self.asset = self.make_asset()
        self.view = self.make_view()
        self.relation = self.relate(self.asset, self.device)
        self.tenant.post("/api/relation", relation(self.asset, "ENTITY_VIEW", self.view))
        self.alarm = self.make_alarm()
        self.comment = self.make_comment(self.alarm)
        self.field = self.make_field()
        self.alarm_rule = self.make_alarm_rule()
        self.chain = self.make_chain()
        self.rule_node = self.node_of(self.chain)
        self.queue = self.make_queue()
        self.isolated = self.make_isolated_tenant()
        self.isolated_queue = self.queues(self.isolated)["Main"]
        self.unassigned = self.tenant.create_device(unique("treasure")).id
        self.make_all_of_other()

    def make_all_of_other(self) -> None:
        """What the other tenant's administrator has to smuggle with."""
        self.other_device = self.other.create_device().id
        asset = {"name": unique("asset"), "type": "default"}
        self.other_asset = self.other.post("/api/asset", asset).json()["id"]["id"]
        view = entity_view(self.other_device, name=unique("view"))
        self.other_view = self.other.post("/api/entityView", view).json()["id"]["id"]
        other_alarm = alarm(self.other_device, type=unique("alarm"))
        self.other_alarm = self.other.post("/api/alarm", other_alarm).json()["id"]["id"]
        chain = Chain()
        chain.node(SAVE)
        self.other_chain = chain.save(self.other)["id"]["id"]

    def make_asset_profile(self) -> str:
        return self.tenant.post("/api/assetProfile", {"name": unique("treasure")}).json()["id"]["id"]

    def make_asset(self) -> str:
        asset = self.tenant.post("/api/asset", {"name": unique("treasure"), "type": "default"}).json()["id"]["id"]
        self.tenant.post(f"/api/customer/{self.customer_id}/asset/{asset}")
        return asset

    def make_view(self) -> str:
        view = self.tenant.post("/api/entityView", entity_view(self.device)).json()["id"]["id"]
        self.tenant.post(f"/api/customer/{self.customer_id}/entityView/{view}")
        return view

    def relate(self, asset: str, device: str) -> dict:
        return self.tenant.post("/api/v2/relation", relation(asset, "DEVICE", device)).json()

    def make_relation(self) -> dict:
        return self.relate(self.make_asset(), self.make_device())

    def make_alarm(self) -> str:
        return self.tenant.post("/api/alarm", alarm(self.device)).json()["id"]["id"]

    def make_comment(self, alarm_id: str, who: Rest | None = None) -> str:
        comment = {"comment": {"text": "treasure"}}
        return (who or self.tenant).post(f"/api/alarm/{alarm_id}/comment", comment).json()["id"]["id"]

    def make_field(self) -> str:
        return self.tenant.post("/api/calculatedField", field(self.device)).json()["id"]["id"]

    def make_alarm_rule(self) -> str:
        return self.tenant.post("/api/alarm/rule", alarm_rule(self.device)).json()["id"]["id"]

    def make_chain(self) -> str:
        chain = Chain()
        chain.node(SAVE, "treasure")
        return chain.save(self.tenant, unique("treasure"))["id"]["id"]

    def node_of(self, chain: str) -> str:
        return self.tenant.get(f"/api/ruleChain/{chain}/metadata").json()["nodes"][0]["id"]["id"]

    def make_queue(self) -> str:
        return self.sysadmin.post("/api/queues", queue(), serviceType="TB_RULE_ENGINE").json()["id"]["id"]

    def make_isolated_tenant(self) -> Rest:
        """The administrator of a tenant that has queues of its own."""
        profile = {
            "name": unique("isolated"),
            "isolatedTbRuleEngine": True,
            "profileData": {"configuration": {"type": "DEFAULT"}, "queueConfiguration": [queue("Main")]},
        }
        profile = self.sysadmin.post("/api/tenantProfile", profile).json()
        tenant = {"title": unique("treasure"), "tenantProfileId": profile["id"]}
        return activated(self.sysadmin, "TENANT_ADMIN", tenant=self.sysadmin.post("/api/tenant", tenant).json())

    def queues(self, who: Rest) -> dict[str, str]:
        found = who.get("/api/queues", serviceType="TB_RULE_ENGINE", **PAGE).json()["data"]
        return {found_queue["name"]: found_queue["id"]["id"] for found_queue in found}

    def snapshot_of_all(self) -> dict[str, Any]:
        """Everything of this that a refused call could have changed."""
        tenant = self.tenant
        ends = {"fromId": self.asset, "fromType": "ASSET"}
        return {
            "asset": tenant.get(f"/api/asset/{self.asset}").json(),
            "asset profile": tenant.get(f"/api/assetProfile/{self.asset_profile}").json(),
            "view": tenant.get(f"/api/entityView/{self.view}").json(),
            "relations": sorted(end["to"]["id"] for end in tenant.get("/api/relations", **ends).json()),
            "to customer": tenant.get("/api/relations", toId=self.customer_id, toType="CUSTOMER").json(),
            "alarm": tenant.get(f"/api/alarm/{self.alarm}").json(),
            "alarms": tenant.get(f"/api/alarm/DEVICE/{self.unassigned}", **PAGE).json(),
            "comments": tenant.get(f"/api/alarm/{self.alarm}/comment", **PAGE).json(),
            "field": tenant.get(f"/api/calculatedField/{self.field}").json(),
            "alarm rule": tenant.get(f"/api/alarm/rule/{self.alarm_rule}").json(),
            "chain": tenant.get(f"/api/ruleChain/{self.chain}").json(),
            "nodes": tenant.get(f"/api/ruleChain/{self.chain}/metadata").json(),
            "chains": tenant.get("/api/ruleChains", **PAGE).json()["totalElements"],
            "queues": self.queues(self.sysadmin),
            "isolated": self.queues(self.isolated),
        }

    def secrets_of_all(self) -> list[str]:
        return [
            self.asset,
            self.view,
            self.alarm,
            self.field,
            self.chain,
            self.rule_node,
            self.isolated_queue,
            self.unassigned,
            self.alarm_rule,
            self.comment,
        ]


PAGE = {"pageSize": 100, "page": 0}


def entity_view(device: str, **fields) -> dict:
    return {
        "name": unique("treasure"),
        "type": "default",
        "entityId": {"entityType": "DEVICE", "id": device},
        "keys": {"timeseries": ["secret"], "attributes": {"cs": [], "ss": ["secret"], "sh": []}},
        "startTimeMs": 0,
        "endTimeMs": 0,
    } | fields


def relation(asset: str, kind: str, target: str) -> dict:
    return {
        "from": {"entityType": "ASSET", "id": asset},
        "to": {"entityType": kind, "id": target},
        "type": "Contains",
        "typeGroup": "COMMON",
    }


def alarm(device: str, **fields) -> dict:
    return {
        "type": unique("treasure"),
        "originator": {"entityType": "DEVICE", "id": device},
        "severity": "MAJOR",
        "cleared": False,
        "acknowledged": False,
    } | fields


def field(device: str, source: str | None = None) -> dict:
    argument = {"refEntityKey": {"key": "celsius", "type": "TS_LATEST"}}
    if source:
        argument["refEntityId"] = {"entityType": "DEVICE", "id": source}
    return {
        "entityId": {"entityType": "DEVICE", "id": device},
        "type": "SIMPLE",
        "name": unique("treasure"),
        "configuration": {
            "type": "SIMPLE",
            "arguments": {"c": argument},
            "expression": "c * 2",
            "output": {"type": "TIME_SERIES", "name": "doubled", "decimalsByDefault": 1},
        },
    }


def alarm_rule(device: str, source: str | None = None) -> dict:
    expression = {"type": "TBEL", "expression": "return c > 50;"}
    rule = field(device, source)
    rule["configuration"] = {
        "type": "ALARM",
        "arguments": rule["configuration"]["arguments"],
        "createRules": {"MAJOR": {"condition": {"type": "SIMPLE", "expression": expression}}},
    }
    del rule["type"]
    return rule


def queue(name: str | None = None) -> dict:
    name = name or unique("Queue").replace("-", "")
    return {
        "name": name,
        "topic": f"tb_rule_engine.{name.lower()}",
        "pollInterval": 25,
        "partitions": 1,
        "consumerPerPartition": True,
        "packProcessingTimeout": 10_000,
        "submitStrategy": {"type": "BURST", "batchSize": 10},
        "processingStrategy": {
            "type": "SKIP_ALL_FAILURES",
            "retries": 0,
            "failurePercentage": 0,
            "pauseBetweenRetries": 0,
            "maxPauseBetweenRetries": 0,
        },
    }


def call(body=None, query=None, **path):
    """A request whose parts are values, or made from the World and the flag."""

    def made(part, w, fresh):
        return part(w, fresh) if callable(part) else part

    return lambda w, fresh: {
        "path": {name: made(part, w, fresh) for name, part in path.items()},
        "query": made(query, w, fresh),
        "body": made(body, w, fresh),
    }


def thing(name: str, make: str | None = None):
    """The id of a thing of the World, or of a new one."""
    return lambda w, fresh: getattr(w, make)() if fresh and make else getattr(w, name)


def fetched(kind: str, name: str, make: str, **fields):
    """A body that names an existing thing of the tenant, with changes."""
    return lambda w, fresh: w.tenant.get(f"/api/{kind}/{thing(name, make)(w, fresh)}").json() | fields


def named(kind: str, name: str):
    """The name of a thing."""
    return lambda w: w.tenant.get(f"/api/{kind}/{getattr(w, name)}").json()["name"]


def customer(w, fresh: bool) -> str:
    return w.customer_id


def home_customer(w) -> dict:
    return {"entityType": "CUSTOMER", "id": w.customer_id}


def device_of(device: str) -> dict:
    return {"entityType": "DEVICE", "id": device}


LIST = call(query=PAGE)

# -- assets and their profiles --

ASSET, NEW_ASSET = call(assetId=thing("asset")), call(assetId=thing("asset", "make_asset"))
row("GET /api/asset/{assetId}", "- + + - -", ASSET)
row("GET /api/asset/info/{assetId}", "- + + - -", ASSET)
row("DELETE /api/asset/{assetId}", "- + - - -", NEW_ASSET)
row("POST /api/asset", "- + - - o", call(lambda w, fresh: {"name": unique("asset"), "type": "default"}))
row("POST /api/asset", "- + + - -", call(fetched("asset", "asset", "make_asset", label="stolen")))
row(
    "POST /api/asset",
    "- + - - !",
    call(lambda w, fresh: {"name": unique("asset"), "type": "default", "customerId": home_customer(w)}),
)
row(
    "POST /api/asset",
    "- + - - !",
    call(
        lambda w, fresh: {
            "name": unique("asset"),
            "assetProfileId": {"entityType": "ASSET_PROFILE", "id": w.asset_profile},
        }
    ),
)
row("POST /api/customer/{customerId}/asset/{assetId}", "- + - - -", call(customerId=customer, assetId=thing("asset")))
row("POST /api/customer/public/asset/{assetId}", "- + - - -", NEW_ASSET)
row("DELETE /api/customer/asset/{assetId}", "- + - - -", NEW_ASSET)
row("GET /api/customer/{customerId}/assets", "- + + - -", call(query=PAGE, customerId=customer))
row("GET /api/customer/{customerId}/assetInfos", "- + + - -", call(query=PAGE, customerId=customer))
row("GET /api/tenant/assets", "- + - - o", LIST)
row("GET /api/tenant/assetInfos", "- + - - o", LIST)
ASSET_NAME = call(query=lambda w, fresh: {"assetName": named("asset", "asset")(w)})
row("GET /api/tenant/asset", "- + - - -", ASSET_NAME)
row("GET /api/tenant/assets", "- + - - -", ASSET_NAME)
row("GET /api/assets", "- + + o o", call(query=lambda w, fresh: {"assetIds": w.asset}))
row("GET /api/asset/types", "- + + + o")

PROFILE = call(assetProfileId=thing("asset_profile"))
NEW_PROFILE = call(assetProfileId=thing("asset_profile", "make_asset_profile"))
row("GET /api/assetProfile/{assetProfileId}", "- + - - -", PROFILE)
row("GET /api/assetProfileInfo/{assetProfileId}", "- + + + -", PROFILE)
row("GET /api/assetProfileInfo/default", "- + + + o")
row("DELETE /api/assetProfile/{assetProfileId}", "- + - - -", NEW_PROFILE)
row("POST /api/assetProfile", "- + - - o", call(lambda w, fresh: {"name": unique("profile")}))
row(
    "POST /api/assetProfile",
    "- + - - -",
    call(fetched("assetProfile", "asset_profile", "make_asset_profile", description="stolen")),
)
row("POST /api/assetProfile/{assetProfileId}/default", "- + - - -", NEW_PROFILE)
CHAIN_ID = lambda w: {"entityType": "RULE_CHAIN", "id": w.chain}
WITH_CHAIN = lambda w, fresh: {"name": unique("profile"), "defaultRuleChainId": CHAIN_ID(w)}
row("POST /api/assetProfile", "- + - - !", call(WITH_CHAIN))
row("GET /api/assetProfiles", "- + - - o", LIST)
row("GET /api/assetProfileInfos", "- + + + o", LIST)
row("GET /api/assetProfileInfos/list", "- + - - o", call(query=lambda w, fresh: {"assetProfileIds": w.asset_profile}))
row("GET /api/assetProfile/names", "- + + + o")

# -- entity views --

VIEW, NEW_VIEW = call(entityViewId=thing("view")), call(entityViewId=thing("view", "make_view"))
row("GET /api/entityView/{entityViewId}", "- + + - -", VIEW)
row("GET /api/entityView/info/{entityViewId}", "- + + - -", VIEW)
row("DELETE /api/entityView/{entityViewId}", "- + - - -", NEW_VIEW)
row("POST /api/entityView", "- + - - !", call(lambda w, fresh: entity_view(w.device)))
row("POST /api/entityView", "- + + - -", call(fetched("entityView", "view", "make_view", startTimeMs=1)))
# A view shows everything of its entity, so who points it elsewhere must be allowed to read there.
row(
    "POST /api/entityView",
    "- + ! - -",
    call(lambda w, fresh: fetched("entityView", "view", "make_view", entityId=device_of(w.unassigned))(w, fresh)),
)
row(
    "POST /api/entityView",
    "- + - - !",
    call(lambda w, fresh: entity_view(w.device, customerId=home_customer(w))),
)
row(
    "POST /api/customer/{customerId}/entityView/{entityViewId}",
    "- + - - -",
    call(customerId=customer, entityViewId=thing("view")),
)
row("POST /api/customer/public/entityView/{entityViewId}", "- + - - -", NEW_VIEW)
row("DELETE /api/customer/entityView/{entityViewId}", "- + - - -", NEW_VIEW)
row("GET /api/customer/{customerId}/entityViews", "- + + - -", call(query=PAGE, customerId=customer))
row("GET /api/customer/{customerId}/entityViewInfos", "- + + - -", call(query=PAGE, customerId=customer))
row("GET /api/tenant/entityViews", "- + - - o", LIST)
row("GET /api/tenant/entityViewInfos", "- + - - o", LIST)
VIEW_NAME = call(query=lambda w, fresh: {"entityViewName": named("entityView", "view")(w)})
row("GET /api/tenant/entityView", "- + - - -", VIEW_NAME)
row("GET /api/tenant/entityViews", "- + - - -", VIEW_NAME)
row("GET /api/entityViews", "- + + o o", call(query=lambda w, fresh: {"entityViewIds": w.view}))
row("GET /api/entityView/types", "- + + + o")
TELEMETRY = "/api/plugins/telemetry/{entityType}/{entityId}"
OF_VIEW = {"entityType": "ENTITY_VIEW", "entityId": thing("view")}
row(f"GET {TELEMETRY}/values/timeseries", "- + + - -", call(**OF_VIEW))
row(f"GET {TELEMETRY}/values/attributes", "- + + - -", call(**OF_VIEW))
row(f"GET {TELEMETRY}/values/attributes", "- + + - -", call(entityType="ASSET", entityId=thing("asset")))


# -- relations --


def key(found: dict) -> dict:
    return {
        "fromId": found["from"]["id"],
        "fromType": found["from"]["entityType"],
        "toId": found["to"]["id"],
        "toType": found["to"]["entityType"],
        "relationType": found["type"],
    }


KEY = call(query=lambda w, fresh: key(w.relation))
NEW_KEY = call(query=lambda w, fresh: key(w.make_relation() if fresh else w.relation))
row("GET /api/relation", "- + + - -", KEY)
row("DELETE /api/relation", "- + + - -", NEW_KEY)
row("DELETE /api/v2/relation", "- + + - -", NEW_KEY)
row(
    "DELETE /api/relations",
    "- + + - -",
    call(
        query=lambda w, fresh: {
            "entityType": "ASSET",
            "entityId": w.make_relation()["from"]["id"] if fresh else w.asset,
        }
    ),
)
for path in ("/api/relation", "/api/v2/relation"):
    row(f"POST {path}", "- + + - -", call(lambda w, fresh: relation(w.asset, "DEVICE", w.device) | {"type": "Manages"}))
    # From one's own to what is not.
    row(
        f"POST {path}",
        "- + - - -",
        call(lambda w, fresh: relation(w.asset, "DEVICE", w.unassigned) | {"type": "Uses", "additionalInfo": None}),
    )
    row(f"POST {path}", "- + - - -", call(lambda w, fresh: relation(w.asset, "CUSTOMER", w.customer_id)))
FROM = {"fromType": "ASSET", "fromId": thing("asset")}
TO = {"toType": "DEVICE", "toId": thing("device")}
row("GET /api/relations", "- + + - -", call(query=lambda w, fresh: {"fromId": w.asset, "fromType": "ASSET"}))
row("GET /api/relations", "- + + - -", call(query=lambda w, fresh: {"toId": w.device, "toType": "DEVICE"}))
row("GET /api/relations/info", "- + + - -", call(query=lambda w, fresh: {"fromId": w.asset, "fromType": "ASSET"}))
row("GET /api/relations/from/{fromType}/{fromId}", "- + + - -", call(**FROM))
row("GET /api/relations/from/{fromType}/{fromId}/{relationType}", "- + + - -", call(relationType="Contains", **FROM))
row("GET /api/relations/info/from/{fromType}/{fromId}", "- + + - -", call(**FROM))
row("GET /api/relations/to/{toType}/{toId}", "- + + - -", call(**TO))
row("GET /api/relations/to/{toType}/{toId}/{relationType}", "- + + - -", call(relationType="Contains", **TO))
row("GET /api/relations/info/to/{toType}/{toId}", "- + + - -", call(**TO))


def walk(kind: str, direction: str, **fields):
    """A search along relations from the asset or the device."""

    def body(w, fresh: bool) -> dict:
        root = {"rootId": w.asset if kind == "ASSET" else w.device, "rootType": kind, "direction": direction}
        return {"parameters": root | {"relationTypeGroup": "COMMON", "maxLevel": 2}} | fields

    return call(body)


row("POST /api/relations", "- + + - -", walk("ASSET", "FROM", filters=[]))
row("POST /api/relations/info", "- + + - -", walk("ASSET", "FROM", filters=[]))
row("POST /api/devices", "- + + - -", walk("ASSET", "FROM", relationType="Contains", deviceTypes=["default"]))
row("POST /api/entityViews", "- + + - -", walk("ASSET", "FROM", relationType="Contains", entityViewTypes=["default"]))
row("POST /api/assets", "- + + - -", walk("DEVICE", "TO", relationType="Contains", assetTypes=["default"]))

# -- alarms and comments under them --

ALARM, NEW_ALARM = call(alarmId=thing("alarm")), call(alarmId=thing("alarm", "make_alarm"))
AT_DEVICE = {"entityType": "DEVICE", "entityId": thing("device")}
row("GET /api/alarm/{alarmId}", "- + + - -", ALARM)
row("GET /api/alarm/info/{alarmId}", "- + + - -", ALARM)
row("POST /api/alarm", "- + + - -", call(lambda w, fresh: alarm(w.device)))
row("POST /api/alarm", "- + - - -", call(lambda w, fresh: alarm(w.unassigned)))
row("POST /api/alarm", "- + + - -", call(fetched("alarm", "alarm", "make_alarm", severity="CRITICAL")))
row("POST /api/alarm/{alarmId}/ack", "- + + - -", NEW_ALARM)
row("POST /api/alarm/{alarmId}/clear", "- + + - -", NEW_ALARM)
row("DELETE /api/alarm/{alarmId}", "- + + - -", NEW_ALARM)


def assignee(w, fresh: bool) -> str:
    return w.customer_user.user["id"]["id"]


ASSIGN = "POST /api/alarm/{alarmId}/assign/{assigneeId}"
row(ASSIGN, "- + + - -", call(alarmId=thing("alarm", "make_alarm"), assigneeId=assignee))
row(
    ASSIGN,
    "- - - - -",
    call(alarmId=thing("alarm"), assigneeId=lambda w, fresh: w.other.user["id"]["id"]),
)


def assigned(w, fresh: bool) -> str:
    alarm_id = thing("alarm", "make_alarm")(w, fresh)
    if fresh:
        w.tenant.post(f"/api/alarm/{alarm_id}/assign/{assignee(w, fresh)}")
    return alarm_id


row("DELETE /api/alarm/{alarmId}/assign", "- + + - -", call(alarmId=assigned))
row("GET /api/users/assign/{alarmId}", "- + + - -", call(query=PAGE, alarmId=thing("alarm")))
for prefix in ("/api", "/api/v2"):
    row(f"GET {prefix}/alarm/{{entityType}}/{{entityId}}", "- + + - -", call(query=PAGE, **AT_DEVICE))
    row(f"GET {prefix}/alarms", "- + + o o", LIST)
row("GET /api/alarm/highestSeverity/{entityType}/{entityId}", "- + + - -", call(**AT_DEVICE))
row("GET /api/alarm/types", "- + + + o", LIST)
LINK = {"pageSize": 100, "page": 0}
ENTITY_FILTERS = (
    lambda w: {"type": "singleEntity", "singleEntity": device_of(w.device)},
    lambda w: {"type": "entityList", "entityType": "DEVICE", "entityList": [w.device]},
    lambda w: {"type": "entityType", "entityType": "DEVICE"},
)
for chosen in ENTITY_FILTERS:
    for propagated in (False, True):
        row(
            "POST /api/alarmsQuery/find",
            "- + + o o",
            call(
                lambda w, fresh, chosen=chosen, propagated=propagated: {
                    "entityFilter": chosen(w),
                    "pageLink": LINK | {"searchPropagatedAlarms": propagated},
                    "entityFields": [{"type": "ENTITY_FIELD", "key": "name"}],
                }
            ),
        )
row("POST /api/alarmsQuery/count", "- + + o o", call(lambda w, fresh: {"entityFilter": ENTITY_FILTERS[0](w)}))

row("GET /api/alarm/{alarmId}/comment", "- + + - -", call(query=PAGE, alarmId=thing("alarm")))
row(
    "POST /api/alarm/{alarmId}/comment",
    "- + + - -",
    call({"comment": {"text": "stolen"}}, alarmId=thing("alarm", "make_alarm")),
)


DELETE_COMMENT = "DELETE /api/alarm/{alarmId}/comment/{commentId}"


def comment_of(author: str):
    """Somebody's comment, which is a new one where the call will be served."""

    def make(w, fresh: bool) -> dict:
        comment = w.make_comment(w.alarm, getattr(w, author)) if fresh else w.comment
        return {"path": {"alarmId": w.alarm, "commentId": comment}}

    return make


row(DELETE_COMMENT, "- + ! - -", comment_of("tenant"))
row(DELETE_COMMENT, "- + + - -", comment_of("customer_user"))
row(DELETE_COMMENT, "- ! - - !", call(alarmId=thing("other_alarm"), commentId=thing("comment")))
row(
    "POST /api/alarm/{alarmId}/comment",
    "- - - - !",
    call(
        lambda w, fresh: {"id": {"id": w.comment}, "alarmId": {"id": w.alarm}, "comment": {"text": "stolen"}},
        alarmId=thing("other_alarm"),
    ),
)

# -- calculated fields and alarm rules --

SCRIPT = {"expression": 'return {"x": t};', "arguments": {"t": {"type": "SINGLE_VALUE", "ts": 1, "value": 2}}}
row("POST /api/calculatedField/testScript", "- + - - o", call(SCRIPT))
row("POST /api/alarm/rule/testScript", "- + - - o", call(SCRIPT))
FIELD = call(calculatedFieldId=thing("field"))
row("GET /api/calculatedField/{calculatedFieldId}", "- + - - -", FIELD)
row("GET /api/calculatedField/{calculatedFieldId}/debug", "- + - - -", FIELD)
row(
    "DELETE /api/calculatedField/{calculatedFieldId}",
    "- + - - -",
    call(calculatedFieldId=thing("field", "make_field")),
)
row("POST /api/calculatedField", "- + - - -", call(lambda w, fresh: field(w.make_device() if fresh else w.device)))
row(
    "POST /api/calculatedField",
    "- + - - -",
    call(fetched("calculatedField", "field", "make_field", additionalInfo=None)),
)
row("GET /api/calculatedField/{entityType}/{entityId}", "- + - - -", call(query=PAGE, **AT_DEVICE))
row("GET /api/{entityType}/{entityId}/calculatedFields", "- + - - -", call(query=PAGE, **AT_DEVICE))
row("GET /api/calculatedFields", "- + - - o", LIST)
row("GET /api/calculatedFields", "- + - - o", call(query=lambda w, fresh: PAGE | {"entities": w.device}))
row("GET /api/calculatedFields/names", "- + - - o", call(query=PAGE | {"type": "SIMPLE"}))
RULE = call(alarmRuleId=thing("alarm_rule"))
row("GET /api/alarm/rule/{alarmRuleId}", "- + - - -", RULE)
row("GET /api/alarm/rule/{alarmRuleId}/debug", "- + - - -", RULE)
row("DELETE /api/alarm/rule/{alarmRuleId}", "- + - - -", call(alarmRuleId=thing("alarm_rule", "make_alarm_rule")))
row("POST /api/alarm/rule", "- + - - -", call(lambda w, fresh: alarm_rule(w.make_device() if fresh else w.device)))
row("POST /api/alarm/rule", "- + - - -", call(fetched("alarm/rule", "alarm_rule", "make_alarm_rule")))
row("GET /api/alarm/rules/{entityType}/{entityId}", "- + - - -", call(query=PAGE, **AT_DEVICE))
row("GET /api/alarm/rules", "- + - - o", LIST)
row("GET /api/alarm/rules", "- + - - o", call(query=lambda w, fresh: PAGE | {"entities": w.device}))
row("GET /api/alarm/rules/names", "- + - - o", LIST)

# -- rule chains --

CHAIN, NEW_CHAIN = call(ruleChainId=thing("chain")), call(ruleChainId=thing("chain", "make_chain"))
row("GET /api/ruleChain/{ruleChainId}", "- + - - -", CHAIN)
row("GET /api/ruleChain/{ruleChainId}/metadata", "- + - - -", CHAIN)
row("GET /api/ruleChain/{ruleChainId}/output/labels", "- + - - -", CHAIN)
row("GET /api/ruleChain/{ruleChainId}/output/labels/usage", "- + - - -", CHAIN)
row("POST /api/ruleChain", "- + - - o", call(lambda w, fresh: {"name": unique("chain"), "type": "CORE"}))
row("POST /api/ruleChain", "- + - - -", call(fetched("ruleChain", "chain", "make_chain", debugMode=True)))
row("POST /api/ruleChain/device/default", "- + - - o", call(lambda w, fresh: {"name": unique("chain")}))
row("DELETE /api/ruleChain/{ruleChainId}", "- + - - -", NEW_CHAIN)
row("POST /api/ruleChain/{ruleChainId}/root", "- + - - -", NEW_CHAIN)


def nodes(chain_of: Callable[[Any, bool], str], *steps: tuple[str, dict]):
    """Nodes for a chain."""

    def body(w, fresh: bool) -> dict:
        chain = Chain()
        for step in steps or (script("filter.TbJsFilterNode", "TBEL", "return true;"),):
            chain.node(step(w) if callable(step) else step)
        return {
            "ruleChainId": {"entityType": "RULE_CHAIN", "id": chain_of(w, fresh)},
            "firstNodeIndex": 0,
            "nodes": chain.nodes,
            "connections": [],
        }

    return body


row("POST /api/ruleChain/metadata", "- + - - -", call(nodes(thing("chain", "make_chain"))))
row("GET /api/ruleChains", "- + - - o", LIST)
row("GET /api/ruleChains", "- + - - o", call(query=lambda w, fresh: PAGE | {"ruleChainIds": w.chain}))
row("GET /api/ruleChains/list", "- + - - o", call(query=lambda w, fresh: {"ruleChainIds": w.chain}))
row("GET /api/ruleChains/export", "- + - - o", call(query={"limit": 100}))
row(
    "POST /api/ruleChains/import",
    "- + - - o",
    call(lambda w, fresh: {"ruleChains": [], "metadata": []}, query={"overwrite": "false"}),
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
row("GET /api/components", "+ + - - +", call(query={"componentTypes": "FILTER,ACTION"}))
row("GET /api/components/{componentType}", "+ + - - +", call(componentType="FILTER"))
SAVE_CLASS = "org.thingsboard.rule.engine.telemetry.TbMsgTimeseriesNode"
row("GET /api/component/{componentDescriptorClazz}", "+ + - - +", call(componentDescriptorClazz=SAVE_CLASS))

# -- queues and their statistics --

RULE_ENGINE = {"serviceType": "TB_RULE_ENGINE"}
# Those that all tenants share.
row("GET /api/queues/{queueId}", "+ + - - +", call(queueId=thing("queue")))
row("GET /api/queues/name/{queueName}", "+ + - - +", call(queueName="HighPriority"))
row("GET /api/queues", "+ + - - +", call(query=PAGE | RULE_ENGINE))
row("POST /api/queues", "+ - - - -", call(lambda w, fresh: queue(), query=RULE_ENGINE))
row("DELETE /api/queues/{queueId}", "+ - - - -", call(queueId=thing("queue", "make_queue")))
# Those of a tenant that has its own, which none of these is.
row("GET /api/queues/{queueId}", "- - - - -", call(queueId=thing("isolated_queue")))
row("DELETE /api/queues/{queueId}", "- - - - -", call(queueId=thing("isolated_queue")))
row("GET /api/queueStats", "+ + - - o", LIST)


def stats(w, fresh: bool) -> str:
    found = w.tenant.get("/api/queueStats", **PAGE).json()["data"]
    return found[0]["id"]["id"] if found else NULL_ID


row("GET /api/queueStats", "+ + - - o", call(query=lambda w, fresh: PAGE | {"queueStatsIds": stats(w, fresh)}))
row("GET /api/queueStats/list", "+ + - - o", call(query=lambda w, fresh: {"queueStatsIds": stats(w, fresh)}))
row("GET /api/queueStats/{queueStatsId}", "- + - - -", call(queueStatsId=stats))
row("GET /api/usage", "- + - - o")

# -- events --

EVENTS = "/api/events/{entityType}/{entityId}"
OF_HOME = lambda w, fresh: PAGE | {"tenantId": w.tenant_id}
LIFE = {"eventType": "LC_EVENT"}
AT_CHAIN = {"entityType": "RULE_CHAIN", "entityId": thing("chain")}
AT_NODE = {"entityType": "RULE_NODE", "entityId": thing("rule_node")}
for at, columns in ((AT_DEVICE, "- + + - -"), (AT_CHAIN, "- + - - -"), (AT_NODE, "- + - - -")):
    row(f"GET {EVENTS}", columns, call(query=OF_HOME, **at))
    row(f"GET {EVENTS}/{{eventType}}", columns, call(query=OF_HOME, eventType="LC_EVENT", **at))
    row(f"POST {EVENTS}", columns, call(LIFE, query=OF_HOME, **at))
    row(f"POST {EVENTS}/clear", columns, call(LIFE, **at))

# -- what is not one's own, smuggled in by the other tenant's administrator with what is --

for path in ("/api/relation", "/api/v2/relation"):
    row(f"POST {path}", "- - - - -", call(lambda w, fresh: relation(w.other_asset, "DEVICE", w.device)))
row(
    "POST /api/customer/{customerId}/asset/{assetId}",
    "- - - - -",
    call(assetId=thing("other_asset"), customerId=customer),
)
row(
    "POST /api/customer/{customerId}/entityView/{entityViewId}",
    "- - - - -",
    call(entityViewId=thing("other_view"), customerId=customer),
)
row(
    "POST /api/entityView",
    "- - - - !",
    call(
        lambda w, fresh: w.other.get(f"/api/entityView/{w.other_view}").json() | {"entityId": device_of(w.device)},
    ),
)
row(
    "POST /api/alarm",
    "- - - - !",
    call(lambda w, fresh: alarm(w.other_device, assigneeId={"entityType": "USER", "id": assignee(w, fresh)})),
)
row(
    "POST /api/alarm",
    "- - - - !",
    call(
        lambda w, fresh: w.other.get(f"/api/alarm/{w.other_alarm}").json() | {"originator": device_of(w.device)},
    ),
)
row(ASSIGN, "- - - - -", call(alarmId=thing("other_alarm"), assigneeId=assignee))
row(ASSIGN, "- + - - -", call(alarmId=thing("alarm"), assigneeId=lambda w, fresh: w.stranger.user["id"]["id"]))
row("POST /api/calculatedField", "- - - - !", call(lambda w, fresh: field(w.other_device, w.device)))
row("POST /api/alarm/rule", "- - - - !", call(lambda w, fresh: alarm_rule(w.other_device, w.device)))
row("POST /api/deviceProfile", "- + - - !", call(WITH_CHAIN))
INPUT = lambda w: ("flow.TbRuleChainInputNode", {"ruleChainId": w.chain})
# A chain of another tenant is one that is not there: nothing is passed to it.
row("POST /api/ruleChain/metadata", "- - - - o", call(nodes(thing("other_chain"), INPUT)))


def metadata_of_home(w, fresh: bool) -> dict:
    found = w.tenant.get(f"/api/ruleChain/{w.chain}/metadata").json()
    return found | {"ruleChainId": {"entityType": "RULE_CHAIN", "id": w.other_chain}, "version": None}


# Nodes with the ids of nodes elsewhere: they become new ones.
row("POST /api/ruleChain/metadata", "- - - - o", call(metadata_of_home))
row("POST /api/ruleChain/{ruleChainId}/replay", "- - - - !", call(REPLAY, ruleChainId=thing("other_chain")))
row(
    "POST /api/ruleChain/{ruleChainId}/replay",
    "- - - - !",
    call(
        lambda w, fresh: SPAN | {"deviceProfileId": {"entityType": "DEVICE_PROFILE", "id": w.profile}},
        ruleChainId=thing("other_chain"),
    ),
)
row(f"GET {EVENTS}", "- - - - o", call(query=OF_HOME, entityType="DEVICE", entityId=thing("other_device")))
