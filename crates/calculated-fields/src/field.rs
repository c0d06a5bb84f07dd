//! A compiled configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldline_model::configuration_size::check_field;
use fieldline_model::entity::CalculatedField;
use fieldline_model::entity::calculated_field::{
    ArgumentDefinition, CalculatedFieldConfiguration, CalculatedFieldLimits,
    CalculatedFieldOutput as OutputSetting, FieldConfigError, OutputStrategy, OutputType, RelationLevel,
};
use fieldline_model::expression::MathExpression;
use fieldline_model::{CalculatedFieldId, EntityId};
use fieldline_script::Script;

use super::input::{FieldInput, FieldInputRole, FieldInputSource};
use super::number::{number, rounded};
use super::outcome::{
    FieldEvaluationError, FieldOutcome, IntervalAnswer, Output, OutputKind, OutputRow, OutputTargets,
};
use super::script::{self, ArgumentView, ScriptRunner};
use super::state::{ArgumentEntry, CalculatedFieldState, NEVER};
use super::update::ArgumentUpdate;
use super::{aggregation, codec, geofencing, propagation, related};

/// Arguments of a simple field whose values fit on the stack.
const INLINE_ARGUMENTS: usize = 16;

#[derive(Debug)]
enum FieldEvaluator {
    Simple {
        expression: MathExpression,
        name: Arc<str>,
    },
    Script(Script),
    Geofencing(geofencing::GeofencingPlan),
    Propagation(Option<Script>),
    Related(related::RelatedAggregation),
    Aggregation(aggregation::IntervalAggregation),
}

/// A calculated field, checked and compiled; shared by all entities that have it.
#[derive(Debug)]
pub struct CompiledField {
    id: CalculatedFieldId,
    name: Arc<str>,
    kind: FieldEvaluator,
    inputs: Box<[FieldInput]>,
    relation: Option<RelationLevel>,
    limits: CalculatedFieldLimits,
    output: OutputKind,
    strategy: OutputStrategy,
    decimals: Option<i32>,
    use_latest_ts: bool,
    fingerprint: u64,
}

impl CompiledField {
    /// Compiles a field for a tenant with these limits.
    ///
    /// # Errors
    /// What is wrong with the configuration, with the name of the setting. A field of type ALARM is none of these.
    pub fn compile(
        field: &CalculatedField,
        limits: &CalculatedFieldLimits,
    ) -> Result<Arc<Self>, FieldConfigError> {
        check_field(&field.configuration)
            .map_err(|oversized| FieldConfigError::new(oversized.field, oversized.problem))?;
        let configuration = CalculatedFieldConfiguration::parse(field.field_type, &field.configuration)?;
        let Some(output) = configuration.output() else {
            return Err(FieldConfigError::new(
                "type",
                "alarm rules are not calculated fields of values",
            ));
        };
        let timed = output.kind == OutputType::TimeSeries;
        let (kind, needs, relation, use_latest_ts) = match &configuration {
            CalculatedFieldConfiguration::Simple(simple) => {
                let needs = needs(&simple.arguments, FieldInputRole::Value, limits)?;
                let names: Vec<&str> = needs.iter().map(|need| &*need.name).collect();
                let expression = MathExpression::compile(&simple.expression, &names)
                    .map_err(|error| FieldConfigError::new("configuration.expression", error.to_string()))?;
                let name = simple.output.name.as_deref().unwrap_or_default().into();
                let kind = FieldEvaluator::Simple { expression, name };
                (kind, needs, None, simple.use_latest_ts)
            }
            CalculatedFieldConfiguration::Script(script) => {
                let needs = needs(&script.arguments, FieldInputRole::Value, limits)?;
                let script = script::compile("configuration.expression", &needs, &script.expression)?;
                (FieldEvaluator::Script(script), needs, None, false)
            }
            CalculatedFieldConfiguration::Geofencing(geofencing) => {
                let (plan, needs) =
                    geofencing::GeofencingPlan::new(geofencing, limits.min_scheduled_update_interval_sec)?;
                (FieldEvaluator::Geofencing(plan), needs, None, timed)
            }
            CalculatedFieldConfiguration::Propagation(propagation) => {
                let needs = needs(&propagation.arguments, FieldInputRole::Value, limits)?;
                let script = match propagation.expression.as_deref() {
                    Some(body) if propagation.apply_expression_to_resolved_arguments => {
                        Some(script::compile("configuration.expression", &needs, body)?)
                    }
                    _ => None,
                };
                let copies = script.is_none();
                let relation = Some(propagation.relation.clone());
                (
                    FieldEvaluator::Propagation(script),
                    needs,
                    relation,
                    timed && copies,
                )
            }
            CalculatedFieldConfiguration::RelatedEntitiesAggregation(aggregation) => {
                let needs = needs(&aggregation.arguments, FieldInputRole::Related, limits)?;
                let plan = related::RelatedAggregation::new(aggregation, &needs, limits)?;
                let relation = Some(aggregation.relation.clone());
                (
                    FieldEvaluator::Related(plan),
                    needs,
                    relation,
                    aggregation.use_latest_ts,
                )
            }
            CalculatedFieldConfiguration::EntityAggregation(aggregation) => {
                let needs = needs(&aggregation.arguments, FieldInputRole::Series, limits)?;
                let plan = aggregation::IntervalAggregation::new(aggregation, &needs, limits)?;
                (FieldEvaluator::Aggregation(plan), needs, None, false)
            }
            CalculatedFieldConfiguration::Alarm(_) => {
                return Err(FieldConfigError::new("type", "alarm rules have no output"));
            }
        };
        Ok(Arc::new(Self {
            id: field.id,
            name: field.name.as_str().into(),
            fingerprint: codec::fingerprint(field, &needs, relation.as_ref()),
            kind,
            inputs: needs.into(),
            relation,
            limits: *limits,
            output: output_kind(output)?,
            strategy: output.strategy,
            decimals: output.decimals_by_default,
            use_latest_ts: use_latest_ts && timed,
        }))
    }

