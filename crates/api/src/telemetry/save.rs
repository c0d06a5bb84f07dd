//! Saves attributes and points.

use axum::extract::{Path, Request};
use axum::http::StatusCode;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::{AttributeRow, StoreError, StoreErrorKind};
use fieldline_core::usage::{ApiFeature, UsageKey, storage_points};
use fieldline_devices::downlink::AttributeUpdate;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::kv::{self, CorruptData};

use crate::caller::ApiCall;
use crate::error::{ApiError, ErrorCode};
use crate::extract::body_bytes;
use crate::state::SharedApi;

use super::docs::{DevicePath, EntityPath, ScopePath, TelemetryErrors};
use super::error::TelemetryResult;
use super::payload::{self, PointBatch};
use super::target;

/// Saves attributes of a device in a scope.
#[utoipa::path(
    post, path = "/api/plugins/telemetry/{deviceId}/{scope}", tag = "telemetry",
    operation_id = "saveDeviceAttributes", params(DevicePath, ScopePath),
    request_body(content = String, description = "A JSON object of names and values"),
    responses((status = 200, description = "Saved"), TelemetryErrors)
)]
pub(super) async fn device_attributes(
    ApiCall { api, caller }: ApiCall,
    Path((id, scope)): Path<(String, String)>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    attributes(&api, &caller, "DEVICE", &id, &scope, request).await
}

/// Saves attributes of an entity in a scope.
#[utoipa::path(
    post, path = "/api/plugins/telemetry/{entityType}/{entityId}/{scope}", tag = "telemetry",
    operation_id = "saveEntityAttributesV1", params(EntityPath, ScopePath),
    request_body(content = String, description = "A JSON object of names and values"),
    responses((status = 200, description = "Saved"), TelemetryErrors)
)]
pub(super) async fn entity_attributes(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, scope)): Path<(String, String, String)>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    attributes(&api, &caller, &kind, &id, &scope, request).await
}

/// Saves attributes of an entity in a scope.
#[utoipa::path(
    post, path = "/api/plugins/telemetry/{entityType}/{entityId}/attributes/{scope}", tag = "telemetry",
    operation_id = "saveEntityAttributesV2", params(EntityPath, ScopePath),
    request_body(content = String, description = "A JSON object of names and values"),
    responses((status = 200, description = "Saved"), TelemetryErrors)
)]
pub(super) async fn entity_attributes_v2(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, scope)): Path<(String, String, String)>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    attributes(&api, &caller, &kind, &id, &scope, request).await
}

/// Saves points of an entity with the default time-to-live of its profiles. The last part of the path can be any word.
#[utoipa::path(
    post, path = "/api/plugins/telemetry/{entityType}/{entityId}/timeseries/{scope}", tag = "telemetry",
    operation_id = "saveEntityTelemetry", params(EntityPath, ("scope" = String, Path, description = "Any word")),
    request_body(content = String, description = "A JSON object of names and values, `{\"ts\", \"values\"}`, or a list of them"),
    responses((status = 200, description = "Saved"), TelemetryErrors)
)]
pub(super) async fn series(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, _)): Path<(String, String, String)>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    points(&api, &caller, &kind, &id, None, request).await
}

/// Saves points of an entity, like any other word in place of `delete`: this path also has deletions, and without its
/// own route saves with that word would fail.
#[utoipa::path(
    post, path = "/api/plugins/telemetry/{entityType}/{entityId}/timeseries/delete", tag = "telemetry",
    operation_id = "saveEntityTelemetryOfScopeDelete", params(EntityPath),
    request_body(content = String, description = "A JSON object of names and values, `{\"ts\", \"values\"}`, or a list of them"),
    responses((status = 200, description = "Saved"), TelemetryErrors)
)]
pub(super) async fn series_of_scope_delete(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    points(&api, &caller, &kind, &id, None, request).await
}

/// Saves points of an entity with a time-to-live in seconds; 0 for the default of its profiles.
#[utoipa::path(
    post, path = "/api/plugins/telemetry/{entityType}/{entityId}/timeseries/{scope}/{ttl}", tag = "telemetry",
    operation_id = "saveEntityTelemetryWithTTL",
    params(
        EntityPath,
        ("scope" = String, Path, description = "Any word"),
        ("ttl" = i64, Path, description = "Time to live, seconds"),
    ),
    request_body(content = String, description = "A JSON object of names and values, `{\"ts\", \"values\"}`, or a list of them"),
    responses((status = 200, description = "Saved"), TelemetryErrors)
)]
pub(super) async fn series_with_ttl(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, _, ttl)): Path<(String, String, String, String)>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    points(&api, &caller, &kind, &id, payload::ttl(&ttl)?, request).await
}

async fn attributes(
    api: &SharedApi,
    caller: &Principal,
    kind: &str,
    id: &str,
    scope: &str,
    request: Request,
) -> TelemetryResult<StatusCode> {
    let scope = target::writable_scope(scope)?;
    let entity = target::entity(api, caller, kind, id, AccessOperation::WriteAttributes).await?;
    let body = body_bytes(request, &()).await?;
    let values = payload::attributes(&body, api.options.json_type_cast)?;
    let subject = entity.subject();
    let row = AttributeRow {
        subject,
        scope,
        ts: api.clock.now_ms(),
        values: &values,
    };
    api.attributes.save(&[row]).await?;
    api.events.publish(EntityChange {
        subject,
        what: ChangeKind::Attributes(scope),
    });
    let shown = payload::object(&values).map_err(unpackable)?;
    let update = AttributeUpdate::Saved(values.into());
    api.device_link.attributes_changed(subject, scope, update);
    api.services
        .actions
        .push_attributes_updated(caller, subject.entity, scope, &shown)
        .await;
    Ok(StatusCode::OK)
}

async fn points(
    api: &SharedApi,
    caller: &Principal,
    kind: &str,
    id: &str,
    ttl: Option<u32>,
    request: Request,
) -> TelemetryResult<StatusCode> {
    let entity = target::entity(api, caller, kind, id, AccessOperation::WriteTelemetry).await?;
    target::refuse_view(&entity)?;
    let body = body_bytes(request, &()).await?;
    let ttl = match ttl {
        Some(seconds) => seconds,
        None => api.telemetry.default_ttl(&entity).await?,
    };
    let subject = entity.subject();
    let now = api.clock.now_ms();
    let next_time = || api.telemetry.next_time(subject.entity, now);
    let points = PointBatch::parse(&body, subject, now, ttl, api.options.json_type_cast, next_time)?;
    let rows = points.rows().map_err(unpackable)?;
    let usage = api.usage.of(subject.tenant);
    if !usage.allows(ApiFeature::Storage) {
        return Err(ApiError::new(
            ErrorCode::TooManyRequests,
            "DB storage writes are disabled due to API limits!",
        )
        .into());
    }
    api.series.save(&rows).await?;
    let saved: u64 = rows.iter().map(|row| u64::from(kv::count(row.values))).sum();
    usage.add(UsageKey::StorageDataPoints, storage_points(saved, ttl.into()));
    let shown = payload::list(&rows).map_err(unpackable)?;
    api.services
        .actions
        .push_timeseries_updated(caller, subject.entity, &shown)
        .await;
    Ok(StatusCode::OK)
}

/// The values that the parser has packed cannot be unpacked.
fn unpackable(error: CorruptData) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "The values could not be packed").caused_by(error)
}
