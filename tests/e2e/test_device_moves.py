"""A device goes from one tenant to another, with what is its own and without what was its tenant's."""

import requests

from access.things import entity_view
from harness.chains import SAVE, SWITCH, Chain, events, post, script
from harness.paho_device import PahoDevice
from harness.people import Tenancy, create_tenancy
from harness.rest import telemetry, unique
from harness.server import eventually


def tell_tenant(home: Tenancy, label: str) -> None:
    """Has messages of a type kept as telemetry of their tenant."""
    chain = Chain()
    switch = chain.node(SWITCH)
    body = "{moved: msg.name, of: msg.tenantId.id, meta: JSON.stringify(metadata)}"
    turned = f"return {{msg: {body}, metadata: {{}}, msgType: 'POST_TELEMETRY_REQUEST'}};"
    turn = chain.node(script("transform.TbTransformMsgNode", "JS", turned))
    owner = chain.node(("transform.TbChangeOriginatorNode", {"originatorSource": "TENANT"}))
    save = chain.node(SAVE)
    chain.connect(switch, label, turn).connect(turn, "Success", owner).connect(owner, "Success", save)
    # Telemetry goes on being stored.
    chain.connect(switch, "Post telemetry", save).save(home.admin, root=True)


def told(home: Tenancy) -> dict:
    path = f"/api/plugins/telemetry/TENANT/{home.tenant['id']['id']}/values/timeseries"
    return {key: points[0]["value"] for key, points in home.admin.get(path).json().items()}


def test_a_device_goes_to_another_tenant_with_all_that_is_its_own(shared, sysadmin):
    old, new = create_tenancy(sysadmin), create_tenancy(sysadmin)
    rest, name, kind = old.admin, unique("meter"), unique("kind")
    device = rest.create_device(name, type=kind, label="warm")
    new_id = new.tenant["id"]["id"]
    rest.post(f"/api/customer/{old.customer['id']['id']}/device/{device.id}")
    post(shared, device, [{"ts": ts, "values": {"t": ts, "text": "x" * 100}} for ts in range(1, 200)])
    assert eventually(lambda: len(rest.values(device.id, "t")) == 199)
    post(shared, device, {"fw": "one"}, "attributes")
    assert eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE") == {"fw": "one"})
    for scope in ("SHARED_SCOPE", "SERVER_SCOPE"):
        rest.post(telemetry(device.id, f"attributes/{scope}"), {"own": scope})
    asset = rest.post("/api/asset", {"name": unique("house"), "type": "default"}).json()
    ends = {"from": asset["id"], "to": device.json["id"], "type": "Contains"}
    rest.post("/api/relation", ends)
    alarm = {"originator": device.json["id"], "type": "hot", "severity": "MAJOR", "status": "ACTIVE_UNACK"}
    alarm = rest.post("/api/alarm", alarm).json()["id"]["id"]
    rest.post(f"/api/rpc/oneway/{device.id}", {"method": "late", "params": {}, "persistent": True})
    client = PahoDevice(shared.mqtt_address, username=device.token)
    assert client.connect() == 0
    assert eventually(lambda: rest.activity(device.id)[0])
    path = f"/api/tenant/{new_id}/device/{device.id}"

    tell_tenant(old, "Entity Assigned To Tenant")
    tell_tenant(new, "Entity Assigned From Tenant")

    # What would be torn apart stays where it is.
    view = rest.post("/api/entityView", entity_view(device.id)).json()["id"]["id"]
    assert "entity views" in rest.post(path, expect=400).json()["message"]
    rest.delete(f"/api/entityView/{view}")
    taken = new.admin.create_device(name)
    assert "already exists" in rest.post(path, expect=400).json()["message"]
    new.admin.delete(f"/api/device/{taken.id}")
    assert "specified Tenant" in rest.post(f"/api/tenant/{device.id}/device/{device.id}", expect=400).json()["message"]

    moved = rest.post(path).json()
    assert (moved["tenantId"]["id"], moved["name"], moved["type"], moved["label"]) == (new_id, name, kind, "warm")
    assert moved["customerId"]["id"] == "13814000-1dd2-11b2-8080-808080808080"
    rest.get(f"/api/device/{device.id}", expect=404)
    client.disconnected()
    client.client.loop_stop()

    there = new.admin
    found = there.get(f"/api/device/{device.id}").json()
    profile = there.get(f"/api/deviceProfile/{found['deviceProfileId']['id']}").json()
    assert (profile["name"], profile["tenantId"]["id"]) == (kind, new_id)
    assert there.credentials(device.id)["credentialsId"] == device.token
    assert there.values(device.id, "t") == list(range(1, 200))
    assert there.latest(device.id, "t") == {"t": 199}
    assert there.attributes(device.id, "CLIENT_SCOPE") == {"fw": "one"}
    assert there.attributes(device.id, "SHARED_SCOPE") == {"own": "SHARED_SCOPE"}
    assert there.attributes(device.id, "SERVER_SCOPE")["own"] == "SERVER_SCOPE"
    assert there.get("/api/relations", toId=device.id, toType="DEVICE").json() == []
    assert there.get(f"/api/rpc/persistent/device/{device.id}", pageSize=10, page=0).json()["data"] == []
    assert events(there, "DEVICE", device.id, "LC_EVENT") == []
    # The alarm is part of what the former tenant has seen.
    assert rest.get(f"/api/alarm/{alarm}").json()["type"] == "hot"
    there.get(f"/api/alarm/{alarm}", expect=404)

    post(shared, device, {"ts": 200, "values": {"t": 200}})
    assert eventually(lambda: there.values(device.id, "t")[-1] == 200)
    for home, way, other in ((old, "To", new), (new, "From", old)):
        heard = eventually(lambda home=home: told(home))
        assert (heard["moved"], heard["of"]) == (name, new_id)
        tenant = other.tenant
        for word in (
            f'"assigned{way}TenantId":"{tenant["id"]["id"]}"',
            f'"assigned{way}TenantName":"{tenant["title"]}"',
        ):
            assert word in heard["meta"]
    audit = rest.get("/api/audit/logs", pageSize=10, page=0, actionTypes="ASSIGNED_TO_TENANT").json()["data"]
    assert [entry["entityName"] for entry in audit] == [name]

    # And back again, which finds nothing in its way.
    there.post(f"/api/tenant/{old.tenant['id']['id']}/device/{device.id}")
    assert rest.values(device.id, "t") == list(range(1, 201))
    assert requests.get(f"{shared.http}/api/v1/{device.token}/attributes", timeout=10).json()["shared"]


def test_a_device_that_has_moved_is_not_told_of_firmware_of_its_former_tenant(sysadmin):
    old, new = create_tenancy(sysadmin), create_tenancy(sysadmin)
    rest = old.admin
    profile = rest.post("/api/deviceProfile", {"name": unique("pumps"), "profileData": {}}).json()
    device = rest.create_device(deviceProfileId=profile["id"], type=None)
    package = {"deviceProfileId": profile["id"], "type": "FIRMWARE", "title": unique("pump"), "version": "1"}
    package |= {"usesUrl": True, "url": "https://example.org/pump?token=secret"}
    package = rest.post("/api/otaPackage", package).json()
    rest.post("/api/deviceProfile", profile | {"firmwareId": package["id"]})
    assert eventually(lambda: "fw_url" in rest.attributes(device.id, "SHARED_SCOPE"))
    rest.post(f"/api/tenant/{new.tenant['id']['id']}/device/{device.id}")
    assert eventually(lambda: new.admin.attributes(device.id, "SHARED_SCOPE") == {})
