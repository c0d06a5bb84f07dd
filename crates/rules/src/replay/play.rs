//! Plays messages: on a thread of its own, with the engine's own worker, in replayed time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::clock::Clock;
use fieldline_core::ingest::{Applier, EffectSink, MAIN_QUEUE, Stopping};
use fieldline_core::ports::{RuleEngine, StoreError, StoreResult};
use fieldline_model::message::Message;
use fieldline_model::{RuleChainId, TenantId};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::history::History;
use super::record::Record;
use crate::engine::{Common, QueueHandle};
use crate::stats::LastFailure;
use crate::strategy::Strategy;
use crate::worker::Worker;
use crate::worker::watch::Watch;

/// Messages that one message of the history may lead to.
const MAX_FOLLOW_UPS: usize = 1000;
/// How long after its end a replay is waited for that hangs in something.
const GRACE: Duration = Duration::from_secs(2);

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
pub(super) struct Pushes {
    waiting: Mutex<VecDeque<(TenantId, Message)>>,
    dropped: Mutex<u64>,
}

impl Pushes {
    fn next(&self) -> Option<(TenantId, Message)> {
        self.waiting.lock().pop_front()
    }

    /// Leaves out what waits.
    pub(super) fn drop_all(&self) {
        let dropped = std::mem::take(&mut *self.waiting.lock()).len();
        *self.dropped.lock() += dropped as u64;
    }
}

#[async_trait]
impl RuleEngine for Pushes {
    async fn push(&self, tenant: TenantId, message: Message) -> StoreResult<()> {
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
pub(super) struct Progress {
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
pub(super) struct Play {
    pub(super) common: Arc<Common>,
    pub(super) store: Arc<dyn EffectSink>,
    pub(super) chain: RuleChainId,
    pub(super) history: History,
    pub(super) clock: Arc<ReplayClock>,
    pub(super) pushes: Arc<Pushes>,
    pub(super) record: Arc<Mutex<Record>>,
    pub(super) watch: Arc<Mutex<Watch>>,
    pub(super) progress: Arc<Mutex<Progress>>,
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) end: i64,
    pub(super) max_messages: u64,
    pub(super) max_time: Duration,
}

/// Why a replay has no result.
#[derive(Debug)]
pub(super) enum PlayError {
    /// A store failed.
    Store(StoreError),
    /// Its thread could not be started, or has ended.
    Thread(String),
}

impl From<StoreError> for PlayError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Plays until the end or a limit. Dropping the future ends the replay soon after.
pub(super) async fn play(play: Play) -> Result<(), PlayError> {
    let _guard = Cancel(play.cancelled.clone());
    on_thread("replay", || play.run()).await
}

/// Runs something on a thread of its own: workers stay where they are.
pub(super) async fn on_thread<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<R, PlayError> + Send + 'static,
) -> Result<R, PlayError> {
    let (done, is_done) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let work = move || {
        // Whoever waited may be gone.
        let _ = done.send(work());
    };
    thread
        .spawn(work)
        .map_err(|error| PlayError::Thread(error.to_string()))?;
    let panicked = || PlayError::Thread("the thread of a replay has panicked".to_owned());
    is_done.await.unwrap_or_else(|_| Err(panicked()))
}

/// Ends what runs on another thread once nobody waits for it.
pub(super) struct Cancel(pub(super) Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A runtime for one thread.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, PlayError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| PlayError::Thread(error.to_string()))
}

impl Play {
    fn run(self) -> Result<(), PlayError> {
        let runtime = runtime()?;
        let (progress, patience) = (self.progress.clone(), self.max_time + GRACE);
        let played = runtime.block_on(async { tokio::time::timeout(patience, self.go()).await });
        match played {
            Ok(result) => result,
            Err(_) => {
                progress.lock().truncated_by = Some("time");
                Ok(())
            }
        }
    }

    async fn go(mut self) -> Result<(), PlayError> {
        let queue = QueueHandle::new(MAIN_QUEUE, 1, Strategy::default());
        let mut worker = Worker::new(self.common.clone(), queue);
        worker.watch(self.watch.clone());
        let store = Applier::detached(self.store.clone());
        let deadline = Instant::now() + self.max_time;
        while let Some(msg) = self.history.next().await? {
            let ts = msg.ts;
            if !self.timers(&mut worker, ts, &store, deadline).await {
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
            let played = worker.play(msg, self.chain, &store).await;
            self.note(played);
            self.follow_ups(&mut worker, &store).await;
        }
        if self.timers(&mut worker, self.end - 1, &store, deadline).await {
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
    async fn timers(&self, worker: &mut Worker, until: i64, store: &Applier, deadline: Instant) -> bool {
        while let Some(due) = worker.next_due().filter(|due| *due <= until) {
            if self.is_over(deadline) {
                return false;
            }
            self.clock.forward(due);
            {
                let mut progress = self.progress.lock();
                progress.timers += 1;
                progress.until = progress.until.max(due);
            }
            let played = worker.play_due(store).await;
            self.note(played);
            self.follow_ups(worker, store).await;
        }
        true
    }

    async fn follow_ups(&self, worker: &mut Worker, store: &Applier) {
        for _ in 0..MAX_FOLLOW_UPS {
            let Some((tenant, message)) = self.pushes.next() else {
                break;
            };
            self.progress.lock().follow_ups += 1;
            let played = worker.play_message(tenant, message, store).await;
            self.note(played);
        }
        self.pushes.drop_all();
        self.progress.lock().dropped = *self.pushes.dropped.lock();
    }

    fn note(&self, played: Result<Option<LastFailure>, Stopping>) {
        if let Ok(Some(failure)) = played {
            let mut progress = self.progress.lock();
            progress.failed += 1;
            progress.last_failure = Some(failure);
        }
    }
}
