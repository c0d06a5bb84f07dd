"""A process that is stopped for a while, as a debugger, a hypervisor or a laptop's lid does it, and goes on."""

import os
import signal
import socket
import threading
import time
from contextlib import ExitStack

import pytest
import requests

from harness import wire
from harness.flood import Flood, check_stored
from harness.load import TELEMETRY
from harness.rest import unique
from harness.server import eventually
from harness.wire import V5, V311, Wire

PAUSE_S = float(os.environ.get("PAUSE_SECONDS", 8))
DEVICES = 20
PINGERS = 30
# Silence of three seconds is too long with that keep-alive.
KEEP_ALIVE_S = 2
ACTIVITY = {
    "FIELDLINE_ACTIVITY_INACTIVITY_TIMEOUT": "4s",
    # Far longer than the next one: it is noticed in between that time goes on as usual.
    "FIELDLINE_ACTIVITY_CHECK_INTERVAL": "3s",
    "FIELDLINE_ACTIVITY_REPORT_INTERVAL": "200ms",
}
# Who says nothing is cut off after less than the pause.
TIMEOUTS = {"FIELDLINE_HTTP_HEADER_TIMEOUT": "5s", "FIELDLINE_MQTT_CONNECT_TIMEOUT": "5s"}


@pytest.mark.timeout(120 + 3 * PAUSE_S)
def test_a_pause_costs_neither_connections_nor_messages_nor_the_activity_state(make_server):
    server = make_server(env=ACTIVITY | TIMEOUTS)
    rest = server.start().rest()
    devices = [rest.create_device() for _ in range(DEVICES)]
    pingers = [rest.create_device() for _ in range(PINGERS)]
    poster, newcomer, waiting, dead = (rest.create_device() for _ in range(4))
    posted: list[int] = []

    def post() -> None:
        url = f"{server.http}/api/v1/{poster.token}/telemetry"
        posted.append(requests.post(url, data='{"a":1}', timeout=PAUSE_S + 30).status_code)

    with (
        Flood(server, devices, pingers=pingers, window=10, keep_alive=KEEP_ALIVE_S) as flood,
        Wire(server.mqtt_address, V311) as silent,
        ExitStack() as held,
    ):
        assert silent.connect(username=dead.token, keep_alive=KEEP_ALIVE_S) == 0
        silent.ping()
        kept_alive = held.enter_context(socket.create_connection(server.http_address, 20))
        kept_alive.sendall(request_of(poster, 1))
        assert b" 200 " in kept_alive.recv(1000)
        for device in [*devices, *pingers, dead]:
            eventually(lambda: rest.activity(device.id)[0])
        active = {device: rest.activity(device.id) for device in devices + pingers}
        eventually(lambda: flood.now().acknowledged > 1000)
        # The server waits for the log-in of this one when it is stopped.
        before = connections(server)
        half_way = held.enter_context(Wire(server.mqtt_address, V311, timeout=20))
        eventually(lambda: connections(server) > before)
        server.process.send_signal(signal.SIGSTOP)
        try:
            paused = time.monotonic()
            standing = flood.now()
            posting = threading.Thread(target=post)
            posting.start()
            kept_alive.sendall(request_of(poster, 2))
            half_way.send(wire.connect(V311, username=waiting.token, keep_alive=KEEP_ALIVE_S))
            with Wire(server.mqtt_address, V5, timeout=PAUSE_S + 30) as late:
                # The operating system accepts for the program that is stopped.
                connecting = threading.Thread(
                    target=lambda: posted.append(late.connect(username=newcomer.token, keep_alive=KEEP_ALIVE_S))
                )
                connecting.start()
                time.sleep(max(0, paused + PAUSE_S - time.monotonic()))
                server.process.send_signal(signal.SIGCONT)
                resumed = time.monotonic()
                connecting.join(20)
                posting.join(20)
                assert sorted(posted) == [0, 200], "who came during the pause is served after it"
                assert late.publish(TELEMETRY, '{"a":1}') == 0
                assert b" 200 " in kept_alive.recv(1000), "a request that came during the pause was not served"
                assert half_way.connack() == 0
        finally:
            server.process.send_signal(signal.SIGCONT)
        # The time in which nobody could be heard does not count against them. Who is silent afterwards is cut off.
        silent.ended(within=KEEP_ALIVE_S * 1.5 + 5)
        eventually(lambda: flood.now().acknowledged > standing.acknowledged + 1000)
        eventually(lambda: rest.activity(dead.id)[0] is False)
        print(f"paused for {resumed - paused:.1f} s, acknowledged {standing.acknowledged} before")
        outcomes = flood.finish()
        closed = [outcome for outcome in outcomes if outcome.closed_after is not None]
        assert not closed, f"{len(closed)} connections that were alive were closed"

    for outcome in outcomes[:DEVICES]:
        assert outcome.acknowledged == outcome.sent
        eventually(lambda: check_stored(rest, outcome, "n") or True)
    # Nobody who said something before and after was taken for silent in between.
    flickered = [device.name for device in devices + pingers if rest.activity(device.id) != active[device]]
    assert not flickered, f"{len(flickered)} devices were taken for inactive after the pause"


def connections(server) -> float:
    """Open MQTT connections."""
    return server.metrics()['fieldline_transport_connections{transport="mqtt"}']


def request_of(device, number: int) -> bytes:
    """A post of a message, as bytes."""
    body = f'{{"n":{number}}}'
    head = f"POST /api/v1/{device.token}/telemetry HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def test_who_was_heard_during_a_pause_stays_with_the_broker(start_broker, raw):
    server = start_broker()
    heard = [raw(version, server=server) for version in [V311, V5] * 10]
    silent = raw(V5, server=server)
    for connection in [*heard, silent]:
        assert connection.connect(unique("client"), keep_alive=1) == 0
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        for connection in heard:
            connection.send(wire.PING)
        # One and a half seconds of silence are too long.
        time.sleep(3)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    for connection in heard:
        connection.expect(wire.PINGRESP)
    silent.ended(0x8D)
