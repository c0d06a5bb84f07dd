//! Writes what has changed to the store, so that the journal may forget it, and restores it at the start.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fieldline_codec::PacketId;
use fieldline_codec::topic::TopicFilter;
use fieldline_core::ports::{
    BrokerChanges, BrokerTable, JournalConsumer, JournalError, Offset, StoreError, StoreResult,
};
use rustc_hash::FxHashMap;
use tracing::error;

use crate::broker::{Broker, UnstoredChanges};
use crate::log::{
    client_type_code, put_connection, put_subscription, put_will, read_client_type, read_connection,
    read_subscription, read_will,
};
use crate::message::BrokerMessage;
use crate::queue::{MessageQueue, QueueExtent, QueuedMessage, row_key};
use crate::session::{BrokerSession, SessionInner, SessionMember, UnreleasedMessage};
use crate::subscriptions::Subscriber;
use crate::wire::{RowReader, put_bytes};

/// Messages beside those in flight that stay in memory for a client that is connected.
const KEPT_MESSAGES: usize = 1_000;
/// Rows of a page that a queue reads from the store.
const PAGE_MESSAGES: usize = 500;
/// Bytes of a page that a queue reads from the store.
const PAGE_BYTES: usize = 1 << 20;
/// Numbers that a queue leaves out after a crash: more than the retained messages that a client takes within the time
/// between two checkpoints.
const LEFT_OUT_NUMBERS: u64 = 16_384;
/// Bytes of changes from which on they are stored before more are collected.
pub(crate) const CHANGES_BYTES: usize = 16 << 20;
/// Rows deleted at a time.
const DELETED_ROWS: usize = 10_000;
/// Pause after a checkpoint that failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const VERSION: u8 = 1;

