//! The messages of QoS 1 and 2 that wait for a client, or for its acknowledgement.
//!
//! Each message has a number in its queue, and its packet identifier follows from the number: a message that is sent
//! again after a crash has the identifier that it had before, so that a client that has received it knows it.
//!
//! Messages that wait long are in the store only. The queue keeps the oldest, which are sent next, and the newest, which
//! are not stored yet; what lies between is read page by page.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use fieldline_codec::session::InflightMessage;
use fieldline_codec::{PacketId, QoS};
use fieldline_core::ports::{BrokerChanges, BrokerTable};

use crate::message::BrokerMessage;
use crate::wire::RowReader;

/// Numbers that packet identifiers can tell apart.
const IDENTIFIERS: u64 = u16::MAX as u64;

const QOS: u8 = 0x03;
const RETAIN: u8 = 0x04;
const RECEIVED: u8 = 0x08;

/// The packet identifier of a message.
pub(crate) fn packet_id_of(number: u64) -> PacketId {
    PacketId::MIN.saturating_add((number % IDENTIFIERS) as u16)
}

/// How a message is to be delivered to one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryOptions {
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    /// Identifiers of the subscriptions that it matches.
    pub(crate) subscription_ids: Box<[u32]>,
}

impl DeliveryOptions {
    /// Appends the options.
    pub(crate) fn encode(&self, flags: u8, out: &mut Vec<u8>) {
        let retain = if self.retain { RETAIN } else { 0 };
        out.push(self.qos as u8 | retain | flags);
        out.push(self.subscription_ids.len().min(usize::from(u8::MAX)) as u8);
        for id in self.subscription_ids.iter().take(usize::from(u8::MAX)) {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }

    /// Reads options, and the flags written with them.
    pub(crate) fn decode(reader: &mut RowReader<'_>) -> Option<(Self, u8)> {
        let flags = reader.u8()?;
        let count = reader.u8()?;
        let ids: Option<Box<[u32]>> = (0..count).map(|_| reader.u32()).collect();
        let options = Self {
            qos: QoS::from_u8(flags & QOS)?,
            retain: flags & RETAIN != 0,
            subscription_ids: ids?,
        };
        Some((options, flags))
    }
}

/// A message in a queue.
#[derive(Debug, Clone)]
pub(crate) struct QueuedMessage {
    pub(crate) number: u64,
    pub(crate) message: Arc<BrokerMessage>,
    pub(crate) options: DeliveryOptions,
    /// Whether it survives a crash, as far as that is promised.
    is_durable: bool,
    /// Whether the client has received it; of QoS 2, until the end of the exchange.
    is_received: bool,
    /// What its row says of `is_received`, if it has one.
    stored: Option<bool>,
}

impl QueuedMessage {
    /// Bytes that it takes in memory, about.
    fn memory(&self) -> usize {
        self.message.memory() + size_of_val(&*self.options.subscription_ids)
    }

    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(16 + self.message.memory());
        self.options
            .encode(if self.is_received { RECEIVED } else { 0 }, &mut row);
        self.message.encode(&mut row);
        row
    }

    /// The row of a message after its client has received it.
    pub(crate) fn received_row(row: &[u8]) -> Option<Vec<u8>> {
        let mut row = row.to_vec();
        *row.first_mut()? |= RECEIVED;
        Some(row)
    }

    /// Reads a message from its row.
    pub(crate) fn decode(number: u64, row: &[u8]) -> Option<Self> {
        let mut reader = RowReader(row);
        let (options, flags) = DeliveryOptions::decode(&mut reader)?;
        Some(Self {
            number,
            options,
            message: Arc::new(BrokerMessage::decode(&mut reader)?),
            is_durable: true,
            is_received: flags & RECEIVED != 0,
            stored: Some(flags & RECEIVED != 0),
        })
    }
}

