//! Reads keys, attributes, latest values and time ranges.

use std::collections::HashSet;

use axum::extract::Path;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{Attribute, AttributeScope};

use crate::caller::ApiCall;
use crate::state::SharedApi;

use super::by_subject::SeriesRead;
use super::docs::{
    AttributeData, EntityPath, RangeParams, ScopePath, SeriesData, TelemetryErrors, TelemetryKeyParams,
    ValueTypeParams,
};
use super::error::TelemetryResult;
use super::params::{RangeRead, TelemetryParams};
use super::source::{SeriesSource, TimeWindow};
use super::{render, target};

type EntityInPath = Path<(String, String)>;
type ScopeInPath = Path<(String, String, String)>;

/// Returns the names of all series of an entity.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/keys/timeseries", tag = "telemetry",
    operation_id = "getTimeseriesKeys", params(EntityPath),
    responses((status = 200, description = "Names", body = Vec<String>), TelemetryErrors)
)]
pub(super) async fn series_keys(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): EntityInPath,
) -> TelemetryResult<Response> {
    let source = source(&api, &caller, &kind, &id).await?;
    let keys = api.series.keys(source.subject).await?;
    let shown = |key: &&str| {
        source
            .all()
            .is_none_or(|shown| shown.iter().any(|name| name == key))
    };
    Ok(json(render::names(keys.iter().map(String::as_str).filter(shown))))
}

/// Returns the names of the attributes of an entity, of all scopes.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/keys/attributes", tag = "telemetry",
    operation_id = "getAttributeKeys", params(EntityPath),
    responses((status = 200, description = "Names", body = Vec<String>), TelemetryErrors)
)]
pub(super) async fn attribute_keys(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): EntityInPath,
) -> TelemetryResult<Response> {
    let subject = subject(&api, &caller, &kind, &id, AccessOperation::ReadAttributes).await?;
    let found = attributes_in(&api, subject, &AttributeScope::ALL, None).await?;
    // A name may occur in several scopes.
    let mut seen = HashSet::new();
    let names = found.iter().map(|attribute| attribute.key.as_str());
    Ok(json(render::names(names.filter(|name| seen.insert(*name)))))
}

/// Returns the names of the attributes of an entity in a scope.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/keys/attributes/{scope}", tag = "telemetry",
    operation_id = "getAttributeKeysByScope", params(EntityPath, ScopePath),
    responses((status = 200, description = "Names", body = Vec<String>), TelemetryErrors)
)]
pub(super) async fn attribute_keys_of_scope(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, scope)): ScopeInPath,
) -> TelemetryResult<Response> {
    let scope = target::scope(&scope)?;
    let subject = subject(&api, &caller, &kind, &id, AccessOperation::ReadAttributes).await?;
    let found = attributes_in(&api, subject, &[scope], None).await?;
    Ok(json(render::names(
        found.iter().map(|attribute| attribute.key.as_str()),
    )))
}

/// Returns attributes of an entity, of all scopes: the named ones, or all.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/values/attributes", tag = "telemetry",
    operation_id = "getAttributes", params(EntityPath, TelemetryKeyParams),
    responses((status = 200, description = "Attributes", body = Vec<AttributeData>), TelemetryErrors)
)]
pub(super) async fn attributes(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): EntityInPath,
    params: TelemetryParams,
) -> TelemetryResult<Response> {
    let keys = params.keys()?;
    let subject = subject(&api, &caller, &kind, &id, AccessOperation::ReadAttributes).await?;
    let found = attributes_in(&api, subject, &AttributeScope::ALL, named(&keys)).await?;
    Ok(json(render::attributes(&found)))
}

/// Returns attributes of an entity in a scope: the named ones, or all.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/values/attributes/{scope}", tag = "telemetry",
    operation_id = "getAttributesByScope", params(EntityPath, ScopePath, TelemetryKeyParams),
    responses((status = 200, description = "Attributes", body = Vec<AttributeData>), TelemetryErrors)
)]
pub(super) async fn attributes_of_scope(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, scope)): ScopeInPath,
    params: TelemetryParams,
) -> TelemetryResult<Response> {
    let scope = target::scope(&scope)?;
    let keys = params.keys()?;
    let subject = subject(&api, &caller, &kind, &id, AccessOperation::ReadAttributes).await?;
    let found = attributes_in(&api, subject, &[scope], named(&keys)).await?;
    Ok(json(render::attributes(&found)))
}

