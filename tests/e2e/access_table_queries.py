"""Rows of the table for queries of entities. The columns are those of `access_table`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ROWS: list[tuple[str, str, Callable[[Any, bool], dict]]] = []
"""Endpoint, columns, and what makes the parts of the request."""

FIELDS = [{"type": "ENTITY_FIELD", "key": key} for key in ("name", "ownerName", "additionalInfo")]
VALUES = [{"type": kind, "key": "secret"} for kind in ("TIME_SERIES", "ATTRIBUTE", "SERVER_ATTRIBUTE")]
FILTERS: tuple[Callable[[Any], dict], ...] = (
    lambda w: {"type": "singleEntity", "singleEntity": {"entityType": "DEVICE", "id": w.device}},
    lambda w: {"type": "entityList", "entityType": "DEVICE", "entityList": [w.device]},
    lambda w: {"type": "entityType", "entityType": "DEVICE"},
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


def query(chosen: Callable[[Any], dict]) -> Callable[[Any, bool], dict]:
    def make(w, fresh: bool) -> dict:
        body = {"entityFilter": chosen(w), "entityFields": FIELDS, "latestValues": VALUES}
        body["pageLink"] = {"pageSize": 100, "page": 0, "sortOrder": {"key": VALUES[0], "direction": "ASC"}}
        return {"body": body}

    return make


def keys(chosen: Callable[[Any], dict]) -> Callable[[Any, bool], dict]:
    return lambda w, fresh: query(chosen)(w, fresh) | {"query": {"timeseries": "true", "attributes": "true"}}


for filter_of in FILTERS:
    ROWS.append(("POST /api/entitiesQuery/find", "o + + o o", query(filter_of)))
ROWS.append(("POST /api/entitiesQuery/count", "o + + o o", query(FILTERS[0])))
ROWS.append(("POST /api/entitiesQuery/find/keys", "- + + o o", keys(FILTERS[0])))
ROWS.append(("POST /api/v2/entitiesQuery/find/keys", "- + + o o", query(FILTERS[0])))
