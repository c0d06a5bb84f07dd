//! Where stored values become visible: around the stores of series and attributes, everything that writes goes through
//! here, and whoever listens is told once readers see it. Nobody listening costs a load and a compare a batch.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_model::Subject;
use fieldline_model::timeseries::{
    Aggregation, Attribute, AttributeScope, Bucket, LatestValue, Point, RangeQuery,
};
use parking_lot::RwLock;

use crate::ports::{
    AttributeParts, AttributeRow, AttributeStore, DeleteSeries, Effects, Gone, Hears, IngestStore, Offset,
    Partition, PointsPage, RowParts, StateRow, StoreResult, TelemetryRow, TimeSeriesStore, ValueChange,
    ValueHandOver, ValueListener, ValueRemoval, ValueSource,
};

/// The stores of values with those who listen to their changes.
pub struct LiveStore {
    series: Arc<dyn TimeSeriesStore>,
    attributes: Arc<dyn AttributeStore>,
    ingest: Arc<dyn IngestStore>,
    hand_over: Arc<dyn ValueHandOver>,
    removal: Arc<dyn ValueRemoval>,
    listeners: RwLock<Vec<Arc<dyn ValueListener>>>,
}

impl LiveStore {
    /// Wraps the stores.
    pub fn new(
        series: Arc<dyn TimeSeriesStore>,
        attributes: Arc<dyn AttributeStore>,
        ingest: Arc<dyn IngestStore>,
        hand_over: Arc<dyn ValueHandOver>,
        removal: Arc<dyn ValueRemoval>,
    ) -> Arc<Self> {
        Arc::new(Self {
            series,
            attributes,
            ingest,
            hand_over,
            removal,
            listeners: RwLock::default(),
        })
    }

    /// Adds a listener.
    pub fn listen(&self, listener: Arc<dyn ValueListener>) {
        self.listeners.write().push(listener);
    }

    fn tell_effects(&self, effects: &Effects<'_>) {
        let points = effects.telemetry.iter().map(told_points);
        let attributes = effects.attributes.iter().map(|effect| {
            let AttributeParts { stored, shown } = effect.parts;
            Told {
                change: ValueChange::Attributes(&effect.row),
                stored,
                shown,
            }
        });
        self.tell(points.chain(attributes));
    }

    fn tell<'a>(&self, changes: impl Iterator<Item = Told<'a>> + Clone) {
        for listener in self.listeners.read().iter() {
            if listener.is_listening() {
                let hears = listener.hears();
                let heard = changes.clone().filter(|told| match hears {
                    Hears::Stored => told.stored,
                    Hears::Shown => told.shown,
                });
                heard.for_each(|told| listener.on_value(told.change));
            }
        }
    }
}

/// A change, and who is told.
#[derive(Clone, Copy)]
struct Told<'a> {
    change: ValueChange<'a>,
    stored: bool,
    shown: bool,
}

fn told_points<'a>(row: &'a TelemetryRow<'a>) -> Told<'a> {
    let RowParts {
        history,
        latest,
        shown,
    } = row.parts;
    Told {
        change: ValueChange::Points(row),
        stored: history || latest,
        shown,
    }
}

/// Everywhere that a subject has values.
fn sources() -> impl Iterator<Item = ValueSource> + Clone {
    let attributes = AttributeScope::ALL.map(ValueSource::Attribute);
    std::iter::once(ValueSource::Latest).chain(attributes)
}

/// What everybody is told.
fn told(change: ValueChange<'_>) -> Told<'_> {
    Told {
        change,
        stored: true,
        shown: true,
    }
}

#[async_trait]
impl IngestStore for LiveStore {
    async fn apply(&self, partition: Partition, next: Offset, effects: &Effects<'_>) -> StoreResult<()> {
        self.ingest.apply(partition, next, effects).await?;
        self.tell_effects(effects);
        Ok(())
    }

    async fn amend(&self, partition: Partition, effects: &Effects<'_>) -> StoreResult<()> {
        self.ingest.amend(partition, effects).await?;
        self.tell_effects(effects);
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
impl TimeSeriesStore for LiveStore {
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()> {
        self.series.save(rows).await?;
        self.tell(rows.iter().map(told_points));
        Ok(())
    }

    async fn keys(&self, subject: Subject) -> StoreResult<Vec<String>> {
        self.series.keys(subject).await
    }

    async fn latest(&self, subject: Subject, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        self.series.latest(subject, keys).await
    }

    async fn page(
        &self,
        subject: Subject,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage> {
        self.series.page(subject, key, query, max_bytes).await
    }

    async fn aggregate(
        &self,
        subject: Subject,
        key: &str,
        aggregation: Aggregation,
        buckets: &[Bucket],
    ) -> StoreResult<Vec<Point>> {
        self.series.aggregate(subject, key, aggregation, buckets).await
    }

    async fn delete(&self, subject: Subject, keys: &[String], what: DeleteSeries) -> StoreResult<()> {
        let deleted = self.series.delete(subject, keys, what).await;
        // Some of it may be deleted where it failed.
        let gone = told(ValueChange::SeriesDeleted(subject, keys));
        self.tell(std::iter::once(gone));
        deleted
    }
}

#[async_trait]
impl ValueHandOver for LiveStore {
    async fn hand_over(&self, from: Subject, to: Subject) -> StoreResult<bool> {
        let handed = self.hand_over.hand_over(from, to).await;
        // Some of it may be handed over where it failed.
        if !matches!(handed, Ok(false)) {
            for source in sources() {
                let changes = [
                    ValueChange::AllDeleted(from, source),
                    ValueChange::HandedOver(to, source),
                ];
                self.tell(changes.into_iter().map(told));
            }
        }
        handed
    }
}

#[async_trait]
impl ValueRemoval for LiveStore {
    /// Of a tenant that is gone nobody listens to anything.
    async fn remove(&self, gone: &[Gone], spared: &[Subject]) -> StoreResult<()> {
        let removed = self.removal.remove(gone, spared).await;
        // Some of it may be removed where it failed.
        let subjects = gone.iter().filter_map(|gone| match gone {
            Gone::Subject(subject) => Some(*subject),
            Gone::Tenant(_) => None,
        });
        let changes =
            subjects.flat_map(|subject| sources().map(move |it| ValueChange::AllDeleted(subject, it)));
        self.tell(changes.map(told));
        removed
    }
}

#[async_trait]
impl AttributeStore for LiveStore {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.attributes.save(rows).await?;
        self.tell(rows.iter().map(|row| told(ValueChange::Attributes(row))));
        Ok(())
    }

    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.attributes.save_relaxed(rows).await?;
        self.tell(rows.iter().map(|row| told(ValueChange::Attributes(row))));
        Ok(())
    }

    async fn get(
        &self,
        subject: Subject,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        self.attributes.get(subject, scope, keys).await
    }

    async fn delete(
        &self,
        subject: Subject,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        let deleted = self.attributes.delete(subject, scope, keys).await?;
        let gone = told(ValueChange::AttributesDeleted(subject, scope, &deleted));
        self.tell(std::iter::once(gone));
        Ok(deleted)
    }
}
