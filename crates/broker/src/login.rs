//! Log-in: from the first byte to CONNACK.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use fieldline_codec::session::{ServerEvent, ServerSession, SessionLimits};
use fieldline_codec::{
    ConnackPacket, ConnectPacket, LastWill, MqttProperty, MqttPropertyBuf, MqttProtocolVersion,
    PublishPacket, ReasonCode, decode_frame, peek_protocol, topic,
};
use fieldline_core::logging::LogGate;
use fieldline_core::partial_budget::BufferReservation;
use fieldline_core::ports::{
    AuthStep, BegunExchange, BrokerClientType, BrokerLogin, BrokerRefusal, ClientAuthenticator, ClientGrant,
    TopicRules,
};
use fieldline_event_loop::TaskStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::info;

use crate::authentication::{ClientAuthentication, put_auth};
use crate::broker::Broker;
use crate::client::ConnectionInfo;
use crate::connection::OpenSession;
use crate::lifecycle::{DueWill, DueWills, OpenError, OpenRequest, OpenedSession};
use crate::message::BrokerMessage;
use crate::session::StoredWill;

static REFUSED_GATE: LogGate = LogGate::new(5);

/// Size of the first read, bytes; a longer CONNECT makes the buffer grow up to the packet limit.
const FIRST_READ: usize = 1 << 10;
/// Most messages that a client is asked to answer before it is let in.
const MAX_AUTH_STEPS: usize = 8;
/// Largest packet of a client that is being asked, bytes.
const MAX_AUTH_PACKET: u32 = 16 << 10;
/// Longest client identifier that 3.1.1 and 5.0 let a server refuse is 23 bytes; longer ones are common.
const MAX_CLIENT_ID: usize = 1_024;

/// The peer of a connection, as far as the network knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientPeer<'a> {
    pub(crate) address: SocketAddr,
    /// The certificates it presented, leaf first.
    pub(crate) certificates: Option<&'a [Vec<u8>]>,
    pub(crate) origin: ClientOrigin,
}

/// How a client has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientOrigin {
    Plain,
    Tls,
    /// It is a part of this program.
    Bridge,
}

/// Begins the client identifiers of bridges, which nobody else may have.
pub const BRIDGE_PREFIX: &str = "$bridge/";

/// Lets bridges in.
pub(crate) struct BridgeAccess;

#[async_trait]
impl ClientAuthenticator for BridgeAccess {
    async fn authenticate(&self, _: BrokerLogin<'_>) -> Result<ClientGrant, BrokerRefusal> {
        Ok(ClientGrant {
            // As much waits for it as for an application.
            client_type: BrokerClientType::Application,
            rules: None,
        })
    }
}

/// A client that has logged in.
pub(crate) struct LoggedInClient {
    pub(crate) mqtt: ServerSession<()>,
    pub(crate) open: OpenSession,
    /// Its topics; `None` for all.
    pub(crate) rules: Option<Arc<dyn TopicRules>>,
    /// How it can prove again who it is, if it has done so by an exchange of messages.
    pub(crate) authentication: Option<Box<ClientAuthentication>>,
    /// CONNACK, not sent yet.
    pub(crate) connack: Vec<u8>,
    /// Input that the client sent after CONNECT.
    pub(crate) rest: Vec<u8>,
    pub(crate) reservation: BufferReservation,
}

