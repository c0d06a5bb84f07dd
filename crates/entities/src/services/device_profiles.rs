//! Device profiles.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::ports::{DeviceFilter, StoreErrorKind};
use fieldline_devices::directory::certificate_credentials_id;
use fieldline_model::entity::{DeviceProfile, EntityDraft, OtaKind};
use fieldline_model::page::PageLink;
use fieldline_model::{DeviceProfileId, EntityType, RuleChainId, TenantId};
use serde_json::{Value, json};

use super::profiles::{self, ProfileRules, ProfileService};
use super::{ServiceContext, ServiceError, ServiceResult, ota_packages, random_text, validate};

mod transport;

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
pub struct DeviceProfileService(Arc<ServiceContext>);

impl DeviceProfileService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// What the profile sends messages to must be there.
    async fn check_references(&self, profile: &EntityDraft<DeviceProfile>) -> ServiceResult<()> {
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
        let assigned = [
            (OtaKind::Firmware, profile.firmware_id),
            (OtaKind::Software, profile.software_id),
        ];
        ota_packages::check_assigned(&self.0, tenant, profile.id, assigned).await?;
        profiles::check_dashboard(&self.0, tenant, profile.default_dashboard_id).await?;
        profiles::check_queue::<DeviceProfile>(&self.0, tenant, profile.default_queue_name.as_deref()).await
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
        let filter = DeviceFilter {
            profile: Some(id),
            ..DeviceFilter::default()
        };
        let devices = &self.0.stores.devices;
        let page = devices.list(tenant, &filter, &PageLink::first(1)).await?;
        Ok(page.total_elements > 0)
    }
}

#[async_trait]
impl ProfileService for DeviceProfileService {
    type ManagedProfile = DeviceProfile;

    async fn save(
        &self,
        tenant: TenantId,
        mut profile: EntityDraft<DeviceProfile>,
    ) -> ServiceResult<DeviceProfile> {
        profile.tenant_id = tenant;
        check(&profile)?;
        complete(&mut profile)?;
        transport::check(&profile)?;
        self.check_references(&profile).await?;
        profiles::check_default(&self.0, tenant, &profile).await?;
        let create = profile.id.is_none();
        let profile = match profile.id {
            Some(id) => {
                let old: DeviceProfile = profiles::stored(&self.0, tenant, id).await?;
                if old.transport_type != profile.transport_type && self.has_devices(tenant, id).await? {
                    return Err(ServiceError::invalid(
                        "Can't change device profile transport type because devices referenced it!",
                    ));
                }
                // There is always a default profile: it stops being one only when another takes its place.
                profile.is_default |= old.is_default;
                profile.into_update(&old)
            }
            None => profile.into_new(DeviceProfileId::new(), self.0.now()),
        };
        let saved = self.store(profile, create).await?;
        profiles::publish_profile_change::<DeviceProfile>(&self.0, tenant, saved.id);
        Ok(saved)
    }

    async fn set_default(&self, tenant: TenantId, id: DeviceProfileId) -> ServiceResult<DeviceProfile> {
        profiles::set_default(&self.0, tenant, id).await
    }

    async fn delete(&self, tenant: TenantId, profile: &DeviceProfile) -> ServiceResult<()> {
        profiles::delete(&self.0, tenant, profile).await
    }
}

impl ProfileRules for DeviceProfile {
    const MEMBERS: &'static str = "devices";

    fn fresh(id: DeviceProfileId, created_time: i64, tenant: TenantId, name: &str, is_default: bool) -> Self {
        Self {
            id,
            created_time,
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
            ..Self::default()
        }
    }
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
