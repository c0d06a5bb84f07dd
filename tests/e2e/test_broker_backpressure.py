"""Who publishes waits a moment while a subscriber's queue is half full, and for no one who does not keep up."""

from __future__ import annotations

import struct
import time

import pytest

from harness import wire
from harness.broker import SESSION_EXPIRY, connect_raw
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5

KEPT = {"clean": False, "props": struct.pack(">BI", SESSION_EXPIRY, 60)}
LOST_AT_THE_END = {"clean": True, "props": b""}


def dropped(server) -> float:
    return server.metrics()["broker_dropped_messages_total"]


def wait_until_held(server) -> None:
    """Waits until a publisher waits for a subscriber."""
    eventually(lambda: server.metrics()["broker_held_publishers_total"] > 0, within=10)


def subscriber(raw, server, *, keep=LOST_AT_THE_END, topic: str = "a"):
    reader = raw(V5, server=server)
    connect_raw(reader, unique("reader"), **keep)
    reader.subscribe((topic, 1))
    return reader


def send_all(publisher, count: int, name: str = "", qos: int = 1, topic: str = "a") -> None:
    """Sends so many messages at once, and waits for no acknowledgement."""
    packets = [wire.publish(V5, topic, f"{name}{number}", qos, number + 1) for number in range(count)]
    publisher.send(b"".join(packets))


def publish_all(raw, server, count: int, name: str = "", **connect):
    """A publisher that has sent so many messages at once."""
    publisher = raw(V5, server=server)
    connect_raw(publisher, unique("publisher"), **(LOST_AT_THE_END | connect))
    send_all(publisher, count, name)
    return publisher


def acknowledged(publisher, count: int) -> None:
    """Insists that all messages of a publisher are acknowledged, in their order."""
    for packet_id in range(1, count + 1):
        assert publisher.puback(packet_id) in (0, 0x10)


@pytest.mark.parametrize("keep", [KEPT, LOST_AT_THE_END], ids=["kept", "not kept"])
def test_a_reader_that_keeps_up_on_the_whole_loses_nothing(start_broker, raw, keep):
    server = start_broker(queue_messages=20, publisher_wait="10s", event_loops=2)
    reader = subscriber(raw, server, keep=keep)
    publishers = {name: publish_all(raw, server, 100, name) for name in "ABCDE"}
    wait_until_held(server)
    got = [reader.message().payload.decode() for _ in range(500)]
    for name, publisher in publishers.items():
        assert [text for text in got if text.startswith(name)] == [f"{name}{number}" for number in range(100)]
        acknowledged(publisher, 100)
    assert dropped(server) == 0


def test_large_messages_wait_for_room_in_memory(start_broker, raw):
    server = start_broker(queue_memory="64KiB", publisher_wait="10s")
    reader = subscriber(raw, server)
    publisher = raw(V5, server=server)
    connect_raw(publisher, unique("publisher"), **LOST_AT_THE_END)
    for number in range(30):
        publisher.send(wire.publish(V5, "a", f"{number:02}" * 8192, 1, number + 1))
    wait_until_held(server)
    assert [reader.message().payload[:2] for _ in range(30)] == [f"{number:02}".encode() for number in range(30)]
    acknowledged(publisher, 30)
    assert dropped(server) == 0


def test_what_is_exactly_once_waits_as_well(start_broker, raw):
    server = start_broker(queue_messages=4, publisher_wait="10s")
    reader = subscriber(raw, server)
    publisher = raw(V5, server=server)
    connect_raw(publisher, unique("publisher"), **LOST_AT_THE_END)
    send_all(publisher, 40, qos=2)
    wait_until_held(server)
    assert [reader.message().payload for _ in range(40)] == [str(number).encode() for number in range(40)]
    for packet_id in range(1, 41):
        assert publisher.expect(wire.PUBREC).body[:2] == struct.pack(">H", packet_id)
    assert dropped(server) == 0


def test_a_reader_that_takes_nothing_holds_up_nobody_for_long(start_broker, raw):
    server = start_broker(queue_messages=20, max_in_flight=5, publisher_wait="1s")
    reader = subscriber(raw, server)
    began = time.monotonic()
    publishers = [publish_all(raw, server, 100, name) for name in "AB"]
    for publisher in publishers:
        acknowledged(publisher, 100)
    # Once, not for each message.
    assert time.monotonic() - began < 8
    eventually(lambda: dropped(server) == 180, within=5)
    # As long as it is slow nobody waits again.
    held = server.metrics()["broker_held_publishers_total"]
    acknowledged(publish_all(raw, server, 100, "C"), 100)
    assert server.metrics()["broker_held_publishers_total"] == held
    got = [reader.message().payload.decode() for _ in range(20)]
    assert got[5:] == [f"C{number}" for number in range(85, 100)]


def test_a_reader_that_takes_much_at_a_time_is_waited_for_again_and_again(start_broker, raw):
    server = start_broker(queue_messages=20, publisher_wait="3s")
    reader = subscriber(raw, server)
    publisher = raw(V5, server=server)
    connect_raw(publisher, unique("publisher"), **LOST_AT_THE_END)
    for name in "AB":
        send_all(publisher, 100, name)
        got: list[str] = []
        while len(got) < 100:
            some = [wire.read_publish(V5, reader.expect(wire.PUBLISH))]
            while reader.pending:
                some.append(wire.read_publish(V5, reader.expect(wire.PUBLISH)))
            got += [message.payload.decode() for message in some]
            reader.send(b"".join(wire.puback(message.packet_id) for message in some))
        assert got == [f"{name}{number}" for number in range(100)]
        acknowledged(publisher, 100)
        # Longer than anybody waits: what was then is over.
        time.sleep(3.2)
    assert dropped(server) == 0
    assert server.metrics()["broker_held_publishers_total"] > 1


