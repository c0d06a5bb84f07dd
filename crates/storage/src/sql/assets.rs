//! Assets.

use async_trait::async_trait;
use fieldline_core::ports::{AssetFilter, AssetImportRow, AssetStore, StoreResult};
use fieldline_model::entity::{Asset, AssetInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{AssetId, AssetProfileId, CustomerId, TenantId};
use uuid::Uuid;

use super::database::{Changes, Database};
use super::import::{self, Import};
use super::list::{self, Listing};
use super::query::{Arg, Columns, Owner, Query};
use super::record::{self, Record};

/// What a asset is read from. Its type is the name of its profile, which is kept in the profile alone.
macro_rules! asset_columns {
    () => {
        "asset.id, asset.created_time, asset.tenant_id, asset.customer_id, asset.profile_id, asset.name, \
         (SELECT name FROM asset_profile WHERE asset_profile.id = asset.profile_id), asset.version, asset.doc"
    };
}

/// What is read beside it for a [`AssetInfo`], where `INFO_JOINS` are made.
macro_rules! info_columns {
    () => {
        concat!(
            asset_columns!(),
            ", customer.title, COALESCE(customer.is_public, FALSE)"
        )
    };
}

const INFO_JOINS: &str = "LEFT JOIN customer ON customer.id = asset.customer_id";

impl Record for Asset {
    const NAME: &'static str = "Asset";
    const TABLE: &'static str = "asset";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "customer_id",
        "profile_id",
        "name",
        "search",
        "label_key",
    ];
    const SELECT: &'static str = asset_columns!();
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "customerId", "assetProfileId", "name", "type"];
    const BROKEN_REFERENCE: &'static str =
        "Asset is referencing to non-existent tenant, customer or asset profile!";

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
        let profile = self
            .asset_profile_id
            .ok_or_else(|| record::invalid("Asset profile should be specified!"))?;
        if let Some(label) = &self.label {
            record::bounded("label", label)?;
        }
        Ok(vec![
            self.tenant_id.0.into(),
            (!self.customer_id.is_null()).then_some(self.customer_id.0).into(),
            profile.0.into(),
            record::bounded("name", &self.name)?,
            record::search_text(&[Some(&self.name), self.label.as_deref()]),
            record::sort_key(self.label.as_deref()),
        ])
    }

    fn read(columns: &mut Columns<'_>) -> StoreResult<Self> {
        let id = AssetId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id = TenantId(columns.next()?);
        let customer_id: Option<Uuid> = columns.next()?;
        let profile_id = AssetProfileId(columns.next()?);
        let name = columns.next()?;
        let asset_type = columns.next()?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id: Some(id),
            created_time,
            tenant_id,
            customer_id: customer_id.map_or(CustomerId::NULL, CustomerId),
            asset_profile_id: Some(profile_id),
            name,
            asset_type,
            version: Some(version),
            ..record::parse(&doc)?
        })
    }

    fn taken(&self, constraint: &str) -> Option<String> {
        (constraint == "asset_tenant_id_name_key").then(|| "Asset with such name already exists!".into())
    }
}

fn read_info(columns: &mut Columns<'_>) -> StoreResult<AssetInfo> {
    let asset = Asset::read(columns)?;
    Ok(AssetInfo {
        asset_profile_name: asset.asset_type.clone(),
        asset,
        customer_title: columns.next()?,
        customer_is_public: columns.next()?,
    })
}

const PROFILE_ORDER: &str = "(SELECT search FROM asset_profile WHERE asset_profile.id = asset.profile_id)";

const LISTING: Listing = Listing {
    table: Asset::TABLE,
    select: info_columns!(),
    joins: INFO_JOINS,
    sorts: &[
        ("createdTime", "asset.created_time"),
        ("name", "asset.search"),
        ("type", PROFILE_ORDER),
        ("label", "asset.label_key"),
        ("assetProfileName", PROFILE_ORDER),
        (
            "customerTitle",
            "COALESCE((SELECT search FROM customer WHERE customer.id = asset.customer_id), '')",
        ),
    ],
};

