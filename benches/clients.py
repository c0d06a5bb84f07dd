"""The clients that the group of the API measures with: connections that stay open, and nothing that costs more than it must."""

from __future__ import annotations

import base64
import http.client
import importlib
import json
import os
import selectors
import socket
import struct
import sys
import time
import types
from urllib.parse import urlsplit

from lab import REPOSITORY, Failed

WAIT_S = 60


def harness(name: str) -> types.ModuleType:
    """A module of the end-to-end tests' harness that needs no more than the standard library, without its neighbours."""
    package = sys.modules.setdefault("harness", types.ModuleType("harness"))
    package.__path__ = [str(REPOSITORY / "tests/e2e/harness")]
    return importlib.import_module(f"harness.{name}")


class Rest:
    """One connection to the REST API that stays open."""

    def __init__(self, address: str, token: str | None = None):
        self.address, self.token = address, token
        at = urlsplit(address)
        self.connection = http.client.HTTPConnection(at.hostname, at.port, timeout=300)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def administrator(cls, address: str) -> Rest:
        """The demo tenant's."""
        rest = cls(address)
        rest.token = rest.post("/api/auth/login", {"username": "tenant@thingsboard.org", "password": "tenant"})["token"]
        return rest

    def again(self) -> Rest:
        """A further connection of the same user."""
        return Rest(self.address, self.token)

    def start(self, method: str, path: str, body: object = None) -> None:
        """Sends a request."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["X-Authorization"] = f"Bearer {self.token}"
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)

    def finish(self) -> bytes:
        """The answer to it."""
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise Failed(f"{answer.status}: {text[:500]!r}")
        return text

    def send(self, method: str, path: str, body: object = None) -> bytes:
        """A request and its answer."""
        self.start(method, path, body)
        return self.finish()

    def get(self, path: str):
        """An answer as JSON."""
        return json.loads(self.send("GET", path))

    def post(self, path: str, body: object = None):
        """The same."""
        text = self.send("POST", path, body)
        return json.loads(text) if text else None


class Live:
    """A WebSocket. Messages are counted without being read, where that is enough."""

    def __init__(self, rest: Rest, command: dict):
        at = urlsplit(rest.address)
        self.socket = socket.create_connection((at.hostname, at.port), WAIT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        head = [
            "GET /api/ws HTTP/1.1",
            f"Host: {at.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}",
            "Sec-WebSocket-Version: 13",
            "\r\n",
        ]
        self.socket.sendall("\r\n".join(head).encode())
        self.pending = bytearray()
        while b"\r\n\r\n" not in self.pending:
            self._more()
        head, _, rest_of_it = bytes(self.pending).partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise Failed(f"no WebSocket: {head!r}")
        self.pending = bytearray(rest_of_it)
        self._send(0x1, json.dumps({"authCmd": {"token": rest.token}, "cmds": [command]}).encode())

    def _send(self, kind: int, data: bytes) -> None:
        size = bytes([0x80 | len(data)]) if len(data) < 126 else struct.pack(">BH", 0x80 | 126, len(data))
        # A mask of zeros leaves the data as it is.
        self.socket.sendall(bytes([0x80 | kind]) + size + bytes(4) + data)

    def _more(self) -> None:
        read = self.socket.recv(1 << 18)
        if not read:
            raise Failed("the WebSocket was closed")
        self.pending += read

    def take(self) -> bytes | None:
        """The next message, if it is there."""
        while len(self.pending) >= 2:
            kind, size, at = self.pending[0] & 0xF, self.pending[1], 2
            if size == 126:
                size, at = int.from_bytes(self.pending[2:4], "big"), 4
            elif size == 127:
                size, at = int.from_bytes(self.pending[2:10], "big"), 10
            if len(self.pending) < at + size:
                return None
            data = bytes(self.pending[at : at + size])
            del self.pending[: at + size]
            if kind == 0x8:
                raise Failed(f"the WebSocket was closed: {data[2:]!r}")
            if kind == 0x9:
                self._send(0xA, data)
            else:
                return data
        return None

    def wait(self) -> bytes:
        """The next message, unread."""
        while (data := self.take()) is None:
            self._more()
        return data

    def receive(self) -> dict:
        """The next message."""
        return json.loads(self.wait())

    def close(self) -> None:
        """Without a word."""
        self.socket.close()


class Crowd:
    """Many WebSockets, whose messages one thread counts."""

    def __init__(self, sockets: list[Live]):
        self.sockets, self.counted, self.seen = sockets, 0, []
        self.selector = selectors.DefaultSelector()
        for live in sockets:
            self.selector.register(live.socket, selectors.EVENT_READ, live)

    def count(self, until: float) -> None:
        """Reads until a time; the messages of the first socket are kept with the time they came."""
        while (left := until - time.monotonic()) > 0:
            for ready, _ in self.selector.select(left):
                live = ready.data
                live._more()
                while (data := live.take()) is not None:
                    self.counted += 1
                    if live is self.sockets[0]:
                        self.seen.append((time.time(), data))

    def close(self) -> None:
        """All of them."""
        self.selector.close()
        for live in self.sockets:
            live.close()


def quantile(values: list[float], share: float) -> float | None:
    """A quantile of values."""
    values = sorted(values)
    return values[min(int(share * len(values)), len(values) - 1)] if values else None
