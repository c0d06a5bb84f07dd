//! Lists of devices.

use axum::Json;
use axum::extract::State;
use fieldline_core::ports::DeviceFilter;
use fieldline_model::entity::{Device, DeviceInfo, DeviceProfile};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DeviceProfileId, EntityType, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::assignable::{self, ListFilterParams, present};
use super::{Either, EntitySubtype, profile};
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{PageParams, PathIds, QueryParams, parse_flag, parse_uuid};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.reads(routes!(of_tenant)))
        .add(T.reads(routes!(infos_of_tenant)))
        .add(T.reads(routes!(by_name)))
        .add(TC.reads(routes!(of_customer)))
        .add(TC.reads(routes!(infos_of_customer)))
        .add(TC.reads(routes!(by_ids)))
        .add(TC.reads(routes!(types)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DeviceFilterParams {
    /// Only devices of this type.
    #[serde(rename = "type")]
    device_type: Option<String>,
    /// Only devices of this profile, where no type is given.
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
struct DeviceNameParams {
    /// Name of the device.
    device_name: Option<String>,
}

/// A page of devices of the tenant, or with `deviceName` the device of that name.
#[utoipa::path(get, path = "/api/tenant/devices", tag = "device", operation_id = "getTenantDevices",
    params(PageParams, DeviceFilterParams, DeviceNameParams), responses((status = 200, body = PageData<Device>)))]
async fn of_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DeviceFilterParams>,
    QueryParams(name): QueryParams<DeviceNameParams>,
) -> ApiResult<Json<Either<PageData<Device>, Device>>> {
    let name = ("deviceName", name.device_name);
    assignable::of_tenant(&api, &caller, params, page, name).await
}

/// A page of devices of the tenant with what lists show beside them.
#[utoipa::path(get, path = "/api/tenant/deviceInfos", tag = "device", operation_id = "getTenantDeviceInfos",
    params(PageParams, DeviceFilterParams), responses((status = 200, body = PageData<DeviceInfo>)))]
async fn infos_of_tenant(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DeviceFilterParams>,
) -> ApiResult<Json<PageData<DeviceInfo>>> {
    assignable::infos_of_tenant::<Device>(&api, &caller, params, page).await
}

/// The device of a name.
#[utoipa::path(get, path = "/api/tenant/device", tag = "device", operation_id = "getTenantDeviceByName",
    params(DeviceNameParams), responses((status = 200, body = Device)))]
async fn by_name(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(name): QueryParams<DeviceNameParams>,
) -> ApiResult<Json<Device>> {
    assignable::by_name(&api, &caller, ("deviceName", name.device_name)).await
}

/// A page of devices of a customer with what lists show beside them.
#[utoipa::path(get, path = "/api/customer/{customerId}/deviceInfos", tag = "device",
    operation_id = "getCustomerDeviceInfos", params(("customerId" = Uuid, Path), PageParams, DeviceFilterParams),
    responses((status = 200, body = PageData<DeviceInfo>)))]
async fn infos_of_customer(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([customer]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DeviceFilterParams>,
) -> ApiResult<Json<PageData<DeviceInfo>>> {
    assignable::infos_of_customer::<Device>(&api, &caller, customer, params, page).await
}

/// A page of devices of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/devices", tag = "device",
    operation_id = "getCustomerDevices", params(("customerId" = Uuid, Path), PageParams, DeviceFilterParams),
    responses((status = 200, body = PageData<Device>)))]
async fn of_customer(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([customer]): PathIds<1>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DeviceFilterParams>,
) -> ApiResult<Json<PageData<Device>>> {
    assignable::of_customer(&api, &caller, customer, params, page).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DeviceIds {
    /// Comma-joined ids.
    device_ids: Option<String>,
}

/// Those of the devices that the caller may see.
#[utoipa::path(get, path = "/api/devices", tag = "device", operation_id = "getDevicesByIds", params(DeviceIds),
    responses((status = 200, body = Vec<Device>)))]
async fn by_ids(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(ids): QueryParams<DeviceIds>,
) -> ApiResult<Json<Vec<Device>>> {
    assignable::by_ids(&api, &caller, ("deviceIds", ids.device_ids)).await
}

/// The device types of the tenant: the names of its device profiles.
#[utoipa::path(get, path = "/api/device/types", tag = "device", operation_id = "getDeviceTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
) -> ApiResult<Json<Vec<EntitySubtype>>> {
    profile::types::<DeviceProfile>(&api, &caller, EntityType::Device).await
}

/// A page of devices of a profile, or of any: a sample to learn names of series from.
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
