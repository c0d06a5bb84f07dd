//! Options: their numbers, and decoding.

use super::message::PAYLOAD_MARKER;

/// Most options of one message; no device sends more.
const MAX_OPTIONS: usize = 64;

/// Number of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoapOptionNumber(pub u16);

impl CoapOptionNumber {
    /// The host of the request.
    pub const URI_HOST: Self = Self(3);
    /// The version of the resource in a response.
    pub const ETAG: Self = Self(4);
    /// Begins, ends or numbers an observation (RFC 7641).
    pub const OBSERVE: Self = Self(6);
    /// The port of the request.
    pub const URI_PORT: Self = Self(7);
    /// A segment of the path.
    pub const URI_PATH: Self = Self(11);
    /// The format of the payload.
    pub const CONTENT_FORMAT: Self = Self(12);
    /// How long a response may be used, seconds.
    pub const MAX_AGE: Self = Self(14);
    /// An argument of the request.
    pub const URI_QUERY: Self = Self(15);
    /// The payload format that the client accepts.
    pub const ACCEPT: Self = Self(17);
    /// A block of the response (RFC 7959).
    pub const BLOCK2: Self = Self(23);
    /// A block of the request.
    pub const BLOCK1: Self = Self(27);
    /// Size of the whole response, bytes.
    pub const SIZE2: Self = Self(28);
    /// A resource on another server.
    pub const PROXY_URI: Self = Self(35);
    /// The scheme of another server's resource.
    pub const PROXY_SCHEME: Self = Self(39);
    /// Size of the whole request, bytes.
    pub const SIZE1: Self = Self(60);

    /// Returns whether a receiver that does not know the option must reject the message (RFC 7252 §5.4.1).
    pub const fn is_critical(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The options of a message.
#[derive(Debug, Clone, Copy)]
pub struct CoapOptions<'a> {
    rest: &'a [u8],
    number: u16,
}

impl<'a> CoapOptions<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest, number: 0 }
    }
}

impl<'a> Iterator for CoapOptions<'a> {
    type Item = (CoapOptionNumber, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (delta, value, rest) = read(self.rest).ok().flatten()?;
        self.number = self.number.checked_add(delta)?;
        self.rest = rest;
        Some((CoapOptionNumber(self.number), value))
    }
}

/// One option: the difference of its number to the previous one, its value, and the remaining bytes.
type RawCoapOption<'a> = (u16, &'a [u8], &'a [u8]);

/// Checks all options; returns their size in bytes.
pub(super) fn check(bytes: &[u8]) -> Result<usize, &'static str> {
    let (mut rest, mut number, mut count) = (bytes, 0_u16, 0);
    while let Some((delta, _, behind)) = read(rest)? {
        number = number.checked_add(delta).ok_or("an option number beyond 65535")?;
        count += 1;
        if count > MAX_OPTIONS {
            return Err("too many options");
        }
        rest = behind;
    }
    Ok(bytes.len() - rest.len())
}

fn read(bytes: &[u8]) -> Result<Option<RawCoapOption<'_>>, &'static str> {
    const CUT_OFF: &str = "an option is cut off";
    let Some((&first, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    if first == PAYLOAD_MARKER {
        return Ok(None);
    }
    let extended = |nibble: u8, rest: &'_ [u8]| -> Result<(u32, usize), &'static str> {
        match nibble {
            13 => {
                let byte = rest.first().ok_or(CUT_OFF)?;
                Ok((u32::from(*byte) + 13, 1))
            }
            14 => {
                let bytes = rest.first_chunk().ok_or(CUT_OFF)?;
                Ok((u32::from(u16::from_be_bytes(*bytes)) + 269, 2))
            }
            15 => Err("a reserved length in an option"),
            small => Ok((u32::from(small), 0)),
        }
    };
    let (delta, used) = extended(first >> 4, rest)?;
    let rest = rest.get(used..).ok_or(CUT_OFF)?;
    let (length, used) = extended(first & 0x0F, rest)?;
    let rest = rest.get(used..).ok_or(CUT_OFF)?;
    let (value, rest) = rest.split_at_checked(length as usize).ok_or(CUT_OFF)?;
    let delta = u16::try_from(delta).map_err(|_| "an option number beyond 65535")?;
    Ok(Some((delta, value, rest)))
}

/// Decodes the number in an option's value: without leading zeros, no bytes for zero. `None` for more than 32 bits.
pub fn read_uint(value: &[u8]) -> Option<u32> {
    if value.len() > 4 {
        return None;
    }
    Some(
        value
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}
