//! Nodes that call devices, and that answer devices and clients which wait for a rule chain.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::{DeviceRpcError, DeviceRpcRequest, ORIGIN_RUN};
use fieldline_model::message::MsgType;
use fieldline_model::{DeviceId, EntityType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::derived;
use crate::config_schema;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{
    ConnectionLabel, Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult,
};
use crate::node_types::NodeType;
use crate::nodes::pending_limiter::{PendingLimiter, node_emitter};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "rpc.TbSendRPCRequestNode",
        name: "rpc call request",
        description: "Sends RPC call to device.",
        default_configuration: || json!({ "timeoutInSeconds": 60 }),
        schema: config_schema::of::<RpcRequestConfig>,
        make: make_request,
        ..NodeType::ACTION
    },
    NodeType {
        class: "rpc.TbSendRPCReplyNode",
        name: "rpc call reply",
        description: "Sends reply to RPC call from device.",
        default_configuration: || {
            json!({
                "serviceIdMetaDataAttribute": "serviceId", "sessionIdMetaDataAttribute": "sessionId",
                "requestIdMetaDataAttribute": "requestId",
            })
        },
        schema: config_schema::of::<RpcReplyConfig>,
        make: make_reply,
        ..NodeType::ACTION
    },
    NodeType {
        class: "rest.TbSendRestApiCallReplyNode",
        name: "rest call reply",
        description: "Sends reply to REST API call to rule engine.",
        default_configuration: || json!({ "requestIdMetaDataAttribute": "requestUUID", "serviceIdMetaDataAttribute": "serviceId" }),
        schema: config_schema::of::<RestReplyConfig>,
        make: make_rest_reply,
        ..NodeType::ACTION
    },
];

/// How much longer than the call itself the node waits for an answer.
const GRACE_MS: i64 = 1_000;
const NO_DEVICE: &str = "Message originator is not a device entity!";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct RpcRequestConfig {
    #[schemars(title = "Timeout", range(min = 0), extend("x-unit" = "s"))]
    timeout_in_seconds: i64,
}

impl Default for RpcRequestConfig {
    fn default() -> Self {
        Self {
            timeout_in_seconds: 60,
        }
    }
}

struct SendRpcRequestNode {
    timeout_ms: i64,
    waiting: PendingLimiter,
}

fn make_request(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: RpcRequestConfig = config.parse()?;
    if config.timeout_in_seconds < 0 {
        return Err(NodeConfigError::new("timeoutInSeconds", "must not be negative"));
    }
    Ok(Arc::new(SendRpcRequestNode {
        timeout_ms: config.timeout_in_seconds.saturating_mul(1000),
        waiting: PendingLimiter::default(),
    }))
}

/// A value of the metadata that is there and not empty.
fn metadata_value(msg: &RuleMessage, key: &str) -> Option<String> {
    msg.meta
        .get(key)
        .filter(|value| !value.is_empty())
        .map(|value| value.into_owned())
}

fn parse_metadata<T: std::str::FromStr>(msg: &RuleMessage, key: &str) -> Result<Option<T>, NodeError> {
    metadata_value(msg, key)
        .map(|text| {
            text.parse()
                .map_err(|_| NodeError::new(format!("`{key}` in the metadata is invalid: {text}")))
        })
        .transpose()
}

/// A text as it is, anything else as JSON text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl SendRpcRequestNode {
    fn request(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<DeviceRpcRequest, NodeError> {
        if msg.originator.entity_type != EntityType::Device {
            return Err(NodeError::new(NO_DEVICE));
        }
        let body = msg.data.to_json()?;
        let body = body
            .as_object()
            .ok_or_else(|| NodeError::new("Message body is not a JSON object!"))?;
        let method = body
            .get("method")
            .ok_or_else(|| NodeError::new("Method is not present in the message!"))?;
        let params = body
            .get("params")
            .ok_or_else(|| NodeError::new("Params are not present in the message!"))?;
        let flag = |key| metadata_value(msg, key).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let is_rest_call = msg.kind == MsgType::RpcFromServer;
        Ok(DeviceRpcRequest {
            id: parse_metadata(msg, "requestUUID")?.unwrap_or_else(|| derived::id(msg.id, ctx.node, 0)),
            tenant: msg.tenant,
            device: DeviceId(msg.originator.id),
            method: plain(method),
            params: plain(params),
            oneway: flag("oneway"),
            persistent: flag("persistent"),
            retries: parse_metadata(msg, "retries")?,
            expires_ms: parse_metadata(msg, "expirationTime")?
                .unwrap_or_else(|| ctx.now_ms.saturating_add(self.timeout_ms)),
            additional_info: body.get("additionalInfo").map(plain),
            rest_origin: metadata_value(msg, "originServiceId").filter(|_| is_rest_call),
            origin_run: parse_metadata(msg, ORIGIN_RUN)?.filter(|_| is_rest_call),
        })
    }
}

