"""A message centre for text messages that speaks SMPP 3.4 and keeps what it is sent."""

from __future__ import annotations

import queue
import socketserver
import struct
import threading

BIND_TRANSMITTER = 0x02
SUBMIT_SM = 0x04
RESPONSE = 0x80000000
INVALID_PASSWORD = 0x0E


class MessageCentre:
    """Lets in who shows the password, and takes messages."""

    def __init__(self, system_id: str, password: str):
        self.messages: queue.Queue[tuple[str, str]] = queue.Queue()
        centre = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while len(header := self.rfile.read(16)) == 16:
                    length, command, _, sequence = struct.unpack(">IIII", header)
                    body = self.rfile.read(length - 16)
                    status = 0
                    if command == BIND_TRANSMITTER:
                        given = [part.decode() for part in body.split(b"\0")[:2]]
                        status = 0 if given == [system_id, password] else INVALID_PASSWORD
                    elif command == SUBMIT_SM:
                        centre.messages.put(read_submit(body))
                    self.wfile.write(struct.pack(">IIII", 18, command | RESPONSE, status, sequence) + b"1\0")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def provider(self, **changes) -> dict:
        """Settings that name this message centre."""
        return {
            "type": "SMPP",
            "protocolVersion": "3.4",
            "host": "127.0.0.1",
            "port": self.server.server_address[1],
            "systemId": "fieldline",
            "bindType": "TX",
            "destinationTon": 1,
        } | changes

    def next(self) -> tuple[str, str]:
        """Number and text of the next message."""
        return self.messages.get(timeout=10)

    def __enter__(self) -> MessageCentre:
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()


def read_submit(body: bytes) -> tuple[str, str]:
    """Number and text of a submit_sm (SMPP 3.4 §4.4.1)."""
    _service, rest = body.split(b"\0", 1)
    _source, rest = rest[2:].split(b"\0", 1)
    destination, rest = rest[2:].split(b"\0", 1)
    _when, _until, rest = rest[3:].split(b"\0", 2)
    length = rest[4]
    return destination.decode(), rest[5 : 5 + length].decode()
