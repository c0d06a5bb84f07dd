//! Encodes messages to datagrams.

use super::code::CoapCode;
use super::message::{CoapMessageType, CoapToken, HEADER, PAYLOAD_MARKER};
use super::option::CoapOptionNumber;

/// Encoder of one message.
#[derive(Debug)]
pub struct CoapEncoder {
    out: Vec<u8>,
    number: u16,
}

impl CoapEncoder {
    /// Begins a message.
    pub fn new(kind: CoapMessageType, code: CoapCode, id: u16, token: CoapToken) -> Self {
        let bits = match kind {
            CoapMessageType::Confirmable => 0,
            CoapMessageType::NonConfirmable => 1,
            CoapMessageType::Acknowledgement => 2,
            CoapMessageType::Reset => 3,
        };
        let token = token.as_bytes();
        let mut out = Vec::with_capacity(HEADER + token.len() + 16);
        out.extend_from_slice(&[1 << 6 | bits << 4 | token.len() as u8, code.0]);
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(token);
        Self { out, number: 0 }
    }

    /// Encodes an empty message: an acknowledgement, a reset or a ping.
    pub fn empty(kind: CoapMessageType, id: u16) -> Vec<u8> {
        Self::new(kind, CoapCode::EMPTY, id, CoapToken::default()).finish(&[])
    }

    /// Adds an option. Options must come in ascending order of their numbers, with values of at most 65,804 bytes; an
    /// option that violates this is omitted.
    pub fn option(&mut self, number: CoapOptionNumber, value: &[u8]) {
        let (Some(delta), Ok(length)) = (number.0.checked_sub(self.number), u32::try_from(value.len()))
        else {
            debug_assert!(false, "options in the wrong order");
            return;
        };
        if length > 269 + u32::from(u16::MAX) {
            return;
        }
        let (delta_nibble, delta_bytes, delta_used) = extended(delta.into());
        let (length_nibble, length_bytes, length_used) = extended(length);
        self.out.push(delta_nibble << 4 | length_nibble);
        let tail = |bytes: [u8; 2], used: usize| bytes.into_iter().skip(2 - used);
        self.out.extend(tail(delta_bytes, delta_used));
        self.out.extend(tail(length_bytes, length_used));
        self.out.extend_from_slice(value);
        self.number = number.0;
    }

    /// Adds an option with a numeric value.
    pub fn option_uint(&mut self, number: CoapOptionNumber, value: u32) {
        let bytes = value.to_be_bytes();
        let zeros = value.leading_zeros() as usize / 8;
        self.option(number, bytes.get(zeros..).unwrap_or_default());
    }

    /// Completes the message with its payload.
    pub fn finish(mut self, payload: &[u8]) -> Vec<u8> {
        if !payload.is_empty() {
            self.out.reserve_exact(payload.len() + 1);
            self.out.push(PAYLOAD_MARKER);
            self.out.extend_from_slice(payload);
        }
        self.out
    }
}

/// Returns the four bits that begin a number, and the extension bytes, of which only the last ones count, as many as
/// the third value says.
fn extended(number: u32) -> (u8, [u8; 2], usize) {
    match number {
        0..=12 => (number as u8, [0; 2], 0),
        13..=268 => (13, [0, (number - 13) as u8], 1),
        _ => (14, ((number - 269) as u16).to_be_bytes(), 2),
    }
}
