//! Messages that no journal has: one after the other, watched, each with all that it leads to.

use std::sync::Arc;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_model::message::QueueMessage;
use fieldline_model::{EntityKey, RuleChainId, TenantId};
use parking_lot::Mutex;

use super::RuleWorker;
use super::batch::MessageOrigin;
use super::fields::DeliverFieldTask;
use super::node_activity::NodeActivityLog;
use super::node_run::RunNode;
use super::walk::{NodeRef, WalkContext, WalkTask};
use crate::engine::{EngineShared, QueueHandle};
use crate::fields::FieldTask;
use crate::message::RuleMessage;
use crate::stats::LastFailure;

/// A worker that is given messages by hand. It counts what nodes do, and waits in place for what they wait for, so that one
/// message is done with before the next one begins.
pub struct MessagePlayer {
    worker: RuleWorker,
    writer: EffectWriter,
}

impl MessagePlayer {
    /// A player that applies effects with a writer, and counts what nodes do in a log.
    pub fn new(
        shared: Arc<EngineShared>,
        queue: Arc<QueueHandle>,
        log: Arc<Mutex<NodeActivityLog>>,
        writer: EffectWriter,
    ) -> Self {
        let mut worker = RuleWorker::new(shared, queue);
        worker.node_activity = Some(log);
        Self { worker, writer }
    }

    /// Takes a message through a chain. Returns how it failed, where it did.
    pub async fn play(
        &mut self,
        msg: RuleMessage,
        chain: RuleChainId,
    ) -> Result<Option<LastFailure>, IngestShutdown> {
        let chains = self.worker.chains(msg.tenant, &self.writer).await?;
        let mut cx = self.begin();
        if let Some((chain, at)) = chains.chain(chain).and_then(|chain| Some((chain, chain.first?))) {
            let place = NodeRef::new(chain, at);
            cx.walk([WalkTask::Enter(RunNode { msg, place })]).await?;
        }
        self.end().await
    }

    /// Takes a message where a queue would have brought it.
    pub async fn play_message(
        &mut self,
        tenant: TenantId,
        message: QueueMessage,
    ) -> Result<Option<LastFailure>, IngestShutdown> {
        self.begin().start_decoded(tenant, message).await?;
        self.end().await
    }

    /// Tells the fields of an entity what has happened, as a message between partitions would.
    pub async fn play_task(
        &mut self,
        subject: EntityKey,
        task: &FieldTask,
    ) -> Result<Option<LastFailure>, IngestShutdown> {
        let worker = &mut self.worker;
        let fields = &mut worker.local.field_events;
        fields
            .refresh(&worker.shared, subject.tenant, &self.writer)
            .await?;
        let mut cx = self.begin();
        DeliverFieldTask { subject, task }.run(&mut cx).await?;
        cx.run().await?;
        cx.end();
        self.end().await
    }

    /// When the next thing that was kept comes due, milliseconds.
    pub fn next_due(&mut self) -> Option<i64> {
        self.worker.local.keyed_states.next_due()
    }

    /// Handles one thing that is due now.
    pub async fn play_due(&mut self) -> Result<Option<LastFailure>, IngestShutdown> {
        let worker = &mut self.worker;
        let now = worker.now_ms();
        let Some(due) = worker.local.keyed_states.take_due(now) else {
            return Ok(None);
        };
        worker.due.clear();
        worker.due.push(due);
        worker.messages.batch.begin();
        let origin = MessageOrigin::default();
        worker.messages.batch.add(origin);
        worker.submit_due(0, origin, &self.writer).await?;
        self.end().await
    }

    fn begin(&mut self) -> WalkContext<'_> {
        let batch = &mut self.worker.messages.batch;
        batch.begin();
        batch.add(MessageOrigin::default());
        batch.begin_of(0);
        let handle = self.worker.handle(0);
        self.worker.walk_context(handle, &self.writer)
    }

    async fn end(&mut self) -> Result<Option<LastFailure>, IngestShutdown> {
        let worker = &mut self.worker;
        let partition = worker.local.partition;
        worker
            .local
            .apply_between_records(partition, &mut worker.shares, &self.writer)
            .await?;
        worker.alarm_ends.store(&worker.shared.services).await;
        Ok(worker.messages.batch.failures.remove(&0))
    }
}
