//! The plan of a load for the event loop.

use std::net::SocketAddr;
use std::time::Duration;

use fieldline_codec::QoS;

use super::socket::ClientTls;
use crate::payload::PayloadKind;

/// A load.
pub struct LoadPlan {
    /// The server.
    pub target: SocketAddr,
    /// The protocol of the devices.
    pub protocol: DeviceProtocol,
    /// Access tokens of the devices. Over MQTT, each device has a connection of its own.
    pub tokens: Vec<String>,
    /// The payload of a message.
    pub payload: PayloadKind,
    /// Whether messages are sent as attributes instead of telemetry.
    pub attributes: bool,
    /// The pace of sending.
    pub pace: LoadPace,
    /// Length of the load.
    pub duration: Duration,
    /// Messages that raise an alarm.
    pub alarms: AlarmLoad,
    /// Whether devices send in the order of their numbers, instead of a shuffled order.
    pub sequential: bool,
    /// Seed of all random choices.
    pub seed: u64,
    /// Connections opened at a time.
    pub opening: usize,
    /// Earliest timestamp of a message, in milliseconds since 1970: earlier messages of the devices lie before it.
    pub not_before_ms: i64,
    /// How long to wait for acknowledgements after the load, and for connections before it.
    pub reply_timeout: Duration,
}

/// The protocol between devices and server.
#[derive(Clone)]
pub enum DeviceProtocol {
    /// MQTT 3.1.1.
    Mqtt {
        /// Quality of service.
        qos: QoS,
        /// TLS, if any.
        tls: Option<ClientTls>,
    },
    /// HTTP/1.1 over persistent connections.
    Http {
        /// Host and port as requests name them.
        host: String,
        /// Path before `/api/v1`, usually empty.
        prefix: String,
        /// Number of connections, one for each concurrent user.
        users: usize,
    },
}

/// The pace of sending.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadPace {
    /// That many messages a second in total, even if the server is slower; latency counts from the scheduled time.
    Open {
        /// Messages a second.
        per_second: f64,
    },
    /// Sends as soon as fewer than that many messages of a connection are unacknowledged. With QoS 0, which has no
    /// acknowledgements, as soon as the system accepts more.
    Closed {
        /// Messages in flight on a connection; one over HTTP.
        in_flight: u16,
    },
}

/// Messages that raise an alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlarmLoad {
    /// Messages a second.
    pub per_second: f64,
    /// Second of the load from which alarms are raised.
    pub from: f64,
    /// Second of the load until which alarms are raised.
    pub until: f64,
}

impl LoadPlan {
    /// The number of connections.
    pub fn connections(&self) -> usize {
        match &self.protocol {
            DeviceProtocol::Mqtt { .. } => self.tokens.len(),
            DeviceProtocol::Http { users, .. } => *users,
        }
    }

    /// Whether a message counts as acknowledged once the system has accepted it, because no reply follows.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(
            &self.protocol,
            DeviceProtocol::Mqtt {
                qos: QoS::AtMostOnce,
                ..
            }
        )
    }

    /// Messages that an open loop must have sent by the time `now`, if the first one is sent at 0.
    pub(super) fn due(&self, per_second: f64, now: Duration) -> u64 {
        let by_now = (now.as_secs_f64() * per_second).floor() + 1.0;
        let in_all = (self.duration.as_secs_f64() * per_second).ceil();
        by_now.min(in_all) as u64
    }

    /// Keep-alive in seconds: a device promises the server to send something within this time.
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
