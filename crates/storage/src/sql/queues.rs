//! Queues of the rule engine.

use async_trait::async_trait;
use fieldline_core::ports::{QueueStore, StoreResult};
use fieldline_model::entity::Queue;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{QueueId, TenantId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, SqlRow};
use super::record::{self, EntityRecord, EntityRowKey};

impl EntityRecord for Queue {
    const NAME: &'static str = "Queue";
    const TABLE: &'static str = "queue";
    const COLUMNS: &'static [&'static str] = &["tenant_id", "name", "topic", "partitions", "search"];
    const SELECT: &'static str = "id, created_time, tenant_id, name, topic, doc";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "name", "topic"];
    const BROKEN_REFERENCE: &'static str = "Queue is referencing to non-existent tenant!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey {
            id: self.id.0,
            created_time: self.created_time,
            version: None,
            owner: owner(self.tenant_id),
        }
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

    fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Self> {
        let id = QueueId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id: Option<Uuid> = columns.next()?;
        let name = columns.next()?;
        let topic = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id,
            created_time,
            tenant_id: tenant_id.map_or(TenantId::NULL, TenantId),
            name,
            topic,
            ..record::parse(&doc)?
        })
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

/// The null tenant stands for what all tenants share.
fn owner(tenant: TenantId) -> RowOwner {
    if tenant.is_null() {
        RowOwner::NoTenant
    } else {
        RowOwner::Tenant(tenant.0)
    }
}

fn every(rows: &[SqlRow]) -> StoreResult<Vec<Queue>> {
    rows.iter().map(|row| Queue::read(&mut row.columns())).collect()
}

/// Queues in a database.
pub(super) struct SqlQueues(pub(super) EntityDatabase);

#[async_trait]
impl QueueStore for SqlQueues {
    async fn save(&self, queue: Queue, create: bool) -> StoreResult<Queue> {
        record::save(&self.0, queue, create).await
    }

    async fn get(&self, tenant: TenantId, id: QueueId) -> StoreResult<Option<Queue>> {
        record::get(&self.0, owner(tenant), id.0).await
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Queue>> {
        let query = record::select::<Queue>()
            .push("name = ")
            .bind(name)
            .owned_by(owner(tenant));
        record::first(&self.0.read(query).await?)
    }

    async fn all(&self, tenant: TenantId) -> StoreResult<Vec<Queue>> {
        let query = record::select::<Queue>()
            .push("TRUE")
            .owned_by(owner(tenant))
            .push(" ORDER BY name");
        every(&self.0.read(query).await?)
    }

    async fn of_all_tenants(&self) -> StoreResult<Vec<Queue>> {
        let query = record::select::<Queue>().push("TRUE ORDER BY tenant_id, name");
        every(&self.0.read(query).await?)
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<Queue>> {
        let of_tenant = |query: SqlQuery| query.owned_by(owner(tenant));
        list::page(&self.0, &LISTING, page, of_tenant, list::own_text, Queue::read).await
    }

    async fn delete(&self, tenant: TenantId, id: QueueId) -> StoreResult<bool> {
        let in_use = "The queue is in use and cannot be deleted!";
        record::delete::<Queue>(&self.0, owner(tenant), id.0, in_use).await
    }
}
