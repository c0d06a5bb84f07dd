//! When a device that observes was heard, and whether one that saves power listens now.

use std::time::Duration;

use fieldline_devices::directory::ListenWindow;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long is taken for true what is known of how a device saves power.
const KNOWN_FOR: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct PowerSavingTracker(Mutex<PowerSavingState>);

struct PowerSavingState {
    /// How it saves power, with the time at which that was looked up.
    listening: Option<(Instant, Option<ListenWindow>)>,
    heard: Instant,
    /// Whether it has not acknowledged something since, and so sleeps.
    sleeps: bool,
    /// Whether it was sent something since beyond the time in which it listens.
    was_paged: bool,
}

impl PowerSavingTracker {
    /// Of a device that is heard now.
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(PowerSavingState {
            listening: None,
            heard: now,
            sleeps: false,
            was_paged: false,
        }))
    }

    /// It is heard now.
    pub(super) fn mark_heard(&self, now: Instant) {
        let mut state = self.0.lock();
        state.heard = now;
        state.sleeps = false;
        state.was_paged = false;
    }

    pub(super) fn last_heard(&self) -> Instant {
        self.0.lock().heard
    }

    /// How it saves power, if that was looked up lately; and whatever was known of it last.
    pub(super) fn known(&self, now: Instant) -> Result<Option<ListenWindow>, Option<ListenWindow>> {
        match self.0.lock().listening {
            Some((at, listening)) if now.saturating_duration_since(at) < KNOWN_FOR => Ok(listening),
            other => Err(other.and_then(|(_, listening)| listening)),
        }
    }

    /// How it saves power was looked up.
    pub(super) fn set_listening(&self, listening: Option<ListenWindow>, now: Instant) {
        self.0.lock().listening = Some((now, listening));
    }

    /// Whether it may be sent something now, where it saves power like this. One message beyond its time is to be sent then.
    pub(super) fn try_acquire_send(&self, listening: ListenWindow, now: Instant) -> bool {
        let mut state = self.0.lock();
        if !state.sleeps && now.saturating_duration_since(state.heard) <= listening.window {
            return true;
        }
        let pages = listening.is_paged && !state.was_paged;
        state.was_paged |= pages;
        pages
    }

    /// What was sent at that time has not arrived: unless it was heard since, it has fallen asleep.
    pub(super) fn mark_asleep(&self, since: Instant) {
        let mut state = self.0.lock();
        if state.heard <= since {
            state.sleeps = true;
            state.was_paged = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_listens_for_its_time_and_one_that_is_paged_once_beyond_it() {
        let (start, window) = (Instant::now(), Duration::from_secs(10));
        let sleeps = ListenWindow {
            window,
            is_paged: false,
        };
        let is_paged = ListenWindow {
            window,
            is_paged: true,
        };
        let power = PowerSavingTracker::new(start);
        let later = start + window + Duration::from_millis(1);
        assert!(power.try_acquire_send(sleeps, start + window) && !power.try_acquire_send(sleeps, later));
        assert!(power.try_acquire_send(is_paged, later) && !power.try_acquire_send(is_paged, later));
        power.mark_heard(later);
        assert!(power.try_acquire_send(sleeps, later));
        power.mark_asleep(start);
        assert!(power.try_acquire_send(sleeps, later), "it was heard since");
        power.mark_asleep(later);
        assert!(!power.try_acquire_send(sleeps, later) && !power.try_acquire_send(is_paged, later));
        assert_eq!(power.last_heard(), later, "silence is counted from then");
    }
}
