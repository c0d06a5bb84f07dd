"""Cassandra nodes for tests, which can be killed, frozen and started again."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from .processes import free_port, is_gone
from .server import REPOSITORY

TOLD = ["FIELDLINE_TEST_CASSANDRA_NODES", "FIELDLINE_TEST_CASSANDRA_PID", "FIELDLINE_TEST_CASSANDRA_HOME"]
START_WITHIN_S = 180
HALF_RING = 1 << 62


class Cassandra:
    """One node."""

    def __init__(self, address: str, pid: int, home: Path, token: int = 0):
        self.address, self.home, self.token = address, home, token
        self.pid = pid
        self.program = home / "start"
        self.management = self.port + 2
        self.again: subprocess.Popen | None = None
        """The node, where a test has started it again."""

    @property
    def port(self) -> int:
        """The port for clients."""
        return int(self.address.rpartition(":")[2])

    @property
    def is_running(self) -> bool:
        """Whether the node has not ended."""
        return not is_gone(self.pid)

    def freeze(self) -> None:
        """Stops the node where it is."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen node go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Ends the node without a chance to write anything."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if self.again is not None:
            self.again.wait(30)
            self.again = None

    def start(self) -> None:
        """Starts a killed node on what it has left, and waits until it is ready."""
        log = self.home / f"log-{time.monotonic_ns()}"
        command = [self.program, self.home, str(self.token), str(self.management)]
        with log.open("wb") as output:
            self.again = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        self.pid = self.again.pid
        deadline = time.monotonic() + START_WITHIN_S
        while b"Startup complete" not in log.read_bytes():
            assert self.again.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.05)

    def logs(self) -> str:
        """What the node has said, over all its starts."""
        return "".join(log.read_text(errors="replace") for log in sorted(self.home.glob("log*")) if log.is_file())

    @contextlib.contextmanager
    def joined_by(self, home: Path, host: str = "127.0.0.2") -> Iterator[Cassandra]:
        """A second node with half of the ring, which ends with the block. Both have the same ports."""
        conf = home / "conf"
        conf.mkdir(parents=True)
        (conf / "logback.xml").write_text((self.home / "conf/logback.xml").read_text())
        settings = (self.home / "conf/cassandra.yaml").read_text().replace(str(self.home), str(home))
        settings = re.sub(r"^((?:listen|rpc|broadcast_rpc)_address): .*$", rf"\1: {host}", settings, flags=re.M)
        (conf / "cassandra.yaml").write_text(settings + "auto_bootstrap: false\n")
        other = Cassandra(f"{host}:{self.port}", 0, home, HALF_RING)
        other.program = self.program
        # This is on the same address.
        other.management = free_port()
        try:
            other.start()
            yield other
        finally:
            if other.again is not None:
                other.kill()


@contextlib.contextmanager
def cassandra_server(
    *, durable: bool = False, broadcast: str | None = None, home: Path | None = None
) -> Iterator[Cassandra]:
    """Starts a node that ends with the block.

    A durable one may be killed. `broadcast` is the address at which it tells clients that it is. All that it keeps is in the
    directory `home`, where one is given.
    """
    # The shell lives as long as the pipe to it is open.
    told = "echo told; " + "".join(f'echo "${name}"; ' for name in TOLD) + "exec cat >/dev/null"
    switches = {"CASSANDRA_SYNC": "group" if durable else "", "CASSANDRA_BROADCAST": broadcast or ""}
    server = subprocess.Popen(
        [REPOSITORY / "tests/services/with-cassandra.sh", "sh", "-c", told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | switches | ({"TMPDIR": str(home)} if home else {}),
    )
    cassandra = None
    try:
        # Maven colours what it does not say.
        assert server.stdout.readline().rstrip().endswith("told"), "Cassandra did not start"
        address, pid, directory = (server.stdout.readline().strip() for _ in TOLD)
        cassandra = Cassandra(address, int(pid), Path(directory))
        yield cassandra
    finally:
        if cassandra is not None and cassandra.again is not None:
            cassandra.kill()
        server.stdin.close()
        server.wait(60)
