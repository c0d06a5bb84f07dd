//! Points within a window of time, at most so many.

use std::collections::VecDeque;

/// Points by their times.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RollingWindow {
    points: VecDeque<(i64, f64)>,
}

impl RollingWindow {
    /// Adds a point, in the place of one of the same time. Beyond the limit the oldest go.
    pub(super) fn insert(&mut self, ts: i64, value: f64, limit: usize) {
        // Points mostly come in order.
        let at = match self.points.back() {
            Some((newest, _)) if *newest < ts => self.points.len(),
            _ => self.points.partition_point(|(other, _)| *other < ts),
        };
        match self.points.get_mut(at) {
            Some(point) if point.0 == ts => point.1 = value,
            _ => self.points.insert(at, (ts, value)),
        }
        while self.points.len() > limit {
            self.points.pop_front();
        }
    }

    /// Drops what is older than the window.
    pub(super) fn expire(&mut self, now: i64, window_ms: i64) {
        let oldest = now.saturating_sub(window_ms);
        while self.points.front().is_some_and(|(ts, _)| *ts < oldest) {
            self.points.pop_front();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Time of the newest point.
    pub(super) fn latest_ts(&self) -> Option<i64> {
        self.points.back().map(|(ts, _)| *ts)
    }

    /// All points, oldest first.
    pub(super) fn points(&self) -> impl Iterator<Item = (i64, f64)> + '_ {
        self.points.iter().copied()
    }
}
