//! A message on its way through rule chains. Cloning one is cheap: its parts are shared.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use fieldline_model::budget::{BudgetOverrun, EvaluationBudget, MAX_MESSAGE_BYTES, within};
use fieldline_model::kv::{self, KvValueRef, unpack};
use fieldline_model::message::{DataType, MetadataMap, MsgType, QueueMessage};
use fieldline_model::{CustomerId, EntityId, EntityKey, RuleChainId, RuleNodeId, TenantId};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::node::NodeError;
use crate::originators::Originator;

/// Metadata key that carries the ids of a message's previous fields through queues; rule nodes do not see it.
const PREVIOUS_FIELDS_KEY: &str = "\u{1}previousCalculatedFieldIds";
/// Metadata key of a queued message's routing header, which no other key can equal: nodes passed, time to live, callers
/// of the current chain, and moves between queues.
const ROUTING_HEADER_KEY: &str = "\u{1}way";

/// A message on its way.
#[derive(Debug, Clone)]
pub struct RuleMessage {
    /// Its id, which stays the same when the same record is read again after a restart.
    pub id: Uuid,
    /// Creation time, milliseconds.
    pub ts: i64,
    /// The tenant whose chains it goes through.
    pub tenant: TenantId,
    /// Its type.
    pub kind: MsgType,
    /// The entity it is about.
    pub originator: EntityId,
    /// The customer of the originator.
    pub customer: Option<CustomerId>,
    /// Metadata.
    pub meta: MessageMetadata,
    /// Format of the body.
    pub data_type: DataType,
    /// The body.
    pub data: MessageBody,
    /// Time to live of its points unless a node or the metadata sets another, seconds; 0 for ever.
    pub ttl_seconds: u32,
    /// Number of nodes it has passed.
    pub hops: u32,
    /// Number of times that a node has put it into a queue.
    pub moves: u32,
    /// The callers that the output nodes of the current chain return to.
    pub callers: Option<Arc<ChainCaller>>,
    /// Calculated fields whose results led to it, so that fields do not trigger each other in circles.
    pub previous_fields: Option<Arc<[Uuid]>>,
    /// What the current node has used up for it.
    pub budget: EvaluationBudget,
}

/// The node that called a chain.
#[derive(Debug, Clone)]
pub struct ChainCaller {
    /// Chain of the calling node.
    pub chain: RuleChainId,
    /// The calling node.
    pub node: RuleNodeId,
    /// The caller of that chain.
    pub callers: Option<Arc<ChainCaller>>,
}

impl RuleMessage {
    /// The key of the originator.
    pub fn subject(&self) -> EntityKey {
        EntityKey {
            tenant: self.tenant,
            entity: self.originator,
        }
    }

    /// Makes a message from a queued one.
    pub fn of(tenant: TenantId, mut message: QueueMessage) -> Self {
        let fields = message.metadata.remove(PREVIOUS_FIELDS_KEY);
        let way = message.metadata.remove(ROUTING_HEADER_KEY);
        let RoutingHeader {
            hops,
            ttl_seconds,
            callers,
            moves,
        } = way
            .and_then(|way| decode_routing_header(&way))
            .unwrap_or_default();
        Self {
            id: message.id,
            ts: message.ts,
            tenant,
            kind: message.msg_type,
            originator: message.originator,
            customer: message.customer,
            meta: MessageMetadata::Own(Arc::new(message.metadata)),
            data_type: message.data_type,
            data: MessageBody::text(message.data),
            ttl_seconds,
            hops,
            moves,
            callers,
            previous_fields: fields.map(|ids| ids.split(',').filter_map(|id| id.parse().ok()).collect()),
            budget: EvaluationBudget::new(),
        }
    }

    /// Checks that a node may take a message of this size. A JSON body is not measured: each evaluator counts what it
    /// makes of it.
    ///
    /// # Errors
    /// It is larger than [`MAX_MESSAGE_BYTES`].
    pub(crate) fn check_size(&self) -> Result<(), BudgetOverrun> {
        let meta = match &self.meta {
            MessageMetadata::Device { .. } => 0,
            MessageMetadata::Own(own) => own.iter().map(|(key, value)| key.len() + value.len()).sum(),
        };
        let body = match &self.data {
            MessageBody::Packed(bytes) => bytes.len(),
            MessageBody::Text(text) => text.len(),
            MessageBody::Json(_) => 0,
        };
        within(
            "bytes of a message",
            (meta + body) as u64,
            MAX_MESSAGE_BYTES as u64,
        )
    }

