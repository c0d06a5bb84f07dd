"""The widget library: what dashboards look their widgets up in, of the system and of tenants."""

import pytest

from harness.people import create_tenancy
from harness.rest import unique

SYSTEM = "13814000-1dd2-11b2-8080-808080808080"


def widget_type(name: str, kind: str = "latest", **fields) -> dict:
    descriptor = {
        "type": kind,
        "sizeX": 4,
        "sizeY": 3,
        "resources": [],
        "templateHtml": "<b></b>",
        "defaultConfig": "{}",
    }
    return {"name": name, "descriptor": descriptor, "image": None, "description": None, "tags": None} | fields


@pytest.fixture(scope="module")
def tenancy(sysadmin):
    return create_tenancy(sysadmin)


@pytest.fixture(scope="module")
def other(sysadmin):
    return create_tenancy(sysadmin)


def test_a_type_is_found_by_its_name_within_its_tenant_alone(tenancy, other):
    name = unique("Air quality")
    saved = tenancy.admin.post("/api/widgetType", widget_type(name, description="PM 2.5", tags=["dust"])).json()
    assert saved["id"]["entityType"] == "WIDGET_TYPE"
    assert saved["version"] == 1 and saved["scada"] is False
    fqn = saved["fqn"]
    for user in (tenancy.admin, tenancy.customer_user):
        found = user.get("/api/widgetType", fqn=f"tenant.{fqn}").json()
        assert found["descriptor"] == saved["descriptor"] and found["id"] == saved["id"]
        assert not {"image", "description", "tags", "resources"} & found.keys()
    tenancy.admin.get("/api/widgetType", fqn=f"system.{fqn}", expect=404)
    assert tenancy.admin.get("/api/widgetType", fqn=fqn, expect=400).json()["message"] == "Invalid fqn!"
    identity = saved["id"]["id"]
    other.admin.get("/api/widgetType", fqn=f"tenant.{fqn}", expect=404)
    other.admin.get(f"/api/widgetType/{identity}", expect=404)
    other.admin.post("/api/widgetType", saved, expect=404)
    other.admin.delete(f"/api/widgetType/{identity}", expect=404)
    tenancy.customer_user.get(f"/api/widgetType/{identity}", expect=403)
    details = tenancy.admin.get(f"/api/widgetType/{identity}").json()
    assert (details["description"], details["tags"]) == ("PM 2.5", ["dust"])
    info = tenancy.admin.get(f"/api/widgetTypeInfo/{identity}").json()
    assert info["widgetType"] == "latest" and info["bundles"] == [] and "descriptor" not in info
    tenancy.admin.delete(f"/api/widgetType/{identity}")
    tenancy.admin.get(f"/api/widgetType/{identity}", expect=404)


def test_names_are_made_once_and_never_change(tenancy):
    admin, name = tenancy.admin, unique("Tank level")
    first = admin.post("/api/widgetType", widget_type(name)).json()
    second = admin.post("/api/widgetType", widget_type(name)).json()
    assert second["fqn"] == f"{first['fqn']}2"
    taken = admin.post("/api/widgetType", widget_type("other", fqn=first["fqn"])).json()
    assert taken["fqn"] == f"{first['fqn']}3"
    moved = admin.post("/api/widgetType", first | {"fqn": "elsewhere"}, expect=400)
    assert moved.json()["message"] == "Update of widget type fqn is prohibited!"
    renamed = admin.post("/api/widgetType", first | {"name": "Level"}).json()
    assert (renamed["fqn"], renamed["version"]) == (first["fqn"], 2)
    admin.post("/api/widgetType", first | {"name": "too late"}, expect=409)
    again = admin.post("/api/widgetType", widget_type("By name", fqn=first["fqn"]), updateExistingByFqn="true").json()
    assert (again["id"], again["name"], again["version"]) == (first["id"], "By name", 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": " "}, "name should be specified"),
        ({"descriptor": None}, "descriptor can't be empty"),
        ({"descriptor": {}}, "descriptor can't be empty"),
        ({"descriptor": "text"}, "must be a JSON object"),
        ({"name": "x" * 256}, "length must be equal or less than 255"),
    ],
)
def test_what_is_no_type_is_refused(tenancy, change, message):
    answer = tenancy.admin.post("/api/widgetType", widget_type("fine") | change, expect=400)
    assert message in answer.json()["message"]


def test_everybody_reads_what_the_system_shares_and_only_its_administrator_changes_it(sysadmin, tenancy):
    shared = sysadmin.post("/api/widgetType", widget_type(unique("Compass"), deprecated=True)).json()
    assert shared["tenantId"]["id"] == SYSTEM
    own = tenancy.admin.post("/api/widgetType", widget_type(unique("Compass"), kind="rpc", scada=True)).json()
    try:
        for user in (sysadmin, tenancy.admin, tenancy.customer_user):
            assert user.get("/api/widgetType", fqn=f"system.{shared['fqn']}").json()["id"] == shared["id"]
        tenancy.admin.post("/api/widgetType", shared, expect=403)
        tenancy.admin.delete(f"/api/widgetType/{shared['id']['id']}", expect=403)
        tenancy.customer_user.post("/api/widgetType", widget_type("x"), expect=403)
        sysadmin.get(f"/api/widgetType/{own['id']['id']}", expect=404)

        def names(user, **params) -> set:
            page = user.get("/api/widgetTypes", pageSize=100, page=0, **params).json()
            assert page["totalElements"] == len(page["data"])
            return {row["id"]["id"] for row in page["data"]} & {shared["id"]["id"], own["id"]["id"]}

        both = {shared["id"]["id"], own["id"]["id"]}
        assert names(tenancy.admin, textSearch="compass") == both
        assert names(sysadmin) == {shared["id"]["id"]}
        assert names(tenancy.admin, tenantOnly="true") == {own["id"]["id"]}
        assert names(tenancy.admin, deprecatedFilter="ACTUAL") == {own["id"]["id"]}
        assert names(tenancy.admin, deprecatedFilter="DEPRECATED") == {shared["id"]["id"]}
        assert names(tenancy.admin, widgetTypeList="rpc,alarm") == {own["id"]["id"]}
        page = tenancy.admin.get("/api/widgetTypes", pageSize=1, page=0, scadaFirst="true", sortProperty="name").json()
        assert page["data"][0]["scada"] is True
        tenancy.admin.get("/api/widgetTypes", pageSize=1, page=0, widgetTypeList="gauge", expect=400)
        # As ThingsBoard's own pages write it.
        tenancy.admin.get("/api/widgetTypes", pageSize=1, page=0, fullSearch="false      ")
        tenancy.admin.get("/api/widgetTypes", pageSize=1, page=0, fullSearch="fal se", expect=400)
    finally:
        sysadmin.delete(f"/api/widgetType/{shared['id']['id']}")


