//! The server side of a connection.

use super::error::{SessionError, SessionErrorKind, SessionSendError};
use super::exchange::{AcknowledgedMessage, InboundDelivery, SessionCore, SessionLimits, SessionState};
use super::inflight::Redelivery;
use super::keep_alive::KeepAliveInterval;
use crate::error::MqttEncodeError;
use crate::packet::{
    AuthPacket, ConnackPacket, ConnectPacket, DisconnectPacket, Packet, PacketType, PublishPacket,
    PublishTemplate, SubscribePacket, UnsubscribePacket, encode_pingresp,
};
use crate::properties::{MqttProperty, MqttPropertyBuf};
use crate::reason::ReasonCode;
use crate::version::{MqttProtocolVersion, PacketId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerSessionPhase {
    AwaitingConnect,
    /// CONNECT has been received; its answer is pending.
    Connecting,
    Connected,
    Closed,
}

/// The action that a packet from the client requires of the application.
#[derive(Debug)]
pub enum ServerEvent<'p, T> {
    /// Accept or refuse the connection.
    Connect(&'p ConnectPacket<'p>),
    /// Accept the message, then answer QoS 1 with PUBACK and QoS 2 with PUBREC.
    Publish(&'p PublishPacket<'p>),
    /// A message of QoS 2 that was accepted before; only answer it with PUBREC.
    PublishAgain(&'p PublishPacket<'p>),
    /// Answer with SUBACK.
    Subscribe(&'p SubscribePacket<'p>),
    /// Answer with UNSUBACK.
    Unsubscribe(&'p UnsubscribePacket<'p>),
    /// Continue enhanced authentication; its method must be that of CONNECT.
    Auth(&'p AuthPacket<'p>),
    /// The client has sent DISCONNECT; close.
    Disconnect(&'p DisconnectPacket<'p>),
    /// The client has settled a message: it accepted the message, or refused it with an error code.
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

/// The state of one connection at the server, and of its session.
///
/// `T` is the application's data about an outgoing message, kept until the message is acknowledged.
#[derive(Debug)]
pub struct ServerSession<T = ()> {
    exchange: SessionCore<T>,
    last_received_ms: u64,
    keep_alive: KeepAliveInterval,
    phase: ServerSessionPhase,
    authenticates: bool,
    expires_at_once: bool,
    wants_problem_information: bool,
}

impl<T> ServerSession<T> {
    /// Makes a session that waits for CONNECT.
    pub const fn new(limits: SessionLimits) -> Self {
        Self {
            exchange: SessionCore::new(MqttProtocolVersion::V311, limits),
            last_received_ms: 0,
            keep_alive: KeepAliveInterval::from_secs(0),
            phase: ServerSessionPhase::AwaitingConnect,
            authenticates: false,
            expires_at_once: true,
            wants_problem_information: true,
        }
    }

    /// Returns the version of the connection, for decoding and encoding; 3.1.1 before CONNECT.
    #[inline]
    pub const fn version(&self) -> MqttProtocolVersion {
        self.exchange.version
    }

    /// Returns the largest packet to decode.
    #[inline]
    pub const fn max_packet_size(&self) -> u32 {
        self.exchange.limits.max_packet_size
    }

    /// Returns whether the connection has been accepted and has not ended.
    pub const fn is_connected(&self) -> bool {
        matches!(self.phase, ServerSessionPhase::Connected)
    }

    /// Returns whether every packet may carry reason strings and user properties (MQTT 5 §3.1.2.11.7).
    pub const fn wants_problem_information(&self) -> bool {
        self.wants_problem_information
    }

    /// Returns the keep-alive in force.
    pub const fn keep_alive(&self) -> KeepAliveInterval {
        self.keep_alive
    }

    /// Returns when to drop the client unless it sends something; `None` without keep-alive.
    #[inline]
    pub const fn deadline_ms(&self) -> Option<u64> {
        self.keep_alive.deadline_ms(self.last_received_ms)
    }

    /// Processes a packet received at `now_ms`, and writes the answers that need no decision.
    ///
    /// After an error, call [`Self::disconnect`] with its reason code and close.
    #[inline]
    pub fn receive<'p>(
        &mut self,
        packet: &'p Packet<'p>,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<ServerEvent<'p, T>, SessionError> {
        self.last_received_ms = now_ms;
        match (self.phase, packet) {
            (ServerSessionPhase::Connected, Packet::Publish(publish)) => self.on_publish(publish),
            (ServerSessionPhase::AwaitingConnect, Packet::Connect(connect)) => {
                self.on_connect(connect);
                Ok(ServerEvent::Connect(connect))
            }
            (ServerSessionPhase::AwaitingConnect, _) => Err(SessionError::new(
                SessionErrorKind::NotConnected,
                "first packet is not CONNECT",
            )),
            (ServerSessionPhase::Closed, _) => Err(SessionError::new(
                SessionErrorKind::NotConnected,
                "packet after the end of the connection",
            )),
            (ServerSessionPhase::Connecting, packet)
                if self.authenticates && !matches!(packet, Packet::Auth(_) | Packet::Disconnect(_)) =>
            {
                Err(SessionError::protocol("packet during enhanced authentication"))
            }
            (ServerSessionPhase::Connecting | ServerSessionPhase::Connected, packet) => {
                self.on_packet(packet, out)
            }
        }
    }

    fn on_packet<'p>(
        &mut self,
        packet: &'p Packet<'p>,
        out: &mut Vec<u8>,
    ) -> Result<ServerEvent<'p, T>, SessionError> {
        match packet {
            Packet::Publish(publish) => self.on_publish(publish),
            Packet::Puback(ack) => self.exchange.on_puback(ack).map(acknowledged_event),
            Packet::Pubrec(ack) => self.exchange.on_pubrec(ack, out).map(acknowledged_event),
            Packet::Pubrel(ack) => {
                self.exchange.on_pubrel(ack, out);
                Ok(ServerEvent::Handled)
            }
            Packet::Pubcomp(ack) => self.exchange.on_pubcomp(ack).map(|()| ServerEvent::Handled),
            Packet::Subscribe(subscribe) => Ok(ServerEvent::Subscribe(subscribe)),
            Packet::Unsubscribe(unsubscribe) => Ok(ServerEvent::Unsubscribe(unsubscribe)),
            Packet::Pingreq => {
                encode_pingresp(out);
                Ok(ServerEvent::Handled)
            }
            Packet::Auth(auth) if self.authenticates => Ok(ServerEvent::Auth(auth)),
            Packet::Auth(_) => Err(SessionError::protocol("AUTH without enhanced authentication")),
            Packet::Disconnect(disconnect) => self.on_disconnect(disconnect),
            Packet::Connect(_) => Err(SessionError::protocol("second CONNECT")),
            Packet::Connack(_) | Packet::Suback(_) | Packet::Unsuback(_) | Packet::Pingresp => {
                Err(SessionError::protocol("packet that only a server sends"))
            }
        }
    }

    fn on_connect(&mut self, connect: &ConnectPacket<'_>) {
        let properties = &connect.properties;
        self.phase = ServerSessionPhase::Connecting;
        self.exchange.version = connect.version();
        self.exchange.set_peer_limits(properties);
        self.keep_alive = KeepAliveInterval::from_secs(connect.keep_alive);
        self.authenticates = properties.has_authentication_method();
        self.expires_at_once = properties.session_expiry_interval().unwrap_or(0) == 0;
        self.wants_problem_information = properties.request_problem_information().unwrap_or(true);
    }

    #[inline]
    fn on_publish<'p>(&mut self, publish: &'p PublishPacket<'p>) -> Result<ServerEvent<'p, T>, SessionError> {
        if publish.properties.has_subscription_identifier() {
            return Err(SessionError::protocol("subscription identifier from a client"));
        }
        match self.exchange.on_publish(publish)? {
            InboundDelivery::New => Ok(ServerEvent::Publish(publish)),
            InboundDelivery::Repeated => Ok(ServerEvent::PublishAgain(publish)),
        }
    }

    fn on_disconnect<'p>(
        &mut self,
        disconnect: &'p DisconnectPacket<'p>,
    ) -> Result<ServerEvent<'p, T>, SessionError> {
        let expiry = disconnect.properties.session_expiry_interval().unwrap_or(0);
        if expiry > 0 && self.expires_at_once {
            return Err(SessionError::protocol(
                "session expiry set by DISCONNECT but not by CONNECT",
            ));
        }
        self.phase = ServerSessionPhase::Closed;
        Ok(ServerEvent::Disconnect(disconnect))
    }

    /// Accepts the connection, and enforces the limits announced in the CONNACK.
    ///
    /// Its properties set the receive maximum, the topic alias maximum and the server's own keep-alive.
    pub fn accept(&mut self, connack: &ConnackPacket<'_>, out: &mut Vec<u8>) -> Result<(), MqttEncodeError> {
        connack.encode(self.version(), out)?;
        if self.version().is_v5() {
            self.exchange.set_own_limits(&connack.properties);
            if let Some(secs) = connack.properties.server_keep_alive() {
                self.keep_alive = KeepAliveInterval::from_secs(secs);
            }
            if let Some(secs) = connack.properties.session_expiry_interval() {
                self.expires_at_once = secs == 0;
            }
        }
        self.phase = ServerSessionPhase::Connected;
        Ok(())
    }

    /// Refuses the connection; close it once this is written.
    ///
    /// A code that is not valid in CONNACK is sent as unspecified error.
    pub fn refuse(&mut self, code: ReasonCode, out: &mut Vec<u8>) {
        let code = if code.is_valid_in(PacketType::Connack) {
            code
        } else {
            ReasonCode::UnspecifiedError
        };
        let written = ConnackPacket::new(code, false).encode(self.version(), out);
        debug_assert!(written.is_ok(), "the code belongs to CONNACK");
        self.phase = ServerSessionPhase::Closed;
    }

    /// Repeats the code of a refusal in a DISCONNECT. MQTT 5 §3.14 forbids this, and its table of codes lacks some of
    /// them. But ThingsBoard does it, and its own client detects a refusal by nothing else.
    pub fn repeat_refusal(&self, code: ReasonCode, out: &mut Vec<u8>) {
        if self.version().is_v5() {
            out.extend_from_slice(&[0xE0, 1, code.value()]);
        }
    }

    /// Ends the connection; close it once this is written.
    ///
    /// Only a connected client of MQTT 5 gets the reason. A code that is not valid in DISCONNECT is sent as unspecified
    /// error.
    pub fn disconnect(&mut self, code: ReasonCode, out: &mut Vec<u8>) {
        if self.is_connected() && self.version().is_v5() {
            let code = if code.is_valid_in(PacketType::Disconnect) {
                code
            } else {
                ReasonCode::UnspecifiedError
            };
            let written = DisconnectPacket::new(code).encode(self.version(), out);
            debug_assert!(written.is_ok(), "the code belongs to DISCONNECT");
        }
        self.phase = ServerSessionPhase::Closed;
    }

    /// Like [`Self::disconnect`], with a reason string if it fits into the client's maximum packet size.
    pub fn disconnect_with_reason(&mut self, code: ReasonCode, why: &str, out: &mut Vec<u8>) {
        let is_told =
            self.is_connected() && self.version().is_v5() && code.is_valid_in(PacketType::Disconnect);
        let mut properties = MqttPropertyBuf::new();
        if !is_told || properties.push(MqttProperty::ReasonString(why)).is_err() {
            return self.disconnect(code, out);
        }
        let before = out.len();
        let disconnect = DisconnectPacket {
            code,
            properties: properties.as_properties(),
        };
        let written = disconnect.encode(self.version(), out);
        if written.is_err() || !self.exchange.fits_peer(out.len() - before) {
            out.truncate(before);
            return self.disconnect(code, out);
        }
        self.phase = ServerSessionPhase::Closed;
    }

    /// Answers a message of QoS 1.
    #[inline]
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

    /// Records that a message of QoS 1 or 2 gets no answer, so that it does not count against the client's window.
    pub fn skip_ack(&mut self, publish: &PublishPacket<'_>) {
        if let Some(id) = publish.packet_id {
            self.exchange.skip_ack(id);
        }
    }

    /// Returns the topic of a message just received, resolving an alias.
    #[inline]
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

    /// Sends a message. The session sets its identifier and DUP flag, and a topic alias if that saves bytes.
    ///
    /// Returns the identifier for QoS 1 and 2; `message` is then kept until the acknowledgement.
    pub fn publish(
        &mut self,
        publish: &PublishPacket<'_>,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, SessionSendError> {
        if !self.is_connected() {
            return Err(SessionSendError::NotConnected);
        }
        self.exchange.publish(publish, message, |_| false, out)
    }

    /// Sends a message of QoS 1 or 2 under an identifier that the application has chosen, which makes a repetition after
    /// a crash recognisable. [`SessionSendError::WindowFull`] also stands for an identifier in use.
    pub fn publish_as(
        &mut self,
        publish: &PublishPacket<'_>,
        packet_id: PacketId,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionSendError> {
        if !self.is_connected() {
            return Err(SessionSendError::NotConnected);
        }
        self.exchange.publish_as(publish, packet_id, message, out)
    }

    /// Forgets a message in flight, which cannot be sent again: it exceeds the client's maximum packet size, for example.
    pub fn forget(&mut self, packet_id: PacketId) -> Option<T> {
        self.exchange.outbound.forget(packet_id)
    }

    /// Returns whether the client accepts a packet of this size.
    pub const fn fits_client(&self, packet_size: usize) -> bool {
        self.exchange.fits_peer(packet_size)
    }

    /// Sends a message that was already encoded in the version of this connection.
    pub fn publish_template(
        &mut self,
        template: &PublishTemplate,
        message: T,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, SessionSendError> {
        if !self.is_connected() {
            return Err(SessionSendError::NotConnected);
        }
        self.exchange.publish_template(template, message, |_| false, out)
    }

    /// Takes the state that outlives the connection, to keep it until the client returns.
    pub fn take_state(&mut self) -> SessionState<T> {
        self.exchange.take_state()
    }

    /// Restores the state of an earlier connection; call it between CONNECT and [`Self::accept`].
    ///
    /// Afterwards, call [`Self::next_redelivery`] until it returns `None` before sending new messages.
    pub fn restore_state(&mut self, state: SessionState<T>) {
        self.exchange.put_state(state);
        self.exchange.begin_connection(true);
    }

    /// Returns whether [`Self::next_redelivery`] has a message to retransmit now.
    pub fn has_redelivery(&self) -> bool {
        self.is_connected() && self.exchange.outbound.has_redelivery()
    }

    /// Returns the next message to retransmit; call it after [`Self::accept`] and after each acknowledgement until it
    /// returns `None`.
    pub fn next_redelivery(&mut self, out: &mut Vec<u8>) -> Option<Redelivery<'_, T>> {
        if !self.is_connected() {
            return None;
        }
        self.exchange.next_redelivery(out)
    }
}

fn acknowledged_event<'p, T>(settled: Option<AcknowledgedMessage<T>>) -> ServerEvent<'p, T> {
    match settled {
        Some(AcknowledgedMessage {
            packet_id,
            code,
            message,
        }) => ServerEvent::Acknowledged {
            packet_id,
            code,
            message,
        },
        None => ServerEvent::Handled,
    }
}
