"""The sessions of devices as administrators see them, and what belongs to gateways as a whole."""

import json

import pytest

from harness.paho_device import PahoDevice
from harness.people import create_tenancy
from harness.rest import now_ms, unique
from harness.server import eventually

CALLS = "v1/devices/me/rpc/request/+"


@pytest.fixture
def rest(sysadmin):
    """The administrator of a tenant that no other test uses."""
    return create_tenancy(sysadmin).admin


def sessions(rest, device_id: str) -> list[dict]:
    return rest.get(f"/api/device/{device_id}/sessions").json()


def test_sessions_are_seen_counted_and_ended(shared, rest):
    device = rest.create_device()
    assert sessions(rest, device.id) == []
    before = now_ms()
    with PahoDevice(shared.mqtt_address, "5.0", username=device.token) as client:
        assert client.connect() == 0
        client.subscribe((CALLS, 1))
        (session,) = sessions(rest, device.id)
        assert before - 1000 <= session.pop("connectedTime") <= now_ms() + 1000
        assert session == {
            "sessionId": session["sessionId"],
            "transport": "MQTT",
            "address": "127.0.0.1",
            "subscribedToAttributes": False,
            "subscribedToRpc": True,
            "waitingBytes": 0,
        }
        assert rest.get("/api/deviceSessions/count").json() == 1
        path = f"/api/device/{device.id}/sessions/{session['sessionId']}"
        rest.delete(path)
        assert client.disconnected() == 0x98
    assert eventually(lambda: sessions(rest, device.id) == [])
    rest.delete(path, expect=404)
    with PahoDevice(shared.mqtt_address, "5.0", username=device.token) as client:
        assert client.connect() == 0
        assert rest.delete(f"/api/device/{device.id}/sessions").json() == 1
        assert client.disconnected() == 0x98
    assert eventually(lambda: rest.get("/api/deviceSessions/count").json() == 0)


def test_a_gateway_keeps_those_behind_it_active_and_says_how_long_messages_take(make_server):
    server = make_server(
        env={"FIELDLINE_MQTT_GATEWAY_METRICS_INTERVAL": "1s", "FIELDLINE_ACTIVITY_REPORT_INTERVAL": "1s"}
    )
    rest = server.start().rest()
    gateway = rest.create_device(additionalInfo={"gateway": True, "overwriteActivityTime": True})
    name = unique("meter")
    with PahoDevice(server.mqtt_address, username=gateway.token) as client:
        assert client.connect() == 0
        client.subscribe(("v1/devices/me/rpc/response/+", 1))
        client.publish("v1/devices/me/rpc/request/1", json.dumps({"method": "getSessionLimits", "params": {}}))
        limits = json.loads(client.message()[1])
        none = {"messages": None, "telemetryMessages": None, "telemetryDataPoints": None}
        assert (limits["rateLimits"], limits["gatewayRateLimits"]) == (none, none)

        metadata = {"connector": "Modbus", "receivedTs": now_ms() - 30, "publishedTs": now_ms() - 10}
        values = [{"ts": 1_700_000_000_000, "values": {"t": 1}, "metadata": metadata}]
        assert client.publish("v1/gateway/telemetry", json.dumps({name: values})) == 0
        device = rest.device_by_name(name)["id"]["id"]
        (session,) = sessions(rest, device)
        assert session["gatewayId"]["id"] == gateway.id and session["address"] == "127.0.0.1"
        assert eventually(lambda: rest.values(gateway.id, "gatewayMetrics") != [])
        (metrics,) = rest.values(gateway.id, "gatewayMetrics")
        metrics = metrics if isinstance(metrics, dict) else json.loads(metrics)
        assert 10 <= metrics["Modbus"]["avgGwLatency"] <= 30
        assert metrics["Modbus"]["minTransportLatency"] >= 10

        active = lambda: rest.attributes(device, "SERVER_SCOPE").get("lastActivityTime", 0)
        assert eventually(lambda: active() > 0)
        heard = active()
        # The device itself says nothing any more.
        assert eventually(lambda: client.publish("v1/devices/me/telemetry", "{a:1}") == 0 and active() > heard)
