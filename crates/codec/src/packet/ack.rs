//! PUBACK, PUBREC, PUBREL and PUBCOMP (MQTT 5 §3.4 to §3.7), which share one format.

use crate::error::{MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::properties::{AllowedProperties, MqttProperties};
use crate::reason::ReasonCode;
use crate::version::{MqttProtocolVersion, PacketId};
use crate::wire::{PacketReader, put_header, put_u16};

/// The body of PUBACK, PUBREC, PUBREL or PUBCOMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckPacket<'a> {
    /// The identifier of the acknowledged PUBLISH.
    pub packet_id: PacketId,
    /// The outcome; always success before MQTT 5.
    pub code: ReasonCode,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
}

impl<'a> AckPacket<'a> {
    /// Makes an acknowledgement without properties.
    pub const fn new(packet_id: PacketId, code: ReasonCode) -> Self {
        Self {
            packet_id,
            code,
            properties: MqttProperties::EMPTY,
        }
    }

    #[inline]
    pub(crate) fn decode(
        packet_type: PacketType,
        body: &'a [u8],
        version: MqttProtocolVersion,
    ) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        let packet_id = reader.packet_id()?;
        if reader.is_empty() {
            return Ok(Self::new(packet_id, ReasonCode::Success));
        }
        if !version.is_v5() {
            return Err(MqttDecodeError::malformed("bytes left over after the packet"));
        }
        let code = ReasonCode::from_u8(reader.u8()?)
            .filter(|code| code.is_valid_in(packet_type))
            .ok_or(MqttDecodeError::malformed(
                "reason code does not belong to this packet",
            ))?;
        let properties = if reader.is_empty() {
            MqttProperties::EMPTY
        } else {
            MqttProperties::decode(&mut reader, AllowedProperties::ACK)?
        };
        reader.end()?;
        Ok(Self {
            packet_id,
            code,
            properties,
        })
    }

    /// Appends the packet, whose type must be one of the four; before MQTT 5 without code and properties.
    #[inline]
    pub fn encode(
        &self,
        packet_type: PacketType,
        version: MqttProtocolVersion,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        let flags = match packet_type {
            PacketType::Puback | PacketType::Pubrec | PacketType::Pubcomp => 0,
            PacketType::Pubrel => 0x02,
            _ => {
                return Err(MqttEncodeError::invalid(
                    "packet is no acknowledgement of PUBLISH",
                ));
            }
        };
        let first = packet_type.first_byte(flags);
        let [high, low] = self.packet_id.get().to_be_bytes();
        if !version.is_v5() || (self.code == ReasonCode::Success && self.properties.is_empty()) {
            out.extend_from_slice(&[first, 2, high, low]);
            return Ok(());
        }
        if !self.code.is_valid_in(packet_type) {
            return Err(MqttEncodeError::invalid(
                "reason code does not belong to this packet",
            ));
        }
        self.properties.check(AllowedProperties::ACK)?;
        if self.properties.is_empty() {
            out.extend_from_slice(&[first, 3, high, low, self.code.value()]);
            return Ok(());
        }
        put_header(first, 3 + self.properties.encoded_len(), out)?;
        put_u16(self.packet_id.get(), out);
        out.push(self.code.value());
        self.properties.encode(out);
        Ok(())
    }
}

/// Appends a PUBACK with success, the same four bytes in all versions.
#[inline]
pub fn encode_puback(packet_id: PacketId, out: &mut Vec<u8>) {
    let [high, low] = packet_id.get().to_be_bytes();
    out.extend_from_slice(&[PacketType::Puback.first_byte(0), 2, high, low]);
}
