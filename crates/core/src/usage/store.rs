//! The usage of all tenants: restored at the start, reported periodically, and limited by their profiles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fieldline_model::entity::{EntityEvent, EventBody};
use fieldline_model::kv::{KvValue, pack};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::LatestValue;
use fieldline_model::{EntityKey, EntityType, TenantId, TenantProfileId};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

use super::entity::{usage_id, usage_subject};
use super::{
    ApiFeature, StoredUsage, TenantUsage, UsageChange, UsageKey, UsageLimits, UsagePoint, UsageReport,
    UsageState,
};
use crate::clock::SharedClock;
use crate::events::{ChangeKind, EntityChange, EntityListener};
use crate::options::HumanDuration;
use crate::overload::{OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource};
use crate::ports::{
    DeviceFilter, EntityStores, StoreResult, TelemetryRow, TelemetrySaveStrategy, TimeSeriesStore,
};
use crate::queue_stats::SERVICE_ID;

/// How often changed profiles are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Ticks between reports of urgent counts, and between those of gauges.
const URGENT_TICKS: u64 = 10;
const GAUGE_TICKS: u64 = 180;
/// Tenants read per page.
const PAGE: u32 = 1_000;
/// Most points kept for the next try when the store refuses them.
const MAX_UNSAVED: usize = 256;

/// Settings of usage counting.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// How often all counts are stored, in whole seconds, at least one. Limits take effect no sooner.
    pub report_interval: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            report_interval: HumanDuration::secs(60),
        }
    }
}

/// The usage of one tenant, and the state of its limits.
struct TenantUsageEntry {
    usage: Arc<TenantUsage>,
    /// The profile in force; `None` until the stored usage has been read.
    profile: Mutex<Option<TenantProfileId>>,
    /// Whether the profile must be read again.
    is_stale: AtomicBool,
    /// Points that could not be stored.
    unsaved: Mutex<Vec<UsagePoint>>,
}

/// The usage of all tenants.
pub struct UsageStore {
    tenants: RwLock<FxHashMap<TenantId, Arc<TenantUsageEntry>>>,
    stores: EntityStores,
    series: Arc<dyn TimeSeriesStore>,
    clock: SharedClock,
    /// Serializes reports, so that an older count never overwrites a newer one.
    reporting: tokio::sync::Mutex<()>,
}

impl OverloadSource for UsageStore {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        for (tenant, entry) in self.entries() {
            entry.usage.refusals().collect(tenant, into);
            for worst in entry.usage.strained() {
                let (label, limit) = (worst.feature.label(), worst.limit);
                let reason = match worst.state {
                    UsageState::Disabled => {
                        format!(
                            "{label}: all of this month ({limit}) is used up, so that it is disabled until the next month"
                        )
                    }
                    _ => format!("{label}: this month's amount ({limit}) is nearly used up"),
                };
                into.push(OverloadSample {
                    kind: OverloadKind::ApiLimit,
                    scope: OverloadScope::Tenant(tenant),
                    subject: label.into(),
                    measure: OverloadMeasure::Level(worst.value),
                    limit: Some(limit.to_string()),
                    reason: reason.into(),
                });
            }
        }
    }
}

