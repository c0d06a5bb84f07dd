"""Dashboards, and those that people have looked at."""

from __future__ import annotations

from access.rows import LIST, PAGE, call, customer, fetched, row, thing
from harness.rest import unique

DASHBOARD = call(dashboardId=thing("dashboard"))
NEW_DASHBOARD = call(dashboardId=thing("dashboard", "make_dashboard"))
OF_CUSTOMER = call(customerId=customer, dashboardId=thing("dashboard", "make_dashboard"))
CUSTOMERS = call(lambda w, fresh: [w.customer_id], dashboardId=thing("dashboard", "make_dashboard"))
row("GET /api/dashboard/{dashboardId}", "- + + - -", DASHBOARD)
row("GET /api/dashboard/info/{dashboardId}", "- + + - -", DASHBOARD)
row(
    "GET /api/dashboard/{dashboardId}/versions",
    "- + - - -",
    call(query=PAGE, dashboardId=thing("dashboard")),
    shows="treasure",
)
row(
    "GET /api/dashboard/{dashboardId}/versions/{version}",
    "- + - - -",
    call(dashboardId=thing("dashboard"), version=thing("dashboard_version")),
)
row("POST /api/dashboard", "- + - - o", call(lambda w, fresh: {"title": unique("dashboard")}))
row("POST /api/dashboard", "- + - - -", call(fetched("dashboard", "dashboard", "make_dashboard", title="stolen")))
row("DELETE /api/dashboard/{dashboardId}", "- + - - -", NEW_DASHBOARD)
row("GET /api/tenant/dashboards", "- + - - o", LIST, shows="dashboard")
row(
    "GET /api/tenant/{tenantId}/dashboards",
    "+ - - - -",
    call(query=PAGE, tenantId=thing("tenant_id")),
    shows="dashboard",
)
row(
    "GET /api/customer/{customerId}/dashboards",
    "- + + - -",
    call(query=PAGE, customerId=customer),
    shows="dashboard",
)
BY_IDS = call(query=lambda w, fresh: {"dashboardIds": w.dashboard})
row("GET /api/dashboards", "- + + o o", BY_IDS, shows="dashboard")
row("GET /api/dashboards/list", "- + + o o", BY_IDS, shows="dashboard")
row("POST /api/customer/{customerId}/dashboard/{dashboardId}", "- + - - -", OF_CUSTOMER)
row("DELETE /api/customer/{customerId}/dashboard/{dashboardId}", "- + - - -", OF_CUSTOMER)
row("POST /api/customer/public/dashboard/{dashboardId}", "- + - - -", NEW_DASHBOARD)
row("DELETE /api/customer/public/dashboard/{dashboardId}", "- + - - -", NEW_DASHBOARD)
row("POST /api/dashboard/{dashboardId}/customers", "- + - - -", CUSTOMERS)
row("POST /api/dashboard/{dashboardId}/customers/add", "- + - - -", CUSTOMERS)
row("POST /api/dashboard/{dashboardId}/customers/remove", "- + - - -", CUSTOMERS)
row("GET /api/dashboard/serverTime", "+ + + + +")
row("GET /api/dashboard/maxDatapointsLimit", "+ + + + +")
row("GET /api/dashboard/home", "o + + o o")
row("GET /api/dashboard/home/info", "o + + o o")
row("GET /api/tenant/dashboard/home/info", "- + - - o")
row(
    "POST /api/tenant/dashboard/home/info",
    "- + - - -",
    call(lambda w, fresh: {"dashboardId": {"entityType": "DASHBOARD", "id": w.dashboard}}),
)

# -- of people --

row("GET /api/user/dashboards", "- + o o o", shows="")
row("GET /api/user/lastVisitedDashboards", "- + o o o", shows="")
row(
    "GET /api/user/dashboards/{dashboardId}/{action}",
    "- + + - -",
    call(dashboardId=thing("dashboard"), action="star"),
)
