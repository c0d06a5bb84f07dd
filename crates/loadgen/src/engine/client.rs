//! One simulated connection.

use super::socket::ClientSocket;

/// The state of a connection's set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientStage {
    /// Not opened, refused or lost.
    Closed,
    /// Waiting for the TCP connection.
    Opening,
    /// Waiting for CONNACK.
    Greeting,
    /// Messages may be sent.
    Ready,
}

/// The state of a connection.
pub(super) struct SimulatedClient {
    pub(super) socket: Option<ClientSocket>,
    pub(super) stage: ClientStage,
    /// The device whose message is in flight (HTTP), or that the connection belongs to (MQTT).
    pub(super) device: u32,
    /// Messages that are due by the schedule and not sent yet.
    pub(super) due_messages: u32,
    /// Messages sent over all connections of this client.
    pub(super) sent: u64,
    /// Messages sent and not answered yet.
    in_flight: u64,
    /// The times at which the messages in flight were or should have been sent, in microseconds of the load; a ring.
    sent_times: Box<[u64]>,
    /// The beginning of an incomplete reply.
    pub(super) partial_input: Vec<u8>,
    /// Whether it is in the queue of connections to which the loop gives turns.
    pub(super) is_queued: bool,
    /// Whether the server has answered a message on this connection.
    pub(super) is_served: bool,
}

/// A free slot of the ring.
const FREE: u64 = u64::MAX;

impl SimulatedClient {
    /// Creates a connection of a device, with at most `window` messages in flight.
    pub(super) fn new(device: u32, window: usize) -> Self {
        Self {
            socket: None,
            stage: ClientStage::Closed,
            device,
            due_messages: 0,
            sent: 0,
            in_flight: 0,
            sent_times: vec![FREE; window.max(1)].into_boxed_slice(),
            partial_input: Vec::new(),
            is_queued: false,
            is_served: false,
        }
    }

    /// Messages sent and not answered yet.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether a further message may be sent now. If acknowledgements overtake each other, the oldest message blocks
    /// those that would take its slot in the ring.
    pub(super) fn has_room(&self) -> bool {
        self.stage == ClientStage::Ready && !self.has_unwritten() && self.mark(self.sent) == Some(FREE)
    }

    /// Whether the system has not accepted all that was sent: nothing more is sent until it does.
    pub(super) fn has_unwritten(&self) -> bool {
        self.socket.as_ref().is_some_and(ClientSocket::has_unwritten)
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

    fn slot(&self, number: u64) -> usize {
        (number % self.sent_times.len() as u64) as usize
    }

    fn mark(&self, number: u64) -> Option<u64> {
        self.sent_times.get(self.slot(number)).copied()
    }

    /// Records a sent message with its time `mark`, and returns its number on this connection. The ring must have room.
    pub(super) fn note_sent(&mut self, mark: u64) -> u64 {
        let number = self.sent;
        let slot = self.slot(number);
        if let Some(kept) = self.sent_times.get_mut(slot) {
            *kept = mark.min(FREE - 1);
        }
        self.sent += 1;
        self.in_flight += 1;
        number
    }

    /// Records the acknowledgement of an MQTT packet identifier, and returns the time of its message; `None` if no such
    /// message is in flight.
    pub(super) fn note_acknowledged(&mut self, id: u16) -> Option<u64> {
        // The last message sent with this identifier.
        let last = self.sent.checked_sub(1)?;
        let back = (last % IDS + IDS + 1 - u64::from(id)) % IDS;
        let number = last.checked_sub(back)?;
        (id > 0 && back < self.sent_times.len() as u64)
            .then(|| self.take(number))
            .flatten()
    }

    /// Records the reply to the oldest message in flight, for protocols with replies in order.
    pub(super) fn note_answered(&mut self) -> Option<u64> {
        self.take(self.sent.checked_sub(self.in_flight.max(1))?)
    }

    fn take(&mut self, number: u64) -> Option<u64> {
        let slot = self.slot(number);
        let kept = self.sent_times.get_mut(slot).filter(|kept| **kept != FREE)?;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.is_served = true;
        Some(std::mem::replace(kept, FREE))
    }

    /// Closes the connection and clears its state; returns the number of messages that were in flight.
    pub(super) fn close(&mut self) -> u64 {
        self.sent_times.fill(FREE);
        self.socket = None;
        self.stage = ClientStage::Closed;
        self.partial_input = Vec::new();
        self.is_served = false;
        std::mem::take(&mut self.in_flight)
    }
}

/// Number of MQTT packet identifiers: 1 to 65,535.
pub(crate) const IDS: u64 = 65_535;

/// Returns the packet identifier of the message with that number on its connection.
pub(crate) fn packet_id(number: u64) -> u16 {
    (number % IDS) as u16 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_matched_across_the_end_of_the_identifiers() {
        let mut client = SimulatedClient::new(0, 4);
        for number in 0..200_000_u64 {
            assert_eq!(client.note_sent(number * 10), number);
            assert_eq!(client.note_acknowledged(packet_id(number)), Some(number * 10));
        }
        assert_eq!(client.in_flight(), 0);
    }

    #[test]
    fn acknowledgements_may_overtake_each_other() {
        let mut client = SimulatedClient::new(0, 4);
        for mark in [5, 6, 7] {
            client.note_sent(mark);
        }
        assert_eq!(client.note_acknowledged(2), Some(6));
        assert_eq!(client.note_acknowledged(1), Some(5));
        assert_eq!(client.note_acknowledged(3), Some(7));
        assert_eq!(client.note_acknowledged(3), None, "nothing is in flight");
    }

    #[test]
    fn a_message_that_is_overtaken_keeps_its_time_and_its_identifier() {
        let mut client = SimulatedClient::new(0, 2);
        client.stage = ClientStage::Ready;
        client.note_sent(5);
        client.note_sent(6);
        assert!(!client.has_room());
        assert_eq!(client.note_acknowledged(2), Some(6));
        // The next message would take the slot of the first one, which is still in flight.
        assert!(!client.has_room() && client.in_flight() == 1);
        assert_eq!(client.note_acknowledged(1), Some(5));
        assert!(client.has_room());
    }

    #[test]
    fn an_acknowledgement_of_nothing_is_told_apart() {
        let mut client = SimulatedClient::new(0, 4);
        assert_eq!(
            (client.note_acknowledged(1), client.note_answered()),
            (None, None)
        );
        client.note_sent(5);
        for id in [0, 2, 9, u16::MAX] {
            assert_eq!(client.note_acknowledged(id), None, "{id}");
        }
        client.note_sent(6);
        assert_eq!(client.note_acknowledged(1), Some(5));
        assert_eq!(
            client.note_acknowledged(1),
            None,
            "the second answer to one message"
        );
        assert_eq!(client.in_flight(), 1);
    }

    #[test]
    fn what_is_in_flight_when_a_connection_ends_is_told_once() {
        let mut client = SimulatedClient::new(0, 4);
        client.note_sent(5);
        client.note_sent(6);
        assert_eq!((client.close(), client.close()), (2, 0));
        assert_eq!(client.note_acknowledged(2), None, "of a connection before");
        assert_eq!(client.note_sent(7), 2);
        assert_eq!(client.note_answered(), Some(7));
    }
}
