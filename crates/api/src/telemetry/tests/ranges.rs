//! Latest values and ranges.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::fixture::{NOW, TelemetryFixture};

const DAY: i64 = 86_400_000;
/// Wednesday, 10 January 2024, 15:15:27 UTC.
const START: i64 = 1_704_899_727_000;
/// Monday, 1 April 2024, 19:33:20 UTC.
const END: i64 = 1_712_000_000_000;

/// Points of a numeric series: one every 31 hours from the start on, longs and doubles alternating.
fn numbers() -> Vec<(i64, f64)> {
    (0..)
        .map(|at| (START + at * 31 * 3_600_000, at))
        .take_while(|(ts, _)| *ts < END)
        .map(|(ts, at)| {
            let value = (at * 7 % 23 - 9) as f64;
            (ts, if at % 2 == 0 { value } else { value + 0.5 })
        })
        .collect()
}

fn body(name: &str, points: &[(i64, f64)]) -> String {
    let rows: Vec<Value> = points
        .iter()
        .map(|(ts, value)| {
            let whole = value.fract() == 0.0;
            let value = if whole { json!(*value as i64) } else { json!(value) };
            json!({"ts": ts, "values": {name: value}})
        })
        .collect();
    Value::from(rows).to_string()
}

/// The starts of the buckets between start and end, and the end.
fn boundaries(interval: &str) -> Vec<i64> {
    let mut all = vec![START];
    match interval {
        "interval=700000000" => all.extend(
            (1..)
                .map(|at| START + at * 700_000_000)
                .take_while(|ts| *ts < END),
        ),
        // Kyiv is two hours ahead of UTC, and three from 31 March on.
        "intervalType=WEEK&timeZone=Europe/Kyiv" => {
            all.extend((0..12).map(|week| 1_705_183_200_000 + week * 7 * DAY));
        }
        "intervalType=WEEK_ISO&timeZone=Europe/Kyiv" => {
            all.extend((0..11).map(|week| 1_705_269_600_000 + week * 7 * DAY));
            all.push(1_711_918_800_000);
        }
        "intervalType=MONTH&timeZone=Europe/Kyiv" => {
            all.extend([1_706_738_400_000, 1_709_244_000_000, 1_711_918_800_000]);
        }
        "intervalType=QUARTER&timeZone=Europe/Kyiv" => all.push(1_711_918_800_000),
        other => panic!("{other}"),
    }
    all.push(END);
    all
}

