//! The report of a load of publishers and subscribers as a page, brokers side by side.

use super::report::{BrokerResult, PubSubReport, PubSubSecond};
use crate::report::axis::{AxisScale, PointMerge};
use crate::report::html::{escape, page_of};
use crate::report::plot::{PlotSeries, TimePlot};
use crate::report::units::{FigureUnit, date, ms, rate};

/// The report as an HTML page.
pub(super) fn page(report: &PubSubReport) -> String {
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"about\">{} · {} · version {}</p>\n</header>\n",
        escape(&report.title),
        escape(&date(report.started_at)),
        escape(&report.load),
        escape(&report.version)
    );
    body += &losses(report);
    body += &table(report);
    for broker in &report.brokers {
        body += &plots(broker);
    }
    let json = serde_json::to_string_pretty(report).unwrap_or_default();
    page_of(&report.title, &body, &json)
}

fn losses(report: &PubSubReport) -> String {
    let item = |broker: &BrokerResult| {
        let (class, sign, what) = if broker.has_lost_nothing() {
            ("good", '✓', "everything acknowledged has arrived".to_owned())
        } else {
            let lost = broker.sum(|round| round.lost);
            (
                "bad",
                '✗',
                format!("{lost} acknowledged messages have not arrived"),
            )
        };
        format!(
            "<li class=\"{class}\">{sign} {}: {what}</li>\n",
            escape(&broker.name)
        )
    };
    let items: String = report.brokers.iter().map(item).collect();
    format!("<ul class=\"findings\">\n{items}</ul>\n")
}

fn table(report: &PubSubReport) -> String {
    let figures: Vec<_> = report.brokers.iter().map(BrokerResult::figures).collect();
    let head: String = report
        .brokers
        .iter()
        .map(|broker| format!("<th>{}</th>", escape(&broker.name)))
        .collect();
    let names = figures.first().into_iter().flatten().map(|(name, _)| *name);
    let rows: String = names
        .enumerate()
        .map(|(at, name)| {
            let cells: String = figures
                .iter()
                .filter_map(|broker| broker.get(at))
                .map(|(_, value)| format!("<td>{}</td>", escape(value)))
                .collect();
            format!("<tr><th>{}</th>{cells}</tr>\n", escape(name))
        })
        .collect();
    format!(
        "<h2>All figures</h2>\n<section class=\"card\"><table><thead><tr><th></th>{head}</tr></thead>\n<tbody>\n\
         {rows}</tbody></table></section>\n"
    )
}

/// The plots of the last round of a broker.
fn plots(broker: &BrokerResult) -> String {
    let Some(last) = broker.rounds.last() else {
        return String::new();
    };
    let times: Vec<f64> = last.seconds.iter().map(|second| second.at).collect();
    let series = |name, style, merge, value: fn(&PubSubSecond) -> Option<f64>, note: String| PlotSeries {
        name,
        note,
        style,
        merge,
        values: last.seconds.iter().map(value).collect(),
    };
    let plot = |title, unit, scale, series| TimePlot {
        title,
        unit,
        scale,
        times: &times,
        series,
        marks: Vec::new(),
        wide: true,
    };
    let rates = vec![
        series(
            "acknowledged",
            "b",
            PointMerge::Mean,
            |second| Some(second.acknowledged),
            rate(last.publish_rate),
        ),
        series(
            "delivered",
            "a",
            PointMerge::Mean,
            |second| Some(second.delivered),
            rate(last.delivery_rate),
        ),
    ];
    // Without deliveries there is no latency, and zero would look like a good one.
    let times_of = vec![
        series(
            "p99",
            "b",
            PointMerge::Max,
            |second| (second.delivery.count > 0).then_some(second.delivery.p99 as f64),
            ms(last.delivery.p99 as f64),
        ),
        series(
            "p50",
            "a",
            PointMerge::Max,
            |second| (second.delivery.count > 0).then_some(second.delivery.p50 as f64),
            ms(last.delivery.p50 as f64),
        ),
    ];
    format!(
        "<h2>{}</h2>\n<div class=\"plots\">\n{}{}</div>\n",
        escape(&broker.name),
        plot(
            "Messages a second",
            FigureUnit::PerSecond,
            AxisScale::Linear,
            rates
        )
        .html(),
        plot(
            "Time of delivery, on a logarithmic scale",
            FigureUnit::Micros,
            AxisScale::Log,
            times_of
        )
        .html()
    )
}
