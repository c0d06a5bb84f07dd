//! The report as one self-contained HTML page: no scripts, fonts or images.
//!
//! The markup is well-formed XML as well, so that a test can check it with a simple parser.

use super::charts::ReportCharts;
use super::figures::{self, FindingGrade, ReportFinding};
use super::units::{
    MISSING_FIGURE, bytes, count, date, figure, ms, plural, printable, rate, ratio, seconds, us,
};
use super::{LatencySummary, LoadReport, files};

const STYLE: &str = include_str!("page.css");

/// The report as an HTML page.
#[must_use]
pub fn page(report: &LoadReport) -> String {
    let mut html = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n</header>\n",
        escape(&report.title),
        escape(&about(report))
    );
    html += &findings_list(&figures::findings(report));
    html += &tiles(report);
    html += &plots(report);
    html += "<h2>All figures</h2>\n<div class=\"groups\">\n";
    html += &latency_table(report);
    html += &limit_table(report);
    for group in groups(report) {
        html += &group.html();
    }
    html += "</div>\n";
    if !report.remarks.is_empty() {
        let remarks: String = report
            .remarks
            .iter()
            .map(|remark| format!("<li>{}</li>\n", escape(remark)))
            .collect();
        html +=
            &format!("<h2>Remarks</h2>\n<div class=\"card\"><ul class=\"remarks\">\n{remarks}</ul></div>\n");
    }
    page_of(&report.title, &html, &files::to_json(report))
}

/// A whole page with this content, and the report that it shows as JSON.
pub(crate) fn page_of(title: &str, body: &str, json: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{} – load report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <details class=\"card\"><summary>The report as JSON</summary><pre>{}</pre></details>\n\
         </main>\n</body>\n</html>\n",
        escape(title),
        escape_lines(json)
    )
}

