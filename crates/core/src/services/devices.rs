//! Devices and their credentials.

use std::sync::Arc;

use fieldline_model::entity::{Device, DeviceCredentials, DeviceProfile};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{
    CustomerId, DeviceCredentialsId, DeviceId, EntityType, Subject, TenantId, kv, new_uuid,
};
use serde_json::{Value, json};

use super::names::no_free_name;
use super::{
    Context, NameConflict, ServiceError, ServiceResult, conflict, credentials, device_profiles, limits,
    random_text, validate,
};
use crate::events::EntityChange;
use crate::ports::{AttributeRow, StoreErrorKind};

const NAME_TAKEN: &str = "Device with such name already exists!";
const CREDENTIALS_TAKEN: &str = "Device credentials are already assigned to another device!";
/// Length of an access token that the platform makes up.
pub(super) const TOKEN_LENGTH: usize = 20;

/// Credentials that a device is saved with. They hold secrets, hence no `Debug`.
#[derive(Clone, PartialEq)]
pub enum NewCredentials {
    /// A new device gets this access token, or a random one; those of an existing device stay.
    AccessToken(Option<String>),
    /// New and existing devices get these.
    Given(DeviceCredentials),
}

/// Rules about devices.
#[derive(Clone)]
pub struct Devices(Arc<Context>);

impl Devices {
    pub(super) fn new(context: &Arc<Context>) -> Self {
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
        mut device: Device,
        new_credentials: NewCredentials,
        names: &NameConflict,
    ) -> ServiceResult<Device> {
        let stores = &self.0.stores.devices;
        let old = match device.id {
            Some(id) => Some(
                stores
                    .get(tenant, id)
                    .await?
                    .ok_or_else(|| ServiceError::invalid("Can't update non existing device!"))?,
            ),
            None => None,
        };
        device.tenant_id = tenant;
        let renamed = old.as_ref().is_none_or(|old| old.name != device.name);
        if names.uniquifies() && renamed {
            device.name = self.free_name(tenant, device.name, names).await?;
        }
        self.check(&device).await?;
        let profile = self.profile_of(&device).await?;
        device.device_profile_id = profile.id;
        device.device_type.clone_from(&profile.name);
        sync_device_data(&mut device.device_data, &profile);
        match old {
            Some(old) => {
                device.created_time = old.created_time;
                self.update(device, new_credentials).await
            }
            None => self.create(device, new_credentials).await,
        }
    }

