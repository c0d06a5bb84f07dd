//! Device profiles.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::EntityKey;
use fieldline_model::entity::{DeviceProfile, DeviceProfileInfo, EntityDraft};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::timeseries::AttributeScope;
use serde::Deserialize;
use utoipa_axum::routes;

use super::device_list::sample;
use super::{Either, EntityInfo, profile};
use crate::caller::CallerPrincipal;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::ApiResult;
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, parse_uuid};
use crate::state::SharedApi;

/// Devices that names of series and attributes are learned from.
const SAMPLED_DEVICES: u32 = 100;
/// Profiles read at once.
const PAGE: u32 = 1_000;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T, routes!(get))
        .add(T, routes!(save))
        .add(T, routes!(delete))
        .add(T, routes!(set_default))
        .add(T, routes!(list))
        .add(TC, routes!(info))
        .add(TC, routes!(default_info))
        .add(TC, routes!(infos))
        .add(T, routes!(infos_by_ids))
        .add(TC, routes!(names))
        .add(T, routes!(series_keys))
        .add(T, routes!(attribute_keys))
}

/// The device profile of an id.
#[utoipa::path(get, path = "/api/deviceProfile/{deviceProfileId}", tag = "device-profile",
    operation_id = "getDeviceProfileById", params(("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = DeviceProfile)))]
async fn get(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<DeviceProfile>> {
    Ok(Json(
        api.load::<DeviceProfile>(&caller, id, AccessOperation::Read)
            .await?,
    ))
}

/// Creates a device profile, or updates it where it has an id.
#[utoipa::path(post, path = "/api/deviceProfile", tag = "device-profile", operation_id = "saveDeviceProfile",
    request_body = DeviceProfile, responses((status = 200, body = DeviceProfile)))]
async fn save(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    JsonBody(profile): JsonBody<EntityDraft<DeviceProfile>>,
) -> ApiResult<Json<DeviceProfile>> {
    profile::save(&api, &caller, profile).await
}

/// Deletes a device profile that no device has.
#[utoipa::path(delete, path = "/api/deviceProfile/{deviceProfileId}", tag = "device-profile",
    operation_id = "deleteDeviceProfile", params(("deviceProfileId" = Uuid, Path)), responses((status = 200)))]
async fn delete(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<()> {
    profile::delete::<DeviceProfile>(&api, &caller, id).await
}

/// Makes a device profile the default one.
#[utoipa::path(post, path = "/api/deviceProfile/{deviceProfileId}/default", tag = "device-profile",
    operation_id = "setDefaultDeviceProfile", params(("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = DeviceProfile)))]
async fn set_default(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<DeviceProfile>> {
    profile::set_default(&api, &caller, id).await
}

/// A page of device profiles.
#[utoipa::path(get, path = "/api/deviceProfiles", tag = "device-profile", operation_id = "getDeviceProfiles",
    params(PageParams), responses((status = 200, body = PageData<DeviceProfile>)))]
async fn list(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<DeviceProfile>>> {
    profile::list(&api, &caller, page).await.map(Json)
}

/// The short form of a device profile.
#[utoipa::path(get, path = "/api/deviceProfileInfo/{deviceProfileId}", tag = "device-profile",
    operation_id = "getDeviceProfileInfoById", params(("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = DeviceProfileInfo)))]
async fn info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<DeviceProfileInfo>> {
    profile::info::<DeviceProfile>(&api, &caller, id).await
}

/// The short form of the default device profile.
#[utoipa::path(get, path = "/api/deviceProfileInfo/default", tag = "device-profile",
    operation_id = "getDefaultDeviceProfileInfo", responses((status = 200, body = DeviceProfileInfo)))]
async fn default_info(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
) -> ApiResult<Json<DeviceProfileInfo>> {
    profile::default_info::<DeviceProfile>(&api, &caller).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DeviceProfileParams {
    /// Only profiles of this transport.
    transport_type: Option<String>,
    /// Comma-joined ids, in the place of a page.
    device_profile_ids: Option<String>,
}

/// A page of device profiles in their short form, or with `deviceProfileIds` those that the tenant has.
#[utoipa::path(get, path = "/api/deviceProfileInfos", tag = "device-profile", operation_id = "getDeviceProfileInfos",
    params(PageParams, DeviceProfileParams), responses((status = 200, body = inline(Either<PageData<DeviceProfileInfo>, Vec<DeviceProfileInfo>>))))]
async fn infos(
    State(api): State<SharedApi>,
    caller: CallerPrincipal,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DeviceProfileParams>,
) -> ApiResult<Json<Either<PageData<DeviceProfileInfo>, Vec<DeviceProfileInfo>>>> {
    if params.device_profile_ids.is_some() {
        let Json(infos) = infos_by_ids(State(api), caller, QueryParams(params)).await?;
        return Ok(Json(Either::Right(infos)));
    }
    let (tenant, link) = (caller.0.tenant, page.link()?);
    let stores = &api.entities.device_profiles;
    let Some(transport) = params.transport_type.filter(|text| !text.is_empty()) else {
        return Ok(Json(Either::Left(
            stores.list(tenant, &link).await?.map(DeviceProfileInfo::from),
        )));
    };
    // Tenants have few profiles, and the store does not filter by transport: the page is cut here.
    let mut fitting = Vec::new();
    let mut every = PageLink {
        page: 0,
        page_size: PAGE,
        ..link.clone()
    };
    loop {
        let page = stores.list(tenant, &every).await?;
        let of_transport = |profile: &DeviceProfile| profile.transport_type.name() == transport;
        fitting.extend(page.data.into_iter().filter(of_transport));
        if !page.has_next {
            break;
        }
        every.page += 1;
    }
    let total = fitting.len() as u64;
    let skipped = usize::try_from(link.offset()).unwrap_or(usize::MAX);
    let data = fitting
        .into_iter()
        .skip(skipped)
        .take(link.page_size as usize)
        .map(DeviceProfileInfo::from)
        .collect();
    Ok(Json(Either::Left(PageData::new(data, total, &link))))
}

/// Those of the device profiles that the tenant has, in their short form.
#[utoipa::path(get, path = "/api/deviceProfileInfos/list", tag = "device-profile",
    operation_id = "getDeviceProfileInfosByIds", params(DeviceProfileParams),
    responses((status = 200, body = Vec<DeviceProfileInfo>)))]
