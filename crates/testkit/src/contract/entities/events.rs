//! Events of entities.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, EventFilter, EventText, StoreErrorKind};
use fieldline_model::entity::{CalculatedFieldDebug, EntityEvent, EventBody, EventKind, RuleNodeDebug};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{
    CalculatedFieldId, DeviceId, EntityId, EntityKey, EntityType, RuleNodeId, TenantId, new_uuid,
};

use super::fixture::{EntityFixture, NOW, expect_error, sorted};

fn bodies() -> Vec<EventBody> {
    vec![
        EventBody::RuleNode(RuleNodeDebug {
            direction: "IN".into(),
            originator: Some(DeviceId::new().into()),
            msg_id: Some(new_uuid()),
            msg_type: Some("POST_TELEMETRY_REQUEST".into()),
            data_type: Some("JSON".into()),
            relation_type: Some("Success".into()),
            data: Some("{\"100%\":\"Grün\"}".into()),
            metadata: Some("{\"ts\":\"1\"}".into()),
            error: None,
        }),
        EventBody::RuleNode(RuleNodeDebug {
            direction: "OUT".into(),
            data: Some("{}".into()),
            error: Some("no such KEY".into()),
            ..RuleNodeDebug::default()
        }),
        EventBody::RuleChain {
            message: Some("too many".into()),
            error: None,
        },
        EventBody::CalculatedField(CalculatedFieldDebug {
            calculated_field: CalculatedFieldId::new(),
            subject: Some(EntityId::new(EntityType::Asset, new_uuid())),
            msg_id: Some(new_uuid()),
            msg_type: Some("POST_ATTRIBUTES_REQUEST".into()),
            arguments: Some("{\"x\":1}".into()),
            result: Some("{\"y\":2}".into()),
            error: Some("failed".into()),
        }),
        EventBody::Lifecycle {
            event: "STARTED".into(),
            success: true,
            error: None,
        },
        EventBody::Lifecycle {
            event: "UPDATED".into(),
            success: false,
            error: Some("wrong".into()),
        },
        EventBody::Error {
            method: "onMsg".into(),
            error: Some("broken".into()),
        },
        EventBody::Stats {
            messages_processed: 5,
            errors_occurred: 2,
        },
    ]
}

/// Stores one event of each body, a millisecond apart.
async fn appended(stores: &EntityStores, tenant: TenantId, entity: EntityId) -> Vec<EntityEvent> {
    let events: Vec<EntityEvent> = bodies()
        .into_iter()
        .zip(NOW..)
        .map(|(body, now)| EntityEvent::new(tenant, entity, "node-1".into(), now, body))
        .collect();
    stores.events.append(&events).await.unwrap();
    events
}

