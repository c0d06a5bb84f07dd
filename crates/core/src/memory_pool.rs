//! Memory that strangers share: a pool has so many bytes, each tenant may hold a part of them, and whoever holds some
//! gives it back by dropping it.
//!
//! The part is not fixed. A quarter of the pool is kept for tenants that hold little, a 64th of it at most. Of the rest a
//! tenant gets more only while no less than it then holds is left free: one that is alone may hold three eighths of the
//! pool, two that press a quarter each. So a few tenants that never give anything back leave room for others all the same.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fieldline_model::TenantId;
use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::options::ByteSize;

/// Bytes of a pool that are held.
const HELD: &str = "fieldline_memory_pool_held_bytes";
/// Bytes that a pool has.
const TOTAL: &str = "fieldline_memory_pool_bytes";
/// What was refused, by pool, and whether by the tenant's part or by the whole.
const REFUSED: &str = "fieldline_memory_pool_refusals_total";

/// Describes the metrics of pools.
pub fn describe_metrics() {
    describe_gauge!(HELD, Unit::Bytes, "Memory of a pool that is held");
    describe_gauge!(TOTAL, Unit::Bytes, "Memory that a pool has");
    describe_counter!(
        REFUSED,
        "Memory that a pool has refused, by its tenant's part or as a whole"
    );
}

/// The part of a pool that is kept for tenants that hold little, as a divisor.
const RESERVE_DIVISOR: usize = 4;
/// What is little, as a divisor.
const SMALL_SHARE_DIVISOR: usize = 64;

/// Whose memory is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExhaustedLimit {
    /// The tenant's part: others may still get some.
    Part,
    /// The pool's: others hold it.
    Pool,
}

/// No memory was to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRefusal {
    /// The setting that sizes the pool.
    pub pool: &'static str,
    /// Whose memory is used up.
    pub exhausted: ExhaustedLimit,
    /// Bytes that the pool has.
    pub total: usize,
}

impl fmt::Display for MemoryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = ByteSize(self.total as u64);
        match self.exhausted {
            ExhaustedLimit::Part => write!(
                f,
                "The tenant holds its part of `{}` ({total}): ask for less at a time, or later",
                self.pool
            ),
            ExhaustedLimit::Pool => write!(f, "All of `{}` ({total}) is in use: try again later", self.pool),
        }
    }
}

impl std::error::Error for MemoryRefusal {}

#[derive(Debug, Default)]
struct PoolUsage {
    all: usize,
    by_tenant: FxHashMap<TenantId, usize>,
}

