//! Comments under alarms.

use fieldline_core::ports::StoreResult;
use fieldline_model::entity::{AlarmComment, AlarmCommentId, AlarmCommentInfo, AlarmCommentType, User};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AlarmId, TenantId, UserId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlQuery, unreadable};
use super::record;
use super::statement_error::StatementError;

/// What a comment is read from.
macro_rules! comment_columns {
    () => {
        "alarm_comment.id, alarm_comment.created_time, alarm_comment.alarm_id, alarm_comment.user_id, \
         alarm_comment.type, alarm_comment.comment"
    };
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<AlarmComment> {
    let id = columns.next()?;
    let created_time = columns.next()?;
    let alarm = AlarmId(columns.next()?);
    let user: Option<Uuid> = columns.next()?;
    let kind: String = columns.next()?;
    let comment: String = columns.next()?;
    Ok(AlarmComment {
        id: AlarmCommentId { id },
        created_time,
        alarm_id: Some(alarm),
        user_id: user.map(UserId),
        comment_type: Some(
            AlarmCommentType::from_name(&kind)
                .ok_or_else(|| unreadable(format!("unknown comment type {kind}")))?,
        ),
        comment: Some(serde_json::from_str(&comment).map_err(unreadable)?),
    })
}

const LISTING: ListDefinition = ListDefinition {
    table: "alarm_comment",
    select: comment_columns!(),
    joins: "",
    sorts: &[
        ("createdTime", "alarm_comment.created_time"),
        ("id", "alarm_comment.id"),
    ],
};

pub(super) async fn save(
    database: &EntityDatabase,
    tenant: TenantId,
    comment: &AlarmComment,
) -> StoreResult<AlarmComment> {
    let Some(alarm) = comment.alarm_id else {
        return Err(record::invalid("Alarm id should be specified!"));
    };
    let Some(text) = &comment.comment else {
        return Err(record::invalid("Comment should be specified!"));
    };
    // Taken from the alarm itself, so that there is none under an alarm of another tenant.
    let query = SqlQuery::new(
        "INSERT INTO alarm_comment (id, created_time, user_id, type, comment, alarm_id, tenant_id) SELECT ",
    )
    .bind(comment.id.id)
    .push(", CAST(")
    .bind(comment.created_time)
    .push(" AS BIGINT), ")
    .bind(comment.user_id.map(|user| user.0))
    .push(", ")
    .bind(comment.comment_type.unwrap_or(AlarmCommentType::Other).name())
    .push(", ")
    .bind(text.to_string())
    .push(", id, tenant_id FROM alarm WHERE id = ")
    .bind(alarm.0)
    .owned_by(RowOwner::Tenant(tenant.0))
    .push(
        " ON CONFLICT (id) DO UPDATE SET user_id = excluded.user_id, type = excluded.type, comment = \
         excluded.comment WHERE alarm_comment.alarm_id = excluded.alarm_id RETURNING ",
    )
    .push(comment_columns!());
    let rows = database.write(query).await.map_err(StatementError::into_error)?;
    match rows.first() {
        Some(row) => read(&mut row.columns()),
        None => Err(record::not_found("Alarm")),
    }
}

pub(super) async fn get(
    database: &EntityDatabase,
    tenant: TenantId,
    alarm: AlarmId,
    id: AlarmCommentId,
) -> StoreResult<Option<AlarmComment>> {
    let query = SqlQuery::new(concat!(
        "SELECT ",
        comment_columns!(),
        " FROM alarm_comment WHERE id = "
    ))
    .bind(id.id)
    .push(" AND alarm_id = ")
    .bind(alarm.0)
    .owned_by(RowOwner::Tenant(tenant.0));
    let rows = database.read(query).await?;
    rows.first().map(|row| read(&mut row.columns())).transpose()
}

pub(super) async fn list(
    database: &EntityDatabase,
    tenant: TenantId,
    alarm: AlarmId,
    page: &PageLink,
) -> StoreResult<PageData<AlarmCommentInfo>> {
    let condition = |query: SqlQuery| {
        query
            .push(" AND alarm_comment.alarm_id = ")
            .bind(alarm.0)
            .push(" AND alarm_comment.tenant_id = ")
            .bind(tenant.0)
    };
    let everything = |query: SqlQuery, _: &str| query.push("TRUE");
    let comments = list::page(database, &LISTING, page, condition, everything, read).await?;
    let authors = comments
        .data
        .iter()
        .filter_map(|comment| comment.user_id)
        .map(|user| user.0);
    let authors: Vec<User> = record::by_ids(database, RowOwner::Tenant(tenant.0), authors).await?;
    Ok(comments.map(|comment| {
        let author = authors.iter().find(|user| Some(user.id) == comment.user_id);
        AlarmCommentInfo {
            first_name: author.and_then(|user| user.first_name.clone()),
            last_name: author.and_then(|user| user.last_name.clone()),
            email: author.map(|user| user.email.clone()),
            comment,
        }
    }))
}
