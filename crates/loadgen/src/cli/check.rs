//! Refuses invalid options, and names the option in each error.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::{
    ConnectionsArgs, DeviceApi, DeviceArgs, ForeignArgs, LoadArgs, MqttServerArgs, OutputArgs, ReportArgs,
    TargetArgs, TelemetryArgs,
};
use crate::cli::INSTANCE_REGEX;
use crate::devices::DeviceRange;
use crate::error::{LoadError, LoadResult};
use crate::payload::PayloadKind;
use crate::process::ProcessSample;

const MAX_WORKERS: usize = 256;
const MAX_DEVICES: u32 = 10_000_000;
/// Most messages in flight over all connections; each takes eight bytes.
const MAX_IN_FLIGHT: usize = 50_000_000;
const MAX_SECONDS: f64 = 1e7;

fn refuse<T>(text: impl Into<String>) -> LoadResult<T> {
    Err(LoadError::InvalidOption(text.into()))
}

/// Checks that a number is within a range; NaN is within none.
fn within(name: &str, value: f64, range: RangeInclusive<f64>) -> LoadResult<()> {
    if range.contains(&value) {
        return Ok(());
    }
    refuse(format!(
        "{name} {value} is not from {} to {}",
        range.start(),
        range.end()
    ))
}

/// Checks that a report can be written to its path.
fn check_writable(name: &str, path: Option<&Path>) -> LoadResult<()> {
    match path.map(crate::report::check_writable) {
        Some(Err(error)) => refuse(format!("{name} {error}")),
        _ => Ok(()),
    }
}

impl TargetArgs {
    /// Refuses invalid options.
    pub(crate) fn check(&self) -> LoadResult<()> {
        within(
            "--rest-pool-size",
            self.rest_pool_size as f64,
            1.0..=MAX_WORKERS as f64,
        )?;
        if self.own_server && self.mqtt.mqtt_tls {
            return refuse("--mqtt-tls does not go with --own-server, which has no certificate");
        }
        if self.own_server && self.mqtt.server_pid.is_some() {
            return refuse("--server-pid does not go with --own-server, whose process is known");
        }
        self.mqtt.check()
    }
}

impl MqttServerArgs {
    /// Refuses a process that does not exist.
    pub(crate) fn check(&self) -> LoadResult<()> {
        match self.server_pid {
            Some(pid) if ProcessSample::of(pid).is_none() => refuse(format!(
                "--server-pid {pid}: there is no such process on this machine"
            )),
            _ => Ok(()),
        }
    }
}

impl OutputArgs {
    /// Refuses files that cannot be written.
    pub(crate) fn check(&self) -> LoadResult<()> {
        check_writable("--json", self.json.as_deref())?;
        check_writable("--html", self.html.as_deref())
    }
}

impl DeviceArgs {
    /// Returns the devices of this load generator.
    pub(crate) fn range(&self) -> LoadResult<DeviceRange> {
        let (start, end) = if self.use_instance {
            let instance = self.instance()?;
            let start = self.device_count.checked_mul(instance);
            let end = start.and_then(|start| start.checked_add(self.device_count));
            match (start, end) {
                (Some(start), Some(end)) => (start, end),
                _ => {
                    return refuse(format!(
                        "--instance {instance} has no numbers left for --device-count {} devices",
                        self.device_count
                    ));
                }
            }
        } else {
            (self.device_start, self.device_end)
        };
        if start >= end {
            return refuse(format!(
                "there is no device from {start} to {end}: see --device-start, --device-end and --device-count"
            ));
        }
        if end - start > MAX_DEVICES {
            return refuse(format!(
                "--device-end: {} devices are more than {MAX_DEVICES}",
                end - start
            ));
        }
        Ok(DeviceRange { start, end })
    }

    fn instance(&self) -> LoadResult<u32> {
        if !self.instance_from_name {
            return Ok(self.instance);
        }
        let name = self.instance_name.as_str();
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let number = name.get(name.len() - digits..).unwrap_or_default();
        number.parse().or_else(|_| {
            refuse(format!(
                "--instance-name (INSTANCE_IDX_REGEX_SOURCE) `{name}` does not end with the number of a load generator"
            ))
        })
    }

