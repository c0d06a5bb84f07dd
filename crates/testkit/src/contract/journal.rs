//! The promises of the journal port. Every backend's tests call [`all`], or the functions one by one.
//!
//! The suite assumes nothing that Kafka cannot keep: offsets may have gaps, the assignment may come late and in parts, and
//! queues and groups of earlier runs may still exist, so every test uses names of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_core::ports::{
    AppendError, AppendFuture, AppendOrigin, ConsumerEvent, Journal, JournalConsumer, JournalError, Offset,
    Partition, QueueId,
};
use fieldline_model::TenantId;
use fieldline_model::record::{RecordBatch, split};
use uuid::Uuid;

/// No step of the suite takes nearly as long; a journal that never delivers fails instead of hanging.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BYTES: usize = 64 << 10;

/// A journal under test that can be started again.
#[async_trait]
pub trait JournalBackend: Send + Sync {
    /// Opens the journal with what earlier openings have stored. Those were closed or dropped before.
    async fn open(&self) -> Arc<dyn Journal>;

    /// The number of partitions of a queue that was opened with a number of them: this number, unless the journal gives
    /// all queues the same. At least five for all that the suite asks for.
    fn partitions(&self, asked: u16) -> u16 {
        asked
    }
}

/// Runs the whole suite.
pub async fn all(backend: &dyn JournalBackend) {
    let journal = backend.open().await;
    queues_keep_their_number_of_partitions(backend, journal.as_ref()).await;
    acknowledged_records_arrive_once_and_in_order(journal.as_ref()).await;
    empty_append_is_durable_at_once(journal.as_ref()).await;
    members_divide_the_partitions(journal.as_ref()).await;
    groups_do_not_disturb_each_other(journal.as_ref()).await;
    deliveries_keep_to_their_limit(journal.as_ref()).await;
    waiting_consumer_gets_what_comes(journal.as_ref()).await;
    abandoned_wait_loses_nothing(journal.as_ref()).await;
    seeking_moves_the_position(journal.as_ref()).await;
    positions_outside_of_the_log_are_refused(journal.as_ref()).await;
    journal.close().await;
    drop(journal);
    a_pause_concerns_one_partition(backend).await;
    closing_refuses_appends_and_lets_consumers_finish(backend).await;
    what_was_acknowledged_is_there_after_a_restart(backend).await;
    groups_go_on_from_where_they_committed(backend).await;
}

fn fresh(what: &str) -> String {
    format!("contract-{what}-{}", Uuid::new_v4())
}

fn batch(records: &[&[u8]]) -> RecordBatch {
    let mut batch = RecordBatch::new();
    for record in records {
        batch.push(record);
    }
    batch
}

fn open_queue(journal: &dyn Journal, partitions: u16) -> QueueId {
    journal
        .open_queue(&fresh("queue"), partitions)
        .expect("a queue can be opened")
}

const fn at(queue: QueueId, index: u16) -> Partition {
    Partition { queue, index }
}

/// Appends, waiting where the journal is busy.
async fn append(journal: &dyn Journal, partition: Partition, records: &[&[u8]]) -> AppendFuture {
    loop {
        match journal.append(partition, &batch(records), AppendOrigin::Device(TenantId::NULL)) {
            Ok(append) => return append,
            Err(AppendError::Busy) => journal.ready(AppendOrigin::Device(TenantId::NULL)).await,
            Err(error) => panic!("append was refused: {error}"),
        }
    }
}

async fn put(journal: &dyn Journal, partition: Partition, records: &[&[u8]]) {
    append(journal, partition, records)
        .await
        .await
        .expect("the append becomes durable");
}

fn single(journal: &dyn Journal, queue: QueueId, group: &str) -> Box<dyn JournalConsumer> {
    let mut members = journal.subscribe(queue, group, 1).expect("a group can be joined");
    assert_eq!(members.len(), 1, "as many consumers as members");
    members.remove(0)
}

async fn next(consumer: &mut dyn JournalConsumer, max_bytes: usize) -> ConsumerEvent {
    tokio::time::timeout(STEP_TIMEOUT, consumer.next(max_bytes))
        .await
        .expect("something is delivered in time")
        .expect("reading succeeds")
}

