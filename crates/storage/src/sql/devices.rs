//! Devices.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_core::ports::{DeviceFilter, DeviceStore, StoreResult};
use fieldline_model::entity::{Device, DeviceCredentials, DeviceInfo};
use fieldline_model::{DeviceId, OtaPackageId, TenantId};
use uuid::Uuid;

use super::assignables::{AssignableRecord, BY_CUSTOMER, of_customer, of_profile};
use super::database::SqlTransaction;
use super::device_credentials;
use super::entities::{SqlEntities, TenantRecord};
use super::kinds::KindTitles;
use super::list::ListDefinition;
use super::query::{ColumnReader, SqlArg, SqlQuery};
use super::record::{self, EntityRecord, EntityRowKey};
use super::search::RelatedTable;

/// What a device is read from. Its type is the name of its profile, which is kept in the profile alone.
macro_rules! device_columns {
    () => {
        "device.id, device.created_time, device.version, device.doc, device.tenant_id, device.customer_id, \
         device.profile_id, device.name, \
         (SELECT name FROM device_profile WHERE device_profile.id = device.profile_id), device.firmware_id, \
         device.software_id"
    };
}

/// What is read beside it for a [`DeviceInfo`].
macro_rules! info_columns {
    () => {
        concat!(
            device_columns!(),
            ", customer.title, COALESCE(customer.is_public, FALSE), device.active"
        )
    };
}

impl EntityRecord for Device {
    const NAME: &'static str = "Device";
    const TABLE: &'static str = "device";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "customer_id",
        "profile_id",
        "name",
        "search",
        "label_key",
        "firmware_id",
        "software_id",
    ];
    const SELECT: &'static str = device_columns!();
    const IN_COLUMNS: &'static [&'static str] = &[
        "tenantId",
        "customerId",
        "deviceProfileId",
        "name",
        "type",
        "firmwareId",
        "softwareId",
    ];
    const BROKEN_REFERENCE: &'static str =
        "Device is referencing to non-existent tenant, customer, device profile or OTA package!";

    fn key(&self) -> EntityRowKey {
        EntityRowKey::of_tenant(self, self.tenant_id, self.version)
    }

    fn values(&self) -> StoreResult<Vec<SqlArg>> {
        let profile = self
            .device_profile_id
            .ok_or_else(|| record::invalid("Device profile should be specified!"))?;
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
            self.firmware_id.map(|id| id.id).into(),
            self.software_id.map(|id| id.id).into(),
        ])
    }

    fn fill(&mut self, version: i64, columns: &mut ColumnReader<'_>) -> StoreResult<()> {
        self.version = Some(version);
        self.tenant_id = columns.id()?;
        self.customer_id = columns.optional_id()?.unwrap_or_default();
        self.device_profile_id = Some(columns.id()?);
        self.name = columns.next()?;
        self.device_type = columns.next()?;
        self.firmware_id = columns.optional_id::<OtaPackageId>()?.map(Into::into);
        self.software_id = columns.optional_id::<OtaPackageId>()?.map(Into::into);
        Ok(())
    }

    fn conflict_message(&self, constraint: &str) -> Option<String> {
        (constraint == "device_tenant_id_name_key").then(|| "Device with such name already exists!".into())
    }
}

const PROFILE_ORDER: &str = "(SELECT search FROM device_profile WHERE device_profile.id = device.profile_id)";

impl TenantRecord for Device {
    const IN_USE: &'static str = "The device is in use and cannot be deleted!";
}

