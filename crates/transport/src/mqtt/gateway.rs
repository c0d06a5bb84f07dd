//! Gateways: connections that carry messages of the devices behind them, each device with a session of its own.
//!
//! A gateway message is executed before the next packet is handled, and acknowledged when all of its devices were
//! served. Devices are identified by name, and created when a gateway first names them.

mod messages;
mod metrics;
mod protobuf;
mod sessions;

use fieldline_codec::{PacketId, PublishPacket, QoS, ReasonCode};
use fieldline_core::ports::{AppendError, AppendFuture, StoreError};
use fieldline_devices::directory::{DeviceHandle, MessageRefusal};
use fieldline_devices::downlink::Downlink;
use fieldline_devices::sessions::OutboundPayload;
use fieldline_entities::services::{ServiceError, ServiceErrorKind};
use fieldline_model::json::{self, JsonError};
use fieldline_model::record::RecordBatch;
use fieldline_model::timeseries::AttributeScope;
use fieldline_protobuf::MessageError;
use fieldline_protobuf::api::{
    GatewayAttributeUpdateNotificationMsg, GatewayDeviceRpcRequestMsg, PostAttributeMsg, PostTelemetryMsg,
    ToDeviceRpcRequestMsg,
};
use prost::Message as _;
use tracing::{debug, warn};

use self::messages::{GatewayBody, GatewayCommand};
pub(super) use self::metrics::GatewayMetrics;
pub(super) use self::sessions::GatewaySessions;
use super::connection::MqttShared;
use super::packet_handler::{PacketFlow, PacketHandler, ReadOutcome};
use crate::TransportServices;
use crate::payload::{self, PayloadError};

const ATTRIBUTES: &str = "v1/gateway/attributes";
const ATTRIBUTES_RESPONSE: &str = "v1/gateway/attributes/response";
const CALLS: &str = "v1/gateway/rpc";
const DISCONNECT: &str = "v1/gateway/disconnect";
/// Type of a device for which the gateway names no type.
const DEFAULT_TYPE: &str = "default";

/// A message published by a gateway.
pub(super) struct GatewayMessage {
    /// The part of the topic after `v1/gateway`.
    topic: String,
    payload: Vec<u8>,
    qos: QoS,
    packet_id: Option<PacketId>,
}

impl GatewayMessage {
    pub(super) fn of(publish: &PublishPacket<'_>, topic: &str) -> Self {
        Self {
            topic: topic.to_owned(),
            payload: publish.payload.to_vec(),
            qos: publish.qos,
            packet_id: publish.packet_id,
        }
    }

    /// The fields that the acknowledgement needs.
    fn header(&self) -> PublishPacket<'static> {
        PublishPacket {
            qos: self.qos,
            packet_id: self.packet_id,
            ..PublishPacket::new("", b"")
        }
    }
}

/// The reason why a message was not executed.
enum GatewayError {
    UnknownTopic,
    Malformed(String),
    /// The tenant, or the gateway, has as many devices as it may have.
    Full,
    /// The message of the device with that name exceeds a limit.
    Limited(String, MessageRefusal),
    /// The server is too busy.
    Busy,
    Failed(String),
}

