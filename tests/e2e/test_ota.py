"""Firmware and software updates: packages over REST, and devices that download them over MQTT and HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from harness.paho_device import PahoDevice
from harness.people import create_tenancy
from harness.rest import Device, Rest, unique
from harness.server import SYSADMIN, eventually
from harness.wire import V311, Wire, publish
from test_sdk import Program

IMAGE = random.Random(7).randbytes(450_001)
ATTRIBUTES = "v1/devices/me/attributes"
CHUNKS = "v2/fw/response/+/chunk/+"


def profile_id(rest: Rest) -> dict:
    return rest.get("/api/deviceProfileInfo/default").json()["id"]


def make_package(rest: Rest, kind: str = "FIRMWARE", profile: dict | None = None, **fields) -> dict:
    package = {"deviceProfileId": profile or profile_id(rest), "type": kind, "title": unique("pump"), "version": "1.0"}
    return rest.post("/api/otaPackage", package | fields).json()


def upload(
    rest: Rest, package: dict, data: bytes = IMAGE, *, expect: int | None = 200, name: str = "pump.bin", **params
):
    """Uploads the data of a package; SHA256 unless said otherwise."""
    path = f"/api/otaPackage/{package['id']['id']}"
    files = {"file": (name, data, "application/octet-stream")}
    return rest.call("POST", path, files=files, params={"checksumAlgorithm": "SHA256"} | params, expect=expect)


def ready(rest: Rest, kind: str = "FIRMWARE", data: bytes = IMAGE, **fields) -> dict:
    return upload(rest, make_package(rest, kind, **fields), data).json()


def assign(rest: Rest, device: Device, **packages) -> None:
    """Gives the device packages of its own: `firmwareId`, `softwareId`."""
    rest.post("/api/device", rest.get(f"/api/device/{device.id}").json() | packages)


def assign_to_profile(rest: Rest, **packages) -> None:
    profile = rest.get(f"/api/deviceProfile/{profile_id(rest)['id']}").json()
    rest.post("/api/deviceProfile", profile | packages)


def fw_attributes(rest: Rest, device: Device, prefix: str = "fw") -> dict:
    found = rest.attributes(device.id, "SHARED_SCOPE")
    return {key.removeprefix(f"{prefix}_"): value for key, value in found.items() if key.startswith(f"{prefix}_")}


def told(rest: Rest, device: Device, package: dict, prefix: str = "fw") -> bool:
    found = fw_attributes(rest, device, prefix)
    return (found.get("title"), found.get("version")) == (package["title"], package["version"])


def message(answer: requests.Response) -> str:
    return answer.json()["message"]


def test_packages_are_made_and_refused_in_the_words_that_clients_know(rest):
    made = make_package(rest, tag="nightly")
    assert (made["hasData"], made["name"], made["dataSize"]) == (False, made["title"], None)
    path, again = f"/api/otaPackage/{made['id']['id']}", {k: v for k, v in made.items() if k != "id"}
    for body, text in [
        (again, "OtaPackage with such title and version already exists!"),
        (again | {"title": ""}, "OtaPackage title should be specified!"),
        (again | {"version": ""}, "OtaPackage version should be specified!"),
        (again | {"type": None}, "Type should be specified!"),
        (again | {"usesUrl": True}, "Ota package URL should be specified!"),
        (made | {"title": "another"}, "Updating otaPackage title is prohibited!"),
        (made | {"version": "2"}, "Updating otaPackage version is prohibited!"),
        (made | {"tag": "2"}, "Updating otaPackage tag is prohibited!"),
        (made | {"type": "SOFTWARE"}, "Updating type is prohibited!"),
    ]:
        assert message(rest.post("/api/otaPackage", body, expect=400)) == text
    assert message(upload(rest, made, b"", expect=400)) == "OtaPackage data should be specified!"
    assert message(upload(rest, made, checksum="00", expect=400)) == "Wrong otaPackage file!"
    assert "ChecksumAlgorithm.ROT13" in message(upload(rest, made, checksumAlgorithm="rot13", expect=400))
    rest.get(f"{path}/download", expect=404)
    assert rest.get(path).json()["data"] is None

    saved = upload(rest, made, checksum=hashlib.sha256(IMAGE).hexdigest()).json()
    described = {"checksum": hashlib.sha256(IMAGE).hexdigest(), "checksumAlgorithm": "SHA256", "fileName": "pump.bin"}
    described |= {"dataSize": len(IMAGE), "contentType": "application/octet-stream", "hasData": True}
    assert saved == made | described == rest.get(f"/api/otaPackage/info/{made['id']['id']}").json()
    whole = rest.get(path).json()
    assert base64.b64decode(whole.pop("data")) == IMAGE and whole == saved
    file = rest.get(f"{path}/download")
    assert file.content == IMAGE
    assert (file.headers["x-filename"], file.headers["content-type"]) == ("pump.bin", "application/octet-stream")
    # The same once more changes nothing; anything else is refused.
    assert upload(rest, made).json() == saved
    other = bytes([IMAGE[0] ^ 1]) + IMAGE[1:]
    assert message(upload(rest, made, other, expect=400)) == "Updating otaPackage content type is prohibited!"
    refused = upload(rest, made, name="other.bin", expect=400)
    assert message(refused) == "Updating otaPackage file name is prohibited!"
    described = rest.post("/api/otaPackage", saved | {"additionalInfo": {"description": "good"}}).json()
    assert described["additionalInfo"] == {"description": "good"} and described["hasData"]

    url = make_package(rest, url="https://example.org/pump.bin", usesUrl=True, version="2.0")
    assert url["hasData"] and url["dataSize"] is None
    assert message(upload(rest, url, expect=400)) == "Updating otaPackage URL is prohibited!"
    empty = make_package(rest, version="3.0")
    page = {"pageSize": 10, "page": 0, "sortProperty": "version", "sortOrder": "ASC"}
    listed = rest.get("/api/otaPackages", **page).json()["data"]
    assert [one["version"] for one in listed] == ["1.0", "2.0", "3.0"]
    profile = profile_id(rest)["id"]
    listed = rest.get(f"/api/otaPackages/{profile}/FIRMWARE", **page).json()["data"]
    assert [one["version"] for one in listed] == ["1.0", "2.0"]
    assert rest.get(f"/api/otaPackages/{profile}/SOFTWARE", **page).json()["data"] == []
    rest.delete(f"/api/otaPackage/{empty['id']['id']}")
    rest.get(f"/api/otaPackage/info/{empty['id']['id']}", expect=404)

    kept = {("ADDED", "SUCCESS"), ("UPDATED", "SUCCESS"), ("UPDATED", "FAILURE")}

    def logged() -> set:
        path = f"/api/audit/logs/entity/OTA_PACKAGE/{made['id']['id']}"
        entries = rest.get(path, pageSize=100, page=0).json()["data"]
        return {(entry["actionType"], entry["actionStatus"]) for entry in entries}

    assert eventually(lambda: kept <= logged())


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("MD5", hashlib.md5(IMAGE).hexdigest()),
        ("SHA384", hashlib.sha384(IMAGE).hexdigest()),
        ("SHA512", hashlib.sha512(IMAGE).hexdigest()),
        ("CRC32", zlib.crc32(IMAGE).to_bytes(4, "little").hex()),
    ],
)
def test_checksums_are_made_where_none_is_given(tenant, algorithm, expected):
    package = make_package(tenant)
    saved = upload(tenant, package, checksumAlgorithm=algorithm).json()
    assert (saved["checksum"], saved["checksumAlgorithm"]) == (expected, algorithm)
    tenant.delete(f"/api/otaPackage/{package['id']['id']}")


def test_a_form_whose_head_is_too_large_is_given_up(shared, rest):
    package = make_package(rest)

    def long_head():
        yield b"--b\r\nX-Header: "
        for _ in range(16):
            yield b"a" * 65_536

    answer = requests.post(
        f"{shared.http}/api/otaPackage/{package['id']['id']}",
        params={"checksumAlgorithm": "SHA256"},
        headers={"X-Authorization": f"Bearer {rest.token}", "Content-Type": "multipart/form-data; boundary=b"},
        data=long_head(),
        timeout=20,
    )
    assert (answer.status_code, message(answer)) == (413, "The form is too large before its part 'file'")
    upload(rest, package)


def test_a_tenant_has_no_more_packages_than_its_profile_allows(sysadmin):
    tenancy = create_tenancy(sysadmin)
    rest, profile = tenancy.admin, tenancy.profile
    profile["profileData"]["configuration"]["maxOtaPackagesInBytes"] = 600 << 10
    sysadmin.post("/api/tenantProfile", profile)
    ready(rest)
    second = make_package(rest)
    refused = upload(rest, second, expect=400)
    assert message(refused) == "Ota packages total size exceeds the maximum of 600 KB"
    upload(rest, second, IMAGE[: 100 << 10])


def test_uploads_under_way_count_as_what_their_tenant_has(sysadmin):
    tenancy = create_tenancy(sysadmin)
    rest, profile = tenancy.admin, tenancy.profile
    profile["profileData"]["configuration"]["maxOtaPackagesInBytes"] = 400 << 10
    sysadmin.post("/api/tenantProfile", profile)
    first = make_package(rest)
    half_way, go_on = threading.Event(), threading.Event()
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: a/b\r\n\r\n'

    def slowly():
        yield head + IMAGE[: 300 << 10]
        half_way.set()
        go_on.wait(20)
        yield b"\r\n--b--\r\n"

    def is_refused() -> bool:
        """Whether there is no room for 250 KiB, for which there is as long as nothing of the other has been stored."""
        package = make_package(rest)
        answer = upload(rest, package, IMAGE[: 250 << 10], expect=None)
        rest.delete(f"/api/otaPackage/{package['id']['id']}")
        return answer.status_code == 400 and "total size" in message(answer)

    path = f"/api/otaPackage/{first['id']['id']}"
    form = {"headers": {"Content-Type": "multipart/form-data; boundary=b"}, "params": {"checksumAlgorithm": "CRC32"}}
    with ThreadPoolExecutor(1) as pool:
        uploading = pool.submit(rest.call, "POST", path, data=slowly(), **form)
        assert half_way.wait(20)
        try:
            refused = eventually(is_refused)
        finally:
            go_on.set()
        assert refused and uploading.result().json()["dataSize"] == 300 << 10
    upload(rest, make_package(rest), IMAGE[: 100 << 10])


def test_links_of_packages_are_not_for_everybody(sysadmin, shared):
    tenancy = create_tenancy(sysadmin)
    admin = tenancy.admin
    made = make_package(admin, url="https://example.org/pump?token=secret", usesUrl=True)
    public = admin.post(f"/api/customer/public/device/{admin.create_device().id}").json()["customerId"]["id"]
    visitor = Rest(shared.http)
    visitor.use(visitor.post("/api/auth/login/public", {"publicId": public}).json())
    kind = f"/api/otaPackages/{profile_id(admin)['id']}/FIRMWARE"
    for who, url in ((tenancy.customer_user, made["url"]), (visitor, None)):
        assert who.get(f"/api/otaPackage/info/{made['id']['id']}").json() == made | {"url": url}
        for path in ("/api/otaPackages", kind):
            assert who.get(path, pageSize=10, page=0).json()["data"] == [made | {"url": url}]


def test_what_is_assigned_is_checked_and_stays(rest):
    device = rest.create_device()
    firmware, software = ready(rest), ready(rest, "SOFTWARE")
    empty = make_package(rest)
    other_profile = rest.post("/api/deviceProfile", {"name": unique("other"), "profileData": {}}).json()["id"]
    foreign = upload(rest, make_package(rest, profile=other_profile)).json()
    nothing = {"entityType": "OTA_PACKAGE", "id": device.id}
    stored = rest.get(f"/api/device/{device.id}").json()
    for fields, text in [
        ({"firmwareId": nothing}, "Can't assign non-existent firmware!"),
        ({"softwareId": nothing}, "Can't assign non-existent software!"),
        ({"firmwareId": software["id"]}, "Can't assign firmware with type: SOFTWARE"),
        ({"firmwareId": empty["id"]}, "Can't assign firmware with empty data!"),
        ({"firmwareId": foreign["id"]}, "Can't assign firmware with different deviceProfile!"),
    ]:
        assert message(rest.post("/api/device", stored | fields, expect=400)) == text
        profile = rest.get(f"/api/deviceProfile/{profile_id(rest)['id']}").json()
        assert message(rest.post("/api/deviceProfile", profile | fields, expect=400)) == text
    assign(rest, device, firmwareId=firmware["id"])
    assign_to_profile(rest, softwareId=software["id"])
    for package, text in [
        (firmware, "The otaPackage referenced by the devices cannot be deleted!"),
        (software, "The software referenced by the device profile cannot be deleted!"),
    ]:
        assert message(rest.delete(f"/api/otaPackage/{package['id']['id']}", expect=400)) == text
    profile = profile_id(rest)["id"]
    assert rest.get(f"/api/devices/count/FIRMWARE/{profile}").json() == 0
    assert rest.get(f"/api/devices/count/SOFTWARE/{profile}").json() == 1


def test_a_device_is_told_of_its_package_and_downloads_it(shared, rest):
    device = rest.create_device()
    with PahoDevice(shared.mqtt_address, username=device.token) as client:
        assert client.connect() == 0
        client.subscribe((ATTRIBUTES, 1), (CHUNKS, 1), ("v2/fw/error", 1))
        first = ready(rest, tag="a")
        assign(rest, device, firmwareId=first["id"])
        topic, payload = client.message()
        expected = {
            "fw_title": first["title"],
            "fw_version": "1.0",
            "fw_tag": "a",
            "fw_size": len(IMAGE),
            "fw_checksum": first["checksum"],
            "fw_checksum_algorithm": "SHA256",
        }
        assert (topic, json.loads(payload)) == (ATTRIBUTES, expected)
        states = ["QUEUED", "INITIATED"]
        assert eventually(lambda: rest.values(device.id, "fw_state") == states)
        latest = rest.latest(device.id)
        assert (latest["target_fw_title"], latest["target_fw_version"]) == (first["title"], "1.0")
        assert latest["target_fw_tag"] == "a" and latest["target_fw_ts"] > 0

        size, data, number = 60_000, b"", 0
        while True:
            client.send(f"v2/fw/request/3/chunk/{number}", str(size) if number == 0 else "")
            topic, chunk = client.message()
            assert topic == f"v2/fw/response/3/chunk/{number}"
            data, number = data + chunk, number + 1
            if len(chunk) < size:
                break
        assert data == IMAGE
        client.send("v2/fw/request/3/chunk/99", "")
        assert client.message() == ("v2/fw/response/3/chunk/99", b"")
        client.send("v2/fw/request/4/chunk/0", "")
        assert client.message() == ("v2/fw/response/4/chunk/0", IMAGE)

        # A package elsewhere takes the place of the first, and the profile's that of a package of the device's own.
        url = make_package(rest, url="https://example.org/x", usesUrl=True)
        assign(rest, device, firmwareId=url["id"])
        gone = json.loads(client.message()[1])["deleted"]
        assert sorted(gone) == ["fw_checksum", "fw_checksum_algorithm", "fw_size", "fw_tag"]
        expected = {"fw_title": url["title"], "fw_version": "1.0", "fw_url": "https://example.org/x"}
        assert json.loads(client.message()[1]) == expected
        assign_to_profile(rest, firmwareId=first["id"])
        assign(rest, device, firmwareId=None)
        assert eventually(lambda: told(rest, device, first))
        assert json.loads(client.message()[1]) == {"deleted": ["fw_url"]}
        assert json.loads(client.message()[1])["fw_checksum"] == first["checksum"]
        assign_to_profile(rest, firmwareId=None)
        assert sorted(json.loads(client.message()[1])["deleted"]) == [
            "fw_checksum",
            "fw_checksum_algorithm",
            "fw_size",
            "fw_tag",
            "fw_title",
            "fw_version",
        ]
        assert fw_attributes(rest, device) == {}


@pytest.mark.parametrize(
    ("size", "assigned", "text"),
    [("70000", "data", b"PAYLOAD_TOO_LARGE"), ("100", None, b"NOT_FOUND"), ("100", "url", b"FAILURE")],
)
def test_a_download_that_cannot_be_ends_the_connection_with_its_reason(shared, rest, size, assigned, text):
    device = rest.create_device()
    if assigned == "data":
        assign(rest, device, softwareId=ready(rest, "SOFTWARE")["id"])
    elif assigned == "url":
        package = make_package(rest, "SOFTWARE", url="https://example.org/x", usesUrl=True)
        assign(rest, device, softwareId=package["id"])
    with PahoDevice(shared.mqtt_address, username=device.token) as client:
        assert client.connect() == 0
        client.subscribe(("v2/fw/error", 1), ("v2/sw/response/+/chunk/+", 1))
        client.send("v2/sw/request/1/chunk/0", size)
        assert client.message() == ("v2/fw/error", text)
        client.disconnected()


def test_a_device_downloads_over_http(shared, rest):
    device, bare = rest.create_device(), rest.create_device()
    package = ready(rest, "SOFTWARE")
    assign(rest, device, softwareId=package["id"])
    right = {"title": package["title"], "version": "1.0"}

    def get(who=device, what="software", **params) -> requests.Response:
        return requests.get(f"{shared.http}/api/v1/{who.token}/{what}", params=params, timeout=10)

    whole = get(**right)
    assert (whole.status_code, whole.content) == (200, IMAGE)
    assert whole.headers["content-disposition"] == "attachment;filename=pump.bin"
    assert (whole.headers["x-filename"], whole.headers["content-type"]) == ("pump.bin", "application/octet-stream")
    size = 200_000
    assert b"".join(get(**right, size=size, chunk=number).content for number in range(3)) == IMAGE
    assert get(**right, size=size, chunk=3).content == b""
    assert get(title=package["title"], version="1.1").status_code == 400
    assert get(version="1.0").status_code == 400
    assert get(**right, what="firmware").status_code == 404
    assert get(bare, **right).status_code == 404
    assert requests.get(f"{shared.http}/api/v1/nobody/software", params=right, timeout=10).status_code == 401
    assert eventually(lambda: told(rest, device, package, "sw"))


@pytest.mark.timeout(120)
def test_a_device_on_the_sdk_updates_itself(shared, rest, tmp_path: Path):
    device = rest.create_device()
    package = make_package(rest)
    upload(rest, package, checksumAlgorithm="MURMUR3_128")
    with Program("firmware.py", shared.mqtt_address, device.token) as program:
        assert program.heard("connected") == []
        program.tell(str(tmp_path / "image"))
        assert program.heard("asked") == []
        assign(rest, device, firmwareId=package["id"])
        assert program.heard("received") == ["1.0"]
    assert (tmp_path / "image").read_bytes() == IMAGE


def test_a_device_that_does_not_read_its_chunk_is_cut_off(make_server):
    settings = {"FIELDLINE_MQTT_CHUNK_GRACE": "1s", "FIELDLINE_MQTT_CHUNK_PACE": str(1 << 30)}
    server = make_server(env=settings).start()
    rest = server.rest()
    device = rest.create_device()
    package = upload(rest, make_package(rest), bytes(8 << 20), checksumAlgorithm="CRC32").json()
    assign(rest, device, firmwareId=package["id"])
    sessions = lambda: rest.get(f"/api/device/{device.id}/sessions").json()
    with Wire(server.mqtt_address) as wire:
        assert wire.connect(username=device.token, keep_alive=600) == 0
        assert len(sessions()) == 1
        wire.send(publish(V311, "v2/fw/request/0/chunk/0", b""))
        assert eventually(lambda: sessions() == [])


def test_a_device_that_reads_slowly_has_its_chunk_however_short_its_keep_alive(rest, shared):
    device, image = rest.create_device(), bytes(8 << 20)
    assign(rest, device, firmwareId=upload(rest, make_package(rest), image, checksumAlgorithm="CRC32").json()["id"])
    with Wire(shared.mqtt_address) as wire:
        assert wire.connect(username=device.token, keep_alive=1) == 0
        assert wire.subscribe(("v2/fw/response/+/chunk/+", 0)) == [0]
        assert wire.publish("v2/fw/request/0/chunk/0", b"") is not None
        # A slow link: nothing of it is read for longer than a device may be silent.
        time.sleep(4)
        assert wire.message().payload == image


@pytest.mark.timeout(120)
def test_packages_and_rollouts_survive_the_end_of_the_program(make_server):
    server = make_server(env={"FIELDLINE_OTA_ROLLOUT_DEVICES": "20"}).start()
    rest = server.rest()
    # The demo has devices of its own, which would be told first.
    profile = rest.post("/api/deviceProfile", {"name": unique("pumps"), "profileData": {}}).json()
    devices = [rest.create_device(deviceProfileId=profile["id"], type=None) for _ in range(6)]
    package = upload(rest, make_package(rest, profile=profile["id"])).json()
    rest.post("/api/deviceProfile", profile | {"firmwareId": package["id"]})
    # One device every three seconds: the first has been told, the others wait.
    assert eventually(lambda: any(told(rest, device, package) for device in devices))
    server.kill()
    server.env["FIELDLINE_OTA_ROLLOUT_DEVICES"] = "6000"
    server.start()
    rest = server.rest()
    assert eventually(lambda: all(told(rest, device, package) for device in devices))
    states = [rest.values(device.id, "fw_state") for device in devices]
    assert all(state[:2] == ["QUEUED", "INITIATED"] for state in states), states
    # Only the device whose turn it was in that very moment may be told twice.
    assert sum(map(len, states)) <= 2 * len(devices) + 1, states
    assert rest.get(f"/api/otaPackage/{package['id']['id']}/download").content == IMAGE
    with PahoDevice(server.mqtt_address, username=devices[0].token) as client:
        assert client.connect() == 0
        client.subscribe((CHUNKS, 1))
        client.send("v2/fw/request/0/chunk/0", "1000")
        assert client.message() == ("v2/fw/response/0/chunk/0", IMAGE[:1000])
        server.kill()
    server.start()
    answer = requests.get(
        f"{server.http}/api/v1/{devices[0].token}/firmware",
        params={"title": package["title"], "version": "1.0", "size": 1000, "chunk": 1},
        timeout=10,
    )
    assert answer.content == IMAGE[1000:2000]
    sysadmin = server.rest(*SYSADMIN)
    assert sysadmin.get("/api/tenants", pageSize=1, page=0).json()["totalElements"] == 1
