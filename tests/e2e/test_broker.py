"""The publish/subscribe broker: what is published reaches who has subscribed, as MQTT 3.1.1 and MQTT 5 say."""

import pytest

from harness import wire
from harness.broker import (
    ALIAS,
    ALIAS_MAXIMUM,
    BrokerClient,
    MosquittoSub,
    mosquitto_pub,
    number_property,
    read_message,
    subscription_ids,
)
from harness.paho_device import VERSIONS
from harness.rest import unique
from harness.wire import V5, V31, V311

TWO = ["3.1.1", "5.0"]


# -- from anybody to anybody --


@pytest.mark.parametrize("sends", VERSIONS)
@pytest.mark.parametrize("gets", VERSIONS)
def test_a_message_arrives_once_with_the_lower_qos_of_both_sides(join, sends, gets):
    topic = unique("a/b")
    publisher, subscriber = join(sends), join(gets)
    for asked in 0, 1, 2:
        assert subscriber.subscribe(topic, qos=asked) == [asked]
        for qos in 0, 1, 2:
            assert publisher.publish(topic, f"{asked} {qos}", qos) == 0
            got = subscriber.message()
            assert (got.topic, got.payload.decode()) == (topic, f"{asked} {qos}")
            assert (got.qos, got.retain, got.dup) == (min(asked, qos), False, False)
        assert subscriber.gets_nothing_from(publisher)


@pytest.mark.parametrize("sends", ["mqttv311", "mqttv5"])
@pytest.mark.parametrize("gets", ["mqttv311", "mqttv5"])
def test_the_tools_of_mosquitto_publish_and_subscribe(broker, sends, gets):
    topic = unique("tools")
    subscriber = MosquittoSub(broker.broker_address, "-V", gets, "-q", "2", "-t", f"{topic}/#", "-C", "4")
    for qos in "0", "1", "2":
        mosquitto_pub(broker.broker_address, "-V", sends, "-q", qos, "-t", f"{topic}/{qos}", "-m", f"m{qos}")
    mosquitto_pub(broker.broker_address, "-V", sends, "-t", topic, "-n")
    expected = {(f"{topic}/{qos}", qos, 0, f"m{qos}") for qos in (0, 1, 2)} | {(topic, 0, 0, "")}
    assert set(subscriber.messages()) == expected


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_of_one_publisher_keep_their_order(join, qos):
    topic = unique("order")
    publisher, subscriber = join(), join(ReceiveMaximum=7)
    subscriber.subscribe(topic, qos=qos)
    # Fewer than a slow client may keep waiting at QoS 0.
    expected = [str(number) for number in range(500)]
    for number in expected:
        publisher.send(topic, number, qos)
    assert subscriber.texts(len(expected)) == expected


@pytest.mark.parametrize("version", [V31, V311, V5])
def test_packets_that_follow_connect_at_once_are_answered_in_their_order(raw, version):
    connection, topic = raw(version), unique("pipelined")
    connection.send(
        wire.connect(version, unique("eager"))
        + wire.subscribe(version, [(topic, 0)], 5)
        + wire.publish(version, topic, "first", 1, 6)
        + wire.PING
    )
    assert connection.connack() == 0
    kinds = [connection.receive() for _ in range(4)]
    answers = [packet.kind for packet in kinds if packet.kind != wire.PUBLISH]
    assert answers == [wire.SUBACK, wire.PUBACK, wire.PINGRESP]
    message = next(packet for packet in kinds if packet.kind == wire.PUBLISH)
    assert wire.read_publish(version, message).payload == b"first"


# -- filters --

# Filter, topics that it matches, topics that it does not.
FILTERS = {
    "a name": ("sport/tennis", ["sport/tennis"], ["sport", "sport/tennis/1", "Sport/tennis", "sport/tennis/", "/sport/tennis"]),
    "all below": ("sport/#", ["sport", "sport/", "sport/tennis", "sport/a/b/c"], ["sports", "other/sport"]),
    "one level": ("sport/+", ["sport/", "sport/tennis"], ["sport", "sport/a/b"]),
    "one level between": ("sport/+/1", ["sport/a/1", "sport//1"], ["sport/1", "sport/a/b/1", "sport/a/2"]),
    "one level first": ("+/finish", ["/finish", "a/finish"], ["finish", "a/b/finish"]),
    "both": ("+/x/#", ["a/x", "a/x/y/z", "/x"], ["x", "x/a", "a/b/x"]),
    "empty levels": ("/+", ["/finish", "/"], ["finish", "a/finish", "/a/b"]),
    "not ascii": ("häuser/+/温度", ["häuser/1/温度"], ["hauser/1/温度"]),
}  # fmt: skip


