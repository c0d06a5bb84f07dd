//! Walking chains in place.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::Partition;
use fieldline_core::usage::UsageKey;
use fieldline_model::entity::{EVENT_IN, EVENT_OUT};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use futures::FutureExt as _;

use super::RuleWorker;
use super::batch::DueTimer;
use super::suspended::WaitKind;
use crate::chain::{CompiledChain, CompiledNode};
use crate::fields::FieldEvent;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, NodeContext, NodeResult};

/// Steps that a message, and all that it becomes, may take before it waits.
const MAX_STEPS: u32 = 1_000_000;
/// Tasks that the memory is kept for from one message to the next.
const MAX_KEPT_TASKS: usize = 64;

/// The batch of what is acknowledged already.
pub(super) const DETACHED: u64 = u64::MAX;

/// Which entry of which batch something belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageHandle {
    pub(super) batch: u64,
    pub(super) entry: u32,
    pub(super) partition: Partition,
    /// In a lane, the number of the queue that the message was taken from.
    pub(super) home: u16,
}

/// Where a message is.
#[derive(Clone)]
pub(super) struct NodeRef {
    pub(super) chain: Arc<CompiledChain>,
    pub(super) at: usize,
}

impl NodeRef {
    pub(super) fn node(&self) -> Option<&CompiledNode> {
        self.chain.nodes.get(self.at)
    }
}

/// What a message does next.
pub(super) enum WalkTask {
    /// It comes to a node.
    Come(RuleMessage, NodeRef),
    /// It leaves a node.
    Leave(RuleMessage, NodeRef, ConnectionLabel),
    /// A node has answered.
    Answer(NodeResult, Option<NodeRef>, TenantId),
    /// Something that a node kept has come due.
    Due(DueTimer, NodeRef),
    /// Calculated fields are told what has changed.
    Feed(Vec<FieldEvent>),
    /// A message brings news to calculated fields.
    FieldMessage(RuleMessage),
    /// Something that a calculated field kept has come due.
    FieldDue(DueTimer),
}

impl WalkTask {
    fn place(&self) -> Option<&NodeRef> {
        match self {
            Self::Come(_, place) | Self::Leave(_, place, _) | Self::Due(_, place) => Some(place),
            Self::Answer(_, place, _) => place.as_ref(),
            Self::Feed(_) | Self::FieldMessage(_) | Self::FieldDue(_) => None,
        }
    }
}

/// Whether work has ended without a panic.
async fn run_catching_panic(
    work: impl Future<Output = Result<(), IngestShutdown>>,
) -> Result<bool, IngestShutdown> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => done.map(|()| true),
        Err(_) => Ok(false),
    }
}

impl RuleWorker {
    /// Moves a message, and all that it becomes, until it ends or waits. The entry has counted it already.
    pub(super) async fn walk(
        &mut self,
        ticket: MessageHandle,
        first: WalkTask,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let mut moves = std::mem::take(&mut self.tasks);
        moves.push(first);
        self.walk_all(ticket, moves, store).await
    }

    /// The same for several tasks, the last one first.
    pub(super) async fn walk_all(
        &mut self,
        ticket: MessageHandle,
        mut moves: Vec<WalkTask>,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let mut steps = 0_u32;
        self.now = self.now_ms();
        let record = self.open_record(ticket);
        while let Some(next) = moves.pop() {
            self.state.record = record;
            steps += 1;
            if steps > MAX_STEPS {
                let error = "the message has become more than a rule chain may make of one";
                self.abort(ticket, error);
                break;
            }
            let watched = self
                .node_activity
                .as_ref()
                .and_then(|_| Some((next.place()?.clone(), Instant::now())));
            let ends = matches!(
                next,
                WalkTask::Feed(_) | WalkTask::FieldMessage(_) | WalkTask::FieldDue(_)
            );
            let moves = &mut moves;
            let survived = match next {
                WalkTask::Come(msg, place) => {
                    self.enter_node(ticket, msg, place, moves);
                    true
                }
                WalkTask::Due(due, place) => {
                    self.enter_node_due(ticket, due, place, moves);
                    true
                }
                WalkTask::Leave(msg, place, label) => {
                    self.route(ticket, msg, place, &label, None, moves);
                    true
                }
                WalkTask::Answer(step, place, tenant) => {
                    self.run_effect(ticket, step, place, tenant, store, moves).await?
                }
                WalkTask::Feed(fed) => {
                    run_catching_panic(self.notify_fields(ticket, fed, store, moves)).await?
                }
                WalkTask::FieldMessage(msg) => {
                    run_catching_panic(self.field_message(ticket, &msg, store, moves)).await?
                }
                WalkTask::FieldDue(due) => {
                    run_catching_panic(self.field_due(ticket, due, store, moves)).await?
                }
            };
            if std::mem::take(&mut self.is_walk_cancelled) {
                // It was taken away in the midst.
                break;
            }
            if !survived {
                // Nothing is known of what they had begun.
                self.abort_panicked(ticket);
                break;
            }
            if ends {
                self.end(ticket, None);
            }
            if let (Some(watch), Some((place, since))) = (&self.node_activity, watched) {
                watch.lock().add_time(&place, since.elapsed());
            }
        }
        if moves.capacity() <= MAX_KEPT_TASKS {
            moves.clear();
            self.tasks = moves;
        }
        Ok(())
    }

