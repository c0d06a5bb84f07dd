//! What is saved, reads back; versions, unique values and references are guarded.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{EntityStores, StoreErrorKind};
use fieldline_model::entity::{
    Authority, Customer, Device, DeviceProfile, RuleChain, Tenant, TransportType, User,
};
use fieldline_model::{
    CustomerId, DeviceId, DeviceProfileId, EntityId, EntityType, RuleChainId, TenantId, TenantProfileId,
    UserId, new_uuid,
};
use serde_json::json;

use super::fixture::{
    EntityFixture, contact, customer, device, device_profile, expect_error, searched, tenant, tenant_profile,
    token, user,
};

/// Every field of tenants, customers, users and tenant profiles is returned by `save` and by `get` as it was given.
pub async fn owners_read_back_whole(stores: &EntityStores) {
    let profile = tenant_profile("Größe XL");
    let saved = stores.tenant_profiles.insert(profile.clone()).await.unwrap();
    assert_eq!(saved, with_version(profile, |p| &mut p.version));
    assert_eq!(
        stores.tenant_profiles.get(saved.id).await.unwrap(),
        Some(saved.clone())
    );

    let given = Tenant {
        region: Some("Global".into()),
        tenant_profile_id: Some(saved.id),
        contact: contact(),
        additional_info: Some(json!({"description": "δ", "homeDashboardId": null, "deep": [1, {"x": 0.5}]})),
        ..tenant("Großkunde")
    };
    let saved = stores.tenants.insert(given.clone()).await.unwrap();
    assert_eq!(saved, with_version(given, |t| &mut t.version));
    let tenant = saved.id;
    assert_eq!(stores.tenants.get(tenant).await.unwrap(), Some(saved));

    let given = Customer {
        contact: contact(),
        additional_info: Some(json!({"isPublic": true})),
        external_id: Some(CustomerId::new()),
        ..customer(tenant, "Kunde")
    };
    let saved = stores.customers.insert(given.clone()).await.unwrap();
    assert_eq!(saved, with_version(given, |c| &mut c.version));
    let customer = saved.id;
    assert_eq!(
        stores.customers.get(tenant, customer).await.unwrap(),
        Some(saved.clone())
    );
    assert_eq!(
        stores.customers.by_title(tenant, "Kunde").await.unwrap(),
        Some(saved)
    );

    let given = User {
        customer_id: customer,
        authority: Authority::CustomerUser,
        first_name: Some("Ångström".into()),
        last_name: Some("O'Neill".into()),
        phone: Some("1".into()),
        additional_info: Some(json!({"lang": "de_DE"})),
        ..user(tenant, "Jane.Doe@Example.org")
    };
    let saved = stores.users.insert(given.clone()).await.unwrap();
    assert_eq!(saved, with_version(given, |u| &mut u.version));
    assert_eq!(
        stores.users.get(tenant, saved.id).await.unwrap(),
        Some(saved.clone())
    );
    assert_eq!(stores.users.by_id(saved.id).await.unwrap(), Some(saved));
}

/// Every field of devices and their profiles is returned by `save` and by `get` as it was given.
pub async fn devices_read_back_whole(stores: &EntityStores) {
    let tenant = EntityFixture::new(stores, "tenant").await.tenant;
    let public = Customer {
        additional_info: Some(json!({"isPublic": true})),
        ..customer(tenant, "Kunde")
    };
    let customer = stores.customers.insert(public).await.unwrap().id;
    let chain = RuleChain {
        id: RuleChainId::new(),
        tenant_id: tenant,
        ..RuleChain::default()
    };
    let chain = stores.rule_chains.insert(chain).await.unwrap();
    let given = DeviceProfile {
        default_rule_chain_id: Some(chain.id.into()),
        ..full_device_profile(tenant)
    };
    let saved = stores.device_profiles.insert(given.clone()).await.unwrap();
    assert_eq!(saved, with_version(given, |p| &mut p.version));
    assert_eq!(
        stores.device_profiles.get(tenant, saved.id).await.unwrap(),
        Some(saved.clone())
    );
    assert_eq!(
        stores.device_profiles.by_name(tenant, "Zähler").await.unwrap(),
        Some(saved.clone())
    );
    assert_eq!(
        stores.device_profiles.default_profile(tenant).await.unwrap(),
        Some(saved.clone())
    );

    let given = Device {
        customer_id: customer,
        label: Some("Keller, links".into()),
        device_data: json!({"configuration": {"type": "DEFAULT"}, "transportConfiguration": {"type": "MQTT"}}),
        external_id: Some(DeviceId::new()),
        additional_info: Some(json!({"gateway": true, "description": "\"quoted\""})),
        ..device(tenant, &saved, "Zähler 1")
    };
    let saved = stores.devices.insert(given.clone()).await.unwrap();
    assert_eq!(saved, with_version(given, |d| &mut d.version));
    let id = saved.id;
    assert_eq!(stores.devices.get(tenant, id).await.unwrap(), Some(saved.clone()));
    assert_eq!(
        stores.devices.by_name(tenant, "Zähler 1").await.unwrap(),
        Some(saved.clone())
    );
    assert_eq!(
        stores
            .devices
            .by_ids(tenant, &[id, id, DeviceId::new()])
            .await
            .unwrap(),
        std::slice::from_ref(&saved)
    );
    let info = stores.devices.info(tenant, id).await.unwrap().unwrap();
    assert_eq!(info.device, saved);
    assert_eq!(info.customer_title.as_deref(), Some("Kunde"));
    assert!(info.customer_is_public && !info.active);
    assert_eq!(info.device_profile_name, "Zähler");
}

