//! The records of the broker's journal: what must survive a crash before it is acknowledged.
//!
//! A record says what has happened to sessions by their numbers, so that a replay needs to know no subscription. To apply
//! it again changes nothing.

use std::sync::Arc;

use fieldline_codec::{PacketId, QoS, RetainHandling, SubscriptionOptions};
use fieldline_core::ports::BrokerClientType;
use fieldline_model::record::RecordBatch;

use crate::client::ConnectionInfo;
use crate::message::BrokerMessage;
use crate::queue::DeliveryOptions;
use crate::session::{StoredSubscription, StoredWill};
use crate::wire::{RowReader, put_bytes};

const PUBLISHED: u8 = 1;
const RECEIVED: u8 = 2;
const RELEASED: u8 = 3;
const OPENED: u8 = 4;
const SUBSCRIBED: u8 = 5;
const UNSUBSCRIBED: u8 = 6;
const CLOSED: u8 = 7;
const REMOVED: u8 = 8;
const UNRELEASED: u8 = 9;

/// A message, and who gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishedRecord {
    /// The session of the publisher and the identifier, of a message of QoS 2 that is not released yet.
    pub(crate) unreleased: Option<(u64, PacketId)>,
    /// Whether it becomes the retained message of its topic.
    pub(crate) is_retained: bool,
    /// Sessions, and the numbers of the message in their queues.
    pub(crate) deliveries: Vec<(u64, u64, DeliveryOptions)>,
    pub(crate) message: Arc<BrokerMessage>,
}

/// A client that has connected, with what its session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenedRecord {
    pub(crate) session: u64,
    pub(crate) client_id: Box<str>,
    pub(crate) client_type: BrokerClientType,
    pub(crate) expiry_s: u32,
    pub(crate) will: Option<StoredWill>,
    pub(crate) connection: Option<Box<ConnectionInfo>>,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BrokerRecord {
    Published(PublishedRecord),
    /// The client of a session has received a message of QoS 2.
    Received {
        session: u64,
        number: u64,
    },
    /// The client of a session has released a message of QoS 2.
    Released {
        session: u64,
        packet_id: PacketId,
    },
    Opened(OpenedRecord),
    Subscribed {
        session: u64,
        filter: Box<str>,
        subscription: StoredSubscription,
    },
    Unsubscribed {
        session: u64,
        filter: Box<str>,
    },
    /// The connection has ended. The will is still there if it is due later.
    Closed {
        session: u64,
        at_ms: i64,
        expiry_s: u32,
        will_due_ms: Option<i64>,
    },
    /// The session has ended.
    Removed {
        session: u64,
    },
    /// The client of a session has sent a message of QoS 2 again.
    Unreleased {
        session: u64,
        packet_id: PacketId,
    },
}

/// Adds a record to a batch.
pub(crate) fn push(record: &BrokerRecord, scratch: &mut Vec<u8>, batch: &mut RecordBatch) {
    scratch.clear();
    record.encode(scratch);
    batch.push(scratch);
}

pub(crate) fn put_subscription(subscription: &StoredSubscription, out: &mut Vec<u8>) {
    let StoredSubscription { options, id } = subscription;
    out.push(
        options.qos as u8
            | u8::from(options.no_local) << 2
            | u8::from(options.retain_as_published) << 3
            | (options.retain_handling as u8) << 4,
    );
    out.extend_from_slice(&id.to_le_bytes());
}

pub(crate) fn read_subscription(reader: &mut RowReader<'_>) -> Option<StoredSubscription> {
    let bits = reader.u8()?;
    let retain_handling = match bits >> 4 {
        0 => RetainHandling::Send,
        1 => RetainHandling::SendIfNew,
        _ => RetainHandling::DoNotSend,
    };
    Some(StoredSubscription {
        options: SubscriptionOptions {
            qos: QoS::from_u8(bits & 0x03)?,
            no_local: bits & 0x04 != 0,
            retain_as_published: bits & 0x08 != 0,
            retain_handling,
        },
        id: reader.u32()?,
    })
}

pub(crate) const fn client_type_code(client_type: BrokerClientType) -> u8 {
    match client_type {
        BrokerClientType::Device => 0,
        BrokerClientType::Application => 1,
    }
}

