"""Queues changed while messages go through them: strategies, queues that go and come back, tenants with their own."""

import pytest

from harness.chains import CALL, SAVE, SWITCH, Chain, Service, change_default_profile, post, queue
from harness.people import activated
from harness.rest import unique
from harness.server import eventually

RULE_ENGINE = {"serviceType": "TB_RULE_ENGINE"}


@pytest.fixture
def server(shared):
    return shared


def calling(rest, service) -> None:
    """A root chain that sends telemetry to a service and saves the answer."""
    chain = Chain()
    switch = chain.node(SWITCH)
    call = chain.node(("rest.TbRestApiCallNode", CALL | {"restEndpointUrlPattern": service.url}))
    chain.connect(switch, "Post telemetry", call).connect(call, "Success", chain.node(SAVE))
    chain.save(rest, root=True)


def test_a_strategy_is_changed_while_messages_come(server, rest, sysadmin):
    status = {"now": 503}
    saved = sysadmin.post("/api/queues", queue(), **RULE_ENGINE).json()
    change_default_profile(rest, defaultQueueName=saved["name"])
    device = rest.create_device()
    with Service(lambda _: status["now"]) as service:
        calling(rest, service)
        post(server, device, {"n": 1})
        eventually(lambda: service.received == [{"n": 1}])
        saved["processingStrategy"]["type"] = "RETRY_FAILED"
        saved["submitStrategy"]["type"] = "SEQUENTIAL"
        saved = sysadmin.post("/api/queues", saved, **RULE_ENGINE).json()
        assert saved["processingStrategy"]["type"] == "RETRY_FAILED"

        def is_tried_again() -> bool:
            post(server, device, {"n": 2})
            return len([body for body in service.received if body["n"] == 2]) > 5

        eventually(is_tried_again, every=0.2)
        status["now"] = 200
        eventually(lambda: 42 in rest.values(device.id, "answered"))
        assert [body["n"] for body in service.received].count(1) == 1, "what was given up stays given up"


def test_a_queue_that_is_deleted_and_made_again_loses_nothing(server, rest, sysadmin):
    wanted = queue()
    first = sysadmin.post("/api/queues", wanted, **RULE_ENGINE).json()
    change_default_profile(rest, defaultQueueName=wanted["name"])
    device = rest.create_device()
    for n in range(5):
        post(server, device, {"ts": 1000 + n, "values": {"n": n}})
    sysadmin.delete(f"/api/queues/{first['id']['id']}", expect=400)
    change_default_profile(rest, defaultQueueName=None)
    sysadmin.delete(f"/api/queues/{first['id']['id']}")
    sysadmin.get(f"/api/queues/{first['id']['id']}", expect=404)
    for n in range(5, 10):
        post(server, device, {"ts": 1000 + n, "values": {"n": n}})
    eventually(lambda: rest.values(device.id, "n") == list(range(10)))
    second = sysadmin.post("/api/queues", wanted, **RULE_ENGINE).json()
    assert second["id"] != first["id"]
    change_default_profile(rest, defaultQueueName=wanted["name"])
    for n in range(10, 15):
        post(server, device, {"ts": 1000 + n, "values": {"n": n}})
    eventually(lambda: rest.values(device.id, "n") == list(range(15)))


def test_an_isolated_tenant_has_queues_that_hold_back_nobody_else(server, rest, sysadmin):
    profile = {
        "name": unique("isolated"),
        "isolatedTbRuleEngine": True,
        "profileData": {
            "configuration": {"type": "DEFAULT"},
            "queueConfiguration": [queue("Main", processing="RETRY_FAILED"), queue("Slow")],
        },
    }
    profile = sysadmin.post("/api/tenantProfile", profile).json()
    tenant = sysadmin.post("/api/tenant", {"title": unique("isolated"), "tenantProfileId": profile["id"]}).json()
    isolated = activated(sysadmin, "TENANT_ADMIN", tenant=tenant)

    def names(who) -> set[str]:
        return {found["name"] for found in who.get("/api/queues", pageSize=100, page=0, **RULE_ENGINE).json()["data"]}

    assert names(isolated) == {"Main", "Slow"}
    assert "Slow" not in names(rest) and {"Main", "HighPriority"} <= names(rest)
    status = {"now": 503}
    device, neighbour = isolated.create_device(), rest.create_device()
    with Service(lambda _: status["now"]) as service:
        calling(isolated, service)
        post(server, device, {"n": 1})
        # It is tried again for ever, in the tenant's own main queue.
        eventually(lambda: len(service.received) > 5)
        for n in range(20):
            post(server, neighbour, {"ts": 1000 + n, "values": {"n": n}})
        eventually(lambda: rest.values(neighbour.id, "n") == list(range(20)))
        assert isolated.values(device.id, "answered") == []
        status["now"] = 200
        eventually(lambda: isolated.values(device.id, "answered") == [42])
    # What the profile says anew holds at once.
    profile = sysadmin.get(f"/api/tenantProfile/{profile['id']['id']}").json()
    profile["profileData"]["queueConfiguration"] = [queue("Main"), queue("Other")]
    sysadmin.post("/api/tenantProfile", profile)
    eventually(lambda: names(isolated) == {"Main", "Other"})
    post(server, device, {"n": 2})
    eventually(lambda: service.received and isolated.values(device.id, "answered"))
