//! What goes, and what goes with it.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind};
use fieldline_model::entity::{Authority, CredentialsType, Device, Tenant, UserCredentials};
use fieldline_model::page::PageLink;
use fieldline_model::{CustomerId, TenantId};

use super::fixture::{EntityFixture, expect_error, tenant, tenant_profile, token};

/// A deletion says whether there was something to delete; the name is free again.
pub async fn what_is_deleted_is_gone_and_can_be_made_again(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    for _ in 0..2 {
        let device = world.new_device("device");
        let device = stores
            .devices
            .create(device.clone(), token(&device, "token"))
            .await
            .unwrap();
        let id = device.id;
        assert!(stores.devices.delete(world.tenant, id).await.unwrap());
        assert!(!stores.devices.delete(world.tenant, id).await.unwrap());
        assert_eq!(stores.devices.get(world.tenant, id).await.unwrap(), None);
        assert_eq!(
            stores.device_credentials.get(world.tenant, id).await.unwrap(),
            None
        );
        expect_error(stores.devices.update(device).await, StoreErrorKind::NotFound);

        let customer = world.customer("customer").await.id;
        assert!(stores.customers.delete(world.tenant, customer).await.unwrap());
        assert!(!stores.customers.delete(world.tenant, customer).await.unwrap());
        let user = world
            .user("u@x.org", Authority::TenantAdmin, CustomerId::NULL)
            .await
            .id;
        assert!(stores.users.delete(world.tenant, user).await.unwrap());
        assert!(!stores.users.delete(world.tenant, user).await.unwrap());
        let profile = world.profile("profile").await.id;
        assert!(
            stores
                .device_profiles
                .delete(world.tenant, profile)
                .await
                .unwrap()
        );
        assert!(
            !stores
                .device_profiles
                .delete(world.tenant, profile)
                .await
                .unwrap()
        );
        let profile = stores
            .tenant_profiles
            .insert(tenant_profile("profile"))
            .await
            .unwrap()
            .id;
        assert!(stores.tenant_profiles.delete(profile).await.unwrap());
        assert!(!stores.tenant_profiles.delete(profile).await.unwrap());
    }
    assert!(!stores.tenants.delete(TenantId::new()).await.unwrap());
}

/// Customers, users, devices, profiles and all credentials go with their tenant; other tenants keep theirs.
pub async fn deleting_a_tenant_deletes_everything_that_belongs_to_it(stores: &EntityStores) {
    let doomed = EntityFixture::new(stores, "doomed").await;
    let spared = EntityFixture::new(stores, "spared").await;
    for (world, name) in [(&doomed, "doomed"), (&spared, "spared")] {
        let customer = world.customer("customer").await.id;
        let email = format!("{name}@x.org");
        let user = world.user(&email, Authority::CustomerUser, customer).await;
        let credentials = UserCredentials {
            user_id: user.id,
            enabled: false,
            password_hash: None,
            activate_token: Some(name.into()),
            tokens_valid_from: 0,
            ..UserCredentials::default()
        };
        stores.users.save_credentials(credentials).await.unwrap();
        let device = Device {
            customer_id: customer,
            ..world.new_device("device")
        };
        stores
            .devices
            .create(device.clone(), token(&device, name))
            .await
            .unwrap();
    }

    assert!(stores.tenants.delete(doomed.tenant).await.unwrap());
    assert!(!stores.tenants.delete(doomed.tenant).await.unwrap());

    assert_eq!(
        stores
            .tenants
            .by_ids(&[doomed.tenant, spared.tenant])
            .await
            .unwrap()
            .len(),
        1
    );
    for (world, name, left) in [(&doomed, "doomed", 0), (&spared, "spared", 1)] {
        let tenant = world.tenant;
        assert_eq!(stores.customers.count(tenant).await.unwrap(), left);
        assert_eq!(stores.users.count(tenant).await.unwrap(), left);
        assert_eq!(stores.devices.count(tenant).await.unwrap(), left);
        let profiles = stores
            .device_profiles
            .list(tenant, &PageLink::first(9))
            .await
            .unwrap();
        assert_eq!(profiles.total_elements, left);
        let is_left = left == 1;
        let email = format!("{name}@x.org");
        assert_eq!(stores.users.by_email(&email).await.unwrap().is_some(), is_left);
        assert_eq!(
            stores
                .users
                .credentials_by_activate_token(name)
                .await
                .unwrap()
                .is_some(),
            is_left
        );
        let found = stores
            .device_credentials
            .find(CredentialsType::AccessToken, name)
            .await
            .unwrap();
        assert_eq!(found.is_some(), is_left);
    }
    EntityFixture::new(stores, "doomed").await;
}

/// Devices outlive their customer, users do not.
pub async fn deleting_a_customer_unassigns_its_devices_and_deletes_its_users(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let doomed = world.customer("doomed").await.id;
    let spared = world.customer("spared").await.id;
    let assigned = |name: &str, customer: CustomerId| Device {
        customer_id: customer,
        ..world.new_device(name)
    };
    let orphan = world.save(assigned("orphan", doomed)).await;
    let kept = world.save(assigned("kept", spared)).await;
    world.user("doomed@x.org", Authority::CustomerUser, doomed).await;
    world.user("spared@x.org", Authority::CustomerUser, spared).await;

    assert!(stores.customers.delete(world.tenant, doomed).await.unwrap());

    let info = stores
        .devices
        .info(world.tenant, orphan.id)
        .await
        .unwrap()
        .unwrap();
    assert!(info.device.customer_id.is_null());
    assert_eq!(info.customer_title, None);
    assert!(!info.customer_is_public);
    expect_error(
        stores.devices.update(orphan).await,
        StoreErrorKind::VersionConflict,
    );
    assert_eq!(
        stores.devices.get(world.tenant, kept.id).await.unwrap(),
        Some(kept)
    );
    assert!(stores.users.by_email("doomed@x.org").await.unwrap().is_none());
    assert!(stores.users.by_email("spared@x.org").await.unwrap().is_some());
}

/// A profile that something still has stays.
pub async fn profiles_in_use_cannot_be_deleted(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = world.device("device").await.id;
    let profile = world.profile.id;
    let result = stores.device_profiles.delete(world.tenant, profile).await;
    let message = expect_error(result, StoreErrorKind::Conflict);
    assert_eq!(
        message,
        "The device profile referenced by the devices cannot be deleted!"
    );
    assert!(
        stores
            .device_profiles
            .get(world.tenant, profile)
            .await
            .unwrap()
            .is_some()
    );
    assert!(stores.devices.delete(world.tenant, device).await.unwrap());
    assert!(
        stores
            .device_profiles
            .delete(world.tenant, profile)
            .await
            .unwrap()
    );

    let profile = stores
        .tenant_profiles
        .insert(tenant_profile("profile"))
        .await
        .unwrap()
        .id;
    let user = Tenant {
        tenant_profile_id: Some(profile),
        ..tenant("user of the profile")
    };
    let user = stores.tenants.insert(user).await.unwrap().id;
    let result = stores.tenant_profiles.delete(profile).await;
    let message = expect_error(result, StoreErrorKind::Conflict);
    assert_eq!(
        message,
        "The tenant profile referenced by the tenants cannot be deleted!"
    );
    assert!(stores.tenants.delete(user).await.unwrap());
    assert!(stores.tenant_profiles.delete(profile).await.unwrap());
}
