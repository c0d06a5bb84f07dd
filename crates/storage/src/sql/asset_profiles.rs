//! Asset profiles.

use async_trait::async_trait;
use fieldline_core::ports::{AssetProfileStore, StoreResult};
use fieldline_model::entity::AssetProfile;
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AssetProfileId, TenantId};
use uuid::Uuid;

use super::database::Database;
use super::list::{self, Listing};
use super::query::{Arg, Columns, Owner, Query};
use super::record::{self, Record};

impl Record for AssetProfile {
    const NAME: &'static str = "Asset profile";
    const TABLE: &'static str = "asset_profile";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "name",
        "is_default",
        "default_rule_chain_id",
        "search",
        "description_key",
    ];
    const SELECT: &'static str = "id, created_time, tenant_id, name, is_default, version, doc";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "name", "default"];
    const BROKEN_REFERENCE: &'static str =
        "Asset profile is referencing to non-existent tenant or rule chain!";

    fn id(&self) -> Option<Uuid> {
        self.id.map(|id| id.0)
    }

    fn created_time(&self) -> i64 {
        self.created_time
    }

    fn version(&self) -> Option<i64> {
        self.version
    }

    fn owner(&self) -> Owner {
        Owner::Tenant(self.tenant_id.0)
    }

    fn values(&self) -> StoreResult<Vec<Arg>> {
        Ok(vec![
            self.tenant_id.0.into(),
            record::bounded("name", &self.name)?,
            self.is_default.into(),
            self.default_rule_chain_id.map(|chain| chain.id).into(),
            record::search_text(&[Some(&self.name)]),
            record::sort_key(self.description.as_deref()),
        ])
    }

    fn read(columns: &mut Columns<'_>) -> StoreResult<Self> {
        let id = AssetProfileId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id = TenantId(columns.next()?);
        let name = columns.next()?;
        let is_default = columns.next()?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id: Some(id),
            created_time,
            tenant_id,
            name,
            is_default,
            version: Some(version),
            ..record::parse(&doc)?
        })
    }

    fn taken(&self, constraint: &str) -> Option<String> {
        let message = match constraint {
            "asset_profile_tenant_id_name_key" => "Asset profile with such name already exists!",
            "asset_profile_tenant_id_key" => {
                "Another default asset profile is present in scope of current tenant!"
            }
            _ => return None,
        };
        Some(message.into())
    }
}

const LISTING: Listing = Listing {
    table: AssetProfile::TABLE,
    select: AssetProfile::SELECT,
    joins: "",
    sorts: &[
        ("createdTime", "created_time"),
        ("name", "search"),
        ("description", "description_key"),
        ("isDefault", "is_default"),
    ],
};

/// Asset profiles in a database.
pub(super) struct AssetProfiles(pub(super) Database);

#[async_trait]
impl AssetProfileStore for AssetProfiles {
    async fn save(&self, profile: AssetProfile, create: bool) -> StoreResult<AssetProfile> {
        record::save(&self.0, profile, create).await
    }

    async fn get(&self, tenant: TenantId, id: AssetProfileId) -> StoreResult<Option<AssetProfile>> {
        record::get(&self.0, Owner::Tenant(tenant.0), id.0).await
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<AssetProfile>> {
        let query = record::select::<AssetProfile>()
            .push("name = ")
            .bind(name)
            .owned_by(Owner::Tenant(tenant.0));
        record::first(&self.0.read(query).await?)
    }

    async fn default_profile(&self, tenant: TenantId) -> StoreResult<Option<AssetProfile>> {
        let query = record::select::<AssetProfile>()
            .push("is_default")
            .owned_by(Owner::Tenant(tenant.0));
        record::first(&self.0.read(query).await?)
    }

    async fn set_default(&self, tenant: TenantId, id: AssetProfileId) -> StoreResult<bool> {
        record::set_default::<AssetProfile>(&self.0, Owner::Tenant(tenant.0), id.0).await
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[AssetProfileId]) -> StoreResult<Vec<AssetProfile>> {
        record::by_ids(&self.0, Owner::Tenant(tenant.0), ids.iter().map(|id| id.0)).await
    }

    async fn list(&self, tenant: TenantId, page: &PageLink) -> StoreResult<PageData<AssetProfile>> {
        let of_tenant = |query: Query| query.owned_by(Owner::Tenant(tenant.0));
        list::page(
            &self.0,
            &LISTING,
            page,
            of_tenant,
            list::own_text,
            AssetProfile::read,
        )
        .await
    }

    async fn delete(&self, tenant: TenantId, id: AssetProfileId) -> StoreResult<bool> {
        let in_use = "The asset profile referenced by the assets cannot be deleted!";
        record::delete::<AssetProfile>(&self.0, Owner::Tenant(tenant.0), id.0, in_use).await
    }
}
