//! The life of alarms.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{
    AlarmDraft, AlarmEndUpdate, AlarmPropagation, AlarmQuery, AlarmScope, AlarmUpdate, EntityStores,
    StoreErrorKind,
};
use fieldline_model::entity::{Alarm, AlarmSearchStatus, AlarmSeverity, AlarmStatus, Authority, Device};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{AlarmId, CustomerId, EntityId, EntityType, TenantId, new_uuid};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error, searched, sorted};

pub(in crate::contract) fn draft(
    tenant: TenantId,
    originator: impl Into<EntityId>,
    alarm_type: &str,
) -> AlarmDraft {
    AlarmDraft {
        id: None,
        tenant,
        customer: None,
        originator: originator.into(),
        alarm_type: alarm_type.into(),
        severity: AlarmSeverity::Major,
        start_ts: NOW,
        end_ts: NOW,
        details: Some(json!({"data": "23.5"})),
        propagation: AlarmPropagation::default(),
        created_time: NOW,
        may_create: true,
    }
}

pub(in crate::contract) async fn raise(stores: &EntityStores, draft: AlarmDraft) -> Alarm {
    let raised = stores
        .alarms
        .create_or_update_active(draft)
        .await
        .unwrap()
        .unwrap();
    assert!(raised.created && raised.modified && !raised.replayed);
    raised.alarm
}

pub(super) fn id_of(device: &Device) -> EntityId {
    device.id.into()
}

/// An originator has one active alarm of a type: raising it again updates it, and after its end makes a new one.
pub async fn one_alarm_of_a_type_is_active_at_a_time(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = id_of(&world.device("device").await);
    let customer = CustomerId::new();
    let first = AlarmDraft {
        customer: Some(customer),
        propagation: AlarmPropagation {
            tenant: true,
            relation_types: vec!["Contains".into(), "a, \"b\"".into()],
            ..AlarmPropagation::default()
        },
        ..draft(world.tenant, device, "Hot")
    };
    let alarm = raise(stores, first.clone()).await;
    let id = alarm.id;
    assert_eq!(stores.alarms.get(world.tenant, id).await.unwrap().unwrap(), alarm);
    assert_eq!(alarm.customer_id, Some(customer));
    assert_eq!(AlarmPropagation::of(&alarm), first.propagation);
    assert_eq!(alarm.status(), AlarmStatus::ActiveUnack);

    let again = stores
        .alarms
        .create_or_update_active(first.clone())
        .await
        .unwrap()
        .unwrap();
    assert!(!again.created && !again.modified);
    let worse = AlarmDraft {
        severity: AlarmSeverity::Critical,
        end_ts: NOW + 5,
        ..first.clone()
    };
    let worse = stores
        .alarms
        .create_or_update_active(worse)
        .await
        .unwrap()
        .unwrap();
    assert!(!worse.created && worse.modified && worse.severity_changed());
    assert!(!worse.propagation_changed());
    assert_eq!(worse.old.unwrap(), alarm);
    assert_eq!((worse.alarm.id, worse.alarm.end_ts), (id, NOW + 5));

    let cleared = stores
        .alarms
        .clear(world.tenant, id, NOW + 9, Some(&json!({"why": 1})))
        .await;
    let cleared = cleared.unwrap().unwrap();
    assert!(cleared.cleared && cleared.modified);
    assert_eq!(
        (cleared.alarm.clear_ts, cleared.alarm.details),
        (NOW + 9, Some(json!({"why": 1})))
    );
    let twice = stores
        .alarms
        .clear(world.tenant, id, NOW + 10, None)
        .await
        .unwrap()
        .unwrap();
    assert!(!twice.cleared && !twice.modified);
    assert_eq!(twice.alarm.clear_ts, NOW + 9);
    assert_eq!(
        stores
            .alarms
            .latest_active(world.tenant, device, "Hot")
            .await
            .unwrap(),
        None
    );

    let refused = AlarmDraft {
        may_create: false,
        ..first.clone()
    };
    assert_eq!(
        stores.alarms.create_or_update_active(refused).await.unwrap(),
        None
    );
    let second = raise(stores, first).await;
    assert_ne!(second.id, id);
    let active = stores
        .alarms
        .latest_active(world.tenant, device, "Hot")
        .await
        .unwrap();
    assert_eq!(active.unwrap().id, second.id);
}

/// Many who raise the same alarm at once make one.
pub async fn concurrent_raises_make_one_alarm(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = id_of(&world.device("device").await);
    let raises = (0..8).map(|_| {
        let alarms = stores.alarms.clone();
        let draft = draft(world.tenant, device, "Hot");
        tokio::spawn(async move { alarms.create_or_update_active(draft).await.unwrap().unwrap() })
    });
    let mut created = 0;
    for raise in raises.collect::<Vec<_>>() {
        created += u32::from(raise.await.unwrap().created);
    }
    assert_eq!(created, 1);
    assert_eq!(
        stores.alarms.active_of(world.tenant, device).await.unwrap().len(),
        1
    );
}