impl UsageStore {
    /// Creates an empty store. It limits nothing and stores nothing until [`run`](Self::run); register it as a listener
    /// of entity events.
    pub fn new(stores: EntityStores, series: Arc<dyn TimeSeriesStore>, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            tenants: RwLock::default(),
            stores,
            series,
            clock,
            reporting: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the usage of a tenant. Callers that count often keep the reference.
    pub fn of(&self, tenant: TenantId) -> Arc<TenantUsage> {
        Arc::clone(&self.entry(tenant).usage)
    }

    /// Returns whether a tenant may use a feature.
    pub fn is_allowed(&self, tenant: TenantId, feature: ApiFeature) -> bool {
        self.of(tenant).allows(feature)
    }

    /// Counts a rare event.
    pub fn count(&self, tenant: TenantId, key: UsageKey, count: u64) {
        self.of(tenant).add(key, count);
    }

    fn entry(&self, tenant: TenantId) -> Arc<TenantUsageEntry> {
        if let Some(entry) = self.tenants.read().get(&tenant) {
            return Arc::clone(entry);
        }
        let mut tenants = self.tenants.write();
        let entry = tenants.entry(tenant).or_insert_with(|| {
            Arc::new(TenantUsageEntry {
                usage: Arc::new(TenantUsage::new(&[], UsageLimits::default(), self.clock.now_ms())),
                profile: Mutex::default(),
                is_stale: AtomicBool::new(true),
                unsaved: Mutex::default(),
            })
        });
        Arc::clone(entry)
    }

    /// All but the system tenant, which is the sum of the others and has no limits.
    fn entries(&self) -> Vec<(TenantId, Arc<TenantUsageEntry>)> {
        let tenants = self.tenants.read();
        let known = tenants.iter().filter(|(tenant, _)| !tenant.is_null());
        known
            .map(|(tenant, entry)| (*tenant, Arc::clone(entry)))
            .collect()
    }

    /// Continues from the stored usage of all tenants, so that limits used up before a restart stay used up.
    ///
    /// # Errors
    /// A store failed; another call continues where this one stopped.
    pub async fn restore(&self) -> StoreResult<()> {
        let mut link = PageLink {
            sort_property: Some("createdTime".to_owned()),
            ..PageLink::first(PAGE)
        };
        loop {
            let page = self.stores.tenants.list(&link).await?;
            for id in page.data.iter().map(|tenant| tenant.id) {
                self.entry(id);
            }
            if !page.has_next {
                break;
            }
            link.page += 1;
        }
        self.refresh().await
    }

    /// Reads the stored usage of new tenants, and the profiles that have changed.
    ///
    /// # Errors
    /// A store failed; another call continues where this one stopped.
    pub async fn refresh(&self) -> StoreResult<()> {
        let _one = self.reporting.lock().await;
        self.read_stale().await
    }

    async fn read_stale(&self) -> StoreResult<()> {
        let system = (TenantId::NULL, self.entry(TenantId::NULL));
        for (tenant, entry) in self.entries().into_iter().chain([system]) {
            if !entry.is_stale.swap(false, Ordering::AcqRel) {
                continue;
            }
            match self.read(tenant, &entry).await {
                Ok(Some(report)) => self.store(vec![(tenant, entry, report)]).await,
                Ok(None) => {}
                Err(error) => {
                    entry.is_stale.store(true, Ordering::Release);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Updates the limits of a tenant, and its counts if they have not been read yet.
    async fn read(&self, tenant: TenantId, entry: &TenantUsageEntry) -> StoreResult<Option<UsageReport>> {
        let profile = if tenant.is_null() {
            None
        } else {
            let Some(found) = self.stores.tenants.get(tenant).await? else {
                self.tenants.write().remove(&tenant);
                return Ok(None);
            };
            match found.tenant_profile_id {
                Some(id) => self.stores.tenant_profiles.get(id).await?,
                None => None,
            }
        };
        let limits = profile
            .as_ref()
            .map_or_else(UsageLimits::default, UsageLimits::of);
        let profile = profile.map(|profile| profile.id).unwrap_or_default();
        let now = self.clock.now_ms();
        if entry.profile.lock().is_some() {
            let report = entry.usage.set_limits(limits, now);
            *entry.profile.lock() = Some(profile);
            return Ok(Some(report));
        }
        let latest = self.series.latest(usage_subject(tenant), None).await?;
        let stored = if tenant.is_null() && latest.is_empty() {
            // Tenants may have counted for a while before there was a sum; theirs have been restored before.
            let tenants = self.entries();
            tenants
                .iter()
                .flat_map(|(_, entry)| entry.usage.counted())
                .collect()
        } else {
            counts(&latest)
        };
        let report = entry.usage.restore(&stored, &states(&latest), limits, now);
        *entry.profile.lock() = Some(profile);
        Ok(Some(report))
    }

    /// Stores the counts; with `urgent_only`, only those whose units cost money.
    pub async fn report(&self, urgent_only: bool) {
        let _one = self.reporting.lock().await;
        if let Err(error) = self.read_stale().await {
            warn!(%error, "cannot read the limits of a tenant, going on with the old ones");
        }
        let now = self.clock.now_ms();
        let is_restored = |entry: &TenantUsageEntry| entry.profile.lock().is_some();
        let system = self.entry(TenantId::NULL);
        let mut reports = Vec::new();
        for (tenant, entry) in self.entries() {
            if is_restored(&entry) {
                let report = entry.usage.take_report(urgent_only, now);
                for (key, count) in &report.counted {
                    system.usage.add(*key, *count);
                }
                reports.push((tenant, entry, report));
            }
        }
        if is_restored(&system) {
            let report = system.usage.take_report(urgent_only, now);
            reports.push((TenantId::NULL, system, report));
        }
        self.store(reports).await;
    }

    /// Counts active and inactive devices.
    async fn measure(&self) -> StoreResult<()> {
        for (tenant, entry) in self.entries() {
            for (key, active) in [
                (UsageKey::ActiveDevices, true),
                (UsageKey::InactiveDevices, false),
            ] {
                let filter = DeviceFilter {
                    active: Some(active),
                    ..DeviceFilter::default()
                };
                let page = self
                    .stores
                    .devices
                    .list(tenant, &filter, &PageLink::first(1))
                    .await?;
                entry.usage.set(key, page.total_elements);
            }
        }
        Ok(())
    }

    /// Stores points and announces changes. Points that the store refuses are tried again with the next report.
    async fn store(&self, reports: Vec<(TenantId, Arc<TenantUsageEntry>, UsageReport)>) {
        let mut rows = Vec::new();
        let mut pending = Vec::new();
        for (tenant, entry, report) in reports {
            self.notify_changes(tenant, &report.changes).await;
            let points = merged(std::mem::take(&mut *entry.unsaved.lock()), report.points);
            if points.is_empty() {
                continue;
            }
            let mut by_time: FxHashMap<i64, Vec<u8>> = FxHashMap::default();
            for point in &points {
                pack(
                    &point.key,
                    point.value.as_ref(),
                    by_time.entry(point.ts).or_default(),
                );
            }
            rows.extend(by_time.into_iter().map(|(ts, values)| (tenant, ts, values)));
            pending.push((entry, points));
        }
        if rows.is_empty() {
            return;
        }
        let rows: Vec<_> = rows
            .iter()
            .map(|(tenant, ts, values)| TelemetryRow {
                subject: usage_subject(*tenant),
                ts: *ts,
                ttl_seconds: 0,
                strategy: TelemetrySaveStrategy::ALL,
                values,
            })
            .collect();
        if let Err(error) = self.series.save(&rows).await {
            warn!(%error, "cannot store what tenants have used, trying again later");
            for (entry, points) in pending {
                *entry.unsaved.lock() = points;
            }
        }
    }

    async fn notify_changes(&self, tenant: TenantId, changes: &[UsageChange]) {
        if changes.is_empty() {
            return;
        }
        let now = self.clock.now_ms();
        let mut events = Vec::new();
        for change in changes {
            let (feature, state) = (change.feature.label(), change.state.name());
            info!(%tenant, feature, state, used = change.value, limit = change.limit, "API usage state has changed");
            let body = EventBody::Lifecycle {
                event: format!("{} {state}", change.feature.state_key()),
                success: change.state != UsageState::Disabled,
                error: (change.state == UsageState::Disabled).then(|| {
                    let count = change.key.count_key();
                    format!(
                        "{feature}: {} of {} ({count}) are used",
                        change.value, change.limit
                    )
                }),
            };
            events.push(EntityEvent::new(
                tenant,
                usage_id(tenant).into(),
                SERVICE_ID.to_owned(),
                now,
                body,
            ));
        }
        if let Err(error) = self.stores.events.append(&events).await {
            warn!(%tenant, %error, "cannot store the events of API usage");
        }
    }

    /// Reports until told to stop, then stores the remaining counts.
    pub async fn run(self: Arc<Self>, options: Options, mut stop: watch::Receiver<bool>) {
        let all_ticks = options.report_interval.0.as_secs().max(1);
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick: u64 = 0;
        loop {
            let stopping = tokio::select! {
                _ = ticks.tick() => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if stopping {
                self.report(false).await;
                return;
            }
            tick += 1;
            if tick % GAUGE_TICKS == 1
                && let Err(error) = self.measure().await
            {
                warn!(%error, "cannot count the active devices of a tenant");
            }
            if tick.is_multiple_of(all_ticks) {
                self.report(false).await;
            } else if tick.is_multiple_of(URGENT_TICKS) {
                self.report(true).await;
            } else if let Err(error) = self.refresh().await {
                warn!(%error, "cannot read the limits of a tenant, trying again");
            }
        }
    }
}

/// Extracts the stored counts.
fn counts(latest: &[LatestValue]) -> Vec<StoredUsage> {
    let find = |name: &str| {
        let point = &latest.iter().find(|latest| latest.key == name)?.point;
        match point.value {
            KvValue::Long(count) => Some((point.ts, u64::try_from(count).unwrap_or(0))),
            _ => None,
        }
    };
    let stored = |key: UsageKey| StoredUsage {
        key,
        month: find(key.count_key()),
        hour: find(key.hourly_key()),
    };
    UsageKey::ALL.into_iter().map(stored).collect()
}

/// Extracts the stored states, for the features that have one.
fn states(latest: &[LatestValue]) -> Vec<(ApiFeature, UsageState)> {
    let find = |feature: ApiFeature| {
        let found = latest.iter().find(|latest| latest.key == feature.state_key())?;
        Some((feature, UsageState::from_name(&found.point.value.to_text())?))
    };
    ApiFeature::ALL.into_iter().filter_map(find).collect()
}

/// Merges older and newer points, with one point per series and time.
fn merged(mut older: Vec<UsagePoint>, newer: Vec<UsagePoint>) -> Vec<UsagePoint> {
    older.retain(|old| !newer.iter().any(|new| new.key == old.key && new.ts == old.ts));
    let spare = (older.len() + newer.len())
        .saturating_sub(MAX_UNSAVED)
        .min(older.len());
    older.drain(..spare);
    older.extend(newer);
    older
}

impl EntityListener for UsageStore {
    fn on_change(&self, change: EntityChange) {
        let EntityKey { tenant, entity } = change.subject;
        match (entity.entity_type, change.what) {
            (EntityType::Tenant, ChangeKind::Saved) => {
                self.entry(tenant).is_stale.store(true, Ordering::Release);
            }
            (EntityType::TenantProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
                let profile = TenantProfileId(entity.id);
                for entry in self.tenants.read().values() {
                    // An entry that is being read may have been read before the change.
                    if entry.profile.lock().is_none_or(|known| known == profile) {
                        entry.is_stale.store(true, Ordering::Release);
                    }
                }
            }
            (EntityType::Tenant, ChangeKind::Deleted) => {
                self.tenants.write().remove(&tenant);
            }
            _ => {}
        }
    }
}
