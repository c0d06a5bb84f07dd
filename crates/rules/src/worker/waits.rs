//! What waits: it is polled once in place, and comes back through the inbox when it is not ready.

use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll, Waker};

use fieldline_core::ingest::{Applier, Stopping};
use fieldline_model::{RuleNodeId, TenantId};
use futures::FutureExt as _;

use super::Worker;
use super::rounds::MAX_SUSPENDED;
use super::walk::{Move, Place, Ticket};
use crate::message::Msg;
use crate::node::{NodeError, Step, Waiting};

/// What was suspended and has come back.
pub(super) struct Resumed {
    pub(super) ticket: Ticket,
    /// `None` where it has panicked.
    step: Option<Step>,
    place: Option<Place>,
    tenant: TenantId,
}

impl Worker {
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

    /// Polls work once; the error says that it has panicked.
    fn poll_here(&self, work: &mut Waiting) -> std::thread::Result<Poll<Step>> {
        let _context = self.common.services.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut context)))
    }

    /// Polls work once where it is; what is not ready goes on elsewhere and comes back through the inbox.
    pub(super) async fn wait(
        &mut self,
        ticket: Ticket,
        mut work: Waiting,
        place: Option<Place>,
        tenant: TenantId,
        store: &Applier,
    ) -> Result<Option<Step>, Stopping> {
        // What it reads is to be what the message has written so far.
        self.apply_pending(ticket.partition, store).await?;
        self.make_room(store).await?;
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

    /// Waits until one more may wait: a single message may become thousands that do. What has come back meanwhile goes on
    /// later.
    async fn make_room(&mut self, store: &Applier) -> Result<(), Stopping> {
        while !self.is_crowded && self.suspended.saturating_sub(self.ready.len()) >= MAX_SUSPENDED {
            tokio::select! {
                resumed = self.inbox.recv() => self.ready.extend(resumed),
                paused = store.pause() => {
                    paused?;
                    // Nothing moves: what has come back may hold what all the others wait for, such as the turn of a
                    // device. Rather more wait than all for ever.
                    self.is_crowded = !self.ready.is_empty();
                }
            }
        }
        Ok(())
    }

    /// Waits in place, so that nothing overtakes the work. `None` where it has panicked.
    pub(super) async fn wait_in_order(
        &mut self,
        ticket: Ticket,
        mut work: Waiting,
        store: &Applier,
    ) -> Result<Option<Step>, Stopping> {
        self.apply_pending(ticket.partition, store).await?;
        Ok(match self.poll_here(&mut work) {
            Ok(Poll::Ready(step)) => Some(step),
            Ok(Poll::Pending) => self.common.services.runtime.spawn(work).await.ok(),
            Err(_) => None,
        })
    }

    /// Sends a message to the same node in the partition of its originator.
    pub(super) fn send_home(&self, msg: Msg, place: &Place) -> Waiting {
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
}
