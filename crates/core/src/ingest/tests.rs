//! Tests of workers with a journal and a store in memory.

mod deaths;
mod fakes;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::record::RecordBatch;
use fieldline_model::{DeviceId, EntityKey, TenantId};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::fakes::{DeafListener, FakeJournal, FakeStore, LARGEST_APPEND, record};
use super::processor::{DeliveredBatch, DirectProcessor, EffectWriter, RecordProcessor};
use super::service::{ActivityListener, IngestShared, IngestShutdown};
use super::worker::IngestWorker;
use super::{CrashHandling, IngestService, IngestStores, Options, PUSH_TIMEOUT, QueueProducer};
use crate::ports::{AppendError, Journal, Offset, Partition, QueueId, StoreEffects, StoreErrorKind};

const FIRST: Partition = Partition {
    queue: QueueId(0),
    index: 0,
};
const SECOND: Partition = Partition {
    queue: QueueId(0),
    index: 1,
};

fn uplink(journal: &Arc<FakeJournal>) -> QueueProducer {
    QueueProducer::open(journal.clone(), 2).unwrap()
}

fn stores(store: &Arc<FakeStore>, activity: impl ActivityListener + 'static) -> IngestStores {
    IngestStores {
        store: store.clone(),
        activity: Arc::new(activity),
        processors: DirectProcessor::processors(),
    }
}

/// Runs one worker until it has read everything that is not paused.
async fn run(journal: &Arc<FakeJournal>, store: &Arc<FakeStore>) {
    run_with(journal, store, Box::new(DirectProcessor)).await;
}

async fn run_with(journal: &Arc<FakeJournal>, store: &Arc<FakeStore>, processor: Box<dyn RecordProcessor>) {
    worker(&uplink(journal), store, processor).run(1 << 20).await;
}

/// Creates a worker of all partitions of a queue.
fn worker(
    uplink: &QueueProducer,
    store: &Arc<FakeStore>,
    processor: Box<dyn RecordProcessor>,
) -> IngestWorker {
    let shared = Arc::new(IngestShared::new(
        uplink,
        store.clone(),
        Arc::new(DeafListener),
        CrashHandling::default(),
    ));
    let consumer = uplink
        .journal()
        .subscribe(uplink.queue(), "test", 1)
        .unwrap()
        .remove(0);
    IngestWorker::new(shared, consumer, processor)
}

