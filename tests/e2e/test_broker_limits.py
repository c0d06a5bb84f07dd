"""The publish/subscribe broker: limits, hostile clients, who may connect, and settings."""

import time

import pytest

from harness import wire
from harness.broker import (
    ALIAS,
    ALIAS_MAXIMUM,
    HOUR,
    PACKET_MAXIMUM,
    RECEIVE_MAXIMUM,
    SERVER_KEEP_ALIVE,
    BrokerClient,
    connect_raw,
    number_property,
    read_message,
    read_properties,
)
from harness.certificates import Authority
from harness.rest import unique
from harness.server import Server, StartFailed, eventually
from harness.wire import V5, V31, V311

# -- limits that a client sets, or the broker --


def test_no_more_messages_are_in_flight_than_the_client_permits(join, raw):
    topic, publisher, connection = unique("flight"), join(), raw(V5)
    connect_raw(connection, unique("client"), clean=True, props=number_property(RECEIVE_MAXIMUM, 2))
    connection.subscribe((topic, 1))
    for number in range(5):
        publisher.publish(topic, str(number))
    first = [read_message(connection.expect(wire.PUBLISH)) for _ in range(2)]
    connection.ping()
    assert not connection.pending, "a third message before an acknowledgement"
    for number in range(2, 5):
        connection.send(wire.puback(first.pop(0).packet_id))
        first.append(read_message(connection.expect(wire.PUBLISH)))
        assert first[-1].payload == str(number).encode()
        connection.ping()


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_comes_again_is_no_more_than_the_client_permits_now(start_broker, join, raw, is_killed):
    server = start_broker()
    publisher, first = join(server=server), raw(V5, server=server)
    connect_raw(first, "reader", props=HOUR + number_property(RECEIVE_MAXIMUM, 4))
    first.subscribe(("a", 1))
    for number in range(8):
        publisher.publish("a", str(number))
    sent = [read_message(first.expect(wire.PUBLISH)) for _ in range(4)]
    first.close()
    if is_killed:
        server.kill()
        server.start()
    second = raw(V5, server=server)
    assert connect_raw(second, "reader", props=HOUR + number_property(RECEIVE_MAXIMUM, 2)) == 1
    flight = [read_message(second.expect(wire.PUBLISH)) for _ in range(2)]
    assert [one.packet_id for one in flight] == [one.packet_id for one in sent[:2]]
    second.ping()
    assert not second.pending, "a third message before an acknowledgement"
    for number in range(2, 8):
        second.send(wire.puback(flight.pop(0).packet_id))
        flight.append(read_message(second.expect(wire.PUBLISH)))
        assert flight[-1].payload == str(number).encode()


def test_a_client_that_sends_more_than_the_broker_permits_is_cut_off(start_broker, raw):
    connection = raw(V5, server=start_broker(receive_maximum=3))
    connection.send(wire.connect(V5, unique("client")))
    assert read_properties(connection.expect(wire.CONNACK).body, 2)[0][RECEIVE_MAXIMUM] == 3
    for number in 1, 2, 3:
        connection.send(wire.publish(V5, "a", "x", 2, number))
        connection.expect(wire.PUBREC)
    connection.send(wire.frame(wire.PUBREL, b"\0\1", 2))
    connection.expect(wire.PUBCOMP)
    connection.send(wire.publish(V5, "a", "x", 2, 4))
    connection.expect(wire.PUBREC)
    connection.send(wire.publish(V5, "a", "x", 2, 5))
    connection.ended(0x93)


@pytest.mark.parametrize("qos", [0, 1])
def test_a_client_gets_no_packet_that_is_larger_than_it_takes(join, raw, qos):
    topic, publisher, connection = unique("large"), join(), raw(V5)
    connect_raw(connection, unique("client"), clean=True, props=number_property(PACKET_MAXIMUM, 200))
    connection.subscribe((topic, qos))
    publisher.publish(topic, "l" * 300, 1)
    publisher.publish(topic, "small", 1)
    assert read_message(connection.expect(wire.PUBLISH)).payload == b"small"
    connection.ping()


