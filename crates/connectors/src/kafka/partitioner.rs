//! Which partition a message goes to: the same as with the producers of Kafka itself.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Chooses partitions of one topic.
#[derive(Debug, Default)]
pub(super) struct Partitioner {
    /// The bytes of messages without a key.
    bytes: AtomicUsize,
}

impl Partitioner {
    /// Returns the index of a partition out of `count`.
    ///
    /// Messages of one key share a partition. Those without a key fill a batch, and then go to the next one.
    pub(super) fn choose(&self, key: Option<&str>, size: usize, batch_size: usize, count: usize) -> usize {
        match key {
            Some(key) => (murmur2(key.as_bytes()) & 0x7FFF_FFFF) as usize % count.max(1),
            None => {
                let bytes = self.bytes.fetch_add(size, Ordering::Relaxed);
                (bytes / batch_size.max(1)) % count.max(1)
            }
        }
    }
}

/// The hash that Kafka spreads keys by.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    #[expect(clippy::cast_possible_truncation, reason = "the hash is defined on 32 bits")]
    let mut hash = SEED ^ data.len() as u32;
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_kafka() {
        // Known values of org.apache.kafka.common.utils.Utils.murmur2.
        for (key, expected) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), expected, "{key}");
        }
    }

    #[test]
    fn messages_without_key_change_the_partition_with_each_batch() {
        let partitioner = Partitioner::default();
        let chosen: Vec<_> = (0..6).map(|_| partitioner.choose(None, 50, 100, 2)).collect();
        assert_eq!(chosen, [0, 0, 1, 1, 0, 0]);
    }
}