    /// The message in the form that waits in a queue.
    pub fn to_message(&self) -> QueueMessage {
        let mut metadata = self.meta.to_metadata();
        if let Some(fields) = &self.previous_fields {
            let ids: Vec<String> = fields.iter().map(Uuid::to_string).collect();
            metadata.set(PREVIOUS_FIELDS_KEY, ids.join(","));
        }
        if self.hops > 0 || self.moves > 0 || self.ttl_seconds > 0 || self.callers.is_some() {
            metadata.set(ROUTING_HEADER_KEY, encode_routing_header(self));
        }
        QueueMessage {
            id: self.id,
            ts: self.ts,
            msg_type: self.kind.clone(),
            originator: self.originator,
            customer: self.customer,
            metadata,
            data_type: self.data_type,
            data: self.data.to_text().into_owned(),
            queue: None,
            rule_chain: None,
            from: None,
        }
    }

    /// Timestamp of its values: `ts` of the metadata if that is a number, otherwise the message's own.
    pub fn values_ts(&self) -> i64 {
        match &self.meta {
            MessageMetadata::Device { ts, .. } => ts.unwrap_or(self.ts),
            MessageMetadata::Own(own) => own.get("ts").and_then(|ts| ts.parse().ok()).unwrap_or(self.ts),
        }
    }

    /// A message that follows from this one; its new id is the same whenever it is derived again.
    #[must_use]
    pub fn derive(&self, salt: u64) -> Self {
        let mut derived = self.clone();
        derived.id = derive_id(self.id, salt);
        derived
    }
}

/// Most callers that a queued message keeps.
const MAX_CALLERS: usize = 64;

fn encode_routing_header(msg: &RuleMessage) -> String {
    let mut way = format!("{};{};", msg.hops, msg.ttl_seconds);
    let callers = std::iter::successors(msg.callers.as_deref(), |caller| caller.callers.as_deref());
    for caller in callers.take(MAX_CALLERS) {
        way.push_str(&format!("{}/{},", caller.chain, caller.node));
    }
    if msg.moves > 0 {
        way.push_str(&format!(";{}", msg.moves));
    }
    way
}

/// The routing state of a queued message.
#[derive(Default)]
struct RoutingHeader {
    hops: u32,
    ttl_seconds: u32,
    callers: Option<Arc<ChainCaller>>,
    moves: u32,
}

/// Number of times that nodes have put a queued message into a queue.
pub(crate) fn moves_of(message: &QueueMessage) -> u32 {
    let way = message.metadata.get(ROUTING_HEADER_KEY);
    way.and_then(decode_routing_header).map_or(0, |way| way.moves)
}

fn decode_routing_header(way: &str) -> Option<RoutingHeader> {
    let mut parts = way.split(';');
    let hops = parts.next()?.parse().ok()?;
    let ttl_seconds = parts.next()?.parse().ok()?;
    let mut callers = None;
    // The most recent caller comes first.
    for caller in parts
        .next()?
        .split(',')
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        let (chain, node) = caller.split_once('/')?;
        callers = Some(Arc::new(ChainCaller {
            chain: RuleChainId(chain.parse().ok()?),
            node: RuleNodeId(node.parse().ok()?),
            callers,
        }));
    }
    Some(RoutingHeader {
        hops,
        ttl_seconds,
        callers,
        moves: parts.next().and_then(|moves| moves.parse().ok()).unwrap_or(0),
    })
}

/// Derives an id from another id and a number.
pub fn derive_id(id: Uuid, salt: u64) -> Uuid {
    let (high, low) = id.as_u64_pair();
    let mix = |seed: u64, salt: u64| {
        let mut x = seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    };
    let first = mix(high, salt ^ low);
    let second = mix(low, first ^ salt.wrapping_add(1));
    uuid::Builder::from_custom_bytes(Uuid::from_u64_pair(first, second).into_bytes()).into_uuid()
}

/// Metadata of a message. That of a device's message is only built when it is read.
#[derive(Debug, Clone)]
pub enum MessageMetadata {
    /// The metadata that every message of a device has: name, type, and the time of its values.
    Device {
        /// The device.
        device: Arc<Originator>,
        /// Time of the values, milliseconds; `None` for attributes.
        ts: Option<i64>,
    },
    /// Any other metadata.
    Own(Arc<MetadataMap>),
}

impl MessageMetadata {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Device { device, ts } => match key {
                "deviceName" => Some(Cow::Borrowed(&device.name)),
                "deviceType" => Some(Cow::Borrowed(&device.profile_name)),
                "ts" => ts.map(|ts| Cow::Owned(ts.to_string())),
                "notifyDevice" if ts.is_none() => Some(Cow::Borrowed("false")),
                _ => None,
            },
            Self::Own(own) => own.get(key).map(Cow::Borrowed),
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Device { .. } => 3,
            Self::Own(own) => own.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, for changes.
    pub fn make_mut(&mut self) -> &mut MetadataMap {
        if let Self::Device { .. } = self {
            *self = Self::Own(Arc::new(self.to_metadata()));
        }
        match self {
            Self::Own(own) => Arc::make_mut(own),
            Self::Device { .. } => unreachable!("was replaced above"),
        }
    }

