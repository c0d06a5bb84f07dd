//! What waits: it is polled once in place, and comes back through the inbox when it is not ready.

use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fieldline_core::ingest::IngestShutdown;
use fieldline_model::{RuleNodeId, TenantId};
use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::divert::TENANT_SUSPENDED;
use super::field_calls::FieldCallResult;
use super::rounds::MAX_SUSPENDED;
use super::suspended::{WaitCanceller, WaitKind};
use super::walk::{DETACHED, MessageHandle, NodeRef, WalkContext, WalkTask};
use crate::engine::QueueRole;
use crate::message::RuleMessage;
use crate::node::{NodeError, NodeFuture, NodeResult, ScriptCall};
use crate::script_pool::{ScriptCaller, ScriptCancelScope, ScriptRefusal};

/// How often it is looked at whether there is room again.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Why a message that would have to wait cannot.
pub(super) const TOO_MANY_WAITING_ERROR: &str = "too many messages of the tenant wait for something";

/// What was suspended and has come back.
pub(super) struct WaitCompletion {
    pub(super) handle: MessageHandle,
    /// What it has among the suspended waits.
    pub(super) number: u64,
    pub(super) result: WaitResult,
    pub(super) place: Option<NodeRef>,
    pub(super) tenant: TenantId,
}

/// How it has come back.
#[expect(
    clippy::large_enum_variant,
    reason = "almost all are steps, and a box would be an allocation for each"
)]
pub(super) enum WaitResult {
    /// With what follows.
    Step(NodeResult),
    /// It has panicked.
    Panicked,
    /// The call of a script has taken the message with it.
    Lost(ScriptRefusal),
    /// The scripts of a calculated field have been run.
    Field(Box<FieldCallResult>),
}

