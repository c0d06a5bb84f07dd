//! Taking a pack through the strategies of its queue: submitting its messages, waiting for them, trying them again.

use std::time::Duration;

use fieldline_core::ingest::{Applier, Delivered, Stopping};
use fieldline_core::logging::LogGate;
use fieldline_model::entity::SubmitStrategyType;
use fieldline_model::{EntityId, Subject, TenantId};
use tokio::time::Instant;
use tracing::warn;

use super::Worker;
use super::gate::Gate;
use super::pack::Pack;
use super::waits::Resumed;
use super::walk::DETACHED;
use crate::strategy::{Attempts, Outcome, Strategy, Verdict};

/// Messages of a worker that wait for something at the same time.
pub(super) const MAX_SUSPENDED: usize = 4096;
/// Shortest pause before messages are processed again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
static RETRY_GATE: LogGate = LogGate::new(2);

impl Worker {
    /// Processes the entries of the pack until the strategy is done with them.
    pub(super) async fn run_pack(
        &mut self,
        delivered: Option<&Delivered<'_>>,
        store: &Applier,
    ) -> Result<(), Stopping> {
        let strategy = self.queue.strategy.read().clone();
        let mut attempts = Attempts::new(&strategy, self.pack.entries.len());
        let mut which: Option<Vec<u32>> = None;
        loop {
            self.run_round(delivered, &strategy, which.as_deref(), store)
                .await?;
            self.check_open()?;
            let mut verdict = attempts.decide(&strategy, self.pack.wanted());
            if verdict == Verdict::Commit
                && let Some(untried) = self.pack.give_up()
            {
                // They only waited for others, which are given up: that is no reason to give them up as well.
                attempts = Attempts::new(&strategy, untried.len());
                verdict = Verdict::Retry(untried, Duration::ZERO);
            }
            self.tally(delivered, &verdict, attempts.retries());
            match verdict {
                Verdict::Commit => return Ok(()),
                Verdict::Retry(mut again, pause) => {
                    again.retain(|index| !self.pack.is_given_up(*index));
                    if let Some(suppressed) = RETRY_GATE.open() {
                        let messages = again.len();
                        warn!(queue = %self.queue.name, messages, ?pause, suppressed, "processing messages again");
                    }
                    store.pause_for(pause.max(SHORTEST_PAUSE)).await?;
                    self.pack.begin_again(&again);
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
        let mut gate = match which {
            Some(which) => self.gate(which.iter().copied(), delivered, strategy),
            None => self.gate(0..self.pack.entries.len() as u32, delivered, strategy),
        };
        self.pack.notes_ends = strategy.submit != SubmitStrategyType::Burst;
        loop {
            while let Some(index) = gate.next() {
                // However long that takes: what may be submitted must not be given up before it is.
                while self.suspended >= MAX_SUSPENDED {
                    self.resume_one(Instant::now() + strategy.timeout, store).await?;
                }
                self.submit(index, delivered, store).await?;
                self.tell_gate(&mut gate, strategy);
            }
            // Those that wait for others are late with them when the time is up.
            if self.pack.open == 0 || !self.resume_one(deadline, store).await? {
                return Ok(());
            }
            self.tell_gate(&mut gate, strategy);
        }
    }

    fn gate(
        &self,
        which: impl Iterator<Item = u32>,
        delivered: Option<&Delivered<'_>>,
        strategy: &Strategy,
    ) -> Gate<EntityId> {
        let subject = |index| self.subject_of(index, delivered);
        match strategy.submit {
            SubmitStrategyType::Burst => Gate::batches(usize::MAX, which),
            SubmitStrategyType::Batch => Gate::batches(strategy.batch, which),
            SubmitStrategyType::Sequential => Gate::batches(1, which),
            SubmitStrategyType::SequentialByOriginator => {
                let nobody = EntityId::from(TenantId::NULL);
                Gate::queues(which.map(|index| (index, subject(index).map_or(nobody, |of| of.entity))))
            }
            SubmitStrategyType::SequentialByTenant => Gate::queues(which.map(|index| {
                let tenant = subject(index).map_or(TenantId::NULL, |of| of.tenant);
                (index, tenant.into())
            })),
        }
    }

    /// Whom a message of the pack is about.
    pub(super) fn subject_of(&self, index: u32, delivered: Option<&Delivered<'_>>) -> Option<Subject> {
        let record = self.pack.entries.get(index as usize)?.origin.record as usize;
        Some(match delivered {
            Some(delivered) => delivered.readable.get(record)?.1.subject,
            None => self.due.get(record)?.1.key.subject,
        })
    }

    /// Lets follow what has waited for messages that have ended. Where a message that has failed is tried again, what has
    /// to come after it waits for that.
    fn tell_gate(&mut self, gate: &mut Gate<EntityId>, strategy: &Strategy) {
        let Pack { entries, ended, .. } = &mut self.pack;
        for index in ended.drain(..) {
            let failed = entries
                .get(index as usize)
                .is_some_and(|entry| entry.outcome == Outcome::Failed);
            if !(failed && strategy.keeps_order()) {
                gate.ended(index);
            }
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

    /// Goes on with what was suspended, unless it is too late for its queue.
    pub(super) async fn resume(&mut self, resumed: Resumed, store: &Applier) -> Result<(), Stopping> {
        self.suspended = self.suspended.saturating_sub(1);
        self.is_crowded = false;
        let is_late = resumed.ticket.pack != self.pack.number && resumed.ticket.pack != DETACHED;
        if is_late && !self.queue.strategy.read().keeps_late() {
            return Ok(());
        }
        // What it keeps belongs to the partition it came from.
        let own = std::mem::replace(&mut self.parts.partition, resumed.ticket.partition);
        let done = self.go_on(resumed, store).await;
        self.parts.partition = own;
        done
    }
}
