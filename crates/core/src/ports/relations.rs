//! Relations between entities.

use async_trait::async_trait;
use fieldline_model::entity::{EntityRelation, EntityRelationInfo, RelationTypeGroup, RelationsQuery};
use fieldline_model::{EntityId, TenantId};

use super::StoreResult;

/// The key that identifies a relation within a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct RelationKey {
    pub from: EntityId,
    pub to: EntityId,
    pub relation_type: String,
    pub group: RelationTypeGroup,
}

impl From<&EntityRelation> for RelationKey {
    fn from(relation: &EntityRelation) -> Self {
        Self {
            from: relation.from,
            to: relation.to,
            relation_type: relation.relation_type.clone(),
            group: relation.type_group,
        }
    }
}

/// The conditions of a search for relations; absent conditions match all. At least one end must be given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelationEnds {
    /// Starting at this entity.
    pub from: Option<EntityId>,
    /// Ending at this entity.
    pub to: Option<EntityId>,
    /// Of this type.
    pub relation_type: Option<String>,
    /// Of this group; `COMMON` by default.
    pub group: RelationTypeGroup,
}

impl RelationEnds {
    /// Common relations that start at an entity.
    pub fn from(entity: impl Into<EntityId>) -> Self {
        Self {
            from: Some(entity.into()),
            ..Self::default()
        }
    }

    /// Common relations that end at an entity.
    pub fn to(entity: impl Into<EntityId>) -> Self {
        Self {
            to: Some(entity.into()),
            ..Self::default()
        }
    }

    /// Restricts the search to this type.
    #[must_use]
    pub fn of_type(mut self, relation_type: impl Into<String>) -> Self {
        self.relation_type = Some(relation_type.into());
        self
    }
}

/// Most relations that one call returns; more are an invalid argument, so that no result is silently truncated.
pub const MAX_RELATIONS: usize = 100_000;

/// Most steps of a search along relations.
pub const MAX_RELATION_LEVELS: usize = 100;

/// Relations. They do not prevent the deletion of the entities at their ends; the code that deletes an entity calls
/// [`RelationStore::delete_of`].
#[async_trait]
pub trait RelationStore: Send + Sync {
    /// Inserts or replaces a relation, and returns it as stored. The version counts up from 1; a given version is not
    /// compared.
    async fn save(&self, tenant: TenantId, relation: EntityRelation) -> StoreResult<EntityRelation>;
    /// The relation, if there is one.
    async fn get(&self, tenant: TenantId, key: &RelationKey) -> StoreResult<Option<EntityRelation>>;
    /// Deletes a relation; returns the deleted relation.
    async fn delete(&self, tenant: TenantId, key: &RelationKey) -> StoreResult<Option<EntityRelation>>;
    /// The relations with these ends, ordered by type and other end.
    async fn find(&self, tenant: TenantId, ends: &RelationEnds) -> StoreResult<Vec<EntityRelation>>;
    /// Adds the names of both ends to relations, in the same order.
    async fn with_names(
        &self,
        tenant: TenantId,
        relations: Vec<EntityRelation>,
    ) -> StoreResult<Vec<EntityRelationInfo>>;
    /// Deletes the relations that start or end at an entity, of all groups if none is given; returns their number.
    async fn delete_of(
        &self,
        tenant: TenantId,
        entity: EntityId,
        group: Option<RelationTypeGroup>,
    ) -> StoreResult<u64>;
    /// Returns the relations found by a walk from the root, each once, nearest first. The walk leaves each entity only
    /// once, so cycles end. With `fetchLastLevelOnly`, only the relations of the last level, and those to entities
    /// where the walk ends earlier.
    async fn search(&self, tenant: TenantId, query: &RelationsQuery) -> StoreResult<Vec<EntityRelation>>;
}
