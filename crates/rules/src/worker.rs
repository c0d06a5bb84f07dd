//! One worker: it takes the records of its partitions through the rule chains.
//!
//! A delivery of records is a batch. Its messages walk their chains in place, one after the other, on the worker's
//! thread; only what has to wait is suspended, and comes back through the worker's inbox. When all are done, or their
//! time is up and the queue's strategy gives them up, what they do is stored together with the position behind them.

mod alarms;
mod batch;
mod divert;
pub mod effects;
mod failures;
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
pub mod marks;
pub mod node_activity;
mod node_run;
mod replay;
mod retry;
mod rounds;
mod routing;
mod submit;
mod submit_scheduler;
mod suspended;
mod tally;
#[cfg(test)]
mod tests;
mod time_shares;
#[cfg(test)]
mod usage_tests;
mod waits;
mod walk;
pub mod worker_state;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fieldline_core::in_flight::{KeptNote, KeptProof, KeptTurn};
use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown, RecordProcessor};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{AlarmEndUpdate, Offset, Partition, QueueId, StoreResult};
use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use tracing::{error, warn};
use uuid::Uuid;

use self::batch::{DueTimer, MessageBatch, MessageOrigin};
use self::field_calls::RunningFieldScripts;
use self::lane_scheduler::LaneScheduler;
use self::late_messages::LateMessageTable;
use self::marks::DUE;
use self::node_activity::NodeActivityLog;
use self::retry::{AttemptError, with_retry};
use self::suspended::SuspendedWaits;
use self::time_shares::TimeShares;
use self::walk::WalkTask;
use self::worker_state::WorkerState;
use crate::chain_registry::{ChainRegistry, TenantChains};
use crate::deletions::Deletion;
use crate::engine::{EngineShared, QueueHandle, QueueRole};
use crate::tenant_cache::TenantEpoch;

/// Nodes that a message may go through, whatever its tenant's profile says.
const MAX_HOPS: u32 = 10_000;
/// What takes less to store is not worth being divided among tenants.
const MIN_CHARGED_STORE_TIME: Duration = Duration::from_millis(1);
/// Timers that are handled together.
const MAX_DUE: usize = 1000;
/// How much later what is suspected and has come due tries again whether it is its turn, milliseconds.
const SUSPECT_PAUSE_MS: i64 = 50;
static LOAD_GATE: LogGate = LogGate::new(1);

/// The chains of the tenants that a worker has seen.
struct TenantChainCache {
    tenants: FxHashMap<TenantId, (TenantEpoch, Arc<TenantChains>)>,
    /// Nodes that a message of this tenant may go through, the one whose chains were last asked for.
    max_hops: (TenantId, u32),
}

impl Default for TenantChainCache {
    fn default() -> Self {
        Self {
            tenants: FxHashMap::default(),
            max_hops: (TenantId::NULL, MAX_HOPS),
        }
    }
}

impl TenantChainCache {
    /// The chains of a tenant, where they are known and in force.
    fn current(&self, tenant: TenantId) -> Option<&Arc<TenantChains>> {
        let (epoch, chains) = self.tenants.get(&tenant)?;
        epoch.is_current().then_some(chains)
    }

    /// Messages of a tenant are about to go through its chains.
    fn note_current(&mut self, tenant: TenantId, chains: &TenantChains) {
        self.max_hops = (tenant, max_hops_of(chains));
    }

    /// Nodes that a message of a tenant may go through.
    fn max_hops(&self, tenant: TenantId) -> u32 {
        match self.max_hops {
            (known, limit) if known == tenant => limit,
            _ => self
                .tenants
                .get(&tenant)
                .map_or(MAX_HOPS, |(_, chains)| max_hops_of(chains)),
        }
    }
}

