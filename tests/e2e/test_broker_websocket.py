"""The broker over WebSocket: paho as it is in browsers' place, and frames that no client sends."""

from __future__ import annotations

import base64
import os
import socket
import ssl

import pytest

from harness.broker import BrokerClient
from harness.certificates import Authority
from harness.rest import unique
from harness.server import Server, split_address

PAYLOAD = "x" * 200_000


@pytest.fixture(scope="module")
def sockets(tmp_path_factory, authority: Authority):
    identity = authority.issue("localhost", server=True)
    env = {
        "FIELDLINE_BROKER_LISTEN": "127.0.0.1:0",
        "FIELDLINE_BROKER_WEBSOCKET_LISTEN": "127.0.0.1:0",
        "FIELDLINE_BROKER_WEBSOCKET_TLS_LISTEN": "127.0.0.1:0",
        "FIELDLINE_BROKER_CERTIFICATE": identity.certificate,
        "FIELDLINE_BROKER_PRIVATE_KEY": identity.key,
        "FIELDLINE_BROKER_ACCESS": "anyone",
    }
    server = Server(tmp_path_factory.mktemp("sockets"), demo=False, env=env)
    with server.lent():
        yield server


def client_of(server: Server, place: str, tls: ssl.SSLContext | None, version: str) -> BrokerClient:
    address = split_address(server.listening[place])
    client = BrokerClient(address, version, tls=tls, transport="websockets")
    client.client.ws_set_options(path="/mqtt")
    return client


@pytest.mark.parametrize("version", ["3.1.1", "5.0"])
@pytest.mark.parametrize("place", ["broker_websocket", "broker_websocket_tls"])
def test_clients_talk_over_websocket_to_each_other_and_to_those_on_tcp(sockets, authority, join, place, version):
    tls = authority.client() if place.endswith("tls") else None
    client, topic = client_of(sockets, place, tls, version), unique("topic")
    assert client.connect() == 0
    subscriber = join(version, server=sockets)
    for one in client, subscriber:
        one.subscribe(topic, qos=2)
    for qos in 0, 1, 2:
        assert client.publish(topic, f"{qos}{PAYLOAD}", qos) == 0
        for one in client, subscriber:
            assert one.texts(1) == [f"{qos}{PAYLOAD}"]
    client.leave()


def request(path: str = "/mqtt", **headers: str | None) -> bytes:
    fields = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "mqtt",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode()


def frame(first: int, payload: bytes, masked: bool = True) -> bytes:
    mask = os.urandom(4) if masked else b""
    content = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload)) if masked else payload
    return bytes([first, len(payload) | (0x80 if masked else 0)]) + mask + content


def open_socket(server: Server, sent: bytes) -> tuple[socket.socket, bytes]:
    connection = socket.create_connection(split_address(server.listening["broker_websocket"]), timeout=10)
    connection.sendall(sent)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(4_096)
    return connection, answer


def rest_of(connection: socket.socket) -> bytes:
    with connection:
        parts = []
        while part := connection.recv(4_096):
            parts.append(part)
        return b"".join(parts)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("/other"), b"404"),
        (request(Sec_WebSocket_Protocol="chat"), b"400"),
        (request(Sec_WebSocket_Protocol=None), b"400"),
        (request(Upgrade=None), b"426"),
        (request(Sec_WebSocket_Version="8"), b"426"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 9_000 + b"\r\n\r\n", b"400"),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00\r\n\r\n", b"400"),
    ],
    ids=["path", "subprotocol", "no subprotocol", "no upgrade", "version", "too long", "MQTT"],
)
def test_other_requests_are_told_what_is_wrong(sockets, sent, status):
    connection, answer = open_socket(sockets, sent)
    assert answer.startswith(b"HTTP/1.1 " + status)
    rest_of(connection)


CONNECT = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01a"
CONNACK = b"\x20\x02\x00\x00"


def test_packets_may_be_cut_and_joined_and_pings_are_answered(sockets):
    connection, answer = open_socket(sockets, request() + frame(0x02, CONNECT[:5]) + frame(0x89, b"ping"))
    assert answer.startswith(b"HTTP/1.1 101") and b"Sec-WebSocket-Protocol: mqtt\r\n" in answer
    connection.sendall(frame(0x80, CONNECT[5:] + b"\xc0") + frame(0x82, b"\x00"))
    expected = (
        frame(0x8A, b"ping", masked=False) + frame(0x82, CONNACK, masked=False) + frame(0x82, b"\xd0\x00", masked=False)
    )
    received = answer.split(b"\r\n\r\n", 1)[1]
    while len(received) < len(expected):
        received += connection.recv(4_096)
    assert received == expected
    connection.sendall(frame(0x88, b"\x03\xe8"))
    assert rest_of(connection) == frame(0x88, b"\x03\xe8", masked=False)


WRONG = {
    "text": frame(0x81, b"text"),
    "not masked": frame(0x82, b"not masked", masked=False),
    "reserved bit": frame(0xC2, b"reserved"),
    "goes on with nothing": frame(0x80, b"goes on"),
    "cut ping": frame(0x09, b"cut"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_frame_ends_its_own_connection(sockets, wrong):
    neighbour, answer = open_socket(sockets, request() + frame(0x82, CONNECT))
    connection, answer = open_socket(
        sockets, request() + frame(0x82, CONNECT.replace(b"\x01a", b"\x01b")) + WRONG[wrong]
    )
    assert answer.startswith(b"HTTP/1.1 101")
    rest_of(connection)
    neighbour.sendall(frame(0x82, b"\xc0\x00") + frame(0x82, b"\xe0\x00"))
    assert frame(0x82, b"\xd0\x00", masked=False) in rest_of(neighbour)
