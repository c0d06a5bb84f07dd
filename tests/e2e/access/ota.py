"""OTA packages."""

from __future__ import annotations

from access.rows import LIST, PAGE, call, fetched, row, thing
from access.things import OTA_PACKAGE
from harness.rest import unique

PACKAGE = call(otaPackageId=thing("package"))
OF_PROFILE = {"entityType": "DEVICE_PROFILE"}

row("POST /api/otaPackage", "- + - - o", call(lambda w, fresh: OTA_PACKAGE | {"title": unique("package")}))
row("POST /api/otaPackage", "- + - - -", call(fetched("otaPackage/info", "package", "make_package", additionalInfo={})))
row(
    "POST /api/otaPackage",
    "- + - - !",
    call(
        lambda w, fresh: OTA_PACKAGE | {"title": unique("package"), "deviceProfileId": OF_PROFILE | {"id": w.profile}}
    ),
)
# The package has a URL, and so no data.
row(
    "POST /api/otaPackage/{otaPackageId}",
    "- + - - -",
    call(query={"checksumAlgorithm": "MD5"}, otaPackageId=thing("package", "make_package")),
    status=400,
)
row("GET /api/otaPackage/{otaPackageId}", "- + - - -", PACKAGE)
row("GET /api/otaPackage/info/{otaPackageId}", "- + + + -", PACKAGE)
row("GET /api/otaPackage/{otaPackageId}/download", "- + - - -", PACKAGE, status=400)
row("DELETE /api/otaPackage/{otaPackageId}", "- + - - -", call(otaPackageId=thing("package", "make_package")))
row("GET /api/otaPackages", "- + + + o", LIST, shows="package")
row(
    "GET /api/otaPackages/{deviceProfileId}/{type}",
    "- + + + o",
    call(query=PAGE, deviceProfileId=thing("profile"), type="FIRMWARE"),
    shows="package",
)
row(
    "GET /api/devices/count/{otaPackageType}/{deviceProfileId}",
    "- + + + o",
    call(otaPackageType="FIRMWARE", deviceProfileId=thing("profile")),
)
