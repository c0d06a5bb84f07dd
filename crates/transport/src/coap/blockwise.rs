//! Bodies larger than a datagram (RFC 7959): partially received requests, and responses that the peer has not fetched
//! whole. Bounded per peer and overall, in number, bytes and time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use fieldline_codec::coap::{CoapBlock, CoapCode};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::counts::BoundedCounts;
use super::exchanges::CoapPeer;

/// How long the next block may take to arrive.
const NEXT_BLOCK_TIMEOUT: Duration = Duration::from_secs(120);
/// Bodies of one peer at a time.
const OF_PEER: usize = 4;
/// Approximate memory of a body besides its bytes.
const OVERHEAD: usize = 256;
/// Stale entries of `order` that are tolerated, beyond one per body.
const SLACK: usize = 64;

/// Identifies a body by its peer, method and target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BlockwiseKey {
    pub(super) peer: CoapPeer,
    pub(super) method: CoapCode,
    /// Path and query, which distinguish the bodies of one peer.
    pub(super) target: String,
}

/// The result of one block of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UploadProgress {
    /// More blocks are expected.
    Continues,
    /// All blocks have arrived.
    Whole(Vec<u8>),
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockwiseResponse {
    pub(super) bytes: Bytes,
    /// Its content format.
    pub(super) format: Option<u32>,
}

struct BlockwiseBody {
    bytes: BlockwiseContent,
    serial: u64,
    weight: usize,
}

enum BlockwiseContent {
    Upload(Vec<u8>),
    Download(BlockwiseResponse),
}

#[derive(Default)]
struct BlockwiseState {
    bodies: FxHashMap<(BlockwiseKey, bool), BlockwiseBody>,
    of_peer: BoundedCounts<CoapPeer>,
    order: VecDeque<(Instant, (BlockwiseKey, bool), u64)>,
    weight: usize,
    serial: u64,
}

/// The bodies in blocks of all peers; see the module.
pub(super) struct BlockwiseTransfers {
    state: Mutex<BlockwiseState>,
    max_body: usize,
    memory: usize,
}

const UPLOAD: bool = true;
const DOWNLOAD: bool = false;

impl BlockwiseTransfers {
    /// Creates a store for bodies of at most `max_body` bytes each from peers, and `memory` bytes overall.
    pub(super) fn new(max_body: usize, memory: usize) -> Self {
        Self {
            state: Mutex::default(),
            max_body,
            memory,
        }
    }

    /// Largest body that is accepted, bytes.
    pub(super) const fn max_body(&self) -> usize {
        self.max_body
    }

    /// Adds a block of a request. `size` is the size of the whole body, if the peer has announced it.
    ///
    /// # Errors
    /// The code of the refusal; the body is dropped then.
    pub(super) fn upload(
        &self,
        key: &BlockwiseKey,
        block: CoapBlock,
        payload: &[u8],
        size: Option<u32>,
        now: Instant,
    ) -> Result<UploadProgress, CoapCode> {
        let key = (key.clone(), UPLOAD);
        let mut state = self.state.lock();
        state.forget_old(now);
        let outcome = self.take(&mut state, &key, block, payload, size, now);
        if !matches!(outcome, Ok(UploadProgress::Continues)) {
            state.remove(&key);
        }
        outcome
    }

    fn take(
        &self,
        state: &mut BlockwiseState,
        key: &(BlockwiseKey, bool),
        block: CoapBlock,
        payload: &[u8],
        size: Option<u32>,
        now: Instant,
    ) -> Result<UploadProgress, CoapCode> {
        let is_whole_block = payload.len() == block.size();
        if payload.len() > block.size() || (block.more() && !is_whole_block) {
            return Err(CoapCode::BAD_REQUEST);
        }
        if size.is_some_and(|size| size as usize > self.max_body)
            || block.offset() + payload.len() > self.max_body
        {
            return Err(CoapCode::REQUEST_ENTITY_TOO_LARGE);
        }
        let mut bytes = match state.remove(key) {
            _ if block.number() == 0 => Vec::new(),
            Some(BlockwiseContent::Upload(bytes)) => bytes,
            _ => return Err(CoapCode::REQUEST_ENTITY_INCOMPLETE),
        };
        if bytes.len() == block.offset() {
            bytes.extend_from_slice(payload);
        } else if bytes.len() != block.offset() + payload.len() {
            // Equal lengths mean the previous block again, because its response was lost: it adds nothing.
            return Err(CoapCode::REQUEST_ENTITY_INCOMPLETE);
        }
        if !block.more() {
            return Ok(UploadProgress::Whole(bytes));
        }
        if state.insert(key.clone(), BlockwiseContent::Upload(bytes), self.memory, now) {
            Ok(UploadProgress::Continues)
        } else {
            Err(CoapCode::SERVICE_UNAVAILABLE)
        }
    }