def test_a_message_in_flight_does_not_come_again_if_it_has_become_too_large(join, raw):
    topic, name, publisher, first = unique("large"), unique("client"), join(), raw(V5)
    connect_raw(first, name)
    first.subscribe((topic, 1))
    publisher.publish(topic, "l" * 300, 1)
    publisher.publish(topic, "small", 1)
    for _ in range(2):
        first.expect(wire.PUBLISH)
    first.close()
    second = raw(V5)
    assert connect_raw(second, name, props=HOUR + number_property(PACKET_MAXIMUM, 200)) == 1
    assert read_message(second.expect(wire.PUBLISH)).payload == b"small"


@pytest.mark.parametrize("version", [V311, V5])
def test_a_packet_that_is_larger_than_the_broker_takes_ends_its_connection(start_broker, raw, version):
    connection = raw(version, server=start_broker(max_packet="2KiB"))
    connection.send(wire.connect(version, unique("client")))
    body = connection.expect(wire.CONNACK).body
    if version == V5:
        assert 2048 <= read_properties(body, 2)[0][PACKET_MAXIMUM] <= 2053
    assert connection.publish("a", b"x" * 2000) == 0
    connection.send(wire.publish(version, "a", b"x" * 2100))
    connection.ended(0x95)


def test_the_keep_alive_of_the_broker_is_said_and_held_to(start_broker, raw):
    server = start_broker(max_keep_alive="1s")
    asks_more, asks_none = raw(V5, server=server), raw(V5, server=server)
    asks_none.send(wire.connect(V5, unique("client"), keep_alive=0))
    asks_none.expect(wire.CONNACK)
    asks_more.send(wire.connect(V5, unique("client"), keep_alive=3600))
    assert read_properties(asks_more.expect(wire.CONNACK).body, 2)[0][SERVER_KEEP_ALIVE] == 1
    asks_more.ended(0x8D, within=5)
    asks_none.ping()


@pytest.mark.parametrize("version", [V31, V311, V5])
def test_a_client_that_is_silent_is_cut_off(raw, version):
    connection = raw(version)
    connection.connect(unique("client"), keep_alive=1)
    connection.ended(0x8D, within=5)


def test_what_a_client_gets_is_no_sign_that_it_is_there(join, raw):
    """MQTT 5 §3.1.2.10: what counts is what the server receives."""
    topic, publisher, connection = unique("silent"), join(), raw(V5)
    connection.connect(unique("client"), keep_alive=1)
    connection.subscribe((topic, 0))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        publisher.publish(topic, "x", 0)
        if (packet := connection.receive()).kind != wire.PUBLISH:
            assert packet.kind == wire.DISCONNECT and packet.body[0] == 0x8D
            return
    raise AssertionError("a client that has sent nothing for 5 s is still connected with a keep-alive of 1 s")


def test_a_full_queue_drops_its_oldest_messages(start_broker, join, absent):
    server = start_broker(queue_messages=10)
    publisher = join(server=server)
    name = absent(V311, ("q", 1), server=server)
    for number in range(25):
        publisher.publish("q", str(number))
    assert eventually(lambda: server.metrics()["broker_dropped_messages_total"] == 15)
    back = join("3.1.1", name, clean=False, server=server)
    assert back.texts(10) == [str(number) for number in range(15, 25)]
    assert back.gets_nothing_from(publisher)


def test_topic_aliases_can_be_switched_off(start_broker, raw):
    connection = raw(V5, server=start_broker(max_topic_aliases=0))
    connection.send(wire.connect(V5, unique("client")))
    assert read_properties(connection.expect(wire.CONNACK).body, 2)[0].get(ALIAS_MAXIMUM, 0) == 0
    connection.send(wire.publish(V5, "a", "x", 1, props=number_property(ALIAS, 1)))
    connection.ended(0x94)


# -- topics --


@pytest.mark.parametrize("version", [V311, V5])
def test_a_topic_may_have_200_levels_and_be_as_long_as_the_protocol_permits(join, raw, version):
    deep = "/".join(["level"] * 200)
    long = unique("l").ljust(65_535, "x")
    connection = raw(version)
    connection.connect(unique("client"))
    for topic, filter_ in [(deep, deep), (deep, "+/" * 199 + "+"), (deep, "level/" * 150 + "#"), (long, long)]:
        assert connection.subscribe((filter_, 0)) == [0]
        assert connection.publish(topic, "x", 0) is None
        got = connection.message()
        assert (got.topic, got.payload) == (topic, b"x")
        assert connection.unsubscribe(filter_) in ([0], [])