    /// Sets a key, replacing its value.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.make_mut().set(key, value);
    }

    /// Returns all entries.
    pub fn to_metadata(&self) -> MetadataMap {
        match self {
            Self::Device { device, ts } => [
                ("deviceName", device.name.to_string()),
                ("deviceType", device.profile_name.to_string()),
                match ts {
                    Some(ts) => ("ts", ts.to_string()),
                    None => ("notifyDevice", "false".to_owned()),
                },
            ]
            .into_iter()
            .collect(),
            Self::Own(own) => MetadataMap::clone(own),
        }
    }
}

impl From<MetadataMap> for MessageMetadata {
    fn from(metadata: MetadataMap) -> Self {
        Self::Own(Arc::new(metadata))
    }
}

/// The body of a message.
#[derive(Debug, Clone)]
pub enum MessageBody {
    /// Key-values of one time, packed as in [`fieldline_model::kv`].
    Packed(Bytes),
    /// Text that is not parsed yet.
    Text(Arc<str>),
    /// A JSON value.
    Json(Arc<Value>),
}

impl MessageBody {
    /// A text body.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A JSON body.
    pub fn json(value: Value) -> Self {
        Self::Json(Arc::new(value))
    }

    /// Returns the body as JSON. A text is parsed once and kept as JSON.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn to_json(&mut self) -> Result<Arc<Value>, NodeError> {
        let value = match self {
            Self::Json(value) => return Ok(Arc::clone(value)),
            Self::Text(text) => serde_json::from_str(text)
                .map_err(|error| NodeError::new(format!("the body is no JSON: {error}")))?,
            Self::Packed(bytes) => Value::Object(object_of(bytes)),
        };
        let value = Arc::new(value);
        *self = Self::Json(Arc::clone(&value));
        Ok(value)
    }

    /// Returns the body as a JSON object for changes.
    ///
    /// # Errors
    /// The body is not a JSON object.
    pub fn object_mut(&mut self) -> Result<&mut Map<String, Value>, NodeError> {
        self.to_json()?;
        match self {
            Self::Json(value) => Arc::make_mut(value)
                .as_object_mut()
                .ok_or_else(|| NodeError::new("the body is no JSON object")),
            _ => Err(NodeError::new("the body is no JSON object")),
        }
    }

    /// The body as text.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
            Self::Packed(bytes) => Cow::Owned(text_of(bytes)),
        }
    }

    /// Returns a value of a JSON object by its key; `None` if there is none, or the body is not an object.
    pub fn value(&mut self, key: &str) -> Option<Value> {
        if let Self::Packed(bytes) = self {
            let found = unpack(bytes)
                .filter_map(Result::ok)
                .filter(|(name, _)| *name == key)
                .last();
            return found.map(|(_, value)| json_of(value));
        }
        self.to_json().ok()?.get(key).cloned()
    }
}

fn json_of(value: KvValueRef<'_>) -> Value {
    value.to_value().to_json()
}

fn object_of(bytes: &[u8]) -> Map<String, Value> {
    unpack(bytes)
        .filter_map(Result::ok)
        .map(|(key, value)| (key.to_owned(), json_of(value)))
        .collect()
}

fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    if kv::write_object(bytes, &mut text).is_err() {
        // The readable part is kept.
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldline_model::DeviceId;

    #[test]
    fn a_message_that_waits_in_a_queue_keeps_its_way() {
        let plain = QueueMessage::new(
            MsgType::PostTelemetry,
            DeviceId::new().into(),
            1,
            MetadataMap::new(),
            "{}".to_owned(),
        );
        let mut msg = RuleMessage::of(TenantId::new(), plain);
        assert!(
            msg.to_message().metadata.is_empty(),
            "nothing is added where there is nothing to keep"
        );
        let caller = |callers| {
            Some(Arc::new(ChainCaller {
                chain: RuleChainId::new(),
                node: RuleNodeId::new(),
                callers,
            }))
        };
        msg.callers = caller(caller(None));
        (msg.hops, msg.ttl_seconds, msg.moves) = (7, 60, 3);
        assert_eq!(moves_of(&msg.to_message()), 3);
        let back = RuleMessage::of(msg.tenant, msg.to_message());
        let nodes = |msg: &RuleMessage| -> Vec<_> {
            std::iter::successors(msg.callers.clone(), |caller| caller.callers.clone())
                .map(|caller| (caller.chain, caller.node))
                .collect()
        };
        assert_eq!(
            (back.hops, back.ttl_seconds, back.moves, nodes(&back)),
            (7, 60, 3, nodes(&msg))
        );
        assert!(back.meta.to_metadata().is_empty());
    }
}
