//! State of CoAP's message layer (RFC 7252 §4): the messages received from each peer with their answers, and the
//! messages to peers that wait for an acknowledgement. No I/O and no clock: time is a parameter.
//!
//! All of it is bounded: by age, per peer, and overall in number and bytes. If a message is forgotten early, its
//! duplicate is taken for a new message.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand::Rng as _;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a message ID stands for the same message (RFC 7252 §4.8.2, EXCHANGE_LIFETIME).
const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
/// The first wait for an acknowledgement, and its random extension (ACK_TIMEOUT, ACK_RANDOM_FACTOR).
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
const ACK_RANDOM_MS: u64 = 1_000;
/// Most retransmissions of a message (MAX_RETRANSMIT).
const MAX_RETRANSMIT: u32 = 4;

/// Messages remembered per peer, and overall; beyond that the oldest are forgotten.
const SEEN_OF_PEER: usize = 256;
const SEEN: usize = 100_000;
/// Bytes of answers kept for duplicates.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Messages that may wait for an acknowledgement per peer, and overall.
const WAITING_OF_PEER: usize = 16;
const MAX_UNACKNOWLEDGED: usize = 100_000;

/// A peer: an address and, with DTLS, the session, so that a later user of the address is not taken for the same peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CoapPeer {
    pub(super) address: SocketAddr,
    /// 0 without DTLS.
    pub(super) session: u64,
}

/// Whether a message is a duplicate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DuplicateCheck {
    /// It was not seen before.
    New,
    /// It was seen before, with this answer if there is one yet.
    Again(Option<Bytes>),
}

/// The reason why a confirmable message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoapSendError {
    /// Too many messages wait for the acknowledgement of this peer, or overall.
    TooMany,
    /// The peer cannot be reached.
    NoWay,
}

/// The outcome of a message that waits for an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoapDelivery {
    /// The peer has acknowledged it.
    Acknowledged,
    /// The peer has received it, but has no use for it.
    Reset,
    /// The peer has not answered.
    TimedOut,
}

struct SeenMessage {
    serial: u64,
    answer: Option<Bytes>,
}

struct PeerExchanges {
    seen: FxHashMap<u16, SeenMessage>,
    /// The message IDs of `seen` in order of arrival, with stale entries among them.
    order: VecDeque<(u16, u64)>,
    next_id: u16,
    waiting: Vec<u16>,
}

struct PendingAcknowledgement {
    datagram: Bytes,
    repeats: u32,
    timeout: Duration,
    timer: (Instant, u64),
    outcome: oneshot::Sender<CoapDelivery>,
}

/// The state of the message layer; see the module.
#[derive(Default)]
pub(super) struct CoapExchanges {
    peers: FxHashMap<CoapPeer, PeerExchanges>,
    /// All messages of `seen` in order of arrival, with stale entries among them.
    order: VecDeque<(Instant, CoapPeer, u16, u64)>,
    answers: usize,
    unacknowledged: FxHashMap<(CoapPeer, u16), PendingAcknowledgement>,
    timers: BTreeMap<(Instant, u64), (CoapPeer, u16)>,
    serial: u64,
}

impl CoapExchanges {
    /// Registers a received message, and tells whether it is a duplicate.
    pub(super) fn begin(&mut self, peer: CoapPeer, id: u16, now: Instant) -> DuplicateCheck {
        self.forget_old(now);
        let serial = self.serial();
        let state = self.peers.entry(peer).or_insert_with(PeerExchanges::new);
        if let Some(record) = state.seen.get(&id) {
            return DuplicateCheck::Again(record.answer.clone());
        }
        state.seen.insert(id, SeenMessage { serial, answer: None });
        state.order.push_back((id, serial));
        self.order.push_back((now, peer, id, serial));
        let surplus = if state.order.len() > SEEN_OF_PEER {
            state.order.pop_front()
        } else {
            None
        };
        if let Some((id, serial)) = surplus {
            self.forget(peer, id, serial);
        }
        DuplicateCheck::New
    }

    /// Stores the answer to a message for its duplicates; replaces an earlier one.
    pub(super) fn store_answer(&mut self, peer: CoapPeer, id: u16, answer: Bytes) {
        let record = self
            .peers
            .get_mut(&peer)
            .and_then(|state| state.seen.get_mut(&id));
        if let Some(record) = record {
            self.answers += answer.len();
            self.answers -= record.answer.replace(answer).map_or(0, |before| before.len());
        }
    }

    /// Forgets a message that was not accepted, so that its retransmission is handled.
    pub(super) fn forget_message(&mut self, peer: CoapPeer, id: u16) {
        let record = self.peers.get(&peer).and_then(|state| state.seen.get(&id));
        if let Some(serial) = record.map(|record| record.serial) {
            self.forget(peer, id, serial);
        }
    }

