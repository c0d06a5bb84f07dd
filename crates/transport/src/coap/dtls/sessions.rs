//! Sessions and handshakes by address, and how many there may be.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rtc_dtls::endpoint::Endpoint;
use tokio::time::Instant;

use super::{DtlsIdentity, HANDSHAKE_BYTES, HANDSHAKE_DATAGRAMS, IDLE, Options};
use crate::coap::counts::BoundedCounts;
use crate::coap::exchanges::CoapPeer;

/// Of all handshakes at a time, one in so many may be of the same IP address.
const HANDSHAKES_PART: usize = 8;

/// One session, or the handshake of one.
pub(super) struct DtlsLink {
    endpoint: Endpoint,
    pub(super) session: u64,
    pub(super) since: Instant,
    pub(super) heard: Instant,
    /// Who it is; `None` while hands are shaken.
    pub(super) identity: Option<Arc<DtlsIdentity>>,
    /// How many datagrams of handshakes it may still send.
    pub(super) allowance: u32,
    /// Bytes that are still taken of it until the handshake is done.
    pub(super) room: usize,
    /// Whether the address has shown that it receives what is sent to it.
    pub(super) is_proven: bool,
    /// What the peer has chosen at random for this handshake, which tells a repetition from another one.
    random: Vec<u8>,
    /// The library has panicked over it: nothing more is to be done with it.
    pub(super) is_broken: bool,
}

impl DtlsLink {
    /// Lets the library work on this session. `None` where it panics, which ends this session and no other.
    pub(super) fn guarded<T>(&mut self, work: impl FnOnce(&mut Endpoint) -> T) -> Option<T> {
        if self.is_broken {
            return None;
        }
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut self.endpoint)));
        self.is_broken = done.is_err();
        done.ok()
    }
}

/// What there is of one address: a session, and one that may take its place, as after a restart of the device. Until the
/// second is there, the first goes on: anybody can send the beginning of a handshake with a false address.
#[derive(Default)]
pub(super) struct AddressLinks {
    pub(super) current: Option<DtlsLink>,
    pub(super) next: Option<DtlsLink>,
}

#[derive(Default)]
pub(super) struct DtlsSessions {
    slots: HashMap<SocketAddr, AddressLinks>,
    /// How many slots there are of an IP address.
    of_address: BoundedCounts<IpAddr>,
    /// When those that are a session were heard last, the most silent first.
    silence: BTreeSet<(Instant, SocketAddr)>,
    /// The addresses of handshakes, the oldest first.
    handshakes: BTreeMap<u64, SocketAddr>,
    handshakes_of: BoundedCounts<IpAddr>,
    /// Sessions that the library has panicked over, and that are there yet.
    broken: Vec<CoapPeer>,
    last: u64,
}

impl DtlsSessions {
    pub(super) fn slot(&mut self, address: SocketAddr) -> Option<&mut AddressLinks> {
        self.slots.get_mut(&address)
    }

    /// The session of a peer.
    pub(super) fn session(&mut self, peer: CoapPeer) -> Option<&mut DtlsLink> {
        let link = self.slots.get_mut(&peer.address)?.current.as_mut()?;
        (link.session == peer.session).then_some(link)
    }

    /// Begins a handshake, which takes the place of another one of the address, and maybe of the oldest one whose address has
    /// proven nothing; sessions stay as they are. Returns whether there is room for it, or it was begun already.
    pub(super) fn begin(
        &mut self,
        (address, random): (SocketAddr, &[u8]),
        options: &Options,
        now: Instant,
        endpoint: impl FnOnce() -> Endpoint,
    ) -> bool {
        match self.slots.get(&address) {
            // Once more, as the answer was lost.
            Some(AddressLinks { next: Some(link), .. }) if link.random == random => return true,
            Some(_) => {}
            None if self.of_address.of(&address.ip()) >= options.max_sessions_per_address => return false,
            None => {}
        }
        let of_address = (options.max_handshakes / HANDSHAKES_PART).max(1);
        self.end_handshake(address);
        let ip = address.ip();
        let has_room = (self.handshakes_of.of(&ip) < of_address || self.end_oldest_unproven(Some(ip)))
            && (self.handshakes.len() < options.max_handshakes || self.end_oldest_unproven(None));
        if !has_room {
            self.tidy(address);
            return false;
        }
        self.last += 1;
        let link = DtlsLink {
            endpoint: endpoint(),
            session: self.last,
            since: now,
            heard: now,
            identity: None,
            allowance: HANDSHAKE_DATAGRAMS,
            room: HANDSHAKE_BYTES,
            is_proven: false,
            random: random.to_vec(),
            is_broken: false,
        };
        if !self.slots.contains_key(&address) {
            self.of_address.try_increment(ip, usize::MAX);
        }
        self.handshakes.insert(link.session, address);
        self.handshakes_of.try_increment(ip, usize::MAX);
        self.slots.entry(address).or_default().next = Some(link);
        true
    }

    /// Addresses of handshakes.
    pub(super) fn shaking(&self) -> Vec<SocketAddr> {
        self.handshakes.values().copied().collect()
    }

    /// Gives up the handshake of an address, if there is one.
    pub(super) fn end_handshake(&mut self, address: SocketAddr) -> Option<DtlsLink> {
        let link = self.slots.get_mut(&address)?.next.take()?;
        self.remove_handshake(link.session, address);
        Some(link)
    }

