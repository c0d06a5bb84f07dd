//! Taking away all that subjects have which are gone.
//!
//! The keys of a subject are together in each table (in `blocks`, within each epoch), and so are those of a tenant: they are
//! walked and removed step by step. No lock is held but for moments, nothing is brought into memory, and each step is followed
//! by a pause, so that other writers get their turn at the engine's journal. Nobody asks for these subjects any more; that
//! is why none of this has to be seen at one moment, as a deletion has to be.
//!
//! # Order
//! A checkpoint comes first: it takes what is in memory to the tables, and a replay begins after it. Rows go before
//! chunks: compaction makes chunks of rows. A step of it that has read rows which are gone by now ends before the
//! chunks are looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::{Duration, Instant};

use fieldline_core::ports::{StoreResult, ValueRemovalScope};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityKey, TenantId};
use rustc_hash::FxHashSet;
use uuid::Uuid;

use super::backing::SeriesTable;
use super::engine::SeriesEngine;
use super::keys::{self, EPOCH_BYTES, EntityKeyBytes, SUBJECT_BYTES, ValueGroupKey};
use super::store::SeriesStore;

/// Keys that one step looks at.
const STEP_KEYS: usize = 1_024;
/// Places that one step looks into, where they hold less.
const STEP_PLACES: usize = 256;
/// Longest pause after a step; else it is as long as the step.
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// A table, or an epoch of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RemovalTable {
    Epoch(u64),
    Chunks,
    Latest,
    Attributes,
}

impl RemovalTable {
    /// The table, `None` where the epoch is packed and gone.
    fn table(self, engine: &SeriesEngine) -> Option<SeriesTable> {
        match self {
            Self::Epoch(number) => {
                let epochs = engine.epochs();
                let epoch = epochs.iter().find(|epoch| epoch.number == number);
                epoch.map(|epoch| epoch.rows.clone())
            }
            Self::Chunks => Some(engine.chunks.clone()),
            Self::Latest => Some(engine.latest.rows.clone()),
            Self::Attributes => Some(engine.attributes.rows.clone()),
        }
    }

    /// What the keys begin with that begin with this within the place.
    fn prefix(self, prefix: &[u8]) -> Vec<u8> {
        match self {
            Self::Epoch(number) => [&keys::epoch_key(number)[..], prefix].concat(),
            _ => prefix.to_vec(),
        }
    }

    /// The subject of a key.
    fn subject(self, key: &[u8]) -> Option<&EntityKeyBytes> {
        let key = match self {
            Self::Epoch(_) => key.get(EPOCH_BYTES..)?,
            _ => key,
        };
        key.first_chunk::<SUBJECT_BYTES>()
    }
}

/// A removal under way.
pub(super) struct EntityRemoval {
    /// What the keys of those begin with that are gone.
    prefixes: Vec<Vec<u8>>,
    spared: FxHashSet<EntityKeyBytes>,
    /// Where is still to be looked, and for which of the prefixes.
    remaining: VecDeque<(RemovalTable, usize)>,
    /// Where the first of them goes on.
    from: Option<Vec<u8>>,
}

impl SeriesStore {
    /// Prepares the removal of what was stored before.
    pub(super) fn begin_removal(
        &self,
        gone: &[ValueRemovalScope],
        spared: &[EntityKey],
    ) -> StoreResult<EntityRemoval> {
        self.write_checkpoint(false)?;
        let prefixes = gone.iter().map(|gone| match gone {
            ValueRemovalScope::Subject(subject) => keys::subject_key(*subject).to_vec(),
            ValueRemovalScope::Tenant(tenant) => tenant.0.as_bytes().to_vec(),
        });
        let mut removal = EntityRemoval {
            prefixes: prefixes.collect(),
            spared: spared.iter().map(|subject| keys::subject_key(*subject)).collect(),
            remaining: VecDeque::new(),
            from: None,
        };
        let epochs = self.engine()?.epochs();
        let places = epochs.iter().map(|epoch| RemovalTable::Epoch(epoch.number));
        for place in places.chain([
            RemovalTable::Chunks,
            RemovalTable::Latest,
            RemovalTable::Attributes,
        ]) {
            removal
                .remaining
                .extend((0..removal.prefixes.len()).map(|at| (place, at)));
        }
        self.drop_cached_values(&removal);
        Ok(removal)
    }

