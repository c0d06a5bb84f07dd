//! Group commit: while one write and its fdatasync are under way, the next gathers.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fieldline_codec::{PacketId, QoS};
use mio::Waker;

use crate::error::LoadError;

/// A file longer than this is replaced by an empty one, as a journal would begin a new segment.
const SEGMENT_BYTES: u64 = 256 << 20;

/// An acknowledgement that waits for the disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) id: PacketId,
    pub(super) qos: QoS,
}

/// What is written and committed together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    pending: Vec<Pending>,
}

/// What the event loop and the thread that writes exchange.
#[derive(Default)]
struct Exchange {
    /// Waits for the thread to be free.
    next: Batch,
    done: Vec<Pending>,
    failed: Option<String>,
}

#[derive(Default)]
struct Shared {
    exchange: Mutex<Exchange>,
    filled: Condvar,
}

/// Appends to a file and tells when it is durable.
pub(super) struct Committer {
    shared: Arc<Shared>,
    gathering: Batch,
    spare_done: Vec<Pending>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Committer {
    /// Starts a thread that writes to a file in `directory`; `waker` is woken when something has become durable.
    pub(super) fn start(directory: &Path, waker: Waker) -> Result<Self, LoadError> {
        let mut segment = Segment::open(directory)?;
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || {
                let mut batch = Batch::default();
                loop {
                    {
                        let mut exchange = of_thread.lock();
                        while exchange.next.bytes.is_empty() {
                            exchange = of_thread
                                .filled
                                .wait(exchange)
                                .unwrap_or_else(PoisonError::into_inner);
                        }
                        std::mem::swap(&mut batch, &mut exchange.next);
                    }
                    let result = segment.append(&batch.bytes);
                    let mut exchange = of_thread.lock();
                    match result {
                        Ok(()) => exchange.done.append(&mut batch.pending),
                        Err(error) => exchange.failed = Some(error.to_string()),
                    }
                    batch.bytes.clear();
                    batch.pending.clear();
                    drop(exchange);
                    // Only fails when the loop is gone.
                    let _ = waker.wake();
                }
            })
            .map_err(|error| LoadError::Engine(format!("starting a thread: {error}")))?;
        Ok(Self {
            shared,
            gathering: Batch::default(),
            spare_done: Vec::new(),
        })
    }

    /// Adds a message to what is committed next.
    pub(super) fn append(&mut self, topic: &str, payload: &[u8], pending: Option<Pending>) {
        let length = (topic.len() + payload.len()) as u32;
        self.gathering.bytes.extend_from_slice(&length.to_le_bytes());
        self.gathering.bytes.extend_from_slice(topic.as_bytes());
        self.gathering.bytes.extend_from_slice(payload);
        self.gathering.pending.extend(pending);
    }

    /// Hands over what has gathered in a turn of the event loop.
    pub(super) fn commit(&mut self) -> Result<(), LoadError> {
        if self.gathering.bytes.is_empty() {
            return Ok(());
        }
        let mut exchange = self.shared.lock();
        if let Some(failed) = exchange.failed.take() {
            return Err(LoadError::Engine(format!("appending: {failed}")));
        }
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

    /// Takes the acknowledgements that may be sent.
    pub(super) fn take_done(&mut self) -> Vec<Pending> {
        let mut done = std::mem::take(&mut self.spare_done);
        std::mem::swap(&mut done, &mut self.shared.lock().done);
        done
    }

    /// Returns the memory of what was taken.
    pub(super) fn give_back(&mut self, mut done: Vec<Pending>) {
        done.clear();
        self.spare_done = done;
    }
}

/// The file that is appended to.
struct Segment {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Segment {
    fn open(directory: &Path) -> Result<Self, LoadError> {
        let path = directory.join("limit.log");
        let file = std::fs::create_dir_all(directory)
            .and_then(|()| File::create(&path))
            .map_err(|error| LoadError::Io {
                path: path.clone(),
                error,
            })?;
        Ok(Self {
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

impl Drop for Segment {
    fn drop(&mut self) {
        // It is of no use to anybody.
        let _ = std::fs::remove_file(&self.path);
    }
}
