//! From a datagram to a message.

use std::fmt;

use super::code::CoapCode;
use super::option::{self, CoapOptions};

/// Bytes before the token.
pub(super) const HEADER: usize = 4;
/// What stands between options and payload.
pub(super) const PAYLOAD_MARKER: u8 = 0xFF;
const VERSION: u8 = 1;
const MAX_TOKEN: usize = 8;

/// How a message is delivered (RFC 7252 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoapMessageType {
    /// Sent again until it is acknowledged or reset.
    Confirmable,
    /// Sent once.
    NonConfirmable,
    /// A confirmable message has arrived.
    Acknowledgement,
    /// A message has arrived and means nothing to the receiver.
    Reset,
}

impl CoapMessageType {
    const fn of(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }
}

/// What ties a response to its request: up to eight bytes that the client chooses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CoapToken {
    length: u8,
    bytes: [u8; MAX_TOKEN],
}

impl CoapToken {
    /// A token of these bytes; `None` for more than eight.
    pub fn new(token: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_TOKEN];
        bytes.get_mut(..token.len())?.copy_from_slice(token);
        Some(Self {
            length: token.len() as u8,
            bytes,
        })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl fmt::Debug for CoapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(")?;
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// The first four bytes of a message, which say how to answer even one that is broken further on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoapHeader {
    /// How it is delivered.
    pub kind: CoapMessageType,
    /// What it asks or says.
    pub code: CoapCode,
    /// Its number, for acknowledgements and against duplicates.
    pub id: u16,
}

/// Why a datagram is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CoapDecodeError {
    /// It is too short, or of another version: RFC 7252 §3 wants it ignored.
    #[error("no message of CoAP version 1")]
    NotCoap,
    /// It starts like a message and does not go on like one: a confirmable one is answered with a reset.
    #[error("{1}")]
    Malformed(CoapHeader, &'static str),
}

/// A message whose parts lie in the datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CoapMessage<'a> {
    /// How it is delivered.
    pub kind: CoapMessageType,
    /// What it asks or says.
    pub code: CoapCode,
    /// Its number.
    pub id: u16,
    /// Which request it belongs to.
    pub token: CoapToken,
    /// What it carries.
    pub payload: &'a [u8],
    options: &'a [u8],
}

impl<'a> CoapMessage<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It does not follow RFC 7252 §3.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, CoapDecodeError> {
        let ([first, code, id @ ..], rest) = datagram
            .split_first_chunk::<HEADER>()
            .ok_or(CoapDecodeError::NotCoap)?;
        if first >> 6 != VERSION {
            return Err(CoapDecodeError::NotCoap);
        }
        let header = CoapHeader {
            kind: CoapMessageType::of(first >> 4),
            code: CoapCode(*code),
            id: u16::from_be_bytes(*id),
        };
        let malformed = |what| CoapDecodeError::Malformed(header, what);
        let token_length = usize::from(first & 0x0F);
        if token_length > MAX_TOKEN {
            return Err(malformed("a token of more than eight bytes"));
        }
        if header.code == CoapCode::EMPTY && (token_length > 0 || !rest.is_empty()) {
            return Err(malformed("an empty message that is not empty"));
        }
        let (token, rest) = rest
            .split_at_checked(token_length)
            .ok_or_else(|| malformed("the token is cut off"))?;
        let length = option::check(rest).map_err(malformed)?;
        let (options, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        let payload = match rest.split_first() {
            Some((_, [])) => return Err(malformed("a payload marker without a payload")),
            Some((_, payload)) => payload,
            None => &[],
        };
        Ok(Self {
            kind: header.kind,
            code: header.code,
            id: header.id,
            token: CoapToken::new(token).unwrap_or_default(),
            payload,
            options,
        })
    }

    /// Its options, in ascending order of their numbers.
    pub const fn options(&self) -> CoapOptions<'a> {
        CoapOptions::new(self.options)
    }
}

impl fmt::Debug for CoapMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Options and payload hold access tokens and what devices measure.
        write!(
            f,
            "Message({:?} {} id {} {:?}, {} bytes)",
            self.kind,
            self.code,
            self.id,
            self.token,
            self.payload.len()
        )
    }
}
