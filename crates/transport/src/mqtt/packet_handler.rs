//! Handles the packets of a device: turns them into journal records, answers, or the end of the connection. Works on
//! bytes only; [`super::connection`] reads, writes and waits.

use std::sync::Arc;

use fieldline_codec::session::{ServerEvent, ServerSession};
use fieldline_codec::{
    Packet, PublishPacket, QoS, ReasonCode, SubackPacket, SubscribePacket, UnsubackPacket, UnsubscribePacket,
    decode_frame,
};
use fieldline_core::logging::LogGate;
use fieldline_core::partial_budget::BufferReservation;
use fieldline_devices::directory::{DeviceHandle, DeviceRole, DeviceSettings, MessageLimits, MessageRefusal};
use fieldline_devices::sessions::SessionGuard;
use fieldline_model::json;
use fieldline_model::record::{BatchMark, RecordBatch};
use tracing::{debug, warn};

use super::cold_state::ColdState;
use super::connection::MqttShared;
use super::downlink::InFlightRpc;
use super::firmware::ChunkRequest;
use super::gateway::GatewayMessage;
use super::login::AuthenticatedDevice;
use super::topics::{self, DeviceTopic, GrantedFilters, TopicFamily};
use crate::payload::{DeviceAttributeRequest, PayloadError};

static ANSWER_GATE: LogGate = LogGate::new(2);

/// The RPC method that is answered with the device's limits.
const SESSION_LIMITS: &str = "getSessionLimits";

/// An output buffer larger than this is freed after the write, bytes.
const MAX_IDLE_OUT_BYTES: usize = 256;

/// The next step after the input was handled.
pub(super) enum ReadOutcome {
    /// All of the input was handled.
    Continue,
    /// This request must be answered before the next packet is handled.
    Answer(Box<DeferredRequest>),
    /// The connection ends, with a reason code if the server ends it.
    End(Option<ReasonCode>),
}

/// A request of a device that is answered asynchronously.
pub(super) enum DeferredRequest {
    /// The answer is published in this topic family, with this number.
    Attributes(TopicFamily, i32, DeviceAttributeRequest),
    SessionLimits(TopicFamily, i32),
    Claim(json::ClaimPayload),
    Gateway(GatewayMessage),
    Chunk(ChunkRequest),
}

/// The state of a connection that packets change.
pub(super) struct PacketHandler {
    pub(super) settings: Arc<DeviceSettings>,
    pub(super) session: ServerSession<InFlightRpc>,
    /// Output to write, acknowledgements of this cycle included.
    pub(super) out: Vec<u8>,
    /// The beginning of an incomplete packet, or packets that wait until a request was answered.
    rest: Vec<u8>,
    /// Bytes of `rest` that were handled already.
    rest_used: u32,
    reservation: BufferReservation,
    pub(super) granted: GrantedFilters,
    pub(super) cold: ColdState,
    /// The session as registered with the platform.
    pub(super) guard: SessionGuard,
}

/// Whether the packet loop goes on after a packet.
pub(super) enum PacketFlow {
    Next,
    Stop(ReadOutcome),
}

impl PacketHandler {
    pub(super) fn new(admitted: AuthenticatedDevice, guard: SessionGuard, share: BufferReservation) -> Self {
        Self {
            settings: admitted.device.settings(),
            session: admitted.session,
            out: admitted.connack,
            rest: admitted.rest,
            rest_used: 0,
            reservation: share,
            granted: GrantedFilters::default(),
            cold: ColdState::default(),
            guard,
        }
    }

    /// The device of the connection.
    #[inline]
    pub(super) fn device(&self) -> &Arc<DeviceHandle> {
        self.guard.device()
    }

    /// Whether there is output to write.
    pub(super) fn has_answers(&self) -> bool {
        !self.out.is_empty()
    }

    /// Clears the written output, and frees the memory of an unusually long one.
    pub(super) fn clear_out(&mut self) {
        if self.out.capacity() > MAX_IDLE_OUT_BYTES {
            self.out = Vec::new();
            self.cold.finish_write();
        } else {
            self.out.clear();
        }
    }

