//! Whose devices are: assigning to customers, and taking back; going to another tenant.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::Operation;
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, TenantId};
use utoipa_axum::routes;

use super::assigned;
use crate::caller::Caller;
use crate::endpoint::{Routes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::Ids;
use crate::state::Api;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(T, routes!(assign))
        .add(T, routes!(assign_to_public))
        .add(T, routes!(unassign))
        .add(T, routes!(assign_to_tenant))
}

/// Assigns a device to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToCustomer", params(("customerId" = Uuid, Path), ("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign(State(api): State<Api>, Caller(caller): Caller, Ids(ids): Ids<2>) -> ApiResult<Json<Device>> {
    assigned::assign(&api, &caller, ids).await
}

/// Assigns a device to the public customer.
#[utoipa::path(post, path = "/api/customer/public/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToPublicCustomer", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign_to_public(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<Device>> {
    assigned::assign_to_public(&api, &caller, id).await
}

/// Takes a device back from its customer.
#[utoipa::path(delete, path = "/api/customer/device/{deviceId}", tag = "device",
    operation_id = "unassignDeviceFromCustomer", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn unassign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<Device>> {
    assigned::unassign(&api, &caller, id).await
}

/// Gives a device to another tenant.
#[utoipa::path(post, path = "/api/tenant/{tenantId}/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToTenant", params(("tenantId" = Uuid, Path), ("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign_to_tenant(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([tenant, id]): Ids<2>,
) -> ApiResult<Json<Device>> {
    api.load::<Device>(&caller, id, Operation::AssignToTenant).await?;
    let tenants = &api.entities.tenants;
    let unknown = || ApiError::bad_request("Could not find the specified Tenant!");
    let to = tenants.get(TenantId(tenant)).await?.ok_or_else(unknown)?;
    let from = tenants.get(caller.tenant).await?.ok_or_else(unknown)?;
    let device = api.moves.give(caller.tenant, DeviceId(id), &to).await?;
    api.services.actions.moved(&caller, &device, &from, &to).await;
    Ok(Json(device))
}
