//! What a client sends, and what it is sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fieldline_codec::session::ServerEvent;
use fieldline_codec::{
    Packet, PacketId, PublishPacket, QoS, ReasonCode, RetainHandling, SubackPacket, SubscribePacket,
    UnsubackPacket, UnsubscribePacket, decode_frame, topic,
};
use fieldline_event_loop::ConnectionTurn;
use rustc_hash::FxHashSet;

use crate::broker::Broker;
use crate::connection::BrokerConnection;
use crate::driver::TurnBuffers;
use crate::lifecycle::ClientEnd;
use crate::limits::has_room;
use crate::log::{BrokerRecord, PublishedRecord, push};
use crate::message::BrokerMessage;
use crate::queue::DeliveryOptions;
use crate::session::StoredSubscription;

/// Retained messages of QoS 1 and 2 for one SUBSCRIBE that are durable before its SUBACK; more follow later.
const DURABLE_RETAINED: usize = 1_000;
/// Bytes of their topics and payloads.
const DURABLE_RETAINED_BYTES: usize = 1 << 20;
/// Bytes of records from which on no further packet is handled in a turn.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

impl BrokerConnection {
    /// Handles the whole packets of an input; returns how many bytes they take.
    pub(crate) fn receive(
        &mut self,
        input: &[u8],
        buffers: &mut TurnBuffers,
        turn: &ConnectionTurn<'_, Self>,
    ) -> usize {
        self.hold.is_held = false;
        self.hold.is_woken = false;
        buffers.has_passed = false;
        let broker = self.open.broker.clone();
        let mut used = 0;
        // The rest waits for the next turn, so that the records of one fit an append.
        while self.end.is_none() && buffers.batch.as_bytes().len() < BATCH_BYTES {
            let rest = input.get(used..).unwrap_or_default();
            match decode_frame(rest, self.mqtt.max_packet_size(), self.mqtt.version()) {
                Ok(Some((packet, length))) => {
                    if self.is_held(&broker, &packet, rest.len(), buffers, turn) {
                        break;
                    }
                    used += length;
                    self.on_packet(&broker, &packet, buffers);
                }
                Ok(None) => break,
                Err(error) => self.refuse(error.reason_code(), &error.to_string()),
            }
        }
        used
    }

    fn on_packet(&mut self, broker: &Arc<Broker>, packet: &Packet<'_>, buffers: &mut TurnBuffers) {
        let before = self.out.len();
        match self.mqtt.receive(packet, buffers.now_ms, &mut self.out) {
            Err(error) => self.refuse(error.reason_code(), &error.to_string()),
            Ok(ServerEvent::Publish(publish)) => self.on_publish(broker, publish, buffers),
            Ok(ServerEvent::PublishAgain(publish)) => {
                if let Some(packet_id) = publish.packet_id
                    && self.open.session.is_persistent()
                {
                    if !self.may_acknowledge_again(packet_id) {
                        return self.refuse(ReasonCode::ServerBusy, "the message is not stored yet");
                    }
                    // Its record lies before this one in the journal, and may not be durable yet.
                    let repeated = BrokerRecord::Unreleased {
                        session: self.open.session.number,
                        packet_id,
                    };
                    push(&repeated, &mut buffers.scratch, &mut buffers.batch);
                    buffers.is_awaited = true;
                }
                self.acknowledge(publish, ReasonCode::Success);
            }
            Ok(ServerEvent::Subscribe(subscribe)) => self.on_subscribe(broker, subscribe, buffers),
            Ok(ServerEvent::Unsubscribe(unsubscribe)) => self.on_unsubscribe(broker, unsubscribe, buffers),
            Ok(ServerEvent::Disconnect(disconnect)) => {
                let expiry_s = disconnect.properties.session_expiry_interval();
                self.end = Some(ClientEnd {
                    publishes_will: disconnect.code != ReasonCode::Success,
                    expiry_s: expiry_s.map(|seconds| broker.granted_expiry(seconds)),
                });
            }
            Ok(event @ (ServerEvent::Acknowledged { .. } | ServerEvent::Handled)) => {
                // Only what has a place in the exchange changes the queue.
                let is_settled = matches!(event, ServerEvent::Acknowledged { .. })
                    || matches!(packet, Packet::Pubrel(_) | Packet::Pubcomp(_));
                if is_settled && !self.note_progress(broker, packet, buffers) {
                    // Its answer would speak for a session that is another connection's.
                    self.out.truncate(before);
                    self.refuse_taken_over();
                }
            }
            Ok(ServerEvent::Auth(auth)) => self.on_auth(auth),
            Ok(ServerEvent::Connect(_)) => {}
        }
    }

