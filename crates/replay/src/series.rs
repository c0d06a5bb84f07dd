//! Time series and attributes as a replay sees them: as they were, with what the replay has written over them.

use std::sync::Arc;

use async_trait::async_trait;
use fieldline_core::clock::SharedClock;
use fieldline_core::ingest::EffectSink;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, PointsPage, SeriesDeletion, StoreEffects, StoreResult, TelemetryRow,
    TimeSeriesStore,
};
use fieldline_model::EntityKey;
use fieldline_model::kv::KvValue;
use fieldline_model::timeseries::{
    Aggregation, AggregationBucket, Attribute, AttributeScope, DataPoint, LatestValue, PointOrder, RangeQuery,
};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::record::{ReplayRecord, newer_of};

/// Values before the replayed time that are kept in memory.
const MAX_KEPT: usize = 100_000;
/// Points of a bucket that are read at once.
const PAGE: usize = 10_000;
/// Bytes of them.
const PAGE_BYTES: usize = 4 << 20;

/// The newest points before the replayed time.
type InitialPoints = FxHashMap<(EntityKey, Box<str>), Option<DataPoint>>;

/// Time series, written to memory only.
pub(super) struct DrySeriesStore {
    pub(super) real: Arc<dyn TimeSeriesStore>,
    pub(super) record: Arc<Mutex<ReplayRecord>>,
    pub(super) clock: SharedClock,
    /// The devices that are replayed: what is stored of them after the beginning is what the replay is to find out.
    pub(super) replayed: Arc<FxHashSet<EntityKey>>,
    /// Begin of the replayed time, milliseconds.
    pub(super) start: i64,
    before: Mutex<InitialPoints>,
}

impl DrySeriesStore {
    pub(super) fn new(
        real: Arc<dyn TimeSeriesStore>,
        record: Arc<Mutex<ReplayRecord>>,
        clock: SharedClock,
        replayed: Arc<FxHashSet<EntityKey>>,
        start: i64,
    ) -> Self {
        Self {
            real,
            record,
            clock,
            replayed,
            start,
            before: Mutex::default(),
        }
    }

    /// What is stored before this time is seen.
    fn horizon(&self, subject: EntityKey) -> i64 {
        if self.replayed.contains(&subject) {
            self.start
        } else {
            self.clock.now_ms().saturating_add(1)
        }
    }

