"""The publish/subscribe broker: sessions that outlive their connection, wills, and what expires."""

import struct

import pytest

from harness import wire
from harness.broker import (
    ASSIGNED_ID,
    HOUR,
    KEPT,
    SESSION_EXPIRY,
    WIRE,
    connect_raw,
    leave_raw,
    number_property,
    read_properties,
)
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5, V31, V311

TWO = list(KEPT)

# -- sessions --


@pytest.mark.parametrize("version", TWO)
def test_messages_wait_for_a_client_that_is_away_and_come_in_their_order(join, absent, version):
    topic = unique("waiting")
    publisher = join()
    name = absent(WIRE[version], (f"{topic}/1", 1), (f"{topic}/2", 2), (f"{topic}/0", 0))
    expected = [str(number) for number in range(40)]
    for number in expected:
        publisher.publish(f"{topic}/{1 + int(number) % 2}", number, 2)
    publisher.publish(f"{topic}/0", "not kept", 2)
    publisher.publish(f"{topic}/1", "not kept", 0)
    # The broker has dealt with that when it acknowledges what comes behind.
    publisher.publish(f"{topic}/behind", "", 1)
    back = join(version, name, **KEPT[version])
    assert back.session_present
    got = [back.message() for _ in expected]
    for qos in 1, 2:
        # Each topic for itself has its order.
        assert [one.payload.decode() for one in got if one.topic == f"{topic}/{qos}"] == expected[qos - 1 :: 2]
        assert {one.qos for one in got if one.topic == f"{topic}/{qos}"} == {qos}
    assert back.gets_nothing_from(publisher)
    # The subscriptions are still there.
    publisher.publish(f"{topic}/2", "now", 2)
    assert back.message().payload == b"now"


@pytest.mark.parametrize("version", TWO)
def test_a_clean_start_drops_subscriptions_and_messages(join, absent, version):
    topic, publisher = unique("dropped"), join()
    name = absent(WIRE[version], (topic, 1))
    publisher.publish(topic, "lost")
    clean = join(version, name)
    assert not clean.session_present
    assert clean.gets_nothing_from(publisher)
    publisher.publish(topic, "lost, too")
    assert clean.gets_nothing_from(publisher)
    clean.leave()
    assert not join(version, name, **KEPT[version]).session_present


@pytest.mark.parametrize("version", TWO)
def test_a_session_that_is_not_kept_ends_with_its_connection(join, raw, version):
    topic, name, publisher = unique("gone"), unique("client"), join()
    connection = raw(WIRE[version])
    assert connect_raw(connection, name, clean=True, props=b"") == 0
    connection.subscribe((topic, 1))
    leave_raw(connection)
    publisher.publish(topic, "lost")
    back = join(version, name, **KEPT[version])
    assert not back.session_present
    assert back.gets_nothing_from(publisher)


