//! Plays messages: on a thread of its own, with the engine's own worker, in replayed time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::clock::Clock;
use fieldline_core::ingest::{EffectSink, EffectWriter, IngestShutdown, MAIN_QUEUE};
use fieldline_core::ports::{RuleEngine, StoreError, StoreResult};
use fieldline_model::message::QueueMessage;
use fieldline_model::{RuleChainId, TenantId};
use fieldline_rules::engine::{EngineShared, QueueHandle};
use fieldline_rules::stats::LastFailure;
use fieldline_rules::strategy::QueueStrategy;
use fieldline_rules::worker::MessagePlayer;
use fieldline_rules::worker::node_activity::NodeActivityLog;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::history::HistoryReader;
use super::record::ReplayRecord;

/// Messages that one message of the history may lead to.
const MAX_FOLLOW_UPS: usize = 1000;
/// How long after its end a replay is waited for that hangs in something.
const HANG_TIMEOUT: Duration = Duration::from_secs(2);

/// The replayed time.
pub(super) struct ReplayClock(AtomicI64);

impl ReplayClock {
    pub(super) fn at(ms: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(ms)))
    }

    /// Begins anew at a time.
    pub(super) fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::Release);
    }

    pub(super) fn forward(&self, ms: i64) {
        self.0.fetch_max(ms, Ordering::AcqRel);
    }
}

impl Clock for ReplayClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Takes messages for queues: they go through the chains right after the one that has led to them.
#[derive(Default)]
pub(super) struct FollowUpQueue {
    waiting: Mutex<VecDeque<(TenantId, QueueMessage)>>,
    dropped: Mutex<u64>,
}

impl FollowUpQueue {
    fn next(&self) -> Option<(TenantId, QueueMessage)> {
        self.waiting.lock().pop_front()
    }

    /// Leaves out what waits.
    pub(super) fn drop_all(&self) {
        let dropped = std::mem::take(&mut *self.waiting.lock()).len();
        *self.dropped.lock() += dropped as u64;
    }
}

#[async_trait]
impl RuleEngine for FollowUpQueue {
    async fn push(&self, tenant: TenantId, message: QueueMessage) -> StoreResult<()> {
        let mut waiting = self.waiting.lock();
        if waiting.len() < MAX_FOLLOW_UPS {
            waiting.push_back((tenant, message));
        } else {
            *self.dropped.lock() += 1;
        }
        Ok(())
    }
}

/// How far a replay has come.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplayProgress {
    pub(super) messages: u64,
    pub(super) follow_ups: u64,
    pub(super) dropped: u64,
    pub(super) timers: u64,
    pub(super) failed: u64,
    pub(super) last_failure: Option<LastFailure>,
    /// What is before this time is done, milliseconds.
    pub(super) until: i64,
    /// Why it has ended early.
    pub(super) truncated_by: Option<&'static str>,
}

/// What is played, and where it is noted.
pub(super) struct ReplayRun {
    pub(super) shared: Arc<EngineShared>,
    pub(super) store: Arc<dyn EffectSink>,
    pub(super) chain: RuleChainId,
    pub(super) history: HistoryReader,
    pub(super) clock: Arc<ReplayClock>,
    pub(super) pushes: Arc<FollowUpQueue>,
    pub(super) record: Arc<Mutex<ReplayRecord>>,
    pub(super) watch: Arc<Mutex<NodeActivityLog>>,
    pub(super) progress: Arc<Mutex<ReplayProgress>>,
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) end: i64,
    pub(super) max_messages: u64,
    pub(super) max_time: Duration,
}

/// Why a replay has no result.
#[derive(Debug)]
pub(super) enum ReplayError {
    /// A store failed.
    Store(StoreError),
    /// Its thread could not be started, or has ended.
    Thread(String),
}

impl From<StoreError> for ReplayError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Plays until the end or a limit. Dropping the future ends the replay soon after.
pub(super) async fn play(play: ReplayRun) -> Result<(), ReplayError> {
    let _guard = CancelOnDrop(play.cancelled.clone());
    on_thread("replay", || play.run()).await
}

