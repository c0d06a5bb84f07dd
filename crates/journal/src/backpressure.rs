//! Backpressure on senders, with its cause and duration: shown in the metrics and, in a few lines at most, in the log.
//!
//! A watcher checks once a second on its own thread, because the committer cannot report anything while the disk does
//! not respond.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use fieldline_core::options::ByteSize;
use fieldline_core::ports::HoldBackCause;

use crate::metrics::JournalMetrics;
use crate::options::Options;
use crate::shared::JournalShared;

/// How often the watcher checks.
const TICK: Duration = Duration::from_secs(1);
/// A shorter delay of senders within one check interval is not logged.
const NOTABLE_DELAY: Duration = Duration::from_millis(100);
/// An episode ends after this time without trouble.
const QUIET_PERIOD: Duration = Duration::from_secs(5);
/// How often the log repeats that trouble persists.
const REMIND_EVERY: Duration = Duration::from_secs(60);
/// A longer wait for the disk is logged.
const SLOW_COMMIT: Duration = Duration::from_secs(2);

/// How long senders were held back, by cause.
#[derive(Debug, Default)]
pub(crate) struct BackpressureTime {
    now: Option<(HoldBackCause, Instant)>,
    totals: [Duration; HoldBackCause::ALL.len()],
}

impl BackpressureTime {
    /// Records that senders must wait.
    pub(crate) fn begin(&mut self, cause: HoldBackCause) {
        if self.now.is_some_and(|(known, _)| known == cause) {
            return;
        }
        self.end();
        self.now = Some((cause, Instant::now()));
    }

    /// Records that senders no longer need to wait.
    pub(crate) fn end(&mut self) {
        if let Some((cause, since)) = self.now.take()
            && let Some(total) = self.totals.get_mut(cause as usize)
        {
            *total += since.elapsed();
        }
    }

    /// The time so far by cause, including a running wait.
    pub(crate) fn totals(&self) -> [Duration; HoldBackCause::ALL.len()] {
        HoldBackCause::ALL.map(|cause| {
            let running = self.now.filter(|(known, _)| *known == cause);
            let before = self.totals.get(cause as usize).copied().unwrap_or_default();
            before + running.map_or(Duration::ZERO, |(_, since)| since.elapsed())
        })
    }
}

/// How long senders were held back by each cause, and since when the oldest appends that are being written have waited.
pub(crate) type Pressure = ([Duration; HoldBackCause::ALL.len()], Option<Instant>);

/// A journal, as the watcher sees it.
pub(crate) trait WatchedJournal {
    fn metrics(&self) -> &JournalMetrics;
    fn options(&self) -> &Options;
    fn pressure(&self) -> Pressure;
    fn waiting_senders(&self) -> usize;
    fn pending_bytes(&self) -> usize;
    /// What has to take the appends before they are acknowledged, as the log names it.
    fn medium(&self) -> &'static str;
}

impl WatchedJournal for JournalShared {
    fn metrics(&self) -> &JournalMetrics {
        &self.metrics
    }

    fn options(&self) -> &Options {
        &self.options
    }

    fn pressure(&self) -> Pressure {
        let pending = self.append_buffer.lock();
        (pending.backpressure.totals(), pending.committing_since)
    }

    fn waiting_senders(&self) -> usize {
        self.waiting_senders.load(Ordering::Relaxed)
    }

    fn pending_bytes(&self) -> usize {
        self.append_buffer.lock().pending_bytes
    }

    fn medium(&self) -> &'static str {
        "the journal's disk"
    }
}

/// Counts a sender that waits for room.
pub(crate) struct RoomWaiter<'a>(&'a AtomicUsize);

