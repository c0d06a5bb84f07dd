//! The map that the operator provides.

use axum::http::{HeaderMap, Method};
use axum::response::Response;
use utoipa_axum::routes;

use crate::caller::ApiCall;
use crate::endpoint::{ApiRoutes, STC};
use crate::error::ApiResult;
use crate::map_file;

pub(super) fn routes() -> ApiRoutes {
    ApiRoutes::default().add(STC.reads(routes!(tiles)))
}

/// Returns the map of this server, a PMTiles archive: the range of bytes that the header `Range` names, or all of it.
#[utoipa::path(get, path = "/api/map/tiles.pmtiles", tag = "map", operation_id = "getMapTiles",
    responses((status = 200, body = Vec<u8>, content_type = "application/vnd.pmtiles"),
        (status = 206, body = Vec<u8>, content_type = "application/vnd.pmtiles"), (status = 304)))]
async fn tiles(ApiCall { api, caller }: ApiCall, method: Method, headers: HeaderMap) -> ApiResult<Response> {
    map_file::send(&api, caller.tenant, &method, &headers).await
}
