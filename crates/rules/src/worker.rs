//! One worker: it takes the records of its partitions through the rule chains.
//!
//! A delivery of records is a batch. Its messages walk their chains in place, one after the other, on the worker's
//! thread; only what has to wait is suspended, and comes back through the worker's inbox. When all are done, or their
//! time is up and the queue's strategy gives them up, what they do is stored together with the position behind them.

mod alarm_ends;
mod alarms;
mod batch;
mod divert;
pub mod effects;
mod field_calls;
mod field_results;
#[cfg(test)]
mod field_tests;
mod field_values;
pub mod fields;
mod in_flight;
pub mod keyed_states;
mod lane;
mod lane_scheduler;
mod late_messages;
pub mod log_binding;
pub mod marks;
pub mod node_activity;
mod node_run;
mod open_messages;
mod originator_lookup;
mod replay;
mod retry;
mod rounds;
mod routing;
mod submit;
mod submit_scheduler;
mod suspended;
mod tally;
mod tenant_chains;
#[cfg(test)]
mod tests;
mod time_shares;
#[cfg(test)]
mod usage_tests;
mod waits;
mod walk;
pub mod worker_state;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::in_flight::{KeptNote, KeptProof, KeptTurn};
use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown, RecordProcessor};
use fieldline_core::ports::{Partition, QueueId};
use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use self::alarm_ends::PendingAlarmEnds;
use self::batch::{DueTimer, MessageOrigin};
use self::field_calls::RunningFieldScripts;
use self::lane::LanePass;
use self::lane_scheduler::LaneScheduler;
use self::marks::DUE;
use self::node_activity::NodeActivityLog;
use self::open_messages::OpenMessages;
pub use self::replay::MessagePlayer;
use self::tenant_chains::TenantChainCache;
use self::time_shares::TimeShares;
use self::walk::{MessageHandle, NodeRef, WalkTask};
use self::worker_state::WorkerState;
use crate::chain_registry::TenantChains;
use crate::deletions::Deletion;
use crate::engine::{EngineShared, QueueHandle, QueueRole};
use crate::node_counters::CounterStripe;

/// Timers that are handled together.
const MAX_DUE: usize = 1000;
/// How much later what is suspected and has come due tries again whether it is its turn, milliseconds.
const SUSPECT_PAUSE_MS: i64 = 50;

/// See the module.
pub struct RuleWorker {
    shared: Arc<EngineShared>,
    /// That of the log whose records it handles.
    log_number: u64,
    queue: Arc<QueueHandle>,
    local: WorkerState,
    chains: TenantChainCache,
    messages: OpenMessages,
    /// How tenants share its time.
    shares: TimeShares,
    /// What its lane holds, if it works on one.
    lane: LaneScheduler,
    due: Vec<(Partition, DueTimer)>,
    alarm_ends: PendingAlarmEnds,
    /// Those that it works on.
    partitions: Vec<Partition>,
    /// Memory for the steps of the next message.
    spare_tasks: Vec<WalkTask>,
    /// How much of what has gone is swept out.
    purged_deletions: u64,
    /// A batch has begun and not come to its end: what is kept is ahead of the stored position.
    is_midway: bool,
    /// Calculated fields whose scripts run.
    field_calls: RunningFieldScripts,
    /// Who watches the nodes, in a replay.
    node_activity: Option<Arc<Mutex<NodeActivityLog>>>,
    /// Where it counts what nodes do.
    counters: CounterStripe,
    /// Runs of nodes since one was timed.
    untimed_runs: u32,
}

impl RuleWorker {
    /// A worker of a queue.
    pub fn new(shared: Arc<EngineShared>, queue: Arc<QueueHandle>) -> Self {
        let mut local = WorkerState::new(
            queue.partitions,
            Partition {
                queue: QueueId(0),
                index: 0,
            },
            &shared,
        );
        local.is_lane = queue.role.is_lane();
        let purged_deletions = shared.chains.deletions().count();
        Self {
            messages: OpenMessages::new(queue.clone(), shared.events.clone()),
            log_number: shared.services.engine.log_number(),
            shared,
            queue,
            local,
            chains: TenantChainCache::default(),
            shares: TimeShares::new(),
            lane: LaneScheduler::default(),
            due: Vec::new(),
            alarm_ends: PendingAlarmEnds::default(),
            partitions: Vec::new(),
            spare_tasks: Vec::new(),
            purged_deletions,
            is_midway: false,
            field_calls: RunningFieldScripts::default(),
            node_activity: None,
            counters: CounterStripe::next(),
            untimed_runs: 0,
        }
    }

