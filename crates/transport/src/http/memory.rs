//! The memory used by posts: the received parts of their bodies, and the records made of them.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_core::memory_pool::{MemoryPool, MemoryShare};
use fieldline_core::options::ByteSize;
use fieldline_model::{DeviceId, TenantId};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{DeviceHttpLimits, HttpRefusal};

/// Unit in which memory is counted, bytes.
pub(super) const UNIT: usize = 16 << 10;
/// The records made of a body take at most about this many times its size; the worst case is an array of empty slots,
/// which become `null`.
const EXPANSION: usize = 5;

/// The memory used by all posts together.
pub(super) struct PostMemory {
    bodies: Arc<MemoryPool>,
    records: Arc<Semaphore>,
    record_units: usize,
    /// Bytes of bodies that one device may take.
    most_of_device: usize,
    by_device: Mutex<HashMap<DeviceId, usize>>,
}

/// The memory used by the body of one post; given back when dropped.
pub(super) struct BodyShare {
    memory: Arc<PostMemory>,
    device: DeviceId,
    share: MemoryShare,
}

/// The memory used by the records of one post; given back when dropped.
pub(super) struct RecordShare(OwnedSemaphorePermit);

impl PostMemory {
    pub(super) fn new(limits: &DeviceHttpLimits) -> Arc<Self> {
        let most = Semaphore::MAX_PERMITS.min(u32::MAX as usize);
        let units = (limits.body_memory / UNIT).clamp(1, most);
        Arc::new(Self {
            bodies: MemoryPool::new("http.device-body-memory", ByteSize(limits.body_memory as u64)),
            records: Arc::new(Semaphore::new(units)),
            record_units: units,
            // One device must be able to send the largest body, but should not keep other devices from sending theirs.
            most_of_device: (limits.body_memory / 4).max(limits.max_body.next_multiple_of(UNIT)),
            by_device: Mutex::default(),
        })
    }

    /// The pool of bodies.
    pub(super) fn bodies(&self) -> Arc<MemoryPool> {
        Arc::clone(&self.bodies)
    }

    /// Returns an empty share, for a body of which nothing has arrived yet.
    pub(super) fn for_body(self: &Arc<Self>, tenant: TenantId, device: DeviceId) -> BodyShare {
        BodyShare {
            memory: Arc::clone(self),
            device,
            share: self.bodies.share(tenant),
        }
    }

    /// Waits until there is room for the records that a body may become. If they could exceed the whole budget, waits
    /// for the whole budget.
    pub(super) async fn for_records(&self, body_bytes: usize) -> Result<RecordShare, HttpRefusal> {
        let units = units(body_bytes.saturating_mul(EXPANSION)).clamp(1, self.record_units);
        let count = u32::try_from(units).map_err(|_| HttpRefusal::TooLarge)?;
        let permit = Arc::clone(&self.records).acquire_many_owned(count).await;
        permit.map(RecordShare).map_err(|_| HttpRefusal::NotTaken)
    }
}

impl BodyShare {
    /// Takes memory so that the share covers `bytes`. Fails rather than waits: posts that hold shares and wait for each
    /// other would deadlock.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), HttpRefusal> {
        let needed = bytes.next_multiple_of(UNIT);
        let more = needed.saturating_sub(self.share.held());
        if more == 0 {
            return Ok(());
        }
        let mut by_device = self.memory.by_device.lock();
        let of_device = by_device.get(&self.device).copied().unwrap_or(0) + more;
        if of_device > self.memory.most_of_device {
            return Err(HttpRefusal::Overloaded);
        }
        self.share.resize(needed).map_err(|_| HttpRefusal::Overloaded)?;
        by_device.insert(self.device, of_device);
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        let held = self.share.held();
        if held == 0 {
            return;
        }
        let mut by_device = self.memory.by_device.lock();
        if let Some(bytes) = by_device.get_mut(&self.device) {
            *bytes = bytes.saturating_sub(held);
            if *bytes == 0 {
                by_device.remove(&self.device);
            }
        }
    }
}

impl RecordShare {
    /// Gives back the memory beyond `bytes`, the actual size of the records.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let needed = units(bytes).max(1);
        if let Some(excess) = self.0.num_permits().checked_sub(needed) {
            drop(self.0.split(excess));
        }
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}
