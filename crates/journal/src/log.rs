//! The shared view of the log: the segments, how much of them is durable, and the ends of the partitions.

use std::collections::VecDeque;

use fieldline_core::ports::{JournalError, Partition, QueueId};
use tokio::sync::watch;

use crate::registry::{PartitionOffsets, QueueRegistry};

const SUFFIX: &str = ".log";

/// Name of the segment file whose first block has this number.
pub(crate) fn segment_name(id: u64) -> String {
    format!("{id:020}{SUFFIX}")
}

/// Number in the name of a segment file; `None` for other files.
pub(crate) fn segment_id(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// A segment with at least one durable block.
#[derive(Debug, Clone)]
pub(crate) struct LogSegment {
    /// Number of its first block.
    pub(crate) id: u64,
    /// Its durable length.
    pub(crate) length: u64,
    /// The offset of each partition before its first block; 0 if missing.
    pub(crate) starts: PartitionOffsets,
}

impl LogSegment {
    fn start(&self, partition: Partition) -> u64 {
        self.starts.get(&partition).copied().unwrap_or(0)
    }
}

/// The durable log, as consumers see it.
pub(crate) struct DurableLog {
    segments: VecDeque<LogSegment>,
    ends: PartitionOffsets,
    arrivals: Vec<watch::Sender<()>>,
    bytes: u64,
    closed: bool,
}

/// How far a segment can be read, and the one after it.
pub(crate) struct SegmentBounds {
    /// Durable length of the segment.
    pub(crate) length: u64,
    /// The following segment.
    pub(crate) next: Option<u64>,
}

impl DurableLog {
    pub(crate) fn new(segments: VecDeque<LogSegment>, ends: PartitionOffsets) -> Self {
        Self {
            bytes: segments.iter().map(|segment| segment.length).sum(),
            segments,
            ends,
            arrivals: Vec::new(),
            closed: false,
        }
    }

    /// Adds the notification channels of new queues.
    pub(crate) fn add_queues(&mut self, count: usize) {
        while self.arrivals.len() < count {
            self.arrivals.push(watch::Sender::new(()));
        }
    }

    /// Returns a channel that signals when a queue has received records, or the log was closed.
    pub(crate) fn arrivals(&self, queue: QueueId) -> Option<watch::Receiver<()>> {
        let sender = self.arrivals.get(usize::from(queue.0))?;
        Some(sender.subscribe())
    }

    pub(crate) fn end(&self, partition: Partition) -> u64 {
        self.ends.get(&partition).copied().unwrap_or(0)
    }

    pub(crate) fn ends(&self) -> &PartitionOffsets {
        &self.ends
    }

    /// Offset of the first record still in the log.
    pub(crate) fn first(&self, partition: Partition) -> u64 {
        self.segments
            .front()
            .map_or(0, |segment| segment.start(partition))
    }

    /// Size of all segments in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Durable length of the last segment.
    pub(crate) fn last_length(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.length)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Closes the log: consumers that have read everything are notified.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        for arrival in &self.arrivals {
            arrival.send_replace(());
        }
    }

    /// Checks that a position is in the log, or at its end.
    pub(crate) fn check(&self, partition: Partition, offset: u64) -> Result<(), JournalError> {
        let (first, next) = (self.first(partition), self.end(partition));
        if (first..=next).contains(&offset) {
            return Ok(());
        }
        Err(JournalError::OutOfRange {
            partition,
            asked: offset,
            first,
            next,
        })
    }

    /// The segment that holds an offset, or will hold it once it is written.
    pub(crate) fn segment_of(&self, partition: Partition, offset: u64) -> Option<u64> {
        let after = self
            .segments
            .partition_point(|segment| segment.start(partition) <= offset);
        self.segments.get(after.checked_sub(1)?).map(|segment| segment.id)
    }

    /// The bounds of a segment; `None` if it was deleted.
    pub(crate) fn bounds(&self, id: u64) -> Option<SegmentBounds> {
        let at = self
            .segments
            .binary_search_by_key(&id, |segment| segment.id)
            .ok()?;
        Some(SegmentBounds {
            length: self.segments.get(at)?.length,
            next: self.segments.get(at + 1).map(|segment| segment.id),
        })
    }

    /// Returns whether a segment still exists.
    pub(crate) fn holds(&self, id: u64) -> bool {
        self.bounds(id).is_some()
    }

    /// Publishes a durable block: `before` has the offsets before it, `after` the changed ends.
    pub(crate) fn publish(
        &mut self,
        id: u64,
        length: u64,
        before: &PartitionOffsets,
        after: &[(Partition, u64)],
    ) {
        match self.segments.back_mut() {
            Some(segment) if segment.id == id => {
                self.bytes += length - segment.length;
                segment.length = length;
            }
            _ => {
                self.bytes += length;
                self.segments.push_back(LogSegment {
                    id,
                    length,
                    starts: before.clone(),
                });
            }
        }
        let mut told = None;
        for (partition, end) in after {
            self.ends.insert(*partition, *end);
            // The changes are ordered by queue.
            if told != Some(partition.queue) {
                told = Some(partition.queue);
                if let Some(arrival) = self.arrivals.get(usize::from(partition.queue.0)) {
                    arrival.send_replace(());
                }
            }
        }
    }

    /// Removes the oldest segment if all of its records are consumed, and either `retain` bytes of consumed history
    /// remain without it, or the log has reached `max`. The last segment stays, because it states the offsets of the
    /// partitions.
    pub(crate) fn take_consumed(
        &mut self,
        registry: &QueueRegistry,
        retain: u64,
        max: u64,
    ) -> Option<LogSegment> {
        let ends = self.segments.iter().skip(1).map(|next| &next.starts);
        let consumed: u64 = self
            .segments
            .iter()
            .zip(ends)
            .take_while(|(segment, ends)| is_consumed(segment, ends, registry))
            .map(|(segment, _)| segment.length)
            .sum();
        let length = self.segments.front()?.length;
        if consumed == 0 || (consumed - length < retain && self.bytes < max) {
            return None;
        }
        self.bytes -= length;
        self.segments.pop_front()
    }

    /// Puts back a segment that could not be deleted.
    pub(crate) fn put_back(&mut self, segment: LogSegment) {
        self.bytes += segment.length;
        self.segments.push_front(segment);
    }

    /// Returns whether all records of the last segment are consumed.
    pub(crate) fn is_consumed(&self, registry: &QueueRegistry) -> bool {
        self.segments
            .back()
            .is_some_and(|segment| is_consumed(segment, &self.ends, registry))
    }
}

fn is_consumed(segment: &LogSegment, ends: &PartitionOffsets, registry: &QueueRegistry) -> bool {
    ends.iter()
        .all(|(partition, end)| segment.start(*partition) >= *end || !registry.needs(*partition, *end))
}
