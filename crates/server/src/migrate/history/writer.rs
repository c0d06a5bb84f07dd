//! Writes what was read in batches, each durable before it is noted how far the series are.

use std::ops::Range;
use std::sync::Arc;

use fieldline_core::clock::{Clock as _, SystemClock};
use fieldline_core::ports::{
    AttributeRow, AttributeStore, StoreResult, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_model::kv;
use fieldline_model::timeseries::{Attribute, AttributeScope, DataPoint, LatestValue};
use fieldline_model::{EntityId, EntityKey};
use fieldline_storage::series::SeriesStore;

use super::progress::HistoryProgress;
use super::target::HistorySubject;
use super::{MigrateHistoryError, ProgressPrinter, say};

/// What a batch holds, roughly.
const BATCH_ROWS: usize = 20_000;
const BATCH_BYTES: usize = 4 << 20;
/// Points that have less to live are left out, so that they do not end between being written and being counted.
const LONGEST_RUN_SECONDS: i64 = 3_600;

/// A series that has got points.
pub(super) struct CopiedSeries {
    /// What the entity is called, for messages.
    pub(super) entity: String,
    pub(super) subject: HistorySubject,
    pub(super) series: String,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) points: u64,
}

struct PendingRow {
    subject: HistorySubject,
    ts: i64,
    strategy: TelemetrySaveStrategy,
    values: Range<usize>,
}

struct PendingAttribute {
    subject: EntityKey,
    scope: AttributeScope,
    ts: i64,
    values: Range<usize>,
}

/// Writes to the target.
pub(super) struct HistoryWriter {
    series: Arc<SeriesStore>,
    progress: HistoryProgress,
    rows: Vec<PendingRow>,
    attributes: Vec<PendingAttribute>,
    /// The packed values of both.
    values: Vec<u8>,
    /// How far series are once all of that is durable.
    reached: Vec<(EntityId, EntityKey, String, i64)>,
    points: u64,
    expired: u64,
    latest: u64,
    attribute_count: u64,
    printer: ProgressPrinter,
}

impl HistoryWriter {
    pub(super) fn new(series: Arc<SeriesStore>, progress: HistoryProgress) -> Self {
        Self {
            series,
            progress,
            rows: Vec::new(),
            attributes: Vec::new(),
            values: Vec::new(),
            reached: Vec::new(),
            points: 0,
            expired: 0,
            latest: 0,
            attribute_count: 0,
            printer: ProgressPrinter::default(),
        }
    }

    /// The time of the last point of a series that was copied in an earlier run.
    pub(super) fn until(&self, from: EntityId, subject: HistorySubject, series: &str) -> Option<i64> {
        self.progress.until(from, subject.key, series)
    }

    /// Takes points of a series, and counts them; without those past their time-to-live.
    pub(super) async fn put_points(
        &mut self,
        copied: &mut CopiedSeries,
        points: &[DataPoint],
    ) -> Result<(), MigrateHistoryError> {
        let subject = copied.subject;
        let begin = expired_until(subject);
        for point in points {
            if point.ts < begin {
                self.expired += 1;
                continue;
            }
            let values = self.pack(&copied.series, &point.value);
            self.rows.push(PendingRow {
                subject,
                ts: point.ts,
                strategy: TelemetrySaveStrategy::ALL,
                values,
            });
            copied.first = copied.first.min(point.ts);
            copied.last = copied.last.max(point.ts);
            copied.points += 1;
            self.points += 1;
        }
        self.printer.print("points", self.points);
        self.save_when_full().await
    }

    /// Notes, once what was taken is durable, that a series is copied up to a time. Behind one of the future nothing else would
    /// ever be seen.
    pub(super) fn reach(&mut self, from: EntityId, subject: HistorySubject, series: &str, time_ms: i64) {
        let until = time_ms.min(SystemClock.now_ms());
        self.reached.push((from, subject.key, series.to_owned(), until));
    }