/// Versions count up from 1; an update of another version than the stored one is refused, an update without version is
/// not, nor is one of what does not exist taken for an insert. Id, tenant and creation time stay.
pub async fn versions_count_up_and_guard_updates(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;

    macro_rules! guarded {
        ($store:ident, $created:expr, $field:ident, $new_id:expr) => {{
            let created = $created;
            assert_eq!(created.version, Some(1));
            let mut changed = created.clone();
            changed.$field = "changed".into();
            changed.created_time = 1;
            let second = stores.$store.update(changed.clone()).await.unwrap();
            assert_eq!(second.version, Some(2));
            assert_eq!(second.created_time, created.created_time);
            assert_eq!(second.$field, "changed");

            let message = expect_error(
                stores.$store.update(changed.clone()).await,
                StoreErrorKind::VersionConflict,
            );
            assert!(
                message.ends_with("was already changed by someone else"),
                "{message}"
            );
            changed.version = None;
            let third = stores.$store.update(changed.clone()).await.unwrap();
            assert_eq!(third.version, Some(3));

            changed.id = $new_id;
            expect_error(
                stores.$store.update(changed.clone()).await,
                StoreErrorKind::NotFound,
            );
            changed.id = Default::default();
            expect_error(
                stores.$store.update(changed.clone()).await,
                StoreErrorKind::Invalid,
            );
            expect_error(stores.$store.insert(changed).await, StoreErrorKind::Invalid);
        }};
    }

    let profile = stores
        .tenant_profiles
        .insert(tenant_profile("one"))
        .await
        .unwrap();
    guarded!(tenant_profiles, profile, name, TenantProfileId::new());
    let tenant = stores.tenants.insert(tenant("one")).await.unwrap();
    guarded!(tenants, tenant, title, TenantId::new());
    guarded!(customers, world.customer("one").await, title, CustomerId::new());
    let user = world
        .user("one@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    guarded!(users, user, email, UserId::new());
    guarded!(
        device_profiles,
        world.profile("one").await,
        name,
        DeviceProfileId::new()
    );
    guarded!(devices, world.device("one").await, name, DeviceId::new());
}

/// Optimistic locking holds between concurrent writers.
pub async fn of_many_updates_of_one_version_exactly_one_succeeds(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = world.device("contended").await;
    let attempts = (0..8).map(|attempt| {
        let devices = stores.devices.clone();
        let device = Device {
            label: Some(format!("writer {attempt}")),
            ..device.clone()
        };
        tokio::spawn(async move { devices.update(device).await })
    });
    let attempts: Vec<_> = attempts.collect();
    let mut winners = Vec::new();
    for attempt in attempts {
        match attempt.await.unwrap() {
            Ok(saved) => winners.push(saved),
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::VersionConflict, "{error}"),
        }
    }
    assert_eq!(winners.len(), 1);
    let stored = stores.devices.get(world.tenant, device.id).await.unwrap();
    assert_eq!(stored, winners.pop());
}

