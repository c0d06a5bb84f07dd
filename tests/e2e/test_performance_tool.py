"""ThingsBoard's performance tool, request by request as its version 4.0.1 sends them with the Java REST client.

The tool itself cannot be installed by the tests, so its sequence stands here: profiles, dashboards, customers with their users,
devices by four workers at once, a root rule chain of its own that counts, telemetry over MQTT 3.1, HTTP and gateways, and the
way back. docs/clients.md says how to run it.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests

from harness.chains import counted
from harness.paho_device import PahoDevice
from harness.people import PASSWORD
from harness.rest import Rest, now_ms, telemetry, unique
from harness.server import eventually

WORKERS = 4
DEVICES = 12
ROUNDS = 3
# What the client writes for an object of its own that was never saved.
NEW = {"id": None, "createdTime": 0, "tenantId": None, "version": None, "externalId": None, "additionalInfo": None}
NODE = {"id": None, "createdTime": 0, "ruleChainId": None, "debugSettings": None, "singletonMode": False}
NODE |= {"queueName": None, "externalId": None, "additionalInfo": None}
PREFIX = "org.thingsboard.rule.engine."


class JavaRest(Rest):
    """The REST API as Spring's RestTemplate speaks it."""

    def __init__(self, base: str, username: str, password: str):
        super().__init__(base, username, password)
        self.session.headers.update(
            {
                "Accept": "application/json, application/cbor, application/*+json",
                "User-Agent": "Java",
            }
        )

    def post_nothing(self, path: str) -> requests.Response:
        """`postForEntity` without a body, which Java declares as an empty form."""
        return self.call("POST", path, headers={"Content-type": "application/x-www-form-urlencoded"}, data=b"")

    def remove(self, path: str) -> None:
        """DELETE, which Java declares as an empty form, too."""
        self.call("DELETE", path, headers={"Content-type": "application/x-www-form-urlencoded"}, data=b"")


def predicate(operation: str, value: float) -> dict:
    """A condition on the battery, with all that the tool writes."""
    return {
        "key": {"type": "TIME_SERIES", "key": "batteryLevel"},
        "valueType": "NUMERIC",
        "value": None,
        "predicate": {
            "type": "NUMERIC",
            "operation": operation,
            "value": {"defaultValue": value, "userValue": None, "dynamicValue": None},
        },
    }


def rule(*conditions: dict) -> dict:
    """An alarm rule of a device profile."""
    return {
        "condition": {"condition": list(conditions), "spec": {"type": "SIMPLE", "predicate": None}},
        "schedule": None,
        "alarmDetails": None,
        "dashboardId": None,
    }


def profile(name: str) -> dict:
    """A device profile that raises an alarm when a battery is low."""
    alarm = {
        "id": "8222e30f-beb3-2c34-f4e2-ae338cd2fcea",
        "alarmType": "battery low",
        "createRules": {"CRITICAL": rule(predicate("LESS_OR_EQUAL", 20.0))},
        "clearRule": rule(predicate("GREATER", 20.0), predicate("EQUAL", 0.0)),
        "propagate": False,
        "propagateRelationTypes": None,
    }
    return NEW | {
        "name": name,
        "description": f"{name} profile of a performance test",
        "image": None,
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "provisionType": "DISABLED",
        "defaultRuleChainId": None,
        "defaultDashboardId": None,
        "defaultQueueName": "",
        "provisionDeviceKey": None,
        "firmwareId": None,
        "softwareId": None,
        "default": False,
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "DEFAULT"},
            "provisionConfiguration": {"type": "DISABLED", "provisionDeviceSecret": None},
            "alarms": [alarm],
        },
    }


def node(class_name: str, name: str, configuration: dict) -> dict:
    """A rule node as the client writes it."""
    return NODE | {"type": PREFIX + class_name, "name": name, "configuration": configuration, "configurationVersion": 0}


# Nodes of the tool's root chain, with the device profile node that raises the alarms of the profile.
NODES = [
    node("telemetry.TbMsgTimeseriesNode", "Save Timeseries", {"defaultTTL": 0}),
    node("telemetry.TbMsgAttributesNode", "Save Client Attributes", {"scope": "CLIENT_SCOPE"}),
    node("filter.TbMsgTypeSwitchNode", "Message Type Switch", {"version": 0}),
    node("rpc.TbSendRPCRequestNode", "RPC Call Request", {"timeoutInSeconds": 60}),
    node("telemetry.TbMsgTimeseriesNode", "Save ts", {"defaultTTL": 0}),
    node("action.TbMsgCountNode", "Messages per second", {"telemetryPrefix": "messageCount", "interval": 1}),
    node("profile.TbDeviceProfileNode", "Device Profile", {}),
]
CONNECTIONS = [
    (6, 2, "Success"),
    (2, 0, "Post telemetry"),
    (2, 1, "Post attributes"),
    (2, 3, "RPC Request to Device"),
    (0, 5, "Success"),
    (1, 5, "Success"),
    (5, 4, "Success"),
]


