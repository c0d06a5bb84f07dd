//! One of the two connections of a bridge.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use fieldline_codec::session::{ClientEvent, ClientSession, SessionLimits};
use fieldline_codec::{
    ConnectPacket, MqttProperties, MqttProperty, MqttPropertyBuf, MqttProtocolVersion, PacketId,
    PublishPacket, QoS, ReasonCode, SubscriptionBuf, SubscriptionOptions, TopicFilterBuf, decode_frame,
};
use fieldline_connectors::mqtt::BrokerStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::time::Instant;

use crate::retries::MessageRetries;

/// Largest packet that is taken, bytes.
pub(crate) const MAX_PACKET: u32 = (16 << 20) + 5;
/// Interval at which keep-alive is looked at.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// How long a side may take to let the bridge in.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
/// How long a side may take to hear that the bridge leaves.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);
/// Most messages of QoS 1 on their way to a side.
const MAX_IN_FLIGHT: u16 = 200;
/// From so many messages, or bytes of them, on their way to a side, no further ones are asked of the other side.
const MAX_HELD: usize = 70_000;
const MAX_HELD_BYTES: usize = 64 << 20;
/// How long a side may leave messages unanswered.
const ANSWER_WITHIN_MS: u64 = 120_000;
/// A side that was not heard for so long is asked whether it is there, whatever is sent to it.
const HEARD_WITHIN_MS: u64 = 30_000;
/// Output from which on messages wait, bytes.
const OUT_BYTES: usize = 256 << 10;
/// Room for one read, bytes.
const READ_BYTES: usize = 16 << 10;
/// A buffer that one large message has grown beyond this size gives the memory back, bytes.
const KEPT_BYTES: usize = 256 << 10;

/// A message that came from a side and is not acknowledged there yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedId {
    packet_id: PacketId,
    qos: QoS,
}

/// A message to send.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutgoingMessage {
    pub(crate) topic: String,
    pub(crate) payload: Bytes,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) properties: MqttPropertyBuf,
}

impl OutgoingMessage {
    /// About the memory that it takes, bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.topic.len() + self.payload.len() + self.properties.as_bytes().len()
    }
}

/// A message that is acknowledged where it comes from once the other side has it.
pub(crate) struct CarriedMessage {
    /// As it came.
    pub(crate) message: OutgoingMessage,
    pub(crate) received: ReceivedId,
    pub(crate) retries: MessageRetries,
}

/// Who is told what becomes of a message that is sent.
pub(crate) enum MessageOrigin {
    /// The side that it came from.
    Carried(Box<CarriedMessage>),
    /// Nobody: it came with QoS 0.
    Unacknowledged,
    /// Nobody: it only goes before another one.
    Preamble,
}

/// What a packet of this side asks of the bridge.
pub(crate) enum LegEvent {
    /// A message, and what to acknowledge it with.
    Received(OutgoingMessage, Option<ReceivedId>),
    /// The side has a message, or refuses it.
    Settled(MessageOrigin, ReasonCode),
    Handled,
}

/// How a connection begins.
pub(crate) struct LegLogin<'a> {
    pub(crate) version: MqttProtocolVersion,
    pub(crate) client_id: &'a str,
    pub(crate) username: Option<&'a str>,
    pub(crate) password: Option<&'a str>,
    pub(crate) keep_alive: u16,
    pub(crate) properties: MqttProperties<'a>,
}

/// See the module.
pub(crate) struct BridgeLeg {
    reader: ReadHalf<Box<dyn BrokerStream>>,
    writer: WriteHalf<Box<dyn BrokerStream>>,
    session: ClientSession<MessageOrigin>,
    input: Vec<u8>,
    /// How much of the input was taken.
    taken: usize,
    output: Vec<u8>,
    waiting: VecDeque<(OutgoingMessage, MessageOrigin)>,
    /// Memory of what waits, or is not answered yet, bytes.
    held_bytes: usize,
    started: Instant,
    /// Whether what was written may still be held back by TLS.
    needs_flush: bool,
    /// When the side has answered last, or had nothing to answer.
    answered_ms: u64,
    /// When anything was heard of the side, or a part of what waits for it has left.
    heard_ms: u64,
}