/// The key of a message's row.
pub(crate) fn row_key(session: u64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&session.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The queue of a client.
#[derive(Debug, Default)]
pub(crate) struct MessageQueue {
    /// The oldest messages; the first `sent` were sent on this connection, or on the last one.
    head: VecDeque<QueuedMessage>,
    sent: usize,
    /// Bytes of those.
    sent_bytes: usize,
    /// Messages with lower numbers may have been sent to the client, on any connection.
    sent_until: u64,
    /// Numbers of the messages that are in the store only.
    stored: Range<u64>,
    /// How many of those numbers have a message.
    stored_count: u64,
    /// The messages behind those; empty where there are none.
    tail: VecDeque<QueuedMessage>,
    /// Bytes of the messages here: of the oldest and the newest, and none that are in the store only.
    bytes: usize,
    /// Number of the next message.
    next: u64,
    /// Rows of messages that are done.
    done: Vec<u64>,
    /// Messages of the store from `sent_until` on to here were dropped.
    dropped_until: u64,
    /// Numbers that were not durable at the last checkpoint before a restart: the journal may have their messages.
    open: Vec<u64>,
}

/// What the row of a queue says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueExtent {
    /// Numbers of its messages.
    pub(crate) numbers: Range<u64>,
    /// How many they are.
    pub(crate) count: u64,
    pub(crate) sent_until: u64,
    /// Numbers among them that are not durable, and have no rows.
    pub(crate) open: Vec<u64>,
}

impl MessageQueue {
    /// A queue as the store has it.
    pub(crate) fn restored(extent: QueueExtent) -> Self {
        Self {
            sent_until: extent.sent_until,
            next: extent.numbers.end,
            stored: extent.numbers,
            stored_count: extent.count,
            open: extent.open,
            ..Self::default()
        }
    }

    /// How many messages wait, those in flight included.
    pub(crate) fn len(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.stored_count
    }

    /// Whether nothing waits, and nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the messages that are here rather than in the store only, and not in flight.
    pub(crate) const fn waiting_bytes(&self) -> usize {
        self.bytes - self.sent_bytes
    }

    /// Bytes of the messages in flight.
    pub(crate) const fn sent_bytes(&self) -> usize {
        self.sent_bytes
    }

    /// Numbers of the messages that are in the store only, and how many those are.
    pub(crate) const fn stored(&self) -> (&Range<u64>, u64) {
        (&self.stored, self.stored_count)
    }

    /// Number of the oldest message that may be there.
    pub(crate) fn first_number(&self) -> u64 {
        let first = self.head.front().map(|message| message.number);
        first.unwrap_or(if self.stored.is_empty() {
            self.tail.front().map_or(self.next, |message| message.number)
        } else {
            self.stored.start
        })
    }

    /// Adds a message. One that is not durable yet waits for [`Self::mark_durable`].
    pub(crate) fn push(
        &mut self,
        message: Arc<BrokerMessage>,
        options: DeliveryOptions,
        is_durable: bool,
    ) -> u64 {
        let number = self.next;
        self.insert(number, message, options, is_durable);
        number
    }

    /// Adds a message of the journal again, unless the store has it already. Returns the row to store if its place is
    /// among messages of the store. If it may have been sent, it was one of the oldest `in_flight`.
    pub(crate) fn replay(
        &mut self,
        number: u64,
        message: &Arc<BrokerMessage>,
        options: DeliveryOptions,
        may_be_sent: bool,
        in_flight: u16,
    ) -> Option<Vec<u8>> {
        if may_be_sent {
            // No more can have been in flight. What lies behind would be recognised by its identifier.
            let most = self.first_number().saturating_add(in_flight.into());
            self.sent_until = self.sent_until.max(most.min(number + 1));
        }
        if number < self.stored.end {
            let place = self.open.iter().position(|open| *open == number)?;
            self.open.swap_remove(place);
            self.stored_count += 1;
            let (message, stored) = (message.clone(), None);
            let queued = QueuedMessage {
                number,
                message,
                options,
                is_durable: true,
                is_received: false,
                stored,
            };
            return Some(queued.encode());
        }
        // Journal and queue need not have the same order among several senders.
        let known = self.newest().binary_search_by_key(&number, |one| one.number);
        if known.is_err() {
            self.insert(number, message.clone(), options, true);
        }
        None
    }

