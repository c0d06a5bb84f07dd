//! Reads the log: each member of a group follows its partitions from block to block.
//!
//! Files are read in place with short positioned reads. At the tail, the data comes from the page cache; far behind,
//! reads may wait for the disk. Consumers therefore belong on their own threads, not on those that serve connections.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fieldline_core::ports::{
    ConsumerEvent, ConsumerRecords, JournalConsumer, JournalError, Offset, Partition, QueueId,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::error::{DamageReport, ReadError, failed, invalid};
use crate::format::{HEADER_BYTES, SectionEntry};
use crate::log::segment_name;
use crate::segment_reader::SegmentReader;
use crate::shared::JournalShared;

/// One member of a group.
pub(crate) struct GroupMember {
    shared: Arc<JournalShared>,
    queue: QueueId,
    group: String,
    arrivals: watch::Receiver<()>,
    cursors: Vec<PartitionCursor>,
    turn: usize,
    is_assigned: bool,
}

impl GroupMember {
    pub(crate) fn new(
        shared: Arc<JournalShared>,
        queue: QueueId,
        group: &str,
        arrivals: watch::Receiver<()>,
        positions: impl Iterator<Item = (Partition, u64)>,
    ) -> Self {
        Self {
            shared,
            queue,
            group: group.to_owned(),
            arrivals,
            cursors: positions
                .map(|(partition, next)| PartitionCursor {
                    partition,
                    next,
                    position: None,
                    rest: None,
                    entries: Vec::new(),
                    paused: None,
                })
                .collect(),
            turn: 0,
            is_assigned: false,
        }
    }

    /// Returns the next records of any partition, taking turns.
    fn poll_records(&mut self, max_bytes: usize) -> Option<ConsumerEvent> {
        for _ in 0..self.cursors.len() {
            self.turn = (self.turn + 1) % self.cursors.len();
            let Some(cursor) = self.cursors.get_mut(self.turn) else {
                break;
            };
            if cursor.update_pause() {
                continue;
            }
            match cursor.read(&self.shared, max_bytes) {
                Ok(Some(records)) => {
                    self.shared
                        .metrics
                        .delivered_bytes
                        .increment(records.bytes.len() as u64);
                    return Some(ConsumerEvent::Records(records));
                }
                Ok(None) => {}
                Err(error) => return Some(ConsumerEvent::Unreadable(cursor.partition, error)),
            }
        }
        None
    }

    fn cursor(&mut self, partition: Partition) -> Result<&mut PartitionCursor, JournalError> {
        self.cursors
            .iter_mut()
            .find(|cursor| cursor.partition == partition)
            .ok_or_else(|| invalid(format!("partition {partition} belongs to another member")))
    }
}

#[async_trait]
impl JournalConsumer for GroupMember {
    async fn next(&mut self, max_bytes: usize) -> Result<ConsumerEvent, JournalError> {
        if !self.is_assigned {
            self.is_assigned = true;
            let positions = self.cursors.iter();
            let positions = positions.map(|cursor| (cursor.partition, Offset(cursor.next)));
            return Ok(ConsumerEvent::Assigned(positions.collect()));
        }
        loop {
            self.arrivals.borrow_and_update();
            let closed = self.shared.log.lock().is_closed();
            if let Some(delivery) = self.poll_records(max_bytes) {
                return Ok(delivery);
            }
            if closed {
                return Ok(ConsumerEvent::Closed);
            }
            let pause_end = self.cursors.iter().filter_map(|cursor| cursor.paused).min();
            tokio::select! {
                // The sender lives in `shared`, so waiting never fails.
                arrived = self.arrivals.changed() => if arrived.is_err() {
                    return Ok(ConsumerEvent::Closed);
                },
                () = sleep_if(pause_end) => {}
            }
        }
    }

    fn pause(&mut self, partition: Partition, time: Duration) {
        if let Ok(cursor) = self.cursor(partition) {
            cursor.paused = Some(Instant::now() + time);
        }
    }

