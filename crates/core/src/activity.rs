//! Whether devices are alive: the server attributes `active`, `lastActivityTime`, `lastConnectTime`,
//! `lastDisconnectTime` and `inactivityAlarmTime`.
//!
//! Every message moves a number in memory; what has moved is written at intervals, once a device however often it was
//! heard. A device is active until nothing was heard of it for its time-out, which the server attribute
//! `inactivityTimeout` (milliseconds) sets for one device.

use std::sync::Arc;
use std::time::Duration;

use fieldline_model::kv::{Value, ValueRef, pack};
use fieldline_model::page::PageLink;
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityType, Subject};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tracing::warn;

use crate::clock::SharedClock;
use crate::events::{EntityChange, EntityListener};
use crate::options::Span;
use crate::ports::{AttributeRow, AttributeStore, DeviceFilter, EntityStores, StoreResult};

const ACTIVE: &str = "active";
const LAST_ACTIVITY: &str = "lastActivityTime";
const LAST_CONNECT: &str = "lastConnectTime";
const LAST_DISCONNECT: &str = "lastDisconnectTime";
const INACTIVITY_ALARM: &str = "inactivityAlarmTime";
const INACTIVITY_TIMEOUT: &str = "inactivityTimeout";

/// Settings of the activity state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// A device that was silent for this long is inactive, unless its server attribute `inactivityTimeout` says otherwise.
    pub inactivity_timeout: Span,
    /// How often silent devices are looked for.
    pub check_interval: Span,
    /// How often changed activity times are written.
    pub report_interval: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inactivity_timeout: Span::secs(600),
            check_interval: Span::secs(60),
            report_interval: Span::secs(3),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    last_activity: i64,
    last_connect: Option<i64>,
    last_disconnect: Option<i64>,
    inactivity_alarm: i64,
    timeout_ms: Option<i64>,
    active: bool,
    loaded: bool,
    heard: bool,
    queued: bool,
}

#[derive(Default)]
struct States {
    by_device: FxHashMap<Subject, State>,
    changed: Vec<Subject>,
}

impl States {
    fn touch(&mut self, subject: Subject) -> &mut State {
        let state = self.by_device.entry(subject).or_default();
        if !state.queued {
            state.queued = true;
            self.changed.push(subject);
        }
        state
    }
}

/// Keeps the activity state of devices.
pub struct ActivityTracker {
    states: Mutex<States>,
    attributes: Arc<dyn AttributeStore>,
    stores: EntityStores,
    clock: SharedClock,
    default_timeout_ms: i64,
}

impl ActivityTracker {
    /// A tracker that knows of no device yet.
    pub fn new(
        stores: EntityStores,
        attributes: Arc<dyn AttributeStore>,
        clock: SharedClock,
        options: &Options,
    ) -> Arc<Self> {
        let default_timeout_ms = options.inactivity_timeout.0.as_millis() as i64;
        Arc::new(Self {
            states: Mutex::default(),
            attributes,
            stores,
            clock,
            default_timeout_ms,
        })
    }

    /// Notes that devices were heard at times in milliseconds. Subjects other than devices have no activity state.
    pub fn heard_all(&self, heard: &[(Subject, i64)]) {
        let mut states = self.states.lock();
        for (subject, at) in heard
            .iter()
            .filter(|(subject, _)| subject.entity.entity_type == EntityType::Device)
        {
            let state = states.touch(*subject);
            state.last_activity = state.last_activity.max(*at);
            state.heard = true;
        }
    }

    /// Notes that a device was heard now, by something else than a message.
    pub fn heard(&self, subject: Subject) {
        self.heard_all(&[(subject, self.clock.now_ms())]);
    }

    /// Notes that a device has opened its first session.
    pub fn connected(&self, subject: Subject) {
        let now = self.clock.now_ms();
        let mut states = self.states.lock();
        states.touch(subject).last_connect = Some(now);
    }

