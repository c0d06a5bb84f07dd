//! Whether devices are alive: the server attributes `active`, `lastActivityTime`, `lastConnectTime`,
//! `lastDisconnectTime` and `inactivityAlarmTime`.
//!
//! Every message moves a number in memory; what has moved is written at intervals, once a device however often it was
//! heard. A device is active until nothing was heard of it for its time-out, which the server attribute
//! `inactivityTimeout` (milliseconds) sets for one device. What becomes of a device is told to the rule engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use fieldline_core::clock::SharedClock;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::ingest::ActivityListener;
use fieldline_core::options::HumanDuration;
use fieldline_core::ports::{
    AttributeRow, AttributeStore, EntityStores, RuleEngine, StoreError, StoreResult,
};
use fieldline_model::timeseries::AttributeScope;
use fieldline_model::{DeviceId, EntityKey, EntityType};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tracing::warn;

use crate::sharded_map::SHARD_COUNT;

mod clock_monitor;
mod report;
mod restore;
mod state;
#[cfg(test)]
mod tests;

use clock_monitor::ClockMonitor;
use restore::RestoreCursor;
use state::{ActivityTable, ActivityUpdate};

/// Settings of the activity state.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// A device that was silent for this long is inactive, unless its server attribute `inactivityTimeout` says otherwise.
    pub inactivity_timeout: HumanDuration,
    /// How often silent devices are looked for.
    pub check_interval: HumanDuration,
    /// How often changed activity times are written.
    pub report_interval: HumanDuration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inactivity_timeout: HumanDuration::secs(600),
            check_interval: HumanDuration::secs(60),
            report_interval: HumanDuration::secs(3),
        }
    }
}

/// What somebody says about the activity of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityEvent {
    /// A session has begun.
    Connect,
    /// It was heard.
    Activity,
    /// A session has ended.
    Disconnect,
    /// It is inactive.
    Inactivity,
}

/// How many devices are written together.
const PART: usize = 512;

/// Keeps the activity state of devices.
pub struct ActivityTracker {
    states: Mutex<ActivityTable>,
    attributes: Arc<dyn AttributeStore>,
    stores: EntityStores,
    clock: SharedClock,
    default_timeout_ms: i64,
    /// What was received in so many last milliseconds may not be known yet.
    lag_ms: AtomicI64,
    rule_engine: Arc<dyn RuleEngine>,
    /// Held by the one who writes: nothing is written, or told, twice.
    writing: tokio::sync::Mutex<()>,
}

