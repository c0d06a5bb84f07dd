//! The devices that transports know: looked up by their credentials, kept in a bounded cache, and told when something
//! that concerns them has changed.

use std::sync::Arc;

use fieldline_core::clock::SharedClock;
use fieldline_core::events::{EntityChange, EntityListener};
use fieldline_core::ingest::MAIN_QUEUE;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{EntityStores, StoreError, StoreErrorKind, StoreResult, TimeSeriesStore};
use fieldline_core::usage::UsageStore;
use fieldline_model::EntityKey;
use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials, DeviceProfile, TransportType};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

mod credentials;
mod handle;
mod index;
mod payloads;
mod power_saving;
#[cfg(test)]
mod tests;
mod versions;

use handle::HandleInvalidation;
use index::{ChangeVersion, DeviceIndex, LoadedDevice};
use payloads::PayloadSchemaCache;

pub use credentials::{
    MqttBasicCredentials, certificate_credentials_id, mqtt_basic_credentials_id, same_secret, sha3_hex,
    trim_certificate,
};
pub use handle::{DeviceHandle, DeviceRole, DeviceSettings, MessageLimits, MessageRefusal, RateLimitScope};
pub use power_saving::ListenWindow;

/// How far server-assigned times may have run ahead of the clock before the program ended. Points that lie further in the
/// future have times from devices whose clocks are wrong.
const MAX_LEAD_MS: i64 = 600_000;

/// How often a device is read again because it was changed meanwhile.
const TRIES: usize = 4;

static UNREADABLE_GATE: LogGate = LogGate::new(5);

/// Settings of the device directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// How many devices' credentials and settings are kept in memory. Connected devices stay known beyond it; others are
    /// looked up in the database when they come back.
    pub cached_devices: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cached_devices: 50_000,
        }
    }
}

/// What a device showed when it connected over MQTT.
#[derive(Debug, Clone, Copy, Default)]
pub struct MqttLogin<'a> {
    /// Client id, empty for none.
    pub client_id: &'a str,
    /// User name.
    pub username: Option<&'a str>,
    /// Password.
    pub password: Option<&'a [u8]>,
}

type CredentialsKey = (CredentialsType, Box<str>);

#[derive(Clone)]
struct CachedDevice {
    handle: Arc<DeviceHandle>,
    value: Option<Arc<MqttBasicCredentials>>,
}

/// Finds devices by their credentials.
pub struct DeviceDirectory {
    stores: EntityStores,
    series: Arc<dyn TimeSeriesStore>,
    clock: SharedClock,
    known: Cache<CredentialsKey, CachedDevice>,
    index: Mutex<DeviceIndex>,
    compiled: PayloadSchemaCache,
}

impl DeviceDirectory {
    /// A directory over the entity stores; register it as a listener of entity events. In `series` it looks how far the
    /// times of devices have run ahead of the clock, so everything that was accepted earlier has to be in there. The messages
    /// of devices are counted, and limited, where there is a `usage`.
    pub fn new(
        stores: EntityStores,
        series: Arc<dyn TimeSeriesStore>,
        usage: Option<Arc<UsageStore>>,
        clock: SharedClock,
        options: &Options,
    ) -> Arc<Self> {
        Arc::new(Self {
            stores,
            series,
            index: Mutex::new(DeviceIndex::new(usage, clock.clone())),
            clock,
            known: Cache::new(options.cached_devices.max(16)),
            compiled: PayloadSchemaCache::default(),
        })
    }

    /// The device with that access token.
    pub async fn by_token(&self, token: &str) -> StoreResult<Option<Arc<DeviceHandle>>> {
        Ok(self
            .find(CredentialsType::AccessToken, token)
            .await?
            .map(|known| known.handle))
    }

    /// The device with that certificate, given as the text between its PEM header and footer without line breaks.
    pub async fn by_certificate(&self, certificate: &str) -> StoreResult<Option<Arc<DeviceHandle>>> {
        let id = certificate_credentials_id(certificate);
        Ok(self
            .find(CredentialsType::X509Certificate, &id)
            .await?
            .map(|known| known.handle))
    }

    /// Counts the changes of what devices are found by. Who belonged to no device may belong to one once it counts further.
    pub fn changes(&self) -> u64 {
        self.index.lock().now().count()
    }

