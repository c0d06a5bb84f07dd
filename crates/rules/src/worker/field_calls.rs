//! Calculated fields and alarm rules whose scripts are run elsewhere: while one is, what else is told to it waits in its
//! order, and the worker goes on with the rest.

use std::collections::VecDeque;
use std::sync::Arc;

use fieldline_alarm_rules::AlarmRuleOutcome;
use fieldline_calculated_fields::{
    CalculatedFieldState, CompiledField, FieldEvaluationError, FieldOutcome, ScriptRunner,
};
use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::StateKey;
use fieldline_core::usage::{ApiFeature, UsageKey};
use fieldline_model::{CalculatedFieldId, EntityKey, TenantId};
use fieldline_script::{Script, ScriptArg, ScriptHost};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::RuleWorker;
use super::alarms::AlarmFieldEvaluation;
use super::field_values::EvaluateValueField;
use super::fields::{DeliverFieldEvents, EvaluateField};
use super::suspended::{WaitCanceller, WaitKind};
use super::waits::{WaitCompletion, WaitResult};
use super::walk::{MessageHandle, WalkContext, WalkTask, run_catching_panic};
use crate::fields::{FieldEvent, RegisteredField};
use crate::nodes::script::SCRIPTS_DISABLED;
use crate::originators::Originator;
use crate::script_pool::{ScriptCaller, ScriptCancelScope, ScriptRefusal};

/// When a field whose scripts were refused is looked at again, milliseconds.
const RETRY_MS: i64 = 60_000;
/// Events that may wait for the scripts of fields in a worker, and those of one tenant.
const MAX_DEFERRED_EVENTS: usize = 16_384;
const MAX_DEFERRED_EVENTS_PER_TENANT: usize = 1024;

/// An event that waits until the script of a field has ended.
struct DeferredFieldEvent {
    handle: MessageHandle,
    entry: CalculatedFieldId,
    subject: EntityKey,
    originator: Arc<Originator>,
    event: FieldEvent,
}

/// Fields of entities whose scripts run, with what waits for each.
#[derive(Default)]
pub(super) struct RunningFieldScripts {
    running: FxHashMap<StateKey, VecDeque<DeferredFieldEvent>>,
    /// Events that wait.
    waiting: usize,
    /// Those of each tenant.
    tenants: FxHashMap<TenantId, usize>,
}

impl RunningFieldScripts {
    /// Whether a script of a field runs for an entity.
    pub(super) fn is_running(&self, key: &StateKey) -> bool {
        self.running.contains_key(key)
    }

    /// Whether no more events of a tenant may wait.
    fn is_full(&self, tenant: TenantId) -> bool {
        self.waiting >= MAX_DEFERRED_EVENTS
            || self
                .tenants
                .get(&tenant)
                .is_some_and(|waiting| *waiting >= MAX_DEFERRED_EVENTS_PER_TENANT)
    }

    fn push(&mut self, key: &StateKey, deferred: DeferredFieldEvent) {
        if let Some(waiting) = self.running.get_mut(key) {
            waiting.push_back(deferred);
            self.waiting += 1;
            *self.tenants.entry(key.subject.tenant).or_default() += 1;
        }
    }

    /// One of the events does not wait any longer.
    fn settle(&mut self, tenant: TenantId) {
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(waiting) = self.tenants.get_mut(&tenant) {
            *waiting -= 1;
            if *waiting == 0 {
                self.tenants.remove(&tenant);
            }
        }
    }
}

/// A call of a field's scripts.
#[derive(Clone)]
pub(super) struct FieldScriptCall {
    pub(super) handle: MessageHandle,
    pub(super) key: StateKey,
    pub(super) entry: Arc<RegisteredField>,
}

/// What a field of values is evaluated with.
pub(super) struct ValueFieldEvaluation {
    pub(super) field: Arc<CompiledField>,
    pub(super) state: CalculatedFieldState,
    pub(super) originator: Arc<Originator>,
    pub(super) event: FieldEvent,
}

/// What is evaluated.
pub(super) enum FieldEvaluation {
    Values(ValueFieldEvaluation),
    Alarms(AlarmFieldEvaluation),
}

/// What it has come to.
enum FieldEvaluationResult {
    Values(ValueFieldEvaluation, Result<FieldOutcome, FieldEvaluationError>),
    Alarms(AlarmFieldEvaluation, AlarmRuleOutcome),
}

/// A call that has come back.
pub(super) struct FieldCallResult {
    call: FieldScriptCall,
    /// Calls of scripts that it has made.
    calls: u64,
    result: Result<FieldEvaluationResult, ScriptRefusal>,
}

