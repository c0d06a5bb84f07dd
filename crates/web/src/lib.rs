//! Serves the web user interface, the files packed into the program or those of a folder, and the pages that show the API.
//!
//! It answers only what no other route answers, so that no path of an API is ever hidden by a page.

mod documentation;
mod headers;
mod packed;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

pub use self::documentation::documentation;
use self::headers::{PagePolicy, SANDBOX, protect};

/// The page that starts the application; it answers every path that a person can have in the address bar.
const APPLICATION: &str = "/index.html";
/// The page to log in, which works without the application.
const LOG_IN: &str = "/login.html";

/// Below this there are pages alone, and the last part of a path may be the key of a stored file, such as `pump.svg`.
const PAGES_OF_FILES: &str = "/resources/";

/// Shown instead of the application by a program that was built without it.
const ABSENT: &str = "<!doctype html><html lang=\"en\"><title>Fieldline</title><h1>Fieldline</h1>\
    <p>This program was built without its web user interface. With Node.js 20 or newer installed, <code>make build</code> \
    builds it in; the setting <code>http.ui-dir</code> serves a built one from a folder.</p>\
    <p><a href=\"/swagger-ui.html\">The API and its documentation</a> work without it.</p></html>";

/// Where the files of the user interface come from.
#[derive(Debug, Clone)]
pub enum UiSource {
    /// The files packed into the program.
    Packed,
    /// Any built single-page application in a folder.
    Folder(PathBuf),
}

/// Returns the number of files packed into the program; 0 if it was built without the user interface.
pub fn packed_files() -> usize {
    packed::FILES.len()
}

/// Adds the user interface to routes: it answers the GET requests outside `/api/` that these answer with 404.
pub fn add_to(routes: Router, source: UiSource) -> Router {
    routes.layer(middleware::from_fn_with_state(Arc::new(source), answer_unknown))
}

async fn answer_unknown(State(source): State<Arc<UiSource>>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read || request.uri().path().starts_with("/api/") {
        return next.run(request).await;
    }
    let page = PageRequest {
        path: request.uri().path().to_owned(),
        headers: request.headers().clone(),
    };
    let answer = next.run(request).await;
    if answer.status() != StatusCode::NOT_FOUND {
        return answer;
    }
    match &*source {
        UiSource::Packed => page.packed(),
        UiSource::Folder(folder) => page.in_folder(folder).await,
    }
    .unwrap_or(answer)
}

/// A request that no other route answered.
struct PageRequest {
    path: String,
    headers: HeaderMap,
}

impl PageRequest {
    fn packed(&self) -> Option<Response> {
        if let Some(file) = packed::find(packed::FILES, &self.path) {
            return Some(self.protected(file.respond(&self.headers), PagePolicy::Own));
        }
        if !self.is_navigation() {
            return None;
        }
        let has_log_in = packed::find(packed::FILES, LOG_IN).is_some();
        let page = match packed::find(packed::FILES, self.page(has_log_in)) {
            Some(page) => page.respond(&self.headers),
            None => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], ABSENT).into_response(),
        };
        Some(self.protected(page, PagePolicy::Own))
    }

    /// The page of a path that a person has in the address bar.
    fn page(&self, has_log_in: bool) -> &'static str {
        let is_log_in = self.path == "/login" || self.path.starts_with("/login/");
        if is_log_in && has_log_in {
            LOG_IN
        } else {
            APPLICATION
        }
    }

    async fn in_folder(&self, folder: &std::path::Path) -> Option<Response> {
        let hidden = self
            .path
            .split('/')
            .any(|part| part.starts_with('.') || part.starts_with("%2e") || part.starts_with("%2E"));
        if hidden {
            return None;
        }
        let file = self.file_of(folder, &self.path).await?;
        let found = match file.status() {
            StatusCode::NOT_FOUND if self.is_navigation() => {
                let page = self.page(folder.join(&LOG_IN[1..]).is_file());
                self.file_of(folder, page).await?
            }
            StatusCode::NOT_FOUND => return None,
            _ => file,
        };
        Some(self.protected(found, PagePolicy::Folder))
    }

    async fn file_of(&self, folder: &std::path::Path, path: &str) -> Option<Response> {
        let mut request = Request::builder().uri(path).body(Body::empty()).ok()?;
        *request.headers_mut() = self.headers.clone();
        let files = ServeDir::new(folder).precompressed_br().precompressed_gzip();
        let answer = files.oneshot(request).await.into_response();
        Some(answer)
    }

    /// Whether a browser asks for a page: the root, or a path that is no file's where it prefers HTML.
    fn is_navigation(&self) -> bool {
        let accept = self
            .headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok());
        let last = self.path.rsplit('/').next().unwrap_or_default();
        let is_file = last.contains('.') && !self.path.starts_with(PAGES_OF_FILES);
        self.path == "/" || (!is_file && accept.is_some_and(|types| types.contains("text/html")))
    }

    fn protected(&self, mut answer: Response, policy: PagePolicy) -> Response {
        let policy = if self.path == SANDBOX {
            PagePolicy::Sandbox
        } else {
            policy
        };
        protect(answer.headers_mut(), policy);
        answer
    }
}

#[cfg(test)]
mod tests;
