//! The activity of devices as values: what is known of each, what is news, and what follows from it at a given time.

use std::collections::VecDeque;
use std::num::NonZeroI64;
use std::time::Instant;

use fieldline_model::kv::{KvValue, KvValueRef, pack};
use fieldline_model::timeseries::Attribute;
use fieldline_model::{EntityKey, TenantId};
use rustc_hash::FxHashMap;

use super::ActivityEvent;
use super::clock_monitor::ClockMonitor;
use crate::sharded_map::{SHARD_COUNT, ShardedMap, shard_of};

const ACTIVE: &str = "active";
const LAST_ACTIVITY: &str = "lastActivityTime";
pub(super) const LAST_CONNECT: &str = "lastConnectTime";
pub(super) const LAST_DISCONNECT: &str = "lastDisconnectTime";
const INACTIVITY_ALARM: &str = "inactivityAlarmTime";
const INACTIVITY_TIMEOUT: &str = "inactivityTimeout";

/// The attributes that a state is read from.
pub(super) const STATE_ATTRIBUTES: [&str; 4] = [ACTIVE, LAST_ACTIVITY, INACTIVITY_ALARM, INACTIVITY_TIMEOUT];

/// The attributes that say when sessions began and ended.
pub(super) const SESSION_ATTRIBUTES: [&str; 2] = [LAST_CONNECT, LAST_DISCONNECT];

/// Room for this many devices is kept in the queue, however few are left.
const KEPT_ROOM: usize = 512;

/// Room for this many devices is kept in a part of those that are watched.
const KEPT_ROOM_OF_PART: usize = KEPT_ROOM / SHARD_COUNT;

/// What is known of one device. There is one for each device that is active, so it is kept small.
#[derive(Debug, Default)]
pub(super) struct DeviceActivity {
    // News: not written yet.
    last_connect: Option<NonZeroI64>,
    last_disconnect: Option<NonZeroI64>,
    heard: bool,
    last_activity: i64,
    // As they are stored.
    inactivity_alarm: i64,
    timeout_ms: Option<NonZeroI64>,
    active: bool,
    // Whether lists of devices show it as active; `None` until that was read.
    listed: Option<bool>,
    // Counts the times that what is stored may have become another.
    revision: u32,
    // Whether what was read last is of this revision.
    read: bool,
    queued: bool,
}

/// What is to be written of a device. Its state follows only once that is done, so a failed write can be repeated.
#[derive(Debug)]
pub(super) struct ActivityUpdate {
    /// Whose it is.
    pub(super) subject: EntityKey,
    /// Packed attributes; may be empty.
    pub(super) values: Vec<u8>,
    /// What lists of devices are to show, where that is something else than now.
    pub(super) relist: Option<bool>,
    /// What has happened since the last write, in its order.
    pub(super) events: [Option<ActivityEvent>; 5],
    pub(super) active: bool,
    pub(super) inactivity_alarm: i64,
    pub(super) last_activity: i64,
    /// Silence for longer than this is inactivity, milliseconds.
    pub(super) timeout_ms: i64,
    last_connect: Option<NonZeroI64>,
    last_disconnect: Option<NonZeroI64>,
    reported_inactive: Option<i64>,
}

impl ActivityUpdate {
    /// Whether anything has happened that is worth telling.
    pub(super) fn has_events(&self) -> bool {
        self.events.iter().any(Option::is_some)
    }
}

impl DeviceActivity {
    /// Notes a message.
    pub(super) fn record_activity(&mut self, at: i64) {
        self.last_activity = self.last_activity.max(at);
        self.heard = true;
    }

    /// Notes a session's beginning.
    pub(super) fn record_connect(&mut self, at: i64) {
        self.last_connect = NonZeroI64::new(at);
    }

    /// Notes a session's end.
    pub(super) fn record_disconnect(&mut self, at: i64) {
        self.last_disconnect = NonZeroI64::new(at);
    }

