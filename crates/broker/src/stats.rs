//! What the broker counts.

use std::sync::atomic::{AtomicU64, Ordering};

use fieldline_core::ports::BrokerStatistics;
use parking_lot::Mutex;
use tokio::sync::watch;

const MINUTE_MS: i64 = 60_000;
/// A clock that is set back by more has been wrong, and its minutes count for nothing.
const SET_BACK_MS: i64 = 3_600_000;

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct BrokerStats {
    /// Messages received from clients.
    pub(crate) received: AtomicU64,
    /// Bytes of their payloads.
    pub(crate) received_bytes: AtomicU64,
    /// Messages sent to clients.
    pub(crate) sent: AtomicU64,
    /// Bytes of their payloads.
    pub(crate) sent_bytes: AtomicU64,
    /// Messages that nobody had subscribed to.
    pub(crate) unsubscribed: AtomicU64,
    /// Messages dropped for a client because its queue was full.
    pub(crate) dropped: AtomicU64,
    /// Messages that expired before they were sent.
    pub(crate) expired: AtomicU64,
    /// How often a publisher had to wait until a subscriber had room.
    pub(crate) held: AtomicU64,
    /// Clients that are connected.
    pub(crate) connected: AtomicU64,
    /// Log-ins that were refused.
    pub(crate) refused: AtomicU64,
    /// The statistics of each minute, once it is over.
    pub(crate) minutes: watch::Sender<Option<BrokerStatistics>>,
    minute: Mutex<MinuteCounters>,
}

/// The traffic of the last minute of the clock that is over.
#[derive(Debug, Default)]
struct MinuteCounters {
    /// When the present minute has begun, and what was counted then.
    began: Option<BrokerStatistics>,
    last: Option<BrokerStatistics>,
}

fn difference(now: &BrokerStatistics, before: &BrokerStatistics) -> BrokerStatistics {
    BrokerStatistics {
        at_ms: now.at_ms,
        incoming: now.incoming - before.incoming,
        outgoing: now.outgoing - before.outgoing,
        dropped: now.dropped - before.dropped,
        inbound_bytes: now.inbound_bytes - before.inbound_bytes,
        outbound_bytes: now.outbound_bytes - before.outbound_bytes,
        ..BrokerStatistics::default()
    }
}

/// The names of the counters in the metrics, with what they say.
const METRICS: [(&str, &str); 9] = [
    (
        "broker_received_messages_total",
        "Messages that clients of the broker have published",
    ),
    (
        "broker_received_bytes_total",
        "Bytes of the payloads that clients of the broker have published",
    ),
    (
        "broker_sent_messages_total",
        "Messages sent to clients of the broker",
    ),
    (
        "broker_sent_bytes_total",
        "Bytes of the payloads sent to clients of the broker",
    ),
    (
        "broker_unsubscribed_messages_total",
        "Messages that nobody had subscribed to",
    ),
    (
        "broker_dropped_messages_total",
        "Messages dropped because the queue of their client was full",
    ),
    (
        "broker_expired_messages_total",
        "Messages that expired before they were sent",
    ),
    (
        "broker_held_publishers_total",
        "Times that a client had to wait with what it publishes until a subscriber had room",
    ),
    (
        "broker_refused_logins_total",
        "Log-ins that the broker has refused",
    ),
];

impl BrokerStats {
    /// Describes the metrics.
    pub(crate) fn describe() {
        for (name, what) in METRICS {
            metrics::describe_counter!(name, what);
        }
        metrics::describe_gauge!("broker_connected_clients", "Clients connected to the broker");
        metrics::describe_gauge!(
            "broker_sessions",
            "Sessions, those of clients that are away included"
        );
        metrics::describe_gauge!("broker_retained_messages", "Retained messages");
    }