async fn infos_by_ids(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<DeviceProfileParams>,
) -> ApiResult<Json<Vec<DeviceProfileInfo>>> {
    let ids = ("deviceProfileIds", params.device_profile_ids);
    profile::infos_by_ids::<DeviceProfile>(&api, &caller, ids)
        .await
        .map(Json)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DeviceProfileNames {
    /// Only profiles that a device has.
    #[param(value_type = Option<bool>)]
    active_only: Option<String>,
}

/// Ids and names of the device profiles, by name.
#[utoipa::path(get, path = "/api/deviceProfile/names", tag = "device-profile", operation_id = "getDeviceProfileNames",
    params(DeviceProfileNames), responses((status = 200, body = Vec<EntityInfo>)))]
async fn names(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<DeviceProfileNames>,
) -> ApiResult<Json<Vec<EntityInfo>>> {
    profile::names::<DeviceProfile>(&api, &caller, params.active_only).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ProfileKeysParams {
    /// The profile; any where absent.
    #[param(value_type = Option<Uuid>)]
    device_profile_id: Option<String>,
}

impl ProfileKeysParams {
    /// Devices of the profile to learn names from.
    async fn subjects(self, api: &SharedApi, caller: &Principal) -> ApiResult<Vec<EntityKey>> {
        let profile = match self.device_profile_id.filter(|id| !id.is_empty()) {
            Some(id) => Some(
                api.load::<DeviceProfile>(caller, parse_uuid(&id)?, AccessOperation::Read)
                    .await?
                    .id,
            ),
            None => None,
        };
        let devices = sample(api, caller.tenant, profile, SAMPLED_DEVICES).await?;
        let ids = devices.data.into_iter().map(|info| info.device.id);
        Ok(ids.map(|id| EntityKey::device(caller.tenant, id)).collect())
    }
}

/// Names of the series of devices of a profile; a hundred devices are looked at.
#[utoipa::path(get, path = "/api/deviceProfile/devices/keys/timeseries", tag = "device-profile",
    operation_id = "getTimeseriesKeys", params(ProfileKeysParams), responses((status = 200, body = Vec<String>)))]
async fn series_keys(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<ProfileKeysParams>,
) -> ApiResult<Json<BTreeSet<String>>> {
    let mut keys = BTreeSet::new();
    for subject in params.subjects(&api, &caller).await? {
        keys.extend(api.series.keys(subject).await?);
    }
    Ok(Json(keys))
}

/// Names of the attributes of devices of a profile; a hundred devices are looked at.
#[utoipa::path(get, path = "/api/deviceProfile/devices/keys/attributes", tag = "device-profile",
    operation_id = "getAttributesKeys", params(ProfileKeysParams), responses((status = 200, body = Vec<String>)))]
async fn attribute_keys(
    State(api): State<SharedApi>,
    CallerPrincipal(caller): CallerPrincipal,
    QueryParams(params): QueryParams<ProfileKeysParams>,
) -> ApiResult<Json<BTreeSet<String>>> {
    let mut keys = BTreeSet::new();
    for subject in params.subjects(&api, &caller).await? {
        for scope in AttributeScope::ALL {
            let attributes = api.attributes.get(subject, scope, None).await?;
            keys.extend(attributes.into_iter().map(|attribute| attribute.key));
        }
    }
    Ok(Json(keys))
}
