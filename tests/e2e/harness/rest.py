"""The REST API as the tests use it."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass, field

import requests

NULL_ID = "13814000-1dd2-11b2-8080-808080808080"

_counter = itertools.count(1)


def unique(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}-{os.getpid()}-{next(_counter)}"


@dataclass(frozen=True)
class Device:
    """A device that a test has made."""

    id: str
    name: str
    token: str
    json: dict = field(compare=False)


class Rest:
    """One user's view of the REST API; without a user name, a stranger's."""

    def __init__(self, base: str, username: str | None = None, password: str | None = None):
        self.base = base
        self.session = requests.Session()
        self.token = self.refresh_token = None
        self.user: dict = {}
        if username is not None:
            self.login(username, password)

    def login(self, username: str, password: str) -> dict:
        """Logs in and uses the token from then on."""
        pair = self.post("/api/auth/login", {"username": username, "password": password}).json()
        self.use(pair)
        return pair

    def use(self, pair: dict) -> None:
        """Uses these tokens from then on."""
        self.token, self.refresh_token = pair["token"], pair["refreshToken"]
        self.session.headers["X-Authorization"] = f"Bearer {self.token}"

    def call(self, method: str, path: str, *, expect: int | None = 200, **arguments) -> requests.Response:
        """One request; an unexpected status is a failure that shows the answer."""
        arguments.setdefault("timeout", 30)
        answer = self.session.request(method, self.base + path, **arguments)
        if expect is not None:
            assert answer.status_code == expect, (
                f"{method} {path} answered {answer.status_code}, not {expect}: {answer.text[:600]}"
            )
        return answer

    def get(self, path: str, *, expect: int | None = 200, **params) -> requests.Response:
        """GET with query parameters."""
        return self.call("GET", path, params=params, expect=expect)

    def post(self, path: str, body=None, *, expect: int | None = 200, **params) -> requests.Response:
        """POST of JSON, with query parameters."""
        return self.call("POST", path, json=body, params=params, expect=expect)

    def delete(self, path: str, *, expect: int | None = 200, **params) -> requests.Response:
        """DELETE with query parameters."""
        return self.call("DELETE", path, params=params, expect=expect)

    # -- devices --

    def create_device(self, name: str | None = None, **fields) -> Device:
        """A new device with an access token."""
        name = name or unique("device")
        saved = self.post("/api/device", {"name": name, "type": "default"} | fields).json()
        credentials = self.credentials(saved["id"]["id"])
        return Device(saved["id"]["id"], name, credentials["credentialsId"], saved)

    def credentials(self, device_id: str) -> dict:
        """The credentials of a device."""
        return self.get(f"/api/device/{device_id}/credentials").json()

    def set_credentials(self, device_id: str, kind: str, credentials_id: str | None, value: str | None) -> dict:
        """Replaces the credentials of a device."""
        changed = self.credentials(device_id) | {
            "credentialsType": kind,
            "credentialsId": credentials_id,
            "credentialsValue": value,
        }
        return self.post("/api/device/credentials", changed).json()

    def device_by_name(self, name: str) -> dict:
        """The tenant's device of that name."""
        return self.get("/api/tenant/devices", deviceName=name).json()

    # -- telemetry --

    def points(self, device_id: str, key: str, **params) -> list[dict]:
        """Raw points of a key, oldest first, with native types; all of them unless a range is given."""
        query = {
            "keys": key,
            "startTs": 0,
            "endTs": now_ms() + 86_400_000,
            "limit": 10_000_000,
            "orderBy": "ASC",
            "useStrictDataTypes": "true",
        } | params
        return self.get(telemetry(device_id, "values/timeseries"), **query).json().get(key, [])

    def values(self, device_id: str, key: str, **params) -> list:
        """Values of a key, oldest first."""
        return [point["value"] for point in self.points(device_id, key, **params)]

    def latest(self, device_id: str, *keys: str) -> dict:
        """Latest values by key, with native types."""
        params = {"useStrictDataTypes": "true"} | ({"keys": ",".join(keys)} if keys else {})
        found = self.get(telemetry(device_id, "values/timeseries"), **params).json()
        return {key: points[0]["value"] for key, points in found.items()}

    def attributes(self, device_id: str, scope: str) -> dict:
        """Attributes of a scope."""
        found = self.get(telemetry(device_id, f"values/attributes/{scope}")).json()
        return {entry["key"]: entry["value"] for entry in found}

    def activity(self, device_id: str) -> tuple[bool, int]:
        """Whether a device is active, and since when that has been so; fails for a device that was never heard."""
        found = self.get(telemetry(device_id, "values/attributes/SERVER_SCOPE"), keys="active").json()
        return found[0]["value"], found[0]["lastUpdateTs"]


def telemetry(device_id: str, rest: str) -> str:
    """Path of a device in the telemetry controller."""
    return f"/api/plugins/telemetry/DEVICE/{device_id}/{rest}"


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
