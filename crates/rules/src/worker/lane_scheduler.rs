//! What a lane holds, and whose turn it is.
//!
//! Each tenant has a queue of its own in memory. Of those that have something to begin, the one that has used the least time
//! is next; the messages of one originator follow each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fieldline_core::in_flight::{InFlightKept, KeptNote};
use fieldline_core::ports::{Partition, StateKey};
use fieldline_model::{EntityId, TenantId};
use rustc_hash::{FxHashMap, FxHashSet};
use uuid::Uuid;

/// Messages of one tenant that go on in a lane at the same time.
const MAX_RUNNING_PER_TENANT: usize = 16;
/// How many messages of a tenant are looked at for one that may begin.
const WINDOW: usize = 256;

/// A message that waits in a lane.
#[derive(Debug, Clone)]
pub(super) struct LaneItem {
    /// Where it is kept; the number is its place in the lane.
    pub(super) key: StateKey,
    pub(super) partition: Partition,
    /// The message's own.
    pub(super) id: Uuid,
    /// Whose messages follow each other.
    pub(super) kind: EntityId,
    /// What it takes in the lane.
    pub(super) bytes: u64,
    /// The queue it was taken from, by its number.
    pub(super) home: u16,
    /// How often it was tried again, and since when, milliseconds.
    pub(super) retries: u32,
    pub(super) first_ms: i64,
    /// When it may be tried.
    pub(super) at: Instant,
}

impl LaneItem {
    /// What is noted while it is worked on.
    pub(super) const fn in_hand(&self) -> InFlightKept {
        InFlightKept {
            tenant: self.key.subject.tenant,
            id: self.id,
        }
    }
}

/// A message that goes on.
pub(super) struct LaneRun {
    pub(super) item: LaneItem,
    pub(super) since: Instant,
    /// That it is in hand.
    pub(super) note: Option<KeptNote>,
}

#[derive(Default)]
struct TenantLaneQueue {
    waiting: VecDeque<LaneItem>,
    running: FxHashSet<EntityId>,
    used: Duration,
}

impl TenantLaneQueue {
    /// The first message that may begin; or else when one of them may.
    fn first(&self, now: Instant) -> Result<usize, Option<Instant>> {
        if self.running.len() >= MAX_RUNNING_PER_TENANT {
            return Err(None);
        }
        let mut behind = self.running.clone();
        let mut next: Option<Instant> = None;
        for (at, item) in self.waiting.iter().take(WINDOW).enumerate() {
            if behind.contains(&item.kind) {
                continue;
            }
            if item.at <= now {
                return Ok(at);
            }
            next = Some(next.map_or(item.at, |next| next.min(item.at)));
            behind.insert(item.kind);
        }
        Err(next)
    }
}

/// The messages of one lane worker.
#[derive(Default)]
pub(super) struct LaneScheduler {
    tenants: FxHashMap<TenantId, TenantLaneQueue>,
    running: FxHashMap<u32, LaneRun>,
    free: Vec<u32>,
    names: Vec<Arc<str>>,
    /// Notes of messages that have come to their end, until what they do is stored.
    pub(super) ended_notes: Vec<KeptNote>,
}