    /// Stores a response for the blocks that the peer will ask for, if there is room.
    pub(super) fn store_response(&self, key: &BlockwiseKey, body: BlockwiseResponse, now: Instant) {
        let mut state = self.state.lock();
        state.forget_old(now);
        let key = (key.clone(), DOWNLOAD);
        state.remove(&key);
        state.insert(key, BlockwiseContent::Download(body), self.memory, now);
    }

    /// Returns a stored response.
    pub(super) fn response(&self, key: &BlockwiseKey, now: Instant) -> Option<BlockwiseResponse> {
        let mut state = self.state.lock();
        state.forget_old(now);
        match &state.bodies.get(&(key.clone(), DOWNLOAD))?.bytes {
            BlockwiseContent::Download(body) => Some(body.clone()),
            BlockwiseContent::Upload(_) => None,
        }
    }

    /// Drops a response after its last block was sent.
    pub(super) fn remove_response(&self, key: &BlockwiseKey) {
        self.state.lock().remove(&(key.clone(), DOWNLOAD));
    }

    /// Drops bodies whose next block has not arrived in time.
    pub(super) fn tick(&self, now: Instant) {
        self.state.lock().forget_old(now);
    }
}

impl BlockwiseState {
    fn insert(
        &mut self,
        key: (BlockwiseKey, bool),
        bytes: BlockwiseContent,
        memory: usize,
        now: Instant,
    ) -> bool {
        let weight = OVERHEAD
            + key.0.target.len()
            + match &bytes {
                BlockwiseContent::Upload(bytes) => bytes.capacity(),
                BlockwiseContent::Download(body) => body.bytes.len(),
            };
        if self.weight + weight > memory || !self.of_peer.try_increment(key.0.peer, OF_PEER) {
            return false;
        }
        self.serial += 1;
        let serial = self.serial;
        self.weight += weight;
        self.order.push_back((now, key.clone(), serial));
        let body = BlockwiseBody {
            bytes,
            serial,
            weight,
        };
        self.bodies.insert(key, body);
        // Every block replaces an entry: stale entries must not pile up behind one that still waits.
        if self.order.len() > 2 * self.bodies.len() + SLACK {
            let bodies = &self.bodies;
            self.order
                .retain(|(_, key, serial)| bodies.get(key).is_some_and(|body| body.serial == *serial));
        }
        true
    }

