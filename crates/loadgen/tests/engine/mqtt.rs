//! Loads over MQTT.

use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fieldline_codec::{QoS, ReasonCode};
use fieldline_loadgen::engine::{LoadEngine, LoadPace};

use crate::fake_server::{Said, Session, StandIn};
use crate::{mqtt_of, plan, run};

const OPEN: LoadPace = LoadPace::Open { per_second: 200.0 };

fn closed(in_flight: u16) -> LoadPace {
    LoadPace::Closed { in_flight }
}

#[test]
fn every_message_of_the_schedule_is_sent_and_carries_a_time_of_its_own() {
    let seen = Arc::new(Mutex::new(HashMap::<usize, Vec<i64>>::new()));
    let times = seen.clone();
    let mut server = StandIn::start(move |stream, number| {
        let mut session = Session::new(stream);
        session.let_in();
        while let Some(Said::Publish { id, payload, .. }) = session.hear() {
            let message: serde_json::Value = serde_json::from_slice(&payload).unwrap();
            let ts = message["ts"].as_i64().unwrap();
            times.lock().unwrap().entry(number).or_default().push(ts);
            session.puback(id.unwrap());
        }
    });
    let (totals, engine) = run(plan(server.address, mqtt_of(QoS::AtLeastOnce), 4, OPEN, 0.5));
    server.stop();
    assert_eq!((totals.sent, totals.failed, totals.unsent), (100, 0, 0));
    let (from, to) = engine.span();
    for times in seen.lock().unwrap().values() {
        assert_eq!(times.len(), 25);
        assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
        assert!(
            times.iter().all(|ts| (from..to).contains(ts)),
            "{from} {to} {times:?}"
        );
    }
    assert_eq!(seen.lock().unwrap().len(), 4);
}

#[test]
fn messages_are_dated_behind_what_was_sent_before() {
    let server = StandIn::start(|stream, _| {
        let mut session = Session::new(stream);
        session.let_in();
        while let Some(Said::Publish { id, .. }) = session.hear() {
            session.puback(id.unwrap());
        }
    });
    let mut plan = plan(server.address, mqtt_of(QoS::AtLeastOnce), 1, OPEN, 0.1);
    plan.not_before_ms = 4_000_000_000_000;
    let (totals, engine) = run(plan);
    let (from, to) = engine.span();
    assert!(from == 4_000_000_000_000 && to > from, "{from} {to}");
    assert!(totals.ahead_ms > 1_000_000_000, "{totals:?}");
}

#[test]
fn latency_counts_from_the_schedule_and_not_from_the_sending() {
    // The server reads nothing for a while, so that all messages of that time wait.
    const PAUSE: Duration = Duration::from_millis(300);
    let server = StandIn::start(|stream, _| {
        let mut session = Session::new(stream);
        session.let_in();
        let mut has_paused = false;
        while let Some(Said::Publish { id, .. }) = session.hear() {
            if !std::mem::replace(&mut has_paused, true) {
                thread::sleep(PAUSE);
            }
            session.puback(id.unwrap());
        }
    });
    let (totals, _) = run(plan(server.address, mqtt_of(QoS::AtLeastOnce), 1, OPEN, 0.4));
    assert_eq!((totals.sent, totals.acknowledged, totals.unsent), (80, 80, 0));
    let latency = totals.latency;
    assert!(latency.max as u128 >= PAUSE.as_micros(), "{latency:?}");
    // Of 80 messages, 60 were due within the pause, evenly.
    assert!(latency.p50 >= 75_000, "{latency:?}");
}

#[test]
fn messages_that_find_no_room_are_counted_as_unsent() {
    let mut plan = plan(
        StandIn::start(|_, _| {}).address,
        mqtt_of(QoS::AtLeastOnce),
        1,
        LoadPace::Open { per_second: 1_000.0 },
        0.2,
    );
    let server = StandIn::start(|stream, _| {
        let mut session = Session::new(stream);
        session.let_in();
        while session.hear().is_some() {}
    });
    plan.target = server.address;
    plan.reply_timeout = Duration::from_millis(100);
    let (totals, engine) = run(plan);
    // A connection has at most 64 messages in flight.
    assert_eq!((totals.sent, totals.unsent), (64, 136), "{totals:?}");
    assert_eq!(
        (totals.acknowledged, totals.failed, totals.unanswered),
        (0, 64, 64)
    );
    assert_eq!(engine.devices()[0].acknowledged, 0);
}

