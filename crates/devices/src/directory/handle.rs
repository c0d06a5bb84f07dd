//! A device as transports hold it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use fieldline_core::clock::MonotonicTimes;
use fieldline_core::events::{ChangeKind, EntityChange};
use fieldline_core::overload::RefusedLimit;
use fieldline_core::rate_limits::{MessageLimiter, MessageRates, RateLimitViolation};
use fieldline_core::usage::{ApiFeature, TenantUsage, UsageKey};
use fieldline_model::entity::Device;
use fieldline_model::{DeviceId, DeviceProfileId, EntityKey, EntityType, TenantProfileId};
use fieldline_protobuf::PayloadSchemas;
use parking_lot::RwLock;

use super::versions::{SourceVersion, VersionedSettings};

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
    /// What payloads over MQTT look like, where they are Protobuf.
    pub mqtt_payloads: Option<Arc<PayloadSchemas>>,
    /// The same over CoAP.
    pub coap_payloads: Option<Arc<PayloadSchemas>>,
    /// Rate limits of a device.
    pub of_device: MessageLimits,
    /// Rate limits of what a gateway sends for itself.
    pub of_gateway_itself: MessageLimits,
    /// Rate limits of what comes from all devices behind a gateway.
    pub of_gateway: MessageLimits,
    /// Rate limits of all devices of the tenant together.
    pub of_tenant: MessageLimits,
}

impl DeviceSettings {
    /// Rate limits of what a device sends for itself.
    pub const fn limits_of(&self, role: DeviceRole) -> &MessageLimits {
        if role.is_gateway {
            &self.of_gateway_itself
        } else {
            &self.of_device
        }
    }
}

/// Rate limits of messages, telemetry messages and telemetry points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageLimits {
    /// As the tenant profile writes them.
    pub texts: [Option<String>; 3],
    /// The same, read.
    pub rates: MessageRates,
}

impl MessageLimits {
    pub(super) fn of(texts: [Option<String>; 3]) -> Self {
        let rates = MessageRates::parse(texts.each_ref().map(Option::as_deref));
        Self { texts, rates }
    }
}

/// What a device is to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceRole {
    /// It speaks for devices behind it.
    pub is_gateway: bool,
    /// Whoever is behind it was heard when the gateway was.
    pub overwrites_activity: bool,
}

impl DeviceRole {
    const GATEWAY: u8 = 1;
    const OVERWRITES: u8 = 2;

    /// As the additional info of a device says.
    pub fn of(device: &Device) -> Self {
        let info = device.additional_info.as_ref();
        let overwrites = info.and_then(|info| info.get("overwriteActivityTime")?.as_bool());
        let is_gateway = device.is_gateway();
        Self {
            is_gateway,
            overwrites_activity: is_gateway && overwrites.unwrap_or(false),
        }
    }

    const fn bits(self) -> u8 {
        let gateway = if self.is_gateway { Self::GATEWAY } else { 0 };
        let overwrites = if self.overwrites_activity {
            Self::OVERWRITES
        } else {
            0
        };
        gateway | overwrites
    }

    const fn of_bits(bits: u8) -> Self {
        Self {
            is_gateway: bits & Self::GATEWAY != 0,
            overwrites_activity: bits & Self::OVERWRITES != 0,
        }
    }
}

/// Why a message is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageRefusal {
    /// The tenant has used up its messages of the month.
    UsedUp,
    /// The message goes beyond a rate limit.
    TooOften(RateLimitScope, RateLimitViolation),
}

/// Whose rate limit it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimitScope {
    /// That of one device.
    Device,
    /// That of everything behind a gateway.
    Gateway,
    /// That of everything in a tenant.
    Tenant,
}

impl RateLimitScope {
    /// Its name, lower-case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Gateway => "gateway",
            Self::Tenant => "tenant",
        }
    }
}

