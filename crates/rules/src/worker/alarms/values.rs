//! The values that alarm rules read, and the alarms that they find.

use std::cell::RefCell;

use fieldline_core::ingest::{Applier, Stopping};
use fieldline_model::kv::{Value, ValueRef};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, Subject};
use fieldline_script::{Arg, Script};
use tracing::warn;

use crate::alarm_rules::{ActiveAlarm, Arguments, NeedKind, NeedOf, Rules, State, Values};
use crate::originators::Originator;
use crate::worker::Worker;
use crate::worker::field_calls::FieldScripts;

/// Values as they were gathered, by the positions of the needs.
pub(super) struct Gathered(pub(super) Vec<Option<(i64, Value)>>);

impl Gathered {
    /// About as many bytes as they take as arguments of a script.
    pub(super) fn bytes(&self) -> usize {
        let sizes = self.0.iter().flatten().map(|(_, value)| match value {
            Value::Text(text) => text.len(),
            Value::Json(text) => text.len(),
            _ => 8,
        });
        sizes.sum()
    }
}

/// Gathered values, and scripts over them where there are any.
pub(super) struct Evaluated<'a, 'h> {
    pub(super) gathered: &'a Gathered,
    pub(super) scripts: Option<(&'a [Script], RefCell<&'a mut FieldScripts<'h>>)>,
}

impl Values for Evaluated<'_, '_> {
    fn get(&self, need: usize) -> Option<(i64, ValueRef<'_>)> {
        let (ts, value) = self.gathered.0.get(need)?.as_ref()?;
        Some((*ts, value.as_ref()))
    }

    fn expression(&self, expression: usize, arguments: &Arguments<'_>) -> Result<bool, String> {
        let (scripts, calls) = self.scripts.as_ref().ok_or("scripts cannot be run here")?;
        let script = scripts.get(expression).ok_or("there is no such expression")?;
        let given: Vec<(&str, i64, Arg<'_>)> = arguments
            .iter()
            .map(|(name, ts, value)| (name, ts, argument(value)))
            .collect();
        let named: Vec<(&str, Arg<'_>)> = given
            .iter()
            .map(|(name, ts, value)| (*name, Arg::Single { ts: *ts, value }))
            .collect();
        let mut args = vec![Arg::Context {
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

fn argument(value: ValueRef<'_>) -> Arg<'_> {
    match value {
        ValueRef::Bool(value) => Arg::Bool(value),
        ValueRef::Long(value) => Arg::Long(value),
        ValueRef::Double(value) => Arg::Double(value),
        ValueRef::Text(text) => Arg::Text(text),
        ValueRef::Json(text) => Arg::Json(text),
    }
}

impl Worker {
    /// Asks the store which alarms of the rules are active.
    pub(super) async fn resolve(
        &mut self,
        state: &mut State,
        rules: &Rules,
        subject: Subject,
        store: &Applier,
    ) -> Result<(), Stopping> {
        let active = loop {
            let alarms = self.common.services.stores.alarms.clone();
            let asked = self
                .common
                .services
                .runtime
                .spawn(async move { alarms.active_of(subject.tenant, subject.entity).await });
            match asked.await {
                Ok(Ok(active)) => break active,
                Ok(Err(error)) => warn!(%error, "cannot look up active alarms, trying again"),
                Err(error) => warn!(%error, "looking up active alarms has failed"),
            }
            store.pause().await?;
        };
        for position in state.unresolved(rules) {
            let wanted = rules.alarm_type(position);
            let found = active
                .iter()
                .find(|alarm| Some(alarm.alarm_type.as_str()) == wanted);
            let found = found.and_then(|alarm| {
                Some(ActiveAlarm {
                    id: alarm.id?.0,
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
        rules: &Rules,
        subject: Subject,
        originator: &Originator,
        store: &Applier,
    ) -> Result<Gathered, Stopping> {
        let mut values = Vec::with_capacity(rules.needs().len());
        for need in rules.needs() {
            let whose = match need.of {
                NeedOf::Originator => Some(subject.entity),
                NeedOf::Customer => originator.customer.map(EntityId::from),
                NeedOf::Tenant => Some(subject.tenant.into()),
                NeedOf::Owner => Some(
                    originator
                        .customer
                        .map_or_else(|| subject.tenant.into(), EntityId::from),
                ),
                NeedOf::Entity(entity) => Some(entity),
            };
            let Some(entity) = whose else {
                values.push(None);
                continue;
            };
            let of = Subject {
                tenant: subject.tenant,
                entity,
            };
            let value = match need.kind {
                NeedKind::TimeSeries => self.latest(of, &need.key, store).await?,
                NeedKind::Attribute(Some(scope)) => self.attribute(of, scope, &need.key, store).await?,
                NeedKind::Attribute(None) => {
                    let mut found = None;
                    for scope in [
                        AttributeScope::Server,
                        AttributeScope::Shared,
                        AttributeScope::Client,
                    ] {
                        found = self.attribute(of, scope, &need.key, store).await?;
                        if found.is_some() {
                            break;
                        }
                    }
                    found
                }
                NeedKind::EntityField => {
                    field_of(originator, &need.key).map(|text| (self.now_ms(), Value::Text(text.into())))
                }
            };
            values.push(value);
        }
        Ok(Gathered(values))
    }

    /// The latest value of a series; what cannot be read counts as absent.
    pub(in crate::worker) async fn latest(
        &mut self,
        subject: Subject,
        key: &str,
        store: &Applier,
    ) -> Result<Option<(i64, Value)>, Stopping> {
        let keys = [key.to_owned()];
        loop {
            match self.common.services.series.latest(subject, Some(&keys)).await {
                Ok(found) => {
                    return Ok(found
                        .into_iter()
                        .next()
                        .map(|latest| (latest.point.ts, latest.point.value)));
                }
                Err(error) if !error.kind().is_retryable() => return Ok(None),
                Err(error) => warn!(%error, "cannot read a latest value, trying again"),
            }
            store.pause().await?;
        }
    }

    /// An attribute; what cannot be read counts as absent.
    pub(in crate::worker) async fn attribute(
        &mut self,
        subject: Subject,
        scope: AttributeScope,
        key: &str,
        store: &Applier,
    ) -> Result<Option<(i64, Value)>, Stopping> {
        let keys = [key.to_owned()];
        loop {
            match self
                .common
                .services
                .attributes
                .get(subject, scope, Some(&keys))
                .await
            {
                Ok(found) => {
                    return Ok(found
                        .into_iter()
                        .next()
                        .map(|found| (found.last_update_ts, found.value)));
                }
                Err(error) if !error.kind().is_retryable() => return Ok(None),
                Err(error) => warn!(%error, "cannot read an attribute, trying again"),
            }
            store.pause().await?;
        }
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
