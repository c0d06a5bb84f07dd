//! Which points aggregates contain that a client continues with the values that arrive.
//!
//! Values arrive from the moment on that the client watches them, and aggregates are read later; what is stored in
//! between would count twice. Therefore the aggregates end with the newest point that is stored when the reading begins,
//! and what arrives then up to this point is not sent.

use std::time::Duration;

use fieldline_model::EntityId;
use fieldline_model::query::TsValue;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

/// How long after a read values may arrive that were stored before it. Later ones with an old timestamp are late data.
const DELIVERY_TIME: Duration = Duration::from_secs(1);

/// How far the times of values may be ahead of the clock: of many in a millisecond each gets a time of its own.
const LEAD_MS: i64 = 60_000;

/// The newest points that were stored when aggregates were read, by entity and series.
pub(super) struct AggregatedUntil {
    /// A series without points is in it with the earliest timestamp.
    newest: FxHashMap<(EntityId, String), TsValue>,
    read_at: Instant,
}

impl Default for AggregatedUntil {
    /// Of no aggregates, now.
    fn default() -> Self {
        Self {
            newest: FxHashMap::default(),
            read_at: Instant::now(),
        }
    }
}

impl AggregatedUntil {
    /// Adds a series with its newest point, if it has one. One of the future tells nothing of what is about to arrive.
    pub(super) fn insert(&mut self, entity: EntityId, name: &str, newest: Option<TsValue>, now_ms: i64) {
        if newest.as_ref().is_some_and(|newest| newest.ts > now_ms + LEAD_MS) {
            return;
        }
        let none = TsValue {
            ts: i64::MIN,
            value: String::new(),
        };
        self.newest
            .insert((entity, name.to_owned()), newest.unwrap_or(none));
    }

    /// Notes that the aggregates are read, from when on what was stored before may arrive for a while.
    pub(super) fn end_read(&mut self) {
        self.read_at = Instant::now();
    }

    /// Returns the newest point of a series.
    pub(super) fn newest(&self, entity: EntityId, name: &str) -> Option<&TsValue> {
        self.get(entity, name).filter(|newest| newest.ts > i64::MIN)
    }

    /// Returns the last timestamp that an aggregate of a series contains.
    pub(super) fn until(&self, entity: EntityId, name: &str) -> i64 {
        self.get(entity, name).map_or(i64::MAX, |newest| newest.ts)
    }

    /// Whether an aggregate contains a value that has arrived now.
    pub(super) fn contains(&mut self, entity: EntityId, name: &str, ts: i64) -> bool {
        if self.newest.is_empty() {
            return false;
        }
        if self.read_at.elapsed() > DELIVERY_TIME {
            self.newest = FxHashMap::default();
            return false;
        }
        self.get(entity, name).is_some_and(|newest| ts <= newest.ts)
    }

    /// Returns the approximate number of bytes that it keeps.
    pub(super) fn held(&self) -> usize {
        let newest = self.newest.iter();
        newest
            .map(|((_, name), value)| {
                size_of::<(EntityId, String, TsValue)>() + name.len() + value.value.len()
            })
            .sum()
    }

    fn get(&self, entity: EntityId, name: &str) -> Option<&TsValue> {
        self.newest.get(&(entity, name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::DeviceId;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_read_does_not_count_again_and_late_data_do() {
        let entity = EntityId::from(DeviceId::new());
        let point = TsValue {
            ts: 10,
            value: "7".to_owned(),
        };
        let mut read = AggregatedUntil::default();
        read.insert(entity, "t", Some(point.clone()), 100);
        read.insert(entity, "future", Some(point), 9 - LEAD_MS);
        read.insert(entity, "empty", None, 100);
        assert_eq!(
            (read.until(entity, "t"), read.until(entity, "empty")),
            (10, i64::MIN)
        );
        assert_eq!(read.until(entity, "not aggregated"), i64::MAX);
        assert_eq!(read.until(entity, "future"), i64::MAX);
        read.end_read();
        assert!(read.contains(entity, "t", 9));
        assert!(read.contains(entity, "t", 10));
        assert!(!read.contains(entity, "t", 11));
        assert!(!read.contains(entity, "empty", 9));
        tokio::time::advance(DELIVERY_TIME + Duration::from_millis(1)).await;
        assert!(!read.contains(entity, "t", 9));
    }
}
