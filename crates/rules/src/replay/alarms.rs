//! Alarms of a replay: those that were active at its begin, and those that it raises. They are in memory only.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_core::clock::SharedClock;
use fieldline_core::ports::{
    AlarmApiResult, AlarmDraft, AlarmQuery, AlarmScope, AlarmStore, AlarmTime, AlarmTouch, AlarmUpdate,
    Propagation, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmInfo, AlarmSeverity,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, EntityId, TenantId, UserId, new_uuid};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Alarms that are kept; raising more fails.
const MAX_ALARMS: usize = 100_000;
/// Changes of severity that are kept of one alarm.
const MAX_SEVERITIES: usize = 100;

/// An alarm, and what the replay did with it.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub(super) alarm: Alarm,
    /// Whether it was active before the replayed time.
    pub(super) was_active: bool,
    /// Whether the replay has done something with it.
    pub(super) is_touched: bool,
    pub(super) updates: u64,
    pub(super) severities: Vec<(i64, AlarmSeverity)>,
    pub(super) cleared: bool,
    /// Number in the order in which they were raised.
    number: usize,
}

#[derive(Default)]
struct Alarms {
    all: FxHashMap<AlarmId, Course>,
    active: FxHashMap<(EntityId, String), AlarmId>,
    updates: u64,
}

/// See the module.
pub(super) struct DryAlarms {
    clock: SharedClock,
    alarms: Mutex<Alarms>,
}

impl DryAlarms {
    /// The alarms that are active when the replay begins.
    pub(super) fn new(clock: SharedClock, active: Vec<Alarm>) -> Self {
        let mut alarms = Alarms::default();
        for mut alarm in active {
            let (Some(id), Some(originator)) = (alarm.id, alarm.originator) else {
                continue;
            };
            alarm.cleared = false;
            alarm.clear_ts = 0;
            alarms.active.insert((originator, alarm.alarm_type.clone()), id);
            let number = alarms.all.len();
            alarms.all.insert(
                id,
                Course {
                    severities: alarm
                        .severity
                        .map(|severity| (alarm.start_ts, severity))
                        .into_iter()
                        .collect(),
                    alarm,
                    was_active: true,
                    is_touched: false,
                    updates: 0,
                    cleared: false,
                    number,
                },
            );
        }
        Self {
            clock,
            alarms: Mutex::new(alarms),
        }
    }

    /// All alarms in the order in which they were raised, and how often one was updated.
    pub(super) fn courses(&self) -> (Vec<Course>, u64) {
        let alarms = self.alarms.lock();
        let mut all: Vec<Course> = alarms.all.values().cloned().collect();
        all.sort_by_key(|course| course.number);
        (all, alarms.updates)
    }

    fn change(
        &self,
        tenant: TenantId,
        id: AlarmId,
        change: impl FnOnce(&mut Course) -> bool,
    ) -> Option<AlarmApiResult> {
        let mut guard = self.alarms.lock();
        let alarms = &mut *guard;
        let course = alarms
            .all
            .get_mut(&id)
            .filter(|course| course.alarm.tenant_id == tenant)?;
        let old = course.alarm.clone();
        let modified = change(course);
        course.is_touched |= modified;
        let cleared = course.alarm.cleared && !old.cleared;
        let alarm = course.alarm.clone();
        if cleared && let Some(originator) = alarm.originator {
            alarms.active.remove(&(originator, alarm.alarm_type.clone()));
        }
        Some(AlarmApiResult {
            alarm,
            old: Some(old),
            created: false,
            modified,
            cleared,
            replayed: false,
            propagated: Vec::new(),
        })
    }

    fn find(&self, tenant: TenantId, query: &AlarmQuery) -> Vec<Alarm> {
        let alarms = self.alarms.lock();
        let mut found: Vec<(usize, Alarm)> = alarms
            .all
            .values()
            .filter(|course| course.alarm.tenant_id == tenant && matches(query, &course.alarm))
            .map(|course| (course.number, course.alarm.clone()))
            .collect();
        found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        found.into_iter().map(|(_, alarm)| alarm).collect()
    }
}

