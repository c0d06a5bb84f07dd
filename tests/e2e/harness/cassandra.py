"""A Cassandra node for tests, which can be frozen and thawed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from .server import REPOSITORY


@dataclass
class Cassandra:
    """One node."""

    address: str
    pid: int

    def freeze(self) -> None:
        """Stops the node where it is."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen node go on."""
        os.kill(self.pid, signal.SIGCONT)


@contextlib.contextmanager
def cassandra_server() -> Iterator[Cassandra]:
    """Starts a node that ends with the block."""
    # The shell lives as long as the pipe to it is open.
    told = 'echo "$FIELDLINE_TEST_CASSANDRA_NODES $FIELDLINE_TEST_CASSANDRA_PID"; exec cat >/dev/null'
    server = subprocess.Popen(
        [REPOSITORY / "tests/services/with-cassandra.sh", "sh", "-c", told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        # Maven colours what it does not say.
        said = server.stdout.readline().split("\x1b[0m")[-1].split()
        assert len(said) == 2, "Cassandra did not start"
        yield Cassandra(said[0], int(said[1]))
    finally:
        server.stdin.close()
        server.wait(60)
