//! One connection of a publisher, a subscriber or a client that does nothing.

use std::collections::{HashSet, VecDeque};

use fieldline_codec::QoS;

use crate::engine::{ClientSocket, IDS, packet_id};

/// What a client is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientRole {
    /// Publishes; the number counts the publishers of all groups.
    Publisher(u32),
    /// Subscribes.
    Subscriber {
        /// The ledger of what it receives.
        ledger: u32,
        /// Whether its session outlives the connection.
        is_persistent: bool,
    },
    /// Is connected.
    Dummy,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionStage {
    Closed,
    /// TCP is being opened.
    Opening,
    /// CONNECT was sent.
    Greeting,
    /// SUBSCRIBE was sent.
    Subscribing,
    Ready,
}

/// A message that was published and is not acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnacknowledgedMessage {
    /// The number of its packet on this connection, of which [`packet_id`] is the identifier.
    pub(super) packet: u64,
    pub(super) number: u32,
    pub(super) due_us: u64,
}

/// One client.
pub(super) struct PubSubClient {
    pub(super) role: ClientRole,
    pub(super) id: String,
    /// The topic of a publisher, the filter of a subscriber.
    pub(super) topic: String,
    pub(super) has_username: bool,
    pub(super) stage: ConnectionStage,
    pub(super) socket: Option<ClientSocket>,
    /// The beginning of a packet.
    pub(super) partial: Vec<u8>,
    pub(super) in_flight: VecDeque<UnacknowledgedMessage>,
    pub(super) window: usize,
    /// Number of the next message.
    pub(super) next_number: u32,
    next_packet: u64,
    /// Messages that are due.
    pub(super) owed: u32,
    /// Packets of QoS 2 that were received and are not released.
    pub(super) unreleased: HashSet<u16>,
    /// Messages that are still to be sent before the load.
    pub(super) uncounted: u32,
    /// Whether it waits for its next turn to send.
    pub(super) is_queued: bool,
    /// Whether its readiness is waited for.
    pub(super) is_awaited: bool,
    /// Whether its session has its subscription.
    pub(super) has_subscribed: bool,
}

impl PubSubClient {
    pub(super) fn new(role: ClientRole, id: String, topic: String, has_username: bool) -> Self {
        Self {
            role,
            id,
            topic,
            has_username,
            stage: ConnectionStage::Closed,
            socket: None,
            partial: Vec::new(),
            in_flight: VecDeque::new(),
            window: 0,
            next_number: 0,
            next_packet: 0,
            owed: 0,
            unreleased: HashSet::new(),
            uncounted: 0,
            is_queued: false,
            is_awaited: false,
            has_subscribed: false,
        }
    }

    /// Whether another message can be sent now.
    pub(super) fn has_room(&self, qos: QoS) -> bool {
        self.stage == ConnectionStage::Ready
            && !self.has_unwritten()
            && (qos == QoS::AtMostOnce || self.in_flight.len() < self.window)
    }

    /// Whether the system has not accepted all that was written.
    pub(super) fn has_unwritten(&self) -> bool {
        self.socket.as_ref().is_some_and(ClientSocket::has_unwritten)
    }

    /// The number of the next packet that needs an identifier, of which none is in flight.
    pub(super) fn take_packet(&mut self) -> u64 {
        loop {
            let packet = self.next_packet;
            self.next_packet += 1;
            // They come in order, so that one can be in flight only if the oldest is a whole round behind.
            let is_free = match self.in_flight.front() {
                Some(oldest) if oldest.packet + IDS <= packet => self
                    .in_flight
                    .iter()
                    .all(|message| packet_id(message.packet) != packet_id(packet)),
                _ => true,
            };
            if is_free {
                return packet;
            }
        }
    }

    /// Takes the message that is acknowledged; usually it is the oldest.
    pub(super) fn take_acknowledged(&mut self, id: u16) -> Option<UnacknowledgedMessage> {
        let at = self
            .in_flight
            .iter()
            .position(|message| packet_id(message.packet) == id)?;
        self.in_flight.remove(at)
    }

    /// Closes the connection; returns how many messages were not acknowledged.
    pub(super) fn close(&mut self) -> u64 {
        self.stage = ConnectionStage::Closed;
        self.socket = None;
        self.partial = Vec::new();
        let unacknowledged = self.in_flight.len() as u64;
        self.in_flight.clear();
        unacknowledged
    }

    /// Writes what the system accepts, and keeps the rest.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.socket.as_mut().map_or(Ok(()), |socket| socket.send(bytes));
        sent.map_err(|error| error.to_string())
    }

    /// Writes what was kept.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let sent = self.socket.as_mut().map_or(Ok(()), ClientSocket::resume);
        sent.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_that_is_in_flight_is_not_used_again() {
        let mut client = PubSubClient::new(ClientRole::Publisher(0), String::new(), String::new(), true);
        // Three that are never acknowledged.
        for number in 0..3 {
            let packet = client.take_packet();
            client.in_flight.push_back(UnacknowledgedMessage {
                packet,
                number,
                due_us: 0,
            });
        }
        for _ in 0..3 * IDS {
            let packet = client.take_packet();
            assert!(packet_id(packet) > 3);
        }
        assert_eq!(client.take_acknowledged(2).map(|message| message.number), Some(1));
        assert!(client.take_acknowledged(2).is_none());
        assert!((0..IDS).any(|_| packet_id(client.take_packet()) == 2));
    }
}