    fn remove(&mut self, key: &(BlockwiseKey, bool)) -> Option<BlockwiseContent> {
        let body = self.bodies.remove(key)?;
        self.weight -= body.weight;
        self.of_peer.decrement(&key.0.peer);
        Some(body.bytes)
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((at, key, serial)) = self.order.front() {
            let is_current = self.bodies.get(key).is_some_and(|body| body.serial == *serial);
            if is_current && now.saturating_duration_since(*at) < NEXT_BLOCK_TIMEOUT {
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

    fn key(port: u16, target: &str) -> BlockwiseKey {
        BlockwiseKey {
            peer: CoapPeer {
                address: ([127, 0, 0, 1], port).into(),
                session: 0,
            },
            method: CoapCode::POST,
            target: target.to_owned(),
        }
    }

    fn block(number: u32, more: bool) -> CoapBlock {
        CoapBlock::new(number, more, 0).unwrap()
    }

    #[test]
    fn blocks_become_a_body_in_order_only() {
        let (bodies, now) = (BlockwiseTransfers::new(64, 10_000), Instant::now());
        let upload = |number, more, payload: &[u8]| {
            bodies.upload(&key(1, "t"), block(number, more), payload, None, now)
        };
        assert_eq!(
            upload(1, true, &[1; 16]),
            Err(CoapCode::REQUEST_ENTITY_INCOMPLETE)
        );
        assert_eq!(
            upload(0, true, &[0; 15]),
            Err(CoapCode::BAD_REQUEST),
            "a short block"
        );
        assert_eq!(upload(0, true, &[0; 16]), Ok(UploadProgress::Continues));
        assert_eq!(
            upload(0, true, &[0; 16]),
            Ok(UploadProgress::Continues),
            "from the start"
        );
        assert_eq!(upload(1, true, &[1; 16]), Ok(UploadProgress::Continues));
        assert_eq!(
            upload(1, true, &[1; 16]),
            Ok(UploadProgress::Continues),
            "once more"
        );
        let whole = [vec![0; 16], vec![1; 16], vec![2; 3]].concat();
        assert_eq!(upload(2, false, &[2; 3]), Ok(UploadProgress::Whole(whole)));
        assert_eq!(
            upload(3, false, &[3; 3]),
            Err(CoapCode::REQUEST_ENTITY_INCOMPLETE)
        );
        for number in 0..4 {
            assert_eq!(upload(number, true, &[0; 16]), Ok(UploadProgress::Continues));
        }
        assert_eq!(upload(4, false, &[0]), Err(CoapCode::REQUEST_ENTITY_TOO_LARGE));
        let announced = bodies.upload(&key(1, "t"), block(0, true), &[0; 16], Some(65), now);
        assert_eq!(announced, Err(CoapCode::REQUEST_ENTITY_TOO_LARGE));
        assert_eq!(bodies.state.lock().weight, 0);
    }

    #[test]
    fn what_is_kept_is_bounded_and_forgotten() {
        let (bodies, now) = (BlockwiseTransfers::new(64, 2_000), Instant::now());
        let start =
            |port, target: &str| bodies.upload(&key(port, target), block(0, true), &[0; 16], None, now);
        for target in ["a", "b", "c", "d"] {
            assert_eq!(start(1, target), Ok(UploadProgress::Continues));
        }
        assert_eq!(
            start(1, "e"),
            Err(CoapCode::SERVICE_UNAVAILABLE),
            "too many of one peer"
        );
        for port in 2..5 {
            assert_eq!(start(port, "a"), Ok(UploadProgress::Continues));
        }
        assert_eq!(
            start(5, "a"),
            Err(CoapCode::SERVICE_UNAVAILABLE),
            "too much altogether"
        );
        let kept = |bytes: Vec<u8>| BlockwiseResponse {
            bytes: bytes.into(),
            format: None,
        };
        bodies.store_response(&key(6, "a"), kept(vec![0; 1_000]), now);
        assert_eq!(bodies.response(&key(6, "a"), now), None);
        bodies.tick(now + NEXT_BLOCK_TIMEOUT);
        bodies.store_response(&key(6, "a"), kept(vec![0; 3]), now + NEXT_BLOCK_TIMEOUT);
        assert!(bodies.response(&key(6, "a"), now + NEXT_BLOCK_TIMEOUT).is_some());
        bodies.remove_response(&key(6, "a"));
        let state = bodies.state.lock();
        assert!(state.weight == 0 && state.bodies.is_empty() && state.of_peer.is_empty());
    }

    #[test]
    fn what_is_begun_again_and_again_leaves_nothing_behind_one_that_waits() {
        let (bodies, now) = (BlockwiseTransfers::new(64, 10_000), Instant::now());
        let start = |target: &str| bodies.upload(&key(1, target), block(0, true), &[0; 16], None, now);
        assert_eq!(start("waits"), Ok(UploadProgress::Continues));
        for _ in 0..10_000 {
            assert_eq!(start("repeated"), Ok(UploadProgress::Continues));
        }
        let state = bodies.state.lock();
        assert!(state.order.len() <= 2 * state.bodies.len() + SLACK);
    }
}
