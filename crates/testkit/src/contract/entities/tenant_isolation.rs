//! Tenants are walls.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind, UserFilter};
use fieldline_model::entity::{Authority, Device, DeviceProfile, User};
use fieldline_model::page::PageLink;
use fieldline_model::{CustomerId, TenantId};

use super::fixture::{EntityFixture, expect_error, token, user};

/// Nothing of a tenant is read with another tenant's id, whether by id, by name, in a list, or in a count.
pub async fn tenants_do_not_see_each_other(stores: &EntityStores) {
    let mine = EntityFixture::new(stores, "mine").await;
    let theirs = EntityFixture::new(stores, "theirs").await.tenant;
    let customer = mine.customer("customer").await.id;
    let user = mine.user("u@x.org", Authority::CustomerUser, customer).await.id;
    let device = mine.new_device("device");
    let device = stores
        .devices
        .create(device.clone(), token(&device, "t"))
        .await
        .unwrap();
    let device_id = device.id;
    let all = PageLink::first(100);

    assert!(stores.customers.get(theirs, customer).await.unwrap().is_none());
    assert!(
        stores
            .customers
            .by_title(theirs, "customer")
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        stores
            .customers
            .by_ids(theirs, &[customer])
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        stores.customers.list(theirs, &all).await.unwrap().total_elements,
        0
    );
    assert_eq!(stores.customers.count(theirs).await.unwrap(), 0);

    assert!(stores.users.get(theirs, user).await.unwrap().is_none());
    assert!(stores.users.get(TenantId::NULL, user).await.unwrap().is_none());
    assert_eq!(stores.users.count(theirs).await.unwrap(), 0);
    assert_eq!(stores.users.count(TenantId::NULL).await.unwrap(), 0);
    for filter in [
        UserFilter::TenantAdmins(theirs),
        UserFilter::CustomerUsers(theirs, customer),
        UserFilter::OfTenant(theirs),
        UserFilter::SysAdmins,
    ] {
        assert_eq!(stores.users.list(filter, &all).await.unwrap().total_elements, 0);
    }

    let profile = mine.profile.id;
    assert!(
        stores
            .device_profiles
            .get(theirs, profile)
            .await
            .unwrap()
            .is_none()
    );
    let by_name = stores.device_profiles.by_name(theirs, "default").await.unwrap();
    assert_ne!(by_name.unwrap().id, profile);
    assert_eq!(
        stores
            .device_profiles
            .list(theirs, &all)
            .await
            .unwrap()
            .total_elements,
        1
    );

    assert!(stores.devices.get(theirs, device_id).await.unwrap().is_none());
    assert!(stores.devices.info(theirs, device_id).await.unwrap().is_none());
    assert!(stores.devices.by_name(theirs, "device").await.unwrap().is_none());
    assert!(
        stores
            .devices
            .by_ids(theirs, &[device_id])
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(stores.devices.count(theirs).await.unwrap(), 0);
    let filters = [
        Default::default(),
        fieldline_core::ports::DeviceFilter {
            profile: Some(profile),
            ..Default::default()
        },
        fieldline_core::ports::DeviceFilter {
            device_type: Some("default".into()),
            ..Default::default()
        },
    ];
    for filter in &filters {
        assert_eq!(
            stores
                .devices
                .list(mine.tenant, filter, &all)
                .await
                .unwrap()
                .total_elements,
            1
        );
        assert_eq!(
            stores
                .devices
                .list(theirs, filter, &all)
                .await
                .unwrap()
                .total_elements,
            0
        );
        let searched = super::fixture::searched("d");
        assert_eq!(
            stores
                .devices
                .list(theirs, filter, &searched)
                .await
                .unwrap()
                .total_elements,
            0
        );
    }
    assert!(
        stores
            .device_credentials
            .get(theirs, device_id)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        stores
            .device_credentials
            .get(mine.tenant, device_id)
            .await
            .unwrap()
            .is_some()
    );
}

/// Nothing of a tenant is changed, deleted, or referred to with another tenant's id; names are unique within a tenant
/// only.
pub async fn tenants_cannot_change_each_other(stores: &EntityStores) {
    let mine = EntityFixture::new(stores, "mine").await;
    let theirs = EntityFixture::new(stores, "theirs").await;
    let customer = mine.customer("customer").await;
    let admin = mine
        .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    let device = mine.new_device("device");
    let device = stores
        .devices
        .create(device.clone(), token(&device, "t"))
        .await
        .unwrap();
    let not_found = StoreErrorKind::NotFound;

    let mut stolen = customer.clone();
    stolen.tenant_id = theirs.tenant;
    expect_error(stores.customers.update(stolen).await, not_found);
    let stolen = User {
        tenant_id: theirs.tenant,
        ..admin.clone()
    };
    expect_error(stores.users.update(stolen).await, not_found);
    let stolen = DeviceProfile {
        tenant_id: theirs.tenant,
        ..mine.profile.clone()
    };
    expect_error(stores.device_profiles.update(stolen).await, not_found);
    let stolen = Device {
        tenant_id: theirs.tenant,
        device_profile_id: Some(theirs.profile.id),
        ..device.clone()
    };
    expect_error(stores.devices.update(stolen).await, not_found);
    let result = stores
        .device_credentials
        .save(theirs.tenant, token(&device, "mine now"))
        .await;
    expect_error(result, not_found);

    assert!(!stores.customers.delete(theirs.tenant, customer.id).await.unwrap());
    assert!(!stores.users.delete(theirs.tenant, admin.id).await.unwrap());
    assert!(!stores.users.delete(TenantId::NULL, admin.id).await.unwrap());
    assert!(!stores.devices.delete(theirs.tenant, device.id).await.unwrap());
    assert!(
        !stores
            .device_profiles
            .delete(theirs.tenant, mine.profile.id)
            .await
            .unwrap()
    );

    let invalid = StoreErrorKind::Invalid;
    let of_foreign_profile = Device {
        device_profile_id: Some(mine.profile.id),
        ..theirs.new_device("a")
    };
    expect_error(stores.devices.insert(of_foreign_profile).await, invalid);
    let of_foreign_customer = Device {
        customer_id: customer.id,
        ..theirs.new_device("a")
    };
    expect_error(stores.devices.insert(of_foreign_customer).await, invalid);
    let of_foreign_customer = User {
        customer_id: customer.id,
        ..user(theirs.tenant, "v@x.org")
    };
    expect_error(stores.users.insert(of_foreign_customer).await, invalid);

    theirs.device("device").await;
    theirs.customer("customer").await;
    assert_eq!(
        stores.devices.get(mine.tenant, device.id).await.unwrap(),
        Some(device)
    );
    assert_eq!(
        stores.customers.get(mine.tenant, customer.id).await.unwrap(),
        Some(customer)
    );
    assert_eq!(
        stores.users.get(mine.tenant, admin.id).await.unwrap(),
        Some(admin)
    );
}
