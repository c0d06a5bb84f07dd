//! The devices that somebody holds a handle of, and what has changed lately. Both are kept under one lock, so that a
//! handle is either made before a change, and marked by it, or made from what was read after it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use fieldline_core::clock::{MonotonicTimes, SharedClock};
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::rate_limits::{MessageLimiter, MessageRates};
use fieldline_core::usage::UsageStore;
use fieldline_model::{DeviceId, DeviceProfileId, EntityKey, EntityType, TenantId};
use rustc_hash::FxHashMap;

use super::handle::{DeviceHandle, DeviceLimiters, DeviceRole, DeviceSettings, meaning};
use super::versions::{ChangeTable, SettingsSource, SourceVersions, VersionedSettings};
use crate::sharded_map::{SHARD_COUNT, ShardedMap, shard_of};

/// Settings are those of a profile within a tenant.
type ProfileKey = (TenantId, DeviceProfileId);

/// Profiles whose settings are kept.
const KEPT_SETTINGS: usize = 4_096;

/// How many changes are remembered one by one for those who were reading when they happened; of those before, only what
/// they were changes of.
const REMEMBERED: usize = 256;
/// Room for this many devices is made in a part without looking who is gone.
const ROOM_OF_PART: usize = 4;

/// A moment between two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangeVersion(u64);

impl ChangeVersion {
    /// How many changes were before it.
    pub(super) const fn count(self) -> u64 {
        self.0
    }
}

/// A device as it was read.
pub(super) struct LoadedDevice {
    pub(super) subject: EntityKey,
    pub(super) id: DeviceId,
    pub(super) settings: Arc<DeviceSettings>,
    pub(super) role: DeviceRole,
    /// When reading began.
    pub(super) since: ChangeVersion,
}

pub(super) struct DeviceIndex {
    by_device: ShardedMap<DeviceId, IndexedDevice>,
    /// For each part, at how many devices it is looked who is gone.
    prune_at: [usize; SHARD_COUNT],
    // What was read of profiles; their devices share it.
    settings: FxHashMap<ProfileKey, Arc<VersionedSettings>>,
    marks: SourceVersions,
    /// What rate limits go by.
    clock: SharedClock,
    /// What is left to the tenants that have rate limits.
    limiters: FxHashMap<TenantId, Arc<MessageLimiter>>,
    /// Where the messages of devices are counted.
    usage: Option<Arc<UsageStore>>,
    changes: u64,
    latest: VecDeque<EntityChange>,
    /// The earlier ones.
    earlier: ChangeTable,
}

struct IndexedDevice {
    handle: Weak<DeviceHandle>,
    // Outlives the handle while it is ahead of the clock.
    times: Arc<MonotonicTimes>,
}

impl DeviceIndex {
    /// Nobody yet; rate limits go by the clock.
    pub(super) fn new(usage: Option<Arc<UsageStore>>, clock: SharedClock) -> Self {
        Self {
            by_device: ShardedMap::default(),
            prune_at: [ROOM_OF_PART; SHARD_COUNT],
            settings: FxHashMap::default(),
            marks: SourceVersions::default(),
            clock,
            limiters: FxHashMap::default(),
            usage,
            changes: 0,
            latest: VecDeque::new(),
            earlier: ChangeTable::default(),
        }
    }

    /// The moment to read something at.
    pub(super) const fn now(&self) -> ChangeVersion {
        ChangeVersion(self.changes)
    }

    /// Marks the handle that a change concerns, or what the handles of many devices go by.
    pub(super) fn note(&mut self, change: EntityChange) {
        let number = self.changes + 1;
        let mark = |entry: &IndexedDevice| {
            if let Some(handle) = entry.handle.upgrade()
                && let Some(mark) = meaning(change, handle.subject, handle.id, &handle.settings())
            {
                handle.mark(mark);
            }
        };
        match (change.entity_type(), change.what) {
            (EntityType::Device, ChangeKind::Saved | ChangeKind::Deleted | ChangeKind::Credentials) => {
                let device = DeviceId(change.subject.entity.id);
                self.by_device.of(&device).get(&device).into_iter().for_each(mark);
                self.earlier.note(&device, number);
            }
            (
                EntityType::DeviceProfile | EntityType::TenantProfile | EntityType::Tenant,
                ChangeKind::Saved | ChangeKind::Deleted,
            ) => {
                self.marks.note(change, number);
                if let Some(maker) = SettingsSource::of(change) {
                    self.earlier.note(&maker, number);
                }
            }
            _ => return,
        }
        if let Some(tenant) = change.deleted_tenant() {
            self.limiters.remove(&tenant);
        }
        self.changes = number;
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(change);
    }

    /// Whether nothing has happened since the device was read that concerns it.
    fn is_current(&self, loaded: &LoadedDevice) -> bool {
        let LoadedDevice {
            subject, settings, ..
        } = loaded;
        let since = loaded.since.0;
        let passed = usize::try_from(self.changes - since).unwrap_or(usize::MAX);
        if passed <= self.latest.len() {
            let passed = self.latest.iter().rev().take(passed);
            return passed
                .map(|change| meaning(*change, *subject, loaded.id, settings))
                .all(|meaning| meaning.is_none());
        }
        let makers = [
            SettingsSource::Tenant(subject.tenant),
            SettingsSource::DeviceProfile(settings.profile),
            SettingsSource::TenantProfile(settings.tenant_profile),
        ];
        let changed = |maker: &SettingsSource| self.earlier.has_changed(maker, since);
        !self.earlier.has_changed(&loaded.id, since) && !makers.iter().any(changed)
    }

