//! OTA packages: firmware and software for devices.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use fieldline_core::any_entity::AnyEntity;
use fieldline_core::ports::OtaPackageFilter;
use fieldline_entities::access::{AccessOperation, Principal};
use fieldline_model::entity::{OtaPackageInfo, SaveOtaPackageInfoRequest};
use fieldline_model::page::PageData;
use fieldline_model::{DeviceProfileId, EntityType, OtaPackageId};
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, MaxUpload, T, TC};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, parse_uuid};
use crate::ota::{self, OtaUploadParams};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.changes(routes!(save), AuditRule::Save(EntityType::OtaPackage)))
        .add(T.reads(routes!(get)))
        .add(
            T.changes(routes!(upload), AuditRule::Upload(EntityType::OtaPackage))
                .max_upload(MaxUpload::Package),
        )
        .add(T.changes(routes!(delete), AuditRule::Delete(EntityType::OtaPackage)))
        .add(TC.reads(routes!(info)))
        .add(T.reads(routes!(download)))
        .add(TC.reads(routes!(list)))
        .add(TC.reads(routes!(list_ready)))
        .add(TC.reads(routes!(count_devices)))
}

/// Creates a package without data, or updates it if it has an id.
#[utoipa::path(post, path = "/api/otaPackage", tag = "ota-package", operation_id = "saveOtaPackageInfo",
    request_body = SaveOtaPackageInfoRequest, responses((status = 200, body = OtaPackageInfo)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(request): JsonBody<SaveOtaPackageInfoRequest>,
) -> ApiResult<Json<OtaPackageInfo>> {
    if let Some(id) = request.info.id {
        api.load::<OtaPackageInfo>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    let created = request.info.id.is_none();
    let saved = api
        .services
        .ota_packages
        .save_info(caller.tenant, request)
        .await?;
    let entity = AnyEntity::OtaPackage(saved.clone());
    api.services.actions.push_saved(&caller, created, &entity).await;
    Ok(Json(saved))
}

/// Uploads the data of a package: the part `file` of a form.
#[utoipa::path(post, path = "/api/otaPackage/{otaPackageId}", tag = "ota-package",
    operation_id = "saveOtaPackageData", params(("otaPackageId" = Uuid, Path), OtaUploadParams),
    request_body(content = Vec<u8>, content_type = "multipart/form-data"),
    responses((status = 200, body = OtaPackageInfo)))]
async fn upload(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
    QueryParams(params): QueryParams<OtaUploadParams>,
    request: axum::extract::Request,
) -> ApiResult<Json<OtaPackageInfo>> {
    let package: OtaPackageInfo = api.load(&caller, id, AccessOperation::Read).await?;
    let saved = ota::receive(&api, package, params, request).await?;
    let entity = AnyEntity::OtaPackage(saved.clone());
    api.services.actions.push_saved(&caller, false, &entity).await;
    Ok(Json(saved))
}

/// Hides the link of a package from public users: it may contain access credentials for the file, and anyone can act as
/// a public customer.
fn shown(caller: &Principal, package: OtaPackageInfo) -> OtaPackageInfo {
    match caller.is_public() {
        true => OtaPackageInfo { url: None, ..package },
        false => package,
    }
}

/// Returns a package without its data.
#[utoipa::path(get, path = "/api/otaPackage/info/{otaPackageId}", tag = "ota-package",
    operation_id = "getOtaPackageInfoById", params(("otaPackageId" = Uuid, Path)),
    responses((status = 200, body = OtaPackageInfo)))]
async fn info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<OtaPackageInfo>> {
    // Customer users may see the packages of the tenant, too.
    let found = api
        .entities
        .ota_packages
        .get(caller.tenant, OtaPackageId(id))
        .await?;
    let gone = || ApiError::not_found(format!("Ota package with id [{id}] is not found"));
    Ok(Json(shown(&caller, found.ok_or_else(gone)?)))
}

