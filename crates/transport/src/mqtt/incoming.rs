//! What a device's packets mean: records for the journal, answers, or the end of the connection. Sees bytes only; reading,
//! writing and waiting are done by [`super::connection`].

use std::sync::Arc;

use fieldline_codec::session::{ServerEvent, ServerSession};
use fieldline_codec::{
    Packet, Publish, QoS, ReasonCode, Suback, Subscribe, Unsuback, Unsubscribe, decode_frame,
};
use fieldline_core::devices::{DeviceHandle, DeviceSettings, MessageLimits, Refused, Role};
use fieldline_core::logging::LogGate;
use fieldline_core::sessions::SessionGuard;
use fieldline_model::json;
use fieldline_model::record::{BatchMark, RecordBatch};
use tracing::{debug, warn};

use super::connection::Shared;
use super::firmware::ChunkRequest;
use super::gateway::Said;
use super::login::Admitted;
use super::partial::Share;
use super::rare::Rare;
use super::topics::{self, Family, Granted, Uplink};
use super::two_way::Sent;
use crate::payload::{AttributeRequest, PayloadError};

static ANSWER_GATE: LogGate = LogGate::new(2);

/// The call that is answered with how much the device may send.
const SESSION_LIMITS: &str = "getSessionLimits";

/// An output buffer beyond this is given back after it was written.
const KEPT_OUT: usize = 256;

/// How to go on after what was read.
pub(super) enum Step {
    /// Everything is handled.
    Continue,
    /// This has to be answered before the next packet is looked at.
    Answer(Box<Question>),
    /// The connection ends, with a code for the device where the server ends it.
    End(Option<ReasonCode>),
}

/// What a device asks, and how it is answered.
pub(super) enum Question {
    /// With a publish of that family, which carries the number.
    Attributes(Family, i32, AttributeRequest),
    SessionLimits(Family, i32),
    Claim(json::Claim),
    Gateway(Said),
    Chunk(ChunkRequest),
}

/// The state of a connection that packets act on.
pub(super) struct Incoming {
    pub(super) settings: Arc<DeviceSettings>,
    pub(super) session: ServerSession<Sent>,
    /// What is to be written, acknowledgements of this turn included.
    pub(super) out: Vec<u8>,
    /// The beginning of a packet whose rest has not arrived, or packets that wait for an answer.
    rest: Vec<u8>,
    /// How much of it has been handled already.
    rest_used: u32,
    share: Share,
    pub(super) granted: Granted,
    pub(super) rare: Rare,
    /// The session as the rest of the platform knows it.
    pub(super) guard: SessionGuard,
}

/// Whether a packet let the loop go on.
pub(super) enum Flow {
    Next,
    Stop(Step),
}

impl Incoming {
    pub(super) fn new(admitted: Admitted, guard: SessionGuard, share: Share) -> Self {
        Self {
            settings: admitted.device.settings(),
            session: admitted.session,
            out: admitted.greeting,
            rest: admitted.rest,
            rest_used: 0,
            share,
            granted: Granted::default(),
            rare: Rare::default(),
            guard,
        }
    }

    /// The device.
    #[inline]
    pub(super) fn device(&self) -> &Arc<DeviceHandle> {
        self.guard.device()
    }

    /// Whether something waits to be written.
    pub(super) fn has_answers(&self) -> bool {
        !self.out.is_empty()
    }

    /// Forgets what was written, and the memory of an unusually long answer.
    pub(super) fn clear_out(&mut self) {
        if self.out.capacity() > KEPT_OUT {
            self.out = Vec::new();
            self.rare.written();
        } else {
            self.out.clear();
        }
    }

    /// Handles what a read brought.
    pub(super) fn receive(&mut self, shared: &Shared, input: &[u8], batch: &mut RecordBatch) -> Step {
        self.hear_behind(shared);
        if self.rest.is_empty() {
            let (used, step) = self.handle(shared, input, batch);
            self.rest.extend_from_slice(input.get(used..).unwrap_or_default());
            return self.hold(step);
        }
        self.keep(input);
        self.resume(shared, batch)
    }

    /// Keeps what a read brought for later.
    pub(super) fn keep(&mut self, input: &[u8]) {
        self.rest.drain(..self.rest_used as usize);
        self.rest_used = 0;
        self.rest.extend_from_slice(input);
    }

