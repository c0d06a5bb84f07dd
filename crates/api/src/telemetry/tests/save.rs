//! Saving telemetry and attributes.

use axum::http::StatusCode;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_model::timeseries::AttributeScope;
use serde_json::{Value, json};

use super::fixture::{NOW, TelemetryFixture};

#[tokio::test]
async fn every_form_of_telemetry_is_saved() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    for body in [
        r#"{"a":1}"#,
        r#"{"ts":10,"values":{"a":2}}"#,
        r#"[{"ts":20,"values":{"a":3}},{"ts":30,"values":{"a":"x"}}]"#,
        "{b: text}",
    ] {
        assert_eq!(admin.ok("POST", &world.of("/timeseries/ANY"), body).await, "");
    }
    let range = world.of("/values/timeseries?keys=a,b&startTs=0&endTs=99999999999999&orderBy=ASC");
    assert_eq!(
        admin.json(&range).await,
        json!({
            "a": [{"ts": 10, "value": "2"}, {"ts": 20, "value": "3"}, {"ts": 30, "value": "x"}, {"ts": NOW, "value": "1"}],
            "b": [{"ts": NOW + 1, "value": "text"}],
        })
    );
}

#[tokio::test]
async fn two_saves_within_a_millisecond_are_two_points() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    for value in 1..=3 {
        let body = json!({"a": value}).to_string();
        admin.ok("POST", &world.of("/timeseries/any"), &body).await;
    }
    let range = world.of("/values/timeseries?keys=a&startTs=0&endTs=99999999999999");
    assert_eq!(
        admin.json(&range).await["a"],
        json!([{"ts": NOW + 2, "value": "3"}, {"ts": NOW + 1, "value": "2"}, {"ts": NOW, "value": "1"}])
    );
}

#[tokio::test]
async fn points_live_as_long_as_the_path_or_the_profiles_say() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let count = async || -> usize {
        let range = world.of("/values/timeseries?keys=a&startTs=0&endTs=99999999999999");
        let answer = admin.json(&range).await;
        answer["a"].as_array().map_or(0, Vec::len)
    };
    world.tenant_keeps_for_days(2).await;
    admin.ok("POST", &world.of("/timeseries/any"), r#"{"a":1}"#).await;
    admin
        .ok("POST", &world.of("/timeseries/any/0"), r#"{"a":2}"#)
        .await;
    admin
        .ok("POST", &world.of("/timeseries/any/60"), r#"{"a":3}"#)
        .await;
    assert_eq!(count().await, 3);
    world.clock.advance(120_000);
    assert_eq!(count().await, 2);
    world.clock.advance(3 * 86_400_000);
    assert_eq!(count().await, 0);
    // The device profile takes precedence as soon as it sets a value.
    world.device_keeps_for_days(9).await;
    admin.ok("POST", &world.of("/timeseries/any"), r#"{"a":4}"#).await;
    world.clock.advance(8 * 86_400_000);
    assert_eq!(count().await, 1);
    world.clock.advance(2 * 86_400_000);
    assert_eq!(count().await, 0);
    admin
        .refused(
            "POST",
            &world.of("/timeseries/any/soon"),
            r#"{"a":1}"#,
            StatusCode::BAD_REQUEST,
        )
        .await;
}

#[tokio::test]
async fn attributes_are_saved_by_every_path_and_read_with_their_types() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let device = world.device.0;
    admin
        .ok("POST", &format!("/{device}/SHARED_SCOPE"), r#"{"on":true}"#)
        .await;
    admin
        .ok("POST", &world.of("/SERVER_SCOPE"), r#"{"n":"12"}"#)
        .await;
    world.clock.advance(5);
    admin
        .ok(
            "POST",
            &world.of("/attributes/SERVER_SCOPE"),
            r#"{"on":1.5,"j":{"x":null}}"#,
        )
        .await;
    let one = |key: &str, value: Value, ts: i64| json!({"lastUpdateTs": ts, "key": key, "value": value});
    assert_eq!(
        admin.json(&world.of("/values/attributes")).await,
        json!([
            one("on", json!(true), NOW),
            one("j", json!({"x": null}), NOW + 5),
            one("n", json!(12), NOW),
            one("on", json!(1.5), NOW + 5),
        ])
    );
    assert_eq!(
        admin
            .json(&world.of("/values/attributes/SERVER_SCOPE?keys=n,absent"))
            .await,
        json!([one("n", json!(12), NOW)])
    );
    assert_eq!(
        admin
            .json(&world.of("/values/attributes?key=on&key=absent"))
            .await,
        json!([one("on", json!(true), NOW), one("on", json!(1.5), NOW + 5)])
    );
    assert_eq!(
        admin.json(&world.of("/values/attributes/CLIENT_SCOPE")).await,
        json!([])
    );
    assert_eq!(
        admin.json(&world.of("/keys/attributes")).await,
        json!(["on", "j", "n"])
    );
    assert_eq!(
        admin.json(&world.of("/keys/attributes/SHARED_SCOPE")).await,
        json!(["on"])
    );
    let subject = world.subject();
    assert_eq!(
        world.changes(),
        [
            AttributeScope::Shared,
            AttributeScope::Server,
            AttributeScope::Server
        ]
        .map(|scope| EntityChange {
            subject,
            what: ChangeKind::Attributes(scope)
        })
    );
    // Only shared attributes are sent to the device.
    assert_eq!(world.told(), [(world.device, r#"{"on":true}"#.to_owned())]);
}

#[tokio::test]
async fn senseless_bodies_are_refused_in_plain_text_and_save_nothing() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    for path in [
        "/timeseries/any",
        "/timeseries/any/60",
        "/SHARED_SCOPE",
        "/attributes/SERVER_SCOPE",
    ] {
        for body in [
            "",
            "{",
            "5",
            "null",
            "{}",
            r#"{"a":1,"b":null}"#,
            r#"{"":1}"#,
            r#"{" ":1}"#,
            r#"{"<script>x</script>":1}"#,
        ] {
            admin
                .refused("POST", &world.of(path), body, StatusCode::BAD_REQUEST)
                .await;
        }
    }
    for path in [
        "/CLIENT_SCOPE",
        "/attributes/CLIENT_SCOPE",
        "/NO_SCOPE",
        "/timeseries",
    ] {
        admin
            .refused("POST", &world.of(path), r#"{"a":1}"#, StatusCode::BAD_REQUEST)
            .await;
    }
    let device = world.device.0;
    for path in [
        format!("/{device}/CLIENT_SCOPE"),
        "/not-an-id/SHARED_SCOPE".to_owned(),
        "/DEVICE/not-an-id/SHARED_SCOPE".to_owned(),
        format!("/GADGET/{device}/SHARED_SCOPE"),
        format!("/GADGET/{device}/timeseries/any"),
    ] {
        admin
            .refused("POST", &path, r#"{"a":1}"#, StatusCode::BAD_REQUEST)
            .await;
    }
    assert_eq!(admin.json(&world.of("/keys/timeseries")).await, json!([]));
    assert_eq!(admin.json(&world.of("/keys/attributes")).await, json!([]));
}
