//! Events: what happened at an entity, for people who look for mistakes.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::{CalculatedFieldId, EntityId, TenantId, new_uuid};

/// What an event tells about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EventKind {
    /// A message entered or left a rule node.
    DebugRuleNode,
    /// Debugging of a rule chain itself.
    DebugRuleChain,
    /// A calculated field was evaluated.
    DebugCalculatedField,
    /// Something started, stopped or failed to start.
    LcEvent,
    /// Something failed.
    Error,
    /// Counts of messages and errors.
    Stats,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::DebugRuleNode,
        Self::DebugRuleChain,
        Self::DebugCalculatedField,
        Self::LcEvent,
        Self::Error,
        Self::Stats,
    ];

    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DebugRuleNode => "DEBUG_RULE_NODE",
            Self::DebugRuleChain => "DEBUG_RULE_CHAIN",
            Self::DebugCalculatedField => "DEBUG_CALCULATED_FIELD",
            Self::LcEvent => "LC_EVENT",
            Self::Error => "ERROR",
            Self::Stats => "STATS",
        }
    }

    /// The kind of that name, regardless of case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// The direction of a message at a rule node.
pub const EVENT_IN: &str = "IN";
/// The direction of a message at a rule node.
pub const EVENT_OUT: &str = "OUT";

/// Details of an event of [`EventKind::DebugRuleNode`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleNodeDebug {
    /// [`EVENT_IN`] or [`EVENT_OUT`].
    pub direction: String,
    /// Originator of the message.
    pub originator: Option<EntityId>,
    /// Id of the message.
    pub msg_id: Option<Uuid>,
    /// Type of the message.
    pub msg_type: Option<String>,
    /// `JSON`, `TEXT` or `BINARY`.
    pub data_type: Option<String>,
    /// Label the message left with.
    pub relation_type: Option<String>,
    /// Body of the message.
    pub data: Option<String>,
    /// Metadata of the message, as JSON text.
    pub metadata: Option<String>,
    /// Why the message failed.
    pub error: Option<String>,
}

/// Details of an event of [`EventKind::DebugCalculatedField`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalculatedFieldDebug {
    /// The field.
    pub calculated_field: CalculatedFieldId,
    /// What it was evaluated for.
    pub subject: Option<EntityId>,
    /// Id of the message that caused it.
    pub msg_id: Option<Uuid>,
    /// Type of that message.
    pub msg_type: Option<String>,
    /// Its arguments, as JSON text.
    pub arguments: Option<String>,
    /// Its result, as JSON text.
    pub result: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// Details of an event, by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventBody {
    /// See [`EventKind::DebugRuleNode`].
    RuleNode(RuleNodeDebug),
    /// See [`EventKind::DebugRuleChain`].
    RuleChain {
        /// What happened.
        message: Option<String>,
        /// What failed.
        error: Option<String>,
    },
    /// See [`EventKind::DebugCalculatedField`].
    CalculatedField(CalculatedFieldDebug),
    /// See [`EventKind::LcEvent`].
    Lifecycle {
        /// `STARTED`, `UPDATED`, `STOPPED` and the like.
        event: String,
        /// Whether it succeeded.
        success: bool,
        /// Why it failed.
        error: Option<String>,
    },
    /// See [`EventKind::Error`].
    Error {
        /// What was being done.
        method: String,
        /// Why it failed.
        error: Option<String>,
    },
    /// See [`EventKind::Stats`].
    Stats {
        /// Messages that were processed.
        messages_processed: i64,
        /// Errors among them.
        errors_occurred: i64,
    },
}

impl EventBody {
    /// Its kind.
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::RuleNode(_) => EventKind::DebugRuleNode,
            Self::RuleChain { .. } => EventKind::DebugRuleChain,
            Self::CalculatedField(_) => EventKind::DebugCalculatedField,
            Self::Lifecycle { .. } => EventKind::LcEvent,
            Self::Error { .. } => EventKind::Error,
            Self::Stats { .. } => EventKind::Stats,
        }
    }
}

/// Something that happened at an entity. Serialises in the shape of the REST API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityEvent {
    /// Id.
    pub id: Uuid,
    /// When it happened, milliseconds.
    pub created_time: i64,
    /// The tenant of the entity.
    pub tenant_id: TenantId,
    /// The entity: a rule node, a rule chain, a device, ….
    pub entity_id: EntityId,
    /// Name of the server where it happened.
    pub server: String,
    /// Details.
    pub body: EventBody,
}

