"""Publishers that send as fast as they are acknowledged, and remember exactly what was.

Each publisher is one device. It writes its sequence number as the value, so that what is stored can be compared with
what was acknowledged: nothing missing, nothing twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from . import wire
from .rest import Device

TELEMETRY = "v1/devices/me/telemetry"


@dataclass
class Tally:
    """What one device sent under one key, and what of it was acknowledged."""

    device: Device
    key: str
    first: int = 0
    """Where its numbers begin."""
    sent: int = 0
    """The number that comes next."""
    acknowledged: set[int] = field(default_factory=set)
    attribute_acknowledged: int = -1
    """The newest value of the client attribute that was acknowledged."""
    refusals: int = 0
    """Answers that said no."""

    def __post_init__(self):
        self.sent = max(self.sent, self.first)

    def check(self, points: list[dict]) -> None:
        """Insists that every acknowledged point is among those stored, and that none is stored twice."""
        stored = [point["value"] for point in points]
        missing = self.acknowledged.difference(stored)
        assert not missing, (
            f"{len(missing)} of {len(self.acknowledged)} acknowledged points of {self.device.name}/{self.key} are lost, "
            f"among them {sorted(missing)[:10]}"
        )
        assert len(stored) == len(set(stored)), (
            f"{len(stored) - len(set(stored))} points of {self.device.name}/{self.key} are stored more than once"
        )
        unknown = set(stored).difference(range(self.first, self.sent))
        assert not unknown, f"{self.device.name}/{self.key} holds points that nobody sent: {sorted(unknown)[:10]}"


class MqttPublisher(asyncio.Protocol):
    """Keeps a window of QoS 1 messages in flight on one MQTT 3.1.1 connection."""

    def __init__(self, tally: Tally, window: int, base_ts: int | None, attribute_every: int = 0, more=lambda _: {}):
        self.tally, self.window, self.base_ts, self.attribute_every = tally, window, base_ts, attribute_every
        self.more = more
        self.in_flight: deque[tuple[int, int, bool]] = deque()
        self.packet_id = 0
        self.pending = b""
        self.connected = False
        self.stopping = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport) -> None:
        self.transport = transport
        transport.write(wire.connect(username=self.tally.device.token, client_id=""))

    def data_received(self, data: bytes) -> None:
        self.pending += data
        while (taken := wire.take_packet(self.pending)) is not None:
            packet, self.pending = taken
            if packet.kind == wire.CONNACK:
                if packet.body[1] != 0:
                    self.tally.refusals += 1
                    return self.transport.close()
                self.connected = True
            elif packet.kind == wire.PUBACK:
                self._acknowledge(struct.unpack(">H", packet.body)[0])
        if self.connected and not self.transport.is_closing():
            self._fill()

    def _acknowledge(self, packet_id: int) -> None:
        # Acknowledgements come in the order of the messages, MQTT 3.1.1 §4.6.
        expected, number, is_attribute = self.in_flight.popleft()
        assert packet_id == expected, f"acknowledged {packet_id} before {expected}"
        if is_attribute:
            self.tally.attribute_acknowledged = number
        else:
            self.tally.acknowledged.add(number)

    def _fill(self) -> None:
        if self.stopping:
            if not self.in_flight:
                self.transport.write(wire.BYE)
                self.transport.close()
            return
        frames = []
        while len(self.in_flight) < self.window:
            number = self.tally.sent
            self.tally.sent += 1
            if self.attribute_every and number % self.attribute_every == 0:
                frames.append(self._frame("v1/devices/me/attributes", f'{{"last":{number}}}', number, True))
            frames.append(self._frame(TELEMETRY, self._telemetry(number), number, False))
        self.transport.write(b"".join(frames))

    def _telemetry(self, number: int) -> str:
        values = json.dumps({self.tally.key: number} | self.more(number), separators=(",", ":"))
        return values if self.base_ts is None else f'{{"ts":{self.base_ts + number},"values":{values}}}'

    def _frame(self, topic: str, payload: str, number: int, is_attribute: bool) -> bytes:
        self.packet_id = self.packet_id % 0xFFFF + 1
        self.in_flight.append((self.packet_id, number, is_attribute))
        return wire.publish(wire.V311, topic, payload, 1, self.packet_id)

    def stop(self) -> None:
        """Sends nothing new, and closes when everything sent is acknowledged."""
        self.stopping = True
        if self.connected and not self.transport.is_closing():
            self._fill()
        elif not self.connected:
            self.transport.close()

    def connection_lost(self, _error) -> None:
        if not self.done.done():
            self.done.set_result(None)


class HttpPublisher(asyncio.Protocol):
    """Posts one message after the other on a kept-alive HTTP connection."""

    def __init__(self, tally: Tally, host: str, more=lambda _: {}):
        self.tally, self.host, self.more = tally, host, more
        self.pending = b""
        self.stopping = False
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport) -> None:
        self.transport = transport
        self._post()

    def _post(self) -> None:
        body = json.dumps({self.tally.key: self.tally.sent} | self.more(self.tally.sent))
        self.tally.sent += 1
        self.transport.write(
            f"POST /api/v1/{self.tally.device.token}/telemetry HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )

    def data_received(self, data: bytes) -> None:
        self.pending += data
        head, end, rest = self.pending.partition(b"\r\n\r\n")
        if not end:
            return
        lines = head.decode().lower().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
        if len(rest) < length:
            return
        self.pending = rest[length:]
        if " 200" in lines[0]:
            self.tally.acknowledged.add(self.tally.sent - 1)
        else:
            self.tally.refusals += 1
        if self.stopping or self.tally.refusals:
            self.transport.close()
        else:
            self._post()

    def stop(self) -> None:
        """Sends nothing after the answer to what was sent."""
        self.stopping = True

    def connection_lost(self, _error) -> None:
        if not self.done.done():
            self.done.set_result(None)


class Load:
    """Publishers on a thread of their own, so that the test is free to be unkind to the server meanwhile.

    `more` gives further values that go with a number.
    """

    def __init__(
        self,
        server,
        tallies: list[Tally],
        *,
        window: int = 20,
        base_ts: int | None = None,
        http: int = 0,
        more: Callable[[int], dict] = lambda _: {},
    ):
        self.server, self.tallies, self.window, self.base_ts, self.http = server, tallies, window, base_ts, http
        self.more = more
        self._loop = asyncio.new_event_loop()
        self._publishers: list = []
        self._errors: list[BaseException] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._main, daemon=True)

    @property
    def acknowledged(self) -> int:
        """How many points have been acknowledged so far."""
        return sum(len(tally.acknowledged) for tally in self.tallies)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, kind, *_) -> None:
        self.finish()
        if kind is None and self._errors:
            raise self._errors[0]

    def finish(self, within: float = 15) -> None:
        """Stops sending, waits for what is in flight as long as the connections live, and ends."""
        if self._thread.is_alive():
            # The loop may be closed in this moment, when the last connection has ended by itself.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop)
            self._thread.join(within)
        assert not self._thread.is_alive(), f"messages were neither acknowledged nor refused within {within} s"

    def _stop(self) -> None:
        self._stopping = True
        for publisher in self._publishers:
            publisher.stop()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(
            lambda _, context: self._errors.append(context.get("exception") or AssertionError(context["message"]))
        )
        self._loop.run_until_complete(self._run())
        self._loop.close()

    async def _run(self) -> None:
        for index, tally in enumerate(self.tallies):
            # Every other device leaves the time to the server.
            base_ts = self.base_ts if index % 2 else None
            over_http = index < self.http
            address = self.server.http_address if over_http else self.server.mqtt_address
            make = (
                (lambda t=tally: HttpPublisher(t, self.server.listening["http"], self.more))
                if over_http
                else (lambda t=tally, ts=base_ts: MqttPublisher(t, self.window, ts, 50, self.more))
            )
            try:
                _, publisher = await self._loop.create_connection(make, *address)
                self._publishers.append(publisher)
                # Connecting goes on beside the load, and may come after the end.
                if self._stopping:
                    publisher.stop()
            except OSError:
                # The server was killed before everybody had connected.
                break
        await asyncio.gather(*(publisher.done for publisher in self._publishers))
