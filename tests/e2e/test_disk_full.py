"""A disk that fills up: new messages are refused, reads go on, and it resumes by itself."""

import time

import pytest
import requests

from harness import wire
from harness.disk import fill, free_bytes, small_disk
from harness.load import Load, Tally
from harness.rest import now_ms, telemetry
from harness.server import eventually
from harness.wire import V5, V311, Wire

TELEMETRY = "v1/devices/me/telemetry"
DISK_MIB = 512

pytestmark = [pytest.mark.root, pytest.mark.files]


def post(server, device, body: str) -> requests.Response:
    return requests.post(f"{server.http}/api/v1/{device.token}/telemetry", data=body, timeout=10)


@pytest.mark.parametrize("reserve", [None, "0"], ids=["with the default reserve", "to the last byte"])
def test_a_full_disk_refuses_messages_serves_reads_and_resumes(make_server, tmp_path, reserve):
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        env = {} if reserve is None else {"FIELDLINE_JOURNAL_MIN_FREE_DISK": reserve}
        server = make_server(data_dir=disk / "data", env=env)
        rest = server.start().rest()
        print(f"{(DISK_MIB << 20) - free_bytes(disk)} bytes are used after the start")
        device, other = rest.create_device(), rest.create_device()
        assert post(server, device, '{"before":1}').status_code == 200
        eventually(lambda: rest.values(device.id, "before"))

        tallies = [Tally(rest.create_device(), "n") for _ in range(4)]
        ballast = disk / "ballast"
        try:
            with Load(server, tallies, window=10, http=1) as load:
                eventually(lambda: load.acknowledged > 200)
                fill(ballast)
                full_since = time.monotonic()
                # Every publisher is refused in the end, and refused means: an answer over HTTP, a close over MQTT.
                eventually(lambda: refused(server, device, ballast))

            assert_refuses(server, rest, device, other, ballast)
            # Long enough for every part of the server to have found out that it cannot write.
            while time.monotonic() < full_since + 4:
                assert refused(server, device, ballast), "accepted although the disk is full"
                time.sleep(0.05)
            assert_refuses(server, rest, device, other, ballast)
            print(f"refusing for {time.monotonic() - full_since:.1f} s, {load.acknowledged} acknowledged before")
        finally:
            ballast.unlink(missing_ok=True)

        eventually(lambda: post(server, device, '{"after":1}').status_code == 200, within=30)
        # Every part of the server finds out by itself that there is room again.
        eventually(lambda: requests.get(f"{server.http}/readyz", timeout=10).status_code == 200, within=30)
        with Wire(server.mqtt_address, V5) as connection:
            assert connection.connect(username=device.token) == 0
            assert connection.publish(TELEMETRY, '{"after":2}') == 0
        eventually(lambda: rest.values(device.id, "after")[-1:] == [2])
        for tally in tallies:
            eventually(lambda: tally.check(rest.points(tally.device.id, "n")) or True)

        server.kill()
        rest = server.start().rest()
        assert rest.values(device.id, "before") == [1]
        eventually(lambda: rest.values(device.id, "after")[-1:] == [2])
        for tally in tallies:
            eventually(lambda: tally.check(rest.points(tally.device.id, "n")) or True)
        server.stop()


def refused(server, device, ballast) -> bool:
    # What was freed meanwhile, by compaction say, is taken again.
    fill(ballast)
    return post(server, device, '{"during":1}').status_code == 500


def assert_refuses(server, rest, device, other, ballast) -> None:
    """A full disk, seen by each kind of client."""

    def on_version_5() -> bool:
        fill(ballast)
        with Wire(server.mqtt_address, V5) as connection:
            assert connection.connect(username=device.token) == 0
            connection.send(wire.publish(V5, TELEMETRY, '{"during":1}', 1, 1))
            connection.ended(0x83)
        return True

    def on_version_3() -> bool:
        fill(ballast)
        with Wire(server.mqtt_address, V311) as connection:
            assert connection.connect(username=other.token) == 0
            connection.send(wire.publish(V311, TELEMETRY, '{"during":1}', 1, 1))
            connection.ended()
        return True

    def over_http() -> bool:
        fill(ballast)
        answer = post(server, device, '{"during":1}')
        return (answer.status_code, answer.content) == (500, b"")

    for check in (on_version_5, on_version_3, over_http):
        eventually(check)
    assert server.running
    assert rest.values(device.id, "before") == [1]
    assert rest.latest(device.id, "before") == {"before": 1}
    assert rest.get("/api/tenant/devices", pageSize=10, page=0).json()["totalElements"] >= 3
    assert requests.get(f"{server.http}/healthz", timeout=10).status_code == 200
    assert requests.get(f"{server.http}/readyz", timeout=10).status_code == 503


def test_a_full_disk_does_not_stop_logins_or_metrics(make_server, tmp_path):
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        server = make_server(data_dir=disk / "data")
        rest = server.start().rest()
        device = rest.create_device()
        ballast = disk / "ballast"
        fill(ballast)
        try:
            eventually(lambda: refused(server, device, ballast))
            assert server.rest().get("/api/auth/user").status_code == 200
            assert server.metrics()
            # A change that cannot be stored is an error of the reference's shape, not a hang or a crash.
            answer = rest.post(telemetry(device.id, "attributes/SERVER_SCOPE"), {"a": now_ms()}, expect=None)
            assert answer.status_code in (200, 500, 503)
            for number in range(40):
                fill(ballast)
                answer = rest.post("/api/device", {"name": f"too much {number}", "label": "x" * 200}, expect=None)
                assert answer.status_code in (200, 500, 503)
        finally:
            ballast.unlink(missing_ok=True)
        eventually(lambda: post(server, device, '{"after":1}').status_code == 200, within=30)
        # Entities can be written again without a restart, too.
        eventually(lambda: rest.create_device())
        eventually(lambda: rest.post(telemetry(device.id, "attributes/SERVER_SCOPE"), {"a": 1}))
        server.stop()


def test_a_stop_and_a_start_on_a_full_disk_keep_everything(make_server, tmp_path):
    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        server = make_server(data_dir=disk / "data")
        rest = server.start().rest()
        device = rest.create_device()
        for number in range(50):
            assert post(server, device, f'{{"n":{number}}}').status_code == 200
        ballast = disk / "ballast"
        fill(ballast)
        try:
            eventually(lambda: refused(server, device, ballast))
            server.kill()
        finally:
            ballast.unlink(missing_ok=True)
        rest = server.start().rest()
        assert eventually(lambda: len(rest.values(device.id, "n")) == 50)
        server.stop()
