//! Compaction: merges the rows of sealed epochs into chunks.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{StoreErrorKind, StoreResult};
use fieldline_model::kv::{CorruptData, KvValue, pack, unpack};
use fjall::Slice;
use rustc_hash::FxHashMap;

use super::backing::{SeriesBatch, TableEntry, closed};
use super::block::{self, BlockRow};
use super::chunk::{self, MAX_POINTS, StoredPoint, is_expired};
use super::engine::{QUARANTINE_EPOCH, RowEpoch, SeriesEngine};
use super::error;
use super::keys::{self, EntityKeyBytes, ROW_BYTES};
use super::metrics::{self as names};
use super::read::read_header;
use super::store::{MaintenanceSignal, SeriesStore};

// Not `p`, which the first format used for its own tables.
/// The last block that was packed.
pub(super) const CURSOR_KEY: &[u8] = b"q";
/// Bytes of rows that one step packs, and so what it may take in memory, several times over.
const STEP_BYTES: usize = 2 << 20;
/// A chunk takes more points while it holds fewer than this many times what is added to it: so every point is rewritten
/// a bounded number of times, and chunks still become long.
const GROWTH: usize = 8;
const MIN_FULL_POINTS: usize = 512;
/// Text in one chunk, beyond which it is split.
const MAX_CHUNK_TEXT: usize = 1 << 20;

static CORRUPT_GATE: LogGate = LogGate::new(1);
static FAILURE_GATE: LogGate = LogGate::new(1);

/// A point, and the number of the row it comes from.
type NumberedPoint = (u64, StoredPoint);

/// The compaction thread.
pub(super) fn run(store: &Weak<SeriesStore>, signal: &Arc<MaintenanceSignal>) {
    let mut seen = 0;
    while !signal.is_stopped() {
        signal.wait(&mut seen, Duration::from_secs(5));
        loop {
            let Some(store) = store.upgrade() else { return };
            if signal.is_stopped() {
                return;
            }
            match store.compact_step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    if let Some(suppressed) = FAILURE_GATE.open() {
                        tracing::warn!(%error, suppressed, "packing time series failed, will be tried again");
                    }
                    break;
                }
            }
        }
    }
}

/// Blocks of a step, and where the next one begins.
struct CompactionStep {
    blocks: Vec<TableEntry>,
    is_last: bool,
}

impl SeriesStore {
    /// Seals what there is and packs it, for those who cannot wait for it to be due.
    pub fn compact_now(&self) -> StoreResult<()> {
        self.write_checkpoint(false)?;
        self.seal_active()?;
        while self.compact_step()? {}
        Ok(())
    }

    /// Writes what the tables hold in memory to disk, so that their size can be measured.
    pub fn write_tables(&self) -> StoreResult<()> {
        let engine = self.writable()?;
        engine
            .db
            .write_to_disk(&[&engine.chunks, &engine.latest.rows, &engine.attributes.rows])
    }