    fn now_ms(&self) -> i64 {
        self.shared.services.now_ms()
    }

    /// The chains of a tenant that a message now goes through.
    async fn chains(
        &mut self,
        tenant: TenantId,
        writer: &EffectWriter,
    ) -> Result<Arc<TenantChains>, IngestShutdown> {
        let shared = &self.shared;
        self.local.field_events.refresh(shared, tenant, writer).await?;
        let chains = self.chains.get(shared, tenant, writer).await?;
        self.chains.note_current(tenant, &chains);
        Ok(chains)
    }

    /// Handles what was kept and has come due, as a batch of its own.
    async fn run_due(&mut self, writer: &EffectWriter) -> Result<(), IngestShutdown> {
        let now = self.now_ms();
        let (mut notes, mut proofs) = (Vec::new(), Vec::new());
        self.due.clear();
        while self.due.len() < MAX_DUE
            && let Some((partition, due)) = self.local.keyed_states.take_due(now)
        {
            if self.field_calls.is_running(&due.key) {
                // What its scripts come to says when it is due next.
                self.local.keyed_states.put(partition, due.key, None, &due.value);
                continue;
            }
            if let Some(later) = self.messages.late.waits_for_lanes(&due, now) {
                self.local
                    .keyed_states
                    .put(partition, due.key, Some(later), &due.value);
                continue;
            }
            match writer.take_kept(in_flight::due(&due.key)) {
                KeptTurn::Now(note) => notes.extend(note),
                KeptTurn::Later => {
                    let later = Some(now + SUSPECT_PAUSE_MS);
                    self.local.keyed_states.put(partition, due.key, later, &due.value);
                    continue;
                }
                KeptTurn::Never(proof) => {
                    let times = proof.deaths.alone;
                    let reason = format!("the server died {times} times of what was kept for later");
                    self.queue.give_up(due.key.subject, &reason, &self.shared.events);
                    proofs.push(proof);
                    continue;
                }
            }
            self.due.push((partition, due));
        }
        if self.due.is_empty() {
            if !proofs.is_empty() {
                self.local
                    .apply_everywhere(&self.partitions, &mut self.shares, writer)
                    .await?;
                proofs.into_iter().for_each(KeptProof::finish);
            }
            return Ok(());
        }
        self.messages.batch.begin();
        for record_index in 0..self.due.len() as u32 {
            self.messages.batch.add(MessageOrigin { record_index, row: 0 });
        }
        self.messages.batch.record = DUE;
        self.process_batch(None, writer).await?;
        for partition in &self.partitions {
            let states = &mut self.local.keyed_states;
            self.local
                .marks
                .forget(*partition, states, |record| record == DUE);
        }
        self.local
            .apply_everywhere(&self.partitions, &mut self.shares, writer)
            .await?;
        notes.into_iter().for_each(KeptNote::finish);
        proofs.into_iter().for_each(KeptProof::finish);
        Ok(())
    }

    /// Tells the lanes how much time tenants took.
    fn report_times(&mut self) {
        let ledger = self.shared.services.scripts.ledger();
        self.shares.report(self.queue.role.shared_lanes(), ledger);
    }

    fn note_failure(&self, place: &NodeRef, error: &str) {
        if let Some(node) = place.node() {
            node.counters.count_failure(self.counters, error);
        }
        if let Some(watch) = &self.node_activity {
            watch.lock().count_failure(place, error);
        }
    }

    fn handle(&self, entry: u32) -> MessageHandle {
        MessageHandle {
            generation: self.messages.batch.generation_of(entry),
            entry,
            partition: self.local.partition,
            home: self.lane.home_of(entry),
        }
    }

    /// Drops what was kept for nodes, fields and entities that are no more.
    async fn purge_deleted(&mut self, writer: &EffectWriter) -> Result<(), IngestShutdown> {
        let log = self.shared.chains.deletions();
        let count = log.count();
        if count == self.purged_deletions {
            return Ok(());
        }
        let gone: FxHashSet<Deletion> = log.since(self.purged_deletions).into_iter().collect();
        self.purged_deletions = count;
        let stays = |tenant: &TenantId| !gone.contains(&Deletion::Tenant(*tenant));
        self.chains.tenants.retain(|tenant, _| stays(tenant));
        self.local.field_events.tenants.retain(|tenant, _| stays(tenant));
        self.local.keyed_states.purge(&gone);
        self.local
            .apply_everywhere(&self.partitions, &mut self.shares, writer)
            .await
    }

