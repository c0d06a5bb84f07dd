"""What a kill of the server between two packets must not do to sessions, told one case at a time."""

import threading

import pytest

from harness import wire
from harness.broker_client import ACCESS, BrokerClient
from harness.server import eventually, split_address

UNLIMITED = {"FIELDLINE_BROKER_QUEUE_MESSAGES": "1000000"}


def numbers(client: BrokerClient) -> list[int]:
    """The payloads that have arrived, in their order."""
    return [int(one.payload[:8]) for one in client.arrived]


class Bench:
    """A server with a publisher and a subscriber whose sessions survive."""

    def __init__(self, server):
        self.server = server
        self.publisher = BrokerClient("publisher", version=wire.V5)
        self.subscriber = BrokerClient("subscriber", version=wire.V5)
        self.sent = 0

    @property
    def address(self) -> tuple[str, int]:
        return split_address(self.server.listening["broker"])

    def start(self, *filters: tuple[str, int]) -> None:
        """Starts the server; the subscriber subscribes and leaves."""
        self.server.start()
        self.publisher.connect(self.address)
        self.subscriber.connect(self.address)
        self.subscriber.subscribe(*filters)
        self.subscriber.disconnect()

    def publish(self, *qos: int, size: int = 8) -> None:
        """Publishes messages with the next numbers, and waits until they are acknowledged."""
        for one in qos:
            self.publisher.publish("a/b", f"{self.sent:08}".ljust(size), one)
            self.sent += 1
        self.publisher.until(lambda: not self.publisher.outgoing)

    def restart(self) -> None:
        """kill -9, and a start on the same data directory; the publisher is there again."""
        self.server.kill()
        self.publisher.cut()
        self.server.start()
        assert self.publisher.connect(self.address)
        self.publisher.repeat()

    def returns(self) -> None:
        """The subscriber comes back to its session."""
        assert self.subscriber.connect(self.address), "the session is gone"

    def barrier(self) -> None:
        """Waits until the subscriber has got all that was sent before."""
        last = self.sent
        self.publish(2)
        self.subscriber.until(lambda: last in numbers(self.subscriber))
        assert not self.publisher.faults and not self.subscriber.faults, self.publisher.faults + self.subscriber.faults


@pytest.fixture
def bench(make_server) -> Bench:
    return Bench(make_server(demo=False, env=ACCESS | UNLIMITED))


def test_what_waits_is_there_after_a_kill_in_its_order(bench):
    bench.start(("a/#", 2))
    bench.publish(*[1, 2] * 100)
    bench.restart()
    bench.publish(*[1, 2] * 100)
    bench.returns()
    bench.barrier()
    assert numbers(bench.subscriber) == list(range(bench.sent))


def test_a_message_that_was_released_does_not_come_again_behind_one_that_was_acknowledged(bench):
    """The client was away when they were sent; the acknowledgement of the first is not durable, that of the second is."""
    bench.start(("a/#", 2))
    bench.publish(1, 2)
    bench.returns()
    bench.subscriber.until(lambda: bench.subscriber.kinds[wire.PUBREL] == 1)
    bench.restart()
    bench.returns()
    bench.barrier()
    assert numbers(bench.subscriber).count(1) == 1


def test_a_message_that_was_released_does_not_come_again_behind_one_that_was_not_acknowledged(bench):
    """As above with all rows in the store."""
    bench.start(("a/#", 2))
    bench.publish(1, 2)
    bench.restart()
    bench.subscriber.withheld = {wire.PUBACK, wire.PUBCOMP}
    bench.returns()
    bench.subscriber.until(lambda: bench.subscriber.kinds[wire.PUBREL] == 1)
    bench.restart()
    bench.returns()
    bench.subscriber.release()
    bench.barrier()
    assert numbers(bench.subscriber).count(1) == 1


def test_more_in_flight_than_one_read_of_the_store_gives(bench):
    """What was received and released is not sent again, also if it is far behind in the queue."""
    bench.start(("a/#", 2))
    count = 8
    bench.publish(*[2] * count, size=300_000)
    bench.subscriber.withheld = {wire.PUBCOMP}
    bench.returns()
    bench.subscriber.until(lambda: bench.subscriber.kinds[wire.PUBREL] == count)
    # Two restarts: the first stores all that the journal has.
    bench.restart()
    bench.restart()
    bench.returns()
    bench.subscriber.release()
    bench.barrier()
    assert numbers(bench.subscriber) == list(range(count + 1))


def test_a_publisher_need_not_know_whether_its_message_was_taken(bench):
    """Killed between PUBREC and PUBREL: the repetition of PUBREL and of the next message change nothing."""
    bench.start(("a/#", 2))
    bench.publisher.keeps_unreleased = True
    for number in range(3):
        bench.publisher.publish("a/b", f"{number:08}", 2)
    bench.sent = 3
    bench.publisher.until(lambda: all(one.acknowledged for one in bench.publisher.outgoing.values()))
    bench.restart()
    # As if no PUBREC had come.
    for one in bench.publisher.outgoing.values():
        one.acknowledged = False
    bench.publisher.repeat()
    bench.publisher.release()
    bench.publisher.until(lambda: not bench.publisher.outgoing)
    bench.returns()
    bench.barrier()
    assert numbers(bench.subscriber) == list(range(4))