@pytest.mark.parametrize("version", [V311, V5])
def test_what_was_not_acknowledged_comes_again_with_its_identifier(join, raw, version):
    topic, name, publisher = unique("again"), unique("client"), join()
    first = raw(version)
    connect_raw(first, name)
    first.subscribe((topic, 2))
    for qos in 1, 2, 2:
        publisher.publish(topic, f"{qos}", qos)
    sent = [wire.read_publish(version, first.expect(wire.PUBLISH)) for _ in range(3)]
    # The third one is received, but not completed.
    received = sent[2].packet_id
    first.send(wire.frame(wire.PUBREC, struct.pack(">H", received)))
    first.expect(wire.PUBREL)
    first.close()
    second = raw(version)
    assert connect_raw(second, name) == 1
    for expected in sent[:2]:
        packet = second.expect(wire.PUBLISH)
        assert packet.flags & 8, "it says that it comes again"
        assert wire.read_publish(version, packet) == expected
    packet = second.expect(wire.PUBREL)
    assert packet.flags == 2 and packet.body[:2] == struct.pack(">H", received)
    second.send(wire.puback(sent[0].packet_id))
    second.send(wire.frame(wire.PUBREC, struct.pack(">H", sent[1].packet_id)))
    second.expect(wire.PUBREL)
    for one in sent[1:]:
        second.send(wire.frame(wire.PUBCOMP, struct.pack(">H", one.packet_id)))
    leave_raw(second)
    third = raw(version)
    assert connect_raw(third, name) == 1
    third.ping()


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("kept", [True, False])
def test_a_message_of_qos_2_that_is_sent_again_is_published_once(join, raw, version, kept):
    topic, name, subscriber = unique("once"), unique("client"), join()
    subscriber.subscribe(topic, qos=2)
    publisher = raw(version)
    connect_raw(publisher, name, clean=not kept, props=HOUR if kept else b"")
    for again in False, True:
        publisher.send(wire.publish(version, topic, "once", 2, 9, dup=again))
        assert publisher.expect(wire.PUBREC).body[:2] == b"\0\x09"
    if kept:
        publisher.close()
        publisher = raw(version)
        assert connect_raw(publisher, name) == 1
        publisher.send(wire.publish(version, topic, "once", 2, 9, dup=True))
        assert publisher.expect(wire.PUBREC).body[:2] == b"\0\x09"
    publisher.send(wire.frame(wire.PUBREL, b"\0\x09", 2))
    publisher.expect(wire.PUBCOMP)
    assert subscriber.message().payload == b"once"
    assert subscriber.gets_nothing_from(join(), qos=2)
    # Released, the identifier is free for another message.
    publisher.send(wire.publish(version, topic, "another", 2, 9))
    publisher.expect(wire.PUBREC)
    publisher.send(wire.frame(wire.PUBREL, b"\0\x09", 2))
    publisher.expect(wire.PUBCOMP)
    assert subscriber.message().payload == b"another"


def test_the_end_of_a_session_comes_with_its_expiry(join, raw):
    topic, wills, name = unique("expiring"), unique("will"), unique("client")
    watcher, publisher = join(), join()
    watcher.subscribe(wills)
    # A will that is due at the end of the session at the latest tells when it has ended.
    short = join(client_id=name, expiry=1, will=dict(topic=wills, payload="over", WillDelayInterval=3600))
    short.subscribe(topic)
    short.vanish()
    publisher.publish(topic, "lost")
    assert watcher.message().payload == b"over"
    back = join(client_id=name, clean=False, expiry=3600)
    assert not back.session_present
    assert back.gets_nothing_from(publisher)


def test_disconnect_changes_the_expiry(join, raw):
    topic, publisher = unique("changed"), join()
    name, connection = unique("client"), raw(V5)
    connect_raw(connection, name)
    connection.subscribe((topic, 1))
    connection.send(wire.frame(wire.DISCONNECT, b"\0" + wire.properties(V5, number_property(SESSION_EXPIRY, 0))))
    connection.ended()
    publisher.publish(topic, "lost")
    back = join(client_id=name, clean=False, expiry=1)
    assert not back.session_present
    # From a second to an hour.
    back.subscribe(topic)
    back.leave(expiry=3600)
    will = unique("will")
    publisher.subscribe(will)
    timer = join(expiry=2, will=dict(topic=will, payload="two seconds later", WillDelayInterval=2))
    timer.vanish()
    assert publisher.message().payload == b"two seconds later"
    assert join(client_id=name, clean=False, expiry=3600).session_present


def test_disconnect_cannot_make_a_session_last_that_was_not_to(raw):
    connection = raw(V5)
    connect_raw(connection, unique("client"), clean=True, props=b"")
    connection.send(wire.frame(wire.DISCONNECT, b"\0" + wire.properties(V5, number_property(SESSION_EXPIRY, 10))))
    connection.ended(0x82)


def test_the_longest_expiry_is_granted_and_said(start_broker, raw):
    server = start_broker(max_session_expiry="100s")
    connection = raw(V5, server=server)
    connection.send(wire.connect(V5, unique("client"), props=number_property(SESSION_EXPIRY, 0xFFFF_FFFF)))
    assert number_property(SESSION_EXPIRY, 100) in connection.expect(wire.CONNACK).body


@pytest.mark.parametrize("version", [V31, V311, V5])
@pytest.mark.parametrize("clean", [True, False])
def test_a_second_connection_takes_the_session_over(join, raw, version, clean):
    topic, name, publisher = unique("taken"), unique("client"), join()
    first, second = raw(version), raw(version)
    connect_raw(first, name, clean=clean)
    first.subscribe((topic, 1))
    present = connect_raw(second, name, clean=clean)
    assert present == (version != V31 and not clean)
    first.ended(0x8E)
    publisher.publish(topic, "x")
    if not clean:
        assert second.message().payload == b"x"
    second.ping()