impl<'a> RoomWaiter<'a> {
    pub(crate) fn among(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for RoomWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A measurement of the pressure.
#[derive(Debug, Clone, Copy, Default)]
struct PressureSample {
    held: [Duration; HoldBackCause::ALL.len()],
    /// How long the appends of the present block have waited for its write.
    commit: Duration,
}

/// Runs until the sender of `stop` is dropped.
pub(crate) fn watch<J: WatchedJournal>(shared: &Arc<J>, stop: &Receiver<()>) {
    let mut reporter = PressureReporter::default();
    let mut looked = Instant::now();
    while stop.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let mut sight = update_metrics(shared.as_ref());
        // If the watcher itself was stalled, the measurement says nothing about the disk.
        if looked.elapsed() > 2 * TICK {
            sight.commit = Duration::ZERO;
        }
        looked = Instant::now();
        for report in reporter.reports(looked, sight) {
            report.log(shared.as_ref());
        }
    }
}

/// Updates the metrics, and returns the measurement.
fn update_metrics(shared: &impl WatchedJournal) -> PressureSample {
    let (held, commit) = shared.pressure();
    let commit = commit.map_or(Duration::ZERO, |since| since.elapsed());
    let JournalMetrics {
        held_back,
        waiting_senders,
        commit_age,
        ..
    } = shared.metrics();
    for (counter, held) in held_back.iter().zip(held) {
        counter.absolute(held.as_millis() as u64);
    }
    waiting_senders.set(shared.waiting_senders() as f64);
    commit_age.set(commit.as_secs_f64());
    PressureSample { held, commit }
}

/// A message for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PressureReport {
    HoldingBack(HoldBackCause, Duration),
    NoLonger(HoldBackCause, Duration),
    DiskIsSilent(Duration),
    DiskAnswers(Duration),
}

impl PressureReport {
    fn log(self, shared: &impl WatchedJournal) {
        let waiting_senders = shared.waiting_senders();
        let medium = shared.medium();
        match self {
            Self::HoldingBack(cause, held) => {
                let setting = cause.setting();
                let limit = limit(shared.options(), cause);
                let why = match cause {
                    HoldBackCause::Disk => "the journal's disk is slower than what they send",
                    HoldBackCause::Kafka => "Kafka takes less than what they send",
                    HoldBackCause::Consumers => {
                        "storing is slower than what they send, and the journal has grown to its limit"
                    }
                };
                tracing::warn!(setting, %limit, waiting_senders, held_ms = held.as_millis() as u64, "senders are held back: {why}");
            }
            Self::NoLonger(cause, held) => {
                let setting = cause.setting();
                tracing::info!(
                    setting,
                    held_ms = held.as_millis() as u64,
                    "senders are no longer held back"
                );
            }
            Self::DiskIsSilent(since) => {
                tracing::warn!(
                    seconds = since.as_secs(),
                    pending_bytes = shared.pending_bytes(),
                    "{medium} does not answer, acknowledgements wait for it"
                );
            }
            Self::DiskAnswers(after) => {
                tracing::info!(seconds = after.as_secs(), "{medium} answers again");
            }
        }
    }
}

fn limit(options: &Options, cause: HoldBackCause) -> ByteSize {
    match cause {
        HoldBackCause::Disk | HoldBackCause::Kafka => options.max_pending,
        HoldBackCause::Consumers => options.max_bytes,
    }
}

/// An episode of trouble, from its first sign until a quiet period.
#[derive(Debug, Default)]
struct BackpressureEpisode {
    last_report: Option<Instant>,
    last_sign: Option<Instant>,
    /// The total duration of the trouble.
    amount: Duration,
}

impl BackpressureEpisode {
    /// Notes a sign of trouble; returns whether to log it, because the episode began or a reminder is due.
    fn note_sign(&mut self, now: Instant) -> bool {
        self.last_sign = Some(now);
        let is_due = self.last_report.is_none_or(|told| now - told >= REMIND_EVERY);
        if is_due {
            self.last_report = Some(now);
        }
        is_due
    }

    /// Ends the episode after a quiet period, and returns the total.
    fn finish_if_quiet(&mut self, now: Instant) -> Option<Duration> {
        self.last_sign.filter(|last| now - *last >= QUIET_PERIOD)?;
        Some(std::mem::take(self).amount)
    }
}

/// Decides which changes to log.
#[derive(Debug, Default)]
struct PressureReporter {
    last: PressureSample,
    holding: [BackpressureEpisode; HoldBackCause::ALL.len()],
    disk_stall: BackpressureEpisode,
}

