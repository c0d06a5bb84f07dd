"""Rows of the table for what people look at and set: dashboards, settings, audit logs, keys, imports.

The columns are those of `access_table`.
"""

from __future__ import annotations

from typing import Any

from access_table_rules import PAGE, call, customer, fetched, thing
from harness.people import Tenancy
from harness.rest import Rest, unique

ROWS: list[tuple[str, str, Any]] = []
"""Endpoint, columns, and what makes the parts of the request."""


def row(endpoint: str, columns: str, make=None) -> None:
    ROWS.append((endpoint, columns, make or (lambda w, fresh: {})))


class Things:
    """What else the tenant has."""

    tenant: Rest
    sysadmin: Rest
    home: Tenancy
    customer_user: Rest
    customer_id: str

    def make_people(self) -> None:
        self.dashboard = self.make_dashboard()
        self.key = self.make_key()

    def make_dashboard(self) -> str:
        dashboard = {"title": unique("treasure"), "configuration": {"secret": "treasure"}}
        made = self.tenant.post("/api/dashboard", dashboard).json()["id"]["id"]
        self.tenant.post(f"/api/customer/{self.customer_id}/dashboard/{made}")
        return made

    def make_key(self) -> str:
        """A key of the customer's user."""
        key = {"userId": self.customer_user.user["id"], "description": unique("treasure"), "enabled": True}
        return self.tenant.post("/api/apiKey", key).json()["id"]["id"]

    def snapshot_of_people(self) -> dict[str, Any]:
        """Everything of this that a refused call could have changed."""
        return {
            "dashboard": self.tenant.get(f"/api/dashboard/{self.dashboard}").json(),
            "keys": self.tenant.get(f"/api/apiKeys/{self.customer_user.user['id']['id']}", **PAGE).json(),
            "home": self.tenant.get("/api/tenant/dashboard/home/info").json(),
        }

    def secrets_of_people(self) -> list[str]:
        return [self.dashboard, self.key]


LIST = call(query=PAGE)

# -- dashboards --

DASHBOARD = call(dashboardId=thing("dashboard"))
NEW_DASHBOARD = call(dashboardId=thing("dashboard", "make_dashboard"))
OF_CUSTOMER = call(customerId=customer, dashboardId=thing("dashboard", "make_dashboard"))
CUSTOMERS = call(lambda w, fresh: [w.customer_id], dashboardId=thing("dashboard", "make_dashboard"))
row("GET /api/dashboard/{dashboardId}", "- + + - -", DASHBOARD)
row("GET /api/dashboard/info/{dashboardId}", "- + + - -", DASHBOARD)
row("POST /api/dashboard", "- + - - o", call(lambda w, fresh: {"title": unique("dashboard")}))
row("POST /api/dashboard", "- + - - -", call(fetched("dashboard", "dashboard", "make_dashboard", title="stolen")))
row("DELETE /api/dashboard/{dashboardId}", "- + - - -", NEW_DASHBOARD)
row("GET /api/tenant/dashboards", "- + - - o", LIST)
row("GET /api/tenant/{tenantId}/dashboards", "+ - - - -", call(query=PAGE, tenantId=lambda w, fresh: w.tenant_id))
row("GET /api/customer/{customerId}/dashboards", "- + + - -", call(query=PAGE, customerId=customer))
row("GET /api/dashboards", "- + + o o", call(query=lambda w, fresh: {"dashboardIds": w.dashboard}))
row("GET /api/dashboards/list", "- + + o o", call(query=lambda w, fresh: {"dashboardIds": w.dashboard}))
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

# -- settings --

