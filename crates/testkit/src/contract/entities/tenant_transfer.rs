//! Devices that go from one tenant to another.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{DeviceTransfer, EntityStores, StoreErrorKind};
use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials};
use fieldline_model::{CustomerId, DeviceId, TenantId};

use super::fixture::{EntityFixture, NOW, expect_error};

/// A device that is given away is there, with its credentials, and no longer here; the way it went is remembered until it
/// is forgotten, or the device comes back.
pub async fn devices_go_from_one_tenant_to_another(stores: &EntityStores) {
    let (here, there) = (
        EntityFixture::new(stores, "here").await,
        EntityFixture::new(stores, "there").await,
    );
    let moves = &stores.device_transfers;
    let customer = here.customer("customer").await.id;
    let device = Device {
        customer_id: customer,
        ..here.new_device("meter")
    };
    let id = device.id;
    let token = DeviceCredentials::access_token(id, "moving token".into(), NOW);
    let device = stores.devices.create(device, token).await.unwrap();
    let to = |world: &EntityFixture<'_>, device: &Device| Device {
        tenant_id: world.tenant,
        customer_id: CustomerId::NULL,
        device_profile_id: Some(world.profile.id),
        ..device.clone()
    };
    there.device("meter").await;
    let taken = moves.transfer(here.tenant, to(&there, &device), NOW).await;
    expect_error(taken, StoreErrorKind::Conflict);
    let renamed = Device {
        name: "gauge".into(),
        ..to(&there, &device)
    };
    // Nobody gives away what is another's.
    expect_error(
        moves.transfer(there.tenant, renamed.clone(), NOW).await,
        StoreErrorKind::NotFound,
    );
    assert_eq!(moves.list(None, 10).await.unwrap(), []);

    let given = moves.transfer(here.tenant, renamed, NOW).await.unwrap();
    assert_eq!(
        (given.tenant_id, given.customer_id),
        (there.tenant, CustomerId::NULL)
    );
    assert_eq!(stores.devices.get(here.tenant, id).await.unwrap(), None);
    assert_eq!(
        stores.devices.get(there.tenant, id).await.unwrap(),
        Some(given.clone())
    );
    let kind = CredentialsType::AccessToken;
    let found = stores
        .device_credentials
        .find(kind, "moving token")
        .await
        .unwrap();
    assert_eq!(found.unwrap().0, given);
    let way = |device, from: TenantId, to, at_ms| DeviceTransfer {
        device,
        from,
        to,
        at_ms,
    };
    let first = way(id, here.tenant, Some(there.tenant), NOW);
    assert_eq!(moves.list(None, 10).await.unwrap(), [first]);
    let gone = here.device("gone").await;
    let gone_id: DeviceId = gone.id;
    moves
        .transfer(here.tenant, to(&there, &gone), NOW + 1)
        .await
        .unwrap();
    stores.devices.delete(there.tenant, gone_id).await.unwrap();
    let second = way(gone_id, here.tenant, None, NOW + 1);
    assert_eq!(moves.list(None, 1).await.unwrap(), [first]);
    assert_eq!(moves.list(Some(&first), 10).await.unwrap(), [second]);

    // Back again: what comes for it here is at home.
    moves
        .transfer(there.tenant, to(&here, &given), NOW + 2)
        .await
        .unwrap();
    let back = way(id, there.tenant, Some(here.tenant), NOW + 2);
    assert_eq!(moves.list(None, 10).await.unwrap(), [second, back]);
    moves
        .forget(&DeviceTransfer { at_ms: NOW, ..back })
        .await
        .unwrap();
    moves.forget(&second).await.unwrap();
    assert_eq!(moves.list(None, 10).await.unwrap(), [back]);
}
