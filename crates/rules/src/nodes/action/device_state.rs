//! "Device state": tells that a device has connected, was heard, has disconnected or is inactive.

use std::sync::Arc;

use fieldline_devices::activity::ActivityEvent;
use fieldline_model::{EntityKey, EntityType};
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::json;

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "action.TbDeviceStateNode",
    name: "device state",
    description: "Triggers device connectivity events.",
    relations: &["Success", "Failure", "Rate limited"],
    default_configuration: || json!({ "event": "ACTIVITY_EVENT" }),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ACTION
}];

/// How many events of a device pass within how many seconds.
const LIMITS: [(u64, i64); 3] = [(1, 1), (30, 60), (60, 3600)];
/// One event, in the unit of buckets.
const EVENT: u64 = 1_000_000;
/// Devices whose events are counted; the one that was heard longest ago is forgotten.
const MAX_DEVICES: usize = 100_000;

/// The events by their names.
const EVENTS: [(&str, ActivityEvent); 4] = [
    ("ACTIVITY_EVENT", ActivityEvent::Activity),
    ("CONNECT_EVENT", ActivityEvent::Connect),
    ("DISCONNECT_EVENT", ActivityEvent::Disconnect),
    ("INACTIVITY_EVENT", ActivityEvent::Inactivity),
];

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(schema_with = "events")]
    event: Option<String>,
}

fn events(_: &mut SchemaGenerator) -> Schema {
    config_schema::choice(EVENTS.map(|(name, _)| name))
}

struct DeviceStateNode {
    event: ActivityEvent,
    buckets: Mutex<Cache<EntityKey, [RateLimitBucket; LIMITS.len()]>>,
}

/// What is left of a limit; it fills up evenly.
#[derive(Debug, Clone, Copy)]
struct RateLimitBucket {
    /// Millionths of an event.
    left: u64,
    at_ms: i64,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let name = config
        .event
        .ok_or_else(|| NodeConfigError::new("event", "Event cannot be null!"))?;
    let known = EVENTS.into_iter().find(|(known, _)| *known == name);
    let (_, event) =
        known.ok_or_else(|| NodeConfigError::new("event", format!("Unsupported event: {name}")))?;
    Ok(Arc::new(DeviceStateNode {
        event,
        buckets: Mutex::new(Cache::new(MAX_DEVICES)),
    }))
}

/// Takes one event from all limits, or from none.
fn take(buckets: &mut [RateLimitBucket; LIMITS.len()], now_ms: i64) -> bool {
    for (bucket, (count, seconds)) in buckets.iter_mut().zip(LIMITS) {
        let passed = now_ms
            .saturating_sub(bucket.at_ms)
            .clamp(0, seconds * 1000)
            .unsigned_abs();
        bucket.left = (bucket.left + passed * 1000 * count / seconds.unsigned_abs()).min(count * EVENT);
        bucket.at_ms = now_ms;
    }
    let passes = buckets.iter().all(|bucket| bucket.left >= EVENT);
    if passes {
        buckets.iter_mut().for_each(|bucket| bucket.left -= EVENT);
    }
    passes
}

impl Node for DeviceStateNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let entity_type = msg.originator.entity_type;
        if entity_type != EntityType::Device {
            let problem = format!(
                "Unsupported originator entity type: [{}]. Only DEVICE entity type is supported.",
                entity_type.name()
            );
            return NodeResult::fail(msg, problem);
        }
        let subject = msg.subject();
        let passes = {
            let mut known = self.buckets.lock();
            let mut buckets = known.get(&subject).copied().unwrap_or_else(|| {
                LIMITS.map(|(count, _)| RateLimitBucket {
                    left: count * EVENT,
                    at_ms: ctx.now_ms,
                })
            });
            let passes = take(&mut buckets, ctx.now_ms);
            known.insert(subject, buckets);
            passes
        };
        if !passes {
            return NodeResult::Next(msg, ConnectionLabel::from("Rate limited"));
        }
        ctx.services
            .activity
            .handle_event(subject, self.event, msg.values_ts());
        NodeResult::success(msg)
    }
}
