//! Connections of provisioning clients: not yet devices, they can only ask for credentials.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use fieldline_codec::session::{ServerEvent, ServerSession};
use fieldline_codec::{
    Packet, PacketId, PublishPacket, QoS, ReasonCode, SubackPacket, UnsubackPacket, decode_frame,
};
use fieldline_core::logging::LogGate;
use fieldline_entities::services::ProvisionStatus;
use fieldline_event_loop::TaskStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tracing::warn;

use super::connection::MqttShared;
use super::downlink::InFlightRpc;
use crate::payload::ProvisionPayload;

static STORE_GATE: LogGate = LogGate::new(2);

/// User name or client id of such a connection.
pub(super) const NAME: &str = "provision";
const REQUEST: &str = "/provision/request";
const RESPONSE: &str = "/provision/response";
/// Longest time of such a connection without a request, from its start or from the last answer.
const PROVISIONING_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection that was accepted for provisioning.
pub(super) struct ProvisioningClient {
    pub(super) session: ServerSession<InFlightRpc>,
    /// Output to write.
    pub(super) out: Vec<u8>,
    /// Input that was not handled yet.
    pub(super) input: Vec<u8>,
    /// The address of the client.
    pub(super) address: IpAddr,
}

/// The outcome of one packet.
enum ProvisioningStep {
    Nothing,
    Credentials(CredentialsRequest),
    /// The connection ends, with a reason code for version 5.
    End(Option<ReasonCode>),
}

/// A request for credentials.
struct CredentialsRequest {
    payload: Vec<u8>,
    qos: QoS,
    packet_id: Option<PacketId>,
}

/// Whether the client has subscribed to responses, and their QoS.
struct ResponseSubscription {
    is_there: bool,
    qos: QoS,
}