impl PressureReporter {
    fn reports(&mut self, now: Instant, sight: PressureSample) -> Vec<PressureReport> {
        let mut reports = Vec::new();
        for (at, cause) in HoldBackCause::ALL.into_iter().enumerate() {
            let total = |sight: &PressureSample| sight.held.get(at).copied().unwrap_or_default();
            let more = total(&sight).saturating_sub(total(&self.last));
            let Some(episode) = self.holding.get_mut(at) else {
                continue;
            };
            episode.amount += more;
            if more >= NOTABLE_DELAY {
                if episode.note_sign(now) {
                    reports.push(PressureReport::HoldingBack(cause, episode.amount));
                }
            } else if let Some(amount) = episode.finish_if_quiet(now) {
                reports.push(PressureReport::NoLonger(cause, amount));
            } else if episode.last_sign.is_none() {
                episode.amount = Duration::ZERO;
            }
        }
        if sight.commit >= SLOW_COMMIT {
            self.disk_stall.amount = self.disk_stall.amount.max(sight.commit);
            if self.disk_stall.note_sign(now) {
                reports.push(PressureReport::DiskIsSilent(sight.commit));
            }
        } else if let Some(longest) = self.disk_stall.finish_if_quiet(now) {
            reports.push(PressureReport::DiskAnswers(longest));
        }
        self.last = sight;
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the reports of `count` seconds, in each of which senders are held back for `held`.
    fn seconds(
        reporter: &mut PressureReporter,
        from: &mut Instant,
        count: u32,
        held: Duration,
    ) -> Vec<PressureReport> {
        let mut found = Vec::new();
        for _ in 0..count {
            *from += SECOND;
            let mut sight = reporter.last;
            sight.held[HoldBackCause::Consumers as usize] += held;
            found.extend(reporter.reports(*from, sight));
        }
        found
    }

    #[test]
    fn trouble_is_told_when_it_begins_once_a_minute_and_when_it_is_over() {
        let (mut reporter, mut now) = (PressureReporter::default(), Instant::now());
        let cause = HoldBackCause::Consumers;
        assert_eq!(
            seconds(&mut reporter, &mut now, 10, Duration::from_millis(50)),
            []
        );
        assert_eq!(
            seconds(&mut reporter, &mut now, 60, SECOND),
            [PressureReport::HoldingBack(cause, SECOND)]
        );
        // Intermittent waits count as one episode.
        let mut told = Vec::new();
        for _ in 0..15 {
            told.extend(seconds(&mut reporter, &mut now, 1, SECOND));
            told.extend(seconds(&mut reporter, &mut now, 3, Duration::ZERO));
        }
        assert_eq!(told, [PressureReport::HoldingBack(cause, 61 * SECOND)]);
        assert_eq!(
            seconds(&mut reporter, &mut now, 100, Duration::ZERO),
            [PressureReport::NoLonger(cause, 75 * SECOND)]
        );
    }

    #[test]
    fn a_disk_that_does_not_answer_is_told_while_it_does_not() {
        let (mut reporter, start) = (PressureReporter::default(), Instant::now());
        let mut told = Vec::new();
        for second in 1..40 {
            let silent = second < 30;
            let sight = PressureSample {
                commit: if silent { second * SECOND } else { Duration::ZERO },
                ..PressureSample::default()
            };
            told.extend(reporter.reports(start + second * SECOND, sight));
        }
        assert_eq!(
            told,
            [
                PressureReport::DiskIsSilent(2 * SECOND),
                PressureReport::DiskAnswers(29 * SECOND)
            ]
        );
    }

    #[test]
    fn time_is_counted_for_the_cause_that_holds_senders_back() {
        let mut held = BackpressureTime::default();
        held.begin(HoldBackCause::Disk);
        std::thread::sleep(Duration::from_millis(5));
        held.begin(HoldBackCause::Consumers);
        let [disk, ..] = held.totals();
        assert!(disk >= Duration::from_millis(5));
        held.end();
        let totals = held.totals();
        assert_eq!(
            totals[HoldBackCause::Disk as usize],
            disk,
            "it ended when the other one began"
        );
        assert_eq!(held.totals(), totals, "nobody is held back any more");
    }
}