    fn seek(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError> {
        let shared = Arc::clone(&self.shared);
        let cursor = self.cursor(partition)?;
        shared.log.lock().check(partition, offset.0)?;
        if cursor.next != offset.0 {
            cursor.next = offset.0;
            cursor.position = None;
            cursor.rest = None;
        }
        Ok(())
    }

    async fn commit(&mut self, partition: Partition, offset: Offset) -> Result<(), JournalError> {
        self.cursor(partition)?;
        let end = self.shared.log.lock().end(partition);
        if offset.0 > end {
            self.shared.log.lock().check(partition, offset.0)?;
        }
        let disk = self.shared.disk.as_ref();
        self.shared
            .registry
            .lock()
            .commit(disk, self.queue, &self.group, partition, offset.0)?;
        self.shared.delete_consumed();
        Ok(())
    }
}

/// Position in one partition.
struct PartitionCursor {
    partition: Partition,
    next: u64,
    /// The block to continue from; `None` until it has been located.
    position: Option<SegmentPosition>,
    /// Records already read that did not fit into the last delivery, with the offset after them.
    rest: Option<(Bytes, u64)>,
    entries: Vec<SectionEntry>,
    paused: Option<Instant>,
}

struct SegmentPosition {
    segment: u64,
    position: u64,
    reader: SegmentReader,
}

/// Whether to read the next block.
enum ReadProgress {
    Next,
    Enough,
}

impl PartitionCursor {
    fn update_pause(&mut self) -> bool {
        self.paused = self.paused.filter(|end| *end > Instant::now());
        self.paused.is_some()
    }

