"""A client of the publish/subscribe broker that keeps its session as the specification demands, packet by packet.

What outlives a connection is here: what was published and not acknowledged, what was received at QoS 2 and not released.
Acknowledgements can be withheld, and connections end whenever a test wants it.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from . import wire

ACCESS = {"FIELDLINE_BROKER_LISTEN": "127.0.0.1:0", "FIELDLINE_BROKER_ACCESS": "anyone"}
"""Settings with which the broker is there, for everyone."""

DUP, RETAIN = 0x08, 0x01
SESSION_TAKEN_OVER = 0x8E


class Arrival(NamedTuple):
    """A message as the application of the client gets it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    packet_id: int | None


@dataclass
class Publication:
    """A message of QoS 1 or 2 that a client sends."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    packet_id: int
    acknowledged: bool = False
    """Whether the broker has taken it: PUBACK or PUBREC has come."""
    done: bool = False


class BrokerClient:
    """One client over all its connections."""

    def __init__(self, client_id: str, *, version: int = wire.V311, expiry: int = 3600, receive_maximum: int = 0):
        self.client_id = client_id
        self.version = version
        self.expiry = expiry
        """Seconds; only version 5 says it."""
        self.receive_maximum = receive_maximum
        self.socket: socket.socket | None = None
        self.arrived: list[Arrival] = []
        self.outgoing: dict[int, Publication] = {}
        self.unreleased: dict[int, bytes] = {}
        """Payloads of QoS 2 by packet identifier, until their PUBREL."""
        self.withheld: set[int] = set()
        """Kinds of acknowledgements that are not sent for now."""
        self.keeps_unreleased = False
        """Whether it does not send PUBREL for now."""
        self.held: list[tuple[int, bytes]] = []
        self.faults: list[str] = []
        self.ended_with: int | None = None
        self.kinds: Counter[int] = Counter()
        """Packets received on this connection, by kind."""
        self._pending = b""
        self._outbox = bytearray()
        self._answers: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return f"<{self.client_id}>"

    # -- connections --

    def connect(self, address: tuple[str, int], *, clean: bool = False, within: float = 20) -> bool:
        """Connects, takes up the session and returns whether the broker had one."""
        self.cut()
        self.socket = socket.create_connection(address, within)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._pending, self._answers, self.ended_with = b"", {}, None
        self.kinds.clear()
        props = b""
        if self.version == wire.V5:
            props += struct.pack(">BI", 0x11, self.expiry)
            props += struct.pack(">BH", 0x21, self.receive_maximum) if self.receive_maximum else b""
        self._send(wire.connect(self.version, self.client_id, clean=clean, keep_alive=0, props=props))
        self.until(lambda: wire.CONNACK in self._answers or not self.connected, within)
        body = self._answers.pop(wire.CONNACK, None)
        if body is None:
            raise ConnectionError(f"{self}: no CONNACK")
        assert body[1] == 0, f"{self}: refused with {body[1]:#04x}"
        present = bool(body[0] & 1)
        assert not (clean and present), f"{self}: a clean start, but the broker says that there is a session"
        return present

    def cut(self) -> None:
        """Ends the connection without a DISCONNECT."""
        if self.socket is not None:
            self.socket.close()
        self.socket = None
        self._outbox.clear()
        self.held.clear()

    def disconnect(self, expiry: int | None = None) -> None:
        """Ends the connection in good order; returns when the broker has closed it."""
        if expiry is not None and self.version == wire.V5:
            self._send(wire.frame(wire.DISCONNECT, b"\0\x05" + struct.pack(">BI", 0x11, expiry)))
        else:
            self._send(wire.BYE)
        self.until(lambda: not self.connected)

    @property
    def connected(self) -> bool:
        """Whether the connection is open, as far as it knows."""
        return self.socket is not None

    def forget(self) -> None:
        """Drops the state of a session that the broker does not have any more."""
        self.outgoing.clear()
        self.unreleased.clear()

    # -- sending --

    def publish(self, topic: str, payload: str | bytes, qos: int, *, retain: bool = False) -> Publication:
        """Sends a message and does not wait."""
        raw = payload.encode() if isinstance(payload, str) else payload
        packet_id = next(one for one in range(1, 65536) if one not in self.outgoing) if qos else 0
        publication = Publication(topic, raw, qos, retain, packet_id)
        if qos:
            self.outgoing[packet_id] = publication
        self._send(self._publish(publication))
        return publication

    def repeat(self) -> list[Publication]:
        """Sends again what was not acknowledged on the last connection, in its order; returns the messages among it."""
        again = [one for one in self.outgoing.values() if not one.acknowledged]
        self._send(b"".join(self._again(one) for one in self.outgoing.values()))
        return again

    def _again(self, publication: Publication) -> bytes:
        if publication.acknowledged:
            return b"" if self.keeps_unreleased else self._pubrel(publication.packet_id)
        return self._publish(publication, dup=True)

    def release(self) -> None:
        """Sends the acknowledgements that were withheld, and withholds no more."""
        self.withheld.clear()
        held, self.held = self.held, []
        self._send(b"".join(raw for _, raw in held))
        if self.keeps_unreleased:
            self.keeps_unreleased = False
            waiting = [one for one in self.outgoing.values() if one.acknowledged]
            self._send(b"".join(self._pubrel(one.packet_id) for one in waiting))

    def subscribe(self, *filters: tuple[str, int]) -> None:
        """Subscribes and waits for the SUBACK."""
        self._send(wire.subscribe(self.version, list(filters), 65535))
        self.until(lambda: wire.SUBACK in self._answers or not self.connected)
        assert wire.SUBACK in self._answers, f"{self}: closed instead of a SUBACK"
        codes = self._answers.pop(wire.SUBACK)[-len(filters) :]
        assert list(codes) == [qos for _, qos in filters], f"{self}: {filters} were granted as {list(codes)}"

    def unsubscribe(self, *filters: str) -> None:
        """Unsubscribes and waits for the UNSUBACK."""
        self._send(wire.unsubscribe(self.version, list(filters), 65535))
        self.until(lambda: wire.UNSUBACK in self._answers or not self.connected)
        assert self._answers.pop(wire.UNSUBACK, None), f"{self}: closed instead of an UNSUBACK"

    def ping(self) -> None:
        """A PINGREQ and its answer: the broker has read all that was sent before."""
        self._send(wire.PING)
        self.until(lambda: wire.PINGRESP in self._answers or not self.connected)
        self._answers.pop(wire.PINGRESP, None)

    def _send(self, raw: bytes) -> None:
        """Sends; a connection that has ended is noticed by the next look."""
        is_sending = bool(self._outbox)
        self._outbox += raw
        # What is received meanwhile is answered behind what is being sent.
        while self._outbox and not is_sending and self.socket is not None:
            try:
                del self._outbox[: self.socket.send(self._outbox)]
            except BlockingIOError:
                # The broker may wait until this client reads.
                readable, _, _ = select.select([self.socket], [self.socket], [], 1)
                if readable:
                    self._receive()
            except OSError:
                self._outbox.clear()

    def _publish(self, one: Publication, dup: bool = False) -> bytes:
        return wire.publish(
            self.version, one.topic, one.payload, one.qos, one.packet_id, retain=one.retain, dup=dup and one.qos > 0
        )

    @staticmethod
    def _pubrel(packet_id: int) -> bytes:
        return wire.frame(wire.PUBREL, struct.pack(">H", packet_id), 2)

    # -- receiving --

    def look(self, within: float = 0) -> None:
        """Handles what has arrived, after waiting for something that long."""
        if self.socket is not None and select.select([self.socket], [], [], within)[0]:
            self._receive()

    def until(self, check, within: float = 20) -> None:
        """Handles what arrives until `check` is true."""
        deadline = time.monotonic() + within
        while not check():
            assert time.monotonic() < deadline, f"{self}: not so within {within} s"
            assert self.connected, f"{self}: the connection has ended, with {self.ended_with}"
            self.look(0.1)

    def _receive(self) -> None:
        try:
            received = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            return self.cut()
        self._pending += received
        answers: list[bytes] = []
        while (taken := wire.take_packet(self._pending)) is not None:
            packet, self._pending = taken
            answers.append(self._handle(packet))
        self._send(b"".join(answers))

    def _handle(self, packet: wire.Packet) -> bytes:
        self.kinds[packet.kind] += 1
        if packet.kind == wire.PUBLISH:
            return self._on_publish(packet)
        if packet.kind in (wire.CONNACK, wire.SUBACK, wire.UNSUBACK, wire.PINGRESP):
            self._answers[packet.kind] = packet.body or b"\0"
            return b""
        if packet.kind == wire.DISCONNECT:
            self.ended_with = packet.body[0] if packet.body else 0
            return b""
        packet_id = struct.unpack_from(">H", packet.body)[0]
        if packet.kind == wire.PUBREL:
            self.unreleased.pop(packet_id, None)
            return self._answer(wire.PUBCOMP, packet_id)
        return self._on_acknowledgement(packet, packet_id)

    def _on_publish(self, packet: wire.Packet) -> bytes:
        message = wire.read_publish(self.version, packet)
        arrival = Arrival(message.topic, message.payload, message.qos, bool(packet.flags & RETAIN), message.packet_id)
        if message.qos == 2:
            known = self.unreleased.get(message.packet_id)
            if known is None:
                self.unreleased[message.packet_id] = message.payload
                self.arrived.append(arrival)
            elif known != message.payload:
                self.faults.append(
                    f"{self}: packet identifier {message.packet_id} belongs to {known[:40]!r}, "
                    f"which is not released, and came again with {message.payload[:40]!r}"
                )
            return self._answer(wire.PUBREC, message.packet_id)
        self.arrived.append(arrival)
        return self._answer(wire.PUBACK, message.packet_id) if message.qos else b""

    def _on_acknowledgement(self, packet: wire.Packet, packet_id: int) -> bytes:
        code = packet.body[2] if len(packet.body) > 2 else 0
        publication = self.outgoing.get(packet_id)
        if publication is None:
            self.faults.append(f"{self}: {packet} is about no message")
            return b""
        if code >= 0x80 and not (packet.kind == wire.PUBCOMP and publication.acknowledged):
            self.faults.append(f"{self}: {publication} was answered with {packet}")
        if packet.kind == wire.PUBREC:
            publication.acknowledged = True
            return b"" if self.keeps_unreleased else self._pubrel(packet_id)
        expected = wire.PUBACK if publication.qos == 1 else wire.PUBCOMP
        if packet.kind != expected:
            self.faults.append(f"{self}: {publication} was answered with {packet}")
        publication.acknowledged = publication.done = True
        del self.outgoing[packet_id]
        return b""

    def _answer(self, kind: int, packet_id: int) -> bytes:
        raw = wire.frame(kind, struct.pack(">H", packet_id))
        if kind in self.withheld:
            self.held.append((kind, raw))
            return b""
        return raw