/// Why the broker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BrokerStartError {
    /// Its journal cannot be read.
    #[error("cannot read the broker's journal: {0}")]
    Journal(#[from] JournalError),
    /// Its store cannot be read.
    #[error("cannot read the broker's store: {0}")]
    Store(#[from] StoreError),
    /// The system has no threads or files left, or an address is in use.
    #[error("cannot start the broker: {0}")]
    Io(#[from] std::io::Error),
    /// What was stored is damaged, or comes from a newer version.
    #[error("the broker's {0} cannot be read: it is damaged, or a newer version has written it")]
    Unreadable(&'static str),
}

fn session_row(session: &BrokerSession, inner: &SessionInner) -> Vec<u8> {
    let mut row = vec![
        VERSION,
        client_type_code(inner.client_type),
        u8::from(inner.link.is_some()),
    ];
    row.extend_from_slice(&inner.expiry_s.to_le_bytes());
    row.extend_from_slice(&inner.disconnected_ms.to_le_bytes());
    let will_due_ms = match inner.leaving_will {
        Some(_) => Some(inner.disconnected_ms),
        None => inner.will_due_ms,
    };
    row.extend_from_slice(&will_due_ms.unwrap_or(i64::MAX).to_le_bytes());
    put_bytes(session.client_id.as_bytes(), &mut row);
    put_will(inner.will.as_ref().or(inner.leaving_will.as_ref()), &mut row);
    row.extend_from_slice(&(inner.subscriptions.len() as u32).to_le_bytes());
    for (filter, subscription) in &inner.subscriptions {
        put_bytes(filter.as_bytes(), &mut row);
        put_subscription(subscription, &mut row);
    }
    put_connection(inner.connection.as_deref(), &mut row);
    row
}

fn cursor_row(inner: &SessionInner) -> Vec<u8> {
    let extent = inner.queue.extent();
    let mut row = vec![VERSION];
    let numbers = [
        extent.numbers.start,
        extent.numbers.end,
        extent.count,
        extent.sent_until,
        extent.open.len() as u64,
    ];
    for number in numbers.into_iter().chain(extent.open) {
        row.extend_from_slice(&number.to_le_bytes());
    }
    for message in inner.unreleased.iter().filter(|message| message.is_durable) {
        row.extend_from_slice(&message.id.get().to_le_bytes());
    }
    row
}

fn read_cursor(row: &[u8]) -> Option<(MessageQueue, Vec<UnreleasedMessage>)> {
    let mut reader = RowReader(row);
    if reader.u8()? != VERSION {
        return None;
    }
    let (numbers, count, sent_until) = (reader.u64()?..reader.u64()?, reader.u64()?, reader.u64()?);
    let mut open = Vec::new();
    for _ in 0..reader.u64()? {
        open.push(reader.u64()?);
    }
    let mut unreleased = Vec::new();
    while !reader.0.is_empty() {
        unreleased.push(UnreleasedMessage {
            id: PacketId::new(reader.u16()?)?,
            is_durable: true,
        });
    }
    unreleased.sort_unstable_by_key(|message| message.id);
    let extent = QueueExtent {
        numbers,
        count,
        sent_until,
        open,
    };
    Some((MessageQueue::restored(extent), unreleased))
}

/// Repeats a call to the store until it succeeds, or `is_over` says so.
fn repeat(is_over: &dyn Fn() -> bool, call: impl Fn() -> StoreResult<()>) -> Option<()> {
    while let Err(error) = call() {
        error!(%error, "the broker cannot store what has changed, and repeats it");
        if is_over() {
            return None;
        }
        std::thread::sleep(RETRY_DELAY);
    }
    Some(())
}

/// Stored sessions by their numbers, while they are restored.
pub(crate) type RestoredSessions = FxHashMap<u64, Arc<BrokerSession>>;

impl Broker {
    /// Stores what has changed. Waits for the disk; a failure is repeated until it succeeds or `is_over` says so. Returns
    /// the position before which the journal is stored.
    pub(crate) fn checkpoint(&self, is_over: &dyn Fn() -> bool) -> Option<Offset> {
        // Read first: what lies before it is marked in the sessions already.
        let position = self.settled_position();
        self.unstored_bytes.store(0, Ordering::Relaxed);
        let UnstoredChanges {
            sessions,
            removed,
            topics,
        } = std::mem::take(&mut *self.unstored.lock());
        let mut changes = BrokerChanges::default();
        for session in &sessions {
            {
                let mut inner = session.lock();
                inner.is_noted = false;
                if inner.is_removed {
                    continue;
                }
                let key = session.number.to_be_bytes();
                inner.queue.checkpoint(session.number, &mut changes);
                changes.put(BrokerTable::Cursors, key, cursor_row(&inner));
                if std::mem::take(&mut inner.is_changed) {
                    changes.put(BrokerTable::Sessions, key, session_row(session, &inner));
                }
            }
            self.store_if_large(&mut changes, is_over)?;
        }
        for (session, numbers) in removed {
            repeat(is_over, || self.delete_messages(session, &numbers))?;
            let key = session.to_be_bytes();
            changes.delete(BrokerTable::Cursors, key);
            changes.delete(BrokerTable::Sessions, key);
        }
        for topic in topics {
            let message = self.retained.read().get(&topic).cloned();
            match message {
                Some(message) => {
                    let mut row = Vec::with_capacity(message.memory());
                    message.encode(&mut row);
                    changes.put(BrokerTable::Retained, topic.as_bytes(), row);
                }
                None => changes.delete(BrokerTable::Retained, topic.as_bytes()),
            }
            self.store_if_large(&mut changes, is_over)?;
        }
        changes.position = Some(position);
        repeat(is_over, || self.store.apply(&changes))?;
        for session in sessions {
            let keep = if session.is_connected() { KEPT_MESSAGES } else { 0 };
            // A client that has acknowledged all that is on its way has the next of these at once.
            let keep_bytes = self.options.queue_memory.as_usize() / 2;
            session.lock().queue.release(keep, keep_bytes);
        }
        Some(position)
    }

    /// Stores changes that take much memory, and begins new ones.
    fn store_if_large(&self, changes: &mut BrokerChanges, is_over: &dyn Fn() -> bool) -> Option<()> {
        if changes.bytes() >= CHANGES_BYTES {
            repeat(is_over, || self.store.apply(changes))?;
            *changes = BrokerChanges::default();
        }
        Some(())
    }

    /// Deletes the messages of a session that has ended, some at a time: there may be millions.
    fn delete_messages(&self, session: u64, numbers: &Range<u64>) -> StoreResult<()> {
        let until = row_key(session, numbers.end);
        // Behind what is deleted already, whose tombstones would be read again and again.
        let mut from = row_key(session, numbers.start).to_vec();
        loop {
            let mut changes = BrokerChanges::default();
            self.store
                .scan(BrokerTable::Queued, &from..&until, &mut |key, _| {
                    changes.delete(BrokerTable::Queued, key);
                    changes.rows.len() < DELETED_ROWS
                })?;
            let Some((_, last, _)) = changes.rows.last() else {
                return Ok(());
            };
            from.clone_from(last);
            from.push(0);
            self.store.apply(&changes)?;
        }
    }

    /// Reads the messages that a queue needs next from the store. Waits for the disk.
    pub(crate) fn load_page(&self, session: &BrokerSession) -> StoreResult<()> {
        let Some(range) = session.lock().queue.missing() else {
            return Ok(());
        };
        let (from, until) = (
            row_key(session.number, range.start),
            row_key(session.number, range.end),
        );
        let (mut page, mut bytes, mut is_all, mut damaged) = (Vec::new(), 0, true, 0_u64);
        self.store
            .scan(BrokerTable::Queued, &from..&until, &mut |key, row| {
                if page.len() >= PAGE_MESSAGES || bytes >= PAGE_BYTES {
                    is_all = false;
                    return false;
                }
                bytes += row.len();
                let number = key.get(8..).and_then(|number| <[u8; 8]>::try_from(number).ok());
                match number.and_then(|number| QueuedMessage::decode(u64::from_be_bytes(number), row)) {
                    Some(message) => page.push(message),
                    None => damaged += 1,
                }
                true
            })?;
        if damaged > 0 {
            error!(client = %session.client_id, damaged, "stored messages are damaged and left out");
        }
        let mut inner = session.lock();
        inner.queue.add_page(&range, page, is_all);
        inner.signal();
        Ok(())
    }

    /// Restores what was stored, and applies what the journal has after that. Returns the consumer of the journal, with
    /// which positions are committed.
    pub(crate) async fn restore(&self) -> Result<Box<dyn JournalConsumer>, BrokerStartError> {
        let mut sessions = self.read_store()?;
        let consumer = self.replay(&mut sessions).await?;
        let now_ms = self.clock.now_ms();
        let mut by_client = self.sessions.write();
        for session in sessions.into_values() {
            let mut inner = session.lock();
            if inner.is_removed {
                continue;
            }
            if std::mem::take(&mut inner.was_connected) {
                inner.disconnected_ms = now_ms;
                let expiry_s = inner.expiry_s;
                let delay_s = inner.will.as_ref().map(|will| will.delay_s.min(expiry_s));
                inner.will_due_ms = delay_s.map(|delay_s| now_ms + i64::from(delay_s) * 1_000);
                inner.is_changed = true;
            }
            if inner.is_changed {
                inner.queue.leave_out(LEFT_OUT_NUMBERS);
            }
            // What the limit had dropped is in the journal all the same.
            while inner.queue.len() > self.queue_limit(&inner) && inner.queue.drop_oldest() {}
            self.note(&session, &mut inner);
            self.watch_away(&session, &inner);
            by_client.insert(session.client_id.clone(), session.clone());
        }
        drop(by_client);
        Ok(consumer)
    }

    fn read_store(&self) -> Result<RestoredSessions, BrokerStartError> {
        let mut sessions = RestoredSessions::default();
        let mut cursors = FxHashMap::default();
        let mut is_readable = true;
        let all = |table, visit: &mut dyn FnMut(&[u8], &[u8]) -> bool| {
            self.store.scan(table, &[]..&[u8::MAX; 16], visit)
        };
        let number_of = |key: &[u8]| key.try_into().ok().map(u64::from_be_bytes);
        all(BrokerTable::Cursors, &mut |key, row| {
            match number_of(key).zip(read_cursor(row)) {
                Some((number, cursor)) => drop(cursors.insert(number, cursor)),
                None => is_readable = false,
            }
            is_readable
        })?;
        all(BrokerTable::Sessions, &mut |key, row| {
            let session = number_of(key).and_then(|number| {
                let (queue, unreleased) = cursors.remove(&number).unwrap_or_default();
                let session = self.read_session(number, row, queue)?;
                session.lock().unreleased = unreleased;
                Some(session)
            });
            match session {
                Some(session) => drop(sessions.insert(session.number, session)),
                None => is_readable = false,
            }
            is_readable
        })?;
        if !is_readable {
            return Err(BrokerStartError::Unreadable("sessions"));
        }
        let mut retained = self.retained.write();
        // No topic begins with this byte, which UTF-8 does not have.
        let end = [u8::MAX];
        self.store.scan(BrokerTable::Retained, &[]..&end, &mut |_, row| {
            match BrokerMessage::decode(&mut RowReader(row)) {
                Some(message) => retained.put(&Arc::new(message)),
                None => is_readable = false,
            }
            is_readable
        })?;
        if !is_readable {
            return Err(BrokerStartError::Unreadable("retained messages"));
        }
        Ok(sessions)
    }

    fn read_session(&self, number: u64, row: &[u8], queue: MessageQueue) -> Option<Arc<BrokerSession>> {
        let mut reader = RowReader(row);
        if reader.u8()? != VERSION {
            return None;
        }
        let client_type = read_client_type(&mut reader)?;
        let was_connected = reader.u8()? != 0;
        let (expiry_s, disconnected_ms) = (reader.u32()?, reader.i64()?);
        let will_due_ms = Some(reader.i64()?).filter(|at| *at != i64::MAX);
        let session = self.restored_session(number, reader.text()?, expiry_s, queue);
        let mut inner = session.lock();
        inner.client_type = client_type;
        inner.was_connected = was_connected;
        inner.disconnected_ms = disconnected_ms;
        inner.will_due_ms = will_due_ms;
        inner.will = read_will(&mut reader)?;
        for _ in 0..reader.u32()? {
            let filter = reader.text()?;
            let subscription = read_subscription(&mut reader)?;
            inner.subscriptions.insert(filter.into(), subscription);
            self.add_to_trie(&session, filter, subscription);
        }
        inner.connection = read_connection(&mut reader)?;
        drop(inner);
        Some(session)
    }

    pub(crate) fn restored_session(
        &self,
        number: u64,
        client_id: &str,
        expiry_s: u32,
        queue: MessageQueue,
    ) -> Arc<BrokerSession> {
        self.next_session.fetch_max(number + 1, Ordering::Relaxed);
        // One that is stored is kept, whatever it says of its end.
        let session = BrokerSession::new(number, client_id.into(), expiry_s.max(1), queue);
        session.lock().expiry_s = expiry_s;
        session
    }

    pub(crate) fn add_to_trie(
        &self,
        session: &Arc<BrokerSession>,
        filter: &str,
        subscription: crate::session::StoredSubscription,
    ) {
        if let Ok(parsed) = TopicFilter::parse(filter) {
            let subscriber = Subscriber {
                member: SessionMember(session.clone()),
                options: subscription.options,
                id: subscription.id,
            };
            self.subscriptions.write().insert(parsed, subscriber);
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_codec::QoS;
    use tokio::time::timeout;

    use super::*;
    use crate::options::Options;
    use crate::testing::{BrokerFixture, message};

    #[tokio::test]
    async fn many_messages_of_a_session_go_with_it() {
        let count = 2 * DELETED_ROWS as u64 + 1;
        let fixture = BrokerFixture::new(Options {
            queue_messages: count,
            ..Options::default()
        });
        fixture.open_away("c", "a", 1).await;
        let small = message("a", b"1", QoS::AtLeastOnce);
        let (_, mut pending) = fixture.route((0..count).map(|_| small.clone()));
        pending.settle(true);
        let rows = || {
            let mut rows = 0;
            let mut count = |_: &[u8], _: &[u8]| {
                rows += 1;
                true
            };
            let all = (&[][..], &[u8::MAX; 17][..]);
            fixture
                .broker
                .store
                .scan(BrokerTable::Queued, all.0..all.1, &mut count)
                .expect("rows");
            rows
        };
        fixture.checkpoint();
        assert_eq!(rows(), count);
        fixture.open("c", 0);
        fixture.checkpoint();
        assert_eq!(rows(), 0);
    }

    #[tokio::test]
    async fn a_checkpoint_does_not_wait_for_its_time_when_there_is_much_to_store() {
        let fixture = BrokerFixture::new(Options::default());
        fixture.open_away("c", "a", 1).await;
        let is_early = || timeout(Duration::ZERO, fixture.broker.has_much_unstored.notified());
        let large = message("a", &[0; 1 << 20], QoS::AtLeastOnce);
        drop(fixture.route((0..63).map(|_| large.clone())));
        assert!(is_early().await.is_err());
        drop(fixture.route([large.clone()]));
        assert!(is_early().await.is_ok());
        fixture.checkpoint();
        drop(fixture.route((0..63).map(|_| large.clone())));
        assert!(is_early().await.is_err(), "what is stored counts no more");
    }
}
