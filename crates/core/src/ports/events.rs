//! Events: what happened at entities, for people who look for mistakes.

use async_trait::async_trait;
use fieldline_model::entity::{EntityEvent, EventKind};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityId, EntityKey, TenantId};
use uuid::Uuid;

use super::StoreResult;

/// A text of an event that a filter looks into, for the kinds of events that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventText {
    /// Name of the server.
    Server,
    /// Direction at a rule node, event of a life cycle, or method of an error.
    Name,
    /// Entity type of the message's originator, or of what a field was evaluated for.
    EntityType,
    /// Type of the message.
    MsgType,
    /// Label the message left with.
    RelationType,
    /// Body of the message, message of a rule chain, or arguments of a field.
    Data,
    /// Metadata of the message, or result of a field.
    Metadata,
    /// Why something failed.
    Error,
}

/// Which events of an entity are meant; absent conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this kind.
    pub kind: EventKind,
    /// Not before this time, milliseconds.
    pub start_time: Option<i64>,
    /// Not after this time, milliseconds.
    pub end_time: Option<i64>,
    /// Texts that are contained, regardless of the case of ASCII letters.
    pub texts: Vec<(EventText, String)>,
    /// Originator of the message, or what a field was evaluated for.
    pub entity: Option<Uuid>,
    /// Id of the message.
    pub msg_id: Option<Uuid>,
    /// Whether it succeeded.
    pub success: Option<bool>,
    /// Only what has an error.
    pub only_errors: bool,
    /// At least so many messages.
    pub min_messages: Option<i64>,
    /// Fewer messages than this.
    pub max_messages: Option<i64>,
    /// At least so many errors.
    pub min_errors: Option<i64>,
    /// Fewer errors than this.
    pub max_errors: Option<i64>,
}

impl EventFilter {
    /// All events of a kind.
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
    /// Stores events, all or none; those whose ids are stored already are left as they are. Writers cut long texts.
    async fn append(&self, events: &[EntityEvent]) -> StoreResult<()>;
    /// A page of the events of an entity. Sorts by createdTime, ts (the same), id; the text search of the page is
    /// of no effect.
    async fn list(
        &self,
        tenant: TenantId,
        entity: EntityId,
        filter: &EventFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<EntityEvent>>;
    /// Deletes events of an entity; returns how many there were.
    async fn delete(&self, tenant: TenantId, entity: EntityId, filter: &EventFilter) -> StoreResult<u64>;
    /// Deletes all events of an entity that is gone.
    async fn delete_subject(&self, subject: EntityKey) -> StoreResult<()>;
    /// Deletes the events of a kind that happened before a time, milliseconds; returns how many there were.
    async fn delete_before(&self, kind: EventKind, time_ms: i64) -> StoreResult<u64>;
}
