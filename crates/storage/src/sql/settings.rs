//! Settings of the installation and of people.

use async_trait::async_trait;
use fieldline_core::ports::{SettingsStore, StoreResult};
use fieldline_model::entity::{AdminSettings, UserSettingsType};
use fieldline_model::{AdminSettingsId, TenantId, UserId};
use serde_json::Value;
use uuid::Uuid;

use super::database::EntityDatabase;
use super::query::{SqlQuery, SqlRow, unreadable};
use super::record;
use super::statement_error::StatementError;

/// Settings in a database.
pub(super) struct SqlSettings(pub(super) EntityDatabase);

#[async_trait]
impl SettingsStore for SqlSettings {
    async fn admin(&self, key: &str) -> StoreResult<Option<AdminSettings>> {
        let query =
            SqlQuery::new("SELECT key, id, created_time, doc FROM admin_settings WHERE key = ").bind(key);
        self.0.read(query).await?.first().map(row).transpose()
    }

    async fn save_admin(&self, settings: AdminSettings) -> StoreResult<AdminSettings> {
        let query = SqlQuery::new("INSERT INTO admin_settings (key, id, created_time, doc) VALUES (")
            .bind(record::bounded("key", &settings.key)?)
            .push(", ")
            .bind(settings.id.0)
            .push(", ")
            .bind(settings.created_time)
            .push(", ")
            .bind(settings.json_value.to_string())
            .push(
                ") ON CONFLICT (key) DO UPDATE SET doc = excluded.doc RETURNING key, id, created_time, doc",
            );
        let rows = self.0.write(query).await?;
        rows.first()
            .map(row)
            .transpose()?
            .ok_or_else(|| unreadable("saved settings were not returned"))
    }

    async fn replace_admin(
        &self,
        settings: AdminSettings,
        read: &Value,
    ) -> StoreResult<Option<AdminSettings>> {
        let key = record::bounded("key", &settings.key)?;
        let query = SqlQuery::new("SELECT doc FROM admin_settings WHERE key = ").bind(key.clone());
        let rows = self.0.read(query).await?;
        let Some(stored) = rows.first() else {
            return Ok(None);
        };
        let stored: String = stored.columns().next()?;
        // Compared as values: a text that was written otherwise may say the same.
        let says: Value = serde_json::from_str(&stored).map_err(unreadable)?;
        if says != *read {
            return Ok(None);
        }
        let query = SqlQuery::new("UPDATE admin_settings SET doc = ")
            .bind(settings.json_value.to_string())
            .push(" WHERE key = ")
            .bind(key)
            .push(" AND doc = ")
            .bind(stored)
            .push(" RETURNING key, id, created_time, doc");
        self.0.write(query).await?.first().map(row).transpose()
    }

    async fn of_user(&self, user: UserId, kind: UserSettingsType) -> StoreResult<Option<Value>> {
        let query = SqlQuery::new("SELECT doc FROM user_settings WHERE user_id = ")
            .bind(user.0)
            .push(" AND type = ")
            .bind(kind.name());
        let rows = self.0.read(query).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let doc: String = row.columns().next()?;
        serde_json::from_str(&doc).map(Some).map_err(unreadable)
    }

    async fn save_of_user(&self, user: UserId, kind: UserSettingsType, settings: &Value) -> StoreResult<()> {
        let query = SqlQuery::new("INSERT INTO user_settings (user_id, type, doc) VALUES (")
            .bind(user.0)
            .push(", ")
            .bind(kind.name())
            .push(", ")
            .bind(settings.to_string())
            .push(") ON CONFLICT (user_id, type) DO UPDATE SET doc = excluded.doc");
        match self.0.execute(query).await {
            Ok(_) => Ok(()),
            Err(StatementError::BrokenReference) => Err(record::not_found("User")),
            Err(failure) => Err(failure.into_error()),
        }
    }
}

fn row(row: &SqlRow) -> StoreResult<AdminSettings> {
    let mut columns = row.columns();
    let key = columns.next()?;
    let id: Uuid = columns.next()?;
    let created_time = columns.next()?;
    let doc: String = columns.next()?;
    Ok(AdminSettings {
        id: AdminSettingsId(id),
        created_time,
        tenant_id: TenantId::NULL,
        key,
        json_value: serde_json::from_str(&doc).map_err(unreadable)?,
    })
}