impl ActivityTracker {
    /// A tracker that knows of no device yet. The rule engine is told what becomes of devices.
    pub fn new(
        stores: EntityStores,
        attributes: Arc<dyn AttributeStore>,
        rule_engine: Arc<dyn RuleEngine>,
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
            lag_ms: AtomicI64::new(0),
            rule_engine,
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// Writes, and tells, what is known by now: for a stop, while the rule engine still takes messages.
    pub async fn flush(&self) {
        self.write_changes(true, || false).await;
    }

    /// Notes that a device was heard now, by something else than a message.
    pub fn record_activity(&self, subject: EntityKey) {
        self.record_activities(&[(subject, self.clock.now_ms())]);
    }

    /// Notes that a device has opened its first session.
    pub fn record_connect(&self, subject: EntityKey) {
        let now = self.clock.now_ms();
        self.states.lock().touch(subject).record_connect(now);
    }

    /// Notes that a device has closed its last session.
    pub fn record_disconnect(&self, subject: EntityKey) {
        let now = self.clock.now_ms();
        self.states.lock().touch(subject).record_disconnect(now);
    }

    /// Notes that a session of a device has begun or ended, or that it was heard or is inactive, as somebody else than a
    /// transport says. Times are milliseconds; one that is still to come counts as now.
    pub fn handle_event(&self, subject: EntityKey, event: ActivityEvent, at: i64) {
        if subject.entity.entity_type != EntityType::Device || at <= 0 {
            return;
        }
        let at = at.min(self.clock.now_ms());
        let mut states = self.states.lock();
        match event {
            ActivityEvent::Connect => states.touch(subject).record_connect(at),
            ActivityEvent::Activity => states.touch(subject).record_activity(at),
            ActivityEvent::Disconnect => states.touch(subject).record_disconnect(at),
            ActivityEvent::Inactivity => states.mark_inactive(subject, at),
        }
    }

    /// Up to when it is known who was heard.
    fn known_until(&self, now: i64) -> i64 {
        now.saturating_sub(self.lag_ms.load(Ordering::Relaxed))
    }

    /// Writes changes and looks for silent devices until told to stop; what was heard by then is written.
    pub async fn run(self: Arc<Self>, options: Options, mut stop: watch::Receiver<bool>) {
        let floor = Duration::from_millis(10);
        let mut report = tokio::time::interval(options.report_interval.0.max(floor));
        let mut check = tokio::time::interval(options.check_interval.0.max(floor));
        let told = stop.clone();
        let is_stopping = || *told.borrow();
        // A pause is followed by one tick, not by all that were missed.
        for interval in [&mut report, &mut check] {
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let mut restoration = Some(RestoreCursor::default());
        let mut pausing = false;
        let period = report.period().min(check.period());
        let course = ClockMonitor::starting(self.clock.now_ms(), Instant::now(), period);
        self.states.lock().monitor_clock(course);
        loop {
            let (stopping, checking) = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => (true, false),
                _ = report.tick() => (false, false),
                _ = check.tick() => (false, true),
                // Between ticks those are taken up who were active before, a part at a time.
                () = std::future::ready(()), if restoration.is_some() && !pausing => (false, false),
            };
            self.states
                .lock()
                .check_clock(self.clock.now_ms(), Instant::now());
            if stopping {
                self.write_changes(true, || false).await;
                return;
            }
            if checking {
                self.find_silent();
            }
            if let Some(place) = &mut restoration {
                // A store that fails is asked again with the next tick.
                pausing = false;
                match self.restore(place).await {
                    Ok(true) => {}
                    Ok(false) => restoration = None,
                    Err(error) => {
                        pausing = true;
                        warn!(%error, "cannot read which devices were active, trying again");
                    }
                }
            }
            // While those that are queued cannot be written, no more are added to them.
            pausing |= !self.write_changes(false, is_stopping).await;
        }
    }

    /// Marks the devices whose time-out has passed, part by part: who tells of messages waits for one part at most.
    fn find_silent(&self) {
        let now = self.clock.now_ms();
        let known_until = self.known_until(now);
        self.states.lock().check_clock(now, Instant::now());
        for part in 0..SHARD_COUNT {
            let mut states = self.states.lock();
            states.find_silent(part, known_until, self.default_timeout_ms);
        }
    }

    /// Looks at the devices that are queued now, once; those that fail are queued again, behind the others.
    /// Returns whether all went well.
    async fn write_changes(&self, only_news: bool, is_stopping: impl Fn() -> bool) -> bool {
        let _writing = self.writing.lock().await;
        let mut trouble = WriteFailures::default();
        let mut due = self.states.lock().queued();
        while due > 0 && !trouble.is_enough() && !is_stopping() {
            let count = due.min(PART);
            due -= count;
            let part = self.states.lock().take(count, only_news);
            let part = self.load_all(part, &mut trouble).await;
            self.write_in_halves(&part, &mut trouble).await;
        }
        let Some(error) = trouble.first else { return true };
        let devices = trouble.devices;
        warn!(%error, devices, "cannot keep the activity of some devices, trying again");
        false
    }

    /// Reads what is stored of the devices, and returns those that went well.
    async fn load_all(&self, mut part: Vec<EntityKey>, trouble: &mut WriteFailures) -> Vec<EntityKey> {
        let mut failed = Vec::new();
        let mut loaded = Vec::with_capacity(part.len());
        for subject in part.drain(..) {
            if trouble.is_enough() {
                failed.push(subject);
                continue;
            }
            match self.load(subject).await {
                Ok(()) => loaded.push(subject),
                Err(error) => {
                    let cost = if error.kind().is_retryable() { 8 } else { 1 };
                    trouble.add(1, cost, error);
                    failed.push(subject);
                }
            }
        }
        self.states.lock().put_back(&failed);
        loaded
    }

    /// Writes a part whole; if the store objects to something in it, in ever smaller parts, so that the device that is to
    /// blame does not hold the others back.
    async fn write_in_halves(&self, part: &[EntityKey], trouble: &mut WriteFailures) {
        let mut parts = vec![part];
        while let Some(part) = parts.pop() {
            if trouble.is_enough() {
                self.states.lock().put_back(part);
                continue;
            }
            let Err(error) = self.write(part).await else {
                continue;
            };
            if error.kind().is_retryable() {
                trouble.add(part.len(), MAX_FAILURE_COST, error);
                self.states.lock().put_back(part);
            } else if part.len() > 1 {
                let (left, right) = part.split_at(part.len() / 2);
                parts.extend([right, left]);
            } else {
                trouble.add(part.len(), 1, error);
                self.states.lock().put_back(part);
            }
        }
    }

    async fn write(&self, part: &[EntityKey]) -> StoreResult<()> {
        let now = self.clock.now_ms();
        let known_until = self.known_until(now);
        let settled = {
            let mut states = self.states.lock();
            // Time may have jumped since it was decided that these are looked at.
            states.check_clock(now, Instant::now());
            states.settle(part, now, known_until, self.default_timeout_ms)
        };
        let rows: Vec<_> = settled
            .iter()
            .filter(|settled| !settled.values.is_empty())
            .map(|settled| AttributeRow {
                subject: settled.subject,
                scope: AttributeScope::Server,
                ts: now,
                values: &settled.values,
            })
            .collect();
        // After a crash those are watched that lists show as active: they must show everyone who has the attribute.
        self.relist(&settled, true).await?;
        if !rows.is_empty() {
            self.attributes.save_relaxed(&rows).await?;
        }
        self.relist(&settled, false).await?;
        self.states.lock().apply_written(&settled);
        self.report(&settled).await;
        Ok(())
    }

    /// Has lists show devices as active, or as inactive, that they show otherwise.
    async fn relist(&self, settled: &[ActivityUpdate], active: bool) -> StoreResult<()> {
        let changes: Vec<_> = settled
            .iter()
            .filter(|settled| settled.relist == Some(active))
            .map(|settled| (DeviceId(settled.subject.entity.id), active))
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.stores.devices.set_active(&changes).await
    }

    /// Reads what is stored of a device, unless that is known. A device that does not exist is forgotten.
    async fn load(&self, subject: EntityKey) -> StoreResult<()> {
        let unread = self.states.lock().unread(&subject);
        let Some((revision, listed)) = unread else {
            return Ok(());
        };
        let listed = match listed {
            Some(listed) => listed,
            None => {
                let device = DeviceId(subject.entity.id);
                let Some(info) = self.stores.devices.info(subject.tenant, device).await? else {
                    self.states.lock().remove(&subject);
                    return Ok(());
                };
                info.active
            }
        };
        let stored = self
            .attributes
            .get(
                subject,
                AttributeScope::Server,
                Some(&state::STATE_ATTRIBUTES.map(str::to_owned)),
            )
            .await?;
        let now = self.clock.now_ms();
        if let Some(state) = self.states.lock().get_mut(&subject) {
            state.take_stored(&stored, listed, revision, now);
        }
        Ok(())
    }
}

/// What a round of writing stands before it is given up until the next one: a store that serves nobody is not asked for
/// every device, and what concerns one device only does not count for much.
const MAX_FAILURE_COST: u32 = 32;

/// What went wrong in a round of writing.
#[derive(Default)]
struct WriteFailures {
    devices: usize,
    cost: u32,
    first: Option<StoreError>,
}

impl WriteFailures {
    fn add(&mut self, devices: usize, cost: u32, error: StoreError) {
        self.devices += devices;
        self.cost += cost;
        self.first.get_or_insert(error);
    }

