//! Bodies that are larger than a datagram (RFC 7959): what has come of a request in blocks, and responses of which the peer
//! has not asked for all blocks yet. Bounded by peer and altogether, in number, bytes and time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use fieldline_codec::coap::{Block, Code};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::counts::Counts;
use super::exchanges::Peer;

/// How long the next block is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bodies of one peer at a time.
const OF_PEER: usize = 4;
/// What a body takes besides its bytes, about.
const OVERHEAD: usize = 256;
/// Places of bodies that are there no more, beyond as many as there are bodies.
const SLACK: usize = 64;

/// Whose body it is, of which direction, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) peer: Peer,
    pub(super) method: Code,
    /// Path and query, which tell bodies of one peer apart.
    pub(super) target: String,
}

/// What a block of a request has led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Uploaded {
    /// More are awaited.
    Continues,
    /// All are there.
    Whole(Vec<u8>),
}

/// A response that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) bytes: Bytes,
    /// Its content format.
    pub(super) format: Option<u32>,
}

struct Body {
    bytes: Content,
    serial: u64,
    weight: usize,
}

enum Content {
    Upload(Vec<u8>),
    Download(Kept),
}

#[derive(Default)]
struct State {
    bodies: FxHashMap<(Key, bool), Body>,
    of_peer: Counts<Peer>,
    order: VecDeque<(Instant, (Key, bool), u64)>,
    weight: usize,
    serial: u64,
}

/// See the module.
pub(super) struct Bodies {
    state: Mutex<State>,
    max_body: usize,
    memory: usize,
}

const UPLOAD: bool = true;
const DOWNLOAD: bool = false;

impl Bodies {
    /// Bodies of at most `max_body` bytes from peers, and `memory` bytes together.
    pub(super) fn new(max_body: usize, memory: usize) -> Self {
        Self {
            state: Mutex::default(),
            max_body,
            memory,
        }
    }

    /// The longest body that is taken, bytes.
    pub(super) const fn max_body(&self) -> usize {
        self.max_body
    }

    /// Takes a block of a request. `size` is what the peer says that all will have.
    ///
    /// # Errors
    /// The code to refuse it with; nothing is kept of the body then.
    pub(super) fn upload(
        &self,
        key: &Key,
        block: Block,
        payload: &[u8],
        size: Option<u32>,
        now: Instant,
    ) -> Result<Uploaded, Code> {
        let key = (key.clone(), UPLOAD);
        let mut state = self.state.lock();
        state.forget_old(now);
        let outcome = self.take(&mut state, &key, block, payload, size, now);
        if !matches!(outcome, Ok(Uploaded::Continues)) {
            state.remove(&key);
        }
        outcome
    }

