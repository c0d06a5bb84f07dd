"""How devices come to the platform: claimed by customers, provisioned by themselves, brought along by gateways."""

import json
import time

import pytest
import requests

from harness.paho_device import VERSIONS
from harness.people import activated, create_tenancy
from harness.rest import Device, telemetry, unique
from harness.server import eventually
from harness.wire import V5

PROVISION = "/provision/request"
PROVISIONED = "/provision/response"


@pytest.fixture
def home(sysadmin):
    """A tenancy that no other test uses."""
    return create_tenancy(sysadmin)


@pytest.fixture
def rest(home):
    return home.admin


# -- claiming --


def claim(customer, name: str, secret: str | None, expect: int = 200):
    body = {} if secret is None else {"secretKey": secret}
    return customer.post(f"/api/customer/device/{name}/claim", body, expect=expect).json()


@pytest.mark.parametrize("over", ["mqtt", "http"])
def test_a_customer_claims_a_device_and_gives_it_back(shared, home, rest, connect, over):
    device, customer = rest.create_device(), home.customer_user
    client = connect(username=device.token)

    def allow(body) -> None:
        if over == "mqtt":
            assert client.publish("v1/devices/me/claim", body) == 0
        else:
            answer = requests.post(f"{shared.http}/api/v1/{device.token}/claim", data=body, timeout=10)
            assert answer.status_code == 200

    assert claim(customer, device.name, "secret", 400) == "FAILURE"
    allow('{"secretKey":"secret","durationMs":60000}')
    assert claim(customer, device.name, "guess", 400) == "FAILURE"
    # A wrong guess changes nothing about what the device has allowed.
    claimed = claim(customer, device.name, "secret")
    assert claimed["response"] == "SUCCESS"
    assert claimed["device"]["customerId"]["id"] == home.customer["id"]["id"]
    assert claim(customer, device.name, "secret", 400) == "CLAIMED"
    second = rest.post("/api/customer", {"title": unique("second")}).json()
    stranger = activated(rest, "CUSTOMER_USER", customer=second)
    stranger.delete(f"/api/customer/device/{device.name}/claim", expect=403)
    customer.delete(f"/api/customer/device/{device.name}/claim")
    assert customer.get(f"/api/device/{device.id}", expect=None).status_code in (403, 404)
    # Without a secret, and for a short time.
    allow("")
    assert claim(customer, device.name, None)["response"] == "SUCCESS"
    rest.delete(f"/api/customer/device/{device.name}/claim")
    allow('{"durationMs":1}')
    time.sleep(0.1)
    assert claim(customer, device.name, "", 400) == "FAILURE"
    claim(customer, unique("nobody"), "", 404)


def test_who_guesses_secrets_waits_and_keeps_nobody_else_from_claiming(home, rest):
    device = rest.create_device()
    data = {"claimingData": {"secretKey": "written", "expirationTime": int(time.time() * 1000) + 600_000}}
    rest.post(telemetry(device.id, "SERVER_SCOPE"), data)
    second = rest.post("/api/customer", {"title": unique("second")}).json()
    stranger = activated(rest, "CUSTOMER_USER", customer=second)
    for number in range(5):
        assert claim(stranger, device.name, f"guess {number}", 400) == "FAILURE"
    # The right secret is no different from a wrong one now, for any device.
    assert "Too many wrong secrets" in claim(stranger, device.name, "written", 429)["message"]
    claim(stranger, rest.create_device().name, "guess", 429)
    assert claim(home.customer_user, device.name, "written")["response"] == "SUCCESS"


def test_a_secret_in_an_attribute_claims_a_device(home, rest):
    device = rest.create_device()
    data = {"claimingData": {"secretKey": "written", "expirationTime": int(time.time() * 1000) + 60_000}}
    rest.post(telemetry(device.id, "SERVER_SCOPE"), data)
    assert claim(home.customer_user, device.name, "guess", 400) == "FAILURE"
    assert claim(home.customer_user, device.name, "written")["response"] == "SUCCESS"
    assert "claimingData" not in rest.attributes(device.id, "SERVER_SCOPE")


