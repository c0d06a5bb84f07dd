//! Tracks when an observing device was heard, and whether a power-saving device listens now.

use std::time::Duration;

use fieldline_devices::directory::ListenWindow;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a looked-up power-saving mode is trusted.
const KNOWN_FOR: Duration = Duration::from_secs(30);

/// The power-saving state of one device; see the module.
pub(super) struct PowerSavingTracker(Mutex<PowerSavingState>);

struct PowerSavingState {
    /// The power-saving mode, with the time of its look-up.
    listening: Option<(Instant, Option<ListenWindow>)>,
    heard: Instant,
    /// Whether it failed to acknowledge a message since, and so is asleep.
    sleeps: bool,
    /// Whether it was sent a message since outside its listening window.
    was_paged: bool,
}

impl PowerSavingTracker {
    /// Begins to track a device that is heard now.
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(PowerSavingState {
            listening: None,
            heard: now,
            sleeps: false,
            was_paged: false,
        }))
    }

    /// Marks the device as heard now.
    pub(super) fn mark_heard(&self, now: Instant) {
        let mut state = self.0.lock();
        state.heard = now;
        state.sleeps = false;
        state.was_paged = false;
    }

    pub(super) fn last_heard(&self) -> Instant {
        self.0.lock().heard
    }

    /// Returns the power-saving mode if it was looked up lately; the error is the last known mode.
    pub(super) fn known(&self, now: Instant) -> Result<Option<ListenWindow>, Option<ListenWindow>> {
        match self.0.lock().listening {
            Some((at, listening)) if now.saturating_duration_since(at) < KNOWN_FOR => Ok(listening),
            other => Err(other.and_then(|(_, listening)| listening)),
        }
    }

    /// Stores the power-saving mode that was looked up.
    pub(super) fn set_listening(&self, listening: Option<ListenWindow>, now: Instant) {
        self.0.lock().listening = Some((now, listening));
    }

    /// Whether a device with this power-saving mode may be sent a message now. Outside the window a paged device may
    /// get one.
    pub(super) fn try_acquire_send(&self, listening: ListenWindow, now: Instant) -> bool {
        let mut state = self.0.lock();
        if !state.sleeps && now.saturating_duration_since(state.heard) <= listening.window {
            return true;
        }
        let pages = listening.is_paged && !state.was_paged;
        state.was_paged |= pages;
        pages
    }

    /// Marks the device as asleep because a message sent at `since` has not arrived, unless it was heard after that.
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