    /// Returns the message ID for the next message to a peer.
    pub(super) fn next_id(&mut self, peer: CoapPeer) -> u16 {
        let state = self.peers.entry(peer).or_insert_with(PeerExchanges::new);
        state.next_id = state.next_id.wrapping_add(1);
        let id = state.next_id;
        self.tidy(peer);
        id
    }

    /// Registers a confirmable message that is sent now. Returns `None` if too many wait already; the message must not
    /// be sent then.
    pub(super) fn await_acknowledgement(
        &mut self,
        peer: CoapPeer,
        id: u16,
        datagram: Bytes,
        now: Instant,
    ) -> Option<oneshot::Receiver<CoapDelivery>> {
        let spread = Duration::from_millis(rand::rng().random_range(0..=ACK_RANDOM_MS));
        let serial = self.serial();
        let state = self.peers.entry(peer).or_insert_with(PeerExchanges::new);
        if state.waiting.len() >= WAITING_OF_PEER || self.unacknowledged.len() >= MAX_UNACKNOWLEDGED {
            self.tidy(peer);
            return None;
        }
        state.waiting.push(id);
        let (outcome, result) = oneshot::channel();
        let patience = ACK_TIMEOUT + spread;
        let timer = (now + patience, serial);
        let waiting = PendingAcknowledgement {
            datagram,
            repeats: 0,
            timeout: patience,
            timer,
            outcome,
        };
        self.timers.insert(timer, (peer, id));
        self.unacknowledged.insert((peer, id), waiting);
        Some(result)
    }

    /// Settles a message that the peer has acknowledged or reset. Returns whether the message was waiting for that.
    pub(super) fn complete(&mut self, peer: CoapPeer, id: u16, delivery: CoapDelivery) -> bool {
        let Some(waiting) = self.unacknowledged.remove(&(peer, id)) else {
            return false;
        };
        self.timers.remove(&waiting.timer);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.waiting.retain(|other| *other != id);
        }
        self.tidy(peer);
        // The sender may no longer wait for the outcome.
        let _ = waiting.outcome.send(delivery);
        true
    }

    /// Settles all messages to a peer that can no longer be reached as timed out.
    pub(super) fn remove_peer(&mut self, peer: CoapPeer) {
        let waiting = self.peers.get(&peer).map(|state| state.waiting.clone());
        for id in waiting.unwrap_or_default() {
            self.complete(peer, id, CoapDelivery::TimedOut);
        }
    }

    /// Returns the datagrams whose retransmission is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(CoapPeer, Bytes)> {
        self.forget_old(now);
        let mut again = Vec::new();
        while let Some((&timer, &key)) = self.timers.first_key_value().filter(|(timer, _)| timer.0 <= now) {
            self.timers.remove(&timer);
            let Some(waiting) = self.unacknowledged.get_mut(&key) else {
                continue;
            };
            if waiting.repeats == MAX_RETRANSMIT {
                self.complete(key.0, key.1, CoapDelivery::TimedOut);
                continue;
            }
            waiting.repeats += 1;
            waiting.timeout *= 2;
            waiting.timer = (now + waiting.timeout, timer.1);
            self.timers.insert(waiting.timer, key);
            again.push((key.0, waiting.datagram.clone()));
        }
        again
    }

    fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(&(at, peer, id, serial)) = self.order.front() {
            let is_old = now.saturating_duration_since(at) >= EXCHANGE_LIFETIME;
            if !is_old && self.order.len() <= SEEN && self.answers <= MAX_ANSWER_BYTES {
                return;
            }
            self.order.pop_front();
            self.forget(peer, id, serial);
        }
    }

    fn forget(&mut self, peer: CoapPeer, id: u16, serial: u64) {
        let Some(state) = self.peers.get_mut(&peer) else {
            return;
        };
        if state.seen.get(&id).is_some_and(|record| record.serial == serial)
            && let Some(record) = state.seen.remove(&id)
        {
            self.answers -= record.answer.map_or(0, |answer| answer.len());
        }
        while state
            .order
            .front()
            .is_some_and(|(id, serial)| state.seen.get(id).is_none_or(|record| record.serial != *serial))
        {
            state.order.pop_front();
        }
        self.tidy(peer);
    }

    /// Drops a peer without any state.
    fn tidy(&mut self, peer: CoapPeer) {
        let is_idle = |state: &PeerExchanges| state.seen.is_empty() && state.waiting.is_empty();
        if self.peers.get(&peer).is_some_and(is_idle) {
            self.peers.remove(&peer);
        }
    }
}

