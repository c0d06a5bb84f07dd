//! A device as transports hold it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fieldline_model::{DeviceId, DeviceProfileId, Subject, TenantProfileId};
use parking_lot::RwLock;

use crate::clock::MonotonicTimes;
use crate::events::EntityChange;
use crate::rate_limits::{MessageLimiter, MessageRates};
use crate::usage::{Feature, Usage, UsageKey};

/// What transports need of a device's profile and tenant profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSettings {
    /// The device's profile.
    pub profile: DeviceProfileId,
    /// The tenant's profile.
    pub tenant_profile: TenantProfileId,
    /// Seconds its points are kept; 0 for ever.
    pub ttl_seconds: u32,
    /// Whether an MQTT 3 publish that fails validation is acknowledged instead of closing the connection.
    pub ack_on_validation_error: bool,
    /// Queue that its messages go through; the main one where absent.
    pub queue: Option<Arc<str>>,
    /// Topic (filter) of telemetry that replaces the default one.
    pub telemetry_topic: Option<String>,
    /// Topic (filter) of attributes that replaces the default one.
    pub attributes_topic: Option<String>,
    /// Further filter that subscribes to changes of shared attributes.
    pub attributes_subscription: Option<String>,
    /// Rate limits of messages, telemetry messages and telemetry points, as the tenant profile writes them.
    pub message_limits: [Option<String>; 3],
    /// The same, read.
    pub rates: MessageRates,
    /// Rate limits of all devices of the tenant together.
    pub tenant_rates: MessageRates,
}

/// What the messages of a device have to pass.
#[derive(Debug, Clone, Default)]
pub(super) struct Limiters {
    pub(super) tenant: Option<Arc<MessageLimiter>>,
    pub(super) device: Option<Arc<MessageLimiter>>,
}

/// A device as transports hold it. Cheap to share; all connections and requests of a device use the same one.
#[derive(Debug)]
pub struct DeviceHandle {
    /// The device within its tenant.
    pub subject: Subject,
    /// Its id.
    pub id: DeviceId,
    /// Server-assigned times of its points. A handle that replaces a revoked one has the same.
    pub times: Arc<MonotonicTimes>,
    /// Where its messages are counted.
    usage: Option<Arc<Usage>>,
    /// Whether there are limiters, which most have not.
    is_limited: AtomicBool,
    limiters: RwLock<Limiters>,
    settings: RwLock<Arc<DeviceSettings>>,
    stale: AtomicBool,
    revoked: AtomicBool,
}

/// What becomes of a handle when something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Its settings are to be read again.
    Stale,
    /// It admits nobody any more.
    Revoked,
}

impl DeviceHandle {
    pub(super) fn new(
        subject: Subject,
        id: DeviceId,
        times: Arc<MonotonicTimes>,
        settings: Arc<DeviceSettings>,
        usage: Option<Arc<Usage>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            subject,
            id,
            times,
            usage,
            is_limited: AtomicBool::new(false),
            limiters: RwLock::default(),
            settings: RwLock::new(settings),
            stale: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
        })
    }

    /// Whether its tenant may still send messages this month.
    pub fn may_send(&self) -> bool {
        self.usage
            .as_ref()
            .is_none_or(|usage| usage.allows(Feature::Transport))
    }

    /// Whether a message with so many values may pass the rate limits of tenant and device; if so, it counts.
    pub fn admits(&self, points: u32) -> bool {
        if !self.is_limited.load(Ordering::Relaxed) {
            return true;
        }
        let Limiters { tenant, device } = self.limiters.read().clone();
        [tenant, device]
            .iter()
            .flatten()
            .all(|limiter| limiter.admits(points))
    }

    pub(super) fn limiters(&self) -> Limiters {
        self.limiters.read().clone()
    }

    pub(super) fn limit(&self, limiters: Limiters) {
        let is_limited = limiters.tenant.is_some() || limiters.device.is_some();
        *self.limiters.write() = limiters;
        self.is_limited.store(is_limited, Ordering::Relaxed);
    }

    /// Counts messages that were taken, and the values in them.
    pub fn sent(&self, messages: u32, points: u32) {
        if let Some(usage) = &self.usage
            && messages > 0
        {
            usage.add(UsageKey::TransportMessages, messages.into());
            usage.add(UsageKey::TransportDataPoints, points.into());
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<DeviceSettings> {
        self.settings.read().clone()
    }

    /// Whether its settings should be read again: see [`DeviceDirectory::refresh`](super::DeviceDirectory::refresh).
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// Whether the device was deleted or its credentials were changed: nothing more is accepted through this handle.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    pub(super) fn mark(&self, mark: Mark) {
        let flag = match mark {
            Mark::Stale => &self.stale,
            Mark::Revoked => &self.revoked,
        };
        flag.store(true, Ordering::Release);
    }

    /// Puts settings in force that are known to be current.
    pub(super) fn renew(&self, settings: Arc<DeviceSettings>) {
        *self.settings.write() = settings;
        self.stale.store(false, Ordering::Release);
    }
}

/// What a change means for a device with these settings, if it concerns it.
pub(super) fn meaning(
    change: EntityChange,
    subject: Subject,
    id: DeviceId,
    settings: &DeviceSettings,
) -> Option<Mark> {
    let (concerns, mark) = match change {
        EntityChange::DeviceSaved(_, device) => (device == id, Mark::Stale),
        EntityChange::DeviceDeleted(_, device) | EntityChange::DeviceCredentialsChanged(_, device) => {
            (device == id, Mark::Revoked)
        }
        EntityChange::DeviceProfileChanged(_, profile) => (settings.profile == profile, Mark::Stale),
        EntityChange::TenantProfileChanged(profile) => (settings.tenant_profile == profile, Mark::Stale),
        EntityChange::TenantSaved(tenant) => (subject.tenant == tenant, Mark::Stale),
        EntityChange::TenantDeleted(tenant) => (subject.tenant == tenant, Mark::Revoked),
        EntityChange::CustomerSaved(..)
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
        | EntityChange::AttributesChanged(..) => return None,
    };
    concerns.then_some(mark)
}
