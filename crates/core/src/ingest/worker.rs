//! The consuming side: from the journal into the stores.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::batch::DecodedBatch;
use super::metrics;
use super::processor::{DeliveredBatch, EffectWriter, RecordProcessor};
use super::service::{IngestShared, IngestShutdown};
use crate::in_flight::{BatchIsolation, InFlightBatch, InFlightWork, NoteSlot, RecordTreatment};
use crate::logging::LogGate;
use crate::ports::{ConsumerEvent, ConsumerRecords, JournalConsumer, JournalError, Offset, Partition};

/// Pause before a retry that concerns all partitions.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Pause before a retry that concerns one partition; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often the processor is flushed while records arrive without a pause.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
static COMMIT_GATE: LogGate = LogGate::new(1);

/// Moves the records of its partitions through its processor into the stores.
pub(super) struct IngestWorker {
    pub(super) shared: Arc<IngestShared>,
    processor: Box<dyn RecordProcessor>,
    pub(super) store: EffectWriter,
    consumer: Box<dyn JournalConsumer>,
    partitions: HashMap<Partition, IngestProgress>,
    flushed: Instant,
    /// Its note of the work in flight.
    pub(super) slot: NoteSlot,
}

/// The progress of one partition.
struct IngestProgress {
    committed: Offset,
    /// How long to pause the partition the next time it must stop.
    pause: Duration,
    /// The sender changes at the previous delivery.
    changes: u64,
}

impl IngestWorker {
    pub(super) fn new(
        shared: Arc<IngestShared>,
        consumer: Box<dyn JournalConsumer>,
        processor: Box<dyn RecordProcessor>,
    ) -> Self {
        Self {
            store: EffectWriter::new(&shared),
            slot: shared.crashes.in_flight.slot(),
            shared,
            processor,
            consumer,
            partitions: HashMap::new(),
            flushed: Instant::now(),
        }
    }

    /// Runs until the journal is closed and read to its end, or the program stops.
    pub(super) async fn run(mut self, max_bytes: usize) {
        let shared = self.shared.clone();
        loop {
            let delivery = tokio::select! {
                delivery = self.consumer.next(max_bytes) => delivery,
                () = self.processor.wake() => {
                    if self.work().await.is_err() {
                        break;
                    }
                    continue;
                }
                () = shared.checkpointed() => {
                    self.processor.flush(&self.store).await;
                    self.commit().await;
                    continue;
                }
                () = shared.stopped() => break,
            };
            let outcome = match delivery {
                Ok(ConsumerEvent::Closed) => break,
                Ok(delivery) => self.take(delivery).await,
                Err(error) => {
                    error!(%error, "cannot read the journal, ingest stands still");
                    shared.pause(RETRY_PAUSE).await
                }
            };
            if outcome.is_err() {
                break;
            }
        }
        self.processor.flush(&self.store).await;
    }

    /// Does work that no record triggers, but not while a record must run alone.
    async fn work(&mut self) -> Result<(), IngestShutdown> {
        let shared = self.shared.clone();
        let _turn = tokio::select! {
            turn = shared.crashes.in_flight.acquire(RecordTreatment::Usual) => turn,
            () = shared.stopped() => return Err(IngestShutdown),
        };
        self.processor.work(&self.store).await
    }

    async fn take(&mut self, delivery: ConsumerEvent) -> Result<(), IngestShutdown> {
        match delivery {
            ConsumerEvent::Assigned(partitions) => {
                for (partition, start) in partitions {
                    self.resume(partition, start).await?;
                }
            }
            ConsumerEvent::Revoked(partitions) => {
                for partition in partitions {
                    self.partitions.remove(&partition);
                    self.processor.revoke_partition(partition);
                    self.shared.remove_partition(partition);
                }
            }
            ConsumerEvent::Records(records) => {
                self.store(&records).await?;
                self.commit().await;
                // While more records are always ready, the select in `run` might never get to the processor's own work
                // or the flush.
                if is_ready(self.processor.wake()) {
                    self.work().await?;
                }
                if self.flushed.elapsed() >= FLUSH_EVERY {
                    self.flushed = Instant::now();
                    self.processor.flush(&self.store).await;
                }
            }
            ConsumerEvent::Unreadable(
                partition,
                JournalError::OutOfRange {
                    asked, first, next, ..
                },
            ) => {
                self.relocate(partition, Offset(asked), (Offset(first), Offset(next)))
                    .await?;
            }
            ConsumerEvent::Unreadable(partition, error) => {
                let pause = self.stand_still(partition);
                error!(%partition, %error, ?pause, "cannot read the journal, ingest of this partition stands still");
            }
            ConsumerEvent::Closed => {}
        }
        Ok(())
    }

    /// Resumes a partition at the store's position, which is exact. The journal's may be older, or, where the store was set
    /// back to a copy, newer than what is stored: a store without a position has nothing of the partition.
    async fn resume(&mut self, partition: Partition, start: Offset) -> Result<(), IngestShutdown> {
        let progress = IngestProgress {
            committed: start,
            pause: FIRST_PAUSE,
            changes: 0,
        };
        self.partitions.insert(partition, progress);
        let position = loop {
            match self.shared.store.resume_position(partition).await {
                Ok(position) => break position,
                Err(error) => {
                    error!(%partition, %error, "cannot read where ingest stands");
                    self.shared.pause(RETRY_PAUSE).await?;
                }
            }
        };
        let position = self.seek(partition, position).await?;
        info!(%partition, position = position.0, "ingest resumes");
        self.shared.mark_stored(partition, position);
        self.processor.assign_partition(partition, &self.store).await
    }

