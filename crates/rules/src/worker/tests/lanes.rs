//! Two tenants share a queue, and one of them is slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fieldline_core::options::ByteSize;
use fieldline_core::ports::Journal as _;
use fieldline_model::entity::{ProcessingStrategyType, SubmitStrategyType};
use parking_lot::Mutex;
use serde_json::json;
use uuid::Uuid;

use super::rig::{eventually, node};
use super::street::{Street, options, patient};
use crate::lanes::LaneOptions;
use crate::node::{ConnectionLabel, NodeResult};
use crate::strategy::QueueStrategy;
use crate::worker::divert::TENANT_SUSPENDED;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_waits_for_ever_holds_up_nobody_else_and_is_done_in_the_lane() {
    let street = Street::new(patient(), &options()).await;
    street.runs(vec![street.waits(|_| true)]);
    street.slow_sends([1]).await;
    street.neighbour_sends([2]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    assert_eq!(street.gone.all(), [2]);
    // It has begun anew, and what comes after it follows it there, without being tried before.
    street.slow_sends([3]).await;
    street.neighbour_sends([4]).await;
    street.stands_at(4).await;
    eventually("the message does not go on", async || {
        street.came.all().len() >= 2
    })
    .await;
    assert_eq!((street.gone.all(), street.came.all()), (vec![2, 4], vec![1, 1]));
    street.gate.add_permits(1);
    street.have_gone(&[1, 2, 3, 4]).await;
    street.lane_is_empty().await;
    assert_eq!(street.came.all(), [1, 1, 3]);
    let counts = street.counts();
    assert_eq!((counts.diverted, counts.given_up), (2, 0));
    let (of_slow, _) = street.rig.finish(service).await;
    assert_eq!((of_slow.total, of_slow.successful), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_is_alone_is_waited_for() {
    let street = Street::new(patient(), &options()).await;
    street.runs(vec![street.waits(|_| true)]);
    street.slow_sends([1, 2]).await;
    let service = street.rig.start().await;
    eventually("the messages have not come", async || {
        street.came.all().len() == 2
    })
    .await;
    // Many times the patience.
    tokio::time::sleep(Duration::from_millis(400)).await;
    street.gate.add_permits(1);
    street.have_gone(&[1, 2]).await;
    street.stands_at(1).await;
    assert_eq!(street.came.all(), [1, 2]);
    assert_eq!(street.counts().diverted, 0);
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_must_not_be_done_twice_lightly_is_waited_for_and_what_comes_after_it_is_not() {
    let strategy = QueueStrategy {
        timeout: Duration::from_millis(600),
        ..QueueStrategy::default()
    };
    let street = Street::new(strategy, &options()).await;
    let gate = street.gate.clone();
    let calls = street.only_slow(move |_, msg| {
        let gate = gate.clone();
        NodeResult::outside(async move {
            let _permit = gate.acquire().await;
            NodeResult::success(msg)
        })
    });
    street.runs(vec![calls]);
    street.slow_sends([1]).await;
    street.neighbour_sends([2]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    street.slow_sends([3]).await;
    street.neighbour_sends([4]).await;
    street.stands_at(4).await;
    eventually("the message does not begin", async || {
        street.came.all().len() >= 2
    })
    .await;
    assert_eq!(street.came.all(), [1, 3], "the first was called once");
    assert_eq!(street.counts().diverted, 1);
    street.gate.add_permits(1);
    street.have_gone(&[1, 2, 3, 4]).await;
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_an_originator_stay_in_order_on_their_way_through_the_lane() {
    let strategy = QueueStrategy {
        submit: SubmitStrategyType::SequentialByOriginator,
        ..patient()
    };
    let street = Street::new(strategy, &options()).await;
    street.runs(vec![street.waits(|msg| msg.values_ts() == 3)]);
    street.slow_sends(1..=20).await;
    street.neighbour_sends([100]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    street.slow_sends(21..=30).await;
    street.stands_at(3).await;
    street.gate.add_permits(1);
    let expected: Vec<i64> = (1..=30).chain([100]).collect();
    street.have_gone(&expected).await;
    let of_slow: Vec<i64> = street.gone.all().into_iter().filter(|ts| *ts != 100).collect();
    assert_eq!(of_slow, (1..=30).collect::<Vec<_>>());
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lane_holds_outlives_the_program_with_its_ids() {
    let mut street = Street::new(patient(), &options()).await;
    let ids: Arc<Mutex<Vec<(i64, Uuid)>>> = Arc::default();
    let notes = {
        let ids = ids.clone();
        street.only_slow(move |_, msg| {
            ids.lock().push((msg.values_ts(), msg.id));
            NodeResult::success(msg)
        })
    };
    street.runs(vec![notes, street.waits(|_| true)]);
    // Rows of one record become messages of their own.
    street.slow_sends([1, 2, 3]).await;
    street.neighbour_sends([4]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    // What the first is kept for is stored with the lane's position.
    eventually("the messages do not go on in the lane", async || {
        ids.lock().len() >= 4
    })
    .await;
    street.rig.stop(service, Duration::ZERO).await;
    street.rig.forget_lanes();
    let before = ids.lock().len();
    let service = street.rig.start().await;
    eventually("the messages are lost", async || ids.lock().len() > before).await;
    street.gate.add_permits(1);
    street.have_gone(&[1, 2, 3, 4]).await;
    street.lane_is_empty().await;
    let ids = ids.lock().clone();
    for ts in 1..=3 {
        let of_one: Vec<Uuid> = ids
            .iter()
            .filter(|(of, _)| *of == ts)
            .map(|(_, id)| *id)
            .collect();
        assert!(of_one.len() >= 2, "{ts} has come once");
        assert!(of_one.iter().all(|id| *id == of_one[0]), "{of_one:?}");
    }
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_tries_for_ever_does_so_in_the_lane_and_not_for_ever() {
    let strategy = QueueStrategy {
        processing: ProcessingStrategyType::RetryFailedAndTimedOut,
        retries: 0,
        pause: Duration::ZERO,
        max_pause: Duration::ZERO,
        ..patient()
    };
    let street = Street::new(strategy, &options()).await;
    let (fails, tries) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let node = {
        let (fails, tries) = (fails.clone(), tries.clone());
        street.only_slow(move |_, msg| {
            tries.fetch_add(1, Ordering::AcqRel);
            match fails.load(Ordering::Acquire) {
                true => NodeResult::fail(msg, "as it should"),
                false => NodeResult::success(msg),
            }
        })
    };
    street.runs(vec![node]);
    let tried = async |times: usize| {
        let wanted = tries.load(Ordering::Acquire) + times;
        eventually("it is not tried again", async || {
            tries.load(Ordering::Acquire) >= wanted
        })
        .await;
    };
    street.slow_sends([1]).await;
    street.neighbour_sends([2]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    assert_eq!(street.gone.all(), [2]);
    tried(5).await;
    fails.store(false, Ordering::Release);
    street.have_gone(&[1, 2]).await;
    street.lane_is_empty().await;

    fails.store(true, Ordering::Release);
    street.slow_sends([3]).await;
    tried(5).await;
    street.rig.world.clock.advance(3_600_000);
    street.lane_is_empty().await;
    assert_eq!((street.counts().diverted, street.counts().given_up), (2, 1));
    assert_eq!(street.gone.all(), [2, 1]);
    let (of_slow, _) = street.rig.finish(service).await;
    assert_eq!((of_slow.total, of_slow.successful, of_slow.failed), (2, 1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tenant_cannot_take_all_places_of_those_that_wait() {
    let street = Street::new(patient(), &options()).await;
    let (gate, waiting) = (street.gate.clone(), Arc::new(AtomicUsize::new(0)));
    let calls = {
        let waiting = waiting.clone();
        street.only_slow(move |_, msg| {
            let gate = gate.clone();
            waiting.fetch_add(1, Ordering::AcqRel);
            NodeResult::outside(async move {
                let _permit = gate.acquire().await;
                NodeResult::success(msg)
            })
        })
    };
    street.runs(vec![calls]);
    // The neighbour has been seen before.
    street.neighbour_sends([0]).await;
    street.slow_sends(1..=TENANT_SUSPENDED as i64 + 100).await;
    let service = street.rig.start().await;
    eventually("what is too much does not leave", async || {
        street.counts().diverted == 100
    })
    .await;
    street.gate.add_permits(1);
    let expected: Vec<i64> = (0..=TENANT_SUSPENDED as i64 + 100).collect();
    street.have_gone(&expected).await;
    assert_eq!(
        waiting.load(Ordering::Acquire),
        TENANT_SUSPENDED + 100,
        "none began twice"
    );
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lane_has_no_room_for_is_given_up_and_counted() {
    let options = LaneOptions {
        backlog: ByteSize(2048),
        ..options()
    };
    let street = Street::new(patient(), &options).await;
    street.runs(vec![street.waits(|_| true)]);
    street.slow_sends(1..=50).await;
    street.neighbour_sends([100]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    let counts = street.counts();
    assert_eq!(counts.diverted + counts.given_up, 50);
    assert!((2..10).contains(&counts.diverted), "{counts:?}");
    street.gate.add_permits(1);
    street.lane_is_empty().await;
    let (of_slow, _) = street.rig.finish(service).await;
    assert_eq!((of_slow.total, of_slow.successful), (50, counts.diverted));
    assert_eq!(of_slow.failed, counts.given_up);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_whose_messages_take_the_worker_long_leaves_it_to_others() {
    let street = Street::new(patient(), &options()).await;
    street.works_long().await;
    street.neighbour_sends([1000]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    let diverted = street.counts().diverted;
    assert!((100..200).contains(&diverted), "{diverted}");
    let expected: Vec<i64> = (1..=200).chain([1000]).collect();
    street.have_gone(&expected).await;
    assert_eq!(street.came.all().len(), 200, "none was tried twice");
    assert!(street.counts().inline >= Duration::from_millis(50));
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_tenant_that_was_alone_makes_way_once_another_one_waits_behind_what_was_delivered() {
    let street = Street::new(patient(), &options()).await;
    street.works_long().await;
    let service = street.rig.start().await;
    eventually("the messages have not come", async || {
        street.came.all().len() >= 10
    })
    .await;
    assert_eq!(street.counts().diverted, 0, "nobody waits for it");
    street.neighbour_sends([1000]).await;
    street.stands_at(2).await;
    assert!(street.counts().diverted > 0, "all of it was waited for");
    street
        .have_gone(&(1..=200).chain([1000]).collect::<Vec<_>>())
        .await;
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_is_kept_where_the_message_came_from() {
    let mut street = Street::new(patient(), &options()).await;
    street.rig.pushes();
    let counted: Arc<Mutex<Vec<u8>>> = Arc::default();
    let counts = {
        let counted = counted.clone();
        street.only_slow(move |ctx, msg| {
            let subject = msg.subject();
            if !ctx.owns(subject) {
                return NodeResult::forward_to_owner(msg);
            }
            let before = ctx.state(subject, 0).and_then(|kept| kept.first().copied());
            let now = before.unwrap_or(0) + 1;
            ctx.set_state(subject, 0, None, &[now]);
            counted.lock().push(now);
            NodeResult::success(msg)
        })
    };
    // It is slow before its state is kept, and after that.
    let (first, last) = (street.waits(|_| true), street.waits(|_| true));
    street.runs(vec![first, counts, last]);
    street.slow_sends([1]).await;
    street.neighbour_sends([100]).await;
    let service = street.rig.start().await;
    street.stands_at(2).await;
    street.slow_sends([2, 3]).await;
    street.stands_at(3).await;
    street.gate.add_permits(1);
    street.have_gone(&[1, 2, 3, 100]).await;
    street.lane_is_empty().await;
    assert_eq!(*counted.lock(), [1, 2, 3]);
    street.rig.finish(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_moved_again_and_again_leaves_the_shared_queue() {
    let mut street = Street::new(patient(), &options()).await;
    street.rig.pushes();
    let checkpoint = street
        .rig
        .world
        .make_named("flow.TbCheckpointNode", "again", Some("Main"), &json!({}))
        .unwrap();
    let rounds = Arc::new(AtomicUsize::new(0));
    let goes_round = {
        let rounds = rounds.clone();
        node(move |_, msg| match rounds.fetch_add(1, Ordering::SeqCst) {
            0..30 => NodeResult::Next(msg, ConnectionLabel::from("Again")),
            _ => NodeResult::success(msg),
        })
    };
    let nodes = vec![goes_round, checkpoint, street.gone.node()];
    street
        .rig
        .chain(nodes, &[(0, 1, "Again"), (1, 0, "Success"), (0, 2, "Success")]);
    street.slow_sends([1]).await;
    let service = street.rig.start().await;
    street.have_gone(&[1]).await;
    street.lane_is_empty().await;
    assert_eq!(rounds.load(Ordering::SeqCst), 31);
    assert_eq!(
        street.rig.journal.end(street.rig.partition(0)).0,
        9,
        "sent once, and moved eight times"
    );
    assert_eq!(street.counts().diverted, 22);
    street.rig.finish(service).await;
}
