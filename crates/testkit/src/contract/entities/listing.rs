//! Pages and their order.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{DeviceFilter, EntityStores, StoreErrorKind, UserFilter};
use fieldline_model::CustomerId;
use fieldline_model::entity::{
    Authority, Contact, Customer, Device, DeviceProfile, Tenant, TenantProfile, TransportType, User,
};
use fieldline_model::page::{PageLink, SortOrder};

use super::fixture::{
    EntityFixture, NOW, customer, device, device_profile, expect_error, sorted, tenant, tenant_profile, user,
};

/// Pages add up to the list, also where the sort property is the same for all; totals are right on every page.
pub async fn pages_cover_a_list_without_gaps_or_repeats(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    for index in 0..25 {
        world.device(&format!("device {index:02}")).await;
    }
    for property in ["createdTime", "label", "type", "customerTitle", "active", "name"] {
        for order in [SortOrder::Asc, SortOrder::Desc] {
            let mut names = Vec::new();
            for page in 0..4 {
                let link = PageLink {
                    page,
                    page_size: 10,
                    ..sorted(property, order)
                };
                let found = stores
                    .devices
                    .list(world.tenant, &Default::default(), &link)
                    .await
                    .unwrap();
                assert_eq!((found.total_elements, found.total_pages), (25, 3));
                assert_eq!(found.has_next, page < 2);
                assert_eq!(found.data.len(), [10, 10, 5, 0][page as usize]);
                names.extend(found.data.into_iter().map(|info| info.device.name));
            }
            names.sort();
            names.dedup();
            assert_eq!(names.len(), 25, "by {property}");
        }
    }
    let far = PageLink {
        page: u32::MAX,
        page_size: u32::MAX,
        ..PageLink::default()
    };
    let found = stores
        .devices
        .list(world.tenant, &Default::default(), &far)
        .await
        .unwrap();
    assert!(found.data.is_empty() && !found.has_next);
}

/// Without a sort property lists begin with the newest.
pub async fn the_newest_come_first_where_no_order_is_asked_for(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    for (name, created_time) in [("b", 2), ("c", 3), ("a", 1)] {
        world
            .save(Device {
                created_time,
                ..world.new_device(name)
            })
            .await;
    }
    assert_eq!(world.names(&PageLink::first(2)).await, ["c", "b"]);
    assert_eq!(
        world.names(&sorted("createdTime", SortOrder::Asc)).await,
        ["a", "b", "c"]
    );
}

/// Checks a list of three entities named A, b and C: each property puts them in this order or in the opposite one.
macro_rules! sorts {
    ($list:expr, $name:expr, $($property:literal $ascending:expr),* $(,)?) => {$(
        for order in [SortOrder::Asc, SortOrder::Desc] {
            let link = sorted($property, order);
            let found: Vec<String> = $list(link).await.unwrap().data.iter().map($name).collect();
            let mut expected: Vec<&str> = $ascending.to_vec();
            if order == SortOrder::Desc {
                expected.reverse();
            }
            assert_eq!(found, expected, "by {} {order:?}", $property);
        }
    )*};
}

const UP: [&str; 3] = ["A", "b", "C"];
const DOWN: [&str; 3] = ["C", "b", "A"];

/// Three values that sort as their ranks do, the first of them absent.
fn absent_first(rank: usize) -> Option<String> {
    (rank > 0).then(|| UP[rank].into())
}

fn ranked_contact(rank: usize) -> Contact {
    Contact {
        country: Some(UP[rank].into()),
        city: Some(DOWN[rank].into()),
        email: absent_first(rank),
        ..Contact::default()
    }
}

