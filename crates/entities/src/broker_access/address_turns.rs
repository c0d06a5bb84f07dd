//! Turns of addresses: so many requests at a time come from one, so that the clients of others do not wait for it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// See the module.
pub(super) struct AddressTurns {
    most: usize,
    /// Of the addresses that have a turn, or wait for one.
    of: Mutex<FxHashMap<IpAddr, Arc<Semaphore>>>,
}

/// The turn of a request, or its wait for one.
pub(super) struct AddressTurn<'a> {
    turns: &'a AddressTurns,
    source: IpAddr,
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Where a client comes from: all addresses of an IPv6 /64 belong to one.
fn source_of(address: IpAddr) -> IpAddr {
    const NETWORK: u128 = !0 << 64;
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK)),
        address @ IpAddr::V4(_) => address,
    }
}

impl AddressTurns {
    /// Turns for `most` requests of one address at a time.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            of: Mutex::default(),
        }
    }

    /// Waits for a turn, which lasts until it is dropped.
    pub(super) async fn take(&self, address: IpAddr) -> AddressTurn<'_> {
        let source = source_of(address);
        let semaphore = {
            let mut of = self.of.lock();
            let made = || Arc::new(Semaphore::new(self.most));
            of.entry(source).or_insert_with(made).clone()
        };
        let mut turn = AddressTurn {
            turns: self,
            source,
            semaphore: Some(semaphore.clone()),
            permit: None,
        };
        // It is never closed.
        turn.permit = semaphore.acquire_owned().await.ok();
        turn
    }
}

impl Drop for AddressTurn<'_> {
    fn drop(&mut self) {
        self.permit = None;
        let mut of = self.turns.of.lock();
        self.semaphore = None;
        if of
            .get(&self.source)
            .is_some_and(|left| Arc::strong_count(left) == 1)
        {
            of.remove(&self.source);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_waits_for_itself_alone() {
        let turns = AddressTurns::new(2);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let is_free = async |text: &str| {
            let turn = timeout(Duration::from_millis(1), turns.take(address(text))).await;
            turn.is_ok()
        };
        let one = turns.take(address("2001:db8::1")).await;
        let two = turns.take(address("2001:db8::2")).await;
        assert!(!is_free("2001:db8::3").await);
        assert!(is_free("2001:db8:0:1::3").await && is_free("192.0.2.1").await);
        assert_eq!(turns.of.lock().len(), 1);
        drop(one);
        assert!(is_free("2001:db8::3").await);
        drop(two);
        assert!(turns.of.lock().is_empty());
    }
}
