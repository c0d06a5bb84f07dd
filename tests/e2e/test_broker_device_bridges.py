"""Bridges of the broker from topics to devices of the platform, and back."""

from __future__ import annotations

from harness import wire
from harness.bridges import devices, gateway, is_up
from harness.broker import broker_settings
from harness.people import create_tenancy
from harness.rest import unique
from harness.server import SYSADMIN, eventually
from harness.wire import V5, Wire


def test_topics_become_devices_and_calls_become_topics(make_server, tmp_path, join):
    server = make_server("home", env=broker_settings()).start()
    rest, token = server.rest(), gateway(server).token
    server.stop()
    toml = devices(
        token, filter="home/+/#", device="Lamp ${2}", profile="lamps", command_topic="commands/${device}/${method}"
    )
    server.env |= {"FIELDLINE_CONFIG": str(tmp_path / "home.toml")}
    (tmp_path / "home.toml").write_text(toml)
    server.start()
    rest = server.rest()
    assert eventually(lambda: is_up(server, "home"), within=20)
    client = join(server=server)
    client.subscribe("commands/#", qos=1)
    client.publish("home/7/power", "12.5")
    client.publish("home/7", '{"on": true, "color": "red"}')
    client.publish("home/7/state", "ON", qos=0)
    client.publish("home/8/state", '{"ts": 1700000000000, "values": {"state": "OFF"}}')

    def device(name: str) -> dict:
        found = rest.get("/api/tenant/devices", pageSize=100, page=0, textSearch=name).json()["data"]
        return next((one for one in found if one["name"] == name), {})

    def latest(name: str) -> dict:
        found = device(name)
        return rest.latest(found["id"]["id"]) if found else {}

    expected = {"power": 12.5, "on": True, "color": "red", "state": "ON"}
    assert eventually(lambda: latest("Lamp 7") == expected, within=20), latest("Lamp 7")
    assert eventually(lambda: latest("Lamp 8") == {"state": "OFF"}, within=20)
    assert device("Lamp 7")["type"] == "lamps"
    lamp = device("Lamp 7")["id"]["id"]
    # What the platform says to a device.
    rest.post(f"/api/plugins/telemetry/DEVICE/{lamp}/attributes/SHARED_SCOPE", {"level": 3})
    message = client.message()
    assert (message.topic, message.payload) == ("commands/Lamp 7/attributes", b'{"level":3}')
    answer = rest.post(f"/api/rpc/twoway/{lamp}", {"method": "set", "params": {"on": False}, "timeout": 10_000}).json()
    assert answer == {"success": True}
    message = client.message()
    assert (message.topic, message.payload) == ("commands/Lamp 7/set", b'{"on":false}')


def test_nothing_that_was_acknowledged_is_lost_by_a_crash(make_server, tmp_path):
    server = make_server("home", env=broker_settings()).start()
    token = gateway(server).token
    (tmp_path / "home.toml").write_text(devices(token, filter="plant/+", device="Pump"))
    server.stop()
    server.env |= {"FIELDLINE_CONFIG": str(tmp_path / "home.toml")}
    server.start()
    assert eventually(lambda: is_up(server, "home"), within=20)
    sent = 0
    with Wire(server.broker_address, V5) as client:
        assert client.connect(unique("client")) == 0
        for number in range(300):
            body = f'{{"ts": {1_700_000_000_000 + number}, "values": {{"n": {number}}}}}'
            client.send(wire.publish(V5, "plant/a", body, 1, number + 1))
        while sent < 300:
            client.expect(wire.PUBACK)
            sent += 1
    server.kill()
    server.start()
    rest = server.rest()

    def values() -> list:
        found = rest.get("/api/tenant/devices", pageSize=100, page=0, textSearch="Pump").json()["data"]
        span = {"startTs": 1_699_999_999_999, "endTs": 1_700_000_001_000, "limit": 1_000}
        return rest.values(found[0]["id"]["id"], "n", **span) if found else []

    assert eventually(lambda: len(values()) == 300, within=30)
    assert [int(value) for value in values()] == list(range(300))


def test_a_device_too_many_does_not_stop_the_others(make_server, tmp_path, join):
    server = make_server("home", env=broker_settings()).start()
    tenant = create_tenancy(server.rest(*SYSADMIN), maxDevices=2)
    token = tenant.admin.create_device(additionalInfo={"gateway": True}).token
    server.stop()
    toml = devices(token, filter="plant/+", device="${2}", key="level", attributes=True)
    (tmp_path / "home.toml").write_text(toml)
    server.env |= {"FIELDLINE_CONFIG": str(tmp_path / "home.toml")}
    server.start()
    rest, client = tenant.admin, join(server=server)
    rest.base = server.http
    for device in "first", "second", "first":
        client.publish(f"plant/{device}", "1")
    refused = 'bridge_refused_messages_total{bridge="home"}'
    assert eventually(lambda: server.metrics().get(refused) == 1, within=60)
    client.publish("plant/first", "2")
    first = rest.device_by_name("first")["id"]["id"]
    assert eventually(lambda: rest.attributes(first, "CLIENT_SCOPE").get("level") == 2, within=20)
    assert server.metrics().get(refused) == 1
    # Where there is room again, the next message makes the device.
    more = tenant.profile | {"profileData": {"configuration": {"type": "DEFAULT", "maxDevices": 3}}}
    server.rest(*SYSADMIN).post("/api/tenantProfile", more)

    def is_made() -> bool:
        client.publish("plant/second", "3")
        return rest.get("/api/tenant/devices", deviceName="second", expect=None).status_code == 200

    assert eventually(is_made, within=30)