# -- client identifiers --


def test_a_client_without_identifier_is_given_one(raw):
    names = []
    for _ in range(2):
        connection = raw(V5)
        connection.send(wire.connect(V5, "", props=HOUR))
        body = connection.expect(wire.CONNACK).body
        names.append(read_properties(body, 2)[0][ASSIGNED_ID].decode())
        leave_raw(connection)
    assert names[0] and names[0] != names[1]
    # It is one as good as others.
    assert connect_raw(raw(V5), names[0]) == 1


def test_a_client_with_an_identifier_is_given_none(raw):
    connection = raw(V5)
    connection.send(wire.connect(V5, unique("client")))
    assert ASSIGNED_ID not in read_properties(connection.expect(wire.CONNACK).body, 2)[0]


def test_before_version_5_only_a_clean_session_needs_no_identifier(raw):
    assert raw(V311).connect("", clean=True) == 0
    for version, clean in (V311, False), (V31, True), (V31, False):
        connection = raw(version)
        assert connection.connect("", clean=clean) == 2
        connection.ended()


# -- wills --


@pytest.mark.parametrize("version", TWO)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_is_published_when_a_client_vanishes(join, version, qos):
    topic, watcher = unique("will"), join()
    watcher.subscribe(topic, qos=2)
    client = join(version, will=dict(topic=topic, payload="last words", qos=qos))
    assert watcher.gets_nothing_from(client)
    client.vanish()
    got = watcher.message()
    assert (got.payload, got.qos, got.retain) == (b"last words", qos, False)


@pytest.mark.parametrize("version", [V31, V311, V5])
def test_a_will_is_not_published_after_disconnect(join, raw, version):
    topic, watcher = unique("will"), join()
    watcher.subscribe(topic)
    connection = raw(version)
    connection.connect(unique("client"), will=(topic, b"last words"))
    leave_raw(connection)
    assert watcher.gets_nothing_from(join())


def test_a_client_may_disconnect_with_its_will(join):
    topic, watcher = unique("will"), join()
    watcher.subscribe(topic)
    client = join(will=dict(topic=topic, payload="with will", UserProperty=("a", "1"), ContentType="text/plain"))
    client.leave(code=4)
    got = watcher.message()
    assert got.payload == b"with will"
    assert (got.properties.UserProperty, got.properties.ContentType) == ([("a", "1")], "text/plain")
    assert not hasattr(got.properties, "WillDelayInterval")


def test_a_will_is_published_after_an_error_of_the_client_and_after_silence(join, raw):
    topic, watcher = unique("will"), join()
    watcher.subscribe(topic, qos=0)
    wrong, silent = raw(V311), raw(V311)
    wrong.connect(unique("client"), will=(topic, b"wrong"))
    wrong.send(b"\xf0\0")
    assert watcher.message().payload == b"wrong"
    silent.connect(unique("client"), will=(topic, b"silent"), keep_alive=1)
    assert watcher.message().payload == b"silent"


def test_a_retained_will_is_kept(join):
    topic, watcher = unique("will"), join()
    watcher.subscribe(topic)
    join(will=dict(topic=topic, payload="offline", retain=True)).vanish()
    assert watcher.message().payload == b"offline"
    late = join()
    late.subscribe(topic)
    got = late.message()
    assert (got.payload, got.retain) == (b"offline", True)
    late.publish(topic, "", retain=True)


def test_a_will_waits_for_its_delay_and_not_if_the_client_returns(join):
    topic, name, watcher = unique("will"), unique("client"), join()
    watcher.subscribe(topic)
    will = dict(topic=topic, WillDelayInterval=2)
    returns = join(client_id=name, expiry=3600, will=will | {"payload": "returns"})
    returns.vanish()
    returned = join(client_id=name, clean=False, expiry=3600, will=will | {"payload": "has returned"})
    assert returned.session_present
    # Two that vanish now: what is due first comes first, and the will of who has returned never does.
    later = join(expiry=3600, will=dict(topic=topic, WillDelayInterval=3, payload="later"))
    sooner = join(expiry=3600, will=dict(topic=topic, WillDelayInterval=1, payload="sooner"))
    later.vanish()
    sooner.vanish()
    assert watcher.gets_nothing_from(returned)
    assert watcher.texts(2) == ["sooner", "later"]
    returned.vanish()
    assert watcher.message().payload == b"has returned"


