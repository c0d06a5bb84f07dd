//! The values that alarm rules read, and the alarms that they find.

use std::cell::RefCell;
use std::ops::ControlFlow;

use fieldline_alarm_rules::{
    ActiveAlarm, AlarmInputChange, AlarmInputKind, AlarmInputSource, AlarmRuleSet, AlarmRuleState,
    AlarmScriptArguments, AlarmValueSource,
};
use fieldline_core::ingest::IngestShutdown;
use fieldline_model::kv::{KvValue, KvValueRef};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey};
use fieldline_script::{Script, ScriptArg};
use tracing::warn;

use crate::originators::Originator;
use crate::worker::field_calls::FieldScriptRunner;
use crate::worker::retry::{AttemptError, AttemptTexts, spawn_attempt, with_retry};
use crate::worker::walk::WalkContext;

/// Values as they were gathered, by the positions of the needs.
pub(super) struct AlarmInputValues(pub(super) Vec<Option<(i64, KvValue)>>);

impl AlarmInputValues {
    /// The newest values of an update that brings all of so many inputs.
    pub(super) fn brought_by(changes: &[AlarmInputChange<'_>], inputs: usize) -> Self {
        let mut values: Vec<Option<(i64, KvValue)>> = vec![None; inputs];
        for change in changes {
            if let Some(slot) = values.get_mut(usize::from(change.input))
                && slot.as_ref().is_none_or(|(ts, _)| *ts <= change.ts)
            {
                *slot = Some((change.ts, change.value.to_value()));
            }
        }
        Self(values)
    }

    /// About as many bytes as they take as arguments of a script.
    pub(super) fn bytes(&self) -> usize {
        let sizes = self.0.iter().flatten().map(|(_, value)| match value {
            KvValue::Text(text) => text.len(),
            KvValue::Json(text) => text.len(),
            _ => 8,
        });
        sizes.sum()
    }
}

/// Gathered values, and scripts over them where there are any.
pub(super) struct WorkerAlarmValues<'a, 'h> {
    pub(super) gathered: &'a AlarmInputValues,
    pub(super) scripts: Option<(&'a [Script], RefCell<&'a mut FieldScriptRunner<'h>>)>,
}

impl AlarmValueSource for WorkerAlarmValues<'_, '_> {
    fn get(&self, need: usize) -> Option<(i64, KvValueRef<'_>)> {
        let (ts, value) = self.gathered.0.get(need)?.as_ref()?;
        Some((*ts, value.as_ref()))
    }

