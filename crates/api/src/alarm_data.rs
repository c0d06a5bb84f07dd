//! Alarm queries by an entity filter, for REST and for subscriptions.

use std::collections::{BTreeMap, HashMap, HashSet};

use fieldline_core::ports::{AlarmQuery, AlarmScope, MAX_ALARM_ENTITIES};
use fieldline_entities::access::{AccessError, AccessOperation, Principal};
use fieldline_model::entity::{AlarmInfo, AlarmSearchStatus, AlarmSeverity, Authority};
use fieldline_model::page::{PageData, PageLink, SortOrder};
use fieldline_model::query::{
    AliasId, ComplexOperation, DataPageLink, DataSortOrder, EntityDataQuery, EntityFilter, EntityQueryKey,
    KeyFilter, KeyType, LatestValues, TsValue,
};
use fieldline_model::{AlarmId, EntityId, EntityType, UserId};
use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

/// Most alarms per page.
const MAX_PAGE: i64 = 10_000;

/// Conditions that `find` and `count` share; absent and empty conditions match all alarms.
#[derive(Debug, Clone, Deserialize, Default, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
#[schema(as = Conditions)]
pub(crate) struct AlarmConditions {
    /// Created at or after this time, milliseconds.
    start_ts: Option<i64>,
    /// Created at or before this time, milliseconds.
    end_ts: Option<i64>,
    /// Length of a time window in milliseconds: the last ones, or in a page query those from the start time. Replaces
    /// the end time.
    time_window: Option<i64>,
    /// Types.
    type_list: Option<Vec<String>>,
    /// States.
    status_list: Option<Vec<AlarmSearchStatus>>,
    /// Severities.
    severity_list: Option<Vec<AlarmSeverity>>,
    /// Also finds alarms that propagate to the entities.
    search_propagated_alarms: bool,
    /// Assigned to this user.
    assignee_id: Option<UserId>,
}

impl AlarmConditions {
    /// With a time window: it begins at the start time if `from_start` and one is given, otherwise it ends now.
    fn query(&self, scope: AlarmScope, now: i64, from_start: bool) -> AlarmQuery {
        let present = |time: Option<i64>| time.filter(|time| *time > 0);
        let start = present(self.start_ts);
        let (from, to) = match (present(self.time_window), start.filter(|_| from_start)) {
            (Some(window), Some(start)) => (Some(start), Some(start.saturating_add(window))),
            (Some(window), None) => (Some(now.saturating_sub(window)), Some(now)),
            (None, _) => (start, present(self.end_ts)),
        };
        let query = AlarmQuery {
            scope,
            severities: self.severity_list.clone().unwrap_or_default(),
            types: self.type_list.clone().unwrap_or_default(),
            assignee: self.assignee_id,
            from,
            to,
            ..AlarmQuery::default()
        };
        query.in_states(self.status_list.as_deref().unwrap_or_default())
    }
}

#[derive(Debug, Clone, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmDataPageLink {
    /// Alarms per page.
    page_size: i64,
    /// Page index from 0.
    #[serde(default)]
    page: i64,
    /// Text that the type, severity or status must contain.
    text_search: Option<String>,
    /// Newest first by default.
    sort_order: Option<DataSortOrder>,
    #[serde(flatten)]
    conditions: AlarmConditions,
}

/// The alarms to find, and the entity data to show with them.
#[derive(Debug, Clone, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmDataQuery {
    /// The entities whose alarms are found.
    entity_filter: EntityFilter,
    /// Conditions on the entities.
    #[serde(default)]
    key_filters: Option<Vec<KeyFilter>>,
    /// Whether all conditions must hold or one is enough; all by default.
    #[serde(default)]
    key_filters_operation: Option<ComplexOperation>,
    /// Fields of the entity to show.
    entity_fields: Option<Vec<EntityQueryKey>>,
    /// Attributes and latest values of the entity to show.
    latest_values: Option<Vec<EntityQueryKey>>,
    /// Fields of the alarm to show; ignored, all fields are shown.
    #[allow(dead_code, reason = "part of the shape, and described")]
    alarm_fields: Option<Vec<EntityQueryKey>>,
    /// The page.
    page_link: AlarmDataPageLink,
}

