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

impl RuleWorker {
    /// Processes the entries of the batch until the strategy is done with them.
    pub(super) async fn process_batch(
        &mut self,
        delivered: Option<&DeliveredBatch<'_>>,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let strategy = self.queue.strategy.read().clone();
        let mut attempts = BatchAttempts::new(&strategy, self.batch.entries.len());
        let mut which: Option<Vec<u32>> = None;
        let began = Instant::now();
        self.batch.is_fixed = delivered.is_none();
        loop {
            self.suspended.forget_waiters();
            self.run_round(delivered, &strategy, which.as_deref(), writer)
                .await?;
            self.flush_leaving(delivered).await;
            self.note_inline();
            self.check_open()?;
            let mut verdict = attempts.decide(&strategy, self.batch.wanted());
            if verdict == RetryDecision::Commit {
                self.detach_late(&strategy, delivered);
            }
            if verdict == RetryDecision::Commit
                && let Some(untried) = self.batch.give_up()
            {
                // They only waited for others, which are given up: that is no reason to give them up as well.
                attempts = BatchAttempts::new(&strategy, untried.len());
                verdict = RetryDecision::Retry(untried, Duration::ZERO);
            }
            self.tally(delivered, &verdict, attempts.retries());
            match verdict {
                RetryDecision::Commit => {
                    self.cancel_late(&strategy);
                    // Nothing can leave any more: its records are gone.
                    self.batch.is_fixed = true;
                    return Ok(());
                }
                RetryDecision::Retry(mut again, pause) => {
                    again.retain(|index| !self.batch.is_given_up(*index));
                    let (again, pause) = self
                        .divert_retries(again, pause, began.elapsed(), attempts.retries(), delivered)
                        .await;
                    self.pause_before(&again, pause, writer).await?;
                    self.cancel_retried(&again);
                    self.batch.begin_again(&again);
                    which = Some(again);
                }
            }
        }
    }

    async fn pause_before(
        &self,
        again: &[u32],
        pause: Duration,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        if again.is_empty() {
            return Ok(());
        }
        if let Some(suppressed) = RETRY_GATE.open() {
            let messages = again.len();
            warn!(queue = %self.queue.name, messages, ?pause, suppressed, "processing messages again");
        }
        writer.pause_for(pause.max(SHORTEST_PAUSE)).await
    }

    /// Ends what messages wait for that begin again.
    fn cancel_retried(&mut self, again: &[u32]) {
        let batch = &self.batch;
        let again: FxHashSet<u32> = again.iter().copied().collect();
        self.suspended
            .cancel(|handle, _| batch.is_current(*handle) && again.contains(&handle.entry));
    }

    /// Ends what is late, unless it may go on in the background.
    fn cancel_late(&mut self, strategy: &QueueStrategy) {
        if !strategy.keeps_late() && self.suspended.len() > 0 {
            let batch = &self.batch;
            self.suspended.cancel(|handle, _| batch.is_current(*handle));
        }
    }

    /// Once the queues take no more messages, what nodes wanted to put into them has failed for no reason of its own: nothing
    /// is given up then, and the next start does it again.
    pub(super) fn check_open(&self) -> Result<(), IngestShutdown> {
        let services = &self.shared.services;
        if services.engine.is_closed() || services.scripts.is_stopped() {
            Err(IngestShutdown)
        } else {
            Ok(())
        }
    }

    /// Submits messages once and waits for them, as long as the strategy has patience.
    async fn run_round(
        &mut self,
        delivered: Option<&DeliveredBatch<'_>>,
        strategy: &QueueStrategy,
        which: Option<&[u32]>,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let deadline = Instant::now() + strategy.timeout;
        let mut gate = match which {
            Some(which) => self.gate(which.iter().copied(), delivered, strategy),
            None => self.gate(0..self.batch.entries.len() as u32, delivered, strategy),
        };
        self.batch.notes_ends = strategy.submit != SubmitStrategyType::Burst;
        let mut look = self.next_look(deadline);
        let mut applied = Instant::now();
        loop {
            while let Some(index) = gate.next() {
                self.submit_or_divert(index, delivered, strategy, writer).await?;
                self.release_successors(&mut gate, strategy);
            }
            self.flush_leaving(delivered).await;
            if self.batch.open == 0 {
                return Ok(());
            }
            let until = if self.local.effects.is_empty() {
                look
            } else {
                look.min(applied + APPLY_DELAY)
            };
            let is_idle = !self.resume_one(until, writer).await?;
            if !self.local.effects.is_empty() && applied.elapsed() >= APPLY_DELAY {
                // What the others have done does not wait for those that take long.
                self.apply_pending(self.local.partition, writer).await?;
                applied = Instant::now();
            }
            if is_idle && until >= deadline {
                // Those that wait for others are late with them when the time is up.
                return Ok(());
            }
            if (is_idle && until >= look) || (self.lanes().is_some() && Instant::now() >= look) {
                self.divert_overdue(strategy, delivered);
                look = self.next_look(deadline);
            }
            self.release_successors(&mut gate, strategy);
        }
    }

