"""A Kafka broker for tests, which can be killed, frozen and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from .processes import is_gone
from .relay import Relay
from .server import REPOSITORY, split_address

TOLD = [
    "FIELDLINE_TEST_KAFKA",
    "FIELDLINE_TEST_KAFKA_PID",
    "FIELDLINE_TEST_KAFKA_SETTINGS",
    "FIELDLINE_TEST_KAFKA_CLASSPATH",
]
START_WITHIN_S = 90


class Kafka:
    """One broker."""

    def __init__(self, address: str, pid: int, settings: Path, classpath: str):
        self.address, self.settings, self.classpath = address, settings, classpath
        self.pid = pid
        self.again: subprocess.Popen | None = None
        """The broker, where a test has started it again."""

    @property
    def is_running(self) -> bool:
        """Whether the broker has not ended."""
        return not is_gone(self.pid)

    def freeze(self) -> None:
        """Stops the broker where it is."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen broker go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Ends the broker without a chance to write anything."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.again is not None:
            self.again.wait(30)
            self.again = None

    def start(self) -> None:
        """Starts a killed broker on what it has left."""
        self.becomes_ready(self.spawn())

    def spawn(self) -> Path:
        """Starts the broker and returns at once, with the name of its log."""
        log = self.settings.parent / f"log-{time.monotonic_ns()}"
        options = ["-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]
        options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.log.kafka.server=info"]
        with log.open("wb") as output:
            self.again = subprocess.Popen(
                ["java", *options, "-cp", self.classpath, "kafka.Kafka", self.settings],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.pid = self.again.pid
        return log

    def becomes_ready(self, log: Path) -> None:
        """Waits until the broker is ready."""
        deadline = time.monotonic() + START_WITHIN_S
        while b"Kafka Server started" not in log.read_bytes():
            assert self.again.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.05)

    def topics(self, *arguments: str) -> str:
        """Runs Kafka's own tool for topics."""
        return self.tool("TopicCommand", *arguments)

    def tool(self, name: str, *arguments: str | Path) -> str:
        """Runs one of Kafka's own tools; gives what it has said."""
        done = subprocess.run(
            ["java", "-cp", self.classpath, f"org.apache.kafka.tools.{name}"]
            + ["--bootstrap-server", self.address, *arguments],
            text=True,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


SETTINGS = """
process.roles=broker,controller
node.id={number}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={directory}/data
offsets.topic.replication.factor=3
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=3
log.cleaner.dedupe.buffer.size=4194304
"""
# Any id will do; one made by chance may begin with a dash and be taken for an option.
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


@contextlib.contextmanager
def kafka_cluster(classpath: str, home: Path) -> Iterator[list[Kafka]]:
    """Starts three brokers that end with the block, with the programs of another one."""
    ports, controllers = _free_ports(3), _free_ports(3)
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
    brokers = []
    for number, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1):
        directory = home / f"kafka-{number}"
        directory.mkdir()
        settings = directory / "server.properties"
        settings.write_text(
            SETTINGS.format(number=number, voters=voters, port=port, controller=controller, directory=directory)
        )
        tool = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath, "kafka.tools.StorageTool"]
        subprocess.run([*tool, "format", "-c", settings, "-t", CLUSTER], check=True, capture_output=True, timeout=60)
        brokers.append(Kafka(f"127.0.0.1:{port}", 0, settings, classpath))
    try:
        # None is ready before there is a majority.
        logs = [broker.spawn() for broker in brokers]
        for broker, log in zip(brokers, logs, strict=True):
            broker.becomes_ready(log)
        yield brokers
    finally:
        for broker in brokers:
            if broker.again is not None:
                broker.kill()


@contextlib.contextmanager
def kafka_server(*, relay: Relay | None = None, home: Path | None = None) -> Iterator[Kafka]:
    """Starts a broker that ends with the block.

    With a relay, clients are told to use that. All that it keeps is in the directory `home`, where one is given.
    """
    # The shell lives as long as the pipe to it is open.
    command = ["sh", "-c", "".join(f'echo "${name}"; ' for name in TOLD) + "exec cat >/dev/null"]
    script = subprocess.Popen(
        [REPOSITORY / "tests/services/with-kafka.sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"KAFKA_ADVERTISED": relay.address if relay else ""} | ({"TMPDIR": str(home)} if home else {}),
    )
    kafka = None
    try:
        address, pid, settings, classpath = (script.stdout.readline().strip() for _ in TOLD)
        assert classpath, "Kafka did not start"
        if relay is not None:
            relay.target = split_address(address)
        kafka = Kafka(address, int(pid), Path(settings), classpath)
        yield kafka
    finally:
        if kafka is not None and kafka.again is not None:
            kafka.kill()
        script.stdin.close()
        script.wait(30)
