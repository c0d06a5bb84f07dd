//! The devices that transports know: looked up by their credentials, kept in a bounded cache, and told when something
//! that concerns them has changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use fieldline_model::entity::{CredentialsType, Device, DeviceCredentials, DeviceProfile};
use fieldline_model::{DeviceId, DeviceProfileId, Subject, TenantId, TenantProfileId};
use parking_lot::{Mutex, RwLock};
use quick_cache::sync::Cache;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::MonotonicTimes;
use crate::events::{EntityChange, EntityListener};
use crate::ports::{EntityStores, StoreResult};

mod credentials;

pub use credentials::{
    BasicValue, certificate_credentials_id, mqtt_basic_credentials_id, sha3_hex, trim_certificate,
};

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
    /// Topic (filter) of telemetry that replaces the default one.
    pub telemetry_topic: Option<String>,
    /// Topic (filter) of attributes that replaces the default one.
    pub attributes_topic: Option<String>,
    /// Rate limits of messages, telemetry messages and telemetry points, as the tenant profile writes them.
    pub message_limits: [Option<String>; 3],
}

/// A device as transports hold it. Cheap to share; all connections and requests of a device use the same one.
#[derive(Debug)]
pub struct DeviceHandle {
    /// The device within its tenant.
    pub subject: Subject,
    /// Its id.
    pub id: DeviceId,
    /// Server-assigned times of its points.
    pub times: MonotonicTimes,
    settings: RwLock<Arc<DeviceSettings>>,
    stale: AtomicBool,
    revoked: AtomicBool,
}

impl DeviceHandle {
    /// The settings in force.
    pub fn settings(&self) -> Arc<DeviceSettings> {
        self.settings.read().clone()
    }

