//! The wire format of Protobuf: reads values from the front of a byte slice.
//!
//! <https://protobuf.dev/programming-guides/encoding/>

use fieldline_model::kv;

use crate::plan::FieldKind;

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const BYTES: u8 = 2;
const GROUP: u8 = 3;
const END_OF_GROUP: u8 = 4;
pub(crate) const FIXED32: u8 = 5;

/// Largest nesting depth of messages and groups.
pub(crate) const MAX_DEPTH: u32 = 100;

/// An error in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub(crate) &'static str);

pub(crate) const TOO_DEEP: WireError = WireError("it nests too deep");
pub(crate) const WRONG_TYPE: WireError = WireError("a field has another wire type than the schema says");
pub(crate) const WRONG_MAP: WireError = WireError("a map has another wire type than the schema says");
const CUT_SHORT: WireError = WireError("it is cut short");
const WRONG_TEXT: WireError = WireError("a text is not UTF-8");

/// A number of variable length.
#[inline]
pub(crate) fn varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    if let Some((&byte, rest)) = bytes.split_first()
        && byte < 0x80
    {
        *bytes = rest;
        return Ok(u64::from(byte));
    }
    kv::read_varint(bytes).map_err(|_| WireError("a number is cut short or too long"))
}

/// The number and the wire type of the next field.
#[inline]
pub(crate) fn key(bytes: &mut &[u8]) -> Result<(u32, u8), WireError> {
    let key = u32::try_from(varint(bytes)?).map_err(|_| WireError("a field has an impossible number"))?;
    let (number, wire) = (key >> 3, (key & 7) as u8);
    if number == 0 {
        return Err(WireError("a field has the number 0"));
    }
    if wire > FIXED32 {
        return Err(WireError("a field has an unknown wire type"));
    }
    Ok((number, wire))
}

/// Reads a length and the bytes it covers.
#[inline]
pub(crate) fn chunk<'p>(bytes: &mut &'p [u8]) -> Result<&'p [u8], WireError> {
    let length = usize::try_from(varint(bytes)?).map_err(|_| CUT_SHORT)?;
    kv::take(bytes, length).map_err(|_| CUT_SHORT)
}

/// Checks that bytes are UTF-8 text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes).map_err(|_| WRONG_TEXT)
}

/// Reads a number, of any kind except text, bytes and message: integers with their sign extended, other kinds as bits.
#[inline]
pub(crate) fn number(kind: FieldKind, bytes: &mut &[u8]) -> Result<u64, WireError> {
    let signed = |value: i32| i64::from(value) as u64;
    match kind.wire() {
        FIXED32 => {
            let bits = u32::from_le_bytes(kv::take_array(bytes).map_err(|_| CUT_SHORT)?);
            Ok(match kind {
                FieldKind::Sfixed32 => signed(bits as i32),
                _ => bits.into(),
            })
        }
        FIXED64 => Ok(u64::from_le_bytes(kv::take_array(bytes).map_err(|_| CUT_SHORT)?)),
        _ => {
            let value = varint(bytes)?;
            Ok(match kind {
                FieldKind::Bool => (value != 0).into(),
                // Values that are too long lose their upper bits.
                FieldKind::Int32 | FieldKind::Enum(_) => signed(value as i32),
                FieldKind::Uint32 => (value as u32).into(),
                FieldKind::Sint32 => {
                    let value = value as u32;
                    signed((value >> 1) as i32 ^ -((value & 1) as i32))
                }
                FieldKind::Sint64 => ((value >> 1) as i64 ^ -((value & 1) as i64)) as u64,
                _ => value,
            })
        }
    }
}

/// Skips a field that is not in the schema. `within_entry` is set in a map entry, where every field counts as one level
/// of depth, as groups do.
pub(crate) fn skip(
    (number, wire): (u32, u8),
    bytes: &mut &[u8],
    depth: u32,
    within_entry: bool,
) -> Result<(), WireError> {
    if within_entry && depth == 0 {
        return Err(TOO_DEEP);
    }
    match wire {
        VARINT => varint(bytes).map(drop),
        FIXED64 => kv::take(bytes, 8).map(drop).map_err(|_| CUT_SHORT),
        FIXED32 => kv::take(bytes, 4).map(drop).map_err(|_| CUT_SHORT),
        BYTES => chunk(bytes).map(drop),
        GROUP => {
            let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
            loop {
                let inner = key(bytes)?;
                if inner == (number, END_OF_GROUP) {
                    return Ok(());
                }
                skip(inner, bytes, depth, within_entry)?;
            }
        }
        _ => Err(WireError("a group ends that has not begun")),
    }
}