    /// When it is next looked at whether messages wait too long, if nothing comes back before.
    fn next_look(&self, deadline: Instant) -> Instant {
        match self.shared_lanes() {
            Some(lanes) => deadline.min(Instant::now() + lanes.options.patience.0 / OVERDUE_CHECKS),
            None => deadline,
        }
    }

    /// Submits a message, unless it leaves the queue at once.
    async fn submit_or_divert(
        &mut self,
        index: u32,
        delivered: Option<&DeliveredBatch<'_>>,
        strategy: &QueueStrategy,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        if !self.queue.role.is_own() {
            let tenant = self
                .subject_of(index, delivered)
                .map_or(TenantId::NULL, |of| of.tenant);
            if self.check_divert_at_once(index, tenant, delivered) {
                self.divert_message(index);
                return Ok(());
            }
        }
        while self.suspended.len() >= MAX_SUSPENDED {
            let limit = Instant::now() + strategy.timeout;
            // Where nobody else is there, that may take as long as it likes: what may be submitted must not be given up
            // before it is.
            if !self.resume_one(limit, writer).await? && !self.queue.role.is_own() {
                self.shed_waits();
            }
        }
        self.submit(index, delivered, writer).await
    }

    fn gate(
        &self,
        which: impl Iterator<Item = u32>,
        delivered: Option<&DeliveredBatch<'_>>,
        strategy: &QueueStrategy,
    ) -> SubmitScheduler<EntityId> {
        let subject = |index| self.subject_of(index, delivered);
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
    pub(super) fn subject_of(&self, index: u32, delivered: Option<&DeliveredBatch<'_>>) -> Option<EntityKey> {
        let record = self.batch.entries.get(index as usize)?.origin.record_index as usize;
        Some(match delivered {
            Some(delivered) => delivered.readable.get(record)?.1.subject,
            None => self.due.get(record)?.1.key.subject,
        })
    }

    /// Lets follow what has waited for messages that have ended. Where a message that has failed is tried again, what has
    /// to come after it waits for that.
    fn release_successors(&mut self, gate: &mut SubmitScheduler<EntityId>, strategy: &QueueStrategy) {
        let MessageBatch { entries, ended, .. } = &mut self.batch;
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
    async fn resume_one(&mut self, deadline: Instant, writer: &EffectWriter) -> Result<bool, IngestShutdown> {
        let resumed = match self.suspended.ready.pop_front() {
            Some(resumed) => resumed,
            None => {
                self.shares.rest();
                let left = deadline.saturating_duration_since(Instant::now());
                tokio::select! {
                    biased;
                    resumed = self.suspended.inbox.recv() => match resumed {
                        Some(resumed) => resumed,
                        None => return Ok(false),
                    },
                    paused = writer.pause_for(left) => {
                        paused?;
                        return Ok(false);
                    }
                }
            }
        };
        self.resume(resumed, writer).await?;
        Ok(true)
    }

    /// Goes on with what was suspended, unless it is too late for its queue.
    pub(super) async fn resume(
        &mut self,
        resumed: WaitCompletion,
        writer: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.suspended.is_crowded = false;
        if !self.suspended.take(resumed.number) {
            // Nobody waits for it any more.
            return Ok(());
        }
        let handle = resumed.handle;
        let is_late =
            handle.generation != DETACHED && !self.batch.is_current(handle) && !self.late.has(handle);
        // Fields have taken in what has come, whatever becomes of the message.
        let is_field = matches!(resumed.result, WaitResult::Field(_));
        if is_late && !is_field && !self.queue.strategy.read().keeps_late() {
            return Ok(());
        }
        if !self.queue.role.is_own() {
            self.shares.resume_tenant(resumed.tenant);
        }
        // What it keeps belongs to the partition it came from.
        let own = std::mem::replace(&mut self.local.partition, resumed.handle.partition);
        let done = self.handle_wait_result(resumed, writer).await;
        self.local.partition = own;
        done
    }
}
