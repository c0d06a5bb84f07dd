//! State shared by the journal's handle, its committer and its consumers.
//!
//! Locks are taken in the order registry, log, pending.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, watch};

use crate::append_buffer::{AppendBuffer, WakeTargets};
use crate::disk::JournalDisk;
use crate::log::{DurableLog, segment_name};
use crate::metrics::JournalMetrics;
use crate::options::Options;
use crate::registry::QueueRegistry;

pub(crate) struct JournalShared {
    pub(crate) disk: Arc<dyn JournalDisk>,
    pub(crate) options: Options,
    pub(crate) log_number: u64,
    pub(crate) registry: Mutex<QueueRegistry>,
    pub(crate) log: Mutex<DurableLog>,
    pub(crate) append_buffer: Mutex<AppendBuffer>,
    /// Wakes the committer.
    pub(crate) work: Condvar,
    /// Wakes devices whose appends were refused as busy.
    pub(crate) room: Notify,
    /// Wakes other senders whose appends were refused as busy.
    pub(crate) internal_room: Notify,
    /// Number of senders waiting for room.
    pub(crate) waiting_senders: AtomicUsize,
    /// True once the committer has ended.
    pub(crate) ended: watch::Sender<bool>,
    pub(crate) metrics: JournalMetrics,
}

impl JournalShared {
    /// Deletes consumed segments. Runs where consumers commit, so that no append waits for a deletion.
    ///
    /// Segments are deleted one by one, oldest first, each durably: a crash must never leave a hole in the log.
    pub(crate) fn delete_consumed(&self) {
        let (retain, max) = (self.options.retain_bytes.0, self.options.max_bytes.0);
        let registry = self.registry.lock();
        let mut deleted = false;
        loop {
            let segment = self.log.lock().take_consumed(&registry, retain, max);
            let Some(segment) = segment else { break };
            let name = segment_name(segment.id);
            let removed = match self.disk.remove(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
            if let Err(error) = removed.and_then(|()| self.disk.sync_directory()) {
                tracing::warn!(file = self.disk.describe(&name), %error, "could not delete a consumed journal segment");
                self.log.lock().put_back(segment);
                break;
            }
            tracing::debug!(
                segment = segment.id,
                bytes = segment.length,
                "deleted a consumed journal segment"
            );
            deleted = true;
        }
        drop(registry);
        if deleted {
            self.update_cap();
        }
    }

    /// Refuses appends of devices while the log has its largest size, and updates the use of the reserve.
    pub(crate) fn update_cap(&self) {
        let log = self.log.lock();
        self.metrics.log_bytes.set(log.bytes() as f64);
        let mut pending = self.append_buffer.lock();
        let woken = pending.update_log_size(log.bytes());
        self.metrics.reserve_bytes.set(pending.reserve.used() as f64);
        drop(pending);
        drop(log);
        self.wake(woken);
    }

    /// Wakes senders whose appends were refused as busy.
    pub(crate) fn wake(&self, woken: WakeTargets) {
        if woken.devices {
            self.room.notify_waiters();
        }
        if woken.internal {
            self.internal_room.notify_waiters();
        }
    }

    /// Wakes all senders, which then get the reason for the refusal.
    pub(crate) fn wake_all(&self) {
        self.wake(WakeTargets {
            devices: true,
            internal: true,
        });
    }
}
