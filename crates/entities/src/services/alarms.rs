//! Alarms: raising, changing, ending, and where they show.

mod comments;
mod user_actions;

use std::sync::Arc;

use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::ports::{AlarmApiResult, AlarmDraft, AlarmUpdate, find_assignable, is_assignable};
use fieldline_core::usage::{ApiFeature, UsageKey, UsageStore};
use fieldline_model::entity::{
    Alarm, AlarmInfo, AlarmSeverity, RelationTypeGroup, RelationsQuery, RelationsSearchParameters,
    SearchDirection,
};
use fieldline_model::{AlarmId, CustomerId, EntityId, EntityType, TenantId, UserId};
use serde_json::{Value, json};

use super::{
    EntityAction, EntityActionService, ServiceContext, ServiceError, ServiceErrorKind, ServiceResult,
    retention, validate,
};

/// Says whether a tenant may raise one more alarm, and counts those that are raised.
pub trait AlarmGate: Send + Sync {
    /// Whether a new alarm may be created.
    fn may_create(&self, tenant: TenantId) -> bool;
    /// A new alarm was created.
    fn count_created(&self, tenant: TenantId);
}

impl AlarmGate for UsageStore {
    fn may_create(&self, tenant: TenantId) -> bool {
        self.is_allowed(tenant, ApiFeature::Alarms)
    }

    fn count_created(&self, tenant: TenantId) {
        self.count(tenant, UsageKey::CreatedAlarms, 1);
    }
}

/// Lets every alarm through.
struct UnlimitedAlarms;

impl AlarmGate for UnlimitedAlarms {
    fn may_create(&self, _: TenantId) -> bool {
        true
    }
    fn count_created(&self, _: TenantId) {}
}

/// Rules about alarms. What the methods of this part do is not told to the rule engine: the engine calls them itself.
#[derive(Clone)]
pub struct AlarmService {
    context: Arc<ServiceContext>,
    actions: EntityActionService,
    gate: Arc<dyn AlarmGate>,
}

impl AlarmService {
    pub(super) fn new(context: &Arc<ServiceContext>, actions: &EntityActionService) -> Self {
        Self {
            context: Arc::clone(context),
            actions: actions.clone(),
            gate: Arc::new(UnlimitedAlarms),
        }
    }

    /// The same, with a limit on new alarms.
    #[must_use]
    pub fn with_gate(mut self, gate: Arc<dyn AlarmGate>) -> Self {
        self.gate = gate;
        self
    }

    /// Updates the active alarm of the draft's originator and type, or raises one. The alarm gets the customer of its
    /// originator; a change of its severity is noted in a comment; it shows where it propagates.
    ///
    /// # Errors
    /// The draft makes no sense, its customer is not that of the originator, or the tenant may raise no more alarms.
    pub async fn create_or_update(
        &self,
        mut draft: AlarmDraft,
        user: Option<UserId>,
    ) -> ServiceResult<AlarmApiResult> {
        validate::required("Alarm type", &draft.alarm_type)?;
        validate::lengths(&[("type", Some(&draft.alarm_type))])?;
        (draft.start_ts, draft.end_ts) = self.checked_times(draft.start_ts, draft.end_ts)?;
        check_details(draft.details.as_ref())?;
        let owner = self.customer_of(draft.tenant, draft.originator).await?;
        let given = draft.customer.filter(|customer| !customer.is_null());
        match (owner, given) {
            (None, Some(_)) => {
                return Err(ServiceError::invalid(
                    "Can't assign alarm to customer. Originator is not assigned to customer!",
                ));
            }
            (Some(owner), Some(given)) if owner != given => {
                return Err(ServiceError::invalid(
                    "Can't assign alarm to customer. Originator belongs to different customer!",
                ));
            }
            _ => draft.customer = owner,
        }
        if draft.created_time == 0 {
            draft.created_time = self.context.now();
        }
        let tenant = draft.tenant;
        draft.may_create = draft.may_create && self.gate.may_create(tenant);
        let result = self
            .context
            .stores
            .alarms
            .create_or_update_active(draft)
            .await?
            .ok_or_else(|| {
                ServiceError::new(ServiceErrorKind::TooManyRequests, "Alarms creation is disabled")
            })?;
        if result.created {
            self.gate.count_created(tenant);
        }
        self.finish(result, user).await
    }

    /// Gives an alarm new values; `None` where the tenant has no such alarm.
    ///
    /// # Errors
    /// The values make no sense.
    pub async fn update(
        &self,
        mut update: AlarmUpdate,
        user: Option<UserId>,
    ) -> ServiceResult<Option<AlarmApiResult>> {
        (update.start_ts, update.end_ts) = self.checked_times(update.start_ts, update.end_ts)?;
        check_details(update.details.as_ref())?;
        match self.context.stores.alarms.update(update).await? {
            Some(result) => self.finish(result, user).await.map(Some),
            None => Ok(None),
        }
    }

