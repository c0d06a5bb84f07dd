"""Limits of tenant profiles: what may be used in a month, and how often devices may send."""

import uuid

import pytest
import requests

from harness.chains import SAVE, SWITCH, Chain, alarms, events, post, script
from harness.paho_device import PahoDevice
from harness.people import Tenancy, create_tenancy
from harness.rest import now_ms
from harness.server import eventually
from harness.wire import V5, V311, publish

TELEMETRY = "v1/devices/me/telemetry"
# The id of the entity that carries a tenant's usage follows from the tenant's.
SALT = 0x6170695F75736167655F737461746531
FACTOR = 0x0000_0000_0100_0000_0000_0000_0000_013B


@pytest.fixture
def server(shared):
    return shared


class Usage:
    """What a tenant has used."""

    def __init__(self, tenancy: Tenancy):
        self.rest = tenancy.admin
        mixed = ((uuid.UUID(tenancy.tenant["id"]["id"]).int ^ SALT) * FACTOR) % (1 << 128)
        version_8 = (mixed & ~(0xF << 76)) | (8 << 76)
        entity = uuid.UUID(int=(version_8 & ~(0b11 << 62)) | (0b10 << 62))
        self.path = f"/api/plugins/telemetry/API_USAGE_STATE/{entity}/values/timeseries"

    def latest(self, key: str):
        found = self.rest.get(self.path, keys=key, useStrictDataTypes="true").json()
        return found[key][0]["value"]

    def becomes(self, key: str, state: str) -> None:
        """Waits until a feature has a state."""
        eventually(lambda: self.latest(key) == state, within=30)

    def states(self, key: str) -> list[str]:
        query = {"startTs": 0, "endTs": now_ms() + 1, "limit": 1000, "orderBy": "ASC"}
        return [point["value"] for point in self.rest.get(self.path, keys=key, **query).json().get(key, [])]


def send(server, device, body) -> int:
    return requests.post(f"{server.http}/api/v1/{device.token}/telemetry", json=body, timeout=30).status_code


def change_limits(sysadmin, tenancy: Tenancy, **limits) -> None:
    profile = sysadmin.get(f"/api/tenantProfile/{tenancy.profile['id']['id']}").json()
    profile["profileData"]["configuration"] |= limits
    sysadmin.post("/api/tenantProfile", profile)


@pytest.mark.timeout(240)
def test_messages_that_are_used_up_are_refused_until_the_limit_is_raised(server, sysadmin, dial):
    tenancy = create_tenancy(sysadmin, maxTransportMessages=10, warnThreshold=0.5)
    rest, usage = tenancy.admin, Usage(tenancy)
    device, another = rest.create_device(), rest.create_device()
    neighbour = create_tenancy(sysadmin).admin.create_device()
    usage.becomes("transportApiState", "ENABLED")
    connected = PahoDevice(server.mqtt_address, "5.0", username=another.token)
    assert connected.connect() == 0
    for n in range(6):
        assert send(server, device, {"n": n}) == 200
    usage.becomes("transportApiState", "WARNING")
    for n in range(6, 10):
        assert send(server, device, {"n": n}) == 200
    usage.becomes("transportApiState", "DISABLED")
    assert usage.states("transportApiState") == ["ENABLED", "WARNING", "DISABLED"]
    assert send(server, device, {"n": 10}) == 429
    # Over MQTT, the connection of whoever sends is ended.
    connected.send(TELEMETRY, '{"n":11}', 1)
    assert connected.disconnected() == 0x83
    with dial(V311) as old:
        assert old.connect(username=another.token) == 0
        old.send(publish(V311, TELEMETRY, '{"n":11}', 1, 1))
        old.ended()
    assert send(server, neighbour, {"n": 1}) == 200, "it costs no other tenant"
    assert usage.latest("transportMsgCount") >= 10
    assert rest.get("/api/usage").json()["maxTransportMessages"] == 10

    change_limits(sysadmin, tenancy, maxTransportMessages=1000)
    eventually(lambda: send(server, device, {"n": 12}) == 200, within=30)
    usage.becomes("transportApiState", "ENABLED")
    eventually(lambda: 12 in rest.values(device.id, "n"))
    assert 10 not in rest.values(device.id, "n") and rest.values(another.id, "n") == []


@pytest.mark.timeout(240)
def test_executions_that_are_used_up_stop_the_chains_until_the_limit_is_raised(server, sysadmin):
    tenancy = create_tenancy(sysadmin)
    rest, usage = tenancy.admin, Usage(tenancy)
    device = rest.create_device()
    post(server, device, {"n": 1})
    eventually(lambda: rest.values(device.id, "n") == [1])
    change_limits(sysadmin, tenancy, maxREExecutions=1)
    usage.becomes("ruleEngineApiState", "DISABLED")
    # Devices are still served; what they send is dropped.
    post(server, device, {"n": 2})
    change_limits(sysadmin, tenancy, maxREExecutions=0)
    usage.becomes("ruleEngineApiState", "ENABLED")
    post(server, device, {"n": 3})
    eventually(lambda: 3 in rest.values(device.id, "n"))
    assert rest.values(device.id, "n") == [1, 3]


