//! What a configuration must fulfil, whatever the tenant may have.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::configuration::{
    AggregationInterval, AggregationMetric, ArgumentDefinition, ArgumentDynamicSource, ArgumentType,
    CalculatedFieldConfiguration, CalculatedFieldOutput, DynamicSourceType, EntityAggregation,
    GeofencingFieldConfiguration, IntervalType, MetricInputType, OutputType, PropagationFieldConfiguration,
    RelatedEntitiesAggregation, RelationLevel, ZoneGroup,
};
use super::{CalculatedFieldType, REFERENCED_ENTITIES};
use crate::EntityId;
use crate::expression::MathExpression;

/// Names of arguments of the platform itself.
const SCRIPT_CONTEXT: &str = "ctx";
const PROPAGATION_CONTEXT: &str = "propagationCtx";
const COORDINATES: [&str; 2] = ["latitude", "longitude"];

/// Longest expression or script, in bytes.
const MAX_EXPRESSION_BYTES: usize = 50_000;

/// Digits behind the point that make sense for a double.
const MAX_DECIMALS: i32 = 20;

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConfigError {
    field: String,
    problem: String,
}

impl FieldConfigError {
    /// A problem of a setting, which is named by its path: `configuration.output.name`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    /// Path of the setting.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for FieldConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for FieldConfigError {}

type ValidationResult = Result<(), FieldConfigError>;

/// Reads one shape of configuration; an error names the place.
pub(super) fn read<T: DeserializeOwned>(json: &Value) -> Result<T, FieldConfigError> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let path = error.path().to_string();
        let field = match path.as_str() {
            "." => "configuration".to_owned(),
            path => format!("configuration.{path}"),
        };
        FieldConfigError::new(field, error.into_inner().to_string())
    })
}

/// The configuration may repeat the type of its field, and must not contradict it.
pub(super) fn check_type(kind: CalculatedFieldType, json: &Value) -> ValidationResult {
    if !json.is_object() {
        return Err(FieldConfigError::new("configuration", "must be a JSON object"));
    }
    match json.get("type") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(name)) if name == kind.name() => Ok(()),
        Some(other) => Err(FieldConfigError::new(
            "configuration.type",
            format!("must be {} as the type of the field, not {other}", kind.name()),
        )),
    }
}

pub(super) fn check(configuration: &CalculatedFieldConfiguration) -> ValidationResult {
    if let Some(arguments) = configuration.arguments() {
        check_arguments(arguments)?;
    }
    if let Some(output) = configuration.output() {
        check_output(output)?;
    }
    match configuration {
        CalculatedFieldConfiguration::Simple(simple) => {
            refuse_rolling(&simple.arguments, "simple calculated fields")?;
            refuse_paths(&simple.arguments)?;
            required("configuration.output.name", simple.output.name.as_deref())?;
            check_expression(&simple.expression)?;
            let names: Vec<&str> = simple.arguments.keys().map(String::as_str).collect();
            MathExpression::compile(&simple.expression, &names)
                .map(drop)
                .map_err(|error| FieldConfigError::new("configuration.expression", error.to_string()))
        }
        CalculatedFieldConfiguration::Script(script) => {
            refuse_paths(&script.arguments)?;
            check_expression(&script.expression)
        }
        CalculatedFieldConfiguration::Geofencing(geofencing) => check_geofencing(geofencing),
        CalculatedFieldConfiguration::Alarm(alarm) => {
            if alarm.create_rules.is_empty() {
                return Err(FieldConfigError::new(
                    "configuration.createRules",
                    "must not be empty",
                ));
            }
            refuse_paths(&alarm.arguments)
        }
        CalculatedFieldConfiguration::Propagation(propagation) => check_propagation(propagation),
        CalculatedFieldConfiguration::RelatedEntitiesAggregation(aggregation) => check_related(aggregation),
        CalculatedFieldConfiguration::EntityAggregation(aggregation) => check_aggregation(aggregation),
    }
}

fn required(field: &str, text: Option<&str>) -> ValidationResult {
    if text.is_none_or(|text| text.trim().is_empty()) {
        return Err(FieldConfigError::new(field, "must not be empty"));
    }
    Ok(())
}

