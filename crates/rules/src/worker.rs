//! One worker: it takes the records of its partitions through the rule chains.
//!
//! A delivery of records is a pack. Its messages walk their chains in place, one after the other, on the worker's thread;
//! only what has to wait is suspended, and comes back through the worker's inbox. When all are done, or their time is up
//! and the queue's strategy gives them up, what they do is stored together with the position behind them.

mod alarms;
mod build;
pub mod effects;
mod field_results;
#[cfg(test)]
mod field_tests;
mod field_values;
pub mod fields;
mod pack;
pub mod parts;
mod replay;
pub mod states;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod usage_tests;
mod walk;
pub(crate) mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::ingest::{Applier, Delivered, Processor, Stopping};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{AlarmTouch, Offset, Partition, QueueId};
use fieldline_model::entity::SubmitStrategyType;
use fieldline_model::{EntityId, TenantId};
use fieldline_script::Host;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{error, warn};
use uuid::Uuid;

use self::pack::{Due, Gate, Origin, Pack};
use self::parts::Parts;
use self::walk::Resumed;
use self::watch::Watch;
use crate::book::TenantChains;
use crate::engine::{Common, QueueHandle};
use crate::strategy::{Attempts, Outcome, Strategy, Verdict};

/// Messages of a worker that wait for something at the same time.
const MAX_SUSPENDED: usize = 4096;
/// Shortest pause before messages are processed again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Timers that are handled together.
const MAX_DUE: usize = 1000;
static CHAINS_GATE: LogGate = LogGate::new(1);
static RETRY_GATE: LogGate = LogGate::new(2);

/// See the module.
pub struct Worker {
    common: Arc<Common>,
    queue: Arc<QueueHandle>,
    parts: Parts,
    tenants: FxHashMap<TenantId, Arc<TenantChains>>,
    generation: u64,
    inbox: mpsc::UnboundedReceiver<Resumed>,
    outbox: mpsc::UnboundedSender<Resumed>,
    /// What has come back while nobody was processing.
    ready: VecDeque<Resumed>,
    suspended: usize,
    pack: Pack,
    due: Vec<(Partition, Due)>,
    /// Alarms whose end has moved, until that is stored.
    touches: FxHashMap<Uuid, AlarmTouch>,
    /// Where the store stands in each partition.
    positions: FxHashMap<Partition, Offset>,
    /// Who watches the nodes, in a replay.
    watch: Option<Arc<Mutex<Watch>>>,
}

impl Worker {
    /// A worker of a queue.
    pub fn new(common: Arc<Common>, queue: Arc<QueueHandle>) -> Self {
        let (outbox, inbox) = mpsc::unbounded_channel();
        let parts = Parts::new(
            Host::new(common.script_limits.clone()),
            queue.partitions,
            Partition {
                queue: QueueId(0),
                index: 0,
            },
            &common,
        );
        Self {
            common,
            queue,
            parts,
            tenants: FxHashMap::default(),
            generation: 0,
            inbox,
            outbox,
            ready: VecDeque::new(),
            suspended: 0,
            pack: Pack::default(),
            due: Vec::new(),
            touches: FxHashMap::default(),
            positions: FxHashMap::default(),
            watch: None,
        }
    }

    fn now_ms(&self) -> i64 {
        self.common.services.now_ms()
    }

    /// The chains of a tenant, waiting until they can be loaded: a message that cannot find its chain must not be lost.
    async fn chains(&mut self, tenant: TenantId, store: &Applier) -> Result<Arc<TenantChains>, Stopping> {
        self.know_fields(tenant, store).await?;
        let generation = self.common.book.generation();
        if generation != self.generation {
            self.tenants.clear();
            self.generation = generation;
        }
        if let Some(chains) = self.tenants.get(&tenant) {
            return Ok(chains.clone());
        }
        loop {
            let book = self.common.book.clone();
            // The database's driver wants its own runtime.
            let loaded = self
                .common
                .services
                .runtime
                .spawn(async move { book.tenant(tenant).await })
                .await;
            match loaded {
                Ok(Ok(chains)) => {
                    self.tenants.insert(tenant, chains.clone());
                    return Ok(chains);
                }
                Ok(Err(error)) if !error.kind().is_retryable() => {
                    error!(%tenant, %error, "the rule chains of a tenant cannot be read, its messages fail");
                    let none = Arc::new(TenantChains::default());
                    self.tenants.insert(tenant, none.clone());
                    return Ok(none);
                }
                Ok(Err(error)) => {
                    if let Some(suppressed) = CHAINS_GATE.open() {
                        warn!(%tenant, %error, suppressed, "cannot load rule chains, trying again");
                    }
                }
                Err(error) => error!(%tenant, %error, "loading rule chains has failed"),
            }
            store.pause().await?;
        }
    }

