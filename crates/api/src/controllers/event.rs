//! Events of entities.

use axum::Json;
use axum::extract::Path;
use fieldline_core::ports::{EventFilter, EventText};
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{EntityEvent, EventKind};
use fieldline_model::page::PageData;
use fieldline_model::{EntityKey, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;
use uuid::Uuid;

use super::relation::entity;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, QueryParams, missing, parse_uuid};
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.reads(routes!(lifecycle)))
        .add(STC.reads(routes!(of_kind)))
        .add(STC.asks(routes!(filtered)).open_to_public_sessions(false))
        .add(STC.changes(routes!(clear), AuditRule::Nothing))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct EventTenantParams {
    /// The tenant of the entity.
    #[param(required = true, value_type = Uuid)]
    tenant_id: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct EventTimeParams {
    /// Only events at or after this time, milliseconds.
    #[param(value_type = Option<i64>)]
    start_time: Option<String>,
    /// Only events at or before this time, milliseconds.
    #[param(value_type = Option<i64>)]
    end_time: Option<String>,
}

impl EventTimeParams {
    fn narrow(&self, filter: EventFilter) -> ApiResult<EventFilter> {
        Ok(EventFilter {
            start_time: time("startTime", self.start_time.as_deref())?,
            end_time: time("endTime", self.end_time.as_deref())?,
            ..filter
        })
    }
}

fn time(name: &str, text: Option<&str>) -> ApiResult<Option<i64>> {
    text.filter(|text| !text.is_empty())
        .map(|text| {
            text.parse().map_err(|_| {
                ApiError::bad_request(format!(
                    "Parameter '{name}' must be a number of milliseconds, not '{text}'"
                ))
            })
        })
        .transpose()
}

/// Filter for events: their kind, and texts that fields of that kind must contain.
#[derive(Deserialize, Default, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
#[schema(as = EventFilter)]
struct EventFilterRequest {
    /// Kind of the events.
    event_type: Option<String>,
    /// Name of the server.
    server: Option<String>,
    /// Only events with an error.
    is_error: Option<bool>,
    /// Text of the error.
    error_str: Option<String>,
    /// `IN` or `OUT`.
    msg_direction_type: Option<String>,
    /// Originator of the message, or the entity that a field was evaluated for.
    entity_id: Option<String>,
    /// Its entity type.
    entity_type: Option<String>,
    /// Id of the message.
    msg_id: Option<String>,
    /// Type of the message.
    msg_type: Option<String>,
    /// Label of the connection that the message left by.
    relation_type: Option<String>,
    /// Body of the message.
    data_search: Option<String>,
    /// Metadata of the message.
    metadata_search: Option<String>,
    /// Message of a rule chain.
    message: Option<String>,
    /// Arguments of a field.
    arguments: Option<String>,
    /// Result of a field.
    result: Option<String>,
    /// Method that failed.
    method: Option<String>,
    /// Life-cycle event.
    event: Option<String>,
    /// `Success` or anything else.
    status: Option<String>,
    /// Lower limit of the number of messages, inclusive.
    min_messages_processed: Option<i64>,
    /// Upper limit of the number of messages, exclusive.
    max_messages_processed: Option<i64>,
    /// Lower limit of the number of errors, inclusive.
    min_errors_occurred: Option<i64>,
    /// Upper limit of the number of errors, exclusive.
    max_errors_occurred: Option<i64>,
}

fn kind(name: &str) -> ApiResult<EventKind> {
    EventKind::from_name(name)
        .ok_or_else(|| ApiError::bad_request(format!("Event type: '{name}' is not supported!")))
}

impl EventFilterRequest {
    fn filter(self) -> ApiResult<EventFilter> {
        let name = self.event_type.ok_or_else(|| missing("eventType"))?;
        let mut filter = EventFilter::of(kind(&name)?);
        let mut texts = vec![(EventText::Server, self.server)];
        let error = (EventText::Error, self.error_str);
        let mut about = None;
        match filter.kind {
            EventKind::DebugRuleNode => {
                texts.extend([
                    (EventText::Name, self.msg_direction_type),
                    (EventText::EntityType, self.entity_type),
                    (EventText::MsgType, self.msg_type),
                    (EventText::RelationType, self.relation_type),
                    (EventText::Data, self.data_search),
                    (EventText::Metadata, self.metadata_search),
                    error,
                ]);
                about = Some((self.entity_id, self.msg_id));
                filter.only_errors = self.is_error.unwrap_or(false);
            }
            EventKind::DebugCalculatedField => {
                texts.extend([
                    (EventText::EntityType, self.entity_type),
                    (EventText::MsgType, self.msg_type),
                    (EventText::Data, self.arguments),
                    (EventText::Metadata, self.result),
                    error,
                ]);
                about = Some((self.entity_id, self.msg_id));
                filter.only_errors = self.is_error.unwrap_or(false);
            }
            EventKind::DebugRuleChain => {
                texts.extend([(EventText::Data, self.message), error]);
                filter.only_errors = self.is_error.unwrap_or(false);
            }
            EventKind::LcEvent => {
                texts.extend([(EventText::Name, self.event), error]);
                let status = self.status.filter(|status| !status.is_empty());
                filter.success = status.map(|status| status.eq_ignore_ascii_case("Success"));
            }
            EventKind::Error => texts.extend([(EventText::Name, self.method), error]),
            EventKind::Stats => {
                // Clients send zero for a limit that they do not set.
                let positive = |number: Option<i64>| number.filter(|number| *number > 0);
                filter.min_messages = positive(self.min_messages_processed);
                filter.max_messages = positive(self.max_messages_processed);
                filter.min_errors = positive(self.min_errors_occurred);
                filter.max_errors = positive(self.max_errors_occurred);
            }
        }
        if let Some((entity, msg_id)) = about {
            filter.entity = uuid("Entity Id", entity)?;
            filter.msg_id = uuid("Message Id", msg_id)?;
        }
        let present = |(text, part): (EventText, Option<String>)| {
            part.filter(|part| !part.is_empty()).map(|part| (text, part))
        };
        filter.texts = texts.into_iter().filter_map(present).collect();
        Ok(filter)
    }
}

fn uuid(what: &str, text: Option<String>) -> ApiResult<Option<Uuid>> {
    text.filter(|text| !text.is_empty())
        .map(|text| {
            parse_uuid(&text)
                .map_err(|_| ApiError::bad_request(format!("Failed to parse UUID for {what}: {text}")))
        })
        .transpose()
}

/// Returns the key of the entity in a path, if the caller may perform the operation on it.
async fn subject(
    api: &ApiState,
    caller: &Principal,
    entity_type: &str,
    id: &str,
    operation: AccessOperation,
) -> ApiResult<EntityKey> {
    let id = entity(entity_type, id)?;
    Ok(api.check(caller, id, operation).await?.subject())
}

async fn page(
    api: &ApiState,
    subject: EntityKey,
    params: EventTenantParams,
    filter: &EventFilter,
    page: PageParams,
) -> ApiResult<Json<PageData<EntityEvent>>> {
    let tenant = params.tenant_id.ok_or_else(|| missing("tenantId"))?;
    let (tenant, link) = (TenantId(parse_uuid(&tenant)?), page.link()?);
    // Events are listed only for the tenant of the entity.
    if tenant != subject.tenant {
        return Ok(Json(PageData::new(Vec::new(), 0, &link)));
    }
    let events = &api.entities.events;
    Ok(Json(
        events.list(subject.tenant, subject.entity, filter, &link).await?,
    ))
}

/// Returns a page of the life-cycle events of an entity.
#[utoipa::path(get, path = "/api/events/{entityType}/{entityId}", tag = "event", operation_id = "getEvents",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), EventTenantParams, PageParams, EventTimeParams),
    responses((status = 200, body = PageData<EntityEvent>)))]
