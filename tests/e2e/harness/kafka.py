"""A Kafka broker for tests, which can be killed, frozen and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from .server import REPOSITORY

TOLD = ["FIELDLINE_TEST_KAFKA", "FIELDLINE_TEST_KAFKA_PID", "FIELDLINE_TEST_KAFKA_SETTINGS", "FIELDLINE_TEST_KAFKA_CLASSPATH"]
START_WITHIN_S = 90


class Kafka:
    """One broker."""

    def __init__(self, address: str, pid: int, settings: Path, classpath: str):
        self.address, self.settings, self.classpath = address, settings, classpath
        self.pid = pid
        self.again: subprocess.Popen | None = None
        """The broker, where a test has started it again."""

    def freeze(self) -> None:
        """Stops the broker where it is."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen broker go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Ends the broker without a chance to write anything."""
        os.kill(self.pid, signal.SIGKILL)
        if self.again is not None:
            self.again.wait(30)
            self.again = None

    def start(self) -> None:
        """Starts a killed broker on what it has left."""
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
        deadline = time.monotonic() + START_WITHIN_S
        while b"Kafka Server started" not in log.read_bytes():
            assert self.again.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.05)

    def topics(self, *arguments: str) -> str:
        """Runs Kafka's own tool for topics."""
        done = subprocess.run(
            ["java", "-cp", self.classpath, "org.apache.kafka.tools.TopicCommand"]
            + ["--bootstrap-server", self.address, *arguments],
            text=True,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextlib.contextmanager
def kafka_server() -> Iterator[Kafka]:
    """Starts a broker that ends with the block."""
    # The shell lives as long as the pipe to it is open.
    command = ["sh", "-c", "".join(f'echo "${name}"; ' for name in TOLD) + "exec cat >/dev/null"]
    script = subprocess.Popen(
        [REPOSITORY / "tests/services/with-kafka.sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    kafka = None
    try:
        address, pid, settings, classpath = (script.stdout.readline().strip() for _ in TOLD)
        assert classpath, "Kafka did not start"
        kafka = Kafka(address, int(pid), Path(settings), classpath)
        yield kafka
    finally:
        if kafka is not None and kafka.again is not None:
            kafka.kill()
        script.stdin.close()
        script.wait(30)
