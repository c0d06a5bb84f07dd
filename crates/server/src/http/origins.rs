//! Which web pages of other origins may use the API (<https://fetch.spec.whatwg.org/#http-cors-protocol>).

use std::time::Duration;

use axum::Router;
use hyper::header::{HeaderValue, ORIGIN};
use hyper::{Request, Uri};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

/// How long browsers remember what they were told.
const REMEMBERED: Duration = Duration::from_secs(1_800);

/// The origins of a setting: `*` for all, else a list with commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origins {
    /// Any page may.
    All,
    /// Pages that this machine delivers, on whatever port.
    Local,
    /// Pages of these may; with none, only those that this server delivers itself.
    These(Vec<HeaderValue>),
}

impl Origins {
    /// Those of a setting that was checked.
    pub(crate) fn of(setting: &str) -> Self {
        Self::parse(setting).unwrap_or(Self::These(Vec::new()))
    }

    /// Reads the setting; `None` where it names what is no origin.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.trim() == "*" {
            return Some(Self::All);
        }
        let named = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        named
            .map(|name| {
                let uri: Uri = name.parse().ok()?;
                let is_origin = uri.scheme().is_some() && uri.path() == "/" && !name.ends_with('/');
                HeaderValue::from_str(name).ok().filter(|_| is_origin)
            })
            .collect::<Option<Vec<_>>>()
            .map(Self::These)
    }

    /// The same routes for pages of other origins; `None` where no page may use them. Tokens come in headers that pages set
    /// themselves, so nothing that a browser adds by itself is allowed.
    pub(super) fn open(&self, routes: &Router) -> Option<Router> {
        let origins = match self {
            Self::All => AllowOrigin::any(),
            Self::Local => AllowOrigin::predicate(|origin, _| is_local(origin)),
            Self::These(origins) if origins.is_empty() => return None,
            Self::These(origins) => AllowOrigin::list(origins.iter().cloned()),
        };
        let layer = CorsLayer::new()
            .allow_origin(origins)
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            .max_age(REMEMBERED);
        Some(routes.clone().layer(layer))
    }
}

fn is_local(origin: &HeaderValue) -> bool {
    let uri: Option<Uri> = origin.to_str().ok().and_then(|text| text.parse().ok());
    let host = uri.as_ref().and_then(Uri::host);
    matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Whether a page of another origin may be asking, as browsers tell; others pay nothing for it.
pub(super) fn is_foreign<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(ORIGIN) && request.uri().path().starts_with("/api/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_machine_are_told_by_their_host() {
        let local = |origin| is_local(&HeaderValue::from_static(origin));
        assert!(local("http://localhost:4200") && local("http://127.0.0.1") && local("http://[::1]:3000"));
        assert!(!local("https://localhost.example.com") && !local("null") && !local("https://page"));
    }

    #[test]
    fn a_setting_names_origins_or_all_or_none() {
        assert_eq!(Origins::parse(" * "), Some(Origins::All));
        assert_eq!(Origins::parse(""), Some(Origins::These(Vec::new())));
        let Some(Origins::These(two)) = Origins::parse("https://a.example.com, http://localhost:4200") else {
            panic!("both are origins");
        };
        assert_eq!(two, ["https://a.example.com", "http://localhost:4200"]);
        for wrong in [
            "a.example.com",
            "https://a.example.com/",
            "https://a/b",
            "https://a\n",
            "*, https://a",
        ] {
            assert_eq!(Origins::parse(wrong), None, "{wrong}");
        }
    }
}
