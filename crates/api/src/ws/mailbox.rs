//! What has changed and a session has not sent yet. Of what becomes too much for a slow client, only the newest value a
//! key is kept; where even that is too much, for it or for all slow clients together, the client is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldline_core::ports::{ValueChange, ValueSource};
use fieldline_model::kv::{Value, unpack};
use fieldline_model::{EntityId, Subject};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;

/// Changes that are kept one by one.
const MAX_CHANGES: usize = 1_024;
/// Bytes of their values.
const MAX_BYTES: usize = 512 << 10;
/// Bytes of the newest values of a client that is slow.
const MAX_KEPT: usize = 8 << 20;
/// Bytes of the newest values of all clients that are slow.
const MAX_KEPT_OF_ALL: usize = 256 << 20;
/// What a value takes besides its name and text.
const VALUE_COST: usize = 64;

/// Bytes that slow clients make the server keep.
pub(super) struct Slack {
    kept: AtomicUsize,
    most: usize,
}

impl Default for Slack {
    fn default() -> Self {
        Self {
            kept: AtomicUsize::new(0),
            most: MAX_KEPT_OF_ALL,
        }
    }
}

impl Slack {
    /// Counts what one client has kept before and now; says whether there is room for it.
    fn count(&self, before: usize, now: usize) -> bool {
        let all = self.kept.fetch_add(now, Ordering::AcqRel) + now;
        self.kept.fetch_sub(before, Ordering::AcqRel);
        all - before <= self.most
    }
}

/// What has happened to values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// They were stored: the time and packed key-values.
    Stored(i64, Box<[u8]>),
    /// Values of these names were deleted.
    Deleted(Vec<String>),
    /// All of them were.
    AllDeleted,
}

impl What {
    /// `None` where that is nothing to be told: who watches an entity is asked again once it has changed hands.
    pub(super) fn of(change: &ValueChange<'_>) -> Option<Self> {
        Some(match change {
            ValueChange::Points(row) => Self::Stored(row.ts, row.values.into()),
            ValueChange::Attributes(row) => Self::Stored(row.ts, row.values.into()),
            ValueChange::SeriesDeleted(_, names) | ValueChange::AttributesDeleted(_, _, names) => {
                Self::Deleted(names.to_vec())
            }
            ValueChange::AllDeleted(..) => Self::AllDeleted,
            ValueChange::HandedOver(..) => return None,
        })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Stored(_, values) => values.len(),
            Self::Deleted(names) => names.iter().map(String::len).sum(),
            Self::AllDeleted => 0,
        }
    }
}

/// A change of the values of an entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) subject: Subject,
    pub(super) source: ValueSource,
    pub(super) what: What,
}

/// A value, `None` where it was deleted.
pub(super) type NewValue = (i64, Option<Value>);

/// Values of one entity for one command.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct News {
    /// By name, oldest first.
    pub(super) values: Vec<(String, NewValue)>,
    /// Whether all values of the source were deleted before.
    pub(super) all_deleted: bool,
    /// Bytes when it was compacted last.
    pub(super) bytes: usize,
}

impl News {
    fn add(&mut self, what: &What) {
        match what {
            What::Stored(ts, values) => {
                let stored = unpack(values).filter_map(Result::ok);
                self.values
                    .extend(stored.map(|(name, value)| (name.to_owned(), (*ts, Some(value.to_value())))));
            }
            What::Deleted(names) => {
                self.values
                    .extend(names.iter().map(|name| (name.clone(), (0, None))));
            }
            What::AllDeleted => {
                self.values.clear();
                self.all_deleted = true;
            }
        }
    }

    /// Keeps the newest value of each name.
    fn compact(&mut self) {
        let mut newest: FxHashMap<String, NewValue> = FxHashMap::default();
        for (name, (ts, value)) in self.values.drain(..) {
            match newest.get(&name) {
                // What was written last counts, unless it is an older point.
                Some((held, Some(_))) if value.is_some() && *held > ts => {}
                _ => {
                    newest.insert(name, (ts, value));
                }
            }
        }
        self.values.extend(newest);
        self.values.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let cost = |(name, (_, value)): &(String, NewValue)| {
            VALUE_COST + name.len() + value.as_ref().map_or(0, Value::heap_bytes)
        };
        self.bytes = self.values.iter().map(cost).sum();
    }
}

/// Which command and which values of which entity.
pub(super) type Place = (i64, Subject, ValueSource);

#[derive(Default)]
struct Pending {
    changes: Vec<(i64, Arc<Change>)>,
    bytes: usize,
    /// What was too much to be kept one by one.
    newest: FxHashMap<Place, News>,
    /// Bytes of that.
    kept: usize,
    /// Whether that was too much as well.
    is_lost: bool,
    alarms: bool,
    /// Entities that were saved or deleted, so that it has to be asked again who may see them.
    saved: FxHashSet<EntityId>,
    /// Whether the one who is told may have changed.
    person: bool,
}

