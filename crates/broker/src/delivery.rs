//! What a client is sent: retransmissions, messages of QoS 0, those of its queue, and retained messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fieldline_codec::session::{Redelivery, ServerSession, SessionSendError};
use fieldline_codec::{MqttProperties, MqttPropertyBuf, PublishPacket, QoS, ReasonCode};

use crate::broker::Broker;
use crate::connection::BrokerConnection;
use crate::driver::{OUT_BYTES, TurnBuffers};
use crate::message::BrokerMessage;
use crate::queue::{DeliveryOptions, MessageQueue, packet_id_of};
use crate::session::{BrokerSession, SessionInner};

/// Messages that wait for a client, from which on no retained messages are added.
const BACKLOG_QUEUE: u64 = 100;

/// What has become of an attempt to send the next message of a queue.
#[derive(Debug, PartialEq, Eq)]
enum QueueStep {
    /// It was sent, or left out.
    Done,
    /// There is none that can be sent now.
    Idle,
    /// The store has it.
    InStore,
    /// Its identifier is in use, which cannot be.
    Refused,
}

/// The output of one turn for a client.
struct DeliveryPass<'a> {
    broker: &'a Broker,
    session: &'a Arc<BrokerSession>,
    mqtt: &'a mut ServerSession<()>,
    out: &'a mut Vec<u8>,
    properties: &'a mut MqttPropertyBuf,
    now_ms: i64,
    /// Messages sent, by QoS.
    sent: [u64; 3],
    sent_bytes: u64,
}

impl Broker {
    /// Whether what is on its way to a client leaves room for another message.
    fn may_send(&self, queue: &MessageQueue) -> bool {
        queue.sent_bytes() < self.options.queue_memory.as_usize()
    }

    /// Whether a retained message that waits for a client may join its queue.
    fn takes_backlog(&self, queue: &MessageQueue) -> bool {
        queue.len() < BACKLOG_QUEUE && queue.waiting_bytes() < self.options.queue_memory.as_usize()
    }
}

impl BrokerConnection {
    /// Whether something could be sent that is not in the output yet.
    pub(crate) fn has_more(&self) -> bool {
        if self.mqtt.has_redelivery() {
            return true;
        }
        let inner = self.open.session.lock();
        let broker = &self.open.broker;
        !inner.direct.is_empty()
            || (!self.backlog.is_empty() && broker.takes_backlog(&inner.queue))
            || (self.mqtt.can_send()
                && broker.may_send(&inner.queue)
                && (inner.queue.next().is_some() || inner.queue.missing().is_some()))
    }

    /// Adds messages to the output. Returns whether the next ones have to be read from the store first.
    pub(crate) fn deliver(&mut self, buffers: &mut TurnBuffers) -> bool {
        let (broker, session) = (self.open.broker.clone(), self.open.session.clone());
        let mut inner = session.lock();
        match &mut inner.link {
            Some(link) if link.epoch == self.open.epoch => link.is_signalled = false,
            _ => {
                drop(inner);
                self.refuse_taken_over();
                return false;
            }
        }
        let mut pass = DeliveryPass {
            broker: &broker,
            session: &session,
            mqtt: &mut self.mqtt,
            out: &mut self.out,
            properties: &mut buffers.properties,
            now_ms: broker.clock.now_ms(),
            sent: [0; 3],
            sent_bytes: 0,
        };
        let mut last = QueueStep::Idle;
        while pass.out.len() < OUT_BYTES {
            if pass.redeliver(&mut inner) || pass.send_direct(&mut inner) {
                continue;
            }
            last = pass.send_queued(&mut inner);
            match last {
                QueueStep::Done => continue,
                QueueStep::Idle if broker.takes_backlog(&inner.queue) => {}
                _ => break,
            }
            let Some((message, options)) = self.backlog.pop() else {
                break;
            };
            if options.qos == QoS::AtMostOnce {
                pass.send_now(&message, &options);
            } else {
                inner.queue.push(message, options, true);
                broker.note(&session, &mut inner);
            }
        }
        broker.relieve(&session, &mut inner);
        drop(inner);
        pass.count();
        if last == QueueStep::Refused {
            self.refuse(ReasonCode::ImplementationSpecificError, "an identifier is in use");
        }
        last == QueueStep::InStore
    }
}

