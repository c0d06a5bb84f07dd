//! Processes that crash on records, one after the other, with the same journal, store and notes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use fieldline_model::entity::{SetAsideInfo, SetAsideReason};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::record::{RecordBody, rows};
use fieldline_model::{SetAsideId, TenantId};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::super::processor::{DeliveredBatch, DirectProcessor, EffectWriter, RecordProcessor};
use super::super::service::{IngestShared, IngestShutdown};
use super::super::worker::IngestWorker;
use super::fakes::{DeafListener, FakeJournal, FakeStore, record};
use super::{CrashHandling, FIRST, SECOND, uplink};
use crate::clock::StandingClock;
use crate::in_flight::{CrashSuspects, InFlightKept, InFlightTracker, InFlightWork, KeptTurn, LoadInHand};
use crate::ports::{
    InFlightNotes, IngestStore as _, Journal, Offset, Partition, PreviousRunNotes, SetAsideOutcome,
    SetAsideQuota, SetAsideRawRecord, SetAsideStore, StoreError, StoreErrorKind, StoreResult,
};
use crate::set_aside::{Options, SetAsideService};

/// Notes in memory.
#[derive(Default)]
struct Notes {
    left: PreviousRunNotes,
    hands: Mutex<BTreeMap<usize, InFlightWork>>,
    suspects: Mutex<CrashSuspects>,
    written: Mutex<usize>,
}

impl Notes {
    /// Returns the notes that the next process finds.
    fn after_death(&self) -> Arc<Self> {
        Arc::new(Self {
            left: PreviousRunNotes {
                in_flight: self.hands.lock().values().copied().collect(),
                suspects: self.suspects.lock().clone(),
            },
            ..Self::default()
        })
    }
}

impl InFlightNotes for Notes {
    fn previous_run(&self) -> PreviousRunNotes {
        self.left.clone()
    }

    fn save(&self, suspects: &CrashSuspects) -> StoreResult<()> {
        self.suspects.lock().clone_from(suspects);
        Ok(())
    }

    fn begin(&self) -> StoreResult<()> {
        Ok(())
    }

    fn note(&self, slot: usize, hand: Option<InFlightWork>) -> StoreResult<()> {
        let mut hands = self.hands.lock();
        *self.written.lock() += 1;
        match hand {
            Some(hand) => hands.insert(slot, hand),
            None => hands.remove(&slot),
        };
        Ok(())
    }
}

/// Records set aside, in memory.
#[derive(Default)]
struct Shelf(Mutex<Vec<SetAsideRawRecord>>);

#[async_trait]
impl SetAsideStore for Shelf {
    async fn keep(&self, record: &SetAsideRawRecord, _: SetAsideQuota) -> StoreResult<SetAsideOutcome> {
        let mut kept = self.0.lock();
        let is_new = kept.iter().all(|known| known.info.id != record.info.id);
        if is_new {
            kept.push(record.clone());
        }
        Ok(SetAsideOutcome { is_new, dropped: 0 })
    }

    async fn get(&self, _: Option<TenantId>, id: SetAsideId) -> StoreResult<Option<SetAsideRawRecord>> {
        Ok(self.0.lock().iter().find(|known| known.info.id == id).cloned())
    }

    async fn list(&self, _: Option<TenantId>, link: &PageLink) -> StoreResult<PageData<SetAsideInfo>> {
        let data: Vec<_> = self.0.lock().iter().map(|known| known.info.clone()).collect();
        let total = data.len() as u64;
        Ok(PageData::new(data, total, link))
    }

    async fn delete(&self, _: Option<TenantId>, id: SetAsideId) -> StoreResult<bool> {
        let mut kept = self.0.lock();
        let before = kept.len();
        kept.retain(|known| known.info.id != id);
        Ok(kept.len() < before)
    }
}

/// Stores the records it gets, and ends the process at a record with one of these times.
struct Mortal {
    deadly: Vec<i64>,
    died: Option<oneshot::Sender<()>>,
    packs: Arc<Mutex<Vec<Vec<i64>>>>,
}

