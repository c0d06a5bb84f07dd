//! Notifies listeners of stored values: all writes to series and attributes pass through this wrapper of the stores,
//! and each listener is told once readers see the value. Without an active listener, this costs a load and a compare
//! per batch.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{
    Aggregation, AggregationBucket, Attribute, AttributeScope, DataPoint, LatestValue, RangeQuery,
};
use parking_lot::RwLock;

use crate::ports::{
    AttributeRow, AttributeSaveStrategy, AttributeStore, ChangeFilter, IngestStore, Offset, Partition,
    PointsPage, SeriesDeletion, StateRow, StoreEffects, StoreResult, TelemetryRow, TelemetrySaveStrategy,
    TimeSeriesStore, ValueChange, ValueListener, ValueRemoval, ValueRemovalScope, ValueSource, ValueTransfer,
};

/// The stores of values, with the listeners to their changes.
pub struct ObservedStore {
    series: Arc<dyn TimeSeriesStore>,
    attributes: Arc<dyn AttributeStore>,
    ingest: Arc<dyn IngestStore>,
    transfer: Arc<dyn ValueTransfer>,
    removal: Arc<dyn ValueRemoval>,
    listeners: RwLock<Vec<Arc<dyn ValueListener>>>,
}

impl ObservedStore {
    /// Wraps the stores.
    pub fn new(
        series: Arc<dyn TimeSeriesStore>,
        attributes: Arc<dyn AttributeStore>,
        ingest: Arc<dyn IngestStore>,
        hand_over: Arc<dyn ValueTransfer>,
        removal: Arc<dyn ValueRemoval>,
    ) -> Arc<Self> {
        Arc::new(Self {
            series,
            attributes,
            ingest,
            transfer: hand_over,
            removal,
            listeners: RwLock::default(),
        })
    }

    /// Adds a listener.
    pub fn listen(&self, listener: Arc<dyn ValueListener>) {
        self.listeners.write().push(listener);
    }

    fn notify_effects(&self, effects: &StoreEffects<'_>) {
        let points = effects.telemetry.iter().map(told_points);
        let attributes = effects.attributes.iter().map(|effect| {
            let AttributeSaveStrategy {
                stored,
                published: shown,
            } = effect.strategy;
            ObservedChange {
                change: ValueChange::Attributes(&effect.row),
                stored,
                published: shown,
            }
        });
        self.notify(points.chain(attributes));
    }

    fn notify<'a>(&self, changes: impl Iterator<Item = ObservedChange<'a>> + Clone) {
        for listener in self.listeners.read().iter() {
            if listener.is_listening() {
                let hears = listener.change_filter();
                let heard = changes.clone().filter(|told| match hears {
                    ChangeFilter::Stored => told.stored,
                    ChangeFilter::Shown => told.published,
                });
                heard.for_each(|told| listener.on_value(told.change));
            }
        }
    }
}

/// A change, and the listeners it concerns.
#[derive(Clone, Copy)]
struct ObservedChange<'a> {
    change: ValueChange<'a>,
    stored: bool,
    published: bool,
}

fn told_points<'a>(row: &'a TelemetryRow<'a>) -> ObservedChange<'a> {
    let TelemetrySaveStrategy {
        history,
        latest,
        published: shown,
    } = row.strategy;
    ObservedChange {
        change: ValueChange::Points(row),
        stored: history || latest,
        published: shown,
    }
}

/// All places where a subject has values.
fn sources() -> impl Iterator<Item = ValueSource> + Clone {
    let attributes = AttributeScope::ALL.map(ValueSource::Attribute);
    std::iter::once(ValueSource::Latest).chain(attributes)
}

