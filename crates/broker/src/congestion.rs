//! Back-pressure: who publishes waits a moment while the queue of a connected client is half full.
//!
//! A client that takes what many publish would lose what its queue has no room for whenever they are faster for a moment.
//! So a PUBLISH that would go into a crowded queue stays where it is, and its publisher is not read meanwhile, until the
//! client has acknowledged some. That harms nobody else: a message waits only if none of its subscribers has room for it.
//! A client that is slow holds up nobody for long: if it does not take a quarter of what waits within
//! [`Options::publisher_wait`](crate::Options), its oldest messages are dropped until it is quick again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use fieldline_codec::QoS;

use crate::broker::Broker;
use crate::session::{BrokerSession, SessionInner, SessionMember};
use crate::subscriptions::TopicMatches;

/// Most publishers that wait for one client.
const MOST_WAITING: usize = 65_536;
/// Most clients that one publisher waits for: whichever of them has room first.
const MOST_AWAITED: usize = 8;
/// Messages that a client takes for each publisher that goes on while its queue is not crowded: a publisher seldom brings a
/// single message.
const TAKEN_FOR_ONE: u64 = 4;
/// Once a publisher has waited for so long, those that come wait behind it though there is room.
const FAIR_WAIT: Duration = Duration::from_millis(25);

/// What the queue of a subscriber says to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueRoom {
    Free,
    /// There will be room soon.
    Crowded,
    /// Its client takes too little for anybody to wait for it.
    Slow,
}

/// Whose turn it is that publishes into a crowded queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublisherTurn {
    /// That of one who has not waited.
    New,
    /// That of one who has waited since then, and keeps its place.
    Again(Instant),
    /// That of one whose last message had room a moment ago.
    GoesOn,
}

/// The crowded queue of a client, until it is three quarters empty. Dropping it lets all publishers go on.
#[derive(Debug)]
pub(crate) struct QueueCongestion {
    /// Crowded queues of the broker.
    count: Arc<AtomicUsize>,
    /// When the client began to take the present quarter.
    since: Instant,
    /// Messages of the quarter, and those of them that it has taken.
    quarter: u64,
    taken: u64,
    /// Messages that it has taken since publishers were woken last.
    unused: u64,
    /// Whether it took too long for the last quarter.
    is_slow: bool,
    /// Publishers that wait, and since when.
    waiting: VecDeque<(Instant, Waker)>,
}

impl QueueCongestion {
    fn new(count: &Arc<AtomicUsize>, len: u64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self {
            count: count.clone(),
            since: Instant::now(),
            quarter: quarter_of(len),
            taken: 0,
            unused: 0,
            is_slow: false,
            waiting: VecDeque::new(),
        }
    }

    /// Notes that the client has acknowledged a message.
    pub(crate) const fn note_taken(&mut self) {
        self.unused += 1;
    }

    /// Whether somebody has waited long enough to go first.
    fn has_old(&self) -> bool {
        self.waiting
            .front()
            .is_some_and(|(since, _)| since.elapsed() > FAIR_WAIT)
    }

    /// Whether it is worth waiting for the client.
    fn is_quick(&self, patience: Duration) -> bool {
        !self.is_slow && self.since.elapsed() <= patience
    }

    fn note_progress(&mut self, len: u64, patience: Duration) {
        self.taken += self.unused;
        if self.taken >= self.quarter {
            self.is_slow = self.since.elapsed() > patience;
            self.since = Instant::now();
            self.quarter = quarter_of(len);
            self.taken = 0;
        }
    }

    /// Lets publishers go on for what the client has taken.
    fn wake_some(&mut self) {
        let count = std::mem::take(&mut self.unused).div_ceil(TAKEN_FOR_ONE);
        let count = self
            .waiting
            .len()
            .min(usize::try_from(count).unwrap_or(usize::MAX));
        self.waiting
            .drain(..count)
            .for_each(|(_, publisher)| publisher.wake());
    }
}

impl Drop for QueueCongestion {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.waiting.drain(..).for_each(|(_, publisher)| publisher.wake());
    }
}

fn quarter_of(len: u64) -> u64 {
    (len / 4).max(1)
}