fn times(delivered: &DeliveredBatch<'_>) -> Vec<i64> {
    let mut times = Vec::new();
    for (_, record) in delivered.readable {
        if let RecordBody::Telemetry { rows: bytes, .. } = record.body {
            times.extend(rows(bytes).flatten().map(|row| row.ts));
        }
    }
    times
}

#[async_trait(?Send)]
impl RecordProcessor for Mortal {
    async fn assign_partition(&mut self, _: Partition, _: &EffectWriter) -> Result<(), IngestShutdown> {
        Ok(())
    }

    fn revoke_partition(&mut self, _: Partition) {}

    async fn process(
        &mut self,
        delivered: DeliveredBatch<'_>,
        store: &EffectWriter,
    ) -> Result<(), IngestShutdown> {
        let times = times(&delivered);
        self.packs.lock().push(times.clone());
        if times.iter().any(|ts| self.deadly.contains(ts)) {
            if let Some(died) = self.died.take() {
                died.send(()).unwrap();
            }
            // From here on, the simulated process does nothing.
            std::future::pending::<()>().await;
        }
        DirectProcessor.process(delivered, store).await
    }

    async fn wake(&mut self) {
        std::future::pending::<()>().await;
    }

    async fn work(&mut self, _: &EffectWriter) -> Result<(), IngestShutdown> {
        Ok(())
    }

    async fn flush(&mut self, _: &EffectWriter) {}
}

/// One installation, and the remains of its processes.
struct Site {
    journal: Arc<FakeJournal>,
    store: Arc<FakeStore>,
    shelf: Arc<Shelf>,
    notes: Arc<Notes>,
}

impl Site {
    fn holding(records: &[(Partition, Vec<Vec<u8>>)]) -> Self {
        Self {
            journal: FakeJournal::closed_with(records),
            store: FakeStore::default_shared(),
            shelf: Arc::default(),
            notes: Arc::default(),
        }
    }

    /// Runs a process until it has read everything or has crashed; returns whether it is alive, and the batches it
    /// processed.
    async fn live(&mut self, deadly: &[i64]) -> (bool, Vec<Vec<i64>>) {
        let in_hand = InFlightTracker::start(self.notes.clone());
        let uplink = uplink(&self.journal);
        let clock = Arc::new(StandingClock(AtomicI64::new(1_800_000_000_000)));
        let set_aside = SetAsideService::new(
            self.shelf.clone(),
            Arc::new(uplink.clone()),
            clock,
            &Options::default(),
        );
        let crashes = CrashHandling {
            in_flight: in_hand,
            set_aside: Some(set_aside),
        };
        let shared = Arc::new(IngestShared::new(
            &uplink,
            self.store.clone(),
            Arc::new(DeafListener),
            crashes,
        ));
        let (died, dies) = oneshot::channel();
        let packs = Arc::default();
        let processor = Mortal {
            deadly: deadly.to_vec(),
            died: Some(died),
            packs: Arc::clone(&packs),
        };
        let consumer = self
            .journal
            .subscribe(uplink.queue(), "test", 1)
            .unwrap()
            .remove(0);
        let local = tokio::task::LocalSet::new();
        let worker: JoinHandle<()> =
            local.spawn_local(IngestWorker::new(shared.clone(), consumer, Box::new(processor)).run(1 << 20));
        let lives = local
            .run_until(async {
                tokio::select! {
                    done = worker => { done.unwrap(); true }
                    Ok(()) = dies => false,
                }
            })
            .await;
        if lives {
            shared.note_durable(self.store.checkpoint().await.unwrap());
        }
        // Done before any part of the process is dropped: a crashed process does not clean up.
        self.notes = self.notes.after_death();
        let packs = packs.lock().clone();
        (lives, packs)
    }

    fn kept(&self) -> Vec<SetAsideRawRecord> {
        self.shelf.0.lock().clone()
    }
}

