//! Hub and limits without sockets; sockets are tried from outside.

use std::sync::Arc;

use fieldline_core::events::{EntityChange, EntityListener as _};
use fieldline_core::ports::{RowParts, TelemetryRow, ValueChange, ValueListener as _, ValueSource};
use fieldline_model::kv::{ValueRef, pack};
use fieldline_model::{DeviceId, Subject, TenantId};

use super::commands::{Command, TelemetryWrapper, Wrapper};
use super::hub::{ATTRIBUTES, Hub, bit};
use super::mailbox::Mailbox;

fn store(hub: &Hub, subject: Subject) {
    let mut values = Vec::new();
    pack("t", ValueRef::Long(1), &mut values);
    let row = TelemetryRow {
        subject,
        ts: 1,
        ttl_seconds: 0,
        parts: RowParts::ALL,
        values: &values,
    };
    hub.on_value(ValueChange::Points(&row));
}

#[test]
fn only_those_who_watch_an_entity_and_source_are_told() {
    let hub = Hub::new();
    let (tenant, id) = (TenantId::new(), DeviceId::new());
    let subject = Subject::device(tenant, id);
    let [points, attributes, foreign] = [(); 3].map(|()| Arc::new(Mailbox::default()));
    assert!(!hub.is_listening());
    hub.watch(subject, bit(ValueSource::Latest), 1, &points);
    hub.watch(subject, ATTRIBUTES, 1, &attributes);
    hub.watch(
        Subject::device(TenantId::new(), id),
        bit(ValueSource::Latest),
        1,
        &foreign,
    );
    assert!(hub.is_listening());
    store(&hub, subject);
    assert_eq!(points.take().news.len(), 1);
    assert!(attributes.take().news.is_empty());
    assert!(foreign.take().news.is_empty());

    hub.unwatch(subject, 2, &points);
    store(&hub, subject);
    assert_eq!(points.take().news.len(), 1);
    hub.unwatch(subject, 1, &points);
    hub.unwatch(subject, 1, &attributes);
    hub.unwatch(Subject::device(TenantId::new(), id), 1, &foreign);
    store(&hub, subject);
    assert!(points.take().news.is_empty());
}

#[test]
fn alarms_are_told_to_their_tenant() {
    let hub = Hub::new();
    let (tenant, other) = (TenantId::new(), TenantId::new());
    let mailbox = Arc::new(Mailbox::default());
    hub.watch_alarms(tenant, 1, &mailbox);
    hub.on_change(EntityChange::AlarmChanged(other, DeviceId::new().into()));
    assert!(!mailbox.take().alarms);
    hub.on_change(EntityChange::AlarmChanged(tenant, DeviceId::new().into()));
    assert!(mailbox.take().alarms);
    hub.unwatch_alarms(tenant, 1);
    hub.on_change(EntityChange::AlarmChanged(tenant, DeviceId::new().into()));
    assert!(!mailbox.take().alarms);
}

#[test]
fn both_wrappers_give_the_same_commands() {
    let general: Wrapper = serde_json::from_str(
        r#"{"authCmd":null,"cmds":[{"type":"TIMESERIES","cmdId":3,"entityType":"DEVICE","entityId":"x","keys":"a,b,,a"},
            {"type":"ALARM_DATA_UNSUBSCRIBE","cmdId":4}]}"#,
    )
    .unwrap();
    let older: TelemetryWrapper = serde_json::from_str(
        r#"{"tsSubCmds":[{"cmdId":3,"entityType":"DEVICE","entityId":"x","keys":"a,b,,a"}],"historyCmds":null,
            "alarmDataUnsubscribeCmds":[{"cmdId":4}]}"#,
    )
    .unwrap();
    for commands in [general.cmds, older.into_commands()] {
        let ids: Vec<i64> = commands.iter().map(Command::id).collect();
        assert_eq!(ids, [3, 4]);
        let Command::Timeseries(watch) = &commands[0] else {
            panic!("a command of series");
        };
        assert_eq!(watch.names().unwrap(), ["a", "b"]);
    }
    assert!(serde_json::from_str::<Wrapper>(r#"{"cmds":[{"type":"NONSENSE","cmdId":1}]}"#).is_err());
}
