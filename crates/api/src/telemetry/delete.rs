//! Deletes attributes and points.

use axum::extract::Path;
use axum::http::StatusCode;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_devices::downlink::AttributeUpdate;
use fieldline_entities::access::{AccessOperation, Principal};

use crate::caller::ApiCall;
use crate::state::SharedApi;

use super::by_subject::SeriesRemoval;
use super::docs::{
    DeleteSeriesParams, DevicePath, EntityPath, ScopePath, TelemetryErrors, TelemetryKeyParams,
};
use super::error::TelemetryResult;
use super::params::TelemetryParams;
use super::target;

/// Deletes points of the named series of an entity: all of them, or those in a time range.
#[utoipa::path(
    delete, path = "/api/plugins/telemetry/{entityType}/{entityId}/timeseries/delete", tag = "telemetry",
    operation_id = "deleteEntityTimeseries", params(EntityPath, TelemetryKeyParams, DeleteSeriesParams),
    responses((status = 200, description = "Deleted"), TelemetryErrors)
)]
pub(super) async fn series(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id)): Path<(String, String)>,
    params: TelemetryParams,
) -> TelemetryResult<StatusCode> {
    let removal = SeriesRemoval::from_params(&params)?;
    let entity = target::entity(&api, &caller, &kind, &id, AccessOperation::WriteTelemetry).await?;
    target::refuse_view(&entity)?;
    let subject = entity.subject();
    if removal.carry_out(&api, subject).await? {
        api.services
            .actions
            .push_timeseries_deleted(&caller, subject.entity, &removal.keys, removal.what.range)
            .await;
    }
    Ok(StatusCode::OK)
}

/// Deletes the named attributes of a device in a scope.
#[utoipa::path(
    delete, path = "/api/plugins/telemetry/{deviceId}/{scope}", tag = "telemetry",
    operation_id = "deleteDeviceAttributes", params(DevicePath, ScopePath, TelemetryKeyParams),
    responses((status = 200, description = "Deleted"), TelemetryErrors)
)]
pub(super) async fn device_attributes(
    ApiCall { api, caller }: ApiCall,
    Path((id, scope)): Path<(String, String)>,
    params: TelemetryParams,
) -> TelemetryResult<StatusCode> {
    attributes(&api, &caller, "DEVICE", &id, &scope, &params).await
}

/// Deletes the named attributes of an entity in a scope.
#[utoipa::path(
    delete, path = "/api/plugins/telemetry/{entityType}/{entityId}/{scope}", tag = "telemetry",
    operation_id = "deleteEntityAttributes", params(EntityPath, ScopePath, TelemetryKeyParams),
    responses((status = 200, description = "Deleted"), TelemetryErrors)
)]
pub(super) async fn entity_attributes(
    ApiCall { api, caller }: ApiCall,
    Path((kind, id, scope)): Path<(String, String, String)>,
    params: TelemetryParams,
) -> TelemetryResult<StatusCode> {
    attributes(&api, &caller, &kind, &id, &scope, &params).await
}

async fn attributes(
    api: &SharedApi,
    caller: &Principal,
    kind: &str,
    id: &str,
    scope: &str,
    params: &TelemetryParams,
) -> TelemetryResult<StatusCode> {
    let scope = target::scope(scope)?;
    let keys = params.some_keys()?;
    let entity = target::entity(api, caller, kind, id, AccessOperation::WriteAttributes).await?;
    let subject = entity.subject();
    let deleted = api.attributes.delete(subject, scope, &keys).await?;
    if !deleted.is_empty() {
        api.events.publish(EntityChange {
            subject,
            what: ChangeKind::Attributes(scope),
        });
        let update = AttributeUpdate::Deleted(deleted.clone());
        api.device_link.attributes_changed(subject, scope, update);
        api.services
            .actions
            .push_attributes_deleted(caller, subject.entity, scope, &deleted)
            .await;
    }
    Ok(StatusCode::OK)
}
