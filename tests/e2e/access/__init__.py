"""Who may call what: one row or more for each endpoint, for each role, on what is one's own and on what is not.

Columns: the system administrator, the tenant's administrator, a user of the customer that the things are assigned to, a
user of another customer of the same tenant, the administrator of another tenant. A row that is not public is 401 for
somebody who has not logged in.

    +  served, shows what the row says and nothing of the other tenant
    -  refused with 403 or 404, shows nothing and changes nothing
    !  the same, or refused with 400: what was smuggled in is not one's own
    o  served, with what is one's own: it shows nothing of the tenant in question
"""

from access import (
    alarms,
    assets,
    broker,
    chains,
    dashboards,
    devices,
    mqtt_clients,
    ota,
    people,
    queries,
    resources,
    settings,
    smuggled,
    widgets,
)
from access.rows import ROLES, TABLE, Row
from access.world import World

AREAS = (
    people,
    settings,
    dashboards,
    devices,
    ota,
    assets,
    alarms,
    broker,
    queries,
    chains,
    widgets,
    resources,
    mqtt_clients,
    smuggled,
)
"""The modules that have put their rows into the table."""

__all__ = ["AREAS", "ROLES", "TABLE", "Row", "World"]