class Tool:
    """One run: what it has made, to be taken away at its end."""

    def __init__(self, base: str, username: str, password: str):
        self.rest = JavaRest(base, username, password)
        self.user = (base, username, password)
        self.workers = ThreadPoolExecutor(WORKERS)
        self.users: list[str] = []

    def create_profiles(self) -> None:
        """Those that are not there already."""
        there = self.rest.get("/api/deviceProfiles", pageSize=1000, page=0).json()["data"]
        self.profiles = {one["name"]: one for one in there}
        for name in ("INDUSTRIAL_PLC", "SMART_METER", "SMART_TRACKER"):
            if name not in self.profiles:
                self.profiles[name] = self.rest.post("/api/deviceProfile", profile(name)).json()

    def create_dashboards(self) -> None:
        """Two, after a look at all there are."""
        self.dashboards = []
        for title in ("Alarms", "Devices"):
            self.rest.get("/api/tenant/dashboards", pageSize=1000, page=0)
            body = {"title": title, "image": None, "mobileHide": False, "mobileOrder": None}
            body |= {"configuration": {"widgets": {"a": {"config": {"_hash": 0.0897239769707836}}}}, "name": title}
            saved = self.rest.post("/api/dashboard", body).json()
            assert saved["configuration"] == body["configuration"]
            self.dashboards.append(saved["id"])

    def create_customer(self, number: int) -> dict:
        """A customer with a user who opens the second dashboard."""
        title = f"C{number:08}"
        customer = self.rest.post("/api/customer", NEW | {"title": title, "name": title, "email": None}).json()
        additional = {"defaultDashboardFullscreen": False, "defaultDashboardId": self.dashboards[1]["id"]}
        user = NEW | {
            "tenantId": customer["tenantId"],
            "customerId": customer["id"],
            "email": f"user{number}@{customer['id']['id']}.com",
            "authority": "CUSTOMER_USER",
            "firstName": f"User {number}",
            "additionalInfo": additional,
        }
        saved = self.rest.post("/api/user", user, sendActivationMail="false").json()
        link = self.rest.get(f"/api/user/{saved['id']['id']}/activationLink").text
        body = {"activateToken": link.rpartition("activateToken=")[2], "password": "customer"}
        tokens = self.rest.post("/api/noauth/activate", body, sendActivationMail="true").json()
        assert tokens["token"] and tokens["refreshToken"]
        Rest(self.rest.base, saved["email"], "customer")
        self.users.append(saved["email"])
        return customer

    def create_devices(self, names: list[str], kind: str, *, gateways: bool = False, tokens: bool = True) -> list[dict]:
        """Devices of these names, by all workers; their tokens are their names, or else chosen by the server."""

        def create(name: str) -> dict:
            # The tool looks first, and takes what it finds.
            self.rest.get("/api/tenant/devices", deviceName=name, expect=404)
            body = NEW | {
                "customerId": None,
                "name": name,
                "type": "gateway" if gateways else "device",
                "label": None,
                "deviceProfileId": self.profiles[kind]["id"],
                "firmwareId": None,
                "softwareId": None,
                "deviceData": None,
                "additionalInfo": {"gateway": True} if gateways else None,
            }
            saved = self.rest.post("/api/device", body, accessToken=name if tokens else "").json()
            assert saved["type"] == kind
            return saved

        return list(self.workers.map(create, names))

    def replace_root_chain(self) -> None:
        """A chain that counts becomes the root before it has nodes; the old one is remembered."""
        self.rest = JavaRest(*self.user)
        page = self.rest.get("/api/ruleChains", pageSize=100, page=0, textSearch="Root Rule Chain").json()
        self.old_root = page["data"][0]["id"]["id"]
        self.rest.post_nothing(f"/api/ruleChain/{self.old_root}/root")
        body = NEW | {"name": "Root Rule Chain", "type": None, "firstRuleNodeId": None, "root": False}
        self.chain = self.rest.post("/api/ruleChain", body | {"debugMode": False, "configuration": None}).json()["id"]
        assert self.rest.post_nothing(f"/api/ruleChain/{self.chain['id']}/root").json()["root"]
        links = [{"fromIndex": start, "toIndex": end, "type": label} for start, end, label in CONNECTIONS]
        metadata = {"ruleChainId": self.chain, "version": None, "firstNodeIndex": 6, "nodes": NODES}
        self.rest.post("/api/ruleChain/metadata", metadata | {"connections": links, "ruleChainConnections": None})

    def clean_up(self, devices: list[dict], customers: list[dict]) -> None:
        """The old root again, and all that was made away."""
        self.rest.login(*self.user[1:])
        assert self.rest.post_nothing(f"/api/ruleChain/{self.old_root}/root").json()["root"]
        self.rest.remove(f"/api/ruleChain/{self.chain['id']}")
        for kind, made in (("device", devices), ("customer", customers)):
            list(self.workers.map(lambda one, kind=kind: self.rest.remove(f"/api/{kind}/{one['id']['id']}"), made))
        for dashboard in self.dashboards:
            self.rest.remove(f"/api/dashboard/{dashboard['id']}")
        self.workers.shutdown()


