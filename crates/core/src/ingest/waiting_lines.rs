//! The order in which appends of one tenant wait: one of each tenant watches the memory that is given back, or a thousand
//! would wake up for one.

use std::sync::Arc;

use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::{Instant, timeout_at};

type TurnLock = tokio::sync::Mutex<()>;

/// One waiting line for each tenant that has waiters.
#[derive(Default)]
pub(super) struct WaitingLines(Mutex<FxHashMap<TenantId, WaitingLine>>);

#[derive(Default)]
struct WaitingLine {
    /// Waiters, the one whose turn it is included.
    waiters: usize,
    turn: Arc<TurnLock>,
}

impl WaitingLines {
    /// Whether anybody waits in the line of a tenant.
    pub(super) fn has_waiting(&self, tenant: TenantId) -> bool {
        self.0.lock().contains_key(&tenant)
    }

    /// Runs `work` when everybody who came before has left the line of the tenant, at `deadline` at the latest.
    pub(super) async fn run_in_turn<T>(
        &self,
        tenant: TenantId,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> T {
        let place = self.join(tenant);
        let _turn = timeout_at(deadline, place.turn.lock()).await;
        work.await
    }

    fn join(&self, tenant: TenantId) -> LinePlace<'_> {
        let mut lines = self.0.lock();
        let line = lines.entry(tenant).or_default();
        line.waiters += 1;
        LinePlace {
            lines: self,
            tenant,
            turn: Arc::clone(&line.turn),
        }
    }
}

/// A place in a line; left when dropped.
struct LinePlace<'a> {
    lines: &'a WaitingLines,
    tenant: TenantId,
    turn: Arc<TurnLock>,
}

impl Drop for LinePlace<'_> {
    fn drop(&mut self) {
        let mut lines = self.lines.0.lock();
        if let Some(line) = lines.get_mut(&self.tenant) {
            line.waiters -= 1;
            if line.waiters == 0 {
                lines.remove(&self.tenant);
            }
        }
    }
}
