//! Text search.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, ImportRow, StoreErrorKind, UserFilter};
use fieldline_model::CustomerId;
use fieldline_model::entity::{Authority, Device, DeviceInfo, User};
use fieldline_model::page::{PageLink, SortOrder};

use super::fixture::{EntityFixture, NOW, device, expect_error, searched, sorted, tenant_profile};

/// Upper and lower case are the same, not only in ASCII.
pub async fn text_search_ignores_case_in_every_script(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
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
    let world = EntityFixture::new(stores, "Tenant").await;
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
            customer_id: customer.id,
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
        .insert(tenant_profile("Needle"))
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
    stores.users.update(named).await.unwrap();
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
    let world = EntityFixture::new(stores, "tenant").await;
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
    expect_error(result, StoreErrorKind::Invalid);
}

/// Many enough that a search for what most have, and one for what few have, may be answered in different ways.
const MANY: usize = 1_150;

/// Whatever is looked for, in whatever order and on whatever page: what is found is the list without what does not contain the
/// text, also after names have changed and entities have gone.
pub async fn a_text_search_is_the_list_without_what_does_not_match(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let other = EntityFixture::new(stores, "other").await;
    other.device("Pump 0007").await;
    let valves = world.profile("Kugelhähne").await;
    let customer = world.customer("Stadtwerke Köln").await.id;
    let new = |number: usize| Device {
        label: number
            .is_multiple_of(3)
            .then(|| format!("Straße \"{}\" 100%", number % 7)),
        customer_id: if number % 100 == 5 {
            customer
        } else {
            CustomerId::NULL
        },
        created_time: (number * 7_919 % 1_009) as i64,
        device_profile_id: Some(if number.is_multiple_of(40) {
            valves.id
        } else {
            world.profile.id
        }),
        ..world.new_device(&format!("Pump {number:04}_ÄÖ"))
    };
    let rows = (0..MANY).map(|number| ImportRow {
        entity: new(number),
        create: true,
        along: None,
    });
    let stored: Vec<Device> = stores
        .devices
        .import(rows.collect(), &())
        .await
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect();
    agrees(&world).await;

    // The last one made goes, and its place in an index may be taken by the next one.
    for number in [0, 7, 33, MANY - 1] {
        let id = stored[number].id;
        assert!(stores.devices.delete(world.tenant, id).await.unwrap());
    }
    for number in [1, 3, 8, 900] {
        let renamed = Device {
            name: format!("Löschpumpe {number}"),
            label: (number != 3).then(|| "Pump 0003".to_owned()),
            version: None,
            ..stored[number].clone()
        };
        stores.devices.update(renamed).await.unwrap();
    }
    world.device("Pump 1149_zweite").await;
    agrees(&world).await;
    assert_eq!(world.names(&searched("1149_ä")).await, [""; 0]);
    assert_eq!(world.names(&searched("löschpumpe 90")).await, ["Löschpumpe 900"]);
    assert_eq!(other.names(&searched("pump 0007")).await, ["Pump 0007"]);

    // A device that goes to another tenant is found there alone.
    let given = Device {
        tenant_id: other.tenant,
        customer_id: CustomerId::NULL,
        device_profile_id: Some(other.profile.id),
        ..stored[500].clone()
    };
    stores
        .device_transfers
        .transfer(world.tenant, given, NOW)
        .await
        .unwrap();
    assert_eq!(other.names(&searched("pump 0500")).await, ["Pump 0500_ÄÖ"]);
    agrees(&world).await;

    assert!(stores.tenants.delete(world.tenant).await.unwrap());
    assert!(world.names(&searched("pump")).await.is_empty());
    assert_eq!(other.names(&searched("pump 0007")).await, ["Pump 0007"]);
}

/// Compares searches of devices with their lists.
async fn agrees(world: &EntityFixture<'_>) {
    let texts = [
        "p",
        "00",
        "00_",
        "pump",
        "PUMP 01",
        "pump 0123_äö",
        "ump 1",
        "äö",
        "_ÄÖ",
        "straße",
        "\"3\"",
        "0%",
        "100%",
        "%00%",
        "kugelh",
        "köl",
        "stadtwerke köln",
        "pump 0005",
        "löschpumpe",
        "no such device at all",
        "\n",
        "0\nstr",
        " ",
        "   ",
    ];
    for (text, order) in texts
        .iter()
        .zip([SortOrder::Asc, SortOrder::Desc].into_iter().cycle())
    {
        let property = match text.len() % 3 {
            0 => "createdTime",
            1 => "name",
            _ => "label",
        };
        let all = PageLink {
            page_size: 2_000,
            ..sorted(property, order)
        };
        let expected: Vec<DeviceInfo> = list(world, &all)
            .await
            .0
            .into_iter()
            .filter(|info| contains(info, &text.to_lowercase()))
            .collect();
        for (page, page_size) in [(0, 2_000), (0, 10), (1, 10), (0, 1), (200, 10)] {
            let link = PageLink {
                text_search: Some((*text).to_owned()),
                page,
                page_size,
                ..all.clone()
            };
            let (found, total) = list(world, &link).await;
            assert_eq!(total, expected.len() as u64, "{text:?}");
            let from = expected.len().min((page * page_size) as usize);
            let to = expected.len().min(from + page_size as usize);
            let names = |found: &[DeviceInfo]| -> Vec<String> {
                found.iter().map(|info| info.device.name.clone()).collect()
            };
            assert_eq!(
                names(&found),
                names(&expected[from..to]),
                "{text:?} by {property} {page}/{page_size}"
            );
        }
    }
}

async fn list(world: &EntityFixture<'_>, link: &PageLink) -> (Vec<DeviceInfo>, u64) {
    let found = world
        .stores
        .devices
        .list(world.tenant, &Default::default(), link)
        .await
        .unwrap();
    (found.data, found.total_elements)
}

fn contains(info: &DeviceInfo, text: &str) -> bool {
    let own = [Some(info.device.name.as_str()), info.device.label.as_deref()];
    let own: Vec<&str> = own.into_iter().flatten().collect();
    [
        own.join("\n"),
        info.device_profile_name.clone(),
        info.customer_title.clone().unwrap_or_default(),
    ]
    .iter()
    .any(|searched| searched.to_lowercase().contains(text))
}