/// A log-in that the broker has refused: with its code, and what the log says.
pub(crate) struct Refused(pub(crate) ReasonCode, pub(crate) &'static str);

/// What a client of MQTT 5 is told with CONNACK, and what its session begins with.
struct LoginTerms {
    client_id: Arc<str>,
    is_assigned: bool,
    expiry_s: u32,
    will: Option<StoredWill>,
    /// The keep-alive in force, seconds.
    keep_alive_s: u16,
}

/// Reads CONNECT, and opens the session. Returns `None` if the connection must be closed; a refusal was sent then.
pub(crate) async fn log_in<S: TaskStream>(
    stream: &mut S,
    broker: &Arc<Broker>,
    authenticator: &Arc<dyn ClientAuthenticator>,
    peer: ClientPeer<'_>,
    mut reservation: BufferReservation,
    max_packet: u32,
) -> Option<LoggedInClient> {
    let options = &broker.options;
    let mut input = Vec::with_capacity(FIRST_READ);
    let mut out = Vec::new();
    let mut mqtt = ServerSession::<()>::new(SessionLimits {
        max_packet_size: max_packet,
        max_in_flight: options.max_in_flight,
        max_outbound_aliases: options.max_topic_aliases,
        // Before MQTT 5 nobody tells a client of such a limit.
        max_unreleased: u16::MAX,
    });
    let (outcome, rest) = loop {
        if stream.read_buf(&mut input).await.ok()? == 0 {
            return None;
        }
        let (packet, used) = match decode_frame(&input, max_packet, mqtt.version()) {
            Ok(Some(decoded)) => decoded,
            Ok(None) if reservation.resize(input.capacity()) => continue,
            Ok(None) => return None,
            Err(error) => {
                if let Some(protocol) = peek_protocol(&input) {
                    // An answer that cannot be encoded is left out.
                    let _ =
                        ConnackPacket::new(error.reason_code(), false).encode(protocol.version(), &mut out);
                    let _ = stream.write_all(&out).await;
                    let _ = stream.shutdown().await;
                }
                return None;
            }
        };
        let Ok(ServerEvent::Connect(connect)) = mqtt.receive(&packet, 0, &mut out) else {
            return None;
        };
        let connect = *connect;
        let mut due = DueWills::new(broker.clone());
        // What follows CONNECT is read beside it: it is looked at until the session is open.
        let mut rest = input.get(used..).unwrap_or_default().to_vec();
        let admission = Admission {
            broker,
            authenticator,
            peer,
            connect: &connect,
            due: &mut due.wills,
        };
        let outcome = admission.admit(stream, &mut mqtt, &mut rest, &mut out).await;
        if let Err(Refused(_, why)) = &outcome
            && let Some(suppressed) = REFUSED_GATE.open()
        {
            info!(peer = %peer.address, client = connect.client_id, why, suppressed, "the broker refused a log-in");
        }
        break (outcome, rest);
    };
    drop(input);
    match outcome {
        Ok(admitted) => {
            reservation.resize(rest.capacity());
            Some(LoggedInClient {
                mqtt,
                open: admitted.open,
                rules: admitted.rules,
                authentication: admitted.authentication,
                connack: out,
                rest,
                reservation,
            })
        }
        Err(Refused(code, _)) => {
            broker
                .stats
                .refused
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            mqtt.refuse(code, &mut out);
            let _ = stream.write_all(&out).await;
            let _ = stream.shutdown().await;
            None
        }
    }
}

/// A client that has been let in.
struct AdmittedClient {
    open: OpenSession,
    rules: Option<Arc<dyn TopicRules>>,
    authentication: Option<Box<ClientAuthentication>>,
}

/// What it takes to let a client in.
struct Admission<'a> {
    broker: &'a Arc<Broker>,
    authenticator: &'a Arc<dyn ClientAuthenticator>,
    peer: ClientPeer<'a>,
    connect: &'a ConnectPacket<'a>,
    due: &'a mut Vec<DueWill>,
}

pub(crate) fn refused_by_access(refusal: BrokerRefusal) -> Refused {
    match refusal {
        BrokerRefusal::Unknown => Refused(ReasonCode::NotAuthorized, "unknown credentials"),
        BrokerRefusal::Unavailable => {
            Refused(ReasonCode::ServerUnavailable, "the credentials cannot be read")
        }
        BrokerRefusal::Banned => Refused(ReasonCode::Banned, "the client is blocked"),
        BrokerRefusal::UnknownMethod => Refused(
            ReasonCode::BadAuthenticationMethod,
            "unknown authentication method",
        ),
    }
}

