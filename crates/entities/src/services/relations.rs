//! Relations between entities.

use std::sync::Arc;

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::RelationKey;
use fieldline_model::entity::{EntityRelation, RelationTypeGroup};
use fieldline_model::{EntityId, TenantId};

use super::{ServiceContext, ServiceError, ServiceResult, validate};

/// Rules about relations.
#[derive(Clone)]
pub struct RelationService(Arc<ServiceContext>);

impl RelationService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates or replaces a relation. Its ends are not looked up: who asks has been allowed to see them.
    ///
    /// # Errors
    /// A rule is broken.
    pub async fn save(&self, tenant: TenantId, relation: EntityRelation) -> ServiceResult<EntityRelation> {
        if relation.relation_type.trim().is_empty() {
            return Err(ServiceError::invalid("Relation type should be specified!"));
        }
        validate::lengths(&[("type", Some(&relation.relation_type))])?;
        let saved = self.0.stores.relations.save(tenant, relation).await?;
        self.0.publish_change(EntityChange::new(
            tenant,
            saved.from,
            ChangeKind::Relations(saved.to),
        ));
        Ok(saved)
    }

    /// Deletes a relation, and returns what it was.
    ///
    /// # Errors
    /// There is no such relation.
    pub async fn delete(&self, tenant: TenantId, key: &RelationKey) -> ServiceResult<EntityRelation> {
        let deleted = self
            .0
            .stores
            .relations
            .delete(tenant, key)
            .await?
            .ok_or_else(|| ServiceError::not_found("Requested item wasn't found!"))?;
        self.0
            .publish_change(EntityChange::new(tenant, key.from, ChangeKind::Relations(key.to)));
        Ok(deleted)
    }

    /// Deletes the common relations that start or end at an entity; returns how many.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete_common(&self, tenant: TenantId, entity: EntityId) -> ServiceResult<u64> {
        let deleted = self
            .0
            .stores
            .relations
            .delete_of(tenant, entity, Some(RelationTypeGroup::Common))
            .await?;
        self.0
            .publish_change(EntityChange::new(tenant, entity, ChangeKind::Relations(entity)));
        Ok(deleted)
    }
}
