//! Changes that a session has not sent yet. If they become too much for a slow client, only the newest value of each
//! key is kept; if even that is too much, for this client or for all slow clients together, the session is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(test)]
use fieldline_core::memory_pool::MemoryPool;
use fieldline_core::memory_pool::MemoryShare;
#[cfg(test)]
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{ValueChange, ValueSource};
#[cfg(test)]
use fieldline_model::TenantId;
use fieldline_model::kv::{KvValue, unpack};
use fieldline_model::{EntityId, EntityKey};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;

/// Most changes kept one by one.
const MAX_CHANGES: usize = 1_024;
/// Most bytes of their values.
const MAX_BYTES: usize = 512 << 10;
/// Most bytes of the newest values for a slow client.
const MAX_KEPT: usize = 8 << 20;
/// Bytes per client that are not counted against the memory pool.
const UNCOUNTED_BYTES: usize = 16 << 10;
/// Step in which a mailbox takes memory from the pool, bytes.
const MEMORY_STEP: usize = 64 << 10;
/// Memory of a value without its name and text, bytes.
const VALUE_COST: usize = 64;
/// Close reason of a client that is too far behind.
const PENDING_LIMIT_REACHED: &str = "Max pending updates limit reached!";

/// An operation on values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueOperation {
    /// Values were stored: the timestamp and packed key-values.
    Stored(i64, Box<[u8]>),
    /// The values of these names were deleted.
    Deleted(Vec<String>),
    /// All values were deleted.
    AllDeleted,
}

impl ValueOperation {
    /// Converts a change; `None` if it needs no update: after a handover the watchers check their permissions anyway.
    pub(super) fn of(change: &ValueChange<'_>) -> Option<Self> {
        Some(match change {
            ValueChange::Points(row) => Self::Stored(row.ts, row.values.into()),
            ValueChange::Attributes(row) => Self::Stored(row.ts, row.values.into()),
            ValueChange::SeriesDeleted(_, names) | ValueChange::AttributesDeleted(_, _, names) => {
                Self::Deleted(names.to_vec())
            }
            ValueChange::AllDeleted(..) => Self::AllDeleted,
            ValueChange::HandedOver(..) => return None,
        })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Stored(_, values) => values.len(),
            Self::Deleted(names) => names.iter().map(String::len).sum(),
            Self::AllDeleted => 0,
        }
    }
}

/// A change of the values of an entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntityValueChange {
    pub(super) subject: EntityKey,
    pub(super) source: ValueSource,
    pub(super) operation: ValueOperation,
}

/// A value with its timestamp; `None` if it was deleted.
pub(super) type NewValue = (i64, Option<KvValue>);

/// Values of one entity and source for one command.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct PendingValues {
    /// By name, oldest first.
    pub(super) values: Vec<(String, NewValue)>,
    /// Whether all values of the source were deleted before.
    pub(super) all_deleted: bool,
    /// Bytes at the last compaction.
    pub(super) bytes: usize,
}

impl PendingValues {
    fn add(&mut self, what: &ValueOperation) {
        match what {
            ValueOperation::Stored(ts, values) => {
                let stored = unpack(values).filter_map(Result::ok);
                self.values
                    .extend(stored.map(|(name, value)| (name.to_owned(), (*ts, Some(value.to_value())))));
            }
            ValueOperation::Deleted(names) => {
                self.values
                    .extend(names.iter().map(|name| (name.clone(), (0, None))));
            }
            ValueOperation::AllDeleted => {
                self.values.clear();
                self.all_deleted = true;
            }
        }
    }

    /// Keeps the newest value of each name.
    fn compact(&mut self) {
        let mut newest: FxHashMap<String, NewValue> = FxHashMap::default();
        for (name, (ts, value)) in self.values.drain(..) {
            match newest.get(&name) {
                // The last write wins, unless it is an older point.
                Some((held, Some(_))) if value.is_some() && *held > ts => {}
                _ => {
                    newest.insert(name, (ts, value));
                }
            }
        }
        self.values.extend(newest);
        self.values.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let cost = |(name, (_, value)): &(String, NewValue)| {
            VALUE_COST + name.len() + value.as_ref().map_or(0, KvValue::heap_bytes)
        };
        self.bytes = self.values.iter().map(cost).sum();
    }
}

/// Command, entity and source of values.
pub(super) type UpdateKey = (i64, EntityKey, ValueSource);

