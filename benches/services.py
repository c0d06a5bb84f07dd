"""The servers that `tests/services/with-*.sh` have started: what they cost and hold."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from lab import Failed

TICKS = os.sysconf("SC_CLK_TCK")


def psql(url: str, statement: str) -> str:
    """Runs a statement; gives its only value."""
    told = subprocess.run(["psql", url, "-qAtc", statement], text=True, capture_output=True, check=True, timeout=60)
    return told.stdout.strip()


def postgres_url() -> str:
    """Where the server's own database is."""
    return os.environ["FIELDLINE_TEST_POSTGRES_URL"]


def create_database() -> str:
    """Creates an empty database; gives its URL."""
    name = f"bench_{uuid.uuid4().hex}"
    psql(postgres_url(), f"CREATE DATABASE {name}")
    return urlunsplit(urlsplit(postgres_url())._replace(path=f"/{name}"))


def postgres_bytes(url: str, name: str) -> int:
    """Bytes of a table with its parts and indexes."""
    table = f"to_regclass('{name}')"
    of_parts = f"SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree({table})"
    # One without parts is not listed there.
    return int(psql(url, f"SELECT COALESCE(({of_parts}), pg_total_relation_size({table}), 0)"))


def compacted_bytes(url: str, name: str) -> int:
    """The same after what was written anew has given its room back."""
    psql(url, f"VACUUM FULL {name}")
    return postgres_bytes(url, name)


def cpu_s(pid: int, with_ended_children: bool = False) -> float:
    """Processor time of a process, in seconds; nothing where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / TICKS


class PostgresProcesses:
    """All of PostgreSQL's processes, by the one that started them."""

    def __init__(self):
        some = psql(postgres_url(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        self.parent = int(Path(f"/proc/{some}/stat").read_text().rpartition(")")[2].split()[1])

    def cpu_s(self) -> float:
        """Processor time of all of them, and of those that have ended."""
        children = Path(f"/proc/{self.parent}/task/{self.parent}/children").read_text().split()
        return cpu_s(self.parent, with_ended_children=True) + sum(cpu_s(int(child)) for child in children)


def kafka_cpu_s() -> float:
    """Processor time of the broker."""
    return cpu_s(int(os.environ["FIELDLINE_TEST_KAFKA_PID"]))


class CassandraNode:
    """The node, by the arguments that its process was started with."""

    def __init__(self):
        self.pid = int(os.environ["FIELDLINE_TEST_CASSANDRA_PID"])
        self.arguments = Path(f"/proc/{self.pid}/cmdline").read_text().split("\0")

    def cpu_s(self) -> float:
        """Processor time of the node."""
        return cpu_s(self.pid)

    def nodetool(self, *arguments: str) -> None:
        """Runs Cassandra's own tool, which reaches into as many modules of Java as the node."""
        library = self.arguments.index("-cp")
        reached = self.arguments[self.arguments.index("--add-exports") : library + 2]
        management = self._given("-Dcassandra.jmx.local.port=")
        tool = ["java", *reached, "org.apache.cassandra.tools.NodeTool", "-h", "127.0.0.1", "-p", management]
        done = subprocess.run([*tool, *arguments], text=True, capture_output=True, timeout=300)
        if done.returncode != 0:
            raise Failed(f"nodetool {' '.join(arguments)}: {done.stdout}{done.stderr}")

    def table_bytes(self, keyspace: str, table: str) -> int:
        """What a table takes on the disk, flushed and compacted before."""
        self.nodetool("flush", keyspace, table)
        self.nodetool("compact", keyspace, table)
        of_keyspace = Path(self._given("-Dcassandra.storagedir=")) / "data" / keyspace
        files = of_keyspace.glob(f"{table}-*/*")
        return sum(file.stat().st_size for file in files if file.is_file())

    def _given(self, name: str) -> str:
        return next(argument for argument in self.arguments if argument.startswith(name))[len(name) :]
