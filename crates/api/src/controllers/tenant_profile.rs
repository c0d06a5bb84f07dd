//! Tenant profiles.

use axum::Json;
use axum::extract::State;
use fieldline_entities::access::AccessOperation;
use fieldline_model::entity::{EntityDraft, TenantProfile, TenantProfileInfo};
use fieldline_model::page::PageData;
use fieldline_model::{EntityType, TenantProfileId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, parse_uuids};
use crate::state::SharedApi;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(S.reads(routes!(get)))
        .add(S.changes(routes!(save), AuditRule::Save(EntityType::TenantProfile)))
        .add(S.changes(routes!(delete), AuditRule::Delete(EntityType::TenantProfile)))
        .add(S.changes(routes!(set_default), AuditRule::Nothing))
        .add(S.reads(routes!(info)))
        .add(S.reads(routes!(default_info)))
        .add(S.reads(routes!(list)))
        .add(S.reads(routes!(by_ids)))
        .add(S.reads(routes!(infos)))
}

fn short(profile: TenantProfile) -> TenantProfileInfo {
    TenantProfileInfo {
        id: profile.id,
        name: profile.name,
    }
}

/// Returns the tenant profile with this id.
#[utoipa::path(get, path = "/api/tenantProfile/{tenantProfileId}", tag = "tenant-profile",
    operation_id = "getTenantProfileById", params(("tenantProfileId" = Uuid, Path)),
    responses((status = 200, body = TenantProfile)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<TenantProfile>> {
    Ok(Json(
        api.load::<TenantProfile>(&caller, id, AccessOperation::Read)
            .await?,
    ))
}

/// Creates a tenant profile, or updates it if it has an id.
#[utoipa::path(post, path = "/api/tenantProfile", tag = "tenant-profile", operation_id = "saveTenantProfile",
    request_body = TenantProfile, responses((status = 200, body = TenantProfile)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(profile): JsonBody<EntityDraft<TenantProfile>>,
) -> ApiResult<Json<TenantProfile>> {
    if let Some(id) = profile.id {
        api.load::<TenantProfile>(&caller, id.0, AccessOperation::Write)
            .await?;
    }
    Ok(Json(api.services.tenant_profiles.save(profile).await?))
}

/// Deletes a tenant profile that no tenant uses.
#[utoipa::path(delete, path = "/api/tenantProfile/{tenantProfileId}", tag = "tenant-profile",
    operation_id = "deleteTenantProfile", params(("tenantProfileId" = Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    let profile = api
        .load::<TenantProfile>(&caller, id, AccessOperation::Delete)
        .await?;
    Ok(api.services.tenant_profiles.delete(&profile).await?)
}

/// Makes a tenant profile the default one.
#[utoipa::path(post, path = "/api/tenantProfile/{tenantProfileId}/default", tag = "tenant-profile",
    operation_id = "setDefaultTenantProfile", params(("tenantProfileId" = Uuid, Path)),
    responses((status = 200, body = TenantProfile)))]
async fn set_default(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<TenantProfile>> {
    api.load::<TenantProfile>(&caller, id, AccessOperation::Write)
        .await?;
    let id = TenantProfileId(id);
    Ok(Json(api.services.tenant_profiles.set_default(id).await?))
}

/// Returns the short form of a tenant profile.
#[utoipa::path(get, path = "/api/tenantProfileInfo/{tenantProfileId}", tag = "tenant-profile",
    operation_id = "getTenantProfileInfoById", params(("tenantProfileId" = Uuid, Path)),
    responses((status = 200, body = TenantProfileInfo)))]
async fn info(
    ApiCall { api, caller }: ApiCall,
    PathIds([id]): PathIds<1>,
) -> ApiResult<Json<TenantProfileInfo>> {
    Ok(Json(short(
        api.load::<TenantProfile>(&caller, id, AccessOperation::Read)
            .await?,
    )))
}

/// Returns the short form of the default tenant profile.
#[utoipa::path(get, path = "/api/tenantProfileInfo/default", tag = "tenant-profile",
    operation_id = "getDefaultTenantProfileInfo", responses((status = 200, body = TenantProfileInfo)))]
async fn default_info(State(api): State<SharedApi>) -> ApiResult<Json<TenantProfileInfo>> {
    let profile = api.entities.tenant_profiles.default_profile().await?;
    let profile = profile.ok_or_else(ApiError::item_not_found)?;
    Ok(Json(short(profile)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TenantProfileIds {
    /// Comma-joined ids.
    ids: Option<String>,
}

/// Returns a page of tenant profiles, or with `ids` those of them that exist.
#[utoipa::path(get, path = "/api/tenantProfiles", tag = "tenant-profile", operation_id = "getTenantProfiles",
    params(PageParams, TenantProfileIds), responses((status = 200, body = inline(Either<PageData<TenantProfile>, Vec<TenantProfile>>))))]
async fn list(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(ids): QueryParams<TenantProfileIds>,
) -> ApiResult<Json<Either<PageData<TenantProfile>, Vec<TenantProfile>>>> {
    if ids.ids.is_some() {
        let Json(profiles) = by_ids(State(api), QueryParams(ids)).await?;
        return Ok(Json(Either::Right(profiles)));
    }
    let profiles = api.entities.tenant_profiles.list(&page.link()?).await?;
    Ok(Json(Either::Left(profiles)))
}

/// Returns those of the tenant profiles that exist.
#[utoipa::path(get, path = "/api/tenantProfiles/list", tag = "tenant-profile",
    operation_id = "getTenantProfileListByIds", params(TenantProfileIds),
    responses((status = 200, body = Vec<TenantProfile>)))]
async fn by_ids(
    State(api): State<SharedApi>,
    QueryParams(ids): QueryParams<TenantProfileIds>,
) -> ApiResult<Json<Vec<TenantProfile>>> {
    let mut profiles = Vec::new();
    for id in parse_uuids("ids", &ids.ids.unwrap_or_default(), TenantProfileId)? {
        profiles.extend(api.entities.tenant_profiles.get(id).await?);
    }
    Ok(Json(profiles))
}

/// Returns a page of tenant profiles in their short form.
#[utoipa::path(get, path = "/api/tenantProfileInfos", tag = "tenant-profile", operation_id = "getTenantProfileInfos",
    params(PageParams), responses((status = 200, body = PageData<TenantProfileInfo>)))]
async fn infos(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<TenantProfileInfo>>> {
    let profiles = api.entities.tenant_profiles.list(&page.link()?).await?;
    Ok(Json(profiles.map(short)))
}
