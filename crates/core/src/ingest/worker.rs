//! The consuming end: from the journal into the stores.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fieldline_model::record::{Record, RecordBody, rows, split};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tracing::{error, info, warn};

use super::{Options, Uplink, metrics};
use crate::activity::ActivityTracker;
use crate::logging::LogGate;
use crate::ports::{
    AttributeRow, Consumer, Delivery, Effects, IngestStore, Journal, JournalError, Offset, Partition,
    Records, TelemetryRow,
};

/// Consumer group of the ingest workers.
const GROUP: &str = "ingest";
const RETRY_PAUSE: Duration = Duration::from_millis(500);
static UNREADABLE_GATE: LogGate = LogGate::new(5);

/// Where the effects of records go.
#[derive(Clone)]
pub struct IngestStores {
    /// Time series, latest values and attributes.
    pub store: Arc<dyn IngestStore>,
    /// Who hears that devices are alive.
    pub activity: Arc<ActivityTracker>,
}

/// The running workers.
pub struct IngestService {
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

struct Shared {
    stores: IngestStores,
    journal: Arc<dyn Journal>,
    durable: Mutex<HashMap<Partition, Offset>>,
    /// Where each partition ended at the start, until ingest has come there.
    to_replay: Mutex<HashMap<Partition, Offset>>,
    checkpointed: Notify,
    stop: watch::Sender<bool>,
}

impl IngestService {
    /// Starts the workers and the thread that makes checkpoints.
    pub fn start(uplink: &Uplink, stores: IngestStores, options: &Options) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared {
            stores,
            journal: uplink.journal().clone(),
            durable: Mutex::default(),
            to_replay: Mutex::new(ends(uplink)),
            checkpointed: Notify::new(),
            stop: watch::Sender::new(false),
        });
        let mut threads = Vec::new();
        let consumers = uplink
            .journal()
            .subscribe(uplink.queue(), GROUP, options.workers.max(1))?;
        for (index, consumer) in consumers.into_iter().enumerate() {
            let worker = Worker {
                shared: shared.clone(),
                consumer,
                committed: HashMap::new(),
            };
            let max_bytes = options.batch.as_usize().max(1);
            threads.push(spawn(format!("ingest-{index}"), worker.run(max_bytes))?);
        }
        let every = options.checkpoint_interval.0.max(Duration::from_millis(10));
        threads.push(spawn(
            "checkpoint".to_owned(),
            make_checkpoints(shared.clone(), every),
        )?);
        Ok(Self { threads, shared })
    }

    /// Whether everything that the journal held at the start is stored.
    pub fn has_replayed(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.to_replay.lock().is_empty()
    }

    /// Waits until what the (closed) journal holds is stored, for at most `patience`, and makes it durable. What is not
    /// stored by then is when the program starts again.
    pub fn stop(self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let workers = self
            .threads
            .split_last()
            .map_or([].as_slice(), |(_, workers)| workers);
        while workers.iter().any(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.shared.stop.send_replace(true);
        for thread in self.threads {
            if thread.join().is_err() {
                error!("an ingest thread has panicked");
            }
        }
    }
}

/// Where the partitions that hold anything end.
fn ends(uplink: &Uplink) -> HashMap<Partition, Offset> {
    let (journal, queue) = (uplink.journal(), uplink.queue());
    (0..journal.partitions(queue))
        .map(|index| Partition { queue, index })
        .map(|partition| (partition, journal.end(partition)))
        .filter(|(_, end)| *end > Offset(0))
        .collect()
}

