//! Device profiles.

use std::collections::BTreeSet;

use axum::Json;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::EntityKey;
use fieldline_model::entity::{DeviceProfile, DeviceProfileInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::timeseries::AttributeScope;
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use super::device::sample;
use super::profile::{self, profile_endpoints};
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T, TC};
use crate::error::ApiResult;
use crate::extract::{PageParams, QueryParams, parse_uuid};
use crate::state::SharedApi;

/// Most devices sampled for the names of series and attributes.
const SAMPLED_DEVICES: u32 = 100;
/// Profiles per page when reading all of them.
const PAGE: u32 = 1_000;

pub(super) fn routes() -> ApiRoutes {
    common::routes()
        .add(TC.reads(routes!(infos)))
        .add(T.reads(routes!(series_keys)))
        .add(T.reads(routes!(attribute_keys)))
}

profile_endpoints! {
    DeviceProfile, DeviceProfileInfo, params: DeviceProfileParams, "device-profile", path: "deviceProfile",
    id: "deviceProfileId", ids: "deviceProfileIds", one: "device profile", an: "a device profile", user: "device",
    active_only: "Only profiles that a device has.",
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct DeviceProfileParams {
    /// Only profiles of this transport.
    transport_type: Option<String>,
    /// Comma-joined ids, instead of a page.
    #[serde(rename = "deviceProfileIds")]
    ids: Option<String>,
}

/// Returns a page of device profiles in their short form, or with `deviceProfileIds` those of them that the tenant has.
#[utoipa::path(get, path = "/api/deviceProfileInfos", tag = "device-profile", operation_id = "getDeviceProfileInfos",
    params(PageParams, DeviceProfileParams), responses((status = 200, body = inline(Either<PageData<DeviceProfileInfo>, Vec<DeviceProfileInfo>>))))]
async fn infos(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(params): QueryParams<DeviceProfileParams>,
) -> ApiResult<Json<Either<PageData<DeviceProfileInfo>, Vec<DeviceProfileInfo>>>> {
    if params.ids.is_some() {
        let infos = profile::infos_by_ids::<DeviceProfile>(&api, &caller, "deviceProfileIds", params.ids);
        return Ok(Json(Either::Right(infos.await?)));
    }
    let (tenant, link) = (caller.tenant, page.link()?);
    let stores = &api.entities.device_profiles;
    let Some(transport) = params.transport_type.filter(|text| !text.is_empty()) else {
        return Ok(Json(Either::Left(
            stores.list(tenant, &link).await?.map(DeviceProfileInfo::from),
        )));
    };
    // Tenants have few profiles, and the store does not filter by transport, so filtering and paging happen here.
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

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct ProfileKeysParams {
    /// The profile; any by default.
    #[param(value_type = Option<Uuid>)]
    device_profile_id: Option<String>,
}

impl ProfileKeysParams {
    /// Returns the devices of the profile to sample.
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

/// Returns the names of the series of devices of a profile, from a sample of 100 devices.
#[utoipa::path(get, path = "/api/deviceProfile/devices/keys/timeseries", tag = "device-profile",
    operation_id = "getTimeseriesKeys", params(ProfileKeysParams), responses((status = 200, body = Vec<String>)))]
async fn series_keys(
    ApiCall { api, caller }: ApiCall,
    QueryParams(params): QueryParams<ProfileKeysParams>,
) -> ApiResult<Json<BTreeSet<String>>> {
    let mut keys = BTreeSet::new();
    for subject in params.subjects(&api, &caller).await? {
        keys.extend(api.series.keys(subject).await?);
    }
    Ok(Json(keys))
}

/// Returns the names of the attributes of devices of a profile, from a sample of 100 devices.
#[utoipa::path(get, path = "/api/deviceProfile/devices/keys/attributes", tag = "device-profile",
    operation_id = "getAttributesKeys", params(ProfileKeysParams), responses((status = 200, body = Vec<String>)))]
async fn attribute_keys(
    ApiCall { api, caller }: ApiCall,
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
