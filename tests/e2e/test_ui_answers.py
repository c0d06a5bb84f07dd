"""What ThingsBoard's own user interface asks on its way to a screen, by role."""

import requests

from harness.people import create_tenancy


def test_the_login_page_learns_that_there_is_no_single_sign_on(shared):
    assert requests.post(f"{shared.http}/api/noauth/oauth2Clients", params={"platform": "WEB"}, timeout=5).json() == []


def test_features_that_are_not_here_are_empty(sysadmin, rest):
    for user in (sysadmin, rest):
        assert user.get("/api/2fa/providers").json() == []
        page = user.get("/api/notifications", pageSize=10, page=0, unreadOnly="true").json()
        assert page == {"data": [], "totalPages": 0, "totalElements": 0, "hasNext": False}
        assert user.get("/api/notifications/unread/count", deliveryMethod="WEB").json() == 0
    assert rest.get("/api/edge/types").json() == []
    assert rest.get("/api/tenant/edgeInfos", pageSize=10, page=0).json()["data"] == []
    rest.get("/api/tenant/edgeInfos", expect=400)


def test_the_start_of_a_session_has_all_that_clients_read(sysadmin, rest):
    assert rest.get("/api/system/info").json()["type"] == "CE"
    for user in (sysadmin, rest):
        params = user.get("/api/system/params").json()
        assert params["allowedDashboardIds"] == []
        assert params["maxDebugModeDurationMinutes"] == 15
        assert params["nullsOrderStrategy"] == "default"
        assert params["intermediateAggregationIntervalInSecForCF"] > 0


def test_who_sees_one_dashboard_alone_learns_which_may_be_opened(rest):
    dashboard = rest.post("/api/dashboard", {"title": "Wall"}).json()
    user = rest.get("/api/auth/user").json()
    alone = {"defaultDashboardId": dashboard["id"]["id"], "defaultDashboardFullscreen": True}
    rest.post("/api/user", user | {"additionalInfo": alone}, sendActivationMail="false")
    assert rest.get("/api/system/params").json()["allowedDashboardIds"] == [dashboard["id"]["id"]]


def test_an_administrator_may_end_the_own_tenant(sysadmin):
    ended = create_tenancy(sysadmin)
    path = f"/api/tenant/{ended.tenant['id']['id']}"
    ended.customer_user.call("DELETE", path, expect=403)
    ended.admin.delete(path)
    sysadmin.get(path, expect=404)


def test_a_dashboard_that_is_gone_is_nobodys_home(rest):
    dashboard = rest.post("/api/dashboard", {"title": "Gone"}).json()
    user = rest.get("/api/auth/user").json()
    home = {"defaultDashboardId": dashboard["id"]["id"], "homeDashboardId": dashboard["id"]["id"], "lang": "de_DE"}
    rest.post("/api/user", user | {"additionalInfo": home}, sendActivationMail="false")
    rest.delete(f"/api/dashboard/{dashboard['id']['id']}")
    for path in ("/api/auth/user", f"/api/user/{user['id']['id']}"):
        info = rest.get(path).json()["additionalInfo"]
        assert info["lang"] == "de_DE" and "defaultDashboardId" not in info and "homeDashboardId" not in info
