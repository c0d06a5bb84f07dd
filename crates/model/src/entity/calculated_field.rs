//! Calculated fields: values that the platform derives from others.

mod configuration;
mod limits;
mod validation;

pub use configuration::{
    AggregationFunction, AggregationInterval, AggregationMetric, AggregationWatermark, AlarmRules,
    ArgumentDefinition, ArgumentDynamicSource, ArgumentType, CalculatedFieldConfiguration,
    CalculatedFieldOutput, DynamicSourceType, EntityAggregation, EntityCoordinates,
    GeofencingFieldConfiguration, IntervalType, MetricInput, MetricInputType, OutputStrategy,
    OutputStrategyType, OutputType, PropagationFieldConfiguration, ReferencedKey, RelatedEntitiesAggregation,
    RelationLevel, ReportStrategy, ScriptFieldConfiguration, SimpleFieldConfiguration, ZoneGroup,
};
pub use limits::CalculatedFieldLimits;
pub use validation::FieldConfigError;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DebugSettings;
use super::draft::stored_entity;
use crate::{CalculatedFieldId, EntityId, EntityType, TenantId};

/// What a calculated field does.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CalculatedFieldType {
    /// A mathematical expression over the newest values of its arguments.
    #[default]
    Simple,
    /// A script over its arguments.
    Script,
    /// Whether the entity is inside of zones.
    Geofencing,
    /// Raises and clears alarms.
    Alarm,
    /// Copies or computes values to related entities.
    Propagation,
    /// Aggregates the newest values of related entities.
    RelatedEntitiesAggregation,
    /// Aggregates time series of the entity itself over intervals of time.
    EntityAggregation,
}

impl CalculatedFieldType {
    /// Every type.
    pub const ALL: [Self; 7] = [
        Self::Simple,
        Self::Script,
        Self::Geofencing,
        Self::Alarm,
        Self::Propagation,
        Self::RelatedEntitiesAggregation,
        Self::EntityAggregation,
    ];

    /// The name in the REST API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Script => "SCRIPT",
            Self::Geofencing => "GEOFENCING",
            Self::Alarm => "ALARM",
            Self::Propagation => "PROPAGATION",
            Self::RelatedEntitiesAggregation => "RELATED_ENTITIES_AGGREGATION",
            Self::EntityAggregation => "ENTITY_AGGREGATION",
        }
    }

    /// The type of that name in the REST API.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether entities of this type can have fields of this type.
    pub fn supports(self, entity: EntityType) -> bool {
        match entity {
            EntityType::Device | EntityType::Asset | EntityType::DeviceProfile | EntityType::AssetProfile => {
                true
            }
            EntityType::Customer => self == Self::Alarm,
            _ => false,
        }
    }
}

/// The entity types that have calculated fields.
pub const CALCULATED_FIELD_ENTITIES: [EntityType; 5] = [
    EntityType::Device,
    EntityType::Asset,
    EntityType::DeviceProfile,
    EntityType::AssetProfile,
    EntityType::Customer,
];

/// The entity types that arguments can refer to.
pub const REFERENCED_ENTITIES: [EntityType; 4] = [
    EntityType::Device,
    EntityType::Asset,
    EntityType::Customer,
    EntityType::Tenant,
];

/// A calculated field of an entity, or of all entities of a profile. `configuration` is kept whole;
/// [`CalculatedFieldConfiguration::parse`] reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CalculatedField {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<CalculatedFieldId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: CalculatedFieldId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// The device, asset, customer or profile that has it.
    pub entity_id: Option<EntityId>,
    /// What it does.
    #[serde(rename = "type")]
    pub field_type: CalculatedFieldType,
    /// Name, unique among the fields of its type and entity; of an alarm rule the alarm type.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Which debug events are stored.
    pub debug_settings: Option<DebugSettings>,
    /// Version of the shape of `configuration`.
    #[serde(deserialize_with = "super::null_as_default")]
    pub configuration_version: i32,
    /// By the type.
    pub configuration: Value,
    /// Id in the system it was imported from.
    pub external_id: Option<CalculatedFieldId>,
    /// Counts the updates, for optimistic locking.
    pub version: Option<i64>,
    /// Free-form JSON: `description`, ….
    pub additional_info: Option<Value>,
}

stored_entity!(CalculatedField: CalculatedFieldId);

/// A calculated field with what lists show beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalculatedFieldInfo {
    /// The field.
    #[serde(flatten)]
    pub field: CalculatedField,
    /// Name of the entity that has it.
    pub entity_name: Option<String>,
}
