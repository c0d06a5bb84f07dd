"""The widget library, ready commands of devices, and answers about features that are not here."""

from __future__ import annotations

from access.rows import LIST, PAGE, call, customer, device_id, fetched, row, thing
from access.things import WIDGET_TYPE
from harness.rest import unique

TYPE = call(widgetTypeId=thing("widget_type"))
NEW_TYPE = call(widgetTypeId=thing("widget_type", "make_widget_type"))
BUNDLE = call(widgetsBundleId=thing("widgets_bundle"))
NEW_BUNDLE = call(widgetsBundleId=thing("widgets_bundle", "make_widgets_bundle"))
OF_BUNDLE = call(query=lambda w, fresh: PAGE | {"widgetsBundleId": w.widgets_bundle})
BY_IDS = call(query=lambda w, fresh: {"widgetsBundleIds": w.widgets_bundle})


def fqn(w, fresh: bool) -> dict:
    return {"fqn": f"tenant.{w.tenant.get(f'/api/widgetType/{w.widget_type}').json()['fqn']}"}


row("GET /api/widgetType", "- + + + -", call(query=fqn))
row("GET /api/widgetType/{widgetTypeId}", "- + - - -", TYPE)
row("GET /api/widgetTypeInfo/{widgetTypeId}", "- + - - -", TYPE)
row("POST /api/widgetType", "o + - - o", call(lambda w, fresh: WIDGET_TYPE | {"name": unique("widget")}))
row(
    "POST /api/widgetType", "- + - - -", call(fetched("widgetType", "widget_type", "make_widget_type", deprecated=True))
)
row("DELETE /api/widgetType/{widgetTypeId}", "- + - - -", NEW_TYPE)
row("GET /api/widgetTypes", "o + + + o", LIST, shows="widget_type")
row("GET /api/widgetTypes", "- + + + -", OF_BUNDLE, shows="widget_type")
row("GET /api/widgetsBundle/{widgetsBundleId}/widgetTypes", "- + + + -", BUNDLE, shows="widget_type")
row("GET /api/widgetTypesDetails", "- + + + -", OF_BUNDLE, shows="widget_type")
row("GET /api/widgetTypesInfos", "- + + + -", OF_BUNDLE, shows="widget_type")
row("GET /api/widgetTypeFqns", "- + - - -", OF_BUNDLE, shows="tenant.")

row("GET /api/widgetsBundle/{widgetsBundleId}", "- + + + -", BUNDLE)
row("POST /api/widgetsBundle", "o + - - o", call(lambda w, fresh: {"title": unique("bundle")}))
row(
    "POST /api/widgetsBundle",
    "- + - - -",
    call(fetched("widgetsBundle", "widgets_bundle", "make_widgets_bundle", title="stolen")),
)
row("DELETE /api/widgetsBundle/{widgetsBundleId}", "- + - - -", NEW_BUNDLE)
row(
    "POST /api/widgetsBundle/{widgetsBundleId}/widgetTypes",
    "- + - - -",
    call(lambda w, fresh: [w.widget_type], widgetsBundleId=thing("widgets_bundle", "make_widgets_bundle")),
)
row(
    "POST /api/widgetsBundle/{widgetsBundleId}/widgetTypeFqns",
    "- + - - -",
    call(lambda w, fresh: [], widgetsBundleId=thing("widgets_bundle", "make_widgets_bundle")),
)
row("GET /api/widgetsBundles", "o + + + o", LIST, shows="widgets_bundle")
row("GET /api/widgetsBundles/all", "o + + + o", shows="widgets_bundle")
row("GET /api/widgetsBundles/list", "o + + + o", BY_IDS, shows="widgets_bundle")

row("GET /api/device-connectivity/{deviceId}", "- + + - -", device_id())
row(
    "GET /api/device-connectivity/gateway-launch/{deviceId}/docker-compose/download",
    "- + + - -",
    device_id(),
    status=400,
)

row("POST /api/noauth/oauth2Clients", "+ + + + +", public=True, shows="")
row("GET /api/2fa/providers", "+ + + + +", shows="")
row("GET /api/notifications", "+ + + + +", LIST, shows="")
row("GET /api/notifications/unread/count", "+ + + + +")
row("GET /api/edge/types", "- + + + +", shows="")
row("GET /api/tenant/edgeInfos", "- + - - +", LIST, shows="")
row("GET /api/customer/{customerId}/edgeInfos", "- + + - -", call(query=PAGE, customerId=customer), shows="")