    const fn is_enough(&self) -> bool {
        self.cost >= MAX_FAILURE_COST
    }
}

impl ActivityListener for ActivityTracker {
    fn record_activities(&self, heard: &[(EntityKey, i64)]) {
        // What was received before the clock was set back has times that are still to come.
        let now = self.clock.now_ms();
        let mut states = self.states.lock();
        for (subject, at) in heard
            .iter()
            .filter(|(subject, _)| subject.entity.entity_type == EntityType::Device)
        {
            states.touch(*subject).record_activity((*at).min(now));
        }
    }

    fn set_lag(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.lag_ms.store(millis, Ordering::Relaxed);
    }
}

impl EntityListener for ActivityTracker {
    fn on_change(&self, change: EntityChange) {
        let states = || self.states.lock();
        let subject = change.subject;
        match (change.entity_type(), change.what) {
            (EntityType::Device, ChangeKind::Deleted) => {
                states().remove(&subject);
            }
            // It may be active still, and is watched here from now on.
            (EntityType::Device, ChangeKind::Moved) => states().restore(subject),
            (EntityType::Tenant, ChangeKind::Deleted) => {
                (0..SHARD_COUNT).for_each(|part| states().remove_tenant(subject.tenant, part));
            }
            // The time-out may be another one now.
            (_, ChangeKind::Attributes(AttributeScope::Server)) => states().outdate(subject),
            _ => {}
        }
    }
}