/// Returns a package with its data as base64 in `data`.
#[utoipa::path(get, path = "/api/otaPackage/{otaPackageId}", tag = "ota-package",
    operation_id = "getOtaPackageById", params(("otaPackageId" = Uuid, Path)),
    responses((status = 200, body = OtaPackageInfo)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Response> {
    let package: OtaPackageInfo = api.load(&caller, id, AccessOperation::Read).await?;
    ota::whole(&api, package)
}

/// Downloads the data of a package.
#[utoipa::path(get, path = "/api/otaPackage/{otaPackageId}/download", tag = "ota-package",
    operation_id = "downloadOtaPackage", params(("otaPackageId" = Uuid, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream")))]
async fn download(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Response> {
    let package: OtaPackageInfo = api.load(&caller, id, AccessOperation::Read).await?;
    if package.link().is_some() {
        return Ok(StatusCode::BAD_REQUEST.into_response());
    }
    match ota::file(&api, package) {
        Some(file) => Ok(file),
        None => Err(ApiError::not_found("The OTA package has no data")),
    }
}

/// Returns a page of packages of the tenant.
#[utoipa::path(get, path = "/api/otaPackages", tag = "ota-package", operation_id = "getOtaPackages",
    params(PageParams), responses((status = 200, body = PageData<OtaPackageInfo>)))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<OtaPackageInfo>>> {
    let stores = &api.entities.ota_packages;
    let page = stores
        .list(caller.tenant, OtaPackageFilter::All, &page.link()?)
        .await?;
    Ok(Json(page.map(|package| shown(&caller, package))))
}

/// Returns a page of packages that can be assigned to devices of a profile.
#[utoipa::path(get, path = "/api/otaPackages/{deviceProfileId}/{type}", tag = "ota-package",
    operation_id = "getOtaPackagesByDeviceProfileIdAndType",
    params(("deviceProfileId" = Uuid, Path), ("type" = String, Path), PageParams),
    responses((status = 200, body = PageData<OtaPackageInfo>)))]
async fn list_ready(
    ApiCall { api, caller }: ApiCall,
    axum::extract::Path((profile, kind)): axum::extract::Path<(String, String)>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<OtaPackageInfo>>> {
    let profile = DeviceProfileId(parse_uuid(&profile)?);
    let filter = OtaPackageFilter::Ready(profile, ota::parse(&kind)?);
    let stores = &api.entities.ota_packages;
    let page = stores.list(caller.tenant, filter, &page.link()?).await?;
    Ok(Json(page.map(|package| shown(&caller, package))))
}

/// Deletes a package that no device and no profile uses.
#[utoipa::path(delete, path = "/api/otaPackage/{otaPackageId}", tag = "ota-package",
    operation_id = "deleteOtaPackage", params(("otaPackageId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let package: OtaPackageInfo = api.load(&caller, id, AccessOperation::Delete).await?;
    api.services.ota_packages.delete(&package).await?;
    let entity = AnyEntity::OtaPackage(package);
    api.services.actions.push_deleted(&caller, &entity).await;
    Ok(())
}

/// Counts the devices of a profile without a package of their own, which get that of the profile.
#[utoipa::path(get, path = "/api/devices/count/{otaPackageType}/{deviceProfileId}", tag = "device",
    operation_id = "countByDeviceProfileAndEmptyOtaPackage",
    params(("otaPackageType" = String, Path), ("deviceProfileId" = Uuid, Path)),
    responses((status = 200, body = u64, content_type = "application/json")))]
async fn count_devices(
    ApiCall { api, caller }: ApiCall,
    axum::extract::Path((kind, profile)): axum::extract::Path<(String, String)>,
) -> ApiResult<Json<u64>> {
    let profile = DeviceProfileId(parse_uuid(&profile)?);
    let updates = &api.entities.ota_updates;
    let count = updates
        .count_following(caller.tenant, profile, ota::parse(&kind)?)
        .await?;
    Ok(Json(count))
}
