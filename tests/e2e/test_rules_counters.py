"""What the nodes of a rule chain have done is counted all the time, and shown to those who may see the chain."""

import pytest

from harness.chains import SAVE, SWITCH, Chain, post, script
from harness.server import eventually


@pytest.fixture
def server(shared):
    return shared


def test_nodes_and_connections_are_counted_without_debug(server, rest):
    device = rest.create_device()
    chain = Chain()
    # What else happens to devices goes through the chain, too.
    ways = chain.node(SWITCH)
    first = chain.node(script("filter.TbJsFilterNode", "TBEL", "return msg.n >= 2;"), "two and more")
    breaks = chain.node(script("transform.TbTransformMsgNode", "TBEL", "return msg.nothing.at.all;"), "breaks")
    chain.connect(ways, "Post telemetry", first)
    chain.connect(first, "True", chain.node(SAVE, "save"))
    chain.connect(first, "False", breaks)
    saved = chain.save(rest, root=True)

    def counted() -> dict:
        answer = rest.get(f"/api/ruleChain/{saved['id']['id']}/counters").json()
        names = {node["id"]["id"]: node["name"] for node in metadata["nodes"]}
        return {names[node["id"]["id"]]: node for node in answer["nodes"]}

    metadata = rest.get(f"/api/ruleChain/{saved['id']['id']}/metadata").json()
    for n in range(5):
        post(server, device, {"n": n})
    eventually(lambda: counted()["two and more"]["output"] == {"True": 3, "False": 2})
    nodes = eventually(lambda: (found := counted())["breaks"]["failures"] == 2 and found)
    assert nodes["two and more"]["input"] == 5 and nodes["two and more"]["failures"] == 0
    assert nodes["save"]["input"] == 3 and nodes["breaks"]["input"] == 2
    assert nodes["breaks"]["lastFailure"]["error"] and nodes["breaks"]["lastFailure"]["ts"] >= nodes["breaks"]["since"]
    assert "lastFailure" not in nodes["save"]

    # They go on when the chain is saved, and a node that is new begins with nothing.
    metadata = rest.post("/api/ruleChain/metadata", metadata | {"nodes": [dict(n) for n in metadata["nodes"]]}).json()
    post(server, device, {"n": 7})
    eventually(lambda: counted()["two and more"]["output"] == {"True": 4, "False": 2})
