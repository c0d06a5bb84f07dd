//! What is held back, why, and for how long: kept up to date in the metrics and, a few lines at most, told in the log.
//!
//! A watcher looks once a second, on a thread of its own: while the disk does not answer, the committer cannot speak.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::metrics::JournalMetrics;
use crate::options::Options;
use crate::shared::JournalShared;

/// How often the watcher looks.
const TICK: Duration = Duration::from_secs(1);
/// Senders that were held back for a smaller part of a second are not worth a line.
const NOTABLE_DELAY: Duration = Duration::from_millis(100);
/// Without trouble for so long, it is over.
const QUIET_PERIOD: Duration = Duration::from_secs(5);
/// How often the log is told that trouble goes on.
const REMIND_EVERY: Duration = Duration::from_secs(60);
/// Waiting for the disk for longer than this is worth a line.
const SLOW_COMMIT: Duration = Duration::from_secs(2);

/// Why senders are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackpressureCause {
    /// What waits for the disk has reached `max-pending`.
    Disk,
    /// The log has reached `max-bytes`, because consumers lag behind.
    Consumers,
}

impl BackpressureCause {
    pub(crate) const ALL: [Self; 2] = [Self::Disk, Self::Consumers];

    /// The setting that limits what is held, as metrics and log name it.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Self::Disk => "journal.max-pending",
            Self::Consumers => "journal.max-bytes",
        }
    }
}

/// For how long senders were held back, by cause.
#[derive(Debug, Default)]
pub(crate) struct BackpressureTime {
    now: Option<(BackpressureCause, Instant)>,
    totals: [Duration; BackpressureCause::ALL.len()],
}

impl BackpressureTime {
    /// Somebody is told to wait.
    pub(crate) fn begin(&mut self, cause: BackpressureCause) {
        if self.now.is_some_and(|(known, _)| known == cause) {
            return;
        }
        self.end();
        self.now = Some((cause, Instant::now()));
    }

    /// Nobody needs to wait any longer.
    pub(crate) fn end(&mut self) {
        if let Some((cause, since)) = self.now.take()
            && let Some(total) = self.totals.get_mut(cause as usize)
        {
            *total += since.elapsed();
        }
    }

    /// The time so far, by cause, what goes on included.
    pub(crate) fn totals(&self) -> [Duration; BackpressureCause::ALL.len()] {
        BackpressureCause::ALL.map(|cause| {
            let running = self.now.filter(|(known, _)| *known == cause);
            let before = self.totals.get(cause as usize).copied().unwrap_or_default();
            before + running.map_or(Duration::ZERO, |(_, since)| since.elapsed())
        })
    }
}

/// How things stand at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct PressureSample {
    held: [Duration; BackpressureCause::ALL.len()],
    /// For how long the block that is being written has kept its appends waiting.
    commit: Duration,
}

/// Runs until the sender of `stop` is gone.
pub(crate) fn watch(shared: &Arc<JournalShared>, stop: &Receiver<()>) {
    let mut reporter = PressureReporter::default();
    let mut looked = Instant::now();
    while stop.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        let mut sight = update_metrics(shared);
        // Who has stood still himself says nothing about the disk.
        if looked.elapsed() > 2 * TICK {
            sight.commit = Duration::ZERO;
        }
        looked = Instant::now();
        for report in reporter.reports(looked, sight) {
            report.log(shared);
        }
    }
}

/// Brings the metrics up to date.
fn update_metrics(shared: &JournalShared) -> PressureSample {
    let (held, commit) = {
        let pending = shared.append_buffer.lock();
        (pending.backpressure.totals(), pending.committing_since)
    };
    let commit = commit.map_or(Duration::ZERO, |since| since.elapsed());
    let JournalMetrics {
        held_back,
        waiting_senders,
        commit_age,
        ..
    } = &shared.metrics;
    for (counter, held) in held_back.iter().zip(held) {
        counter.absolute(held.as_millis() as u64);
    }
    waiting_senders.set(shared.waiting_senders.load(Ordering::Relaxed) as f64);
    commit_age.set(commit.as_secs_f64());
    PressureSample { held, commit }
}

