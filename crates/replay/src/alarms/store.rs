//! What the engine sees of the alarms of a replay.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_core::ports::{
    AlarmApiResult, AlarmChange, AlarmDraft, AlarmEndUpdate, AlarmQuery, AlarmScope, AlarmStore, AlarmUpdate,
    StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{
    Alarm, AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmInfo, AlarmSeverity,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, EntityId, TenantId, UserId, new_uuid};
use serde_json::Value;

use super::{AlarmTimeline, DryAlarmStore, MAX_ALARMS, info, page, propagate};

#[async_trait]
impl AlarmStore for DryAlarmStore {
    async fn create_or_update_active(&self, draft: AlarmDraft) -> AlarmChange {
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
            id,
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
            AlarmTimeline {
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

    async fn update(&self, update: AlarmUpdate) -> AlarmChange {
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

    async fn acknowledge(&self, tenant: TenantId, id: AlarmId, ts: i64) -> AlarmChange {
        Ok(self.change(tenant, id, |course| {
            let is_new = !course.alarm.acknowledged;
            if is_new {
                course.alarm.acknowledged = true;
                course.alarm.ack_ts = ts;
            }
            is_new
        }))
    }

    async fn clear(&self, tenant: TenantId, id: AlarmId, ts: i64, details: Option<&Value>) -> AlarmChange {
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

    async fn assign(&self, tenant: TenantId, id: AlarmId, assignee: Option<UserId>, ts: i64) -> AlarmChange {
        Ok(self.change(tenant, id, |course| {
            let is_new = course.alarm.assignee_id != assignee;
            course.alarm.assignee_id = assignee;
            course.alarm.assign_ts = ts;
            is_new
        }))
    }

    async fn extend(&self, touches: &[AlarmEndUpdate]) -> StoreResult<()> {
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

    async fn propagated(&self, tenant: TenantId, ids: &[AlarmId]) -> StoreResult<Vec<(AlarmId, EntityId)>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let originator = self.get(tenant, *id).await?.and_then(|alarm| alarm.originator);
            found.extend(originator.map(|originator| (*id, originator)));
        }
        Ok(found)
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
            .map(|alarm| alarm.id)
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