    /// Processes the entries of the pack until the strategy is done with them.
    async fn run_pack(
        &mut self,
        delivered: Option<&Delivered<'_>>,
        strategy: &Strategy,
        store: &Applier,
    ) -> Result<(), Stopping> {
        let mut attempts = Attempts::new(strategy, self.pack.entries.len());
        let mut which: Option<Vec<u32>> = None;
        loop {
            self.run_round(delivered, strategy, which.as_deref(), store)
                .await?;
            let mut verdict = attempts.decide(strategy, self.pack.wanted());
            if verdict == Verdict::Commit
                && let Some(untried) = self.pack.give_up()
            {
                // They only waited for others, which are given up: that is no reason to give them up as well.
                attempts = Attempts::new(strategy, untried.len());
                verdict = Verdict::Retry(untried, Duration::ZERO);
            }
            self.count(delivered, &verdict, attempts.retries());
            match verdict {
                Verdict::Commit => return self.check_open(),
                Verdict::Retry(mut again, pause) => {
                    again.retain(|index| !self.pack.is_given_up(*index));
                    if let Some(suppressed) = RETRY_GATE.open() {
                        let messages = again.len();
                        warn!(queue = %self.queue.name, messages, ?pause, suppressed, "processing messages again");
                    }
                    self.check_open()?;
                    store.pause_for(pause.max(SHORTEST_PAUSE)).await?;
                    self.pack.number += 1;
                    self.pack.open = 0;
                    for index in &again {
                        if let Some(entry) = self.pack.entries.get_mut(*index as usize) {
                            entry.live = 0;
                            entry.outcome = Outcome::Open;
                        }
                    }
                    self.pack.failures.clear();
                    which = Some(again);
                }
            }
        }
    }

    /// Once the queues take no more messages, what nodes wanted to put into them has failed for no reason of its own: nothing
    /// is given up then, and the next start does it again.
    fn check_open(&self) -> Result<(), Stopping> {
        if self.common.services.engine.is_closed() {
            Err(Stopping)
        } else {
            Ok(())
        }
    }

    /// Submits messages once and waits for them, as long as the strategy has patience.
    async fn run_round(
        &mut self,
        delivered: Option<&Delivered<'_>>,
        strategy: &Strategy,
        which: Option<&[u32]>,
        store: &Applier,
    ) -> Result<(), Stopping> {
        let deadline = Instant::now() + strategy.timeout;
        let count = self.pack.entries.len() as u32;
        if strategy.submit == SubmitStrategyType::Burst {
            for position in 0..which.map_or(count, |which| which.len() as u32) {
                let index = which.map_or(Some(position), |which| which.get(position as usize).copied());
                let Some(index) = index else { break };
                // However long that takes: what is not even submitted must not be given up.
                while self.suspended >= MAX_SUSPENDED {
                    self.resume_one(Instant::now() + strategy.timeout, store).await?;
                }
                self.submit(index, delivered, store).await?;
            }
            while self.pack.open > 0 {
                if !self.resume_one(deadline, store).await? {
                    break;
                }
            }
            return Ok(());
        }
        let all: Vec<u32> = which.map_or_else(|| (0..count).collect(), <[u32]>::to_vec);
        let waiting = all
            .into_iter()
            .map(|index| (index, self.whose(index, delivered, strategy.submit)))
            .collect();
        let mut gate = Gate::new(strategy.submit, strategy.batch, waiting);
        self.pack.notes_ends = true;
        loop {
            while let Some(index) = gate.next() {
                self.submit(index, delivered, store).await?;
                self.tell_gate(&mut gate, strategy);
            }
            if self.pack.open == 0 {
                return Ok(());
            }
            if !self.resume_one(deadline, store).await? {
                // Those that were not even submitted are late as well.
                return Ok(());
            }
            self.tell_gate(&mut gate, strategy);
        }
    }

    /// Lets follow what has waited for messages that have ended. Where a message that has failed is tried again, what has
    /// to come after it waits for that.
    fn tell_gate(&mut self, gate: &mut Gate, strategy: &Strategy) {
        let Pack { entries, ended, .. } = &mut self.pack;
        for index in ended.drain(..) {
            let failed = entries
                .get(index as usize)
                .is_some_and(|entry| entry.outcome == Outcome::Failed);
            if !(failed && strategy.keeps_order()) {
                gate.ended(index, strategy.batch);
            }
        }
    }