#[tokio::test]
async fn a_record_that_killed_twice_alone_is_set_aside_whole_and_the_others_are_stored() {
    let deadly = record(2);
    let mut site = Site::holding(&[
        (FIRST, vec![record(1), deadly.clone(), record(3)]),
        (SECOND, vec![record(4)]),
    ]);
    assert_eq!(site.live(&[2]).await, (false, vec![vec![1, 2, 3]]));
    // Processing them one by one finds the record, and one more try confirms it.
    assert_eq!(site.live(&[2]).await, (false, vec![vec![1], vec![2]]));
    assert!(site.kept().is_empty());
    assert_eq!(site.live(&[2]).await, (false, vec![vec![2]]));
    assert!(site.kept().is_empty(), "not before it is proven");
    assert_eq!(site.live(&[2]).await, (true, vec![vec![3], vec![4]]));

    let kept = site.kept();
    let [one] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(one.bytes, deadly);
    let info = &one.info;
    assert_eq!((&*info.queue_name, info.partition, info.offset), ("0", 0, 1));
    assert_eq!((info.reason, info.deaths), (SetAsideReason::KilledProcess, 2));
    assert_eq!((info.received_time, info.size), (2, deadly.len() as i64));
    assert_eq!(site.store.rows(FIRST), [1, 3]);
    assert_eq!(site.store.rows(SECOND), [4]);
    assert_eq!(site.store.position(FIRST), Some(Offset(3)));
    // No suspicion is left.
    assert_eq!(site.notes.left.suspects, CrashSuspects::default());
    assert!(site.notes.left.in_flight.is_empty());
}

#[tokio::test]
async fn a_record_that_was_alone_from_the_beginning_is_set_aside_at_the_third_start() {
    let mut site = Site::holding(&[(FIRST, vec![record(2)])]);
    for _ in 0..2 {
        assert_eq!(site.live(&[2]).await, (false, vec![vec![2]]));
        assert!(site.kept().is_empty());
    }
    assert_eq!(site.live(&[2]).await, (true, Vec::new()));
    assert_eq!(site.kept().len(), 1);
    assert_eq!(site.store.position(FIRST), Some(Offset(1)));
}

#[tokio::test]
async fn the_last_record_before_positions_without_any_is_set_aside_like_others() {
    let mut site = Site::holding(&[(FIRST, vec![record(1), record(2)])]);
    site.journal.leave_out(4_094);
    assert_eq!(site.live(&[2]).await, (false, vec![vec![1, 2]]));
    assert_eq!(site.live(&[2]).await, (false, vec![vec![1], vec![2]]));
    assert_eq!(site.live(&[2]).await, (false, vec![vec![2]]));
    assert_eq!(site.live(&[2]).await, (true, Vec::new()));
    assert_eq!(site.kept().len(), 1);
    assert_eq!(site.store.position(FIRST), Some(Offset(4_096)));
    assert_eq!(site.notes.left.suspects, CrashSuspects::default());
}

#[tokio::test]
async fn a_process_that_was_killed_by_somebody_sets_nothing_aside() {
    let mut site = Site::holding(&[(FIRST, vec![record(1), record(2), record(3)])]);
    // Killed in the middle of a batch, then with a record alone in flight, and then not again.
    assert!(!site.live(&[1]).await.0);
    assert_eq!(site.live(&[3]).await, (false, vec![vec![1], vec![2], vec![3]]));
    assert_eq!(site.live(&[]).await, (true, vec![vec![3]]));
    assert!(site.kept().is_empty());
    assert_eq!(site.store.rows(FIRST), [1, 2, 3]);
    assert_eq!(site.notes.left.suspects, CrashSuspects::default());
}

