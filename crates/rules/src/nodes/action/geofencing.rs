//! "GPS geofencing events": who has entered or left, and who stays inside or outside.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::geofence::GeofenceConfig;
use crate::nodes::geofence::{self, GeofenceMatcher};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "geo.TbGpsGeofencingActionNode",
    name: "gps geofencing events",
    description: "Tells which things enter, leave and stay within a perimeter.",
    version: 1,
    relations: &["Success", "Entered", "Left", "Inside", "Outside", "Failure"],
    default_configuration,
    schema: config_schema::of_both::<GeofenceConfig, Config>,
    upgrade,
    make,
    ..NodeType::ACTION
}];

fn default_configuration() -> Value {
    let mut configuration = geofence::default_configuration();
    if let (Some(fields), Value::Object(own)) = (
        configuration.as_object_mut(),
        json!({
            "minInsideDuration": 1, "minInsideDurationTimeUnit": "MINUTES", "minOutsideDuration": 1,
            "minOutsideDurationTimeUnit": "MINUTES", "reportPresenceStatusOnEachMessage": true,
        }),
    ) {
        fields.extend(own);
    }
    configuration
}

fn upgrade(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
    {
        fields
            .entry("reportPresenceStatusOnEachMessage")
            .or_insert_with(|| false.into());
    }
    configuration
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(range(min = 0))]
    min_inside_duration: i64,
    #[schemars(range(min = 0))]
    min_outside_duration: i64,
    min_inside_duration_time_unit: Option<PresenceTimeUnit>,
    min_outside_duration_time_unit: Option<PresenceTimeUnit>,
    report_presence_status_on_each_message: bool,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
enum PresenceTimeUnit {
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
}

impl PresenceTimeUnit {
    const fn millis(self) -> i64 {
        match self {
            Self::Milliseconds => 1,
            Self::Seconds => 1_000,
            Self::Minutes => 60_000,
            Self::Hours => 3_600_000,
            Self::Days => 86_400_000,
        }
    }
}

struct GpsGeofencingActionNode {
    fence: GeofenceMatcher,
    inside_ms: i64,
    outside_ms: i64,
    on_each: bool,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let fence = GeofenceMatcher::new(config.parse()?)?;
    let config: Config = config.parse()?;
    let millis = |field: &str, number: i64, unit: Option<PresenceTimeUnit>| {
        if number < 0 {
            return Err(NodeConfigError::new(field, "must not be negative"));
        }
        Ok(number.saturating_mul(unit.unwrap_or(PresenceTimeUnit::Minutes).millis()))
    };
    Ok(Arc::new(GpsGeofencingActionNode {
        fence,
        inside_ms: millis(
            "minInsideDuration",
            config.min_inside_duration,
            config.min_inside_duration_time_unit,
        )?,
        outside_ms: millis(
            "minOutsideDuration",
            config.min_outside_duration,
            config.min_outside_duration_time_unit,
        )?,
        on_each: config.report_presence_status_on_each_message,
    }))
}

/// Where a thing is, since when, and whether it was said that it stays there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GeofencePresence {
    inside: bool,
    stayed: bool,
    since_ms: i64,
}

impl GeofencePresence {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (&[inside, stayed], since) = bytes.split_first_chunk::<2>()?;
        Some(Self {
            inside: inside != 0,
            stayed: stayed != 0,
            since_ms: i64::from_le_bytes(since.try_into().ok()?),
        })
    }

    fn bytes(self) -> [u8; 10] {
        let mut bytes = [
            u8::from(self.inside),
            u8::from(self.stayed),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        if let Some(since) = bytes.last_chunk_mut::<8>() {
            *since = self.since_ms.to_le_bytes();
        }
        bytes
    }
}

impl Node for GpsGeofencingActionNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let subject = msg.subject();
        if !ctx.owns(subject) {
            return NodeResult::forward_to_owner(msg);
        }
        let inside = match self.fence.contains(&mut msg) {
            Ok(inside) => inside,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let now_ms = ctx.now_ms;
        let known = ctx
            .state(subject, 0)
            .and_then(|kept| GeofencePresence::read(&kept));
        let (next, label) = match known {
            Some(known) if known.inside == inside => self.stay(known, now_ms),
            _ => {
                let next = GeofencePresence {
                    inside,
                    stayed: false,
                    since_ms: now_ms,
                };
                (next, if inside { "Entered" } else { "Left" })
            }
        };
        if known != Some(next) {
            ctx.set_state(subject, 0, None, &next.bytes());
        }
        NodeResult::Next(msg, ConnectionLabel::from(label))
    }
}

impl GpsGeofencingActionNode {
    fn stay(&self, known: GeofencePresence, now_ms: i64) -> (GeofencePresence, &'static str) {
        let (least_ms, label) = match known.inside {
            true => (self.inside_ms, "Inside"),
            false => (self.outside_ms, "Outside"),
        };
        if self.on_each {
            return (known, label);
        }
        if known.stayed || now_ms.saturating_sub(known.since_ms) <= least_ms {
            return (known, "Success");
        }
        (
            GeofencePresence {
                stayed: true,
                ..known
            },
            label,
        )
    }
}