impl AlarmDataQuery {
    /// Returns the keys of the attributes and latest values to show.
    pub(crate) fn latest_keys(&self) -> &[EntityQueryKey] {
        self.latest_values.as_deref().unwrap_or_default()
    }
}

/// The alarms to count.
#[derive(Debug, Clone, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmCountQuery {
    /// The entities whose alarms are counted; all if absent.
    entity_filter: Option<EntityFilter>,
    /// Conditions on the entities.
    #[serde(default)]
    key_filters: Option<Vec<KeyFilter>>,
    /// Whether all conditions must hold or one is enough; all by default.
    #[serde(default)]
    key_filters_operation: Option<ComplexOperation>,
    #[serde(flatten)]
    conditions: AlarmConditions,
}

/// An alarm with the entity it was found for.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmData {
    #[serde(flatten)]
    pub(crate) info: AlarmInfo,
    /// The entity of the filter that the alarm belongs or propagates to.
    pub(crate) entity_id: Option<EntityId>,
    /// The requested data of the entity, by kind and name.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, TsValue>>)]
    pub(crate) latest: LatestValues,
}

/// Returns a page of the alarms of the entities that a filter selects.
pub(crate) async fn find(
    api: &ApiState,
    caller: &Principal,
    query: &AlarmDataQuery,
) -> ApiResult<PageData<AlarmData>> {
    let link = &query.page_link;
    check_assignee(api, caller, &link.conditions).await?;
    let by_entity = link.sort_order.as_ref().filter(|sort| sorts_entities(&sort.key));
    let page = page(link, by_entity.is_some())?;
    let filter = AlarmEntityFilter {
        entities: &query.entity_filter,
        keys: query.key_filters.as_deref().unwrap_or_default(),
        operation: query.key_filters_operation.unwrap_or_default(),
        sort: by_entity,
    };
    let scope = scope(api, caller, &filter, link.conditions.search_propagated_alarms).await?;
    let query_of_alarms = AlarmQuery {
        by_entity: by_entity.is_some(),
        ..narrowed(caller, link.conditions.query(scope, api.clock.now_ms(), true))
    };
    let alarms = api
        .entities
        .alarms
        .list(caller.tenant, &query_of_alarms, &page)
        .await?;
    let found = found_at(api, caller, &query_of_alarms.scope, &alarms.data).await?;
    let latest = latest(api, caller, query, &found).await?;
    let mut found = found.into_iter();
    Ok(alarms.map(|info| {
        let entity_id = found.next().flatten();
        AlarmData {
            latest: entity_id
                .and_then(|entity| latest.get(&entity).cloned())
                .unwrap_or_default(),
            entity_id,
            info,
        }
    }))
}

/// Counts the alarms of the entities that a filter selects.
pub(crate) async fn count(api: &ApiState, caller: &Principal, query: &AlarmCountQuery) -> ApiResult<u64> {
    check_assignee(api, caller, &query.conditions).await?;
    let scope = match &query.entity_filter {
        Some(entities) => {
            let filter = AlarmEntityFilter {
                entities,
                keys: query.key_filters.as_deref().unwrap_or_default(),
                operation: query.key_filters_operation.unwrap_or_default(),
                sort: None,
            };
            scope(api, caller, &filter, query.conditions.search_propagated_alarms).await?
        }
        None => AlarmScope::All,
    };
    let query = narrowed(caller, query.conditions.query(scope, api.clock.now_ms(), false));
    Ok(api.entities.alarms.count(caller.tenant, &query).await?)
}

async fn check_assignee(api: &ApiState, caller: &Principal, conditions: &AlarmConditions) -> ApiResult<()> {
    if let Some(user) = conditions.assignee_id {
        api.check(caller, user, AccessOperation::Read).await?;
    }
    Ok(())
}

