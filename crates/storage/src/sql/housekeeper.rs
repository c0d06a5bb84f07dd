//! What deleted entities leave behind.

use async_trait::async_trait;
use fieldline_core::ports::{CleanupPass, HousekeeperStore, StoreResult};
use fieldline_model::{EntityId, EntityKey, EntityType, TenantId};

use super::database::{EntityDatabase, SqlTransaction};
use super::query::{SqlQuery, unreadable};
use super::record;
use super::statement_error::StatementError;

const INSERT: &str = "INSERT INTO leftover (tenant_id, entity_type, entity_id, is_last, due_time) ";
/// What is noted again begins anew.
const AGAIN: &str =
    " ON CONFLICT (tenant_id, entity_type, entity_id) DO UPDATE SET is_last = FALSE, due_time = 0";

/// Leftovers in a database.
pub(super) struct SqlHousekeeper(pub(super) EntityDatabase);

/// Notes one in the transaction in which its entity goes.
pub(super) fn note(subject: EntityKey) -> SqlQuery {
    SqlQuery::new(INSERT)
        .push("VALUES (")
        .bind(subject.tenant.0)
        .push(", ")
        .bind(code(subject.entity.entity_type))
        .push(", ")
        .bind(subject.entity.id)
        .push(", FALSE, 0)")
        .push(AGAIN)
}

/// Notes those that a statement finds: it goes on with the table and the condition of the rows that go, whose `id` names the
/// entities, and ends with [`noted`].
pub(super) fn note_from(tenant: TenantId, kind: EntityType) -> SqlQuery {
    SqlQuery::new(INSERT)
        .push("SELECT ")
        .bind(tenant.0)
        .push(", ")
        .bind(code(kind))
        .push(", id, FALSE, 0 FROM ")
}

/// See [`note_from`].
pub(super) fn noted(query: SqlQuery) -> SqlQuery {
    query.push(AGAIN)
}

fn code(kind: EntityType) -> i64 {
    i64::from(kind as u8)
}

fn named(query: SqlQuery, subject: &EntityKey) -> SqlQuery {
    query
        .push(" WHERE tenant_id = ")
        .bind(subject.tenant.0)
        .push(" AND entity_type = ")
        .bind(code(subject.entity.entity_type))
        .push(" AND entity_id = ")
        .bind(subject.entity.id)
}

impl SqlHousekeeper {
    /// Runs a statement for each, all or none.
    async fn each(
        &self,
        subjects: &[EntityKey],
        statement: impl Fn(&EntityKey) -> SqlQuery + Send,
    ) -> Result<(), StatementError> {
        let mut changes: SqlTransaction = self.0.begin().await?;
        for subject in subjects {
            changes.execute(statement(subject)).await?;
        }
        changes.commit().await
    }
}

#[async_trait]
impl HousekeeperStore for SqlHousekeeper {
    async fn note(&self, subjects: &[EntityKey]) -> StoreResult<()> {
        Ok(self.each(subjects, |subject| note(*subject)).await?)
    }

    async fn due(&self, pass: CleanupPass, now_ms: i64, limit: u32) -> StoreResult<Vec<EntityKey>> {
        let query = SqlQuery::new("SELECT tenant_id, entity_type, entity_id FROM leftover WHERE is_last = ")
            .bind(pass == CleanupPass::Last)
            .push(" AND due_time <= ")
            .bind(now_ms)
            .push(" ORDER BY due_time, tenant_id, entity_type, entity_id LIMIT ")
            .bind(i64::from(limit));
        let rows = self.0.read(query).await?;
        let subjects = rows.iter().map(|row| {
            let mut columns = row.columns();
            let tenant = TenantId(columns.next()?);
            let code: i64 = columns.next()?;
            let kind = u8::try_from(code).ok().and_then(EntityType::from_code);
            let kind = kind.ok_or_else(|| unreadable("unknown type of entity"))?;
            let entity = EntityId::new(kind, columns.next()?);
            Ok(EntityKey { tenant, entity })
        });
        subjects.collect()
    }

    async fn put_off(&self, subjects: &[EntityKey], pass: CleanupPass, until_ms: i64) -> StoreResult<()> {
        let put_off = |subject: &EntityKey| {
            let query = SqlQuery::new("UPDATE leftover SET is_last = ")
                .bind(pass == CleanupPass::Last)
                .push(", due_time = ")
                .bind(until_ms);
            named(query, subject)
        };
        Ok(self.each(subjects, put_off).await?)
    }

    async fn forget(&self, subjects: &[EntityKey]) -> StoreResult<()> {
        let forget = |subject: &EntityKey| named(SqlQuery::new("DELETE FROM leftover"), subject);
        Ok(self.each(subjects, forget).await?)
    }

    async fn waiting(&self) -> StoreResult<u64> {
        let query = SqlQuery::new("SELECT COUNT(*) FROM leftover WHERE is_last = ").bind(false);
        record::number(&self.0.read(query).await?)
    }
}
