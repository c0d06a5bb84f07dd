"""The operator's map: one PMTiles file that is read by ranges, and files that are refused at the start."""

import os
import struct
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
import requests

from harness.rest import Rest
from harness.server import StartFailed, run_cli

PATH = "/api/map/tiles.pmtiles"
HEADER = 127
MIB = 1 << 20


def header(*, version: int = 3, compression: int = 2, tile_type: int = 1) -> bytes:
    """The fixed part of an archive, whose sections are left out."""
    return (b"PMTiles" + bytes([version]) + bytes(89) + bytes([compression, compression, tile_type])).ljust(
        HEADER, b"\0"
    )


def write_map(path: Path, size: int = 3 * MIB) -> bytes:
    """Writes a file that begins as a map does, and has no two equal pieces."""
    numbers = b"".join(struct.pack(">I", number) for number in range(size // 4))
    content = header() + numbers[HEADER:]
    path.write_bytes(content)
    return content


@pytest.fixture
def with_map(make_server, tmp_path):
    """A server with a map, and the bytes of that."""
    file = tmp_path / "region.pmtiles"
    content = write_map(file)
    server = make_server(env={"FIELDLINE_HTTP_MAP_FILE": file}).start()
    return server, file, content


def ask(rest: Rest, method: str = "GET", expect: int = 206, **headers: str) -> requests.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return rest.call(method, PATH, expect=expect, headers={"Accept-Encoding": "identity"} | named)


def test_the_map_is_read_by_ranges(with_map):
    server, file, content = with_map
    rest = server.rest()
    size = len(content)
    assert rest.get("/api/system/params").json()["hasMapFile"] is True

    first = ask(rest, Range="bytes=0-16383")
    assert first.content == content[:16384]
    assert first.headers["Content-Range"] == f"bytes 0-16383/{size}"
    assert first.headers["Content-Length"] == "16384"
    assert first.headers["Accept-Ranges"] == "bytes"
    assert first.headers["Content-Type"] == "application/vnd.pmtiles"
    assert parsedate_to_datetime(first.headers["Last-Modified"]).timestamp() == int(file.stat().st_mtime)
    etag, modified = first.headers["ETag"], first.headers["Last-Modified"]
    for asked, expected in {
        f"bytes={MIB + 1}-{2 * MIB}": content[MIB + 1 : 2 * MIB + 1],
        f"bytes={size - 5}-": content[-5:],
        "bytes=-7": content[-7:],
        f"bytes={size - 1}-{size + 99}": content[-1:],
    }.items():
        answer = ask(rest, Range=asked)
        assert answer.content == expected, asked
        assert answer.headers["ETag"] == etag

    # Without a range, or with one that is none, it is the whole file.
    for asked in (None, "bytes=9-1", "lines=1-2", "bytes=0-1,4-5"):
        whole = ask(rest, expect=200, **({} if asked is None else {"Range": asked}))
        assert whole.content == content, asked
        assert "Content-Range" not in whole.headers

    for asked in (f"bytes={size}-", "bytes=-0"):
        beyond = ask(rest, expect=416, Range=asked)
        assert beyond.headers["Content-Range"] == f"bytes */{size}"
        assert beyond.json()["status"] == 416

    head = ask(rest, "HEAD", expect=200, Range="bytes=0-9")
    assert head.content == b"" and head.headers["Content-Length"] == str(size)
    assert head.headers["ETag"] == etag

    assert ask(rest, expect=304, If_None_Match=f'"other", {etag}').content == b""
    assert ask(rest, expect=304, If_Modified_Since=modified).content == b""
    assert ask(rest, Range="bytes=0-9", If_Range=etag).content == content[:10]
    assert ask(rest, expect=200, Range="bytes=0-9", If_Range='"other"').content == content
    # The connection is still in step after all that.
    assert ask(rest, Range="bytes=0-6").content == b"PMTiles"


def test_whoever_is_logged_in_may_read_the_map(with_map):
    server, _, content = with_map
    stranger = Rest(server.http)
    ask(stranger, expect=401, Range="bytes=0-9")
    admin = server.rest()
    dashboard = admin.post("/api/dashboard", {"title": "For all"}).json()["id"]["id"]
    admin.post(f"/api/customer/public/dashboard/{dashboard}")
    [public] = admin.get(f"/api/dashboard/{dashboard}").json()["assignedCustomers"]
    stranger.use(stranger.post("/api/auth/login/public", {"publicId": public["customerId"]["id"]}).json())
    assert ask(stranger, Range="bytes=0-9").content == content[:10]
    for tail in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "?path=/etc/passwd"):
        answer = stranger.call("GET", PATH + tail, expect=None, headers={"Range": "bytes=0-9"})
        assert answer.status_code == 404 or answer.content == content[:10], tail


def test_another_map_takes_the_place_of_the_first_while_the_server_runs(with_map):
    server, file, _ = with_map
    rest = server.rest()
    before = ask(rest, Range="bytes=0-9")
    newer = file.with_suffix(".new")
    content = write_map(newer, MIB)
    os.replace(newer, file)
    after = ask(rest, Range=f"bytes={MIB - 5}-")
    assert after.content == content[-5:]
    assert after.headers["ETag"] != before.headers["ETag"]

    file.unlink()
    ask(rest, expect=404, Range="bytes=0-9")
    assert "cannot read the map" in server.log()


def test_a_large_map_takes_no_memory(make_server, tmp_path):
    file = tmp_path / "sparse.pmtiles"
    with file.open("wb") as made:
        made.write(header())
        made.truncate(600 * MIB)
    server = make_server(env={"FIELDLINE_HTTP_MAP_FILE": file}).start()
    rest = server.rest()
    before = server.memory_kib()
    with rest.session.get(server.http + PATH, stream=True, timeout=60) as answer:
        assert answer.headers["Content-Length"] == str(600 * MIB)
        assert sum(len(piece) for piece in answer.iter_content(MIB)) == 600 * MIB
    assert server.memory_kib() - before < 64 << 10


def test_without_the_setting_there_is_no_map(tenant):
    assert tenant.get("/api/system/params").json()["hasMapFile"] is False
    tenant.get(PATH, expect=404)


UNFIT = {
    "no file": (None, "cannot read"),
    "no map": (b"<html>" + bytes(HEADER), "is no PMTiles archive of version 3"),
    "an empty file": (b"", "is no PMTiles archive of version 3"),
    "an older version": (header(version=2), "is no PMTiles archive of version 3"),
    "pictures": (header(tile_type=2), "has no vector tiles"),
    "a compression that browsers don't know": (header(compression=4), "must be compressed by gzip or not at all"),
}


@pytest.mark.parametrize(("content", "problem"), UNFIT.values(), ids=UNFIT)
def test_what_cannot_be_drawn_is_refused_at_the_start(make_server, tmp_path, content, problem):
    file = tmp_path / "unfit.pmtiles"
    if content is not None:
        file.write_bytes(content)
    server = make_server(env={"FIELDLINE_HTTP_MAP_FILE": file})
    with pytest.raises(StartFailed) as failed:
        server.start()
    for text in ("`http`: `map-file`:", str(file), problem):
        assert text in str(failed.value)


def test_a_folder_is_no_map(tmp_path):
    done = run_cli("config", env={"FIELDLINE_HTTP_MAP_FILE": str(tmp_path)})
    assert done.returncode not in (0, 101)
    assert "it is not a file" in done.stderr
