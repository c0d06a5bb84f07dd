//! Plot axes with round ticks, and series thinned to what a screen can show.

use super::units::FigureUnit;

/// Larger values are not plausible, and would overflow the arithmetic of axes.
const LARGEST: f64 = 1e18;
/// Approximate number of steps of a linear axis.
const STEPS: f64 = 5.0;
/// Most ticks of a logarithmic axis.
const MOST_LOG_TICKS: i32 = 9;
/// Approximate maximum number of ticks of a time axis.
const TIME_TICKS: f64 = 6.2;
/// Steps of a time axis, in seconds; longer steps are whole days.
const TIME_STEPS: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 10_800.0,
    21_600.0, 43_200.0, 86_400.0,
];

/// The mapping of values to an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisScale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic, in powers of ten; zero is drawn at the lower end.
    Log,
}

/// The range of an axis and its ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlotAxis {
    scale: AxisScale,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<f64>,
}

impl PlotAxis {
    /// Creates an axis from zero to a round value not below `top`.
    pub(crate) fn linear(top: f64, unit: FigureUnit) -> Self {
        let top = if top > 0.0 {
            top
        } else {
            unit.smallest_step().max(1.0)
        };
        let base = unit.base(top);
        let step = (round_step(top / STEPS / base) * base).max(unit.smallest_step());
        let steps = (top / step - 1e-9).ceil().max(1.0);
        Self {
            scale: AxisScale::Linear,
            low: 0.0,
            high: steps * step,
            ticks: (0..=steps as u32).map(|i| f64::from(i) * step).collect(),
        }
    }

    /// Creates an axis from a round value not above `bottom` to one not below `top`; both must be above zero.
    pub(crate) fn log(bottom: f64, top: f64) -> Self {
        let first = round_index(bottom).floor() as i32;
        let last = (round_index(top).ceil() as i32).max(first + 1);
        let ticks: Vec<f64> = if last - first < MOST_LOG_TICKS {
            (first..=last).map(round_value).collect()
        } else {
            let decades: Vec<i32> = (first..=last).filter(|index| index.rem_euclid(3) == 0).collect();
            let every = decades.len().div_ceil(MOST_LOG_TICKS as usize).max(1);
            decades.into_iter().step_by(every).map(round_value).collect()
        };
        Self {
            scale: AxisScale::Log,
            low: round_value(first),
            high: round_value(last),
            ticks,
        }
    }

    /// Creates an axis from zero to exactly `end`, in seconds.
    pub(crate) fn time(end: f64) -> Self {
        let end = if end > 0.0 { end } else { 1.0 };
        let step = TIME_STEPS
            .into_iter()
            .find(|step| end / step <= TIME_TICKS)
            .unwrap_or_else(|| round_step(end / STEPS / 86_400.0) * 86_400.0);
        Self {
            scale: AxisScale::Linear,
            low: 0.0,
            high: end,
            ticks: (0..=(end / step) as u32).map(|i| f64::from(i) * step).collect(),
        }
    }

    /// Returns the position of a value, from 0 at the low end to 1; values outside are moved to the ends.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Log if value <= self.low => 0.0,
            AxisScale::Log => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// Labels the ticks of a time axis, all in the unit of their step.
pub(crate) fn time_labels(ticks: &[f64]) -> Vec<String> {
    let step = ticks.get(1).copied().unwrap_or(1.0);
    let (seconds, unit) = match step {
        step if step < 60.0 => (1.0, "s"),
        step if step < 3_600.0 => (60.0, "min"),
        _ => (3_600.0, "h"),
    };
    ticks
        .iter()
        .map(|tick| format!("{} {unit}", tick / seconds))
        .collect()
}

/// Returns the value if it can be drawn.
pub(crate) fn plausible(value: f64) -> Option<f64> {
    (0.0..LARGEST).contains(&value).then_some(value)
}

/// How several seconds that share a point are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointMerge {
    /// Their mean.
    Mean,
    /// The largest, which must not be lost.
    Max,
}

/// A drawn point, for one or several seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlotPoint {
    /// Time of the first second.
    pub(crate) from: f64,
    /// Time of the last second.
    pub(crate) to: f64,
    /// `None` if none of the seconds has a value.
    pub(crate) value: Option<f64>,
}

/// Thins a series to at most `most` points.
pub(crate) fn thin(times: &[f64], values: &[Option<f64>], merge: PointMerge, most: usize) -> Vec<PlotPoint> {
    let every = times.len().div_ceil(most).max(1);
    let chunks = times.chunks(every).zip(values.chunks(every));
    let point = |(times, values): (&[f64], &[Option<f64>])| {
        let known = values.iter().filter_map(|value| plausible((*value)?));
        let value = match merge {
            PointMerge::Max => known.reduce(f64::max),
            PointMerge::Mean => {
                let (sum, number) = known.fold((0.0, 0_u32), |(sum, number), v| (sum + v, number + 1));
                (number > 0).then(|| sum / f64::from(number))
            }
        };
        Some(PlotPoint {
            from: *times.first()?,
            to: *times.last()?,
            value,
        })
    };
    chunks.filter_map(point).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    round_value((round_index(least) - 1e-9).ceil() as i32)
}