impl PeerExchanges {
    fn new() -> Self {
        Self {
            seen: FxHashMap::default(),
            order: VecDeque::new(),
            // Random, so that messages after a restart are not taken for duplicates.
            next_id: rand::rng().random(),
            waiting: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> CoapPeer {
        CoapPeer {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            session: 0,
        }
    }

    #[test]
    fn a_duplicate_gets_the_first_answer_until_its_time_is_over() {
        let (mut exchanges, start) = (CoapExchanges::default(), Instant::now());
        assert_eq!(exchanges.begin(peer(1), 7, start), DuplicateCheck::New);
        assert_eq!(exchanges.begin(peer(1), 7, start), DuplicateCheck::Again(None));
        assert_eq!(
            exchanges.begin(peer(2), 7, start),
            DuplicateCheck::New,
            "another peer"
        );
        exchanges.store_answer(peer(1), 7, Bytes::from_static(b"empty"));
        exchanges.store_answer(peer(1), 7, Bytes::from_static(b"ok"));
        let late = start + EXCHANGE_LIFETIME - Duration::from_millis(1);
        assert_eq!(
            exchanges.begin(peer(1), 7, late),
            DuplicateCheck::Again(Some(Bytes::from_static(b"ok")))
        );
        assert_eq!(
            exchanges.begin(peer(1), 7, start + EXCHANGE_LIFETIME),
            DuplicateCheck::New
        );
        exchanges.forget_message(peer(1), 7);
        assert_eq!(
            exchanges.begin(peer(1), 7, start + EXCHANGE_LIFETIME),
            DuplicateCheck::New
        );
        exchanges.take_due(start + 3 * EXCHANGE_LIFETIME);
        assert!(exchanges.peers.is_empty() && exchanges.order.is_empty() && exchanges.answers == 0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut exchanges, now) = (CoapExchanges::default(), Instant::now());
        for id in 0..=u16::try_from(SEEN_OF_PEER).unwrap() {
            exchanges.begin(peer(1), id, now);
            exchanges.store_answer(peer(1), id, Bytes::from_static(b"0123456789"));
        }
        assert_eq!(
            exchanges.begin(peer(1), 0, now),
            DuplicateCheck::New,
            "the oldest is forgotten"
        );
        assert_eq!(exchanges.answers, (SEEN_OF_PEER - 1) * 10);
        let large = Bytes::from(vec![0; MAX_ANSWER_BYTES / 4]);
        for port in 2..=7 {
            exchanges.begin(peer(port), 1, now);
            exchanges.store_answer(peer(port), 1, large.clone());
        }
        exchanges.take_due(now);
        assert!(exchanges.answers <= MAX_ANSWER_BYTES);
        for number in 0..=SEEN {
            let port = u16::try_from(number % 60_000).unwrap();
            exchanges.begin(peer(port), u16::try_from(number / 60_000).unwrap() + 300, now);
        }
        exchanges.take_due(now);
        assert!(exchanges.order.len() <= SEEN);
        let sent = (0..20).filter_map(|id| exchanges.await_acknowledgement(peer(1), id, Bytes::new(), now));
        assert_eq!(sent.count(), WAITING_OF_PEER);
    }

    #[test]
    fn a_message_is_sent_again_ever_more_seldom_until_it_is_settled_or_given_up() {
        let (mut exchanges, start) = (CoapExchanges::default(), Instant::now());
        let mut settled = exchanges
            .await_acknowledgement(peer(1), 1, Bytes::from_static(b"a"), start)
            .unwrap();
        let mut lost = exchanges
            .await_acknowledgement(peer(1), 2, Bytes::from_static(b"b"), start)
            .unwrap();
        assert!(
            exchanges
                .take_due(start + Duration::from_millis(1_999))
                .is_empty()
        );
        let mut now = start + Duration::from_secs(3);
        assert_eq!(exchanges.take_due(now).len(), 2);
        assert!(exchanges.complete(peer(1), 1, CoapDelivery::Acknowledged));
        assert!(
            !exchanges.complete(peer(1), 1, CoapDelivery::Acknowledged),
            "once"
        );
        assert_eq!(settled.try_recv(), Ok(CoapDelivery::Acknowledged));
        let mut times = Vec::new();
        while lost.try_recv().is_err() {
            now += Duration::from_secs(1);
            if !exchanges.take_due(now).is_empty() {
                times.push(now - start);
            }
        }
        assert_eq!(times.len(), 3, "{times:?}");
        assert!(times[2] - times[1] > (times[1] - times[0]) * 3 / 2, "{times:?}");
        assert!(now - start <= Duration::from_secs(110));
        assert!(exchanges.timers.is_empty() && exchanges.peers.is_empty());
    }
}
