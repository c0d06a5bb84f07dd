//! Tests of hub and limits without sockets; the end-to-end tests use sockets.

use std::sync::Arc;

use fieldline_core::events::{ChangeKind, EntityChange, EntityListener as _};
use fieldline_core::memory_pool::MemoryPool;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{
    TelemetryRow, TelemetrySaveStrategy, ValueChange, ValueListener as _, ValueSource,
};
use fieldline_entities::access::Principal;
use fieldline_model::entity::Authority;
use fieldline_model::kv::{KvValue, KvValueRef, pack};
use fieldline_model::query::{EntityQueryKey, KeyType, LatestValues};
use fieldline_model::{CustomerId, DeviceId, EntityId, EntityKey, TenantId, UserId};

use super::commands::{CommandWrapper, TelemetryWrapper, WsCommand};
use super::hub::{ATTRIBUTES, SubscriptionHub, bit};
use super::latest;
use super::mailbox::{PendingValues, SessionMailbox};

fn hub() -> Arc<SubscriptionHub> {
    SubscriptionHub::new(MemoryPool::new("test.memory", ByteSize::mib(16)))
}

fn store(hub: &SubscriptionHub, subject: EntityKey) {
    let mut values = Vec::new();
    pack("t", KvValueRef::Long(1), &mut values);
    let row = TelemetryRow {
        subject,
        ts: 1,
        ttl_seconds: 0,
        strategy: TelemetrySaveStrategy::ALL,
        values: &values,
    };
    hub.on_value(ValueChange::Points(&row));
}

#[test]
fn only_those_who_watch_an_entity_and_source_are_told() {
    let hub = hub();
    let (tenant, id) = (TenantId::new(), DeviceId::new());
    let subject = EntityKey::device(tenant, id);
    let [points, attributes, foreign] = [(); 3].map(|()| Arc::new(SessionMailbox::default()));
    assert!(!hub.is_listening());
    hub.watch(subject, bit(ValueSource::Latest), 1, &points);
    hub.watch(subject, ATTRIBUTES, 1, &attributes);
    hub.watch(
        EntityKey::device(TenantId::new(), id),
        bit(ValueSource::Latest),
        1,
        &foreign,
    );
    assert!(hub.is_listening());
    store(&hub, subject);
    assert_eq!(points.take().values.len(), 1);
    assert!(attributes.take().values.is_empty());
    assert!(foreign.take().values.is_empty());

    hub.unwatch(subject, 2, &points);
    store(&hub, subject);
    assert_eq!(points.take().values.len(), 1);
    hub.unwatch(subject, 1, &points);
    hub.unwatch(subject, 1, &attributes);
    hub.unwatch(EntityKey::device(TenantId::new(), id), 1, &foreign);
    store(&hub, subject);
    assert!(points.take().values.is_empty());
}

#[test]
fn alarms_are_told_to_their_tenant() {
    let hub = hub();
    let (tenant, other) = (TenantId::new(), TenantId::new());
    let mailbox = Arc::new(SessionMailbox::default());
    hub.watch_alarms(tenant, 1, &mailbox);
    hub.on_change(EntityChange::new(other, DeviceId::new(), ChangeKind::Alarms));
    assert!(!mailbox.take().alarms_changed);
    hub.on_change(EntityChange::new(tenant, DeviceId::new(), ChangeKind::Alarms));
    assert!(mailbox.take().alarms_changed);
    hub.unwatch_alarms(tenant, 1);
    hub.on_change(EntityChange::new(tenant, DeviceId::new(), ChangeKind::Alarms));
    assert!(!mailbox.take().alarms_changed);
}

