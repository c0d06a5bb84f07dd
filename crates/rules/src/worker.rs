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
pub(crate) mod node_activity;
mod replay;
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

use std::collections::VecDeque;
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
use tokio::sync::mpsc;
use tracing::{error, warn};
use uuid::Uuid;

use self::batch::{DueTimer, MessageBatch, MessageOrigin};
use self::field_calls::RunningFieldScripts;
use self::lane_scheduler::LaneScheduler;
use self::late_messages::LateMessageTable;
use self::marks::DUE;
use self::node_activity::NodeActivityLog;
use self::suspended::SuspendedWaits;
use self::time_shares::TimeShares;
use self::waits::WaitCompletion;
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

/// See the module.
pub struct RuleWorker {
    shared: Arc<EngineShared>,
    queue: Arc<QueueHandle>,
    state: WorkerState,
    tenants: FxHashMap<TenantId, (TenantEpoch, Arc<TenantChains>)>,
    inbox: mpsc::UnboundedReceiver<WaitCompletion>,
    outbox: mpsc::UnboundedSender<WaitCompletion>,
    /// What has come back while nobody was processing.
    ready: VecDeque<WaitCompletion>,
    suspended: SuspendedWaits,
    /// More may wait than usually do, until one of those that have come back goes on.
    is_crowded: bool,
    batch: MessageBatch,
    /// Nothing leaves the batch any more: the journal has not taken it.
    is_diverting_stopped: bool,
    /// The message that walks was taken away.
    is_walk_cancelled: bool,
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
    /// When the walk that goes on began, or last waited, milliseconds: nodes need no clock of their own.
    now: i64,
    /// Nodes that a message of this tenant may go through, the one whose chains were last asked for.
    max_hops: (TenantId, u32),
    /// Memory for the moves of the next message.
    tasks: Vec<WalkTask>,
    /// How much of what has gone is swept out.
    purged_deletions: u64,
    /// A batch has begun and not come to its end: what is kept is ahead of the stored position.
    is_midway: bool,
    /// Messages of the lane that have come to their end, until what they do is stored.
    lane_notes: Vec<KeptNote>,
    /// Calculated fields whose scripts run.
    field_calls: RunningFieldScripts,
    /// Who watches the nodes, in a replay.
    node_activity: Option<Arc<Mutex<NodeActivityLog>>>,
}

impl RuleWorker {
    /// A worker of a queue.
    pub fn new(common: Arc<EngineShared>, queue: Arc<QueueHandle>) -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        let mut parts = WorkerState::new(
            queue.partitions,
            Partition {
                queue: QueueId(0),
                index: 0,
            },
            &common,
        );
        parts.is_lane = queue.role.is_lane();
        let swept = common.chains.deletions().count();
        Self {
            shared: common,
            queue,
            state: parts,
            tenants: FxHashMap::default(),
            inbox,
            outbox,
            ready: VecDeque::new(),
            suspended: SuspendedWaits::default(),
            is_crowded: false,
            batch: MessageBatch::default(),
            is_diverting_stopped: false,
            is_walk_cancelled: false,
            shares: TimeShares::new(),
            lane: LaneScheduler::default(),
            due: Vec::new(),
            late: LateMessageTable::default(),
            alarm_ends: FxHashMap::default(),
            partitions: Vec::new(),
            now: 0,
            max_hops: (TenantId::NULL, MAX_HOPS),
            tasks: Vec::new(),
            purged_deletions: swept,
            is_midway: false,
            lane_notes: Vec::new(),
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
        store: &EffectWriter,
    ) -> Result<Arc<TenantChains>, IngestShutdown> {
        self.refresh_fields(tenant, store).await?;
        let chains = self.load_chains(tenant, store).await?;
        self.max_hops = (tenant, max_hops_of(&chains));
        Ok(chains)
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

    async fn load_chains(
        &mut self,
        tenant: TenantId,
        store: &EffectWriter,
    ) -> Result<Arc<TenantChains>, IngestShutdown> {
        if let Some((epoch, chains)) = self.tenants.get(&tenant)
            && epoch.is_current()
        {
            return Ok(chains.clone());
        }
        let epoch = self.shared.chains.epoch(tenant);
        let load = |book: Arc<ChainRegistry>| async move { book.tenant(tenant).await };
        let loaded = self.load(tenant, "rule chains", load, store).await?;
        // Without them, the tenant's messages fail.
        let chains = loaded.unwrap_or_default();
        self.tenants.insert(tenant, (epoch, chains.clone()));
        Ok(chains)
    }

    /// What a tenant has, waiting until it can be loaded: a message that cannot find its chain must not be lost. `None`
    /// where it can never be read, which is to cost nobody else.
    async fn load<T, F>(
        &self,
        tenant: TenantId,
        what: &'static str,
        load: impl Fn(Arc<ChainRegistry>) -> F,
        store: &EffectWriter,
    ) -> Result<Option<T>, IngestShutdown>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        loop {
            // The database's driver wants its own runtime.
            let loading = self
                .shared
                .services
                .runtime
                .spawn(load(self.shared.chains.clone()));
            match loading.await {
                Ok(Ok(loaded)) => return Ok(Some(loaded)),
                Ok(Err(error)) if !error.kind().is_retryable() => {
                    error!(%tenant, %error, what, "what a tenant has cannot be read, it does without");
                    return Ok(None);
                }
                Ok(Err(error)) => {
                    if let Some(suppressed) = LOAD_GATE.open() {
                        warn!(%tenant, %error, what, suppressed, "cannot load what a tenant has, trying again");
                    }
                }
                Err(error) => error!(%tenant, %error, what, "loading what a tenant has has failed"),
            }
            store.pause().await?;
        }
    }