/// Every kind of event reads back whole, and is found by each of the conditions it meets.
pub async fn events_are_found_by_what_they_hold(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let entity: EntityId = RuleNodeId::new().into();
    let events = appended(stores, world.tenant, entity).await;
    // Told again, as after a restart.
    stores.events.append(&events).await.unwrap();
    for kind in EventKind::ALL {
        let expected: Vec<&EntityEvent> = events.iter().filter(|event| event.body.kind() == kind).collect();
        let page = sorted("createdTime", SortOrder::Asc);
        let page = stores
            .events
            .list(world.tenant, entity, &EventFilter::of(kind), &page)
            .await
            .unwrap();
        assert_eq!(page.data.iter().collect::<Vec<_>>(), expected, "{kind:?}");
    }
    let of_node = || EventFilter::of(EventKind::DebugRuleNode);
    let newest = stores
        .events
        .list(world.tenant, entity, &of_node(), &PageLink::first(1))
        .await
        .unwrap();
    assert_eq!((newest.total_elements, &newest.data[0]), (2, &events[1]));

    let EventBody::RuleNode(first) = &events[0].body else {
        unreachable!()
    };
    let text = |kind, text, part: &str| EventFilter {
        texts: vec![(text, part.to_owned())],
        ..EventFilter::of(kind)
    };
    let (node, field) = (EventKind::DebugRuleNode, EventKind::DebugCalculatedField);
    let of_stats = || EventFilter::of(EventKind::Stats);
    let cases = [
        (text(node, EventText::Server, "NODE"), vec![0, 1]),
        (text(node, EventText::Name, "in"), vec![0]),
        (text(node, EventText::EntityType, "device"), vec![0]),
        (text(node, EventText::MsgType, "telemetry"), vec![0]),
        (text(node, EventText::RelationType, "success"), vec![0]),
        (text(node, EventText::Data, "00%"), vec![0]),
        (text(node, EventText::Data, "Grün"), vec![0]),
        (text(node, EventText::Data, "1_0"), vec![]),
        (text(node, EventText::Metadata, "\"TS\""), vec![0]),
        (text(node, EventText::Error, "key"), vec![1]),
        (text(EventKind::DebugRuleChain, EventText::Data, "MANY"), vec![2]),
        (text(field, EventText::Data, "x"), vec![3]),
        (text(field, EventText::Metadata, "x"), vec![]),
        (text(EventKind::Error, EventText::Name, "onmsg"), vec![6]),
        (
            EventFilter {
                only_errors: true,
                ..of_node()
            },
            vec![1],
        ),
        (
            EventFilter {
                entity: first.originator.map(|entity| entity.id),
                ..of_node()
            },
            vec![0],
        ),
        (
            EventFilter {
                msg_id: first.msg_id,
                ..of_node()
            },
            vec![0],
        ),
        (
            EventFilter {
                start_time: Some(NOW + 1),
                end_time: Some(NOW + 1),
                ..of_node()
            },
            vec![1],
        ),
        (
            EventFilter {
                success: Some(false),
                ..EventFilter::of(EventKind::LcEvent)
            },
            vec![5],
        ),
        (
            EventFilter {
                min_messages: Some(5),
                max_messages: Some(6),
                min_errors: Some(2),
                max_errors: Some(3),
                ..of_stats()
            },
            vec![7],
        ),
        (
            EventFilter {
                max_messages: Some(5),
                ..of_stats()
            },
            vec![],
        ),
    ];
    for (filter, expected) in cases {
        let page = sorted("createdTime", SortOrder::Asc);
        let page = stores
            .events
            .list(world.tenant, entity, &filter, &page)
            .await
            .unwrap();
        let expected: Vec<&EntityEvent> = expected.iter().map(|index| &events[*index]).collect();
        assert_eq!(page.data.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        assert_eq!(page.total_elements, expected.len() as u64);
    }
    expect_error(
        stores
            .events
            .list(
                world.tenant,
                entity,
                &of_node(),
                &sorted("server", SortOrder::Asc),
            )
            .await,
        StoreErrorKind::Invalid,
    );
}

/// Events go by filter, with their entity, by age, and with their tenant; those of others stay.
pub async fn events_go_where_they_are_not_wanted_any_more(stores: &EntityStores) {
    let mine = EntityFixture::new(stores, "mine").await;
    let theirs = EntityFixture::new(stores, "theirs").await;
    let (one, other): (EntityId, EntityId) = (RuleNodeId::new().into(), RuleNodeId::new().into());
    for (tenant, entity) in [(mine.tenant, one), (mine.tenant, other), (theirs.tenant, one)] {
        appended(stores, tenant, entity).await;
    }
    let count = |tenant, entity, kind| async move {
        let filter = EventFilter::of(kind);
        let page = stores
            .events
            .list(tenant, entity, &filter, &PageLink::first(1))
            .await;
        page.unwrap().total_elements
    };
    let (node, lifecycle) = (EventKind::DebugRuleNode, EventKind::LcEvent);
    let errors = EventFilter {
        only_errors: true,
        ..EventFilter::of(node)
    };
    assert_eq!(stores.events.delete(mine.tenant, one, &errors).await.unwrap(), 1);
    assert_eq!(count(mine.tenant, one, node).await, 1);
    assert_eq!(count(mine.tenant, other, node).await, 2);
    assert_eq!(count(theirs.tenant, one, node).await, 2);

    assert_eq!(stores.events.delete_before(node, NOW + 1).await.unwrap(), 3);
    assert_eq!(count(mine.tenant, one, node).await, 0);
    assert_eq!(count(theirs.tenant, one, node).await, 1);
    assert_eq!(count(mine.tenant, one, lifecycle).await, 2);

    let subject = EntityKey {
        tenant: mine.tenant,
        entity: one,
    };
    stores.events.delete_subject(subject).await.unwrap();
    assert_eq!(count(mine.tenant, one, lifecycle).await, 0);
    assert_eq!(count(mine.tenant, other, lifecycle).await, 2);

    stores.tenants.delete(mine.tenant).await.unwrap();
    assert_eq!(count(mine.tenant, other, lifecycle).await, 0);
    assert_eq!(count(theirs.tenant, one, lifecycle).await, 2);
    // What still arrives of a deleted tenant does not keep that of others away; a text may hold anything.
    let body = || EventBody::Error {
        method: "a\0b".into(),
        error: None,
    };
    let late = [mine.tenant, theirs.tenant, TenantId::NULL]
        .map(|tenant| EntityEvent::new(tenant, one, "s".into(), NOW, body()));
    stores.events.append(&late).await.unwrap();
    assert_eq!(count(mine.tenant, one, EventKind::Error).await, 0);
    assert_eq!(count(theirs.tenant, one, EventKind::Error).await, 2);
    assert_eq!(count(TenantId::NULL, one, EventKind::Error).await, 1);
}
