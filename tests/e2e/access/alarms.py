"""Alarms, comments, calculated fields and alarm rules."""

from __future__ import annotations

from access.rows import AT_DEVICE, LIST, PAGE, Call, assignee, call, device_of, fetched, row, thing
from access.things import alarm, alarm_rule, field

# -- alarms and comments under them --

ALARM, NEW_ALARM = call(alarmId=thing("alarm")), call(alarmId=thing("alarm", "make_alarm"))
row("GET /api/alarm/{alarmId}", "- + + - -", ALARM)
row("GET /api/alarm/info/{alarmId}", "- + + - -", ALARM)
row("POST /api/alarm", "- + + - -", call(lambda w, fresh: alarm(w.device)))
row("POST /api/alarm", "- + - - -", call(lambda w, fresh: alarm(w.unassigned)))
row("POST /api/alarm", "- + + - -", call(fetched("alarm", "alarm", "make_alarm", severity="CRITICAL")))
row("POST /api/alarm/{alarmId}/ack", "- + + - -", NEW_ALARM)
row("POST /api/alarm/{alarmId}/clear", "- + + - -", NEW_ALARM)
row("DELETE /api/alarm/{alarmId}", "- + + - -", NEW_ALARM)

ASSIGN = "POST /api/alarm/{alarmId}/assign/{assigneeId}"
row(ASSIGN, "- + + - -", call(alarmId=thing("alarm", "make_alarm"), assigneeId=assignee))
row(
    ASSIGN,
    "- - - - -",
    call(alarmId=thing("alarm"), assigneeId=lambda w, fresh: w.other.user["id"]["id"]),
)


def assigned(w, fresh: bool) -> str:
    alarm_id = thing("alarm", "make_alarm")(w, fresh)
    if fresh:
        w.tenant.post(f"/api/alarm/{alarm_id}/assign/{assignee(w, fresh)}")
    return alarm_id


row("DELETE /api/alarm/{alarmId}/assign", "- + + - -", call(alarmId=assigned))
row("GET /api/users/assign/{alarmId}", "- + + - -", call(query=PAGE, alarmId=thing("alarm")), shows="customer_user_id")
for prefix in ("/api", "/api/v2"):
    row(f"GET {prefix}/alarm/{{entityType}}/{{entityId}}", "- + + - -", call(query=PAGE, **AT_DEVICE), shows="alarm")
    row(f"GET {prefix}/alarms", "- + + o o", LIST, shows="alarm")
row("GET /api/alarm/highestSeverity/{entityType}/{entityId}", "- + + - -", call(**AT_DEVICE))
row("GET /api/alarm/types", "- + + + o", LIST, shows="treasure")
LINK = {"pageSize": 100, "page": 0}
ENTITY_FILTERS = (
    lambda w: {"type": "singleEntity", "singleEntity": device_of(w.device)},
    lambda w: {"type": "entityList", "entityType": "DEVICE", "entityList": [w.device]},
    lambda w: {"type": "entityType", "entityType": "DEVICE"},
)
for chosen in ENTITY_FILTERS:
    for propagated in (False, True):
        row(
            "POST /api/alarmsQuery/find",
            "- + + o o",
            call(
                lambda w, fresh, chosen=chosen, propagated=propagated: {
                    "entityFilter": chosen(w),
                    "pageLink": LINK | {"searchPropagatedAlarms": propagated},
                    "entityFields": [{"type": "ENTITY_FIELD", "key": "name"}],
                }
            ),
            shows="alarm",
        )
row("POST /api/alarmsQuery/count", "- + + o o", call(lambda w, fresh: {"entityFilter": ENTITY_FILTERS[0](w)}))

row("GET /api/alarm/{alarmId}/comment", "- + + - -", call(query=PAGE, alarmId=thing("alarm")), shows="comment")
row(
    "POST /api/alarm/{alarmId}/comment",
    "- + + - -",
    call({"comment": {"text": "stolen"}}, alarmId=thing("alarm", "make_alarm")),
)


DELETE_COMMENT = "DELETE /api/alarm/{alarmId}/comment/{commentId}"


def comment_of(author: str):
    """Somebody's comment, which is a new one where the call will be served."""

    def make(w, fresh: bool) -> Call:
        comment = w.make_comment(w.alarm, getattr(w, author)) if fresh else w.comment
        return Call({"alarmId": w.alarm, "commentId": comment})

    return make