    /// Packs a bounded number of rows of the oldest sealed epoch. Returns whether there may be more to do.
    pub(super) fn compact_step(&self) -> StoreResult<bool> {
        let _packing = self.compacting.lock();
        let engine = self.writable()?;
        let Some(epoch) = engine.oldest_sealed() else {
            return Ok(false);
        };
        let step = read_step(&engine, &epoch)?;
        let mut batch = engine.batch(1024);
        let mut merger = ChunkMerger {
            engine: &engine,
            now: self.expiry_ms(),
            batch: &mut batch,
            quarantined: BTreeMap::new(),
            points: 0,
        };
        let subject = |key: &[u8]| keys::read_row_key(key).map(|(subject, _, _)| *subject);
        let same_subject = |a: &TableEntry, b: &TableEntry| subject(&a.0) == subject(&b.0);
        for blocks in step.blocks.chunk_by(same_subject) {
            merger.merge_subject(blocks)?;
        }
        let (points, stuck) = (merger.points, std::mem::take(&mut merger.quarantined));
        for (key, (ttl, values)) in stuck {
            let Some((subject, ts, seq)) = keys::read_row_key(&key) else {
                continue;
            };
            let values = &values;
            let rows = [BlockRow { ts, seq, ttl, values }];
            block::encode(QUARANTINE_EPOCH, subject, &rows, |key, value| {
                batch.insert(&engine.quarantine.rows, key, value);
            });
        }
        if let Some((key, _)) = step.blocks.last() {
            batch.insert(&engine.meta, CURSOR_KEY, key.clone());
        }
        if step.is_last {
            engine.mark_compacted(&epoch, &mut batch);
        }
        engine
            .commit(batch, &[&engine.chunks])
            .map_err(|error| self.note_write_failure(error))?;
        metrics::counter!(names::PACKED_POINTS).increment(points);
        if step.is_last {
            // The chunks must be durable before the rows go, which cannot be taken back.
            self.sync_commits(&engine)?;
            engine
                .drop_epoch(&epoch)
                .map_err(|error| self.note_write_failure(error))?;
            metrics::gauge!(names::SEALED_EPOCHS).set(engine.sealed_count() as f64);
        }
        Ok(true)
    }
}

fn read_step(engine: &SeriesEngine, epoch: &RowEpoch) -> StoreResult<CompactionStep> {
    let done = engine.meta.get(CURSOR_KEY)?;
    let from = match done {
        Some(key) if keys::read_epoch(&key) == Some(epoch.number) => key.to_vec(),
        _ => keys::epoch_key(epoch.number).to_vec(),
    };
    let end = epoch.end();
    let rows = (Bound::Excluded(&from[..]), Bound::Excluded(&end[..]));
    let mut step = CompactionStep {
        blocks: Vec::new(),
        is_last: true,
    };
    let mut bytes = 0;
    let window = |key: &[u8]| {
        let (subject, ts, _) = keys::read_row_key(key)?;
        Some((*subject, block::window(ts)))
    };
    for entry in epoch.rows.range(rows) {
        let (key, value) = entry?;
        // Rows of one time stay together, so that the newest of them can be told.
        if bytes >= STEP_BYTES
            && step
                .blocks
                .last()
                .is_some_and(|(last, _)| window(last) != window(&key))
        {
            step.is_last = false;
            break;
        }
        bytes += key.len() + value.len();
        step.blocks.push((key, value));
    }
    Ok(step)
}

struct ChunkMerger<'a> {
    engine: &'a SeriesEngine,
    now: i64,
    batch: &'a mut SeriesBatch,
    /// Rows that belong to corrupt chunks.
    quarantined: BTreeMap<[u8; ROW_BYTES], (u32, Vec<u8>)>,
    points: u64,
}