#[tokio::test(start_paused = true)]
async fn a_message_of_the_platform_waits_for_room_but_not_for_ever() {
    let journal = FakeJournal::holding(&[]);
    let uplink = uplink(&journal);
    let subject = EntityKey::device(TenantId::new(), DeviceId::new());
    let mut batch = RecordBatch::new();
    batch.push(b"message");
    journal.set_busy(true);
    let begun = Instant::now();
    let refused = uplink.push(begun + PUSH_TIMEOUT, subject, &batch).await;
    assert_eq!(refused.err(), Some(AppendError::Busy));
    assert!(begun.elapsed() >= PUSH_TIMEOUT && begun.elapsed() < 2 * PUSH_TIMEOUT);

    let deadline = Instant::now() + PUSH_TIMEOUT;
    let (pushed, ()) = tokio::join!(uplink.push_durably(deadline, subject, &batch), async {
        tokio::time::sleep(PUSH_TIMEOUT / 2).await;
        journal.set_busy(false);
    });
    assert_eq!(pushed, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn large_records_of_a_tenant_wait_at_their_devices_until_some_are_stored() {
    let journal = FakeJournal::holding(&[]);
    journal.set_largest_append(8 << 20);
    let uplink = uplink(&journal);
    let [subject, other] = [(); 2].map(|()| EntityKey::device(TenantId::new(), DeviceId::new()));
    let batch_of = |bytes: usize| {
        let mut batch = RecordBatch::new();
        let mut telemetry = batch.begin_telemetry(subject, 1, 0);
        telemetry.begin_row(1);
        pack("k", KvValueRef::Text(&"x".repeat(bytes)), telemetry.buffer());
        telemetry.count_point();
        telemetry.finish();
        batch
    };
    let (large, small) = (batch_of(4 << 20), batch_of(10));
    let taken = (0..16).take_while(|_| uplink.try_append(subject, &large).is_ok());
    assert!((2..16).contains(&taken.count()));
    assert_eq!(uplink.try_append(subject, &large).err(), Some(AppendError::Busy));
    assert!(uplink.try_append(subject, &small).is_ok());
    assert!(uplink.try_append(other, &large).is_ok());

    let worker = worker(&uplink, &FakeStore::default_shared(), Box::new(DirectProcessor));
    journal.close().await;
    let begun = Instant::now();
    let (appended, ()) = tokio::join!(uplink.append(subject, &large), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        worker.run(1 << 26).await;
    });
    assert_eq!(
        (appended.is_ok(), begun.elapsed()),
        (true, Duration::from_secs(1))
    );
}

/// Waits until a condition holds.
async fn eventually(holds: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "it does not come to hold");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_log_that_loses_records_while_it_is_read_costs_no_others() {
    let journal = FakeJournal::holding(&[(FIRST, vec![record(1), record(2)]), (SECOND, vec![record(3)])]);
    let store = FakeStore::default_shared();
    let service = IngestService::start(
        &uplink(&journal),
        stores(&store, DeafListener),
        &Options::default(),
    )
    .await
    .unwrap();
    let replayed = service.has_replayed();
    eventually(&replayed).await;
    assert_eq!((store.rows(FIRST), store.rows(SECOND)), (vec![1, 2], vec![3]));

    // One has lost its end, and begins anew; of the other one somebody has removed what nobody had read.
    journal.lose(FIRST, 0, vec![]);
    eventually(|| store.rewinds() == [(FIRST, Offset(0))]).await;
    journal.put(FIRST, record(4));
    eventually(|| store.rows(FIRST) == [1, 2, 4]).await;
    journal.lose(SECOND, 2, vec![record(3), record(5), record(6)]);
    eventually(|| store.rows(SECOND) == [3, 6]).await;
    assert_eq!(store.rewinds(), [(FIRST, Offset(0))]);
    assert_eq!(journal.paused(), []);
    journal.close().await;
    service.stop(Duration::from_secs(60));
}

#[tokio::test]
async fn a_journal_that_lost_its_end_does_not_cost_new_records() {
    let journal = FakeJournal::holding(&[(FIRST, vec![record(1), record(2)]), (SECOND, vec![record(3)])]);
    let store = FakeStore::standing_at(&[(FIRST, 10), (SECOND, 1)]);
    let service = IngestService::start_after(
        CrashHandling::default(),
        &uplink(&journal),
        stores(&store, DeafListener),
        &Options::default(),
    )
    .await
    .unwrap();
    service.begin();
    assert_eq!(store.rewinds(), [(FIRST, Offset(2))], "done when it has started");
    journal.put(FIRST, record(4));
    journal.close().await;
    let failure = service.failure();
    service.stop(Duration::from_secs(60));
    assert_eq!(
        store.rows(FIRST),
        [4],
        "a new record at a position that was used before"
    );
    assert_eq!(
        store.rows(SECOND),
        [0; 0],
        "a store that is not ahead keeps its position"
    );
    assert_eq!(failure(), None);
}

#[tokio::test]
async fn a_store_without_a_position_gets_all_that_the_journal_has() {
    let records = vec![record(1), record(2), record(3)];
    let journal = FakeJournal::closed_with(&[(FIRST, records.clone()), (SECOND, records)]);
    // Its group has consumed them: the store was set back to a copy from before.
    journal.consume(FIRST, 3, 0);
    journal.consume(SECOND, 3, 1);
    let store = FakeStore::default_shared();
    run(&journal, &store).await;
    assert_eq!(store.rows(FIRST), [1, 2, 3]);
    assert_eq!(store.rows(SECOND), [2, 3], "what is left of the log");
}

#[tokio::test]
async fn a_record_that_is_refused_does_not_hold_up_the_others() {
    let records = vec![record(1), record(2), record(3)];
    let journal = FakeJournal::closed_with(&[(FIRST, records)]);
    let store = FakeStore::refusing(2, StoreErrorKind::Invalid);
    run(&journal, &store).await;
    assert_eq!(store.rows(FIRST), [1, 3]);
    assert_eq!(store.position(FIRST), Some(Offset(3)));

    let journal = FakeJournal::closed_with(&[(FIRST, vec![record(1), record(2)])]);
    let store = FakeStore::refusing(2, StoreErrorKind::Invalid);
    run(&journal, &store).await;
    assert_eq!(
        store.position(FIRST),
        Some(Offset(2)),
        "the position passes a refused last record"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_gets_the_same_records_again_in_order() {
    let journal = FakeJournal::closed_with(&[(FIRST, vec![record(1), record(2)]), (SECOND, vec![record(3)])]);
    let store = FakeStore::failing(&[
        StoreErrorKind::Unavailable,
        StoreErrorKind::DiskFull,
        StoreErrorKind::Corrupt,
    ]);
    run(&journal, &store).await;
    assert_eq!(store.rows(FIRST), [1, 2]);
    assert_eq!(store.rows(SECOND), [3]);
    assert_eq!(store.attempts(), 5);
}

#[tokio::test]
async fn ingest_stands_still_before_a_record_of_another_version() {
    let mut foreign = record(2);
    foreign[0] = u8::MAX;
    let records = vec![record(1), foreign, record(3)];
    let journal = FakeJournal::closed_with(&[(FIRST, records), (SECOND, vec![record(4)])]);
    let store = FakeStore::default_shared();
    run(&journal, &store).await;
    assert_eq!(store.rows(FIRST), [1], "what comes before is stored");
    assert_eq!(store.position(FIRST), Some(Offset(1)));
    assert_eq!(store.rows(SECOND), [4], "others go on");
    assert_eq!(journal.paused(), [(FIRST, Duration::from_millis(500))]);

    journal.put_at(FIRST, 1, record(2));
    run(&journal, &store).await;
    assert_eq!(
        store.rows(FIRST),
        [1, 2, 3],
        "a version that understands the record goes on with it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_cannot_be_read_pauses_alone() {
    let journal = FakeJournal::closed_with(&[(FIRST, vec![record(1)]), (SECOND, vec![record(2)])]);
    journal.damage(FIRST);
    let store = FakeStore::default_shared();
    run(&journal, &store).await;
    assert_eq!(store.rows(SECOND), [2]);
    assert_eq!(journal.paused(), [(FIRST, Duration::from_millis(500))]);
}

/// Always has other work besides records, and adds a record whenever it processes some.
struct Pressed {
    journal: Arc<FakeJournal>,
    left: usize,
    done: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait(?Send)]
impl RecordProcessor for Pressed {
    async fn assign_partition(&mut self, _: Partition, _: &EffectWriter) -> Result<(), IngestShutdown> {
        Ok(())
    }

    fn revoke_partition(&mut self, _: Partition) {}

    async fn process(
        &mut self,
        delivered: DeliveredBatch<'_>,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        self.done.lock().push("records");
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.journal.put(FIRST, record(1));
            }
            None => self.journal.close().await,
        }
        let partition = delivered.records.partition;
        store
            .apply(partition, delivered.next, &StoreEffects::default())
            .await
    }

    async fn wake(&mut self) {}

    async fn work(&mut self, _: &EffectWriter) -> Result<(), IngestShutdown> {
        self.done.lock().push("timers");
        Ok(())
    }

    async fn flush(&mut self, _: &EffectWriter) {}
}

#[tokio::test]
async fn timers_get_their_turn_however_many_records_come() {
    let journal = FakeJournal::holding(&[(FIRST, vec![record(1)])]);
    let done = Arc::default();
    let processor = Pressed {
        journal: journal.clone(),
        left: 50,
        done: Arc::clone(&done),
    };
    run_with(&journal, &FakeStore::default_shared(), Box::new(processor)).await;
    let done = done.lock();
    let deliveries = done.iter().filter(|what| **what == "records").count();
    assert_eq!(deliveries, 51);
    assert!(
        done.windows(2).all(|two| two != ["records", "records"]),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_worker_that_panics_is_seen() {
    let journal = FakeJournal::holding(&[(FIRST, vec![record(1)])]);
    let store = FakeStore::default_shared();
    struct PanickingListener;
    impl ActivityListener for PanickingListener {
        fn record_activities(&self, _: &[(EntityKey, i64)]) {
            panic!("as the test wants it");
        }
        fn set_lag(&self, _: Duration) {}
    }
    let service = IngestService::start_after(
        CrashHandling::default(),
        &uplink(&journal),
        stores(&store, PanickingListener),
        &Options::default(),
    )
    .await
    .unwrap();
    service.begin();
    let failure = service.failure();
    journal.close().await;
    service.stop(Duration::from_secs(60));
    assert!(
        failure().is_some_and(|failure| failure.contains("ingest-0")),
        "{:?}",
        failure()
    );
}

#[tokio::test]
async fn what_is_too_large_for_one_append_is_taken_in_parts_or_not_at_all() {
    let journal = FakeJournal::holding(&[]);
    let uplink = uplink(&journal);
    let subject = EntityKey::device(TenantId::new(), DeviceId::new());
    let add = |batch: &mut RecordBatch, text: &str| {
        let mut telemetry = batch.begin_telemetry(subject, 1, 0);
        telemetry.begin_row(1);
        pack("k", KvValueRef::Text(text), telemetry.buffer());
        telemetry.count_point();
        telemetry.finish();
    };
    let mut batch = RecordBatch::new();
    for _ in 0..20 {
        add(&mut batch, "v");
    }
    assert!(batch.as_bytes().len() > 2 * LARGEST_APPEND);
    uplink.append(subject, &batch).await.unwrap().await.unwrap();
    let taken = || journal.end(FIRST).0 + journal.end(SECOND).0;
    assert_eq!(taken(), 20);

    add(&mut batch, &"v".repeat(LARGEST_APPEND));
    let refused = uplink.append(subject, &batch).await.err();
    assert!(matches!(refused, Some(AppendError::TooLarge { .. })));
    assert_eq!(taken(), 20);
}

#[tokio::test]
async fn workers_wait_until_they_may_begin_and_a_stop_does_not_wait_for_them() {
    let site = || async {
        let journal = FakeJournal::closed_with(&[(FIRST, vec![record(1)])]);
        let store = FakeStore::default_shared();
        let service = IngestService::start_after(
            CrashHandling::default(),
            &uplink(&journal),
            stores(&store, DeafListener),
            &Options::default(),
        )
        .await
        .unwrap();
        (service, store)
    };
    let (service, store) = site().await;
    let begun = std::time::Instant::now();
    service.stop(Duration::from_secs(60));
    assert!(begun.elapsed() < Duration::from_secs(30), "nothing is waited for");
    assert_eq!(store.rows(FIRST), [0; 0]);

    let (service, store) = site().await;
    service.begin();
    service.stop(Duration::from_secs(60));
    assert_eq!(store.rows(FIRST), [1]);
}
