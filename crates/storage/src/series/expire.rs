//! The sweeper: walks through all chunks and latest values, a slice at a time, and removes what has expired.

use fieldline_core::ports::StoreResult;

use super::backing::{SeriesTable, TableEntry};
use super::cached_value::{CachedValue, stored_expiry};
use super::chunk::{self, is_expired};
use super::keys::{GROUP_BYTES, ValueGroupKey};
use super::store::SeriesStore;

const CHUNKS_A_TICK: usize = 512;
const VALUES_PER_TICK: usize = 4096;

/// Where the next slices begin.
#[derive(Debug, Default)]
pub(super) struct ExpiryCursor {
    chunks: Vec<u8>,
    latest: Vec<u8>,
}

impl SeriesStore {
    /// Searches one slice.
    pub(super) fn expire_slice(&self) -> StoreResult<()> {
        let packing = self.compacting.lock();
        let mut progress = self.expiry_cursor.lock();
        self.expire_chunks(&mut progress.chunks)?;
        drop(packing);
        self.expire_latest(&mut progress.latest)?;
        self.writable()?.db.keep_up_plain_rows(self.expiry_ms())
    }

    /// Removes chunks of which all points have expired; single points go when their chunk is rewritten.
    fn expire_chunks(&self, cursor: &mut Vec<u8>) -> StoreResult<()> {
        let engine = self.writable()?;
        let now = self.expiry_ms();
        let mut batch = engine.batch(16);
        walk(&engine.chunks, cursor, CHUNKS_A_TICK, |(key, value)| {
            // A corrupt chunk is for its readers to report.
            let expired = chunk::decode_header(value)
                .is_ok_and(|(header, _)| header.last_expiry.is_some_and(|at| at < now));
            if expired {
                batch.remove(&engine.chunks, key.clone());
            }
        })?;
        engine
            .commit(batch, &[&engine.chunks])
            .map_err(|error| self.note_write_failure(error))
    }

    fn expire_latest(&self, cursor: &mut Vec<u8>) -> StoreResult<()> {
        let engine = self.writable()?;
        let now = self.expiry_ms();
        let mut groups: Vec<ValueGroupKey> = Vec::new();
        walk(&engine.latest.rows, cursor, VALUES_PER_TICK, |row| {
            let mut expired = false;
            // What does not decode is for its readers to report.
            let _ = engine.latest.cells(row, |(_, _, bytes)| {
                let (ts, ttl) = stored_expiry(bytes)?;
                expired |= is_expired(ts, ttl, now);
                Ok(())
            });
            let (key, _) = row;
            if expired
                && let Some(group) = key.first_chunk::<GROUP_BYTES>()
                && groups.last() != Some(group)
            {
                groups.push(*group);
            }
        })?;
        drop(engine);
        if groups.is_empty() {
            return Ok(());
        }
        self.direct(|engine, batch| {
            for group in &groups {
                // The table lags behind the cache: only here it is known what has expired.
                let Ok(cells) = self.latest.get(&engine.latest, group) else {
                    continue;
                };
                let is_expired = |cell: &CachedValue| is_expired(cell.ts, cell.ttl, now);
                if cells.iter().any(is_expired) {
                    self.latest.remove(&engine.latest, group, batch, is_expired)?;
                }
            }
            Ok(())
        })
    }
}

/// Shows up to `count` entries from the cursor on, and moves it; after the last entry it starts over.
fn walk(
    table: &SeriesTable,
    cursor: &mut Vec<u8>,
    count: usize,
    mut show: impl FnMut(&TableEntry),
) -> StoreResult<()> {
    let from = std::mem::take(cursor);
    for (seen, entry) in table.from(&from).enumerate() {
        let entry = entry?;
        if seen == count {
            *cursor = entry.0.to_vec();
            break;
        }
        show(&entry);
    }
    Ok(())
}
