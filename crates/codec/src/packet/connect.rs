//! CONNECT (MQTT 5 §3.1).

use crate::error::{DecodeErrorKind, MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::properties::{AllowedProperties, MqttProperties};
use crate::topic;
use crate::version::{ConnectProtocol, MqttProtocolVersion, ProtocolName, QoS};
use crate::wire::{PacketReader, check_len, check_string, put_binary, put_header, put_u16};

const USERNAME: u8 = 0x80;
const PASSWORD: u8 = 0x40;
const WILL_RETAIN: u8 = 0x20;
const WILL_QOS: u8 = 0x18;
const WILL: u8 = 0x04;
const CLEAN_START: u8 = 0x02;
const RESERVED: u8 = 0x01;

/// The message the server publishes when the connection ends without DISCONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastWill<'a> {
    /// The topic to publish to.
    pub topic: &'a str,
    /// The message.
    pub payload: &'a [u8],
    /// The quality of service to publish with.
    pub qos: QoS,
    /// Whether to publish as a retained message.
    pub retain: bool,
    /// The will properties of MQTT 5.
    pub properties: MqttProperties<'a>,
}

/// A client's request for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectPacket<'a> {
    /// The protocol as named by the client; the server decides about undefined levels.
    pub protocol: ConnectProtocol,
    /// Clean session, called clean start in MQTT 5.
    pub clean_start: bool,
    /// The keep-alive in seconds; 0 turns it off.
    pub keep_alive: u16,
    /// The client identifier, which may be empty.
    pub client_id: &'a str,
    /// The will, if there is one.
    pub will: Option<LastWill<'a>>,
    /// The user name.
    pub username: Option<&'a str>,
    /// The password.
    pub password: Option<&'a [u8]>,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
}

impl<'a> ConnectPacket<'a> {
    /// Makes a CONNECT with a clean start, a keep-alive of 60 s and nothing optional.
    pub const fn new(version: MqttProtocolVersion, client_id: &'a str) -> Self {
        Self {
            protocol: ConnectProtocol::of(version),
            clean_start: true,
            keep_alive: 60,
            client_id,
            will: None,
            username: None,
            password: None,
            properties: MqttProperties::EMPTY,
        }
    }

    /// Returns the version this connection speaks.
    pub const fn version(&self) -> MqttProtocolVersion {
        self.protocol.version()
    }

    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        let Some(name) = ProtocolName::from_bytes(reader.binary()?) else {
            return Err(UNSUPPORTED);
        };
        let protocol = ConnectProtocol {
            name,
            level: reader.u8()?,
        };
        Self::decode_fields(protocol, reader).map_err(|error| match protocol.level & 0x7F {
            3..=5 => error,
            // The fields of an undefined protocol need not be those of 3.1.1.
            _ => UNSUPPORTED,
        })
    }

    fn decode_fields(
        protocol: ConnectProtocol,
        mut reader: PacketReader<'a>,
    ) -> Result<Self, MqttDecodeError> {
        let version = protocol.version();
        let flags = checked_flags(reader.u8()?, version)?;
        let keep_alive = reader.u16()?;
        let properties = decode_properties(&mut reader, version, AllowedProperties::CONNECT)?;
        if properties.has_stray_authentication_data() {
            return Err(MqttDecodeError::protocol("authentication data without a method"));
        }
        let client_id = reader.string()?;
        let will = if flags & WILL == 0 {
            None
        } else {
            Some(decode_will(&mut reader, flags, version)?)
        };
        // 3.1 §3.1: the remaining length takes precedence over the flags of user name and password.
        let present = |flag: u8, rest: &PacketReader<'_>| {
            flags & flag != 0 && !(version == MqttProtocolVersion::V31 && rest.is_empty())
        };
        let username = if present(USERNAME, &reader) {
            Some(reader.string()?)
        } else {
            None
        };
        let password = if present(PASSWORD, &reader) {
            Some(reader.binary()?)
        } else {
            None
        };
        reader.end()?;
        Ok(Self {
            protocol,
            clean_start: flags & CLEAN_START != 0,
            keep_alive,
            client_id,
            will,
            username,
            password,
            properties,
        })
    }

    /// Returns how many bytes [`Self::encode`] appends.
    pub fn encoded_len(&self) -> usize {
        super::publish::frame_len(self.body_len())
    }

    fn body_len(&self) -> usize {
        let version = self.version();
        let will = self.will.map_or(0, |will| {
            4 + will.topic.len() + will.payload.len() + properties_len(&will.properties, version)
        });
        let username = self.username.map_or(0, |name| 2 + name.len());
        let password = self.password.map_or(0, |password| 2 + password.len());
        let fixed = 2 + self.protocol.name.as_str().len() + 1 + 1 + 2;
        fixed
            + properties_len(&self.properties, version)
            + 2
            + self.client_id.len()
            + will
            + username
            + password
    }

    /// Appends the packet to `out`, in its own version.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        self.check()?;
        let version = self.version();
        put_header(PacketType::Connect.first_byte(0), self.body_len(), out)?;
        put_binary(self.protocol.name.as_str().as_bytes(), out);
        out.push(self.protocol.level);
        out.push(self.flags());
        put_u16(self.keep_alive, out);
        put_properties(&self.properties, version, out);
        put_binary(self.client_id.as_bytes(), out);
        if let Some(will) = &self.will {
            put_properties(&will.properties, version, out);
            put_binary(will.topic.as_bytes(), out);
            put_binary(will.payload, out);
        }
        if let Some(username) = self.username {
            put_binary(username.as_bytes(), out);
        }
        if let Some(password) = self.password {
            put_binary(password, out);
        }
        Ok(())
    }

    fn flags(&self) -> u8 {
        let mut flags = 0;
        if self.clean_start {
            flags |= CLEAN_START;
        }
        if let Some(will) = &self.will {
            flags |= WILL | (will.qos as u8) << 3;
            if will.retain {
                flags |= WILL_RETAIN;
            }
        }
        if self.username.is_some() {
            flags |= USERNAME;
        }
        if self.password.is_some() {
            flags |= PASSWORD;
        }
        flags
    }

    fn check(&self) -> Result<(), MqttEncodeError> {
        if self.password.is_some() && self.username.is_none() && !self.version().is_v5() {
            return Err(MqttEncodeError::version(
                "password without user name before MQTT 5",
            ));
        }
        if self.properties.has_stray_authentication_data() {
            return Err(MqttEncodeError::invalid("authentication data without a method"));
        }
        self.properties.check(AllowedProperties::CONNECT)?;
        check_string(self.client_id)?;
        if let Some(will) = &self.will {
            will.properties.check(AllowedProperties::WILL)?;
            if !topic::is_valid_name(will.topic) {
                return Err(MqttEncodeError::invalid(
                    "will topic is empty, too long or has a wildcard",
                ));
            }
            check_len(will.payload)?;
        }
        check_string(self.username.unwrap_or_default())?;
        check_len(self.password.unwrap_or_default())
    }
}

