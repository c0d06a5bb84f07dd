"""A tenant's device and its user as a process of their own: what they see of the platform while somebody else misbehaves.

Everything goes by a schedule and is measured from the scheduled time, so that a platform that stands still is seen by all that
should have happened meanwhile. Each sample is a line of JSON; the process ends when its standard input is closed.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import requests

PUBLISH_EVERY_S = 0.1
LOOK_EVERY_S = 0.02
READ_EVERY_S = 0.05
TIMEOUT_S = 30


class Neighbour:
    def __init__(self, base: str, token: str, user: str, device: str):
        self.base, self.token, self.device = base, token, device
        self.user = {"X-Authorization": f"Bearer {user}"}
        self.ends = threading.Event()
        self.writing = threading.Lock()
        # Scheduled time of each published number, until it has been seen.
        self.published: dict[int, float] = {}

    def say(self, kind: str, scheduled: float, **more) -> None:
        now = time.monotonic()
        line = json.dumps({"kind": kind, "at": now, "ms": (now - scheduled) * 1000} | more)
        with self.writing:
            print(line, flush=True)

    def by_schedule(self, every: float):
        """The times at which something is to happen; those that were missed come at once."""
        next_one = time.monotonic()
        while not self.ends.wait(max(next_one - time.monotonic(), 0)):
            yield next_one
            next_one += every

    def publish(self) -> None:
        session = requests.Session()
        for number, scheduled in enumerate(self.by_schedule(PUBLISH_EVERY_S), 1):
            self.published[number] = scheduled
            try:
                url = f"{self.base}/api/v1/{self.token}/telemetry"
                status = session.post(url, json={"n": number}, timeout=TIMEOUT_S).status_code
            except requests.RequestException as error:
                status = type(error).__name__
            if status != 200:
                self.published.pop(number, None)
            self.say("acknowledged", scheduled, status=status)

    def look(self) -> None:
        session = requests.Session()
        url = f"{self.base}/api/plugins/telemetry/DEVICE/{self.device}/values/timeseries"
        while not self.ends.wait(LOOK_EVERY_S):
            try:
                found = session.get(
                    url, params={"keys": "n", "useStrictDataTypes": "true"}, headers=self.user, timeout=TIMEOUT_S
                ).json()
                newest = found["n"][0]["value"] or 0
            except (requests.RequestException, ValueError, KeyError, TypeError):
                continue
            for number in [known for known in list(self.published) if known <= newest]:
                self.say("queryable", self.published.pop(number))

    def read(self) -> None:
        session = requests.Session()
        values = f"/api/plugins/telemetry/DEVICE/{self.device}/values/timeseries"
        asked = [
            ("/api/auth/user", {}),
            ("/api/tenant/devices", {"pageSize": 10, "page": 0}),
            (values, {"keys": "n", "startTs": 0, "endTs": 1 << 45, "limit": 100}),
            (f"/api/device/{self.device}", {}),
        ]
        for number, scheduled in enumerate(self.by_schedule(READ_EVERY_S)):
            path, query = asked[number % len(asked)]
            try:
                status = session.get(self.base + path, params=query, headers=self.user, timeout=TIMEOUT_S).status_code
            except requests.RequestException as error:
                status = type(error).__name__
            self.say("read", scheduled, status=status)

    def run(self) -> None:
        threads = [threading.Thread(target=work, daemon=True) for work in (self.publish, self.look, self.read)]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        self.ends.set()


if __name__ == "__main__":
    Neighbour(*sys.argv[1:5]).run()
