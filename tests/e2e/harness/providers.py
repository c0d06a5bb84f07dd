"""The providers of the broker's access: how clients show who they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .broker import BrokerClient, broker_settings
from .certificates import Authority
from .rest import Rest, unique
from .server import Server

PROVIDER = "/api/mqtt/auth/provider"
ORDER = "/api/admin/settings"
SECRET = "0123456789abcdef" * 4
ALL = {"pubAuthRulePatterns": [".*"], "subAuthRulePatterns": [".*"]}
OWN = {"pubAuthRulePatterns": ["own/.*"], "subAuthRulePatterns": ["own/.*"]}
REFUSED, UNAVAILABLE = 0x87, 0x88


@contextmanager
def credentials_broker(folder: Path, authority: Authority) -> Iterator[Server]:
    """A server whose broker asks for credentials, with TLS and certificates of clients."""
    identity = authority.issue("localhost", server=True)
    env = broker_settings(
        access="credentials",
        tls_listen="127.0.0.1:0",
        certificate=identity.certificate,
        private_key=identity.key,
        client_authorities=authority.path,
    )
    with Server(folder, env=env).lent() as server:
        yield server


def reset_providers(admin: Rest) -> None:
    """Switches and orders the providers as a new installation has them."""
    for kind in "X_509", "JWT", "SCRAM", "HTTP":
        switch(admin, kind, False)
    switch(admin, "MQTT_BASIC", True)
    set_order(admin, ["MQTT_BASIC", "X_509", "JWT", "HTTP"])


def switch(admin: Rest, kind: str, enabled: bool) -> None:
    provider = admin.get(f"{PROVIDER}/type/{kind}").json()
    admin.post(f"{PROVIDER}/{provider['id']}/{'enable' if enabled else 'disable'}")


def configure(admin: Rest, kind: str, **configuration) -> dict:
    """Enables a provider with these settings."""
    body = {"type": kind, "enabled": True, "configuration": {"type": kind} | configuration}
    return admin.post(PROVIDER, body).json()


def set_order(admin: Rest, order: list[str]) -> None:
    admin.post(ORDER, {"key": "mqttAuthorization", "jsonValue": {"priorities": order}})


def connects(broker: Server, client_id: str | None = None, version: str = "5.0", **login) -> int:
    client = BrokerClient(broker.broker_address, version, client_id or unique("client"), **login)
    try:
        return client.connect()
    finally:
        client.leave()


def reason(admin: Rest, client_id: str) -> str:
    return admin.get("/api/unauthorized/client", clientId=client_id).json()["reason"]


def hmac(**more) -> dict:
    signature = {"algorithm": "HMAC_BASED", "secret": SECRET}
    verifier = {"jwtVerifierType": "ALGORITHM_BASED", "jwtSignAlgorithmConfiguration": signature}
    return {"jwtVerifierConfiguration": verifier, "authRules": ALL} | more


def save(admin: Rest, value: dict, kind: str = "MQTT_BASIC", **fields) -> dict:
    body = {"name": unique("credentials"), "credentialsType": kind, "credentialsValue": json.dumps(value)}
    return admin.post("/api/mqtt/client/credentials", body | fields).json()
