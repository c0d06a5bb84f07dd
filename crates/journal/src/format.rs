//! The bytes of a segment: a sequence of commit blocks.
//!
//! ```text
//! block   := header · section entry* · section*
//! header  := magic [6] · version u16 · log u64 · sequence u64 · synced through u64 · payload bytes u32
//!            · section entries u32 · table crc u32 · flags u32 · crc u32 of all before
//! entry   := queue u16 · partition u16 · records u32 · first offset u64 · bytes u32 · crc u32 of the section
//! section := records of one partition, each behind its u32 length
//! ```
//!
//! Numbers are little-endian, checksums CRC-32C. Checksums cover every byte of a block: the header's covers the
//! checksum of the table, which covers those of the sections.
//!
//! - `log` is a random number of this log. It is secret, so records that imitate blocks are not mistaken for blocks.
//! - `sequence` numbers the blocks without gaps, across segments.
//! - `synced through` is the highest sequence known to be on the disk when this block was written. It distinguishes a
//!   torn tail from damage: a bad block that a later block reports as synced was once good.
//! - The first block of a segment has an entry for every partition, possibly without records. A segment thus states the
//!   offset of each partition, even after earlier segments are deleted.
//! - A void block (flag 1) has no entries, and a payload that is ignored. It covers damage that an operator discarded.

use fieldline_core::ports::{Partition, QueueId};

/// Length of a block's header.
pub const HEADER_BYTES: usize = 52;
/// Length of one entry of a block's section table.
pub const ENTRY_BYTES: usize = 24;
/// The first bytes of every block.
pub const MAGIC: [u8; 6] = *b"FLJBLK";
/// Most section entries of one block.
pub const MAX_ENTRIES: u32 = 1 << 20;

const VERSION: u16 = 1;
const FLAG_VOID: u32 = 1;

/// The reason why bytes are not a valid block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBlock {
    /// The bytes do not begin with [`MAGIC`].
    #[error("there is no block")]
    NoBlock,
    /// The header fails its checksum.
    #[error("the block's header does not match its checksum")]
    Header,
    /// The block was written by a newer program.
    #[error("the block has format version {0}, which this program does not know")]
    Version(u16),
    /// The block was written into another log.
    #[error("the block belongs to another log")]
    OtherLog,
    /// The block has an unexpected sequence number.
    #[error("the block has sequence number {found}, expected {expected}")]
    Sequence {
        /// The number found.
        found: u64,
        /// The expected number.
        expected: u64,
    },
    /// The file ends inside the block.
    #[error("the file ends inside of the block")]
    Cut,
    /// The section table fails its checksum or is inconsistent.
    #[error("the block's section table is damaged")]
    Table,
    /// A section fails its checksum.
    #[error("the records of partition {0} do not match their checksum")]
    Section(Partition),
}

/// A block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Random number of the log.
    pub log: u64,
    /// Sequence number of the block.
    pub sequence: u64,
    /// Highest block known to be durable when this one was written.
    pub synced_through: u64,
    /// Bytes of all sections.
    pub payload_bytes: u32,
    /// Number of section entries.
    pub entries: u32,
    /// Checksum of the entries.
    pub table_crc: u32,
    /// Whether the block only covers damage.
    pub is_void: bool,
}

impl BlockHeader {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut rest = bytes.as_mut_slice();
        put(&mut rest, &MAGIC);
        put(&mut rest, &VERSION.to_le_bytes());
        put(&mut rest, &self.log.to_le_bytes());
        put(&mut rest, &self.sequence.to_le_bytes());
        put(&mut rest, &self.synced_through.to_le_bytes());
        put(&mut rest, &self.payload_bytes.to_le_bytes());
        put(&mut rest, &self.entries.to_le_bytes());
        put(&mut rest, &self.table_crc.to_le_bytes());
        put(
            &mut rest,
            &(if self.is_void { FLAG_VOID } else { 0 }).to_le_bytes(),
        );
        let (covered, crc) = bytes.split_at_mut(HEADER_BYTES - 4);
        crc.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
        bytes
    }

    /// Decodes and checks the header at the start of the bytes.
    pub fn decode(bytes: &[u8], log: u64) -> Result<Self, BadBlock> {
        if !bytes.starts_with(&MAGIC) {
            return Err(BadBlock::NoBlock);
        }
        let (Some(covered), Some(crc)) = (bytes.get(..HEADER_BYTES - 4), u32_at(bytes, HEADER_BYTES - 4))
        else {
            return Err(BadBlock::Cut);
        };
        if crc32c::crc32c(covered) != crc {
            return Err(BadBlock::Header);
        }
        Self::fields(covered, log).unwrap_or(Err(BadBlock::Header))
    }

    fn fields(bytes: &[u8], log: u64) -> Option<Result<Self, BadBlock>> {
        let version = u16_at(bytes, 6)?;
        if version != VERSION {
            return Some(Err(BadBlock::Version(version)));
        }
        if u64_at(bytes, 8)? != log {
            return Some(Err(BadBlock::OtherLog));
        }
        let header = Self {
            log,
            sequence: u64_at(bytes, 16)?,
            synced_through: u64_at(bytes, 24)?,
            payload_bytes: u32_at(bytes, 32)?,
            entries: u32_at(bytes, 36)?,
            table_crc: u32_at(bytes, 40)?,
            is_void: u32_at(bytes, 44)? & FLAG_VOID != 0,
        };
        if header.entries > MAX_ENTRIES || (header.is_void && header.entries > 0) {
            return Some(Err(BadBlock::Table));
        }
        Some(Ok(header))
    }

    /// Size of the section table in bytes.
    pub const fn table_bytes(&self) -> usize {
        self.entries as usize * ENTRY_BYTES
    }

    /// Size of the whole block in bytes.
    pub const fn block_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.table_bytes() as u64 + self.payload_bytes as u64
    }
}

