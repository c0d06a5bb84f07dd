//! Alarm rules on a worker: values are gathered, rules evaluated, and what they say is done with alarms.

mod actions;
mod trigger;
mod values;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_alarm_rules::{AlarmRuleEvent, AlarmRuleOutcome, AlarmRuleSet, AlarmRuleState, evaluate};
use fieldline_core::ingest::IngestShutdown;
use fieldline_core::ports::StateKey;
use fieldline_model::EntityKey;
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_script::Script;
use uuid::Uuid;

pub(super) use self::trigger::AlarmTrigger;
use self::trigger::alarm_trigger_of;
use self::values::{AlarmInputValues, WorkerAlarmValues};
use super::batch::kept_hash;
use super::field_calls::{FieldEvaluation, FieldScriptCall, FieldScriptRunner};
use super::fields::FieldDebugEvent;
use super::walk::{NodeRef, WalkContext, WalkTask};
use crate::fields::{FieldEvent, FieldEventKind, FieldLogic, RegisteredField};
use crate::message::{RuleMessage, derive_id};
use crate::node::{ConnectionLabel, NodeResult};
use crate::originators::Originator;

/// Where what alarm rules say goes to.
#[derive(Clone)]
pub(super) enum AlarmDestination {
    /// Through the connections of the node that keeps the rules.
    Node(NodeRef),
    /// Into the chain of the originator, as messages of their own: those of a calculated field.
    Chain(Arc<RegisteredField>),
}

impl AlarmDestination {
    fn scripts(&self) -> &[Script] {
        match self {
            Self::Chain(entry) => match &entry.kind {
                FieldLogic::Alarm(_, scripts) => scripts,
                _ => &[],
            },
            Self::Node(_) => &[],
        }
    }
}

/// What rules that call scripts are evaluated with.
pub(super) struct AlarmFieldEvaluation {
    rules: Arc<AlarmRuleSet>,
    state: AlarmRuleState,
    is_new: bool,
    trigger: AlarmTrigger,
    values: AlarmInputValues,
    msg: RuleMessage,
    destination: AlarmDestination,
}

impl AlarmFieldEvaluation {
    /// Evaluates the rules, on the thread that runs scripts.
    pub(super) fn evaluate(&mut self, scripts: &mut FieldScriptRunner<'_>, now: i64) -> AlarmRuleOutcome {
        let (changes, removed) = self.trigger.input_changes(&self.rules);
        let Some(event) = self.trigger.event(&changes, &removed) else {
            return AlarmRuleOutcome::default();
        };
        let seen = WorkerAlarmValues {
            gathered: &self.values,
            scripts: Some((self.destination.scripts(), RefCell::new(scripts))),
        };
        evaluate(&self.rules, &mut self.state, &event, &seen, now)
    }

    /// About as many bytes as the scripts are given.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes()
    }

    /// Does what the rules have said.
    pub(super) async fn finish(
        self,
        key: StateKey,
        outcome: AlarmRuleOutcome,
        cx: &mut WalkContext<'_>,
    ) -> Result<(), IngestShutdown> {
        if !self.is_new && cx.worker.local.keyed_states.peek(&key).is_none() {
            // The entity or the partition has gone meanwhile.
            return Ok(());
        }
        let apply = ApplyAlarmOutcome {
            key: &key,
            rules: &self.rules,
            msg: &self.msg,
            destination: &self.destination,
            values: &self.values,
            is_new: self.is_new,
            is_timer: matches!(self.trigger, AlarmTrigger::Timer),
        };
        apply.run(self.state, outcome, cx).await
    }
}

/// The alarm rules of the originator's profile are evaluated for a message, which goes on through `Success`.
pub(super) struct EvaluateProfileRules {
    pub(super) msg: RuleMessage,
    /// The node that keeps the rules.
    pub(super) place: NodeRef,
}

