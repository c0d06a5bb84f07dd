//! Where an entry is in Cassandra: which partition, and which partitions a range of keys may lie in.
//!
//! Cassandra keeps the rows of a partition in order, but partitions in none. Keys are therefore spread over slots by the
//! entity they belong to, and a range that is wider than an entity is merged from all slots.
//!
//! ```text
//! latest, attributes, stuck   slot                 key → value
//! blocks                      epoch · slot         key → value      dropped as a whole once the epoch is packed
//! chunks                      series               key → value      a partition grows with its series alone
//! series                      slot                 series → nothing which series have chunks
//! ```

use std::ops::{Bound, Range};

use fjall::Slice;

use super::super::super::keys::{self, EPOCH_BYTES, SUBJECT_BYTES};
use super::super::KeyRange;

/// Over so many partitions a table is spread. A part of the format: what is stored is found by it.
pub(super) const SLOTS: u16 = 64;

/// The tables in Cassandra.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super::super) enum CqlTableKind {
    Latest,
    Attributes,
    Chunks,
    Stuck,
    Blocks,
    /// The series that have chunks, by which the partitions of chunks are found.
    Series,
}

impl CqlTableKind {
    pub(super) const ALL: [Self; 6] = [
        Self::Latest,
        Self::Attributes,
        Self::Chunks,
        Self::Stuck,
        Self::Blocks,
        Self::Series,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Attributes => "attribute",
            Self::Chunks => "chunk",
            Self::Stuck => "stuck",
            Self::Blocks => "recent",
            Self::Series => "series",
        }
    }

    /// Whether keys begin with an epoch, before the entity.
    const fn has_epochs(self) -> bool {
        matches!(self, Self::Stuck | Self::Blocks)
    }
}

/// A range of keys, the last one left out.
pub(super) type ByteRange = Range<Vec<u8>>;

/// Greater than all keys: tenants' ids are no such bytes.
const BEHIND_ALL: [u8; 48] = [u8::MAX; 48];

/// The least key that is greater.
pub(super) fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

pub(super) fn byte_range((from, to): KeyRange<'_>) -> ByteRange {
    let from = match from {
        Bound::Included(key) => key.to_vec(),
        Bound::Excluded(key) => successor(key),
        Bound::Unbounded => Vec::new(),
    };
    let to = match to {
        Bound::Included(key) => successor(key),
        Bound::Excluded(key) => key.to_vec(),
        Bound::Unbounded => BEHIND_ALL.to_vec(),
    };
    from..to
}

/// How many bytes both ends of a range begin with.
fn common_bytes(range: &ByteRange) -> usize {
    let pairs = range.start.iter().zip(&range.end);
    pairs.take_while(|(a, b)| a == b).count()
}

/// What all keys of a range begin with. The end is left out, so that it may begin with what comes right after.
fn shared_prefix(range: &ByteRange, length: usize) -> Option<&[u8]> {
    let prefix = range.start.get(..length)?;
    let is_shared =
        common_bytes(range) >= length || keys::after_prefix(prefix).is_some_and(|after| range.end <= after);
    is_shared.then_some(prefix)
}

/// The slot of an entity.
pub(super) fn slot_of(subject: &[u8]) -> u16 {
    (keys::spread(subject) % usize::from(SLOTS)) as u16
}

/// The slot of the entity that a key belongs to.
pub(super) fn slot_of_key(kind: CqlTableKind, key: &[u8]) -> u16 {
    let skipped = if kind.has_epochs() { EPOCH_BYTES } else { 0 };
    let rest = key.get(skipped..).unwrap_or_default();
    slot_of(rest.get(..SUBJECT_BYTES).unwrap_or(rest))
}

/// The slots that a range of keys may have entries in.
pub(super) fn slots_of_range(kind: CqlTableKind, range: &ByteRange) -> Range<u16> {
    let length = SUBJECT_BYTES + if kind.has_epochs() { EPOCH_BYTES } else { 0 };
    match shared_prefix(range, length) {
        Some(prefix) => {
            let slot = slot_of_key(kind, prefix);
            slot..slot + 1
        }
        None => 0..SLOTS,
    }
}

