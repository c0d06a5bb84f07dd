//! Back-pressure: who publishes waits a moment while the queues of all its subscribers are half full.
//!
//! A client that takes what many publish would lose what its queue has no room for whenever they are faster for a moment.
//! So a PUBLISH that would go into a crowded queue stays where it is, and its publisher is not read meanwhile, until the
//! client has acknowledged some. That harms no other receiver: a message does not wait where a connected client has room
//! for it. A client that is slow holds up nobody for long: if it does not take a quarter of what waits within
//! [`Options::publisher_wait`](crate::Options), its oldest messages are dropped until it is quick again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fieldline_codec::QoS;

use crate::broker::Broker;
use crate::hold::{PublisherTicket, PublisherTurn};
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
    /// Publishers that wait, the oldest first; those that do so no more included.
    waiting: VecDeque<Arc<PublisherTicket>>,
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
    fn has_old(&mut self) -> bool {
        self.forget_closed();
        self.waiting
            .front()
            .is_some_and(|ticket| ticket.since.elapsed() > FAIR_WAIT)
    }

    /// Forgets those at the head of the list who wait no more.
    fn forget_closed(&mut self) {
        while self.waiting.pop_front_if(|ticket| !ticket.is_open()).is_some() {}
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

    /// Adds a publisher in the order in which they have come; returns whether there was a place for it.
    fn add(&mut self, ticket: &Arc<PublisherTicket>) -> bool {
        self.forget_closed();
        let has_place = self.waiting.len() < MOST_WAITING;
        if has_place {
            let place = self.waiting.partition_point(|one| one.since <= ticket.since);
            self.waiting.insert(place, ticket.clone());
        }
        has_place
    }

    /// Lets publishers go on for what the client has taken, and one at least: messages that have expired make room, too.
    fn wake_some(&mut self) {
        let mut count = std::mem::take(&mut self.unused).div_ceil(TAKEN_FOR_ONE).max(1);
        while count > 0
            && let Some(ticket) = self.waiting.pop_front()
        {
            count -= u64::from(ticket.wake());
        }
    }
}

impl Drop for QueueCongestion {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        for ticket in self.waiting.drain(..) {
            ticket.wake();
        }
    }
}

fn quarter_of(len: u64) -> u64 {
    (len / 4).max(1)
}

/// What the queue of a subscriber says to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueRoom {
    Free,
    /// There will be room soon.
    Crowded,
    /// Its client takes too little for anybody to wait for it.
    Slow,
    /// Its client is away: nobody gets anything later because the message waits.
    Away,
}

/// What the subscribers of a message say to it.
pub(crate) enum MessageRoom<'a> {
    /// One that is there has room, or none is there.
    Free,
    /// Nobody has room; for these it is worth waiting.
    Crowded(Vec<&'a BrokerSession>),
    /// Nobody has room, or will have any soon.
    Slow,
}

impl Broker {
    /// Whether `times` the messages that wait for a client would be too many.
    fn is_filled(&self, session: &BrokerSession, inner: &SessionInner, times: u8) -> bool {
        inner.queue.len().saturating_mul(times.into()) >= self.queue_limit(inner)
            || (!session.is_persistent()
                && inner.queue.waiting_bytes().saturating_mul(times.into())
                    >= self.options.queue_memory.as_usize())
    }

    /// Whether the oldest message has to go for the next one. What is kept is left to the store soon.
    pub(crate) fn is_full(&self, session: &BrokerSession, inner: &SessionInner) -> bool {
        self.is_filled(session, inner, 1)
    }

    /// Notes that the queue of a client has grown; the caller holds its lock.
    pub(crate) fn note_growth(&self, session: &BrokerSession, inner: &mut SessionInner) {
        if inner.link.is_none() || session.is_crowded() || !self.is_filled(session, inner, 2) {
            return;
        }
        session.set_crowded(true);
        let len = inner.queue.len();
        inner
            .congestion
            .get_or_insert_with(|| Box::new(QueueCongestion::new(&self.congested, len)));
    }