@pytest.mark.timeout(180)
def test_scripts_and_alarms_that_are_used_up_fail_and_say_so(server, sysadmin):
    tenancies = [create_tenancy(sysadmin, **{limit: 3}) for limit in ("maxJSExecutions", "maxTbelExecutions")]
    tenancies.append(create_tenancy(sysadmin, maxCreatedAlarms=1))
    # Its details need a script of the other kind.
    details = {"severity": "MAJOR", "alarmType": "$[kind]", "scriptLang": "JS"} | {
        "alarmDetailsBuildJs": "return {};",
        "alarmDetailsBuildTbel": "return {};",
    }
    condition = "return msg.n > 0;"
    limited = [
        (script("filter.TbJsFilterNode", "JS", condition), "True", "jsExecutionApiState"),
        (script("filter.TbJsFilterNode", "TBEL", condition), "True", "tbelExecutionApiState"),
        (("action.TbCreateAlarmNode", details), "Created", "alarmApiState"),
    ]
    devices, nodes = [], []
    for tenancy, (node, label, _) in zip(tenancies, limited, strict=True):
        rest = tenancy.admin
        devices.append(rest.create_device())
        chain = Chain()
        switch = chain.node(SWITCH)
        used = chain.node(node, debugSettings={"failuresEnabled": True})
        chain.connect(switch, "Post telemetry", used).connect(used, label, chain.node(SAVE))
        saved = chain.save(rest, root=True)
        nodes.append(rest.get(f"/api/ruleChain/{saved['id']['id']}/metadata").json()["nodes"][used]["id"]["id"])
        for n in range(1, 4):
            post(server, devices[-1], {"n": n, "kind": "first"})
    for tenancy, (_, _, state) in zip(tenancies, limited, strict=True):
        Usage(tenancy).becomes(state, "DISABLED")
    for tenancy, device, node in zip(tenancies, devices, nodes, strict=True):
        assert events(tenancy.admin, "RULE_NODE", node, "DEBUG_RULE_NODE") == [], "it had been within the limit"
        post(server, device, {"n": 4, "kind": "second"})
        [failure] = eventually(lambda: events(tenancy.admin, "RULE_NODE", node, "DEBUG_RULE_NODE"))
        assert "disabled" in failure["body"]["error"], failure
    assert [alarm["type"] for alarm in alarms(tenancies[2].admin, devices[2].id)] == ["first"]


@pytest.mark.parametrize(
    ("limits", "body", "passes"),
    [
        ({"transportDeviceTelemetryMsgRateLimit": "2:600,100:3600"}, {"n": 1}, 2),
        ({"transportDeviceTelemetryDataPointsRateLimit": "6:600"}, {"a": 1, "b": 2, "c": 3}, 2),
        ({"transportTenantTelemetryMsgRateLimit": "4:600"}, {"n": 1}, 4),
    ],
)
def test_devices_that_send_too_often_are_refused(server, sysadmin, dial, limits, body, passes):
    rest = create_tenancy(sysadmin, **limits).admin
    device, other = rest.create_device(), rest.create_device()
    assert [send(server, device, body) for _ in range(passes)] == [200] * passes
    assert send(server, device, body) == 429
    is_of_tenant = "Tenant" in next(iter(limits))
    assert send(server, other, body) == (429 if is_of_tenant else 200)
    # The same device over MQTT: its connection ends, and what it sent is not stored.
    with dial(V5) as connection:
        assert connection.connect(username=device.token) == 0
        connection.send(publish(V5, TELEMETRY, '{"beyond":1}', 1, 1))
        connection.ended(0x83)
    neighbour = create_tenancy(sysadmin).admin.create_device()
    assert [send(server, neighbour, body) for _ in range(passes + 1)] == [200] * (passes + 1)
    key = next(iter(body))
    eventually(lambda: len(rest.values(device.id, key)) == passes)
    assert rest.values(device.id, "beyond") == []


def test_what_is_no_telemetry_has_a_rate_limit_of_its_own(server, sysadmin):
    device = create_tenancy(sysadmin, transportDeviceMsgRateLimit="2:600").admin.create_device()
    assert [send(server, device, {"n": n}) for n in range(3)] == [200] * 3
    attributes = f"{server.http}/api/v1/{device.token}/attributes"
    asked = [requests.get(attributes, params={"clientKeys": "a"}, timeout=30).status_code for _ in range(3)]
    assert asked == [200, 200, 429]


def test_a_rate_limit_is_raised_without_a_restart(server, sysadmin):
    tenancy = create_tenancy(sysadmin, transportDeviceTelemetryMsgRateLimit="1:600")
    device = tenancy.admin.create_device()
    assert [send(server, device, {"n": n}) for n in range(2)] == [200, 429]
    change_limits(sysadmin, tenancy, transportDeviceTelemetryMsgRateLimit="1000:1")
    eventually(lambda: send(server, device, {"n": 2}) == 200)
