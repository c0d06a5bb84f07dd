"""What people set, what is kept of what they did, their keys, and what they import."""

from __future__ import annotations

from access.rows import PAGE, call, customer, row, thing
from harness.rest import unique

# -- settings --

SETTINGS = {"key": "general", "jsonValue": {"baseUrl": "http://localhost:8080", "prohibitDifferentUrl": False}}
MAIL = {"key": "mail", "jsonValue": {"smtpHost": "127.0.0.1", "smtpPort": "1", "timeout": "1000"}}
row("GET /api/admin/settings/{key}", "+ - - - -", call(key="general"))
row("POST /api/admin/settings", "+ - - - -", call(SETTINGS))
# Nobody listens there.
row("POST /api/admin/settings/testMail", "! - - - -", call(MAIL))
SMPP = {"type": "SMPP", "host": "127.0.0.1", "port": 1, "systemId": "a", "password": "b"}
SMS = {"providerConfiguration": SMPP, "numberTo": "+4912345", "message": "hi"}
row("POST /api/admin/settings/testSms", "! - - - -", call(SMS))
row("GET /api/admin/mail/oauth2/loginProcessingUrl", "+ - - - -")
# No account is set.
row("GET /api/admin/mail/oauth2/authorize", "! - - - -")
row(
    "GET /api/admin/mail/oauth2/code",
    "! ! ! ! !",
    call(query={"code": "guess", "state": "guess"}),
    public=True,
)
row("GET /api/mail/config/template", "+ + - - +", shows="smtpHost")
row("GET /api/admin/systemInfo", "+ - - - -")
row("GET /api/admin/featuresInfo", "+ - - - -")
row("GET /api/admin/updates", "+ - - - -")
row("GET /api/system/info", "+ + + + +")
row("GET /api/system/params", "+ + + + +")
# No map is set; with one, everybody who is logged in may read it.
row("GET /api/map/tiles.pmtiles", "! ! ! ! !")
row("GET /api/overload", "+ + - - +")
row("GET /api/uiSettings/helpBaseUrl", "+ + + + +")
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

# -- what people did --

# Each is served what was done in the own tenant: with the ids of others, where one has tried them. Of one entity that may
# be nothing.

# Few of them: what one has tried to do to others stands there, too.
FEW = {"pageSize": 5, "page": 0}
USER_OF_HOME = {"userId": lambda w, fresh: w.customer_user_id}
row("GET /api/audit/logs", "+ + - - +", call(query=FEW), shows="actionType")
row("GET /api/audit/logs/customer/{customerId}", "- + - - +", call(query=FEW, customerId=customer), shows="")
row("GET /api/audit/logs/user/{userId}", "+ + - - +", call(query=FEW, **USER_OF_HOME), shows="")
row(
    "GET /api/audit/logs/entity/{entityType}/{entityId}",
    "+ + - - +",
    call(query=FEW, entityType="DEVICE", entityId=thing("device")),
    shows="",
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
row("GET /api/apiKeys/{userId}", "- + + - -", call(query=PAGE, **USER_OF_HOME), shows="key")
row(
    "POST /api/apiKey",
    "- + + - -",
    call(lambda w, fresh: {"userId": w.customer_user.user["id"], "description": unique("key"), "enabled": True}),
)
row("PUT /api/apiKey/{apiKeyId}/description", "- + + - -", call('"stolen"', apiKeyId=NEW_KEY))
row("PUT /api/apiKey/{apiKeyId}/enabled/{enabledValue}", "- + + - -", call(apiKeyId=NEW_KEY, enabledValue="true"))
row("DELETE /api/apiKey/{apiKeyId}", "- + + - -", call(apiKeyId=NEW_KEY))

# -- records that were set aside --

# There are none, and nobody can make one.
NOT_THERE = "00000000-0000-4000-8000-000000000001"
row("GET /api/setAside", "+ + - - +", call(query=PAGE), shows="")
row("GET /api/setAside/{setAsideId}", "! ! - - !", call(setAsideId=NOT_THERE))
row("POST /api/setAside/{setAsideId}/replay", "! ! - - !", call(setAsideId=NOT_THERE))
row("DELETE /api/setAside/{setAsideId}", "! ! - - !", call(setAsideId=NOT_THERE))
