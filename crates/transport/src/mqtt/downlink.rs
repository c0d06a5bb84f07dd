//! Messages to the device, and RPC in both directions.

use std::sync::Arc;

use fieldline_codec::session::SessionSendError;
use fieldline_codec::{PublishPacket, QoS, ReasonCode};
use fieldline_devices::downlink::{Downlink, Subscriptions, ToDeviceRpc};
use fieldline_devices::sessions::{OutboundMessage, OutboundPayload};
use fieldline_model::json;
use fieldline_model::record::RecordBatch;
use tracing::debug;

use super::connection::MqttShared;
use super::packet_handler::{PacketFlow, PacketHandler, ReadOutcome};
use super::topics::{GrantedFilters, TopicFamily};

/// Once the output has this many bytes, no further queued message is added to it.
const MAX_DELIVER_BYTES: usize = 64 << 10;
/// The answer to a device with too many pending RPC requests.
const TOO_MANY: &str = r#"{"error":"too many calls wait for answers"}"#;

/// State kept for a message to the device until it is acknowledged: its RPC request, if it is one.
pub(super) type InFlightRpc = Option<Arc<ToDeviceRpc>>;

impl PacketHandler {
    /// Whether a queued message could be sent to the device now.
    #[inline]
    pub(super) fn can_deliver(&self) -> bool {
        self.guard.control().has_outbound() && self.session.can_send()
    }

    /// Sets the session's subscriptions to the filters that the device has subscribed to.
    pub(super) fn follow_subscriptions(&self, shared: &MqttShared) {
        let (control, wants) = (self.guard.control(), self.granted.wanted());
        if !control.is_subscribed_only(wants) {
            shared
                .services
                .rpc
                .set_subscriptions(self.device().subject, control, wants);
        }
    }

    /// Writes queued messages for the device, as far as they can be sent now.
    pub(super) fn deliver(&mut self, shared: &MqttShared) {
        while self.out.len() < MAX_DELIVER_BYTES && self.session.can_send() {
            let Some(letter) = self.guard.control().take_outbound() else {
                return;
            };
            self.deliver_one(shared, letter);
        }
    }

    fn deliver_one(&mut self, shared: &MqttShared, letter: OutboundMessage) {
        if let Some(name) = letter.to {
            return self.deliver_to_sub_device(shared, &name, letter.payload);
        }
        let OutboundPayload::Downlink(downlink) = letter.payload else {
            return;
        };
        let settings = &self.settings;
        let sent = match downlink {
            Downlink::Attributes(update) => {
                let family = self.granted.attributes;
                let now = shared.services.clock.now_ms();
                let payload = family.downlink_format(settings).update(&update, now);
                let qos = self.granted.attributes_qos();
                self.send(family.attributes(), qos, &payload, None)
            }
            Downlink::Answer(number, body) => {
                let family = self.granted.answers;
                let topic = format!("{}{number}", family.answers());
                let payload = family.downlink_format(settings).platform_answer(number, &body);
                let qos = self.granted.qos_of(&topic).unwrap_or(QoS::AtLeastOnce);
                self.send(&topic, qos, &payload, None)
            }
            Downlink::Call(call) => {
                self.deliver_rpc(shared, call);
                Ok(())
            }
        };
        if let Err(error) = sent {
            debug!(device = %self.device().id, %error, "cannot send a message to the device");
        }
    }

    fn deliver_rpc(&mut self, shared: &MqttShared, call: Arc<ToDeviceRpc>) {
        let topic = format!("{}{}", self.granted.calls.calls(), call.number);
        let qos = self.granted.qos_of(&topic).unwrap_or(QoS::AtLeastOnce);
        let calls = &shared.services.rpc;
        let payload = match self
            .granted
            .calls
            .downlink_format(&self.settings)
            .device_call(&call)
        {
            Ok(payload) => payload,
            Err(error) => return calls.handle_failure(&call, &error.to_string()),
        };
        match self.send(&topic, qos, &payload, Some(call.clone())) {
            Ok(()) => calls.handle_sent(&call, qos != QoS::AtMostOnce),
            Err(error) => calls.handle_failure(&call, &error.to_string()),
        }
    }

    pub(super) fn send(
        &mut self,
        topic: &str,
        qos: QoS,
        payload: &[u8],
        kept: InFlightRpc,
    ) -> Result<(), SessionSendError> {
        let publish = PublishPacket {
            qos,
            ..PublishPacket::new(topic, payload)
        };
        self.session.publish(&publish, kept, &mut self.out).map(drop)
    }

    /// Handles an RPC request of the device to the platform.
    pub(super) fn handle_client_rpc(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        (family, number): (TopicFamily, i32),
        call: &json::ClientRpcRequest,
        batch: &mut RecordBatch,
    ) -> PacketFlow {
        if let Err(refused) = self.device().acquire(0) {
            return self.refuse(shared, &refused);
        }
        let (services, subject) = (&shared.services, self.device().subject);
        services.activity.record_activity(subject);
        let now = services.clock.now_ms();
        self.granted.answers = family;
        let begun = services
            .rpc
            .client
            .begin(subject, self.guard.control(), number, call, now);
        match begun {
            Some(message) => {
                batch.push_message(subject.tenant, &message);
                self.acknowledge(publish, ReasonCode::Success);
            }
            None => {
                self.acknowledge(publish, ReasonCode::QuotaExceeded);
                let topic = format!("{}{number}", family.answers());
                let format = family.downlink_format(&self.settings);
                let payload = format.platform_answer(number, TOO_MANY);
                let _ = self.send(&topic, QoS::AtMostOnce, &payload, None);
            }
        }
        PacketFlow::Next
    }

    /// Handles the device's response to an RPC request.
    pub(super) fn handle_rpc_response(
        &mut self,
        shared: &MqttShared,
        publish: &PublishPacket<'_>,
        number: i32,
        body: String,
    ) -> PacketFlow {
        if let Err(refused) = self.device().acquire(0) {
            return self.refuse(shared, &refused);
        }
        let (services, subject) = (&shared.services, self.device().subject);
        services.activity.record_activity(subject);
        if !services.rpc.handle_answer(subject, number, body) {
            return PacketFlow::Stop(ReadOutcome::End(Some(ReasonCode::ServerBusy)));
        }
        self.acknowledge(publish, ReasonCode::Success);
        PacketFlow::Next
    }
}

impl GrantedFilters {
    /// The subscriptions of the session that these filters imply.
    pub(super) fn wanted(&self) -> Subscriptions {
        [Subscriptions::ATTRIBUTES, Subscriptions::RPC]
            .into_iter()
            .filter(|wants| self.wants(*wants))
            .fold(Subscriptions::NOTHING, Subscriptions::and)
    }
}
