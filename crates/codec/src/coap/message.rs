//! Decodes datagrams to messages.

use std::fmt;

use super::code::CoapCode;
use super::option::{self, CoapOptions};

/// Size of the header before the token.
pub(super) const HEADER: usize = 4;
/// Separates options and payload.
pub(super) const PAYLOAD_MARKER: u8 = 0xFF;
const VERSION: u8 = 1;
const MAX_TOKEN: usize = 8;

/// How a message is delivered (RFC 7252 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoapMessageType {
    /// Retransmitted until it is acknowledged or reset.
    Confirmable,
    /// Sent once.
    NonConfirmable,
    /// Acknowledges a confirmable message.
    Acknowledgement,
    /// Rejects a message that means nothing to the receiver.
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

/// Matches a response to its request: up to eight bytes chosen by the client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CoapToken {
    length: u8,
    bytes: [u8; MAX_TOKEN],
}

impl CoapToken {
    /// Creates a token of these bytes; `None` for more than eight.
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

/// The first four bytes of a message; they suffice to answer even one with a malformed remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoapHeader {
    /// How it is delivered.
    pub kind: CoapMessageType,
    /// The request method or response code.
    pub code: CoapCode,
    /// Its message id, for acknowledgements and detection of duplicates.
    pub id: u16,
}

/// The reason why a datagram is not a valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CoapDecodeError {
    /// It is too short, or of another version: RFC 7252 §3 requires it to be ignored.
    #[error("no message of CoAP version 1")]
    NotCoap,
    /// The header is valid, but the rest is not: a confirmable message is answered with a reset.
    #[error("{1}")]
    Malformed(CoapHeader, &'static str),
}

/// A message that borrows its parts from the datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CoapMessage<'a> {
    /// How it is delivered.
    pub kind: CoapMessageType,
    /// The request method or response code.
    pub code: CoapCode,
    /// Its message id.
    pub id: u16,
    /// The token that identifies the request.
    pub token: CoapToken,
    /// The payload.
    pub payload: &'a [u8],
    options: &'a [u8],
}

impl<'a> CoapMessage<'a> {
    /// Decodes a datagram.
    ///
    /// # Errors
    /// It violates RFC 7252 §3.
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

    /// Returns its options, in ascending order of their numbers.
    pub const fn options(&self) -> CoapOptions<'a> {
        CoapOptions::new(self.options)
    }
}

impl fmt::Debug for CoapMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Options and payload may contain access tokens and measurements.
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