impl Pending {
    /// Puts the changes together, by command and entity.
    fn fold(&mut self) {
        for (command, change) in self.changes.drain(..) {
            let place = (command, change.subject, change.source);
            self.newest.entry(place).or_default().add(&change.what);
        }
        self.bytes = 0;
    }

    /// The same, keeping the newest values alone, and none where they are too much.
    fn shrink(&mut self, slack: &Slack) {
        let kept_before = self.kept;
        let changed: FxHashSet<Place> = self
            .changes
            .iter()
            .map(|(command, change)| (*command, change.subject, change.source))
            .collect();
        self.fold();
        for place in changed {
            if let Some(news) = self.newest.get_mut(&place) {
                let before = news.bytes;
                news.compact();
                self.kept = self.kept - before + news.bytes;
            }
        }
        if !slack.count(kept_before, self.kept) || self.kept > MAX_KEPT {
            self.newest = FxHashMap::default();
            slack.count(self.kept, 0);
            self.kept = 0;
            self.is_lost = true;
        }
    }
}

/// What was in a mailbox.
pub(super) struct Delivery {
    pub(super) news: Vec<(Place, News)>,
    /// Whether alarms have changed.
    pub(super) alarms: bool,
    /// Entities that were saved or deleted.
    pub(super) saved: FxHashSet<EntityId>,
    /// Whether the one who is told may have changed.
    pub(super) person: bool,
    /// Whether changes were lost, because there were too many.
    pub(super) is_lost: bool,
}

/// See the module.
#[derive(Default)]
pub(super) struct Mailbox {
    pending: Mutex<Pending>,
    notify: Notify,
    slack: Arc<Slack>,
}

impl Mailbox {
    /// One whose client is counted with all others.
    pub(super) fn new(slack: Arc<Slack>) -> Self {
        Self {
            pending: Mutex::default(),
            notify: Notify::new(),
            slack,
        }
    }

    /// Puts a change in.
    pub(super) fn put(&self, command: i64, change: Arc<Change>) {
        let mut pending = self.pending.lock();
        if pending.is_lost {
            return;
        }
        pending.bytes += change.what.bytes();
        pending.changes.push((command, change));
        if pending.changes.len() >= MAX_CHANGES || pending.bytes >= MAX_BYTES {
            pending.shrink(&self.slack);
        }
        drop(pending);
        self.notify.notify_one();
    }

    /// Notes that alarms have changed.
    pub(super) fn put_alarm(&self) {
        self.pending.lock().alarms = true;
        self.notify.notify_one();
    }

    /// Notes that an entity was saved or deleted.
    pub(super) fn put_saved(&self, entity: EntityId) {
        self.pending.lock().saved.insert(entity);
        self.notify.notify_one();
    }

    /// Notes that the one who is told may have changed.
    pub(super) fn put_person(&self) {
        self.pending.lock().person = true;
        self.notify.notify_one();
    }

    /// Drops what is there for a command that has ended, so that another one of its number is not told.
    pub(super) fn forget(&self, command: i64) {
        let mut pending = self.pending.lock();
        let before = pending.kept;
        pending.changes.retain(|(of, _)| *of != command);
        pending.newest.retain(|(of, ..), _| *of != command);
        pending.bytes = pending
            .changes
            .iter()
            .map(|(_, change)| change.what.bytes())
            .sum();
        pending.kept = pending.newest.values().map(|news| news.bytes).sum();
        self.slack.count(before, pending.kept);
    }

    /// Waits until there is something.
    pub(super) async fn wait(&self) {
        self.notify.notified().await;
    }

