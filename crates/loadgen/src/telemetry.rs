//! A run from its options to its report.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fieldline_codec::QoS;

use crate::child::{LimitServer, limit_server};
use crate::cli::{DeviceApi, LimitKind, TelemetryArgs};
use crate::devices::{
    DeviceRange, ProfileSpec, create_devices, delete_devices, ensure_profile, find_devices,
};
use crate::engine::{Alarms, Engine, Interval, Pace, Plan, Protocol, Totals};
use crate::error::{LoadError, LoadResult};
use crate::probe::Probe;
use crate::process::{ProcessSample, machine, raise_file_limit};
use crate::report::{self, Latency, Limit, Load, Report, Second, text};
use crate::sampler::{Sample, Sampler, SamplerOptions};
use crate::target::Target;
use crate::verify::{Check, Expected, verify};

/// Files beside the connections.
const OTHER_FILES: u64 = 64;
/// Longest load on the limit server, before and after.
const LIMIT_SECONDS: f64 = 5.0;
/// Looking for the end of the lag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs a telemetry load. Whether everything that was acknowledged is stored, as far as it was checked.
pub(crate) fn run(args: &TelemetryArgs) -> LoadResult<bool> {
    args.check()?;
    let mut run = Run::prepare(args)?;
    let mut report = run.measure()?;
    run.clean_up(&mut report)?;
    println!("{}", text::summary(&report));
    if let Some(path) = &args.report.json {
        report::write_json(&report, path)?;
    }
    if let Some(path) = &args.report.html {
        report::write_html(&report, path)?;
    }
    let is_stored = report
        .verification
        .as_ref()
        .is_none_or(|found| found.missing == 0 && found.surplus == 0);
    Ok(is_stored && (report.outcome.acknowledged > 0 || !args.load.enabled))
}

struct Run<'a> {
    args: &'a TelemetryArgs,
    target: Target,
    range: DeviceRange,
    ids: Vec<Option<String>>,
    provisioning: Option<report::Provisioning>,
    remarks: Vec<String>,
    said: Instant,
}

impl<'a> Run<'a> {
    fn prepare(args: &'a TelemetryArgs) -> LoadResult<Self> {
        let (start, end) = args.devices.range()?;
        let range = DeviceRange { start, end };
        let files = raise_file_limit();
        let connections = match args.load.device_api {
            DeviceApi::Mqtt => range.len(),
            DeviceApi::Http => args.load.users,
        };
        if connections as u64 + OTHER_FILES > files {
            return Err(LoadError::InvalidOption(format!(
                "{connections} connections need {} open files, and this process may have {files}: raise it with `ulimit -n`, \
                 or take fewer devices",
                connections as u64 + OTHER_FILES
            )));
        }
        let target = Target::find(&args.target)?;
        target.client.wait_until_up(Duration::from_secs(10))?;
        let mut run = Self {
            args,
            target,
            range,
            ids: Vec::new(),
            provisioning: None,
            remarks: Vec::new(),
            said: Instant::now(),
        };
        run.find_devices()?;
        Ok(run)
    }

    fn find_devices(&mut self) -> LoadResult<()> {
        let workers = self.args.target.rest_pool_size.clamp(1, 64);
        if self.args.devices.create {
            let spec = ProfileSpec::named(self.args.payload().profile());
            let profile = ensure_profile(&self.target.client, &spec)?;
            let total = self.range.len();
            let quiet = self.args.report.quiet;
            let progress = move |done: usize| {
                if !quiet && done.is_multiple_of(5_000) {
                    eprintln!("{done} of {total} devices are there");
                }
            };
            let created = create_devices(&self.target.client, self.range, &profile, workers, &progress)?;
            if created.failed > 0 {
                return Err(LoadError::Engine(format!(
                    "{} of {total} devices could not be made: {}",
                    created.failed,
                    created.failures.join("; ")
                )));
            }
            self.provisioning = Some(report::Provisioning {
                created: created.created,
                found: created.found,
                seconds: created.seconds,
            });
            self.ids = created.ids;
        } else if self.args.report.verify || self.args.report.probes > 0.0 || self.args.devices.delete {
            self.ids = find_devices(&self.target.client, self.range, workers)?;
        }
        Ok(())
    }

    fn say(&mut self, line: &str) {
        if !self.args.report.quiet {
            self.said = Instant::now();
            eprintln!("{line}");
        }
    }

