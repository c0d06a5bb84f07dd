//! A PUBLISH that waits with its publisher until its subscribers have room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use fieldline_codec::{Packet, PublishPacket, QoS};
use fieldline_event_loop::ConnectionTurn;

use crate::broker::Broker;
use crate::congestion::MessageRoom;
use crate::connection::BrokerConnection;
use crate::driver::TurnBuffers;

/// How many times as long as it may wait a publisher does not wait again, once it has done so in vain.
const REST_AFTER_VAIN_WAIT: u32 = 10;
/// How many of its messages have to wait in vain for that, where their subscribers are quick.
const VAIN_WAITS: u8 = 3;

/// Whose turn it is that publishes into a crowded queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublisherTurn {
    /// That of one who has not waited.
    New,
    /// That of one who has waited.
    Again,
    /// That of one whose last message had room a moment ago.
    GoesOn,
}

/// The place of a publisher among those that wait for a client, or for one of several.
#[derive(Debug)]
pub(crate) struct PublisherTicket {
    waker: Waker,
    /// Since when its message waits.
    pub(crate) since: Instant,
    is_open: AtomicBool,
}

impl PublisherTicket {
    /// Makes the ticket of a publisher that waits.
    pub(crate) const fn new(waker: Waker, since: Instant) -> Self {
        Self {
            waker,
            since,
            is_open: AtomicBool::new(true),
        }
    }

    /// Whether the publisher still waits, and was not woken.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Wakes the publisher; returns whether it waited.
    pub(crate) fn wake(&self) -> bool {
        let is_open = self.is_open.swap(false, Ordering::Relaxed);
        if is_open {
            self.waker.wake_by_ref();
        }
        is_open
    }
}

/// What a connection knows of its PUBLISH that waits.
#[derive(Debug, Default)]
pub(crate) struct PublisherHold {
    /// Whether there is one at the beginning of the input.
    pub(crate) is_held: bool,
    /// Whether it may have room by now, although its connection does not wait for that yet.
    pub(crate) is_woken: bool,
    /// When it is looked at in any case.
    pub(crate) timer: Option<Instant>,
    /// The last one of the message that waits, or that tries to go on.
    ticket: Option<Arc<PublisherTicket>>,
    /// How many messages one after the other have waited in vain.
    in_vain: u8,
    /// Until when nothing waits, because some have in vain.
    rests_until: Option<Instant>,
}

impl PublisherHold {
    /// Since when the message waits.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.ticket.as_ref().map(|ticket| ticket.since)
    }

    /// Whether nothing waits for a while.
    fn rests(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// Notes that a message has waited in vain: for clients that are slow, or as long as it may.
    fn note_vain_wait(&mut self, now: Instant, patience: Duration, is_slow: bool) {
        self.in_vain += 1;
        if is_slow || self.in_vain >= VAIN_WAITS {
            self.in_vain = 0;
            self.rests_until = Some(now + patience * REST_AFTER_VAIN_WAIT);
        }
    }

    /// The message waits no longer.
    fn release(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.is_open.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for PublisherHold {
    fn drop(&mut self) {
        self.release();
    }
}

impl BrokerConnection {
    /// Whether a packet has to wait until its subscribers have room for it; `size` is that of the input from it on. What
    /// follows waits, too.
    pub(crate) fn is_held(
        &mut self,
        broker: &Broker,
        packet: &Packet<'_>,
        size: usize,
        buffers: &mut TurnBuffers,
        turn: &ConnectionTurn<'_, Self>,
    ) -> bool {
        buffers.has_found = false;
        let Packet::Publish(publish) = packet else {
            return false;
        };
        self.hold.is_held = publish.qos != QoS::AtMostOnce
            && broker.has_congestion()
            && self.has_to_wait(broker, publish, size, buffers, turn);
        if !self.hold.is_held {
            self.hold.release();
            buffers.has_passed |= buffers.has_found;
        }
        self.hold.is_held
    }

    fn has_to_wait(
        &mut self,
        broker: &Broker,
        publish: &PublishPacket<'_>,
        size: usize,
        buffers: &mut TurnBuffers,
        turn: &ConnectionTurn<'_, Self>,
    ) -> bool {
        let topic = self.mqtt.topic(publish);
        let (patience, now) = (broker.options.publisher_wait.0, Instant::now());
        if patience.is_zero() || self.hold.rests(now) || self.refusal_of(broker, topic).is_some() {
            return false;
        }
        broker.find_subscribers(topic, &mut buffers.found);
        buffers.has_found = true;
        let since = self.hold.since();
        let turn_of = match (since, buffers.has_passed) {
            (Some(_), _) => PublisherTurn::Again,
            (None, true) => PublisherTurn::GoesOn,
            (None, false) => PublisherTurn::New,
        };
        let session = &self.open.session;
        let crowded = match broker.room_for(session, &buffers.found, turn_of) {
            MessageRoom::Free => {
                self.hold.in_vain = 0;
                return false;
            }
            MessageRoom::Slow => {
                if since.is_some() {
                    self.hold.note_vain_wait(now, patience, true);
                }
                return false;
            }
            MessageRoom::Crowded(crowded) => crowded,
        };
        let since = since.unwrap_or(now);
        if now.saturating_duration_since(since) >= patience {
            self.hold.note_vain_wait(now, patience, false);
            return false;
        }
        // Two clients that publish to each other must not wait for each other: nobody waits who has something to take. What is
        // held here is not read further, so that it fits what is reserved.
        if turn.readiness.ended || !session.lock().queue.is_empty() || !self.reservation.resize(size) {
            return false;
        }
        if self.hold.ticket.as_ref().is_some_and(|ticket| ticket.is_open()) {
            return true;
        }
        if self.hold.ticket.is_none() {
            broker.stats.held.fetch_add(1, Ordering::Relaxed);
        }
        let ticket = Arc::new(PublisherTicket::new(turn.waker(), since));
        self.hold.ticket = Some(ticket.clone());
        // One that has room by now needs not be waited for.
        crowded
            .into_iter()
            .all(|subscriber| broker.wait_for(subscriber, turn_of, &ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_in_vain_does_not_wait_again_for_a_while() {
        let (now, patience) = (Instant::now(), Duration::from_secs(1));
        let mut hold = PublisherHold::default();
        for _ in 1..VAIN_WAITS {
            hold.note_vain_wait(now, patience, false);
            assert!(!hold.rests(now));
        }
        hold.note_vain_wait(now, patience, false);
        let end = now + patience * REST_AFTER_VAIN_WAIT;
        assert!(hold.rests(now) && hold.rests(end.checked_sub(patience).expect("a time")));
        assert!(!hold.rests(end));
        // Once is enough where the client is slow.
        hold.note_vain_wait(end, patience, true);
        assert!(hold.rests(end));
    }
}
