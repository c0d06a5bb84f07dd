//! The threads of the workers, and their shared state.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fieldline_model::EntityKey;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::{error, warn};

use super::lag::{self, PartitionLag, QueueLagSource};
use super::large_records::LargeRecordLimiter;
use super::processor::ProcessorFactory;
use super::senders::{QueueSenders, WaitingTenants};
use super::worker::IngestWorker;
use super::{Options, QueueProducer, metrics};
use crate::in_flight::InFlightTracker;
use crate::overload::OverloadSource;
use crate::ports::{IngestStore, Journal, JournalError, Offset, Partition, QueueId, StoreError, StoreResult};
use crate::set_aside::SetAsideService;

/// Consumer group of the ingest workers.
pub const GROUP: &str = "ingest";
/// Most bytes that workers of a slow queue take at a time.
const SLOW_BATCH: usize = 256 << 10;
/// How often it is looked whether everything is stored, and how often in a row it has to look so: a record may go from one queue to
/// another while they are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
const IDLE_LOOKS: u32 = 2;
/// Niceness of the threads of a slow queue.
#[cfg(target_os = "linux")]
const SLOW_NICENESS: i32 = 10;

/// Receives the activity of devices from ingest.
pub trait ActivityListener: Send + Sync {
    /// Records that devices were active at times in milliseconds. Subjects other than devices have no activity state.
    fn record_activities(&self, heard: &[(EntityKey, i64)]);
    /// Sets how far ingest is behind: a device must not be considered inactive while its message may still be in the
    /// journal.
    fn set_lag(&self, time: Duration);
}

/// The destinations of the effects of records.
#[derive(Clone)]
pub struct IngestStores {
    /// Time series, latest values and attributes.
    pub store: Arc<dyn IngestStore>,
    /// Receives the activity of devices.
    pub activity: Arc<dyn ActivityListener>,
    /// Creates the processors of the records.
    pub processors: ProcessorFactory,
}

/// The handling of records that crash the process.
#[derive(Clone)]
pub struct CrashHandling {
    /// The work in flight, now and when the previous process died.
    pub in_flight: Arc<InFlightTracker>,
    /// Keeps the records that are not tried again.
    pub set_aside: Option<Arc<SetAsideService>>,
}

impl Default for CrashHandling {
    /// Notes nothing and suspects nothing.
    fn default() -> Self {
        Self {
            in_flight: InFlightTracker::nowhere(),
            set_aside: None,
        }
    }
}

/// The reason why ingest did not start.
#[derive(Debug, thiserror::Error)]
pub enum IngestStartError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store could not be aligned with the journal.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The running workers.
pub struct IngestService {
    threads: Mutex<Vec<(ThreadRole, JoinHandle<()>)>>,
    shared: Arc<IngestShared>,
    max_bytes: usize,
}

/// The role of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadRole {
    /// Moves records.
    Worker,
    /// Maintains the stores.
    Keeper,
}

/// The pace of the workers of a queue.
#[derive(Clone, Copy)]
struct WorkerPace {
    /// Bytes of records taken at a time.
    max_bytes: usize,
    /// Whether all other threads take precedence.
    yields: bool,
}

/// Lets all threads of normal priority take precedence over this one.
fn yield_to_others() {
    // Linux only: elsewhere a priority applies to the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, SLOW_NICENESS) {
        warn!(%error, "cannot lower the priority of a thread");
    }
}

/// State shared by the threads.
pub(super) struct IngestShared {
    pub(super) store: Arc<dyn IngestStore>,
    pub(super) activity: Arc<dyn ActivityListener>,
    journal: Arc<dyn Journal>,
    large: Arc<LargeRecordLimiter>,
    stored: Mutex<HashMap<Partition, Offset>>,
    durable: Mutex<HashMap<Partition, Offset>>,
    /// The end of each partition at the start, until ingest has reached it.
    to_replay: Mutex<HashMap<Partition, Offset>>,
    /// Queues with which the store has been aligned.
    prepared: Mutex<HashSet<QueueId>>,
    queue_senders: QueueSenders,
    /// The names of the queues in the journal.
    pub(super) names: Mutex<HashMap<QueueId, Arc<str>>>,
    pub(super) crashes: CrashHandling,
    checkpointed: Notify,
    failure: Mutex<Option<String>>,
    begun: watch::Sender<bool>,
    stop: watch::Sender<bool>,
}

