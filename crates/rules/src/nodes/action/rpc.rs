//! Nodes that call devices, and that answer devices and clients which wait for a rule chain.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::ports::{DeviceRpcError, DeviceRpcRequest, ORIGIN_RUN};
use fieldline_model::message::MsgType;
use fieldline_model::{DeviceId, EntityType};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::derived;
use crate::message::{Data, Msg};
use crate::node::{ConfigError, Ctx, Label, Node, NodeConfig, NodeError, Step};
use crate::nodes::later::{Waiters, source};
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        description: "Sends RPC call to device.",
        default_configuration: || json!({ "timeoutInSeconds": 60 }),
        ..NodeType::new(
            "rpc.TbSendRPCRequestNode",
            "rpc call request",
            ComponentType::Action,
            make_request,
        )
    },
    NodeType {
        description: "Sends reply to RPC call from device.",
        default_configuration: || {
            json!({
                "serviceIdMetaDataAttribute": "serviceId", "sessionIdMetaDataAttribute": "sessionId",
                "requestIdMetaDataAttribute": "requestId",
            })
        },
        ..NodeType::new(
            "rpc.TbSendRPCReplyNode",
            "rpc call reply",
            ComponentType::Action,
            make_reply,
        )
    },
    NodeType {
        description: "Sends reply to REST API call to rule engine.",
        default_configuration: || json!({ "requestIdMetaDataAttribute": "requestUUID", "serviceIdMetaDataAttribute": "serviceId" }),
        ..NodeType::new(
            "rest.TbSendRestApiCallReplyNode",
            "rest call reply",
            ComponentType::Action,
            make_rest_reply,
        )
    },
];

/// How much longer than the call itself the node waits for an answer.
const GRACE_MS: i64 = 1_000;
const NO_DEVICE: &str = "Message originator is not a device entity!";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestConfig {
    timeout_in_seconds: i64,
}

impl Default for RequestConfig {
    fn default() -> Self {
        Self {
            timeout_in_seconds: 60,
        }
    }
}

struct Request {
    timeout_ms: i64,
    waiting: Waiters,
}

fn make_request(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: RequestConfig = config.parse()?;
    if config.timeout_in_seconds < 0 {
        return Err(ConfigError::new("timeoutInSeconds", "must not be negative"));
    }
    Ok(Arc::new(Request {
        timeout_ms: config.timeout_in_seconds.saturating_mul(1000),
        waiting: Waiters::default(),
    }))
}

/// A value of the metadata that is there and not empty.
fn told(msg: &Msg, key: &str) -> Option<String> {
    msg.meta
        .get(key)
        .filter(|value| !value.is_empty())
        .map(|value| value.into_owned())
}

