//! The workers' threads, and what they share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fieldline_model::Subject;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::{error, warn};

use super::lag::{self, Standing};
use super::processor::Processors;
use super::worker::Worker;
use super::{Options, Uplink, metrics};
use crate::activity::ActivityTracker;
use crate::ports::{IngestStore, Journal, JournalError, Offset, Partition, QueueId, StoreError, StoreResult};

/// Consumer group of the ingest workers.
const GROUP: &str = "ingest";

/// Where the effects of records go.
#[derive(Clone)]
pub struct IngestStores {
    /// Time series, latest values and attributes.
    pub store: Arc<dyn IngestStore>,
    /// Who hears that devices are alive.
    pub activity: Arc<ActivityTracker>,
    /// What happens to the records on their way.
    pub processors: Processors,
}

/// Why ingest did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store cannot be brought in line with the journal.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The running workers.
pub struct IngestService {
    threads: Mutex<Vec<(Role, JoinHandle<()>)>>,
    shared: Arc<Shared>,
    max_bytes: usize,
}

/// What a thread is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It moves records.
    Worker,
    /// It looks after the stores.
    Keeper,
}

/// Told who was heard, and when.
pub(super) type Heard = Box<dyn Fn(&[(Subject, i64)]) + Send + Sync>;

/// Told how far ingest is behind.
pub(super) type Behind = Box<dyn Fn(Duration) + Send + Sync>;

/// What the threads share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn IngestStore>,
    pub(super) heard: Heard,
    journal: Arc<dyn Journal>,
    stored: Mutex<HashMap<Partition, Offset>>,
    durable: Mutex<HashMap<Partition, Offset>>,
    /// Where each partition ended at the start, until ingest has come there.
    to_replay: Mutex<HashMap<Partition, Offset>>,
    /// Queues that the store is in line with.
    prepared: Mutex<HashSet<QueueId>>,
    checkpointed: Notify,
    failure: Mutex<Option<String>>,
    stop: watch::Sender<bool>,
}

impl IngestService {
    /// Brings the store in line with the journal, for this queue and all others that the uplink knows, then starts the
    /// workers of this one and the thread that makes checkpoints. Nothing may be appended before.
    pub async fn start(uplink: &Uplink, stores: IngestStores, options: &Options) -> Result<Self, StartError> {
        let activity = stores.activity;
        let tracker = activity.clone();
        let heard = Box::new(move |heard: &[(Subject, i64)]| activity.heard_all(heard));
        let behind = Box::new(move |time| tracker.is_behind(time));
        Self::start_with(
            uplink,
            (stores.store, stores.processors),
            (heard, behind),
            options,
        )
        .await
    }

    pub(super) async fn start_with(
        uplink: &Uplink,
        (store, processors): (Arc<dyn IngestStore>, Processors),
        (heard, behind): (Heard, Behind),
        options: &Options,
    ) -> Result<Self, StartError> {
        let service = Self {
            threads: Mutex::default(),
            shared: Arc::new(Shared::new(uplink, store, heard)),
            max_bytes: options.batch.as_usize().max(1),
        };
        // Workers put messages into other queues: all of them have to be as they were until then.
        for queue in uplink.all() {
            service.shared.prepare(&queue).await?;
        }
        service.work_on("ingest", uplink, processors, options.workers)?;
        let every = options.checkpoint_interval.0.max(Duration::from_millis(10));
        let checkpoints = make_checkpoints(service.shared.clone(), every);
        service.spawn("checkpoint".to_owned(), Role::Keeper, || checkpoints)?;
        let lag = lag::watch(service.shared.clone(), behind);
        service.spawn("lag-watch".to_owned(), Role::Keeper, || lag)?;
        Ok(service)
    }

    /// Starts workers of a further queue. Nothing may have been appended to it since the program started, unless the uplink
    /// knew it when ingest started.
    pub async fn add_queue(
        &self,
        name: &str,
        uplink: &Uplink,
        processors: Processors,
        workers: u16,
    ) -> Result<(), StartError> {
        self.shared.prepare(uplink).await?;
        self.work_on(name, uplink, processors, workers)
    }

    /// Whether a queue holds records that are not stored yet, or something is kept for it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn holds_something(&self, uplink: &Uplink) -> StoreResult<bool> {
        let store = &self.shared.store;
        for partition in partitions(uplink) {
            let stored = store.resume_position(partition).await?.unwrap_or_default();
            if uplink.journal().end(partition) > stored || !store.states(partition).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn work_on(
        &self,
        name: &str,
        uplink: &Uplink,
        processors: Processors,
        workers: u16,
    ) -> Result<(), StartError> {
        let consumers = uplink
            .journal()
            .subscribe(uplink.queue(), GROUP, workers.max(1))?;
        for (index, consumer) in consumers.into_iter().enumerate() {
            let (shared, processors, max_bytes) = (self.shared.clone(), processors.clone(), self.max_bytes);
            // The processor is made on the thread that it stays on.
            let work = move || Worker::new(shared, consumer, processors()).run(max_bytes);
            self.spawn(format!("{name}-{index}"), Role::Worker, work)?;
        }
        Ok(())
    }

    /// Runs a future on a thread of its own, because stores may block.
    fn spawn<F: Future<Output = ()>>(
        &self,
        name: String,
        role: Role,
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

    /// Whether everything that the journal held at the start is stored.
    pub fn has_replayed(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.to_replay.lock().is_empty()
    }

    /// Asks why ingest has ended for good and the program needs a restart; `None` while it works.
    pub fn failure(&self) -> impl Fn() -> Option<String> + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.failure.lock().clone()
    }

    /// Waits until what the (closed) journal holds is stored, for at most `patience`, and makes it durable. What is not
    /// stored by then is when the program starts again.
    pub fn stop(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let is_working = |service: &Self| {
            let threads = service.threads.lock();
            let mut workers = threads.iter().filter(|(role, _)| *role == Role::Worker);
            workers.any(|(_, thread)| !thread.is_finished())
        };
        while is_working(self) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.stop.send_replace(true);
        for (_, thread) in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                error!("an ingest thread has panicked");
            }
        }
    }
}

