//! Rows that are not in the engine yet: appended to memory as they come, and handed over at checkpoints, all rows of a
//! subject together. Until then the journal answers for them.
//!
//! A shard is one run of bytes in which the rows of a subject are chained backwards, so that taking a row costs one look-up
//! and one copy.
//!
//! ```text
//! row := place of the subject's row before it, plus one, u32 · ts i64 · number u64 · ttl u32 · length u32 · packed values
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_model::kv::take_array;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::backing::SeriesBatch;
use super::block::{self, BlockRow};
use super::engine::RowEpoch;
use super::keys::{EntityKeyBytes, ROW_BYTES, SUBJECT_BYTES, spread};

const SHARDS: usize = 16;
/// What a subject costs in the table of a shard, roughly.
const SUBJECT_COST: usize = 2 * (SUBJECT_BYTES + 8);
/// Memory of a run that is kept for the next one.
const KEPT_BYTES: usize = 2 << 20;

/// Rows in the order in which they came.
#[derive(Default)]
struct MemtableRun {
    bytes: Vec<u8>,
    /// Place of the last row of each subject.
    last: FxHashMap<EntityKeyBytes, u32>,
}

impl MemtableRun {
    fn put(&mut self, subject: &EntityKeyBytes, row: &BlockRow<'_>) {
        let place = self.bytes.len() as u32;
        let before = self.last.insert(*subject, place).map_or(0, |before| before + 1);
        let length = row.values.len() as u32;
        self.bytes.extend_from_slice(&before.to_le_bytes());
        self.bytes.extend_from_slice(&row.ts.to_le_bytes());
        self.bytes.extend_from_slice(&row.seq.to_le_bytes());
        self.bytes.extend_from_slice(&row.ttl.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(row.values);
    }

    /// Memory that it takes.
    fn cost(&self) -> usize {
        self.bytes.len() + self.last.len() * SUBJECT_COST
    }

    /// The row at a place, and the place of the one before it.
    fn row(&self, place: u32) -> Option<(BlockRow<'_>, Option<u32>)> {
        let rest = &mut self.bytes.get(place as usize..)?;
        let before = u32::from_le_bytes(take_array(rest).ok()?);
        let ts = i64::from_le_bytes(take_array(rest).ok()?);
        let seq = u64::from_le_bytes(take_array(rest).ok()?);
        let ttl = u32::from_le_bytes(take_array(rest).ok()?);
        let length = u32::from_le_bytes(take_array(rest).ok()?);
        let values = rest.get(..length as usize)?;
        let row = BlockRow { ts, seq, ttl, values };
        Some((row, before.checked_sub(1)))
    }

    /// The rows of a subject, the last one first.
    fn rows(&self, subject: &EntityKeyBytes) -> impl Iterator<Item = BlockRow<'_>> {
        let mut next = self.last.get(subject).copied();
        std::iter::from_fn(move || {
            let (row, before) = self.row(next?)?;
            next = before;
            Some(row)
        })
    }
}

#[derive(Default)]
struct MemtableShard {
    /// Takes new rows.
    open: MemtableRun,
    /// On their way to the engine.
    flushing: Vec<Arc<MemtableRun>>,
    spare: Vec<u8>,
}

impl MemtableShard {
    /// Ends the run that takes new rows.
    fn close(&mut self) {
        if !self.open.bytes.is_empty() {
            let run = std::mem::take(&mut self.open);
            self.flushing.push(Arc::new(run));
        }
    }
}

/// Rows that are not in the engine yet.
#[derive(Default)]
pub(super) struct Memtable {
    shards: [Mutex<MemtableShard>; SHARDS],
    bytes: AtomicUsize,
}

/// Rows that were put into a batch, until it is known whether it was committed.
pub(super) struct MemtableFlush {
    runs: [usize; SHARDS],
    bytes: usize,
}

/// Where the rows ended at a moment.
pub(super) struct MemtableMark([usize; SHARDS]);

impl Memtable {
    fn shard(&self, subject: &EntityKeyBytes) -> &Mutex<MemtableShard> {
        let [first, ..] = &self.shards;
        self.shards.get(spread(subject) % SHARDS).unwrap_or(first)
    }

