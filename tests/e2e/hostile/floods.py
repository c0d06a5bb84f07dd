"""Attacks over more connections than threads can serve."""

from __future__ import annotations

import asyncio
import threading
import time

from harness import wire
from harness.rest import unique

from .evil import ADDRESS, PATIENCE_S, Evil, attack

CONNECTIONS = 1_000
LARGE_VALUE_BYTES = 60_000
# So many come that they are more bytes than large ones.
MODERATE_VALUE_BYTES = 3_500
TELEMETRY_TOPIC = "v1/devices/me/telemetry"


async def _publish_without_pause(evil: Evil, token: str, packet: bytes) -> None:
    """One connection that publishes as fast as its socket takes it, whatever is acknowledged."""
    reader, writer = await asyncio.open_connection(*evil.server.mqtt_address, local_addr=(ADDRESS, 0))
    try:
        writer.write(wire.connect(username=token))
        connack = await asyncio.wait_for(reader.readexactly(4), PATIENCE_S)
        evil.answers["connected" if connack[3] == 0 else "refused"] += 1
        while time.monotonic() < evil.until:
            evil.begun += 1
            writer.write(packet)
            await writer.drain()
    finally:
        writer.transport.abort()


async def _flood(evil: Evil, tokens: list[str], value_bytes: int) -> None:
    payload = '{"text":"' + "x" * value_bytes + '"}'
    packet = wire.publish(wire.V311, TELEMETRY_TOPIC, payload)
    connections = [_publish_without_pause(evil, token, packet) for token in tokens]
    for outcome in await asyncio.gather(*connections, return_exceptions=True):
        if isinstance(outcome, Exception):
            evil.answers[type(outcome).__name__] += 1


def _begin_flood(evil: Evil, value_bytes: int) -> None:
    began = time.monotonic()
    tokens = [unique("flood") for _ in range(CONNECTIONS)]
    mapping = {
        "columns": [{"type": "NAME"}, {"type": "TYPE"}, {"type": "ACCESS_TOKEN"}],
        "delimiter": ",",
        "update": False,
    }
    body = {"file": "\n".join(f"{token},meter,{token}" for token in tokens), "mapping": mapping}
    evil.rest.post("/api/device/bulk_import", body)
    # The attack begins when its devices are there.
    evil.until += time.monotonic() - began
    thread = threading.Thread(target=lambda: asyncio.run(_flood(evil, tokens, value_bytes)), daemon=True)
    thread.start()
    evil.threads.append(thread)


@attack
def large_messages_over_many_connections(evil: Evil) -> None:
    _begin_flood(evil, LARGE_VALUE_BYTES)


@attack
def moderate_messages_over_many_connections(evil: Evil) -> None:
    _begin_flood(evil, MODERATE_VALUE_BYTES)
