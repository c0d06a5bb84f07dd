//! Open device sessions: administrators list, count and close them.

use axum::Json;
use fieldline_devices::sessions::SessionInfo;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::{DeviceId, EntityKey};
use serde::Serialize;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathIds;
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(list)))
        .add(T.changes(routes!(close_all), AuditRule::Nothing))
        .add(T.changes(routes!(close), AuditRule::Nothing))
        .add(T.reads(routes!(count)))
}

/// An open session of a device.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeviceSession {
    /// Id of the session.
    session_id: Uuid,
    /// `MQTT`, `MQTTS`, `COAP` or `COAPS`.
    transport: &'static str,
    /// Address of the device, or of its gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// The gateway that the device is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_id: Option<DeviceId>,
    /// Start of the session, milliseconds.
    connected_time: i64,
    /// Whether the session is subscribed to shared attributes.
    subscribed_to_attributes: bool,
    /// Whether the session is subscribed to RPC calls.
    subscribed_to_rpc: bool,
    /// Bytes queued for the session.
    waiting_bytes: usize,
}

impl From<SessionInfo> for DeviceSession {
    fn from(info: SessionInfo) -> Self {
        let origin = info.origin;
        Self {
            session_id: info.id,
            transport: origin.protocol.name(),
            address: origin.address.map(|address| address.to_string()),
            gateway_id: origin.gateway,
            connected_time: origin.since_ms,
            subscribed_to_attributes: info.subscribes_attributes,
            subscribed_to_rpc: info.subscribes_rpc,
            waiting_bytes: info.waiting_bytes,
        }
    }
}

/// Returns the key of the device, if the caller may perform the operation on it.
async fn device(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: AccessOperation,
) -> ApiResult<EntityKey> {
    let id = DeviceId(id);
    api.check(caller, id, operation).await?;
    Ok(EntityKey::device(caller.tenant, id))
}

/// Returns the open sessions of a device, oldest first.
#[utoipa::path(get, path = "/api/device/{deviceId}/sessions", tag = "device", operation_id = "getDeviceSessions",
    params(("deviceId" = Uuid, Path)), responses((status = 200, body = Vec<DeviceSession>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Vec<DeviceSession>>> {
    let subject = device(&api, &caller, id, AccessOperation::Read).await?;
    let sessions = api.rpc.sessions().list(subject);
    Ok(Json(sessions.into_iter().map(DeviceSession::from).collect()))
}

/// Closes all sessions of a device and ends its waiting requests; returns the number of sessions closed.
#[utoipa::path(delete, path = "/api/device/{deviceId}/sessions", tag = "device", operation_id = "closeDeviceSessions",
    params(("deviceId" = Uuid, Path)), responses((status = 200, body = usize, content_type = "application/json")))]
async fn close_all(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<usize>> {
    let subject = device(&api, &caller, id, AccessOperation::Write).await?;
    Ok(Json(api.rpc.sessions().end(subject, None)))
}

/// Closes one session of a device.
#[utoipa::path(delete, path = "/api/device/{deviceId}/sessions/{sessionId}", tag = "device",
    operation_id = "closeDeviceSession", params(("deviceId" = Uuid, Path), ("sessionId" = Uuid, Path)),
    responses((status = 200)))]
async fn close(ApiCall { api, caller }: ApiCall, PathIds([id, session]): PathIds<2>) -> ApiResult<()> {
    let subject = device(&api, &caller, id, AccessOperation::Write).await?;
    match api.rpc.sessions().end(subject, Some(session)) {
        0 => Err(ApiError::not_found(format!(
            "Session with id [{session}] is not found"
        ))),
        _ => Ok(()),
    }
}

/// Counts the open sessions of the tenant's devices.
#[utoipa::path(get, path = "/api/deviceSessions/count", tag = "device", operation_id = "countDeviceSessions",
    responses((status = 200, body = usize, content_type = "application/json")))]
async fn count(ApiCall { api, caller }: ApiCall) -> Json<usize> {
    Json(api.rpc.sessions().count_of(caller.tenant))
}
