//! Plots over time as SVG inside HTML.
//!
//! Heights are in pixels, widths in per cent: the lines are drawn in a nested SVG that is stretched to the width of the
//! page, while text and axes around it are not. A plot is thus as readable on a phone as on a desktop, without a
//! script.

use super::axis::{AxisScale, PlotAxis, PlotPoint, PointMerge, plausible, thin, time_labels};
use super::html::escape;
use super::units::{FigureUnit, seconds};

/// Most points of a line; a screen does not show more.
pub(crate) const MOST_POINTS: usize = 600;
/// Most columns that show their values under the pointer.
const MOST_TOOLTIPS: usize = 150;
/// Height of the plot area, in pixels.
const HEIGHT: f64 = 210.0;
/// Width of the stretched SVG, in its own units.
const WIDTH: f64 = 1_000.0;
/// Smallest distance of the labels at the ends of lines, in pixels.
const LABEL_HEIGHT: f64 = 15.0;
/// A reference line is left out if it would push the highest value below this share of the height.
const LOWEST_PEAK: f64 = 0.4;

/// A line of a plot.
#[derive(Debug)]
pub(crate) struct PlotSeries {
    /// The name, in the legend and at the end of the line.
    pub(crate) name: &'static str,
    /// Additional text in the legend.
    pub(crate) note: String,
    /// Its CSS class.
    pub(crate) style: &'static str,
    pub(crate) merge: PointMerge,
    /// One value for each time of the plot, or `None`.
    pub(crate) values: Vec<Option<f64>>,
}

impl PlotSeries {
    /// Adds a note to the legend.
    pub(crate) fn with_note(self, note: String) -> Self {
        Self { note, ..self }
    }
}

/// A constant value to compare the lines with.
#[derive(Debug)]
pub(crate) struct ReferenceLine {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// A plot over time.
#[derive(Debug)]
pub(crate) struct TimePlot<'a> {
    pub(crate) title: &'static str,
    pub(crate) unit: FigureUnit,
    pub(crate) scale: AxisScale,
    /// Seconds since the load began.
    pub(crate) times: &'a [f64],
    /// In the order of drawing: the last is on top, and comes first in the legend.
    pub(crate) series: Vec<PlotSeries>,
    /// Drawn on linear scales only.
    pub(crate) marks: Vec<ReferenceLine>,
    /// Whether the plot takes the whole width of the page.
    pub(crate) wide: bool,
}

