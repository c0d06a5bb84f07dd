//! Lists of alarms.

use axum::Json;
use axum::extract::Path;
use fieldline_core::ports::{AlarmQuery, AlarmScope};
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{AlarmInfo, AlarmSearchStatus, AlarmSeverity, AlarmStatus};
use fieldline_model::page::{PageData, SortOrder};
use fieldline_model::{EntityType, UserId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::EntitySubtype;
use super::relation::entity;
use crate::alarm_data::visible;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, QueryParams, parse_uuid};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(of_entity)))
        .add(TC.reads(routes!(all)))
        .add(STC.reads(routes!(of_entity_v2)))
        .add(TC.reads(routes!(all_v2)))
        .add(TC.reads(routes!(highest_severity)))
        .add(TC.reads(routes!(types)))
}

/// Parses a name, if one is given.
pub(super) fn named<T>(
    what: &str,
    name: Option<&str>,
    from_name: impl Fn(&str) -> Option<T>,
) -> ApiResult<Option<T>> {
    match name.map(str::trim).filter(|name| !name.is_empty()) {
        None => Ok(None),
        Some(name) => match from_name(name) {
            Some(value) => Ok(Some(value)),
            None => Err(ApiError::bad_request(format!("Unknown {what} '{name}'!"))),
        },
    }
}

/// Parses comma-joined names.
fn all_named<T>(
    what: &str,
    names: Option<&str>,
    from_name: impl Fn(&str) -> Option<T> + Copy,
) -> ApiResult<Vec<T>> {
    let names = names.unwrap_or_default().split(',');
    let values: ApiResult<Vec<Option<T>>> = names.map(|name| named(what, Some(name), from_name)).collect();
    Ok(values?.into_iter().flatten().collect())
}

fn milliseconds(name: &str, text: Option<&str>) -> ApiResult<Option<i64>> {
    named(name, text, |text| text.parse().ok())
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AlarmCommonParams {
    /// Only alarms assigned to this user.
    #[param(value_type = Option<Uuid>)]
    assignee_id: Option<String>,
    /// Only alarms created at or after this time, milliseconds.
    #[param(value_type = Option<i64>)]
    start_time: Option<String>,
    /// Only alarms created at or before this time, milliseconds.
    #[param(value_type = Option<i64>)]
    end_time: Option<String>,
    /// Whether the names of originators are wanted. They always come.
    #[serde(rename = "fetchOriginator")]
    #[param(value_type = Option<bool>)]
    _fetch_originator: Option<String>,
}

impl AlarmCommonParams {
    fn query(&self, scope: AlarmScope) -> ApiResult<AlarmQuery> {
        let assignee = self.assignee_id.as_deref().filter(|id| !id.is_empty());
        Ok(AlarmQuery {
            scope,
            assignee: assignee.map(parse_uuid).transpose()?.map(UserId),
            from: milliseconds("startTime", self.start_time.as_deref())?,
            to: milliseconds("endTime", self.end_time.as_deref())?,
            ..AlarmQuery::default()
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AlarmStatusParams {
    /// `ANY`, `ACTIVE`, `CLEARED`, `ACK` or `UNACK`.
    search_status: Option<String>,
    /// `ACTIVE_UNACK`, `ACTIVE_ACK`, `CLEARED_UNACK` or `CLEARED_ACK`; not together with a search status.
    status: Option<String>,
}

impl AlarmStatusParams {
    fn narrow(&self, query: AlarmQuery) -> ApiResult<AlarmQuery> {
        let search = self.search_status.as_deref();
        let search = named("search status", search, AlarmSearchStatus::from_name)?;
        let status = named("status", self.status.as_deref(), AlarmStatus::from_name)?;
        match (search, status) {
            (Some(_), Some(_)) => Err(ApiError::bad_request(
                "Invalid alarms search query: Both parameters 'searchStatus' and 'status' can't be specified at the \
                 same time!",
            )),
            (Some(search), None) => Ok(query.in_states(&[search])),
            (None, Some(status)) => Ok(query.with_status(status)),
            (None, None) => Ok(query),
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AlarmListParams {
    /// Comma-joined: `ANY`, `ACTIVE`, `CLEARED`, `ACK`, `UNACK`.
    status_list: Option<String>,
    /// Comma-joined: `CRITICAL`, `MAJOR`, `MINOR`, `WARNING`, `INDETERMINATE`.
    severity_list: Option<String>,
    /// Comma-joined types.
    type_list: Option<String>,
}

impl AlarmListParams {
    fn narrow(&self, query: AlarmQuery) -> ApiResult<AlarmQuery> {
        let states = all_named(
            "search status",
            self.status_list.as_deref(),
            AlarmSearchStatus::from_name,
        )?;
        let types = self.type_list.as_deref().unwrap_or_default().split(',');
        Ok(AlarmQuery {
            severities: all_named(
                "severity",
                self.severity_list.as_deref(),
                AlarmSeverity::from_name,
            )?,
            types: types.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            ..query.in_states(&states)
        })
    }
}

async fn affecting(api: &ApiState, caller: &Principal, kind: &str, id: &str) -> ApiResult<AlarmScope> {
    let entity = entity(kind, id)?;
    api.check(caller, entity, AccessOperation::Read).await?;
    Ok(AlarmScope::Affecting(entity))
}

async fn page(
    api: &ApiState,
    caller: &Principal,
    query: &AlarmQuery,
    page: PageParams,
) -> ApiResult<Json<PageData<AlarmInfo>>> {
    let alarms = api
        .entities
        .alarms
        .list(caller.tenant, query, &page.link()?)
        .await?;
    Ok(Json(alarms))
}

/// Returns a page of the alarms that belong or propagate to an entity.
#[utoipa::path(get, path = "/api/alarm/{entityType}/{entityId}", tag = "alarm", operation_id = "getAlarmsByEntity",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), PageParams, AlarmCommonParams, AlarmStatusParams),
    responses((status = 200, body = PageData<AlarmInfo>)))]
async fn of_entity(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(common): QueryParams<AlarmCommonParams>,
    QueryParams(status): QueryParams<AlarmStatusParams>,
) -> ApiResult<Json<PageData<AlarmInfo>>> {
    let scope = affecting(&api, &caller, &kind, &id).await?;
    let query = status.narrow(common.query(scope)?)?;
    page(&api, &caller, &query, link).await
}

/// Returns a page of all alarms of the tenant, or of the customer of a customer user.
#[utoipa::path(get, path = "/api/alarms", tag = "alarm", operation_id = "getAllAlarms",
    params(PageParams, AlarmCommonParams, AlarmStatusParams), responses((status = 200, body = PageData<AlarmInfo>)))]
async fn all(
    ApiCall { api, caller }: ApiCall,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(common): QueryParams<AlarmCommonParams>,
    QueryParams(status): QueryParams<AlarmStatusParams>,
) -> ApiResult<Json<PageData<AlarmInfo>>> {
    let query = status.narrow(common.query(AlarmScope::All)?)?;
    page(&api, &caller, &visible(&caller, query), link).await
}

/// Returns a page of the alarms that belong or propagate to an entity.
#[utoipa::path(get, path = "/api/v2/alarm/{entityType}/{entityId}", tag = "alarm", operation_id = "getAlarmsV2",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), PageParams, AlarmCommonParams, AlarmListParams),
    responses((status = 200, body = PageData<AlarmInfo>)))]
async fn of_entity_v2(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(common): QueryParams<AlarmCommonParams>,
    QueryParams(lists): QueryParams<AlarmListParams>,
) -> ApiResult<Json<PageData<AlarmInfo>>> {
    let scope = affecting(&api, &caller, &kind, &id).await?;
    let query = lists.narrow(common.query(scope)?)?;
    page(&api, &caller, &query, link).await
}

/// Returns a page of all alarms of the tenant, or of the customer of a customer user.
#[utoipa::path(get, path = "/api/v2/alarms", tag = "alarm", operation_id = "getAllAlarmsV2",
    params(PageParams, AlarmCommonParams, AlarmListParams), responses((status = 200, body = PageData<AlarmInfo>)))]