    /// Whether a message of QoS 2 that the client sends again is stored, or is in a record of this very turn. One that an
    /// earlier connection has not appended yet is neither.
    fn may_acknowledge_again(&self, id: PacketId) -> bool {
        let inner = self.open.session.lock();
        let known = inner.unreleased(id);
        known.is_some_and(|message| message.is_durable) || self.publications.has_unreleased(id)
    }

    /// Ends a connection whose session another one has.
    pub(crate) fn refuse_taken_over(&mut self) {
        let code = ReasonCode::SessionTakenOver;
        self.refuse(code, code.name());
    }

    /// Notes in the session what an acknowledgement says. Returns whether the connection still has the session.
    fn note_progress(&self, broker: &Arc<Broker>, packet: &Packet<'_>, buffers: &mut TurnBuffers) -> bool {
        let session = &self.open.session;
        let mut inner = session.lock();
        if !inner.belongs_to(self.open.epoch) {
            return false;
        }
        match packet {
            Packet::Pubrel(ack) if session.is_persistent() => {
                // PUBCOMP frees the identifier, so a crash must not bring the message back.
                broker.note_released(session, &mut inner, ack.packet_id, &mut buffers.batch);
                buffers.is_awaited = true;
            }
            Packet::Pubrec(ack) if !ack.code.is_error() => {
                if let Some(number) = inner.queue.mark_received(ack.packet_id)
                    && session.is_persistent()
                {
                    // PUBREL frees the identifier at the client, so a crash must not send the message again.
                    let received = BrokerRecord::Received {
                        session: session.number,
                        number,
                    };
                    push(&received, &mut buffers.scratch, &mut buffers.batch);
                    buffers.is_awaited = true;
                }
            }
            Packet::Puback(ack) | Packet::Pubrec(ack) | Packet::Pubcomp(ack) => {
                let is_settled = inner.queue.settle(ack.packet_id).is_some();
                if let Some(congestion) = inner.congestion.as_mut().filter(|_| is_settled) {
                    congestion.note_taken();
                }
            }
            _ => {}
        }
        broker.note(session, &mut inner);
        true
    }

    /// Answers a PUBLISH.
    fn acknowledge(&mut self, publish: &PublishPacket<'_>, code: ReasonCode) {
        let Some(id) = publish.packet_id else { return };
        let written = match publish.qos {
            QoS::ExactlyOnce => self.mqtt.pubrec(id, code, &mut self.out),
            _ => self.mqtt.puback(id, code, &mut self.out),
        };
        debug_assert!(written.is_ok(), "the code belongs to the packet");
    }

    /// Refuses a message: before MQTT 5 there is no other way than to end the connection.
    fn refuse_publish(&mut self, publish: &PublishPacket<'_>, code: ReasonCode) {
        if self.mqtt.version().is_v5() {
            self.acknowledge(publish, code);
        } else {
            self.refuse(code, "the message is refused");
        }
    }

    /// Why the client may not publish to a topic, if it may not.
    pub(crate) fn refusal_of(&self, broker: &Broker, topic: &str) -> Option<ReasonCode> {
        if !topic::is_valid_name(topic) || topic.starts_with('$') || !broker.has_levels(topic) {
            return Some(ReasonCode::TopicNameInvalid);
        }
        let is_denied = self.rules.as_ref().is_some_and(|rules| !rules.may_publish(topic));
        is_denied.then_some(ReasonCode::NotAuthorized)
    }

