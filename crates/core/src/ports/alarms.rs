//! Alarms and their comments.

use async_trait::async_trait;
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmInfo, AlarmSearchStatus, AlarmSeverity,
    AlarmStatus,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, CustomerId, EntityId, EntityType, TenantId, UserId};
use serde_json::Value;

use super::StoreResult;

/// Where an alarm is shown besides its originator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlarmPropagation {
    /// At entities related to the originator.
    pub related: bool,
    /// At the customer of the originator, or at the tenant if it has none.
    pub owner: bool,
    /// At the tenant.
    pub tenant: bool,
    /// Types of the relations along which it propagates; all if empty.
    pub relation_types: Vec<String>,
}

impl AlarmPropagation {
    /// Extracts the propagation settings of an alarm.
    pub fn of(alarm: &Alarm) -> Self {
        Self {
            related: alarm.propagate,
            owner: alarm.propagate_to_owner,
            tenant: alarm.propagate_to_tenant,
            relation_types: alarm.propagate_relation_types.clone(),
        }
    }
}

/// The values with which an alarm is raised.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmDraft {
    /// Id of the alarm if one has to be created. It is derived from the message that raises the alarm, so that a replay
    /// after a crash finds the same alarm. A new id if absent.
    pub id: Option<AlarmId>,
    /// The tenant of the originator.
    pub tenant: TenantId,
    /// The customer of the originator; kept in a new alarm.
    pub customer: Option<CustomerId>,
    /// The entity that the alarm is about.
    pub originator: EntityId,
    /// Its type.
    pub alarm_type: String,
    /// Its severity.
    pub severity: AlarmSeverity,
    /// Start of the alarm, milliseconds.
    pub start_ts: i64,
    /// Last time it was raised, milliseconds.
    pub end_ts: i64,
    /// Free-form JSON.
    pub details: Option<Value>,
    /// Where it is shown besides its originator.
    pub propagation: AlarmPropagation,
    /// Creation time of a new alarm, milliseconds.
    pub created_time: i64,
    /// Whether a new alarm may be created; an active one is updated regardless.
    pub may_create: bool,
}

/// New values of an alarm, active or not.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "as in AlarmDraft")]
pub struct AlarmUpdate {
    pub tenant: TenantId,
    pub id: AlarmId,
    pub severity: AlarmSeverity,
    pub start_ts: i64,
    pub end_ts: i64,
    pub details: Option<Value>,
    pub propagation: AlarmPropagation,
}

/// The result of an operation on an alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmApiResult {
    /// The alarm as stored now.
    pub alarm: Alarm,
    /// The alarm before the operation, if it existed.
    pub old: Option<Alarm>,
    /// Whether it was created.
    pub created: bool,
    /// Whether anything was changed.
    pub modified: bool,
    /// Whether this call cleared it.
    pub cleared: bool,
    /// Whether an alarm with the draft's id already existed: nothing was changed.
    pub replayed: bool,
    /// Entities at which the alarm is shown, originator first; filled in by the service.
    pub propagated: Vec<EntityId>,
}

impl AlarmApiResult {
    /// Returns whether the severity was changed.
    pub fn severity_changed(&self) -> bool {
        self.old
            .as_ref()
            .is_some_and(|old| old.severity != self.alarm.severity)
    }

    /// Returns whether the entities at which the alarm is shown must be determined again.
    pub fn propagation_changed(&self) -> bool {
        match &self.old {
            None => self.created,
            Some(old) => old.propagation() != self.alarm.propagation(),
        }
    }
}

/// The alarms that a query covers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AlarmScope {
    /// All of the tenant.
    #[default]
    All,
    /// Alarms shown at this entity, as originator or by propagation.
    Affecting(EntityId),
    /// Alarms shown at any of these entities; at most [`MAX_ALARM_ENTITIES`].
    AffectingAny(Vec<EntityId>),
    /// Alarms originated by one of these entities; at most [`MAX_ALARM_ENTITIES`].
    Originators(Vec<EntityId>),
    /// Alarms shown at any entity of this type.
    AffectingType(EntityType),
    /// Alarms whose originator is of this type.
    OriginatorType(EntityType),
}

/// Most entities, and most types, in one query.
pub const MAX_ALARM_ENTITIES: usize = 10_000;

/// The time that the window of a query applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlarmTime {
    /// Creation of the alarm.
    #[default]
    Created,
    /// Start of the alarm.
    Start,
}

/// The conditions of an alarm query; absent and empty conditions match all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlarmQuery {
    /// The alarms that the query covers.
    pub scope: AlarmScope,
    /// Belonging to this customer.
    pub customer: Option<CustomerId>,
    /// Cleared, or active.
    pub cleared: Option<bool>,
    /// Acknowledged, or not acknowledged.
    pub acknowledged: Option<bool>,
    /// One of these severities.
    pub severities: Vec<AlarmSeverity>,
    /// One of these types.
    pub types: Vec<String>,
    /// Assigned to this user.
    pub assignee: Option<UserId>,
    /// The time that `from` and `to` apply to.
    pub time: AlarmTime,
    /// At or after this time, milliseconds.
    pub from: Option<i64>,
    /// At or before this time, milliseconds.
    pub to: Option<i64>,
    /// Sorts a list by the entities in the order of the scope, newest alarm of each first; a sort property is then
    /// ignored.
    pub by_entity: bool,
}

