//! Device profiles.

use async_trait::async_trait;
use fieldline_core::ports::{DeviceProfileStore, StoreResult};
use fieldline_model::entity::DeviceProfile;
use fieldline_model::{DeviceProfileId, RuleChainId, TenantId};
use uuid::Uuid;

use super::list::ListDefinition;
use super::profiles::{ProfileRecord, SqlProfiles};
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
    const SELECT: &'static str = "id, created_time, tenant_id, name, is_default, provision_key, default_rule_chain_id, \
                                  firmware_id, software_id, version, doc";
    const IN_COLUMNS: &'static [&'static str] = &[
        "tenantId",
        "name",
        "default",
        "provisionDeviceKey",
        "defaultRuleChainId",
        "firmwareId",
        "softwareId",
    ];
    const BROKEN_REFERENCE: &'static str =
        "Device profile is referencing to non-existent tenant, rule chain or OTA package!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self.tenant_id, self.id, self.created_time, self.version)
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

    fn read(columns: &mut ColumnReader<'_>) -> StoreResult<Self> {
        let id = DeviceProfileId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id = TenantId(columns.next()?);
        let name = columns.next()?;
        let is_default = columns.next()?;
        let provision_device_key = columns.next()?;
        let rule_chain: Option<Uuid> = columns.next()?;
        let firmware_id = record::package(columns)?;
        let software_id = record::package(columns)?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id,
            created_time,
            tenant_id,
            name,
            is_default,
            provision_device_key,
            default_rule_chain_id: rule_chain.map(|id| RuleChainId(id).into()),
            firmware_id,
            software_id,
            version: Some(version),
            ..record::parse(&doc)?
        })
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
    const IN_USE: &'static str = "The device profile referenced by the devices cannot be deleted!";

    fn unchecked_chain(&self) -> Option<RuleChainId> {
        // The foreign key leaves out the tenant: the column was added later.
        self.default_rule_chain_id.map(|chain| RuleChainId(chain.id))
    }
}

#[async_trait]
impl DeviceProfileStore for SqlProfiles<DeviceProfile> {
    async fn by_provision_key(&self, key: &str) -> StoreResult<Option<DeviceProfile>> {
        let query = record::select::<DeviceProfile>()
            .push("provision_key = ")
            .bind(key);
        record::first(&self.database.read(query).await?)
    }
}
