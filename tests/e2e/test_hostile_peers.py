"""Peers that are slow, silent, broken or hostile, and must not disturb anybody else."""

import contextlib
import socket
import ssl
import struct
import time

import pytest
import requests

from harness import wire
from harness.server import eventually
from harness.wire import V5, V31, V311, Wire

TELEMETRY = "v1/devices/me/telemetry"
# How long a peer may take over a CONNECT or the head of a request: the servers' limits are 10 s, tests wait longer.
GIVE_UP_WITHIN_S = 40


def closed_within(connection: socket.socket, seconds: float, drip: bytes = b"", every: float = 0.5) -> float:
    """Sends a byte now and then until the other side closes, and returns how long that took."""
    started = time.monotonic()
    sending = iter(drip)
    connection.settimeout(every)
    while time.monotonic() - started < seconds:
        try:
            if (byte := next(sending, None)) is not None:
                connection.sendall(bytes([byte]))
            if not connection.recv(65536):
                return time.monotonic() - started
        except TimeoutError:
            continue
        except OSError:
            return time.monotonic() - started
    raise AssertionError(f"still connected after {seconds} s")


@pytest.mark.parametrize("version", [V31, V311, V5])
def test_packets_that_arrive_byte_by_byte_are_understood(shared, tenant, device, version):
    with Wire(shared.mqtt_address, version) as connection:
        stream = wire.connect(version, username=device.token)
        stream += b"".join(wire.publish(version, TELEMETRY, f'{{"n":{n}}}', 1, n) for n in range(1, 6)) + wire.PING
        for byte in stream:
            connection.send(bytes([byte]))
        assert connection.connack() == 0
        assert [connection.puback(n) for n in range(1, 6)] == [0] * 5
        connection.expect(wire.PINGRESP)
    assert eventually(lambda: len(values := tenant.values(device.id, "n")) == 5 and values) == [1, 2, 3, 4, 5]


def test_packets_split_at_every_place_are_understood(shared, device):
    stream = wire.connect(V311, username=device.token) + wire.publish(V311, TELEMETRY, '{"n":1}', 1, 1) + wire.PING
    for place in range(1, len(stream)):
        with Wire(shared.mqtt_address, V311) as connection:
            connection.send(stream[:place])
            connection.send(stream[place:])
            assert connection.connack() == 0
            assert connection.puback(1) == 0
            connection.expect(wire.PINGRESP)


def test_a_request_that_arrives_byte_by_byte_is_answered(shared, device):
    body = '{"a":1}'
    head = f"POST /api/v1/{device.token}/telemetry HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(shared.http_address, 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in (head + body).encode():
            connection.sendall(bytes([byte]))
        assert connection.recv(64).startswith(b"HTTP/1.1 200")


def test_peers_that_never_finish_are_given_up_and_disturb_nobody(shared, device):
    """Slow-loris: each of these holds its connection with a byte now and then, or with nothing at all."""
    http, mqtt = shared.http_address, shared.mqtt_address
    drips = {
        "HTTP head": (http, b"GET / HTTP/1.1\r\nHost: " + b"x" * 200),
        "MQTT CONNECT": (mqtt, wire.connect(V311, "c" * 300)),
        "MQTT silence": (mqtt, b""),
        "TLS silence": (shared.mqtts_address, b""),
        "TLS hello": (shared.mqtts_address, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200),
    }
    opened = {name: [socket.create_connection(address, 10) for _ in range(20)] for name, (address, _) in drips.items()}
    started = time.monotonic()
    try:
        with Wire(mqtt, V311) as connection:
            assert connection.connect(username=device.token, keep_alive=5) == 0
            position = 0
            pending = {name: list(sockets) for name, sockets in opened.items()}
            while any(pending.values()):
                elapsed = time.monotonic() - started
                assert elapsed < GIVE_UP_WITHIN_S, f"still connected: { {n: len(s) for n, s in pending.items()} }"
                asked = time.monotonic()
                assert connection.publish(TELEMETRY, '{"a":1}', packet_id=position + 1) == 0
                assert requests.get(f"{shared.http}/healthz", timeout=30).status_code == 200
                # Less than any of these peers is waited for.
                assert time.monotonic() - asked < 8, "slow peers slow others down"
                for name, (_, bytes_) in drips.items():
                    pending[name] = [s for s in pending[name] if still_open(s, bytes_[position : position + 1])]
                    if not pending[name] and opened[name]:
                        print(f"{name}: given up after {elapsed:.1f} s")
                        opened[name] = []
                position += 1
                time.sleep(0.4)
    finally:
        for sockets in opened.values():
            for connection in sockets:
                connection.close()


def still_open(connection: socket.socket, send: bytes) -> bool:
    connection.setblocking(False)
    try:
        if send:
            connection.send(send)
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_half_open_connections_are_noticed(shared, tenant, device):
    """A peer that has gone without a word, as behind a NAT that forgot it: keep-alive is what notices."""
    before = shared.mqtt_connections()
    gone = []
    for _ in range(30):
        other = tenant.create_device()
        connection = Wire(shared.mqtt_address, V311)
        assert connection.connect(username=other.token, keep_alive=1) == 0
        gone.append(connection)
    assert shared.mqtt_connections() >= before + 25
    # Nothing is sent any more, and nothing is closed on this side: the server has to end them.
    eventually(lambda: shared.mqtt_connections() <= before)
    for connection in gone:
        connection.close()


