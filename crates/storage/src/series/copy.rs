//! Copies everything of one store into an empty one on the same or another backing.
//!
//! The tables have the same keys and values everywhere, but for those of values, of which a row is one value here and a
//! page of them there. They are copied in the order of their keys; how far that is, is noted in the target with each
//! batch, so that a copy that was cut off goes on from there. Nothing may write to either of them meanwhile.
//!
//! Positions are not copied: the target's journal is another one. So the source's journal must have nothing that is not
//! stored, and what the rule engine keeps goes to the partitions that its entities have in the other journal.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;
use std::path::Path;

use fieldline_core::ports::{Offset, Partition, StateKey, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::kv::CorruptData;

use super::backing::{SeriesBatch, SeriesTable, TableEntry};
use super::cached_value::{CachedValue, cell_key};
use super::checkpoint::{self, CHECKPOINT_KEY, SEQ_KEY};
use super::compaction::CURSOR_KEY;
use super::engine::{FIRST_EPOCH_KEY, SeriesEngine, meta_number};
#[cfg(feature = "cassandra")]
use super::options::CassandraOptions;
use super::options::Options;
#[cfg(feature = "sql")]
use super::options::SqlSeriesOptions;
use super::store::open_embedded;
use super::value_table::{PAGE_VALUES, ValueTable, page_key, put_in_page};
use super::{error, keys, state_rows};

/// In the target: where it is being filled from. All keys of a copy that goes on begin like this.
const SOURCE_KEY: &[u8] = b"m";
/// In the target: what the keys begin with that say how far each table is.
const PROGRESS_PREFIX: &[u8] = b"mt";
/// In the target: what the keys begin with that say how far the records of a partition are copied.
const RECORDS_PREFIX: &[u8] = b"mr";
/// In the target: what the keys begin with that say which records were about to be copied.
const BEGUN_PREFIX: &[u8] = b"mb";
/// In the target: the checkpoint of the source that is copied.
const SOURCE_CHECKPOINT_KEY: &[u8] = b"mc";
/// In a store that was copied: where from.
const COPIED_KEY: &[u8] = b"M";
/// What a batch holds, roughly.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_ENTRIES: usize = 2_000;

/// Where a store is.
pub enum SeriesPlace<'a> {
    /// In a directory.
    Embedded(&'a Path, &'a Options),
    /// In PostgreSQL.
    #[cfg(feature = "sql")]
    Sql(&'a SqlSeriesOptions),
    /// In Cassandra, with a PostgreSQL database that says who owns it.
    #[cfg(feature = "cassandra")]
    Cassandra(&'a SqlSeriesOptions, &'a CassandraOptions),
}

/// A part of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesPart {
    /// Packed points.
    Chunks,
    /// Points that are not packed yet.
    Blocks,
    /// Points that cannot be packed.
    Stuck,
    /// Latest values.
    Latest,
    /// Attributes.
    Attributes,
    /// What the rule engine keeps.
    States,
}

impl SeriesPart {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Chunks,
        Self::Blocks,
        Self::Stuck,
        Self::Latest,
        Self::Attributes,
        Self::States,
    ];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "packed points",
            Self::Blocks => "recent points",
            Self::Stuck => "points that cannot be packed",
            Self::Latest => "latest values",
            Self::Attributes => "attributes",
            Self::States => "states of rules",
        }
    }

    fn progress_key(self) -> Vec<u8> {
        [PROGRESS_PREFIX, &[self as u8]].concat()
    }
}

/// What a part holds: how many entries, and a sum over all of them that is the same on all backings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeriesChecksum {
    /// Number of entries.
    pub entries: u64,
    /// Sum of their hashes.
    pub sum: u64,
}

