use fieldline_model::EntityId;
use fieldline_model::entity::{Alarm, AlarmSeverity};
use fieldline_model::message::MsgType;
use serde_json::json;

use crate::message::RuleMessage;
use crate::nodes::tests::{NOW, World};

const CREATE_ALARM: &str = "action.TbCreateAlarmNode";
const CLEAR_ALARM: &str = "action.TbClearAlarmNode";

async fn active(world: &World, entity: EntityId, alarm_type: &str) -> Option<Alarm> {
    let alarms = &world.services.stores.alarms;
    alarms
        .latest_active(world.tenant, entity, alarm_type)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_is_created_updated_and_cleared() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let details = "var before = metadata.prevAlarmDetails == null ? 0 : JSON.parse(metadata.prevAlarmDetails).n; \
                   return {n: before + 1};";
    let create = world.node(
        CREATE_ALARM,
        json!({
            "alarmType": "Hot ${deviceName}", "severity": "$[level]", "dynamicSeverity": true,
            "alarmDetailsBuildTbel": details, "propagateToTenant": true,
        }),
    );
    let hot =
        |world: &World, level: &str| world.msg(MsgType::PostTelemetry, device, &json!({"level": level}));

    let first = hot(&world, "MAJOR");
    let out = world.one(&create, first.clone()).await;
    assert_eq!(
        (out.label.as_str(), &out.msg.kind),
        ("Created", &MsgType::Alarm),
        "{:?}",
        out.error
    );
    assert_eq!(out.meta("isNewAlarm").as_deref(), Some("true"));
    let alarm = active(&world, device, "Hot thing").await.unwrap();
    assert_eq!(out.body(), serde_json::to_value(&alarm).unwrap());
    assert_eq!(
        (alarm.severity, alarm.start_ts),
        (Some(AlarmSeverity::Major), NOW)
    );
    assert_eq!(
        (alarm.details.clone(), alarm.propagate_to_tenant),
        (Some(json!({"n": 1})), true)
    );
    let [told] = &*world.queue.take() else {
        panic!("one message")
    };
    assert_eq!(
        (&told.msg_type, told.originator),
        (&MsgType::EntityCreated, device)
    );
    assert_eq!(told.metadata.get("ruleNodeId"), Some(&*world.node.0.to_string()));

    // The same message once more, as after a crash, raises nothing else and counts nothing.
    let again = world.one(&create, first).await;
    assert_eq!((again.label.as_str(), again.body()), ("Created", out.body()));

    world.clock.advance(1_000);
    let second = hot(&world, "CRITICAL");
    let out = world.one(&create, second).await;
    assert_eq!(
        (out.label.as_str(), out.meta("isExistingAlarm").as_deref()),
        ("Updated", Some("true"))
    );
    let updated = active(&world, device, "Hot thing").await.unwrap();
    assert_eq!((updated.id, updated.end_ts), (alarm.id, NOW + 1_000));
    assert_eq!(updated.severity, Some(AlarmSeverity::Critical));
    assert_eq!(updated.details, Some(json!({"n": 2})));
    world.queue.take();

    let wrong = hot(&world, "WORST");
    let out = world.one(&create, wrong).await;
    assert_eq!(
        out.error.as_deref(),
        Some("Used incorrect pattern or Alarm Severity not included in message")
    );

    let clear = world.node(
        CLEAR_ALARM,
        json!({"alarmType": "Hot ${deviceName}", "alarmDetailsBuildTbel": details}),
    );
    let cold = world.msg(MsgType::PostTelemetry, device, &json!({}));
    let out = world.one(&clear, cold.clone()).await;
    assert_eq!(
        (out.label.as_str(), out.meta("isClearedAlarm").as_deref()),
        ("Cleared", Some("true"))
    );
    assert_eq!(
        (out.body()["status"].as_str(), &out.body()["details"]),
        (Some("CLEARED_UNACK"), &json!({"n": 3}))
    );
    let [told] = &*world.queue.take() else {
        panic!("one message")
    };
    assert_eq!(told.msg_type, MsgType::AlarmClear);
    let out = world.one(&clear, cold.clone()).await;
    assert_eq!(
        (out.label.as_str(), &out.msg.kind),
        ("False", &MsgType::PostTelemetry)
    );
    let by_id = RuleMessage {
        originator: alarm.id.into(),
        ..cold
    };
    assert_eq!(world.one(&clear, by_id).await.label, "False", "it is cleared");
    assert_eq!(
        world.wrong(CREATE_ALARM, json!({"severity": "WORST"})),
        "severity"
    );
    assert_eq!(
        world.wrong(CREATE_ALARM, json!({"alarmDetailsBuildTbel": "return {"})),
        "alarmDetailsBuildTbel"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_can_come_with_the_message() {
    let mut world = World::new().await;
    let device = world.device("a", json!({})).await;
    let create = world.node(
        CREATE_ALARM,
        json!({"useMessageAlarmData": true, "overwriteAlarmDetails": false}),
    );
    let given =
        json!({"type": "Given", "severity": "MINOR", "details": {"by": "message"}, "propagate": true});
    let msg = world.msg(MsgType::PostTelemetry, device, &given);
    assert_eq!(world.one(&create, msg).await.label, "Created");
    let alarm = active(&world, device, "Given").await.unwrap();
    assert_eq!(
        (alarm.severity, alarm.propagate),
        (Some(AlarmSeverity::Minor), true)
    );
    assert_eq!(alarm.details, Some(json!({"by": "message"})));
    let msg = world.msg(MsgType::PostTelemetry, device, &json!({"type": "Given"}));
    let out = world.one(&create, msg).await;
    assert_eq!(
        out.error.as_deref(),
        Some("the alarm in the message body has no severity")
    );
}