    /// Handles the input of a read.
    pub(super) fn receive(
        &mut self,
        shared: &MqttShared,
        input: &[u8],
        batch: &mut RecordBatch,
    ) -> ReadOutcome {
        self.receive_from_sub_devices(shared);
        if self.rest.is_empty() {
            let (used, step) = self.handle(shared, input, batch);
            self.rest.extend_from_slice(input.get(used..).unwrap_or_default());
            return self.reserve_memory(step);
        }
        self.buffer_input(input);
        self.resume(shared, batch)
    }

    /// Buffers the input of a read for later.
    pub(super) fn buffer_input(&mut self, input: &[u8]) {
        self.rest.drain(..self.rest_used as usize);
        self.rest_used = 0;
        self.rest.extend_from_slice(input);
    }

    /// Handles the rest of earlier reads.
    pub(super) fn resume(&mut self, shared: &MqttShared, batch: &mut RecordBatch) -> ReadOutcome {
        let mut input = std::mem::take(&mut self.rest);
        let before = self.rest_used as usize;
        let (used, step) = self.handle(shared, input.get(before..).unwrap_or_default(), batch);
        let used = before + used;
        if used >= input.len() {
            self.rest_used = 0;
        } else if matches!(step, ReadOutcome::Answer(_)) {
            // More packets may follow: they are not moved for each answer.
            self.rest = input;
            // One read and one packet are far below 4 GiB.
            self.rest_used = used as u32;
        } else {
            // The rest is a part of one packet, kept in a buffer that fits it.
            input.drain(..used);
            input.shrink_to_fit();
            self.rest = input;
            self.rest_used = 0;
        }
        self.reserve_memory(step)
    }

    /// Ends the connection if the budget has no memory for its partial packet.
    fn reserve_memory(&mut self, step: ReadOutcome) -> ReadOutcome {
        if self.reservation.resize(self.rest.capacity()) {
            step
        } else {
            ReadOutcome::End(Some(ReasonCode::QuotaExceeded))
        }
    }

    fn handle(&mut self, shared: &MqttShared, input: &[u8], batch: &mut RecordBatch) -> (usize, ReadOutcome) {
        let mut used = 0;
        while let Some(rest) = input.get(used..).filter(|rest| !rest.is_empty()) {
            let (packet, length) = match decode_frame(rest, shared.max_packet, self.session.version()) {
                Ok(Some(decoded)) => decoded,
                Ok(None) => break,
                Err(error) => {
                    debug!(device = %self.device().id, %error, "malformed packet");
                    // Servers of this API use this code for all decoding errors, an oversized packet included.
                    return (used, ReadOutcome::End(Some(ReasonCode::MalformedPacket)));
                }
            };
            used += length;
            if let PacketFlow::Stop(step) = self.packet(shared, &packet, batch) {
                return (used, step);
            }
        }
        (used, ReadOutcome::Continue)
    }

