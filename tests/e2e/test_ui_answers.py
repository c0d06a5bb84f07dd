"""What ThingsBoard's own user interface asks on its way to a screen, by role."""

import requests


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
