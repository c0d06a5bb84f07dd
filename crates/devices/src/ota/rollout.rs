//! Tells devices which package they shall have.
//!
//! What devices shall have follows from what is assigned; what they were told is noted. Whatever changes an assignment only
//! says whose: the difference between the two is looked up in the store, so that nothing is lost when the program ends in
//! between, and nobody is told twice of the same. The next start looks for differences everywhere.

use std::sync::Arc;
use std::time::Duration;

use fieldline_core::clock::SharedClock;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, EntityStores, OtaScope, OtaTarget, OtaUpdate, StoreResult, TelemetryRow,
    TelemetrySaveStrategy, TimeSeriesStore,
};
use fieldline_model::entity::{OtaKind, OtaPackageInfo};
use fieldline_model::kv::{self, KvValueRef};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, DeviceProfileId, EntityKey, EntityType, OtaPackageId, TenantId};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::warn;

use super::Options;
use crate::downlink::{AttributeUpdate, DeviceLink};

static GATE: LogGate = LogGate::new(2);
/// Devices whose assignments are looked at together.
const BATCH: u32 = 100;
/// Changed devices of a tenant that are remembered one by one; with more, all of the tenant are looked at.
const REMEMBERED: usize = 500;
/// How long to wait after a failure of the store.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long a device is put off that could not be told, milliseconds: where the store may do better soon, and where that was
/// about this device.
const PUT_OFF_MS: i64 = 10_000;
const PUT_OFF_BROKEN_MS: i64 = 300_000;

/// What rollouts work with.
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct RolloutServices {
    pub stores: EntityStores,
    pub series: Arc<dyn TimeSeriesStore>,
    pub attributes: Arc<dyn AttributeStore>,
    pub devices: Arc<dyn DeviceLink>,
    pub clock: SharedClock,
}

/// Whose assignments may have changed, in a tenant.
#[derive(Default)]
struct ChangedAssignments {
    all: bool,
    profiles: FxHashSet<DeviceProfileId>,
    devices: FxHashSet<DeviceId>,
}

impl ChangedAssignments {
    fn note_device(&mut self, device: DeviceId) {
        if self.devices.len() < REMEMBERED {
            self.devices.insert(device);
        } else {
            self.all = true;
        }
    }

    fn scopes(self) -> Vec<OtaScope> {
        if self.all {
            return vec![OtaScope::All];
        }
        let profiles = self.profiles.into_iter().map(OtaScope::Profile);
        let devices =
            (!self.devices.is_empty()).then(|| OtaScope::Devices(self.devices.into_iter().collect()));
        profiles.chain(devices).collect()
    }
}

/// Whose turn it is.
struct RolloutSchedule {
    /// When the next device may be told.
    next: Instant,
    /// The tenant that had the last turn.
    last: TenantId,
}

/// What there is to wait for.
enum RolloutWait {
    /// The next turn.
    Turn,
    /// Those that were put off.
    For(Duration),
    /// Nobody.
    Change,
}

#[derive(Default)]
struct RolloutTable {
    /// Tenants that have packages, or had some when devices were told: nobody else's changes matter.
    tenants: FxHashSet<TenantId>,
    changed: FxHashMap<TenantId, ChangedAssignments>,
}

impl RolloutTable {
    fn changed(&mut self, tenant: TenantId) -> Option<&mut ChangedAssignments> {
        if !self.tenants.contains(&tenant) {
            return None;
        }
        Some(self.changed.entry(tenant).or_default())
    }
}

/// See the module. To be registered as a listener of entity events.
pub struct OtaRollouts {
    deps: RolloutServices,
    /// Time between two devices.
    pace: Duration,
    table: Mutex<RolloutTable>,
    wake: Notify,
}

impl OtaRollouts {
    /// Of these devices.
    pub fn new(deps: RolloutServices, options: &Options) -> Arc<Self> {
        Arc::new(Self {
            deps,
            pace: options.rollout_interval.0 / options.rollout_devices.max(1),
            table: Mutex::default(),
            wake: Notify::new(),
        })
    }

    /// Learns which tenants have packages, and has everything looked at that may have changed while nobody did.
    ///
    /// # Errors
    /// The store failed.
    pub async fn restore(&self) -> StoreResult<()> {
        let tenants = self.deps.stores.ota_packages.tenants().await?;
        let mut book = self.table.lock();
        for tenant in tenants {
            book.tenants.insert(tenant);
            book.changed.entry(tenant).or_default().all = true;
        }
        Ok(())
    }

