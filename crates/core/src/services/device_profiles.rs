//! Device profiles.

use std::sync::Arc;

use fieldline_model::entity::DeviceProfile;
use fieldline_model::page::PageLink;
use fieldline_model::{DeviceProfileId, EntityType, RuleChainId, Subject, TenantId};
use serde_json::{Value, json};

use super::{Context, ServiceError, ServiceResult, conflict, queues, random_text, validate};
use crate::devices::certificate_credentials_id;
use crate::events::EntityChange;
use crate::ports::{DeviceFilter, StoreErrorKind};

const DISABLED: &str = "DISABLED";
const X509_CHAIN: &str = "X509_CERTIFICATE_CHAIN";
const PROVISION_TYPES: [&str; 4] = [
    DISABLED,
    "ALLOW_CREATE_NEW_DEVICES",
    "CHECK_PRE_PROVISIONED_DEVICES",
    X509_CHAIN,
];
/// Length of provisioning keys and secrets that the platform makes up.
const SECRET_LENGTH: usize = 20;

/// Rules about device profiles.
#[derive(Clone)]
pub struct DeviceProfiles(Arc<Context>);

impl DeviceProfiles {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the profile, or updates it where it has an id. Devices of a renamed profile change their type with it.
    ///
    /// # Errors
    /// A rule is broken, or name or provisioning key are taken.
    pub async fn save(&self, tenant: TenantId, mut profile: DeviceProfile) -> ServiceResult<DeviceProfile> {
        let stores = &self.0.stores.device_profiles;
        profile.tenant_id = tenant;
        check(&profile)?;
        complete(&mut profile)?;
        self.check_references(&profile).await?;
        let default = stores.default_profile(tenant).await?;
        let default_id = default.and_then(|default| default.id);
        if profile.is_default && default_id.is_some() && default_id != profile.id {
            return Err(ServiceError::invalid(
                "Another default device profile is present in scope of current tenant!",
            ));
        }
        let saved = match profile.id {
            Some(id) => self.update(tenant, id, profile).await?,
            None => {
                profile.id = Some(DeviceProfileId::new());
                profile.created_time = self.0.now();
                self.store(profile, true).await?
            }
        };
        self.0.tell(EntityChange::DeviceProfileChanged(
            tenant,
            saved.id.unwrap_or_default(),
        ));
        Ok(saved)
    }

    /// What the profile sends messages to must be there.
    async fn check_references(&self, profile: &DeviceProfile) -> ServiceResult<()> {
        let tenant = profile.tenant_id;
        for chain in [profile.default_rule_chain_id, profile.default_edge_rule_chain_id]
            .into_iter()
            .flatten()
        {
            let known = match chain.entity_type {
                EntityType::RuleChain => {
                    self.0
                        .stores
                        .rule_chains
                        .get(tenant, RuleChainId(chain.id))
                        .await?
                }
                _ => None,
            };
            if known.is_none() {
                return Err(ServiceError::invalid("Can't assign non-existent rule chain!"));
            }
        }
        match profile
            .default_queue_name
            .as_deref()
            .filter(|name| !name.is_empty())
        {
            Some(name) if !queues::exists(&self.0, tenant, name).await? => Err(ServiceError::invalid(
                "Device profile is referencing to non-existent queue!",
            )),
            _ => Ok(()),
        }
    }

    async fn update(
        &self,
        tenant: TenantId,
        id: DeviceProfileId,
        mut profile: DeviceProfile,
    ) -> ServiceResult<DeviceProfile> {
        let old = self
            .0
            .stores
            .device_profiles
            .get(tenant, id)
            .await?
            .ok_or_else(|| ServiceError::invalid("Can't update non existing device profile!"))?;
        if old.transport_type != profile.transport_type && self.has_devices(tenant, id).await? {
            return Err(ServiceError::invalid(
                "Can't change device profile transport type because devices referenced it!",
            ));
        }
        profile.created_time = old.created_time;
        // There is always a default profile: it stops being one only when another takes its place.
        profile.is_default |= old.is_default;
        let saved = self.store(profile, false).await?;
        if saved.name != old.name {
            self.rename_type(tenant, id, &saved.name).await?;
        }
        Ok(saved)
    }