impl From<JsonError> for GatewayError {
    fn from(error: JsonError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<MessageError> for GatewayError {
    fn from(error: MessageError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<PayloadError> for GatewayError {
    fn from(error: PayloadError) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<StoreError> for GatewayError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ServiceError> for GatewayError {
    fn from(error: ServiceError) -> Self {
        match error.kind() {
            ServiceErrorKind::LimitExceeded { .. } => Self::Full,
            ServiceErrorKind::Invalid => Self::Malformed(error.message().to_owned()),
            _ => Self::Failed(error.message().to_owned()),
        }
    }
}

impl PacketHandler {
    /// Executes a gateway message. A message of a device that is no gateway is ignored, and not acknowledged.
    pub(super) async fn handle_gateway(&mut self, shared: &MqttShared, said: GatewayMessage) -> ReadOutcome {
        let header = said.header();
        shared.services.activity.record_activity(self.device().subject);
        match self.is_gateway(shared).await {
            Ok(true) => {}
            Ok(false) => {
                self.session.skip_ack(&header);
                return ReadOutcome::Continue;
            }
            Err(problem) => return self.refuse_gateway(shared, &header, problem),
        }
        match self.execute_gateway_command(shared, &said).await {
            Ok(answer) => {
                // The acknowledgement goes first, as devices expect: some read nothing else while they wait for it.
                self.acknowledge(&header, ReasonCode::Success);
                if let Some(answer) = answer {
                    self.answer_gateway(&answer);
                }
                ReadOutcome::Continue
            }
            Err(problem) => self.refuse_gateway(shared, &header, problem),
        }
    }

    fn refuse_gateway(
        &mut self,
        shared: &MqttShared,
        header: &PublishPacket<'_>,
        problem: GatewayError,
    ) -> ReadOutcome {
        let gateway = self.device().id;
        let flow = match problem {
            GatewayError::UnknownTopic => {
                self.acknowledge(header, ReasonCode::TopicNameInvalid);
                PacketFlow::Next
            }
            GatewayError::Malformed(error) => {
                debug!(%gateway, error, "message of a gateway failed validation");
                self.reject_invalid(shared, header)
            }
            GatewayError::Full => {
                debug!(%gateway, "the tenant has as many devices as it may have");
                self.acknowledge(header, ReasonCode::QuotaExceeded);
                PacketFlow::Next
            }
            GatewayError::Limited(name, refused) => self.refuse_sub_device(shared, header, &name, &refused),
            GatewayError::Busy => PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::ServerBusy))),
            GatewayError::Failed(error) => {
                warn!(%gateway, error, "message of a gateway was not taken");
                PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::ImplementationSpecificError)))
            }
        };
        match flow {
            PacketFlow::Next => ReadOutcome::Continue,
            PacketFlow::Stop(step) => step,
        }
    }

    /// Names the device and the exceeded limit to the gateway, and ends its connection. Version 3 cannot refuse a
    /// message in any other way.
    fn refuse_sub_device(
        &mut self,
        shared: &MqttShared,
        header: &PublishPacket<'_>,
        name: &str,
        refused: &MessageRefusal,
    ) -> PacketFlow {
        if !self.session.version().is_v5() {
            return self.refuse(shared, refused);
        }
        shared.metrics.count_limited(self.device().id, refused);
        let mut notice = String::from("{\"device\":");
        json::write_string(name, &mut notice);
        notice.push_str(&format!(
            ",\"reason\":{}}}",
            ReasonCode::MessageRateTooHigh.value()
        ));
        if let Err(error) = self.send(DISCONNECT, QoS::AtMostOnce, notice.as_bytes(), None) {
            debug!(gateway = %self.device().id, %error, "cannot send a notice to the gateway");
        }
        self.acknowledge(header, ReasonCode::QuotaExceeded);
        let why = refused.to_string();
        self.session
            .disconnect_with_reason(ReasonCode::QuotaExceeded, &why, &mut self.out);
        PacketFlow::Stop(ReadOutcome::End(None))
    }

    /// Counts a message of a device behind the gateway against the limits, or refuses it.
    fn count_sub_device_message(
        &self,
        name: &str,
        device: &DeviceHandle,
        points: u32,
    ) -> Result<(), GatewayError> {
        device
            .acquire_through(self.device(), points)
            .map_err(|refused| GatewayError::Limited(name.to_owned(), refused))
    }

    /// Sends the attributes that the gateway asked for.
    fn answer_gateway(&mut self, answer: &[u8]) {
        let qos = self.granted.qos_of(ATTRIBUTES_RESPONSE);
        let qos = qos.unwrap_or(QoS::AtLeastOnce);
        if let Err(error) = self.send(ATTRIBUTES_RESPONSE, qos, answer, None) {
            debug!(gateway = %self.device().id, %error, "cannot send an answer");
        }
    }

    /// Executes a gateway message. Returns the response, if there is more to send than an acknowledgement.
    async fn execute_gateway_command(
        &mut self,
        shared: &MqttShared,
        said: &GatewayMessage,
    ) -> Result<Option<Vec<u8>>, GatewayError> {
        let message = match self.settings.mqtt_payloads {
            Some(_) => GatewayCommand::parse_protobuf(&said.topic, &said.payload)?,
            None => GatewayCommand::parse(&said.topic, &said.payload)?,
        };
        let mut answered = None;
        match message {
            GatewayCommand::Connect(name, device_type) => {
                let device_type = device_type.as_deref().filter(|name| !name.is_empty());
                let device = self
                    .open_sub_device(shared, &name, device_type.unwrap_or(DEFAULT_TYPE))
                    .await?;
                self.count_sub_device_message(&name, &device, 0)?;
            }
            GatewayCommand::Disconnect(name) => self.end_sub_session(shared, &name),
            GatewayCommand::Telemetry(mut devices) => {
                let mut said = Vec::new();
                for (_, body) in &mut devices {
                    if let GatewayBody::Json(body) = body {
                        metrics::take_metadata(body, &mut said)?;
                    }
                }
                let now_ms = shared.services.clock.now_ms();
                shared.gateway_metrics.add(self.device(), said, now_ms);
                self.append_sub_device_records(shared, devices, |shared, device, body, batch| {
                    telemetry(&shared.services, device, body, batch)
                })
                .await?;
            }
            GatewayCommand::Attributes(devices) => {
                self.append_sub_device_records(shared, devices, |shared, device, body, batch| {
                    attributes(&shared.services, device, body, batch)
                })
                .await?;
            }
            GatewayCommand::Request(mut request) => {
                let device = self
                    .open_sub_device(shared, &request.device, DEFAULT_TYPE)
                    .await?;
                self.count_sub_device_message(&request.device, &device, 0)?;
                let found = request.find(&shared.services, &device).await?;
                answered = Some(match self.settings.mqtt_payloads {
                    Some(_) => request.message(&found).encode_to_vec(),
                    None => request.json_answer(&found).into_bytes(),
                });
            }
            GatewayCommand::Answer(answer) => {
                let device = self.open_sub_device(shared, &answer.device, DEFAULT_TYPE).await?;
                self.count_sub_device_message(&answer.device, &device, 0)?;
                let calls = &shared.services.rpc;
                if !calls.handle_answer(device.subject, answer.id, answer.data) {
                    return Err(GatewayError::Busy);
                }
            }
            GatewayCommand::Claim(devices) => {
                for (name, claim) in devices {
                    let device = self.open_sub_device(shared, &name, DEFAULT_TYPE).await?;
                    self.count_sub_device_message(&name, &device, 0)?;
                    let claims = &shared.services.onboarding.claims;
                    claims
                        .open(device.subject, claim.secret_key, claim.duration_ms)
                        .await?;
                }
            }
        }
        Ok(answered)
    }

    /// Appends the messages of all devices to the journal, and waits until they are durable. If one is invalid, none is
    /// appended.
    async fn append_sub_device_records<M>(
        &mut self,
        shared: &MqttShared,
        devices: Vec<(String, GatewayBody<M>)>,
        parse: fn(&MqttShared, &DeviceHandle, &GatewayBody<M>, &mut RecordBatch) -> Result<(), PayloadError>,
    ) -> Result<(), GatewayError> {
        let mut parsed = Vec::with_capacity(devices.len());
        for (name, body) in devices {
            let device = self.open_sub_device(shared, &name, DEFAULT_TYPE).await?;
            let mut batch = RecordBatch::new();
            parse(shared, &device, &body, &mut batch)?;
            self.count_sub_device_message(&name, &device, batch.points())?;
            parsed.push((device, batch));
        }
        let mut appends: Vec<AppendFuture> = Vec::with_capacity(parsed.len());
        for (device, batch) in &parsed {
            if batch.is_empty() {
                continue;
            }
            let append = append(&shared.services, device, batch).await;
            appends.push(append.map_err(|error| GatewayError::Failed(error.to_string()))?);
            device.count_sent(batch.count(), batch.points());
            shared.metrics.messages.increment(u64::from(batch.count()));
        }
        for append in appends {
            append
                .await
                .map_err(|error| GatewayError::Failed(error.to_string()))?;
        }
        Ok(())
    }

    /// Sends a message to a device behind the gateway.
    pub(super) fn deliver_to_sub_device(
        &mut self,
        shared: &MqttShared,
        name: &str,
        content: OutboundPayload,
    ) {
        let downlink = match content {
            OutboundPayload::Downlink(downlink) => downlink,
            OutboundPayload::Close(_) => return self.end_closed_sub_session(shared, name),
        };
        let topic = match &downlink {
            Downlink::Attributes(_) => ATTRIBUTES,
            Downlink::Call(_) => CALLS,
            // Devices behind gateways send no RPC requests.
            Downlink::Answer(..) => return,
        };
        let body = match self.settings.mqtt_payloads {
            Some(_) => message_of(name, &downlink, shared.services.clock.now_ms()),
            None => json_of(name, &downlink).into_bytes(),
        };
        let qos = self.granted.qos_of(topic).unwrap_or(QoS::AtLeastOnce);
        let Downlink::Call(call) = downlink else {
            if let Err(error) = self.send(topic, qos, &body, None) {
                debug!(gateway = %self.device().id, %error, "cannot send a message to the gateway");
            }
            return;
        };
        match self.send(topic, qos, &body, Some(call.clone())) {
            Ok(()) => shared.services.rpc.handle_sent(&call, qos != QoS::AtMostOnce),
            Err(error) => shared.services.rpc.handle_failure(&call, &error.to_string()),
        }
    }
}

