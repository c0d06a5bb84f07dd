//! "Calculated fields and alarm rules": feeds them without saving anything.

use std::sync::Arc;

use fieldline_model::message::MsgType;
use fieldline_model::timeseries::AttributeScope;

use super::super::body;
use crate::config_schema::{self, NoConfiguration};
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::value_update::{UpdatedValues, ValueUpdate};

pub(super) const NODE: NodeType = NodeType {
    class: "telemetry.TbCalculatedFieldsNode",
    name: "calculated fields and alarm rules",
    description: "Pushes incoming messages to calculated fields and alarm rules.",
    schema: config_schema::of::<NoConfiguration>,
    make,
    ..NodeType::ACTION
};

struct CalculatedFieldsNode;

fn make(_: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(CalculatedFieldsNode))
}

impl Node for CalculatedFieldsNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let fed = match msg.kind {
            MsgType::PostTelemetry => notify_telemetry(ctx, &msg),
            MsgType::PostAttributes => notify_attributes(ctx, &msg),
            _ => Err(NodeError::new(format!("Unsupported msg type: {}", msg.kind))),
        };
        NodeResult::after(msg, fed)
    }
}

fn notify_telemetry(ctx: &mut NodeContext<'_>, msg: &RuleMessage) -> Result<(), NodeError> {
    for (ts, values) in body::telemetry(&msg.data, ctx.now_ms)?.iter() {
        let what = UpdatedValues::Telemetry { ts: *ts, values };
        ctx.notify_fields(ValueUpdate {
            subject: msg.subject(),
            values: what,
            msg,
        });
    }
    Ok(())
}

fn notify_attributes(ctx: &mut NodeContext<'_>, msg: &RuleMessage) -> Result<(), NodeError> {
    let values = body::attributes(&msg.data)?;
    if values.is_empty() {
        return Ok(());
    }
    let scope = match msg.meta.get("scope").filter(|name| !name.is_empty()) {
        None => return Err(NodeError::new("Attribute scope is missing")),
        Some(name) => AttributeScope::from_name(&name)
            .ok_or_else(|| NodeError::new(format!("Invalid attribute scope: {name}")))?,
    };
    let what = UpdatedValues::Attributes {
        scope,
        values: &values,
    };
    ctx.notify_fields(ValueUpdate {
        subject: msg.subject(),
        values: what,
        msg,
    });
    Ok(())
}
