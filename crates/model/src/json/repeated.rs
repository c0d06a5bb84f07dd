//! Members that share a name, of which the last one counts.

use std::cmp::Ordering;
use std::ops::Range;

/// Up to this many members are compared pair by pair.
const PAIRWISE_LIMIT: usize = 16;

/// Where a member of an object was written.
#[derive(Debug, Clone)]
pub(super) struct MemberSpan {
    pub(super) hash: u64,
    pub(super) key: Range<usize>,
    pub(super) whole: Range<usize>,
}

impl MemberSpan {
    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(self.key.clone()).unwrap_or_default()
    }
}

/// Hashes a name. Equal hashes cost time only (names are then compared in full), so nothing is keyed or random here.
#[inline]
pub(super) fn hash(name: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let mut hash = mix(0, name.len() as u64);
    if let Some(tail) = name.last_chunk::<8>() {
        for chunk in name.chunks_exact(8) {
            hash = mix(
                hash,
                chunk.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)),
            );
        }
        return mix(hash, u64::from_le_bytes(*tail));
    }
    if let (Some(head), Some(tail)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        let word = u64::from(u32::from_le_bytes(*head)) << 32 | u64::from(u32::from_le_bytes(*tail));
        return mix(hash, word);
    }
    for &byte in name {
        hash = mix(hash, u64::from(byte));
    }
    hash
}

/// Where the members start that a later one of the same name replaces, in order. Leaves `members` in any order.
pub(super) fn find(members: &mut [MemberSpan], bytes: &[u8]) -> Vec<usize> {
    if members.len() <= PAIRWISE_LIMIT && all_hashes_differ(members) {
        return Vec::new();
    }
    let by_key = |a: &MemberSpan, b: &MemberSpan| -> Ordering {
        a.hash.cmp(&b.hash).then_with(|| a.key(bytes).cmp(b.key(bytes)))
    };
    members.sort_unstable_by(|a, b| by_key(a, b).then(a.whole.start.cmp(&b.whole.start)));
    let neighbours = members.iter().zip(members.iter().skip(1));
    let mut replaced: Vec<usize> = neighbours
        .filter(|(a, b)| by_key(a, b).is_eq())
        .map(|(a, _)| a.whole.start)
        .collect();
    replaced.sort_unstable();
    replaced
}

fn all_hashes_differ(mut members: &[MemberSpan]) -> bool {
    while let [member, rest @ ..] = members {
        if rest.iter().any(|other| other.hash == member.hash) {
            return false;
        }
        members = rest;
    }
    true
}
