//! The common part of both sides of a connection: flow control, topic aliases, the peer's limits.

use super::alias::{OutboundAlias, TopicAliases};
use super::error::{SessionError, SessionErrorKind, SessionSendError};
use super::inflight::{AckOutcome, InflightMessage, InflightQueue, Redelivery};
use crate::error::MqttEncodeError;
use crate::packet::{
    AckPacket, PacketType, PublishPacket, PublishParts, PublishTarget, PublishTemplate, encode_puback,
};
use crate::properties::MqttProperties;
use crate::reason::ReasonCode;
use crate::version::{MqttProtocolVersion, PacketId, QoS};
use crate::wire::MAX_PACKET_SIZE;

/// The limits that one side sets itself.
///
/// The session takes the limits negotiated in MQTT 5 from the CONNECT and CONNACK that it processes: it enforces the
/// receive maximum and the topic alias maximum that this side announced in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// The largest packet to decode.
    pub max_packet_size: u32,
    /// Most unacknowledged outgoing messages of QoS 1 and 2, if the peer allows as many.
    pub max_in_flight: u16,
    /// Most topic aliases assigned to outgoing messages, if the peer allows as many.
    pub max_outbound_aliases: u16,
    /// Most unreleased incoming messages of QoS 2 to remember before MQTT 5, which negotiates this number.
    pub max_unreleased: u16,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_packet_size: 256 * 1024,
            max_in_flight: 100,
            max_outbound_aliases: 0,
            max_unreleased: 1000,
        }
    }
}

/// The state that outlives a connection: messages in flight to the peer, and the QoS 2 messages it has yet to release.
#[derive(Debug)]
pub struct SessionState<T> {
    pub(super) outbound: InflightQueue<T>,
    pub(super) unreleased: Vec<PacketId>,
}

impl<T> SessionState<T> {
    /// Makes the state of a session that the application has kept itself: the messages in flight in the order of
    /// sending, and the identifiers of the messages of QoS 2 that the peer has yet to release.
    pub fn new(
        in_flight: impl IntoIterator<Item = InflightMessage<T>>,
        mut unreleased: Vec<PacketId>,
    ) -> Self {
        unreleased.sort_unstable();
        Self {
            outbound: InflightQueue::restore(in_flight),
            unreleased,
        }
    }

    /// Returns whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.outbound.len() == 0 && self.unreleased.is_empty()
    }

    /// Returns the number of outgoing messages that wait for an acknowledgement.
    pub fn in_flight(&self) -> usize {
        self.outbound.len()
    }
}

/// Whether a PUBLISH is a new message or a repeated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InboundDelivery {
    New,
    Repeated,
}

/// A message settled by an acknowledgement from the peer.
#[derive(Debug)]
pub(super) struct AcknowledgedMessage<T> {
    pub(super) packet_id: PacketId,
    pub(super) code: ReasonCode,
    pub(super) message: T,
}

/// The common part of [`super::ServerSession`] and [`super::ClientSession`].
#[derive(Debug)]
pub(super) struct SessionCore<T> {
    pub(super) version: MqttProtocolVersion,
    pub(super) limits: SessionLimits,
    pub(super) outbound: InflightQueue<T>,
    /// QoS 2 messages the peer has yet to release, sorted.
    unreleased: Vec<PacketId>,
    /// Messages of the peer that this side has yet to settle on this connection.
    unsettled: u32,
    /// Whether the connection goes on with a session: what an earlier one has settled may be repeated.
    recovers: bool,
    receive_maximum: u16,
    inbound_alias_maximum: u16,
    outbound_alias_maximum: u16,
    peer_max_packet_size: u32,
    aliases: Option<Box<TopicAliases>>,
}

impl<T> SessionCore<T> {
    pub(super) const fn new(version: MqttProtocolVersion, limits: SessionLimits) -> Self {
        Self {
            version,
            limits,
            outbound: InflightQueue::new(limits.max_in_flight),
            unreleased: Vec::new(),
            unsettled: 0,
            recovers: false,
            receive_maximum: u16::MAX,
            inbound_alias_maximum: 0,
            outbound_alias_maximum: 0,
            peer_max_packet_size: MAX_PACKET_SIZE,
            aliases: None,
        }
    }

