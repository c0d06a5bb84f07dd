"""Bulk imports of devices and assets from CSV, as the web interface sends them."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

from harness.paho_device import PahoDevice
from harness.people import create_tenancy
from harness.rest import telemetry
from harness.server import eventually

DEVICES = "/api/device/bulk_import"
COLUMNS = [
    {"type": "NAME"},
    {"type": "TYPE"},
    {"type": "LABEL"},
    {"type": "SERVER_ATTRIBUTE", "key": "serial"},
    {"type": "SHARED_ATTRIBUTE", "key": "limits"},
    {"type": "TIMESERIES", "key": "temperature"},
    {"type": "ACCESS_TOKEN"},
    {"type": "IS_GATEWAY"},
    {"type": "DESCRIPTION"},
]


def request(file: str, columns=None, **mapping) -> dict:
    return {"file": file, "mapping": {"columns": columns or COLUMNS, "delimiter": ",", "update": True} | mapping}


def test_thirty_thousand_devices_in_one_call(sysadmin, shared, record_property):
    admin = create_tenancy(sysadmin).admin
    lines = [
        f'meter-{n},meter,"North, {n}",{1000 + n},,{n % 40}.5,token-{admin.user["id"]["id"]}-{n},,'
        for n in range(30_000)
    ]
    begun = time.monotonic()
    answer = admin.call("POST", DEVICES, json=request("\n".join(lines)), timeout=300).json()
    took = time.monotonic() - begun
    print(f"30,000 devices imported in {took:.1f} s")
    assert answer == {"created": 30_000, "updated": 0, "errors": 0, "errorsList": []}
    assert admin.get("/api/tenant/devices", pageSize=1, page=0).json()["totalElements"] == 30_000
    last = admin.device_by_name("meter-29999")
    assert last["label"] == "North, 29999" and last["type"] == "meter"
    assert admin.attributes(last["id"]["id"], "SERVER_SCOPE") == {"active": False, "serial": 30999}
    assert admin.latest(last["id"]["id"], "temperature") == {"temperature": 39.5}
    token = f"token-{admin.user['id']['id']}-29999"
    answer = admin.session.post(f"{shared.http}/api/v1/{token}/telemetry", json={"temperature": 1}, timeout=10)
    assert answer.status_code == 200, "its token opens the door"
    eventually(lambda: admin.latest(last["id"]["id"], "temperature") == {"temperature": 1})


def test_wrong_lines_are_named_and_the_rest_is_stored(sysadmin):
    admin = create_tenancy(sysadmin).admin
    taken = admin.create_device()
    file = "\r\n".join(
        [
            "name,type,label,sn,limits,t,token,gateway,text",
            'one,pump,,12,"{""low"":1}",20,,true,first',
            ",pump,,,,,,,",
            f"two,pump,,,,,{taken.token},,",
            "three,pump,,,,,,,,too,many",
            f"{'x' * 300},,,,,,,,",
            "four,,,,,,,,",
            "one,pump,Once more,13,,,,,",
        ]
    )
    answer = admin.post(DEVICES, request(file, header=True)).json()
    assert (answer["created"], answer["updated"], answer["errors"]) == (2, 1, 4), answer
    starts = [line.split(":")[0] for line in answer["errorsList"]]
    assert starts == ["Line 3", "Line 4", "Line 5", "Line 6"], answer
    assert "credentials" in answer["errorsList"][1] and "name" in answer["errorsList"][0]
    one = admin.device_by_name("one")
    assert one["label"] == "Once more" and one["additionalInfo"] == {"gateway": True, "description": "first"}
    assert admin.attributes(one["id"]["id"], "SHARED_SCOPE") == {"limits": {"low": 1}}
    assert admin.attributes(one["id"]["id"], "SERVER_SCOPE")["serial"] == 13
    assert admin.device_by_name("four")["type"] == "default"


def test_credentials_of_every_kind_are_imported_and_kept(sysadmin, authority):
    admin = create_tenancy(sysadmin).admin
    certificate = authority.issue("imported").certificate.read_text()
    kinds = [
        "NAME",
        "X509",
        "MQTT_CLIENT_ID",
        "MQTT_USER_NAME",
        "MQTT_PASSWORD",
        "LWM2M_CLIENT_ENDPOINT",
        "LWM2M_CLIENT_SECURITY_CONFIG_MODE",
        "LWM2M_CLIENT_IDENTITY",
        "LWM2M_CLIENT_KEY",
        "TYPE",
    ]
    columns = [{"type": kind} for kind in kinds]
    user = admin.user["id"]["id"]
    file = f'a;"{certificate}";;;;;;;;\nb;;;{user};secret;;;;;\nc;;;;;urn:{user};PSK;me-{user};00ff;lwm2m\nd;;;;;;;;;'
    answer = admin.post(DEVICES, request(file, columns, delimiter=";")).json()
    assert (answer["created"], answer["errors"]) == (4, 0), answer

    def credentials(name: str) -> dict:
        return admin.credentials(admin.device_by_name(name)["id"]["id"])

    assert [credentials(name)["credentialsType"] for name in "abcd"] == [
        "X509_CERTIFICATE",
        "MQTT_BASIC",
        "LWM2M_CREDENTIALS",
        "ACCESS_TOKEN",
    ]
    assert credentials("b")["credentialsId"] == user and len(credentials("d")["credentialsId"]) == 20
    # Devices that come again without credentials keep theirs.
    before = credentials("b")
    again = admin.post(DEVICES, request("b", [{"type": "NAME"}])).json()
    assert (again["updated"], again["errors"]) == (1, 0) and credentials("b") == before


def test_a_device_hears_of_the_shared_attributes_of_its_line(tenant, shared, device):
    name = tenant.get(f"/api/device/{device.id}").json()["name"]
    columns = [{"type": "NAME"}, {"type": "SHARED_ATTRIBUTE", "key": "limit"}]
    with PahoDevice(shared.mqtt_address, "3.1.1", username=device.token) as client:
        assert client.connect() == 0
        assert client.subscribe(("v1/devices/me/attributes", 1)) == [1]
        assert tenant.post(DEVICES, request(f"{name},7", columns)).json()["updated"] == 1
        assert json.loads(client.message()[1]) == {"limit": 7}


def test_assets_are_imported_and_updated_only_where_asked(sysadmin):
    admin = create_tenancy(sysadmin).admin
    columns = [{"type": "NAME"}, {"type": "TYPE"}, {"type": "SERVER_ATTRIBUTE", "key": "floors"}]
    path = "/api/asset/bulk_import"
    answer = admin.post(path, request("House,building,3\nBarn,,1", columns)).json()
    assert (answer["created"], answer["errors"]) == (2, 0), answer
    answer = admin.post(path, request("House,tower,9", columns, update=False)).json()
    assert (answer["updated"], answer["errors"]) == (1, 0), answer
    house = admin.get("/api/tenant/assets", assetName="House").json()
    assert house["type"] == "tower"
    attributes = admin.get(telemetry(house["id"]["id"], "values/attributes").replace("DEVICE", "ASSET")).json()
    assert [(one["key"], one["value"]) for one in attributes] == [("floors", 3)]


def test_what_a_crash_leaves_of_an_import_is_whole(make_server):
    server = make_server().start()
    admin = server.rest()
    columns = [{"type": "NAME"}, {"type": "TYPE"}, {"type": "SERVER_ATTRIBUTE", "key": "serial"}]
    file = "\n".join(f"crash-{n},crash,{n}" for n in range(4_000))
    mine = {"entityFilter": {"type": "deviceType", "deviceTypes": ["crash"]}}
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(server.rest().session.post, server.http + DEVICES, json=request(file, columns), timeout=60)
        eventually(lambda: admin.post("/api/entitiesQuery/count", mine).json() > 0)
        server.kill()
        assert call.exception() is not None, "the import had not ended"
    server.start()
    admin.base = server.http
    left = admin.post("/api/entitiesQuery/count", mine).json()
    with_values = {
        "key": {"type": "SERVER_ATTRIBUTE", "key": "serial"},
        "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": "GREATER_OR_EQUAL", "value": {"defaultValue": 0}},
    }
    assert 0 < left < 4_000
    assert admin.post("/api/entitiesQuery/count", mine | {"keyFilters": [with_values]}).json() == left
    assert len(admin.credentials(admin.device_by_name("crash-0")["id"]["id"])["credentialsId"]) == 20
    answer = admin.call("POST", DEVICES, json=request(file, columns), timeout=300).json()
    assert (answer["created"], answer["updated"], answer["errors"]) == (4_000 - left, left, 0)


def test_a_tenant_imports_no_more_than_it_may_have(sysadmin):
    admin = create_tenancy(sysadmin, maxDevices=3).admin
    taken = admin.create_device()
    columns = [{"type": "NAME"}, {"type": "ACCESS_TOKEN"}]
    answer = admin.post(DEVICES, request(f"wrong,{taken.token}\na\nb\nc", columns)).json()
    assert (answer["created"], answer["errors"]) == (2, 2), answer
    assert [line[:6] for line in answer["errorsList"]] == ["Line 1", "Line 4"], "a wrong line takes no room"
    assert "limit" in answer["errorsList"][1]
    assert admin.post(DEVICES, request("x", [{"type": "LABEL"}]), expect=400).json()["errorCode"] == 31
