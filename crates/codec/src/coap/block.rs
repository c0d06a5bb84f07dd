//! The value of a Block option (RFC 7959 §2.2).

use super::option::read_uint;

/// Exponent of the largest blocks, of 1,024 bytes.
pub const MAX_BLOCK_EXPONENT: u8 = 6;
const MAX_NUMBER: u32 = (1 << 20) - 1;

/// A block of a body: its number and size, and whether more blocks follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoapBlock {
    number: u32,
    more: bool,
    exponent: u8,
}

impl CoapBlock {
    /// Creates a block of 2^(exponent + 4) bytes; `None` if the option cannot express it.
    pub const fn new(number: u32, more: bool, exponent: u8) -> Option<Self> {
        if number > MAX_NUMBER || exponent > MAX_BLOCK_EXPONENT {
            return None;
        }
        Some(Self {
            number,
            more,
            exponent,
        })
    }

    /// Decodes the value of an option; `None` if it is too long or uses the reserved size.
    pub fn decode(value: &[u8]) -> Option<Self> {
        if value.len() > 3 {
            return None;
        }
        let bits = read_uint(value)?;
        Self::new(bits >> 4, bits & 8 != 0, (bits & 7) as u8)
    }

    /// Encodes the value of the option.
    pub const fn encode(self) -> u32 {
        self.number << 4 | (self.more as u32) << 3 | self.exponent as u32
    }

    /// Its index among blocks of its size.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Whether more blocks follow.
    pub const fn more(self) -> bool {
        self.more
    }

    /// The exponent of its size.
    pub const fn exponent(self) -> u8 {
        self.exponent
    }

    /// Its size, bytes.
    pub const fn size(self) -> usize {
        1 << (self.exponent + 4)
    }

    /// Its position in the body, bytes.
    pub const fn offset(self) -> usize {
        self.number as usize * self.size()
    }
}
