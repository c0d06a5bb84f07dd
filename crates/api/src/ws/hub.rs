//! Subscriptions to entities: a store write puts the change into the mailboxes of the entity's subscribers without
//! waiting for them. When an entity or a user is saved or deleted, the affected sessions check their permissions again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fieldline_core::any_entity::kind_policy;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::memory_pool::MemoryPool;
use fieldline_core::ports::{ChangeFilter, ValueChange, ValueListener, ValueSource};
use fieldline_entities::access::Principal;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey, EntityType, TenantId};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use tokio::sync::Semaphore;

use super::mailbox::{EntityValueChange, SessionMailbox, ValueOperation};

const SHARDS: usize = 32;
/// Most queries of sockets that are re-evaluated at the same time.
const CONCURRENT_REFRESHES: usize = 4;

/// Returns the bit of a source in the sources of a watcher.
pub(super) const fn bit(source: ValueSource) -> u8 {
    match source {
        ValueSource::Latest => 1,
        ValueSource::Attribute(AttributeScope::Client) => 2,
        ValueSource::Attribute(AttributeScope::Shared) => 4,
        ValueSource::Attribute(AttributeScope::Server) => 8,
    }
}

/// The bits of the attributes of all scopes.
pub(super) const ATTRIBUTES: u8 = 14;

struct EntityWatcher {
    mailbox: Arc<SessionMailbox>,
    command: i64,
    sources: u8,
}

/// The registry of subscriptions; see the module.
pub(crate) struct SubscriptionHub {
    watchers: [RwLock<FxHashMap<EntityKey, Vec<EntityWatcher>>>; SHARDS],
    count: AtomicUsize,
    alarms: RwLock<FxHashMap<TenantId, FxHashMap<u64, Arc<SessionMailbox>>>>,
    sessions: RwLock<FxHashMap<u64, (Principal, Arc<SessionMailbox>)>>,
    next: AtomicU64,
    memory: Arc<MemoryPool>,
    /// Held while a query is re-evaluated, so that many sockets leave capacity for other work.
    pub(super) refresh_permits: Semaphore,
}

impl SubscriptionHub {
    /// Creates a hub whose sockets share this memory.
    pub(crate) fn new(memory: Arc<MemoryPool>) -> Arc<Self> {
        Arc::new(Self {
            watchers: std::array::from_fn(|_| RwLock::default()),
            count: AtomicUsize::new(0),
            alarms: RwLock::default(),
            sessions: RwLock::default(),
            next: AtomicU64::new(0),
            memory,
            refresh_permits: Semaphore::new(CONCURRENT_REFRESHES),
        })
    }

    /// Registers a session; returns its number and its mailbox.
    pub(super) fn open(&self, who: Principal) -> (u64, Arc<SessionMailbox>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mailbox = Arc::new(SessionMailbox::new(self.memory.share(who.tenant)));
        let mut sessions = self.sessions.write();
        sessions.insert(number, (who, Arc::clone(&mailbox)));
        (number, mailbox)
    }

    /// Removes a closed session.
    pub(super) fn close(&self, number: u64) {
        self.sessions.write().remove(&number);
    }

    /// Closes the session of a tenant that holds the most memory.
    pub(super) fn close_largest(&self, tenant: TenantId) {
        let sessions = self.sessions.read();
        let own = sessions.values().filter(|(who, _)| who.tenant == tenant);
        let sizes = own.map(|(_, mailbox)| (mailbox.held(), mailbox));
        let largest = sizes.max_by_key(|(held, _)| *held);
        if let Some((_, mailbox)) = largest.filter(|(held, _)| *held > 0) {
            mailbox
                .close("The session holds more memory than the others of its tenant, and there is no more");
        }
    }

    fn shard(&self, subject: EntityKey) -> &RwLock<FxHashMap<EntityKey, Vec<EntityWatcher>>> {
        let place = usize::from(subject.entity.id.as_bytes()[15]) % SHARDS;
        &self.watchers[place]
    }

