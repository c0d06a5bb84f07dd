"""A journal of its largest size: rule chains still put messages into queues, so that it drains by itself."""

import pytest
import requests

from harness.chains import CALL, SAVE, SWITCH, Chain, change_default_profile, post, queue
from harness.people import create_tenancy
from harness.server import SYSADMIN, eventually

KIB = 1 << 10
LARGEST = 1024 * KIB
SEGMENT = 128 * KIB
SMALL = {
    "FIELDLINE_JOURNAL_SEGMENT_BYTES": SEGMENT,
    "FIELDLINE_JOURNAL_MAX_APPEND": 128 * KIB,
    "FIELDLINE_JOURNAL_MAX_PENDING": 256 * KIB,
    "FIELDLINE_JOURNAL_MAX_BYTES": LARGEST,
}
LOG_BYTES = "fieldline_journal_log_bytes"
RESERVE_BYTES = "fieldline_journal_reserve_bytes"
REFUSED_PUSHES = "fieldline_ingest_refused_pushes_total"
RULE_ENGINE = {"serviceType": "TB_RULE_ENGINE"}
TEXT = "x" * 4000


def failing(rest) -> dict:
    """A root chain in which telemetry fails."""
    chain = Chain()
    nowhere = CALL | {"restEndpointUrlPattern": "http://127.0.0.1:9/nobody"}
    chain.connect(chain.node(SWITCH), "Post telemetry", chain.node(("rest.TbRestApiCallNode", nowhere)))
    return chain.save(rest, root=True)


def relaying(name: str) -> Chain:
    """A chain that moves telemetry to another queue and saves it there."""
    chain = Chain()
    switch = chain.node(SWITCH)
    moved = chain.node(("flow.TbCheckpointNode", {}), queueName=name)
    chain.connect(switch, "Post telemetry", moved)
    return chain.connect(moved, "Success", chain.node(SAVE))


def fill_log(server, device) -> list[int]:
    """Posts until nothing more is taken; returns what was acknowledged."""
    taken = []
    for n in range(900):
        try:
            body = {"ts": 1000 + n, "values": {"n": n, "t": TEXT}}
            answer = requests.post(f"{server.http}/api/v1/{device.token}/telemetry", json=body, timeout=1)
        except requests.Timeout:
            break
        assert answer.status_code == 200, answer.text
        taken.append(n)
    told = requests.get(f"{server.http}/readyz", timeout=10)
    assert (told.status_code, "catching up" in told.text) == (503, True), told.text
    return taken


def stubborn(sysadmin, name: str) -> None:
    """Makes a queue try for ever again what has failed."""
    found = sysadmin.get(f"/api/queues/name/{name}").json()
    found["processingStrategy"] |= {"type": "RETRY_FAILED_AND_TIMED_OUT", "retries": 0, "failurePercentage": 0}
    found["processingStrategy"] |= {"pauseBetweenRetries": 1, "maxPauseBetweenRetries": 1}
    sysadmin.post("/api/queues", found, **RULE_ENGINE)


@pytest.mark.parametrize("restarts", [False, True], ids=["while it runs", "after a restart"])
def test_a_full_log_drains_although_its_messages_go_into_other_queues(make_server, restarts):
    own, other = "HighPriority", "Main"
    server = make_server(env=SMALL)
    rest = server.start().rest()
    sysadmin = server.rest(*SYSADMIN)
    stubborn(sysadmin, own)
    stubborn(sysadmin, other)
    change_default_profile(rest, defaultQueueName=own)
    neighbour = create_tenancy(sysadmin)
    device, other_device = rest.create_device(), neighbour.admin.create_device()
    chain = failing(rest)
    taken = fill_log(server, device)
    assert server.metrics()[LOG_BYTES] >= LARGEST
    relaying(other).update(rest, chain["id"])
    if restarts:
        server.kill()
        rest = server.start(within=120).rest()
        neighbour.admin.base = server.http

    def held() -> list:
        values = rest.values(device.id, "n")
        return values if len(values) >= len(taken) else []

    assert set(taken) <= set(eventually(held, within=120)), "what was acknowledged is saved"
    eventually(lambda: server.metrics()[LOG_BYTES] < LARGEST / 2, within=30)
    eventually(lambda: requests.get(f"{server.http}/readyz", timeout=10).status_code == 200, within=30)
    post(server, other_device, {"n": 1})
    eventually(lambda: neighbour.admin.values(other_device.id, "n") == [1])
    metrics = server.metrics()
    assert metrics.get(REFUSED_PUSHES, 0) == 0
    assert metrics[RESERVE_BYTES] == 0
    server.stop()


@pytest.mark.files
def test_a_queue_that_is_gone_keeps_no_log_although_the_positions_were_lost(make_server):
    server = make_server(env=SMALL)
    rest = server.start().rest()
    sysadmin = server.rest(*SYSADMIN)
    gone = sysadmin.post("/api/queues", queue(), **RULE_ENGINE).json()
    change_default_profile(rest, defaultQueueName=gone["name"])
    device = rest.create_device()
    for n in range(5):
        post(server, device, {"ts": 1000 + n, "values": {"n": n}})
    eventually(lambda: rest.values(device.id, "n") == list(range(5)))
    change_default_profile(rest, defaultQueueName=None)
    sysadmin.delete(f"/api/queues/{gone['id']['id']}")
    # What is stored durably is all that is known after the crash: wait for a checkpoint.
    positions = server.data_dir / "journal" / "positions"
    eventually(lambda: positions.exists() and positions.stat().st_size > 0)
    server.stop()

    positions.write_bytes(b"")
    rest = server.start().rest()
    for n in range(5, 900):
        body = {"ts": 1000 + n, "values": {"n": n, "t": TEXT}}
        answer = requests.post(f"{server.http}/api/v1/{device.token}/telemetry", json=body, timeout=30)
        assert answer.status_code == 200, "nobody waits for records of a queue that is gone"
    eventually(lambda: server.metrics()[LOG_BYTES] <= 3 * SEGMENT, within=30)
    server.stop()
