//! Queues of the rule engine.

use async_trait::async_trait;
use fieldline_core::ports::{QueueStore, StoreResult};
use fieldline_model::entity::Queue;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{QueueId, TenantId};

use super::database::EntityDatabase;
use super::entities::{SqlEntities, TenantRecord};
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, SqlRow};
use super::record::{self, EntityRecord, EntityRowKey};

impl EntityRecord for Queue {
    const NAME: &'static str = "Queue";
    const TABLE: &'static str = "queue";
    const COLUMNS: &'static [&'static str] = &["tenant_id", "name", "topic", "partitions", "search"];
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, name, topic";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "name", "topic"];
    const BROKEN_REFERENCE: &'static str = "Queue is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::of(self.tenant_id), None)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            (!self.tenant_id.is_null()).then_some(self.tenant_id.0).into(),
            record::bounded("name", &self.name)?,
            record::bounded("topic", &self.topic)?,
            i64::from(self.partitions).into(),
            record::search_text(&[Some(&self.name)]),
        ])
    }

    fn fill(&mut self, _: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.tenant_id = columns.optional_id()?.unwrap_or_default();
        self.name = columns.next()?;
        self.topic = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        match constraint {
            "queue_tenant_id_name_key" | "queue_name_key" => {
                Some(format!("Queue with name: {} already exists!", self.name))
            }
            "queue_tenant_id_topic_key" | "queue_topic_key" => {
                Some(format!("Queue with topic: {} already exists!", self.topic))
            }
            _ => None,
        }
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: Queue::TABLE,
    select: Queue::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("name", "search"),
        ("topic", "topic"),
        ("partitions", "partitions"),
    ],
};

fn every(rows: &[SqlRow]) -> StoreResult<Vec<Queue>> {
    rows.iter().map(|row| Queue::read(&mut row.columns())).collect()
}

impl TenantRecord for Queue {
    const IN_USE: &'static str = "The queue is in use and cannot be deleted!";

    async fn delete(database: &EntityDatabase, tenant: TenantId, id: QueueId) -> StoreResult<bool> {
        record::delete::<Self>(database, RowOwner::of(tenant), id.0, Self::IN_USE).await
    }
}

#[async_trait]
impl QueueStore for SqlEntities<Queue> {
    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Queue>> {
        let query = record::select::<Queue>()
            .push("name = ")
            .bind(name)
            .owned_by(RowOwner::of(tenant));
        record::first(&self.database.read(query).await?)
    }

    async fn all(&self, tenant: TenantId) -> StoreResult<Vec<Queue>> {
        let query = record::select::<Queue>()
            .push("TRUE")
            .owned_by(RowOwner::of(tenant))
            .push(" ORDER BY name");
        every(&self.database.read(query).await?)
    }

    async fn of_all_tenants(&self) -> StoreResult<Vec<Queue>> {
        let query = record::select::<Queue>().push("TRUE ORDER BY tenant_id, name");
        every(&self.database.read(query).await?)
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Queue>> {
        let of_tenant = |query: SqlQuery| query.owned_by(RowOwner::of(tenant));
        list::page(
            &self.database,
            &LISTING,
            page,
            of_tenant,
            list::own_text,
            Queue::read,
        )
        .await
    }
}
