//! "Copy to view": attributes of a device or asset become attributes of its entity views.

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::{AttributeParts, EntityViewFilter};
use fieldline_model::entity::EntityView;
use fieldline_model::kv::{pack, unpack};
use fieldline_model::message::MsgType;
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{EntityId, Subject};
use serde_json::Value;

use super::body;
use crate::message::{Meta, Msg};
use crate::node::{AttributeValues, ConfigError, Ctx, Label, Node, NodeConfig, NodeError, Step, move_to};
use crate::nodes::derived::branch;
use crate::registry::{ComponentType, NodeType};
use crate::services::Services;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Copies attributes of a device or asset to its entity views, which become originators of messages.",
    ..NodeType::new(
        "action.TbCopyAttributesToEntityViewNode",
        "copy to view",
        ComponentType::Action,
        make,
    )
}];

/// Views that are read at a time.
const PAGE: u32 = 256;

struct CopyToView;

fn make(_: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    Ok(Arc::new(CopyToView))
}

/// What is done to the views.
enum Change {
    Save(Bytes),
    Delete(Vec<String>),
}

impl Change {
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

fn change(msg: &mut Msg) -> Result<(AttributeScope, Change), NodeError> {
    let from_device = match msg.kind {
        MsgType::PostAttributes => true,
        MsgType::AttributesUpdated | MsgType::AttributesDeleted | MsgType::Activity | MsgType::Inactivity => {
            false
        }
        _ => return Err(NodeError::new(format!("Unsupported msg type [{}]", msg.kind))),
    };
    if matches!(&msg.meta, Meta::Own(metadata) if metadata.is_empty()) {
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
        return Ok((scope, Change::Save(body::attributes(&msg.data)?)));
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
    Ok((scope, Change::Delete(names)))
}

impl Node for CopyToView {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let (scope, change) = match change(&mut msg) {
            Ok(change) => change,
            Err(error) => return Step::Fail(msg, error),
        };
        let (services, now_ms) = (Arc::clone(ctx.services), ctx.now_ms);
        Step::wait(async move {
            match carry_out(&services, &mut msg, scope, &change, now_ms).await {
                Ok(views) => Step::then(move |ctx| finish(ctx, &msg, scope, views)),
                Err(error) => Step::Fail(msg, error),
            }
        })
    }
}

/// Deletes what is to be deleted, and returns the views whose messages go on with what is to be saved in them.
async fn carry_out(
    services: &Arc<Services>,
    msg: &mut Msg,
    scope: AttributeScope,
    change: &Change,
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
            let Some(id) = view.id.map(EntityId::from) else {
                continue;
            };
            match change.part(shown(view, scope)) {
                Change::Save(values) => views.push((id, values)),
                Change::Delete(keys) if keys.is_empty() => {}
                Change::Delete(keys) => {
                    let subject = Subject {
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

fn shown(view: &EntityView, scope: AttributeScope) -> &[String] {
    let Some(keys) = &view.keys else { return &[] };
    match scope {
        AttributeScope::Client => &keys.attributes.cs,
        AttributeScope::Server => &keys.attributes.ss,
        AttributeScope::Shared => &keys.attributes.sh,
    }
}

fn finish(ctx: &mut Ctx<'_>, msg: &Msg, scope: AttributeScope, views: Vec<(EntityId, Bytes)>) -> Step {
    let mut many = Vec::with_capacity(views.len());
    for (index, (view, values)) in views.into_iter().enumerate() {
        let subject = Subject {
            tenant: msg.tenant,
            entity: view,
        };
        if !values.is_empty() {
            let saved = AttributeValues {
                subject,
                scope,
                ts: ctx.now_ms,
                parts: AttributeParts::ALL,
                values,
            };
            ctx.save_attributes(msg, saved);
        }
        let mut copy = branch(ctx.node, msg, index);
        move_to(&mut copy, view);
        many.push((copy, Label::SUCCESS));
    }
    if many.is_empty() {
        Step::Done
    } else {
        Step::Many(many)
    }
}
