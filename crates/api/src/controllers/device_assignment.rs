//! Whose devices are: assigning to customers, and taking back.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation};
use fieldline_model::entity::Device;
use fieldline_model::{CustomerId, DeviceId};
use utoipa_axum::routes;

use super::customer;
use super::device::load;
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
}

/// Assigns a device to a customer.
#[utoipa::path(post, path = "/api/customer/{customerId}/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToCustomer", params(("customerId" = Uuid, Path), ("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([customer, device]): Ids<2>,
) -> ApiResult<Json<Device>> {
    let customer = customer::load(&api, &caller, customer, Operation::Read).await?;
    load(&api, &caller, device, Operation::AssignToCustomer).await?;
    let devices = &api.services.devices;
    let assigned = devices
        .assign(caller.tenant, DeviceId(device), customer.id.unwrap_or_default())
        .await?;
    let entity = Entity::Device(assigned.clone());
    api.services.actions.assigned(&caller, &entity, &customer).await;
    Ok(Json(assigned))
}

/// Assigns a device to the public customer.
#[utoipa::path(post, path = "/api/customer/public/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToPublicCustomer", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign_to_public(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([device]): Ids<1>,
) -> ApiResult<Json<Device>> {
    load(&api, &caller, device, Operation::AssignToCustomer).await?;
    let public = api.services.customers.public(caller.tenant).await?;
    let assigned = api
        .services
        .devices
        .assign(caller.tenant, DeviceId(device), public.id.unwrap_or_default())
        .await?;
    let entity = Entity::Device(assigned.clone());
    api.services.actions.assigned(&caller, &entity, &public).await;
    Ok(Json(assigned))
}

/// Takes a device back from its customer.
#[utoipa::path(delete, path = "/api/customer/device/{deviceId}", tag = "device",
    operation_id = "unassignDeviceFromCustomer", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn unassign(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([device]): Ids<1>,
) -> ApiResult<Json<Device>> {
    let stored = load(&api, &caller, device, Operation::UnassignFromCustomer).await?;
    if stored.customer_id.is_null() {
        return Err(ApiError::bad_request("Device isn't assigned to any customer!"));
    }
    let customer = customer::load(&api, &caller, stored.customer_id.0, Operation::Read).await?;
    let devices = &api.services.devices;
    let taken = devices
        .assign(caller.tenant, DeviceId(device), CustomerId::NULL)
        .await?;
    let entity = Entity::Device(taken.clone());
    api.services.actions.unassigned(&caller, &entity, &customer).await;
    Ok(Json(taken))
}
