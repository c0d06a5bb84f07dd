"""What is throttled or behind is shown to those whom it concerns."""

from __future__ import annotations

import requests

from harness.people import create_tenancy
from harness.rest import Rest
from harness.server import eventually


def entries(rest: Rest, kind: str) -> list[dict]:
    return [entry for entry in rest.get("/api/overload").json()["entries"] if entry["kind"] == kind]


def post(shared, device, count: int) -> list[int]:
    url = f"{shared.http}/api/v1/{device.token}/telemetry"
    return [requests.post(url, json={"a": number}, timeout=10).status_code for number in range(count)]


def test_who_sends_too_often_is_shown_with_the_limit_to_its_tenant_and_the_operator(shared, sysadmin, rest):
    limited = create_tenancy(sysadmin, transportDeviceTelemetryMsgRateLimit="2:600")
    device = limited.admin.create_device()
    statuses = post(shared, device, 5)
    assert statuses[:2] == [200, 200] and 200 not in statuses[2:]

    def of_tenant() -> dict | None:
        found = entries(limited.admin, "RATE_LIMIT")
        return found[0] if found and found[0]["count"] == 3 else None

    entry = eventually(of_tenant)
    assert entry["subject"] == "device: telemetry messages"
    assert (entry["limit"], entry["active"], entry["unit"]) == ("2:600", True, "refusals")
    assert "2:600" in entry["reason"] and entry["since"] <= entry["last"]
    told = [entry for entry in entries(sysadmin, "RATE_LIMIT") if entry["tenantId"] == limited.tenant["id"]]
    assert [one["tenantName"] for one in told] == [limited.tenant["title"]]
    assert entries(rest, "RATE_LIMIT") == []
    limited.customer_user.get("/api/overload", expect=403)


def test_requests_and_sockets_beyond_their_limits_are_shown(shared, sysadmin):
    limited = create_tenancy(sysadmin, tenantServerRestLimitsConfiguration="60:600", maxWsSubscriptionsPerTenant=1)
    refused = 0
    while not refused:
        answer = requests.get(f"{shared.http}/api/auth/user", headers=limited.admin.session.headers, timeout=10)
        refused += answer.status_code == 429

    def of_tenant() -> list[dict]:
        told = entries(sysadmin, "RATE_LIMIT")
        return [one for one in told if one["tenantId"] == limited.tenant["id"] and one["subject"] == "tenant: requests"]

    entry = eventually(of_tenant)[0]
    assert entry["count"] >= 1 and entry["limit"] == "60:600"


def test_an_endless_script_is_shown_to_its_tenant(shared, sysadmin, rest):
    nodes = [
        {
            "type": "org.thingsboard.rule.engine.filter.TbJsFilterNode",
            "name": "spins",
            "configuration": {
                "scriptLang": "JS",
                "jsScript": "while (true) {} return true;",
                "tbelScript": "return true;",
            },
            "additionalInfo": {},
        }
    ]
    tenancy = create_tenancy(sysadmin)
    chain = next(one for one in tenancy.admin.get("/api/ruleChains", pageSize=10, page=0).json()["data"] if one["root"])
    metadata = tenancy.admin.get(f"/api/ruleChain/{chain['id']['id']}/metadata").json()
    metadata |= {"nodes": nodes, "connections": [], "firstNodeIndex": 0}
    tenancy.admin.post("/api/ruleChain/metadata", metadata)
    assert post(shared, tenancy.admin.create_device(), 1) == [200]
    entry = eventually(lambda: entries(tenancy.admin, "SCRIPTS"))[0]
    assert entry["subject"] == "evaluations" and entry["count"] >= 1


def test_the_load_of_the_machine_is_a_series_of_the_system_tenant(sysadmin):
    system = "13814000-1dd2-11b2-8080-808080808080"
    keys = "cpuUsage,memoryUsage,discUsage,cpuCount,totalMemory,totalDiscSpace,clusterMode"

    def stored() -> dict:
        return sysadmin.get(f"/api/plugins/telemetry/TENANT/{system}/values/timeseries", keys=keys).json()

    values = eventually(
        lambda: found if (found := stored())["clusterMode"][0]["value"] is not None else None, within=90
    )
    assert values["clusterMode"][0]["value"] == "false"
    assert 0 < int(values["memoryUsage"][0]["value"]) <= 100
    # Dashboards ask for it as that of the usage of all tenants.
    query = {
        "entityFilter": {"type": "apiUsageState", "resolveMultiple": True},
        "pageLink": {"pageSize": 10, "page": 0},
        "latestValues": [{"type": "TIME_SERIES", "key": key} for key in ("memoryUsage", "cpuCount")],
    }
    (state,) = sysadmin.post("/api/entitiesQuery/find", query).json()["data"]
    for key, shown in state["latest"]["TIME_SERIES"].items():
        assert shown["value"] == values[key][0]["value"], key