impl Admission<'_> {
    async fn admit<S: TaskStream>(
        self,
        stream: &mut S,
        mqtt: &mut ServerSession<()>,
        rest: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<AdmittedClient, Refused> {
        let (broker, connect) = (self.broker, self.connect);
        if connect.client_id.starts_with(BRIDGE_PREFIX) != (self.peer.origin == ClientOrigin::Bridge) {
            return Err(Refused(
                ReasonCode::ClientIdentifierNotValid,
                "the client identifier of a bridge",
            ));
        }
        let terms = LoginTerms::of(broker, connect)?;
        let login = BrokerLogin {
            client_id: &terms.client_id,
            username: connect.username,
            password: connect.password,
            certificates: self.peer.certificates,
            is_tls: self.peer.origin == ClientOrigin::Tls,
            address: self.peer.address.ip(),
        };
        let mut authentication = None;
        let mut proof = Vec::new();
        let grant = match connect.properties.authentication_method() {
            None => {
                let granted = self.authenticator.authenticate(login).await;
                granted.map_err(refused_by_access)?
            }
            Some(method) => {
                let message = connect.properties.authentication_data();
                let message =
                    message.ok_or(Refused(ReasonCode::UnspecifiedError, "no authentication data"))?;
                let begun = self.authenticator.begin_exchange(login, method, message).await;
                let mut exchange = MessageExchange {
                    stream,
                    mqtt,
                    rest,
                    method,
                };
                let (grant, message) = exchange.run(begun.map_err(refused_by_access)?, out).await?;
                proof = message;
                authentication = Some(Box::new(ClientAuthentication::new(
                    self.authenticator.clone(),
                    method,
                    &login,
                )));
                grant
            }
        };
        if let (Some(will), Some(rules)) = (&terms.will, &grant.rules)
            && !rules.may_publish(&will.message.topic)
        {
            return Err(Refused(
                ReasonCode::NotAuthorized,
                "the topic of the will is not permitted",
            ));
        }
        let request = OpenRequest {
            rules: grant.rules.clone(),
            client_type: grant.client_type,
            client_id: terms.client_id.clone(),
            clean_start: connect.clean_start,
            expiry_s: terms.expiry_s,
            will: terms.will.clone(),
            connection: ConnectionInfo::of(
                connect,
                self.peer.address.ip(),
                terms.keep_alive_s,
                broker.clock.now_ms(),
            ),
        };
        let (open, is_present) = open_session(broker, request, self.due).await?;
        let state = open.begin_connection().ok_or(Refused(
            ReasonCode::ServerUnavailable,
            "another connection has the session",
        ))?;
        let mut properties = MqttPropertyBuf::new();
        if connect.version().is_v5() {
            // Each comes once and is valid.
            let _ = terms.announce(broker, connect, mqtt.max_packet_size(), &mut properties);
            if let Some(method) = connect.properties.authentication_method() {
                let _ = properties.push(MqttProperty::AuthenticationMethod(method));
                let _ = properties.push(MqttProperty::AuthenticationData(&proof));
            }
        }
        if is_present {
            mqtt.restore_state(state);
        }
        let connack = ConnackPacket {
            properties: properties.as_properties(),
            ..ConnackPacket::new(ReasonCode::Success, is_present)
        };
        mqtt.accept(&connack, out)
            .map_err(|_| Refused(ReasonCode::UnspecifiedError, "CONNACK cannot be encoded"))?;
        Ok(AdmittedClient {
            open,
            rules: grant.rules,
            authentication,
        })
    }
}

