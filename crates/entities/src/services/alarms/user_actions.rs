//! What people do with alarms: each of it is noted in a comment and told to the rule engine.

use fieldline_core::ports::{AlarmApiResult, AlarmDraft, AlarmPropagation, AlarmUpdate};
use fieldline_model::entity::{Alarm, AlarmAssignee, AlarmInfo, EntityDraft, User};
use fieldline_model::{AlarmId, TenantId, UserId};
use serde_json::{Value, json};

use super::AlarmService;
use crate::access::Principal;
use crate::services::{EntityAction, ServiceError, ServiceResult};

impl AlarmService {
    /// Raises or updates an alarm as it was sent, and acknowledges, ends and assigns it where the sent one is so.
    ///
    /// # Errors
    /// The alarm makes no sense, or has an id and the tenant has no such alarm.
    pub async fn save(&self, who: &Principal, alarm: EntityDraft<Alarm>) -> ServiceResult<Alarm> {
        let missing = |what: &str| ServiceError::invalid(format!("Alarm {what} should be specified!"));
        let severity = alarm.severity.ok_or_else(|| missing("severity"))?;
        let originator = alarm.originator.ok_or_else(|| missing("originator"))?;
        let result = match alarm.id {
            Some(id) => {
                let update = AlarmUpdate {
                    tenant: who.tenant,
                    id,
                    severity,
                    start_ts: alarm.start_ts,
                    end_ts: alarm.end_ts,
                    details: alarm.details.clone(),
                    propagation: AlarmPropagation::of(&alarm),
                };
                self.update(update, Some(who.user))
                    .await?
                    .ok_or_else(alarm_not_found)?
            }
            None => {
                let draft = AlarmDraft {
                    id: None,
                    tenant: who.tenant,
                    customer: alarm.customer_id,
                    originator,
                    alarm_type: alarm.alarm_type.clone(),
                    severity,
                    start_ts: alarm.start_ts,
                    end_ts: alarm.end_ts,
                    details: alarm.details.clone(),
                    propagation: AlarmPropagation::of(&alarm),
                    created_time: 0,
                    may_create: true,
                };
                self.create_or_update(draft, Some(who.user)).await?
            }
        };
        let id = result.alarm.id;
        let mut saved = self.info_of(result.alarm).await?;
        if alarm.acknowledged && !saved.alarm.acknowledged {
            saved = self.acknowledge_by(who, id, alarm.ack_ts).await?;
        }
        if alarm.cleared && !saved.alarm.cleared {
            saved = self.clear_by(who, id, alarm.clear_ts).await?;
        }
        if alarm.assignee_id != saved.alarm.assignee_id {
            saved = match alarm.assignee_id {
                Some(user) => self.assign_by(who, id, user, alarm.assign_ts).await?,
                None => self.unassign_by(who, id, alarm.assign_ts).await?,
            };
        }
        if result.modified {
            let action = match alarm.id {
                None => EntityAction::Created,
                Some(_) => EntityAction::Updated,
            };
            self.actions.push_alarm(Some(who), action, &saved).await;
        }
        Ok(saved.alarm)
    }

    /// Marks an alarm as seen; at this moment where the time is 0.
    ///
    /// # Errors
    /// There is no such alarm, or it was acknowledged already.
    pub async fn acknowledge_by(&self, who: &Principal, id: AlarmId, ts: i64) -> ServiceResult<AlarmInfo> {
        let result = self.acknowledge(who.tenant, id, self.or_now(ts)).await?;
        let info = self
            .require_change(result, "Alarm was already acknowledged!")
            .await?;
        let user = self.title(who).await?;
        let note = json!({
            "text": format!("Alarm was acknowledged by user {user}"),
            "subtype": "ACKED_BY_USER",
            "userName": user,
        });
        self.record_action(who, EntityAction::AlarmAcknowledged, info, note)
            .await
    }

    /// Ends an alarm; at this moment where the time is 0.
    ///
    /// # Errors
    /// There is no such alarm, or it was cleared already.
    pub async fn clear_by(&self, who: &Principal, id: AlarmId, ts: i64) -> ServiceResult<AlarmInfo> {
        let result = self.clear(who.tenant, id, self.or_now(ts), None).await?;
        let info = self.require_change(result, "Alarm was already cleared!").await?;
        let user = self.title(who).await?;
        let note = json!({
            "text": format!("Alarm was cleared by user {user}"),
            "subtype": "CLEARED_BY_USER",
            "userName": user,
        });
        self.record_action(who, EntityAction::AlarmCleared, info, note)
            .await
    }