@pytest.mark.parametrize("qos", [0, 1])
def test_nobody_who_has_room_waits_for_others(start_broker, raw, qos):
    server = start_broker(queue_messages=400, max_in_flight=5, publisher_wait="10s")
    stuck = subscriber(raw, server)
    # Its queue is crowded, and nobody takes anything from it.
    acknowledged(publish_all(raw, server, 200, "A"), 200)
    reader = raw(V5, server=server)
    connect_raw(reader, unique("reader"), **LOST_AT_THE_END)
    reader.subscribe(("a", qos))
    publisher = publish_all(raw, server, 100, "B")
    assert [reader.message().payload.decode() for _ in range(100)] == [f"B{number}" for number in range(100)]
    acknowledged(publisher, 100)
    assert server.metrics()["broker_held_publishers_total"] == 0
    stuck.close()


def test_sessions_of_clients_that_are_away_do_not_count(start_broker, raw):
    server = start_broker(queue_messages=20, publisher_wait="10s")
    away = subscriber(raw, server, keep=KEPT)
    away.send(wire.BYE)
    away.close()
    reader = subscriber(raw, server)
    publisher = publish_all(raw, server, 100)
    wait_until_held(server)
    assert [reader.message().payload.decode() for _ in range(100)] == [str(number) for number in range(100)]
    acknowledged(publisher, 100)


def test_the_members_of_a_group_that_have_room_take_the_messages(start_broker, raw):
    server = start_broker(queue_messages=20, max_in_flight=5, publisher_wait="10s")
    stuck, reader = (subscriber(raw, server, topic="$share/g/a") for _ in range(2))
    publisher = publish_all(raw, server, 200)
    # The other one has at most the half that is crowded.
    got = [reader.message().payload for _ in range(190)]
    acknowledged(publisher, 200)
    assert len(set(got)) == 190 and dropped(server) == 0
    stuck.close()


def test_nobody_waits_where_that_is_switched_off(start_broker, raw):
    server = start_broker(queue_messages=20, max_in_flight=5, publisher_wait="0s")
    subscriber(raw, server)
    acknowledged(publish_all(raw, server, 100), 100)
    eventually(lambda: dropped(server) == 80, within=5)
    assert server.metrics()["broker_held_publishers_total"] == 0


def test_clients_that_publish_to_each_other_do_not_wait_for_each_other(start_broker, raw):
    server = start_broker(queue_messages=20, max_in_flight=5, publisher_wait="10s")
    pair = {name: raw(V5, server=server) for name in "ab"}
    for name, client in pair.items():
        connect_raw(client, unique(name), **LOST_AT_THE_END)
        client.subscribe((name, 1))
    for name, client in pair.items():
        other = "b" if name == "a" else "a"
        send_all(client, 200, topic=other)
    for client in pair.values():
        last = 0
        while last < 200:
            packet = client.receive()
            if packet.kind == wire.PUBACK:
                (last,) = struct.unpack_from(">H", packet.body)
            else:
                client.send(wire.puback(wire.read_publish(V5, packet).packet_id))


@pytest.mark.parametrize("how", ["vanishes", "unsubscribes and takes what it has"])
def test_nobody_waits_for_a_reader_that_leaves(start_broker, raw, how):
    server = start_broker(queue_messages=20, publisher_wait="10s")
    reader = subscriber(raw, server)
    publisher = publish_all(raw, server, 100)
    wait_until_held(server)
    if how == "vanishes":
        reader.close()
    else:
        reader.send(wire.unsubscribe(V5, ["a"]))
        while (packet := reader.receive()).kind == wire.PUBLISH:
            reader.send(wire.puback(wire.read_publish(V5, packet).packet_id))
    acknowledged(publisher, 100)


def test_who_waits_is_not_taken_for_silent_and_can_be_taken_over(start_broker, raw):
    server = start_broker(queue_messages=20, publisher_wait="10s")
    reader = subscriber(raw, server)
    publisher = publish_all(raw, server, 100, "A", keep_alive=1)
    other = raw(V5, server=server)
    connect_raw(other, "other", **LOST_AT_THE_END)
    send_all(other, 100, "B")
    eventually(lambda: server.metrics()["broker_held_publishers_total"] == 2, within=10)
    again = raw(V5, server=server)
    connect_raw(again, "other", **LOST_AT_THE_END)
    while (packet := other.receive()).kind == wire.PUBACK:
        pass
    assert packet.kind == wire.DISCONNECT and packet.body[:1] == b"\x8e"
    # Longer than one and a half of its keep-alive.
    time.sleep(2.5)
    got = []
    while got.count("A99") == 0:
        got.append(reader.message().payload.decode())
    assert [text for text in got if text.startswith("A")] == [f"A{number}" for number in range(100)]
    acknowledged(publisher, 100)
    publisher.ping()
