//! The devices that somebody holds a handle of, and what has changed lately. Both are kept under one lock, so that a
//! handle is either made before a change, and marked by it, or made from what was read after it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use fieldline_model::{DeviceId, DeviceProfileId, Subject, TenantId};
use rustc_hash::FxHashMap;

use super::handle::{DeviceHandle, DeviceSettings, Limiters, Role, meaning};
use crate::clock::{MonotonicTimes, SharedClock};
use crate::events::EntityChange;
use crate::rate_limits::{MessageLimiter, MessageRates};
use crate::usage::ApiUsage;

/// Settings are those of a profile within a tenant.
type ProfileKey = (TenantId, DeviceProfileId);

/// Profiles whose settings are kept.
const KEPT_SETTINGS: usize = 4_096;

/// How many changes are remembered for those who were reading when they happened.
const REMEMBERED: usize = 256;

/// A moment between two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(u64);

impl Moment {
    /// How many changes were before it.
    pub(super) const fn count(self) -> u64 {
        self.0
    }
}

/// A device as it was read.
pub(super) struct Loaded {
    pub(super) subject: Subject,
    pub(super) id: DeviceId,
    pub(super) settings: Arc<DeviceSettings>,
    pub(super) role: Role,
    /// When reading began.
    pub(super) since: Moment,
}

#[derive(Default)]
pub(super) struct Index {
    by_device: FxHashMap<DeviceId, Entry>,
    prune_at: usize,
    // What was read of profiles and has not changed since. Their devices share it.
    settings: FxHashMap<ProfileKey, Arc<DeviceSettings>>,
    /// What rate limits go by; without it, there are none.
    clock: Option<SharedClock>,
    /// What is left to the tenants that have rate limits.
    limiters: FxHashMap<TenantId, Arc<MessageLimiter>>,
    /// Where the messages of devices are counted.
    pub(super) usage: Option<Arc<ApiUsage>>,
    changes: u64,
    latest: VecDeque<EntityChange>,
}

struct Entry {
    handle: Weak<DeviceHandle>,
    // Outlives the handle while it is ahead of the clock.
    times: Arc<MonotonicTimes>,
}

impl Index {
    /// Nobody yet; rate limits go by the clock.
    pub(super) fn new(clock: SharedClock) -> Self {
        Self {
            clock: Some(clock),
            ..Self::default()
        }
    }

    /// The moment to read something at.
    pub(super) const fn now(&self) -> Moment {
        Moment(self.changes)
    }

    /// Marks the handles that a change concerns.
    pub(super) fn note(&mut self, change: EntityChange) {
        let mark = |entry: &Entry| {
            if let Some(handle) = entry.handle.upgrade()
                && let Some(mark) = meaning(change, handle.subject, handle.id, &handle.settings())
            {
                handle.mark(mark);
            }
        };
        match change {
            EntityChange::DeviceMoved(..)
            | EntityChange::CustomerSaved(..)
            | EntityChange::CustomerDeleted(..)
            | EntityChange::UserChanged(..)
            | EntityChange::CalculatedFieldChanged(..)
            | EntityChange::RuleChainChanged(..)
            | EntityChange::RuleChainDeleted(..)
            | EntityChange::QueueChanged(..)
            | EntityChange::AssetSaved(..)
            | EntityChange::AssetDeleted(..)
            | EntityChange::AssetProfileChanged(..)
            | EntityChange::EntityViewChanged(..)
            | EntityChange::DashboardChanged(..)
            | EntityChange::OtaPackageChanged(..)
            | EntityChange::RelationChanged(..)
            | EntityChange::AlarmChanged(..)
            | EntityChange::AttributesChanged(..) => return,
            EntityChange::DeviceSaved(_, device)
            | EntityChange::DeviceDeleted(_, device)
            | EntityChange::DeviceCredentialsChanged(_, device) => {
                self.by_device.get(&device).into_iter().for_each(mark);
            }
            EntityChange::DeviceProfileChanged(..)
            | EntityChange::TenantProfileChanged(..)
            | EntityChange::TenantSaved(..)
            | EntityChange::TenantDeleted(..) => self.by_device.values().for_each(mark),
        }
        if let EntityChange::TenantDeleted(tenant) = change {
            self.limiters.remove(&tenant);
        }
        self.settings.retain(|(tenant, profile), settings| match change {
            EntityChange::DeviceProfileChanged(_, changed) => *profile != changed,
            EntityChange::TenantProfileChanged(changed) => settings.tenant_profile != changed,
            EntityChange::TenantSaved(changed) | EntityChange::TenantDeleted(changed) => *tenant != changed,
            _ => true,
        });
        self.changes += 1;
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(change);
    }

