//! Alarms and comments under them.

use async_trait::async_trait;
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmInfo, AlarmSearchStatus, AlarmSeverity,
    AlarmStatus,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, CustomerId, EntityId, EntityType, TenantId, UserId};
use serde_json::Value;

use super::StoreResult;

/// Where an alarm shows besides its originator.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlarmPropagation {
    /// At entities that the originator is related to.
    pub related: bool,
    /// At the customer of the originator, or the tenant where that has none.
    pub owner: bool,
    /// At the tenant.
    pub tenant: bool,
    /// Types of the relations it propagates along; all where empty.
    pub relation_types: Vec<String>,
}

impl AlarmPropagation {
    /// Where an alarm shows.
    pub fn of(alarm: &Alarm) -> Self {
        Self {
            related: alarm.propagate,
            owner: alarm.propagate_to_owner,
            tenant: alarm.propagate_to_tenant,
            relation_types: alarm.propagate_relation_types.clone(),
        }
    }
}

/// What raises an alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmDraft {
    /// Id of the alarm where one has to be created: one that follows from the message that raises it, so that raising it
    /// once more after a crash finds it. A new one where absent.
    pub id: Option<AlarmId>,
    /// The tenant of the originator.
    pub tenant: TenantId,
    /// The customer of the originator; kept in a new alarm.
    pub customer: Option<CustomerId>,
    /// Whom it is about.
    pub originator: EntityId,
    /// Its type.
    pub alarm_type: String,
    /// How bad it is.
    pub severity: AlarmSeverity,
    /// When it began, milliseconds.
    pub start_ts: i64,
    /// When it was last raised, milliseconds.
    pub end_ts: i64,
    /// Free-form JSON.
    pub details: Option<Value>,
    /// Where it shows besides its originator.
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

/// What a call made of an alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmApiResult {
    /// The alarm as it is stored now.
    pub alarm: Alarm,
    /// What it was before, where it existed.
    pub old: Option<Alarm>,
    /// Whether it was created.
    pub created: bool,
    /// Whether something has changed.
    pub modified: bool,
    /// Whether this call ended it.
    pub cleared: bool,
    /// Whether the alarm of the draft's id existed already: nothing has changed.
    pub replayed: bool,
    /// Entities that it shows at, its originator first; filled by the service.
    pub propagated: Vec<EntityId>,
}

impl AlarmApiResult {
    /// Whether the severity is another one now.
    pub fn severity_changed(&self) -> bool {
        self.old
            .as_ref()
            .is_some_and(|old| old.severity != self.alarm.severity)
    }

    /// Whether it has to be found out where it shows.
    pub fn propagation_changed(&self) -> bool {
        match &self.old {
            None => self.created,
            Some(old) => old.propagation() != self.alarm.propagation(),
        }
    }
}

/// Whose alarms a query finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AlarmScope {
    /// All of the tenant.
    #[default]
    All,
    /// Those that show at this entity, as originator or by propagation.
    Affecting(EntityId),
    /// Those that show at any of these entities; at most [`MAX_ALARM_ENTITIES`].
    AffectingAny(Vec<EntityId>),
    /// Those that one of these entities is the originator of; at most [`MAX_ALARM_ENTITIES`].
    Originators(Vec<EntityId>),
    /// Those that show at any entity of this type.
    AffectingType(EntityType),
    /// Those whose originator is of this type.
    OriginatorType(EntityType),
}

/// Most entities in one query, and most types.
pub const MAX_ALARM_ENTITIES: usize = 10_000;

/// Which time the window of a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlarmTime {
    /// When it was created.
    #[default]
    Created,
    /// When it began.
    Start,
}

/// Which alarms a list holds; absent and empty conditions hold for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlarmQuery {
    /// Whose they are.
    pub scope: AlarmScope,
    /// Of this customer.
    pub customer: Option<CustomerId>,
    /// Over, or active.
    pub cleared: Option<bool>,
    /// Acknowledged, or not.
    pub acknowledged: Option<bool>,
    /// One of these severities.
    pub severities: Vec<AlarmSeverity>,
    /// One of these types.
    pub types: Vec<String>,
    /// Assigned to this user.
    pub assignee: Option<UserId>,
    /// What `from` and `to` are about.
    pub time: AlarmTime,
    /// At or after this time, milliseconds.
    pub from: Option<i64>,
    /// At or before this time, milliseconds.
    pub to: Option<i64>,
    /// A list has them in the order of the entities that the scope names, the newest of each first; a sort property
    /// counts no more then.
    pub by_entity: bool,
}

impl AlarmQuery {
    /// Narrows to a list of states: opposites cancel each other out, and `ANY` all.
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