impl EntityEvent {
    /// A new event.
    pub fn new(
        tenant_id: TenantId,
        entity_id: EntityId,
        server: String,
        now_ms: i64,
        body: EventBody,
    ) -> Self {
        Self {
            id: new_uuid(),
            created_time: now_ms,
            tenant_id,
            entity_id,
            server,
            body,
        }
    }
}

impl EntityEvent {
    /// The body in the REST API: name of the server and details.
    pub fn body_json(&self) -> impl Serialize + '_ {
        EventBodyJson::of(self)
    }
}

/// The shape that [`EntityEvent`] serialises in.
#[derive(utoipa::ToSchema)]
#[schema(as = EventInfo, rename_all = "camelCase")]
#[allow(dead_code, reason = "only described")]
struct EventInfo {
    /// Id.
    id: std::collections::BTreeMap<String, Uuid>,
    /// When it happened, milliseconds.
    created_time: i64,
    /// The tenant of the entity.
    tenant_id: TenantId,
    /// Kind of the event.
    r#type: EventKind,
    /// Bare id.
    uid: Uuid,
    /// The entity.
    entity_id: EntityId,
    /// Name of the server and details.
    body: serde_json::Value,
}

impl utoipa::PartialSchema for EntityEvent {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        EventInfo::schema()
    }
}

impl utoipa::ToSchema for EntityEvent {
    fn name() -> std::borrow::Cow<'static, str> {
        EventInfo::name()
    }

    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
        EventInfo::schemas(schemas);
    }
}

impl Serialize for EntityEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct EventIdJson {
            id: Uuid,
        }
        let mut shape = serializer.serialize_struct("Event", 7)?;
        shape.serialize_field("id", &EventIdJson { id: self.id })?;
        shape.serialize_field("createdTime", &self.created_time)?;
        shape.serialize_field("tenantId", &self.tenant_id)?;
        shape.serialize_field("type", self.body.kind().name())?;
        shape.serialize_field("uid", &self.id)?;
        shape.serialize_field("entityId", &self.entity_id)?;
        shape.serialize_field("body", &EventBodyJson::of(self))?;
        shape.end()
    }
}

/// The body in the REST API: the server and what the kind of event has.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct EventBodyJson<'e> {
    server: &'e str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    direction: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calculated_field_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_type: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_type: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relation_type: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_processed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors_occurred: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'e str>,
}

impl<'e> EventBodyJson<'e> {
    fn of(event: &'e EntityEvent) -> Self {
        let body = Self {
            server: &event.server,
            ..Self::default()
        };
        match &event.body {
            EventBody::RuleNode(debug) => Self {
                direction: Some(&debug.direction),
                entity_id: debug.originator.map(|originator| originator.id),
                entity_type: debug.originator.map(|originator| originator.entity_type.name()),
                msg_id: debug.msg_id,
                msg_type: debug.msg_type.as_deref(),
                data_type: debug.data_type.as_deref(),
                relation_type: debug.relation_type.as_deref(),
                data: debug.data.as_deref(),
                metadata: debug.metadata.as_deref(),
                error: debug.error.as_deref(),
                ..body
            },
            EventBody::RuleChain { message, error } => Self {
                message: message.as_deref(),
                error: error.as_deref(),
                ..body
            },
            EventBody::CalculatedField(debug) => Self {
                calculated_field_id: Some(debug.calculated_field.0),
                entity_id: debug.subject.map(|subject| subject.id),
                entity_type: debug.subject.map(|subject| subject.entity_type.name()),
                msg_id: debug.msg_id,
                msg_type: debug.msg_type.as_deref(),
                arguments: debug.arguments.as_deref(),
                result: debug.result.as_deref(),
                error: debug.error.as_deref(),
                ..body
            },
            EventBody::Lifecycle {
                event,
                success,
                error,
            } => Self {
                event: Some(event),
                success: Some(*success),
                error: error.as_deref(),
                ..body
            },
            EventBody::Error { method, error } => Self {
                method: Some(method),
                error: error.as_deref(),
                ..body
            },
            EventBody::Stats {
                messages_processed,
                errors_occurred,
            } => Self {
                messages_processed: Some(*messages_processed),
                errors_occurred: Some(*errors_occurred),
                ..body
            },
        }
    }
}
