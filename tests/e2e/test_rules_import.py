"""Chains that an older version has exported, with the configurations that its nodes had then."""

import pytest

from harness.chains import PREFIX, post
from harness.rest import telemetry, unique
from harness.server import eventually


@pytest.fixture
def server(shared):
    return shared


def node(class_name: str, name: str, configuration: dict) -> dict:
    """As 3.4 wrote them: no version of the configuration, no queue, no singleton mode, a flag for debugging."""
    return {
        "additionalInfo": {"description": "", "layoutX": 300, "layoutY": 150},
        "type": PREFIX + class_name,
        "name": name,
        "debugMode": False,
        "configuration": configuration,
    }


RELATION = {
    "direction": "FROM",
    "entityType": "ASSET",
    "entityNamePattern": "$[hall]",
    "entityTypePattern": "default",
    "relationType": "Contains",
    "createEntityIfNotExists": True,
    "removeCurrentRelations": False,
    "changeOriginatorToRelatedEntity": False,
    "entityCacheExpiration": 300,
}
SHOUT = "return {msg: msg, metadata: metadata, msgType: msgType};"
NODES = [
    node("filter.TbMsgTypeSwitchNode", "Switch", {"version": 0}),
    node(
        "metadata.TbGetAttributesNode",
        "Attributes",
        {
            "tellFailureIfAbsent": True,
            "fetchToData": True,
            "clientAttributeNames": [],
            "sharedAttributeNames": [],
            "serverAttributeNames": ["limit"],
            "latestTsKeyNames": [],
            "getLatestValueWithTs": False,
        },
    ),
    node(
        "metadata.TbGetCustomerAttributeNode",
        "Of the customer",
        {"attrMapping": {"shift": "shiftOfCustomer"}, "telemetry": False},
    ),
    node(
        "transform.TbCopyKeysNode",
        "Copied",
        {"fromMetadata": True, "keys": ["shiftOfCustomer"]},
    ),
    node("transform.TbDeleteKeysNode", "Deleted", {"fromMetadata": False, "keys": ["secret.*"]}),
    # A script of a time when there was one language.
    node("transform.TbTransformMsgNode", "Script", {"jsScript": SHOUT}),
    node("action.TbCreateRelationNode", "Related", RELATION),
    node("telemetry.TbMsgTimeseriesNode", "Save", {"defaultTTL": 0}),
]
LABELS = ["Post telemetry", "Success", "Success", "Success", "Success", "Success", "Success"]


def test_a_chain_of_an_older_version_works_and_is_brought_up_to_date(server, rest):
    customer = rest.post("/api/customer", {"title": unique("customer")}).json()["id"]["id"]
    rest.post(f"/api/plugins/telemetry/CUSTOMER/{customer}/attributes/SERVER_SCOPE", {"shift": "night"})
    device = rest.create_device()
    rest.post(f"/api/customer/{customer}/device/{device.id}")
    rest.post(telemetry(device.id, "SERVER_SCOPE"), {"limit": 5})
    old_id = {"entityType": "RULE_CHAIN", "id": "0fd55fd0-0000-11ec-8000-000000000001"}
    chain = {
        "id": old_id,
        "additionalInfo": {"description": ""},
        "name": unique("old"),
        "type": "CORE",
        "firstRuleNodeId": None,
        "root": False,
        "debugMode": False,
        "configuration": None,
    }
    connections = [{"fromIndex": n, "toIndex": n + 1, "type": label} for n, label in enumerate(LABELS)]
    metadata = {
        "ruleChainId": old_id,
        "firstNodeIndex": 0,
        "nodes": NODES,
        "connections": connections,
        "ruleChainConnections": None,
    }
    [imported] = rest.post(
        "/api/ruleChains/import", {"ruleChains": [chain], "metadata": [metadata]}, overwrite="false"
    ).json()
    assert not imported.get("error"), imported
    new_id = imported["ruleChainId"]["id"]
    rest.post(f"/api/ruleChain/{new_id}/root")
    hall = unique("hall")
    post(server, device, {"n": 1, "hall": hall, "secretOne": "x"})
    eventually(lambda: rest.values(device.id, "n") == [1])
    shown = rest.latest(device.id)
    assert (shown["ss_limit"], shown["shiftOfCustomer"]) == (5, "night"), shown
    assert "secretOne" not in shown
    asset = rest.get("/api/tenant/assets", assetName=hall).json()["id"]
    # Until version 1 the direction was seen from the other end.
    related = rest.get("/api/relations", toId=device.id, toType="DEVICE").json()
    assert [(one["from"], one["type"]) for one in related] == [(asset, "Contains")]

    stored = {found["name"]: found for found in rest.get(f"/api/ruleChain/{new_id}/metadata").json()["nodes"]}
    assert stored["Attributes"]["configuration"]["fetchTo"] == "DATA"
    assert "fetchToData" not in stored["Attributes"]["configuration"]
    mapped = stored["Of the customer"]["configuration"]
    assert (mapped["dataToFetch"], mapped["dataMapping"]) == ("ATTRIBUTES", {"shift": "shiftOfCustomer"}), mapped
    assert stored["Copied"]["configuration"]["copyFrom"] == "METADATA"
    assert stored["Deleted"]["configuration"]["deleteFrom"] == "DATA"
    assert "entityCacheExpiration" not in stored["Related"]["configuration"]
    assert all(
        stored[name]["configurationVersion"] >= 1 for name in ("Attributes", "Of the customer", "Copied", "Related")
    )
