//! Text search.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind, UserFilter};
use fieldline_model::CustomerId;
use fieldline_model::entity::{Authority, Device, User};
use fieldline_model::page::PageLink;

use super::fixture::{World, device, refused, searched, tenant_profile};

/// Upper and lower case are the same, not only in ASCII.
pub async fn text_search_ignores_case_in_every_script(stores: &EntityStores) {
    let world = World::new(stores, "tenant").await;
    for name in ["Pump One", "ÖLPUMPE", "Насос", "ΑΝΤΛΊΑ"] {
        world.device(name).await;
    }
    for (text, name) in [
        ("pump one", "Pump One"),
        ("P o", "Pump One"),
        ("ölp", "ÖLPUMPE"),
        ("НАСОС", "Насос"),
        ("αντλί", "ΑΝΤΛΊΑ"),
    ] {
        assert_eq!(world.names(&searched(text)).await, [name], "{text}");
    }
    assert_eq!(world.names(&searched("PUMP")).await.len(), 2);
    assert_eq!(world.names(&searched("")).await.len(), 4);
    assert!(world.names(&searched("pump  one")).await.is_empty());
}

/// Devices are found by name, label, type and title of the customer, users by e-mail and names, others by name; counts
/// and pages agree.
pub async fn text_search_looks_where_it_promises(stores: &EntityStores) {
    let world = World::new(stores, "Tenant").await;
    let customer = world.customer("Customer Needle").await;
    let meters = world.profile("Type Needle").await;
    world.device("Name Needle").await;
    world
        .save(Device {
            label: Some("Label Needle".into()),
            ..world.new_device("labelled")
        })
        .await;
    world.save(device(world.tenant, &meters, "typed")).await;
    world
        .save(Device {
            customer_id: customer.id.unwrap(),
            ..world.new_device("assigned")
        })
        .await;
    world.device("hay").await;
    assert_eq!(
        world.names(&searched("needle")).await,
        ["assigned", "labelled", "Name Needle", "typed"]
    );
    assert_eq!(world.names(&searched("type needle")).await, ["typed"]);
    let page = PageLink {
        page: 1,
        page_size: 3,
        ..searched("needle")
    };
    let found = stores
        .devices
        .list(world.tenant, &Default::default(), &page)
        .await
        .unwrap();
    assert_eq!(
        (found.data.len(), found.total_elements, found.total_pages),
        (1, 4, 2)
    );

    let found = stores
        .customers
        .list(world.tenant, &searched("NEEDLE"))
        .await
        .unwrap();
    assert_eq!(found.total_elements, 1);
    let found = stores
        .device_profiles
        .list(world.tenant, &searched("needle"))
        .await
        .unwrap();
    assert_eq!(found.total_elements, 1);
    assert_eq!(
        stores
            .tenants
            .list(&searched("tEnAn"))
            .await
            .unwrap()
            .total_elements,
        1
    );
    stores
        .tenant_profiles
        .save(tenant_profile("Needle"), true)
        .await
        .unwrap();
    assert_eq!(
        stores
            .tenant_profiles
            .list(&searched("eedl"))
            .await
            .unwrap()
            .total_elements,
        1
    );

    let user = world
        .user("first@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    let named = User {
        first_name: Some("Jörg".into()),
        last_name: Some("Straße".into()),
        ..user
    };
    stores.users.save(named, false).await.unwrap();
    for text in ["FIRST@", "JÖRG", "straße"] {
        let found = stores
            .users
            .list(UserFilter::OfTenant(world.tenant), &searched(text))
            .await
            .unwrap();
        assert_eq!(found.total_elements, 1, "{text}");
    }
}

/// The characters that SQL patterns are made of stand for themselves.
pub async fn wildcards_in_a_text_search_are_plain_characters(stores: &EntityStores) {
    let world = World::new(stores, "tenant").await;
    for name in ["100%", "a_b", "a\\b", "axb"] {
        world.device(name).await;
    }
    assert_eq!(world.names(&searched("%")).await, ["100%"]);
    assert_eq!(world.names(&searched("a_b")).await, ["a_b"]);
    assert_eq!(world.names(&searched("a\\b")).await, ["a\\b"]);
    assert_eq!(world.names(&searched("\\")).await, ["a\\b"]);
    let endless = searched(&"x".repeat(1_000_000));
    let result = stores
        .devices
        .list(world.tenant, &Default::default(), &endless)
        .await;
    refused(result, StoreErrorKind::Invalid);
}
