//! Device profiles.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use fieldline_core::access::{Entity, Operation, Principal};
use fieldline_model::entity::{DeviceProfile, DeviceProfileInfo};
use fieldline_model::message::MsgType;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceProfileId, Subject, TenantId};
use serde::Deserialize;
use utoipa_axum::routes;
use uuid::Uuid;

use super::device_list::sample;
use super::{Either, EntityInfo};
use crate::caller::Caller;
use crate::endpoint::{Routes, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Body, Ids, PageParams, Query, parse_uuid, parse_uuids};
use crate::state::{Api, ApiState};

/// Devices that names of series and attributes are learned from.
const SAMPLED_DEVICES: u32 = 100;
/// Profiles read at once.
const PAGE: u32 = 1_000;

pub(super) fn routes() -> Routes {
    Routes::default()
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

async fn load(
    api: &ApiState,
    caller: &Principal,
    id: Uuid,
    operation: Operation,
) -> ApiResult<DeviceProfile> {
    match api.check(caller, DeviceProfileId(id), operation).await? {
        Entity::DeviceProfile(profile) => Ok(profile),
        _ => Err(ApiError::not_found("Device profile not found")),
    }
}

fn short(profile: DeviceProfile) -> DeviceProfileInfo {
    DeviceProfileInfo {
        id: profile.id.unwrap_or_default(),
        tenant_id: profile.tenant_id,
        name: profile.name,
        image: profile.image,
        default_dashboard_id: profile.default_dashboard_id,
        profile_type: profile.profile_type,
        transport_type: profile.transport_type,
    }
}

/// All device profiles of a tenant.
pub(super) async fn all(api: &ApiState, tenant: TenantId) -> ApiResult<Vec<DeviceProfile>> {
    let mut profiles = Vec::new();
    let mut link = PageLink::first(PAGE);
    loop {
        let page = api.entities.device_profiles.list(tenant, &link).await?;
        profiles.extend(page.data);
        if !page.has_next {
            return Ok(profiles);
        }
        link.page += 1;
    }
}

/// The device profile of an id.
#[utoipa::path(get, path = "/api/deviceProfile/{deviceProfileId}", tag = "device-profile",
    operation_id = "getDeviceProfileById", params(("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = DeviceProfile)))]
async fn get(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<DeviceProfile>> {
    Ok(Json(load(&api, &caller, id, Operation::Read).await?))
}

/// Creates a device profile, or updates it where it has an id.
#[utoipa::path(post, path = "/api/deviceProfile", tag = "device-profile", operation_id = "saveDeviceProfile",
    request_body = DeviceProfile, responses((status = 200, body = DeviceProfile)))]
async fn save(
    State(api): State<Api>,
    Caller(caller): Caller,
    Body(profile): Body<DeviceProfile>,
) -> ApiResult<Json<DeviceProfile>> {
    if let Some(id) = profile.id {
        load(&api, &caller, id.0, Operation::Write).await?;
    }
    let created = profile.id.is_none();
    let saved = api.services.device_profiles.save(caller.tenant, profile).await?;
    let entity = Entity::DeviceProfile(saved.clone());
    api.services.actions.saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Deletes a device profile that no device has.
#[utoipa::path(delete, path = "/api/deviceProfile/{deviceProfileId}", tag = "device-profile",
    operation_id = "deleteDeviceProfile", params(("deviceProfileId" = Uuid, Path)), responses((status = 200)))]
async fn delete(State(api): State<Api>, Caller(caller): Caller, Ids([id]): Ids<1>) -> ApiResult<()> {
    let profile = load(&api, &caller, id, Operation::Delete).await?;
    api.services
        .device_profiles
        .delete(caller.tenant, &profile)
        .await?;
    let entity = Entity::DeviceProfile(profile);
    api.services
        .actions
        .entity(&caller, MsgType::EntityDeleted, &entity)
        .await;
    Ok(())
}

/// Makes a device profile the default one.
#[utoipa::path(post, path = "/api/deviceProfile/{deviceProfileId}/default", tag = "device-profile",
    operation_id = "setDefaultDeviceProfile", params(("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = DeviceProfile)))]
async fn set_default(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<DeviceProfile>> {
    load(&api, &caller, id, Operation::Write).await?;
    let profiles = &api.services.device_profiles;
    Ok(Json(
        profiles.set_default(caller.tenant, DeviceProfileId(id)).await?,
    ))
}

/// A page of device profiles.
#[utoipa::path(get, path = "/api/deviceProfiles", tag = "device-profile", operation_id = "getDeviceProfiles",
    params(PageParams), responses((status = 200, body = PageData<DeviceProfile>)))]
async fn list(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(page): Query<PageParams>,
) -> ApiResult<Json<PageData<DeviceProfile>>> {
    let profiles = &api.entities.device_profiles;
    Ok(Json(profiles.list(caller.tenant, &page.link()?).await?))
}

/// The short form of a device profile.
#[utoipa::path(get, path = "/api/deviceProfileInfo/{deviceProfileId}", tag = "device-profile",
    operation_id = "getDeviceProfileInfoById", params(("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = DeviceProfileInfo)))]
async fn info(
    State(api): State<Api>,
    Caller(caller): Caller,
    Ids([id]): Ids<1>,
) -> ApiResult<Json<DeviceProfileInfo>> {
    Ok(Json(short(load(&api, &caller, id, Operation::Read).await?)))
}

/// The short form of the default device profile.
#[utoipa::path(get, path = "/api/deviceProfileInfo/default", tag = "device-profile",
    operation_id = "getDefaultDeviceProfileInfo", responses((status = 200, body = DeviceProfileInfo)))]
async fn default_info(State(api): State<Api>, Caller(caller): Caller) -> ApiResult<Json<DeviceProfileInfo>> {
    let profile = api
        .entities
        .device_profiles
        .default_profile(caller.tenant)
        .await?;
    let profile = profile.ok_or_else(|| ApiError::not_found("Requested item wasn't found!"))?;
    Ok(Json(short(profile)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct InfoParams {
    /// Only profiles of this transport.
    transport_type: Option<String>,
    /// Comma-joined ids, in the place of a page.
    device_profile_ids: Option<String>,
}

/// A page of device profiles in their short form, or with `deviceProfileIds` those that the tenant has.
#[utoipa::path(get, path = "/api/deviceProfileInfos", tag = "device-profile", operation_id = "getDeviceProfileInfos",
    params(PageParams, InfoParams), responses((status = 200, body = PageData<DeviceProfileInfo>)))]
async fn infos(
    State(api): State<Api>,
    caller: Caller,
    Query(page): Query<PageParams>,
    Query(params): Query<InfoParams>,
) -> ApiResult<Json<Either<PageData<DeviceProfileInfo>, Vec<DeviceProfileInfo>>>> {
    if params.device_profile_ids.is_some() {
        let Json(infos) = infos_by_ids(State(api), caller, Query(params)).await?;
        return Ok(Json(Either::Right(infos)));
    }
    let (tenant, link) = (caller.0.tenant, page.link()?);
    let stores = &api.entities.device_profiles;
    let Some(transport) = params.transport_type.filter(|text| !text.is_empty()) else {
        return Ok(Json(Either::Left(stores.list(tenant, &link).await?.map(short))));
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
    let skipped = usize::try_from(link.skipped()).unwrap_or(usize::MAX);
    let data = fitting
        .into_iter()
        .skip(skipped)
        .take(link.page_size as usize)
        .map(short)
        .collect();
    Ok(Json(Either::Left(PageData::new(data, total, &link))))
}

/// Those of the device profiles that the tenant has, in their short form.
#[utoipa::path(get, path = "/api/deviceProfileInfos/list", tag = "device-profile",
    operation_id = "getDeviceProfileInfosByIds", params(InfoParams),
    responses((status = 200, body = Vec<DeviceProfileInfo>)))]
async fn infos_by_ids(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(params): Query<InfoParams>,
) -> ApiResult<Json<Vec<DeviceProfileInfo>>> {
    let ids = params.device_profile_ids.unwrap_or_default();
    let mut infos = Vec::new();
    for id in parse_uuids("deviceProfileIds", &ids, DeviceProfileId)? {
        let found = api.entities.device_profiles.get(caller.tenant, id).await?;
        infos.extend(found.map(short));
    }
    Ok(Json(infos))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct NamesParams {
    /// Only profiles that a device has.
    #[param(value_type = Option<bool>)]
    active_only: Option<String>,
}

/// Ids and names of the device profiles, by name.
#[utoipa::path(get, path = "/api/deviceProfile/names", tag = "device-profile", operation_id = "getDeviceProfileNames",
    params(NamesParams), responses((status = 200, body = Vec<EntityInfo>)))]
async fn names(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(params): Query<NamesParams>,
) -> ApiResult<Json<Vec<EntityInfo>>> {
    let active_only = params.active_only.as_deref() == Some("true");
    let mut infos = Vec::new();
    for profile in all(&api, caller.tenant).await? {
        let id = profile.id.unwrap_or_default();
        if active_only && sample(&api, caller.tenant, Some(id), 1).await?.data.is_empty() {
            continue;
        }
        infos.push(EntityInfo {
            id: id.into(),
            name: profile.name,
        });
    }
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(infos))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct KeysParams {
    /// The profile; any where absent.
    #[param(value_type = Option<Uuid>)]
    device_profile_id: Option<String>,
}

impl KeysParams {
    /// Devices of the profile to learn names from.
    async fn subjects(self, api: &Api, caller: &Principal) -> ApiResult<Vec<Subject>> {
        let profile = match self.device_profile_id.filter(|id| !id.is_empty()) {
            Some(id) => load(api, caller, parse_uuid(&id)?, Operation::Read).await?.id,
            None => None,
        };
        let devices = sample(api, caller.tenant, profile, SAMPLED_DEVICES).await?;
        let ids = devices.data.into_iter().filter_map(|info| info.device.id);
        Ok(ids.map(|id| Subject::device(caller.tenant, id)).collect())
    }
}

/// Names of the series of devices of a profile; a hundred devices are looked at.
#[utoipa::path(get, path = "/api/deviceProfile/devices/keys/timeseries", tag = "device-profile",
    operation_id = "getTimeseriesKeys", params(KeysParams), responses((status = 200, body = Vec<String>)))]
async fn series_keys(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(params): Query<KeysParams>,
) -> ApiResult<Json<BTreeSet<String>>> {
    let mut keys = BTreeSet::new();
    for subject in params.subjects(&api, &caller).await? {
        keys.extend(api.series.keys(subject).await?);
    }
    Ok(Json(keys))
}

/// Names of the attributes of devices of a profile; a hundred devices are looked at.
#[utoipa::path(get, path = "/api/deviceProfile/devices/keys/attributes", tag = "device-profile",
    operation_id = "getAttributesKeys", params(KeysParams), responses((status = 200, body = Vec<String>)))]
async fn attribute_keys(
    State(api): State<Api>,
    Caller(caller): Caller,
    Query(params): Query<KeysParams>,
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
