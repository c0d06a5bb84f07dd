//! The OpenAPI description.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::compression;

/// Path of the description, for client generators and the pages that show it.
const DOCUMENT: &str = "/v3/api-docs/thingsboard";

#[derive(OpenApi)]
#[openapi(info(
    title = "Fieldline REST API",
    description = "Log in with `POST /api/auth/login`, and send the token as `X-Authorization: Bearer <token>`. \
        `x-authorities` says who may call an endpoint."
))]
struct OpenApiDocument;

/// Returns the description without endpoints.
pub(crate) fn empty() -> utoipa::openapi::OpenApi {
    let mut document = OpenApiDocument::openapi();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("JWT")
        .build();
    document
        .components
        .get_or_insert_default()
        .add_security_scheme("token", SecurityScheme::Http(scheme));
    document
}

/// Returns the route of the description. It is kept as compressed text: the tree that it is made of takes some megabytes.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(
    document: &utoipa::openapi::OpenApi,
) -> axum::Router<S> {
    let text = serde_json::to_vec(document).unwrap_or_default();
    let packed = compression::gzip_small(&text).unwrap_or_default();
    axum::Router::new().route(
        DOCUMENT,
        get(async move |request: HeaderMap| answer(&packed, &request)),
    )
}

fn answer(packed: &Bytes, request: &HeaderMap) -> Response {
    let head = [
        (header::CONTENT_TYPE, "application/json"),
        (header::VARY, "Accept-Encoding"),
    ];
    if compression::takes_gzip(request) {
        return (head, [(header::CONTENT_ENCODING, "gzip")], packed.clone()).into_response();
    }
    match compression::inflate(packed) {
        Some(text) => (head, text).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
