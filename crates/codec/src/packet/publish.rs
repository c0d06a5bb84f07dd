//! PUBLISH (MQTT 5 §3.3).

use crate::error::{DecodeErrorKind, MqttDecodeError, MqttEncodeError};
use crate::packet::PacketType;
use crate::properties::{AllowedProperties, MqttProperties};
use crate::topic;
use crate::version::{MqttProtocolVersion, PacketId, QoS};
use crate::wire::{PacketReader, check_len, put_binary, put_header, put_u16, put_varint, utf8, varint_len};

const DUP: u8 = 0x08;
const RETAIN: u8 = 0x01;
/// Size of a topic alias property in bytes.
const ALIAS_LEN: usize = 3;

/// A published message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublishPacket<'a> {
    /// Whether it may be a retransmission.
    pub dup: bool,
    /// The quality of service.
    pub qos: QoS,
    /// Whether the server retains it for later subscribers, or has retained it.
    pub retain: bool,
    /// The topic name; empty if a topic alias replaces it.
    pub topic: &'a str,
    /// The packet identifier, present exactly for QoS 1 and 2.
    pub packet_id: Option<PacketId>,
    /// The properties of MQTT 5.
    pub properties: MqttProperties<'a>,
    /// The application's message.
    pub payload: &'a [u8],
}

impl<'a> PublishPacket<'a> {
    /// Makes a message of QoS 0 without properties.
    pub const fn new(topic: &'a str, payload: &'a [u8]) -> Self {
        Self {
            dup: false,
            qos: QoS::AtMostOnce,
            retain: false,
            topic,
            packet_id: None,
            properties: MqttProperties::EMPTY,
            payload,
        }
    }

    #[inline]
    pub(crate) fn decode(
        flags: u8,
        body: &'a [u8],
        version: MqttProtocolVersion,
    ) -> Result<Self, MqttDecodeError> {
        let mut reader = PacketReader::new(body);
        let qos =
            QoS::from_u8((flags >> 1) & 0x03).ok_or(MqttDecodeError::malformed("PUBLISH with QoS 3"))?;
        let name = reader.binary()?;
        if topic::has_forbidden(name) {
            return Err(MqttDecodeError::new(
                DecodeErrorKind::TopicName,
                "topic name has a wildcard or U+0000",
            ));
        }
        let topic = utf8(name)?;
        let packet_id = if qos == QoS::AtMostOnce {
            None
        } else {
            Some(reader.packet_id()?)
        };
        let properties = if version.is_v5() {
            MqttProperties::decode(&mut reader, AllowedProperties::PUBLISH)?
        } else {
            MqttProperties::EMPTY
        };
        if topic.is_empty() && !properties.has_topic_alias() {
            return Err(no_topic(version));
        }
        Ok(Self {
            dup: flags & DUP != 0,
            qos,
            retain: flags & RETAIN != 0,
            topic,
            packet_id,
            properties,
            payload: reader.rest(),
        })
    }

    /// Returns how many bytes [`Self::encode`] appends.
    pub fn encoded_len(&self, version: MqttProtocolVersion) -> usize {
        self.as_parts().frame_len(version)
    }

    /// Appends the packet to `out`.
    #[inline]
    pub fn encode(&self, version: MqttProtocolVersion, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        self.as_parts().encode(version, out)?;
        out.extend_from_slice(self.payload);
        Ok(())
    }

    pub(crate) const fn as_parts(&self) -> PublishParts<'_> {
        PublishParts {
            publish: self,
            target: PublishTarget {
                topic: self.topic,
                alias: None,
                packet_id: self.packet_id,
                dup: self.dup,
            },
        }
    }
}

#[cold]
const fn no_topic(version: MqttProtocolVersion) -> MqttDecodeError {
    if version.is_v5() {
        MqttDecodeError::protocol("PUBLISH with neither topic nor alias")
    } else {
        MqttDecodeError::new(DecodeErrorKind::TopicName, "topic name is empty")
    }
}

/// The fields of an outgoing message that the session determines.
pub(crate) struct PublishTarget<'a> {
    pub(crate) topic: &'a str,
    pub(crate) alias: Option<u16>,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) dup: bool,
}

/// A message with replacements for some of its fields.
pub(crate) struct PublishParts<'a> {
    pub(crate) publish: &'a PublishPacket<'a>,
    pub(crate) target: PublishTarget<'a>,
}

impl PublishParts<'_> {
    const fn properties_len(&self) -> usize {
        let alias = if self.target.alias.is_some() { ALIAS_LEN } else { 0 };
        self.publish.properties.raw().len() + alias
    }

    #[inline]
    pub(crate) const fn body_len(&self, version: MqttProtocolVersion) -> usize {
        let id = if self.target.packet_id.is_some() { 2 } else { 0 };
        let properties = if version.is_v5() {
            let len = self.properties_len();
            varint_len(len) + len
        } else {
            0
        };
        2 + self.target.topic.len() + id + properties + self.publish.payload.len()
    }

    #[inline]
    pub(crate) const fn frame_len(&self, version: MqttProtocolVersion) -> usize {
        frame_len(self.body_len(version))
    }

    fn check(&self, version: MqttProtocolVersion) -> Result<(), MqttEncodeError> {
        let PublishPacket { qos, properties, .. } = self.publish;
        let target = &self.target;
        if (*qos == QoS::AtMostOnce) == target.packet_id.is_some() {
            return Err(MqttEncodeError::invalid(
                "packet identifier does not go with the QoS",
            ));
        }
        if target.dup && *qos == QoS::AtMostOnce && version != MqttProtocolVersion::V31 {
            return Err(MqttEncodeError::invalid("PUBLISH with DUP at QoS 0"));
        }
        if topic::has_forbidden(target.topic.as_bytes()) {
            return Err(MqttEncodeError::invalid("topic name has a wildcard or U+0000"));
        }
        let has_alias = version.is_v5() && (target.alias.is_some() || properties.has_topic_alias());
        if target.topic.is_empty() && !has_alias {
            return Err(MqttEncodeError::invalid("topic name is empty"));
        }
        properties.check(AllowedProperties::PUBLISH)?;
        check_len(target.topic.as_bytes())
    }

    /// Appends everything except the payload.
    #[inline]
    pub(crate) fn encode(
        &self,
        version: MqttProtocolVersion,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        self.check(version)?;
        let target = &self.target;
        let mut flags = (self.publish.qos as u8) << 1;
        if target.dup {
            flags |= DUP;
        }
        if self.publish.retain {
            flags |= RETAIN;
        }
        put_header(PacketType::Publish.first_byte(flags), self.body_len(version), out)?;
        put_binary(target.topic.as_bytes(), out);
        if let Some(id) = target.packet_id {
            put_u16(id.get(), out);
        }
        if version.is_v5() {
            put_varint(self.properties_len(), out);
            if let Some(alias) = target.alias {
                out.push(35);
                put_u16(alias, out);
            }
            out.extend_from_slice(self.publish.properties.raw());
        }
        Ok(())
    }
}

/// Returns the length of a packet with a body of this length.
pub(crate) const fn frame_len(body_len: usize) -> usize {
    1 + varint_len(body_len) + body_len
}
