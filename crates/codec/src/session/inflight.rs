//! Messages of QoS 1 and 2 in flight to the peer (MQTT 5 §4.3, §4.4), and the identifiers they occupy.
//!
//! Entries are in the order of sending. Identifiers are allocated in ascending order, so that they are also sorted,
//! seen from the first entry around the circle: an acknowledged entry is found at the front, or by bisection. The order
//! is lost only when the numbers lap an entry that still waits, until the queue is empty again.

use std::collections::VecDeque;

use crate::version::{PacketId, QoS};

/// The answer expected from the peer next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckStage {
    Puback,
    Pubrec,
    Pubcomp,
}

#[derive(Debug)]
struct InflightEntry<T> {
    id: PacketId,
    stage: AckStage,
    /// Returned with the first answer, after which the message is never retransmitted.
    message: Option<T>,
}

/// A message that was sent on an earlier connection, of which the application knows how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InflightMessage<T> {
    /// Its identifier.
    pub packet_id: PacketId,
    /// At least once or exactly once.
    pub qos: QoS,
    /// What the application keeps about it; `None` for a message of QoS 2 that the peer has received, of which only the
    /// PUBREL is sent again.
    pub message: Option<T>,
}

/// A message or a PUBREL to retransmit after reconnecting.
#[derive(Debug, PartialEq, Eq)]
pub enum Redelivery<'a, T> {
    /// A PUBLISH; encode it with this identifier and flag, and without topic alias.
    Publish {
        /// Its unchanged identifier.
        packet_id: PacketId,
        /// At least once or exactly once.
        qos: QoS,
        /// Whether the peer may already have it.
        dup: bool,
        /// The value that the application passed when it published.
        message: &'a T,
    },
    /// A PUBREL, which the session has already written.
    Pubrel {
        /// The identifier of the released message.
        packet_id: PacketId,
    },
}

/// The effect of a PUBREC or PUBACK.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AckOutcome<T> {
    /// The peer has accepted or refused the message.
    Settled(T),
    /// The message was answered before.
    Repeated,
    /// There is no such message.
    Unknown,
    /// The message waits for a different packet.
    Mismatch,
}

/// The outgoing side of flow control.
#[derive(Debug)]
pub(super) struct InflightQueue<T> {
    entries: VecDeque<InflightEntry<T>>,
    last_id: u16,
    window: u16,
    /// Number of entries at the end that have yet to be retransmitted on this connection.
    waiting: u32,
    /// Whether the identifiers ascend around the circle.
    ordered: bool,
    /// Whether the peer has a session, so that a retransmission may be a duplicate.
    resumed: bool,
}

/// The largest capacity that an empty queue keeps.
const IDLE_CAPACITY: usize = 16;

impl<T> InflightQueue<T> {
    pub(super) const fn new(window: u16) -> Self {
        Self {
            entries: VecDeque::new(),
            last_id: 0,
            window,
            waiting: 0,
            ordered: true,
            resumed: false,
        }
    }

    /// Restores a queue from what the application knows, in the order of sending.
    pub(super) fn restore(messages: impl IntoIterator<Item = InflightMessage<T>>) -> Self {
        let mut queue = Self::new(u16::MAX);
        for InflightMessage {
            packet_id,
            qos,
            message,
        } in messages
        {
            let is_received = message.is_none();
            queue.insert(packet_id, qos, message);
            if is_received && let Some(entry) = queue.entries.back_mut() {
                entry.stage = AckStage::Pubcomp;
            }
            queue.last_id = packet_id.get();
        }
        queue
    }

    /// Forgets a message.
    pub(super) fn forget(&mut self, id: PacketId) -> Option<T> {
        self.remove(self.position(id)?)
    }

    /// Whether a message occupies the identifier.
    pub(super) fn contains(&self, id: PacketId) -> bool {
        self.position(id).is_some()
    }

    pub(super) const fn window(&self) -> u16 {
        self.window
    }

    pub(super) const fn set_window(&mut self, window: u16) {
        self.window = window;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether a new message may be sent: there is room, and no older one waits for retransmission.
    #[inline]
    pub(super) fn can_send(&self) -> bool {
        self.waiting == 0 && self.entries.len() < usize::from(self.window)
    }

    /// Returns the next identifier that neither a message nor the caller occupies.
    #[inline]
    pub(super) fn allocate(&mut self, is_taken: impl Fn(PacketId) -> bool) -> Option<PacketId> {
        for _ in 0..=u16::MAX {
            self.last_id = self.last_id.wrapping_add(1);
            if let Some(id) = PacketId::new(self.last_id)
                && self.position(id).is_none()
                && !is_taken(id)
            {
                return Some(id);
            }
        }
        None
    }

    /// Adds a message that is sent now under an allocated identifier.
    #[inline]
    pub(super) fn push(&mut self, id: PacketId, qos: QoS, message: T) {
        self.insert(id, qos, Some(message));
    }

    #[inline]
    fn insert(&mut self, id: PacketId, qos: QoS, message: Option<T>) {
        if let (Some(first), Some(last)) = (self.entries.front(), self.entries.back()) {
            self.ordered &= offset(first.id, id) > offset(first.id, last.id);
        }
        let stage = if qos == QoS::ExactlyOnce {
            AckStage::Pubrec
        } else {
            AckStage::Puback
        };
        self.entries.push_back(InflightEntry { id, stage, message });
    }

    #[inline]
    fn position(&self, id: PacketId) -> Option<usize> {
        let first = self.entries.front()?.id;
        if first == id {
            return Some(0);
        }
        if self.ordered {
            return self
                .entries
                .binary_search_by_key(&offset(first, id), |entry| offset(first, entry.id))
                .ok();
        }
        self.entries.iter().position(|entry| entry.id == id)
    }

    fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.entries.len().saturating_sub(self.waiting as usize) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        let entry = self.entries.remove(index)?;
        if self.entries.is_empty() {
            self.ordered = true;
            if self.entries.capacity() > IDLE_CAPACITY {
                self.entries = VecDeque::new();
            }
        }
        entry.message
    }

