//! Memory pools shared by tenants: a pool has a fixed number of bytes, each tenant may hold a share, and dropping a
//! share returns its bytes.
//!
//! A tenant's limit is not fixed. A quarter of the pool is reserved for tenants that hold at most a 64th of it. A
//! larger tenant gets more only while the rest left free is no smaller than its own holding: one alone may hold three
//! eighths of the pool, two that compete a quarter each. So even a few tenants that never give anything back leave room
//! for others.

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
use crate::overload::{OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource};

/// Bytes of a pool in use.
const HELD: &str = "fieldline_memory_pool_held_bytes";
/// Size of a pool in bytes.
const TOTAL: &str = "fieldline_memory_pool_bytes";
/// Refused requests, by pool and by the exhausted limit (the tenant's or the pool's).
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

/// The fraction of a pool reserved for tenants with small holdings, as a divisor.
const RESERVE_DIVISOR: usize = 4;
/// The largest small holding, as a divisor of the pool's size.
const SMALL_SHARE_DIVISOR: usize = 64;

/// Most tenants whose refusals are counted apart.
const MAX_COUNTED: usize = 1_024;

/// The limit that a request exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExhaustedLimit {
    /// The tenant's share: other tenants may still get memory.
    Part,
    /// The pool: other tenants hold the memory.
    Pool,
}

/// A refused request for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRefusal {
    /// The setting that sizes the pool.
    pub pool: &'static str,
    /// The exceeded limit.
    pub exhausted: ExhaustedLimit,
    /// Size of the pool in bytes.
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
    /// How often a tenant's requests were refused since the program started.
    refused_by: Mutex<FxHashMap<TenantId, u64>>,
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
    /// Creates a pool of `total` bytes. The name is that of its setting.
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
            refused_by: Mutex::default(),
        })
    }

    /// Creates an empty share for a tenant.
    pub fn share(self: &Arc<Self>, tenant: TenantId) -> MemoryShare {
        MemoryShare {
            pool: Arc::clone(self),
            tenant,
            held: 0,
        }
    }

    /// Creates a share of `bytes`.
    ///
    /// # Errors
    /// The memory is not available.
    pub fn take(self: &Arc<Self>, tenant: TenantId, bytes: usize) -> Result<MemoryShare, MemoryRefusal> {
        let mut share = self.share(tenant);
        share.resize(bytes)?;
        Ok(share)
    }

    /// Like [`Self::take`], for callers that retry or manage without: a refusal is not counted.
    ///
    /// # Errors
    /// The memory is not available.
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

    /// Like [`Self::take`], but waits for memory that others release.
    ///
    /// # Errors
    /// The memory did not become available within `patience`.
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
            // Releases between the attempt and the wait must not be missed.
            freed.as_mut().enable();
            let refused = match self.try_take(tenant, bytes) {
                Ok(share) => return Ok(share),
                Err(refused) => refused,
            };
            if timeout_at(deadline, freed).await.is_err() {
                self.count_refusal(tenant, &refused);
                return Err(refused);
            }
        }
    }

    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.held.lock().all
    }

    /// Returns whether a tenant may hold `of_tenant` bytes if that leaves `free` bytes.
    const fn is_fair(&self, of_tenant: usize, free: usize) -> bool {
        of_tenant <= self.total / SMALL_SHARE_DIVISOR
            || of_tenant.saturating_add(self.total / RESERVE_DIVISOR) <= free
    }

    fn grow(&self, tenant: TenantId, more: usize) -> Result<(), MemoryRefusal> {
        self.try_grow(tenant, more)
            .inspect_err(|refused| self.count_refusal(tenant, refused))
    }

    fn count_refusal(&self, tenant: TenantId, refused: &MemoryRefusal) {
        let mut by = self.refused_by.lock();
        if by.len() >= MAX_COUNTED && !by.contains_key(&tenant) {
            // A total that begins anew is taken for none.
            by.clear();
        }
        *by.entry(tenant).or_default() += 1;
        drop(by);
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
        // More than a tenant may ever hold, or more than an equal split among the present holders.
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

impl OverloadSource for MemoryPool {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        for (tenant, refused) in &*self.refused_by.lock() {
            into.push(OverloadSample {
                kind: OverloadKind::Memory,
                scope: OverloadScope::Tenant(*tenant),
                subject: self.name.into(),
                measure: OverloadMeasure::Total(*refused),
                limit: Some(ByteSize(self.total as u64).to_string()),
                reason: "Requests were refused, because the memory for them was in use".into(),
            });
        }
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
    /// Bytes held.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// The tenant that holds the share.
    pub const fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// Sets the size of the share to `bytes`.
    ///
    /// # Errors
    /// The additional memory is not available. The share stays as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), MemoryRefusal> {
        if bytes > self.held {
            self.pool.grow(self.tenant, bytes - self.held)?;
        } else if bytes < self.held {
            self.pool.shrink(self.tenant, self.held - bytes);
        }
        self.held = bytes;
        Ok(())
    }

    /// Grows the share by `more` bytes.
    ///
    /// # Errors
    /// See [`Self::resize`].
    pub fn grow(&mut self, more: usize) -> Result<(), MemoryRefusal> {
        self.resize(self.held.saturating_add(more))
    }

    /// Shrinks the share to at most `bytes`.
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
        // The limit applies to the tenant, not to the share.
        assert_eq!(pool.take(tenant, 1).unwrap_err().exhausted, ExhaustedLimit::Part);
        // A request that can never fit also counts as the tenant's own fault.
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
            // The existing tenants get no more, but a newcomer always gets a small holding.
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