/// Appends messages of a device to the queue of its profile.
async fn append(
    services: &TransportServices,
    device: &DeviceHandle,
    batch: &RecordBatch,
) -> Result<AppendFuture, AppendError> {
    let settings = device.settings();
    let uplink = &services.producer;
    let routed = settings.queue.as_deref();
    let routed = routed.map(|queue| uplink.queue_for(device.subject.tenant, Some(queue)));
    let uplink = routed.as_deref().unwrap_or(uplink);
    uplink.append(device.subject, batch).await
}

fn telemetry(
    services: &TransportServices,
    device: &DeviceHandle,
    body: &GatewayBody<PostTelemetryMsg>,
    batch: &mut RecordBatch,
) -> Result<(), PayloadError> {
    let ttl_seconds = device.settings().ttl_seconds;
    match body {
        GatewayBody::Json(body) => {
            payload::telemetry(services, device, ttl_seconds, body.get().as_bytes(), batch)?;
        }
        GatewayBody::Protobuf(message) => {
            let now_ms = services.clock.now_ms();
            let mut record = batch.begin_telemetry(device.subject, now_ms, ttl_seconds);
            message.write(|| device.times.next(now_ms), &mut record)?;
            record.finish();
        }
    }
    Ok(())
}

fn attributes(
    services: &TransportServices,
    device: &DeviceHandle,
    body: &GatewayBody<PostAttributeMsg>,
    batch: &mut RecordBatch,
) -> Result<(), PayloadError> {
    match body {
        GatewayBody::Json(body) => payload::attributes(services, device, body.get().as_bytes(), batch)?,
        GatewayBody::Protobuf(message) => {
            let mut record =
                batch.begin_attributes(device.subject, services.clock.now_ms(), scope(!message.shared));
            message.pack(record.buffer())?;
            record.finish();
        }
    }
    Ok(())
}

