//! Loads over HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fieldline_loadgen::engine::{DeviceProtocol, LoadPace};

use crate::fake_server::StandIn;
use crate::{plan, run};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn users(users: usize) -> DeviceProtocol {
    DeviceProtocol::Http {
        host: "localhost".to_owned(),
        prefix: "/tb".to_owned(),
        users,
    }
}

/// Reads a request with its body, and returns its path; `None` at the end of the connection.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    loop {
        let head = text.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(head) = head {
            let lines = String::from_utf8(text[..head].to_vec()).unwrap();
            let length = lines
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .unwrap();
            if text.len() >= head + 4 + length.parse::<usize>().unwrap() {
                return lines.split(' ').nth(1).map(str::to_owned);
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(read) => text.extend_from_slice(&part[..read]),
        }
    }
}

#[test]
fn devices_take_turns_on_connections_that_are_kept() {
    for pace in [
        LoadPace::Closed { in_flight: 1 },
        LoadPace::Open { per_second: 60.0 },
    ] {
        let mut server = StandIn::start(|mut stream, _| {
            while let Some(path) = request(&mut stream) {
                assert!(
                    path.starts_with("/tb/api/v1/T") && path.ends_with("/telemetry"),
                    "{path}"
                );
                // Sends the response in two pieces.
                let _ = stream.write_all(&OK[..20]);
                let _ = stream.write_all(&OK[20..]);
            }
        });
        let (totals, engine) = run(plan(server.address, users(3), 7, pace, 2.0));
        server.stop();
        assert!(totals.acknowledged >= 120 && totals.failed == 0, "{totals:?}");
        if matches!(pace, LoadPace::Open { .. }) {
            assert_eq!((totals.sent, totals.unsent), (120, 0));
        }
        assert_eq!((totals.lost, server.most_connections()), (0, 3));
        let sent: Vec<_> = engine.devices().iter().map(|device| device.sent).collect();
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least <= 1, "{sent:?}");
    }
}

#[test]
fn latency_counts_from_the_schedule_where_all_users_wait() {
    let server = StandIn::start(|mut stream, _| {
        let mut has_paused = false;
        while request(&mut stream).is_some() {
            if !std::mem::replace(&mut has_paused, true) {
                thread::sleep(Duration::from_millis(300));
            }
            let _ = stream.write_all(OK);
        }
    });
    let rate = LoadPace::Open { per_second: 100.0 };
    let (totals, _) = run(plan(server.address, users(1), 2, rate, 0.4));
    // At the end, as many messages are sent as there is room for, and every other one is counted as unsent.
    assert_eq!(totals.sent + totals.unsent, 40, "{totals:?}");
    assert!(
        totals.latency.max >= 300_000 && totals.latency.p50 >= 75_000,
        "{totals:?}"
    );
}

#[test]
fn a_user_without_an_answer_sends_nothing_further() {
    let server = StandIn::start(|mut stream, _| while request(&mut stream).is_some() {});
    let mut plan = plan(
        server.address,
        users(2),
        2,
        LoadPace::Open { per_second: 100.0 },
        0.2,
    );
    plan.reply_timeout = Duration::from_millis(100);
    let (totals, _) = run(plan);
    assert_eq!((totals.sent, totals.unsent), (2, 18), "{totals:?}");
    assert_eq!((totals.failed, totals.unanswered), (2, 2));
}

#[test]
fn connections_that_the_server_ends_after_an_answer_are_opened_again_at_once() {
    for pace in [
        LoadPace::Closed { in_flight: 1 },
        LoadPace::Open { per_second: 200.0 },
    ] {
        let answered = Arc::new(AtomicU64::new(0));
        let count = answered.clone();
        let mut server = StandIn::start(move |mut stream, _| {
            if request(&mut stream).is_some() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(LAST);
            }
        });
        let (totals, _) = run(plan(server.address, users(4), 4, pace, 0.4));
        server.stop();
        assert_eq!(
            (totals.failed, totals.lost, totals.unsent),
            (0, 0, 0),
            "{totals:?}"
        );
        assert!(totals.acknowledged >= 40, "{totals:?}");
        assert_eq!(totals.acknowledged, answered.load(Ordering::SeqCst));
    }
}

#[test]
fn requests_on_connections_that_break_fail_once_and_the_users_come_back_one_connection_each() {
    let received = Arc::new(AtomicU64::new(0));
    let count = received.clone();
    let mut server = StandIn::start(move |mut stream, number| {
        let mut answers = 0;
        while request(&mut stream).is_some() {
            count.fetch_add(1, Ordering::SeqCst);
            answers += 1;
            // The first two connections break during their third request.
            if number < 2 && answers == 3 {
                return;
            }
            let _ = stream.write_all(OK);
        }
    });
    let pace = LoadPace::Open { per_second: 100.0 };
    let (totals, engine) = run(plan(server.address, users(2), 3, pace, 1.6));
    server.stop();
    assert_eq!((totals.failed, totals.lost), (2, 2), "{totals:?}");
    assert!(
        totals.sent + totals.unsent == 160 && totals.sent > 10,
        "{totals:?}"
    );
    assert_eq!(totals.sent, received.load(Ordering::SeqCst));
    assert!(server.most_connections() <= 2);
    for device in engine.devices() {
        assert!(device.acknowledged <= device.sent);
    }
}

#[test]
fn refused_messages_fail_and_the_first_reason_is_kept() {
    let server = StandIn::start(|mut stream, _| {
        let mut count = 0;
        while request(&mut stream).is_some() {
            count += 1;
            let _ = match count % 2 {
                0 => stream.write_all(OK),
                _ => stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy"),
            };
        }
    });
    let pace = LoadPace::Closed { in_flight: 1 };
    let (totals, _) = run(plan(server.address, users(1), 1, pace, 0.2));
    assert!(
        totals.failed > 0 && totals.failed.abs_diff(totals.acknowledged) <= 1,
        "{totals:?}"
    );
    assert_eq!(totals.first_failure.as_deref(), Some("HTTP 503"));
}
