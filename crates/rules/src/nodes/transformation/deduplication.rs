//! One message of many: those of an originator within an interval become the first, the last, or one that holds all.
//!
//! What waits is kept with the originator: each message under a number that follows from its id, and under number 0 a list
//! of them, which comes due. The list stays until the queue has taken the results, and the numbers and the ids of results are
//! the same whenever they are made again: a crash at any moment costs nothing, and doubles nothing but ids that are known.

mod pending;

use std::sync::Arc;

use bytes::Bytes;
use fieldline_core::ports::StateKey;
use fieldline_model::message::{DataType, MetadataMap, MsgType, QueueMessage};
use fieldline_model::{EntityKey, RuleNodeId, TenantId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::pending::{DeduplicationData, DeduplicationEntry, LIST, number_of};
use crate::config_schema;
use crate::message::{RuleMessage, derive_id};
use crate::node::{Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::derived::salt;
use crate::nodes::flow::queues::drop_queue_name;
use crate::nodes::message_codec::{MAX_BYTES, decode, encode};
use crate::nodes::text_template::meta_json;

/// Most messages of an originator that can wait.
const MAX_PENDING: u32 = 10_000;
/// Most bytes of an originator's messages that can wait.
const MAX_TOTAL_BYTES: usize = 8 << 20;
/// Time until the queue is asked again that has not taken a result, milliseconds.
const RETRY_MS: i64 = 10_000;
/// Time after which a result counts as lost whose queue has not answered, milliseconds.
const LOST_MS: i64 = 120_000;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "deduplication.TbMsgDeduplicationNode",
    name: "deduplication",
    description: "Makes one message of those that an originator sends within an interval: the first, the last, or all in one.",
    version: 1,
    has_queue: true,
    upgrade: drop_queue_name,
    default_configuration: || json!({"interval": 60, "strategy": "FIRST", "outMsgType": null, "maxPendingMsgs": 100, "maxRetries": 3}),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::TRANSFORMATION
}];

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum DeduplicationStrategyName {
    First,
    Last,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DeduplicationStrategy {
    First,
    Last,
    /// One of this type with all in its body.
    All(MsgType),
}

struct MsgDeduplicationNode {
    interval_ms: i64,
    strategy: DeduplicationStrategy,
    max_pending: u32,
    max_retries: u8,
    queue: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(range(min = 1, max = i32::MAX), extend("x-unit" = "s"))]
    interval: i64,
    strategy: DeduplicationStrategyName,
    #[schemars(title = "Type of the message with all", extend("x-editor" = "messageType"))]
    out_msg_type: Option<String>,
    #[serde(default = "hundred")]
    #[schemars(title = "Most waiting messages", range(min = 1, max = MAX_PENDING))]
    max_pending_msgs: i64,
    #[serde(default = "three")]
    #[schemars(range(min = 0, max = 100))]
    max_retries: i64,
}

const fn hundred() -> i64 {
    100
}

const fn three() -> i64 {
    3
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let queue = config.queue.map(str::to_owned);
    let config: Config = config.parse()?;
    if !(1..=i64::from(i32::MAX)).contains(&config.interval) {
        return Err(NodeConfigError::new("interval", "must be at least 1 second"));
    }
    let max_pending = u32::try_from(config.max_pending_msgs)
        .ok()
        .filter(|max| (1..=MAX_PENDING).contains(max));
    let max_retries = u8::try_from(config.max_retries).ok().filter(|max| *max <= 100);
    let strategy = match config.strategy {
        DeduplicationStrategyName::First => DeduplicationStrategy::First,
        DeduplicationStrategyName::Last => DeduplicationStrategy::Last,
        DeduplicationStrategyName::All => {
            let kind = config.out_msg_type.filter(|kind| !kind.is_empty());
            let kind =
                kind.ok_or_else(|| NodeConfigError::new("outMsgType", "must be given for the strategy ALL"))?;
            DeduplicationStrategy::All(MsgType::from(kind.as_str()))
        }
    };
    Ok(Arc::new(MsgDeduplicationNode {
        interval_ms: config.interval * 1000,
        strategy,
        max_pending: max_pending.ok_or_else(|| {
            NodeConfigError::new("maxPendingMsgs", format!("must be from 1 to {MAX_PENDING}"))
        })?,
        max_retries: max_retries
            .ok_or_else(|| NodeConfigError::new("maxRetries", "must be from 0 to 100"))?,
        queue,
    }))
}

