//! What sessions are handed, and when.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::downlink::AttributeUpdate;

#[tokio::test(start_paused = true)]
async fn a_connection_that_repeats_calls_itself_is_handed_each_once() {
    let world = World::in_order(RpcSubmitStrategy::SequentialOnAckFromDevice).await;
    let session = world.session();
    world.subscribe(&session);
    let caller = world.begin(world.request());
    world.settle().await;
    let sent = call(session.control()).expect("the call was sent");
    world.calls.handle_handover(&sent);
    world.pass(20_000);
    world.settle().await;
    assert!(call(session.control()).is_none(), "the connection repeats it");
    world.calls.handle_ack_timeout(&sent);
    world.settle().await;
    let again = call(session.control()).expect("the connection has given up, it is tried anew");
    assert_eq!(again.number, sent.number);
    world.calls.handle_handover(&again);
    world.calls.handle_delivery(&again);
    // What is said of it later changes nothing.
    world.calls.handle_ack_timeout(&again);
    world.settle().await;
    assert!(call(session.control()).is_none());
    world
        .calls
        .handle_answer(world.device.subject, again.number, "1".to_owned());
    assert_eq!(caller.await.unwrap(), Ok(Some("1".to_owned())));
    world.end().await;
}

#[tokio::test]
async fn whoever_wants_more_goes_on_getting_what_it_has_wanted() {
    let world = World::new().await;
    let session = world.session();
    let (subject, control) = (world.device.subject, session.control());
    let both = Subscriptions::ATTRIBUTES.and(Subscriptions::RPC);
    world
        .calls
        .set_subscriptions(subject, control, Subscriptions::ATTRIBUTES);
    let update = Downlink::Attributes(Arc::new(AttributeUpdate::Deleted(Vec::new())));
    let is_over = AtomicBool::new(false);
    let missed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                world.calls.set_subscriptions(subject, control, both);
                world
                    .calls
                    .set_subscriptions(subject, control, Subscriptions::ATTRIBUTES);
            }
        });
        let is_missed = |_: &u32| {
            let taken = world.sessions.send(subject, &update);
            control.take_outbound();
            taken == 0
        };
        let missed = (0..100_000).filter(is_missed).count();
        is_over.store(true, Ordering::Relaxed);
        missed
    });
    assert_eq!(missed, 0);
    world.end().await;
}