impl IngestService {
    /// Aligns the store with the journal, for this queue and all others that the producer knows. Then starts the
    /// workers of this queue and the thread that makes checkpoints. Nothing may be appended before.
    pub async fn start(
        uplink: &QueueProducer,
        stores: IngestStores,
        options: &Options,
    ) -> Result<Self, IngestStartError> {
        let service = Self::start_after(CrashHandling::default(), uplink, stores, options).await?;
        service.begin();
        Ok(service)
    }

    /// Like [`Self::start`], after a process that a record may have crashed. The workers wait for
    /// [`begin`](Self::begin).
    pub async fn start_after(
        crashes: CrashHandling,
        uplink: &QueueProducer,
        stores: IngestStores,
        options: &Options,
    ) -> Result<Self, IngestStartError> {
        let service = Self {
            threads: Mutex::default(),
            shared: Arc::new(IngestShared::new(
                uplink,
                stores.store,
                stores.activity.clone(),
                crashes,
            )),
            max_bytes: options.batch.as_usize().max(1),
        };
        // Workers append messages to other queues, so all queues must be aligned before the workers start.
        for queue in uplink.all() {
            service.shared.prepare(&queue).await?;
        }
        service.spawn_workers(
            "ingest",
            uplink,
            stores.processors,
            options.workers,
            service.pace(),
        )?;
        let every = options.checkpoint_interval.0.max(Duration::from_millis(10));
        let checkpoints = make_checkpoints(service.shared.clone(), every);
        service.spawn("checkpoint".to_owned(), ThreadRole::Keeper, || checkpoints)?;
        let lag = lag::watch(service.shared.clone(), stores.activity);
        service.spawn("lag-watch".to_owned(), ThreadRole::Keeper, || lag)?;
        Ok(service)
    }

    /// Lets the workers take records, once those who may have to intervene can do so.
    pub fn begin(&self) {
        self.shared.begun.send_replace(true);
    }

    /// Starts workers of another queue. Nothing may have been appended to it since the program started, unless the
    /// producer knew it when ingest started.
    pub async fn add_queue(
        &self,
        name: &str,
        uplink: &QueueProducer,
        processors: ProcessorFactory,
        workers: u16,
    ) -> Result<(), IngestStartError> {
        self.shared.prepare(uplink).await?;
        self.spawn_workers(name, uplink, processors, workers, self.pace())
    }

    /// Like [`Self::add_queue`], for a queue of slow messages: its workers take fewer records at a time, and use only
    /// processor time that no other thread needs.
    pub async fn add_slow_queue(
        &self,
        name: &str,
        uplink: &QueueProducer,
        processors: ProcessorFactory,
        workers: u16,
    ) -> Result<(), IngestStartError> {
        self.shared.prepare(uplink).await?;
        let pace = WorkerPace {
            max_bytes: self.max_bytes.min(SLOW_BATCH),
            yields: true,
        };
        self.spawn_workers(name, uplink, processors, workers, pace)
    }

