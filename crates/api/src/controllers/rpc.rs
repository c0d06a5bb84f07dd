//! RPC calls to devices, including persistent ones.
//!
//! A call goes through the rule chains of the tenant, which pass it to the device. The status tells the outcome: an
//! empty response with a timeout status if no response came, 406 if the response is not JSON.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{DeviceRpcError, DeviceRpcRequest};
use fieldline_core::queue_stats::SERVICE_ID;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{Device, Rpc, RpcStatus};
use fieldline_model::page::PageData;
use fieldline_model::{DeviceId, RpcId, new_uuid};
use serde::Deserialize;
use serde_json::Value;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, ErrorShape, STC, T, TC};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::{PageParams, PathIds, QueryParams, body_bytes, parse_uuid};
use crate::state::ApiState;
use crate::telemetry::{TelemetryError, TelemetryResult};

/// Longest time that a request stays open, milliseconds; persistent calls may expire later.
const MAX_RPC_MS: i64 = 3_600_000;
/// How much longer than the call itself the request waits.
const GRACE: Duration = Duration::from_secs(1);
/// Largest body of a call, bytes.
const MAX_BODY: usize = 64 << 10;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(STC.changes(routes!(oneway), AuditRule::Rpc { oneway: true }))
        .add(STC.changes(routes!(twoway), AuditRule::Rpc { oneway: false }))
        .add(STC.changes(routes!(oneway_v1), AuditRule::Rpc { oneway: true }))
        .add(STC.changes(routes!(twoway_v1), AuditRule::Rpc { oneway: false }))
        .add(TC.reads(routes!(of_device)))
        .add(TC.reads(routes!(get)))
        .add(T.changes(routes!(delete), AuditRule::Nothing))
        .errors(ErrorShape::Text)
}

/// Status codes of failures, which depend on the version of the path.
#[derive(Clone, Copy)]
struct RpcFailureStatuses {
    timeout: StatusCode,
    not_connected: StatusCode,
}

const V1: RpcFailureStatuses = RpcFailureStatuses {
    timeout: StatusCode::REQUEST_TIMEOUT,
    not_connected: StatusCode::CONFLICT,
};
const V2: RpcFailureStatuses = RpcFailureStatuses {
    timeout: StatusCode::GATEWAY_TIMEOUT,
    not_connected: StatusCode::GATEWAY_TIMEOUT,
};

/// Body of a request for an RPC call.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeviceRpcRequest)]
struct RpcRequestBody {
    /// Method to call on the device.
    method: String,
    /// Parameters: any JSON.
    #[serde(default)]
    params: Option<Value>,
    /// Time the device may take, milliseconds; raised to the configured minimum.
    timeout: Option<i64>,
    /// Time at which the call expires, milliseconds; replaces `timeout`.
    expiration_time: Option<i64>,
    /// Whether the call is stored until the device can receive it.
    #[serde(default)]
    persistent: bool,
    /// How often a persistent call is sent again.
    retries: Option<u32>,
    /// Any JSON that the caller wants to store with a persistent call.
    additional_info: Option<Value>,
    /// Id of the call; a new one by default.
    #[serde(rename = "requestUUID")]
    request_uuid: Option<String>,
}

/// Sends a one-way call to a device.
#[utoipa::path(post, path = "/api/rpc/oneway/{deviceId}", tag = "rpc", operation_id = "handleOneWayDeviceRPCRequestV2",
    params(("deviceId" = Uuid, Path)), request_body = RpcRequestBody,
    responses((status = 200, description = "Sent, or kept"), (status = 504, description = "The device was not connected in time")))]
async fn oneway(
    ApiCall { api, caller }: ApiCall,
    Path(device): Path<String>,
    request: Request,
) -> TelemetryResult<Response> {
    send_rpc(&api, &caller, &device, request, true, V2).await
}

/// Calls a device and waits for its response.
#[utoipa::path(post, path = "/api/rpc/twoway/{deviceId}", tag = "rpc", operation_id = "handleTwoWayDeviceRPCRequestV2",
    params(("deviceId" = Uuid, Path)), request_body = RpcRequestBody,
    responses((status = 200, description = "The answer"), (status = 504, description = "There was none in time"),
        (status = 406, description = "The answer is no JSON")))]