/// As the device and the operator are told.
impl fmt::Display for MessageRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UsedUp => f.write_str("The messages of this month are used up!"),
            Self::TooOften(whose, RateLimitViolation { of, limit }) => {
                write!(
                    f,
                    "The rate limit of {of} of the {} ({limit}) is exceeded!",
                    whose.name()
                )
            }
        }
    }
}

/// What the messages of a device have to pass.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceLimiters {
    pub(super) tenant: Option<Arc<MessageLimiter>>,
    pub(super) device: Option<Arc<MessageLimiter>>,
    /// What those of devices behind it have to pass.
    pub(super) behind: Option<Arc<MessageLimiter>>,
}

/// A device as transports hold it. Cheap to share; all connections and requests of a device use the same one.
#[derive(Debug)]
pub struct DeviceHandle {
    /// The device within its tenant.
    pub subject: EntityKey,
    /// Its id.
    pub id: DeviceId,
    /// Server-assigned times of its points. A handle that replaces a revoked one has the same.
    pub times: Arc<MonotonicTimes>,
    /// Where its messages are counted.
    usage: Option<Arc<TenantUsage>>,
    /// Whether there are limiters, which most have not.
    is_limited: AtomicBool,
    limiters: RwLock<DeviceLimiters>,
    settings: RwLock<Arc<VersionedSettings>>,
    tenant: Arc<SourceVersion>,
    role: AtomicU8,
    stale: AtomicBool,
    revoked: AtomicBool,
}

/// What becomes of a handle when something has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandleInvalidation {
    /// Its settings are to be read again.
    Stale,
    /// It admits nobody any more.
    Revoked,
}