    fn remove_handshake(&mut self, session: u64, address: SocketAddr) {
        if self.handshakes.remove(&session).is_some() {
            self.handshakes_of.decrement(&address.ip());
        }
    }

    /// Ends the oldest handshake, of this IP address where one is named, whose address has not proven itself. Returns whether
    /// there was one.
    fn end_oldest_unproven(&mut self, of: Option<IpAddr>) -> bool {
        let is_unproven = |address: &&SocketAddr| {
            let next = || self.slots.get(*address).and_then(|slot| slot.next.as_ref());
            of.is_none_or(|ip| ip == address.ip()) && next().is_some_and(|link| !link.is_proven)
        };
        let oldest = self.handshakes.values().find(is_unproven).copied();
        if let Some(address) = oldest {
            self.end_handshake(address);
            self.tidy(address);
        }
        oldest.is_some()
    }

    /// The handshake of an address is done: it is its session. Returns those that end for it, and whether there is room: where
    /// there is none, and no other session was silent for long enough, it is among them.
    pub(super) fn promote(
        &mut self,
        address: SocketAddr,
        most: usize,
        now: Instant,
    ) -> Vec<(SocketAddr, DtlsLink)> {
        let mut ended = Vec::new();
        let Some(link) = self.end_handshake(address) else {
            return ended;
        };
        if let Some(before) = self.take_session(address) {
            ended.push((address, before));
        }
        if self.silence.len() >= most {
            let Some(idle) = self.most_idle(now) else {
                ended.push((address, link));
                return ended;
            };
            if let Some(before) = self.take_session(idle) {
                ended.push((idle, before));
            }
            self.tidy(idle);
        }
        if let Some(slot) = self.slots.get_mut(&address) {
            self.silence.insert((link.heard, address));
            slot.current = Some(link);
        }
        ended
    }

    /// The session of an address was heard, or the handshake of the next one.
    pub(super) fn mark_heard(&mut self, address: SocketAddr, is_next: bool, now: Instant) {
        let Some(slot) = self.slots.get_mut(&address) else {
            return;
        };
        let link = if is_next {
            &mut slot.next
        } else {
            &mut slot.current
        };
        let Some(link) = link else { return };
        let before = std::mem::replace(&mut link.heard, now);
        if !is_next {
            self.silence.remove(&(before, address));
            self.silence.insert((now, address));
        }
    }

    /// Takes the session of an address out.
    pub(super) fn take_session(&mut self, address: SocketAddr) -> Option<DtlsLink> {
        let link = self.slots.get_mut(&address)?.current.take()?;
        self.silence.remove(&(link.heard, address));
        Some(link)
    }

    /// Takes all out.
    pub(super) fn take_all(&mut self) -> Vec<(SocketAddr, DtlsLink)> {
        self.of_address.clear();
        self.handshakes_of.clear();
        self.handshakes.clear();
        self.silence.clear();
        let slots = std::mem::take(&mut self.slots).into_iter();
        slots
            .filter_map(|(address, slot)| Some((address, slot.current?)))
            .collect()
    }

    /// The address whose session was silent the longest, and for long enough to make room for another one.
    fn most_idle(&self, now: Instant) -> Option<SocketAddr> {
        let is_renewed =
            |address: &SocketAddr| self.slots.get(address).is_some_and(|slot| slot.next.is_some());
        // Of those that are passed over there are no more than handshakes.
        let since = now.checked_sub(IDLE)?;
        self.silent_since(since).find(|address| !is_renewed(address))
    }

    /// The addresses of sessions that were silent for so long.
    pub(super) fn silent_for(&self, span: std::time::Duration, now: Instant) -> Vec<SocketAddr> {
        let since = now.checked_sub(span);
        since.map_or_else(Vec::new, |since| self.silent_since(since).collect())
    }

    /// The addresses of sessions that were heard last at a time or before, the most silent first.
    fn silent_since(&self, since: Instant) -> impl Iterator<Item = SocketAddr> {
        let silent = self.silence.iter().take_while(move |(heard, _)| *heard <= since);
        silent.map(|(_, address)| *address)
    }

    /// The library has panicked over a session, which is to end soon.
    pub(super) fn note_broken(&mut self, peer: CoapPeer) {
        self.broken.push(peer);
    }

    /// Takes the sessions out that the library has panicked over.
    pub(super) fn take_broken(&mut self) -> Vec<(SocketAddr, DtlsLink)> {
        let mut taken = Vec::new();
        for peer in std::mem::take(&mut self.broken) {
            if self.session(peer).is_some()
                && let Some(link) = self.take_session(peer.address)
            {
                taken.push((peer.address, link));
                self.tidy(peer.address);
            }
        }
        taken
    }

    /// Forgets an address of which there is nothing.
    pub(super) fn tidy(&mut self, address: SocketAddr) {
        let is_empty = |slot: &AddressLinks| slot.next.is_none() && slot.current.is_none();
        if self.slots.get(&address).is_some_and(is_empty) {
            self.slots.remove(&address);
            self.of_address.decrement(&address.ip());
        }
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.silence.len(), self.handshakes.len())
    }
}