row(DELETE_COMMENT, "- + ! - -", comment_of("tenant"))
row(DELETE_COMMENT, "- + + - -", comment_of("customer_user"))
row(DELETE_COMMENT, "- ! - - !", call(alarmId=thing("other_alarm"), commentId=thing("comment")))
row(
    "POST /api/alarm/{alarmId}/comment",
    "- - - - !",
    call(
        lambda w, fresh: {"id": {"id": w.comment}, "alarmId": {"id": w.alarm}, "comment": {"text": "stolen"}},
        alarmId=thing("other_alarm"),
    ),
)

# -- calculated fields and alarm rules --

SCRIPT = {"expression": 'return {"x": t};', "arguments": {"t": {"type": "SINGLE_VALUE", "ts": 1, "value": 2}}}
row("POST /api/calculatedField/testScript", "- + - - o", call(SCRIPT))
row("POST /api/alarm/rule/testScript", "- + - - o", call(SCRIPT))
FIELD = call(calculatedFieldId=thing("field"))
row("GET /api/calculatedField/{calculatedFieldId}", "- + - - -", FIELD)
row("GET /api/calculatedField/{calculatedFieldId}/debug", "- + - - -", FIELD)
row(
    "DELETE /api/calculatedField/{calculatedFieldId}",
    "- + - - -",
    call(calculatedFieldId=thing("field", "make_field")),
)
row("POST /api/calculatedField", "- + - - -", call(lambda w, fresh: field(w.make_device() if fresh else w.device)))
row(
    "POST /api/calculatedField",
    "- + - - -",
    call(fetched("calculatedField", "field", "make_field", additionalInfo=None)),
)
row("GET /api/calculatedField/{entityType}/{entityId}", "- + - - -", call(query=PAGE, **AT_DEVICE), shows="field")
row("GET /api/{entityType}/{entityId}/calculatedFields", "- + - - -", call(query=PAGE, **AT_DEVICE), shows="field")
row("GET /api/calculatedFields", "- + - - o", LIST, shows="field")
row("GET /api/calculatedFields", "- + - - o", call(query=lambda w, fresh: PAGE | {"entities": w.device}), shows="field")
row("GET /api/calculatedFields/names", "- + - - o", call(query=PAGE | {"type": "SIMPLE"}), shows="treasure")


def reprocessed(w, fresh: bool) -> str:
    """A field that has something to show of its reprocessing, where the call will be served."""
    field_id = thing("field", "make_field")(w, fresh)
    if fresh:
        w.tenant.post(f"/api/calculatedField/{field_id}/reprocess", PAST)
    return field_id


REPROCESS = "/api/calculatedField/{calculatedFieldId}/reprocess"
PAST = {"startTs": 0, "endTs": 5000}
row(f"POST {REPROCESS}", "- + - - -", call(PAST, calculatedFieldId=thing("field", "make_field")))
row(f"GET {REPROCESS}", "- + - - -", call(calculatedFieldId=reprocessed))
row(f"DELETE {REPROCESS}", "- + - - -", call(calculatedFieldId=reprocessed))
RULE = call(alarmRuleId=thing("alarm_rule"))
row("GET /api/alarm/rule/{alarmRuleId}", "- + - - -", RULE)
row("GET /api/alarm/rule/{alarmRuleId}/debug", "- + - - -", RULE)
row("DELETE /api/alarm/rule/{alarmRuleId}", "- + - - -", call(alarmRuleId=thing("alarm_rule", "make_alarm_rule")))
row("POST /api/alarm/rule", "- + - - -", call(lambda w, fresh: alarm_rule(w.make_device() if fresh else w.device)))
row("POST /api/alarm/rule", "- + - - -", call(fetched("alarm/rule", "alarm_rule", "make_alarm_rule")))
row("GET /api/alarm/rules/{entityType}/{entityId}", "- + - - -", call(query=PAGE, **AT_DEVICE), shows="alarm_rule")
row("GET /api/alarm/rules", "- + - - o", LIST, shows="alarm_rule")
row("GET /api/alarm/rules", "- + - - o", call(query=lambda w, fresh: PAGE | {"entities": w.device}), shows="alarm_rule")
row("GET /api/alarm/rules/names", "- + - - o", LIST, shows="treasure")
