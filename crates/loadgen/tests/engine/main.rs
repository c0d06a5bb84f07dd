//! The event loop against servers whose behaviour each test defines.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::time::Duration;

use fieldline_codec::QoS;
use fieldline_loadgen::engine::{AlarmLoad, DeviceProtocol, LoadEngine, LoadPace, LoadPlan, LoadTotals};
use fieldline_loadgen::payload::PayloadKind;

mod fake_server;
mod http;
mod mqtt;
mod tls;

/// A load of that many devices, in the order of their numbers and without alarms.
fn plan(
    target: SocketAddr,
    protocol: DeviceProtocol,
    devices: usize,
    pace: LoadPace,
    seconds: f64,
) -> LoadPlan {
    LoadPlan {
        target,
        protocol,
        tokens: (0..devices).map(|number| format!("T{number}")).collect(),
        payload: PayloadKind::SmartMeter,
        attributes: false,
        pace,
        duration: Duration::from_secs_f64(seconds),
        alarms: AlarmLoad {
            per_second: 0.0,
            from: 0.0,
            until: 0.0,
        },
        sequential: true,
        seed: 0,
        opening: 10,
        not_before_ms: 0,
        reply_timeout: Duration::from_secs(30),
    }
}

fn mqtt_of(qos: QoS) -> DeviceProtocol {
    DeviceProtocol::Mqtt { qos, tls: None }
}

/// Connects, runs the load and disconnects; checks what holds for every load.
fn run(plan: LoadPlan) -> (LoadTotals, LoadEngine) {
    let mut engine = LoadEngine::new(plan).unwrap();
    let connections = engine.plan().connections();
    engine.connect(connections, &mut |_| {}).unwrap();
    let mut counted = (0, 0, 0);
    let totals = engine
        .run(&mut |interval| {
            counted.0 += interval.sent;
            counted.1 += interval.acknowledged;
            counted.2 += interval.failed;
        })
        .unwrap();
    engine.disconnect();
    assert_eq!(totals.sent, totals.acknowledged + totals.failed, "{totals:?}");
    assert_eq!(totals.latency.count, totals.acknowledged, "{totals:?}");
    assert_eq!(
        counted,
        (totals.sent, totals.acknowledged, totals.failed),
        "the intervals add up: {totals:?}"
    );
    let sent: u64 = engine.devices().iter().map(|device| u64::from(device.sent)).sum();
    assert_eq!(sent, totals.sent);
    (totals, engine)
}
