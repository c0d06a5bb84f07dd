//! A semaphore that is fair to tenants: it limits the concurrent operations of each, serves waiting ones in order, and
//! bounds the wait.

use std::sync::Arc;
use std::time::Duration;

use fieldline_model::TenantId;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::ports::{StoreError, StoreErrorKind, StoreResult};

/// Most waiting operations of one tenant.
const MAX_WAITING: usize = 1024;

/// See the module.
#[derive(Debug)]
pub struct TenantSemaphore {
    all: Arc<Semaphore>,
    /// Concurrent operations of one tenant.
    part: usize,
    timeout: Duration,
    tenants: Mutex<FxHashMap<TenantId, Arc<Semaphore>>>,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub struct TenantPermit {
    own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
    semaphore: Arc<TenantSemaphore>,
    tenant: TenantId,
}

impl TenantSemaphore {
    /// Creates a semaphore with `count` permits; one tenant gets at most half of them.
    pub fn new(count: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::new(Semaphore::new(count.max(1))),
            part: (count / 2).max(1),
            timeout: patience,
            tenants: Mutex::default(),
        })
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// Too many operations of the tenant wait already, or the wait took too long.
    pub async fn acquire(self: &Arc<Self>, tenant: TenantId) -> StoreResult<TenantPermit> {
        let semaphore = {
            let mut tenants = self.tenants.lock();
            let known = tenants.entry(tenant);
            let semaphore = known.or_insert_with(|| Arc::new(Semaphore::new(self.part)));
            // Besides the table, each running or waiting operation holds one reference.
            if Arc::strong_count(semaphore) > self.part + MAX_WAITING {
                return Err(busy());
            }
            Arc::clone(semaphore)
        };
        let mut turn = TenantPermit {
            own: None,
            _all: None,
            semaphore: Arc::clone(self),
            tenant,
        };
        let own = timeout(self.timeout, semaphore.acquire_owned()).await;
        turn.own = own.map_err(|_| busy())?.ok();
        let all = timeout(self.timeout, Arc::clone(&self.all).acquire_owned()).await;
        turn._all = all.map_err(|_| crowded())?.ok();
        Ok(turn)
    }
}

impl Drop for TenantPermit {
    fn drop(&mut self) {
        self.own = None;
        let mut tenants = self.semaphore.tenants.lock();
        if tenants
            .get(&self.tenant)
            .is_some_and(|known| Arc::strong_count(known) == 1)
        {
            tenants.remove(&self.tenant);
        }
    }
}

fn busy() -> StoreError {
    StoreError::new(
        StoreErrorKind::Busy,
        "The tenant asks for too much at the same time: try again later",
    )
}

fn crowded() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "Too much is asked for at the same time: try again later",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tenant_has_half_of_the_turns_and_others_get_theirs_at_once() {
        let turns = TenantSemaphore::new(4, Duration::from_secs(10));
        let (tenant, other) = (TenantId::new(), TenantId::new());
        let held = [
            turns.acquire(tenant).await.unwrap(),
            turns.acquire(tenant).await.unwrap(),
        ];
        let begun = tokio::time::Instant::now();
        let _others = turns.acquire(other).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let refused = turns.acquire(tenant).await.err().unwrap();
        assert_eq!(refused.kind(), StoreErrorKind::Busy);
        assert!(begun.elapsed() >= Duration::from_secs(10));
        drop(held);
        assert!(turns.acquire(tenant).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_turns_are_taken_who_waits_too_long_is_told_so() {
        let turns = TenantSemaphore::new(2, Duration::from_secs(10));
        let _held = [
            turns.acquire(TenantId::new()).await.unwrap(),
            turns.acquire(TenantId::new()).await.unwrap(),
        ];
        let refused = turns.acquire(TenantId::new()).await.err().unwrap();
        assert_eq!(refused.kind(), StoreErrorKind::Unavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_so_many_wait_and_nothing_is_left_of_those_who_have_gone() {
        let turns = TenantSemaphore::new(2, Duration::from_secs(10));
        let tenant = TenantId::new();
        let held = turns.acquire(tenant).await.unwrap();
        let waiting: Vec<_> = (0..MAX_WAITING + 10)
            .map(|_| {
                let turns = Arc::clone(&turns);
                tokio::spawn(async move { turns.acquire(tenant).await.map(drop).is_ok() })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(held);
        let mut served = 0;
        for one in waiting {
            served += usize::from(one.await.unwrap());
        }
        assert!((MAX_WAITING - 1..=MAX_WAITING + 1).contains(&served), "{served}");
        assert!(turns.tenants.lock().is_empty());
    }
}
