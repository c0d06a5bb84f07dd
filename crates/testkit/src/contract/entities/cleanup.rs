//! What is noted of entities that go.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{CleanupPass, DeviceFilter, EntityStores, ImportRow, StoreErrorKind};
use fieldline_model::entity::{Authority, Device};
use fieldline_model::page::PageLink;
use fieldline_model::{CustomerId, EntityId, EntityKey};

use super::fixture::{EntityFixture, NOW, expect_error, token};

async fn due(stores: &EntityStores, pass: CleanupPass, now_ms: i64) -> Vec<EntityKey> {
    let mut due = stores.housekeeper.due(pass, now_ms, 100).await.unwrap();
    due.sort_unstable();
    due
}

/// What goes is noted with it, users with their customer; what stays is not, nor what is not there.
pub async fn what_goes_is_noted_as_left(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let tenant = world.tenant;
    let of = |entity: EntityId| EntityKey { tenant, entity };
    let customer = world.customer("customer").await.id;
    let user = world.user("u@x.org", Authority::CustomerUser, customer).await.id;
    let admin = world
        .user("a@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await
        .id;
    let device = Device {
        customer_id: customer,
        ..world.new_device("device")
    };
    let device = world.save(device).await.id;
    let profile = world.profile.id;
    expect_error(
        stores.device_profiles.delete(tenant, profile).await,
        StoreErrorKind::Conflict,
    );
    assert!(!stores.devices.delete(tenant, Default::default()).await.unwrap());
    assert_eq!(due(stores, CleanupPass::First, NOW).await, []);
    assert_eq!(stores.housekeeper.waiting().await.unwrap(), 0);

    assert!(stores.customers.delete(tenant, customer).await.unwrap());
    let mut noted = vec![of(customer.into()), of(user.into())];
    noted.sort_unstable();
    assert_eq!(due(stores, CleanupPass::First, NOW).await, noted);
    assert!(stores.users.delete(tenant, admin).await.unwrap());
    assert!(stores.devices.delete(tenant, device).await.unwrap());
    assert!(stores.device_profiles.delete(tenant, profile).await.unwrap());
    noted.extend([of(admin.into()), of(device.into()), of(profile.into())]);
    noted.sort_unstable();
    assert_eq!(due(stores, CleanupPass::First, NOW).await, noted);
    assert_eq!(stores.housekeeper.waiting().await.unwrap(), 5);

    assert!(stores.tenants.delete(tenant).await.unwrap());
    assert!(!stores.tenants.delete(tenant).await.unwrap());
    let whole = of(tenant.into());
    assert!(due(stores, CleanupPass::First, NOW).await.contains(&whole));

    let leftovers = &stores.housekeeper;
    leftovers.forget(&noted).await.unwrap();
    assert_eq!(due(stores, CleanupPass::First, NOW).await, [whole]);
    leftovers
        .put_off(&[whole], CleanupPass::First, NOW + 2)
        .await
        .unwrap();
    assert_eq!(due(stores, CleanupPass::First, NOW + 1).await, []);
    assert_eq!(due(stores, CleanupPass::First, NOW + 2).await, [whole]);
    leftovers
        .put_off(&[whole], CleanupPass::Last, NOW + 5)
        .await
        .unwrap();
    assert_eq!(leftovers.waiting().await.unwrap(), 0);
    assert_eq!(due(stores, CleanupPass::First, NOW + 9).await, []);
    assert_eq!(due(stores, CleanupPass::Last, NOW + 4).await, []);
    assert_eq!(due(stores, CleanupPass::Last, NOW + 5).await, [whole]);
    leftovers.note(&[whole]).await.unwrap();
    assert_eq!(
        due(stores, CleanupPass::First, 0).await,
        [whole],
        "it begins anew"
    );
}

/// A tenant or a customer with more devices than go in one statement goes whole, and nobody else's do.
pub async fn a_tenant_with_many_rows_goes_whole(stores: &EntityStores) {
    const MANY: u64 = 1_203;
    let doomed = EntityFixture::new(stores, "doomed").await;
    let spared = EntityFixture::new(stores, "spared").await;
    let mut customers = Vec::new();
    for world in [&doomed, &spared] {
        let customer = world.customer("customer").await.id;
        let rows = (0..MANY).map(|n| {
            let device = Device {
                customer_id: customer,
                ..world.new_device(&format!("device {n}"))
            };
            ImportRow {
                along: Some(token(&device, &format!("{} {n}", world.tenant))),
                entity: device,
                create: true,
            }
        });
        let stored = stores.devices.import(rows.collect(), &()).await.unwrap();
        assert!(stored.iter().all(Result::is_ok));
        customers.push(customer);
    }
    assert!(stores.tenants.delete(doomed.tenant).await.unwrap());
    assert_eq!(stores.devices.count(doomed.tenant).await.unwrap(), 0);
    assert_eq!(stores.customers.count(doomed.tenant).await.unwrap(), 0);
    assert_eq!(stores.devices.count(spared.tenant).await.unwrap(), MANY);
    let of_customer = DeviceFilter {
        customer: customers.pop(),
        ..DeviceFilter::default()
    };
    let assigned = async || {
        let page = stores
            .devices
            .list(spared.tenant, &of_customer, &PageLink::first(1))
            .await;
        page.unwrap().total_elements
    };
    assert_eq!(assigned().await, MANY);
    let customer = of_customer.customer.unwrap();
    assert!(stores.customers.delete(spared.tenant, customer).await.unwrap());
    assert_eq!(assigned().await, 0);
    assert_eq!(stores.devices.count(spared.tenant).await.unwrap(), MANY);
}
