//! Limits for request bodies: the data of an OTA package may be larger than any other body.

use axum::body::Body;
use axum::http::StatusCode;
use fieldline_api::Options;
use fieldline_core::options::ByteSize;
use serde_json::json;

use crate::fixture::{FixtureClient, RestFixture, id};

const BOUNDARY: &str = "the-boundary";

async fn upload(admin: &FixtureClient<'_>, package: &str, bytes: usize) -> (StatusCode, String) {
    let form = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"meter.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n{}\r\n--{BOUNDARY}--\r\n",
        "x".repeat(bytes)
    );
    let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let path = format!("/api/otaPackage/{package}?checksumAlgorithm=SHA256");
    admin.send_as(&media_type, "POST", &path, Body::from(form)).await
}

#[tokio::test]
async fn a_package_may_be_larger_than_any_other_body_and_has_a_limit_of_its_own() {
    let world = RestFixture::with(Options {
        max_body: ByteSize::kib(64),
        max_package: ByteSize::mib(1),
        ..Options::default()
    })
    .await;
    let admin = world.admin().await;
    let profile = admin.get("/api/deviceProfileInfo/default").await;
    let package = json!({
        "title": "meter", "version": "1", "type": "FIRMWARE", "deviceProfileId": profile["id"],
    });
    let package = admin.post("/api/otaPackage", &package).await;

    let (status, text) = upload(&admin, id(&package), 2 << 20).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{text}");
    let (status, text) = upload(&admin, id(&package), 200 << 10).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let large = json!({ "name": "x".repeat(200 << 10) });
    let refused = admin.refused("POST", "/api/device", &large).await;
    assert_eq!(refused.0, 413, "{}", refused.2);
}
