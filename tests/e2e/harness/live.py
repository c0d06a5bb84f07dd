"""A client of the WebSocket API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import websocket

GENERAL, TELEMETRY = "/api/ws", "/api/ws/plugins/telemetry"


class Closed(Exception):
    """The server has closed the socket."""

    def __init__(self, code: int, reason: str):
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


class Live:
    """A socket, with or without proof of who is there."""

    def __init__(self, http: str, path: str = GENERAL, token: str | None = None):
        query = f"?token={token}" if token is not None else ""
        self.socket = websocket.create_connection(http.replace("http", "ws", 1) + path + query, timeout=10)

    @classmethod
    def authenticated(cls, rest, *commands: dict) -> Live:
        """A socket that says who is there, together with its first commands."""
        live = cls(rest.base)
        live.send({"authCmd": {"cmdId": 0, "token": rest.token}, "cmds": list(commands)})
        return live

    def send(self, message: Any) -> None:
        self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def commands(self, *commands: dict) -> None:
        self.send({"cmds": list(commands)})

    def receive(self, within: float = 10) -> dict:
        """The next message; answers pings meanwhile."""
        self.socket.settimeout(within)
        code, data = self.socket.recv_data()
        if code == websocket.ABNF.OPCODE_CLOSE:
            raise Closed(int.from_bytes(data[:2], "big"), data[2:].decode())
        return json.loads(data)

    def until(self, wanted: Callable[[dict], bool], within: float = 10) -> dict:
        """The first message that is wanted; those before it are dropped."""
        deadline = time.monotonic() + within
        while (left := deadline - time.monotonic()) > 0:
            message = self.receive(left)
            if wanted(message):
                return message
        raise AssertionError("the message did not come")

    def silent(self, seconds: float = 1) -> bool:
        """Whether nothing comes for a while."""
        try:
            message = self.receive(seconds)
        except websocket.WebSocketTimeoutException:
            return True
        raise AssertionError(f"unexpected: {message}")

    def closed(self, within: float = 10) -> Closed:
        """How the server closes the socket, whatever it says before."""
        try:
            while True:
                self.receive(within)
        except Closed as closed:
            return closed

    def close(self) -> None:
        self.socket.close()
