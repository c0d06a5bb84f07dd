//! What a calculated field is configured with, read from the JSON of the REST API.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::CalculatedFieldType;
use super::validation::{self, FieldConfigError};
use crate::EntityId;
use crate::entity::SearchDirection;
use crate::timeseries::AttributeScope;

/// Which values an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ArgumentType {
    /// The newest value of a series.
    TsLatest,
    /// An attribute.
    Attribute,
    /// The newest points of a series.
    TsRolling,
}

/// Which series or attribute an argument takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferencedKey {
    /// Name of the series or attribute.
    pub key: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ArgumentType,
    /// Scope of an attribute.
    #[serde(default, deserialize_with = "scope")]
    pub scope: Option<AttributeScope>,
}

/// One step along relations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelationLevel {
    /// Which way.
    pub direction: SearchDirection,
    /// Along relations of this type.
    pub relation_type: String,
}

/// How the entity of an argument is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DynamicSourceType {
    /// The customer or tenant that has the entity.
    CurrentOwner,
    /// The entities at the end of a path of relations.
    RelationPathQuery,
}

/// An entity that depends on the one that is evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentDynamicSource {
    /// How it is found.
    #[serde(rename = "type")]
    pub kind: DynamicSourceType,
    /// The path of relations.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub levels: Vec<RelationLevel>,
}

/// A value that a field depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArgumentDefinition {
    /// A certain entity; the evaluated one where neither this nor the dynamic source is set.
    pub ref_entity_id: Option<EntityId>,
    /// An entity that depends on the evaluated one.
    pub ref_dynamic_source_configuration: Option<ArgumentDynamicSource>,
    /// Which of its values.
    pub ref_entity_key: Option<ReferencedKey>,
    /// Stands in for an absent value.
    #[serde(deserialize_with = "scalar_text")]
    pub default_value: Option<String>,
    /// Most points of a rolling argument; 0 for as many as the tenant profile allows.
    pub limit: Option<u32>,
    /// Age of the oldest point of a rolling argument, milliseconds; 0 for any age.
    pub time_window: Option<i64>,
}

impl ArgumentDefinition {
    /// Whether its value is one of the evaluated entity itself.
    pub fn is_own(&self) -> bool {
        self.ref_entity_id.is_none() && self.ref_dynamic_source_configuration.is_none()
    }

    /// The path of relations to its entities, where it has one.
    pub fn relation_path(&self) -> Option<&[RelationLevel]> {
        self.ref_dynamic_source_configuration
            .as_ref()
            .filter(|source| source.kind == DynamicSourceType::RelationPathQuery)
            .map(|source| source.levels.as_slice())
    }
}

/// What a result becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum OutputType {
    TimeSeries,
    Attributes,
}

/// How a result is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OutputStrategyType {
    /// As it is.
    Immediate,
    /// By a message to the rule chain.
    #[default]
    RuleChain,
}

/// How a result is stored; the flags are for [`OutputStrategyType::Immediate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OutputStrategy {
    /// Which way.
    #[serde(rename = "type")]
    pub kind: OutputStrategyType,
    /// How long points are kept, seconds; 0 for the tenant's default.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub ttl: u64,
    /// Whether points are kept.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub save_time_series: bool,
    /// Whether points become latest values.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub save_latest: bool,
    /// Whether attributes are kept.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub save_attribute: bool,
    /// Whether subscribers are told.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub send_ws_update: bool,
    /// Whether other calculated fields are evaluated.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub process_cfs: bool,
    /// Whether the rule chain is told about changed attributes.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub send_attributes_updated_notification: bool,
    /// Whether attributes that keep their value are left alone.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub update_attributes_only_on_value_change: bool,
}

/// What a result becomes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CalculatedFieldOutput {
    /// Series or attributes.
    #[serde(rename = "type")]
    pub kind: OutputType,
    /// Name of the result of a simple field.
    #[serde(default)]
    pub name: Option<String>,
    /// Scope of attributes.
    #[serde(default, deserialize_with = "scope")]
    pub scope: Option<AttributeScope>,
    /// Digits behind the point that numbers are rounded to; 0 makes whole numbers.
    #[serde(default)]
    pub decimals_by_default: Option<i32>,
    /// How it is stored.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub strategy: OutputStrategy,
}

/// Configuration of [`CalculatedFieldType::Simple`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see Argument and Output")]
pub struct SimpleFieldConfiguration {
    pub arguments: BTreeMap<String, ArgumentDefinition>,
    /// Mathematical expression of the arguments' names.
    pub expression: String,
    pub output: CalculatedFieldOutput,
    /// Whether the result has the time of the newest argument.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub use_latest_ts: bool,
}

