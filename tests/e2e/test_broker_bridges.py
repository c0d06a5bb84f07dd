"""Bridges of the broker to Mosquitto and to another broker of ours."""

from __future__ import annotations

import pytest

from harness.bridges import HERE, THERE, at, bridged, devices, is_up, sink, to, topic
from harness.broker import KEPT, broker_settings
from harness.mosquitto import Mosquitto
from harness.server import Server, StartFailed, eventually
from harness.wire import V5, Wire


@pytest.fixture
def mosquitto(tmp_path):
    broker = Mosquitto(tmp_path / "mosquitto", persistence="false", max_queued_messages=0).start()
    yield broker
    broker.kill()


@pytest.mark.parametrize("version", [4, 5])
def test_messages_are_carried_both_ways_with_their_topics_changed(make_server, tmp_path, join, mosquitto, version):
    toml = to(mosquitto.address, topic("out/#", "out"), topic("in/+", "in"), version=version)
    server = bridged(make_server, tmp_path, toml).start()
    assert eventually(lambda: is_up(server), within=20)
    here, there = join(server=server), at(mosquitto)
    here.subscribe("#", qos=2)
    there.subscribe("#", qos=2)
    for qos in 0, 1, 2:
        here.publish(f"{HERE}out/a/b", f"out {qos}", qos)
        message = there.message()
        assert (message.topic, message.payload, message.qos) == (f"{THERE}out/a/b", f"out {qos}".encode(), min(qos, 1))
        assert here.texts(1) == [f"out {qos}"]
        there.publish(f"{THERE}in/a", f"in {qos}", qos)
        message = here.message()
        assert (message.topic, message.payload, message.qos) == (f"{HERE}in/a", f"in {qos}".encode(), min(qos, 1))
        assert there.texts(1) == [f"in {qos}"]
    # What is not named stays where it is.
    here.publish("elsewhere", "x")
    there.publish(f"{THERE}in/a/b", "x")
    here.publish(f"{HERE}out/last", "last")
    assert there.texts(2) == ["x", "last"]
    there.leave()


def test_a_message_keeps_what_it_says(make_server, tmp_path, join, mosquitto):
    server = bridged(make_server, tmp_path, to(mosquitto.address, topic("#", "out"))).start()
    assert eventually(lambda: is_up(server), within=20)
    there, here = at(mosquitto), join(server=server)
    there.subscribe(f"{THERE}#", qos=1)
    said = {
        "ContentType": "text/plain",
        "ResponseTopic": "answers",
        "CorrelationData": b"7",
        "UserProperty": [("a", "b")],
    }
    here.publish(f"{HERE}a", b"\0\xff", 1, True, MessageExpiryInterval=100, **said)
    message = there.message()
    assert message.payload == b"\0\xff"
    for name, value in said.items():
        assert getattr(message.properties, name) == value
    assert 90 < message.properties.MessageExpiryInterval <= 100
    # A retained message is one there, too.
    late = at(mosquitto)
    late.subscribe(f"{THERE}a")
    assert late.message().retain
    for client in there, late:
        client.leave()


def test_a_topic_that_is_carried_both_ways_comes_to_each_side_once(make_server, tmp_path, join, mosquitto):
    toml = to(mosquitto.address, topic("a", "both", local_prefix="", remote_prefix=""))
    server = bridged(make_server, tmp_path, toml).start()
    assert eventually(lambda: is_up(server), within=20)
    here, there = join(server=server), at(mosquitto)
    for client in here, there:
        client.subscribe("a", qos=1)
    for number in range(20):
        (here if number % 2 else there).publish("a", str(number))
    expected = [str(number) for number in range(20)]
    for client in here, there:
        assert sorted(client.texts(20), key=int) == expected
    for client, other, end in (here, there, "end there"), (there, here, "end here"):
        other.publish("a", end)
        assert set(client.until(end)) <= {"end there"}
    there.leave()