/// Assets in a database.
pub(super) struct Assets(pub(super) Database);

#[async_trait]
impl AssetStore for Assets {
    async fn save(&self, asset: Asset, create: bool) -> StoreResult<Asset> {
        record::save(&self.0, asset, create).await
    }

    async fn get(&self, tenant: TenantId, id: AssetId) -> StoreResult<Option<Asset>> {
        record::get(&self.0, Owner::Tenant(tenant.0), id.0).await
    }

    async fn info(&self, tenant: TenantId, id: AssetId) -> StoreResult<Option<AssetInfo>> {
        let query = Query::new(concat!("SELECT ", info_columns!(), " FROM asset "))
            .push(INFO_JOINS)
            .push(" WHERE asset.id = ")
            .bind(id.0)
            .push(" AND asset.tenant_id = ")
            .bind(tenant.0);
        let rows = self.0.read(query).await?;
        rows.first().map(|row| read_info(&mut row.columns())).transpose()
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Asset>> {
        let query = record::select::<Asset>()
            .push("name = ")
            .bind(name)
            .owned_by(Owner::Tenant(tenant.0));
        record::first(&self.0.read(query).await?)
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[AssetId]) -> StoreResult<Vec<Asset>> {
        record::by_ids(&self.0, Owner::Tenant(tenant.0), ids.iter().map(|id| id.0)).await
    }

    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Asset>> {
        record::by_names(&self.0, Owner::Tenant(tenant.0), names).await
    }

    async fn import(&self, rows: Vec<AssetImportRow>) -> StoreResult<Vec<StoreResult<Asset>>> {
        import::all(&self.0, &rows).await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &AssetFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<AssetInfo>> {
        let condition = |query: Query| matching(query, tenant, filter);
        let search = |query: Query, pattern: &str| containing(query, tenant, pattern);
        list::page(&self.0, &LISTING, page, condition, search, read_info).await
    }

    async fn delete(&self, tenant: TenantId, id: AssetId) -> StoreResult<bool> {
        let in_use = "The asset is in use and cannot be deleted!";
        record::delete::<Asset>(&self.0, Owner::Tenant(tenant.0), id.0, in_use).await
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<Asset>(&self.0, Owner::Tenant(tenant.0)).await
    }
}

impl Import for AssetImportRow {
    type Entity = Asset;

    fn entity(&self) -> &Asset {
        &self.asset
    }

    fn creates(&self) -> bool {
        self.create
    }

    async fn attach(_: &[Self], _: &mut Changes) -> StoreResult<()> {
        Ok(())
    }
}

/// The assets of a tenant that a filter lets through.
fn matching(mut query: Query, tenant: TenantId, filter: &AssetFilter) -> Query {
    query = query.push(" AND asset.tenant_id = ").bind(tenant.0);
    if let Some(customer) = filter.customer {
        query = query.push(" AND asset.customer_id = ").bind(customer.0);
    }
    if let Some(asset_type) = &filter.asset_type {
        query = query
            .push(" AND asset.profile_id = (SELECT id FROM asset_profile WHERE name = ")
            .bind(asset_type.as_str())
            .owned_by(Owner::Tenant(tenant.0))
            .push(")");
    }
    if let Some(profile) = filter.profile {
        query = query.push(" AND asset.profile_id = ").bind(profile.0);
    }
    query
}

/// A text search in name and label, in the type, and in the title of the customer. The latter two are looked up among
/// the few profiles and customers first, not for each asset.
fn containing(query: Query, tenant: TenantId, pattern: &str) -> Query {
    let among = |query: Query| {
        list::own_text(query, pattern)
            .owned_by(Owner::Tenant(tenant.0))
            .push(")")
    };
    let query = query
        .push("(asset.search LIKE ")
        .bind(pattern)
        .push(" ESCAPE '\\' OR asset.profile_id IN (SELECT id FROM asset_profile WHERE ");
    let query = among(query).push(" OR asset.customer_id IN (SELECT id FROM customer WHERE ");
    among(query).push(")")
}
