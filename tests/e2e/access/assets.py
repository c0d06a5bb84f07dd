"""Assets, their profiles, entity views and relations."""

from __future__ import annotations

from access.rows import LIST, assignable, call, device_of, fetched, home_customer, row, thing
from access.things import entity_view, relation
from harness.rest import unique

# -- assets and their profiles --

ASSET, NEW_ASSET = call(assetId=thing("asset")), call(assetId=thing("asset", "make_asset"))
row("GET /api/asset/{assetId}", "- + + - -", ASSET)
row("GET /api/asset/info/{assetId}", "- + + - -", ASSET)
row("DELETE /api/asset/{assetId}", "- + - - -", NEW_ASSET)
row("POST /api/asset", "- + - - o", call(lambda w, fresh: {"name": unique("asset"), "type": "default"}))
row("POST /api/asset", "- + + - -", call(fetched("asset", "asset", "make_asset", label="stolen")))
row(
    "POST /api/asset",
    "- + - - !",
    call(lambda w, fresh: {"name": unique("asset"), "type": "default", "customerId": home_customer(w)}),
)
row(
    "POST /api/asset",
    "- + - - !",
    call(
        lambda w, fresh: {
            "name": unique("asset"),
            "assetProfileId": {"entityType": "ASSET_PROFILE", "id": w.asset_profile},
        }
    ),
)
assignable("asset", "asset", "make_asset")
row("GET /api/assets", "- + + o o", call(query=lambda w, fresh: {"assetIds": w.asset}), shows="asset")
row("GET /api/asset/types", "- + + + o", shows="default")

PROFILE = call(assetProfileId=thing("asset_profile"))
NEW_PROFILE = call(assetProfileId=thing("asset_profile", "make_asset_profile"))
row("GET /api/assetProfile/{assetProfileId}", "- + - - -", PROFILE)
row("GET /api/assetProfileInfo/{assetProfileId}", "- + + + -", PROFILE)
row("GET /api/assetProfileInfo/default", "- + + + o")
row("DELETE /api/assetProfile/{assetProfileId}", "- + - - -", NEW_PROFILE)
row("POST /api/assetProfile", "- + - - o", call(lambda w, fresh: {"name": unique("profile")}))
row(
    "POST /api/assetProfile",
    "- + - - -",
    call(fetched("assetProfile", "asset_profile", "make_asset_profile", description="stolen")),
)
row("POST /api/assetProfile/{assetProfileId}/default", "- + - - -", NEW_PROFILE)
CHAIN_ID = lambda w: {"entityType": "RULE_CHAIN", "id": w.chain}
WITH_CHAIN = lambda w, fresh: {"name": unique("profile"), "defaultRuleChainId": CHAIN_ID(w)}
row("POST /api/assetProfile", "- + - - !", call(WITH_CHAIN))
row("GET /api/assetProfiles", "- + - - o", LIST, shows="asset_profile")
row("GET /api/assetProfileInfos", "- + + + o", LIST, shows="asset_profile")
row(
    "GET /api/assetProfileInfos/list",
    "- + - - o",
    call(query=lambda w, fresh: {"assetProfileIds": w.asset_profile}),
    shows="asset_profile",
)
row("GET /api/assetProfile/names", "- + + + o", shows="asset_profile")

# -- entity views --

VIEW, NEW_VIEW = call(entityViewId=thing("view")), call(entityViewId=thing("view", "make_view"))
row("GET /api/entityView/{entityViewId}", "- + + - -", VIEW)
row("GET /api/entityView/info/{entityViewId}", "- + + - -", VIEW)
row("DELETE /api/entityView/{entityViewId}", "- + - - -", NEW_VIEW)
row("POST /api/entityView", "- + - - !", call(lambda w, fresh: entity_view(w.device)))
row("POST /api/entityView", "- + + - -", call(fetched("entityView", "view", "make_view", startTimeMs=1)))
# A view shows everything of its entity, so who points it elsewhere must be allowed to read there.
row(
    "POST /api/entityView",
    "- + ! - -",
    call(lambda w, fresh: fetched("entityView", "view", "make_view", entityId=device_of(w.unassigned))(w, fresh)),
)
row(
    "POST /api/entityView",
    "- + - - !",
    call(lambda w, fresh: entity_view(w.device, customerId=home_customer(w))),
)
assignable("entityView", "view", "make_view")
row("GET /api/entityViews", "- + + o o", call(query=lambda w, fresh: {"entityViewIds": w.view}), shows="view")
row("GET /api/entityViews/list", "- + + o o", call(query=lambda w, fresh: {"entityViewIds": w.view}), shows="view")
row("GET /api/entityView/types", "- + + + o", shows="default")
TELEMETRY = "/api/plugins/telemetry/{entityType}/{entityId}"
OF_VIEW = {"entityType": "ENTITY_VIEW", "entityId": thing("view")}
row(f"GET {TELEMETRY}/values/timeseries", "- + + - -", call(**OF_VIEW))
row(f"GET {TELEMETRY}/values/attributes", "- + + - -", call(**OF_VIEW), shows="treasure-2")
OF_ASSET = {"entityType": "ASSET", "entityId": thing("asset")}
row(f"GET {TELEMETRY}/values/attributes", "- + + - -", call(**OF_ASSET), shows="treasure-2")


