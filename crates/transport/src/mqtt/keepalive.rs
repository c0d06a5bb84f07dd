//! Keep-alive of all connections with one coarse clock: a tick each second walks over the open connections, at the cost
//! of a load and a comparison each. A timer per connection would have to be moved with every packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fieldline_devices::sessions::{CloseReason, SessionControl};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Last-heard value of a connection that the server itself keeps waiting: its silence does not count.
pub(super) const KEEP_ALIVE_SUSPENDED: u32 = u32::MAX;

/// Connections examined before the lock is released for connections that open and close.
const SLICE: usize = 4_096;

struct KeepAliveEntry {
    control: Arc<SessionControl>,
    allowed_s: u32,
    reason: CloseReason,
}

#[derive(Default)]
struct KeepAliveSlots {
    slots: Vec<Option<KeepAliveEntry>>,
    free: Vec<u32>,
}

/// Closes connections that are silent for too long.
pub(super) struct KeepAliveMonitor {
    now_s: AtomicU32,
    watched: Mutex<KeepAliveSlots>,
}

impl KeepAliveMonitor {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            now_s: AtomicU32::new(0),
            watched: Mutex::default(),
        })
    }

    /// Seconds counted since the start. The time in which the process was stopped does not count, so that its devices
    /// get a chance to be heard.
    pub(super) fn now_s(&self) -> u32 {
        self.now_s.load(Ordering::Relaxed)
    }

    /// Watches a connection that must be heard every `allowed_s` seconds, until the guard is dropped.
    pub(super) fn watch(
        self: &Arc<Self>,
        control: Arc<SessionControl>,
        allowed_s: u32,
        reason: CloseReason,
    ) -> KeepAliveGuard {
        control.mark_heard(self.now_s());
        let watched = Some(KeepAliveEntry {
            control,
            allowed_s,
            reason,
        });
        let mut all = self.watched.lock();
        let slot = match all.free.pop() {
            Some(slot) => {
                if let Some(place) = all.slots.get_mut(slot as usize) {
                    *place = watched;
                }
                slot
            }
            None => {
                all.slots.push(watched);
                (all.slots.len() - 1) as u32
            }
        };
        KeepAliveGuard {
            keep_alive: self.clone(),
            slot,
        }
    }

    /// Counts seconds until it is stopped.
    pub(super) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => self.tick(),
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    fn tick(&self) {
        let now = self.now_s.fetch_add(1, Ordering::Relaxed) + 1;
        let mut seen = 0;
        loop {
            let all = self.watched.lock();
            let rest = all.slots.get(seen..).unwrap_or_default();
            if rest.is_empty() {
                return;
            }
            for watched in rest.iter().take(SLICE).flatten() {
                let heard = watched.control.heard_at();
                // A connection heard just before a tick has aged by less than the ticks since, hence `>` and not `>=`.
                if heard != KEEP_ALIVE_SUSPENDED && now.saturating_sub(heard) > watched.allowed_s {
                    watched.control.close(watched.reason);
                }
            }
            seen += SLICE;
        }
    }
}

/// Keeps a connection watched; dropping it ends the watch.
pub(super) struct KeepAliveGuard {
    keep_alive: Arc<KeepAliveMonitor>,
    slot: u32,
}

impl Drop for KeepAliveGuard {
    fn drop(&mut self) {
        let mut all = self.keep_alive.watched.lock();
        if let Some(place) = all.slots.get_mut(self.slot as usize) {
            *place = None;
        }
        all.free.push(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_not_heard_in_time_is_closed_and_others_are_not() {
        let keep_alive = KeepAliveMonitor::new();
        let controls: Vec<_> = (0..3).map(|_| Arc::new(SessionControl::default())).collect();
        let _watches: Vec<_> = controls
            .iter()
            .map(|control| keep_alive.watch(control.clone(), 3, CloseReason::KeepAlive))
            .collect();
        for _ in 0..4 {
            keep_alive.tick();
            controls[1].mark_heard(keep_alive.now_s());
            controls[2].mark_heard(KEEP_ALIVE_SUSPENDED);
        }
        let reasons: Vec<_> = controls.iter().map(|control| control.close_reason()).collect();
        assert_eq!(reasons, [Some(CloseReason::KeepAlive), None, None]);
    }
}
