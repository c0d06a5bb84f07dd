//! Tests of counted bodies and responses, with a router of their own.

use axum::Router;
use axum::extract::State;
use axum::middleware;
use axum::routing::{get, post};
use fieldline_core::options::ByteSize;
use futures::StreamExt as _;
use tower::ServiceExt as _;

use super::*;

const ANSWER: usize = 1 << 20;

fn memory(bytes: u64) -> Arc<ApiMemory> {
    let pool = |name| MemoryPool::new(name, ByteSize(bytes));
    Arc::new(ApiMemory {
        answers: pool("test.answers"),
        public: pool("test.public"),
        requests: pool("test.requests"),
        sockets: pool("test.sockets"),
        max_body: 16 << 20,
    })
}

fn router(memory: &Arc<ApiMemory>, tenant: TenantId) -> Router {
    let memory = Arc::clone(memory);
    let count = move |State(memory): State<Arc<ApiMemory>>, request: Request, next: Next| async move {
        let is_upload = request.uri().path() == "/upload";
        serve_metered(&memory, tenant, is_upload, request, next).await
    };
    Router::new()
        .route("/", get(async || "x".repeat(ANSWER)))
        .route("/", post(async |body: Bytes| body.len().to_string()))
        .route("/upload", post(async |body: Bytes| body.len().to_string()))
        .layer(middleware::from_fn_with_state(memory, count))
}

async fn ask(router: &Router, path: &str, body: usize) -> Response {
    let request = match body {
        0 => Request::get(path).body(Body::empty()),
        bytes => Request::post(path).body(Body::from("x".repeat(bytes))),
    };
    router.clone().oneshot(request.unwrap()).await.unwrap()
}

#[tokio::test]
async fn an_answer_counts_until_it_is_taken_and_is_whole() {
    let memory = memory(6 * ANSWER as u64);
    let router = router(&memory, TenantId::new());
    let held = [ask(&router, "/", 0).await, ask(&router, "/", 0).await];
    assert_eq!(memory.answers.held(), 2 * ANSWER);
    let refused = ask(&router, "/", 0).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let text = to_bytes(refused.into_body(), 1_000).await.unwrap();
    assert!(String::from_utf8_lossy(&text).contains("test.answers"));
    for answer in held {
        assert_eq!(answer.headers()[header::CONTENT_LENGTH], ANSWER.to_string());
        let mut pieces = answer.into_body().into_data_stream();
        let mut length = 0;
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= ANSWER_PIECE);
            length += piece.len();
        }
        assert_eq!(length, ANSWER);
    }
    assert_eq!(memory.answers.held(), 0);
}

#[tokio::test]
async fn a_tenant_that_holds_nothing_is_told_to_come_back_where_others_hold_all() {
    let memory = memory(4 * ANSWER as u64);
    let hogs = [3 * ANSWER / 2, 3 * ANSWER / 4, 3 * ANSWER / 8].map(|bytes| {
        let taken = memory.answers.take(TenantId::new(), bytes);
        taken.unwrap()
    });
    let router = router(&memory, TenantId::new());
    let refused = ask(&router, "/", 0).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    drop(hogs);
    assert_eq!(ask(&router, "/", 0).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_body_counts_with_what_is_read_of_it_and_gives_all_back() {
    let most = 1_000_000;
    let memory = memory((most * BODY_EXPANSION * 8).div_ceil(3) as u64);
    let router = router(&memory, TenantId::new());
    assert_eq!(ask(&router, "/", most).await.status(), StatusCode::OK);
    assert_eq!(
        ask(&router, "/", most + 1).await.status(),
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(memory.requests.held(), 0);
}

#[tokio::test]
async fn the_data_of_a_package_does_not_count_as_it_goes_to_the_disk() {
    let memory = memory(3 * UPLOAD_BYTES as u64);
    let tenant = TenantId::new();
    let router = router(&memory, tenant);
    assert_eq!(ask(&router, "/upload", 1 << 20).await.status(), StatusCode::OK);
    let _held = memory.requests.take(tenant, UPLOAD_BYTES).unwrap();
    assert!(!ask(&router, "/upload", 1).await.status().is_success());
}
