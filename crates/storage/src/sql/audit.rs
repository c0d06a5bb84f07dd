//! What people did.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use fieldline_core::ports::{AuditFilter, AuditScope, AuditStore, StoreResult};
use fieldline_model::entity::{ActionType, AuditLog, status_name};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AuditLogId, CustomerId, EntityId, TenantId, UserId};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::months::{self, MonthlyTable};
use super::names::{self, type_code};
use super::query::{ColumnReader, RowOwner, SqlArg, SqlQuery, unreadable};
use super::record::IDS_A_STATEMENT;
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, tenant_id, customer_id, entity_type, entity_id, entity_name, user_id, user_name, \
    action, succeeded, data, details";
/// Entries in one statement: fourteen values each, and well under the parameters that either database takes.
const ENTRIES_A_STATEMENT: usize = 200;
/// Entries deleted in one statement, so that writers in between do not wait long.
const DELETED_A_STATEMENT: i64 = 10_000;
/// What has no name, or is gone.
const UNKNOWN_NAME: &str = "N/A";

const LISTING: ListDefinition = ListDefinition {
    table: "audit_log",
    select: COLUMNS,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("entityType", "entity_type"),
        ("entityName", "entity_name"),
        ("userName", "user_name"),
        ("actionType", "action"),
        ("actionStatus", "succeeded"),
    ],
};

/// The audit log in a database.
pub(super) struct SqlAuditLog(pub(super) EntityDatabase);

#[async_trait]
impl AuditStore for SqlAuditLog {
    async fn append(&self, mut actions: Vec<AuditLog>) -> StoreResult<()> {
        months::prepare(&self.0).await;
        self.name(&mut actions).await?;
        match self.insert(&actions).await {
            // A tenant is gone, and what was done in it does not matter any more.
            Err(StatementError::BrokenReference) => {
                for action in &actions {
                    match self.insert(std::slice::from_ref(action)).await {
                        Ok(()) | Err(StatementError::BrokenReference) => {}
                        Err(failure) => return Err(failure.into_error()),
                    }
                }
                Ok(())
            }
            stored => Ok(stored?),
        }
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<AuditLog>> {
        let condition = |query: SqlQuery| matching(query, tenant, filter);
        list::page(&self.0, &LISTING, page, condition, list::own_text, read).await
    }

    async fn delete_before(&self, time_ms: i64) -> StoreResult<u64> {
        let mut deleted = months::drop_before(&self.0, MonthlyTable::AuditLog, time_ms, None).await?;
        loop {
            let query = SqlQuery::new(
                "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE created_time < ",
            )
            .bind(time_ms)
            .push(" LIMIT ")
            .bind(DELETED_A_STATEMENT)
            .push(")");
            let some = self.0.execute(query).await?;
            deleted += some;
            if i64::try_from(some).unwrap_or(i64::MAX) < DELETED_A_STATEMENT {
                return Ok(deleted);
            }
        }
    }
}

impl SqlAuditLog {
    /// Looks up the names that are absent.
    async fn name(&self, actions: &mut [AuditLog]) -> StoreResult<()> {
        let mut entities: BTreeMap<TenantId, BTreeSet<EntityId>> = BTreeMap::new();
        let mut users = BTreeSet::new();
        for action in actions.iter() {
            if action.entity_name.is_none() {
                entities
                    .entry(action.tenant_id)
                    .or_default()
                    .insert(action.entity_id);
            }
            if action.user_name.is_none() {
                users.insert(action.user_id.0);
            }
        }
        let mut named = BTreeMap::new();
        for (tenant, entities) in entities {
            for (id, found) in names::names(&self.0, tenant, entities).await? {
                named.insert((tenant, id), found.name);
            }
        }
        let mut emails: BTreeMap<Uuid, String> = BTreeMap::new();
        let users: Vec<Uuid> = users.into_iter().collect();
        for some in users.chunks(IDS_A_STATEMENT) {
            let query = SqlQuery::new("SELECT id, email FROM user_account WHERE id IN (")
                .bind_list(some.iter().copied())
                .push(")");
            for row in &self.0.read(query).await? {
                let mut columns = row.columns();
                emails.insert(columns.next()?, columns.next()?);
            }
        }
        for action in actions {
            if action.entity_name.is_none() {
                action.entity_name = named.get(&(action.tenant_id, action.entity_id)).cloned();
            }
            if action.user_name.is_none() {
                // A public session has the id of its customer.
                let email = emails.get(&action.user_id.0).cloned();
                action.user_name = Some(email.unwrap_or_else(|| action.user_id.to_string()));
            }
        }
        Ok(())
    }