def message(number: int, *, low: bool) -> dict:
    """One message of a smart meter; a low battery raises an alarm."""
    values = {"pulseCounter": number, "leakage": number % 7 > 1, "batteryLevel": 10 if low else 50 + number % 50}
    # A round may be over within the millisecond, and points of the same one take each other's place.
    return {"ts": now_ms() + number, "values": values}


@pytest.fixture
def tool(shared, rest):
    """The tool as the administrator of a tenant of its own."""
    run = Tool(shared.http, rest.user["email"], PASSWORD)
    run.create_profiles()
    run.create_dashboards()
    return run


def alarms_of(rest: Rest) -> list[tuple]:
    """Whose battery is low."""
    found = rest.get("/api/v2/alarms", pageSize=100, page=0, typeList="battery low", statusList="ACTIVE").json()["data"]
    return sorted((alarm["originatorName"], alarm["severity"]) for alarm in found)


def test_devices_over_mqtt_and_http_with_a_root_chain_of_the_tools(shared, rest, tool):
    customers = list(tool.workers.map(tool.create_customer, range(3)))
    names = [unique(f"DW{number:08}") for number in range(DEVICES)]
    devices = tool.create_devices(names, "SMART_METER")
    with ExitStack() as connected:
        clients = [
            connected.enter_context(
                PahoDevice(shared.mqtt_address, "3.1", client_id=f"MqttClient/{name}", username=name)
            )
            for name in names
        ]
        # The client of the tool gives up when the answer takes five seconds, and has no password.
        assert list(tool.workers.map(PahoDevice.connect, clients)) == [0] * DEVICES
        for client in clients:
            client.send("v1/devices/me/telemetry", '{"t1":73}')
        for device in devices:
            eventually(lambda device=device: rest.values(device["id"]["id"], "t1") == [73])
        tool.replace_root_chain()
        for number in range(ROUNDS):
            for index, client in enumerate(clients):
                client.send("v1/devices/me/telemetry", json.dumps(message(number, low=number == 1 and index == 0)))
        for device in devices:
            eventually(lambda device=device: rest.values(device["id"]["id"], "pulseCounter") == list(range(ROUNDS)))
    sent = DEVICES * ROUNDS
    for name in names:
        body = message(ROUNDS, low=name == names[1])
        answer = requests.post(f"{shared.http}/api/v1/{name}/telemetry", json=body, timeout=10)
        assert (answer.status_code, answer.content) == (200, b"")
        body = {"batteryLevel": 77}
        answer = requests.post(f"{shared.http}/api/v1/{name}/attributes", json=body, timeout=10)
        assert (answer.status_code, answer.content) == (200, b"")
    sent += 2 * DEVICES
    for device in devices:
        key = device["id"]["id"]
        eventually(lambda key=key: rest.values(key, "pulseCounter") == list(range(ROUNDS + 1)))
        eventually(lambda key=key: rest.attributes(key, "CLIENT_SCOPE")["batteryLevel"] == 77)
    low = sorted((name, "CRITICAL") for name in names[:2])
    eventually(lambda: alarms_of(rest) == low)
    eventually(lambda: counted(rest, "messageCount") == sent)
    tool.clean_up(devices, customers)
    assert rest.get("/api/tenant/deviceInfos", pageSize=10, page=0).json()["totalElements"] == 0
    titles = [customer["title"] for customer in rest.get("/api/customers", pageSize=10, page=0).json()["data"]]
    assert not [title for title in titles if title.startswith("C0")]
    assert rest.get("/api/tenant/dashboards", pageSize=10, page=0).json()["totalElements"] == 0
    assert alarms_of(rest) == []
    # The users of customers that are gone do not get in, and the next run finds its profiles.
    for user in tool.users:
        Rest(shared.http).post("/api/auth/login", {"username": user, "password": "customer"}, expect=401)
    kept = dict(tool.profiles)
    tool.create_profiles()
    assert tool.profiles == kept