    /// Applies what waits, with what is kept, as of a position.
    async fn apply(
        &mut self,
        partition: Partition,
        next: Offset,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.state.meter.flush();
        if !self.queue.role.is_lane() {
            let states = &mut self.state.states;
            let is_done = |record| record <= next.0;
            self.state.marks.forget(partition, states, is_done);
        }
        let states = self.state.states.take_changes(partition);
        let effects = self.state.effects.with(states);
        let began = Instant::now();
        store.apply(partition, next, &effects).await?;
        self.charge_storing(began.elapsed());
        self.state.effects.complete(&*self.shared.services.devices);
        Ok(())
    }

    /// The same between records.
    async fn apply_between_records(
        &mut self,
        partition: Partition,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.state.meter.flush();
        let mut states = self.state.states.take_changes(partition);
        if self.queue.role.is_lane() {
            // Of messages that go on.
            states.extend(self.state.mark_pending(partition));
        }
        let effects = self.state.effects.with(states);
        let began = Instant::now();
        store.apply_between_records(partition, &effects).await?;
        self.charge_storing(began.elapsed());
        self.state.effects.complete(&*self.shared.services.devices);
        Ok(())
    }

    /// What takes long to store has cost its tenants that time, as if their messages had taken it.
    fn charge_storing(&mut self, took: Duration) {
        if took >= MIN_CHARGED_STORE_TIME {
            let bytes = self.state.effects.bytes_of_tenants();
            self.shares.charge(took, &bytes);
        }
    }

    /// Applies what messages have done so far, so that what is read next is as they left it. What is kept waits for the end
    /// of the batch: it belongs to the position behind it.
    async fn apply_pending(
        &mut self,
        partition: Partition,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        if self.state.effects.is_empty() {
            return Ok(());
        }
        let marks = self.state.mark_pending(partition);
        store
            .apply_between_records(partition, &self.state.effects.with(marks))
            .await?;
        self.state.effects.complete(&*self.shared.services.devices);
        Ok(())
    }