/// See the module.
pub struct RuleWorker {
    shared: Arc<EngineShared>,
    queue: Arc<QueueHandle>,
    local: WorkerState,
    chains: TenantChainCache,
    suspended: SuspendedWaits,
    batch: MessageBatch,
    /// How tenants share its time.
    shares: TimeShares,
    /// What its lane holds, if it works on one.
    lane: LaneScheduler,
    due: Vec<(Partition, DueTimer)>,
    /// What goes on although its batch does not wait for it any more.
    late: LateMessageTable,
    /// Alarms whose end has moved, until that is stored.
    alarm_ends: FxHashMap<Uuid, AlarmEndUpdate>,
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
            shared,
            queue,
            local,
            chains: TenantChainCache::default(),
            suspended: SuspendedWaits::new(),
            batch: MessageBatch::default(),
            shares: TimeShares::new(),
            lane: LaneScheduler::default(),
            due: Vec::new(),
            late: LateMessageTable::default(),
            alarm_ends: FxHashMap::default(),
            partitions: Vec::new(),
            spare_tasks: Vec::new(),
            purged_deletions,
            is_midway: false,
            field_calls: RunningFieldScripts::default(),
            node_activity: None,
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
        self.refresh_fields(tenant, writer).await?;
        let chains = self.load_chains(tenant, writer).await?;
        self.chains.note_current(tenant, &chains);
        Ok(chains)
    }

    async fn load_chains(
        &mut self,
        tenant: TenantId,
        writer: &EffectWriter,
    ) -> Result<Arc<TenantChains>, IngestShutdown> {
        if let Some(chains) = self.chains.current(tenant) {
            return Ok(chains.clone());
        }
        let epoch = self.shared.chains.epoch(tenant);
        let load = |registry: Arc<ChainRegistry>| async move { registry.tenant(tenant).await };
        let loaded = self.load(tenant, "rule chains", load, writer).await?;
        // Without them, the tenant's messages fail.
        let chains = loaded.unwrap_or_default();
        self.chains.tenants.insert(tenant, (epoch, chains.clone()));
        Ok(chains)
    }

    /// What a tenant has, waiting until it can be loaded: a message that cannot find its chain must not be lost. `None`
    /// where it can never be read, which is to cost nobody else.
    async fn load<T, F>(
        &self,
        tenant: TenantId,
        what: &'static str,
        load: impl Fn(Arc<ChainRegistry>) -> F,
        writer: &EffectWriter,
    ) -> Result<Option<T>, IngestShutdown>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let chains = &self.shared.chains;
        with_retry(
            writer,
            async || self.spawn_attempt(load(chains.clone())).await,
            |error| {
                match error {
                    AttemptError::Panicked(_) => {
                        error!(%tenant, %error, what, "loading what a tenant has has failed");
                        return ControlFlow::Continue(());
                    }
                    _ if !error.is_retryable() => {
                        error!(%tenant, %error, what, "what a tenant has cannot be read, it does without");
                    }
                    _ => {
                        if let Some(suppressed) = LOAD_GATE.open() {
                            warn!(%tenant, %error, what, suppressed, "cannot load what a tenant has, trying again");
                        }
                    }
                }
                error.decide()
            },
        )
        .await
    }

    /// Applies what waits, with what is kept, as of a position.
    async fn apply(
        &mut self,
        partition: Partition,
        next: Offset,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.local.meter.flush();
        if !self.queue.role.is_lane() {
            let states = &mut self.local.keyed_states;
            let is_done = |record| record <= next.0;
            self.local.marks.forget(partition, states, is_done);
        }
        let states = self.local.keyed_states.take_changes(partition);
        let effects = self.local.effects.with(states);
        let began = Instant::now();
        writer.apply(partition, next, &effects).await?;
        self.charge_storing(began.elapsed());
        self.local.effects.complete(&*self.shared.services.devices);
        Ok(())
    }

    /// The same between records.
    async fn apply_between_records(
        &mut self,
        partition: Partition,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.local.meter.flush();
        let mut states = self.local.keyed_states.take_changes(partition);
        if self.queue.role.is_lane() {
            // Of messages that go on.
            states.extend(self.local.mark_pending(partition));
        }
        let effects = self.local.effects.with(states);
        let began = Instant::now();
        writer.apply_between_records(partition, &effects).await?;
        self.charge_storing(began.elapsed());
        self.local.effects.complete(&*self.shared.services.devices);
        Ok(())
    }

    /// What takes long to store has cost its tenants that time, as if their messages had taken it.
    fn charge_storing(&mut self, took: Duration) {
        if took >= MIN_CHARGED_STORE_TIME {
            let bytes = self.local.effects.bytes_of_tenants();
            self.shares.charge(took, &bytes);
        }
    }

    /// Applies what messages have done so far, so that what is read next is as they left it. What is kept waits for the end
    /// of the batch: it belongs to the position behind it.
    async fn apply_pending(
        &mut self,
        partition: Partition,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        if self.local.effects.is_empty() {
            return Ok(());
        }
        let marks = self.local.mark_pending(partition);
        writer
            .apply_between_records(partition, &self.local.effects.with(marks))
            .await?;
        self.local.effects.complete(&*self.shared.services.devices);
        Ok(())
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
            if let Some(later) = self.waits_for_lanes(&due) {
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
                    self.give_up(due.key.subject, &reason);
                    proofs.push(proof);
                    continue;
                }
            }
            self.due.push((partition, due));
        }
        if self.due.is_empty() {
            if !proofs.is_empty() {
                self.apply_everywhere(writer).await?;
                proofs.into_iter().for_each(KeptProof::finish);
            }
            return Ok(());
        }
        self.batch.begin();
        for record_index in 0..self.due.len() as u32 {
            self.batch.add(MessageOrigin { record_index, row: 0 });
        }
        self.batch.record = DUE;
        self.process_batch(None, writer).await?;
        for partition in &self.partitions {
            let states = &mut self.local.keyed_states;
            self.local
                .marks
                .forget(*partition, states, |record| record == DUE);
        }
        self.apply_everywhere(writer).await?;
        notes.into_iter().for_each(KeptNote::finish);
        proofs.into_iter().for_each(KeptProof::finish);
        Ok(())
    }

    /// Applies what waits where the partitions stand.
    async fn apply_everywhere(&mut self, writer: &EffectWriter) -> Result<(), IngestShutdown> {
        self.local.meter.flush();
        for partition in self.partitions.clone() {
            if !self.local.effects.is_empty() || self.local.keyed_states.has_changes(partition) {
                self.apply_between_records(partition, writer).await?;
            }
        }
        Ok(())
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
        self.apply_everywhere(writer).await
    }

    fn next_due_in(&mut self) -> Option<Duration> {
        let due = self.local.keyed_states.next_due()?;
        let left = due.saturating_sub(self.now_ms()).max(0);
        // Not longer than this: the clock may be set forward meanwhile.
        Some(Duration::from_millis(left.unsigned_abs()).min(Duration::from_secs(1)))
    }
}