/// The scripts of a field, on the thread that runs them.
pub(super) struct FieldScriptRunner<'a> {
    pub(super) host: &'a mut ScriptHost,
    pub(super) may_call: bool,
    pub(super) calls: u64,
}

impl FieldScriptRunner<'_> {
    pub(super) fn run(
        &mut self,
        script: &Script,
        args: &[ScriptArg<'_>],
    ) -> Result<fieldline_script::ScriptOutput, String> {
        if !self.may_call {
            return Err(SCRIPTS_DISABLED.to_owned());
        }
        self.calls += 1;
        self.host.call(script, args).map_err(|error| error.to_string())
    }
}

impl ScriptRunner for FieldScriptRunner<'_> {
    fn call(&mut self, script: &Script, args: &[ScriptArg<'_>]) -> Result<serde_json::Value, String> {
        Ok(self.run(script, args)?.to_value())
    }
}

impl WalkContext<'_> {
    /// Has a field evaluated where scripts run. In a replay it is waited for.
    pub(super) async fn call_field(
        &mut self,
        call: FieldScriptCall,
        evaluation: FieldEvaluation,
    ) -> Result<(), IngestShutdown> {
        let tenant = call.key.subject.tenant;
        let worker = &mut *self.worker;
        let may_call = worker.local.meter.allows(tenant, ApiFeature::Tbel);
        let caller = ScriptCaller {
            tenant,
            owner: call.entry.id.into(),
            order_key: call.key.subject.entity.id,
            scope: ScriptCancelScope::NONE,
        };
        let (now, bytes) = (worker.now_ms(), evaluation.bytes());
        let work = move |host: &mut ScriptHost, evaluation: FieldEvaluation| {
            let mut scripts = FieldScriptRunner {
                host,
                may_call,
                calls: 0,
            };
            let evaluated = evaluate(evaluation, &mut scripts, now);
            (scripts.calls, evaluated)
        };
        let back = |call, result: Result<_, (ScriptRefusal, Option<FieldEvaluation>)>| {
            let (calls, result) = match result {
                Ok((calls, evaluated)) => (calls, Ok(evaluated)),
                Err((refusal, _)) => (0, Err(refusal)),
            };
            FieldCallResult { call, calls, result }
        };
        let pool = worker.shared.services.scripts.clone();
        if worker.node_activity.is_some() {
            let (answer, answered) = oneshot::channel();
            pool.submit(caller, bytes, evaluation, work, move |result| {
                // Whoever asked may be gone.
                let _ = answer.send(back(call, result));
            });
            return match answered.await {
                Ok(back) => self.finish_field(back).await,
                Err(_) => Err(IngestShutdown),
            };
        }
        worker.field_calls.running.entry(call.key.clone()).or_default();
        worker.messages.begin(call.handle);
        let outbox = worker.messages.suspended.outbox.clone();
        worker
            .messages
            .suspended
            .add(call.handle, tenant, WaitKind::Field, |number| {
                pool.submit(caller, bytes, evaluation, work, move |result| {
                    let resumed = WaitCompletion {
                        handle: call.handle,
                        number,
                        result: WaitResult::Field(Box::new(back(call, result))),
                        place: None,
                        tenant,
                    };
                    // The worker may be gone.
                    let _ = outbox.send(resumed);
                });
                WaitCanceller::Stays
            });
        Ok(())
    }

    /// Has an event wait for the script of the field that runs.
    pub(super) fn defer_field_event(&mut self, key: &StateKey, command: EvaluateField<'_>) {
        let (tenant, handle) = (key.subject.tenant, self.handle);
        if self.worker.field_calls.is_full(tenant) {
            let error = "too many values wait for the scripts of the tenant's fields";
            self.cancel(tenant, error);
            return;
        }
        let deferred = DeferredFieldEvent {
            handle,
            entry: command.entry.id,
            subject: key.subject,
            originator: command.originator.clone(),
            event: command.event.clone(),
        };
        self.worker.field_calls.push(key, deferred);
        self.worker
            .messages
            .suspended
            .note_waiter(handle, tenant, WaitKind::Field);
        self.begin();
    }

    /// Tells further fields of what has come of one, and ends its branch.
    async fn end_field(
        &mut self,
        done: impl AsyncFnOnce(&mut Self) -> Result<(), IngestShutdown>,
    ) -> Result<(), IngestShutdown> {
        if !run_catching_panic(done(self)).await? {
            self.abort_panicked();
            return Ok(());
        }
        // One for the event and one for the field itself.
        self.begin();
        self.push(WalkTask::NotifyFields(DeliverFieldEvents(Vec::new())));
        self.run().await?;
        self.end();
        Ok(())
    }

    async fn finish_field(&mut self, back: FieldCallResult) -> Result<(), IngestShutdown> {
        let FieldCallResult { call, calls, result } = back;
        let FieldScriptCall { key, entry, .. } = call;
        self.worker.local.record = self.open_record();
        let worker = &mut *self.worker;
        let tenant = key.subject.tenant;
        if calls > 0 {
            worker.local.meter.add(tenant, UsageKey::TbelExecutions, calls);
        }
        worker
            .local
            .field_events
            .refresh(&worker.shared, tenant, self.writer)
            .await?;
        let fields = worker.local.field_events.of(tenant);
        if fields.is_none_or(|fields| fields.get(entry.id).is_none()) {
            // It has been deleted meanwhile.
            return Ok(());
        }
        match result {
            // The entity or the partition has gone meanwhile.
            Ok(FieldEvaluationResult::Values(..)) if worker.local.keyed_states.peek(&key).is_none() => Ok(()),
            Ok(FieldEvaluationResult::Values(evaluation, outcome)) => {
                let about = EvaluateField {
                    entry: &entry,
                    subject: key.subject,
                    originator: &evaluation.originator,
                    event: &evaluation.event,
                };
                let field = EvaluateValueField {
                    about,
                    field: &evaluation.field,
                };
                field.finish(&evaluation.state, outcome, self).await
            }
            Ok(FieldEvaluationResult::Alarms(evaluation, outcome)) => {
                evaluation.finish(key, outcome, self).await
            }
            Err(refusal) => {
                metrics::counter!("fieldline_rules_field_errors_total").increment(1);
                let error = refusal.to_string();
                let events = &worker.shared.events;
                events.error(tenant, entry.id.into(), "script", &error);
                // What waits for a time is not to be forgotten for that.
                if worker.node_activity.is_none()
                    && let Some(value) = worker.local.keyed_states.get(&key)
                {
                    let again = worker.now_ms() + RETRY_MS;
                    worker.local.keyed_states.schedule(&key, Some(again), &value);
                }
                Ok(())
            }
        }
    }
}

