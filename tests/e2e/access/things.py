"""What the tenant has beyond devices, customers and users, and bodies to make it of."""

from __future__ import annotations

from typing import Any

from harness.chains import REPLY, SAVE, SWITCH, Chain, events, queue
from harness.people import activated
from harness.rest import Rest, unique
from harness.server import eventually

WIDGET_TYPE = {"descriptor": {"type": "latest", "secret": "treasure"}}
OTA_PACKAGE = {"type": "FIRMWARE", "version": "1.0", "url": "https://example.org/pump.bin"}
"""A package but for its title and its profile."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel."""


def image(name: str) -> dict[str, Any]:
    """An image as it is imported."""
    key = f"{name}.png"
    return {"title": name, "type": "IMAGE", "resourceKey": key, "fileName": key, "public": True, "data": PIXEL}


def resource(name: str, kind: str = "GENERAL", end: str = "txt") -> dict[str, Any]:
    """A file as it is saved."""
    return {"title": name, "resourceType": kind, "fileName": f"{name}.{end}", "data": "dHJlYXN1cmU="}


class Things:
    """What else the tenant has."""

    tenant: Rest
    sysadmin: Rest
    other: Rest
    device: str
    profile: str
    customer_id: str
    customer_user: Rest

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
        self.tenant.post(f"/api/ruleChain/{self.chain}/root")
        self.rule_node = self.node_of(self.chain)
        self.calling_chain = self.make_calling_chain()
        self.dashboard = self.make_dashboard()
        self.dashboard_version = self.newest_version(f"/api/dashboard/{self.dashboard}")
        self.chain_version = self.newest_version(f"/api/ruleChain/{self.chain}")
        self.widget_type = self.make_widget_type()
        self.widgets_bundle = self.make_widgets_bundle()
        self.package = self.make_package()
        self.image = self.make_image()
        self.public_key = self.tenant.get(f"/api/images/tenant/{self.image}/info").json()["publicResourceKey"]
        self.resource = self.make_resource()
        script = self.tenant.post("/api/resource", resource(unique("treasure"), "JS_MODULE", "js")).json()
        self.script, self.script_key = script["id"]["id"], script["resourceKey"]
        self.key = self.make_key()
        self.queue = self.make_queue()
        self.queue_stats = queue_stats(self.tenant)
        self.isolated = self.make_isolated_tenant()
        self.isolated_queue = self.queues(self.isolated)["Main"]
        self.unassigned = self.tenant.create_device(unique("treasure")).id
        self.make_all_of_other()
        # Written in the background.
        for kind, entity, event_type in (
            ("RULE_CHAIN", self.chain, "LC_EVENT"),
            ("RULE_NODE", self.rule_node, "DEBUG_RULE_NODE"),
        ):
            eventually(lambda: events(self.tenant, kind, entity, event_type))

    def make_all_of_other(self) -> None:
        """What the other tenant's administrator sees in lists, and has to smuggle with."""

        def made(path: str, body: dict, **fields) -> str:
            return self.other.post(path, body | fields).json()["id"]["id"]

        self.other_device = self.other.create_device(unique("foreign")).id
        self.other_profile = made("/api/deviceProfile", device_profile(), name=unique("foreign"))
        self.other_asset_profile = made("/api/assetProfile", {"name": unique("foreign")})
        self.other_asset = made("/api/asset", {"name": unique("foreign"), "type": "default"})
        self.other_view = made("/api/entityView", entity_view(self.other_device), name=unique("foreign"))
        self.other_alarm = made("/api/alarm", alarm(self.other_device), type=unique("foreign"))
        self.other_field = made("/api/calculatedField", field(self.other_device), name=unique("foreign"))
        self.other_alarm_rule = made("/api/alarm/rule", alarm_rule(self.other_device), name=unique("foreign"))
        package = {"deviceProfileId": {"entityType": "DEVICE_PROFILE", "id": self.other_profile}} | OTA_PACKAGE
        self.other_package = made("/api/otaPackage", package, title=unique("foreign"))
        self.other_resource = made("/api/resource", resource(unique("foreign")))
        self.other_image = self.make_image(self.other, "foreign")
        self.other_dashboard = made("/api/dashboard", {"title": unique("foreign")})
        self.other_widget_type = made("/api/widgetType", WIDGET_TYPE, name=unique("foreign"))
        self.other_widgets_bundle = made("/api/widgetsBundle", {"title": unique("foreign")})
        chain = Chain()
        chain.connect(chain.node(SAVE, "foreign"), "Failure", chain.node(REPLY))
        self.other_chain = chain.save(self.other, unique("foreign"))["id"]["id"]
        chain.save(self.other, unique("foreign"), root=True)
        self.other_queue_stats = queue_stats(self.other)

    def make_package(self) -> str:
        profile = {"deviceProfileId": {"entityType": "DEVICE_PROFILE", "id": self.profile}}
        package = OTA_PACKAGE | profile | {"title": unique("treasure")}
        return self.tenant.post("/api/otaPackage", package).json()["id"]["id"]

    def make_image(self, who: Rest | None = None, name: str = "treasure") -> str:
        """The key of a new image."""
        return (who or self.tenant).call("PUT", "/api/image/import", json=image(unique(name))).json()["resourceKey"]

    def make_resource(self) -> str:
        return self.tenant.post("/api/resource", resource(unique("treasure"))).json()["id"]["id"]

    def make_asset_profile(self) -> str:
        return self.tenant.post("/api/assetProfile", {"name": unique("treasure")}).json()["id"]["id"]

    def make_asset(self) -> str:
        asset = self.tenant.post("/api/asset", {"name": unique("treasure"), "type": "default"}).json()["id"]["id"]
        self.tenant.post(f"/api/customer/{self.customer_id}/asset/{asset}")
        hide(self.tenant, "ASSET", asset)
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
        """A chain that answers calls, and hands on those to devices: what it cannot save is one."""
        chain = Chain()
        save = chain.node(SAVE, "treasure", debugSettings={"failuresEnabled": True, "allEnabled": True})
        kinds = chain.node(SWITCH)
        chain.connect(save, "Failure", kinds)
        chain.connect(kinds, "REST API Request", chain.node(REPLY))
        chain.connect(
            kinds, "RPC Request to Device", chain.node(("rpc.TbSendRPCRequestNode", {"timeoutInSeconds": 60}))
        )
        chain.connect(save, "Success", chain.node(("flow.TbRuleChainOutputNode", {}), "treasure-3"))
        return chain.save(self.tenant, unique("treasure"))["id"]["id"]

    def make_calling_chain(self) -> str:
        chain = Chain()
        call = chain.node(("flow.TbRuleChainInputNode", {"ruleChainId": self.chain}))
        chain.connect(call, "treasure-3", chain.node(SAVE))
        return chain.save(self.tenant, unique("treasure"))["id"]["id"]

    def newest_version(self, path: str) -> str:
        page = self.tenant.get(f"{path}/versions", pageSize=1, page=0).json()
        return str(page["data"][0]["version"])

    def make_dashboard(self) -> str:
        dashboard = {"title": unique("treasure"), "configuration": {"secret": "treasure"}}
        made = self.tenant.post("/api/dashboard", dashboard).json()["id"]["id"]
        self.tenant.post(f"/api/customer/{self.customer_id}/dashboard/{made}")
        return made

    def make_widget_type(self) -> str:
        return self.tenant.post("/api/widgetType", WIDGET_TYPE | {"name": unique("treasure")}).json()["id"]["id"]

    def make_widgets_bundle(self) -> str:
        made = self.tenant.post("/api/widgetsBundle", {"title": unique("treasure")}).json()["id"]["id"]
        self.tenant.post(f"/api/widgetsBundle/{made}/widgetTypes", [self.widget_type])
        return made

    def make_key(self) -> str:
        """A key of the customer's user."""
        key = {"userId": self.customer_user.user["id"], "description": unique("treasure"), "enabled": True}
        return self.tenant.post("/api/apiKey", key).json()["id"]["id"]

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
            "widget type": tenant.get(f"/api/widgetType/{self.widget_type}").json(),
            "widgets": tenant.get(f"/api/widgetsBundle/{self.widgets_bundle}/widgetTypes").json(),
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
            "dashboard": tenant.get(f"/api/dashboard/{self.dashboard}").json(),
            "image": tenant.get(f"/api/images/tenant/{self.image}/info").json(),
            "resource": tenant.get(f"/api/resource/{self.resource}").json(),
            "package": tenant.get(f"/api/otaPackage/info/{self.package}").json(),
            "home dashboard": tenant.get("/api/tenant/dashboard/home/info").json(),
            "keys": tenant.get(f"/api/apiKeys/{self.customer_user.user['id']['id']}", **PAGE).json(),
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
            self.dashboard,
            self.key,
            self.alarm_rule,
            self.comment,
        ]


PAGE = {"pageSize": 100, "page": 0}


def queue_stats(tenant: Rest) -> str:
    """The statistics of one of the queues, which a tenant has from the beginning."""
    return tenant.get("/api/queueStats", **PAGE).json()["data"][0]["id"]["id"]


def device_profile(**fields) -> dict:
    return {
        "name": unique("treasure"),
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "provisionType": "DISABLED",
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "DEFAULT"},
            "provisionConfiguration": {"type": "DISABLED"},
            "alarms": None,
        },
    } | fields


def entity_view(device: str, **fields) -> dict:
    return {
        "name": unique("treasure"),
        "type": "default",
        "entityId": {"entityType": "DEVICE", "id": device},
        "keys": {"timeseries": ["secret"], "attributes": {"cs": [], "ss": ["secret"], "sh": []}},
        "startTimeMs": 0,
        "endTimeMs": 0,
    } | fields


def hide(who: Rest, kind: str, entity: str) -> None:
    """Gives an entity an attribute that is worth stealing."""
    who.post(f"/api/plugins/telemetry/{kind}/{entity}/attributes/SERVER_SCOPE", {"secret": "treasure-2"})


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
