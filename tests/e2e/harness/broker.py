"""Clients of the publish/subscribe broker: paho with all that MQTT 5 has, the tools of Mosquitto, and raw packets of MQTT 5."""

from __future__ import annotations

import queue
import socket
import ssl
import struct
import subprocess
from typing import NamedTuple

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from . import wire
from .paho_device import VERSIONS
from .rest import unique
from .server import _die_with_parent
from .wire import PUBLISH, Packet, Wire, take_varint

SETTINGS = {
    "FIELDLINE_BROKER_LISTEN": "127.0.0.1:0",
    "FIELDLINE_BROKER_ACCESS": "anyone",
    "FIELDLINE_BROKER_SYS_INTERVAL": "1s",
}
WAIT_S = 10


def broker_settings(**settings: object) -> dict[str, str]:
    """The environment of a broker for everybody, with these of its settings."""
    return SETTINGS | {f"FIELDLINE_BROKER_{name.upper()}": str(value) for name, value in settings.items()}


def _properties(packet: int, fields: dict) -> Properties | None:
    given = {name: value for name, value in fields.items() if value is not None}
    if not given:
        return None
    properties = Properties(packet)
    for name, value in given.items():
        setattr(properties, name, value)
    return properties


class BrokerClient:
    """A client on paho-mqtt whose callbacks are waited for instead of written.

    Properties of MQTT 5 are given under the names that paho has for them, such as `ReceiveMaximum`.
    """

    def __init__(
        self,
        address: tuple[str, int],
        version: str = "5.0",
        client_id: str | None = None,
        *,
        clean: bool = True,
        expiry: int | None = None,
        will: dict | None = None,
        keep_alive: int = 60,
        username: str | None = None,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
        manual_ack: bool = False,
        transport: str = "tcp",
        **asked,
    ):
        self.address, self.version, self.keep_alive, self.clean = address, version, keep_alive, clean
        self.is_v5 = version == "5.0"
        self.client_id = unique("client")[:23] if client_id is None else client_id
        self.asked = asked | {"SessionExpiryInterval": expiry}
        self.connack: Properties | None = None
        self.session_present = False
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            self.client_id,
            clean_session=None if self.is_v5 else clean,
            protocol=VERSIONS[version],
            reconnect_on_failure=False,
            manual_ack=manual_ack,
            transport=transport,
        )
        self.client.max_inflight_messages_set(0)
        if username is not None:
            self.client.username_pw_set(username, password)
        if tls is not None:
            self.client.tls_set_context(tls)
        if will is not None:
            will = {"qos": 1, "retain": False} | will
            plain = {name: will.pop(name) for name in ("topic", "payload", "qos", "retain")}
            self.client.will_set(**plain, properties=_properties(PacketTypes.WILLMESSAGE, will))
        self._events: dict[str, queue.Queue] = {
            kind: queue.Queue() for kind in ("connect", "disconnect", "publish", "subscribe", "unsubscribe", "message")
        }
        put = lambda kind, event: self._events[kind].put(event)
        self.client.on_connect = lambda _c, _u, flags, code, given: put("connect", (flags, code, given))
        self.client.on_disconnect = lambda _c, _u, flags, code, _p: put("disconnect", (flags, code))
        self.client.on_publish = lambda _c, _u, mid, code, _p: put("publish", (mid, code))
        self.client.on_subscribe = lambda _c, _u, mid, codes, _p: put("subscribe", codes)
        self.client.on_unsubscribe = lambda _c, _u, mid, codes, _p: put("unsubscribe", codes)
        self.client.on_message = lambda _c, _u, message: put("message", message)

    def _wait(self, kind: str, within: float = WAIT_S):
        try:
            return self._events[kind].get(timeout=within)
        except queue.Empty:
            raise AssertionError(f"no {kind} within {within} s") from None

    # -- connection --

    def connect(self) -> int:
        """Connects and returns the code of the CONNACK; one of version 3 reads as its version 5 equivalent."""
        more = {}
        if self.is_v5:
            more = {"clean_start": self.clean, "properties": _properties(PacketTypes.CONNECT, self.asked)}
        self.client.connect(*self.address, keepalive=self.keep_alive, **more)
        self.client.loop_start()
        flags, code, self.connack = self._wait("connect")
        self.session_present = flags.session_present
        return code.value

    def leave(self, code: int = 0, expiry: int | None = None) -> None:
        """Sends DISCONNECT and waits for the end of the connection; does nothing where it has ended."""
        if self.client.is_connected():
            more = {}
            if self.is_v5:
                more["reasoncode"] = ReasonCode(PacketTypes.DISCONNECT, identifier=code)
                more["properties"] = _properties(PacketTypes.DISCONNECT, {"SessionExpiryInterval": expiry})
            self.client.disconnect(**more)
        self.client.loop_stop()

    def vanish(self) -> None:
        """Ends the connection without DISCONNECT."""
        self.client.socket().shutdown(socket.SHUT_RDWR)
        self.client.loop_stop()

    def disconnected(self, within: float = WAIT_S) -> int | None:
        """Waits for the end of the connection; the reason code of the broker's DISCONNECT if it sent one."""
        flags, code = self._wait("disconnect", within)
        return code.value if flags.is_disconnect_packet_from_server else None

    # -- messages --

    def publish(self, topic: str, payload="", qos: int = 1, retain: bool = False, **given) -> int:
        """Publishes, waits for the acknowledgement and returns its reason code."""
        sent = self.send(topic, payload, qos, retain, **given)
        while True:
            mid, code = self._wait("publish")
            if mid == sent.mid:
                return code.value

    def send(self, topic: str, payload="", qos: int = 1, retain: bool = False, **given) -> paho.MQTTMessageInfo:
        """Publishes and waits for nothing."""
        return self.client.publish(topic, payload, qos, retain, properties=_properties(PacketTypes.PUBLISH, given))

    def acknowledgement(self) -> int:
        """The packet identifier of the acknowledgement that comes next."""
        return self._wait("publish")[0]

    def acknowledged(self) -> list[int]:
        """The packet identifiers of the acknowledgements that have come and were not asked for."""
        events = self._events["publish"]
        return [events.get()[0] for _ in range(events.qsize())]

    def subscribe(self, *filters: str, qos: int = 1, id: int | None = None, **options) -> list[int]:
        """Subscribes and returns the codes of the SUBACK; `options` are those that paho has."""
        if self.is_v5:
            asked = [(one, SubscribeOptions(qos, **options)) for one in filters]
            more = {"properties": _properties(PacketTypes.SUBSCRIBE, {"SubscriptionIdentifier": id})}
        else:
            assert id is None and not options
            asked, more = [(one, qos) for one in filters], {}
        self.client.subscribe(asked, **more)
        return [code.value for code in self._wait("subscribe")]

    def unsubscribe(self, *filters: str) -> list[int]:
        """Unsubscribes and returns the codes of the UNSUBACK."""
        self.client.unsubscribe(list(filters))
        return [code.value for code in self._wait("unsubscribe")]

    def message(self, within: float = WAIT_S) -> paho.MQTTMessage:
        """The message that comes next."""
        return self._wait("message", within)

    def texts(self, count: int) -> list[str]:
        """The payloads of the messages that come next."""
        return [self.message().payload.decode() for _ in range(count)]

    def until(self, payload: str) -> list[str]:
        """The payloads that come before this one."""
        before = []
        while (one := self.message().payload.decode()) != payload:
            before.append(one)
        return before

    def gets_nothing_from(self, publisher: BrokerClient, qos: int = 1) -> bool:
        """Whether nothing waits for this client, or is on its way: what is published next is what it gets next."""
        topic = unique("marker")
        self.subscribe(topic, qos=qos)
        publisher.publish(topic, topic, qos)
        got = self.until(topic)
        self.unsubscribe(topic)
        assert got == [], f"got {got}"
        return True


