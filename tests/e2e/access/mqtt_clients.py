"""Clients of the publish/subscribe broker: only the system administrator has to do with them."""

from __future__ import annotations

import json

from access.rows import PAGE, call, row
from harness.rest import unique

CREDENTIALS = "/api/mqtt/client/credentials"
PROVIDER = "/api/mqtt/auth/provider"
RULES = {"pubAuthRulePatterns": [".*"], "subAuthRulePatterns": [".*"]}


def credentials(w=None, fresh: bool = False) -> dict:
    name = unique("client")
    value = {"clientId": name, "password": "secret", "authRules": RULES}
    return {"name": name, "credentialsType": "MQTT_BASIC", "credentialsValue": json.dumps(value)}


def saved(w, fresh: bool) -> str:
    return w.sysadmin.post(CREDENTIALS, credentials()).json()["id"]


def named(w, fresh: bool) -> dict:
    return {"name": w.sysadmin.post(CREDENTIALS, credentials()).json()["name"]}


def provider(w, fresh: bool) -> dict:
    return w.sysadmin.get(f"{PROVIDER}/type/X_509").json()


def provider_id(w, fresh: bool) -> str:
    return provider(w, fresh)["id"]


def silent_server(w, fresh: bool) -> dict:
    """The settings of a server that is not there."""
    return {"type": "HTTP", "configuration": {"restEndpointUrl": "http://127.0.0.1:1"}}


def block(w, fresh: bool) -> dict:
    return {"type": "CLIENT_ID", "value": unique("blocked")}


def blocked(w, fresh: bool) -> dict:
    made = w.sysadmin.post("/api/blockedClient", block(w, fresh)).json()
    return {"type": made["type"], "value": made["value"]}


row(f"POST {CREDENTIALS}", "+ - - - -", call(credentials))
row(f"GET {CREDENTIALS}", "+ - - - -", call(query=PAGE), shows="")
row(f"GET {CREDENTIALS}", "+ - - - -", call(query=named))
row("GET /api/v2/mqtt/client/credentials", "+ - - - -", call(query=PAGE), shows="")
row(f"GET {CREDENTIALS}/info", "+ - - - -")
row(f"GET {CREDENTIALS}/{{credentialsId}}", "+ - - - -", call(credentialsId=saved))
row(
    f"POST {CREDENTIALS}/{{credentialsId}}",
    "+ - - - -",
    call({"currentPassword": "secret", "newPassword": "other"}, credentialsId=saved),
)
row(f"DELETE {CREDENTIALS}/{{credentialsId}}", "+ - - - -", call(credentialsId=saved))

MAPPING = {"columns": [{"type": "NAME"}, {"type": "CLIENT_ID"}], "delimiter": ",", "header": False}
row(
    f"POST {CREDENTIALS}/bulk_import",
    "+ - - - -",
    call(lambda w, fresh: {"file": f"{unique('imported')},{unique('client')}", "mapping": MAPPING}),
)

row("GET /api/mqtt/auth/providers", "+ - - - -", call(query=PAGE), shows="MQTT_BASIC")
row(f"POST {PROVIDER}", "+ - - - -", call(provider))
row(f"POST {PROVIDER}/http/check", "+ - - - -", call(silent_server), status=500)
row(f"GET {PROVIDER}/basic/strategy", "+ - - - -")
row(f"GET {PROVIDER}/type/{{authProviderType}}", "+ - - - -", call(authProviderType="MQTT_BASIC"))
row(f"GET {PROVIDER}/{{authProviderId}}", "+ - - - -", call(authProviderId=provider_id))
row(f"POST {PROVIDER}/{{authProviderId}}/enable", "+ - - - -", call(authProviderId=provider_id))
row(f"POST {PROVIDER}/{{authProviderId}}/disable", "+ - - - -", call(authProviderId=provider_id))

row("POST /api/blockedClient", "+ - - - -", call(block))
row("GET /api/blockedClient", "+ - - - -", call(query=PAGE), shows="")
row("GET /api/blockedClient/v2", "+ - - - -", call(query=PAGE), shows="")
row("GET /api/blockedClient/ttl", "+ - - - -")
row("DELETE /api/blockedClient", "+ - - - -", call(query=blocked))
row("GET /api/unauthorized/client", "+ - - - -", call(query=PAGE), shows="")
row("GET /api/unauthorized/client/v2", "+ - - - -", call(query=PAGE), shows="")
row("DELETE /api/unauthorized/client", "+ - - - -")