    /// Takes out what there is, by command and entity.
    pub(super) fn take(&self) -> Delivery {
        let mut pending = self.pending.lock();
        pending.fold();
        let mut news: Vec<(Place, News)> = std::mem::take(&mut pending.newest).into_iter().collect();
        self.slack.count(std::mem::take(&mut pending.kept), 0);
        let mut delivery = Delivery {
            news: Vec::new(),
            alarms: std::mem::take(&mut pending.alarms),
            saved: std::mem::take(&mut pending.saved),
            person: std::mem::take(&mut pending.person),
            is_lost: pending.is_lost,
        };
        drop(pending);
        news.sort_unstable_by_key(|(place, _)| *place);
        delivery.news = news;
        delivery
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.slack.count(self.pending.get_mut().kept, 0);
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::kv::{ValueRef, pack};
    use fieldline_model::{DeviceId, TenantId};

    use super::*;

    fn change(subject: Subject, ts: i64, value: i64) -> Arc<Change> {
        let mut values = Vec::new();
        pack("t", ValueRef::Long(value), &mut values);
        Arc::new(Change {
            subject,
            source: ValueSource::Latest,
            what: What::Stored(ts, values.into()),
        })
    }

    #[test]
    fn all_changes_arrive_in_order_while_they_are_few() {
        let subject = Subject::device(TenantId::new(), DeviceId::new());
        let mailbox = Mailbox::default();
        for value in 0..10 {
            mailbox.put(7, change(subject, value, value));
        }
        let delivery = mailbox.take();
        let [((7, _, ValueSource::Latest), news)] = delivery.news.as_slice() else {
            panic!("one entity: {:?}", delivery.news);
        };
        let values: Vec<_> = news.values.iter().map(|(_, (ts, _))| *ts).collect();
        assert_eq!(values, (0..10).collect::<Vec<_>>());
        assert!(mailbox.take().news.is_empty());
    }

    #[test]
    fn a_slow_client_gets_the_newest_value_and_memory_stays_bounded() {
        let subject = Subject::device(TenantId::new(), DeviceId::new());
        let mailbox = Mailbox::default();
        for value in 0..100_000 {
            mailbox.put(7, change(subject, value, value));
            // An older point comes late, and is no news.
            mailbox.put(7, change(subject, 1, 1));
        }
        let held = mailbox.pending.lock();
        assert!(held.changes.len() < MAX_CHANGES && held.newest.len() == 1);
        drop(held);
        let news = mailbox.take().news.remove(0).1;
        assert!(news.values.len() <= MAX_CHANGES + 1);
        let newest = news.values.iter().max_by_key(|(_, (ts, _))| *ts).unwrap();
        assert_eq!(newest.1, (99_999, Some(Value::Long(99_999))));
    }

    #[test]
    fn a_client_that_would_need_too_much_memory_is_given_up() {
        let mailbox = Mailbox::default();
        let tenant = TenantId::new();
        let text = "x".repeat(64 << 10);
        let mut values = Vec::new();
        pack("t", ValueRef::Text(&text), &mut values);
        for _ in 0..200 {
            let change = Change {
                subject: Subject::device(tenant, DeviceId::new()),
                source: ValueSource::Latest,
                what: What::Stored(1, values.clone().into()),
            };
            mailbox.put(1, Arc::new(change));
        }
        let delivery = mailbox.take();
        assert!(delivery.is_lost && delivery.news.is_empty());
    }

    #[test]
    fn slow_clients_share_their_memory_and_give_it_back() {
        let slack = Arc::new(Slack {
            kept: AtomicUsize::new(0),
            most: 1 << 20,
        });
        let text = "x".repeat(300 << 10);
        let mut values = Vec::new();
        pack("t", ValueRef::Text(&text), &mut values);
        let fill = |mailbox: &Mailbox, command: i64| {
            for _ in 0..2 {
                let change = Change {
                    subject: Subject::device(TenantId::new(), DeviceId::new()),
                    source: ValueSource::Latest,
                    what: What::Stored(1, values.clone().into()),
                };
                mailbox.put(command, Arc::new(change));
            }
        };
        let [slow, slower, later] = [(); 3].map(|()| Mailbox::new(Arc::clone(&slack)));
        fill(&slow, 1);
        fill(&slower, 1);
        assert!(slower.take().is_lost && slack.kept.load(Ordering::Acquire) > 0);
        slow.forget(1);
        assert_eq!(slack.kept.load(Ordering::Acquire), 0);
        fill(&later, 1);
        drop(later);
        fill(&slow, 1);
        assert!(!slow.take().is_lost && slack.kept.load(Ordering::Acquire) == 0);
    }

    #[test]
    fn a_command_is_not_told_what_one_before_it_has_asked_for() {
        let subject = Subject::device(TenantId::new(), DeviceId::new());
        let mailbox = Mailbox::default();
        for command in [1, 2] {
            mailbox.put(command, change(subject, 5, 5));
        }
        mailbox.forget(1);
        let told: Vec<i64> = mailbox.take().news.iter().map(|(place, _)| place.0).collect();
        assert_eq!(told, [2]);
    }

    #[test]
    fn what_is_deleted_is_told() {
        let subject = Subject::device(TenantId::new(), DeviceId::new());
        let mailbox = Mailbox::default();
        mailbox.put(1, change(subject, 5, 5));
        let deleted = Change {
            what: What::Deleted(vec!["t".to_owned()]),
            ..(*change(subject, 0, 0)).clone()
        };
        mailbox.put(1, Arc::new(deleted));
        mailbox.put_alarm();
        let delivery = mailbox.take();
        assert!(delivery.alarms);
        assert_eq!(
            delivery.news[0].1.values.last().unwrap(),
            &("t".to_owned(), (0, None))
        );
    }
}
