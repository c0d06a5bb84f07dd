//! Changes of entities, told to whoever keeps something derived from them: caches, sessions.

use std::sync::Arc;

use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{
    AssetId, AssetProfileId, CalculatedFieldId, CustomerId, DashboardId, DeviceId, DeviceProfileId, EntityId,
    EntityKey, EntityViewId, OtaPackageId, RuleChainId, TenantId, TenantProfileId, UserId,
};
use parking_lot::RwLock;

/// What has changed. It is told after the change is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum EntityChange {
    DeviceSaved(TenantId, DeviceId),
    DeviceDeleted(TenantId, DeviceId),
    /// It came from another tenant, and has brought its values along.
    DeviceMoved(TenantId, DeviceId),
    DeviceCredentialsChanged(TenantId, DeviceId),
    DeviceProfileChanged(TenantId, DeviceProfileId),
    CustomerSaved(TenantId, CustomerId),
    CustomerDeleted(TenantId, CustomerId),
    UserChanged(TenantId, UserId),
    TenantSaved(TenantId),
    TenantDeleted(TenantId),
    TenantProfileChanged(TenantProfileId),
    /// The chain, its nodes or connections were saved.
    RuleChainChanged(TenantId, RuleChainId),
    RuleChainDeleted(TenantId, RuleChainId),
    /// A queue of the tenant (the null id for what tenants share) was saved or deleted.
    QueueChanged(TenantId),
    /// A calculated field of this entity or profile was saved or deleted.
    CalculatedFieldChanged(TenantId, EntityId, CalculatedFieldId),
    AssetSaved(TenantId, AssetId),
    AssetDeleted(TenantId, AssetId),
    AssetProfileChanged(TenantId, AssetProfileId),
    /// The view was saved or deleted.
    EntityViewChanged(TenantId, EntityViewId),
    /// The dashboard, or whom it is assigned to, was saved or deleted.
    DashboardChanged(TenantId, DashboardId),
    /// The package was saved, got its data, or was deleted.
    OtaPackageChanged(TenantId, OtaPackageId),
    /// A relation between these two was saved or deleted; twice the same entity where all of its relations were deleted.
    RelationChanged(TenantId, EntityId, EntityId),
    /// An alarm of this originator was raised, changed or deleted.
    AlarmChanged(TenantId, EntityId),
    /// A person saved or deleted attributes of this scope.
    AttributesChanged(EntityKey, AttributeScope),
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
