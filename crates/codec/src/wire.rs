//! Reading and writing the data types of MQTT 5 §1.5.

use crate::error::{MqttDecodeError, MqttEncodeError};
use crate::version::PacketId;

/// The largest packet that the format can express: a fixed header of five bytes and the largest remaining length.
pub const MAX_PACKET_SIZE: u32 = MAX_VARINT + 5;

/// The largest value of a variable byte integer.
pub(crate) const MAX_VARINT: u32 = 268_435_455;

/// A cursor over a packet body; every read checks the remaining length.
#[derive(Clone, Copy)]
pub(crate) struct PacketReader<'a> {
    rest: &'a [u8],
}

impl<'a> PacketReader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, MqttDecodeError> {
        let (first, rest) = self.rest.split_first().ok_or(ENDED)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, MqttDecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ENDED)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, MqttDecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ENDED)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], MqttDecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(ENDED)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads binary data: two bytes of length, then the bytes.
    #[inline]
    pub(crate) fn binary(&mut self) -> Result<&'a [u8], MqttDecodeError> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }

    /// Reads a UTF-8 string, which must not contain U+0000 (MQTT 5 §1.5.4).
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a str, MqttDecodeError> {
        let bytes = self.binary()?;
        if bytes.contains(&0) {
            return Err(MqttDecodeError::malformed("string holds U+0000"));
        }
        utf8(bytes)
    }

    /// Reads a variable byte integer, which must use the fewest bytes (MQTT 5 §1.5.5).
    pub(crate) fn varint(&mut self) -> Result<u32, MqttDecodeError> {
        match varint(self.rest)? {
            Some((_, used)) if used > 1 && self.rest.get(used - 1) == Some(&0) => Err(OVERLONG),
            Some((value, used)) => {
                self.take(used)?;
                Ok(value)
            }
            None => Err(ENDED),
        }
    }

    #[inline]
    pub(crate) fn packet_id(&mut self) -> Result<PacketId, MqttDecodeError> {
        PacketId::new(self.u16()?).ok_or(MqttDecodeError::malformed("packet identifier is zero"))
    }

    /// Checks the end of a body: remaining bytes make it malformed.
    #[inline]
    pub(crate) const fn end(&self) -> Result<(), MqttDecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(MqttDecodeError::malformed("bytes left over after the packet"))
        }
    }
}

const ENDED: MqttDecodeError = MqttDecodeError::malformed("packet ends inside a field");
pub(crate) const OVERLONG: MqttDecodeError =
    MqttDecodeError::malformed("variable byte integer is longer than needed");

#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, MqttDecodeError> {
    std::str::from_utf8(bytes).map_err(|_| MqttDecodeError::malformed("string is not UTF-8"))
}

/// Reads a variable byte integer and returns it with its length; `None` if it continues past the end of the input.
#[inline]
pub(crate) fn varint(bytes: &[u8]) -> Result<Option<(u32, usize)>, MqttDecodeError> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 1)));
        }
    }
    if bytes.len() >= 4 {
        Err(MqttDecodeError::malformed("length takes more than four bytes"))
    } else {
        Ok(None)
    }
}

#[inline]
pub(crate) const fn varint_len(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

/// Writes a variable byte integer; the caller has checked that it fits.
#[inline]
pub(crate) fn put_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7F) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the fixed header and reserves room for the body.
#[inline]
pub(crate) fn put_header(first: u8, body_len: usize, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
    if body_len > MAX_VARINT as usize {
        return Err(MqttEncodeError::too_long(
            "packet is longer than MQTT can express",
        ));
    }
    out.reserve(body_len + 5);
    out.push(first);
    put_varint(body_len, out);
    Ok(())
}

#[inline]
pub(crate) fn put_u16(value: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Writes binary data or a string that has passed [`check_len`].
#[inline]
pub(crate) fn put_binary(bytes: &[u8], out: &mut Vec<u8>) {
    put_u16(bytes.len() as u16, out);
    out.extend_from_slice(bytes);
}

#[inline]
pub(crate) const fn check_len(bytes: &[u8]) -> Result<(), MqttEncodeError> {
    if bytes.len() > u16::MAX as usize {
        Err(MqttEncodeError::too_long("field exceeds 65,535 bytes"))
    } else {
        Ok(())
    }
}

#[inline]
pub(crate) fn check_string(text: &str) -> Result<(), MqttEncodeError> {
    if text.as_bytes().contains(&0) {
        return Err(MqttEncodeError::invalid("string holds U+0000"));
    }
    check_len(text.as_bytes())
}