fn broken(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

impl BridgeLeg {
    /// Sends CONNECT, and waits until the side has let the bridge in.
    ///
    /// # Errors
    /// The side refuses it, says nothing, or has gone.
    pub(crate) async fn connect(stream: Box<dyn BrokerStream>, login: &LegLogin<'_>) -> io::Result<Self> {
        let (reader, writer) = split(stream);
        let mut leg = Self {
            reader,
            writer,
            session: ClientSession::new(
                login.version,
                SessionLimits {
                    max_packet_size: MAX_PACKET,
                    max_in_flight: MAX_IN_FLIGHT,
                    max_outbound_aliases: 0,
                    max_unreleased: u16::MAX,
                },
            ),
            input: Vec::new(),
            taken: 0,
            output: Vec::new(),
            waiting: VecDeque::new(),
            held_bytes: 0,
            started: Instant::now(),
            needs_flush: false,
            answered_ms: 0,
            heard_ms: 0,
        };
        let connect = ConnectPacket {
            clean_start: false,
            keep_alive: login.keep_alive,
            username: login.username,
            password: login.password.map(str::as_bytes),
            properties: login.properties,
            ..ConnectPacket::new(login.version, login.client_id)
        };
        leg.session
            .connect(&connect, 0, &mut leg.output)
            .map_err(broken)?;
        let welcomed = async {
            while !leg.session.is_connected() {
                if leg.next_event()?.is_none() {
                    leg.transfer(true).await?;
                }
            }
            io::Result::Ok(())
        };
        let welcomed = tokio::time::timeout(CONNECT_WITHIN, welcomed).await;
        welcomed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        Ok(leg)
    }

    const fn is_v5(&self) -> bool {
        self.session.version().is_v5()
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Subscribes to filters, and gives those up that only a session of before has.
    pub(crate) fn subscribe(
        &mut self,
        filters: &[(String, SubscriptionOptions)],
        known: &[String],
    ) -> io::Result<()> {
        let is_wanted = |known: &&String| filters.iter().any(|(filter, _)| filter == *known);
        let mut given_up = TopicFilterBuf::new();
        for filter in known.iter().filter(|known| !is_wanted(known)) {
            given_up.push(filter).map_err(broken)?;
        }
        let mut wanted = SubscriptionBuf::new();
        for (filter, options) in filters {
            let options = match self.is_v5() {
                true => *options,
                false => SubscriptionOptions::new(options.qos),
            };
            wanted.push(filter, options).map_err(broken)?;
        }
        let (session, none) = (&mut self.session, MqttProperties::EMPTY);
        if known.iter().any(|known| !is_wanted(&known)) {
            let given_up = session.unsubscribe(given_up.as_filters(), none, &mut self.output);
            given_up.map_err(broken)?;
        }
        if !filters.is_empty() {
            let subscribed = session.subscribe(wanted.as_filters(), none, &mut self.output);
            subscribed.map_err(broken)?;
        }
        Ok(())
    }

    /// Whether so much is on its way to the side that the other one has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_HELD || self.held_bytes >= MAX_HELD_BYTES
    }

    /// Sends a message as soon as the side takes it.
    pub(crate) fn send(&mut self, message: OutgoingMessage, origin: MessageOrigin) {
        self.held_bytes += message.memory() + origin.memory();
        self.waiting.push_back((message, origin));
    }

    /// Puts what waits into the output, as far as the side takes it. `settled` gets the messages of which nothing more is
    /// heard: the side never takes them, or does not acknowledge them.
    pub(crate) fn fill(&mut self, settled: &mut Vec<(MessageOrigin, ReasonCode)>) -> io::Result<()> {
        let (max_qos, may_retain) = (self.session.max_qos(), self.session.is_retain_available());
        while self.output.len() < OUT_BYTES
            && let Some((message, _)) = self.waiting.front()
            && (message.qos.min(max_qos) == QoS::AtMostOnce || self.session.can_send())
        {
            let Some((message, origin)) = self.waiting.pop_front() else {
                break;
            };
            self.held_bytes -= message.memory();
            // A message that is sent with less is worth more than one that is refused.
            let publish = PublishPacket {
                qos: message.qos.min(max_qos),
                // Its length counts; the session gives it another one.
                packet_id: (message.qos.min(max_qos) != QoS::AtMostOnce).then_some(PacketId::MIN),
                retain: message.retain && may_retain,
                properties: match self.is_v5() {
                    true => message.properties.as_properties(),
                    false => MqttProperties::EMPTY,
                },
                ..PublishPacket::new(&message.topic, &message.payload)
            };
            if !self
                .session
                .fits_server(publish.encoded_len(self.session.version()))
            {
                self.settle(origin, ReasonCode::PacketTooLarge, settled);
                continue;
            }
            if self.session.in_flight() == 0 {
                self.answered_ms = self.now_ms();
            }
            if publish.qos == QoS::AtMostOnce {
                let sent = self
                    .session
                    .publish(&publish, MessageOrigin::Preamble, &mut self.output);
                sent.map_err(broken)?;
                self.settle(origin, ReasonCode::Success, settled);
                continue;
            }
            self.session
                .publish(&publish, origin, &mut self.output)
                .map_err(broken)?;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        origin: MessageOrigin,
        code: ReasonCode,
        settled: &mut Vec<(MessageOrigin, ReasonCode)>,
    ) {
        self.held_bytes -= origin.memory();
        settled.push((origin, code));
    }

    /// Writes what there is to write and reads what has come, one of it; waits until there is something. Nothing is read where
    /// what has come already cannot go on.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn transfer(&mut self, may_read: bool) -> io::Result<()> {
        if may_read {
            self.input.drain(..std::mem::take(&mut self.taken));
            give_back(&mut self.input);
            self.input.reserve(READ_BYTES);
        }
        let has_output = !self.output.is_empty() || self.needs_flush;
        tokio::select! {
            written = write_some(&mut self.writer, &self.output), if has_output => {
                let written = written?;
                self.needs_flush = written > 0;
                self.output.drain(..written);
                give_back(&mut self.output);
                let now = self.now_ms();
                if !self.output.is_empty() {
                    // Slow, but there.
                    self.answered_ms = now;
                    self.heard_ms = now;
                }
                if now.saturating_sub(self.heard_ms) < HEARD_WITHIN_MS {
                    self.session.mark_sent(now);
                }
            }
            read = self.reader.read_buf(&mut self.input), if may_read => {
                if read? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.heard_ms = self.now_ms();
            }
            else => std::future::pending().await,
        }
        Ok(())
    }

    /// Writes all that there is to write.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() || self.needs_flush {
            self.transfer(false).await?;
        }
        Ok(())
    }

    /// Takes the next packet of what was read, if it is there.
    ///
    /// # Errors
    /// The side breaks the rules, refuses the bridge or what it asks for, or ends the connection; the text says which.
    pub(crate) fn next_event(&mut self) -> io::Result<Option<LegEvent>> {
        let input = self.input.get(self.taken..).unwrap_or_default();
        let frame = decode_frame(input, self.session.max_packet_size(), self.session.version());
        let Some((packet, length)) = frame.map_err(broken)? else {
            return Ok(None);
        };
        self.taken += length;
        let event = self.session.receive(&packet, &mut self.output).map_err(broken)?;
        let event = match event {
            ClientEvent::Publish(publish) => {
                let message = OutgoingMessage {
                    topic: self.session.topic(publish).to_owned(),
                    payload: Bytes::copy_from_slice(publish.payload),
                    qos: publish.qos,
                    retain: publish.retain,
                    properties: carried(&publish.properties)?,
                };
                LegEvent::Received(message, ReceivedId::of(publish))
            }
            // Its first copy is still under way, and is what the acknowledgement is for.
            ClientEvent::PublishAgain(_) => LegEvent::Handled,
            ClientEvent::Acknowledged { code, message, .. } => {
                self.held_bytes -= message.memory();
                self.answered_ms = self.now_ms();
                LegEvent::Settled(message, code)
            }
            ClientEvent::Refused(connack) => return Err(refused("it refuses the connection", connack.code)),
            ClientEvent::Disconnect(disconnect) => {
                return Err(refused("it ends the connection", disconnect.code));
            }
            ClientEvent::Subscribed(suback) => {
                if let Some(code) = suback.codes.iter().find(|code| code.is_error()) {
                    return Err(refused("it refuses a subscription", code));
                }
                LegEvent::Handled
            }
            ClientEvent::Connected(_)
            | ClientEvent::Unsubscribed(_)
            | ClientEvent::Auth(_)
            | ClientEvent::Handled => LegEvent::Handled,
        };
        Ok(Some(event))
    }

    /// Acknowledges a message of this side.
    pub(crate) fn acknowledge(&mut self, received: ReceivedId) -> io::Result<()> {
        let (id, success) = (received.packet_id, ReasonCode::Success);
        let written = match received.qos {
            QoS::ExactlyOnce => self.session.pubrec(id, success, &mut self.output),
            _ => self.session.puback(id, success, &mut self.output),
        };
        written.map_err(broken)
    }

    /// Says that the bridge is still there, if nothing else has said so.
    ///
    /// # Errors
    /// The side has been silent for too long, or does not read.
    pub(crate) fn keep_alive(&mut self) -> io::Result<()> {
        let now = self.now_ms();
        // Answers to what it sends count here, too.
        if self.output.len() > MAX_HELD_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "it does not read what it is sent",
            ));
        }
        if self.session.in_flight() > 0 && now.saturating_sub(self.answered_ms) > ANSWER_WITHIN_MS {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "it acknowledges no messages",
            ));
        }
        self.session
            .poll_keep_alive(now, &mut self.output)
            .map_err(broken)
    }

    /// Ends the connection as MQTT does, if the side takes that soon.
    pub(crate) async fn leave(mut self) {
        self.session.disconnect(ReasonCode::Success, &mut self.output);
        let left = async {
            self.flush().await?;
            self.writer.shutdown().await
        };
        let _ = tokio::time::timeout(LEAVE_WITHIN, left).await;
    }
}

