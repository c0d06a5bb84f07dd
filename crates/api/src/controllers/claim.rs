//! Claiming of devices by customers, and giving them back.

use axum::Json;
use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_entities::services::ClaimOutcome;
use fieldline_model::entity::{Authority, Device};
use serde::{Deserialize, Serialize};
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, C, TC};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::extract::body_bytes;
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(C.changes(routes!(claim), AuditRule::Nothing))
        .add(TC.changes(routes!(reclaim), AuditRule::Nothing))
}

#[derive(Deserialize, Default, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClaimRequest {
    /// The secret key that the device has sent.
    secret_key: Option<String>,
}

/// A claimed device.
#[derive(Serialize, utoipa::ToSchema)]
struct ClaimResult {
    /// The device.
    device: Device,
    /// `SUCCESS`.
    response: &'static str,
}

/// Loads the device with that name, if the caller may claim devices.
async fn named(api: &ApiState, caller: &Principal, name: &str) -> ApiResult<Device> {
    let found = api.entities.devices.by_name(caller.tenant, name).await?;
    let id = found.map(|device| device.id);
    let id = id.ok_or_else(ApiError::item_not_found)?;
    match api.check(caller, id, AccessOperation::ClaimDevices).await? {
        AnyEntity::Device(device) => Ok(device),
        _ => Err(ApiError::item_not_found()),
    }
}

/// Claims a device for the customer of the caller, who must know the secret key that the device has sent.
#[utoipa::path(post, path = "/api/customer/device/{deviceName}/claim", tag = "device", operation_id = "claimDevice",
    params(("deviceName" = String, Path)), request_body = ClaimRequest,
    responses((status = 200, body = ClaimResult), (status = 400, description = "`FAILURE`, or `CLAIMED` already"),
        (status = 429, body = crate::error::ErrorBody)))]
async fn claim(
    ApiCall { api, caller }: ApiCall,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let body = body_bytes(request, &()).await?;
    let request: ClaimRequest = match body.trim_ascii().is_empty() {
        true => ClaimRequest::default(),
        false => serde_json::from_slice(&body)
            .map_err(|error| ApiError::bad_request(format!("JSON parse error: {error}")))?,
    };
    let device = named(&api, &caller, &name).await?;
    let secret = request.secret_key.unwrap_or_default();
    let claims = &api.onboarding.claims;
    let refused = match claims
        .claim(&device, (caller.customer, caller.user), &secret)
        .await?
    {
        ClaimOutcome::Success(device) => {
            let customer = api.entities.customers.get(caller.tenant, caller.customer).await?;
            if let Some(customer) = customer {
                let entity = AnyEntity::Device(Device::clone(&device));
                api.services
                    .actions
                    .push_assigned(&caller, &entity, &customer)
                    .await;
            }
            let response = "SUCCESS";
            return Ok(Json(ClaimResult {
                device: *device,
                response,
            })
            .into_response());
        }
        ClaimOutcome::Failure => "FAILURE",
        ClaimOutcome::Claimed => "CLAIMED",
        ClaimOutcome::TooOften(wait_ms) => {
            let seconds = wait_ms.saturating_add(999) / 1_000;
            return Err(ApiError::new(
                ErrorCode::TooManyRequests,
                format!("Too many wrong secrets, the next one may come in {seconds} s!"),
            ));
        }
    };
    Ok((StatusCode::BAD_REQUEST, Json(refused)).into_response())
}

/// Takes a device back from its customer, so that it can be claimed again. Users of a customer can give back their own
/// devices.
#[utoipa::path(delete, path = "/api/customer/device/{deviceName}/claim", tag = "device", operation_id = "reClaimDevice",
    params(("deviceName" = String, Path)), responses((status = 200, description = "It belongs to no customer now")))]
async fn reclaim(ApiCall { api, caller }: ApiCall, Path(name): Path<String>) -> ApiResult<StatusCode> {
    let device = named(&api, &caller, &name).await?;
    if caller.authority == Authority::CustomerUser && device.customer_id != caller.customer {
        return Err(ApiError::denied());
    }
    let customer = api.onboarding.claims.reclaim(&device).await?;
    if let Some(customer) = customer {
        let entity = AnyEntity::Device(device);
        api.services
            .actions
            .push_unassigned(&caller, &entity, &customer)
            .await;
    }
    Ok(StatusCode::OK)
}
