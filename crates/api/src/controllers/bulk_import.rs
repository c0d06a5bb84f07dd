//! Import of many devices or assets from CSV text.

use axum::Json;
use fieldline_entities::services::ImportContext;
use fieldline_model::entity::{ImportRequest, ImportResult};
use utoipa_axum::routes;

use crate::audit::AuditRule;
use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, T};
use crate::error::ApiResult;
use crate::extract::JsonBody;
use crate::state::ApiState;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default()
        .add(T.changes(routes!(devices), AuditRule::Nothing))
        .add(T.changes(routes!(assets), AuditRule::Nothing))
}

fn links(api: &ApiState) -> ImportContext<'_> {
    ImportContext {
        usage: &api.usage,
        devices: &*api.device_link,
        type_cast: api.options.json_type_cast,
    }
}

/// Creates and updates devices, one per line. Invalid lines are reported, and the rest is stored.
#[utoipa::path(post, path = "/api/device/bulk_import", tag = "device", operation_id = "processDevicesBulkImport",
    request_body = ImportRequest, responses((status = 200, body = ImportResult)))]
async fn devices(
    ApiCall { api, caller }: ApiCall,
    JsonBody(request): JsonBody<ImportRequest>,
) -> ApiResult<Json<ImportResult>> {
    let imports = &api.services.imports;
    Ok(Json(imports.devices(&caller, links(&api), request).await?))
}

/// Creates and updates assets, one per line. Invalid lines are reported, and the rest is stored.
#[utoipa::path(post, path = "/api/asset/bulk_import", tag = "asset", operation_id = "processAssetsBulkImport",
    request_body = ImportRequest, responses((status = 200, body = ImportResult)))]
async fn assets(
    ApiCall { api, caller }: ApiCall,
    JsonBody(request): JsonBody<ImportRequest>,
) -> ApiResult<Json<ImportResult>> {
    let imports = &api.services.imports;
    Ok(Json(imports.assets(&caller, links(&api), request).await?))
}
