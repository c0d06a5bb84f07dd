"""A device on paho-mqtt, the client library that most Python devices use."""

from __future__ import annotations

import queue
import ssl

import paho.mqtt.client as paho

VERSIONS = {"3.1": paho.MQTTv31, "3.1.1": paho.MQTTv311, "5.0": paho.MQTTv5}


class PahoDevice:
    """A connection whose callbacks are waited for instead of written."""

    def __init__(
        self,
        address: tuple[str, int],
        version: str = "3.1.1",
        *,
        client_id: str = "",
        username: str | None = None,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
        keep_alive: int = 60,
    ):
        self.version = version
        self.address, self.keep_alive = address, keep_alive
        # paho refuses an empty client id before version 3.1.1.
        client_id = client_id or ("e2e" if version == "3.1" else "")
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id, protocol=VERSIONS[version], reconnect_on_failure=False
        )
        if username is not None:
            self.client.username_pw_set(username, password)
        if tls is not None:
            self.client.tls_set_context(tls)
        self._events: dict[str, queue.Queue] = {
            kind: queue.Queue() for kind in ("connect", "disconnect", "publish", "subscribe", "unsubscribe", "message")
        }
        put = self._put
        self.client.on_connect = lambda _c, _u, _flags, code, _p: put("connect", code)
        self.client.on_disconnect = lambda _c, _u, flags, code, _p: put("disconnect", (flags, code))
        self.client.on_publish = lambda _c, _u, mid, code, _p: put("publish", (mid, code))
        self.client.on_subscribe = lambda _c, _u, mid, codes, _p: put("subscribe", codes)
        self.client.on_unsubscribe = lambda _c, _u, mid, codes, _p: put("unsubscribe", codes)
        self.client.on_message = lambda _c, _u, message: put("message", message)

    def _put(self, kind: str, event) -> None:
        self._events[kind].put(event)

    def _wait(self, kind: str, within: float = 10):
        try:
            return self._events[kind].get(timeout=within)
        except queue.Empty:
            raise AssertionError(f"no {kind} within {within} s") from None

    def __enter__(self) -> PahoDevice:
        return self

    def __exit__(self, *_) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def connect(self) -> int:
        """Connects and returns the code of the CONNACK; a library that hides it reads as its version 5 equivalent."""
        self.client.connect(*self.address, keepalive=self.keep_alive)
        self.client.loop_start()
        return self._wait("connect").value

    def publish(self, topic: str, payload, qos: int = 1) -> int:
        """Publishes, waits for the acknowledgement and returns its reason code."""
        sent = self.client.publish(topic, payload, qos)
        mid, code = self._wait("publish")
        assert mid == sent.mid
        return code.value

    def send(self, topic: str, payload, qos: int = 0) -> None:
        """Publishes and waits for nothing."""
        self.client.publish(topic, payload, qos)

    def subscribe(self, *filters: tuple[str, int]) -> list[int]:
        """Subscribes and returns the codes of the SUBACK."""
        self.client.subscribe(list(filters))
        return [code.value for code in self._wait("subscribe")]

    def unsubscribe(self, *filters: str) -> list[int]:
        """Unsubscribes and returns the codes of the UNSUBACK."""
        self.client.unsubscribe(list(filters))
        return [code.value for code in self._wait("unsubscribe")]

    def message(self, within: float = 10) -> tuple[str, bytes]:
        """Topic and payload of the message that comes next."""
        message = self._wait("message", within)
        return message.topic, message.payload

    def silent(self, seconds: float = 0.7) -> bool:
        """Whether no message comes for so long."""
        try:
            self.message(within=seconds)
        except AssertionError:
            return True
        return False

    def disconnected(self, within: float = 10) -> int | None:
        """Waits for the end of the connection; the reason code of the server's DISCONNECT if it sent one."""
        flags, code = self._wait("disconnect", within)
        return code.value if flags.is_disconnect_packet_from_server else None
