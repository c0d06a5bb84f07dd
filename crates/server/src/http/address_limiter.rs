//! Counts the connections of each peer, so that one peer cannot take them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts the open connections per address; an IPv6 /64, which is what one household gets, counts as one.
pub(super) struct AddressLimiter {
    limit: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One counted connection; dropping it releases the count.
pub(super) struct AddressPermit {
    addresses: Arc<AddressLimiter>,
    network: IpAddr,
}

impl AddressLimiter {
    /// Allows that many connections per address; 0 means any number.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit: if limit == 0 { usize::MAX } else { limit },
            open: Mutex::default(),
        })
    }

    /// Counts a further connection, unless its peer has reached the limit. Loopback is usually a proxy with all clients
    /// behind it: it has no limit, nor has a peer that `is_exempt`.
    pub(super) fn try_acquire(self: &Arc<Self>, peer: IpAddr, is_exempt: bool) -> Option<AddressPermit> {
        let network = network(peer);
        let mut open = self.open.lock();
        let count = open.entry(network).or_default();
        if *count >= self.limit && !network.is_loopback() && !is_exempt {
            return None;
        }
        *count += 1;
        drop(open);
        Some(AddressPermit {
            addresses: self.clone(),
            network,
        })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut open = self.addresses.open.lock();
        if let Some(count) = open.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.network);
            }
        }
    }
}

fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_at_its_limit_gets_in_again_when_one_of_its_connections_has_ended() {
        let addresses = AddressLimiter::new(2);
        let enter = |peer: &str| addresses.try_acquire(peer.parse().unwrap(), false);
        for peers in [
            ["192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"],
            ["2001:db8::1", "2001:db8::2", "2001:db8::3"],
        ] {
            let mut open: Vec<_> = peers.iter().map(|peer| enter(peer)).collect();
            assert_eq!(
                open.iter().map(Option::is_some).collect::<Vec<_>>(),
                [true, true, false]
            );
            assert!(enter("198.51.100.7").is_some(), "others are not concerned");
            drop(open.remove(0));
            assert!(enter(peers[2]).is_some());
        }
        assert!(addresses.open.lock().is_empty());
    }

    #[test]
    fn the_machine_itself_has_no_limit() {
        let addresses = AddressLimiter::new(1);
        let open: Vec<_> = ["127.0.0.1", "127.0.0.1", "::1", "::1"]
            .iter()
            .map(|peer| addresses.try_acquire(peer.parse().unwrap(), false))
            .collect();
        assert!(open.iter().all(Option::is_some));
    }
}