const UNSUPPORTED: MqttDecodeError = MqttDecodeError::new(
    DecodeErrorKind::UnsupportedVersion,
    "CONNECT of an unknown protocol",
);

/// Checks the consistency of the connect flags; 3.1 does not define the unused ones.
fn checked_flags(flags: u8, version: MqttProtocolVersion) -> Result<u8, MqttDecodeError> {
    let relaxed = version == MqttProtocolVersion::V31;
    if flags & RESERVED != 0 && !relaxed {
        return Err(MqttDecodeError::malformed("reserved connect flag is set"));
    }
    if flags & WILL == 0 && flags & (WILL_QOS | WILL_RETAIN) != 0 && !relaxed {
        return Err(MqttDecodeError::malformed("will flags without a will"));
    }
    if flags & PASSWORD != 0 && flags & USERNAME == 0 && !version.is_v5() {
        return Err(MqttDecodeError::malformed(
            "password without user name before MQTT 5",
        ));
    }
    Ok(flags)
}

fn decode_will<'a>(
    reader: &mut PacketReader<'a>,
    flags: u8,
    version: MqttProtocolVersion,
) -> Result<LastWill<'a>, MqttDecodeError> {
    let qos = QoS::from_u8((flags & WILL_QOS) >> 3).ok_or(MqttDecodeError::malformed("will with QoS 3"))?;
    let properties = decode_properties(reader, version, AllowedProperties::WILL)?;
    let topic = reader.string()?;
    if !topic::is_valid_name(topic) {
        return Err(MqttDecodeError::new(
            DecodeErrorKind::TopicName,
            "will topic is empty or has a wildcard",
        ));
    }
    Ok(LastWill {
        topic,
        payload: reader.binary()?,
        qos,
        retain: flags & WILL_RETAIN != 0,
        properties,
    })
}

/// Reads a property section, which only MQTT 5 has.
#[inline]
pub(crate) fn decode_properties<'a>(
    reader: &mut PacketReader<'a>,
    version: MqttProtocolVersion,
    allowed: AllowedProperties,
) -> Result<MqttProperties<'a>, MqttDecodeError> {
    if version.is_v5() {
        MqttProperties::decode(reader, allowed)
    } else {
        Ok(MqttProperties::EMPTY)
    }
}

#[inline]
pub(crate) const fn properties_len(properties: &MqttProperties<'_>, version: MqttProtocolVersion) -> usize {
    if version.is_v5() {
        properties.encoded_len()
    } else {
        0
    }
}

#[inline]
pub(crate) fn put_properties(
    properties: &MqttProperties<'_>,
    version: MqttProtocolVersion,
    out: &mut Vec<u8>,
) {
    if version.is_v5() {
        properties.encode(out);
    }
}
