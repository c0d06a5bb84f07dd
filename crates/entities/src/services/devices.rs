//! Devices and their credentials.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::{AttributeRow, StoreErrorKind};
use fieldline_model::entity::{Device, DeviceCredentials, DeviceProfile, EntityDraft, OtaKind};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{
    CustomerId, DeviceCredentialsId, DeviceId, EntityId, EntityKey, TenantId, kv, new_uuid,
};
use serde_json::{Value, json};

use super::assignable::{self, AssignableService};
use super::{
    NameConflict, ServiceContext, ServiceError, ServiceResult, conflict, credentials, gateway_notices,
    ota_packages, profiles, random_text, validate,
};

const CREDENTIALS_TAKEN: &str = "Device credentials are already assigned to another device!";
/// Length of an access token that the platform makes up.
pub(super) const TOKEN_LENGTH: usize = 20;

/// Credentials that a device is saved with. They hold secrets, hence no `Debug`.
#[derive(Clone, PartialEq)]
pub enum NewCredentials {
    /// A new device gets this access token, or a random one; those of an existing device stay.
    AccessToken(Option<String>),
    /// New and existing devices get these.
    Given(EntityDraft<DeviceCredentials>),
}

/// Rules about devices.
#[derive(Clone)]
pub struct DeviceService(Arc<ServiceContext>);

impl DeviceService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the device with credentials and the attribute `active`, or updates it where it has an id. Its type and
    /// profile are brought in line, and the profile of a new type is created.
    ///
    /// # Errors
    /// A rule is broken, name or credentials are taken, or the tenant has as many devices as it may have.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut device: EntityDraft<Device>,
        new_credentials: NewCredentials,
        names: &NameConflict,
    ) -> ServiceResult<Device> {
        let old = assignable::prepare(&self.0, tenant, &mut device, names).await?;
        self.check(&device).await?;
        let named = (device.device_profile_id, device.device_type.as_str());
        let profile: DeviceProfile = profiles::of_entity(&self.0, tenant, named.0, named.1).await?;
        device.device_profile_id = Some(profile.id);
        ota_packages::check_assigned(&self.0, tenant, Some(profile.id), assigned_packages(&device)).await?;
        sync_device_data(&mut device.device_data, &profile);
        device.device_type = profile.name;
        let device = assignable::complete(&self.0, device, old.as_ref()).await?;
        match old {
            Some(old) => self.update(&old, device, new_credentials).await,
            None => self.create(device, new_credentials).await,
        }
    }

    async fn create(&self, device: Device, new_credentials: NewCredentials) -> ServiceResult<Device> {
        let (tenant, id, now) = (device.tenant_id, device.id, device.created_time);
        let mut credentials: EntityDraft<_> = match new_credentials {
            NewCredentials::AccessToken(token) => {
                let token = token.filter(|token| !token.is_empty());
                let token = token.unwrap_or_else(|| random_text(TOKEN_LENGTH));
                DeviceCredentials::access_token(id, token, now).into()
            }
            NewCredentials::Given(credentials) => credentials,
        };
        credentials.device_id = id;
        let credentials = credentials.into_new(DeviceCredentialsId(new_uuid()), now);
        let credentials = credentials::normalize(credentials)?;
        let name = device.name.clone();
        let saved = match self.0.stores.devices.create(device, credentials).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                // Name and credentials are both unique; say which it was.
                let taken = self.0.stores.devices.by_name(tenant, &name).await?.is_some();
                let message = match taken {
                    true => assignable::name_taken::<Device>(),
                    false => CREDENTIALS_TAKEN.to_owned(),
                };
                return Err(ServiceError::from(error).with_message(message));
            }
            saved => saved?,
        };
        self.mark_inactive(tenant, id, now).await?;
        self.0.publish_change(EntityChange::saved(tenant, id));
        Ok(saved)
    }

    async fn update(
        &self,
        old: &Device,
        device: Device,
        new_credentials: NewCredentials,
    ) -> ServiceResult<Device> {
        let (tenant, id) = (device.tenant_id, device.id);
        let saved = self.0.stores.devices.save(device, false).await;
        let saved = conflict(saved, &assignable::name_taken::<Device>())?;
        self.0.publish_change(EntityChange::saved(tenant, id));
        gateway_notices::notify_renamed(&self.0, old, &saved).await;
        if let NewCredentials::Given(mut credentials) = new_credentials {
            let stored = self.0.stores.device_credentials.get(tenant, id).await?;
            credentials.id = stored.map(|stored| stored.id);
            credentials.version = None;
            self.save_credentials(tenant, id, credentials).await?;
        }
        Ok(saved)
    }

    /// Every device has the attribute from the start, so that dashboards and filters find it.
    async fn mark_inactive(&self, tenant: TenantId, id: DeviceId, now: i64) -> ServiceResult<()> {
        let mut values = Vec::with_capacity(16);
        kv::pack("active", kv::KvValueRef::Bool(false), &mut values);
        let row = AttributeRow {
            subject: EntityKey::device(tenant, id),
            scope: AttributeScope::Server,
            ts: now,
            values: &values,
        };
        Ok(self.0.attributes.save(&[row]).await?)
    }

    async fn check(&self, device: &Device) -> ServiceResult<()> {
        check_fields(device)?;
        assignable::check_customer(&self.0, device).await
    }

    /// Replaces the credentials of a device.
    ///
    /// # Errors
    /// They make no sense, are not the ones the device has, or belong to another device.
    pub async fn save_credentials(
        &self,
        tenant: TenantId,
        id: DeviceId,
        mut credentials: EntityDraft<DeviceCredentials>,
    ) -> ServiceResult<DeviceCredentials> {
        let stores = &self.0.stores.device_credentials;
        credentials.device_id = id;
        let credentials = match stores.get(tenant, id).await? {
            None => credentials.into_new(DeviceCredentialsId(new_uuid()), self.0.now()),
            Some(_) if credentials.id.is_none() => {
                return Err(ServiceError::invalid(
                    "Credentials for this device are already specified!",
                ));
            }
            Some(stored) if Some(stored.id) != credentials.id => {
                return Err(ServiceError::invalid(
                    "Unable to update non-existent device credentials!",
                ));
            }
            Some(stored) => credentials.into_update(&stored),
        };
        let credentials = credentials::normalize(credentials)?;
        let saved = conflict(stores.save(tenant, credentials).await, CREDENTIALS_TAKEN)?;
        self.0
            .publish_change(EntityChange::new(tenant, id, ChangeKind::Credentials));
        Ok(saved)
    }
}

