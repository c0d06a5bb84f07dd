//! DISCONNECT and AUTH (MQTT 5 §3.14, §3.15), which share one format.

use crate::error::{MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::properties::{AllowedProperties, MqttProperties};
use crate::reason::ReasonCode;
use crate::version::MqttProtocolVersion;
use crate::wire::{PacketReader, put_header};

/// The end of the connection, sent by either side; before MQTT 5 only by the client, without a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DisconnectPacket<'a> {
    /// The reason for the end.
    pub code: ReasonCode,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
}

impl<'a> DisconnectPacket<'a> {
    /// Makes a packet without properties.
    pub const fn new(code: ReasonCode) -> Self {
        Self {
            code,
            properties: MqttProperties::EMPTY,
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        if !version.is_v5() && !body.is_empty() {
            return Err(MqttDecodeError::malformed("DISCONNECT with a body before MQTT 5"));
        }
        let (code, properties) = decode_reason(body, PacketType::Disconnect, AllowedProperties::DISCONNECT)?;
        Ok(Self { code, properties })
    }

    /// Appends the packet to `out`; before MQTT 5 without code and properties.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        if !version.is_v5() {
            out.extend_from_slice(&[PacketType::Disconnect.first_byte(0), 0]);
            return Ok(());
        }
        self.properties.check(AllowedProperties::DISCONNECT)?;
        encode_reason(self.code, &self.properties, PacketType::Disconnect, out)
    }
}

/// A step of enhanced authentication, sent by either side; only in MQTT 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AuthPacket<'a> {
    /// Success, continue authentication or re-authenticate.
    pub code: ReasonCode,
    /// The properties, including the method unless the whole body is omitted.
    pub properties: MqttProperties<'a>,
}

impl<'a> AuthPacket<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, MqttDecodeError> {
        let (code, properties) = decode_reason(body, PacketType::Auth, AllowedProperties::AUTH)?;
        let auth = Self { code, properties };
        if auth.lacks_method() {
            Err(MqttDecodeError::protocol("AUTH without a method"))
        } else {
            Ok(auth)
        }
    }

    /// §3.15.2.2.2 requires the method, and §3.15.2.1 allows success to omit everything.
    fn lacks_method(&self) -> bool {
        let left_out = self.code == ReasonCode::Success && self.properties.is_empty();
        !left_out && !self.properties.has_authentication_method()
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        if !version.is_v5() {
            return Err(MqttEncodeError::version("AUTH before MQTT 5"));
        }
        if self.lacks_method() {
            return Err(MqttEncodeError::invalid("AUTH without a method"));
        }
        self.properties.check(AllowedProperties::AUTH)?;
        encode_reason(self.code, &self.properties, PacketType::Auth, out)
    }
}

/// Decodes a reason code and properties, of which the properties or both may be omitted.
fn decode_reason(
    body: &[u8],
    packet_type: PacketType,
    allowed: AllowedProperties,
) -> Result<(ReasonCode, MqttProperties<'_>), MqttDecodeError> {
    let mut reader = PacketReader::new(body);
    if reader.is_empty() {
        return Ok((ReasonCode::Success, MqttProperties::EMPTY));
    }
    let code = ReasonCode::from_u8(reader.u8()?)
        .filter(|code| code.is_valid_in(packet_type))
        .ok_or(MqttDecodeError::malformed(
            "reason code does not belong to this packet",
        ))?;
    if reader.is_empty() {
        return Ok((code, MqttProperties::EMPTY));
    }
    let properties = MqttProperties::decode(&mut reader, allowed)?;
    reader.end()?;
    Ok((code, properties))
}

fn encode_reason(
    code: ReasonCode,
    properties: &MqttProperties<'_>,
    packet_type: PacketType,
    out: &mut Vec<u8>,
) -> Result<(), MqttEncodeError> {
    if !code.is_valid_in(packet_type) {
        return Err(MqttEncodeError::invalid(
            "reason code does not belong to this packet",
        ));
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
