"""Bridges of the broker, as settings and as they are seen."""

from __future__ import annotations

from pathlib import Path

from .broker import BrokerClient, broker_settings
from .mosquitto import Mosquitto
from .server import Server

HERE, THERE = "here/", "there/"


def bridged(make_server, tmp_path: Path, toml: str, name: str = "bridged", demo: bool = False, **settings) -> Server:
    """A server with bridges of a configuration file."""
    file = tmp_path / f"{name}.toml"
    file.write_text(toml)
    env = broker_settings(**settings) | {"FIELDLINE_CONFIG": str(file)}
    return make_server(name, demo=demo, env=env)


def to(address: str, *topics: str, name: str = "peer", **settings: object) -> str:
    """A bridge in TOML."""
    fields = {"name": name, "address": address} | settings
    lines = ["[[bridges.brokers]]"]
    for field, value in fields.items():
        lines.append(f"{field.replace('_', '-')} = {value if isinstance(value, int) else repr(value)}")
    for topic in topics:
        lines += ["[[bridges.brokers.topics]]", topic]
    return "\n".join(lines) + "\n"


def topic(filter: str, direction: str, **settings: object) -> str:
    fields = {"filter": filter, "direction": direction, "local_prefix": HERE, "remote_prefix": THERE} | settings
    return "\n".join(
        f"{field.replace('_', '-')} = {value if isinstance(value, int) else repr(value)}"
        for field, value in fields.items()
    )


def is_up(server: Server, name: str = "peer") -> bool:
    return server.metrics().get(f'bridge_connected{{bridge="{name}"}}') == 1


def at(peer: Mosquitto, version: str = "5.0", **fields) -> BrokerClient:
    client = BrokerClient(("127.0.0.1", peer.port), version, **fields)
    assert client.connect() == 0
    return client


def devices(token: str, name: str = "home", **settings: object) -> str:
    fields = {"name": name, "token": token} | settings
    lines = [f"{field.replace('_', '-')} = {_toml(value)}" for field, value in fields.items()]
    return "\n".join(["[[bridges.devices]]", *lines]) + "\n"


def gateway(server: Server):
    return server.rest().create_device(additionalInfo={"gateway": True})


def sink(kind: str, name: str, *filters: str, **settings: object) -> str:
    fields = {"name": name, "filters": list(filters)} | settings
    return "\n".join(
        [f"[[bridges.{kind}]]", *(f"{field.replace('_', '-')} = {_toml(value)}" for field, value in fields.items()), ""]
    )


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else repr(value)