#[async_trait]
impl AssignableService for DeviceService {
    type ManagedEntity = Device;

    async fn assign(&self, tenant: TenantId, id: DeviceId, customer: CustomerId) -> ServiceResult<Device> {
        let keep = NewCredentials::AccessToken(None);
        match assignable::with_customer::<Device>(&self.0, tenant, id, customer).await? {
            (device, true) => self.save(tenant, device.into(), keep, &NameConflict::Fail).await,
            (device, false) => Ok(device),
        }
    }

    async fn delete(&self, tenant: TenantId, id: DeviceId) -> ServiceResult<()> {
        let device = self.0.stores.devices.get(tenant, id).await?;
        assignable::delete_source::<Device>(&self.0, tenant, id).await?;
        if let Some(device) = device {
            gateway_notices::notify_deleted(&self.0, &device).await;
        }
        Ok(())
    }
}

/// The packages that are assigned to a device itself.
pub(super) fn assigned_packages(device: &Device) -> [(OtaKind, Option<EntityId>); 2] {
    [
        (OtaKind::Firmware, device.firmware_id),
        (OtaKind::Software, device.software_id),
    ]
}

/// What can be said about a device without asking the stores.
pub(super) fn check_fields(device: &Device) -> ServiceResult<()> {
    validate::required("Device name", &device.name)?;
    validate::lengths(&[
        ("name", Some(&device.name)),
        ("type", Some(&device.device_type)),
        ("label", device.label.as_deref()),
    ])?;
    validate::json_object("additionalInfo", device.additional_info.as_ref())?;
    validate::json_object("deviceData", Some(&device.device_data))
}

/// Makes sure that the device's configuration fits its profile; what the device was given is kept where it does.
pub(super) fn sync_device_data(data: &mut Value, profile: &DeviceProfile) {
    if !data.is_object() {
        *data = json!({});
    }
    let Some(fields) = data.as_object_mut() else {
        return;
    };
    let kind = |value: Option<&Value>| {
        value
            .and_then(|v| v.get("type"))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    if kind(fields.get("configuration")).as_deref() != Some("DEFAULT") {
        fields.insert("configuration".to_owned(), json!({ "type": "DEFAULT" }));
    }
    let transport = profile.transport_type.name();
    if kind(fields.get("transportConfiguration")).as_deref() != Some(transport) {
        fields.insert("transportConfiguration".to_owned(), json!({ "type": transport }));
    }
}
