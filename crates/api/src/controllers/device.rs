//! Devices and their credentials.

use axum::Json;
use axum::extract::State;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::AccessOperation;
use fieldline_entities::services::NewCredentials;
use fieldline_model::DeviceId;
use fieldline_model::entity::{Authority, Device, DeviceCredentials, DeviceInfo, EntityDraft};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assignable;
use super::conflict::ConflictParams;
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds, QueryParams, must_not_be_null};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(TC, routes!(get))
        .add(TC, routes!(info))
        .add(TC, routes!(save))
        .add(TC, routes!(save_with_credentials))
        .add(T, routes!(delete))
        .add(TC, routes!(credentials))
        .add(T, routes!(save_credentials))
}

/// The device of an id.
#[utoipa::path(get, path = "/api/device/{deviceId}", tag = "device", operation_id = "getDeviceById",
    params(("deviceId" = Uuid, Path)), responses((status = 200, body = Device)))]
async fn get(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<Device>> {
    Ok(Json(
        api.load::<Device>(&caller, id, AccessOperation::Read).await?,
    ))
}

/// The device of an id with what lists show beside it.
#[utoipa::path(get, path = "/api/device/info/{deviceId}", tag = "device", operation_id = "getDeviceInfoById",
    params(("deviceId" = Uuid, Path)), responses((status = 200, body = DeviceInfo)))]
async fn info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<DeviceInfo>> {
    assignable::info::<Device>(&api, &caller, id).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AccessTokenParams {
    /// Access token of a new device; a random one where absent.
    access_token: Option<String>,
}

/// Creates a device, or updates it where it has an id.
#[utoipa::path(post, path = "/api/device", tag = "device", operation_id = "saveDevice",
    params(AccessTokenParams, ConflictParams), request_body = Device, responses((status = 200, body = Device)))]
async fn save(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(token): QueryParams<AccessTokenParams>,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(mut device): JsonBody<EntityDraft<Device>>,
) -> ApiResult<Json<Device>> {
    assignable::check_save(&api, &caller, &mut device).await?;
    let created = device.id.is_none();
    let credentials = NewCredentials::AccessToken(token.access_token);
    let names = names.policy()?;
    let saved = api
        .services
        .devices
        .save(caller.tenant, device, credentials, &names)
        .await?;
    let entity = AnyEntity::Device(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

#[derive(Deserialize, utoipa::ToSchema)]
struct SaveDeviceWithCredentialsRequest {
    /// The device.
    #[schema(value_type = Device)]
    device: Option<EntityDraft<Device>>,
    /// Its credentials.
    #[schema(value_type = DeviceCredentials)]
    credentials: Option<EntityDraft<DeviceCredentials>>,
}

/// Creates or updates a device together with its credentials.
#[utoipa::path(post, path = "/api/device-with-credentials", tag = "device",
    operation_id = "saveDeviceWithCredentials", params(ConflictParams),
    request_body = SaveDeviceWithCredentialsRequest, responses((status = 200, body = Device)))]
async fn save_with_credentials(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(names): QueryParams<ConflictParams>,
    JsonBody(request): JsonBody<SaveDeviceWithCredentialsRequest>,
) -> ApiResult<Json<Device>> {
    let mut device = request.device.ok_or_else(|| must_not_be_null("device"))?;
    let credentials = request.credentials;
    let credentials = credentials.ok_or_else(|| must_not_be_null("credentials"))?;
    assignable::check_save(&api, &caller, &mut device).await?;
    if let Some(id) = device.id
        && caller.authority == Authority::CustomerUser
    {
        api.load::<Device>(&caller, id.0, AccessOperation::WriteCredentials)
            .await?;
    }
    let created = device.id.is_none();
    let credentials = NewCredentials::Given(credentials);
    let names = names.policy()?;
    let saved = api
        .services
        .devices
        .save(caller.tenant, device, credentials, &names)
        .await?;
    let entity = AnyEntity::Device(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a device with its credentials and data.
#[utoipa::path(delete, path = "/api/device/{deviceId}", tag = "device", operation_id = "deleteDevice",
    params(("deviceId" = Uuid, Path)), responses((status = 200)))]
async fn delete(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<()> {
    assignable::delete::<Device>(&api, &caller, id).await
}

/// The credentials of a device.
#[utoipa::path(get, path = "/api/device/{deviceId}/credentials", tag = "device",
    operation_id = "getDeviceCredentialsByDeviceId", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = DeviceCredentials)))]
async fn credentials(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<DeviceCredentials>> {
    api.load::<Device>(&caller, id, AccessOperation::ReadCredentials)
        .await?;
    let found = api
        .entities
        .device_credentials
        .get(caller.tenant, DeviceId(id))
        .await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))
}

/// Replaces the credentials of a device.
#[utoipa::path(post, path = "/api/device/credentials", tag = "device", operation_id = "updateDeviceCredentials",
    request_body = DeviceCredentials, responses((status = 200, body = DeviceCredentials)))]
async fn save_credentials(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    JsonBody(credentials): JsonBody<EntityDraft<DeviceCredentials>>,
) -> ApiResult<Json<DeviceCredentials>> {
    let id = credentials.device_id;
    if id.is_null() {
        return Err(ApiError::bad_request(
            "Device credentials should be assigned to device!",
        ));
    }
    api.load::<Device>(&caller, id.0, AccessOperation::WriteCredentials)
        .await?;
    let saved = api
        .services
        .devices
        .save_credentials(caller.tenant, id, credentials)
        .await?;
    Ok(Json(saved))
}