    /// Reads up to `max_bytes` of consecutive durable records; a single larger record is delivered alone.
    fn read(
        &mut self,
        shared: &JournalShared,
        max_bytes: usize,
    ) -> Result<Option<ConsumerRecords>, JournalError> {
        let (mut bytes, end) = match self.rest.take() {
            Some(rest) => rest,
            None => self.gather(shared, max_bytes)?,
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        let (length, records) = if bytes.len() <= max_bytes {
            (bytes.len(), end - self.next)
        } else {
            fitting(&bytes, max_bytes)
        };
        if length == 0 {
            // The next attempt reads it again instead of skipping it.
            self.position = None;
            let place = self.partition;
            return Err(JournalError::Corrupt(format!(
                "the records of partition {place} from {} on do not add up",
                self.next
            )));
        }
        let delivered = bytes.split_to(length);
        let first = Offset(self.next);
        self.next += records;
        self.rest = (!bytes.is_empty()).then_some((bytes, end));
        Ok(Some(ConsumerRecords {
            partition: self.partition,
            first,
            next: Offset(self.next),
            bytes: delivered,
        }))
    }

    /// Reads whole sections from `next` until there are `max_bytes`, but at least one. Returns them with the offset
    /// after them.
    fn gather(&mut self, shared: &JournalShared, max_bytes: usize) -> Result<(Bytes, u64), JournalError> {
        let mut out = Vec::new();
        let mut reached = self.next;
        while reached < shared.log.lock().end(self.partition) {
            match self.read_block(shared, max_bytes, &mut reached, &mut out) {
                Ok(ReadProgress::Next) => {}
                Ok(ReadProgress::Enough) => break,
                // The records read so far are good; the next read reports the failure.
                Err(_) if !out.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok((Bytes::from(out), reached))
    }

    /// Reads one block, or moves to the next segment.
    fn read_block(
        &mut self,
        shared: &JournalShared,
        max_bytes: usize,
        reached: &mut u64,
        out: &mut Vec<u8>,
    ) -> Result<ReadProgress, JournalError> {
        let Some(place) = &mut self.position else {
            let segment = self.find(shared, *reached)?;
            self.position = open(shared, segment)?;
            return Ok(ReadProgress::Next);
        };
        let (bounds, holder) = {
            let log = shared.log.lock();
            (
                log.bounds(place.segment),
                log.segment_of(self.partition, *reached),
            )
        };
        let Some(bounds) = bounds else {
            // Deleted, because it held no more records of this partition that the group needs.
            self.position = None;
            return Ok(ReadProgress::Next);
        };
        if place.position >= bounds.length {
            // Segments without records of the partition are skipped. Only after discarded damage, no segment claims to
            // hold the position; then reading continues with the following one.
            let onward = holder.filter(|holder| *holder > place.segment).or(bounds.next);
            let Some(onward) = onward else {
                return Ok(ReadProgress::Enough);
            };
            self.position = open(shared, onward)?;
            return Ok(ReadProgress::Next);
        }
        let (segment, position) = (place.segment, place.position);
        let report = |error| report(shared, segment, position, error);
        let header = place
            .reader
            .head(position, bounds.length, &mut self.entries)
            .map_err(report)?;
        let mut at = position + (HEADER_BYTES + header.table_bytes()) as u64;
        for entry in &self.entries {
            let start = at;
            at += u64::from(entry.bytes);
            if entry.partition != self.partition || entry.next() <= *reached || entry.bytes == 0 {
                continue;
            }
            let fits = out.len() + entry.bytes as usize <= max_bytes;
            // Records of one delivery have consecutive offsets; discarded damage leaves a gap.
            if !out.is_empty() && (!fits || entry.first > *reached) {
                return Ok(ReadProgress::Enough);
            }
            let before = out.len();
            if let Err(error) = place.reader.section(start, entry, out) {
                out.truncate(before);
                return Err(report(error));
            }
            if entry.first > *reached {
                self.next = entry.first;
            } else {
                drop_records(out, before, *reached - entry.first);
            }
            *reached = entry.next();
        }
        place.position = position + header.block_bytes();
        Ok(ReadProgress::Next)
    }

    fn find(&self, shared: &JournalShared, offset: u64) -> Result<u64, JournalError> {
        let log = shared.log.lock();
        log.check(self.partition, offset)?;
        let segment = log.segment_of(self.partition, offset);
        segment.ok_or_else(|| JournalError::OutOfRange {
            partition: self.partition,
            asked: offset,
            first: log.first(self.partition),
            next: log.end(self.partition),
        })
    }
}

/// Sleeps until `end`, or for ever if there is none.
async fn sleep_if(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

/// Opens a segment at its start; `None` if it was just deleted.
fn open(shared: &JournalShared, segment: u64) -> Result<Option<SegmentPosition>, JournalError> {
    let name = segment_name(segment);
    match shared.disk.open(&name) {
        Ok(file) => Ok(Some(SegmentPosition {
            segment,
            position: 0,
            reader: SegmentReader::new(file, shared.log_number),
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !shared.log.lock().holds(segment) => {
            Ok(None)
        }
        Err(error) => Err(failed(format!("open {}", shared.disk.describe(&name)))(error)),
    }
}

fn report(shared: &JournalShared, segment: u64, position: u64, error: ReadError) -> JournalError {
    let name = segment_name(segment);
    match error {
        ReadError::Io(error) => failed(format!("read {}", shared.disk.describe(&name)))(error),
        ReadError::Bad(bad) => DamageReport {
            disk: shared.disk.as_ref(),
            file: &name,
            position,
            sequence: None,
            bad,
            next_good: None,
        }
        .report(),
    }
}

/// Length of the first record, including its prefix.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let prefix = bytes.first_chunk::<4>()?;
    let length = 4 + u32::from_le_bytes(*prefix) as usize;
    (length <= bytes.len()).then_some(length)
}

/// Returns how many bytes and records fit into a delivery: at least one record, if there is any.
pub(crate) fn fitting(bytes: &[u8], max_bytes: usize) -> (usize, u64) {
    let (mut length, mut records) = (0, 0);
    while let Some(record) = bytes.get(length..).and_then(record_length) {
        if records > 0 && length + record > max_bytes {
            break;
        }
        length += record;
        records += 1;
    }
    (length, records)
}

/// Removes the first `count` records of the section that begins at `start`.
pub(crate) fn drop_records(out: &mut Vec<u8>, start: usize, count: u64) {
    let mut end = start;
    for _ in 0..count {
        end += out.get(end..).and_then(record_length).unwrap_or(0);
    }
    out.drain(start..end);
}