    async fn store(&self, profile: DeviceProfile, create: bool) -> ServiceResult<DeviceProfile> {
        let stores = &self.0.stores.device_profiles;
        let (tenant, id, name) = (profile.tenant_id, profile.id, profile.name.clone());
        let chain = profile.provision_type.as_deref() == Some(X509_CHAIN);
        match stores.save(profile, create).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                // Name and provisioning key are both unique; say which it was.
                let namesake = stores.by_name(tenant, &name).await?;
                let message = if namesake.is_some_and(|namesake| namesake.id != id) {
                    "Device profile with such name already exists!"
                } else if chain {
                    "Device profile with such certificate already exists!"
                } else {
                    "Device profile with such provision device key already exists!"
                };
                Err(ServiceError::from(error).with_message(message))
            }
            saved => Ok(saved?),
        }
    }

    async fn has_devices(&self, tenant: TenantId, id: DeviceProfileId) -> ServiceResult<bool> {
        let page = self
            .0
            .stores
            .devices
            .list(tenant, &of_profile(id), &PageLink::first(1))
            .await?;
        Ok(page.total_elements > 0)
    }

    async fn rename_type(&self, tenant: TenantId, id: DeviceProfileId, name: &str) -> ServiceResult<()> {
        let stores = &self.0.stores.devices;
        let mut link = PageLink::first(100);
        loop {
            let page = stores.list(tenant, &of_profile(id), &link).await?;
            for info in page.data {
                let mut device = info.device;
                let Some(device_id) = device.id.filter(|_| device.device_type != name) else {
                    continue;
                };
                name.clone_into(&mut device.device_type);
                // What somebody else changes at this moment wins over the rename of the type.
                match stores.save(device, false).await {
                    Err(error) if error.kind() == StoreErrorKind::VersionConflict => continue,
                    saved => saved?,
                };
                self.0.tell(EntityChange::DeviceSaved(tenant, device_id));
            }
            if !page.has_next {
                return Ok(());
            }
            link.page += 1;
        }
    }

    /// Makes the profile the only default one of its tenant.
    ///
    /// # Errors
    /// There is no such profile.
    pub async fn set_default(&self, tenant: TenantId, id: DeviceProfileId) -> ServiceResult<DeviceProfile> {
        let stores = &self.0.stores.device_profiles;
        let gone = || ServiceError::not_found(format!("Device profile with id [{id}] is not found"));
        if !stores.set_default(tenant, id).await? {
            return Err(gone());
        }
        self.0.tell(EntityChange::DeviceProfileChanged(tenant, id));
        stores.get(tenant, id).await?.ok_or_else(gone)
    }

    /// Deletes the profile.
    ///
    /// # Errors
    /// It is the default one, or a device has it.
    pub async fn delete(&self, tenant: TenantId, profile: &DeviceProfile) -> ServiceResult<()> {
        if profile.is_default {
            return Err(ServiceError::invalid(
                "Deletion of Default Device Profile is prohibited!",
            ));
        }
        let id = profile.id.unwrap_or_default();
        conflict(
            self.0.stores.device_profiles.delete(tenant, id).await,
            "The device profile referenced by the devices cannot be deleted!",
        )?;
        super::calculated_fields::forget(&self.0, tenant, id.into()).await?;
        self.0.tell(EntityChange::DeviceProfileChanged(tenant, id));
        let subject = Subject {
            tenant,
            entity: id.into(),
        };
        Ok(self.0.forget_links(subject).await?)
    }
}

fn of_profile(id: DeviceProfileId) -> DeviceFilter {
    DeviceFilter {
        profile: Some(id),
        ..DeviceFilter::default()
    }
}

/// The default profile of the tenant; created where there is none yet.
pub(super) async fn ensure_default(context: &Context, tenant: TenantId) -> ServiceResult<DeviceProfile> {
    if let Some(profile) = context.stores.device_profiles.default_profile(tenant).await? {
        return Ok(profile);
    }
    create(context, tenant, "default", true).await
}

/// The profile of that name; created where there is none yet.
pub(super) async fn find_or_create(
    context: &Context,
    tenant: TenantId,
    name: &str,
) -> ServiceResult<DeviceProfile> {
    let stores = &context.stores.device_profiles;
    if let Some(profile) = stores.by_name(tenant, name).await? {
        return Ok(profile);
    }
    let is_default = name == "default" && stores.default_profile(tenant).await?.is_none();
    create(context, tenant, name, is_default).await
}

async fn create(
    context: &Context,
    tenant: TenantId,
    name: &str,
    is_default: bool,
) -> ServiceResult<DeviceProfile> {
    let stores = &context.stores.device_profiles;
    let profile = DeviceProfile {
        id: Some(DeviceProfileId::new()),
        created_time: context.now(),
        tenant_id: tenant,
        name: name.to_owned(),
        description: Some("Default device profile".to_owned()),
        is_default,
        profile_type: Some("DEFAULT".to_owned()),
        provision_type: Some(DISABLED.to_owned()),
        profile_data: json!({
            "configuration": { "type": "DEFAULT" },
            "transportConfiguration": { "type": "DEFAULT" },
            "provisionConfiguration": { "type": DISABLED, "provisionDeviceSecret": null },
            "alarms": null,
        }),
        ..DeviceProfile::default()
    };
    let saved = match stores.save(profile, true).await {
        // Somebody else was faster.
        Err(error) if error.kind() == StoreErrorKind::Conflict => {
            let found = stores.by_name(tenant, name).await?;
            return found.ok_or_else(|| error.into());
        }
        saved => saved?,
    };
    context.tell(EntityChange::DeviceProfileChanged(
        tenant,
        saved.id.unwrap_or_default(),
    ));
    Ok(saved)
}

