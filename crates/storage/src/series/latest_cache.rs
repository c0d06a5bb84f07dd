//! Latest values and attributes: a write-back cache over a table of values.
//!
//! A *group* holds all values of a subject (and, for attributes, a scope); it is cached whole or not at all. A changed
//! value is *dirty* until a checkpoint has written it, and a group with a dirty value is never evicted, so memory and
//! table together are always the truth. A direct write changes groups before its batch is committed; what they were
//! until then is kept while it runs, and comes back where the commit fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fieldline_core::ports::{StoreResult, StoredValue};
use fieldline_model::kv::KvValueRef;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use super::backing::SeriesBatch;
use super::cache_shard::{CacheShard, ValueGroup};
use super::cached_value::{CachedValue, cell_key, insert_all};
use super::keys::{ValueGroupKey, spread};
use super::value_table::{PAGE_VALUES, ValueTable, page_key, put_in_page};

const SHARDS: usize = 64;
const GROUP_COST: usize = 160;

/// Which of two writes to a value wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConflictPolicy {
    /// The one with the greater time, of two with the same time the later.
    ByTime,
    /// The later, whatever its time: the clock may have been set back in between.
    ByArrival,
}

/// A value that a checkpoint is writing.
pub(super) type FlushedValueKey = (ValueGroupKey, Arc<str>);

pub(super) struct LatestCache {
    shards: Box<[Mutex<CacheShard>]>,
    bytes: AtomicUsize,
    budget: usize,
    conflict_policy: ConflictPolicy,
    /// A direct write runs.
    is_recording: AtomicBool,
    /// What the groups were that it has changed.
    recorded: Mutex<FxHashMap<ValueGroupKey, ValueGroup>>,
    /// Pages out of which it has taken values: they are written anew with its batch.
    stale_pages: Mutex<FxHashSet<(ValueGroupKey, u16)>>,
    /// Reads of the table fail, as the test wants it.
    #[cfg(test)]
    pub(super) fails: AtomicBool,
}

