//! "Save time series".

use std::sync::Arc;

use fieldline_core::ports::RowParts;
use fieldline_core::usage::Feature;
use fieldline_model::message::MsgType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::body;
use super::super::processing::{self, Processing, Settings, TIMESERIES};
use crate::feed::{Update, What};
use crate::message::{Meta, Msg};
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step, TelemetryValues};
use crate::registry::{ComponentType, NodeType};

pub(super) const NODE: NodeType = NodeType {
    description: "Saves time series data with a configurable TTL and according to configured processing strategies.",
    version: 1,
    default_configuration: || {
        json!({
            "defaultTTL": 0, "useServerTs": false, "processingSettings": processing::on_every_message(),
        })
    },
    upgrade,
    ..NodeType::new(
        "telemetry.TbMsgTimeseriesNode",
        "save time series",
        ComponentType::Action,
        make,
    )
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Config {
    #[serde(rename = "defaultTTL")]
    default_ttl: i64,
    use_server_ts: bool,
    processing_settings: Option<Settings>,
}

struct SaveTimeseries {
    default_ttl: i64,
    use_server_ts: bool,
    processing: Processing<4>,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(SaveTimeseries {
        default_ttl: config.default_ttl,
        use_server_ts: config.use_server_ts,
        processing: Processing::new(config.processing_settings, TIMESERIES)?,
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

impl Node for SaveTimeseries {
    fn handle(&self, ctx: &mut Ctx<'_>, msg: Msg) -> Step {
        if msg.kind != MsgType::PostTelemetry {
            let problem = format!("Unsupported msg type: {}", msg.kind);
            return Step::fail(msg, problem);
        }
        let ts = if self.use_server_ts {
            ctx.now_ms
        } else {
            msg.values_ts()
        };
        let [history, latest, shown, fields] = self.processing.decide(ts, msg.originator.id, ctx.now_ms);
        let parts = RowParts {
            history,
            latest,
            shown,
        };
        if parts.is_nothing() && !fields {
            return Step::success(msg);
        }
        let rows = match body::telemetry(&msg.data, ts) {
            Ok(rows) => rows,
            Err(error) => return Step::Fail(msg, error),
        };
        if rows.is_empty() {
            let problem = format!("Msg body is empty: {}", msg.data.to_text());
            return Step::fail(msg, problem);
        }
        let ttl_seconds = match self.ttl(&msg) {
            Ok(ttl) => ttl,
            Err(error) => return Step::Fail(msg, error),
        };
        if history && !ctx.may_use(Feature::Storage) {
            return Step::fail(msg, "DB storage writes are disabled due to API limits!");
        }
        let subject = msg.subject();
        for (ts, values) in rows.iter() {
            if !parts.is_nothing() {
                let row = TelemetryValues {
                    subject,
                    ts: *ts,
                    ttl_seconds,
                    parts,
                    values: values.clone(),
                };
                ctx.save_telemetry(&msg, row);
            }
            if fields {
                let what = What::Telemetry { ts: *ts, values };
                ctx.feed(Update {
                    subject,
                    what,
                    msg: &msg,
                });
            }
        }
        Step::success(msg)
    }
}

impl SaveTimeseries {
    /// Seconds that the points are kept: what the metadata says, else the node, else the tenant.
    fn ttl(&self, msg: &Msg) -> Result<u32, NodeError> {
        let told = match &msg.meta {
            Meta::Device { .. } => None,
            Meta::Own(own) => own.get("TTL").filter(|ttl| !ttl.is_empty()),
        };
        let ttl = match told {
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
