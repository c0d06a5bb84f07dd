//! Alarm rules on a worker: values are gathered, rules evaluated, and what they say is done with alarms.

mod actions;
mod trigger;
mod values;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_alarm_rules::{
    AlarmRuleEvent, AlarmRuleOutcome, AlarmRuleSet, AlarmRuleState, RuleSetForm, evaluate,
};
use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::StateKey;
use fieldline_model::EntityKey;
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_script::Script;
use uuid::Uuid;

use self::actions::AlarmActionContext;
pub(super) use self::trigger::AlarmTrigger;
use self::trigger::alarm_trigger_of;
use self::values::{AlarmInputValues, WorkerAlarmValues};
use super::RuleWorker;
use super::batch::kept_hash;
use super::field_calls::{FieldEvaluation, FieldScriptCall, FieldScriptRunner};
use super::fields::FieldDebugEvent;
use super::walk::{MessageHandle, NodeRef, WalkTask};
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

/// What a state was before it was evaluated, and why it was.
#[derive(Clone, Copy)]
struct EvaluationFlags {
    is_new: bool,
    is_timer: bool,
}

/// What rules that call scripts are evaluated with.
pub(super) struct AlarmFieldEvaluation {
    rules: Arc<AlarmRuleSet>,
    state: AlarmRuleState,
    is_new: bool,
    trigger: AlarmTrigger,
    values: AlarmInputValues,
    msg: RuleMessage,
    out: AlarmDestination,
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
            scripts: Some((self.out.scripts(), RefCell::new(scripts))),
        };
        evaluate(&self.rules, &mut self.state, &event, &seen, now)
    }

    /// About as many bytes as the scripts are given.
    pub(super) fn bytes(&self) -> usize {
        self.values.bytes()
    }
}

impl RuleWorker {
    /// Evaluates the alarm rules of the originator's profile for a message, which goes on through `Success`.
    pub(super) async fn profile_rules(
        &mut self,
        ticket: MessageHandle,
        mut msg: RuleMessage,
        place: NodeRef,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let subject = msg.subject();
        let originator = self.find(subject, store).await?;
        let rules = originator
            .as_ref()
            .and_then(|found| found.profile.as_ref()?.alarm_rules())
            .cloned();
        let (Some(originator), Some(rules)) = (originator, rules) else {
            moves.push(WalkTask::Leave(msg, place, ConnectionLabel::SUCCESS));
            return Ok(());
        };
        if !self.state.owns(subject) {
            moves.push(WalkTask::Answer(
                NodeResult::Home(msg),
                Some(place),
                subject.tenant,
            ));
            return Ok(());
        }
        let Some(told) = alarm_trigger_of(&mut msg) else {
            moves.push(WalkTask::Leave(msg, place, ConnectionLabel::SUCCESS));
            return Ok(());
        };
        let key = StateKey {
            subject,
            owner: place.node().map_or(Uuid::nil(), |node| node.id.0),
            number: 0,
        };
        // It goes on after the messages about its alarms.
        moves.push(WalkTask::Leave(
            msg.clone(),
            place.clone(),
            ConnectionLabel::SUCCESS,
        ));
        self.evaluate_alarms(
            ticket,
            key,
            &rules,
            &originator,
            (told, &msg),
            &AlarmDestination::Node(place),
            store,
            moves,
        )
        .await
    }

    /// Evaluates the same rules because time has passed.
    pub(super) async fn profile_rules_due(
        &mut self,
        ticket: MessageHandle,
        key: StateKey,
        value: Bytes,
        place: NodeRef,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        self.state.set_state(key.clone(), None, &value);
        let originator = self.find(key.subject, store).await?;
        let rules = originator
            .as_ref()
            .and_then(|found| found.profile.as_ref()?.alarm_rules())
            .cloned();
        let (Some(originator), Some(rules)) = (originator, rules) else {
            self.state.clear_state(&key);
            self.end(ticket, None);
            return Ok(());
        };
        let msg = self.timer_message(&key, &value, &originator);
        self.evaluate_alarms(
            ticket,
            key,
            &rules,
            &originator,
            (AlarmTrigger::Timer, &msg),
            &AlarmDestination::Node(place),
            store,
            moves,
        )
        .await?;
        self.end(ticket, None);
        Ok(())
    }

