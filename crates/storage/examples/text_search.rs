//! Measures text search in the list of devices, and what its index costs when devices are created.
//!
//! `cargo run --release -p fieldline-storage --example text_search -- [devices] [postgres://…]`
//!
//! Without the address of an empty PostgreSQL database, an SQLite file in a temporary directory is used.

use std::time::Instant;

use fieldline_core::ports::{EntityStores, ImportRow};
use fieldline_model::entity::{Device, DeviceCredentials, DeviceProfile, Tenant};
use fieldline_model::page::{PageLink, SortOrder};
use fieldline_model::{DeviceId, DeviceProfileId, TenantId};
use fieldline_storage::sql::{EntityDatabase, Options};
use uuid::Uuid;

/// Devices that one import brings.
const IMPORTED: usize = 1_000;
/// Devices that are created one after the other.
const CREATED: usize = 2_000;
const SEARCHES: usize = 100;

type SearchBenchError = Box<dyn std::error::Error>;

struct DeviceFleet {
    stores: EntityStores,
    tenant: TenantId,
    profile: DeviceProfileId,
}

impl DeviceFleet {
    async fn new(stores: EntityStores) -> Result<Self, SearchBenchError> {
        let tenant = Tenant {
            id: TenantId(Uuid::now_v7()),
            title: "Utility".to_owned(),
            ..Tenant::default()
        };
        let tenant = stores.tenants.insert(tenant).await?.id;
        let profile = DeviceProfile {
            id: DeviceProfileId(Uuid::now_v7()),
            tenant_id: tenant,
            name: "meter".to_owned(),
            ..DeviceProfile::default()
        };
        let profile = stores.device_profiles.insert(profile).await?.id;
        Ok(Self {
            stores,
            tenant,
            profile,
        })
    }

    fn device(&self, number: usize) -> (Device, DeviceCredentials) {
        let id = DeviceId(Uuid::now_v7());
        let device = Device {
            id,
            created_time: 1_700_000_000_000 + number as i64,
            tenant_id: self.tenant,
            name: format!("Device {number:06}"),
            label: Some(format!("Street {} {}", number % 977, number % 89)),
            device_profile_id: Some(self.profile),
            ..Device::default()
        };
        (
            device,
            DeviceCredentials::access_token(id, format!("t{number}"), 1),
        )
    }

    async fn import(&self, numbers: std::ops::Range<usize>) -> Result<(), SearchBenchError> {
        let rows = numbers.map(|number| {
            let (entity, credentials) = self.device(number);
            ImportRow {
                entity,
                create: true,
                along: Some(credentials),
            }
        });
        for answer in self.stores.devices.import(rows.collect(), &()).await? {
            answer?;
        }
        Ok(())
    }

    async fn search(&self, text: &str, order: SortOrder) -> Result<u64, SearchBenchError> {
        let link = PageLink {
            text_search: Some(text.to_owned()),
            sort_property: Some("name".to_owned()),
            sort_order: Some(order),
            ..PageLink::first(100)
        };
        let found = self
            .stores
            .devices
            .list(self.tenant, &Default::default(), &link)
            .await?;
        Ok(found.total_elements)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), SearchBenchError> {
    let mut arguments = std::env::args().skip(1);
    let devices: usize = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("entities.db");
    let address = arguments.next();
    let database = match &address {
        Some(address) => EntityDatabase::postgres(address, &Options::default()).await?,
        None => EntityDatabase::sqlite(&file, &Options::default()).await?,
    };
    let fleet = DeviceFleet::new(database.entity_stores()).await?;

    let began = Instant::now();
    for first in (0..devices).step_by(IMPORTED) {
        fleet.import(first..devices.min(first + IMPORTED)).await?;
    }
    println!(
        "imported    {:>9.0} devices/s",
        devices as f64 / began.elapsed().as_secs_f64()
    );
    let began = Instant::now();
    for number in devices..devices + CREATED {
        let (device, credentials) = fleet.device(number);
        fleet.stores.devices.create(device, credentials).await?;
    }
    println!(
        "created     {:>9.0} devices/s, one after the other",
        CREATED as f64 / began.elapsed().as_secs_f64()
    );

    println!("{:34} {:>9} {:>9} {:>9}", "text", "found", "p50 ms", "p99 ms");
    let some = |of: usize| move |n: usize| n * 7_919 % of;
    let (hundred, one) = (some(devices.div_ceil(100)), some(devices));
    let texts: [(&str, &dyn Fn(usize) -> String); 7] = [
        ("100 by the beginning of the name", &|n| {
            format!("device {:04}", hundred(n))
        }),
        ("one by its name", &|n| format!("Device {:06}", one(n))),
        ("some by the label", &|n| format!("street {} ", some(977)(n))),
        ("none", &|n| format!("no such device {n}")),
        ("most", &|_| "device".to_owned()),
        ("two characters", &|n| format!("{:02}", n % 90)),
        ("all by the type", &|_| "meter".to_owned()),
    ];
    for (name, text) in texts {
        let (mut took, mut found) = (Vec::with_capacity(SEARCHES), 0);
        for n in 0..SEARCHES {
            let order = if n % 2 == 0 {
                SortOrder::Asc
            } else {
                SortOrder::Desc
            };
            let began = Instant::now();
            found = fleet.search(&text(n), order).await?;
            took.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        took.sort_by(f64::total_cmp);
        let at = |part: f64| {
            took.get((took.len() as f64 * part) as usize)
                .copied()
                .unwrap_or_default()
        };
        println!("{name:34} {found:>9} {:>9.2} {:>9.2}", at(0.5), at(0.99));
    }
    database.close().await;
    if address.is_none() {
        println!(
            "the file has {:.1} MB",
            std::fs::metadata(&file)?.len() as f64 / 1e6
        );
    }
    Ok(())
}