/// Configuration of [`CalculatedFieldType::Script`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see Argument and Output")]
pub struct ScriptFieldConfiguration {
    pub arguments: BTreeMap<String, ArgumentDefinition>,
    /// Body of the script.
    pub expression: String,
    pub output: CalculatedFieldOutput,
}

/// Where the entity is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityCoordinates {
    /// Series of its latitude.
    pub latitude_key_name: String,
    /// Series of its longitude.
    pub longitude_key_name: String,
}

/// What is reported about a group of zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(clippy::enum_variant_names, reason = "the names of the REST API")]
pub enum ReportStrategy {
    /// `ENTERED` and `LEFT`.
    ReportTransitionEventsOnly,
    /// `INSIDE` or `OUTSIDE`.
    ReportPresenceStatusOnly,
    /// Both.
    ReportTransitionEventsAndPresenceStatus,
}

/// Zones that are looked at together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneGroup {
    /// A certain zone.
    #[serde(default)]
    pub ref_entity_id: Option<EntityId>,
    /// Zones that depend on the entity.
    #[serde(default)]
    pub ref_dynamic_source_configuration: Option<ArgumentDynamicSource>,
    /// Server attribute of the zones that holds their perimeter.
    pub perimeter_key_name: String,
    /// What is reported.
    pub report_strategy: ReportStrategy,
    /// Whether the entity is related to the zones it is in.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub create_relations_with_matched_zones: bool,
    /// Type of these relations.
    #[serde(default)]
    pub relation_type: Option<String>,
    /// Their direction, seen from the entity.
    #[serde(default)]
    pub direction: Option<SearchDirection>,
}

/// Configuration of [`CalculatedFieldType::Geofencing`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see the types")]
pub struct GeofencingFieldConfiguration {
    pub entity_coordinates: EntityCoordinates,
    pub zone_groups: BTreeMap<String, ZoneGroup>,
    /// Whether zones that depend on relations are looked up again from time to time.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub scheduled_update_enabled: bool,
    /// How often, seconds.
    #[serde(default)]
    pub scheduled_update_interval: Option<u64>,
    pub output: CalculatedFieldOutput,
}

/// Configuration of [`CalculatedFieldType::Propagation`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see the types")]
pub struct PropagationFieldConfiguration {
    pub arguments: BTreeMap<String, ArgumentDefinition>,
    /// Body of the script.
    #[serde(default)]
    pub expression: Option<String>,
    /// To which related entities.
    pub relation: RelationLevel,
    /// Whether a script makes the result; the arguments themselves are copied otherwise.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub apply_expression_to_resolved_arguments: bool,
    pub output: CalculatedFieldOutput,
}

/// How values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum AggregationFunction {
    Min,
    Max,
    Sum,
    Avg,
    Count,
    CountUnique,
}

/// Whether a metric aggregates an argument or what a script returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum MetricInputType {
    Key,
    Function,
}

/// What a metric aggregates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricInput {
    /// Which of the following.
    #[serde(rename = "type")]
    pub kind: MetricInputType,
    /// Name of an argument.
    #[serde(default)]
    pub key: Option<String>,
    /// Body of a script.
    #[serde(default)]
    pub function: Option<String>,
}

/// One result of an aggregation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregationMetric {
    /// How values become one.
    pub function: AggregationFunction,
    /// Body of a script that says which entities count.
    #[serde(default)]
    pub filter: Option<String>,
    /// What is aggregated.
    pub input: MetricInput,
    /// The result of an interval without values.
    #[serde(default)]
    pub default_value: Option<f64>,
}

/// Configuration of [`CalculatedFieldType::RelatedEntitiesAggregation`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see the types")]
pub struct RelatedEntitiesAggregation {
    /// Which related entities.
    pub relation: RelationLevel,
    pub arguments: BTreeMap<String, ArgumentDefinition>,
    /// Time between two results, seconds.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub deduplication_interval_in_sec: u64,
    pub metrics: BTreeMap<String, AggregationMetric>,
    pub output: CalculatedFieldOutput,
    /// Whether the result has the time of the newest argument.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub use_latest_ts: bool,
    /// How often the related entities are looked up again, seconds.
    #[serde(default)]
    pub scheduled_update_interval: Option<u64>,
}

/// Length of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum IntervalType {
    Hour,
    Day,
    Week,
    WeekSunSat,
    Month,
    Quarter,
    Year,
    Custom,
}

/// Intervals of the calendar of a time zone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AggregationInterval {
    /// Their length.
    #[serde(rename = "type")]
    pub kind: IntervalType,
    /// IANA name of the time zone.
    pub tz: String,
    /// How much later they begin, seconds.
    #[serde(default)]
    pub offset_sec: Option<i64>,
    /// Length of custom ones, seconds.
    #[serde(default)]
    pub duration_sec: Option<i64>,
}

