"""Clients that do anything in any order, killed servers among it, against a model of which session must have what."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from harness import wire
from harness.broker_client import ACCESS, SESSION_TAKEN_OVER, BrokerClient, Publication
from harness.server import split_address

# `BROKER_MODEL_RUNS=50` asks for more of them; FIELDLINE_TEST_SEED is the seed of the first.
RUNS = int(os.environ.get("BROKER_MODEL_RUNS", 3))
STEPS = int(os.environ.get("BROKER_MODEL_STEPS", 250))
CLIENTS = 5
TOPICS = ["a", "a/b", "a/c", "b/c", "b"]
FILTERS = ["a", "a/#", "+/c", "#", "a/+", "b/#", "b"]


def matches(filter: str, topic: str) -> bool:
    """MQTT 3.1.1 §4.7."""
    levels, names = filter.split("/"), topic.split("/")
    for number, level in enumerate(levels):
        if level == "#":
            return True
        if number >= len(names) or level not in ("+", names[number]):
            return False
    return len(levels) == len(names)


@dataclass(eq=False)
class Due:
    """A message as one session has to get it, or may get it."""

    token: str
    topic: str
    publisher: str
    qos: set[int]
    """The QoS that are possible."""
    must: bool
    retain: bool = False
    is_repeated: bool = False


@dataclass(eq=False)
class ModelSession:
    """A session of the model."""

    is_kept: bool
    filters: dict[str, int] = field(default_factory=dict)
    due: list[Due] = field(default_factory=list)
    may_be_gone: bool = False
    """Whether it ends with a connection of which the broker need not have seen the end yet."""
    is_noted: bool = False
    """Whether anything of it was confirmed after its CONNACK: an empty session may be forgotten by a kill."""


class Player:
    """A client, and what the model knows of it."""

    def __init__(self, name: str, version: int, rng: random.Random):
        self.name = name
        self.client = BrokerClient(name, version=version, receive_maximum=rng.choice([0, 0, 1, 3, 20]))
        self.session: ModelSession | None = None
        self.seen = 0
        """Arrivals of earlier sessions."""


class Game:
    """A server, its clients, and the model."""

    def __init__(self, server, rng: random.Random):
        self.server, self.rng = server, rng
        self.players = [Player(f"c{n}", wire.V5 if n % 2 else wire.V311, rng) for n in range(CLIENTS)]
        self.oracle = BrokerClient("oracle")
        self.tokens = itertools.count()
        self.retained: dict[str, set[str]] = {}
        """Payloads that may be retained, by topic; the empty one for none."""
        self.unsettled: set[str] = set()
        """Payloads of publications with the retain flag that are not acknowledged."""
        self.replaced: dict[int, set[str]] = {}
        """What a publication with the retain flag replaces, once it is acknowledged."""
        self.open: dict[int, tuple[Player, list[tuple[ModelSession, Due]]]] = {}
        """What was published and is not acknowledged, by the identity of the publication, and who may have it."""
        self.publications: dict[int, Publication] = {}
        self.said: list[str] = []

    @property
    def address(self) -> tuple[str, int]:
        return split_address(self.server.listening["broker"])

    def say(self, text: str) -> None:
        self.said.append(text)

    # -- the model --

    def sessions(self) -> list[ModelSession]:
        return [player.session for player in self.players if player.session is not None]

    def route(self, player: Player, publication: Publication) -> list[tuple[ModelSession, Due]]:
        """Notes for all sessions that a message may come."""
        routed = []
        for session in self.sessions():
            qos = [qos for filter, qos in session.filters.items() if matches(filter, publication.topic)]
            if not qos:
                continue
            due = Due(
                publication.payload.decode(),
                publication.topic,
                player.name,
                {min(max(qos), publication.qos)},
                False,
            )
            session.due.append(due)
            routed.append((session, due))
        if publication.retain:
            payloads = self.retained.setdefault(publication.topic, {""})
            # Of two that are under way at once, either may be the later one; one that is sent again may have been taken before.
            self.replaced.setdefault(id(publication), payloads - self.unsettled)
            payloads.add(self.kept(publication))
            self.unsettled.add(self.kept(publication))
        return routed

    @staticmethod
    def kept(publication: Publication) -> str:
        return publication.payload.decode()

    def acknowledged(self, publication: Publication, routed: list[tuple[ModelSession, Due]]) -> None:
        """From now on all sessions that could get it must get it."""
        for session, due in routed:
            due.must |= session in self.sessions() and 0 not in due.qos
        if publication.retain:
            self.unsettled.discard(self.kept(publication))
            self.retained[publication.topic] -= self.replaced.pop(id(publication)) - {self.kept(publication)}

    # -- steps --

    def restart(self) -> None:
        """kill -9 and a start; all connections end."""
        self.say("kill")
        self.server.kill()
        for player in self.players:
            # What the broker has sent before it was killed has arrived all the same.
            while player.client.connected:
                player.client.look(5)
            self.settle_open(player)
            self.left(player)
        self.oracle.cut()
        self.server.start()
        self.oracle.connect(self.address, clean=True)

    def left(self, player: Player) -> None:
        """The connection of a client has ended, without a DISCONNECT."""
        if player.session is not None and not player.session.is_kept and not player.session.may_be_gone:
            player.session = None

    def settle_open(self, player: Player) -> None:
        """Takes notice of the acknowledgements that a client has got."""
        for key, (owner, routed) in list(self.open.items()):
            publication = self.publications[key]
            if owner is player and publication.acknowledged:
                self.acknowledged(publication, routed)
                player.session.is_noted = True
                del self.open[key]

    def connect(self, player: Player, clean: bool, expiry: int) -> None:
        """Connects, perhaps while another connection is there."""
        client = player.client
        is_v5 = client.version == wire.V5
        keeps = expiry > 0 if is_v5 else not clean
        taken_over = client.socket if client.connected and self.rng.random() < 0.7 else None
        self.say(f"{player.name}: connect clean={clean} keeps={keeps} takeover={taken_over is not None}")
        if client.connected and taken_over is None:
            self.cut(player)
        old = player.session
        client.expiry = expiry if is_v5 else 3600
        if taken_over is not None:
            # What comes on the old connection after this is not read: as if the network had lost it.
            client.socket = None
            self.settle_open(player)
        present = client.connect(self.address, clean=clean)
        if taken_over is not None:
            self.taken_over(taken_over, client)
        if old is not None and not present and (old.may_be_gone or not old.is_noted):
            old = None
        expected = old is not None and not clean and (old.is_kept or old.may_be_gone)
        assert present == expected, f"{player.name}: the broker says session present = {present}"
        if not present:
            self.new_session(player, keeps)
            return
        player.session.is_noted = True
        player.session.is_kept = keeps
        # It may be that the note of its end is not durable when the server ends.
        player.session.may_be_gone = not keeps
        for publication in client.repeat():
            _, routed = self.open.get(id(publication), (None, []))
            again = self.route(player, publication)
            if publication.qos == 2:
                # It is taken once: before, or now.
                both = {id(session): due for session, due in routed}
                for session, due in again:
                    if id(session) in both:
                        both[id(session)].qos |= due.qos
                        session.due.remove(due)
                kept = [(s, d) for s, d in routed if any(s is one for one, _ in again)]
                routed = kept
            else:
                for _, due in again:
                    due.is_repeated = True
                routed = again
            self.publications[id(publication)] = publication
            self.open[id(publication)] = (player, routed)

    def taken_over(self, old, client: BrokerClient) -> None:
        """Insists that the older connection is closed, with a reason on version 5."""
        old.settimeout(10)
        raw = b""
        try:
            while received := old.recv(65536):
                raw += received
        except ConnectionResetError:
            raw = b""
        old.close()
        while client.version == wire.V5 and raw and (taken := wire.take_packet(raw)):
            packet, raw = taken
            if packet.kind == wire.DISCONNECT:
                assert packet.body[0] == SESSION_TAKEN_OVER, f"{client}: closed with {packet}"

    def new_session(self, player: Player, keeps: bool) -> None:
        self.check(player, is_over=True)
        player.client.forget()
        player.seen = len(player.client.arrived)
        for key in [key for key, (owner, _) in self.open.items() if owner is player]:
            # Nobody sends it again.
            self.unsettled.discard(self.kept(self.publications[key]))
            self.replaced.pop(key, None)
            del self.open[key]
        player.session = ModelSession(keeps)

    def cut(self, player: Player) -> None:
        self.say(f"{player.name}: cut")
        self.settle_open(player)
        player.client.cut()
        self.left(player)

    def disconnect(self, player: Player) -> None:
        ends = player.client.version == wire.V5 and player.session.is_kept and self.rng.random() < 0.3
        self.say(f"{player.name}: disconnect ends={ends}")
        player.client.disconnect(expiry=0 if ends else None)
        self.settle_open(player)
        if ends or not player.session.is_kept:
            player.session = None
            # Nothing confirms a DISCONNECT; what is confirmed behind it does.
            self.oracle.publish("barrier/note", f"{next(self.tokens)}", 1, retain=True)
            self.oracle.until(lambda: not self.oracle.outgoing)

    def subscribe(self, player: Player) -> None:
        filter, qos = self.rng.choice(FILTERS), self.rng.randint(0, 2)
        self.say(f"{player.name}: subscribe {filter} {qos}")
        player.client.subscribe((filter, qos))
        self.settle_open(player)
        player.session.filters[filter] = qos
        player.session.is_noted = True
        for topic, payloads in self.retained.items():
            if matches(filter, topic):
                for payload in payloads - {""}:
                    due = Due(payload, topic, "", {1, 2} if qos == 2 else {qos}, False, retain=True)
                    # All are published with QoS 1 or 2.
                    due.must = len(payloads) == 1 and qos > 0 and player.session.is_kept
                    player.session.due.append(due)

    def unsubscribe(self, player: Player) -> None:
        filter = self.rng.choice(sorted(player.session.filters) or FILTERS)
        self.say(f"{player.name}: unsubscribe {filter}")
        player.client.unsubscribe(filter)
        self.settle_open(player)
        player.session.filters.pop(filter, None)

    def publish(self, player: Player, waits: bool) -> None:
        topic, qos = self.rng.choice(TOPICS), self.rng.choice([0, 1, 1, 2, 2])
        retain = qos > 0 and self.rng.random() < 0.2
        token = f"{next(self.tokens)}"
        self.say(f"{player.name}: publish {token} to {topic} qos={qos} retain={retain} waits={waits}")
        client = player.client
        publication = client.publish(topic, token, qos, retain=retain)
        routed = self.route(player, publication)
        if not qos:
            # It is read before the next step, so that subscriptions do not change before.
            client.ping()
            self.settle_open(player)
            return
        self.publications[id(publication)] = publication
        self.open[id(publication)] = (player, routed)
        if waits:
            client.until(lambda: publication.acknowledged)
        self.settle_open(player)

    def withhold(self, player: Player) -> None:
        client = player.client
        kinds = self.rng.sample([wire.PUBACK, wire.PUBREC, wire.PUBCOMP], self.rng.randint(1, 3))
        self.say(f"{player.name}: withholds {kinds}")
        client.withheld = set(kinds)
        client.keeps_unreleased = self.rng.random() < 0.5

    def release(self, player: Player) -> None:
        self.say(f"{player.name}: releases")
        player.client.release()
        player.client.look(0)
        self.settle_open(player)

    def step(self) -> None:
        """Something, by chance."""
        rng = self.rng
        if rng.random() < 0.02:
            return self.restart()
        player = rng.choice(self.players)
        if rng.random() < 0.1 and player.client.connected:
            # Nobody waits for its acknowledgement, and the next step may be the end of the server.
            self.publish(player, waits=False)
            if rng.random() < 0.3:
                self.restart()
            else:
                # Otherwise it could be taken after a later step of another client.
                player.client.ping()
                self.settle_open(player)
            return None
        if not player.client.connected or rng.random() < 0.05:
            return self.connect(player, rng.random() < 0.15, rng.choice([0, 3600, 3600, 3600]))
        player.client.look(0)
        self.settle_open(player)
        step = rng.choices(
            [self.cut, self.disconnect, self.subscribe, self.unsubscribe, self.withhold, self.release, None],
            [2, 2, 4, 1, 2, 3, 12],
        )[0]
        return step(player) if step else self.publish(player, waits=True)

    # -- the comparison --

    def finish(self) -> None:
        """Lets every session get what it has, and compares."""
        for player in self.players:
            if not player.client.connected:
                self.connect(player, False, 3600)
            self.release(player)
            player.client.until(lambda: not player.client.outgoing)
            self.settle_open(player)
        assert not self.open
        for player in self.players:
            self.barrier(player)
            self.check(player)
        self.check_retained()

    def barrier(self, player: Player) -> None:
        """Waits until the session has all that was queued before."""
        name = f"barrier/{player.name}"
        player.client.subscribe((name, 2))
        token = f"barrier{next(self.tokens)}"
        self.oracle.publish(name, token, 2)
        self.oracle.until(lambda: not self.oracle.outgoing)
        player.client.until(lambda: any(one.payload == token.encode() for one in player.client.arrived[player.seen :]))

    def check(self, player: Player, is_over: bool = False) -> None:
        """Compares what has arrived with what was due; a session that has ended need not have got everything."""
        assert not player.client.faults, player.client.faults
        if player.session is None:
            return
        arrived = [one for one in player.client.arrived[player.seen :] if not one.topic.startswith("barrier/")]
        counts = Counter((one.payload.decode(), one.retain) for one in arrived)
        due: dict[tuple[str, bool], list[Due]] = {}
        for one in player.session.due:
            due.setdefault((one.token, one.retain), []).append(one)
        for key, count in counts.items():
            assert key in due, f"{player.name} has got {key}, which no subscription of it matched"
            # At QoS 1 a repetition is no fault.
            if all(one.qos == {2} for one in due[key]):
                ids = [one.packet_id for one in arrived if (one.payload.decode(), one.retain) == key]
                assert count <= len(due[key]), f"{player.name} has got {key} of QoS 2 {count} times, as packets {ids}"
            for arrival in arrived:
                if (arrival.payload.decode(), arrival.retain) == key:
                    possible = set().union(*(one.qos for one in due[key]))
                    assert arrival.qos in possible, f"{player.name} has got {key} with QoS {arrival.qos}"
        if is_over:
            return
        for key, those in due.items():
            needed = sum(one.must for one in those)
            got = counts[key]
            assert got >= min(needed, 1) and (got >= needed or any(1 in one.qos for one in those)), (
                f"{player.name} has got {key} {got} times instead of {needed}: {those}"
            )
        self.check_order(player, [one.payload.decode() for one in arrived if not one.retain and one.qos])

    @staticmethod
    def check_order(player: Player, arrived: list[str]) -> None:
        first = {token: place for place, token in reversed(list(enumerate(arrived)))}
        last: dict[tuple[str, str], tuple[int, str]] = {}
        for one in player.session.due:
            if one.retain or not one.must or one.is_repeated or 0 in one.qos:
                continue
            place = first[one.token]
            before, token = last.get((one.publisher, one.topic), (-1, ""))
            assert before < place, f"{player.name} has got {one.token} before {token}"
            last[one.publisher, one.topic] = (place, one.token)

    def check_retained(self) -> None:
        """Compares what is retained."""
        reader = BrokerClient("reader")
        reader.connect(self.address, clean=True)
        reader.subscribe(("#", 0))
        needed = {topic for topic, payloads in self.retained.items() if "" not in payloads}
        reader.until(lambda: needed <= {one.topic for one in reader.arrived})
        reader.ping()
        for one in reader.arrived:
            if not one.topic.startswith(("$", "barrier/")):
                assert one.payload.decode() in self.retained.get(one.topic, ()), (
                    f"retained in {one.topic}: {one.payload}"
                )
        reader.disconnect()


@pytest.mark.timeout(60 + 60 * RUNS)
@pytest.mark.parametrize("run", range(RUNS))
def test_sessions_have_what_the_model_says(make_server, run):
    number = int(os.environ.get("FIELDLINE_TEST_SEED", time.time_ns() & 0xFFFFFFFF)) + run
    print(f"FIELDLINE_TEST_SEED={number}")
    server = make_server(demo=False, env=ACCESS).start()
    game = Game(server, random.Random(number))
    game.oracle.connect(game.address, clean=True)
    try:
        for _ in range(STEPS):
            game.step()
        game.restart()
        game.finish()
    except BaseException:
        print("\n".join(game.said))
        raise
