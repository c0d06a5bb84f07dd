//! Entities of the tenant, and what is stored of them.

use fieldline_core::ports::{AttributeRow, TelemetryRow, TelemetrySaveStrategy};
use fieldline_model::entity::{
    Asset, AssetProfile, Device, DeviceCredentials, DeviceProfile, EntityRelation,
};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{AssetId, AssetProfileId, DeviceId, DeviceProfileId, EntityId, EntityKey};
use serde_json::Value;

use super::{NOW, World, packed};

impl World {
    /// Creates a device profile; `patch` replaces fields.
    pub(crate) async fn device_profile(&self, name: &str, patch: Value) -> DeviceProfileId {
        let profile = DeviceProfile {
            id: DeviceProfileId::new(),
            created_time: NOW,
            tenant_id: self.tenant,
            name: name.into(),
            ..DeviceProfile::default()
        };
        let saved = self
            .services
            .stores
            .device_profiles
            .insert(patched(&profile, patch))
            .await;
        saved.unwrap().id
    }

    /// Creates a device of the default profile; `patch` replaces fields.
    pub(crate) async fn device(&self, name: &str, patch: Value) -> EntityId {
        let device = Device {
            id: DeviceId::new(),
            created_time: NOW,
            tenant_id: self.tenant,
            name: name.into(),
            device_type: "default".into(),
            device_profile_id: Some(self.profile),
            ..Device::default()
        };
        let device = patched(&device, patch);
        let token = DeviceCredentials::access_token(device.id, format!("token of {name}"), NOW);
        let saved = self.services.stores.devices.create(device, token).await;
        saved.unwrap().id.into()
    }

    /// Creates an asset with a profile of that name; `patch` replaces fields.
    pub(crate) async fn asset(&self, name: &str, profile: &str, patch: Value) -> EntityId {
        let profile = AssetProfile {
            id: AssetProfileId::new(),
            created_time: NOW,
            tenant_id: self.tenant,
            name: profile.into(),
            ..AssetProfile::default()
        };
        let profile = self.services.stores.asset_profiles.insert(profile).await.unwrap();
        let asset = Asset {
            id: AssetId::new(),
            created_time: NOW,
            tenant_id: self.tenant,
            name: name.into(),
            asset_type: profile.name,
            asset_profile_id: Some(profile.id),
            ..Asset::default()
        };
        let saved = self.services.stores.assets.insert(patched(&asset, patch)).await;
        saved.unwrap().id.into()
    }

    /// Relates two entities.
    pub(crate) async fn relate(&self, from: EntityId, to: EntityId, relation_type: &str) {
        let relation = EntityRelation::new(from, to, relation_type);
        self.services
            .stores
            .relations
            .save(self.tenant, relation)
            .await
            .unwrap();
    }

    /// An entity of the tenant as an owner of data.
    pub(crate) fn subject(&self, entity: impl Into<EntityId>) -> EntityKey {
        EntityKey {
            tenant: self.tenant,
            entity: entity.into(),
        }
    }

    /// Saves attributes.
    pub(crate) async fn attributes(&self, entity: impl Into<EntityId>, scope: AttributeScope, values: Value) {
        let row = AttributeRow {
            subject: self.subject(entity),
            scope,
            ts: NOW,
            values: &packed(&values),
        };
        fieldline_core::ports::AttributeStore::save(&*self.store, &[row])
            .await
            .unwrap();
    }

    /// Saves values of a time.
    pub(crate) async fn telemetry(&self, entity: impl Into<EntityId>, ts: i64, values: Value) {
        let row = TelemetryRow {
            subject: self.subject(entity),
            ts,
            ttl_seconds: 0,
            strategy: TelemetrySaveStrategy::ALL,
            values: &packed(&values),
        };
        fieldline_core::ports::TimeSeriesStore::save(&*self.store, &[row])
            .await
            .unwrap();
    }
}

/// An entity with some fields replaced.
fn patched<T: serde::Serialize + serde::de::DeserializeOwned>(entity: &T, patch: Value) -> T {
    let mut json = serde_json::to_value(entity).unwrap();
    for (name, value) in patch.as_object().into_iter().flatten() {
        json.as_object_mut().unwrap().insert(name.clone(), value.clone());
    }
    serde_json::from_value(json).unwrap()
}
