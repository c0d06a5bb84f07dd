//! What goes to the device without being asked for, and calls in both directions.

use std::sync::Arc;

use fieldline_codec::session::SendError;
use fieldline_codec::{Publish, QoS, ReasonCode};
use fieldline_core::downlink::{DeviceCall, Downlink, Wants};
use fieldline_core::sessions::{Content, Letter};
use fieldline_model::json;
use fieldline_model::record::RecordBatch;
use tracing::debug;

use super::connection::Shared;
use super::incoming::{Flow, Incoming, Step};
use super::topics::{Family, Granted};

/// What is written at once of what waits for the device, bytes.
const AT_ONCE: usize = 64 << 10;
/// What a device is told whose calls are too many.
const TOO_MANY: &str = r#"{"error":"too many calls wait for answers"}"#;

/// What is kept of a message to the device until it is acknowledged: the call that it is, if it is one.
pub(super) type Sent = Option<Arc<DeviceCall>>;

impl Incoming {
    /// Whether something waits for the device that could be sent now.
    #[inline]
    pub(super) fn can_deliver(&self) -> bool {
        self.guard.control().has_letters() && self.session.can_send()
    }

    /// Makes the session want what the device has subscribed to.
    pub(super) fn follow_subscriptions(&self, shared: &Shared) {
        let (control, wants) = (self.guard.control(), self.granted.wanted());
        if !control.wants_only(wants) {
            shared
                .services
                .calls
                .follow(self.device().subject, control, wants);
        }
    }

    /// Writes what waits for the device, as far as it can be sent now.
    pub(super) fn deliver(&mut self, shared: &Shared) {
        while self.out.len() < AT_ONCE && self.session.can_send() {
            let Some(letter) = self.guard.control().take_letter() else {
                return;
            };
            self.deliver_one(shared, letter);
        }
    }

    fn deliver_one(&mut self, shared: &Shared, letter: Letter) {
        if let Some(name) = letter.to {
            return self.deliver_behind(shared, &name, letter.content);
        }
        let Content::Downlink(downlink) = letter.content else {
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
                self.deliver_call(shared, call);
                Ok(())
            }
        };
        if let Err(error) = sent {
            debug!(device = %self.device().id, %error, "cannot send a message to the device");
        }
    }

    fn deliver_call(&mut self, shared: &Shared, call: Arc<DeviceCall>) {
        let topic = format!("{}{}", self.granted.calls.calls(), call.number);
        let qos = self.granted.qos_of(&topic).unwrap_or(QoS::AtLeastOnce);
        let calls = &shared.services.calls;
        let payload = match self
            .granted
            .calls
            .downlink_format(&self.settings)
            .device_call(&call)
        {
            Ok(payload) => payload,
            Err(error) => return calls.failed(&call, &error.to_string()),
        };
        match self.send(&topic, qos, &payload, Some(call.clone())) {
            Ok(()) => calls.sent(&call, qos != QoS::AtMostOnce),
            Err(error) => calls.failed(&call, &error.to_string()),
        }
    }

    pub(super) fn send(
        &mut self,
        topic: &str,
        qos: QoS,
        payload: &[u8],
        kept: Sent,
    ) -> Result<(), SendError> {
        let publish = Publish {
            qos,
            ..Publish::new(topic, payload)
        };
        self.session.publish(&publish, kept, &mut self.out).map(drop)
    }

    /// The device calls a procedure of the platform.
    pub(super) fn call(
        &mut self,
        shared: &Shared,
        publish: &Publish<'_>,
        (family, number): (Family, i32),
        call: &json::Call,
        batch: &mut RecordBatch,
    ) -> Flow {
        if let Err(refused) = self.device().pass(0) {
            return self.refuse(shared, &refused);
        }
        let (services, subject) = (&shared.services, self.device().subject);
        services.activity.heard(subject);
        let now = services.clock.now_ms();
        self.granted.answers = family;
        let begun = services
            .calls
            .client
            .begin(subject, self.guard.control(), number, call, now);
        match begun {
            Some(message) => {
                batch.message(subject.tenant, &message);
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
        Flow::Next
    }

    /// The device answers a call.
    pub(super) fn answer_call(
        &mut self,
        shared: &Shared,
        publish: &Publish<'_>,
        number: i32,
        body: String,
    ) -> Flow {
        if let Err(refused) = self.device().pass(0) {
            return self.refuse(shared, &refused);
        }
        let (services, subject) = (&shared.services, self.device().subject);
        services.activity.heard(subject);
        if !services.calls.answered(subject, number, body) {
            return Flow::Stop(Step::End(Some(ReasonCode::ServerBusy)));
        }
        self.acknowledge(publish, ReasonCode::Success);
        Flow::Next
    }
}

impl Granted {
    /// What the session wants with these filters.
    pub(super) fn wanted(&self) -> Wants {
        [Wants::ATTRIBUTES, Wants::CALLS]
            .into_iter()
            .filter(|wants| self.wants(*wants))
            .fold(Wants::NOTHING, Wants::and)
    }
}
