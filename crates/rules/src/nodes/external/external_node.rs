//! What all nodes that send messages out have in common: when messages are acknowledged, and what becomes of an outcome.

use std::pin::Pin;
use std::sync::Arc;

use fieldline_connectors::egress::Egress;
use fieldline_connectors::{
    ConnectorConfig as Connector, ConnectorConfigError as WrongConfig, ConnectorError, ConnectorOutcome,
};

use crate::message::{MessageBody, RuleMessage};
use crate::node::{
    ConnectionLabel, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult,
};
use crate::nodes::derived;
use crate::nodes::pending_limiter::{PendingLimiter, node_emitter};

/// What is on its way.
pub(super) type SendFuture = Pin<Box<dyn Future<Output = Result<ConnectorOutcome, ConnectorError>> + Send>>;

/// Sends messages out.
pub(super) trait OutboundSender: Send + Sync + 'static {
    /// Takes from a message what is sent.
    fn send(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError>;
}

/// A node that sends messages out.
pub(super) struct ExternalNode<T> {
    sender: T,
    /// Acknowledged are messages before they are sent.
    acks_first: bool,
    waiting: PendingLimiter,
}

impl<T: OutboundSender> ExternalNode<T> {
    /// A node; messages are acknowledged first where it says so, or the platform does.
    pub(super) fn node(config: &NodeInitContext<'_>, acks_first: bool, outside: T) -> Arc<dyn Node> {
        Arc::new(Self {
            sender: outside,
            acks_first: acks_first || config.services.external.force_ack,
            waiting: PendingLimiter::default(),
        })
    }
}

/// Reads the configuration of a connector.
pub(super) fn read<C: Connector>(config: &NodeInitContext<'_>) -> Result<C, NodeConfigError> {
    C::from_json(config.value).map_err(wrong)
}

/// A connector's word on a wrong configuration.
pub(super) fn wrong(error: WrongConfig) -> NodeConfigError {
    NodeConfigError::new(error.field(), error.problem())
}

/// A failure without anything to be added to the message.
pub(super) fn failed(message: impl Into<String>) -> ConnectorError {
    ConnectorError::bare(message)
}

/// Base URL of a cloud service, if not its own.
pub(super) fn endpoint<'a>(config: &NodeInitContext<'a>) -> Option<&'a str> {
    config.services.external.endpoints.http.as_deref()
}

/// What the node may connect to.
pub(super) fn node_egress(config: &NodeInitContext<'_>) -> Egress {
    config.services.external.tenant_egress(config.tenant)
}

/// The body of a message as it is sent.
pub(super) fn body(msg: &RuleMessage) -> String {
    msg.data.to_text().into_owned()
}

impl<T: OutboundSender> Node for ExternalNode<T> {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let waiting = match self.acks_first {
            false => None,
            true => match self.waiting.try_acquire() {
                Some(waiting) => Some(waiting),
                None => return NodeResult::fail(msg, "too many messages of this node wait to be sent"),
            },
        };
        let sending = match self.sender.send(ctx, &mut msg) {
            Ok(sending) => sending,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        // Connections belong to the runtime that they were made in.
        let sending = ctx.services.runtime.spawn(sending);
        let sent = async move {
            let broken_off = |_| Err(failed("sending was broken off"));
            sending.await.unwrap_or_else(broken_off)
        };
        let Some(waiting) = waiting else {
            return NodeResult::outside(async move {
                match finish(&mut msg, sent.await) {
                    None => NodeResult::success(msg),
                    Some(error) => NodeResult::Fail(msg, error),
                }
            });
        };
        let source = node_emitter(ctx);
        msg.id = derived::id(msg.id, ctx.node, 0);
        ctx.services.runtime.spawn(async move {
            let _waiting = waiting;
            let label = match finish(&mut msg, sent.await) {
                None => ConnectionLabel::SUCCESS,
                Some(error) => {
                    tracing::debug!(node = %source.node, %error, "a message was not sent");
                    ConnectionLabel::FAILURE
                }
            };
            if let Err(error) = source.emit(&msg, &label).await {
                tracing::warn!(node = %source.node, %error, "cannot queue what came of a message that was sent");
            }
        });
        NodeResult::Done
    }
}

/// Adds to a message what came of it, and returns why it was not sent.
fn finish(msg: &mut RuleMessage, sent: Result<ConnectorOutcome, ConnectorError>) -> Option<NodeError> {
    let (body, metadata, error) = match sent {
        Ok(outcome) => (outcome.body, outcome.metadata, None),
        Err(error) => (error.body, error.metadata, Some(NodeError::new(error.message))),
    };
    if let Some(body) = body {
        msg.data = MessageBody::text(body);
    }
    for (key, value) in metadata {
        msg.meta.set(key, value);
    }
    error
}
