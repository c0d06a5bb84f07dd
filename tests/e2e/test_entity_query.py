"""Queries of entities as dashboards ask them, with values that devices have just sent."""

import requests

from harness.people import create_tenancy
from harness.rest import unique
from harness.server import eventually

# Of the demo tenant that the server starts with, at least.
DEMO_DEVICES = 5


def field(name: str) -> dict:
    return {"type": "ENTITY_FIELD", "key": name}


def number(kind: str, key: str, operation: str, value: float) -> dict:
    predicate = {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": value}}
    return {"key": {"type": kind, "key": key}, "valueType": "NUMERIC", "predicate": predicate}


def query(kind: str, *filters: dict, size: int = 100, page: int = 0) -> dict:
    temperature = {"type": "TIME_SERIES", "key": "temperature"}
    return {
        "entityFilter": {"type": "deviceType", "deviceTypes": [kind], "deviceNameFilter": ""},
        "keyFilters": list(filters),
        "entityFields": [field("name"), field("label")],
        "latestValues": [temperature, {"type": "SERVER_ATTRIBUTE", "key": "active"}],
        "pageLink": {
            "pageSize": size,
            "page": page,
            "sortOrder": {"key": temperature, "direction": "DESC"},
        },
    }


def temperatures(page: dict) -> list[str]:
    return [entity["latest"]["TIME_SERIES"]["temperature"]["value"] for entity in page["data"]]


def test_what_devices_send_is_found_sorted_and_paged(shared, sysadmin):
    admin = create_tenancy(sysadmin).admin
    kind = unique("meter")
    devices = [admin.create_device(unique("m"), type=kind) for _ in range(20)]
    path = "/api/entitiesQuery/find"
    assert admin.post(path, query(kind)).json()["totalElements"] == 20
    for value, device in enumerate(devices):
        requests.post(
            f"{shared.http}/api/v1/{device.token}/telemetry", json={"temperature": value}, timeout=10
        ).raise_for_status()
    warm = number("TIME_SERIES", "temperature", "GREATER_OR_EQUAL", 10)

    def found() -> list[str]:
        return temperatures(admin.post(path, query(kind, warm)).json())

    eventually(lambda: found() == [str(value) for value in range(19, 9, -1)])
    second = admin.post(path, query(kind, warm, size=4, page=1)).json()
    assert temperatures(second) == ["15", "14", "13", "12"]
    assert (second["totalPages"], second["totalElements"], second["hasNext"]) == (3, 10, True)
    count = {"entityFilter": query(kind)["entityFilter"], "keyFilters": [warm]}
    assert admin.post("/api/entitiesQuery/count", count).json() == 10
    # The system administrator counts those of all tenants, and sees none.
    assert sysadmin.post("/api/entitiesQuery/count", count).json() == 10
    every = {"entityFilter": {"type": "entityType", "entityType": "DEVICE"}}
    assert sysadmin.post("/api/entitiesQuery/count", every).json() >= 20 + DEMO_DEVICES
    assert sysadmin.post(path, query(kind)).json()["totalElements"] == 0

    admin.delete(f"/api/device/{devices[19].id}")
    assert found()[0] == "18"


def test_queries_survive_a_restart(make_server):
    server = make_server().start()
    rest = server.rest()
    kind = unique("meter")
    device = rest.create_device(unique("m"), type=kind)
    path = f"/api/plugins/telemetry/DEVICE/{device.id}/timeseries/ANY"
    rest.post(path, {"temperature": 21.5})
    assert temperatures(rest.post("/api/entitiesQuery/find", query(kind)).json()) == ["21.5"]
    server.kill()
    server.start()
    warm = number("TIME_SERIES", "temperature", "GREATER", 21)
    assert temperatures(server.rest().post("/api/entitiesQuery/find", query(kind, warm)).json()) == ["21.5"]