fn check_expression(expression: &str) -> ValidationResult {
    required("configuration.expression", Some(expression))?;
    if expression.len() > MAX_EXPRESSION_BYTES {
        return Err(FieldConfigError::new(
            "configuration.expression",
            format!("must not be longer than {MAX_EXPRESSION_BYTES} bytes"),
        ));
    }
    Ok(())
}

fn check_arguments(arguments: &BTreeMap<String, ArgumentDefinition>) -> ValidationResult {
    if arguments.is_empty() {
        return Err(FieldConfigError::new(
            "configuration.arguments",
            "must not be empty",
        ));
    }
    for (name, argument) in arguments {
        let field = format!("configuration.arguments.{name}");
        if name == SCRIPT_CONTEXT {
            return Err(FieldConfigError::new(
                field,
                "Argument name 'ctx' is reserved and cannot be used.",
            ));
        }
        if !is_name(name) {
            return Err(FieldConfigError::new(
                field,
                "the name of an argument must be a letter, `_` or `$`, followed by letters, digits, `_` and `$`",
            ));
        }
        check_argument(&field, argument)?;
    }
    Ok(())
}

/// Whether scripts and expressions can use it as a variable.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_' || first == '$')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
        && name.len() <= 255
}

fn check_argument(field: &str, argument: &ArgumentDefinition) -> ValidationResult {
    let Some(key) = &argument.ref_entity_key else {
        return Err(FieldConfigError::new(
            format!("{field}.refEntityKey"),
            "reference entity key must be configured",
        ));
    };
    required(&format!("{field}.refEntityKey.key"), Some(&key.key))?;
    if key.kind == ArgumentType::Attribute && key.scope.is_none() {
        return Err(FieldConfigError::new(
            format!("{field}.refEntityKey.scope"),
            "must be set for attributes",
        ));
    }
    if argument.time_window.is_some_and(|window| window < 0) {
        return Err(FieldConfigError::new(
            format!("{field}.timeWindow"),
            "must not be negative",
        ));
    }
    check_source(
        field,
        argument.ref_entity_id,
        argument.ref_dynamic_source_configuration.as_ref(),
    )
}

fn check_source(
    field: &str,
    entity: Option<EntityId>,
    source: Option<&ArgumentDynamicSource>,
) -> ValidationResult {
    if let Some(entity) = entity
        && !REFERENCED_ENTITIES.contains(&entity.entity_type)
    {
        return Err(FieldConfigError::new(
            format!("{field}.refEntityId"),
            format!(
                "an argument cannot refer to an entity of type {}",
                entity.entity_type
            ),
        ));
    }
    let Some(source) = source else { return Ok(()) };
    let field = format!("{field}.refDynamicSourceConfiguration");
    if entity.is_some() {
        return Err(FieldConfigError::new(field, "cannot stand beside refEntityId"));
    }
    if source.kind == DynamicSourceType::RelationPathQuery {
        if source.levels.is_empty() {
            return Err(FieldConfigError::new(
                format!("{field}.levels"),
                "At least one relation level must be specified!",
            ));
        }
        for (index, level) in source.levels.iter().enumerate() {
            check_level(&format!("{field}.levels[{index}]"), level)?;
        }
    }
    Ok(())
}

fn check_level(field: &str, level: &RelationLevel) -> ValidationResult {
    if level.relation_type.trim().is_empty() {
        return Err(FieldConfigError::new(
            format!("{field}.relationType"),
            "Relation type must be specified!",
        ));
    }
    Ok(())
}

fn refuse_rolling(arguments: &BTreeMap<String, ArgumentDefinition>, who: &str) -> ValidationResult {
    for (name, argument) in arguments {
        if kind(argument) == Some(ArgumentType::TsRolling) {
            return Err(FieldConfigError::new(
                format!("configuration.arguments.{name}.refEntityKey.type"),
                format!("TS_ROLLING is not supported by {who}"),
            ));
        }
    }
    Ok(())
}