impl SeriesChecksum {
    fn add(&mut self, entry: &[&[u8]]) {
        let mut hasher = DefaultHasher::new();
        entry.hash(&mut hasher);
        self.entries += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// Where what the rule engine keeps belongs in the target: its partition there, or why it cannot be copied.
pub type StateRoute<'a> = &'a (dyn Fn(Partition, &StateKey) -> Result<Partition, String> + Sync);

/// An opened store of which whole tables are read or written.
pub struct SeriesCopy {
    source: SeriesEngine,
    target: SeriesEngine,
    is_done: bool,
}

fn open(place: &SeriesPlace<'_>, now_ms: i64) -> StoreResult<SeriesEngine> {
    match place {
        SeriesPlace::Embedded(dir, options) => open_embedded(dir, options, now_ms).map(|(engine, _)| engine),
        #[cfg(feature = "sql")]
        SeriesPlace::Sql(options) => SeriesEngine::open_sql(options, now_ms),
        #[cfg(feature = "cassandra")]
        SeriesPlace::Cassandra(owner, options) => SeriesEngine::open_cassandra(owner, options, now_ms),
    }
}

impl SeriesCopy {
    /// Opens both stores and takes them over from whoever has them. The label names the source, so that a target that is
    /// being filled from it is told from others.
    ///
    /// # Errors
    /// [`StoreErrorKind::Conflict`] if the target holds something else.
    pub fn begin(
        source: &SeriesPlace<'_>,
        target: &SeriesPlace<'_>,
        label: &str,
        now_ms: i64,
    ) -> StoreResult<Self> {
        let source = open(source, now_ms)?;
        let Some(checkpoint) = source.meta.get(CHECKPOINT_KEY)? else {
            return Err(refused(
                "there are no time series where the source's settings have them",
            ));
        };
        let target = open(target, now_ms)?;
        let is_labelled = |key| {
            Ok::<_, StoreError>(
                target
                    .meta
                    .get(key)?
                    .is_some_and(|found| *found == *label.as_bytes()),
            )
        };
        // Each start of a program writes a checkpoint, so that a store that was used since has another one.
        let is_unused = target.meta.get(CHECKPOINT_KEY)?.as_deref() == Some(&*checkpoint);
        let is_done = is_labelled(COPIED_KEY)? && is_unused;
        if !is_done && is_labelled(SOURCE_KEY)? {
            if target.meta.get(SOURCE_CHECKPOINT_KEY)?.as_deref() != Some(&*checkpoint) {
                return Err(refused(
                    "the source was used after the copy had begun: begin again with empty databases and an empty log",
                ));
            }
        } else if !is_done {
            if target.meta.get(SOURCE_KEY)?.is_some() {
                return Err(refused(
                    "the target's time series are being filled from another source: go on with that, or name another place",
                ));
            }
            let tables = SeriesPart::ALL.map(|part| table_of(&target, part).from(&[]).next());
            if target.meta_number(CHECKPOINT_KEY)?.is_some() || tables.into_iter().flatten().next().is_some()
            {
                return Err(refused("the target has time series already: name an empty place"));
            }
            let mut batch = target.batch(2);
            batch.insert(&target.meta, SOURCE_KEY, label.as_bytes());
            batch.insert(&target.meta, SOURCE_CHECKPOINT_KEY, checkpoint);
            target.commit(batch, &[])?;
            target.sync()?;
        }
        Ok(Self {
            source,
            target,
            is_done,
        })
    }

    /// How far the journal of the source is stored.
    pub fn source_positions(&self) -> StoreResult<BTreeMap<Partition, Offset>> {
        let found = checkpoint::stored_positions(&self.source)?;
        let durable = found.into_iter();
        Ok(durable
            .filter_map(|(partition, position)| Some((partition, position.durable?)))
            .collect())
    }

    /// How far the records of a partition of the source's journal are copied to the other one.
    pub fn records_copied(&self, partition: Partition) -> StoreResult<Option<Offset>> {
        let found = meta_number(&self.target.meta, &records_key(RECORDS_PREFIX, partition))?;
        Ok(found.map(Offset))
    }

    /// Notes how far the records of a partition are copied.
    pub fn note_records_copied(&self, partition: Partition, next: Offset) -> StoreResult<()> {
        let mut batch = self.target.batch(2);
        batch.insert(
            &self.target.meta,
            records_key(RECORDS_PREFIX, partition),
            next.0.to_be_bytes(),
        );
        batch.remove(&self.target.meta, records_key(BEGUN_PREFIX, partition));
        self.target.commit(batch, &[])?;
        self.target.sync()
    }

    /// Up to where records of a partition were about to be copied, and where the partitions of the target ended then; not if
    /// that is done.
    pub fn records_begun(
        &self,
        partition: Partition,
    ) -> StoreResult<Option<(Offset, BTreeMap<Partition, Offset>)>> {
        let key = records_key(BEGUN_PREFIX, partition);
        let Some(value) = self.target.meta.get(&key)? else {
            return Ok(None);
        };
        let read = || {
            let (next, mut rest) = value.split_first_chunk::<8>()?;
            let mut ends = BTreeMap::new();
            while let Some((entry, after)) = rest.split_first_chunk::<13>() {
                let (key, end) = entry.split_at(5);
                let (partition, end) = keys::read_position(key, end)?;
                ends.insert(partition, end);
                rest = after;
            }
            Some((Offset(u64::from_be_bytes(*next)), ends))
        };
        let found = read();
        found
            .map(Some)
            .ok_or_else(|| error::corrupt(&[], CorruptData("what was being copied does not decode")))
    }

    /// Notes what is about to be copied.
    pub fn note_records_begun(
        &self,
        partition: Partition,
        next: Offset,
        ends: &BTreeMap<Partition, Offset>,
    ) -> StoreResult<()> {
        let mut value = next.0.to_be_bytes().to_vec();
        for (partition, end) in ends {
            value.extend_from_slice(&keys::position_key(*partition));
            value.extend_from_slice(&end.0.to_be_bytes());
        }
        self.target
            .meta
            .insert(records_key(BEGUN_PREFIX, partition), value)?;
        self.target.sync()
    }

    /// Whether all of it is there already, and only the end of the copy was cut off.
    pub const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Refuses states that cannot be copied, before anything is.
    pub fn check_states(&self, route: StateRoute<'_>) -> StoreResult<()> {
        for entry in self.source.states.from(&[]) {
            routed(&entry?, route)?;
        }
        Ok(())
    }

    /// Copies what is not there yet. Tells how many entries of a part are copied as it goes.
    pub fn copy(&self, route: StateRoute<'_>, progress: &mut dyn FnMut(SeriesPart, u64)) -> StoreResult<()> {
        for part in SeriesPart::ALL {
            let (source, target) = (table_of(&self.source, part), table_of(&self.target, part));
            let from = self.target.meta.get(&part.progress_key())?;
            let from = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let mut writer = PartWriter::new(&self.target, target, part, &mut *progress);
            let mut gathered = PageGatherer::default();
            let pages = values_of(&self.source, part).zip(values_of(&self.target, part));
            for entry in source.range((from, Bound::Unbounded)) {
                let entry = entry?;
                match (part, pages) {
                    (SeriesPart::States, _) => {
                        let (key, value) = routed(&entry, route)?;
                        writer.put(&key, &value);
                        writer.end_entry(&entry.0)?;
                    }
                    (SeriesPart::Blocks, _) => {
                        if entry.0.len() == keys::ROW_BYTES {
                            writer.begin_epoch(keys::read_epoch(&entry.0))?;
                            writer.put(&entry.0, &entry.1);
                            writer.end_entry(&entry.0)?;
                        }
                    }
                    (_, Some((from, to))) if from.is_paged() != to.is_paged() => {
                        let decoded = from.cells(&entry, |(_, name, bytes)| {
                            let group = entry.0.first_chunk().unwrap_or(&[0; keys::GROUP_BYTES]);
                            let cell = CachedValue::decode(name.into(), bytes)?;
                            if to.is_paged() {
                                gathered.add(group, &cell, &mut writer);
                            } else {
                                writer.put(&cell_key(group, name), bytes);
                            }
                            Ok(())
                        });
                        decoded.map_err(|cause| error::corrupt(&entry.0, cause))?;
                        if to.is_paged() {
                            gathered.seen(&entry.0, &mut writer)?;
                        } else {
                            writer.end_entry(&entry.0)?;
                        }
                    }
                    _ => {
                        writer.put(&entry.0, &entry.1);
                        writer.end_entry(&entry.0)?;
                    }
                }
            }
            gathered.end(&mut writer)?;
            writer.commit()?;
        }
        Ok(())
    }

    /// Reads everything on both sides; the source's is what the target's must be.
    pub fn checksums(&self, route: StateRoute<'_>) -> StoreResult<Vec<(SeriesPart, [SeriesChecksum; 2])>> {
        let both = |part| {
            let source = checksum(&self.source, part, Some(route))?;
            Ok((part, [source, checksum(&self.target, part, None)?]))
        };
        SeriesPart::ALL.into_iter().map(both).collect()
    }

    /// Makes the target a store like any other.
    pub fn end(&self) -> StoreResult<()> {
        let mut batch = self.target.batch(64);
        for key in [SEQ_KEY, FIRST_EPOCH_KEY, CURSOR_KEY, CHECKPOINT_KEY] {
            if let Some(value) = self.source.meta.get(key)? {
                batch.insert(&self.target.meta, key, value);
            }
        }
        if let Some(label) = self.target.meta.get(SOURCE_KEY)? {
            batch.insert(&self.target.meta, COPIED_KEY, label);
        }
        for entry in self.target.meta.prefix(SOURCE_KEY) {
            batch.remove(&self.target.meta, entry?.0);
        }
        self.target.commit(batch, &[])?;
        self.target.sync()
    }
}

fn records_key(prefix: &[u8], partition: Partition) -> Vec<u8> {
    [prefix, &keys::position_key(partition)].concat()
}

fn table_of(engine: &SeriesEngine, part: SeriesPart) -> &SeriesTable {
    match part {
        SeriesPart::Chunks => &engine.chunks,
        SeriesPart::Blocks => &engine.blocks,
        SeriesPart::Stuck => &engine.quarantine.rows,
        SeriesPart::Latest => &engine.latest.rows,
        SeriesPart::Attributes => &engine.attributes.rows,
        SeriesPart::States => &engine.states,
    }
}

/// The part as a table of values, if it is one.
const fn values_of(engine: &SeriesEngine, part: SeriesPart) -> Option<&ValueTable> {
    match part {
        SeriesPart::Latest => Some(&engine.latest),
        SeriesPart::Attributes => Some(&engine.attributes),
        _ => None,
    }
}

fn refused(why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, why)
}

/// What the rule engine keeps, with the key that it has in the target.
fn routed((key, value): &TableEntry, route: StateRoute<'_>) -> StoreResult<(Vec<u8>, Vec<u8>)> {
    let (partition, state) = state_rows::read(key)
        .ok_or_else(|| error::corrupt(key, CorruptData("a state's key does not decode")))?;
    let target = route(partition, &state).map_err(|why| StoreError::new(StoreErrorKind::Conflict, why))?;
    Ok((state_rows::key_of(target, &state), value.to_vec()))
}

fn checksum(
    engine: &SeriesEngine,
    part: SeriesPart,
    route: Option<StateRoute<'_>>,
) -> StoreResult<SeriesChecksum> {
    let mut found = SeriesChecksum::default();
    let values = values_of(engine, part);
    for entry in table_of(engine, part).from(&[]) {
        let entry = entry?;
        if let Some(values) = values {
            let group = entry.0.get(..keys::GROUP_BYTES).unwrap_or_default();
            let decoded = values.cells(&entry, |(_, name, bytes)| {
                found.add(&[group, name.as_bytes(), bytes]);
                Ok(())
            });
            decoded.map_err(|cause| error::corrupt(&entry.0, cause))?;
        } else if let (SeriesPart::States, Some(route)) = (part, route) {
            let (key, value) = routed(&entry, route)?;
            found.add(&[&key, &value]);
        } else if part != SeriesPart::Blocks || entry.0.len() == keys::ROW_BYTES {
            found.add(&[&entry.0, &entry.1]);
        }
    }
    Ok(found)
}

/// Writes a part in batches, each with how far it is.
struct PartWriter<'a> {
    engine: &'a SeriesEngine,
    table: &'a SeriesTable,
    part: SeriesPart,
    batch: SeriesBatch,
    bytes: usize,
    entries: usize,
    /// Key of the source's last entry that is in the batch as a whole.
    done: Option<Vec<u8>>,
    copied: u64,
    epoch: Option<u64>,
    progress: &'a mut dyn FnMut(SeriesPart, u64),
}

