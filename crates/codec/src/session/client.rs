//! The client side of a connection.

use super::error::{SessionError, SessionErrorKind, SessionSendError};
use super::exchange::{AcknowledgedMessage, InboundDelivery, SessionCore, SessionLimits, SessionState};
use super::inflight::Redelivery;
use super::keep_alive::KeepAliveInterval;
use crate::error::MqttEncodeError;
use crate::packet::{
    AuthPacket, ConnackPacket, ConnectPacket, DisconnectPacket, Packet, PublishPacket, PublishTemplate,
    SubackPacket, SubscribeFilters, SubscribePacket, UnsubackPacket, UnsubscribeFilters, UnsubscribePacket,
    encode_pingreq,
};
use crate::properties::MqttProperties;
use crate::reason::ReasonCode;
use crate::version::{MqttProtocolVersion, PacketId, QoS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientSessionPhase {
    New,
    /// CONNECT has been written; its answer is pending.
    Connecting,
    Connected,
    Closed,
}

/// The answer that a SUBSCRIBE or UNSUBSCRIBE waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingAck {
    Suback,
    Unsuback,
}

/// Most SUBSCRIBE and UNSUBSCRIBE packets that wait for an answer.
const MAX_PENDING: usize = 1024;

/// The action that a packet from the server requires of the application.
#[derive(Debug)]
pub enum ClientEvent<'p, T> {
    /// The connection is accepted.
    Connected(&'p ConnackPacket<'p>),
    /// The connection is refused; close.
    Refused(&'p ConnackPacket<'p>),
    /// Accept the message, then answer QoS 1 with PUBACK and QoS 2 with PUBREC.
    Publish(&'p PublishPacket<'p>),
    /// A message of QoS 2 that was accepted before; only answer it with PUBREC.
    PublishAgain(&'p PublishPacket<'p>),
    /// The server has answered SUBSCRIBE.
    Subscribed(&'p SubackPacket<'p>),
    /// The server has answered UNSUBSCRIBE.
    Unsubscribed(&'p UnsubackPacket<'p>),
    /// Continue enhanced authentication.
    Auth(&'p AuthPacket<'p>),
    /// The server ends the connection; close.
    Disconnect(&'p DisconnectPacket<'p>),
    /// The server has settled a message: it accepted the message, or refused it with an error code.
    Acknowledged {
        /// The identifier of the message.
        packet_id: PacketId,
        /// The outcome.
        code: ReasonCode,
        /// The value that the application passed when it published.
        message: T,
    },
    /// No action is required.
    Handled,
}

/// The state of one connection at the client, and of its session.
///
/// `T` is the application's data about an outgoing message, kept until the message is acknowledged.
#[derive(Debug)]
pub struct ClientSession<T = ()> {
    exchange: SessionCore<T>,
    last_sent_ms: u64,
    pending: Vec<(PacketId, PendingAck)>,
    keep_alive: KeepAliveInterval,
    phase: ClientSessionPhase,
    awaits_pingresp: bool,
    authenticates: bool,
    clean_start: bool,
    max_qos: QoS,
    retain_available: bool,
}

impl<T> ClientSession<T> {
    /// Makes a session that is not connected yet.
    pub const fn new(version: MqttProtocolVersion, limits: SessionLimits) -> Self {
        Self {
            exchange: SessionCore::new(version, limits),
            last_sent_ms: 0,
            pending: Vec::new(),
            keep_alive: KeepAliveInterval::from_secs(0),
            phase: ClientSessionPhase::New,
            awaits_pingresp: false,
            authenticates: false,
            clean_start: true,
            max_qos: QoS::ExactlyOnce,
            retain_available: true,
        }
    }

    /// Returns the version of the connection, for decoding and encoding.
    #[inline]
    pub const fn version(&self) -> MqttProtocolVersion {
        self.exchange.version
    }

    /// Returns the largest packet to decode.
    #[inline]
    pub const fn max_packet_size(&self) -> u32 {
        self.exchange.limits.max_packet_size
    }

    /// Returns whether the server has accepted the connection and it has not ended.
    pub const fn is_connected(&self) -> bool {
        matches!(self.phase, ClientSessionPhase::Connected)
    }

