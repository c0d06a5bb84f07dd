//! The plots of a report.

use super::axis::{AxisScale, PointMerge, plausible};
use super::figures;
use super::plot::{PlotSeries, ReferenceLine, TimePlot};
use super::units::{FigureUnit, bytes, count, figure, ms, plural, rate};
use super::{LatencySummary, LoadReport, LoadSecond};

/// The seconds of a report that can be plotted.
#[derive(Debug)]
pub(super) struct ReportCharts<'a> {
    report: &'a LoadReport,
    seconds: Vec<&'a LoadSecond>,
    times: Vec<f64>,
}

impl<'a> ReportCharts<'a> {
    pub(super) fn new(report: &'a LoadReport) -> Self {
        let seconds: Vec<&LoadSecond> = report
            .seconds
            .iter()
            .filter(|second| plausible(second.at).is_some())
            .collect();
        let times = seconds.iter().map(|second| second.at).collect();
        Self {
            report,
            seconds,
            times,
        }
    }

    /// All plots, in the order of the page; a plot without values draws nothing.
    pub(super) fn plots(&self) -> Vec<TimePlot<'_>> {
        vec![
            self.rates(),
            self.latencies(),
            self.cores(),
            self.memory(),
            self.lag(),
        ]
    }

    /// The number of seconds per point, more than one if the run has more seconds than a line has points.
    pub(super) fn seconds_a_point(&self) -> usize {
        self.times.len().div_ceil(super::plot::MOST_POINTS)
    }

    fn rates(&self) -> TimePlot<'_> {
        let LoadReport {
            load, outcome, limit, ..
        } = self.report;
        let mut series = vec![
            self.series("sent", "wide-b", PointMerge::Mean, |second| Some(second.sent)),
            self.series(figures::acknowledged(load), "a", PointMerge::Mean, |second| {
                Some(second.acknowledged)
            })
            .with_note(format!("{} on average", rate(outcome.rate))),
        ];
        if self.seconds.iter().any(|second| second.failed > 0.0) {
            let failed = self.series("failed", "c", PointMerge::Mean, |second| Some(second.failed));
            series.insert(0, failed.with_note(format!("{} in all", count(outcome.failed))));
        }
        let mut marks = Vec::new();
        // In open loop, the limit server was given the same rate.
        if let (Some(limit), None) = (limit, load.rate) {
            marks.push(ReferenceLine {
                name: format!("limit {}", rate(limit.rate)),
                value: limit.rate,
            });
        }
        if let Some(asked) = load.rate {
            marks.push(ReferenceLine {
                name: format!("asked {}", rate(asked)),
                value: asked,
            });
        }
        TimePlot {
            marks,
            wide: true,
            ..self.plot("Messages a second", FigureUnit::PerSecond, series)
        }
    }

    fn latencies(&self) -> TimePlot<'_> {
        let total = self.report.outcome.latency;
        let line = |name, style, of: fn(&LatencySummary) -> u64| {
            // Without acknowledgements there is no latency, and zero would look like a good one.
            let known = |latency: &LatencySummary| (latency.count > 0).then(|| of(latency) as f64);
            self.series(name, style, PointMerge::Max, |second| known(&second.latency))
                .with_note(known(&total).map(ms).unwrap_or_default())
        };
        let series = vec![
            line("max", "c", |latency| latency.max),
            line("p99", "b", |latency| latency.p99),
            line("p50", "a", |latency| latency.p50),
        ];
        TimePlot {
            scale: AxisScale::Log,
            wide: true,
            ..self.plot("Latency, on a logarithmic scale", FigureUnit::Micros, series)
        }
    }

    fn cores(&self) -> TimePlot<'_> {
        let mut series = vec![self.series("generator", "b", PointMerge::Mean, |second| {
            second.generator_cores
        })];
        if self.seconds.iter().any(|second| second.server_cores.is_some()) {
            series.push(self.series("server", "a", PointMerge::Mean, |second| second.server_cores));
        }
        for line in &mut series {
            let known: Vec<f64> = line
                .values
                .iter()
                .filter_map(|value| plausible((*value)?))
                .collect();
            if !known.is_empty() {
                line.note = format!(
                    "{} on average",
                    figure(known.iter().sum::<f64>() / known.len() as f64)
                );
            }
        }
        let cores = self.report.machine.cores;
        TimePlot {
            marks: vec![ReferenceLine {
                name: format!("machine {}", plural(cores, "core")),
                value: cores as f64,
            }],
            ..self.plot("Processor time, in cores", FigureUnit::Cores, series)
        }
    }

    fn memory(&self) -> TimePlot<'_> {
        let peak = self.report.outcome.server_memory_peak;
        let note = peak
            .map(|peak| format!("{} at most", bytes(peak as f64)))
            .unwrap_or_default();
        let line = self.series("resident", "a", PointMerge::Max, |second| {
            second.server_memory.map(|bytes| bytes as f64)
        });
        self.plot("Server memory", FigureUnit::Bytes, vec![line.with_note(note)])
    }

    fn lag(&self) -> TimePlot<'_> {
        let peak = self.report.outcome.lag_peak;
        let note = peak
            .map(|peak| format!("{} at most", count(peak)))
            .unwrap_or_default();
        let line = self.series("lag", "d", PointMerge::Max, |second| {
            second.lag.map(|lag| lag as f64)
        });
        self.plot(
            "Lag, in messages",
            FigureUnit::Messages,
            vec![line.with_note(note)],
        )
    }

    fn plot(&self, title: &'static str, unit: FigureUnit, series: Vec<PlotSeries>) -> TimePlot<'_> {
        TimePlot {
            title,
            unit,
            scale: AxisScale::Linear,
            times: &self.times,
            series,
            marks: Vec::new(),
            wide: false,
        }
    }

    fn series(
        &self,
        name: &'static str,
        style: &'static str,
        merge: PointMerge,
        value: impl Fn(&LoadSecond) -> Option<f64>,
    ) -> PlotSeries {
        PlotSeries {
            name,
            note: String::new(),
            style,
            merge,
            values: self.seconds.iter().map(|second| value(second)).collect(),
        }
    }
}
