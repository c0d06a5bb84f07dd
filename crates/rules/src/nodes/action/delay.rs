//! "Delay": messages wait in the node, restarts included.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use fieldline_core::ports::StateKey;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::derived;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_codec::{self, MAX_BYTES};
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "delay.TbMsgDelayNode",
    name: "delay (deprecated)",
    description: "Delays incoming messages (deprecated).",
    default_configuration: || {
        json!({
            "periodInSeconds": 60, "maxPendingMsgs": 1000, "periodInSecondsPattern": null,
            "useMetadataPeriodInSecondsPatterns": false,
        })
    },
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ACTION
}];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(title = "Period", range(min = 0), extend("x-unit" = "s"))]
    period_in_seconds: i32,
    #[schemars(title = "Most waiting messages")]
    max_pending_msgs: i64,
    #[schemars(title = "Period pattern")]
    period_in_seconds_pattern: Option<TextTemplate>,
    #[schemars(title = "Period by pattern")]
    use_metadata_period_in_seconds_patterns: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            period_in_seconds: 60,
            max_pending_msgs: 1000,
            period_in_seconds_pattern: None,
            use_metadata_period_in_seconds_patterns: false,
        }
    }
}

struct MsgDelayNode {
    period: DelayPeriod,
    /// Those that have come since the chain was compiled.
    pending: AtomicUsize,
    max_pending: usize,
}

enum DelayPeriod {
    Seconds(i64),
    Pattern(TextTemplate),
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    let period = if config.use_metadata_period_in_seconds_patterns {
        DelayPeriod::Pattern(
            config
                .period_in_seconds_pattern
                .unwrap_or_else(|| TextTemplate::new("")),
        )
    } else if config.period_in_seconds < 0 {
        return Err(NodeConfigError::new("periodInSeconds", "must not be negative"));
    } else {
        DelayPeriod::Seconds(config.period_in_seconds.into())
    };
    Ok(Arc::new(MsgDelayNode {
        period,
        pending: AtomicUsize::new(0),
        max_pending: usize::try_from(config.max_pending_msgs).unwrap_or(0),
    }))
}

impl MsgDelayNode {
    fn seconds(&self, msg: &mut RuleMessage) -> Result<i64, NodeError> {
        match &self.period {
            DelayPeriod::Seconds(seconds) => Ok(*seconds),
            DelayPeriod::Pattern(pattern) => pattern.resolve(msg)?.trim().parse().map_err(|_| {
                NodeError::new(format!(
                    "Can't parse period in seconds from metadata using pattern: {}",
                    pattern.text()
                ))
            }),
        }
    }
}

impl Node for MsgDelayNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let subject = msg.subject();
        if !ctx.owns(subject) {
            return NodeResult::forward_to_owner(msg);
        }
        let seconds = match self.seconds(&mut msg) {
            Ok(seconds) => seconds.max(0),
            Err(error) => return NodeResult::Fail(msg, error),
        };
        if self.pending.load(Ordering::Relaxed) >= self.max_pending {
            return NodeResult::fail(msg, "Max limit of pending messages reached!");
        }
        let mut next = msg.to_message();
        next.id = derived::id(msg.id, ctx.node, 0);
        let (number, _) = next.id.as_u64_pair();
        let bytes = message_codec::encode(msg.tenant, &next);
        if bytes.len() > MAX_BYTES {
            return NodeResult::fail(msg, format!("The message is longer than {MAX_BYTES} bytes!"));
        }
        if ctx.state(subject, number).is_none() {
            self.pending.fetch_add(1, Ordering::Relaxed);
        }
        let due_ms = ctx.now_ms.saturating_add(seconds.saturating_mul(1000));
        ctx.set_state(subject, number, Some(due_ms), &bytes);
        NodeResult::Done
    }

    fn handle_due(&self, _: &mut NodeContext<'_>, key: StateKey, value: Bytes) -> NodeResult {
        // Those of the time before a restart are not counted.
        let _ = self
            .pending
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |pending| {
                pending.checked_sub(1)
            });
        match message_codec::decode(&value) {
            Some(message) => NodeResult::success(RuleMessage::of(key.subject.tenant, message)),
            None => {
                tracing::error!(node = %key.owner, "a delayed message cannot be read, it is dropped");
                NodeResult::Done
            }
        }
    }
}
