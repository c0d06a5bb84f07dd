//! Checksums of packages, made while the data passes.

use std::fmt::Write as _;
use std::hash::Hasher as _;

use fieldline_model::entity::ChecksumAlgorithm;
use md5::Md5;
use mur3::{Hasher32, Hasher128};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A checksum in the making.
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum ChecksumHasher {
    Md5(Md5),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
    Crc32(crc32fast::Hasher),
    Murmur3x32(Hasher32),
    Murmur3x128(Hasher128),
}

impl ChecksumHasher {
    /// Of no data yet.
    pub fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::Md5 => Self::Md5(Md5::new()),
            ChecksumAlgorithm::Sha256 => Self::Sha256(Sha256::new()),
            ChecksumAlgorithm::Sha384 => Self::Sha384(Sha384::new()),
            ChecksumAlgorithm::Sha512 => Self::Sha512(Sha512::new()),
            ChecksumAlgorithm::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
            ChecksumAlgorithm::Murmur3x32 => Self::Murmur3x32(Hasher32::with_seed(0)),
            ChecksumAlgorithm::Murmur3x128 => Self::Murmur3x128(Hasher128::with_seed(0)),
        }
    }

    /// The data goes on.
    pub fn update(&mut self, data: &[u8]) {
        match self {
            Self::Md5(hash) => hash.update(data),
            Self::Sha256(hash) => hash.update(data),
            Self::Sha384(hash) => hash.update(data),
            Self::Sha512(hash) => hash.update(data),
            Self::Crc32(hash) => hash.update(data),
            Self::Murmur3x32(hash) => hash.write(data),
            Self::Murmur3x128(hash) => hash.write(data),
        }
    }

    /// The checksum in lower-case hexadecimal digits. Numbers are written from their lowest byte on, as ThingsBoard and its
    /// clients do.
    pub fn finish(self) -> String {
        match self {
            Self::Md5(hash) => hex(&hash.finalize()),
            Self::Sha256(hash) => hex(&hash.finalize()),
            Self::Sha384(hash) => hex(&hash.finalize()),
            Self::Sha512(hash) => hex(&hash.finalize()),
            Self::Crc32(hash) => hex(&hash.finalize().to_le_bytes()),
            Self::Murmur3x32(hash) => hex(&hash.finish32().to_le_bytes()),
            Self::Murmur3x128(hash) => {
                let (low, high) = hash.finish128();
                hex(&(u128::from(high) << 64 | u128::from(low)).to_le_bytes())
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_thingsboard_however_the_data_is_cut() {
        // Python's hashlib and zlib, and Guava's documentation of murmur3; numbers byte by byte from the lowest on.
        let text = b"The quick brown fox jumps over the lazy dog";
        let expected = [
            "9e107d9d372bb6826bd81d3542a419d6",
            "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
            "ca737f1014a48f4c0b6dd43cb177b0afd9e5169367544c494011e3317dbf9a509cb1e5dc1e85a941bbee3d7f2afbc9b1",
            "07e547d9586f6a73f73fbac0435ed76951218fb7d0c8d788a309d785436bbb642e93a252a954f23912547d1e8a3b5ed6\
             e1bfd7097821233fa0538f3db854fee6",
            "39a34f41",
            "23f74f2e",
            "6c1b07bc7bbc4be347939ac4a93c437a",
        ];
        for (algorithm, expected) in ChecksumAlgorithm::ALL.into_iter().zip(expected) {
            for size in [1, 7, 16, text.len()] {
                let mut checksum = ChecksumHasher::new(algorithm);
                text.chunks(size).for_each(|part| checksum.update(part));
                assert_eq!(checksum.finish(), expected, "{} by {size}", algorithm.name());
            }
        }
    }
}