#[tokio::test]
async fn what_is_put_back_comes_again_and_is_set_aside_again_where_it_still_kills() {
    let mut site = Site::holding(&[(FIRST, vec![record(2)])]);
    while !site.live(&[2]).await.0 {}
    let id = site.kept()[0].info.id;
    let set_aside = SetAsideService::new(
        site.shelf.clone(),
        Arc::new(uplink(&site.journal)),
        Arc::new(StandingClock(AtomicI64::new(0))),
        &Options::default(),
    );
    assert!(set_aside.replay(None, id).await.unwrap());
    assert!(!set_aside.replay(None, id).await.unwrap(), "once");
    assert!(site.kept().is_empty());
    let mut deaths = 0;
    while !site.live(&[2]).await.0 {
        deaths += 1;
    }
    assert_eq!((deaths, site.kept().len()), (2, 1));
    let again = site.kept()[0].info.id;
    assert_ne!(again, id, "another position is another record");

    assert!(set_aside.replay(None, again).await.unwrap());
    assert!(site.live(&[]).await.0, "the fault is gone");
    let stored = [FIRST, SECOND].map(|partition| site.store.rows(partition));
    assert_eq!(stored.concat(), [2]);
}

#[tokio::test]
async fn a_pack_costs_one_note_and_one_to_take_it_back() {
    let mut site = Site::holding(&[(FIRST, (1..=50).map(record).collect())]);
    let notes = site.notes.clone();
    assert!(site.live(&[]).await.0);
    assert_eq!(*notes.written.lock(), 2);
}

#[tokio::test]
async fn what_kills_while_it_is_loaded_is_left_out_until_it_is_another_version() {
    let load = |version| LoadInHand {
        tenant: TenantId::new(),
        id: uuid::Uuid::from_u128(7),
        version,
    };
    let deadly = load(1);
    let mut notes = Arc::new(Notes::default());
    for _ in 0..2 {
        let in_hand = InFlightTracker::start(notes.clone());
        let note = in_hand
            .begin_load(deadly)
            .await
            .map_err(|why| panic!("{why}"))
            .unwrap();
        notes = notes.after_death();
        drop(note);
    }
    let in_hand = InFlightTracker::start(notes.clone());
    let why = in_hand.begin_load(deadly).await.err().unwrap();
    assert!(why.contains("died 2 times"), "{why}");
    let other = LoadInHand {
        id: uuid::Uuid::from_u128(8),
        ..deadly
    };
    in_hand.begin_load(other).await.ok().unwrap().finish();
    let saved_anew = LoadInHand { version: 2, ..deadly };
    in_hand.begin_load(saved_anew).await.ok().unwrap().finish();
    assert!(notes.after_death().left.in_flight.is_empty());
}

#[tokio::test]
async fn what_is_in_hand_when_the_program_was_told_to_stop_is_not_suspected() {
    let load = LoadInHand {
        tenant: TenantId::new(),
        id: uuid::Uuid::from_u128(7),
        version: 1,
    };
    let notes = Arc::new(Notes::default());
    let in_hand = InFlightTracker::start(notes.clone());
    let _hangs = in_hand.note_start(load);
    assert_eq!(notes.after_death().left.in_flight.len(), 1);
    in_hand.end();
    let _late = in_hand.note_start(load);
    assert!(notes.after_death().left.in_flight.is_empty());
}

