//! Handing all that a subject has to another one: a device goes to another tenant, and its history with it.
//!
//! Chunks keep their bytes and get another key. Rows go back to memory under the numbers that they have, and leave it with the
//! checkpoint that takes them from where they were: an epoch may be packed up to somewhere, and what is put behind that
//! place would go with the epoch. Every step is one batch, so that whoever begins again after a crash goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use std::ops::Bound;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreResult;
use fieldline_model::EntityKey;
use fieldline_model::kv::{CorruptData, pack};
use fieldline_model::timeseries::AttributeScope;

use super::backing::SeriesTable;
use super::block::BlockRow;
use super::chunk::{self, StoredPoint};
use super::delete::{BATCH_BYTES, EditBatcher};
use super::engine::{RowEpoch, SeriesEngine};
use super::keys::{self, EntityKeyBytes, SUBJECT_BYTES, ValueGroupKey};
use super::latest_cache::LatestCache;
use super::read::read_header;
use super::store::SeriesStore;
use super::value_table::ValueTable;
use super::{block, error};

static CORRUPT_GATE: LogGate = LogGate::new(1);

/// Key and value, as they are stored.
type StoredEntry = (Vec<u8>, Vec<u8>);

impl SeriesStore {
    /// Hands over all that is there now; returns whether that was anything. Of two values of one attribute or latest value the
    /// newer one stays.
    pub(super) fn transfer_all(&self, from: EntityKey, to: EntityKey) -> StoreResult<bool> {
        if from == to || !self.has_anything(from)? {
            return Ok(false);
        }
        // Rows in memory go to where they are looked for.
        self.write_checkpoint(false)?;
        let _packing = self.compacting.lock();
        let (old, new) = (keys::subject_key(from), keys::subject_key(to));
        self.transfer_chunks(&old, &new)?;
        for epoch in self.writable()?.epochs() {
            self.transfer_rows(&epoch, &old, &new)?;
        }
        self.transfer_values(from, to)?;
        let engine = self.writable()?;
        self.sync_commits(&engine)?;
        if from.entity == to.entity {
            engine.db.move_plain_rows(from, to.tenant);
        }
        Ok(true)
    }

    fn has_anything(&self, subject: EntityKey) -> StoreResult<bool> {
        let engine = self.engine()?;
        for (cells, table, group) in self.groups(&engine, subject) {
            if !cells.get(table, &group)?.is_empty() {
                return Ok(true);
            }
        }
        let key = keys::subject_key(subject);
        let mut found = self
            .memtable
            .read(&key, i64::MIN, i64::MAX, |rows| rows.next().is_some());
        for epoch in engine.epochs() {
            found = found || !after(&epoch.rows, &epoch_prefix(&epoch, &key), None, 1)?.is_empty();
        }
        Ok(found || !after(&engine.chunks, &key, None, 1)?.is_empty())
    }

