//! Turns for work that is dear: so many at a time, and whoever waits gets theirs in rotation with the other sources, so that
//! one that asks often waits for itself.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

/// How many may wait.
const MAX_WAITING: usize = 256;
/// How many of them may have come from one address.
const MAX_OF_SOURCE: usize = 128;

/// Where somebody comes from, where that is known.
pub(super) type ClientAddress = Option<IpAddr>;

type PasswordPermitSender = oneshot::Sender<PasswordPermit>;

/// See the module.
pub(super) struct PasswordSemaphore(Mutex<PasswordSemaphoreState>);

struct PasswordSemaphoreState {
    free: usize,
    waiting: usize,
    /// Never empty ones.
    queues: FxHashMap<ClientAddress, VecDeque<PasswordPermitSender>>,
    /// Whose turn it is next: each source with a queue, once.
    order: VecDeque<ClientAddress>,
}

/// The turn of one, which goes on to the next when dropped; nobody's once it is given back.
pub(super) struct PasswordPermit(Option<Arc<PasswordSemaphore>>);

impl PasswordSemaphore {
    pub(super) fn new(parallel: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(PasswordSemaphoreState {
            free: parallel.max(1),
            waiting: 0,
            queues: FxHashMap::default(),
            order: VecDeque::new(),
        })))
    }

    /// Waits for a turn. `None` where too many wait: of this source, or in all, unless another source has more of them, the
    /// last of which makes room.
    pub(super) async fn acquire(self: &Arc<Self>, source: ClientAddress) -> Option<PasswordPermit> {
        let turn = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Some(PasswordPermit(Some(Arc::clone(self))));
            }
            state.enter(source)?
        };
        turn.await.ok()
    }

    /// Gives a turn to the next one who still waits for it.
    fn release(self: &Arc<Self>) {
        loop {
            let next = {
                let mut state = self.0.lock();
                let next = state.next();
                if next.is_none() {
                    state.free += 1;
                }
                next
            };
            let Some(waiter) = next else { return };
            match waiter.send(PasswordPermit(Some(Arc::clone(self)))) {
                Ok(()) => return,
                // Whoever has gone away is passed over.
                Err(mut turn) => turn.0 = None,
            }
        }
    }
}

impl PasswordSemaphoreState {
    fn enter(&mut self, source: ClientAddress) -> Option<oneshot::Receiver<PasswordPermit>> {
        let own = self.queues.get(&source).map_or(0, VecDeque::len);
        if own >= MAX_OF_SOURCE || (self.waiting >= MAX_WAITING && !self.push_out(own + 1)) {
            return None;
        }
        let (waiter, turn) = oneshot::channel();
        let queue = self.queues.entry(source).or_default();
        if queue.is_empty() {
            self.order.push_back(source);
        }
        queue.push_back(waiter);
        self.waiting += 1;
        Some(turn)
    }

    /// Turns the last of the longest queue away, if that is longer than so many. Returns whether it was.
    fn push_out(&mut self, more_than: usize) -> bool {
        let longest = self.queues.values_mut().max_by_key(|queue| queue.len());
        let Some(longest) = longest.filter(|queue| queue.len() > more_than) else {
            return false;
        };
        longest.pop_back();
        self.waiting -= 1;
        true
    }

    /// The one who waits longest of the source that is next.
    fn next(&mut self) -> Option<PasswordPermitSender> {
        let source = self.order.pop_front()?;
        let queue = self.queues.get_mut(&source)?;
        let waiter = queue.pop_front();
        self.waiting -= 1;
        if queue.is_empty() {
            self.queues.remove(&source);
        } else {
            self.order.push_back(source);
        }
        waiter
    }
}

impl Drop for PasswordPermit {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn source(number: u8) -> ClientAddress {
        Some(IpAddr::from([192, 0, 2, number]))
    }

    #[tokio::test]
    async fn sources_take_turns_however_many_come_from_one() {
        let turns = PasswordSemaphore::new(1);
        let first = turns.acquire(None).await.expect("nobody is there");
        let mut crowd: Vec<_> = (0..MAX_OF_SOURCE)
            .map(|_| Box::pin(turns.acquire(source(1))))
            .collect();
        let mut context = Context::from_waker(Waker::noop());
        for waiting in &mut crowd {
            assert!(waiting.as_mut().poll(&mut context).is_pending());
        }
        assert!(turns.acquire(source(1)).await.is_none(), "too many of it wait");
        let mut other = pin!(turns.acquire(source(2)));
        assert!(other.as_mut().poll(&mut context).is_pending());

        drop(first);
        let Poll::Ready(Some(turn)) = crowd.remove(0).as_mut().poll(&mut context) else {
            panic!("it waits the longest");
        };
        drop(turn);
        assert!(matches!(other.as_mut().poll(&mut context), Poll::Ready(Some(_))));
        // All the others go away.
        crowd.clear();
        assert!(turns.acquire(source(1)).await.is_some(), "no turn is lost");
        assert_eq!(turns.0.lock().waiting, 0);
    }

    #[tokio::test]
    async fn who_comes_alone_finds_room_where_others_have_filled_it() {
        let turns = PasswordSemaphore::new(1);
        let _first = turns.acquire(None).await.expect("nobody is there");
        let mut context = Context::from_waker(Waker::noop());
        let mut crowd: Vec<_> = (0..MAX_WAITING)
            .map(|number| Box::pin(turns.acquire(source((number % 16) as u8))))
            .collect();
        for waiting in &mut crowd {
            assert!(waiting.as_mut().poll(&mut context).is_pending());
        }
        let mut other = pin!(turns.acquire(source(200)));
        assert!(other.as_mut().poll(&mut context).is_pending());
        assert_eq!(turns.0.lock().waiting, MAX_WAITING);
        let mut refused = 0;
        for waiting in &mut crowd {
            if let Poll::Ready(turn) = waiting.as_mut().poll(&mut context) {
                assert!(turn.is_none());
                refused += 1;
            }
        }
        assert_eq!(refused, 1);
    }
}
