//! Tenant profiles.

use async_trait::async_trait;
use fieldline_core::ports::{StoreResult, TenantProfileStore};
use fieldline_model::TenantProfileId;
use fieldline_model::entity::TenantProfile;
use fieldline_model::page::{PageData, PageLink};

use super::entities::SqlEntities;
use super::list::{self, ListDefinition};
use super::query::{ColumnReader, RowOwner, SqlArg};
use super::record::{self, EntityRecord, EntityRowKey};

impl EntityRecord for TenantProfile {
    const NAME: &'static str = "Tenant profile";
    const TABLE: &'static str = "tenant_profile";
    const COLUMNS: &'static [&'static str] = &["name", "is_default", "search", "description_key"];
    const SELECT: &'static str = "id, created_time, version, doc, name, is_default";
    const IN_COLUMNS: &'static [&'static str] = &["name", "default"];
    const ELECTED: Option<&'static str> = Some("is_default");
    const BROKEN_REFERENCE: &'static str = "Tenant profile is referencing to a non-existent entity!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::new(self, RowOwner::Installation, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            record::bounded("name", &self.name)?,
            self.is_default.into(),
            record::search_text(&[Some(&self.name)]),
            record::sort_key(self.description.as_deref()),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.name = columns.next()?;
        self.is_default = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        match constraint {
            "tenant_profile_name_key" => Some("Tenant profile with such name already exists!".into()),
            "tenant_profile_is_default_key" => Some("Another default tenant profile is present!".into()),
            _ => None,
        }
    }
}

const LISTING: ListDefinition = ListDefinition {
    table: TenantProfile::TABLE,
    select: TenantProfile::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("id", "tenant_profile.id"),
        ("name", "search"),
        ("description", "description_key"),
        ("isDefault", "is_default"),
    ],
};

#[async_trait]
impl TenantProfileStore for SqlEntities<TenantProfile> {
    async fn get(&self, id: TenantProfileId) -> StoreResult<Option<TenantProfile>> {
        record::get(&self.database, RowOwner::Installation, id.0).await
    }

    async fn default_profile(&self) -> StoreResult<Option<TenantProfile>> {
        let query = record::select::<TenantProfile>().push("is_default");
        record::first(&self.database.read(query).await?)
    }

    async fn set_default(&self, id: TenantProfileId) -> StoreResult<bool> {
        record::set_default::<TenantProfile>(&self.database, RowOwner::Installation, id.0).await
    }

    async fn list(&self, page: &PageLink) -> StoreResult<PageData<TenantProfile>> {
        list::page(
            &self.database,
            &LISTING,
            page,
            |query| query,
            list::own_text,
            TenantProfile::read,
        )
        .await
    }

    async fn delete(&self, id: TenantProfileId) -> StoreResult<bool> {
        let in_use = "The tenant profile referenced by the tenants cannot be deleted!";
        record::delete::<TenantProfile>(&self.database, RowOwner::Installation, id.0, in_use).await
    }
}
