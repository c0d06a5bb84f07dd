//! Asset profiles.

use fieldline_core::ports::StoreResult;
use fieldline_model::entity::AssetProfile;

use super::entities::TenantRecord;
use super::list::ListDefinition;
use super::profiles::ProfileRecord;
use super::query::{ColumnReader, SqlArg};
use super::record::{self, EntityRecord, EntityRowKey};

impl EntityRecord for AssetProfile {
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
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, name, is_default";
    const IN_COLUMNS: &'static [&'static str] = &["tenantId", "name", "default"];
    const ELECTED: Option<&'static str> = Some("is_default");
    const BROKEN_REFERENCE: &'static str =
        "Asset profile is referencing to non-existent tenant or rule chain!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        Ok(vec![
            self.tenant_id.0.into(),
            record::bounded("name", &self.name)?,
            self.is_default.into(),
            self.default_rule_chain_id.map(|chain| chain.id).into(),
            record::search_text(&[Some(&self.name)]),
            record::sort_key(self.description.as_deref()),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.name = columns.next()?;
        self.is_default = columns.next()?;
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
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

impl TenantRecord for AssetProfile {
    const IN_USE: &'static str = "The asset profile referenced by the assets cannot be deleted!";
}

impl ProfileRecord for AssetProfile {
    const LISTING: ListDefinition = ListDefinition {
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
    const MEMBERS: &'static str = "asset";
}