impl EvaluateProfileRules {
    pub(super) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let Self { mut msg, place } = self;
        let subject = msg.subject();
        let Some((originator, rules)) = cx.profile_rules(subject).await? else {
            cx.push(WalkTask::Leave(msg, place, ConnectionLabel::SUCCESS));
            return Ok(());
        };
        if !cx.worker.local.owns(subject) {
            let result = NodeResult::forward_to_owner(msg);
            cx.push(WalkTask::Result(result, Some(place), subject.tenant));
            return Ok(());
        }
        let Some(trigger) = alarm_trigger_of(&mut msg) else {
            cx.push(WalkTask::Leave(msg, place, ConnectionLabel::SUCCESS));
            return Ok(());
        };
        let key = StateKey {
            subject,
            owner: place.node().map_or(Uuid::nil(), |node| node.id.0),
            number: 0,
        };
        // It goes on after the messages about its alarms.
        cx.push(WalkTask::Leave(
            msg.clone(),
            place.clone(),
            ConnectionLabel::SUCCESS,
        ));
        let command = EvaluateAlarmRules {
            key,
            rules: &rules,
            originator: &originator,
            trigger,
            msg: &msg,
            destination: &AlarmDestination::Node(place),
        };
        command.run(cx).await
    }
}

/// The same rules are evaluated because time has passed.
pub(super) struct FireProfileRuleTimer {
    pub(super) key: StateKey,
    pub(super) value: Bytes,
    pub(super) place: NodeRef,
}

impl FireProfileRuleTimer {
    pub(super) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let Self { key, value, place } = self;
        cx.worker.local.set_state(key.clone(), None, &value);
        let Some((originator, rules)) = cx.profile_rules(key.subject).await? else {
            cx.worker.local.clear_state(&key);
            cx.end();
            return Ok(());
        };
        let msg = timer_message(cx.worker.now_ms(), &key, &value, &originator);
        let command = EvaluateAlarmRules {
            key,
            rules: &rules,
            originator: &originator,
            trigger: AlarmTrigger::Timer,
            msg: &msg,
            destination: &AlarmDestination::Node(place),
        };
        command.run(cx).await?;
        cx.end();
        Ok(())
    }
}

/// Its id follows from what was kept, so that what it raises is the same when it comes once more after a crash.
fn timer_message(now: i64, key: &StateKey, value: &[u8], originator: &Originator) -> RuleMessage {
    let subject = key.subject;
    let metadata: MetadataMap = [
        ("deviceName", originator.name.to_string()),
        ("deviceType", originator.profile_name.to_string()),
    ]
    .into_iter()
    .collect();
    let message = QueueMessage {
        id: derive_id(subject.entity.id, kept_hash(key, value)),
        customer: originator.customer,
        ..QueueMessage::new(
            MsgType::Custom("TIMER".into()),
            subject.entity,
            now,
            metadata,
            "{}".to_owned(),
        )
    };
    RuleMessage::of(subject.tenant, message)
}

/// Rules are evaluated because of what a message says.
pub(super) struct EvaluateAlarmRules<'a> {
    /// What the rules keep of the entity.
    pub(super) key: StateKey,
    pub(super) rules: &'a Arc<AlarmRuleSet>,
    pub(super) originator: &'a Originator,
    pub(super) trigger: AlarmTrigger,
    pub(super) msg: &'a RuleMessage,
    pub(super) destination: &'a AlarmDestination,
}

impl EvaluateAlarmRules<'_> {
    pub(super) async fn run(self, cx: &mut WalkContext<'_>) -> Result<(), IngestShutdown> {
        let Self {
            key,
            rules,
            originator,
            trigger,
            msg,
            destination,
        } = self;
        let (changes, removed) = trigger.input_changes(rules);
        let Some(event) = trigger.event(&changes, &removed) else {
            return Ok(());
        };
        let now = cx.worker.now_ms();
        let kept = cx.worker.local.keyed_states.peek(&key);
        let kept = kept.and_then(|bytes| AlarmRuleState::decode(bytes).ok());
        let is_new = kept.is_none();
        let mut state = kept.unwrap_or_else(|| AlarmRuleState::new(rules, now));
        if !state.is_resolved(rules) {
            cx.resolve(&mut state, rules, key.subject).await?;
        }
        let values = match &event {
            AlarmRuleEvent::Update(changes) if state.is_covered(rules, changes) => match destination {
                // Nobody is shown them.
                AlarmDestination::Node(_) => AlarmInputValues(Vec::new()),
                AlarmDestination::Chain(_) => AlarmInputValues::brought_by(changes, rules.inputs().len()),
            },
            _ => {
                cx.apply_pending().await?;
                cx.gather(rules, key.subject, originator).await?
            }
        };
        if let AlarmDestination::Chain(entry) = destination
            && !destination.scripts().is_empty()
        {
            let call = FieldScriptCall {
                handle: cx.handle,
                key,
                entry: entry.clone(),
            };
            drop((changes, removed));
            let case = AlarmFieldEvaluation {
                rules: rules.clone(),
                state,
                is_new,
                trigger,
                values,
                msg: msg.clone(),
                destination: destination.clone(),
            };
            return cx.call_field(call, FieldEvaluation::Alarms(case)).await;
        }
        let seen = WorkerAlarmValues {
            gathered: &values,
            scripts: None,
        };
        let outcome = evaluate(rules, &mut state, &event, &seen, now);
        let apply = ApplyAlarmOutcome {
            key: &key,
            rules,
            msg,
            destination,
            values: &values,
            is_new,
            is_timer: matches!(trigger, AlarmTrigger::Timer),
        };
        apply.run(state, outcome, cx).await
    }
}