/// See the module.
pub struct MemoryPool {
    name: &'static str,
    total: usize,
    held: Mutex<PoolUsage>,
    freed: Notify,
    gauge: Gauge,
    refused_part: Counter,
    refused_all: Counter,
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPool")
            .field("name", &self.name)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl MemoryPool {
    /// A pool of so many bytes. The name is that of its setting.
    pub fn new(name: &'static str, total: ByteSize) -> Arc<Self> {
        let total = total.as_usize();
        gauge!(TOTAL, "pool" => name).set(total as f64);
        Arc::new(Self {
            name,
            total,
            held: Mutex::default(),
            freed: Notify::new(),
            gauge: gauge!(HELD, "pool" => name),
            refused_part: counter!(REFUSED, "pool" => name, "exhausted" => "part"),
            refused_all: counter!(REFUSED, "pool" => name, "exhausted" => "pool"),
        })
    }

    /// A share of a tenant that holds nothing yet.
    pub fn share(self: &Arc<Self>, tenant: TenantId) -> MemoryShare {
        MemoryShare {
            pool: Arc::clone(self),
            tenant,
            held: 0,
        }
    }

    /// A share of so many bytes.
    ///
    /// # Errors
    /// They are not to be had.
    pub fn take(self: &Arc<Self>, tenant: TenantId, bytes: usize) -> Result<MemoryShare, MemoryRefusal> {
        let mut share = self.share(tenant);
        share.resize(bytes)?;
        Ok(share)
    }

    /// The same by who asks again, or does without: it is not counted as refused.
    ///
    /// # Errors
    /// They are not to be had.
    pub(crate) fn try_take(
        self: &Arc<Self>,
        tenant: TenantId,
        bytes: usize,
    ) -> Result<MemoryShare, MemoryRefusal> {
        let mut share = self.share(tenant);
        if bytes > 0 {
            self.try_grow(tenant, bytes)?;
            share.held = bytes;
        }
        Ok(share)
    }

    /// The same, waiting for what others give back.
    ///
    /// # Errors
    /// They are not to be had for so long.
    pub async fn take_within(
        self: &Arc<Self>,
        tenant: TenantId,
        bytes: usize,
        patience: Duration,
    ) -> Result<MemoryShare, MemoryRefusal> {
        let deadline = Instant::now() + patience;
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // What is given back between the two is heard of.
            freed.as_mut().enable();
            let refused = match self.try_take(tenant, bytes) {
                Ok(share) => return Ok(share),
                Err(refused) => refused,
            };
            if timeout_at(deadline, freed).await.is_err() {
                self.count_refusal(&refused);
                return Err(refused);
            }
        }
    }

    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.held.lock().all
    }

    /// Whether a tenant may hold so much where so much is left free then.
    const fn is_fair(&self, of_tenant: usize, free: usize) -> bool {
        of_tenant <= self.total / SMALL_SHARE_DIVISOR
            || of_tenant.saturating_add(self.total / RESERVE_DIVISOR) <= free
    }

    fn grow(&self, tenant: TenantId, more: usize) -> Result<(), MemoryRefusal> {
        self.try_grow(tenant, more)
            .inspect_err(|refused| self.count_refusal(refused))
    }

    fn count_refusal(&self, refused: &MemoryRefusal) {
        match refused.exhausted {
            ExhaustedLimit::Part => self.refused_part.increment(1),
            ExhaustedLimit::Pool => self.refused_all.increment(1),
        }
    }

    fn try_grow(&self, tenant: TenantId, more: usize) -> Result<(), MemoryRefusal> {
        let mut held = self.held.lock();
        let before = held.by_tenant.get(&tenant).copied().unwrap_or(0);
        let of_tenant = before.saturating_add(more);
        let free = (self.total - held.all).checked_sub(more);
        if free.is_some_and(|free| self.is_fair(of_tenant, free)) {
            held.all += more;
            held.by_tenant.insert(tenant, of_tenant);
            self.gauge.set(held.all as f64);
            return Ok(());
        }
        let pressing = held.by_tenant.len();
        drop(held);
        let shared = self.total - self.total / RESERVE_DIVISOR;
        // More than it may ever hold, or than its part where all that hold something have the same.
        let is_own = of_tenant > shared / 2 || (before > 0 && of_tenant > shared / (pressing + 1));
        let exhausted = match is_own {
            true => ExhaustedLimit::Part,
            false => ExhaustedLimit::Pool,
        };
        Err(MemoryRefusal {
            pool: self.name,
            exhausted,
            total: self.total,
        })
    }

    fn shrink(&self, tenant: TenantId, less: usize) {
        let mut held = self.held.lock();
        held.all -= less;
        if let Some(of_tenant) = held.by_tenant.get_mut(&tenant) {
            *of_tenant -= less;
            if *of_tenant == 0 {
                held.by_tenant.remove(&tenant);
            }
        }
        self.gauge.set(held.all as f64);
        drop(held);
        self.freed.notify_waiters();
    }
}

/// What somebody holds of a pool; given back when dropped.
#[derive(Debug)]
pub struct MemoryShare {
    pool: Arc<MemoryPool>,
    tenant: TenantId,
    held: usize,
}