/// An entry of a block's section table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionEntry {
    /// The partition of the section's records.
    pub partition: Partition,
    /// Number of records.
    pub records: u32,
    /// Offset of the first record; without records, that of the next one to be appended.
    pub first: u64,
    /// Length of the section.
    pub bytes: u32,
    /// Checksum of the section.
    pub crc: u32,
}

impl SectionEntry {
    /// Offset after the last record.
    pub const fn next(&self) -> u64 {
        self.first.saturating_add(self.records as u64)
    }

    /// Appends the encoded entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.partition.queue.0.to_le_bytes());
        out.extend_from_slice(&self.partition.index.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            partition: Partition {
                queue: QueueId(u16_at(bytes, 0)?),
                index: u16_at(bytes, 2)?,
            },
            records: u32_at(bytes, 4)?,
            first: u64_at(bytes, 8)?,
            bytes: u32_at(bytes, 16)?,
            crc: u32_at(bytes, 20)?,
        })
    }

    /// Checks the section against its checksum.
    pub fn check(&self, section: &[u8]) -> Result<(), BadBlock> {
        if crc32c::crc32c(section) == self.crc {
            Ok(())
        } else {
            Err(BadBlock::Section(self.partition))
        }
    }
}

/// Decodes and checks a section table into `entries`, replacing its contents.
pub fn decode_table(
    header: &BlockHeader,
    table: &[u8],
    entries: &mut Vec<SectionEntry>,
) -> Result<(), BadBlock> {
    entries.clear();
    if table.len() != header.table_bytes() || crc32c::crc32c(table) != header.table_crc {
        return Err(BadBlock::Table);
    }
    entries.extend(table.chunks_exact(ENTRY_BYTES).filter_map(SectionEntry::decode));
    let payload: u64 = entries.iter().map(|entry| u64::from(entry.bytes)).sum();
    if !header.is_void && payload != u64::from(header.payload_bytes) {
        return Err(BadBlock::Table);
    }
    Ok(())
}

/// The sections of a block with their entries.
pub type BlockSections<'a> = Vec<(SectionEntry, &'a [u8])>;

/// Decodes one whole block: its header, its entries and each section's bytes.
pub fn decode_block(bytes: &[u8], log: u64) -> Result<(BlockHeader, BlockSections<'_>), BadBlock> {
    let header = BlockHeader::decode(bytes, log)?;
    let body = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let (table, mut payload) = body.split_at_checked(header.table_bytes()).ok_or(BadBlock::Cut)?;
    let mut entries = Vec::new();
    decode_table(&header, table, &mut entries)?;
    let mut sections = Vec::with_capacity(entries.len());
    for entry in entries {
        let (section, rest) = payload
            .split_at_checked(entry.bytes as usize)
            .ok_or(BadBlock::Cut)?;
        entry.check(section)?;
        sections.push((entry, section));
        payload = rest;
    }
    Ok((header, sections))
}

fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    if let Some((place, after)) = std::mem::take(rest).split_at_mut_checked(bytes.len()) {
        place.copy_from_slice(bytes);
        *rest = after;
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let records = b"\x03\0\0\0abc";
        let mut table = Vec::new();
        let entry = SectionEntry {
            partition: Partition {
                queue: QueueId(1),
                index: 2,
            },
            records: 1,
            first: 77,
            bytes: records.len() as u32,
            crc: crc32c::crc32c(records),
        };
        entry.encode(&mut table);
        let header = BlockHeader {
            log: 5,
            sequence: 9,
            synced_through: 8,
            payload_bytes: records.len() as u32,
            entries: 1,
            table_crc: crc32c::crc32c(&table),
            is_void: false,
        };
        [header.encode().as_slice(), &table, records].concat()
    }

    #[test]
    fn a_block_comes_apart_and_every_flipped_bit_of_it_shows() {
        let block = block();
        let (header, sections) = decode_block(&block, 5).unwrap();
        assert_eq!((header.sequence, header.synced_through), (9, 8));
        assert_eq!(header.block_bytes(), block.len() as u64);
        assert_eq!(
            (sections[0].0.first, sections[0].1),
            (77, b"\x03\0\0\0abc".as_slice())
        );
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_block(&flipped, 5).is_err(), "bit {bit}");
        }
        for length in 0..block.len() {
            assert!(decode_block(&block[..length], 5).is_err(), "length {length}");
        }
        assert_eq!(decode_block(&block, 6), Err(BadBlock::OtherLog));
    }
}