    /// Marks an alarm as seen; `None` where the tenant has no such alarm.
    ///
    /// # Errors
    /// The store failed.
    pub async fn acknowledge(
        &self,
        tenant: TenantId,
        id: AlarmId,
        ts: i64,
    ) -> ServiceResult<Option<AlarmApiResult>> {
        let result = self.context.stores.alarms.acknowledge(tenant, id, ts).await?;
        self.finish_some(result).await
    }

    /// Ends an alarm; `None` where the tenant has no such alarm.
    ///
    /// # Errors
    /// The store failed.
    pub async fn clear(
        &self,
        tenant: TenantId,
        id: AlarmId,
        ts: i64,
        details: Option<&Value>,
    ) -> ServiceResult<Option<AlarmApiResult>> {
        check_details(details)?;
        let result = self.context.stores.alarms.clear(tenant, id, ts, details).await?;
        self.finish_some(result).await
    }

    /// Assigns an alarm to a user, or to nobody; `None` where the tenant has no such alarm.
    ///
    /// # Errors
    /// The store failed.
    pub async fn assign(
        &self,
        tenant: TenantId,
        id: AlarmId,
        assignee: Option<UserId>,
        ts: i64,
    ) -> ServiceResult<Option<AlarmApiResult>> {
        let result = self
            .context
            .stores
            .alarms
            .assign(tenant, id, assignee, ts)
            .await?;
        self.finish_some(result).await
    }

