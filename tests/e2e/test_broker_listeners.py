"""Where clients reach the broker: through proxies that name them, and over a Unix socket of this machine."""

from __future__ import annotations

import json
import socket
import stat
import struct

import pytest

from harness import wire
from harness.broker import BrokerClient, MosquittoSub, broker_settings, mosquitto_pub
from harness.certificates import Authority
from harness.proxy_protocol import LOCAL, SIGNATURE, v1, v2
from harness.rest import unique
from harness.server import SYSADMIN, Server, StartFailed, split_address
from harness.wire import V5, Wire

PROXY = "127.0.0.2"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory, authority: Authority):
    identity = authority.issue("localhost", server=True)
    # The harness is no proxy itself.
    env = broker_settings(
        tls_listen="127.0.0.1:0",
        websocket_listen="127.0.0.1:0",
        certificate=identity.certificate,
        private_key=identity.key,
        proxy_protocol="true",
    )
    env |= {"FIELDLINE_HTTP_TRUSTED_PROXIES": PROXY, "FIELDLINE_BROKER_ACCESS": "credentials"}
    with Server(tmp_path_factory.mktemp("proxied"), env=env).lent() as server:
        yield server


def permitted(server: Server) -> str:
    """The identifier of a client that has credentials without a password."""
    client_id = unique("client")
    rules = {"pubAuthRulePatterns": [".*"], "subAuthRulePatterns": [".*"]}
    value = json.dumps({"clientId": client_id, "authRules": rules})
    body = {"name": client_id, "credentialsType": "MQTT_BASIC", "credentialsValue": value}
    server.rest(*SYSADMIN).post("/api/mqtt/client/credentials", body)
    return client_id


def open_through_proxy(server: Server, place: str, header: bytes) -> socket.socket:
    connection = socket.create_connection(split_address(server.listening[place]), 10, (PROXY, 0))
    connection.sendall(header)
    return connection


@pytest.mark.parametrize("place", ["broker", "broker_tls"])
@pytest.mark.parametrize(
    ("header", "seen"),
    [(v1("192.0.2.1"), "192.0.2.1"), (v2("192.0.2.2"), "192.0.2.2"), (LOCAL, PROXY)],
    ids=["version 1", "version 2", "the proxy itself"],
)
def test_a_trusted_proxy_names_its_clients(proxied, authority, place, header, seen):
    client_id = permitted(proxied)
    connection = open_through_proxy(proxied, place, header)
    if place == "broker_tls":
        connection = authority.client().wrap_socket(connection, server_hostname="localhost")
    connection.sendall(wire.connect(V5, client_id))
    with Wire.over(connection, V5) as client:
        assert client.connack() == 0
        session = proxied.rest(*SYSADMIN).get("/api/client-session", clientId=client_id).json()
        assert session["clientIpAdr"] == seen


def test_blocks_of_an_address_count_for_the_client_and_not_for_its_proxy(proxied):
    client_id = permitted(proxied)
    block = {"type": "IP_ADDRESS", "ipAddress": "198.51.100.7", "expirationTime": 0}
    proxied.rest(*SYSADMIN).post("/api/blockedClient", block)
    for address, code in ("198.51.100.7", 0x8A), ("198.51.100.8", 0):
        connection = open_through_proxy(proxied, "broker", v2(address))
        connection.sendall(wire.connect(V5, client_id))
        with Wire.over(connection, V5) as client:
            assert client.connack() == code


@pytest.mark.parametrize("place", ["broker", "broker_websocket"])
@pytest.mark.parametrize(
    "header",
    [b"", b"PROXY TCP4 x y 1 2\r\n", SIGNATURE + struct.pack(">BBH", 0x31, 0x11, 0)],
    ids=["none", "no addresses", "unknown version"],
)
def test_a_trusted_proxy_without_a_header_is_not_heard(proxied, place, header):
    connection = open_through_proxy(proxied, place, header + wire.connect(V5, unique("client")))
    with connection:
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            # It was closed before all was read.
            pass


def test_an_address_that_is_no_proxy_does_not_choose_its_own(proxied):
    with Wire(proxied.broker_address, V5) as client:
        client.send(v1("192.0.2.1") + wire.connect(V5, unique("client")))
        assert client.receive() is None


def test_proxies_have_to_be_trusted_by_name(make_server):
    with pytest.raises(StartFailed, match="`broker.proxy-protocol` needs `http.trusted-proxies`"):
        make_server("proxied", demo=False, env=broker_settings(proxy_protocol="true")).start()


# -- Unix socket --


def test_clients_of_this_machine_talk_over_a_unix_socket(start_broker, join, tmp_path):
    path = tmp_path / "broker.sock"
    server = start_broker(unix_listen=path)
    assert server.listening["broker_unix"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    topic = unique("topic")
    local = MosquittoSub(str(path), "-q", "1", "-t", topic, "-C", "2")
    remote = join(server=server)
    remote.subscribe(topic, qos=2)
    mosquitto_pub(str(path), "-q", "2", "-t", topic, "-m", "x" * 100_000)
    remote.publish(topic, "from TCP", 1)
    assert [payload for *_, payload in local.messages()] == ["x" * 100_000, "from TCP"]
    assert remote.texts(2) == ["x" * 100_000, "from TCP"]


def test_a_unix_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not(make_server, tmp_path):
    path = tmp_path / "broker.sock"
    env = broker_settings(unix_listen=path)
    server = make_server("one", demo=False, env=env).start()
    other = make_server("other", demo=False, env=env)
    with pytest.raises(StartFailed, match="cannot listen on .*broker.sock .`broker.unix-listen`."):
        other.start()
    assert path.exists()
    server.kill()
    assert path.exists()
    server.start()
    client = BrokerClient((str(path), 1), client_id=unique("client"), transport="unix")
    assert client.connect() == 0
    client.leave()
    server.stop()
    assert not path.exists()


def test_a_file_that_is_no_socket_stays(make_server, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("kept")
    server = make_server("one", demo=False, env=broker_settings(unix_listen=path))
    with pytest.raises(StartFailed, match="`broker.unix-listen`"):
        server.start()
    assert path.read_text() == "kept"
