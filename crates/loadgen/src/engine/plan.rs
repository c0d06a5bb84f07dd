//! What the event loop is asked to do.

use std::net::SocketAddr;
use std::time::Duration;

use fieldline_codec::QoS;

use super::socket::ClientTls;
use crate::payload::PayloadKind;

/// A load.
pub struct LoadPlan {
    /// The server.
    pub target: SocketAddr,
    /// How devices talk to it.
    pub protocol: DeviceProtocol,
    /// Access tokens of the devices. Over MQTT each has a connection of its own.
    pub tokens: Vec<String>,
    /// What they send.
    pub payload: PayloadKind,
    /// Whether it is sent as attributes instead of telemetry.
    pub attributes: bool,
    /// When they send.
    pub pace: LoadPace,
    /// How long.
    pub duration: Duration,
    /// Messages that raise an alarm.
    pub alarms: AlarmLoad,
    /// Devices in the order of their numbers instead of a shuffled one.
    pub sequential: bool,
    /// Start of all random choices.
    pub seed: u64,
    /// Connections that are opened at a time.
    pub opening: usize,
    /// No message has an earlier time than this, in milliseconds since 1970: what devices have sent before lies before it.
    pub not_before_ms: i64,
    /// How long acknowledgements are waited for after the load, and connections before it.
    pub reply_timeout: Duration,
}

/// How devices talk to the server.
#[derive(Clone)]
pub enum DeviceProtocol {
    /// MQTT 3.1.1.
    Mqtt {
        /// Quality of service.
        qos: QoS,
        /// TLS, if any.
        tls: Option<ClientTls>,
    },
    /// HTTP/1.1 over connections that are kept.
    Http {
        /// Host and port as requests name them.
        host: String,
        /// Path before `/api/v1`, mostly none.
        prefix: String,
        /// Connections, that is users at a time.
        users: usize,
    },
}

/// When messages are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadPace {
    /// That many a second in all, whatever the server does; latency counts from the scheduled time.
    Open {
        /// Messages a second.
        per_second: f64,
    },
    /// As soon as fewer than that many of a connection are unacknowledged. With QoS 0, which acknowledges nothing, as soon as
    /// the system takes more.
    Closed {
        /// Messages in flight on a connection; one over HTTP.
        in_flight: u16,
    },
}

/// Messages that raise an alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlarmLoad {
    /// A second.
    pub per_second: f64,
    /// From this second of the load on.
    pub from: f64,
    /// Until this second.
    pub until: f64,
}

impl LoadPlan {
    /// How many connections it takes.
    pub fn connections(&self) -> usize {
        match &self.protocol {
            DeviceProtocol::Mqtt { .. } => self.tokens.len(),
            DeviceProtocol::Http { users, .. } => *users,
        }
    }

    /// Whether a message counts as acknowledged once the system has taken it, because no answer comes.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(
            &self.protocol,
            DeviceProtocol::Mqtt {
                qos: QoS::AtMostOnce,
                ..
            }
        )
    }

    /// Messages that an open loop has to send by the time `now`, the time of the first one being 0.
    pub(super) fn due(&self, per_second: f64, now: Duration) -> u64 {
        let by_now = (now.as_secs_f64() * per_second).floor() + 1.0;
        let in_all = (self.duration.as_secs_f64() * per_second).ceil();
        by_now.min(in_all) as u64
    }

    /// Seconds within which a device sends something, as it promises the server.
    pub(super) fn keep_alive(&self) -> u16 {
        let between = match self.pace {
            LoadPace::Open { per_second } => self.tokens.len() as f64 / per_second.max(0.001),
            LoadPace::Closed { .. } => 0.0,
        };
        (between * 3.0).clamp(600.0, f64::from(u16::MAX)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_ends_before_the_end_of_the_load() {
        let plan = |seconds: f64| LoadPlan {
            target: SocketAddr::from(([127, 0, 0, 1], 1)),
            protocol: DeviceProtocol::Mqtt {
                qos: QoS::AtLeastOnce,
                tls: None,
            },
            tokens: Vec::new(),
            payload: PayloadKind::SmartMeter,
            attributes: false,
            pace: LoadPace::Open { per_second: 10.0 },
            duration: Duration::from_secs_f64(seconds),
            alarms: AlarmLoad {
                per_second: 0.0,
                from: 0.0,
                until: 0.0,
            },
            sequential: true,
            seed: 0,
            opening: 1,
            not_before_ms: 0,
            reply_timeout: Duration::ZERO,
        };
        let due = |seconds, now| plan(seconds).due(10.0, Duration::from_secs_f64(now));
        assert_eq!([due(2.0, 0.0), due(2.0, 0.05), due(2.0, 0.1)], [1, 1, 2]);
        assert_eq!([due(2.0, 1.95), due(2.0, 2.0), due(2.0, 9.0)], [20, 20, 20]);
        assert_eq!([due(0.05, 0.0), due(0.25, 1.0)], [1, 3]);
    }
}