impl ReceivedId {
    fn of(publish: &PublishPacket<'_>) -> Option<Self> {
        publish.packet_id.map(|packet_id| Self {
            packet_id,
            qos: publish.qos,
        })
    }
}

impl MessageOrigin {
    /// About the memory that is kept for it until it is told, bytes.
    fn memory(&self) -> usize {
        match self {
            Self::Carried(carried) => carried.message.memory(),
            Self::Unacknowledged | Self::Preamble => 0,
        }
    }
}

fn refused(what: &str, code: ReasonCode) -> io::Error {
    io::Error::other(format!("{what}: {}", code.name()))
}

/// What a message says of itself, without what is about one connection.
fn carried(properties: &MqttProperties<'_>) -> io::Result<MqttPropertyBuf> {
    let mut carried = MqttPropertyBuf::new();
    for property in properties {
        if !matches!(
            property,
            MqttProperty::TopicAlias(_) | MqttProperty::SubscriptionIdentifier(_)
        ) {
            carried.push(property).map_err(broken)?;
        }
    }
    Ok(carried)
}

/// Writes a part of the output, or flushes if there is none.
async fn write_some(writer: &mut WriteHalf<Box<dyn BrokerStream>>, output: &[u8]) -> io::Result<usize> {
    if output.is_empty() {
        writer.flush().await?;
        return Ok(0);
    }
    match writer.write(output).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        written => Ok(written),
    }
}