/// A path of relations may lead to many entities, where a plain argument has one value.
fn refuse_paths(arguments: &BTreeMap<String, ArgumentDefinition>) -> ValidationResult {
    for (name, argument) in arguments {
        if argument.relation_path().is_some() {
            return Err(FieldConfigError::new(
                format!("configuration.arguments.{name}.refDynamicSourceConfiguration.type"),
                "RELATION_PATH_QUERY is not supported by this type of calculated field",
            ));
        }
    }
    Ok(())
}

fn kind(argument: &ArgumentDefinition) -> Option<ArgumentType> {
    argument.ref_entity_key.as_ref().map(|key| key.kind)
}

fn check_output(output: &CalculatedFieldOutput) -> ValidationResult {
    if output.kind == OutputType::Attributes && output.scope.is_none() {
        return Err(FieldConfigError::new(
            "configuration.output.scope",
            "must be set for attributes",
        ));
    }
    if output
        .decimals_by_default
        .is_some_and(|decimals| !(0..=MAX_DECIMALS).contains(&decimals))
    {
        return Err(FieldConfigError::new(
            "configuration.output.decimalsByDefault",
            format!("must be between 0 and {MAX_DECIMALS}"),
        ));
    }
    Ok(())
}

fn check_geofencing(geofencing: &GeofencingFieldConfiguration) -> ValidationResult {
    let coordinates = &geofencing.entity_coordinates;
    required(
        "configuration.entityCoordinates.latitudeKeyName",
        Some(&coordinates.latitude_key_name),
    )?;
    required(
        "configuration.entityCoordinates.longitudeKeyName",
        Some(&coordinates.longitude_key_name),
    )?;
    if geofencing.scheduled_update_enabled && geofencing.scheduled_update_interval.is_none() {
        return Err(FieldConfigError::new(
            "configuration.scheduledUpdateInterval",
            "Refresh interval is required when periodic zone group refresh is enabled.",
        ));
    }
    if geofencing.zone_groups.is_empty() {
        return Err(FieldConfigError::new(
            "configuration.zoneGroups",
            "must not be empty",
        ));
    }
    for (name, group) in &geofencing.zone_groups {
        check_group(name, group)?;
    }
    Ok(())
}

fn check_group(name: &str, group: &ZoneGroup) -> ValidationResult {
    let field = format!("configuration.zoneGroups.{name}");
    if COORDINATES.contains(&name) {
        return Err(FieldConfigError::new(
            field,
            format!("Name '{name}' is reserved and cannot be used for zone group!"),
        ));
    }
    required(&field, Some(name))?;
    required(
        &format!("{field}.perimeterKeyName"),
        Some(&group.perimeter_key_name),
    )?;
    check_source(
        &field,
        group.ref_entity_id,
        group.ref_dynamic_source_configuration.as_ref(),
    )?;
    if !group.create_relations_with_matched_zones {
        return Ok(());
    }
    if group
        .relation_type
        .as_deref()
        .is_none_or(|kind| kind.trim().is_empty())
    {
        return Err(FieldConfigError::new(
            format!("{field}.relationType"),
            format!("Relation type must be specified for '{name}' zone group!"),
        ));
    }
    if group.direction.is_none() {
        return Err(FieldConfigError::new(
            format!("{field}.direction"),
            format!("Relation direction must be specified for '{name}' zone group!"),
        ));
    }
    Ok(())
}

fn check_propagation(propagation: &PropagationFieldConfiguration) -> ValidationResult {
    check_level("configuration.relation", &propagation.relation)?;
    if propagation.arguments.contains_key(PROPAGATION_CONTEXT) {
        return Err(FieldConfigError::new(
            format!("configuration.arguments.{PROPAGATION_CONTEXT}"),
            "Argument name 'propagationCtx' is reserved and cannot be used.",
        ));
    }
    refuse_paths(&propagation.arguments)?;
    if propagation.apply_expression_to_resolved_arguments {
        if !propagation.arguments.values().any(ArgumentDefinition::is_own) {
            return Err(FieldConfigError::new(
                "configuration.arguments",
                "At least one argument must be configured with the 'Current entity' source entity type for \
                 'Expression result' propagation mode!",
            ));
        }
        return check_expression(propagation.expression.as_deref().unwrap_or_default());
    }
    for (name, argument) in &propagation.arguments {
        if !argument.is_own() {
            return Err(FieldConfigError::new(
                format!("configuration.arguments.{name}"),
                "Arguments in 'Arguments only' propagation mode support only the 'Current entity' source entity type!",
            ));
        }
    }
    refuse_rolling(&propagation.arguments, "'Arguments only' propagation mode")
}

