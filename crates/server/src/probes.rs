//! `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fieldline_core::ports::Journal;
use fieldline_devices::sessions::SessionRegistry;
use fieldline_storage::series::SeriesStore;
use metrics::{Unit, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::sync::watch;

const RESIDENT: &str = "process_resident_memory_bytes";
const OPEN_FILES: &str = "process_open_fds";
const UPTIME: &str = "fieldline_uptime_seconds";
const SESSIONS: &str = "fieldline_sessions";
/// How often the collected histogram samples are folded, which bounds their memory.
const UPKEEP: Duration = Duration::from_secs(5);

/// State that the probes read.
pub(crate) struct ProbeState {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) sessions: Arc<SessionRegistry>,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) started: Instant,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) series: Arc<SeriesStore>,
    pub(crate) ingest_failure: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// Whether a short replay is still under way, so that reads may return values older than before the start.
    pub(crate) replaying: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Starts to collect metrics.
pub(crate) fn install_metrics() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets(&[
            0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0,
        ])?
        .install_recorder()?;
    describe_gauge!(RESIDENT, Unit::Bytes, "Resident memory of the process");
    describe_gauge!(OPEN_FILES, "Open files and connections of the process");
    describe_gauge!(UPTIME, Unit::Seconds, "Time since the start");
    describe_gauge!(SESSIONS, "Open device sessions");
    let upkeep = handle.clone();
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(UPKEEP);
        loop {
            tick.tick().await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// The routes of the probes.
pub(crate) fn router(probes: Arc<ProbeState>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(render))
        .with_state(probes)
}

/// Answers 200 as long as device messages can be accepted and no short replay is under way.
async fn ready(State(probes): State<Arc<ProbeState>>) -> Response {
    if *probes.stopping.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    if let Some(refusal) = probes.journal.refusal() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{refusal}\n")).into_response();
    }
    if let Some(refusal) = probes.series.refusal() {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}\n", refusal.message()),
        )
            .into_response();
    }
    if let Some(failure) = (probes.ingest_failure)() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{failure}\n")).into_response();
    }
    if (probes.replaying)() {
        let reason = "what was received before the start is being stored\n";
        return (StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
    }
    "ready\n".into_response()
}

async fn render(State(probes): State<Arc<ProbeState>>) -> Response {
    gauge!(UPTIME).set(probes.started.elapsed().as_secs_f64());
    gauge!(SESSIONS).set(probes.sessions.count() as f64);
    // With thousands of connections, listing the open files takes a while.
    let read = tokio::task::spawn_blocking(|| (resident_bytes(), open_files())).await;
    if let Ok((resident, files)) = read {
        if let Some(bytes) = resident {
            gauge!(RESIDENT).set(bytes);
        }
        if let Some(files) = files {
            gauge!(OPEN_FILES).set(files as f64);
        }
    }
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        probes.metrics.render(),
    )
        .into_response()
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = resident.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

fn open_files() -> Option<usize> {
    std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count)
}
