//! What is asked for, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldline_alarm_rules::AlarmRuleSet;
use fieldline_core::ports::DeviceFilter;
use fieldline_entities::services::{ServiceError, ServiceResult};
use fieldline_model::entity::calculated_field::CalculatedFieldLimits;
use fieldline_model::entity::{CalculatedField, Device, RuleChain, RuleChainMetaData, RuleChainType};
use fieldline_model::page::PageLink;
use fieldline_model::replay::{ReplayLimits, ReplayRequest};
use fieldline_model::{
    CalculatedFieldId, DeviceId, DeviceProfileId, EntityId, EntityKey, EntityType, RuleChainId, RuleNodeId,
    TenantId,
};
use fieldline_rules::fields::RegisteredField;
use fieldline_rules::services::NodeServices;
use rustc_hash::FxHashSet;
use serde_json::Value;
use uuid::Uuid;

use super::difference::OriginatorNames;

const PAGE: u32 = 1000;
/// Series that are read side by side.
const MAX_SERIES: usize = 20_000;
const MAX_KEYS: usize = 1000;
/// Calculated fields that a request may bring.
const MAX_FIELDS: usize = 100;
const DEFAULT_TOLERANCE_MS: i64 = 1000;

/// Limits, each set.
pub(super) struct ReplayPlanLimits {
    pub(super) devices: usize,
    pub(super) messages: u64,
    pub(super) time_ms: u64,
    pub(super) samples: usize,
    pub(super) alarms: usize,
}

/// What is replayed.
pub(super) struct ReplayPlan {
    pub(super) tenant: TenantId,
    pub(super) chain: RuleChain,
    pub(super) metadata: RuleChainMetaData,
    pub(super) is_draft: bool,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) devices: Vec<Device>,
    /// The series of each device.
    pub(super) series: BTreeMap<EntityKey, Vec<String>>,
    /// `profileData.alarms` instead of those that are stored.
    pub(super) alarm_rules: Option<Value>,
    /// Calculated fields instead of those that are stored under the same id, or besides them.
    pub(super) fields: Vec<CalculatedField>,
    pub(super) alarm_tolerance_ms: i64,
    pub(super) limits: ReplayPlanLimits,
}

fn limit(name: &str, asked: Option<u32>, default: u32, max: u32) -> ServiceResult<u32> {
    match asked {
        None => Ok(default),
        Some(asked) if (1..=max).contains(&asked) => Ok(asked),
        Some(asked) => {
            let text = format!("limits.{name} must be from 1 to {max}, not {asked}!");
            Err(ServiceError::invalid(text))
        }
    }
}

impl ReplayPlanLimits {
    fn of(asked: ReplayLimits) -> ServiceResult<Self> {
        Ok(Self {
            devices: limit("devices", asked.devices, 100, 1000)? as usize,
            messages: limit("messages", asked.messages, 100_000, 1_000_000)?.into(),
            time_ms: limit("timeMs", asked.time_ms, 30_000, 300_000)?.into(),
            samples: limit("samples", asked.samples, 20, 1000)? as usize,
            alarms: limit("alarms", asked.alarms, 200, 10_000)? as usize,
        })
    }
}

/// A time that has a begin and an end.
pub(super) fn times(start: Option<i64>, end: Option<i64>) -> ServiceResult<(i64, i64)> {
    let start = start.ok_or_else(|| ServiceError::invalid("startTs is missing!"))?;
    let end = end.ok_or_else(|| ServiceError::invalid("endTs is missing!"))?;
    if start < 0 || end <= start {
        return Err(ServiceError::invalid(format!(
            "endTs ({end}) must be after startTs ({start}), which must not be negative!"
        )));
    }
    Ok((start, end))
}

impl ReplayPlan {
    /// Checks a request, and looks up what it is about.
    ///
    /// # Errors
    /// It makes no sense, names what is not there, or asks for too much; or a store failed.
    pub(super) async fn make(
        services: &Arc<NodeServices>,
        tenant: TenantId,
        id: RuleChainId,
        request: ReplayRequest,
    ) -> ServiceResult<Self> {
        let invalid = |text: String| ServiceError::invalid(text);
        let limits = ReplayPlanLimits::of(request.limits)?;
        let (start, end) = times(request.start_ts, request.end_ts)?;
        let tolerance = request.alarm_tolerance_ms.unwrap_or(DEFAULT_TOLERANCE_MS);
        if tolerance < 0 {
            return Err(invalid("alarmToleranceMs must not be negative!".to_owned()));
        }
        if request.keys.len() > MAX_KEYS {
            return Err(invalid(format!(
                "keys must not name more than {MAX_KEYS} series!"
            )));
        }
        if let Some(rules) = &request.alarm_rules {
            let rules = Value::Array(rules.clone());
            AlarmRuleSet::from_device_profile(&rules)
                .map_err(|error| invalid(format!("alarmRules: {error}")))?;
        }
        let stores = &services.stores.rule_chains;
        let chain = stores
            .get(tenant, id)
            .await?
            .ok_or_else(|| ServiceError::not_found(format!("Rule chain with id [{id}] is not found")))?;
        if chain.chain_type != RuleChainType::Core {
            return Err(invalid(
                "Only rule chains of type CORE can be replayed!".to_owned(),
            ));
        }
        let is_draft = request.metadata.is_some();
        let metadata = match &request.metadata {
            Some(draft) => with_ids(draft.clone())?,
            None => stores.metadata(tenant, id).await?.unwrap_or_default(),
        };
        let fields = draft_fields(tenant, request.calculated_fields.clone())?;
        let devices = devices(services, tenant, &request, limits.devices).await?;
        let mut series = BTreeMap::new();
        let mut count = 0;
        for device in &devices {
            let subject = EntityKey::device(tenant, device.id);
            let mut keys = services.series.keys(subject).await?;
            if !request.keys.is_empty() {
                keys.retain(|key| request.keys.contains(key));
            }
            count += keys.len();
            if count > MAX_SERIES {
                return Err(invalid(format!(
                    "The devices have more than {MAX_SERIES} series: choose fewer devices, or name keys!"
                )));
            }
            series.insert(subject, keys);
        }
        Ok(Self {
            tenant,
            chain,
            metadata,
            is_draft,
            start,
            end,
            devices,
            series,
            alarm_rules: request.alarm_rules.map(Value::Array),
            fields,
            alarm_tolerance_ms: tolerance,
            limits,
        })
    }