/// Opens the session of a client, and waits until nothing that it needs can be lost. Says whether there was one.
async fn open_session(
    broker: &Arc<Broker>,
    request: OpenRequest,
    due: &mut Vec<DueWill>,
) -> Result<(OpenSession, bool), Refused> {
    let OpenedSession {
        session,
        epoch,
        is_present,
        append,
    } = broker.open(request, due).map_err(|error| match error {
        OpenError::TooMany => Refused(ReasonCode::QuotaExceeded, "there are too many sessions"),
        OpenError::JournalBehind => Refused(ReasonCode::ServerUnavailable, "the journal is behind"),
    })?;
    let open = OpenSession::new(broker.clone(), session, epoch);
    if let Some(append) = append {
        // A session that was given up must not come back.
        append
            .await
            .map_err(|_| Refused(ReasonCode::ServerUnavailable, "the session was not stored"))?;
    }
    // What was in flight when the program ended has to be known before anything is sent.
    while open.session.lock().queue.has_sent_in_store() {
        let (loading, session) = (broker.clone(), open.session.clone());
        let loaded = tokio::task::spawn_blocking(move || loading.load_page(&session)).await;
        if !matches!(loaded, Ok(Ok(()))) {
            return Err(Refused(
                ReasonCode::ServerUnavailable,
                "the store does not answer",
            ));
        }
    }
    Ok((open, is_present))
}

/// The messages between CONNECT and CONNACK (MQTT 5 §4.12).
struct MessageExchange<'a, S> {
    stream: &'a mut S,
    mqtt: &'a mut ServerSession<()>,
    /// What the client has sent after CONNECT.
    rest: &'a mut Vec<u8>,
    method: &'a str,
}

impl<S: TaskStream> MessageExchange<'_, S> {
    /// Goes on until the client is let in or refused; returns what it is told at the end.
    async fn run(
        &mut self,
        (mut exchange, mut message): BegunExchange,
        out: &mut Vec<u8>,
    ) -> Result<(ClientGrant, Vec<u8>), Refused> {
        const GONE: Refused = Refused(ReasonCode::UnspecifiedError, "the client has gone");
        for _ in 0..MAX_AUTH_STEPS {
            put_auth(ReasonCode::ContinueAuthentication, self.method, &message, out);
            self.stream.write_all(out).await.map_err(|_| GONE)?;
            out.clear();
            let answer = self.answer(out).await?;
            match exchange.receive(&answer).map_err(refused_by_access)? {
                AuthStep::Continue(next) => message = next,
                AuthStep::Granted(grant, proof) => return Ok((grant, proof)),
            }
        }
        Err(Refused(
            ReasonCode::NotAuthorized,
            "too many steps of authentication",
        ))
    }

    /// Reads the client's next message.
    async fn answer(&mut self, out: &mut Vec<u8>) -> Result<Vec<u8>, Refused> {
        loop {
            let decoded = decode_frame(self.rest, MAX_AUTH_PACKET, self.mqtt.version());
            let decoded = decoded.map_err(|error| Refused(error.reason_code(), "no AUTH"))?;
            let Some((packet, used)) = decoded else {
                if self.stream.read_buf(self.rest).await.unwrap_or(0) == 0 {
                    return Err(Refused(ReasonCode::UnspecifiedError, "the client has gone"));
                }
                continue;
            };
            let received = self.mqtt.receive(&packet, 0, out);
            let answer = match received {
                Ok(ServerEvent::Auth(auth))
                    if auth.properties.authentication_method() != Some(self.method) =>
                {
                    Err(Refused(
                        ReasonCode::BadAuthenticationMethod,
                        "another authentication method",
                    ))
                }
                Ok(ServerEvent::Auth(auth)) if auth.code == ReasonCode::ContinueAuthentication => auth
                    .properties
                    .authentication_data()
                    .map(<[u8]>::to_vec)
                    .ok_or(Refused(ReasonCode::UnspecifiedError, "no authentication data")),
                Ok(_) => Err(Refused(
                    ReasonCode::ProtocolError,
                    "no answer to the authentication",
                )),
                Err(error) => Err(Refused(error.reason_code(), "no answer to the authentication")),
            };
            let answer = answer?;
            self.rest.drain(..used);
            return Ok(answer);
        }
    }
}