/// Serves the connection until it ends.
pub(super) async fn serve<S: TaskStream>(
    stream: &mut S,
    shared: &MqttShared,
    mut newcomer: ProvisioningClient,
) {
    let mut subscription = ResponseSubscription {
        is_there: false,
        qos: QoS::AtLeastOnce,
    };
    loop {
        let turn = tokio::time::timeout(
            PROVISIONING_TIMEOUT,
            newcomer.serve_request(stream, shared, &mut subscription),
        );
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

impl ProvisioningClient {
    /// Reads packets until the next request is answered. Returns whether the connection stays open.
    async fn serve_request<S: TaskStream>(
        &mut self,
        stream: &mut S,
        shared: &MqttShared,
        subscription: &mut ResponseSubscription,
    ) -> io::Result<bool> {
        let mut share = shared.partial_budget.share();
        loop {
            let wish = self.next(shared, subscription);
            if let Some(ProvisioningStep::End(code)) = &wish {
                if let Some(code) = *code {
                    self.session.disconnect(code, &mut self.out);
                }
                return Ok(false);
            }
            if let Some(ProvisioningStep::Credentials(asking)) = wish {
                let stays = self.answer(shared, &asking, subscription.qos).await;
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

    async fn flush<S: TaskStream>(&mut self, stream: &mut S) -> io::Result<()> {
        stream.write_all(&self.out).await?;
        stream.flush().await?;
        self.out.clear();
        Ok(())
    }

    /// Handles the next packet, if a whole one has arrived.
    fn next(
        &mut self,
        shared: &MqttShared,
        subscription: &mut ResponseSubscription,
    ) -> Option<ProvisioningStep> {
        let input = std::mem::take(&mut self.input);
        let (wish, used) = match decode_frame(&input, shared.max_packet, self.session.version()) {
            Ok(Some((packet, used))) => (Some(self.packet(&packet, subscription)), used),
            Ok(None) => (None, 0),
            Err(_) => (Some(ProvisioningStep::End(Some(ReasonCode::MalformedPacket))), 0),
        };
        self.input = input;
        self.input.drain(..used);
        wish
    }

    fn packet(&mut self, packet: &Packet<'_>, subscription: &mut ResponseSubscription) -> ProvisioningStep {
        match self.session.receive(packet, 0, &mut self.out) {
            Ok(ServerEvent::Publish(publish)) => {
                let asking = CredentialsRequest {
                    payload: publish.payload.to_vec(),
                    qos: publish.qos,
                    packet_id: publish.packet_id,
                };
                if self.session.topic(publish) != REQUEST {
                    self.acknowledge(&asking, ReasonCode::TopicNameInvalid);
                    return ProvisioningStep::End(Some(ReasonCode::TopicNameInvalid));
                }
                ProvisioningStep::Credentials(asking)
            }
            Ok(ServerEvent::PublishAgain(publish)) => {
                let again = CredentialsRequest {
                    payload: Vec::new(),
                    qos: publish.qos,
                    packet_id: publish.packet_id,
                };
                self.acknowledge(&again, ReasonCode::Success);
                ProvisioningStep::Nothing
            }
            Ok(ServerEvent::Subscribe(subscribe)) => {
                let mut codes = Vec::with_capacity(subscribe.filters.len());
                for wanted in subscribe.filters.iter() {
                    codes.push(if wanted.filter == RESPONSE {
                        *subscription = ResponseSubscription {
                            is_there: true,
                            qos: wanted.options.qos.min(QoS::AtLeastOnce),
                        };
                        ReasonCode::granted(subscription.qos)
                    } else {
                        ReasonCode::TopicFilterInvalid
                    });
                }
                let suback = SubackPacket::new(subscribe.packet_id, &codes[..]);
                written(suback.encode(self.session.version(), &mut self.out))
            }
            Ok(ServerEvent::Unsubscribe(unsubscribe)) => {
                let mut codes = Vec::with_capacity(unsubscribe.filters.len());
                for filter in unsubscribe.filters.iter() {
                    let is_there = filter == RESPONSE && std::mem::take(&mut subscription.is_there);
                    codes.push(match is_there {
                        true => ReasonCode::Success,
                        false => ReasonCode::NoSubscriptionExisted,
                    });
                }
                let unsuback = UnsubackPacket::new(unsubscribe.packet_id, &codes[..]);
                written(unsuback.encode(self.session.version(), &mut self.out))
            }
            Ok(ServerEvent::Disconnect(_)) => ProvisioningStep::End(None),
            Ok(ServerEvent::Connect(_) | ServerEvent::Auth(_)) => {
                ProvisioningStep::End(Some(ReasonCode::ProtocolError))
            }
            Ok(ServerEvent::Acknowledged { .. } | ServerEvent::Handled) => ProvisioningStep::Nothing,
            Err(error) => ProvisioningStep::End(Some(error.reason_code())),
        }
    }

    fn acknowledge(&mut self, asking: &CredentialsRequest, code: ReasonCode) {
        let Some(id) = asking.packet_id else { return };
        // All codes used here are valid in PUBACK and PUBREC.
        let _ = match asking.qos {
            QoS::ExactlyOnce => self.session.pubrec(id, code, &mut self.out),
            QoS::AtMostOnce | QoS::AtLeastOnce => self.session.puback(id, code, &mut self.out),
        };
    }

    /// Answers a request. Returns whether the connection stays open.
    async fn answer(&mut self, shared: &MqttShared, asking: &CredentialsRequest, qos: QoS) -> bool {
        if !shared.services.guard.try_admit(self.address) {
            self.session.disconnect_with_reason(
                ReasonCode::NotAuthorized,
                "Too many wrong credentials came from this address",
                &mut self.out,
            );
            return false;
        }
        let Ok(asked) = ProvisionPayload::parse(&asking.payload) else {
            // Version 5 gets a code and goes on; version 3 can only be disconnected.
            let goes_on = self.session.version().is_v5() && asking.packet_id.is_some();
            if goes_on {
                self.acknowledge(asking, ReasonCode::PayloadFormatInvalid);
            } else {
                self.session
                    .disconnect(ReasonCode::PayloadFormatInvalid, &mut self.out);
            }
            return goes_on;
        };
        let provisioning = &shared.services.onboarding.provisioning;
        let answer = match provisioning.provision(&asked.request).await {
            Ok(provisioned) => {
                // Wrong keys and secrets count against the address, as there is no device to blame.
                if provisioned.status == ProvisionStatus::NotFound {
                    shared.services.guard.record_failure(self.address);
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
        self.acknowledge(asking, ReasonCode::Success);
        let publish = PublishPacket {
            qos,
            ..PublishPacket::new(RESPONSE, &answer)
        };
        self.session.publish(&publish, None, &mut self.out).is_ok()
    }
}

fn written<E>(encoded: Result<(), E>) -> ProvisioningStep {
    match encoded {
        Ok(()) => ProvisioningStep::Nothing,
        Err(_) => ProvisioningStep::End(Some(ReasonCode::ImplementationSpecificError)),
    }
}
