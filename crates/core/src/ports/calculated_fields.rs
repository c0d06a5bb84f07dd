//! Calculated fields.

use async_trait::async_trait;
use fieldline_model::entity::{CalculatedField, CalculatedFieldInfo, CalculatedFieldType};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CalculatedFieldId, EntityId, EntityType, TenantId};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{StoreResult, TenantEntityStore};

/// The conditions of a list of fields; an absent condition matches all, an empty one none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CalculatedFieldFilter {
    /// With one of these types.
    pub types: Option<Vec<CalculatedFieldType>>,
    /// Belonging to entities of one of these types.
    pub entity_types: Option<Vec<EntityType>>,
    /// Belonging to one of these entities.
    pub entities: Option<Vec<Uuid>>,
    /// With one of these names.
    pub names: Option<Vec<String>>,
}

/// Calculated fields. Names are unique among the fields of the same entity and type. Entity and configuration must be
/// set.
#[async_trait]
pub trait CalculatedFieldStore: TenantEntityStore<CalculatedField> {
    /// A page of fields; text search in the name. Sorts by createdTime, name, type.
    async fn list(
        &self,
        tenant: TenantId,
        filter: &CalculatedFieldFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<CalculatedFieldInfo>>;
    /// A page of the distinct names of fields of a type; text search in the name, sorted by name.
    async fn names(
        &self,
        tenant: TenantId,
        kind: CalculatedFieldType,
        page: &PageLink,
    ) -> StoreResult<PageData<String>>;
    /// All fields of an entity.
    async fn of_entity(&self, tenant: TenantId, entity: EntityId) -> StoreResult<Vec<CalculatedField>>;
    /// The number of fields of an entity, without alarm rules.
    async fn count_of_entity(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64>;
    /// Returns whether an argument of another entity's field references this entity.
    async fn is_referenced(&self, tenant: TenantId, entity: EntityId) -> StoreResult<bool>;
    /// Deletes all fields of an entity; returns their ids.
    async fn delete_of_entity(
        &self,
        tenant: TenantId,
        entity: EntityId,
    ) -> StoreResult<Vec<CalculatedFieldId>>;
}

/// A script of a calculated field with test arguments; see [`super::ScriptTester`].
#[derive(Debug, Clone, PartialEq)]
pub struct FieldScriptTest {
    /// The tenant whose limits apply.
    pub tenant: TenantId,
    /// Body of the script.
    pub expression: String,
    /// Its arguments: `{"type": "SINGLE_VALUE", "ts", "value"}` or
    /// `{"type": "TS_ROLLING", "timeWindow": {"startTs", "endTs"}, "values": [{"ts", "value"}]}`.
    pub arguments: Map<String, Value>,
    /// Newest time of the arguments, milliseconds: `ctx.latestTs`.
    pub latest_ts: i64,
}