def test_nothing_is_lost_while_the_other_broker_is_away(make_server, tmp_path, join, mosquitto):
    server = bridged(make_server, tmp_path, to(mosquitto.address, topic("#", "out"))).start()
    assert eventually(lambda: is_up(server), within=20)
    here = join(server=server)
    mosquitto.kill()
    assert eventually(lambda: not is_up(server), within=20)
    for number in range(500):
        here.send(f"{HERE}a", str(number), 1)
    assert here.publish(f"{HERE}a", "last") == 0
    # A crash takes nothing of it either.
    server.kill()
    assert mosquitto._starts()
    there = at(mosquitto, client_id="reader", clean=False, expiry=600)
    there.subscribe(f"{THERE}#", qos=1)
    server.start()
    got = there.until("last")
    assert list(dict.fromkeys(got)) == [str(number) for number in range(500)]
    there.leave()


def test_what_is_published_before_the_other_broker_was_ever_there_is_carried(make_server, tmp_path, join, mosquitto):
    mosquitto.kill()
    server = bridged(make_server, tmp_path, to(mosquitto.address, topic("#", "out"))).start()
    assert eventually(lambda: "a bridge is not connected" in server.log(), within=20)
    here = join(server=server)
    for number in range(20):
        here.publish(f"{HERE}{number}", str(number), 1, True)
    assert mosquitto._starts()
    carried = 'bridge_messages_total{bridge="peer",direction="out"}'
    assert eventually(lambda: server.metrics().get(carried) == 20, within=60)
    there = at(mosquitto)
    there.subscribe(f"{THERE}#", qos=1)
    assert sorted(there.texts(20), key=int) == [str(number) for number in range(20)]
    there.leave()


def test_a_broker_that_can_less_gets_messages_with_less(make_server, tmp_path, join):
    """One without QoS 1 and retained messages gets the rest of them."""
    poor = Mosquitto(tmp_path / "poor", max_qos=0, retain_available="false").start()
    try:
        server = bridged(make_server, tmp_path, to(poor.address, topic("#", "out"))).start()
        assert eventually(lambda: is_up(server), within=20)
        there, here = at(poor), join(server=server)
        there.subscribe(f"{THERE}#")
        for qos in 0, 1, 2:
            here.publish(f"{HERE}a", str(qos), qos, True)
        assert there.texts(3) == ["0", "1", "2"]
        there.leave()
    finally:
        poor.kill()


def test_what_the_other_broker_keeps_for_the_bridge_comes_when_the_program_is_back(
    make_server, tmp_path, join, mosquitto
):
    server = bridged(make_server, tmp_path, to(mosquitto.address, topic("#", "in"))).start()
    assert eventually(lambda: is_up(server), within=20)
    here = join(server=server, client_id="reader", **KEPT["5.0"])
    here.subscribe(f"{HERE}#", qos=1)
    server.kill()
    there = at(mosquitto)
    for number in range(200):
        there.publish(f"{THERE}a", str(number))
    server.start()
    again = join(server=server, client_id="reader", **KEPT["5.0"])
    there.publish(f"{THERE}a", "last")
    assert list(dict.fromkeys(again.until("last"))) == [str(number) for number in range(200)]
    there.leave()


def test_a_bridge_to_a_broker_of_ours_with_credentials_and_tls(make_server, tmp_path, join, authority):
    identity = authority.issue("localhost", server=True)
    peer = make_server(
        "peer",
        env=broker_settings(
            access="devices",
            tls_listen="127.0.0.1:0",
            certificate=identity.certificate,
            private_key=identity.key,
        ),
    ).start()
    token = peer.rest().create_device().token
    port = peer.broker_tls_address[1]
    toml = to(f"localhost:{port}", topic("#", "out"), username=token).replace(
        "[[bridges.brokers.topics]]", f"tls = true\nauthorities = '{authority.path}'\n[[bridges.brokers.topics]]"
    )
    server = bridged(make_server, tmp_path, toml).start()
    assert eventually(lambda: is_up(server), within=20)
    there, here = join(server=peer, username=token, client_id="reader"), join(server=server)
    there.subscribe(f"{THERE}#", qos=1)
    here.publish(f"{HERE}a", "x" * 500_000)
    assert there.texts(1) == ["x" * 500_000]


