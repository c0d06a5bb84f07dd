//! Queries of alarms by a filter of entities.

use std::collections::{BTreeMap, HashMap, HashSet};

use axum::Json;
use axum::extract::State;
use fieldline_core::access::Principal;
use fieldline_core::ports::{AlarmQuery, AlarmScope};
use fieldline_model::entity::{AlarmInfo, AlarmSearchStatus, AlarmSeverity};
use fieldline_model::page::{PageData, PageLink, SortOrder};
use fieldline_model::{AlarmId, EntityId, EntityType, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use super::alarm_list::visible;
use crate::caller::Caller;
use crate::endpoint::{Routes, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::Body;
use crate::state::{Api, ApiState};

pub(super) fn routes() -> Routes {
    Routes::default().add(TC, routes!(find)).add(TC, routes!(count))
}

/// The most entities that a filter may list.
const MAX_LISTED: usize = 1_000;
/// The most alarms of a page.
const MAX_PAGE: u32 = 10_000;

/// Which entities' alarms are asked for.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum EntityFilter {
    /// One entity.
    SingleEntity {
        /// The entity.
        single_entity: EntityId,
    },
    /// Some entities of a type.
    EntityList {
        /// Their type.
        #[schema(value_type = String)]
        entity_type: EntityType,
        /// Their bare ids.
        entity_list: Vec<Uuid>,
    },
    /// All entities of a type.
    EntityType {
        /// The type.
        #[schema(value_type = String)]
        entity_type: EntityType,
    },
}

/// A filter as it was sent; those that are not known here are refused by name.
fn filter(value: &Value) -> ApiResult<EntityFilter> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    if !["singleEntity", "entityList", "entityType"].contains(&kind) {
        return Err(ApiError::bad_request(format!(
            "Unsupported entityFilter type '{kind}'! Supported are: singleEntity, entityList, entityType"
        )));
    }
    serde_json::from_value(value.clone())
        .map_err(|error| ApiError::bad_request(format!("Invalid entityFilter: {error}")))
}

/// Conditions that find and count share; absent and empty ones hold for all.
#[derive(Deserialize, Default, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
struct Conditions {
    /// Created at or after this time, milliseconds.
    start_ts: Option<i64>,
    /// Created at or before this time, milliseconds.
    end_ts: Option<i64>,
    /// Created within the last so many milliseconds; in the place of start and end.
    time_window: Option<i64>,
    /// Types.
    type_list: Option<Vec<String>>,
    /// States.
    status_list: Option<Vec<AlarmSearchStatus>>,
    /// Severities.
    severity_list: Option<Vec<AlarmSeverity>>,
    /// Also alarms that propagate to the entities.
    search_propagated_alarms: bool,
    /// Assigned to this user.
    assignee_id: Option<UserId>,
}

impl Conditions {
    fn query(self, scope: AlarmScope, now: i64) -> AlarmQuery {
        let present = |time: Option<i64>| time.filter(|time| *time > 0);
        let (from, to) = match present(self.time_window) {
            Some(window) => (Some(now.saturating_sub(window)), Some(now)),
            None => (present(self.start_ts), present(self.end_ts)),
        };
        let query = AlarmQuery {
            scope,
            severities: self.severity_list.unwrap_or_default(),
            types: self.type_list.unwrap_or_default(),
            assignee: self.assignee_id,
            from,
            to,
            ..AlarmQuery::default()
        };
        query.in_states(&self.status_list.unwrap_or_default())
    }
}

