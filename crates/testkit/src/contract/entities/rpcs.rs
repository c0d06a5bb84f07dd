//! Persistent calls to devices.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind};
use fieldline_model::entity::{Rpc, RpcBody, RpcRequest, RpcStatus};
use fieldline_model::page::PageLink;
use fieldline_model::{DeviceId, EntityKey, RpcId, TenantId, new_uuid};
use serde_json::json;

use super::fixture::{EntityFixture, NOW, expect_error};

fn call(tenant: TenantId, device: DeviceId, number: i32) -> Rpc {
    let id = new_uuid();
    Rpc {
        id: RpcId(id),
        created_time: NOW + i64::from(number),
        tenant_id: tenant,
        device_id: device,
        expiration_time: NOW + 1_000 * i64::from(number),
        request: RpcRequest {
            id,
            tenant_id: tenant,
            device_id: device,
            oneway: false,
            expiration_time: NOW + 1_000 * i64::from(number),
            body: RpcBody {
                method: "set".to_owned(),
                params: "{\"pin\":1}".to_owned(),
            },
            persisted: true,
            retries: Some(2),
            additional_info: None,
        },
        response: None,
        status: RpcStatus::Queued,
        additional_info: Some(json!({"why": "test"})),
        number,
    }
}

/// Calls are found by device and state; one that has ended does not change any more.
pub async fn calls_are_found_until_they_end(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let (a, b) = (world.device("a").await.id, world.device("b").await.id);
    let (calls, tenant) = (&stores.rpcs, world.tenant);
    let kept: Vec<Rpc> = (1..=3).map(|number| call(tenant, a, number)).collect();
    for call in &kept {
        calls.insert(call).await.unwrap();
    }
    calls.insert(&call(tenant, b, 4)).await.unwrap();
    expect_error(calls.insert(&kept[0]).await, StoreErrorKind::Conflict);
    let nowhere = call(tenant, DeviceId::new(), 5);
    expect_error(calls.insert(&nowhere).await, StoreErrorKind::Invalid);

    assert_eq!(
        calls.get(tenant, kept[0].id).await.unwrap().as_ref(),
        Some(&kept[0])
    );
    assert_eq!(calls.open_of(tenant, a, 2).await.unwrap(), kept[..2]);
    let answer = json!({"ok": true});
    let moved = calls
        .set_status(tenant, kept[0].id, RpcStatus::Sent, None)
        .await
        .unwrap();
    assert_eq!(moved.unwrap().status, RpcStatus::Sent);
    let ended = calls
        .set_status(tenant, kept[0].id, RpcStatus::Successful, Some(&answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (ended.status, ended.response),
        (RpcStatus::Successful, Some(answer))
    );
    let late = calls
        .set_status(tenant, kept[0].id, RpcStatus::Expired, None)
        .await;
    assert_eq!(late.unwrap(), None);
    assert_eq!(calls.open_of(tenant, a, 9).await.unwrap(), kept[1..]);

    let mut oneway = call(tenant, b, 6);
    (oneway.request.oneway, oneway.status) = (true, RpcStatus::Sent);
    // What it is called with does not make a call one that needs no answer.
    let mut twoway = call(tenant, b, 7);
    twoway.request.body.params = "{\"oneway\":true}".to_owned();
    for call in [&oneway, &twoway] {
        calls.insert(call).await.unwrap();
        let delivered = calls
            .set_status(tenant, call.id, RpcStatus::Delivered, None)
            .await;
        assert!(delivered.unwrap().is_some());
    }
    let open: Vec<_> = calls.open_of(tenant, b, 9).await.unwrap();
    let open: Vec<_> = open.iter().map(|call| call.number).collect();
    assert_eq!(open, [4, 7]);
    let late = calls
        .set_status(tenant, oneway.id, RpcStatus::Expired, None)
        .await;
    assert_eq!(late.unwrap(), None, "what was delivered does not expire");

    let page = PageLink::first(2);
    let found = calls.list(tenant, a, None, &page).await.unwrap();
    assert_eq!(
        (found.data.len(), found.total_elements, found.has_next),
        (2, 3, true)
    );
    let queued = calls
        .list(tenant, a, Some(RpcStatus::Queued), &page)
        .await
        .unwrap();
    assert_eq!(queued.total_elements, 2);
    let due = calls.due(NOW + 2_000, 9).await.unwrap();
    assert_eq!(due.iter().map(|call| call.id).collect::<Vec<_>>(), [kept[1].id]);
    let mut waiting = [EntityKey::device(tenant, a), EntityKey::device(tenant, b)];
    waiting.sort_unstable_by_key(|subject| subject.entity.id);
    let devices = calls.waiting_devices(None, 9).await.unwrap();
    assert_eq!(devices, waiting);
    let after = DeviceId(waiting[0].entity.id);
    assert_eq!(calls.waiting_devices(Some(after), 9).await.unwrap(), waiting[1..]);

    assert_eq!(calls.delete_before(tenant, NOW + 2).await.unwrap(), 1);
    assert!(calls.delete(tenant, kept[1].id).await.unwrap());
    assert!(!calls.delete(tenant, kept[1].id).await.unwrap());
    stores.devices.delete(tenant, a).await.unwrap();
    assert_eq!(calls.get(tenant, kept[2].id).await.unwrap(), None);
}

/// Calls of another tenant are not there.
pub async fn calls_of_others_are_not_there(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let other = EntityFixture::new(stores, "other").await;
    let device = world.device("a").await.id;
    let (calls, kept) = (&stores.rpcs, call(world.tenant, device, 1));
    calls.insert(&kept).await.unwrap();
    assert_eq!(calls.get(other.tenant, kept.id).await.unwrap(), None);
    let moved = calls
        .set_status(other.tenant, kept.id, RpcStatus::Failed, None)
        .await;
    assert_eq!(moved.unwrap(), None);
    assert!(!calls.delete(other.tenant, kept.id).await.unwrap());
    assert_eq!(calls.open_of(other.tenant, device, 9).await.unwrap(), []);
    let page = calls.list(other.tenant, device, None, &PageLink::first(9)).await;
    assert_eq!(page.unwrap().total_elements, 0);
    assert_eq!(calls.delete_before(other.tenant, i64::MAX).await.unwrap(), 0);
    assert_eq!(calls.get(world.tenant, kept.id).await.unwrap(), Some(kept));
}
