//! Devices and their credentials.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use fieldline_core::ports::{DeviceFilter, EntityStores, StoreErrorKind};
use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials, DeviceProfile};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{CustomerId, DeviceId, DeviceProfileId, TenantId};

use super::fixture::{EntityFixture, device, expect_error, sorted, token};

/// A filter lets through what meets all of its conditions.
pub async fn device_lists_are_filtered(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let customer = world.customer("customer").await.id;
    let meters = world.profile("meter").await;
    let assigned = Device {
        customer_id: customer,
        ..device(world.tenant, &meters, "assigned meter")
    };
    let assigned = world.save(assigned).await;
    world.save(device(world.tenant, &meters, "meter")).await;
    world.device("plain").await;
    stores.devices.set_active(&[(assigned.id, true)]).await.unwrap();

    let cases = [
        (DeviceFilter::default(), vec!["assigned meter", "meter", "plain"]),
        (by(|f| f.customer = Some(customer)), vec!["assigned meter"]),
        (by(|f| f.customer = Some(CustomerId::new())), vec![]),
        (
            by(|f| f.device_type = Some("meter".into())),
            vec!["assigned meter", "meter"],
        ),
        (by(|f| f.device_type = Some("Meter".into())), vec![]),
        (by(|f| f.profile = Some(world.profile.id)), vec!["plain"]),
        (by(|f| f.profile = Some(DeviceProfileId::new())), vec![]),
        (by(|f| f.active = Some(true)), vec!["assigned meter"]),
        (by(|f| f.active = Some(false)), vec!["meter", "plain"]),
        (
            DeviceFilter {
                customer: Some(customer),
                device_type: Some("meter".into()),
                profile: Some(meters.id),
                active: Some(false),
            },
            vec![],
        ),
    ];
    for (filter, expected) in cases {
        let found = stores
            .devices
            .list(world.tenant, &filter, &sorted("name", SortOrder::Asc))
            .await
            .unwrap();
        assert_eq!(found.total_elements, expected.len() as u64, "{filter:?}");
        let names: Vec<&str> = found.data.iter().map(|info| info.device.name.as_str()).collect();
        assert_eq!(names, expected, "{filter:?}");
    }
}

/// The active devices of a tenant are read in pieces that neither repeat nor leave out one, though they were made at the
/// same time.
pub async fn active_devices_are_read_in_pieces(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let mut active = Vec::new();
    for number in 0..7 {
        let created_time = 1_700_000_000_000 + i64::from(number / 3);
        let device = Device {
            created_time,
            ..world.new_device(&number.to_string())
        };
        let device = world.save(device).await;
        if number != 4 {
            active.push((created_time, device.id));
        }
    }
    active.sort();
    let changes: Vec<_> = active.iter().map(|(_, id)| (*id, true)).collect();
    stores.devices.set_active(&changes).await.unwrap();
    let mut read = Vec::new();
    loop {
        let after = read.last().copied();
        let piece = stores.devices.active_after(world.tenant, after, 2).await.unwrap();
        if piece.is_empty() {
            break;
        }
        assert!(piece.len() <= 2);
        read.extend(piece);
    }
    assert_eq!(read, active);
    let others = stores.devices.active_after(TenantId::new(), None, 9).await;
    assert!(others.unwrap().is_empty());
}

