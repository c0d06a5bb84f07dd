//! The ports that the store implements. What may touch the disk runs on a blocking thread, except `apply`, whose callers
//! own their threads.

use async_trait::async_trait;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, IngestStore, Offset, Partition, PointsPage, SeriesDeletion, StateRow,
    StoreEffects, StoreError, StoreErrorKind, StoreResult, TelemetryRow, TimeSeriesStore, ValueRemoval,
    ValueRemovalScope, ValueTransfer,
};
use fieldline_model::EntityKey;
use fieldline_model::timeseries::{
    Aggregation, AggregationBucket, Attribute, AttributeScope, DataPoint, LatestValue, RangeQuery,
};
use tokio::runtime::Handle;

use super::cached_value::CachedValue;
use super::chunk::is_expired;
use super::read::SeriesSnapshot;
use super::rows::RowReadOptions;
use super::store::{SeriesStore, is_usable};
use super::{aggregate, error, keys};

impl SeriesStore {
    /// Runs disk work where it disturbs nobody: on a blocking thread, or right here outside of a runtime.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SeriesStore) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let store = self.me.upgrade().ok_or_else(error::closed)?;
        let Ok(runtime) = Handle::try_current() else {
            return work(&store);
        };
        match runtime.spawn_blocking(move || work(&store)).await {
            Ok(outcome) => outcome,
            Err(cause) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "the time-series store has failed at this call",
            )
            .caused_by(cause)),
        }
    }
}

/// Reads, and once more where rows were packed before all their values had been read.
fn retry_if_compacted<T>(read: impl Fn() -> StoreResult<T>) -> StoreResult<T> {
    match read() {
        Err(error) if error.kind() == StoreErrorKind::Unavailable => read(),
        outcome => outcome,
    }
}

/// Rows that outlive the call they came with.
struct OwnedRow<H> {
    head: H,
    values: Vec<u8>,
}

fn check_values(values: &[u8]) -> StoreResult<()> {
    if is_usable(values) {
        return Ok(());
    }
    Err(StoreError::new(StoreErrorKind::Invalid, "malformed key-values"))
}

fn own_attributes(rows: &[AttributeRow<'_>]) -> StoreResult<Vec<OwnedRow<(EntityKey, AttributeScope, i64)>>> {
    rows.iter()
        .map(|row| {
            check_values(row.values)?;
            Ok(OwnedRow {
                head: (row.subject, row.scope, row.ts),
                values: row.values.to_vec(),
            })
        })
        .collect()
}

fn lend_attribute(row: &OwnedRow<(EntityKey, AttributeScope, i64)>) -> AttributeRow<'_> {
    let (subject, scope, ts) = row.head;
    AttributeRow {
        subject,
        scope,
        ts,
        values: &row.values,
    }
}

fn is_wanted(keys: Option<&[String]>, cell: &CachedValue) -> bool {
    keys.is_none_or(|keys| keys.iter().any(|key| **key == *cell.name))
}

#[async_trait]
impl TimeSeriesStore for SeriesStore {
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()> {
        let mut owned = Vec::with_capacity(rows.len());
        for row in rows {
            check_values(row.values)?;
            owned.push(OwnedRow {
                head: (row.subject, row.ts, row.ttl_seconds, row.strategy),
                values: row.values.to_vec(),
            });
        }
        if owned.is_empty() {
            return Ok(());
        }
        self.blocking(move |store| {
            let rows: Vec<TelemetryRow<'_>> = owned
                .iter()
                .map(|row| TelemetryRow {
                    subject: row.head.0,
                    ts: row.head.1,
                    ttl_seconds: row.head.2,
                    strategy: row.head.3,
                    values: &row.values,
                })
                .collect();
            let rows: Vec<&TelemetryRow<'_>> = rows.iter().collect();
            store.direct(|engine, _| store.put_telemetry(engine, &rows))
        })
        .await
    }

    async fn keys(&self, subject: EntityKey) -> StoreResult<Vec<String>> {
        let cells = self.latest_values(subject).await?;
        Ok(cells.iter().map(|cell| cell.name.to_string()).collect())
    }

    async fn latest(&self, subject: EntityKey, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        let now = self.now_ms();
        let cells = self.latest_values(subject).await?.into_iter();
        Ok(cells
            .filter(|cell| is_wanted(keys, cell) && !is_expired(cell.ts, cell.ttl, now))
            .map(|cell| LatestValue {
                key: cell.name.to_string(),
                point: DataPoint {
                    ts: cell.ts,
                    value: cell.value,
                },
            })
            .collect())
    }

