//! The OpenAPI description, and the pages that show it.

use axum::response::Redirect;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_swagger_ui::SwaggerUi;

/// Path of the description, for client generators.
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

/// Returns the routes of the description and of the pages that show it.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(
    document: utoipa::openapi::OpenApi,
) -> axum::Router<S> {
    axum::Router::from(SwaggerUi::new("/swagger-ui").url(DOCUMENT, document))
        .route("/swagger-ui.html", get(async || Redirect::to("/swagger-ui/")))
}