    fn expression(&self, expression: usize, arguments: &AlarmScriptArguments<'_>) -> Result<bool, String> {
        let (scripts, calls) = self.scripts.as_ref().ok_or("scripts cannot be run here")?;
        let script = scripts.get(expression).ok_or("there is no such expression")?;
        let given: Vec<(&str, i64, ScriptArg<'_>)> = arguments
            .iter()
            .map(|(name, ts, value)| (name, ts, argument(value)))
            .collect();
        let named: Vec<(&str, ScriptArg<'_>)> = given
            .iter()
            .map(|(name, ts, value)| (*name, ScriptArg::Single { ts: *ts, value }))
            .collect();
        let mut args = vec![ScriptArg::Context {
            args: &named,
            latest_ts: arguments.latest_ts(),
        }];
        args.extend(given.iter().map(|(_, _, value)| *value));
        let output = calls.borrow_mut().run(script, &args)?;
        output
            .as_bool()
            .ok_or_else(|| "the expression must return true or false".to_owned())
    }
}

fn argument(value: KvValueRef<'_>) -> ScriptArg<'_> {
    match value {
        KvValueRef::Bool(value) => ScriptArg::Bool(value),
        KvValueRef::Long(value) => ScriptArg::Long(value),
        KvValueRef::Double(value) => ScriptArg::Double(value),
        KvValueRef::Text(text) => ScriptArg::Text(text),
        KvValueRef::Json(text) => ScriptArg::Json(text),
    }
}

impl WalkContext<'_> {
    /// Asks the store which alarms of the rules are active.
    pub(super) async fn resolve(
        &mut self,
        state: &mut AlarmRuleState,
        rules: &AlarmRuleSet,
        subject: EntityKey,
    ) -> Result<(), IngestShutdown> {
        let worker = &*self.worker;
        let look_up = async || {
            let alarms = worker.shared.services.stores.alarms.clone();
            let active = async move { alarms.active_of(subject.tenant, subject.entity).await };
            spawn_attempt(&worker.shared.services, active).await
        };
        let active = with_retry(self.writer, look_up, |error| {
            match error {
                AttemptError::Panicked(_) => warn!(%error, "looking up active alarms has failed"),
                _ => warn!(%error, "cannot look up active alarms, trying again"),
            }
            ControlFlow::Continue(())
        });
        let active = active.await?.unwrap_or_default();
        for position in state.unresolved(rules) {
            let wanted = rules.alarm_type(position);
            let found = active
                .iter()
                .find(|alarm| Some(alarm.alarm_type.as_str()) == wanted);
            let found = found.and_then(|alarm| {
                Some(ActiveAlarm {
                    id: alarm.id.0,
                    severity: alarm.severity?,
                    start_ts: alarm.start_ts,
                })
            });
            state.set_alarm(rules, position, found);
        }
        Ok(())
    }

    /// The values that the rules read, as they are now.
    pub(super) async fn gather(
        &mut self,
        rules: &AlarmRuleSet,
        subject: EntityKey,
        originator: &Originator,
    ) -> Result<AlarmInputValues, IngestShutdown> {
        let mut values = Vec::with_capacity(rules.inputs().len());
        for input in rules.inputs() {
            let entity = match input.source {
                AlarmInputSource::Originator => Some(subject.entity),
                AlarmInputSource::Customer => originator.customer.map(EntityId::from),
                AlarmInputSource::Tenant => Some(subject.tenant.into()),
                AlarmInputSource::Owner => Some(
                    originator
                        .customer
                        .map_or_else(|| subject.tenant.into(), EntityId::from),
                ),
                AlarmInputSource::Entity(entity) => Some(entity),
            };
            let Some(entity) = entity else {
                values.push(None);
                continue;
            };
            let of = EntityKey {
                tenant: subject.tenant,
                entity,
            };
            let value = match input.kind {
                AlarmInputKind::TimeSeries => self.latest(of, &input.key).await?,
                AlarmInputKind::Attribute(Some(scope)) => self.attribute(of, scope, &input.key).await?,
                AlarmInputKind::Attribute(None) => {
                    let mut found = None;
                    for scope in [
                        AttributeScope::Server,
                        AttributeScope::Shared,
                        AttributeScope::Client,
                    ] {
                        found = self.attribute(of, scope, &input.key).await?;
                        if found.is_some() {
                            break;
                        }
                    }
                    found
                }
                AlarmInputKind::EntityField => {
                    let text = field_of(originator, &input.key);
                    text.map(|text| (self.worker.now_ms(), KvValue::Text(text.into())))
                }
            };
            values.push(value);
        }
        Ok(AlarmInputValues(values))
    }

    /// The latest value of a series; what cannot be read counts as absent.
    pub(in crate::worker) async fn latest(
        &mut self,
        subject: EntityKey,
        key: &str,
    ) -> Result<Option<(i64, KvValue)>, IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts::reading("cannot read a latest value, trying again", "");
        let keys = [key.to_owned()];
        let series = &self.worker.shared.services.series;
        let read = async || Ok(series.latest(subject, Some(&keys)).await?);
        let found = with_retry(self.writer, read, |error| TEXTS.log(error)).await?;
        let latest = found.and_then(|found| found.into_iter().next());
        Ok(latest.map(|latest| (latest.point.ts, latest.point.value)))
    }

    /// An attribute; what cannot be read counts as absent.
    pub(in crate::worker) async fn attribute(
        &mut self,
        subject: EntityKey,
        scope: AttributeScope,
        key: &str,
    ) -> Result<Option<(i64, KvValue)>, IngestShutdown> {
        const TEXTS: AttemptTexts = AttemptTexts::reading("cannot read an attribute, trying again", "");
        let keys = [key.to_owned()];
        let attributes = &self.worker.shared.services.attributes;
        let read = async || Ok(attributes.get(subject, scope, Some(&keys)).await?);
        let found = with_retry(self.writer, read, |error| TEXTS.log(error)).await?;
        let attribute = found.and_then(|found| found.into_iter().next());
        Ok(attribute.map(|attribute| (attribute.last_update_ts, attribute.value)))
    }
}

fn field_of(originator: &Originator, key: &str) -> Option<String> {
    match key {
        "name" => Some(originator.name.to_string()),
        "type" => Some(originator.profile_name.to_string()),
        "label" => Some(originator.label.to_string()),
        _ => None,
    }
}
