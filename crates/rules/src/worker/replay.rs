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
use super::walk::{NodeRef, WalkTask};
use crate::fields::FieldTask;
use crate::message::RuleMessage;
use crate::stats::LastFailure;

impl RuleWorker {
    /// Counts from here on what nodes do, and waits in place for what they wait for, so that one message is done with before
    /// the next one begins.
    pub fn watch(&mut self, log: Arc<Mutex<NodeActivityLog>>) {
        self.node_activity = Some(log);
    }

    /// Takes a message through a chain. Returns how it failed, where it did.
    pub async fn play(
        &mut self,
        msg: RuleMessage,
        chain: RuleChainId,
        writer: &EffectWriter,
    ) -> Result<Option<LastFailure>, IngestShutdown> {
        let chains = self.chains(msg.tenant, writer).await?;
        self.play_begins();
        if let Some((chain, at)) = chains.chain(chain).and_then(|chain| Some((chain, chain.first?))) {
            let place = NodeRef::new(chain, at);
            self.walk(self.handle(0), [WalkTask::Enter(RunNode { msg, place })], writer)
                .await?;
        }
        self.play_ends(writer).await
    }

    /// Takes a message where a queue would have brought it.
    pub async fn play_message(
        &mut self,
        tenant: TenantId,
        message: QueueMessage,
        writer: &EffectWriter,
    ) -> Result<Option<LastFailure>, IngestShutdown> {
        self.play_begins();
        self.submit_decoded(0, tenant, message, writer).await?;
        self.play_ends(writer).await
    }

    /// Tells the fields of an entity what has happened, as a message between partitions would.
    pub async fn play_task(
        &mut self,
        subject: EntityKey,
        task: &FieldTask,
        writer: &EffectWriter,
    ) -> Result<Option<LastFailure>, IngestShutdown> {
        self.refresh_fields(subject.tenant, writer).await?;
        self.play_begins();
        let handle = self.handle(0);
        let mut cx = self.walk_context(handle, writer);
        DeliverFieldTask { subject, task }.run(&mut cx).await?;
        cx.run().await?;
        self.end(handle, None);
        self.play_ends(writer).await
    }

    /// When the next thing that was kept comes due, milliseconds.
    pub fn next_due(&mut self) -> Option<i64> {
        self.local.keyed_states.next_due()
    }

    /// Handles one thing that is due now.
    pub async fn play_due(&mut self, writer: &EffectWriter) -> Result<Option<LastFailure>, IngestShutdown> {
        let now = self.now_ms();
        let Some(due) = self.local.keyed_states.take_due(now) else {
            return Ok(None);
        };
        self.due.clear();
        self.due.push(due);
        self.batch.begin();
        let origin = MessageOrigin::default();
        self.batch.add(origin);
        self.submit_due(0, origin, writer).await?;
        self.play_ends(writer).await
    }

    fn play_begins(&mut self) {
        self.batch.begin();
        self.batch.add(MessageOrigin::default());
        self.batch.begin_of(0);
    }

    async fn play_ends(&mut self, writer: &EffectWriter) -> Result<Option<LastFailure>, IngestShutdown> {
        self.apply_between_records(self.local.partition, writer).await?;
        self.store_alarm_ends().await;
        Ok(self.batch.failures.remove(&0))
    }
}
