"""What the broker bounds: subscriptions, retained messages, sessions, connections, memory; and a disk that is full."""

from __future__ import annotations

import socket
import struct
import time

import pytest

from harness import wire
from harness.broker import SESSION_EXPIRY, BrokerClient, broker_settings, connect_raw, read_message
from harness.disk import fill, small_disk
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5, V311, Wire

KEPT = struct.pack(">BI", SESSION_EXPIRY, 60)


def test_a_client_has_no_more_subscriptions_than_permitted(start_broker, join):
    client = join(server=start_broker(max_subscriptions=2))
    assert client.subscribe("a", "b", "c", qos=1) == [1, 1, 0x97]
    # One that it has is changed, and one that it gives up makes room.
    assert client.subscribe("b", qos=2) == [2]
    client.unsubscribe("a")
    assert client.subscribe("c", qos=0) == [0]


def test_there_are_no_more_retained_messages_than_permitted(start_broker, join, raw):
    server = start_broker(max_retained=2)
    publisher, subscriber = join(server=server), join(server=server)
    for topic in "a", "b":
        assert publisher.publish(topic, "1", retain=True) == 0
    assert publisher.publish("c", "1", retain=True) == 0x97
    assert publisher.publish("b", "2", retain=True) == 0
    # The identifier of a refused message is free also in a session that is kept.
    client_id = unique("kept")
    connection = raw(V5, server=server)
    assert connection.connect(client_id, clean=False, props=KEPT) == 0
    connection.send(wire.publish(V5, "c", "refused", 2, 7, retain=True))
    assert connection.expect(wire.PUBREC).body[:3] == b"\0\7\x97"
    connection.close()
    again = raw(V5, server=server)
    assert again.connect(client_id, clean=False, props=KEPT) == 0
    subscriber.subscribe("d", qos=2)
    again.send(wire.publish(V5, "d", "taken", 2, 7))
    again.expect(wire.PUBREC)
    assert subscriber.texts(1) == ["taken"]
    publisher.publish("a", "", retain=True)
    assert publisher.publish("c", "3", retain=True) == 0
    subscriber.subscribe("#", qos=1)
    assert sorted(subscriber.texts(2)) == ["2", "3"]


def test_a_filter_that_comes_many_times_gets_its_retained_messages_once(start_broker, join):
    server = start_broker()
    join(server=server).publish("a", "kept", retain=True)
    with Wire(server.broker_address, V311) as connection:
        connection.connect(unique("client"))
        connection.send(wire.subscribe(V311, [("#", 0)] * 1_000))
        assert connection.expect(wire.SUBACK).body[2:] == bytes(1_000)
        assert wire.read_publish(V311, connection.expect(wire.PUBLISH)).payload == b"kept"
        connection.ping()


def test_filters_can_be_refused_to_everybody(start_broker, join):
    client = join(server=start_broker(refused_filters="#,a/+"))
    assert client.subscribe("#", "a/+", "a/b", "$share/g/#", qos=1) == [0x80, 0x80, 1, 0x80]


def test_a_session_is_not_kept_for_longer_than_permitted(start_broker, join, raw):
    server = start_broker(max_session_expiry="2s")
    client = join(server=server, clean=True, expiry=1_000)
    assert client.connack.SessionExpiryInterval == 2
    client.vanish()
    eventually(lambda: server.metrics()["broker_sessions"] == 0, within=15)


def test_a_client_that_has_to_wait_for_a_place_gets_it(start_broker):
    server = start_broker(max_connections=2)
    with Wire(server.broker_address, V5) as one, Wire(server.broker_address, V5) as two:
        for connection in one, two:
            assert connection.connect(unique("client")) == 0
        with Wire(server.broker_address, V5) as third:
            third.send(wire.connect(V5, unique("client")))
            assert third.silent(0.5)
            one.send(wire.BYE)
            assert third.connack() == 0


def test_beginnings_of_packets_take_a_bounded_memory(start_broker):
    server = start_broker(partial_memory="64KiB", max_packet="1MiB")
    half = wire.publish(V5, "a", bytes(200_000), 1)[:100_000]
    with Wire(server.broker_address, V5) as one, Wire(server.broker_address, V5) as other:
        for connection in one, other:
            assert connection.connect(unique("client")) == 0
        one.send(half)
        assert one.expect(wire.DISCONNECT).body[:1] == b"\x97"
        # Whoever has room goes on, and so does a packet that comes whole.
        other.send(wire.publish(V5, "a", bytes(2_000), 1))
        assert other.puback(1) == 0


