//! CONNACK (MQTT 5 §3.2).

use crate::error::{DecodeError, EncodeError};
use crate::packet::PacketType;
use crate::packet::connect::{put_section, section, section_len};
use crate::properties::{Allowed, Properties};
use crate::reason::ReasonCode;
use crate::version::Version;
use crate::wire::{Reader, put_header};

/// The server answers CONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connack<'a> {
    /// Whether the server goes on with a stored session; 3.1 cannot say so, and a refusal never does.
    pub session_present: bool,
    /// Whether the connection is accepted; translated to a return code before MQTT 5.
    pub code: ReasonCode,
    /// The properties of MQTT 5.
    pub properties: Properties<'a>,
}

impl<'a> Connack<'a> {
    /// Makes an answer without properties.
    pub const fn new(code: ReasonCode, session_present: bool) -> Self {
        Self {
            session_present,
            code,
            properties: Properties::EMPTY,
        }
    }

    pub(crate) fn decode(body: &'a [u8], version: Version) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        let flags = reader.u8()?;
        if flags > 1 && version != Version::V31 {
            return Err(DecodeError::malformed("reserved bits of CONNACK are set"));
        }
        let code = reader.u8()?;
        let code = if version.is_v5() {
            ReasonCode::from_u8(code).filter(|code| code.is_valid_in(PacketType::Connack))
        } else {
            ReasonCode::from_connect_return_code(code)
        };
        let code = code.ok_or(DecodeError::malformed("unknown code in CONNACK"))?;
        let session_present = flags == 1 && version != Version::V31;
        if session_present && code != ReasonCode::Success {
            return Err(DecodeError::protocol("CONNACK refuses but has a session"));
        }
        let properties = section(&mut reader, version, Allowed::CONNACK)?;
        reader.end()?;
        Ok(Self {
            session_present,
            code,
            properties,
        })
    }

    /// Appends the packet to `out`.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.properties.check(Allowed::CONNACK)?;
        if !self.code.is_valid_in(PacketType::Connack) && version.is_v5() {
            return Err(EncodeError::invalid("reason code does not belong to CONNACK"));
        }
        put_header(
            PacketType::Connack.first_byte(0),
            2 + section_len(&self.properties, version),
            out,
        )?;
        let present = self.session_present && self.code == ReasonCode::Success && version != Version::V31;
        out.push(u8::from(present));
        out.push(if version.is_v5() {
            self.code.value()
        } else {
            self.code.to_connect_return_code()
        });
        put_section(&self.properties, version, out);
        Ok(())
    }
}
