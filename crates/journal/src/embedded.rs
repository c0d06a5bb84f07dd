//! The journal's handle.

use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::ports::{
    AppendError, AppendFuture, AppendOrigin, HoldBackCause, Journal, JournalConsumer, JournalError, Offset,
    Partition, QueueId,
};
use fieldline_model::record::RecordBatch;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, watch};

use crate::append_buffer::AppendBuffer;
use crate::backpressure::{RoomWaiter, watch};
use crate::committer::{JournalCommitter, PROBE_FILE};
use crate::consumer::GroupMember;
use crate::disk::{JournalDisk, LockedDirectory};
use crate::error::{failed, invalid};
use crate::log::{DurableLog, segment_id, segment_name};
use crate::metrics::JournalMetrics;
use crate::options::Options;
use crate::recovery::{RecoveredLog, recover};
use crate::registry::QueueRegistry;
use crate::shared::JournalShared;

/// The journal as a set of files on this node.
///
/// Dropping it writes the buffered records and stops; [`Journal::close`] does the same without blocking.
pub struct EmbeddedJournal {
    shared: Arc<JournalShared>,
    thread: Option<JoinHandle<()>>,
    /// Watches the backpressure until the sender is dropped.
    watcher: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl std::fmt::Debug for EmbeddedJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedJournal").finish_non_exhaustive()
    }
}

impl EmbeddedJournal {
    /// Opens the journal in a directory, or creates it, and recovers from a crash or damage.
    pub fn open(dir: &Path, options: &Options) -> Result<Self, JournalError> {
        let disk =
            LockedDirectory::open(dir).map_err(failed(format!("open the journal in {}", dir.display())))?;
        let (shared, committer) = start(Arc::new(disk), options)?;
        let (stop, told) = mpsc::channel();
        let watched = Arc::clone(&shared);
        let watcher = spawn("journal-watch", move || watch(&watched, &told))?;
        let thread = spawn("journal", move || committer.run())?;
        Ok(Self {
            shared,
            thread: Some(thread),
            watcher: Some((stop, watcher)),
        })
    }

    /// Opens a journal whose committer the caller runs.
    #[cfg(test)]
    pub(crate) fn open_on(
        disk: Arc<dyn JournalDisk>,
        options: &Options,
    ) -> Result<(Self, JournalCommitter), JournalError> {
        let (shared, committer) = start(disk, options)?;
        let journal = Self {
            shared,
            thread: None,
            watcher: None,
        };
        Ok((journal, committer))
    }

    fn stop(&self) {
        let mut pending = self.shared.append_buffer.lock();
        pending.closing = true;
        drop(pending);
        self.shared.wake_all();
        self.shared.work.notify_one();
    }
}

impl Drop for EmbeddedJournal {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the journal's thread had panicked");
        }
        if let Some((stop, watcher)) = self.watcher.take() {
            drop(stop);
            // A panic of the watcher costs nothing.
            let _ = watcher.join();
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, JournalError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(failed(format!("start the thread {name}")))
}

/// Recovers the log and prepares everything needed for appends.
fn start(
    disk: Arc<dyn JournalDisk>,
    options: &Options,
) -> Result<(Arc<JournalShared>, JournalCommitter), JournalError> {
    options.check().map_err(invalid)?;
    let mut registry = load_registry(disk.as_ref())?;
    let mut recovered = recover(disk.as_ref(), &registry, options.discard_damaged)?;
    registry.clamp(&recovered.ends);
    let active = match recovered.active.take() {
        Some(active) => active,
        None => first_segment(disk.as_ref(), recovered.next_sequence)?,
    };
    // The recovered data may be in the page cache only, left by a killed process. From here on it counts as durable;
    // blocks that might not be on the disk have been rewritten.
    let (_, file, _) = &active;
    file.sync()
        .and_then(|()| disk.sync_directory())
        .map_err(failed("make the recovered journal durable".to_owned()))?;
    // Left over from an interrupted probe.
    let _ = disk.remove(PROBE_FILE);
    let RecoveredLog {
        segments,
        ends,
        next_sequence,
        truncated,
        ..
    } = recovered;
    let mut log = DurableLog::new(segments, ends);
    let mut pending = AppendBuffer::new(options);
    for queue in &registry.queues {
        pending.slots.add_queue(queue.partitions);
    }
    log.add_queues(registry.queues.len());
    let meters = JournalMetrics::describe();
    meters.truncated_bytes.increment(truncated);
    meters.refusing.set(0.0);
    let shared = Arc::new(JournalShared {
        disk,
        options: options.clone(),
        log_number: registry.log,
        registry: Mutex::new(registry),
        log: Mutex::new(log),
        append_buffer: Mutex::new(pending),
        work: Condvar::new(),
        room: Notify::new(),
        internal_room: Notify::new(),
        waiting_senders: AtomicUsize::new(0),
        ended: watch::Sender::new(false),
        metrics: meters,
    });
    shared.delete_consumed();
    shared.update_cap();
    let committer = JournalCommitter::new(Arc::clone(&shared), active, next_sequence);
    Ok((shared, committer))
}