impl LaneScheduler {
    /// The number of a queue.
    pub(super) fn number_of(&mut self, queue: &str) -> u16 {
        let known = self.names.iter().position(|name| **name == *queue);
        let at = known.unwrap_or_else(|| {
            self.names.push(queue.into());
            self.names.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// The queue of a number.
    pub(super) fn name(&self, number: u16) -> Option<&Arc<str>> {
        self.names.get(usize::from(number))
    }

    /// The queue that a running message was taken from; 0 where none runs.
    pub(super) fn home_of(&self, slot: u32) -> u16 {
        self.running.get(&slot).map_or(0, |run| run.item.home)
    }

    /// A message waits, behind those that are before it in the lane.
    pub(super) fn push(&mut self, item: LaneItem) {
        let least = self.tenants.values().map(|turns| turns.used).min();
        let turns = self
            .tenants
            .entry(item.key.subject.tenant)
            .or_insert_with(|| TenantLaneQueue {
                // Who comes has no time left from before.
                used: least.unwrap_or_default(),
                ..TenantLaneQueue::default()
            });
        let number = item.key.number;
        let at = turns
            .waiting
            .iter()
            .rposition(|other| other.key.number < number)
            .map_or(0, |before| before + 1);
        turns.waiting.insert(at, item);
    }

    /// Takes the next message that may begin, and gives it a slot.
    pub(super) fn begin(&mut self, now: Instant) -> Option<u32> {
        let may_begin = self.tenants.iter_mut();
        let (turns, at) = may_begin
            .filter_map(|(_, turns)| turns.first(now).ok().map(|at| (turns, at)))
            .min_by_key(|(turns, _)| turns.used)?;
        let item = turns.waiting.remove(at)?;
        turns.running.insert(item.kind);
        let slot = self.free.pop().unwrap_or(self.running.len() as u32);
        self.running.insert(
            slot,
            LaneRun {
                item,
                since: now,
                note: None,
            },
        );
        Some(slot)
    }

    /// A message that goes on.
    pub(super) fn running(&self, slot: u32) -> Option<&LaneRun> {
        self.running.get(&slot)
    }

    /// A message that goes on is in hand.
    pub(super) fn note(&mut self, slot: u32, note: Option<KeptNote>) {
        if let Some(run) = self.running.get_mut(&slot) {
            run.note = note;
        }
    }

    /// A message has come to an end.
    pub(super) fn end(&mut self, slot: u32) -> Option<LaneRun> {
        let run = self.running.remove(&slot)?;
        self.free.push(slot);
        let tenant = run.item.key.subject.tenant;
        if let Some(turns) = self.tenants.get_mut(&tenant) {
            turns.running.remove(&run.item.kind);
            if turns.running.is_empty() && turns.waiting.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        Some(run)
    }

    /// A tenant has used time.
    pub(super) fn charge(&mut self, tenant: TenantId, time: Duration) {
        if let Some(turns) = self.tenants.get_mut(&tenant) {
            turns.used += time;
        }
    }

    /// The messages that have gone on for longer than they may.
    pub(super) fn late(&self, limit: Duration, now: Instant) -> Vec<u32> {
        let late = self.running.iter();
        late.filter(|(_, run)| now.duration_since(run.since) >= limit)
            .map(|(slot, _)| *slot)
            .collect()
    }

    /// When there is something to do: a message may begin, or has gone on for too long.
    pub(super) fn next(&self, limit: Duration, now: Instant) -> Option<Instant> {
        let begins = self.tenants.values().filter_map(|turns| match turns.first(now) {
            Ok(_) => Some(now),
            Err(next) => next,
        });
        let ends = self.running.values().map(|run| run.since + limit);
        begins.chain(ends).min()
    }

    /// How long until the lane has something to do.
    pub(super) fn next_in(&self, limit: Duration) -> Option<Duration> {
        let now = Instant::now();
        let next = self.next(limit, now)?;
        Some(next.saturating_duration_since(now))
    }

    /// Forgets what belongs to a partition; returns what it was.
    pub(super) fn drop_partition(&mut self, partition: Partition) -> Vec<LaneItem> {
        let mut gone = Vec::new();
        for turns in self.tenants.values_mut() {
            let (dropped, kept) = std::mem::take(&mut turns.waiting)
                .into_iter()
                .partition(|item| item.partition == partition);
            turns.waiting = kept;
            gone.extend::<VecDeque<_>>(dropped);
        }
        let running = self.running.iter();
        let slots: Vec<u32> = running
            .filter(|(_, run)| run.item.partition == partition)
            .map(|(slot, _)| *slot)
            .collect();
        gone.extend(slots.into_iter().filter_map(|slot| Some(self.end(slot)?.item)));
        gone
    }
}

#[cfg(test)]
mod tests {
    use fieldline_core::ports::QueueId;
    use fieldline_model::{DeviceId, EntityKey};

    use super::*;

    fn item(tenant: TenantId, device: u128, number: u64) -> LaneItem {
        let subject = EntityKey::device(tenant, DeviceId(Uuid::from_u128(device)));
        LaneItem {
            key: StateKey {
                subject,
                owner: Uuid::nil(),
                number,
            },
            partition: Partition {
                queue: QueueId(0),
                index: 0,
            },
            id: Uuid::from_u128(number.into()),
            kind: subject.entity,
            bytes: 0,
            home: 0,
            retries: 0,
            first_ms: 0,
            at: Instant::now(),
        }
    }

    fn begun(lane: &mut LaneScheduler) -> Option<(u32, u64)> {
        let slot = lane.begin(Instant::now())?;
        Some((slot, lane.running(slot)?.item.key.number))
    }

    #[test]
    fn messages_of_an_originator_follow_each_other_also_when_the_first_is_tried_again() {
        let (mut lane, tenant) = (LaneScheduler::default(), TenantId::new());
        for (device, number) in [(1, 1), (1, 2), (2, 3)] {
            lane.push(item(tenant, device, number));
        }
        let (first, number) = begun(&mut lane).unwrap();
        assert_eq!(number, 1);
        assert_eq!(begun(&mut lane).unwrap().1, 3);
        assert_eq!(begun(&mut lane), None, "the second waits for the first");
        let mut again = lane.end(first).unwrap().item;
        again.at = Instant::now() + Duration::from_secs(60);
        lane.push(again);
        assert_eq!(
            begun(&mut lane),
            None,
            "and does so while that is to be tried again"
        );
        let now = Instant::now();
        assert!(lane.next(Duration::from_secs(3600), now).unwrap() > now);
    }

    #[test]
    fn who_has_used_less_time_is_next_however_many_messages_wait_before_it() {
        let (mut lane, [greedy, other]) = (LaneScheduler::default(), [TenantId::new(), TenantId::new()]);
        for number in 0..100 {
            lane.push(item(greedy, number.into(), number));
        }
        lane.push(item(other, 1000, 100));
        lane.charge(greedy, Duration::from_millis(1));
        assert_eq!(begun(&mut lane).unwrap().1, 100);
        let running = std::iter::from_fn(|| begun(&mut lane)).count();
        assert_eq!(running, MAX_RUNNING_PER_TENANT);
    }

    #[test]
    fn slots_are_used_again() {
        let (mut lane, tenant) = (LaneScheduler::default(), TenantId::new());
        for number in 0..10 {
            lane.push(item(tenant, number.into(), number));
        }
        let [(a, _), (b, _)] = [begun(&mut lane).unwrap(), begun(&mut lane).unwrap()];
        assert!(lane.end(a).is_some() && lane.end(a).is_none());
        let (c, _) = begun(&mut lane).unwrap();
        let (d, _) = begun(&mut lane).unwrap();
        assert_eq!(c, a);
        assert!(d != a && d != b);
    }
}
