//! Blocks: rows of one subject that are stored under one key.
//!
//! ```text
//! key   := epoch u64 · subject · ts of the first row i64 · smallest row number u64
//! value := row*
//! row   := ts - key ts varint · number - key number varint · ttl varint · length varint · packed key-values
//! ```
//!
//! The rows of a block lie in one window of time, ordered by time and number. Whoever looks for a range of times begins at
//! the window of its start, and merges the blocks of one window.

use fieldline_model::kv::{CorruptData, read_varint, take, write_varint};

use super::keys::{self, EntityKeyBytes, ROW_BYTES};

/// Windows have a power of two of milliseconds: long enough for the rows of one flush, short enough to be read for one point.
const WINDOW_BITS: u32 = 14;

/// A block takes no further rows from this many bytes on.
pub(super) const BLOCK_BYTES: usize = 16 << 10;

/// What a row takes besides its values, roughly.
const ROW_COST: usize = 8;
/// Different times that fit in a window.
pub(super) const WINDOW_TIMES: usize = 1 << WINDOW_BITS;

/// A row within a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockRow<'a> {
    pub(super) ts: i64,
    /// Of two rows with one time the greater counts.
    pub(super) seq: u64,
    pub(super) ttl: u32,
    /// Packed key-values.
    pub(super) values: &'a [u8],
}

/// The number of a time's window.
pub(super) const fn window(ts: i64) -> i64 {
    ts >> WINDOW_BITS
}

/// The first time of a time's window.
pub(super) const fn window_start(ts: i64) -> i64 {
    window(ts) << WINDOW_BITS
}

/// Encodes rows of an epoch, ordered by time and number, into as few blocks as they fit.
pub(super) fn encode(
    epoch: u64,
    subject: &EntityKeyBytes,
    rows: &[BlockRow<'_>],
    mut write: impl FnMut([u8; ROW_BYTES], Vec<u8>),
) {
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|row| {
            let fits = bytes < BLOCK_BYTES && window(row.ts) == window(first.ts);
            bytes += row.values.len() + ROW_COST;
            fits
        });
        let (block, tail) = rest.split_at(fits.count());
        rest = tail;
        let seq = block.iter().map(|row| row.seq).min().unwrap_or_default();
        let size: usize = block.iter().map(|row| row.values.len() + ROW_COST).sum();
        let mut value = Vec::with_capacity(size);
        for row in block {
            put(row, first.ts, seq, &mut value);
        }
        write(keys::row_key(epoch, subject, first.ts, seq), value);
    }
}

fn put(row: &BlockRow<'_>, ts: i64, seq: u64, out: &mut Vec<u8>) {
    write_varint(row.ts.wrapping_sub(ts) as u64, out);
    write_varint(row.seq.wrapping_sub(seq), out);
    write_varint(row.ttl.into(), out);
    write_varint(row.values.len() as u64, out);
    out.extend_from_slice(row.values);
}

/// Encodes rows in the place of a block: what is left of it.
pub(super) fn encode_in_place(key: &[u8], rows: &[BlockRow<'_>]) -> Result<Vec<u8>, CorruptData> {
    let (_, ts, seq) = read_key(key)?;
    let mut value = Vec::new();
    for row in rows {
        put(row, ts, seq, &mut value);
    }
    Ok(value)
}

/// The rows of a block, ordered by time and number.
pub(super) fn rows<'a>(
    key: &[u8],
    value: &'a [u8],
) -> Result<impl Iterator<Item = Result<BlockRow<'a>, CorruptData>> + use<'a>, CorruptData> {
    let (_, ts, seq) = read_key(key)?;
    let mut rest = value;
    Ok(std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let row = take_row(&mut rest, ts, seq);
        if row.is_err() {
            rest = &[];
        }
        Some(row)
    }))
}

fn take_row<'a>(rest: &mut &'a [u8], ts: i64, seq: u64) -> Result<BlockRow<'a>, CorruptData> {
    let later = read_varint(rest)? as i64;
    let further = read_varint(rest)?;
    let ttl =
        u32::try_from(read_varint(rest)?).map_err(|_| CorruptData("time-to-live of a row is too long"))?;
    let length = usize::try_from(read_varint(rest)?).map_err(|_| CorruptData("row is too long"))?;
    Ok(BlockRow {
        ts: ts.wrapping_add(later),
        seq: seq.wrapping_add(further),
        ttl,
        values: take(rest, length)?,
    })
}

fn read_key(key: &[u8]) -> Result<(&EntityKeyBytes, i64, u64), CorruptData> {
    keys::read_row_key(key).ok_or(CorruptData("block key has another length"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUBJECT: EntityKeyBytes = [7; keys::SUBJECT_BYTES];

    fn read_all(blocks: &[([u8; ROW_BYTES], Vec<u8>)]) -> Vec<(i64, u64, u32, Vec<u8>)> {
        let mut all = Vec::new();
        for (key, value) in blocks {
            for row in rows(key, value).unwrap() {
                let row = row.unwrap();
                all.push((row.ts, row.seq, row.ttl, row.values.to_vec()));
            }
        }
        all
    }

    proptest! {
        #[test]
        fn rows_come_back_in_order_and_within_their_windows(
            mut given in prop::collection::vec(
                (prop_oneof![Just(i64::MIN), Just(i64::MAX), -100_000_i64..100_000], any::<u64>(), any::<u32>(),
                 prop::collection::vec(any::<u8>(), 0..40)), 0..200)
        ) {
            given.sort();
            let rows_in: Vec<BlockRow<'_>> = given
                .iter()
                .map(|(ts, seq, ttl, values)| BlockRow { ts: *ts, seq: *seq, ttl: *ttl, values })
                .collect();
            let mut blocks = Vec::new();
            encode(7, &SUBJECT, &rows_in, |key, value| blocks.push((key, value)));
            prop_assert_eq!(&read_all(&blocks), &given);
            for (key, value) in &blocks {
                let (_, first, _) = keys::read_row_key(key).unwrap();
                for row in rows(key, value).unwrap() {
                    prop_assert_eq!(window(row.unwrap().ts), window(first));
                }
            }
        }

        #[test]
        fn what_is_no_block_is_an_error_and_no_panic(key in prop::collection::vec(any::<u8>(), 0..60),
            value in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(found) = rows(&key, &value) {
                for row in found {
                    let _ = row;
                }
            }
        }
    }

    #[test]
    fn large_rows_are_split_over_blocks() {
        let values = vec![0; BLOCK_BYTES / 2];
        let rows_in: Vec<BlockRow<'_>> = (0..10)
            .map(|seq| BlockRow {
                ts: 5,
                seq,
                ttl: 0,
                values: &values,
            })
            .collect();
        let mut blocks = Vec::new();
        encode(7, &SUBJECT, &rows_in, |key, value| blocks.push((key, value)));
        assert_eq!(blocks.len(), 5);
        assert_eq!(read_all(&blocks).len(), 10);
    }
}
