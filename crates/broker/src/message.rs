//! A message on its way to subscribers.

use fieldline_codec::{MqttProperty, MqttPropertyBuf, PublishPacket, QoS};

use crate::wire::{RowReader, put_bytes};

/// Version of the encoding.
const VERSION: u8 = 1;
const RETAIN: u8 = 0x04;
/// What a message takes beside its bytes.
const OVERHEAD: usize = 128;

/// A published message, shared by all who get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokerMessage {
    pub(crate) topic: Box<str>,
    pub(crate) payload: Box<[u8]>,
    /// Those of PUBLISH that are passed on as they are.
    pub(crate) properties: MqttPropertyBuf,
    pub(crate) qos: QoS,
    /// Whether it was published with the retain flag.
    pub(crate) retain: bool,
    /// When it was published, milliseconds since 1970; 0 if that is not known.
    pub(crate) created_ms: i64,
    /// When it expires, milliseconds since 1970.
    pub(crate) expires_ms: Option<i64>,
}

impl BrokerMessage {
    /// Takes a message that was received at `now_ms`; `topic` is that of the packet with its alias resolved.
    pub(crate) fn of(publish: &PublishPacket<'_>, topic: &str, now_ms: i64) -> Self {
        let mut properties = MqttPropertyBuf::new();
        for property in &publish.properties {
            match property {
                // Of the connection, or of this hop.
                MqttProperty::TopicAlias(_) | MqttProperty::MessageExpiryInterval(_) => {}
                property => {
                    // It was valid when it was received.
                    let pushed = properties.push(property);
                    debug_assert!(pushed.is_ok());
                }
            }
        }
        let expires_ms = publish
            .properties
            .message_expiry_interval()
            .map(|seconds| now_ms.saturating_add(i64::from(seconds) * 1_000));
        Self {
            topic: topic.into(),
            payload: publish.payload.into(),
            properties,
            qos: publish.qos,
            retain: publish.retain,
            created_ms: now_ms,
            expires_ms,
        }
    }

    /// Whether nobody shall get it any more.
    pub(crate) fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn memory(&self) -> usize {
        OVERHEAD + self.topic.len() + self.payload.len() + self.properties.as_bytes().len()
    }

    /// Appends the message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.push(self.qos as u8 | if self.retain { RETAIN } else { 0 });
        out.extend_from_slice(&self.created_ms.to_le_bytes());
        out.extend_from_slice(&self.expires_ms.unwrap_or(i64::MAX).to_le_bytes());
        put_bytes(self.topic.as_bytes(), out);
        put_bytes(self.properties.as_bytes(), out);
        put_bytes(&self.payload, out);
    }

    /// Reads a message; `None` if it is none, or of a newer version.
    pub(crate) fn decode(reader: &mut RowReader<'_>) -> Option<Self> {
        if reader.u8()? != VERSION {
            return None;
        }
        let flags = reader.u8()?;
        let created_ms = reader.i64()?;
        let expires_ms = Some(reader.i64()?).filter(|at| *at != i64::MAX);
        Some(Self {
            qos: QoS::from_u8(flags & 0x03)?,
            retain: flags & RETAIN != 0,
            created_ms,
            expires_ms,
            topic: reader.text()?.into(),
            properties: MqttPropertyBuf::from_publish_bytes(reader.bytes()?).ok()?,
            payload: reader.bytes()?.into(),
        })
    }

    /// Adds the properties with which the message is sent at `now_ms` to an empty buffer.
    pub(crate) fn outgoing(&self, now_ms: i64, subscription_ids: &[u32], into: &mut MqttPropertyBuf) {
        let mut push = |property| {
            let pushed = into.push(property).is_ok();
            debug_assert!(pushed, "properties were valid when they were received");
        };
        if let Some(expires_ms) = self.expires_ms {
            let left = expires_ms.saturating_sub(now_ms).max(0) as u64;
            let seconds = u32::try_from(left.div_ceil(1_000)).unwrap_or(u32::MAX);
            push(MqttProperty::MessageExpiryInterval(seconds));
        }
        for property in &self.properties.as_properties() {
            push(property);
        }
        for id in subscription_ids {
            push(MqttProperty::SubscriptionIdentifier(*id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_stored_with_all_that_is_passed_on() {
        let mut properties = MqttPropertyBuf::new();
        for property in [
            MqttProperty::MessageExpiryInterval(10),
            MqttProperty::TopicAlias(3),
            MqttProperty::UserProperty("a", "b"),
            MqttProperty::CorrelationData(b"c"),
        ] {
            properties.push(property).expect("valid");
        }
        let publish = PublishPacket {
            qos: QoS::ExactlyOnce,
            retain: true,
            properties: properties.as_properties(),
            ..PublishPacket::new("", b"payload")
        };
        let message = BrokerMessage::of(&publish, "a/b", 1_000);
        let mut row = Vec::new();
        message.encode(&mut row);
        let decoded = BrokerMessage::decode(&mut RowReader(&row)).expect("the message");
        assert_eq!(decoded, message);
        assert!(!decoded.is_expired(10_999) && decoded.is_expired(11_000));

        let mut sent = MqttPropertyBuf::new();
        decoded.outgoing(3_500, &[7, 9], &mut sent);
        let sent = sent.as_properties();
        assert_eq!(sent.message_expiry_interval(), Some(8));
        assert_eq!(sent.topic_alias(), None);
        assert_eq!(sent.subscription_identifiers().collect::<Vec<_>>(), [7, 9]);
        assert_eq!(sent.user_properties().collect::<Vec<_>>(), [("a", "b")]);
        for end in 0..row.len() {
            assert!(BrokerMessage::decode(&mut RowReader(&row[..end])).is_none());
        }
    }
}