/// What a filter stands for. Of listed entities, those that the caller may not see are left out.
async fn scope(
    api: &ApiState,
    caller: &Principal,
    filter: EntityFilter,
    propagated: bool,
) -> ApiResult<AlarmScope> {
    let listed = match filter {
        EntityFilter::EntityType { entity_type } if propagated => {
            return Ok(AlarmScope::AffectingType(entity_type));
        }
        EntityFilter::EntityType { entity_type } => return Ok(AlarmScope::OriginatorType(entity_type)),
        EntityFilter::SingleEntity { single_entity } => vec![single_entity],
        EntityFilter::EntityList {
            entity_type,
            entity_list,
        } => {
            let entity = |id| EntityId::new(entity_type, id);
            entity_list.into_iter().map(entity).collect()
        }
    };
    if listed.len() > MAX_LISTED {
        return Err(ApiError::bad_request(format!(
            "entityList must not hold more than {MAX_LISTED} ids!"
        )));
    }
    let seen = api.readable(caller, listed.iter().copied()).await?;
    let mut readable = listed;
    readable.retain(|entity| seen.contains(entity));
    Ok(if propagated {
        AlarmScope::AffectingAny(readable)
    } else {
        AlarmScope::Originators(readable)
    })
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct Key {
    /// `ALARM_FIELD` or `ENTITY_FIELD`.
    #[serde(rename = "type")]
    kind: String,
    /// Name of the field.
    key: String,
}

#[derive(Deserialize, utoipa::ToSchema)]
struct Sort {
    /// What to sort by.
    key: Key,
    /// In which direction.
    #[serde(default)]
    direction: SortOrder,
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlarmDataPageLink {
    /// Alarms a page.
    page_size: u32,
    /// Page index from 0.
    #[serde(default)]
    page: u32,
    /// Text that type, severity or status must contain.
    text_search: Option<String>,
    /// Newest first where absent.
    sort_order: Option<Sort>,
    #[serde(flatten)]
    conditions: Conditions,
}

/// Which alarms are asked for, and what is shown of them.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlarmDataQuery {
    /// `singleEntity`, `entityList` or `entityType`.
    #[schema(value_type = EntityFilter)]
    entity_filter: Value,
    /// Must be empty.
    key_filters: Option<Vec<Value>>,
    /// Fields of the entity to show: `name`, `label`.
    entity_fields: Option<Vec<Key>>,
    /// Must be empty.
    latest_values: Option<Vec<Value>>,
    /// The page.
    page_link: AlarmDataPageLink,
}

/// How many alarms are asked for.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlarmCountQuery {
    /// `singleEntity`, `entityList` or `entityType`; all alarms where absent.
    #[schema(value_type = Option<EntityFilter>)]
    entity_filter: Option<Value>,
    /// Must be empty.
    key_filters: Option<Vec<Value>>,
    #[serde(flatten)]
    conditions: Conditions,
}

/// A value and its time; the time is 0 for fields.
#[derive(Serialize, utoipa::ToSchema)]
struct TsValue {
    /// Time of the value, milliseconds.
    ts: i64,
    /// The value as text; empty where there is none.
    value: String,
}

/// An alarm with the entity it was found at.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlarmData {
    #[serde(flatten)]
    info: AlarmInfo,
    /// The entity of the filter that the alarm shows at.
    entity_id: Option<EntityId>,
    /// What was asked for of the entity, by kind and name.
    latest: BTreeMap<&'static str, BTreeMap<String, TsValue>>,
}

fn refuse(what: &str, given: Option<&Vec<Value>>) -> ApiResult<()> {
    match given {
        Some(values) if !values.is_empty() => Err(ApiError::bad_request(format!(
            "{what} are not supported in queries of alarms!"
        ))),
        _ => Ok(()),
    }
}

/// The property of a list that a key of a query means.
fn property(key: &Key) -> String {
    match (key.kind.as_str(), key.key.as_str()) {
        ("ENTITY_FIELD", "name") => "originatorName",
        ("ENTITY_FIELD", "label") => "originatorLabel",
        (_, "startTime") => "startTs",
        (_, "endTime") => "endTs",
        (_, "ackTime") => "ackTs",
        (_, "clearTime") => "clearTs",
        (_, "assignTime") => "assignTs",
        (_, "assigneeId") => "assignee",
        (_, "originatorId" | "originatorDisplayName") => "originatorName",
        (_, other) => other,
    }
    .to_owned()
}

fn link(link: &mut AlarmDataPageLink) -> ApiResult<PageLink> {
    if link.page_size == 0 {
        return Err(ApiError::bad_request(
            "Incorrect page link page size '0'. Page size must be greater than zero.",
        ));
    }
    let sort = link.sort_order.take();
    Ok(PageLink {
        page_size: link.page_size.min(MAX_PAGE),
        page: link.page,
        text_search: link.text_search.take().filter(|text| !text.is_empty()),
        sort_order: sort.as_ref().map(|sort| sort.direction),
        sort_property: sort.map(|sort| property(&sort.key)),
    })
}

