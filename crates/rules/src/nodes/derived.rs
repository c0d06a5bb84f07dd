//! Messages that a node makes of others.

use std::future::Future;
use std::sync::Arc;

use fieldline_model::RuleNodeId;
use uuid::Uuid;

use crate::message::{RuleMessage, derive_id};
use crate::node::{ConnectionLabel, NodeContext, NodeError};

/// Tells what one node makes of a message from what others make of it.
pub(crate) fn salt(node: RuleNodeId, number: u64) -> u64 {
    let (high, low) = node.0.as_u64_pair();
    (high ^ low.rotate_left(32)).wrapping_add(number)
}

/// The `number`-th id that a node makes from a message: the same whenever it handles that message again.
pub(crate) fn id(msg: Uuid, node: RuleNodeId, number: u64) -> Uuid {
    derive_id(msg, salt(node, number))
}

/// One of several messages that a node makes of one.
pub(crate) fn branch(node: RuleNodeId, msg: &RuleMessage, index: usize) -> RuleMessage {
    msg.derive(salt(node, index as u64))
}

/// Puts a message into a queue, from which it goes on through a connection of this node. It is durable when the future
/// ends.
pub(crate) fn push(
    ctx: &NodeContext<'_>,
    msg: &RuleMessage,
    queue: Option<&str>,
    label: &ConnectionLabel,
) -> impl Future<Output = Result<(), NodeError>> + Send + 'static {
    let services = Arc::clone(ctx.services);
    let tenant = ctx.tenant;
    let mut message = RuleMessage {
        moves: msg.moves.saturating_add(1),
        ..msg.clone()
    }
    .to_message();
    message.queue = queue.map(str::to_owned);
    message.rule_chain = Some(ctx.chain);
    message.from = Some((ctx.node, label.0.to_string()));
    async move { Ok(services.engine.push(tenant, message).await?) }
}