impl LatestCache {
    pub(super) fn new(budget: usize, newest: ConflictPolicy) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            bytes: AtomicUsize::new(0),
            budget,
            conflict_policy: newest,
            is_recording: AtomicBool::new(false),
            recorded: Mutex::default(),
            stale_pages: Mutex::default(),
            #[cfg(test)]
            fails: AtomicBool::new(false),
        }
    }

    fn shard(&self, group: &ValueGroupKey) -> &Mutex<CacheShard> {
        &self.shards[spread(group) % SHARDS]
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the cache has outgrown its budget so far that writers must wait for a checkpoint.
    pub(super) fn is_overfull(&self) -> bool {
        self.bytes() > self.budget + self.budget / 2
    }

    fn ensure<'a>(
        &self,
        shard: &'a mut MutexGuard<'_, CacheShard>,
        table: &ValueTable,
        group: &ValueGroupKey,
    ) -> StoreResult<&'a mut ValueGroup> {
        if !shard.groups.contains_key(group) {
            let loaded = self.load(shard, table, group)?;
            self.insert(shard, group, loaded);
        }
        let held = shard.groups.entry(*group).or_default();
        held.used = true;
        Ok(held)
    }

    fn load(
        &self,
        shard: &mut CacheShard,
        table: &ValueTable,
        group: &ValueGroupKey,
    ) -> StoreResult<ValueGroup> {
        #[cfg(test)]
        if self.fails.load(Ordering::Relaxed) {
            return Err(super::error::io(std::io::Error::other("as the test wants it")));
        }
        shard.load(table, group)
    }

    /// Brings a group that is about to be changed into memory.
    fn ensure_to_change<'a>(
        &self,
        shard: &'a mut MutexGuard<'_, CacheShard>,
        table: &ValueTable,
        group: &ValueGroupKey,
    ) -> StoreResult<&'a mut ValueGroup> {
        let held = self.ensure(shard, table, group)?;
        if self.is_recording.load(Ordering::Acquire) {
            let mut recorded = self.recorded.lock();
            recorded.entry(*group).or_insert_with(|| held.clone());
        }
        Ok(held)
    }

    /// Keeps what groups are before they are changed, until [`confirm`](Self::confirm) or
    /// [`roll_back`](Self::roll_back). Nobody but the direct write that asks for it may change any meanwhile.
    pub(super) fn record(&self) {
        self.recorded.lock().clear();
        self.is_recording.store(true, Ordering::Release);
    }

    /// Lets the changes stand.
    pub(super) fn confirm(&self) {
        self.is_recording.store(false, Ordering::Release);
        *self.recorded.lock() = FxHashMap::default();
    }

    /// Takes back what was changed since [`record`](Self::record).
    pub(super) fn roll_back(&self) {
        self.is_recording.store(false, Ordering::Release);
        self.stale_pages.lock().clear();
        for (group, before) in std::mem::take(&mut *self.recorded.lock()) {
            let mut shard = self.shard(&group).lock();
            shard.left += 1;
            let was_listed = shard.groups.remove(&group).is_some_and(|changed| {
                self.release(&changed);
                changed.dirty
            });
            match (was_listed, before.dirty) {
                (false, true) => shard.dirty.push(group),
                (true, false) => shard.dirty.retain(|other| *other != group),
                _ => {}
            }
            self.insert(&mut shard, &group, before);
        }
    }

    fn insert(&self, shard: &mut CacheShard, group: &ValueGroupKey, loaded: ValueGroup) {
        let cost = GROUP_COST + loaded.values.iter().map(CachedValue::cost).sum::<usize>();
        self.bytes.fetch_add(cost, Ordering::Relaxed);
        shard.groups.insert(*group, loaded);
    }

    /// Writes values of a group where they are not older than what is there, see [`ConflictPolicy`].
    pub(super) fn put<'v>(
        &self,
        table: &ValueTable,
        group: &ValueGroupKey,
        ts: i64,
        ttl: u32,
        values: impl Iterator<Item = (&'v str, KvValueRef<'v>)>,
    ) -> StoreResult<()> {
        let mut shard = self.shard(group).lock();
        self.ensure_to_change(&mut shard, table, group)?;
        let mut changed = false;
        let mut added: Vec<(usize, CachedValue)> = Vec::new();
        for (name, value) in values {
            match self.put_one(&mut shard, group, name, ts, ttl, value) {
                PutOutcome::Ignored => {}
                PutOutcome::Replaced => changed = true,
                PutOutcome::New(at, cell) => added.push((at, cell)),
            }
        }
        if let Some(held) = shard.groups.get_mut(group)
            && !added.is_empty()
        {
            for (_, cell) in &mut added {
                cell.page = u16::try_from(held.next_place / PAGE_VALUES).unwrap_or(u16::MAX);
                held.next_place += 1;
            }
            let cost = insert_all(&mut held.values, added);
            self.bytes.fetch_add(cost, Ordering::Relaxed);
            changed = true;
        }
        if changed {
            shard.mark_dirty(group);
        }
        Ok(())
    }

    fn put_one(
        &self,
        shard: &mut CacheShard,
        group: &ValueGroupKey,
        name: &str,
        ts: i64,
        ttl: u32,
        value: KvValueRef<'_>,
    ) -> PutOutcome {
        let Some(held) = shard.groups.get_mut(group) else {
            return PutOutcome::Ignored;
        };
        match held.values.binary_search_by(|cell| cell.name.as_ref().cmp(name)) {
            Ok(at) => {
                let by_arrival = self.conflict_policy == ConflictPolicy::ByArrival;
                let wins = |cell: &&mut CachedValue| by_arrival || cell.ts <= ts;
                let Some(cell) = held.values.get_mut(at).filter(wins) else {
                    return PutOutcome::Ignored;
                };
                let before = cell.value.heap_bytes();
                (cell.ts, cell.ttl, cell.dirty) = (ts, ttl, true);
                cell.value = value.to_value();
                self.bytes.fetch_add(cell.value.heap_bytes(), Ordering::Relaxed);
                self.bytes.fetch_sub(before, Ordering::Relaxed);
                PutOutcome::Replaced
            }
            Err(at) => {
                let cell = CachedValue {
                    name: shard.name(name),
                    ts,
                    ttl,
                    value: value.to_value(),
                    page: 0,
                    dirty: true,
                };
                PutOutcome::New(at, cell)
            }
        }
    }

    /// The values of a group, sorted by name.
    pub(super) fn get(&self, table: &ValueTable, group: &ValueGroupKey) -> StoreResult<Vec<CachedValue>> {
        let mut shard = self.shard(group).lock();
        if !shard.groups.contains_key(group) {
            // What does not exist must not fill the cache.
            let loaded = self.load(&mut shard, table, group)?;
            if loaded.corrupt.is_none() && loaded.values.is_empty() {
                return Ok(Vec::new());
            }
            self.insert(&mut shard, group, loaded);
        }
        self.ensure(&mut shard, table, group)?.answer(group)
    }

    /// The same as [`get`](Self::get) where that needs neither the disk nor waiting.
    pub(super) fn peek(&self, group: &ValueGroupKey) -> Option<StoreResult<Vec<CachedValue>>> {
        let mut shard = self.shard(group).try_lock()?;
        let held = shard.groups.get_mut(group)?;
        held.used = true;
        Some(held.answer(group))
    }

    /// Gives the named values of a group that there are, with the places of their names. A group that is not in memory
    /// is not brought there.
    pub(super) fn visit_named(
        &self,
        table: &ValueTable,
        group: &ValueGroupKey,
        names: &[String],
        visit: &mut dyn FnMut(usize, StoredValue<'_>),
    ) -> StoreResult<()> {
        {
            let mut shard = self.shard(group).lock();
            if let Some(held) = shard.groups.get_mut(group) {
                if held.corrupt.is_some() {
                    return held.answer(group).map(drop);
                }
                for (place, name) in names.iter().enumerate() {
                    let at = held.values.binary_search_by(|cell| cell.name.as_ref().cmp(name));
                    if let Some(cell) = at.ok().and_then(|at| held.values.get(at)) {
                        visit(place, cell.stored());
                    }
                }
                return Ok(());
            }
        }
        table.visit_named(group, names, &mut |place, cell| visit(place, cell.stored()))
    }

    /// Whether a group is in memory.
    pub(super) fn holds(&self, group: &ValueGroupKey) -> bool {
        self.shard(group).lock().groups.contains_key(group)
    }

    /// Brings groups into memory that are about to be changed, all with one look into the table. What cannot be read now
    /// is read when it is needed.
    pub(super) fn load_ahead(&self, table: &ValueTable, groups: &[ValueGroupKey]) {
        let mut missing = Vec::new();
        for group in groups {
            let shard = self.shard(group).lock();
            if !shard.groups.contains_key(group) {
                missing.push((*group, shard.left));
            }
        }
        missing.sort_unstable();
        missing.dedup_by_key(|(group, _)| *group);
        // A single one costs a look either way.
        if missing.len() < 2 {
            return;
        }
        let prefixes: Vec<ValueGroupKey> = missing.iter().map(|(group, _)| *group).collect();
        let mut rows = Vec::new();
        let read = table.rows.prefixes(&prefixes, &mut |row| {
            rows.push(row);
            Ok(())
        });
        if read.is_err() {
            return;
        }
        rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut rows = rows.into_iter().peekable();
        for (group, left) in missing {
            let of_group = std::iter::from_fn(|| rows.next_if(|(key, _)| key.starts_with(&group)));
            let mut shard = self.shard(&group).lock();
            let loaded = shard.decode(table, &group, of_group.map(Ok));
            if let Ok(loaded) = loaded
                && shard.left == left
                && !shard.groups.contains_key(&group)
            {
                self.insert(&mut shard, &group, loaded);
            }
        }
    }

    /// Adds all dirty values to a batch; they count as clean from now on. [`restore`](Self::restore) takes that back.
    pub(super) fn flush(&self, table: &ValueTable, batch: &mut SeriesBatch) -> Vec<FlushedValueKey> {
        let mut written = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock();
            for group in std::mem::take(&mut shard.dirty) {
                let Some(held) = shard.groups.get_mut(&group) else {
                    continue;
                };
                held.dirty = false;
                let mut last_page = None;
                for cell in held.values.iter_mut().filter(|cell| cell.dirty) {
                    cell.dirty = false;
                    written.push((group, Arc::clone(&cell.name)));
                    if !table.is_paged() {
                        batch.insert(&table.rows, cell_key(&group, &cell.name), cell.encode());
                    } else if last_page.replace(cell.page) != Some(cell.page) {
                        self.stale_pages.lock().insert((group, cell.page));
                    }
                }
            }
        }
        // Shards are locked before the pages.
        let stale = std::mem::take(&mut *self.stale_pages.lock());
        for (group, page) in stale {
            self.write_page(table, &group, page, batch);
        }
        written
    }

    /// Adds a page to a batch as it is now.
    fn write_page(&self, table: &ValueTable, group: &ValueGroupKey, page: u16, batch: &mut SeriesBatch) {
        let shard = self.shard(group).lock();
        let Some(held) = shard.groups.get(group) else {
            return;
        };
        let mut bytes = Vec::new();
        for cell in held.values.iter().filter(|cell| cell.page == page) {
            put_in_page(cell, &mut bytes);
        }
        let key = page_key(group, page);
        if bytes.is_empty() {
            batch.remove(&table.rows, &key[..]);
        } else {
            batch.insert(&table.rows, &key[..], bytes);
        }
    }

    /// Makes values dirty again whose batch was not written.
    pub(super) fn restore(&self, written: Vec<FlushedValueKey>) {
        for (group, name) in written {
            let mut shard = self.shard(&group).lock();
            let cell = shard.groups.get_mut(&group).and_then(|held| {
                let at = held.values.binary_search_by(|cell| cell.name.cmp(&name));
                held.values.get_mut(at.ok()?)
            });
            if let Some(cell) = cell {
                cell.dirty = true;
                shard.mark_dirty(&group);
            }
        }
    }

    pub(super) fn has_dirty(&self) -> bool {
        self.shards.iter().any(|shard| !shard.lock().dirty.is_empty())
    }

    /// Removes values in the batch of a direct write. The group stays in memory, so that nobody reads the old values back
    /// in between.
    pub(super) fn remove(
        &self,
        table: &ValueTable,
        group: &ValueGroupKey,
        batch: &mut SeriesBatch,
        goes: impl Fn(&CachedValue) -> bool,
    ) -> StoreResult<()> {
        self.take(table, group, |cell| {
            let goes = goes(cell);
            if goes && !table.is_paged() {
                batch.remove(&table.rows, cell_key(group, &cell.name));
            }
            goes
        })
    }

    /// Takes values out of memory that others of their names replace within the same direct write.
    pub(super) fn take(
        &self,
        table: &ValueTable,
        group: &ValueGroupKey,
        mut goes: impl FnMut(&CachedValue) -> bool,
    ) -> StoreResult<()> {
        let mut shard = self.shard(group).lock();
        let held = self.ensure_to_change(&mut shard, table, group)?;
        let before: usize = held.values.iter().map(CachedValue::cost).sum();
        held.values.retain(|cell| {
            let goes = goes(cell);
            if goes && table.is_paged() {
                self.stale_pages.lock().insert((*group, cell.page));
            }
            !goes
        });
        let after: usize = held.values.iter().map(CachedValue::cost).sum();
        self.bytes.fetch_sub(before - after, Ordering::Relaxed);
        Ok(())
    }

    /// Takes whole groups out of the cache, changed values with them. No checkpoint or direct write may be under way.
    pub(super) fn drop_groups(&self, groups: &[ValueGroupKey]) {
        for group in groups {
            // It is freed after its shard.
            let dropped = {
                let mut shard = self.shard(group).lock();
                shard.left += 1;
                shard.groups.remove(group)
            };
            if let Some(held) = dropped {
                self.release(&held);
            }
        }
    }

    /// The groups in the cache whose keys begin like this.
    pub(super) fn groups_below(&self, prefix: &[u8]) -> Vec<ValueGroupKey> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            found.extend(shard.groups.keys().filter(|group| group.starts_with(prefix)));
        }
        found
    }

    fn release(&self, held: &ValueGroup) {
        let cost = GROUP_COST + held.values.iter().map(CachedValue::cost).sum::<usize>();
        self.bytes.fetch_sub(cost, Ordering::Relaxed);
    }

    /// Forgets what can be read again: the table may not hold any more what was read of it.
    pub(super) fn forget_clean(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.left += 1;
            shard.groups.retain(|_, held| {
                if !held.dirty {
                    self.release(held);
                }
                held.dirty
            });
        }
    }

    /// Evicts groups that were not used lately until the cache fits. No checkpoint may be under way.
    pub(super) fn evict(&self) {
        for _pass in 0..2 {
            for shard in &self.shards {
                if self.bytes() <= self.budget {
                    return;
                }
                let mut shard = shard.lock();
                shard.left += 1;
                shard.groups.retain(|_, held| {
                    let keep = held.dirty || std::mem::take(&mut held.used);
                    if !keep {
                        self.release(held);
                    }
                    keep
                });
                if shard.groups.capacity() > 4 * shard.groups.len() {
                    shard.groups.shrink_to_fit();
                }
            }
        }
    }
}

/// What has become of one of the values of a write.
enum PutOutcome {
    /// There is a newer one.
    Ignored,
    Replaced,
    /// There is no value of that name; where it belongs.
    New(usize, CachedValue),
}