/// The entities whose alarms are queried.
struct AlarmEntityFilter<'a> {
    entities: &'a EntityFilter,
    keys: &'a [KeyFilter],
    operation: ComplexOperation,
    /// Order by entity data that alarms do not have.
    sort: Option<&'a DataSortOrder>,
}

/// Resolves a filter into a scope. Entities that the caller must not see are left out.
async fn scope(
    api: &ApiState,
    caller: &Principal,
    filter: &AlarmEntityFilter<'_>,
    propagated: bool,
) -> ApiResult<AlarmScope> {
    // A whole type needs no list of its entities.
    if let EntityFilter::EntityType { entity_type } = filter.entities
        && filter.keys.is_empty()
        && filter.sort.is_none()
    {
        return Ok(if propagated {
            AlarmScope::AffectingType(*entity_type)
        } else {
            AlarmScope::OriginatorType(*entity_type)
        });
    }
    let readable = match filter.entities {
        EntityFilter::SingleEntity {
            single_entity: AliasId::Entity(entity),
        } if filter.keys.is_empty() => match api.check(caller, *entity, AccessOperation::Read).await {
            Ok(_) => vec![*entity],
            Err(AccessError::NotFound(_) | AccessError::Denied) => Vec::new(),
            Err(error) => return Err(error.into()),
        },
        entities => {
            let query = EntityDataQuery {
                entity_filter: entities.clone(),
                key_filters: filter.keys.to_vec(),
                key_filters_operation: filter.operation,
                entity_fields: Vec::new(),
                latest_values: Vec::new(),
                page_link: DataPageLink {
                    page_size: MAX_ALARM_ENTITIES as i64,
                    sort_order: Some(filter.sort.cloned().unwrap_or_else(|| DataSortOrder {
                        key: EntityQueryKey::new(KeyType::EntityField, "createdTime"),
                        direction: SortOrder::Asc,
                    })),
                    ..DataPageLink::default()
                },
            };
            let found = api.queries.find(caller, &query).await?;
            found.data.into_iter().map(|data| data.entity_id).collect()
        }
    };
    Ok(if propagated {
        AlarmScope::AffectingAny(readable)
    } else {
        AlarmScope::Originators(readable)
    })
}

/// Whether the sort key belongs to the entities: values, and fields that alarms do not show.
fn sorts_entities(key: &EntityQueryKey) -> bool {
    match key.key_type {
        KeyType::AlarmField => false,
        KeyType::EntityField => !matches!(key.key.as_str(), "name" | "label"),
        _ => true,
    }
}

/// Returns the list property that a query key means.
fn property(key: &EntityQueryKey) -> String {
    let name = match (key.key_type, key.key.as_str()) {
        (KeyType::EntityField, "name") => "originatorName",
        (KeyType::EntityField, "label") => "originatorLabel",
        // `created_time` is the column name in ThingsBoard, and clients sort by it.
        (_, "created_time") => "createdTime",
        (_, "startTime") => "startTs",
        (_, "endTime") => "endTs",
        (_, "ackTime") => "ackTs",
        (_, "clearTime") => "clearTs",
        (_, "assignTime") => "assignTs",
        (_, "assigneeId" | "assigneeEmail") => "assignee",
        (_, "originatorId" | "originatorDisplayName") => "originatorName",
        (_, other) => other,
    };
    name.to_owned()
}

fn page(link: &AlarmDataPageLink, by_entity: bool) -> ApiResult<PageLink> {
    if link.page_size < 1 {
        return Err(ApiError::bad_request(format!(
            "Incorrect page link page size '{}'. Page size must be greater than zero.",
            link.page_size
        )));
    }
    let number = u32::try_from(link.page).map_err(|_| {
        ApiError::bad_request(format!(
            "Incorrect page link page '{}'. Page must be positive integer.",
            link.page
        ))
    })?;
    let sort = link.sort_order.as_ref().filter(|_| !by_entity);
    Ok(PageLink {
        page_size: link.page_size.min(MAX_PAGE) as u32,
        page: number,
        text_search: link.text_search.clone().filter(|text| !text.is_empty()),
        sort_order: sort.map(|sort| sort.direction),
        sort_property: sort.map(|sort| property(&sort.key)),
    })
}

