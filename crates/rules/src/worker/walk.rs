//! Walking chains in place: what a message does next, and how a worker gets from one step to the next.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::ports::Partition;
use fieldline_model::{EntityKey, RuleNodeId, TenantId};
use futures::FutureExt as _;

use super::RuleWorker;
use super::alarms::{EvaluateProfileRules, FireProfileRuleTimer};
use super::fields::{DeliverFieldEvents, DeliverFieldMessage, FireFieldTimer};
use super::node_run::{FireNodeTimer, RunNode};
use super::originator_lookup::find_originator;
use super::suspended::WaitKind;
use crate::chain::{CompiledChain, CompiledNode};
use crate::message::RuleMessage;
use crate::node::{ChainCommand, ConnectionLabel, NodeResult, Suspension};
use crate::originators::Originator;
use crate::stats::LastFailure;

/// Steps that a message, and all that it becomes, may take before it waits.
const MAX_STEPS: u32 = 1_000_000;
/// Tasks that the memory is kept for from one message to the next.
const MAX_KEPT_TASKS: usize = 64;

/// The generation of what is acknowledged already.
pub(super) const DETACHED: u64 = u64::MAX;

/// Which entry of which generation of the batch something belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageHandle {
    pub(super) generation: u64,
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
    pub(super) fn new(chain: &Arc<CompiledChain>, at: usize) -> Self {
        let chain = chain.clone();
        Self { chain, at }
    }

    pub(super) fn node(&self) -> Option<&CompiledNode> {
        self.chain.nodes.get(self.at)
    }
}

/// What a message does next.
pub(super) enum WalkTask {
    /// It enters a node.
    Enter(RunNode),
    /// It leaves a node.
    Leave(RuleMessage, NodeRef, ConnectionLabel),
    /// A node has come to a result.
    Result(NodeResult, Option<NodeRef>, TenantId),
    /// Something that a node kept has come due.
    NodeTimer(FireNodeTimer),
    /// Calculated fields are told what has changed.
    NotifyFields(DeliverFieldEvents),
    /// A message brings an event to calculated fields.
    FieldMessage(DeliverFieldMessage),
    /// Something that a calculated field kept has come due.
    FieldTimer(FireFieldTimer),
}

impl WalkTask {
    fn place(&self) -> Option<&NodeRef> {
        match self {
            Self::Enter(RunNode { place, .. })
            | Self::Leave(_, place, _)
            | Self::NodeTimer(FireNodeTimer { place, .. }) => Some(place),
            Self::Result(_, place, _) => place.as_ref(),
            Self::NotifyFields(_) | Self::FieldMessage(_) | Self::FieldTimer(_) => None,
        }
    }
}

/// Whether work has ended without a panic.
pub(super) async fn run_catching_panic(
    work: impl Future<Output = Result<(), IngestShutdown>>,
) -> Result<bool, IngestShutdown> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => done.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// A walk of a message: what the commands work with that its steps become.
pub(super) struct WalkContext<'a> {
    pub(super) worker: &'a mut RuleWorker,
    /// Where effects are stored.
    pub(super) writer: &'a EffectWriter,
    /// The message.
    pub(super) handle: MessageHandle,
    /// What it does next, the last one first.
    pub(super) tasks: Vec<WalkTask>,
    /// When the walk began, or last waited, milliseconds: nodes need no clock of their own.
    pub(super) now_ms: i64,
    /// The message was taken away.
    is_cancelled: bool,
}

impl RuleWorker {
    /// A walk that has nothing to do yet.
    pub(super) fn walk_context<'a>(
        &'a mut self,
        handle: MessageHandle,
        writer: &'a EffectWriter,
    ) -> WalkContext<'a> {
        WalkContext {
            now_ms: self.now_ms(),
            worker: self,
            writer,
            handle,
            tasks: Vec::new(),
            is_cancelled: false,
        }
    }
}

