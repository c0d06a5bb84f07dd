//! What the rest of the platform shares with one connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

use super::CloseReason;
use crate::downlink::{Downlink, Subscriptions};

/// What may wait for one session, bytes; beyond it, the session is closed.
pub(super) const MAX_WAITING: usize = 256 << 10;
/// The part of what is left of the budget that may wait for one session.
const PART_OF_LEFT: usize = 8;
/// Bit of `subscriptions` that says that something waits to be sent.
const HAS_WAITING: u8 = 0x80;
/// Bit of `subscriptions` of a session that is sent one thing and ends.
const ONE_SHOT: u8 = 0x40;
const SUBSCRIPTION_BITS: u8 = Subscriptions::ATTRIBUTES.0 | Subscriptions::RPC.0;

/// Memory that everything that waits for sessions takes together, bytes.
#[derive(Debug)]
pub(super) struct OutboundBudget {
    used: AtomicUsize,
    limit: usize,
}

impl OutboundBudget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            limit,
        })
    }

    /// Takes bytes for one who holds so many already. Nobody may hold more than a part of what is left, so that however
    /// many are slow, there is always something left for those who are not.
    fn take(&self, held: usize, bytes: usize) -> bool {
        let left = self
            .limit
            .saturating_sub(self.used.fetch_add(bytes, Ordering::Relaxed));
        let fits = held + bytes <= left / PART_OF_LEFT;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What the rest of the platform shares with a connection: the wish that it end, when it was last heard, and what is to be
/// sent to the device.
///
/// An idle connection has one of these; what waits is allocated only while something does.
#[derive(Debug, Default)]
pub struct SessionControl {
    close: AtomicU8,
    subscriptions: AtomicU8,
    heard_s: AtomicU32,
    inner: Mutex<OutboundState>,
    /// The session that this one is served by, where its device is behind a gateway.
    gateway_route: Option<Box<GatewayRoute>>,
}

#[derive(Debug)]
struct GatewayRoute {
    gateway: Arc<SessionControl>,
    name: Arc<str>,
}

#[derive(Debug, Default)]
struct OutboundState {
    waker: Option<Waker>,
    waiting: Option<Box<OutboundQueue>>,
}

#[derive(Debug, Default)]
struct OutboundQueue {
    messages: VecDeque<OutboundMessage>,
    /// What it takes of the budget.
    bytes: usize,
    budget: Option<Arc<OutboundBudget>>,
}

impl OutboundQueue {
    fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(budget) = &self.budget {
            budget.give_back(bytes);
        }
    }
}

impl Drop for OutboundQueue {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// Something that waits to be sent.
#[derive(Debug, Clone)]
pub struct OutboundMessage {
    /// Name of the device behind the gateway, where it is not for the session's own device.
    pub to: Option<Arc<str>>,
    /// What it is.
    pub payload: OutboundPayload,
}

/// What an outbound message says.
#[derive(Debug, Clone)]
pub enum OutboundPayload {
    /// Something for the device.
    Downlink(Downlink),
    /// The session of the device behind the gateway is to end.
    Close(CloseReason),
}

impl OutboundMessage {
    fn weight(&self) -> usize {
        let content = match &self.payload {
            OutboundPayload::Downlink(downlink) => downlink.weight(),
            OutboundPayload::Close(_) => 0,
        };
        size_of::<Self>() + content
    }
}

impl SessionControl {
    /// Of a session that is sent one thing, and takes no part in what the device counts as its sessions.
    pub(super) fn one_shot() -> Self {
        Self {
            subscriptions: AtomicU8::new(ONE_SHOT),
            ..Self::default()
        }
    }

    /// Of the session of a device behind a gateway, which is served through the gateway's session.
    pub fn behind(gateway: Arc<SessionControl>, name: Arc<str>) -> Self {
        Self {
            gateway_route: Some(Box::new(GatewayRoute { gateway, name })),
            ..Self::default()
        }
    }

    /// Whether it is one request that waits for something, and no connection.
    pub fn is_one_shot(&self) -> bool {
        self.subscriptions.load(Ordering::Relaxed) & ONE_SHOT != 0
    }

    /// Subscribes the session to more.
    pub fn subscribe(&self, wants: Subscriptions) {
        self.subscriptions.fetch_or(wants.0, Ordering::AcqRel);
    }

    /// Wants this and nothing else, in one step: of what it goes on wanting nothing is missed.
    pub fn set_subscriptions(&self, wants: Subscriptions) {
        let only = |before: u8| Some(before & !SUBSCRIPTION_BITS | wants.0 & SUBSCRIPTION_BITS);
        // It always takes place.
        let _ = self
            .subscriptions
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, only);
    }

    /// Wants something no longer.
    pub fn unsubscribe(&self, wants: Subscriptions) {
        self.subscriptions.fetch_and(!wants.0, Ordering::AcqRel);
    }