impl Node for SendRpcRequestNode {
    /// The message ends here; what the device answers goes on as a new one.
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let request = match self.request(ctx, &mut msg) {
            Ok(request) => request,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let Some(waiting) = self.waiting.try_acquire() else {
            return NodeResult::fail(msg, "Too many RPC requests wait for replies!");
        };
        let source = node_emitter(ctx);
        let left_ms = request
            .expires_ms
            .saturating_sub(ctx.now_ms)
            .max(0)
            .saturating_add(GRACE_MS);
        let left = Duration::from_millis(left_ms.unsigned_abs());
        let mut next = RuleMessage {
            id: derived::id(msg.id, ctx.node, 1),
            ..msg
        };
        ctx.services.runtime.spawn(async move {
            let _waiting = waiting;
            let answer = tokio::time::timeout(left, source.services.rpc.send(request)).await;
            let label = match answer.unwrap_or(Err(DeviceRpcError::Timeout)) {
                Ok(answer) => {
                    next.data = MessageBody::text(answer.unwrap_or_else(|| "{}".to_owned()));
                    ConnectionLabel::SUCCESS
                }
                Err(error) => {
                    next.data = MessageBody::json(json!({ "error": error.name() }));
                    ConnectionLabel::FAILURE
                }
            };
            next.ts = source.services.now_ms();
            if let Err(error) = source.emit(&next, &label).await {
                tracing::warn!(node = %source.node, %error, "cannot queue the reply of a device");
            }
        });
        NodeResult::Done
    }
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct RpcReplyConfig {
    service_id_meta_data_attribute: Option<String>,
    session_id_meta_data_attribute: Option<String>,
    request_id_meta_data_attribute: Option<String>,
}

fn name(configured: Option<String>, otherwise: &str) -> String {
    configured
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| otherwise.to_owned())
}

struct SendRpcReplyNode {
    service: String,
    session: String,
    request: String,
}

fn make_reply(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: RpcReplyConfig = config.parse()?;
    Ok(Arc::new(SendRpcReplyNode {
        service: name(config.service_id_meta_data_attribute, "serviceId"),
        session: name(config.session_id_meta_data_attribute, "sessionId"),
        request: name(config.request_id_meta_data_attribute, "requestId"),
    }))
}

fn require_metadata(msg: &RuleMessage, key: &str, problem: &'static str) -> Result<String, NodeError> {
    metadata_value(msg, key).ok_or_else(|| NodeError::new(problem))
}

fn parsed<T: std::str::FromStr>(text: &str, key: &str) -> Result<T, NodeError> {
    text.parse()
        .map_err(|_| NodeError::new(format!("`{key}` in the metadata is invalid: {text}")))
}

fn body(msg: &RuleMessage) -> Result<String, NodeError> {
    let body = msg.data.to_text();
    if body.is_empty() {
        return Err(NodeError::new("Request body is empty!"));
    }
    Ok(body.into_owned())
}

impl SendRpcReplyNode {
    fn answer(&self, ctx: &NodeContext<'_>, msg: &RuleMessage) -> Result<(), NodeError> {
        if msg.originator.entity_type != EntityType::Device {
            return Err(NodeError::new(NO_DEVICE));
        }
        let request = require_metadata(msg, &self.request, "Request id is not present in the metadata!")?;
        let service = require_metadata(msg, &self.service, "Service id is not present in the metadata!")?;
        let session = require_metadata(msg, &self.session, "Session id is not present in the metadata!")?;
        let body = body(msg)?;
        if metadata_value(msg, "edgeId").is_some_and(|id| !id.trim().is_empty()) {
            return Err(NodeError::new(
                "the device is behind an edge: edge is not supported",
            ));
        }
        let session: Uuid = parsed(&session, &self.session)?;
        ctx.services
            .rpc
            .answer(&service, session, parsed(&request, &self.request)?, body);
        Ok(())
    }
}

impl Node for SendRpcReplyNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let done = self.answer(ctx, &msg);
        NodeResult::after(msg, done)
    }
}

#[derive(Deserialize, JsonSchema, Default)]
#[serde(rename_all = "camelCase", default)]
struct RestReplyConfig {
    request_id_meta_data_attribute: Option<String>,
    service_id_meta_data_attribute: Option<String>,
}

struct SendRestReplyNode {
    service: String,
    request: String,
}

fn make_rest_reply(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: RestReplyConfig = config.parse()?;
    Ok(Arc::new(SendRestReplyNode {
        service: name(config.service_id_meta_data_attribute, "serviceId"),
        request: name(config.request_id_meta_data_attribute, "requestUUID"),
    }))
}

impl SendRestReplyNode {
    fn answer(&self, ctx: &NodeContext<'_>, msg: &RuleMessage) -> Result<(), NodeError> {
        let request = require_metadata(msg, &self.request, "Request id is not present in the metadata!")?;
        let service = require_metadata(msg, &self.service, "Service id is not present in the metadata!")?;
        body(msg)?;
        let request = parsed(&request, &self.request)?;
        ctx.services
            .rest_calls
            .answer(&service, msg.tenant, request, msg.to_message());
        Ok(())
    }
}

impl Node for SendRestReplyNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        let done = self.answer(ctx, &msg);
        NodeResult::after(msg, done)
    }
}