# -- relations --


def key(found: dict) -> dict:
    return {
        "fromId": found["from"]["id"],
        "fromType": found["from"]["entityType"],
        "toId": found["to"]["id"],
        "toType": found["to"]["entityType"],
        "relationType": found["type"],
    }


KEY = call(query=lambda w, fresh: key(w.relation))
NEW_KEY = call(query=lambda w, fresh: key(w.make_relation() if fresh else w.relation))
row("GET /api/relation", "- + + - -", KEY)
row("DELETE /api/relation", "- + + - -", NEW_KEY)
row("DELETE /api/v2/relation", "- + + - -", NEW_KEY)
row(
    "DELETE /api/relations",
    "- + + - -",
    call(
        query=lambda w, fresh: {
            "entityType": "ASSET",
            "entityId": w.make_relation()["from"]["id"] if fresh else w.asset,
        }
    ),
)
for path in ("/api/relation", "/api/v2/relation"):
    row(f"POST {path}", "- + + - -", call(lambda w, fresh: relation(w.asset, "DEVICE", w.device) | {"type": "Manages"}))
    # From one's own to what is not.
    row(
        f"POST {path}",
        "- + - - -",
        call(lambda w, fresh: relation(w.asset, "DEVICE", w.unassigned) | {"type": "Uses", "additionalInfo": None}),
    )
    row(f"POST {path}", "- + - - -", call(lambda w, fresh: relation(w.asset, "CUSTOMER", w.customer_id)))
FROM = {"fromType": "ASSET", "fromId": thing("asset")}
TO = {"toType": "DEVICE", "toId": thing("device")}
row(
    "GET /api/relations",
    "- + + - -",
    call(query=lambda w, fresh: {"fromId": w.asset, "fromType": "ASSET"}),
    shows="device",
)
row(
    "GET /api/relations",
    "- + + - -",
    call(query=lambda w, fresh: {"toId": w.device, "toType": "DEVICE"}),
    shows="device",
)
row(
    "GET /api/relations/info",
    "- + + - -",
    call(query=lambda w, fresh: {"fromId": w.asset, "fromType": "ASSET"}),
    shows="device",
)
row("GET /api/relations/from/{fromType}/{fromId}", "- + + - -", call(**FROM), shows="device")
row(
    "GET /api/relations/from/{fromType}/{fromId}/{relationType}",
    "- + + - -",
    call(relationType="Contains", **FROM),
    shows="device",
)
row("GET /api/relations/info/from/{fromType}/{fromId}", "- + + - -", call(**FROM), shows="device")
row("GET /api/relations/to/{toType}/{toId}", "- + + - -", call(**TO), shows="asset")
row(
    "GET /api/relations/to/{toType}/{toId}/{relationType}",
    "- + + - -",
    call(relationType="Contains", **TO),
    shows="asset",
)
row("GET /api/relations/info/to/{toType}/{toId}", "- + + - -", call(**TO), shows="asset")


def walk(kind: str, direction: str, **fields):
    """A search along relations from the asset or the device."""

    def body(w, fresh: bool) -> dict:
        root = {"rootId": w.asset if kind == "ASSET" else w.device, "rootType": kind, "direction": direction}
        return {"parameters": root | {"relationTypeGroup": "COMMON", "maxLevel": 2}} | fields

    return call(body)


row("POST /api/relations", "- + + - -", walk("ASSET", "FROM", filters=[]), shows="device")
row("POST /api/relations/info", "- + + - -", walk("ASSET", "FROM", filters=[]), shows="device")
row(
    "POST /api/devices",
    "- + + - -",
    walk("ASSET", "FROM", relationType="Contains", deviceTypes=["default"]),
    shows="device",
)
row(
    "POST /api/entityViews",
    "- + + - -",
    walk("ASSET", "FROM", relationType="Contains", entityViewTypes=["default"]),
    shows="view",
)
row(
    "POST /api/assets",
    "- + + - -",
    walk("DEVICE", "TO", relationType="Contains", assetTypes=["default"]),
    shows="asset",
)