    /// Whether its settings should be read again: see [`DeviceDirectory::refresh`].
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// Whether the device was deleted or its credentials were changed: nothing more is accepted through this handle.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
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
struct Known {
    handle: Arc<DeviceHandle>,
    value: Option<Arc<BasicValue>>,
}

/// Finds devices by their credentials.
pub struct DeviceDirectory {
    stores: EntityStores,
    known: Cache<CredentialsKey, Known>,
    handles: Mutex<Handles>,
    // Counts changes, so that what was read while one happened is not kept.
    changes: AtomicU64,
}

#[derive(Default)]
struct Handles {
    by_device: FxHashMap<DeviceId, Weak<DeviceHandle>>,
    prune_at: usize,
    // Devices of one profile share their settings.
    settings: FxHashMap<DeviceProfileId, Weak<DeviceSettings>>,
}

impl DeviceDirectory {
    /// A directory over the entity stores; register it as a listener of entity events.
    pub fn new(stores: EntityStores, options: &Options) -> Arc<Self> {
        Arc::new(Self {
            stores,
            known: Cache::new(options.cached_devices.max(16)),
            handles: Mutex::default(),
            changes: AtomicU64::new(0),
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

    /// Reads the settings of a stale handle again; a device that is gone is revoked.
    pub async fn refresh(&self, handle: &DeviceHandle) -> StoreResult<()> {
        handle.stale.store(false, Ordering::Release);
        let loaded = async {
            let Some(device) = self.stores.devices.get(handle.subject.tenant, handle.id).await? else {
                return Ok(None);
            };
            self.settings_of(&device).await
        };
        match loaded.await {
            Ok(Some(settings)) => *handle.settings.write() = settings,
            Ok(None) => handle.revoked.store(true, Ordering::Release),
            Err(error) => {
                handle.stale.store(true, Ordering::Release);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn find(&self, kind: CredentialsType, id: &str) -> StoreResult<Option<Known>> {
        let key = (kind, Box::from(id));
        if let Some(known) = self.known.get(&key) {
            if !known.handle.is_revoked() {
                return Ok(Some(known));
            }
            self.known.remove(&key);
        }
        // A change while reading may concern what was read: read again, and after some tries use it without keeping it.
        for _ in 0..4 {
            let changes = self.changes.load(Ordering::Acquire);
            let Some((device, credentials)) = self.stores.device_credentials.find(kind, id).await? else {
                return Ok(None);
            };
            let Some(known) = self.load(&device, &credentials).await? else {
                return Ok(None);
            };
            self.known.insert(key.clone(), known.clone());
            if self.changes.load(Ordering::Acquire) == changes {
                return Ok(Some(known));
            }
            self.known.remove(&key);
        }
        let Some((device, credentials)) = self.stores.device_credentials.find(kind, id).await? else {
            return Ok(None);
        };
        self.load(&device, &credentials).await
    }

    async fn load(&self, device: &Device, credentials: &DeviceCredentials) -> StoreResult<Option<Known>> {
        let (Some(id), Some(settings)) = (device.id, self.settings_of(device).await?) else {
            return Ok(None);
        };
        let value = match credentials.credentials_type {
            CredentialsType::MqttBasic => Some(Arc::new(BasicValue::parse(
                credentials.credentials_value.as_deref().unwrap_or_default(),
            ))),
            _ => None,
        };
        let subject = Subject::device(device.tenant_id, id);
        Ok(Some(Known {
            handle: self.handles.lock().shared(subject, id, settings),
            value,
        }))
    }

    async fn settings_of(&self, device: &Device) -> StoreResult<Option<Arc<DeviceSettings>>> {
        let Some(profile_id) = device.device_profile_id else {
            return Ok(None);
        };
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
        let settings = DeviceSettings {
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
            message_limits: [
                limit("transportDeviceMsgRateLimit"),
                limit("transportDeviceTelemetryMsgRateLimit"),
                limit("transportDeviceTelemetryDataPointsRateLimit"),
            ],
        };
        Ok(Some(self.handles.lock().intern(settings)))
    }

    fn mark(&self, stale: bool, revoked: bool, concerns: impl Fn(&DeviceHandle) -> bool) {
        for handle in self.handles.lock().by_device.values().filter_map(Weak::upgrade) {
            mark_one(&handle, stale, revoked && concerns(&handle), concerns(&handle));
        }
    }

    fn mark_device(&self, device: DeviceId, stale: bool, revoked: bool) {
        let handle = self.handles.lock().by_device.get(&device).and_then(Weak::upgrade);
        if let Some(handle) = handle {
            mark_one(&handle, stale, revoked, true);
        }
    }
}

fn mark_one(handle: &DeviceHandle, stale: bool, revoked: bool, concerned: bool) {
    if !concerned {
        return;
    }
    if revoked {
        handle.revoked.store(true, Ordering::Release);
    }
    if stale {
        handle.stale.store(true, Ordering::Release);
    }
}

impl Handles {
    /// The same settings, shared with other devices of the profile that have them.
    fn intern(&mut self, settings: DeviceSettings) -> Arc<DeviceSettings> {
        let known = self.settings.get(&settings.profile).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| **known == settings) {
            return known;
        }
        self.settings.retain(|_, known| known.strong_count() > 0);
        let settings = Arc::new(settings);
        self.settings.insert(settings.profile, Arc::downgrade(&settings));
        settings
    }

    /// The live handle of a device with these settings; a revoked one is replaced.
    fn shared(&mut self, subject: Subject, id: DeviceId, settings: Arc<DeviceSettings>) -> Arc<DeviceHandle> {
        let live = self.by_device.get(&id).and_then(Weak::upgrade);
        if let Some(handle) = live.filter(|handle| !handle.is_revoked() && handle.subject == subject) {
            *handle.settings.write() = settings;
            return handle;
        }
        if self.by_device.len() >= self.prune_at {
            self.by_device.retain(|_, handle| handle.strong_count() > 0);
            self.prune_at = (self.by_device.len() * 2).max(1_024);
        }
        let handle = Arc::new(DeviceHandle {
            subject,
            id,
            times: MonotonicTimes::default(),
            settings: RwLock::new(settings),
            stale: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
        });
        self.by_device.insert(id, Arc::downgrade(&handle));
        handle
    }
}

impl Known {
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
    (!topic.is_empty() && topic != default).then(|| topic.to_owned())
}

impl EntityListener for DeviceDirectory {
    fn on_change(&self, change: EntityChange) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        match change {
            EntityChange::DeviceSaved(_, device) => self.mark_device(device, true, false),
            EntityChange::DeviceDeleted(_, device) | EntityChange::DeviceCredentialsChanged(_, device) => {
                self.mark_device(device, false, true);
            }
            EntityChange::DeviceProfileChanged(_, profile) => {
                self.mark(true, false, |handle| handle.settings().profile == profile);
            }
            EntityChange::TenantProfileChanged(profile) => {
                self.mark(true, false, |handle| handle.settings().tenant_profile == profile);
            }
            EntityChange::TenantSaved(tenant) => self.mark(true, false, |handle| of_tenant(handle, tenant)),
            EntityChange::TenantDeleted(tenant) => self.mark(false, true, |handle| of_tenant(handle, tenant)),
            EntityChange::CustomerDeleted(..) | EntityChange::UserChanged(..) => {}
            #[allow(unreachable_patterns, reason = "further changes concern others")]
            _ => {}
        }
    }
}

fn of_tenant(handle: &DeviceHandle, tenant: TenantId) -> bool {
    handle.subject.tenant == tenant
}
