//! The pages of Swagger UI, which show the description of the API.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;

use crate::headers::{PagePolicy, protect};
use crate::packed::{self, PackedContent, PackedFile};

static FILES: &[PackedFile] = include!(concat!(env!("OUT_DIR"), "/documentation.rs"));

/// Returns the routes of the pages that show the description of the API. They are there with or without the user interface.
pub fn documentation<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let start = async || Redirect::to("/swagger-ui/");
    Router::new()
        .route("/swagger-ui.html", get(start))
        .route("/swagger-ui", get(start))
        .route(
            "/swagger-ui/",
            get(async |request: HeaderMap| page("index.html", &request)),
        )
        .route(
            "/swagger-ui/{name}",
            get(async |Path(name): Path<String>, request: HeaderMap| page(&name, &request)),
        )
}

fn page(name: &str, request: &HeaderMap) -> Response {
    let Some(file) = packed::find(FILES, &format!("/swagger-ui/{name}")) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut answer = file.respond(request);
    protect(answer.headers_mut(), PagePolicy::Own);
    answer
}
