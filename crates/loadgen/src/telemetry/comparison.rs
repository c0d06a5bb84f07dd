//! The same load on a limit server, for comparison.

use std::time::Duration;

use super::TelemetryRun;
use crate::child::{LimitServerKind, limit_server};
use crate::cli::{DeviceApi, LimitComparison};
use crate::engine::{DeviceProtocol, LoadEngine};
use crate::error::LoadResult;
use crate::process::CpuTime;
use crate::report::{LatencySummary, LimitServerResult};

/// Longest load on the limit server, before and after, seconds.
const LIMIT_SECONDS: f64 = 5.0;
/// Ratio of the two limits above which the machine was not quiet.
const NOISE: f64 = 1.5;

impl TelemetryRun<'_> {
    /// Puts the load on a limit server on this machine, for a shorter time.
    pub(super) fn limit(&mut self) -> LoadResult<Option<LimitServerResult>> {
        let kind = match (self.args.report.limit, self.args.load.device_api) {
            (LimitComparison::None, _) => return Ok(None),
            (_, DeviceApi::Http) => LimitServerKind::Http,
            (LimitComparison::Plain, DeviceApi::Mqtt) => LimitServerKind::Plain,
            (LimitComparison::Fsync, DeviceApi::Mqtt) => LimitServerKind::Fsync,
        };
        self.print_line("measuring the limit of the machine");
        let mut plan = self.plan()?;
        if !plan.target.ip().is_loopback() {
            self.remark(
                "The limit server ran on the machine of the load generator, and not on that of the server under load.",
            );
        }
        if let DeviceProtocol::Mqtt { tls, .. } = &mut plan.protocol
            && tls.take().is_some()
        {
            self.remark("The limit server speaks no TLS.");
        }
        let (process, address) = limit_server(kind, self.target.home.path())?;
        plan.target = address;
        plan.duration = Duration::from_secs_f64(self.args.load.duration.min(LIMIT_SECONDS));
        let mut engine = LoadEngine::new(plan)?;
        let took = engine.connect(engine.plan().connections(), &mut |_| {})?;
        let before = CpuTime::of(process.pid());
        let totals = engine.run(&mut |_| {})?;
        let after = CpuTime::of(process.pid());
        engine.disconnect();
        let spent = before.zip(after).and_then(|(before, after)| after.since(&before));
        Ok(Some(LimitServerResult {
            what: kind.what().to_owned(),
            rate: totals.acknowledged_in_time as f64 / totals.seconds.max(1e-9),
            latency: totals.latency,
            server_us_per_message: spent.map(|spent| spent as f64 / totals.acknowledged.max(1) as f64),
            connections_per_second: engine.plan().connections() as f64 / took.as_secs_f64().max(1e-9),
        }))
    }

    /// Adds a remark, unless it is there already.
    fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|remark| remark == text) {
            self.remarks.push(text.to_owned());
        }
    }
}

/// Returns the rates of the limit server before and after, if they are far apart.
pub(super) fn differ(
    before: Option<&LimitServerResult>,
    after: Option<&LimitServerResult>,
) -> Option<(f64, f64)> {
    let (before, after) = (before?.rate, after?.rate);
    (before.max(after) > NOISE * before.min(after)).then_some((before, after))
}

/// Returns the mean of the limit server's results before and after.
pub(super) fn mean(
    before: Option<LimitServerResult>,
    after: Option<LimitServerResult>,
) -> Option<LimitServerResult> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (one, other) => return one.or(other),
    };
    let half = |one: f64, other: f64| (one + other) / 2.0;
    let latency = |of: fn(&LatencySummary) -> u64| (of(&before.latency) + of(&after.latency)) / 2;
    Some(LimitServerResult {
        rate: half(before.rate, after.rate),
        latency: LatencySummary {
            count: before.latency.count + after.latency.count,
            mean: half(before.latency.mean, after.latency.mean),
            p50: latency(|it| it.p50),
            p90: latency(|it| it.p90),
            p99: latency(|it| it.p99),
            p999: latency(|it| it.p999),
            max: before.latency.max.max(after.latency.max),
        },
        server_us_per_message: before
            .server_us_per_message
            .zip(after.server_us_per_message)
            .map(|(one, other)| half(one, other)),
        connections_per_second: half(before.connections_per_second, after.connections_per_second),
        what: before.what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rate: f64) -> LimitServerResult {
        LimitServerResult {
            rate,
            ..LimitServerResult::default()
        }
    }

    #[test]
    fn the_limit_is_the_mean_of_before_and_after() {
        let both = mean(Some(limit(100.0)), Some(limit(300.0))).unwrap();
        assert!((both.rate - 200.0).abs() < 1e-9);
        assert_eq!(mean(Some(limit(5.0)), None), Some(limit(5.0)));
        assert_eq!(mean(None, None), None);
    }

    #[test]
    fn limits_far_apart_are_told_of() {
        assert_eq!(differ(Some(&limit(100.0)), Some(&limit(120.0))), None);
        assert_eq!(
            differ(Some(&limit(100.0)), Some(&limit(200.0))),
            Some((100.0, 200.0))
        );
        assert!(differ(Some(&limit(200.0)), Some(&limit(0.0))).is_some());
        assert_eq!(differ(None, Some(&limit(1.0))), None);
    }
}
