//! The tables in memory: which there are, what has changed in them since they were read, and when they go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};

use fieldline_core::any_entity::kind_policy;
use fieldline_core::clock::SharedClock;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ports::{ValueChange, ValueListener};
use fieldline_model::{EntityKey, EntityType, TenantId};
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

use super::table::TableData;

/// Tables that no query has asked for this long go, milliseconds.
const IDLE_MS: i64 = 600_000;
/// How often it is looked for them, milliseconds.
const IDLE_CHECK_MS: i64 = 5_000;
const NOTE_SHARDS: usize = 16;

/// What has changed among the entities of a table.
#[derive(Debug, Default)]
pub(super) struct StaleRows {
    /// Any of them may have.
    pub(super) all: bool,
    /// These have.
    pub(super) ids: FxHashSet<Uuid>,
}

/// The reading of what is stale in a table. Unless it is finished, the table remains stale when this is dropped: by an error, a
/// panic, or because nobody waits for the query any more.
pub(super) struct StaleRefresh<'a> {
    table: &'a EntityTable,
    /// The rows to read.
    pub(super) stale: StaleRows,
}

impl<'a> StaleRefresh<'a> {
    /// Takes over what is stale; changes from now on are for the next refresh.
    pub(super) fn begin(table: &'a EntityTable) -> Self {
        let stale = std::mem::take(&mut *table.stale.lock());
        Self { table, stale }
    }

    /// The rows are as they are stored.
    pub(super) fn finish(mut self) {
        self.stale = StaleRows::default();
    }
}

impl Drop for StaleRefresh<'_> {
    fn drop(&mut self) {
        let mut left = self.table.stale.lock();
        left.all |= self.stale.all;
        left.ids.extend(self.stale.ids.drain());
    }
}

/// A table and what has changed since it was read.
pub(super) struct EntityTable {
    pub(super) data: RwLock<TableData>,
    /// Held while entities are read, so that who comes later waits for them.
    pub(super) reading: tokio::sync::Mutex<()>,
    pub(super) stale: Mutex<StaleRows>,
    /// Whose values have changed, and of which sources.
    notes: [Mutex<FxHashMap<Uuid, u8>>; NOTE_SHARDS],
    noted: AtomicBool,
    /// Sources of the columns, as bits: other changes need no note.
    pub(super) sources: AtomicU8,
    pub(super) used_ms: AtomicI64,
    /// Bytes it took when it was last looked at.
    pub(super) bytes: AtomicUsize,
}