def test_no_more_is_in_flight_than_the_broker_wants(start_broker, join, raw):
    server = start_broker(max_in_flight=2)
    receiver, publisher = raw(V5, server=server), join(server=server)
    receiver.connect(unique("client"))
    receiver.subscribe(("a", 1))
    for number in range(5):
        publisher.publish("a", str(number))
    got = [wire.read_publish(V5, receiver.expect(wire.PUBLISH)) for _ in range(2)]
    assert receiver.silent(0.3)
    receiver.send(wire.puback(got[0].packet_id))
    assert wire.read_publish(V5, receiver.expect(wire.PUBLISH)).payload == b"2"


@pytest.mark.root
@pytest.mark.parametrize("reserve", [None, "0"], ids=["with the default reserve", "to the last byte"])
def test_a_full_disk_refuses_messages_and_nothing_acknowledged_is_lost(make_server, tmp_path, reserve):
    with small_disk(tmp_path / "disk", 512) as disk:
        env = broker_settings() | ({} if reserve is None else {"FIELDLINE_JOURNAL_MIN_FREE_DISK": reserve})
        server = make_server(data_dir=disk / "data", demo=False, env=env).start()
        subscriber = BrokerClient(server.broker_address, "3.1.1", "subscriber", clean=False)
        subscriber.connect()
        subscriber.subscribe("a", qos=1)
        subscriber.leave()
        taken: list[str] = []

        def publish() -> bool:
            """Publishes and says whether the message was taken; a refusal ends the connection."""
            with Wire(server.broker_address, V311) as connection:
                if connection.connect(unique("publisher")) != 0:
                    return False
                text = f"{len(taken)} {unique('message')}{'x' * 20_000}"
                connection.send(wire.publish(V311, "a", text, 1))
                packet = connection.receive()
                if packet is None:
                    return False
                assert packet.kind == wire.PUBACK and struct.unpack(">H", packet.body)[0] == 1
                taken.append(text)
                return True

        assert publish()
        ballast = disk / "ballast"
        try:
            eventually(lambda: fill(ballast) or not publish(), within=60)
            for _ in range(20):
                fill(ballast)
                publish()
            # Who asks for nothing durable is served.
            with Wire(server.broker_address, V311) as connection:
                assert connection.connect(unique("other")) == 0
                connection.ping()
        finally:
            ballast.unlink(missing_ok=True)
        eventually(publish, within=30)
        for _ in range(100):
            assert publish()
        server.kill()
        server.start()
        subscriber = BrokerClient(server.broker_address, "3.1.1", "subscriber", clean=False)
        subscriber.connect()
        assert subscriber.session_present
        assert subscriber.texts(len(taken)) == taken
        subscriber.leave()


@pytest.mark.parametrize("is_kept", [True, False])
def test_no_more_bytes_are_on_their_way_to_a_client_than_permitted(start_broker, join, raw, is_kept):
    server = start_broker(queue_memory="64KiB")
    publisher, reader = join(server=server), raw(V5, server=server)
    connect_raw(reader, "reader", **({} if is_kept else {"clean": True, "props": b""}))
    reader.subscribe(("a", 1))
    for number in range(12):
        publisher.publish("a", f"{number:02}" * 8192)
    flight = [read_message(reader.expect(wire.PUBLISH)) for _ in range(4)]
    reader.ping()
    assert not reader.pending, "a fifth message before an acknowledgement"
    # The broker waits for it without looking all the time.
    used = server.cpu_seconds()
    time.sleep(1)
    assert server.cpu_seconds() - used < 0.5
    # What waits for a session that is kept is on disk; of another one as much as may be on its way, and the newest.
    for number in [*range(4, 12)] if is_kept else [*range(8, 12)]:
        reader.send(wire.puback(flight.pop(0).packet_id))
        flight.append(read_message(reader.expect(wire.PUBLISH)))
        assert flight[-1].payload == f"{number:02}".encode() * 8192
    for message in flight:
        reader.send(wire.puback(message.packet_id))
    reader.ping()
    assert not reader.pending


def test_a_client_that_reads_nothing_is_cut_off_by_the_next_of_its_name(start_broker, join, raw):
    server = start_broker()
    publisher = join(server=server)
    port = server.broker_address[1]
    # Segments so small that neither side has much room for what is not read.
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(10)
    connection.connect(server.broker_address)
    with Wire.over(connection, V5) as stalled:
        connect_raw(stalled, "reader", keep_alive=0)
        stalled.subscribe(("a", 0))
        for _ in range(3_000):
            publisher.publish("a", "x" * 100)
        before = server.sockets_at(port)
        again = raw(V5, server=server)
        assert connect_raw(again, "reader", keep_alive=0) == 1
        # The new connection instead of the old one.
        eventually(lambda: server.sockets_at(port) == before, within=15)
        again.ping()