/// The series of a chunk's key: all but its time.
pub(super) fn series_of(key: &[u8]) -> &[u8] {
    key.split_last_chunk::<8>().map_or(key, |(series, _)| series)
}

/// The series that a range of chunks lies in, where it is one.
pub(super) fn only_series(range: &ByteRange) -> Option<Vec<u8>> {
    let length = range.start.get(SUBJECT_BYTES..)?.first_chunk::<2>()?;
    let length = SUBJECT_BYTES + 2 + usize::from(u16::from_be_bytes(*length));
    Some(shared_prefix(range, length)?.to_vec())
}

/// The epochs that a range of blocks lies in, where it is one.
pub(super) fn only_epoch(range: &ByteRange) -> Option<u64> {
    keys::read_epoch(shared_prefix(range, EPOCH_BYTES)?)
}

pub(super) fn block_partition(epoch: u64, slot: u16) -> Vec<u8> {
    [&keys::epoch_key(epoch)[..], &slot.to_be_bytes()].concat()
}

/// The partition of a key.
pub(super) fn partition(kind: CqlTableKind, key: &Slice) -> Vec<u8> {
    match kind {
        CqlTableKind::Chunks => series_of(key).to_vec(),
        CqlTableKind::Blocks => {
            let epoch = keys::read_epoch(key).unwrap_or_default();
            block_partition(epoch, slot_of_key(kind, key))
        }
        _ => slot_of_key(kind, key).to_be_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: [u8; SUBJECT_BYTES] = [7; SUBJECT_BYTES];

    #[test]
    fn a_range_within_an_entity_lies_in_its_slot_alone() {
        let slot = slot_of(&SUBJECT);
        let prefix = keys::after_prefix(&SUBJECT).unwrap();
        let range = byte_range((Bound::Included(&SUBJECT), Bound::Excluded(&prefix)));
        assert_eq!(slots_of_range(CqlTableKind::Latest, &range), slot..slot + 1);
        let group = keys::group_of(&SUBJECT, 2);
        let range = byte_range((Bound::Included(&group), Bound::Included(&group)));
        assert_eq!(slots_of_range(CqlTableKind::Attributes, &range), slot..slot + 1);
        let (from, to) = (keys::row_key(5, &SUBJECT, 1, 0), keys::row_key(5, &SUBJECT, 9, 0));
        let range = byte_range((Bound::Included(&from), Bound::Excluded(&to)));
        assert_eq!(slots_of_range(CqlTableKind::Blocks, &range), slot..slot + 1);
        assert_eq!(only_epoch(&range), Some(5));
    }

    #[test]
    fn a_wider_range_lies_in_all_slots() {
        let tenant = &SUBJECT[..16];
        let end = keys::after_prefix(tenant).unwrap();
        let range = byte_range((Bound::Included(tenant), Bound::Excluded(&end)));
        assert_eq!(slots_of_range(CqlTableKind::Latest, &range), 0..SLOTS);
        let (begin, end) = (keys::epoch_key(3), keys::epoch_key(4));
        let range = byte_range((Bound::Excluded(&begin), Bound::Excluded(&end)));
        assert_eq!(slots_of_range(CqlTableKind::Blocks, &range), 0..SLOTS);
        assert_eq!(only_epoch(&range), Some(3));
        let range = byte_range((Bound::Included(&begin), Bound::Unbounded));
        assert_eq!(only_epoch(&range), None);
    }

    #[test]
    fn chunks_of_one_series_are_told_from_those_of_several() {
        let series = keys::series_prefix(&SUBJECT, "power");
        let (from, to) = (
            keys::chunk_key(&series, i64::MIN),
            keys::chunk_key(&series, i64::MAX),
        );
        let range = byte_range((Bound::Included(&from), Bound::Included(&to)));
        assert_eq!(only_series(&range), Some(series.clone()));
        let after = keys::after_prefix(&series).unwrap();
        let range = byte_range((Bound::Included(&series), Bound::Excluded(&after)));
        assert_eq!(only_series(&range), Some(series.clone()));
        let end = keys::after_prefix(&SUBJECT).unwrap();
        let range = byte_range((Bound::Included(&series), Bound::Excluded(&end)));
        assert_eq!(only_series(&range), None);
        assert_eq!(series_of(&from), series);
    }
}
