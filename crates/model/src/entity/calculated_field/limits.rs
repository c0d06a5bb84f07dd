//! What a tenant profile allows calculated fields.

use super::configuration::{ArgumentDefinition, CalculatedFieldConfiguration};
use super::validation::FieldConfigError;
use crate::entity::TenantProfile;

/// What a tenant profile allows calculated fields. 0 means unlimited where it is a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalculatedFieldLimits {
    /// Fields an entity or profile, alarm rules aside.
    pub max_fields_per_entity: u64,
    /// Arguments a field.
    pub max_arguments: u64,
    /// Shortest time after which relations are looked up again, seconds.
    pub min_scheduled_update_interval_sec: u64,
    /// Steps of a path of relations.
    pub max_relation_levels: u64,
    /// Related entities an argument.
    pub max_related_entities: u64,
    /// Points a rolling argument.
    pub max_rolling_points: u64,
    /// Size of the state of a field and an entity, bytes.
    pub max_state_bytes: u64,
    /// Size of a single value, bytes.
    pub max_value_bytes: u64,
    /// Shortest time between two results of an aggregation of related entities, seconds.
    pub min_deduplication_interval_sec: u64,
    /// Shortest interval of an aggregation of time series, seconds.
    pub min_aggregation_interval_sec: u64,
    /// Time between two results within an interval, seconds.
    pub intermediate_aggregation_interval_sec: u64,
    /// Time between two results of values that came late, seconds.
    pub reevaluation_interval_sec: u64,
}

impl Default for CalculatedFieldLimits {
    fn default() -> Self {
        Self {
            max_fields_per_entity: 5,
            max_arguments: 10,
            min_scheduled_update_interval_sec: 10,
            max_relation_levels: 2,
            max_related_entities: 100,
            max_rolling_points: 1_000,
            max_state_bytes: 32 * 1024,
            max_value_bytes: 2 * 1024,
            min_deduplication_interval_sec: 10,
            min_aggregation_interval_sec: 60,
            intermediate_aggregation_interval_sec: 300,
            reevaluation_interval_sec: 60,
        }
    }
}

impl CalculatedFieldLimits {
    /// The limits of a tenant profile; what it leaves out has its default.
    pub fn of(profile: &TenantProfile) -> Self {
        let default = Self::default();
        let limit = |name: &str, default: u64| {
            profile
                .setting(name)
                .and_then(serde_json::Value::as_i64)
                .map_or(default, |limit| u64::try_from(limit).unwrap_or(0))
        };
        let interval = |name: &str, default: u64| match limit(name, default) {
            0 => default,
            seconds => seconds,
        };
        let kib = |name: &str, default: u64| limit(name, default / 1024).saturating_mul(1024);
        Self {
            max_fields_per_entity: limit("maxCalculatedFieldsPerEntity", default.max_fields_per_entity),
            max_arguments: limit("maxArgumentsPerCF", default.max_arguments),
            min_scheduled_update_interval_sec: limit(
                "minAllowedScheduledUpdateIntervalInSecForCF",
                default.min_scheduled_update_interval_sec,
            ),
            max_relation_levels: limit("maxRelationLevelPerCfArgument", default.max_relation_levels),
            max_related_entities: limit(
                "maxRelatedEntitiesToReturnPerCfArgument",
                default.max_related_entities,
            ),
            max_rolling_points: limit("maxDataPointsPerRollingArg", default.max_rolling_points),
            max_state_bytes: kib("maxStateSizeInKBytes", default.max_state_bytes),
            max_value_bytes: kib("maxSingleValueArgumentSizeInKBytes", default.max_value_bytes),
            min_deduplication_interval_sec: limit(
                "minAllowedDeduplicationIntervalInSecForCF",
                default.min_deduplication_interval_sec,
            ),
            min_aggregation_interval_sec: limit(
                "minAllowedAggregationIntervalInSecForCF",
                default.min_aggregation_interval_sec,
            ),
            intermediate_aggregation_interval_sec: interval(
                "intermediateAggregationIntervalInSecForCF",
                default.intermediate_aggregation_interval_sec,
            ),
            reevaluation_interval_sec: interval(
                "cfReevaluationCheckInterval",
                default.reevaluation_interval_sec,
            ),
        }
    }

    /// Whether a configuration stays within them.
    ///
    /// # Errors
    /// What goes beyond, with the name of the setting.
    pub fn check(&self, configuration: &CalculatedFieldConfiguration) -> Result<(), FieldConfigError> {
        if let Some(arguments) = configuration.arguments() {
            if self.max_arguments > 0 && arguments.len() as u64 > self.max_arguments {
                return Err(FieldConfigError::new(
                    "configuration.arguments",
                    "Calculated field arguments limit reached!",
                ));
            }
            for (name, argument) in arguments {
                self.check_path(&format!("configuration.arguments.{name}"), name, argument)?;
            }
        }
        match configuration {
            CalculatedFieldConfiguration::Geofencing(geofencing) => {
                for (name, group) in &geofencing.zone_groups {
                    let argument = ArgumentDefinition {
                        ref_dynamic_source_configuration: group.ref_dynamic_source_configuration.clone(),
                        ..ArgumentDefinition::default()
                    };
                    self.check_path(&format!("configuration.zoneGroups.{name}"), name, &argument)?;
                }
                match geofencing.scheduled_update_interval {
                    Some(seconds) if geofencing.scheduled_update_enabled => self.check_scheduled(seconds),
                    _ => Ok(()),
                }
            }
            CalculatedFieldConfiguration::RelatedEntitiesAggregation(aggregation) => {
                if let Some(seconds) = aggregation.scheduled_update_interval {
                    self.check_scheduled(seconds)?;
                }
                if aggregation.deduplication_interval_in_sec < self.min_deduplication_interval_sec {
                    return Err(FieldConfigError::new(
                        "configuration.deduplicationIntervalInSec",
                        format!(
                            "Deduplication interval is less than configured minimum allowed interval in tenant \
                             profile: {}",
                            self.min_deduplication_interval_sec
                        ),
                    ));
                }
                Ok(())
            }
            CalculatedFieldConfiguration::EntityAggregation(aggregation) => {
                let shortest = self.min_aggregation_interval_sec;
                let seconds = aggregation.interval.shortest_sec();
                if shortest > 0 && seconds.is_none_or(|seconds| seconds < shortest) {
                    return Err(FieldConfigError::new(
                        "configuration.interval",
                        format!(
                            "Aggregation interval duration is less than configured minimum allowed aggregation \
                             interval in tenant profile: {shortest} sec."
                        ),
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_scheduled(&self, seconds: u64) -> Result<(), FieldConfigError> {
        let shortest = self.min_scheduled_update_interval_sec;
        if seconds >= shortest {
            return Ok(());
        }
        Err(FieldConfigError::new(
            "configuration.scheduledUpdateInterval",
            format!(
                "Scheduled update interval ({seconds} seconds) is less than minimum allowed interval in tenant \
                 profile: {shortest} seconds"
            ),
        ))
    }

    fn check_path(
        &self,
        field: &str,
        name: &str,
        argument: &ArgumentDefinition,
    ) -> Result<(), FieldConfigError> {
        let levels = argument.relation_path().map_or(0, <[_]>::len) as u64;
        if self.max_relation_levels == 0 || levels <= self.max_relation_levels {
            return Ok(());
        }
        Err(FieldConfigError::new(
            format!("{field}.refDynamicSourceConfiguration.levels"),
            format!(
                "Max relation level is greater than configured maximum allowed relation level in tenant profile: {} \
                 for argument: {name}",
                self.max_relation_levels
            ),
        ))
    }
}