#[test]
fn acknowledgements_out_of_order_twice_or_of_nothing_are_matched() {
    let extra = Arc::new(AtomicU64::new(0));
    let counted = extra.clone();
    let mut server = StandIn::start(move |stream, _| {
        let mut session = Session::new(stream);
        session.let_in();
        while let (Some(Said::Publish { id: one, .. }), Some(Said::Publish { id: other, .. })) =
            (session.hear(), session.hear())
        {
            let (one, other) = (one.unwrap(), other.unwrap());
            // Sent before the first acknowledgement, so that the client still listens.
            session.puback(other);
            session.puback(other);
            session.puback(60_000);
            counted.fetch_add(2, Ordering::SeqCst);
            session.puback(one);
        }
    });
    let (totals, _) = run(plan(server.address, mqtt_of(QoS::AtLeastOnce), 1, closed(2), 0.3));
    server.stop();
    assert!(totals.sent > 0 && totals.failed == 0, "{totals:?}");
    assert_eq!(totals.unexpected, extra.load(Ordering::SeqCst));
}

#[test]
fn what_is_in_flight_on_a_lost_connection_fails_once_and_the_device_comes_back() {
    let (received, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (got, said) = (received.clone(), acknowledged.clone());
    let mut server = StandIn::start(move |stream, number| {
        let mut session = Session::new(stream);
        if !session.let_in() {
            return;
        }
        let mut count = 0;
        while let Some(Said::Publish { id, .. }) = session.hear() {
            got.fetch_add(1, Ordering::SeqCst);
            count += 1;
            // The first connection ends with three unanswered messages.
            if number == 0 && count > 10 {
                if count == 13 {
                    return;
                }
                continue;
            }
            session.puback(id.unwrap());
            said.fetch_add(1, Ordering::SeqCst);
        }
    });
    let (totals, engine) = run(plan(server.address, mqtt_of(QoS::AtLeastOnce), 1, closed(3), 1.5));
    server.stop();
    assert_eq!(
        (totals.failed, totals.lost, totals.unanswered),
        (3, 1, 0),
        "{totals:?}"
    );
    assert!(totals.first_loss.is_some());
    assert!(totals.acknowledged > 10, "it came back: {totals:?}");
    let device = engine.devices()[0];
    assert_eq!(
        u64::from(device.acknowledged),
        acknowledged.load(Ordering::SeqCst)
    );
    assert_eq!(u64::from(device.sent), received.load(Ordering::SeqCst));
}

#[test]
fn a_server_that_is_gone_is_tried_again_while_the_load_lasts() {
    // The server closes the first connection at once, and the second one before it accepts the device.
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let server = StandIn::start(move |stream, number| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut session = Session::new(stream);
        match number {
            0 => {
                session.let_in();
                session.hear();
            }
            1 => drop(session.hear()),
            _ => {
                session.let_in();
                while let Some(Said::Publish { id, .. }) = session.hear() {
                    session.puback(id.unwrap());
                }
            }
        }
    });
    let rate = LoadPace::Open { per_second: 20.0 };
    let (totals, _) = run(plan(server.address, mqtt_of(QoS::AtLeastOnce), 1, rate, 2.6));
    assert!(totals.lost == 1 && totals.failed > 0, "{totals:?}");
    assert_eq!(
        (totals.sent, totals.unsent),
        (52, 0),
        "what was due meanwhile was sent late: {totals:?}"
    );
    assert!(totals.latency.max > 1_000_000, "{totals:?}");
    assert!(opened.load(Ordering::SeqCst) == 3 && server.most_connections() == 1);
}

#[test]
fn qos_2_is_acknowledged_at_its_end() {
    let completed = Arc::new(AtomicU64::new(0));
    let count = completed.clone();
    let mut server = StandIn::start(move |stream, _| {
        let mut session = Session::new(stream);
        session.let_in();
        while let Some(said) = session.hear() {
            match said {
                Said::Publish { id, qos, .. } => {
                    assert_eq!(qos, QoS::ExactlyOnce);
                    session.pubrec(id.unwrap());
                }
                Said::Pubrel(id) => {
                    count.fetch_add(1, Ordering::SeqCst);
                    session.pubcomp(id);
                }
                Said::Disconnect => return,
                Said::Connect(_) => panic!("a second CONNECT"),
            }
        }
    });
    let (totals, _) = run(plan(server.address, mqtt_of(QoS::ExactlyOnce), 3, closed(4), 0.3));
    server.stop();
    assert!(totals.sent > 12 && totals.failed == 0, "it goes on: {totals:?}");
    assert_eq!(totals.acknowledged, completed.load(Ordering::SeqCst));
}