/// Notes that a thread ends by a panic.
struct PanicGuard {
    shared: Arc<Shared>,
    thread: String,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let failure = format!(
                "the thread {} has panicked, the program needs a restart",
                self.thread
            );
            error!(%failure, "ingest has failed");
            *self.shared.failure.lock() = Some(failure);
        }
    }
}

fn partitions(uplink: &Uplink) -> impl Iterator<Item = Partition> {
    let queue = uplink.queue();
    (0..uplink.journal().partitions(queue)).map(move |index| Partition { queue, index })
}

/// Sets the store back where it is ahead of the journal, which has lost its end: in a crash of the machine without
/// `fsync`, or by hand. The journal gives the lost positions to new records, and those must not count as stored.
async fn rewind_what_was_lost(uplink: &Uplink, store: &dyn IngestStore) -> StoreResult<()> {
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

impl Shared {
    pub(super) fn new(uplink: &Uplink, store: Arc<dyn IngestStore>, heard: Heard) -> Self {
        let journal = uplink.journal().clone();
        Self {
            store,
            heard,
            journal,
            stored: Mutex::default(),
            durable: Mutex::default(),
            to_replay: Mutex::default(),
            prepared: Mutex::default(),
            checkpointed: Notify::new(),
            failure: Mutex::default(),
            stop: watch::Sender::new(false),
        }
    }

    /// Brings the store in line with a queue, once, and notes what it held at the start.
    async fn prepare(&self, uplink: &Uplink) -> StoreResult<()> {
        if self.prepared.lock().contains(&uplink.queue()) {
            return Ok(());
        }
        rewind_what_was_lost(uplink, self.store.as_ref()).await?;
        self.prepared.lock().insert(uplink.queue());
        let ends = partitions(uplink).map(|partition| (partition, self.journal.end(partition)));
        self.to_replay
            .lock()
            .extend(ends.filter(|(_, end)| *end > Offset(0)));
        Ok(())
    }

    /// Notes that everything before a position is stored.
    pub(super) fn arrived_at(&self, partition: Partition, position: Offset) {
        self.stored.lock().insert(partition, position);
        let mut to_replay = self.to_replay.lock();
        if to_replay.get(&partition).is_some_and(|end| position >= *end) {
            to_replay.remove(&partition);
        }
    }

    /// Notes that somebody else works on a partition from here on.
    pub(super) fn left(&self, partition: Partition) {
        self.stored.lock().remove(&partition);
    }

    /// Sets the lag's gauge of a partition, and returns how far it is.
    pub(super) fn show_lag(&self, partition: Partition) -> Option<Standing> {
        let stored = self.stored.lock().get(&partition).copied()?;
        let standing = Standing {
            partition,
            stored,
            end: self.journal.end(partition),
        };
        ::metrics::gauge!(metrics::LAG_RECORDS, "partition" => partition.index.to_string())
            .set(standing.lag() as f64);
        Some(standing)
    }

    /// The same for all partitions.
    pub(super) fn show_lags(&self) -> Vec<Standing> {
        let partitions: Vec<_> = self.stored.lock().keys().copied().collect();
        partitions
            .into_iter()
            .filter_map(|partition| self.show_lag(partition))
            .collect()
    }

    /// How far a partition is stored durably, as of the last checkpoint.
    pub(super) fn durable(&self, partition: Partition) -> Option<Offset> {
        self.durable.lock().get(&partition).copied()
    }

    /// Waits for the next checkpoint.
    pub(super) async fn checkpointed(&self) {
        self.checkpointed.notified().await;
    }

    /// Waits until the program stops.
    pub(super) async fn stopped(&self) {
        // The sender lives in `self`, so waiting fails never.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Waits before another try.
    pub(super) async fn pause(&self, time: Duration) -> Result<(), Stopping> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = self.stopped() => Err(Stopping),
        }
    }
}

/// The program stops: leave everything as it is.
pub struct Stopping;

async fn make_checkpoints(shared: Arc<Shared>, every: Duration) {
    loop {
        let stopping = shared.pause(every).await.is_err();
        match shared.store.checkpoint().await {
            Ok(positions) => {
                shared.durable.lock().extend(positions);
                shared.checkpointed.notify_waiters();
            }
            Err(error) => warn!(%error, "checkpoint failed, the journal keeps what it covers"),
        }
        if stopping {
            return;
        }
    }
}
