//! Alarm rules on a worker: values are gathered, rules evaluated, and what they say is done with alarms.

mod actions;
mod told;
mod values;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::StateKey;
use fieldline_model::Subject;
use fieldline_model::message::{Message, Metadata, MsgType};
use fieldline_script::Script;
use uuid::Uuid;

use self::actions::Case;
pub(super) use self::told::Told;
use self::told::told_by;
use self::values::{Evaluated, Gathered};
use super::Worker;
use super::field_calls::{FieldCall, FieldCase, FieldScripts};
use super::fields::Shown;
use super::pack::kept_hash;
use super::walk::{Move, Place, Ticket};
use crate::alarm_rules::{Event, Form, Outcome, Rules, State, evaluate};
use crate::fields::{Change, Entry, Kind, News};
use crate::message::{Msg, derive_id};
use crate::node::{Label, Step};
use crate::originators::Originator;

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

/// What a state was before it was evaluated, and why it was.
#[derive(Clone, Copy)]
struct About {
    is_new: bool,
    is_timer: bool,
}

/// What rules that call scripts are evaluated with.
pub(super) struct AlarmCase {
    rules: Arc<Rules>,
    state: State,
    is_new: bool,
    told: Told,
    values: Gathered,
    msg: Msg,
    out: Out,
}

impl AlarmCase {
    /// Evaluates the rules, on the thread that runs scripts.
    pub(super) fn evaluate(&mut self, scripts: &mut FieldScripts<'_>, now: i64) -> Outcome {
        let (changes, removed) = self.told.news(&self.rules);
        let Some(event) = self.told.event(&changes, &removed) else {
            return Outcome::default();
        };
        let seen = Evaluated {
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
        let metadata: Metadata = [
            ("deviceName", originator.name.to_string()),
            ("deviceType", originator.profile_name.to_string()),
        ]
        .into_iter()
        .collect();
        let message = Message {
            id: derive_id(subject.entity.id, kept_hash(key, value)),
            customer: originator.customer,
            ..Message::new(
                MsgType::Custom("TIMER".into()),
                subject.entity,
                now,
                metadata,
                "{}".to_owned(),
            )
        };
        Msg::of(subject.tenant, message)
    }

    /// Evaluates rules because of what a message says, and does what comes of it.
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
        let (changes, removed) = told.news(rules);
        let Some(event) = told.event(&changes, &removed) else {
            return Ok(());
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
        let is_timer = matches!(told, Told::Timer);
        if !out.scripts().is_empty()
            && let Out::Chain(entry) = out
        {
            let call = FieldCall {
                ticket,
                key,
                entry: entry.clone(),
            };
            drop((changes, removed));
            let case = AlarmCase {
                rules: rules.clone(),
                state,
                is_new,
                told,
                values,
                msg: msg.clone(),
                out: out.clone(),
            };
            return self.call_field(call, FieldCase::Alarms(case), store, moves).await;
        }
        let seen = Evaluated {
            gathered: &values,
            scripts: None,
        };
        let outcome = evaluate(rules, &mut state, &event, &seen, now);
        let case = Case {
            ticket,
            key: &key,
            rules,
            msg,
            out,
        };
        let about = About { is_new, is_timer };
        self.finish_rules(&case, (state, about), &values, outcome, store, moves)
            .await
    }

    /// Does what rules have said that call scripts.
    pub(super) async fn finish_alarms(
        &mut self,
        ticket: Ticket,
        key: StateKey,
        case: AlarmCase,
        outcome: Outcome,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        if !case.is_new && self.parts.states.peek(&key).is_none() {
            // The entity or the partition has gone meanwhile.
            return Ok(());
        }
        let case_of = Case {
            ticket,
            key: &key,
            rules: &case.rules,
            msg: &case.msg,
            out: &case.out,
        };
        let about = About {
            is_new: case.is_new,
            is_timer: matches!(case.told, Told::Timer),
        };
        self.finish_rules(&case_of, (case.state, about), &case.values, outcome, store, moves)
            .await
    }

    /// Does what rules have said, and keeps their state.
    async fn finish_rules(
        &mut self,
        case: &Case<'_>,
        (mut state, about): (State, About),
        values: &Gathered,
        outcome: Outcome,
        store: &Applier,
        moves: &mut Vec<Move>,
    ) -> Result<(), Stopping> {
        let subject = case.key.subject;
        match case.out {
            Out::Chain(entry) => {
                self.show_alarm_field(entry, case.rules, values, subject, case.msg, &outcome);
            }
            Out::Node(_) => {
                if let Some(error) = &outcome.error {
                    self.common
                        .events
                        .error(subject.tenant, subject.entity, "alarm rules", &error.message);
                }
            }
        }
        for (number, action) in (1..).zip(&outcome.actions) {
            if let Some(done) = self.act(case, (number, action), &mut state, store).await? {
                self.tell_alarm(case, action, done, moves);
            }
        }
        if outcome.changed || about.is_new || !outcome.actions.is_empty() {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            self.parts.keep(case.key.clone(), outcome.next_check, &bytes);
        } else if outcome.next_check.is_some() || about.is_timer {
            let mut bytes = Vec::new();
            state.encode(&mut bytes);
            self.parts.states.schedule(case.key, outcome.next_check, &bytes);
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
            change: Change::Moved,
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
}
