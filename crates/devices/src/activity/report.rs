//! Tells the rule engine what becomes of devices: sessions that begin and end, activity and silence.
//!
//! What is told is written already. It goes out with the round of writing that it belongs to: a device that connects and
//! leaves many times between two rounds is told of once, and a device that just goes on sending is not told of at all.

use fieldline_core::logging::LogGate;
use fieldline_core::ports::StoreResult;
use fieldline_model::entity::Device;
use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use fieldline_model::timeseries::{Attribute, AttributeScope};
use fieldline_model::{DeviceId, EntityKey, TenantId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use tracing::warn;

use super::state::{self, ActivityUpdate};
use super::{ActivityEvent, ActivityTracker};

static GATE: LogGate = LogGate::new(2);

/// The body of the messages.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ActivityBody {
    /// Messages about a new session do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<bool>,
    last_connect_time: i64,
    last_activity_time: i64,
    last_disconnect_time: i64,
    last_inactivity_alarm_time: i64,
    inactivity_timeout: i64,
}

impl ActivityTracker {
    /// Tells what has become of devices with these writes, all at once.
    pub(super) async fn report(&self, settled: &[ActivityUpdate]) {
        let mut by_tenant: FxHashMap<TenantId, Vec<&ActivityUpdate>> = FxHashMap::default();
        for settled in settled.iter().filter(|settled| settled.has_events()) {
            by_tenant.entry(settled.subject.tenant).or_default().push(settled);
        }
        let mut messages = Vec::new();
        let mut trouble = None;
        for (tenant, settled) in by_tenant {
            if let Err(error) = self.compose(tenant, &settled, &mut messages).await {
                trouble.get_or_insert(error);
            }
        }
        if !messages.is_empty()
            && let Err(error) = self.rule_engine.push_all(messages).await
        {
            trouble.get_or_insert(error);
        }
        if let Some(error) = trouble
            && let Some(suppressed) = GATE.open()
        {
            warn!(%error, suppressed, "could not tell the rule engine about the activity of some devices");
        }
    }

    async fn compose(
        &self,
        tenant: TenantId,
        settled: &[&ActivityUpdate],
        messages: &mut Vec<(TenantId, QueueMessage)>,
    ) -> StoreResult<()> {
        let ids: Vec<_> = settled
            .iter()
            .map(|settled| DeviceId(settled.subject.entity.id))
            .collect();
        let devices = self.stores.devices.by_ids(tenant, &ids).await?;
        let mut devices: FxHashMap<_, _> = devices.into_iter().map(|device| (device.id, device)).collect();
        let now = self.clock.now_ms();
        for settled in settled {
            let subject = settled.subject;
            // One that was deleted meanwhile has nothing to tell.
            let Some(device) = devices.remove(&DeviceId(subject.entity.id)) else {
                continue;
            };
            let mut body = self.body(subject, settled).await?;
            for event in settled.events.into_iter().flatten() {
                body.active = (event != ActivityEvent::Connect).then_some(settled.active);
                messages.push((tenant, message(&device, subject, event, now, &body)));
            }
        }
        Ok(())
    }

    async fn body(&self, subject: EntityKey, settled: &ActivityUpdate) -> StoreResult<ActivityBody> {
        let keys = state::SESSION_ATTRIBUTES.map(str::to_owned);
        let stored = self
            .attributes
            .get(subject, AttributeScope::Server, Some(&keys))
            .await?;
        let number = |key: &str| {
            let stored = stored
                .iter()
                .find(|attribute: &&Attribute| attribute.key.as_str() == key);
            stored
                .and_then(|attribute| attribute.value.as_number())
                .map_or(0, |number| number as i64)
        };
        Ok(ActivityBody {
            active: None,
            last_connect_time: number(state::LAST_CONNECT),
            last_activity_time: settled.last_activity,
            last_disconnect_time: number(state::LAST_DISCONNECT),
            last_inactivity_alarm_time: settled.inactivity_alarm,
            inactivity_timeout: settled.timeout_ms,
        })
    }
}

fn message(
    device: &Device,
    subject: EntityKey,
    event: ActivityEvent,
    now: i64,
    body: &ActivityBody,
) -> QueueMessage {
    let msg_type = match event {
        ActivityEvent::Connect => MsgType::Connect,
        ActivityEvent::Activity => MsgType::Activity,
        ActivityEvent::Disconnect => MsgType::Disconnect,
        ActivityEvent::Inactivity => MsgType::Inactivity,
    };
    let mut metadata = MetadataMap::new();
    metadata.set("deviceName", device.name.as_str());
    if let Some(label) = &device.label {
        metadata.set("deviceLabel", label.as_str());
    }
    metadata.set("deviceType", device.device_type.as_str());
    metadata.set("scope", AttributeScope::Server.name());
    let body = serde_json::to_string(body).unwrap_or_default();
    QueueMessage {
        customer: Some(device.customer_id).filter(|customer| !customer.is_null()),
        ..QueueMessage::new(msg_type, subject.entity, now, metadata, body)
    }
}
