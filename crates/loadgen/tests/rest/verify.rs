//! Comparing stored messages with acknowledged ones.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_loadgen::verify::{CountFilter, DeviceExpectation, newest_ms, verify};
use serde_json::json;

use crate::fake_server::{Reply, StandIn};
use crate::{client, open_server};

fn expected(device: &str, acknowledged: u64, sent: u64) -> DeviceExpectation {
    DeviceExpectation {
        name: device.to_owned(),
        id: device.to_owned(),
        acknowledged,
        sent,
    }
}

fn check() -> CountFilter {
    CountFilter {
        key: "voltage".to_owned(),
        from_ms: 1_000,
        to_ms: 901_000,
    }
}

/// A server whose devices have, from one query to the next, as many points as the lists say; the last number stays.
fn counting_server(counts: &[(&str, &[u64])]) -> StandIn {
    let counts: HashMap<String, Vec<u64>> = counts
        .iter()
        .map(|(device, counts)| ((*device).to_owned(), counts.to_vec()))
        .collect();
    let counts = Mutex::new(counts);
    open_server(move |request| {
        let device = request.path.split('/').nth(5).unwrap();
        let mut counts = counts.lock().unwrap();
        let counts = counts.get_mut(device).unwrap();
        let count = if counts.len() > 1 {
            counts.remove(0)
        } else {
            counts[0]
        };
        match count {
            0 => Reply::Json(json!({})),
            count => Reply::Json(json!({"voltage": [{"ts": 451_000, "value": count.to_string()}]})),
        }
    })
}

#[test]
fn what_is_not_stored_yet_is_waited_for() {
    let server = counting_server(&[("a", &[0, 3, 5]), ("b", &[7]), ("c", &[9, 10])]);
    let devices = [expected("a", 5, 5), expected("b", 7, 8), expected("c", 10, 10)];
    let complete = AtomicUsize::new(0);
    let progress = |count| {
        complete.fetch_max(count, Ordering::Relaxed);
    };
    let patience = Duration::from_secs(60);
    let verification = verify(&client(&server), &check(), &devices, patience, 2, &progress).unwrap();
    assert_eq!(
        (verification.missing, verification.surplus, verification.stored),
        (0, 0, 22)
    );
    assert_eq!((verification.devices, verification.acknowledged), (3, 22));
    assert_eq!(complete.into_inner(), 3);

    let of = |device: &str| {
        server.requests(&format!(
            "GET /api/plugins/telemetry/DEVICE/{device}/values/timeseries"
        ))
    };
    assert_eq!([of("a").len(), of("b").len(), of("c").len()], [3, 1, 2]);
    let request = &of("b")[0];
    for (name, value) in [
        ("keys", "voltage"),
        ("startTs", "1000"),
        ("endTs", "901000"),
        ("interval", "900000"),
        ("agg", "COUNT"),
    ] {
        assert_eq!(request.param(name), value, "{name}");
    }
}

#[test]
fn what_is_never_stored_is_missing_and_what_was_never_sent_is_surplus() {
    let names: Vec<_> = (0..100).map(|index| format!("lost-{index:02}")).collect();
    let mut counts: Vec<(&str, &[u64])> = names.iter().map(|name| (name.as_str(), &[4][..])).collect();
    counts.extend([("good", &[6][..]), ("twice", &[12][..])]);
    let server = counting_server(&counts);
    let mut devices: Vec<_> = names.iter().map(|name| expected(name, 6, 6)).collect();
    devices.extend([expected("good", 6, 6), expected("twice", 6, 7)]);
    for patience in [0, 60] {
        let patience = Duration::from_millis(patience);
        let verification = verify(&client(&server), &check(), &devices, patience, 4, &|_| {}).unwrap();
        assert_eq!((verification.missing, verification.surplus), (200, 5));
        assert_eq!((verification.devices, verification.stored), (102, 418));
        assert_eq!(verification.examples, &names[..5]);
    }
}

#[test]
fn verifying_outlasts_a_restart_but_not_a_refusal() {
    let tries = AtomicUsize::new(0);
    let server = open_server(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::HangUp,
        1 => Reply::error(503, "restarting"),
        _ => Reply::Json(json!({"voltage": [{"ts": 1, "value": "1"}]})),
    });
    let devices = [expected("a", 1, 1)];
    let patience = Duration::from_secs(60);
    let verification = verify(&client(&server), &check(), &devices, patience, 1, &|_| {}).unwrap();
    assert_eq!(verification.missing, 0);

    let server = open_server(|_| Reply::error(404, "Device is not found"));
    let error = verify(&client(&server), &check(), &devices, patience, 1, &|_| {}).unwrap_err();
    assert_eq!(error.status(), Some(404));
    let server = open_server(|_| Reply::error(503, "down"));
    let error = verify(&client(&server), &check(), &devices, Duration::ZERO, 1, &|_| {}).unwrap_err();
    assert_eq!(error.status(), Some(503));
}

#[test]
fn the_newest_point_of_all_devices_is_found() {
    let server = open_server(|request| {
        assert_eq!(request.param("keys"), "voltage");
        Reply::Json(match request.path.split('/').nth(5).unwrap() {
            "old" => json!({"voltage": [{"ts": 5, "value": "230"}]}),
            "new" => json!({"voltage": [{"ts": 7, "value": "230"}]}),
            "null" => json!({"voltage": [{"ts": 9, "value": null}]}),
            _ => json!({}),
        })
    });
    let newest = |ids: &[&str]| {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        newest_ms(&client(&server), "voltage", &ids, 3).unwrap()
    };
    assert_eq!(newest(&["none", "old", "new", "null", "old"]), Some(7));
    assert_eq!(newest(&["none", "null"]), None);
    let server = open_server(|_| Reply::error(404, "Device is not found"));
    let error = newest_ms(&client(&server), "voltage", &["x".to_owned()], 1).unwrap_err();
    assert_eq!(error.status(), Some(404));
}