    /// Leaves out numbers after a restart, as those of messages that were in no record may have been used: a client must
    /// not take a new message for one of them.
    pub(crate) fn leave_out(&mut self, count: u64) {
        let is_at_end = self.stored.is_empty();
        self.next += count;
        if is_at_end {
            self.stored = self.next..self.next;
        }
    }

    fn newest(&mut self) -> &mut VecDeque<QueuedMessage> {
        if self.stored.is_empty() {
            &mut self.head
        } else {
            &mut self.tail
        }
    }

    fn insert(
        &mut self,
        number: u64,
        message: Arc<BrokerMessage>,
        options: DeliveryOptions,
        is_durable: bool,
    ) {
        let queued = QueuedMessage {
            number,
            message,
            options,
            is_durable,
            is_received: false,
            stored: None,
        };
        self.next = self.next.max(number + 1);
        self.bytes += queued.memory();
        let newest = self.newest();
        let place = newest.partition_point(|one| one.number < number);
        newest.insert(place, queued);
    }

    /// Notes that a message is durable.
    pub(crate) fn mark_durable(&mut self, number: u64) {
        for part in [&mut self.tail, &mut self.head] {
            if let Ok(index) = part.binary_search_by_key(&number, |one| one.number)
                && let Some(message) = part.get_mut(index)
            {
                message.is_durable = true;
                return;
            }
        }
    }

    /// Takes back a message that the journal has not taken.
    pub(crate) fn withdraw(&mut self, number: u64) {
        if let Ok(index) = self.tail.binary_search_by_key(&number, |one| one.number) {
            let removed = self.tail.remove(index);
            self.forget(removed.as_ref());
        } else if let Ok(index) = self.head.binary_search_by_key(&number, |one| one.number) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) -> Option<QueuedMessage> {
        let removed = self.head.remove(index);
        if index < self.sent {
            self.sent -= 1;
            self.sent_bytes -= removed.as_ref().map_or(0, QueuedMessage::memory);
        }
        self.forget(removed.as_ref());
        removed
    }

    fn forget(&mut self, removed: Option<&QueuedMessage>) {
        let Some(removed) = removed else { return };
        self.bytes -= removed.memory();
        if removed.stored.is_some() {
            self.done.push(removed.number);
        }
    }

    /// The message to send next, if there is one here; [`Self::missing`] says whether the store has it.
    pub(crate) fn next(&self) -> Option<&QueuedMessage> {
        let next = self.head.get(self.sent)?;
        let oldest = self.head.front()?.number;
        // Two messages in flight must not have the same identifier.
        (next.is_durable && next.number - oldest < IDENTIFIERS).then_some(next)
    }

    /// Notes that the next message was sent.
    pub(crate) fn mark_sent(&mut self) {
        if let Some(message) = self.head.get(self.sent) {
            self.sent_until = self.sent_until.max(message.number + 1);
            self.sent += 1;
            self.sent_bytes += message.memory();
        }
    }

    /// Drops the next message, which has expired or cannot be sent.
    pub(crate) fn skip(&mut self) {
        self.remove(self.sent);
    }

    /// Returns a message in flight.
    pub(crate) fn in_flight(&self, id: PacketId) -> Option<&QueuedMessage> {
        self.head.get(self.place_in_flight(id)?)
    }

    fn place_in_flight(&self, id: PacketId) -> Option<usize> {
        let oldest = self.head.front()?.number;
        let ahead = (u64::from(id.get() - 1) + IDENTIFIERS - oldest % IDENTIFIERS) % IDENTIFIERS;
        let place = self
            .head
            .binary_search_by_key(&(oldest + ahead), |one| one.number)
            .ok()?;
        (place < self.sent).then_some(place)
    }

