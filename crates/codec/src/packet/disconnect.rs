//! DISCONNECT and AUTH (MQTT 5 §3.14, §3.15), which share their form.

use crate::error::{DecodeError, EncodeError};
use crate::packet::PacketType;
use crate::properties::{Allowed, Properties};
use crate::reason::ReasonCode;
use crate::version::Version;
use crate::wire::{Reader, put_header};

/// Either side ends the connection; before MQTT 5 only the client, without a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disconnect<'a> {
    /// Why the connection ends.
    pub code: ReasonCode,
    /// The properties of MQTT 5.
    pub properties: Properties<'a>,
}

impl<'a> Disconnect<'a> {
    /// Makes a packet without properties.
    pub const fn new(code: ReasonCode) -> Self {
        Self {
            code,
            properties: Properties::EMPTY,
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, DecodeError> {
        if !version.is_v5() && !body.is_empty() {
            return Err(DecodeError::malformed("DISCONNECT with a body before MQTT 5"));
        }
        let (code, properties) = decode_reason(body, PacketType::Disconnect, Allowed::DISCONNECT)?;
        Ok(Self { code, properties })
    }

    /// Appends the packet to `out`; before MQTT 5 without code and properties.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if !version.is_v5() {
            out.extend_from_slice(&[PacketType::Disconnect.first_byte(0), 0]);
            return Ok(());
        }
        self.properties.check(Allowed::DISCONNECT)?;
        encode_reason(self.code, &self.properties, PacketType::Disconnect, out)
    }
}

/// Either side goes on with enhanced authentication; only in MQTT 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Auth<'a> {
    /// Success, continue authentication or re-authenticate.
    pub code: ReasonCode,
    /// The properties, among them the method unless all of the packet is left out.
    pub properties: Properties<'a>,
}

impl<'a> Auth<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let (code, properties) = decode_reason(body, PacketType::Auth, Allowed::AUTH)?;
        let auth = Self { code, properties };
        if auth.lacks_method() {
            Err(DecodeError::protocol("AUTH without a method"))
        } else {
            Ok(auth)
        }
    }

    /// §3.15.2.2.2 requires the method, and §3.15.2.1 allows success to leave everything out.
    fn lacks_method(&self) -> bool {
        let left_out = self.code == ReasonCode::Success && self.properties.is_empty();
        !left_out && !self.properties.has_authentication_method()
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if !version.is_v5() {
            return Err(EncodeError::version("AUTH before MQTT 5"));
        }
        if self.lacks_method() {
            return Err(EncodeError::invalid("AUTH without a method"));
        }
        self.properties.check(Allowed::AUTH)?;
        encode_reason(self.code, &self.properties, PacketType::Auth, out)
    }
}

/// Reads a reason code and properties, either of which may be left out from the end.
fn decode_reason(
    body: &[u8],
    packet_type: PacketType,
    allowed: Allowed,
) -> Result<(ReasonCode, Properties<'_>), DecodeError> {
    let mut reader = Reader::new(body);
    if reader.is_empty() {
        return Ok((ReasonCode::Success, Properties::EMPTY));
    }
    let code = ReasonCode::from_u8(reader.u8()?)
        .filter(|code| code.is_valid_in(packet_type))
        .ok_or(DecodeError::malformed(
            "reason code does not belong to this packet",
        ))?;
    if reader.is_empty() {
        return Ok((code, Properties::EMPTY));
    }
    let properties = Properties::decode(&mut reader, allowed)?;
    reader.end()?;
    Ok((code, properties))
}

fn encode_reason(
    code: ReasonCode,
    properties: &Properties<'_>,
    packet_type: PacketType,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if !code.is_valid_in(packet_type) {
        return Err(EncodeError::invalid("reason code does not belong to this packet"));
    }
    let first = packet_type.first_byte(0);
    match (code, properties.is_empty()) {
        (ReasonCode::Success, true) => out.extend_from_slice(&[first, 0]),
        (code, true) => out.extend_from_slice(&[first, 1, code.value()]),
        (code, false) => {
            put_header(first, 1 + properties.encoded_len(), out)?;
            out.push(code.value());
            properties.encode(out);
        }
    }
    Ok(())
}
