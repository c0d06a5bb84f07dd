"""MQTT byte by byte, for what a well-behaved client library would not send, or hides."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from typing import NamedTuple

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = 8, 9, 10, 11, 12, 13, 14, 15

V31, V311, V5 = 3, 4, 5


class Closed(AssertionError):
    """The other side closed the connection where a packet was expected."""


class Packet(NamedTuple):
    """One packet; the body comes after the fixed header."""

    kind: int
    flags: int
    body: bytes


# -- encoding --


def varint(number: int) -> bytes:
    """A variable byte integer."""
    out = bytearray()
    while True:
        number, digit = number >> 7, number & 0x7F
        out.append(digit | (0x80 if number else 0))
        if not number:
            return bytes(out)


def text(value: str | bytes) -> bytes:
    """A string or binary data behind its length."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack(">H", len(raw)) + raw


def frame(kind: int, body: bytes, flags: int = 0) -> bytes:
    """A packet with its fixed header."""
    return bytes([kind << 4 | flags]) + varint(len(body)) + body


def properties(version: int, raw: bytes = b"") -> bytes:
    """The property section, which only version 5 has."""
    return varint(len(raw)) + raw if version == V5 else b""


def connect(
    version: int = V311,
    client_id: str = "",
    username: str | None = None,
    password: str | None = None,
    *,
    keep_alive: int = 60,
    clean: bool = True,
    level: int | None = None,
    name: str | None = None,
    will: tuple[str, bytes] | None = None,
    props: bytes = b"",
) -> bytes:
    """CONNECT; `level` and `name` override what belongs to the version."""
    flags = (0x80 if username is not None else 0) | (0x40 if password is not None else 0) | (0x02 if clean else 0)
    flags |= 0x04 if will else 0
    name = name or ("MQIsdp" if version == V31 else "MQTT")
    body = text(name) + bytes([version if level is None else level, flags]) + struct.pack(">H", keep_alive)
    body += properties(version, props) + text(client_id)
    if will:
        body += properties(version) + text(will[0]) + text(will[1])
    body += b"".join(text(field) for field in (username, password) if field is not None)
    return frame(CONNECT, body)


def publish(
    version: int,
    topic: str | bytes,
    payload: bytes | str,
    qos: int = 1,
    packet_id: int = 1,
    *,
    retain: bool = False,
    dup: bool = False,
    props: bytes = b"",
) -> bytes:
    """PUBLISH."""
    raw = payload.encode() if isinstance(payload, str) else payload
    identifier = struct.pack(">H", packet_id) if qos else b""
    return frame(PUBLISH, text(topic) + identifier + properties(version, props) + raw, dup << 3 | qos << 1 | retain)


def subscribe(version: int, filters: list[tuple[str, int]], packet_id: int = 1) -> bytes:
    """SUBSCRIBE."""
    asked = b"".join(text(topic) + bytes([qos]) for topic, qos in filters)
    return frame(SUBSCRIBE, struct.pack(">H", packet_id) + properties(version) + asked, 2)


def unsubscribe(version: int, filters: list[str], packet_id: int = 1) -> bytes:
    """UNSUBSCRIBE."""
    return frame(UNSUBSCRIBE, struct.pack(">H", packet_id) + properties(version) + b"".join(map(text, filters)), 2)


def puback(packet_id: int) -> bytes:
    """PUBACK that says success, in any version."""
    return frame(PUBACK, struct.pack(">H", packet_id))


PING = frame(PINGREQ, b"")
BYE = frame(DISCONNECT, b"")


# -- decoding --


def take_varint(raw: bytes, at: int) -> tuple[int, int] | None:
    """A variable byte integer and the position behind it; `None` if it is cut off."""
    number = shift = 0
    for position in range(at, min(at + 4, len(raw))):
        number |= (raw[position] & 0x7F) << shift
        shift += 7
        if not raw[position] & 0x80:
            return number, position + 1
    assert len(raw) < at + 4, "a variable byte integer of more than four bytes"
    return None


def take_packet(raw: bytes) -> tuple[Packet, bytes] | None:
    """The first packet and what follows it; `None` if it is not complete."""
    if len(raw) < 2 or (size := take_varint(raw, 1)) is None:
        return None
    length, start = size
    if len(raw) < start + length:
        return None
    return Packet(raw[0] >> 4, raw[0] & 0x0F, raw[start : start + length]), raw[start + length :]


class Message(NamedTuple):
    """A PUBLISH as it was received."""

    topic: str
    payload: bytes
    qos: int
    packet_id: int | None


def read_publish(version: int, packet: Packet) -> Message:
    """The fields of a PUBLISH."""
    qos = packet.flags >> 1 & 3
    size = struct.unpack_from(">H", packet.body)[0]
    topic, at = packet.body[2 : 2 + size].decode(), 2 + size
    packet_id = None
    if qos:
        packet_id, at = struct.unpack_from(">H", packet.body, at)[0], at + 2
    if version == V5:
        length, at = take_varint(packet.body, at)
        at += length
    return Message(topic, packet.body[at:], qos, packet_id)