fn check_related(aggregation: &RelatedEntitiesAggregation) -> ValidationResult {
    check_level("configuration.relation", &aggregation.relation)?;
    refuse_rolling(&aggregation.arguments, "aggregation of related entities")?;
    for (name, argument) in &aggregation.arguments {
        if !argument.is_own() {
            return Err(FieldConfigError::new(
                format!("configuration.arguments.{name}"),
                "arguments are values of the related entities: neither refEntityId nor \
                 refDynamicSourceConfiguration can be set",
            ));
        }
    }
    check_metrics(&aggregation.metrics, &aggregation.arguments, true)
}

fn check_metrics(
    metrics: &BTreeMap<String, AggregationMetric>,
    arguments: &BTreeMap<String, ArgumentDefinition>,
    scripts: bool,
) -> ValidationResult {
    if metrics.is_empty() {
        return Err(FieldConfigError::new(
            "configuration.metrics",
            "Metrics map cannot be empty.",
        ));
    }
    for (name, metric) in metrics {
        let field = format!("configuration.metrics.{name}.input");
        match metric.input.kind {
            MetricInputType::Function if scripts => {
                required(&format!("{field}.function"), metric.input.function.as_deref())?;
            }
            MetricInputType::Function => {
                return Err(FieldConfigError::new(
                    field,
                    "Metric key can only refer to argument.",
                ));
            }
            MetricInputType::Key => {
                let key = metric.input.key.as_deref().unwrap_or_default();
                if !arguments.contains_key(key) {
                    return Err(FieldConfigError::new(
                        format!("{field}.key"),
                        format!("Metric references unknown argument: '{key}'."),
                    ));
                }
            }
        }
    }
    Ok(())
}

fn check_aggregation(aggregation: &EntityAggregation) -> ValidationResult {
    for (name, argument) in &aggregation.arguments {
        if kind(argument) != Some(ArgumentType::TsLatest) {
            return Err(FieldConfigError::new(
                format!("configuration.arguments.{name}.refEntityKey.type"),
                "Calculated field with type: 'ENTITY_AGGREGATION' support only TS_LATEST arguments.",
            ));
        }
        if !argument.is_own() {
            return Err(FieldConfigError::new(
                format!("configuration.arguments.{name}"),
                "arguments are series of the entity itself",
            ));
        }
    }
    check_metrics(&aggregation.metrics, &aggregation.arguments, false)?;
    check_interval(&aggregation.interval)
}

fn check_interval(interval: &AggregationInterval) -> ValidationResult {
    required("configuration.interval.tz", Some(&interval.tz))?;
    let Some(shortest) = interval.shortest_sec() else {
        return Err(FieldConfigError::new(
            "configuration.interval.durationSec",
            "must be 1 or more for custom intervals",
        ));
    };
    match interval.offset_sec {
        Some(offset) if offset < 0 => Err(FieldConfigError::new(
            "configuration.interval.offsetSec",
            "Offset cannot be negative.",
        )),
        Some(offset) if offset as u64 >= shortest => Err(FieldConfigError::new(
            "configuration.interval.offsetSec",
            "must be less than the length of the interval",
        )),
        _ => Ok(()),
    }
}

impl AggregationInterval {
    /// Seconds of the shortest interval of this kind; `None` where a custom one has no length.
    pub fn shortest_sec(&self) -> Option<u64> {
        const DAY: u64 = 86_400;
        Some(match self.kind {
            IntervalType::Hour => 3_600,
            IntervalType::Day => DAY,
            IntervalType::Week | IntervalType::WeekSunSat => 7 * DAY,
            IntervalType::Month => 28 * DAY,
            IntervalType::Quarter => 90 * DAY,
            IntervalType::Year => 365 * DAY,
            IntervalType::Custom => {
                return self
                    .duration_sec
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .filter(|seconds| *seconds > 0);
            }
        })
    }
}
