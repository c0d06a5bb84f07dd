"""Headers of the PROXY protocol, with which a proxy names the client behind it."""

from __future__ import annotations

import socket
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
# The proxy speaks for itself.
LOCAL = SIGNATURE + struct.pack(">BBH", 0x20, 0, 0)


def v1(client: str) -> bytes:
    """Version 1, a line of text."""
    return f"PROXY TCP4 {client} 127.0.0.1 4711 80\r\n".encode()


def v2(client: str) -> bytes:
    """Version 2, in binary."""
    addresses = socket.inet_aton(client) + socket.inet_aton("127.0.0.1") + bytes(4)
    return SIGNATURE + struct.pack(">BBH", 0x21, 0x11, len(addresses)) + addresses