    /// Handles what is left of earlier reads.
    pub(super) fn resume(&mut self, shared: &Shared, batch: &mut RecordBatch) -> Step {
        let mut input = std::mem::take(&mut self.rest);
        let before = self.rest_used as usize;
        let (used, step) = self.handle(shared, input.get(before..).unwrap_or_default(), batch);
        let used = before + used;
        if used >= input.len() {
            self.rest_used = 0;
        } else if matches!(step, Step::Answer(_)) {
            // More packets may follow: they are not moved for each answer.
            self.rest = input;
            // One read and one packet are far below 4 GiB.
            self.rest_used = used as u32;
        } else {
            // What is left is a part of one packet, in a buffer that fits it.
            input.drain(..used);
            input.shrink_to_fit();
            self.rest = input;
            self.rest_used = 0;
        }
        self.hold(step)
    }

    /// Ends the connection if there is no memory for what it has sent a part of.
    fn hold(&mut self, step: Step) -> Step {
        if self.share.resize(self.rest.capacity()) {
            step
        } else {
            Step::End(Some(ReasonCode::QuotaExceeded))
        }
    }

    fn handle(&mut self, shared: &Shared, input: &[u8], batch: &mut RecordBatch) -> (usize, Step) {
        let mut used = 0;
        while let Some(rest) = input.get(used..).filter(|rest| !rest.is_empty()) {
            let (packet, length) = match decode_frame(rest, shared.max_packet, self.session.version()) {
                Ok(Some(decoded)) => decoded,
                Ok(None) => break,
                Err(error) => {
                    debug!(device = %self.device().id, %error, "malformed packet");
                    // Servers of this API tell all that cannot be decoded, an oversized packet too, with this code.
                    return (used, Step::End(Some(ReasonCode::MalformedPacket)));
                }
            };
            used += length;
            if let Flow::Stop(step) = self.packet(shared, &packet, batch) {
                return (used, step);
            }
        }
        (used, Step::Continue)
    }

    fn packet(&mut self, shared: &Shared, packet: &Packet<'_>, batch: &mut RecordBatch) -> Flow {
        let now_ms = u64::from(shared.keep_alive.now_s()) * 1_000;
        match self.session.receive(packet, now_ms, &mut self.out) {
            Ok(ServerEvent::Publish(publish)) => self.publish(shared, publish, batch),
            // Taken already when it came first: only the answer is missing.
            Ok(ServerEvent::PublishAgain(publish)) => {
                self.acknowledge(publish, ReasonCode::Success);
                Flow::Next
            }
            Ok(ServerEvent::Subscribe(subscribe)) => {
                shared.services.activity.heard(self.device().subject);
                self.subscribe(subscribe)
            }
            Ok(ServerEvent::Unsubscribe(unsubscribe)) => {
                shared.services.activity.heard(self.device().subject);
                self.unsubscribe(unsubscribe)
            }
            Ok(ServerEvent::Disconnect(_)) => Flow::Stop(Step::End(None)),
            Ok(ServerEvent::Connect(_) | ServerEvent::Auth(_)) => {
                Flow::Stop(Step::End(Some(ReasonCode::ProtocolError)))
            }
            Ok(ServerEvent::Acknowledged { message, .. }) => {
                if let Some(call) = message {
                    shared.services.calls.delivered(&call);
                }
                Flow::Next
            }
            Ok(ServerEvent::Handled) => {
                if matches!(packet, Packet::Pingreq) {
                    shared.services.activity.heard(self.device().subject);
                }
                Flow::Next
            }
            Err(error) => Flow::Stop(Step::End(Some(error.reason_code()))),
        }
    }

