"""Limits over all connections: what happens to the one that would go beyond."""

import select

from harness import wire
from harness.server import eventually
from harness.wire import V5, Wire

TELEMETRY = "v1/devices/me/telemetry"


def test_partial_packets_share_a_budget(make_server):
    server = make_server(env={"FIELDLINE_MQTT_PARTIAL_MEMORY": "100KiB"})
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(2)]
    packet = wire.publish(V5, TELEMETRY, '{"a":"' + "x" * 65_000 + '"}', 1, 1)
    with Wire(server.mqtt_address, V5) as first, Wire(server.mqtt_address, V5) as second:
        for connection, device in zip((first, second), devices, strict=True):
            assert connection.connect(username=device.token) == 0
        for connection in (first, second):
            connection.send(packet[:60_000])
        # There is room for one of the two, whichever comes first.
        told, _, _ = select.select([first.socket, second.socket], [], [], 10)
        refused, kept = (first, second) if first.socket in told else (second, first)
        refused.ended(0x97)
        # The one that had room is not disturbed, and gives its share back.
        kept.send(packet[60_000:])
        assert kept.puback(1) == 0
        again = devices[(first, second).index(refused)]
    with Wire(server.mqtt_address, V5) as third:
        assert third.connect(username=again.token) == 0
        third.send(packet[:60_000])
        third.send(packet[60_000:])
        assert third.puback(1) == 0
    for device in devices:
        assert eventually(lambda: len(rest.values(device.id, "a")[0])) == 65_000


def test_a_connection_beyond_the_limit_waits_for_another_to_end(make_server):
    server = make_server(env={"FIELDLINE_MQTT_MAX_CONNECTIONS": "2"})
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(3)]
    open_ones = [Wire(server.mqtt_address, V5) for _ in range(2)]
    for connection, device in zip(open_ones, devices, strict=False):
        assert connection.connect(username=device.token) == 0
    with Wire(server.mqtt_address, V5) as waiting:
        waiting.send(wire.connect(V5, username=devices[2].token))
        assert waiting.silent(0.3)
        open_ones.pop().close()
        assert waiting.connack() == 0
        assert waiting.publish(TELEMETRY, '{"a":1}') == 0
    open_ones.pop().close()