impl WalkContext<'_> {
    /// Goes on with what was suspended.
    pub(super) async fn go_on(
        &mut self,
        result: WaitResult,
        place: Option<NodeRef>,
        tenant: TenantId,
    ) -> Result<(), IngestShutdown> {
        match result {
            WaitResult::Step(step) => self.walk([WalkTask::Result(step, place, tenant)]).await,
            WaitResult::Panicked | WaitResult::Lost(ScriptRefusal::Panicked) => {
                self.handle_panic(place.as_ref(), tenant);
                Ok(())
            }
            WaitResult::Lost(refusal) => {
                self.fail_lost(place.as_ref(), tenant, &refusal);
                Ok(())
            }
            WaitResult::Field(back) => self.worker.finish_field_call(*back, self.writer).await,
        }
    }

    /// A node has panicked.
    pub(super) fn handle_panic(&mut self, place: Option<&NodeRef>, tenant: TenantId) {
        let error = "the rule node has panicked";
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?))) {
            tracing::error!(chain = %place.chain.name, node = %node.name, error);
            self.worker
                .shared
                .events
                .error(tenant, node.id.into(), "onMsg", error);
            self.worker.note_failure(place, error);
        }
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.fail(place, error);
    }

    /// A message fails as a whole: nothing of it is left that could go on through `Failure`.
    fn fail_lost(&mut self, place: Option<&NodeRef>, tenant: TenantId, refusal: &ScriptRefusal) {
        let error = refusal.to_string();
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?))) {
            self.worker
                .shared
                .events
                .error(tenant, node.id.into(), "script", &error);
            self.worker.note_failure(place, &error);
        }
        self.fail(place, &error);
    }

    /// Whether as many wait as may, of all or, where there are others, of a tenant.
    fn is_full(&self, tenant: TenantId) -> bool {
        let (suspended, role) = (&self.worker.messages.suspended, &self.worker.queue.role);
        if suspended.is_crowded {
            return false;
        }
        if suspended.len().saturating_sub(suspended.ready.len()) >= MAX_SUSPENDED {
            return true;
        }
        if role.is_own() || suspended.of(tenant) < TENANT_SUSPENDED {
            return false;
        }
        let of_tenant = suspended.ready.iter().filter(|ready| ready.tenant == tenant);
        let ready = of_tenant.count();
        let is_alone = !role.is_lane() && self.worker.shares.is_alone();
        !is_alone && suspended.of(tenant).saturating_sub(ready) >= TENANT_SUSPENDED
    }

    /// For how long a message may keep the worker from all others; `None` where there are no others.
    fn wait_limit(&self) -> Option<Duration> {
        let worker = &*self.worker;
        match &worker.queue.role {
            QueueRole::Own => None,
            QueueRole::Lane(lanes) => Some(lanes.options.timeout.0),
            QueueRole::Shared(lanes)
                if worker.messages.may_divert(self.handle) && !worker.shares.is_alone() =>
            {
                Some(lanes.options.patience.0)
            }
            QueueRole::Shared(_) => Some(worker.queue.strategy.read().timeout),
        }
    }

    /// Sends a message to the same node in the partition of its originator.
    pub(super) fn forward_to_owner(&self, msg: RuleMessage, place: &NodeRef) -> NodeFuture {
        let services = self.worker.shared.services.clone();
        let node = place.node().map_or(RuleNodeId::NULL, |node| node.id);
        let worker = &*self.worker;
        // A message of a lane goes home to the queue that it was diverted from.
        let home = worker.lane.name(self.handle.home).unwrap_or(&worker.queue.name);
        let (chain, queue) = (place.chain.id, home.clone());
        Box::pin(async move {
            let mut message = msg.to_message();
            message.rule_chain = Some(chain);
            message.from = Some((node, String::new()));
            message.queue = Some(queue.to_string());
            match services.engine.push(msg.tenant, message).await {
                Ok(()) => NodeResult::Done,
                Err(error) => NodeResult::Fail(msg, NodeError::from(error)),
            }
        })
    }

    /// Has a script called on a message; what comes of it comes back through the inbox, except in a replay.
    pub(super) async fn call(
        &mut self,
        call: ScriptCall,
        place: NodeRef,
        tenant: TenantId,
    ) -> Result<Option<NodeResult>, IngestShutdown> {
        let handle = self.handle;
        let node = place.node().map_or(RuleNodeId::NULL, |node| node.id);
        let caller = ScriptCaller {
            tenant,
            owner: node.into(),
            order_key: call.msg.originator.id,
            scope: if handle.generation == DETACHED {
                ScriptCancelScope::NONE
            } else {
                ScriptCancelScope::fresh()
            },
        };
        let pool = self.worker.shared.services.scripts.clone();
        if self.worker.node_activity.is_some() {
            return match call.wait(&pool, caller).await {
                Ok(step) => Ok(Some(step)),
                Err(ScriptRefusal::Stopped) => Err(IngestShutdown),
                Err(refusal) => {
                    self.fail_lost(Some(&place), tenant, &refusal);
                    Ok(None)
                }
            };
        }
        if !self.make_room(tenant).await? {
            self.cancel(tenant, TOO_MANY_WAITING_ERROR);
            return Ok(None);
        }
        let outbox = self.worker.messages.suspended.outbox.clone();
        let ending = WaitCanceller::Script(pool.clone(), caller.scope, tenant);
        self.worker
            .messages
            .suspended
            .add(handle, tenant, WaitKind::Repeatable, |number| {
                call.submit(&pool, caller, move |result| {
                    let back = result.map_or_else(WaitResult::Lost, WaitResult::Step);
                    // The worker may be gone.
                    let _ = outbox.send(WaitCompletion {
                        handle,
                        number,
                        result: back,
                        place: Some(place),
                        tenant,
                    });
                });
                ending
            });
        Ok(None)
    }

    /// Polls work once where it is; what is not ready goes on elsewhere and comes back through the inbox.
    pub(super) async fn wait(
        &mut self,
        mut work: NodeFuture,
        kind: WaitKind,
        place: Option<NodeRef>,
        tenant: TenantId,
    ) -> Result<Option<NodeResult>, IngestShutdown> {
        let handle = self.handle;
        // What it reads is to be what the message has written so far.
        self.apply_pending().await?;
        if !self.make_room(tenant).await? {
            self.cancel(tenant, TOO_MANY_WAITING_ERROR);
            return Ok(None);
        }
        let runtime = self.worker.shared.services.runtime.clone();
        match poll_here(&runtime, &mut work) {
            Ok(Poll::Ready(step)) => Ok(Some(step)),
            Ok(Poll::Pending) if self.worker.node_activity.is_some() => {
                let done = runtime.spawn(AssertUnwindSafe(work).catch_unwind()).await;
                let step = done.ok().and_then(Result::ok);
                if step.is_none() {
                    self.handle_panic(place.as_ref(), tenant);
                }
                Ok(step)
            }
            Ok(Poll::Pending) => {
                let outbox = self.worker.messages.suspended.outbox.clone();
                self.worker
                    .messages
                    .suspended
                    .add(handle, tenant, kind, |number| {
                        let waits = runtime.spawn(async move {
                            let step = AssertUnwindSafe(work).catch_unwind().await;
                            // The worker may be gone.
                            let _ = outbox.send(WaitCompletion {
                                handle,
                                number,
                                result: step.map_or(WaitResult::Panicked, WaitResult::Step),
                                place,
                                tenant,
                            });
                        });
                        WaitCanceller::Task(waits.abort_handle())
                    });
                Ok(None)
            }
            Err(_) => {
                self.handle_panic(place.as_ref(), tenant);
                Ok(None)
            }
        }
    }

    /// Waits until one more may wait: a single message may become thousands that do. What has come back meanwhile goes on
    /// later. Returns false where others would have to wait for too long for that.
    async fn make_room(&mut self, tenant: TenantId) -> Result<bool, IngestShutdown> {
        if !self.is_full(tenant) {
            return Ok(true);
        }
        let limit = self.wait_limit().map(|limit| Instant::now() + limit);
        while self.is_full(tenant) {
            let left = limit.map(|limit| limit.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            tokio::select! {
                resumed = self.worker.messages.suspended.inbox.recv() => self.worker.messages.suspended.ready.extend(resumed),
                paused = self.writer.pause_for(left.map_or(ROOM_CHECK_INTERVAL, |left| left.min(ROOM_CHECK_INTERVAL))) => {
                    paused?;
                    // Nothing moves: what has come back may hold what all the others wait for, such as the turn of a
                    // device. Rather more wait than all for ever.
                    self.worker.messages.suspended.is_crowded = !self.worker.messages.suspended.ready.is_empty();
                }
            }
        }
        Ok(true)
    }

    /// Waits in place, so that nothing overtakes the work. `None` where it has panicked, or took longer than others can wait:
    /// then the message is dealt with.
    pub(super) async fn wait_in_order(
        &mut self,
        mut work: NodeFuture,
        place: Option<&NodeRef>,
        tenant: TenantId,
    ) -> Result<Option<NodeResult>, IngestShutdown> {
        self.apply_pending().await?;
        let runtime = self.worker.shared.services.runtime.clone();
        let step = match poll_here(&runtime, &mut work) {
            Ok(Poll::Ready(step)) => Some(step),
            Ok(Poll::Pending) => {
                let mut works = runtime.spawn(work);
                match self.wait_limit() {
                    None => works.await.ok(),
                    Some(limit) => match tokio::time::timeout(limit, &mut works).await {
                        Ok(done) => done.ok(),
                        Err(_) => {
                            works.abort();
                            self.cancel(tenant, "what the message waits for takes too long");
                            return Ok(None);
                        }
                    },
                }
            }
            Err(_) => None,
        };
        if step.is_none() {
            self.handle_panic(place, tenant);
        }
        Ok(step)
    }
}

/// Polls work once; the error says that it has panicked.
fn poll_here(runtime: &Handle, work: &mut NodeFuture) -> std::thread::Result<Poll<NodeResult>> {
    let _context = runtime.enter();
    let mut context = Context::from_waker(Waker::noop());
    std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut context)))
}
