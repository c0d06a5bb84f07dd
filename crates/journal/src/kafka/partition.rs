//! What is known of a partition in Kafka.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fieldline_core::ports::{JournalError, Partition};
use parking_lot::Mutex;

use super::block::{place, position};

/// Bytes after which the size of the log is noted anew.
const SAMPLE_BYTES: u64 = 1 << 20;
/// What a block has in the mean, as long as none was seen.
const GUESSED_BYTES: u64 = 16 << 10;

/// One partition of an open queue.
#[derive(Debug)]
pub(crate) struct LogPartition {
    pub(crate) partition: Partition,
    pub(crate) topic: Arc<str>,
    /// Its index in the outbox.
    pub(crate) slot: usize,
    /// The number of the block at offset 0.
    base: u64,
    /// The first block that Kafka still has.
    first: AtomicU64,
    /// The block after the last durable one.
    end: AtomicU64,
    /// The block after the last one that this program has written, or found at its start.
    written: AtomicU64,
    /// Whether to ask Kafka for its ends.
    pub(crate) is_doubtful: AtomicBool,
    seen_blocks: AtomicU64,
    seen_records: AtomicU64,
    usage: Mutex<LogUsage>,
}

/// Bytes that wait for consumers, and blocks that may be deleted.
#[derive(Debug, Default)]
struct LogUsage {
    written: u64,
    consumed: u64,
    /// Blocks, each with the bytes written before it.
    samples: VecDeque<(u64, u64)>,
    /// Blocks before which everything was consumed at a time, oldest first.
    trims: VecDeque<(Instant, u64)>,
}

impl LogPartition {
    /// Makes a partition of which Kafka has told the ends, as offsets.
    pub(crate) fn new(
        (partition, topic, slot): (Partition, Arc<str>, usize),
        base: u64,
        (first, end): (u64, u64),
    ) -> Self {
        let (first, end) = (base + first, base + end);
        Self {
            partition,
            topic,
            slot,
            base,
            first: AtomicU64::new(first),
            end: AtomicU64::new(end),
            written: AtomicU64::new(end),
            is_doubtful: AtomicBool::new(false),
            seen_blocks: AtomicU64::new(0),
            seen_records: AtomicU64::new(0),
            usage: Mutex::default(),
        }
    }

    /// Kafka's number of the partition.
    pub(crate) fn index(&self) -> i32 {
        i32::from(self.partition.index)
    }

    /// The number of the block at an offset.
    pub(crate) fn block_at(&self, offset: i64) -> u64 {
        self.base + u64::try_from(offset).unwrap_or(0)
    }

    /// The offset of a block.
    pub(crate) fn offset_of(&self, block: u64) -> i64 {
        i64::try_from(block.saturating_sub(self.base)).unwrap_or(i64::MAX)
    }

    /// The first block.
    pub(crate) fn first(&self) -> u64 {
        self.first.load(Ordering::Acquire)
    }

    /// The block after the last durable one.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// The block after the last one that this program has written, or found at its start: Kafka must have it.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Notes that blocks before this one are durable.
    pub(crate) fn extend_to(&self, end: u64) {
        self.end.fetch_max(end, Ordering::AcqRel);
    }

    /// Notes that this program has written a block; false if its number is one that was there before.
    #[must_use]
    pub(crate) fn extend_by(&self, block: u64) -> bool {
        let before = self.written.swap(block + 1, Ordering::AcqRel);
        self.extend_to(block + 1);
        block >= before
    }

    /// Replaces the ends by those of a log that has lost blocks.
    pub(crate) fn set_back_to(&self, end: u64) {
        self.first.fetch_min(end, Ordering::AcqRel);
        self.end.store(end, Ordering::Release);
        self.written.store(end, Ordering::Release);
        *self.usage.lock() = LogUsage::default();
    }

    /// Takes the ends that Kafka has told, as blocks.
    pub(crate) fn take_ends(&self, (first, end): (u64, u64)) {
        self.first.store(first, Ordering::Release);
        self.extend_to(end);
    }

    /// Notes that blocks before this one were deleted.
    pub(crate) fn trimmed_to(&self, first: u64) {
        self.first.fetch_max(first, Ordering::AcqRel);
    }

    /// Fails if the log does not hold a position.
    pub(crate) fn check(&self, asked: u64) -> Result<(), JournalError> {
        let (first, next) = (position(self.first(), 0), position(self.end(), 0));
        if (first..=next).contains(&asked) {
            return Ok(());
        }
        Err(self.out_of_range(asked))
    }

    /// The error about a position that the log does not hold.
    pub(crate) fn out_of_range(&self, asked: u64) -> JournalError {
        JournalError::OutOfRange {
            partition: self.partition,
            asked,
            first: position(self.first(), 0),
            next: position(self.end(), 0),
        }
    }

    /// Notes how many records blocks have.
    pub(crate) fn note_block(&self, records: u32) {
        self.seen_blocks.fetch_add(1, Ordering::Relaxed);
        self.seen_records.fetch_add(u64::from(records), Ordering::Relaxed);
    }

    /// The number of records between two positions: exact within a block, else by the mean of the blocks seen.
    pub(crate) fn records_between(&self, from: u64, to: u64) -> u64 {
        let from = from.max(position(self.first(), 0));
        let ((from_block, from_number), (to_block, to_number)) = (place(from), place(to));
        if from >= to || from_block == to_block {
            return to.saturating_sub(from);
        }
        let blocks = self.seen_blocks.load(Ordering::Relaxed).max(1);
        let records = self.seen_records.load(Ordering::Relaxed).max(blocks);
        let all = (u128::from(to_block - from_block) * u128::from(records) / u128::from(blocks)) as u64;
        (all + to_number).saturating_sub(from_number).max(1)
    }

