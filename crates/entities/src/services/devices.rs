//! Devices and their credentials.

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::{AttributeRow, StoreErrorKind};
use fieldline_model::entity::{Device, DeviceCredentials, DeviceProfile, EntityDraft, OtaKind};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceCredentialsId, DeviceId, EntityId, EntityKey, TenantId, kv, new_uuid};
use serde_json::{Value, json};

use super::assignable::{self, AssignableRules, AssignableService};
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
pub type DeviceService = AssignableService<Device>;

impl AssignableRules for Device {
    async fn prepare(context: &ServiceContext, device: &mut EntityDraft<Self>) -> ServiceResult<()> {
        check_fields(device)?;
        assignable::check_customer::<Self>(context, device).await?;
        let named = (device.device_profile_id, device.device_type.as_str());
        let tenant = device.tenant_id;
        let profile: DeviceProfile = profiles::of_entity(context, tenant, named.0, named.1).await?;
        device.device_profile_id = Some(profile.id);
        ota_packages::check_assigned(context, tenant, Some(profile.id), assigned_packages(device)).await?;
        sync_device_data(&mut device.device_data, &profile);
        device.device_type = profile.name;
        Ok(())
    }

    async fn insert(context: &ServiceContext, device: Self) -> ServiceResult<Self> {
        create(context, device, NewCredentials::AccessToken(None)).await
    }

    async fn follow(context: &ServiceContext, old: Option<&Self>, saved: &Self) -> ServiceResult<()> {
        if let Some(old) = old {
            gateway_notices::notify_renamed(context, old, saved).await;
        }
        Ok(())
    }

    async fn delete(context: &ServiceContext, tenant: TenantId, id: DeviceId) -> ServiceResult<()> {
        let device = context.stores.devices.get(tenant, id).await?;
        assignable::delete_source::<Self>(context, tenant, id).await?;
        if let Some(device) = device {
            gateway_notices::notify_deleted(context, &device).await;
        }
        Ok(())
    }
}

impl DeviceService {
    /// The same as [`Self::save`] with credentials.
    ///
    /// # Errors
    /// As there, or the credentials are taken.
    pub async fn save_with_credentials(
        &self,
        tenant: TenantId,
        mut device: EntityDraft<Device>,
        new_credentials: NewCredentials,
        names: &NameConflict,
    ) -> ServiceResult<Device> {
        if device.id.is_none() {
            assignable::prepare(&self.context, tenant, &mut device, names).await?;
            let device = assignable::complete(&self.context, device, None).await?;
            let saved = create(&self.context, device, new_credentials).await?;
            self.context.publish_change(EntityChange::saved(tenant, saved.id));
            return Ok(saved);
        }
        let saved = self.save(tenant, device, names).await?;
        if let NewCredentials::Given(mut credentials) = new_credentials {
            let stored = self
                .context
                .stores
                .device_credentials
                .get(tenant, saved.id)
                .await?;
            credentials.id = stored.map(|stored| stored.id);
            credentials.version = None;
            self.save_credentials(tenant, saved.id, credentials).await?;
        }
        Ok(saved)
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
        let stores = &self.context.stores.device_credentials;
        credentials.device_id = id;
        let credentials = match stores.get(tenant, id).await? {
            None => credentials.into_new(DeviceCredentialsId(new_uuid()), self.context.now()),
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
        self.context
            .publish_change(EntityChange::new(tenant, id, ChangeKind::Credentials));
        Ok(saved)
    }
}

/// Stores a new device with its credentials.
async fn create(
    context: &ServiceContext,
    device: Device,
    new_credentials: NewCredentials,
) -> ServiceResult<Device> {
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
    let saved = match context.stores.devices.create(device, credentials).await {
        Err(error) if error.kind() == StoreErrorKind::Conflict => {
            // Name and credentials are both unique; say which it was.
            let taken = context.stores.devices.by_name(tenant, &name).await?.is_some();
            let message = match taken {
                true => assignable::name_taken::<Device>(),
                false => CREDENTIALS_TAKEN.to_owned(),
            };
            return Err(ServiceError::from(error).with_message(message));
        }
        saved => saved?,
    };
    mark_inactive(context, tenant, id, now).await?;
    Ok(saved)
}

/// Every device has the attribute from the start, so that dashboards and filters find it.
async fn mark_inactive(
    context: &ServiceContext,
    tenant: TenantId,
    id: DeviceId,
    now: i64,
) -> ServiceResult<()> {
    let mut values = Vec::with_capacity(16);
    kv::pack("active", kv::KvValueRef::Bool(false), &mut values);
    let row = AttributeRow {
        subject: EntityKey::device(tenant, id),
        scope: AttributeScope::Server,
        ts: now,
        values: &values,
    };
    Ok(context.attributes.save(&[row]).await?)
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