    /// Writes CONNECT on a fresh connection; the version of the session becomes that of the packet.
    pub fn connect(
        &mut self,
        connect: &ConnectPacket<'_>,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        connect.encode(out)?;
        self.exchange.version = connect.version();
        self.exchange.set_own_limits(&connect.properties);
        self.pending = Vec::new();
        self.keep_alive = KeepAliveInterval::from_secs(connect.keep_alive);
        self.awaits_pingresp = false;
        self.authenticates = connect.properties.has_authentication_method();
        self.clean_start = connect.clean_start;
        self.last_sent_ms = now_ms;
        self.phase = ClientSessionPhase::Connecting;
        Ok(())
    }

    /// Processes a packet, and writes the answers that need no decision.
    ///
    /// After an error, call [`Self::disconnect`] with its reason code and close.
    #[inline]
    pub fn receive<'p>(
        &mut self,
        packet: &'p Packet<'p>,
        out: &mut Vec<u8>,
    ) -> Result<ClientEvent<'p, T>, SessionError> {
        match (self.phase, packet) {
            (ClientSessionPhase::Connected, packet) => self.on_packet(packet, out),
            (ClientSessionPhase::Connecting, Packet::Connack(connack)) => Ok(self.on_connack(connack)),
            (ClientSessionPhase::Connecting, Packet::Auth(auth)) if self.authenticates => {
                Ok(ClientEvent::Auth(auth))
            }
            (ClientSessionPhase::Connecting, Packet::Disconnect(disconnect)) => {
                self.on_disconnect(disconnect)
            }
            (ClientSessionPhase::Connecting, _) => Err(SessionError::protocol("packet before CONNACK")),
            (ClientSessionPhase::New | ClientSessionPhase::Closed, _) => Err(SessionError::new(
                SessionErrorKind::NotConnected,
                "packet without a connection",
            )),
        }
    }

    fn on_packet<'p>(
        &mut self,
        packet: &'p Packet<'p>,
        out: &mut Vec<u8>,
    ) -> Result<ClientEvent<'p, T>, SessionError> {
        match packet {
            Packet::Puback(ack) => self.exchange.on_puback(ack).map(acknowledged_event),
            Packet::Publish(publish) => Ok(match self.exchange.on_publish(publish)? {
                InboundDelivery::New => ClientEvent::Publish(publish),
                InboundDelivery::Repeated => ClientEvent::PublishAgain(publish),
            }),
            Packet::Pubrec(ack) => self.exchange.on_pubrec(ack, out).map(acknowledged_event),
            Packet::Pubrel(ack) => {
                self.exchange.on_pubrel(ack, out);
                Ok(ClientEvent::Handled)
            }
            Packet::Pubcomp(ack) => self.exchange.on_pubcomp(ack).map(|()| ClientEvent::Handled),
            Packet::Suback(suback) => {
                self.complete_pending(suback.packet_id, PendingAck::Suback)?;
                Ok(ClientEvent::Subscribed(suback))
            }
            Packet::Unsuback(unsuback) => {
                self.complete_pending(unsuback.packet_id, PendingAck::Unsuback)?;
                Ok(ClientEvent::Unsubscribed(unsuback))
            }
            Packet::Pingresp => {
                self.awaits_pingresp = false;
                Ok(ClientEvent::Handled)
            }
            Packet::Disconnect(disconnect) => self.on_disconnect(disconnect),
            Packet::Auth(auth) if self.authenticates => Ok(ClientEvent::Auth(auth)),
            Packet::Auth(_) => Err(SessionError::protocol("AUTH without enhanced authentication")),
            Packet::Connack(_) => Err(SessionError::protocol("second CONNACK")),
            Packet::Connect(_) | Packet::Subscribe(_) | Packet::Unsubscribe(_) | Packet::Pingreq => {
                Err(SessionError::protocol("packet that only a client sends"))
            }
        }
    }

    fn on_connack<'p>(&mut self, connack: &'p ConnackPacket<'p>) -> ClientEvent<'p, T> {
        if connack.code != ReasonCode::Success {
            self.phase = ClientSessionPhase::Closed;
            return ClientEvent::Refused(connack);
        }
        let properties = &connack.properties;
        self.phase = ClientSessionPhase::Connected;
        // CONNACK of 3.1 does not say whether a session is present, so the client assumes that one it did not clean is.
        let resumed =
            connack.session_present || (self.version() == MqttProtocolVersion::V31 && !self.clean_start);
        self.exchange.begin_connection(resumed);
        self.exchange.set_peer_limits(properties);
        if let Some(secs) = properties.server_keep_alive() {
            self.keep_alive = KeepAliveInterval::from_secs(secs);
        }
        self.max_qos = properties.maximum_qos().unwrap_or(QoS::ExactlyOnce);
        self.retain_available = properties.retain_available().unwrap_or(true);
        ClientEvent::Connected(connack)
    }

    fn on_disconnect<'p>(
        &mut self,
        disconnect: &'p DisconnectPacket<'p>,
    ) -> Result<ClientEvent<'p, T>, SessionError> {
        if !self.version().is_v5() {
            return Err(SessionError::protocol("DISCONNECT from a server before MQTT 5"));
        }
        if disconnect.properties.session_expiry_interval().is_some() {
            return Err(SessionError::protocol(
                "session expiry from a server's DISCONNECT",
            ));
        }
        self.phase = ClientSessionPhase::Closed;
        Ok(ClientEvent::Disconnect(disconnect))
    }

    fn complete_pending(&mut self, packet_id: PacketId, answer: PendingAck) -> Result<(), SessionError> {
        match self
            .pending
            .iter()
            .position(|&entry| entry == (packet_id, answer))
        {
            Some(index) => {
                self.pending.swap_remove(index);
                if self.pending.is_empty() {
                    self.pending = Vec::new();
                }
                Ok(())
            }
            None => Err(SessionError::protocol(
                "SUBACK or UNSUBACK for an unknown identifier",
            )),
        }
    }

    /// Answers a message of QoS 1.
    pub fn puback(
        &mut self,
        packet_id: PacketId,
        code: ReasonCode,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        self.exchange.puback(packet_id, code, out)
    }

    /// Answers a message of QoS 2; an error code refuses it, and no PUBREL is expected then.
    pub fn pubrec(
        &mut self,
        packet_id: PacketId,
        code: ReasonCode,
        out: &mut Vec<u8>,
    ) -> Result<(), MqttEncodeError> {
        self.exchange.pubrec(packet_id, code, out)
    }

    /// Returns the topic of a message just received, resolving an alias.
    pub fn topic<'s>(&'s self, publish: &PublishPacket<'s>) -> &'s str {
        self.exchange.topic(publish)
    }

    /// Returns whether a message of QoS 1 or 2 can be sent now.
    pub fn can_send(&self) -> bool {
        self.is_connected() && self.exchange.outbound.can_send()
    }

    /// Returns the number of messages that wait for an acknowledgement.
    pub fn in_flight(&self) -> usize {
        self.exchange.outbound.len()
    }

    /// Returns the highest quality of service that the server takes.
    pub const fn max_qos(&self) -> QoS {
        self.max_qos
    }

    /// Returns whether the server takes retained messages.
    pub const fn is_retain_available(&self) -> bool {
        self.retain_available
    }

    /// Returns whether the server takes a packet of this size.
    pub const fn fits_server(&self, packet_size: usize) -> bool {
        self.exchange.fits_peer(packet_size)
    }

    /// Sends a message. The session sets its identifier and DUP flag, and a topic alias if that saves bytes.
    ///
    /// Returns the identifier for QoS 1 and 2; `message` is then kept until the acknowledgement.
    #[inline]
    pub fn publish(
        &mut self,
        publish: &PublishPacket<'_>,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, SessionSendError> {
        self.check_connected()?;
        if publish.qos > self.max_qos || (publish.retain && !self.retain_available) {
            return Err(SessionSendError::NotSupported);
        }
        let pending = &self.pending;
        self.exchange.publish(
            publish,
            message,
            |id| pending.iter().any(|entry| entry.0 == id),
            out,
        )
    }

    /// Sends a message that was already encoded in the version of this connection.
    #[inline]
    pub fn publish_template(
        &mut self,
        template: &PublishTemplate,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, SessionSendError> {
        self.check_connected()?;
        if template.qos() > self.max_qos || (template.retain() && !self.retain_available) {
            return Err(SessionSendError::NotSupported);
        }
        let pending = &self.pending;
        self.exchange.publish_template(
            template,
            message,
            |id| pending.iter().any(|entry| entry.0 == id),
            out,
        )
    }

    /// Sends SUBSCRIBE and returns the identifier of the expected SUBACK.
    pub fn subscribe(
        &mut self,
        filters: SubscribeFilters<'_>,
        properties: MqttProperties<'_>,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SessionSendError> {
        let packet_id = self.allocate_packet_id()?;
        let start = out.len();
        SubscribePacket {
            packet_id,
            properties,
            filters,
        }
        .encode(self.version(), out)?;
        self.await_answer(packet_id, PendingAck::Suback, start, out)
    }

    /// Sends UNSUBSCRIBE and returns the identifier of the expected UNSUBACK.
    pub fn unsubscribe(
        &mut self,
        filters: UnsubscribeFilters<'_>,
        properties: MqttProperties<'_>,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SessionSendError> {
        let packet_id = self.allocate_packet_id()?;
        let start = out.len();
        UnsubscribePacket {
            packet_id,
            properties,
            filters,
        }
        .encode(self.version(), out)?;
        self.await_answer(packet_id, PendingAck::Unsuback, start, out)
    }

    fn allocate_packet_id(&mut self) -> Result<PacketId, SessionSendError> {
        self.check_connected()?;
        if self.pending.len() >= MAX_PENDING {
            return Err(SessionSendError::WindowFull);
        }
        let pending = &self.pending;
        let id = self
            .exchange
            .outbound
            .allocate(|id| pending.iter().any(|entry| entry.0 == id));
        id.ok_or(SessionSendError::WindowFull)
    }

    fn await_answer(
        &mut self,
        packet_id: PacketId,
        answer: PendingAck,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SessionSendError> {
        if !self.exchange.fits_peer(out.len() - start) {
            out.truncate(start);
            return Err(SessionSendError::PacketTooLarge);
        }
        self.pending.push((packet_id, answer));
        Ok(packet_id)
    }

    const fn check_connected(&self) -> Result<(), SessionSendError> {
        if self.is_connected() {
            Ok(())
        } else {
            Err(SessionSendError::NotConnected)
        }
    }

    /// Ends the connection; close it once this is written.
    ///
    /// A code that is not valid in DISCONNECT is sent as unspecified error; before MQTT 5 no code is sent.
    pub fn disconnect(&mut self, code: ReasonCode, out: &mut Vec<u8>) {
        if self.is_connected() {
            let code = if code.is_valid_in(crate::PacketType::Disconnect) {
                code
            } else {
                ReasonCode::UnspecifiedError
            };
            let written = DisconnectPacket::new(code).encode(self.version(), out);
            debug_assert!(written.is_ok(), "the code belongs to DISCONNECT");
        }
        self.phase = ClientSessionPhase::Closed;
    }

    /// Records that something was sent, which postpones the next PINGREQ.
    #[inline]
    pub const fn mark_sent(&mut self, now_ms: u64) {
        self.last_sent_ms = now_ms;
    }

    /// Returns when [`Self::poll_keep_alive`] must be called; `None` without keep-alive.
    pub const fn keep_alive_due_ms(&self) -> Option<u64> {
        match self.phase {
            ClientSessionPhase::Connected => self.keep_alive.ping_due_ms(self.last_sent_ms),
            _ => None,
        }
    }

    /// Writes PINGREQ if it is due, or reports a server that has not answered one for a whole interval.
    pub fn poll_keep_alive(&mut self, now_ms: u64, out: &mut Vec<u8>) -> Result<(), SessionError> {
        if self.keep_alive_due_ms().is_none_or(|due| now_ms < due) {
            return Ok(());
        }
        if self.awaits_pingresp {
            return Err(SessionError::new(
                SessionErrorKind::KeepAlive,
                "server does not answer PINGREQ",
            ));
        }
        encode_pingreq(out);
        self.awaits_pingresp = true;
        self.last_sent_ms = now_ms;
        Ok(())
    }

    /// Takes the state that outlives the connection, to move it to another [`ClientSession`].
    pub fn take_state(&mut self) -> SessionState<T> {
        self.exchange.take_state()
    }

    /// Restores the state of an earlier connection; call it before [`Self::connect`].
    pub fn restore_state(&mut self, state: SessionState<T>) {
        self.exchange.put_state(state);
    }

    /// Returns the next message to retransmit; call it after reconnecting and after each acknowledgement until it
    /// returns `None`.
    pub fn next_redelivery(&mut self, out: &mut Vec<u8>) -> Option<Redelivery<'_, T>> {
        if !self.is_connected() {
            return None;
        }
        self.exchange.next_redelivery(out)
    }
}

fn acknowledged_event<'p, T>(settled: Option<AcknowledgedMessage<T>>) -> ClientEvent<'p, T> {
    match settled {
        Some(AcknowledgedMessage {
            packet_id,
            code,
            message,
        }) => ClientEvent::Acknowledged {
            packet_id,
            code,
            message,
        },
        None => ClientEvent::Handled,
    }
}