impl TimePlot<'_> {
    /// Renders the figure with title, legend and SVG; empty if no line has a value.
    pub(crate) fn html(&self) -> String {
        let Some((axis, marks)) = self.axis_and_marks() else {
            return String::new();
        };
        let clock = PlotAxis::time(self.times.iter().copied().fold(0.0, f64::max));
        let labelled = self.series.len() > 1;
        let mut classes = "card plot".to_owned();
        if self.wide {
            classes += " wide";
        }
        if labelled {
            classes += " labelled";
        }

        let mut html = format!(
            "<figure class=\"{classes}\"><figcaption><h3>{}</h3>",
            escape(self.title)
        );
        html += &self.legend();
        html += "</figcaption>\n";
        html += &format!(
            "<svg class=\"axes\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.in_words())
        );
        html += &self.grid(&axis, &clock);
        html += &mark_lines(&marks, &axis);
        html += &format!(
            "<svg width=\"100%\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             preserveAspectRatio=\"none\" overflow=\"visible\">\n"
        );
        let mut ends = Vec::new();
        for series in &self.series {
            let points = thin(self.times, &series.values, series.merge, MOST_POINTS);
            html += &self.line(series, &points, &axis, &clock);
            if let Some(last) = points.iter().rev().find_map(|point| point.value) {
                ends.push((y_of(&axis, last), series));
            }
        }
        html += &self.tooltips(&clock);
        html += "</svg>\n";
        html += &mark_labels(&marks, &axis);
        if labelled {
            for (y, series) in spread(ends) {
                let PlotSeries { style, name, .. } = series;
                html += &format!(
                    "<text class=\"end {style}\" x=\"100%\" dx=\"8\" y=\"{:.1}\">{name}</text>\n",
                    y + 4.0
                );
            }
        }
        html + "</svg></figure>\n"
    }

    fn axis_and_marks(&self) -> Option<(PlotAxis, Vec<&ReferenceLine>)> {
        let values = || {
            self.series
                .iter()
                .flat_map(|s| &s.values)
                .filter_map(|value| plausible((*value)?))
        };
        let top = values().reduce(f64::max)?;
        if self.scale == AxisScale::Log {
            let lowest = values()
                .filter(|value| *value > 0.0)
                .reduce(f64::min)
                .unwrap_or(1.0);
            return Some((PlotAxis::log(lowest, top.max(lowest)), Vec::new()));
        }
        let fits = |mark: &&ReferenceLine| {
            plausible(mark.value).is_some_and(|value| value > 0.0 && value * LOWEST_PEAK <= top)
        };
        let marks: Vec<&ReferenceLine> = self.marks.iter().filter(fits).collect();
        let top = marks.iter().fold(top, |top, mark| top.max(mark.value));
        Some((PlotAxis::linear(top, self.unit), marks))
    }

    fn legend(&self) -> String {
        let mut html = "<ul class=\"legend\">".to_owned();
        for PlotSeries {
            name, note, style, ..
        } in self.series.iter().rev()
        {
            html += &format!(
                "<li><svg width=\"22\" height=\"10\" aria-hidden=\"true\">\
                 <line class=\"line {style}\" x1=\"2\" x2=\"20\" y1=\"5\" y2=\"5\"/></svg>{name}"
            );
            if !note.is_empty() {
                html += &format!(" <small>{}</small>", escape(note));
            }
            html += "</li>";
        }
        html + "</ul>"
    }

    /// A description for readers who do not see the picture.
    fn in_words(&self) -> String {
        let lines = self
            .series
            .iter()
            .rev()
            .map(|series| format!("{} {}", series.name, series.note));
        format!("{}. {}", self.title, lines.collect::<Vec<_>>().join("; "))
    }

    fn grid(&self, axis: &PlotAxis, clock: &PlotAxis) -> String {
        let mut html = String::new();
        for tick in &axis.ticks {
            let y = y_of(axis, *tick);
            let text_y = y + 4.0;
            let label = self.unit.tick(*tick);
            html += &format!(
                "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"-8\" y=\"{text_y:.1}\" text-anchor=\"end\">{label}</text>\n"
            );
        }
        let (tick_end, text_y) = (HEIGHT + 5.0, HEIGHT + 20.0);
        for (i, (tick, label)) in clock.ticks.iter().zip(time_labels(&clock.ticks)).enumerate() {
            let share = clock.share(*tick) * 100.0;
            // If there are many labels, a phone has room for every other one.
            let class = if i % 2 == 1 && clock.ticks.len() > 4 {
                " class=\"spare\""
            } else {
                ""
            };
            let anchor = if share > 97.0 { "end" } else { "middle" };
            html += &format!(
                "<line class=\"tick\" x1=\"{share:.2}%\" x2=\"{share:.2}%\" y1=\"{HEIGHT}\" y2=\"{tick_end}\"/>\
                 <text{class} x=\"{share:.2}%\" y=\"{text_y}\" text-anchor=\"{anchor}\">{label}</text>\n"
            );
        }
        html
    }

    /// Renders the line with its gaps, a dot for a single point, and the area below it if it is the only line.
    fn line(&self, series: &PlotSeries, points: &[PlotPoint], axis: &PlotAxis, clock: &PlotAxis) -> String {
        let (mut line, mut dots, mut area) = (String::new(), String::new(), String::new());
        for run in points.split(|point| point.value.is_none()) {
            let mut places = run
                .iter()
                .filter_map(|point| Some((x_of(clock, point.to), y_of(axis, point.value?))));
            let Some((first_x, first_y)) = places.next() else {
                continue;
            };
            let mut last_x = first_x;
            let mut onwards = String::new();
            for (x, y) in places {
                onwards += &format!("L{x:.1} {y:.1}");
                last_x = x;
            }
            if onwards.is_empty() {
                // A line of almost no length with round ends is a dot, which stretching does not deform.
                dots += &format!("M{first_x:.1} {first_y:.1}h0.01");
            } else {
                line += &format!("M{first_x:.1} {first_y:.1}{onwards}");
                area += &format!("M{first_x:.1} {HEIGHT}V{first_y:.1}{onwards}H{last_x:.1}V{HEIGHT}Z");
            }
        }
        let PlotSeries { style, name, .. } = series;
        let mut html = String::new();
        if self.series.len() == 1 && !area.is_empty() {
            html += &format!("<path class=\"fill {style}\" d=\"{area}\"/>\n");
        }
        for (class, path) in [("line", line), ("dot", dots)] {
            if !path.is_empty() {
                html +=
                    &format!("<path class=\"{class} {style}\" d=\"{path}\"><title>{name}</title></path>\n");
            }
        }
        html
    }

    /// Renders columns that show time and values under the pointer.
    fn tooltips(&self, clock: &PlotAxis) -> String {
        let mut lines = Vec::new();
        for series in self.series.iter().rev() {
            lines.push((
                series,
                thin(self.times, &series.values, series.merge, MOST_TOOLTIPS),
            ));
        }
        let Some((_, columns)) = lines.first() else {
            return String::new();
        };
        let mut html = String::new();
        let mut left = 0.0;
        for (i, column) in columns.iter().enumerate() {
            let right = columns
                .get(i + 1)
                .map_or(WIDTH, |next| x_of(clock, f64::midpoint(column.to, next.to)));
            let mut text = if column.from < column.to {
                format!("{} to {}", seconds(column.from), seconds(column.to))
            } else {
                seconds(column.to)
            };
            for (series, points) in &lines {
                if let Some(value) = points.get(i).and_then(|point| point.value) {
                    text += &format!("\n{} {}", series.name, self.unit.value(value));
                }
            }
            let width = (right - left).max(0.0);
            html += &format!(
                "<rect class=\"tip\" x=\"{left:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{HEIGHT}\">\
                 <title>{text}</title></rect>\n"
            );
            left = right.max(left);
        }
        html
    }
}

