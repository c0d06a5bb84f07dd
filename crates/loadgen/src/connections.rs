//! Measures idle connections: how fast they are accepted, and how much memory each takes.

use std::time::Duration;

use fieldline_codec::QoS;
use serde::Serialize;

use crate::child::{LimitServerKind, limit_server};
use crate::cli::ConnectionsArgs;
use crate::devices::{DeviceRange, ProfileSpec, create_devices, ensure_profile};
use crate::engine::{AlarmLoad, DeviceProtocol, LoadEngine, LoadPace, LoadPlan};
use crate::error::{LoadError, LoadResult};
use crate::payload::PayloadKind;
use crate::process::{CpuTime, ProcessSample};
use crate::target::LoadTarget;
use crate::telemetry::check_files;

/// Interval of the checks whether the server is idle.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);
const MAX_IDLE_POLLS: usize = 30;
/// A process that uses less processor time than this between two checks is idle, microseconds.
const IDLE_US: u64 = 50_000;

/// The results of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct IdleConnectionReport {
    steps: Vec<IdleConnectionStep>,
    /// Bytes of anonymous memory per connection, between the first and the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_connection: Option<f64>,
    /// Connections a second of a limit server, at the last step's number of connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_connections_per_second: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct IdleConnectionStep {
    connections: usize,
    /// `None` for a step that opens no connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections_per_second: Option<f64>,
    resident_bytes: u64,
    anonymous_bytes: u64,
}

/// Opens idle connections and prints their cost. Returns whether all were accepted.
pub(crate) fn run(args: &ConnectionsArgs) -> LoadResult<bool> {
    args.check()?;
    let counts = &args.counts;
    let most = counts.last().copied().unwrap_or_default();
    check_files(most as usize)?;
    let target = LoadTarget::find(&args.target)?;
    let pid = target.pid.ok_or_else(|| {
        LoadError::InvalidOption(
            "the server's process was not found on this machine; give --server-pid".to_owned(),
        )
    })?;
    target.client.wait_until_up(Duration::from_secs(10))?;
    let range = DeviceRange { start: 0, end: most };
    let profile = ensure_profile(&target.client, &ProfileSpec::named("SMART_METER"))?;
    let created = create_devices(
        &target.client,
        range,
        &profile,
        args.target.rest_pool_size,
        &|_| {},
    )?;
    if created.failed > 0 {
        return Err(LoadError::Engine(format!(
            "devices could not be made: {}",
            created.failures.join("; ")
        )));
    }
    let plan = |target| LoadPlan {
        target,
        protocol: DeviceProtocol::Mqtt {
            qos: QoS::AtLeastOnce,
            tls: None,
        },
        tokens: (0..range.len()).map(|position| range.name(position)).collect(),
        payload: PayloadKind::SmartMeter,
        attributes: false,
        pace: LoadPace::Open { per_second: 1.0 },
        duration: Duration::from_secs(1),
        alarms: AlarmLoad {
            per_second: 0.0,
            from: 0.0,
            until: 0.0,
        },
        sequential: true,
        seed: 0,
        opening: args.opening,
        not_before_ms: 0,
        reply_timeout: Duration::from_secs(30),
    };
    let settle = Duration::from_secs_f64(args.settle);
    wait_until_idle(pid, settle)?;
    let mut plan_of_server = plan(target.mqtt);
    if let DeviceProtocol::Mqtt { tls, .. } = &mut plan_of_server.protocol {
        tls.clone_from(&target.tls);
    }
    let mut engine = LoadEngine::new(plan_of_server)?;
    let mut steps = Vec::new();
    let mut before = 0;
    println!("connections  opened/s  resident MiB  anonymous MiB");
    for count in counts.iter().map(|count| *count as usize) {
        let took = engine.connect(count, &mut |_| {})?;
        for _ in 0..args.messages {
            engine.warm_up(
                b"{\"pulseCounter\":73,\"leakage\":false,\"batteryLevel\":81}",
                500,
            )?;
        }
        let sample = wait_until_idle(pid, settle)?;
        let step = IdleConnectionStep {
            connections: count,
            connections_per_second: (count > before)
                .then(|| (count - before) as f64 / took.as_secs_f64().max(1e-9)),
            resident_bytes: sample.rss_bytes,
            anonymous_bytes: sample.anon_bytes,
        };
        println!(
            "{count:>11}  {:>8.0}  {:>12.1}  {:>13.1}",
            step.connections_per_second.unwrap_or_default(),
            mib(step.resident_bytes),
            mib(step.anonymous_bytes)
        );
        before = count;
        steps.push(step);
    }
    let (_, refused, reason) = engine.connected();
    if let Some(reason) = reason {
        println!("{refused} connections were not accepted, the first with: {reason}");
    }
    let all = refused == 0;
    engine.disconnect();
    let mut measured = IdleConnectionReport {
        bytes_per_connection: slope(&steps),
        limit_connections_per_second: None,
        steps,
    };
    if let Some(bytes) = measured.bytes_per_connection {
        println!("{:.2} KiB of anonymous memory a connection", bytes / 1024.0);
    }
    if args.limit {
        let (_process, address) = limit_server(LimitServerKind::Plain, target.home.path())?;
        let mut engine = LoadEngine::new(plan(address))?;
        let took = engine.connect(most as usize, &mut |_| {})?;
        let rate = f64::from(most) / took.as_secs_f64().max(1e-9);
        println!("{rate:.0} connections/s of a server that only acknowledges");
        measured.limit_connections_per_second = Some(rate);
    }
    if let Some(path) = &args.json {
        crate::report::write_json(&measured, path)?;
    }
    Ok(all)
}

/// Waits for `settle`, then until the process is idle, and samples its memory.
fn wait_until_idle(pid: u32, settle: Duration) -> LoadResult<ProcessSample> {
    let ended = || LoadError::Engine(format!("the server, process {pid}, has ended"));
    std::thread::sleep(settle);
    let mut before = CpuTime::of(pid).ok_or_else(ended)?;
    for _ in 0..MAX_IDLE_POLLS {
        std::thread::sleep(IDLE_POLL_INTERVAL);
        let now = CpuTime::of(pid).ok_or_else(ended)?;
        if now.since(&before).is_some_and(|used| used < IDLE_US) {
            break;
        }
        before = now;
    }
    ProcessSample::of(pid).ok_or_else(ended)
}

fn slope(steps: &[IdleConnectionStep]) -> Option<f64> {
    let (first, last) = (steps.first()?, steps.last()?);
    let connections = last
        .connections
        .checked_sub(first.connections)
        .filter(|count| *count > 0)?;
    Some((last.anonymous_bytes as f64 - first.anonymous_bytes as f64) / connections as f64)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