/// Escapes text for an element or an attribute.
pub(crate) fn escape(text: &str) -> String {
    escape_lines(&printable(text))
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Escapes text for an element, and keeps its lines. JSON has escaped control characters itself.
fn escape_lines(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn about(report: &LoadReport) -> String {
    let load = &report.load;
    let mut parts = vec![
        date(report.started_at),
        format!("{} to {}", figures::protocol(load), load.target),
        figures::pace(load),
        seconds(load.duration_seconds),
    ];
    if !report.version.is_empty() {
        parts.push(format!("version {}", report.version));
    }
    parts.join(" · ")
}

fn findings_list(findings: &[ReportFinding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let item = |ReportFinding { grade, text }: &ReportFinding| {
        // Colour alone does not reach every reader.
        let (class, sign) = match grade {
            FindingGrade::Good => ("good", '✓'),
            FindingGrade::Warning => ("warning", '!'),
            FindingGrade::Bad => ("bad", '✗'),
        };
        format!(
            "<li class=\"{class}\">{sign} {}</li>\n",
            escape(&capitalised(text))
        )
    };
    format!(
        "<ul class=\"findings\">\n{}</ul>\n",
        findings.iter().map(item).collect::<String>()
    )
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

/// The figures that a reader looks for first.
fn tiles(report: &LoadReport) -> String {
    let outcome = &report.outcome;
    let mut tiles = vec![(
        capitalised(figures::acknowledged(&report.load)),
        rate(outcome.rate),
        // In open loop, a share of the limit would say little: the server was not asked for more.
        match (report.load.rate, report.rate_ratio()) {
            (Some(asked), _) => format!("of {} asked", rate(asked)),
            (None, Some(share)) => format!("{} of the limit", ratio(share)),
            (None, None) => plural(outcome.acknowledged, "message"),
        },
    )];
    let mut tile = |name: &str, value: String, note: String| tiles.push((name.to_owned(), value, note));
    let latency = outcome.latency;
    if latency.count > 0 {
        let note = format!("p50 {}, max {}", ms(latency.p50 as f64), ms(latency.max as f64));
        tile("Latency, p99", ms(latency.p99 as f64), note);
    }
    if let Some(cpu) = outcome.server_us_per_message {
        let note = match report.cpu_ratio() {
            Some(times) => format!("a message, {} × the limit", ratio(times)),
            None => "a message".to_owned(),
        };
        tile("Server CPU", us(cpu), note);
    }
    if let Some(peak) = outcome.server_memory_peak {
        tile(
            "Server memory",
            bytes(peak as f64),
            "resident, at most".to_owned(),
        );
    }
    if let Some(per_second) = report.connecting.rate() {
        let note = match report.connection_ratio() {
            Some(share) => format!("{} of the limit", ratio(share)),
            None => format!(
                "{} in {}",
                count(report.connecting.connected),
                seconds(report.connecting.seconds)
            ),
        };
        tile("Connections", rate(per_second), note);
    }
    if let Some(queryable) = report.queryable.filter(|latency| latency.count > 0) {
        let note = format!("p99; p50 {}", ms(queryable.p50 as f64));
        tile("Until queryable", ms(queryable.p99 as f64), note);
    }
    let html = tiles.iter().map(|(name, value, note)| {
        format!(
            "<div class=\"card\"><p class=\"name\">{}</p><p class=\"value\">{value}</p><small>{note}</small></div>\n",
            escape(name)
        )
    });
    format!(
        "<section class=\"tiles\">\n{}</section>\n",
        html.collect::<String>()
    )
}

fn plots(report: &LoadReport) -> String {
    let charts = ReportCharts::new(report);
    let plots: String = charts.plots().iter().map(|plot| plot.html()).collect();
    let body = if plots.is_empty() {
        "<p class=\"note\">The load ended before a second of it was measured.</p>\n".to_owned()
    } else {
        format!("<div class=\"plots\">\n{plots}</div>\n")
    };
    let merged = match charts.seconds_a_point() {
        0 | 1 => String::new(),
        several => format!(
            "<p class=\"note\">A point stands for {several} entries: the mean of rates and processor times, the maximum of \
             the others.</p>\n"
        ),
    };
    format!("<h2>Over time</h2>\n{body}{merged}")
}

fn latency_table(report: &LoadReport) -> String {
    let answer = figures::acknowledged(&report.load);
    let latencies: Vec<(&str, LatencySummary)> = [
        (answer, Some(report.outcome.latency)),
        ("the limit’s", report.limit.as_ref().map(|limit| limit.latency)),
        ("queryable", report.queryable),
    ]
    .into_iter()
    .filter_map(|(name, latency)| Some((name, latency?)))
    .filter(|(_, latency)| latency.count > 0)
    .collect();
    let ms = |us: u64| figure(us as f64 / 1e3);
    let line = |name: &'static str, cell: &dyn Fn(&LatencySummary) -> String| {
        let cells = latencies.iter().map(|(_, latency)| cell(latency));
        (name, cells.collect::<Vec<_>>())
    };
    let rows = [
        line("count", &|latency| short_count(latency.count)),
        line("mean", &|latency| figure(latency.mean / 1e3)),
        line("p50", &|latency| ms(latency.p50)),
        line("p90", &|latency| ms(latency.p90)),
        line("p99", &|latency| ms(latency.p99)),
        line("p99.9", &|latency| ms(latency.p999)),
        line("max", &|latency| ms(latency.max)),
    ];
    let head: Vec<&str> = latencies.iter().map(|(name, _)| *name).collect();
    table("Latency, in ms", &head, &rows)
}

/// Formats a large number briefly, so that others fit beside it on a phone.
fn short_count(number: u64) -> String {
    match number {
        0..10_000_000 => count(number),
        _ => figure(number as f64 / 1e6) + "M",
    }
}

fn limit_table(report: &LoadReport) -> String {
    let Some(limit) = &report.limit else {
        return String::new();
    };
    let outcome = &report.outcome;
    let mut rows = Vec::new();
    let mut row = |name, measured: Option<String>, limit: Option<String>, ratio_to_it: Option<f64>| {
        if let (Some(measured), Some(limit)) = (measured, limit) {
            rows.push((
                name,
                vec![
                    measured,
                    limit,
                    ratio_to_it.map_or(MISSING_FIGURE.to_owned(), ratio),
                ],
            ));
        }
    };
    row(
        "Messages",
        Some(rate(outcome.rate)),
        Some(rate(limit.rate)),
        report.rate_ratio(),
    );
    row(
        "Server CPU a message",
        outcome.server_us_per_message.map(us),
        limit.server_us_per_message.map(us),
        report.cpu_ratio(),
    );
    row(
        "Connections",
        report.connecting.rate().map(rate),
        Some(rate(limit.connections_per_second)),
        report.connection_ratio(),
    );
    let caption = format!("Against the limit: {}", limit.what);
    table(&caption, &["measured", "limit", "ratio"], &rows)
}

/// A table of several columns; empty if there is no column.
fn table(caption: &str, head: &[&str], rows: &[(&str, Vec<String>)]) -> String {
    if head.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<div class=\"card columns\"><table><caption>{}</caption>\n<tr><td></td>",
        escape(caption)
    );
    html.extend(head.iter().map(|name| format!("<th scope=\"col\">{name}</th>")));
    html += "</tr>\n";
    for (name, cells) in rows {
        html += &format!("<tr><th scope=\"row\">{name}</th>");
        html.extend(cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))));
        html += "</tr>\n";
    }
    html + "</table></div>\n"
}

