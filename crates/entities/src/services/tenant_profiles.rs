//! Tenant profiles.

use std::sync::Arc;

use fieldline_core::events::EntityChange;
use fieldline_core::ports::StoreErrorKind;
use fieldline_model::entity::{EntityDraft, TenantProfile};
use fieldline_model::{EntityType, TenantId, TenantProfileId};
use serde_json::{Map, Value, json};

use super::{ServiceContext, ServiceError, ServiceResult, conflict, queues, saving, validate};

const NAME_TAKEN: &str = "Tenant profile with such name already exists!";

/// The rate limits of a configuration, with what people call them.
const RATES: [(&str, &str); 27] = [
    ("transportTenantMsgRateLimit", "Transport tenant messages"),
    (
        "transportTenantTelemetryMsgRateLimit",
        "Transport tenant telemetry messages",
    ),
    (
        "transportTenantTelemetryDataPointsRateLimit",
        "Transport tenant telemetry data points",
    ),
    ("transportDeviceMsgRateLimit", "Transport device messages"),
    (
        "transportDeviceTelemetryMsgRateLimit",
        "Transport device telemetry messages",
    ),
    (
        "transportDeviceTelemetryDataPointsRateLimit",
        "Transport device telemetry data points",
    ),
    ("transportGatewayMsgRateLimit", "Transport gateway messages"),
    (
        "transportGatewayTelemetryMsgRateLimit",
        "Transport gateway telemetry messages",
    ),
    (
        "transportGatewayTelemetryDataPointsRateLimit",
        "Transport gateway telemetry data points",
    ),
    (
        "transportGatewayDeviceMsgRateLimit",
        "Transport gateway device messages",
    ),
    (
        "transportGatewayDeviceTelemetryMsgRateLimit",
        "Transport gateway device telemetry messages",
    ),
    (
        "transportGatewayDeviceTelemetryDataPointsRateLimit",
        "Transport gateway device telemetry data points",
    ),
    ("tenantEntityExportRateLimit", "Entity version creation"),
    ("tenantEntityImportRateLimit", "Entity version load"),
    ("tenantNotificationRequestsRateLimit", "Notification requests"),
    (
        "tenantNotificationRequestsPerRuleRateLimit",
        "Notification requests per notification rule",
    ),
    ("tenantServerRestLimitsConfiguration", "REST requests for tenant"),
    (
        "customerServerRestLimitsConfiguration",
        "REST requests for customer",
    ),
    ("wsUpdatesPerSessionRateLimit", "WS updates per session"),
    (
        "cassandraReadQueryTenantCoreRateLimits",
        "Rest API and WS telemetry Cassandra read queries",
    ),
    (
        "cassandraWriteQueryTenantCoreRateLimits",
        "Rest API Cassandra write queries",
    ),
    (
        "cassandraReadQueryTenantRuleEngineRateLimits",
        "Rule Engine telemetry Cassandra read queries",
    ),
    (
        "cassandraWriteQueryTenantRuleEngineRateLimits",
        "Rule Engine telemetry Cassandra write queries",
    ),
    ("edgeEventRateLimits", "Edge events"),
    ("edgeEventRateLimitsPerEdge", "Edge events per edge"),
    ("edgeUplinkMessagesRateLimits", "Edge uplink messages"),
    (
        "edgeUplinkMessagesRateLimitsPerEdge",
        "Edge uplink messages per edge",
    ),
];

/// Field of a profile's configuration that lists the ranges of addresses and the hosts that external nodes of its tenants may
/// connect to although they are not public; an extension.
pub const ALLOWED_EGRESS: &str = "allowedEgress";
/// Entries of that list.
const MAX_EGRESS: usize = 1000;

/// Rules about tenant profiles.
#[derive(Clone)]
pub struct TenantProfileService(Arc<ServiceContext>);