def test_a_topic_with_too_many_levels_is_refused(start_broker, raw):
    server = start_broker(max_topic_levels=5)
    five, six = "a/b/c/d/e", "a/b/c/d/e/f"
    newer, older = raw(V5, server=server), raw(V311, server=server)
    for connection, bad in (newer, 0x8F), (older, 0x80):
        connection.connect(unique("client"))
        assert connection.subscribe((f"+/{five[2:]}", 1), (six, 1)) == [1, bad]
        assert connection.unsubscribe(f"+/{five[2:]}") in ([0], [])
        assert connection.publish(five, "x") in (0, 0x10)
    assert newer.publish(six, "x", 1) == 0x90
    newer.send(wire.publish(V5, six, "x", 2, 2))
    assert newer.expect(wire.PUBREC).body[:3] == b"\0\2\x90"
    newer.send(wire.publish(V5, six, "x", 0))
    newer.ping()
    older.send(wire.publish(V311, six, "x"))
    older.ended()


@pytest.mark.parametrize("topic", ["$SYS/broker/version", "$x", "$share/g/a"])
def test_nobody_publishes_to_the_topics_of_the_broker(join, raw, topic):
    watcher = join()
    watcher.subscribe("$x", "$share/g/a", qos=0)
    newer, older = raw(V5), raw(V311)
    newer.connect(unique("client"))
    assert newer.publish(topic, "x", 1, retain=True) == 0x90
    newer.send(wire.publish(V5, topic, "x", 2, 2))
    assert newer.expect(wire.PUBREC).body[:3] == b"\0\2\x90"
    newer.ping()
    # Version 3 knows no refusal, and the connection need not end for a message that goes nowhere.
    older.connect(unique("client"))
    assert older.publish(topic, "x", 1) == 0
    older.ping()
    assert watcher.gets_nothing_from(join(), qos=0)


def test_the_identifier_of_a_refused_message_is_free(join, raw):
    topic, subscriber, publisher = unique("free"), join(), raw(V5)
    subscriber.subscribe(topic, qos=2)
    publisher.connect(unique("client"))
    publisher.send(wire.publish(V5, "$x", "refused", 2, 7))
    assert publisher.expect(wire.PUBREC).body[:3] == b"\0\7\x90"
    publisher.send(wire.publish(V5, topic, "taken", 2, 7))
    assert publisher.expect(wire.PUBREC).body[2:3] in (b"", b"\0")
    publisher.send(wire.frame(wire.PUBREL, b"\0\7", 2))
    publisher.expect(wire.PUBCOMP)
    assert subscriber.message().payload == b"taken"
    # One that is not in use is known as such.
    publisher.send(wire.frame(wire.PUBREL, b"\0\7", 2))
    assert publisher.expect(wire.PUBCOMP).body[:3] == b"\0\7\x92"


# -- malformed packets and wrong turns --

PACKET_1 = b"\0\1"
MALFORMED, PROTOCOL, EITHER = {0x81}, {0x82}, {0x81, 0x82}
# What is sent after CONNECT, by version; the reasons that version 5 may be given.
WRONG = {
    "a packet of no type": (lambda _: b"\x00\x00", EITHER),
    "a length of five bytes": (lambda _: b"\x30\xff\xff\xff\xff\x01", MALFORMED),
    "a second CONNECT": (lambda version: wire.connect(version, "second"), PROTOCOL),
    "QoS 3": (
        lambda version: wire.frame(wire.PUBLISH, wire.text("a") + PACKET_1 + wire.properties(version), 6),
        MALFORMED,
    ),
    "packet identifier 0": (lambda version: wire.publish(version, "a", "x", 1, 0), EITHER),
    "PUBLISH shorter than its topic": (lambda _: wire.frame(wire.PUBLISH, b"\0\x10ab"), MALFORMED),
    "a topic with a wildcard": (lambda version: wire.publish(version, "a/+", "x", 1), EITHER | {0x90}),
    "a topic that is no UTF-8": (lambda version: wire.publish(version, b"a\xff", "x", 1), MALFORMED),
    "a topic with zero": (lambda version: wire.publish(version, b"a\0", "x", 1), EITHER | {0x90}),
    "SUBSCRIBE without filters": (lambda version: wire.subscribe(version, []), EITHER),
    "SUBSCRIBE with wrong flags": (lambda version: b"\x80" + wire.subscribe(version, [("a", 0)])[1:], MALFORMED),
    "a subscription of QoS 3": (lambda version: wire.subscribe(version, [("a", 3)]), EITHER),
    "reserved options": (lambda version: wire.subscribe(version, [("a", 0xC0)]), EITHER),
    "retain handling 3": (lambda version: wire.subscribe(version, [("a", 0x30)]), EITHER),
    "UNSUBSCRIBE without filters": (lambda version: wire.unsubscribe(version, []), EITHER),
    "PUBREL with wrong flags": (lambda _: wire.frame(wire.PUBREL, PACKET_1, 0), MALFORMED),
    "a packet of the server": (lambda _: wire.frame(wire.PINGRESP, b""), EITHER),
    "PINGREQ with a body": (lambda _: wire.frame(wire.PINGREQ, b"x"), MALFORMED),
    "AUTH without a method": (lambda _: wire.frame(15, b""), EITHER | {0x8C}),
}
WRONG_PROPERTIES = {
    "of another packet": (b"\x0b\1", EITHER),
    "of no kind": (b"\x7f\1", EITHER),
    "twice": (b"\x01\1\x01\1", PROTOCOL),
    "cut off": (b"\x02\0\0", EITHER),
    "a response topic with a wildcard": (b"\x08\0\1#", EITHER | {0x90}),
}