def subscription_ids(message: paho.MQTTMessage) -> list[int]:
    """The subscription identifiers of a message."""
    return sorted(getattr(message.properties, "SubscriptionIdentifier", []))


# -- the tools of Mosquitto --


def _place(address: tuple[str, int] | str) -> list[str]:
    """Where a tool connects to: host and port, or the path of a Unix socket."""
    return ["--unix", address] if isinstance(address, str) else ["-h", address[0], "-p", str(address[1])]


class MosquittoSub:
    """`mosquitto_sub`, which has subscribed when it is made; its output is a line a message."""

    def __init__(self, address: tuple[str, int] | str, *arguments: str):
        # `-d` tells when it has subscribed.
        command = ["stdbuf", "-oL", "mosquitto_sub", *_place(address), "-d", *arguments]
        self.process = subprocess.Popen(
            [*command, "-F", "message %t|%q|%r|%p"],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
        )
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith("Subscribed"):
                return
        raise AssertionError("".join(said))

    def messages(self) -> list[tuple[str, int, int, str]]:
        """Topic, QoS, retain flag and payload of all messages, once it has as many as `-C` says."""
        said, _ = self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0, said
        lines = [
            line.removeprefix("message ").split("|", 3) for line in said.splitlines() if line.startswith("message ")
        ]
        return [(topic, int(qos), int(retain), payload) for topic, qos, retain, payload in lines]