    fn packet(&mut self, shared: &MqttShared, packet: &Packet<'_>, batch: &mut RecordBatch) -> PacketFlow {
        let now_ms = u64::from(shared.keep_alive.now_s()) * 1_000;
        match self.session.receive(packet, now_ms, &mut self.out) {
            Ok(ServerEvent::Publish(publish)) => self.publish(shared, publish, batch),
            // The first copy was handled already: only the acknowledgement is missing.
            Ok(ServerEvent::PublishAgain(publish)) => {
                self.acknowledge(publish, ReasonCode::Success);
                PacketFlow::Next
            }
            Ok(ServerEvent::Subscribe(subscribe)) => {
                shared.services.activity.record_activity(self.device().subject);
                self.subscribe(subscribe)
            }
            Ok(ServerEvent::Unsubscribe(unsubscribe)) => {
                shared.services.activity.record_activity(self.device().subject);
                self.unsubscribe(unsubscribe)
            }
            Ok(ServerEvent::Disconnect(_)) => PacketFlow::Stop(ReadOutcome::End(None)),
            Ok(ServerEvent::Connect(_) | ServerEvent::Auth(_)) => {
                PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::ProtocolError)))
            }
            Ok(ServerEvent::Acknowledged { message, .. }) => {
                if let Some(call) = message {
                    shared.services.rpc.handle_delivery(&call);
                }
                PacketFlow::Next
            }
            Ok(ServerEvent::Handled) => {
                if matches!(packet, Packet::Pingreq) {
                    shared.services.activity.record_activity(self.device().subject);
                }
                PacketFlow::Next
            }
            Err(error) => PacketFlow::Stop(ReadOutcome::End(Some(error.reason_code()))),
        }
    }

    fn publish(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        batch: &mut RecordBatch,
    ) -> PacketFlow {
        let services = &shared.services;
        if !self.device().may_send() {
            return self.refuse(shared, &MessageRefusal::UsedUp);
        }
        let name = self.session.topic(publish);
        let ttl_seconds = self.settings.ttl_seconds;
        let before = batch.mark();
        match topics::parse_topic(name, &self.settings) {
            DeviceTopic::Telemetry(family) => {
                let format = family.uplink_format(&self.settings);
                let parsed = format.telemetry(services, self.device(), ttl_seconds, publish.payload, batch);
                self.accept_records(shared, publish, parsed, batch, before)
            }
            DeviceTopic::Attributes(family) => {
                let format = family.uplink_format(&self.settings);
                let parsed = format.attributes(services, self.device(), publish.payload, batch);
                self.accept_records(shared, publish, parsed, batch, before)
            }
            DeviceTopic::AttributeRequest { family, id } => match number_of(id) {
                Some(number) => {
                    let format = family.uplink_format(&self.settings);
                    let question = format
                        .attribute_request(publish.payload)
                        .map(|request| DeferredRequest::Attributes(family, number, request));
                    self.defer_request(shared, publish, question)
                }
                None => self.reject_invalid(shared, publish),
            },
            DeviceTopic::Call { family, id } => match number_of(id) {
                Some(number) => match family.uplink_format(&self.settings).call(publish.payload) {
                    Ok(call) if call.method == SESSION_LIMITS => self.defer_request(
                        shared,
                        publish,
                        Ok(DeferredRequest::SessionLimits(family, number)),
                    ),
                    Ok(call) => self.handle_client_rpc(shared, publish, (family, number), &call, batch),
                    Err(error) => self.finish_publish(shared, publish, Err(error)),
                },
                None => self.reject_invalid(shared, publish),
            },
            DeviceTopic::Answer { family, id } => match number_of(id) {
                Some(number) => match family.uplink_format(&self.settings).answer(publish.payload) {
                    Ok(body) => self.handle_rpc_response(shared, publish, number, body),
                    Err(error) => self.finish_publish(shared, publish, Err(error)),
                },
                None => self.reject_invalid(shared, publish),
            },
            DeviceTopic::Gateway(topic) => {
                let said = GatewayMessage::of(publish, topic);
                PacketFlow::Stop(ReadOutcome::Answer(Box::new(DeferredRequest::Gateway(said))))
            }
            DeviceTopic::Claim => {
                let format = TopicFamily::V1.uplink_format(&self.settings);
                let question = format.claim(publish.payload).map(DeferredRequest::Claim);
                self.defer_request(shared, publish, question)
            }
            DeviceTopic::Chunk { kind, id, number } if is_digits(id) => {
                let wanted = (id.to_owned(), number.parse().ok());
                self.ask_chunk(shared, publish, kind, wanted)
            }
            DeviceTopic::Unknown | DeviceTopic::Chunk { .. } => {
                services.activity.record_activity(self.device().subject);
                self.acknowledge(publish, ReasonCode::TopicNameInvalid);
                PacketFlow::Next
            }
        }
    }

    pub(super) fn defer_request(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        question: Result<DeferredRequest, PayloadError>,
    ) -> PacketFlow {
        let question = match question {
            Ok(question) => question,
            Err(error) => return self.finish_publish(shared, publish, Err(error)),
        };
        if let Err(refused) = self.device().acquire(0) {
            return self.refuse(shared, &refused);
        }
        shared.services.activity.record_activity(self.device().subject);
        self.acknowledge(publish, ReasonCode::Success);
        PacketFlow::Stop(ReadOutcome::Answer(Box::new(question)))
    }

    /// Keeps the records of a message in the batch, unless they exceed a rate limit.
    fn accept_records(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        parsed: Result<(), PayloadError>,
        batch: &mut RecordBatch,
        before: BatchMark,
    ) -> PacketFlow {
        if parsed.is_ok()
            && let Err(refused) = self.device().acquire(batch.points_since(before))
        {
            batch.truncate_to(before);
            return self.refuse(shared, &refused);
        }
        self.finish_publish(shared, publish, parsed)
    }

    /// Ends the connection of a device that exceeds a limit; version 5 gets the limit as reason string.
    pub(super) fn refuse(&mut self, shared: &MqttShared, refused: &MessageRefusal) -> PacketFlow {
        shared.metrics.count_limited(self.device().id, refused);
        let code = ReasonCode::ImplementationSpecificError;
        self.session
            .disconnect_with_reason(code, &refused.to_string(), &mut self.out);
        PacketFlow::Stop(ReadOutcome::End(None))
    }

    fn finish_publish(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        parsed: Result<(), PayloadError>,
    ) -> PacketFlow {
        match parsed {
            Ok(()) => {
                self.acknowledge(publish, ReasonCode::Success);
                PacketFlow::Next
            }
            Err(error) => {
                debug!(device = %self.device().id, %error, "message failed validation");
                self.reject_invalid(shared, publish)
            }
        }
    }

    /// Refuses an invalid message. Version 5 gets a code and goes on; version 3 can only be disconnected, unless the
    /// profile says otherwise.
    pub(super) fn reject_invalid(&mut self, shared: &MqttShared, publish: &PublishPacket<'_>) -> PacketFlow {
        shared.metrics.rejected.increment(1);
        let goes_on = self.session.version().is_v5() || self.settings.ack_on_validation_error;
        if publish.packet_id.is_some() && goes_on {
            self.acknowledge(publish, ReasonCode::PayloadFormatInvalid);
            return PacketFlow::Next;
        }
        PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::PayloadFormatInvalid)))
    }

    /// Acknowledges a publish of QoS 1 or 2. The message is settled with this packet: for QoS 2, only the identifier is
    /// left to be released.
    pub(super) fn acknowledge(&mut self, publish: &PublishPacket<'_>, code: ReasonCode) {
        let Some(id) = publish.packet_id else { return };
        // All codes used here are valid in PUBACK and PUBREC, so encoding succeeds.
        let written = match publish.qos {
            QoS::ExactlyOnce => self.session.pubrec(id, code, &mut self.out),
            QoS::AtMostOnce | QoS::AtLeastOnce => self.session.puback(id, code, &mut self.out),
        };
        debug_assert!(written.is_ok(), "a code that the answer may not carry");
    }

    fn subscribe(&mut self, subscribe: &SubscribePacket<'_>) -> PacketFlow {
        let codes: Vec<_> = subscribe
            .filters
            .iter()
            .map(
                |wanted| match topics::filter_code(wanted.filter, &self.settings) {
                    Some(filter) => ReasonCode::granted(self.granted.grant(filter, wanted.options.qos)),
                    None => ReasonCode::TopicFilterInvalid,
                },
            )
            .collect();
        match SubackPacket::new(subscribe.packet_id, &codes[..]).encode(self.session.version(), &mut self.out)
        {
            Ok(()) => PacketFlow::Next,
            Err(_) => PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::ImplementationSpecificError))),
        }
    }

    fn unsubscribe(&mut self, unsubscribe: &UnsubscribePacket<'_>) -> PacketFlow {
        let codes: Vec<_> = unsubscribe
            .filters
            .iter()
            .map(|filter| match topics::filter_code(filter, &self.settings) {
                Some(filter) if self.granted.revoke(filter) => ReasonCode::Success,
                Some(_) => ReasonCode::NoSubscriptionExisted,
                None => ReasonCode::TopicFilterInvalid,
            })
            .collect();
        match UnsubackPacket::new(unsubscribe.packet_id, &codes[..])
            .encode(self.session.version(), &mut self.out)
        {
            Ok(()) => PacketFlow::Next,
            Err(_) => PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::ImplementationSpecificError))),
        }
    }

    /// Answers a deferred request, or does other asynchronous work. Returns the next step.
    pub(super) async fn answer(
        &mut self,
        shared: &MqttShared,
        question: Box<DeferredRequest>,
    ) -> ReadOutcome {
        let (topic, payload) = match *question {
            DeferredRequest::Attributes(family, number, request) => {
                let found = match request.find(&shared.services, self.device()).await {
                    Ok(found) => found,
                    Err(error) => {
                        if let Some(suppressed) = ANSWER_GATE.open() {
                            warn!(%error, suppressed, "cannot answer an attribute request");
                        }
                        return ReadOutcome::Continue;
                    }
                };
                let format = family.downlink_format(&self.settings);
                let payload = format.found(number, &request, &found);
                (format!("{}{number}", family.attribute_answers()), payload)
            }
            DeferredRequest::SessionLimits(family, number) => {
                let limits = session_limits(shared, &self.settings, self.device().role());
                let format = family.downlink_format(&self.settings);
                let payload = format.platform_answer(number, &limits);
                (format!("{}{number}", family.answers()), payload)
            }
            DeferredRequest::Claim(claim) => {
                self.open_claim(shared, claim).await;
                return ReadOutcome::Continue;
            }
            DeferredRequest::Gateway(said) => return self.handle_gateway(shared, said).await,
            DeferredRequest::Chunk(request) => return self.send_chunk(shared, request).await,
        };
        let qos = self.granted.qos_of(&topic).unwrap_or(QoS::AtLeastOnce);
        if let Err(error) = self.send(&topic, qos, &payload, None) {
            debug!(device = %self.device().id, %error, "cannot send an answer");
        }
        ReadOutcome::Continue
    }

    /// Opens the device for claiming. The device is not told whether it can be claimed, as that does not concern it.
    async fn open_claim(&self, shared: &MqttShared, claim: json::ClaimPayload) {
        let claims = &shared.services.onboarding.claims;
        let subject = self.device().subject;
        if let Err(error) = claims.open(subject, claim.secret_key, claim.duration_ms).await
            && let Some(suppressed) = ANSWER_GATE.open()
        {
            warn!(%error, suppressed, "cannot look up whether a device can be claimed");
        }
    }
}

fn number_of(text: &str) -> Option<i32> {
    text.parse().ok()
}

fn is_digits(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The limits that the SDKs of this API ask for after connecting: those of the device and, for a gateway, those of the
/// devices behind it.
fn session_limits(shared: &MqttShared, settings: &DeviceSettings, role: DeviceRole) -> String {
    let mut out = format!(
        "{{\"maxPayloadSize\":{},\"maxInflightMessages\":100,\"rateLimits\":",
        shared.max_content
    );
    write_limits(settings.limits_of(role), &mut out);
    if role.is_gateway {
        out.push_str(",\"gatewayRateLimits\":");
        write_limits(&settings.of_gateway, &mut out);
    }
    out.push('}');
    out
}

fn write_limits(limits: &MessageLimits, out: &mut String) {
    let names = ["messages", "telemetryMessages", "telemetryDataPoints"];
    out.push('{');
    for (index, (name, limit)) in names.into_iter().zip(&limits.texts).enumerate() {
        if index > 0 {
            out.push(',');
        }
        json::write_string(name, out);
        out.push(':');
        match limit {
            Some(limit) => json::write_string(limit, out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
}
