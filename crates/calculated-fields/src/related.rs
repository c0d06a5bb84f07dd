//! Metrics over the newest values of related entities.

use std::sync::Arc;

use fieldline_model::EntityId;
use fieldline_model::entity::SearchDirection;
use fieldline_model::entity::calculated_field::{
    AggregationFunction, CalculatedFieldLimits, FieldConfigError, MetricInputType, RelatedEntitiesAggregation,
};
use fieldline_model::kv::KvValue;
use fieldline_script::Script;

use super::geofencing::millis;
use super::input::FieldInput;
use super::metric::MetricAccumulator;
use super::outcome::{FieldEvaluationError, OutputRow};
use super::script::{self, ArgumentView, ScriptRunner};
use super::state::{ArgumentEntry, CalculatedFieldState, NEVER, SingleValue};

#[derive(Debug)]
enum RelatedMetricInput {
    Argument(usize),
    Script(Script),
}

#[derive(Debug)]
struct RelatedMetric {
    name: Arc<str>,
    function: AggregationFunction,
    filter: Option<Script>,
    input: RelatedMetricInput,
}

#[derive(Debug)]
pub(super) struct RelatedAggregation {
    metrics: Vec<RelatedMetric>,
    /// Against the direction of a relation there can be one entity only.
    single: bool,
    /// Time between two results, milliseconds.
    deduplication_ms: i64,
    /// How often the related entities are looked up, milliseconds.
    pub(super) refresh_ms: i64,
}

impl RelatedAggregation {
    /// Whether a metric has a script.
    pub(super) fn calls_scripts(&self) -> bool {
        self.metrics
            .iter()
            .any(|metric| metric.filter.is_some() || matches!(metric.input, RelatedMetricInput::Script(_)))
    }

    pub(super) fn new(
        configuration: &RelatedEntitiesAggregation,
        needs: &[FieldInput],
        limits: &CalculatedFieldLimits,
    ) -> Result<Self, FieldConfigError> {
        let mut metrics = Vec::with_capacity(configuration.metrics.len());
        for (name, metric) in &configuration.metrics {
            let setting = format!("configuration.metrics.{name}");
            let filter = match metric
                .filter
                .as_deref()
                .filter(|filter| !filter.trim().is_empty())
            {
                Some(filter) => Some(script::compile(&format!("{setting}.filter"), needs, filter)?),
                None => None,
            };
            let input = match metric.input.kind {
                MetricInputType::Function => {
                    let body = metric.input.function.as_deref().unwrap_or_default();
                    RelatedMetricInput::Script(script::compile(
                        &format!("{setting}.input.function"),
                        needs,
                        body,
                    )?)
                }
                MetricInputType::Key => {
                    let key = metric.input.key.as_deref().unwrap_or_default();
                    let argument = needs.iter().position(|need| *need.name == *key);
                    RelatedMetricInput::Argument(argument.ok_or_else(|| {
                        FieldConfigError::new(
                            format!("{setting}.input.key"),
                            format!("Metric references unknown argument: '{key}'."),
                        )
                    })?)
                }
            };
            metrics.push(RelatedMetric {
                name: name.as_str().into(),
                function: metric.function,
                filter,
                input,
            });
        }
        let refresh_sec = configuration.scheduled_update_interval.unwrap_or(0);
        Ok(Self {
            metrics,
            single: configuration.relation.direction == SearchDirection::To,
            deduplication_ms: millis(
                configuration
                    .deduplication_interval_in_sec
                    .max(limits.min_deduplication_interval_sec),
            ),
            refresh_ms: millis(refresh_sec.max(limits.min_scheduled_update_interval_sec)),
        })
    }

    /// Why there can be no result.
    pub(super) fn not_ready(&self, state: &CalculatedFieldState) -> Option<String> {
        match state.related.len() {
            0 => Some(
                "No entities found via 'Aggregation path to related entities'. Verify the configured relation type and \
                 direction."
                    .to_owned(),
            ),
            found if found > 1 && self.single => Some(format!(
                "More than one related entity is not supported for relation direction 'TO'. Found: {found}."
            )),
            _ => None,
        }
    }

    /// When there is to be a result, milliseconds, if there is something to tell.
    pub(super) fn due_at(&self, state: &CalculatedFieldState) -> Option<i64> {
        if state.forced {
            return Some(i64::MIN);
        }
        if !state.pending {
            return None;
        }
        Some(match state.evaluated_at {
            NEVER => i64::MIN,
            last => last.saturating_add(self.deduplication_ms),
        })
    }

    /// The metrics over all related entities.
    pub(super) fn evaluate(
        &self,
        state: &CalculatedFieldState,
        needs: &[FieldInput],
        decimals: Option<i32>,
        scripts: &mut dyn ScriptRunner,
        now: i64,
    ) -> Result<OutputRow, FieldEvaluationError> {
        let latest_ts = state.latest_ts(false);
        let mut values = Vec::with_capacity(self.metrics.len());
        for metric in &self.metrics {
            let mut aggregate = MetricAccumulator::new(metric.function);
            for entity in &state.related {
                let mut run = |script: &Script| {
                    let views = views(state, *entity);
                    script::call(script, needs, &views, latest_ts, now, scripts)
                };
                let counts = match &metric.filter {
                    Some(filter) => run(filter)? == serde_json::Value::Bool(true),
                    None => true,
                };
                if !counts {
                    continue;
                }
                let value: Option<KvValue> = match &metric.input {
                    RelatedMetricInput::Argument(argument) => {
                        value_of(state.slot(*argument), *entity).map(|single| single.value.clone())
                    }
                    RelatedMetricInput::Script(script) => script::value_of(run(script)?),
                };
                if let Some(value) = value {
                    aggregate.add(&value)?;
                }
            }
            if let Some(result) = aggregate.result(decimals)? {
                values.push((metric.name.clone(), result));
            }
        }
        Ok(OutputRow { ts: None, values })
    }
}

fn value_of(slot: &ArgumentEntry, entity: EntityId) -> Option<&SingleValue> {
    let ArgumentEntry::Related(entities) = slot else {
        return None;
    };
    let at = entities.binary_search_by_key(&entity, |(other, _)| *other).ok()?;
    entities.get(at)?.1.as_ref()
}

/// What scripts see of one related entity.
fn views(state: &CalculatedFieldState, entity: EntityId) -> Vec<ArgumentView<'_>> {
    state
        .slots
        .iter()
        .map(|slot| value_of(slot, entity).map_or(ArgumentView::Absent, ArgumentView::Single))
        .collect()
}
