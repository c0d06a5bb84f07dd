//! Messages that go on in the background: what a crash finds of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fieldline_core::options::ByteSize;
use fieldline_core::ports::{IngestStore as _, StateKey};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::rig::{Rig, Seen, eventually, node};
use super::street::{Street, options};
use crate::lanes::LaneOptions;
use crate::message::RuleMessage;
use crate::node::{ConnectionLabel, Node, NodeContext, NodeResult};
use crate::strategy::QueueStrategy;
use crate::worker::late_messages;

/// A queue that lets messages go on in the background soon.
fn hasty() -> QueueStrategy {
    QueueStrategy {
        timeout: Duration::from_millis(300),
        ..QueueStrategy::default()
    }
}

/// A call of another service that ends when the gate is open.
fn calls(gate: &Arc<Semaphore>, msg: RuleMessage) -> NodeResult {
    let gate = gate.clone();
    NodeResult::outside(async move {
        let _permit = gate.acquire().await;
        NodeResult::success(msg)
    })
}

async fn notes(rig: &Rig) -> usize {
    let rows = rig.store.states(rig.partition(0)).await.unwrap();
    rows.iter().filter(|row| late_messages::is_note(&row.key)).count()
}

async fn nothing_is_noted(rig: &Rig) {
    eventually("notes are left", async || notes(rig).await == 0).await;
}

