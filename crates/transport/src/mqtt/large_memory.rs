//! Memory for large messages on their way to devices: package chunks that are written in one piece.
//!
//! Tenants share the memory. Each may hold only a part, so that one tenant leaves room for others. A message holds its
//! memory for at most the time needed to read it at a modest pace, so a device that does not read cannot keep it.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::memory_pool::{MemoryPool, MemoryShare};
use fieldline_core::options::ByteSize;
use fieldline_model::TenantId;

/// Largest package that is sent as one message, bytes.
pub(super) const MAX_WHOLE: u64 = 32 << 20;

/// The amount of memory, and how long a message may hold it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargeLimits {
    /// Memory of all messages together; at least three times the largest message.
    pub(super) all: ByteSize,
    /// How long a device waits for memory that others hold.
    pub(super) wait: Duration,
    /// Time to write any message, plus the slowest pace in bytes a second, which adds time by size.
    pub(super) grace: Duration,
    pub(super) pace: u64,
}

impl Default for LargeLimits {
    fn default() -> Self {
        Self {
            all: ByteSize(4 * MAX_WHOLE),
            wait: Duration::from_secs(10),
            grace: Duration::from_secs(30),
            pace: 32 << 10,
        }
    }
}

/// The memory for large messages; see the module.
pub(super) struct LargeMemory {
    limits: LargeLimits,
    pool: Arc<MemoryPool>,
}

/// Memory of one message; given back when dropped.
pub(super) struct LargeMessageLease {
    _memory: MemoryShare,
    time_to_write: Duration,
}

impl LargeMessageLease {
    /// The time limit for writing the message.
    pub(super) const fn time_to_write(&self) -> Duration {
        self.time_to_write
    }
}

impl LargeMemory {
    pub(super) fn new(limits: LargeLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            pool: MemoryPool::new("mqtt.chunk-memory", limits.all),
        })
    }

    /// Takes memory for a message of `bytes` to a device of the tenant; `None` if there is none within the wait.
    pub(super) async fn take(&self, tenant: TenantId, bytes: u64) -> Option<LargeMessageLease> {
        let length = usize::try_from(bytes).ok()?;
        let taken = self.pool.take_within(tenant, length, self.limits.wait);
        let memory = taken.await.ok()?;
        let seconds = bytes.div_ceil(self.limits.pace.max(1));
        Some(LargeMessageLease {
            _memory: memory,
            time_to_write: self.limits.grace.saturating_add(Duration::from_secs(seconds)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn a_tenant_has_its_part_and_leaves_the_rest_to_others() {
        let memory = LargeMemory::new(LargeLimits::default());
        let (greedy, other) = (TenantId::new(), TenantId::new());
        let first = memory.take(greedy, 32 * MIB).await.unwrap();
        let second = memory.take(greedy, 16 * MIB).await.unwrap();
        assert!(memory.take(greedy, MIB).await.is_none(), "beyond its part");
        let others = memory.take(other, 24 * MIB).await.unwrap();
        assert!(memory.take(other, MIB).await.is_none(), "beyond its part");
        // However many tenants hold their part, there is room for the chunk of the next one.
        assert!(memory.take(TenantId::new(), 8 * MIB).await.is_some());
        drop((first, others));
        assert!(memory.take(greedy, 20 * MIB).await.is_some());
        assert!(memory.take(other, 32 * MIB).await.is_some());
        drop(second);
        assert_eq!(memory.pool.held(), 0);
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