/// A taken name, title, e-mail address, provisioning key or credentials id is a conflict that says so in the words of
/// the API, on insert as on update, and changes nothing.
pub async fn taken_values_are_conflicts_that_say_what_is_taken(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let conflict = StoreErrorKind::Conflict;

    stores
        .tenant_profiles
        .insert(tenant_profile("taken"))
        .await
        .unwrap();
    let result = stores.tenant_profiles.insert(tenant_profile("taken")).await;
    assert_eq!(
        expect_error(result, conflict),
        "Tenant profile with such name already exists!"
    );

    let result = stores.tenants.insert(tenant("tenant")).await;
    assert_eq!(
        expect_error(result, conflict),
        "Tenant with such title already exists!"
    );

    world.customer("taken").await;
    let result = stores.customers.insert(customer(world.tenant, "taken")).await;
    assert_eq!(
        expect_error(result, conflict),
        "Customer with such title already exists!"
    );

    world
        .user("taken@x.org", Authority::TenantAdmin, CustomerId::NULL)
        .await;
    let result = stores.users.insert(user(TenantId::NULL, "Taken@X.org")).await;
    assert_eq!(
        expect_error(result, conflict),
        "User with email 'Taken@X.org' already present in database!"
    );

    let result = stores
        .device_profiles
        .insert(device_profile(world.tenant, "default"))
        .await;
    assert_eq!(
        expect_error(result, conflict),
        "Device profile with such name already exists!"
    );

    let provisioned = |name: &str| DeviceProfile {
        provision_device_key: Some("key".into()),
        ..device_profile(world.tenant, name)
    };
    stores.device_profiles.insert(provisioned("a")).await.unwrap();
    let result = stores.device_profiles.insert(provisioned("b")).await;
    assert_eq!(
        expect_error(result, conflict),
        "Device profile with such provision device key already exists!"
    );

    world.device("taken").await;
    let other = world.device("other").await;
    let result = stores.devices.insert(world.new_device("taken")).await;
    assert_eq!(
        expect_error(result, conflict),
        "Device with such name already exists!"
    );
    let renamed = Device {
        name: "taken".into(),
        ..other.clone()
    };
    let result = stores.devices.update(renamed).await;
    assert_eq!(
        expect_error(result, conflict),
        "Device with such name already exists!"
    );
    assert_eq!(
        stores.devices.get(world.tenant, other.id).await.unwrap(),
        Some(other.clone())
    );
    expect_error(stores.devices.insert(other).await, conflict);

    let first = world.new_device("first");
    stores
        .devices
        .create(first.clone(), token(&first, "secret"))
        .await
        .unwrap();
    let second = world.new_device("second");
    let result = stores
        .devices
        .create(second.clone(), token(&second, "secret"))
        .await;
    assert_eq!(
        expect_error(result, conflict),
        "Specified credentials are already registered!"
    );
}

/// Profiles, customers and tenants that do not exist cannot be referred to.
pub async fn references_to_nothing_are_refused(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let invalid = StoreErrorKind::Invalid;
    let of_no_profile = Device {
        device_profile_id: Some(DeviceProfileId::new()),
        ..world.new_device("a")
    };
    expect_error(stores.devices.insert(of_no_profile).await, invalid);
    let of_no_customer = Device {
        customer_id: CustomerId::new(),
        ..world.new_device("a")
    };
    expect_error(stores.devices.insert(of_no_customer).await, invalid);
    expect_error(
        stores.customers.insert(customer(TenantId::new(), "a")).await,
        invalid,
    );
    expect_error(
        stores.users.insert(user(TenantId::new(), "a@x.org")).await,
        invalid,
    );
    let of_no_profile = Tenant {
        tenant_profile_id: Some(TenantProfileId::new()),
        ..tenant("a")
    };
    expect_error(stores.tenants.insert(of_no_profile).await, invalid);
}

/// Texts are data, whatever they look like; what a database cannot hold is refused as the caller's mistake.
pub async fn hostile_texts_are_stored_as_they_are_or_refused(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    for name in [
        "'; DROP TABLE device; --",
        "$1",
        "?",
        "\\",
        "\u{1F600}\u{0301}\r\n",
        " ",
        "\u{feff}",
        "%",
    ] {
        let saved = world.device(name).await;
        assert_eq!(saved.name, name);
        assert_eq!(
            stores.devices.by_name(world.tenant, name).await.unwrap(),
            Some(saved)
        );
        let page = stores
            .devices
            .list(world.tenant, &Default::default(), &searched(name))
            .await;
        assert!(
            page.unwrap().data.iter().any(|info| info.device.name == name),
            "{name:?}"
        );
    }
    let with_null = Device {
        additional_info: Some(json!({"description": "a\0b"})),
        ..world.new_device("null in JSON")
    };
    let saved = world.save(with_null.clone()).await;
    assert_eq!(saved.additional_info, with_null.additional_info);

    let invalid = StoreErrorKind::Invalid;
    expect_error(stores.devices.insert(world.new_device("a\0b")).await, invalid);
    assert!(
        stores
            .devices
            .by_name(world.tenant, "a\0b")
            .await
            .unwrap()
            .is_none()
    );
    assert!(stores.users.by_email("a\0b").await.unwrap().is_none());
    assert!(world.names(&searched("\0")).await.is_empty());
    let longest = "\u{1F600}".repeat(255);
    world.device(&longest).await;
    let message = expect_error(
        stores.devices.insert(world.new_device(&"x".repeat(256))).await,
        invalid,
    );
    assert!(
        message.contains("name length") && message.contains("255"),
        "{message}"
    );
    let found = stores
        .device_credentials
        .find(Default::default(), &"x".repeat(100_000))
        .await;
    assert!(found.unwrap().is_none());
}