struct MailboxState {
    memory: MemoryShare,
    changes: Vec<(i64, Arc<EntityValueChange>)>,
    bytes: usize,
    /// Values that were too many to be kept one by one.
    newest: FxHashMap<UpdateKey, PendingValues>,
    /// Bytes of these values.
    newest_bytes: usize,
    /// Why the session is to be closed, if it is.
    close_reason: Option<&'static str>,
    alarms_changed: bool,
    /// Entities that were saved or deleted, so that permissions must be checked again.
    changed_entities: FxHashSet<EntityId>,
    /// Whether the principal of the session may have changed.
    principal_changed: bool,
}

impl MailboxState {
    fn new(memory: MemoryShare) -> Self {
        Self {
            memory,
            changes: Vec::new(),
            bytes: 0,
            newest: FxHashMap::default(),
            newest_bytes: 0,
            close_reason: None,
            alarms_changed: false,
            changed_entities: FxHashSet::default(),
            principal_changed: false,
        }
    }

    /// Reserves memory for the content; returns whether there is enough.
    fn try_reserve(&mut self) -> bool {
        let needed = self.bytes + self.newest_bytes;
        if needed <= UNCOUNTED_BYTES.max(self.memory.held()) {
            return true;
        }
        self.memory.resize(needed.next_multiple_of(MEMORY_STEP)).is_ok()
    }

    /// Releases unused memory.
    fn release_unused(&mut self) {
        let needed = self.bytes + self.newest_bytes;
        let needed = if needed <= UNCOUNTED_BYTES { 0 } else { needed };
        self.memory.shrink_to(needed);
    }

    fn drop_all(&mut self, reason: &'static str) {
        self.newest = FxHashMap::default();
        self.changes = Vec::new();
        self.bytes = 0;
        self.newest_bytes = 0;
        self.memory.shrink_to(0);
        self.close_reason = Some(reason);
    }

    /// Groups the changes by command, entity and source.
    fn fold(&mut self) {
        for (command, change) in self.changes.drain(..) {
            let place = (command, change.subject, change.source);
            self.newest.entry(place).or_default().add(&change.operation);
        }
        self.bytes = 0;
    }

    /// Groups the changes and keeps only the newest values; if even they are too much, drops everything and closes the
    /// session.
    fn shrink(&mut self) {
        let changed: FxHashSet<UpdateKey> = self
            .changes
            .iter()
            .map(|(command, change)| (*command, change.subject, change.source))
            .collect();
        self.fold();
        for place in changed {
            if let Some(news) = self.newest.get_mut(&place) {
                let before = news.bytes;
                news.compact();
                self.newest_bytes = self.newest_bytes - before + news.bytes;
            }
        }
        if self.newest_bytes > MAX_KEPT || !self.try_reserve() {
            self.drop_all(PENDING_LIMIT_REACHED);
        } else {
            self.release_unused();
        }
    }
}

/// Content of a mailbox.
pub(super) struct MailboxContent {
    pub(super) values: Vec<(UpdateKey, PendingValues)>,
    /// Whether alarms have changed.
    pub(super) alarms_changed: bool,
    /// Entities that were saved or deleted.
    pub(super) changed_entities: FxHashSet<EntityId>,
    /// Whether the principal of the session may have changed.
    pub(super) principal_changed: bool,
    /// Why the session is to be closed, if it is.
    pub(super) close_reason: Option<&'static str>,
}

/// The mailbox of a session; see the module.
pub(super) struct SessionMailbox {
    pending: Mutex<MailboxState>,
    notify: Notify,
    /// Bytes of the session's subscriptions.
    followed_bytes: AtomicUsize,
}

impl SessionMailbox {
    /// Creates a mailbox that takes memory from this share.
    pub(super) fn new(memory: MemoryShare) -> Self {
        Self {
            pending: Mutex::new(MailboxState::new(memory)),
            notify: Notify::new(),
            followed_bytes: AtomicUsize::new(0),
        }
    }