    /// The groups of a subject with where they are: latest values, and the attributes of each scope.
    fn groups<'a>(
        &'a self,
        engine: &'a SeriesEngine,
        subject: EntityKey,
    ) -> impl Iterator<Item = (&'a LatestCache, &'a ValueTable, ValueGroupKey)> {
        let latest = (&self.latest, &engine.latest, keys::latest_group(subject));
        let attributes = AttributeScope::ALL.map(|scope| {
            let group = keys::attribute_group(subject, scope);
            (&self.attributes, &engine.attributes, group)
        });
        std::iter::once(latest).chain(attributes)
    }

    fn transfer_values(&self, from: EntityKey, to: EntityKey) -> StoreResult<()> {
        self.direct(|engine, batch| {
            let groups = self.groups(engine, from).zip(self.groups(engine, to));
            for ((cells, table, old), (_, _, new)) in groups {
                let held = cells.get(table, &new)?;
                for cell in cells.get(table, &old)? {
                    let is_older = held
                        .binary_search_by(|other| other.name.cmp(&cell.name))
                        .ok()
                        .and_then(|at| held.get(at))
                        .is_some_and(|other| other.ts > cell.ts);
                    if !is_older {
                        let value = std::iter::once((&*cell.name, cell.value.as_ref()));
                        cells.put(table, &new, cell.ts, cell.ttl, value)?;
                    }
                }
                cells.remove(table, &old, batch, |_| true)?;
            }
            Ok(())
        })
    }

    fn transfer_chunks(&self, old: &EntityKeyBytes, new: &EntityKeyBytes) -> StoreResult<()> {
        let engine = self.writable()?;
        let renamed = |key: &[u8]| [&new[..], key.get(SUBJECT_BYTES..).unwrap_or_default()].concat();
        // The series that is looked at, and whether it has chunks in its new place already.
        let mut series: (Vec<u8>, bool) = (Vec::new(), false);
        let mut last: Option<Vec<u8>> = None;
        loop {
            let part = after(&engine.chunks, old, last.as_deref(), BATCH_BYTES)?;
            let Some((newest, _)) = part.last() else {
                return Ok(());
            };
            last = Some(newest.clone());
            let mut edits = EditBatcher::new(self, &engine);
            for (key, value) in &part {
                let prefix = key.split_last_chunk::<8>().map_or(&key[..], |(prefix, _)| prefix);
                if series.0 != prefix {
                    let is_taken = !after(&engine.chunks, &renamed(prefix), None, 1)?.is_empty();
                    series = (prefix.to_vec(), is_taken);
                }
                if series.1 {
                    self.merge_chunk(new, key, value)?;
                } else {
                    edits.batch.insert(&engine.chunks, renamed(key), value.as_slice());
                    edits.batch.remove(&engine.chunks, key.as_slice());
                }
            }
            edits.flush(&engine.chunks)?;
        }
    }

    /// Chunks of a series must not overlap: what would is taken up as rows, which the compaction puts in their place.
    fn merge_chunk(&self, subject: &EntityKeyBytes, key: &[u8], value: &[u8]) -> StoreResult<()> {
        let (header, rest) = read_header(key, value)?;
        let columns = chunk::decode_columns(&header, rest).map_err(|cause| error::corrupt(key, cause))?;
        let points: Vec<StoredPoint> = columns.into_points();
        let name = keys::read_series_name(key)
            .ok_or_else(|| error::corrupt(key, CorruptData("chunk without a name")))?;
        self.direct(|engine, batch| {
            let first = self.seq.fetch_add(points.len() as u64, Ordering::Relaxed);
            let mut values = Vec::new();
            for (seq, point) in (first..).zip(&points) {
                values.clear();
                pack(name, point.value.as_ref(), &mut values);
                let row = BlockRow {
                    ts: point.ts,
                    seq,
                    ttl: point.ttl,
                    values: &values,
                };
                self.memtable.put(subject, &row);
            }
            batch.remove(&engine.chunks, key);
            Ok(())
        })
    }

    fn transfer_rows(
        &self,
        epoch: &Arc<RowEpoch>,
        old: &EntityKeyBytes,
        new: &EntityKeyBytes,
    ) -> StoreResult<()> {
        let prefix = epoch_prefix(epoch, old);
        let mut last: Option<Vec<u8>> = None;
        loop {
            let part = after(&epoch.rows, &prefix, last.as_deref(), BATCH_BYTES)?;
            let Some((newest, _)) = part.last() else {
                return Ok(());
            };
            last = Some(newest.clone());
            self.direct(|engine, batch| {
                // The engine may have been opened again since.
                let epochs = engine.epochs();
                let table = epochs.iter().find(|other| other.number == epoch.number);
                let table = table.map_or(&epoch.rows, |epoch| &epoch.rows);
                for (key, value) in &part {
                    match block::rows(key, value).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
                        Ok(rows) => rows.iter().for_each(|row| self.memtable.put(new, row)),
                        Err(cause) => {
                            leave_behind(key, cause);
                            continue;
                        }
                    }
                    batch.remove(table, key.as_slice());
                }
                Ok(())
            })?;
        }
    }
}

fn epoch_prefix(epoch: &RowEpoch, subject: &EntityKeyBytes) -> Vec<u8> {
    [&keys::epoch_key(epoch.number)[..], subject].concat()
}

/// What is stored below a prefix behind a key, at least one and then no more than so many bytes. Nothing is held open meanwhile.
fn after(
    table: &SeriesTable,
    prefix: &[u8],
    last: Option<&[u8]>,
    bytes: usize,
) -> StoreResult<Vec<StoredEntry>> {
    let begin = last.map_or_else(|| prefix.to_vec(), |last| [last, &[0]].concat());
    let mut found = Vec::new();
    let mut taken = 0;
    let end = keys::after_prefix(prefix);
    let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    for entry in table.range((Bound::Included(&begin), end)) {
        let (key, value) = entry?;
        taken += key.len() + value.len();
        found.push((key.to_vec(), value.to_vec()));
        if taken >= bytes {
            break;
        }
    }
    Ok(found)
}

fn leave_behind(key: &[u8], cause: CorruptData) {
    if let Some(suppressed) = CORRUPT_GATE.open() {
        let error = error::corrupt(keys::without_epoch(key), cause);
        tracing::error!(%error, suppressed, "rows left behind by a device that went to another tenant");
    }
}