    fn measure(&mut self) -> LoadResult<Report> {
        let args = self.args;
        let mut report = Report {
            title: args.title.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(),
            provisioning: self.provisioning.clone(),
            started_at: now_ms(),
            ..Report::default()
        };
        if !args.load.enabled {
            return Ok(report);
        }
        let plan = self.plan()?;
        let target = plan.target;
        let before = self.limit()?;
        let mut engine = Engine::new(plan)?;
        let took = self.connect(&mut engine)?;
        let (connected, failed, refusal) = engine.connected();
        if let Some(refusal) = refusal {
            self.remarks.push(format!(
                "{failed} connections were not accepted, the first with: {refusal}"
            ));
        }
        report.connecting = report::Connecting {
            connected,
            failed,
            seconds: took.as_secs_f64(),
        };
        if args.load.warm_up {
            engine.warm_up(b"{\"t1\":73}", args.load.warm_up_pack)?;
        }
        report.started_at = now_ms();
        self.load(&mut engine, &mut report)?;
        engine.disconnect();
        self.verify(&engine, &mut report)?;
        let after = self.limit()?;
        report.limit = mean(before, after);
        report.load.target = target.to_string();
        Ok(report)
    }

    fn plan(&self) -> LoadResult<Plan> {
        let load = &self.args.load;
        let (target, protocol) = match load.device_api {
            DeviceApi::Mqtt => (
                self.target.mqtt,
                Protocol::Mqtt {
                    qos: match load.qos {
                        0 => QoS::AtMostOnce,
                        1 => QoS::AtLeastOnce,
                        _ => QoS::ExactlyOnce,
                    },
                    tls: self.target.tls.clone(),
                },
            ),
            DeviceApi::Http => {
                let (address, host) = self.target.http()?;
                let users = load.users;
                (address, Protocol::Http { host, users })
            }
        };
        Ok(Plan {
            target,
            protocol,
            tokens: (0..self.range.len())
                .map(|position| self.range.name(position))
                .collect(),
            payload: self.args.payload(),
            attributes: !load.telemetry,
            pace: match load.in_flight {
                Some(in_flight) => Pace::Closed { in_flight },
                None => Pace::Open {
                    per_second: load.rate,
                },
            },
            duration: Duration::from_secs_f64(load.duration),
            alarms: Alarms {
                per_second: load.alarms,
                from: load.alarms_from,
                until: load.alarms_until,
            },
            sequential: load.sequential,
            seed: load.seed,
            opening: load.warm_up_pack.clamp(1, 10_000),
            patience: self.args.report.patience().min(Duration::from_secs(60)),
        })
    }

    fn connect(&mut self, engine: &mut Engine) -> LoadResult<Duration> {
        let total = engine.plan().connections();
        let quiet = self.args.report.quiet;
        engine.connect(total, &mut |open| {
            if !quiet {
                eprintln!("{open} of {total} connections are open");
            }
        })
    }

    /// The load itself, with everything that is watched meanwhile.
    fn load(&mut self, engine: &mut Engine, report: &mut Report) -> LoadResult<()> {
        let args = self.args;
        let sampler = Sampler::start(SamplerOptions {
            pid: self.target.pid,
            metrics_url: Some(format!("{}/metrics", self.target.url)),
            ..SamplerOptions::default()
        })?;
        let probe = match self.ids.first() {
            Some(Some(id)) if args.report.probes > 0.0 => Some(Probe::start(
                &self.target.client,
                &self.target.url,
                &self.range.name(0),
                id,
                args.report.probes,
            )?),
            _ => None,
        };
        let own_before = ProcessSample::own();
        let server_before = self.server();
        let mut seconds = Vec::new();
        let mut last = sampler.latest();
        let mut lag_end = None;
        let (quiet, terminal) = (args.report.quiet, std::io::stderr().is_terminal());
        let totals = engine.run(&mut |interval| {
            let now = sampler.latest();
            let second = second(interval, last.as_ref(), now.as_ref());
            if now.is_some_and(|now| last.is_none_or(|last| last.at != now.at)) {
                last = now;
            }
            lag_end = second.lag.or(lag_end);
            if !quiet && (terminal || seconds.len().is_multiple_of(10)) {
                eprintln!("{}", text::progress(&second, args.load.duration));
            }
            seconds.push(second);
        })?;
        let own_after = ProcessSample::own();
        if let Some(probe) = probe {
            let probed = probe.stop()?;
            report.queryable = (probed.latency.count > 0).then_some(probed.latency);
            if probed.given_up + probed.failed > 0 {
                self.remarks.push(format!(
                    "{} probes were given up and {} failed{}",
                    probed.given_up,
                    probed.failed,
                    probed
                        .last_failure
                        .map(|why| format!(": {why}"))
                        .unwrap_or_default()
                ));
            }
        }
        self.drain(&sampler);
        let server_after = self.server();
        let series = sampler.stop();
        self.fill_in(report, engine, &totals);
        let spent = |before: Option<ProcessSample>, after: Option<ProcessSample>| {
            let spent = after?.cpu_us.checked_sub(before?.cpu_us)?;
            Some(spent as f64 / totals.acknowledged.max(1) as f64)
        };
        report.outcome.server_us_per_message = spent(server_before, server_after);
        report.outcome.generator_us_per_message = spent(own_before, own_after).unwrap_or_default();
        report.outcome.server_memory_peak = series.rss_peak();
        report.outcome.lag_peak = series.lag_peak();
        report.outcome.lag_end = lag_end;
        report.seconds = seconds;
        Ok(())
    }