# -- provisioning --


def profile(rest, kind: str) -> tuple[dict, dict]:
    made = {
        "name": unique("profile"),
        "type": "DEFAULT",
        "transportType": "DEFAULT",
        "provisionType": kind,
        "provisionDeviceKey": unique("key"),
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "transportConfiguration": {"type": "DEFAULT"},
            "provisionConfiguration": {"type": kind, "provisionDeviceSecret": unique("secret")},
        },
    }
    saved = rest.post("/api/deviceProfile", made).json()
    secret = saved["profileData"]["provisionConfiguration"]["provisionDeviceSecret"]
    return saved, {"provisionDeviceKey": saved["provisionDeviceKey"], "provisionDeviceSecret": secret}


@pytest.fixture
def provision(shared, connect):
    """Asks for credentials over HTTP, and over MQTT as who asks there does."""

    def over_http(request: dict) -> dict:
        answer = requests.post(f"{shared.http}/api/v1/provision", json=request, timeout=10)
        assert answer.status_code == 200
        return answer.json()

    def over_mqtt(request: dict, version="3.1.1", **login) -> dict:
        client = connect(version, **(login or {"username": "provision"}))
        assert client.subscribe((PROVISIONED, 1), ("v1/devices/me/attributes", 1))[0] == 1
        client.publish(PROVISION, json.dumps(request))
        topic, payload = client.message()
        assert topic == PROVISIONED
        return json.loads(payload)

    return {"http": over_http, "mqtt": over_mqtt}


NOT_FOUND = {"status": "NOT_FOUND", "errorMsg": "Provision data was not found!"}
FAILURE = {"status": "FAILURE", "errorMsg": "Failed to provision device!"}


@pytest.mark.parametrize("over", ["mqtt", "http"])
def test_a_new_device_gets_its_credentials(shared, rest, connect, provision, over):
    made, shown = profile(rest, "ALLOW_CREATE_NEW_DEVICES")
    ask = provision[over]
    name = unique("provisioned")
    answer = ask(shown | {"deviceName": name})
    assert (answer["status"], answer["credentialsType"]) == ("SUCCESS", "ACCESS_TOKEN")
    device = rest.device_by_name(name)
    assert device["deviceProfileId"] == made["id"]
    assert rest.attributes(device["id"]["id"], "SERVER_SCOPE")["provisionState"] == "provisioned"
    client = connect(username=answer["credentialsValue"])
    client.publish("v1/devices/me/telemetry", '{"here":1}')
    assert eventually(lambda: rest.values(device["id"]["id"], "here") == [1])
    assert ask(shown | {"deviceName": name}) == FAILURE
    token = unique("token")
    own = ask(shown | {"deviceName": unique("own"), "credentialsType": "ACCESS_TOKEN", "token": token, "gateway": True})
    assert own["credentialsValue"] == token
    basic = {"credentialsType": "MQTT_BASIC", "clientId": unique("c"), "username": unique("u"), "password": "p"}
    answer = ask(shown | basic)
    assert answer["credentialsType"] == "MQTT_BASIC"
    assert answer["credentialsValue"]["userName"] == basic["username"]
    connect(client_id=basic["clientId"], username=basic["username"], password="p")
    assert ask(shown | {"deviceName": unique("x"), "credentialsType": "X509_CERTIFICATE"}) == FAILURE


@pytest.mark.parametrize("over", ["mqtt", "http"])
def test_a_device_that_is_there_is_provisioned_once(rest, provision, over):
    made, shown = profile(rest, "CHECK_PRE_PROVISIONED_DEVICES")
    ask = provision[over]
    device = rest.create_device(type=None, deviceProfileId=made["id"])
    other = rest.create_device()
    answer = ask(shown | {"deviceName": device.name})
    assert (answer["status"], answer["credentialsValue"]) == ("SUCCESS", device.token)
    for name in (device.name, other.name, unique("nobody")):
        assert ask(shown | {"deviceName": name}) == FAILURE