#[tokio::test]
async fn what_was_set_aside_is_not_tried_again_where_another_death_takes_the_position_back() {
    let mut site = Site::holding(&[(FIRST, vec![record(1), record(2), record(3)])]);
    for _ in 0..3 {
        assert!(!site.live(&[2]).await.0);
    }
    // The process crashes on another record before the stored data is durable.
    assert_eq!(site.live(&[2, 3]).await, (false, vec![vec![3]]));
    assert_eq!(site.kept().len(), 1);
    site.store.rewind(FIRST, Offset(0)).await.unwrap();
    assert_eq!(site.live(&[2]).await, (true, vec![vec![1], vec![3]]));
    assert_eq!(site.kept().len(), 1, "the same is kept once");
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_is_suspected_for_as_long_as_some_of_it_waits_for_its_turn() {
    let [one, other] = [1, 2].map(|id| InFlightKept {
        tenant: TenantId(uuid::Uuid::from_u128(1)),
        id: uuid::Uuid::from_u128(id),
    });
    let notes = Arc::new(Notes::default());
    let in_hand = InFlightTracker::start(notes.clone());
    let _both = [in_hand.take_kept(one), in_hand.take_kept(other)];
    let in_hand = InFlightTracker::start(notes.after_death());
    let _first = in_hand.take_kept(one);
    assert!(matches!(in_hand.take_kept(other), KeptTurn::Later));
    tokio::time::sleep(Duration::from_secs(3_610)).await;
    let _second = in_hand.take_kept(other);
    assert!(
        matches!(in_hand.take_kept(one), KeptTurn::Later),
        "both are suspected"
    );
}

#[test]
fn what_waits_in_a_lane_is_found_sole_only_where_nothing_else_was_loaded_or_disturbed() {
    let kept = InFlightKept {
        tenant: TenantId(uuid::Uuid::from_u128(1)),
        id: uuid::Uuid::from_u128(2),
    };
    let load = LoadInHand {
        tenant: kept.tenant,
        id: uuid::Uuid::from_u128(3),
        version: 1,
    };
    let dies_thrice = |beside: &[InFlightWork]| {
        let mut suspects = CrashSuspects::default();
        for _ in 0..3 {
            suspects.count(&[&[InFlightWork::Kept(kept)], beside].concat());
        }
        let left = PreviousRunNotes {
            suspects,
            ..PreviousRunNotes::default()
        };
        let notes = Arc::new(Notes {
            left,
            ..Notes::default()
        });
        matches!(InFlightTracker::start(notes).take_kept(kept), KeptTurn::Never(_))
    };
    assert!(dies_thrice(&[]));
    assert!(!dies_thrice(&[InFlightWork::Load(load)]));
}

/// Notes on a full disk.
struct FullDisk;

impl InFlightNotes for FullDisk {
    fn previous_run(&self) -> PreviousRunNotes {
        PreviousRunNotes::default()
    }

    fn save(&self, _: &CrashSuspects) -> StoreResult<()> {
        Err(StoreError::new(StoreErrorKind::DiskFull, "as the test wants it"))
    }

    fn begin(&self) -> StoreResult<()> {
        panic!("nothing may be lost that was not saved")
    }

    fn note(&self, _: usize, _: Option<InFlightWork>) -> StoreResult<()> {
        panic!("noted among what is left of another process")
    }
}

#[tokio::test]
async fn where_nothing_can_be_noted_it_goes_on_without() {
    let in_hand = InFlightTracker::start(Arc::new(FullDisk));
    let load = LoadInHand {
        tenant: TenantId::new(),
        id: uuid::Uuid::from_u128(7),
        version: 1,
    };
    in_hand.begin_load(load).await.ok().unwrap().finish();
    in_hand.end();
}

#[tokio::test(start_paused = true)]
async fn what_was_kept_and_does_not_come_again_is_suspected_for_an_hour() {
    let [tenant, id] = [uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(2)];
    let deadly = InFlightKept {
        tenant: TenantId(tenant),
        id,
    };
    let mut notes = Arc::new(Notes::default());
    for _ in 0..2 {
        let in_hand = InFlightTracker::start(notes.clone());
        let turn = in_hand.take_kept(deadly);
        assert!(matches!(turn, KeptTurn::Now(Some(_))));
        notes = notes.after_death();
    }
    let in_hand = InFlightTracker::start(notes.clone());
    let turn = || in_hand.take_kept(deadly);
    tokio::time::sleep(Duration::from_secs(3_590)).await;
    assert!(matches!(turn(), KeptTurn::Never(_)));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(
        matches!(turn(), KeptTurn::Now(Some(_))),
        "another state has its key"
    );
    assert_eq!(notes.after_death().left.suspects, CrashSuspects::default());
}