impl AlarmQuery {
    /// Restricts the query to a list of states. Opposite states cancel each other out, and `ANY` cancels all.
    #[must_use]
    pub fn in_states(mut self, states: &[AlarmSearchStatus]) -> Self {
        use AlarmSearchStatus as Status;
        if states.contains(&Status::Any) {
            return self;
        }
        let either = |yes: Status, no: Status| match (states.contains(&yes), states.contains(&no)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        self.cleared = either(Status::Cleared, Status::Active);
        self.acknowledged = either(Status::Ack, Status::Unack);
        self
    }

    /// Restricts the query to one status.
    #[must_use]
    pub fn with_status(mut self, status: AlarmStatus) -> Self {
        self.cleared = Some(matches!(
            status,
            AlarmStatus::ClearedAck | AlarmStatus::ClearedUnack
        ));
        self.acknowledged = Some(matches!(status, AlarmStatus::ActiveAck | AlarmStatus::ClearedAck));
        self
    }
}

/// A new end time for an active alarm that was raised again.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmEndUpdate {
    /// The tenant of the alarm.
    pub tenant: TenantId,
    /// The alarm.
    pub alarm: AlarmId,
    /// Last time it was raised, milliseconds; a time before the stored one changes nothing.
    pub end_ts: i64,
    /// New details; if absent, the stored ones stay.
    pub details: Option<Value>,
}

/// The result of an alarm operation; `None` if the tenant has no such alarm.
pub type AlarmChange = StoreResult<Option<AlarmApiResult>>;

/// Alarms. Each originator has at most one active alarm per type.
#[async_trait]
pub trait AlarmStore: Send + Sync {
    /// Updates the active alarm of the draft's originator and type, or creates one if there is none. If an alarm with
    /// the draft's id exists in any state, it is returned unchanged as `replayed`. Returns `None` if a new alarm would
    /// be needed but must not be created.
    async fn create_or_update_active(&self, draft: AlarmDraft) -> AlarmChange;
    /// Sets new values of an alarm.
    async fn update(&self, update: AlarmUpdate) -> AlarmChange;
    /// Acknowledges an alarm; `modified` if it was not acknowledged yet.
    async fn acknowledge(&self, tenant: TenantId, id: AlarmId, ts: i64) -> AlarmChange;
    /// Clears an alarm; `cleared` and `modified` if it was active. Given details then replace the stored ones.
    async fn clear(&self, tenant: TenantId, id: AlarmId, ts: i64, details: Option<&Value>) -> AlarmChange;
    /// Assigns an alarm to a user, or to nobody; `modified` if that is a change.
    async fn assign(&self, tenant: TenantId, id: AlarmId, assignee: Option<UserId>, ts: i64) -> AlarmChange;
    /// Extends the end of active alarms, all in one transaction; alarms that are no longer active stay unchanged.
    async fn extend(&self, touches: &[AlarmEndUpdate]) -> StoreResult<()>;
    /// Shows an alarm at additional entities.
    async fn propagate(&self, tenant: TenantId, id: AlarmId, entities: &[EntityId]) -> StoreResult<()>;
    /// Returns the entities at which alarms are shown, originators included, each with its alarm.
    async fn propagated(&self, tenant: TenantId, ids: &[AlarmId]) -> StoreResult<Vec<(AlarmId, EntityId)>>;
    /// Deletes an alarm with its comments; returns the deleted alarm.
    async fn delete(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>>;
    /// Deletes the alarms of a deleted originator, and removes it from alarms shown at it; returns the number of
    /// deleted alarms.
    async fn delete_of(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64>;
    /// Deletes alarms last raised before a time, at most `limit`, oldest first; returns them.
    async fn delete_before(&self, tenant: TenantId, end_ts: i64, limit: u32) -> StoreResult<Vec<Alarm>>;
    /// The alarm, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>>;
    /// The alarm with the additional fields of lists.
    async fn info(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<AlarmInfo>>;
    /// The active alarm of an originator and type.
    async fn latest_active(
        &self,
        tenant: TenantId,
        originator: EntityId,
        alarm_type: &str,
    ) -> StoreResult<Option<Alarm>>;
    /// The active alarms of an originator; at most 1,000, the newest first.
    async fn active_of(&self, tenant: TenantId, originator: EntityId) -> StoreResult<Vec<Alarm>>;
    /// A page of alarms; text search in type, severity and status. Sorts by createdTime, startTs, endTs, ackTs,
    /// clearTs, assignTs, type, severity, status, originator, originatorType, originatorName, originatorLabel,
    /// assignee.
    async fn list(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
        page: &PageLink,
    ) -> StoreResult<PageData<AlarmInfo>>;
    /// Counts the alarms of a query.
    async fn count(&self, tenant: TenantId, query: &AlarmQuery) -> StoreResult<u64>;
    /// The highest severity among the alarms of a query.
    async fn highest_severity(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
    ) -> StoreResult<Option<AlarmSeverity>>;
    /// A page of the alarm types of the tenant. Sorts by type.
    async fn types(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<String>>;
    /// Ids of the alarms assigned to a user; at most `limit`.
    async fn assigned_to(&self, tenant: TenantId, user: UserId, limit: u32) -> StoreResult<Vec<AlarmId>>;
    /// Inserts a comment, or replaces its type, author and text. Id and alarm must be set.
    async fn save_comment(&self, tenant: TenantId, comment: AlarmComment) -> StoreResult<AlarmComment>;
    /// The comment, if it belongs to that alarm.
    async fn comment(
        &self,
        tenant: TenantId,
        alarm: AlarmId,
        id: AlarmCommentId,
    ) -> StoreResult<Option<AlarmComment>>;
    /// A page of the comments of an alarm. Sorts by createdTime, id; newest first by default.
    async fn comments(
        &self,
        tenant: TenantId,
        alarm: AlarmId,
        page: &PageLink,
    ) -> StoreResult<PageData<AlarmCommentInfo>>;
}