def is_ended_alone(join, connection, sent: bytes, reasons: set[int]) -> None:
    """Insists that a wrong packet ends its connection, that nothing behind it counts, and that nobody else notices."""
    other, topic = join(), unique("other")
    other.subscribe(topic)
    connection.connect(unique("client"))
    connection.send(sent + wire.publish(connection.version, topic, "behind it", 0))
    packet = connection.receive()
    if connection.version == V5:
        assert packet is not None and packet.kind == wire.DISCONNECT, f"no DISCONNECT: {packet}"
        assert packet.body[0] in reasons, f"{packet.body[0]:#04x}"
        packet = connection.receive()
    assert packet is None
    assert other.gets_nothing_from(join())


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_packet_ends_its_own_connection_alone(join, raw, version, what):
    packet, reasons = WRONG[what]
    is_ended_alone(join, raw(version), packet(version), reasons)


@pytest.mark.parametrize("what", WRONG_PROPERTIES)
def test_a_wrong_property_ends_its_own_connection_alone(join, raw, what):
    props, reasons = WRONG_PROPERTIES[what]
    is_ended_alone(join, raw(V5), wire.publish(V5, "a", "x", 1, props=props), reasons)


@pytest.mark.parametrize("first", [wire.PING, wire.publish(V311, "a", "x", 0), b"GET / HTTP/1.1\r\n\r\n", b"\x10\x00"])
def test_who_does_not_begin_with_connect_is_cut_off(raw, first):
    connection = raw(V311)
    connection.send(first)
    packet = connection.receive()
    if packet is not None and packet.kind == wire.CONNACK:
        assert packet.body[1], "a refusal"
        packet = connection.receive()
    assert packet is None


WRONG_CONNECT = {
    "receive maximum 0": wire.connect(V5, "client", props=number_property(RECEIVE_MAXIMUM, 0)),
    "packet size 0": wire.connect(V5, "client", props=number_property(PACKET_MAXIMUM, 0)),
    "a property twice": wire.connect(V5, "client", props=number_property(RECEIVE_MAXIMUM, 2) * 2),
    "reserved flag": wire.connect(V5, "client").replace(b"MQTT\x05\x02", b"MQTT\x05\x03"),
    "a will of QoS 3": wire.connect(V5, "client", will=("a", b"x")).replace(b"MQTT\x05\x06", b"MQTT\x05\x1e"),
    "a password that is not there": wire.connect(V5, "client").replace(b"MQTT\x05\x02", b"MQTT\x05\x42"),
    "an empty will topic": wire.connect(V5, "client", will=("", b"x")),
    "a will topic with a wildcard": wire.connect(V5, "client", will=("a/#", b"x")),
    "more than its fields": wire.frame(wire.CONNECT, wire.connect(V5, "client")[2:] + b"x"),
}


@pytest.mark.parametrize("what", WRONG_CONNECT)
def test_a_connect_that_makes_no_sense_is_refused(raw, what):
    connection = raw(V5)
    connection.send(WRONG_CONNECT[what])
    packet = connection.receive()
    if packet is not None:
        assert packet.kind == wire.CONNACK and packet.body[1] >= 0x80, f"not refused: {packet}"
        packet = connection.receive()
    assert packet is None