impl DeviceHandle {
    pub(super) fn new(
        subject: EntityKey,
        id: DeviceId,
        times: Arc<MonotonicTimes>,
        settings: Arc<VersionedSettings>,
        usage: Option<Arc<TenantUsage>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            subject,
            id,
            times,
            usage,
            is_limited: AtomicBool::new(false),
            limiters: RwLock::default(),
            tenant: Arc::clone(settings.tenant()),
            settings: RwLock::new(settings),
            role: AtomicU8::new(0),
            stale: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
        })
    }

    /// Whether its tenant may still send messages this month.
    pub fn may_send(&self) -> bool {
        self.usage
            .as_ref()
            .is_none_or(|usage| usage.allows(ApiFeature::Transport))
    }

    /// Lets a message with so many values pass the rate limits of device and tenant, which counts it.
    ///
    /// # Errors
    /// The tenant has used up what it may send, or the message goes beyond a rate limit.
    pub fn acquire(&self, points: u32) -> Result<(), MessageRefusal> {
        self.pass_first(points, RateLimitScope::Device, |own| {
            own.limiters.read().device.clone()
        })
    }

    /// The same for a device whose message comes through a gateway: the limits are those of the gateway and the tenant.
    ///
    /// # Errors
    /// As with [`Self::acquire`].
    pub fn acquire_through(&self, gateway: &Self, points: u32) -> Result<(), MessageRefusal> {
        self.pass_first(points, RateLimitScope::Gateway, |_| {
            if gateway.is_limited.load(Ordering::Relaxed) {
                gateway.limiters.read().behind.clone()
            } else {
                None
            }
        })
    }

    /// Whether a message with so many values may pass; if so, it counts. See [`Self::acquire`].
    pub fn try_acquire(&self, points: u32) -> bool {
        self.acquire(points).is_ok()
    }

    fn pass_first(
        &self,
        points: u32,
        whose: RateLimitScope,
        first: impl FnOnce(&Self) -> Option<Arc<MessageLimiter>>,
    ) -> Result<(), MessageRefusal> {
        if !self.may_send() {
            return Err(MessageRefusal::UsedUp);
        }
        let is_limited = self.is_limited.load(Ordering::Relaxed);
        if !is_limited && whose == RateLimitScope::Device {
            return Ok(());
        }
        // What one device may not send is not taken from what its tenant may.
        let tenant = || is_limited.then(|| self.limiters.read().tenant.clone()).flatten();
        for (whose, limiter) in [(whose, first(self)), (RateLimitScope::Tenant, tenant())] {
            if let Some(limiter) = limiter {
                limiter.acquire(points).map_err(|exceeded| {
                    self.note_refusal(whose, &exceeded);
                    MessageRefusal::TooOften(whose, exceeded)
                })?;
            }
        }
        Ok(())
    }

    fn note_refusal(&self, whose: RateLimitScope, exceeded: &RateLimitViolation) {
        if let Some(usage) = &self.usage {
            let limit = RefusedLimit::Rate(exceeded.limit.clone());
            usage.refusals().add(whose.name(), exceeded.of, limit);
        }
    }

    pub(super) fn limiters(&self) -> DeviceLimiters {
        self.limiters.read().clone()
    }

    pub(super) fn limit(&self, limiters: DeviceLimiters) {
        let is_limited = limiters.tenant.is_some() || limiters.device.is_some() || limiters.behind.is_some();
        *self.limiters.write() = limiters;
        self.is_limited.store(is_limited, Ordering::Relaxed);
    }

    /// Counts messages that were taken, and the values in them.
    pub fn count_sent(&self, messages: u32, points: u32) {
        if let Some(usage) = &self.usage
            && messages > 0
        {
            usage.add(UsageKey::TransportMessages, messages.into());
            usage.add(UsageKey::TransportDataPoints, points.into());
        }
    }

    /// What the device is to others.
    pub fn role(&self) -> DeviceRole {
        DeviceRole::of_bits(self.role.load(Ordering::Relaxed))
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<DeviceSettings> {
        Arc::clone(&self.settings.read().settings)
    }

    /// Whether its settings should be read again: see [`DeviceDirectory::refresh`](super::DeviceDirectory::refresh).
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire) || self.settings.read().is_stale()
    }

    /// Whether the device was deleted or its credentials were changed: nothing more is accepted through this handle.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire) || self.tenant.has_ended()
    }

    pub(super) fn mark(&self, mark: HandleInvalidation) {
        let flag = match mark {
            HandleInvalidation::Stale => &self.stale,
            HandleInvalidation::Revoked => &self.revoked,
        };
        flag.store(true, Ordering::Release);
    }

    /// Puts settings in force that are known to be current.
    pub(super) fn renew(&self, settings: Arc<VersionedSettings>, role: DeviceRole) {
        self.role.store(role.bits(), Ordering::Relaxed);
        *self.settings.write() = settings;
        self.stale.store(false, Ordering::Release);
    }
}

/// What a change means for a device with these settings, if it concerns it.
pub(super) fn meaning(
    change: EntityChange,
    subject: EntityKey,
    id: DeviceId,
    settings: &DeviceSettings,
) -> Option<HandleInvalidation> {
    let changed = change.subject.entity;
    let (concerns, mark) = match (changed.entity_type, change.what) {
        (EntityType::Device, ChangeKind::Saved) => (changed.id == id.0, HandleInvalidation::Stale),
        (EntityType::Device, ChangeKind::Deleted | ChangeKind::Credentials) => {
            (changed.id == id.0, HandleInvalidation::Revoked)
        }
        (EntityType::DeviceProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
            (settings.profile.0 == changed.id, HandleInvalidation::Stale)
        }
        (EntityType::TenantProfile, ChangeKind::Saved | ChangeKind::Deleted) => {
            (settings.tenant_profile.0 == changed.id, HandleInvalidation::Stale)
        }
        (EntityType::Tenant, ChangeKind::Saved) => {
            (subject.tenant.0 == changed.id, HandleInvalidation::Stale)
        }
        (EntityType::Tenant, ChangeKind::Deleted) => {
            (subject.tenant.0 == changed.id, HandleInvalidation::Revoked)
        }
        _ => return None,
    };
    concerns.then_some(mark)
}
