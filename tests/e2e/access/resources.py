"""Images and other resources."""

from __future__ import annotations

from access.rows import LIST, PAGE, call, fetched, row, thing
from access.things import image, resource
from harness.rest import unique

FILE = call(resourceId=thing("resource"))
SCRIPT = call(resourceId=thing("script"))
SCRIPT_LINK = call(resourceType="js_module", scope="tenant", key=thing("script_key"))
IMAGE = call(type="tenant", key=thing("image"))
BY_IDS = call(query=lambda w, fresh: {"resourceIds": w.resource})


def changed_image(body=None, **path):
    """A call that changes an image."""
    return call(body, type="tenant", key=thing("image", "make_image"), **path)


# Without a form there is nothing to store.
row("POST /api/image", "o + - - o", status=400)
row("PUT /api/images/{type}/{key}", "- + - - -", changed_image(), status=400)
row("PUT /api/images/{type}/{key}/info", "- + - - -", changed_image({"title": "stolen"}))
row("PUT /api/images/{type}/{key}/public/{isPublic}", "- + - - -", changed_image(isPublic="true"))
row("GET /api/images/{type}/{key}", "- + + + -", IMAGE)
row("GET /api/images/{type}/{key}/preview", "- + + + -", IMAGE)
row("GET /api/images/{type}/{key}/info", "- + - - -", IMAGE)
row("GET /api/images/{type}/{key}/export", "- + - - -", IMAGE)
row("PUT /api/image/import", "o + - - o", call(lambda w, fresh: image(unique("image"))))
row("GET /api/images", "o + - - o", LIST, shows="image")
row("DELETE /api/images/{type}/{key}", "- + - - -", changed_image())
row(
    "GET /api/images/public/{publicResourceKey}",
    "+ + + + +",
    call(publicResourceKey=thing("public_key")),
    public=True,
)

row("GET /api/resource/{resourceId}/download", "- + - - -", FILE)
row("GET /api/resource/{resourceType}/{scope}/{key}", "- + + + -", SCRIPT_LINK)
row("GET /api/resource/{resourceType}/{scope}/{key}/info", "- + - - -", SCRIPT_LINK)
row("GET /api/resource/lwm2m/{resourceId}/download", "- + - - -", FILE)
row("GET /api/resource/pkcs12/{resourceId}/download", "- + - - -", FILE)
row("GET /api/resource/jks/{resourceId}/download", "- + - - -", FILE)
row("GET /api/resource/js/{resourceId}/download", "- + + + -", SCRIPT)
# Only scripts are for users of customers.
row("GET /api/resource/js/{resourceId}/download", "- + - - -", FILE)
row("GET /api/resource/info/{resourceId}", "- + - - -", FILE)
row("GET /api/resource/{resourceId}", "- + - - -", FILE)
row("POST /api/resource", "o + - - o", call(lambda w, fresh: resource(unique("file"))))
row("POST /api/resource", "- + - - -", call(fetched("resource/info", "resource", "make_resource", title="stolen")))
row("POST /api/resource/upload", "o + - - o", status=400)
row("PUT /api/resource/{id}/data", "- + - - -", call(id=thing("resource", "make_resource")), status=400)
row(
    "PUT /api/resource/{id}/info",
    "- + - - -",
    call(lambda w, fresh: {"title": "stolen"}, id=thing("resource", "make_resource")),
)
row("GET /api/resource", "o + - - o", LIST, shows="resource")
row("GET /api/resource", "o + - - o", BY_IDS, shows="resource")
row("GET /api/resource/list", "o + - - o", BY_IDS, shows="resource")
row("GET /api/resource/tenant", "- + - - o", LIST, shows="resource")
row("GET /api/resource/lwm2m/page", "- + - - o", LIST, shows="")
row("GET /api/resource/lwm2m", "- + - - o", call(query=PAGE | {"sortOrder": "ASC", "sortProperty": "id"}), shows="")
row("DELETE /api/resource/{resourceId}", "- + - - -", call(resourceId=thing("resource", "make_resource")))

row(
    "GET /api/device-connectivity/{protocol}/certificate/download",
    "+ + + + +",
    call(protocol="mqtts"),
    public=True,
)
