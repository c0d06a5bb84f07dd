//! The ends of alarms that go on: they move with each message, and are stored from time to time only.

use fieldline_core::ports::AlarmEndUpdate;
use rustc_hash::FxHashMap;
use tracing::warn;
use uuid::Uuid;

use crate::services::NodeServices;

/// Alarms whose end has moved and is not stored yet; more are stored at once.
const MAX_PENDING_ALARM_ENDS: usize = 10_000;

/// Alarms whose end has moved, until that is stored.
#[derive(Default)]
pub(super) struct PendingAlarmEnds {
    moved: FxHashMap<Uuid, AlarmEndUpdate>,
}

impl PendingAlarmEnds {
    /// The end of an alarm moves.
    pub(super) async fn move_end(&mut self, update: AlarmEndUpdate, services: &NodeServices) {
        self.moved.insert(update.alarm.0, update);
        if self.moved.len() >= MAX_PENDING_ALARM_ENDS {
            self.store(services).await;
        }
    }

    /// An alarm is cleared, with an end of its own.
    pub(super) fn forget(&mut self, alarm: Uuid) {
        self.moved.remove(&alarm);
    }

    /// Stores how far the ends have moved.
    pub(super) async fn store(&mut self, services: &NodeServices) {
        if self.moved.is_empty() {
            return;
        }
        let updates: Vec<AlarmEndUpdate> = self.moved.drain().map(|(_, update)| update).collect();
        let alarms = services.stores.alarms.clone();
        let stored = services
            .runtime
            .spawn(async move { alarms.extend(&updates).await })
            .await;
        if let Ok(Err(error)) = stored {
            // They move again with the next message.
            warn!(%error, "cannot move the ends of alarms");
        }
    }
}
