"""MQTT.js, unchanged, against the publish/subscribe broker: over all of its listeners, and what MQTT 5 adds."""

import itertools
import time

import pytest

from harness.broker import broker_settings
from harness.certificates import Authority
from harness.mqttjs import Clients, MqttjsClient
from harness.rest import unique
from harness.server import Server, eventually

SCHEMES = {
    "broker": "mqtt://{}",
    "broker_tls": "mqtts://{}",
    "broker_websocket": "ws://{}/mqtt",
    "broker_websocket_tls": "wss://{}/mqtt",
}
PLACES = list(SCHEMES)
BOTH = ["3.1.1", "5.0"]
LARGE = "x" * 200_000
# What a client asks for, by version, to get its session back.
KEPT = {
    "3.1.1": {"clean": False},
    "5.0": {"clean": False, "properties": {"sessionExpiryInterval": 3600}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory, authority: Authority):
    identity = authority.issue("localhost", server=True)
    env = broker_settings(
        tls_listen="127.0.0.1:0",
        websocket_listen="127.0.0.1:0",
        websocket_tls_listen="127.0.0.1:0",
        certificate=identity.certificate,
        private_key=identity.key,
    )
    with Server(tmp_path_factory.mktemp("mqttjs"), demo=False, env=env).lent() as server:
        yield server


@pytest.fixture(scope="module")
def clients():
    """The process of the clients."""
    clients = Clients()
    yield clients
    clients.close()


@pytest.fixture
def make(request, clients, authority: Authority):
    """Makes clients, which leave with the test."""
    made: list[MqttjsClient] = []

    def make_one(version: str = "5.0", place: str = "broker", **options) -> MqttjsClient:
        server = options.pop("server", None) or request.getfixturevalue("server")
        if place.endswith("tls"):
            options["ca"] = authority.path.read_text()
        made.append(MqttjsClient(clients, SCHEMES[place].format(server.listening[place]), version, **options))
        return made[-1]

    yield make_one
    for client in made:
        client.run("leave")


@pytest.fixture
def dial(make):
    """Connects clients, which leave with the test."""

    def dial_one(*arguments, **options) -> MqttjsClient:
        client = make(*arguments, **options)
        assert not client.connect()["sessionPresent"]
        return client

    return dial_one


# -- both versions --


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("place", PLACES)
def test_messages_of_each_qos_in_both_directions(server, dial, join, version, place):
    client, other, topic = dial(version, place), join(version, server=server), unique("topic")
    assert client.subscribe(f"{topic}/#", qos=2) == 2
    other.subscribe(f"{topic}/#", qos=2)
    for qos, text in itertools.product([0, 1, 2], ["", "ü", LARGE]):
        client.publish(f"{topic}/there", text, qos)
        other.publish(f"{topic}/back", text, qos)
        expected = [(f"{topic}/{way}", text, qos, False) for way in ("back", "there")]
        got, seen = ([one.message() for _ in range(2)] for one in (client, other))
        assert sorted((one["topic"], one["payload"], one["qos"], one["retain"]) for one in got) == expected
        assert sorted((one.topic, one.payload.decode(), one.qos, one.retain) for one in seen) == expected
    client.run("unsubscribe", f"{topic}/#")
    other.publish(topic, "not for it")
    client.subscribe(f"{topic}/end")
    other.publish(f"{topic}/end", "end")
    assert client.texts(1) == ["end"]


@pytest.mark.parametrize("version", BOTH)
def test_a_subscription_gets_what_is_retained(dial, version):
    client, topic = dial(version), unique("topic")
    client.publish(topic, "old", retain=True)
    client.publish(topic, "new", retain=True)
    client.subscribe(topic)
    got = client.message()
    assert (got["payload"], got["retain"]) == ("new", True)
    client.publish(topic, "", retain=True)
    assert client.texts(1) == [""]
    late = dial(version)
    late.subscribe(topic)
    client.publish(topic, "live")
    assert late.texts(1) == ["live"]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("place", PLACES)
def test_a_will_is_published_after_a_cut_only(dial, version, place):
    topic = unique("will")
    watcher = dial(version)
    watcher.subscribe(topic, qos=2)
    for number in 1, 2:
        will = {"topic": topic, "payload": f"{number} is gone", "qos": number, "retain": False}
        leaving, cut = (dial(version, place, will=will | {"payload": one}) for one in ("left", will["payload"]))
        leaving.end()
        cut.cut()
        got = watcher.message()
        assert (got["payload"], got["qos"]) == (f"{number} is gone", number)
    watcher.publish(topic, "end")
    assert watcher.texts(1) == ["end"]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", ["end", "cut"])
def test_a_session_gets_what_it_has_missed(dial, make, version, place, way):
    topic, publisher = unique("topic"), dial(version)
    client = dial(version, place, **KEPT[version])
    client.subscribe(topic, qos=2)
    client.run("leave") if way == "cut" else client.end()
    for number in range(20):
        publisher.publish(topic, str(number), 1 + number % 2)
    assert client.connect()["sessionPresent"]
    # MQTT.js tells of a message of QoS 2 when it is released.
    got = list(map(int, client.texts(20)))
    assert [n for n in got if n % 2 == 0] == list(range(0, 20, 2))
    assert [n for n in got if n % 2 == 1] == list(range(1, 20, 2))
    # One that begins anew has neither the subscription nor messages.
    client.end()
    publisher.publish(topic, "gone")
    client.options |= {"clean": True}
    assert not client.connect()["sessionPresent"]
    client.subscribe(f"{topic}/end")
    publisher.publish(f"{topic}/end", "end")
    assert client.texts(1) == ["end"]


# -- what version 5 adds --


def test_the_properties_of_a_message_arrive(dial):
    requester, responder, topic = dial(), dial(), unique("topic")
    requester.subscribe(f"{topic}/answer")
    responder.subscribe(f"{topic}/ask")
    given = {
        "payloadFormatIndicator": True,
        "contentType": "text/plain",
        "responseTopic": f"{topic}/answer",
        "correlationData": "request 1",
        "userProperties": {"one": "1", "many": ["a", "b"]},
    }
    assert requester.publish(f"{topic}/ask", "how much?", **given).get("reasonCode", 0) == 0
    asked = responder.message()["properties"]
    assert asked == given
    responder.publish(asked["responseTopic"], "17", correlationData=asked["correlationData"])
    answer = requester.message()
    assert (answer["payload"], answer["properties"]) == ("17", {"correlationData": "request 1"})


def test_a_message_expires_while_its_receiver_is_away(dial):
    topic, publisher, client = unique("topic"), dial(), dial(**KEPT["5.0"])
    client.subscribe(topic)
    client.end()
    publisher.publish(topic, "short", messageExpiryInterval=1)
    publisher.publish(topic, "long", messageExpiryInterval=3600)
    publisher.publish(topic, "endless")
    time.sleep(2.1)
    assert client.connect()["sessionPresent"]
    got = [client.message() for _ in range(2)]
    assert [one["payload"] for one in got] == ["long", "endless"]
    # The time that it has waited is taken from the interval.
    assert 3500 < got[0]["properties"]["messageExpiryInterval"] <= 3598
    assert "messageExpiryInterval" not in got[1].get("properties", {})


def test_subscription_identifiers_name_all_filters_that_match(dial):
    client, topic = dial(), unique("topic")
    client.subscribe(f"{topic}/#", properties={"subscriptionIdentifier": 7})
    client.subscribe(f"{topic}/+", qos=2, properties={"subscriptionIdentifier": 268_435_455})
    client.subscribe(f"{topic}/other", properties={"subscriptionIdentifier": 9})
    client.publish(f"{topic}/one", "x", 2)
    got = client.message()
    assert got["qos"] == 2
    assert sorted(got["properties"]["subscriptionIdentifier"]) == [7, 268_435_455]
    client.publish(f"{topic}/one/deep", "end")
    got = client.message()
    assert (got["payload"], got["properties"]["subscriptionIdentifier"]) == ("end", 7)


@pytest.mark.parametrize("assigning", ["itself", "asked"])
def test_topic_aliases_of_a_publisher(dial, assigning):
    topic, reader = unique("topic"), dial()
    reader.subscribe(f"{topic}/#")
    publisher = dial(autoAssignTopicAlias=assigning == "itself")
    for number in range(30):
        place = f"{topic}/{number % 3}"
        if assigning == "itself":
            publisher.publish(place, str(number), number % 3)
        else:
            publisher.publish(place if number < 3 else "", str(number), number % 3, topicAlias=1 + number % 3)
    got = [reader.message() for _ in range(30)]
    assert sorted((int(one["payload"]), one["topic"]) for one in got) == [(n, f"{topic}/{n % 3}") for n in range(30)]
    assert publisher.happened("alias") >= 20


def test_topic_aliases_of_the_broker(dial):
    topic, publisher = unique("topic"), dial()
    reader = dial(properties={"topicAliasMaximum": 2})
    reader.subscribe(f"{topic}/#")
    for number in range(12):
        publisher.publish(f"{topic}/{number % 3}", str(number))
    got = [reader.message() for _ in range(12)]
    assert [(one["payload"], one["topic"]) for one in got] == [(str(n), f"{topic}/{n % 3}") for n in range(12)]
    assert {one["properties"]["topicAlias"] for one in got if "topicAlias" in one.get("properties", {})} <= {1, 2}


def test_the_members_of_a_shared_subscription_share_its_messages(dial):
    topic, publisher, plain = unique("topic"), dial(), dial()
    members = [dial(place=place) for place in PLACES]
    for member in members:
        member.subscribe(f"$share/group/{topic}", qos=2)
    plain.subscribe(topic, qos=2)
    for number in range(40):
        publisher.publish(topic, str(number), 1 + number % 2)
    plain.texts(40)
    eventually(lambda: sum(member.happened("message") for member in members) == 40)
    shares = [member.texts(member.happened("message")) for member in members]
    assert all(shares)
    assert sorted(map(int, itertools.chain(*shares))) == list(range(40))


def test_options_of_a_subscription(dial):
    client, other, topic = dial(), dial(), unique("topic")
    other.publish(topic, "kept", retain=True)
    client.subscribe(topic, nl=True, rap=True, rh=2)
    client.publish(topic, "own")
    other.publish(topic, "retained", retain=True)
    got = client.message()
    assert (got["payload"], got["retain"]) == ("retained", True)
    other.publish(topic, "", retain=True)


def test_a_client_learns_that_another_one_has_its_identifier(dial, make):
    first = dial()
    second = make(clientId=first.name)
    second.connect()
    assert first.next("disconnected")["reasonCode"] == 0x8E


# -- what is published without a connection --


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("place", ["broker", "broker_websocket"])
def test_a_client_that_returns_publishes_what_it_has_queued(dial, version, place):
    topic, reader = unique("topic"), dial(version)
    reader.subscribe(topic, qos=2)
    publisher = dial(version, place, reconnectPeriod=3000)
    publisher.cut()
    counting = [publisher.start("count", topic, first, first + 20, 0, {"qos": first // 20}) for first in (0, 20, 40)]
    eventually(lambda: publisher.run("waiting") == 60)
    assert not publisher.happened("connected")
    publisher.next("connected")
    for one in counting:
        assert publisher.clients.answer(one) == []
    got = [reader.message() for _ in range(60)]
    assert sorted((int(one["payload"]), one["qos"]) for one in got) == [(n, n // 20) for n in range(60)]
    for qos in 0, 1, 2:
        assert [int(one["payload"]) for one in got if one["qos"] == qos] == list(range(20 * qos, 20 * qos + 20))


# -- a broker that is killed --


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("place", ["broker", "broker_websocket"])
@pytest.mark.parametrize("qos", [1, 2])
def test_clients_return_after_a_kill_with_what_they_have_published_meanwhile(make_server, dial, version, place, qos):
    server = make_server("killed", demo=False, env=broker_settings(websocket_listen="127.0.0.1:0")).start()
    # It comes back where it was.
    for one in "broker", "broker_websocket":
        server.env[f"FIELDLINE_{one.upper()}_LISTEN"] = server.listening[one]
    topic, count = unique("topic"), 600
    returning = KEPT[version] | {"reconnectPeriod": 100, "server": server}
    publisher, subscriber = dial(version, place, **returning), dial(version, place, **returning)
    subscriber.subscribe(topic, qos=qos)
    counting = publisher.start("count", topic, 0, count, 5, {"qos": qos})
    subscriber.texts(100)
    server.kill()
    publisher.next("closed")
    eventually(lambda: publisher.run("waiting") > 50)
    server.start()
    for client in publisher, subscriber:
        assert client.next("connected")["sessionPresent"]
    assert publisher.clients.answer(counting, within=60) == []
    publisher.publish(topic, "end", qos)
    got = list(range(100))
    while (text := subscriber.message()["payload"]) != "end":
        got.append(int(text))
    assert list(dict.fromkeys(got)) == list(range(count))
    if qos == 2:
        assert len(got) == count