pub(crate) fn read_client_type(reader: &mut RowReader<'_>) -> Option<BrokerClientType> {
    match reader.u8()? {
        0 => Some(BrokerClientType::Device),
        1 => Some(BrokerClientType::Application),
        _ => None,
    }
}

pub(crate) fn put_will(will: Option<&StoredWill>, out: &mut Vec<u8>) {
    out.push(u8::from(will.is_some()));
    if let Some(will) = will {
        out.extend_from_slice(&will.delay_s.to_le_bytes());
        out.push(u8::from(will.expiry_s.is_some()));
        out.extend_from_slice(&will.expiry_s.unwrap_or(0).to_le_bytes());
        will.message.encode(out);
    }
}

pub(crate) fn read_will(reader: &mut RowReader<'_>) -> Option<Option<StoredWill>> {
    if reader.u8()? == 0 {
        return Some(None);
    }
    let delay_s = reader.u32()?;
    let (has_expiry, expiry_s) = (reader.u8()? != 0, reader.u32()?);
    Some(Some(StoredWill {
        delay_s,
        expiry_s: has_expiry.then_some(expiry_s),
        message: Arc::new(BrokerMessage::decode(reader)?),
    }))
}

pub(crate) fn put_connection(connection: Option<&ConnectionInfo>, out: &mut Vec<u8>) {
    out.push(u8::from(connection.is_some()));
    if let Some(connection) = connection {
        connection.encode(out);
    }
}

pub(crate) fn read_connection(reader: &mut RowReader<'_>) -> Option<Option<Box<ConnectionInfo>>> {
    if reader.u8()? == 0 {
        return Some(None);
    }
    Some(Some(Box::new(ConnectionInfo::decode(reader)?)))
}

impl BrokerRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |kind: u8, session: u64| {
            out.push(kind);
            out.extend_from_slice(&session.to_le_bytes());
        };
        match self {
            Self::Published(record) => record.encode(out),
            Self::Received { session, number } => {
                head(RECEIVED, *session);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::Released { session, packet_id } => {
                head(RELEASED, *session);
                out.extend_from_slice(&packet_id.get().to_le_bytes());
            }
            Self::Opened(opened) => {
                head(OPENED, opened.session);
                out.push(client_type_code(opened.client_type));
                out.extend_from_slice(&opened.expiry_s.to_le_bytes());
                put_bytes(opened.client_id.as_bytes(), out);
                put_will(opened.will.as_ref(), out);
                put_connection(opened.connection.as_deref(), out);
            }
            Self::Subscribed {
                session,
                filter,
                subscription,
            } => {
                head(SUBSCRIBED, *session);
                put_subscription(subscription, out);
                put_bytes(filter.as_bytes(), out);
            }
            Self::Unsubscribed { session, filter } => {
                head(UNSUBSCRIBED, *session);
                put_bytes(filter.as_bytes(), out);
            }
            Self::Closed {
                session,
                at_ms,
                expiry_s,
                will_due_ms,
            } => {
                head(CLOSED, *session);
                out.extend_from_slice(&at_ms.to_le_bytes());
                out.extend_from_slice(&expiry_s.to_le_bytes());
                out.extend_from_slice(&will_due_ms.unwrap_or(i64::MAX).to_le_bytes());
            }
            Self::Removed { session } => head(REMOVED, *session),
            Self::Unreleased { session, packet_id } => {
                head(UNRELEASED, *session);
                out.extend_from_slice(&packet_id.get().to_le_bytes());
            }
        }
    }

    /// Reads a record; `None` if it is none, or of a kind that is not known yet.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = RowReader(bytes);
        let (kind, session) = (reader.u8()?, reader.u64()?);
        Some(match kind {
            PUBLISHED => Self::Published(PublishedRecord::decode(session, &mut reader)?),
            RECEIVED => Self::Received {
                session,
                number: reader.u64()?,
            },
            RELEASED => Self::Released {
                session,
                packet_id: PacketId::new(reader.u16()?)?,
            },
            OPENED => Self::Opened(OpenedRecord {
                session,
                client_type: read_client_type(&mut reader)?,
                expiry_s: reader.u32()?,
                client_id: reader.text()?.into(),
                will: read_will(&mut reader)?,
                connection: read_connection(&mut reader)?,
            }),
            SUBSCRIBED => Self::Subscribed {
                session,
                subscription: read_subscription(&mut reader)?,
                filter: reader.text()?.into(),
            },
            UNSUBSCRIBED => Self::Unsubscribed {
                session,
                filter: reader.text()?.into(),
            },
            CLOSED => Self::Closed {
                session,
                at_ms: reader.i64()?,
                expiry_s: reader.u32()?,
                will_due_ms: Some(reader.i64()?).filter(|at| *at != i64::MAX),
            },
            REMOVED => Self::Removed { session },
            UNRELEASED => Self::Unreleased {
                session,
                packet_id: PacketId::new(reader.u16()?)?,
            },
            _ => return None,
        })
    }
}