fn aggregate(kind: &str, values: &[f64]) -> f64 {
    match kind {
        "MIN" => values.iter().copied().fold(f64::INFINITY, f64::min),
        "MAX" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "SUM" => values.iter().sum(),
        "AVG" => values.iter().sum::<f64>() / values.len() as f64,
        "COUNT" => values.len() as f64,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_aggregation_works_with_every_interval() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let points = numbers();
    admin
        .ok("POST", &world.of("/timeseries/any"), &body("n", &points))
        .await;
    for interval in [
        "interval=700000000",
        "intervalType=WEEK&timeZone=Europe/Kyiv",
        "intervalType=WEEK_ISO&timeZone=Europe/Kyiv",
        "intervalType=MONTH&timeZone=Europe/Kyiv",
        "intervalType=QUARTER&timeZone=Europe/Kyiv",
    ] {
        for kind in ["MIN", "MAX", "SUM", "AVG", "COUNT"] {
            let query = format!(
                "/values/timeseries?keys=n&startTs={START}&endTs={END}&agg={kind}&{interval}&limit=1&orderBy=DESC\
                 &useStrictDataTypes=true"
            );
            let answer = admin.json(&world.of(&query)).await;
            let given: Vec<(i64, f64)> = answer["n"]
                .as_array()
                .unwrap()
                .iter()
                .map(|point| (point["ts"].as_i64().unwrap(), point["value"].as_f64().unwrap()))
                .collect();
            let expected: Vec<(i64, f64)> = boundaries(interval)
                .windows(2)
                .filter_map(|bucket| {
                    let inside: Vec<f64> = points
                        .iter()
                        .filter(|(ts, _)| (bucket[0]..bucket[1]).contains(ts))
                        .map(|(_, value)| *value)
                        .collect();
                    let middle = bucket[0] + (bucket[1] - bucket[0]) / 2;
                    (!inside.is_empty()).then(|| (middle, aggregate(kind, &inside)))
                })
                .collect();
            assert_eq!(given.len(), expected.len(), "{kind} {interval}");
            for (given, expected) in given.iter().zip(&expected) {
                assert_eq!(given.0, expected.0, "{kind} {interval}");
                assert!(
                    (given.1 - expected.1).abs() < 1e-9,
                    "{kind} {interval}: {given:?} {expected:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn aggregations_of_text_and_mixtures_follow_the_rules() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let rows = r#"[{"ts":1000,"values":{"t":"b","m":"zz","l":2}},{"ts":2000,"values":{"t":"a","m":3,"l":3}},
        {"ts":3000,"values":{"t":"c","m":true,"l":4}},{"ts":60000,"values":{"l":5}}]"#;
    admin.ok("POST", &world.of("/timeseries/any"), rows).await;
    let read = async |agg: &str| {
        let query = format!("/values/timeseries?keys=t,m,l&startTs=0&endTs=10000&interval=5000&agg={agg}");
        admin.json(&world.of(&query)).await
    };
    let one = |value: &str| json!([{"ts": 2500, "value": value}]);
    assert_eq!(
        read("MIN").await,
        json!({"t": one("a"), "m": one("3"), "l": one("2")})
    );
    assert_eq!(
        read("MAX").await,
        json!({"t": one("c"), "m": one("3"), "l": one("4")})
    );
    assert_eq!(read("SUM").await, json!({"m": one("3"), "l": one("9")}));
    assert_eq!(read("AVG").await, json!({"m": one("3.0"), "l": one("3.0")}));
    assert_eq!(
        read("COUNT").await,
        json!({"t": one("3"), "m": one("3"), "l": one("3")})
    );
}

#[tokio::test]
async fn raw_points_obey_limit_order_and_the_half_open_range() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let points: Vec<_> = (0..150i32)
        .map(|at| (i64::from(at) * 10, f64::from(at)))
        .collect();
    admin
        .ok("POST", &world.of("/timeseries/any"), &body("n", &points))
        .await;
    let times = async |query: &str| -> Vec<i64> {
        let answer = admin.json(&world.of(&format!("/values/timeseries{query}"))).await;
        let points = answer["n"].as_array().cloned().unwrap_or_default();
        points.iter().map(|point| point["ts"].as_i64().unwrap()).collect()
    };
    let newest: Vec<i64> = (50..150).rev().map(|at| at * 10).collect();
    assert_eq!(times("?keys=n&startTs=0&endTs=99999").await, newest);
    assert_eq!(times("/history?keys=n&startTs=0&endTs=99999").await, newest);
    assert_eq!(
        times("?keys=n&startTs=0&endTs=99999&agg=AVG&interval=0").await,
        newest
    );
    assert_eq!(
        times("?keys=n&startTs=20&endTs=50&orderBy=ASC").await,
        [20, 30, 40]
    );
    assert_eq!(
        times("?keys=n&startTs=0&endTs=9999&orderBy=asc&limit=2").await,
        [0, 10]
    );
    assert!(times("?keys=n&startTs=50&endTs=50").await.is_empty());
    assert!(times("?keys=n&startTs=50&endTs=20").await.is_empty());
    assert_eq!(
        admin
            .json(&world.of("/values/timeseries?startTs=0&endTs=9999"))
            .await,
        json!({})
    );
    let absent = world.of("/values/timeseries?keys=absent&startTs=0&endTs=9999");
    assert_eq!(admin.json(&absent).await, json!({}));
}

#[tokio::test]
async fn an_answer_of_many_pages_is_whole_and_in_order() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let points: Vec<_> = (0..10_000i32).map(|at| (i64::from(at), f64::from(at))).collect();
    admin
        .ok("POST", &world.of("/timeseries/any"), &body("n", &points))
        .await;
    admin
        .ok("POST", &world.of("/timeseries/any"), &body("m", &points[..9_000]))
        .await;
    for (order, limit) in [("ASC", 20_000), ("DESC", 20_000), ("DESC", 8_192), ("ASC", 4_097)] {
        let query =
            format!("/values/timeseries?keys=n,m&startTs=0&endTs=10000&limit={limit}&orderBy={order}");
        let answer = admin.json(&world.of(&query)).await;
        for (key, count) in [("n", 10_000), ("m", 9_000)] {
            let times: Vec<i64> = answer[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|point| point["ts"].as_i64().unwrap())
                .collect();
            let mut expected: Vec<i64> = (0..count).collect();
            if order == "DESC" {
                expected.reverse();
            }
            expected.truncate(limit);
            assert_eq!(times, expected, "{key} {order} {limit}");
        }
    }
}

#[tokio::test]
async fn latest_values_are_strings_unless_types_are_asked_for() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    let rows = r#"[{"ts":5,"values":{"b":true,"d":25.0,"j":{"x":[1]},"l":1,"s":"a,\"b\""}},{"ts":4,"values":{"l":9}}]"#;
    admin.ok("POST", &world.of("/timeseries/any"), rows).await;
    let one = |value: Value| json!([{"ts": 5, "value": value}]);
    assert_eq!(
        admin.json(&world.of("/values/timeseries")).await,
        json!({
            "b": one(json!("true")), "d": one(json!("25.0")), "j": one(json!("{\"x\":[1]}")),
            "l": one(json!("1")), "s": one(json!("a,\"b\"")),
        })
    );
    assert_eq!(
        admin
            .json(&world.of("/values/timeseries?useStrictDataTypes=true&keys="))
            .await,
        json!({
            "b": one(json!(true)), "d": one(json!(25.0)), "j": one(json!({"x": [1]})),
            "l": one(json!(1)), "s": one(json!("a,\"b\"")),
        })
    );
    // A range needs both ends.
    let some = admin
        .text(&world.of("/values/timeseries?keys=l,none&startTs=1"))
        .await;
    assert_eq!(
        some,
        format!(r#"{{"l":[{{"ts":5,"value":"1"}}],"none":[{{"ts":{NOW},"value":null}}]}}"#)
    );
    assert_eq!(
        admin.json(&world.of("/keys/timeseries")).await,
        json!(["b", "d", "j", "l", "s"])
    );
}

#[tokio::test]
async fn senseless_queries_are_refused_in_plain_text() {
    let world = TelemetryFixture::new().await;
    let admin = world.admin();
    for query in [
        "/values/timeseries?keys=a,,b",
        "/values/timeseries?key=",
        "/values/timeseries?keys=a&useStrictDataTypes=perhaps",
        "/values/timeseries?keys=a&startTs=x&endTs=2",
        "/values/timeseries?keys=a&startTs=1&endTs=2&agg=MEDIAN",
        "/values/timeseries?keys=a&startTs=1&endTs=2&agg=AVG&intervalType=YEAR",
        "/values/timeseries?keys=a&startTs=1&endTs=2&agg=AVG&interval=-1",
        "/values/timeseries?keys=a&startTs=1&endTs=2&limit=0",
        "/values/timeseries?keys=a&startTs=1&endTs=2&orderBy=BEST",
        "/values/timeseries/history?keys=a",
        "/values/timeseries/history?keys=a&startTs=1",
        "/values/timeseries/history?keys=a&endTs=1",
        "/values/timeseries?keys=a&startTs=0&endTs=701000&agg=AVG&interval=1",
        "/values/timeseries?keys=a&startTs=0&endTs=7010000&agg=AVG&interval=10000",
        "/values/attributes/NO_SCOPE",
        "/keys/attributes/NO_SCOPE",
    ] {
        admin
            .refused("GET", &world.of(query), "", StatusCode::BAD_REQUEST)
            .await;
    }
    let most = "/values/timeseries?keys=a&startTs=0&endTs=7009999&agg=AVG&interval=10000";
    assert_eq!(admin.json(&world.of(most)).await, json!({}));
}
