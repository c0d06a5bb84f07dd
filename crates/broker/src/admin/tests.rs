use std::net::IpAddr;

use fieldline_core::ports::{BrokerClientType, BrokerCountOrder};
use fieldline_model::page::SortOrder;

use super::*;
use crate::options::Options;
use crate::queue::DeliveryOptions;
use crate::testing::{BrokerFixture, message, plain};

async fn clients(fixture: &BrokerFixture, filter: BrokerSessionFilter, link: PageLink) -> Vec<String> {
    let page = fixture.admin.sessions(filter, link).await.expect("a page");
    page.data
        .iter()
        .map(|row| String::from(&*row.client_id))
        .collect()
}

fn sorted(property: &str, order: SortOrder) -> PageLink {
    PageLink {
        sort_property: Some(property.to_owned()),
        sort_order: Some(order),
        ..PageLink::first(100)
    }
}

#[tokio::test]
async fn sessions_are_listed_filtered_and_sorted() {
    let fixture = BrokerFixture::new(Options::default());
    for client_id in ["b", "a", "app1"] {
        fixture.open(client_id, 60);
    }
    let away = fixture.open("away", 60);
    fixture.close(&away);
    fixture.subscribe("b", &["x/#", "y"]).await;

    let all = fixture
        .admin
        .sessions(BrokerSessionFilter::default(), PageLink::first(2));
    let all = all.await.expect("a page");
    assert_eq!((all.total_elements, all.has_next), (4, true));
    let first = &all.data[0];
    assert_eq!((&*first.client_id, first.is_connected), ("a", true));
    assert_eq!((first.connected_ms, first.disconnected_ms), (1_000, 0));
    assert_eq!(first.address, Some(IpAddr::from([192, 0, 2, 7])));

    let none = BrokerSessionFilter::default;
    for (filter, expected) in [
        (
            BrokerSessionFilter {
                is_connected: Some(false),
                ..none()
            },
            vec!["away"],
        ),
        (
            BrokerSessionFilter {
                client_type: Some(BrokerClientType::Application),
                ..none()
            },
            vec!["app1"],
        ),
        (
            BrokerSessionFilter {
                subscriptions: Some((BrokerCountOrder::GreaterOrEqual, 2)),
                ..none()
            },
            vec!["b"],
        ),
        (
            BrokerSessionFilter {
                address: Some("0.2.7".to_owned()),
                between_ms: Some((0, 1_000)),
                ..none()
            },
            vec!["a", "app1", "b"],
        ),
        (
            BrokerSessionFilter {
                clean_start: Some(true),
                ..none()
            },
            vec![],
        ),
    ] {
        assert_eq!(clients(&fixture, filter, PageLink::first(10)).await, expected);
    }
    let link = PageLink {
        text_search: Some("AW".to_owned()),
        ..PageLink::first(10)
    };
    assert_eq!(clients(&fixture, none(), link).await, ["away"]);
    let by_count = sorted("subscriptionsCount", SortOrder::Desc);
    assert_eq!(
        clients(&fixture, none(), by_count).await,
        ["b", "a", "app1", "away"]
    );
    let by_client = sorted("clientId", SortOrder::Desc);
    assert_eq!(
        clients(&fixture, none(), by_client).await,
        ["b", "away", "app1", "a"]
    );
    let unknown = fixture
        .admin
        .sessions(none(), sorted("colour", SortOrder::Asc))
        .await;
    assert!(
        matches!(unknown, Err(BrokerAdminError::Invalid(_))),
        "{unknown:?}"
    );
    let counts = fixture.admin.session_counts();
    assert_eq!((counts.connected, counts.disconnected), (3, 1));
}