def test_a_bundle_keeps_its_types_in_their_order(sysadmin, tenancy, other):
    admin = tenancy.admin
    shared = sysadmin.post("/api/widgetType", widget_type(unique("Shared"))).json()
    types = [admin.post("/api/widgetType", widget_type(unique("Own"), tags=["flow"])).json() for _ in range(3)]
    foreign = other.admin.post("/api/widgetType", widget_type(unique("Foreign"))).json()
    try:
        title = unique("Water works")
        bundle = admin.post("/api/widgetsBundle", {"title": title, "description": "Flow and level"}).json()
        assert bundle["name"] == title and bundle["alias"] and bundle["id"]["entityType"] == "WIDGETS_BUNDLE"
        identity = bundle["id"]["id"]
        order = [types[2], shared, types[0]]
        ids = [one["id"]["id"] for one in order]
        admin.post(f"/api/widgetsBundle/{identity}/widgetTypes", ids)

        def held(user=admin) -> list:
            return [one["id"]["id"] for one in user.get(f"/api/widgetsBundle/{identity}/widgetTypes").json()]

        assert held() == ids and held(tenancy.customer_user) == ids
        refused = admin.post(f"/api/widgetsBundle/{identity}/widgetTypes", [foreign["id"]["id"]], expect=400)
        assert "is not found" in refused.json()["message"]
        assert held() == ids, "a refused list changes nothing"
        fqns = admin.get("/api/widgetTypeFqns", widgetsBundleId=identity).json()
        assert fqns == [f"tenant.{types[2]['fqn']}", f"system.{shared['fqn']}", f"tenant.{types[0]['fqn']}"]
        admin.post(f"/api/widgetsBundle/{identity}/widgetTypeFqns", [types[1]["fqn"], "none_of_ours", shared["fqn"]])
        assert held() == [types[1]["id"]["id"], shared["id"]["id"]]
        details = admin.get("/api/widgetTypesDetails", widgetsBundleId=identity).json()
        assert details[0]["tags"] == ["flow"]
        assert [one["id"] for one in admin.get("/api/widgetTypes", widgetsBundleId=identity).json()] == [
            types[1]["id"],
            shared["id"],
        ]
        infos = admin.get("/api/widgetTypesInfos", widgetsBundleId=identity, pageSize=10, page=0).json()
        assert infos["totalElements"] == 2
        assert infos["data"][0]["bundles"] == [{"id": bundle["id"], "name": title}]
        admin.delete(f"/api/widgetType/{types[1]['id']['id']}")
        assert held() == [shared["id"]["id"]]
        other.admin.get(f"/api/widgetsBundle/{identity}", expect=404)
        assert identity in {one["id"]["id"] for one in admin.get("/api/widgetsBundles").json()}
        page = admin.get("/api/widgetsBundles", pageSize=5, page=0, textSearch="LEVEL", fullSearch="true").json()
        assert [one["id"]["id"] for one in page["data"]] == [identity]
        assert admin.get("/api/widgetsBundles", pageSize=5, page=0, textSearch="LEVEL").json()["data"] == []
        admin.delete(f"/api/widgetsBundle/{identity}")
        assert admin.get(f"/api/widgetType/{types[2]['id']['id']}").json()["id"] == types[2]["id"], "types stay"
    finally:
        sysadmin.delete(f"/api/widgetType/{shared['id']['id']}")


def test_the_library_outlives_a_restart_and_goes_with_its_tenant(make_server):
    server = make_server()
    server.start()
    sysadmin = server.rest("sysadmin@thingsboard.org", "sysadmin")
    tenancy = create_tenancy(sysadmin)
    saved = tenancy.admin.post("/api/widgetType", widget_type("Meter")).json()
    bundle = tenancy.admin.post("/api/widgetsBundle", {"title": "Meters"}).json()
    tenancy.admin.post(f"/api/widgetsBundle/{bundle['id']['id']}/widgetTypes", [saved["id"]["id"]])
    server.kill()
    server.start()
    sysadmin = server.rest("sysadmin@thingsboard.org", "sysadmin")
    admin = tenancy.admin
    admin.base = sysadmin.base
    assert admin.get("/api/widgetType", fqn="tenant.meter").json()["id"] == saved["id"]
    assert len(admin.get(f"/api/widgetsBundle/{bundle['id']['id']}/widgetTypes").json()) == 1
    sysadmin.delete(f"/api/tenant/{tenancy.tenant['id']['id']}")