    /// Takes over what is stored, as it was read at a revision.
    pub(super) fn take_stored(&mut self, stored: &[Attribute], listed: bool, revision: u32, now: i64) {
        self.active = false;
        self.inactivity_alarm = 0;
        self.timeout_ms = None;
        for attribute in stored {
            let number = attribute.value.as_number().map(|number| number as i64);
            match attribute.key.as_str() {
                ACTIVE => self.active = attribute.value == KvValue::Bool(true),
                // Written by a clock that was ahead, it says no more than now does.
                LAST_ACTIVITY => self.last_activity = self.last_activity.max(number.unwrap_or(0).min(now)),
                INACTIVITY_ALARM => self.inactivity_alarm = number.unwrap_or(0),
                INACTIVITY_TIMEOUT => {
                    self.timeout_ms = number.filter(|timeout| *timeout > 0).and_then(NonZeroI64::new);
                }
                _ => {}
            }
        }
        self.listed = Some(listed);
        self.read = self.revision == revision;
    }

    fn has_news(&self) -> bool {
        self.heard || self.last_connect.is_some() || self.last_disconnect.is_some()
    }

    fn settle(
        &self,
        subject: EntityKey,
        now: i64,
        judge: &InactivityCheck,
        told_inactive: Option<i64>,
    ) -> ActivityUpdate {
        let mut values = Vec::new();
        if let Some(at) = self.last_connect {
            pack(LAST_CONNECT, KvValueRef::Long(at.get()), &mut values);
        }
        if let Some(at) = self.last_disconnect {
            pack(LAST_DISCONNECT, KvValueRef::Long(at.get()), &mut values);
        }
        if self.heard {
            pack(LAST_ACTIVITY, KvValueRef::Long(self.last_activity), &mut values);
        }
        // What was heard since, or told before, counts more.
        let told = told_inactive.filter(|at| *at > self.last_activity && *at > self.inactivity_alarm);
        let active = (self.active || self.heard) && told.is_none() && judge.takes_for_alive(self);
        let inactivity_alarm = match (self.active, active, told) {
            (_, _, Some(at)) => at,
            (false, true, _) => 0,
            (true, false, _) => now,
            _ => self.inactivity_alarm,
        };
        if active != self.active {
            pack(ACTIVE, KvValueRef::Bool(active), &mut values);
        }
        if inactivity_alarm != self.inactivity_alarm {
            pack(INACTIVITY_ALARM, KvValueRef::Long(inactivity_alarm), &mut values);
        }
        let left = self.last_disconnect.map(|_| ActivityEvent::Disconnect);
        let left_before = self.last_disconnect < self.last_connect;
        let silent = told.is_some() || (self.active && !active);
        let events = [
            left.filter(|_| left_before),
            self.last_connect.map(|_| ActivityEvent::Connect),
            (active && !self.active).then_some(ActivityEvent::Activity),
            left.filter(|_| !left_before),
            silent.then_some(ActivityEvent::Inactivity),
        ];
        ActivityUpdate {
            subject,
            values,
            events,
            timeout_ms: judge.timeout_ms(self),
            relist: (self.listed != Some(active)).then_some(active),
            active,
            inactivity_alarm,
            last_activity: self.last_activity,
            last_connect: self.last_connect,
            last_disconnect: self.last_disconnect,
            reported_inactive: told_inactive,
        }
    }

    /// Follows what was written; what was noted meanwhile stays news.
    fn apply_written(&mut self, settled: &ActivityUpdate) {
        self.active = settled.active;
        self.inactivity_alarm = settled.inactivity_alarm;
        self.listed = Some(settled.active);
        if self.last_activity == settled.last_activity {
            self.heard = false;
        }
        if self.last_connect == settled.last_connect {
            self.last_connect = None;
        }
        if self.last_disconnect == settled.last_disconnect {
            self.last_disconnect = None;
        }
    }
}

/// Decides who has been silent for too long.
struct InactivityCheck {
    /// Up to when it is known who was heard.
    known_until: i64,
    /// Silence before this time counts for nothing.
    judged_from: i64,
    default_timeout_ms: i64,
}

impl InactivityCheck {
    fn timeout_ms(&self, state: &DeviceActivity) -> i64 {
        state.timeout_ms.map_or(self.default_timeout_ms, NonZeroI64::get)
    }

    fn takes_for_alive(&self, state: &DeviceActivity) -> bool {
        let since = state.last_activity.max(self.judged_from);
        self.known_until < since.saturating_add(self.timeout_ms(state))
    }
}