    fn traffic(&self, at_ms: i64) -> BrokerStatistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BrokerStatistics {
            at_ms,
            incoming: count(&self.received),
            outgoing: count(&self.sent),
            dropped: count(&self.dropped) + count(&self.unsubscribed),
            inbound_bytes: count(&self.received_bytes),
            outbound_bytes: count(&self.sent_bytes),
            ..BrokerStatistics::default()
        }
    }

    /// Ends the minute if it is over by the clock; returns whether it was.
    pub(crate) fn keep_minute(&self, now_ms: i64) -> bool {
        let mut minute = self.minute.lock();
        let began = *minute.began.get_or_insert_with(|| self.traffic(now_ms));
        let over_ms = now_ms - now_ms.rem_euclid(MINUTE_MS);
        // A clock that was set back comes by minutes that have ended once: what is counted meanwhile belongs to the next one.
        let ended_ms = minute.last.map_or(i64::MIN, |last| last.at_ms);
        let has_ended = (ended_ms.saturating_sub(SET_BACK_MS)..=ended_ms).contains(&over_ms);
        if over_ms > began.at_ms && !has_ended {
            let now = self.traffic(over_ms);
            minute.last = Some(difference(&now, &began));
            minute.began = Some(now);
            return true;
        }
        // The clock was set back. By less than a minute, this one only takes longer: to end the same one twice would put
        // little in the place of what it has.
        if now_ms < began.at_ms - MINUTE_MS {
            minute.began = Some(BrokerStatistics {
                at_ms: now_ms,
                ..began
            });
        }
        false
    }

    /// The traffic of the last minute that is over; in the first one, that since the start.
    pub(crate) fn last_minute(&self, now_ms: i64) -> BrokerStatistics {
        let last = self.minute.lock().last;
        last.unwrap_or_else(|| self.traffic(now_ms))
    }

    /// Reports the counters.
    pub(crate) fn report(&self, sessions: usize, retained: usize) {
        let counters = [
            &self.received,
            &self.received_bytes,
            &self.sent,
            &self.sent_bytes,
            &self.unsubscribed,
            &self.dropped,
            &self.expired,
            &self.held,
            &self.refused,
        ];
        for ((name, _), counter) in METRICS.iter().zip(counters) {
            metrics::counter!(*name).absolute(counter.load(Ordering::Relaxed));
        }
        metrics::gauge!("broker_connected_clients").set(self.connected.load(Ordering::Relaxed) as f64);
        metrics::gauge!("broker_sessions").set(sessions as f64);
        metrics::gauge!("broker_retained_messages").set(retained as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_that_of_the_last_minute_of_the_clock() {
        let stats = BrokerStats::default();
        assert!(!stats.keep_minute(1_000));
        stats.received.store(5, Ordering::Relaxed);
        assert!(!stats.keep_minute(59_999));
        assert_eq!(stats.last_minute(59_999).incoming, 5);
        assert!(stats.keep_minute(60_200));
        stats.received.store(7, Ordering::Relaxed);
        let last = stats.last_minute(70_000);
        assert_eq!((last.incoming, last.at_ms), (5, 60_000));
        assert!(!stats.keep_minute(119_999));
        assert!(stats.keep_minute(120_000));
        let last = stats.last_minute(120_000);
        assert_eq!((last.incoming, last.at_ms), (2, 120_000));
    }

    #[test]
    fn a_clock_that_is_set_back_loses_no_traffic() {
        let stats = BrokerStats::default();
        stats.keep_minute(600_000);
        assert!(stats.keep_minute(660_000));
        stats.received.store(3, Ordering::Relaxed);
        assert!(
            !stats.keep_minute(659_000) && !stats.keep_minute(661_000),
            "ended twice"
        );
        assert!(stats.keep_minute(720_000));
        assert_eq!(stats.last_minute(720_000).incoming, 3);
        stats.received.store(8, Ordering::Relaxed);
        for ended_ms in [100_000, 120_000, 660_000, 720_000] {
            assert!(!stats.keep_minute(ended_ms), "{ended_ms}: it has its point");
        }
        assert!(stats.keep_minute(780_000));
        assert_eq!(stats.last_minute(780_000).incoming, 5);

        // It has been wrong.
        assert!(stats.keep_minute(36_000_000));
        stats.received.store(10, Ordering::Relaxed);
        assert!(!stats.keep_minute(100_000));
        assert!(stats.keep_minute(120_000));
        let last = stats.last_minute(120_000);
        assert_eq!((last.incoming, last.at_ms), (2, 120_000));
    }
}
