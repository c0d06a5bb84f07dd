//! Checkpoints, and direct writes, which carry one in their batch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fieldline_core::ports::{Offset, Partition, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::kv::CorruptData;
use parking_lot::Mutex;

use super::backing::SeriesBatch;
use super::engine::{RowEpoch, SeriesEngine};
use super::latest_cache::FlushedValueKey;
use super::memtable::MemtableFlush;
use super::state_rows::{self, StateRowChanges};
use super::store::SeriesStore;
use super::{error, keys, metrics as names};

pub(super) const SEQ_KEY: &[u8] = b"s";
pub(super) const CHECKPOINT_KEY: &[u8] = b"c";

/// How far a partition is applied, and how far that is durable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CheckpointPosition {
    pub(super) applied: Option<Offset>,
    pub(super) durable: Option<Offset>,
    /// Number of the checkpoint that set the position back: what older ones say of it no longer counts.
    rewound: u64,
}

/// One fsync for all writers that wait for one.
#[derive(Default)]
pub(super) struct GroupSync {
    committed: AtomicU64,
    synced: Mutex<u64>,
}

impl GroupSync {
    fn sync(&self, engine: &SeriesEngine) -> StoreResult<()> {
        let ticket = self.committed.fetch_add(1, Ordering::AcqRel) + 1;
        let mut synced = self.synced.lock();
        if *synced >= ticket {
            return Ok(());
        }
        let covered = self.committed.load(Ordering::Acquire);
        engine.sync()?;
        *synced = covered;
        Ok(())
    }
}

/// What a checkpoint's batch holds, to be confirmed or taken back.
struct CheckpointBatch {
    number: u64,
    positions: Vec<(Partition, Offset)>,
    latest: Vec<FlushedValueKey>,
    attributes: Vec<FlushedValueKey>,
    epoch: Arc<RowEpoch>,
    rows: MemtableFlush,
    states: StateRowChanges,
}

/// A checkpoint that the engine has taken, and that is not durable yet.
struct CommittedCheckpoint {
    number: u64,
    positions: Vec<(Partition, Offset)>,
}

impl SeriesStore {
    /// Whether anything has changed since the last checkpoint.
    fn has_changes(&self) -> bool {
        let moved = self.positions.lock().values().any(|it| it.applied != it.durable);
        moved
            || self.states.has_changed()
            || !self.memtable.is_empty()
            || self.latest.has_dirty()
            || self.attributes.has_dirty()
    }

    /// Makes all that was applied durable; without changes only if `always`.
    pub(super) fn write_checkpoint(&self, always: bool) -> StoreResult<()> {
        let started = Instant::now();
        let Some(cut) = self.commit_checkpoint(always)? else {
            return Ok(());
        };
        self.make_durable(&cut)?;
        metrics::counter!(names::CHECKPOINTS).increment(1);
        metrics::histogram!(names::CHECKPOINT_SECONDS).record(started.elapsed().as_secs_f64());
        metrics::gauge!(names::CELLS_BYTES).set((self.latest.bytes() + self.attributes.bytes()) as f64);
        Ok(())
    }

    fn commit_checkpoint(&self, always: bool) -> StoreResult<Option<CommittedCheckpoint>> {
        let _one = self.checkpointing.lock();
        if !always && !self.has_changes() {
            return Ok(None);
        }
        let engine = self.writable()?;
        let mut batch = engine.batch(1024);
        let cut = self.add_checkpoint(&engine, &mut batch)?;
        self.commit_batch(&engine, batch, cut).map(Some)
    }

    /// Runs a direct write: `plan` fills the batch and changes the caches, then a checkpoint is added to the batch. While
    /// it runs, nothing is applied. Where it fails, the caches are what they were: nobody sees what was not written, or misses
    /// what was not deleted.
    pub(super) fn direct<T>(
        &self,
        plan: impl FnOnce(&SeriesEngine, &mut SeriesBatch) -> StoreResult<T>,
    ) -> StoreResult<T> {
        // Most of what has changed is written first, so that the writers are kept waiting for the rest only.
        self.commit_checkpoint(false)?;
        let (outcome, cut) = {
            let _one = self.checkpointing.lock();
            let _alone = self.gate.write();
            let engine = self.writable()?;
            let mark = self.memtable.mark();
            self.latest.record();
            self.attributes.record();
            let mut batch = engine.batch(64);
            let done = plan(&engine, &mut batch).and_then(|outcome| {
                let cut = self.add_checkpoint(&engine, &mut batch)?;
                Ok((outcome, self.commit_batch(&engine, batch, cut)?))
            });
            if done.is_ok() {
                self.latest.confirm();
                self.attributes.confirm();
            } else {
                self.latest.roll_back();
                self.attributes.roll_back();
                self.memtable.roll_back(mark);
                if self.files.is_none() {
                    // A remote database may have written it all the same.
                    self.latest.forget_clean();
                    self.attributes.forget_clean();
                }
            }
            done?
        };
        self.make_durable(&cut)?;
        Ok(outcome)
    }