    /// Applies the limits that the peer announced in its CONNECT or CONNACK.
    pub(super) fn set_peer_limits(&mut self, properties: &MqttProperties<'_>) {
        let receive_maximum = properties.receive_maximum().unwrap_or(u16::MAX);
        self.outbound
            .set_window(receive_maximum.min(self.limits.max_in_flight));
        self.peer_max_packet_size = properties.maximum_packet_size().unwrap_or(MAX_PACKET_SIZE);
        let aliases = properties.topic_alias_maximum().unwrap_or(0);
        self.outbound_alias_maximum = aliases.min(self.limits.max_outbound_aliases);
    }

    /// Applies the limits that this side announced.
    pub(super) fn set_own_limits(&mut self, properties: &MqttProperties<'_>) {
        self.receive_maximum = properties.receive_maximum().unwrap_or(u16::MAX);
        self.inbound_alias_maximum = properties.topic_alias_maximum().unwrap_or(0);
    }

    /// Clears the state of the previous connection; messages in flight wait for retransmission.
    pub(super) fn begin_connection(&mut self, resumed: bool) {
        self.aliases = None;
        self.unsettled = 0;
        self.recovers = resumed;
        if !resumed {
            self.unreleased = Vec::new();
        }
        self.outbound.begin_connection(resumed);
    }

    pub(super) fn take_state(&mut self) -> SessionState<T> {
        let outbound = std::mem::replace(&mut self.outbound, InflightQueue::new(self.limits.max_in_flight));
        SessionState {
            outbound,
            unreleased: std::mem::take(&mut self.unreleased),
        }
    }

    pub(super) fn put_state(&mut self, state: SessionState<T>) {
        let window = self.outbound.window();
        self.outbound = state.outbound;
        self.outbound.set_window(window);
        self.unreleased = state.unreleased;
    }

    /// Accounts for a message of the peer. QoS 0 and 1 cost at most a counter.
    #[inline]
    pub(super) fn on_publish(
        &mut self,
        publish: &PublishPacket<'_>,
    ) -> Result<InboundDelivery, SessionError> {
        if publish.properties.has_topic_alias() {
            self.learn_alias(publish)?;
        }
        let Some(id) = publish.packet_id else {
            return Ok(InboundDelivery::New);
        };
        if self.version.is_v5() && self.unsettled >= u32::from(self.receive_maximum) {
            return Err(SessionError::new(
                SessionErrorKind::ReceiveMaximum,
                "receive maximum exceeded",
            ));
        }
        self.unsettled = self.unsettled.saturating_add(1);
        if publish.qos == QoS::ExactlyOnce {
            self.on_exactly_once(id)
        } else {
            Ok(InboundDelivery::New)
        }
    }

    fn on_exactly_once(&mut self, id: PacketId) -> Result<InboundDelivery, SessionError> {
        let Err(index) = self.unreleased.binary_search(&id) else {
            return Ok(InboundDelivery::Repeated);
        };
        let limit = if self.version.is_v5() {
            u16::MAX
        } else {
            self.limits.max_unreleased
        };
        if self.unreleased.len() >= usize::from(limit) {
            return Err(SessionError::new(
                SessionErrorKind::ReceiveMaximum,
                "too many unreleased messages",
            ));
        }
        self.unreleased.insert(index, id);
        Ok(InboundDelivery::New)
    }

    fn learn_alias(&mut self, publish: &PublishPacket<'_>) -> Result<(), SessionError> {
        let alias = publish.properties.topic_alias().unwrap_or(0);
        if alias == 0 || alias > self.inbound_alias_maximum {
            return Err(SessionError::new(
                SessionErrorKind::TopicAlias,
                "topic alias out of range",
            ));
        }
        if publish.topic.is_empty() {
            return match self
                .aliases
                .as_ref()
                .and_then(|aliases| aliases.inbound.get(alias))
            {
                Some(_) => Ok(()),
                None => Err(SessionError::protocol("topic alias has not been set")),
            };
        }
        self.aliases
            .get_or_insert_default()
            .inbound
            .set(alias, publish.topic)
    }

    /// Returns the topic of a message, resolving an alias.
    #[inline]
    pub(super) fn topic<'s>(&'s self, publish: &PublishPacket<'s>) -> &'s str {
        if !publish.topic.is_empty() {
            return publish.topic;
        }
        let alias = publish.properties.topic_alias();
        self.aliases
            .as_ref()
            .zip(alias)
            .and_then(|(aliases, alias)| aliases.inbound.get(alias))
            .unwrap_or_default()
    }

