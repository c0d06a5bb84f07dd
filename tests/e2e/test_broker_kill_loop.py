"""kill -9 of the broker under load, again and again: what it has acknowledged arrives, at QoS 2 once, and in order."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, defaultdict

import pytest

from harness import wire
from harness.broker_client import ACCESS, Arrival, BrokerClient
from harness.server import eventually, split_address

# `BROKER_KILLS=25` asks for more of them.
ROUNDS = int(os.environ.get("BROKER_KILLS", 4))
PUBLISHERS = 4
GROUP = 3
# So much is sent at most between two kills: a queue holds more.
MOST_PER_ROUND = 3_000
DURABILITY = ["fsync", "os", "interval:20"]


class Worker(threading.Thread):
    """A client on a thread of its own, which comes back whenever the broker does."""

    def __init__(self, client: BrokerClient, site: Site):
        super().__init__(daemon=True)
        self.client, self.site = client, site
        self.present = threading.Event()
        """Whether it is to be connected."""
        self.present.set()
        self.error: BaseException | None = None
        self.lost_sessions = 0
        self.connections = 0

    def run(self) -> None:
        try:
            while not self.site.over.is_set():
                if not self.present.is_set():
                    self.client.cut()
                    self.present.wait(0.05)
                elif self.client.connected:
                    self.work()
                elif self.site.is_up.wait(0.05):
                    self.enter()
        except BaseException as error:  # noqa: BLE001
            self.error = error
        finally:
            self.client.cut()

    def enter(self) -> None:
        """Connects, if the broker does not end just now."""
        try:
            is_known = self.client.connect(self.site.address)
        except OSError:
            return self.client.cut()
        except AssertionError:
            if self.client.connected:
                raise
            return None
        if not is_known:
            self.lost_sessions += self.connections > 0
            self.client.forget()
        self.connections += 1
        self.begin()

    def begin(self) -> None:
        """What comes first on a connection."""

    def work(self) -> None:
        """A while of its life."""
        self.client.look(0.05)


class Publisher(Worker):
    """Numbers its messages and keeps some of them in flight."""

    def __init__(self, name: str, version: int, site: Site, window: int):
        super().__init__(BrokerClient(name, version=version), site)
        self.window = window
        self.sent: list = []
        self.retained: list = []
        self.limit = 0

    def begin(self) -> None:
        self.client.repeat()

    def work(self) -> None:
        while self.client.connected and len(self.client.outgoing) < self.window and len(self.sent) < self.limit:
            self.send()
        self.client.look(0.05)

    def send(self) -> None:
        number = len(self.sent)
        # Now and then a large one, so that the store gives few at a time.
        payload = f"{self.client.client_id}:{number}:".ljust(30_000 if number % 50 == 7 else 0, "x")
        qos = 1 + number % 3 % 2
        self.sent.append(self.client.publish(f"load/{self.client.client_id}/{number % 2}", payload, qos))
        if number % 10 == 0:
            self.retained.append(
                self.client.publish(f"state/{self.client.client_id}", str(number), 1 + number % 20 // 10, retain=True)
            )

    @property
    def acknowledged(self) -> int:
        """How many of its messages the broker has taken."""
        return sum(one.acknowledged for one in self.sent)

    @property
    def is_done(self) -> bool:
        """Whether everything is sent and acknowledged."""
        return len(self.sent) >= self.limit and not self.client.outgoing


class Subscriber(Worker):
    """Gets everything, in a session that survives."""

    def __init__(self, name: str, filter: str, qos: int, version: int, site: Site, receive_maximum: int = 0):
        super().__init__(BrokerClient(name, version=version, receive_maximum=receive_maximum), site)
        self.filters = [(filter, qos)]


class Site:
    """Where the broker is, for as long as it is."""

    def __init__(self, server):
        self.server = server
        self.is_up = threading.Event()
        self.over = threading.Event()
        self.address: tuple[str, int] = ("", 0)

    def start(self) -> None:
        self.server.start()
        self.address = split_address(self.server.listening["broker"])
        self.is_up.set()

    def kill(self) -> None:
        self.is_up.clear()
        self.server.kill()


def read(arrival: Arrival) -> tuple[str, int]:
    """Publisher and number of a message."""
    name, number, _ = arrival.payload.decode().split(":", 2)
    return name, int(number)


def check_arrivals(subscriber: Subscriber, publishers: list[Publisher], is_complete: bool = True) -> None:
    """Insists on all that was acknowledged, each of QoS 2 once, and the order of each publisher and topic."""
    who, arrived, highest = subscriber.client.client_id, subscriber.client.arrived, subscriber.filters[0][1]
    counts = Counter(map(read, arrived))
    by_name = {one.client.client_id: one for one in publishers}
    for publisher in publishers:
        name = publisher.client.client_id
        if is_complete:
            missing = [n for n, one in enumerate(publisher.sent) if one.acknowledged and not counts[name, n]]
            assert not missing, (
                f"{who}: {len(missing)} of {publisher.acknowledged} acknowledged messages of {name} are lost, "
                f"of QoS {[publisher.sent[n].qos for n in missing[:10]]}: {missing[:10]}"
            )
        doubled = [n for n, one in enumerate(publisher.sent) if min(one.qos, highest) == 2 and counts[name, n] > 1]
        ids = [one.packet_id for one in arrived if doubled and read(one) == (name, doubled[0])]
        assert not doubled, f"{who}: QoS 2 of {name} came more than once: {doubled[:10]}, the first as packets {ids}"
    first: defaultdict[tuple[str, int], int] = defaultdict(lambda: -1)
    seen = set()
    for name, number in map(read, arrived):
        # A repetition of QoS 1 may go to another member of a group, so that one that was sent later comes first.
        is_ordered = is_complete or by_name[name].sent[number].qos == 2
        if is_ordered and (name, number) not in seen:
            seen.add((name, number))
            before, first[name, number % 2] = first[name, number % 2], number
            assert before < number, f"{who}: {number} of {name} came behind {before}"


@pytest.mark.timeout(120 + 12 * ROUNDS)
def test_the_broker_loses_and_doubles_nothing_by_kills(make_server, seed):
    server = make_server(demo=False, env=ACCESS | {"FIELDLINE_BROKER_QUEUE_MESSAGES": "10000000"})
    usual = server.env
    site = Site(server)
    site.start()
    publishers = [
        Publisher(f"p{number}", wire.V5 if number % 2 else wire.V311, site, seed.choice([1, 5, 20, 50]))
        for number in range(PUBLISHERS)
    ]
    plain = [
        Subscriber("s1", "load/#", 1, wire.V311, site),
        Subscriber("s2", "load/#", 2, wire.V311, site),
        Subscriber("s2-v5", "load/#", 2, wire.V5, site, receive_maximum=7),
        Subscriber("s2-away", "load/#", 2, wire.V5, site),
    ]
    group = [Subscriber(f"g{number}", "$share/g/load/#", 2, wire.V5, site) for number in range(GROUP)]
    subscribers = plain + group
    for one in subscribers:
        one.client.connect(site.address)
        one.client.subscribe(*one.filters)
        one.client.cut()
        one.connections = 1
    everyone: list[Worker] = publishers + subscribers
    for one in everyone:
        one.start()
    started = time.monotonic()
    try:
        for number in range(ROUNDS):
            for one in publishers:
                one.limit = len(one.sent) + MOST_PER_ROUND // PUBLISHERS
            target = sum(one.acknowledged for one in publishers) + seed.randint(10, MOST_PER_ROUND - 100)
            leaving = seed.sample(subscribers, seed.randint(1, len(subscribers) - 2))
            for one in leaving:
                one.present.clear()
            eventually(
                lambda: any(one.error for one in everyone) or sum(one.acknowledged for one in publishers) >= target,
                within=40,
            )
            # Checkpoints are a second apart: some kills come soon behind one.
            time.sleep(seed.choice([0, 0, seed.uniform(0, 1.2)]))
            for one in seed.sample(leaving, len(leaving) // 2):
                one.present.set()
            site.kill()
            server.env = usual | {"FIELDLINE_JOURNAL_DURABILITY": seed.choice(DURABILITY)}
            if number % 5 == 4:
                # Recovery itself is interrupted.
                server.spawn()
                time.sleep(seed.uniform(0, 0.25))
                server.kill()
            site.start()
            for one in everyone:
                one.present.set()
            assert not any(one.error for one in everyone), [one.error for one in everyone if one.error]
        eventually(lambda: all(one.is_done for one in publishers) or any(one.error for one in everyone), within=60)
        assert not any(one.error for one in everyone), [one.error for one in everyone if one.error]
        # Behind all that waits in a queue.
        for _ in range(2):
            for one in publishers:
                one.limit += 2
            eventually(lambda: all(one.is_done for one in publishers))
            for one in plain:
                last = {(publisher.client.client_id, len(publisher.sent) - 1) for publisher in publishers}
                try:
                    eventually(lambda: last <= set(map(read, one.client.arrived[-200:])) or one.error, within=30)
                except AssertionError:
                    check_arrivals(one, publishers)
                    raise
        newcomer = BrokerClient("newcomer")
        newcomer.connect(site.address)
        newcomer.subscribe(("state/#", 1))
        newcomer.until(lambda: len(newcomer.arrived) == PUBLISHERS)
        eventually(lambda: group_has_all(group, publishers) or any(one.error for one in group), within=30)
    finally:
        site.over.set()
        for one in everyone:
            one.join(30)
    assert not any(one.error for one in everyone), [one.error for one in everyone if one.error]
    assert not any(one.lost_sessions for one in everyone), "a session was not there after a restart"
    assert not any(one.client.faults for one in everyone), [one.client.faults[:3] for one in everyone]
    for one in plain:
        check_arrivals(one, publishers)
    together = [arrival for one in group for arrival in one.client.arrived]
    doubled_or_lost = Counter(map(read, together))
    for publisher in publishers:
        for number, one in enumerate(publisher.sent):
            count = doubled_or_lost[publisher.client.client_id, number]
            assert count >= 1, f"the group has not got {number} of {publisher.client}, of QoS {one.qos}"
            assert one.qos == 1 or count == 1, f"the group has got {number} of {publisher.client} {count} times"
    for one in group:
        check_arrivals(one, publishers, is_complete=False)
    retained = {one.topic: one.payload for one in newcomer.arrived}
    assert retained == {one.retained[-1].topic: one.retained[-1].payload for one in publishers}
    acknowledged = sum(one.acknowledged for one in publishers)
    took = time.monotonic() - started
    print(f"{ROUNDS} kills in {took:.0f} s: {acknowledged} messages were acknowledged, none was lost")
    assert acknowledged > ROUNDS * 50


def group_has_all(group: list[Subscriber], publishers: list[Publisher]) -> bool:
    """Whether each message has arrived at some member."""
    got = {read(arrival) for one in group for arrival in one.client.arrived}
    return all((one.client.client_id, n) in got for one in publishers for n in range(len(one.sent)))