    /// The device that logs in over MQTT without a certificate. A user name that is an access token wins whatever the
    /// password; else client id and user name together, else the user name alone; without a user name the client id.
    pub async fn by_mqtt_login(&self, login: MqttLogin<'_>) -> StoreResult<Option<Arc<DeviceHandle>>> {
        let Some(username) = login.username.filter(|name| !name.is_empty()) else {
            if login.client_id.is_empty() {
                return Ok(None);
            }
            let id = mqtt_basic_credentials_id(Some(login.client_id), None);
            return Ok(self
                .find(CredentialsType::MqttBasic, &id)
                .await?
                .and_then(|known| known.admit(login)));
        };
        if let Some(known) = self.find(CredentialsType::AccessToken, username).await? {
            return Ok(Some(known.handle));
        }
        if !login.client_id.is_empty() {
            let id = mqtt_basic_credentials_id(Some(login.client_id), Some(username));
            if let Some(known) = self.find(CredentialsType::MqttBasic, &id).await? {
                return Ok(known.admit(login));
            }
        }
        Ok(self
            .find(CredentialsType::MqttBasic, username)
            .await?
            .and_then(|known| known.admit(login)))
    }

    /// The handle of a device that comes through a gateway; `None` where it is gone.
    pub async fn by_device(&self, device: &Device) -> StoreResult<Option<Arc<DeviceHandle>>> {
        for _ in 0..TRIES {
            let since = self.index.lock().now();
            let Some(device) = self.stores.devices.get(device.tenant_id, device.id).await? else {
                return Ok(None);
            };
            let Some(loaded) = self.load(&device, since).await? else {
                return Ok(None);
            };
            let last_ms = self.last_time(&loaded).await?;
            let kept = self.index.lock().keep(loaded, last_ms, self.clock.now_ms());
            if kept.is_some() {
                return Ok(kept);
            }
        }
        Err(changing())
    }

    /// Reads the settings of a stale handle again; a device that is gone is revoked.
    pub async fn refresh(&self, handle: &DeviceHandle) -> StoreResult<()> {
        let (subject, id) = (handle.subject, handle.id);
        for _ in 0..TRIES {
            let since = self.index.lock().now();
            let current = match self.stores.devices.get(subject.tenant, id).await? {
                Some(device) => self.load(&device, since).await?,
                None => None,
            };
            let Some(loaded) = current else {
                handle.mark(HandleInvalidation::Revoked);
                return Ok(());
            };
            if self.index.lock().renew(handle, loaded) {
                return Ok(());
            }
        }
        Err(changing())
    }

    async fn find(&self, kind: CredentialsType, id: &str) -> StoreResult<Option<CachedDevice>> {
        let key = (kind, Box::from(id));
        if let Some(known) = self.known.get(&key) {
            if !known.handle.is_revoked() {
                return Ok(Some(known));
            }
            self.known.remove(&key);
        }
        for _ in 0..TRIES {
            let since = self.index.lock().now();
            let Some((device, credentials)) = self.stores.device_credentials.find(kind, id).await? else {
                return Ok(None);
            };
            let Some(loaded) = self.load(&device, since).await? else {
                return Ok(None);
            };
            let last_ms = self.last_time(&loaded).await?;
            if let Some(known) = self.keep(&key, loaded, last_ms, &credentials) {
                return Ok(Some(known));
            }
        }
        Err(changing())
    }

    /// What a handle of the device holds, as of when reading began; `None` without a profile.
    async fn load(&self, device: &Device, since: ChangeVersion) -> StoreResult<Option<LoadedDevice>> {
        let Some(settings) = self.settings_of(device).await? else {
            return Ok(None);
        };
        Ok(Some(LoadedDevice {
            subject: EntityKey::device(device.tenant_id, device.id),
            id: device.id,
            settings,
            role: DeviceRole::of(device),
            since,
        }))
    }

    /// Makes what was read known, unless it has changed since.
    fn keep(
        &self,
        key: &CredentialsKey,
        loaded: LoadedDevice,
        last_ms: i64,
        credentials: &DeviceCredentials,
    ) -> Option<CachedDevice> {
        let value = match credentials.credentials_type {
            CredentialsType::MqttBasic => Some(Arc::new(MqttBasicCredentials::parse(
                credentials.credentials_value.as_deref().unwrap_or_default(),
            ))),
            _ => None,
        };
        let now_ms = self.clock.now_ms();
        let handle = self.index.lock().keep(loaded, last_ms, now_ms)?;
        let known = CachedDevice { handle, value };
        // A change from here on revokes the handle, and with it what is cached.
        self.known.insert(key.clone(), known.clone());
        Some(known)
    }

