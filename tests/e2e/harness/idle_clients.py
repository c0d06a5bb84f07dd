"""Holds many idle MQTT connections: a process of its own, because each connection is an open file.

Reads one token a line from standard input, up to an empty line; connects one device for each, a bounded number at a
time; prints `connected N` once all are, then `alive N` after every further line it reads, having pinged each of them.
"""

from __future__ import annotations

import asyncio
import itertools
import resource
import socket
import sys

import wire

AT_A_TIME = 200
# So many connections can share a source address without running out of ports.
PER_SOURCE_ADDRESS = 10_000


class Idle(asyncio.Protocol):
    """One connection."""

    def __init__(self, token: str):
        self.token = token
        self.answered = asyncio.get_running_loop().create_future()
        self.pending = b""
        self.lost = False

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.write(wire.connect(username=self.token, keep_alive=600))

    def data_received(self, data: bytes) -> None:
        self.pending += data
        while (taken := wire.take_packet(self.pending)) is not None:
            packet, self.pending = taken
            if not self.answered.done():
                self.answered.set_result(packet.kind == wire.PINGRESP or packet.body[1] == 0)

    def ping(self) -> asyncio.Future:
        """Sends a PINGREQ; the future says whether it was answered."""
        self.answered = asyncio.get_running_loop().create_future()
        if self.lost:
            self.answered.set_result(False)
        else:
            self.transport.write(wire.PING)
        return self.answered

    def connection_lost(self, _error) -> None:
        self.lost = True
        if not self.answered.done():
            self.answered.set_result(False)


async def main(host: str, port: int, tokens: list[str]) -> None:
    loop = asyncio.get_running_loop()
    admission = asyncio.Semaphore(AT_A_TIME)

    async def open_one(index: int, token: str) -> Idle | None:
        async with admission:
            connection = socket.socket()
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
            connection.bind((f"127.0.0.{2 + index // PER_SOURCE_ADDRESS}", 0))
            try:
                await loop.sock_connect(connection, (host, port))
                _, idle = await loop.create_connection(lambda: Idle(token), sock=connection)
                return idle if await asyncio.wait_for(idle.answered, 30) else None
            except (OSError, TimeoutError):
                connection.close()
                return None

    opened = [one for one in await asyncio.gather(*itertools.starmap(open_one, enumerate(tokens))) if one]
    print("connected", len(opened), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        alive = 0
        for start in range(0, len(opened), AT_A_TIME):
            answers = [one.ping() for one in opened[start : start + AT_A_TIME]]
            alive += sum(await asyncio.gather(*answers))
        print("alive", alive, flush=True)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    lines = iter(sys.stdin.readline, "")
    given = [line.strip() for line in itertools.takewhile(lambda line: line.strip(), lines)]
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), given))
