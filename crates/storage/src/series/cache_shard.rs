//! A shard of the cache of latest values and attributes: groups of values, and how they are read from the table.

use std::sync::Arc;

use fieldline_core::logging::LogGate;
use fieldline_core::ports::{StoreErrorKind, StoreResult};
use fieldline_model::kv::CorruptData;
use rustc_hash::{FxHashMap, FxHashSet};

use super::backing::TableEntry;
use super::cached_value::CachedValue;
use super::error;
use super::keys::ValueGroupKey;
use super::value_table::{PAGE_VALUES, ValueTable};

/// Names that nobody uses any more are forgotten when a shard knows this many, and then when it knows twice as many as were
/// in use.
const MAX_IDLE_NAMES: usize = 4096;

static CORRUPT_GATE: LogGate = LogGate::new(1);

/// The values of a group.
#[derive(Clone, Default)]
pub(super) struct ValueGroup {
    /// Sorted by name.
    pub(super) values: Vec<CachedValue>,
    pub(super) dirty: bool,
    /// Used since the evictor came by.
    pub(super) used: bool,
    /// Why the stored values could not be read. New ones are taken all the same.
    pub(super) corrupt: Option<Box<str>>,
    /// The place of the next new value, counted over all pages.
    pub(super) next_place: u32,
}

impl ValueGroup {
    /// The values, for a reader.
    pub(super) fn answer(&self, group: &ValueGroupKey) -> StoreResult<Vec<CachedValue>> {
        match &self.corrupt {
            Some(cause) => {
                tracing::debug!(%cause, "stored values cannot be read");
                Err(error::corrupt(
                    group,
                    CorruptData("a block does not pass its checks"),
                ))
            }
            None => Ok(self.values.clone()),
        }
    }
}

/// Some of the groups in memory.
#[derive(Default)]
pub(super) struct CacheShard {
    pub(super) groups: FxHashMap<ValueGroupKey, ValueGroup>,
    pub(super) dirty: Vec<ValueGroupKey>,
    names: FxHashSet<Arc<str>>,
    /// Names that the shard may know before idle ones are looked for: looking costs as much as there are.
    enough_names: usize,
    /// Groups that have left the shard since the start: what was read of the table before one left may be outdated.
    pub(super) left: u64,
}

impl CacheShard {
    pub(super) fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        if self.names.len() >= self.enough_names.max(MAX_IDLE_NAMES) {
            self.names.retain(|name| Arc::strong_count(name) > 1);
            self.enough_names = 2 * self.names.len();
            self.names.shrink_to(self.enough_names);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    /// Reads a group. What can be read at another time is an error; stored bytes that cannot be read are noted in the group.
    pub(super) fn load(&mut self, table: &ValueTable, group: &ValueGroupKey) -> StoreResult<ValueGroup> {
        self.decode(table, group, table.rows.prefix(group))
    }

    /// Makes a group of its rows, in the order of their keys.
    pub(super) fn decode(
        &mut self,
        table: &ValueTable,
        group: &ValueGroupKey,
        rows: impl Iterator<Item = StoreResult<TableEntry>>,
    ) -> StoreResult<ValueGroup> {
        let mut loaded = ValueGroup::default();
        // Places of the last page that are taken.
        let (mut last_page, mut taken) = (0, 0);
        for row in rows {
            let added = row.and_then(|row| {
                let shown = table.cells(&row, |(page, name, bytes)| {
                    let mut cell = CachedValue::decode(self.name(name), bytes)?;
                    taken = if page == last_page { taken + 1 } else { 1 };
                    last_page = page;
                    cell.page = page;
                    loaded.values.push(cell);
                    Ok(())
                });
                shown.map_err(|cause| error::corrupt(group, cause))
            });
            match added {
                Ok(()) => {}
                Err(error) if error.kind() != StoreErrorKind::Corrupt => return Err(error),
                Err(error) => {
                    if let Some(suppressed) = CORRUPT_GATE.open() {
                        tracing::error!(%error, suppressed, "stored values cannot be read");
                    }
                    loaded.corrupt = Some(error.to_string().into());
                    break;
                }
            }
        }
        if table.is_paged() {
            loaded.values.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            loaded.next_place = u32::from(last_page) * PAGE_VALUES + taken;
        }
        loaded.values.shrink_to_fit();
        Ok(loaded)
    }

    /// Notes that a group has values which the table does not have.
    pub(super) fn mark_dirty(&mut self, group: &ValueGroupKey) {
        if let Some(held) = self.groups.get_mut(group)
            && !std::mem::replace(&mut held.dirty, true)
        {
            self.dirty.push(*group);
        }
    }
}
