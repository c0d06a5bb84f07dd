//! Applies the records that a crash has left behind the last checkpoint.

use fieldline_codec::topic::TopicFilter;
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{
    BrokerChanges, BrokerTable, ConsumerEvent, JournalConsumer, Offset, StoreResult,
};
use fieldline_model::record;
use tracing::warn;

use crate::broker::Broker;
use crate::checkpoint::{BrokerStartError, CHANGES_BYTES, RestoredSessions};
use crate::log::{BrokerRecord, PublishedRecord};
use crate::queue::{MessageQueue, QueuedMessage, row_key};
use crate::server::QUEUE;

/// Rows of messages that their clients have received, which are changed at a time at the start.
const REPLAYED_ROWS: usize = 10_000;
/// Bytes of records read at a time at the start.
const REPLAY_BYTES: usize = 4 << 20;

static ORPHAN_GATE: LogGate = LogGate::new(2);

/// What records change of messages that are in the store only.
#[derive(Default)]
struct ReplayedRows {
    changes: BrokerChanges,
    /// Messages that their clients have received: the number of the session, and that of the message.
    received: Vec<(u64, u64)>,
}

impl Broker {
    /// Applies what the journal has behind the last checkpoint. Returns the consumer of the journal.
    pub(crate) async fn replay(
        &self,
        sessions: &mut RestoredSessions,
    ) -> Result<Box<dyn JournalConsumer>, BrokerStartError> {
        let mut members = self.journal.subscribe(self.partition.queue, QUEUE, 1)?;
        let Some(mut consumer) = members.pop() else {
            return Err(BrokerStartError::Unreadable("journal"));
        };
        let end = self.journal.end(self.partition);
        let stored = self.store.position()?;
        let mut next = None;
        while next.is_none_or(|next| next < end) {
            match consumer.next(REPLAY_BYTES).await? {
                ConsumerEvent::Assigned(partitions) => {
                    let committed = partitions.first().map_or(Offset(0), |(_, offset)| *offset);
                    let from = stored.unwrap_or(committed).max(committed).min(end);
                    consumer.seek(self.partition, from)?;
                    next = Some(from);
                }
                ConsumerEvent::Records(records) => {
                    let mut rows = ReplayedRows::default();
                    for bytes in record::split(&records.bytes) {
                        let record = bytes.ok().and_then(BrokerRecord::decode);
                        let record = record.ok_or(BrokerStartError::Unreadable("journal"))?;
                        self.apply_record(record, sessions, &mut rows);
                        if rows.changes.bytes() >= CHANGES_BYTES || rows.received.len() >= REPLAYED_ROWS {
                            self.store_replayed(std::mem::take(&mut rows))?;
                        }
                    }
                    self.store_replayed(rows)?;
                    next = Some(records.next);
                }
                ConsumerEvent::Unreadable(_, error) => return Err(error.into()),
                ConsumerEvent::Revoked(_) => {}
                ConsumerEvent::Closed => return Err(BrokerStartError::Unreadable("journal")),
            }
        }
        Ok(consumer)
    }

    fn apply_record(&self, record: BrokerRecord, sessions: &mut RestoredSessions, rows: &mut ReplayedRows) {
        match record {
            BrokerRecord::Published(record) => self.apply_published(record, sessions, &mut rows.changes),
            BrokerRecord::Received { session, number } => {
                if let Some(session) = sessions.get(&session) {
                    let mut inner = session.lock();
                    inner.is_changed = true;
                    if !inner.queue.replay_received(number) {
                        rows.received.push((session.number, number));
                    }
                }
            }
            BrokerRecord::Released { session, packet_id } => {
                if let Some(session) = sessions.get(&session) {
                    session.lock().remove_unreleased(packet_id);
                }
            }
            BrokerRecord::Unreleased { session, packet_id } => {
                if let Some(session) = sessions.get(&session) {
                    session.lock().add_unreleased(packet_id, true);
                }
            }
            BrokerRecord::Opened(opened) => {
                let session = sessions.entry(opened.session).or_insert_with(|| {
                    let queue = MessageQueue::default();
                    self.restored_session(opened.session, &opened.client_id, opened.expiry_s, queue)
                });
                let mut inner = session.lock();
                inner.client_type = opened.client_type;
                inner.expiry_s = opened.expiry_s;
                inner.will = opened.will;
                inner.connection = opened.connection;
                inner.will_due_ms = None;
                inner.was_connected = true;
                inner.is_changed = true;
            }
            BrokerRecord::Subscribed {
                session,
                filter,
                subscription,
            } => {
                if let Some(session) = sessions.get(&session) {
                    let mut inner = session.lock();
                    inner.is_changed = true;
                    self.add_to_trie(session, &filter, subscription);
                    inner.subscriptions.insert(filter, subscription);
                }
            }
            BrokerRecord::Unsubscribed { session, filter } => {
                if let Some(session) = sessions.get(&session) {
                    let mut inner = session.lock();
                    inner.is_changed = true;
                    inner.subscriptions.remove(&filter);
                    if let Ok(parsed) = TopicFilter::parse(&filter) {
                        self.subscriptions.write().remove(parsed, session.number);
                    }
                }
            }
            BrokerRecord::Closed {
                session,
                at_ms,
                expiry_s,
                will_due_ms,
            } => {
                if let Some(session) = sessions.get(&session) {
                    let mut inner = session.lock();
                    inner.was_connected = false;
                    inner.disconnected_ms = at_ms;
                    inner.expiry_s = expiry_s;
                    inner.will_due_ms = will_due_ms;
                    inner.is_changed = true;
                    if will_due_ms.is_none() {
                        inner.will = None;
                    }
                }
            }
            BrokerRecord::Removed { session } => {
                if let Some(session) = sessions.remove(&session) {
                    let mut by_client = self.sessions.write();
                    // Nothing is appended: the record is this one.
                    self.end_session(&mut by_client, &session, &mut record::RecordBatch::new());
                }
            }
        }
    }

