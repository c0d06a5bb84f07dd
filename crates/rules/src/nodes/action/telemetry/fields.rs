//! "Calculated fields and alarm rules": feeds them without saving anything.

use std::sync::Arc;

use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;

use super::super::body;
use crate::feed::{Update, What};
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::registry::{ComponentType, NodeType};

pub(super) const NODE: NodeType = NodeType {
    description: "Pushes incoming messages to calculated fields and alarm rules.",
    ..NodeType::new(
        "telemetry.TbCalculatedFieldsNode",
        "calculated fields and alarm rules",
        ComponentType::Action,
        make,
    )
};

struct CalculatedFields;

fn make(_: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    Ok(Arc::new(CalculatedFields))
}

impl Node for CalculatedFields {
    fn handle(&self, ctx: &mut Ctx<'_>, msg: Msg) -> Step {
        let fed = match msg.kind {
            MsgType::PostTelemetry => feed_telemetry(ctx, &msg),
            MsgType::PostAttributes => feed_attributes(ctx, &msg),
            _ => Err(NodeError::new(format!("Unsupported msg type: {}", msg.kind))),
        };
        match fed {
            Ok(()) => Step::success(msg),
            Err(error) => Step::Fail(msg, error),
        }
    }
}

fn feed_telemetry(ctx: &mut Ctx<'_>, msg: &Msg) -> Result<(), NodeError> {
    for (ts, values) in body::telemetry(&msg.data, ctx.now_ms)?.iter() {
        let what = What::Telemetry { ts: *ts, values };
        ctx.feed(Update {
            subject: msg.subject(),
            what,
            msg,
        });
    }
    Ok(())
}

fn feed_attributes(ctx: &mut Ctx<'_>, msg: &Msg) -> Result<(), NodeError> {
    let values = body::attributes(&msg.data)?;
    if values.is_empty() {
        return Ok(());
    }
    let scope = match msg.meta.get("scope").filter(|name| !name.is_empty()) {
        None => return Err(NodeError::new("Attribute scope is missing")),
        Some(name) => AttributeScope::from_name(&name)
            .ok_or_else(|| NodeError::new(format!("Invalid attribute scope: {name}")))?,
    };
    let what = What::Attributes {
        scope,
        values: &values,
    };
    ctx.feed(Update {
        subject: msg.subject(),
        what,
        msg,
    });
    Ok(())
}