impl RuleWorker {
    /// Goes on with a field whose scripts have come back, and with the events that have waited for that.
    pub(super) async fn finish_field_call(
        &mut self,
        back: FieldCallResult,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let (handle, key) = (self.messages.or_detached(back.call.handle), back.call.key.clone());
        let mut waiting = self.field_calls.running.remove(&key).unwrap_or_default();
        self.walk_context(handle, writer)
            .end_field(async |cx| cx.finish_field(back).await)
            .await?;
        while !self.field_calls.is_running(&key)
            && let Some(deferred) = waiting.pop_front()
        {
            self.field_calls.settle(key.subject.tenant);
            let DeferredFieldEvent {
                handle,
                entry,
                subject,
                originator,
                event,
            } = deferred;
            let handle = self.messages.or_detached(handle);
            self.local.record = self.walk_context(handle, writer).open_record();
            self.local
                .field_events
                .refresh(&self.shared, subject.tenant, writer)
                .await?;
            // It may have been edited or deleted while the event waited.
            let fields = self.local.field_events.of(subject.tenant);
            let entry = fields.and_then(|fields| fields.get(entry)).cloned();
            let evaluate = async |cx: &mut WalkContext<'_>| match &entry {
                Some(entry) => {
                    let command = EvaluateField {
                        entry,
                        subject,
                        originator: &originator,
                        event: &event,
                    };
                    command.run(cx).await
                }
                None => Ok(()),
            };
            self.walk_context(handle, writer).end_field(evaluate).await?;
        }
        if let Some(running) = self.field_calls.running.get_mut(&key) {
            // Those that came meanwhile are newer.
            let newer = std::mem::replace(running, waiting);
            running.extend(newer);
        }
        Ok(())
    }
}

impl FieldEvaluation {
    /// About as many bytes as its scripts are given.
    fn bytes(&self) -> usize {
        match self {
            Self::Values(case) => case.field.encode(&case.state).len(),
            Self::Alarms(case) => case.bytes(),
        }
    }
}

fn evaluate(case: FieldEvaluation, scripts: &mut FieldScriptRunner<'_>, now: i64) -> FieldEvaluationResult {
    match case {
        FieldEvaluation::Values(mut case) => {
            let outcome = case.field.evaluate(&mut case.state, scripts, now);
            FieldEvaluationResult::Values(case, outcome)
        }
        FieldEvaluation::Alarms(mut case) => {
            let outcome = case.evaluate(scripts, now);
            FieldEvaluationResult::Alarms(case, outcome)
        }
    }
}