/// Activity of more devices than fit one statement is recorded at once; the last change of a device counts, unknown
/// devices are passed over, and versions stay.
pub async fn activity_is_recorded_for_many_devices_at_once(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let mut changes: Vec<(DeviceId, bool)> = (0..1_300).map(|_| (DeviceId::new(), true)).collect();
    let first = world.device("first").await.id;
    let second = world.device("second").await.id;
    changes.push((first, false));
    changes.push((second, true));
    changes.push((first, true));
    changes.push((second, false));
    stores.devices.set_active(&changes).await.unwrap();
    assert!(is_active(&world, first).await);
    assert!(!is_active(&world, second).await);
    stores
        .devices
        .set_active(&[(first, false), (second, true)])
        .await
        .unwrap();
    assert!(!is_active(&world, first).await);
    assert!(is_active(&world, second).await);
    stores.devices.set_active(&[]).await.unwrap();
    let stored = stores.devices.get(world.tenant, second).await.unwrap().unwrap();
    assert_eq!(stored.version, Some(1));
    let saved = stores.devices.update(stored).await.unwrap();
    assert!(
        is_active(&world, saved.id).await,
        "saving a device leaves its activity alone"
    );
}

/// Lists of names need not read the profiles, and looking several up takes one call.
pub async fn profiles_are_named_all_or_those_that_a_device_has(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let other = EntityFixture::new(stores, "other").await;
    let unused = world.profile("unused").await.id;
    let used = world.profile.id;
    for name in ["a", "b"] {
        world.device(name).await;
    }
    let profiles = &stores.device_profiles;
    let mut all = profiles.names(world.tenant, false).await.unwrap();
    all.sort_by(|a, b| a.1.cmp(&b.1));
    let named = [(used, "default".to_owned()), (unused, "unused".to_owned())];
    assert_eq!(all, named);
    assert_eq!(profiles.names(world.tenant, true).await.unwrap(), named[..1]);
    assert_eq!(profiles.names(other.tenant, true).await.unwrap(), []);

    let both = profiles
        .by_ids(world.tenant, &[used, unused, used])
        .await
        .unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(profiles.by_ids(other.tenant, &[used, unused]).await.unwrap(), []);
}

/// The type of a device is the name of its profile, also after that has changed.
pub async fn renaming_a_profile_renames_the_type_of_its_devices(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let id = world.device("device").await.id;
    let renamed = DeviceProfile {
        name: "renamed".into(),
        ..world.profile.clone()
    };
    stores.device_profiles.update(renamed).await.unwrap();
    let device = stores.devices.get(world.tenant, id).await.unwrap().unwrap();
    assert_eq!(device.device_type, "renamed");
    let filter = by(|filter| filter.device_type = Some("renamed".into()));
    let found = stores
        .devices
        .list(world.tenant, &filter, &PageLink::first(1))
        .await
        .unwrap();
    assert_eq!(found.data[0].device_profile_name, "renamed");
}

/// Creating a device stores it with its credentials; where either is refused, neither is stored.
pub async fn a_device_and_its_credentials_are_created_both_or_neither(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = world.new_device("device");
    let unassigned = DeviceCredentials {
        device_id: DeviceId::NULL,
        ..token(&device, "token")
    };
    let created = stores.devices.create(device.clone(), unassigned).await.unwrap();
    assert_eq!(created.version, Some(1));
    let credentials = stores
        .device_credentials
        .get(world.tenant, created.id)
        .await
        .unwrap();
    let expected = token(&device, "token");
    assert_eq!(
        credentials,
        Some(DeviceCredentials {
            id: credentials.as_ref().unwrap().id,
            ..expected
        })
    );

    let second = world.new_device("second");
    let result = stores
        .devices
        .create(second.clone(), token(&second, "token"))
        .await;
    expect_error(result, StoreErrorKind::Conflict);
    assert_eq!(stores.devices.get(world.tenant, second.id).await.unwrap(), None);
    let namesake = world.new_device("device");
    let result = stores
        .devices
        .create(namesake.clone(), token(&namesake, "fresh"))
        .await;
    expect_error(result, StoreErrorKind::Conflict);
    assert_eq!(
        stores
            .device_credentials
            .find(CredentialsType::AccessToken, "fresh")
            .await
            .unwrap(),
        None
    );
    stores
        .devices
        .create(second.clone(), token(&second, "fresh"))
        .await
        .unwrap();
}

