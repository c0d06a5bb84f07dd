//! Rollouts on simulated time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::events::{EntityChange, EntityListener as _};
use fieldline_core::ports::{
    EntityStores, OtaScope, OtaTarget, OtaUpdate, OtaUpdateStore, StoreError, StoreErrorKind, StoreResult,
};
use fieldline_model::entity::{OtaKind, OtaPackageInfo};
use fieldline_model::{DeviceId, DeviceProfileId, EntityKey, OtaPackageId, TenantId};
use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::fake_stores::{Call, FakePackages, FakeStores};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Options, OtaDownloads, OtaOffer, OtaRollouts, RolloutServices};
use crate::directory::{self, DeviceDirectory};
use crate::downlink::{DeviceLink, Downlink};

/// What is assigned, and what was noted, of firmware.
#[derive(Default)]
struct Updates {
    tenant: TenantId,
    profile: DeviceProfileId,
    own: Mutex<BTreeMap<DeviceId, OtaPackageId>>,
    of_profile: Mutex<Option<OtaPackageId>>,
    devices: Mutex<Vec<DeviceId>>,
    noted: Mutex<BTreeMap<DeviceId, (OtaPackageId, bool, bool)>>,
    /// How often it was asked what is assigned to a device.
    asked: AtomicUsize,
    put_off: Mutex<BTreeMap<DeviceId, i64>>,
}

impl Updates {
    fn wanted(&self, device: DeviceId) -> Option<OtaPackageId> {
        self.own.lock().get(&device).copied().or(*self.of_profile.lock())
    }
}

#[async_trait]
impl OtaUpdateStore for Updates {
    async fn assigned(&self, _: TenantId, device: DeviceId, _: OtaKind) -> StoreResult<Option<OtaPackageId>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(self.wanted(device))
    }

    async fn differing(
        &self,
        _: TenantId,
        kind: OtaKind,
        scope: &OtaScope,
        after: Option<DeviceId>,
        limit: u32,
    ) -> StoreResult<Vec<OtaTarget>> {
        let mut devices = self.devices.lock().clone();
        devices.sort_unstable();
        devices.retain(|device| after.is_none_or(|after| *device > after));
        if let OtaScope::Devices(named) = scope {
            devices.retain(|device| named.contains(device));
        }
        let noted = self.noted.lock();
        let targets = devices.into_iter().map(|device| OtaTarget {
            device,
            profile: self.profile,
            package: self.wanted(device),
            is_own: self.own.lock().contains_key(&device),
        });
        let differs = |target: &OtaTarget| target.package != noted.get(&target.device).map(|noted| noted.0);
        Ok(targets
            .filter(|target| kind == OtaKind::Firmware && differs(target))
            .take(limit as usize)
            .collect())
    }

    async fn note(&self, _: TenantId, _: OtaKind, targets: &[OtaTarget], _: i64) -> StoreResult<()> {
        let mut noted = self.noted.lock();
        for target in targets {
            match target.package {
                Some(package) => noted.insert(target.device, (package, target.is_own, false)),
                None => noted.remove(&target.device),
            };
        }
        Ok(())
    }

    async fn next(&self, _: TenantId, now_ms: i64) -> StoreResult<Option<OtaUpdate>> {
        let (noted, put_off) = (self.noted.lock(), self.put_off.lock());
        let waiting = noted.iter().filter(|(device, (_, _, is_told))| {
            !is_told && put_off.get(device).is_none_or(|until| *until <= now_ms)
        });
        let next = waiting.max_by_key(|(device, (_, is_own, _))| (*is_own, std::cmp::Reverse(**device)));
        Ok(next.map(|(device, (package, ..))| OtaUpdate {
            tenant: self.tenant,
            device: *device,
            package: *package,
            kind: OtaKind::Firmware,
            ts: 0,
        }))
    }

    async fn put_off(&self, update: &OtaUpdate, until_ms: i64) -> StoreResult<()> {
        let is_noted = |noted: &(OtaPackageId, bool, bool)| noted.0 == update.package;
        if self.noted.lock().get(&update.device).is_some_and(is_noted) {
            self.put_off.lock().insert(update.device, until_ms);
        }
        Ok(())
    }

    async fn put_off_until(&self) -> StoreResult<Option<i64>> {
        let (noted, put_off) = (self.noted.lock(), self.put_off.lock());
        let waiting = noted.iter().filter(|(_, (_, _, is_told))| !is_told);
        Ok(waiting
            .map(|(device, _)| put_off.get(device).copied().unwrap_or(0))
            .min())
    }

    async fn mark_notified(&self, update: &OtaUpdate) -> StoreResult<()> {
        if let Some(noted) = self.noted.lock().get_mut(&update.device) {
            noted.2 = true;
        }
        Ok(())
    }

    async fn count_following(&self, _: TenantId, _: DeviceProfileId, _: OtaKind) -> StoreResult<u64> {
        Ok(0)
    }
}

