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


async def _connect(evil: Evil, token: str) -> asyncio.StreamWriter | None:
    """Opens a connection, which nobody reads but for its first answer."""
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(*evil.server.mqtt_address, local_addr=(ADDRESS, 0)), PATIENCE_S
        )
        writer.write(wire.connect(username=token))
        connack = await asyncio.wait_for(reader.readexactly(4), PATIENCE_S)
    except (OSError, asyncio.IncompleteReadError) as error:
        evil.answers[type(error).__name__] += 1
        return None
    evil.answers["connected" if connack[3] == 0 else "refused"] += 1
    return writer


async def _publish_without_pause(evil: Evil, writer: asyncio.StreamWriter, packet: bytes) -> None:
    """One connection that publishes as fast as its socket takes it, whatever is acknowledged."""
    try:
        while (left := evil.until - time.monotonic()) > 0:
            evil.begun += 1
            writer.write(packet)
            await asyncio.wait_for(writer.drain(), left)
    except TimeoutError:
        # Who is held back stops with the others.
        evil.answers["held back"] += 1
    finally:
        writer.transport.abort()


async def _flood(evil: Evil, tokens: list[str], value_bytes: int, opened: threading.Event) -> None:
    payload = '{"text":"' + "x" * value_bytes + '"}'
    packet = wire.publish(wire.V311, TELEMETRY_TOPIC, payload)
    began = time.monotonic()
    writers = await asyncio.gather(*(_connect(evil, token) for token in tokens))
    evil.until += time.monotonic() - began
    opened.set()
    connections = [_publish_without_pause(evil, writer, packet) for writer in writers if writer is not None]
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
    # The attack begins when its devices are there, and connected.
    evil.until += time.monotonic() - began
    opened = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_flood(evil, tokens, value_bytes, opened)), daemon=True)
    thread.start()
    evil.threads.append(thread)
    assert opened.wait(3 * PATIENCE_S), f"not connected: {dict(evil.answers)}"
    assert evil.answers["connected"] >= 0.9 * CONNECTIONS, f"too few are connected: {dict(evil.answers)}"


@attack
def large_messages_over_many_connections(evil: Evil) -> None:
    _begin_flood(evil, LARGE_VALUE_BYTES)


@attack
def moderate_messages_over_many_connections(evil: Evil) -> None:
    _begin_flood(evil, MODERATE_VALUE_BYTES)