    pub(super) fn on_puback(&mut self, id: PacketId) -> AckOutcome<T> {
        let Some(index) = self.position(id) else {
            return AckOutcome::Unknown;
        };
        if self
            .entries
            .get(index)
            .is_none_or(|entry| entry.stage != AckStage::Puback)
        {
            return AckOutcome::Mismatch;
        }
        self.remove(index)
            .map_or(AckOutcome::Unknown, AckOutcome::Settled)
    }

    /// Processes a PUBREC; one that refuses the message completes it.
    pub(super) fn on_pubrec(&mut self, id: PacketId, refused: bool) -> AckOutcome<T> {
        let Some(index) = self.position(id) else {
            return AckOutcome::Unknown;
        };
        let Some(entry) = self.entries.get_mut(index) else {
            return AckOutcome::Unknown;
        };
        match entry.stage {
            AckStage::Puback => AckOutcome::Mismatch,
            AckStage::Pubcomp => AckOutcome::Repeated,
            AckStage::Pubrec if refused => self
                .remove(index)
                .map_or(AckOutcome::Unknown, AckOutcome::Settled),
            AckStage::Pubrec => {
                entry.stage = AckStage::Pubcomp;
                entry
                    .message
                    .take()
                    .map_or(AckOutcome::Repeated, AckOutcome::Settled)
            }
        }
    }

    /// Processes a PUBCOMP; `false` if the message waits for a different packet.
    pub(super) fn on_pubcomp(&mut self, id: PacketId) -> bool {
        let Some(index) = self.position(id) else {
            return true;
        };
        if self
            .entries
            .get(index)
            .is_some_and(|entry| entry.stage != AckStage::Pubcomp)
        {
            return false;
        }
        self.remove(index);
        true
    }

    /// Schedules all entries for retransmission on a new connection.
    ///
    /// A peer without a session gets the messages as new ones, and entries that wait for PUBCOMP are dropped, because a
    /// PUBREL would mean nothing to it.
    pub(super) fn begin_connection(&mut self, resumed: bool) {
        if !resumed {
            self.entries.retain(|entry| entry.stage != AckStage::Pubcomp);
        }
        self.resumed = resumed;
        self.waiting = self.entries.len() as u32;
    }

    /// Returns whether an entry waits for retransmission that may be sent now.
    pub(super) fn has_redelivery(&self) -> bool {
        let sent = self.entries.len() - self.waiting as usize;
        let next = self.entries.get(sent);
        next.is_some_and(|entry| entry.stage == AckStage::Pubcomp || sent < usize::from(self.window))
    }

    /// Returns the oldest entry that waits for retransmission, unless the window is full.
    pub(super) fn next_redelivery(&mut self) -> Option<Redelivery<'_, T>> {
        if !self.has_redelivery() {
            return None;
        }
        let sent = self.entries.len() - self.waiting as usize;
        let entry = self.entries.get(sent)?;
        self.waiting -= 1;
        let qos = if entry.stage == AckStage::Puback {
            QoS::AtLeastOnce
        } else {
            QoS::ExactlyOnce
        };
        Some(match &entry.message {
            Some(message) => Redelivery::Publish {
                packet_id: entry.id,
                qos,
                dup: self.resumed,
                message,
            },
            None => Redelivery::Pubrel { packet_id: entry.id },
        })
    }
}

/// Returns how far ahead an identifier is on the circle.
#[inline]
const fn offset(from: PacketId, to: PacketId) -> u16 {
    to.get().wrapping_sub(from.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(queue: &mut InflightQueue<u16>, qos: QoS) -> PacketId {
        let id = queue.allocate(|_| false).expect("an identifier is free");
        queue.push(id, qos, id.get());
        id
    }

    #[test]
    fn identifiers_skip_zero_and_a_message_that_waits_forever() {
        let mut queue = InflightQueue::new(u16::MAX);
        let stuck = send(&mut queue, QoS::ExactlyOnce);
        for _ in 0..200_000 {
            let id = send(&mut queue, QoS::AtLeastOnce);
            assert_ne!(id, stuck);
            assert_eq!(queue.on_puback(id), AckOutcome::Settled(id.get()));
        }
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.on_pubrec(stuck, false), AckOutcome::Settled(stuck.get()));
        assert!(queue.on_pubcomp(stuck));
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn acknowledgements_are_found_in_any_order_even_after_the_numbers_wrap() {
        let mut queue = InflightQueue::new(u16::MAX);
        queue.last_id = u16::MAX - 3;
        let ids: Vec<_> = (0..8).map(|_| send(&mut queue, QoS::AtLeastOnce)).collect();
        assert!(queue.ordered);
        for index in [3, 7, 0, 5, 1, 6, 2, 4] {
            assert_eq!(queue.on_puback(ids[index]), AckOutcome::Settled(ids[index].get()));
            assert_eq!(queue.on_puback(ids[index]), AckOutcome::Unknown);
        }
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn no_identifier_is_handed_out_when_all_are_in_use() {
        let mut queue = InflightQueue::new(u16::MAX);
        for _ in 0..u16::MAX {
            send(&mut queue, QoS::AtLeastOnce);
        }
        assert!(!queue.can_send());
        assert_eq!(queue.allocate(|_| false), None);
    }
}