    /// Notes a durable block of so many bytes.
    pub(crate) fn note_written(&self, end: u64, bytes: usize) {
        let mut usage = self.usage.lock();
        usage.written += bytes as u64;
        let written = usage.written;
        let before = usage
            .samples
            .len()
            .checked_sub(2)
            .and_then(|at| usage.samples.get(at));
        let is_near = written - before.map_or(usage.consumed, |(_, bytes)| *bytes) < SAMPLE_BYTES;
        match usage.samples.back_mut().filter(|_| is_near) {
            Some(last) => *last = (end, written),
            None => usage.samples.push_back((end, written)),
        }
    }

    /// Notes what waits at the start, whose size is estimated.
    pub(crate) fn note_backlog(&self, consumed: u64) {
        let mut usage = self.usage.lock();
        if usage.samples.is_empty() && usage.written == 0 {
            usage.written = self.end().saturating_sub(consumed) * GUESSED_BYTES;
            let sample = (self.end(), usage.written);
            usage.samples.push_back(sample);
        }
    }

    /// Notes that everything before a block is consumed, and may be deleted after a while.
    pub(crate) fn note_consumed(&self, block: u64, now: Instant) {
        let mut usage = self.usage.lock();
        while let Some((_, bytes)) = usage.samples.front().copied().filter(|(end, _)| *end <= block) {
            usage.consumed = bytes;
            usage.samples.pop_front();
        }
        // A trim a second at most would be noted; a minute is exact enough.
        let is_near = |at: &Instant| now.duration_since(*at) < Duration::from_secs(10);
        let before = usage
            .trims
            .len()
            .checked_sub(2)
            .and_then(|at| usage.trims.get(at));
        match (before.is_some_and(|(at, _)| is_near(at)), usage.trims.back_mut()) {
            (true, Some(last)) => *last = (now, block),
            _ => usage.trims.push_back((now, block)),
        }
    }

    /// Bytes that wait for consumers.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        let usage = self.usage.lock();
        usage.written - usage.consumed
    }

    /// The block before which everything was consumed so long ago that it may be deleted, if Kafka still has any.
    pub(crate) fn trimmable(&self, before: Instant) -> Option<u64> {
        let mut usage = self.usage.lock();
        let old = usage.trims.partition_point(|(at, _)| *at <= before);
        let block = usage.trims.drain(..old).next_back().map(|(_, block)| block)?;
        (block > self.first()).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::QueueId;

    use super::*;

    fn partition() -> LogPartition {
        let partition = Partition {
            queue: QueueId(0),
            index: 1,
        };
        LogPartition::new((partition, "topic".into(), 0), 0, (2, 10))
    }

    #[test]
    fn positions_outside_are_named_with_what_there_is() {
        let log = partition();
        for inside in [position(2, 0), position(9, 7), position(10, 0)] {
            log.check(inside).unwrap();
        }
        for outside in [position(1, 4095), position(10, 1)] {
            let Err(JournalError::OutOfRange { first, next, .. }) = log.check(outside) else {
                panic!("{outside} is inside");
            };
            assert_eq!((first, next), (position(2, 0), position(10, 0)));
        }
    }

    #[test]
    fn blocks_are_numbered_from_the_base() {
        let partition = partition().partition;
        let log = LogPartition::new((partition, "topic".into(), 0), 1 << 40, (2, 10));
        assert_eq!((log.first(), log.end()), ((1 << 40) + 2, (1 << 40) + 10));
        assert_eq!(log.block_at(7), (1 << 40) + 7);
        assert_eq!((log.offset_of((1 << 40) + 7), log.offset_of(3)), (7, 0));
        assert_eq!(
            log.records_between(0, position((1 << 40) + 4, 0)),
            2,
            "what is not there does not count"
        );
    }

    #[test]
    fn a_lag_is_counted_in_records() {
        let log = partition();
        assert_eq!(log.records_between(position(3, 1), position(3, 4)), 3);
        assert_eq!(
            log.records_between(position(3, 0), position(5, 0)),
            2,
            "nothing is known"
        );
        log.note_block(10);
        log.note_block(20);
        assert_eq!(log.records_between(position(3, 5), position(5, 0)), 25);
        assert_eq!(log.records_between(position(5, 0), position(3, 0)), 0);
    }

    #[test]
    fn what_waits_is_what_was_written_and_not_consumed() {
        let log = partition();
        for block in 10..20 {
            log.note_written(block + 1, 600 << 10);
        }
        assert_eq!(log.waiting_bytes(), 10 * (600 << 10));
        log.note_consumed(14, Instant::now());
        assert!(log.waiting_bytes() >= 6 * (600 << 10) && log.waiting_bytes() <= 8 * (600 << 10));
        log.note_consumed(20, Instant::now());
        assert_eq!(log.waiting_bytes(), 0);
        log.note_written(21, 100);
        assert_eq!(log.waiting_bytes(), 100);
    }

    #[test]
    fn what_was_consumed_goes_after_a_while() {
        let log = partition();
        let start = Instant::now();
        for second in 0..60 {
            log.note_consumed(5 + second, start + Duration::from_secs(second));
        }
        assert!(log.usage.lock().trims.len() < 20);
        assert_eq!(log.trimmable(start - Duration::from_secs(1)), None);
        let block = log.trimmable(start + Duration::from_secs(30)).unwrap();
        assert!((20..=35).contains(&block), "{block}");
        log.trimmed_to(block);
        assert_eq!(log.trimmable(start + Duration::from_secs(30)), None, "once");
        assert_eq!(log.trimmable(start + Duration::from_secs(100)), Some(64));
    }
}
