use fieldline_testkit::clock::ManualClock;
use fieldline_testkit::fake_stores::FakeStores;

use super::*;
use crate::directory::{DeviceDirectory, Options};
use crate::downlink::AttributeUpdate;

async fn device() -> Arc<DeviceHandle> {
    let stores = FakeStores::new();
    stores.add_device("token");
    let clock = ManualClock::at(0);
    let options = Options { cached_devices: 16 };
    let directory = DeviceDirectory::new(stores.entities(), stores.clone(), None, clock, &options);
    let found = directory.by_token("token").await.expect("the store serves");
    found.expect("the token admits")
}

fn update(bytes: usize) -> Downlink {
    Downlink::Attributes(Arc::new(AttributeUpdate::Saved(vec![0; bytes].into())))
}

#[tokio::test]
async fn a_session_ends_once_and_tells_whether_it_was_the_last() {
    let device = device().await;
    let sessions = SessionRegistry::new(2);
    let [first, second, third] =
        std::array::from_fn(|_| sessions.open(device.clone(), Arc::new(SessionControl::default())));
    assert_eq!(first.control().close_reason(), Some(CloseReason::Replaced));
    // A session that was replaced is not registered any more.
    assert_eq!((sessions.count(), first.end()), (2, false));
    assert!(!second.end() && third.end());
    assert_eq!((sessions.count(), sessions.is_connected(device.id)), (0, false));
    drop((first, second, third));
    assert_eq!(sessions.count(), 0);
}

#[tokio::test]
async fn a_session_is_sent_what_it_wants_and_is_closed_when_it_does_not_take_it() {
    let device = device().await;
    let sessions = SessionRegistry::new(2);
    let [eager, other] =
        std::array::from_fn(|_| sessions.open(device.clone(), Arc::new(SessionControl::default())));
    assert_eq!(sessions.send(device.subject, &update(10)), 0);
    eager.control().subscribe(Subscriptions::ATTRIBUTES);
    other.control().subscribe(Subscriptions::RPC);
    assert_eq!(sessions.send(device.subject, &update(10)), 1);
    assert!(eager.control().has_outbound() && !other.control().has_outbound());
    let letter = eager.control().take_outbound().expect("something waits");
    assert!(matches!(
        letter.payload,
        OutboundPayload::Downlink(Downlink::Attributes(_))
    ));
    assert!(!eager.control().has_outbound() && eager.control().take_outbound().is_none());

    while sessions.send(device.subject, &update(10_000)) == 1 {}
    assert_eq!(eager.control().close_reason(), Some(CloseReason::TooSlow));
    assert_eq!(other.control().close_reason(), None);
    // What it has not taken is bounded, and given back with it.
    let mut held = 0;
    while eager.control().take_outbound().is_some() {
        held += 10_000;
    }
    assert!((100_000..=control::MAX_WAITING).contains(&held));
}

#[tokio::test]
async fn a_poll_takes_one_thing_and_is_no_session_of_the_device() {
    let device = device().await;
    let sessions = SessionRegistry::new(1);
    let connection = sessions.open(device.clone(), Arc::new(SessionControl::default()));
    let poll = sessions.poll(device.clone());
    poll.control().subscribe(Subscriptions::ATTRIBUTES);
    assert_eq!((sessions.count(), connection.control().close_reason()), (1, None));
    assert_eq!(sessions.send(device.subject, &update(1)), 1);
    assert_eq!(sessions.send(device.subject, &update(2)), 0);
    assert!(matches!(poll.wait().await, Ok(Downlink::Attributes(_))));
    assert!(connection.end() && !sessions.is_connected(device.id));

    let waiting = sessions.poll(device.clone());
    sessions.close_device(device.id, CloseReason::CredentialsChanged);
    assert!(matches!(
        waiting.wait().await,
        Err(CloseReason::CredentialsChanged)
    ));
}

#[tokio::test]
async fn a_device_behind_a_gateway_is_served_through_its_session() {
    let device = device().await;
    let sessions = SessionRegistry::new(1);
    let gateway = Arc::new(SessionControl::default());
    let behind = Arc::new(SessionControl::behind(gateway.clone(), "meter".into()));
    behind.subscribe(Subscriptions::ATTRIBUTES);
    let _guard = sessions.open(device.clone(), behind);
    assert_eq!(sessions.send(device.subject, &update(1)), 1);
    let letter = gateway.take_outbound().expect("something waits");
    assert_eq!(letter.to.as_deref(), Some("meter"));
    sessions.close_device(device.id, CloseReason::CredentialsChanged);
    let letter = gateway.take_outbound().expect("something waits");
    assert!(matches!(
        letter.payload,
        OutboundPayload::Close(CloseReason::CredentialsChanged)
    ));
    assert_eq!(gateway.close_reason(), None);
}

#[tokio::test]
async fn however_many_are_slow_who_is_not_is_served() {
    let device = device().await;
    let sessions = SessionRegistry::new(2_000);
    let open = || sessions.open(device.clone(), Arc::new(SessionControl::default()));
    // Far more than would fill all of the memory if each took what it may.
    let slow: Vec<_> = (0..600).map(|_| open()).collect();
    for session in &slow {
        session.control().subscribe(Subscriptions::ATTRIBUTES);
    }
    while sessions.send(device.subject, &update(10_000)) > 0 {}
    let quick = open();
    quick.control().subscribe(Subscriptions::ATTRIBUTES);
    assert_eq!(sessions.send(device.subject, &update(1_000)), 1);
    assert_eq!(quick.control().close_reason(), None);
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one_or_all_together() {
    let device = device().await;
    let sessions = SessionRegistry::new(3);
    let origin = SessionOrigin {
        protocol: SessionProtocol::Mqtt,
        since_ms: 7,
        ..SessionOrigin::default()
    };
    let open = || sessions.open_from(device.clone(), Arc::new(SessionControl::default()), origin);
    let (first, second, third) = (open(), open(), open());
    let poll = sessions.poll(device.clone());
    second.control().subscribe(Subscriptions::RPC);
    let subject = device.subject;
    let listed = sessions.list(subject);
    let calls: Vec<_> = listed.iter().map(|info| info.subscribes_rpc).collect();
    assert_eq!(calls, [false, true, false], "a request that waits is no session");
    assert!(listed.iter().all(|info| info.origin == origin));
    assert_eq!(
        (
            sessions.count_of(subject.tenant),
            sessions.count_of(TenantId::new())
        ),
        (3, 0)
    );

    let stranger = EntityKey::device(TenantId::new(), device.id);
    assert_eq!(
        (sessions.list(stranger).len(), sessions.end(stranger, None)),
        (0, 0)
    );
    assert_eq!(sessions.end(subject, Some(listed[1].id)), 1);
    assert_eq!(second.control().close_reason(), Some(CloseReason::Administrator));
    assert_eq!(
        (first.control().close_reason(), poll.control().close_reason()),
        (None, None)
    );
    drop(second);
    assert_eq!(sessions.end(subject, Some(listed[1].id)), 0, "it is gone");
    assert_eq!(sessions.end(subject, None), 2);
    for control in [first.control(), third.control()] {
        assert_eq!(control.close_reason(), Some(CloseReason::Administrator));
    }
    assert_eq!(poll.control().close_reason(), Some(CloseReason::Administrator));
}
