//! Reading: single entries, and ranges that are merged from partitions and read in pages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use fieldline_core::ports::StoreResult;
use fjall::Slice;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;

use super::super::super::keys;
use super::super::runtime::BackingCall;
use super::super::{KeyRange, TableEntry};
use super::place::{self, ByteRange, CqlTableKind};
use super::{CqlFailure, CqlSession, CqlTable};
use crate::page_size::{FIRST_PAGE, next_page_size};

/// The tables as they are from the first read of a slot on: until it ends, no points of that slot are moved.
pub(in super::super::super) struct CqlSnapshot {
    session: Arc<CqlSession>,
    held: Mutex<BTreeSet<u16>>,
}

impl CqlSnapshot {
    pub(super) fn new(session: Arc<CqlSession>) -> Self {
        Self {
            session,
            held: Mutex::default(),
        }
    }

    fn hold(&self, slots: std::ops::Range<u16>) {
        let mut held = self.held.lock();
        for slot in slots {
            if !held.contains(&slot) {
                self.session.gate.enter(slot, held.is_empty());
                held.insert(slot);
            }
        }
    }
}

impl Drop for CqlSnapshot {
    fn drop(&mut self) {
        self.session.gate.leave(self.held.get_mut());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadDirection {
    Forward,
    Backward,
}

impl CqlTable {
    pub(in super::super) fn get(&self, key: &[u8]) -> StoreResult<Option<Slice>> {
        let kind = self.kind;
        let key = Slice::from(key);
        self.session.read(move |session| async move {
            let partition = place::partition(kind, &key);
            let values = (partition.as_slice(), &key[..]);
            let found = session
                .driver
                .execute_unpaged(&session.statements(kind).get, values)
                .await?;
            let rows = found.into_rows_result().map_err(CqlFailure::corrupt)?;
            let row = rows.maybe_first_row::<(&[u8],)>().map_err(CqlFailure::corrupt)?;
            Ok(row.map(|(value,)| Slice::from(value)))
        })
    }

    pub(in super::super) fn get_in(&self, snapshot: &CqlSnapshot, key: &[u8]) -> StoreResult<Option<Slice>> {
        let slot = place::slot_of_key(self.kind, key);
        snapshot.hold(slot..slot + 1);
        self.get(key)
    }

    pub(in super::super) fn range(&self, range: KeyRange<'_>) -> CqlEntries {
        CqlEntries::new(self.clone(), place::byte_range(range), true)
    }

    pub(in super::super) fn range_in(&self, snapshot: &CqlSnapshot, range: KeyRange<'_>) -> CqlEntries {
        let range = place::byte_range(range);
        snapshot.hold(place::slots_of_range(self.kind, &range));
        CqlEntries::new(self.clone(), range, false)
    }

    /// Reads the first so many entries of ranges, each of a partition.
    pub(super) fn pages(
        &self,
        asked: Vec<(Vec<u8>, ByteRange, usize)>,
        direction: ReadDirection,
    ) -> Result<Vec<Vec<TableEntry>>, CqlFailure> {
        let kind = self.kind;
        let pages = self.session.begin_read(move |session| async move {
            let calls: Vec<_> = asked
                .iter()
                .map(|(partition, range, limit)| session.page(kind, partition, range, *limit, direction))
                .collect();
            let pages = stream::iter(calls).buffered(READ_AT_ONCE);
            pages.try_collect().await
        });
        pages.wait()
    }

    /// Reads the next pages of all runs that have none left.
    fn load(&self, runs: &mut [PartitionRun], direction: ReadDirection) -> StoreResult<()> {
        let mut empty: Vec<&mut PartitionRun> = runs
            .iter_mut()
            .filter(|run| !run.is_exhausted && run.page.is_empty())
            .collect();
        if empty.is_empty() {
            return Ok(());
        }
        let asked = empty
            .iter()
            .map(|run| (run.partition.clone(), run.range.clone(), run.page_size));
        let pages = self.pages(asked.collect(), direction)?;
        for (run, page) in empty.iter_mut().zip(pages) {
            run.fill(direction, page);
        }
        Ok(())
    }

    /// Reads the next page of a run if it has none left, and begins to read the one after it once the run has turned out to
    /// be long.
    fn load_long(&self, run: &mut PartitionRun, direction: ReadDirection) -> StoreResult<()> {
        if run.is_exhausted || !run.page.is_empty() {
            return Ok(());
        }
        let page = match run.ahead.take() {
            Some(page) => page,
            None => self.begin_page(run, direction),
        };
        run.fill(direction, page.wait()?);
        if !run.is_exhausted && run.pages >= PAGES_OF_SHORT {
            run.ahead = Some(self.begin_page(run, direction));
        }
        Ok(())
    }

    fn begin_page(
        &self,
        run: &PartitionRun,
        direction: ReadDirection,
    ) -> BackingCall<Vec<TableEntry>, CqlFailure> {
        let (kind, limit) = (self.kind, run.page_size);
        let (partition, range) = (run.partition.clone(), run.range.clone());
        self.session.begin_read(move |session| async move {
            session.page(kind, &partition, &range, limit, direction).await
        })
    }
}

/// What is left of a range in one partition.
struct PartitionRun {
    partition: Vec<u8>,
    range: ByteRange,
    page: VecDeque<TableEntry>,
    page_size: usize,
    /// Pages that have been read.
    pages: usize,
    /// The page after it, where it is being read already.
    ahead: Option<BackingCall<Vec<TableEntry>, CqlFailure>>,
    is_exhausted: bool,
}

impl PartitionRun {
    fn new(partition: Vec<u8>, range: ByteRange) -> Self {
        Self {
            partition,
            range,
            page: VecDeque::new(),
            page_size: FIRST_PAGE,
            pages: 0,
            ahead: None,
            is_exhausted: false,
        }
    }

    fn head(&self, direction: ReadDirection) -> Option<&Slice> {
        let entry = match direction {
            ReadDirection::Forward => self.page.front(),
            ReadDirection::Backward => self.page.back(),
        };
        entry.map(|(key, _)| key)
    }

    fn take(&mut self, direction: ReadDirection) -> Option<TableEntry> {
        match direction {
            ReadDirection::Forward => self.page.pop_front(),
            ReadDirection::Backward => self.page.pop_back(),
        }
    }

    /// Takes a page that was read.
    fn fill(&mut self, direction: ReadDirection, entries: Vec<TableEntry>) {
        self.pages += 1;
        self.is_exhausted = entries.len() < self.page_size;
        let bytes = entries.iter().map(|(key, value)| key.len() + value.len());
        self.page_size = next_page_size(self.page_size, entries.len(), bytes.sum());
        if let Some((last, _)) = entries.last() {
            match direction {
                ReadDirection::Forward => self.range.start = place::successor(last),
                ReadDirection::Backward => self.range.end = last.to_vec(),
            }
        }
        match direction {
            ReadDirection::Forward => self.page.extend(entries),
            ReadDirection::Backward => self.page.extend(entries.into_iter().rev()),
        }
    }
}

/// Entries of several partitions in the order of their keys.
struct MergedRuns {
    table: CqlTable,
    runs: Vec<PartitionRun>,
}

/// Pages after which nothing is read ahead yet: most readers want no more than they hold.
const PAGES_OF_SHORT: usize = 3;

/// Partitions that are read at the same time.
const READ_AT_ONCE: usize = 64;

impl MergedRuns {
    const fn new(table: CqlTable, runs: Vec<PartitionRun>) -> Self {
        Self { table, runs }
    }

    fn step(&mut self, direction: ReadDirection) -> Option<StoreResult<TableEntry>> {
        let loaded = match self.runs.as_mut_slice() {
            [run] => self.table.load_long(run, direction),
            runs => self.table.load(runs, direction),
        };
        if let Err(error) = loaded {
            self.runs.clear();
            return Some(Err(error));
        }
        self.runs
            .retain(|run| !run.is_exhausted || run.head(direction).is_some());
        let heads = self.runs.iter_mut().filter(|run| run.head(direction).is_some());
        let next = match direction {
            ReadDirection::Forward => heads.min_by(|a, b| a.head(direction).cmp(&b.head(direction))),
            ReadDirection::Backward => heads.max_by(|a, b| a.head(direction).cmp(&b.head(direction))),
        };
        next.and_then(|run| run.take(direction)).map(Ok)
    }
}

/// Where a range goes on when a part of it has ended.
enum RangeParts {
    /// There is no other part.
    One,
    /// Chunks of one series after the other.
    Series(Box<CqlEntries>),
    /// Blocks of one epoch after the other; `None` until they are asked for.
    Epochs(Option<VecDeque<u64>>),
}

/// The entries of a range. They are read in the direction of the first that is asked for.
pub(in super::super::super) struct CqlEntries {
    table: CqlTable,
    range: ByteRange,
    direction: Option<ReadDirection>,
    current: Option<MergedRuns>,
    parts: RangeParts,
    /// The series that is being read, as long as it has shown no chunk.
    empty_series: Option<Slice>,
    /// Series without chunks are forgotten on the way.
    forgets: bool,
}

impl CqlEntries {
    fn new(table: CqlTable, range: ByteRange, forgets: bool) -> Self {
        let is_empty = range.start >= range.end;
        let slots = place::slots_of_range(table.kind, &range);
        let runs = |partition: &dyn Fn(u16) -> Vec<u8>| -> MergedRuns {
            let runs = slots
                .clone()
                .map(|slot| PartitionRun::new(partition(slot), range.clone()));
            MergedRuns::new(table.clone(), runs.collect())
        };
        let (current, parts) = match table.kind {
            _ if is_empty => (None, RangeParts::One),
            CqlTableKind::Chunks => match place::only_series(&range) {
                Some(series) => {
                    let run = PartitionRun::new(series, range.clone());
                    (Some(MergedRuns::new(table.clone(), vec![run])), RangeParts::One)
                }
                None => (
                    None,
                    RangeParts::Series(Box::new(series_of_range(&table, &range))),
                ),
            },
            CqlTableKind::Blocks => match place::only_epoch(&range) {
                Some(epoch) => {
                    let runs = runs(&|slot| place::block_partition(epoch, slot));
                    (Some(runs), RangeParts::One)
                }
                None => (None, RangeParts::Epochs(None)),
            },
            _ => (Some(runs(&|slot| slot.to_be_bytes().to_vec())), RangeParts::One),
        };
        Self {
            table,
            range,
            direction: None,
            current,
            parts,
            empty_series: None,
            forgets,
        }
    }

    fn step(&mut self, direction: ReadDirection) -> Option<StoreResult<TableEntry>> {
        let direction = *self.direction.get_or_insert(direction);
        loop {
            if let Some(current) = &mut self.current
                && let Some(entry) = current.step(direction)
            {
                self.empty_series = None;
                return Some(entry);
            }
            self.current = None;
            if let Some(series) = self.empty_series.take() {
                self.table.session.forget_series(&series);
            }
            match self.next_part(direction) {
                Ok(Some(part)) => self.current = Some(part),
                Ok(None) => return None,
                Err(error) => {
                    self.parts = RangeParts::One;
                    return Some(Err(error));
                }
            }
        }
    }

    fn next_part(&mut self, direction: ReadDirection) -> StoreResult<Option<MergedRuns>> {
        match &mut self.parts {
            RangeParts::One => Ok(None),
            RangeParts::Series(index) => {
                let Some(series) = index.step(direction) else {
                    return Ok(None);
                };
                let (series, _) = series?;
                let is_whole = self.range.start.as_slice() <= &series[..]
                    && keys::after_prefix(&series).is_some_and(|after| after <= self.range.end);
                self.empty_series = (self.forgets && is_whole).then(|| series.clone());
                let run = PartitionRun::new(series.to_vec(), self.range.clone());
                Ok(Some(MergedRuns::new(self.table.clone(), vec![run])))
            }
            RangeParts::Epochs(epochs) => {
                let epochs = match epochs {
                    Some(epochs) => epochs,
                    none => none.insert(self.table.session.epochs(&self.range)?),
                };
                let epoch = match direction {
                    ReadDirection::Forward => epochs.pop_front(),
                    ReadDirection::Backward => epochs.pop_back(),
                };
                let Some(epoch) = epoch else { return Ok(None) };
                let runs = (0..place::SLOTS)
                    .map(|slot| PartitionRun::new(place::block_partition(epoch, slot), self.range.clone()));
                Ok(Some(MergedRuns::new(self.table.clone(), runs.collect())))
            }
        }
    }
}

/// The series that may have chunks in a range.
fn series_of_range(chunks: &CqlTable, range: &ByteRange) -> CqlEntries {
    // A chunk's key is its series and eight bytes more, so that the series of the first may come before it.
    let start = range
        .start
        .get(keys::SUBJECT_BYTES..)
        .and_then(|rest| rest.first_chunk::<2>())
        .map(|length| keys::SUBJECT_BYTES + 2 + usize::from(u16::from_be_bytes(*length)))
        .filter(|length| *length < range.start.len())
        .and_then(|length| range.start.get(..length))
        .unwrap_or(&range.start);
    let table = CqlTable {
        session: Arc::clone(&chunks.session),
        kind: CqlTableKind::Series,
    };
    CqlEntries::new(table, start.to_vec()..range.end.clone(), false)
}

impl Iterator for CqlEntries {
    type Item = StoreResult<TableEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(ReadDirection::Forward)
    }
}

impl DoubleEndedIterator for CqlEntries {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(ReadDirection::Backward)
    }
}