/// The devices that are watched, and who of them waits for being looked at.
pub(super) struct ActivityTable {
    by_device: ShardedMap<EntityKey, DeviceActivity>,
    // How often everyone had begun anew when a part was last looked at; see `renewed`.
    renewals: [u32; SHARD_COUNT],
    // Those that have `queued` set. At most one entry a device, but for devices that were deleted and heard again.
    queue: VecDeque<EntityKey>,
    // Who was told to be inactive, and when; not written yet. Few at a time, so no part of each state.
    reported_inactive: FxHashMap<EntityKey, i64>,
    // When the clock was set, or the program went on after it had been stopped; 0 before that.
    judged_from: i64,
    // How often that was.
    renewed: u32,
    // Notices that; nobody looks after it before the program watches devices by itself.
    clock_monitor: Option<ClockMonitor>,
}

impl Default for ActivityTable {
    fn default() -> Self {
        Self {
            by_device: ShardedMap::default(),
            renewals: [0; SHARD_COUNT],
            queue: VecDeque::new(),
            reported_inactive: FxHashMap::default(),
            judged_from: 0,
            renewed: 0,
            clock_monitor: None,
        }
    }
}

impl ActivityTable {
    /// Catches a part up with [`Self::restart_timeouts`], which itself walks over nobody: whoever was heard in what is now the
    /// future was heard then.
    fn renew(&mut self, part: usize) {
        if std::mem::replace(&mut self.renewals[part], self.renewed) == self.renewed {
            return;
        }
        for state in self.by_device.part_mut(part).values_mut() {
            state.last_activity = state.last_activity.min(self.judged_from);
        }
    }

    /// The part of a device, up to date.
    fn part_of(&mut self, subject: &EntityKey) -> &mut FxHashMap<EntityKey, DeviceActivity> {
        let part = shard_of(subject.entity.id);
        self.renew(part);
        self.by_device.part_mut(part)
    }

    /// The state of a device, which is queued.
    pub(super) fn touch(&mut self, subject: EntityKey) -> &mut DeviceActivity {
        let part = shard_of(subject.entity.id);
        self.renew(part);
        let state = self.by_device.part_mut(part).entry(subject).or_default();
        if !state.queued {
            state.queued = true;
            self.queue.push_back(subject);
        }
        state
    }

    /// Notes that somebody takes a device for inactive since a time.
    pub(super) fn mark_inactive(&mut self, subject: EntityKey, at: i64) {
        self.touch(subject);
        let told = self.reported_inactive.entry(subject).or_insert(at);
        *told = (*told).max(at);
    }

    /// The state of a device, if it is watched.
    pub(super) fn get_mut(&mut self, subject: &EntityKey) -> Option<&mut DeviceActivity> {
        self.part_of(subject).get_mut(subject)
    }

    /// Watches a device that lists show as active.
    pub(super) fn restore(&mut self, subject: EntityKey) {
        self.touch(subject).listed.get_or_insert(true);
    }

    /// Forgets a device.
    pub(super) fn remove(&mut self, subject: &EntityKey) {
        self.by_device.of_mut(subject).remove(subject);
        self.reported_inactive.remove(subject);
    }

    /// Forgets the devices of a tenant that are in a part.
    pub(super) fn remove_tenant(&mut self, tenant: TenantId, part: usize) {
        let devices = self.by_device.part_mut(part);
        devices.retain(|subject, _| {
            let stays = subject.tenant != tenant;
            if !stays {
                self.reported_inactive.remove(subject);
            }
            stays
        });
    }

    /// What is stored of a device was changed by somebody else: reads it again before it is looked at.
    pub(super) fn outdate(&mut self, subject: EntityKey) {
        if let Some(state) = self.get_mut(&subject) {
            state.revision = state.revision.wrapping_add(1);
            state.read = false;
            self.touch(subject);
        }
    }

    /// How many devices are queued.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the first `count` of the queue, without those that are gone or, where only news is wanted, have none.
    pub(super) fn take(&mut self, count: usize, only_news: bool) -> Vec<EntityKey> {
        let count = count.min(self.queue.len());
        let (by_device, told_inactive) = (&mut self.by_device, &self.reported_inactive);
        let taken = self
            .queue
            .drain(..count)
            .filter(|subject| {
                by_device.of_mut(subject).get_mut(subject).is_some_and(|state| {
                    let has_news = state.has_news() || told_inactive.contains_key(subject);
                    std::mem::take(&mut state.queued) && (has_news || !only_news)
                })
            })
            .collect();
        if has_spare_room(self.queue.len(), self.queue.capacity(), KEPT_ROOM) {
            self.queue.shrink_to(KEPT_ROOM.max(2 * self.queue.len()));
        }
        taken
    }