/// What a consumer has received.
#[derive(Default)]
struct ConsumedRecords {
    assigned: BTreeMap<Partition, Offset>,
    records: BTreeMap<Partition, Vec<Vec<u8>>>,
    next: BTreeMap<Partition, Offset>,
}

impl ConsumedRecords {
    fn count(&self) -> usize {
        self.records.values().map(Vec::len).sum()
    }

    /// Receives once; false when the journal was closed.
    async fn step(&mut self, consumer: &mut dyn JournalConsumer, max_bytes: usize) -> bool {
        match next(consumer, max_bytes).await {
            ConsumerEvent::Assigned(positions) => self.assigned.extend(positions),
            ConsumerEvent::Revoked(partitions) => {
                for partition in partitions {
                    self.assigned.remove(&partition);
                }
            }
            ConsumerEvent::Records(records) => {
                let partition = records.partition;
                assert!(
                    self.assigned.contains_key(&partition),
                    "assigned before delivered"
                );
                let expected = self.next.insert(partition, records.next);
                assert!(
                    expected.is_none_or(|expected| records.first >= expected),
                    "offsets grow"
                );
                let all: Vec<_> = split(&records.bytes)
                    .map(|record| record.expect("whole records").to_vec())
                    .collect();
                assert!(!all.is_empty() && records.next.0 >= records.first.0 + all.len() as u64);
                self.records.entry(partition).or_default().extend(all);
            }
            ConsumerEvent::Unreadable(partition, error) => {
                panic!("partition {partition} cannot be read: {error}")
            }
            ConsumerEvent::Closed => return false,
        }
        true
    }
}

async fn receive(consumer: &mut dyn JournalConsumer, count: usize) -> ConsumedRecords {
    let mut received = ConsumedRecords::default();
    while received.count() < count {
        assert!(received.step(consumer, MAX_BYTES).await, "closed too early");
    }
    assert_eq!(received.count(), count, "nothing is delivered twice");
    received
}

/// Receives the assignment of so many partitions.
async fn assignment(consumer: &mut dyn JournalConsumer, partitions: usize) -> BTreeMap<Partition, Offset> {
    let mut received = ConsumedRecords::default();
    while received.assigned.len() < partitions {
        assert!(received.step(consumer, MAX_BYTES).await, "closed too early");
        assert_eq!(received.count(), 0, "the assignment comes first");
    }
    received.assigned
}

/// A queue opened again is the same queue, whatever number of partitions is asked for.
pub async fn queues_keep_their_number_of_partitions(backend: &dyn JournalBackend, journal: &dyn Journal) {
    let name = fresh("queue");
    let queue = journal.open_queue(&name, 3).expect("a queue can be opened");
    let other = open_queue(journal, 2);
    assert_ne!(queue, other);
    assert_eq!(journal.open_queue(&name, 7).expect("it exists"), queue);
    let expected = [3, 2].map(|asked| backend.partitions(asked));
    assert_eq!([queue, other].map(|queue| journal.partitions(queue)), expected);
}

/// Many appends in flight, each record seen once, in the order of its partition.
pub async fn acknowledged_records_arrive_once_and_in_order(journal: &dyn Journal) {
    let queue = open_queue(journal, 3);
    let mut appends = Vec::new();
    for number in 0..300_u32 {
        let (one, two) = (number.to_le_bytes(), [number as u8; 3]);
        appends.push(append(journal, at(queue, (number % 3) as u16), &[&one, &two]).await);
    }
    for append in appends {
        assert_eq!(append.await, Ok(()));
    }
    let mut consumer = single(journal, queue, &fresh("group"));
    let received = receive(consumer.as_mut(), 600).await;
    for index in 0..3 {
        let expected: Vec<Vec<u8>> = (0..300_u32)
            .filter(|number| number % 3 == u32::from(index))
            .flat_map(|number| [number.to_le_bytes().to_vec(), vec![number as u8; 3]])
            .collect();
        assert_eq!(received.records[&at(queue, index)], expected);
        assert_eq!(
            received.next[&at(queue, index)],
            journal.end(at(queue, index)),
            "the end is after the last one"
        );
    }
}

