//! Keys that programs use in the place of a user's password.

use async_trait::async_trait;
use fieldline_core::ports::{ApiKeyChange, ApiKeyStore, StoreResult};
use fieldline_model::entity::ApiKeyInfo;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{ApiKeyId, TenantId, UserId};
use uuid::Uuid;

use super::database::EntityDatabase;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, SqlQuery, SqlRow, unreadable};
use super::record;
use super::statement_error::StatementError;

const COLUMNS: &str = "id, created_time, tenant_id, user_id, enabled, expiration, description";

const LISTING: ListDefinition = ListDefinition {
    table: "api_key",
    select: COLUMNS,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("description", "search"),
        ("enabled", "enabled"),
        ("expirationTime", "expiration"),
    ],
};

/// Keys in a database.
pub(super) struct SqlApiKeys(pub(super) EntityDatabase);

#[async_trait]
impl ApiKeyStore for SqlApiKeys {
    async fn create(&self, key: ApiKeyInfo, hash: &str) -> StoreResult<ApiKeyInfo> {
        let query = SqlQuery::new(
            "INSERT INTO api_key (id, created_time, tenant_id, user_id, value_hash, enabled, expiration, description, \
             search) VALUES (",
        )
        .bind_list([
            key.id.0.into(),
            key.created_time.into(),
            (!key.tenant_id.is_null()).then_some(key.tenant_id.0).into(),
            key.user_id.0.into(),
            hash.into(),
            key.enabled.into(),
            key.expiration_time.into(),
            record::bounded("description", &key.description)?,
            record::search_text(&[Some(&key.description)]),
        ])
        .push(") RETURNING ")
        .push(COLUMNS);
        match self.0.write(query).await {
            Ok(rows) => first(&rows)?.ok_or_else(|| unreadable("a saved key was not returned")),
            Err(StatementError::BrokenReference) => Err(record::not_found("User")),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn update(&self, id: ApiKeyId, change: ApiKeyChange<'_>) -> StoreResult<Option<ApiKeyInfo>> {
        let mut query = SqlQuery::new("UPDATE api_key SET id = id");
        if let Some(description) = change.description {
            query = query
                .push(", description = ")
                .bind(record::bounded("description", description)?)
                .push(", search = ")
                .bind(record::search_text(&[Some(description)]));
        }
        if let Some(enabled) = change.enabled {
            query = query.push(", enabled = ").bind(enabled);
        }
        let query = query
            .push(" WHERE id = ")
            .bind(id.0)
            .push(" RETURNING ")
            .push(COLUMNS);
        first(&self.0.write(query).await?)
    }

    async fn get(&self, id: ApiKeyId) -> StoreResult<Option<ApiKeyInfo>> {
        let query = SqlQuery::new("SELECT ")
            .push(COLUMNS)
            .push(" FROM api_key WHERE id = ")
            .bind(id.0);
        first(&self.0.read(query).await?)
    }

    async fn by_hash(&self, hash: &str) -> StoreResult<Option<ApiKeyInfo>> {
        let query = SqlQuery::new("SELECT ")
            .push(COLUMNS)
            .push(" FROM api_key WHERE value_hash = ")
            .bind(hash);
        first(&self.0.read(query).await?)
    }

    async fn list(&self, user: UserId, page: &PageLink) -> StoreResult<PageData<ApiKeyInfo>> {
        let condition = |query: SqlQuery| query.push(" AND user_id = ").bind(user.0);
        list::page(&self.0, &LISTING, page, condition, list::own_text, read).await
    }

    async fn delete(&self, id: ApiKeyId) -> StoreResult<bool> {
        let query = SqlQuery::new("DELETE FROM api_key WHERE id = ").bind(id.0);
        Ok(self.0.execute(query).await? > 0)
    }
}

fn first(rows: &[SqlRow]) -> StoreResult<Option<ApiKeyInfo>> {
    rows.first().map(|row| read(&mut row.columns())).transpose()
}

fn read(columns: &mut ColumnReader<'_>) -> StoreResult<ApiKeyInfo> {
    let id: Uuid = columns.next()?;
    let created_time = columns.next()?;
    let tenant: Option<Uuid> = columns.next()?;
    let user: Uuid = columns.next()?;
    Ok(ApiKeyInfo {
        id: ApiKeyId(id),
        created_time,
        tenant_id: tenant.map_or(TenantId::NULL, TenantId),
        user_id: UserId(user),
        enabled: columns.next()?,
        expiration_time: columns.next()?,
        description: columns.next()?,
        expired: false,
    })
}
