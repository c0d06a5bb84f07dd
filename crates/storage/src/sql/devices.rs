//! Devices.

use std::collections::BTreeMap;

use async_trait::async_trait;
use fieldline_core::ports::{DeviceFilter, DeviceImportRow, DeviceStore, StoreResult};
use fieldline_model::entity::{Device, DeviceCredentials, DeviceInfo};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{CustomerId, DeviceId, DeviceProfileId, TenantId};
use uuid::Uuid;

use super::database::{Changes, Database};
use super::device_credentials;
use super::import::{self, Import};
use super::list::{self, Listing};
use super::query::{Arg, Columns, Owner, Query};
use super::record::{self, Record};

/// What a device is read from. Its type is the name of its profile, which is kept in the profile alone.
macro_rules! device_columns {
    () => {
        "device.id, device.created_time, device.tenant_id, device.customer_id, device.profile_id, device.name, \
         (SELECT name FROM device_profile WHERE device_profile.id = device.profile_id), device.version, device.doc"
    };
}

/// What is read beside it for a [`DeviceInfo`], where `INFO_JOINS` are made.
macro_rules! info_columns {
    () => {
        concat!(
            device_columns!(),
            ", customer.title, COALESCE(customer.is_public, FALSE), device.active"
        )
    };
}

const INFO_JOINS: &str = "LEFT JOIN customer ON customer.id = device.customer_id";

impl Record for Device {
    const NAME: &'static str = "Device";
    const TABLE: &'static str = "device";
    const COLUMNS: &'static [&'static str] = &[
        "tenant_id",
        "customer_id",
        "profile_id",
        "name",
        "search",
        "label_key",
    ];
    const SELECT: &'static str = device_columns!();
    const IN_COLUMNS: &'static [&'static str] =
        &["tenantId", "customerId", "deviceProfileId", "name", "type"];
    const BROKEN_REFERENCE: &'static str =
        "Device is referencing to non-existent tenant, customer or device profile!";

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
        ])
    }

    fn read(columns: &mut Columns<'_>) -> StoreResult<Self> {
        let id = DeviceId(columns.next()?);
        let created_time = columns.next()?;
        let tenant_id = TenantId(columns.next()?);
        let customer_id: Option<Uuid> = columns.next()?;
        let profile_id = DeviceProfileId(columns.next()?);
        let name = columns.next()?;
        let device_type = columns.next()?;
        let version = columns.next()?;
        let doc: String = columns.next()?;
        Ok(Self {
            id: Some(id),
            created_time,
            tenant_id,
            customer_id: customer_id.map_or(CustomerId::NULL, CustomerId),
            device_profile_id: Some(profile_id),
            name,
            device_type,
            version: Some(version),
            ..record::parse(&doc)?
        })
    }

    fn taken(&self, constraint: &str) -> Option<String> {
        (constraint == "device_tenant_id_name_key").then(|| "Device with such name already exists!".into())
    }
}

fn read_info(columns: &mut Columns<'_>) -> StoreResult<DeviceInfo> {
    let device = Device::read(columns)?;
    Ok(DeviceInfo {
        device_profile_name: device.device_type.clone(),
        device,
        customer_title: columns.next()?,
        customer_is_public: columns.next()?,
        active: columns.next()?,
    })
}

const PROFILE_ORDER: &str = "(SELECT search FROM device_profile WHERE device_profile.id = device.profile_id)";

