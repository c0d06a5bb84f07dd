//! "Copy to view": attributes of a device or asset become attributes of its entity views.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::{AttributeSaveStrategy, EntityViewFilter};
use fieldline_model::entity::EntityView;
use fieldline_model::kv::{pack, unpack};
use fieldline_model::message::MsgType;
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, EntityKey};
use serde_json::Value;

use super::body;
use crate::config_schema::{self, NoConfiguration};
use crate::message::{MessageMetadata, RuleMessage};
use crate::node::{
    AttributeValues, ConnectionLabel, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext,
    NodeResult, set_originator,
};
use crate::node_types::NodeType;
use crate::nodes::derived::branch;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "action.TbCopyAttributesToEntityViewNode",
    name: "copy to view",
    description: "Copies attributes of a device or asset to its entity views, which become originators of messages.",
    schema: config_schema::of::<NoConfiguration>,
    make,
    ..NodeType::ACTION
}];

/// Views that are read at a time.
const PAGE: u32 = 256;

struct CopyToViewNode;

fn make(_: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(CopyToViewNode))
}

/// What is done to the views.
enum ViewAttributeChange {
    Save(Bytes),
    Delete(Vec<String>),
}

impl ViewAttributeChange {
    /// The part of it that a view shows.
    fn part(&self, keys: &[String]) -> Self {
        match self {
            Self::Save(values) => {
                let mut part = Vec::new();
                for (key, value) in unpack(values).filter_map(Result::ok) {
                    if keys.iter().any(|known| known == key) {
                        pack(key, value, &mut part);
                    }
                }
                Self::Save(part.into())
            }
            Self::Delete(names) => {
                Self::Delete(names.iter().filter(|name| keys.contains(name)).cloned().collect())
            }
        }
    }
}

fn change(msg: &mut RuleMessage) -> Result<(AttributeScope, ViewAttributeChange), NodeError> {
    let from_device = match msg.kind {
        MsgType::PostAttributes => true,
        MsgType::AttributesUpdated | MsgType::AttributesDeleted | MsgType::Activity | MsgType::Inactivity => {
            false
        }
        _ => return Err(NodeError::new(format!("Unsupported msg type [{}]", msg.kind))),
    };
    if matches!(&msg.meta, MessageMetadata::Own(metadata) if metadata.is_empty()) {
        return Err(NodeError::new("Message metadata is empty"));
    }
    let scope = if from_device {
        AttributeScope::Client
    } else {
        let name = msg.meta.get("scope").unwrap_or_default();
        AttributeScope::from_name(&name)
            .ok_or_else(|| NodeError::new(format!("Invalid attribute scope: {name}")))?
    };
    if msg.kind != MsgType::AttributesDeleted {
        return Ok((scope, ViewAttributeChange::Save(body::attributes(&msg.data)?)));
    }
    let json = msg.data.to_json()?;
    let names = json
        .get("attributes")
        .and_then(Value::as_array)
        .ok_or_else(|| NodeError::new("the body has no array `attributes`"))?;
    let names = names
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    Ok((scope, ViewAttributeChange::Delete(names)))
}

impl Node for CopyToViewNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let (scope, change) = match change(&mut msg) {
            Ok(change) => change,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let (services, now_ms) = (Arc::clone(ctx.services), ctx.now_ms);
        NodeResult::wait(async move {
            match carry_out(&services, &mut msg, scope, &change, now_ms).await {
                Ok(views) => NodeResult::then(move |ctx| finish(ctx, &msg, scope, views)),
                Err(error) => NodeResult::Fail(msg, error),
            }
        })
    }
}

/// Deletes what is to be deleted, and returns the views whose messages go on with what is to be saved in them.
async fn carry_out(
    services: &Arc<NodeServices>,
    msg: &mut RuleMessage,
    scope: AttributeScope,
    change: &ViewAttributeChange,
    now_ms: i64,
) -> Result<Vec<(EntityId, Bytes)>, NodeError> {
    let filter = EntityViewFilter {
        entity: Some(msg.originator),
        ..EntityViewFilter::default()
    };
    let mut link = PageLink::first(PAGE);
    let mut views = Vec::new();
    loop {
        let page = services
            .stores
            .entity_views
            .list(msg.tenant, &filter, &link)
            .await?;
        for view in page
            .data
            .iter()
            .map(|info| &info.view)
            .filter(|view| is_valid(view, now_ms))
        {
            let id = EntityId::from(view.id);
            match change.part(view_keys(view, scope)) {
                ViewAttributeChange::Save(values) => views.push((id, values)),
                ViewAttributeChange::Delete(keys) if keys.is_empty() => {}
                ViewAttributeChange::Delete(keys) => {
                    let subject = EntityKey {
                        tenant: msg.tenant,
                        entity: id,
                    };
                    services.attributes.delete(subject, scope, &keys).await?;
                    views.push((id, Bytes::new()));
                }
            }
        }
        msg.budget.branch(views.len())?;
        if !page.has_next {
            return Ok(views);
        }
        link.page += 1;
    }
}

const fn is_valid(view: &EntityView, now_ms: i64) -> bool {
    view.start_time_ms < now_ms && (view.end_time_ms == 0 || view.end_time_ms > now_ms)
}

fn view_keys(view: &EntityView, scope: AttributeScope) -> &[String] {
    let Some(keys) = &view.keys else { return &[] };
    match scope {
        AttributeScope::Client => &keys.attributes.cs,
        AttributeScope::Server => &keys.attributes.ss,
        AttributeScope::Shared => &keys.attributes.sh,
    }
}

fn finish(
    ctx: &mut NodeContext<'_>,
    msg: &RuleMessage,
    scope: AttributeScope,
    views: Vec<(EntityId, Bytes)>,
) -> NodeResult {
    let mut many = Vec::with_capacity(views.len());
    for (index, (view, values)) in views.into_iter().enumerate() {
        let subject = EntityKey {
            tenant: msg.tenant,
            entity: view,
        };
        if !values.is_empty() {
            let saved = AttributeValues {
                subject,
                scope,
                ts: ctx.now_ms,
                strategy: AttributeSaveStrategy::ALL,
                values,
            };
            ctx.save_attributes(msg, saved);
        }
        let mut copy = branch(ctx.node, msg, index);
        set_originator(&mut copy, view);
        many.push((copy, ConnectionLabel::SUCCESS));
    }
    if many.is_empty() {
        NodeResult::Done
    } else {
        NodeResult::Many(many)
    }
}
