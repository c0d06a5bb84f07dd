"""CoAP: libcoap's client, and datagrams made by hand for what no client sends."""

from __future__ import annotations

import itertools
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .certificates import Identity
from .server import environment

CON, NON, ACK, RST = range(4)
EMPTY, GET, POST, PUT = range(4)
OBSERVE, URI_PATH, CONTENT_FORMAT, URI_QUERY, BLOCK2, BLOCK1, SIZE2, SIZE1 = 6, 11, 12, 15, 23, 27, 28, 60
TIMEOUT_S = 10.0


def code(text: str) -> int:
    """The number of a code such as 2.05."""
    group, detail = text.split(".")
    return int(group) << 5 | int(detail)


# -- libcoap --


class CoapClient:
    """One run of coap-client, to its end or in the background."""

    def __init__(
        self,
        address: tuple[str, int],
        path: str,
        *arguments: str,
        method: str = "get",
        payload: str | bytes | None = None,
        trusted: Path | None = None,
        identity: Identity | None = None,
        wait: int = 20,
        lines: bool = True,
    ):
        self.output = Path(tempfile.mkstemp(prefix="coap-")[1])
        scheme = "coaps" if trusted else "coap"
        command = ["coap-client-openssl", "-v", "7", "-B", str(wait), "-m", method, "-o", self.output]
        command += ["-w"] if lines else []
        if payload is not None:
            self.upload = Path(tempfile.mkstemp(prefix="coap-")[1])
            is_text = isinstance(payload, str)
            self.upload.write_bytes(payload.encode() if is_text else payload)
            command += ["-f", self.upload, "-t", "json" if is_text else "binary"]
        if trusted:
            command += ["-R", trusted]
        if identity:
            command += ["-c", identity.certificate, "-j", identity.key]
        command += [*arguments, f"{scheme}://{address[0]}:{address[1]}/{path}"]
        self.process = subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.log = ""

    def finish(self, within: float = 30.0) -> CoapClient:
        """Waits for its end."""
        self.log, _ = self.process.communicate(timeout=within)
        return self

    def end(self) -> None:
        """Ends it however far it is."""
        self.process.kill()
        self.finish()

    @property
    def received(self) -> str:
        """What it has received of payloads."""
        return self.output.read_text()

    @property
    def codes(self) -> list[str]:
        """The codes of all responses, in their order."""
        return re.findall(r"^v:1 t:(?:ACK|CON|NON) c:([245]\.\d\d) ", self.log, re.M)


# -- by hand --


@dataclass
class Message:
    """What a datagram holds."""

    kind: int
    code: int
    id: int
    token: bytes = b""
    options: list[tuple[int, bytes]] = field(default_factory=list)
    payload: bytes = b""

    def encode(self) -> bytes:
        """The datagram."""
        out = bytearray([1 << 6 | self.kind << 4 | len(self.token), self.code]) + self.id.to_bytes(2, "big")
        out += self.token
        before = 0
        for number, value in sorted(self.options, key=lambda option: option[0]):
            (delta, more), (length, extra) = _extended(number - before), _extended(len(value))
            out += bytes([delta << 4 | length]) + more + extra + value
            before = number
        return bytes(out + (b"\xff" + self.payload if self.payload else b""))

    @classmethod
    def decode(cls, datagram: bytes) -> Message:
        """Reads a datagram."""
        assert datagram[0] >> 6 == 1, datagram
        message = cls(datagram[0] >> 4 & 3, datagram[1], int.from_bytes(datagram[2:4], "big"))
        at = 4 + (datagram[0] & 15)
        message.token = datagram[4:at]
        number = 0
        while at < len(datagram) and datagram[at] != 0xFF:
            first, at = datagram[at], at + 1
            delta, at = _read(first >> 4, datagram, at)
            length, at = _read(first & 15, datagram, at)
            number += delta
            message.options.append((number, datagram[at : at + length]))
            at += length
        message.payload = datagram[at + 1 :]
        return message

    @property
    def status(self) -> str:
        """The code as people write it."""
        return f"{self.code >> 5}.{self.code & 31:02}"

    def option(self, number: int) -> int | None:
        """The value of an option that is a number."""
        values = [value for known, value in self.options if known == number]
        return int.from_bytes(values[0], "big") if values else None


def _extended(number: int) -> tuple[int, bytes]:
    if number < 13:
        return number, b""
    if number < 269:
        return 13, bytes([number - 13])
    return 14, (number - 269).to_bytes(2, "big")


def _read(nibble: int, datagram: bytes, at: int) -> tuple[int, int]:
    if nibble < 13:
        return nibble, at
    if nibble == 13:
        return datagram[at] + 13, at + 1
    return int.from_bytes(datagram[at : at + 2], "big") + 269, at + 2


def uint(value: int) -> bytes:
    """A number as options write it."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def block(number: int, more: bool, exponent: int) -> bytes:
    """A block of 2 to the power of `exponent` + 4 bytes, as options write it."""
    return uint(number << 4 | more << 3 | exponent)


class CoapPeer:
    """A socket of UDP that speaks CoAP, and does nothing by itself."""

    def __init__(self, address: tuple[str, int]):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.settimeout(TIMEOUT_S)
        self.numbers = itertools.count(1)

    def __enter__(self) -> CoapPeer:
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()

    def request(
        self,
        method: int,
        path: str,
        payload: bytes | str = b"",
        *,
        kind: int = CON,
        options: Iterable[tuple[int, bytes]] = (),
        token: bytes = b"\x07",
    ) -> Message:
        """A request, with a number of its own."""
        path, _, query = path.partition("?")
        named = [(URI_PATH, segment.encode()) for segment in path.split("/") if segment]
        named += [(URI_QUERY, argument.encode()) for argument in query.split("&") if argument]
        payload = payload.encode() if isinstance(payload, str) else payload
        return Message(kind, method, next(self.numbers), token, [*named, *options], payload)

    def send(self, message: Message | bytes) -> None:
        """Sends a datagram."""
        self.socket.send(message if isinstance(message, bytes) else message.encode())

    def receive(self, within: float = TIMEOUT_S) -> Message:
        """The next datagram."""
        self.socket.settimeout(within)
        return Message.decode(self.socket.recv(65_536))

    def silent(self, within: float = 0.3) -> bool:
        """Whether nothing comes."""
        try:
            return not self.receive(within)
        except TimeoutError:
            return True

    def ask(self, *arguments, **options) -> Message:
        """Sends a request and returns the next datagram, which has to answer it."""
        message = self.request(*arguments, **options)
        self.send(message)
        answer = self.receive()
        assert answer.token == message.token, (message, answer)
        if message.kind == CON and answer.kind == ACK:
            assert answer.id == message.id, (message, answer)
        return answer

    def acknowledge(self, message: Message, kind: int = ACK) -> None:
        """Acknowledges or resets a message."""
        self.send(Message(kind, EMPTY, message.id))


def path(device, feature: str) -> str:
    """Where a device finds something of its own."""
    return f"api/v1/{device.token}/{feature}"


def observe(
    peer: CoapPeer, device, feature: str, token: bytes = b"\x21", kind: int = CON, register: bool = True
) -> Message:
    """Begins an observation, or ends it, and returns the answer."""
    wish = [(OBSERVE, uint(0 if register else 1))]
    return peer.ask(GET, path(device, feature), options=wish, token=token, kind=kind)


def observers(server) -> float:
    """How many devices observe."""
    return server.metrics()['fieldline_transport_connections{transport="coap"}']
