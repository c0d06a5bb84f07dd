//! The FNV-1a hash, for numbers and identities that have to be the same in every run and version of the program. It is no
//! protection against anybody who looks for collisions.

/// What a hash of 64 bits begins with.
pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of bytes, of 64 bits. `basis` is [`BASIS`], the hash of what comes before the bytes, or any number that tells
/// hashes of the same bytes apart.
pub fn hash(basis: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    bytes.into_iter().fold(basis, step)
}

/// The hash of bytes, of 128 bits.
pub fn hash_128(bytes: impl IntoIterator<Item = u8>) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let step = |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    bytes.into_iter().fold(BASIS, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_were_published() {
        assert_eq!(hash(BASIS, []), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(BASIS, *b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(BASIS, *b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(hash(hash(BASIS, *b"foo"), *b"bar"), hash(BASIS, *b"foobar"));
        assert_eq!(hash_128(*b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