async fn twoway(
    ApiCall { api, caller }: ApiCall,
    Path(device): Path<String>,
    request: Request,
) -> TelemetryResult<Response> {
    send_rpc(&api, &caller, &device, request, false, V2).await
}

/// Sends a one-way call to a device; the older path.
#[utoipa::path(post, path = "/api/plugins/rpc/oneway/{deviceId}", tag = "rpc",
    operation_id = "handleOneWayDeviceRPCRequestV1", params(("deviceId" = Uuid, Path)), request_body = RpcRequestBody,
    responses((status = 200, description = "Sent, or kept"), (status = 409, description = "The device was not connected in time")))]
async fn oneway_v1(
    ApiCall { api, caller }: ApiCall,
    Path(device): Path<String>,
    request: Request,
) -> TelemetryResult<Response> {
    send_rpc(&api, &caller, &device, request, true, V1).await
}

/// Calls a device and waits for its response; the older path.
#[utoipa::path(post, path = "/api/plugins/rpc/twoway/{deviceId}", tag = "rpc",
    operation_id = "handleTwoWayDeviceRPCRequestV1", params(("deviceId" = Uuid, Path)), request_body = RpcRequestBody,
    responses((status = 200, description = "The answer"), (status = 408, description = "The device did not answer in time"),
        (status = 409, description = "The device was not connected in time"), (status = 406, description = "The answer is no JSON")))]
async fn twoway_v1(
    ApiCall { api, caller }: ApiCall,
    Path(device): Path<String>,
    request: Request,
) -> TelemetryResult<Response> {
    send_rpc(&api, &caller, &device, request, false, V1).await
}

async fn send_rpc(
    api: &ApiState,
    caller: &Principal,
    device: &str,
    request: Request,
    oneway: bool,
    statuses: RpcFailureStatuses,
) -> TelemetryResult<Response> {
    let id = DeviceId(parse_uuid(device)?);
    let body = body_bytes(request, &()).await?;
    if body.len() > MAX_BODY {
        let (status, code) = (StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::BadRequestParams);
        return Err(ApiError::with_status(status, code, "Payload size exceeds the limit").into());
    }
    let checked = api.check(caller, id, AccessOperation::RpcCall).await;
    let entity = checked.map_err(|error| TelemetryError::access(error, caller.authority))?;
    let AnyEntity::Device(device) = entity else {
        return Err(ApiError::not_found("Device with requested id wasn't found!").into());
    };
    let request = device_request(&body, &device, oneway, api)?;
    Ok(execute_rpc(api, caller, &device, request, statuses).await)
}

fn device_request(body: &[u8], device: &Device, oneway: bool, api: &ApiState) -> ApiResult<DeviceRpcRequest> {
    let (options, now) = (api.rpc.options(), api.clock.now_ms());
    let body: RpcRequestBody = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("Invalid request body: {error}")))?;
    let millis = |span: HumanDuration| i64::try_from(span.0.as_millis()).unwrap_or(MAX_RPC_MS);
    let timeout = body.timeout.unwrap_or(millis(options.default_timeout));
    let timeout = timeout.max(millis(options.min_timeout));
    let longest = if body.persistent {
        i64::MAX
    } else {
        now.saturating_add(MAX_RPC_MS)
    };
    Ok(DeviceRpcRequest {
        id: match body.request_uuid {
            Some(id) => parse_uuid(&id)?,
            None => new_uuid(),
        },
        tenant: device.tenant_id,
        device: device.id,
        method: body.method,
        params: body
            .params
            .map_or_else(|| "{}".to_owned(), |params| params.to_string()),
        oneway,
        persistent: body.persistent,
        retries: body.retries,
        expires_ms: body
            .expiration_time
            .unwrap_or(now.saturating_add(timeout))
            .min(longest),
        additional_info: body.additional_info.map(|info| info.to_string()),
        rest_origin: Some(SERVICE_ID.to_owned()),
        origin_run: Some(api.rpc.run_id()),
    })
}

