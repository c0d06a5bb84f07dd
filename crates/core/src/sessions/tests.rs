use super::*;
use crate::devices::{DeviceDirectory, Options};
use crate::downlink::AttributeUpdate;
use crate::fakes::{FakeStores, StandingClock};

async fn device() -> Arc<DeviceHandle> {
    let stores = FakeStores::new();
    stores.add_device("token");
    let clock = Arc::new(StandingClock(0.into()));
    let options = Options { cached_devices: 16 };
    let directory = DeviceDirectory::new(stores.entities(), stores.clone(), clock, &options);
    let found = directory.by_token("token").await.expect("the store serves");
    found.expect("the token admits")
}

fn update(bytes: usize) -> Downlink {
    Downlink::Attributes(Arc::new(AttributeUpdate::Saved(vec![0; bytes].into())))
}

#[tokio::test]
async fn a_session_ends_once_and_tells_whether_it_was_the_last() {
    let device = device().await;
    let sessions = Sessions::new(2);
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
    let sessions = Sessions::new(2);
    let [eager, other] =
        std::array::from_fn(|_| sessions.open(device.clone(), Arc::new(SessionControl::default())));
    assert_eq!(sessions.send(device.subject, &update(10)), 0);
    eager.control().want(Wants::ATTRIBUTES);
    other.control().want(Wants::CALLS);
    assert_eq!(sessions.send(device.subject, &update(10)), 1);
    assert!(eager.control().has_letters() && !other.control().has_letters());
    let letter = eager.control().take_letter().expect("something waits");
    assert!(matches!(
        letter.content,
        Content::Downlink(Downlink::Attributes(_))
    ));
    assert!(!eager.control().has_letters() && eager.control().take_letter().is_none());

    while sessions.send(device.subject, &update(10_000)) == 1 {}
    assert_eq!(eager.control().close_reason(), Some(CloseReason::TooSlow));
    assert_eq!(other.control().close_reason(), None);
    // What it has not taken is bounded, and given back with it.
    let mut held = 0;
    while eager.control().take_letter().is_some() {
        held += 10_000;
    }
    assert!((100_000..=control::MAX_WAITING).contains(&held));
}

#[tokio::test]
async fn a_poll_takes_one_thing_and_is_no_session_of_the_device() {
    let device = device().await;
    let sessions = Sessions::new(1);
    let connection = sessions.open(device.clone(), Arc::new(SessionControl::default()));
    let poll = sessions.poll(device.clone());
    poll.control().want(Wants::ATTRIBUTES);
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
    let sessions = Sessions::new(1);
    let gateway = Arc::new(SessionControl::default());
    let behind = Arc::new(SessionControl::behind(gateway.clone(), "meter".into()));
    behind.want(Wants::ATTRIBUTES);
    let _guard = sessions.open(device.clone(), behind);
    assert_eq!(sessions.send(device.subject, &update(1)), 1);
    let letter = gateway.take_letter().expect("something waits");
    assert_eq!(letter.to.as_deref(), Some("meter"));
    sessions.close_device(device.id, CloseReason::CredentialsChanged);
    let letter = gateway.take_letter().expect("something waits");
    assert!(matches!(
        letter.content,
        Content::Close(CloseReason::CredentialsChanged)
    ));
    assert_eq!(gateway.close_reason(), None);
}
