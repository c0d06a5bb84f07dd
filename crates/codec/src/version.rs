//! The words every packet uses: protocol versions, quality of service, packet identifiers.

use std::num::NonZeroU16;

/// A packet identifier; zero is not one (MQTT 5 §2.2.1).
pub type PacketId = NonZeroU16;

/// A protocol version this crate speaks.
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
    /// Whether packets of this version carry properties and reason codes.
    #[inline]
    pub const fn is_v5(self) -> bool {
        matches!(self, Self::V5)
    }
}

/// The protocol name a CONNECT opens with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolName {
    /// "MQTT", used since 3.1.1.
    Mqtt,
    /// "MQIsdp", the name of 3.1.
    MqIsdp,
}

impl ProtocolName {
    /// Returns the name as it stands on the wire.
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

/// Protocol name and level exactly as a CONNECT carries them.
///
/// Levels nobody has defined are kept, so that the server decides whether to refuse them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectProtocol {
    /// The protocol name.
    pub name: ProtocolName,
    /// The protocol level; bridges of some brokers set its highest bit.
    pub level: u8,
}

impl ConnectProtocol {
    /// Returns what a CONNECT of `version` carries.
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

    /// Returns the version the packets of this connection are read as: undefined levels as 3.1.1.
    pub const fn version(self) -> MqttProtocolVersion {
        match self.level & 0x7F {
            3 => MqttProtocolVersion::V31,
            5 => MqttProtocolVersion::V5,
            _ => MqttProtocolVersion::V311,
        }
    }

    /// Whether name and level are a pair that one of the specifications defines.
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
