//! CoAP (RFC 7252, 7641, 7959) without I/O: datagrams to messages and back, and the values of options.
//!
//! Decoding borrows from the datagram and allocates nothing. A decoded [`CoapMessage`] is valid: its options have been
//! checked once, so iterating over them cannot fail. The caller interprets the options; [`CoapOptionNumber`] tells
//! which ones it must understand.
//!
//! ```
//! use fieldline_codec::coap::{CoapCode, CoapEncoder, CoapMessageType, CoapMessage, CoapOptionNumber};
//!
//! let datagram = [0x41, 0x01, 0x12, 0x34, 0xAA, 0xB3, b'a', b'p', b'i', 0xFF, b'!'];
//! let message = CoapMessage::decode(&datagram).expect("a whole message");
//! assert_eq!((message.kind, message.code, message.id), (CoapMessageType::Confirmable, CoapCode::GET, 0x1234));
//! assert_eq!(message.options().next(), Some((CoapOptionNumber::URI_PATH, &b"api"[..])));
//!
//! let mut answer = CoapEncoder::new(CoapMessageType::Acknowledgement, CoapCode::CONTENT, message.id, message.token);
//! answer.option_uint(CoapOptionNumber::CONTENT_FORMAT, 50);
//! assert_eq!(answer.finish(b"{}"), [0x61, 0x45, 0x12, 0x34, 0xAA, 0xC1, 50, 0xFF, b'{', b'}']);
//! ```

mod block;
mod code;
mod encode;
mod message;
mod option;
#[cfg(test)]
mod tests;

pub use block::{CoapBlock, MAX_BLOCK_EXPONENT};
pub use code::CoapCode;
pub use encode::CoapEncoder;
pub use message::{CoapDecodeError, CoapHeader, CoapMessage, CoapMessageType, CoapToken};
pub use option::{CoapOptionNumber, CoapOptions, read_uint};
