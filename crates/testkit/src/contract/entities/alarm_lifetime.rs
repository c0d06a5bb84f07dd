//! What is kept of alarms, for whom, and for how long.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{AlarmDraft, AlarmEndUpdate, AlarmQuery, EntityStores, StoreErrorKind};
use fieldline_model::entity::{AlarmComment, AlarmCommentId, AlarmCommentType, Authority};
use fieldline_model::page::PageLink;
use fieldline_model::{AlarmId, CustomerId, new_uuid};
use serde_json::json;

use super::alarms::{draft, id_of, raise};
use super::fixture::{EntityFixture, NOW, expect_error};

/// Alarms go with their originator, by their age, or one by one; so do the types that none has any more.
pub async fn deleted_alarms_are_gone(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let (a, b) = (id_of(&world.device("a").await), id_of(&world.device("b").await));
    let alarms = &stores.alarms;
    let old = AlarmDraft {
        end_ts: NOW - 10,
        start_ts: NOW - 10,
        ..draft(world.tenant, a, "Old")
    };
    let old = raise(stores, old).await;
    let hot = raise(stores, draft(world.tenant, a, "Hot")).await.id;
    let wet = raise(stores, draft(world.tenant, b, "Wet")).await.id;
    alarms.propagate(world.tenant, wet, &[a]).await.unwrap();
    assert_eq!(alarms.delete_before(world.tenant, NOW, 10).await.unwrap(), [old]);
    assert_eq!(alarms.delete_before(world.tenant, NOW, 10).await.unwrap(), []);
    assert_eq!(
        alarms
            .types(world.tenant, &PageLink::first(9))
            .await
            .unwrap()
            .data,
        ["Hot", "Wet"]
    );
    assert_eq!(alarms.delete_of(world.tenant, a).await.unwrap(), 1);
    assert_eq!(alarms.get(world.tenant, hot).await.unwrap(), None);
    assert_eq!(alarms.propagated(world.tenant, &[wet]).await.unwrap(), [(wet, b)]);
    assert_eq!(alarms.delete(world.tenant, wet).await.unwrap().unwrap().id, wet);
    assert_eq!(alarms.delete(world.tenant, wet).await.unwrap(), None);
    assert_eq!(
        alarms
            .types(world.tenant, &PageLink::first(9))
            .await
            .unwrap()
            .total_elements,
        0
    );
}

/// Comments stand under their alarm in the order of time, with their authors.
pub async fn comments_stand_under_their_alarm(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = id_of(&world.device("device").await);
    let user = world
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    let alarms = &stores.alarms;
    let alarm = raise(stores, draft(world.tenant, device, "Hot")).await.id;
    let comment = |created_time, user_id| AlarmComment {
        id: AlarmCommentId { id: new_uuid() },
        created_time,
        alarm_id: Some(alarm),
        user_id,
        comment_type: Some(AlarmCommentType::Other),
        comment: Some(json!({"text": "seen"})),
    };
    let first = comment(NOW, Some(user.id));
    assert_eq!(
        alarms.save_comment(world.tenant, first.clone()).await.unwrap(),
        first
    );
    alarms
        .save_comment(world.tenant, comment(NOW + 1, None))
        .await
        .unwrap();
    let edited = AlarmComment {
        comment: Some(json!({"text": "gone"})),
        user_id: None,
        ..first
    };
    assert_eq!(
        alarms.save_comment(world.tenant, edited.clone()).await.unwrap(),
        edited
    );
    let found = alarms.comment(world.tenant, alarm, edited.id).await.unwrap();
    assert_eq!(found, Some(edited.clone()));
    assert_eq!(
        alarms
            .comment(world.tenant, AlarmId::new(), edited.id)
            .await
            .unwrap(),
        None
    );
    let page = alarms
        .comments(world.tenant, alarm, &PageLink::first(10))
        .await
        .unwrap();
    assert_eq!(
        page.data
            .iter()
            .map(|info| info.comment.created_time)
            .collect::<Vec<_>>(),
        [NOW + 1, NOW]
    );
    let orphan = AlarmComment {
        alarm_id: Some(AlarmId::new()),
        ..comment(NOW, None)
    };
    expect_error(
        alarms.save_comment(world.tenant, orphan).await,
        StoreErrorKind::NotFound,
    );
}

/// Alarms of a tenant are neither seen nor changed by another.
pub async fn alarms_stay_within_their_tenant(stores: &EntityStores) {
    let mine = EntityFixture::new(stores, "mine").await;
    let theirs = EntityFixture::new(stores, "theirs").await.tenant;
    let device = id_of(&mine.device("device").await);
    let alarms = &stores.alarms;
    let id = raise(stores, draft(mine.tenant, device, "Hot")).await.id;
    assert_eq!(alarms.get(theirs, id).await.unwrap(), None);
    assert_eq!(alarms.info(theirs, id).await.unwrap(), None);
    assert_eq!(alarms.acknowledge(theirs, id, NOW).await.unwrap(), None);
    assert_eq!(alarms.clear(theirs, id, NOW, None).await.unwrap(), None);
    assert_eq!(alarms.assign(theirs, id, None, NOW).await.unwrap(), None);
    assert_eq!(alarms.delete(theirs, id).await.unwrap(), None);
    assert_eq!(alarms.delete_of(theirs, device).await.unwrap(), 0);
    assert_eq!(alarms.delete_before(theirs, i64::MAX, 10).await.unwrap(), []);
    assert_eq!(alarms.latest_active(theirs, device, "Hot").await.unwrap(), None);
    assert_eq!(alarms.count(theirs, &AlarmQuery::default()).await.unwrap(), 0);
    assert_eq!(
        alarms
            .types(theirs, &PageLink::first(1))
            .await
            .unwrap()
            .total_elements,
        0
    );
    alarms.propagate(theirs, id, &[theirs.into()]).await.unwrap();
    assert_eq!(
        alarms.propagated(mine.tenant, &[id]).await.unwrap(),
        [(id, device)]
    );
    alarms
        .extend(&[AlarmEndUpdate {
            tenant: theirs,
            alarm: id,
            end_ts: NOW + 9,
            details: None,
        }])
        .await
        .unwrap();
    assert_eq!(alarms.get(mine.tenant, id).await.unwrap().unwrap().end_ts, NOW);
    // The same originator and type may be active in both, and an id that is taken elsewhere is not given away.
    raise(stores, draft(theirs, device, "Hot")).await;
    let planted = AlarmDraft {
        id: Some(id),
        ..draft(theirs, device, "Wet")
    };
    expect_error(
        alarms.create_or_update_active(planted).await,
        StoreErrorKind::Unavailable,
    );
    assert!(stores.tenants.delete(mine.tenant).await.unwrap());
    assert_eq!(alarms.get(mine.tenant, id).await.unwrap(), None);
}