    pub(super) fn chain_id(&self) -> RuleChainId {
        self.chain.id
    }

    pub(super) fn device_ids(&self) -> Vec<EntityId> {
        self.series.keys().map(|subject| subject.entity).collect()
    }

    pub(super) fn names(&self) -> OriginatorNames {
        let name = |device: &Device| (device.id.into(), Arc::from(device.name.as_str()));
        self.devices.iter().map(name).collect()
    }

    pub(super) fn profiles(&self) -> FxHashSet<DeviceProfileId> {
        self.devices
            .iter()
            .filter_map(|device| device.device_profile_id)
            .collect()
    }
}

/// Drafts of calculated fields, each with an id.
fn draft_fields(tenant: TenantId, mut fields: Vec<CalculatedField>) -> ServiceResult<Vec<CalculatedField>> {
    if fields.len() > MAX_FIELDS {
        return Err(ServiceError::invalid(format!(
            "calculatedFields: at most {MAX_FIELDS} are replayed!"
        )));
    }
    let mut known = FxHashSet::default();
    for field in &mut fields {
        let wrong =
            |problem: &str| ServiceError::invalid(format!("calculatedFields: '{}': {problem}", field.name));
        field.tenant_id = tenant;
        if field.id.is_null() || field.id.0.is_nil() {
            field.id = CalculatedFieldId::new();
        }
        if !known.insert(field.id) {
            return Err(wrong("its id is there twice!"));
        }
        let entry = RegisteredField::new(field, &CalculatedFieldLimits::default());
        let entry = entry.ok_or_else(|| wrong("entityId is missing!"))?;
        if let Some(problem) = entry.problem() {
            return Err(wrong(problem));
        }
    }
    Ok(fields)
}

/// A draft whose nodes all have ids of their own: those that are new have none yet.
fn with_ids(mut draft: RuleChainMetaData) -> ServiceResult<RuleChainMetaData> {
    if draft
        .rule_chain_connections
        .as_ref()
        .is_some_and(|old| !old.is_empty())
    {
        let text = "metadata.ruleChainConnections is the older form: use a node of type rule chain instead!";
        return Err(ServiceError::invalid(text));
    }
    let mut known = FxHashSet::default();
    for node in &mut draft.nodes {
        if node.id.is_null() || node.id.0.is_nil() || !known.insert(node.id) {
            node.id = RuleNodeId::new();
        }
    }
    Ok(draft)
}

async fn devices(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    request: &ReplayRequest,
    max: usize,
) -> ServiceResult<Vec<Device>> {
    let stores = &services.stores.devices;
    let mut ids: BTreeSet<Uuid> = request.device_ids.iter().copied().collect();
    for entity in &request.entities {
        if entity.entity_type != EntityType::Device {
            return Err(ServiceError::invalid(format!(
                "entities: only devices are replayed, not {entity}!"
            )));
        }
        ids.insert(entity.id);
    }
    let too_many = |count: u64| {
        ServiceError::invalid(format!(
            "{count} devices are more than the {max} of limits.devices: choose fewer by deviceIds, entities or deviceProfileId, or raise the limit!"
        ))
    };
    if request.device_profile_id.is_some() && !ids.is_empty() {
        let text = "deviceProfileId cannot be given together with deviceIds or entities!";
        return Err(ServiceError::invalid(text));
    }
    if ids.is_empty() {
        if let Some(profile) = request.device_profile_id
            && services
                .stores
                .device_profiles
                .get(tenant, profile)
                .await?
                .is_none()
        {
            return Err(ServiceError::invalid(format!(
                "There is no device profile {profile}!"
            )));
        }
        let filter = DeviceFilter {
            profile: request.device_profile_id,
            ..DeviceFilter::default()
        };
        let found = stores.list(tenant, &filter, &PageLink::first(max as u32)).await?;
        if found.has_next {
            return Err(too_many(found.total_elements));
        }
        return Ok(found.data.into_iter().map(|info| info.device).collect());
    }
    if ids.len() > max {
        return Err(too_many(ids.len() as u64));
    }
    let ids: Vec<DeviceId> = ids.into_iter().map(DeviceId).collect();
    let found = stores.by_ids(tenant, &ids).await?;
    if let Some(missing) = ids
        .iter()
        .find(|id| !found.iter().any(|device| device.id == **id))
    {
        return Err(ServiceError::invalid(format!("There is no device {missing}!")));
    }
    Ok(found)
}

/// All chains of a tenant that run on the platform.
pub(super) async fn core_chains(
    services: &Arc<NodeServices>,
    tenant: TenantId,
) -> ServiceResult<Vec<RuleChain>> {
    let mut all = Vec::new();
    let mut link = PageLink::first(PAGE);
    loop {
        let found = services
            .stores
            .rule_chains
            .list(tenant, Some(RuleChainType::Core), &link)
            .await?;
        all.extend(found.data);
        if !found.has_next {
            return Ok(all);
        }
        link.page += 1;
    }
}