async fn lifecycle(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id)): Path<(String, String)>,
    QueryParams(tenant): QueryParams<EventTenantParams>,
    QueryParams(params): QueryParams<PageParams>,
    QueryParams(times): QueryParams<EventTimeParams>,
) -> ApiResult<Json<PageData<EntityEvent>>> {
    let subject = subject(&api, &caller, &entity_type, &id, AccessOperation::Read).await?;
    let filter = times.narrow(EventFilter::of(EventKind::LcEvent))?;
    page(&api, subject, tenant, &filter, params).await
}

/// Returns a page of the events of one kind of an entity.
#[utoipa::path(get, path = "/api/events/{entityType}/{entityId}/{eventType}", tag = "event",
    operation_id = "getEventsByType", params(("entityType" = String, Path), ("entityId" = Uuid, Path),
    ("eventType" = String, Path), EventTenantParams, PageParams, EventTimeParams),
    responses((status = 200, body = PageData<EntityEvent>)))]
async fn of_kind(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id, event_type)): Path<(String, String, String)>,
    QueryParams(tenant): QueryParams<EventTenantParams>,
    QueryParams(params): QueryParams<PageParams>,
    QueryParams(times): QueryParams<EventTimeParams>,
) -> ApiResult<Json<PageData<EntityEvent>>> {
    let subject = subject(&api, &caller, &entity_type, &id, AccessOperation::Read).await?;
    let filter = times.narrow(EventFilter::of(kind(&event_type)?))?;
    page(&api, subject, tenant, &filter, params).await
}

/// Returns a page of the events of an entity that match a filter.
#[utoipa::path(post, path = "/api/events/{entityType}/{entityId}", tag = "event", operation_id = "getEventsByFilter",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), EventTenantParams, PageParams, EventTimeParams),
    request_body = EventFilterRequest, responses((status = 200, body = PageData<EntityEvent>)))]
async fn filtered(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id)): Path<(String, String)>,
    QueryParams(tenant): QueryParams<EventTenantParams>,
    QueryParams(params): QueryParams<PageParams>,
    QueryParams(times): QueryParams<EventTimeParams>,
    JsonBody(request): JsonBody<EventFilterRequest>,
) -> ApiResult<Json<PageData<EntityEvent>>> {
    let subject = subject(&api, &caller, &entity_type, &id, AccessOperation::Read).await?;
    let filter = times.narrow(request.filter()?)?;
    page(&api, subject, tenant, &filter, params).await
}

/// Deletes the events of an entity that match a filter.
#[utoipa::path(post, path = "/api/events/{entityType}/{entityId}/clear", tag = "event", operation_id = "clearEvents",
    params(("entityType" = String, Path), ("entityId" = Uuid, Path), EventTimeParams),
    request_body = EventFilterRequest, responses((status = 200)))]
async fn clear(
    ApiCall { api, caller }: ApiCall,
    Path((entity_type, id)): Path<(String, String)>,
    QueryParams(times): QueryParams<EventTimeParams>,
    JsonBody(request): JsonBody<EventFilterRequest>,
) -> ApiResult<()> {
    let subject = subject(&api, &caller, &entity_type, &id, AccessOperation::Write).await?;
    let filter = times.narrow(request.filter()?)?;
    let events = &api.entities.events;
    events.delete(subject.tenant, subject.entity, &filter).await?;
    Ok(())
}