/// Runs something on a thread of its own: workers stay where they are.
pub(super) async fn on_thread<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<R, ReplayError> + Send + 'static,
) -> Result<R, ReplayError> {
    let (done, is_done) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let work = move || {
        // Whoever waited may be gone.
        let _ = done.send(work());
    };
    thread
        .spawn(work)
        .map_err(|error| ReplayError::Thread(error.to_string()))?;
    let panicked = || ReplayError::Thread("the thread of a replay has panicked".to_owned());
    is_done.await.unwrap_or_else(|_| Err(panicked()))
}

/// Ends what runs on another thread once nobody waits for it.
pub(super) struct CancelOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A runtime for one thread.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, ReplayError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| ReplayError::Thread(error.to_string()))
}

impl ReplayRun {
    fn run(self) -> Result<(), ReplayError> {
        let runtime = runtime()?;
        let (progress, patience) = (self.progress.clone(), self.max_time + HANG_TIMEOUT);
        let played = runtime.block_on(async { tokio::time::timeout(patience, self.go()).await });
        match played {
            Ok(result) => result,
            Err(_) => {
                progress.lock().truncated_by = Some("time");
                Ok(())
            }
        }
    }

    async fn go(mut self) -> Result<(), ReplayError> {
        let queue = QueueHandle::new(MAIN_QUEUE, 1, QueueStrategy::default());
        let writer = EffectWriter::detached(self.store.clone());
        let mut player = MessagePlayer::new(self.shared.clone(), queue, self.watch.clone(), writer);
        let deadline = Instant::now() + self.max_time;
        while let Some(msg) = self.history.next().await? {
            let ts = msg.ts;
            if !self.run_timers(&mut player, ts, deadline).await {
                return Ok(());
            }
            self.clock.forward(ts);
            let messages = {
                let mut progress = self.progress.lock();
                progress.until = ts;
                progress.messages
            };
            if messages >= self.max_messages {
                self.progress.lock().truncated_by = Some("messages");
                return Ok(());
            }
            if self.is_over(deadline) {
                return Ok(());
            }
            self.progress.lock().messages += 1;
            let played = player.play(msg, self.chain).await;
            self.note(played);
            self.run_follow_ups(&mut player).await;
        }
        if self.run_timers(&mut player, self.end - 1, deadline).await {
            self.progress.lock().until = self.end;
        }
        Ok(())
    }

    fn is_over(&self, deadline: Instant) -> bool {
        let why = if Instant::now() >= deadline || self.cancelled.load(Ordering::Acquire) {
            "time"
        } else if self.record.lock().is_full() {
            "memory"
        } else {
            return false;
        };
        self.progress.lock().truncated_by = Some(why);
        true
    }

    /// Lets everything come due that is due by a time, in its order. Returns false where the replay is over.
    async fn run_timers(&self, player: &mut MessagePlayer, until: i64, deadline: Instant) -> bool {
        while let Some(due) = player.next_due().filter(|due| *due <= until) {
            if self.is_over(deadline) {
                return false;
            }
            self.clock.forward(due);
            {
                let mut progress = self.progress.lock();
                progress.timers += 1;
                progress.until = progress.until.max(due);
            }
            let played = player.play_due().await;
            self.note(played);
            self.run_follow_ups(player).await;
        }
        true
    }

    async fn run_follow_ups(&self, player: &mut MessagePlayer) {
        for _ in 0..MAX_FOLLOW_UPS {
            let Some((tenant, message)) = self.pushes.next() else {
                break;
            };
            self.progress.lock().follow_ups += 1;
            let played = player.play_message(tenant, message).await;
            self.note(played);
        }
        self.pushes.drop_all();
        self.progress.lock().dropped = *self.pushes.dropped.lock();
    }

    fn note(&self, played: Result<Option<LastFailure>, IngestShutdown>) {
        if let Ok(Some(failure)) = played {
            let mut progress = self.progress.lock();
            progress.failed += 1;
            progress.last_failure = Some(failure);
        }
    }
}