    async fn insert(&self, actions: &[AuditLog]) -> Result<(), StatementError> {
        let mut changes = self.0.begin().await?;
        for some in actions.chunks(ENTRIES_A_STATEMENT) {
            let mut query = SqlQuery::new("INSERT INTO audit_log (")
                .push(COLUMNS)
                .push(", search) VALUES ");
            for (index, action) in some.iter().enumerate() {
                query = query
                    .push(if index == 0 { "(" } else { ", (" })
                    .bind_list(values(action))
                    .push(")");
            }
            changes.execute(query).await?;
        }
        changes.commit().await
    }
}

fn owner(tenant: TenantId) -> RowOwner {
    if tenant.is_null() {
        RowOwner::NoTenant
    } else {
        RowOwner::Tenant(tenant.0)
    }
}

/// The actions that a filter lets through.
fn matching(query: SqlQuery, tenant: TenantId, filter: &AuditFilter) -> SqlQuery {
    let mut query = match filter.scope {
        AuditScope::Tenant => query,
        AuditScope::Customer(customer) if customer.is_null() => query.push(" AND customer_id IS NULL"),
        AuditScope::Customer(customer) => query.push(" AND customer_id = ").bind(customer.0),
        AuditScope::User(user) => query.push(" AND user_id = ").bind(user.0),
        AuditScope::Entity(entity) => query
            .push(" AND entity_id = ")
            .bind(entity.id)
            .push(" AND entity_type = ")
            .bind(type_code(entity.entity_type)),
    };
    query = query.owned_by(owner(tenant));
    if let Some(start) = filter.start_time {
        query = query.push(" AND created_time >= ").bind(start);
    }
    if let Some(end) = filter.end_time {
        query = query.push(" AND created_time <= ").bind(end);
    }
    if filter.actions.is_empty() {
        return query;
    }
    query
        .push(" AND action IN (")
        .bind_list(filter.actions.iter().map(|action| action.name()))
        .push(")")
}

/// A text that may hold anything: PostgreSQL cannot store the null character.
fn text(text: &str) -> SqlArg {
    text.replace('\0', "\u{fffd}").into()
}

/// The values of [`COLUMNS`] and of what is searched.
fn values(action: &AuditLog) -> [SqlArg; 14] {
    let entity = action.entity_name.as_deref().unwrap_or(UNKNOWN_NAME);
    let user = action.user_name.as_deref().unwrap_or(UNKNOWN_NAME);
    let status = status_name(action.succeeded);
    let search = [
        action.entity_id.entity_type.name(),
        entity,
        user,
        action.action_type.name(),
        status,
    ];
    [
        action.id.0.into(),
        action.created_time.into(),
        (!action.tenant_id.is_null()).then_some(action.tenant_id.0).into(),
        (!action.customer_id.is_null())
            .then_some(action.customer_id.0)
            .into(),
        type_code(action.entity_id.entity_type).into(),
        action.entity_id.id.into(),
        text(entity),
        action.user_id.0.into(),
        text(user),
        action.action_type.name().into(),
        action.succeeded.into(),
        text(action.action_data.get()),
        text(&action.action_failure_details),
        text(&search.join("\n").to_lowercase()),
    ]
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<AuditLog> {
    let id: Uuid = columns.next()?;
    let created_time = columns.next()?;
    let tenant: Option<Uuid> = columns.next()?;
    let customer: Option<Uuid> = columns.next()?;
    let entity_id = names::entity_id(columns)?;
    let entity_name = columns.next()?;
    let user: Uuid = columns.next()?;
    let user_name = columns.next()?;
    let action: String = columns.next()?;
    let succeeded = columns.next()?;
    let data: String = columns.next()?;
    Ok(AuditLog {
        id: AuditLogId(id),
        created_time,
        tenant_id: tenant.map_or(TenantId::NULL, TenantId),
        customer_id: customer.map_or(CustomerId::NULL, CustomerId),
        entity_id,
        entity_name: Some(entity_name),
        user_id: UserId(user),
        user_name: Some(user_name),
        action_type: ActionType::from_name(&action).ok_or_else(|| unreadable("unknown kind of action"))?,
        action_data: RawValue::from_string(data).map_err(unreadable)?,
        succeeded,
        action_failure_details: columns.next()?,
    })
}
