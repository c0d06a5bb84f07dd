//! The packets of all versions, decoded from and encoded to their bytes.
//!
//! One type serves all versions: fields that a version lacks are empty when decoded and omitted when encoded. Every
//! packet type can encode itself; [`Packet`] is for callers that don't know the type in advance.

mod ack;
mod connack;
mod connect;
mod disconnect;
mod publish;
mod suback;
mod subscribe;
mod template;
mod unsubscribe;

pub use ack::{AckPacket, encode_puback};
pub use connack::ConnackPacket;
pub use connect::{ConnectPacket, LastWill};
pub use disconnect::{AuthPacket, DisconnectPacket};
pub use publish::PublishPacket;
pub(crate) use publish::{PublishParts, PublishTarget};
pub use suback::{ReasonCodes, SubackPacket, UnsubackPacket};
pub use subscribe::{
    RetainHandling, SubscribeEntry, SubscribeFilters, SubscribePacket, SubscriptionBuf, SubscriptionOptions,
};
pub use template::PublishTemplate;
pub use unsubscribe::{TopicFilterBuf, UnsubscribeFilters, UnsubscribePacket};

use crate::error::{MqttDecodeError, MqttEncodeError};
use crate::version::MqttProtocolVersion;

/// The packet types by their number in the fixed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    /// Client asks for a connection.
    Connect = 1,
    /// Server answers CONNECT.
    Connack = 2,
    /// A message.
    Publish = 3,
    /// Answers PUBLISH of QoS 1.
    Puback = 4,
    /// Answers PUBLISH of QoS 2.
    Pubrec = 5,
    /// Answers PUBREC.
    Pubrel = 6,
    /// Answers PUBREL.
    Pubcomp = 7,
    /// Client subscribes.
    Subscribe = 8,
    /// Server answers SUBSCRIBE.
    Suback = 9,
    /// Client unsubscribes.
    Unsubscribe = 10,
    /// Server answers UNSUBSCRIBE.
    Unsuback = 11,
    /// Client shows that it is alive.
    Pingreq = 12,
    /// Server answers PINGREQ.
    Pingresp = 13,
    /// Either side ends the connection.
    Disconnect = 14,
    /// Either side continues enhanced authentication.
    Auth = 15,
}

impl PacketType {
    /// Returns the type with this number, if there is one.
    #[inline]
    pub const fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Connect,
            2 => Self::Connack,
            3 => Self::Publish,
            4 => Self::Puback,
            5 => Self::Pubrec,
            6 => Self::Pubrel,
            7 => Self::Pubcomp,
            8 => Self::Subscribe,
            9 => Self::Suback,
            10 => Self::Unsubscribe,
            11 => Self::Unsuback,
            12 => Self::Pingreq,
            13 => Self::Pingresp,
            14 => Self::Disconnect,
            15 => Self::Auth,
            _ => return None,
        })
    }

    /// Returns the first byte of the fixed header, with these flags.
    #[inline]
    pub(crate) const fn first_byte(self, flags: u8) -> u8 {
        (self as u8) << 4 | flags
    }
}

