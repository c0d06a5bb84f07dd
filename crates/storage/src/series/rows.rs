//! Points of one series as rows hold them. Of many long texts only the places are kept in memory, until one is wanted.

use fieldline_core::ports::{StoreError, StoreErrorKind, StoreResult};
use fieldline_model::kv::{CorruptData, KvValue, KvValueRef, unpack};
use fieldline_model::timeseries::{DataPoint, PointOrder};
use fjall::Slice;

use super::backing::{TableEntry, TableSnapshot};
use super::block::{self, BlockRow};
use super::chunk::is_expired;
use super::engine::RowEpoch;
use super::error;
use super::keys::{self, EntityKeyBytes};
use super::store::SeriesStore;

/// Texts that the points of one table may take in memory while they are put in order.
const HELD_BYTES: usize = 1 << 20;
/// Shorter texts are held all the same: a place is no shorter.
const SHORT_BYTES: usize = 64;

/// The value of a point.
#[derive(Debug, Clone, PartialEq)]
enum LazyValue {
    Here(KvValue),
    /// In the row of this number in a block; so many bytes.
    Stored(Slice, usize),
}

/// A point with what decides between several at one time: rows beat chunks, later rows beat earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RankedPoint {
    pub(super) ts: i64,
    pub(super) ttl: u32,
    value: LazyValue,
    /// Number of the row plus one; 0 for a point of a chunk.
    pub(super) rank: u64,
}

impl RankedPoint {
    /// A point of a chunk.
    pub(super) const fn packed(ts: i64, ttl: u32, value: KvValue) -> Self {
        Self {
            ts,
            ttl,
            value: LazyValue::Here(value),
            rank: 0,
        }
    }

    /// Bytes that the point takes with its value.
    pub(super) fn cost(&self) -> usize {
        let text = match &self.value {
            LazyValue::Here(value) => value.heap_bytes(),
            LazyValue::Stored(_, bytes) => *bytes,
        };
        size_of::<DataPoint>() + text
    }
}

/// Which values of rows are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowReadOptions {
    /// Where reading begins.
    pub(super) order: PointOrder,
    /// Bytes of rows in memory that are taken; the last one may be beyond.
    pub(super) max_bytes: usize,
    /// Without them, texts are empty.
    pub(super) texts: bool,
    /// The time, for what has expired.
    pub(super) now: i64,
}

impl RowReadOptions {
    fn value(&self, value: KvValueRef<'_>) -> KvValue {
        match value {
            KvValueRef::Text(_) if !self.texts => KvValue::Text("".into()),
            KvValueRef::Json(_) if !self.texts => KvValue::Json("".into()),
            value => value.to_value(),
        }
    }
}