@pytest.mark.parametrize("level", [0, 2, 6, 77])
def test_an_unknown_protocol_level_is_refused(raw, level):
    connection = raw(V311)
    assert connection.connect(unique("client"), level=level) in (1, 0x84)
    connection.ended()


def test_who_is_silent_before_connect_is_cut_off(start_broker, raw):
    server = start_broker(connect_timeout="1s")
    for beginning in b"", wire.connect(V5, "client")[:9]:
        connection = raw(V5, server=server)
        connection.send(beginning)
        assert connection.socket.recv(1) == b""


def test_a_packet_may_come_byte_by_byte(raw, join):
    connection, topic = raw(V5), unique("slow")
    for packet in wire.connect(V5, unique("client")), wire.subscribe(V5, [(topic, 0)]), wire.publish(V5, topic, "x", 0):
        for byte in packet:
            connection.send(bytes([byte]))
    assert connection.connack() == 0
    connection.expect(wire.SUBACK)
    assert connection.message().payload == b"x"


# -- a client that does not read --


def test_a_slow_subscriber_delays_nobody_and_loses_only_its_messages_of_qos_0(start_broker, join, raw):
    server = start_broker(direct_messages=20)
    publisher, fast, slow = join(server=server), join(server=server), raw(V5, server=server)
    fast.subscribe("data", qos=0)
    slow.connect("slow", keep_alive=0)
    slow.subscribe(("data", 0), ("safe", 1))
    dropped = lambda: server.metrics().get("broker_dropped_messages_total", 0)
    payload, sent, slowest = "x" * 60_000, 0, 0.0
    while dropped() < 10:
        assert sent < 5_000, "nothing is ever dropped"
        for _ in range(20):
            started = time.monotonic()
            publisher.publish("data", f"{sent} {payload}", 0)
            assert fast.message().payload.startswith(b"%d " % sent)
            slowest = max(slowest, time.monotonic() - started)
            sent += 1
    for number in range(50):
        assert publisher.publish("safe", str(number)) == 0
    assert slowest < 2
    got, safe = [], []
    publisher.publish("data", f"{sent} {payload}", 0)
    assert fast.message().payload.startswith(b"%d " % sent)
    while len(safe) < 50:
        message = read_message(slow.expect(wire.PUBLISH))
        if message.topic == "safe":
            safe.append(int(message.payload))
            slow.send(wire.puback(message.packet_id))
        else:
            got.append(int(message.payload.split()[0]))
    assert safe == list(range(50))
    assert got == sorted(got) and got[:3] == [0, 1, 2]
    # Of all that was for it, what it has not got was dropped and counted.
    publisher.publish("data", "end", 0)
    while not (message := read_message(slow.expect(wire.PUBLISH))).payload == b"end":
        got.append(int(message.payload.split()[0]))
    assert eventually(lambda: dropped() == sent + 1 - len(got))
    assert fast.message().payload == b"end", "the other one has lost nothing"


# -- who may connect --


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, authority: Authority):
    """A broker for devices, which is what it is unless told otherwise, with TLS."""
    identity = authority.issue("localhost", server=True)
    env = {
        "FIELDLINE_BROKER_LISTEN": "127.0.0.1:0",
        "FIELDLINE_BROKER_TLS_LISTEN": "127.0.0.1:0",
        "FIELDLINE_BROKER_CERTIFICATE": identity.certificate,
        "FIELDLINE_BROKER_PRIVATE_KEY": identity.key,
    }
    server = Server(tmp_path_factory.mktemp("guarded"), env=env)
    with server.lent():
        yield server


@pytest.mark.parametrize("version", ["3.1", "3.1.1", "5.0"])
@pytest.mark.parametrize("secure", [False, True])
def test_a_device_gets_in_with_its_token(guarded, authority, join, version, secure):
    device, topic = guarded.rest().create_device(), unique("topic")
    subscriber = join(version, server=guarded, username=device.token)
    subscriber.subscribe(topic)
    address = guarded.broker_tls_address if secure else guarded.broker_address
    tls = authority.client() if secure else None
    client = BrokerClient(address, version, username=device.token, tls=tls)
    assert client.connect() == 0
    for qos in 0, 1, 2:
        assert client.publish(topic, str(qos), qos) == 0
        assert subscriber.texts(1) == [str(qos)]
    client.leave()


