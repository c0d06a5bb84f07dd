//! Messages that a node acknowledges, and sends on when something outside has answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::node::{NodeContext, NodeEmitter};

/// Such messages of one node, at most.
pub(crate) const MAX_WAITING: usize = 50_000;

/// How many messages of a node wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingLimiter(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingPermit(PendingLimiter);

impl PendingLimiter {
    /// One more, unless as many wait as may.
    pub(crate) fn try_acquire(&self) -> Option<PendingPermit> {
        if self.0.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(PendingPermit(self.clone()))
    }
}

impl Drop for PendingPermit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a node needs to go on by itself, after it has handled a message.
pub(crate) fn node_emitter(ctx: &NodeContext<'_>) -> NodeEmitter {
    NodeEmitter {
        services: Arc::clone(ctx.services),
        tenant: ctx.tenant,
        chain: ctx.chain,
        node: ctx.node,
        queue: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_wait_as_may() {
        let waiters = PendingLimiter::default();
        let mut all: Vec<_> = (0..MAX_WAITING).map(|_| waiters.try_acquire().unwrap()).collect();
        assert!(waiters.try_acquire().is_none());
        assert!(
            waiters.try_acquire().is_none(),
            "one that was turned away was counted"
        );
        all.pop();
        let last = waiters.try_acquire();
        assert!(last.is_some() && waiters.try_acquire().is_none());
    }
}
