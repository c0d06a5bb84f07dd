//! Taking a batch through the strategies of its queue: submitting its messages, waiting for them, trying them again.

use std::time::Duration;

use fieldline_core::ingest::{DeliveredBatch, EffectWriter, IngestShutdown};
use fieldline_core::logging::LogGate;
use fieldline_model::entity::SubmitStrategyType;
use fieldline_model::{EntityId, EntityKey, TenantId};
use rustc_hash::FxHashSet;
use tokio::time::Instant;
use tracing::warn;

use super::RuleWorker;
use super::batch::MessageBatch;
use super::submit_scheduler::SubmitScheduler;
use super::waits::{WaitCompletion, WaitResult};
use super::walk::DETACHED;
use crate::strategy::{BatchAttempts, MessageOutcome, QueueStrategy, RetryDecision};

/// Messages of a worker that wait for something at the same time.
pub(super) const MAX_SUSPENDED: usize = 4096;
/// How long what messages have done waits for the rest of their batch before it is applied.
const APPLY_DELAY: Duration = Duration::from_millis(50);
/// How often it is looked at within the time of patience whether messages wait too long.
const OVERDUE_CHECKS: u32 = 4;
/// Shortest pause before messages are processed again.
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
static RETRY_GATE: LogGate = LogGate::new(2);

/// Takes the batch of a worker through the strategies of its queue.
pub(super) struct BatchRun<'a> {
    pub(super) worker: &'a mut RuleWorker,
    /// What it was made of; nothing where it is what has come due.
    pub(super) delivered: Option<&'a DeliveredBatch<'a>>,
    pub(super) strategy: &'a QueueStrategy,
    /// Where effects are stored.
    pub(super) writer: &'a EffectWriter,
}

