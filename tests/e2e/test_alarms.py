"""Alarms in people's hands: assigned, commented, listed by type, and shown where they propagate to."""

import pytest

from harness.chains import SWITCH, Chain, alarms, post
from harness.people import create_tenancy
from harness.rest import NULL_ID, unique
from harness.server import eventually

PAGE = {"pageSize": 100, "page": 0}


@pytest.fixture
def server(shared):
    return shared


@pytest.fixture
def tenancy(sysadmin):
    return create_tenancy(sysadmin)


def raised(rest, entity: dict, **fields) -> dict:
    alarm = {"type": unique("alarm"), "originator": entity, "severity": "MAJOR"} | fields
    return rest.post("/api/alarm", alarm).json()


def comments(rest, alarm: str) -> list[dict]:
    found = rest.get(f"/api/alarm/{alarm}/comment", **PAGE).json()["data"]
    return sorted(found, key=lambda comment: comment["createdTime"])


def test_an_alarm_is_assigned_handed_on_and_given_back_and_its_comments_tell(tenancy):
    rest, user = tenancy.admin, tenancy.customer_user
    device = rest.create_device()
    rest.post(f"/api/customer/{tenancy.customer['id']['id']}/device/{device.id}")
    alarm = raised(rest, device.json["id"])["id"]["id"]
    assert [shown["id"]["id"] for shown in alarms(user, device.id)] == [alarm]
    # The alarm of an entity without a customer has the null id, as the entity has.
    assert raised(rest, rest.create_device().json["id"])["customerId"]["id"] == NULL_ID

    def assignee() -> str | None:
        return (rest.get(f"/api/alarm/info/{alarm}").json().get("assigneeId") or {}).get("id")

    user_id, admin_id = user.user["id"]["id"], rest.user["id"]["id"]
    assert {user_id, admin_id} <= {
        one["id"]["id"] for one in rest.get(f"/api/users/assign/{alarm}", **PAGE).json()["data"]
    }
    rest.post(f"/api/alarm/{alarm}/assign/{user_id}")
    assert assignee() == user_id
    [shown] = user.get("/api/v2/alarms", assigneeId=user_id, **PAGE).json()["data"]
    assert shown["id"]["id"] == alarm and shown["assignee"]["email"] == user.user["email"]
    # A customer's user hands it to nobody whom they cannot see.
    user.post(f"/api/alarm/{alarm}/assign/{admin_id}", expect=403)
    rest.post(f"/api/alarm/{alarm}/assign/{admin_id}")
    assert assignee() == admin_id
    user.delete(f"/api/alarm/{alarm}/assign")
    assert assignee() is None
    told = [comment["comment"]["text"] for comment in comments(rest, alarm) if comment["type"] == "SYSTEM"]
    assert [text.split(" by user")[0] for text in told] == [
        "Alarm was assigned",
        "Alarm was assigned",
        "Alarm was unassigned",
    ], told
    # Whoever is gone is not left with it.
    rest.post(f"/api/alarm/{alarm}/assign/{user_id}")
    rest.delete(f"/api/user/{user_id}")
    eventually(lambda: assignee() is None)


