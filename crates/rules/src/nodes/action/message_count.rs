//! "Message count".

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fieldline_model::message::{MetadataMap, MsgType, QueueMessage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{
    ConnectionLabel, Node, NodeBackgroundTask, NodeConfigError, NodeContext, NodeEmitter, NodeInitContext,
    NodeResult,
};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "action.TbMsgCountNode",
    name: "message count",
    description: "Counts incoming messages, and sends the count as telemetry of the tenant at intervals.",
    default_configuration: || json!({ "interval": 1, "telemetryPrefix": "messageCount" }),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ACTION
}];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    #[schemars(range(min = 1), extend("x-unit" = "s"))]
    interval: u64,
    telemetry_prefix: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            interval: 1,
            telemetry_prefix: "messageCount".to_owned(),
        }
    }
}

struct MsgCountNode {
    count: AtomicU64,
    interval: Duration,
    prefix: String,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    if config.interval == 0 {
        return Err(NodeConfigError::new("interval", "must be at least 1 second"));
    }
    Ok(Arc::new(MsgCountNode {
        count: AtomicU64::new(0),
        interval: Duration::from_secs(config.interval),
        prefix: config.telemetry_prefix,
    }))
}

impl Node for MsgCountNode {
    fn handle(&self, _: &mut NodeContext<'_>, _: RuleMessage) -> NodeResult {
        self.count.fetch_add(1, Ordering::Relaxed);
        NodeResult::Done
    }

    fn run(self: Arc<Self>, source: NodeEmitter) -> Option<NodeBackgroundTask> {
        Some(Box::pin(async move {
            let mut ticks = tokio::time::interval_at(Instant::now() + self.interval, self.interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut last_ms = source.services.now_ms();
            loop {
                ticks.tick().await;
                let now_ms = source.services.now_ms();
                self.report(&source, now_ms, now_ms.saturating_sub(last_ms)).await;
                last_ms = now_ms;
            }
        }))
    }
}

impl MsgCountNode {
    async fn report(&self, source: &NodeEmitter, now_ms: i64, delta_ms: i64) {
        let count = self.count.swap(0, Ordering::Relaxed);
        let key = format!("{}_{}", self.prefix, source.services.service_id);
        let message = QueueMessage::new(
            MsgType::PostTelemetry,
            source.tenant.into(),
            now_ms,
            MetadataMap::from_iter([("delta", delta_ms.to_string())]),
            json!({ key: count }).to_string(),
        );
        if let Err(error) = source
            .emit(
                &RuleMessage::of(source.tenant, message),
                &ConnectionLabel::SUCCESS,
            )
            .await
        {
            // They are in the next report.
            self.count.fetch_add(count, Ordering::Relaxed);
            tracing::warn!(node = %source.node, %error, "cannot queue a message count");
        }
    }
}