    /// Stores the number of bytes of the session's subscriptions.
    pub(super) fn note_followed(&self, bytes: usize) {
        self.followed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of memory that the session holds.
    pub(super) fn held(&self) -> usize {
        self.followed_bytes.load(Ordering::Relaxed) + self.pending.lock().memory.held()
    }

    /// Makes the session close.
    pub(super) fn close(&self, reason: &'static str) {
        self.pending.lock().drop_all(reason);
        self.notify.notify_one();
    }

    /// Adds a change.
    pub(super) fn enqueue(&self, command: i64, change: Arc<EntityValueChange>) {
        let mut pending = self.pending.lock();
        if pending.close_reason.is_some() {
            return;
        }
        pending.bytes += change.operation.bytes();
        pending.changes.push((command, change));
        if pending.changes.len() >= MAX_CHANGES || pending.bytes >= MAX_BYTES || !pending.try_reserve() {
            pending.shrink();
        }
        drop(pending);
        self.notify.notify_one();
    }

    /// Records that alarms have changed.
    pub(super) fn mark_alarms_changed(&self) {
        self.pending.lock().alarms_changed = true;
        self.notify.notify_one();
    }

    /// Records that an entity was saved or deleted.
    pub(super) fn mark_entity_changed(&self, entity: EntityId) {
        self.pending.lock().changed_entities.insert(entity);
        self.notify.notify_one();
    }

    /// Records that the principal of the session may have changed.
    pub(super) fn mark_principal_changed(&self) {
        self.pending.lock().principal_changed = true;
        self.notify.notify_one();
    }

    /// Drops the changes for an ended command, so that a later command with the same id does not get them.
    pub(super) fn discard_command(&self, command: i64) {
        let mut pending = self.pending.lock();
        pending.changes.retain(|(of, _)| *of != command);
        pending.newest.retain(|(of, ..), _| *of != command);
        pending.bytes = pending
            .changes
            .iter()
            .map(|(_, change)| change.operation.bytes())
            .sum();
        pending.newest_bytes = pending.newest.values().map(|news| news.bytes).sum();
        pending.release_unused();
    }

    /// Waits for content.
    pub(super) async fn wait(&self) {
        self.notify.notified().await;
    }

    /// Takes the content, grouped by command and entity.
    pub(super) fn take(&self) -> MailboxContent {
        let mut pending = self.pending.lock();
        pending.fold();
        let mut news: Vec<(UpdateKey, PendingValues)> =
            std::mem::take(&mut pending.newest).into_iter().collect();
        pending.newest_bytes = 0;
        pending.release_unused();
        let mut delivery = MailboxContent {
            values: Vec::new(),
            alarms_changed: std::mem::take(&mut pending.alarms_changed),
            changed_entities: std::mem::take(&mut pending.changed_entities),
            principal_changed: std::mem::take(&mut pending.principal_changed),
            close_reason: pending.close_reason,
        };
        drop(pending);
        news.sort_unstable_by_key(|(place, _)| *place);
        delivery.values = news;
        delivery
    }
}

#[cfg(test)]
impl Default for SessionMailbox {
    fn default() -> Self {
        let pool = MemoryPool::new("test.memory", ByteSize::mib(256));
        Self::new(pool.share(TenantId::new()))
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::{KvValueRef, pack};
    use fieldline_model::{DeviceId, TenantId};

    use super::*;

    fn change(subject: EntityKey, ts: i64, value: i64) -> Arc<EntityValueChange> {
        let mut values = Vec::new();
        pack("t", KvValueRef::Long(value), &mut values);
        Arc::new(EntityValueChange {
            subject,
            source: ValueSource::Latest,
            operation: ValueOperation::Stored(ts, values.into()),
        })
    }

    #[test]
    fn all_changes_arrive_in_order_while_they_are_few() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let mailbox = SessionMailbox::default();
        for value in 0..10 {
            mailbox.enqueue(7, change(subject, value, value));
        }
        let delivery = mailbox.take();
        let [((7, _, ValueSource::Latest), news)] = delivery.values.as_slice() else {
            panic!("one entity: {:?}", delivery.values);
        };
        let values: Vec<_> = news.values.iter().map(|(_, (ts, _))| *ts).collect();
        assert_eq!(values, (0..10).collect::<Vec<_>>());
        assert!(mailbox.take().values.is_empty());
    }

    #[test]
    fn a_slow_client_gets_the_newest_value_and_memory_stays_bounded() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let mailbox = SessionMailbox::default();
        for value in 0..100_000 {
            mailbox.enqueue(7, change(subject, value, value));
            // An older point that arrives late is not an update.
            mailbox.enqueue(7, change(subject, 1, 1));
        }
        let held = mailbox.pending.lock();
        assert!(held.changes.len() < MAX_CHANGES && held.newest.len() == 1);
        drop(held);
        let news = mailbox.take().values.remove(0).1;
        assert!(news.values.len() <= MAX_CHANGES + 1);
        let newest = news.values.iter().max_by_key(|(_, (ts, _))| *ts).unwrap();
        assert_eq!(newest.1, (99_999, Some(KvValue::Long(99_999))));
    }

