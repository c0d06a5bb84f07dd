//! Changes of entities, sent to everything that keeps derived data: caches, sessions.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, EntityType, TenantId};
use parking_lot::RwLock;

/// A change of one entity. It is published after the change is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityChange {
    /// The entity. A tenant belongs to itself, a tenant profile to the null id.
    pub subject: EntityKey,
    /// The kind of change.
    pub what: ChangeKind,
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The entity was created, updated, or assigned to somebody else; for a rule chain this includes its nodes and
    /// connections, for an OTA package its data, for a user the password.
    Saved,
    /// The entity was deleted.
    Deleted,
    /// The entity came from another tenant, together with its values.
    Moved,
    /// The credentials of the device were changed.
    Credentials,
    /// A queue of the tenant (the null id for the shared queues) was saved or deleted.
    Queues,
    /// This calculated field of the entity or profile was saved or deleted.
    CalculatedField(CalculatedFieldId),
    /// A relation with this entity was saved or deleted. If it names the entity itself, all of its relations were
    /// deleted.
    Relations(EntityId),
    /// An alarm originated by the entity was raised, changed or deleted.
    Alarms,
    /// A person saved or deleted attributes of this scope.
    Attributes(AttributeScope),
}

impl EntityChange {
    /// Creates a change of an entity of a tenant.
    pub fn new(tenant: TenantId, entity: impl Into<EntityId>, what: ChangeKind) -> Self {
        let entity = entity.into();
        Self {
            subject: EntityKey { tenant, entity },
            what,
        }
    }

    /// Creates the change for an entity that was created or updated.
    pub fn saved(tenant: TenantId, entity: impl Into<EntityId>) -> Self {
        Self::new(tenant, entity, ChangeKind::Saved)
    }

    /// Creates the change for an entity that was deleted.
    pub fn deleted(tenant: TenantId, entity: impl Into<EntityId>) -> Self {
        Self::new(tenant, entity, ChangeKind::Deleted)
    }

    /// The type of the changed entity.
    pub const fn entity_type(&self) -> EntityType {
        self.subject.entity.entity_type
    }

    /// The deleted tenant, if the change is the deletion of one.
    pub fn deleted_tenant(&self) -> Option<TenantId> {
        match (self.entity_type(), self.what) {
            (EntityType::Tenant, ChangeKind::Deleted) => Some(self.subject.tenant),
            _ => None,
        }
    }
}

/// Receives the changes of entities, to update derived data.
pub trait EntityListener: Send + Sync {
    /// Called once per change, on the thread that made the change: must not block.
    fn on_change(&self, change: EntityChange);

    /// Ends once the work that earlier changes began is done; `None` if all of it is done in [`Self::on_change`].
    fn settled(&self) -> Option<SettledFuture> {
        None
    }
}

/// Ends once a listener has done its work.
pub type SettledFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Passes each change on to all listeners of the process.
#[derive(Default)]
pub struct EntityEvents {
    listeners: RwLock<Vec<Arc<dyn EntityListener>>>,
}

impl EntityEvents {
    /// Adds a listener.
    pub fn listen(&self, listener: Arc<dyn EntityListener>) {
        self.listeners.write().push(listener);
    }

    /// Passes a change to all listeners.
    pub fn publish(&self, change: EntityChange) {
        for listener in self.listeners.read().iter() {
            listener.on_change(change);
        }
    }

    /// Waits until the listeners have done the work that earlier changes began, for at most `patience`; returns whether
    /// they have.
    pub async fn settled(&self, patience: Duration) -> bool {
        let pending: Vec<_> = {
            let listeners = self.listeners.read();
            listeners
                .iter()
                .filter_map(|listener| listener.settled())
                .collect()
        };
        let all = async {
            for one in pending {
                one.await;
            }
        };
        tokio::time::timeout(patience, all).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    struct Slow(Arc<Semaphore>);

    impl EntityListener for Slow {
        fn on_change(&self, _: EntityChange) {}

        fn settled(&self) -> Option<SettledFuture> {
            let work = self.0.clone();
            Some(Box::pin(async move {
                let _ = work.acquire().await;
            }))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_listeners_began_is_waited_for_so_long() {
        let (events, work) = (EntityEvents::default(), Arc::new(Semaphore::new(0)));
        assert!(events.settled(Duration::ZERO).await);
        events.listen(Arc::new(Slow(work.clone())));
        assert!(!events.settled(Duration::from_secs(10)).await);
        work.add_permits(1);
        assert!(events.settled(Duration::from_secs(10)).await);
    }
}
