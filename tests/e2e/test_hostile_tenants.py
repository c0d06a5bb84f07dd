"""Strangers on one installation: whatever a tenant does within its rights, the others go on.

Each attack goes on for some seconds while another tenant's device publishes and its user reads. What these feel is held to the
promise (docs/security.md), and so is the memory of the process. `make test-hostile` runs them one after the other with nothing
beside them; `HOSTILE_SECONDS=60` makes each attack longer. With `HOSTILE_TIMED=` (empty) it is not held to times, only to everything
else: for a machine that has something else to do.
"""

from __future__ import annotations

import os
import threading
import time

import pytest

from harness.neighbour import RECOVERS_WITHIN_S, Neighbour
from harness.server import SYSADMIN, Server, eventually
from hostile import floods, nodes, people  # noqa: F401  (they register their attacks)
from hostile.evil import ATTACKS, SECONDS, Evil

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(180)]
ATTACK_S = float(os.environ.get("HOSTILE_SECONDS", SECONDS))
IS_TIMED = bool(os.environ.get("HOSTILE_TIMED", "yes"))
RECOVERS_WITHIN_S = RECOVERS_WITHIN_S if IS_TIMED else 90.0
# Those after which the process is killed and started again while the attack goes on.
KILLED = [
    "json_path_of_nested_filters",
    "json_path_that_repeats_what_it_finds",
    "scripts_that_spin",
    "messages_that_multiply",
    "chains_that_go_round",
    "delays_by_the_thousand",
    "large_values_sent",
]
START_AGAIN_WITHIN_S = 10 if IS_TIMED else 60
SETTINGS = {"FIELDLINE_RULES_STATISTICS_INTERVAL": "1s"}


class Memory:
    """The most that the process held while it was watched."""

    def __init__(self, server: Server):
        self.server, self.most_kib, self.ends = server, 0, threading.Event()

    def __enter__(self) -> Memory:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def _watch(self) -> None:
        while not self.ends.wait(0.05):
            try:
                self.most_kib = max(self.most_kib, self.server.memory_kib())
            except (OSError, AttributeError, KeyError):
                continue

    def __exit__(self, *_) -> None:
        self.ends.set()


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    """One server for all attacks: none of them may leave anything behind that the next one feels. It lives with twice the
    memory that it is configured to take."""
    server = Server(tmp_path_factory.mktemp("hostile"), env=SETTINGS)
    try:
        server.start()
        server.limit_address_space()
        yield server
        server.close()
    finally:
        server.kill()


@pytest.fixture(scope="module")
def operator(platform):
    return platform.rest(*SYSADMIN)


@pytest.fixture(scope="module")
def neighbour(platform, operator):
    with Neighbour(platform, operator) as calm:
        calm.settle(max(20.0, RECOVERS_WITHIN_S))
        yield calm


def budget_kib(server: Server) -> int:
    """The sum of all that the server may hold by its configuration."""
    return int(server.metrics()["fieldline_memory_budget_bytes"]) // 1024


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_an_attack_is_felt_by_nobody_else(platform, operator, neighbour, name):
    evil = Evil.of(platform, operator)
    try:
        since = time.monotonic()
        with Memory(platform) as memory:
            evil.until = since + ATTACK_S
            ATTACKS[name](evil)
            time.sleep(max(evil.until - time.monotonic(), 0))
            until = time.monotonic()
            evil.end()
            took = neighbour.recovers(time.monotonic(), RECOVERS_WITHIN_S)
        assert platform.running, "the process has ended"
        felt = neighbour.check(since, until, IS_TIMED)
        print(
            f"{name}: queryable p99 {felt['queryable']:.0f} ms, read p99 {felt['read']:.0f} ms, "
            f"recovered after {took:.1f} s, {memory.most_kib >> 10} MiB, {dict(evil.answers)}"
        )
        assert evil.begun, "nothing was attacked"
        assert memory.most_kib < budget_kib(platform), f"{memory.most_kib >> 10} MiB are beyond the configured sum"
    finally:
        evil.end()
        evil.delete()


@pytest.mark.parametrize("name", KILLED)
def test_a_restart_in_the_midst_of_an_attack_serves_the_others(tmp_path, name):
    server = Server(tmp_path / "killed", env=SETTINGS)
    try:
        server.start()
        server.limit_address_space()
        operator = server.rest(*SYSADMIN)
        evil = Evil.of(server, operator)
        evil.until = time.monotonic() + 2 * ATTACK_S
        ATTACKS[name](evil)
        time.sleep(min(ATTACK_S, 3))
        server.kill()
        server.spawn()
        eventually(server.is_listening)
        # Its devices come back while the messages of the attack are done again.
        with Neighbour(server, server.rest(*SYSADMIN)) as calm:
            server.becomes_ready(START_AGAIN_WITHIN_S)
            server.limit_address_space()
            calm.recovers(time.monotonic(), RECOVERS_WITHIN_S)
        evil.until = 0.0
        evil.end()
        # What is broken can be repaired: the tenant goes, with all that it has.
        evil.sysadmin = server.rest(*SYSADMIN)
        eventually(lambda: (evil.delete(), True)[1])
        server.stop()
    finally:
        server.kill()
