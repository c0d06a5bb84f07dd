"""Very many devices, put straight into the database of a server that is stopped: over the API it would take an hour."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from .rest import Device

DATABASE = "entities.db"
BATCH = 10_000


def add_devices(
    data_dir: Path, template: Device, count: int, prefix: str = "fleet", active: bool = False
) -> list[Device]:
    """Adds copies of a device, each with a name, a token and ids of its own; they were active when the server stopped, or not."""
    with closing(sqlite3.connect(data_dir / DATABASE)) as database:
        device = _row(database, "SELECT * FROM device WHERE name = ?", template.name)
        credentials = _row(database, "SELECT * FROM device_credentials WHERE credentials_id = ?", template.token)
        first_ms = device["created_time"]
        added: list[Device] = []
        for start in range(0, count, BATCH):
            part = range(start, min(start + BATCH, count))
            copies = [(number, _id(first_ms, number), f"{prefix}-{number:07}") for number in part]
            _insert(
                database,
                "device",
                (device | {"id": id, "name": name, "search": name, "active": active} for _, id, name in copies),
            )
            _insert(
                database,
                "device_credentials",
                (
                    credentials | {"device_id": id, "id": _id(first_ms, number), "credentials_id": f"token-{name}"}
                    for number, id, name in copies
                ),
            )
            database.commit()
            added += [Device(str_id(id), name, f"token-{name}", {}) for _, id, name in copies]
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return added


def _row(database: sqlite3.Connection, query: str, *values) -> dict:
    cursor = database.execute(query, values)
    found = cursor.fetchone()
    assert found is not None, f"{query} finds nothing"
    return dict(zip((column[0] for column in cursor.description), found, strict=True))


def _insert(database: sqlite3.Connection, table: str, rows: Iterator[dict]) -> None:
    first, *rest = rows
    names, places = ", ".join(first), ", ".join("?" * len(first))
    statement = f"INSERT INTO {table} ({names}) VALUES ({places})"
    database.executemany(statement, (tuple(row.values()) for row in [first, *rest]))


def _id(first_ms: int, number: int) -> bytes:
    """An identifier of version 7, as the server makes them: ordered by time."""
    raw = bytearray((first_ms + number // 10).to_bytes(6, "big") + os.urandom(10))
    raw[6] = 0x70 | raw[6] & 0x0F
    raw[8] = 0x80 | raw[8] & 0x3F
    return bytes(raw)


def str_id(raw: bytes) -> str:
    """An identifier as the API writes it."""
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