    /// The time after which those of a device continue: that of its newest point, as far as it lies in the future, where
    /// nobody remembers the last time given out.
    async fn last_time(&self, loaded: &LoadedDevice) -> StoreResult<i64> {
        if self.index.lock().knows_times(loaded.id) {
            return Ok(0);
        }
        let latest = match self.series.latest(loaded.subject, None).await {
            Ok(latest) => latest,
            Err(error) if error.kind().is_retryable() => return Err(error),
            Err(error) => {
                // A device is not locked out because one of its latest values cannot be read.
                if let Some(suppressed) = UNREADABLE_GATE.open() {
                    let device = loaded.id;
                    warn!(%device, %error, suppressed, "cannot read a device's latest values, its times start from now");
                }
                return Ok(0);
            }
        };
        let now = self.clock.now_ms();
        let ahead = now.saturating_add(1)..=now.saturating_add(MAX_LEAD_MS);
        let times = latest.iter().map(|latest| latest.point.ts);
        Ok(times.filter(|ts| ahead.contains(ts)).max().unwrap_or(0))
    }

    /// The settings of a device's profile: those that are known to be current, or else as they are stored.
    async fn settings_of(&self, device: &Device) -> StoreResult<Option<Arc<DeviceSettings>>> {
        let Some(profile_id) = device.device_profile_id else {
            return Ok(None);
        };
        let known = self.index.lock().settings(device.tenant_id, profile_id);
        if known.is_some() {
            return Ok(known);
        }
        let profile = self
            .stores
            .device_profiles
            .get(device.tenant_id, profile_id)
            .await?;
        let tenant = self.stores.tenants.get(device.tenant_id).await?;
        let (Some(profile), Some(tenant_profile)) =
            (profile, tenant.and_then(|tenant| tenant.tenant_profile_id))
        else {
            return Ok(None);
        };
        let tenant_wide = self
            .stores
            .tenant_profiles
            .get(tenant_profile)
            .await?
            .unwrap_or_default();
        let limit = |name: &str| {
            tenant_wide
                .setting(name)?
                .as_str()
                .filter(|limit| !limit.is_empty())
                .map(str::to_owned)
        };
        let limits = |sender: &str| {
            ["Msg", "TelemetryMsg", "TelemetryDataPoints"]
                .map(|what| limit(&format!("transport{sender}{what}RateLimit")))
        };
        let own_queue = profile
            .default_queue_name
            .as_deref()
            .filter(|name| !name.is_empty());
        let has_own_main = tenant_wide.isolated_tb_rule_engine.then_some(MAIN_QUEUE);
        let payloads = self.compiled.of(profile_id, &profile);
        let payloads_over =
            |transport: TransportType| payloads.clone().filter(|_| profile.is_configured_for(transport));
        Ok(Some(Arc::new(DeviceSettings {
            queue: own_queue
                .or(has_own_main)
                .filter(|name| has_own_main.is_some() || *name != MAIN_QUEUE)
                .map(Arc::from),
            profile: profile_id,
            tenant_profile,
            ttl_seconds: profile
                .storage_ttl_seconds()
                .unwrap_or_else(|| tenant_wide.storage_ttl_seconds()),
            ack_on_validation_error: profile
                .transport_setting("sendAckOnValidationException")
                .and_then(serde_json::Value::as_bool)
                .unwrap_or(false),
            telemetry_topic: custom_topic(&profile, "deviceTelemetryTopic"),
            attributes_topic: custom_topic(&profile, "deviceAttributesTopic"),
            attributes_subscription: custom_topic(&profile, "deviceAttributesSubscribeTopic"),
            of_device: MessageLimits::of(limits("Device")),
            of_gateway_itself: MessageLimits::of(limits("GatewayDevice")),
            of_gateway: MessageLimits::of(limits("Gateway")),
            of_tenant: MessageLimits::of(limits("Tenant")),
            mqtt_payloads: payloads_over(TransportType::Mqtt),
            coap_payloads: payloads_over(TransportType::Coap),
        })))
    }
}

fn changing() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the device is being changed")
}

impl CachedDevice {
    /// The device, if what it showed is what its MQTT-basic credentials ask for.
    fn admit(self, login: MqttLogin<'_>) -> Option<Arc<DeviceHandle>> {
        self.value
            .as_ref()
            .is_some_and(|value| value.admits(login))
            .then_some(self.handle)
    }
}

fn custom_topic(profile: &DeviceProfile, name: &str) -> Option<String> {
    let default = if name == "deviceTelemetryTopic" {
        "v1/devices/me/telemetry"
    } else {
        "v1/devices/me/attributes"
    };
    let topic = profile.transport_setting(name)?.as_str()?;
    (!topic.trim().is_empty() && topic != default).then(|| topic.to_owned())
}

impl EntityListener for DeviceDirectory {
    fn on_change(&self, change: EntityChange) {
        self.index.lock().note(change);
    }
}