/// Encodes a message to a device behind the gateway as JSON.
fn json_of(name: &str, downlink: &Downlink) -> String {
    let data = match downlink {
        Downlink::Attributes(update) => update.to_json(),
        Downlink::Call(call) => call.to_numbered_json(),
        Downlink::Answer(_, body) => body.to_string(),
    };
    let mut body = String::from("{\"device\":");
    json::write_string(name, &mut body);
    body.push_str(",\"data\":");
    body.push_str(&data);
    body.push('}');
    body
}

/// Encodes a message to a device behind the gateway as Protobuf.
fn message_of(name: &str, downlink: &Downlink, now_ms: i64) -> Vec<u8> {
    let device_name = name.to_owned();
    match downlink {
        Downlink::Attributes(update) => GatewayAttributeUpdateNotificationMsg {
            device_name,
            notification_msg: Some(payload::notification(update, now_ms)),
        }
        .encode_to_vec(),
        Downlink::Call(call) => {
            let (upper, lower) = call.id.as_u64_pair();
            let request = ToDeviceRpcRequestMsg {
                request_id: call.number,
                method_name: call.method.clone(),
                params: call.params.clone(),
                expiration_time: call.expires_ms,
                request_id_msb: upper.cast_signed(),
                request_id_lsb: lower.cast_signed(),
                oneway: call.oneway,
                persisted: call.persistent,
            };
            GatewayDeviceRpcRequestMsg {
                device_name,
                rpc_request_msg: Some(request),
            }
            .encode_to_vec()
        }
        Downlink::Answer(_, body) => body.as_bytes().to_vec(),
    }
}

/// The attribute scope of a gateway message.
const fn scope(client: bool) -> AttributeScope {
    if client {
        AttributeScope::Client
    } else {
        AttributeScope::Shared
    }
}
