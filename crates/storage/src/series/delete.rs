//! Deletion of series, and of ranges of them.
//!
//! A deletion first writes a barrier: a checkpoint together with the new latest values. Rows that were numbered before it
//! and all chunks are then searched and rewritten while the ingest goes on; the compaction is kept out meanwhile.

use std::sync::atomic::Ordering;

use fieldline_core::ports::{SeriesDeletion, StoreResult};
use fieldline_model::EntityKey;
use fieldline_model::kv::{CorruptData, pack, unpack};

use super::backing::{SeriesBatch, SeriesTable, closed, half_open};
use super::block::BlockRow;
use super::cached_value::CachedValue;
use super::chunk::StoredPoint;
use super::compaction::write_chunks;
use super::engine::SeriesEngine;
use super::read::{SeriesSnapshot, read_header};
use super::store::SeriesStore;
use super::{block, chunk, error, keys};

/// Bytes of changes that are written together.
pub(super) const BATCH_BYTES: usize = 1 << 20;
/// What a removal costs.
const REMOVAL_BYTES: usize = 256;

/// Collects changes and writes them some at a time.
pub(super) struct EditBatcher<'a> {
    store: &'a SeriesStore,
    engine: &'a SeriesEngine,
    pub(super) batch: SeriesBatch,
    bytes: usize,
}

impl<'a> EditBatcher<'a> {
    pub(super) fn new(store: &'a SeriesStore, engine: &'a SeriesEngine) -> Self {
        Self {
            store,
            engine,
            batch: engine.batch(64),
            bytes: 0,
        }
    }

    /// Counts a change. Returns whether the changes are many.
    fn add(&mut self, bytes: usize) -> bool {
        self.bytes += bytes.max(REMOVAL_BYTES);
        self.bytes >= BATCH_BYTES
    }

    /// Counts a change, and writes the changes when they are many.
    fn count_change(&mut self, table: &SeriesTable, bytes: usize) -> StoreResult<()> {
        if self.add(bytes) {
            self.flush(table)
        } else {
            Ok(())
        }
    }

    /// Writes the changes.
    pub(super) fn flush(&mut self, table: &SeriesTable) -> StoreResult<()> {
        self.bytes = 0;
        let batch = std::mem::replace(&mut self.batch, self.engine.batch(64));
        self.engine
            .commit(batch, &[table])
            .map_err(|error| self.store.note_write_failure(error))
    }
}

impl SeriesStore {
    pub(super) fn delete_series(
        &self,
        subject: EntityKey,
        names: &[String],
        what: SeriesDeletion,
    ) -> StoreResult<()> {
        let (start, end) = what.range.unwrap_or((i64::MIN, i64::MAX));
        if names.is_empty() || start > end {
            return Ok(());
        }
        let packing = self.compacting.lock();
        let barrier = self.direct(|engine, batch| {
            if what.delete_latest {
                self.delete_latest(engine, batch, subject, names, what)?;
            }
            Ok(self.seq.load(Ordering::Relaxed))
        })?;
        let engine = self.writable()?;
        let range = what.range;
        self.strip_rows(&engine, subject, range, barrier, names)?;
        for name in names {
            self.cut_chunks(
                &engine,
                &keys::series_prefix(&keys::subject_key(subject), name),
                range,
            )?;
        }
        self.sync_commits(&engine)?;
        drop(packing);
        engine
            .db
            .delete_plain_rows(subject.tenant, vec![subject.entity.id], Some(names), range);
        Ok(())
    }

    /// Deletes the latest values that are in the range, and puts others in their place if that is wanted.
    fn delete_latest(
        &self,
        engine: &SeriesEngine,
        batch: &mut SeriesBatch,
        subject: EntityKey,
        names: &[String],
        what: SeriesDeletion,
    ) -> StoreResult<()> {
        let group = keys::latest_group(subject);
        let is_in_range = |ts: i64| what.range.is_none_or(|(start, end)| start <= ts && ts < end);
        for cell in self.latest.get(&engine.latest, &group)? {
            if !is_in_range(cell.ts) || !names.iter().any(|name| **name == *cell.name) {
                continue;
            }
            let left = match what.range {
                Some(range) if what.rewrite_latest => {
                    self.newest_outside(engine, subject, &cell.name, range)?
                }
                _ => None,
            };
            let is_it = |other: &CachedValue| other.name == cell.name;
            match left {
                Some(point) => {
                    self.latest.take(&engine.latest, &group, is_it)?;
                    let value = std::iter::once((&*cell.name, point.value.as_ref()));
                    self.latest
                        .put(&engine.latest, &group, point.ts, point.ttl, value)?;
                }
                None => self.latest.remove(&engine.latest, &group, batch, is_it)?,
            }
        }
        Ok(())
    }

