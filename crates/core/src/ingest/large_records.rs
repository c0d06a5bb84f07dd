//! Limits the large records between journal and stores. A device's data is acknowledged once it is in the journal. One
//! second of large records in the journal takes the stores longer than a second, and later records of the partition
//! wait behind them. Each tenant may therefore have only a limited number of such bytes in flight. Further devices
//! wait; nothing is refused. They also wait while much of what left its partition for elsewhere is not stored there.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fieldline_model::TenantId;
use fieldline_model::record::RecordBatch;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::waiting_lines::WaitingLines;
use crate::memory_pool::{MemoryPool, MemoryShare};
use crate::options::ByteSize;
use crate::ports::{AppendError, Offset, Partition};

/// Records of this mean size are large, bytes: the journal takes more of them per second than the stores.
const LARGE_RECORD: usize = 1 << 10;
/// An append of this size is large as well, bytes, whatever it consists of.
const LARGE_APPEND: usize = 128 << 10;
/// Bytes of large records that all tenants may have in flight; a tenant alone gets three eighths. The stores take this
/// amount in about a second.
const PENDING_LIMIT: ByteSize = ByteSize::mib(64);
/// Most bytes that one append counts.
const MAX_APPEND_BYTES: usize = 16 << 20;
/// How long a device waits at most: a partition may be stopped.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is looked whether a tenant is still held back; one of its devices does.
const BACKLOG_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// What is left of tenants' records once the partitions they came in are past them.
pub trait TenantBacklog: Send + Sync {
    /// Whether so much is left of a tenant's that its devices must not add large records.
    fn holds_back(&self, tenant: TenantId) -> bool;
}

/// See the module.
pub(super) struct LargeRecordLimiter {
    pool: Arc<MemoryPool>,
    /// Those of a tenant that wait get their memory in their order.
    lines: WaitingLines,
    pending: Mutex<HashMap<Partition, VecDeque<PendingLargeRecord>>>,
    count: AtomicUsize,
    backlog: OnceLock<Arc<dyn TenantBacklog>>,
}

struct PendingLargeRecord {
    /// The record is at this position or after it.
    at: Offset,
    since: Instant,
    _share: MemoryShare,
}

/// A permit for large records, if they need one and one was available.
pub type LargeRecordPermit = Option<MemoryShare>;

/// The size of the records of an append.
#[derive(Debug, Clone, Copy)]
pub struct AppendSize {
    /// Bytes of all records.
    pub bytes: usize,
    /// Number of records.
    pub records: u32,
}

impl AppendSize {
    /// Creates the size of one record.
    pub const fn single(bytes: usize) -> Self {
        Self { bytes, records: 1 }
    }

    const fn is_large(self) -> bool {
        let large_records = LARGE_RECORD.saturating_mul(self.records as usize);
        self.bytes >= LARGE_APPEND || self.records > 0 && self.bytes >= large_records
    }
}

impl From<&RecordBatch> for AppendSize {
    fn from(records: &RecordBatch) -> Self {
        Self {
            bytes: records.as_bytes().len(),
            records: records.count(),
        }
    }
}

