//! Basic types of all packets: protocol versions, quality of service, packet identifiers.

use std::num::NonZeroU16;

/// A packet identifier; never zero (MQTT 5 §2.2.1).
pub type PacketId = NonZeroU16;

/// A protocol version supported by this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MqttProtocolVersion {
    /// MQTT 3.1, protocol level 3, "MQIsdp".
    V31,
    /// MQTT 3.1.1, protocol level 4.
    V311,
    /// MQTT 5.0, protocol level 5.
    V5,
}

impl MqttProtocolVersion {
    /// Returns whether packets of this version carry properties and reason codes.
    #[inline]
    pub const fn is_v5(self) -> bool {
        matches!(self, Self::V5)
    }
}

/// The protocol name at the start of a CONNECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolName {
    /// "MQTT", used since 3.1.1.
    Mqtt,
    /// "MQIsdp", the name of 3.1.
    MqIsdp,
}

impl ProtocolName {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mqtt => "MQTT",
            Self::MqIsdp => "MQIsdp",
        }
    }

    pub(crate) fn from_bytes(name: &[u8]) -> Option<Self> {
        match name {
            b"MQTT" => Some(Self::Mqtt),
            b"MQIsdp" => Some(Self::MqIsdp),
            _ => None,
        }
    }
}

/// Protocol name and level exactly as in a CONNECT.
///
/// Undefined levels are kept, so that the server decides whether to refuse them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectProtocol {
    /// The protocol name.
    pub name: ProtocolName,
    /// The protocol level; bridges of some brokers set its highest bit.
    pub level: u8,
}

impl ConnectProtocol {
    /// Returns the protocol name and level in a CONNECT of `version`.
    pub const fn of(version: MqttProtocolVersion) -> Self {
        match version {
            MqttProtocolVersion::V31 => Self {
                name: ProtocolName::MqIsdp,
                level: 3,
            },
            MqttProtocolVersion::V311 => Self {
                name: ProtocolName::Mqtt,
                level: 4,
            },
            MqttProtocolVersion::V5 => Self {
                name: ProtocolName::Mqtt,
                level: 5,
            },
        }
    }

    /// Returns the version in which packets of this connection are decoded: 3.1.1 for undefined levels.
    pub const fn version(self) -> MqttProtocolVersion {
        match self.level & 0x7F {
            3 => MqttProtocolVersion::V31,
            5 => MqttProtocolVersion::V5,
            _ => MqttProtocolVersion::V311,
        }
    }

    /// Returns whether one of the specifications defines this pair of name and level.
    pub fn is_defined(self) -> bool {
        self == Self::of(self.version())
    }
}

impl From<MqttProtocolVersion> for ConnectProtocol {
    fn from(version: MqttProtocolVersion) -> Self {
        Self::of(version)
    }
}

/// Quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum QoS {
    /// At most once.
    #[default]
    AtMostOnce = 0,
    /// At least once.
    AtLeastOnce = 1,
    /// Exactly once.
    ExactlyOnce = 2,
}

impl QoS {
    /// Returns the level with this number, if there is one.
    #[inline]
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }
}