const LISTING: Listing = Listing {
    table: Device::TABLE,
    select: info_columns!(),
    joins: INFO_JOINS,
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

/// Devices in a database.
pub(super) struct Devices(pub(super) Database);

#[async_trait]
impl DeviceStore for Devices {
    async fn save(&self, device: Device, create: bool) -> StoreResult<Device> {
        record::save(&self.0, device, create).await
    }

    async fn create(&self, device: Device, credentials: DeviceCredentials) -> StoreResult<Device> {
        let credentials = DeviceCredentials {
            device_id: device.id,
            ..credentials
        };
        let mut changes = self.0.begin().await?;
        let device = record::insert(&mut changes, &device).await?;
        device_credentials::insert(&mut changes, device.tenant_id, &credentials).await?;
        changes.commit().await?;
        Ok(device)
    }

    async fn get(&self, tenant: TenantId, id: DeviceId) -> StoreResult<Option<Device>> {
        record::get(&self.0, Owner::Tenant(tenant.0), id.0).await
    }

    async fn info(&self, tenant: TenantId, id: DeviceId) -> StoreResult<Option<DeviceInfo>> {
        let query = Query::new(concat!("SELECT ", info_columns!(), " FROM device "))
            .push(INFO_JOINS)
            .push(" WHERE device.id = ")
            .bind(id.0)
            .push(" AND device.tenant_id = ")
            .bind(tenant.0);
        let rows = self.0.read(query).await?;
        rows.first().map(|row| read_info(&mut row.columns())).transpose()
    }

    async fn by_name(&self, tenant: TenantId, name: &str) -> StoreResult<Option<Device>> {
        let query = record::select::<Device>()
            .push("name = ")
            .bind(name)
            .owned_by(Owner::Tenant(tenant.0));
        record::first(&self.0.read(query).await?)
    }

    async fn by_ids(&self, tenant: TenantId, ids: &[DeviceId]) -> StoreResult<Vec<Device>> {
        record::by_ids(&self.0, Owner::Tenant(tenant.0), ids.iter().map(|id| id.0)).await
    }

    async fn by_names(&self, tenant: TenantId, names: &[&str]) -> StoreResult<Vec<Device>> {
        record::by_names(&self.0, Owner::Tenant(tenant.0), names).await
    }

    async fn import(&self, rows: Vec<DeviceImportRow>) -> StoreResult<Vec<StoreResult<Device>>> {
        import::all(&self.0, &rows).await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: &DeviceFilter,
        page: &PageLink,
    ) -> StoreResult<PageData<DeviceInfo>> {
        let condition = |query: Query| matching(query, tenant, filter);
        let search = |query: Query, pattern: &str| containing(query, tenant, pattern);
        list::page(&self.0, &LISTING, page, condition, search, read_info).await
    }

    async fn delete(&self, tenant: TenantId, id: DeviceId) -> StoreResult<bool> {
        let in_use = "The device is in use and cannot be deleted!";
        record::delete::<Device>(&self.0, Owner::Tenant(tenant.0), id.0, in_use).await
    }

    async fn count(&self, tenant: TenantId) -> StoreResult<u64> {
        record::count::<Device>(&self.0, Owner::Tenant(tenant.0)).await
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
                let query = Query::new("UPDATE device SET active = ")
                    .bind(active)
                    .push(" WHERE active <> ")
                    .bind(active)
                    .push(" AND id IN (")
                    .bind_list(chunk.iter().copied())
                    .push(")");
                self.0.execute(query).await?;
            }
        }
        Ok(())
    }
}

impl Import for DeviceImportRow {
    type Entity = Device;

    fn entity(&self) -> &Device {
        &self.device
    }

    fn creates(&self) -> bool {
        self.create
    }

    async fn attach(rows: &[Self], changes: &mut Changes) -> StoreResult<()> {
        let credentials: Vec<&DeviceCredentials> =
            rows.iter().filter_map(|row| row.credentials.as_ref()).collect();
        device_credentials::replace_all(changes, &credentials).await
    }
}

/// The devices of a tenant that a filter lets through.
fn matching(mut query: Query, tenant: TenantId, filter: &DeviceFilter) -> Query {
    query = query.push(" AND device.tenant_id = ").bind(tenant.0);
    if let Some(customer) = filter.customer {
        query = query.push(" AND device.customer_id = ").bind(customer.0);
    }
    if let Some(device_type) = &filter.device_type {
        query = query
            .push(" AND device.profile_id = (SELECT id FROM device_profile WHERE name = ")
            .bind(device_type.as_str())
            .owned_by(Owner::Tenant(tenant.0))
            .push(")");
    }
    if let Some(profile) = filter.profile {
        query = query.push(" AND device.profile_id = ").bind(profile.0);
    }
    if let Some(active) = filter.active {
        query = query.push(" AND device.active = ").bind(active);
    }
    query
}

/// A text search in name and label, in the type, and in the title of the customer. The latter two are looked up among
/// the few profiles and customers first, not for each device.
fn containing(query: Query, tenant: TenantId, pattern: &str) -> Query {
    let among = |query: Query| {
        list::own_text(query, pattern)
            .owned_by(Owner::Tenant(tenant.0))
            .push(")")
    };
    let query = query
        .push("(device.search LIKE ")
        .bind(pattern)
        .push(" ESCAPE '\\' OR device.profile_id IN (SELECT id FROM device_profile WHERE ");
    let query = among(query).push(" OR device.customer_id IN (SELECT id FROM customer WHERE ");
    among(query).push(")")
}