    fn on_publish(&mut self, broker: &Arc<Broker>, publish: &PublishPacket<'_>, buffers: &mut TurnBuffers) {
        let session = self.open.session.clone();
        let topic = self.mqtt.topic(publish);
        let stats = &broker.stats;
        stats.received.fetch_add(1, Ordering::Relaxed);
        session.counters().count_received(publish.qos);
        stats
            .received_bytes
            .fetch_add(publish.payload.len() as u64, Ordering::Relaxed);
        if !has_room(self.incoming.as_deref()) {
            stats.dropped.fetch_add(1, Ordering::Relaxed);
            return self.refuse_publish(publish, ReasonCode::QuotaExceeded);
        }
        if topic.starts_with('$') && !self.mqtt.version().is_v5() {
            // Topics of the server's own (§4.7.2): before MQTT 5, a client that is acknowledged needs not be cut off.
            stats.dropped.fetch_add(1, Ordering::Relaxed);
            return self.acknowledge(publish, ReasonCode::Success);
        }
        if let Some(code) = self.refusal_of(broker, topic) {
            return self.refuse_publish(publish, code);
        }
        // What nobody may publish takes nothing from the others. What a bridge brings is another broker's, which would lose it.
        if !session.is_bridge() && !broker.limits.admits() {
            stats.dropped.fetch_add(1, Ordering::Relaxed);
            return self.refuse_publish(publish, ReasonCode::QuotaExceeded);
        }
        let message = Arc::new(BrokerMessage::of(publish, topic, broker.clock.now_ms()));
        let unreleased = publish
            .packet_id
            .filter(|_| publish.qos == QoS::ExactlyOnce && session.is_persistent());
        if unreleased.is_some() && !session.lock().belongs_to(self.open.epoch) {
            // Its other connection gets it from the client again.
            return self.refuse_taken_over();
        }
        if message.retain && !broker.retain(&message) {
            return self.refuse_publish(publish, ReasonCode::QuotaExceeded);
        }
        if let Some(id) = unreleased {
            let mut inner = session.lock();
            if !inner.belongs_to(self.open.epoch) {
                drop(inner);
                return self.refuse_taken_over();
            }
            inner.add_unreleased(id, false);
            drop(inner);
            self.publications.push_unreleased(&session, id);
        }
        if !std::mem::take(&mut buffers.has_found) {
            broker.find_subscribers(topic, &mut buffers.found);
        }
        let record = broker.route(
            &session,
            unreleased,
            &message,
            &mut buffers.found,
            &mut self.publications,
        );
        if !record.is_empty() {
            push(
                &BrokerRecord::Published(record),
                &mut buffers.scratch,
                &mut buffers.batch,
            );
            buffers.is_awaited |= publish.qos != QoS::AtMostOnce;
        }
        self.acknowledge(publish, ReasonCode::Success);
    }

    fn on_subscribe(
        &mut self,
        broker: &Arc<Broker>,
        subscribe: &SubscribePacket<'_>,
        buffers: &mut TurnBuffers,
    ) {
        let session = self.open.session.clone();
        let id = subscribe.properties.subscription_identifier().unwrap_or(0);
        let mut codes = Vec::with_capacity(subscribe.filters.len());
        let mut retained = Vec::new();
        let mut seen = FxHashSet::default();
        for entry in subscribe.filters.iter() {
            let filter = match entry.parse() {
                Ok(filter) if broker.has_levels(filter.filter) => filter,
                _ => {
                    codes.push(ReasonCode::TopicFilterInvalid);
                    continue;
                }
            };
            if filter.share_name.is_some() && entry.options.no_local {
                return self.refuse(
                    ReasonCode::ProtocolError,
                    "a shared subscription that excludes own messages",
                );
            }
            if broker.is_refused(filter.filter) {
                codes.push(ReasonCode::UnspecifiedError);
                continue;
            }
            if self
                .rules
                .as_ref()
                .is_some_and(|rules| !rules.may_subscribe(filter.filter))
            {
                codes.push(ReasonCode::NotAuthorized);
                continue;
            }
            let subscription = StoredSubscription {
                options: entry.options,
                id,
            };
            let batch = &mut buffers.batch;
            match broker.subscribe(&session, entry.filter, filter, subscription, batch) {
                Ok(is_new) => {
                    codes.push(match entry.options.qos {
                        QoS::AtMostOnce => ReasonCode::Success,
                        QoS::AtLeastOnce => ReasonCode::GrantedQos1,
                        QoS::ExactlyOnce => ReasonCode::GrantedQos2,
                    });
                    let is_sent = match entry.options.retain_handling {
                        RetainHandling::Send => true,
                        RetainHandling::SendIfNew => is_new,
                        RetainHandling::DoNotSend => false,
                    };
                    // A filter that comes many times in one packet gets its retained messages once.
                    let is_sent = is_sent && filter.share_name.is_none() && seen.insert(entry.filter);
                    if is_sent && retained.len() < broker.options.max_retained {
                        let mut found = Vec::new();
                        broker.retained.read().collect(filter.filter, &mut found);
                        retained.extend(found.into_iter().map(|message| (message, subscription)));
                    }
                }
                Err(code) => codes.push(code),
            }
        }
        buffers.is_awaited |= !buffers.batch.is_empty();
        let suback = SubackPacket::new(subscribe.packet_id, &codes[..]);
        let written = suback.encode(self.mqtt.version(), &mut self.out);
        debug_assert!(written.is_ok(), "the codes belong to SUBACK");
        self.send_retained(broker, retained, buffers);
    }

