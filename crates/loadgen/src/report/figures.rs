//! Figures and findings derived from the results. Text and HTML both use these, so that they say the same.

use super::units::{count, plural, printable, rate, seconds};
use super::{ConnectResult, LoadReport, LoadSpec, MachineSpec, VerificationResult};

impl LoadReport {
    /// Acknowledged messages a second, as a share of the limit server's rate; `None` in open loop, where it would only
    /// reflect the requested rate.
    #[must_use]
    pub fn rate_ratio(&self) -> Option<f64> {
        if self.load.rate.is_some() {
            return None;
        }
        quotient(self.outcome.rate, self.limit.as_ref()?.rate)
    }

    /// Processor time of the server per message, as a multiple of the limit server's.
    #[must_use]
    pub fn cpu_ratio(&self) -> Option<f64> {
        quotient(
            self.outcome.server_us_per_message?,
            self.limit.as_ref()?.server_us_per_message?,
        )
    }

    /// Connections accepted a second, as a share of the limit server's rate.
    #[must_use]
    pub fn connection_ratio(&self) -> Option<f64> {
        quotient(
            self.connecting.rate()?,
            self.limit.as_ref()?.connections_per_second,
        )
    }
}

impl ConnectResult {
    /// Connections accepted a second, log-in included.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        quotient(self.connected as f64, self.seconds)
    }
}

/// A quotient of two positive numbers, if it is finite.
fn quotient(value: f64, by: f64) -> Option<f64> {
    let result = value / by;
    (by > 0.0 && value > 0.0 && result.is_finite()).then_some(result)
}

/// The grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingGrade {
    /// The result is as it should be.
    Good,
    /// The reader must know this to judge the figures.
    Warning,
    /// The server has lost or invented messages.
    Bad,
}

/// One sentence about the result of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportFinding {
    pub(super) grade: FindingGrade,
    pub(super) text: String,
}

/// All deviations of the run, and whether everything is stored; the worst finding first.
pub(super) fn findings(report: &LoadReport) -> Vec<ReportFinding> {
    let (outcome, connecting) = (&report.outcome, &report.connecting);
    let mut findings: Vec<ReportFinding> = report
        .verification
        .as_ref()
        .map(|v| stored(v, &report.load))
        .unwrap_or_default();
    let warnings = [
        (connecting.failed as u64, "connection", "failed to open"),
        (outcome.lost_connections, "connection", "lost under load"),
        (
            outcome.failed,
            "message",
            "failed: refused, or in flight on a lost connection",
        ),
        (
            outcome.unsent,
            "message",
            "never sent, as the server did not keep up",
        ),
        (
            outcome.lag_end.unwrap_or(0),
            "message",
            "not yet stored when the load ended",
        ),
    ];
    findings.extend(
        warnings
            .iter()
            .filter(|(number, ..)| *number > 0)
            .map(|(number, noun, what)| ReportFinding {
                grade: FindingGrade::Warning,
                text: format!("{} {what}", plural(*number, noun)),
            }),
    );
    findings
}

/// Findings about whether every acknowledged message is stored.
pub(super) fn stored(verification: &VerificationResult, load: &LoadSpec) -> Vec<ReportFinding> {
    let VerificationResult {
        devices,
        acknowledged,
        missing,
        surplus,
        ..
    } = *verification;
    let mut findings = Vec::new();
    if missing > 0 {
        let verb = if missing == 1 { "IS" } else { "ARE" };
        let mut text = format!(
            "{} {verb} MISSING of {} acknowledged",
            plural(missing, "MESSAGE").to_uppercase(),
            count(acknowledged)
        );
        if !verification.examples.is_empty() {
            text = format!(
                "{text}, for example of {}",
                printable(&verification.examples.join(", "))
            );
        }
        findings.push(ReportFinding {
            grade: FindingGrade::Bad,
            text,
        });
    } else if acknowledged == 0 {
        findings.push(ReportFinding {
            grade: FindingGrade::Warning,
            text: "no message was acknowledged, so none was looked for".to_owned(),
        });
    } else {
        // A sample of devices proves nothing about the others.
        let of_sample = if devices < load.devices {
            format!(" of the {} looked at", plural(devices, "device"))
        } else {
            String::new()
        };
        let what = match acknowledged {
            1 => format!("the one acknowledged message{of_sample} is stored"),
            _ => format!(
                "all {} acknowledged messages{of_sample} are stored",
                count(acknowledged)
            ),
        };
        findings.push(ReportFinding {
            grade: FindingGrade::Good,
            text: what,
        });
    }
    if surplus > 0 {
        findings.push(ReportFinding {
            grade: FindingGrade::Bad,
            text: format!(
                "{} stored that were never sent",
                plural(surplus, "MESSAGE").to_uppercase()
            ),
        });
    }
    findings
}

/// Formats the protocol: `MQTT QoS 1`.
pub(super) fn protocol(load: &LoadSpec) -> String {
    match load.protocol.as_str() {
        "mqtt" => format!("MQTT QoS {}", load.qos),
        "mqtts" => format!("MQTT QoS {} over TLS", load.qos),
        other => printable(other).to_uppercase(),
    }
}

/// Formats the pace: the scheduled rate, or the messages in flight.
pub(super) fn pace(load: &LoadSpec) -> String {
    match (load.rate, load.in_flight) {
        (Some(asked), _) => format!("open loop, {}", rate(asked)),
        (None, Some(in_flight)) => format!("closed loop, {in_flight} in flight on a connection"),
        (None, None) => "closed loop".to_owned(),
    }
}

/// Formats the payload: `smart-meter, 3 points in 52 bytes`.
pub(super) fn payload(load: &LoadSpec) -> String {
    let mut parts = Vec::new();
    if load.points > 0 {
        parts.push(plural(load.points, "point"));
    }
    if load.payload_bytes > 0.0 {
        parts.push(format!("{} bytes", super::units::figure(load.payload_bytes)));
    }
    let size = parts.join(" in ");
    match (load.payload.is_empty(), size.is_empty()) {
        (true, _) => size,
        (false, true) => printable(&load.payload),
        (false, false) => format!("{}, {size}", printable(&load.payload)),
    }
}

/// The report's word for an acknowledged message.
pub(super) fn acknowledged(load: &LoadSpec) -> &'static str {
    match (load.protocol.as_str(), load.qos) {
        ("mqtt" | "mqtts", 0) => "written",
        _ => "acknowledged",
    }
}

/// Formats the machine: `2 cores, Xeon, 23.4 GiB, Linux 6.1`.
pub(super) fn machine(machine: &MachineSpec) -> String {
    let mut parts = Vec::new();
    if machine.cores > 0 {
        parts.push(plural(machine.cores, "core"));
    }
    if !machine.processor.is_empty() {
        parts.push(printable(&machine.processor));
    }
    if machine.memory_bytes > 0 {
        parts.push(super::units::bytes(machine.memory_bytes as f64));
    }
    if !machine.system.is_empty() {
        parts.push(printable(&machine.system));
    }
    parts.join(", ")
}

/// Formats the connections: `5,000 in 0.24 s, 20,833/s`.
pub(super) fn connections(connecting: &ConnectResult) -> String {
    let opened = format!(
        "{} in {}",
        count(connecting.connected),
        seconds(connecting.seconds)
    );
    match connecting.rate() {
        Some(per_second) => format!("{opened}, {}", rate(per_second)),
        None => opened,
    }
}
