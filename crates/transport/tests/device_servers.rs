//! The device servers over real stores: the HTTP device API, and MQTT while the journal accepts nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "device_servers/coap.rs"]
mod coap;
#[path = "device_servers/mqtt.rs"]
mod mqtt;
#[path = "device_servers/world.rs"]
mod world;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use fieldline_core::ports::TimeSeriesStore as _;
use fieldline_core::usage::UsageKey;
use fieldline_model::DeviceId;
use fieldline_transport::http::DeviceHttpLimits;
use futures::stream;

use world::{LIMITS, World, busy_world, empty, limit_messages, ok, set_limit};

const TELEMETRY: &str = "/api/v1/first/telemetry";
const ATTRIBUTES: &str = "/api/v1/first/attributes";
const OF_SECOND: &str = "/api/v1/second/telemetry";

#[tokio::test]
async fn posts_are_answered_with_the_statuses_that_devices_know() {
    let mut world = World::new(LIMITS).await;
    assert_eq!(
        world.post(TELEMETRY, r#"{"ts":1000,"values":{"a":1}}"#).await,
        ok()
    );
    assert_eq!(world.post(ATTRIBUTES, r#"{"version":"v1.2"}"#).await, ok());
    let unknown = world.post("/api/v1/nobody/telemetry", "{}").await;
    assert_eq!(unknown, empty(StatusCode::UNAUTHORIZED));
    for path in [TELEMETRY, ATTRIBUTES] {
        let (status, message) = world.post(path, r#"{"a":"#).await;
        assert_eq!(status, 500);
        assert!(!message.is_empty(), "the parser says what is wrong");
    }

    world.store_all().await;
    assert_eq!(world.stored("a").await, [1000]);
    let asked = Request::get("/api/v1/first/attributes?clientKeys=version,none")
        .body(Body::empty())
        .unwrap();
    let attributes = r#"{"client":{"version":"v1.2"}}"#.to_owned();
    assert_eq!(world.send(asked).await, (200, attributes));
    let late = world.post(TELEMETRY, r#"{"a":2}"#).await;
    assert_eq!(late, empty(StatusCode::INTERNAL_SERVER_ERROR));
}

fn too_large() -> (u16, String) {
    (413, "Payload size exceeds the limit".to_owned())
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_by_its_announced_length_before_it_arrives() {
    let world = World::new(LIMITS).await;
    let never = Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>());
    let request = Request::post(TELEMETRY)
        .header(header::CONTENT_LENGTH, LIMITS.max_body + 1)
        .body(never)
        .unwrap();
    assert_eq!(world.send(request).await, too_large());
}

#[tokio::test]
async fn a_body_without_a_length_is_cut_off_at_the_limit() {
    let world = World::new(LIMITS).await;
    let slow = world.begin(TELEMETRY);
    slow.send(vec![b' '; LIMITS.max_body]).await;
    slow.send("{").await;
    assert_eq!(slow.early_answer().await, too_large());

    let slow = world.begin(TELEMETRY);
    slow.send(vec![b' '; LIMITS.max_body - 7]).await;
    slow.send(r#"{"a":1}"#).await;
    assert_eq!(slow.end().await, ok());
}

#[tokio::test]
async fn a_post_is_refused_while_there_is_no_memory_for_its_body() {
    let limits = DeviceHttpLimits {
        max_body: 384 << 10,
        body_memory: 1 << 20,
        ..LIMITS
    };
    let world = World::new(limits).await;
    let slow = world.begin(TELEMETRY);
    slow.send(vec![b' '; 320 << 10]).await;
    let large = vec![b' '; 256 << 10];
    let refused = world.post(OF_SECOND, large.clone()).await;
    assert_eq!(refused, empty(StatusCode::SERVICE_UNAVAILABLE));
    let small = world.post(OF_SECOND, r#"{"a":1}"#).await;
    assert_eq!(small, ok(), "there is room for a small one");

    slow.send(r#"{"a":1}"#).await;
    assert_eq!(slow.end().await, ok());
    let (status, message) = world.post(OF_SECOND, large).await;
    assert_eq!(
        (status, message.is_empty()),
        (500, false),
        "it is read now, and holds no JSON"
    );
}

#[tokio::test]
async fn a_device_that_fills_its_share_of_the_memory_does_not_keep_others_from_posting() {
    let limits = DeviceHttpLimits {
        max_body: 64 << 10,
        body_memory: 512 << 10,
        ..LIMITS
    };
    let world = World::new(limits).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let slow = world.begin(TELEMETRY);
        slow.send(vec![b' '; 60 << 10]).await;
        open.push(slow);
    }
    let refused = world.post(TELEMETRY, r#"{"a":1}"#).await;
    assert_eq!(refused, empty(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(world.post(OF_SECOND, r#"{"a":1}"#).await, ok());

    let hung_up = open.pop().unwrap();
    hung_up.answer.abort();
    assert!(hung_up.answer.await.unwrap_err().is_cancelled());
    let again = world.post(TELEMETRY, r#"{"a":1}"#).await;
    assert_eq!(again, ok(), "its memory was given back");
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_cut_off_even_if_it_keeps_coming() {
    let world = World::new(LIMITS).await;
    // This post makes the device known, so that the next one waits for its body only.
    assert_eq!(world.post(TELEMETRY, r#"{"a":1}"#).await, ok());
    tokio::time::pause();
    let drops = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        Some((Ok::<_, Infallible>(" "), ()))
    });
    let started = tokio::time::Instant::now();
    let answer = world.post(TELEMETRY, Body::from_stream(drops)).await;
    assert_eq!(answer, empty(StatusCode::REQUEST_TIMEOUT));
    assert_eq!(started.elapsed().as_secs(), 120);
}

#[tokio::test]
async fn a_large_post_is_divided_into_appends_and_each_of_its_points_is_stored_once() {
    const POINTS: i64 = 20_000;
    let mut world = World::new(LIMITS).await;
    let rows: Vec<_> = (1..=POINTS)
        .map(|ts| format!(r#"{{"ts":{ts},"values":{{"a":{ts}.5}}}}"#))
        .collect();
    let body = format!("[{}]", rows.join(","));
    assert!(body.len() > 8 * LIMITS.max_append && body.len() < LIMITS.max_body);
    assert_eq!(world.post(TELEMETRY, body).await, ok());

    world.store_all().await;
    let records = world.journaled().await;
    assert!(records.len() > 4, "{} records", records.len());
    assert!(records.iter().all(|(bytes, _)| *bytes <= LIMITS.max_append));
    let points: usize = records.iter().map(|(_, points)| points).sum();
    assert_eq!(points, POINTS as usize, "no point is journaled twice");
    assert!(world.stored("a").await.into_iter().eq(1..=POINTS));
}

#[tokio::test]
async fn one_row_and_the_attributes_of_one_post_may_be_larger_than_an_append() {
    let mut world = World::new(LIMITS).await;
    let members: Vec<_> = (0..2_000)
        .map(|index| format!(r#""key{index:04}":"value {index:0>100}""#))
        .collect();
    let body = format!("{{{}}}", members.join(","));
    assert!(body.len() > 3 * LIMITS.max_append);
    assert_eq!(world.post(TELEMETRY, body.clone()).await, ok());
    assert_eq!(world.post(ATTRIBUTES, body.clone()).await, ok());

    world.store_all().await;
    let all = Request::get(ATTRIBUTES).body(Body::empty()).unwrap();
    let (status, attributes) = world.send(all).await;
    assert_eq!(status, 200);
    assert_eq!(attributes, format!(r#"{{"client":{body}}}"#));
    let latest = world.store.latest(world.subject, None).await.unwrap();
    assert_eq!(latest.len(), 2_000);
    for key in ["key0000", "key1999"] {
        assert_eq!(
            world.stored(key).await,
            [latest[0].point.ts],
            "one row has one time"
        );
    }
}

#[tokio::test]
async fn nothing_of_a_post_is_stored_if_one_of_its_values_is_too_large() {
    let mut world = World::new(LIMITS).await;
    let value = "x".repeat(LIMITS.max_append);
    let body = format!(r#"[{{"ts":1,"values":{{"a":1}}}},{{"ts":2,"values":{{"a":"{value}"}}}}]"#);
    let refused = world.post(TELEMETRY, body).await;
    assert_eq!(refused, too_large());
    world.store_all().await;
    assert!(world.journaled().await.is_empty());
}

#[tokio::test]
async fn a_device_that_is_deleted_while_its_body_arrives_is_refused() {
    let mut world = World::new(LIMITS).await;
    let slow = world.begin(TELEMETRY);
    slow.send(r#"{"a":"#).await;
    let device = DeviceId(world.subject.entity.id);
    world.devices.delete(world.subject.tenant, device).await.unwrap();
    slow.send("1}").await;
    assert_eq!(slow.end().await, empty(StatusCode::UNAUTHORIZED));
    world.store_all().await;
    assert!(world.journaled().await.is_empty());
}

#[tokio::test]
async fn a_post_waits_for_a_busy_journal_for_a_minute_and_no_longer() {
    let world = busy_world().await;
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let answer = world.post(TELEMETRY, r#"{"a":2}"#).await;
    assert_eq!(answer, empty(StatusCode::INTERNAL_SERVER_ERROR));
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_tenant_that_has_used_up_its_messages_is_told_so() {
    let world = World::new(LIMITS).await;
    limit_messages(&world, 2).await;
    for _ in 0..2 {
        assert_eq!(world.post(TELEMETRY, r#"{"a":1,"b":2,"c":3}"#).await, ok());
    }
    world.usage.report(false).await;
    let tenant = world.usage.of(world.subject.tenant);
    assert_eq!(tenant.used(UsageKey::TransportMessages), 2);
    assert_eq!(tenant.used(UsageKey::TransportDataPoints), 6);
    for request in [
        Request::post(TELEMETRY).body(Body::from(r#"{"a":2}"#)).unwrap(),
        Request::get(ATTRIBUTES).body(Body::empty()).unwrap(),
    ] {
        let (status, text) = world.send(request).await;
        assert_eq!((status, text.is_empty()), (429, false));
    }

    limit_messages(&world, 0).await;
    assert_eq!(world.post(ATTRIBUTES, r#"{"a":1,"b":2}"#).await, ok());
    world.usage.report(false).await;
    assert_eq!(tenant.used(UsageKey::TransportDataPoints), 8);
}

/// The answer to a message beyond a rate limit, which names the limit.
fn too_often(limit: &str) -> (u16, String) {
    (429, format!("The rate limit of {limit} is exceeded!"))
}

#[tokio::test]
async fn messages_beyond_the_rate_limits_of_device_and_tenant_are_refused() {
    let mut world = World::new(LIMITS).await;
    set_limit(&world, "transportDeviceTelemetryMsgRateLimit", "2:3600".into()).await;
    set_limit(
        &world,
        "transportTenantTelemetryDataPointsRateLimit",
        "6:3600".into(),
    )
    .await;
    assert_eq!(world.post(TELEMETRY, r#"{"ts":1,"values":{"a":1}}"#).await, ok());
    assert_eq!(world.post(TELEMETRY, r#"{"ts":2,"values":{"a":1}}"#).await, ok());
    let refused = world.post(TELEMETRY, r#"{"ts":3,"values":{"a":1}}"#).await;
    assert_eq!(refused, too_often("telemetry messages of the device (2:3600)"));
    // The refused message took nothing of the tenant's limit.
    let four = r#"{"ts":4,"values":{"a":1,"b":2,"c":3,"d":4}}"#;
    assert_eq!(world.post(OF_SECOND, four).await, ok());
    assert_eq!(
        world.post(OF_SECOND, r#"{"d":1}"#).await,
        too_often("telemetry data points of the tenant (6:3600)")
    );
    let asked = Request::get(ATTRIBUTES).body(Body::empty()).unwrap();
    assert_eq!(
        world.send(asked).await.0,
        200,
        "no limit is set for what has no values"
    );
    world.store_all().await;
    assert_eq!(world.stored("a").await, [1, 2]);
}

#[tokio::test]
async fn an_address_with_wrong_credentials_is_turned_away_over_http_for_a_while() {
    let world = World::new(LIMITS).await;
    let from = |host: [u8; 4], path: &'static str, body: &'static str| {
        let mut request = Request::post(path).body(Body::from(body)).unwrap();
        let peer = SocketAddr::from((host, 5_000));
        request.extensions_mut().insert(ConnectInfo(peer));
        world.send(request)
    };
    let (bad, other) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let guess = r#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s"}"#;
    for _ in 0..2 {
        let refused = from(bad, "/api/v1/nobody/telemetry", "{}").await;
        assert_eq!(refused, empty(StatusCode::UNAUTHORIZED));
    }
    assert_eq!(from(bad, "/api/v1/provision", guess).await.0, 200, "the third");
    for path in [TELEMETRY, "/api/v1/provision"] {
        let (status, why) = from(bad, path, guess).await;
        assert_eq!((status, why.contains("wrong credentials")), (429, true));
    }
    assert_eq!(from(other, TELEMETRY, r#"{"a":1}"#).await, ok());
    world.guard_clock.advance(60_000);
    assert_eq!(from(bad, TELEMETRY, r#"{"a":1}"#).await, ok());
}