    /// Lets the retained messages of new subscriptions follow.
    fn send_retained(
        &mut self,
        broker: &Arc<Broker>,
        retained: Vec<(Arc<BrokerMessage>, StoredSubscription)>,
        buffers: &mut TurnBuffers,
    ) {
        let session = self.open.session.clone();
        let bytes: usize = retained.iter().map(|(message, _)| message.memory()).sum();
        let is_durable =
            session.is_persistent() && retained.len() <= DURABLE_RETAINED && bytes <= DURABLE_RETAINED_BYTES;
        for (message, subscription) in retained {
            let options = DeliveryOptions {
                qos: message.qos.min(subscription.options.qos),
                retain: true,
                subscription_ids: Some(subscription.id).filter(|id| *id != 0).into_iter().collect(),
            };
            if !is_durable || options.qos == QoS::AtMostOnce {
                if !self.backlog.push(message, options) {
                    broker.count_dropped(&session);
                }
                continue;
            }
            if let Some((number, options)) = broker.enqueue(&session, &message, options) {
                let record = PublishedRecord {
                    unreleased: None,
                    is_retained: false,
                    deliveries: vec![(session.number, number, options)],
                    message,
                };
                push(
                    &BrokerRecord::Published(record),
                    &mut buffers.scratch,
                    &mut buffers.batch,
                );
                self.publications.push(&session, number);
            }
        }
    }

    fn on_unsubscribe(
        &mut self,
        broker: &Arc<Broker>,
        unsubscribe: &UnsubscribePacket<'_>,
        buffers: &mut TurnBuffers,
    ) {
        let session = self.open.session.clone();
        let codes: Vec<_> = unsubscribe
            .filters
            .iter()
            .map(|filter| {
                if broker.unsubscribe(&session, filter, &mut buffers.batch) {
                    ReasonCode::Success
                } else {
                    ReasonCode::NoSubscriptionExisted
                }
            })
            .collect();
        buffers.is_awaited |= !buffers.batch.is_empty();
        let unsuback = UnsubackPacket::new(unsubscribe.packet_id, &codes[..]);
        let written = unsuback.encode(self.mqtt.version(), &mut self.out);
        debug_assert!(written.is_ok(), "the codes belong to UNSUBACK");
    }
}

impl Broker {
    /// Whether a topic or filter has no more levels than permitted.
    pub(crate) fn has_levels(&self, topic: &str) -> bool {
        let separators = topic.bytes().filter(|byte| *byte == b'/').count();
        separators < self.options.max_topic_levels
    }

    /// Whether nobody may subscribe to a filter.
    pub(crate) fn is_refused(&self, filter: &str) -> bool {
        self.options
            .refused_filters
            .iter()
            .any(|refused| refused == filter)
    }

    /// The session expiry interval that a client gets which asks for one.
    pub(crate) fn granted_expiry(&self, asked_s: u32) -> u32 {
        let longest = u32::try_from(self.options.max_session_expiry.0.as_secs()).unwrap_or(u32::MAX);
        asked_s.min(longest)
    }
}