impl LargeRecordLimiter {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            pool: MemoryPool::new("ingest.large-records", PENDING_LIMIT),
            lines: WaitingLines::default(),
            pending: Mutex::default(),
            count: AtomicUsize::new(0),
            backlog: OnceLock::new(),
        })
    }

    /// Sets what else holds back large records. Only the first call counts.
    pub(super) fn set_backlog(&self, backlog: Arc<dyn TenantBacklog>) {
        let _ = self.backlog.set(backlog);
    }

    fn is_held_back(&self, tenant: TenantId) -> bool {
        self.backlog
            .get()
            .is_some_and(|backlog| backlog.holds_back(tenant))
    }

    /// Acquires a permit for records of a size; `None` if they need none.
    ///
    /// # Errors
    /// [`AppendError::Busy`]: the tenant has too much in flight.
    pub(super) fn try_acquire(
        &self,
        tenant: TenantId,
        size: AppendSize,
    ) -> Result<LargeRecordPermit, AppendError> {
        if !size.is_large() {
            return Ok(None);
        }
        // Nobody comes before those who wait.
        if self.lines.has_waiting(tenant) || self.is_held_back(tenant) {
            return Err(AppendError::Busy);
        }
        let bytes = size.bytes.min(MAX_APPEND_BYTES);
        let share = self.pool.try_take(tenant, bytes).or_else(|_| {
            self.forget_old();
            self.pool.try_take(tenant, bytes)
        });
        share.map(Some).map_err(|_| AppendError::Busy)
    }

    /// Like [`Self::try_acquire`], but waits for bytes in flight to be stored, for a limited time: after that, the
    /// request proceeds without a permit.
    pub(super) async fn acquire(&self, tenant: TenantId, size: AppendSize) -> LargeRecordPermit {
        if !size.is_large() {
            return None;
        }
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let entered = async {
            while self.is_held_back(tenant) && Instant::now() < deadline {
                tokio::time::sleep(BACKLOG_CHECK_INTERVAL).await;
            }
            self.forget_old();
            let patience = deadline.saturating_duration_since(Instant::now());
            let bytes = size.bytes.min(MAX_APPEND_BYTES);
            self.pool.take_within(tenant, bytes, patience).await
        };
        self.lines.run_in_turn(tenant, deadline, entered).await.ok()
    }

    /// Keeps the permit of an append until it is stored; `tail` is the journal's tail of the partition before the append.
    pub(super) fn track_append(&self, partition: Partition, tail: Offset, place: &mut LargeRecordPermit) {
        let Some(share) = place.take() else { return };
        let mut under_way = self.pending.lock();
        let queue = under_way.entry(partition).or_default();
        // Appends that the tail does not count yet come before this one.
        let behind = queue.back().map_or(0, |last| last.at.0 + 1);
        queue.push_back(PendingLargeRecord {
            at: Offset(tail.0.max(behind)),
            since: Instant::now(),
            _share: share,
        });
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Releases the permits of a partition for the records before a position: all of them are stored.
    pub(super) fn release_stored(&self, partition: Partition, position: Offset) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut under_way = self.pending.lock();
        let Some(queue) = under_way.get_mut(&partition) else {
            return;
        };
        let passed = queue.partition_point(|large| large.at < position);
        queue.drain(..passed);
        if queue.is_empty() {
            under_way.remove(&partition);
        }
        self.count.fetch_sub(passed, Ordering::Release);
    }

    /// Releases old permits, so that a stopped partition delays no other, and a record that was never written holds
    /// nothing.
    fn forget_old(&self) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let now = Instant::now();
        self.pending.lock().retain(|_, queue| {
            let old = queue.partition_point(|large| now.duration_since(large.since) >= WAIT_TIMEOUT);
            queue.drain(..old);
            self.count.fetch_sub(old, Ordering::Release);
            !queue.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::ports::QueueId;

    const HERE: Partition = Partition {
        queue: QueueId(0),
        index: 1,
    };

    fn append(large: &LargeRecordLimiter, tenant: TenantId, bytes: usize) -> bool {
        let Ok(mut place) = large.try_acquire(tenant, AppendSize::single(bytes)) else {
            return false;
        };
        large.track_append(HERE, Offset(7), &mut place);
        true
    }

    #[test]
    fn a_tenant_has_so_much_under_way_until_it_is_stored_and_others_are_not_held_up() {
        let large = LargeRecordLimiter::new();
        let (tenant, other) = (TenantId::new(), TenantId::new());
        let taken = (0..20).take_while(|_| append(&large, tenant, 4 << 20)).count();
        assert_eq!(taken, 6);
        let small = [
            AppendSize::single(LARGE_RECORD - 1),
            AppendSize {
                bytes: LARGE_APPEND - 1,
                records: 128,
            },
        ];
        for size in small {
            assert!(large.try_acquire(tenant, size).is_ok_and(|place| place.is_none()));
        }
        assert!(
            large
                .try_acquire(other, AppendSize::single(LARGE_RECORD))
                .is_ok_and(|place| place.is_some())
        );
        large.release_stored(HERE, Offset(7));
        assert!(!append(&large, tenant, 4 << 20), "none of them was stored");
        large.release_stored(HERE, Offset(8));
        assert!(append(&large, tenant, 4 << 20));
        assert!(!append(&large, tenant, 4 << 20));
        assert!(append(&large, other, 4 << 20));
        large.release_stored(HERE, Offset(1_000));
        assert_eq!(large.pool.held(), 0);
        assert!(large.pending.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_stored_in_time_holds_up_no_more() {
        let large = LargeRecordLimiter::new();
        let tenant = TenantId::new();
        assert_eq!((0..20).take_while(|_| append(&large, tenant, 4 << 20)).count(), 6);
        tokio::time::sleep(WAIT_TIMEOUT - Duration::from_millis(1)).await;
        assert!(!append(&large, tenant, 4 << 20));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(append(&large, tenant, 4 << 20));
        assert_eq!(large.count.load(Ordering::Relaxed), 1);
        // The released record is stored in the end; the one that came later is not.
        large.release_stored(HERE, Offset(7));
        assert_eq!(large.pool.held(), 4 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn those_of_a_tenant_who_wait_come_in_their_order_and_others_past_them() {
        let large = LargeRecordLimiter::new();
        let (tenant, other) = (TenantId::new(), TenantId::new());
        assert!(append(&large, tenant, 16 << 20));
        let wait = |bytes| {
            let large = Arc::clone(&large);
            tokio::spawn(async move { large.acquire(tenant, AppendSize::single(bytes)).await })
        };
        let first = wait(16 << 20);
        tokio::task::yield_now().await;
        let second = wait(LARGE_RECORD);
        tokio::task::yield_now().await;
        let permit = large.acquire(other, AppendSize::single(LARGE_RECORD)).await;
        assert!(permit.is_some());
        // There is room for the second one, who does not overtake; nor does anybody who comes now.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!first.is_finished() && !second.is_finished());
        assert!(!append(&large, tenant, LARGE_RECORD));
        large.release_stored(HERE, Offset(8));
        assert!(first.await.unwrap().is_some() && second.await.unwrap().is_some());
        assert!(!large.lines.has_waiting(tenant));
        assert!(append(&large, tenant, LARGE_RECORD));
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_stops_waiting_leaves_the_line() {
        let large = LargeRecordLimiter::new();
        let tenant = TenantId::new();
        assert!(append(&large, tenant, 16 << 20));
        let waiting = large.acquire(tenant, AppendSize::single(16 << 20));
        assert!(
            tokio::time::timeout(Duration::from_secs(1), waiting)
                .await
                .is_err()
        );
        assert!(append(&large, tenant, LARGE_RECORD));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_left_its_partition_unstored_holds_back_as_well() {
        struct OneTenant(TenantId, AtomicBool);
        impl TenantBacklog for OneTenant {
            fn holds_back(&self, tenant: TenantId) -> bool {
                tenant == self.0 && self.1.load(Ordering::Relaxed)
            }
        }
        let large = LargeRecordLimiter::new();
        let (tenant, other) = (TenantId::new(), TenantId::new());
        let backlog = Arc::new(OneTenant(tenant, true.into()));
        large.set_backlog(backlog.clone());
        assert!(!append(&large, tenant, LARGE_RECORD) && append(&large, other, LARGE_RECORD));
        assert!(
            large
                .try_acquire(tenant, AppendSize::single(LARGE_RECORD - 1))
                .is_ok()
        );
        let waiting = tokio::spawn({
            let large = large.clone();
            async move { large.acquire(tenant, AppendSize::single(LARGE_RECORD)).await }
        });
        tokio::time::sleep(WAIT_TIMEOUT / 2).await;
        assert!(!waiting.is_finished());
        backlog.1.store(false, Ordering::Relaxed);
        assert!(waiting.await.unwrap().is_some());
        backlog.1.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        large.acquire(tenant, AppendSize::single(LARGE_RECORD)).await;
        assert_eq!(
            begun.elapsed().as_secs(),
            WAIT_TIMEOUT.as_secs(),
            "it goes on in the end"
        );
    }

    #[test]
    fn an_append_without_records_needs_no_place() {
        let large = LargeRecordLimiter::new();
        let empty = AppendSize { bytes: 0, records: 0 };
        assert!(
            large
                .try_acquire(TenantId::new(), empty)
                .is_ok_and(|place| place.is_none())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_long_enough_goes_on() {
        let large = LargeRecordLimiter::new();
        let tenant = TenantId::new();
        assert!(
            append(&large, tenant, 100 << 20),
            "one counts as what there is room for"
        );
        assert!(!append(&large, tenant, 100 << 20));
        assert!(
            large
                .acquire(tenant, AppendSize::single(100 << 20))
                .await
                .is_none()
        );
    }
}