impl WalkContext<'_> {
    /// Moves the message, and all that it becomes, until it ends or waits: the last step first. The entry has counted it already.
    pub(super) async fn walk(
        &mut self,
        first: impl IntoIterator<Item = WalkTask>,
    ) -> Result<(), IngestShutdown> {
        debug_assert!(
            self.tasks.is_empty(),
            "a context that has walked, or has tasks already"
        );
        self.tasks = std::mem::take(&mut self.worker.spare_tasks);
        self.tasks.extend(first);
        self.run().await?;
        let mut tasks = std::mem::take(&mut self.tasks);
        if tasks.capacity() <= MAX_KEPT_TASKS {
            tasks.clear();
            self.worker.spare_tasks = tasks;
        }
        Ok(())
    }

    /// Number of the record that the message belongs to, where that is not done with.
    pub(super) fn open_record(&self) -> Option<u64> {
        let (worker, handle) = (&*self.worker, self.handle);
        if worker.node_activity.is_some()
            || handle.generation == DETACHED
            || !worker.messages.batch.is_current(handle)
        {
            return None;
        }
        if !worker.queue.role.is_lane() {
            return Some(worker.messages.batch.record);
        }
        let run = worker.lane.running(handle.entry);
        run.map(|run| run.item.key.number)
    }

    pub(super) fn push(&mut self, task: WalkTask) {
        self.tasks.push(task);
    }

    /// One more branch of the message has begun.
    pub(super) fn begin(&mut self) {
        self.worker.messages.begin(self.handle);
    }

    /// A branch of the message has ended.
    pub(super) fn end(&mut self) {
        self.end_with(None);
    }

    /// The same, and how it has failed if it has.
    pub(super) fn end_with(&mut self, failure: Option<LastFailure>) {
        let worker = &mut *self.worker;
        worker
            .messages
            .end(self.handle, failure, &mut worker.local.keyed_states);
    }

    /// A branch of the message has failed.
    pub(super) fn fail(&mut self, place: Option<&NodeRef>, error: &str) {
        let worker = &mut *self.worker;
        worker
            .messages
            .fail(self.handle, place, error, &mut worker.local.keyed_states);
    }

    /// The originator of an id.
    pub(super) async fn find(
        &mut self,
        subject: EntityKey,
    ) -> Result<Option<Arc<Originator>>, IngestShutdown> {
        find_originator(&self.worker.shared.services, subject, self.writer).await
    }

    /// Applies what messages have done so far, so that what is read next is as they left it.
    pub(super) async fn apply_pending(&mut self) -> Result<(), IngestShutdown> {
        self.worker
            .local
            .apply_pending(self.handle.partition, self.writer)
            .await
    }

    /// Ends the message, which cannot go on where it is.
    pub(super) fn cancel(&mut self, tenant: TenantId, error: &str) {
        self.is_cancelled = true;
        let worker = &mut *self.worker;
        worker
            .messages
            .drop_message(self.handle, tenant, error, &mut worker.local.keyed_states);
    }

    /// Gives the message up, with all that it has become so far.
    fn abort(&mut self, error: &str) {
        let worker = &mut *self.worker;
        worker
            .messages
            .abort(self.handle, error, &mut worker.local.keyed_states);
    }

    /// The same where alarm rules or calculated fields have panicked.
    pub(super) fn abort_panicked(&mut self) {
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.abort("alarm rules or calculated fields have panicked");
    }

    /// Takes all steps, until nothing is left or what is left waits.
    pub(super) async fn run(&mut self) -> Result<(), IngestShutdown> {
        let mut steps = 0_u32;
        let record = self.open_record();
        while let Some(task) = self.tasks.pop() {
            self.worker.local.record = record;
            steps += 1;
            if steps > MAX_STEPS {
                let error = "the message has become more than a rule chain may make of one";
                self.abort(error);
                break;
            }
            let is_for_fields = matches!(
                task,
                WalkTask::NotifyFields(_) | WalkTask::FieldMessage(_) | WalkTask::FieldTimer(_)
            );
            let watched = self
                .worker
                .node_activity
                .as_ref()
                .and_then(|_| Some((task.place()?.clone(), Instant::now())));
            // False where alarm rules or calculated fields have panicked.
            let survived = match task {
                WalkTask::Enter(command) => {
                    command.run(self);
                    true
                }
                WalkTask::NodeTimer(command) => {
                    command.run(self);
                    true
                }
                WalkTask::Leave(msg, place, label) => {
                    self.route(msg, place, &label, None);
                    true
                }
                WalkTask::Result(result, place, tenant) => self.apply_result(result, place, tenant).await?,
                WalkTask::NotifyFields(command) => run_catching_panic(command.run(self)).await?,
                WalkTask::FieldMessage(command) => run_catching_panic(command.run(self)).await?,
                WalkTask::FieldTimer(command) => run_catching_panic(command.run(self)).await?,
            };
            if std::mem::take(&mut self.is_cancelled) {
                // It was taken away in the midst.
                break;
            }
            if !survived {
                // Nothing is known of what they had begun.
                self.abort_panicked();
                break;
            }
            if is_for_fields {
                self.end();
            }
            if let (Some(watch), Some((place, since))) = (&self.worker.node_activity, watched) {
                watch.lock().add_time(&place, since.elapsed());
            }
        }
        Ok(())
    }

    /// Goes on after a node: what takes no more than that is done at once, the rest with the next step.
    pub(super) fn handle_result(&mut self, result: NodeResult, place: Option<NodeRef>, tenant: TenantId) {
        match (result, place) {
            (NodeResult::Next(msg, label), Some(place)) => self.route(msg, place, &label, None),
            (NodeResult::Many(many), Some(place)) => {
                for _ in &many {
                    self.begin();
                }
                // The first one is handled first.
                for (msg, label) in many.into_iter().rev() {
                    self.push(WalkTask::Leave(msg, place.clone(), label));
                }
                self.end();
            }
            (NodeResult::Fail(msg, error), Some(place)) => {
                if error.is_over_budget()
                    && let Some(node) = place.node()
                {
                    let ledger = self.worker.shared.services.scripts.ledger();
                    ledger.count_overrun(tenant, node.id.into());
                }
                let error = error.to_string();
                self.route(msg, place, &ConnectionLabel::FAILURE, Some(&error));
            }
            (NodeResult::Done | NodeResult::Next(..) | NodeResult::Many(_), _) => self.end(),
            (NodeResult::Fail(_, error), None) => self.fail(None, &error.to_string()),
            (result, place) => self.push(WalkTask::Result(result, place, tenant)),
        }
    }

    /// Does what a node has come to. Returns false where alarm rules have panicked.
    async fn apply_result(
        &mut self,
        result: NodeResult,
        place: Option<NodeRef>,
        tenant: TenantId,
    ) -> Result<bool, IngestShutdown> {
        let mut survived = true;
        match (result, place) {
            (NodeResult::Suspend(suspension), place) => {
                if let Some(result) = self.suspend(suspension, place.clone(), tenant).await? {
                    self.push(WalkTask::Result(result, place, tenant));
                }
            }
            (NodeResult::Acknowledge(msg), Some(place)) => self.acknowledge(msg, place).await?,
            (NodeResult::Acknowledge(_), None) => self.end(),
            (NodeResult::Control(command), place) => survived = self.control(command, place, tenant).await?,
            (result, place) => self.handle_result(result, place, tenant),
        }
        // That may have taken its time.
        self.now_ms = self.worker.now_ms();
        Ok(survived)
    }

    /// Waits for what a node waits for. Returns what has come of it, where that is known already.
    async fn suspend(
        &mut self,
        suspension: Suspension,
        place: Option<NodeRef>,
        tenant: TenantId,
    ) -> Result<Option<NodeResult>, IngestShutdown> {
        match (suspension, place) {
            (Suspension::Wait(work), place) => self.wait(work, WaitKind::Repeatable, place, tenant).await,
            (Suspension::Outside(work), place) => self.wait(work, WaitKind::Outside, place, tenant).await,
            (Suspension::InOrder(work), place) => self.wait_in_order(work, place.as_ref(), tenant).await,
            (Suspension::Script(call), Some(place)) => self.call(*call, place, tenant).await,
            (Suspension::Continue(work), Some(place)) => {
                let node = place.node().map_or(RuleNodeId::NULL, |node| node.id);
                let mut ctx = self.node_context(tenant, place.chain.id, node);
                let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(&mut ctx)));
                self.finish_node(result.ok(), place, tenant);
                Ok(None)
            }
            (Suspension::Script(_) | Suspension::Continue(_), None) => {
                self.end();
                Ok(None)
            }
        }
    }

    /// What becomes of a message no longer matters to its queue; it goes on through `Success`.
    async fn acknowledge(&mut self, msg: RuleMessage, place: NodeRef) -> Result<(), IngestShutdown> {
        let next = WalkTask::Leave(msg, place, ConnectionLabel::SUCCESS);
        if self.handle.generation == DETACHED {
            self.push(next);
            return Ok(());
        }
        self.end();
        let detached = MessageHandle {
            generation: DETACHED,
            ..self.handle
        };
        Box::pin(self.worker.walk_context(detached, self.writer).walk([next])).await
    }

    /// Does what takes more than the node itself. Returns false where alarm rules have panicked.
    async fn control(
        &mut self,
        command: ChainCommand,
        place: Option<NodeRef>,
        tenant: TenantId,
    ) -> Result<bool, IngestShutdown> {
        match (command, place) {
            (ChainCommand::ForwardToOwner(msg), Some(place)) => {
                let work = self.forward_to_owner(msg, &place);
                let waiting = NodeResult::Suspend(Suspension::Wait(work));
                self.push(WalkTask::Result(waiting, Some(place), tenant));
            }
            (ChainCommand::EnterChain(msg, chain), place) => {
                let chains = self.worker.chains(tenant, self.writer).await?;
                self.enter_chain(msg, Some(chain), place, &chains);
            }
            (ChainCommand::EnterDefaultChain(msg), place) => {
                let chains = self.worker.chains(tenant, self.writer).await?;
                let chain = self.worker.shared.services.originators.chain_of(msg.subject());
                self.enter_chain(msg, chain, place, &chains);
            }
            (ChainCommand::Return(msg, label), place) => {
                let chains = self.worker.chains(tenant, self.writer).await?;
                self.return_to_caller(msg, label, place.as_ref(), &chains);
            }
            (ChainCommand::EvaluateAlarmRules(msg), Some(place)) => {
                return run_catching_panic(EvaluateProfileRules { msg, place }.run(self)).await;
            }
            (ChainCommand::FireAlarmRuleTimer(key, value), Some(place)) => {
                return run_catching_panic(FireProfileRuleTimer { key, value, place }.run(self)).await;
            }
            (
                ChainCommand::ForwardToOwner(_)
                | ChainCommand::EvaluateAlarmRules(_)
                | ChainCommand::FireAlarmRuleTimer(..),
                None,
            ) => self.end(),
        }
        Ok(true)
    }
}
