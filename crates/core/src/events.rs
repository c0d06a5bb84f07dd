//! Changes of entities, told to whoever keeps something derived from them: caches, sessions.

use std::sync::Arc;

use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{CalculatedFieldId, EntityId, EntityKey, EntityType, TenantId};
use parking_lot::RwLock;

/// What has changed about which entity. It is told after the change is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityChange {
    /// The entity. A tenant belongs to itself, a tenant profile to the null id.
    pub subject: EntityKey,
    /// What has changed.
    pub what: ChangeKind,
}

/// What has changed about an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created or updated, or somebody else has it now; a rule chain with its nodes and connections, an OTA package
    /// with its data, a user with the password.
    Saved,
    /// It was deleted.
    Deleted,
    /// It came from another tenant, and has brought its values along.
    Moved,
    /// It connects with other credentials.
    Credentials,
    /// A queue of the tenant (the null id for what tenants share) was saved or deleted.
    Queues,
    /// This calculated field of the entity or profile was saved or deleted.
    CalculatedField(CalculatedFieldId),
    /// A relation with this one was saved or deleted; with itself where all of its relations were deleted.
    Relations(EntityId),
    /// An alarm that it originated was raised, changed or deleted.
    Alarms,
    /// A person saved or deleted attributes of this scope.
    Attributes(AttributeScope),
}

impl EntityChange {
    /// A change of an entity of a tenant.
    pub fn new(tenant: TenantId, entity: impl Into<EntityId>, what: ChangeKind) -> Self {
        let entity = entity.into();
        Self {
            subject: EntityKey { tenant, entity },
            what,
        }
    }

    /// An entity was created or updated.
    pub fn saved(tenant: TenantId, entity: impl Into<EntityId>) -> Self {
        Self::new(tenant, entity, ChangeKind::Saved)
    }

    /// An entity was deleted.
    pub fn deleted(tenant: TenantId, entity: impl Into<EntityId>) -> Self {
        Self::new(tenant, entity, ChangeKind::Deleted)
    }

    /// What type of entity it is about.
    pub const fn entity_type(&self) -> EntityType {
        self.subject.entity.entity_type
    }

    /// The tenant that was deleted, if one was.
    pub fn deleted_tenant(&self) -> Option<TenantId> {
        match (self.entity_type(), self.what) {
            (EntityType::Tenant, ChangeKind::Deleted) => Some(self.subject.tenant),
            _ => None,
        }
    }
}

/// Somebody who keeps something derived from entities.
pub trait EntityListener: Send + Sync {
    /// Called once a change, on the thread that made it: must not block.
    fn on_change(&self, change: EntityChange);
}

/// Passes changes on to all listeners of the process.
#[derive(Default)]
pub struct EntityEvents {
    listeners: RwLock<Vec<Arc<dyn EntityListener>>>,
}

impl EntityEvents {
    /// Adds a listener.
    pub fn listen(&self, listener: Arc<dyn EntityListener>) {
        self.listeners.write().push(listener);
    }

    /// Tells all listeners.
    pub fn publish(&self, change: EntityChange) {
        for listener in self.listeners.read().iter() {
            listener.on_change(change);
        }
    }
}
