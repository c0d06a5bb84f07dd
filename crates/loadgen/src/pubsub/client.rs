//! One connection of a publisher, a subscriber or a client that does nothing.

use std::collections::{HashSet, VecDeque};
use std::io::ErrorKind;

use fieldline_codec::QoS;

use crate::engine::ClientSocket;

/// How far identifiers are apart of which one is from the round of numbers before.
const WRAPPED: u16 = u16::MAX / 2;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(super) packet_id: u16,
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
    pub(super) is_blocked: bool,
    /// What the system has not accepted yet.
    pub(super) out: Vec<u8>,
    /// The beginning of a packet.
    pub(super) partial: Vec<u8>,
    pub(super) in_flight: VecDeque<UnacknowledgedMessage>,
    pub(super) window: usize,
    /// Number of the next message.
    pub(super) next_number: u32,
    pub(super) next_packet: u16,
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
            is_blocked: false,
            out: Vec::new(),
            partial: Vec::new(),
            in_flight: VecDeque::new(),
            window: 0,
            next_number: 0,
            next_packet: 1,
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
        self.is_blocked || !self.out.is_empty()
    }

    /// The identifier of the next packet, none that is in flight.
    pub(super) fn take_packet_id(&mut self) -> u16 {
        loop {
            let id = self.next_packet;
            self.next_packet = self.next_packet.checked_add(1).unwrap_or(1);
            // Identifiers come in order: one can be in flight only if the oldest is from the round of numbers before.
            let oldest = self.in_flight.front().map(|message| message.packet_id);
            let is_from_before = oldest.is_some_and(|oldest| id.wrapping_sub(oldest) > WRAPPED);
            let is_oldest = oldest == Some(id);
            if !is_oldest && (!is_from_before || self.in_flight.iter().all(|message| message.packet_id != id))
            {
                return id;
            }
        }
    }

    /// Takes the message that is acknowledged; usually it is the oldest.
    pub(super) fn take_acknowledged(&mut self, packet_id: u16) -> Option<UnacknowledgedMessage> {
        let at = self
            .in_flight
            .iter()
            .position(|message| message.packet_id == packet_id)?;
        self.in_flight.remove(at)
    }

    /// Closes the connection; returns how many messages were not acknowledged.
    pub(super) fn close(&mut self) -> u64 {
        self.stage = ConnectionStage::Closed;
        self.socket = None;
        self.is_blocked = false;
        self.out = Vec::new();
        self.partial = Vec::new();
        let unacknowledged = self.in_flight.len() as u64;
        self.in_flight.clear();
        unacknowledged
    }

    /// Writes what the system accepts, and keeps the rest.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        if !self.out.is_empty() {
            self.out.extend_from_slice(bytes);
            return Ok(());
        }
        let Some(socket) = self.socket.as_mut() else {
            return Ok(());
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            match socket.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.out.extend_from_slice(rest);
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        self.is_blocked = match socket.flush() {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => true,
            Err(error) => return Err(error.to_string()),
        };
        Ok(())
    }

    /// Writes what was kept.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        let bytes = std::mem::take(&mut self.out);
        self.write(&bytes)
    }
}
