//! A PUBLISH encoded once and written many times.

use crate::error::MqttEncodeError;
use crate::packet::PublishPacket;
use crate::version::{MqttProtocolVersion, PacketId, QoS};

/// The bytes of a PUBLISH in which only packet identifier and payload bytes change.
///
/// Load generators send one repeatedly; brokers send one to many subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishTemplate {
    bytes: Vec<u8>,
    /// Offset of the packet identifier; 0 for QoS 0, which has none.
    id_at: usize,
    payload_at: usize,
    qos: QoS,
}

impl PublishTemplate {
    /// Encodes `publish`; its packet identifier may be missing, because each write replaces it.
    pub fn new(publish: &PublishPacket<'_>, version: MqttProtocolVersion) -> Result<Self, MqttEncodeError> {
        let packet_id = if publish.qos == QoS::AtMostOnce {
            None
        } else {
            Some(PacketId::MIN)
        };
        let publish = PublishPacket {
            packet_id,
            ..*publish
        };
        let mut bytes = Vec::with_capacity(publish.encoded_len(version));
        publish.encode(version, &mut bytes)?;
        let payload_at = bytes.len() - publish.payload.len();
        let body_at = bytes.len() - publish.as_parts().body_len(version);
        let id_at = if packet_id.is_some() {
            body_at + 2 + publish.topic.len()
        } else {
            0
        };
        Ok(Self {
            bytes,
            id_at,
            payload_at,
            qos: publish.qos,
        })
    }

    /// Returns the quality of service of the packets.
    pub const fn qos(&self) -> QoS {
        self.qos
    }

    /// Returns whether the packets have the retain flag.
    pub fn retain(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & 0x01 != 0)
    }

    /// Returns the number of bytes that each write appends.
    pub fn encoded_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the payload, whose bytes may be changed in place.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.payload_at..).unwrap_or_default()
    }

    /// Appends the packet; QoS 0 ignores the identifier, and QoS 1 and 2 use 1 if it is missing.
    #[inline]
    pub fn write(&self, packet_id: Option<PacketId>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        if let (Some(id), 1..) = (packet_id, self.id_at)
            && let Some(field) = out.get_mut(start + self.id_at..start + self.id_at + 2)
        {
            field.copy_from_slice(&id.get().to_be_bytes());
        }
    }
}