fn mark_lines(marks: &[&ReferenceLine], axis: &PlotAxis) -> String {
    let line = |mark: &&ReferenceLine| {
        let y = y_of(axis, mark.value);
        format!("<line class=\"mark\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n")
    };
    marks.iter().map(line).collect()
}

fn mark_labels(marks: &[&ReferenceLine], axis: &PlotAxis) -> String {
    let mut html = String::new();
    for (i, mark) in marks.iter().enumerate() {
        let y = y_of(axis, mark.value);
        // Below its line if there is no room above; at alternating ends, so that two labels do not cover each other.
        let text_y = if y < 16.0 { y + 14.0 } else { y - 5.0 };
        let (x, dx, anchor) = if i % 2 == 0 {
            ("100%", -6, "end")
        } else {
            ("0", 6, "start")
        };
        html += &format!(
            "<text class=\"halo\" x=\"{x}\" dx=\"{dx}\" y=\"{text_y:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            escape(&mark.name)
        );
    }
    html
}

fn x_of(clock: &PlotAxis, time: f64) -> f64 {
    clock.share(time) * WIDTH
}

fn y_of(axis: &PlotAxis, value: f64) -> f64 {
    (1.0 - axis.share(value)) * HEIGHT
}

/// Moves overlapping labels apart, and keeps them inside the plot.
fn spread<T>(mut labels: Vec<(f64, T)>) -> Vec<(f64, T)> {
    labels.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut least = 0.0;
    for (y, _) in &mut labels {
        *y = y.max(least);
        least = *y + LABEL_HEIGHT;
    }
    let mut most = HEIGHT;
    for (y, _) in labels.iter_mut().rev() {
        *y = y.min(most);
        most = *y - LABEL_HEIGHT;
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot<'a>(times: &'a [f64], values: Vec<Option<f64>>, marks: Vec<ReferenceLine>) -> TimePlot<'a> {
        TimePlot {
            title: "Rate",
            unit: FigureUnit::PerSecond,
            scale: AxisScale::Linear,
            times,
            series: vec![PlotSeries {
                name: "sent",
                note: String::new(),
                style: "a",
                merge: PointMerge::Mean,
                values,
            }],
            marks,
            wide: false,
        }
    }

    #[test]
    fn missing_values_leave_gaps_and_single_ones_are_dots() {
        let times: Vec<f64> = (1..=8).map(f64::from).collect();
        let values = [1.0, 2.0, f64::NAN, 3.0, f64::INFINITY, 4.0, 5.0, 6.0]
            .map(Some)
            .to_vec();
        let html = plot(&times, values, Vec::new()).html();
        let line = html
            .lines()
            .find(|line| line.starts_with("<path class=\"line a\""))
            .expect("a line");
        assert_eq!(line.matches('M').count(), 2, "{line}");
        let dots = html
            .lines()
            .find(|line| line.starts_with("<path class=\"dot a\""))
            .expect("a dot");
        assert_eq!(dots.matches('M').count(), 1, "{dots}");
        assert!(html.contains("<title>6 s\nsent 4/s</title>"), "{html}");
        assert!(html.contains("<title>3 s</title>"), "{html}");
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }

    #[test]
    fn a_plot_without_values_is_left_out() {
        assert_eq!(
            plot(&[1.0, 2.0], vec![None, Some(f64::NAN)], Vec::new()).html(),
            ""
        );
        assert_eq!(plot(&[], Vec::new(), Vec::new()).html(), "");
    }

    #[test]
    fn marks_are_drawn_unless_they_dwarf_the_lines() {
        let mark = |name: &str, value| ReferenceLine {
            name: name.to_owned(),
            value,
        };
        let marks = vec![
            mark("near & dear", 150.0),
            mark("far", 1_000.0),
            mark("none", f64::NAN),
        ];
        let html = plot(&[1.0, 2.0], vec![Some(90.0), Some(100.0)], marks).html();
        assert_eq!(html.matches("class=\"mark\"").count(), 1, "{html}");
        assert!(html.contains(">near &amp; dear</text>"), "{html}");
    }

    #[test]
    fn labels_keep_apart_and_inside() {
        let placed = spread(vec![(205.0, "c"), (200.0, "b"), (3.0, "a"), (HEIGHT, "d")]);
        assert_eq!(placed.iter().map(|(_, name)| *name).collect::<String>(), "abcd");
        assert!(
            placed
                .windows(2)
                .all(|pair| pair[1].0 - pair[0].0 >= LABEL_HEIGHT),
            "{placed:?}"
        );
        assert!(
            placed.iter().all(|(y, _)| (0.0..=HEIGHT).contains(y)),
            "{placed:?}"
        );
    }
}
