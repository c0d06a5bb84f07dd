//! What deleted entities leave behind.

use async_trait::async_trait;
use fieldline_core::ports::{LeftoverStore, Pass, StoreResult};
use fieldline_model::{EntityId, EntityType, Subject, TenantId};

use super::database::{Changes, Database};
use super::failure::Failure;
use super::query::{Query, unreadable};
use super::record;

const INSERT: &str = "INSERT INTO leftover (tenant_id, entity_type, entity_id, is_last, due_time) ";
/// What is noted again begins anew.
const AGAIN: &str =
    " ON CONFLICT (tenant_id, entity_type, entity_id) DO UPDATE SET is_last = FALSE, due_time = 0";

/// Leftovers in a database.
pub(super) struct Leftovers(pub(super) Database);

/// Notes one in the transaction in which its entity goes.
pub(super) fn note(subject: Subject) -> Query {
    Query::new(INSERT)
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
pub(super) fn note_from(tenant: TenantId, kind: EntityType) -> Query {
    Query::new(INSERT)
        .push("SELECT ")
        .bind(tenant.0)
        .push(", ")
        .bind(code(kind))
        .push(", id, FALSE, 0 FROM ")
}

/// See [`note_from`].
pub(super) fn noted(query: Query) -> Query {
    query.push(AGAIN)
}

fn code(kind: EntityType) -> i64 {
    i64::from(kind as u8)
}

fn named(query: Query, subject: &Subject) -> Query {
    query
        .push(" WHERE tenant_id = ")
        .bind(subject.tenant.0)
        .push(" AND entity_type = ")
        .bind(code(subject.entity.entity_type))
        .push(" AND entity_id = ")
        .bind(subject.entity.id)
}

impl Leftovers {
    /// Runs a statement for each, all or none.
    async fn each(
        &self,
        subjects: &[Subject],
        statement: impl Fn(&Subject) -> Query + Send,
    ) -> Result<(), Failure> {
        let mut changes: Changes = self.0.begin().await?;
        for subject in subjects {
            changes.execute(statement(subject)).await?;
        }
        changes.commit().await
    }
}

#[async_trait]
impl LeftoverStore for Leftovers {
    async fn note(&self, subjects: &[Subject]) -> StoreResult<()> {
        Ok(self.each(subjects, |subject| note(*subject)).await?)
    }

    async fn due(&self, pass: Pass, now_ms: i64, limit: u32) -> StoreResult<Vec<Subject>> {
        let query = Query::new("SELECT tenant_id, entity_type, entity_id FROM leftover WHERE is_last = ")
            .bind(pass == Pass::Last)
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
            Ok(Subject { tenant, entity })
        });
        subjects.collect()
    }

    async fn put_off(&self, subjects: &[Subject], pass: Pass, until_ms: i64) -> StoreResult<()> {
        let put_off = |subject: &Subject| {
            let query = Query::new("UPDATE leftover SET is_last = ")
                .bind(pass == Pass::Last)
                .push(", due_time = ")
                .bind(until_ms);
            named(query, subject)
        };
        Ok(self.each(subjects, put_off).await?)
    }

    async fn forget(&self, subjects: &[Subject]) -> StoreResult<()> {
        let forget = |subject: &Subject| named(Query::new("DELETE FROM leftover"), subject);
        Ok(self.each(subjects, forget).await?)
    }

    async fn waiting(&self) -> StoreResult<u64> {
        let query = Query::new("SELECT COUNT(*) FROM leftover WHERE is_last = ").bind(false);
        record::number(&self.0.read(query).await?)
    }
}