/// How long values that come late are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct AggregationWatermark {
    /// Seconds behind the end of an interval.
    #[serde(deserialize_with = "crate::entity::null_as_default")]
    pub duration: u64,
}

/// Configuration of [`CalculatedFieldType::EntityAggregation`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see the types")]
pub struct EntityAggregation {
    pub arguments: BTreeMap<String, ArgumentDefinition>,
    pub metrics: BTreeMap<String, AggregationMetric>,
    pub interval: AggregationInterval,
    #[serde(default)]
    pub watermark: Option<AggregationWatermark>,
    /// Whether there are results before an interval ends.
    #[serde(default, deserialize_with = "crate::entity::null_as_default")]
    pub produce_intermediate_result: bool,
    pub output: CalculatedFieldOutput,
}

/// As much of the configuration of [`CalculatedFieldType::Alarm`] as it shares with the others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "see Argument")]
pub struct AlarmRules {
    pub arguments: BTreeMap<String, ArgumentDefinition>,
    /// Rules by severity.
    pub create_rules: BTreeMap<String, Value>,
}

/// What a calculated field is configured with.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "see the types")]
pub enum CalculatedFieldConfiguration {
    Simple(SimpleFieldConfiguration),
    Script(ScriptFieldConfiguration),
    Geofencing(GeofencingFieldConfiguration),
    Alarm(AlarmRules),
    Propagation(PropagationFieldConfiguration),
    RelatedEntitiesAggregation(RelatedEntitiesAggregation),
    EntityAggregation(EntityAggregation),
}

impl CalculatedFieldConfiguration {
    /// Reads and checks the configuration of a field of this type.
    ///
    /// # Errors
    /// What is wrong, with the name of the setting. Limits of the tenant are not looked at.
    pub fn parse(kind: CalculatedFieldType, json: &Value) -> Result<Self, FieldConfigError> {
        use CalculatedFieldType as Type;
        validation::check_type(kind, json)?;
        let configuration = match kind {
            Type::Simple => Self::Simple(validation::read(json)?),
            Type::Script => Self::Script(validation::read(json)?),
            Type::Geofencing => Self::Geofencing(validation::read(json)?),
            Type::Alarm => Self::Alarm(validation::read(json)?),
            Type::Propagation => Self::Propagation(validation::read(json)?),
            Type::RelatedEntitiesAggregation => Self::RelatedEntitiesAggregation(validation::read(json)?),
            Type::EntityAggregation => Self::EntityAggregation(validation::read(json)?),
        };
        validation::check(&configuration)?;
        Ok(configuration)
    }

    /// Its arguments by their names; those of geofencing are its zone groups and coordinates and not among them.
    pub fn arguments(&self) -> Option<&BTreeMap<String, ArgumentDefinition>> {
        match self {
            Self::Simple(simple) => Some(&simple.arguments),
            Self::Script(script) => Some(&script.arguments),
            Self::Geofencing(_) => None,
            Self::Alarm(alarm) => Some(&alarm.arguments),
            Self::Propagation(propagation) => Some(&propagation.arguments),
            Self::RelatedEntitiesAggregation(aggregation) => Some(&aggregation.arguments),
            Self::EntityAggregation(aggregation) => Some(&aggregation.arguments),
        }
    }

    /// What its results become; alarms have none.
    pub fn output(&self) -> Option<&CalculatedFieldOutput> {
        match self {
            Self::Simple(simple) => Some(&simple.output),
            Self::Script(script) => Some(&script.output),
            Self::Geofencing(geofencing) => Some(&geofencing.output),
            Self::Alarm(_) => None,
            Self::Propagation(propagation) => Some(&propagation.output),
            Self::RelatedEntitiesAggregation(aggregation) => Some(&aggregation.output),
            Self::EntityAggregation(aggregation) => Some(&aggregation.output),
        }
    }

    /// The entities that it names.
    pub fn referenced_entities(&self) -> Vec<EntityId> {
        let mut found: Vec<EntityId> = match self {
            Self::Geofencing(geofencing) => {
                let groups = geofencing.zone_groups.values();
                groups.filter_map(|group| group.ref_entity_id).collect()
            }
            _ => self
                .arguments()
                .into_iter()
                .flat_map(BTreeMap::values)
                .filter_map(|argument| argument.ref_entity_id)
                .collect(),
        };
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// An attribute scope by its name in the REST API.
fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AttributeScope>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    AttributeScope::from_name(&name)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom(format_args!("unknown attribute scope `{name}`")))
}

/// A text; numbers and flags are taken as their text, since clients write default values either way.
fn scalar_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Bool(flag) => Ok(Some(flag.to_string())),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(serde::de::Error::custom("expected a text, a number or a flag")),
    }
}