    fn server(&self) -> Option<ProcessSample> {
        self.target.pid.and_then(ProcessSample::of)
    }

    /// Waits until the server has stored what it has acknowledged, so that its work counts.
    fn drain(&mut self, sampler: &Sampler) {
        let asked = Instant::now();
        let mut latest = sampler.latest();
        while asked.elapsed() < self.args.report.patience()
            && latest.is_some_and(|sample| {
                sample.lag_records.is_some_and(|lag| lag > 0)
                    || sample.lag_records.is_some() && sample.at < asked
            })
        {
            std::thread::sleep(LOOK_EVERY);
            latest = sampler.latest();
        }
    }

    fn fill_in(&mut self, report: &mut Report, engine: &Engine, totals: &Totals) {
        let plan = engine.plan();
        let load = &self.args.load;
        report.load = Load {
            protocol: match plan.protocol {
                Protocol::Mqtt { tls: Some(_), .. } => "mqtts",
                Protocol::Mqtt { .. } => "mqtt",
                Protocol::Http { .. } => "http",
            }
            .to_owned(),
            target: String::new(),
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
        report.outcome = report::Outcome {
            sent: totals.sent,
            acknowledged: totals.acknowledged,
            failed: totals.failed,
            unsent: totals.unsent,
            lost_connections: totals.lost,
            rate: totals.acknowledged_in_time as f64 / totals.seconds.max(1e-9),
            latency: totals.latency,
            ..report::Outcome::default()
        };
        if let Some(failure) = &totals.first_failure {
            self.remarks
                .push(format!("The first message that was refused: {failure}."));
        }
        if totals.unanswered > 0 {
            self.remarks
                .push(format!("{} messages were never answered.", totals.unanswered));
        }
        if totals.strange > 0 {
            self.remarks
                .push(format!("{} answers belonged to no message.", totals.strange));
        }
    }

    fn verify(&mut self, engine: &Engine, report: &mut Report) -> LoadResult<()> {
        let (args, payload) = (self.args, engine.plan().payload);
        if !args.report.verify {
            return Ok(());
        }
        let Some(key) = payload.key().filter(|_| args.load.telemetry) else {
            self.remarks.push(
                "What is stored was not counted: not every message has the same key and a time.".to_owned(),
            );
            return Ok(());
        };
        let (from_ms, to_ms) = engine.span();
        let mut expected = Vec::new();
        for (position, (tally, id)) in engine.devices().iter().zip(&self.ids).enumerate() {
            if let Some(id) = id {
                expected.push(Expected {
                    name: self.range.name(position),
                    id: id.clone(),
                    acknowledged: tally.acknowledged.into(),
                    sent: tally.sent.into(),
                });
            }
        }
        self.say(&format!("counting what is stored of {} devices", expected.len()));
        let check = Check {
            key: key.to_owned(),
            from_ms,
            to_ms,
        };
        let workers = args.target.rest_pool_size.clamp(1, 64);
        let found = verify(
            &self.target.client,
            &check,
            &expected,
            args.report.patience(),
            workers,
            &|_| {},
        )?;
        report.verification = Some(found);
        Ok(())
    }

    /// The same load, in closed loop, on a limit server.
    fn limit(&mut self) -> LoadResult<Option<Limit>> {
        let kind = match (self.args.report.limit, self.args.load.device_api) {
            (LimitKind::None, _) => return Ok(None),
            (_, DeviceApi::Http) => LimitServer::Http,
            (LimitKind::Plain, DeviceApi::Mqtt) => LimitServer::Plain,
            (LimitKind::Fsync, DeviceApi::Mqtt) => LimitServer::Fsync,
        };
        self.say("measuring the limit of the machine");
        let (process, address) = limit_server(kind, self.target.home.path())?;
        let mut plan = self.plan()?;
        plan.target = address;
        if let Protocol::Mqtt { tls, .. } = &mut plan.protocol {
            *tls = None;
        }
        plan.pace = Pace::Closed {
            in_flight: self.args.load.in_flight.unwrap_or(1),
        };
        plan.duration = Duration::from_secs_f64(self.args.load.duration.min(LIMIT_SECONDS));
        let mut engine = Engine::new(plan)?;
        let took = engine.connect(engine.plan().connections(), &mut |_| {})?;
        let before = ProcessSample::of(process.pid());
        let totals = engine.run(&mut |_| {})?;
        let after = ProcessSample::of(process.pid());
        engine.disconnect();
        let spent = before
            .zip(after)
            .map(|(before, after)| after.cpu_us.saturating_sub(before.cpu_us));
        Ok(Some(Limit {
            what: kind.what().to_owned(),
            rate: totals.acknowledged_in_time as f64 / totals.seconds.max(1e-9),
            latency: totals.latency,
            server_us_per_message: spent.map(|spent| spent as f64 / totals.acknowledged.max(1) as f64),
            connections_per_second: engine.plan().connections() as f64 / took.as_secs_f64().max(1e-9),
        }))
    }

    fn clean_up(&mut self, report: &mut Report) -> LoadResult<()> {
        if self.args.devices.delete && !self.target.is_own() {
            let ids: Vec<_> = self.ids.iter().flatten().cloned().collect();
            self.say(&format!("deleting {} devices", ids.len()));
            let workers = self.args.target.rest_pool_size.clamp(1, 64);
            let deleted = delete_devices(&self.target.client, &ids, workers, &|_| {})?;
            if deleted.failed > 0 {
                self.remarks.push(format!(
                    "{} devices could not be deleted: {}",
                    deleted.failed,
                    deleted.failures.join("; ")
                ));
            }
        }
        report.remarks = std::mem::take(&mut self.remarks);
        Ok(())
    }
}

fn second(interval: &Interval, before: Option<&Sample>, now: Option<&Sample>) -> Second {
    let per_second = |count: u64| count as f64 / interval.length.as_secs_f64().max(1e-9);
    let cores = |counter: fn(&Sample) -> Option<u64>| {
        let (before, now) = (before?, now?);
        let elapsed = now.at.saturating_duration_since(before.at).as_micros();
        let spent = counter(now)?.checked_sub(counter(before)?)?;
        (elapsed > 0).then(|| spent as f64 / elapsed as f64)
    };
    Second {
        at: interval.at.as_secs_f64(),
        sent: per_second(interval.sent),
        acknowledged: per_second(interval.acknowledged),
        failed: per_second(interval.failed),
        latency: interval.latency,
        server_cores: cores(|sample| sample.server_cpu_us),
        generator_cores: cores(|sample| sample.generator_cpu_us).unwrap_or_default(),
        server_memory: now.and_then(|sample| sample.server_rss_bytes),
        lag: now.and_then(|sample| sample.lag_records),
    }
}

/// The mean of what the limit server reached before and after.
fn mean(before: Option<Limit>, after: Option<Limit>) -> Option<Limit> {
    let (before, after) = match (before, after) {
        (Some(before), Some(after)) => (before, after),
        (one, other) => return one.or(other),
    };
    let half = |one: f64, other: f64| (one + other) / 2.0;
    let latency = |of: fn(&Latency) -> u64| (of(&before.latency) + of(&after.latency)) / 2;
    Some(Limit {
        rate: half(before.rate, after.rate),
        latency: Latency {
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

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