fn matches(query: &AlarmQuery, alarm: &Alarm) -> bool {
    let of = |entity: &EntityId| alarm.originator == Some(*entity);
    let in_scope = match &query.scope {
        AlarmScope::All => true,
        AlarmScope::Affecting(entity) => of(entity),
        AlarmScope::AffectingAny(entities) | AlarmScope::Originators(entities) => entities.iter().any(of),
        AlarmScope::AffectingType(kind) | AlarmScope::OriginatorType(kind) => alarm
            .originator
            .is_some_and(|originator| originator.entity_type == *kind),
    };
    let time = match query.time {
        AlarmTime::Created => alarm.created_time,
        AlarmTime::Start => alarm.start_ts,
    };
    in_scope
        && query
            .customer
            .is_none_or(|customer| alarm.customer_id == Some(customer))
        && query.cleared.is_none_or(|cleared| alarm.cleared == cleared)
        && query
            .acknowledged
            .is_none_or(|acknowledged| alarm.acknowledged == acknowledged)
        && (query.severities.is_empty() || alarm.severity.is_some_and(|it| query.severities.contains(&it)))
        && (query.types.is_empty() || query.types.contains(&alarm.alarm_type))
        && query
            .assignee
            .is_none_or(|assignee| alarm.assignee_id == Some(assignee))
        && query.from.is_none_or(|from| time >= from)
        && query.to.is_none_or(|to| time <= to)
}

fn propagate(alarm: &mut Alarm, propagation: Propagation) {
    alarm.propagate = propagation.related;
    alarm.propagate_to_owner = propagation.owner;
    alarm.propagate_to_tenant = propagation.tenant;
    alarm.propagate_relation_types = propagation.relation_types;
}

impl Course {
    fn set_severity(&mut self, now: i64, severity: AlarmSeverity) {
        if self.alarm.severity != Some(severity) && self.severities.len() < MAX_SEVERITIES {
            self.severities.push((now, severity));
        }
        self.alarm.severity = Some(severity);
    }
}

fn page<T>(all: Vec<T>, page: &PageLink) -> PageData<T> {
    let total = all.len() as u64;
    let skipped = usize::try_from(page.skipped()).unwrap_or(usize::MAX);
    let data = all
        .into_iter()
        .skip(skipped)
        .take(page.page_size as usize)
        .collect();
    PageData::new(data, total, page)
}

fn info(alarm: Alarm) -> AlarmInfo {
    AlarmInfo {
        alarm,
        originator_name: None,
        originator_label: None,
        originator_display_name: None,
        assignee: None,
    }
}