#[test]
fn qos_0_counts_what_the_system_has_taken_and_goes_on_by_itself() {
    for pace in [closed(2), OPEN] {
        let received = Arc::new(AtomicU64::new(0));
        let count = received.clone();
        let mut server = StandIn::start(move |stream, _| {
            let mut session = Session::new(stream);
            session.let_in();
            // Lets the sockets fill up first.
            thread::sleep(Duration::from_millis(100));
            while let Some(Said::Publish { qos, .. }) = session.hear() {
                assert_eq!(qos, QoS::AtMostOnce);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (totals, engine) = run(plan(server.address, mqtt_of(QoS::AtMostOnce), 2, pace, 0.3));
        server.stop();
        assert!(totals.acknowledged > 40 && totals.failed == 0, "{totals:?}");
        // All messages arrive, since the connections were closed in an orderly way.
        assert_eq!(totals.acknowledged, received.load(Ordering::SeqCst));
        let promised: u64 = engine.devices().iter().map(|it| u64::from(it.acknowledged)).sum();
        assert_eq!(promised, totals.acknowledged);
    }
}

#[test]
fn qos_0_demands_nothing_of_a_connection_that_was_lost() {
    let mut server = StandIn::start(|stream, number| {
        let mut session = Session::new(stream);
        session.let_in();
        for _ in 0..10 {
            if session.hear().is_none() {
                return;
            }
        }
        if number > 0 {
            while session.hear().is_some() {}
        }
        let _ = session.stream().shutdown(Shutdown::Both);
    });
    let (totals, engine) = run(plan(server.address, mqtt_of(QoS::AtMostOnce), 1, OPEN, 1.5));
    server.stop();
    assert_eq!(totals.lost, 1, "{totals:?}");
    let promised = u64::from(engine.devices()[0].acknowledged);
    assert!(
        promised > 0 && promised + 10 <= totals.acknowledged,
        "{promised} {totals:?}"
    );
}

#[test]
fn a_device_that_is_not_let_in_is_named_with_the_reason() {
    let server = StandIn::start(|stream, _| {
        let mut session = Session::new(stream);
        if matches!(session.hear(), Some(Said::Connect(token)) if token == "T0") {
            session.connack(ReasonCode::Success);
        } else {
            session.connack(ReasonCode::NotAuthorized);
        }
        while session.hear().is_some() {}
    });
    let protocol = || mqtt_of(QoS::AtLeastOnce);
    let mut engine = LoadEngine::new(plan(server.address, protocol(), 3, OPEN, 0.1)).unwrap();
    engine.connect(3, &mut |_| {}).unwrap();
    let (connected, refused, reason) = engine.connected();
    assert_eq!((connected, refused), (1, 2));
    assert!(reason.unwrap().contains("NotAuthorized"));
    drop(engine);

    let mut nobody = plan(server.address, protocol(), 1, OPEN, 0.1);
    nobody.tokens = vec!["X".to_owned()];
    let error = LoadEngine::new(nobody)
        .unwrap()
        .connect(1, &mut |_| {})
        .unwrap_err();
    assert!(error.to_string().contains("none of 1 connections"), "{error}");
}

#[test]
fn a_warm_up_lets_each_device_send_once() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let seen = received.clone();
    let mut server = StandIn::start(move |stream, number| {
        let mut session = Session::new(stream);
        session.let_in();
        while let Some(Said::Publish { id, payload, .. }) = session.hear() {
            seen.lock().unwrap().push((number, payload));
            session.puback(id.unwrap());
        }
    });
    let mut engine = LoadEngine::new(plan(server.address, mqtt_of(QoS::AtLeastOnce), 5, OPEN, 0.1)).unwrap();
    engine.connect(5, &mut |_| {}).unwrap();
    engine.warm_up(b"{\"a\":1}", 2).unwrap();
    let totals = engine.run(&mut |_| {}).unwrap();
    engine.disconnect();
    server.stop();
    assert_eq!(
        (totals.sent, totals.acknowledged),
        (20, 20),
        "the warm-up is not counted"
    );
    let received = received.lock().unwrap();
    let warm: Vec<_> = received
        .iter()
        .filter(|(_, payload)| payload == b"{\"a\":1}")
        .collect();
    assert_eq!((warm.len(), received.len()), (5, 25));
}