def test_devices_behind_gateways(shared, rest, tool):
    gateways = [unique(f"GW{number:08}") for number in range(2)]
    names = [unique(f"DW{number:08}") for number in range(6)]
    made = tool.create_devices(gateways, "INDUSTRIAL_PLC", gateways=True)
    devices = tool.create_devices(names, "INDUSTRIAL_PLC", tokens=False)
    tokens = {rest.credentials(device["id"]["id"])["credentialsId"] for device in devices}
    assert len(tokens) == len(devices) and "" not in tokens and not tokens & set(names)
    tool.replace_root_chain()
    with ExitStack() as connected:
        clients = [
            connected.enter_context(
                PahoDevice(shared.mqtt_address, "3.1", client_id=f"MqttClient/{name}", username=name)
            )
            for name in gateways
        ]
        assert [client.connect() for client in clients] == [0, 0]
        for index, name in enumerate(names):
            clients[index % 2].send("v1/gateway/connect", json.dumps({"device": name}))
        lines = {f"line{number:03}": number + 0.25 for number in range(60)}
        for number in range(ROUNDS):
            for index, name in enumerate(names):
                point = {"ts": 1_700_000_000_000 + number, "values": lines | {"line000": number}}
                clients[index % 2].send("v1/gateway/telemetry", json.dumps({name: [point]}))
        for index, name in enumerate(names):
            clients[index % 2].send("v1/gateway/attributes", json.dumps({name: {"line001": 1.5}}))
        for client in clients:
            client.send("v1/devices/me/telemetry", '{"msgCount":0}')
        for device in devices:
            key = device["id"]["id"]
            eventually(lambda key=key: rest.values(key, "line000") == list(range(ROUNDS)))
            assert rest.latest(key, "line059") == {"line059": 59.25}
            eventually(lambda key=key: rest.attributes(key, "CLIENT_SCOPE")["line001"] == 1.5)
    eventually(lambda: counted(rest, "messageCount") == len(names) * (ROUNDS + 1) + len(gateways))
    tool.clean_up(devices + made, [])
    assert rest.get("/api/tenant/deviceInfos", pageSize=10, page=0).json()["totalElements"] == 0


def test_lists_in_queries_are_taken_as_both_java_clients_write_them(rest):
    devices = [rest.create_device() for _ in range(3)]
    ids = [device.id for device in devices]
    # The client that is generated from the API's description repeats the name, the other one joins.
    for written in (ids, ",".join(ids), [",".join(ids[:2]), ids[2]]):
        found = rest.get("/api/devices", deviceIds=written).json()
        assert sorted(device["id"]["id"] for device in found) == sorted(ids)
    for kind, severity in (("hot", "MAJOR"), ("cold", "MINOR"), ("wet", "CRITICAL")):
        rest.post("/api/alarm", {"type": kind, "originator": devices[0].json["id"], "severity": severity})
    query = {"typeList": ["hot", "cold"], "severityList": ["MAJOR", "CRITICAL"], "statusList": ["ACTIVE", "UNACK"]}
    found = rest.get("/api/v2/alarms", pageSize=10, page=0, **query).json()
    assert [alarm["type"] for alarm in found["data"]] == ["hot"]
    rest.post(telemetry(ids[0], "SERVER_SCOPE"), {"a": 1, "b,c": 2, "d": 3})
    for written, wanted in (
        ({"keys": ["a", "d"]}, "ad"),
        ({"keys": "a,d"}, "ad"),
        ({"key": ["a", "b,c"]}, ["a", "b,c"]),
    ):
        found = rest.get(telemetry(ids[0], "values/attributes/SERVER_SCOPE"), **written).json()
        assert sorted(entry["key"] for entry in found) == list(wanted)
    # What is empty is as if it was not there.
    query = {
        "type": "",
        "deviceProfileId": "",
        "active": "false",
        "textSearch": "",
        "sortProperty": "",
        "sortOrder": "",
    }
    found = rest.get("/api/tenant/deviceInfos", pageSize=10, page=0, **query).json()
    assert found["totalElements"] == 3
