//! Taking a pack through the strategies of its queue: submitting its messages, waiting for them, trying them again.

use std::time::Duration;

use fieldline_core::ingest::{Applier, Delivered, Stopping};
use fieldline_core::logging::LogGate;
use fieldline_model::entity::SubmitStrategyType;
use fieldline_model::{EntityId, Subject, TenantId};
use rustc_hash::FxHashSet;
use tokio::time::Instant;
use tracing::warn;

use super::Worker;
use super::gate::Gate;
use super::pack::Pack;
use super::waits::{Back, Resumed};
use super::walk::DETACHED;
use crate::strategy::{Attempts, Outcome, Strategy, Verdict};

/// Messages of a worker that wait for something at the same time.
pub(super) const MAX_SUSPENDED: usize = 4096;
/// How long what messages have done waits for the rest of their pack before it is applied.
const SOON: Duration = Duration::from_millis(50);
/// How often it is looked at within the time of patience whether messages wait too long.
const LOOKS: u32 = 4;
/// Shortest pause before messages are processed again.
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
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
        let began = Instant::now();
        self.refuses_to_leave = false;
        self.pack.is_fixed = delivered.is_none();
        loop {
            self.suspended.forget_waiters();
            self.run_round(delivered, &strategy, which.as_deref(), store)
                .await?;
            self.flush_leaving(delivered).await;
            self.note_inline();
            self.check_open()?;
            let mut verdict = attempts.decide(&strategy, self.pack.wanted());
            if verdict == Verdict::Commit {
                self.let_late_go(&strategy, delivered);
            }
            if verdict == Verdict::Commit
                && let Some(untried) = self.pack.give_up()
            {
                // They only waited for others, which are given up: that is no reason to give them up as well.
                attempts = Attempts::new(&strategy, untried.len());
                verdict = Verdict::Retry(untried, Duration::ZERO);
            }
            self.tally(delivered, &verdict, attempts.retries());
            match verdict {
                Verdict::Commit => {
                    self.cut_late(&strategy);
                    // Nothing can leave any more: its records are gone.
                    self.pack.is_fixed = true;
                    return Ok(());
                }
                Verdict::Retry(mut again, pause) => {
                    again.retain(|index| !self.pack.is_given_up(*index));
                    let so_far = (began.elapsed(), attempts.retries());
                    let (again, pause) = self.divert_retries(again, pause, so_far, delivered).await;
                    self.pause_before(&again, pause, store).await?;
                    self.cut_again(&again);
                    self.pack.begin_again(&again);
                    which = Some(again);
                }
            }
        }
    }

    async fn pause_before(&self, again: &[u32], pause: Duration, store: &Applier) -> Result<(), Stopping> {
        if again.is_empty() {
            return Ok(());
        }
        if let Some(suppressed) = RETRY_GATE.open() {
            let messages = again.len();
            warn!(queue = %self.queue.name, messages, ?pause, suppressed, "processing messages again");
        }
        store.pause_for(pause.max(SHORTEST_PAUSE)).await
    }

    /// Ends what messages wait for that begin again.
    fn cut_again(&mut self, again: &[u32]) {
        let pack = &self.pack;
        let again: FxHashSet<u32> = again.iter().copied().collect();
        self.suspended
            .cut(|ticket, _| pack.is_current(*ticket) && again.contains(&ticket.entry));
    }

    /// Ends what is late, unless it may go on in the background.
    fn cut_late(&mut self, strategy: &Strategy) {
        if !strategy.keeps_late() && self.suspended.len() > 0 {
            let pack = &self.pack;
            self.suspended.cut(|ticket, _| pack.is_current(*ticket));
        }
    }

    /// Once the queues take no more messages, what nodes wanted to put into them has failed for no reason of its own: nothing
    /// is given up then, and the next start does it again.
    pub(super) fn check_open(&self) -> Result<(), Stopping> {
        let services = &self.common.services;
        if services.engine.is_closed() || services.scripts.is_stopped() {
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
        let mut look = self.next_look(deadline);
        let mut applied = Instant::now();
        loop {
            while let Some(index) = gate.next() {
                self.take_on(index, delivered, strategy, store).await?;
                self.tell_gate(&mut gate, strategy);
            }
            self.flush_leaving(delivered).await;
            if self.pack.open == 0 {
                return Ok(());
            }
            let until = if self.parts.effects.is_empty() {
                look
            } else {
                look.min(applied + SOON)
            };
            let is_idle = !self.resume_one(until, store).await?;
            if !self.parts.effects.is_empty() && applied.elapsed() >= SOON {
                // What the others have done does not wait for those that take long.
                self.apply_pending(self.parts.partition, store).await?;
                applied = Instant::now();
            }
            if is_idle && until >= deadline {
                // Those that wait for others are late with them when the time is up.
                return Ok(());
            }
            if (is_idle && until >= look) || (self.lanes().is_some() && Instant::now() >= look) {
                self.lose_patience(strategy, delivered);
                look = self.next_look(deadline);
            }
            self.tell_gate(&mut gate, strategy);
        }
    }

    /// When it is next looked at whether messages wait too long, if nothing comes back before.
    fn next_look(&self, deadline: Instant) -> Instant {
        match self.shared_lanes() {
            Some(lanes) => deadline.min(Instant::now() + lanes.options.patience.0 / LOOKS),
            None => deadline,
        }
    }

    /// Submits a message, unless it leaves the queue at once.
    async fn take_on(
        &mut self,
        index: u32,
        delivered: Option<&Delivered<'_>>,
        strategy: &Strategy,
        store: &Applier,
    ) -> Result<(), Stopping> {
        if !self.queue.role.is_own() {
            let tenant = self
                .subject_of(index, delivered)
                .map_or(TenantId::NULL, |of| of.tenant);
            if self.leaves_at_once(index, tenant, delivered) {
                self.leave_pack(index);
                return Ok(());
            }
        }
        while self.suspended.len() >= MAX_SUSPENDED {
            let limit = Instant::now() + strategy.timeout;
            // Where nobody else is there, that may take as long as it likes: what may be submitted must not be given up
            // before it is.
            if !self.resume_one(limit, store).await? && !self.queue.role.is_own() {
                self.relieve();
            }
        }
        self.submit(index, delivered, store).await
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
                self.shares.rest();
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
        self.is_crowded = false;
        if !self.suspended.take(resumed.number) {
            // Nobody waits for it any more.
            return Ok(());
        }
        let ticket = resumed.ticket;
        let is_late = ticket.pack != DETACHED && !self.pack.is_current(ticket) && !self.late.has(ticket);
        // Fields have taken in what has come, whatever becomes of the message.
        let is_field = matches!(resumed.back, Back::Field(_));
        if is_late && !is_field && !self.queue.strategy.read().keeps_late() {
            return Ok(());
        }
        if !self.queue.role.is_own() {
            self.shares.goes_on(resumed.tenant);
        }
        // What it keeps belongs to the partition it came from.
        let own = std::mem::replace(&mut self.parts.partition, resumed.ticket.partition);
        let done = self.go_on(resumed, store).await;
        self.parts.partition = own;
        done
    }
}
