//! Records that were set aside.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use bytes::Bytes;
use fieldline_core::ports::{
    EntityStores, SetAsideOutcome, SetAsideQuota, SetAsideRawRecord, StoreErrorKind,
};
use fieldline_model::entity::{SetAsideInfo, SetAsideReason};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{DeviceId, SetAsideId, TenantId, new_uuid};

use super::fixture::{EntityFixture, NOW, expect_error, sorted};

const ROOMY: SetAsideQuota = SetAsideQuota {
    of_tenant: 1 << 20,
    in_total: 1 << 20,
};
const SIZE: u64 = 100;
const KEPT: SetAsideOutcome = SetAsideOutcome {
    is_new: true,
    dropped: 0,
};

/// A record of a tenant that was set aside at a time.
pub(in crate::contract) fn record(tenant: TenantId, at: i64) -> SetAsideRawRecord {
    SetAsideRawRecord {
        info: SetAsideInfo {
            id: SetAsideId(new_uuid()),
            created_time: NOW + at,
            tenant_id: tenant,
            entity_id: DeviceId::new().into(),
            queue_name: "Main".into(),
            partition: 3,
            offset: 1 << 40,
            received_time: NOW - at,
            reason: SetAsideReason::KilledProcess,
            details: "died with it\0".into(),
            deaths: 2,
            size: SIZE as i64,
        },
        bytes: Bytes::from((0..SIZE).map(|byte| byte as u8).collect::<Vec<_>>()),
    }
}

/// What is read back of it: no database keeps the null character in a text.
fn stored(record: &SetAsideRawRecord) -> SetAsideRawRecord {
    let mut stored = record.clone();
    stored.info.details = stored.info.details.replace('\0', "\u{fffd}");
    stored
}

/// Room for so many records.
pub(in crate::contract) const fn room(of_tenant: u64, in_total: u64) -> SetAsideQuota {
    let each = SIZE + SetAsideQuota::OVERHEAD;
    SetAsideQuota {
        of_tenant: of_tenant * each,
        in_total: in_total * each,
    }
}

/// Records are kept whole, once, listed, and found by their tenant alone; they go with it.
pub async fn records_that_were_set_aside_are_kept_whole(stores: &EntityStores) {
    let (world, other) = (
        EntityFixture::new(stores, "T").await,
        EntityFixture::new(stores, "O").await,
    );
    let aside = &stores.set_aside;
    let first = record(world.tenant, 1);
    let second = SetAsideRawRecord {
        info: SetAsideInfo {
            reason: SetAsideReason::RetriesExhausted,
            queue_name: "Slow".into(),
            ..record(world.tenant, 2).info
        },
        ..record(world.tenant, 2)
    };
    assert_eq!(aside.keep(&first, ROOMY).await.unwrap(), KEPT);
    assert_eq!(
        aside.keep(&first, ROOMY).await.unwrap(),
        SetAsideOutcome::default(),
        "the same is kept once"
    );
    assert_eq!(aside.keep(&second, ROOMY).await.unwrap(), KEPT);
    let of_other = record(other.tenant, 3);
    aside.keep(&of_other, ROOMY).await.unwrap();

    let id = first.info.id;
    assert_eq!(
        aside.get(Some(world.tenant), id).await.unwrap(),
        Some(stored(&first))
    );
    assert_eq!(aside.get(None, id).await.unwrap(), Some(stored(&first)));
    assert_eq!(aside.get(Some(other.tenant), id).await.unwrap(), None);
    assert!(!aside.delete(Some(other.tenant), id).await.unwrap());

    let newest_first = aside.list(Some(world.tenant), &PageLink::first(9)).await.unwrap();
    let both = [stored(&second).info, stored(&first).info];
    assert_eq!(newest_first.data, both);
    let all = aside.list(None, &PageLink::first(2)).await.unwrap();
    assert_eq!((all.total_elements, all.data.len()), (3, 2));
    for property in ["createdTime", "reason", "size"] {
        let page = sorted(property, SortOrder::Desc);
        let listed = aside.list(Some(world.tenant), &page).await.unwrap();
        assert_eq!(listed.data.len(), 2, "{property}");
    }
    let mut slow = PageLink::first(9);
    slow.text_search = Some("slow".into());
    let found = aside.list(None, &slow).await.unwrap();
    assert_eq!(found.data, [stored(&second).info]);

    assert!(aside.delete(Some(world.tenant), id).await.unwrap());
    assert!(!aside.delete(None, id).await.unwrap());
    assert!(stores.tenants.delete(world.tenant).await.unwrap());
    assert_eq!(aside.get(None, second.info.id).await.unwrap(), None);
    let left = aside.list(None, &PageLink::first(9)).await.unwrap();
    assert_eq!(left.data, [stored(&of_other).info]);
    expect_error(aside.keep(&second, ROOMY).await, StoreErrorKind::NotFound);
}

/// Beyond the room, the oldest of the tenant go, then the oldest of the tenant that has the most.
pub async fn records_that_were_set_aside_stay_within_their_room(stores: &EntityStores) {
    let (world, other) = (
        EntityFixture::new(stores, "T").await,
        EntityFixture::new(stores, "O").await,
    );
    let aside = &stores.set_aside;
    let ids = async |tenant: TenantId| -> Vec<SetAsideId> {
        let page = sorted("createdTime", SortOrder::Asc);
        let listed = aside.list(Some(tenant), &page).await.unwrap();
        listed.data.iter().map(|info| info.id).collect()
    };
    let mine: Vec<_> = (0..4).map(|at| record(world.tenant, at)).collect();
    for record in &mine[..3] {
        assert_eq!(aside.keep(record, room(3, 9)).await.unwrap(), KEPT);
    }
    let kept = aside.keep(&mine[3], room(3, 9)).await.unwrap();
    assert_eq!((kept.is_new, kept.dropped), (true, 1));
    let [_, second, third, fourth] = [0, 1, 2, 3].map(|at: usize| mine[at].info.id);
    assert_eq!(ids(world.tenant).await, [second, third, fourth]);

    // All together are full: who has the most makes room, whoever comes.
    let theirs = record(other.tenant, 0);
    assert_eq!(aside.keep(&theirs, room(3, 3)).await.unwrap().dropped, 1);
    assert_eq!(ids(world.tenant).await, [third, fourth]);
    assert_eq!(ids(other.tenant).await, [theirs.info.id]);

    // What was deleted has made room.
    assert!(aside.delete(Some(world.tenant), third).await.unwrap());
    let more = record(other.tenant, 1);
    assert_eq!(aside.keep(&more, room(3, 3)).await.unwrap(), KEPT);

    // The newest is kept however little room there is.
    let large = record(world.tenant, 9);
    assert_eq!(aside.keep(&large, room(0, 9)).await.unwrap().dropped, 1);
    assert_eq!(ids(world.tenant).await, [large.info.id]);
}