    /// Makes durable what was committed besides checkpoints.
    pub(super) fn sync_commits(&self, engine: &SeriesEngine) -> StoreResult<()> {
        self.sync
            .sync(engine)
            .map_err(|error| self.note_sync_failure(error))
    }

    /// Adds a checkpoint to a batch. The order matters: positions first, then rows and values (invariant 2).
    fn add_checkpoint(&self, engine: &SeriesEngine, batch: &mut SeriesBatch) -> StoreResult<CheckpointBatch> {
        let epoch = engine.active()?;
        let (positions, taken) = {
            let held = self.positions.lock();
            let applied = held
                .iter()
                .filter_map(|(partition, it)| Some((*partition, it.applied?)));
            let positions: Vec<(Partition, Offset)> = applied.collect();
            (positions, self.states.take())
        };
        state_rows::write(&taken, &engine.states, batch);
        for (partition, offset) in &positions {
            batch.insert(
                &engine.meta,
                keys::position_key(*partition),
                offset.0.to_be_bytes(),
            );
        }
        let seq = self.seq.load(Ordering::Relaxed);
        batch.insert(&engine.meta, SEQ_KEY, seq.to_be_bytes());
        let number = self.checkpoint.fetch_add(1, Ordering::Relaxed) + 1;
        batch.insert(&engine.meta, CHECKPOINT_KEY, number.to_be_bytes());
        Ok(CheckpointBatch {
            number,
            positions,
            rows: self.memtable.flush(&epoch, batch, self.now_ms()),
            latest: self.latest.flush(&engine.latest, batch),
            attributes: self.attributes.flush(&engine.attributes, batch),
            epoch,
            states: taken,
        })
    }

    fn commit_batch(
        &self,
        engine: &SeriesEngine,
        batch: SeriesBatch,
        cut: CheckpointBatch,
    ) -> StoreResult<CommittedCheckpoint> {
        if let Err(error) = engine.commit(
            batch,
            &[&cut.epoch.rows, &engine.latest.rows, &engine.attributes.rows],
        ) {
            self.latest.restore(cut.latest);
            self.attributes.restore(cut.attributes);
            self.states.restore(cut.states);
            return Err(self.note_write_failure(error));
        }
        self.memtable.remove_flushed(cut.rows);
        self.wake_when_large(&cut.epoch);
        self.latest.evict();
        self.attributes.evict();
        Ok(CommittedCheckpoint {
            number: cut.number,
            positions: cut.positions,
        })
    }

    fn make_durable(&self, cut: &CommittedCheckpoint) -> StoreResult<()> {
        let engine = self.engine()?;
        self.sync
            .sync(&engine)
            .map_err(|error| self.note_sync_failure(error))?;
        if let Some(files) = &self.files {
            files.watermark.raise(cut.number);
        }
        let mut positions = self.positions.lock();
        for (partition, offset) in &cut.positions {
            let held = positions.entry(*partition).or_default();
            if cut.number >= held.rewound {
                held.durable = held.durable.max(Some(*offset));
            }
        }
        Ok(())
    }

    /// Sets a position back, durably.
    pub(super) fn rewind_position(&self, partition: Partition, to: Offset) -> StoreResult<()> {
        self.direct(|_, _| {
            if let Some(held) = self.positions.lock().get_mut(&partition)
                && held.applied.is_some_and(|applied| applied > to)
            {
                *held = CheckpointPosition {
                    applied: Some(to),
                    durable: None,
                    rewound: self.checkpoint.load(Ordering::Relaxed) + 1,
                };
            }
            Ok(())
        })
    }

    /// The durable position of each partition.
    pub(super) fn durable_positions(&self) -> Vec<(Partition, Offset)> {
        let positions = self.positions.lock();
        positions
            .iter()
            .filter_map(|(partition, it)| it.durable.map(|offset| (*partition, offset)))
            .collect()
    }

    /// Where to read a partition on from.
    pub(super) fn position(&self, partition: Partition) -> Option<Offset> {
        self.positions.lock().get(&partition).and_then(|it| it.applied)
    }
}

pub(super) fn stored_positions(
    engine: &SeriesEngine,
) -> StoreResult<BTreeMap<Partition, CheckpointPosition>> {
    let mut positions = BTreeMap::new();
    for entry in engine.meta.prefix(b"o") {
        let (key, value) = entry?;
        let (partition, offset) = keys::read_position(&key, &value)
            .ok_or_else(|| error::corrupt(&[], CorruptData("a position does not decode")))?;
        let stored = CheckpointPosition {
            applied: Some(offset),
            durable: Some(offset),
            rewound: 0,
        };
        positions.insert(partition, stored);
    }
    Ok(positions)
}

pub(super) fn lost(dir: &Path, found: u64, expected: u64) -> StoreError {
    let message = format!(
        "the engine's journal in {} is damaged: checkpoint {expected} was durable, but the newest one that can be read \
         is {found}. Restore the directory from a backup; or delete the file checkpoint.watermark in it to go on with \
         what is there, which lacks writes of the last checkpoints",
        dir.display()
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
}