    /// Takes a row.
    pub(super) fn put(&self, subject: &EntityKeyBytes, row: &BlockRow<'_>) {
        let mut shard = self.shard(subject).lock();
        let before = shard.open.last.len();
        if shard.open.bytes.capacity() == 0 {
            shard.open.bytes = std::mem::take(&mut shard.spare);
        }
        let start = shard.open.bytes.len();
        shard.open.put(subject, row);
        let subjects = shard.open.last.len() - before;
        let grown = shard.open.bytes.len() - start + subjects * SUBJECT_COST;
        // Before the rows can leave again.
        self.bytes.fetch_add(grown, Ordering::Relaxed);
    }

    /// Memory that the rows take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Shows the rows of a subject that lie in a range of times, in no order. No row comes or goes meanwhile.
    pub(super) fn read<T>(
        &self,
        subject: &EntityKeyBytes,
        start: i64,
        end: i64,
        take: impl FnOnce(&mut dyn Iterator<Item = BlockRow<'_>>) -> T,
    ) -> T {
        let shard = self.shard(subject).lock();
        let runs = shard.flushing.iter().map(|run| &**run).chain([&shard.open]);
        let mut rows = runs
            .flat_map(|run| run.rows(subject))
            .filter(|row| start <= row.ts && row.ts < end);
        take(&mut rows)
    }

    /// Puts all rows, as blocks, into a batch for an epoch. They are read from here until the batch is committed.
    pub(super) fn flush(&self, epoch: &RowEpoch, batch: &mut SeriesBatch, now_ms: i64) -> MemtableFlush {
        let mut leaving = MemtableFlush {
            runs: [0; SHARDS],
            bytes: 0,
        };
        let mut stored = 0;
        for (shard, count) in self.shards.iter().zip(&mut leaving.runs) {
            let runs = {
                let mut shard = shard.lock();
                shard.close();
                shard.flushing.clone()
            };
            *count = runs.len();
            for run in &runs {
                leaving.bytes += run.cost();
            }
            write(epoch.number, &runs, |key, value| {
                stored += key.len() + value.len();
                batch.insert_new_block(&epoch.rows, key, value);
            });
        }
        if stored > 0 {
            epoch.count(stored as u64, now_ms);
        }
        leaving
    }

    /// Forgets rows whose batch was committed. Those of a batch that failed stay, and leave with the next one.
    pub(super) fn remove_flushed(&self, leaving: MemtableFlush) {
        for (shard, count) in self.shards.iter().zip(leaving.runs) {
            let mut shard = shard.lock();
            let gone: Vec<_> = shard.flushing.drain(..count).collect();
            for run in gone {
                if let Ok(mut run) = Arc::try_unwrap(run)
                    && run.bytes.capacity() <= KEPT_BYTES
                {
                    run.bytes.clear();
                    shard.spare = run.bytes;
                }
            }
        }
        self.bytes.fetch_sub(leaving.bytes, Ordering::Relaxed);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Notes where the rows end, so that those that come from here on can be [taken back](Self::roll_back).
    pub(super) fn mark(&self) -> MemtableMark {
        let mut mark = MemtableMark([0; SHARDS]);
        for (shard, count) in self.shards.iter().zip(&mut mark.0) {
            let mut shard = shard.lock();
            shard.close();
            *count = shard.flushing.len();
        }
        mark
    }

    /// Forgets all rows that have come since a mark. No batch may have been committed in between.
    pub(super) fn roll_back(&self, mark: MemtableMark) {
        for (shard, count) in self.shards.iter().zip(mark.0) {
            let mut shard = shard.lock();
            shard.close();
            let bytes: usize = shard.flushing.drain(count..).map(|run| run.cost()).sum();
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Encodes the rows of runs as blocks, subject by subject.
fn write(epoch: u64, runs: &[Arc<MemtableRun>], mut write: impl FnMut([u8; ROW_BYTES], Vec<u8>)) {
    let mut subjects: Vec<&EntityKeyBytes> = runs.iter().flat_map(|run| run.last.keys()).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let mut rows = Vec::new();
    for subject in subjects {
        rows.clear();
        rows.extend(runs.iter().rev().flat_map(|run| run.rows(subject)));
        // They come last first, and devices send in the order of time.
        rows.reverse();
        if !rows.is_sorted_by_key(|row: &BlockRow<'_>| (row.ts, row.seq)) {
            rows.sort_unstable_by_key(|row| (row.ts, row.seq));
        }
        block::encode(epoch, subject, &rows, &mut write);
    }
}