impl<'a> PartWriter<'a> {
    fn new(
        engine: &'a SeriesEngine,
        table: &'a SeriesTable,
        part: SeriesPart,
        progress: &'a mut dyn FnMut(SeriesPart, u64),
    ) -> Self {
        Self {
            engine,
            table,
            part,
            batch: engine.batch(BATCH_ENTRIES),
            bytes: 0,
            entries: 0,
            done: None,
            copied: 0,
            epoch: None,
            progress,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.insert(self.table, key, value);
        self.bytes += key.len() + value.len();
        self.entries += 1;
    }

    /// Prepares the place of an epoch's rows, the first time that there is one of them.
    fn begin_epoch(&mut self, epoch: Option<u64>) -> StoreResult<()> {
        if let Some(number) = epoch
            && self.epoch != epoch
        {
            self.engine.db.begin_epoch(number)?;
            self.epoch = epoch;
        }
        Ok(())
    }

    /// Notes that an entry of the source, and all before it, are put.
    fn end_entry(&mut self, key: &[u8]) -> StoreResult<()> {
        self.done = Some(key.to_vec());
        if self.bytes >= BATCH_BYTES || self.entries >= BATCH_ENTRIES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> StoreResult<()> {
        let mut batch = std::mem::replace(&mut self.batch, self.engine.batch(BATCH_ENTRIES));
        if let Some(done) = self.done.take() {
            batch.insert(&self.engine.meta, self.part.progress_key(), done);
        }
        if !batch.is_empty() {
            self.engine.commit(batch, &[self.table])?;
        }
        self.copied += self.entries as u64;
        (self.bytes, self.entries) = (0, 0);
        if self.copied > 0 {
            (self.progress)(self.part, self.copied);
        }
        Ok(())
    }
}

/// Gathers the values of a group into pages.
#[derive(Default)]
struct PageGatherer {
    group: Option<[u8; keys::GROUP_BYTES]>,
    page: Vec<u8>,
    values: u32,
    number: u16,
    /// Key of the last row of the group that was seen.
    last: Option<Vec<u8>>,
}

impl PageGatherer {
    fn add(&mut self, group: &[u8; keys::GROUP_BYTES], cell: &CachedValue, writer: &mut PartWriter<'_>) {
        if self.group.as_ref() != Some(group) {
            self.write_page(writer);
            self.group = Some(*group);
            self.number = 0;
        }
        put_in_page(cell, &mut self.page);
        self.values += 1;
        if self.values >= PAGE_VALUES {
            self.write_page(writer);
        }
    }

    fn write_page(&mut self, writer: &mut PartWriter<'_>) {
        if let Some(group) = &self.group
            && self.values > 0
        {
            writer.put(&page_key(group, self.number), &self.page);
            self.number = self.number.saturating_add(1);
        }
        self.page.clear();
        self.values = 0;
    }

    /// Notes that a row was gathered. A group is committed as a whole, since its pages are numbered.
    fn seen(&mut self, key: &[u8], writer: &mut PartWriter<'_>) -> StoreResult<()> {
        let is_same = |last: &Vec<u8>| last.get(..keys::GROUP_BYTES) == key.get(..keys::GROUP_BYTES);
        let before = self.last.replace(key.to_vec());
        match before.filter(|last| !is_same(last)) {
            Some(last) => writer.end_entry(&last),
            None => Ok(()),
        }
    }

    fn end(&mut self, writer: &mut PartWriter<'_>) -> StoreResult<()> {
        self.write_page(writer);
        match self.last.take() {
            Some(last) => writer.end_entry(&last),
            None => Ok(()),
        }
    }
}