/// An append without records is acknowledged, and nobody receives anything.
pub async fn empty_append_is_durable_at_once(journal: &dyn Journal) {
    let queue = open_queue(journal, 1);
    let end = journal.end(at(queue, 0));
    put(journal, at(queue, 0), &[]).await;
    assert_eq!(journal.end(at(queue, 0)), end);
    put(journal, at(queue, 0), &[b"first"]).await;
    let received = receive(single(journal, queue, &fresh("group")).as_mut(), 1).await;
    assert_eq!(received.records[&at(queue, 0)], [b"first"]);
}

/// Each partition belongs to one member, and each member gets the records of its own.
pub async fn members_divide_the_partitions(journal: &dyn Journal) {
    let queue = open_queue(journal, 5);
    let count = journal.partitions(queue);
    for index in 0..count {
        put(journal, at(queue, index), &[&[index as u8]]).await;
    }
    let mut members = journal
        .subscribe(queue, &fresh("group"), 2)
        .expect("a group can be joined");
    assert_eq!(members.len(), 2);
    let reading = members.iter_mut().map(|member| async move {
        let mut received = ConsumedRecords::default();
        while received.count() < 2 || received.count() < received.assigned.len() {
            assert!(received.step(member.as_mut(), MAX_BYTES).await);
        }
        received
    });
    let mut records = BTreeMap::new();
    for reading in reading.collect::<Vec<_>>() {
        let received = reading.await;
        for (partition, found) in received.records {
            assert!(
                records.insert(partition, found).is_none(),
                "{partition} has two owners"
            );
        }
    }
    let expected = (0..count).map(|index| (at(queue, index), vec![vec![index as u8]]));
    assert_eq!(records, expected.collect());
}

/// Two groups each receive everything, and the commits of one do not move the other.
pub async fn groups_do_not_disturb_each_other(journal: &dyn Journal) {
    let queue = open_queue(journal, 1);
    let mut first = single(journal, queue, &fresh("group"));
    put(journal, at(queue, 0), &[b"a", b"b"]).await;
    let received = receive(first.as_mut(), 2).await;
    first
        .commit(at(queue, 0), received.next[&at(queue, 0)])
        .await
        .expect("a commit succeeds");
    let received = receive(single(journal, queue, &fresh("group")).as_mut(), 2).await;
    assert_eq!(received.records[&at(queue, 0)], [b"a", b"b"]);
}

/// A delivery stays within its limit, except that a larger record comes alone.
pub async fn deliveries_keep_to_their_limit(journal: &dyn Journal) {
    let queue = open_queue(journal, 1);
    let sizes = [10, 400, 3000, 20, 30, 5000, 40, 40, 40];
    let records: Vec<Vec<u8>> = sizes.iter().map(|size| vec![*size as u8; *size]).collect();
    let (one, two) = records.split_at(4);
    for part in [one, two] {
        let part: Vec<&[u8]> = part.iter().map(Vec::as_slice).collect();
        put(journal, at(queue, 0), &part).await;
    }
    let mut consumer = single(journal, queue, &fresh("group"));
    let mut found = Vec::new();
    while found.len() < sizes.len() {
        let ConsumerEvent::Records(delivery) = next(consumer.as_mut(), 1000).await else {
            continue;
        };
        let all: Vec<usize> = split(&delivery.bytes)
            .map(|record| record.expect("whole records").len())
            .collect();
        assert!(delivery.bytes.len() <= 1000 || all.len() == 1, "{all:?}");
        found.extend(all);
    }
    assert_eq!(found, sizes);
}

/// A consumer that has read everything wakes up for what is appended then.
pub async fn waiting_consumer_gets_what_comes(journal: &dyn Journal) {
    let queue = open_queue(journal, 2);
    let mut consumer = single(journal, queue, &fresh("group"));
    assignment(consumer.as_mut(), 2).await;
    for round in 0..20_u8 {
        let partition = at(queue, u16::from(round % 2));
        let record = [round];
        let records: [&[u8]; 1] = [&record];
        let (delivery, ()) = tokio::join!(
            next(consumer.as_mut(), MAX_BYTES),
            put(journal, partition, &records)
        );
        let ConsumerEvent::Records(delivery) = delivery else {
            panic!("{delivery:?}")
        };
        assert_eq!(
            (delivery.partition, delivery.bytes.last()),
            (partition, Some(&round))
        );
    }
}