def test_a_clean_start_ends_the_session_with_its_will(join):
    topic, name, watcher = unique("will"), unique("client"), join()
    watcher.subscribe(topic)
    will = dict(topic=topic, WillDelayInterval=3600, payload="ended")
    join(client_id=name, expiry=3600, will=will).vanish()
    join(client_id=name)
    assert watcher.message().payload == b"ended"


@pytest.mark.parametrize(("delay", "is_sent"), [(0, True), (3600, False)])
def test_who_takes_a_session_over_hears_of_the_will_of_the_first_connection(join, delay, is_sent):
    """MQTT 5 §3.1.4: it is not sent if it has a delay and the session goes on."""
    topic, name, watcher = unique("will"), unique("client"), join()
    watcher.subscribe(topic)
    join(client_id=name, expiry=3600, will=dict(topic=topic, payload="taken over", WillDelayInterval=delay))
    second = join(client_id=name, clean=False, expiry=3600)
    if is_sent:
        assert watcher.message().payload == b"taken over"
    assert watcher.gets_nothing_from(second)


def test_the_time_of_a_will_begins_with_its_publication(join):
    """MQTT 5 §3.1.3.2.4: its expiry is sent as that of the message when the server publishes it."""
    topic, watcher = unique("will"), join()
    watcher.subscribe(topic)
    will = dict(topic=topic, payload="fresh", MessageExpiryInterval=2, WillDelayInterval=3)
    join(expiry=3600, will=will).vanish()
    got = watcher.message()
    assert (got.payload, got.properties.MessageExpiryInterval) == (b"fresh", 2)


@pytest.mark.parametrize(("version", "code"), [(V311, 3), (V5, 0x90)])
@pytest.mark.parametrize("topic", ["$SYS/broker/version", "$x"])
def test_a_will_about_a_topic_of_the_broker_is_refused(raw, version, code, topic):
    connection = raw(version)
    assert connection.connect(unique("client"), will=(topic, b"x")) == code
    connection.ended()


# -- messages that expire --


def test_a_message_says_how_long_it_lives_on(join, absent):
    topic, publisher = unique("expiring"), join()
    name = absent(V5, (topic, 1))
    now = join()
    now.subscribe(topic)
    publisher.publish(topic, "long", retain=True, MessageExpiryInterval=100)
    assert now.message().properties.MessageExpiryInterval in (99, 100)
    # Two seconds pass, by the broker's own clock.
    will = unique("will")
    now.subscribe(will)
    join(expiry=3600, will=dict(topic=will, payload="2 s", WillDelayInterval=2)).vanish()
    assert now.message().payload == b"2 s"
    back = join(client_id=name, clean=False, expiry=3600)
    late = join()
    late.subscribe(topic)
    for client in back, late:
        assert 90 <= client.message().properties.MessageExpiryInterval <= 98
    publisher.publish(topic, "", retain=True)


def test_an_expired_message_reaches_nobody(join, absent, broker):
    topic, publisher = unique("expired"), join()
    names = [absent(V5, (topic, 1)), absent(V311, (topic, 1))]
    publisher.publish(topic, "short", retain=True, MessageExpiryInterval=1)
    publisher.publish(topic, "lasting", MessageExpiryInterval=3600)
    will = unique("will")
    publisher.subscribe(will)
    join(expiry=3600, will=dict(topic=will, payload="2 s", WillDelayInterval=2)).vanish()
    assert publisher.message().payload == b"2 s"
    for version, name in zip(("5.0", "3.1.1"), names, strict=True):
        back = join(version, name, **KEPT[version])
        assert back.texts(1) == ["lasting"]
        assert back.gets_nothing_from(publisher)
    late = join()
    late.subscribe(topic)
    assert late.gets_nothing_from(publisher)
    assert eventually(lambda: broker.metrics()["broker_expired_messages_total"] >= 2)