impl Broker {
    /// Whether `times` the messages that wait for a client would be too many.
    fn is_filled(&self, inner: &SessionInner, is_kept: bool, times: u8) -> bool {
        inner.queue.len().saturating_mul(times.into()) >= self.queue_limit(inner)
            || (!is_kept
                && inner.queue.waiting_bytes().saturating_mul(times.into())
                    >= self.options.queue_memory.as_usize())
    }

    /// Whether the oldest message has to go for the next one. What is kept is left to the store soon.
    pub(crate) fn is_full(&self, inner: &SessionInner, is_kept: bool) -> bool {
        self.is_filled(inner, is_kept, 1)
    }

    /// Notes that the queue of a client has grown; the caller holds its lock.
    pub(crate) fn note_growth(&self, inner: &mut SessionInner, is_kept: bool) {
        if inner.congestion.is_none() && inner.link.is_some() && self.is_filled(inner, is_kept, 2) {
            let congestion = QueueCongestion::new(&self.congested, inner.queue.len());
            inner.congestion = Some(Box::new(congestion));
        }
    }

    /// Lets publishers go on that wait for a client, if there is room for what they bring; the caller holds its lock.
    pub(crate) fn relieve(&self, inner: &mut SessionInner, is_kept: bool) {
        if inner.congestion.is_none() {
            return;
        }
        if !self.is_filled(inner, is_kept, 4) {
            inner.congestion = None;
            return;
        }
        let (len, has_room) = (inner.queue.len(), !self.is_filled(inner, is_kept, 2));
        if let Some(congestion) = &mut inner.congestion {
            congestion.note_progress(len, self.options.publisher_wait.0);
            if has_room {
                congestion.wake_some();
            } else {
                congestion.unused = 0;
            }
        }
    }

    /// Whether a queue is crowded, so that it is worth to look whether it is one that a message would go into.
    pub(crate) fn has_congestion(&self) -> bool {
        self.congested.load(Ordering::Relaxed) > 0
    }

    /// Has the publisher of a message woken once one of its subscribers has room for it. Returns whether it has to wait for
    /// that: if nobody is there who has room for the message, and somebody whom it is worth waiting for.
    pub(crate) fn holds(
        &self,
        found: &TopicMatches<SessionMember>,
        turn: PublisherTurn,
        waker: &dyn Fn() -> Waker,
    ) -> bool {
        let subscribers = found.own.iter().chain(&found.shared);
        let mut crowded = Vec::new();
        for subscriber in subscribers.filter(|one| one.options.qos != QoS::AtMostOnce) {
            let session = &*subscriber.member.0;
            match self.room_of(&session.lock(), session.is_persistent(), turn) {
                QueueRoom::Free => return false,
                QueueRoom::Crowded if crowded.len() < MOST_AWAITED => crowded.push(session),
                QueueRoom::Crowded | QueueRoom::Slow => {}
            }
        }
        // One that has room by now needs not be waited for.
        !crowded.is_empty()
            && crowded
                .into_iter()
                .all(|session| self.wait_for(session, turn, waker))
    }

    fn room_of(&self, inner: &SessionInner, is_kept: bool, turn: PublisherTurn) -> QueueRoom {
        let Some(congestion) = &inner.congestion else {
            return QueueRoom::Free;
        };
        let is_first = turn != PublisherTurn::New || !congestion.has_old();
        if is_first && !self.is_filled(inner, is_kept, 2) {
            QueueRoom::Free
        } else if congestion.is_quick(self.options.publisher_wait.0) {
            QueueRoom::Crowded
        } else {
            QueueRoom::Slow
        }
    }

    fn wait_for(&self, session: &BrokerSession, turn: PublisherTurn, waker: &dyn Fn() -> Waker) -> bool {
        let mut inner = session.lock();
        let is_crowded = self.room_of(&inner, session.is_persistent(), turn) == QueueRoom::Crowded;
        match &mut inner.congestion {
            Some(congestion) if is_crowded && congestion.waiting.len() < MOST_WAITING => {
                match turn {
                    PublisherTurn::Again(since) => congestion.waiting.push_front((since, waker())),
                    _ => congestion.waiting.push_back((Instant::now(), waker())),
                }
                true
            }
            _ => false,
        }
    }
}