    /// Writes the PUBACK for a message.
    #[inline]
    pub(super) fn puback(
        &mut self,
        id: PacketId,
        code: ReasonCode,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        if code == ReasonCode::Success {
            encode_puback(id, out);
        } else {
            AckPacket::new(id, code).encode(PacketType::Puback, self.version, out)?;
        }
        self.unsettled = self.unsettled.saturating_sub(1);
        if !self.unreleased.is_empty() {
            // A server that grants less than QoS 2 may answer such a message this way, which completes it.
            self.release(id);
        }
        Ok(())
    }

    /// Drops a message that gets no answer.
    pub(super) fn skip_ack(&mut self, id: PacketId) {
        self.unsettled = self.unsettled.saturating_sub(1);
        self.release(id);
    }

    /// Writes the PUBREC for a message of QoS 2; a refusal completes it.
    pub(super) fn pubrec(
        &mut self,
        id: PacketId,
        code: ReasonCode,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        AckPacket::new(id, code).encode(PacketType::Pubrec, self.version, out)?;
        if code.is_error() && self.version.is_v5() {
            self.unsettled = self.unsettled.saturating_sub(1);
            self.release(id);
        }
        Ok(())
    }

    fn release(&mut self, id: PacketId) -> bool {
        let Ok(index) = self.unreleased.binary_search(&id) else {
            return false;
        };
        self.unreleased.remove(index);
        if self.unreleased.is_empty() {
            self.unreleased = Vec::new();
        }
        true
    }

    /// Processes a PUBREL and writes its PUBCOMP.
    pub(super) fn on_pubrel(&mut self, ack: &AckPacket<'_>, out: &mut Vec<u8>) {
        let code = if self.release(ack.packet_id) {
            self.unsettled = self.unsettled.saturating_sub(1);
            ReasonCode::Success
        } else if self.recovers {
            // The PUBCOMP of before may not have arrived (MQTT 5 §3.7.2.1).
            ReasonCode::Success
        } else {
            ReasonCode::PacketIdentifierNotFound
        };
        self.write_ack(PacketType::Pubcomp, ack.packet_id, code, out);
    }

    /// Writes a PUBREL or PUBCOMP, whose code is chosen here and always valid.
    fn write_ack(&self, packet_type: PacketType, id: PacketId, code: ReasonCode, out: &mut Vec<u8>) {
        let written = AckPacket::new(id, code).encode(packet_type, self.version, out);
        debug_assert!(written.is_ok(), "PUBREL and PUBCOMP carry success or not found");
    }

    pub(super) fn on_puback(
        &mut self,
        ack: &AckPacket<'_>,
    ) -> Result<Option<AcknowledgedMessage<T>>, SessionError> {
        match self.outbound.on_puback(ack.packet_id) {
            AckOutcome::Settled(message) => Ok(Some(AcknowledgedMessage {
                packet_id: ack.packet_id,
                code: ack.code,
                message,
            })),
            AckOutcome::Repeated | AckOutcome::Unknown => Ok(None),
            AckOutcome::Mismatch => Err(SessionError::protocol("PUBACK for a message of QoS 2")),
        }
    }