impl TenantProfileService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the profile, or updates it where it has an id. What its configuration leaves out gets its default.
    ///
    /// # Errors
    /// A rule is broken, or the name is taken.
    pub async fn save(&self, mut profile: EntityDraft<TenantProfile>) -> ServiceResult<TenantProfile> {
        let stores = &*self.0.stores.tenant_profiles;
        check(&profile)?;
        complete(&mut profile.profile_data);
        let default = stores.default_profile().await?;
        let default_id = default.map(|default| default.id);
        if profile.is_default && default_id.is_some() && default_id != profile.id {
            return Err(ServiceError::invalid(
                "Another default tenant profile is present!",
            ));
        }
        let old = match profile.id {
            Some(id) => Some(
                stores
                    .get(id)
                    .await?
                    .ok_or_else(|| saving::not_there(EntityType::TenantProfile))?,
            ),
            None => None,
        };
        if let Some(old) = &old {
            queues::check_change(old, &profile)?;
            // There is always a default profile: it stops being one only when another takes its place.
            profile.is_default |= old.is_default;
        }
        let saved = saving::save(&self.0, stores, profile, old.as_ref()).await;
        let saved = conflict(saved, NAME_TAKEN)?;
        let id = saved.id;
        self.0.publish_change(EntityChange::saved(TenantId::NULL, id));
        if queues::align_all(&self.0, id).await? {
            queues::in_force(&self.0).await;
        }
        Ok(saved)
    }

    /// Makes the profile the only default one.
    ///
    /// # Errors
    /// There is no such profile.
    pub async fn set_default(&self, id: TenantProfileId) -> ServiceResult<TenantProfile> {
        let stores = &self.0.stores.tenant_profiles;
        let gone = || ServiceError::not_found(format!("Tenant profile with id [{id}] is not found"));
        if !stores.set_default(id).await? {
            return Err(gone());
        }
        self.0.publish_change(EntityChange::saved(TenantId::NULL, id));
        stores.get(id).await?.ok_or_else(gone)
    }

    /// Deletes the profile.
    ///
    /// # Errors
    /// It is the default one, or a tenant has it.
    pub async fn delete(&self, profile: &TenantProfile) -> ServiceResult<()> {
        if profile.is_default {
            return Err(ServiceError::invalid(
                "Deletion of Default Tenant Profile is prohibited!",
            ));
        }
        let id = profile.id;
        conflict(
            self.0.stores.tenant_profiles.delete(id).await,
            "The tenant profile referenced by the tenants cannot be deleted!",
        )?;
        self.0.publish_change(EntityChange::deleted(TenantId::NULL, id));
        Ok(())
    }
}

/// The default profile; created where there is none yet.
pub(super) async fn ensure_default(context: &ServiceContext) -> ServiceResult<TenantProfile> {
    let stores = &context.stores.tenant_profiles;
    if let Some(profile) = stores.default_profile().await? {
        return Ok(profile);
    }
    let profile = TenantProfile {
        id: TenantProfileId::new(),
        created_time: context.now(),
        name: "Default".to_owned(),
        description: Some("Default tenant profile".to_owned()),
        is_default: true,
        profile_data: json!({ "configuration": default_configuration(), "queueConfiguration": null }),
        ..TenantProfile::default()
    };
    match stores.insert(profile).await {
        // Somebody else was faster.
        Err(error) if error.kind() == StoreErrorKind::Conflict => {
            let found = stores.default_profile().await?;
            found.ok_or_else(|| error.into())
        }
        saved => Ok(saved?),
    }
}

fn check(profile: &TenantProfile) -> ServiceResult<()> {
    validate::required("Tenant profile name", &profile.name)?;
    validate::lengths(&[("name", Some(&profile.name))])?;
    if !profile.profile_data.is_object() {
        return Err(ServiceError::invalid("Tenant profile data should be specified!"));
    }
    if !profile
        .profile_data
        .get("configuration")
        .is_some_and(Value::is_object)
    {
        return Err(ServiceError::invalid(
            "Tenant profile data configuration should be specified!",
        ));
    }
    if let Some(Value::Object(configuration)) = profile.profile_data.get("configuration") {
        RATES
            .iter()
            .try_for_each(|rate| check_rate(rate, configuration))?;
    }
    check_egress(profile)?;
    queues::configured(profile).map(drop)
}