    /// Handles what was kept and has come due, as a batch of its own.
    async fn run_due(&mut self, store: &EffectWriter) -> Result<(), IngestShutdown> {
        let now = self.now_ms();
        let (mut notes, mut proofs) = (Vec::new(), Vec::new());
        self.due.clear();
        while self.due.len() < MAX_DUE
            && let Some((partition, due)) = self.state.states.take_due(now)
        {
            if self.field_calls.is_running(&due.key) {
                // What its scripts come to says when it is due next.
                self.state.states.put(partition, due.key, None, &due.value);
                continue;
            }
            if let Some(later) = self.waits_for_lanes(&due) {
                self.state.states.put(partition, due.key, Some(later), &due.value);
                continue;
            }
            match store.take_kept(in_flight::due(&due.key)) {
                KeptTurn::Now(note) => notes.extend(note),
                KeptTurn::Later => {
                    let later = Some(now + SUSPECT_PAUSE_MS);
                    self.state.states.put(partition, due.key, later, &due.value);
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
                self.apply_everywhere(store).await?;
                proofs.into_iter().for_each(KeptProof::finish);
            }
            return Ok(());
        }
        self.batch.begin();
        for record in 0..self.due.len() as u32 {
            self.batch.add(MessageOrigin { record, row: 0 });
        }
        self.batch.record = DUE;
        self.run_pack(None, store).await?;
        for partition in &self.partitions {
            let states = &mut self.state.states;
            self.state
                .marks
                .forget(*partition, states, |record| record == DUE);
        }
        self.apply_everywhere(store).await?;
        notes.into_iter().for_each(KeptNote::finish);
        proofs.into_iter().for_each(KeptProof::finish);
        Ok(())
    }

    /// Applies what waits where the partitions stand.
    async fn apply_everywhere(&mut self, store: &EffectWriter) -> Result<(), IngestShutdown> {
        self.state.meter.flush();
        for partition in self.partitions.clone() {
            if !self.state.effects.is_empty() || self.state.states.has_changes(partition) {
                self.apply_between_records(partition, store).await?;
            }
        }
        Ok(())
    }

    /// Drops what was kept for nodes, fields and entities that are no more.
    async fn purge_deleted(&mut self, store: &EffectWriter) -> Result<(), IngestShutdown> {
        let log = self.shared.chains.deletions();
        let count = log.count();
        if count == self.purged_deletions {
            return Ok(());
        }
        let gone: FxHashSet<Deletion> = log.since(self.purged_deletions).into_iter().collect();
        self.purged_deletions = count;
        let stays = |tenant: &TenantId| !gone.contains(&Deletion::Tenant(*tenant));
        self.tenants.retain(|tenant, _| stays(tenant));
        self.state.field_events.tenants.retain(|tenant, _| stays(tenant));
        self.state.states.purge(&gone);
        self.apply_everywhere(store).await
    }

    fn next_due_in(&mut self) -> Option<Duration> {
        let due = self.state.states.next_due()?;
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
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let states = store.states(partition).await?;
        self.state.states.load(partition, states);
        self.state.marks.load(partition, &mut self.state.states);
        self.partitions.push(partition);
        self.load_lane_partition(partition);
        self.load_late_partition(partition);
        Ok(())
    }

    fn revoke_partition(&mut self, partition: Partition) {
        self.drop_lane_partition(partition);
        self.state.marks.drop_partition(partition);
        self.drop_late_partition(partition);
        self.state.states.drop_partition(partition);
        self.partitions.retain(|it| *it != partition);
    }

    async fn process(
        &mut self,
        delivered: DeliveredBatch<'_>,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let partition = delivered.records.partition;
        self.state.partition = partition;
        if self.queue.role.is_lane() {
            self.fill_lane(&delivered);
            return self.apply(partition, delivered.next, store).await;
        }
        self.is_midway = true;
        self.batch.begin();
        self.batch.fill(&delivered);
        self.batch.record = delivered.next.0;
        self.run_pack(Some(&delivered), store).await?;
        self.apply(partition, delivered.next, store).await?;
        self.is_midway = false;
        if self.state.states.have_changed() {
            // Messages of other partitions have come back meanwhile.
            self.apply_everywhere(store).await?;
        }
        Ok(())
    }

    async fn wake(&mut self) {
        if !self.ready.is_empty() {
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
            resumed = self.inbox.recv() => self.ready.extend(resumed),
            () = timer => {}
        }
    }

    async fn work(&mut self, store: &EffectWriter) -> Result<(), IngestShutdown> {
        self.is_midway = true;
        while let Some(resumed) = self.ready.pop_front() {
            self.resume(resumed, store).await?;
        }
        if self.queue.role.is_lane() {
            self.run_lane(store).await?;
        }
        self.run_due(store).await?;
        self.note_inline();
        self.is_midway = false;
        self.apply_everywhere(store).await?;
        // What they do is stored: nobody dies of that any more, either.
        self.lane_notes.drain(..).for_each(KeptNote::finish);
        Ok(())
    }

    async fn flush(&mut self, store: &EffectWriter) {
        self.store_alarm_ends().await;
        // When the program stops in the midst of a batch, what that keeps is left to the next start, with what has
        // gone.
        if !self.is_midway {
            let _ = self.purge_deleted(store).await;
        }
    }
}
