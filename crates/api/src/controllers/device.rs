//! Devices and their credentials: lists, and assignment to customers.

use axum::Json;
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::DeviceFilter;
use fieldline_entities::access::AccessOperation;
use fieldline_entities::services::NewCredentials;
use fieldline_model::entity::{Authority, Device, DeviceCredentials, DeviceInfo, DeviceProfile, EntityDraft};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DeviceId, DeviceProfileId, EntityType, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assignable::{self, ListFilterParams, assignable_endpoints, present};
use super::conflict::ConflictParams;
use super::{EntitySubtype, profile};
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PathIds, QueryParams, must_not_be_null, parse_flag, parse_uuid};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    common::routes()
        .add(TC.changes(routes!(save), AuditRule::Save(EntityType::Device)))
        .add(TC.changes(routes!(save_with_credentials), AuditRule::SaveWithCredentials))
        .add(TC.reads(routes!(credentials)))
        .add(T.changes(routes!(save_credentials), AuditRule::Credentials))
        .add(T.changes(routes!(assign_to_tenant), AuditRule::Nothing))
        .add(TC.reads(routes!(types)))
}

assignable_endpoints! {
    Device, DeviceInfo, DeviceFilterParams, "device", path: "device", id: "deviceId",
    name: "deviceName" "Name of the device.", ids: "deviceIds" "getDevicesByIds", one: "device", an: "a device",
    delete: "Deletes a device with its credentials and data.",
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DeviceFilterParams {
    /// Only devices of this type.
    #[serde(rename = "type")]
    device_type: Option<String>,
    /// Only devices of this profile; ignored if a type is given.
    #[param(value_type = Option<Uuid>)]
    device_profile_id: Option<String>,
    /// Only active, or only inactive devices.
    #[param(value_type = Option<bool>)]
    active: Option<String>,
}

impl ListFilterParams<Device> for DeviceFilterParams {
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<DeviceFilter> {
        let device_type = present(self.device_type);
        let profile = match present(self.device_profile_id).filter(|_| device_type.is_none()) {
            Some(id) => Some(DeviceProfileId(parse_uuid(&id)?)),
            None => None,
        };
        let active = parse_flag(&self.active.unwrap_or_default())
            .map_err(|error| ApiError::bad_request(format!("Parameter 'active': {error}")))?;
        Ok(DeviceFilter {
            customer,
            device_type,
            profile,
            active,
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AccessTokenParams {
    /// Access token of a new device; a random one by default.
    access_token: Option<String>,
}

/// Creates a device, or updates it if it has an id.
#[utoipa::path(post, path = "/api/device", tag = "device", operation_id = "saveDevice",
    params(AccessTokenParams, ConflictParams), request_body = Device, responses((status = 200, body = Device)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
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
        .save_with_credentials(caller.tenant, device, credentials, &names)
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
    ApiCall { api, caller }: ApiCall,
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
        .save_with_credentials(caller.tenant, device, credentials, &names)
        .await?;
    let entity = AnyEntity::Device(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Returns the credentials of a device.
#[utoipa::path(get, path = "/api/device/{deviceId}/credentials", tag = "device",
    operation_id = "getDeviceCredentialsByDeviceId", params(("deviceId" = Uuid, Path)),
    responses((status = 200, body = DeviceCredentials)))]
async fn credentials(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<DeviceCredentials>> {
    api.load::<Device>(&caller, id, AccessOperation::ReadCredentials)
        .await?;
    let found = api
        .entities
        .device_credentials
        .get(caller.tenant, DeviceId(id))
        .await?;
    found.map(Json).ok_or_else(ApiError::item_not_found)
}

/// Replaces the credentials of a device.
#[utoipa::path(post, path = "/api/device/credentials", tag = "device", operation_id = "updateDeviceCredentials",
    request_body = DeviceCredentials, responses((status = 200, body = DeviceCredentials)))]
async fn save_credentials(
    ApiCall { api, caller }: ApiCall,
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

/// Transfers a device to another tenant.
#[utoipa::path(post, path = "/api/tenant/{tenantId}/device/{deviceId}", tag = "device",
    operation_id = "assignDeviceToTenant", params(("tenantId" = Uuid, Path), ("deviceId" = Uuid, Path)),
    responses((status = 200, body = Device)))]
async fn assign_to_tenant(
    ApiCall { api, caller }: ApiCall,
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

/// Returns the device types of the tenant: the names of its device profiles.
#[utoipa::path(get, path = "/api/device/types", tag = "device", operation_id = "getDeviceTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(ApiCall { api, caller }: ApiCall) -> ApiResult<Json<Vec<EntitySubtype>>> {
    profile::types::<DeviceProfile>(&api, &caller, EntityType::Device).await
}

/// Returns the first devices of a profile, or of any: a sample for collecting the names of series.
pub(super) async fn sample(
    api: &SharedApi,
    tenant: TenantId,
    profile: Option<DeviceProfileId>,
    most: u32,
) -> ApiResult<PageData<DeviceInfo>> {
    let filter = DeviceFilter {
        profile,
        ..DeviceFilter::default()
    };
    Ok(api
        .entities
        .devices
        .list(tenant, &filter, &PageLink::first(most))
        .await?)
}