/// When which device was told of a package, and of how many attributes that are gone.
#[derive(Default)]
struct Link {
    told: Mutex<Vec<(Instant, DeviceId, String)>>,
}

impl DeviceLink for Link {
    fn send(&self, subject: EntityKey, downlink: &Downlink) -> usize {
        if let Downlink::Attributes(update) = downlink {
            let told = (Instant::now(), DeviceId(subject.entity.id), update.to_json());
            self.told.lock().push(told);
        }
        1
    }
}

struct World {
    fakes: Arc<FakeStores>,
    stores: EntityStores,
    updates: Arc<Updates>,
    link: Arc<Link>,
    clock: Arc<ManualClock>,
    devices: Vec<DeviceId>,
    packages: [OtaPackageId; 2],
}

impl World {
    fn new(devices: usize) -> Self {
        let fakes = FakeStores::new();
        let updates = Arc::new(Updates {
            tenant: fakes.tenant,
            profile: fakes.profile,
            ..Updates::default()
        });
        let devices: Vec<DeviceId> = (0..devices)
            .map(|number| DeviceId(fakes.add_device(&number.to_string()).entity.id))
            .collect();
        updates.devices.lock().clone_from(&devices);
        let packages = FakePackages::new(fakes.tenant);
        let ids = ["1.0", "2.0"].map(|version| {
            packages.add(OtaPackageInfo {
                title: "pump".into(),
                version: version.into(),
                kind: Some(OtaKind::Firmware),
                data_size: Some(7),
                has_data: true,
                ..OtaPackageInfo::default()
            })
        });
        let stores = EntityStores {
            ota_packages: packages,
            ota_updates: updates.clone(),
            ..fakes.entities()
        };
        Self {
            fakes,
            stores,
            updates,
            link: Arc::default(),
            clock: ManualClock::at(1_800_000_000_000),
            devices,
            packages: ids,
        }
    }

    /// Starts rollouts as the program does.
    async fn start(&self) -> Running {
        let deps = RolloutServices {
            stores: self.stores.clone(),
            series: self.fakes.clone(),
            attributes: self.fakes.clone(),
            devices: self.link.clone(),
            clock: self.clock.clone(),
        };
        let rollouts = OtaRollouts::new(deps, &Options::default());
        rollouts.restore().await.unwrap();
        let stop = watch::Sender::new(false);
        let task = tokio::spawn(rollouts.clone().run(stop.subscribe()));
        Running { rollouts, stop, task }
    }

    fn told(&self) -> Vec<(Instant, DeviceId, String)> {
        self.link.told.lock().clone()
    }
}

