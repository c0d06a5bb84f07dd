//! Alarm rules on a worker: values are gathered, rules evaluated, and what they say is done with alarms.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::{AlarmApiResult, AlarmDraft, AlarmTouch, AlarmUpdate, Propagation, StateKey};
use fieldline_core::services::{ServiceErrorKind, ServiceResult};
use fieldline_core::usage::Meter;
use fieldline_model::entity::Alarm;
use fieldline_model::kv::{Value, ValueRef, unpack};
use fieldline_model::message::{Metadata, MsgType};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{AlarmId, CustomerId, EntityId, Subject, TenantId};
use fieldline_script::{Arg, Host, Script};
use tracing::warn;
use uuid::Uuid;

use super::Worker;
use super::fields::Shown;
use super::walk::{Move, Place, Ticket};
use crate::alarm_rules::{
    Action, ActionKind, ActiveAlarm, Arguments, Change, Changes, Event, Form, NeedKind, NeedOf, Outcome,
    Rules, State, Values, evaluate,
};
use crate::fields::{Entry, Kind, News};
use crate::message::{Data, Msg, derive_id};
use crate::node::{Label, Step};
use crate::nodes::script::{USED_UP, usage_of};
use crate::originators::Originator;

/// Alarms whose end has moved and is not stored yet; more are stored at once.
const MAX_TOUCHES: usize = 10_000;

/// What a message says to alarm rules, with whatever memory it needs.
pub(super) enum Told {
    Values(NeedKind, i64, Bytes),
    Owned(NeedKind, Vec<(i64, String, Value)>),
    Removed(AttributeScope, Vec<String>),
    /// Values by the positions of their needs.
    Needs(Vec<(u16, i64, Value)>),
    RemovedNeeds(Vec<usize>),
    Started,
    Acknowledged(Uuid),
    Cleared(Uuid),
    Deleted(Uuid),
    Timer,
}

/// Where what alarm rules say goes to.
#[derive(Clone)]
pub(super) enum Out {
    /// Through the connections of the node that keeps the rules.
    Node(Place),
    /// Into the chain of the originator, as messages of their own: those of a calculated field.
    Chain(Arc<Entry>),
}

impl Out {
    fn scripts(&self) -> &[Script] {
        match self {
            Self::Chain(entry) => match &entry.kind {
                Kind::Alarm(_, scripts) => scripts,
                _ => &[],
            },
            Self::Node(_) => &[],
        }
    }
}

/// Values as they were gathered, by the positions of the needs.
struct Gathered(Vec<Option<(i64, Value)>>);

/// Gathered values, and scripts over them.
struct Evaluated<'a> {
    gathered: &'a Gathered,
    scripts: &'a [Script],
    host: RefCell<(&'a mut Host, &'a mut Meter)>,
    tenant: TenantId,
}