    /// Lets publishers go on that wait for a client, if there is room for what they bring; the caller holds its lock.
    pub(crate) fn relieve(&self, session: &BrokerSession, inner: &mut SessionInner) {
        if inner.congestion.is_none() {
            return;
        }
        if !self.is_filled(session, inner, 4) {
            end_congestion(session, inner);
            return;
        }
        let (len, has_room) = (inner.queue.len(), !self.is_filled(session, inner, 2));
        session.set_crowded(!has_room);
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

    /// Looks whether the subscribers of a message of QoS 1 or 2 have room for it.
    pub(crate) fn room_for<'a>(
        &self,
        publisher: &BrokerSession,
        found: &'a TopicMatches<SessionMember>,
        turn: PublisherTurn,
    ) -> MessageRoom<'a> {
        let (mut crowded, mut is_slow) = (Vec::new(), false);
        for subscriber in found.own.iter().chain(&found.shared).chain(&found.rivals) {
            let session = &*subscriber.member.0;
            // What it has to take itself, a client has before it waits.
            if session.number == publisher.number || !session.is_connected() {
                continue;
            }
            if subscriber.options.qos == QoS::AtMostOnce {
                return MessageRoom::Free;
            }
            match self.room_of(session, &mut session.lock(), turn) {
                QueueRoom::Free => return MessageRoom::Free,
                QueueRoom::Crowded if crowded.len() < MOST_AWAITED => crowded.push(session),
                QueueRoom::Slow => is_slow = true,
                QueueRoom::Crowded | QueueRoom::Away => {}
            }
        }
        match (crowded.is_empty(), is_slow) {
            (false, _) => MessageRoom::Crowded(crowded),
            (true, true) => MessageRoom::Slow,
            (true, false) => MessageRoom::Free,
        }
    }

    fn room_of(&self, session: &BrokerSession, inner: &mut SessionInner, turn: PublisherTurn) -> QueueRoom {
        if inner.link.is_none() {
            return QueueRoom::Away;
        }
        let is_filled = self.is_filled(session, inner, 2);
        let Some(congestion) = &mut inner.congestion else {
            return QueueRoom::Free;
        };
        let is_first = turn != PublisherTurn::New || !congestion.has_old();
        if is_first && !is_filled {
            QueueRoom::Free
        } else if congestion.is_quick(self.options.publisher_wait.0) {
            QueueRoom::Crowded
        } else {
            QueueRoom::Slow
        }
    }

    /// Has a publisher woken once a client has room, unless it has some by now; returns whether it has to wait for that.
    pub(crate) fn wait_for(
        &self,
        session: &BrokerSession,
        turn: PublisherTurn,
        ticket: &Arc<PublisherTicket>,
    ) -> bool {
        let mut inner = session.lock();
        self.room_of(session, &mut inner, turn) == QueueRoom::Crowded
            && inner
                .congestion
                .as_mut()
                .is_some_and(|congestion| congestion.add(ticket))
    }
}

/// Lets all publishers go on that wait for a client; the caller holds its lock.
pub(crate) fn end_congestion(session: &BrokerSession, inner: &mut SessionInner) {
    if inner.congestion.take().is_some() {
        session.set_crowded(false);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Wake, Waker};

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ticket(waker: &Arc<CountingWaker>, since: Instant) -> Arc<PublisherTicket> {
        Arc::new(PublisherTicket::new(Waker::from(waker.clone()), since))
    }

    #[test]
    fn a_client_is_quick_while_it_takes_a_quarter_in_time() {
        let mut queue = QueueCongestion::new(&Arc::default(), 8);
        assert!(queue.is_quick(LONG) && !queue.is_quick(Duration::ZERO));
        let mut take = |count: usize, patience| {
            queue.unused = 0;
            (0..count).for_each(|_| queue.note_taken());
            queue.note_progress(8, patience);
            queue.is_quick(LONG)
        };
        assert!(take(1, Duration::ZERO), "not a quarter");
        assert!(!take(1, Duration::ZERO), "too late");
        assert!(!take(1, LONG));
        assert!(take(1, LONG), "in time again");
    }

    #[test]
    fn publishers_go_on_in_the_order_in_which_they_came() {
        let count = Arc::default();
        let mut queue = QueueCongestion::new(&count, 8);
        let began = Instant::now();
        let wakers = [(); 4].map(|()| Arc::<CountingWaker>::default());
        let tickets: Vec<_> = (0u64..)
            .zip(&wakers)
            .map(|(place, waker)| ticket(waker, began + Duration::from_nanos(place)))
            .collect();
        // The first one was woken before, and keeps its place.
        for place in [1, 2, 3, 0] {
            assert!(queue.add(&tickets[place]));
        }
        assert!(tickets[1].wake());
        (0..2 * TAKEN_FOR_ONE).for_each(|_| queue.note_taken());
        queue.wake_some();
        let woken = || wakers.each_ref().map(|waker| waker.0.load(Ordering::Relaxed));
        assert_eq!(woken(), [1, 1, 1, 0]);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(queue);
        assert_eq!(woken(), [1, 1, 1, 1]);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_waits_no_more_keeps_nobody_from_going_first() {
        let mut queue = QueueCongestion::new(&Arc::default(), 8);
        let waker = Arc::default();
        let old = Instant::now()
            .checked_sub(2 * FAIR_WAIT)
            .expect("a machine that runs longer");
        let gone = ticket(&waker, old);
        assert!(queue.add(&gone) && queue.has_old());
        gone.wake();
        assert!(!queue.has_old());
    }
}
