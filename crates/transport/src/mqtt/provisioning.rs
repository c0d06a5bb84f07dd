//! Connections of devices that are nobody yet: they ask for their credentials, and nothing else.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use fieldline_codec::session::{ServerEvent, ServerSession};
use fieldline_codec::{Packet, Publish, QoS, ReasonCode, Suback, Unsuback, decode_frame};
use fieldline_core::logging::LogGate;
use fieldline_core::services::ProvisionStatus;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::warn;

use super::connection::Shared;
use super::stream::Stream;
use super::two_way::Sent;
use crate::payload::Provision;

static STORE_GATE: LogGate = LogGate::new(2);

/// User name, or client id, of such a connection.
pub(super) const NAME: &str = "provision";
const REQUEST: &str = "/provision/request";
const RESPONSE: &str = "/provision/response";
/// How long such a connection may stay without asking, and after it was answered.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that was let in to ask.
pub(super) struct Newcomer {
    pub(super) session: ServerSession<Sent>,
    /// What is to be written.
    pub(super) out: Vec<u8>,
    /// What has come and was not looked at yet.
    pub(super) input: Vec<u8>,
    /// Where it comes from.
    pub(super) address: IpAddr,
}

/// What a packet asks for.
enum Wish {
    Nothing,
    /// Credentials, for what this payload shows.
    Credentials(Vec<u8>),
    /// The end, with what version 5 is told.
    End(Option<ReasonCode>),
}

/// Serves the connection until it ends.
pub(super) async fn serve<S: Stream>(stream: &mut S, shared: &Shared, mut newcomer: Newcomer) {
    let mut qos = QoS::AtLeastOnce;
    loop {
        let turn = tokio::time::timeout(PATIENCE, newcomer.turn(stream, shared, &mut qos));
        match turn.await {
            Ok(Ok(true)) => {}
            Ok(Ok(false) | Err(_)) => break,
            Err(_) => {
                newcomer
                    .session
                    .disconnect(ReasonCode::MaximumConnectTime, &mut newcomer.out);
                break;
            }
        }
    }
    let farewell = async {
        let _ = stream.write_all(&newcomer.out).await;
        let _ = stream.shutdown().await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), farewell).await;
}

impl Newcomer {
    /// Goes on until the next request is answered. Returns whether the connection stays.
    async fn turn<S: Stream>(&mut self, stream: &mut S, shared: &Shared, qos: &mut QoS) -> io::Result<bool> {
        let mut share = shared.partial.share();
        loop {
            let wish = self.next(shared, qos);
            if let Some(Wish::End(code)) = &wish {
                if let Some(code) = *code {
                    self.session.disconnect(code, &mut self.out);
                }
                return Ok(false);
            }
            if let Some(Wish::Credentials(payload)) = wish {
                let stays = self.answer(shared, &payload, *qos).await;
                self.flush(stream).await?;
                return Ok(stays);
            }
            self.flush(stream).await?;
            if wish.is_none()
                && (stream.read_buf(&mut self.input).await? == 0 || !share.resize(self.input.capacity()))
            {
                return Ok(false);
            }
        }
    }

    async fn flush<S: Stream>(&mut self, stream: &mut S) -> io::Result<()> {
        stream.write_all(&self.out).await?;
        stream.flush().await?;
        self.out.clear();
        Ok(())
    }

    /// Looks at the next packet, if a whole one is there.
    fn next(&mut self, shared: &Shared, qos: &mut QoS) -> Option<Wish> {
        let input = std::mem::take(&mut self.input);
        let (wish, used) = match decode_frame(&input, shared.max_packet, self.session.version()) {
            Ok(Some((packet, used))) => (Some(self.packet(&packet, qos)), used),
            Ok(None) => (None, 0),
            Err(_) => (Some(Wish::End(Some(ReasonCode::MalformedPacket))), 0),
        };
        self.input = input;
        self.input.drain(..used);
        wish
    }