fn load_registry(disk: &dyn JournalDisk) -> Result<QueueRegistry, JournalError> {
    if let Some(registry) = QueueRegistry::load(disk)? {
        return Ok(registry);
    }
    let names = disk
        .list()
        .map_err(failed("list the journal's files".to_owned()))?;
    if let Some(name) = names.iter().find(|name| segment_id(name).is_some()) {
        return Err(JournalError::Corrupt(format!(
            "the journal's file `manifest` is missing beside {}; put it back from a copy",
            disk.describe(name)
        )));
    }
    QueueRegistry::create(disk)
}

fn first_segment(
    disk: &dyn JournalDisk,
    id: u64,
) -> Result<(u64, Arc<dyn crate::disk::DiskFile>, u64), JournalError> {
    let name = segment_name(id);
    let create = || {
        let file = disk.create(&name)?;
        disk.sync_directory()?;
        Ok(file)
    };
    let file = create().map_err(failed(format!("create {}", disk.describe(&name))))?;
    Ok((id, file, 0))
}

#[async_trait]
impl Journal for EmbeddedJournal {
    fn open_queue(&self, name: &str, partitions: u16) -> Result<QueueId, JournalError> {
        let mut registry = self.shared.registry.lock();
        let queue = registry.open_queue(self.shared.disk.as_ref(), name, partitions)?;
        let mut log = self.shared.log.lock();
        let mut pending = self.shared.append_buffer.lock();
        log.add_queues(registry.queues.len());
        for queue in registry.queues.iter().skip(pending.slots.queues()) {
            pending.slots.add_queue(queue.partitions);
        }
        Ok(queue)
    }

    fn partitions(&self, queue: QueueId) -> u16 {
        self.shared.registry.lock().partitions(queue)
    }

    fn log_number(&self) -> u64 {
        self.shared.log_number
    }

    fn queues(&self) -> Vec<String> {
        let registry = self.shared.registry.lock();
        registry.queues.iter().map(|queue| queue.name.clone()).collect()
    }

    fn append(
        &self,
        partition: Partition,
        records: &RecordBatch,
        origin: AppendOrigin,
    ) -> Result<AppendFuture, AppendError> {
        if records.is_empty() {
            return Ok(AppendFuture::durable());
        }
        let limit = self.shared.options.max_append.as_usize();
        if records.as_bytes().len() > limit {
            return Err(AppendError::TooLarge { limit });
        }
        let mut pending = self.shared.append_buffer.lock();
        let group = pending.add(partition, records, origin)?;
        let wake = std::mem::take(&mut pending.sleeping);
        drop(pending);
        if wake {
            self.shared.work.notify_one();
        }
        Ok(AppendFuture::of(group))
    }

    async fn ready(&self, origin: AppendOrigin) {
        let room = match origin {
            AppendOrigin::Device(_) => &self.shared.room,
            AppendOrigin::Internal(_) => &self.shared.internal_room,
        };
        loop {
            let notified = room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let mut pending = self.shared.append_buffer.lock();
                if pending.is_ready(origin) {
                    return;
                }
                pending.apply_backpressure(origin);
            }
            let _waiting = RoomWaiter::among(&self.shared.waiting_senders);
            notified.await;
        }
    }

    fn subscribe(
        &self,
        queue: QueueId,
        group: &str,
        members: u16,
    ) -> Result<Vec<Box<dyn JournalConsumer>>, JournalError> {
        let mut registry = self.shared.registry.lock();
        let partitions = registry.partitions(queue);
        let positions = registry.join(self.shared.disk.as_ref(), queue, group)?;
        let log = self.shared.log.lock();
        let members = members.max(1);
        let mut consumers: Vec<Box<dyn JournalConsumer>> = Vec::with_capacity(usize::from(members));
        for member in 0..members {
            let Some(arrivals) = log.arrivals(queue) else {
                return Err(invalid(format!("there is no queue {}", queue.0)));
            };
            let mine = (member..partitions).step_by(usize::from(members));
            let positions = mine.map(|index| {
                let partition = Partition { queue, index };
                let committed = positions.get(&partition).copied().unwrap_or(0);
                (partition, committed.max(log.first(partition)))
            });
            let shared = Arc::clone(&self.shared);
            consumers.push(Box::new(GroupMember::new(
                shared, queue, group, arrivals, positions,
            )));
        }
        Ok(consumers)
    }

    fn end(&self, partition: Partition) -> Offset {
        Offset(self.shared.log.lock().end(partition))
    }

    fn disk_bytes(&self) -> Option<u64> {
        Some(self.shared.log.lock().bytes())
    }

    fn refusal(&self) -> Option<AppendError> {
        self.shared.append_buffer.lock().refusal()
    }

    fn held_back(&self) -> Vec<(HoldBackCause, Duration)> {
        let totals = self.shared.append_buffer.lock().backpressure.totals();
        let held = HoldBackCause::ALL.into_iter().zip(totals);
        held.filter(|(cause, _)| *cause != HoldBackCause::Kafka).collect()
    }

    async fn close(&self) {
        self.stop();
        let mut ended = self.shared.ended.subscribe();
        // Fails only without a sender, which `shared` holds.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}
