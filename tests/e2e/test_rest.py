"""Conventions of the REST API: errors, paging, tokens, versions, as in the reference's §1."""

import base64
import json
import time

import pytest
import requests

from harness.people import PASSWORD, create_tenancy
from harness.rest import NULL_ID, Rest, unique
from harness.server import TENANT, eventually

UNKNOWN = "00000000-0000-1000-8000-000000000000"


def error(answer: requests.Response) -> tuple[int, int]:
    """Status and error code of an error body, which has the reference's shape."""
    body = answer.json()
    assert set(body) >= {"status", "message", "errorCode", "timestamp"}, body
    assert body["status"] == answer.status_code and isinstance(body["errorCode"], int) and body["message"]
    return body["status"], body["errorCode"]


def claims(token: str) -> dict:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_wrong_password_is_an_authentication_error(shared):
    stranger = Rest(shared.http)
    for username in (TENANT[0], "nobody@example.com"):
        answer = stranger.post("/api/auth/login", {"username": username, "password": "wrong"}, expect=401)
        assert error(answer) == (401, 10)
        assert answer.json()["message"] == "Invalid username or password"


def test_without_a_token_or_with_a_bad_one_nothing_is_served(shared):
    stranger = Rest(shared.http)
    assert error(stranger.get("/api/auth/user", expect=401)) == (401, 10)
    claimed, _, signature = shared.rest().token.rpartition(".")
    bad = {
        "a.b.c": 10,
        "": 10,
        f"{claimed}.{signature[40:80] + signature[:40] + signature[80:]}": 11,
        f"{claimed}.": None,
    }
    for header in ("X-Authorization", "Authorization"):
        for token, code in bad.items():
            stranger.session.headers = {header: f"Bearer {token}"}
            status, got = error(stranger.get("/api/auth/user", expect=401))
            assert status == 401 and got == (code or got)


def test_an_expired_token_says_so_and_a_refresh_token_helps(make_server):
    server = make_server(env={"FIELDLINE_API_ACCESS_TOKEN_TTL": "2s"}).start()
    rest = server.rest()
    assert rest.get("/api/auth/user").status_code == 200
    eventually(lambda: rest.get("/api/auth/user", expect=None).status_code == 401)
    assert error(rest.get("/api/auth/user", expect=401)) == (401, 11)
    rest.use(rest.post("/api/auth/token", {"refreshToken": rest.refresh_token}).json())
    assert rest.get("/api/auth/user").json()["email"] == TENANT[0]


def test_tokens_carry_the_claims_that_clients_read(shared):
    rest = shared.rest()
    access, refresh = claims(rest.token), claims(rest.refresh_token)
    user = rest.get("/api/auth/user").json()
    assert access["sub"] == TENANT[0] and access["scopes"] == ["TENANT_ADMIN"]
    assert access["userId"] == user["id"]["id"] and access["tenantId"] == user["tenantId"]["id"]
    assert access["customerId"] == NULL_ID and access["iss"] == "thingsboard.io"
    assert access["exp"] - access["iat"] == 9000 and abs(access["iat"] - time.time()) < 60
    assert refresh["scopes"] == ["REFRESH_TOKEN"] and refresh["exp"] - refresh["iat"] == 604_800
    # A refresh token opens nothing else.
    rest.session.headers["X-Authorization"] = f"Bearer {rest.refresh_token}"
    rest.get("/api/auth/user", expect=401)


def test_a_changed_password_outdates_older_tokens(sysadmin):
    user = create_tenancy(sysadmin).admin
    # Tokens are dated in seconds.
    time.sleep(1.1)
    pair = user.post(
        "/api/auth/changePassword", {"currentPassword": PASSWORD, "newPassword": "another long one"}
    ).json()
    user.get("/api/auth/user", expect=401)
    user.use(pair)
    assert user.get("/api/auth/user").status_code == 200
    Rest(user.base).post("/api/auth/login", {"username": user.user["email"], "password": PASSWORD}, expect=401)


def test_what_is_not_there_is_not_found(tenant):
    assert error(tenant.get(f"/api/device/{UNKNOWN}", expect=404)) == (404, 32)
    assert error(tenant.get("/api/tenant/devices", deviceName=unique("missing"), expect=404)) == (404, 32)
    assert error(tenant.delete(f"/api/device/{UNKNOWN}", expect=404)) == (404, 32)