@pytest.mark.parametrize("over", ["mqtt", "http"])
def test_nobody_is_provisioned_who_does_not_know_the_secret(rest, provision, over):
    _, shown = profile(rest, "ALLOW_CREATE_NEW_DEVICES")
    _, disabled = profile(rest, "DISABLED")
    ask = provision[over]
    for wrong in ({"provisionDeviceSecret": "guess"}, {"provisionDeviceKey": "guess"}, {"provisionDeviceSecret": ""}):
        assert ask(shown | {"deviceName": unique("x")} | wrong) == NOT_FOUND
    if disabled["provisionDeviceKey"] and disabled["provisionDeviceSecret"]:
        assert ask(disabled | {"deviceName": unique("x")}) == NOT_FOUND


@pytest.mark.parametrize("version", VERSIONS)
def test_who_asks_for_credentials_may_do_nothing_else(shared, rest, connect, provision, version):
    _, shown = profile(rest, "ALLOW_CREATE_NEW_DEVICES")
    answer = provision["mqtt"](shown | {"deviceName": unique("x")}, version, client_id="provision")
    assert answer["status"] == "SUCCESS"
    client = connect(version, username="provision")
    refused = 0x8F if version == "5.0" else 0x80
    assert client.subscribe((PROVISIONED, 0), ("v1/devices/me/rpc/request/+", 1), ("#", 1)) == [0, refused, refused]
    assert client.unsubscribe(PROVISIONED, PROVISIONED) == ([0, 0x11] if version == "5.0" else [])
    client.send("v1/devices/me/telemetry", '{"a":1}', 1)
    assert client.disconnected() == (0x90 if version == "5.0" else None)


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"provisionDeviceKey":"x"}'])
def test_a_wrong_request_is_refused(shared, connect, body):
    answer = requests.post(f"{shared.http}/api/v1/provision", data=body, timeout=10)
    assert answer.status_code == 500 and answer.text
    client = connect("5.0", username="provision")
    assert client.publish(PROVISION, body) == 0x99
    client.send(PROVISION, body)
    assert client.disconnected() == 0x99
    older = connect(username="provision")
    older.send(PROVISION, body, 1)
    older.disconnected()


def test_numbers_are_taken_for_text_where_a_shell_has_eaten_the_quotes(rest, provision):
    _, shown = profile(rest, "ALLOW_CREATE_NEW_DEVICES")
    name = time.time_ns()
    assert provision["http"](shown | {"deviceName": name, "gateway": "true"})["status"] == "SUCCESS"
    assert rest.device_by_name(str(name))["additionalInfo"] == {"gateway": True}


# -- gateways --


@pytest.fixture
def gateway(rest):
    return rest.create_device(additionalInfo={"gateway": True})


def behind(rest, name: str) -> Device:
    """The device that a gateway has brought along."""
    saved = rest.device_by_name(name)
    token = rest.credentials(saved["id"]["id"])["credentialsId"]
    return Device(saved["id"]["id"], name, token, saved)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_gateway_brings_devices_along(rest, gateway, connect, version):
    client = connect(version, username=gateway.token)
    meter, pump = unique("meter"), unique("pump")
    assert client.publish("v1/gateway/connect", json.dumps({"device": meter, "type": "meters"})) == 0
    device = behind(rest, meter)
    assert device.json["type"] == "meters" and device.json["additionalInfo"]["lastConnectedGateway"] == gateway.id
    relations = rest.get("/api/relations", fromId=gateway.id, fromType="DEVICE").json()
    assert [(one["type"], one["to"]["id"]) for one in relations] == [("Created", device.id)]
    values = {
        meter: [{"ts": 1_700_000_000_000, "values": {"t": 1}}, {"ts": 1_700_000_001_000, "values": {"t": 2}}],
        pump: [{"on": True}],
        unique("no list"): {"on": True},
    }
    assert client.publish("v1/gateway/telemetry", json.dumps(values)) == 0
    assert eventually(lambda: rest.values(device.id, "t") == [1, 2])
    other = behind(rest, pump)
    assert other.json["type"] == "default"
    assert eventually(lambda: rest.values(other.id, "on") == [True])
    assert client.publish("v1/gateway/attributes", json.dumps({meter: {"fw": "a"}, pump: {"fw": "b"}})) == 0
    assert eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE") == {"fw": "a"})
    assert eventually(lambda: rest.attributes(other.id, "CLIENT_SCOPE") == {"fw": "b"})
    assert eventually(lambda: rest.activity(other.id)[0])
    assert client.publish("v1/gateway/disconnect", json.dumps({"device": meter})) == 0