    /// Whether the last time given out for a device is known, if that matters.
    pub(super) fn knows_times(&self, device: DeviceId) -> bool {
        self.by_device.of(&device).contains_key(&device)
    }

    /// The handle of a device, with these settings; a revoked one is replaced. `None` if what was read may be out of date.
    /// Times that are not known continue after `last_ms`.
    pub(super) fn keep(
        &mut self,
        loaded: LoadedDevice,
        last_ms: i64,
        now_ms: i64,
    ) -> Option<Arc<DeviceHandle>> {
        if !self.is_current(&loaded) {
            return None;
        }
        let LoadedDevice {
            subject,
            id,
            settings,
            role,
            ..
        } = loaded;
        let settings = self.share(subject.tenant, settings);
        let known = self.by_device.of(&id).get(&id);
        let live = known.and_then(|entry| entry.handle.upgrade());
        if let Some(handle) = live.filter(|handle| !handle.is_revoked() && handle.subject == subject) {
            self.limit(&handle, &settings.settings, role);
            handle.renew(settings, role);
            return Some(handle);
        }
        let times = match known {
            Some(entry) => entry.times.clone(),
            None => {
                self.make_room(id, now_ms);
                Arc::new(MonotonicTimes::after(last_ms))
            }
        };
        let usage = self.usage.as_ref().map(|usage| usage.of(subject.tenant));
        let handle = DeviceHandle::new(subject, id, times.clone(), Arc::clone(&settings), usage);
        self.limit(&handle, &settings.settings, role);
        handle.renew(settings, role);
        let entry = IndexedDevice {
            handle: Arc::downgrade(&handle),
            times,
        };
        self.by_device.of_mut(&id).insert(id, entry);
        Some(handle)
    }

    /// Puts settings in force that were read for a handle, unless they may be out of date; returns whether it did.
    pub(super) fn renew(&mut self, handle: &DeviceHandle, loaded: LoadedDevice) -> bool {
        let current = self.is_current(&loaded);
        if current {
            let settings = self.share(loaded.subject.tenant, loaded.settings);
            self.limit(handle, &settings.settings, loaded.role);
            handle.renew(settings, loaded.role);
        }
        current
    }

    /// Puts the rate limits of settings in force. What is left of limits that have not changed stays.
    fn limit(&mut self, handle: &DeviceHandle, settings: &DeviceSettings, role: DeviceRole) {
        let clock = &self.clock;
        let tenant = handle.subject.tenant;
        let follow = |known: Option<Arc<MessageLimiter>>, rates: &MessageRates| {
            if rates.is_none() {
                return None;
            }
            let known = known.filter(|known| known.rates() == rates);
            Some(known.unwrap_or_else(|| Arc::new(MessageLimiter::new(rates, clock))))
        };
        let known = handle.limiters();
        let limiters = DeviceLimiters {
            tenant: follow(self.limiters.get(&tenant).cloned(), &settings.of_tenant.rates),
            device: follow(known.device, &settings.limits_of(role).rates),
            behind: match role.is_gateway {
                true => follow(known.behind, &settings.of_gateway.rates),
                false => None,
            },
        };
        match &limiters.tenant {
            Some(limiter) => {
                self.limiters.insert(tenant, limiter.clone());
            }
            None => {
                self.limiters.remove(&tenant);
            }
        }
        handle.limit(limiters);
    }

    /// Forgets the devices that nobody holds a handle of, in the part that this one is to be in. What is not ahead of the
    /// clock cannot be given out twice.
    fn make_room(&mut self, id: DeviceId, now_ms: i64) {
        let prune_at = &mut self.prune_at[shard_of(id.0)];
        let part = self.by_device.of_mut(&id);
        if part.len() < *prune_at {
            return;
        }
        part.retain(|_, entry| Arc::strong_count(&entry.times) > 1 || entry.times.last() > now_ms);
        *prune_at = (part.len() * 2).max(ROOM_OF_PART);
    }

    /// The settings of a profile, if they were read and nothing has happened since that concerns them.
    pub(super) fn settings(&self, tenant: TenantId, profile: DeviceProfileId) -> Option<Arc<DeviceSettings>> {
        let known = self.settings.get(&(tenant, profile))?;
        (!known.is_stale()).then(|| Arc::clone(&known.settings))
    }

    /// The same settings, current ones, shared with other devices of the profile.
    fn share(&mut self, tenant: TenantId, settings: Arc<DeviceSettings>) -> Arc<VersionedSettings> {
        let key = (tenant, settings.profile);
        let known = self.settings.get(&key).filter(|known| !known.is_stale());
        if let Some(known) = known.filter(|known| *known.settings == *settings) {
            return Arc::clone(known);
        }
        if self.settings.len() >= KEPT_SETTINGS {
            self.settings.clear();
        }
        let marks = Arc::new(self.marks.attach(tenant, settings, self.changes));
        self.settings.insert(key, Arc::clone(&marks));
        marks
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_device.parts().map(FxHashMap::len).sum()
    }
}
