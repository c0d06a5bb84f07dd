//! What the answers with pages and their files say besides the content.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Policy of the pages of this product: no script but its own, nothing evaluated.
const OWN_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob: https:; connect-src 'self' ws: wss:; worker-src 'self' blob:; frame-src 'self' blob:; \
    object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'";

/// Policy of pages from a folder. Other user interfaces evaluate what their users wrote, import it as modules of text, and load
/// maps and libraries from elsewhere.
const FOLDER_POLICY: &str = "default-src 'self'; script-src 'self' https: 'unsafe-inline' 'unsafe-eval' blob:; \
    style-src 'self' https: 'unsafe-inline'; img-src * data: blob:; font-src 'self' https: data:; \
    connect-src * ws: wss: data: blob:; \
    worker-src 'self' blob:; frame-src *; object-src 'none'; base-uri 'self'; frame-ancestors 'self'";

/// The page in which code of tenants runs: it has no origin, so nothing of the user's, and no network.
pub(crate) const SANDBOX: &str = "/sandbox.html";
const SANDBOX_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; \
    worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'self'";

/// Whose pages are served.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PagePolicy {
    Own,
    Folder,
    Sandbox,
}

/// Adds the headers that keep a page's scripts and its opener apart from others.
pub(crate) fn protect(head: &mut HeaderMap, policy: PagePolicy) {
    let content = match policy {
        PagePolicy::Own => OWN_POLICY,
        PagePolicy::Folder => FOLDER_POLICY,
        PagePolicy::Sandbox => SANDBOX_POLICY,
    };
    let mut set = |name: HeaderName, value: &'static str| {
        head.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, content);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "same-origin");
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
}

/// Returns how long a file may be kept: the names below `/assets/` contain a hash of the content, the others stay.
pub(crate) fn cache_control(path: &str) -> &'static str {
    if path.starts_with("/assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    }
}

/// Returns the content type by the end of a path.
pub(crate) fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
