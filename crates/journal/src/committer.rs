//! The only writer of the log. It takes all pending appends, writes them as one block, makes the block durable, and
//! acknowledges the appends together. While it waits for the disk, the next block gathers.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::ports::{AppendError, Partition};

use crate::append_buffer::{JournalState, WriteBatch};
use crate::disk::{DiskFile, is_full, write_all_at};
use crate::format::{BlockHeader, HEADER_BYTES, MAX_ENTRIES, SectionEntry};
use crate::log::segment_name;
use crate::options::Durability;
use crate::registry::PartitionOffsets;
use crate::shared::JournalShared;

/// A commit of at least this many appends comes from many devices that send at once. A pause then pays off through
/// larger groups.
const CROWD_APPENDS: u64 = 128;
/// The pause after such a commit, in which the next group gathers.
const GATHER_PAUSE: Duration = Duration::from_millis(1);
/// How often a full disk is checked for free space.
const PROBE_EVERY: Duration = Duration::from_millis(200);
/// After this time without appends, buffers are freed.
const IDLE: Duration = Duration::from_secs(2);
/// A file written to check whether a full disk has room.
pub(crate) const PROBE_FILE: &str = "probe";
const PROBE_BYTES: usize = 64 << 10;

/// The reason why a block was not written.
enum CommitFailure {
    /// No space; the log is unchanged.
    Full(String),
    /// The contents of the disk are unknown.
    Failed(String),
}

/// Writes blocks; owns the end of the log.
pub(crate) struct JournalCommitter {
    shared: Arc<JournalShared>,
    segment: u64,
    file: Arc<dyn DiskFile>,
    /// Length of the valid blocks in the active segment.
    length: u64,
    next_sequence: u64,
    synced_through: u64,
    last_sync: Instant,
    offsets: PartitionOffsets,
    spare: WriteBatch,
    head: Vec<u8>,
    changed: Vec<(Partition, u64)>,
    partitions: Vec<Partition>,
    last_block: Instant,
    /// Time of the last check for free space.
    last_probe: Instant,
    /// Whether the last block only marks the previous one as durable.
    is_marked: bool,
    /// Earliest start of the next commit, after one with many appends.
    crowded_until: Option<Instant>,
}

impl JournalCommitter {
    pub(crate) fn new(
        shared: Arc<JournalShared>,
        (segment, file, length): (u64, Arc<dyn DiskFile>, u64),
        next_sequence: u64,
    ) -> Self {
        let offsets = shared.log.lock().ends().clone();
        Self {
            shared,
            segment,
            file,
            length,
            next_sequence,
            // Recovery has made everything that it kept durable.
            synced_through: next_sequence - 1,
            last_sync: Instant::now(),
            offsets,
            spare: WriteBatch::default(),
            head: Vec::new(),
            changed: Vec::new(),
            partitions: Vec::new(),
            last_block: Instant::now(),
            last_probe: Instant::now(),
            is_marked: true,
            crowded_until: None,
        }
    }

    /// Runs until the journal is closed.
    pub(crate) fn run(mut self) {
        while self.wait() {
            self.tick();
        }
        self.end();
    }