    /// Returns whether a queue holds records that are not stored yet, or has state rows.
    ///
    /// # Errors
    /// The store failed.
    pub async fn holds_something(&self, uplink: &QueueProducer) -> StoreResult<bool> {
        let store = &self.shared.store;
        for partition in partitions(uplink) {
            let stored = store.resume_position(partition).await?.unwrap_or_default();
            let end = uplink.journal().end(partition);
            if uplink.journal().records_between(partition, stored, end) > 0
                || !store.states(partition).await?.is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Commits the stored positions of a queue that has no workers and [holds nothing](Self::holds_something), so that
    /// the journal can delete its records. The journal's own positions may be older than the store's; until then it
    /// keeps these records, and all later ones of any queue.
    ///
    /// # Errors
    /// The journal could not commit the positions, or the store failed.
    pub async fn release(&self, uplink: &QueueProducer) -> Result<(), IngestStartError> {
        let consumers = uplink.journal().subscribe(uplink.queue(), GROUP, 1)?;
        for mut consumer in consumers {
            for partition in partitions(uplink) {
                // The stored position may lie beyond the end of a journal that has lost records.
                let stored = self.shared.store.resume_position(partition).await?;
                if let Some(stored) = stored {
                    let end = uplink.journal().end(partition);
                    consumer.commit(partition, stored.min(end)).await?;
                }
            }
        }
        Ok(())
    }

    fn spawn_workers(
        &self,
        name: &str,
        uplink: &QueueProducer,
        processors: ProcessorFactory,
        workers: u16,
        pace: WorkerPace,
    ) -> Result<(), IngestStartError> {
        let consumers = uplink
            .journal()
            .subscribe(uplink.queue(), GROUP, workers.max(1))?;
        for (index, consumer) in consumers.into_iter().enumerate() {
            let (shared, processors) = (self.shared.clone(), processors.clone());
            // The processor is created on the thread that it stays on.
            let work = move || async move {
                if pace.yields {
                    yield_to_others();
                }
                if shared.begun().await.is_ok() {
                    IngestWorker::new(shared, consumer, processors())
                        .run(pace.max_bytes)
                        .await;
                }
            };
            self.spawn(format!("{name}-{index}"), ThreadRole::Worker, work)?;
        }
        Ok(())
    }

    fn pace(&self) -> WorkerPace {
        WorkerPace {
            max_bytes: self.max_bytes,
            yields: false,
        }
    }

    /// Runs a future on its own thread, because stores may block.
    fn spawn<F: Future<Output = ()>>(
        &self,
        name: String,
        role: ThreadRole,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io {
            context: format!("starting thread {name}"),
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(failed)?;
        let guard = PanicGuard {
            shared: self.shared.clone(),
            thread: name.clone(),
        };
        let thread = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                let _guard = guard;
                runtime.block_on(work());
            })
            .map_err(failed)?;
        self.threads.lock().push((role, thread));
        Ok(())
    }

    /// Returns a check whether everything that the journal held at the start is stored.
    pub fn has_replayed(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.to_replay.lock().is_empty()
    }

    /// Returns a function that reports why ingest has failed permanently and the program needs a restart; `None` while
    /// it works.
    pub fn failure(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.failure.lock().clone()
    }

    /// Returns a source that tells which queues are behind.
    pub fn lag_source(&self) -> Arc<dyn OverloadSource> {
        Arc::new(QueueLagSource::new(self.shared.clone()))
    }

    /// Waits until everything in the journal is stored. While it is open: what comes from devices goes through the journal once
    /// more, to the queues of the rule engine.
    pub async fn caught_up(&self) {
        let mut idle_looks = 0;
        while idle_looks < IDLE_LOOKS {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let is_idle = self.shared.show_lags().iter().all(|at| at.records == 0);
            idle_looks = if is_idle { idle_looks + 1 } else { 0 };
        }
    }

    /// Waits for at most `patience` until everything in the (closed) journal is stored, and makes it durable. The rest
    /// is stored after the next start.
    pub fn stop(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        if !*self.shared.begun.borrow() {
            self.shared.stop.send_replace(true);
        }
        let is_working = |service: &Self| {
            let threads = service.threads.lock();
            let mut workers = threads.iter().filter(|(role, _)| *role == ThreadRole::Worker);
            workers.any(|(_, thread)| !thread.is_finished())
        };
        while is_working(self) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.stop.send_replace(true);
        self.shared.crashes.in_flight.end();
        for (_, thread) in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                error!("an ingest thread has panicked");
            }
        }
        // Repeated, now that no thread writes notes any more: one may have done so after the first call.
        self.shared.crashes.in_flight.end();
    }
}

