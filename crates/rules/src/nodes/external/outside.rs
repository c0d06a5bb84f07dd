//! What all nodes that send messages out have in common: when messages are acknowledged, and what becomes of an outcome.

use std::pin::Pin;
use std::sync::Arc;

use fieldline_connectors::egress::Egress;
use fieldline_connectors::{ConfigError as WrongConfig, NodeConfig as Connector, Outcome, SendError};
use tokio::task::JoinError;

use crate::message::{Data, Msg};
use crate::node::{ConfigError, Ctx, Label, Node, NodeConfig, NodeError, Step};
use crate::nodes::derived;
use crate::nodes::later::{Waiters, source};

/// What is on its way.
pub(super) type Sending = Pin<Box<dyn Future<Output = Result<Outcome, SendError>> + Send>>;

/// Sends messages out.
pub(super) trait Outside: Send + Sync + 'static {
    /// Takes from a message what is sent.
    fn send(&self, ctx: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError>;
}

/// A node that sends messages out.
pub(super) struct External<T> {
    outside: T,
    /// Acknowledged are messages before they are sent.
    acks_first: bool,
    waiting: Waiters,
}

impl<T: Outside> External<T> {
    /// A node; messages are acknowledged first where it says so, or the platform does.
    pub(super) fn node(config: &NodeConfig<'_>, acks_first: bool, outside: T) -> Arc<dyn Node> {
        Arc::new(Self {
            outside,
            acks_first: acks_first || config.services.external.force_ack,
            waiting: Waiters::default(),
        })
    }
}

/// Reads the configuration of a connector.
pub(super) fn read<C: Connector>(config: &NodeConfig<'_>) -> Result<C, ConfigError> {
    C::from_json(config.value).map_err(wrong)
}

/// A connector's word on a wrong configuration.
pub(super) fn wrong(error: WrongConfig) -> ConfigError {
    ConfigError::new(error.field(), error.problem())
}

/// A failure without anything to be added to the message.
pub(super) fn failed(message: impl Into<String>) -> SendError {
    SendError {
        message: message.into(),
        metadata: Vec::new(),
        body: None,
    }
}

/// Base URL of a cloud service, if not its own.
pub(super) fn endpoint<'a>(config: &NodeConfig<'a>) -> Option<&'a str> {
    config.services.external.endpoints.http.as_deref()
}

/// What the node may connect to.
pub(super) fn way_out(config: &NodeConfig<'_>) -> Egress {
    config.services.external.way_out(config.tenant)
}

/// The body of a message as it is sent.
pub(super) fn body(msg: &Msg) -> String {
    msg.data.to_text().into_owned()
}

impl<T: Outside> Node for External<T> {
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let waiting = match self.acks_first {
            false => None,
            true => match self.waiting.begin() {
                Some(waiting) => Some(waiting),
                None => return Step::fail(msg, "too many messages of this node wait to be sent"),
            },
        };
        let sending = match self.outside.send(ctx, &mut msg) {
            Ok(sending) => sending,
            Err(error) => return Step::Fail(msg, error),
        };
        // Connections belong to the runtime that they were made in.
        let sent = ctx.services.runtime.spawn(sending);
        let Some(waiting) = waiting else {
            return Step::outside(async move {
                match finish(&mut msg, sent.await) {
                    None => Step::success(msg),
                    Some(error) => Step::Fail(msg, error),
                }
            });
        };
        let source = source(ctx);
        msg.id = derived::id(msg.id, ctx.node, 0);
        ctx.services.runtime.spawn(async move {
            let _waiting = waiting;
            let label = match finish(&mut msg, sent.await) {
                None => Label::SUCCESS,
                Some(error) => {
                    tracing::debug!(node = %source.node, %error, "a message was not sent");
                    Label::FAILURE
                }
            };
            if let Err(error) = source.emit(&msg, &label).await {
                tracing::warn!(node = %source.node, %error, "cannot queue what came of a message that was sent");
            }
        });
        Step::Done
    }
}

/// Adds to a message what came of it, and returns why it was not sent.
fn finish(msg: &mut Msg, sent: Result<Result<Outcome, SendError>, JoinError>) -> Option<NodeError> {
    let (body, metadata, error) = match sent {
        Ok(Ok(outcome)) => (outcome.body, outcome.metadata, None),
        Ok(Err(error)) => (error.body, error.metadata, Some(NodeError::new(error.message))),
        Err(_) => (None, Vec::new(), Some(NodeError::new("sending was broken off"))),
    };
    if let Some(body) = body {
        msg.data = Data::text(body);
    }
    for (key, value) in metadata {
        msg.meta.set(key, value);
    }
    error
}