def mosquitto_pub(address: tuple[str, int] | str, *arguments: str) -> None:
    """Publishes with `mosquitto_pub`."""
    command = ["mosquitto_pub", *_place(address), *arguments]
    subprocess.run(command, check=True, timeout=WAIT_S, stdin=subprocess.DEVNULL)


# -- raw packets of MQTT 5 --

SESSION_EXPIRY, ASSIGNED_ID, SERVER_KEEP_ALIVE, RECEIVE_MAXIMUM = 0x11, 0x12, 0x13, 0x21
ALIAS_MAXIMUM, ALIAS, PACKET_MAXIMUM, SUBSCRIPTION_ID = 0x22, 0x23, 0x27, 0x0B
AUTH_METHOD, AUTH_DATA = 0x15, 0x16
_NUMBERS = {0x01: "B", 0x24: "B", 0x25: "B", 0x28: "B", 0x29: "B", 0x2A: "B", 0x02: "I", 0x11: "I", 0x27: "I"}
_NUMBERS |= {0x13: "H", 0x21: "H", 0x22: "H", 0x23: "H"}


def number_property(kind: int, value: int) -> bytes:
    """A property that is a number."""
    return bytes([kind]) + struct.pack(">" + _NUMBERS[kind], value)


def auth_properties(method: str, message: str | None) -> bytes:
    """The properties of an authentication method with its message."""
    data = b"" if message is None else bytes([AUTH_DATA]) + wire.text(message)
    return bytes([AUTH_METHOD]) + wire.text(method) + data


def auth_packet(code: int, method: str, message: str | None) -> bytes:
    """AUTH."""
    return wire.frame(wire.AUTH, bytes([code]) + wire.properties(wire.V5, auth_properties(method, message)))


class Received(NamedTuple):
    """A PUBLISH of MQTT 5 with all that it says."""

    topic: str
    payload: bytes
    qos: int
    dup: bool
    packet_id: int | None
    properties: dict[int, object]


def _take_text(raw: bytes, at: int) -> tuple[bytes, int]:
    size = struct.unpack_from(">H", raw, at)[0]
    return raw[at + 2 : at + 2 + size], at + 2 + size


def read_properties(raw: bytes, at: int) -> tuple[dict[int, object], int]:
    """The properties at a position, and the position behind them; each kind once."""
    length, at = take_varint(raw, at)
    end, found = at + length, {}
    while at < end:
        kind, at = raw[at], at + 1
        if kind == SUBSCRIPTION_ID:
            found[kind], at = take_varint(raw, at)
        elif kind in _NUMBERS:
            found[kind] = struct.unpack_from(">" + _NUMBERS[kind], raw, at)[0]
            at += struct.calcsize(">" + _NUMBERS[kind])
        else:
            found[kind], at = _take_text(raw, at)
            if kind == 0x26:
                value, at = _take_text(raw, at)
                found[kind] = (found[kind], value)
    assert at == end, "properties of another length than their packet says"
    return found, end


def read_message(packet: Packet) -> Received:
    """The fields of a PUBLISH of MQTT 5."""
    assert packet.kind == PUBLISH, f"expected a PUBLISH, got {packet}"
    qos, packet_id = packet.flags >> 1 & 3, None
    topic, at = _take_text(packet.body, 0)
    if qos:
        packet_id, at = struct.unpack_from(">H", packet.body, at)[0], at + 2
    properties, at = read_properties(packet.body, at)
    return Received(topic.decode(), packet.body[at:], qos, bool(packet.flags & 8), packet_id, properties)


HOUR = number_property(SESSION_EXPIRY, 3600)


def connect_raw(connection: Wire, client_id: str, *, clean: bool = False, props: bytes = HOUR, **fields) -> int:
    """Connects a client that keeps its session; returns the session present flag."""
    connection.send(wire.connect(connection.version, client_id, clean=clean, props=props, **fields))
    body = connection.expect(wire.CONNACK).body
    assert body[1] == 0, f"refused with {body[1]:#04x}"
    return body[0]


def leave_raw(connection: Wire) -> None:
    """Disconnects; the broker has closed the session's connection then."""
    connection.send(wire.BYE)
    connection.ended()


KEPT = {"3.1.1": dict(clean=False), "5.0": dict(clean=False, expiry=3600)}
"""What a client asks for, by version, to get its session back."""
WIRE = {"3.1.1": wire.V311, "5.0": wire.V5}
"""The versions that raw connections have."""