/// A draft with an id that was used already changes nothing, even after the alarm has ended.
pub async fn a_replayed_draft_raises_nothing(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = id_of(&world.device("device").await);
    let once = AlarmDraft {
        id: Some(AlarmId(new_uuid())),
        ..draft(world.tenant, device, "Hot")
    };
    let id = raise(stores, once.clone()).await.id;
    assert_eq!(Some(id), once.id);
    stores.alarms.clear(world.tenant, id, NOW, None).await.unwrap();
    let replayed = AlarmDraft {
        severity: AlarmSeverity::Critical,
        ..once
    };
    let replayed = stores
        .alarms
        .create_or_update_active(replayed)
        .await
        .unwrap()
        .unwrap();
    assert!(replayed.replayed && !replayed.created && !replayed.modified);
    assert!(replayed.alarm.cleared);
    assert_eq!(replayed.alarm.severity, Some(AlarmSeverity::Major));
}

/// Acknowledging, assigning and updating say whether they changed something.
pub async fn changes_of_an_alarm_say_whether_they_were_any(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = id_of(&world.device("device").await);
    let user = world
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    let alarms = &stores.alarms;
    let alarm = raise(stores, draft(world.tenant, device, "Hot")).await;
    let id = alarm.id;
    for expected in [true, false] {
        let result = alarms
            .acknowledge(world.tenant, id, NOW + 1)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(result.modified, expected);
        assert_eq!((result.alarm.acknowledged, result.alarm.ack_ts), (true, NOW + 1));
    }
    let someone = Some(user.id);
    for (assignee, expected) in [(someone, true), (someone, false), (None, true), (None, false)] {
        let result = alarms
            .assign(world.tenant, id, assignee, NOW + 2)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((result.modified, result.alarm.assignee_id), (expected, assignee));
    }
    alarms.assign(world.tenant, id, someone, NOW + 3).await.unwrap();
    let info = alarms.info(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(info.originator_name.as_deref(), Some("device"));
    assert_eq!(info.assignee.unwrap().email, "u@x.org");
    assert_eq!(alarms.assigned_to(world.tenant, user.id, 10).await.unwrap(), [id]);

    let update = AlarmUpdate {
        tenant: world.tenant,
        id,
        severity: AlarmSeverity::Minor,
        start_ts: NOW,
        end_ts: NOW + 7,
        details: None,
        propagation: AlarmPropagation {
            related: true,
            ..AlarmPropagation::default()
        },
    };
    let result = alarms.update(update.clone()).await.unwrap().unwrap();
    assert!(result.modified && result.severity_changed() && result.propagation_changed());
    assert_eq!(result.alarm.details, None);
    let touch = |end_ts, details| AlarmEndUpdate {
        tenant: world.tenant,
        alarm: id,
        end_ts,
        details,
    };
    let touches = [
        touch(NOW + 20, Some(json!(2))),
        touch(NOW + 10, Some(json!(1))),
        touch(NOW + 30, None),
    ];
    alarms.extend(&touches).await.unwrap();
    let touched = alarms.get(world.tenant, id).await.unwrap().unwrap();
    assert_eq!((touched.end_ts, touched.details), (NOW + 30, Some(json!(2))));

    let nobody = AlarmId::new();
    assert_eq!(alarms.acknowledge(world.tenant, nobody, NOW).await.unwrap(), None);
    assert_eq!(
        alarms.update(AlarmUpdate { id: nobody, ..update }).await.unwrap(),
        None
    );
}

/// An alarm shows at its originator and where it propagates; lists are narrowed, searched and sorted.
pub async fn alarms_are_found_where_they_show(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let (a, b) = (id_of(&world.device("a").await), id_of(&world.device("b").await));
    let alarms = &stores.alarms;
    let mut ids = Vec::new();
    for (originator, alarm_type, severity, ts) in [
        (a, "Hot", AlarmSeverity::Minor, NOW),
        (a, "Wet", AlarmSeverity::Critical, NOW + 1),
        (b, "Hot", AlarmSeverity::Warning, NOW + 2),
    ] {
        let draft = AlarmDraft {
            severity,
            created_time: ts,
            start_ts: ts,
            ..draft(world.tenant, originator, alarm_type)
        };
        ids.push(raise(stores, draft).await.id);
    }
    alarms.acknowledge(world.tenant, ids[1], NOW).await.unwrap();
    alarms.clear(world.tenant, ids[2], NOW, None).await.unwrap();
    alarms
        .propagate(world.tenant, ids[2], &[a, world.tenant.into()])
        .await
        .unwrap();
    alarms.propagate(world.tenant, ids[2], &[a]).await.unwrap();
    assert_eq!(alarms.propagated(world.tenant, &ids[2..]).await.unwrap().len(), 3);
    let mut shown = alarms.propagated(world.tenant, &ids).await.unwrap();
    shown.sort_unstable();
    let mut expected = vec![
        (ids[0], a),
        (ids[1], a),
        (ids[2], a),
        (ids[2], b),
        (ids[2], world.tenant.into()),
    ];
    expected.sort_unstable();
    assert_eq!(shown, expected);

    let of = |scope| AlarmQuery {
        scope,
        ..AlarmQuery::default()
    };
    let in_order = |scope| AlarmQuery {
        by_entity: true,
        ..of(scope)
    };
    let everywhere = AlarmQuery::default();
    let cases = [
        (in_order(AlarmScope::Originators(vec![a, b])), vec![1, 0, 2]),
        (in_order(AlarmScope::Originators(vec![b, a])), vec![2, 1, 0]),
        (in_order(AlarmScope::AffectingAny(vec![b, a])), vec![2, 1, 0]),
        (
            in_order(AlarmScope::Originators(vec![a, b])).in_states(&[AlarmSearchStatus::Active]),
            vec![1, 0],
        ),
        (in_order(AlarmScope::Originators(vec![])), vec![]),
        (everywhere.clone(), vec![2, 1, 0]),
        (of(AlarmScope::Affecting(a)), vec![2, 1, 0]),
        (of(AlarmScope::Affecting(b)), vec![2]),
        (of(AlarmScope::Affecting(world.tenant.into())), vec![2]),
        (
            of(AlarmScope::AffectingAny(vec![b, world.tenant.into()])),
            vec![2],
        ),
        (of(AlarmScope::AffectingAny(vec![])), vec![]),
        (of(AlarmScope::Originators(vec![a])), vec![1, 0]),
        (of(AlarmScope::AffectingType(EntityType::Tenant)), vec![2]),
        (of(AlarmScope::OriginatorType(EntityType::Asset)), vec![]),
        (
            everywhere.clone().in_states(&[AlarmSearchStatus::Active]),
            vec![1, 0],
        ),
        (
            everywhere
                .clone()
                .in_states(&[AlarmSearchStatus::Ack, AlarmSearchStatus::Active]),
            vec![1],
        ),
        (
            everywhere
                .clone()
                .in_states(&[AlarmSearchStatus::Ack, AlarmSearchStatus::Unack]),
            vec![2, 1, 0],
        ),
        (everywhere.clone().with_status(AlarmStatus::ClearedUnack), vec![2]),
        (
            AlarmQuery {
                severities: vec![AlarmSeverity::Minor, AlarmSeverity::Critical],
                ..everywhere.clone()
            },
            vec![1, 0],
        ),
        (
            AlarmQuery {
                types: vec!["Hot".into()],
                ..everywhere.clone()
            },
            vec![2, 0],
        ),
        (
            AlarmQuery {
                from: Some(NOW + 1),
                to: Some(NOW + 1),
                ..everywhere.clone()
            },
            vec![1],
        ),
    ];
    for (query, expected) in cases {
        let found = alarms
            .list(world.tenant, &query, &PageLink::first(10))
            .await
            .unwrap();
        let found: Vec<_> = found.data.iter().map(|info| info.alarm.id).collect();
        let expected: Vec<_> = expected.iter().map(|index: &usize| ids[*index]).collect();
        assert_eq!(found, expected, "{query:?}");
        assert_eq!(
            alarms.count(world.tenant, &query).await.unwrap(),
            expected.len() as u64
        );
    }
    let highest = alarms
        .highest_severity(world.tenant, &of(AlarmScope::Affecting(a)))
        .await
        .unwrap();
    assert_eq!(highest, Some(AlarmSeverity::Critical));
    for (text, expected) in [
        ("wet", 1),
        ("HOT", 2),
        ("warn", 1),
        ("cleared_un", 1),
        ("active", 2),
    ] {
        let page = PageLink {
            sort_property: None,
            sort_order: None,
            ..searched(text)
        };
        let found = alarms.list(world.tenant, &everywhere, &page).await.unwrap();
        assert_eq!(found.total_elements, expected, "{text}");
    }
    for property in [
        "createdTime",
        "startTs",
        "endTs",
        "ackTs",
        "clearTs",
        "assignTs",
        "type",
        "severity",
        "status",
        "originator",
        "originatorType",
        "originatorName",
        "originatorLabel",
        "assignee",
    ] {
        let page = sorted(property, SortOrder::Desc);
        assert_eq!(
            alarms
                .list(world.tenant, &everywhere, &page)
                .await
                .unwrap()
                .data
                .len(),
            3,
            "{property}"
        );
    }
    let by_originator = sorted("originatorName", SortOrder::Desc);
    let found = alarms
        .list(world.tenant, &everywhere, &by_originator)
        .await
        .unwrap();
    assert_eq!(found.data[0].originator_name.as_deref(), Some("b"));
    expect_error(
        alarms
            .list(world.tenant, &everywhere, &sorted("details", SortOrder::Asc))
            .await,
        StoreErrorKind::Invalid,
    );
    let types = alarms.types(world.tenant, &PageLink::first(10)).await.unwrap();
    assert_eq!(types.data, ["Hot", "Wet"]);
}