class Wire:
    """A connection on which a test sends bytes and reads packets."""

    def __init__(
        self,
        address: tuple[str, int],
        version: int = V311,
        *,
        tls: ssl.SSLContext | None = None,
        timeout: float = 10,
        source: str | None = None,
    ):
        connection = socket.create_connection(address, timeout, (source, 0) if source else None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_hostname="localhost")
        self._use(connection, version, timeout)

    @classmethod
    def over(cls, connection: socket.socket, version: int = V311, timeout: float = 10) -> Wire:
        """One on a connection that is open already."""
        made = cls.__new__(cls)
        made._use(connection, version, timeout)
        return made

    def _use(self, connection: socket.socket, version: int, timeout: float) -> None:
        self.version, self.timeout, self.socket, self.pending = version, timeout, connection, b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Closes without a DISCONNECT."""
        self.socket.close()

    def send(self, raw: bytes) -> None:
        """Sends bytes as they are."""
        self.socket.sendall(raw)

    def receive(self, within: float | None = None) -> Packet | None:
        """The next packet, or `None` when the other side has closed; silence is a failure."""
        deadline = time.monotonic() + (self.timeout if within is None else within)
        while (taken := take_packet(self.pending)) is None:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                received = self.socket.recv(65536)
            except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
                return None
            except TimeoutError:
                raise AssertionError(f"neither a packet nor a close within {within or self.timeout} s") from None
            if not received:
                return None
            self.pending += received
        packet, self.pending = taken
        return packet

    def expect(self, kind: int, within: float | None = None) -> Packet:
        """The next packet, which is of this kind."""
        packet = self.receive(within)
        if packet is None:
            raise Closed(f"closed where packet type {kind} was expected")
        assert packet.kind == kind, f"expected packet type {kind}, got {packet}"
        return packet

    def silent(self, during: float) -> bool:
        """Whether nothing is received, not even a close, for so long."""
        if self.pending:
            return False
        readable, _, _ = select.select([self.socket], [], [], during)
        return not readable

    # -- conversations --

    def connect(self, *arguments, **fields) -> int:
        """Sends CONNECT and returns the code of the CONNACK."""
        self.send(connect(self.version, *arguments, **fields))
        return self.connack()

    def connack(self) -> int:
        """The code of the CONNACK that comes next."""
        packet = self.expect(CONNACK)
        assert len(packet.body) >= 2, f"a CONNACK of {len(packet.body)} bytes"
        return packet.body[1]

    def publish(self, topic: str, payload: bytes | str, qos: int = 1, packet_id: int = 1, **fields) -> int | None:
        """Publishes and, at QoS 1 and 2, returns the reason code of the PUBACK; 0 where the version has none."""
        self.send(publish(self.version, topic, payload, qos, packet_id, **fields))
        return self.puback(packet_id) if qos else None

    def puback(self, packet_id: int) -> int:
        """The reason code of the PUBACK for this packet, which comes next."""
        packet = self.expect(PUBACK)
        assert struct.unpack_from(">H", packet.body)[0] == packet_id, f"a PUBACK for another packet: {packet}"
        assert self.version == V5 or len(packet.body) == 2, f"a PUBACK with a reason for version 3: {packet}"
        return packet.body[2] if len(packet.body) > 2 else 0

    def subscribe(self, *filters: tuple[str, int], packet_id: int = 1) -> list[int]:
        """Subscribes and returns the codes of the SUBACK."""
        self.send(subscribe(self.version, list(filters), packet_id))
        return self._codes(SUBACK, packet_id, len(filters))

    def unsubscribe(self, *filters: str, packet_id: int = 1) -> list[int]:
        """Unsubscribes and returns the codes of the UNSUBACK, which only version 5 has."""
        self.send(unsubscribe(self.version, list(filters), packet_id))
        return self._codes(UNSUBACK, packet_id, len(filters) if self.version == V5 else 0)

    def _codes(self, kind: int, packet_id: int, count: int) -> list[int]:
        packet = self.expect(kind)
        assert struct.unpack_from(">H", packet.body)[0] == packet_id
        body = packet.body[2:]
        if self.version == V5:
            length, at = take_varint(body, 0)
            body = body[at + length :]
        assert len(body) == count, f"{len(body)} codes for {count} filters"
        return list(body)

    def ping(self) -> None:
        """A PINGREQ and its answer."""
        self.send(PING)
        self.expect(PINGRESP)

    def message(self, within: float | None = None) -> Message:
        """The PUBLISH that comes next, acknowledged."""
        message = read_publish(self.version, self.expect(PUBLISH, within))
        if message.packet_id is not None:
            self.send(puback(message.packet_id))
        return message

    def ended(self, reason: int | None = None, within: float | None = None) -> None:
        """Insists that the other side closes now: on version 5 after a DISCONNECT with this reason, if one is given."""
        packet = self.receive(within)
        if self.version == V5 and reason is not None:
            assert packet is not None, f"closed without the DISCONNECT {reason:#04x}"
            assert packet.kind == DISCONNECT, f"expected DISCONNECT {reason:#04x}, got {packet}"
            got = packet.body[0] if packet.body else 0
            assert got == reason, f"expected DISCONNECT {reason:#04x}, got {got:#04x}"
            packet = self.receive(within)
        assert packet is None, f"expected the connection to be closed, got {packet}"
