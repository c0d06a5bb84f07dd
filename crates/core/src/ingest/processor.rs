//! Processing of records between the journal and the stores.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_model::EntityKey;
use fieldline_model::record::{JournalRecord, RecordBody, diverted, rows};
use tracing::{error, warn};

use super::metrics;
use super::senders::WaitingTenants;
use super::service::{IngestShared, IngestShutdown};
use super::worker::RETRY_PAUSE;
use crate::in_flight::{CrashCount, InFlightKept, KeptTurn};
use crate::logging::LogGate;
use crate::ports::{
    AttributeEffect, AttributeRow, ConsumerRecords, Offset, Partition, StateRow, StoreEffects, StoreError,
    StoreErrorKind, StoreResult, TelemetryRow, TelemetrySaveStrategy,
};

static RETRY_GATE: LogGate = LogGate::new(2);
static REFUSED_GATE: LogGate = LogGate::new(5);

/// The records of one delivery that this program version can read, in order.
pub struct DeliveredBatch<'a> {
    /// The delivery, with its partition and bytes.
    pub records: &'a ConsumerRecords,
    /// The records with their positions.
    pub readable: &'a [(Offset, JournalRecord<'a>)],
    /// Position to continue from.
    pub next: Offset,
    /// The tenants that wait behind these records.
    pub waits: WaitingTenants,
}

/// The outcome of storing effects.
enum StoreVerdict {
    Stored,
    /// The store would refuse the effects again.
    Refused(StoreError),
}

