"""The publish/subscribe broker: what is acknowledged outlives a clean stop and kill -9."""

import struct

import pytest

from harness import wire
from harness.broker import KEPT, WIRE, connect_raw, leave_raw, subscription_ids
from harness.rest import unique
from harness.wire import V5, V311

TWO = list(KEPT)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_restart_loses_nothing_that_was_acknowledged(start_broker, join, absent, raw, way):
    server = start_broker()
    publisher = join(server=server)
    names = {version: absent(WIRE[version], ("q/1", 1), ("q/2", 2), server=server) for version in TWO}
    options = join(client_id="options", expiry=3600, server=server)
    options.subscribe("flags/#", id=77, noLocal=True, retainAsPublished=True)
    options.subscribe("left")
    options.unsubscribe("left")
    shares = join("3.1.1", "shares", clean=False, server=server)
    shares.subscribe("$share/g/shared")
    for client in options, shares:
        client.leave()
    clean = join(client_id="clean", server=server)
    clean.subscribe("q/1")
    for topic, payload in [("kept", "old"), ("kept", "new"), ("cleared", "x"), ("cleared", "")]:
        publisher.publish(topic, payload, 1, retain=True, UserProperty=("a", payload))
    expected = [str(number) for number in range(100)]
    for number in expected:
        publisher.publish(f"q/{1 + int(number) % 2}", number, 2)
    getattr(server, way)()
    server.start()
    publisher = join(server=server)
    late = join(server=server)
    late.subscribe("#", qos=2)
    got = late.message()
    assert (got.topic, got.payload, got.retain, got.properties.UserProperty) == ("kept", b"new", True, [("a", "new")])
    assert late.gets_nothing_from(publisher)
    for version, name in names.items():
        back = join(version, name, server=server, **KEPT[version])
        assert back.session_present
        got = [back.message() for _ in expected]
        for qos in 1, 2:
            assert [one.payload.decode() for one in got if one.qos == qos] == expected[qos - 1 :: 2]
        assert back.gets_nothing_from(publisher)
    publisher.publish("q/2", "live", 2)
    assert back.message().payload == b"live"
    options = join(client_id="options", clean=False, expiry=3600, server=server)
    assert options.session_present
    options.publish("flags/mine", "mine")
    publisher.publish("left", "left")
    publisher.publish("flags/x", "x", retain=True)
    got = options.message()
    assert (got.payload, got.retain, subscription_ids(got)) == (b"x", True, [77])
    publisher.publish("shared", "one share")
    shares = join("3.1.1", "shares", clean=False, server=server)
    assert shares.session_present
    assert shares.texts(1) == ["one share"]
    assert not join(client_id="clean", clean=False, expiry=1, server=server).session_present


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_what_is_done_comes_not_again_after_a_restart(start_broker, join, absent, raw, way):
    server = start_broker()
    publisher = join(server=server)
    name = absent(V311, ("q", 2), server=server)
    for number in range(10):
        publisher.publish("q", str(number), 2)
    reads = raw(V311, server=server)
    connect_raw(reads, name)
    got = [wire.read_publish(V311, reads.expect(wire.PUBLISH)) for _ in range(10)]
    for message in got[:5]:
        identifier = struct.pack(">H", message.packet_id)
        reads.send(wire.frame(wire.PUBREC, identifier))
        assert reads.expect(wire.PUBREL).body == identifier
        reads.send(wire.frame(wire.PUBCOMP, identifier))
    leave_raw(reads)
    getattr(server, way)()
    server.start()
    back = join("3.1.1", name, clean=False, server=server)
    assert back.texts(5) == list("56789")
    assert back.gets_nothing_from(join(server=server), qos=2)


def test_a_message_of_qos_2_is_published_once_though_the_broker_is_killed(start_broker, join, absent, raw):
    server = start_broker()
    name = absent(V311, ("q", 2), server=server)
    publisher = raw(V311, server=server)
    connect_raw(publisher, "publisher")
    publisher.send(wire.publish(V311, "q", "once", 2, 4))
    publisher.expect(wire.PUBREC)
    server.kill()
    server.start()
    publisher = raw(V311, server=server)
    assert connect_raw(publisher, "publisher") == 1
    publisher.send(wire.publish(V311, "q", "once", 2, 4, dup=True))
    publisher.expect(wire.PUBREC)
    publisher.send(wire.frame(wire.PUBREL, b"\0\4", 2))
    publisher.expect(wire.PUBCOMP)
    server.kill()
    server.start()
    publisher = raw(V311, server=server)
    assert connect_raw(publisher, "publisher") == 1
    publisher.send(wire.publish(V311, "q", "another with the same identifier", 2, 4))
    publisher.expect(wire.PUBREC)
    publisher.send(wire.frame(wire.PUBREL, b"\0\4", 2))
    publisher.expect(wire.PUBCOMP)
    back = join("3.1.1", name, clean=False, server=server)
    assert back.texts(2) == ["once", "another with the same identifier"]
    assert back.gets_nothing_from(join(server=server), qos=2)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_will_is_published_though_the_broker_ends_first(start_broker, join, absent, way):
    server = start_broker()
    watcher = absent(V5, ("wills", 1), server=server)
    join(client_id="mourned", expiry=3600, will=dict(topic="wills", payload="last words"), server=server)
    # What is acknowledged behind it is stored behind it.
    join(server=server).publish("wills", "alive")
    getattr(server, way)()
    server.start()
    back = join(client_id=watcher, clean=False, expiry=3600, server=server)
    assert back.texts(2) == ["alive", "last words"]