impl MemoryShare {
    /// Bytes that it holds.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Whose it is.
    pub const fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Holds exactly so many bytes.
    ///
    /// # Errors
    /// There are not so many more. The share stays as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), MemoryRefusal> {
        if bytes > self.held {
            self.pool.grow(self.tenant, bytes - self.held)?;
        } else if bytes < self.held {
            self.pool.shrink(self.tenant, self.held - bytes);
        }
        self.held = bytes;
        Ok(())
    }

    /// Holds so many bytes more.
    ///
    /// # Errors
    /// See [`Self::resize`].
    pub fn grow(&mut self, more: usize) -> Result<(), MemoryRefusal> {
        self.resize(self.held.saturating_add(more))
    }

    /// Holds no more than so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(less) = self.held.checked_sub(bytes).filter(|less| *less > 0) {
            self.pool.shrink(self.tenant, less);
            self.held = bytes;
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "test.memory";

    fn pool(total: u64) -> Arc<MemoryPool> {
        MemoryPool::new(NAME, ByteSize(total))
    }

    #[test]
    fn a_tenant_alone_holds_three_eighths_and_its_next_byte_is_its_own_fault() {
        let pool = pool(800);
        let tenant = TenantId::new();
        let mut share = pool.take(tenant, 300).unwrap();
        let refused = share.grow(1).unwrap_err();
        assert_eq!((refused.exhausted, refused.pool), (ExhaustedLimit::Part, NAME));
        assert_eq!((share.held(), pool.held()), (300, 300));
        // The part is the tenant's, not the share's.
        assert_eq!(pool.take(tenant, 1).unwrap_err().exhausted, ExhaustedLimit::Part);
        // What never fits is its own fault as well.
        assert_eq!(
            pool.take(TenantId::new(), 301).unwrap_err().exhausted,
            ExhaustedLimit::Part
        );
    }

    #[test]
    fn tenants_that_never_give_back_leave_room_for_others() {
        let pool = pool(1_000_000);
        let mut hogs: Vec<MemoryShare> = Vec::new();
        for count in 0..20 {
            // Those who have come before get no more, the next one gets what is little in any case.
            let newcomer = pool.take(TenantId::new(), 1_000_000 / SMALL_SHARE_DIVISOR);
            assert!(newcomer.is_ok(), "{newcomer:?} beside {count}");
            hogs.extend(newcomer);
            while hogs.iter_mut().any(|hog| hog.grow(100).is_ok()) {}
        }
        assert!(pool.held() <= 1_000_000);
    }

    #[test]
    fn a_newcomer_that_asks_for_more_than_is_left_is_told_that_others_hold_it() {
        let pool = pool(1_000);
        let hogs: Vec<MemoryShare> = [375, 187, 94]
            .into_iter()
            .map(|bytes| pool.take(TenantId::new(), bytes).unwrap())
            .collect();
        let refused = pool.take(TenantId::new(), 200).unwrap_err();
        assert_eq!(refused.exhausted, ExhaustedLimit::Pool);
        assert!(refused.to_string().contains("`test.memory` (1000B)"), "{refused}");
        drop(hogs);
        assert!(pool.take(TenantId::new(), 200).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_can_wait_gets_what_others_give_back() {
        let pool = pool(160);
        let tenant = TenantId::new();
        let held = pool.take(tenant, 60).unwrap();
        let begun = Instant::now();
        let patience = Duration::from_secs(10);
        assert!(pool.take_within(tenant, 1, patience).await.is_err());
        assert_eq!(begun.elapsed(), patience);
        let waiting = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.take_within(tenant, 20, patience).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(held);
        assert!(waiting.await.unwrap());
        assert_eq!(begun.elapsed(), patience, "at once");
    }

    #[test]
    fn what_is_dropped_or_shrunk_is_to_be_had_again() {
        let pool = pool(160);
        let tenant = TenantId::new();
        let mut share = pool.take(tenant, 50).unwrap();
        share.shrink_to(20);
        share.shrink_to(30);
        assert_eq!((share.held(), pool.held()), (20, 20));
        share.resize(50).unwrap();
        drop(share);
        assert_eq!(pool.held(), 0);
        assert!(pool.held.lock().by_tenant.is_empty());
        assert!(pool.take(tenant, usize::MAX).is_err());
        assert_eq!(pool.held(), 0);
    }
}