/// A page of the alarms of the entities that a filter stands for.
#[utoipa::path(post, path = "/api/alarmsQuery/find", tag = "entity-query", operation_id = "findAlarmDataByQuery",
    request_body = AlarmDataQuery, responses((status = 200, body = PageData<AlarmData>)))]
async fn find(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(mut request): Body<AlarmDataQuery>,
) -> ApiResult<Json<PageData<AlarmData>>> {
    refuse("keyFilters", request.key_filters.as_ref())?;
    refuse("latestValues", request.latest_values.as_ref())?;
    let fields = request.entity_fields.unwrap_or_default();
    if let Some(other) = fields
        .iter()
        .find(|field| !["name", "label"].contains(&field.key.as_str()))
    {
        return Err(ApiError::bad_request(format!(
            "Unsupported entity field '{}'! Supported are: name, label",
            other.key
        )));
    }
    let page = link(&mut request.page_link)?;
    let conditions = request.page_link.conditions;
    let filter = filter(&request.entity_filter)?;
    let scope = scope(&api, &caller, filter, conditions.search_propagated_alarms).await?;
    let query = conditions.query(scope, api.clock.now_ms());
    let query = narrowed(&caller, query);
    let alarms = api.entities.alarms.list(caller.tenant, &query, &page).await?;
    let PageData {
        data,
        total_pages,
        total_elements,
        has_next,
    } = alarms;
    let places = found_at(&api, &caller, &query.scope, &data).await?;
    let data = data
        .into_iter()
        .zip(places)
        .map(|(info, entity_id)| AlarmData {
            latest: described(&fields, &info),
            entity_id,
            info,
        })
        .collect();
    Ok(Json(PageData {
        data,
        total_pages,
        total_elements,
        has_next,
    }))
}

/// Customer users see of a whole type the alarms of their customer only.
fn narrowed(caller: &Principal, query: AlarmQuery) -> AlarmQuery {
    match query.scope {
        AlarmScope::AffectingAny(_) | AlarmScope::Originators(_) => query,
        _ => visible(caller, query),
    }
}

/// The entity of the filter that each of the alarms was found at.
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
    // Those that only show at the entities of the filter.
    let elsewhere: Vec<AlarmId> = infos
        .iter()
        .filter(|info| info.alarm.originator.is_some_and(|entity| !fits(entity)))
        .filter_map(|info| info.alarm.id)
        .collect();
    let shown = api.entities.alarms.propagated(caller.tenant, &elsewhere).await?;
    let shown: HashMap<AlarmId, EntityId> = shown.into_iter().filter(|(_, entity)| fits(*entity)).collect();
    let place = |info: &AlarmInfo| match info.alarm.originator.filter(|entity| fits(*entity)) {
        Some(originator) => Some(originator),
        None => shown.get(&info.alarm.id?).copied(),
    };
    Ok(infos.iter().map(place).collect())
}

/// The fields of the originator that were asked for.
fn described(fields: &[Key], info: &AlarmInfo) -> BTreeMap<&'static str, BTreeMap<String, TsValue>> {
    if fields.is_empty() {
        return BTreeMap::new();
    }
    let values = fields.iter().map(|field| {
        let value = match field.key.as_str() {
            "name" => info.originator_name.clone(),
            _ => info.originator_label.clone(),
        };
        let value = TsValue {
            ts: 0,
            value: value.unwrap_or_default(),
        };
        (field.key.clone(), value)
    });
    BTreeMap::from([("ENTITY_FIELD", values.collect())])
}

/// How many alarms the entities have that a filter stands for.
#[utoipa::path(post, path = "/api/alarmsQuery/count", tag = "entity-query", operation_id = "countAlarmsByQuery",
    request_body = AlarmCountQuery, responses((status = 200, body = u64)))]
async fn count(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(request): Body<AlarmCountQuery>,
) -> ApiResult<Json<u64>> {
    refuse("keyFilters", request.key_filters.as_ref())?;
    let conditions = request.conditions;
    let scope = match request.entity_filter.filter(|filter| !filter.is_null()) {
        Some(value) => {
            let filter = filter(&value)?;
            scope(&api, &caller, filter, conditions.search_propagated_alarms).await?
        }
        None => AlarmScope::All,
    };
    let query = narrowed(&caller, conditions.query(scope, api.clock.now_ms()));
    Ok(Json(api.entities.alarms.count(caller.tenant, &query).await?))
}
