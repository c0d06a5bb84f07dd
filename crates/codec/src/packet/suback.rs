//! SUBACK and UNSUBACK (MQTT 5 §3.9, §3.11).

use std::fmt;

use crate::error::{MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::packet::connect::{decode_properties, properties_len, put_properties};
use crate::properties::{AllowedProperties, MqttProperties};
use crate::reason::ReasonCode;
use crate::version::{MqttProtocolVersion, PacketId};
use crate::wire::{PacketReader, put_header, put_u16};

/// The codes of SUBACK or UNSUBACK, one per filter, in order.
#[derive(Clone, Copy)]
pub struct ReasonCodes<'a>(ReasonCodesRepr<'a>);

#[derive(Clone, Copy)]
enum ReasonCodesRepr<'a> {
    /// Validated bytes.
    Raw(&'a [u8]),
    Typed(&'a [ReasonCode]),
}

impl<'a> ReasonCodes<'a> {
    /// No codes, as in every UNSUBACK before MQTT 5.
    pub const EMPTY: Self = Self(ReasonCodesRepr::Raw(&[]));

    /// Returns how many codes there are.
    pub const fn len(&self) -> usize {
        match self.0 {
            ReasonCodesRepr::Raw(bytes) => bytes.len(),
            ReasonCodesRepr::Typed(codes) => codes.len(),
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the codes.
    pub fn iter(&self) -> impl Iterator<Item = ReasonCode> + use<'a> {
        let (bytes, codes): (&[u8], &[ReasonCode]) = match self.0 {
            ReasonCodesRepr::Raw(bytes) => (bytes, &[]),
            ReasonCodesRepr::Typed(codes) => (&[], codes),
        };
        bytes
            .iter()
            .filter_map(|&byte| ReasonCode::from_u8(byte))
            .chain(codes.iter().copied())
    }

    fn decode(
        bytes: &'a [u8],
        packet_type: PacketType,
        version: MqttProtocolVersion,
    ) -> Result<Self, MqttDecodeError> {
        let valid = bytes.iter().all(|&byte| {
            ReasonCode::from_u8(byte).is_some_and(|code| code.is_valid_in(packet_type))
                && (version.is_v5() || byte <= ReasonCode::UnspecifiedError.value())
        });
        if valid {
            Ok(Self(ReasonCodesRepr::Raw(bytes)))
        } else {
            Err(MqttDecodeError::malformed(
                "reason code does not belong to this packet",
            ))
        }
    }

    fn check(&self, packet_type: PacketType) -> Result<(), MqttEncodeError> {
        if self.iter().all(|code| code.is_valid_in(packet_type)) {
            Ok(())
        } else {
            Err(MqttEncodeError::invalid(
                "reason code does not belong to this packet",
            ))
        }
    }
}

impl<'a> From<&'a [ReasonCode]> for ReasonCodes<'a> {
    fn from(codes: &'a [ReasonCode]) -> Self {
        Self(ReasonCodesRepr::Typed(codes))
    }
}

impl<'a, const N: usize> From<&'a [ReasonCode; N]> for ReasonCodes<'a> {
    fn from(codes: &'a [ReasonCode; N]) -> Self {
        Self(ReasonCodesRepr::Typed(codes))
    }
}

impl PartialEq for ReasonCodes<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ReasonCodes<'_> {}

impl fmt::Debug for ReasonCodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The server's answer to SUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubackPacket<'a> {
    /// The identifier of the SUBSCRIBE.
    pub packet_id: PacketId,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
    /// One code per filter; before MQTT 5 all refusals are written as 0x80.
    pub codes: ReasonCodes<'a>,
}

impl<'a> SubackPacket<'a> {
    /// Makes an answer without properties.
    pub fn new(packet_id: PacketId, codes: impl Into<ReasonCodes<'a>>) -> Self {
        Self {
            packet_id,
            properties: MqttProperties::EMPTY,
            codes: codes.into(),
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        let packet_id = reader.packet_id()?;
        let properties = decode_properties(&mut reader, version, AllowedProperties::ACK)?;
        let codes = ReasonCodes::decode(reader.rest(), PacketType::Suback, version)?;
        if codes.is_empty() {
            return Err(MqttDecodeError::protocol("SUBACK without a code"));
        }
        Ok(Self {
            packet_id,
            properties,
            codes,
        })
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        self.properties.check(AllowedProperties::ACK)?;
        self.codes.check(PacketType::Suback)?;
        if self.codes.is_empty() {
            return Err(MqttEncodeError::invalid("SUBACK without a code"));
        }
        let body_len = 2 + properties_len(&self.properties, version) + self.codes.len();
        put_header(PacketType::Suback.first_byte(0), body_len, out)?;
        put_u16(self.packet_id.get(), out);
        put_properties(&self.properties, version, out);
        let highest = if version.is_v5() {
            u8::MAX
        } else {
            ReasonCode::UnspecifiedError.value()
        };
        out.extend(self.codes.iter().map(|code| code.value().min(highest)));
        Ok(())
    }
}

/// The server's answer to UNSUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsubackPacket<'a> {
    /// The identifier of the UNSUBSCRIBE.
    pub packet_id: PacketId,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
    /// One code per filter; omitted before MQTT 5.
    pub codes: ReasonCodes<'a>,
}

impl<'a> UnsubackPacket<'a> {
    /// Makes an answer without properties.
    pub fn new(packet_id: PacketId, codes: impl Into<ReasonCodes<'a>>) -> Self {
        Self {
            packet_id,
            properties: MqttProperties::EMPTY,
            codes: codes.into(),
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        let packet_id = reader.packet_id()?;
        if !version.is_v5() {
            reader.end()?;
            return Ok(Self {
                packet_id,
                properties: MqttProperties::EMPTY,
                codes: ReasonCodes::EMPTY,
            });
        }
        let properties = MqttProperties::decode(&mut reader, AllowedProperties::ACK)?;
        let codes = ReasonCodes::decode(reader.rest(), PacketType::Unsuback, version)?;
        if codes.is_empty() {
            return Err(MqttDecodeError::protocol("UNSUBACK without a code"));
        }
        Ok(Self {
            packet_id,
            properties,
            codes,
        })
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        let first = PacketType::Unsuback.first_byte(0);
        if !version.is_v5() {
            put_header(first, 2, out)?;
            put_u16(self.packet_id.get(), out);
            return Ok(());
        }
        self.properties.check(AllowedProperties::ACK)?;
        self.codes.check(PacketType::Unsuback)?;
        if self.codes.is_empty() {
            return Err(MqttEncodeError::invalid("UNSUBACK without a code"));
        }
        put_header(first, 2 + self.properties.encoded_len() + self.codes.len(), out)?;
        put_u16(self.packet_id.get(), out);
        self.properties.encode(out);
        out.extend(self.codes.iter().map(ReasonCode::value));
        Ok(())
    }
}