def test_a_full_queue_keeps_the_newest_messages_in_their_order(make_server):
    bench = Bench(make_server(demo=False, env=ACCESS | {"FIELDLINE_BROKER_QUEUE_MESSAGES": "20"}))
    bench.start(("a/#", 1))
    bench.publish(*[1] * 20)
    bench.restart()
    for _ in range(20):
        bench.publish(1)
    bench.returns()
    bench.subscriber.until(lambda: bench.sent - 1 in numbers(bench.subscriber))
    bench.subscriber.ping()
    assert numbers(bench.subscriber) == list(range(bench.sent - 20, bench.sent))


def test_large_retained_messages_do_not_keep_anyone_from_subscribing(bench):
    bench.server.start()
    bench.publisher.connect(bench.address)
    for number in range(12):
        bench.publisher.publish(f"r/{number}", f"{number:08}".ljust(900_000), 1, retain=True)
    bench.publisher.until(lambda: not bench.publisher.outgoing)
    bench.subscriber.connect(bench.address)
    bench.subscriber.subscribe(("r/#", 1))
    bench.subscriber.until(lambda: len(bench.subscriber.arrived) >= 12)
    assert sorted(numbers(bench.subscriber)) == list(range(12))


def test_a_clean_start_that_was_confirmed_is_not_undone_by_a_kill(bench):
    bench.start(("a/#", 1))
    bench.publish(1)
    bench.subscriber.connect(bench.address, clean=True)
    bench.restart()
    bench.subscriber.forget()
    bench.subscriber.connect(bench.address)
    bench.publish(1)
    bench.subscriber.ping()
    assert not bench.subscriber.arrived, "the old session came back"


def test_an_end_of_a_session_that_the_broker_has_confirmed_is_not_undone_by_a_kill(bench):
    bench.start(("a/#", 1))
    bench.returns()
    # DISCONNECT has no answer: what is confirmed for somebody else after it says that it is durable, too.
    witness = BrokerClient("witness", version=wire.V5)
    witness.connect(bench.address)
    witness.subscribe(("a/#", 1))
    bench.subscriber.disconnect(expiry=0)
    bench.publish(1)
    bench.restart()
    eventually(lambda: not bench.subscriber.connect(bench.address))


def test_a_session_that_was_not_to_be_kept_any_more_ends_when_it_is_taken_over(bench):
    """MQTT 5 §3.1.2.11.2: it ends with its connection, and a takeover ends that."""
    bench.start(("a/#", 1))
    bench.subscriber.expiry = 0
    bench.returns()
    second = BrokerClient("subscriber", version=wire.V5)
    assert not second.connect(bench.address)


@pytest.mark.parametrize("qos", [1, 2])
def test_takeovers_under_load_leave_no_message_behind(bench, qos, seed):
    """What the older connection was about to send comes on the newer one, which need not be cut for that."""
    bench.start(("a/#", qos))
    is_over = threading.Event()

    def load() -> None:
        while not is_over.is_set():
            bench.publish(*[qos] * seed.randint(1, 20))

    loading = threading.Thread(target=load)
    loading.start()
    older = []
    try:
        bench.returns()
        for _ in range(150):
            # Its acknowledgement is on its way to the older connection when the newer one takes over.
            for number in range(5):
                bench.subscriber.publish("other", str(number), 1)
            bench.subscriber.look(seed.choice([0, 0.001, 0.005]))
            if bench.subscriber.connected:
                older.append(bench.subscriber.socket)
                bench.subscriber.socket = None
            bench.returns()
            bench.subscriber.repeat()
            bench.subscriber.look(seed.choice([0, 0.01]))
    finally:
        is_over.set()
        loading.join()
    bench.barrier()
    arrived = numbers(bench.subscriber)
    assert set(arrived) == set(range(bench.sent)), f"missing: {sorted(set(range(bench.sent)) - set(arrived))[:20]}"
    first = list(dict.fromkeys(arrived))
    assert first == sorted(first), "the order is lost"
    if qos == 2:
        assert len(arrived) == len(first), "a message came more than once"
    for one in older:
        one.close()


def test_takeovers_of_a_publisher_double_and_lose_nothing(bench, seed):
    """What the older connection has just sent comes again on the newer one, while the broker still reads the older."""
    bench.start(("a/#", 2))
    bench.returns()
    older = []
    for _ in range(200):
        for _ in range(seed.randint(1, 30)):
            bench.publisher.publish("a/b", f"{bench.sent:08}", 2)
            bench.sent += 1
        bench.publisher.look(seed.choice([0, 0, 0.001]))
        bench.subscriber.look(0)
        if bench.publisher.connected:
            older.append(bench.publisher.socket)
            bench.publisher.socket = None
        assert bench.publisher.connect(bench.address)
        bench.publisher.repeat()
        bench.publisher.until(lambda: len(bench.publisher.outgoing) < 200)
    bench.publisher.until(lambda: not bench.publisher.outgoing)
    bench.barrier()
    assert numbers(bench.subscriber) == list(range(bench.sent))
    for one in older:
        one.close()