#[tokio::test]
async fn a_list_of_many_sessions_has_each_once() {
    let fixture = BrokerFixture::new(Options::default());
    for number in 0..2_500 {
        fixture.open(&format!("client{number:04}"), 0);
    }
    let mut seen = Vec::new();
    for page in 0..3 {
        let link = PageLink {
            page,
            ..PageLink::first(1_000)
        };
        seen.extend(clients(&fixture, BrokerSessionFilter::default(), link).await);
    }
    let expected: Vec<_> = (0..2_500).map(|number| format!("client{number:04}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_session_is_shown_and_removed_only_while_its_client_is_away() {
    let fixture = BrokerFixture::new(Options::default());
    let opened = fixture.open("c", 60);
    fixture.subscribe("c", &["a/+"]).await;
    let shown = fixture.admin.session("c").expect("a session");
    assert_eq!(
        (shown.expiry_s, shown.keep_alive_s, shown.ends_ms),
        (60, 30, None)
    );
    assert_eq!(shown.username.as_deref(), Some("me"));
    assert_eq!(shown.mqtt_version, Some("5.0"));
    assert_eq!(shown.subscriptions, [plain("a/+", 1)]);
    let id = shown.info.session_id;
    assert_eq!(fixture.admin.session("d"), None);

    assert_eq!(
        fixture.admin.remove_session("c", Some(id)).await,
        Err(BrokerAdminError::Connected)
    );
    let other = Some(Uuid::new_v4());
    assert_eq!(
        fixture.admin.disconnect("c", other),
        Err(BrokerAdminError::NoSession)
    );
    assert_eq!(fixture.admin.disconnect("c", Some(id)), Ok(()));
    let link = opened.session.lock().link.as_ref().and_then(|link| link.close);
    assert_eq!(link, Some(ReasonCode::AdministrativeAction));

    fixture.close(&opened);
    let ends_ms = fixture.admin.session("c").and_then(|shown| shown.ends_ms);
    assert!(ends_ms.is_some_and(|at_ms| at_ms > 60_000));
    assert_eq!(fixture.admin.disconnect("c", Some(id)), Ok(()));
    assert_eq!(
        fixture.admin.remove_session("c", other).await,
        Err(BrokerAdminError::NoSession)
    );
    assert_eq!(fixture.admin.remove_session("c", Some(id)).await, Ok(()));
    assert_eq!(fixture.admin.session("c"), None);
    assert_eq!(fixture.broker.subscriptions.read().count(), 0);
}

#[tokio::test]
async fn subscriptions_are_replaced_and_found() {
    let fixture = BrokerFixture::new(Options::default());
    for client_id in ["a", "b", "app1"] {
        fixture.open(client_id, 60);
    }
    fixture.subscribe("a", &["x/#", "y"]).await;
    let precise = BrokerSubscription {
        no_local: true,
        retain_as_published: true,
        retain_handling: 2,
        id: Some(7),
        ..plain("x/y", 2)
    };
    let wanted = vec![precise.clone(), plain("y", 1)];
    assert_eq!(fixture.admin.replace_subscriptions("a", wanted).await, Ok(()));
    assert_eq!(
        fixture.admin.subscriptions_of("a"),
        [precise.clone(), plain("y", 1)]
    );
    assert!(fixture.admin.subscriptions_of("nobody").is_empty());
    for client_id in ["b", "app1"] {
        fixture
            .subscribe(client_id, &["$share/g/z/+", "z/1", "before"])
            .await;
    }

    let find = async |filter: BrokerSubscriptionFilter| {
        let link = sorted("topicFilter", SortOrder::Asc);
        let page = fixture.admin.subscriptions(filter, link).await.expect("a page");
        let rows = page.data.into_iter();
        rows.map(|row| format!("{} {}", row.client_id, row.subscription.filter))
            .collect::<Vec<_>>()
    };
    let none = BrokerSubscriptionFilter::default;
    assert_eq!(find(none()).await.len(), 8);
    let precisely = BrokerSubscriptionFilter {
        qos: vec![2],
        no_local: Some(true),
        retain_as_published: Some(true),
        retain_handling: vec![1, 2],
        id: Some(7),
        ..none()
    };
    assert_eq!(find(precisely).await, ["a x/y"]);
    let on_topic = BrokerSubscriptionFilter {
        topic: Some("z/1".to_owned()),
        client_id: Some("B".to_owned()),
        ..none()
    };
    assert_eq!(find(on_topic).await, ["b $share/g/z/+", "b z/1"]);
    let by_part = BrokerSubscriptionFilter {
        filter: Some("X/".to_owned()),
        ..none()
    };
    assert_eq!(find(by_part).await, ["a x/y"]);

    let groups = fixture
        .admin
        .share_groups(Some("G".to_owned()), None, PageLink::first(10));
    let groups = groups.await.expect("a page");
    let shown: Vec<_> = groups
        .data
        .iter()
        .map(|group| {
            (
                &*group.share_name,
                &*group.filter,
                group.client_type,
                group.members.len(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("g", "z/+", BrokerClientType::Application, 1),
            ("g", "z/+", BrokerClientType::Device, 1),
        ]
    );
    let of_b = fixture
        .admin
        .share_groups(None, Some("b".to_owned()), PageLink::first(10));
    assert_eq!(of_b.await.expect("a page").total_elements, 1);
}

#[tokio::test]
async fn subscriptions_that_make_no_sense_change_nothing() {
    let fixture = BrokerFixture::new(Options {
        max_subscriptions: 2,
        ..Options::default()
    });
    fixture.open("a", 60);
    fixture.subscribe("a", &["kept"]).await;
    let shared = BrokerSubscription {
        no_local: true,
        ..plain("$share/g/a", 0)
    };
    let without_id = BrokerSubscription {
        id: Some(0),
        ..plain("a", 0)
    };
    let handling = BrokerSubscription {
        retain_handling: 3,
        ..plain("a", 0)
    };
    for wanted in [
        vec![plain("a/#/b", 0)],
        vec![plain("a", 3)],
        vec![shared],
        vec![without_id],
        vec![handling],
        vec![plain("a", 0), plain("b", 0), plain("c", 0)],
    ] {
        let refused = fixture.admin.replace_subscriptions("a", wanted).await;
        assert!(
            matches!(refused, Err(BrokerAdminError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_eq!(fixture.admin.subscriptions_of("a"), [plain("kept", 1)]);
    let unknown = fixture.admin.replace_subscriptions("b", Vec::new()).await;
    assert_eq!(unknown, Err(BrokerAdminError::NoSession));
}

#[tokio::test]
async fn retained_messages_are_listed_and_deleted() {
    let fixture = BrokerFixture::new(Options::default());
    for (topic, payload, qos) in [
        ("b", "Two", QoS::AtLeastOnce),
        ("a", "one", QoS::AtMostOnce),
        ("c/d", "three", QoS::ExactlyOnce),
    ] {
        assert!(fixture.broker.retain(&message(topic, payload.as_bytes(), qos)));
    }
    let find = async |filter: BrokerRetainedFilter| {
        let page = fixture.admin.retained(filter, PageLink::first(10)).await;
        let rows = page.expect("a page").data.into_iter();
        rows.map(|row| String::from(row.topic)).collect::<Vec<_>>()
    };
    let none = BrokerRetainedFilter::default;
    assert_eq!(find(none()).await, ["a", "b", "c/d"]);
    let by_payload = BrokerRetainedFilter {
        payload: Some("tWO".to_owned()),
        between_ms: Some((5_000, 5_000)),
        ..none()
    };
    assert_eq!(find(by_payload).await, ["b"]);
    let by_qos = BrokerRetainedFilter {
        qos: vec![2, 0],
        topic: Some("C".to_owned()),
        ..none()
    };
    assert_eq!(find(by_qos).await, ["c/d"]);
    let later = BrokerRetainedFilter {
        between_ms: Some((5_001, i64::MAX)),
        ..none()
    };
    assert!(find(later).await.is_empty());

    let one = fixture.admin.retained_message("b").expect("a message");
    assert_eq!((&*one.payload, one.qos, one.created_ms), (&b"Two"[..], 1, 5_000));
    let property = (Box::<str>::from("a"), Box::<str>::from("b"));
    assert_eq!(one.user_properties, [property]);
    assert_eq!(fixture.admin.delete_retained("b").await, Ok(true));
    assert_eq!(fixture.admin.delete_retained("b").await, Ok(false));
    assert_eq!(fixture.admin.retained_message("b"), None);
    assert_eq!(fixture.admin.statistics().retained, 2);
}

#[tokio::test]
async fn messages_are_counted_for_their_clients() {
    let fixture = BrokerFixture::new(Options {
        queue_messages: 2,
        ..Options::default()
    });
    let opened = fixture.open("c", 60);
    fixture.subscribe("c", &["a"]).await;
    fixture.close(&opened);
    for _ in 0..3 {
        fixture.publish("a", b"1", QoS::AtLeastOnce);
    }
    let traffic = fixture.admin.client_traffic("c").expect("a session");
    assert_eq!((traffic.queued, traffic.dropped), (2, 1));
    opened.session.counters().count_received(QoS::ExactlyOnce);
    opened.session.counters().count_sent([0, 3, 0]);
    let traffic = fixture.admin.client_traffic("c").expect("a session");
    assert_eq!((traffic.received, traffic.sent), ([0, 0, 1], [0, 3, 0]));
    assert_eq!(fixture.admin.client_traffic("nobody"), None);
    let statistics = fixture.admin.statistics();
    assert_eq!((statistics.sessions, statistics.subscriptions), (1, 1));
    assert_eq!(statistics.dropped, 1);

    let minutes = fixture.broker.stats.minutes.subscribe();
    fixture.broker.keep_minute(59_000);
    assert_eq!(*minutes.borrow(), None);
    fixture.broker.keep_minute(60_100);
    let minute = (*minutes.borrow()).expect("a minute");
    assert_eq!((minute.at_ms, minute.subscriptions), (60_000, 1));
    assert_eq!(minute, fixture.admin.statistics());
}

/// What a restart has to bring back is stored and read again.
#[tokio::test]
async fn the_last_connection_is_known_after_a_restart() {
    let mut fixture = BrokerFixture::new(Options::default());
    let mut ids = Vec::new();
    for round in 0..3 {
        fixture = fixture.restarted().await;
        match round {
            0 => {
                let opened = fixture.open("c", 60);
                fixture.close(&opened);
                fixture.subscribe("c", &["a"]).await;
            }
            // From the journal, and from the store then.
            _ => fixture.checkpoint(),
        }
        let shown = fixture.admin.session("c").expect("a session");
        assert_eq!(shown.info.address, Some(IpAddr::from([192, 0, 2, 7])));
        assert_eq!((shown.keep_alive_s, shown.username.as_deref()), (30, Some("me")));
        assert_eq!(fixture.broker.subscriptions.read().count(), 1);
        ids.push(shown.info.session_id);
    }
    assert!(!ids[0].is_nil() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn messages_of_qos_0_that_do_not_fit_are_counted_for_their_client() {
    let fixture = BrokerFixture::new(Options {
        direct_messages: 1,
        ..Options::default()
    });
    let opened = fixture.open("c", 0);
    for _ in 0..3 {
        let options = DeliveryOptions {
            qos: QoS::AtMostOnce,
            retain: false,
            subscription_ids: Box::new([]),
        };
        let message = message("a", b"1", QoS::AtMostOnce);
        assert!(
            fixture
                .broker
                .enqueue(&opened.session, &message, options)
                .is_none()
        );
    }
    let traffic = fixture.admin.client_traffic("c").expect("a session");
    assert_eq!((traffic.queued, traffic.dropped), (1, 2));
}