    /// Its id follows from what was kept, so that what it raises is the same when it comes once more after a crash.
    fn timer_message(&self, key: &StateKey, value: &[u8], originator: &Originator) -> RuleMessage {
        let (now, subject) = (self.now_ms(), key.subject);
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

    /// Evaluates rules because of what a message says, and does what comes of it.
    #[allow(
        clippy::too_many_arguments,
        reason = "they are one call's inputs, and none belongs to another"
    )]
    pub(super) async fn evaluate_alarms(
        &mut self,
        ticket: MessageHandle,
        key: StateKey,
        rules: &Arc<AlarmRuleSet>,
        originator: &Arc<Originator>,
        (told, msg): (AlarmTrigger, &RuleMessage),
        out: &AlarmDestination,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let (changes, removed) = told.input_changes(rules);
        let Some(event) = told.event(&changes, &removed) else {
            return Ok(());
        };
        let now = self.now_ms();
        let kept = self
            .state
            .states
            .peek(&key)
            .and_then(|bytes| AlarmRuleState::decode(bytes).ok());
        let is_new = kept.is_none();
        let mut state = kept.unwrap_or_else(|| AlarmRuleState::new(rules, now));
        if !state.is_resolved(rules) {
            self.resolve(&mut state, rules, key.subject, store).await?;
        }
        let covered = match &event {
            // Fields drop what comes later than what is stored, and have to see it.
            AlarmRuleEvent::Update(changes) => {
                rules.form() == RuleSetForm::DeviceProfile && rules.inputs().len() <= changes.len()
            }
            _ => false,
        };
        let values = if covered {
            AlarmInputValues(Vec::new())
        } else {
            self.apply_pending(ticket.partition, store).await?;
            self.gather(rules, key.subject, originator, store).await?
        };
        let is_timer = matches!(told, AlarmTrigger::Timer);
        if !out.scripts().is_empty()
            && let AlarmDestination::Chain(entry) = out
        {
            let call = FieldScriptCall {
                handle: ticket,
                key,
                entry: entry.clone(),
            };
            drop((changes, removed));
            let case = AlarmFieldEvaluation {
                rules: rules.clone(),
                state,
                is_new,
                trigger: told,
                values,
                msg: msg.clone(),
                out: out.clone(),
            };
            return self
                .call_field(call, FieldEvaluation::Alarms(case), store, moves)
                .await;
        }
        let seen = WorkerAlarmValues {
            gathered: &values,
            scripts: None,
        };
        let outcome = evaluate(rules, &mut state, &event, &seen, now);
        let case = AlarmActionContext {
            handle: ticket,
            key: &key,
            rules,
            msg,
            out,
        };
        let about = EvaluationFlags { is_new, is_timer };
        self.finish_rules(&case, (state, about), &values, outcome, store, moves)
            .await
    }

    /// Does what rules have said that call scripts.
    pub(super) async fn finish_alarms(
        &mut self,
        ticket: MessageHandle,
        key: StateKey,
        case: AlarmFieldEvaluation,
        outcome: AlarmRuleOutcome,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        if !case.is_new && self.state.states.peek(&key).is_none() {
            // The entity or the partition has gone meanwhile.
            return Ok(());
        }
        let case_of = AlarmActionContext {
            handle: ticket,
            key: &key,
            rules: &case.rules,
            msg: &case.msg,
            out: &case.out,
        };
        let about = EvaluationFlags {
            is_new: case.is_new,
            is_timer: matches!(case.trigger, AlarmTrigger::Timer),
        };
        self.finish_rules(&case_of, (case.state, about), &case.values, outcome, store, moves)
            .await
    }

    /// Does what rules have said, and keeps their state.
    async fn finish_rules(
        &mut self,
        case: &AlarmActionContext<'_>,
        (mut state, about): (AlarmRuleState, EvaluationFlags),
        values: &AlarmInputValues,
        outcome: AlarmRuleOutcome,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<(), IngestShutdown> {
        let subject = case.key.subject;
        match case.out {
            AlarmDestination::Chain(entry) => {
                self.show_alarm_field(entry, case.rules, values, subject, case.msg, &outcome);
            }
            AlarmDestination::Node(_) => {
                if let Some(error) = &outcome.error {
                    self.shared
                        .events
                        .error(subject.tenant, subject.entity, "alarm rules", &error.message);
                }
            }
        }
        for (number, action) in (1..).zip(&outcome.actions) {
            if let Some(done) = self.act(case, (number, action), &mut state, store).await? {
                self.send_alarm_message(case, action, done, moves);
            }
        }
        if outcome.changed || about.is_new || !outcome.actions.is_empty() {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            self.state.set_state(case.key.clone(), outcome.next_check, &bytes);
        } else if outcome.next_check.is_some() || about.is_timer {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            self.state.states.schedule(case.key, outcome.next_check, &bytes);
        }
        Ok(())
    }

    /// Shows people who look for mistakes what an evaluation of a field's rules came to.
    fn show_alarm_field(
        &self,
        entry: &RegisteredField,
        rules: &AlarmRuleSet,
        values: &AlarmInputValues,
        subject: EntityKey,
        msg: &RuleMessage,
        outcome: &AlarmRuleOutcome,
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
            .inputs()
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
        let news = FieldEvent {
            subject,
            change: FieldEventKind::Moved,
            msg: msg.id,
            kind: msg.kind.name().into(),
            previous: Arc::default(),
        };
        let shown = FieldDebugEvent {
            arguments: Some(serde_json::Value::Object(arguments).to_string()),
            result: (!actions.is_empty()).then(|| actions.join(", ")),
            error: outcome.error.as_ref().map(|error| error.message.clone()),
        };
        self.show_field(entry, subject.entity, &news, shown);
    }
}