impl Values for Evaluated<'_> {
    fn get(&self, need: usize) -> Option<(i64, ValueRef<'_>)> {
        let (ts, value) = self.gathered.0.get(need)?.as_ref()?;
        Some((*ts, value.as_ref()))
    }

    fn expression(&self, expression: usize, arguments: &Arguments<'_>) -> Result<bool, String> {
        let script = self
            .scripts
            .get(expression)
            .ok_or("there is no such expression")?;
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
        let (host, meter) = &mut *self.host.borrow_mut();
        let (feature, count) = usage_of(script);
        if !meter.allows(self.tenant, feature) {
            return Err(USED_UP.to_owned());
        }
        meter.add(self.tenant, count, 1);
        let output = host.call(script, &args).map_err(|error| error.to_string())?;
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
    /// Evaluates the alarm rules of the originator's profile for a message, which goes on through `Success`.
    pub(super) async fn profile_rules(
        &mut self,
        ticket: Ticket,
        mut msg: Msg,
        place: Place,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let subject = msg.subject();
        let originator = self.find(subject, store).await?;
        let rules = originator
            .as_ref()
            .and_then(|found| found.profile.as_ref()?.alarm_rules())
            .cloned();
        let (Some(originator), Some(rules)) = (originator, rules) else {
            moves.push(Move::Leave(msg, place, Label::SUCCESS));
            return Ok(());
        };
        if !self.parts.is_home(subject) {
            moves.push(Move::Answer(Step::Home(msg), Some(place), subject.tenant));
            return Ok(());
        }
        let Some(told) = told_by(&mut msg) else {
            moves.push(Move::Leave(msg, place, Label::SUCCESS));
            return Ok(());
        };
        let key = StateKey {
            subject,
            keeper: place.node().map_or(Uuid::nil(), |node| node.id.0),
            number: 0,
        };
        // It goes on after the messages about its alarms.
        moves.push(Move::Leave(msg.clone(), place.clone(), Label::SUCCESS));
        self.evaluate_alarms(
            ticket,
            key,
            &rules,
            &originator,
            (told, &msg),
            &Out::Node(place),
            store,
            moves,
        )
        .await
    }

    /// Evaluates the same rules because time has passed.
    pub(super) async fn profile_rules_due(
        &mut self,
        ticket: Ticket,
        key: StateKey,
        value: Bytes,
        place: Place,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        self.parts.keep(key.clone(), None, &value);
        let originator = self.find(key.subject, store).await?;
        let rules = originator
            .as_ref()
            .and_then(|found| found.profile.as_ref()?.alarm_rules())
            .cloned();
        let (Some(originator), Some(rules)) = (originator, rules) else {
            self.parts.forget(&key);
            self.end(ticket, None);
            return Ok(());
        };
        let msg = self.timer_message(&key, &value, &originator);
        self.evaluate_alarms(
            ticket,
            key,
            &rules,
            &originator,
            (Told::Timer, &msg),
            &Out::Node(place),
            store,
            moves,
        )
        .await?;
        self.end(ticket, None);
        Ok(())
    }

    /// Its id follows from what was kept, so that what it raises is the same when it comes once more after a crash.
    fn timer_message(&self, key: &StateKey, value: &[u8], originator: &Originator) -> Msg {
        let (now, subject) = (self.now_ms(), key.subject);
        let kept = value.iter().fold(hash(key.keeper, 0, key.number), |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let metadata: Metadata = [
            ("deviceName", originator.name.to_string()),
            ("deviceType", originator.profile_name.to_string()),
        ]
        .into_iter()
        .collect();
        let message = fieldline_model::message::Message {
            id: derive_id(subject.entity.id, kept),
            customer: originator.customer,
            ..fieldline_model::message::Message::new(
                MsgType::Custom("TIMER".into()),
                subject.entity,
                now,
                metadata,
                "{}".to_owned(),
            )
        };
        Msg::of(subject.tenant, message)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn evaluate_alarms(
        &mut self,
        ticket: Ticket,
        key: StateKey,
        rules: &Arc<Rules>,
        originator: &Arc<Originator>,
        (told, msg): (Told, &Msg),
        out: &Out,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let mut changes = Changes::default();
        let mut removed = Vec::new();
        match &told {
            Told::Values(kind, ts, values) => {
                for (name, value) in unpack(values).filter_map(Result::ok) {
                    changes.add(rules, *kind, name, *ts, value);
                }
            }
            Told::Owned(kind, values) => {
                for (ts, name, value) in values {
                    changes.add(rules, *kind, name, *ts, value.as_ref());
                }
            }
            Told::Needs(values) => {
                for (need, ts, value) in values {
                    changes.push(Change {
                        need: *need,
                        ts: *ts,
                        value: value.as_ref(),
                    });
                }
            }
            Told::RemovedNeeds(needs) => removed.extend(needs),
            Told::Removed(scope, names) => {
                removed.extend(
                    names
                        .iter()
                        .filter_map(|name| rules.find(NeedKind::Attribute(Some(*scope)), name)),
                );
            }
            _ => {}
        }
        let event = match &told {
            Told::Values(..) | Told::Owned(..) | Told::Needs(_) if changes.is_empty() => return Ok(()),
            Told::Values(..) | Told::Owned(..) | Told::Needs(_) => Event::Update(changes.as_slice()),
            Told::Removed(..) | Told::RemovedNeeds(_) if removed.is_empty() => return Ok(()),
            Told::Removed(..) | Told::RemovedNeeds(_) => Event::Removed(&removed),
            Told::Started => Event::Started,
            Told::Acknowledged(id) => Event::AlarmAcknowledged(*id),
            Told::Cleared(id) => Event::AlarmCleared(*id),
            Told::Deleted(id) => Event::AlarmDeleted(*id),
            Told::Timer => Event::Timer,
        };
        let now = self.now_ms();
        let kept = self
            .parts
            .states
            .peek(&key)
            .and_then(|bytes| State::decode(bytes).ok());
        let is_new = kept.is_none();
        let mut state = kept.unwrap_or_else(|| State::new(rules, now));
        if !state.is_resolved(rules) {
            self.resolve(&mut state, rules, key.subject, store).await?;
        }
        let covered = match &event {
            // Fields drop what comes later than what is stored, and have to see it.
            Event::Update(changes) => {
                rules.form() == Form::DeviceProfile && rules.needs().len() <= changes.len()
            }
            _ => false,
        };
        let values = if covered {
            Gathered(Vec::new())
        } else {
            self.apply_pending(ticket.partition, store).await?;
            self.gather(rules, key.subject, originator, store).await?
        };
        let seen = Evaluated {
            gathered: &values,
            scripts: out.scripts(),
            host: RefCell::new((&mut self.parts.scripts, &mut self.parts.meter)),
            tenant: key.subject.tenant,
        };
        let outcome = evaluate(rules, &mut state, &event, &seen, now);
        match out {
            Out::Chain(entry) => self.show_alarm_field(entry, rules, &values, key.subject, msg, &outcome),
            Out::Node(_) => {
                if let Some(error) = &outcome.error {
                    self.common.events.error(
                        key.subject.tenant,
                        key.subject.entity,
                        "alarm rules",
                        &error.message,
                    );
                }
            }
        }
        let had_actions = !outcome.actions.is_empty();
        for (number, action) in (1..).zip(&outcome.actions) {
            let done = self
                .act(number, action, rules, &mut state, &key, msg, store)
                .await?;
            if let Some((kind, label, alarm, metadata)) = done {
                self.tell_alarm(ticket, msg, (kind, label), &alarm, metadata, out, moves);
            }
        }
        if outcome.changed || is_new || had_actions {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            self.parts.keep(key, outcome.next_check, &bytes);
        } else if outcome.next_check.is_some() || matches!(told, Told::Timer) {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            self.parts.states.schedule(&key, outcome.next_check, &bytes);
        }
        Ok(())
    }

    /// Shows people who look for mistakes what an evaluation of a field's rules came to.
    fn show_alarm_field(
        &self,
        entry: &Entry,
        rules: &Rules,
        values: &Gathered,
        subject: Subject,
        msg: &Msg,
        outcome: &Outcome,
    ) {
        let now = self.now_ms();
        let is_shown = if outcome.error.is_some() {
            entry.debug.stores_failures(now)
        } else {
            entry.debug.stores_all(now)
        };
        if outcome.error.is_some() {
            metrics::counter!("fieldline_rules_field_errors_total").increment(1);
        }
        if !is_shown {
            return;
        }
        let arguments: serde_json::Map<String, serde_json::Value> = rules
            .needs()
            .iter()
            .zip(&values.0)
            .filter_map(|(need, value)| {
                let (ts, value) = value.as_ref()?;
                Some((
                    need.key.to_string(),
                    serde_json::json!({"ts": ts, "value": value.to_json()}),
                ))
            })
            .collect();
        let actions: Vec<String> = outcome
            .actions
            .iter()
            .map(|action| format!("{:?}", action.kind))
            .collect();
        let news = News {
            subject,
            change: crate::fields::Change::Moved,
            msg: msg.id,
            kind: msg.kind.name().into(),
            previous: Arc::default(),
        };
        let shown = Shown {
            arguments: Some(serde_json::Value::Object(arguments).to_string()),
            result: (!actions.is_empty()).then(|| actions.join(", ")),
            error: outcome.error.as_ref().map(|error| error.message.clone()),
        };
        self.show_field(entry, subject.entity, &news, shown);
    }

    /// Asks the store which alarms of the rules are active.
    async fn resolve(
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
    async fn gather(
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
    pub(super) async fn latest(
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
    pub(super) async fn attribute(
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

    /// Does what an action says. Returns what is to be told of it.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    async fn act(
        &mut self,
        number: u64,
        action: &Action,
        rules: &Rules,
        state: &mut State,
        key: &StateKey,
        msg: &Msg,
        store: &Applier,
    ) -> Result<Option<(MsgType, &'static str, Alarm, Metadata)>, Stopping> {
        let tenant = key.subject.tenant;
        let service = self.common.services.rules.alarms.clone();
        let (related, owner, to_tenant) = rules.propagation(action.alarm);
        let propagation = Propagation {
            related,
            owner,
            tenant: to_tenant,
            relation_types: rules
                .propagation_relation_types(action.alarm)
                .map(str::to_owned)
                .collect(),
        };
        let mut metadata = Metadata::new();
        if let Some(repeats) = action.condition_repeats {
            metadata.set("alarmConditionRepeats", repeats.to_string());
        }
        if let Some(duration) = action.condition_duration {
            metadata.set("alarmConditionDuration", duration.to_string());
        }
        match action.kind {
            ActionKind::Raise => {
                let draft = AlarmDraft {
                    id: Some(AlarmId(derive_id(msg.id, hash(key.keeper, action.alarm, number)))),
                    tenant,
                    customer: None::<CustomerId>,
                    originator: key.subject.entity,
                    alarm_type: rules.alarm_type(action.alarm).unwrap_or_default().to_owned(),
                    severity: action.severity,
                    start_ts: action.start_ts,
                    end_ts: action.end_ts,
                    details: action.details_json(),
                    propagation,
                    created_time: 0,
                    may_create: true,
                };
                let raised = self
                    .with_store(store, move || {
                        let (service, draft) = (service.clone(), draft.clone());
                        async move { service.create_or_update(draft, None).await.map(Some) }
                    })
                    .await?;
                let Some(result) = raised else {
                    state.set_alarm(rules, action.alarm, None);
                    return Ok(None);
                };
                let alarm = result.alarm.clone();
                if let Some((id, severity)) = alarm.id.zip(alarm.severity) {
                    let active = ActiveAlarm {
                        id: id.0,
                        severity,
                        start_ts: alarm.start_ts,
                    };
                    state.set_alarm(rules, action.alarm, Some(active));
                }
                let (kind, label) = if result.created || result.replayed {
                    metadata.set("isNewAlarm", "true");
                    (MsgType::AlarmCreated, "Alarm Created")
                } else if result.severity_changed() {
                    metadata.set("isExistingAlarm", "true");
                    metadata.set("isSeverityUpdated", "true");
                    (MsgType::AlarmSeverityUpdated, "Alarm Severity Updated")
                } else {
                    metadata.set("isExistingAlarm", "true");
                    (MsgType::AlarmUpdated, "Alarm Updated")
                };
                Ok(Some((kind, label, alarm, metadata)))
            }
            ActionKind::Update {
                severity_changed: false,
            } => {
                self.touches.insert(
                    action.id,
                    AlarmTouch {
                        tenant,
                        alarm: AlarmId(action.id),
                        end_ts: action.end_ts,
                        details: action.details_json(),
                    },
                );
                if self.touches.len() >= MAX_TOUCHES {
                    self.store_touches().await;
                }
                if !self.is_told(key, "Alarm Updated") {
                    return Ok(None);
                }
                let alarms = self.common.services.stores.alarms.clone();
                let id = AlarmId(action.id);
                let found = self
                    .with_store(store, move || {
                        let alarms = alarms.clone();
                        async move { Ok(alarms.get(tenant, id).await?) }
                    })
                    .await?;
                metadata.set("isExistingAlarm", "true");
                Ok(found.map(|mut alarm: Alarm| {
                    alarm.end_ts = alarm.end_ts.max(action.end_ts);
                    (MsgType::AlarmUpdated, "Alarm Updated", alarm, metadata)
                }))
            }
            ActionKind::Update {
                severity_changed: true,
            } => {
                let update = AlarmUpdate {
                    tenant,
                    id: AlarmId(action.id),
                    severity: action.severity,
                    start_ts: action.start_ts,
                    end_ts: action.end_ts,
                    details: action.details_json(),
                    propagation,
                };
                let updated: Option<AlarmApiResult> = self
                    .with_store(store, move || {
                        let (service, update) = (service.clone(), update.clone());
                        async move { service.update(update, None).await }
                    })
                    .await?;
                metadata.set("isExistingAlarm", "true");
                metadata.set("isSeverityUpdated", "true");
                Ok(updated.map(|result| {
                    (
                        MsgType::AlarmSeverityUpdated,
                        "Alarm Severity Updated",
                        result.alarm,
                        metadata,
                    )
                }))
            }
            ActionKind::Clear => {
                self.touches.remove(&action.id);
                let (id, ts, details) = (AlarmId(action.id), action.end_ts, action.details_json());
                let cleared: Option<AlarmApiResult> = self
                    .with_store(store, move || {
                        let (service, details) = (service.clone(), details.clone());
                        async move { service.clear(tenant, id, ts, details.as_ref()).await }
                    })
                    .await?;
                metadata.set("isClearedAlarm", "true");
                Ok(cleared.map(|result| (MsgType::AlarmClear, "Alarm Cleared", result.alarm, metadata)))
            }
        }
    }

    /// Calls a service until its store can serve. `None` where it refuses.
    async fn with_store<T: Send + 'static, F>(
        &mut self,
        store: &Applier,
        call: impl Fn() -> F,
    ) -> Result<Option<T>, Stopping>
    where
        F: Future<Output = ServiceResult<Option<T>>> + Send + 'static,
    {
        loop {
            match self.common.services.runtime.spawn(call()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) if error.kind() != ServiceErrorKind::Unavailable => {
                    warn!(%error, "an alarm rule's alarm was refused");
                    return Ok(None);
                }
                Ok(Err(error)) => warn!(%error, "cannot store an alarm, trying again"),
                Err(error) => {
                    warn!(%error, "storing an alarm has failed");
                    return Ok(None);
                }
            }
            store.pause().await?;
        }
    }

    fn is_told(&self, key: &StateKey, label: &'static str) -> bool {
        let Some(chains) = self.tenants.get(&key.subject.tenant) else {
            return true;
        };
        let Some((chain, at)) = chains.node(fieldline_model::RuleNodeId(key.keeper)) else {
            return true;
        };
        let label = Label::from(label);
        chain
            .nodes
            .get(at)
            .is_some_and(|node| node.targets(&label).next().is_some() || node.debug.is_on())
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    fn tell_alarm(
        &mut self,
        ticket: Ticket,
        msg: &Msg,
        (kind, label): (MsgType, &'static str),
        alarm: &Alarm,
        metadata: Metadata,
        out: &Out,
        moves: &mut Vec<Move>,
    ) {
        let Ok(body) = serde_json::to_value(alarm) else {
            return;
        };
        let mut told = msg.derive(hash(
            alarm.id.map_or(Uuid::nil(), |id| id.0),
            0,
            kind.name().len() as u64,
        ));
        told.data = Data::json(body);
        told.callers = msg.callers.clone();
        let entries: Vec<(String, String)> = metadata.entries().to_vec();
        told.meta.make_mut().extend(entries);
        self.begin(ticket);
        match out {
            Out::Node(place) => {
                told.kind = MsgType::Alarm;
                moves.push(Move::Leave(told, place.clone(), Label::from(label)));
            }
            Out::Chain(_) => {
                told.kind = kind;
                let tenant = told.tenant;
                moves.push(Move::Answer(Step::EnterDefault(told), None, tenant));
            }
        }
    }

    /// Stores how far the ends of alarms have moved.
    pub(super) async fn store_touches(&mut self) {
        if self.touches.is_empty() {
            return;
        }
        let touches: Vec<AlarmTouch> = self.touches.drain().map(|(_, touch)| touch).collect();
        let alarms = self.common.services.stores.alarms.clone();
        let stored = self
            .common
            .services
            .runtime
            .spawn(async move { alarms.touch(&touches).await })
            .await;
        if let Ok(Err(error)) = stored {
            // They move again with the next message.
            warn!(%error, "cannot move the ends of alarms");
        }
    }
}

fn hash(id: Uuid, alarm: usize, number: u64) -> u64 {
    let (high, low) = id.as_u64_pair();
    (high ^ low.rotate_left(17))
        .wrapping_add((alarm as u64) << 32)
        .wrapping_add(number)
}

fn field_of(originator: &Originator, key: &str) -> Option<String> {
    match key {
        "name" => Some(originator.name.to_string()),
        "type" => Some(originator.profile_name.to_string()),
        "label" => Some(originator.label.to_string()),
        _ => None,
    }
}

/// What a message says to alarm rules; `None` where it says nothing.
fn told_by(msg: &mut Msg) -> Option<Told> {
    let scope = |msg: &Msg, default| {
        let named = msg.meta.get("scope");
        named
            .and_then(|name| AttributeScope::from_name(&name))
            .unwrap_or(default)
    };
    match msg.kind {
        MsgType::PostTelemetry => {
            let ts = msg.values_ts();
            match &msg.data {
                Data::Packed(values) => Some(Told::Values(NeedKind::TimeSeries, ts, values.clone())),
                _ => Some(Told::Owned(
                    NeedKind::TimeSeries,
                    series_of(&*msg.data.to_json().ok()?, ts),
                )),
            }
        }
        MsgType::TimeseriesUpdated => {
            let ts = msg.ts;
            let body = msg.data.to_json().ok()?;
            Some(Told::Owned(
                NeedKind::TimeSeries,
                series_of(body.get("timeseries")?, ts),
            ))
        }
        MsgType::PostAttributes => {
            let kind = NeedKind::Attribute(Some(scope(msg, AttributeScope::Client)));
            match &msg.data {
                Data::Packed(values) => Some(Told::Values(kind, msg.ts, values.clone())),
                _ => Some(Told::Owned(kind, values_of(&*msg.data.to_json().ok()?, msg.ts))),
            }
        }
        MsgType::AttributesUpdated | MsgType::Activity | MsgType::Inactivity => {
            let kind = NeedKind::Attribute(Some(scope(msg, AttributeScope::Server)));
            let ts = msg.ts;
            Some(Told::Owned(kind, values_of(&*msg.data.to_json().ok()?, ts)))
        }
        MsgType::AttributesDeleted => {
            let scope = scope(msg, AttributeScope::Server);
            let body = msg.data.to_json().ok()?;
            let names = body.get("attributes")?.as_array()?.iter();
            Some(Told::Removed(
                scope,
                names.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            ))
        }
        MsgType::AlarmAck => alarm_id(msg).map(Told::Acknowledged),
        MsgType::AlarmClear => alarm_id(msg).map(Told::Cleared),
        MsgType::AlarmDelete => alarm_id(msg).map(Told::Deleted),
        _ => None,
    }
}

fn alarm_id(msg: &mut Msg) -> Option<Uuid> {
    let body = msg.data.to_json().ok()?;
    body.pointer("/id/id")?.as_str()?.parse().ok()
}

fn series_of(body: &serde_json::Value, ts: i64) -> Vec<(i64, String, Value)> {
    match body {
        serde_json::Value::Array(rows) => rows.iter().flat_map(|row| series_of(row, ts)).collect(),
        serde_json::Value::Object(object) => match (
            object.get("ts").and_then(serde_json::Value::as_i64),
            object.get("values"),
        ) {
            (Some(ts), Some(values)) => values_of(values, ts),
            _ => values_of(body, ts),
        },
        _ => Vec::new(),
    }
}

fn values_of(body: &serde_json::Value, ts: i64) -> Vec<(i64, String, Value)> {
    let Some(object) = body.as_object() else {
        return Vec::new();
    };
    object
        .iter()
        .filter_map(|(key, value)| Some((ts, key.clone(), crate::values::of_json(value)?)))
        .collect()
}