/// What is allowed besides has to be a list of texts. What they say is read by the rule engine, which reaches nothing where
/// it cannot read one.
fn check_egress(profile: &TenantProfile) -> ServiceResult<()> {
    let is_list = match profile.setting(ALLOWED_EGRESS) {
        None | Some(Value::Null) => true,
        Some(Value::Array(entries)) => entries.len() <= MAX_EGRESS && entries.iter().all(Value::is_string),
        Some(_) => false,
    };
    if is_list {
        return Ok(());
    }
    Err(ServiceError::invalid(format!(
        "Validation error: {ALLOWED_EGRESS} should be a list of at most {MAX_EGRESS} ranges of addresses and hosts!"
    )))
}

/// A rate limit must not have two numbers for the same time.
fn check_rate((name, what): &(&str, &str), configuration: &Map<String, Value>) -> ServiceResult<()> {
    let text = configuration
        .get(*name)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut periods: Vec<&str> = text
        .split(',')
        .filter_map(|limit| Some(limit.split_once(':')?.1.trim()))
        .collect();
    let all = periods.len();
    periods.sort_unstable();
    periods.dedup();
    if periods.len() < all {
        return Err(ServiceError::invalid(format!(
            "Validation error: {what} rate limit has duplicate 'Per seconds' configuration."
        )));
    }
    Ok(())
}

/// Fills in what a configuration leaves out, so that clients always find every field.
fn complete(profile_data: &mut Value) {
    if let Some(Value::Object(configuration)) = profile_data.get_mut("configuration") {
        for (name, value) in default_configuration() {
            configuration.entry(name).or_insert(value);
        }
    }
}

/// No limits on what a tenant has and sends; the limits of calculated fields are those of the reference.
fn default_configuration() -> Map<String, Value> {
    const UNLIMITED: &str = "maxDevices maxAssets maxCustomers maxUsers maxDashboards maxRuleChains maxEdges \
        maxResourcesInBytes maxOtaPackagesInBytes maxResourceSize maxTransportMessages maxTransportDataPoints \
        maxREExecutions maxJSExecutions maxTbelExecutions maxDPStorageDays maxRuleNodeExecutionsPerMessage \
        maxDebugModeDurationMinutes maxEmails maxSms maxCreatedAlarms maxWsSessionsPerTenant \
        maxWsSessionsPerCustomer maxWsSessionsPerRegularUser maxWsSessionsPerPublicUser wsMsgQueueLimitPerSession \
        maxWsSubscriptionsPerTenant maxWsSubscriptionsPerCustomer maxWsSubscriptionsPerRegularUser \
        maxWsSubscriptionsPerPublicUser defaultStorageTtlDays alarmsTtlDays rpcTtlDays queueStatsTtlDays \
        ruleEngineExceptionsTtlDays warnThreshold";
    const NUMBERS: [(&str, u32); 13] = [
        ("maxCalculatedFieldsPerEntity", 5),
        ("maxArgumentsPerCF", 10),
        ("minAllowedScheduledUpdateIntervalInSecForCF", 10),
        ("maxRelationLevelPerCfArgument", 2),
        ("maxRelatedEntitiesToReturnPerCfArgument", 100),
        ("maxDataPointsPerRollingArg", 1_000),
        ("maxStateSizeInKBytes", 32),
        ("maxSingleValueArgumentSizeInKBytes", 2),
        ("minAllowedDeduplicationIntervalInSecForCF", 10),
        ("minAllowedAggregationIntervalInSecForCF", 60),
        ("intermediateAggregationIntervalInSecForCF", 300),
        ("cfReevaluationCheckInterval", 60),
        ("alarmsReevaluationInterval", 60),
    ];
    let mut configuration = Map::new();
    configuration.insert("type".to_owned(), "DEFAULT".into());
    configuration.insert("smsEnabled".to_owned(), true.into());
    for name in UNLIMITED.split_whitespace() {
        configuration.insert(name.to_owned(), 0.into());
    }
    for (name, value) in NUMBERS {
        configuration.insert(name.to_owned(), value.into());
    }
    for (name, _) in RATES {
        configuration.insert(name.to_owned(), Value::Null);
    }
    configuration
}