    /// Notes that a device has closed its last session.
    pub fn disconnected(&self, subject: Subject) {
        let now = self.clock.now_ms();
        let mut states = self.states.lock();
        states.touch(subject).last_disconnect = Some(now);
    }

    /// Writes changes and looks for silent devices until told to stop; what has changed by then is written.
    pub async fn run(self: Arc<Self>, options: Options, mut stop: watch::Receiver<bool>) {
        if let Err(error) = self.restore().await {
            warn!(%error, "cannot read which devices were active");
        }
        let floor = Duration::from_millis(10);
        let mut report = tokio::time::interval(options.report_interval.0.max(floor));
        let mut check = tokio::time::interval(options.check_interval.0.max(floor));
        loop {
            let stopping = tokio::select! {
                _ = report.tick() => false,
                _ = check.tick() => { self.find_silent(); false }
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if let Err(error) = self.write_changes().await {
                warn!(%error, "cannot write activity times, trying again");
            }
            if stopping {
                return;
            }
        }
    }

    /// Takes up the devices that were active when the program ended.
    async fn restore(&self) -> StoreResult<()> {
        let active = DeviceFilter {
            active: Some(true),
            ..DeviceFilter::default()
        };
        let mut tenants = PageLink {
            sort_property: Some("createdTime".to_owned()),
            ..PageLink::first(100)
        };
        loop {
            let page = self.stores.tenants.list(&tenants).await?;
            for tenant in page.data.iter().filter_map(|tenant| tenant.id) {
                let mut devices = PageLink {
                    sort_property: Some("createdTime".to_owned()),
                    ..PageLink::first(1_000)
                };
                loop {
                    let found = self.stores.devices.list(tenant, &active, &devices).await?;
                    for device in found.data.iter().filter_map(|info| info.device.id) {
                        self.states.lock().touch(Subject::device(tenant, device));
                    }
                    if !found.has_next {
                        break;
                    }
                    devices.page += 1;
                }
            }
            if !page.has_next {
                return Ok(());
            }
            tenants.page += 1;
        }
    }

    /// Marks the devices whose time-out has passed as inactive.
    fn find_silent(&self) {
        let now = self.clock.now_ms();
        let mut states = self.states.lock();
        let silent: Vec<_> = states
            .by_device
            .iter()
            .filter(|(_, state)| {
                let timeout = state.timeout_ms.unwrap_or(self.default_timeout_ms);
                state.loaded && state.active && now >= state.last_activity.saturating_add(timeout)
            })
            .map(|(subject, _)| *subject)
            .collect();
        for subject in silent {
            states.touch(subject);
        }
    }

    async fn write_changes(&self) -> StoreResult<()> {
        let changed = std::mem::take(&mut self.states.lock().changed);
        for (done, part) in changed.chunks(512).enumerate() {
            if let Err(error) = self.write_part(part).await {
                let mut states = self.states.lock();
                states.changed.extend(changed.iter().skip(done * 512));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn write_part(&self, part: &[Subject]) -> StoreResult<()> {
        for subject in part {
            self.load(*subject).await?;
        }
        let now = self.clock.now_ms();
        let mut packed = Vec::new();
        let mut transitions: Vec<(DeviceId, bool)> = Vec::new();
        {
            let mut states = self.states.lock();
            for subject in part {
                let Some(state) = states.by_device.get_mut(subject) else {
                    continue;
                };
                let mut values = Vec::new();
                if let Some(active) = state.settle(now, self.default_timeout_ms, &mut values) {
                    transitions.push((DeviceId(subject.entity.id), active));
                }
                packed.push((*subject, values));
            }
        }
        let rows: Vec<_> = packed
            .iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(subject, values)| AttributeRow {
                subject: *subject,
                scope: AttributeScope::Server,
                ts: now,
                values,
            })
            .collect();
        self.attributes.save_relaxed(&rows).await?;
        if !transitions.is_empty() {
            self.stores.devices.set_active(&transitions).await?;
        }
        let mut states = self.states.lock();
        for subject in part {
            // What is inactive and written down need not be remembered.
            if states
                .by_device
                .get(subject)
                .is_some_and(|state| !state.active && !state.queued)
            {
                states.by_device.remove(subject);
            }
        }
        Ok(())
    }

    /// Reads what is stored of a device that is not known yet. A device that does not exist is forgotten.
    async fn load(&self, subject: Subject) -> StoreResult<()> {
        if self
            .states
            .lock()
            .by_device
            .get(&subject)
            .is_none_or(|state| state.loaded)
        {
            return Ok(());
        }
        if self
            .stores
            .devices
            .get(subject.tenant, DeviceId(subject.entity.id))
            .await?
            .is_none()
        {
            self.states.lock().by_device.remove(&subject);
            return Ok(());
        }
        let keys = [ACTIVE, LAST_ACTIVITY, INACTIVITY_ALARM, INACTIVITY_TIMEOUT].map(str::to_owned);
        let stored = self
            .attributes
            .get(subject, AttributeScope::Server, Some(&keys))
            .await?;
        let mut states = self.states.lock();
        let Some(state) = states.by_device.get_mut(&subject) else {
            return Ok(());
        };
        state.timeout_ms = None;
        for attribute in stored {
            let number = attribute.value.as_number().map(|number| number as i64);
            match attribute.key.as_str() {
                ACTIVE => state.active = attribute.value == Value::Bool(true),
                LAST_ACTIVITY => state.last_activity = state.last_activity.max(number.unwrap_or(0)),
                INACTIVITY_ALARM => state.inactivity_alarm = number.unwrap_or(0),
                _ => state.timeout_ms = number.filter(|timeout| *timeout > 0),
            }
        }
        state.loaded = true;
        Ok(())
    }
}

impl State {
    /// Packs what is to be written, and returns the new activity if it has changed.
    fn settle(&mut self, now: i64, default_timeout_ms: i64, out: &mut Vec<u8>) -> Option<bool> {
        self.queued = false;
        if let Some(at) = self.last_connect.take() {
            pack(LAST_CONNECT, ValueRef::Long(at), out);
        }
        if let Some(at) = self.last_disconnect.take() {
            pack(LAST_DISCONNECT, ValueRef::Long(at), out);
        }
        let alive = now
            < self
                .last_activity
                .saturating_add(self.timeout_ms.unwrap_or(default_timeout_ms));
        if std::mem::take(&mut self.heard) {
            pack(LAST_ACTIVITY, ValueRef::Long(self.last_activity), out);
            if !self.active && alive {
                self.active = true;
                pack(ACTIVE, ValueRef::Bool(true), out);
                if self.inactivity_alarm != 0 {
                    self.inactivity_alarm = 0;
                    pack(INACTIVITY_ALARM, ValueRef::Long(0), out);
                }
                return Some(true);
            }
        }
        if self.active && !alive {
            self.active = false;
            self.inactivity_alarm = now;
            pack(ACTIVE, ValueRef::Bool(false), out);
            pack(INACTIVITY_ALARM, ValueRef::Long(now), out);
            return Some(false);
        }
        None
    }
}

impl EntityListener for ActivityTracker {
    fn on_change(&self, change: EntityChange) {
        let mut states = self.states.lock();
        match change {
            EntityChange::DeviceDeleted(tenant, device) => {
                states.by_device.remove(&Subject::device(tenant, device));
            }
            EntityChange::TenantDeleted(tenant) => {
                states.by_device.retain(|subject, _| subject.tenant != tenant);
            }
            EntityChange::AttributesChanged(subject, AttributeScope::Server) => {
                // The time-out may be another one now; it is read again with the next check.
                if let Some(state) = states.by_device.get_mut(&subject) {
                    state.loaded = false;
                    states.touch(subject);
                }
            }
            _ => {}
        }
    }
}