impl DeliveryPass<'_> {
    /// Sends a message that was sent on an earlier connection again; returns whether there was one.
    fn redeliver(&mut self, inner: &mut SessionInner) -> bool {
        let start = self.out.len();
        let (packet_id, dup) = match self.mqtt.next_redelivery(self.out) {
            None => return false,
            Some(Redelivery::Pubrel { .. }) => return true,
            Some(Redelivery::Publish { packet_id, dup, .. }) => (packet_id, dup),
        };
        let Some(queued) = inner.queue.in_flight(packet_id) else {
            self.mqtt.forget(packet_id);
            return true;
        };
        let outcome = self.encode(&queued.message, &queued.options, |mqtt, publish, out| {
            let publish = PublishPacket {
                dup,
                packet_id: Some(packet_id),
                ..*publish
            };
            publish.encode(mqtt.version(), out)?;
            match mqtt.fits_client(out.len() - start) {
                true => Ok(()),
                // It accepts less than before.
                false => Err(SessionSendError::PacketTooLarge),
            }
        });
        if outcome.is_err() {
            self.out.truncate(start);
            self.mqtt.forget(packet_id);
            inner.queue.settle(packet_id);
            self.broker.note(self.session, inner);
            self.broker.count_dropped(self.session);
        }
        true
    }

    /// Sends the next message of QoS 0; returns whether there was one.
    fn send_direct(&mut self, inner: &mut SessionInner) -> bool {
        let Some((message, options)) = Broker::take_direct(inner) else {
            return false;
        };
        self.send_now(&message, &options);
        true
    }

    /// Sends a message of QoS 0, unless it has expired.
    fn send_now(&mut self, message: &BrokerMessage, options: &DeliveryOptions) {
        if message.is_expired(self.now_ms) {
            self.broker.stats.expired.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let outcome = self.encode(message, options, |mqtt, publish, out| {
            mqtt.publish(publish, (), out).map(drop)
        });
        if outcome.is_err() {
            self.broker.count_dropped(self.session);
        }
    }

    /// Sends the next message of the queue.
    fn send_queued(&mut self, inner: &mut SessionInner) -> QueueStep {
        if !self.mqtt.can_send() || !self.broker.may_send(&inner.queue) {
            return QueueStep::Idle;
        }
        let Some(queued) = inner.queue.next() else {
            return match inner.queue.missing() {
                Some(_) => QueueStep::InStore,
                None => QueueStep::Idle,
            };
        };
        if queued.message.is_expired(self.now_ms) {
            self.broker.stats.expired.fetch_add(1, Ordering::Relaxed);
            inner.queue.skip();
            self.broker.note(self.session, inner);
            return QueueStep::Done;
        }
        let packet_id = packet_id_of(queued.number);
        let outcome = self.encode(&queued.message, &queued.options, |mqtt, publish, out| {
            mqtt.publish_as(publish, packet_id, (), out)
        });
        match outcome {
            Ok(()) => inner.queue.mark_sent(),
            // There was room a moment ago.
            Err(SessionSendError::WindowFull | SessionSendError::NotConnected) => return QueueStep::Refused,
            Err(_) => {
                self.broker.count_dropped(self.session);
                inner.queue.skip();
            }
        }
        self.broker.note(self.session, inner);
        QueueStep::Done
    }

    /// Makes the packet of a message, and lets `send` write it.
    fn encode(
        &mut self,
        message: &BrokerMessage,
        options: &DeliveryOptions,
        send: impl FnOnce(
            &mut ServerSession<()>,
            &PublishPacket<'_>,
            &mut Vec<u8>,
        ) -> Result<(), SessionSendError>,
    ) -> Result<(), SessionSendError> {
        self.properties.clear();
        let is_plain = options.subscription_ids.is_empty() && message.expires_ms.is_none();
        let properties = if !self.mqtt.version().is_v5() {
            MqttProperties::EMPTY
        } else if is_plain {
            message.properties.as_properties()
        } else {
            message.outgoing(self.now_ms, &options.subscription_ids, self.properties);
            self.properties.as_properties()
        };
        let publish = PublishPacket {
            qos: options.qos,
            retain: options.retain,
            properties,
            ..PublishPacket::new(&message.topic, &message.payload)
        };
        send(self.mqtt, &publish, self.out)?;
        if let Some(sent) = self.sent.get_mut(options.qos as usize) {
            *sent += 1;
        }
        self.sent_bytes += message.payload.len() as u64;
        Ok(())
    }

    /// Counts what was sent.
    fn count(self) {
        let all: u64 = self.sent.iter().sum();
        if all > 0 {
            let stats = &self.broker.stats;
            self.session.counters().count_sent(self.sent);
            stats.sent.fetch_add(all, Ordering::Relaxed);
            stats.sent_bytes.fetch_add(self.sent_bytes, Ordering::Relaxed);
        }
    }
}