/// Runs a future on a thread of its own, because stores may block.
fn spawn(
    name: String,
    work: impl Future<Output = ()> + Send + 'static,
) -> Result<JoinHandle<()>, JournalError> {
    let failed = |source| JournalError::Io {
        context: format!("starting thread {name}"),
        source,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(failed)?;
    std::thread::Builder::new()
        .name(name.clone())
        .spawn(move || runtime.block_on(work))
        .map_err(failed)
}

impl Shared {
    fn arrived_at(&self, partition: Partition, position: Offset) {
        let mut to_replay = self.to_replay.lock();
        if to_replay.get(&partition).is_some_and(|end| position >= *end) {
            to_replay.remove(&partition);
        }
    }
}

async fn make_checkpoints(shared: Arc<Shared>, every: Duration) {
    let mut stop = shared.stop.subscribe();
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(every) => false,
            () = stopped(&mut stop) => true,
        };
        match shared.stores.store.checkpoint().await {
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

struct Worker {
    shared: Arc<Shared>,
    consumer: Box<dyn Consumer>,
    committed: HashMap<Partition, Offset>,
}

impl Worker {
    async fn run(mut self, max_bytes: usize) {
        let shared = self.shared.clone();
        let mut stop = shared.stop.subscribe();
        loop {
            let delivery = tokio::select! {
                delivery = self.consumer.next(max_bytes) => delivery,
                () = shared.checkpointed.notified() => {
                    self.commit().await;
                    continue;
                }
                () = stopped(&mut stop) => break,
            };
            match delivery {
                Ok(Delivery::Assigned(partitions)) => self.resume(partitions).await,
                Ok(Delivery::Revoked(partitions)) => {
                    self.committed
                        .retain(|partition, _| !partitions.contains(partition));
                }
                Ok(Delivery::Records(records)) => {
                    if !self.store(&records).await {
                        break;
                    }
                    self.commit().await;
                }
                Ok(Delivery::Closed) => break,
                Err(error) => {
                    error!(%error, "cannot read the journal, ingest of these partitions stands still");
                    if pause(&self.shared).await {
                        break;
                    }
                }
            }
        }
    }

    /// Starts each partition where the store wants it: its position is exact, the journal's may be older.
    async fn resume(&mut self, partitions: Vec<(Partition, Offset)>) {
        for (partition, start) in partitions {
            self.committed.insert(partition, start);
            let position = loop {
                match self.shared.stores.store.resume_position(partition).await {
                    Ok(position) => break position,
                    Err(error) => {
                        error!(%partition, %error, "cannot read where ingest stands");
                        if pause(&self.shared).await {
                            return;
                        }
                    }
                }
            };
            let Some(position) = position else { continue };
            self.shared.arrived_at(partition, position);
            match self.consumer.seek(partition, position) {
                Ok(()) => info!(%partition, position = position.0, "ingest resumes"),
                Err(JournalError::OutOfRange { first, next, .. }) => {
                    // Only a journal that was replaced or deleted by hand does not hold the position.
                    warn!(%partition, position = position.0, first, next, "the journal does not hold where ingest stands, starting at its first record");
                    if let Err(error) = self.consumer.seek(partition, Offset(first)) {
                        error!(%partition, %error, "cannot move to the journal's first record");
                    }
                }
                Err(error) => error!(%partition, %error, "cannot move to where ingest stands"),
            }
        }
    }

    /// Stores the effects of the records, trying until it works. Returns false when the program stops meanwhile.
    async fn store(&mut self, records: &Records) -> bool {
        let mut effects = Effects::default();
        let mut heard = Vec::new();
        let mut count = 0u64;
        for record in split(&records.bytes) {
            let decoded = record.and_then(|record| collect(record, &mut effects));
            match decoded {
                Ok(record) => heard.push((record.subject, record.received_ms)),
                Err(error) => {
                    ::metrics::counter!(metrics::UNREADABLE).increment(1);
                    if let Some(suppressed) = UNREADABLE_GATE.open() {
                        error!(partition = %records.partition, first = records.first.0, %error, suppressed, "skipped a record that cannot be decoded");
                    }
                }
            }
            count += 1;
        }
        loop {
            let started = Instant::now();
            match self
                .shared
                .stores
                .store
                .apply(records.partition, records.next, &effects)
                .await
            {
                Ok(()) => {
                    ::metrics::histogram!(metrics::APPLY_SECONDS).record(started.elapsed());
                    break;
                }
                Err(error) => {
                    ::metrics::counter!(metrics::FAILED_APPLIES).increment(1);
                    warn!(partition = %records.partition, %error, "cannot store, trying again");
                    if pause(&self.shared).await {
                        return false;
                    }
                }
            }
        }
        self.shared.arrived_at(records.partition, records.next);
        ::metrics::counter!(metrics::RECORDS).increment(count);
        ::metrics::counter!(metrics::POINTS).increment(effects.telemetry.len() as u64);
        let lag = self
            .shared
            .journal
            .end(records.partition)
            .0
            .saturating_sub(records.next.0);
        ::metrics::gauge!(metrics::LAG_RECORDS, "partition" => records.partition.index.to_string())
            .set(lag as f64);
        self.shared.stores.activity.heard_all(&heard);
        true
    }

    /// Tells the journal what it may forget.
    async fn commit(&mut self) {
        for (partition, committed) in &mut self.committed {
            let durable = self.shared.durable.lock().get(partition).copied();
            let Some(durable) = durable.filter(|durable| durable > committed) else {
                continue;
            };
            match self.consumer.commit(*partition, durable).await {
                Ok(()) => *committed = durable,
                Err(error) => warn!(%partition, %error, "cannot commit a position to the journal"),
            }
        }
    }
}

/// Waits before another try; returns true when the program stops meanwhile.
async fn pause(shared: &Shared) -> bool {
    let mut stop = shared.stop.subscribe();
    tokio::select! {
        () = tokio::time::sleep(RETRY_PAUSE) => false,
        () = stopped(&mut stop) => true,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the service is gone, which is as good as told.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Adds what one record does; until there are rule chains that is the default chain, fixed.
fn collect<'a>(
    bytes: &'a [u8],
    effects: &mut Effects<'a>,
) -> Result<Record<'a>, fieldline_model::kv::Corrupt> {
    let record = Record::decode(bytes)?;
    let subject = record.subject;
    match record.body {
        RecordBody::Telemetry {
            ttl_seconds,
            rows: bytes,
        } => {
            for row in rows(bytes) {
                let row = row?;
                effects.telemetry.push(TelemetryRow {
                    subject,
                    ts: row.ts,
                    ttl_seconds,
                    values: row.values,
                });
            }
        }
        RecordBody::Attributes { scope, values } => {
            effects.attributes.push(AttributeRow {
                subject,
                scope,
                ts: record.received_ms,
                values,
            });
        }
    }
    Ok(record)
}