impl BatchRun<'_> {
    /// Goes on until the strategy is done with all entries.
    async fn run(&mut self) -> Result<(), IngestShutdown> {
        let strategy = self.strategy;
        let mut attempts = BatchAttempts::new(strategy, self.worker.messages.batch.entries.len());
        let mut which: Option<Vec<u32>> = None;
        let began = Instant::now();
        self.worker.messages.batch.is_fixed = self.delivered.is_none();
        loop {
            self.worker.messages.suspended.forget_waiters();
            self.run_round(which.as_deref()).await?;
            self.flush_leaving().await;
            self.worker.report_times();
            self.worker.shared.check_open()?;
            let mut verdict = attempts.decide(strategy, self.worker.messages.batch.wanted());
            if verdict == RetryDecision::Commit {
                self.detach_late();
            }
            if verdict == RetryDecision::Commit
                && let Some(untried) = self.worker.messages.batch.give_up()
            {
                // They only waited for others, which are given up: that is no reason to give them up as well.
                attempts = BatchAttempts::new(strategy, untried.len());
                verdict = RetryDecision::Retry(untried, Duration::ZERO);
            }
            self.tally(&verdict, attempts.retries());
            match verdict {
                RetryDecision::Commit => {
                    self.cancel_late();
                    // Nothing can leave any more: its records are gone.
                    self.worker.messages.batch.is_fixed = true;
                    return Ok(());
                }
                RetryDecision::Retry(mut again, pause) => {
                    again.retain(|index| !self.worker.messages.batch.is_given_up(*index));
                    let (again, pause) = self
                        .divert_retries(again, pause, began.elapsed(), attempts.retries())
                        .await;
                    self.pause_before(&again, pause).await?;
                    self.cancel_retried(&again);
                    self.worker.messages.batch.begin_again(&again);
                    which = Some(again);
                }
            }
        }
    }

    async fn pause_before(&self, again: &[u32], pause: Duration) -> Result<(), IngestShutdown> {
        if again.is_empty() {
            return Ok(());
        }
        if let Some(suppressed) = RETRY_GATE.open() {
            let messages = again.len();
            warn!(queue = %self.worker.queue.name, messages, ?pause, suppressed, "processing messages again");
        }
        self.writer.pause_for(pause.max(SHORTEST_PAUSE)).await
    }

    /// Ends what messages wait for that begin again.
    fn cancel_retried(&mut self, again: &[u32]) {
        let batch = &self.worker.messages.batch;
        let again: FxHashSet<u32> = again.iter().copied().collect();
        self.worker
            .messages
            .suspended
            .cancel(|handle, _| batch.is_current(*handle) && again.contains(&handle.entry));
    }

    /// Ends what is late, unless it may go on in the background.
    fn cancel_late(&mut self) {
        if !self.strategy.keeps_late() && self.worker.messages.suspended.len() > 0 {
            let batch = &self.worker.messages.batch;
            self.worker
                .messages
                .suspended
                .cancel(|handle, _| batch.is_current(*handle));
        }
    }

    /// Submits messages once and waits for them, as long as the strategy has patience.
    async fn run_round(&mut self, which: Option<&[u32]>) -> Result<(), IngestShutdown> {
        let strategy = self.strategy;
        let deadline = Instant::now() + strategy.timeout;
        let mut gate = match which {
            Some(which) => self.gate(which.iter().copied()),
            None => self.gate(0..self.worker.messages.batch.entries.len() as u32),
        };
        self.worker.messages.batch.notes_ends = strategy.submit != SubmitStrategyType::Burst;
        let mut look = self.next_look(deadline);
        let mut applied = Instant::now();
        loop {
            while let Some(index) = gate.next() {
                self.submit_or_divert(index).await?;
                self.release_successors(&mut gate);
            }
            self.flush_leaving().await;
            if self.worker.messages.batch.open == 0 {
                return Ok(());
            }
            let until = if self.worker.local.effects.is_empty() {
                look
            } else {
                look.min(applied + APPLY_DELAY)
            };
            let is_idle = !self.resume_one(until).await?;
            if !self.worker.local.effects.is_empty() && applied.elapsed() >= APPLY_DELAY {
                // What the others have done does not wait for those that take long.
                let local = &mut self.worker.local;
                local.apply_pending(local.partition, self.writer).await?;
                applied = Instant::now();
            }
            if is_idle && until >= deadline {
                // Those that wait for others are late with them when the time is up.
                return Ok(());
            }
            if (is_idle && until >= look)
                || (self.worker.queue.role.open_lanes().is_some() && Instant::now() >= look)
            {
                self.divert_overdue();
                look = self.next_look(deadline);
            }
            self.release_successors(&mut gate);
        }
    }

    /// When it is next looked at whether messages wait too long, if nothing comes back before.
    fn next_look(&self, deadline: Instant) -> Instant {
        match self.worker.queue.role.shared_lanes() {
            Some(lanes) => deadline.min(Instant::now() + lanes.options.patience.0 / OVERDUE_CHECKS),
            None => deadline,
        }
    }

    /// Submits a message, unless it leaves the queue at once.
    async fn submit_or_divert(&mut self, index: u32) -> Result<(), IngestShutdown> {
        let strategy = self.strategy;
        if !self.worker.queue.role.is_own() {
            let tenant = self.subject_of(index).map_or(TenantId::NULL, |of| of.tenant);
            if self.check_divert_at_once(index, tenant) {
                self.worker.messages.divert(index);
                return Ok(());
            }
        }
        while self.worker.messages.suspended.len() >= MAX_SUSPENDED {
            let limit = Instant::now() + strategy.timeout;
            // Where nobody else is there, that may take as long as it likes: what may be submitted must not be given up
            // before it is.
            if !self.resume_one(limit).await? && !self.worker.queue.role.is_own() {
                let worker = &mut *self.worker;
                worker.messages.shed_waits(&mut worker.local.keyed_states);
            }
        }
        self.submit(index).await
    }

    fn gate(&self, which: impl Iterator<Item = u32>) -> SubmitScheduler<EntityId> {
        let strategy = self.strategy;
        let subject = |index| self.subject_of(index);
        match strategy.submit {
            SubmitStrategyType::Burst => SubmitScheduler::batches(usize::MAX, which),
            SubmitStrategyType::Batch => SubmitScheduler::batches(strategy.batch, which),
            SubmitStrategyType::Sequential => SubmitScheduler::batches(1, which),
            SubmitStrategyType::SequentialByOriginator => {
                let nobody = EntityId::from(TenantId::NULL);
                SubmitScheduler::queues(
                    which.map(|index| (index, subject(index).map_or(nobody, |of| of.entity))),
                )
            }
            SubmitStrategyType::SequentialByTenant => SubmitScheduler::queues(which.map(|index| {
                let tenant = subject(index).map_or(TenantId::NULL, |of| of.tenant);
                (index, tenant.into())
            })),
        }
    }

    /// Whom a message of the batch is about.
    pub(super) fn subject_of(&self, index: u32) -> Option<EntityKey> {
        let record = self
            .worker
            .messages
            .batch
            .entries
            .get(index as usize)?
            .origin
            .record_index as usize;
        Some(match self.delivered {
            Some(delivered) => delivered.readable.get(record)?.1.subject,
            None => self.worker.due.get(record)?.1.key.subject,
        })
    }

    /// Lets follow what has waited for messages that have ended. Where a message that has failed is tried again, what has
    /// to come after it waits for that.
    fn release_successors(&mut self, gate: &mut SubmitScheduler<EntityId>) {
        let strategy = self.strategy;
        let MessageBatch { entries, ended, .. } = &mut self.worker.messages.batch;
        for index in ended.drain(..) {
            let failed = entries
                .get(index as usize)
                .is_some_and(|entry| entry.outcome == MessageOutcome::Failed);
            if !(failed && strategy.keeps_order()) {
                gate.complete(index);
            }
        }
    }

    /// Waits for something that was suspended and goes on with it; returns false when the time is up.
    async fn resume_one(&mut self, deadline: Instant) -> Result<bool, IngestShutdown> {
        let resumed = match self.worker.messages.suspended.ready.pop_front() {
            Some(resumed) => resumed,
            None => {
                self.worker.shares.rest();
                let left = deadline.saturating_duration_since(Instant::now());
                tokio::select! {
                    biased;
                    resumed = self.worker.messages.suspended.inbox.recv() => match resumed {
                        Some(resumed) => resumed,
                        None => return Ok(false),
                    },
                    paused = self.writer.pause_for(left) => {
                        paused?;
                        return Ok(false);
                    }
                }
            }
        };
        self.worker.resume(resumed, self.writer).await?;
        Ok(true)
    }
}

