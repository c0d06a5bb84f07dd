//! Pages and their order.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind, UserFilter};
use fieldline_model::entity::{
    Authority, Contact, Customer, Device, DeviceProfile, Tenant, TenantProfile, TransportType, User,
};
use fieldline_model::page::{PageLink, SortOrder};

use super::fixture::{
    NOW, World, customer, device, device_profile, refused, sorted, tenant, tenant_profile, user,
};

/// Pages add up to the list, also where the sort property is the same for all; totals are right on every page.
pub async fn pages_cover_a_list_without_gaps_or_repeats(stores: &EntityStores) {
    let world = World::new(stores, "tenant").await;
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
    let world = World::new(stores, "tenant").await;
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

/// Every property that a list promises to sort by sorts it, in both directions, regardless of case, absent values first.
pub async fn lists_are_sorted_by_every_property_they_promise(stores: &EntityStores) {
    let world = World::new(stores, "A").await;
    let of = world.tenant;
    let contact = |rank: usize| Contact {
        country: Some(["A", "b", "C"][rank].into()),
        city: Some(["A", "b", "C"][2 - rank].into()),
        email: [None, Some("b@x.org".into()), Some("C@x.org".into())][rank].clone(),
        ..Contact::default()
    };
    let letter = |rank: usize| ["A", "b", "C"][rank];

    // A list of three entities named A, b and C; each property puts them in this or the opposite order.
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
    let up = ["A", "b", "C"];
    let down = ["C", "b", "A"];

    for rank in [1, 2] {
        let tenant = Tenant {
            created_time: NOW - rank as i64,
            region: Some(letter(rank).into()),
            contact: contact(rank),
            ..tenant(letter(rank))
        };
        stores.tenants.save(tenant, true).await.unwrap();
    }
    sorts!(async |link| stores.tenants.list(&link).await, |t| t.title.clone(),
        "createdTime" down, "title" up, "name" up, "email" up, "region" up, "country" up);

    for rank in [2, 0, 1] {
        let profile = TenantProfile {
            created_time: NOW + rank as i64,
            description: Some(letter(2 - rank).into()),
            ..tenant_profile(letter(rank))
        };
        stores.tenant_profiles.save(profile, true).await.unwrap();
    }
    sorts!(async |link| stores.tenant_profiles.list(&link).await, |p| p.name.clone(),
        "createdTime" up, "name" up, "description" down);

    let mut customers = Vec::new();
    for rank in [2, 0, 1] {
        let customer = Customer {
            created_time: NOW + rank as i64,
            contact: contact(rank),
            ..customer(of, letter(rank))
        };
        customers.push((rank, stores.customers.save(customer, true).await.unwrap()));
    }
    sorts!(async |link| stores.customers.list(of, &link).await, |c| c.title.clone(),
        "createdTime" up, "title" up, "name" up, "email" up, "country" up, "city" down);

    for rank in [2, 0, 1] {
        let user = User {
            created_time: NOW - rank as i64,
            authority: Authority::TenantAdmin,
            first_name: [None, Some("b".into()), Some("C".into())][rank].clone(),
            last_name: Some(letter(2 - rank).into()),
            ..user(of, letter(rank))
        };
        stores.users.save(user, true).await.unwrap();
    }
    sorts!(async |link| stores.users.list(UserFilter::OfTenant(of), &link).await, |u| u.email.clone(),
        "createdTime" down, "email" up, "name" up, "firstName" up, "lastName" down);

    let default = world.profile.id.unwrap();
    let mut profiles = Vec::new();
    for rank in [2, 0, 1] {
        let profile = DeviceProfile {
            created_time: NOW + rank as i64,
            description: Some(letter(rank).into()),
            profile_type: Some(letter(2 - rank).into()),
            transport_type: [TransportType::Coap, TransportType::Mqtt, TransportType::Snmp][rank],
            ..device_profile(of, letter(rank))
        };
        profiles.push((rank, stores.device_profiles.save(profile, true).await.unwrap()));
    }
    assert!(stores.device_profiles.delete(of, default).await.unwrap());
    sorts!(async |link| stores.device_profiles.list(of, &link).await, |p| p.name.clone(),
        "createdTime" up, "name" up, "type" down, "transportType" up, "description" up);
    stores
        .device_profiles
        .set_default(of, profiles[0].1.id.unwrap())
        .await
        .unwrap();
    let by_default = stores
        .device_profiles
        .list(of, &sorted("isDefault", SortOrder::Desc))
        .await
        .unwrap();
    assert!(by_default.data[0].is_default);

    for ((rank, profile), (customer_rank, customer)) in profiles.iter().zip(&customers) {
        assert_eq!(rank, customer_rank);
        let device = Device {
            created_time: NOW - *rank as i64,
            label: [None, Some("b".into()), Some("C".into())][*rank].clone(),
            customer_id: [Default::default(), customer.id.unwrap(), customer.id.unwrap()][*rank],
            ..device(of, profile, letter(*rank))
        };
        let saved = stores.devices.save(device, true).await.unwrap();
        stores
            .devices
            .set_active(&[(saved.id.unwrap(), *rank == 2)])
            .await
            .unwrap();
    }
    sorts!(async |link| stores.devices.list(of, &Default::default(), &link).await, |d| d.device.name.clone(),
        "createdTime" down, "name" up, "type" up, "label" up, "deviceProfileName" up, "customerTitle" up);
    assert_eq!(world.names(&sorted("active", SortOrder::Desc)).await[0], "C");
}

/// A sort property that a list does not know is the caller's mistake, and the message says what is known.
pub async fn unknown_sort_properties_are_refused_by_name(stores: &EntityStores) {
    let world = World::new(stores, "tenant").await;
    for property in ["colour", "", "name; DROP TABLE device", "id"] {
        let link = sorted(property, SortOrder::Asc);
        let result = stores
            .devices
            .list(world.tenant, &Default::default(), &link)
            .await;
        let message = refused(result, StoreErrorKind::Invalid);
        assert!(
            message.contains(property) && message.contains("createdTime"),
            "{message}"
        );
        refused(stores.tenants.list(&link).await, StoreErrorKind::Invalid);
        refused(
            stores.users.list(UserFilter::SysAdmins, &link).await,
            StoreErrorKind::Invalid,
        );
    }
}