fn check(profile: &DeviceProfile) -> ServiceResult<()> {
    validate::required("Device profile name", &profile.name)?;
    validate::lengths(&[
        ("name", Some(&profile.name)),
        ("queueName", profile.default_queue_name.as_deref()),
        ("provisionDeviceKey", profile.provision_device_key.as_deref()),
    ])?;
    validate::json_object("profileData", Some(&profile.profile_data))?;
    let Some(alarms) = profile.profile_data.get("alarms").and_then(Value::as_array) else {
        return Ok(());
    };
    let mut types = Vec::with_capacity(alarms.len());
    for alarm in alarms {
        let alarm_type = alarm.get("alarmType").and_then(Value::as_str).unwrap_or_default();
        if alarm_type.is_empty() {
            return Err(ServiceError::invalid("Alarm rule type should be specified!"));
        }
        if types.contains(&alarm_type) {
            return Err(ServiceError::invalid(format!(
                "Can't create device profile with the same alarm rule types: \"{alarm_type}\"!"
            )));
        }
        types.push(alarm_type);
    }
    Ok(())
}

/// Fills in what a client may leave out, and what the platform makes up: provisioning keys and secrets.
fn complete(profile: &mut DeviceProfile) -> ServiceResult<()> {
    profile.profile_type.get_or_insert_with(|| "DEFAULT".to_owned());
    if !profile.profile_data.is_object() {
        profile.profile_data = json!({});
    }
    let transport = profile.transport_type.name();
    let Some(data) = profile.profile_data.as_object_mut() else {
        return Ok(());
    };
    default_section(data, "configuration", "DEFAULT");
    default_section(data, "transportConfiguration", transport);
    let given = data
        .get("provisionConfiguration")
        .and_then(|provision| provision.get("type"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    let kind = profile
        .provision_type
        .take()
        .or(given)
        .unwrap_or_else(|| DISABLED.to_owned());
    if !PROVISION_TYPES.contains(&kind.as_str()) {
        return Err(ServiceError::invalid(format!(
            "Unknown device profile provision type '{kind}'!"
        )));
    }
    default_section(data, "provisionConfiguration", &kind);
    if let Some(Value::Object(provision)) = data.get_mut("provisionConfiguration") {
        provision.insert("type".to_owned(), kind.as_str().into());
        let secret = provision
            .get("provisionDeviceSecret")
            .and_then(Value::as_str)
            .filter(|secret| !secret.trim().is_empty())
            .map(str::to_owned);
        complete_provisioning(&kind, secret, provision, &mut profile.provision_device_key)?;
    }
    profile.provision_type = Some(kind);
    Ok(())
}

fn complete_provisioning(
    kind: &str,
    secret: Option<String>,
    provision: &mut serde_json::Map<String, Value>,
    key: &mut Option<String>,
) -> ServiceResult<()> {
    let set_secret = |provision: &mut serde_json::Map<String, Value>, secret: Value| {
        provision.insert("provisionDeviceSecret".to_owned(), secret);
    };
    let blank = key.as_ref().is_none_or(|key| key.trim().is_empty());
    match kind {
        DISABLED => {
            // An empty key would collide with that of the next profile.
            if blank {
                *key = None;
            }
            provision.entry("provisionDeviceSecret").or_insert(Value::Null);
        }
        X509_CHAIN => {
            let chain = secret
                .ok_or_else(|| ServiceError::invalid("Device profile certificate should be specified!"))?;
            *key = Some(certificate_credentials_id(leaf(&chain)));
            set_secret(provision, chain.into());
        }
        _ => {
            if blank {
                *key = Some(random_text(SECRET_LENGTH));
            }
            let secret = secret.unwrap_or_else(|| random_text(SECRET_LENGTH));
            set_secret(provision, secret.into());
        }
    }
    Ok(())
}

/// The first certificate of a PEM chain, or the text as it is where it is no PEM.
fn leaf(chain: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----";
    match chain.find(END) {
        Some(at) => chain.get(..at + END.len()).unwrap_or(chain),
        None => chain,
    }
}

fn default_section(data: &mut serde_json::Map<String, Value>, name: &str, kind: &str) {
    if !data.get(name).is_some_and(Value::is_object) {
        data.insert(name.to_owned(), json!({ "type": kind }));
    }
}
