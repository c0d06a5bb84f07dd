//! Recovery at start-up: finds the end of the log, truncates an unfinished write, and refuses damage.
//!
//! It reads and checks all segments that a consumer still needs, and the last two. Fully consumed segments are checked
//! only when they are read.
//!
//! A bad block in the last segment is an unfinished write unless a later block says that it was durable. In every other
//! segment, all blocks were durable before the next segment was begun, so a bad block there is damage.
//!
//! Good blocks that no later block reports as durable may be in the page cache only, and after a failed fsync the
//! kernel does not write them again. They count as durable from here on, so recovery rewrites them first.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use fieldline_core::ports::JournalError;

use crate::disk::{DiskFile, JournalDisk, is_full, read_exact_at, write_all_at};
use crate::error::{DamageReport, ReadError, failed};
use crate::format::{BadBlock, BlockHeader, HEADER_BYTES, MAGIC, SectionEntry};
use crate::log::{LogSegment, segment_id, segment_name};
use crate::registry::{PartitionOffsets, QueueRegistry};
use crate::segment_reader::SegmentReader;

/// Bytes read at once to check sections or to search damage.
const CHUNK_BYTES: usize = 1 << 20;

/// The recovered log.
pub(crate) struct RecoveredLog {
    /// Segments that hold at least one block, oldest first.
    pub(crate) segments: VecDeque<LogSegment>,
    /// The file for appends, with its length.
    pub(crate) active: Option<(u64, Arc<dyn DiskFile>, u64)>,
    /// End of every partition.
    pub(crate) ends: PartitionOffsets,
    /// Number of the next block.
    pub(crate) next_sequence: u64,
    /// Bytes truncated.
    pub(crate) truncated: u64,
}

/// A segment file before it is scanned.
struct SegmentFile {
    id: u64,
    name: String,
    length: u64,
    /// The offsets in its first block, if that is good.
    starts: Option<PartitionOffsets>,
}

/// How far a segment has been found good.
struct SegmentScan {
    position: u64,
    /// Everything before this position was durable when a later block was written.
    proven: u64,
    next_sequence: u64,
    starts: Option<PartitionOffsets>,
    bad: Option<BadBlock>,
}

pub(crate) fn recover(
    disk: &dyn JournalDisk,
    registry: &QueueRegistry,
    discard: bool,
) -> Result<RecoveredLog, JournalError> {
    let found = find_segments(disk, registry.log)?;
    let mut recovered = RecoveredLog {
        segments: VecDeque::new(),
        active: None,
        ends: PartitionOffsets::new(),
        next_sequence: found.first().map_or(1, |first| first.id),
        truncated: 0,
    };
    for (index, segment) in found.iter().enumerate() {
        let next = found.get(index + 1);
        if let Some((starts, next)) = skippable(segment, next, found.len() - index, registry, discard) {
            recovered.segments.push_back(LogSegment {
                id: segment.id,
                length: segment.length,
                starts: starts.clone(),
            });
            recovered.next_sequence = next;
            continue;
        }
        let open = disk.open(&segment.name);
        let file = open.map_err(failed(format!("open {}", disk.describe(&segment.name))))?;
        SegmentRecovery {
            disk,
            registry,
            discard,
            file,
        }
        .segment(segment, next.map(|next| next.id), &mut recovered)?;
    }
    Ok(recovered)
}

fn find_segments(disk: &dyn JournalDisk, log: u64) -> Result<Vec<SegmentFile>, JournalError> {
    let names = disk
        .list()
        .map_err(failed("list the journal's files".to_owned()))?;
    let mut ids: Vec<u64> = names.iter().filter_map(|name| segment_id(name)).collect();
    ids.sort_unstable();
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let name = segment_name(id);
        let context = || format!("read {}", disk.describe(&name));
        let file = disk.open(&name).map_err(failed(context()))?;
        let length = file.len().map_err(failed(context()))?;
        let mut entries = Vec::new();
        let first = SegmentReader::new(file, log).head(0, length, &mut entries);
        let starts = match first {
            Ok(header) if header.sequence == id && !header.is_void => Some(starts_of(&entries)),
            Err(ReadError::Io(error)) => return Err(failed(context())(error)),
            _ => None,
        };
        found.push(SegmentFile {
            id,
            name,
            length,
            starts,
        });
    }
    Ok(found)
}

