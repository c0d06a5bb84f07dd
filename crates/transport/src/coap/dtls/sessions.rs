//! Sessions and handshakes by address, and their limits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rtc_dtls::endpoint::Endpoint;
use tokio::time::Instant;

use super::{DtlsIdentity, HANDSHAKE_BYTES, HANDSHAKE_DATAGRAMS, IDLE, Options};
use crate::coap::counts::BoundedCounts;
use crate::coap::exchanges::CoapPeer;

/// One in this many handshakes may come from the same IP address.
const HANDSHAKES_PART: usize = 8;

/// A session, or its handshake.
pub(super) struct DtlsLink {
    endpoint: Endpoint,
    pub(super) session: u64,
    pub(super) since: Instant,
    pub(super) heard: Instant,
    /// The identity of the peer; `None` during the handshake.
    pub(super) identity: Option<Arc<DtlsIdentity>>,
    /// Handshake datagrams that the peer may still send.
    pub(super) allowance: u32,
    /// Bytes that the peer may still send until the handshake is done.
    pub(super) room: usize,
    /// Whether the peer has proven that it receives datagrams at its address.
    pub(super) is_proven: bool,
    /// The client random of this handshake, which distinguishes a repetition from a new handshake.
    random: Vec<u8>,
    /// Whether the library has panicked over the session: it must not be used any more.
    pub(super) is_broken: bool,
}

impl DtlsLink {
    /// Runs the library on this session. Returns `None` if it panics, which ends this session and no other.
    pub(super) fn guarded<T>(&mut self, work: impl FnOnce(&mut Endpoint) -> T) -> Option<T> {
        if self.is_broken {
            return None;
        }
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut self.endpoint)));
        self.is_broken = done.is_err();
        done.ok()
    }
}

/// The session of an address, and a handshake that may replace it, for example after a restart of the device. The
/// session stays until the handshake is complete, since anybody can begin a handshake with a forged address.
#[derive(Default)]
pub(super) struct AddressLinks {
    pub(super) current: Option<DtlsLink>,
    pub(super) next: Option<DtlsLink>,
}

#[derive(Default)]
pub(super) struct DtlsSessions {
    slots: HashMap<SocketAddr, AddressLinks>,
    /// The number of slots by IP address.
    of_address: BoundedCounts<IpAddr>,
    /// The last-heard time of each session, the most silent first.
    silence: BTreeSet<(Instant, SocketAddr)>,
    /// The addresses of handshakes, the oldest first.
    handshakes: BTreeMap<u64, SocketAddr>,
    handshakes_of: BoundedCounts<IpAddr>,
    /// Sessions that the library has panicked over, and that are still registered.
    broken: Vec<CoapPeer>,
    last: u64,
}

impl DtlsSessions {
    pub(super) fn slot(&mut self, address: SocketAddr) -> Option<&mut AddressLinks> {
        self.slots.get_mut(&address)
    }

    /// Returns the session of a peer.
    pub(super) fn session(&mut self, peer: CoapPeer) -> Option<&mut DtlsLink> {
        let link = self.slots.get_mut(&peer.address)?.current.as_mut()?;
        (link.session == peer.session).then_some(link)
    }

    /// Begins a handshake. It replaces another one of the address, and if there is no room the oldest one whose address
    /// is unproven; sessions stay. Returns whether there was room, or the same handshake had begun already.
    pub(super) fn begin(
        &mut self,
        (address, random): (SocketAddr, &[u8]),
        options: &Options,
        now: Instant,
        endpoint: impl FnOnce() -> Endpoint,
    ) -> bool {
        match self.slots.get(&address) {
            // A repetition, because the answer was lost.
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

    /// The addresses of handshakes.
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

    /// Ends the oldest handshake whose address is unproven, of one IP address if `of` names it. Returns whether there
    /// was one.
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

    /// Turns the completed handshake of an address into its session. Returns the sessions that end for it; if there is
    /// no room and no other session was silent for long enough, the new one is among them.
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

    /// Marks the session of an address, or its next handshake, as heard.
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

    /// Removes the session of an address and returns it.
    pub(super) fn take_session(&mut self, address: SocketAddr) -> Option<DtlsLink> {
        let link = self.slots.get_mut(&address)?.current.take()?;
        self.silence.remove(&(link.heard, address));
        Some(link)
    }

    /// Removes all sessions and handshakes, and returns the sessions.
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

    /// The address of the longest silent session, if it was silent for long enough to be evicted.
    fn most_idle(&self, now: Instant) -> Option<SocketAddr> {
        let is_renewed =
            |address: &SocketAddr| self.slots.get(address).is_some_and(|slot| slot.next.is_some());
        // Skips at most as many addresses as there are handshakes.
        let since = now.checked_sub(IDLE)?;
        self.silent_since(since).find(|address| !is_renewed(address))
    }

    /// The addresses of sessions that were silent for at least `span`.
    pub(super) fn silent_for(&self, span: std::time::Duration, now: Instant) -> Vec<SocketAddr> {
        let since = now.checked_sub(span);
        since.map_or_else(Vec::new, |since| self.silent_since(since).collect())
    }

    /// The addresses of sessions last heard at `since` or before, the most silent first.
    fn silent_since(&self, since: Instant) -> impl Iterator<Item = SocketAddr> {
        let silent = self.silence.iter().take_while(move |(heard, _)| *heard <= since);
        silent.map(|(_, address)| *address)
    }

    /// Registers a session that the library has panicked over, to be ended soon.
    pub(super) fn note_broken(&mut self, peer: CoapPeer) {
        self.broken.push(peer);
    }

    /// Removes the sessions that the library has panicked over, and returns them.
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

    /// Drops the slot of an address if it is empty.
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
