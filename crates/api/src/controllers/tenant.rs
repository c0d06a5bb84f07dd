//! Tenants.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::Json;
use axum::extract::State;
use fieldline_core::any_entity::AnyEntity;
use fieldline_entities::access::{AccessOperation, allows};
use fieldline_model::entity::{EntityDraft, Tenant, TenantInfo};
use fieldline_model::page::PageData;
use fieldline_model::{EntityType, TenantId, TenantProfileId};
use serde::Deserialize;
use utoipa_axum::routes;

use super::Either;
use super::dashboard_home::forget_gone_dashboards;
use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, S, ST};
use crate::error::{ApiError, ApiResult};
use crate::extract::{JsonBody, PageParams, PathIds, QueryParams, parse_uuids};
use crate::state::{ApiState, SharedApi};

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(ST.reads(routes!(get)))
        .add(ST.reads(routes!(info)))
        .add(S.changes(routes!(save), AuditRule::Save(EntityType::Tenant)))
        .add(ST.changes(routes!(delete), AuditRule::Delete(EntityType::Tenant)))
        .add(ST.reads(routes!(list)))
        .add(S.reads(routes!(infos)))
        .add(ST.reads(routes!(by_ids)))
}

/// Returns the tenant with this id.
#[utoipa::path(get, path = "/api/tenant/{tenantId}", tag = "tenant", operation_id = "getTenantById",
    params(("tenantId" = uuid::Uuid, Path)), responses((status = 200, body = Tenant)))]
async fn get(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<Json<Tenant>> {
    let mut tenant: Tenant = api.load(&caller, id, AccessOperation::Read).await?;
    forget_gone_dashboards(&api, tenant.id, &mut tenant.additional_info).await?;
    Ok(Json(tenant))
}

/// Returns the tenant with this id, with the name of its profile.
#[utoipa::path(get, path = "/api/tenant/info/{tenantId}", tag = "tenant", operation_id = "getTenantInfoById",
    params(("tenantId" = uuid::Uuid, Path)), responses((status = 200, body = TenantInfo)))]
async fn info(call: ApiCall, ids: PathIds<1>) -> ApiResult<Json<TenantInfo>> {
    let api = SharedApi::clone(&call.api);
    let Json(tenant) = get(call, ids).await?;
    let mut infos = with_profiles(&api, vec![tenant]).await?;
    infos
        .pop()
        .map(Json)
        .ok_or_else(|| ApiError::not_found("Tenant not found"))
}

/// Creates a tenant, or updates it if it has an id.
#[utoipa::path(post, path = "/api/tenant", tag = "tenant", operation_id = "saveTenant", request_body = Tenant,
    responses((status = 200, body = Tenant)))]
async fn save(
    ApiCall { api, caller }: ApiCall,
    JsonBody(tenant): JsonBody<EntityDraft<Tenant>>,
) -> ApiResult<Json<Tenant>> {
    if let Some(id) = tenant.id {
        api.check(&caller, id, AccessOperation::Write).await?;
    }
    Ok(Json(api.services.tenants.save(tenant).await?))
}

/// Deletes a tenant with everything that belongs to it.
#[utoipa::path(delete, path = "/api/tenant/{tenantId}", tag = "tenant", operation_id = "deleteTenant",
    params(("tenantId" = uuid::Uuid, Path)), responses((status = 200)))]
async fn delete(ApiCall { api, caller }: ApiCall, PathIds([id]): PathIds<1>) -> ApiResult<()> {
    api.check(&caller, TenantId(id), AccessOperation::Delete).await?;
    Ok(api.services.tenants.delete(TenantId(id)).await?)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct TenantIds {
    /// Comma-joined ids.
    tenant_ids: Option<String>,
}

/// Returns a page of tenants, or with `tenantIds` those of them that the caller may see.
#[utoipa::path(get, path = "/api/tenants", tag = "tenant", operation_id = "getTenants", params(PageParams, TenantIds),
    responses((status = 200, body = inline(Either<PageData<Tenant>, Vec<Tenant>>))))]
async fn list(
    ApiCall { api, caller }: ApiCall,
    QueryParams(page): QueryParams<PageParams>,
    QueryParams(ids): QueryParams<TenantIds>,
) -> ApiResult<Json<Either<PageData<Tenant>, Vec<Tenant>>>> {
    if ids.tenant_ids.is_some() {
        let Json(tenants) = by_ids(ApiCall { api, caller }, QueryParams(ids)).await?;
        return Ok(Json(Either::Right(tenants)));
    }
    if caller.authority != fieldline_model::entity::Authority::SysAdmin {
        return Err(ApiError::denied());
    }
    let tenants = api.entities.tenants.list(&page.link()?).await?;
    Ok(Json(Either::Left(tenants)))
}

/// Returns a page of tenants with the names of their profiles.
#[utoipa::path(get, path = "/api/tenantInfos", tag = "tenant", operation_id = "getTenantInfos", params(PageParams),
    responses((status = 200, body = PageData<TenantInfo>)))]
async fn infos(
    State(api): State<SharedApi>,
    QueryParams(page): QueryParams<PageParams>,
) -> ApiResult<Json<PageData<TenantInfo>>> {
    let page = api.entities.tenants.list(&page.link()?).await?;
    Ok(Json(PageData {
        data: with_profiles(&api, page.data).await?,
        total_pages: page.total_pages,
        total_elements: page.total_elements,
        has_next: page.has_next,
    }))
}

/// Returns those of the tenants that the caller may see.
#[utoipa::path(get, path = "/api/tenants/list", tag = "tenant", operation_id = "getTenantsByIds", params(TenantIds),
    responses((status = 200, body = Vec<Tenant>)))]
async fn by_ids(
    ApiCall { api, caller }: ApiCall,
    QueryParams(ids): QueryParams<TenantIds>,
) -> ApiResult<Json<Vec<Tenant>>> {
    let ids = parse_uuids("tenantIds", &ids.tenant_ids.unwrap_or_default(), TenantId)?;
    let tenants = api.entities.tenants.by_ids(&ids).await?;
    let readable = tenants
        .into_iter()
        .filter(|tenant| {
            allows(
                &caller,
                AccessOperation::Read,
                &AnyEntity::Tenant(tenant.clone()).resource(),
            )
        })
        .collect();
    Ok(Json(readable))
}

async fn with_profiles(api: &ApiState, tenants: Vec<Tenant>) -> ApiResult<Vec<TenantInfo>> {
    let mut names: HashMap<TenantProfileId, String> = HashMap::new();
    let mut infos = Vec::with_capacity(tenants.len());
    for tenant in tenants {
        let id = tenant.tenant_profile_id.unwrap_or_default();
        let tenant_profile_name = match names.entry(id) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let profile = api.entities.tenant_profiles.get(id).await?;
                unknown
                    .insert(profile.map(|profile| profile.name).unwrap_or_default())
                    .clone()
            }
        };
        infos.push(TenantInfo {
            tenant,
            tenant_profile_name,
        });
    }
    Ok(infos)
}
