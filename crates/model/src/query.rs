//! The query language: which entities are asked for, what must hold for their fields and values, and what is shown.

mod filter;
mod predicate;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::EntityId;
use crate::page::SortOrder;

pub use filter::{AliasId, EntityFilter, EntityTypeNames, SearchFilter, TypeFilter};
pub use predicate::{
    BooleanOperation, ComplexOperation, DynamicSource, DynamicValue, KeyFilter, KeyFilterPredicate,
    NumericOperation, PredicateValue, StringOperation,
};

/// What a key names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum KeyType {
    /// An attribute of any scope; the one that was written last where several have the name.
    Attribute,
    /// An attribute that the device writes.
    ClientAttribute,
    /// An attribute that the device is told.
    SharedAttribute,
    /// An attribute that the device does not see.
    ServerAttribute,
    /// The latest value of a series.
    TimeSeries,
    /// A field of the entity, such as `name`.
    EntityField,
    /// A field of an alarm, such as `severity`; in queries of alarms only.
    AlarmField,
}

/// Something of an entity that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = EntityKey)]
pub struct EntityQueryKey {
    /// What it is.
    #[serde(rename = "type")]
    pub key_type: KeyType,
    /// Its name.
    pub key: String,
}

impl EntityQueryKey {
    /// A key of this type and name.
    pub fn new(key_type: KeyType, key: impl Into<String>) -> Self {
        Self {
            key_type,
            key: key.into(),
        }
    }
}

/// What a page is sorted by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DataSortOrder {
    /// The field or value.
    pub key: EntityQueryKey,
    /// In which direction.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub direction: SortOrder,
}

/// Which page of the result is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct DataPageLink {
    /// Entities a page.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub page_size: i64,
    /// Page index from 0.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub page: i64,
    /// Text that the shown fields and values must contain, regardless of case.
    pub text_search: Option<String>,
    /// What it is sorted by; in no particular order where absent.
    pub sort_order: Option<DataSortOrder>,
    /// Whether a subscription evaluates it again and again.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub dynamic: bool,
}

/// How many entities are asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityCountQuery {
    /// Which entities.
    pub entity_filter: EntityFilter,
    /// What must hold for them.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub key_filters: Vec<KeyFilter>,
    /// Whether all conditions must hold or one; all where absent.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub key_filters_operation: ComplexOperation,
}

/// Which entities are asked for, and what is shown of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityDataQuery {
    /// Which entities.
    pub entity_filter: EntityFilter,
    /// What must hold for them.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub key_filters: Vec<KeyFilter>,
    /// Whether all conditions must hold or one; all where absent.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub key_filters_operation: ComplexOperation,
    /// Fields that are shown.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub entity_fields: Vec<EntityQueryKey>,
    /// Attributes and latest values that are shown.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub latest_values: Vec<EntityQueryKey>,
    /// Which page.
    pub page_link: DataPageLink,
}

impl EntityDataQuery {
    /// The conditions alone.
    pub fn to_count_query(&self) -> EntityCountQuery {
        EntityCountQuery {
            entity_filter: self.entity_filter.clone(),
            key_filters: self.key_filters.clone(),
            key_filters_operation: self.key_filters_operation,
        }
    }
}

/// A value as text, and its time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TsValue {
    /// Its time, milliseconds; 0 where there is no value.
    pub ts: i64,
    /// The value as text; empty where there is none.
    pub value: String,
}

/// Values by what they are and their names.
pub type LatestValues = BTreeMap<KeyType, BTreeMap<String, TsValue>>;

/// What a query shows of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityData {
    /// The entity.
    pub entity_id: EntityId,
    /// Fields, attributes and latest values.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, TsValue>>)]
    pub latest: LatestValues,
    /// Points by series; filled by subscriptions only.
    pub timeseries: BTreeMap<String, Vec<TsValue>>,
    /// Aggregated values by the numbers they were asked for with; filled by subscriptions only.
    #[schema(value_type = Object)]
    pub agg_latest: BTreeMap<i64, serde_json::Value>,
}

impl EntityData {
    /// An entity of which nothing is shown yet.
    pub fn of(entity_id: EntityId) -> Self {
        Self {
            entity_id,
            latest: BTreeMap::new(),
            timeseries: BTreeMap::new(),
            agg_latest: BTreeMap::new(),
        }
    }
}

/// Names that entities have values under.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableKeys {
    /// Kinds of the entities.
    #[schema(value_type = Vec<String>)]
    pub entity_types: std::collections::BTreeSet<crate::EntityType>,
    /// Names of series.
    pub timeseries: std::collections::BTreeSet<String>,
    /// Names of attributes.
    pub attribute: std::collections::BTreeSet<String>,
}
