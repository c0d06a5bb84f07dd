"""A tenant that means harm, with all the rights that a tenant administrator and a device have, and no others."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import requests
from requests.adapters import HTTPAdapter

from harness.chains import Chain
from harness.live import Live
from harness.people import Tenancy, create_tenancy
from harness.rest import Device, Rest, unique
from harness.server import Server

SECONDS = 5.0
# However fast the server answers: load on loopback is bounded in number, too.
MOST_CALLS = 20_000
# A client that is made to wait goes on with the next one.
PATIENCE_S = 10
# A stranger comes from elsewhere: what an address may do is its own affair.
ADDRESS = "127.0.0.66"
# Some attacks leave very much behind, of which the rows go before the answer.
DELETED_WITHIN_S = 30


class FromElsewhere(HTTPAdapter):
    """Connects from an address that nobody else has."""

    def init_poolmanager(self, *arguments, **options):
        super().init_poolmanager(*arguments, source_address=(ADDRESS, 0), **options)


def stranger() -> requests.Session:
    """A session that many threads use, from elsewhere."""
    session = requests.Session()
    session.mount("http://", FromElsewhere(pool_maxsize=100))
    return session


@dataclass
class Evil:
    """One attack under way."""

    server: Server
    sysadmin: Rest
    tenancy: Tenancy
    devices: list[Device]
    until: float = 0.0
    begun: int = 0
    answers: Counter = field(default_factory=Counter)
    threads: list[threading.Thread] = field(default_factory=list)
    sockets: list[Live] = field(default_factory=list)
    http: requests.Session = field(default_factory=stranger)

    @classmethod
    def of(cls, server: Server, sysadmin: Rest, devices: int = 4) -> Evil:
        tenancy = create_tenancy(sysadmin)
        return cls(server, sysadmin, tenancy, [tenancy.admin.create_device() for _ in range(devices)])

    @property
    def rest(self) -> Rest:
        """The REST API as its administrator."""
        return self.tenancy.admin

    def chain(self, *steps: tuple[tuple[str, dict], str]) -> dict:
        """A root chain of these nodes, one behind the other."""
        return Chain().line(*steps).save(self.rest, root=True)

    def repeat(self, action: Callable[[int], object], threads: int = 4) -> None:
        """Does something again and again by so many threads until the time is up; what comes of it is only counted."""

        def work(first: int) -> None:
            for number in range(first, MOST_CALLS, threads):
                if time.monotonic() >= self.until:
                    return
                self.begun += 1
                try:
                    outcome = action(number)
                    self.answers[getattr(outcome, "status_code", "done")] += 1
                except (requests.RequestException, AssertionError, OSError) as error:
                    self.answers[type(error).__name__] += 1
                    time.sleep(0.01)

        for first in range(threads):
            thread = threading.Thread(target=work, args=(first,), daemon=True)
            thread.start()
            self.threads.append(thread)

    def post(self, body, number: int = 0, kind: str = "telemetry") -> requests.Response:
        """A post of one of its devices."""
        device = self.devices[number % len(self.devices)]
        url = f"{self.server.http}/api/v1/{device.token}/{kind}"
        if isinstance(body, (str, bytes)):
            headers = {"Content-Type": "application/json"}
            return self.http.post(url, data=body, headers=headers, timeout=PATIENCE_S)
        return self.http.post(url, json=body, timeout=PATIENCE_S)

    def posts(self, body, threads: int = 4) -> None:
        """Its devices post the same again and again."""
        self.repeat(lambda number: self.post(body, number), threads)

    def call(self, method: str, path: str, **arguments) -> requests.Response:
        """A request of its administrator, whatever it is answered; on a connection of its own."""
        headers = {"X-Authorization": f"Bearer {self.rest.token}"} | arguments.pop("headers", {})
        arguments.setdefault("timeout", PATIENCE_S)
        return self.http.request(method, self.server.http + path, headers=headers, **arguments)

    def calls(self, method: str, path: str, threads: int = 8, **arguments) -> None:
        """The same request again and again."""
        self.repeat(lambda _: self.call(method, path, **arguments), threads)

    def socket(self, *commands: dict) -> Live:
        """A WebSocket of its administrator that nobody reads unless the attack does."""
        live = Live.authenticated(self.rest, *commands)
        self.sockets.append(live)
        return live

    def end(self) -> None:
        """Waits for what is still under way, and leaves."""
        for live in self.sockets:
            live.close()
        for thread in self.threads:
            thread.join(PATIENCE_S + 1)

    def delete(self) -> None:
        """Takes the tenant and all that it has away."""
        path = f"/api/tenant/{self.tenancy.tenant['id']['id']}"
        self.sysadmin.call("DELETE", path, expect=None, timeout=DELETED_WITHIN_S)


Attack = Callable[[Evil], None]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Registers an attack under its name."""
    ATTACKS[function.__name__] = function
    return function


def default_profile(evil: Evil) -> dict:
    """The default device profile of the tenant."""
    found = evil.rest.get("/api/deviceProfileInfo/default").json()
    return evil.rest.get(f"/api/deviceProfile/{found['id']['id']}").json()


def calculated_field(evil: Evil, configuration: dict) -> None:
    """A calculated field of all devices of the default profile."""
    body = {"entityId": default_profile(evil)["id"], "type": configuration["type"], "name": unique("field")}
    evil.rest.post("/api/calculatedField", body | {"configuration": configuration}, expect=None)
