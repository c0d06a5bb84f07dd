"""schemathesis on the served description: whatever is sent, the server does not fail, and answers as it has described."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.chains import REPLY, SWITCH, Chain
from harness.people import Tenancy, create_tenancy
from harness.rest import Rest, telemetry
from harness.server import SYSADMIN

SCHEMATHESIS = Path(__file__).parent / "schemathesis/.venv/bin/schemathesis"

# That a request is more lenient than its description is no failure: ThingsBoard is, too.
LEFT_OUT = [
    "negative_data_rejection",
    "positive_data_acceptance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "object_level_authorization",
    # Every request of a run brings the token in `X-Authorization`; who may do what is held by `access`.
    "ignored_auth",
]
# They end the session of whoever calls them: nothing could be tried afterwards.
ENDS_THE_SESSION = ["/api/auth/logout", "/api/admin/jwtSettings", "/api/user/sessions/{sessionId}"]
# Empty where there is nothing, as clients expect it; a description cannot say that beside a schema.
MAY_BE_EMPTY = ["/api/dashboard/home", "/api/dashboard/home/info", "/api/ruleNode/{ruleNodeId}/debugIn"]


def furnish(tenancy: Tenancy) -> dict[str, str]:
    """Makes one of everything, and returns the parameters of paths that name them."""
    rest, customer = tenancy.admin, tenancy.customer
    device = rest.create_device(customerId=customer["id"])
    asset = rest.post("/api/asset", {"name": "asset", "type": "default"}).json()
    rest.post(telemetry(device.id, "timeseries/ANY"), {"temperature": 21.5, "on": True, "state": {"a": [1]}})
    rest.post(telemetry(device.id, "SERVER_SCOPE"), {"floor": 2, "where": "here"})
    rest.post(
        "/api/relation", {"from": asset["id"], "to": device.json["id"], "type": "Contains", "typeGroup": "COMMON"}
    )
    view = {"name": "view", "type": "default", "entityId": device.json["id"], "startTimeMs": 0, "endTimeMs": 0}
    view |= {"keys": {"timeseries": ["temperature"], "attributes": {"cs": [], "ss": ["floor"], "sh": []}}}
    dashboard = rest.post("/api/dashboard", {"title": "dashboard", "configuration": {"widgets": {}}}).json()
    alarm = {"originator": device.json["id"], "type": "hot", "severity": "MAJOR", "details": {"degrees": 90}}
    alarm = rest.post("/api/alarm", alarm).json()
    rest.post(f"/api/alarm/{alarm['id']['id']}/comment", {"comment": {"text": "seen"}})
    call = {"method": "blink", "params": {}, "persistent": True}
    call = rest.post(f"/api/rpc/oneway/{device.id}", call).json()
    chain = Chain()
    ways = chain.node(SWITCH)
    # Calls into the chain are answered at once.
    chain.connect(ways, "REST API request", chain.node(REPLY))
    chain = chain.save(rest, root=True)
    node = rest.get(f"/api/ruleChain/{chain['id']['id']}/metadata").json()["nodes"][0]
    queue = rest.get("/api/queues", serviceType="TB_RULE_ENGINE", pageSize=1, page=0).json()["data"][0]
    return {
        "deviceId": device.id,
        "assetId": asset["id"]["id"],
        "entityViewId": rest.post("/api/entityView", view).json()["id"]["id"],
        "dashboardId": dashboard["id"]["id"],
        "alarmId": alarm["id"]["id"],
        "rpcId": call["rpcId"],
        "ruleChainId": chain["id"]["id"],
        "ruleNodeId": node["id"]["id"],
        "deviceProfileId": device.json["deviceProfileId"]["id"],
        "assetProfileId": asset["assetProfileId"]["id"],
        "customerId": customer["id"]["id"],
        "userId": tenancy.customer_user.user["id"]["id"],
        "tenantId": tenancy.tenant["id"]["id"],
        "tenantProfileId": tenancy.profile["id"]["id"],
        "queueId": queue["id"]["id"],
        "queueName": queue["name"],
        "entityType": "DEVICE",
        "entityId": device.id,
        "fromType": "ASSET",
        "fromId": asset["id"]["id"],
        "toType": "DEVICE",
        "toId": device.id,
        "relationType": "Contains",
    }


def configuration(parameters: dict[str, str]) -> str:
    """Reads are about what there is; everything else is about anything, so that what there is stays."""
    lines = ["[checks]"] + [f"{check}.enabled = false" for check in LEFT_OUT]
    for path in MAY_BE_EMPTY:
        lines += ["[[operations]]", f"include-path = {json.dumps(path)}"]
        lines += [
            f"checks.{check}.enabled = false" for check in ("content_type_conformance", "response_schema_conformance")
        ]
    lines += ["[[operations]]", 'include-method = "GET"', "[operations.parameters]"]
    lines += [f'"path.{name}" = {json.dumps(value)}' for name, value in parameters.items()]
    return "\n".join(lines)


def attack(tmp_path: Path, rest: Rest, settings: str, *options: str) -> dict:
    """Lets schemathesis loose as a user; returns its report."""
    (tmp_path / "schemathesis.toml").write_text(settings)
    command = [SCHEMATHESIS, "--no-color", "run", f"{rest.base}/v3/api-docs/thingsboard", "--url", rest.base]
    command += ["--header", f"X-Authorization: Bearer {rest.token}", *options]
    # One worker: Python 3.11 may fail when two threads build a syntax tree, as hypothesis does ("recursion depth mismatch").
    command += ["--generation-deterministic", "--no-shrink", "--continue-on-failure", "--workers", "1"]
    command += ["--suppress-health-check", "all", "--warnings", "off"]
    command += ["--report", "json", "--report-json-path", "report.json"]
    for path in ENDS_THE_SESSION:
        command += ["--exclude-path", path]
    # Ids of answers are used again, and an administrator may delete their own tenant.
    command += ["--exclude-operation-id", "deleteTenant"]
    said = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=300)
    assert said.returncode == 0, said.stdout[-30_000:] + said.stderr
    return json.loads((tmp_path / "report.json").read_text())


@pytest.fixture
def server(make_server):
    return make_server().start()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("authority", "examples"), [("SYS_ADMIN", 2), ("TENANT_ADMIN", 3)])
def test_whatever_is_sent_is_answered_as_described(tmp_path, server, authority, examples):
    sysadmin = server.rest(*SYSADMIN)
    tenancy = create_tenancy(sysadmin)
    parameters = furnish(tenancy)
    rest = sysadmin if authority == "SYS_ADMIN" else tenancy.admin
    report = attack(tmp_path, rest, configuration(parameters), "--phases", "fuzzing", "--max-examples", str(examples))
    # So few examples leave out an operation for which none was found soon enough.
    assert report["operations"]["tested"] > 280
    assert report["test_cases"]["generated"] > 500
    # It was the user all the time, and the server is the same.
    rest.get("/api/auth/user")
    assert "a handler panicked" not in server.log()
