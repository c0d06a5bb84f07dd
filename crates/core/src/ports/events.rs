//! Events of entities, for people who debug.

use async_trait::async_trait;
use fieldline_model::entity::{EntityEvent, EventKind};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, EntityKey, TenantId};
use uuid::Uuid;

use super::StoreResult;

/// A text of an event that filters can search, in the kinds of events that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventText {
    /// Name of the server.
    Server,
    /// Direction at a rule node, name of a lifecycle event, or method of an error.
    Name,
    /// Entity type of the message's originator, or of the entity that a field was evaluated for.
    EntityType,
    /// Type of the message.
    MsgType,
    /// Label with which the message left.
    RelationType,
    /// Body of the message, message of a rule chain, or arguments of a field.
    Data,
    /// Metadata of the message, or result of a field.
    Metadata,
    /// Error message.
    Error,
}

/// The conditions on the events of an entity; absent conditions match all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this kind.
    pub kind: EventKind,
    /// At or after this time, milliseconds.
    pub start_time: Option<i64>,
    /// At or before this time, milliseconds.
    pub end_time: Option<i64>,
    /// Contained texts; the case of ASCII letters is ignored.
    pub texts: Vec<(EventText, String)>,
    /// Originator of the message, or entity that a field was evaluated for.
    pub entity: Option<Uuid>,
    /// Id of the message.
    pub msg_id: Option<Uuid>,
    /// Whether it succeeded.
    pub success: Option<bool>,
    /// Only events with an error.
    pub only_errors: bool,
    /// At least this many messages.
    pub min_messages: Option<i64>,
    /// Fewer messages than this.
    pub max_messages: Option<i64>,
    /// At least this many errors.
    pub min_errors: Option<i64>,
    /// Fewer errors than this.
    pub max_errors: Option<i64>,
}

impl EventFilter {
    /// Creates a filter for all events of a kind.
    pub const fn of(kind: EventKind) -> Self {
        Self {
            kind,
            start_time: None,
            end_time: None,
            texts: Vec::new(),
            entity: None,
            msg_id: None,
            success: None,
            only_errors: false,
            min_messages: None,
            max_messages: None,
            min_errors: None,
            max_errors: None,
        }
    }
}

/// Events of all kinds.
#[async_trait]
pub trait EventStore: Send + Sync {
    /// Stores events, all or none; events whose ids are already stored stay unchanged. Long texts are cut by the
    /// callers.
    async fn append(&self, events: &[EntityEvent]) -> StoreResult<()>;
    /// A page of the events of an entity. Sorts by createdTime, ts (the same), id; the page's text search is ignored.
    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        filter: &EventFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityEvent>>;
    /// Deletes events of an entity; returns their number.
    async fn delete(&self, tenant: TenantId, entity: EntityId, filter: &EventFilter) -> StoreResult<u64>;
    /// Deletes all events of a deleted entity.
    async fn delete_subject(&self, subject: EntityKey) -> StoreResult<()>;
    /// Deletes the events of a kind before a time, milliseconds; returns their number.
    async fn delete_before(&self, kind: EventKind, time_ms: i64) -> StoreResult<u64>;
}
