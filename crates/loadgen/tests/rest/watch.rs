//! Measuring a server under load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use fieldline_loadgen::error::LoadError;
use fieldline_loadgen::metrics::MetricsScraper;
use fieldline_loadgen::probe::VisibilityProbe;
use fieldline_loadgen::sampler::{ResourceSampler, ResourceSamplerOptions};
use serde_json::json;

use crate::fake_server::{Reply, StandIn};
use crate::{client, open_server};

#[test]
fn a_probe_measures_until_a_query_shows_its_point() {
    const TELEMETRY: &str = "POST /api/v1/DW00000001/telemetry";
    let (shown, points) = channel();
    let state = Mutex::new((0, 0, shown));
    let server = open_server(move |request| {
        let mut state = state.lock().unwrap();
        let (posted, queries, shown) = &mut *state;
        if request.what() == TELEMETRY {
            *posted = request.body["ts"].as_i64().unwrap();
            *queries = 0;
            return Reply::Refusal(200, String::new());
        }
        assert_eq!(
            request.path,
            "/api/plugins/telemetry/DEVICE/id-1/values/timeseries"
        );
        assert_eq!(request.param("startTs"), posted.to_string());
        assert_eq!(request.param("endTs"), (*posted + 1).to_string());
        *queries += 1;
        if *queries < 3 {
            return Reply::Json(json!({}));
        }
        // The receiver may have gone.
        let _ = shown.send(*posted);
        Reply::Json(json!({"fieldlineProbe": [{"ts": *posted, "value": "1"}]}))
    });
    let probe =
        VisibilityProbe::start(&client(&server), &server.url(), "DW00000001", "id-1", 1_000.0).unwrap();
    let times: Vec<_> = points.iter().take(5).collect();
    let probed = probe.stop().unwrap();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    assert_eq!((probed.given_up, probed.failed), (0, 0), "{probed:?}");
    assert_eq!(probed.latency.count as usize, server.requests(TELEMETRY).len());
    // There are two pauses between the three queries.
    assert!(probed.latency.p50 >= 2_000, "{probed:?}");
}

#[test]
fn a_probe_counts_refused_points_apart() {
    let (refused, refusals) = channel();
    let refused = Mutex::new(refused);
    let server = open_server(move |_| {
        let _ = refused.lock().unwrap().send(());
        Reply::Refusal(401, "unknown device".to_owned())
    });
    let probe = VisibilityProbe::start(&client(&server), &server.url(), "X", "id-1", 1_000.0).unwrap();
    refusals.iter().take(2).for_each(drop);
    let probed = probe.stop().unwrap();
    assert!(probed.failed >= 2 && probed.latency.count == 0, "{probed:?}");
    assert_eq!(
        probed.last_failure.as_deref(),
        Some("a point was refused with 401: unknown device")
    );
    for rate in [0.0, -1.0, 1e-18, f64::NAN, f64::INFINITY] {
        let probe = VisibilityProbe::start(&client(&server), &server.url(), "X", "id-1", rate);
        assert!(matches!(probe, Err(LoadError::InvalidOption(_))), "{rate}");
    }
}

#[test]
fn the_lag_of_a_server_is_sampled() {
    let lag = AtomicUsize::new(10);
    let server = StandIn::start(move |_| {
        let lag = lag.fetch_sub(1, Ordering::SeqCst);
        let text = format!(
            "fieldline_ingest_lag_records{{partition=\"0\"}} {lag}\nfieldline_ingest_lag_records{{partition=\"1\"}} 5\n"
        );
        Reply::Refusal(200, text)
    });
    let sampler = ResourceSampler::start(ResourceSamplerOptions {
        metrics_url: Some(format!("{}/metrics", server.url())),
        interval: Duration::from_secs(3600),
        ..ResourceSamplerOptions::default()
    })
    .unwrap();
    assert_eq!(sampler.latest().unwrap().lag_records, Some(15));
    let series = sampler.stop();
    assert_eq!((series.lag_peak(), series.lag_end()), (Some(15), Some(14)));
}

#[test]
fn a_server_without_metrics_is_asked_once() {
    let server = StandIn::start(|_| Reply::Refusal(404, "<html>".to_owned()));
    let mut source = MetricsScraper::new(&format!("{}/metrics", server.url()));
    assert_eq!((source.scrape(), source.scrape()), (None, None));
    assert_eq!(server.requests("GET /metrics").len(), 1);
}
