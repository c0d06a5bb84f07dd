"""Logs, databases and stores of values that servers are put on.

E2E_ENGINES=scale puts every server of a run whose test does not choose for itself on a Kafka, a PostgreSQL and a Cassandra, with names of
its own on each. What measures uses this, too, so that it needs no more than the standard library.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import uuid
from urllib.parse import urlsplit, urlunsplit

ON_SCALE = os.environ.get("E2E_ENGINES") == "scale"
CHOICES = ("FIELDLINE_SQL_", "FIELDLINE_SERIES_KIND", "FIELDLINE_JOURNAL_KIND", "FIELDLINE_JOURNAL_KAFKA_")
STARTUP, QUERY, READY = 1, 7, (2, 8)


def on_postgres(database: str) -> dict[str, str]:
    """The settings that lead a server to a database, its values included."""
    return {"FIELDLINE_SQL_URL": database, "FIELDLINE_SERIES_KIND": "sql"}


def on_kafka(servers: str, partitions: int | None = None, prefix: str | None = None) -> dict[str, str]:
    """Those of the log, with topics of its own."""
    chosen = {
        "FIELDLINE_JOURNAL_KIND": "kafka",
        "FIELDLINE_JOURNAL_KAFKA_SERVERS": servers,
        "FIELDLINE_JOURNAL_KAFKA_PREFIX": prefix or f"test-{uuid.uuid4()}",
    }
    return chosen | ({"FIELDLINE_JOURNAL_KAFKA_PARTITIONS": str(partitions)} if partitions else {})


def on_cassandra(nodes: str, copies: int = 1, keyspace: str | None = None) -> dict[str, str]:
    """Those of values, with a keyspace of its own; to be added to those of a database."""
    return {
        "FIELDLINE_SERIES_KIND": "cassandra",
        "FIELDLINE_CASSANDRA_NODES": nodes,
        "FIELDLINE_CASSANDRA_KEYSPACE": keyspace or f"test_{uuid.uuid4().hex}",
        "FIELDLINE_CASSANDRA_REPLICATION": f"SimpleStrategy:{copies}",
    }


class Engines:
    """What one server has of its own on the three."""

    def __init__(self):
        self.name = f"e2e_{uuid.uuid4().hex}"
        self.postgres = os.environ["FIELDLINE_TEST_POSTGRES_URL"]
        psql(self.postgres, f"CREATE DATABASE {self.name}")

    def settings(self) -> dict[str, str]:
        """The settings that lead a server there."""
        chosen = on_postgres(urlunsplit(urlsplit(self.postgres)._replace(path=f"/{self.name}")))
        chosen |= on_cassandra(os.environ["FIELDLINE_TEST_CASSANDRA_NODES"], keyspace=self.name)
        # One broker keeps the topics of all servers open.
        return chosen | on_kafka(os.environ["FIELDLINE_TEST_KAFKA"], partitions=3, prefix=self.name)

    def drop(self) -> None:
        """Deletes what the server has left, which has ended."""
        psql(self.postgres, f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
        cql(os.environ["FIELDLINE_TEST_CASSANDRA_NODES"], f"DROP KEYSPACE IF EXISTS {self.name}")
        tool = ["java", "-cp", os.environ["FIELDLINE_TEST_KAFKA_CLASSPATH"], "org.apache.kafka.tools.TopicCommand"]
        server = ["--bootstrap-server", os.environ["FIELDLINE_TEST_KAFKA"]]
        subprocess.run(
            [*tool, *server, "--delete", "--if-exists", "--topic", f"{self.name}.*"],
            check=True,
            capture_output=True,
            timeout=60,
        )


def engines_for(chosen: dict[str, str]) -> Engines | None:
    """Those of a server with such settings; none where the run is on files, or the settings choose themselves."""
    if not ON_SCALE or any(name.startswith(CHOICES) for name in chosen):
        return None
    return Engines()


def psql(url: str, statement: str) -> None:
    """Runs a statement in PostgreSQL."""
    subprocess.run(["psql", url, "-qc", statement], check=True, capture_output=True, timeout=60)


def cql(address: str, statement: str) -> None:
    """Runs a statement in Cassandra, by version 4 of its protocol."""
    host, port = address.split(":")
    text = statement.encode()
    with socket.create_connection((host, int(port)), timeout=120) as node:
        for opcode, body in [
            (STARTUP, struct.pack(">H", 1) + _string("CQL_VERSION") + _string("3.0.0")),
            (QUERY, struct.pack(">i", len(text)) + text + struct.pack(">HB", 1, 0)),
        ]:
            node.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
            _, _, _, answer, length = struct.unpack(">BBhBi", _exactly(node, 9))
            said = _exactly(node, length)
            assert answer in READY, f"Cassandra refuses {statement!r}: {said!r}"


def _string(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _exactly(node: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = node.recv(length - len(data))
        assert more, "Cassandra has closed the connection"
        data += more
    return data
