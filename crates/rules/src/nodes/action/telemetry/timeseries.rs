//! "Save time series".

use std::sync::Arc;

use fieldline_core::ports::TelemetrySaveStrategy;
use fieldline_core::usage::ApiFeature;
use fieldline_model::message::MsgType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::body;
use super::super::processing::{self, ActionSelector, ProcessingSettings, TimeseriesStrategies};
use crate::config_schema;
use crate::message::{MessageMetadata, RuleMessage};
use crate::node::{
    Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult, TelemetryValues,
};
use crate::node_types::NodeType;
use crate::value_update::{UpdatedValues, ValueUpdate};

pub(super) const NODE: NodeType = NodeType {
    class: "telemetry.TbMsgTimeseriesNode",
    name: "save time series",
    description: "Saves time series data with a configurable TTL and according to configured processing strategies.",
    version: 1,
    default_configuration: || {
        json!({
            "defaultTTL": 0, "useServerTs": false, "processingSettings": processing::on_every_message(),
        })
    },
    schema: config_schema::of::<Config>,
    upgrade,
    make,
    ..NodeType::ACTION
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Config {
    #[serde(rename = "defaultTTL")]
    #[schemars(title = "Default TTL", extend("x-unit" = "s"))]
    default_ttl: i64,
    #[schemars(title = "Use the time of the server")]
    use_server_ts: bool,
    processing_settings: Option<ProcessingSettings<TimeseriesStrategies>>,
}

struct MsgTimeseriesNode {
    default_ttl: i64,
    use_server_ts: bool,
    processing: ActionSelector<4>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(MsgTimeseriesNode {
        default_ttl: config.default_ttl,
        use_server_ts: config.use_server_ts,
        processing: ActionSelector::new(config.processing_settings)?,
    }))
}

fn upgrade(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
    {
        let always = processing::on_every_message();
        let skips_latest = match fields.remove("skipLatestPersistence") {
            Some(Value::Bool(skips)) => skips,
            Some(Value::String(text)) => text == "true",
            _ => false,
        };
        let settings = if skips_latest {
            json!({
                "type": "ADVANCED", "timeseries": always, "latest": {"type": "SKIP"},
                "webSockets": always, "calculatedFields": always,
            })
        } else {
            always
        };
        fields.insert("processingSettings".to_owned(), settings);
    }
    configuration
}

impl Node for MsgTimeseriesNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        if msg.kind != MsgType::PostTelemetry {
            let problem = format!("Unsupported msg type: {}", msg.kind);
            return NodeResult::fail(msg, problem);
        }
        let ts = if self.use_server_ts {
            ctx.now_ms
        } else {
            msg.values_ts()
        };
        let [history, latest, shown, fields] = self.processing.decide(ts, msg.originator.id, ctx.now_ms);
        let parts = TelemetrySaveStrategy {
            history,
            latest,
            published: shown,
        };
        if parts.is_nothing() && !fields {
            return NodeResult::success(msg);
        }
        let rows = match body::telemetry(&msg.data, ts) {
            Ok(rows) => rows,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        if rows.is_empty() {
            let problem = format!("Msg body is empty: {}", msg.data.to_text());
            return NodeResult::fail(msg, problem);
        }
        let ttl_seconds = match self.ttl(&msg) {
            Ok(ttl) => ttl,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        if history && !ctx.may_use(ApiFeature::Storage) {
            return NodeResult::fail(msg, "DB storage writes are disabled due to API limits!");
        }
        let subject = msg.subject();
        for (ts, values) in rows.iter() {
            if !parts.is_nothing() {
                let row = TelemetryValues {
                    subject,
                    ts: *ts,
                    ttl_seconds,
                    strategy: parts,
                    values: values.clone(),
                };
                ctx.save_telemetry(&msg, row);
            }
            if fields {
                let what = UpdatedValues::Telemetry { ts: *ts, values };
                ctx.notify_fields(ValueUpdate {
                    subject,
                    values: what,
                    msg: &msg,
                });
            }
        }
        NodeResult::success(msg)
    }
}

impl MsgTimeseriesNode {
    /// Seconds that the points are kept: what the metadata says, else the node, else the tenant.
    fn ttl(&self, msg: &RuleMessage) -> Result<u32, NodeError> {
        let from_metadata = match &msg.meta {
            MessageMetadata::Device { .. } => None,
            MessageMetadata::Own(own) => own.get("TTL").filter(|ttl| !ttl.is_empty()),
        };
        let ttl = match from_metadata {
            Some(ttl) => ttl
                .parse::<i64>()
                .map_err(|_| NodeError::new(format!("TTL in the metadata is no number: {ttl:?}")))?,
            None => self.default_ttl,
        };
        if ttl == 0 {
            return Ok(msg.ttl_seconds);
        }
        // As below zero, what is beyond the range is as good as for ever.
        Ok(u32::try_from(ttl).unwrap_or_default())
    }
}