    /// Notes that the client has received a message of QoS 2; returns its number.
    pub(crate) fn mark_received(&mut self, id: PacketId) -> Option<u64> {
        let place = self.place_in_flight(id)?;
        let message = self.head.get_mut(place)?;
        message.is_received = true;
        Some(message.number)
    }

    /// Notes from the journal that the client has received a message.
    pub(crate) fn replay_received(&mut self, number: u64) -> bool {
        self.sent_until = self.sent_until.max(number + 1);
        if self.next <= number {
            // Its message was in no record.
            self.leave_out(number + 1 - self.next);
        }
        for part in [&mut self.head, &mut self.tail] {
            if let Ok(index) = part.binary_search_by_key(&number, |one| one.number)
                && let Some(message) = part.get_mut(index)
            {
                message.is_received = true;
                return true;
            }
        }
        false
    }

    /// Ends the exchange of a message, which the client has accepted or refused.
    pub(crate) fn settle(&mut self, id: PacketId) -> Option<QueuedMessage> {
        self.remove(self.place_in_flight(id)?)
    }

    /// How many of the oldest messages may have been sent, on any connection.
    fn sent_count(&self) -> usize {
        let sent = self
            .head
            .partition_point(|message| message.number < self.sent_until);
        sent.max(self.sent)
    }

    /// Whether messages that an earlier connection has sent are in the store only.
    pub(crate) fn has_sent_in_store(&self) -> bool {
        !self.stored.is_empty() && self.stored.start < self.sent_until
    }

    /// The messages that an earlier connection has sent, for a new one. Those of the store have to be read first.
    pub(crate) fn begin_connection(&mut self) -> Vec<InflightMessage<()>> {
        // Nothing was sent before the message ahead of it with the same identifier was done: what is that old has come back
        // with a crash.
        let done = self.sent_until.saturating_sub(IDENTIFIERS);
        while self.head.front().is_some_and(|message| message.number < done) {
            let oldest = self.head.pop_front();
            self.forget(oldest.as_ref());
        }
        self.sent = self
            .head
            .partition_point(|message| message.number < self.sent_until);
        self.sent_bytes = self.head.iter().take(self.sent).map(QueuedMessage::memory).sum();
        let sent = self.head.iter().take(self.sent);
        sent.map(|message| InflightMessage {
            packet_id: packet_id_of(message.number),
            qos: message.options.qos,
            message: (!message.is_received).then_some(()),
        })
        .collect()
    }

    /// Where the store has to be read before there is a next message; `None` if it has no more.
    pub(crate) fn missing(&self) -> Option<Range<u64>> {
        let is_needed = self.sent == self.head.len() || self.has_sent_in_store();
        (is_needed && !self.stored.is_empty()).then(|| self.stored.clone())
    }

    /// Adds messages that the store had at the beginning of `range`, which [`Self::missing`] has returned. `is_all` says
    /// that it has no more in that range.
    pub(crate) fn add_page(&mut self, range: &Range<u64>, page: Vec<QueuedMessage>, is_all: bool) {
        if self.missing().is_none() || self.stored.start < range.start {
            // What comes before the page was left to the store meanwhile.
            return;
        }
        for message in page {
            // Dropped meanwhile.
            let is_dropped = (self.sent_until..self.dropped_until).contains(&message.number);
            if message.number < self.stored.start {
                continue;
            }
            if is_dropped {
                self.stored.start = message.number + 1;
                continue;
            }
            self.stored.start = message.number + 1;
            self.stored_count = self.stored_count.saturating_sub(1);
            self.bytes += message.memory();
            self.head.push_back(message);
        }
        if is_all {
            // More may have been left to the store meanwhile.
            self.stored.start = self.stored.start.max(range.end);
        }
        self.join();
    }

    /// Where nothing is left in the store only, the newest messages follow the oldest.
    fn join(&mut self) {
        if self.stored.is_empty() {
            self.stored = self.next..self.next;
            self.stored_count = 0;
            self.head.append(&mut self.tail);
        }
    }