def test_comments_are_written_changed_and_deleted_and_a_deletion_is_told(tenancy):
    rest, user = tenancy.admin, tenancy.customer_user
    device = rest.create_device()
    rest.post(f"/api/customer/{tenancy.customer['id']['id']}/device/{device.id}")
    alarm = raised(rest, device.json["id"])["id"]["id"]
    path = f"/api/alarm/{alarm}/comment"
    first = rest.post(path, {"comment": {"text": "who looks?"}}).json()
    second = user.post(path, {"comment": {"text": "I do"}}).json()
    assert [comment["comment"]["text"] for comment in comments(user, alarm)] == ["who looks?", "I do"]
    shown = {comment["id"]["id"]: comment for comment in comments(rest, alarm)}
    assert shown[first["id"]["id"]]["email"] == rest.user["email"]
    assert shown[second["id"]["id"]]["type"] == "OTHER"
    user.post(path, second | {"comment": {"text": "I did"}})
    changed = comments(rest, alarm)[1]["comment"]
    assert changed["text"] == "I did" and str(changed["edited"]).lower() == "true"
    rest.delete(f"{path}/{second['id']['id']}")
    texts = [(comment["type"], comment["comment"]["text"]) for comment in comments(rest, alarm)]
    assert ("OTHER", "I did") not in texts
    assert any(kind == "SYSTEM" and "deleted" in text for kind, text in texts), texts
    # The life of the alarm is told as well.
    rest.post(f"/api/alarm/{alarm}/ack")
    rest.post(f"/api/alarm/{alarm}/clear")
    texts = [comment["comment"]["text"] for comment in comments(rest, alarm) if comment["type"] == "SYSTEM"]
    assert any("acknowledged" in text for text in texts) and any("cleared" in text for text in texts), texts
    # Nobody rewrites what the platform has written.
    [told] = [comment for comment in comments(rest, alarm) if "cleared" in comment["comment"]["text"]]
    refused = rest.post(path, told | {"type": "OTHER", "comment": {"text": "x"}}, expect=400).json()
    assert refused["message"] == "System alarm comment can't be updated!"


def test_types_of_alarms_are_listed_once_and_searched(tenancy):
    rest = tenancy.admin
    device = rest.create_device()
    for kind in ("Overheated", "Frozen", "Overheated"):
        raised(rest, device.json["id"], type=kind)

    def types(**query) -> list[str]:
        return [one["type"] for one in rest.get("/api/alarm/types", **PAGE, **query).json()["data"]]

    assert sorted(types()) == ["Frozen", "Overheated"]
    assert types(textSearch="over") == ["Overheated"]


def test_an_alarm_is_shown_where_it_propagates_to_and_nowhere_else(server, tenancy):
    rest, customer = tenancy.admin, tenancy.customer["id"]["id"]
    device = rest.create_device()
    rest.post(f"/api/customer/{customer}/device/{device.id}")
    made = {
        name: rest.post("/api/asset", {"name": unique(name), "type": "default"}).json()
        for name in ("hall", "site", "yard")
    }
    ids = {name: asset["id"]["id"] for name, asset in made.items()}

    def relate(source: dict, target: dict, kind: str = "Contains") -> None:
        rest.post("/api/relation", {"from": source, "to": target, "type": kind, "typeGroup": "COMMON"})

    relate(made["hall"]["id"], device.json["id"])
    relate(made["site"]["id"], made["hall"]["id"])
    relate(made["yard"]["id"], device.json["id"], "Watches")
    details = {"scriptLang": "TBEL", "alarmDetailsBuildTbel": "return {};", "severity": "MAJOR"}
    chain = Chain()
    switch = chain.node(SWITCH)
    for kind, fields in (
        ("related", {"propagate": True, "relationTypes": ["Contains"]}),
        ("everything", {"propagate": True}),
        ("owner", {"propagateToOwner": True}),
        ("tenant", {"propagateToTenant": True}),
        ("nothing", {}),
    ):
        create = chain.node(("action.TbCreateAlarmNode", details | {"alarmType": kind} | fields))
        chain.connect(switch, "Post telemetry", create)
    chain.save(rest, root=True)
    post(server, device, {"a": 1})
    eventually(lambda: len(alarms(rest, device.id)) == 5)

    def shown(kind: str, entity: str) -> set[str]:
        return {alarm["type"] for alarm in alarms(rest, entity, kind)}

    eventually(lambda: shown("ASSET", ids["hall"]) == {"related", "everything"})
    assert shown("ASSET", ids["site"]) == {"related", "everything"}, "and so to what contains the hall"
    assert shown("ASSET", ids["yard"]) == {"everything"}
    assert shown("CUSTOMER", customer) == {"owner"}
    assert shown("TENANT", tenancy.tenant["id"]["id"]) == {"tenant"}
    severity = rest.get(f"/api/alarm/highestSeverity/ASSET/{ids['yard']}").json()
    assert severity == "MAJOR"