/// A change that concerns every listener.
fn full_change(change: ValueChange<'_>) -> ObservedChange<'_> {
    ObservedChange {
        change,
        stored: true,
        published: true,
    }
}

#[async_trait]
impl IngestStore for ObservedStore {
    async fn apply(&self, partition: Partition, next: Offset, effects: &StoreEffects<'_>) -> StoreResult<()> {
        self.ingest.apply(partition, next, effects).await?;
        self.notify_effects(effects);
        Ok(())
    }

    async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        self.ingest.apply_between_records(partition, effects).await?;
        self.notify_effects(effects);
        Ok(())
    }

    async fn resume_position(&self, partition: Partition) -> StoreResult<Option<Offset>> {
        self.ingest.resume_position(partition).await
    }

    async fn rewind(&self, partition: Partition, to: Offset) -> StoreResult<()> {
        self.ingest.rewind(partition, to).await
    }

    async fn states(&self, partition: Partition) -> StoreResult<Vec<StateRow>> {
        self.ingest.states(partition).await
    }

    async fn checkpoint(&self) -> StoreResult<Vec<(Partition, Offset)>> {
        self.ingest.checkpoint().await
    }
}

#[async_trait]
impl TimeSeriesStore for ObservedStore {
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()> {
        self.series.save(rows).await?;
        self.notify(rows.iter().map(told_points));
        Ok(())
    }

    async fn keys(&self, subject: EntityKey) -> StoreResult<Vec<String>> {
        self.series.keys(subject).await
    }

    async fn latest(&self, subject: EntityKey, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        self.series.latest(subject, keys).await
    }

    async fn page(
        &self,
        subject: EntityKey,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage> {
        self.series.page(subject, key, query, max_bytes).await
    }

    async fn aggregate(
        &self,
        subject: EntityKey,
        key: &str,
        aggregation: Aggregation,
        buckets: &[AggregationBucket],
    ) -> StoreResult<Vec<DataPoint>> {
        self.series.aggregate(subject, key, aggregation, buckets).await
    }

    async fn delete(&self, subject: EntityKey, keys: &[String], what: SeriesDeletion) -> StoreResult<()> {
        let deleted = self.series.delete(subject, keys, what).await;
        // A failed deletion may have deleted a part.
        let gone = full_change(ValueChange::SeriesDeleted(subject, keys));
        self.notify(std::iter::once(gone));
        deleted
    }
}

#[async_trait]
impl ValueTransfer for ObservedStore {
    async fn transfer(&self, from: EntityKey, to: EntityKey) -> StoreResult<bool> {
        let handed = self.transfer.transfer(from, to).await;
        // A failed transfer may have moved a part.
        if !matches!(handed, Ok(false)) {
            for source in sources() {
                let changes = [
                    ValueChange::AllDeleted(from, source),
                    ValueChange::HandedOver(to, source),
                ];
                self.notify(changes.into_iter().map(full_change));
            }
        }
        handed
    }
}

#[async_trait]
impl ValueRemoval for ObservedStore {
    /// Notifies per subject; nobody listens to the values of a deleted tenant.
    async fn remove(&self, gone: &[ValueRemovalScope], spared: &[EntityKey]) -> StoreResult<()> {
        let removed = self.removal.remove(gone, spared).await;
        // A failed removal may have removed a part.
        let subjects = gone.iter().filter_map(|gone| match gone {
            ValueRemovalScope::Subject(subject) => Some(*subject),
            ValueRemovalScope::Tenant(_) => None,
        });
        let changes =
            subjects.flat_map(|subject| sources().map(move |it| ValueChange::AllDeleted(subject, it)));
        self.notify(changes.map(full_change));
        removed
    }
}

#[async_trait]
impl AttributeStore for ObservedStore {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.attributes.save(rows).await?;
        self.notify(rows.iter().map(|row| full_change(ValueChange::Attributes(row))));
        Ok(())
    }

    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.attributes.save_relaxed(rows).await?;
        self.notify(rows.iter().map(|row| full_change(ValueChange::Attributes(row))));
        Ok(())
    }

    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        self.attributes.get(subject, scope, keys).await
    }

    async fn delete(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        let deleted = self.attributes.delete(subject, scope, keys).await?;
        let gone = full_change(ValueChange::AttributesDeleted(subject, scope, &deleted));
        self.notify(std::iter::once(gone));
        Ok(deleted)
    }
}
