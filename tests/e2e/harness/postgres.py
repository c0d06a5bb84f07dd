"""A PostgreSQL server for tests, which can be frozen, killed, set back and cut off."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .processes import children, is_gone
from .relay import Relay
from .server import REPOSITORY


@contextlib.contextmanager
def postgres_server(tls: bool = False, durable: bool = False, home: Path | None = None) -> Iterator[str]:
    """Starts a server that ends with the block; gives its URL.

    With TLS it refuses connections in clear. A durable one has written what it has acknowledged, so that it may be killed.
    All that it keeps is in the directory `home`, where one is given.
    """
    # The shell lives as long as the pipe to it is open.
    command = ["sh", "-c", 'echo "$FIELDLINE_TEST_POSTGRES_URL"; exec cat >/dev/null']
    server = subprocess.Popen(
        [REPOSITORY / "tests/services/with-postgres.sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"POSTGRES_TLS": "1" if tls else "", "POSTGRES_DURABLE": "1" if durable else ""}
        | ({"TMPDIR": str(home)} if home else {}),
    )
    try:
        url = server.stdout.readline().strip()
        assert url, "PostgreSQL did not start"
        yield url
    finally:
        server.stdin.close()
        server.wait(30)


def sql(url: str, statement: str) -> list[list[str]]:
    """Runs a statement; gives the rows as texts."""
    told = subprocess.run(
        ["psql", url, "-v", "ON_ERROR_STOP=1", "-qAtF", "\t", "-c", statement],
        text=True,
        capture_output=True,
        timeout=30,
    )
    assert told.returncode == 0, told.stderr
    return [line.split("\t") for line in told.stdout.splitlines()]


def create_database(url: str) -> str:
    """Creates an empty database; gives its URL."""
    name = f"test_{uuid.uuid4().hex}"
    sql(url, f"CREATE DATABASE {name}")
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


class PostgresRelay(Relay):
    """A relay to a database."""

    def __init__(self, url: str):
        parts = urlsplit(url)
        super().__init__((parts.hostname, parts.port))
        self.url = urlunsplit(parts._replace(netloc=f"{parts.username}@{self.address}"))


class Postgres:
    """The processes and the files of a server that runs: it can be frozen, killed, started again, and set back to a copy."""

    def __init__(self, url: str):
        self.url = url
        self.data = Path(sql(url, "SHOW data_directory")[0][0])
        program, *options = shlex.split((self.data / "postmaster.opts").read_text())
        self.programs = Path(program).parent
        # Without the directory, which is told apart.
        self.options = shlex.join(options[2:])
        assert options[0] == "-D", options
        self.first = self._first()
        self.frozen: list[int] = []

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not is_gone(self.first)

    def freeze(self) -> None:
        """Stops all processes where they are; the first one at first, so that it starts none meanwhile."""
        os.kill(self.first, signal.SIGSTOP)
        self.frozen = [self.first]
        for child in children(self.first):
            # One may have ended just now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
                self.frozen.append(child)

    def thaw(self) -> None:
        """Lets a frozen server go on."""
        for process in reversed(self.frozen):
            os.kill(process, signal.SIGCONT)
        self.frozen = []

    def kill(self) -> None:
        """Ends all processes without a chance to write anything."""
        self.freeze()
        killed, self.frozen = self.frozen, []
        for process in killed:
            os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while not all(is_gone(process) for process in killed):
            assert time.monotonic() < deadline, "PostgreSQL does not end"
            time.sleep(0.01)
        # It would be taken for a server that runs, where nobody has asked yet how its process has ended.
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def start(self) -> None:
        """Starts a killed server on what is there, and waits until it is ready."""
        log = self.data.parent / "log-again"
        self._run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", "120", "-o", self.options, "start")
        self.first = self._first()

    def copy(self, name: str) -> Path:
        """Takes a copy of everything, beside the data."""
        parts = urlsplit(self.url)
        target = self.data.parent / name
        login = ["-h", parts.hostname, "-p", str(parts.port), "-U", parts.username]
        self._run("pg_basebackup", *login, "-D", target, "--checkpoint=fast", "--wal-method=stream", "--no-sync")
        return target

    def set_back(self, copy: Path) -> None:
        """Puts the copy in the place of what a killed server has left."""
        self.data.rename(self.data.parent / f"lost-{time.monotonic_ns()}")
        copy.rename(self.data)

    def _first(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _run(self, program: str, *arguments) -> None:
        """Runs a program of the server as the user that has the data."""
        owner = self.data.stat()
        login = {} if os.getuid() else {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        done = subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.data.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
            **login,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"
