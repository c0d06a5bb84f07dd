//! Messages that a node acknowledges, and sends on when something outside has answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::node::{Ctx, Source};

/// Such messages of one node, at most.
pub(crate) const MAX_WAITING: usize = 50_000;

/// How many messages of a node wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiters(Arc<AtomicUsize>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter(Waiters);

impl Waiters {
    /// One more, unless as many wait as may.
    pub(crate) fn begin(&self) -> Option<Waiter> {
        if self.0.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Waiter(self.clone()))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a node needs to go on by itself, after it has handled a message.
pub(crate) fn source(ctx: &Ctx<'_>) -> Source {
    Source {
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
        let waiters = Waiters::default();
        let mut all: Vec<_> = (0..MAX_WAITING).map(|_| waiters.begin().unwrap()).collect();
        assert!(waiters.begin().is_none());
        assert!(waiters.begin().is_none(), "one that was turned away was counted");
        all.pop();
        let last = waiters.begin();
        assert!(last.is_some() && waiters.begin().is_none());
    }
}
