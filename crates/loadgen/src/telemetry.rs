//! A telemetry run, from its options to its report.

use std::time::Duration;

use fieldline_codec::QoS;

use crate::cli::{DeviceApi, TelemetryArgs};
use crate::devices::{
    DeviceRange, ProfileSpec, create_devices, delete_devices, ensure_profile, find_devices,
};
use crate::engine::{AlarmLoad, DeviceProtocol, LoadEngine, LoadPace, LoadPlan, now_ms};
use crate::error::{LoadError, LoadResult};
use crate::process::{machine, raise_file_limit};
use crate::report::{self, LoadReport, text};
use crate::target::{HttpTarget, LoadTarget};
use crate::verify::{CountFilter, DeviceExpectation, newest_ms, verify};

mod comparison;
mod load;

/// Open files besides the connections.
const OTHER_FILES: u64 = 64;
/// Longest time that the engine waits for replies.
const MAX_REPLY_TIMEOUT: Duration = Duration::from_secs(60);
const WARM_UP: &[u8] = b"{\"t1\":73}";

/// Runs a telemetry load. Returns whether every acknowledged message is stored, as far as it was checked.
///
/// # Errors
/// An option is invalid, or the run could not be completed. Results obtained before a late failure are still reported.
pub(crate) fn run(args: &TelemetryArgs) -> LoadResult<bool> {
    args.check()?;
    let mut run = TelemetryRun::prepare(args)?;
    let mut report = run.measure()?;
    run.clean_up();
    report.remarks = std::mem::take(&mut run.remarks);
    println!("{}", text::summary(&report));
    if let Some(path) = &args.report.output.json {
        report::write_json(&report, path)?;
    }
    if let Some(path) = &args.report.output.html {
        report::write_html(&report, path)?;
    }
    if let Some(failure) = run.failure {
        return Err(failure);
    }
    let is_stored = report
        .verification
        .as_ref()
        .is_none_or(|found| found.missing == 0 && found.surplus == 0);
    Ok(is_stored && (report.outcome.acknowledged > 0 || !args.load.enabled))
}

struct TelemetryRun<'a> {
    args: &'a TelemetryArgs,
    target: LoadTarget,
    range: DeviceRange,
    ids: Vec<Option<String>>,
    provisioning: Option<report::LoadProvisioning>,
    /// Earliest timestamp of a message, in milliseconds since 1970.
    not_before_ms: i64,
    remarks: Vec<String>,
    /// An error after the load, which does not prevent the report.
    failure: Option<LoadError>,
}

impl<'a> TelemetryRun<'a> {
    fn prepare(args: &'a TelemetryArgs) -> LoadResult<Self> {
        let range = args.devices.range()?;
        let connections = match args.load.device_api {
            DeviceApi::Mqtt => range.len(),
            DeviceApi::Http => args.load.users,
        };
        check_files(connections)?;
        let target = LoadTarget::find(&args.target)?;
        target.client.wait_until_up(Duration::from_secs(10))?;
        let mut run = Self {
            args,
            target,
            range,
            ids: Vec::new(),
            provisioning: None,
            not_before_ms: 0,
            remarks: Vec::new(),
            failure: None,
        };
        run.find_devices()?;
        run.find_newest()?;
        Ok(run)
    }

    /// Finds the newest stored message, since an earlier load may have run ahead of the clock, as a load with more than
    /// one message per millisecond and device does: its messages must not be counted for this run.
    fn find_newest(&mut self) -> LoadResult<()> {
        let were_there = self.provisioning.as_ref().is_none_or(|made| made.found > 0);
        let Some(key) = self.counted_key().filter(|_| were_there) else {
            return Ok(());
        };
        let ids: Vec<_> = self.ids.iter().flatten().cloned().collect();
        self.print_line(&format!(
            "looking for what {} devices have sent before",
            ids.len()
        ));
        let newest = newest_ms(&self.target.client, key, &ids, self.args.target.rest_pool_size)?;
        self.not_before_ms = newest.map_or(0, |newest| newest.saturating_add(1));
        Ok(())
    }