impl EntityTable {
    pub(super) fn new(tenant: TenantId, kind: EntityType) -> Self {
        Self {
            data: RwLock::new(TableData::new(tenant, kind)),
            reading: tokio::sync::Mutex::default(),
            // Nothing of it is read yet.
            stale: Mutex::new(StaleRows {
                all: true,
                ids: FxHashSet::default(),
            }),
            notes: Default::default(),
            noted: AtomicBool::new(false),
            sources: AtomicU8::new(0),
            used_ms: AtomicI64::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Notes that values of an entity have changed.
    pub(super) fn note(&self, id: Uuid, sources: u8) {
        let sources = sources & self.sources.load(Ordering::Acquire);
        if sources == 0 {
            return;
        }
        let shard = usize::from(id.as_bytes()[15]) % NOTE_SHARDS;
        *self.notes[shard].lock().entry(id).or_default() |= sources;
        self.noted.store(true, Ordering::Release);
    }

    pub(super) fn has_notes(&self) -> bool {
        self.noted.load(Ordering::Acquire)
    }

    /// The notes, which are then forgotten. The table is locked for writing, so that nobody reads it meanwhile.
    pub(super) fn take_notes(&self) -> FxHashMap<Uuid, u8> {
        self.noted.store(false, Ordering::Release);
        let mut all = FxHashMap::default();
        for shard in &self.notes {
            let taken = std::mem::take(&mut *shard.lock());
            if all.is_empty() {
                all = taken;
            } else {
                all.extend(taken);
            }
        }
        all
    }
}

/// All tables.
pub(super) struct EntityTableCache {
    tables: RwLock<FxHashMap<(TenantId, EntityType), Arc<EntityTable>>>,
    count: AtomicUsize,
    clock: SharedClock,
    next_check_ms: AtomicI64,
    /// Bytes that all tables together may take.
    budget: usize,
}

impl EntityTableCache {
    pub(super) fn new(clock: SharedClock, budget: usize) -> Self {
        Self {
            tables: RwLock::default(),
            count: AtomicUsize::new(0),
            clock,
            next_check_ms: AtomicI64::new(0),
            budget,
        }
    }

    /// Bytes that all tables together may take.
    pub(super) const fn budget(&self) -> usize {
        self.budget
    }

    /// The table, if it is in memory.
    pub(super) fn get(&self, tenant: TenantId, kind: EntityType) -> Option<Arc<EntityTable>> {
        let table = self.tables.read().get(&(tenant, kind)).cloned()?;
        table.used_ms.store(self.clock.now_ms(), Ordering::Relaxed);
        Some(table)
    }

    /// The table, an empty one that nothing was read for yet if it is not there.
    pub(super) fn get_or_new(&self, tenant: TenantId, kind: EntityType) -> Arc<EntityTable> {
        if let Some(table) = self.get(tenant, kind) {
            return table;
        }
        let mut tables = self.tables.write();
        let table = tables
            .entry((tenant, kind))
            .or_insert_with(|| Arc::new(EntityTable::new(tenant, kind)));
        table.used_ms.store(self.clock.now_ms(), Ordering::Relaxed);
        let table = Arc::clone(table);
        self.count.store(tables.len(), Ordering::Release);
        table
    }

    /// Gives memory back where the tables have outgrown their budget: first columns, then tables, of the tenant that has
    /// most, those that were used longest ago first.
    pub(super) fn trim(&self) {
        let tables: Vec<_> = self
            .tables
            .read()
            .iter()
            .map(|(key, table)| (*key, Arc::clone(table)))
            .collect();
        let mut total: usize = tables
            .iter()
            .map(|(_, table)| table.bytes.load(Ordering::Relaxed))
            .sum();
        if total <= self.budget {
            return;
        }
        let mut left = tables;
        while total > self.budget
            && let Some(at) = first_to_go(&left)
        {
            let (key, table) = left.swap_remove(at);
            let Some(mut data) = table.data.try_write() else {
                continue;
            };
            let before = table.bytes.load(Ordering::Relaxed);
            data.shed(total - self.budget);
            let after = data.cost();
            table.sources.store(data.sources(), Ordering::Release);
            table.bytes.store(after, Ordering::Relaxed);
            drop(data);
            total -= before.saturating_sub(after).min(total);
            if total > self.budget {
                self.drop_table(key);
                total -= after.min(total);
            }
        }
    }

    fn drop_table(&self, key: (TenantId, EntityType)) {
        let mut tables = self.tables.write();
        tables.remove(&key);
        self.count.store(tables.len(), Ordering::Release);
    }

    /// Drops what nobody has asked for lately. Called by writers, so that it happens without queries.
    fn drop_idle(&self) {
        let now = self.clock.now_ms();
        let next = self.next_check_ms.load(Ordering::Relaxed);
        // A clock that was set back must not put it off.
        if (next - IDLE_CHECK_MS..next).contains(&now) {
            return;
        }
        self.next_check_ms.store(now + IDLE_CHECK_MS, Ordering::Relaxed);
        let oldest = now - IDLE_MS;
        let is_idle = |table: &Arc<EntityTable>| table.used_ms.load(Ordering::Relaxed) < oldest;
        if self.tables.read().values().any(is_idle) {
            let mut tables = self.tables.write();
            tables.retain(|_, table| !is_idle(table));
            self.count.store(tables.len(), Ordering::Release);
        }
    }

    fn mark_stale(&self, tenant: TenantId, kind: EntityType, id: Option<Uuid>) {
        if let Some(table) = self.tables.read().get(&(tenant, kind)) {
            let mut stale = table.stale.lock();
            match id {
                Some(id) => {
                    stale.ids.insert(id);
                }
                None => stale.all = true,
            }
        }
    }

    /// Marks what follows from an entity that was saved or deleted.
    fn mark_others_stale(&self, change: EntityChange) {
        let EntityKey { tenant, entity } = change.subject;
        match (entity.entity_type, change.what) {
            // The type of an entity is the name of its profile.
            (EntityType::DeviceProfile, _) => self.mark_stale(tenant, EntityType::Device, None),
            (EntityType::AssetProfile, _) => self.mark_stale(tenant, EntityType::Asset, None),
            // What was the customer's belongs to nobody now.
            (EntityType::Customer, ChangeKind::Deleted) => {
                for kind in EntityType::ALL {
                    if kind_policy(*kind).of_customers {
                        self.mark_stale(tenant, *kind, None);
                    }
                }
            }
            (EntityType::Tenant, what) => {
                self.mark_stale(TenantId::NULL, EntityType::Tenant, Some(entity.id));
                if what == ChangeKind::Deleted {
                    let mut tables = self.tables.write();
                    tables.retain(|(of, _), _| *of != tenant);
                    self.count.store(tables.len(), Ordering::Release);
                }
            }
            _ => {}
        }
    }
}

type EntityTableKey = (TenantId, EntityType);

/// Which table goes first.
fn first_to_go(tables: &[(EntityTableKey, Arc<EntityTable>)]) -> Option<usize> {
    let mut by_tenant: FxHashMap<TenantId, usize> = FxHashMap::default();
    for ((tenant, _), table) in tables {
        *by_tenant.entry(*tenant).or_default() += table.bytes.load(Ordering::Relaxed);
    }
    let (largest, _) = by_tenant
        .into_iter()
        .max_by_key(|(tenant, bytes)| (*bytes, *tenant))?;
    let own = tables
        .iter()
        .enumerate()
        .filter(|(_, ((tenant, _), _))| *tenant == largest);
    own.min_by_key(|(_, (_, table))| table.used_ms.load(Ordering::Relaxed))
        .map(|(at, _)| at)
}

impl ValueListener for EntityTableCache {
    fn is_listening(&self) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.drop_idle();
        true
    }

    fn on_value(&self, change: ValueChange<'_>) {
        let subject = change.subject();
        let key = (subject.tenant, subject.entity.entity_type);
        let sources = super::table::source_bit(change.source());
        let tables = self.tables.read();
        if let Some(table) = tables.get(&key) {
            table.note(subject.entity.id, sources);
        }
        // System administrators see all tenants in one table.
        if subject.entity.entity_type == EntityType::Tenant
            && let Some(table) = tables.get(&(TenantId::NULL, EntityType::Tenant))
        {
            table.note(subject.entity.id, sources);
        }
    }
}

impl EntityListener for EntityTableCache {
    fn on_change(&self, change: EntityChange) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let EntityKey { tenant, entity } = change.subject;
        match change.what {
            ChangeKind::Saved | ChangeKind::Deleted => {
                self.mark_stale(tenant, entity.entity_type, Some(entity.id));
                self.mark_others_stale(change);
            }
            ChangeKind::Queues => {
                self.mark_stale(tenant, EntityType::Queue, None);
                self.mark_stale(tenant, EntityType::QueueStats, None);
            }
            ChangeKind::Moved
            | ChangeKind::Credentials
            | ChangeKind::CalculatedField(_)
            | ChangeKind::Relations(_)
            | ChangeKind::Alarms
            | ChangeKind::Attributes(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenant_that_has_most_gives_back_first_what_it_has_not_used_for_longest() {
        let (greedy, modest) = (TenantId::new(), TenantId::new());
        let tables: Vec<(EntityTableKey, Arc<EntityTable>)> = [
            (modest, EntityType::Device, 60, 1),
            (greedy, EntityType::Device, 50, 9),
            (greedy, EntityType::Asset, 40, 8),
        ]
        .into_iter()
        .map(|(tenant, kind, bytes, used)| {
            let table = EntityTable::new(tenant, kind);
            table.bytes.store(bytes, Ordering::Relaxed);
            table.used_ms.store(used, Ordering::Relaxed);
            ((tenant, kind), Arc::new(table))
        })
        .collect();
        assert_eq!(first_to_go(&tables), Some(2));
        assert_eq!(first_to_go(&tables[..2]), Some(0));
        assert_eq!(first_to_go(&[]), None);
    }

    #[test]
    fn a_table_stays_stale_unless_it_was_read_to_the_end() {
        let table = EntityTable::new(TenantId::new(), EntityType::Device);
        drop(StaleRefresh::begin(&table));
        assert!(table.stale.lock().all);
        StaleRefresh::begin(&table).finish();
        assert!(!table.stale.lock().all);
        let [before, meanwhile] = [Uuid::new_v4(), Uuid::new_v4()];
        table.stale.lock().ids.insert(before);
        let refresh = StaleRefresh::begin(&table);
        assert!(refresh.stale.ids.contains(&before) && table.stale.lock().ids.is_empty());
        table.stale.lock().ids.insert(meanwhile);
        drop(refresh);
        assert_eq!(table.stale.lock().ids, FxHashSet::from_iter([before, meanwhile]));
    }
}