#[async_trait]
impl AlarmStore for DryAlarms {
    async fn create_or_update_active(&self, draft: AlarmDraft) -> StoreResult<Option<AlarmApiResult>> {
        let now = self.clock.now_ms();
        let key = (draft.originator, draft.alarm_type.clone());
        let (known, active) = {
            let alarms = self.alarms.lock();
            (
                draft.id.filter(|id| alarms.all.contains_key(id)),
                alarms.active.get(&key).copied(),
            )
        };
        if let Some(id) = known {
            let result = self.change(draft.tenant, id, |_| false);
            return Ok(result.map(|result| AlarmApiResult {
                replayed: true,
                ..result
            }));
        }
        if let Some(id) = active {
            let updated = self.change(draft.tenant, id, |course| {
                course.set_severity(now, draft.severity);
                course.updates += 1;
                let alarm = &mut course.alarm;
                alarm.start_ts = draft.start_ts;
                alarm.end_ts = draft.end_ts;
                alarm.details = draft.details;
                propagate(alarm, draft.propagation);
                true
            });
            self.alarms.lock().updates += 1;
            return Ok(updated);
        }
        if !draft.may_create {
            return Ok(None);
        }
        let mut guard = self.alarms.lock();
        let alarms = &mut *guard;
        if alarms.all.len() >= MAX_ALARMS {
            let text = format!("a replay raises no more than {MAX_ALARMS} alarms");
            return Err(StoreError::new(StoreErrorKind::Invalid, text));
        }
        let id = draft.id.unwrap_or_else(|| AlarmId(new_uuid()));
        let mut alarm = Alarm {
            id: Some(id),
            created_time: draft.created_time,
            tenant_id: draft.tenant,
            customer_id: draft.customer,
            alarm_type: draft.alarm_type,
            originator: Some(draft.originator),
            severity: Some(draft.severity),
            start_ts: draft.start_ts,
            end_ts: draft.end_ts,
            details: draft.details,
            ..Alarm::default()
        };
        propagate(&mut alarm, draft.propagation);
        alarms.active.insert(key, id);
        let number = alarms.all.len();
        alarms.all.insert(
            id,
            Course {
                alarm: alarm.clone(),
                was_active: false,
                is_touched: true,
                updates: 0,
                severities: vec![(now, draft.severity)],
                cleared: false,
                number,
            },
        );
        Ok(Some(AlarmApiResult {
            alarm,
            old: None,
            created: true,
            modified: true,
            cleared: false,
            replayed: false,
            propagated: Vec::new(),
        }))
    }

    async fn update(&self, update: AlarmUpdate) -> StoreResult<Option<AlarmApiResult>> {
        let now = self.clock.now_ms();
        let updated = self.change(update.tenant, update.id, |course| {
            course.set_severity(now, update.severity);
            course.updates += 1;
            let alarm = &mut course.alarm;
            alarm.start_ts = update.start_ts;
            alarm.end_ts = update.end_ts;
            alarm.details = update.details;
            propagate(alarm, update.propagation);
            true
        });
        if updated.is_some() {
            self.alarms.lock().updates += 1;
        }
        Ok(updated)
    }

    async fn acknowledge(
        &self,
        tenant: TenantId,
        id: AlarmId,
        ts: i64,
    ) -> StoreResult<Option<AlarmApiResult>> {
        Ok(self.change(tenant, id, |course| {
            let is_new = !course.alarm.acknowledged;
            if is_new {
                course.alarm.acknowledged = true;
                course.alarm.ack_ts = ts;
            }
            is_new
        }))
    }

    async fn clear(
        &self,
        tenant: TenantId,
        id: AlarmId,
        ts: i64,
        details: Option<&Value>,
    ) -> StoreResult<Option<AlarmApiResult>> {
        Ok(self.change(tenant, id, |course| {
            if course.alarm.cleared {
                return false;
            }
            course.cleared = true;
            course.alarm.cleared = true;
            course.alarm.clear_ts = ts;
            if let Some(details) = details {
                course.alarm.details = Some(details.clone());
            }
            true
        }))
    }

    async fn assign(
        &self,
        tenant: TenantId,
        id: AlarmId,
        assignee: Option<UserId>,
        ts: i64,
    ) -> StoreResult<Option<AlarmApiResult>> {
        Ok(self.change(tenant, id, |course| {
            let is_new = course.alarm.assignee_id != assignee;
            course.alarm.assignee_id = assignee;
            course.alarm.assign_ts = ts;
            is_new
        }))
    }

    async fn touch(&self, touches: &[AlarmTouch]) -> StoreResult<()> {
        for touch in touches {
            let touched = self.change(touch.tenant, touch.alarm, |course| {
                if course.alarm.cleared {
                    return false;
                }
                course.updates += 1;
                course.alarm.end_ts = course.alarm.end_ts.max(touch.end_ts);
                if let Some(details) = &touch.details {
                    course.alarm.details = Some(details.clone());
                }
                true
            });
            if touched.is_some_and(|touched| touched.modified) {
                self.alarms.lock().updates += 1;
            }
        }
        Ok(())
    }

