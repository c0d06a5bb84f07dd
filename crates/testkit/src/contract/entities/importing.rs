//! Many entities at once.
#![allow(clippy::unwrap_used, reason = "a contract suite fails by panicking")]

use std::sync::Mutex;

use async_trait::async_trait;
use fieldline_core::ports::{
    EntityStores, ImportRow, ImportValueStore, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{Asset, AssetProfile, CredentialsType, Device};
use fieldline_model::{AssetId, AssetProfileId, CustomerId, DeviceId, DeviceProfileId, EntityId};

use super::fixture::{EntityFixture, NOW, token};

/// Of many devices those that cannot be stored are named, and all others are stored with their credentials.
pub async fn of_many_devices_the_good_ones_are_stored(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let other = EntityFixture::new(stores, "other").await;
    let old = world.new_device("old");
    let old = stores
        .devices
        .create(old.clone(), token(&old, "old"))
        .await
        .unwrap();
    let taken = world.new_device("taken");
    stores
        .devices
        .create(taken.clone(), token(&taken, "taken"))
        .await
        .unwrap();
    let new = |name: &str, secret: &str| {
        let device = world.new_device(name);
        ImportRow {
            along: Some(token(&device, secret)),
            entity: device,
            create: true,
        }
    };
    let changed = Device {
        label: Some("changed".into()),
        version: None,
        ..old.clone()
    };
    let mut rows: Vec<ImportRow<Device>> = (0..600)
        .map(|n| new(&format!("n{n}"), &format!("t{n}")))
        .collect();
    rows[3] = new("same token", "taken");
    rows[4] = new("taken", "unused");
    rows[5] = ImportRow {
        entity: Device {
            device_profile_id: Some(DeviceProfileId::new()),
            ..world.new_device("no profile")
        },
        create: true,
        along: None,
    };
    rows[6] = ImportRow {
        entity: changed,
        create: false,
        along: Some(token(&old, "newer")),
    };
    rows[7] = ImportRow {
        entity: Device {
            customer_id: CustomerId::new(),
            ..world.new_device("no customer")
        },
        create: true,
        along: None,
    };
    // Of another tenant: there is no such device in this one.
    rows[8] = ImportRow {
        entity: Device {
            tenant_id: other.tenant,
            ..old.clone()
        },
        create: false,
        along: None,
    };
    let answers = stores.devices.import(rows, &()).await.unwrap();
    let refused: Vec<usize> = (0..answers.len()).filter(|n| answers[*n].is_err()).collect();
    assert_eq!(refused, [3, 4, 5, 7, 8]);
    let kind = |n: usize| answers[n].as_ref().unwrap_err().kind();
    assert_eq!(
        (kind(3), kind(4), kind(5)),
        (
            StoreErrorKind::Conflict,
            StoreErrorKind::Conflict,
            StoreErrorKind::Invalid
        )
    );
    assert_eq!(answers[9].as_ref().unwrap().version, Some(1));
    assert_eq!(stores.devices.count(world.tenant).await.unwrap(), 2 + 600 - 6);
    let read = stores.devices.get(world.tenant, old.id).await.unwrap().unwrap();
    assert_eq!((read.label.as_deref(), read.version), (Some("changed"), Some(2)));
    for (secret, name) in [
        ("newer", Some("old")),
        ("old", None),
        ("t599", Some("n599")),
        ("taken", Some("taken")),
    ] {
        let found = stores
            .device_credentials
            .find(CredentialsType::AccessToken, secret)
            .await
            .unwrap();
        assert_eq!(found.map(|(device, _)| device.name).as_deref(), name);
    }
    let names: Vec<String> = (0..600).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["nothing"]).collect();
    assert_eq!(
        stores.devices.by_names(world.tenant, &names).await.unwrap().len(),
        594
    );
    assert!(
        stores
            .devices
            .by_names(other.tenant, &names)
            .await
            .unwrap()
            .is_empty()
    );
}

/// Values whose store fails for one entity, and that remember what they were asked to save.
struct FailingImportedValues {
    at: EntityId,
    asked: Mutex<Vec<EntityId>>,
}

#[async_trait]
impl ImportValueStore for FailingImportedValues {
    async fn save(&self, entities: &[EntityId]) -> StoreResult<()> {
        self.asked.lock().unwrap().extend(entities);
        if entities.contains(&self.at) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "not now"));
        }
        Ok(())
    }
}

/// What is stored is answered, though the store of values fails for others later; and values of what is there already are
/// left to the caller.
pub async fn of_an_import_that_fails_halfway_the_stored_half_is_answered(stores: &EntityStores) {
    let mut in_part = 0;
    // Whichever half is stored first, one of them fails after the other.
    for at in [0, 3] {
        let world = EntityFixture::new(stores, &format!("fails at {at}")).await;
        let old = world.device("old").await;
        let row = |entity: Device, create| ImportRow {
            entity,
            create,
            along: None,
        };
        let new = |name: &str| row(world.new_device(name), true);
        let changed = Device { version: None, ..old };
        // The second is refused, so that they are stored in parts.
        let rows = vec![new("a"), new("old"), row(changed, false), new("b")];
        let ids: Vec<DeviceId> = rows.iter().map(|row| row.entity.id).collect();
        let values = FailingImportedValues {
            at: ids[at].into(),
            asked: Mutex::default(),
        };
        let answers = stores.devices.import(rows, &values).await;
        let asked = values.asked.into_inner().unwrap();
        assert!(
            !asked.contains(&ids[2].into()),
            "seen at once, whatever becomes of the device"
        );
        let stored: Vec<bool> = match answers {
            Ok(answers) => answers.iter().map(Result::is_ok).collect(),
            Err(_) => vec![false; 4],
        };
        assert!(!stored[at]);
        for n in [0, 3] {
            let found = stores.devices.by_ids(world.tenant, &[ids[n]]).await.unwrap();
            assert_eq!(stored[n], found.len() == 1, "{n}");
        }
        in_part += usize::from(stored[0] || stored[3]);
    }
    assert!(in_part > 0, "one half was stored before the other failed");
}

/// The same of assets.
pub async fn of_many_assets_the_good_ones_are_stored(stores: &EntityStores) {
    let world = EntityFixture::new(stores, "T").await;
    let profile = AssetProfile {
        id: AssetProfileId::new(),
        tenant_id: world.tenant,
        name: "default".into(),
        ..AssetProfile::default()
    };
    let profile = stores.asset_profiles.insert(profile).await.unwrap();
    let new = |name: &str| Asset {
        id: AssetId::new(),
        created_time: NOW,
        tenant_id: world.tenant,
        name: name.into(),
        asset_profile_id: Some(profile.id),
        ..Asset::default()
    };
    let row = |entity| ImportRow {
        entity,
        create: true,
        along: (),
    };
    let old = stores.assets.insert(new("old")).await.unwrap();
    let changed = ImportRow {
        entity: Asset {
            label: Some("changed".into()),
            version: None,
            ..old
        },
        create: false,
        along: (),
    };
    let answers = stores
        .assets
        .import(vec![row(new("a")), row(new("old")), changed, row(new("b"))], &())
        .await
        .unwrap();
    let stored: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(stored, [true, false, true, true]);
    let found = stores
        .assets
        .by_names(world.tenant, &["a", "b", "old", "c"])
        .await
        .unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(stores.assets.import(Vec::new(), &()).await.unwrap().len(), 0);
}
