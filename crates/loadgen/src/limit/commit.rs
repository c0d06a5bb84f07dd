//! Group commit: while one write and its fdatasync are in progress, the next batch gathers.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fieldline_codec::{PacketId, QoS};
use mio::Waker;

use crate::cleanup::CleanupPath;
use crate::error::LoadError;

/// A file longer than this is replaced by an empty one, as a journal would begin a new segment, bytes.
const SEGMENT_BYTES: u64 = 256 << 20;
/// If more than this waits for the disk, nothing further is read, bytes.
const MAX_UNCOMMITTED: u64 = 64 << 20;

/// An acknowledgement that waits for the disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct UncommittedAck {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) id: PacketId,
    pub(super) qos: QoS,
}

/// A batch that is written and committed together.
#[derive(Default)]
struct UncommittedBatch {
    bytes: Vec<u8>,
    pending: Vec<UncommittedAck>,
}

/// The exchange between the event loop and the writer thread.
#[derive(Default)]
struct GroupCommitQueue {
    /// The next batch, until the thread is free.
    next: UncommittedBatch,
    done: Vec<UncommittedAck>,
    /// Bytes that have become durable.
    committed: u64,
    failed: Option<String>,
    is_over: bool,
}

struct GroupCommitShared {
    queue: Mutex<GroupCommitQueue>,
    filled: Condvar,
    /// Kept here and not by the thread: a dropped waker would take its pending wake-up with it.
    waker: Waker,
}

/// Appends messages to a file, and reports when they are durable. Dropping it ends the thread.
pub(super) struct GroupCommitter {
    shared: Arc<GroupCommitShared>,
    gathering: UncommittedBatch,
    spare_done: Vec<UncommittedAck>,
    appended: u64,
    /// Durable bytes when acknowledgements were last taken.
    committed: u64,
}

impl GroupCommitShared {
    fn lock(&self) -> MutexGuard<'_, GroupCommitQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next batch and moves it into `batch`; false at the end.
    fn take(&self, batch: &mut UncommittedBatch) -> bool {
        let mut exchange = self.lock();
        while exchange.next.bytes.is_empty() {
            if exchange.is_over {
                return false;
            }
            exchange = self.filled.wait(exchange).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(batch, &mut exchange.next);
        true
    }

    /// Writes batches until one fails, and wakes the event loop after each.
    fn write(&self, segment: &mut LimitFile) {
        let mut batch = UncommittedBatch::default();
        let mut goes_on = true;
        while goes_on && self.take(&mut batch) {
            let result = segment.append(&batch.bytes);
            let mut exchange = self.lock();
            match result {
                Ok(()) => {
                    exchange.done.append(&mut batch.pending);
                    exchange.committed += batch.bytes.len() as u64;
                }
                Err(error) => {
                    exchange.failed = Some(format!("{}: {error}", segment.path.display()));
                    goes_on = false;
                }
            }
            drop(exchange);
            batch.bytes.clear();
            batch.pending.clear();
            // This fails only when the loop is gone.
            let _ = self.waker.wake();
        }
    }
}

impl GroupCommitter {
    /// Starts a thread that writes to a file in `directory`; it wakes `waker` when a batch is durable or has failed.
    pub(super) fn start(directory: &Path, waker: Waker) -> Result<Self, LoadError> {
        let mut segment = LimitFile::open(directory)?;
        let shared = Arc::new(GroupCommitShared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            waker,
        });
        let of_thread = shared.clone();
        std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || of_thread.write(&mut segment))
            .map_err(|error| LoadError::Engine(format!("starting a thread: {error}")))?;
        Ok(Self {
            shared,
            gathering: UncommittedBatch::default(),
            spare_done: Vec::new(),
            appended: 0,
            committed: 0,
        })
    }

    /// Adds a message to the next batch.
    pub(super) fn append(&mut self, topic: &str, payload: &[u8], pending: Option<UncommittedAck>) {
        let length = (topic.len() + payload.len()) as u32;
        let before = self.gathering.bytes.len();
        self.gathering.bytes.extend_from_slice(&length.to_le_bytes());
        self.gathering.bytes.extend_from_slice(topic.as_bytes());
        self.gathering.bytes.extend_from_slice(payload);
        self.appended += (self.gathering.bytes.len() - before) as u64;
        self.gathering.pending.extend(pending);
    }

    /// Whether too much waits for the disk to add more.
    pub(super) fn is_full(&self) -> bool {
        self.appended - self.committed > MAX_UNCOMMITTED
    }

    /// Hands the batch of an event loop's turn to the thread.
    pub(super) fn commit(&mut self) -> Result<(), LoadError> {
        if self.gathering.bytes.is_empty() {
            return Ok(());
        }
        let mut exchange = self.shared.lock();
        check(&exchange)?;
        let was_empty = exchange.next.bytes.is_empty();
        if was_empty {
            std::mem::swap(&mut exchange.next, &mut self.gathering);
        } else {
            exchange.next.bytes.append(&mut self.gathering.bytes);
            exchange.next.pending.append(&mut self.gathering.pending);
        }
        drop(exchange);
        if was_empty {
            self.shared.filled.notify_one();
        }
        Ok(())
    }

    /// Returns the acknowledgements that may be sent.
    pub(super) fn take_done(&mut self) -> Result<Vec<UncommittedAck>, LoadError> {
        let mut done = std::mem::take(&mut self.spare_done);
        let mut exchange = self.shared.lock();
        check(&exchange)?;
        std::mem::swap(&mut done, &mut exchange.done);
        self.committed = exchange.committed;
        Ok(done)
    }

    /// Takes back a list of acknowledgements to reuse its memory.
    pub(super) fn recycle(&mut self, mut done: Vec<UncommittedAck>) {
        done.clear();
        self.spare_done = done;
    }
}

impl Drop for GroupCommitter {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.filled.notify_one();
    }
}

fn check(exchange: &GroupCommitQueue) -> Result<(), LoadError> {
    match &exchange.failed {
        Some(reason) => Err(LoadError::Engine(format!(
            "messages cannot be appended: {reason}"
        ))),
        None => Ok(()),
    }
}

/// The file to which messages are appended.
struct LimitFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Removes the file, which nobody needs afterwards.
    _cleanup: CleanupPath,
}

impl LimitFile {
    fn open(directory: &Path) -> Result<Self, LoadError> {
        let path = directory.join("limit.log");
        let file = std::fs::create_dir_all(directory)
            .and_then(|()| File::create(&path))
            .map_err(|error| LoadError::Io {
                path: path.clone(),
                error,
            })?;
        Ok(Self {
            _cleanup: CleanupPath::new(path.clone()),
            path,
            file,
            length: 0,
        })
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.length > SEGMENT_BYTES {
            self.file = File::create(&self.path)?;
            self.length = 0;
        }
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.file.sync_data()
    }
}