    fn publish(&mut self, shared: &Shared, publish: &Publish<'_>, batch: &mut RecordBatch) -> Flow {
        let services = &shared.services;
        if !self.device().may_send() {
            return self.refuse(shared, &Refused::UsedUp);
        }
        let name = self.session.topic(publish);
        let ttl_seconds = self.settings.ttl_seconds;
        let before = batch.mark();
        match topics::uplink(name, &self.settings) {
            Uplink::Telemetry(family) => {
                let format = family.uplink_format(&self.settings);
                let parsed = format.telemetry(services, self.device(), ttl_seconds, publish.payload, batch);
                self.take(shared, publish, parsed, batch, before)
            }
            Uplink::Attributes(family) => {
                let format = family.uplink_format(&self.settings);
                let parsed = format.attributes(services, self.device(), publish.payload, batch);
                self.take(shared, publish, parsed, batch, before)
            }
            Uplink::AttributeRequest { family, id } => match number_of(id) {
                Some(number) => {
                    let format = family.uplink_format(&self.settings);
                    let question = format
                        .attribute_request(publish.payload)
                        .map(|request| Question::Attributes(family, number, request));
                    self.ask(shared, publish, question)
                }
                None => self.invalid(shared, publish),
            },
            Uplink::Call { family, id } => match number_of(id) {
                Some(number) => match family.uplink_format(&self.settings).call(publish.payload) {
                    Ok(call) if call.method == SESSION_LIMITS => {
                        self.ask(shared, publish, Ok(Question::SessionLimits(family, number)))
                    }
                    Ok(call) => self.call(shared, publish, (family, number), &call, batch),
                    Err(error) => self.settle(shared, publish, Err(error)),
                },
                None => self.invalid(shared, publish),
            },
            Uplink::Answer { family, id } => match number_of(id) {
                Some(number) => match family.uplink_format(&self.settings).answer(publish.payload) {
                    Ok(body) => self.answer_call(shared, publish, number, body),
                    Err(error) => self.settle(shared, publish, Err(error)),
                },
                None => self.invalid(shared, publish),
            },
            Uplink::Gateway(topic) => {
                let said = Said::of(publish, topic);
                Flow::Stop(Step::Answer(Box::new(Question::Gateway(said))))
            }
            Uplink::Claim => {
                let format = Family::V1.uplink_format(&self.settings);
                let question = format.claim(publish.payload).map(Question::Claim);
                self.ask(shared, publish, question)
            }
            Uplink::Chunk { kind, id, number } if is_digits(id) => {
                let wanted = (id.to_owned(), number.parse().ok());
                self.ask_chunk(shared, publish, kind, wanted)
            }
            Uplink::Unknown | Uplink::Chunk { .. } => {
                services.activity.heard(self.device().subject);
                self.acknowledge(publish, ReasonCode::TopicNameInvalid);
                Flow::Next
            }
        }
    }

    pub(super) fn ask(
        &mut self,
        shared: &Shared,
        publish: &Publish<'_>,
        question: Result<Question, PayloadError>,
    ) -> Flow {
        let question = match question {
            Ok(question) => question,
            Err(error) => return self.settle(shared, publish, Err(error)),
        };
        if let Err(refused) = self.device().pass(0) {
            return self.refuse(shared, &refused);
        }
        shared.services.activity.heard(self.device().subject);
        self.acknowledge(publish, ReasonCode::Success);
        Flow::Stop(Step::Answer(Box::new(question)))
    }

    /// Takes a message into the batch, unless it goes beyond a rate limit.
    fn take(
        &mut self,
        shared: &Shared,
        publish: &Publish<'_>,
        parsed: Result<(), PayloadError>,
        batch: &mut RecordBatch,
        before: BatchMark,
    ) -> Flow {
        if parsed.is_ok()
            && let Err(refused) = self.device().pass(batch.points_since(before))
        {
            batch.back_to(before);
            return self.refuse(shared, &refused);
        }
        self.settle(shared, publish, parsed)
    }

    /// Ends the connection of a device that has sent more than it may; version 5 is told which limit that was.
    pub(super) fn refuse(&mut self, shared: &Shared, refused: &Refused) -> Flow {
        shared.metrics.limited(self.device().id, refused);
        let code = ReasonCode::ImplementationSpecificError;
        self.session
            .disconnect_because(code, &refused.to_string(), &mut self.out);
        Flow::Stop(Step::End(None))
    }

    fn settle(&mut self, shared: &Shared, publish: &Publish<'_>, parsed: Result<(), PayloadError>) -> Flow {
        match parsed {
            Ok(()) => {
                self.acknowledge(publish, ReasonCode::Success);
                Flow::Next
            }
            Err(error) => {
                debug!(device = %self.device().id, %error, "message failed validation");
                self.invalid(shared, publish)
            }
        }
    }