/// Records a failure if the thread panics.
struct PanicGuard {
    shared: Arc<IngestShared>,
    thread: String,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let failure = format!(
                "the thread {} has panicked, the program needs a restart",
                self.thread
            );
            // Stored before it is logged: a panic in a destructor aborts the process.
            *self.shared.failure.lock() = Some(failure.clone());
            error!(%failure, "ingest has failed");
        }
    }
}

fn partitions(uplink: &QueueProducer) -> impl Iterator<Item = Partition> {
    let queue = uplink.queue();
    (0..uplink.journal().partitions(queue)).map(move |index| Partition { queue, index })
}

/// Rewinds the store if it is ahead of the journal. This happens when the journal has lost its end, in a crash of the
/// machine without `fsync` or by hand. The journal gives the lost positions to new records, which must not count as
/// stored.
async fn rewind_what_was_lost(uplink: &QueueProducer, store: &dyn IngestStore) -> StoreResult<()> {
    for partition in partitions(uplink) {
        let end = uplink.journal().end(partition);
        let position = store.resume_position(partition).await?;
        if let Some(position) = position.filter(|position| *position > end) {
            warn!(%partition, stored = position.0, end = end.0, "the journal has lost records that are stored already, their positions go to new ones");
            store.rewind(partition, end).await?;
        }
    }
    Ok(())
}

impl IngestShared {
    pub(super) fn new(
        uplink: &QueueProducer,
        store: Arc<dyn IngestStore>,
        activity: Arc<dyn ActivityListener>,
        crashes: CrashHandling,
    ) -> Self {
        let journal = uplink.journal().clone();
        Self {
            store,
            activity,
            journal,
            large: uplink.large.clone(),
            stored: Mutex::default(),
            durable: Mutex::default(),
            to_replay: Mutex::default(),
            prepared: Mutex::default(),
            queue_senders: uplink.queue_senders.clone(),
            names: Mutex::default(),
            crashes,
            checkpointed: Notify::new(),
            failure: Mutex::default(),
            begun: watch::Sender::new(false),
            stop: watch::Sender::new(false),
        }
    }

    /// Aligns the store with a queue, once, and notes the journal's ends at the start.
    async fn prepare(&self, uplink: &QueueProducer) -> StoreResult<()> {
        if self.prepared.lock().contains(&uplink.queue()) {
            return Ok(());
        }
        rewind_what_was_lost(uplink, self.store.as_ref()).await?;
        let in_hand = &self.crashes.in_flight;
        for partition in partitions(uplink) {
            in_hand.truncate_at(partition, self.journal.end(partition));
            if let Some(stored) = self.store.resume_position(partition).await? {
                in_hand.clear_before(partition, stored);
            }
        }
        let name = uplink.stored_name().clone();
        self.names.lock().insert(uplink.queue(), name);
        self.prepared.lock().insert(uplink.queue());
        let ends = partitions(uplink).map(|partition| (partition, self.journal.end(partition)));
        self.to_replay
            .lock()
            .extend(ends.filter(|(_, end)| *end > Offset(0)));
        Ok(())
    }

    /// Returns the tenants that wait behind the next delivery of a partition.
    pub(super) fn waiting_tenants(&self, partition: Partition) -> WaitingTenants {
        let senders = self.queue_senders.get(partition.queue);
        WaitingTenants {
            changes: senders
                .as_ref()
                .map_or(0, |senders| senders.changes(partition.index)),
            senders,
            partition: partition.index,
        }
    }

    /// The name of a queue in the journal.
    pub(super) fn name_of(&self, queue: QueueId) -> Arc<str> {
        let names = self.names.lock();
        let known = names.get(&queue).cloned();
        known.unwrap_or_else(|| queue.0.to_string().into())
    }