    /// Takes latest values. One that is older than what is here changes nothing.
    pub(super) async fn put_latest(
        &mut self,
        subject: HistorySubject,
        values: Vec<LatestValue>,
    ) -> Result<(), MigrateHistoryError> {
        let begin = expired_until(subject);
        for latest in values.into_iter().filter(|latest| latest.point.ts >= begin) {
            let values = self.pack(&latest.key, &latest.point.value);
            self.rows.push(PendingRow {
                subject,
                ts: latest.point.ts,
                strategy: TelemetrySaveStrategy::LATEST,
                values,
            });
            self.latest += 1;
        }
        self.save_when_full().await
    }

    pub(super) async fn put_attributes(
        &mut self,
        subject: HistorySubject,
        attributes: Vec<(AttributeScope, Attribute)>,
    ) -> Result<(), MigrateHistoryError> {
        for (scope, attribute) in attributes {
            let values = self.pack(&attribute.key, &attribute.value);
            self.attributes.push(PendingAttribute {
                subject: subject.key,
                scope,
                ts: attribute.last_update_ts,
                values,
            });
            self.attribute_count += 1;
        }
        self.save_when_full().await
    }

    fn pack(&mut self, name: &str, value: &kv::KvValue) -> Range<usize> {
        let begin = self.values.len();
        kv::pack(name, value.as_ref(), &mut self.values);
        begin..self.values.len()
    }

    async fn save_when_full(&mut self) -> Result<(), MigrateHistoryError> {
        let rows = self.rows.len() + self.attributes.len();
        if rows >= BATCH_ROWS || self.values.len() >= BATCH_BYTES {
            self.save().await?;
        }
        Ok(())
    }

    /// Makes durable what was taken, and notes how far the series are.
    pub(super) async fn save(&mut self) -> Result<(), MigrateHistoryError> {
        self.save_rows().await?;
        self.save_attributes().await?;
        self.rows.clear();
        self.attributes.clear();
        self.values.clear();
        self.progress
            .note(self.reached.drain(..))
            .map_err(MigrateHistoryError::Progress)
    }

    async fn save_rows(&self) -> StoreResult<()> {
        let rows: Vec<TelemetryRow<'_>> = self
            .rows
            .iter()
            .map(|row| TelemetryRow {
                subject: row.subject.key,
                ts: row.ts,
                ttl_seconds: row.subject.ttl_seconds,
                strategy: row.strategy,
                values: self.values.get(row.values.clone()).unwrap_or_default(),
            })
            .collect();
        match rows.is_empty() {
            true => Ok(()),
            false => TimeSeriesStore::save(&*self.series, &rows).await,
        }
    }

    async fn save_attributes(&self) -> StoreResult<()> {
        let rows: Vec<AttributeRow<'_>> = self
            .attributes
            .iter()
            .map(|row| AttributeRow {
                subject: row.subject,
                scope: row.scope,
                ts: row.ts,
                values: self.values.get(row.values.clone()).unwrap_or_default(),
            })
            .collect();
        match rows.is_empty() {
            true => Ok(()),
            false => AttributeStore::save(&*self.series, &rows).await,
        }
    }

    /// Says what was copied.
    pub(super) fn end(&mut self, entities: usize) {
        self.printer.end();
        let Self {
            points,
            latest,
            attribute_count,
            expired,
            ..
        } = self;
        say(format_args!(
            "{entities} entities: {points} points, {latest} latest values and {attribute_count} attributes copied and counted"
        ));
        if *expired > 0 {
            say(format_args!(
                "{expired} points left out that are past their time-to-live"
            ));
        }
    }
}

/// The first time whose points are still kept when they are counted.
pub(super) fn expired_until(subject: HistorySubject) -> i64 {
    match i64::from(subject.ttl_seconds) {
        0 => i64::MIN,
        seconds => SystemClock.now_ms() - (seconds - (seconds / 2).min(LONGEST_RUN_SECONDS)) * 1_000,
    }
}