    /// The key by which stored messages are counted, if they can and shall be counted.
    fn counted_key(&self) -> Option<&'static str> {
        let is_wanted = self.args.report.verify && self.args.load.telemetry && self.args.load.enabled;
        self.args.payload().key().filter(|_| is_wanted)
    }

    fn find_devices(&mut self) -> LoadResult<()> {
        let workers = self.args.target.rest_pool_size;
        if self.args.devices.create {
            let name = self.args.devices.device_profile.as_deref();
            let spec = ProfileSpec::named(name.unwrap_or(self.args.payload().profile()));
            let profile = ensure_profile(&self.target.client, &spec)?;
            let total = self.range.len();
            let quiet = self.args.report.output.quiet;
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
            self.provisioning = Some(report::LoadProvisioning {
                created: created.created,
                found: created.found,
                seconds: created.seconds,
            });
            self.ids = created.ids;
        } else if self.args.report.verify || self.args.report.probes > 0.0 || self.args.devices.delete {
            self.ids = find_devices(&self.target.client, self.range, workers)?;
            let absent = self.ids.iter().filter(|id| id.is_none()).count();
            if absent > 0 {
                self.remarks.push(format!(
                    "{absent} of {} devices are not there, and were not made.",
                    self.range.len()
                ));
            }
        }
        Ok(())
    }

    fn print_line(&self, line: &str) {
        if !self.args.report.output.quiet {
            eprintln!("{line}");
        }
    }

    fn measure(&mut self) -> LoadResult<LoadReport> {
        let args = self.args;
        let mut report = LoadReport {
            title: args.title.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine(),
            provisioning: self.provisioning.clone(),
            started_at: now_ms(),
            ..LoadReport::default()
        };
        if !args.load.enabled {
            return Ok(report);
        }
        let before = self.limit()?;
        let mut engine = LoadEngine::new(self.plan()?)?;
        let took = self.connect(&mut engine)?;
        if args.load.warm_up {
            engine.warm_up(WARM_UP, args.load.warm_up_pack)?;
        }
        let (connected, failed, refusal) = engine.connected();
        if let Some(refusal) = refusal {
            self.remarks.push(format!(
                "{failed} connections were not accepted or not kept, the first with: {refusal}."
            ));
        }
        report.connecting = report::ConnectResult {
            connected,
            failed,
            seconds: took.as_secs_f64(),
        };
        report.started_at = now_ms();
        self.load(&mut engine, &mut report)?;
        engine.disconnect();
        match self.verify(&engine) {
            Ok(found) => report.verification = found,
            Err(error) => self.fail("What is stored could not be counted", error),
        }
        match self.limit() {
            Ok(after) => {
                if let Some((one, other)) = comparison::differ(before.as_ref(), after.as_ref()) {
                    self.remarks.push(format!(
                        "The limit was {one:.0}/s before the load and {other:.0}/s after it: something else uses this machine."
                    ));
                }
                report.limit = comparison::mean(before, after);
            }
            Err(error) => {
                report.limit = before;
                self.fail("The limit was measured before the load only", error);
            }
        }
        Ok(report)
    }

    fn fail(&mut self, what: &str, error: LoadError) {
        self.remarks.push(format!("{what}: {error}."));
        self.failure.get_or_insert(error);
    }

    fn plan(&self) -> LoadResult<LoadPlan> {
        let load = &self.args.load;
        let (target, protocol) = match load.device_api {
            DeviceApi::Mqtt => (
                self.target.mqtt,
                DeviceProtocol::Mqtt {
                    qos: match load.qos {
                        0 => QoS::AtMostOnce,
                        1 => QoS::AtLeastOnce,
                        _ => QoS::ExactlyOnce,
                    },
                    tls: self.target.tls.clone(),
                },
            ),
            DeviceApi::Http => {
                let HttpTarget {
                    address,
                    host,
                    prefix,
                } = self.target.http()?;
                let users = load.users;
                (address, DeviceProtocol::Http { host, prefix, users })
            }
        };
        Ok(LoadPlan {
            target,
            protocol,
            tokens: (0..self.range.len())
                .map(|position| self.range.name(position))
                .collect(),
            payload: self.args.payload(),
            attributes: !load.telemetry,
            pace: match load.in_flight {
                Some(in_flight) => LoadPace::Closed { in_flight },
                None => LoadPace::Open {
                    per_second: load.rate,
                },
            },
            duration: Duration::from_secs_f64(load.duration),
            alarms: AlarmLoad {
                per_second: load.alarms,
                from: load.alarms_from,
                until: load.alarms_until,
            },
            sequential: load.sequential,
            seed: load.seed,
            opening: load.warm_up_pack,
            not_before_ms: self.not_before_ms,
            reply_timeout: self.args.report.patience().min(MAX_REPLY_TIMEOUT),
        })
    }

    fn connect(&mut self, engine: &mut LoadEngine) -> LoadResult<Duration> {
        let total = engine.plan().connections();
        let quiet = self.args.report.output.quiet;
        engine.connect(total, &mut |open| {
            if !quiet {
                eprintln!("{open} of {total} connections are open");
            }
        })
    }

    fn verify(&mut self, engine: &LoadEngine) -> LoadResult<Option<report::VerificationResult>> {
        let args = self.args;
        if !args.report.verify {
            return Ok(None);
        }
        let Some(key) = self.counted_key() else {
            self.remarks.push(
                "What is stored was not counted: not every message has the same key and a time.".to_owned(),
            );
            return Ok(None);
        };
        let (from_ms, to_ms) = engine.span();
        let mut expected = Vec::new();
        for (position, (tally, id)) in engine.devices().iter().zip(&self.ids).enumerate() {
            if let Some(id) = id {
                expected.push(DeviceExpectation {
                    name: self.range.name(position),
                    id: id.clone(),
                    acknowledged: tally.acknowledged.into(),
                    sent: tally.sent.into(),
                });
            }
        }
        self.print_line(&format!("counting what is stored of {} devices", expected.len()));
        let check = CountFilter {
            key: key.to_owned(),
            from_ms,
            to_ms,
        };
        let (workers, patience) = (args.target.rest_pool_size, args.report.patience());
        let found = verify(&self.target.client, &check, &expected, patience, workers, &|_| {})?;
        Ok(Some(found))
    }

    fn clean_up(&mut self) {
        // A server started for this run is removed with all its data.
        if !self.args.devices.delete || self.target.is_own() {
            return;
        }
        let ids: Vec<_> = self.ids.iter().flatten().cloned().collect();
        self.print_line(&format!("deleting {} devices", ids.len()));
        let workers = self.args.target.rest_pool_size;
        match delete_devices(&self.target.client, &ids, workers, &|_| {}) {
            Ok(deleted) if deleted.failed > 0 => self.remarks.push(format!(
                "{} devices could not be deleted: {}.",
                deleted.failed,
                deleted.failures.join("; ")
            )),
            Ok(_) => {}
            Err(error) => self.fail("The devices could not be deleted", error),
        }
    }
}

/// Checks that this process may open that many connections.
pub(crate) fn check_files(connections: usize) -> LoadResult<()> {
    let (needed, allowed) = (connections as u64 + OTHER_FILES, raise_file_limit());
    if needed <= allowed {
        return Ok(());
    }
    Err(LoadError::InvalidOption(format!(
        "{connections} connections need {needed} open files, and this process may have {allowed}: raise it with `ulimit -n`, \
         or take fewer"
    )))
}
