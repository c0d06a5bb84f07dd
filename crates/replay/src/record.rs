//! What a replay has written, and what of it its readers see.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fieldline_model::EntityKey;
use fieldline_model::kv::{KvValue, unpack};
use fieldline_model::timeseries::{Attribute, AttributeScope, DataPoint, LatestValue};
use rustc_hash::{FxHashMap, FxHashSet};

use fieldline_core::ports::{AttributeRow, TelemetryRow};

/// Points that are remembered.
const MAX_POINTS: u64 = 2_000_000;
/// Bytes of texts, names and attributes that are remembered.
const MAX_BYTES: usize = 256 << 20;
/// Different names that are counted; what comes after them is counted together.
const MAX_NAMES: usize = 10_000;
/// What names that are no longer told apart are counted as.
const OTHER_NAMES: &str = "...";

/// Points of one series by their times.
pub(super) type RecordedSeries = BTreeMap<i64, KvValue>;
/// Attributes of one scope; those that were deleted have no value.
type RecordedAttributes = BTreeMap<String, Option<(i64, KvValue)>>;

/// What a replay has written.
#[derive(Default)]
pub(super) struct ReplayRecord {
    pub(super) series: FxHashMap<EntityKey, BTreeMap<Box<str>, RecordedSeries>>,
    latest: FxHashMap<EntityKey, BTreeMap<Box<str>, DataPoint>>,
    attributes: FxHashMap<(EntityKey, AttributeScope), RecordedAttributes>,
    /// Writes of attributes by scope and name.
    pub(super) attribute_writes: BTreeMap<String, u64>,
    /// Changes of entities by what they are.
    pub(super) changes: BTreeMap<Cow<'static, str>, u64>,
    points: u64,
    bytes: usize,
}

impl ReplayRecord {
    /// Whether it is as large as it may be.
    pub(super) fn is_full(&self) -> bool {
        self.points >= MAX_POINTS || self.bytes >= MAX_BYTES
    }

    /// How many points there are.
    pub(super) fn points(&self) -> u64 {
        self.points
    }

    /// Notes a change that is not made.
    pub(super) fn count_change(&mut self, what: impl Into<Cow<'static, str>>) {
        *self.changes.entry(what.into()).or_default() += 1;
    }

    /// Writes a row. What comes once it is full is not written: the replay is about to end.
    pub(super) fn write_telemetry(&mut self, row: &TelemetryRow<'_>) {
        if self.is_full() {
            return;
        }
        for (key, value) in unpack(row.values).filter_map(Result::ok) {
            let value = value.to_value();
            let size = value.heap_bytes();
            if row.strategy.history {
                let of = self.series.entry(row.subject).or_default();
                let series = match of.get_mut(key) {
                    Some(series) => series,
                    None => {
                        self.bytes += key.len();
                        of.entry(key.into()).or_default()
                    }
                };
                self.bytes += size;
                if series.insert(row.ts, value.clone()).is_none() {
                    self.points += 1;
                }
            }
            if row.strategy.latest {
                let of = self.latest.entry(row.subject).or_default();
                let point = DataPoint { ts: row.ts, value };
                match of.get_mut(key) {
                    Some(latest) if latest.ts <= row.ts => *latest = point,
                    Some(_) => {}
                    None => {
                        self.bytes += key.len() + size;
                        of.insert(key.into(), point);
                    }
                }
            }
        }
    }

    /// Writes attributes.
    pub(super) fn write_attributes(&mut self, row: &AttributeRow<'_>) {
        if self.is_full() {
            return;
        }
        for (key, value) in unpack(row.values).filter_map(Result::ok) {
            let value = value.to_value();
            let of = self.attributes.entry((row.subject, row.scope)).or_default();
            let size = key.len() + value.heap_bytes();
            if of.insert(key.to_owned(), Some((row.ts, value))).is_none() {
                self.bytes += size;
            }
            self.count_attribute(row.scope, key);
        }
    }

    /// Deletes attributes.
    pub(super) fn delete_attributes(&mut self, subject: EntityKey, scope: AttributeScope, keys: &[String]) {
        for key in keys {
            self.attributes
                .entry((subject, scope))
                .or_default()
                .insert(key.clone(), None);
        }
        self.count_change("attributes deleted");
    }

    fn count_attribute(&mut self, scope: AttributeScope, key: &str) {
        let name = format!("{}/{key}", scope.name());
        let is_known = self.attribute_writes.contains_key(&name) || self.attribute_writes.len() < MAX_NAMES;
        let name = if is_known { name } else { OTHER_NAMES.to_owned() };
        *self.attribute_writes.entry(name).or_default() += 1;
    }

    /// The points of a series with `start <= ts < end`.
    pub(super) fn range(&self, subject: EntityKey, key: &str, start: i64, end: i64) -> Vec<DataPoint> {
        let series = self.series.get(&subject).and_then(|of| of.get(key));
        let Some(series) = series.filter(|_| start < end) else {
            return Vec::new();
        };
        let point = |(ts, value): (&i64, &KvValue)| DataPoint {
            ts: *ts,
            value: value.clone(),
        };
        series.range(start..end).map(point).collect()
    }

    /// The latest value of a series.
    pub(super) fn latest(&self, subject: EntityKey, key: &str) -> Option<&DataPoint> {
        self.latest.get(&subject)?.get(key)
    }

    /// Names of the series of a subject.
    pub(super) fn keys(&self, subject: EntityKey) -> Vec<String> {
        let names: FxHashSet<&str> = [
            self.series
                .get(&subject)
                .map(|of| of.keys().map(|key| &**key).collect::<Vec<_>>()),
            self.latest
                .get(&subject)
                .map(|of| of.keys().map(|key| &**key).collect()),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Attributes as they are with what the replay has written over them.
    pub(super) fn overlay(
        &self,
        subject: EntityKey,
        scope: AttributeScope,
        keys: Option<&[String]>,
        stored: Vec<Attribute>,
    ) -> Vec<Attribute> {
        let Some(written) = self.attributes.get(&(subject, scope)) else {
            return stored;
        };
        let mut merged: BTreeMap<String, Attribute> = stored
            .into_iter()
            .map(|attribute| (attribute.key.clone(), attribute))
            .collect();
        for (key, value) in written {
            if keys.is_some_and(|keys| !keys.contains(key)) {
                continue;
            }
            match value {
                Some((ts, value)) => {
                    let attribute = Attribute {
                        key: key.clone(),
                        value: value.clone(),
                        last_update_ts: *ts,
                    };
                    merged.insert(key.clone(), attribute);
                }
                None => {
                    merged.remove(key);
                }
            }
        }
        merged.into_values().collect()
    }
}

/// The later one of two latest values; of two of the same time the written one.
pub(super) fn newer_of(
    stored: Option<DataPoint>,
    written: Option<&DataPoint>,
    key: String,
) -> Option<LatestValue> {
    let point = match (stored, written) {
        (Some(stored), Some(written)) if stored.ts > written.ts => stored,
        (_, Some(written)) => written.clone(),
        (Some(stored), None) => stored,
        (None, None) => return None,
    };
    Some(LatestValue { key, point })
}