    /// Queues devices again that could not be read or written. Nobody knows what a failed write has left behind, so what
    /// is stored of them is read again.
    pub(super) fn put_back(&mut self, subjects: &[EntityKey]) {
        for subject in subjects {
            if let Some(state) = self.get_mut(subject) {
                state.read = false;
                state.listed = None;
                self.touch(*subject);
            }
        }
    }

    /// If what is stored of a device has to be read: the revision it is read for, and whether lists show it as active.
    pub(super) fn unread(&self, subject: &EntityKey) -> Option<(u32, Option<bool>)> {
        self.by_device
            .of(subject)
            .get(subject)
            .filter(|state| !state.read)
            .map(|state| (state.revision, state.listed))
    }

    /// Notices from now on when time does not go on as usual.
    pub(super) fn monitor_clock(&mut self, course: ClockMonitor) {
        self.clock_monitor = Some(course);
    }

    /// Begins anew where time did not go on as usual since the last look.
    pub(super) fn check_clock(&mut self, now: i64, at: Instant) {
        if self
            .clock_monitor
            .as_mut()
            .is_some_and(|course| !course.advance(now, at))
        {
            self.restart_timeouts(now);
        }
    }

    /// The clock was set, or nobody could be heard for a while: everyone has their whole time-out from now on.
    pub(super) fn restart_timeouts(&mut self, now: i64) {
        self.judged_from = now;
        self.renewed = self.renewed.wrapping_add(1);
    }

    fn judge(&self, known_until: i64, default_timeout_ms: i64) -> InactivityCheck {
        InactivityCheck {
            known_until,
            judged_from: self.judged_from,
            default_timeout_ms,
        }
    }

    /// Queues the devices of a part whose time-out has passed.
    pub(super) fn find_silent(&mut self, part: usize, known_until: i64, default_timeout_ms: i64) {
        self.renew(part);
        let judge = self.judge(known_until, default_timeout_ms);
        let silent: Vec<_> = self
            .by_device
            .part_mut(part)
            .iter()
            .filter(|(_, state)| state.read && state.active && !judge.takes_for_alive(state))
            .map(|(subject, _)| *subject)
            .collect();
        for subject in silent {
            self.touch(subject);
        }
    }

    /// What is to be written of the devices. One that was outdated since it was read is queued, and left for later.
    pub(super) fn settle(
        &mut self,
        part: &[EntityKey],
        now: i64,
        known_until: i64,
        default_timeout_ms: i64,
    ) -> Vec<ActivityUpdate> {
        let judge = self.judge(known_until, default_timeout_ms);
        part.iter()
            .filter_map(|subject| {
                let told = self.reported_inactive.get(subject).copied();
                let state = self.part_of(subject).get(subject).filter(|state| state.read)?;
                Some(state.settle(*subject, now, &judge, told))
            })
            .collect()
    }

    /// Follows what was written. What is inactive and written down need not be remembered.
    pub(super) fn apply_written(&mut self, settled: &[ActivityUpdate]) {
        for settled in settled {
            if settled.reported_inactive.is_some()
                && self.reported_inactive.get(&settled.subject) == settled.reported_inactive.as_ref()
            {
                self.reported_inactive.remove(&settled.subject);
            }
            let part = self.part_of(&settled.subject);
            let Some(state) = part.get_mut(&settled.subject) else {
                continue;
            };
            state.apply_written(settled);
            if !state.active && !state.queued {
                part.remove(&settled.subject);
            }
            if has_spare_room(part.len(), part.capacity(), KEPT_ROOM_OF_PART) {
                part.shrink_to(KEPT_ROOM_OF_PART.max(2 * part.len()));
            }
        }
    }

    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.by_device.parts().map(FxHashMap::len).sum()
    }

    /// How many devices there is room for, watched and queued.
    #[cfg(test)]
    pub(super) fn room(&self) -> (usize, usize) {
        let watched = self.by_device.parts().map(FxHashMap::capacity).sum();
        (watched, self.queue.capacity())
    }
}

/// Whether a crowd has left room behind that is worth giving back.
const fn has_spare_room(len: usize, capacity: usize, kept: usize) -> bool {
    let needed = if len > kept { len } else { kept };
    capacity > 4 * needed
}