    /// Whether it wants this and nothing else.
    #[inline]
    pub fn is_subscribed_only(&self, wants: Subscriptions) -> bool {
        self.subscriptions.load(Ordering::Acquire) & SUBSCRIPTION_BITS == wants.0
    }

    /// Whether it wants all of this.
    pub fn is_subscribed(&self, wants: Subscriptions) -> bool {
        self.subscriptions.load(Ordering::Acquire) & wants.0 == wants.0
    }

    /// Asks the connection to end; the first reason counts.
    pub fn close(&self, reason: CloseReason) {
        let first = self
            .close
            .compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        match &self.gateway_route {
            Some(via) if first => {
                let letter = OutboundMessage {
                    to: Some(via.name.clone()),
                    payload: OutboundPayload::Close(reason),
                };
                via.gateway.enqueue_message(letter, None);
            }
            _ => self.wake(),
        }
    }

    fn wake(&self) {
        let waker = self.inner.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Puts something into the buffer of the session if it wants that. Where there is no room, the session is closed: the
    /// device will ask for what it has missed when it comes back.
    pub(super) fn enqueue(&self, downlink: &Downlink, budget: &Arc<OutboundBudget>) -> bool {
        let wanted = downlink.subscription_bits() & SUBSCRIPTION_BITS;
        let is_answer = matches!(downlink, Downlink::Answer(..));
        let wants = self.subscriptions.load(Ordering::Acquire);
        if self.close_reason().is_some() || !(is_answer || wants & wanted != 0) {
            return false;
        }
        if wants & ONE_SHOT != 0 {
            // Of two who send at the same time only one finds that it is wanted.
            let before = self.subscriptions.fetch_and(!SUBSCRIPTION_BITS, Ordering::AcqRel);
            if before & wanted == 0 {
                return false;
            }
        }
        let letter = |to| OutboundMessage {
            to,
            payload: OutboundPayload::Downlink(downlink.clone()),
        };
        let taken = match &self.gateway_route {
            Some(via) => via
                .gateway
                .enqueue_message(letter(Some(via.name.clone())), Some(budget)),
            None => self.enqueue_message(letter(None), Some(budget)),
        };
        if !taken {
            let full = self.gateway_route.as_ref().map_or(self, |via| &*via.gateway);
            full.close(CloseReason::TooSlow);
        }
        taken
    }

    /// Without a budget there is always room: that is for the few bytes of a closed session.
    fn enqueue_message(&self, letter: OutboundMessage, budget: Option<&Arc<OutboundBudget>>) -> bool {
        let weight = letter.weight();
        let waker = {
            let mut inner = self.inner.lock();
            let in_use = inner.waiting.as_ref().map_or(0, |waiting| waiting.bytes);
            if let Some(budget) = budget
                && (in_use + weight > MAX_WAITING || !budget.take(in_use, weight))
            {
                return false;
            }
            let waiting = inner.waiting.get_or_insert_default();
            if let Some(budget) = budget {
                waiting.budget.get_or_insert_with(|| budget.clone());
                waiting.bytes += weight;
            }
            waiting.messages.push_back(letter);
            self.subscriptions.fetch_or(HAS_WAITING, Ordering::AcqRel);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Whether something waits to be sent.
    #[inline]
    pub fn has_outbound(&self) -> bool {
        self.subscriptions.load(Ordering::Acquire) & HAS_WAITING != 0
    }

    /// What waits to be sent, bytes.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.inner
            .lock()
            .waiting
            .as_ref()
            .map_or(0, |waiting| waiting.bytes)
    }

    /// Takes the oldest of what waits to be sent.
    pub fn take_outbound(&self) -> Option<OutboundMessage> {
        let mut inner = self.inner.lock();
        let waiting = inner.waiting.as_mut()?;
        let letter = waiting.messages.pop_front();
        if let Some(letter) = &letter {
            waiting.give_back(letter.weight());
        }
        if waiting.messages.is_empty() {
            inner.waiting = None;
            self.subscriptions.fetch_and(!HAS_WAITING, Ordering::AcqRel);
        }
        letter
    }

    /// Why the connection should end, if it should.
    pub fn close_reason(&self) -> Option<CloseReason> {
        let code = self.close.load(Ordering::Acquire);
        CloseReason::ALL.into_iter().find(|reason| *reason as u8 == code)
    }

    /// Registers who is woken when the connection is to end or something is to be sent; returns the reason if it is to end
    /// already.
    pub fn poll_close(&self, waker: &Waker) -> Option<CloseReason> {
        {
            let mut inner = self.inner.lock();
            match &mut inner.waker {
                Some(known) => known.clone_from(waker),
                None => inner.waker = Some(waker.clone()),
            }
        }
        self.close_reason()
    }

    /// Notes that the peer was heard, in seconds of whatever clock the transport uses.
    pub fn mark_heard(&self, now_s: u32) {
        self.heard_s.store(now_s, Ordering::Relaxed);
    }

    /// When the peer was last heard.
    pub fn heard_at(&self) -> u32 {
        self.heard_s.load(Ordering::Relaxed)
    }
}
