//! The load itself, with everything measured meanwhile.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use super::TelemetryRun;
use crate::engine::{DeviceProtocol, LoadEngine, LoadInterval, LoadTotals};
use crate::error::LoadResult;
use crate::metrics::MetricsScraper;
use crate::probe::{ProbeResult, VisibilityProbe};
use crate::process::CpuTime;
use crate::report::{self, LoadReport, LoadSecond, LoadSpec, text};
use crate::sampler::{ResourceSample, ResourceSampler, ResourceSamplerOptions};

/// Interval of the check whether the lag is over.
const LAG_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest delay with which servers report their lag.
const GAUGE_AGE: Duration = Duration::from_millis(1_100);
/// Near this load of the event loop's only core, the server waits for the generator.
const BUSY_CORES: f64 = 0.9;
/// If message timestamps are further ahead of the clock than this, the report says so, milliseconds.
const AHEAD_MS: i64 = 1_000;

impl TelemetryRun<'_> {
    /// Puts the load on the server, waits until the server has stored it, and fills in the results.
    pub(super) fn load(&mut self, engine: &mut LoadEngine, report: &mut LoadReport) -> LoadResult<()> {
        let args = self.args;
        let metrics_url = format!("{}/metrics", self.target.url);
        let sampler = ResourceSampler::start(ResourceSamplerOptions {
            pid: self.target.pid,
            metrics_url: Some(metrics_url.clone()),
            ..ResourceSamplerOptions::default()
        })?;
        let probe = match self.ids.first() {
            Some(Some(id)) if args.report.probes > 0.0 => Some(VisibilityProbe::start(
                &self.target.client,
                &self.target.url,
                &self.range.name(0),
                id,
                args.report.probes,
            )?),
            _ => None,
        };
        let own_before = CpuTime::own();
        let server_before = self.server();
        let mut seconds = Vec::new();
        let mut last = sampler.latest();
        let (quiet, terminal) = (args.report.output.quiet, std::io::stderr().is_terminal());
        let totals = engine.run(&mut |interval| {
            let now = sampler.latest();
            let second = second(interval, last.as_ref(), now.as_ref());
            last = now.or(last);
            if !quiet && (terminal || seconds.len().is_multiple_of(10)) {
                eprintln!("{}", text::progress(&second, args.load.duration));
            }
            seconds.push(second);
        })?;
        let own_after = CpuTime::own();
        let ended = Instant::now();
        let lag_end = MetricsScraper::new(&metrics_url)
            .scrape()
            .and_then(|metrics| metrics.lag_records());
        if let Some(probe) = probe {
            self.note_probes(probe.stop()?, report);
        }
        self.drain(&sampler);
        let server_after = self.server();
        let series = sampler.stop();
        // A server that has just started may have had no metrics before.
        let lag_end = lag_end.or_else(|| {
            let mut later = series.samples.iter().filter(|sample| sample.at >= ended);
            later.find_map(|sample| sample.lag_records)
        });
        self.fill_in(report, engine, &totals);
        let spent = |before: Option<CpuTime>, after: Option<CpuTime>| after?.since(&before?);
        let a_message = |spent: u64| spent as f64 / totals.acknowledged.max(1) as f64;
        let own = spent(own_before, own_after);
        report.outcome.server_us_per_message = spent(server_before, server_after).map(a_message);
        report.outcome.generator_us_per_message = own.map(a_message);
        report.outcome.server_memory_peak = series.rss_peak();
        report.outcome.lag_peak = series.lag_peak().max(lag_end);
        report.outcome.lag_end = lag_end;
        report.seconds = seconds;
        let cores = own.map_or(0.0, |own| own as f64 / 1e6 / totals.seconds.max(1e-9));
        if cores > BUSY_CORES {
            self.remarks.push(format!(
                "The load generator itself used {cores:.2} cores, of which its event loop can use one: the server may be capable \
                 of more."
            ));
        }
        Ok(())
    }

    fn server(&self) -> Option<CpuTime> {
        self.target.pid.and_then(CpuTime::of)
    }

    fn note_probes(&mut self, probed: ProbeResult, report: &mut LoadReport) {
        report.queryable = (probed.latency.count > 0).then_some(probed.latency);
        if probed.given_up + probed.failed > 0 {
            let why = probed.last_failure.map(|why| format!(": {why}"));
            self.remarks.push(format!(
                "{} probes were given up and {} failed{}.",
                probed.given_up,
                probed.failed,
                why.unwrap_or_default()
            ));
        }
    }

    /// Waits until the server has stored what it has acknowledged, so that this work counts as well.
    fn drain(&self, sampler: &ResourceSampler) {
        let asked = Instant::now();
        while asked.elapsed() < self.args.report.patience() {
            let told = sampler.latest().filter(|sample| sample.at >= asked + GAUGE_AGE);
            match told.map(|sample| sample.lag_records) {
                // Nothing waits, or the server has no metrics.
                Some(Some(0) | None) => return,
                Some(Some(_)) | None => std::thread::sleep(LAG_POLL_INTERVAL),
            }
        }
    }

    fn fill_in(&mut self, report: &mut LoadReport, engine: &LoadEngine, totals: &LoadTotals) {
        let plan = engine.plan();
        let load = &self.args.load;
        report.load = LoadSpec {
            protocol: match plan.protocol {
                DeviceProtocol::Mqtt { tls: Some(_), .. } => "mqtts",
                DeviceProtocol::Mqtt { .. } => "mqtt",
                DeviceProtocol::Http { .. } => "http",
            }
            .to_owned(),
            target: plan.target.to_string(),
            devices: plan.tokens.len(),
            connections: plan.connections(),
            qos: load.qos,
            payload: plan.payload.to_string(),
            payload_bytes: totals.payload_bytes as f64 / totals.sent.max(1) as f64,
            points: plan.payload.points(),
            rate: load.in_flight.is_none().then_some(load.rate),
            in_flight: load.in_flight,
            alarms_per_second: load.alarms,
            duration_seconds: totals.seconds,
        };
        report.outcome = report::LoadOutcome {
            sent: totals.sent,
            acknowledged: totals.acknowledged,
            failed: totals.failed,
            unsent: totals.unsent,
            lost_connections: totals.lost,
            rate: totals.acknowledged_in_time as f64 / totals.seconds.max(1e-9),
            latency: totals.latency,
            ..report::LoadOutcome::default()
        };
        self.remark_on(totals);
    }

    fn remark_on(&mut self, totals: &LoadTotals) {
        let mut remark = |text: String| self.remarks.push(text);
        if let Some(failure) = &totals.first_failure {
            remark(format!("The first message that was refused: {failure}."));
        }
        if let Some(loss) = &totals.first_loss {
            remark(format!("The first connection that was lost: {loss}."));
            if self.args.load.qos == 0 {
                remark(
                    "QoS 0 promises nothing for what was written to a connection that is lost, so that it was not looked for."
                        .to_owned(),
                );
            }
        }
        if totals.unanswered > 0 {
            remark(format!("{} messages were never answered.", totals.unanswered));
        }
        if totals.unexpected > 0 {
            remark(format!("{} answers belonged to no message.", totals.unexpected));
        }
        if totals.ahead_ms > AHEAD_MS {
            remark(format!(
                "The times of messages are up to {:.1} s ahead of the clock: each message of a device has a millisecond of its \
                 own.",
                totals.ahead_ms as f64 / 1e3
            ));
        }
    }
}

fn second(
    interval: &LoadInterval,
    before: Option<&ResourceSample>,
    now: Option<&ResourceSample>,
) -> LoadSecond {
    let per_second = |count: u64| count as f64 / interval.length.as_secs_f64().max(1e-9);
    let cores = |counter: fn(&ResourceSample) -> Option<u64>| {
        let (before, now) = (before?, now?);
        let elapsed = now.at.saturating_duration_since(before.at).as_micros();
        let spent = counter(now)?.checked_sub(counter(before)?)?;
        (elapsed > 0).then(|| spent as f64 / elapsed as f64)
    };
    LoadSecond {
        at: interval.at.as_secs_f64(),
        sent: per_second(interval.sent),
        acknowledged: per_second(interval.acknowledged),
        failed: per_second(interval.failed),
        latency: interval.latency,
        server_cores: cores(|sample| sample.server_cpu_us),
        generator_cores: cores(|sample| sample.generator_cpu_us),
        server_memory: now.and_then(|sample| sample.server_rss_bytes),
        lag: now.and_then(|sample| sample.lag_records),
    }
}
