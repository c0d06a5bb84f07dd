//! Monitors whether storing keeps up with the devices, for the metrics and the log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::{info, warn};

use super::metrics;
use super::producer::of_stored;
use super::service::{ActivityListener, IngestShared};
use crate::overload::{OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource};
use crate::ports::{Offset, Partition, QueueId};

/// How often the lag is measured.
const TICK: Duration = Duration::from_secs(1);
/// A shorter lag is not logged: buffering it is the journal's purpose.
const NOTABLE: Duration = Duration::from_secs(10);
/// How often the log repeats that the lag persists.
const REMIND_EVERY: Duration = Duration::from_secs(60);

/// Monitors the lag until the program stops. It needs its own thread, because it must notice a store or checkpoint that
/// hangs.
pub(super) async fn watch(shared: Arc<IngestShared>, listener: Arc<dyn ActivityListener>) {
    let mut lag = LagMonitor::starting(Instant::now());
    while shared.pause(TICK).await.is_ok() {
        let standing = shared.show_lags();
        let (behind, report) = lag.look(Instant::now(), &standing);
        listener.set_lag(if lag.has_kept_up { behind } else { Duration::MAX });
        ::metrics::gauge!(metrics::BEHIND_SECONDS).set(behind.as_secs_f64());
        let records: u64 = standing.iter().map(|at| at.records).sum();
        match report {
            Some(LagReport::Behind) => {
                let seconds = behind.as_secs();
                warn!(
                    records,
                    seconds,
                    "storing is slower than what devices send, the journal holds what is not stored yet"
                );
            }
            Some(LagReport::CaughtUp) => info!("storing has caught up with what devices send"),
            None => {}
        }
    }
}

/// The progress of one partition.
pub(super) struct PartitionLag {
    pub(super) partition: Partition,
    pub(super) stored: Offset,
    pub(super) end: Offset,
    /// Records not stored yet.
    pub(super) records: u64,
}

/// Tells which queues are behind: what they held at the last look is not stored yet.
pub(super) struct QueueLagSource {
    shared: Arc<IngestShared>,
    /// The ends of the partitions at the last look.
    ends: Mutex<HashMap<Partition, Offset>>,
}

impl QueueLagSource {
    pub(super) fn new(shared: Arc<IngestShared>) -> Self {
        Self {
            shared,
            ends: Mutex::default(),
        }
    }
}

impl OverloadSource for QueueLagSource {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        let standing = self.shared.show_lags();
        let mut ends = self.ends.lock();
        let mut behind: BTreeMap<QueueId, (u64, bool)> = BTreeMap::new();
        for at in &standing {
            let (lag, is_late) = behind.entry(at.partition.queue).or_default();
            *lag += at.records;
            *is_late |= ends.get(&at.partition).is_some_and(|end| at.stored < *end);
        }
        *ends = standing.iter().map(|at| (at.partition, at.end)).collect();
        drop(ends);
        let names = self.shared.names.lock();
        for (queue, (lag, _)) in behind.into_iter().filter(|(_, (_, is_late))| *is_late) {
            let Some(stored) = names.get(&queue) else {
                continue;
            };
            let (tenant, name) = of_stored(stored);
            into.push(OverloadSample {
                kind: OverloadKind::QueueLag,
                scope: if tenant.is_null() {
                    OverloadScope::All
                } else {
                    OverloadScope::Tenant(tenant)
                },
                subject: name.to_owned().into(),
                measure: OverloadMeasure::Level(lag),
                limit: None,
                reason:
                    "Messages wait in the queue, because rule chains and storing are slower than what comes"
                        .into(),
            });
        }
    }
}

/// A change worth logging.
#[derive(Debug, PartialEq, Eq)]
enum LagReport {
    Behind,
    CaughtUp,
}

/// Tracks how long storing has been behind.
struct LagMonitor {
    /// The last time when everything present one measurement earlier was stored.
    kept_up: Instant,
    /// Whether there was such a time; without one, the age of the backlog is unknown.
    has_kept_up: bool,
    /// The ends of the partitions at the last measurement.
    ends: HashMap<Partition, Offset>,
    last_report: Option<Instant>,
}

impl LagMonitor {
    fn starting(now: Instant) -> Self {
        Self {
            kept_up: now,
            has_kept_up: false,
            ends: HashMap::new(),
            last_report: None,
        }
    }

    /// Returns how long storing has been behind by more than one measurement, and the report to log, if any.
    fn look(&mut self, now: Instant, standing: &[PartitionLag]) -> (Duration, Option<LagReport>) {
        let keeps_up = standing.iter().all(|at| {
            let before = self.ends.get(&at.partition);
            at.stored >= at.end || before.is_some_and(|end| at.stored >= *end)
        });
        self.ends = standing.iter().map(|at| (at.partition, at.end)).collect();
        if keeps_up {
            (self.kept_up, self.has_kept_up) = (now, true);
            return (
                Duration::ZERO,
                self.last_report.take().map(|_| LagReport::CaughtUp),
            );
        }
        let behind = now - self.kept_up;
        let is_due = match self.last_report {
            Some(told) => now - told >= REMIND_EVERY,
            None => behind >= NOTABLE,
        };
        if is_due {
            self.last_report = Some(now);
        }
        (behind, is_due.then_some(LagReport::Behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_a_look_ago_and_is_not_stored_is_a_lag() {
        let start = Instant::now();
        let mut lag = LagMonitor::starting(start);
        let partition = Partition {
            queue: QueueId(0),
            index: 0,
        };
        let mut look = |second: u64, stored: u64, end: u64| {
            let standing = PartitionLag {
                partition,
                stored: Offset(stored),
                end: Offset(end),
                records: end - stored,
            };
            let (behind, report) = lag.look(start + Duration::from_secs(second), &[standing]);
            (behind.as_secs(), report)
        };
        assert_eq!(look(1, 90, 100), (1, None));
        assert_eq!(
            look(2, 190, 200),
            (0, None),
            "a little of what has just come is no lag"
        );
        for second in 3..12 {
            assert_eq!(look(second, 190, 300), (second - 2, None));
        }
        assert_eq!(look(12, 250, 400), (10, Some(LagReport::Behind)));
        assert_eq!(look(13, 250, 400), (11, None), "told once a minute");
        assert_eq!(look(72, 260, 500), (70, Some(LagReport::Behind)));
        assert_eq!(look(73, 500, 510), (0, Some(LagReport::CaughtUp)));
        assert_eq!(look(74, 510, 510), (0, None));
    }
}