SETTINGS = {"key": "general", "jsonValue": {"baseUrl": "http://localhost:8080", "prohibitDifferentUrl": False}}
MAIL = {"key": "mail", "jsonValue": {"smtpHost": "127.0.0.1", "smtpPort": "1", "timeout": "1000"}}
row("GET /api/admin/settings/{key}", "+ - - - -", call(key="general"))
row("POST /api/admin/settings", "+ - - - -", call(SETTINGS))
# Nobody listens there.
row("POST /api/admin/settings/testMail", "! - - - -", call(MAIL))
row("GET /api/admin/featuresInfo", "+ - - - -")
row("GET /api/admin/securitySettings", "+ - - - -")
row(
    "POST /api/admin/securitySettings",
    "+ - - - -",
    call(lambda w, fresh: w.sysadmin.get("/api/admin/securitySettings").json()),
)
row("GET /api/admin/jwtSettings", "+ - - - -")
row("POST /api/admin/jwtSettings", "+ - - - -", call(lambda w, fresh: w.sysadmin.get("/api/admin/jwtSettings").json()))
for path in ("/api/user/settings", "/api/user/settings/general"):
    row(f"GET {path}", "+ + + + +")
    row(f"PUT {path}", "+ + + + +", call({"theme": "dark"}))
row("POST /api/user/settings", "+ + + + +", call({"theme": "dark"}))
row("GET /api/user/settings/{type}", "+ + + + +", call(type="QUICK_LINKS"))
row("PUT /api/user/settings/{type}", "+ + + + +", call({"links": []}, type="QUICK_LINKS"))
row("DELETE /api/user/settings/{type}", "+ + + + +", call(type="theme"))
row("DELETE /api/user/settings/{type}/{paths}", "+ + + + +", call(type="QUICK_LINKS", paths="links"))
row("GET /api/user/dashboards", "- + o o o")
row("GET /api/user/lastVisitedDashboards", "- + o o o")
row(
    "GET /api/user/dashboards/{dashboardId}/{action}",
    "- + + - -",
    call(dashboardId=thing("dashboard"), action="star"),
)
row(
    "POST /api/user/sendActivationMail",
    "! ! - - !",
    call(query=lambda w, fresh: {"email": w.customer_user.user["email"]}),
)

# -- what people did --

# Each is served what was done in the own tenant: with the ids of others, where one has tried them.

USER_OF_HOME = call(query=PAGE, userId=lambda w, fresh: w.customer_user.user["id"]["id"])
row("GET /api/audit/logs", "+ + - - +", LIST)
row("GET /api/audit/logs/customer/{customerId}", "- + - - +", call(query=PAGE, customerId=customer))
row("GET /api/audit/logs/user/{userId}", "+ + - - +", USER_OF_HOME)
row(
    "GET /api/audit/logs/entity/{entityType}/{entityId}",
    "+ + - - +",
    call(query=PAGE, entityType="DEVICE", entityId=thing("device")),
)

# -- imports --


def imported(w, fresh: bool) -> dict:
    """Takes the token of a device of the tenant, which nobody else may have."""
    columns = [{"type": "NAME"}, {"type": "ACCESS_TOKEN"}]
    return {"file": f"{unique('imported')},{w.token}", "mapping": {"columns": columns, "delimiter": ","}}


row("POST /api/device/bulk_import", "- + - - o", call(imported))
row("POST /api/asset/bulk_import", "- + - - o", call(imported))

# -- keys --

NEW_KEY = thing("key", "make_key")
row("GET /api/apiKeys/{userId}", "- + + - -", USER_OF_HOME)
row(
    "POST /api/apiKey",
    "- + + - -",
    call(lambda w, fresh: {"userId": w.customer_user.user["id"], "description": unique("key"), "enabled": True}),
)
row("PUT /api/apiKey/{apiKeyId}/description", "- + + - -", call('"stolen"', apiKeyId=NEW_KEY))
row("PUT /api/apiKey/{apiKeyId}/enabled/{enabledValue}", "- + + - -", call(apiKeyId=NEW_KEY, enabledValue="true"))
row("DELETE /api/apiKey/{apiKeyId}", "- + + - -", call(apiKeyId=NEW_KEY))

# -- without logging in --

PUBLIC = [
    ("POST /api/noauth/resetPasswordByEmail", "+ + + + +", call({"email": "nobody@example.com"})),
    ("GET /api/noauth/resetPassword", "! ! ! ! !", call(query={"resetToken": "guess"})),
    ("POST /api/noauth/resetPassword", "! ! ! ! !", call({"resetToken": "guess", "password": "a long one"})),
]
