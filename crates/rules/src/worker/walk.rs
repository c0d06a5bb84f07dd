//! Walking chains in place.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use fieldline_core::ingest::{Applier, Stopping};
use fieldline_core::ports::Partition;
use fieldline_core::usage::UsageKey;
use fieldline_model::entity::{EVENT_IN, EVENT_OUT};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use futures::FutureExt as _;

use super::Worker;
use super::pack::Due;
use crate::book::TenantChains;
use crate::chain::{Chain, Compiled};
use crate::fields::News;
use crate::message::{Caller, Msg};
use crate::node::{Ctx, Label, NodeError, Step, Waiting};
use crate::stats::LastFailure;

/// Steps that a message, and all that it becomes, may take before it waits.
const MAX_STEPS: u32 = 1_000_000;
/// Nodes that a message may go through, whatever its tenant's profile says.
const MAX_HOPS: u32 = 10_000;

/// The pack of what is acknowledged already.
pub(super) const DETACHED: u64 = u64::MAX;

/// Which entry of which pack something belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    pub(super) pack: u64,
    pub(super) entry: u32,
    pub(super) partition: Partition,
}

/// Where a message is.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) chain: Arc<Chain>,
    pub(super) at: usize,
}

impl Place {
    pub(super) fn node(&self) -> Option<&Compiled> {
        self.chain.nodes.get(self.at)
    }
}

/// What a message does next.
pub(super) enum Move {
    /// It comes to a node.
    Come(Msg, Place),
    /// It leaves a node.
    Leave(Msg, Place, Label),
    /// A node has answered.
    Answer(Step, Option<Place>, TenantId),
    /// Something that a node kept has come due.
    Due(Due, Place),
    /// Calculated fields are told what has changed.
    Feed(Vec<News>),
}

impl Move {
    fn place(&self) -> Option<&Place> {
        match self {
            Self::Come(_, place) | Self::Leave(_, place, _) | Self::Due(_, place) => Some(place),
            Self::Answer(_, place, _) => place.as_ref(),
            Self::Feed(_) => None,
        }
    }
}

/// What was suspended and has come back.
pub(super) struct Resumed {
    pub(super) ticket: Ticket,
    /// `None` where it has panicked.
    step: Option<Step>,
    place: Option<Place>,
    tenant: TenantId,
}

impl Worker {
    pub(super) fn ticket(&self, entry: u32) -> Ticket {
        Ticket {
            pack: self.pack.number,
            entry,
            partition: self.parts.partition,
        }
    }

    pub(super) fn begin(&mut self, ticket: Ticket) {
        if ticket.pack == self.pack.number {
            self.pack.begin_of(ticket.entry);
        }
    }

    pub(super) fn end(&mut self, ticket: Ticket, failure: Option<LastFailure>) {
        if ticket.pack == self.pack.number {
            self.pack.end_of(ticket.entry, failure);
        }
    }

    fn fail(&mut self, ticket: Ticket, place: Option<&Place>, error: &str) {
        let node = place.and_then(Place::node);
        let failure = LastFailure {
            chain: place.map_or_else(String::new, |place| place.chain.name.to_string()),
            node: node.map_or_else(String::new, |node| node.name.to_string()),
            error: error.to_owned(),
        };
        self.end(ticket, Some(failure));
    }

    /// Goes on with what was suspended.
    pub(super) async fn go_on(&mut self, resumed: Resumed, store: &Applier) -> Result<(), Stopping> {
        let Resumed {
            ticket,
            step,
            place,
            tenant,
        } = resumed;
        match step {
            Some(step) => self.walk(ticket, Move::Answer(step, place, tenant), store).await,
            None => {
                self.panicked(ticket, place.as_ref(), tenant);
                Ok(())
            }
        }
    }

    fn note_failure(&self, place: &Place, error: &str) {
        if let Some(watch) = &self.watch {
            watch.lock().failed(place, error);
        }
    }