    fn next_due_in(&mut self) -> Option<Duration> {
        let due = self.local.keyed_states.next_due()?;
        let left = due.saturating_sub(self.now_ms()).max(0);
        // Not longer than this: the clock may be set forward meanwhile.
        Some(Duration::from_millis(left.unsigned_abs()).min(Duration::from_secs(1)))
    }
}

#[async_trait(?Send)]
impl RecordProcessor for RuleWorker {
    async fn assign_partition(
        &mut self,
        partition: Partition,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let states = writer.states(partition).await?;
        self.local.keyed_states.load(partition, states);
        self.local.marks.load(partition, &mut self.local.keyed_states);
        self.partitions.push(partition);
        if let QueueRole::Lane(lanes) = &self.queue.role {
            self.lane.load_partition(partition, lanes, &mut self.local);
        }
        let now = self.now_ms();
        late_messages::load(partition, &mut self.local.keyed_states, now);
        Ok(())
    }

    fn revoke_partition(&mut self, partition: Partition) {
        if let QueueRole::Lane(lanes) = &self.queue.role {
            self.lane.release_partition(partition, lanes);
        }
        self.local.marks.drop_partition(partition);
        self.messages.late.drop_partition(partition);
        let is_dropped = |handle: &MessageHandle, _| handle.partition == partition;
        self.messages.suspended.cancel(is_dropped);
        self.local.keyed_states.drop_partition(partition);
        self.partitions.retain(|it| *it != partition);
    }

    async fn process(
        &mut self,
        delivered: DeliveredBatch<'_>,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let partition = delivered.records.partition;
        self.local.partition = partition;
        if let QueueRole::Lane(lanes) = &self.queue.role {
            self.lane.fill(&delivered, lanes, &mut self.local.keyed_states);
            return self
                .local
                .apply(partition, delivered.next, &mut self.shares, writer)
                .await;
        }
        self.is_midway = true;
        self.messages.batch.begin();
        self.messages.batch.fill(&delivered);
        self.messages.batch.record = delivered.next.0;
        self.process_batch(Some(&delivered), writer).await?;
        self.local
            .apply(partition, delivered.next, &mut self.shares, writer)
            .await?;
        self.is_midway = false;
        if self.local.keyed_states.have_changed() {
            // Messages of other partitions have come back meanwhile.
            self.local
                .apply_everywhere(&self.partitions, &mut self.shares, writer)
                .await?;
        }
        Ok(())
    }

    async fn wake(&mut self) {
        if !self.messages.suspended.ready.is_empty() {
            return;
        }
        let due = match &self.queue.role {
            QueueRole::Lane(_) if !self.messages.batch.ended.is_empty() => return,
            QueueRole::Lane(lanes) => self.lane.next_in(lanes.options.timeout.0),
            _ => self.next_due_in(),
        };
        if due.is_some_and(|left| left.is_zero()) {
            return;
        }
        let timer = async {
            match due {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            resumed = self.messages.suspended.inbox.recv() => self.messages.suspended.ready.extend(resumed),
            () = timer => {}
        }
    }

    async fn work(&mut self, writer: &EffectWriter) -> Result<(), IngestShutdown> {
        self.is_midway = true;
        while let Some(resumed) = self.messages.suspended.ready.pop_front() {
            self.resume(resumed, writer).await?;
        }
        if let Some(lanes) = self.queue.role.lanes_of_lane().cloned() {
            let mut pass = LanePass {
                worker: self,
                lanes: &lanes,
                writer,
            };
            pass.run().await?;
        }
        self.run_due(writer).await?;
        self.report_times();
        self.is_midway = false;
        self.local
            .apply_everywhere(&self.partitions, &mut self.shares, writer)
            .await?;
        // What they do is stored: nobody dies of that any more, either.
        self.lane.ended_notes.drain(..).for_each(KeptNote::finish);
        Ok(())
    }

    async fn flush(&mut self, writer: &EffectWriter) {
        self.alarm_ends.store(&self.shared.services).await;
        // When the program stops in the midst of a batch, what that keeps is left to the next start, with what has
        // gone.
        if !self.is_midway {
            let _ = self.purge_deleted(writer).await;
        }
    }
}