/// The offset of each partition before the first block of a segment.
fn starts_of(entries: &[SectionEntry]) -> PartitionOffsets {
    let mut starts = PartitionOffsets::new();
    for entry in entries {
        starts.entry(entry.partition).or_insert(entry.first);
    }
    starts
}

/// A segment need not be read if all of it is consumed and it is not one of the last two.
fn skippable<'a>(
    segment: &'a SegmentFile,
    next: Option<&SegmentFile>,
    left: usize,
    registry: &QueueRegistry,
    discard: bool,
) -> Option<(&'a PartitionOffsets, u64)> {
    if left <= 2 || discard {
        return None;
    }
    let next = next?;
    let (starts, ends) = (segment.starts.as_ref()?, next.starts.as_ref()?);
    let needed = ends.iter().any(|(partition, end)| {
        starts.get(partition).copied().unwrap_or(0) < *end && registry.needs(*partition, *end)
    });
    (!needed).then_some((starts, next.id))
}

struct SegmentRecovery<'a> {
    disk: &'a dyn JournalDisk,
    registry: &'a QueueRegistry,
    discard: bool,
    file: Arc<dyn DiskFile>,
}

impl SegmentRecovery<'_> {
    /// Recovers one segment; `next` is the number of the following one, up to which this one must reach.
    fn segment(
        &self,
        segment: &SegmentFile,
        next: Option<u64>,
        recovered: &mut RecoveredLog,
    ) -> Result<(), JournalError> {
        let context = || format!("read {}", self.disk.describe(&segment.name));
        let before = recovered.ends.clone();
        let mut length = segment.length;
        let mut scan = SegmentScan {
            position: 0,
            proven: 0,
            next_sequence: segment.id,
            starts: None,
            bad: None,
        };
        loop {
            self.scan(length, &mut scan, &mut recovered.ends)
                .map_err(failed(context()))?;
            let reached = next.is_none_or(|next| scan.next_sequence == next);
            let bad = match scan.bad.take() {
                None if reached => break,
                None if !self.discard => {
                    return Err(self.missing(segment, scan.next_sequence, next.unwrap_or(0)));
                }
                None => BadBlock::Cut,
                // Zeros or an unfinished write after the last block of a completed segment are harmless.
                Some(_) if next.is_some() && reached => break,
                Some(bad) => bad,
            };
            let later = self.later_blocks(length, &scan).map_err(failed(context()))?;
            let damage = DamageReport {
                disk: self.disk,
                file: &segment.name,
                position: scan.position,
                sequence: Some(scan.next_sequence),
                bad,
                next_good: later.first.map(|(position, header)| (position, header.sequence)),
            };
            let newer = matches!(bad, BadBlock::Version(_));
            if next.is_none() && !later.proves && !newer {
                self.cut(segment, length, &scan, recovered)?;
                length = scan.position;
                break;
            }
            if !self.discard || newer {
                return Err(damage.report());
            }
            tracing::error!(error = %damage.report(), "giving up damaged journal records");
            length = self.cover(segment, length, &mut scan, later.first, next, &damage)?;
        }
        recovered.next_sequence = scan.next_sequence;
        if scan.position > 0 {
            recovered.segments.push_back(LogSegment {
                id: segment.id,
                length: scan.position,
                starts: scan.starts.unwrap_or(before),
            });
        }
        if next.is_none() {
            self.write_again(segment, scan.proven, scan.position)?;
            recovered.active = Some((segment.id, Arc::clone(&self.file), length.min(scan.position)));
        }
        Ok(())
    }

    /// Creates the error for a segment that is good to its end, while the next one begins later.
    fn missing(&self, segment: &SegmentFile, expected: u64, next: u64) -> JournalError {
        JournalError::Corrupt(format!(
            "the journal is damaged: blocks {expected} to {} are missing, at the end of {} or in a file {} of their own. \
             What to do: put the files back from a copy, or set the journal's option discard-damaged for one start, which \
             gives up the records of the missing blocks",
            next.saturating_sub(1),
            self.disk.describe(&segment.name),
            segment_name(expected),
        ))
    }

    /// Scans from `scan.position` to the first bad block or the end, checking every byte.
    fn scan(&self, length: u64, scan: &mut SegmentScan, ends: &mut PartitionOffsets) -> std::io::Result<()> {
        let mut walk = SegmentReader::new(Arc::clone(&self.file), self.registry.log);
        let mut entries = Vec::new();
        let mut chunk = Vec::new();
        while scan.position < length {
            let checked = self.block(&mut walk, scan, length, ends, &mut entries, &mut chunk);
            match checked {
                Ok(header) => {
                    if scan.position == 0 && !header.is_void {
                        scan.starts = Some(starts_of(&entries));
                    }
                    for entry in &entries {
                        ends.insert(entry.partition, entry.next());
                    }
                    if header.synced_through + 1 >= header.sequence {
                        scan.proven = scan.position;
                    }
                    scan.position += header.block_bytes();
                    scan.next_sequence = header.sequence + 1;
                }
                Err(ReadError::Bad(bad)) => {
                    scan.bad = Some(bad);
                    return Ok(());
                }
                Err(ReadError::Io(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks the block at `scan.position` completely.
    fn block(
        &self,
        walk: &mut SegmentReader,
        scan: &SegmentScan,
        length: u64,
        ends: &PartitionOffsets,
        entries: &mut Vec<SectionEntry>,
        chunk: &mut Vec<u8>,
    ) -> Result<BlockHeader, ReadError> {
        let header = walk.head(scan.position, length, entries)?;
        let expected = scan.next_sequence;
        if header.sequence != expected && !(header.is_void && header.sequence > expected) {
            return Err(BadBlock::Sequence {
                found: header.sequence,
                expected,
            }
            .into());
        }
        let mut position = scan.position + (HEADER_BYTES + header.table_bytes()) as u64;
        let mut previous = None;
        for entry in entries.iter() {
            let known = entry.partition.index < self.registry.partitions(entry.partition.queue);
            let end = match previous {
                Some((partition, next)) if partition == entry.partition => next,
                _ => ends.get(&entry.partition).copied().unwrap_or(0),
            };
            if !known || entry.first < end {
                return Err(BadBlock::Table.into());
            }
            previous = Some((entry.partition, entry.next()));
            check_section(walk.file.as_ref(), position, entry, chunk)?;
            position += u64::from(entry.bytes);
        }
        Ok(header)
    }

    /// Searches for good headers after a bad block, in memory of fixed size.
    fn later_blocks(&self, length: u64, scan: &SegmentScan) -> std::io::Result<LaterBlocks> {
        let mut later = LaterBlocks::default();
        let mut window = Vec::new();
        let mut start = scan.position + 1;
        while start + HEADER_BYTES as u64 <= length {
            let want = (length - start).min(CHUNK_BYTES as u64) as usize;
            window.resize(want, 0);
            read_exact_at(self.file.as_ref(), &mut window, start)?;
            for at in starts_with_magic(&window) {
                let Some(bytes) = window.get(at..at + HEADER_BYTES) else {
                    break;
                };
                let Ok(header) = BlockHeader::decode(bytes, self.registry.log) else {
                    continue;
                };
                if header.sequence <= scan.next_sequence {
                    continue;
                }
                later.first.get_or_insert((start + at as u64, header));
                if header.synced_through >= scan.next_sequence {
                    later.proves = true;
                    return Ok(later);
                }
            }
            // A header may span two windows.
            start += (want - HEADER_BYTES + 1) as u64;
        }
        Ok(later)
    }

    /// Rewrites good blocks unchanged, so that the next fsync covers them.
    fn write_again(&self, segment: &SegmentFile, from: u64, to: u64) -> Result<(), JournalError> {
        let mut chunk = Vec::new();
        let mut position = from;
        while position < to {
            chunk.resize((to - position).min(CHUNK_BYTES as u64) as usize, 0);
            let written = read_exact_at(self.file.as_ref(), &mut chunk, position)
                .and_then(|()| write_all_at(self.file.as_ref(), &mut [IoSlice::new(&chunk)], position));
            match written {
                // Happens only on file systems that need space to write in place. Refusing to start would help nobody.
                Err(error) if is_full(&error) => {
                    let file = self.disk.describe(&segment.name);
                    tracing::warn!(file, %error, "no room to write the end of the journal again");
                    return Ok(());
                }
                written => written.map_err(failed(format!(
                    "write the end of {} again",
                    self.disk.describe(&segment.name)
                )))?,
            }
            position += chunk.len() as u64;
        }
        Ok(())
    }

    /// Truncates an unfinished write.
    fn cut(
        &self,
        segment: &SegmentFile,
        length: u64,
        scan: &SegmentScan,
        recovered: &mut RecoveredLog,
    ) -> Result<(), JournalError> {
        let bytes = length - scan.position;
        recovered.truncated += bytes;
        let file = self.disk.describe(&segment.name);
        tracing::info!(
            file,
            at = scan.position,
            bytes,
            "cut off an unfinished write of the journal"
        );
        let context = format!("cut {file} to {} bytes", scan.position);
        self.file
            .set_len(scan.position)
            .and_then(|()| self.file.sync())
            .map_err(failed(context))
    }

    /// Covers damage with a void block up to the next good block or the end; returns the file's length.
    fn cover(
        &self,
        segment: &SegmentFile,
        length: u64,
        scan: &mut SegmentScan,
        good: Option<(u64, BlockHeader)>,
        next: Option<u64>,
        damage: &DamageReport<'_>,
    ) -> Result<u64, JournalError> {
        let (end, sequence) = match (good, next) {
            (Some((position, header)), _) => (position, header.sequence - 1),
            (None, Some(next)) => (length.max(scan.position + HEADER_BYTES as u64), next - 1),
            (None, None) => (length, scan.next_sequence),
        };
        let payload = end
            .checked_sub(scan.position + HEADER_BYTES as u64)
            .and_then(|payload| u32::try_from(payload).ok());
        let Some(payload_bytes) = payload.filter(|_| sequence >= scan.next_sequence) else {
            return Err(damage.report());
        };
        let header = BlockHeader {
            log: self.registry.log,
            sequence,
            synced_through: sequence,
            payload_bytes,
            entries: 0,
            table_crc: crc32c::crc32c(&[]),
            is_void: true,
        };
        let bytes = header.encode();
        write_all_at(self.file.as_ref(), &mut [IoSlice::new(&bytes)], scan.position)
            .and_then(|()| self.file.sync())
            .map_err(failed(format!("repair {}", self.disk.describe(&segment.name))))?;
        Ok(length.max(end))
    }
}

/// Good headers found after a bad block.
#[derive(Default)]
struct LaterBlocks {
    first: Option<(u64, BlockHeader)>,
    /// Whether one of them proves that the bad block was durable.
    proves: bool,
}

fn starts_with_magic(window: &[u8]) -> impl Iterator<Item = usize> {
    window
        .windows(MAGIC.len())
        .enumerate()
        .filter(|(_, bytes)| *bytes == MAGIC)
        .map(|(at, _)| at)
}

fn check_section(
    file: &dyn DiskFile,
    mut position: u64,
    entry: &SectionEntry,
    chunk: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let mut left = entry.bytes as usize;
    let mut crc = 0;
    while left > 0 {
        chunk.resize(left.min(CHUNK_BYTES), 0);
        read_exact_at(file, chunk, position)?;
        crc = crc32c::crc32c_append(crc, chunk);
        left -= chunk.len();
        position += chunk.len() as u64;
    }
    if crc == entry.crc {
        Ok(())
    } else {
        Err(BadBlock::Section(entry.partition).into())
    }
}