impl Node for MsgDeduplicationNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let subject = msg.subject();
        if !ctx.owns(subject) {
            return NodeResult::forward_to_owner(msg);
        }
        if matches!(self.strategy, DeduplicationStrategy::All(_))
            && let Err(error) = msg.data.to_json()
        {
            return NodeResult::Fail(msg, error);
        }
        let number = number_of(msg.id);
        let mut pending = ctx
            .state(subject, LIST)
            .and_then(|bytes| DeduplicationData::decode(&bytes))
            .unwrap_or_default();
        if pending.entries.iter().any(|entry| entry.number == number) {
            return NodeResult::Done;
        }
        let bytes = encode(msg.tenant, &msg.to_message());
        if pending.entries.len() >= self.max_pending as usize {
            let text = format!(
                "max limit of {} pending messages reached for {}",
                self.max_pending, subject.entity
            );
            return NodeResult::fail(msg, text);
        }
        if bytes.len() > MAX_BYTES || pending.bytes() + bytes.len() > MAX_TOTAL_BYTES {
            let text = format!("the pending messages of {} are too large", subject.entity);
            return NodeResult::fail(msg, text);
        }
        pending.entries.push(DeduplicationEntry {
            ts: msg.values_ts(),
            number,
            bytes: bytes.len() as u32,
        });
        if pending.entries.len() == 1 {
            pending.due_ms = ctx.now_ms + self.interval_ms + 1;
        }
        ctx.set_state(subject, number, None, &bytes);
        ctx.set_state(subject, LIST, Some(pending.due_ms), &pending.encode());
        NodeResult::Done
    }

    fn handle_due(&self, ctx: &mut NodeContext<'_>, key: StateKey, value: Bytes) -> NodeResult {
        let subject = key.subject;
        let Some(mut pending) = DeduplicationData::decode(&value) else {
            tracing::error!(node = %ctx.node, "the list of messages that wait for deduplication is damaged");
            return NodeResult::Done;
        };
        let mut results = Vec::new();
        let mut used = Vec::new();
        for pack in pending.packs(self.interval_ms, ctx.now_ms) {
            results.extend(self.result(ctx, subject, &pack));
            used.extend(pack.iter().map(|entry| entry.number));
        }
        if used.is_empty() {
            pending.due_ms = ctx.now_ms + self.interval_ms + 1;
            ctx.set_state(subject, LIST, Some(pending.due_ms), &pending.encode());
            return NodeResult::Done;
        }
        pending.due_ms = ctx.now_ms + LOST_MS;
        ctx.set_state(subject, LIST, Some(pending.due_ms), &pending.encode());
        let services = Arc::clone(ctx.services);
        let (interval_ms, max_retries) = (self.interval_ms, self.max_retries);
        NodeResult::wait(async move {
            for message in results {
                if let Err(error) = services.engine.push(subject.tenant, message).await {
                    let text = error.to_string();
                    return NodeResult::then(move |ctx| {
                        retry_or_drop(ctx, subject, &used, &text, max_retries, interval_ms)
                    });
                }
            }
            NodeResult::then(move |ctx| {
                remove_pending(ctx, subject, &used, interval_ms);
                NodeResult::Done
            })
        })
    }
}

impl MsgDeduplicationNode {
    /// The message that a pack becomes.
    fn result(
        &self,
        ctx: &NodeContext<'_>,
        subject: EntityKey,
        pack: &[DeduplicationEntry],
    ) -> Option<QueueMessage> {
        let read = |entry: &DeduplicationEntry| decode(&ctx.state(subject, entry.number)?);
        let mut message = match &self.strategy {
            // Of several at the same time the one that has come first counts.
            DeduplicationStrategy::First => read(pack.iter().min_by_key(|entry| entry.ts)?)?,
            DeduplicationStrategy::Last => read(pack.iter().rev().max_by_key(|entry| entry.ts)?)?,
            DeduplicationStrategy::All(kind) => {
                let messages = pack.iter().filter_map(read).collect();
                merged(subject.tenant, messages, kind, ctx.now_ms)?
            }
        };
        message.id = derive_id(message.id, salt(ctx.node, 0));
        message.queue.clone_from(&self.queue);
        message.rule_chain = Some(ctx.chain);
        message.from = Some((ctx.node, "Success".to_owned()));
        Some(message)
    }
}

fn merged(
    tenant: TenantId,
    messages: Vec<QueueMessage>,
    kind: &MsgType,
    now_ms: i64,
) -> Option<QueueMessage> {
    let bodies = messages.iter().map(|message| {
        let body: Value = serde_json::from_str(&message.data).unwrap_or(Value::Null);
        // Without what a message carries through queues and no node sees.
        let meta = RuleMessage::of(tenant, message.clone()).meta;
        json!({"msg": body, "metadata": meta_json(&meta)})
    });
    let data = Value::Array(bodies.collect()).to_string();
    let first = messages.into_iter().next()?;
    Some(QueueMessage {
        ts: now_ms,
        msg_type: kind.clone(),
        metadata: [("ts", now_ms.to_string())].into_iter().collect::<MetadataMap>(),
        data_type: DataType::Json,
        data,
        ..first
    })
}

/// Messages have become results: they wait no longer.
fn remove_pending(ctx: &mut NodeContext<'_>, subject: EntityKey, used: &[u64], interval_ms: i64) {
    for number in used {
        ctx.clear_state(subject, *number);
    }
    let Some(mut pending) = ctx
        .state(subject, LIST)
        .and_then(|bytes| DeduplicationData::decode(&bytes))
    else {
        return;
    };
    pending.entries.retain(|entry| !used.contains(&entry.number));
    if pending.entries.is_empty() {
        ctx.clear_state(subject, LIST);
        return;
    }
    pending.retries = 0;
    pending.due_ms = ctx.now_ms + interval_ms + 1;
    ctx.set_state(subject, LIST, Some(pending.due_ms), &pending.encode());
}

/// The queue has not taken a result: it is asked again, or the result is given up.
fn retry_or_drop(
    ctx: &mut NodeContext<'_>,
    subject: EntityKey,
    used: &[u64],
    error: &str,
    max_retries: u8,
    interval_ms: i64,
) -> NodeResult {
    let node: RuleNodeId = ctx.node;
    let Some(mut pending) = ctx
        .state(subject, LIST)
        .and_then(|bytes| DeduplicationData::decode(&bytes))
    else {
        return NodeResult::Done;
    };
    if pending.retries >= max_retries {
        tracing::error!(%node, originator = %subject.entity, error, "deduplicated messages are given up");
        remove_pending(ctx, subject, used, interval_ms);
        return NodeResult::Done;
    }
    pending.retries += 1;
    pending.due_ms = ctx.now_ms + RETRY_MS;
    ctx.set_state(subject, LIST, Some(pending.due_ms), &pending.encode());
    NodeResult::Done
}

#[cfg(test)]
mod tests;
