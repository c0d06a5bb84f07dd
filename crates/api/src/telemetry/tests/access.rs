//! Tests of the access of each role to the data of others.

use axum::http::StatusCode;
use fieldline_model::TenantId;
use serde_json::json;

use super::fixture::TelemetryFixture;

/// Method, path below the entity and body of one request of each kind.
const REQUESTS: [(&str, &str, &str); 14] = [
    ("GET", "/keys/timeseries", ""),
    ("GET", "/keys/attributes", ""),
    ("GET", "/keys/attributes/SERVER_SCOPE", ""),
    ("GET", "/values/attributes", ""),
    ("GET", "/values/attributes/SERVER_SCOPE", ""),
    ("GET", "/values/timeseries", ""),
    ("GET", "/values/timeseries/history?keys=a&startTs=1&endTs=2", ""),
    ("POST", "/SERVER_SCOPE", r#"{"a":1}"#),
    ("POST", "/attributes/SERVER_SCOPE", r#"{"a":1}"#),
    ("POST", "/timeseries/any", r#"{"a":1}"#),
    ("POST", "/timeseries/delete", r#"{"a":1}"#),
    ("POST", "/timeseries/any/60", r#"{"a":1}"#),
    (
        "DELETE",
        "/timeseries/delete?keys=a&deleteAllDataForKeys=true",
        "",
    ),
    ("DELETE", "/SERVER_SCOPE?keys=a", ""),
];

#[tokio::test]
async fn a_device_is_there_for_its_tenant_and_customer_only() {
    let world = TelemetryFixture::new().await;
    for (method, path, body) in REQUESTS {
        let path = world.of(path);
        world.admin().ok(method, &path, body).await;
        world.customer_user().ok(method, &path, body).await;
        let text = world
            .stranger()
            .refused(method, &path, body, StatusCode::NOT_FOUND)
            .await;
        assert_eq!(text, "Device with requested id wasn't found!");
        let text = world
            .sysadmin()
            .refused(method, &path, body, StatusCode::FORBIDDEN)
            .await;
        assert_eq!(
            text,
            "System administrator is not allowed to perform this operation!"
        );
        let text = world
            .other_customer_user()
            .refused(method, &path, body, StatusCode::FORBIDDEN)
            .await;
        assert_eq!(text, "You don't have permission to perform this operation!");
        assert_eq!(
            world.nobody().send(method, &path, body).await.0,
            StatusCode::UNAUTHORIZED
        );
    }
    let device = world.device.0;
    for (method, path, body) in [
        ("POST", format!("/{device}/SHARED_SCOPE"), r#"{"a":1}"#),
        ("DELETE", format!("/{device}/SHARED_SCOPE?keys=a"), ""),
    ] {
        world.customer_user().ok(method, &path, body).await;
        world
            .stranger()
            .refused(method, &path, body, StatusCode::NOT_FOUND)
            .await;
        world
            .sysadmin()
            .refused(method, &path, body, StatusCode::FORBIDDEN)
            .await;
    }
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let world = TelemetryFixture::new().await;
    let nothing = TenantId::new().0;
    for kind in ["DEVICE", "CUSTOMER", "DEVICE_PROFILE", "USER", "ASSET"] {
        let path = format!("/{kind}/{nothing}/keys/timeseries");
        world
            .admin()
            .refused("GET", &path, "", StatusCode::NOT_FOUND)
            .await;
    }
}

#[tokio::test]
async fn every_kind_of_entity_has_data_of_its_own() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let entities = world.entities_of_admin();
    for (at, (kind, id)) in entities.iter().enumerate() {
        admin
            .ok(
                "POST",
                &format!("/{kind}/{id}/SERVER_SCOPE"),
                &json!({"at": at}).to_string(),
            )
            .await;
        admin
            .ok(
                "POST",
                &format!("/{kind}/{id}/timeseries/any"),
                &json!({"at": at}).to_string(),
            )
            .await;
    }
    for (at, (kind, id)) in entities.iter().enumerate() {
        let attributes = admin
            .json(&format!("/{kind}/{id}/values/attributes/SERVER_SCOPE"))
            .await;
        assert_eq!(attributes[0]["value"], json!(at), "{kind}");
        let latest = admin.json(&format!("/{kind}/{id}/values/timeseries")).await;
        assert_eq!(latest["at"][0]["value"], json!(at.to_string()), "{kind}");
    }
}

#[tokio::test]
async fn a_system_administrator_and_the_tenant_see_the_same_data_of_a_tenant() {
    let world = TelemetryFixture::new().await;
    let tenant = format!("/TENANT/{}", world.tenant.0);
    world
        .sysadmin()
        .ok("POST", &format!("{tenant}/SERVER_SCOPE"), r#"{"plan":"gold"}"#)
        .await;
    let seen = world.admin().json(&format!("{tenant}/values/attributes")).await;
    assert_eq!(seen[0]["value"], json!("gold"));
    let text = world
        .stranger()
        .refused(
            "GET",
            &format!("{tenant}/values/attributes"),
            "",
            StatusCode::FORBIDDEN,
        )
        .await;
    assert!(!text.contains("gold"));
}
