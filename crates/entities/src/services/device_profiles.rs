//! Device profiles.

use fieldline_core::ports::DeviceFilter;
use fieldline_devices::directory::certificate_credentials_id;
use fieldline_model::entity::{DeviceProfile, EntityDraft, OtaKind};
use fieldline_model::page::PageLink;
use fieldline_model::{DeviceProfileId, EntityType, RuleChainId, TenantId};
use serde_json::{Value, json};

use super::profiles::{self, ProfileRules};
use super::{ServiceContext, ServiceError, ServiceResult, ota_packages, random_text, resources, validate};

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

    async fn prepare(context: &ServiceContext, profile: &mut EntityDraft<Self>) -> ServiceResult<()> {
        check(profile)?;
        complete(profile)?;
        transport::check(profile)?;
        check_references(context, profile).await?;
        let (tenant, title) = (
            profile.tenant_id,
            format!("\"{}\" device profile image", profile.name),
        );
        resources::keep_image(context, tenant, &title, &mut profile.image).await
    }

    async fn check_update(
        context: &ServiceContext,
        old: &Self,
        new: &EntityDraft<Self>,
    ) -> ServiceResult<()> {
        if old.transport_type != new.transport_type && has_devices(context, old.tenant_id, old.id).await? {
            return Err(ServiceError::invalid(
                "Can't change device profile transport type because devices referenced it!",
            ));
        }
        Ok(())
    }

    /// Name and provisioning key are both unique.
    async fn taken(context: &ServiceContext, profile: &Self) -> ServiceResult<String> {
        let stores = &context.stores.device_profiles;
        let namesake = stores.by_name(profile.tenant_id, &profile.name).await?;
        let what = if namesake.is_some_and(|namesake| namesake.id != profile.id) {
            "name"
        } else if profile.provision_type.as_deref() == Some(X509_CHAIN) {
            "certificate"
        } else {
            "provision device key"
        };
        Ok(format!("Device profile with such {what} already exists!"))
    }
}

/// What the profile sends messages to must be there.
async fn check_references(
    context: &ServiceContext,
    profile: &EntityDraft<DeviceProfile>,
) -> ServiceResult<()> {
    let tenant = profile.tenant_id;
    for chain in [profile.default_rule_chain_id, profile.default_edge_rule_chain_id]
        .into_iter()
        .flatten()
    {
        let known = match chain.entity_type {
            EntityType::RuleChain => {
                context
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
    ota_packages::check_assigned(context, tenant, profile.id, assigned).await?;
    profiles::check_dashboard(context, tenant, profile.default_dashboard_id).await?;
    profiles::check_queue::<DeviceProfile>(context, tenant, profile.default_queue_name.as_deref()).await
}

async fn has_devices(context: &ServiceContext, tenant: TenantId, id: DeviceProfileId) -> ServiceResult<bool> {
    let filter = DeviceFilter {
        profile: Some(id),
        ..DeviceFilter::default()
    };
    let devices = &context.stores.devices;
    let page = devices.list(tenant, &filter, &PageLink::first(1)).await?;
    Ok(page.total_elements > 0)
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
