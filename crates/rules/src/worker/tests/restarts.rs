//! What a stop and a crash leave, and what the next start makes of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fieldline_core::ports::{IngestStore as _, Journal as _};
use fieldline_model::entity::{CalculatedField, CalculatedFieldType};
use fieldline_model::{EntityId, TenantId};
use serde_json::{Value, json};

use super::rig::{Rig, Seen, eventually};
use crate::nodes::tests::NOW;
use crate::strategy::QueueStrategy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backlog_is_not_given_up_when_queues_close_under_it() {
    let mut rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    rig.uplink.open_other(TenantId::NULL, "Later", 1).unwrap();
    rig.pushes();
    let moves = rig
        .world
        .make_named("flow.TbCheckpointNode", "later", Some("Later"), &json!({}))
        .unwrap();
    rig.chain(vec![moves], &[]);
    rig.send(device, 1..=3).await;
    // The program ends while there is a backlog: what is read from it can go nowhere.
    rig.journal.close().await;
    let service = rig.start().await;
    let has_replayed = service.has_replayed();
    rig.stop(service, Duration::from_secs(60)).await;
    assert!(!has_replayed());
    let position = rig.store.resume_position(rig.partition(0)).await.unwrap();
    assert_eq!(position.unwrap_or_default().0, 0, "the next start does it again");
    assert_eq!(rig.counts().0, Default::default(), "nothing has come to an end");
}

/// A condition that holds when `n` has been above 0 for a minute is met, and the program crashes after its alarm is raised
/// and before that is stored. Returns the ids of the alarms of both times.
async fn raise_twice(rig: &Rig, device: EntityId) -> [Value; 2] {
    let seen = Seen::default();
    let nodes = vec![
        rig.world.node("telemetry.TbMsgTimeseriesNode", json!({})),
        rig.world.node("profile.TbDeviceProfileNode", json!({})),
        seen.node(),
    ];
    rig.chain(nodes, &[(0, 1, "Success"), (1, 2, "Success")]);
    let alarms = rig.world.services.stores.alarms.clone();
    let (tenant, partition) = (rig.world.tenant, rig.partition(0));
    let mut ids = Vec::new();
    rig.send(device, [NOW]).await;
    for _ in 0..2 {
        let service = rig.start().await;
        eventually("the message was not processed", async || {
            let position = rig.store.resume_position(partition).await.unwrap();
            position.unwrap_or_default().0 == 1
        })
        .await;
        assert_eq!(seen.all(), [NOW]);
        rig.store.refuses.store(true, Ordering::Release);
        rig.world.clock.advance(61_000);
        eventually("no alarm was raised", async || {
            !alarms.active_of(tenant, device).await.unwrap().is_empty()
        })
        .await;
        rig.stop(service, Duration::ZERO).await;
        rig.store.refuses.store(false, Ordering::Release);
        let raised = alarms.active_of(tenant, device).await.unwrap();
        assert_eq!(raised.len(), 1);
        let id = raised[0].id;
        alarms.delete(tenant, id).await.unwrap();
        ids.push(json!(id));
    }
    ids.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_that_time_raises_is_the_same_after_a_crash_by_rules_of_a_profile() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let alarms = json!([{"id": "a", "alarmType": "High", "createRules": {"MAJOR": {"condition": {
        "condition": [{"key": {"type": "TIME_SERIES", "key": "n"}, "valueType": "NUMERIC",
            "predicate": {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 0}}}],
        "spec": {"type": "DURATION", "unit": "SECONDS", "predicate": {"defaultValue": 60}},
    }}}}]);
    let profile = rig
        .world
        .device_profile("watched", json!({"profileData": {"alarms": alarms}}))
        .await;
    let device = rig
        .world
        .device("watched", json!({"deviceProfileId": profile}))
        .await;
    let [first, second] = raise_twice(&rig, device).await;
    assert_eq!(first, second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_that_time_raises_is_the_same_after_a_crash_by_a_calculated_field() {
    let rig = Rig::new(1, QueueStrategy::default()).await;
    let device = rig.device_in(0).await;
    let field = CalculatedField {
        entity_id: Some(device),
        field_type: CalculatedFieldType::Alarm,
        name: "High".into(),
        configuration: json!({
            "type": "ALARM",
            "arguments": {"n": {"refEntityKey": {"key": "n", "type": "TS_LATEST"}}},
            "createRules": {"MAJOR": {"condition": {
                "type": "DURATION", "unit": "SECONDS", "value": {"staticValue": 60},
                "expression": {"type": "TBEL", "expression": "return n > 0;"},
            }}},
        }),
        ..CalculatedField::default()
    };
    let fields = &rig.world.services.rules.calculated_fields;
    fields.save(rig.world.tenant, field.into()).await.unwrap();
    let [first, second] = raise_twice(&rig, device).await;
    assert_eq!(first, second);
}
