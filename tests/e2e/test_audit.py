"""The audit log through the product: written in batches, read as the web interface reads it, bounded."""

import requests

from harness.people import create_tenancy
from harness.rest import NULL_ID, Rest
from harness.server import eventually


def entries(rest: Rest, path: str = "", **query) -> list[dict]:
    return rest.get(f"/api/audit/logs{path}", **({"pageSize": 100, "page": 0} | query)).json()["data"]


def test_everything_that_people_do_is_kept(sysadmin):
    home = create_tenancy(sysadmin)
    admin = home.admin
    device = admin.create_device()
    admin.post("/api/device", {"name": device.name}, expect=400)
    admin.post(f"/api/plugins/telemetry/DEVICE/{device.id}/attributes/SHARED_SCOPE", {"on": True})
    admin.post(f"/api/customer/{home.customer['id']['id']}/device/{device.id}")
    home.customer_user.delete(f"/api/device/{device.id}", expect=403)
    admin.delete(f"/api/device/{device.id}")

    def kinds() -> set[tuple[str, str]]:
        return {(entry["actionType"], entry["actionStatus"]) for entry in entries(admin)}

    expected = {
        ("ADDED", "SUCCESS"),
        ("ADDED", "FAILURE"),
        ("ATTRIBUTES_UPDATED", "SUCCESS"),
        ("ASSIGNED_TO_CUSTOMER", "SUCCESS"),
        ("DELETED", "SUCCESS"),
    }
    eventually(lambda: expected <= kinds())
    of_device = entries(admin, f"/entity/DEVICE/{device.id}")
    assert [entry["actionType"] for entry in of_device][:1] == ["DELETED"], "it outlives the device"
    assert all(entry["userName"] == admin.user["email"] for entry in of_device)
    of_nobody = [entry for entry in entries(admin) if entry["customerId"]["id"] == NULL_ID]
    assert of_nobody and entries(admin, f"/customer/{NULL_ID}") == of_nobody
    [failed] = [entry for entry in entries(admin, actionTypes="ADDED") if entry["actionStatus"] == "FAILURE"]
    assert failed["actionFailureDetails"] == "Device with such name already exists!"
    assert failed["entityName"] == device.name
    assert len(entries(admin, startTime=of_device[0]["createdTime"] + 1)) == 0
    # A customer's user who tries what is not allowed is not noted for the endpoint, which is not theirs at all.
    assert entries(admin, f"/user/{home.customer_user.user['id']['id']}") == []


def test_log_ins_say_where_somebody_came_from(sysadmin, shared):
    admin = create_tenancy(sysadmin).admin
    email = admin.user["email"]
    login = {"username": email, "password": "wrong"}
    requests.post(f"{shared.http}/api/auth/login", json=login, headers={"User-Agent": "curl/8.5.0"}, timeout=10)
    eventually(lambda: entries(admin, actionTypes="LOGIN") != [])
    [failed] = entries(admin, actionTypes="LOGIN")
    assert failed["actionStatus"] == "FAILURE" and failed["userName"] == email
    assert failed["actionData"] == {
        "clientAddress": "127.0.0.1",
        "browser": "curl 8.5.0",
        "os": "Other",
        "device": "Other",
    }
    assert entries(sysadmin, f"/user/{admin.user['id']['id']}") == [], "what tenants do is theirs"