/// A packet that borrows from the bytes it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack and is never collected"
)]
pub enum Packet<'a> {
    /// Client asks for a connection.
    Connect(ConnectPacket<'a>),
    /// Server answers CONNECT.
    Connack(ConnackPacket<'a>),
    /// A message.
    Publish(PublishPacket<'a>),
    /// Answers PUBLISH of QoS 1.
    Puback(AckPacket<'a>),
    /// Answers PUBLISH of QoS 2.
    Pubrec(AckPacket<'a>),
    /// Answers PUBREC.
    Pubrel(AckPacket<'a>),
    /// Answers PUBREL.
    Pubcomp(AckPacket<'a>),
    /// Client subscribes.
    Subscribe(SubscribePacket<'a>),
    /// Server answers SUBSCRIBE.
    Suback(SubackPacket<'a>),
    /// Client unsubscribes.
    Unsubscribe(UnsubscribePacket<'a>),
    /// Server answers UNSUBSCRIBE.
    Unsuback(UnsubackPacket<'a>),
    /// Client shows that it is alive.
    Pingreq,
    /// Server answers PINGREQ.
    Pingresp,
    /// Either side ends the connection.
    Disconnect(DisconnectPacket<'a>),
    /// Either side continues enhanced authentication.
    Auth(AuthPacket<'a>),
}

impl<'a> Packet<'a> {
    /// Returns the type of the packet.
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Connect(_) => PacketType::Connect,
            Self::Connack(_) => PacketType::Connack,
            Self::Publish(_) => PacketType::Publish,
            Self::Puback(_) => PacketType::Puback,
            Self::Pubrec(_) => PacketType::Pubrec,
            Self::Pubrel(_) => PacketType::Pubrel,
            Self::Pubcomp(_) => PacketType::Pubcomp,
            Self::Subscribe(_) => PacketType::Subscribe,
            Self::Suback(_) => PacketType::Suback,
            Self::Unsubscribe(_) => PacketType::Unsubscribe,
            Self::Unsuback(_) => PacketType::Unsuback,
            Self::Pingreq => PacketType::Pingreq,
            Self::Pingresp => PacketType::Pingresp,
            Self::Disconnect(_) => PacketType::Disconnect,
            Self::Auth(_) => PacketType::Auth,
        }
    }

    /// Decodes the body after a checked fixed header.
    #[inline]
    pub(crate) fn decode(
        packet_type: PacketType,
        flags: u8,
        body: &'a [u8],
        version: MqttProtocolVersion,
    ) -> Result<Self, MqttDecodeError> {
        Ok(match packet_type {
            PacketType::Connect => Self::Connect(ConnectPacket::decode(body)?),
            PacketType::Connack => Self::Connack(ConnackPacket::decode(body, version)?),
            PacketType::Publish => Self::Publish(PublishPacket::decode(flags, body, version)?),
            PacketType::Puback => Self::Puback(AckPacket::decode(packet_type, body, version)?),
            PacketType::Pubrec => Self::Pubrec(AckPacket::decode(packet_type, body, version)?),
            PacketType::Pubrel => Self::Pubrel(AckPacket::decode(packet_type, body, version)?),
            PacketType::Pubcomp => Self::Pubcomp(AckPacket::decode(packet_type, body, version)?),
            PacketType::Subscribe => Self::Subscribe(SubscribePacket::decode(body, version)?),
            PacketType::Suback => Self::Suback(SubackPacket::decode(body, version)?),
            PacketType::Unsubscribe => Self::Unsubscribe(UnsubscribePacket::decode(body, version)?),
            PacketType::Unsuback => Self::Unsuback(UnsubackPacket::decode(body, version)?),
            PacketType::Pingreq => empty(body, Self::Pingreq)?,
            PacketType::Pingresp => empty(body, Self::Pingresp)?,
            PacketType::Disconnect => Self::Disconnect(DisconnectPacket::decode(body, version)?),
            PacketType::Auth => Self::Auth(AuthPacket::decode(body)?),
        })
    }

    /// Appends the packet to `out`, or nothing if it cannot be expressed.
    ///
    /// CONNECT is encoded in its own version. Properties are omitted before MQTT 5.
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        match self {
            Self::Connect(packet) => packet.encode(out),
            Self::Connack(packet) => packet.encode(version, out),
            Self::Publish(packet) => packet.encode(version, out),
            Self::Puback(packet) => packet.encode(PacketType::Puback, version, out),
            Self::Pubrec(packet) => packet.encode(PacketType::Pubrec, version, out),
            Self::Pubrel(packet) => packet.encode(PacketType::Pubrel, version, out),
            Self::Pubcomp(packet) => packet.encode(PacketType::Pubcomp, version, out),
            Self::Subscribe(packet) => packet.encode(version, out),
            Self::Suback(packet) => packet.encode(version, out),
            Self::Unsubscribe(packet) => packet.encode(version, out),
            Self::Unsuback(packet) => packet.encode(version, out),
            Self::Pingreq => {
                encode_pingreq(out);
                Ok(())
            }
            Self::Pingresp => {
                encode_pingresp(out);
                Ok(())
            }
            Self::Disconnect(packet) => packet.encode(version, out),
            Self::Auth(packet) => packet.encode(version, out),
        }
    }
}

fn empty<'a>(body: &[u8], packet: Packet<'a>) -> Result<Packet<'a>, MqttDecodeError> {
    if body.is_empty() {
        Ok(packet)
    } else {
        Err(MqttDecodeError::malformed("PINGREQ or PINGRESP with a body"))
    }
}

/// Appends PINGREQ.
pub fn encode_pingreq(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xC0, 0]);
}

/// Appends PINGRESP.
pub fn encode_pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xD0, 0]);
}