    fn whose(&self, index: u32, delivered: Option<&Delivered<'_>>, submit: SubmitStrategyType) -> EntityId {
        let origin = self.pack.entries.get(index as usize).map(|entry| entry.origin);
        let subject = match (delivered, origin) {
            (Some(delivered), Some(origin)) => delivered
                .readable
                .get(origin.record as usize)
                .map(|(_, record)| record.subject),
            (None, Some(origin)) => self
                .due
                .get(origin.record as usize)
                .map(|(_, due)| due.key.subject),
            _ => None,
        };
        match subject {
            Some(subject) if submit == SubmitStrategyType::SequentialByTenant => subject.tenant.into(),
            Some(subject) => subject.entity,
            None => TenantId::NULL.into(),
        }
    }

    /// Waits for something that was suspended and goes on with it; returns false when the time is up.
    async fn resume_one(&mut self, deadline: Instant, store: &Applier) -> Result<bool, Stopping> {
        let resumed = match self.ready.pop_front() {
            Some(resumed) => resumed,
            None => {
                let left = deadline.saturating_duration_since(Instant::now());
                tokio::select! {
                    biased;
                    resumed = self.inbox.recv() => match resumed {
                        Some(resumed) => resumed,
                        None => return Ok(false),
                    },
                    paused = store.pause_for(left) => {
                        paused?;
                        return Ok(false);
                    }
                }
            }
        };
        self.resume(resumed, store).await?;
        Ok(true)
    }

    async fn resume(&mut self, resumed: Resumed, store: &Applier) -> Result<(), Stopping> {
        self.suspended = self.suspended.saturating_sub(1);
        let is_late = resumed.ticket.pack != self.pack.number && resumed.ticket.pack != walk::DETACHED;
        if is_late && !self.queue.strategy.read().keeps_late() {
            return Ok(());
        }
        // What it keeps belongs to the partition it came from.
        let own = std::mem::replace(&mut self.parts.partition, resumed.ticket.partition);
        let done = self.go_on(resumed, store).await;
        self.parts.partition = own;
        done
    }

    /// Applies what waits, with what is kept, as of a position.
    async fn apply(&mut self, partition: Partition, next: Offset, store: &Applier) -> Result<(), Stopping> {
        self.parts.meter.flush();
        let states = self.parts.states.take_changes(partition);
        let effects = self.parts.effects.with(states);
        store.apply(partition, next, &effects).await?;
        self.parts.effects.settle(&*self.common.services.devices);
        self.positions.insert(partition, next);
        Ok(())
    }

    /// Applies what messages have done so far, so that what is read next is as they left it. What is kept waits for the end
    /// of the pack: it belongs to the position behind it.
    async fn apply_pending(&mut self, partition: Partition, store: &Applier) -> Result<(), Stopping> {
        if self.parts.effects.is_empty() {
            return Ok(());
        }
        let at = self.positions.get(&partition).copied().unwrap_or_default();
        store
            .apply(partition, at, &self.parts.effects.with(Vec::new()))
            .await?;
        self.parts.effects.settle(&*self.common.services.devices);
        Ok(())
    }

    fn count(&mut self, delivered: Option<&Delivered<'_>>, verdict: &Verdict, retries: u32) {
        let commits = *verdict == Verdict::Commit;
        let mut counts = self.queue.counts.lock();
        let (mut failed, mut late) = (0_u64, 0_u64);
        let mut last = None;
        for (index, outcome) in (0..).zip(self.pack.outcomes()) {
            if outcome != Outcome::Done {
                failed += u64::from(outcome == Outcome::Failed);
                late += u64::from(outcome == Outcome::Open);
                last = Some(index);
            }
        }
        // Most packs are of one tenant and succeed: only then is it worth being quick.
        let mut each = |tenant: TenantId, outcome: Outcome| {
            let (counts, _) = counts.of(tenant);
            if commits {
                counts.total += 1;
            }
            match (outcome, commits) {
                (Outcome::Done, true) => counts.successful += 1,
                (Outcome::Failed, true) => counts.failed += 1,
                (Outcome::Open, true) => counts.timeout += 1,
                (Outcome::Failed, false) => counts.tmp_failed += 1,
                (Outcome::Open, false) => counts.tmp_timeout += 1,
                (Outcome::Done, false) => {}
            }
        };
        let tenant_of = |origin: Origin| match delivered {
            Some(delivered) => delivered
                .readable
                .get(origin.record as usize)
                .map(|(_, record)| record.subject.tenant),
            None => self
                .due
                .get(origin.record as usize)
                .map(|(_, due)| due.key.subject.tenant),
        };
        let mut iterated: Vec<TenantId> = Vec::new();
        for entry in &self.pack.entries {
            let outcome = if entry.live > 0 {
                Outcome::Open
            } else {
                entry.outcome
            };
            if let Some(tenant) = tenant_of(entry.origin) {
                each(tenant, outcome);
                if iterated.last() != Some(&tenant) && !iterated.contains(&tenant) {
                    iterated.push(tenant);
                }
            }
        }
        let succeeded = failed == 0 && late == 0;
        for tenant in iterated {
            let (counts, _) = counts.of(tenant);
            if succeeded {
                counts.successful_iterations += 1;
            } else {
                counts.failed_iterations += 1;
            }
        }
        if let Some(last) = last
            && let Some(failure) = self.pack.failures.get(&last)
            && let Some(tenant) = self
                .pack
                .entries
                .get(last as usize)
                .and_then(|entry| tenant_of(entry.origin))
        {
            counts.of(tenant).1 = Some(failure.clone());
        }
        metrics::counter!("fieldline_rules_messages_total").increment(if commits {
            self.pack.entries.len() as u64
        } else {
            0
        });
        metrics::counter!("fieldline_rules_failed_total").increment(if commits { failed } else { 0 });
        metrics::counter!("fieldline_rules_timed_out_total").increment(if commits { late } else { 0 });
        metrics::counter!("fieldline_rules_retries_total").increment(u64::from(!commits && retries > 0));
    }