/// The value of a name in packed key-values.
fn value_of<'a>(name: &str, values: &'a [u8]) -> Result<Option<KvValueRef<'a>>, CorruptData> {
    let mut found = None;
    for item in unpack(values) {
        let (other, value) = item?;
        if other == name {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Rows in memory.
#[derive(Debug, Default)]
pub(super) struct MemtableRows {
    /// By time, the one that counts of each.
    pub(super) points: Vec<RankedPoint>,
    /// The time of the first one that was not taken, as there were enough.
    pub(super) next: Option<i64>,
}

impl MemtableRows {
    /// The rows of a subject in a span that are in memory and have the name.
    pub(super) fn read(
        store: &SeriesStore,
        subject: &EntityKeyBytes,
        name: &str,
        (start, end): (i64, i64),
        wanted: &RowReadOptions,
    ) -> StoreResult<Self> {
        let take = |rows: &mut dyn Iterator<Item = BlockRow<'_>>| {
            let mut found = Vec::new();
            for row in rows {
                if let Some(value) = value_of(name, row.values)? {
                    found.push((row, value));
                }
            }
            Ok(Self::newest(found, wanted))
        };
        let read: Result<Self, CorruptData> = store.memtable.read(subject, start, end, take);
        read.map_err(|cause| error::corrupt(subject, cause))
    }

    fn newest(mut found: Vec<(BlockRow<'_>, KvValueRef<'_>)>, wanted: &RowReadOptions) -> Self {
        found.sort_unstable_by_key(|(row, _)| (row.ts, std::cmp::Reverse(row.seq)));
        found.dedup_by_key(|(row, _)| row.ts);
        if wanted.order == PointOrder::Descending {
            found.reverse();
        }
        let mut rows = Self::default();
        let mut bytes = 0;
        for (row, value) in found {
            if bytes >= wanted.max_bytes {
                rows.next = Some(row.ts);
                break;
            }
            // One that has expired still hides what lies below it.
            let value = match is_expired(row.ts, row.ttl, wanted.now) {
                true => KvValue::Bool(false),
                false => wanted.value(value),
            };
            let taken = ranked(&row, LazyValue::Here(value));
            bytes += taken.cost();
            rows.points.push(taken);
        }
        if wanted.order == PointOrder::Descending {
            rows.points.reverse();
        }
        rows
    }
}

fn ranked(row: &BlockRow<'_>, value: LazyValue) -> RankedPoint {
    RankedPoint {
        ts: row.ts,
        ttl: row.ttl,
        value,
        rank: row.seq.saturating_add(1),
    }
}

/// Points of blocks that are being put in order.
#[derive(Debug, Default)]
pub(super) struct RowCollector {
    pub(super) points: Vec<RankedPoint>,
    /// Bytes of texts that are held.
    held: usize,
}

impl RowCollector {
    /// Adds the rows of a block that lie in a range and have the name.
    pub(super) fn add_rows(
        &mut self,
        key: &Slice,
        value: &Slice,
        name: &str,
        (start, end): (i64, i64),
        wanted: &RowReadOptions,
    ) -> StoreResult<()> {
        let mut add = || {
            for row in block::rows(key, value)? {
                let row = row?;
                if !(start..end).contains(&row.ts) {
                    continue;
                }
                if let Some(value) = value_of(name, row.values)? {
                    let value = self.hold(key, value, wanted);
                    self.points.push(ranked(&row, value));
                }
            }
            Ok(())
        };
        add().map_err(|cause| error::corrupt(keys::without_epoch(key), cause))
    }

    fn hold(&mut self, key: &Slice, value: KvValueRef<'_>, wanted: &RowReadOptions) -> LazyValue {
        if let KvValueRef::Text(text) | KvValueRef::Json(text) = value
            && wanted.texts
            && text.len() > SHORT_BYTES
        {
            if self.held + text.len() > HELD_BYTES {
                return LazyValue::Stored(key.clone(), text.len());
            }
            self.held += text.len();
        }
        LazyValue::Here(wanted.value(value))
    }

    /// Sorts the points, and keeps the one that counts of each time.
    pub(super) fn keep_newest(&mut self) {
        self.sort();
        self.points.dedup_by(|later, kept| {
            let same = later.ts == kept.ts;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        self.held = self.points.iter().map(RankedPoint::cost).sum();
    }

    pub(super) fn sort(&mut self) {
        let by_time = |it: &RankedPoint| (it.ts, it.rank);
        if !self.points.is_sorted_by_key(by_time) {
            self.points.sort_by_key(by_time);
        }
    }
}

/// Reads values where they are stored.
pub(super) struct RowValueReader<'a> {
    pub(super) snapshot: &'a TableSnapshot,
    pub(super) epochs: &'a [std::sync::Arc<RowEpoch>],
    pub(super) name: &'a str,
    /// The last block, which often has the next value, too.
    pub(super) last: Option<TableEntry>,
}

impl RowValueReader<'_> {
    /// The value of a point.
    pub(super) fn take(&mut self, point: RankedPoint) -> StoreResult<KvValue> {
        let key = match point.value {
            LazyValue::Here(value) => return Ok(value),
            LazyValue::Stored(key, _) => key,
        };
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            self.last = None;
            let number = keys::read_epoch(&key);
            let epoch = self.epochs.iter().find(|epoch| Some(epoch.number) == number);
            let block = match epoch {
                Some(epoch) => self.snapshot.get(&epoch.rows, &key)?,
                None => None,
            };
            self.last = block.map(|block| (key.clone(), block));
        }
        let Some((key, block)) = &self.last else {
            return Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "what was read has just been moved: try again",
            ));
        };
        let find = || {
            for row in block::rows(key, block)? {
                let row = row?;
                if row.ts == point.ts && row.seq.saturating_add(1) == point.rank {
                    return value_of(self.name, row.values);
                }
            }
            Err(CorruptData("a row of a block is gone"))
        };
        let found = find().and_then(|value| value.ok_or(CorruptData("a value of a row is gone")));
        let found = found.map_err(|cause| error::corrupt(keys::without_epoch(key), cause))?;
        Ok(found.to_value())
    }
}
