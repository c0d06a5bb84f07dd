//! Shared subscriptions that were announced for clients of the publish/subscribe broker.

use async_trait::async_trait;
use fieldline_core::ports::{SharedSubscriptionStore, StoreError, StoreErrorKind, StoreResult};
use fieldline_model::entity::ApplicationSharedSubscription;
use fieldline_model::page::{PageData, PageLink};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, SqlArg, SqlQuery, SqlRow, unreadable};
use super::record;
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, name, topic_filter, partitions";

const LISTING: ListDefinition = ListDefinition {
    table: "shared_subscription",
    select: COLUMNS,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("name", "search"),
        ("topicFilter", "topic_filter"),
        ("partitions", "partitions"),
    ],
};

/// Shared subscriptions in a database.
pub(super) struct SqlSharedSubscriptions(pub(super) EntityDatabase);

#[async_trait]
impl SharedSubscriptionStore for SqlSharedSubscriptions {
    async fn insert(&self, subscription: &ApplicationSharedSubscription) -> StoreResult<()> {
        let query = SqlQuery::new("INSERT INTO shared_subscription (")
            .push(COLUMNS)
            .push(", search) VALUES (")
            .bind_list([
                SqlArg::from(subscription.id),
                subscription.created_time.into(),
                record::bounded("name", &subscription.name)?,
                record::bounded("topicFilter", &subscription.topic_filter)?,
                i64::from(subscription.partitions).into(),
                record::search_text(&[Some(&subscription.name)]),
            ])
            .push(")");
        match self.0.execute(query).await {
            Ok(_) => Ok(()),
            Err(StatementError::Taken(constraint)) => Err(StoreError::new(
                StoreErrorKind::Conflict,
                "There is a shared subscription of this topicFilter already!",
            )
            .caused_by(constraint)),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn rename(&self, id: Uuid, name: &str) -> StoreResult<bool> {
        let query = SqlQuery::new("UPDATE shared_subscription SET name = ")
            .bind(record::bounded("name", name)?)
            .push(", search = ")
            .bind(record::search_text(&[Some(name)]))
            .push(" WHERE id = ")
            .bind(id);
        Ok(self.0.execute(query).await? > 0)
    }

    async fn get(&self, id: Uuid) -> StoreResult<Option<ApplicationSharedSubscription>> {
        first(&self.0.read(selected().push("id = ").bind(id)).await?)
    }

    async fn by_filter(&self, filter: &str) -> StoreResult<Option<ApplicationSharedSubscription>> {
        // A text with the null character is never stored, and PostgreSQL would refuse to look for it.
        if filter.contains('\0') {
            return Ok(None);
        }
        first(
            &self
                .0
                .read(selected().push("topic_filter = ").bind(filter))
                .await?,
        )
    }

    async fn list(&self, page: &PageLink) -> StoreResult<PageData<ApplicationSharedSubscription>> {
        list::page(&self.0, &LISTING, page, |query| query, list::own_text, read).await
    }

    async fn delete(&self, id: Uuid) -> StoreResult<bool> {
        let query = SqlQuery::new("DELETE FROM shared_subscription WHERE id = ").bind(id);
        Ok(self.0.execute(query).await? > 0)
    }
}

/// `SELECT … WHERE `, to be continued with a condition.
fn selected() -> SqlQuery {
    SqlQuery::new("SELECT ")
        .push(COLUMNS)
        .push(" FROM shared_subscription WHERE ")
}

fn first(rows: &[SqlRow]) -> StoreResult<Option<ApplicationSharedSubscription>> {
    rows.first().map(|row| read(&mut row.columns())).transpose()
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<ApplicationSharedSubscription> {
    let id = columns.next()?;
    let created_time = columns.next()?;
    let name = columns.next()?;
    let topic_filter = columns.next()?;
    let partitions: i64 = columns.next()?;
    Ok(ApplicationSharedSubscription {
        id,
        created_time,
        name,
        topic_filter,
        partitions: i32::try_from(partitions).map_err(unreadable)?,
    })
}
