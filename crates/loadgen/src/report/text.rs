//! The report as text for a terminal.

use super::figures;
use super::units::{
    MISSING_FIGURE, bytes, count, date, figure, fixed, plural, printable, rate, ratio, seconds, us,
};
use super::{LatencySummary, LoadReport, LoadSecond};

/// Width of the label column.
const LABELS: usize = 14;

/// Formats the report as aligned lines of at most about 100 columns, for the end of a run; the last line has no line
/// end.
#[must_use]
pub fn summary(report: &LoadReport) -> String {
    let mut lines = Vec::new();
    heading(report, &mut lines);
    lines.push(String::new());
    rows(report, &mut lines);
    blocks(report, &mut lines);
    verdict(report, &mut lines);
    lines.join("\n")
}

/// Formats one second of a load of `duration` seconds as a progress line; processor time is that of the server plus
/// that of the generator. The lines of a run align.
#[must_use]
pub fn progress(second: &LoadSecond, duration: f64) -> String {
    let mut parts = vec![
        format!("{:>5} of {} s", fixed(second.at, 0), fixed(duration, 0)),
        format!("sent {:>9}", rate(second.sent.round())),
        format!("acknowledged {:>9}", rate(second.acknowledged.round())),
    ];
    let (p50, p99) = match second.latency {
        LatencySummary { count: 0, .. } => (MISSING_FIGURE.to_owned(), MISSING_FIGURE.to_owned()),
        LatencySummary { p50, p99, .. } => (millis(p50), millis(p99)),
    };
    parts.push(format!("p50 {p50:>5} p99 {p99:>5} ms"));
    let cores = |known: Option<f64>| known.map_or(MISSING_FIGURE.to_owned(), |cores| fixed(cores, 2));
    match (second.server_cores, second.generator_cores) {
        (None, None) => {}
        (None, generator) => parts.push(format!("cores {:>4}", cores(generator))),
        (server, generator) => parts.push(format!("cores {:>4} + {:>4}", cores(server), cores(generator))),
    }
    if let Some(memory) = second.server_memory {
        parts.push(format!("{:>8}", bytes(memory as f64)));
    }
    if let Some(lag) = second.lag {
        parts.push(format!("lag {}", count(lag)));
    }
    if second.failed > 0.0 {
        parts.push(format!("FAILED {}", rate(second.failed)));
    }
    parts.join("  ")
}

fn heading(report: &LoadReport, lines: &mut Vec<String>) {
    lines.push(printable(&report.title));
    let mut about = vec![date(report.started_at)];
    if !report.version.is_empty() {
        about.push(format!("version {}", printable(&report.version)));
    }
    let machine = figures::machine(&report.machine);
    if !machine.is_empty() {
        about.push(machine);
    }
    lines.push(about.join(" · "));
}

fn rows(report: &LoadReport, lines: &mut Vec<String>) {
    let mut row = |label: &str, text: String| lines.push(format!("{label:LABELS$} {text}"));
    let (load, connecting, outcome) = (&report.load, &report.connecting, &report.outcome);

    let target = printable(&load.target);
    row(
        "load",
        format!(
            "{} to {target}, {}, {}",
            figures::protocol(load),
            figures::pace(load),
            seconds(load.duration_seconds)
        ),
    );
    let mut senders = format!(
        "{}, {}",
        plural(load.devices, "device"),
        plural(load.connections, "connection")
    );
    let payload = figures::payload(load);
    if !payload.is_empty() {
        senders = format!("{senders}; {payload}");
    }
    if load.alarms_per_second > 0.0 {
        senders = format!("{senders}; alarms {}", rate(load.alarms_per_second));
    }
    row("", senders);
    if let Some(made) = &report.provisioning {
        let (created, found) = (count(made.created), count(made.found));
        row(
            "provisioning",
            format!("{created} created, {found} found, in {}", seconds(made.seconds)),
        );
    }
    row(
        "connections",
        format!(
            "{}; {} failed, {} lost under load",
            figures::connections(connecting),
            count(connecting.failed),
            count(outcome.lost_connections)
        ),
    );
    let answered = figures::acknowledged(load);
    row(
        "messages",
        format!(
            "{} sent, {} {answered}, {} failed, {} unsent",
            count(outcome.sent),
            count(outcome.acknowledged),
            count(outcome.failed),
            count(outcome.unsent)
        ),
    );
    row("rate", format!("{} {answered}", rate(outcome.rate)));
    let cpu: Vec<String> = [
        ("server", outcome.server_us_per_message),
        ("generator", outcome.generator_us_per_message),
    ]
    .into_iter()
    .filter_map(|(who, cpu)| Some(format!("{who} {}", us(cpu?))))
    .collect();
    if !cpu.is_empty() {
        row("CPU a message", cpu.join(", "));
    }
    if let Some(peak) = outcome.server_memory_peak {
        row("memory", format!("server {} at most", bytes(peak as f64)));
    }
    let lag: Vec<String> = [(outcome.lag_peak, "at most"), (outcome.lag_end, "at the end")]
        .into_iter()
        .filter_map(|(lag, when)| lag.map(|lag| format!("{} {when}", plural(lag, "message"))))
        .collect();
    if !lag.is_empty() {
        row("lag", lag.join(", "));
    }
}