    /// Whether nothing has happened since the device was read that concerns it.
    fn is_current(&self, loaded: &Loaded) -> bool {
        let passed = usize::try_from(self.changes - loaded.since.0).unwrap_or(usize::MAX);
        passed <= self.latest.len()
            && self
                .latest
                .iter()
                .rev()
                .take(passed)
                .all(|change| meaning(*change, loaded.subject, loaded.id, &loaded.settings).is_none())
    }

    /// Whether the last time given out for a device is known, if that matters.
    pub(super) fn knows_times(&self, device: DeviceId) -> bool {
        self.by_device.contains_key(&device)
    }

    /// The handle of a device, with these settings; a revoked one is replaced. `None` if what was read may be out of date.
    /// Times that are not known continue after `last_ms`.
    pub(super) fn keep(&mut self, loaded: Loaded, last_ms: i64, now_ms: i64) -> Option<Arc<DeviceHandle>> {
        if !self.is_current(&loaded) {
            return None;
        }
        let Loaded {
            subject,
            id,
            settings,
            role,
            ..
        } = loaded;
        let settings = self.share(subject.tenant, settings);
        let known = self.by_device.get(&id);
        let live = known.and_then(|entry| entry.handle.upgrade());
        if let Some(handle) = live.filter(|handle| !handle.is_revoked() && handle.subject == subject) {
            self.limit(&handle, &settings, role);
            handle.renew(settings, role);
            return Some(handle);
        }
        let times = match known {
            Some(entry) => entry.times.clone(),
            None => {
                self.make_room(now_ms);
                Arc::new(MonotonicTimes::after(last_ms))
            }
        };
        let usage = self.usage.as_ref().map(|usage| usage.of(subject.tenant));
        let handle = DeviceHandle::new(subject, id, times.clone(), settings.clone(), usage);
        self.limit(&handle, &settings, role);
        handle.renew(settings, role);
        let entry = Entry {
            handle: Arc::downgrade(&handle),
            times,
        };
        self.by_device.insert(id, entry);
        Some(handle)
    }

    /// Puts settings in force that were read for a handle, unless they may be out of date; returns whether it did.
    pub(super) fn renew(&mut self, handle: &DeviceHandle, loaded: Loaded) -> bool {
        let current = self.is_current(&loaded);
        if current {
            let settings = self.share(loaded.subject.tenant, loaded.settings);
            self.limit(handle, &settings, loaded.role);
            handle.renew(settings, loaded.role);
        }
        current
    }

    /// Puts the rate limits of settings in force. What is left of limits that have not changed stays.
    fn limit(&mut self, handle: &DeviceHandle, settings: &DeviceSettings, role: Role) {
        let Some(clock) = &self.clock else { return };
        let tenant = handle.subject.tenant;
        let follow = |known: Option<Arc<MessageLimiter>>, rates: &MessageRates| {
            if rates.is_none() {
                return None;
            }
            let known = known.filter(|known| known.rates() == rates);
            Some(known.unwrap_or_else(|| Arc::new(MessageLimiter::new(rates, clock))))
        };
        let known = handle.limiters();
        let limiters = Limiters {
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

    /// Forgets the devices that nobody holds a handle of. What is not ahead of the clock cannot be given out twice.
    fn make_room(&mut self, now_ms: i64) {
        if self.by_device.len() < self.prune_at {
            return;
        }
        self.by_device
            .retain(|_, entry| Arc::strong_count(&entry.times) > 1 || entry.times.last() > now_ms);
        self.prune_at = (self.by_device.len() * 2).max(1_024);
    }

    /// The settings of a profile, if they were read and nothing has happened since that concerns them.
    pub(super) fn settings(&self, tenant: TenantId, profile: DeviceProfileId) -> Option<Arc<DeviceSettings>> {
        self.settings.get(&(tenant, profile)).cloned()
    }

    /// The same settings, current ones, shared with other devices of the profile.
    fn share(&mut self, tenant: TenantId, settings: Arc<DeviceSettings>) -> Arc<DeviceSettings> {
        let key = (tenant, settings.profile);
        if let Some(known) = self.settings.get(&key).filter(|known| ***known == *settings) {
            return known.clone();
        }
        if self.settings.len() >= KEPT_SETTINGS {
            self.settings.clear();
        }
        self.settings.insert(key, settings.clone());
        settings
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_device.len()
    }
}
