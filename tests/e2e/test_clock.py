"""A wall clock that is set forward by a day and back again while devices are connected; monotonic time goes on."""

import time

import pytest

from harness.faults import Faults
from harness.flood import Flood, check_stored
from harness.rest import now_ms, telemetry
from harness.server import CUSTOMER, TENANT, eventually
from harness.wire import V311, Wire

# Kafka's client waits by the clock of the kernel, which cannot be set for the program alone.
pytestmark = pytest.mark.files

HOUR_S, DAY_S = 3600, 86_400
DEVICES = 10
PINGERS = 10
KEEP_ALIVE_S = 2
ENV = {
    "FIELDLINE_ACTIVITY_INACTIVITY_TIMEOUT": "4s",
    "FIELDLINE_ACTIVITY_CHECK_INTERVAL": "200ms",
    "FIELDLINE_ACTIVITY_REPORT_INTERVAL": "200ms",
    # What has expired would be deleted at once.
    "FIELDLINE_SERIES_SWEEP_INTERVAL": "100ms",
    "FIELDLINE_SERIES_PACK_AGE": "500ms",
    "FIELDLINE_API_MAX_FAILED_LOGINS": "2",
    "FIELDLINE_API_LOCKOUT": "2s",
}
FOR_EVER = {"endTs": now_ms() + 10 * DAY_S * 1000}


@pytest.fixture
def faults(tmp_path) -> Faults:
    return Faults(tmp_path)


@pytest.fixture
def server(make_server, faults):
    return make_server(env=ENV | faults.env).start()


def test_devices_notice_nothing_of_a_clock_that_jumps(server, faults):
    rest = server.rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    pingers = [rest.create_device() for _ in range(PINGERS)]
    leaving = rest.create_device()
    with Flood(server, devices, pingers=pingers, rate=500, keep_alive=KEEP_ALIVE_S) as flood:
        with Wire(server.mqtt_address, V311) as connection:
            assert connection.connect(username=leaving.token, keep_alive=0) == 0
            connection.ping()
            for device in [*devices, *pingers, leaving]:
                eventually(lambda: rest.activity(device.id)[0])
            active = {device: rest.activity(device.id) for device in devices + pingers}
            for offset in (DAY_S, DAY_S - HOUR_S, 0, -HOUR_S):
                faults.set_clock(offset)
                before = flood.now().acknowledged
                # Several checks of keep-alives and of activity.
                time.sleep(2.5)
                assert flood.now().acknowledged > before
                rest = server.rest()
                flickered = [device.name for device in devices + pingers if rest.activity(device.id) != active[device]]
                assert not flickered, f"{len(flickered)} devices were taken for inactive at {offset:+} s"
                connection.ping()
        # It was heard last by a clock that was ahead of the one that is there now.
        faults.set_clock(-2 * HOUR_S)
        rest = server.rest()
        eventually(lambda: rest.activity(leaving.id)[0] is False)
        faults.set_clock(0)
        outcomes = flood.finish()
    assert not [outcome for outcome in outcomes if outcome.closed_after is not None]
    assert max(latency for _, latency in flood.series("ping")) < 5
    rest = server.rest()
    for outcome in outcomes[:DEVICES]:
        assert outcome.acknowledged == outcome.sent
        # In their order, which the times that the server gives decide.
        eventually(lambda: check_stored(rest, outcome, "n", **FOR_EVER) or True)
        assert rest.latest(outcome.device.id, "n") == {"n": outcome.sent - 1}
    taken = server.cpu_seconds()
    time.sleep(3)
    assert server.cpu_seconds() - taken < 1, "busy although nobody sends"


def test_what_expires_by_a_clock_that_ran_ahead_is_there_when_it_is_put_right(server, faults):
    rest = server.rest()
    device = rest.create_device()
    kept = now_ms()
    # In chunks as well as in rows.
    for number in range(2):
        body = {"ts": kept + number, "values": {"a": number, "b": number}}
        rest.post(telemetry(device.id, f"timeseries/ANY/{HOUR_S}"), body)
        packed = server.metrics().get("fieldline_series_packed_points_total", 0)
        eventually(lambda: server.metrics().get("fieldline_series_packed_points_total", 0) > packed)
    rest.post(telemetry(device.id, f"timeseries/ANY/{HOUR_S}"), {"ts": kept + 2, "values": {"a": 2, "b": 2}})

    faults.set_clock(DAY_S)
    ahead = server.rest()
    assert ahead.points(device.id, "a", **FOR_EVER) == [] and ahead.latest(device.id) == {}
    # New rows join the chunks, and several sweeps pass by.
    for number in range(2):
        packed = server.metrics()["fieldline_series_packed_points_total"]
        ahead.post(telemetry(device.id, "timeseries/ANY"), {"ts": kept + 10 + number, "values": {"a": 10}})
        eventually(lambda: server.metrics()["fieldline_series_packed_points_total"] > packed)
    time.sleep(1)
    # A start must not take the clock for right either.
    server.kill()
    server.start()
    time.sleep(1)

    faults.set_clock(0)
    rest = server.rest()
    assert rest.values(device.id, "a")[:3] == [0, 1, 2]
    assert rest.values(device.id, "b") == [0, 1, 2]
    assert rest.latest(device.id, "b") == {"b": 2}


def test_what_is_written_after_the_clock_was_set_back_counts(server, faults):
    faults.set_clock(DAY_S)
    rest = server.rest()
    device = rest.create_device()
    rest.post(telemetry(device.id, "attributes/SHARED_SCOPE"), {"a": "old"})
    with Wire(server.mqtt_address, V311) as connection:
        assert connection.connect(username=device.token) == 0
        assert connection.publish("v1/devices/me/attributes", '{"c":"old"}') == 0
        eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE") == {"c": "old"})
        faults.set_clock(DAY_S - HOUR_S)
        assert connection.publish("v1/devices/me/attributes", '{"c":"new"}') == 0
    rest.post(telemetry(device.id, "attributes/SHARED_SCOPE"), {"a": "new"})
    assert rest.attributes(device.id, "SHARED_SCOPE") == {"a": "new"}
    eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE") == {"c": "new"})
    server.kill()
    rest = server.start().rest()
    assert rest.attributes(device.id, "SHARED_SCOPE") == {"a": "new"}
    eventually(lambda: rest.attributes(device.id, "CLIENT_SCOPE") == {"c": "new"})


def test_people_can_log_in_whatever_the_clock_does(server, faults):
    rest = server.rest()
    faults.set_clock(DAY_S)
    # The access token has expired, the one to refresh it has not.
    rest.get("/api/auth/user", expect=401)
    rest.use(rest.post("/api/auth/token", {"refreshToken": rest.refresh_token}).json())
    rest.get("/api/auth/user")
    customer = server.rest(*CUSTOMER)
    change = {"currentPassword": CUSTOMER[1], "newPassword": "another one"}
    customer.use(customer.post("/api/auth/changePassword", change).json())
    for _ in range(2):
        login = {"username": TENANT[0], "password": "wrong"}
        rest.post("/api/auth/login", login, expect=401)

    faults.set_clock(DAY_S - HOUR_S)
    # What was issued by the clock that was ahead still counts, the new password does, and a lock-out does not last for
    # the hour that is there a second time.
    rest.get("/api/auth/user")
    customer.get("/api/auth/user")
    server.rest(CUSTOMER[0], "another one").get("/api/auth/user")

    def log_in() -> bool:
        login = {"username": TENANT[0], "password": TENANT[1]}
        return rest.post("/api/auth/login", login, expect=None).status_code == 200

    eventually(log_in, every=0.3)