/// Appends the small tables: latencies, and the comparison with the limit.
fn blocks(report: &LoadReport, lines: &mut Vec<String>) {
    let answer = match figures::acknowledged(&report.load) {
        "written" => "writing",
        _ => "acknowledgement",
    };
    let latencies: Vec<_> = [
        (answer, Some(report.outcome.latency)),
        ("the limit's", report.limit.as_ref().map(|limit| limit.latency)),
        ("until queryable", report.queryable),
    ]
    .into_iter()
    .filter_map(|(name, latency)| Some((name, latency?)))
    .filter(|(_, latency)| latency.count > 0)
    .collect();
    if !latencies.is_empty() {
        let mut table = vec![cells(["latency, ms", "p50", "p90", "p99", "p99.9", "max"])];
        table.extend(latencies.into_iter().map(|(name, l)| {
            let mut row = vec![name.to_owned()];
            row.extend([l.p50, l.p90, l.p99, l.p999, l.max].map(millis));
            row
        }));
        lines.push(String::new());
        lines.extend(aligned(&table));
    }

    let Some(limit) = &report.limit else { return };
    let mut table = vec![cells(["", "measured", "limit", "ratio"])];
    let mut compare = |name: &str, measured: String, limit: String, ratio_to_it: Option<f64>| {
        table.push(vec![
            name.to_owned(),
            measured,
            limit,
            ratio_to_it.map_or(MISSING_FIGURE.to_owned(), ratio),
        ]);
    };
    compare(
        "rate",
        rate(report.outcome.rate),
        rate(limit.rate),
        report.rate_ratio(),
    );
    if let (Some(measured), Some(limit)) = (report.outcome.server_us_per_message, limit.server_us_per_message)
    {
        compare("CPU a message", us(measured), us(limit), report.cpu_ratio());
    }
    if let Some(measured) = report.connecting.rate() {
        compare(
            "connections",
            rate(measured),
            rate(limit.connections_per_second),
            report.connection_ratio(),
        );
    }
    lines.push(String::new());
    lines.push(format!("{:LABELS$} {}", "limit", printable(&limit.what)));
    lines.extend(aligned(&table));
}

fn verdict(report: &LoadReport, lines: &mut Vec<String>) {
    if let Some(verification) = &report.verification {
        lines.push(String::new());
        for finding in figures::stored(verification, &report.load) {
            lines.push(format!("{:LABELS$} {}", "storage", finding.text));
        }
        let devices = plural(verification.devices, "device");
        lines.push(format!(
            "{:LABELS$} {devices} looked at within {} of the load's end",
            "",
            seconds(verification.seconds)
        ));
    }
    if !report.remarks.is_empty() {
        lines.push(String::new());
        lines.extend(
            report
                .remarks
                .iter()
                .map(|remark| format!("Note: {}", printable(remark))),
        );
    }
}

/// Formats microseconds as milliseconds, without the unit.
fn millis(us: u64) -> String {
    figure(us as f64 / 1e3)
}

fn cells<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// Formats a table: the first column left-aligned, the others right-aligned.
fn aligned(table: &[Vec<String>]) -> Vec<String> {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        let widths = table
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column == 0 {
                line += &format!("{cell:width$}", width = (*width).max(LABELS + 1));
            } else {
                line += &format!("  {cell:>width$}", width = (*width).max(8));
            }
        }
        line
    };
    table.iter().map(line).collect()
}