@pytest.mark.parametrize("version", [V311, V5])
def test_clients_are_told_that_the_broker_stops(start_broker, raw, version):
    server = start_broker()
    connection = raw(version, server=server)
    connection.connect(unique("client"))
    server.stop()
    connection.ended(0x8B)


def test_everything_acknowledged_under_load_is_there_after_kills(start_broker, join, absent):
    """Long queues, too: they are read from the store in pieces."""
    server = start_broker()
    name = absent(V5, ("load", 1), server=server)
    acknowledged: list[int] = []
    for turn in range(3):
        publisher = join("3.1.1", server=server)
        numbers = {publisher.send("load", str(turn * 10_000 + n)).mid: turn * 10_000 + n for n in range(2_500)}
        acknowledged += [numbers[publisher.acknowledgement()] for _ in range(1_000)]
        server.kill()
        publisher.disconnected()
        acknowledged += [numbers[mid] for mid in publisher.acknowledged()]
        server.start()
    back = join(client_id=name, clean=False, expiry=3600, server=server, ReceiveMaximum=50)
    publisher = join(server=server)
    publisher.publish("load", "end")
    got = [int(text) for text in back.until("end")]
    assert got == sorted(got), "in the order in which they were sent"
    assert len(got) == len(set(got))
    assert set(acknowledged) <= set(got)
    assert back.gets_nothing_from(publisher)


@pytest.mark.parametrize("qos", [1, 2])
def test_who_returns_after_kills_misses_nothing_and_gets_nothing_of_qos_2_twice(start_broker, join, qos):
    """More messages than the broker reads from its store at a time have been completed when it is killed."""
    server = start_broker()
    subscriber = join("3.1.1", "subscriber", clean=False, server=server)
    subscriber.subscribe("load", qos=qos)
    got = []
    for turn in range(3):
        publisher = join(server=server)
        for number in range(1_500):
            publisher.send("load", str(turn * 1_500 + number), qos)
            if number >= 200:
                # No more than the broker permits wait for their acknowledgement.
                publisher.acknowledgement()
        for _ in range(200):
            publisher.acknowledgement()
        while len(set(got)) < turn * 1_500 + 1_200:
            got += subscriber.texts(1)
        server.kill()
        subscriber.disconnected()
        subscriber.client.loop_stop()
        server.start()
        subscriber.address = server.broker_address
        assert subscriber.connect() == 0
        assert subscriber.session_present
    while len(set(got)) < 4_500:
        got += subscriber.texts(1)
    marker = unique("end")
    join(server=server).publish("load", marker, qos)
    numbers = [int(text) for text in got + subscriber.until(marker)]
    assert set(numbers) == set(range(4_500))
    if qos == 2:
        assert numbers == list(range(4_500)), "each once, in the order in which they were sent"


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_full_queue_is_no_longer_after_a_restart(start_broker, join, absent, way):
    server = start_broker(queue_messages=10)
    publisher = join(server=server)
    name = absent(V311, ("q", 1), server=server)
    for number in range(25):
        publisher.publish("q", str(number))
    getattr(server, way)()
    server.start()
    back = join("3.1.1", name, clean=False, server=server)
    assert back.texts(10) == [str(number) for number in range(15, 25)]
    assert back.gets_nothing_from(join(server=server))


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_the_longest_topics_and_filters_outlive_a_restart(start_broker, join, absent, way):
    server = start_broker()
    topic = "\uffee" * 21_845
    name = absent(V5, (topic, 1), server=server)
    join(server=server).publish(topic, "kept", retain=True)
    # By then it is in the store, too.
    for _ in range(2):
        getattr(server, way)()
        server.start()
    back, late = join(client_id=name, clean=False, expiry=3600, server=server), join(server=server)
    late.subscribe(topic)
    for client in back, late:
        got = client.message()
        assert (got.topic, got.payload) == (topic, b"kept")