/// A table of names and figures.
struct FigureTable {
    title: &'static str,
    rows: Vec<(&'static str, String)>,
}

impl FigureTable {
    const fn new(title: &'static str) -> Self {
        Self {
            title,
            rows: Vec::new(),
        }
    }

    fn row(mut self, name: &'static str, value: impl Into<Option<String>>) -> Self {
        if let Some(value) = value.into().filter(|value| !value.is_empty()) {
            self.rows.push((name, value));
        }
        self
    }

    fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let row = |(name, value): &(&str, String)| {
            format!(
                "<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n",
                escape(value)
            )
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"card\"><table><caption>{}</caption>\n{rows}</table></div>\n",
            self.title
        )
    }
}

fn groups(report: &LoadReport) -> Vec<FigureTable> {
    let LoadReport {
        load,
        connecting,
        outcome,
        machine,
        ..
    } = report;
    let above_zero = |value: f64, text: String| (value > 0.0).then_some(text);
    let made = report.provisioning.as_ref();
    let mut groups = vec![
        FigureTable::new("Load")
            .row("Protocol", figures::protocol(load))
            .row("Target", load.target.clone())
            .row("Devices", count(load.devices))
            .row("Connections", count(load.connections))
            .row("Pace", figures::pace(load))
            .row("Payload", figures::payload(load))
            .row(
                "Alarms",
                above_zero(load.alarms_per_second, rate(load.alarms_per_second)),
            )
            .row("Duration", seconds(load.duration_seconds))
            .row("Devices created", made.map(|made| count(made.created)))
            .row("Devices found", made.map(|made| count(made.found)))
            .row("Provisioning took", made.map(|made| seconds(made.seconds))),
        FigureTable::new("Messages")
            .row("Sent", count(outcome.sent))
            .row(
                match figures::acknowledged(load) {
                    "written" => "Written",
                    _ => "Acknowledged",
                },
                count(outcome.acknowledged),
            )
            .row("Failed", count(outcome.failed))
            .row("Unsent", count(outcome.unsent))
            .row("Rate", rate(outcome.rate)),
        FigureTable::new("Connections")
            .row("Opened", count(connecting.connected))
            .row("Failed to open", count(connecting.failed))
            .row("Opening took", seconds(connecting.seconds))
            .row("Rate", connecting.rate().map(rate))
            .row("Lost under load", count(outcome.lost_connections)),
        FigureTable::new("Server and generator")
            .row("Server CPU a message", outcome.server_us_per_message.map(us))
            .row(
                "Generator CPU a message",
                outcome.generator_us_per_message.map(us),
            )
            .row(
                "Server memory, at most",
                outcome.server_memory_peak.map(|peak| bytes(peak as f64)),
            )
            .row("Waiting to be stored, at most", outcome.lag_peak.map(count))
            .row("Waiting at the end", outcome.lag_end.map(count)),
    ];
    if let Some(verification) = &report.verification {
        groups.push(
            FigureTable::new("Verification")
                .row("Devices looked at", count(verification.devices))
                .row("Acknowledged to them", count(verification.acknowledged))
                .row("Stored", count(verification.stored))
                .row("Missing", count(verification.missing))
                .row("Stored but never sent", count(verification.surplus))
                .row("Missing from", verification.examples.join(", "))
                .row("Looked at within", seconds(verification.seconds)),
        );
    }
    groups.push(
        FigureTable::new("Machine")
            .row("Processor", machine.processor.clone())
            .row("Cores", above_zero(machine.cores as f64, count(machine.cores)))
            .row(
                "Memory",
                above_zero(machine.memory_bytes as f64, bytes(machine.memory_bytes as f64)),
            )
            .row("System", machine.system.clone()),
    );
    groups
}