impl RuleWorker {
    /// Processes the entries of the batch until the strategy is done with them.
    pub(super) async fn process_batch(
        &mut self,
        delivered: Option<&DeliveredBatch<'_>>,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let strategy = self.queue.strategy.read().clone();
        let mut run = BatchRun {
            worker: self,
            delivered,
            strategy: &strategy,
            writer,
        };
        run.run().await
    }

    /// Goes on with what was suspended, unless it is too late for its queue.
    pub(super) async fn resume(
        &mut self,
        resumed: WaitCompletion,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.messages.suspended.is_crowded = false;
        if !self.messages.suspended.take(resumed.number) {
            // Nobody waits for it any more.
            return Ok(());
        }
        let handle = resumed.handle;
        let is_late = handle.generation != DETACHED
            && !self.messages.batch.is_current(handle)
            && !self.messages.late.has(handle);
        // Fields have taken in what has come, whatever becomes of the message.
        let is_field = matches!(resumed.result, WaitResult::Field(_));
        if is_late && !is_field && !self.queue.strategy.read().keeps_late() {
            return Ok(());
        }
        if !self.queue.role.is_own() {
            self.shares.resume_tenant(resumed.tenant);
        }
        // What it keeps belongs to the partition it came from.
        let own = std::mem::replace(&mut self.local.partition, handle.partition);
        let WaitCompletion {
            result,
            place,
            tenant,
            ..
        } = resumed;
        let done = self
            .walk_context(handle, writer)
            .go_on(result, place, tenant)
            .await;
        self.local.partition = own;
        done
    }
}