/// Returns the latest values of the named series of an entity, or of all. With both `startTs` and `endTs`, returns the
/// points of that range, as `…/history` does.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/values/timeseries", tag = "telemetry",
    operation_id = "getLatestTimeseries", params(EntityPath, TelemetryKeyParams, ValueTypeParams),
    responses((status = 200, description = "Latest values", body = SeriesData), TelemetryErrors)
)]
pub(super) async fn series(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): EntityInPath,
    params: TelemetryParams,
) -> TelemetryResult<Response> {
    if params.has("startTs") && params.has("endTs") {
        return range(&api, &caller, &kind, &id, &params).await;
    }
    let keys = params.keys()?;
    let typing = params.typing()?;
    let source = source(&api, &caller, &kind, &id).await?;
    let shown = source.shown(&keys);
    let wanted = if keys.is_empty() {
        source.all()
    } else {
        Some(shown.as_slice())
    };
    let values = match wanted {
        Some([]) => Vec::new(),
        wanted => api.series.latest(source.subject, wanted).await?,
    };
    Ok(json(render::latest(
        &values,
        named(&keys),
        typing,
        api.clock.now_ms(),
    )))
}

/// Returns the points of the named series of an entity in a time range, as saved or aggregated.
#[utoipa::path(
    get, path = "/api/plugins/telemetry/{entityType}/{entityId}/values/timeseries/history", tag = "telemetry",
    operation_id = "getTimeseriesHistory", params(EntityPath, TelemetryKeyParams, RangeParams, ValueTypeParams),
    responses((status = 200, description = "Points", body = SeriesData), TelemetryErrors)
)]
pub(super) async fn history(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): EntityInPath,
    params: TelemetryParams,
) -> TelemetryResult<Response> {
    range(&api, &caller, &kind, &id, &params).await
}

async fn range(
    api: &SharedApi,
    caller: &Principal,
    kind: &str,
    id: &str,
    params: &TelemetryParams,
) -> TelemetryResult<Response> {
    let keys = params.keys()?;
    let typing = params.typing()?;
    // Invalid parameters are refused before anything is looked up.
    let mut read = RangeRead::from_params(params, TimeWindow::ALL)?;
    let source = source(api, caller, kind, id).await?;
    if source.window != TimeWindow::ALL {
        read = RangeRead::from_params(params, source.window)?;
    }
    let keys = source.shown(&keys);
    let read = SeriesRead { keys, read, typing };
    Ok(read.answer(api, caller, source.subject).await?)
}

/// Returns the source of the series of an entity.
async fn source(api: &SharedApi, caller: &Principal, kind: &str, id: &str) -> TelemetryResult<SeriesSource> {
    let entity = target::entity(api, caller, kind, id, AccessOperation::ReadTelemetry).await?;
    Ok(SeriesSource::of(&entity))
}

async fn subject(
    api: &SharedApi,
    caller: &Principal,
    kind: &str,
    id: &str,
    operation: AccessOperation,
) -> TelemetryResult<EntityKey> {
    let entity = target::entity(api, caller, kind, id, operation).await?;
    Ok(entity.subject())
}

async fn attributes_in(
    api: &SharedApi,
    subject: EntityKey,
    scopes: &[AttributeScope],
    keys: Option<&[String]>,
) -> TelemetryResult<Vec<Attribute>> {
    let mut found = Vec::new();
    for scope in scopes {
        found.extend(api.attributes.get(subject, *scope, keys).await?);
    }
    Ok(found)
}

/// Returns the names as the stores expect them: an empty list means all.
fn named(keys: &[String]) -> Option<&[String]> {
    (!keys.is_empty()).then_some(keys)
}

fn json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