impl ChunkMerger<'_> {
    fn merge_subject(&mut self, blocks: &[TableEntry]) -> StoreResult<()> {
        let mut subject = None;
        let mut rows: Vec<BlockRow<'_>> = Vec::new();
        let mut series: FxHashMap<&str, Vec<NumberedPoint>> = FxHashMap::default();
        for (key, value) in blocks {
            let mut add = || {
                let (owner, _, _) =
                    keys::read_row_key(key).ok_or(CorruptData("block key has another length"))?;
                subject = Some(*owner);
                for row in block::rows(key, value)? {
                    rows.push(row?);
                }
                Ok(())
            };
            if let Err(cause) = add() {
                leave_out(keys::without_epoch(key), cause);
            }
        }
        // Blocks of one window overlap.
        if !rows.is_sorted_by_key(|row| (row.ts, row.seq)) {
            rows.sort_by_key(|row| (row.ts, row.seq));
        }
        for row in &rows {
            let mut add = || {
                for item in unpack(row.values) {
                    let (name, value) = item?;
                    let points = series.entry(name).or_default();
                    // Rows come by time and number, so the newest of one time comes last.
                    points.pop_if(|(_, last)| last.ts == row.ts);
                    let value = value.to_value();
                    let (ts, ttl) = (row.ts, row.ttl);
                    points.push((row.seq, StoredPoint { ts, ttl, value }));
                }
                Ok(())
            };
            if let (Err(cause), Some(subject)) = (add(), &subject) {
                leave_out(subject, cause);
            }
        }
        let Some(subject) = subject else {
            return Ok(());
        };
        for (name, points) in series {
            self.points += points.len() as u64;
            self.merge_series(&subject, name, points)?;
        }
        Ok(())
    }

    /// Merges points, ascending by time, into the chunks of a series.
    fn merge_series(
        &mut self,
        subject: &EntityKeyBytes,
        name: &str,
        points: Vec<NumberedPoint>,
    ) -> StoreResult<()> {
        let prefix = keys::series_prefix(subject, name);
        let (Some((_, first)), Some((_, last))) = (points.first(), points.last()) else {
            return Ok(());
        };
        let chunks = covering_chunks(self.engine, &prefix, first.ts, last.ts)?;
        let mut rest = points.as_slice();
        let before = |(from, _, _): &(i64, Slice, Slice)| rest.partition_point(|(_, point)| point.ts < *from);
        // Without chunks all of it, also what lies at the end of time.
        let (mut head, tail) = rest.split_at(chunks.first().map_or(rest.len(), before));
        rest = tail;
        let small = chunks.first().is_some_and(|(_, _, value)| {
            chunk::decode_header(value).is_ok_and(|(header, _)| header.count + head.len() <= MAX_POINTS / 2)
        });
        if !small {
            self.write(
                &prefix,
                head.iter().map(|(_, point)| point.clone()).collect(),
                None,
            );
            head = &[];
        }
        for (at, (_, key, value)) in chunks.iter().enumerate() {
            let until = chunks.get(at + 1).map_or(i64::MAX, |(from, _, _)| *from);
            let is_last = at + 1 == chunks.len();
            let count = rest.partition_point(|(_, point)| is_last || point.ts < until);
            let (mine, tail) = rest.split_at(count);
            rest = tail;
            let mine = [std::mem::take(&mut head), mine].concat();
            if mine.is_empty() {
                continue;
            }
            match self.merge_chunk(&prefix, key, value, &mine) {
                Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                    if let Some(suppressed) = CORRUPT_GATE.open() {
                        tracing::error!(%error, suppressed, "new points cannot join their chunk and stay as rows");
                    }
                    self.quarantine_rows(subject, name, mine);
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn merge_chunk(
        &mut self,
        prefix: &[u8],
        key: &[u8],
        value: &[u8],
        points: &[NumberedPoint],
    ) -> StoreResult<()> {
        let (header, rest) = read_header(key, value)?;
        let full = (GROWTH * points.len()).clamp(MIN_FULL_POINTS, MAX_POINTS);
        let is_after = points.first().is_some_and(|(_, point)| point.ts > header.last_ts);
        let new = points.iter().map(|(_, point)| point.clone());
        if is_after && header.count + points.len() > full {
            self.write(prefix, new.collect(), None);
            return Ok(());
        }
        let columns = chunk::decode_columns(&header, rest).map_err(|cause| error::corrupt(key, cause))?;
        self.write(prefix, merge(columns.into_points(), new.collect()), Some(key));
        Ok(())
    }

    /// Writes points as one or more chunks in the place of `old`.
    fn write(&mut self, prefix: &[u8], mut points: Vec<StoredPoint>, old: Option<&[u8]>) {
        let now = self.now;
        points.retain(|point| !is_expired(point.ts, point.ttl, now));
        write_chunks(self.engine, self.batch, prefix, &points, old);
    }

    fn quarantine_rows(&mut self, subject: &EntityKeyBytes, name: &str, points: Vec<NumberedPoint>) {
        for (seq, point) in points {
            let kept = self
                .quarantined
                .entry(keys::row_key(QUARANTINE_EPOCH, subject, point.ts, seq));
            let (ttl, values) = kept.or_insert_with(|| (point.ttl, Vec::new()));
            *ttl = point.ttl;
            pack(name, point.value.as_ref(), values);
        }
    }
}

/// Notes a row or block that does not decode. The checksum was right, so it was written like this: nothing readable is lost.
fn leave_out(key: &[u8], cause: CorruptData) {
    if let Some(suppressed) = CORRUPT_GATE.open() {
        let error = error::corrupt(key, cause);
        tracing::error!(%error, suppressed, "rows left out of packing");
    }
}

/// Adds chunks of points to a batch, in the place of an old chunk.
pub(super) fn write_chunks(
    engine: &SeriesEngine,
    batch: &mut SeriesBatch,
    prefix: &[u8],
    points: &[StoredPoint],
    old: Option<&[u8]>,
) {
    let first = points.first().map(|point| keys::chunk_key(prefix, point.ts));
    if let Some(old) = old
        && first.as_deref() != Some(old)
    {
        batch.remove(&engine.chunks, old);
    }
    for part in split(points) {
        let Some(first) = part.first() else { continue };
        let bytes = chunk::encode(part);
        metrics::counter!(names::CHUNKS_WRITTEN).increment(1);
        metrics::counter!(names::CHUNK_BYTES).increment(bytes.len() as u64);
        batch.insert(&engine.chunks, keys::chunk_key(prefix, first.ts), bytes);
    }
}

/// Splits points evenly into parts that are not too long, and those by the text in them.
fn split(points: &[StoredPoint]) -> Vec<&[StoredPoint]> {
    let even = points
        .len()
        .div_ceil(points.len().div_ceil(MAX_POINTS).max(1))
        .max(1);
    let mut parts = Vec::new();
    for part in points.chunks(even) {
        let mut from = 0;
        let mut text = 0;
        for (at, point) in part.iter().enumerate() {
            let bytes = match &point.value {
                KvValue::Text(text) | KvValue::Json(text) => text.len(),
                _ => 0,
            };
            if text + bytes > MAX_CHUNK_TEXT && at > from {
                parts.extend(part.get(from..at));
                (from, text) = (at, 0);
            }
            text += bytes;
        }
        parts.extend(part.get(from..));
    }
    parts
}

/// Chunks of a series as (first time, key, value): those whose domain meets the times, or else the first one after.
fn covering_chunks(
    engine: &SeriesEngine,
    prefix: &[u8],
    first: i64,
    last: i64,
) -> StoreResult<Vec<(i64, Slice, Slice)>> {
    let start = keys::chunk_key(prefix, first);
    let before = engine
        .chunks
        .range(closed(&keys::chunk_key(prefix, i64::MIN), &start))
        .next_back()
        .transpose()?;
    let from = before.map_or(start, |(key, _)| key.to_vec());
    let mut chunks = Vec::new();
    for entry in engine
        .chunks
        .range(closed(&from, &keys::chunk_key(prefix, i64::MAX)))
    {
        let (key, value) = entry?;
        let Some(begins) = keys::chunk_first_ts(&key) else {
            continue;
        };
        if begins > last && !chunks.is_empty() {
            break;
        }
        chunks.push((begins, key, value));
        if begins > last {
            break;
        }
    }
    Ok(chunks)
}

/// Merges two ascending lists; the new point wins where both have one.
fn merge(old: Vec<StoredPoint>, new: Vec<StoredPoint>) -> Vec<StoredPoint> {
    let mut merged = Vec::with_capacity(old.len() + new.len());
    let mut old = old.into_iter().peekable();
    for point in new {
        while let Some(earlier) = old.next_if(|other| other.ts < point.ts) {
            merged.push(earlier);
        }
        old.next_if(|other| other.ts == point.ts);
        merged.push(point);
    }
    merged.extend(old);
    merged
}