def test_what_goes_to_a_device_goes_through_its_gateway(rest, gateway, connect):
    client = connect(username=gateway.token)
    client.subscribe(("v1/gateway/attributes", 1), ("v1/gateway/rpc", 1), ("v1/gateway/attributes/response", 1))
    name = unique("meter")
    client.publish("v1/gateway/connect", json.dumps({"device": name}))
    device = behind(rest, name)
    rest.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 30, "mode": "eco"})
    data = {"interval": 30, "mode": "eco"}
    assert read(client.message()) == ("v1/gateway/attributes", {"device": name, "data": data})
    rest.delete(telemetry(device.id, "SHARED_SCOPE"), keys="mode")
    assert read(client.message()) == ("v1/gateway/attributes", {"device": name, "data": {"deleted": ["mode"]}})

    def ask(**request) -> dict:
        client.publish("v1/gateway/attributes/request", json.dumps({"id": 3, "device": name} | request))
        topic, body = read(client.message())
        assert topic == "v1/gateway/attributes/response"
        return body

    assert ask(client=False, key="interval") == {"id": 3, "device": name, "value": 30}
    assert ask(client=False, keys=["interval", "none"]) == {"id": 3, "device": name, "values": {"interval": 30}}
    assert ask(client=True, key="none") == {"id": 3, "device": name}

    kept = rest.post(f"/api/rpc/twoway/{device.id}", {"method": "get", "params": 1, "persistent": True}).json()["rpcId"]
    topic, call = read(client.message())
    assert (topic, call["device"], call["data"]["method"], call["data"]["params"]) == ("v1/gateway/rpc", name, "get", 1)
    answer = {"device": name, "id": call["data"]["id"], "data": {"ok": True}}
    client.publish("v1/gateway/rpc", json.dumps(answer))
    found = lambda: rest.get(f"/api/rpc/persistent/{kept}").json()
    assert eventually(lambda: found()["status"] == "SUCCESSFUL") and found()["response"] == {"ok": True}
    client.publish("v1/gateway/disconnect", json.dumps({"device": name}))
    rest.post(telemetry(device.id, "SHARED_SCOPE"), {"interval": 31})
    assert client.silent()


def test_a_gateway_is_acknowledged_first_and_answered_then(rest, gateway, dial):
    connection, name = dial(V5), unique("meter")
    assert connection.connect(username=gateway.token) == 0
    asked = {"id": 3, "device": name, "client": True, "keys": ["none", "neither"]}
    assert connection.publish("v1/gateway/attributes/request", json.dumps(asked)) == 0
    assert json.loads(connection.message().payload) == {"id": 3, "device": name}
    for topic, wrong in (("telemetry", {"t": 1}), ("attributes", 5), ("claim", 5)):
        assert connection.publish(f"v1/gateway/{topic}", json.dumps({name: wrong})) == 0x99
    mixed = {name: {"fw": "a"}, "left out": 5}
    assert connection.publish("v1/gateway/attributes", json.dumps(mixed)) == 0
    assert eventually(lambda: rest.attributes(behind(rest, name).id, "CLIENT_SCOPE") == {"fw": "a"})


def read(message) -> tuple[str, dict]:
    topic, payload = message
    return topic, json.loads(payload)


def test_a_device_behind_a_gateway_is_claimed(home, rest, gateway, connect):
    client = connect(username=gateway.token)
    name = unique("meter")
    assert client.publish("v1/gateway/claim", json.dumps({name: {"secretKey": "s", "durationMs": 60000}})) == 0
    assert claim(home.customer_user, name, "s")["response"] == "SUCCESS"