async fn all_v2(
    ApiCall { api, caller }: ApiCall,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(common): QueryParams<AlarmCommonParams>,
    QueryParams(lists): QueryParams<AlarmListParams>,
) -> ApiResult<Json<PageData<AlarmInfo>>> {
    let query = lists.narrow(common.query(AlarmScope::All)?)?;
    page(&api, &caller, &visible(&caller, query), link).await
}

/// Returns the highest severity of the alarms that belong or propagate to an entity; null if there is none.
#[utoipa::path(get, path = "/api/alarm/highestSeverity/{entityType}/{entityId}", tag = "alarm",
    operation_id = "getHighestAlarmSeverity",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), AlarmCommonParams, AlarmStatusParams),
    responses((status = 200, body = Option<AlarmSeverity>)))]
async fn highest_severity(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    QueryParams(common): QueryParams<AlarmCommonParams>,
    QueryParams(status): QueryParams<AlarmStatusParams>,
) -> ApiResult<Json<Option<AlarmSeverity>>> {
    let scope = affecting(&api, &caller, &kind, &id).await?;
    let query = status.narrow(common.query(scope)?)?;
    let severity = api
        .entities
        .alarms
        .highest_severity(caller.tenant, &query)
        .await?;
    Ok(Json(severity))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AlarmOrderParams {
    /// `ASC` or `DESC`.
    #[serde(rename = "sortOrder")]
    order: Option<String>,
}

/// Returns a page of the types of the tenant's alarms.
#[utoipa::path(get, path = "/api/alarm/types", tag = "alarm", operation_id = "getAlarmTypes", params(PageParams),
    responses((status = 200, body = PageData<EntitySubtype>)))]
async fn types(
    ApiCall { api, caller }: ApiCall,
    QueryParams(link): QueryParams<PageParams>,
    QueryParams(order): QueryParams<AlarmOrderParams>,
) -> ApiResult<Json<PageData<EntitySubtype>>> {
    let mut link = link.link()?;
    // The list is always sorted by type, even if the request does not ask for it.
    let descending = order
        .order
        .is_some_and(|order| order.eq_ignore_ascii_case("DESC"));
    link.sort_order = Some(if descending {
        SortOrder::Desc
    } else {
        SortOrder::Asc
    });
    let types = api.entities.alarms.types(caller.tenant, &link).await?;
    Ok(Json(types.map(|subtype| EntitySubtype {
        tenant_id: caller.tenant,
        entity_type: EntityType::Alarm,
        subtype,
    })))
}