/// Gives back the memory of a buffer that one large message has grown.
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.len() < KEPT_BYTES / 2 && buffer.capacity() > KEPT_BYTES {
        buffer.shrink_to(KEPT_BYTES / 2);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    /// CONNACK of a server without limits.
    pub(crate) const WELCOME: &[u8] = &[0x20, 3, 0, 0, 0];

    /// A connection, and the other end of it, which has read CONNECT.
    pub(crate) async fn connected(connack: &[u8]) -> (BridgeLeg, DuplexStream) {
        let (ours, mut theirs) = duplex(1 << 20);
        theirs.write_all(connack).await.expect("room");
        let login = LegLogin {
            version: MqttProtocolVersion::V5,
            client_id: "bridge",
            username: None,
            password: None,
            keep_alive: 60,
            properties: MqttProperties::EMPTY,
        };
        let mut leg = BridgeLeg::connect(Box::new(ours), &login)
            .await
            .expect("a connection");
        // It was answered before it said anything.
        leg.flush().await.expect("a peer");
        assert_eq!(packet(&mut theirs).await[0], 0x10);
        (leg, theirs)
    }

    /// The next packet, of fewer than 128 bytes.
    pub(crate) async fn packet(peer: &mut DuplexStream) -> Vec<u8> {
        let mut packet = vec![0; 2];
        peer.read_exact(&mut packet).await.expect("a header");
        packet.resize(2 + usize::from(packet[1]), 0);
        peer.read_exact(&mut packet[2..]).await.expect("the rest");
        packet
    }

    fn message(payload: &'static [u8]) -> OutgoingMessage {
        OutgoingMessage {
            topic: "a".to_owned(),
            payload: Bytes::from_static(payload),
            qos: QoS::AtLeastOnce,
            retain: true,
            ..OutgoingMessage::default()
        }
    }

    #[tokio::test]
    async fn a_side_that_can_less_gets_messages_with_less() {
        // Maximum QoS 0, no retained messages, packets of 16 bytes at most.
        let connack = [0x20, 12, 0, 0, 9, 0x24, 0, 0x25, 0, 0x27, 0, 0, 0, 16];
        let (mut leg, mut peer) = connected(&connack).await;
        leg.send(message(b"1"), MessageOrigin::Unacknowledged);
        leg.send(message(b"more than sixteen bytes"), MessageOrigin::Unacknowledged);
        let mut settled = Vec::new();
        leg.fill(&mut settled).expect("two messages");
        let codes: Vec<_> = settled.iter().map(|(_, code)| *code).collect();
        assert_eq!(codes, [ReasonCode::Success, ReasonCode::PacketTooLarge]);
        leg.flush().await.expect("a peer");
        assert_eq!(packet(&mut peer).await, [0x30, 5, 0, 1, b'a', 0, b'1']);
        assert_eq!(leg.held_bytes, 0);
    }

    #[tokio::test]
    async fn what_is_refused_is_an_error() {
        let (mut leg, mut peer) = connected(WELCOME).await;
        let filters = [("a".to_owned(), SubscriptionOptions::new(QoS::AtLeastOnce))];
        leg.subscribe(&filters, &[]).expect("a subscription");
        leg.flush().await.expect("a peer");
        let subscribe = packet(&mut peer).await;
        let suback = [0x90, 4, subscribe[2], subscribe[3], 0, 0x87];
        peer.write_all(&suback).await.expect("room");
        leg.transfer(true).await.expect("a packet");
        let error = leg.next_event().map(drop).expect_err("a refusal").to_string();
        assert_eq!(error, "it refuses a subscription: Not authorized");
    }

    #[tokio::test]
    async fn a_side_that_reads_nothing_is_full_and_left() {
        let (mut leg, mut peer) = connected(WELCOME).await;
        for _ in 0..MAX_HELD {
            assert!(!leg.is_full());
            leg.send(message(b""), MessageOrigin::Unacknowledged);
        }
        assert!(leg.is_full());
        // Each of these asks for an answer.
        let pubrels = [0x62, 2, 0, 1].repeat(MAX_HELD_BYTES / 4);
        let sender = tokio::spawn(async move { peer.write_all(&pubrels).await.map(|()| peer) });
        let gone = async {
            loop {
                while leg.next_event()?.is_some() {}
                leg.keep_alive()?;
                leg.transfer(true).await?;
            }
        };
        let error: io::Result<()> = gone.await;
        let error = error.expect_err("nobody reads").to_string();
        assert_eq!(error, "it does not read what it is sent");
        sender.abort();
    }
}