/// Passes the call to the rule chains and waits for the response.
async fn execute_rpc(
    api: &ApiState,
    caller: &Principal,
    device: &Device,
    request: DeviceRpcRequest,
    statuses: RpcFailureStatuses,
) -> Response {
    let (tenant, id) = (request.tenant, request.id);
    let Some(mut awaited) = api.rpc.await_answer(tenant, id) else {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    };
    let left = request.expires_ms.saturating_sub(api.clock.now_ms());
    let left = Duration::from_millis(left.clamp(0, MAX_RPC_MS).unsigned_abs()) + GRACE;
    if let Err(error) = api.services.actions.push_rpc(caller, device, &request).await {
        return ApiError::from(error).into_response();
    }
    let answered = tokio::time::timeout(left, awaited.answer()).await;
    match answered {
        Ok(Some(Ok(None))) => StatusCode::OK.into_response(),
        Ok(Some(Ok(Some(body)))) if body.is_empty() => StatusCode::OK.into_response(),
        Ok(Some(Ok(Some(body)))) => match serde_json::from_str::<&serde_json::value::RawValue>(&body) {
            Ok(_) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(_) => StatusCode::NOT_ACCEPTABLE.into_response(),
        },
        Ok(Some(Err(DeviceRpcError::NoActiveConnection))) => statuses.not_connected.into_response(),
        Ok(_) | Err(_) => statuses.timeout.into_response(),
    }
}

/// Loads a persistent call, if the caller may perform the operation on its device.
async fn load(api: &ApiState, caller: &Principal, id: Uuid, operation: AccessOperation) -> ApiResult<Rpc> {
    let found = api.entities.rpcs.get(caller.tenant, RpcId(id)).await?;
    let rpc = found.ok_or_else(|| ApiError::not_found(format!("Rpc with id [{id}] is not found")))?;
    api.check(caller, rpc.device_id, operation).await?;
    Ok(rpc)
}

/// Returns a persistent call and its status.
#[utoipa::path(get, path = "/api/rpc/persistent/{rpcId}", tag = "rpc", operation_id = "getPersistedRpc",
    params(("rpcId" = Uuid, Path)), responses((status = 200, body = Rpc)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<Rpc>> {
    Ok(Json(load(&api, &caller, id, AccessOperation::Read).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct RpcStatusParams {
    /// Only calls with this status.
    rpc_status: Option<String>,
}

/// Returns a page of the persistent calls of a device.
#[utoipa::path(get, path = "/api/rpc/persistent/device/{deviceId}", tag = "rpc", operation_id = "getPersistedRpcByDevice",
    params(("deviceId" = Uuid, Path), PageParams, RpcStatusParams), responses((status = 200, body = PageData<Rpc>)))]
async fn of_device(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(filter): QueryParams<RpcStatusParams>,
) -> ApiResult<Json<PageData<Rpc>>> {
    let page = page.link()?;
    let status = match filter.rpc_status.as_deref().filter(|name| !name.is_empty()) {
        // Deleted calls are not stored.
        Some("DELETED") => return Err(ApiError::bad_request("RpcStatus: DELETED")),
        Some(name) => Some(
            RpcStatus::from_name(name)
                .ok_or_else(|| ApiError::bad_request(format!("Invalid rpcStatus '{name}'")))?,
        ),
        None => None,
    };
    api.check(&caller, DeviceId(id), AccessOperation::RpcCall).await?;
    let calls = &api.entities.rpcs;
    Ok(Json(
        calls.list(caller.tenant, DeviceId(id), status, &page).await?,
    ))
}

/// Deletes a persistent call; it is no longer sent to the device.
#[utoipa::path(delete, path = "/api/rpc/persistent/{rpcId}", tag = "rpc", operation_id = "deleteRpc",
    params(("rpcId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    load(&api, &caller, id, AccessOperation::Write).await?;
    api.rpc.delete(caller.tenant, RpcId(id)).await?;
    Ok(())
}