    async fn propagate(&self, _: TenantId, _: AlarmId, _: &[EntityId]) -> StoreResult<()> {
        Ok(())
    }

    async fn propagated(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Vec<EntityId>> {
        Ok(self
            .get(tenant, id)
            .await?
            .and_then(|alarm| alarm.originator)
            .into_iter()
            .collect())
    }

    async fn delete(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>> {
        let now = self.clock.now_ms();
        Ok(self
            .clear(tenant, id, now, None)
            .await?
            .map(|result| result.alarm))
    }

    async fn delete_of(&self, _: TenantId, _: EntityId) -> StoreResult<u64> {
        Ok(0)
    }

    async fn delete_before(&self, _: TenantId, _: i64, _: u32) -> StoreResult<Vec<Alarm>> {
        Ok(Vec::new())
    }

    async fn get(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<Alarm>> {
        let alarms = self.alarms.lock();
        let found = alarms
            .all
            .get(&id)
            .filter(|course| course.alarm.tenant_id == tenant);
        Ok(found.map(|course| course.alarm.clone()))
    }

    async fn info(&self, tenant: TenantId, id: AlarmId) -> StoreResult<Option<AlarmInfo>> {
        Ok(self.get(tenant, id).await?.map(info))
    }

    async fn latest_active(
        &self,
        tenant: TenantId,
        originator: EntityId,
        alarm_type: &str,
    ) -> StoreResult<Option<Alarm>> {
        let id = self
            .alarms
            .lock()
            .active
            .get(&(originator, alarm_type.to_owned()))
            .copied();
        match id {
            Some(id) => self.get(tenant, id).await,
            None => Ok(None),
        }
    }

    async fn active_of(&self, tenant: TenantId, originator: EntityId) -> StoreResult<Vec<Alarm>> {
        let query = AlarmQuery {
            scope: AlarmScope::Originators(vec![originator]),
            cleared: Some(false),
            ..AlarmQuery::default()
        };
        Ok(self.find(tenant, &query))
    }

    async fn list(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
        link: &PageLink,
    ) -> StoreResult<PageData<AlarmInfo>> {
        Ok(page(
            self.find(tenant, query).into_iter().map(info).collect(),
            link,
        ))
    }

    async fn count(&self, tenant: TenantId, query: &AlarmQuery) -> StoreResult<u64> {
        Ok(self.find(tenant, query).len() as u64)
    }

    async fn highest_severity(
        &self,
        tenant: TenantId,
        query: &AlarmQuery,
    ) -> StoreResult<Option<AlarmSeverity>> {
        Ok(self
            .find(tenant, query)
            .iter()
            .filter_map(|alarm| alarm.severity)
            .min())
    }

    async fn types(&self, tenant: TenantId, link: &PageLink) -> StoreResult<PageData<String>> {
        let all = self.find(tenant, &AlarmQuery::default());
        let types: BTreeMap<String, ()> = all.into_iter().map(|alarm| (alarm.alarm_type, ())).collect();
        Ok(page(types.into_keys().collect(), link))
    }

    async fn assigned_to(&self, tenant: TenantId, user: UserId, limit: u32) -> StoreResult<Vec<AlarmId>> {
        let query = AlarmQuery {
            assignee: Some(user),
            ..AlarmQuery::default()
        };
        let found = self.find(tenant, &query);
        Ok(found
            .into_iter()
            .filter_map(|alarm| alarm.id)
            .take(limit as usize)
            .collect())
    }

    async fn save_comment(&self, _: TenantId, comment: AlarmComment) -> StoreResult<AlarmComment> {
        Ok(comment)
    }

    async fn comment(&self, _: TenantId, _: AlarmId, _: AlarmCommentId) -> StoreResult<Option<AlarmComment>> {
        Ok(None)
    }

    async fn comments(
        &self,
        _: TenantId,
        _: AlarmId,
        link: &PageLink,
    ) -> StoreResult<PageData<AlarmCommentInfo>> {
        Ok(page(Vec::new(), link))
    }
}
