"""Queries of entities."""

from __future__ import annotations

from collections.abc import Callable

from access.rows import World, call, device_of, row

FIELDS = [{"type": "ENTITY_FIELD", "key": key} for key in ("name", "ownerName", "additionalInfo")]
VALUES = [{"type": kind, "key": "secret"} for kind in ("TIME_SERIES", "ATTRIBUTE", "SERVER_ATTRIBUTE")]
FILTERS: tuple[Callable[[World], dict], ...] = (
    lambda w: {"type": "singleEntity", "singleEntity": device_of(w.device)},
    lambda w: {"type": "entityList", "entityType": "DEVICE", "entityList": [w.device]},
    lambda w: {"type": "entityType", "entityType": "DEVICE"},
    lambda w: {"type": "entityType", "entityType": "DASHBOARD"},
    lambda w: {"type": "entityName", "entityType": "DEVICE", "entityNameFilter": "treasure"},
    lambda w: {"type": "deviceType", "deviceTypes": ["default"], "deviceNameFilter": "%treasure%"},
    lambda w: {
        "type": "relationsQuery",
        "rootEntity": {"entityType": "ASSET", "id": w.asset},
        "direction": "FROM",
        "maxLevel": 2,
    },
    lambda w: {
        "type": "deviceSearchQuery",
        "rootEntity": {"entityType": "ASSET", "id": w.asset},
        "direction": "FROM",
        "deviceTypes": ["default"],
    },
)


def query(chosen: Callable[[World], dict], **parameters):
    def body(w: World, fresh: bool) -> dict:
        link = {"pageSize": 100, "page": 0, "sortOrder": {"key": VALUES[0], "direction": "ASC"}}
        return {
            "entityFilter": chosen(w),
            "entityFields": FIELDS,
            "latestValues": VALUES,
            "pageLink": link,
        }

    return call(body, query=parameters or None)


for chosen in FILTERS:
    row("POST /api/entitiesQuery/find", "o + + o o", query(chosen), shows="treasure")
row("POST /api/entitiesQuery/count", "o + + o o", query(FILTERS[0]))
row("POST /api/entitiesQuery/find/keys", "- + + o o", query(FILTERS[0], timeseries="true", attributes="true"))
row("POST /api/v2/entitiesQuery/find/keys", "- + + o o", query(FILTERS[0]))