    fn packet(&mut self, packet: &Packet<'_>, qos: &mut QoS) -> Wish {
        match self.session.receive(packet, 0, &mut self.out) {
            Ok(ServerEvent::Publish(publish)) => {
                if self.session.topic(publish) != REQUEST {
                    self.acknowledge(publish, ReasonCode::TopicNameInvalid);
                    return Wish::End(None);
                }
                self.acknowledge(publish, ReasonCode::Success);
                Wish::Credentials(publish.payload.to_vec())
            }
            Ok(ServerEvent::PublishAgain(publish)) => {
                self.acknowledge(publish, ReasonCode::Success);
                Wish::Nothing
            }
            Ok(ServerEvent::Subscribe(subscribe)) => {
                let code = |filter: &str, wanted: QoS, qos: &mut QoS| {
                    if filter != RESPONSE {
                        return ReasonCode::TopicFilterInvalid;
                    }
                    *qos = wanted.min(QoS::AtLeastOnce);
                    ReasonCode::granted(*qos)
                };
                let filters = subscribe.filters.iter();
                let codes: Vec<_> = filters
                    .map(|wanted| code(wanted.filter, wanted.options.qos, qos))
                    .collect();
                let suback = Suback::new(subscribe.packet_id, &codes[..]);
                written(suback.encode(self.session.version(), &mut self.out))
            }
            Ok(ServerEvent::Unsubscribe(unsubscribe)) => {
                let codes: Vec<_> = unsubscribe.filters.iter().map(|_| ReasonCode::Success).collect();
                let unsuback = Unsuback::new(unsubscribe.packet_id, &codes[..]);
                written(unsuback.encode(self.session.version(), &mut self.out))
            }
            Ok(ServerEvent::Disconnect(_)) => Wish::End(None),
            Ok(ServerEvent::Connect(_) | ServerEvent::Auth(_)) => Wish::End(Some(ReasonCode::ProtocolError)),
            Ok(ServerEvent::Acknowledged { .. } | ServerEvent::Handled) => Wish::Nothing,
            Err(error) => Wish::End(Some(error.reason_code())),
        }
    }

    fn acknowledge(&mut self, publish: &Publish<'_>, code: ReasonCode) {
        let Some(id) = publish.packet_id else { return };
        // The codes used here belong to both answers.
        let _ = match publish.qos {
            QoS::ExactlyOnce => self.session.pubrec(id, code, &mut self.out),
            QoS::AtMostOnce | QoS::AtLeastOnce => self.session.puback(id, code, &mut self.out),
        };
    }

    /// Answers a request. Returns whether the connection stays.
    async fn answer(&mut self, shared: &Shared, payload: &[u8], qos: QoS) -> bool {
        if !shared.services.guard.admits(self.address) {
            self.session.disconnect_because(
                ReasonCode::NotAuthorized,
                "Too many wrong credentials came from this address",
                &mut self.out,
            );
            return false;
        }
        let Ok(asked) = Provision::parse(payload) else {
            self.session
                .disconnect(ReasonCode::PayloadFormatInvalid, &mut self.out);
            return false;
        };
        let provisioning = &shared.services.onboarding.provisioning;
        let answer = match provisioning.provision(&asked.request).await {
            Ok(provisioned) => {
                // Whoever guesses keys and secrets is nobody's device.
                if provisioned.status == ProvisionStatus::NotFound {
                    shared.services.guard.was_wrong(self.address);
                }
                asked.answer(&provisioned)
            }
            Err(error) => {
                if let Some(suppressed) = STORE_GATE.open() {
                    warn!(%error, suppressed, "cannot provision a device");
                }
                self.session.disconnect(ReasonCode::ServerBusy, &mut self.out);
                return false;
            }
        };
        let publish = Publish {
            qos,
            ..Publish::new(RESPONSE, &answer)
        };
        self.session.publish(&publish, None, &mut self.out).is_ok()
    }
}

fn written<E>(encoded: Result<(), E>) -> Wish {
    match encoded {
        Ok(()) => Wish::Nothing,
        Err(_) => Wish::End(Some(ReasonCode::ImplementationSpecificError)),
    }
}