impl LoginTerms {
    fn of(broker: &Broker, connect: &ConnectPacket<'_>) -> Result<Self, Refused> {
        let version = connect.version();
        if !connect.protocol.is_defined() {
            return Err(Refused(
                ReasonCode::UnsupportedProtocolVersion,
                "unknown protocol version",
            ));
        }
        let is_assigned = connect.client_id.is_empty();
        let may_be_assigned =
            version.is_v5() || (version == MqttProtocolVersion::V311 && connect.clean_start);
        if (is_assigned && !may_be_assigned) || connect.client_id.len() > MAX_CLIENT_ID {
            return Err(Refused(
                ReasonCode::ClientIdentifierNotValid,
                "no client identifier, or one that is too long",
            ));
        }
        let client_id: Arc<str> = match is_assigned {
            true => uuid::Uuid::new_v4().simple().to_string().into(),
            false => connect.client_id.into(),
        };
        let longest_s = broker.granted_expiry(u32::MAX);
        let expiry_s = match (version.is_v5(), connect.properties.session_expiry_interval()) {
            (true, Some(asked_s)) => broker.granted_expiry(asked_s),
            // As TBMQ: who wants its session back and says no more gets it kept.
            _ if connect.clean_start => 0,
            _ => longest_s,
        };
        let longest_keep_alive_s =
            u16::try_from(broker.options.max_keep_alive.0.as_secs()).unwrap_or(u16::MAX);
        let will = connect.will.map(|will| stored_will(broker, &will)).transpose()?;
        Ok(Self {
            client_id,
            is_assigned,
            expiry_s,
            will,
            keep_alive_s: connect.keep_alive.min(longest_keep_alive_s),
        })
    }

    /// Adds what the client is told.
    fn announce(
        &self,
        broker: &Broker,
        connect: &ConnectPacket<'_>,
        max_packet: u32,
        into: &mut MqttPropertyBuf,
    ) -> Result<(), fieldline_codec::MqttEncodeError> {
        let options = &broker.options;
        into.push(MqttProperty::ReceiveMaximum(options.receive_maximum))?;
        into.push(MqttProperty::MaximumPacketSize(max_packet))?;
        into.push(MqttProperty::TopicAliasMaximum(options.max_topic_aliases))?;
        if connect.properties.session_expiry_interval().unwrap_or(0) != self.expiry_s {
            into.push(MqttProperty::SessionExpiryInterval(self.expiry_s))?;
        }
        into.push(MqttProperty::ServerKeepAlive(self.keep_alive_s))?;
        if self.is_assigned {
            into.push(MqttProperty::AssignedClientIdentifier(&self.client_id))?;
        }
        if connect.properties.request_response_information() == Some(true)
            && !options.response_information.is_empty()
        {
            into.push(MqttProperty::ResponseInformation(&options.response_information))?;
        }
        Ok(())
    }
}

fn stored_will(broker: &Broker, will: &LastWill<'_>) -> Result<StoredWill, Refused> {
    if !topic::is_valid_name(will.topic) || will.topic.starts_with('$') || !broker.has_levels(will.topic) {
        return Err(Refused(
            ReasonCode::TopicNameInvalid,
            "the topic of the will is invalid",
        ));
    }
    let mut properties = MqttPropertyBuf::new();
    for property in &will.properties {
        if !matches!(
            property,
            MqttProperty::WillDelayInterval(_) | MqttProperty::MessageExpiryInterval(_)
        ) {
            // It was valid when it was received.
            let _ = properties.push(property);
        }
    }
    let publish = PublishPacket {
        qos: will.qos,
        retain: will.retain,
        properties: properties.as_properties(),
        ..PublishPacket::new(will.topic, will.payload)
    };
    Ok(StoredWill {
        // Its time begins with its publication.
        message: Arc::new(BrokerMessage::of(&publish, will.topic, 0)),
        expiry_s: will.properties.message_expiry_interval(),
        delay_s: will.properties.will_delay_interval().unwrap_or(0),
    })
}