    /// Waits for appends or other due work; returns false when the journal is closed and nothing is left.
    fn wait(&mut self) -> bool {
        let mut pending = self.shared.append_buffer.lock();
        if pending.batch.appends > 0 {
            let crowded = self.crowded_until.take().filter(|_| !pending.closing);
            drop(pending);
            if let Some(until) = crowded {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            return true;
        }
        if pending.closing {
            return false;
        }
        let due = match self.shared.options.durability {
            _ if pending.state == JournalState::Full || pending.capped => PROBE_EVERY,
            Durability::Interval(every) if self.is_unsynced() => {
                every.saturating_sub(self.last_sync.elapsed())
            }
            _ => IDLE,
        };
        pending.sleeping = true;
        self.shared.work.wait_for(&mut pending, due);
        pending.sleeping = false;
        !pending.closing || pending.batch.appends > 0
    }

    /// Runs one round: commits the pending appends, or does the maintenance that is due.
    pub(crate) fn tick(&mut self) {
        let spare = std::mem::take(&mut self.spare);
        let (mut fill, state) = {
            let mut pending = self.shared.append_buffer.lock();
            let known = self.partitions.len();
            let added = pending.slots.partitions().get(known..);
            self.partitions.extend_from_slice(added.unwrap_or_default());
            (pending.take(spare), pending.state.clone())
        };
        let is_due = if fill.appends > 0 {
            let is_tight = self.commit(&mut fill, state);
            // Continuous appends of the platform must not delay the maintenance that may free room for devices.
            is_tight && self.last_probe.elapsed() >= PROBE_EVERY
        } else {
            true
        };
        if is_due {
            self.last_probe = Instant::now();
            let state = self.shared.append_buffer.lock().state.clone();
            self.maintain(&mut fill, state);
        }
        self.spare = fill;
    }

    /// Writes the pending appends and completes them; returns whether devices are refused.
    fn commit(&mut self, fill: &mut WriteBatch, state: JournalState) -> bool {
        let started = Instant::now();
        let written = match state {
            JournalState::Failed(why) => Err(CommitFailure::Failed(why.to_string())),
            _ => self.write(fill),
        };
        let outcome = match written {
            Ok(()) => {
                self.publish();
                let meters = &self.shared.metrics;
                meters.commits.increment(1);
                meters.appends.increment(fill.appends);
                meters.bytes.increment(fill.bytes as u64);
                meters.commit_seconds.record(started.elapsed());
                if fill.appends >= CROWD_APPENDS {
                    self.crowded_until = Some(Instant::now() + GATHER_PAUSE);
                }
                Ok(())
            }
            Err(CommitFailure::Full(why)) => {
                self.refuse(JournalState::Full, &why);
                Err(AppendError::DiskFull)
            }
            Err(CommitFailure::Failed(why)) => {
                let why: Arc<str> = why.into();
                self.refuse(JournalState::Failed(Arc::clone(&why)), &why);
                Err(AppendError::Failed(why))
            }
        };
        fill.group.complete(outcome);
        let (woken, waiting, is_tight) = {
            let mut pending = self.shared.append_buffer.lock();
            let woken = pending.release(fill.bytes);
            (woken, pending.pending_bytes, pending.is_tight())
        };
        self.shared.wake(woken);
        self.shared.metrics.pending_bytes.set(waiting as f64);
        fill.clear();
        is_tight
    }

    /// Does maintenance when nothing waits to be written.
    fn maintain(&mut self, fill: &mut WriteBatch, state: JournalState) {
        let is_idle = self.last_block.elapsed() >= IDLE;
        let (capped, is_tight) = {
            let mut pending = self.shared.append_buffer.lock();
            if is_idle {
                pending.batch.free_memory();
            }
            (pending.capped, pending.is_tight())
        };
        if is_tight {
            // Returns the reserve charged for failed writes.
            self.shared.update_cap();
        }
        if is_idle {
            fill.free_memory();
        }
        let result = match (&state, self.shared.options.durability) {
            (JournalState::Failed(_), _) => return,
            (JournalState::Full, _) => self.probe(),
            _ if capped => self.roll_if_consumed(),
            (_, Durability::Interval(every)) if self.is_unsynced() && self.last_sync.elapsed() >= every => {
                self.sync()
            }
            (_, Durability::Fsync | Durability::Interval(_)) if is_idle => self.write_sync_marker(),
            _ => return,
        };
        if let Err(CommitFailure::Failed(why)) = result {
            self.refuse(JournalState::Failed(why.as_str().into()), &why);
        }
    }

    /// Writes one block with all appends of `fill`, as durable as the durability setting requires.
    fn write(&mut self, fill: &WriteBatch) -> Result<(), CommitFailure> {
        let kept = self.shared.options.min_free_disk.0;
        let kept = if fill.has_devices { kept } else { kept / 2 };
        let needed = kept + fill.bytes as u64;
        match self.shared.disk.free_bytes() {
            Ok(free) if free < needed => {
                return Err(CommitFailure::Full(format!(
                    "{free} bytes are free, {needed} are needed"
                )));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "free disk space is unknown"),
        }
        if self.length >= self.shared.options.segment_bytes.0 {
            self.roll()?;
        }
        self.write_block(fill)?;
        match self.shared.options.durability {
            Durability::Fsync => self.sync(),
            Durability::Interval(every) if self.last_sync.elapsed() >= every => self.sync(),
            _ => Ok(()),
        }
    }

    fn write_block(&mut self, fill: &WriteBatch) -> Result<(), CommitFailure> {
        let ends = self.build_head(fill)?;
        let mut slices = Vec::with_capacity(1 + fill.used.len());
        slices.push(IoSlice::new(&self.head));
        let buffers = fill
            .used
            .iter()
            .filter_map(|slot| fill.buffers.get(*slot as usize));
        slices.extend(buffers.map(|buffer| IoSlice::new(&buffer.bytes)));
        match write_all_at(self.file.as_ref(), &mut slices, self.length) {
            Ok(()) => {
                self.length += (self.head.len() + fill.bytes) as u64;
                self.next_sequence += 1;
                self.changed = ends;
                self.last_block = Instant::now();
                self.is_marked = fill.appends == 0;
                Ok(())
            }
            Err(error) if is_full(&error) => match self.file.set_len(self.length) {
                Ok(()) => Err(CommitFailure::Full(error.to_string())),
                Err(cut) => Err(CommitFailure::Failed(format!(
                    "could not take back a write that found no room: {cut}"
                ))),
            },
            Err(error) => Err(CommitFailure::Failed(self.context("write", &error))),
        }
    }

    /// Writes header and section table to `head`; returns the new ends of the block's partitions.
    fn build_head(&mut self, fill: &WriteBatch) -> Result<Vec<(Partition, u64)>, CommitFailure> {
        let mut ends = Vec::with_capacity(fill.used.len());
        let mut entries = 0_u32;
        self.head.clear();
        self.head.resize(HEADER_BYTES, 0);
        for slot in &fill.used {
            let (Some(partition), Some(buffer)) = (
                self.partitions.get(*slot as usize).copied(),
                fill.buffers.get(*slot as usize),
            ) else {
                return Err(CommitFailure::Failed(
                    "append to a partition without a place".to_owned(),
                ));
            };
            let mut first = self.offsets.get(&partition).copied().unwrap_or(0);
            ends.push((partition, first));
            let mut rest = buffer.bytes.as_slice();
            for cut in &buffer.sections {
                let (section, after) = rest.split_at(cut.bytes.min(rest.len()));
                rest = after;
                let entry = SectionEntry {
                    partition,
                    records: cut.records,
                    first,
                    bytes: section.len() as u32,
                    crc: crc32c::crc32c(section),
                };
                entry.encode(&mut self.head);
                entries += 1;
                first = entry.next();
            }
            if let Some(end) = ends.last_mut() {
                end.1 = first;
            }
        }
        ends.sort_unstable();
        if self.length == 0 {
            // The first block of a segment states the offset of each partition.
            for partition in &self.partitions {
                if ends.binary_search_by_key(partition, |(used, _)| *used).is_err() {
                    let first = self.offsets.get(partition).copied().unwrap_or(0);
                    empty_entry(*partition, first).encode(&mut self.head);
                    entries += 1;
                }
            }
        }
        debug_assert!(
            entries <= MAX_ENTRIES,
            "max-pending bounds the sections of a block"
        );
        let header = BlockHeader {
            log: self.shared.log_number,
            sequence: self.next_sequence,
            synced_through: self.synced_through,
            payload_bytes: fill.bytes as u32,
            entries,
            table_crc: crc32c::crc32c(self.head.get(HEADER_BYTES..).unwrap_or_default()),
            is_void: false,
        };
        if let Some(place) = self.head.get_mut(..HEADER_BYTES) {
            place.copy_from_slice(&header.encode());
        }
        Ok(ends)
    }

    /// Makes the last written block visible to consumers.
    fn publish(&mut self) {
        let capped = {
            let mut log = self.shared.log.lock();
            log.publish(self.segment, self.length, &self.offsets, &self.changed);
            self.shared.metrics.log_bytes.set(log.bytes() as f64);
            log.bytes() >= self.shared.options.max_bytes.0
        };
        self.offsets.extend(self.changed.drain(..));
        if capped {
            self.shared.update_cap();
        }
    }

    const fn is_unsynced(&self) -> bool {
        self.synced_through + 1 < self.next_sequence
    }

    fn sync(&mut self) -> Result<(), CommitFailure> {
        let started = Instant::now();
        self.file
            .sync()
            .map_err(|error| CommitFailure::Failed(self.context("fdatasync", &error)))?;
        self.last_sync = Instant::now();
        self.shared.metrics.fsync_seconds.record(self.last_sync - started);
        self.synced_through = self.next_sequence - 1;
        Ok(())
    }

    /// Begins the next segment. Before that, it makes all blocks of the previous segment durable, whatever the
    /// durability setting, because recovery relies on it.
    fn roll(&mut self) -> Result<(), CommitFailure> {
        if self.is_unsynced() {
            self.sync()?;
        }
        let name = segment_name(self.next_sequence);
        let disk = self.shared.disk.as_ref();
        let file = disk.create(&name).map_err(|error| {
            if is_full(&error) {
                CommitFailure::Full(error.to_string())
            } else {
                CommitFailure::Failed(self.context("create the file after", &error))
            }
        })?;
        disk.sync_directory()
            .map_err(|error| CommitFailure::Failed(format!("could not make {name} durable: {error}")))?;
        self.segment = self.next_sequence;
        self.file = file;
        self.length = 0;
        Ok(())
    }

    /// Leaves the full state once there is space again. It tests this with a write, because statistics do not show
    /// quotas.
    fn probe(&mut self) -> Result<(), CommitFailure> {
        self.roll_if_consumed()?;
        let needed = self.shared.options.min_free_disk.0;
        let needed = needed + needed / 4 + PROBE_BYTES as u64;
        let disk = self.shared.disk.as_ref();
        let write = || -> io::Result<bool> {
            if disk.free_bytes()? < needed {
                return Ok(false);
            }
            let file = disk.create(PROBE_FILE)?;
            write_all_at(file.as_ref(), &mut [IoSlice::new(&[0; PROBE_BYTES])], 0)?;
            Ok(true)
        };
        let has_room = write().unwrap_or(false);
        // Removes whatever remains of the file; if that fails, the next start does it.
        let _ = disk.remove(PROBE_FILE);
        if has_room {
            tracing::info!("journal accepts appends again");
            self.shared.metrics.refusing.set(0.0);
            let mut pending = self.shared.append_buffer.lock();
            if pending.state == JournalState::Full {
                pending.state = JournalState::Open;
            }
            drop(pending);
            self.shared.update_cap();
        }
        Ok(())
    }

    /// Ends a segment early once all of its records are consumed, so that its space can be freed.
    fn roll_if_consumed(&mut self) -> Result<(), CommitFailure> {
        if !self.has_consumed_bulk() {
            return Ok(());
        }
        let full = |trouble| match trouble {
            // The records of the old segment are safe; the next probe tries again.
            CommitFailure::Full(_) => Ok(()),
            CommitFailure::Failed(why) => Err(CommitFailure::Failed(why)),
        };
        // The next segment may already exist, if an earlier attempt had no space for its first block.
        if self.length > 0
            && let Err(trouble) = self.roll()
        {
            return full(trouble);
        }
        if let Err(trouble) = self.write_block(&WriteBatch::default()) {
            return full(trouble);
        }
        self.sync()?;
        self.publish();
        self.shared.delete_consumed();
        Ok(())
    }

    /// Returns whether freeing the last non-empty segment is worthwhile: all of it is consumed, and it is larger than a
    /// probe.
    fn has_consumed_bulk(&self) -> bool {
        let registry = self.shared.registry.lock();
        let log = self.shared.log.lock();
        log.last_length() > PROBE_BYTES as u64 && log.is_consumed(&registry)
    }

    /// Makes the last block durable and records this in an empty block. Recovery can then tell damage to the last
    /// records from an unfinished write.
    fn write_sync_marker(&mut self) -> Result<(), CommitFailure> {
        if self.is_unsynced() {
            self.sync()?;
        }
        if self.is_marked {
            return Ok(());
        }
        match self.write_block(&WriteBatch::default()) {
            // Nothing is lost without the marker.
            Err(CommitFailure::Full(_)) => return Ok(()),
            written => written?,
        }
        self.sync()?;
        self.publish();
        Ok(())
    }

    fn refuse(&self, state: JournalState, why: &str) {
        let log_bytes = self.shared.log.lock().bytes();
        let mut pending = self.shared.append_buffer.lock();
        let is_new = match &pending.state {
            JournalState::Open => true,
            JournalState::Full => state != JournalState::Full,
            JournalState::Failed(_) => false,
        };
        if is_new {
            pending.reject_appends(state.clone());
            pending.full_from = log_bytes;
        }
        drop(pending);
        if !is_new {
            return;
        }
        self.shared.metrics.refusing.set(1.0);
        self.shared.wake_all();
        if state == JournalState::Full {
            tracing::warn!(reason = why, "journal refuses appends, the disk is full");
        } else {
            tracing::error!(
                reason = why,
                "journal has failed and takes nothing until the program is restarted"
            );
        }
    }

    fn context(&self, what: &str, error: &io::Error) -> String {
        let file = self.shared.disk.describe(&segment_name(self.segment));
        format!("could not {what} {file}: {error}")
    }

    /// Makes everything durable, and lets the consumers read to the end.
    pub(crate) fn end(mut self) {
        let has_failed = matches!(self.shared.append_buffer.lock().state, JournalState::Failed(_));
        if !has_failed && let Err(CommitFailure::Failed(why)) = self.write_sync_marker() {
            tracing::error!(reason = why, "the end of the journal may not be on the disk");
        }
        self.shared.log.lock().close();
        self.shared.ended.send_replace(true);
        self.shared.wake_all();
    }
}

impl Drop for JournalCommitter {
    /// Treats a panic as a failure: pending appends fail, and no more are accepted.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut pending = self.shared.append_buffer.lock();
        pending.reject_appends(JournalState::Failed("the journal's thread has panicked".into()));
        let fill = pending.take(WriteBatch::default());
        drop(pending);
        drop(fill);
        self.shared.metrics.refusing.set(1.0);
        self.shared.log.lock().close();
        self.shared.ended.send_replace(true);
        self.shared.wake_all();
    }
}

const fn empty_entry(partition: Partition, first: u64) -> SectionEntry {
    SectionEntry {
        partition,
        records: 0,
        first,
        bytes: 0,
        crc: 0,
    }
}