/// Credentials are replaced, not added; an update of another version than the stored one is refused.
pub async fn credentials_are_replaced_under_their_version(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = world.device("device").await;
    let id = device.id;
    let credentials = &stores.device_credentials;
    assert_eq!(credentials.get(world.tenant, id).await.unwrap(), None);
    let first = credentials
        .save(world.tenant, token(&device, "one"))
        .await
        .unwrap();
    assert_eq!(first.version, Some(1));

    let basic = DeviceCredentials {
        credentials_type: CredentialsType::MqttBasic,
        credentials_id: Some("hash".into()),
        credentials_value: Some(r#"{"clientId":"c","userName":"ü","password":"p"}"#.into()),
        created_time: 1,
        ..first.clone()
    };
    let second = credentials.save(world.tenant, basic.clone()).await.unwrap();
    assert_eq!(
        second,
        DeviceCredentials {
            created_time: first.created_time,
            version: Some(2),
            ..basic
        }
    );
    assert_eq!(
        credentials.get(world.tenant, id).await.unwrap(),
        Some(second.clone())
    );
    expect_error(
        credentials.save(world.tenant, first.clone()).await,
        StoreErrorKind::VersionConflict,
    );
    let unversioned = DeviceCredentials {
        version: None,
        ..first
    };
    let third = credentials.save(world.tenant, unversioned).await.unwrap();
    assert_eq!(third.version, Some(3));

    let other = world.new_device("other");
    stores
        .devices
        .create(other.clone(), token(&other, "two"))
        .await
        .unwrap();
    let stolen = DeviceCredentials {
        credentials_id: Some("two".into()),
        ..third.clone()
    };
    let message = expect_error(
        credentials.save(world.tenant, stolen).await,
        StoreErrorKind::Conflict,
    );
    assert_eq!(message, "Specified credentials are already registered!");
    assert_eq!(credentials.get(world.tenant, id).await.unwrap(), Some(third));
    let of_nobody = token(&world.new_device("nobody"), "three");
    expect_error(
        credentials.save(world.tenant, of_nobody).await,
        StoreErrorKind::NotFound,
    );
}

/// A device that connects is found by what it shows, and by nothing that merely looks like it.
pub async fn credentials_are_found_by_type_and_id(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "tenant").await;
    let device = world.new_device("device");
    let device = stores
        .devices
        .create(device.clone(), token(&device, "Token"))
        .await
        .unwrap();
    let credentials = &stores.device_credentials;
    let (found, shown) = credentials
        .find(CredentialsType::AccessToken, "Token")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found, device);
    assert_eq!(shown.credentials_id.as_deref(), Some("Token"));
    assert_eq!(shown.device_id, device.id);
    for lookalike in ["token", "Token ", "Toke", "%", "Token%", "", "Token'--"] {
        let found = credentials
            .find(CredentialsType::AccessToken, lookalike)
            .await
            .unwrap();
        assert!(found.is_none(), "{lookalike:?}");
    }
    assert!(
        credentials
            .find(CredentialsType::X509Certificate, "Token")
            .await
            .unwrap()
            .is_none()
    );

    credentials
        .save(world.tenant, token(&device, "New"))
        .await
        .unwrap();
    assert!(
        credentials
            .find(CredentialsType::AccessToken, "Token")
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        credentials
            .find(CredentialsType::AccessToken, "New")
            .await
            .unwrap()
            .is_some()
    );
    stores.devices.delete(world.tenant, device.id).await.unwrap();
    assert!(
        credentials
            .find(CredentialsType::AccessToken, "New")
            .await
            .unwrap()
            .is_none()
    );
}

async fn is_active(world: &EntityFixture<'_>, id: DeviceId) -> bool {
    let info = world.stores.devices.info(world.tenant, id).await.unwrap();
    info.unwrap().active
}

fn by(set: impl Fn(&mut DeviceFilter)) -> DeviceFilter {
    let mut filter = DeviceFilter::default();
    set(&mut filter);
    filter
}
