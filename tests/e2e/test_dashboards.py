"""Dashboards as user interfaces and scripts use them: imported, assigned, made public."""

import base64
import json

from access.things import PIXEL
from harness.people import create_tenancy
from harness.rest import Rest, unique

EXPORTED = {
    "title": "Fleet",
    "image": "tb-image;/api/images/tenant/fleet.png",
    "mobileHide": False,
    "mobileOrder": None,
    "configuration": {
        "description": "Lorries",
        "widgets": {
            "f4b9": {"typeFullFqn": "system.cards.entities_table", "sizeX": 7.5, "config": {"datasources": [None]}},
            "00aa": {"typeFullFqn": "tenant.own", "config": {"settings": {"größe": "µ"}}},
        },
        "states": {"default": {"name": "Fleet", "root": True, "layouts": {"main": {"widgets": {}}}}},
        "entityAliases": {},
    },
    "name": "Fleet",
    "resources": [
        {
            "link": "/api/images/tenant/fleet.png",
            "title": "fleet",
            "type": "IMAGE",
            "subType": "IMAGE",
            "fileName": "fleet.png",
            "public": True,
            "mediaType": "image/png",
            # Unlike any other picture, as one that is there already would be used.
            "data": base64.b64encode(base64.b64decode(PIXEL) + b"fleet").decode(),
        }
    ],
}


def test_an_exported_dashboard_comes_back_as_it_went_in(tenant):
    saved = tenant.post("/api/dashboard", EXPORTED).json()
    exported = tenant.get(f"/api/dashboard/{saved['id']['id']}", includeResources="true").json()
    assert len(exported["resources"][0].pop("publicResourceKey")) == 32
    assert {key: exported[key] for key in EXPORTED} == EXPORTED
    assert json.dumps(exported["configuration"]) == json.dumps(EXPORTED["configuration"]), "in the same order"
    # Imported once more, as into another installation.
    again = {key: value for key, value in exported.items() if key not in ("id", "createdTime", "tenantId", "version")}
    second = tenant.post("/api/dashboard", again).json()
    assert second["id"] != saved["id"] and second["configuration"] == EXPORTED["configuration"]


def test_public_dashboards_and_devices_are_seen_without_logging_in(sysadmin, shared):
    home = create_tenancy(sysadmin)
    admin = home.admin
    dashboard = admin.post("/api/dashboard", {"title": unique("public")}).json()["id"]["id"]
    device = admin.create_device()
    asset = admin.post("/api/asset", {"name": unique("asset")}).json()["id"]["id"]
    admin.post(f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY", {"temperature": 21})
    for kind, target in (("dashboard", dashboard), ("device", device.id), ("asset", asset)):
        admin.post(f"/api/customer/public/{kind}/{target}")
    [public] = admin.get(f"/api/dashboard/{dashboard}").json()["assignedCustomers"]
    visitor = Rest(shared.http)
    visitor.use(visitor.post("/api/auth/login/public", {"publicId": public["customerId"]["id"]}).json())
    assert visitor.get(f"/api/dashboard/{dashboard}").json()["title"].startswith("public")
    assert visitor.latest(device.id, "temperature") == {"temperature": 21}
    visitor.get(f"/api/asset/{asset}")
    visitor.use(visitor.post("/api/auth/token", {"refreshToken": visitor.refresh_token}).json())
    visitor.get(f"/api/device/{admin.create_device().id}", expect=403)
    visitor.get("/api/tenant/dashboards", pageSize=1, page=0, expect=403)
    # Taken back, nothing is left to see.
    admin.delete(f"/api/customer/public/dashboard/{dashboard}")
    visitor.get(f"/api/dashboard/{dashboard}", expect=403)