/// Narrows a query of a whole type: customer users see only the alarms of their customer.
fn narrowed(caller: &Principal, query: AlarmQuery) -> AlarmQuery {
    match query.scope {
        AlarmScope::AffectingAny(_) | AlarmScope::Originators(_) => query,
        _ => visible(caller, query),
    }
}

/// Narrows a query to the alarms that the caller may see: those of the tenant, or of the customer.
pub(crate) fn visible(caller: &Principal, query: AlarmQuery) -> AlarmQuery {
    AlarmQuery {
        customer: (caller.authority == Authority::CustomerUser).then_some(caller.customer),
        ..query
    }
}

/// Returns for each alarm the entity of the filter that it was found for.
async fn found_at(
    api: &ApiState,
    caller: &Principal,
    scope: &AlarmScope,
    infos: &[AlarmInfo],
) -> ApiResult<Vec<Option<EntityId>>> {
    let listed: HashSet<EntityId> = match scope {
        AlarmScope::AffectingAny(entities) => entities.iter().copied().collect(),
        _ => HashSet::new(),
    };
    let fits = |entity: EntityId| match scope {
        AlarmScope::AffectingType(kind) => entity.entity_type == *kind,
        AlarmScope::AffectingAny(_) => listed.contains(&entity),
        _ => true,
    };
    // Alarms whose originator is not in the filter: they only propagate to its entities.
    let elsewhere: Vec<AlarmId> = infos
        .iter()
        .filter(|info| info.alarm.originator.is_some_and(|entity| !fits(entity)))
        .map(|info| info.alarm.id)
        .collect();
    let shown = api.entities.alarms.propagated(caller.tenant, &elsewhere).await?;
    let shown: HashMap<AlarmId, EntityId> = shown.into_iter().filter(|(_, entity)| fits(*entity)).collect();
    let place = |info: &AlarmInfo| match info.alarm.originator.filter(|entity| fits(*entity)) {
        Some(originator) => Some(originator),
        None => shown.get(&info.alarm.id).copied(),
    };
    Ok(infos.iter().map(place).collect())
}

/// Reads the requested data of the entities that alarms were found for.
async fn latest(
    api: &ApiState,
    caller: &Principal,
    query: &AlarmDataQuery,
    found: &[Option<EntityId>],
) -> ApiResult<HashMap<EntityId, LatestValues>> {
    let fields = query.entity_fields.as_deref().unwrap_or_default();
    let values = query.latest_values.as_deref().unwrap_or_default();
    let mut shown = HashMap::new();
    if fields.is_empty() && values.is_empty() {
        return Ok(shown);
    }
    let mut by_kind: BTreeMap<EntityType, HashSet<uuid::Uuid>> = BTreeMap::new();
    for entity in found.iter().flatten() {
        by_kind.entry(entity.entity_type).or_default().insert(entity.id);
    }
    for (entity_type, ids) in by_kind {
        let query = EntityDataQuery {
            page_link: DataPageLink {
                page_size: ids.len() as i64,
                ..DataPageLink::default()
            },
            entity_filter: EntityFilter::EntityList {
                entity_type,
                entity_list: ids.into_iter().collect(),
            },
            key_filters: Vec::new(),
            key_filters_operation: ComplexOperation::And,
            entity_fields: fields.to_vec(),
            latest_values: values.to_vec(),
        };
        let page = api.queries.find(caller, &query).await?;
        shown.extend(page.data.into_iter().map(|data| (data.entity_id, data.latest)));
    }
    Ok(shown)
}