    /// Its id.
    pub fn id(&self) -> CalculatedFieldId {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the series it makes, where the configuration says it: scripts make up their own.
    pub fn result_name(&self) -> Option<&str> {
        match (&self.kind, self.output) {
            (FieldEvaluator::Simple { name, .. }, OutputKind::TimeSeries) => Some(name),
            _ => None,
        }
    }

    /// Its arguments; the place of one is its number.
    pub fn inputs(&self) -> &[FieldInput] {
        &self.inputs
    }

    /// To which entities it propagates, or which it aggregates.
    pub fn relation(&self) -> Option<&RelationLevel> {
        self.relation.as_ref()
    }

    /// Whether it has to be asked whose zones or related entities have changed: see [`CompiledField::relations_due`].
    pub fn follows_relations(&self) -> bool {
        self.relation.is_some()
            || self
                .inputs
                .iter()
                .any(|need| matches!(need.source, FieldInputSource::Path(_)))
    }

    pub(super) fn limits(&self) -> &CalculatedFieldLimits {
        &self.limits
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(super) fn aggregation(&self) -> Option<&aggregation::IntervalAggregation> {
        match &self.kind {
            FieldEvaluator::Aggregation(plan) => Some(plan),
            _ => None,
        }
    }

    /// A state that knows nothing yet. It wants every argument once, the zones and the related entities.
    pub fn new_state(&self, entity: EntityId) -> CalculatedFieldState {
        CalculatedFieldState::new(entity, self.inputs.len())
    }

    /// Takes news; returns whether they are a reason to evaluate. `previous` are the fields that have taken part in
    /// making the values: where this field is among them, nothing is taken.
    ///
    /// # Errors
    /// The first update that was not taken; all others were.
    pub fn update(
        &self,
        state: &mut CalculatedFieldState,
        updates: &[ArgumentUpdate<'_>],
        previous: &[CalculatedFieldId],
        now: i64,
    ) -> Result<bool, FieldEvaluationError> {
        if previous.contains(&self.id) {
            return Ok(false);
        }
        if state.oversized {
            return Err(self.too_large());
        }
        // Results of aggregations come later, and are made of all values since the last one.
        if !matches!(
            self.kind,
            FieldEvaluator::Related(_) | FieldEvaluator::Aggregation(_)
        ) {
            state.previous.clear();
        }
        let mut changed = false;
        let mut failed = None;
        for update in updates {
            match self.take(state, update, now) {
                Ok(taken) => changed |= taken,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if changed {
            state.remember(previous);
        }
        failed.map_or(Ok(changed), Err)
    }

    /// Whether evaluating it may call scripts.
    pub fn calls_scripts(&self) -> bool {
        match &self.kind {
            FieldEvaluator::Script(_) => true,
            FieldEvaluator::Propagation(script) => script.is_some(),
            FieldEvaluator::Related(plan) => plan.calls_scripts(),
            FieldEvaluator::Simple { .. }
            | FieldEvaluator::Geofencing(_)
            | FieldEvaluator::Aggregation(_) => false,
        }
    }

    /// Makes the results that are due.
    ///
    /// # Errors
    /// Why there are none. The state is as it would be with a result.
    pub fn evaluate(
        &self,
        state: &mut CalculatedFieldState,
        scripts: &mut dyn ScriptRunner,
        now: i64,
    ) -> Result<FieldOutcome, FieldEvaluationError> {
        if state.oversized {
            return Err(self.too_large());
        }
        self.expire(state, now);
        let mut outcome = FieldOutcome {
            not_ready: self.not_ready(state),
            ..FieldOutcome::default()
        };
        let result = if outcome.not_ready.is_none() {
            self.results(state, scripts, now, &mut outcome)
        } else {
            Ok(())
        };
        state.changed.fill(false);
        outcome.next_check = self.next_check(state, now);
        self.check_size(state)?;
        result?;
        Ok(outcome)
    }

    fn results(
        &self,
        state: &mut CalculatedFieldState,
        scripts: &mut dyn ScriptRunner,
        now: i64,
        outcome: &mut FieldOutcome,
    ) -> Result<(), FieldEvaluationError> {
        let mut targets = OutputTargets::Own;
        let rows = match &self.kind {
            FieldEvaluator::Simple { expression, name } => vec![self.simple(state, expression, name)?],
            FieldEvaluator::Script(script) => {
                script::rows(self.run(script, state, scripts, now)?, self.output)?
            }
            FieldEvaluator::Geofencing(plan) => vec![plan.evaluate(state, &self.inputs, outcome)?],
            FieldEvaluator::Propagation(script) => {
                let (entities, all) = propagation::targets(state);
                targets = OutputTargets::Entities(entities);
                match script {
                    Some(script) => script::rows(self.run(script, state, scripts, now)?, self.output)?,
                    None => vec![propagation::copied(state, &self.inputs, all)],
                }
            }
            FieldEvaluator::Related(plan) => {
                if plan.due_at(state).is_none_or(|due| now < due) {
                    return Ok(());
                }
                // A failure is not tried again before the next values.
                (state.forced, state.pending, state.evaluated_at) = (false, false, now);
                state.added.clear();
                vec![plan.evaluate(state, &self.inputs, self.decimals, scripts, now)?]
            }
            FieldEvaluator::Aggregation(plan) => {
                let (queries, empty) = plan.evaluate(state, &self.inputs, now);
                outcome.queries = queries;
                let rows = plan.rows(&empty, self.decimals)?;
                if rows.is_empty() && outcome.queries.is_empty() {
                    return Ok(());
                }
                rows
            }
        };
        let latest_ts = if self.use_latest_ts {
            state.latest_ts(matches!(self.kind, FieldEvaluator::Propagation(_)))
        } else {
            None
        };
        outcome.previous = self.take_previous(state);
        outcome.outputs = self.outputs(targets, rows, latest_ts);
        Ok(())
    }

    /// The results of what was read for the queries of an evaluation.
    ///
    /// # Errors
    /// A result is no number.
    pub fn answer(&self, answers: &[IntervalAnswer]) -> Result<Vec<Output>, FieldEvaluationError> {
        let Some(plan) = self.aggregation() else {
            return Ok(Vec::new());
        };
        Ok(self.outputs(OutputTargets::Own, plan.rows(answers, self.decimals)?, None))
    }

    /// What has to be made up for after a time without this state's field being evaluated, such as a restart.
    pub fn restore(&self, state: &mut CalculatedFieldState, now: i64) {
        if let Some(plan) = self.aggregation() {
            plan.restore(state, now);
        }
    }

    /// When to evaluate though nothing has changed, milliseconds; seen from now.
    pub fn next_check(&self, state: &CalculatedFieldState, now: i64) -> Option<i64> {
        match &self.kind {
            FieldEvaluator::Related(plan) if plan.not_ready(state).is_none() => {
                plan.due_at(state).map(|due| due.max(now))
            }
            FieldEvaluator::Aggregation(plan) => plan.next_check(state, now),
            _ => None,
        }
    }

    /// Whether zones or related entities should be looked up again before the next evaluation.
    pub fn relations_due(&self, state: &CalculatedFieldState, now: i64) -> bool {
        let pause = match &self.kind {
            FieldEvaluator::Geofencing(plan) => plan.refresh_ms,
            FieldEvaluator::Related(plan) => Some(plan.refresh_ms),
            _ => None,
        };
        pause.is_some_and(|pause| state.related_at == NEVER || state.related_at < now.saturating_sub(pause))
    }

    /// Windows end now, whether or not points have come.
    fn expire(&self, state: &mut CalculatedFieldState, now: i64) {
        for (need, slot) in self.inputs.iter().zip(&mut state.slots) {
            if let (ArgumentEntry::Rolling(rolling), super::FieldInputKind::Rolling { window_ms, .. }) =
                (slot, need.kind)
            {
                rolling.expire(now, window_ms);
            }
        }
    }

    fn simple(
        &self,
        state: &CalculatedFieldState,
        expression: &MathExpression,
        name: &Arc<str>,
    ) -> Result<OutputRow, FieldEvaluationError> {
        let mut few = [0.0; INLINE_ARGUMENTS];
        let mut many = Vec::new();
        let numbers = match few.get_mut(..self.inputs.len()) {
            Some(numbers) => numbers,
            None => {
                many.resize(self.inputs.len(), 0.0);
                many.as_mut_slice()
            }
        };
        for ((place, need), slot) in numbers.iter_mut().zip(&self.inputs).zip(&state.slots) {
            let value = match slot {
                ArgumentEntry::Single(single) => number(single.value.as_ref()),
                _ => None,
            };
            *place = value.ok_or_else(|| FieldEvaluationError::NotANumber(need.name.clone()))?;
        }
        let result = rounded(expression.evaluate(numbers)?, self.decimals)?;
        Ok(OutputRow {
            ts: None,
            values: vec![(name.clone(), result)],
        })
    }

    fn run(
        &self,
        script: &Script,
        state: &CalculatedFieldState,
        scripts: &mut dyn ScriptRunner,
        now: i64,
    ) -> Result<serde_json::Value, FieldEvaluationError> {
        let views: Vec<ArgumentView<'_>> = self
            .inputs
            .iter()
            .zip(&state.slots)
            .map(|(need, slot)| ArgumentView::of(need, slot))
            .collect();
        let latest_ts = state.latest_ts(matches!(self.kind, FieldEvaluator::Propagation(_)));
        script::call(script, &self.inputs, &views, latest_ts, now, scripts)
    }

    fn outputs(
        &self,
        targets: OutputTargets,
        mut rows: Vec<OutputRow>,
        latest_ts: Option<i64>,
    ) -> Vec<Output> {
        if latest_ts.is_some() {
            for row in &mut rows {
                row.ts = latest_ts;
            }
        }
        rows.retain(|row| !row.values.is_empty());
        if rows.is_empty() {
            return Vec::new();
        }
        vec![Output {
            targets,
            kind: self.output,
            strategy: self.strategy,
            rows,
        }]
    }

    fn take_previous(&self, state: &mut CalculatedFieldState) -> Vec<CalculatedFieldId> {
        let mut previous = std::mem::take(&mut state.previous);
        previous.push(self.id);
        previous
    }

    /// Which arguments have no value, in the words of the REST API.
    fn not_ready(&self, state: &CalculatedFieldState) -> Option<String> {
        let empty = || {
            self.inputs
                .iter()
                .zip(&state.slots)
                .filter(|(_, slot)| slot.is_empty())
                .map(|(need, _)| &*need.name)
        };
        let missing = || {
            let names: Vec<&str> = empty().collect();
            names.join(", ")
        };
        match &self.kind {
            FieldEvaluator::Aggregation(_) => None,
            FieldEvaluator::Related(plan) => plan.not_ready(state),
            FieldEvaluator::Propagation(script) => {
                let waits = match script {
                    Some(_) => empty().next().is_some(),
                    None => empty().count() == self.inputs.len(),
                };
                let targets = "No entities found via 'Propagation path to related entities'. Verify the configured \
                               relation type and direction.";
                match (state.related.is_empty(), waits) {
                    (false, false) => None,
                    (true, false) => Some(targets.to_owned()),
                    (true, true) => Some(format!("{targets} Missing arguments to propagate: {}", missing())),
                    (false, true) => Some(format!("Required arguments are missing: {}", missing())),
                }
            }
            _ => empty()
                .next()
                .is_some()
                .then(|| format!("Required arguments are missing: {}", missing())),
        }
    }

    fn check_size(&self, state: &mut CalculatedFieldState) -> Result<(), FieldEvaluationError> {
        let most = self.limits.max_state_bytes;
        if most == 0 || codec::size(state) as u64 <= most {
            return Ok(());
        }
        state.give_up();
        Err(self.too_large())
    }

    fn too_large(&self) -> FieldEvaluationError {
        FieldEvaluationError::StateTooLarge(self.limits.max_state_bytes / 1024)
    }
}

fn needs(
    arguments: &BTreeMap<String, ArgumentDefinition>,
    role: FieldInputRole,
    limits: &CalculatedFieldLimits,
) -> Result<Vec<FieldInput>, FieldConfigError> {
    arguments
        .iter()
        .map(|(name, argument)| FieldInput::of(name, argument, role, limits.max_rolling_points))
        .collect()
}

fn output_kind(output: &OutputSetting) -> Result<OutputKind, FieldConfigError> {
    Ok(match output.kind {
        OutputType::TimeSeries => OutputKind::TimeSeries,
        OutputType::Attributes => OutputKind::Attributes(output.scope.ok_or_else(|| {
            FieldConfigError::new("configuration.output.scope", "must be set for attributes")
        })?),
    })
}
