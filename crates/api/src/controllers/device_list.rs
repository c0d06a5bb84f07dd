//! Lists of devices.

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, allows};
use fieldline_core::ports::DeviceFilter;
use fieldline_model::entity::{Device, DeviceInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DeviceId, DeviceProfileId, EntityType, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::{Either, EntitySubtype};
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Ids, PageParams, Query, missing, parse_uuid, parse_uuids};
use crate::state::Api;

pub(super) fn routes() -> Routes {
    Routes::default()
        .add(T, routes!(of_tenant))
        .add(T, routes!(infos_of_tenant))
        .add(T, routes!(by_name))
        .add(TC, routes!(of_customer))
        .add(TC, routes!(infos_of_customer))
        .add(TC, routes!(by_ids))
        .add(TC, routes!(types))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct FilterParams {
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

impl FilterParams {
    fn filter(self, customer: Option<CustomerId>) -> ApiResult<DeviceFilter> {
        let present = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let device_type = present(self.device_type);
        let profile = match present(self.device_profile_id).filter(|_| device_type.is_none()) {
            Some(id) => Some(DeviceProfileId(parse_uuid(&id)?)),
            None => None,
        };
        let active = match present(self.active).as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => {
                return Err(ApiError::bad_request(format!(
                    "Parameter 'active' must be true or false, not '{other}'"
                )));
            }
        };
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
struct NameParams {
    /// Name of the device.
    device_name: Option<String>,
}

/// A page of devices of the tenant, or with `deviceName` the device of that name.
#[utoipa::path(get, path = "/api/tenant/devices", tag = "device", operation_id = "getTenantDevices",
    params(PageParams, FilterParams, NameParams), responses((status = 200, body = PageData<Device>)))]
async fn of_tenant(
    State(api): State<Api>,
    caller: Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
    Query(name): Query<NameParams>,
) -> ApiResult<Json<Either<PageData<Device>, Device>>> {
    if name.device_name.is_some() {
        let Json(device) = by_name(State(api), caller, Query(name)).await?;
        return Ok(Json(Either::Right(device)));
    }
    let filter = params.filter(None)?;
    let devices = api
        .entities
        .devices
        .list(caller.0.tenant, &filter, &page.link()?)
        .await?;
    Ok(Json(Either::Left(devices.map(|info| info.device))))
}

/// A page of devices of the tenant with what lists show beside them.
#[utoipa::path(get, path = "/api/tenant/deviceInfos", tag = "device", operation_id = "getTenantDeviceInfos",
    params(PageParams, FilterParams), responses((status = 200, body = PageData<DeviceInfo>)))]
async fn infos_of_tenant(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
) -> ApiResult<Json<PageData<DeviceInfo>>> {
    let filter = params.filter(None)?;
    let devices = api
        .entities
        .devices
        .list(caller.tenant, &filter, &page.link()?)
        .await?;
    Ok(Json(devices))
}

/// The device of a name.
#[utoipa::path(get, path = "/api/tenant/device", tag = "device", operation_id = "getTenantDeviceByName",
    params(NameParams), responses((status = 200, body = Device)))]
async fn by_name(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(name): Query<NameParams>,
) -> ApiResult<Json<Device>> {
    let name = name.device_name.ok_or_else(|| missing("deviceName"))?;
    let found = api.entities.devices.by_name(caller.tenant, &name).await?;
    found
        .map(Json)
        .ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))
}

/// A page of devices of a customer with what lists show beside them.
#[utoipa::path(get, path = "/api/customer/{customerId}/deviceInfos", tag = "device",
    operation_id = "getCustomerDeviceInfos", params(("customerId" = Uuid, Path), PageParams, FilterParams),
    responses((status = 200, body = PageData<DeviceInfo>)))]
async fn infos_of_customer(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
    Query(page): Query<PageParams>,
    Query(params): Query<FilterParams>,
) -> ApiResult<Json<PageData<DeviceInfo>>> {
    let customer = CustomerId(id);
    api.check(&caller, customer, Operation::Read).await?;
    let filter = params.filter(Some(customer))?;
    let devices = api
        .entities
        .devices
        .list(caller.tenant, &filter, &page.link()?)
        .await?;
    Ok(Json(devices))
}

/// A page of devices of a customer.
#[utoipa::path(get, path = "/api/customer/{customerId}/devices", tag = "device",
    operation_id = "getCustomerDevices", params(("customerId" = Uuid, Path), PageParams, FilterParams),
    responses((status = 200, body = PageData<Device>)))]
async fn of_customer(
    api: State<Api>,
    caller: Caller,
    id: Ids<1>,
    page: Query<PageParams>,
    params: Query<FilterParams>,
) -> ApiResult<Json<PageData<Device>>> {
    let Json(infos) = infos_of_customer(api, caller, id, page, params).await?;
    Ok(Json(infos.map(|info| info.device)))
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
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(ids): Query<DeviceIds>,
) -> ApiResult<Json<Vec<Device>>> {
    let ids = parse_uuids("deviceIds", &ids.device_ids.unwrap_or_default(), DeviceId)?;
    let devices = api.entities.devices.by_ids(caller.tenant, &ids).await?;
    let readable = devices
        .into_iter()
        .filter(|device| {
            allows(
                &caller,
                Operation::Read,
                &Entity::Device(device.clone()).resource(),
            )
        })
        .collect();
    Ok(Json(readable))
}

/// The device types of the tenant: the names of its device profiles.
#[utoipa::path(get, path = "/api/device/types", tag = "device", operation_id = "getDeviceTypes",
    responses((status = 200, body = Vec<EntitySubtype>)))]
async fn types(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<Vec<EntitySubtype>>> {
    let profiles = super::device_profile::all(&api, caller.tenant).await?;
    let mut types: Vec<EntitySubtype> = profiles
        .into_iter()
        .map(|profile| EntitySubtype {
            tenant_id: caller.tenant,
            entity_type: EntityType::Device,
            subtype: profile.name,
        })
        .collect();
    types.sort_by(|a, b| a.subtype.cmp(&b.subtype));
    Ok(Json(types))
}

/// A page of devices of a profile, or of any: a sample to learn names of series from.
pub(super) async fn sample(
    api: &Api,
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