    /// Deletes an alarm with its comments; returns what it was.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(&self, tenant: TenantId, id: AlarmId) -> ServiceResult<Option<Alarm>> {
        let deleted = self.context.stores.alarms.delete(tenant, id).await?;
        if let Some(originator) = deleted.as_ref().and_then(|alarm| alarm.originator) {
            self.context
                .publish_change(EntityChange::new(tenant, originator, ChangeKind::Alarms));
        }
        Ok(deleted)
    }

    /// Deletes alarms that were last raised before a time, a few at a time, and tells the rule engine about each; returns
    /// how many.
    ///
    /// # Errors
    /// The store failed; asking again goes on where it stopped.
    pub async fn delete_before(&self, tenant: TenantId, end_ts: i64) -> ServiceResult<u64> {
        const AT_ONCE: u32 = 1_000;
        let mut count = 0;
        loop {
            let deleted = self
                .context
                .stores
                .alarms
                .delete_before(tenant, end_ts, AT_ONCE)
                .await?;
            if deleted.is_empty() {
                return Ok(count);
            }
            count += deleted.len() as u64;
            for alarm in deleted {
                if let Some(originator) = alarm.originator {
                    self.context
                        .publish_change(EntityChange::new(tenant, originator, ChangeKind::Alarms));
                }
                self.actions
                    .push_alarm(None, EntityAction::AlarmDeleted, &nameless(alarm))
                    .await;
            }
        }
    }

    /// Deletes the alarms of all tenants that are older than their tenant profile (`alarmsTtlDays`) keeps them; returns
    /// how many.
    ///
    /// # Errors
    /// The store failed; asking again goes on where it stopped.
    pub async fn expire(&self) -> ServiceResult<u64> {
        let mut count = 0;
        for (tenant, before) in retention::ages(&self.context, "alarmsTtlDays").await? {
            count += self.delete_before(tenant, before).await?;
        }
        Ok(count)
    }

    /// The customer of an originator; `None` where it has none.
    ///
    /// # Errors
    /// The tenant has no such originator.
    pub async fn customer_of(
        &self,
        tenant: TenantId,
        originator: EntityId,
    ) -> ServiceResult<Option<CustomerId>> {
        let stores = &self.context.stores;
        let customer = match originator.entity_type {
            kind if is_assignable(kind) => {
                let found = find_assignable(stores, tenant, originator).await?;
                found.map(|found| found.resource().customer)
            }
            EntityType::User => {
                let user = stores.users.get(tenant, UserId(originator.id)).await?;
                user.map(|user| user.customer_id)
            }
            EntityType::Customer => {
                let customer = stores.customers.get(tenant, CustomerId(originator.id)).await?;
                customer.map(|_| CustomerId::NULL)
            }
            EntityType::Tenant if originator.id != tenant.0 => None,
            _ => Some(CustomerId::NULL),
        };
        let customer = customer.ok_or_else(|| {
            ServiceError::invalid(format!("Alarm originator [{originator}] does not exist!"))
        })?;
        Ok(Some(customer).filter(|customer| !customer.is_null()))
    }

    /// The times of an alarm, with what may be left out.
    fn checked_times(&self, start_ts: i64, end_ts: i64) -> ServiceResult<(i64, i64)> {
        if end_ts > 0 && start_ts > end_ts {
            return Err(ServiceError::invalid(
                "Alarm start ts can't be greater then alarm end ts!",
            ));
        }
        let now = self.context.now();
        let start_ts = match (start_ts, end_ts) {
            (0, 0) => now,
            (0, end_ts) => now.min(end_ts),
            (start_ts, _) => start_ts,
        };
        Ok((start_ts, if end_ts == 0 { start_ts } else { end_ts }))
    }

    async fn finish_some(&self, result: Option<AlarmApiResult>) -> ServiceResult<Option<AlarmApiResult>> {
        match result {
            Some(result) => self.finish(result, None).await.map(Some),
            None => Ok(None),
        }
    }

    /// What every change brings with it: where the alarm shows, who is told, and a note about its severity.
    async fn finish(
        &self,
        mut result: AlarmApiResult,
        user: Option<UserId>,
    ) -> ServiceResult<AlarmApiResult> {
        let tenant = result.alarm.tenant_id;
        result.propagated = self.update_propagation(&result).await?;
        if result.modified
            && let Some(originator) = result.alarm.originator
        {
            self.context
                .publish_change(EntityChange::new(tenant, originator, ChangeKind::Alarms));
        }
        if result.severity_changed() {
            let old = result.old.as_ref().and_then(|old| old.severity);
            self.note_severity(&result.alarm, old, user).await?;
        }
        Ok(result)
    }

    /// Where an alarm shows, its originator first; brought up to date where that may have changed. A replayed draft counts
    /// as that: its first run may have ended before this.
    async fn update_propagation(&self, result: &AlarmApiResult) -> ServiceResult<Vec<EntityId>> {
        let alarm = &result.alarm;
        let Some(originator) = alarm.originator else {
            return Ok(Vec::new());
        };
        let mut entities = vec![originator];
        if !(alarm.propagate || alarm.propagate_to_owner || alarm.propagate_to_tenant) {
            return Ok(entities);
        }
        let stores = &self.context.stores;
        if !(result.propagation_changed() || result.replayed) {
            let shown = stores.alarms.propagated(alarm.tenant_id, &[alarm.id]).await?;
            let shown = shown.into_iter().map(|(_, entity)| entity);
            entities.extend(shown.filter(|entity| *entity != originator));
            return Ok(entities);
        }
        let mut add = |entity: EntityId| {
            if !entities.contains(&entity) {
                entities.push(entity);
            }
        };
        if alarm.propagate {
            self.related(alarm, originator)
                .await?
                .into_iter()
                .for_each(&mut add);
        }
        if alarm.propagate_to_owner {
            add(match alarm.customer_id {
                Some(customer) => customer.into(),
                None => alarm.tenant_id.into(),
            });
        }
        if alarm.propagate_to_tenant {
            add(alarm.tenant_id.into());
        }
        stores
            .alarms
            .propagate(alarm.tenant_id, alarm.id, &entities)
            .await?;
        Ok(entities)
    }

    /// What contains the originator, and what contains that, and so on.
    async fn related(&self, alarm: &Alarm, originator: EntityId) -> ServiceResult<Vec<EntityId>> {
        let query = RelationsQuery {
            parameters: RelationsSearchParameters {
                root_id: originator.id,
                root_type: originator.entity_type,
                direction: SearchDirection::To,
                relation_type_group: RelationTypeGroup::Common,
                max_level: 0,
                fetch_last_level_only: false,
            },
            filters: Vec::new(),
        };
        let relations = self
            .context
            .stores
            .relations
            .search(alarm.tenant_id, &query)
            .await?;
        let types = &alarm.propagate_relation_types;
        let mut found: Vec<EntityId> = relations
            .into_iter()
            .filter(|relation| types.is_empty() || types.contains(&relation.relation_type))
            .map(|relation| relation.from)
            .collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    async fn note_severity(
        &self,
        alarm: &Alarm,
        old: Option<AlarmSeverity>,
        user: Option<UserId>,
    ) -> ServiceResult<()> {
        let name = |severity: Option<AlarmSeverity>| severity.map_or("", AlarmSeverity::name);
        let (old, new) = (name(old), name(alarm.severity));
        let comment = json!({
            "text": format!("Alarm severity was updated from {old} to {new}"),
            "subtype": "SEVERITY_CHANGED",
            "oldSeverity": old,
            "newSeverity": new,
        });
        let info = self.info_of(alarm.clone()).await?;
        self.write_system_comment(None, user, &info, comment).await
    }

    /// An alarm with what lists show beside it.
    async fn info_of(&self, alarm: Alarm) -> ServiceResult<AlarmInfo> {
        let id = alarm.id;
        let info = self.context.stores.alarms.info(alarm.tenant_id, id).await?;
        Ok(info.unwrap_or_else(|| nameless(alarm)))
    }
}

/// An alarm of which nothing else is known.
fn nameless(alarm: Alarm) -> AlarmInfo {
    AlarmInfo {
        alarm,
        originator_name: None,
        originator_label: None,
        originator_display_name: None,
        assignee: None,
    }
}

/// Longest details, in bytes of JSON.
const MAX_DETAILS: usize = 1 << 20;

fn check_details(details: Option<&Value>) -> ServiceResult<()> {
    match details {
        Some(details) if details.to_string().len() > MAX_DETAILS => Err(ServiceError::invalid(format!(
            "Alarm details must not be longer than {MAX_DETAILS} bytes!"
        ))),
        _ => Ok(()),
    }
}
