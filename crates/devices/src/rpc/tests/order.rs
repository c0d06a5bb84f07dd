//! Which call comes when, and what becomes of one that is not acknowledged.

use super::*;

#[tokio::test(start_paused = true)]
async fn calls_go_one_by_one_as_the_device_acknowledges_or_answers_them() {
    use RpcSubmitStrategy::{
        SequentialOnAckFromDevice as OnAck, SequentialOnResponseFromDevice as OnResponse,
    };
    for strategy in [OnAck, OnResponse] {
        let world = World::in_order(strategy).await;
        let mut callers = Vec::new();
        let next = |world: &World| world.begin(world.request());
        for _ in 0..3 {
            callers.push(next(&world));
            world.settle().await;
        }
        let session = world.session();
        world.subscribe(&session);
        let first = call(session.control()).expect("the first one");
        assert_eq!(waiting(&session), NONE, "no other");
        world.calls.handle_sent(&first, true);
        world.calls.handle_delivery(&first);
        let second = call(session.control());
        let second = match strategy {
            OnAck => second.expect("it has acknowledged the first"),
            _ => {
                assert_eq!(second, None, "it has not answered");
                world
                    .calls
                    .handle_answer(world.device.subject, first.number, "1".to_owned());
                assert_eq!(callers.remove(0).await.unwrap(), Ok(Some("1".to_owned())));
                call(session.control()).expect("it has answered the first")
            }
        };
        assert_eq!(waiting(&session), NONE);
        // It does not acknowledge the second, which is sent once more and then given up.
        world.calls.handle_sent(&second, true);
        world.pass(10_000);
        world.settle().await;
        assert_eq!(waiting(&session), [second.number]);
        world.calls.handle_sent(&second, true);
        world.pass(10_000);
        world.settle().await;
        let third = call(session.control()).expect("the third one");
        assert!(third.number > second.number);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_that_does_not_answer_holds_up_the_next_call_for_a_while_only() {
    let world = World::in_order(RpcSubmitStrategy::SequentialOnResponseFromDevice).await;
    let session = world.session();
    world.subscribe(&session);
    let request = |expires_ms| DeviceRpcRequest {
        expires_ms,
        ..world.persistent()
    };
    let (first, second) = (request(NOW + 600_000), request(NOW + 600_000));
    let id = first.id;
    world.begin(first).await.unwrap().unwrap();
    world.begin(second).await.unwrap().unwrap();
    let sent = call(session.control()).expect("the first one");
    world.calls.handle_sent(&sent, true);
    world.calls.handle_delivery(&sent);
    world.pass(29_000);
    world.settle().await;
    assert_eq!(waiting(&session), NONE);
    world.pass(1_000);
    world.settle().await;
    assert_eq!(waiting(&session).len(), 1);
    let kept = world.status(id).await;
    assert_eq!(kept.status, RpcStatus::Failed);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_end_for_what_it_does_not_acknowledge_and_the_call_waits_for_the_next() {
    let options = Options {
        close_on_delivery_timeout: true,
        max_retries: 0,
        ..Options::default()
    };
    let world = World::with_options(Arc::default(), options).await;
    let session = world.session();
    world.subscribe(&session);
    let request = DeviceRpcRequest {
        expires_ms: NOW + 600_000,
        ..world.persistent()
    };
    let id = request.id;
    world.begin(request).await.unwrap().unwrap();
    let sent = call(session.control()).expect("the call");
    world.calls.handle_sent(&sent, true);
    world.pass(10_000);
    world.settle().await;
    assert_eq!(session.control().close_reason(), Some(CloseReason::CallTimeout));
    assert_eq!(world.status(id).await.status, RpcStatus::Queued);
    let session = world.session();
    world.subscribe(&session);
    assert_eq!(waiting(&session), [sent.number]);
    world.end().await;
}