    /// Does what a node has answered that takes more than the node itself. Returns false where alarm rules have panicked.
    async fn run_effect(
        &mut self,
        ticket: MessageHandle,
        step: NodeResult,
        place: Option<NodeRef>,
        tenant: TenantId,
        store: &EffectWriter,
        moves: &mut Vec<WalkTask>,
    ) -> Result<bool, IngestShutdown> {
        let mut survived = true;
        match (step, place) {
            (NodeResult::Wait(work), place) => {
                let wait = (work, WaitKind::Repeatable);
                if let Some(step) = self.wait(ticket, wait, place.clone(), tenant, store).await? {
                    moves.push(WalkTask::Answer(step, place, tenant));
                }
            }
            (NodeResult::Outside(work), place) => {
                let wait = (work, WaitKind::Outside);
                if let Some(step) = self.wait(ticket, wait, place.clone(), tenant, store).await? {
                    moves.push(WalkTask::Answer(step, place, tenant));
                }
            }
            (NodeResult::InOrder(work), place) => {
                if let Some(step) = self
                    .wait_in_order(ticket, work, place.as_ref(), tenant, store)
                    .await?
                {
                    moves.push(WalkTask::Answer(step, place, tenant));
                }
            }
            (NodeResult::Call(call), Some(place)) => {
                if let Some(step) = self.call(ticket, *call, place.clone(), tenant, store).await? {
                    moves.push(WalkTask::Answer(step, Some(place), tenant));
                }
            }
            (NodeResult::Acknowledge(msg), Some(place)) => {
                let next = WalkTask::Leave(msg, place, ConnectionLabel::SUCCESS);
                if ticket.batch == DETACHED {
                    moves.push(next);
                } else {
                    self.end(ticket, None);
                    let detached = MessageHandle {
                        batch: DETACHED,
                        ..ticket
                    };
                    Box::pin(self.walk(detached, next, store)).await?;
                }
            }
            (NodeResult::Then(work), Some(place)) => {
                let node = place.node().map_or(RuleNodeId::NULL, |node| node.id);
                let mut ctx = self.ctx(tenant, place.chain.id, node);
                let step = std::panic::catch_unwind(AssertUnwindSafe(|| work(&mut ctx)));
                self.finish_node(ticket, step.ok(), place, tenant, moves);
            }
            (NodeResult::Enter(msg, chain), place) => {
                let chains = self.chains(tenant, store).await?;
                self.enter(ticket, msg, Some(chain), place, &chains, moves);
            }
            (NodeResult::EnterDefault(msg), place) => {
                let chains = self.chains(tenant, store).await?;
                let chain = self.default_chain(&msg);
                self.enter(ticket, msg, chain, place, &chains, moves);
            }
            (NodeResult::Return(msg, label), place) => {
                let chains = self.chains(tenant, store).await?;
                self.return_to_caller(ticket, msg, label, place.as_ref(), &chains, moves);
            }
            (NodeResult::AlarmRules(msg), Some(place)) => {
                survived = run_catching_panic(self.profile_rules(ticket, msg, place, store, moves)).await?;
            }
            (NodeResult::AlarmRulesDue(key, value), Some(place)) => {
                survived =
                    run_catching_panic(self.profile_rules_due(ticket, key, value, place, store, moves))
                        .await?;
            }
            (
                NodeResult::Acknowledge(_)
                | NodeResult::Call(_)
                | NodeResult::Then(_)
                | NodeResult::AlarmRules(_)
                | NodeResult::AlarmRulesDue(..),
                None,
            ) => {
                self.end(ticket, None);
            }
            (step, place) => self.handle_result(ticket, step, place, tenant, moves),
        }
        // That may have taken its time.
        self.now = self.now_ms();
        Ok(survived)
    }

    /// Number of the record that a ticket's message belongs to, where that is not done with.
    pub(super) fn open_record(&self, ticket: MessageHandle) -> Option<u64> {
        if self.node_activity.is_some() || ticket.batch == DETACHED || !self.batch.is_current(ticket) {
            return None;
        }
        if !self.queue.role.is_lane() {
            return Some(self.batch.record);
        }
        let run = self.lane.running(ticket.entry);
        run.map(|run| run.item.key.number)
    }

