//! One simulated connection.

use super::link::Link;

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not opened yet, or waiting to be opened again.
    Closed,
    /// Waiting for TCP.
    Opening,
    /// Waiting for CONNACK.
    Greeting,
    /// Messages may be sent.
    Ready,
    /// Refused or lost; not opened again.
    Lost,
}

/// The state of a connection.
pub(super) struct Client {
    pub(super) link: Option<Link>,
    pub(super) stage: Stage,
    /// The device whose message is in flight (HTTP), or that the connection belongs to (MQTT).
    pub(super) device: u32,
    /// Messages of the schedule that wait to be sent.
    pub(super) owed: u32,
    /// Messages sent.
    pub(super) sent: u64,
    /// Messages acknowledged or refused.
    pub(super) answered: u64,
    /// When the messages in flight were sent or should have been, in microseconds of the load; a ring.
    marks: Box<[u64]>,
    /// What the system did not take yet.
    pub(super) out: Vec<u8>,
    /// The beginning of an answer whose rest has not come.
    pub(super) rest: Vec<u8>,
}

impl Client {
    pub(super) fn new(device: u32, window: usize) -> Self {
        Self {
            link: None,
            stage: Stage::Closed,
            device,
            owed: 0,
            sent: 0,
            answered: 0,
            marks: vec![0; window].into_boxed_slice(),
            out: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// Messages sent and not answered.
    pub(super) fn in_flight(&self) -> u64 {
        self.sent - self.answered
    }

    /// Whether a further message may be sent now.
    pub(super) fn has_room(&self) -> bool {
        self.stage == Stage::Ready && self.out.is_empty() && self.in_flight() < self.marks.len() as u64
    }

    /// Notes a message that belongs to the time `mark`, and returns its number on this connection.
    pub(super) fn note_sent(&mut self, mark: u64) -> u64 {
        let number = self.sent;
        let slot = number as usize % self.marks.len().max(1);
        if let Some(kept) = self.marks.get_mut(slot) {
            *kept = mark;
        }
        self.sent += 1;
        number
    }

    /// Notes the answer to the message of an MQTT packet identifier and returns the time it belongs to; none if no such
    /// message is in flight.
    pub(super) fn note_acknowledged(&mut self, id: u16) -> Option<u64> {
        let expected = self.answered % IDS;
        let ahead = (u64::from(id) + IDS - 1 - expected) % IDS;
        // Acknowledgements may overtake each other.
        let number = if ahead <= IDS / 2 {
            self.answered + ahead
        } else {
            (self.answered + ahead).checked_sub(IDS)?
        };
        (number < self.sent && self.answered < self.sent).then(|| self.take_mark(number))
    }

    /// Notes the answer to the oldest message in flight.
    pub(super) fn note_answered(&mut self) -> Option<u64> {
        (self.answered < self.sent).then(|| self.take_mark(self.answered))
    }

    fn take_mark(&mut self, number: u64) -> u64 {
        self.answered += 1;
        let slot = number as usize % self.marks.len().max(1);
        self.marks.get(slot).copied().unwrap_or_default()
    }

    /// Closes the connection and forgets what was on its way; returns the messages that were in flight.
    pub(super) fn close(&mut self, stage: Stage) -> u64 {
        let open = self.in_flight();
        self.answered = self.sent;
        self.link = None;
        self.stage = stage;
        self.out = Vec::new();
        self.rest = Vec::new();
        open
    }
}

/// Packet identifiers that MQTT has: 1 to 65,535.
const IDS: u64 = 65_535;

/// The packet identifier of the message with that number on its connection.
pub(super) fn packet_id(number: u64) -> u16 {
    (number % IDS) as u16 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_matched_across_the_end_of_the_identifiers() {
        let mut client = Client::new(0, 4);
        for number in 0..200_000_u64 {
            assert_eq!(client.note_sent(number * 10), number);
            assert_eq!(client.note_acknowledged(packet_id(number)), Some(number * 10));
        }
        assert_eq!(client.in_flight(), 0);
    }

    #[test]
    fn acknowledgements_may_overtake_each_other() {
        let mut client = Client::new(0, 4);
        for mark in [5, 6, 7] {
            client.note_sent(mark);
        }
        assert_eq!(client.note_acknowledged(2), Some(6));
        assert_eq!(client.note_acknowledged(1), Some(5));
        assert_eq!(client.note_acknowledged(3), Some(7));
        assert_eq!(client.note_acknowledged(3), None, "nothing is in flight");
    }

    #[test]
    fn an_acknowledgement_of_nothing_is_told_apart() {
        let mut client = Client::new(0, 4);
        client.note_sent(5);
        assert_eq!(client.note_acknowledged(9), None);
        assert_eq!(client.in_flight(), 1);
    }
}
