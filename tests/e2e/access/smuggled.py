"""What is not one's own, smuggled in by the other tenant's administrator with what is."""

from __future__ import annotations

from access.alarms import ASSIGN
from access.assets import WITH_CHAIN
from access.chains import EVENTS, OF_HOME, REPLAY, SPAN
from access.rows import assignee, call, customer, device_of, nodes, row, thing
from access.things import alarm, alarm_rule, field, relation

for path in ("/api/relation", "/api/v2/relation"):
    row(f"POST {path}", "- - - - -", call(lambda w, fresh: relation(w.other_asset, "DEVICE", w.device)))
row(
    "POST /api/customer/{customerId}/asset/{assetId}",
    "- - - - -",
    call(assetId=thing("other_asset"), customerId=customer),
)
row(
    "POST /api/customer/{customerId}/entityView/{entityViewId}",
    "- - - - -",
    call(entityViewId=thing("other_view"), customerId=customer),
)
row(
    "POST /api/entityView",
    "- - - - !",
    call(
        lambda w, fresh: w.other.get(f"/api/entityView/{w.other_view}").json() | {"entityId": device_of(w.device)},
    ),
)
row(
    "POST /api/alarm",
    "- - - - !",
    call(lambda w, fresh: alarm(w.other_device, assigneeId={"entityType": "USER", "id": assignee(w, fresh)})),
)
row(
    "POST /api/alarm",
    "- - - - !",
    call(
        lambda w, fresh: w.other.get(f"/api/alarm/{w.other_alarm}").json() | {"originator": device_of(w.device)},
    ),
)
row(ASSIGN, "- - - - -", call(alarmId=thing("other_alarm"), assigneeId=assignee))
row(ASSIGN, "- + - - -", call(alarmId=thing("alarm"), assigneeId=lambda w, fresh: w.stranger.user["id"]["id"]))
row("POST /api/calculatedField", "- - - - !", call(lambda w, fresh: field(w.other_device, w.device)))
row("POST /api/alarm/rule", "- - - - !", call(lambda w, fresh: alarm_rule(w.other_device, w.device)))
row("POST /api/deviceProfile", "- + - - !", call(WITH_CHAIN))
INPUT = lambda w: ("flow.TbRuleChainInputNode", {"ruleChainId": w.chain})
# A chain of another tenant is one that is not there: nothing is passed to it.
row("POST /api/ruleChain/metadata", "- - - - o", call(nodes(thing("other_chain"), INPUT)))


def metadata_of_home(w, fresh: bool) -> dict:
    found = w.tenant.get(f"/api/ruleChain/{w.chain}/metadata").json()
    return found | {"ruleChainId": {"entityType": "RULE_CHAIN", "id": w.other_chain}, "version": None}


# Nodes with the ids of nodes elsewhere: they become new ones.
row("POST /api/ruleChain/metadata", "- - - - o", call(metadata_of_home))
row("POST /api/ruleChain/{ruleChainId}/replay", "- - - - !", call(REPLAY, ruleChainId=thing("other_chain")))
row(
    "POST /api/ruleChain/{ruleChainId}/replay",
    "- - - - !",
    call(
        lambda w, fresh: SPAN | {"deviceProfileId": {"entityType": "DEVICE_PROFILE", "id": w.profile}},
        ruleChainId=thing("other_chain"),
    ),
)
row(f"GET {EVENTS}", "- - - - o", call(query=OF_HOME, entityType="DEVICE", entityId=thing("other_device")))