/// A wait that is given up, as `select!` does, takes nothing with it.
pub async fn abandoned_wait_loses_nothing(journal: &dyn Journal) {
    let queue = open_queue(journal, 1);
    let mut consumer = single(journal, queue, &fresh("group"));
    assignment(consumer.as_mut(), 1).await;
    let mut appends = Vec::new();
    for number in 0..50_u8 {
        appends.push(append(journal, at(queue, 0), &[&[number]]).await);
    }
    let mut found: Vec<u8> = Vec::new();
    while found.len() < 50 {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            delivery = consumer.next(15) => {
                if let ConsumerEvent::Records(records) = delivery.expect("reading succeeds") {
                    found.extend(split(&records.bytes).flatten().flatten());
                }
            }
        }
    }
    assert_eq!(found, (0..50).collect::<Vec<u8>>());
    for append in appends {
        assert_eq!(append.await, Ok(()));
    }
}

/// A position can be moved back and forth; the next delivery starts there.
pub async fn seeking_moves_the_position(journal: &dyn Journal) {
    let queue = open_queue(journal, 1);
    let partition = at(queue, 0);
    put(journal, partition, &[b"a", b"b"]).await;
    let middle = journal.end(partition);
    put(journal, partition, &[b"c"]).await;
    let mut consumer = single(journal, queue, &fresh("group"));
    let start = assignment(consumer.as_mut(), 1).await[&partition];
    for (position, expected) in [
        (middle, vec![b"c".to_vec()]),
        (start, vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()]),
    ] {
        consumer.seek(partition, position).expect("the position exists");
        let mut found = Vec::new();
        while found.len() < expected.len() {
            if let ConsumerEvent::Records(records) = next(consumer.as_mut(), MAX_BYTES).await {
                found.extend(split(&records.bytes).flatten().map(<[u8]>::to_vec));
            }
        }
        assert_eq!(found, expected);
    }
    let end = journal.end(partition);
    consumer.seek(partition, end).expect("the end is a position");
    let record: [&[u8]; 1] = [b"d"];
    let (delivery, ()) = tokio::join!(
        next(consumer.as_mut(), MAX_BYTES),
        put(journal, partition, &record)
    );
    assert!(
        matches!(&delivery, ConsumerEvent::Records(records) if records.bytes.ends_with(b"d")),
        "{delivery:?}"
    );
}

/// A pause holds one partition back and no other, and a closed journal does not wait for its end.
pub async fn a_pause_concerns_one_partition(backend: &dyn JournalBackend) {
    let journal = backend.open().await;
    let journal = journal.as_ref();
    let queue = open_queue(journal, 2);
    let mut consumer = single(journal, queue, &fresh("group"));
    assignment(consumer.as_mut(), 2).await;
    consumer.pause(at(queue, 0), Duration::from_secs(3600));
    put(journal, at(queue, 0), &[b"a"]).await;
    for record in [&b"b"[..], b"c"] {
        put(journal, at(queue, 1), &[record]).await;
        let delivery = next(consumer.as_mut(), MAX_BYTES).await;
        assert!(
            matches!(&delivery, ConsumerEvent::Records(records) if records.bytes.ends_with(record)),
            "{delivery:?}"
        );
    }
    consumer.pause(at(queue, 0), Duration::from_millis(1));
    let delivery = next(consumer.as_mut(), MAX_BYTES).await;
    assert!(
        matches!(&delivery, ConsumerEvent::Records(records) if records.bytes.ends_with(b"a")),
        "what was held back comes when the pause ends: {delivery:?}"
    );
    consumer.pause(at(queue, 0), Duration::from_secs(3600));
    put(journal, at(queue, 0), &[b"d"]).await;
    journal.close().await;
    let delivery = next(consumer.as_mut(), MAX_BYTES).await;
    assert!(matches!(delivery, ConsumerEvent::Closed), "{delivery:?}");
}

/// A position that does not exist is refused, not rounded.
pub async fn positions_outside_of_the_log_are_refused(journal: &dyn Journal) {
    let queue = open_queue(journal, 1);
    let partition = at(queue, 0);
    put(journal, partition, &[b"a"]).await;
    let mut consumer = single(journal, queue, &fresh("group"));
    assignment(consumer.as_mut(), 1).await;
    let beyond = Offset(journal.end(partition).0 + 100);
    assert!(matches!(
        consumer.seek(partition, beyond),
        Err(JournalError::OutOfRange { .. })
    ));
    assert!(matches!(
        consumer.commit(partition, beyond).await,
        Err(JournalError::OutOfRange { .. })
    ));
    let delivery = next(consumer.as_mut(), MAX_BYTES).await;
    assert!(
        matches!(&delivery, ConsumerEvent::Records(records) if records.bytes.ends_with(b"a")),
        "the position stays: {delivery:?}"
    );
}

