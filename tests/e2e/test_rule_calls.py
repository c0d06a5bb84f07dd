"""Calls of clients into rule chains, which a chain answers."""

import threading
import time

import pytest

from harness.chains import REPLY, SAVE, SWITCH, Chain, Service, events, post, script, transform
from harness.people import create_tenancy
from harness.server import SYSADMIN, eventually


@pytest.fixture
def server(shared):
    return shared


def answering(rest) -> dict:
    """A root chain that answers calls with twice the number, and says what it was told."""
    chain = Chain()
    switch = chain.node(SWITCH)
    body = "return {msg: {twice: msg.n * 2, about: metadata.requestUUID}, metadata: metadata, msgType: msgType};"
    turn = chain.node(script("transform.TbTransformMsgNode", "TBEL", body))
    chain.connect(switch, "REST API request", turn).connect(turn, "Success", chain.node(REPLY))
    return chain.save(rest, root=True)


def test_a_chain_answers_a_call_about_a_device_and_about_the_user(server, sysadmin):
    tenancy = create_tenancy(sysadmin)
    rest, user = tenancy.admin, tenancy.customer_user
    device, own = rest.create_device(), rest.create_device()
    rest.post(f"/api/customer/{tenancy.customer['id']['id']}/device/{own.id}")
    answering(rest)
    for who, path in (
        (rest, f"/api/rule-engine/DEVICE/{device.id}"),
        (rest, f"/api/rule-engine/DEVICE/{device.id}/20000"),
        (rest, f"/api/rule-engine/DEVICE/{device.id}/HighPriority/20000"),
        (rest, "/api/rule-engine/"),
        (user, f"/api/rule-engine/DEVICE/{own.id}"),
        (user, "/api/rule-engine/"),
    ):
        answer = who.post(path, {"n": 21})
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.json()["twice"] == 42 and len(answer.json()["about"]) == 36, path
    user.post(f"/api/rule-engine/DEVICE/{device.id}", {"n": 1}, expect=403)
    answer = rest.call("POST", "/api/rule-engine/", data="@", expect=400)
    assert answer.json()["message"] == "Invalid request body"


def test_many_calls_at_once_get_their_own_answers(server, rest):
    device = rest.create_device()
    answering(rest)
    answers: dict[int, int] = {}

    def ask(n: int) -> None:
        answers[n] = rest.post(f"/api/rule-engine/DEVICE/{device.id}/30000", {"n": n}).json()["twice"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: n * 2 for n in range(40)}


def test_a_call_that_nobody_answers_ends_when_its_time_is_up(server, rest):
    device = rest.create_device()
    begun = time.monotonic()
    answer = rest.post(f"/api/rule-engine/DEVICE/{device.id}/700", {"n": 1}, expect=408)
    assert answer.text == "" and 0.7 <= time.monotonic() - begun < 10


def test_a_chain_of_another_tenant_cannot_answer_a_call(server, sysadmin):
    """Whom a chain answers is in the metadata, which a tenant may write as it likes."""
    mine, other = create_tenancy(sysadmin).admin, create_tenancy(sysadmin).admin
    device, foreign = mine.create_device(), other.create_device()
    with Service(lambda _: 200) as service:
        settings = {"requestMethod": "POST", "restEndpointUrlPattern": service.url, "readTimeoutMs": 0}
        settings["headers"] = {"Content-Type": "application/json"}
        chain = Chain()
        switch = chain.node(SWITCH)
        body = "return {msg: {request: metadata.requestUUID, service: metadata.serviceId}, metadata: metadata, msgType: msgType};"
        turn = chain.node(script("transform.TbTransformMsgNode", "TBEL", body))
        chain.connect(switch, "REST API request", turn)
        chain.connect(turn, "Success", chain.node(("rest.TbRestApiCallNode", settings)))
        chain.save(mine, root=True)
        outcome: dict = {}

        def ask() -> None:
            outcome["answer"] = mine.post(f"/api/rule-engine/DEVICE/{device.id}/4000", {"n": 1}, expect=None)

        asking = threading.Thread(target=ask)
        asking.start()
        eventually(lambda: service.received)
        told = service.received[0]
        forging = Chain()
        switch = forging.node(SWITCH)
        forged = f"metadata.requestUUID = '{told['request']}'; metadata.serviceId = '{told['service']}';"
        body = f"{forged} return {{msg: {{forged: true}}, metadata: metadata, msgType: msgType}};"
        turn = forging.node(script("transform.TbTransformMsgNode", "TBEL", body))
        reply = forging.node(REPLY, debugSettings={"failuresEnabled": True, "allEnabled": True})
        forging.connect(switch, "Post telemetry", turn).connect(turn, "Success", reply)
        saved = forging.save(other, root=True)
        node = other.get(f"/api/ruleChain/{saved['id']['id']}/metadata").json()["nodes"][reply]["id"]["id"]
        post(server, foreign, {"n": 1})
        eventually(lambda: events(other, "RULE_NODE", node, "DEBUG_RULE_NODE"))
        asking.join()
        assert outcome["answer"].status_code == 408, outcome["answer"].text


def test_who_waits_when_the_server_stops_is_told(make_server):
    server = make_server().start()
    rest = create_tenancy(server.rest(*SYSADMIN)).admin
    device = rest.create_device()
    # It notes that a call has come, and does not answer.
    chain = Chain()
    switch, turn = chain.node(SWITCH), chain.node(transform("TBEL", "msg"))
    chain.connect(switch, "REST API request", turn).connect(turn, "Success", chain.node(SAVE))
    chain.save(rest, root=True)
    outcome: dict = {}

    def ask() -> None:
        outcome["answer"] = rest.post(f"/api/rule-engine/DEVICE/{device.id}/60000", {"n": 1}, expect=None)

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: rest.values(device.id, "n") == [1])
    # Which has to be done in ten seconds.
    server.stop()
    asking.join()
    assert outcome["answer"].status_code == 503, outcome["answer"].text
