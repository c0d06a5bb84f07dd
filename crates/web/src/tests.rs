//! What browsers and other clients get for paths of pages, files and APIs.

use axum::routing::get;

use super::*;

fn routes(source: UiSource) -> Router {
    add_to(Router::new().route("/metrics", get(async || "metrics")), source)
}

async fn ask(routes: &Router, path: &str, accept: &str) -> Response {
    let request = Request::builder().uri(path).header(header::ACCEPT, accept);
    routes
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap()
}

async fn text(answer: Response) -> String {
    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn pages_answer_what_no_route_answers_and_never_an_api() {
    let routes = routes(UiSource::Packed);
    for path in [
        "/",
        "/entities/devices/5",
        "/login",
        "/resources/scada-symbols/tenant/pump.svg",
    ] {
        let page = ask(&routes, path, "text/html").await;
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        assert!(
            page.headers()[header::CONTENT_SECURITY_POLICY]
                .to_str()
                .unwrap()
                .contains("script-src 'self';")
        );
        assert_eq!(page.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    }
    assert_eq!(text(ask(&routes, "/metrics", "text/html").await).await, "metrics");
    for (path, accept) in [
        ("/api/unknown", "text/html"),
        ("/assets/none.js", "text/html"),
        ("/devices", "*/*"),
        ("/resources/scada-symbols/tenant/pump.svg", "image/svg+xml"),
    ] {
        assert_eq!(
            ask(&routes, path, accept).await.status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_folder_serves_its_files_and_nothing_beside_them() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("ui");
    std::fs::create_dir_all(folder.join("assets")).unwrap();
    std::fs::write(folder.join("index.html"), "<p>application</p>").unwrap();
    std::fs::write(folder.join("assets/a.js"), "script()").unwrap();
    std::fs::write(folder.join(".secret"), "hidden").unwrap();
    std::fs::write(place.path().join("outside"), "outside").unwrap();
    let routes = routes(UiSource::Folder(folder));
    assert_eq!(
        text(ask(&routes, "/login", "text/html").await).await,
        "<p>application</p>"
    );
    let page = ask(&routes, "/login", "text/html").await;
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    let scripts = policy
        .split(';')
        .find(|part| part.contains("script-src"))
        .unwrap();
    assert!(
        scripts.contains(" blob:") && scripts.contains(" https:"),
        "{policy}"
    );
    std::fs::write(place.path().join("ui/login.html"), "<p>log in</p>").unwrap();
    assert_eq!(
        text(ask(&routes, "/login/resetPassword", "text/html").await).await,
        "<p>log in</p>"
    );
    assert_eq!(text(ask(&routes, "/assets/a.js", "*/*").await).await, "script()");
    assert_eq!(
        text(ask(&routes, "/dashboards/7", "text/html").await).await,
        "<p>application</p>"
    );
    assert_eq!(
        text(ask(&routes, "/resources/scada-symbols/tenant/pump.svg", "text/html").await).await,
        "<p>application</p>"
    );
    for path in [
        "/.secret",
        "/%2esecret",
        "/../outside",
        "/..%2foutside",
        "/assets/%2e%2e/%2e%2e/outside",
    ] {
        let answer = ask(&routes, path, "*/*").await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn code_of_tenants_gets_no_origin_and_no_network() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("sandbox.html"), "<p>sandbox</p>").unwrap();
    let routes = routes(UiSource::Folder(place.path().to_owned()));
    let page = ask(&routes, "/sandbox.html", "text/html").await;
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(
        policy.starts_with("sandbox allow-scripts; default-src 'none';"),
        "{policy}"
    );
    assert!(!policy.contains("connect-src") && !policy.contains("allow-same-origin"));
}

#[tokio::test]
async fn the_pages_of_the_api_start_with_the_description_and_load_only_what_is_there() {
    let routes = documentation::<()>();
    for path in ["/swagger-ui.html", "/swagger-ui"] {
        let answer = ask(&routes, path, "text/html").await;
        assert_eq!(answer.headers()[header::LOCATION], "/swagger-ui/", "{path}");
    }
    let page = ask(&routes, "/swagger-ui/", "text/html").await;
    assert!(page.headers().contains_key(header::CONTENT_SECURITY_POLICY));
    let page = text(page).await;
    let loaded: Vec<&str> = page
        .split('"')
        .filter(|part| part.ends_with(".js") || part.ends_with(".css") || part.ends_with(".png"))
        .collect();
    assert!(loaded.len() >= 6, "{loaded:?}");
    for file in loaded {
        let path = format!("/swagger-ui/{}", file.trim_start_matches("./"));
        assert_eq!(
            ask(&routes, &path, "*/*").await.status(),
            StatusCode::OK,
            "{path}"
        );
    }
    let start = text(ask(&routes, "/swagger-ui/swagger-initializer.js", "*/*").await).await;
    assert!(start.contains("/v3/api-docs/"), "{start}");
    assert_eq!(
        ask(&routes, "/swagger-ui/none.js", "*/*").await.status(),
        StatusCode::NOT_FOUND
    );
}