/// What there is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PressureReport {
    HoldingBack(BackpressureCause, Duration),
    NoLonger(BackpressureCause, Duration),
    DiskIsSilent(Duration),
    DiskAnswers(Duration),
}

impl PressureReport {
    fn log(self, shared: &JournalShared) {
        let waiting_senders = shared.waiting_senders.load(Ordering::Relaxed);
        match self {
            Self::HoldingBack(cause, held) => {
                let setting = cause.setting();
                let limit = limit(&shared.options, cause);
                let why = match cause {
                    BackpressureCause::Disk => "the journal's disk is slower than what they send",
                    BackpressureCause::Consumers => {
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
                let pending_bytes = shared.append_buffer.lock().pending_bytes;
                tracing::warn!(
                    seconds = since.as_secs(),
                    pending_bytes,
                    "the journal's disk does not answer, acknowledgements wait for it"
                );
            }
            Self::DiskAnswers(after) => {
                tracing::info!(seconds = after.as_secs(), "the journal's disk answers again");
            }
        }
    }
}

fn limit(options: &Options, cause: BackpressureCause) -> fieldline_core::options::ByteSize {
    match cause {
        BackpressureCause::Disk => options.max_pending,
        BackpressureCause::Consumers => options.max_bytes,
    }
}

/// Trouble from its first sign until it has been quiet for a while.
#[derive(Debug, Default)]
struct BackpressureEpisode {
    last_report: Option<Instant>,
    last_sign: Option<Instant>,
    /// How much there has been of it.
    amount: Duration,
}

impl BackpressureEpisode {
    /// Whether to tell that it has begun, or goes on.
    fn note_sign(&mut self, now: Instant) -> bool {
        self.last_sign = Some(now);
        let is_due = self.last_report.is_none_or(|told| now - told >= REMIND_EVERY);
        if is_due {
            self.last_report = Some(now);
        }
        is_due
    }

    /// How much there was, once it is over.
    fn finish_if_quiet(&mut self, now: Instant) -> Option<Duration> {
        self.last_sign.filter(|last| now - *last >= QUIET_PERIOD)?;
        Some(std::mem::take(self).amount)
    }
}

/// Decides what is worth a line.
#[derive(Debug, Default)]
struct PressureReporter {
    last: PressureSample,
    holding: [BackpressureEpisode; BackpressureCause::ALL.len()],
    disk_stall: BackpressureEpisode,
}

impl PressureReporter {
    fn reports(&mut self, now: Instant, sight: PressureSample) -> Vec<PressureReport> {
        let mut reports = Vec::new();
        for (at, cause) in BackpressureCause::ALL.into_iter().enumerate() {
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

    /// What is reported in so many seconds, in each of which senders are held back for so long.
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
            sight.held[BackpressureCause::Consumers as usize] += held;
            found.extend(reporter.reports(*from, sight));
        }
        found
    }

    #[test]
    fn trouble_is_told_when_it_begins_once_a_minute_and_when_it_is_over() {
        let (mut reporter, mut now) = (PressureReporter::default(), Instant::now());
        let cause = BackpressureCause::Consumers;
        assert_eq!(
            seconds(&mut reporter, &mut now, 10, Duration::from_millis(50)),
            []
        );
        assert_eq!(
            seconds(&mut reporter, &mut now, 60, SECOND),
            [PressureReport::HoldingBack(cause, SECOND)]
        );
        // Held back on and off is one trouble, not many.
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
        held.begin(BackpressureCause::Disk);
        std::thread::sleep(Duration::from_millis(5));
        held.begin(BackpressureCause::Consumers);
        let [disk, _] = held.totals();
        assert!(disk >= Duration::from_millis(5));
        held.end();
        let totals = held.totals();
        assert_eq!(
            totals[BackpressureCause::Disk as usize],
            disk,
            "it ended when the other one began"
        );
        assert_eq!(held.totals(), totals, "nobody is held back any more");
    }
}
