//! CONNACK (MQTT 5 §3.2).

use crate::error::{MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::packet::connect::{decode_properties, properties_len, put_properties};
use crate::properties::{AllowedProperties, MqttProperties};
use crate::reason::ReasonCode;
use crate::version::MqttProtocolVersion;
use crate::wire::{PacketReader, put_header};

/// The server's answer to CONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConnackPacket<'a> {
    /// Whether the server resumes a stored session; 3.1 cannot express it, and a refusal never sets it.
    pub session_present: bool,
    /// Whether the connection is accepted; translated to a return code before MQTT 5.
    pub code: ReasonCode,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
}

impl<'a> ConnackPacket<'a> {
    /// Makes an answer without properties.
    pub const fn new(code: ReasonCode, session_present: bool) -> Self {
        Self {
            session_present,
            code,
            properties: MqttProperties::EMPTY,
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: MqttProtocolVersion) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        let flags = reader.u8()?;
        if flags > 1 && version != MqttProtocolVersion::V31 {
            return Err(MqttDecodeError::malformed("reserved bits of CONNACK are set"));
        }
        let code = reader.u8()?;
        let code = if version.is_v5() {
            ReasonCode::from_u8(code).filter(|code| code.is_valid_in(PacketType::Connack))
        } else {
            ReasonCode::from_connect_return_code(code)
        };
        let code = code.ok_or(MqttDecodeError::malformed("unknown code in CONNACK"))?;
        let session_present = flags == 1 && version != MqttProtocolVersion::V31;
        if session_present && code != ReasonCode::Success {
            return Err(MqttDecodeError::protocol("CONNACK refuses but has a session"));
        }
        let properties = decode_properties(&mut reader, version, AllowedProperties::CONNACK)?;
        reader.end()?;
        Ok(Self {
            session_present,
            code,
            properties,
        })
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        self.properties.check(AllowedProperties::CONNACK)?;
        if !self.code.is_valid_in(PacketType::Connack) && version.is_v5() {
            return Err(MqttEncodeError::invalid("reason code does not belong to CONNACK"));
        }
        put_header(
            PacketType::Connack.first_byte(0),
            2 + properties_len(&self.properties, version),
            out,
        )?;
        let present =
            self.session_present && self.code == ReasonCode::Success && version != MqttProtocolVersion::V31;
        out.push(u8::from(present));
        out.push(if version.is_v5() {
            self.code.value()
        } else {
            self.code.to_connect_return_code()
        });
        put_properties(&self.properties, version, out);
        Ok(())
    }
}
