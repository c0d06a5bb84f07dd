//! Device profiles.

use async_trait::async_trait;
use fieldline_core::ports::{DeviceProfileStore, StoreResult};
use fieldline_model::entity::{DeviceProfile, RuleChain};
use fieldline_model::{OtaPackageId, RuleChainId};

use super::database::EntityDatabase;
use super::entities::{SqlEntities, TenantRecord};
use super::list::ListDefinition;
use super::profiles::ProfileRecord;
use super::query::{ColumnReader, SqlArg};
use super::record::{self, EntityRecord, EntityRowKey};

impl EntityRecord for DeviceProfile {
    const NAME: &'static str = "Device profile";
    const TABLE: &'static str = "device_profile";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "name",
        "is_default",
        "provision_key",
        "search",
        "type_key",
        "transport_type",
        "description_key",
        "default_rule_chain_id",
        "firmware_id",
        "software_id",
    ];
    const SELECT: &'static str = "id, created_time, version, doc, tenant_id, name, is_default, provision_key, \
                                  default_rule_chain_id, firmware_id, software_id";
    const IN_COLUMNS: &'static [&'static str] = &[
        "tenantId",
        "name",
        "default",
        "provisionDeviceKey",
        "defaultRuleChainId",
        "firmwareId",
        "softwareId",
    ];
    const ELECTED: Option<&'static str> = Some("is_default");
    const BROKEN_REFERENCE: &'static str =
        "Device profile is referencing to non-existent tenant, rule chain or OTA package!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let provision_key = match &self.provision_device_key {
            Some(key) => record::bounded("provisionDeviceKey", key)?,
            None => SqlArg::Text(None),
        };
        Ok(vec![
            self.tenant_id.0.into(),
            record::bounded("name", &self.name)?,
            self.is_default.into(),
            provision_key,
            record::search_text(&[Some(&self.name)]),
            record::sort_key(self.profile_type.as_deref()),
            self.transport_type.name().into(),
            record::sort_key(self.description.as_deref()),
            self.default_rule_chain_id.map(|chain| chain.id).into(),
            self.firmware_id.map(|id| id.id).into(),
            self.software_id.map(|id| id.id).into(),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.name = columns.next()?;
        self.is_default = columns.next()?;
        self.provision_device_key = columns.next()?;
        self.default_rule_chain_id = columns.optional_id::<RuleChainId>()?.map(Into::into);
        self.firmware_id = columns.optional_id::<OtaPackageId>()?.map(Into::into);
        self.software_id = columns.optional_id::<OtaPackageId>()?.map(Into::into);
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        let message = match constraint {
            "device_profile_tenant_id_name_key" => "Device profile with such name already exists!",
            "device_profile_provision_key_key"
                if self.provision_type.as_deref() == Some("X509_CERTIFICATE_CHAIN") =>
            {
                "Device profile with such certificate already exists!"
            }
            "device_profile_provision_key_key" => {
                "Device profile with such provision device key already exists!"
            }
            "device_profile_tenant_id_key" => {
                "Another default device profile is present in scope of current tenant!"
            }
            _ => return None,
        };
        Some(message.into())
    }

    async fn insert(self, database: &EntityDatabase) -> StoreResult<Self> {
        check_chain(database, &self).await?;
        record::insert(database, self).await
    }

    async fn update(self, database: &EntityDatabase) -> StoreResult<Self> {
        check_chain(database, &self).await?;
        record::update(database, self).await
    }
}

/// Whether the tenant has the rule chain that a profile names: the foreign key leaves out the tenant, as the column was added later.
async fn check_chain(database: &EntityDatabase, profile: &DeviceProfile) -> StoreResult<()> {
    if let Some(chain) = profile.default_rule_chain_id {
        let found = record::get::<RuleChain>(database, profile.key().owner, chain.id).await?;
        found.ok_or_else(|| record::invalid(DeviceProfile::BROKEN_REFERENCE))?;
    }
    Ok(())
}

impl TenantRecord for DeviceProfile {
    const IN_USE: &'static str = "The device profile referenced by the devices cannot be deleted!";
}

impl ProfileRecord for DeviceProfile {
    const LISTING: ListDefinition = ListDefinition {
        table: DeviceProfile::TABLE,
        select: DeviceProfile::SELECT,
        joins: "",
        sorts: &[
            ("createdTime", "created_time"),
            ("name", "search"),
            ("type", "type_key"),
            ("transportType", "transport_type"),
            ("description", "description_key"),
            ("isDefault", "is_default"),
        ],
    };
    const MEMBERS: &'static str = "device";
}

#[async_trait]
impl DeviceProfileStore for SqlEntities<DeviceProfile> {
    async fn by_provision_key(&self, key: &str) -> StoreResult<Option<DeviceProfile>> {
        let query = record::select::<DeviceProfile>()
            .push("provision_key = ")
            .bind(key);
        record::first(&self.database.read(query).await?)
    }
}