    /// Stores what records have changed of messages that are in the store only.
    fn store_replayed(&self, rows: ReplayedRows) -> StoreResult<()> {
        let apply = |changes: &BrokerChanges| match changes.rows.is_empty() {
            true => Ok(()),
            false => self.store.apply(changes),
        };
        apply(&rows.changes)?;
        let mut changes = BrokerChanges::default();
        for (session, number) in rows.received {
            self.note_received(session, number, &mut changes)?;
            if changes.bytes() >= CHANGES_BYTES {
                apply(&std::mem::take(&mut changes))?;
            }
        }
        apply(&changes)
    }

    fn apply_published(
        &self,
        record: PublishedRecord,
        sessions: &RestoredSessions,
        changes: &mut BrokerChanges,
    ) {
        if record.is_retained {
            self.retain(&record.message);
        }
        if let Some((session, id)) = record.unreleased
            && let Some(session) = sessions.get(&session)
        {
            session.lock().add_unreleased(id, true);
        }
        for (session, number, options) in record.deliveries {
            let Some(session) = sessions.get(&session) else {
                if let Some(suppressed) = ORPHAN_GATE.open() {
                    warn!(
                        session,
                        suppressed, "a message waits for a session that is not there"
                    );
                }
                continue;
            };
            let mut inner = session.lock();
            let may_be_sent = inner.was_connected;
            let in_flight = self.options.max_in_flight;
            let row = inner
                .queue
                .replay(number, &record.message, options, may_be_sent, in_flight);
            if let Some(row) = row {
                changes.put(BrokerTable::Queued, row_key(session.number, number), row);
            }
        }
    }

    /// Notes in the row of a message that its client has received it.
    fn note_received(&self, session: u64, number: u64, changes: &mut BrokerChanges) -> StoreResult<()> {
        let (from, until) = (row_key(session, number), row_key(session, number + 1));
        self.store
            .scan(BrokerTable::Queued, &from..&until, &mut |key, row| {
                if let Some(row) = QueuedMessage::received_row(row) {
                    changes.put(BrokerTable::Queued, key, row);
                }
                false
            })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_codec::QoS;
    use fieldline_model::record::RecordBatch;

    use super::*;
    use crate::log::push;
    use crate::options::Options;
    use crate::testing::{BrokerFixture, message};

    async fn append(fixture: &BrokerFixture, records: impl IntoIterator<Item = BrokerRecord>) {
        let (mut scratch, mut batch) = (Vec::new(), RecordBatch::new());
        for record in records {
            push(&record, &mut scratch, &mut batch);
        }
        fixture.broker.append_durably(&batch).await.expect("durable");
    }

    /// Payloads of what waits for a client, which are read from the store.
    fn waiting(fixture: &BrokerFixture, client_id: &str) -> Vec<String> {
        let session = fixture
            .broker
            .sessions
            .read()
            .get(client_id)
            .cloned()
            .expect("a session");
        while session.lock().queue.missing().is_some() {
            fixture.broker.load_page(&session).expect("a page");
            let mut inner = session.lock();
            while inner.queue.next().is_some() {
                inner.queue.mark_sent();
            }
        }
        let mut inner = session.lock();
        let ids: Vec<_> = inner
            .queue
            .begin_connection()
            .into_iter()
            .map(|one| one.packet_id)
            .collect();
        let text = |id| {
            String::from_utf8_lossy(&inner.queue.in_flight(id).expect("in flight").message.payload)
                .into_owned()
        };
        ids.into_iter().map(text).collect()
    }

    #[tokio::test]
    async fn what_a_client_has_received_is_known_of_messages_in_the_store_only() {
        let fixture = BrokerFixture::new(Options::default()).restarted().await;
        let away = fixture.open_away("c", "a", 2).await;
        for payload in [b"0", b"1", b"2"] {
            fixture.publish("a", payload, QoS::ExactlyOnce);
        }
        fixture.checkpoint();
        let session = away.session.number;
        append(
            &fixture,
            [0, 1].map(|number| BrokerRecord::Received { session, number }),
        )
        .await;

        drop(away);
        let fixture = fixture.restarted().await;
        let session = fixture
            .broker
            .sessions
            .read()
            .get("c")
            .cloned()
            .expect("a session");
        fixture.broker.load_page(&session).expect("a page");
        let in_flight = session.lock().queue.begin_connection();
        let received: Vec<_> = in_flight.iter().map(|one| one.message.is_none()).collect();
        assert_eq!(received, [true, true]);
    }

    #[tokio::test]
    async fn messages_that_were_on_their_way_into_the_journal_are_among_those_of_the_store() {
        let fixture = BrokerFixture::new(Options::default()).restarted().await;
        let away = fixture.open_away("c", "a", 1).await;
        fixture.publish("a", b"0", QoS::AtLeastOnce);
        let (records, mut pending) =
            fixture.route(["1", "2"].map(|text| message("a", text.as_bytes(), QoS::AtLeastOnce)));
        pending.begin_append();
        fixture.publish("a", b"3", QoS::AtLeastOnce);
        fixture.checkpoint();
        append(&fixture, records.into_iter().map(BrokerRecord::Published)).await;

        drop((away, pending));
        let fixture = fixture.restarted().await;
        assert_eq!(waiting(&fixture, "c"), ["0", "1", "2", "3"]);
    }
}