    /// Moves to a position, or to the first record that the journal has, and retries until it works: reading elsewhere would
    /// skip records or repeat them endlessly. Returns the position reached.
    async fn seek(&mut self, partition: Partition, wanted: Option<Offset>) -> Result<Offset, IngestShutdown> {
        let mut position = wanted.unwrap_or_default();
        loop {
            match self.consumer.seek(partition, position) {
                Ok(()) => return Ok(position),
                Err(JournalError::OutOfRange { first, .. }) if wanted.is_none() && position.0 != first => {
                    position = Offset(first);
                }
                // Records are kept until they are stored, so somebody has removed these. The start has ruled out that
                // the journal's end is missing.
                Err(JournalError::OutOfRange { first, .. }) if position.0 < first => {
                    ::metrics::counter!(metrics::RELOCATED).increment(1);
                    error!(%partition, position = position.0, first, "records that were not stored yet are gone from the journal, going on with its first one");
                    position = Offset(first);
                }
                Err(error) => {
                    error!(%partition, %error, "cannot move to where ingest stands");
                    self.shared.pause(RETRY_PAUSE).await?;
                }
            }
        }
    }

    /// Goes on in a log that no longer, or not yet, holds a partition's position: somebody has removed records, or has
    /// lost the end of the log and gives its positions to new records.
    async fn relocate(
        &mut self,
        partition: Partition,
        asked: Offset,
        (first, next): (Offset, Offset),
    ) -> Result<(), IngestShutdown> {
        ::metrics::counter!(metrics::RELOCATED).increment(1);
        if asked <= next {
            error!(%partition, position = asked.0, first = first.0, "records that were not stored yet are gone from the journal, going on with its first one");
            return self.seek(partition, Some(first.max(asked))).await.map(drop);
        }
        error!(%partition, stored = asked.0, end = next.0, "the journal has lost records that are stored already, their positions go to new ones");
        let shared = self.shared.clone();
        while let Err(error) = shared.store.rewind(partition, next).await {
            error!(%partition, %error, "cannot move back to the end of the journal");
            shared.pause(RETRY_PAUSE).await?;
        }
        shared.crashes.in_flight.truncate_at(partition, next);
        shared.shorten(partition, next);
        let position = self.seek(partition, Some(next)).await?;
        if let Some(progress) = self.partitions.get_mut(&partition) {
            progress.committed = progress.committed.min(position);
        }
        shared.mark_stored(partition, position);
        Ok(())
    }

    /// Pauses a partition, for longer each time in a row.
    fn stand_still(&mut self, partition: Partition) -> Duration {
        let mut pause = FIRST_PAUSE;
        if let Some(progress) = self.partitions.get_mut(&partition) {
            pause = progress.pause;
            progress.pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.consumer.pause(partition, pause);
        pause
    }

    /// Processes the records, up to the first that this program version does not understand.
    async fn store(&mut self, records: &ConsumerRecords) -> Result<(), IngestShutdown> {
        if self.shared.crashes.in_flight.suspects_records() {
            self.store_singly(records.clone()).await
        } else {
            self.store_pack(records, BatchIsolation::Usual).await.map(drop)
        }
    }

    /// Processes records together; returns whether all of them were processed.
    pub(super) async fn store_pack(
        &mut self,
        records: &ConsumerRecords,
        taken: BatchIsolation,
    ) -> Result<bool, IngestShutdown> {
        let partition = records.partition;
        let batch = DecodedBatch::decode(records);
        if batch.next > records.first {
            let mut waits = self.shared.waiting_tenants(partition);
            if let Some(progress) = self.partitions.get_mut(&partition) {
                std::mem::swap(&mut progress.changes, &mut waits.changes);
            }
            let delivered = DeliveredBatch {
                records,
                readable: &batch.readable,
                next: batch.next,
                waits,
            };
            let pack = InFlightBatch {
                partition,
                first: records.first,
                end: batch.end,
                isolation: taken,
            };
            self.slot.note(Some(InFlightWork::Pack(pack)));
            self.processor.process(delivered, &self.store).await?;
            self.slot.note(None);
            ::metrics::counter!(metrics::RECORDS).increment(batch.readable.len() as u64);
            self.shared.activity.record_activities(&batch.activity);
            if let Some(progress) = self.partitions.get_mut(&partition) {
                progress.pause = FIRST_PAUSE;
            }
        }
        if let Some(version) = batch.foreign {
            self.seek(partition, Some(batch.next)).await?;
            let pause = self.stand_still(partition);
            error!(%partition, position = batch.next.0, version, ?pause, "another version of the program wrote this record, ingest of its partition stands still until a version that can read it is started");
        }
        Ok(batch.foreign.is_none())
    }

    /// Commits durable positions to the journal, which may then delete the records.
    async fn commit(&mut self) {
        for (partition, progress) in &mut self.partitions {
            let durable = self.shared.durable(*partition);
            let Some(durable) = durable.filter(|durable| *durable > progress.committed) else {
                continue;
            };
            match self.consumer.commit(*partition, durable).await {
                Ok(()) => progress.committed = durable,
                Err(error) => {
                    if matches!(error, JournalError::OutOfRange { .. }) {
                        // It will not come into range later either.
                        progress.committed = durable;
                    }
                    if let Some(suppressed) = COMMIT_GATE.open() {
                        warn!(%partition, %error, suppressed, "cannot commit a position to the journal");
                    }
                }
            }
        }
    }
}

/// Returns whether a future is ready without waiting.
fn is_ready(work: impl Future<Output = ()>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(work).as_mut().poll(&mut context).is_ready()
}