/// There is at most one default profile: of tenants in the installation, of devices in each tenant.
pub async fn only_one_profile_is_the_default(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let other = EntityFixture::new(stores, "other").await;
    let profiles = &stores.device_profiles;
    assert_eq!(profiles.default_profile(world.tenant).await.unwrap(), None);
    let (first, second) = (world.profile.id, world.profile("second").await.id);
    let foreign = other.profile.id;
    assert!(profiles.set_default(other.tenant, foreign).await.unwrap());
    for chosen in [first, second, second, first] {
        assert!(profiles.set_default(world.tenant, chosen).await.unwrap());
        let default = profiles.default_profile(world.tenant).await.unwrap().unwrap();
        assert_eq!(default.id, chosen);
        assert!(default.is_default);
    }
    assert!(!profiles.set_default(world.tenant, foreign).await.unwrap());
    assert!(
        !profiles
            .set_default(world.tenant, DeviceProfileId::new())
            .await
            .unwrap()
    );
    assert_eq!(
        profiles.default_profile(world.tenant).await.unwrap().unwrap().id,
        first
    );
    // Whoever has read it before it became the default takes that from it neither by saving nor by deleting.
    let mut stale = profiles.get(world.tenant, first).await.unwrap().unwrap();
    stale.is_default = false;
    stale.version = None;
    stale.description = Some("new".to_owned());
    let saved = profiles.update(stale).await.unwrap();
    assert!(saved.is_default && saved.description.as_deref() == Some("new"));
    expect_error(
        profiles.delete(world.tenant, first).await,
        StoreErrorKind::Conflict,
    );
    assert!(profiles.delete(world.tenant, second).await.unwrap());
    assert_eq!(
        profiles.default_profile(other.tenant).await.unwrap().unwrap().id,
        foreign
    );
    let rival = DeviceProfile {
        is_default: true,
        ..device_profile(world.tenant, "rival")
    };
    expect_error(profiles.insert(rival).await, StoreErrorKind::Conflict);

    let profiles = &stores.tenant_profiles;
    assert_eq!(profiles.default_profile().await.unwrap(), None);
    let first = profiles.insert(tenant_profile("first")).await.unwrap().id;
    let second = profiles.insert(tenant_profile("second")).await.unwrap().id;
    for chosen in [first, second] {
        assert!(profiles.set_default(chosen).await.unwrap());
        assert_eq!(profiles.default_profile().await.unwrap().unwrap().id, chosen);
    }
    assert!(!profiles.set_default(TenantProfileId::new()).await.unwrap());
    assert_eq!(profiles.default_profile().await.unwrap().unwrap().id, second);
    assert!(!profiles.get(first).await.unwrap().unwrap().is_default);
}

fn full_device_profile(tenant: TenantId) -> DeviceProfile {
    DeviceProfile {
        description: Some("misst".into()),
        image: Some("tb-image;/api/images/x".into()),
        is_default: true,
        profile_type: Some("DEFAULT".into()),
        transport_type: TransportType::Mqtt,
        provision_type: Some("ALLOW_CREATE_NEW_DEVICES".into()),
        default_dashboard_id: Some(EntityId::new(EntityType::Dashboard, new_uuid())),
        default_queue_name: Some("HighPriority".into()),
        provision_device_key: Some("provision-key".into()),
        default_edge_rule_chain_id: Some(EntityId::new(EntityType::RuleChain, new_uuid())),
        external_id: Some(DeviceProfileId::new()),
        profile_data: json!({"alarms": [{"alarmType": "Heiß", "createRules": {}}], "configuration": {"x": 1e300}}),
        ..device_profile(tenant, "Zähler")
    }
}

/// The entity as it is stored first.
fn with_version<T>(mut entity: T, version: impl Fn(&mut T) -> &mut Option<i64>) -> T {
    *version(&mut entity) = Some(1);
    entity
}