    fn check(&self) -> LoadResult<()> {
        if self.instance_regex != INSTANCE_REGEX && self.instance_from_name {
            return refuse(format!(
                "INSTANCE_IDX_REGEX: only `{INSTANCE_REGEX}`, the digits at the end, is supported; give --instance instead"
            ));
        }
        if !self.name_format.eq_ignore_ascii_case("DEFAULT") {
            return refuse("DEVICE_NAME_FORMAT: only `DEFAULT` is supported");
        }
        self.range().map(drop)
    }
}

impl LoadArgs {
    fn check(&self, devices: usize) -> LoadResult<()> {
        within("--rate", self.rate, 0.001..=1e7)?;
        within("--duration", self.duration, 0.001..=MAX_SECONDS)?;
        within("--alarms", self.alarms, 0.0..=1e7)?;
        within("--alarms-from", self.alarms_from, 0.0..=f64::MAX)?;
        within("--alarms-until", self.alarms_until, 0.0..=f64::MAX)?;
        within("--warm-up-pack", self.warm_up_pack as f64, 1.0..=1e6)?;
        within("--users", self.users as f64, 1.0..=1e6)?;
        match (self.in_flight, self.device_api) {
            (Some(0), _) => return refuse("--in-flight must be at least 1"),
            (Some(2..), DeviceApi::Http) => {
                return refuse(
                    "--in-flight: a connection of HTTP has one request at a time; give more --users instead",
                );
            }
            (Some(in_flight), DeviceApi::Mqtt) if usize::from(in_flight) * devices > MAX_IN_FLIGHT => {
                return refuse(format!(
                    "--in-flight {in_flight}: {devices} devices may have {MAX_IN_FLIGHT} messages in flight in all"
                ));
            }
            _ => {}
        }
        self.sized_payload().map(drop)
    }

    /// The payload, with the number of data points given separately.
    fn sized_payload(&self) -> LoadResult<PayloadKind> {
        let (PayloadKind::IndustrialPlc(lines), Some(points)) = (self.payload, self.payload_points) else {
            return Ok(self.payload);
        };
        within(
            "--payload-points",
            points as f64,
            1.0..=PayloadKind::MAX_LINES as f64,
        )?;
        if lines != PayloadKind::LINES && lines != points {
            return refuse(format!(
                "--payload-points {points} contradicts --payload {}",
                self.payload
            ));
        }
        Ok(PayloadKind::IndustrialPlc(points))
    }
}

impl ReportArgs {
    fn check(&self) -> LoadResult<()> {
        within("--patience", self.patience, 0.0..=MAX_SECONDS)?;
        within("--probes", self.probes, 0.0..=1_000.0)?;
        self.output.check()
    }

    /// Time for the server to store what it has acknowledged.
    pub(crate) fn patience(&self) -> Duration {
        Duration::try_from_secs_f64(self.patience).unwrap_or_default()
    }
}

impl ForeignArgs {
    fn check(&self) -> LoadResult<()> {
        if !self.test_api.eq_ignore_ascii_case("device") {
            return refuse("TEST_API: only `device` is supported");
        }
        if self.update_root_rule_chain || self.revert_root_rule_chain {
            return refuse(
                "UPDATE_ROOT_RULE_CHAIN and REVERT_ROOT_RULE_CHAIN: the rule chain of the tenant is left alone",
            );
        }
        Ok(())
    }
}

impl TelemetryArgs {
    /// Refuses invalid options.
    pub(crate) fn check(&self) -> LoadResult<()> {
        self.foreign.check()?;
        self.target.check()?;
        self.devices.check()?;
        self.load.check(self.devices.range()?.len())?;
        self.report.check()
    }

    /// The payload, with the number of data points given separately.
    pub(crate) fn payload(&self) -> PayloadKind {
        // `check` has refused contradictory options.
        self.load.sized_payload().unwrap_or(self.load.payload)
    }
}

impl ConnectionsArgs {
    /// Refuses invalid options.
    pub(crate) fn check(&self) -> LoadResult<()> {
        self.target.check()?;
        within("--settle", self.settle, 0.0..=MAX_SECONDS)?;
        within("--opening", self.opening as f64, 1.0..=1e6)?;
        if self.counts.last().is_none_or(|most| *most == 0)
            || !self.counts.is_sorted_by(|one, next| one < next)
        {
            return refuse("--counts must be ascending, and the last one more than 0");
        }
        check_writable("--json", self.json.as_deref())
    }
}

#[cfg(test)]
mod tests;