    /// Drops the oldest message that is not in flight; returns whether there was one.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let sent = self.sent_count();
        let oldest = self.stored.start.max(self.sent_until).max(self.dropped_until);
        if sent < self.head.len() {
            self.remove(sent);
        } else if oldest < self.stored.end {
            self.done.push(oldest);
            self.stored_count = self.stored_count.saturating_sub(1);
            self.dropped_until = oldest + 1;
            if self.stored.start == oldest {
                self.stored.start += 1;
            }
            self.join();
        } else if let Some(oldest) = self.tail.pop_front() {
            self.forget(Some(&oldest));
        } else {
            return false;
        }
        true
    }

    /// Forgets all messages, and returns the numbers among which there may be rows.
    pub(crate) fn clear(&mut self) -> Range<u64> {
        let first = self
            .first_number()
            .min(self.done.iter().copied().min().unwrap_or(u64::MAX));
        let next = self.next;
        *self = Self {
            next,
            stored: next..next,
            ..Self::default()
        };
        first..next
    }

    /// Adds what has changed since the last checkpoint.
    pub(crate) fn checkpoint(&mut self, session: u64, changes: &mut BrokerChanges) {
        for number in self.done.drain(..) {
            changes.delete(BrokerTable::Queued, row_key(session, number));
        }
        for message in self.head.iter_mut().chain(&mut self.tail) {
            // What is not durable may turn out to be refused, and then its publisher sends it again.
            if !message.is_durable || message.stored == Some(message.is_received) {
                continue;
            }
            let key = row_key(session, message.number);
            changes.put(BrokerTable::Queued, key, message.encode());
            message.stored = Some(message.is_received);
        }
    }

    /// Leaves to the store what it has and what is not sent soon: `keep` messages of `keep_bytes` at most stay beside those
    /// in flight.
    pub(crate) fn release(&mut self, keep: usize, keep_bytes: usize) {
        // A connection that begins has to find what was sent before it.
        let sent = self.sent_count();
        let mut bytes = 0;
        let waiting = self.head.iter().skip(sent).take(keep).take_while(|one| {
            bytes += one.memory();
            bytes <= keep_bytes
        });
        let kept = sent + waiting.count();
        if self.stored.is_empty() {
            let unstored = self.head.iter().skip(kept).position(|one| one.stored.is_none());
            let until = unstored.map_or(self.head.len(), |index| kept + index);
            if until <= kept {
                return;
            }
            self.tail = self.head.split_off(until);
            let released = self.head.split_off(kept);
            let (Some(first), Some(last)) = (released.front(), released.back()) else {
                return;
            };
            self.stored = first.number..last.number + 1;
            self.stored_count = released.len() as u64;
            self.bytes -= released.iter().map(QueuedMessage::memory).sum::<usize>();
            return;
        }
        let stored = self.tail.iter().take_while(|one| one.stored.is_some()).count();
        self.stored_count += stored as u64;
        for released in self.tail.drain(..stored) {
            self.bytes -= released.memory();
            self.stored.end = released.number + 1;
        }
        if self.head.len() > kept && self.head.iter().skip(kept).all(|one| one.stored.is_some()) {
            let released = self.head.split_off(kept);
            self.stored_count += released.len() as u64;
            self.bytes -= released.iter().map(QueuedMessage::memory).sum::<usize>();
            if let Some(first) = released.front() {
                self.stored.start = first.number;
            }
        }
    }

    /// What the row of the queue says. Valid after [`Self::checkpoint`].
    pub(crate) fn extent(&self) -> QueueExtent {
        let open = self.head.iter().chain(&self.tail).filter(|one| !one.is_durable);
        let open: Vec<_> = open.map(|message| message.number).collect();
        QueueExtent {
            numbers: self.first_number()..self.next,
            count: self.len() - open.len() as u64,
            sent_until: self.sent_until,
            open,
        }
    }
}

#[cfg(test)]
mod tests;