/// Turns the records of one worker's partitions into effects, and applies them. It lives on the worker's thread.
///
/// # Promises
/// - When `process` has returned, the store's position of the partition is `delivered.next`, and the effects of the
///   records are stored, or pending in the state rows that were stored with the position.
#[async_trait(?Send)]
pub trait RecordProcessor {
    /// Assigns a partition to this worker.
    async fn assign_partition(
        &mut self,
        partition: Partition,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown>;

    /// Revokes a partition, which another worker takes over.
    fn revoke_partition(&mut self, partition: Partition);

    /// Processes records.
    async fn process(
        &mut self,
        delivered: DeliveredBatch<'_>,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown>;

    /// Waits until there is work that no record triggers. Dropping the future loses nothing.
    async fn wake(&mut self);

    /// Does the work that [`wake`](Self::wake) has announced.
    async fn work(&mut self, store: &EffectWriter) -> Result<(), IngestShutdown>;

    /// Writes out what the processor has gathered (statistics, events); called regularly, and before the end.
    async fn flush(&mut self, store: &EffectWriter);
}

/// Creates the processor of each worker, on the worker's thread.
pub type ProcessorFactory = Arc<dyn Fn() -> Box<dyn RecordProcessor> + Send + Sync>;

/// Receives the effects of messages that are in no journal.
#[async_trait]
pub trait EffectSink: Send + Sync {
    /// Takes effects; their state rows are ignored.
    async fn take(&self, effects: &StoreEffects<'_>) -> StoreResult<()>;
}

/// The store as processors see it: applies effects until they are stored or permanently refused.
pub struct EffectWriter(EffectTarget);

enum EffectTarget {
    Store(Arc<IngestShared>),
    Sink(Arc<dyn EffectSink>),
}

impl EffectWriter {
    pub(super) fn new(shared: &Arc<IngestShared>) -> Self {
        Self(EffectTarget::Store(shared.clone()))
    }

    /// Creates a writer for use without a journal: positions and metrics are ignored, and effects that the sink refuses
    /// are lost.
    pub fn detached(sink: Arc<dyn EffectSink>) -> Self {
        Self(EffectTarget::Sink(sink))
    }

    /// Applies the effects of the records before `next`, and retries while the store is unavailable. Effects that the
    /// store refuses permanently are skipped, logged and counted.
    ///
    /// # Errors
    /// The program stops.
    pub async fn apply(
        &self,
        partition: Partition,
        next: Offset,
        effects: &StoreEffects<'_>,
    ) -> Result<(), IngestShutdown> {
        self.store(partition, Some(next), effects).await?;
        if let EffectTarget::Store(shared) = &self.0 {
            shared.mark_stored(partition, next);
            shared.show_lag(partition);
        }
        Ok(())
    }

    /// Applies effects that arise between records, in the same way; the position stays.
    ///
    /// # Errors
    /// The program stops.
    pub async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> Result<(), IngestShutdown> {
        self.store(partition, None, effects).await
    }

    async fn store(
        &self,
        partition: Partition,
        next: Option<Offset>,
        effects: &StoreEffects<'_>,
    ) -> Result<(), IngestShutdown> {
        let shared = match &self.0 {
            EffectTarget::Store(shared) => shared,
            EffectTarget::Sink(sink) => {
                if let Err(error) = sink.take(effects).await {
                    warn!(%partition, %error, "what messages do is refused");
                }
                return Ok(());
            }
        };
        match shared.try_store(partition, next, effects).await? {
            StoreVerdict::Stored => {
                ::metrics::counter!(metrics::POINTS).increment(effects.telemetry.len() as u64);
                Ok(())
            }
            StoreVerdict::Refused(error) => {
                warn!(%partition, %error, "the store refuses what records do, storing it one by one");
                shared.store_one_by_one(partition, next, effects).await
            }
        }
    }

    /// Returns the state rows that were stored with a partition's positions.
    ///
    /// # Errors
    /// The program stops.
    pub async fn states(&self, partition: Partition) -> Result<Vec<StateRow>, IngestShutdown> {
        let EffectTarget::Store(shared) = &self.0 else {
            return Ok(Vec::new());
        };
        loop {
            match shared.store.states(partition).await {
                Ok(states) => return Ok(states),
                Err(error) => {
                    error!(%partition, %error, "cannot read what the rule engine has kept");
                    self.pause().await?;
                }
            }
        }
    }

    /// Notes that a kept item is being processed, if it may be.
    pub fn take_kept(&self, kept: InFlightKept) -> KeptTurn {
        match &self.0 {
            EffectTarget::Store(shared) => shared.crashes.in_flight.take_kept(kept),
            EffectTarget::Sink(_) => KeptTurn::Now(None),
        }
    }

    /// Sets aside a record that has crashed the process, and retries while the store is unavailable. Returns false if
    /// there is no store to keep it.
    ///
    /// # Errors
    /// The program stops.
    pub async fn set_aside(
        &self,
        partition: Partition,
        offset: Offset,
        record: Bytes,
        deaths: CrashCount,
    ) -> Result<bool, IngestShutdown> {
        match &self.0 {
            EffectTarget::Store(shared) => shared.set_aside(partition, offset, record, deaths).await,
            EffectTarget::Sink(_) => Ok(false),
        }
    }

    /// Waits before the caller retries an operation that failed for its own reasons.
    ///
    /// # Errors
    /// The program stops.
    pub async fn pause(&self) -> Result<(), IngestShutdown> {
        self.pause_for(RETRY_PAUSE).await
    }

    /// Like [`Self::pause`], for a given time.
    ///
    /// # Errors
    /// The program stops.
    pub async fn pause_for(&self, time: std::time::Duration) -> Result<(), IngestShutdown> {
        match &self.0 {
            EffectTarget::Store(shared) => shared.pause(time).await,
            EffectTarget::Sink(_) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }
}

/// Stores the effects of records.
impl IngestShared {
    async fn store_one_by_one(
        &self,
        partition: Partition,
        next: Option<Offset>,
        effects: &StoreEffects<'_>,
    ) -> Result<(), IngestShutdown> {
        let rows = effects.telemetry.iter().map(|row| {
            (
                row.subject,
                StoreEffects {
                    telemetry: vec![*row],
                    ..StoreEffects::default()
                },
            )
        });
        let attributes = effects.attributes.iter().map(|effect| {
            (
                effect.row.subject,
                StoreEffects {
                    attributes: vec![*effect],
                    ..StoreEffects::default()
                },
            )
        });
        for (subject, single) in rows.chain(attributes) {
            match self.try_store(partition, None, &single).await? {
                StoreVerdict::Stored => {
                    ::metrics::counter!(metrics::POINTS).increment(single.telemetry.len() as u64);
                }
                StoreVerdict::Refused(error) => report_refused(partition, subject, &error),
            }
        }
        let rest = StoreEffects {
            states: effects.states.clone(),
            ..StoreEffects::default()
        };
        if let StoreVerdict::Refused(error) = self.try_store(partition, next, &rest).await? {
            warn!(%partition, %error, "the store refuses to move its position");
        }
        Ok(())
    }

    /// Applies effects, and retries while the store is unavailable.
    async fn try_store(
        &self,
        partition: Partition,
        next: Option<Offset>,
        effects: &StoreEffects<'_>,
    ) -> Result<StoreVerdict, IngestShutdown> {
        loop {
            let started = Instant::now();
            let applied = match next {
                Some(next) => self.store.apply(partition, next, effects).await,
                None => self.store.apply_between_records(partition, effects).await,
            };
            let error = match applied {
                Ok(()) => {
                    ::metrics::histogram!(metrics::APPLY_SECONDS).record(started.elapsed());
                    return Ok(StoreVerdict::Stored);
                }
                Err(error) => error,
            };
            // A damaged store is no fault of the records: giving them up would lose all later ones, too.
            if !error.kind().is_retryable() && error.kind() != StoreErrorKind::Corrupt {
                return Ok(StoreVerdict::Refused(error));
            }
            ::metrics::counter!(metrics::FAILED_APPLIES).increment(1);
            if let Some(suppressed) = RETRY_GATE.open() {
                warn!(%partition, %error, suppressed, "cannot store, trying again");
            }
            self.pause(RETRY_PAUSE).await?;
        }
    }
}

fn report_refused(partition: Partition, subject: EntityKey, error: &StoreError) {
    ::metrics::counter!(metrics::REFUSED).increment(1);
    if let Some(suppressed) = REFUSED_GATE.open() {
        let entity = subject.entity;
        error!(%partition, %entity, %error, suppressed, "gave up what the store refuses");
    }
}

/// Stores the data of devices directly, without rule chains.
pub struct DirectProcessor;

impl DirectProcessor {
    /// Returns the factory for workers without rule chains.
    pub fn processors() -> ProcessorFactory {
        Arc::new(|| Box::new(Self))
    }
}

#[async_trait(?Send)]
impl RecordProcessor for DirectProcessor {
    async fn assign_partition(&mut self, _: Partition, _: &EffectWriter) -> Result<(), IngestShutdown> {
        Ok(())
    }

    fn revoke_partition(&mut self, _: Partition) {}

    async fn process(
        &mut self,
        delivered: DeliveredBatch<'_>,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let mut effects = StoreEffects::default();
        for (_, record) in delivered.readable {
            collect(record, &mut effects);
        }
        store
            .apply(delivered.records.partition, delivered.next, &effects)
            .await
    }

    async fn wake(&mut self) {
        std::future::pending::<()>().await;
    }

    async fn work(&mut self, _: &EffectWriter) -> Result<(), IngestShutdown> {
        Ok(())
    }

    async fn flush(&mut self, _: &EffectWriter) {}
}

/// Adds the effects of one record.
fn collect<'a>(record: &JournalRecord<'a>, effects: &mut StoreEffects<'a>) {
    let subject = record.subject;
    match record.body {
        RecordBody::Telemetry {
            ttl_seconds,
            rows: bytes,
        } => {
            let rows = rows(bytes).filter_map(Result::ok);
            effects.telemetry.extend(rows.map(|row| TelemetryRow {
                subject,
                ts: row.ts,
                ttl_seconds,
                strategy: TelemetrySaveStrategy::ALL,
                values: row.values,
            }));
        }
        RecordBody::Attributes { scope, values } => {
            let row = AttributeRow {
                subject,
                scope,
                ts: record.received_ms,
                values,
            };
            effects.attributes.push(AttributeEffect::from(row));
        }
        RecordBody::Diverted(bytes) => {
            if let Ok(inner) = diverted::decode(record.subject, record.received_ms, bytes) {
                collect(&inner.record, effects);
            }
        }
        RecordBody::Message(_) => {}
    }
}