def test_a_gateway_that_goes_takes_its_devices_along(rest, gateway, connect):
    client = connect(username=gateway.token)
    name = unique("meter")
    client.publish("v1/gateway/connect", json.dumps({"device": name}))
    device = behind(rest, name)
    stamps = lambda: rest.attributes(device.id, "SERVER_SCOPE")
    assert eventually(lambda: "lastConnectTime" in stamps())
    client.client.disconnect()
    assert eventually(lambda: "lastDisconnectTime" in stamps())


def test_a_deleted_device_does_not_end_its_gateway(rest, gateway, connect):
    client = connect("5.0", username=gateway.token)
    names = [unique("meter"), unique("meter")]
    client.publish("v1/gateway/telemetry", json.dumps({name: [{"a": 1}] for name in names}))
    rest.delete(f"/api/device/{behind(rest, names[0]).id}")
    assert client.publish("v1/gateway/telemetry", json.dumps({names[1]: [{"a": 2}]})) == 0
    # One that is named again is made anew.
    assert client.publish("v1/gateway/telemetry", json.dumps({names[0]: [{"b": 3}]})) == 0
    assert eventually(lambda: rest.values(behind(rest, names[0]).id, "b") == [3])


def test_a_gateway_hears_what_becomes_of_its_devices_even_if_it_was_away(rest, gateway, connect):
    calls = ("v1/devices/me/rpc/request/+", 1)
    client = connect(username=gateway.token)
    client.subscribe(calls)
    old, new = unique("meter"), unique("gauge")
    client.publish("v1/gateway/connect", json.dumps({"device": old}))
    saved = behind(rest, old).json
    renamed = rest.post("/api/device", saved | {"name": new}).json()
    topic, call = read(client.message())
    assert topic.startswith("v1/devices/me/rpc/request/")
    assert (call["method"], call["params"]) == ("gateway_device_renamed", {old: new})
    # It calls the device by its new name, and is not told things twice for that.
    client.publish("v1/gateway/connect", json.dumps({"device": new}))
    assert len(rest.get(f"/api/device/{saved['id']['id']}/sessions").json()) == 1
    # Another label is none of its business.
    rest.post("/api/device", renamed | {"label": "warm"})
    client.client.disconnect()
    assert eventually(lambda: rest.get(f"/api/device/{gateway.id}/sessions").json() == [])
    rest.delete(f"/api/device/{saved['id']['id']}")
    client = connect(username=gateway.token)
    client.subscribe(calls)
    _, call = read(client.message())
    assert (call["method"], call["params"]) == ("gateway_device_deleted", new)
    told = rest.get(f"/api/rpc/persistent/device/{gateway.id}", pageSize=10, page=0).json()["data"]
    assert [one["request"]["oneway"] for one in told] == [True, True]


def test_what_a_gateway_may_not_say(sysadmin, home, rest, gateway, connect):
    client = connect("5.0", username=gateway.token)
    for topic, body in [
        ("telemetry", "{"),
        ("telemetry", "[]"),
        ("telemetry", "{}"),
        ("telemetry", '{"A":[17]}'),
        ("attributes", '{"A":[1]}'),
        ("connect", "{}"),
        ("connect", '{"device":""}'),
        ("connect", json.dumps({"device": gateway.name})),
        ("rpc", '{"device":"A"}'),
        ("claim", '{"A":17}'),
    ]:
        assert client.publish(f"v1/gateway/{topic}", body) == 0x99, (topic, body)
    assert client.publish("v1/gateway/other", "{}") == 0x90
    ordinary = rest.create_device()
    plain = connect(username=ordinary.token)
    plain.send("v1/gateway/telemetry", '{"stolen":[{"a":1}]}', 1)
    assert plain.publish("v1/devices/me/telemetry", '{"a":1}', 0) == 0
    assert rest.get("/api/tenant/devices", deviceName="stolen", expect=None).status_code == 404
    full = home.profile | {"profileData": {"configuration": {"type": "DEFAULT", "maxDevices": 1}}}
    sysadmin.post("/api/tenantProfile", full)
    assert eventually(lambda: client.publish("v1/gateway/connect", json.dumps({"device": unique("late")})) == 0x97)