@pytest.mark.parametrize("version", TWO)
@pytest.mark.parametrize("what", FILTERS)
def test_a_filter_matches_what_the_specification_says(join, version, what):
    filter_, matching, others = FILTERS[what]
    publisher, subscriber = join(version), join(version)
    assert subscriber.subscribe(filter_, qos=1) == [1]
    for topic in others + matching:
        publisher.publish(topic, topic, 1)
    assert subscriber.texts(len(matching)) == matching
    assert subscriber.gets_nothing_from(publisher)


def test_wildcards_in_front_match_no_topic_of_the_broker(join):
    everything, own, publisher = join(), join(), join()
    everything.subscribe("#", "+/broker/uptime", "+/#", qos=0, retainHandling=2)
    own.subscribe("$SYS/broker/uptime", qos=0)
    for _ in range(3):
        assert own.message().topic == "$SYS/broker/uptime"
    marker = unique("marker")
    publisher.publish(marker, marker, 0)
    while (message := everything.message()).topic != marker:
        assert not message.topic.startswith("$")


BAD_FILTERS = ["a/#/b", "a#", "a+/b", "#/a", "$share//a", "$share/a+/b", "$share/#/b", "$share/name", "$share/name/", "$share/name/a#"]  # fmt: skip


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("filter_", BAD_FILTERS)
def test_a_filter_that_is_none_is_refused_alone(raw, version, filter_):
    connection, topic = raw(version), unique("good")
    connection.connect(unique("client"))
    bad = 0x8F if version == V5 else 0x80
    assert connection.subscribe((filter_, 1), (topic, 1)) == [bad, 1]
    assert connection.publish(topic, "x", 0) is None
    assert connection.message().payload == b"x"


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_comes_after_unsubscribe(join, version):
    topic = unique("left")
    publisher, subscriber = join(), join(version)
    subscriber.subscribe(topic, f"{topic}/#", qos=1)
    publisher.publish(topic, "1")
    assert subscriber.message().payload == b"1"
    codes = subscriber.unsubscribe(topic, f"{topic}/#", "never/asked")
    assert version != "5.0" or codes == [0, 0, 0x11]
    publisher.publish(topic, "2")
    assert subscriber.gets_nothing_from(publisher)


def test_who_publishes_is_told_that_nobody_has_subscribed_or_nothing(join):
    """MQTT 5 §3.4.2.1: a server may say 0x10; both are a success."""
    assert join("5.0").publish(unique("nobody"), "x", 1) in (0, 0x10)


# -- several subscriptions of one client --


@pytest.mark.parametrize("version", TWO)
def test_filters_that_overlap_bring_a_message_once_with_the_highest_qos(join, version):
    topic = unique("overlap")
    publisher, subscriber = join(), join(version)
    subscriber.subscribe(f"{topic}/#", qos=0)
    subscriber.subscribe(f"{topic}/a", qos=2)
    subscriber.subscribe(f"{topic}/+", qos=1)
    publisher.publish(f"{topic}/a", "x", 2)
    got = subscriber.message()
    assert (got.payload, got.qos) == (b"x", 2)
    assert subscriber.gets_nothing_from(publisher, qos=2)


def test_a_message_says_which_subscriptions_it_is_for(join):
    topic = unique("ids")
    publisher, subscriber = join(), join()
    subscriber.subscribe(f"{topic}/#", qos=1, id=7)
    subscriber.subscribe(f"{topic}/a", qos=1, id=268_435_455)
    subscriber.subscribe(f"{topic}/+", qos=0)
    publisher.publish(f"{topic}/a", "both")
    assert subscription_ids(subscriber.message()) == [7, 268_435_455]
    publisher.publish(f"{topic}/b", "one")
    assert subscription_ids(subscriber.message()) == [7]
    # Asking again replaces: another identifier, another QoS, or no identifier any more.
    assert subscriber.subscribe(f"{topic}/#", qos=0, id=8) == [0]
    publisher.publish(f"{topic}/b", "replaced")
    got = subscriber.message()
    assert (subscription_ids(got), got.qos) == ([8], 0)
    subscriber.subscribe(f"{topic}/#", qos=1)
    publisher.publish(f"{topic}/b", "without")
    assert subscription_ids(subscriber.message()) == []