    fn newest_outside(
        &self,
        engine: &SeriesEngine,
        subject: EntityKey,
        name: &str,
        (start, end): (i64, i64),
    ) -> StoreResult<Option<StoredPoint>> {
        for span in [(end, i64::MAX), (i64::MIN, start)] {
            let newest = SeriesSnapshot::newest(self, engine, subject, name, span)?;
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }

    /// Takes series out of the rows that were numbered before the barrier.
    fn strip_rows(
        &self,
        engine: &SeriesEngine,
        subject: EntityKey,
        range: Option<(i64, i64)>,
        barrier: u64,
        names: &[String],
    ) -> StoreResult<()> {
        let subject = keys::subject_key(subject);
        let (start, end) = range.unwrap_or((i64::MIN, i64::MAX));
        let mut edits = EditBatcher::new(self, engine);
        let is_meant = |row: &BlockRow<'_>| {
            row.seq < barrier && range.is_none_or(|(start, end)| start <= row.ts && row.ts < end)
        };
        for epoch in engine.epochs() {
            let to = keys::row_key(epoch.number, &subject, end, u64::MAX);
            let from = keys::row_key(epoch.number, &subject, block::window_start(start), 0);
            let mut from = Some(from.to_vec());
            // An iterator keeps all memory tables alive that come to be while it is open: it must not outlive a batch.
            while let Some(begin) = from.take() {
                for entry in epoch.rows.range(closed(&begin, &to)) {
                    let (key, value) = entry?;
                    let left = strip(&key, &value, names, is_meant)
                        .map_err(|cause| error::corrupt(keys::without_epoch(&key), cause))?;
                    match left {
                        None => continue,
                        Some(left) if left.is_empty() => edits.batch.remove(&epoch.rows, key.clone()),
                        Some(left) => edits.batch.insert(&epoch.rows, key.clone(), left),
                    }
                    if edits.add(value.len()) {
                        from = Some([&*key, &[0]].concat());
                        break;
                    }
                }
                edits.flush(&epoch.rows)?;
            }
        }
        Ok(())
    }

    /// Deletes the chunks below a prefix, or what they hold of a range of times.
    fn cut_chunks(&self, engine: &SeriesEngine, prefix: &[u8], range: Option<(i64, i64)>) -> StoreResult<()> {
        let mut edits = EditBatcher::new(self, engine);
        let Some((start, end)) = range else {
            for entry in engine.chunks.prefix(prefix) {
                let (key, _) = entry?;
                edits.batch.remove(&engine.chunks, key);
                edits.count_change(&engine.chunks, 0)?;
            }
            return edits.flush(&engine.chunks);
        };
        let first = keys::chunk_key(prefix, i64::MIN);
        for entry in engine
            .chunks
            .range(half_open(&first, &keys::chunk_key(prefix, end)))
        {
            let (key, value) = entry?;
            let (header, rest) = read_header(&key, &value)?;
            if header.last_ts < start {
                continue;
            }
            if start <= header.first_ts && header.last_ts < end {
                edits.batch.remove(&engine.chunks, key);
            } else {
                let columns =
                    chunk::decode_columns(&header, rest).map_err(|cause| error::corrupt(&key, cause))?;
                let mut points = columns.into_points();
                points.retain(|point| point.ts < start || point.ts >= end);
                write_chunks(engine, &mut edits.batch, prefix, &points, Some(&key));
            }
            edits.count_change(&engine.chunks, value.len())?;
        }
        edits.flush(&engine.chunks)
    }
}

/// A block without some values of some rows, `None` where nothing changes; empty where nothing is left.
fn strip(
    key: &[u8],
    value: &[u8],
    names: &[String],
    is_meant: impl Fn(&BlockRow<'_>) -> bool,
) -> Result<Option<Vec<u8>>, CorruptData> {
    let rows = block::rows(key, value)?.collect::<Result<Vec<_>, _>>()?;
    let mut changed = false;
    let mut left = Vec::with_capacity(rows.len());
    for row in rows {
        let values = match is_meant(&row) {
            true => without(names, row.values)?,
            false => None,
        };
        changed |= values.is_some();
        left.push((row, values));
    }
    if !changed {
        return Ok(None);
    }
    let left: Vec<BlockRow<'_>> = left
        .iter()
        .map(|(row, values)| BlockRow {
            values: values.as_deref().unwrap_or(row.values),
            ..*row
        })
        .filter(|row| !row.values.is_empty())
        .collect();
    block::encode_in_place(key, &left).map(Some)
}

/// Packed key-values without some names, `None` where it has none of them.
fn without(names: &[String], values: &[u8]) -> Result<Option<Vec<u8>>, CorruptData> {
    let mut kept = Vec::new();
    let mut found = false;
    for item in unpack(values) {
        let (name, value) = item?;
        if names.iter().any(|other| other == name) {
            found = true;
        } else {
            pack(name, value, &mut kept);
        }
    }
    Ok(found.then_some(kept))
}