def test_a_peer_that_half_closes_gets_its_acknowledgements_and_is_then_closed(shared, device):
    with Wire(shared.mqtt_address, V311) as connection:
        messages = b"".join(wire.publish(V311, TELEMETRY, f'{{"n":{n}}}', 1, n) for n in range(1, 11))
        connection.send(wire.connect(V311, username=device.token) + messages)
        assert connection.connack() == 0
        connection.socket.shutdown(socket.SHUT_WR)
        got = []
        while (packet := connection.receive()) is not None:
            got.append(packet)
        assert all(packet.kind == wire.PUBACK for packet in got)


def test_a_peer_that_resets_leaves_what_it_was_promised(shared, tenant, device):
    connection = Wire(shared.mqtt_address, V311)
    assert connection.connect(username=device.token) == 0
    assert connection.publish(TELEMETRY, '{"n":1}') == 0
    connection.send(wire.publish(V311, TELEMETRY, '{"n":2}', 1, 2)[:-3])
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    assert eventually(lambda: tenant.values(device.id, "n")) == [1]


def test_a_peer_that_does_not_read_is_not_buffered_for_without_bound(shared, device):
    """Acknowledgements that nobody reads: the server stops reading, or closes; its memory stays flat."""
    before = shared.memory_kib()
    with Wire(shared.mqtt_address, V311) as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert connection.connect(username=device.token) == 0
        pings = wire.PING * 50_000
        connection.socket.settimeout(1)
        sent = 0
        try:
            for _ in range(400):
                sent += connection.socket.send(pings)
        except OSError:
            pass
    print(f"{sent} bytes of PINGREQ were taken")
    assert shared.memory_kib() - before < 32 * 1024


def test_nobody_on_an_event_loop_waits_for_another(make_server, authority):
    """One thread carries them all; as long as the others stall, it must go on with those who do not."""
    identity = authority.issue("localhost", server=True)
    server = make_server(
        env={
            "FIELDLINE_MQTT_EVENT_LOOPS": "1",
            "FIELDLINE_MQTTS_LISTEN": "127.0.0.1:0",
            "FIELDLINE_MQTTS_CERTIFICATE": identity.certificate,
            "FIELDLINE_MQTTS_PRIVATE_KEY": identity.key,
        }
    ).start()
    rest = server.rest()
    tls = ssl.create_default_context(cafile=authority.path)

    def log_in(address: tuple[str, int], context: ssl.SSLContext | None = None) -> Wire:
        opened = everybody.enter_context(Wire(address, V311, tls=context))
        assert opened.connect(username=rest.create_device().token) == 0
        return opened

    with contextlib.ExitStack() as everybody:
        good = [log_in(server.mqtt_address), log_in(server.mqtts_address, tls)]
        for stalled in (log_in(server.mqtt_address), log_in(server.mqtts_address, tls)):
            # The answers fill the buffers of both sides: the server cannot write any more.
            stalled.socket.settimeout(1)
            with pytest.raises(OSError):
                for _ in range(400):
                    stalled.socket.sendall(wire.PING * 50_000)
        partial = log_in(server.mqtt_address)
        partial.send(wire.publish(V311, TELEMETRY, '{"a":"' + "x" * 60_000 + '"}', 1, 1)[:-1])
        everybody.enter_context(Wire(server.mqtt_address, V311)).send(wire.connect(V311, "c" * 300)[:-1])
        everybody.enter_context(socket.create_connection(server.mqtts_address, 10)).sendall(
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
        )
        for number in range(1, 201):
            for connection in good:
                assert connection.publish(TELEMETRY, '{"a":1}', packet_id=number) == 0
        # What was stalled goes on by itself, too.
        partial.send(b"}")
        assert partial.receive().kind == wire.PUBACK


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"POST /api/auth/login HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
    ],
)
def test_a_broken_request_is_refused(shared, line):
    with socket.create_connection(shared.http_address, 10) as connection:
        connection.sendall(line)
        answer = connection.recv(64)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 5"))


@pytest.mark.parametrize("size", [8_000, 16_000, 100_000, 2_000_000])
def test_a_head_of_any_size_is_answered_or_refused(shared, size):
    with socket.create_connection(shared.http_address, 10) as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * size + b"\r\n\r\n")
            answer = connection.recv(64)
        except ConnectionError:
            return
        assert answer == b"" or answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4"))


def test_deeply_nested_json_is_refused_without_falling_over(shared, device):
    for body in ("[" * 60_000, '{"a":' * 10_000, '{"a":' + "[" * 10_000 + "]" * 10_000 + "}"):
        with Wire(shared.mqtt_address, V5) as connection:
            assert connection.connect(username=device.token) == 0
            assert connection.publish(TELEMETRY, body) in (0, 0x99)
    login = requests.post(
        f"{shared.http}/api/auth/login", data="[" * 1_000_000, headers={"Content-Type": "application/json"}, timeout=10
    )
    assert 400 <= login.status_code < 500
    assert shared.running