def test_what_is_not_allowed_is_a_permission_error(sysadmin, device):
    assert error(sysadmin.get(f"/api/device/{device.id}", expect=403)) == (403, 20)


@pytest.mark.parametrize(
    "body",
    ["{", "[]", '"text"', '{"name": 5, "type": {}}', "{}", '{"name": ""}', '{"name": "x", "deviceProfileId": "y"}'],
)
def test_wrong_input_is_a_bad_request(tenant, body):
    answer = tenant.call("POST", "/api/device", data=body, headers={"Content-Type": "application/json"}, expect=400)
    assert error(answer)[1] in (30, 31)


def test_a_bad_id_or_a_bad_page_is_a_bad_request(tenant):
    assert error(tenant.get("/api/device/not-a-uuid", expect=400))[1] in (30, 31)
    for page in (
        {},
        {"pageSize": 10},
        {"page": 0},
        {"pageSize": 0, "page": 0},
        {"pageSize": -1, "page": 0},
        {"pageSize": 10, "page": -1},
    ):
        assert error(tenant.get("/api/tenant/devices", expect=400, **page))[1] in (30, 31)


def test_refusals_are_worded_as_clients_know_them(sysadmin, tenant, device):
    there, gone = device.json["id"], {"entityType": "DASHBOARD", "id": UNKNOWN}
    relation = {"from": there, "to": there, "type": "Contains"}
    credentials = tenant.credentials(device.id)
    blank = "Validation error: type must not be blank"
    rates = {"configuration": {"type": "DEFAULT", "transportDeviceMsgRateLimit": "1:1,2:1"}}
    sort = {"key": {"type": "ENTITY_FIELD", "key": "created(Time)"}, "direction": "ASC"}
    query = {"entityFilter": {"type": "entityType", "entityType": "DEVICE"}, "pageLink": {"pageSize": 1, "page": 0}}
    query["pageLink"]["sortOrder"] = sort
    long = {"currentPassword": "customer", "newPassword": "a" * 73}
    customer = tenant.base, "customer@thingsboard.org", "customer"
    for rest, path, body, message in (
        (tenant, "device-with-credentials", {"device": None, "credentials": {}}, "device must not be null"),
        (tenant, "device-with-credentials", {"device": {"name": "x"}}, "credentials must not be null"),
        (tenant, "device/credentials", credentials | {"credentialsType": None}, "type should be specified!"),
        (tenant, "relation", relation | {"from": None}, "Validation error: from must not be null"),
        (tenant, "v2/relation", relation | {"to": None}, "Validation error: to must not be null"),
        (tenant, "relation", relation | {"type": None}, blank),
        (tenant, "v2/relation", relation | {"type": " "}, blank),
        (tenant, "deviceProfile", {"name": "x", "defaultDashboardId": gone}, "Can't assign non-existent dashboard!"),
        (tenant, "assetProfile", {"name": "x", "defaultDashboardId": gone}, "Can't assign non-existent dashboard!"),
        (tenant, "entitiesQuery/find", query, "Invalid entity data page link sort property"),
        (sysadmin, "tenantProfile", {"name": "x", "profileData": rates}, "Transport device messages rate limit has"),
        (Rest(*customer), "auth/changePassword", long, "Password must be no more than 72 characters in length."),
    ):
        answer = rest.post(f"/api/{path}", body, expect=400)
        assert error(answer) == (400, 31) and message in answer.json()["message"], (path, answer.json())
    answer = tenant.get("/api/tenant/devices", pageSize=10, page=-1, expect=400)
    assert answer.json()["message"] == "Incorrect page link page '-1'. Page must be positive integer."


def test_names_are_taken_once(tenant, device):
    answer = tenant.post("/api/device", {"name": device.name}, expect=400)
    assert error(answer) == (400, 31)


def test_a_stale_version_is_a_conflict_and_no_version_wins(tenant, device):
    first = tenant.post("/api/device", device.json | {"label": "one"}).json()
    assert error(tenant.post("/api/device", device.json | {"label": "two"}, expect=409)) == (409, 35)
    unversioned = {key: value for key, value in first.items() if key != "version"}
    assert tenant.post("/api/device", unversioned | {"label": "three"}).json()["label"] == "three"


