//! Use of the API from a browser by web pages of other origins (CORS).

use std::time::Duration;

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri, header};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

/// How long a browser may cache the answer to a preflight request.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// Origins of web pages that may use the API.
#[derive(Debug, Clone)]
pub(crate) enum AllowedOrigins {
    /// Pages of these origins; `*` stands for all.
    Named(Vec<String>),
    /// Pages that this machine serves itself.
    ThisMachine,
}

impl AllowedOrigins {
    /// Parses a comma-separated list of origins.
    pub(crate) fn parse(list: &str) -> Self {
        let origins = list.split(',').map(str::trim);
        Self::Named(
            origins
                .filter(|origin| !origin.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    fn allow(&self, origin: &[u8]) -> bool {
        match self {
            Self::Named(known) => known
                .iter()
                .any(|known| known == "*" || known.as_bytes() == origin),
            Self::ThisMachine => {
                let uri = Uri::try_from(origin).ok();
                let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
                let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
                host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

/// Lets pages of these origins use everything below `/api/`.
///
/// Authentication does not use cookies: a page has no more rights than the token that it sends.
pub(crate) fn layer(origins: AllowedOrigins) -> CorsLayer {
    let is_allowed = move |origin: &HeaderValue, request: &Parts| {
        request.uri.path().starts_with("/api/") && origins.allow(origin.as_bytes())
    };
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_allowed))
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(MAX_AGE)
        .vary([header::ORIGIN])
}