fn told_as<T: std::str::FromStr>(msg: &Msg, key: &str) -> Result<Option<T>, NodeError> {
    told(msg, key)
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

impl Request {
    fn request(&self, ctx: &Ctx<'_>, msg: &mut Msg) -> Result<DeviceRpcRequest, NodeError> {
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
        let flag = |key| told(msg, key).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let is_rest_call = msg.kind == MsgType::RpcFromServer;
        Ok(DeviceRpcRequest {
            id: told_as(msg, "requestUUID")?.unwrap_or_else(|| derived::id(msg.id, ctx.node, 0)),
            tenant: msg.tenant,
            device: DeviceId(msg.originator.id),
            method: plain(method),
            params: plain(params),
            oneway: flag("oneway"),
            persistent: flag("persistent"),
            retries: told_as(msg, "retries")?,
            expires_ms: told_as(msg, "expirationTime")?
                .unwrap_or_else(|| ctx.now_ms.saturating_add(self.timeout_ms)),
            additional_info: body.get("additionalInfo").map(plain),
            rest_origin: told(msg, "originServiceId").filter(|_| is_rest_call),
            origin_run: told_as(msg, ORIGIN_RUN)?.filter(|_| is_rest_call),
        })
    }
}

impl Node for Request {
    /// The message ends here; what the device answers goes on as a new one.
    fn handle(&self, ctx: &mut Ctx<'_>, mut msg: Msg) -> Step {
        let request = match self.request(ctx, &mut msg) {
            Ok(request) => request,
            Err(error) => return Step::Fail(msg, error),
        };
        let Some(waiting) = self.waiting.begin() else {
            return Step::fail(msg, "Too many RPC requests wait for replies!");
        };
        let source = source(ctx);
        let left_ms = request
            .expires_ms
            .saturating_sub(ctx.now_ms)
            .max(0)
            .saturating_add(GRACE_MS);
        let left = Duration::from_millis(left_ms.unsigned_abs());
        let mut next = Msg {
            id: derived::id(msg.id, ctx.node, 1),
            ..msg
        };
        ctx.services.runtime.spawn(async move {
            let _waiting = waiting;
            let answer = tokio::time::timeout(left, source.services.rpc.send(request)).await;
            let label = match answer.unwrap_or(Err(DeviceRpcError::Timeout)) {
                Ok(answer) => {
                    next.data = Data::text(answer.unwrap_or_else(|| "{}".to_owned()));
                    Label::SUCCESS
                }
                Err(error) => {
                    next.data = Data::json(json!({ "error": error.name() }));
                    Label::FAILURE
                }
            };
            next.ts = source.services.now_ms();
            if let Err(error) = source.emit(&next, &label).await {
                tracing::warn!(node = %source.node, %error, "cannot queue the reply of a device");
            }
        });
        Step::Done
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ReplyConfig {
    service_id_meta_data_attribute: Option<String>,
    session_id_meta_data_attribute: Option<String>,
    request_id_meta_data_attribute: Option<String>,
}

fn name(configured: Option<String>, otherwise: &str) -> String {
    configured
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| otherwise.to_owned())
}

struct Reply {
    service: String,
    session: String,
    request: String,
}

fn make_reply(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: ReplyConfig = config.parse()?;
    Ok(Arc::new(Reply {
        service: name(config.service_id_meta_data_attribute, "serviceId"),
        session: name(config.session_id_meta_data_attribute, "sessionId"),
        request: name(config.request_id_meta_data_attribute, "requestId"),
    }))
}

fn needed(msg: &Msg, key: &str, problem: &'static str) -> Result<String, NodeError> {
    told(msg, key).ok_or_else(|| NodeError::new(problem))
}

fn parsed<T: std::str::FromStr>(text: &str, key: &str) -> Result<T, NodeError> {
    text.parse()
        .map_err(|_| NodeError::new(format!("`{key}` in the metadata is invalid: {text}")))
}

fn body(msg: &Msg) -> Result<String, NodeError> {
    let body = msg.data.to_text();
    if body.is_empty() {
        return Err(NodeError::new("Request body is empty!"));
    }
    Ok(body.into_owned())
}

impl Reply {
    fn answer(&self, ctx: &Ctx<'_>, msg: &Msg) -> Result<(), NodeError> {
        if msg.originator.entity_type != EntityType::Device {
            return Err(NodeError::new(NO_DEVICE));
        }
        let request = needed(msg, &self.request, "Request id is not present in the metadata!")?;
        let service = needed(msg, &self.service, "Service id is not present in the metadata!")?;
        let session = needed(msg, &self.session, "Session id is not present in the metadata!")?;
        let body = body(msg)?;
        if told(msg, "edgeId").is_some_and(|id| !id.trim().is_empty()) {
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

impl Node for Reply {
    fn handle(&self, ctx: &mut Ctx<'_>, msg: Msg) -> Step {
        match self.answer(ctx, &msg) {
            Ok(()) => Step::success(msg),
            Err(error) => Step::Fail(msg, error),
        }
    }
}

struct RestReply {
    service: String,
    request: String,
}

fn make_rest_reply(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let config: ReplyConfig = config.parse()?;
    Ok(Arc::new(RestReply {
        service: name(config.service_id_meta_data_attribute, "serviceId"),
        request: name(config.request_id_meta_data_attribute, "requestUUID"),
    }))
}

impl RestReply {
    fn answer(&self, ctx: &Ctx<'_>, msg: &Msg) -> Result<(), NodeError> {
        let request = needed(msg, &self.request, "Request id is not present in the metadata!")?;
        let service = needed(msg, &self.service, "Service id is not present in the metadata!")?;
        body(msg)?;
        let request = parsed(&request, &self.request)?;
        ctx.services
            .rest_calls
            .answer(&service, msg.tenant, request, msg.to_message());
        Ok(())
    }
}

impl Node for RestReply {
    fn handle(&self, ctx: &mut Ctx<'_>, msg: Msg) -> Step {
        match self.answer(ctx, &msg) {
            Ok(()) => Step::success(msg),
            Err(error) => Step::Fail(msg, error),
        }
    }
}