    #[test]
    fn a_client_that_would_need_too_much_memory_is_given_up() {
        let mailbox = SessionMailbox::default();
        let tenant = TenantId::new();
        let text = "x".repeat(64 << 10);
        let mut values = Vec::new();
        pack("t", KvValueRef::Text(&text), &mut values);
        for _ in 0..200 {
            let change = EntityValueChange {
                subject: EntityKey::device(tenant, DeviceId::new()),
                source: ValueSource::Latest,
                operation: ValueOperation::Stored(1, values.clone().into()),
            };
            mailbox.enqueue(1, Arc::new(change));
        }
        let delivery = mailbox.take();
        assert!(delivery.close_reason.is_some() && delivery.values.is_empty());
    }

    #[test]
    fn slow_clients_share_their_memory_and_give_it_back() {
        let pool = MemoryPool::new("test.memory", ByteSize::mib(4));
        let text = "x".repeat(300 << 10);
        let mut values = Vec::new();
        pack("t", KvValueRef::Text(&text), &mut values);
        let fill = |mailbox: &SessionMailbox, command: i64| {
            for _ in 0..4 {
                let change = EntityValueChange {
                    subject: EntityKey::device(TenantId::new(), DeviceId::new()),
                    source: ValueSource::Latest,
                    operation: ValueOperation::Stored(1, values.clone().into()),
                };
                mailbox.enqueue(command, Arc::new(change));
            }
        };
        let (tenant, other) = (TenantId::new(), TenantId::new());
        let [slow, slower] = [(); 2].map(|()| SessionMailbox::new(pool.share(tenant)));
        fill(&slow, 1);
        fill(&slower, 1);
        let held = pool.held();
        assert!(slower.take().close_reason.is_some() && slow.take().close_reason.is_none() && held > 0);
        assert_eq!(pool.held(), 0);
        fill(&slow, 1);
        // If one tenant holds its part, another one still has room.
        let stranger = SessionMailbox::new(pool.share(other));
        stranger.enqueue(1, change(EntityKey::device(other, DeviceId::new()), 1, 1));
        assert!(stranger.take().close_reason.is_none());
        slow.discard_command(1);
        assert_eq!(pool.held(), 0);
        let later = SessionMailbox::new(pool.share(tenant));
        fill(&later, 1);
        drop(later);
        assert_eq!(pool.held(), 0);
    }

    #[test]
    fn changes_count_before_there_are_many() {
        let pool = MemoryPool::new("test.memory", ByteSize::mib(1));
        let text = "x".repeat(100 << 10);
        let mut values = Vec::new();
        pack("t", KvValueRef::Text(&text), &mut values);
        let tenant = TenantId::new();
        let subject = EntityKey::device(tenant, DeviceId::new());
        let mailboxes: Vec<SessionMailbox> =
            (0..20).map(|_| SessionMailbox::new(pool.share(tenant))).collect();
        for mailbox in &mailboxes {
            let what = ValueOperation::Stored(1, values.clone().into());
            let source = ValueSource::Latest;
            mailbox.enqueue(
                1,
                Arc::new(EntityValueChange {
                    subject,
                    source,
                    operation: what,
                }),
            );
            assert!(pool.held() <= 384 << 10);
        }
        let lost = mailboxes
            .iter()
            .filter(|mailbox| mailbox.take().close_reason.is_some());
        assert!((1..20).contains(&lost.count()));
    }

    #[test]
    fn a_command_is_not_told_what_one_before_it_has_asked_for() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let mailbox = SessionMailbox::default();
        for command in [1, 2] {
            mailbox.enqueue(command, change(subject, 5, 5));
        }
        mailbox.discard_command(1);
        let told: Vec<i64> = mailbox.take().values.iter().map(|(place, _)| place.0).collect();
        assert_eq!(told, [2]);
    }

    #[test]
    fn what_is_deleted_is_told() {
        let subject = EntityKey::device(TenantId::new(), DeviceId::new());
        let mailbox = SessionMailbox::default();
        mailbox.enqueue(1, change(subject, 5, 5));
        let deleted = EntityValueChange {
            operation: ValueOperation::Deleted(vec!["t".to_owned()]),
            ..(*change(subject, 0, 0)).clone()
        };
        mailbox.enqueue(1, Arc::new(deleted));
        mailbox.mark_alarms_changed();
        let delivery = mailbox.take();
        assert!(delivery.alarms_changed);
        assert_eq!(
            delivery.values[0].1.values.last().unwrap(),
            &("t".to_owned(), (0, None))
        );
    }
}