    /// Subscribes a mailbox to changes of an entity, for a command. Without sources it gets only changes of the entity
    /// itself.
    pub(super) fn watch(&self, subject: EntityKey, sources: u8, command: i64, mailbox: &Arc<SessionMailbox>) {
        let mut shard = self.shard(subject).write();
        let watches = shard.entry(subject).or_default();
        let own =
            |watch: &&mut EntityWatcher| watch.command == command && Arc::ptr_eq(&watch.mailbox, mailbox);
        if let Some(watch) = watches.iter_mut().find(own) {
            watch.sources |= sources;
            return;
        }
        watches.push(EntityWatcher {
            mailbox: Arc::clone(mailbox),
            command,
            sources,
        });
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends the subscription of a command to an entity.
    pub(super) fn unwatch(&self, subject: EntityKey, command: i64, mailbox: &Arc<SessionMailbox>) {
        let mut shard = self.shard(subject).write();
        let Some(watches) = shard.get_mut(&subject) else {
            return;
        };
        let before = watches.len();
        watches.retain(|watch| watch.command != command || !Arc::ptr_eq(&watch.mailbox, mailbox));
        self.count.fetch_sub(before - watches.len(), Ordering::AcqRel);
        if watches.is_empty() {
            shard.remove(&subject);
        }
    }

    /// Subscribes a session to alarm changes of a tenant.
    pub(super) fn watch_alarms(&self, tenant: TenantId, session: u64, mailbox: &Arc<SessionMailbox>) {
        let mut alarms = self.alarms.write();
        alarms
            .entry(tenant)
            .or_default()
            .insert(session, Arc::clone(mailbox));
    }

    /// Ends the subscription of a session to alarm changes.
    pub(super) fn unwatch_alarms(&self, tenant: TenantId, session: u64) {
        let mut alarms = self.alarms.write();
        if let Some(sessions) = alarms.get_mut(&tenant) {
            sessions.remove(&session);
            if sessions.is_empty() {
                alarms.remove(&tenant);
            }
        }
    }
}

impl ValueListener for SubscriptionHub {
    fn change_filter(&self) -> ChangeFilter {
        ChangeFilter::Shown
    }

    fn is_listening(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn on_value(&self, change: ValueChange<'_>) {
        let (subject, source) = (change.subject(), change.source());
        let shard = self.shard(subject).read();
        let Some(watches) = shard.get(&subject) else {
            return;
        };
        let mut watches = watches
            .iter()
            .filter(|watch| watch.sources & bit(source) != 0)
            .peekable();
        if watches.peek().is_none() {
            return;
        }
        // Copied once for all watchers.
        let Some(what) = ValueOperation::of(&change) else {
            return;
        };
        let change = Arc::new(EntityValueChange {
            subject,
            source,
            operation: what,
        });
        for watch in watches {
            watch.mailbox.enqueue(watch.command, Arc::clone(&change));
        }
    }
}

impl SubscriptionHub {
    /// Makes the watchers of an entity check their permissions again.
    fn notify_entity_changed(&self, tenant: TenantId, entity: EntityId) {
        let subject = EntityKey { tenant, entity };
        if let Some(watches) = self.shard(subject).read().get(&subject) {
            for watch in watches {
                watch.mailbox.mark_entity_changed(entity);
            }
        }
    }

    /// Makes the matching sessions check their principal again.
    fn notify_principal_changed(&self, is_about: impl Fn(&Principal) -> bool) {
        for (who, mailbox) in self.sessions.read().values() {
            if is_about(who) {
                mailbox.mark_principal_changed();
            }
        }
    }
}

impl EntityListener for SubscriptionHub {
    fn on_change(&self, change: EntityChange) {
        let EntityKey { tenant, entity } = change.subject;
        match change.what {
            ChangeKind::Alarms => {
                let alarms = self.alarms.read();
                for mailbox in alarms.get(&tenant).into_iter().flat_map(FxHashMap::values) {
                    mailbox.mark_alarms_changed();
                }
            }
            ChangeKind::Saved | ChangeKind::Deleted => match entity.entity_type {
                EntityType::User => self.notify_principal_changed(|who| who.user.0 == entity.id),
                EntityType::Customer => self.notify_principal_changed(|who| who.customer.0 == entity.id),
                EntityType::Tenant if change.what == ChangeKind::Deleted => {
                    self.notify_principal_changed(|who| who.tenant == tenant);
                }
                // Only entities that can belong to a customer can change their readers.
                kind if kind_policy(kind).of_customers => self.notify_entity_changed(tenant, entity),
                _ => {}
            },
            ChangeKind::Moved
            | ChangeKind::Credentials
            | ChangeKind::Queues
            | ChangeKind::CalculatedField(_)
            | ChangeKind::Relations(_)
            | ChangeKind::Attributes(_) => {}
        }
    }
}
