//! Whose devices are: assigning to customers, and taking back; going to another tenant.

use axum::Json;
use axum::extract::State;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, TenantId};
use utoipa_axum::routes;

use super::assignable;
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T};
use crate::error::{ApiError, ApiResult};
use crate::extract::PathIds;
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T, routes!(assign))
        .add(T, routes!(assign_to_public))
        .add(T, routes!(unassign))
        .add(T, routes!(assign_to_tenant))
}

/// Assigns a device to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToCustomer", params(("customerId" = Uuid, Path), ("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds(ids): PathIds<2>,
) -> ApiResult<Json<Device>> {
    assignable::assign(&api, &caller, ids).await
}

/// Assigns a device to the public customer.
#[utoipa::path(post, path = "/api/customer/public/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToPublicCustomer", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign_to_public(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Device>> {
    assignable::assign_to_public(&api, &caller, id).await
}

/// Takes a device back from its customer.
#[utoipa::path(delete, path = "/api/customer/device/{deviceId}", tag = "device",
    operation_id = "unassignDeviceFromCustomer", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn unassign(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Device>> {
    assignable::unassign(&api, &caller, id).await
}

/// Gives a device to another tenant.
#[utoipa::path(post, path = "/api/tenant/{tenantId}/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToTenant", params(("tenantId" = Uuid, Path), ("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign_to_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([tenant, id]): PathIds<2>,
) -> ApiResult<Json<Device>> {
    api.load::<Device>(&caller, id, AccessOperation::AssignToTenant)
        .await?;
    let tenants = &api.entities.tenants;
    let unknown = || ApiError::bad_request("Could not find the specified Tenant!");
    let to = tenants.get(TenantId(tenant)).await?.ok_or_else(unknown)?;
    let from = tenants.get(caller.tenant).await?.ok_or_else(unknown)?;
    let device = api
        .tenant_transfer
        .transfer(caller.tenant, DeviceId(id), &to)
        .await?;
    api.services
        .actions
        .push_transferred(&caller, &device, &from, &to)
        .await;
    Ok(Json(device))
}