    async fn create(&self, mut device: Device, new_credentials: NewCredentials) -> ServiceResult<Device> {
        let (tenant, id, now) = (device.tenant_id, DeviceId::new(), self.0.now());
        limits::check(&self.0, tenant, EntityType::Device).await?;
        device.id = Some(id);
        device.created_time = now;
        let mut credentials = match new_credentials {
            NewCredentials::AccessToken(token) => {
                let token = token.filter(|token| !token.is_empty());
                let token = token.unwrap_or_else(|| random_text(TOKEN_LENGTH));
                DeviceCredentials::access_token(id, token, now)
            }
            NewCredentials::Given(credentials) => credentials,
        };
        credentials.id = Some(DeviceCredentialsId(new_uuid()));
        credentials.device_id = Some(id);
        credentials.created_time = now;
        let credentials = credentials::normalize(credentials)?;
        let name = device.name.clone();
        let saved = match self.0.stores.devices.create(device, credentials).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                // Name and credentials are both unique; say which it was.
                let taken = self.0.stores.devices.by_name(tenant, &name).await?.is_some();
                let message = if taken { NAME_TAKEN } else { CREDENTIALS_TAKEN };
                return Err(ServiceError::from(error).with_message(message));
            }
            saved => saved?,
        };
        self.mark_inactive(tenant, id, now).await?;
        self.0.tell(EntityChange::DeviceSaved(tenant, id));
        Ok(saved)
    }

    async fn update(&self, device: Device, new_credentials: NewCredentials) -> ServiceResult<Device> {
        let (tenant, id) = (device.tenant_id, device.id.unwrap_or_default());
        let saved = conflict(self.0.stores.devices.save(device, false).await, NAME_TAKEN)?;
        self.0.tell(EntityChange::DeviceSaved(tenant, id));
        if let NewCredentials::Given(mut credentials) = new_credentials {
            let stored = self.0.stores.device_credentials.get(tenant, id).await?;
            credentials.id = stored.and_then(|stored| stored.id);
            credentials.version = None;
            self.save_credentials(tenant, id, credentials).await?;
        }
        Ok(saved)
    }

    /// Every device has the attribute from the start, so that dashboards and filters find it.
    async fn mark_inactive(&self, tenant: TenantId, id: DeviceId, now: i64) -> ServiceResult<()> {
        let mut values = Vec::with_capacity(16);
        kv::pack("active", kv::ValueRef::Bool(false), &mut values);
        let row = AttributeRow {
            subject: Subject::device(tenant, id),
            scope: AttributeScope::Server,
            ts: now,
            values: &values,
        };
        Ok(self.0.attributes.save(&[row]).await?)
    }

    async fn free_name(&self, tenant: TenantId, name: String, names: &NameConflict) -> ServiceResult<String> {
        let stores = &self.0.stores.devices;
        if stores.by_name(tenant, &name).await?.is_none() {
            return Ok(name);
        }
        for candidate in names.alternatives(&name) {
            if stores.by_name(tenant, &candidate).await?.is_none() {
                return Ok(candidate);
            }
        }
        no_free_name(&name)
    }

    async fn check(&self, device: &Device) -> ServiceResult<()> {
        check_fields(device)?;
        let customers = &self.0.stores.customers;
        if !device.customer_id.is_null()
            && customers
                .get(device.tenant_id, device.customer_id)
                .await?
                .is_none()
        {
            return Err(ServiceError::invalid(
                "Can't assign device to non-existent customer!",
            ));
        }
        Ok(())
    }

    async fn profile_of(&self, device: &Device) -> ServiceResult<DeviceProfile> {
        let tenant = device.tenant_id;
        if let Some(id) = device.device_profile_id {
            let found = self.0.stores.device_profiles.get(tenant, id).await?;
            return found
                .ok_or_else(|| ServiceError::invalid("Device is referencing non existing device profile!"));
        }
        if device.device_type.is_empty() {
            return device_profiles::ensure_default(&self.0, tenant).await;
        }
        device_profiles::find_or_create(&self.0, tenant, &device.device_type).await
    }

    /// Assigns the device to a customer of the tenant, or with the null id to none.
    ///
    /// # Errors
    /// There is no such device or customer.
    pub async fn assign(
        &self,
        tenant: TenantId,
        id: DeviceId,
        customer: CustomerId,
    ) -> ServiceResult<Device> {
        let mut device = self
            .0
            .stores
            .devices
            .get(tenant, id)
            .await?
            .ok_or_else(|| ServiceError::not_found(format!("Device with id [{id}] is not found")))?;
        if device.customer_id == customer {
            return Ok(device);
        }
        device.customer_id = customer;
        let keep = NewCredentials::AccessToken(None);
        self.save(tenant, device, keep, &NameConflict::Fail).await
    }

    /// Replaces the credentials of a device.
    ///
    /// # Errors
    /// They make no sense, are not the ones the device has, or belong to another device.
    pub async fn save_credentials(
        &self,
        tenant: TenantId,
        id: DeviceId,
        mut credentials: DeviceCredentials,
    ) -> ServiceResult<DeviceCredentials> {
        let stores = &self.0.stores.device_credentials;
        credentials.device_id = Some(id);
        match stores.get(tenant, id).await? {
            None => {
                credentials.id = Some(DeviceCredentialsId(new_uuid()));
                credentials.created_time = self.0.now();
            }
            Some(_) if credentials.id.is_none() => {
                return Err(ServiceError::invalid(
                    "Credentials for this device are already specified!",
                ));
            }
            Some(stored) if stored.id != credentials.id => {
                return Err(ServiceError::invalid(
                    "Unable to update non-existent device credentials!",
                ));
            }
            Some(stored) => credentials.created_time = stored.created_time,
        }
        let credentials = credentials::normalize(credentials)?;
        let saved = conflict(stores.save(tenant, credentials).await, CREDENTIALS_TAKEN)?;
        self.0.tell(EntityChange::DeviceCredentialsChanged(tenant, id));
        Ok(saved)
    }

    /// Deletes a device with its credentials, data, relations and alarms.
    ///
    /// # Errors
    /// Entity views show it, calculated fields name it, or the store failed; asking again goes on where it stopped.
    pub async fn delete(&self, tenant: TenantId, id: DeviceId) -> ServiceResult<()> {
        super::entity_views::refuse_viewed(&self.0, tenant, id.into(), "device").await?;
        super::calculated_fields::refuse_referenced(&self.0, tenant, id.into(), "device").await?;
        let subject = Subject::device(tenant, id);
        self.0.forget_data(subject).await?;
        self.0.stores.devices.delete(tenant, id).await?;
        self.0.tell(EntityChange::DeviceDeleted(tenant, id));
        self.0.forget_links(subject).await?;
        // Once more, for what the device sent in between.
        self.0.forget_data(subject).await?;
        Ok(())
    }
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
