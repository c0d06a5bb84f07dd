//! What is to be written, and in which order: Cassandra applies what is for one partition whole or not at all, and nothing
//! beyond that.
//!
//! A batch is written in three steps: all that is new, then all that goes, then, in PostgreSQL, the positions and whatever
//! else says how far things are. Whoever is cut off in between begins again from the old positions, and writes the same
//! once more; nothing is ever removed before what takes its place is stored.

use std::collections::{BTreeMap, BTreeSet};

use fjall::Slice;

use super::super::sql::SqlBatch;
use super::place::{self, CqlTableKind};

/// What one batch of one partition holds at most, and what one holds that must not be torn.
const BATCH_BYTES: usize = 256 << 10;
const UNTORN_BYTES: usize = 8 << 20;
const BATCH_ENTRIES: usize = 1_000;

/// What is to be written, a value a key; `None` removes it.
#[derive(Default)]
pub(in super::super::super) struct CqlBatch {
    pub(in super::super) sql: SqlBatch,
    entries: BTreeMap<CqlTableKind, BTreeMap<Slice, Option<Slice>>>,
}

/// What one batch writes into a partition.
#[derive(Clone)]
pub(super) struct PartitionWrite {
    pub(super) kind: CqlTableKind,
    pub(super) partition: Vec<u8>,
    pub(super) entries: Vec<(Slice, Option<Slice>)>,
}

/// The steps of a batch.
#[derive(Default)]
pub(super) struct WriteSteps {
    pub(super) news: Vec<PartitionWrite>,
    pub(super) removals: Vec<PartitionWrite>,
    /// Slots whose readers must not see half of it.
    pub(super) moves: BTreeSet<u16>,
}

impl CqlBatch {
    pub(in super::super) fn put(&mut self, kind: CqlTableKind, key: Slice, value: Option<Slice>) {
        self.entries.entry(kind).or_default().insert(key, value);
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.sql.is_empty()
    }

    /// Whether nothing is to be written to Cassandra.
    pub(super) fn is_sql_only(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn steps(&self) -> WriteSteps {
        let mut steps = WriteSteps::default();
        let mut indexed: BTreeSet<&[u8]> = BTreeSet::new();
        for (&kind, entries) in &self.entries {
            let mut partitions: BTreeMap<Vec<u8>, Vec<(Slice, Option<Slice>)>> = BTreeMap::new();
            for (key, value) in entries {
                let is_moved = match kind {
                    CqlTableKind::Chunks => true,
                    CqlTableKind::Blocks | CqlTableKind::Stuck => value.is_none(),
                    _ => false,
                };
                if is_moved {
                    steps.moves.insert(place::slot_of_key(kind, key));
                }
                if kind == CqlTableKind::Chunks && value.is_some() {
                    indexed.insert(place::series_of(key));
                }
                let partition = place::partition(kind, key);
                let entry = (key.clone(), value.clone());
                partitions.entry(partition).or_default().push(entry);
            }
            for (partition, entries) in partitions {
                steps.add(kind, partition, entries);
            }
        }
        steps.add_series(&indexed);
        steps
    }
}

impl WriteSteps {
    fn add(&mut self, kind: CqlTableKind, partition: Vec<u8>, entries: Vec<(Slice, Option<Slice>)>) {
        let (news, removed): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, value)| value.is_some());
        // Chunks of a series take the place of others: their points would be there twice, or not at all.
        let is_untorn = kind == CqlTableKind::Chunks && !news.is_empty();
        if is_untorn && bytes(&news) < UNTORN_BYTES {
            let entries = [news, removed].concat();
            self.news.push(PartitionWrite {
                kind,
                partition,
                entries,
            });
            return;
        }
        split(kind, &partition, news, &mut self.news);
        split(kind, &partition, removed, &mut self.removals);
    }

    fn add_series(&mut self, indexed: &BTreeSet<&[u8]>) {
        let mut slots: BTreeMap<u16, Vec<(Slice, Option<Slice>)>> = BTreeMap::new();
        for series in indexed {
            let slot = place::slot_of_key(CqlTableKind::Series, series);
            let entry = (Slice::from(*series), Some(Slice::from(&[][..])));
            slots.entry(slot).or_default().push(entry);
        }
        for (slot, entries) in slots {
            split(CqlTableKind::Series, &slot.to_be_bytes(), entries, &mut self.news);
        }
    }
}

fn bytes(entries: &[(Slice, Option<Slice>)]) -> usize {
    let sizes = entries
        .iter()
        .map(|(key, value)| key.len() + value.as_ref().map_or(0, |value| value.len()));
    sizes.sum()
}

fn split(
    kind: CqlTableKind,
    partition: &[u8],
    entries: Vec<(Slice, Option<Slice>)>,
    writes: &mut Vec<PartitionWrite>,
) {
    let mut size = 0;
    let mut part = Vec::new();
    let mut end = |part: Vec<_>| {
        if !part.is_empty() {
            writes.push(PartitionWrite {
                kind,
                partition: partition.to_vec(),
                entries: part,
            });
        }
    };
    for entry in entries {
        let bytes = bytes(std::slice::from_ref(&entry));
        if size + bytes > BATCH_BYTES || part.len() >= BATCH_ENTRIES {
            end(std::mem::take(&mut part));
            size = 0;
        }
        size += bytes;
        part.push(entry);
    }
    end(part);
}

#[cfg(test)]
mod tests {
    use super::super::super::super::keys;
    use super::*;

    fn chunk(name: &str, ts: i64) -> Slice {
        keys::chunk_key(&keys::series_prefix(&[7; 33], name), ts).into()
    }

    #[test]
    fn what_takes_the_place_of_a_chunk_is_written_with_its_removal() {
        let mut batch = CqlBatch::default();
        batch.put(CqlTableKind::Chunks, chunk("a", 1), None);
        batch.put(
            CqlTableKind::Chunks,
            chunk("a", 2),
            Some(Slice::from(&b"new"[..])),
        );
        batch.put(CqlTableKind::Chunks, chunk("b", 1), None);
        let steps = batch.steps();
        let (index, chunks): (Vec<_>, Vec<_>) = steps
            .news
            .iter()
            .partition(|write| write.kind == CqlTableKind::Series);
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks[0].entries.len(), 2);
        assert_eq!(index.len(), 1, "the series of the new chunk is noted");
        assert_eq!(steps.removals.len(), 1);
        assert_eq!(steps.removals[0].entries[0].0, chunk("b", 1));
        assert_eq!(steps.moves.len(), 1);
    }

    #[test]
    fn large_batches_are_cut_into_parts() {
        let mut batch = CqlBatch::default();
        for ts in 0..10 {
            let key = keys::row_key(1, &[7; 33], ts, 0);
            let value = Slice::from(vec![0; 100 << 10]);
            batch.put(CqlTableKind::Blocks, Slice::from(&key[..]), Some(value));
        }
        let steps = batch.steps();
        assert_eq!(steps.news.len(), 5);
        assert!(steps.moves.is_empty(), "new rows disturb no reader");
    }
}