    /// Records that everything before a position is stored.
    pub(super) fn mark_stored(&self, partition: Partition, position: Offset) {
        self.stored.lock().insert(partition, position);
        self.large.release_stored(partition, position);
        let mut to_replay = self.to_replay.lock();
        if to_replay.get(&partition).is_some_and(|end| position >= *end) {
            to_replay.remove(&partition);
        }
    }

    /// Records that another worker takes over a partition.
    pub(super) fn remove_partition(&self, partition: Partition) {
        self.stored.lock().remove(&partition);
        lag_gauge(partition).set(0.0);
    }

    /// Updates the lag gauge of a partition, and returns its progress.
    pub(super) fn show_lag(&self, partition: Partition) -> Option<PartitionLag> {
        let stored = self.stored.lock().get(&partition).copied()?;
        let end = self.journal.end(partition);
        let standing = PartitionLag {
            partition,
            stored,
            end,
            records: self.journal.records_between(partition, stored, end),
        };
        lag_gauge(partition).set(standing.records as f64);
        Some(standing)
    }

    /// Like [`Self::show_lag`], for all partitions.
    pub(super) fn show_lags(&self) -> Vec<PartitionLag> {
        let partitions: Vec<_> = self.stored.lock().keys().copied().collect();
        partitions
            .into_iter()
            .filter_map(|partition| self.show_lag(partition))
            .collect()
    }

    /// Records that everything before these positions is stored durably.
    pub(super) fn note_durable(&self, positions: Vec<(Partition, Offset)>) {
        for (partition, position) in &positions {
            // Done only once durable: records replayed after another crash must be as suspected as before.
            self.crashes.in_flight.clear_before(*partition, *position);
        }
        self.durable.lock().extend(positions);
    }

    /// Notes that a partition ends earlier than it did: the journal has lost what came after.
    pub(super) fn shorten(&self, partition: Partition, end: Offset) {
        for positions in [&self.durable, &self.to_replay] {
            if let Some(position) = positions.lock().get_mut(&partition) {
                *position = end.min(*position);
            }
        }
    }

    /// The durably stored position of a partition, as of the last checkpoint.
    pub(super) fn durable(&self, partition: Partition) -> Option<Offset> {
        self.durable.lock().get(&partition).copied()
    }

    /// Waits for the next checkpoint.
    pub(super) async fn checkpointed(&self) {
        self.checkpointed.notified().await;
    }

    /// Waits until workers may begin.
    async fn begun(&self) -> Result<(), IngestShutdown> {
        let mut begun = self.begun.subscribe();
        tokio::select! {
            // The sender lives in `self`, so waiting never fails.
            _ = begun.wait_for(|begun| *begun) => Ok(()),
            () = self.stopped() => Err(IngestShutdown),
        }
    }

    /// Waits until the program stops.
    pub(super) async fn stopped(&self) {
        // The sender lives in `self`, so waiting never fails.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits before a retry.
    pub(super) async fn pause(&self, time: Duration) -> Result<(), IngestShutdown> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.stopped() => Err(IngestShutdown),
        }
    }
}

/// The program stops: the caller leaves everything as it is.
pub struct IngestShutdown;

async fn make_checkpoints(shared: Arc<IngestShared>, every: Duration) {
    loop {
        let stopping = shared.pause(every).await.is_err();
        match shared.store.checkpoint().await {
            Ok(positions) => {
                shared.note_durable(positions);
                shared.checkpointed.notify_waiters();
            }
            Err(error) => warn!(%error, "checkpoint failed, the journal keeps what it covers"),
        }
        if stopping {
            return;
        }
    }
}

/// The gauge of a partition. Its label names the queue as well: partitions of several queues have the same index.
fn lag_gauge(partition: Partition) -> ::metrics::Gauge {
    ::metrics::gauge!(metrics::LAG_RECORDS, "partition" => partition.to_string())
}