def test_a_device_is_returned_as_it_was_saved(tenant):
    extra = {"additionalInfo": {"gateway": False, "description": "a ünit", "deep": {"x": [1, None]}}, "label": "L"}
    saved = tenant.post(
        "/api/device", {"name": unique("device"), "type": unique("type"), "unknownField": 1} | extra
    ).json()
    assert saved["id"]["entityType"] == "DEVICE" and saved["customerId"]["id"] == NULL_ID
    assert saved["additionalInfo"] == extra["additionalInfo"] and saved["label"] == "L"
    assert tenant.get(f"/api/device/{saved['id']['id']}").json() == saved
    profiles = tenant.get("/api/deviceProfileInfos", pageSize=100, page=0, textSearch=saved["type"]).json()
    assert [profile["name"] for profile in profiles["data"]] == [saved["type"]]


def test_pages_are_whole_sorted_and_searched(tenant):
    mark = unique("paged")
    names = [f"{mark}-{n:02}" for n in range(25)]
    for name in names:
        tenant.create_device(name, label=f"Label {name.upper()}")

    def get(**params) -> dict:
        return tenant.get("/api/tenant/devices", **({"pageSize": 10, "page": 0, "textSearch": mark} | params)).json()

    seen = []
    for number in range(3):
        page = get(page=number, sortProperty="name", sortOrder="ASC")
        assert (page["totalElements"], page["totalPages"], page["hasNext"]) == (25, 3, number < 2)
        seen += [device["name"] for device in page["data"]]
    assert seen == names
    assert get(page=9)["data"] == []
    assert [d["name"] for d in get(sortProperty="name", sortOrder="DESC")["data"]] == names[::-1][:10]
    assert get(textSearch=mark.upper())["totalElements"] == 25
    assert get(textSearch=f"{mark}%")["totalElements"] == get(textSearch=f"{mark}_0")["totalElements"] == 0


def test_lists_are_sorted_by_what_clients_ask_for(sysadmin, tenant, device):
    me = tenant.get("/api/auth/user").json()["id"]["id"]
    alarm = tenant.post(
        "/api/alarm", {"originator": device.json["id"], "type": unique("a"), "severity": "MINOR"}
    ).json()
    events = {"tenantId": device.json["tenantId"]["id"]}
    for rest, path, properties, more in (
        (sysadmin, "tenants", "createdTime title email country city", {}),
        (sysadmin, "tenantInfos", "tenantProfileName title", {}),
        (sysadmin, "tenantProfileInfos", "id name", {}),
        (tenant, "audit/logs", "createdTime entityType entityName userName actionType actionStatus", {}),
        (tenant, f"events/DEVICE/{device.id}/STATS", "ts id", events),
        (tenant, f"alarm/{alarm['id']['id']}/comment", "id createdTime", {}),
        (tenant, "alarms", "createdTime startTs endTs type ackTs clearTs severity status", {}),
        (tenant, "tenant/deviceInfos", "createdTime name deviceProfileName label customerTitle", {}),
        (tenant, f"apiKeys/{me}", "createdTime expirationTime description enabled", {}),
    ):
        for name in properties.split():
            rest.get(f"/api/{path}", pageSize=10, page=0, sortProperty=name, sortOrder="ASC", **more)


def test_a_body_over_the_limit_is_refused(shared, tenant):
    body = b'{"name":"' + b"x" * (17 << 20) + b'"}'
    try:
        answer = requests.post(
            f"{shared.http}/api/device", data=body, headers={"Content-Type": "application/json", "X-Authorization": f"Bearer {tenant.token}"}, timeout=30
        )  # fmt: skip
    except requests.exceptions.ConnectionError:
        # Refused before it was read.
        return
    assert answer.status_code == 413


def test_the_description_of_the_api_is_served(shared):
    described = requests.get(f"{shared.http}/v3/api-docs/thingsboard", timeout=10).json()
    assert described["openapi"].startswith("3.") and len(described["paths"]) > 40
    page = requests.get(f"{shared.http}/swagger-ui.html", timeout=10)
    assert page.status_code == 200 and "swagger" in page.text.lower()


def test_an_unknown_path_is_not_found_and_a_wrong_method_not_allowed(tenant):
    assert tenant.get("/api/no/such/path", expect=None).status_code == 404
    assert tenant.call("PATCH", "/api/auth/user", expect=None).status_code in (404, 405)