async fn have_come(seen: &Seen, times: &[i64]) {
    eventually("messages have not come", async || seen.all() == times).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_the_background_of_a_shared_queue_outlives_the_program_in_the_lane() {
    let mut street = Street::new(hasty(), &options()).await;
    let (gate, ids) = (street.gate.clone(), Arc::new(Mutex::new(Vec::<Uuid>::new())));
    let node = {
        let ids = ids.clone();
        street.only_slow(move |_, msg| {
            ids.lock().push(msg.id);
            calls(&gate, msg)
        })
    };
    street.runs(vec![node]);
    street.slow_sends([1]).await;
    street.neighbour_sends([2]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    assert_eq!((street.gone.all(), notes(&street.rig).await), (vec![2], 1));
    street.rig.stop(service, Duration::ZERO).await;
    street.rig.forget_lanes();
    let service = street.rig.start().await;
    have_come(&street.came, &[1, 1]).await;
    assert_eq!(street.counts().diverted, 1, "it begins anew in the lane");
    // Nobody waits for it there.
    street.neighbour_sends([3]).await;
    street.stands_at(3).await;
    nothing_is_noted(&street.rig).await;
    street.gate.add_permits(1);
    street.have_gone(&[1, 2, 3]).await;
    street.lane_is_empty().await;
    assert_eq!(street.came.all(), [1, 1]);
    let ids = ids.lock().clone();
    assert_eq!(ids[0], ids[1]);
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_in_the_background_is_not_done_again() {
    let mut street = Street::new(hasty(), &options()).await;
    let (gate, ended) = (street.gate.clone(), Arc::new(AtomicUsize::new(0)));
    // Of two branches one ends at once, and the other one calls twice.
    let splits = street.only_slow(|_, msg| {
        let other = msg.derive(1);
        NodeResult::Many(vec![
            (msg, ConnectionLabel::SUCCESS),
            (other, ConnectionLabel::from("Nowhere")),
        ])
    });
    let own = street.rig.world.tenant;
    let again = {
        let ended = ended.clone();
        node(move |_, msg| {
            if msg.tenant != own {
                return NodeResult::success(msg);
            }
            let ended = ended.clone();
            let work = calls(&gate, msg);
            NodeResult::then(move |_| {
                ended.fetch_add(1, Ordering::AcqRel);
                work
            })
        })
    };
    street.runs(vec![splits, again.clone(), again]);
    street.slow_sends([1]).await;
    street.neighbour_sends([2]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    assert_eq!(notes(&street.rig).await, 1);
    assert_eq!(ended.load(Ordering::Acquire), 1);
    street.gate.add_permits(1);
    street.have_gone(&[1, 2]).await;
    nothing_is_noted(&street.rig).await;
    street.rig.stop(service, Duration::ZERO).await;
    street.rig.forget_lanes();
    let service = street.rig.start().await;
    street.neighbour_sends([3]).await;
    street.stands_at(3).await;
    assert_eq!(street.came.all(), [1]);
    assert_eq!(ended.load(Ordering::Acquire), 2, "each was called once");
    street.rig.finish(service).await;
    assert_eq!(street.gone.all(), [2, 1, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_the_background_of_a_queue_of_its_own_begins_anew_there() {
    let rig = Rig::new(1, hasty()).await;
    let device = rig.device_in(0).await;
    let (came, gone, gate) = (Seen::default(), Seen::default(), Arc::new(Semaphore::new(0)));
    let waits = {
        let (came, gate) = (came.clone(), gate.clone());
        node(move |_, msg| {
            came.note(&msg);
            match msg.values_ts() {
                2 => NodeResult::success(msg),
                _ => calls(&gate, msg),
            }
        })
    };
    rig.chain(vec![waits, gone.node()], &[(0, 1, "Success")]);
    rig.send(device, [1, 2, 3]).await;
    for starts in 1..=3 {
        let service = rig.start().await;
        let calls = [1, 3].repeat(starts - 1);
        have_come(&came, &[&[1, 2, 3][..], &calls].concat()).await;
        eventually("the position does not go on", async || {
            let position = rig.store.resume_position(rig.partition(0)).await.unwrap();
            position.unwrap_or_default().0 == 1 && notes(&rig).await == 2
        })
        .await;
        assert_eq!(gone.all(), [2]);
        // It is late once more, and noted once more.
        rig.stop(service, Duration::ZERO).await;
    }
    let service = rig.start().await;
    gate.add_permits(1);
    eventually("the messages have not gone on", async || gone.all() == [2, 1, 3]).await;
    nothing_is_noted(&rig).await;
    rig.finish(service).await;
}

/// What is kept and comes due at once.
struct Timer {
    gate: Arc<Semaphore>,
    begun: AtomicUsize,
    ended: Arc<AtomicUsize>,
}

impl Node for Timer {
    fn handle(&self, ctx: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        ctx.set_state(msg.subject(), 7, Some(0), b"kept");
        NodeResult::Done
    }

    fn handle_due(&self, _: &mut NodeContext<'_>, key: StateKey, value: Bytes) -> NodeResult {
        assert_eq!((key.number, &*value), (7, &b"kept"[..]));
        self.begun.fetch_add(1, Ordering::AcqRel);
        let (gate, ended) = (self.gate.clone(), self.ended.clone());
        NodeResult::outside(async move {
            let _permit = gate.acquire().await;
            NodeResult::then(move |_| {
                ended.fetch_add(1, Ordering::AcqRel);
                NodeResult::Done
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_come_due_and_is_late_outlives_the_program() {
    let rig = Rig::new(1, hasty()).await;
    let device = rig.device_in(0).await;
    let timer = Arc::new(Timer {
        gate: Arc::new(Semaphore::new(0)),
        begun: AtomicUsize::new(0),
        ended: Arc::default(),
    });
    rig.chain(vec![timer.clone()], &[]);
    rig.send(device, [1]).await;
    for starts in 1..=2 {
        let service = rig.start().await;
        eventually("the timer is not noted", async || {
            timer.begun.load(Ordering::Acquire) == starts && notes(&rig).await == 1
        })
        .await;
        rig.stop(service, Duration::ZERO).await;
    }
    let service = rig.start().await;
    eventually("the timer does not begin", async || {
        timer.begun.load(Ordering::Acquire) == 3
    })
    .await;
    timer.gate.add_permits(1);
    eventually("the timer does not end", async || {
        timer.ended.load(Ordering::Acquire) == 1
    })
    .await;
    nothing_is_noted(&rig).await;
    rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_no_room_to_note_is_given_up_and_counted() {
    let options = LaneOptions {
        backlog: ByteSize(2048),
        ..options()
    };
    let street = Street::new(hasty(), &options).await;
    let gate = street.gate.clone();
    street.runs(vec![street.only_slow(move |_, msg| calls(&gate, msg))]);
    street.slow_sends(1..=50).await;
    let service = street.rig.start().await;
    street.stands_at(1).await;
    let (noted, counts) = (notes(&street.rig).await, street.counts());
    assert!((2..10).contains(&noted), "{noted}");
    assert_eq!((counts.given_up, counts.diverted), (50 - noted as u64, 0));
    street.gate.add_permits(1);
    let expected: Vec<i64> = (1..=noted as i64).collect();
    street.have_gone(&expected).await;
    nothing_is_noted(&street.rig).await;
    // What has ended has left its room.
    street.slow_sends([100]).await;
    let lanes = street.rig.lanes.clone().unwrap();
    eventually("there is no room again", async || {
        let has_room = lanes.try_reserve_note(street.rig.world.tenant, 1500);
        if has_room {
            lanes.release_note(street.rig.world.tenant, 1500);
        }
        has_room
    })
    .await;
    let (of_slow, _) = street.rig.finish(service).await;
    assert_eq!((of_slow.total, of_slow.timeout), (51, noted as u64));
    assert_eq!(of_slow.failed, counts.given_up);
}