/// What rules have said is done, and their state is kept.
struct ApplyAlarmOutcome<'a> {
    key: &'a StateKey,
    rules: &'a AlarmRuleSet,
    msg: &'a RuleMessage,
    destination: &'a AlarmDestination,
    values: &'a AlarmInputValues,
    /// There was no state before.
    is_new: bool,
    /// They were evaluated because time has passed.
    is_timer: bool,
}

impl ApplyAlarmOutcome<'_> {
    async fn run(
        self,
        mut state: AlarmRuleState,
        outcome: AlarmRuleOutcome,
        cx: &mut WalkContext<'_>,
    ) -> Result<(), IngestShutdown> {
        match self.destination {
            AlarmDestination::Chain(entry) => self.show(entry, &outcome, cx),
            AlarmDestination::Node(_) => {
                if let Some(error) = &outcome.error {
                    let subject = self.key.subject;
                    let events = &cx.worker.shared.events;
                    events.error(subject.tenant, subject.entity, "alarm rules", &error.message);
                }
            }
        }
        for (number, action) in (1..).zip(&outcome.actions) {
            if let Some(notice) = self.act(number, action, &mut state, cx).await? {
                self.send_notice(action, notice, cx);
            }
        }
        let is_acted = outcome.changed || self.is_new || !outcome.actions.is_empty();
        if is_acted || outcome.next_check.is_some() || self.is_timer {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            let local = &mut cx.worker.local;
            if is_acted {
                local.set_state(self.key.clone(), outcome.next_check, &bytes);
            } else {
                local.keyed_states.schedule(self.key, outcome.next_check, &bytes);
            }
        }
        Ok(())
    }

    /// Shows people who look for mistakes what an evaluation of a field's rules came to.
    fn show(&self, entry: &RegisteredField, outcome: &AlarmRuleOutcome, cx: &WalkContext<'_>) {
        let (now, subject) = (cx.worker.now_ms(), self.key.subject);
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
        let arguments: serde_json::Map<String, serde_json::Value> = self
            .rules
            .inputs()
            .iter()
            .zip(&self.values.0)
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
        let event = FieldEvent {
            subject,
            change: FieldEventKind::Moved,
            msg: self.msg.id,
            kind: self.msg.kind.name().into(),
            previous: Arc::default(),
        };
        let shown = FieldDebugEvent {
            arguments: Some(serde_json::Value::Object(arguments).to_string()),
            result: (!actions.is_empty()).then(|| actions.join(", ")),
            error: outcome.error.as_ref().map(|error| error.message.clone()),
        };
        cx.show_field(entry, subject.entity, &event, shown);
    }
}

impl WalkContext<'_> {
    /// The originator of that id, and the alarm rules of its profile, where both are there.
    async fn profile_rules(
        &mut self,
        subject: EntityKey,
    ) -> Result<Option<(Arc<Originator>, Arc<AlarmRuleSet>)>, IngestShutdown> {
        let Some(originator) = self.find(subject).await? else {
            return Ok(None);
        };
        let rules = originator
            .profile
            .as_ref()
            .and_then(|profile| profile.alarm_rules())
            .cloned();
        Ok(rules.map(|rules| (originator, rules)))
    }
}
