//! The router: every endpoint behind its check, and the layers that all requests pass.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use tower_http::catch_panic::CatchPanicLayer;

use crate::endpoint::{ApiRoutes, MaxUpload, RestEndpoint};
use crate::error::{ApiError, ApiResult, ErrorCode};
use crate::options::Options;
use crate::state::{ApiDependencies, ApiState, SharedApi};
use crate::{caller, controllers, error, openapi, telemetry, ws};

/// Extra bytes that a multipart form may have besides its file.
const FORM: u64 = 64 << 10;

/// Paths below `/api` that this router does not guard.
const UNGUARDED: [&str; 4] = ["/api/noauth/", "/api/v1/", "/api/ws", "/api/images/public/"];

pub(crate) fn routes() -> ApiRoutes {
    controllers::routes().merge(telemetry::routes())
}

/// Returns all endpoints with the callers that may use them.
pub fn endpoints() -> Vec<RestEndpoint> {
    routes().endpoints()
}

/// Builds the REST API with its OpenAPI description. It answers every path that no other router serves.
///
/// Servers add `ConnectInfo<SocketAddr>` to the requests, for limits per address.
pub fn router(deps: ApiDependencies, options: Options) -> axum::Router {
    let max_body = options.max_body.as_usize();
    let api: SharedApi = Arc::new(ApiState::new(deps, options));
    let routes = routes();
    let limits = Arc::new(BodyLimits {
        body: api.options.max_body.0,
        package: api.options.max_package.0.saturating_add(FORM),
        resource: api.options.max_resource.0.saturating_add(FORM),
        uploads: routes.uploads(),
    });
    let (router, document) = routes.build(&api, openapi::empty());
    router
        .merge(openapi::routes(&document))
        .merge(ws::routes())
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(DefaultBodyLimit::max(max_body))
        .layer(middleware::from_fn_with_state(limits, refuse_large_body))
        .layer(CatchPanicLayer::custom(error::answer_panic))
        .with_state(api)
}

/// Limits for the declared `Content-Length` of a body, bytes.
struct BodyLimits {
    body: u64,
    package: u64,
    resource: u64,
    /// The endpoints that accept more than the body of a request.
    uploads: Vec<(RestEndpoint, MaxUpload)>,
}

impl BodyLimits {
    fn of(&self, request: &Request) -> u64 {
        let path = request.extensions().get::<MatchedPath>();
        let upload = self.uploads.iter().find(|(endpoint, _)| {
            endpoint.method == request.method().as_str()
                && path.is_some_and(|path| path.as_str() == endpoint.path)
        });
        match upload.map_or(MaxUpload::Body, |(_, upload)| *upload) {
            MaxUpload::Body => self.body,
            MaxUpload::Package => self.package,
            MaxUpload::Resource => self.resource,
        }
    }
}

/// Refuses a body by its declared length before any of it is read; a body without one is cut off while reading.
async fn refuse_large_body(
    State(limits): State<Arc<BodyLimits>>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    let declared = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|bytes| bytes > limits.of(&request)) {
        return Err(ApiError::with_status(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::BadRequestParams,
            "Payload size exceeds the limit",
        ));
    }
    Ok(next.run(request).await)
}

async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::BadRequestParams,
        format!("Request method '{method}' is not supported"),
    )
}

/// Answers an unknown path: 401 below `/api/` if the caller is not authenticated, otherwise 404.
async fn not_found(State(api): State<SharedApi>, uri: Uri, request: Request) -> ApiResult<()> {
    let path = uri.path();
    if path.starts_with("/api/") && !UNGUARDED.iter().any(|prefix| path.starts_with(prefix)) {
        caller::authenticate(&api, request.headers()).await?;
    }
    Err(ApiError::not_found(format!(
        "No static resource {}.",
        path.trim_start_matches('/')
    )))
}