    /// Narrows to one status.
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

/// A repeated update of an active alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmEndUpdate {
    /// The tenant of the alarm.
    pub tenant: TenantId,
    /// The alarm.
    pub alarm: AlarmId,
    /// When it was last raised, milliseconds; an earlier time than the stored one changes nothing.
    pub end_ts: i64,
    /// New details; the stored ones stay where absent.
    pub details: Option<Value>,
}

/// What a change of an alarm leads to; `None` where the tenant has no such alarm.
pub type AlarmChange = StoreResult<Option<AlarmApiResult>>;

/// Alarms. Of an originator, one alarm of a type is active at a time.
#[async_trait]
pub trait AlarmStore: Send + Sync {
    /// Updates the active alarm of the draft's originator and type, or creates one where there is none. Where an alarm
    /// of the draft's id exists, whatever its state, nothing happens and it is returned as `replayed`. `None` where a new
    /// one would be created and may not be.
    async fn create_or_update_active(&self, draft: AlarmDraft) -> AlarmChange;
    /// Gives an alarm new values.
    async fn update(&self, update: AlarmUpdate) -> AlarmChange;
    /// Marks an alarm as seen; `modified` where it was not yet.
    async fn acknowledge(&self, tenant: TenantId, id: AlarmId, ts: i64) -> AlarmChange;
    /// Ends an alarm; `cleared` and `modified` where it was active. Details that are given replace the stored ones then.
    async fn clear(&self, tenant: TenantId, id: AlarmId, ts: i64, details: Option<&Value>) -> AlarmChange;
    /// Assigns an alarm to a user, or to nobody; `modified` where that is a change.
    async fn assign(&self, tenant: TenantId, id: AlarmId, assignee: Option<UserId>, ts: i64) -> AlarmChange;
    /// Moves the end of active alarms, all in one transaction; those that are not active any more are left alone.
    async fn extend(&self, touches: &[AlarmEndUpdate]) -> StoreResult<()>;
    /// Lets an alarm show at these entities, too.
    async fn propagate(&self, tenant: TenantId, id: AlarmId, entities: &[EntityId]) -> StoreResult<()>;
    /// The entities that alarms show at, their originators among them, each with its alarm.
    async fn propagated(&self, tenant: TenantId, ids: &[AlarmId]) -> StoreResult<Vec<(AlarmId, EntityId)>>;
    /// Deletes an alarm with its comments; returns what it was.
    async fn delete(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>>;
    /// Deletes the alarms of an originator that is gone, and takes it off those that showed at it; returns how many were
    /// deleted.
    async fn delete_of(&self, tenant: TenantId, entity: EntityId) -> StoreResult<u64>;
    /// Deletes alarms that were last raised before a time, at most `limit`, the oldest first; returns what they were.
    async fn delete_before(&self, tenant: TenantId, end_ts: i64, limit: u32) -> StoreResult<Vec<Alarm>>;
    /// The alarm, if the tenant has it.
    async fn get(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>>;
    /// The alarm with what lists show beside it.
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
    /// A page of alarms; text search in type, severity and status. Sorts by createdTime, startTs, endTs, ackTs, clearTs,
    /// assignTs, type, severity, status, originator, originatorType, originatorName, originatorLabel, assignee.
    async fn list(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
        page: &PageLink,
    ) -> StoreResult<PageData<AlarmInfo>>;
    /// How many alarms a query finds.
    async fn count(&self, tenant: TenantId, query: &AlarmQuery) -> StoreResult<u64>;
    /// The worst severity among the alarms that a query finds.
    async fn highest_severity(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
    ) -> StoreResult<Option<AlarmSeverity>>;
    /// A page of the types that the tenant's alarms have. Sorts by type.
    async fn types(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<String>>;
    /// Ids of the alarms that are assigned to a user; at most `limit`.
    async fn assigned_to(&self, tenant: TenantId, user: UserId, limit: u32) -> StoreResult<Vec<AlarmId>>;
    /// Inserts a comment, or replaces its type, author and text. Id and alarm are set.
    async fn save_comment(&self, tenant: TenantId, comment: AlarmComment) -> StoreResult<AlarmComment>;
    /// The comment, if it is under that alarm.
    async fn comment(
        &self,
        tenant: TenantId,
        alarm: AlarmId,
        id: AlarmCommentId,
    ) -> StoreResult<Option<AlarmComment>>;
    /// A page of the comments under an alarm. Sorts by createdTime, id, the newest first where not told.
    async fn comments(
        &self,
        tenant: TenantId,
        alarm: AlarmId,
        page: &PageLink,
    ) -> StoreResult<PageData<AlarmCommentInfo>>;
}
