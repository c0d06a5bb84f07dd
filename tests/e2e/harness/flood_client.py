"""One process of a flood: devices that send at a given rate, or as fast as they are acknowledged, and others that ping.

Reads what to do as one line of JSON from standard input: `host`, `port`, `senders` and `pingers` (tokens), `rate`
(messages a second in all, null for as fast as possible), `window` (messages of one device that may wait for their
acknowledgement), `keep_alive` (seconds), `key`. Says how it stands as a line of JSON twice a second. Ends after the line `stop`: nothing new is sent then, what is sent is waited for, and the last line says
what became of each device.

A device that may not send, because its window or its socket is full, keeps what it has to say: that counts as offered.
"""

from __future__ import annotations

import asyncio
import json
import resource
import struct
import sys
import time
from collections import deque

import wire

TICK_S = 0.01
REPORT_S = 0.5
AT_A_TIME = 100
MAX_ID = 0xFFFF
# Acknowledgements of all packet ids in turn, twice, so that any run of them can be compared as a whole.
ACKS = b"".join(wire.puback(packet_id) for packet_id in range(1, MAX_ID + 1)) * 2
ACK_BYTES = 4
ANSWER = wire.frame(wire.PINGRESP, b"")


class Client(asyncio.Protocol):
    """A connection that logs in, and says how it ended."""

    def __init__(self, flood: Flood, token: str):
        self.flood, self.token = flood, token
        self.pending = b""
        self.ready = asyncio.get_running_loop().create_future()
        self.closed_after: float | None = None
        self.paused = False

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.write(wire.connect(username=self.token, keep_alive=self.flood.keep_alive))

    def data_received(self, data: bytes) -> None:
        data = self.pending + data
        if not self.ready.done():
            taken = wire.take_packet(data)
            if taken is None:
                self.pending = data
                return
            packet, data = taken
            self.ready.set_result(packet.kind == wire.CONNACK and packet.body[1] == 0)
        self.pending = self.take(data)

    def take(self, data: bytes) -> bytes:
        """Handles packets and returns what is left."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def connection_lost(self, _error) -> None:
        self.closed_after = time.monotonic() - self.flood.started
        if not self.ready.done():
            self.ready.set_result(False)


class Sender(Client):
    """Sends numbered messages of quality of service 1."""

    def __init__(self, flood: Flood, token: str):
        super().__init__(flood, token)
        self.offered = self.sent = self.acknowledged = 0
        self.sent_before = 0
        # When the messages up to a number were sent.
        self.batches: deque[tuple[int, float]] = deque()

    def take(self, data: bytes) -> bytes:
        # Answers to pings stand between acknowledgements; without them, these are compared as a whole.
        while data and not (data[0] == ACKS[0] and ANSWER not in data):
            taken = wire.take_packet(data)
            if taken is None:
                return data
            packet, rest = taken
            if packet.kind != wire.PINGRESP:
                self.acknowledge(data[: len(data) - len(rest)])
            data = rest
        whole = len(data) // ACK_BYTES * ACK_BYTES
        self.acknowledge(data[:whole])
        if self.flood.rate is None:
            self.send(self.flood.window)
        return data[whole:]

    def acknowledge(self, acks: bytes) -> None:
        """Takes acknowledgements, which come in the order of the messages."""
        at = self.acknowledged % MAX_ID * ACK_BYTES
        if acks != ACKS[at : at + len(acks)]:
            self.flood.fail(f"{self.token}: not the acknowledgements that are due: {acks[:40].hex()}")
        self.acknowledged += len(acks) // ACK_BYTES
        now = time.monotonic()
        while self.batches and self.batches[0][0] <= self.acknowledged:
            self.flood.latencies.append(now - self.batches.popleft()[1])

    def ping_if_idle(self) -> None:
        """Says that it is there if it had nothing to send for a while."""
        if self.closed_after is None and self.sent == self.sent_before:
            self.transport.write(wire.PING)
        self.sent_before = self.sent

    def send(self, due: int) -> None:
        """Sends up to so many messages, as far as window and socket let it."""
        if self.paused or self.closed_after is not None or self.flood.stopping:
            return
        count = min(due, self.flood.window - (self.sent - self.acknowledged))
        if count <= 0:
            return
        frames = []
        for number in range(self.sent, self.sent + count):
            body = b"%s%d%s" % (self.flood.front, number, self.flood.back)
            head = self.flood.topic + (number % MAX_ID + 1).to_bytes(2, "big")
            frames += (b"\x32", wire.varint(len(head) + len(body)), head, body)
        self.sent += count
        self.batches.append((self.sent, time.monotonic()))
        self.transport.write(b"".join(frames))


class Pinger(Client):
    """Says nothing but that it is there, once a second, whether it is answered or not."""

    def __init__(self, flood: Flood, token: str):
        super().__init__(flood, token)
        self.asked: deque[float] = deque()

    def ping(self) -> None:
        """Sends a PINGREQ."""
        if self.closed_after is None:
            self.asked.append(time.monotonic())
            self.transport.write(wire.PING)

    def take(self, data: bytes) -> bytes:
        while (taken := wire.take_packet(data)) is not None:
            _, data = taken
            if self.asked:
                self.flood.ping_latencies.append(time.monotonic() - self.asked.popleft())
        return data


class Flood:
    """All devices of this process."""

    def __init__(self, plan: dict):
        self.plan = plan
        self.rate, self.window, self.keep_alive = plan["rate"], plan["window"], plan["keep_alive"]
        topic = b"v1/devices/me/telemetry"
        self.topic = struct.pack(">H", len(topic)) + topic
        self.front = f'{{"{plan["key"]}":'.encode()
        self.back = b',"voltage":229.7,"power":431.25}'
        self.latencies: list[float] = []
        self.ping_latencies: list[float] = []
        self.failures: list[str] = []
        self.stopping = False
        self.started = time.monotonic()

    def fail(self, why: str) -> None:
        """Notes what must not happen."""
        if len(self.failures) < 20:
            self.failures.append(why)

    async def open(self, make, tokens: list[str]) -> list:
        admission = asyncio.Semaphore(AT_A_TIME)
        loop = asyncio.get_running_loop()

        async def one(token: str):
            async with admission:
                _, client = await loop.create_connection(
                    lambda: make(self, token), self.plan["host"], self.plan["port"]
                )
                client.transport.set_write_buffer_limits(high=32 << 10)
                if not await asyncio.wait_for(client.ready, 60):
                    self.fail(f"{token} was not let in")
                return client

        return list(await asyncio.gather(*(one(token) for token in tokens)))

    async def run(self) -> None:
        self.senders = await self.open(Sender, self.plan["senders"])
        self.pingers = await self.open(Pinger, self.plan["pingers"])
        self.say({"connected": len(self.senders) + len(self.pingers)})
        loop = asyncio.get_running_loop()
        told = loop.run_in_executor(None, sys.stdin.readline)
        await told  # The line that starts it.
        self.started = time.monotonic()
        told = loop.run_in_executor(None, sys.stdin.readline)
        beside = [asyncio.ensure_future(work) for work in (self.report(), self.keep_pinging(), self.keep_sending())]
        await told
        self.stopping = True
        while any(one.acknowledged < one.sent and one.closed_after is None for one in self.senders):
            await asyncio.sleep(0.02)
        outcomes = [self.outcome(one) for one in self.senders + self.pingers]
        for work in beside:
            work.cancel()
        self.say(self.standing() | {"final": outcomes})

    async def keep_sending(self) -> None:
        if self.rate is None:
            for one in self.senders:
                one.send(self.window)
            return
        given_out = 0
        while not self.stopping:
            due = int((time.monotonic() - self.started) * self.rate)
            share, rest = divmod(due - given_out, max(len(self.senders), 1))
            for place, one in enumerate(self.senders):
                # The remainder goes round, so that nobody is always first.
                one.offered += share + ((place - given_out) % len(self.senders) < rest)
                one.send(one.offered - one.sent)
            given_out = due
            await asyncio.sleep(TICK_S)

    async def keep_pinging(self) -> None:
        while True:
            for one in self.pingers:
                one.ping()
            for one in self.senders:
                one.ping_if_idle()
            await asyncio.sleep(1)

    async def report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self.say(self.standing())

    def standing(self) -> dict:
        latencies, self.latencies = sorted(self.latencies), []
        pings, self.ping_latencies = self.ping_latencies, []
        everybody = self.senders + self.pingers
        return {
            "t": time.monotonic(),
            "offered": sum(one.offered if self.rate else one.sent for one in self.senders),
            "sent": sum(one.sent for one in self.senders),
            "acknowledged": sum(one.acknowledged for one in self.senders),
            "closed": sum(one.closed_after is not None for one in everybody),
            "p50": latencies[len(latencies) // 2] if latencies else None,
            "p99": latencies[len(latencies) * 99 // 100] if latencies else None,
            "ping": max(pings, default=None),
            "failures": self.failures,
        }

    def outcome(self, one: Client) -> dict:
        sent, acknowledged = (one.sent, one.acknowledged) if isinstance(one, Sender) else (0, 0)
        return {"token": one.token, "sent": sent, "acknowledged": acknowledged, "closed_after": one.closed_after}

    def say(self, what: dict) -> None:
        print(json.dumps(what), flush=True)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(Flood(json.loads(sys.stdin.readline())).run())