@pytest.mark.parametrize("identifier", [b"\x0b\x00", b"\x0b\x01\x0b\x02"])
def test_a_subscription_identifier_that_is_zero_or_there_twice_is_a_protocol_error(raw, identifier):
    connection = raw(V5)
    connection.connect(unique("client"))
    body = b"\0\1" + wire.properties(V5, identifier) + wire.text("a") + b"\1"
    connection.send(wire.frame(wire.SUBSCRIBE, body, 2))
    connection.ended(0x82)


def test_own_messages_are_kept_from_who_asks_for_it(join):
    topic = unique("echo")
    one, other = join(), join()
    one.subscribe(topic, qos=1, noLocal=True)
    other.subscribe(topic, qos=1)
    one.publish(topic, "mine")
    other.publish(topic, "yours")
    assert one.message().payload == b"yours"
    assert other.texts(2) == ["mine", "yours"]
    assert one.gets_nothing_from(other)


def test_a_shared_subscription_cannot_exclude_own_messages(raw):
    connection = raw(V5)
    connection.connect(unique("client"))
    connection.send(wire.subscribe(V5, [("$share/g/a", 0x04 | 1)]))
    connection.ended(0x82)


# -- retained messages --


@pytest.mark.parametrize("version", TWO)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_retained_message_is_kept_replaced_and_cleared(join, version, qos):
    topic = unique("kept")
    publisher, early = join(version), join(version)
    early.subscribe(topic, qos=2)
    publisher.publish(topic, "old", qos, retain=True)
    publisher.publish(topic, "new", qos, retain=True)
    # For who has subscribed before it is a message like others.
    assert [(one.payload, one.retain) for one in (early.message(), early.message())] == [
        (b"old", False),
        (b"new", False),
    ]
    for asked in 0, 1, 2:
        late = join(version)
        late.subscribe(f"{topic}/#", qos=asked)
        got = late.message()
        assert (got.payload, got.retain, got.qos) == (b"new", True, min(qos, asked))
        # A message that is not retained changes nothing of it.
        publisher.publish(topic, f"passing {asked}", qos)
        got = late.message()
        assert (got.payload, got.retain) == (f"passing {asked}".encode(), False)
        assert early.message().payload == f"passing {asked}".encode()
    publisher.publish(topic, "", qos, retain=True)
    assert (early.message().payload, late.message().payload) == (b"", b"")
    after = join(version)
    after.subscribe(topic, qos=1)
    assert after.gets_nothing_from(publisher)


def test_retained_messages_come_by_wildcards_and_again_with_each_subscribe(join):
    topic = unique("tree")
    publisher, subscriber = join(), join("3.1.1")
    for name in "a", "b", "c/d":
        publisher.publish(f"{topic}/{name}", name, 1, retain=True)
    subscriber.subscribe(f"{topic}/+", qos=1)
    assert sorted(subscriber.texts(2)) == ["a", "b"]
    for _ in range(2):
        subscriber.subscribe(f"{topic}/#", qos=1)
        assert sorted(subscriber.texts(3)) == ["a", "b", "c/d"]
    assert subscriber.gets_nothing_from(publisher)
    for name in "a", "b", "c/d":
        publisher.publish(f"{topic}/{name}", "", 1, retain=True)


@pytest.mark.parametrize("expiry", [0, 3600])
def test_a_wildcard_brings_thousands_of_retained_messages(start_broker, join, expiry):
    server = start_broker()
    publisher, subscriber = (
        join(server=server),
        join(client_id="reader", expiry=expiry, server=server, ReceiveMaximum=20),
    )
    for number in range(2_500):
        publisher.send(f"many/{number}", str(number), 1, retain=True)
    for _ in range(2_500):
        publisher.acknowledgement()
    subscriber.subscribe("many/#", qos=1)
    assert sorted(map(int, subscriber.texts(2_500))) == list(range(2_500))
    assert subscriber.gets_nothing_from(publisher)


def test_a_subscription_says_how_it_wants_retained_messages(join):
    topic = unique("handling")
    publisher, subscriber = join(), join()
    publisher.publish(topic, "kept", 1, retain=True)
    subscriber.subscribe(topic, retainHandling=2, id=1)
    assert subscriber.gets_nothing_from(publisher)
    subscriber.subscribe(topic, retainHandling=1, id=2)
    assert subscriber.gets_nothing_from(publisher), "the subscription was there already"
    subscriber.subscribe(topic, retainHandling=0, id=3)
    assert subscription_ids(subscriber.message()) == [3]
    subscriber.unsubscribe(topic)
    subscriber.subscribe(topic, retainHandling=1, id=4)
    got = subscriber.message()
    assert (got.payload, got.retain, subscription_ids(got)) == (b"kept", True, [4])
    publisher.publish(topic, "", retain=True)


