//! Blocks: many records as one message of Kafka, and positions in them.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | `FLB1` |
//! | 1 | version: 1 |
//! | 1 | flags: 1 if the records are compressed |
//! | 2 | zero |
//! | 16 | run of the writer: a random number, new whenever a block of it was not written |
//! | 8 | number of the block in that run and partition |
//! | 4 | number of records, at most 4,096 |
//! | 4 | bytes of the records |
//! | … | the records, each after its length as `u32`; as an LZ4 block if compressed |
//!
//! A block has a number: its offset in Kafka, counted from the base of its queue ([`super::queue_log`]).
//!
//! Numbers are little-endian. Kafka itself has checksums. Records are compressed here, so that Kafka sees one record
//! where there are a thousand.

use bytes::Bytes;
use uuid::Uuid;

const MAGIC: &[u8; 4] = b"FLB1";
const VERSION: u8 = 1;
const COMPRESSED: u8 = 1;
/// Bytes before the records.
pub(crate) const HEADER_BYTES: usize = 40;
const INDEX_BITS: u32 = 12;
/// Most records of a block.
pub(crate) const MAX_RECORDS: u32 = 1 << INDEX_BITS;
/// Records below this size are not worth compressing.
const SMALL: usize = 256;

/// The position of a record. The number may be that of the record after the last one of a full block, which is the first
/// position of the next block.
pub(crate) const fn position(block: u64, number: u64) -> u64 {
    (block << INDEX_BITS) + number
}

/// The block of a position, and the number of its record there.
pub(crate) const fn place(position: u64) -> (u64, u64) {
    (position >> INDEX_BITS, position & (MAX_RECORDS as u64 - 1))
}

/// Where a block comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockOrigin {
    pub(crate) run: Uuid,
    pub(crate) sequence: u64,
}

/// A block as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) origin: BlockOrigin,
    pub(crate) records: u32,
    pub(crate) bytes: Bytes,
}

/// Why bytes are no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBlock {
    #[error("it is not a block of Fieldline")]
    Foreign,
    #[error("its version is {0}, which a newer program has written")]
    Version(u8),
    #[error("its records do not add up")]
    Records,
}

/// Puts a block into a buffer, which is emptied first.
pub(crate) fn encode(origin: BlockOrigin, count: u32, records: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, 0, 0, 0]);
    out.extend_from_slice(origin.run.as_bytes());
    out.extend_from_slice(&origin.sequence.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&(records.len() as u32).to_le_bytes());
    if records.len() >= SMALL {
        out.resize(
            HEADER_BYTES + lz4_flex::block::get_maximum_output_size(records.len()),
            0,
        );
        let room = out.get_mut(HEADER_BYTES..).unwrap_or_default();
        if let Ok(length) = lz4_flex::block::compress_into(records, room)
            && length < records.len()
        {
            out.truncate(HEADER_BYTES + length);
            if let Some(flags) = out.get_mut(5) {
                *flags = COMPRESSED;
            }
            return;
        }
        out.truncate(HEADER_BYTES);
    }
    out.extend_from_slice(records);
}

/// Reads a block; `limit` bounds the bytes of its records.
pub(crate) fn decode(bytes: &[u8], limit: usize) -> Result<Block, BadBlock> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES).ok_or(BadBlock::Foreign)?;
    let (magic, header) = header.split_first_chunk::<4>().ok_or(BadBlock::Foreign)?;
    if magic != MAGIC {
        return Err(BadBlock::Foreign);
    }
    let ([version, flags, ..], header) = header.split_first_chunk::<4>().ok_or(BadBlock::Foreign)?;
    if *version != VERSION {
        return Err(BadBlock::Version(*version));
    }
    let (run, header) = header.split_first_chunk::<16>().ok_or(BadBlock::Foreign)?;
    let (sequence, header) = header.split_first_chunk::<8>().ok_or(BadBlock::Foreign)?;
    let (count, header) = header.split_first_chunk::<4>().ok_or(BadBlock::Foreign)?;
    let length = header.first_chunk::<4>().ok_or(BadBlock::Foreign)?;
    let (count, length) = (u32::from_le_bytes(*count), u32::from_le_bytes(*length) as usize);
    if length > limit {
        return Err(BadBlock::Records);
    }
    let records = if flags & COMPRESSED == 0 {
        body.to_vec()
    } else {
        lz4_flex::block::decompress(body, length).map_err(|_| BadBlock::Records)?
    };
    if records.len() != length || count > MAX_RECORDS || count_records(&records) != Some(count) {
        return Err(BadBlock::Records);
    }
    Ok(Block {
        origin: BlockOrigin {
            run: Uuid::from_bytes(*run),
            sequence: u64::from_le_bytes(*sequence),
        },
        records: count,
        bytes: Bytes::from(records),
    })
}

/// The number of records, if their lengths add up.
fn count_records(mut bytes: &[u8]) -> Option<u32> {
    let mut count = 0;
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        bytes = rest.get(u32::from_le_bytes(*length) as usize..)?;
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use fieldline_model::record::RecordBatch;
    use proptest::prelude::*;

    use super::*;

    const ORIGIN: BlockOrigin = BlockOrigin {
        run: Uuid::from_u128(7),
        sequence: 3,
    };

    fn batch(records: &[Vec<u8>]) -> RecordBatch {
        let mut batch = RecordBatch::new();
        for record in records {
            batch.push(record);
        }
        batch
    }

    #[test]
    fn positions_of_a_full_block_end_where_the_next_one_begins() {
        let last = u64::from(MAX_RECORDS);
        assert_eq!(position(4, last), position(5, 0));
        assert_eq!(
            position(5, last),
            position(6, 0),
            "added: bits would be lost in one another"
        );
        assert_eq!(place(position(5, 17)), (5, 17));
        assert_eq!(place(position(5, last)), (6, 0));
    }

    #[test]
    fn what_is_no_block_says_why() {
        let mut bytes = Vec::new();
        encode(ORIGIN, 1, batch(&[vec![1; 40]]).as_bytes(), &mut bytes);
        assert_eq!(decode(b"hello", 1000).unwrap_err(), BadBlock::Foreign);
        assert_eq!(decode(&bytes, 43).unwrap_err(), BadBlock::Records);
        assert_eq!(
            decode(&bytes[..bytes.len() - 1], 1000).unwrap_err(),
            BadBlock::Records
        );
        bytes[4] = 9;
        assert_eq!(decode(&bytes, 1000).unwrap_err(), BadBlock::Version(9));
        bytes[0] = 0;
        assert_eq!(decode(&bytes, 1000).unwrap_err(), BadBlock::Foreign);
    }

    proptest! {
        #[test]
        fn a_block_reads_back_as_it_was_written(records in prop::collection::vec(prop::collection::vec(0_u8..4, 0..200), 0..50)) {
            let batch = batch(&records);
            let mut bytes = vec![1, 2, 3];
            encode(ORIGIN, batch.count(), batch.as_bytes(), &mut bytes);
            let block = decode(&bytes, 1 << 20).unwrap();
            prop_assert_eq!(block.origin, ORIGIN);
            prop_assert_eq!(block.records as usize, records.len());
            prop_assert_eq!(&block.bytes[..], batch.as_bytes());
        }

        #[test]
        fn no_bytes_make_it_panic_or_take_more_than_its_limit(mut bytes in prop::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
            if head && bytes.len() > 6 {
                bytes[..6].copy_from_slice(b"FLB1\x01\x01");
            }
            if let Ok(block) = decode(&bytes, 100) {
                prop_assert!(block.bytes.len() <= 100);
            }
        }
    }
}