impl AssignableRecord for Device {
    const LISTING: ListDefinition = ListDefinition {
        table: Device::TABLE,
        select: info_columns!(),
        joins: "LEFT JOIN customer ON customer.id = device.customer_id",
        sorts: &[
            ("createdTime", "device.created_time"),
            ("name", "device.search"),
            ("type", PROFILE_ORDER),
            ("label", "device.label_key"),
            ("deviceProfileName", PROFILE_ORDER),
            (
                "customerTitle",
                "COALESCE((SELECT search FROM customer WHERE customer.id = device.customer_id), '')",
            ),
            ("active", "device.active"),
        ],
    };
    const TITLES: KindTitles = KindTitles {
        select: "SELECT id, name, doc FROM device WHERE id IN (",
        labeled: true,
    };
    const RELATED: &'static [RelatedTable] = &[
        RelatedTable {
            column: "profile_id",
            table: "device_profile",
        },
        BY_CUSTOMER,
    ];

    fn read_info(columns: &mut ColumnReader<'_>) -> StoreResult<DeviceInfo> {
        let device = Device::read(columns)?;
        Ok(DeviceInfo {
            device_profile_name: device.device_type.clone(),
            device,
            customer_title: columns.next()?,
            customer_is_public: columns.next()?,
            active: columns.next()?,
        })
    }

    fn matching(query: SqlQuery, tenant: TenantId, filter: &DeviceFilter) -> SqlQuery {
        let (name, id) = (filter.device_type.as_deref(), filter.profile.map(|id| id.0));
        let query = of_profile(
            of_customer(query, filter.customer),
            tenant,
            "device_profile",
            name,
            id,
        );
        match filter.active {
            Some(active) => query.push(" AND active = ").bind(active),
            None => query,
        }
    }

    async fn attach(along: &[&Option<DeviceCredentials>], changes: &mut SqlTransaction) -> StoreResult<()> {
        let credentials: Vec<&DeviceCredentials> = along.iter().copied().flatten().collect();
        device_credentials::replace_all(changes, &credentials).await
    }
}

#[async_trait]
impl DeviceStore for SqlEntities<Device> {
    async fn create(&self, device: Device, credentials: DeviceCredentials) -> StoreResult<Device> {
        let credentials = DeviceCredentials {
            device_id: device.id,
            ..credentials
        };
        let mut changes = self.database.begin().await?;
        let device = record::insert_within(&mut changes, &device).await?;
        device_credentials::insert(&mut changes, device.tenant_id, &credentials).await?;
        changes.commit().await?;
        Ok(device)
    }

    async fn set_active(&self, changes: &[(DeviceId, bool)]) -> StoreResult<()> {
        // The last change of a device counts; in the order of ids, so that concurrent batches do not lock each other out.
        let last: BTreeMap<Uuid, bool> = changes.iter().map(|(id, active)| (id.0, *active)).collect();
        for active in [true, false] {
            let ids: Vec<Uuid> = last
                .iter()
                .filter(|(_, changed)| **changed == active)
                .map(|(id, _)| *id)
                .collect();
            for chunk in ids.chunks(record::IDS_A_STATEMENT) {
                let query = SqlQuery::new("UPDATE device SET active = ")
                    .bind(active)
                    .push(" WHERE active <> ")
                    .bind(active)
                    .push(" AND id IN (")
                    .bind_list(chunk.iter().copied())
                    .push(")");
                self.database.execute(query).await?;
            }
        }
        Ok(())
    }

    async fn active_after(
        &self,
        tenant: TenantId,
        after: Option<(i64, DeviceId)>,
        limit: u32,
    ) -> StoreResult<Vec<(i64, DeviceId)>> {
        let mut query = SqlQuery::new("SELECT created_time, id FROM device WHERE tenant_id = ")
            .bind(tenant.0)
            .push(" AND active = ")
            .bind(true);
        if let Some((created_time, id)) = after {
            query = query
                .push(" AND (created_time, id) > (")
                .bind(created_time)
                .push(", ")
                .bind(id.0)
                .push(")");
        }
        let query = query
            .push(" ORDER BY created_time, id LIMIT ")
            .bind(i64::from(limit));
        let rows = self.database.read(query).await?;
        rows.iter()
            .map(|row| {
                let mut columns = row.columns();
                Ok((columns.next()?, DeviceId(columns.next()?)))
            })
            .collect()
    }
}
