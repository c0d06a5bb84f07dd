"""Clients of the publish/subscribe broker on MQTT.js, in a process of Node.js."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from collections import defaultdict
from pathlib import Path

from .rest import unique
from .server import _die_with_parent

FOLDER = Path(__file__).parents[1] / "mqttjs"
VERSIONS = {"3.1.1": 4, "5.0": 5}
WAIT_S = 20


class Refused(AssertionError):
    """MQTT.js says that a command has failed."""

    def __init__(self, error: dict):
        super().__init__(error["message"])
        self.code = error.get("code")


class Clients:
    """The process, with as many clients as a test opens."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["node", "clients.mjs"],
            cwd=FOLDER,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=_die_with_parent,
        )
        self._numbers = itertools.count()
        # By the kind of what is told, and the client or command that it is about.
        self.told: dict[tuple, queue.Queue] = defaultdict(queue.Queue)
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            kind, about, *what = json.loads(line)
            self.queue(kind, about).put(what)

    def queue(self, kind: str, about: str | int) -> queue.Queue:
        """Where it stands what is told."""
        with self._lock:
            return self.told[kind, about]

    def tell(self, name: str, command: str, *arguments) -> int:
        """Starts a command and returns its number."""
        number = next(self._numbers)
        print(json.dumps([number, name, command, *arguments]), file=self.process.stdin, flush=True)
        return number

    def heard(self, kind: str, about: str | int, within: float = WAIT_S) -> list:
        """What is told next."""
        try:
            return self.queue(kind, about).get(timeout=within)
        except queue.Empty:
            raise AssertionError(f"no {kind} of {about} within {within} s") from None

    def answer(self, number: int, within: float = WAIT_S):
        """The result of a command."""
        error, result = self.heard("answer", number, within)
        if error is not None:
            raise Refused(error)
        return result

    def close(self) -> None:
        """Ends the process, and with it all connections."""
        self.process.kill()
        self.process.communicate()


class MqttjsClient:
    """A client, whose options are those of MQTT.js."""

    def __init__(self, clients: Clients, url: str, version: str = "5.0", **options):
        self.clients, self.url, self.name = clients, url, unique("mqttjs")
        self.options = {
            "clientId": self.name,
            "protocolVersion": VERSIONS[version],
            "connectTimeout": WAIT_S * 1000,
            # A test says when a client comes back.
            "reconnectPeriod": 0,
        } | options

    def connect(self) -> dict:
        """Connects, and returns the CONNACK."""
        self.run("open", self.url, self.options)
        return self.next("connected")

    def start(self, command: str, *arguments) -> int:
        """Starts a command and returns its number."""
        return self.clients.tell(self.name, command, *arguments)

    def run(self, command: str, *arguments):
        """Runs a command and returns its result."""
        return self.clients.answer(self.start(command, *arguments))

    def publish(self, topic: str, payload: str = "", qos: int = 1, retain: bool = False, **properties) -> dict:
        """Publishes, waits for the acknowledgement and returns it."""
        options = {"qos": qos, "retain": retain} | ({"properties": properties} if properties else {})
        return self.run("publish", topic, payload, options)

    def subscribe(self, filter: str, qos: int = 1, **options) -> int:
        """Subscribes, and returns the code of the SUBACK."""
        return self.run("subscribe", filter, {"qos": qos} | options)[0]["qos"]

    def next(self, kind: str, within: float = WAIT_S):
        """What happens next of a kind."""
        return self.clients.heard(kind, self.name, within)[0]

    def message(self, within: float = WAIT_S) -> dict:
        """The message that comes next."""
        return self.next("message", within)

    def texts(self, count: int) -> list[str]:
        """The payloads of the messages that come next."""
        return [self.message()["payload"] for _ in range(count)]

    def happened(self, kind: str) -> int:
        """How much of a kind has happened that was not asked for."""
        return self.clients.queue(kind, self.name).qsize()

    def cut(self) -> None:
        """Ends the connection without DISCONNECT."""
        self.run("cut")
        self.next("closed")

    def end(self, **disconnect) -> None:
        """Sends DISCONNECT, with such properties of MQTT 5, and waits for the end of the connection."""
        self.run("end", {"properties": disconnect} if disconnect else {})
        self.next("closed")
