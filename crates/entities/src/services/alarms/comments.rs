//! Comments under alarms.

use fieldline_model::entity::{AlarmComment, AlarmCommentId, AlarmCommentType, AlarmInfo, EntityDraft};
use fieldline_model::{UserId, new_uuid};
use serde_json::{Value, json};

use super::AlarmService;
use super::user_actions::alarm_not_found;
use crate::access::Principal;
use crate::services::{EntityAction, ServiceError, ServiceErrorKind, ServiceResult};

/// Longest comment, in characters of its JSON.
const MAX_COMMENT: usize = 10_000;

impl AlarmService {
    /// Writes a comment under an alarm, or changes one of one's own where it has an id.
    ///
    /// # Errors
    /// There is no text, no such comment, or somebody else or the platform wrote it.
    pub async fn comment(
        &self,
        who: &Principal,
        info: &AlarmInfo,
        mut comment: EntityDraft<AlarmComment>,
    ) -> ServiceResult<AlarmComment> {
        let text = comment.comment.take();
        let text = text
            .filter(Value::is_object)
            .ok_or_else(|| ServiceError::invalid("Alarm comment should be specified as a JSON object!"))?;
        if text.to_string().chars().count() > MAX_COMMENT {
            return Err(ServiceError::invalid(format!(
                "Validation error: comment length must be equal or less than {MAX_COMMENT}"
            )));
        }
        let Some(id) = comment.id else {
            let comment = AlarmComment {
                alarm_id: Some(info.alarm.id),
                user_id: Some(who.user),
                comment_type: Some(AlarmCommentType::Other),
                comment: Some(text),
                ..AlarmComment::default()
            };
            return self.write(Some(who), info, comment).await;
        };
        let old = self.own_comment(who, info, id, "edit").await?;
        if old.comment_type == Some(AlarmCommentType::System) {
            return Err(ServiceError::invalid("System alarm comment can't be updated!"));
        }
        let mut text = text;
        if let Some(fields) = text.as_object_mut() {
            fields.insert("edited".to_owned(), "true".into());
            fields.insert("editedOn".to_owned(), self.context.now().into());
        }
        let comment = AlarmComment {
            comment: Some(text),
            ..old
        };
        let tenant = info.alarm.tenant_id;
        let saved = self.context.stores.alarms.save_comment(tenant, comment).await?;
        self.actions
            .push_comment(Some(who), EntityAction::CommentUpdated, info, &saved)
            .await;
        Ok(saved)
    }

    /// Replaces a comment by the note that it was deleted. Tenant administrators may delete those of others.
    ///
    /// # Errors
    /// There is no such comment, somebody else wrote it, or the platform did.
    pub async fn delete_comment(
        &self,
        who: &Principal,
        info: &AlarmInfo,
        id: AlarmCommentId,
        of_others: bool,
    ) -> ServiceResult<()> {
        let old = if of_others {
            self.stored_comment(info, id).await?
        } else {
            self.own_comment(who, info, id, "delete").await?
        };
        if old.comment_type != Some(AlarmCommentType::Other) {
            return Err(ServiceError::invalid("System comment could not be deleted"));
        }
        let user = self.title(who).await?;
        let comment = AlarmComment {
            user_id: None,
            comment_type: Some(AlarmCommentType::System),
            comment: Some(json!({
                "text": format!("Comment was deleted by user {user}"),
                "subtype": "COMMENT_DELETED",
                "userName": user,
            })),
            ..old
        };
        self.context
            .stores
            .alarms
            .save_comment(info.alarm.tenant_id, comment)
            .await?;
        Ok(())
    }

    /// A comment of the platform.
    pub(super) async fn write_system_comment(
        &self,
        who: Option<&Principal>,
        user: Option<UserId>,
        info: &AlarmInfo,
        text: Value,
    ) -> ServiceResult<()> {
        let comment = AlarmComment {
            alarm_id: Some(info.alarm.id),
            user_id: user,
            comment_type: Some(AlarmCommentType::System),
            comment: Some(text),
            ..AlarmComment::default()
        };
        self.write(who, info, comment).await.map(drop)
    }

    async fn write(
        &self,
        who: Option<&Principal>,
        info: &AlarmInfo,
        comment: AlarmComment,
    ) -> ServiceResult<AlarmComment> {
        let comment = AlarmComment {
            id: AlarmCommentId { id: new_uuid() },
            created_time: self.context.now(),
            ..comment
        };
        let tenant = info.alarm.tenant_id;
        let saved = self.context.stores.alarms.save_comment(tenant, comment).await?;
        self.actions
            .push_comment(who, EntityAction::CommentCreated, info, &saved)
            .await;
        Ok(saved)
    }

    async fn stored_comment(&self, info: &AlarmInfo, id: AlarmCommentId) -> ServiceResult<AlarmComment> {
        let (tenant, alarm) = (info.alarm.tenant_id, info.alarm.id);
        let found = self.context.stores.alarms.comment(tenant, alarm, id).await?;
        found.ok_or_else(alarm_not_found)
    }

    async fn own_comment(
        &self,
        who: &Principal,
        info: &AlarmInfo,
        id: AlarmCommentId,
        what: &str,
    ) -> ServiceResult<AlarmComment> {
        let comment = self.stored_comment(info, id).await?;
        if comment.user_id.is_some_and(|author| author != who.user) {
            return Err(ServiceError::new(
                ServiceErrorKind::Denied,
                format!("User is not allowed to {what} other user's comment"),
            ));
        }
        Ok(comment)
    }
}
