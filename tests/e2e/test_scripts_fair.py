"""Scripts of one tenant beside the devices and people of another: they take turns, and what is too much is refused."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from harness.chains import SAVE, Chain, post, script, transform
from harness.people import create_tenancy
from harness.server import SYSADMIN, eventually

THREADS = 3
# Less than a script spins, of which there are many; how long it really takes is measured by `make test-hostile`.
SOON_S = 6
# Of a script that never ends: far beyond what the tests wait for, so that it is not what ends it.
TIME_LIMIT = {"FIELDLINE_RULES_SCRIPT_TIME_LIMIT": "10m"}


def spin(seconds: float) -> str:
    """A script that keeps its thread busy, and then lets the message through."""
    return f"var t = Date.now(); while (Date.now() - t < {int(seconds * 1000)}) {{}} return true;"


# Nothing but a bound of its own ends such a search.
HANG = "var s = 'a'.repeat(4000000); return s.indexOf({toString: () => 'a'.repeat(2000000) + 'b'}) > 0;"


@pytest.fixture
def settings(request):
    """What a test sets beyond the usual."""
    return getattr(request, "param", {})


@pytest.fixture
def server(make_server, settings):
    usual = {"FIELDLINE_RULES_SCRIPT_THREADS": str(THREADS), "FIELDLINE_RULES_STATISTICS_INTERVAL": "1s"}
    return make_server(env=usual | settings).start()


@pytest.fixture
def evil(server):
    return create_tenancy(server.rest(*SYSADMIN))


def filtering(tenancy, body: str) -> dict:
    """Has all messages of a tenant go through a script; returns the chain."""
    chain = Chain().line((script("filter.TbJsFilterNode", "JS", body), "True"), (SAVE, "Success"))
    return chain.save(tenancy.admin, root=True)


def repaired(tenancy, chain: dict) -> None:
    """Takes the script out again."""
    Chain().line((SAVE, "Success")).update(tenancy.admin, chain["id"])


def try_out(server, tenancy, body: str, patience: float = 60) -> requests.Response:
    test = {"scriptType": "filter", "script": body, "argNames": ["msg", "metadata", "msgType"], "msg": "{}"}
    headers = {"X-Authorization": f"Bearer {tenancy.admin.token}"}
    path = f"{server.http}/api/ruleChain/testScript?scriptLang=JS"
    return requests.post(path, json=test | {"metadata": {}, "msgType": "A"}, headers=headers, timeout=patience)


def test_devices_of_others_are_heard_while_a_tenant_s_scripts_spin(server, evil):
    devices = [evil.admin.create_device() for _ in range(4)]
    filtering(evil, spin(7))
    others = server.rest()
    listened = [others.create_device() for _ in range(6)]
    for n in range(5):
        for device in devices:
            post(server, device, {"n": n})
    for n in range(3):
        for device in listened:
            post(server, device, {"n": n})
        begun = time.monotonic()
        eventually(lambda: all(others.latest(device.id).get("n") == n for device in listened), within=SOON_S)
        assert time.monotonic() - begun < SOON_S


def test_scripts_of_others_run_while_a_tenant_s_spin(server, evil):
    devices = [evil.admin.create_device() for _ in range(4)]
    filtering(evil, spin(7))
    neighbour = create_tenancy(server.rest(*SYSADMIN))
    Chain().line((transform("JS", "{n: msg.n + 1}"), "Success"), (SAVE, "Success")).save(neighbour.admin, root=True)
    device = neighbour.admin.create_device()
    for n in range(5):
        for one in devices:
            post(server, one, {"n": n})
    post(server, device, {"n": 1})
    eventually(lambda: neighbour.admin.latest(device.id) == {"n": 2}, within=SOON_S)


@pytest.mark.parametrize("settings", [TIME_LIMIT], ids=["long limit"], indirect=True)
def test_whoever_repairs_a_chain_does_not_wait_for_its_script(server, evil):
    device = evil.admin.create_device()
    chain = filtering(evil, "while (true) {} return true;")
    post(server, device, {"n": 1})
    eventually(lambda: server.metrics().get("fieldline_script_calls_running", 0) >= 1)
    repaired(evil, chain)
    # Its time limit is not what ends it.
    eventually(lambda: server.metrics()["fieldline_script_calls_running"] == 0)
    post(server, device, {"n": 2})
    eventually(lambda: evil.admin.latest(device.id) == {"n": 2}, within=SOON_S)


@pytest.mark.parametrize(
    "settings", [TIME_LIMIT | {"FIELDLINE_SHUTDOWN_TIMEOUT": "10m"}], ids=["long limits"], indirect=True
)
def test_stopping_does_not_wait_for_scripts(server, evil):
    device = evil.admin.create_device()
    filtering(evil, "while (true) {} return true;")
    post(server, device, {"n": 1})
    eventually(lambda: server.metrics().get("fieldline_script_calls_running", 0) >= 1)
    # Neither the script's time nor that of the stop is up.
    server.stop(within=60)


@pytest.mark.timeout(240)
def test_tests_of_scripts_are_few_at_a_time_and_cost_others_nothing(server, evil):
    others = server.rest()
    try_out(server, evil, "return true;")
    before, slowest = server.memory_kib(), 0.0
    body = "var a = []; try { while (true) a.push(new Array(1000).fill(1)); } catch (e) {} while (true) {}"
    with ThreadPoolExecutor(60) as pool:
        answers = [pool.submit(try_out, server, evil, body) for _ in range(60)]
        until = time.monotonic() + 5
        while time.monotonic() < until:
            begun = time.monotonic()
            others.get("/api/auth/user")
            slowest = max(slowest, time.monotonic() - begun)
        grown = server.memory_kib() - before
        answers = [answer.result() for answer in answers]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) >= 50 and {answer.status_code for answer in answers} <= {200, 429}
    assert "tried out" in refused[0].json()["message"]
    assert slowest < 5
    # 64 MiB a thread, and what else the program has needed meanwhile.
    assert grown < (THREADS * 64 + 150) << 10


@pytest.mark.parametrize("settings", [TIME_LIMIT], ids=["long limit"], indirect=True)
def test_a_test_ends_when_its_client_hangs_up(server, evil):
    try_out(server, evil, "return true;")
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(try_out, server, evil, "while (true) {}", patience=5) for _ in range(4)]
        eventually(lambda: server.metrics()["fieldline_script_calls_running"] == 2)
        # Their connections are closed with that.
        assert all(isinstance(answer.exception(), requests.Timeout) for answer in answers)
    # Their time limit is not what ends them.
    eventually(lambda: server.metrics()["fieldline_script_calls_running"] == 0)
    assert try_out(server, evil, "return true;").json() == {"output": "true", "error": ""}


def test_functions_of_the_engine_are_bounded(server, evil):
    answer = try_out(server, evil, HANG)
    assert answer.status_code == 200 and "too long" in answer.json()["error"]


def test_what_is_used_is_shown_to_the_tenant_and_to_the_operator(server, evil):
    device = evil.admin.create_device()
    filtering(evil, spin(0.3))
    for n in range(3):
        post(server, device, {"n": n})
    eventually(lambda: evil.admin.latest(device.id) == {"n": 2})
    eventually(lambda: evil.admin.get("/api/ruleEngine/usage").json()["total"]["scriptCalls"] >= 3)
    used = evil.admin.get("/api/ruleEngine/usage").json()
    assert used["parts"][0]["entityId"]["entityType"] == "RULE_NODE"
    assert used["parts"][0]["scriptTimeMicros"] > 850_000
    shown = server.rest(*SYSADMIN).get("/api/ruleEngine/usage").json()
    assert shown["parts"][0]["entityId"] == evil.tenant["id"]
    # A tenant sees its own alone.
    assert evil.tenant["id"]["id"] not in str(server.rest().get("/api/ruleEngine/usage").json())