    /// Version 5 can say that the payload is wrong and go on; version 3 can only end, unless the profile says otherwise.
    pub(super) fn invalid(&mut self, shared: &Shared, publish: &Publish<'_>) -> Flow {
        shared.metrics.rejected.increment(1);
        let goes_on = self.session.version().is_v5() || self.settings.ack_on_validation_error;
        if publish.packet_id.is_some() && goes_on {
            self.acknowledge(publish, ReasonCode::PayloadFormatInvalid);
            return Flow::Next;
        }
        Flow::Stop(Step::End(Some(ReasonCode::PayloadFormatInvalid)))
    }

    /// Answers a publish of quality of service 1 or 2. What is taken, is taken when this answer is written: of a message of
    /// quality of service 2 nothing is left to do but to let go of its identifier.
    pub(super) fn acknowledge(&mut self, publish: &Publish<'_>, code: ReasonCode) {
        let Some(id) = publish.packet_id else { return };
        // The codes used here all belong to PUBACK and PUBREC, so that they can be written.
        let written = match publish.qos {
            QoS::ExactlyOnce => self.session.pubrec(id, code, &mut self.out),
            QoS::AtMostOnce | QoS::AtLeastOnce => self.session.puback(id, code, &mut self.out),
        };
        debug_assert!(written.is_ok(), "a code that the answer may not carry");
    }

    fn subscribe(&mut self, subscribe: &Subscribe<'_>) -> Flow {
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
        match Suback::new(subscribe.packet_id, &codes[..]).encode(self.session.version(), &mut self.out) {
            Ok(()) => Flow::Next,
            Err(_) => Flow::Stop(Step::End(Some(ReasonCode::ImplementationSpecificError))),
        }
    }

    fn unsubscribe(&mut self, unsubscribe: &Unsubscribe<'_>) -> Flow {
        let codes: Vec<_> = unsubscribe
            .filters
            .iter()
            .map(|filter| match topics::filter_code(filter, &self.settings) {
                Some(filter) if self.granted.revoke(filter) => ReasonCode::Success,
                Some(_) => ReasonCode::NoSubscriptionExisted,
                None => ReasonCode::TopicFilterInvalid,
            })
            .collect();
        match Unsuback::new(unsubscribe.packet_id, &codes[..]).encode(self.session.version(), &mut self.out) {
            Ok(()) => Flow::Next,
            Err(_) => Flow::Stop(Step::End(Some(ReasonCode::ImplementationSpecificError))),
        }
    }

    /// Publishes the answer to a question, or does what else cannot be done at once. Returns how to go on.
    pub(super) async fn answer(&mut self, shared: &Shared, question: Box<Question>) -> Step {
        let (topic, payload) = match *question {
            Question::Attributes(family, number, request) => {
                let found = match request.find(&shared.services, self.device()).await {
                    Ok(found) => found,
                    Err(error) => {
                        if let Some(suppressed) = ANSWER_GATE.open() {
                            warn!(%error, suppressed, "cannot answer an attribute request");
                        }
                        return Step::Continue;
                    }
                };
                let format = family.downlink_format(&self.settings);
                let payload = format.found(number, &request, &found);
                (format!("{}{number}", family.attribute_answers()), payload)
            }
            Question::SessionLimits(family, number) => {
                let limits = session_limits(shared, &self.settings, self.device().role());
                let format = family.downlink_format(&self.settings);
                let payload = format.platform_answer(number, &limits);
                (format!("{}{number}", family.answers()), payload)
            }
            Question::Claim(claim) => {
                self.open_claim(shared, claim).await;
                return Step::Continue;
            }
            Question::Gateway(said) => return self.speak(shared, said).await,
            Question::Chunk(request) => return self.send_chunk(shared, request).await,
        };
        let qos = self.granted.qos_of(&topic).unwrap_or(QoS::AtLeastOnce);
        if let Err(error) = self.send(&topic, qos, &payload, None) {
            debug!(device = %self.device().id, %error, "cannot send an answer");
        }
        Step::Continue
    }

    /// Lets customers claim the device. It is not told whether they can, which is none of its business.
    async fn open_claim(&self, shared: &Shared, claim: json::Claim) {
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

/// What the SDKs of this API ask for after connecting: how much they may send, and where they are gateways, how much may
/// come from behind them.
fn session_limits(shared: &Shared, settings: &DeviceSettings, role: Role) -> String {
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