impl PublishedRecord {
    /// Whether there is nothing to keep.
    pub(crate) const fn is_empty(&self) -> bool {
        self.unreleased.is_none() && !self.is_retained && self.deliveries.is_empty()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let (publisher, packet_id) = self
            .unreleased
            .map_or((0, 0), |(session, id)| (session, id.get()));
        out.push(PUBLISHED);
        out.extend_from_slice(&publisher.to_le_bytes());
        out.extend_from_slice(&packet_id.to_le_bytes());
        out.push(u8::from(self.is_retained));
        self.message.encode(out);
        out.extend_from_slice(&(self.deliveries.len() as u32).to_le_bytes());
        for (session, number, options) in &self.deliveries {
            out.extend_from_slice(&session.to_le_bytes());
            out.extend_from_slice(&number.to_le_bytes());
            options.encode(0, out);
        }
    }

    fn decode(publisher: u64, reader: &mut RowReader<'_>) -> Option<Self> {
        let packet_id = PacketId::new(reader.u16()?);
        let is_retained = reader.u8()? != 0;
        let message = Arc::new(BrokerMessage::decode(reader)?);
        let count = reader.u32()?;
        let mut deliveries = Vec::new();
        for _ in 0..count {
            let (session, number) = (reader.u64()?, reader.u64()?);
            let (options, _) = DeliveryOptions::decode(reader)?;
            deliveries.push((session, number, options));
        }
        Some(Self {
            unreleased: packet_id.map(|id| (publisher, id)),
            is_retained,
            deliveries,
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_codec::PublishPacket;

    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let message = Arc::new(BrokerMessage::of(&PublishPacket::new("a", b"b"), "a", 5));
        let id = PacketId::new(9).expect("an identifier");
        let subscription = StoredSubscription {
            options: SubscriptionOptions {
                qos: QoS::ExactlyOnce,
                no_local: true,
                retain_as_published: true,
                retain_handling: RetainHandling::DoNotSend,
            },
            id: 77,
        };
        let records = [
            BrokerRecord::Published(PublishedRecord {
                unreleased: Some((4, id)),
                is_retained: true,
                deliveries: vec![(
                    1,
                    2,
                    DeliveryOptions {
                        qos: QoS::AtLeastOnce,
                        retain: true,
                        subscription_ids: Box::new([1, 2]),
                    },
                )],
                message: message.clone(),
            }),
            BrokerRecord::Received {
                session: 1,
                number: 2,
            },
            BrokerRecord::Released {
                session: 1,
                packet_id: id,
            },
            BrokerRecord::Opened(OpenedRecord {
                session: 1,
                client_id: "c".into(),
                client_type: BrokerClientType::Application,
                expiry_s: 60,
                will: Some(StoredWill {
                    message,
                    delay_s: 3,
                    expiry_s: Some(4),
                }),
                connection: Some(Box::default()),
            }),
            BrokerRecord::Subscribed {
                session: 1,
                filter: "$share/g/a/#".into(),
                subscription,
            },
            BrokerRecord::Unsubscribed {
                session: 1,
                filter: "a/#".into(),
            },
            BrokerRecord::Closed {
                session: 1,
                at_ms: -5,
                expiry_s: 7,
                will_due_ms: Some(8),
            },
            BrokerRecord::Removed { session: 1 },
            BrokerRecord::Unreleased {
                session: 1,
                packet_id: id,
            },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(BrokerRecord::decode(&bytes), Some(record));
            for end in 0..bytes.len() {
                assert_eq!(BrokerRecord::decode(&bytes[..end]), None);
            }
        }
    }
}
