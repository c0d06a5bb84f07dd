"""How many messages clients may publish and get, and how many sessions there may be."""

from __future__ import annotations

import pytest

from harness import wire
from harness.broker import KEPT
from harness.rest import unique
from harness.server import Server, StartFailed, eventually
from harness.wire import V5, V311, Wire

# So many at first, and none that comes back while a test lasts.
FEW = "3:3600"


def dropped(server: Server, count: int) -> None:
    """Waits until the broker says that so many messages were dropped."""
    eventually(lambda: server.metrics().get("broker_dropped_messages_total") == count)


def test_a_client_publishes_no_more_than_it_may(start_broker, join, raw):
    server = start_broker(incoming_rate_limit=FEW)
    subscriber, topic = join(server=server), unique("topic")
    subscriber.subscribe(topic)
    publisher = join(server=server)
    assert [publisher.publish(topic, str(number), qos=1) for number in range(4)] == [0, 0, 0, 0x97]
    connection = raw(V5, server=server)
    connection.connect(unique("client"))
    for number in range(4):
        connection.send(wire.publish(V5, topic, "raw", 2, number + 1))
        packet = connection.expect(wire.PUBREC)
        assert packet.body[2:3] in (b"", b"\0") if number < 3 else packet.body[2] == 0x97
    # One of QoS 0 has no answer, and the connection stays.
    publisher.send(topic, "x", qos=0)
    assert publisher.subscribe(unique("topic")) == [1]
    other = join(server=server)
    assert other.publish(topic, "other", qos=2) == 0
    assert subscriber.texts(7) == ["0", "1", "2", "raw", "raw", "raw", "other"]
    # A new connection begins anew.
    publisher.leave()
    again = join(server=server, client_id=publisher.client_id)
    assert again.publish(topic, "again") == 0
    dropped(server, 3)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_before_version_5_the_connection_ends(start_broker, qos):
    server = start_broker(incoming_rate_limit="1:3600")
    with Wire(server.broker_address, V311) as client:
        assert client.connect(unique("client")) == 0
        client.send(wire.publish(V311, "a", "1", 0) + wire.publish(V311, "a", "2", qos, 1))
        client.ended()


def test_all_clients_together_publish_no_more_than_they_may(start_broker, join):
    server = start_broker(total_rate_limit=FEW)
    clients = [join(server=server) for _ in range(4)]
    assert [client.publish("a", "x", qos=1) for client in clients] == [0, 0, 0, 0x97]


def test_a_client_gets_no_more_messages_of_qos_0_than_it_may(start_broker, join):
    server = start_broker(outgoing_rate_limit=FEW)
    subscriber, publisher = join(server=server), join(server=server)
    subscriber.subscribe("a", qos=1)
    for number in range(5):
        publisher.send("a", str(number), qos=0)
    publisher.publish("a", "last", qos=1)
    assert subscriber.texts(4) == ["0", "1", "2", "last"]
    dropped(server, 2)


@pytest.mark.parametrize("version", ["3.1.1", "5.0"])
def test_no_more_is_kept_for_devices_than_permitted(start_broker, join, version):
    server = start_broker(kept_rate_limit=FEW)
    subscriber = join(version, server=server, **KEPT[version])
    subscriber.subscribe("a", qos=1)
    subscriber.leave()
    publisher = join(server=server)
    for number in range(5):
        assert publisher.publish("a", str(number), qos=1) == 0 or number >= 3
    again = join(version, subscriber.client_id, server=server, **KEPT[version])
    assert again.texts(3) == ["0", "1", "2"]
    again.gets_nothing_from(publisher, qos=0)


@pytest.mark.parametrize(("version", "code"), [(V5, 0x97), (V311, 3)])
def test_there_are_no_more_sessions_than_permitted(start_broker, join, version, code):
    server = start_broker(max_sessions=2)
    kept = join(server=server, client_id="kept", **KEPT["5.0"])
    kept.leave()
    join(server=server, client_id="here")
    with Wire(server.broker_address, version) as third:
        assert third.connect(unique("client")) == code
    # Those that exist go on.
    assert join(server=server, client_id="kept", **KEPT["5.0"]).session_present
    with Wire(server.broker_address, version) as taking:
        assert taking.connect("here") == 0


@pytest.mark.parametrize("limit", ["total", "incoming", "outgoing", "kept"])
def test_a_rate_that_is_none_is_refused_by_name(start_broker, limit):
    with pytest.raises(StartFailed, match=f"`{limit}-rate-limit`"):
        start_broker(**{f"{limit}_rate_limit": "10"})