def test_a_refused_bridge_says_why_once_and_goes_on_trying(make_server, tmp_path):
    peer = make_server("peer", env=broker_settings(access="devices")).start()
    address = "{}:{}".format(*peer.broker_address)
    server = bridged(make_server, tmp_path, to(address, topic("#", "out"), username="nobody")).start()
    assert eventually(
        lambda: "a bridge is not connected" in server.log() and "Not authorized" in server.log(), within=20
    )
    assert not is_up(server)


def test_nobody_else_is_a_bridge(make_server, tmp_path, mosquitto):
    server = bridged(make_server, tmp_path, to(mosquitto.address, topic("#", "out"))).start()
    with Wire(server.broker_address, V5) as client:
        assert client.connect("$bridge/peer") == 0x85


def test_topics_that_are_carried_no_more_are_given_up(make_server, tmp_path, join, mosquitto):
    def restarted(filter: str) -> Server:
        toml = to(mosquitto.address, topic(filter, "out", local_prefix="", remote_prefix=""))
        return bridged(make_server, tmp_path, toml).start()

    server = restarted("a")
    assert eventually(lambda: is_up(server), within=20)
    server.stop()
    server = restarted("b")
    assert eventually(lambda: is_up(server), within=20)
    there, here = at(mosquitto), join(server=server)
    there.subscribe("#", qos=1)
    here.publish("a", "a")
    here.publish("b", "b")
    assert there.texts(1) == ["b"]
    there.leave()


BAD = {
    "no URL": (sink("http", "s", "a", url="here"), "`url`"),
    "no sink's filter": (sink("http", "s", "a/#/b", url="http://a"), "`a/#/b` is no filter"),
    "password in URL": (sink("http", "s", "a", url="http://u:p@a"), "`url`"),
    "long timeout": (sink("http", "s", "a", url="http://a", timeout="1h"), "`timeout`"),
    "no header": (sink("http", "s", "a", url="http://a", headers={"a b": "c"}), "'a b' is not the name of a header"),
    "no servers": (sink("kafka", "s", "a"), "`servers`"),
    "no Kafka topic": (sink("kafka", "s", "a", servers="a:1", topic="a b"), "`topic`"),
    "no keep-alive": (to("a:1", topic("#", "out"), keep_alive=0), "`keep-alive`"),
    "no broker": (to("a:1", topic("#", "out")), "they need the broker"),
    "no name": (to("a:1", topic("#", "out"), name="a b"), "`name` `a b`"),
    "twice": (to("a:1", topic("#", "out")) * 2, "two bridges with the name `peer`"),
    "no port": (to("a", topic("#", "out")), "`address`"),
    "no topics": (to("a:1"), "`topics`"),
    "no filter": (to("a:1", topic("a/#/b", "out")), "`a/#/b` is no filter"),
    "loop": (to("a:1", topic("#", "both"), version=4), "can be `both` only with version 5"),
    "wildcard": (to("a:1", topic("a", "out", remote_prefix="+/")), "must not have wildcards"),
    "no certificate": (to("a:1", topic("#", "out"), certificate="/a"), "belong together"),
    "no token": (devices("", filter="a"), "`token`"),
    "same token": (devices("t", "a", filter="a") + devices("t", "b", filter="b"), "the same `token`"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bridge_that_cannot_work_is_refused_by_name(make_server, tmp_path, what):
    toml, said = BAD[what]
    server = bridged(make_server, tmp_path, toml)
    if what == "no broker":
        del server.env["FIELDLINE_BROKER_LISTEN"]
    with pytest.raises(StartFailed) as failed:
        server.start()
    assert said in str(failed.value)