/// A closed journal has written what it took, takes nothing, and tells consumers when they have read everything.
pub async fn closing_refuses_appends_and_lets_consumers_finish(backend: &dyn JournalBackend) {
    let journal = backend.open().await;
    let queue = open_queue(journal.as_ref(), 1);
    let mut consumer = single(journal.as_ref(), queue, &fresh("group"));
    let last = append(journal.as_ref(), at(queue, 0), &[b"last"]).await;
    journal.close().await;
    assert_eq!(last.await, Ok(()), "what was taken is written");
    let refused = journal.append(
        at(queue, 0),
        &batch(&[b"late"]),
        AppendOrigin::Device(TenantId::NULL),
    );
    assert!(matches!(refused, Err(AppendError::Closed)), "{refused:?}");
    assert_eq!(journal.refusal(), Some(AppendError::Closed));
    journal.ready(AppendOrigin::Device(TenantId::NULL)).await;
    let mut received = ConsumedRecords::default();
    while received.step(consumer.as_mut(), MAX_BYTES).await {}
    assert_eq!(received.records[&at(queue, 0)], [b"last"]);
}

/// Records, offsets and queues outlive the process.
pub async fn what_was_acknowledged_is_there_after_a_restart(backend: &dyn JournalBackend) {
    let name = fresh("queue");
    let mut expected = Vec::new();
    let mut end = None;
    for round in 0..4_u8 {
        let journal = backend.open().await;
        assert_eq!(journal.queues().contains(&name), round > 0, "queues are known");
        let queue = journal.open_queue(&name, 2).expect("a queue can be opened");
        assert!(journal.queues().contains(&name));
        assert_eq!(journal.partitions(queue), backend.partitions(2));
        let found = journal.end(at(queue, 1));
        assert_eq!(*end.get_or_insert(found), found, "ends are known");
        put(journal.as_ref(), at(queue, 1), &[&[round], b"x"]).await;
        expected.extend([vec![round], b"x".to_vec()]);
        let mut consumer = single(journal.as_ref(), queue, &fresh("group"));
        let received = receive(consumer.as_mut(), expected.len()).await;
        assert_eq!(received.records[&at(queue, 1)], expected);
        assert!(journal.end(at(queue, 1)) > found);
        end = Some(journal.end(at(queue, 1)));
        // An orderly end every other time.
        if round % 2 == 0 {
            journal.close().await;
        }
    }
}

/// After a restart a group receives what it had not committed, and nothing before.
pub async fn groups_go_on_from_where_they_committed(backend: &dyn JournalBackend) {
    let (name, group) = (fresh("queue"), fresh("group"));
    let mut committed = None;
    for round in 0..3_u8 {
        let journal = backend.open().await;
        let queue = journal.open_queue(&name, 1).expect("a queue can be opened");
        let partition = at(queue, 0);
        put(journal.as_ref(), partition, &[&[round]]).await;
        let middle = journal.end(partition);
        put(journal.as_ref(), partition, &[&[round + 100]]).await;
        let mut consumer = single(journal.as_ref(), queue, &group);
        let mut expected = vec![vec![round], vec![round + 100]];
        if let Some(position) = committed {
            expected.insert(0, vec![round + 99]);
            let mut received = ConsumedRecords::default();
            while received.assigned.is_empty() {
                received.step(consumer.as_mut(), MAX_BYTES).await;
            }
            assert_eq!(received.assigned.get(&partition), Some(&position));
            while received.count() < expected.len() {
                received.step(consumer.as_mut(), MAX_BYTES).await;
            }
            assert_eq!(received.records[&partition], expected);
        } else {
            assert_eq!(receive(consumer.as_mut(), 2).await.records[&partition], expected);
        }
        consumer
            .commit(partition, middle)
            .await
            .expect("a commit succeeds");
        committed = Some(middle);
        drop(consumer);
        journal.close().await;
    }
}