    /// Takes some away, and waits a moment. Returns whether there may be more.
    pub(super) fn removal_step(&self, removal: &mut EntityRemoval) -> StoreResult<bool> {
        let began = Instant::now();
        let engine = self.writable()?;
        let mut batch = engine.batch(STEP_KEYS);
        let mut left = STEP_KEYS;
        let mut seen: BTreeMap<TenantId, BTreeSet<Uuid>> = BTreeMap::new();
        for _ in 0..STEP_PLACES {
            let Some((place, at)) = removal.remaining.front().copied() else {
                break;
            };
            let from = removal.from.take();
            if let (Some(table), Some(prefix)) = (place.table(&engine), removal.prefixes.get(at)) {
                let prefix = place.prefix(prefix);
                let from = from.unwrap_or_else(|| prefix.clone());
                // Not beyond: what others have had may be gone, too, and would be walked through.
                let end = keys::after_prefix(&prefix);
                let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                for entry in table.range((Bound::Included(&from), end)) {
                    let (key, _) = entry?;
                    if left == 0 {
                        removal.from = Some(key.to_vec());
                        break;
                    }
                    left -= 1;
                    let subject = place.subject(&key);
                    if subject.is_some_and(|subject| removal.spared.contains(subject)) {
                        continue;
                    }
                    if matches!(place, RemovalTable::Epoch(_) | RemovalTable::Chunks)
                        && let Some(subject) = subject.and_then(|subject| keys::read_subject(subject))
                    {
                        seen.entry(subject.tenant).or_default().insert(subject.entity.id);
                    }
                    batch.remove(&table, key);
                }
            }
            if removal.from.is_some() {
                break;
            }
            removal.remaining.pop_front();
            let is_in_rows =
                |place: Option<&(RemovalTable, usize)>| matches!(place, Some((RemovalTable::Epoch(_), _)));
            if matches!(place, RemovalTable::Epoch(_)) && !is_in_rows(removal.remaining.front()) {
                // A step of the compaction that has read rows ends before their chunks are looked for.
                drop(self.compacting.lock());
            }
        }
        if !batch.is_empty() {
            let tables = [
                &engine.blocks,
                &engine.chunks,
                &engine.latest.rows,
                &engine.attributes.rows,
            ];
            engine
                .commit(batch, &tables)
                .map_err(|error| self.note_write_failure(error))?;
        }
        for (tenant, entities) in seen {
            engine
                .db
                .delete_plain_rows(tenant, entities.into_iter().collect(), None, None);
        }
        std::thread::sleep(began.elapsed().min(MAX_PAUSE));
        Ok(!removal.remaining.is_empty())
    }

    /// Makes it durable.
    pub(super) fn end_removal(&self, removal: &EntityRemoval) -> StoreResult<()> {
        // Somebody may have read them while they went.
        self.drop_cached_values(removal);
        let engine = self.writable()?;
        self.sync_commits(&engine)
    }

    /// Takes latest values and attributes out of memory.
    fn drop_cached_values(&self, removal: &EntityRemoval) {
        for prefix in &removal.prefixes {
            let (latest, attributes) = match prefix.first_chunk::<SUBJECT_BYTES>() {
                Some(subject) => {
                    let scopes = AttributeScope::ALL.map(|scope| keys::group_of(subject, scope as u8));
                    (vec![keys::group_of(subject, 0)], scopes.to_vec())
                }
                None => (
                    self.latest.groups_below(prefix),
                    self.attributes.groups_below(prefix),
                ),
            };
            let is_gone = |group: &ValueGroupKey| {
                let subject = group.first_chunk::<SUBJECT_BYTES>();
                !subject.is_some_and(|subject| removal.spared.contains(subject))
            };
            let gone = |groups: Vec<ValueGroupKey>| groups.into_iter().filter(is_gone).collect::<Vec<_>>();
            let _one = self.checkpointing.lock();
            self.latest.drop_groups(&gone(latest));
            self.attributes.drop_groups(&gone(attributes));
        }
    }
}