    async fn page(
        &self,
        subject: EntityKey,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage> {
        let key = key.to_owned();
        self.blocking(move |store| {
            let engine = store.engine()?;
            let wanted = RowReadOptions {
                order: query.order,
                max_bytes,
                texts: true,
                now: store.now_ms(),
            };
            retry_if_compacted(|| {
                let span = (query.start, query.end);
                SeriesSnapshot::new(store, &engine, subject, &key, span, wanted)?.page(query)
            })
        })
        .await
    }

    async fn aggregate(
        &self,
        subject: EntityKey,
        key: &str,
        aggregation: Aggregation,
        buckets: &[AggregationBucket],
    ) -> StoreResult<Vec<DataPoint>> {
        let (key, buckets) = (key.to_owned(), buckets.to_vec());
        self.blocking(move |store| {
            let engine = store.engine()?;
            let start = buckets.iter().map(|bucket| bucket.start).min().unwrap_or(0);
            let end = buckets.iter().map(|bucket| bucket.end).max().unwrap_or(0);
            let wanted = aggregate::wanted(aggregation, store.now_ms());
            retry_if_compacted(|| {
                let series = SeriesSnapshot::new(store, &engine, subject, &key, (start, end), wanted)?;
                aggregate::aggregate(&series, aggregation, &buckets, wanted.now)
            })
        })
        .await
    }

    async fn delete(&self, subject: EntityKey, keys: &[String], what: SeriesDeletion) -> StoreResult<()> {
        let keys = keys.to_vec();
        self.blocking(move |store| store.delete_series(subject, &keys, what))
            .await
    }
}

impl SeriesStore {
    async fn latest_values(&self, subject: EntityKey) -> StoreResult<Vec<CachedValue>> {
        let group = keys::latest_group(subject);
        if let Some(cells) = self.latest.peek(&group) {
            return cells;
        }
        self.blocking(move |store| store.latest.get(&store.engine()?.latest, &group))
            .await
    }
}

#[async_trait]
impl AttributeStore for SeriesStore {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        let owned = own_attributes(rows)?;
        self.blocking(move |store| {
            store.direct(|engine, _| {
                for row in &owned {
                    store.put_attributes(engine, &lend_attribute(row))?;
                }
                Ok(())
            })
        })
        .await
    }

    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        let owned = own_attributes(rows)?;
        self.blocking(move |store| {
            if store.attributes.is_overfull() {
                store.write_checkpoint(false)?;
            }
            let _shared = store.gate.read();
            let engine = store.writable()?;
            for row in &owned {
                store.put_attributes(&engine, &lend_attribute(row))?;
            }
            Ok(())
        })
        .await
    }

    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        let group = keys::attribute_group(subject, scope);
        let cells = match self.attributes.peek(&group) {
            Some(cells) => cells?,
            None => {
                self.blocking(move |store| store.attributes.get(&store.engine()?.attributes, &group))
                    .await?
            }
        };
        Ok(cells
            .into_iter()
            .filter(|cell| is_wanted(keys, cell))
            .map(|cell| Attribute {
                key: cell.name.to_string(),
                value: cell.value,
                last_update_ts: cell.ts,
            })
            .collect())
    }

    async fn delete(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        let keys = keys.to_vec();
        self.blocking(move |store| store.delete_attributes(subject, scope, &keys))
            .await
    }
}

impl SeriesStore {
    /// Deletes the named attributes of a scope, and returns the names that existed.
    fn delete_attributes(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        names: &[String],
    ) -> StoreResult<Vec<String>> {
        let group = keys::attribute_group(subject, scope);
        self.direct(|engine, batch| {
            let mut deleted = Vec::new();
            for cell in self.attributes.get(&engine.attributes, &group)? {
                if is_wanted(Some(names), &cell) {
                    deleted.push(cell.name.to_string());
                }
            }
            self.attributes
                .remove(&engine.attributes, &group, batch, |cell| {
                    is_wanted(Some(names), cell)
                })?;
            Ok(deleted)
        })
    }
}

#[async_trait]
impl ValueTransfer for SeriesStore {
    async fn transfer(&self, from: EntityKey, to: EntityKey) -> StoreResult<bool> {
        self.blocking(move |store| store.transfer_all(from, to)).await
    }
}

#[async_trait]
impl ValueRemoval for SeriesStore {
    /// Whoever is dropped here, as at a stop, ends between two steps.
    async fn remove(&self, gone: &[ValueRemovalScope], spared: &[EntityKey]) -> StoreResult<()> {
        let (gone, spared) = (gone.to_vec(), spared.to_vec());
        let mut removal = self
            .blocking(move |store| store.begin_removal(&gone, &spared))
            .await?;
        loop {
            let step = move |store: &SeriesStore| {
                let has_more = store.removal_step(&mut removal)?;
                Ok((removal, has_more))
            };
            let (left, has_more) = self.blocking(step).await?;
            removal = left;
            if !has_more {
                break;
            }
        }
        self.blocking(move |store| store.end_removal(&removal)).await
    }
}

#[async_trait]
impl IngestStore for SeriesStore {
    async fn apply(&self, partition: Partition, next: Offset, effects: &StoreEffects<'_>) -> StoreResult<()> {
        self.apply_effects(partition, next, effects)
    }

    async fn apply_between_records(
        &self,
        partition: Partition,
        effects: &StoreEffects<'_>,
    ) -> StoreResult<()> {
        self.store_effects(partition, None, effects)
    }

    async fn resume_position(&self, partition: Partition) -> StoreResult<Option<Offset>> {
        self.engine()?;
        Ok(self.position(partition))
    }

    async fn rewind(&self, partition: Partition, to: Offset) -> StoreResult<()> {
        self.blocking(move |store| store.rewind_position(partition, to))
            .await
    }

    async fn states(&self, partition: Partition) -> StoreResult<Vec<StateRow>> {
        self.blocking(move |store| {
            // What a running checkpoint has taken would be in neither place.
            let _one = store.checkpointing.lock();
            store.states.of(&store.engine()?.states, partition)
        })
        .await
    }

    async fn checkpoint(&self) -> StoreResult<Vec<(Partition, Offset)>> {
        self.blocking(|store| {
            store.write_checkpoint(false)?;
            Ok(store.durable_positions())
        })
        .await
    }
}
