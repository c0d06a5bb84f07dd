//! Web pages of other origins that use the API from a browser.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

/// How long a browser may remember that it may ask.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// Lets pages of these origins, separated by commas, use everything below `/api/`; `*` stands for all.
///
/// Nobody is logged in by cookies here: a page has no more rights than the token that it sends.
pub(crate) fn layer(origins: &str) -> CorsLayer {
    let origins: Vec<String> = origins
        .split(',')
        .map(|origin| origin.trim().to_owned())
        .filter(|origin| !origin.is_empty())
        .collect();
    let is_allowed = move |origin: &HeaderValue, request: &Parts| {
        let is_known = |known: &String| known == "*" || known.as_bytes() == origin.as_bytes();
        request.uri.path().starts_with("/api/") && origins.iter().any(is_known)
    };
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_allowed))
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(MAX_AGE)
        .vary([header::ORIGIN])
}