def test_the_retain_flag_is_passed_on_to_who_asks_for_it(join):
    topic = unique("flag")
    publisher, subscriber = join(), join()
    subscriber.subscribe(topic, retainAsPublished=True)
    publisher.publish(topic, "kept", retain=True)
    publisher.publish(topic, "passing")
    publisher.publish(topic, "", retain=True)
    assert [subscriber.message().retain for _ in range(3)] == [True, False, True]


# -- shared subscriptions --


@pytest.mark.parametrize("version", TWO)
def test_a_group_shares_messages_and_others_get_all(join, version):
    topic = unique("work")
    publisher, whole = join(), join()
    members = [join(version) for _ in range(3)]
    whole.subscribe(f"{topic}/#")
    second_group = join(version)
    second_group.subscribe(f"$share/second/{topic}/+")
    for member in members:
        member.subscribe(f"$share/first/{topic}/+")
    expected = [str(number) for number in range(30)]
    for number in expected:
        publisher.publish(f"{topic}/{number}", number)
    assert whole.texts(30) == expected
    assert second_group.texts(30) == expected
    got = [drain(member, publisher) for member in members]
    assert sorted(sum(got, []), key=int) == expected, "each message comes to one member of the group"
    assert min(map(len, got)) >= 5, f"no member does all the work: {[len(one) for one in got]}"


def drain(client: BrokerClient, publisher: BrokerClient) -> list[str]:
    """All that is on its way to a client."""
    marker = unique("marker")
    client.subscribe(marker)
    publisher.publish(marker, marker)
    return client.until(marker)


def test_who_leaves_a_group_gets_no_share_any_more(join, raw):
    topic = unique("leaving")
    publisher, stays, unsubscribes, leaves = join(), join(), join(), raw(V311)
    group = f"$share/g/{topic}"
    leaves.connect(unique("leaves"))
    leaves.subscribe((group, 1))
    for member in stays, unsubscribes:
        member.subscribe(group)
    leaves.send(wire.BYE)
    leaves.ended()
    assert unsubscribes.unsubscribe(group) == [0]
    expected = [str(number) for number in range(10)]
    for number in expected:
        publisher.publish(topic, number)
    assert stays.texts(10) == expected


def test_a_member_that_is_away_gets_messages_only_if_nobody_is_there(join, raw):
    topic, name = unique("away"), unique("member")
    publisher, present = join(), join()
    group = f"$share/g/{topic}"
    member = raw(V311)
    member.connect(name, clean=False)
    member.subscribe((group, 1))
    member.send(wire.BYE)
    member.ended()
    present.subscribe(group)
    for number in range(6):
        publisher.publish(topic, str(number))
    assert present.texts(6) == list("012345")
    present.unsubscribe(group)
    for number in "678":
        publisher.publish(topic, number)
    back = join("3.1.1", name, clean=False)
    assert back.texts(3) == list("678")
    back.unsubscribe(group)


def test_a_group_gets_no_retained_messages(join):
    topic = unique("group")
    publisher, member = join(), join()
    publisher.publish(topic, "kept", retain=True)
    member.subscribe(f"$share/g/{topic}")
    assert member.gets_nothing_from(publisher)
    publisher.publish(topic, "", retain=True)


# -- properties of MQTT 5 --


def test_who_asks_is_told_where_answers_go(start_broker, join):
    server = start_broker(response_information="answers/of/this/broker")
    asks = join(server=server, RequestResponseInformation=1)
    assert asks.connack.ResponseInformation == "answers/of/this/broker"
    assert not hasattr(join(server=server).connack, "ResponseInformation")


