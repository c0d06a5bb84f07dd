//! Tracks whether several tenants send to a partition. A worker sees the records it takes, but not those queued behind
//! them. A tenant with no others behind it may take its time; otherwise it must make way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_model::TenantId;
use parking_lot::RwLock;

use crate::ports::QueueId;

/// The senders to the partitions of a queue since the program started.
pub(super) struct PartitionSenders(Box<[LastSender]>);

/// The senders to one partition, on its own cache line because transports on all processors write here.
#[derive(Debug, Default)]
#[repr(align(64))]
struct LastSender {
    /// The last tenant, by a hash of its id; 0 for none.
    last: AtomicU64,
    /// How often the tenant changed.
    changes: AtomicU64,
}

/// The senders of all queues.
#[derive(Clone, Default)]
pub(super) struct QueueSenders(Arc<RwLock<HashMap<QueueId, Arc<PartitionSenders>>>>);

impl QueueSenders {
    /// Returns the senders of a queue, the same ones each time it is opened.
    pub(super) fn of(&self, queue: QueueId, partitions: u16) -> Arc<PartitionSenders> {
        let mut queues = self.0.write();
        queues
            .entry(queue)
            .or_insert_with(|| PartitionSenders::new(partitions))
            .clone()
    }

    /// Returns the senders of a queue, if it was opened.
    pub(super) fn get(&self, queue: QueueId) -> Option<Arc<PartitionSenders>> {
        self.0.read().get(&queue).cloned()
    }
}

impl PartitionSenders {
    fn new(partitions: u16) -> Arc<Self> {
        Arc::new(Self((0..partitions).map(|_| LastSender::default()).collect()))
    }

    /// Records that a tenant sends to a partition.
    pub(super) fn note(&self, partition: u16, tenant: TenantId) {
        let Some(sender) = self.0.get(usize::from(partition)) else {
            return;
        };
        let of_tenant = part_of(tenant);
        // Of two concurrent senders one may be missed; it will be noted with its next record.
        let last = sender.last.load(Ordering::Relaxed);
        if last != of_tenant {
            sender.last.store(of_tenant, Ordering::Relaxed);
            sender.changes.fetch_add(u64::from(last != 0), Ordering::Relaxed);
        }
    }

    /// How often the sending tenant of a partition changed.
    pub(super) fn changes(&self, partition: u16) -> u64 {
        let sender = self.0.get(usize::from(partition));
        sender.map_or(0, |sender| sender.changes.load(Ordering::Relaxed))
    }

    fn is_last(&self, partition: u16, tenant: TenantId) -> bool {
        let sender = self.0.get(usize::from(partition));
        let last = sender.map_or(0, |sender| sender.last.load(Ordering::Relaxed));
        last == 0 || last == part_of(tenant)
    }
}

fn part_of(tenant: TenantId) -> u64 {
    (tenant.0.as_u64_pair().0 ^ tenant.0.as_u64_pair().1).max(1)
}

/// The tenants that wait behind the records of a delivery.
pub struct WaitingTenants {
    /// `None` if unknown.
    pub(super) senders: Option<Arc<PartitionSenders>>,
    pub(super) partition: u16,
    /// [`PartitionSenders::changes`] at the previous delivery.
    pub(super) changes: u64,
}

impl WaitingTenants {
    /// Returns whether other tenants have sent to the partition since the previous delivery.
    pub fn has_others(&self, tenant: TenantId) -> bool {
        self.senders.as_ref().is_some_and(|senders| {
            senders.changes(self.partition) != self.changes || !senders.is_last(self.partition, tenant)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(senders: &Arc<PartitionSenders>) -> WaitingTenants {
        WaitingTenants {
            senders: Some(senders.clone()),
            partition: 1,
            changes: senders.changes(1),
        }
    }

    #[test]
    fn others_are_seen_as_soon_as_they_send_and_only_where_they_do() {
        let [tenant, other] = [TenantId::new(), TenantId::new()];
        let senders = PartitionSenders::new(2);
        let waits = waiting(&senders);
        assert!(!waits.has_others(tenant), "nobody has sent anything");
        senders.note(0, other);
        senders.note(1, tenant);
        senders.note(1, tenant);
        assert!(!waits.has_others(tenant));
        senders.note(1, other);
        assert!(waits.has_others(tenant));
        senders.note(1, tenant);
        assert!(
            waits.has_others(tenant),
            "it waits, although it is not the last one"
        );
        assert!(
            !waiting(&senders).has_others(tenant),
            "it has sent nothing since then"
        );
        assert!(waiting(&senders).has_others(other));
        senders.note(7, other);
    }
}
