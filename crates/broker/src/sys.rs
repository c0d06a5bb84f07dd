//! What the broker says of itself, on topics of `$SYS` as Mosquitto has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fieldline_codec::{PublishPacket, QoS};
use tokio::sync::watch;

use crate::broker::Broker;
use crate::message::BrokerMessage;
use crate::queue::MessageQueue;
use crate::session::BrokerSession;

/// Publishes the counters in intervals, until the broker stops.
pub(crate) async fn run(broker: Arc<Broker>, mut stop: watch::Receiver<bool>) {
    let interval = broker.options.sys_interval.0;
    if interval.is_zero() {
        return;
    }
    let started = Instant::now();
    let publisher = BrokerSession::new(0, "$SYS".into(), 0, MessageQueue::default());
    let mut ticks = tokio::time::interval(interval);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let mut messages = Vec::new();
        for (topic, value) in values(&broker, started) {
            let payload = value.into_bytes();
            let publish = PublishPacket {
                qos: QoS::AtMostOnce,
                retain: true,
                ..PublishPacket::new(topic, &payload)
            };
            let message = Arc::new(BrokerMessage::of(&publish, topic, broker.clock.now_ms()));
            messages.push((publisher.clone(), message));
        }
        broker.publish_own(&messages).await;
    }
}

fn values(broker: &Broker, started: Instant) -> [(&'static str, String); 12] {
    let stats = &broker.stats;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
    let sessions = broker.sessions.read().len() as u64;
    let connected = stats.connected.load(Ordering::Relaxed);
    [
        (
            "$SYS/broker/version",
            format!("fieldline {}", env!("CARGO_PKG_VERSION")),
        ),
        (
            "$SYS/broker/uptime",
            format!("{} seconds", started.elapsed().as_secs()),
        ),
        ("$SYS/broker/clients/connected", connected.to_string()),
        (
            "$SYS/broker/clients/disconnected",
            sessions.saturating_sub(connected).to_string(),
        ),
        ("$SYS/broker/clients/total", sessions.to_string()),
        (
            "$SYS/broker/retained messages/count",
            broker.retained.read().count().to_string(),
        ),
        ("$SYS/broker/publish/messages/received", count(&stats.received)),
        ("$SYS/broker/publish/messages/sent", count(&stats.sent)),
        ("$SYS/broker/publish/messages/dropped", count(&stats.dropped)),
        ("$SYS/broker/publish/messages/expired", count(&stats.expired)),
        ("$SYS/broker/publish/bytes/received", count(&stats.received_bytes)),
        ("$SYS/broker/publish/bytes/sent", count(&stats.sent_bytes)),
    ]
}