@pytest.mark.parametrize("is_retained", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_a_message_says_of_itself_is_passed_on(join, qos, is_retained):
    topic = unique("properties")
    publisher, subscriber = join(), join()
    users = [("a", "1"), ("a", "2"), ("", ""), ("ключ", "значение")]

    def publish():
        publisher.publish(
            topic,
            "text",
            qos,
            retain=is_retained,
            UserProperty=users,
            ContentType="text/plain",
            ResponseTopic="answers/here",
            CorrelationData=b"\0\xff",
            PayloadFormatIndicator=1,
        )

    if is_retained:
        publish()
    subscriber.subscribe(topic, qos=2)
    if not is_retained:
        publish()
    got = subscriber.message().properties
    assert got.UserProperty == users
    assert (got.ContentType, got.ResponseTopic, got.CorrelationData) == ("text/plain", "answers/here", b"\0\xff")
    assert got.PayloadFormatIndicator == 1
    assert not hasattr(got, "MessageExpiryInterval")
    publisher.publish(topic, "", retain=True)


def test_properties_are_left_out_for_clients_of_3_1_1(join):
    topic = unique("properties")
    publisher, subscriber = join(), join("3.1.1")
    subscriber.subscribe(topic)
    publisher.publish(topic, "text", UserProperty=("a", "1"), MessageExpiryInterval=100)
    assert subscriber.message().payload == b"text"


def test_a_topic_alias_of_a_client_stands_for_its_topic(join, raw):
    first, second = unique("alias"), unique("alias")
    subscriber, connection = join(), raw(V5)
    subscriber.subscribe(first, second)
    connection.send(wire.connect(V5, unique("client")))
    assert number_property(ALIAS_MAXIMUM, 10) in connection.expect(wire.CONNACK).body
    for alias, topic, payload in [
        (1, first, "a"),
        (10, second, "b"),
        (1, "", "c"),
        (10, "", "d"),
        (1, second, "e"),
        (1, "", "f"),
    ]:
        connection.publish(topic, payload, props=number_property(ALIAS, alias))
    got = [subscriber.message() for _ in range(6)]
    assert [one.payload.decode() for one in got] == list("abcdef")
    assert [one.topic for one in got] == [first, second, first, second, second, second]


@pytest.mark.parametrize(
    ("alias", "topic", "reason"), [(0, "a", 0x94), (11, "a", 0x94), (65535, "a", 0x94), (3, "", 0x82), (None, "", 0x82)]
)
def test_a_topic_alias_that_means_nothing_ends_the_connection(raw, alias, topic, reason):
    connection = raw(V5)
    connection.connect(unique("client"))
    props = b"" if alias is None else number_property(ALIAS, alias)
    connection.send(wire.publish(V5, topic, "x", 1, props=props))
    connection.ended(reason)


def test_the_broker_uses_aliases_for_who_permits_them(join, raw):
    publisher, connection = join(), raw(V5)
    topics = [unique("long/" * 20) for _ in range(3)]
    connection.connect(unique("client"), props=number_property(ALIAS_MAXIMUM, 2))
    connection.subscribe(*[(topic, 1) for topic in topics])
    aliases, saved = {}, 0
    for number in range(12):
        publisher.publish(topics[number % 3], str(number))
        got = read_message(connection.expect(wire.PUBLISH))
        connection.send(wire.puback(got.packet_id))
        alias = got.properties.get(ALIAS)
        assert alias is None or 1 <= alias <= 2
        if got.topic and alias:
            aliases[alias] = got.topic
        saved += not got.topic
        assert (got.topic or aliases[alias]) == topics[number % 3]
        assert got.payload == str(number).encode()
    assert saved, "no topic was ever left out"


def test_the_broker_uses_no_alias_for_who_does_not_permit_them(join, raw):
    publisher, connection, topic = join(), raw(V5), unique("long/" * 20)
    connection.connect(unique("client"))
    connection.subscribe((topic, 0))
    for _ in range(3):
        publisher.publish(topic, "x")
        got = read_message(connection.expect(wire.PUBLISH))
        assert got.topic == topic and ALIAS not in got.properties


# -- what the broker says of itself --


def test_the_broker_says_how_it_is(start_broker, join):
    server = start_broker(sys_interval="1s")
    subscriber, publisher = join(server=server), join("3.1.1", server=server)
    publisher.publish("x", "12345", retain=True)
    subscriber.subscribe("$SYS/#", qos=0)
    found: dict[str, str] = {}
    expected = {
        "clients/connected": "2",
        "clients/total": "2",
        "publish/messages/received": "1",
        "publish/bytes/received": "5",
    }
    while {name: found.get(name) for name in expected} != expected or "version" not in found or "uptime" not in found:
        message = subscriber.message()
        found[message.topic.removeprefix("$SYS/broker/")] = message.payload.decode()
    assert found["version"].startswith("fieldline ")
    assert found["uptime"].endswith(" seconds")