    /// The newest stored point that is seen.
    async fn newest(&self, subject: EntityKey, key: &str) -> StoreResult<Option<DataPoint>> {
        let is_fixed = self.replayed.contains(&subject);
        if is_fixed && let Some(known) = self.before.lock().get(&(subject, Box::from(key))) {
            return Ok(known.clone());
        }
        let horizon = self.horizon(subject);
        let latest = self.real.latest(subject, Some(&[key.to_owned()])).await?;
        let found = match latest.into_iter().next() {
            Some(latest) if latest.point.ts < horizon => Some(latest.point),
            _ => {
                let query = RangeQuery {
                    start: 0,
                    end: horizon,
                    limit: 1,
                    order: PointOrder::Descending,
                };
                self.real.range(subject, key, query).await?.pop()
            }
        };
        if is_fixed {
            let mut before = self.before.lock();
            if before.len() < MAX_KEPT {
                before.insert((subject, key.into()), found.clone());
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl TimeSeriesStore for DrySeriesStore {
    async fn save(&self, rows: &[TelemetryRow<'_>]) -> StoreResult<()> {
        let mut record = self.record.lock();
        rows.iter().for_each(|row| record.write_telemetry(row));
        Ok(())
    }

    async fn keys(&self, subject: EntityKey) -> StoreResult<Vec<String>> {
        let mut keys = self.real.keys(subject).await?;
        keys.extend(self.record.lock().keys(subject));
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    async fn latest(&self, subject: EntityKey, keys: Option<&[String]>) -> StoreResult<Vec<LatestValue>> {
        let keys = match keys {
            Some(keys) => {
                let mut keys = keys.to_vec();
                keys.sort_unstable();
                keys.dedup();
                keys
            }
            None => self.keys(subject).await?,
        };
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            let stored = self.newest(subject, &key).await?;
            let record = self.record.lock();
            let written = record.latest(subject, &key);
            values.extend(newer_of(stored, written, key.clone()));
        }
        Ok(values)
    }

    async fn page(
        &self,
        subject: EntityKey,
        key: &str,
        query: RangeQuery,
        max_bytes: usize,
    ) -> StoreResult<PointsPage> {
        let stored = RangeQuery {
            end: query.end.min(self.horizon(subject)),
            ..query
        };
        let mut page = PointsPage::default();
        if stored.start < stored.end {
            page = self.real.page(subject, key, stored, max_bytes).await?;
        }
        // What was written in the time that the page covers goes with it.
        let (start, end) = match (page.rest, query.order) {
            (None, _) => (query.start, query.end),
            (Some((rest, _)), PointOrder::Ascending) => (query.start, rest),
            (Some((_, rest)), PointOrder::Descending) => (rest, query.end),
        };
        page.rest = page.rest.map(|(start, end)| match query.order {
            PointOrder::Ascending => (start, query.end),
            PointOrder::Descending => (start, end),
        });
        let mut written = self.record.lock().range(subject, key, start, end);
        if !written.is_empty() {
            let times: FxHashSet<i64> = written.iter().map(|point| point.ts).collect();
            page.points.retain(|point| !times.contains(&point.ts));
            page.points.append(&mut written);
            page.points.sort_by_key(|point| point.ts);
            if query.order == PointOrder::Descending {
                page.points.reverse();
            }
            if page.points.len() > query.limit {
                page.points.truncate(query.limit);
                page.rest = page.points.last().map(|last| match query.order {
                    PointOrder::Ascending => (last.ts.saturating_add(1), query.end),
                    PointOrder::Descending => (query.start, last.ts),
                });
            }
        }
        Ok(page)
    }

    async fn aggregate(
        &self,
        subject: EntityKey,
        key: &str,
        aggregation: Aggregation,
        buckets: &[AggregationBucket],
    ) -> StoreResult<Vec<DataPoint>> {
        let mut results = Vec::new();
        for bucket in buckets {
            let mut sum = BucketAggregate::default();
            let mut start = bucket.start;
            loop {
                let query = RangeQuery {
                    start,
                    end: bucket.end,
                    limit: PAGE,
                    order: PointOrder::Ascending,
                };
                let page = self.page_or_point(subject, key, query, PAGE_BYTES).await?;
                page.points.iter().for_each(|point| sum.add(&point.value));
                match page.rest {
                    Some((rest, _)) => start = rest,
                    None => break,
                }
            }
            let ts = bucket.middle();
            results.extend(sum.result(aggregation).map(|value| DataPoint { ts, value }));
        }
        Ok(results)
    }

    async fn delete(&self, _: EntityKey, _: &[String], _: SeriesDeletion) -> StoreResult<()> {
        self.record.lock().count_change("time series deleted");
        Ok(())
    }
}

#[async_trait]
impl EffectSink for DrySeriesStore {
    async fn take(&self, effects: &StoreEffects<'_>) -> StoreResult<()> {
        let mut record = self.record.lock();
        effects
            .telemetry
            .iter()
            .for_each(|row| record.write_telemetry(row));
        let stored = effects.attributes.iter().filter(|effect| effect.strategy.stored);
        stored.for_each(|effect| record.write_attributes(&effect.row));
        Ok(())
    }
}

/// Attributes, written to memory only. What is stored of them has no history: they are seen as they are now.
pub(super) struct DryAttributeStore {
    pub(super) real: Arc<dyn AttributeStore>,
    pub(super) record: Arc<Mutex<ReplayRecord>>,
}

#[async_trait]
impl AttributeStore for DryAttributeStore {
    async fn save(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        let mut record = self.record.lock();
        rows.iter().for_each(|row| record.write_attributes(row));
        Ok(())
    }

    async fn save_relaxed(&self, rows: &[AttributeRow<'_>]) -> StoreResult<()> {
        self.save(rows).await
    }

    async fn get(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
    ) -> StoreResult<Vec<Attribute>> {
        let stored = self.real.get(subject, scope, keys).await?;
        Ok(self.record.lock().overlay(subject, scope, keys, stored))
    }

    async fn delete(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: &[String],
    ) -> StoreResult<Vec<String>> {
        let existed = self.get(subject, scope, Some(keys)).await?;
        self.record.lock().delete_attributes(subject, scope, keys);
        Ok(existed.into_iter().map(|attribute| attribute.key).collect())
    }
}

/// What the values of a bucket come to.
#[derive(Default)]
struct BucketAggregate {
    count: i64,
    numbers: u64,
    sum: f64,
    /// While all numbers are whole and their sum fits.
    whole: Option<i64>,
    has_fraction: bool,
    least: Option<KvValue>,
    most: Option<KvValue>,
    first_text: Option<Box<str>>,
    last_text: Option<Box<str>>,
}

impl BucketAggregate {
    fn add(&mut self, value: &KvValue) {
        self.count += 1;
        if let Some(number) = value.as_number() {
            self.numbers += 1;
            self.sum += number;
            match value {
                KvValue::Long(long) if !self.has_fraction => {
                    self.whole = self.whole.unwrap_or(0).checked_add(*long);
                    self.has_fraction = self.whole.is_none();
                }
                _ => self.has_fraction = true,
            }
            let is = |known: &Option<KvValue>, better: fn(f64, f64) -> bool| {
                known
                    .as_ref()
                    .and_then(KvValue::as_number)
                    .is_none_or(|known| better(number, known))
            };
            if is(&self.least, |new, known| new < known) {
                self.least = Some(value.clone());
            }
            if is(&self.most, |new, known| new > known) {
                self.most = Some(value.clone());
            }
        } else if let KvValue::Text(text) = value {
            if self.first_text.as_ref().is_none_or(|known| text < known) {
                self.first_text = Some(text.clone());
            }
            if self.last_text.as_ref().is_none_or(|known| text > known) {
                self.last_text = Some(text.clone());
            }
        }
    }

    fn result(self, aggregation: Aggregation) -> Option<KvValue> {
        match aggregation {
            Aggregation::Count => (self.count > 0).then_some(KvValue::Long(self.count)),
            Aggregation::Min => self.least.or(self.first_text.map(KvValue::Text)),
            Aggregation::Max => self.most.or(self.last_text.map(KvValue::Text)),
            Aggregation::Avg => (self.numbers > 0).then(|| KvValue::Double(self.sum / self.numbers as f64)),
            Aggregation::Sum if self.numbers == 0 => None,
            Aggregation::Sum => Some(match self.whole {
                Some(whole) if !self.has_fraction => KvValue::Long(whole),
                _ => KvValue::Double(self.sum),
            }),
        }
    }
}