fn max_hops_of(chains: &TenantChains) -> u32 {
    match chains.max_hops {
        0 => MAX_HOPS,
        limit => limit.min(MAX_HOPS),
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
        self.load_lane_partition(partition);
        self.load_late_partition(partition);
        Ok(())
    }

    fn revoke_partition(&mut self, partition: Partition) {
        self.drop_lane_partition(partition);
        self.local.marks.drop_partition(partition);
        self.drop_late_partition(partition);
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
        if self.queue.role.is_lane() {
            self.fill_lane(&delivered);
            return self.apply(partition, delivered.next, writer).await;
        }
        self.is_midway = true;
        self.batch.begin();
        self.batch.fill(&delivered);
        self.batch.record = delivered.next.0;
        self.process_batch(Some(&delivered), writer).await?;
        self.apply(partition, delivered.next, writer).await?;
        self.is_midway = false;
        if self.local.keyed_states.have_changed() {
            // Messages of other partitions have come back meanwhile.
            self.apply_everywhere(writer).await?;
        }
        Ok(())
    }

    async fn wake(&mut self) {
        if !self.suspended.ready.is_empty() {
            return;
        }
        let due = match self.queue.role {
            QueueRole::Lane(_) => self.next_of_lane(),
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
            resumed = self.suspended.inbox.recv() => self.suspended.ready.extend(resumed),
            () = timer => {}
        }
    }

    async fn work(&mut self, writer: &EffectWriter) -> Result<(), IngestShutdown> {
        self.is_midway = true;
        while let Some(resumed) = self.suspended.ready.pop_front() {
            self.resume(resumed, writer).await?;
        }
        if self.queue.role.is_lane() {
            self.run_lane(writer).await?;
        }
        self.run_due(writer).await?;
        self.note_inline();
        self.is_midway = false;
        self.apply_everywhere(writer).await?;
        // What they do is stored: nobody dies of that any more, either.
        self.lane.ended_notes.drain(..).for_each(KeptNote::finish);
        Ok(())
    }

    async fn flush(&mut self, writer: &EffectWriter) {
        self.store_alarm_ends().await;
        // When the program stops in the midst of a batch, what that keeps is left to the next start, with what has
        // gone.
        if !self.is_midway {
            let _ = self.purge_deleted(writer).await;
        }
    }
}