    /// Processes a PUBREC and writes its PUBREL, unless the peer refuses the message.
    pub(super) fn on_pubrec(
        &mut self,
        ack: &AckPacket<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<AcknowledgedMessage<T>>, SessionError> {
        let AckPacket { packet_id, code, .. } = *ack;
        let answer = self.outbound.on_pubrec(packet_id, code.is_error());
        let release = match answer {
            AckOutcome::Mismatch => return Err(SessionError::protocol("PUBREC for a message of QoS 1")),
            AckOutcome::Unknown => ReasonCode::PacketIdentifierNotFound,
            AckOutcome::Settled(_) | AckOutcome::Repeated => ReasonCode::Success,
        };
        if !code.is_error() {
            self.write_ack(PacketType::Pubrel, packet_id, release, out);
        }
        Ok(match answer {
            AckOutcome::Settled(message) => Some(AcknowledgedMessage {
                packet_id,
                code,
                message,
            }),
            _ => None,
        })
    }

    pub(super) fn on_pubcomp(&mut self, ack: &AckPacket<'_>) -> Result<(), SessionError> {
        if self.outbound.on_pubcomp(ack.packet_id) {
            Ok(())
        } else {
            Err(SessionError::protocol(
                "PUBCOMP for a message that has not been received",
            ))
        }
    }

    /// Writes a message and, for QoS 1 and 2, adds an entry under a new identifier that `is_taken` does not claim.
    #[inline]
    pub(super) fn publish(
        &mut self,
        publish: &PublishPacket<'_>,
        message: T,
        is_taken: impl Fn(PacketId) -> bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, SessionSendError> {
        let packet_id = self.next_id(publish.qos, is_taken)?;
        self.write_publish(publish, packet_id, message, out)?;
        Ok(packet_id)
    }

    /// Writes a message of QoS 1 or 2 under an identifier that the caller has chosen.
    pub(super) fn publish_as(
        &mut self,
        publish: &PublishPacket<'_>,
        packet_id: PacketId,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionSendError> {
        if !self.outbound.can_send() || self.outbound.contains(packet_id) {
            return Err(SessionSendError::WindowFull);
        }
        self.write_publish(publish, Some(packet_id), message, out)
    }

    #[inline]
    fn write_publish(
        &mut self,
        publish: &PublishPacket<'_>,
        packet_id: Option<PacketId>,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionSendError> {
        let plan = self.plan_alias(publish);
        let (topic, alias) = match plan {
            OutboundAlias::Known(alias) => ("", Some(alias)),
            OutboundAlias::New(alias) => (publish.topic, Some(alias)),
            OutboundAlias::None => (publish.topic, None),
        };
        let parts = PublishParts {
            publish,
            target: PublishTarget {
                topic,
                alias,
                packet_id,
                dup: false,
            },
        };
        if parts.frame_len(self.version) > self.peer_max_packet_size as usize {
            return Err(SessionSendError::PacketTooLarge);
        }
        parts.encode(self.version, out)?;
        out.extend_from_slice(publish.payload);
        if let OutboundAlias::New(alias) = plan {
            self.aliases
                .get_or_insert_default()
                .outbound
                .commit(publish.topic, alias);
        }
        if let Some(id) = packet_id {
            self.outbound.push(id, publish.qos, message);
        }
        Ok(())
    }

    /// Writes a message that is already encoded.
    #[inline]
    pub(super) fn publish_template(
        &mut self,
        template: &PublishTemplate,
        message: T,
        is_taken: impl Fn(PacketId) -> bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, SessionSendError> {
        if template.encoded_len() > self.peer_max_packet_size as usize {
            return Err(SessionSendError::PacketTooLarge);
        }
        let packet_id = self.next_id(template.qos(), is_taken)?;
        template.write(packet_id, out);
        if let Some(id) = packet_id {
            self.outbound.push(id, template.qos(), message);
        }
        Ok(packet_id)
    }

    #[inline]
    fn next_id(
        &mut self,
        qos: QoS,
        is_taken: impl Fn(PacketId) -> bool,
    ) -> Result<Option<PacketId>, SessionSendError> {
        if qos == QoS::AtMostOnce {
            return Ok(None);
        }
        if !self.outbound.can_send() {
            return Err(SessionSendError::WindowFull);
        }
        self.outbound
            .allocate(is_taken)
            .map(Some)
            .ok_or(SessionSendError::WindowFull)
    }

    fn plan_alias(&self, publish: &PublishPacket<'_>) -> OutboundAlias {
        if self.outbound_alias_maximum == 0 || publish.properties.has_topic_alias() {
            return OutboundAlias::None;
        }
        match &self.aliases {
            Some(aliases) => aliases.outbound.plan(publish.topic, self.outbound_alias_maximum),
            None => TopicAliases::default()
                .outbound
                .plan(publish.topic, self.outbound_alias_maximum),
        }
    }

    /// Returns the next message to retransmit; a PUBREL is written at once.
    pub(super) fn next_redelivery(&mut self, out: &mut Vec<u8>) -> Option<Redelivery<'_, T>> {
        let next = self.outbound.next_redelivery()?;
        if let Redelivery::Pubrel { packet_id } = next {
            let written =
                AckPacket::new(packet_id, ReasonCode::Success).encode(PacketType::Pubrel, self.version, out);
            debug_assert!(written.is_ok(), "success belongs to PUBREL");
        }
        Some(next)
    }

    /// Returns whether the peer accepts a packet of this size.
    pub(super) const fn fits_peer(&self, len: usize) -> bool {
        len <= self.peer_max_packet_size as usize
    }
}