/// Every property that lists of tenants, their profiles, customers and users promise to sort by sorts them, in both
/// directions, regardless of case, absent values first.
pub async fn owners_are_sorted_by_every_promised_property(stores: &EntityStores) {
    let of = EntityFixture::new(stores, "A").await.tenant;
    for rank in [1, 2] {
        let tenant = Tenant {
            created_time: NOW - rank as i64,
            region: Some(UP[rank].into()),
            contact: ranked_contact(rank),
            ..tenant(UP[rank])
        };
        stores.tenants.insert(tenant).await.unwrap();
    }
    // The tenant A has no contact.
    sorts!(async |link| stores.tenants.list(&link).await, |t| t.title.clone(),
        "createdTime" DOWN, "title" UP, "name" UP, "email" UP, "region" UP, "country" UP, "city" ["A", "C", "b"]);

    for rank in [2, 0, 1] {
        let profile = TenantProfile {
            created_time: NOW + rank as i64,
            description: Some(DOWN[rank].into()),
            ..tenant_profile(UP[rank])
        };
        let profile = stores.tenant_profiles.insert(profile).await.unwrap();
        if rank == 2 {
            stores.tenant_profiles.set_default(profile.id).await.unwrap();
        }
        let customer = Customer {
            created_time: NOW + rank as i64,
            contact: ranked_contact(rank),
            ..customer(of, UP[rank])
        };
        stores.customers.insert(customer).await.unwrap();
        let user = User {
            created_time: NOW - rank as i64,
            authority: Authority::TenantAdmin,
            first_name: absent_first(rank),
            last_name: Some(DOWN[rank].into()),
            ..user(of, UP[rank])
        };
        stores.users.insert(user).await.unwrap();
    }
    sorts!(async |link| stores.tenant_profiles.list(&link).await, |p| p.name.clone(),
        "createdTime" UP, "name" UP, "description" DOWN);
    let by_default = sorted("isDefault", SortOrder::Desc);
    let found = stores.tenant_profiles.list(&by_default).await.unwrap();
    assert_eq!(found.data[0].name, "C");
    sorts!(async |link| stores.customers.list(of, &link).await, |c| c.title.clone(),
        "createdTime" UP, "title" UP, "name" UP, "email" UP, "country" UP, "city" DOWN);
    sorts!(async |link| stores.users.list(UserFilter::OfTenant(of), &link).await, |u| u.email.clone(),
        "createdTime" DOWN, "email" UP, "name" UP, "firstName" UP, "lastName" DOWN);
}

/// The same of devices and their profiles.
pub async fn devices_are_sorted_by_every_promised_property(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let of = world.tenant;
    assert!(stores.device_profiles.delete(of, world.profile.id).await.unwrap());
    for rank in [2, 0, 1] {
        let profile = DeviceProfile {
            created_time: NOW + rank as i64,
            description: absent_first(rank),
            profile_type: Some(DOWN[rank].into()),
            transport_type: [TransportType::Coap, TransportType::Mqtt, TransportType::Snmp][rank],
            is_default: rank == 2,
            ..device_profile(of, UP[rank])
        };
        let profile = stores.device_profiles.insert(profile).await.unwrap();
        let customer = world.customer(UP[rank]).await.id;
        let device = Device {
            created_time: NOW - rank as i64,
            label: absent_first(rank),
            customer_id: if rank == 0 { CustomerId::NULL } else { customer },
            ..device(of, &profile, UP[rank])
        };
        let id = world.save(device).await.id;
        stores.devices.set_active(&[(id, rank == 2)]).await.unwrap();
    }
    sorts!(async |link| stores.device_profiles.list(of, &link).await, |p| p.name.clone(),
        "createdTime" UP, "name" UP, "type" DOWN, "transportType" UP, "description" UP);
    let by_default = sorted("isDefault", SortOrder::Desc);
    let found = stores.device_profiles.list(of, &by_default).await.unwrap();
    assert_eq!(found.data[0].name, "C");
    sorts!(async |link| stores.devices.list(of, &DeviceFilter::default(), &link).await, |d| d.device.name.clone(),
        "createdTime" DOWN, "name" UP, "type" UP, "label" UP, "deviceProfileName" UP, "customerTitle" UP);
    assert_eq!(world.names(&sorted("active", SortOrder::Desc)).await[0], "C");
}

/// A sort property that a list does not know is the caller's mistake, and the message says what is known.
pub async fn unknown_sort_properties_are_refused_by_name(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    for property in ["colour", "", "name; DROP TABLE device", "id"] {
        let link = sorted(property, SortOrder::Asc);
        let result = stores
            .devices
            .list(world.tenant, &Default::default(), &link)
            .await;
        let message = expect_error(result, StoreErrorKind::Invalid);
        assert!(
            message.contains(property) && message.contains("createdTime"),
            "{message}"
        );
        expect_error(stores.tenants.list(&link).await, StoreErrorKind::Invalid);
        expect_error(
            stores.users.list(UserFilter::SysAdmins, &link).await,
            StoreErrorKind::Invalid,
        );
    }
}