    /// Assigns an alarm to a user of the tenant; at this moment where the time is 0.
    ///
    /// # Errors
    /// There is no such alarm or user, or the alarm is assigned to that user already.
    pub async fn assign_by(
        &self,
        who: &Principal,
        id: AlarmId,
        assignee: UserId,
        ts: i64,
    ) -> ServiceResult<AlarmInfo> {
        let users = &self.context.stores.users;
        let assignee = users
            .get(who.tenant, assignee)
            .await?
            .ok_or_else(|| ServiceError::not_found(format!("User with id [{assignee}] is not found")))?;
        let result = self
            .assign(who.tenant, id, Some(assignee.id), self.or_now(ts))
            .await?;
        let info = self
            .require_change(result, "Alarm was already assigned to this user!")
            .await?;
        let (user, assignee) = (self.title(who).await?, title_of(&assignee));
        let note = json!({
            "text": format!("Alarm was assigned by user {user} to user {assignee}"),
            "subtype": "ASSIGNED_TO_USER",
            "userName": user,
            "assigneeName": assignee,
        });
        self.record_action(who, EntityAction::AlarmAssigned, info, note)
            .await
    }

    /// Takes an alarm from the user it is assigned to; at this moment where the time is 0.
    ///
    /// # Errors
    /// There is no such alarm, or it is assigned to nobody.
    pub async fn unassign_by(&self, who: &Principal, id: AlarmId, ts: i64) -> ServiceResult<AlarmInfo> {
        let result = self.assign(who.tenant, id, None, self.or_now(ts)).await?;
        let info = self
            .require_change(result, "Alarm was already unassigned!")
            .await?;
        let user = self.title(who).await?;
        let note = json!({
            "text": format!("Alarm was unassigned by user {user}"),
            "subtype": "UNASSIGNED_BY_USER",
            "userName": user,
        });
        self.record_action(who, EntityAction::AlarmUnassigned, info, note)
            .await
    }

    /// Deletes an alarm; returns whether there was one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete_by(&self, who: &Principal, alarm: Alarm) -> ServiceResult<bool> {
        let id = alarm.id;
        let info = self.info_of(alarm).await?;
        let deleted = self.delete(who.tenant, id).await?.is_some();
        if deleted {
            self.actions
                .push_alarm(Some(who), EntityAction::AlarmDeleted, &info)
                .await;
        }
        Ok(deleted)
    }

    /// Takes the alarms of a user who was deleted.
    ///
    /// # Errors
    /// The store failed; asking again goes on where it stopped.
    pub async fn release_of(&self, tenant: TenantId, user: &User) -> ServiceResult<()> {
        const AT_ONCE: u32 = 100;
        if tenant.is_null() {
            return Ok(());
        }
        let title = title_of(user);
        loop {
            let alarms = self
                .context
                .stores
                .alarms
                .assigned_to(tenant, user.id, AT_ONCE)
                .await?;
            if alarms.is_empty() {
                return Ok(());
            }
            for alarm in alarms {
                let now = self.context.now();
                let Some(result) = self.assign(tenant, alarm, None, now).await? else {
                    continue;
                };
                if !result.modified {
                    continue;
                }
                let note = json!({
                    "text": format!("Alarm was unassigned because user {title} - was deleted"),
                    "subtype": "UNASSIGNED_FROM_DELETED_USER",
                    "userName": title,
                });
                let info = self.info_of(result.alarm).await?;
                self.write_system_comment(None, None, &info, note).await?;
                self.actions
                    .push_alarm(None, EntityAction::AlarmUnassigned, &info)
                    .await;
            }
        }
    }

    fn or_now(&self, ts: i64) -> i64 {
        if ts > 0 { ts } else { self.context.now() }
    }

    /// The alarm, where something was changed of it.
    async fn require_change(
        &self,
        result: Option<AlarmApiResult>,
        already: &str,
    ) -> ServiceResult<AlarmInfo> {
        let result = result.ok_or_else(alarm_not_found)?;
        if !result.modified {
            return Err(ServiceError::invalid(already));
        }
        self.info_of(result.alarm).await
    }

    async fn record_action(
        &self,
        who: &Principal,
        action: EntityAction,
        info: AlarmInfo,
        note: Value,
    ) -> ServiceResult<AlarmInfo> {
        self.write_system_comment(Some(who), Some(who.user), &info, note)
            .await?;
        self.actions.push_alarm(Some(who), action, &info).await;
        Ok(info)
    }

    /// How a user is called in comments.
    pub(super) async fn title(&self, who: &Principal) -> ServiceResult<String> {
        let user = self.context.stores.users.by_id(who.user).await?;
        Ok(user.map_or_else(|| who.user.to_string(), |user| title_of(&user)))
    }
}

/// First and last name, or the e-mail address where there are none.
fn title_of(user: &User) -> String {
    let person = AlarmAssignee {
        id: user.id,
        first_name: user.first_name.clone(),
        last_name: user.last_name.clone(),
        email: user.email.clone(),
    };
    let names = [person.first_name, person.last_name];
    let names: Vec<String> = names
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        person.email
    } else {
        names.join(" ")
    }
}

pub(super) fn alarm_not_found() -> ServiceError {
    ServiceError::not_found("Requested item wasn't found!")
}