@pytest.mark.parametrize(("version", "code"), [(V31, 5), (V311, 5), (V5, 0x87)])
@pytest.mark.parametrize("login", [dict(), dict(username="nobody"), dict(username="nobody", password="x")])
def test_nobody_else_gets_in(guarded, raw, version, code, login):
    connection = raw(version, server=guarded)
    assert connection.connect(unique("client"), **login) == code
    connection.ended()
    assert eventually(lambda: guarded.metrics()["broker_refused_logins_total"] >= 1)


def test_a_device_that_has_a_new_token_does_not_get_in_with_its_old_one(guarded, raw):
    rest = guarded.rest()
    device = rest.create_device()
    assert raw(V5, server=guarded).connect(unique("client"), device.token) == 0
    rest.set_credentials(device.id, "ACCESS_TOKEN", unique("token"), None)
    assert raw(V5, server=guarded).connect(unique("client"), device.token) == 0x87


def test_a_device_gets_in_with_user_name_and_password_or_its_certificate(guarded, authority, raw):
    rest, name = guarded.rest(), unique("user")
    device = rest.create_device()
    rest.set_credentials(device.id, "MQTT_BASIC", None, f'{{"clientId":null,"userName":"{name}","password":"secret"}}')
    assert raw(V5, server=guarded).connect(unique("client"), name, "secret") == 0
    assert raw(V5, server=guarded).connect(unique("client"), name, "wrong") == 0x87
    device, identity = rest.create_device(), authority.issue(unique("device"))
    rest.set_credentials(device.id, "X509_CERTIFICATE", None, identity.pem)
    stranger = authority.issue(unique("stranger"))
    for shown, code in (identity, 0), (stranger, 0x87):
        connection = wire.Wire(guarded.broker_tls_address, V5, tls=authority.client(shown))
        assert connection.connect(unique("client")) == code
        connection.close()


# -- settings --


def test_there_is_no_broker_unless_it_has_an_address(shared):
    assert "broker" not in shared.listening and "broker_tls" not in shared.listening


BAD_SETTINGS = {
    "tls-listen": ({"FIELDLINE_BROKER_TLS_LISTEN": "127.0.0.1:0"}, ["broker", "tls-listen", "certificate"]),
    "certificate": (
        {
            "FIELDLINE_BROKER_TLS_LISTEN": "127.0.0.1:0",
            "FIELDLINE_BROKER_CERTIFICATE": "/nowhere.pem",
            "FIELDLINE_BROKER_PRIVATE_KEY": "/nowhere.key",
        },
        ["nowhere.pem"],
    ),
    "listen": ({"FIELDLINE_BROKER_LISTEN": "nowhere"}, ["broker", "listen"]),
    "access": ({"FIELDLINE_BROKER_ACCESS": "friends"}, ["broker", "access"]),
    "max-packet": ({"FIELDLINE_BROKER_MAX_PACKET": "10B"}, ["broker", "max-packet"]),
    "large max-packet": ({"FIELDLINE_BROKER_MAX_PACKET": "33MiB"}, ["broker", "max-packet", "32 mib"]),
    "queue-memory": ({"FIELDLINE_BROKER_QUEUE_MEMORY": "10B"}, ["broker", "queue-memory"]),
    "queue-messages": ({"FIELDLINE_BROKER_QUEUE_MESSAGES": "0"}, ["broker", "queue-messages"]),
    "publisher-wait": ({"FIELDLINE_BROKER_PUBLISHER_WAIT": "11s"}, ["broker", "publisher-wait", "10 seconds"]),
    "response-information": (
        {"FIELDLINE_BROKER_RESPONSE_INFORMATION": "x" * 257},
        ["broker", "response-information", "256"],
    ),
    "receive-maximum": ({"FIELDLINE_BROKER_RECEIVE_MAXIMUM": "0"}, ["broker", "receive-maximum"]),
    "max-topic-levels": ({"FIELDLINE_BROKER_MAX_TOPIC_LEVELS": "0"}, ["broker", "max-topic-levels"]),
}


@pytest.mark.parametrize("what", BAD_SETTINGS)
def test_a_setting_that_cannot_work_is_refused_by_name(make_server, what):
    env, named = BAD_SETTINGS[what]
    with pytest.raises(StartFailed) as failed:
        make_server(env={"FIELDLINE_BROKER_LISTEN": "127.0.0.1:0"} | env).start()
    said = str(failed.value).lower().replace("_", "-")
    for text in named:
        assert text in said
