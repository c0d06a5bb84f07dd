//! Assets.

use fieldline_core::ports::{AssetFilter, StoreResult};
use fieldline_model::TenantId;
use fieldline_model::entity::{Asset, AssetInfo};

use super::assignables::{AssignableRecord, BY_CUSTOMER, of_customer, of_profile};
use super::entities::TenantRecord;
use super::kinds::KindTitles;
use super::list::ListDefinition;
use super::query::{ColumnReader, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey};
use super::search::RelatedTable;

/// What an asset is read from. Its type is the name of its profile, which is kept in the profile alone.
macro_rules! asset_columns {
    () => {
        "asset.id, asset.created_time, asset.version, asset.doc, asset.tenant_id, asset.customer_id, asset.profile_id, \
         asset.name, (SELECT name FROM asset_profile WHERE asset_profile.id = asset.profile_id)"
    };
}

/// What is read beside it for an [`AssetInfo`].
macro_rules! info_columns {
    () => {
        concat!(
            asset_columns!(),
            ", customer.title, COALESCE(customer.is_public, FALSE)"
        )
    };
}

impl EntityRecord for Asset {
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

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
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

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.customer_id = columns.optional_id()?.unwrap_or_default();
        self.asset_profile_id = Some(columns.id()?);
        self.name = columns.next()?;
        self.asset_type = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "asset_tenant_id_name_key").then(|| "Asset with such name already exists!".into())
    }
}

const PROFILE_ORDER: &str = "(SELECT search FROM asset_profile WHERE asset_profile.id = asset.profile_id)";

impl TenantRecord for Asset {
    const IN_USE: &'static str = "The asset is in use and cannot be deleted!";
}

impl AssignableRecord for Asset {
    const LISTING: ListDefinition = ListDefinition {
        table: Asset::TABLE,
        select: info_columns!(),
        joins: "LEFT JOIN customer ON customer.id = asset.customer_id",
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
    const TITLES: KindTitles = KindTitles {
        select: "SELECT id, name, doc FROM asset WHERE id IN (",
        labeled: true,
    };
    const RELATED: &'static [RelatedTable] = &[
        RelatedTable {
            column: "profile_id",
            table: "asset_profile",
        },
        BY_CUSTOMER,
    ];

    fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<AssetInfo> {
        let asset = Asset::read(columns)?;
        Ok(AssetInfo {
            asset_profile_name: asset.asset_type.clone(),
            asset,
            customer_title: columns.next()?,
            customer_is_public: columns.next()?,
        })
    }

    fn matching(query: SqlQuery, tenant: TenantId, filter: &AssetFilter) -> SqlQuery {
        let (name, id) = (filter.asset_type.as_deref(), filter.profile.map(|id| id.0));
        of_profile(
            of_customer(query, filter.customer),
            tenant,
            "asset_profile",
            name,
            id,
        )
    }
}