#[test]
fn both_wrappers_give_the_same_commands() {
    let general: CommandWrapper = serde_json::from_str(
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
        let ids: Vec<i64> = commands.iter().map(WsCommand::id).collect();
        assert_eq!(ids, [3, 4]);
        let WsCommand::Timeseries(watch) = &commands[0] else {
            panic!("a command of series");
        };
        assert_eq!(watch.names().unwrap(), ["a", "b"]);
    }
    assert!(serde_json::from_str::<CommandWrapper>(r#"{"cmds":[{"type":"NONSENSE","cmdId":1}]}"#).is_err());
}

#[test]
fn whoever_watches_is_asked_again_when_entities_and_people_change() {
    let hub = hub();
    let (tenant, id) = (TenantId::new(), DeviceId::new());
    let who = Principal {
        user: UserId::new(),
        authority: Authority::CustomerUser,
        tenant,
        customer: CustomerId::new(),
    };
    let (number, mailbox) = hub.open(who);
    hub.watch(EntityKey::device(tenant, id), 0, 1, &mailbox);
    store(&hub, EntityKey::device(tenant, id));
    for change in [
        EntityChange::saved(tenant, DeviceId::new()),
        EntityChange::saved(TenantId::new(), id),
        EntityChange::saved(tenant, UserId::new()),
        EntityChange::deleted(tenant, CustomerId::new()),
    ] {
        hub.on_change(change);
    }
    let delivery = mailbox.take();
    assert!(
        delivery.values.is_empty() && delivery.changed_entities.is_empty() && !delivery.principal_changed
    );
    for change in [EntityChange::saved(tenant, id), EntityChange::deleted(tenant, id)] {
        hub.on_change(change);
        assert!(mailbox.take().changed_entities.contains(&EntityId::from(id)));
    }
    for change in [
        EntityChange::saved(tenant, who.user),
        EntityChange::deleted(tenant, who.customer),
        EntityChange::deleted(tenant, tenant),
    ] {
        hub.on_change(change);
        assert!(mailbox.take().principal_changed);
    }
    hub.close(number);
    hub.on_change(EntityChange::deleted(tenant, tenant));
    assert!(!mailbox.take().principal_changed);
}

#[test]
fn what_a_client_knows_is_not_told_again() {
    let key = EntityQueryKey::new(KeyType::TimeSeries, "t");
    let mut known = LatestValues::new();
    let mut tell = |ts: i64, value: Option<i64>| {
        let news = PendingValues {
            values: vec![
                ("t".to_owned(), (ts, value.map(KvValue::Long))),
                ("other".to_owned(), (ts, Some(KvValue::Long(1)))),
            ],
            ..PendingValues::default()
        };
        let keys = std::slice::from_ref(&key);
        let changed = latest::merge_changes(&mut known, ValueSource::Latest, &news, keys, |_, _| false);
        changed.get(&KeyType::TimeSeries).map(|values| {
            assert_eq!(values.len(), 1);
            values["t"].value.clone()
        })
    };
    assert_eq!(tell(5, Some(1)).as_deref(), Some("1"));
    assert_eq!(tell(5, Some(1)), None, "it knows that");
    assert_eq!(tell(4, Some(2)), None, "that is older");
    assert_eq!(tell(5, Some(3)).as_deref(), Some("3"));
    assert_eq!(tell(0, None).as_deref(), Some(""), "it was deleted");
    assert_eq!(tell(1, Some(4)).as_deref(), Some("4"));
}

#[test]
fn where_a_tenant_has_no_memory_left_its_largest_session_is_closed() {
    let hub = hub();
    let (tenant, other) = (TenantId::new(), TenantId::new());
    let open = |tenant: TenantId, bytes: usize| {
        let who = Principal {
            user: UserId::new(),
            authority: Authority::TenantAdmin,
            tenant,
            customer: CustomerId::NULL,
        };
        let (_, mailbox) = hub.open(who);
        mailbox.note_followed(bytes);
        mailbox
    };
    let [small, large, idle] = [10, 20, 0].map(|bytes| open(tenant, bytes));
    let foreign = open(other, 30);
    hub.close_largest(tenant);
    let is_closed = |mailbox: &Arc<SessionMailbox>| mailbox.take().close_reason.is_some();
    assert_eq!(
        [&small, &large, &idle, &foreign].map(is_closed),
        [false, true, false, false]
    );
    // A session that holds nothing is not closed.
    hub.close_largest(TenantId::new());
    assert!(!is_closed(&foreign));
}