    fn take(
        &self,
        state: &mut State,
        key: &(Key, bool),
        block: Block,
        payload: &[u8],
        size: Option<u32>,
        now: Instant,
    ) -> Result<Uploaded, Code> {
        let is_whole_block = payload.len() == block.size();
        if payload.len() > block.size() || (block.more() && !is_whole_block) {
            return Err(Code::BAD_REQUEST);
        }
        if size.is_some_and(|size| size as usize > self.max_body)
            || block.offset() + payload.len() > self.max_body
        {
            return Err(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        let mut bytes = match state.remove(key) {
            _ if block.number() == 0 => Vec::new(),
            Some(Content::Upload(bytes)) => bytes,
            _ => return Err(Code::REQUEST_ENTITY_INCOMPLETE),
        };
        if bytes.len() == block.offset() {
            bytes.extend_from_slice(payload);
        } else if bytes.len() != block.offset() + payload.len() {
            // The block before once more, whose answer was lost, is nothing new.
            return Err(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        if !block.more() {
            return Ok(Uploaded::Whole(bytes));
        }
        if state.insert(key.clone(), Content::Upload(bytes), self.memory, now) {
            Ok(Uploaded::Continues)
        } else {
            Err(Code::SERVICE_UNAVAILABLE)
        }
    }

    /// Keeps a response for the blocks that the peer will ask for. Where there is no room, it is not kept.
    pub(super) fn keep(&self, key: &Key, body: Kept, now: Instant) {
        let mut state = self.state.lock();
        state.forget_old(now);
        let key = (key.clone(), DOWNLOAD);
        state.remove(&key);
        state.insert(key, Content::Download(body), self.memory, now);
    }

    /// A response that was kept.
    pub(super) fn kept(&self, key: &Key, now: Instant) -> Option<Kept> {
        let mut state = self.state.lock();
        state.forget_old(now);
        match &state.bodies.get(&(key.clone(), DOWNLOAD))?.bytes {
            Content::Download(body) => Some(body.clone()),
            Content::Upload(_) => None,
        }
    }

    /// The peer has the last block of a response.
    pub(super) fn finished(&self, key: &Key) {
        self.state.lock().remove(&(key.clone(), DOWNLOAD));
    }

    /// Forgets bodies whose next block has not come.
    pub(super) fn tick(&self, now: Instant) {
        self.state.lock().forget_old(now);
    }
}

impl State {
    fn insert(&mut self, key: (Key, bool), bytes: Content, memory: usize, now: Instant) -> bool {
        let weight = OVERHEAD
            + key.0.target.len()
            + match &bytes {
                Content::Upload(bytes) => bytes.capacity(),
                Content::Download(body) => body.bytes.len(),
            };
        if self.weight + weight > memory || !self.of_peer.take(key.0.peer, OF_PEER) {
            return false;
        }
        self.serial += 1;
        let serial = self.serial;
        self.weight += weight;
        self.order.push_back((now, key.clone(), serial));
        let body = Body {
            bytes,
            serial,
            weight,
        };
        self.bodies.insert(key, body);
        // Those that were replaced, as with every block, must not pile up behind one that is waited for.
        if self.order.len() > 2 * self.bodies.len() + SLACK {
            let bodies = &self.bodies;
            self.order
                .retain(|(_, key, serial)| bodies.get(key).is_some_and(|body| body.serial == *serial));
        }
        true
    }

    fn remove(&mut self, key: &(Key, bool)) -> Option<Content> {
        let body = self.bodies.remove(key)?;
        self.weight -= body.weight;
        self.of_peer.give_back(&key.0.peer);
        Some(body.bytes)
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((at, key, serial)) = self.order.front() {
            let is_current = self.bodies.get(key).is_some_and(|body| body.serial == *serial);
            if is_current && now.saturating_duration_since(*at) < PATIENCE {
                return;
            }
            if let Some((_, key, _)) = self.order.pop_front()
                && is_current
            {
                self.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16, target: &str) -> Key {
        Key {
            peer: Peer {
                address: ([127, 0, 0, 1], port).into(),
                session: 0,
            },
            method: Code::POST,
            target: target.to_owned(),
        }
    }

    fn block(number: u32, more: bool) -> Block {
        Block::new(number, more, 0).unwrap()
    }

    #[test]
    fn blocks_become_a_body_in_order_only() {
        let (bodies, now) = (Bodies::new(64, 10_000), Instant::now());
        let upload = |number, more, payload: &[u8]| {
            bodies.upload(&key(1, "t"), block(number, more), payload, None, now)
        };
        assert_eq!(upload(1, true, &[1; 16]), Err(Code::REQUEST_ENTITY_INCOMPLETE));
        assert_eq!(upload(0, true, &[0; 15]), Err(Code::BAD_REQUEST), "a short block");
        assert_eq!(upload(0, true, &[0; 16]), Ok(Uploaded::Continues));
        assert_eq!(
            upload(0, true, &[0; 16]),
            Ok(Uploaded::Continues),
            "from the start"
        );
        assert_eq!(upload(1, true, &[1; 16]), Ok(Uploaded::Continues));
        assert_eq!(upload(1, true, &[1; 16]), Ok(Uploaded::Continues), "once more");
        let whole = [vec![0; 16], vec![1; 16], vec![2; 3]].concat();
        assert_eq!(upload(2, false, &[2; 3]), Ok(Uploaded::Whole(whole)));
        assert_eq!(upload(3, false, &[3; 3]), Err(Code::REQUEST_ENTITY_INCOMPLETE));
        for number in 0..4 {
            assert_eq!(upload(number, true, &[0; 16]), Ok(Uploaded::Continues));
        }
        assert_eq!(upload(4, false, &[0]), Err(Code::REQUEST_ENTITY_TOO_LARGE));
        let announced = bodies.upload(&key(1, "t"), block(0, true), &[0; 16], Some(65), now);
        assert_eq!(announced, Err(Code::REQUEST_ENTITY_TOO_LARGE));
        assert_eq!(bodies.state.lock().weight, 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_forgotten() {
        let (bodies, now) = (Bodies::new(64, 2_000), Instant::now());
        let start =
            |port, target: &str| bodies.upload(&key(port, target), block(0, true), &[0; 16], None, now);
        for target in ["a", "b", "c", "d"] {
            assert_eq!(start(1, target), Ok(Uploaded::Continues));
        }
        assert_eq!(
            start(1, "e"),
            Err(Code::SERVICE_UNAVAILABLE),
            "too many of one peer"
        );
        for port in 2..5 {
            assert_eq!(start(port, "a"), Ok(Uploaded::Continues));
        }
        assert_eq!(
            start(5, "a"),
            Err(Code::SERVICE_UNAVAILABLE),
            "too much altogether"
        );
        let kept = |bytes: Vec<u8>| Kept {
            bytes: bytes.into(),
            format: None,
        };
        bodies.keep(&key(6, "a"), kept(vec![0; 1_000]), now);
        assert_eq!(bodies.kept(&key(6, "a"), now), None);
        bodies.tick(now + PATIENCE);
        bodies.keep(&key(6, "a"), kept(vec![0; 3]), now + PATIENCE);
        assert!(bodies.kept(&key(6, "a"), now + PATIENCE).is_some());
        bodies.finished(&key(6, "a"));
        let state = bodies.state.lock();
        assert!(state.weight == 0 && state.bodies.is_empty() && state.of_peer.is_empty());
    }

    #[test]
    fn what_is_begun_again_and_again_leaves_nothing_behind_one_that_waits() {
        let (bodies, now) = (Bodies::new(64, 10_000), Instant::now());
        let start = |target: &str| bodies.upload(&key(1, target), block(0, true), &[0; 16], None, now);
        assert_eq!(start("waits"), Ok(Uploaded::Continues));
        for _ in 0..10_000 {
            assert_eq!(start("repeated"), Ok(Uploaded::Continues));
        }
        let state = bodies.state.lock();
        assert!(state.order.len() <= 2 * state.bodies.len() + SLACK);
    }
}