/// The value at an index in the sequence 1, 2, 5, 10, 20, 50 and so on; index 0 is 1.
fn round_value(index: i32) -> f64 {
    let mantissa = match index.rem_euclid(3) {
        0 => 1.0,
        1 => 2.0,
        _ => 5.0,
    };
    // Negative powers of ten are not exact; a quotient of exact numbers is the nearest value there is.
    match index.div_euclid(3) {
        power if power < 0 => mantissa / 10_f64.powi(-power),
        power => mantissa * 10_f64.powi(power),
    }
}

/// Returns the index of a value for [`round_value`]: an integer for a round value, between two integers for others.
fn round_index(value: f64) -> f64 {
    let decade = value.log10().floor();
    let mantissa = value / 10_f64.powf(decade);
    let within = match mantissa {
        m if m <= 1.0 => 0.0,
        m if m < 2.0 => 0.5,
        2.0 => 1.0,
        m if m < 5.0 => 1.5,
        5.0 => 2.0,
        m if m < 10.0 => 2.5,
        _ => 3.0,
    };
    3.0 * decade + within
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    #[test]
    fn linear_axes_end_at_a_round_value_above_the_top() {
        for (top, unit, step, ticks) in [
            (93_800.0, FigureUnit::PerSecond, 20_000.0, 6),
            (100_000.0, FigureUnit::PerSecond, 20_000.0, 6),
            (1.93, FigureUnit::Cores, 0.5, 5),
            (0.3, FigureUnit::Cores, 0.1, 4),
            (3.0, FigureUnit::Messages, 1.0, 4),
            (1.0, FigureUnit::Messages, 1.0, 2),
            (175.0 * MIB, FigureUnit::Bytes, 50.0 * MIB, 5),
            (2_000.0 * MIB, FigureUnit::Bytes, 512.0 * MIB, 5),
            (0.0, FigureUnit::PerSecond, 0.2, 6),
        ] {
            let axis = PlotAxis::linear(top, unit);
            assert_eq!(axis.ticks.len(), ticks, "{top} {axis:?}");
            assert!((axis.ticks[1] - step).abs() <= 1e-9 * step, "{top} {axis:?}");
            assert!(
                axis.high >= top && axis.ticks.last() == Some(&axis.high),
                "{top} {axis:?}"
            );
        }
    }

    #[test]
    fn logarithmic_axes_have_round_ticks_and_few_of_them() {
        assert_eq!(
            PlotAxis::log(38_000.0, 113_000.0).ticks,
            [20_000.0, 50_000.0, 100_000.0, 200_000.0]
        );
        assert_eq!(
            PlotAxis::log(300.0, 2_500_000.0).ticks,
            [1_000.0, 10_000.0, 100_000.0, 1_000_000.0]
        );
        assert_eq!(PlotAxis::log(10.0, 10.0).ticks, [10.0, 20.0]);
        assert!(PlotAxis::log(1.0, 1e17).ticks.len() <= MOST_LOG_TICKS as usize);

        let axis = PlotAxis::log(10.0, 1_000.0);
        assert_eq!(
            [0.0, 10.0, 100.0, 1_000.0, 1e9].map(|v| axis.share(v)),
            [0.0, 0.0, 0.5, 1.0, 1.0]
        );
    }

    #[test]
    fn time_axes_count_in_steps_of_clocks() {
        let ticks = |end: f64| time_labels(&PlotAxis::time(end).ticks);
        assert_eq!(ticks(1.0), ["0 s", "1 s"]);
        assert_eq!(
            ticks(30.2),
            ["0 s", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]
        );
        assert_eq!(
            ticks(300.0),
            ["0 min", "1 min", "2 min", "3 min", "4 min", "5 min"]
        );
        assert_eq!(
            ticks(10_000.0),
            ["0 min", "30 min", "60 min", "90 min", "120 min", "150 min"]
        );
        assert_eq!(ticks(20_000.0), ["0 h", "1 h", "2 h", "3 h", "4 h", "5 h"]);
        assert!(ticks(1e17).len() < 10);
    }

    #[test]
    fn thinning_keeps_peaks_means_and_gaps() {
        let times: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let mut values: Vec<Option<f64>> = vec![Some(1.0); times.len()];
        values[5_000] = Some(18.0);
        values[40..80].fill(None);
        values[90] = Some(f64::NAN);

        let peaks = thin(&times, &values, PointMerge::Max, 600);
        assert!(peaks.len() <= 600);
        assert_eq!(peaks.iter().filter_map(|p| p.value).reduce(f64::max), Some(18.0));
        assert!(peaks.iter().any(|p| p.value.is_none()));
        assert_eq!((peaks[0].from, peaks[0].to), (1.0, 17.0));

        let means = thin(&times, &values, PointMerge::Mean, 600);
        assert_eq!(means.iter().filter_map(|p| p.value).reduce(f64::max), Some(2.0));
        assert_eq!(thin(&[], &[], PointMerge::Mean, 600), []);
    }
}