struct Running {
    rollouts: Arc<OtaRollouts>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    async fn end(self) {
        self.stop.send_replace(true);
        self.task.await.unwrap();
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_fleet_is_told_at_its_pace_and_a_restart_goes_on_where_it_was() {
    let world = World::new(250);
    let running = world.start().await;
    let begun = Instant::now();
    *world.updates.of_profile.lock() = Some(world.packages[0]);
    let changed = EntityChange::saved(world.fakes.tenant, world.fakes.profile);
    running.rollouts.on_change(changed);
    tokio::time::sleep(MINUTE - Duration::from_millis(1)).await;
    assert_eq!(world.told().len(), 100);

    // A device that gets a package of its own does not wait for the fleet.
    let last = *world.devices.iter().max().unwrap();
    world.updates.own.lock().insert(last, world.packages[1]);
    let saved = EntityChange::saved(world.fakes.tenant, last);
    running.rollouts.on_change(saved);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (_, told, attributes) = world.told().pop().filter(|(_, told, _)| *told == last).unwrap();
    assert_eq!(told, last);
    assert!(attributes.contains(r#""fw_version":"2.0""#), "{attributes}");

    running.end().await;
    tokio::time::sleep(10 * MINUTE).await;
    let before = world.told().len();
    let running = world.start().await;
    tokio::time::sleep(10 * MINUTE).await;
    let told = world.told();
    assert_eq!(told.len(), 250, "{before} before the restart");
    let distinct: std::collections::BTreeSet<DeviceId> = told.iter().map(|(_, device, _)| *device).collect();
    assert_eq!(distinct.len(), 250);
    for window in told.windows(101) {
        assert!(window[100].0 - window[0].0 >= MINUTE);
    }
    assert!(told[0].0 - begun < Duration::from_secs(1));
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_unassigned_is_forgotten_at_once_and_what_changed_unseen_is_noticed_at_the_start() {
    let world = World::new(2);
    *world.updates.of_profile.lock() = Some(world.packages[0]);
    // Nobody was told of the change: the program had ended.
    let running = world.start().await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.told().len(), 2);
    *world.updates.of_profile.lock() = None;
    let changed = EntityChange::saved(world.fakes.tenant, world.fakes.profile);
    running.rollouts.on_change(changed);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let told = world.told();
    assert_eq!(told.len(), 4);
    for (_, _, attributes) in &told[2..] {
        assert!(
            attributes.starts_with(r#"{"deleted":["#) && attributes.contains("fw_title"),
            "{attributes}"
        );
    }
    // Another tenant's changes are nobody's business here.
    running
        .rollouts
        .on_change(EntityChange::saved(TenantId::new(), world.devices[0]));
    running.end().await;
    assert!(
        world
            .fakes
            .attribute(
                EntityKey::device(world.fakes.tenant, world.devices[0]),
                "fw_title"
            )
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_in_the_middle_of_a_download_is_remembered_until_it_changes() {
    let world = World::new(1);
    let clock = ManualClock::at(1_800_000_000_000);
    let options = directory::Options { cached_devices: 16 };
    let directory = DeviceDirectory::new(world.stores.clone(), world.fakes.clone(), None, clock, &options);
    let device = directory.by_token("0").await.unwrap().unwrap();
    let stores = &world.stores;
    let downloads = OtaDownloads::new(
        stores.ota_packages.clone(),
        stores.ota_updates.clone(),
        &Options::default(),
    );
    let offered = async || match downloads.offer_again(&device, OtaKind::Firmware).await.unwrap() {
        OtaOffer::Image(image) => Some(image.id),
        _ => None,
    };
    let asked = || world.updates.asked.load(Ordering::Relaxed);
    *world.updates.of_profile.lock() = Some(world.packages[0]);
    for _ in 0..100 {
        assert_eq!(offered().await, Some(world.packages[0]));
    }
    assert_eq!(asked(), 1);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!((offered().await, asked()), (Some(world.packages[0]), 2));
    let (tenant, id) = (world.fakes.tenant, world.devices[0]);
    world.updates.own.lock().insert(id, world.packages[1]);
    downloads.on_change(EntityChange::saved(tenant, id));
    assert_eq!(offered().await, Some(world.packages[1]));
    world.updates.own.lock().clear();
    *world.updates.of_profile.lock() = None;
    downloads.on_change(EntityChange::saved(tenant, world.fakes.profile));
    assert_eq!(offered().await, None);
    // Others' devices are nobody's business here.
    downloads.on_change(EntityChange::saved(tenant, DeviceId::new()));
    assert_eq!((offered().await, asked()), (None, 4));
}

#[tokio::test(start_paused = true)]
async fn a_device_that_cannot_be_told_holds_up_nobody_and_is_told_once_it_can() {
    for kind in [StoreErrorKind::Corrupt, StoreErrorKind::Unavailable] {
        let world = World::new(20);
        *world.updates.of_profile.lock() = Some(world.packages[0]);
        let broken = *world.devices.iter().min().unwrap();
        let subject = EntityKey::device(world.fakes.tenant, broken);
        world.fakes.watch(move |call| match call {
            Call::SaveAttributes(subjects) if subjects.contains(&subject) => {
                Err(StoreError::new(kind, "as the test wants it"))
            }
            _ => Ok(()),
        });
        let running = world.start().await;
        tokio::time::sleep(MINUTE).await;
        let told = world.told();
        assert_eq!(told.len(), 19, "{kind:?}");
        assert!(told.iter().all(|(_, device, _)| *device != broken));
        world.fakes.unwatch();
        world.clock.advance(300_000);
        tokio::time::sleep(10 * MINUTE).await;
        assert_eq!(world.told().len(), 20, "{kind:?}");
        assert_eq!(world.told()[19].1, broken);
        running.end().await;
    }
}