    fn panicked(&mut self, ticket: Ticket, place: Option<&Place>, tenant: TenantId) {
        let error = "the rule node has panicked";
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?))) {
            tracing::error!(chain = %place.chain.name, node = %node.name, error);
            self.common.events.error(tenant, node.id.into(), "onMsg", error);
            self.note_failure(place, error);
        }
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.fail(ticket, place, error);
    }

    /// Gives a message up, with all that it has become so far.
    pub(super) fn abort(&mut self, ticket: Ticket, error: &str) {
        tracing::warn!(error, "gave a message of a rule chain up");
        if ticket.pack == self.pack.number {
            let failure = LastFailure {
                chain: String::new(),
                node: String::new(),
                error: error.to_owned(),
            };
            self.pack.abort(ticket.entry, failure);
        }
    }

    pub(super) fn abort_panicked(&mut self, ticket: Ticket) -> Result<(), Stopping> {
        metrics::counter!("fieldline_rules_panics_total").increment(1);
        self.parts.branches.clear();
        self.abort(ticket, "alarm rules or calculated fields have panicked");
        Ok(())
    }

    /// Moves a message, and all that it becomes, until it ends or waits. The entry has counted it already.
    pub(super) async fn walk(
        &mut self,
        ticket: Ticket,
        first: Move,
        store: &Applier,
    ) -> Result<(), Stopping> {
        self.walk_all(ticket, vec![first], store).await
    }

    /// The same for several moves, the last one first.
    pub(super) async fn walk_all(
        &mut self,
        ticket: Ticket,
        mut moves: Vec<Move>,
        store: &Applier,
    ) -> Result<(), Stopping> {
        let mut steps = 0_u32;
        while let Some(next) = moves.pop() {
            steps += 1;
            if steps > MAX_STEPS {
                self.abort(
                    ticket,
                    "the message has become more than a rule chain may make of one",
                );
                return Ok(());
            }
            let watched = self
                .watch
                .as_ref()
                .and_then(|_| Some((next.place()?.clone(), Instant::now())));
            match next {
                Move::Come(msg, place) => self.come(ticket, msg, place, &mut moves),
                Move::Due(due, place) => self.come_due(ticket, due, place, &mut moves),
                Move::Feed(fed) => {
                    let work = self.feed_fields(ticket, fed, store, &mut moves);
                    match AssertUnwindSafe(work).catch_unwind().await {
                        Ok(done) => {
                            done?;
                            self.end(ticket, None);
                        }
                        Err(_) => return self.abort_panicked(ticket),
                    }
                }
                Move::Leave(msg, place, label) => self.leave(ticket, msg, place, &label, None, &mut moves),
                Move::Answer(Step::Wait(work), place, tenant) => {
                    if let Some(step) = self.wait(ticket, work, place.clone(), tenant, store).await? {
                        moves.push(Move::Answer(step, place, tenant));
                    }
                }
                Move::Answer(Step::InOrder(work), place, tenant) => {
                    self.apply_pending(ticket.partition, store).await?;
                    let mut work = work;
                    let done = match self.poll_here(&mut work) {
                        Ok(Poll::Ready(step)) => Some(step),
                        Ok(Poll::Pending) => self.common.services.runtime.spawn(work).await.ok(),
                        Err(_) => None,
                    };
                    match done {
                        Some(step) => moves.push(Move::Answer(step, place, tenant)),
                        None => self.panicked(ticket, place.as_ref(), tenant),
                    }
                }
                Move::Answer(Step::Acknowledge(msg), Some(place), _) if ticket.pack == DETACHED => {
                    moves.push(Move::Leave(msg, place, Label::SUCCESS));
                }
                Move::Answer(Step::Acknowledge(msg), Some(place), _) => {
                    self.end(ticket, None);
                    let detached = Ticket {
                        pack: DETACHED,
                        ..ticket
                    };
                    let next = Move::Leave(msg, place, Label::SUCCESS);
                    Box::pin(self.walk(detached, next, store)).await?;
                }
                Move::Answer(Step::Acknowledge(_), None, _) => self.end(ticket, None),
                Move::Answer(Step::Then(work), Some(place), tenant) => {
                    let mut ctx = Ctx {
                        services: &self.common.services,
                        tenant,
                        chain: place.chain.id,
                        node: place.node().map_or(RuleNodeId::NULL, |node| node.id),
                        now_ms: self.common.services.now_ms(),
                        parts: &mut self.parts,
                    };
                    let step = std::panic::catch_unwind(AssertUnwindSafe(|| work(&mut ctx)));
                    self.after(ticket, step.ok(), place, tenant, &mut moves);
                }
                Move::Answer(Step::Then(_), None, _) => self.end(ticket, None),
                Move::Answer(Step::Enter(msg, chain), place, tenant) => {
                    let chains = self.chains(tenant, store).await?;
                    self.enter(ticket, msg, Some(chain), place, &chains, &mut moves);
                }
                Move::Answer(Step::EnterDefault(msg), place, tenant) => {
                    let chains = self.chains(tenant, store).await?;
                    let chain = self.default_chain(&msg);
                    self.enter(ticket, msg, chain, place, &chains, &mut moves);
                }
                Move::Answer(Step::Return(msg, label), place, tenant) => {
                    let chains = self.chains(tenant, store).await?;
                    self.give_back(ticket, msg, label, place.as_ref(), &chains, &mut moves);
                }
                Move::Answer(Step::AlarmRules(msg), Some(place), _) => {
                    let work = self.profile_rules(ticket, msg, place, store, &mut moves);
                    match AssertUnwindSafe(work).catch_unwind().await {
                        Ok(done) => done?,
                        Err(_) => return self.abort_panicked(ticket),
                    }
                }
                Move::Answer(Step::AlarmRulesDue(key, value), Some(place), _) => {
                    let work = self.profile_rules_due(ticket, key, value, place, store, &mut moves);
                    match AssertUnwindSafe(work).catch_unwind().await {
                        Ok(done) => done?,
                        Err(_) => return self.abort_panicked(ticket),
                    }
                }
                Move::Answer(Step::AlarmRules(_) | Step::AlarmRulesDue(..), None, _) => {
                    self.end(ticket, None);
                }
                Move::Answer(step, place, tenant) => self.answer(ticket, step, place, tenant, &mut moves),
            }
            if let (Some(watch), Some((place, since))) = (&self.watch, watched) {
                watch.lock().took(&place, since.elapsed());
            }
        }
        Ok(())
    }

    fn come(&mut self, ticket: Ticket, mut msg: Msg, place: Place, moves: &mut Vec<Move>) {
        let now_ms = self.now_ms();
        let Some(node) = place.node() else {
            self.end(ticket, None);
            return;
        };
        if let Some(watch) = &self.watch {
            watch.lock().came(&place);
        }
        msg.hops += 1;
        if msg.hops > self.hop_limit(msg.tenant) {
            let error = "the message has gone through more rule nodes than its tenant may use";
            self.note_failure(&place, error);
            self.fail(ticket, Some(&place), error);
            return;
        }
        self.parts
            .meter
            .add(msg.tenant, UsageKey::RuleEngineExecutions, 1);
        if node.debug.is_on() && now_ms < node.debug.all_until {
            self.common
                .events
                .node(EVENT_IN, place.chain.id.into(), node.id.into(), &msg, None, None);
        }
        let tenant = msg.tenant;
        let runs = match &node.node {
            Ok(runs) => runs,
            Err(error) => {
                let error = format!("Rule node is not active! {error}");
                if node.debug.is_on() {
                    let (chain, id) = (place.chain.id.into(), node.id.into());
                    self.common
                        .events
                        .node(EVENT_OUT, chain, id, &msg, Some("Failure"), Some(&error));
                }
                self.note_failure(&place, &error);
                self.fail(ticket, Some(&place), &error);
                return;
            }
        };
        let mut ctx = Ctx {
            services: &self.common.services,
            tenant,
            chain: place.chain.id,
            node: node.id,
            now_ms,
            parts: &mut self.parts,
        };
        let step = std::panic::catch_unwind(AssertUnwindSafe(|| runs.handle(&mut ctx, msg)));
        self.after(ticket, step.ok(), place, tenant, moves);
    }

    fn come_due(&mut self, ticket: Ticket, due: Due, place: Place, moves: &mut Vec<Move>) {
        let tenant = due.key.subject.tenant;
        let now_ms = self.now_ms();
        let Some(node) = place.node() else {
            self.end(ticket, None);
            return;
        };
        let Ok(runs) = &node.node else {
            self.fail(ticket, Some(&place), "Rule node is not active!");
            return;
        };
        let mut ctx = Ctx {
            services: &self.common.services,
            tenant,
            chain: place.chain.id,
            node: node.id,
            now_ms,
            parts: &mut self.parts,
        };
        let step = std::panic::catch_unwind(AssertUnwindSafe(|| runs.due(&mut ctx, due.key, due.value)));
        self.after(ticket, step.ok(), place, tenant, moves);
    }

    /// Goes on after a node was called.
    fn after(
        &mut self,
        ticket: Ticket,
        step: Option<Step>,
        place: Place,
        tenant: TenantId,
        moves: &mut Vec<Move>,
    ) {
        for branch in std::mem::take(&mut self.parts.branches) {
            self.begin(ticket);
            moves.push(Move::Answer(Step::Wait(branch), None, tenant));
        }
        let fed = std::mem::take(&mut self.parts.feeding.fed);
        if !fed.is_empty() {
            self.begin(ticket);
        }
        match step {
            Some(step) => self.answer(ticket, step, Some(place), tenant, moves),
            None => self.panicked(ticket, Some(&place), tenant),
        }
        if !fed.is_empty() {
            // Before the message goes on.
            moves.push(Move::Feed(fed));
        }
    }

    fn answer(
        &mut self,
        ticket: Ticket,
        step: Step,
        place: Option<Place>,
        tenant: TenantId,
        moves: &mut Vec<Move>,
    ) {
        match (step, place) {
            (Step::Next(msg, label), Some(place)) => self.leave(ticket, msg, place, &label, None, moves),
            (Step::Many(many), Some(place)) => {
                for _ in &many {
                    self.begin(ticket);
                }
                // The first one is handled first.
                for (msg, label) in many.into_iter().rev() {
                    moves.push(Move::Leave(msg, place.clone(), label));
                }
                self.end(ticket, None);
            }
            (Step::Fail(msg, error), Some(place)) => {
                let error = error.to_string();
                self.leave(ticket, msg, place, &Label::FAILURE, Some(&error), moves);
            }
            (Step::Home(msg), Some(place)) => {
                let work = self.send_home(msg, &place);
                moves.push(Move::Answer(Step::Wait(work), Some(place), tenant));
            }
            (Step::Done | Step::Next(..) | Step::Many(_) | Step::Home(_), _) => self.end(ticket, None),
            (Step::Fail(_, error), None) => self.fail(ticket, None, &error.to_string()),
            (step, place) => moves.push(Move::Answer(step, place, tenant)),
        }
    }

    fn leave(
        &mut self,
        ticket: Ticket,
        msg: Msg,
        place: Place,
        label: &Label,
        error: Option<&str>,
        moves: &mut Vec<Move>,
    ) {
        let Some(node) = place.node() else {
            self.end(ticket, None);
            return;
        };
        if let Some(watch) = &self.watch {
            watch.lock().left(&place, label, error);
        }
        if node.debug.is_on() {
            let is_failure = label.is_failure();
            if self.now_ms() < node.debug.all_until || (is_failure && node.debug.failures) {
                let (chain, id) = (place.chain.id.into(), node.id.into());
                self.common
                    .events
                    .node(EVENT_OUT, chain, id, &msg, Some(&label.0), error);
            }
        }
        let mut targets = node.targets(label);
        let Some(first) = targets.next() else {
            drop(targets);
            if label.is_failure() {
                self.fail(
                    ticket,
                    Some(&place),
                    error.unwrap_or("Failure without a connection"),
                );
            } else {
                self.end(ticket, None);
            }
            return;
        };
        let others: Vec<usize> = targets.collect();
        if others.is_empty() {
            moves.push(Move::Come(msg, Place { at: first, ..place }));
            return;
        }
        let all = std::iter::once(first).chain(others);
        let branches: Vec<Move> = all
            .map(|at| {
                // What each branch creates has ids of its own.
                let branch = msg.derive(at as u64 + 1);
                Move::Come(
                    branch,
                    Place {
                        chain: place.chain.clone(),
                        at,
                    },
                )
            })
            .collect();
        for _ in 1..branches.len() {
            self.begin(ticket);
        }
        moves.extend(branches.into_iter().rev());
    }

    fn enter(
        &mut self,
        ticket: Ticket,
        mut msg: Msg,
        chain: Option<RuleChainId>,
        from: Option<Place>,
        chains: &TenantChains,
        moves: &mut Vec<Move>,
    ) {
        let Some(chain) = chain.or(chains.root).and_then(|id| chains.chain(id)) else {
            let error = "there is no such rule chain, or no root rule chain";
            match from {
                Some(from) => self.leave(ticket, msg, from, &Label::FAILURE, Some(error), moves),
                None => self.fail(ticket, None, error),
            }
            return;
        };
        if let Some((from, node)) = from.as_ref().and_then(|from| Some((from, from.node()?))) {
            msg.callers = Some(Arc::new(Caller {
                chain: from.chain.id,
                node: node.id,
                callers: msg.callers.take(),
            }));
        }
        match chain.first {
            Some(at) => moves.push(Move::Come(
                msg,
                Place {
                    chain: chain.clone(),
                    at,
                },
            )),
            None => self.end(ticket, None),
        }
    }

    fn give_back(
        &mut self,
        ticket: Ticket,
        mut msg: Msg,
        label: Label,
        place: Option<&Place>,
        chains: &TenantChains,
        moves: &mut Vec<Move>,
    ) {
        if let Some((place, node)) = place.and_then(|place| Some((place, place.node()?)))
            && node.debug.is_on()
            && self.now_ms() < node.debug.all_until
        {
            let (chain, id) = (place.chain.id.into(), node.id.into());
            self.common
                .events
                .node(EVENT_OUT, chain, id, &msg, Some(&label.0), None);
        }
        if let (Some(watch), Some(place)) = (&self.watch, place) {
            watch.lock().left(place, &label, None);
        }
        let Some(caller) = msg.callers.take() else {
            self.end(ticket, None);
            return;
        };
        msg.callers.clone_from(&caller.callers);
        match chains.node(caller.node) {
            Some((chain, at)) => moves.push(Move::Leave(
                msg,
                Place {
                    chain: chain.clone(),
                    at,
                },
                label,
            )),
            None => self.fail(ticket, place, "the rule node that has called this chain is gone"),
        }
    }

    /// Polls work once; the error says that it has panicked.
    fn poll_here(&self, work: &mut Waiting) -> std::thread::Result<Poll<Step>> {
        let _context = self.common.services.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut context)))
    }

    /// Polls work once where it is; what is not ready goes on elsewhere and comes back through the inbox.
    async fn wait(
        &mut self,
        ticket: Ticket,
        mut work: Waiting,
        place: Option<Place>,
        tenant: TenantId,
        store: &Applier,
    ) -> Result<Option<Step>, Stopping> {
        // What it reads is to be what the message has written so far.
        self.apply_pending(ticket.partition, store).await?;
        let runtime = self.common.services.runtime.clone();
        match self.poll_here(&mut work) {
            Ok(Poll::Ready(step)) => Ok(Some(step)),
            Ok(Poll::Pending) if self.watch.is_some() => {
                let done = runtime.spawn(AssertUnwindSafe(work).catch_unwind()).await;
                let step = done.ok().and_then(Result::ok);
                if step.is_none() {
                    self.panicked(ticket, place.as_ref(), tenant);
                }
                Ok(step)
            }
            Ok(Poll::Pending) => {
                self.suspended += 1;
                let outbox = self.outbox.clone();
                runtime.spawn(async move {
                    let step = AssertUnwindSafe(work).catch_unwind().await.ok();
                    // The worker may be gone.
                    let _ = outbox.send(Resumed {
                        ticket,
                        step,
                        place,
                        tenant,
                    });
                });
                Ok(None)
            }
            Err(_) => {
                self.panicked(ticket, place.as_ref(), tenant);
                Ok(None)
            }
        }
    }

    /// Sends a message to the same node in the partition of its originator.
    fn send_home(&self, msg: Msg, place: &Place) -> Waiting {
        let services = self.common.services.clone();
        let node = place.node().map_or(RuleNodeId::NULL, |node| node.id);
        let (chain, queue) = (place.chain.id, self.queue.name.clone());
        Box::pin(async move {
            let mut message = msg.to_message();
            message.rule_chain = Some(chain);
            message.from = Some((node, String::new()));
            message.queue = Some(queue.to_string());
            match services.engine.push(msg.tenant, message).await {
                Ok(()) => Step::Done,
                Err(error) => Step::Fail(msg, NodeError::from(error)),
            }
        })
    }

    fn hop_limit(&self, tenant: TenantId) -> u32 {
        match self.tenants.get(&tenant).map_or(0, |chains| chains.max_hops) {
            0 => MAX_HOPS,
            limit => limit.min(MAX_HOPS),
        }
    }

    /// The chain of the originator's profile.
    fn default_chain(&self, msg: &Msg) -> Option<RuleChainId> {
        let known = self.common.services.originators.peek(msg.subject())?;
        known.profile.as_ref()?.rule_chain
    }
}