    /// Handles what was kept and has come due, as a pack of its own.
    async fn run_due(&mut self, store: &Applier) -> Result<(), Stopping> {
        let now = self.now_ms();
        self.due.clear();
        while self.due.len() < MAX_DUE
            && let Some((partition, key, value)) = self.parts.states.take_due(now)
        {
            self.due.push((partition, Due { key, value }));
        }
        if self.due.is_empty() {
            return Ok(());
        }
        self.pack.begin();
        for record in 0..self.due.len() as u32 {
            self.pack.add(Origin { record, row: 0 });
        }
        let strategy = self.queue.strategy.read().clone();
        self.run_pack(None, &strategy, store).await?;
        self.apply_everywhere(store).await
    }

    /// Applies what waits where the partitions stand.
    async fn apply_everywhere(&mut self, store: &Applier) -> Result<(), Stopping> {
        self.parts.meter.flush();
        let positions: Vec<_> = self
            .positions
            .iter()
            .map(|(partition, at)| (*partition, *at))
            .collect();
        for (partition, at) in positions {
            if !self.parts.effects.is_empty() || self.parts.states.has_changes(partition) {
                self.apply(partition, at, store).await?;
            }
        }
        Ok(())
    }

    fn next_due_in(&mut self) -> Option<Duration> {
        let due = self.parts.states.next_due()?;
        let left = due.saturating_sub(self.now_ms()).max(0);
        // Not longer than this: the clock may be set forward meanwhile.
        Some(Duration::from_millis(left.unsigned_abs()).min(Duration::from_secs(1)))
    }
}

#[async_trait(?Send)]
impl Processor for Worker {
    async fn assigned(&mut self, partition: Partition, store: &Applier) -> Result<(), Stopping> {
        let states = store.states(partition).await?;
        self.parts.states.load(partition, states);
        loop {
            match store.position(partition).await {
                Ok(at) => {
                    self.positions.insert(partition, at);
                    return Ok(());
                }
                Err(error) => {
                    error!(%partition, %error, "cannot read where the rule engine stands");
                    store.pause().await?;
                }
            }
        }
    }

    fn revoked(&mut self, partition: Partition) {
        self.parts.states.drop_partition(partition);
        self.positions.remove(&partition);
    }

    async fn process(&mut self, delivered: Delivered<'_>, store: &Applier) -> Result<(), Stopping> {
        let partition = delivered.records.partition;
        self.parts.partition = partition;
        self.pack.begin();
        self.pack.fill(&delivered);
        let strategy = self.queue.strategy.read().clone();
        self.run_pack(Some(&delivered), &strategy, store).await?;
        self.apply(partition, delivered.next, store).await
    }

    async fn wake(&mut self) {
        if !self.ready.is_empty() {
            return;
        }
        let due = self.next_due_in();
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

    async fn work(&mut self, store: &Applier) -> Result<(), Stopping> {
        while let Some(resumed) = self.ready.pop_front() {
            self.resume(resumed, store).await?;
        }
        self.run_due(store).await?;
        self.apply_everywhere(store).await
    }

    async fn flush(&mut self, _store: &Applier) {
        self.store_touches().await;
    }
}
