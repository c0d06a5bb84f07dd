"""What is uploaded and exported takes no more than it may, and has a name that addresses can hold."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import requests

from harness.rest import unique

MIB = 1 << 20


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*extra: bytes) -> bytes:
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\1\2\3")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(extra) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def peak_mib(server) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def upload(rest, data: bytes) -> dict:
    files = {"file": ("small.png", data, "image/png")}
    return rest.call("POST", "/api/image", files=files, data={"title": unique("image")}, expect=200).json()


def test_the_profile_of_a_picture_is_not_unpacked_without_bound(make_server):
    server = make_server().start()
    rest = server.rest()
    upload(rest, png())
    before = peak_mib(server)
    profile = b"bomb\0\0" + zlib.compress(bytes(180 * MIB), 9)
    assert len(profile) < 190_000
    info = upload(rest, png(chunk(b"iCCP", profile)))
    assert (info["descriptor"]["width"], info["descriptor"]["height"]) == (1, 1)
    assert peak_mib(server) - before < 90


def test_keys_of_resources_are_names_that_addresses_can_hold(rest):
    data = base64.b64encode(b"export const one = 1;").decode()
    script = {"title": "s", "resourceType": "JS_MODULE", "fileName": "s.js", "data": data}
    for key in ("../../auth/logout", "a/b.js", "a\\b.js", "..", "a\nb"):
        rest.post("/api/resource", script | {"resourceKey": key}, expect=400)
    exported = rest.get(upload(rest, png())["link"] + "/export").json()
    rest.call("PUT", "/api/image/import", json=exported | {"resourceKey": ".."}, expect=400)


def test_who_comes_by_a_public_link_exports_nothing(shared, rest):
    link = upload(rest, png())["link"]
    configuration = {"settings": {"dashboardLogoUrl": f"tb-image;{link}"}}
    dashboard = rest.post("/api/dashboard", {"title": unique("d"), "configuration": configuration}).json()
    path = f"/api/dashboard/{dashboard['id']['id']}"
    assert rest.get(path, includeResources="true").json()["resources"]
    public = rest.post(f"/api/customer/public{path.removeprefix('/api')}").json()
    [visited] = [one["customerId"]["id"] for one in public["assignedCustomers"] if one["public"]]
    pair = requests.post(f"{shared.http}/api/auth/login/public", json={"publicId": visited}, timeout=10).json()
    headers = {"X-Authorization": f"Bearer {pair['token']}"}
    seen = requests.get(shared.http + path, params={"includeResources": "true"}, headers=headers, timeout=10)
    assert seen.status_code == 200 and not seen.json()["resources"]