    fn ctx(&mut self, tenant: TenantId, chain: RuleChainId, node: RuleNodeId) -> NodeContext<'_> {
        NodeContext {
            services: &self.shared.services,
            tenant,
            chain,
            node,
            now_ms: self.now,
            worker_state: &mut self.state,
        }
    }

    fn enter_node(
        &mut self,
        ticket: MessageHandle,
        mut msg: RuleMessage,
        place: NodeRef,
        moves: &mut Vec<WalkTask>,
    ) {
        let Some(node) = place.node() else {
            self.end(ticket, None);
            return;
        };
        if let Some(watch) = &self.node_activity {
            watch.lock().count_input(&place);
        }
        msg.hops += 1;
        msg.budget.renew();
        if msg.hops > self.max_hops(msg.tenant) {
            let error = "the message has gone through more rule nodes than its tenant may use";
            self.note_failure(&place, error);
            self.fail(ticket, Some(&place), error);
            return;
        }
        if let Err(overrun) = msg.check_size() {
            let error = overrun.to_string();
            self.note_failure(&place, &error);
            self.fail(ticket, Some(&place), &error);
            return;
        }
        self.state
            .meter
            .add(msg.tenant, UsageKey::RuleEngineExecutions, 1);
        if node.debug.is_on() && self.now < node.debug.all_until {
            self.shared
                .events
                .node(EVENT_IN, place.chain.id.into(), node.id.into(), &msg, None, None);
        }
        let tenant = msg.tenant;
        let runs = match &node.node {
            Ok(runs) => runs,
            Err(error) => {
                let error = format!("Rule node is not active! {error}");
                if node.debug.is_on() {
                    let (chain, id) = (place.chain.id.into(), node.id.into());
                    self.shared
                        .events
                        .node(EVENT_OUT, chain, id, &msg, Some("Failure"), Some(&error));
                }
                self.note_failure(&place, &error);
                self.fail(ticket, Some(&place), &error);
                return;
            }
        };
        let mut ctx = self.ctx(tenant, place.chain.id, node.id);
        let step = std::panic::catch_unwind(AssertUnwindSafe(|| runs.handle(&mut ctx, msg)));
        self.finish_node(ticket, step.ok(), place, tenant, moves);
    }

    fn enter_node_due(
        &mut self,
        ticket: MessageHandle,
        due: DueTimer,
        place: NodeRef,
        moves: &mut Vec<WalkTask>,
    ) {
        let tenant = due.key.subject.tenant;
        let Some(node) = place.node() else {
            self.end(ticket, None);
            return;
        };
        let Ok(runs) = &node.node else {
            self.fail(ticket, Some(&place), "Rule node is not active!");
            return;
        };
        let mut ctx = self.ctx(tenant, place.chain.id, node.id);
        let step =
            std::panic::catch_unwind(AssertUnwindSafe(|| runs.handle_due(&mut ctx, due.key, due.value)));
        self.finish_node(ticket, step.ok(), place, tenant, moves);
    }

    /// Goes on after a node was called.
    fn finish_node(
        &mut self,
        ticket: MessageHandle,
        step: Option<NodeResult>,
        place: NodeRef,
        tenant: TenantId,
        moves: &mut Vec<WalkTask>,
    ) {
        for branch in std::mem::take(&mut self.state.branches) {
            self.begin(ticket);
            moves.push(WalkTask::Answer(NodeResult::Wait(branch), None, tenant));
        }
        let fed = std::mem::take(&mut self.state.field_events.pending);
        if !fed.is_empty() {
            self.begin(ticket);
        }
        match step {
            Some(step) => self.handle_result(ticket, step, Some(place), tenant, moves),
            None => self.handle_panic(ticket, Some(&place), tenant),
        }
        if !fed.is_empty() {
            // Before the message goes on.
            moves.push(WalkTask::Feed(fed));
        }
    }

    fn handle_result(
        &mut self,
        ticket: MessageHandle,
        step: NodeResult,
        place: Option<NodeRef>,
        tenant: TenantId,
        moves: &mut Vec<WalkTask>,
    ) {
        match (step, place) {
            (NodeResult::Next(msg, label), Some(place)) => {
                self.route(ticket, msg, place, &label, None, moves);
            }
            (NodeResult::Many(many), Some(place)) => {
                for _ in &many {
                    self.begin(ticket);
                }
                // The first one is handled first.
                for (msg, label) in many.into_iter().rev() {
                    moves.push(WalkTask::Leave(msg, place.clone(), label));
                }
                self.end(ticket, None);
            }
            (NodeResult::Fail(msg, error), Some(place)) => {
                if error.is_over_budget()
                    && let Some(node) = place.node()
                {
                    let ledger = self.shared.services.scripts.ledger();
                    ledger.count_overrun(tenant, node.id.into());
                }
                let error = error.to_string();
                self.route(ticket, msg, place, &ConnectionLabel::FAILURE, Some(&error), moves);
            }
            (NodeResult::Home(msg), Some(place)) => {
                let work = self.send_home(msg, &place, ticket);
                moves.push(WalkTask::Answer(NodeResult::Wait(work), Some(place), tenant));
            }
            (NodeResult::Done | NodeResult::Next(..) | NodeResult::Many(_) | NodeResult::Home(_), _) => {
                self.end(ticket, None);
            }
            (NodeResult::Fail(_, error), None) => self.fail(ticket, None, &error.to_string()),
            (step, place) => moves.push(WalkTask::Answer(step, place, tenant)),
        }
    }
}