    /// Tells devices of their packages until told to stop. To be run once.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let working = async {
            let mut turns = RolloutSchedule {
                next: Instant::now(),
                last: TenantId::NULL,
            };
            loop {
                // What cannot be noted keeps nobody else from being told.
                let noted = self.note_changes().await;
                let told = self.take_turn(&mut turns).await;
                let until = match noted.and(told) {
                    Ok(RolloutWait::Turn) => turns.next,
                    Ok(RolloutWait::For(time)) => Instant::now() + time,
                    Ok(RolloutWait::Change) => {
                        self.wake.notified().await;
                        continue;
                    }
                    Err(error) => {
                        if let Some(suppressed) = GATE.open() {
                            warn!(%error, suppressed, "cannot tell devices of their OTA packages, trying again");
                        }
                        tokio::time::sleep(AFTER_FAILURE).await;
                        continue;
                    }
                };
                tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = self.wake.notified() => {}
                }
            }
        };
        tokio::select! {
            () = working => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Tells one device, where it is time, of another tenant than the last one if there is any.
    async fn take_turn(&self, turns: &mut RolloutSchedule) -> StoreResult<RolloutWait> {
        let updates = &self.deps.stores.ota_updates;
        loop {
            let (now, now_ms) = (Instant::now(), self.deps.clock.now_ms());
            let Some(next) = updates.next(turns.last, now_ms).await? else {
                let put_off = updates.put_off_until().await?;
                return Ok(put_off.map_or(RolloutWait::Change, |until| {
                    let left = until.saturating_sub(now_ms).clamp(0, PUT_OFF_BROKEN_MS);
                    RolloutWait::For(AFTER_FAILURE.max(Duration::from_millis(left.unsigned_abs())))
                }));
            };
            if now < turns.next {
                return Ok(RolloutWait::Turn);
            }
            turns.last = next.tenant;
            match self.announce_to(&next).await {
                Ok(true) => turns.next = now + self.pace,
                // Whoever was passed over costs no time.
                Ok(false) => {}
                Err(error) => {
                    let passes = error.kind().is_retryable();
                    let put_off_ms = if passes { PUT_OFF_MS } else { PUT_OFF_BROKEN_MS };
                    updates.put_off(&next, now_ms.saturating_add(put_off_ms)).await?;
                    if passes {
                        return Err(error);
                    }
                    turns.next = now + self.pace;
                    if let Some(suppressed) = GATE.open() {
                        let device = next.device;
                        warn!(%device, %error, suppressed, "cannot tell a device of its OTA package, trying again later");
                    }
                }
            }
        }
    }

    /// Tells a device, if it still shall have the package. Returns whether it was told.
    async fn announce_to(&self, next: &OtaUpdate) -> StoreResult<bool> {
        let updates = &self.deps.stores.ota_updates;
        let assigned = updates.assigned(next.tenant, next.device, next.kind).await?;
        if assigned == Some(next.package) {
            if let Some(package) = self.package(next.tenant, next.package).await? {
                self.notify_device(next, &package).await?;
            }
            updates.mark_notified(next).await?;
            return Ok(true);
        }
        // It has changed since. Where that is not noted now, it is not asked again at once.
        self.note_scope(next.tenant, next.kind, &OtaScope::Devices(vec![next.device]))
            .await?;
        let later = self.deps.clock.now_ms().saturating_add(PUT_OFF_MS);
        updates.put_off(next, later).await?;
        Ok(false)
    }

    /// Notes who shall have another package than they were told of. What fails is looked at again, after all others.
    async fn note_changes(&self) -> StoreResult<()> {
        let changed = std::mem::take(&mut self.table.lock().changed);
        let mut outcome = Ok(());
        for (tenant, changed) in changed {
            if let Err(error) = self.note_tenant(tenant, changed).await {
                self.table.lock().changed.entry(tenant).or_default().all = true;
                outcome = Err(error);
            }
        }
        outcome
    }

    async fn note_tenant(&self, tenant: TenantId, changed: ChangedAssignments) -> StoreResult<()> {
        for scope in changed.scopes() {
            for kind in OtaKind::ALL {
                self.note_scope(tenant, kind, &scope).await?;
            }
        }
        Ok(())
    }

    async fn note_scope(&self, tenant: TenantId, kind: OtaKind, scope: &OtaScope) -> StoreResult<()> {
        let updates = &self.deps.stores.ota_updates;
        let mut after = None;
        let mut times = ProfileTtls::default();
        loop {
            let targets = updates.differing(tenant, kind, scope, after, BATCH).await?;
            let Some(last) = targets.last() else {
                return Ok(());
            };
            after = Some(last.device);
            let now = self.deps.clock.now_ms();
            let announced = self.announce(tenant, kind, &targets, now, &mut times).await;
            pass_over(tenant, announced)?;
            for target in targets.iter().filter(|target| target.package.is_none()) {
                let subject = EntityKey::device(tenant, target.device);
                pass_over(tenant, self.forget(subject, attribute_keys(kind)).await)?;
            }
            updates.note(tenant, kind, &targets, now).await?;
        }
    }

    /// Stores which packages devices shall have, and that they wait for being told.
    async fn announce(
        &self,
        tenant: TenantId,
        kind: OtaKind,
        targets: &[OtaTarget],
        now: i64,
        times: &mut ProfileTtls,
    ) -> StoreResult<()> {
        let mut packed: FxHashMap<OtaPackageId, Vec<u8>> = FxHashMap::default();
        for id in targets.iter().filter_map(|target| target.package) {
            if packed.contains_key(&id) {
                continue;
            }
            if let Some(package) = self.package(tenant, id).await? {
                packed.insert(id, queued(kind, &package, now));
            }
        }
        let mut rows = Vec::with_capacity(targets.len());
        for target in targets {
            let Some(values) = target.package.and_then(|id| packed.get(&id)) else {
                continue;
            };
            rows.push(TelemetryRow {
                subject: EntityKey::device(tenant, target.device),
                ts: now,
                ttl_seconds: times.of(&self.deps.stores, tenant, target.profile).await?,
                strategy: TelemetrySaveStrategy::ALL,
                values,
            });
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.deps.series.save(&rows).await
    }

    /// Tells a device of its package.
    async fn notify_device(&self, update: &OtaUpdate, package: &OtaPackageInfo) -> StoreResult<()> {
        let (deps, kind) = (&self.deps, update.kind);
        let subject = EntityKey::device(update.tenant, update.device);
        let Some(device) = deps.stores.devices.get(update.tenant, update.device).await? else {
            return Ok(());
        };
        let profile = device.device_profile_id.unwrap_or_default();
        let now = deps.clock.now_ms();
        let mut state = Vec::new();
        kv::pack(&kind.key("state"), KvValueRef::Text("INITIATED"), &mut state);
        let row = TelemetryRow {
            subject,
            // Later than what was queued in the same millisecond: the state is the one with the greatest time.
            ts: now.max(update.ts.saturating_add(1)),
            ttl_seconds: ProfileTtls::default()
                .of(&deps.stores, update.tenant, profile)
                .await?,
            strategy: TelemetrySaveStrategy::ALL,
            values: &state,
        };
        deps.series.save(&[row]).await?;
        let (values, absent) = attributes(kind, package);
        self.forget(subject, absent).await?;
        let row = AttributeRow {
            subject,
            scope: AttributeScope::Shared,
            ts: update.ts,
            values: &values,
        };
        deps.attributes.save(&[row]).await?;
        let saved = AttributeUpdate::Saved(values.into());
        deps.devices
            .attributes_changed(subject, AttributeScope::Shared, saved);
        Ok(())
    }

    /// Deletes shared attributes of a device, and tells it which.
    async fn forget(&self, subject: EntityKey, keys: Vec<String>) -> StoreResult<()> {
        let scope = AttributeScope::Shared;
        let deleted = self.deps.attributes.delete(subject, scope, &keys).await?;
        let deleted = AttributeUpdate::Deleted(deleted);
        self.deps.devices.attributes_changed(subject, scope, deleted);
        Ok(())
    }

    async fn package(&self, tenant: TenantId, id: OtaPackageId) -> StoreResult<Option<OtaPackageInfo>> {
        self.deps.stores.ota_packages.get(tenant, id).await
    }
}

impl EntityListener for OtaRollouts {
    fn on_change(&self, change: EntityChange) {
        let mut book = self.table.lock();
        let EntityKey { tenant, entity } = change.subject;
        let concerns = match (entity.entity_type, change.what) {
            (EntityType::Device, ChangeKind::Saved) => book
                .changed(tenant)
                .map(|changed| changed.note_device(DeviceId(entity.id))),
            // The former tenant may have told it of a package, which it shall have no longer.
            (EntityType::Device, ChangeKind::Moved) => {
                book.tenants.insert(tenant);
                book.changed(tenant)
                    .map(|changed| changed.note_device(DeviceId(entity.id)))
            }
            (EntityType::DeviceProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
                book.changed(tenant).map(|changed| {
                    changed.profiles.insert(DeviceProfileId(entity.id));
                })
            }
            (EntityType::OtaPackage, ChangeKind::Saved | ChangeKind::Deleted) => {
                book.tenants.insert(tenant);
                None
            }
            (EntityType::Tenant, ChangeKind::Deleted) => {
                book.tenants.remove(&tenant);
                book.changed.remove(&tenant);
                None
            }
            _ => None,
        };
        drop(book);
        if concerns.is_some() {
            self.wake.notify_one();
        }
    }
}

/// What fails however often it is tried keeps nobody from being told: it is logged, and left out.
fn pass_over(tenant: TenantId, outcome: StoreResult<()>) -> StoreResult<()> {
    match outcome {
        Err(error) if !error.kind().is_retryable() => {
            if let Some(suppressed) = GATE.open() {
                warn!(%tenant, %error, suppressed, "cannot show what OTA packages devices wait for");
            }
            Ok(())
        }
        other => other,
    }
}

/// How long points of devices are kept, by profile, looked up once.
#[derive(Default)]
struct ProfileTtls(FxHashMap<DeviceProfileId, u32>);

impl ProfileTtls {
    async fn of(
        &mut self,
        stores: &EntityStores,
        tenant: TenantId,
        profile: DeviceProfileId,
    ) -> StoreResult<u32> {
        if let Some(seconds) = self.0.get(&profile) {
            return Ok(*seconds);
        }
        let own = stores.device_profiles.get(tenant, profile).await?;
        let seconds = match own.and_then(|own| own.storage_ttl_seconds()) {
            Some(seconds) => seconds,
            None => stores.storage_ttl(tenant).await?,
        };
        self.0.insert(profile, seconds);
        Ok(seconds)
    }
}

/// What is stored of a device that waits for being told.
fn queued(kind: OtaKind, package: &OtaPackageInfo, now: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    let target = |what: &str| format!("target_{}", kind.key(what));
    kv::pack(&target("title"), KvValueRef::Text(&package.title), &mut out);
    kv::pack(&target("version"), KvValueRef::Text(&package.version), &mut out);
    if let Some(tag) = filled(package.tag.as_deref()) {
        kv::pack(&target("tag"), KvValueRef::Text(tag), &mut out);
    }
    kv::pack(&target("ts"), KvValueRef::Long(now), &mut out);
    kv::pack(&kind.key("state"), KvValueRef::Text("QUEUED"), &mut out);
    out
}

/// The shared attributes of a device that shall have a package, and those that it shall not have.
fn attributes(kind: OtaKind, package: &OtaPackageInfo) -> (Vec<u8>, Vec<String>) {
    let algorithm = package.checksum_algorithm.map(|algorithm| algorithm.name());
    let values = [
        ("title", Some(KvValueRef::Text(&package.title))),
        ("version", Some(KvValueRef::Text(&package.version))),
        ("tag", filled(package.tag.as_deref()).map(KvValueRef::Text)),
        ("size", package.data_size.map(KvValueRef::Long)),
        ("checksum_algorithm", algorithm.map(KvValueRef::Text)),
        (
            "checksum",
            filled(package.checksum.as_deref()).map(KvValueRef::Text),
        ),
        ("url", package.link().map(KvValueRef::Text)),
    ];
    let (mut out, mut absent) = (Vec::with_capacity(256), Vec::new());
    for (what, value) in values {
        match value {
            Some(value) => kv::pack(&kind.key(what), value, &mut out),
            None => absent.push(kind.key(what)),
        }
    }
    (out, absent)
}

fn attribute_keys(kind: OtaKind) -> Vec<String> {
    attributes(kind, &OtaPackageInfo::default())
        .1
        .into_iter()
        .chain(["title", "version"].map(|what| kind.key(what)))
        .collect()
}

fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
