//! Memory for large messages on their way to devices: chunks of packages that are written in one piece.
//!
//! It is bounded for all together and for each tenant, so that one tenant leaves room for others, and it is lent for as long
//! as it takes to read the message at a modest pace: a device that does not read does not keep it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Largest package that is sent as one message, bytes.
pub(super) const MAX_WHOLE: u64 = 32 << 20;
/// How many tenants are remembered before those are forgotten that have nothing under way.
const REMEMBERED: usize = 64;

/// How much memory there is, and how long it is lent.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargeLimits {
    /// Bytes for all together.
    pub(super) all: u64,
    /// Bytes for one tenant; no less than the largest message.
    pub(super) of_tenant: u64,
    /// How long a device waits for memory that others have.
    pub(super) wait: Duration,
    /// How long any message may take to be written, and how many bytes a second it has to go on with besides.
    pub(super) grace: Duration,
    pub(super) pace: u64,
}

impl Default for LargeLimits {
    fn default() -> Self {
        Self {
            all: 2 * MAX_WHOLE,
            of_tenant: MAX_WHOLE,
            wait: Duration::from_secs(10),
            grace: Duration::from_secs(30),
            pace: 32 << 10,
        }
    }
}

/// See the module.
pub(super) struct LargeMemory {
    limits: LargeLimits,
    /// In KiB, as the parts of tenants.
    all: Arc<Semaphore>,
    of_tenants: Mutex<FxHashMap<TenantId, Weak<Semaphore>>>,
}

/// Memory of one message; given back when dropped.
pub(super) struct LargeMessage {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: OwnedSemaphorePermit,
    time_to_write: Duration,
}

impl LargeMessage {
    /// How long it may take until the message is written.
    pub(super) const fn time_to_write(&self) -> Duration {
        self.time_to_write
    }
}

impl LargeMemory {
    pub(super) fn new(limits: LargeLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            all: Arc::new(Semaphore::new(kib(limits.all) as usize)),
            of_tenants: Mutex::default(),
        })
    }

    /// Memory for a message of so many bytes to a device of a tenant; `None` where others have it for too long.
    pub(super) async fn take(&self, tenant: TenantId, bytes: u64) -> Option<LargeMessage> {
        let kib = kib(bytes);
        let part = self.of(tenant);
        let taken = timeout(self.limits.wait, async {
            // In this order: whoever waits for its own tenant stands in nobody else's way.
            let of_tenant = part.acquire_many_owned(kib).await.ok()?;
            let of_all = self.all.clone().acquire_many_owned(kib).await.ok()?;
            Some((of_all, of_tenant))
        });
        let (of_all, of_tenant) = taken.await.ok()??;
        let seconds = bytes.div_ceil(self.limits.pace.max(1));
        Some(LargeMessage {
            _of_all: of_all,
            _of_tenant: of_tenant,
            time_to_write: self.limits.grace.saturating_add(Duration::from_secs(seconds)),
        })
    }

    /// The part of a tenant, as long as somebody has something of it or waits for it.
    fn of(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut parts = self.of_tenants.lock();
        if let Some(part) = parts.get(&tenant).and_then(Weak::upgrade) {
            return part;
        }
        if parts.len() >= REMEMBERED {
            parts.retain(|_, part| part.strong_count() > 0);
        }
        let part = Arc::new(Semaphore::new(kib(self.limits.of_tenant) as usize));
        parts.insert(tenant, Arc::downgrade(&part));
        part
    }
}

fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn a_tenant_has_its_part_and_leaves_the_rest_to_others() {
        let memory = LargeMemory::new(LargeLimits::default());
        let (greedy, other) = (TenantId::new(), TenantId::new());
        let first = memory.take(greedy, 20 * MIB).await.unwrap();
        assert!(memory.take(greedy, 20 * MIB).await.is_none(), "beyond its part");
        let second = memory.take(greedy, 12 * MIB).await.unwrap();
        let others = memory.take(other, 32 * MIB).await.unwrap();
        assert!(memory.take(TenantId::new(), MIB).await.is_none(), "beyond all");
        drop((first, others));
        assert!(memory.take(greedy, 20 * MIB).await.is_some());
        assert!(memory.take(other, 32 * MIB).await.is_some());
        drop(second);
        for _ in 0..10 * REMEMBERED {
            assert!(memory.take(TenantId::new(), MIB).await.is_some());
        }
        assert!(memory.of_tenants.lock().len() <= REMEMBERED);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_write_goes_by_the_size() {
        let memory = LargeMemory::new(LargeLimits::default());
        let tenant = TenantId::new();
        let small = memory.take(tenant, 64 << 10).await.unwrap();
        assert_eq!(small.time_to_write(), Duration::from_secs(32));
        drop(small);
        let whole = memory.take(tenant, MAX_WHOLE).await.unwrap();
        assert_eq!(whole.time_to_write(), Duration::from_secs(30 + 1024));
    }
}
