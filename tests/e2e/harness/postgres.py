"""A PostgreSQL server for tests, and a relay to it that can be cut off as a network can."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from .server import REPOSITORY


@contextlib.contextmanager
def postgres_server(tls: bool = False) -> Iterator[str]:
    """Starts a server that ends with the block; gives its URL. With TLS it refuses connections in clear."""
    # The shell lives as long as the pipe to it is open.
    command = ["sh", "-c", 'echo "$FIELDLINE_TEST_POSTGRES_URL"; exec cat >/dev/null']
    server = subprocess.Popen(
        [REPOSITORY / "tests/services/with-postgres.sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"POSTGRES_TLS": "1" if tls else ""},
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


class Relay:
    """Forwards connections to a server until it is cut off, and again once it is mended."""

    def __init__(self, url: str):
        parts = urlsplit(url)
        self.target = (parts.hostname, parts.port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        host, port = self.listener.getsockname()
        self.url = urlunsplit(parts._replace(netloc=f"{parts.username}@{host}:{port}"))
        self.is_cut = False
        self.lock = threading.Lock()
        self.sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Breaks all connections, and those that are tried from now on."""
        with self.lock:
            self.is_cut = True
            for connection in self.sockets:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Forwards new connections again."""
        with self.lock:
            self.is_cut = False

    def close(self) -> None:
        """Ends the relay."""
        self.cut()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                if self.is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self.target)
                self.sockets |= {client, server}
            for ends in [(client, server), (server, client)]:
                threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.sockets.discard(source)
        source.close()
