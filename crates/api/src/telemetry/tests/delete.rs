//! Deleting telemetry and attributes.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::fixture::{NOW, TelemetryClient, TelemetryFixture};

async fn saved(world: &TelemetryFixture) -> TelemetryClient<'_> {
    let admin = world.admin();
    let rows =
        r#"[{"ts":10,"values":{"a":1,"b":1}},{"ts":20,"values":{"a":2}},{"ts":30,"values":{"a":3,"b":3}}]"#;
    admin.ok("POST", &world.of("/timeseries/any"), rows).await;
    admin
}

async fn times(world: &TelemetryFixture, key: &str) -> Vec<i64> {
    let range = world.of(&format!(
        "/values/timeseries?keys={key}&startTs=0&endTs=99&orderBy=ASC"
    ));
    let answer = world.admin().json(&range).await;
    let points = answer[key].as_array().cloned().unwrap_or_default();
    points.iter().map(|point| point["ts"].as_i64().unwrap()).collect()
}

async fn latest(world: &TelemetryFixture, key: &str) -> Value {
    let path = world.of(&format!("/values/timeseries?keys={key}&useStrictDataTypes=true"));
    world.admin().json(&path).await[key][0].clone()
}

#[tokio::test]
async fn a_range_is_deleted_and_the_latest_value_follows_the_rules() {
    for (query, left, newest) in [
        // The latest value is not in the range.
        ("startTs=10&endTs=30", vec![30], json!({"ts": 30, "value": 3})),
        ("startTs=20&endTs=31", vec![10], json!({"ts": NOW, "value": null})),
        (
            "startTs=20&endTs=31&rewriteLatestIfDeleted=true",
            vec![10],
            json!({"ts": 10, "value": 1}),
        ),
        (
            "startTs=20&endTs=31&deleteLatest=false",
            vec![10],
            json!({"ts": 30, "value": 3}),
        ),
        (
            "startTs=31&endTs=20",
            vec![10, 20, 30],
            json!({"ts": 30, "value": 3}),
        ),
        (
            "deleteAllDataForKeys=true",
            vec![],
            json!({"ts": NOW, "value": null}),
        ),
        (
            "deleteAllDataForKeys=true&deleteLatest=false",
            vec![],
            json!({"ts": 30, "value": 3}),
        ),
        (
            "deleteAllDataForKeys=true&rewriteLatestIfDeleted=true",
            vec![],
            json!({"ts": NOW, "value": null}),
        ),
    ] {
        let world = TelemetryFixture::new().await;
        let admin = saved(&world).await;
        let path = world.of(&format!("/timeseries/delete?keys=a&{query}"));
        assert_eq!(admin.ok("DELETE", &path, "").await, "");
        assert_eq!(times(&world, "a").await, left, "{query}");
        assert_eq!(latest(&world, "a").await, newest, "{query}");
        assert_eq!(times(&world, "b").await, [10, 30], "another series stays");
    }
}

#[tokio::test]
async fn names_with_commas_are_deleted_by_the_repeated_parameter() {
    let world = TelemetryFixture::new().await;
    let admin = saved(&world).await;
    admin
        .ok("POST", &world.of("/timeseries/any"), r#"{"a,b":1}"#)
        .await;
    let path = world.of("/timeseries/delete?key=a,b&key=b&deleteAllDataForKeys=true");
    admin.ok("DELETE", &path, "").await;
    assert_eq!(admin.json(&world.of("/keys/timeseries")).await, json!(["a"]));
}

#[tokio::test]
async fn attributes_are_deleted_by_every_path_in_their_scope_only() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let device = world.device.0;
    for scope in ["SHARED_SCOPE", "SERVER_SCOPE"] {
        admin
            .ok("POST", &world.of(&format!("/{scope}")), r#"{"a":1,"b":2,"c":3}"#)
            .await;
    }
    let told = world.changes().len();
    admin
        .ok("DELETE", &format!("/{device}/SHARED_SCOPE?keys=a,absent"), "")
        .await;
    admin.ok("DELETE", &world.of("/SHARED_SCOPE?key=b"), "").await;
    admin.ok("DELETE", &world.of("/CLIENT_SCOPE?keys=c"), "").await;
    assert_eq!(
        admin.json(&world.of("/keys/attributes/SHARED_SCOPE")).await,
        json!(["c"])
    );
    assert_eq!(
        admin.json(&world.of("/keys/attributes/SERVER_SCOPE")).await,
        json!(["a", "b", "c"])
    );
    assert_eq!(world.changes().len(), told + 2, "deleting nothing is no change");
}

#[tokio::test]
async fn senseless_deletions_are_refused_in_plain_text() {
    let world = TelemetryFixture::new().await;
    let admin = saved(&world).await;
    let device = world.device.0;
    for path in [
        world.of("/timeseries/delete?deleteAllDataForKeys=true"),
        world.of("/timeseries/delete?keys=&deleteAllDataForKeys=true"),
        world.of("/timeseries/delete?keys=a"),
        world.of("/timeseries/delete?keys=a&startTs=1"),
        world.of("/timeseries/delete?keys=a&endTs=1"),
        world.of("/timeseries/delete?keys=a&startTs=x&endTs=1"),
        world.of("/timeseries/delete?keys=a&deleteAllDataForKeys=maybe"),
        world.of("/SHARED_SCOPE"),
        world.of("/NO_SCOPE?keys=a"),
        format!("/{device}/SHARED_SCOPE"),
        "/no-id/SHARED_SCOPE?keys=a".to_owned(),
    ] {
        admin.refused("DELETE", &path, "", StatusCode::BAD_REQUEST).await;
    }
    assert_eq!(times(&world, "a").await, [10, 20, 30]);
}
