//! Names of the device servers' metrics.

use ::metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};
use fieldline_core::logging::LogGate;
use fieldline_devices::directory::MessageRefusal;
use fieldline_model::DeviceId;
use tracing::info;

static LIMITED_GATE: LogGate = LogGate::new(5);

const CONNECTIONS: &str = "fieldline_transport_connections";
const ACCEPTED: &str = "fieldline_transport_accepted_connections_total";
const MESSAGES: &str = "fieldline_transport_messages_total";
const REJECTED: &str = "fieldline_transport_rejected_messages_total";
const REFUSED_LOGINS: &str = "fieldline_transport_refused_logins_total";
const LIMITED: &str = "fieldline_transport_limited_messages_total";
const REFUSED_APPENDS: &str = "fieldline_transport_refused_appends_total";

/// Describes the metrics to the recorder; call once at start.
pub fn describe() {
    describe_gauge!(CONNECTIONS, "Open device connections");
    describe_counter!(ACCEPTED, "Device connections accepted since the start");
    describe_counter!(MESSAGES, "Device messages taken into the journal");
    describe_counter!(REJECTED, "Device messages that failed validation");
    describe_counter!(REFUSED_LOGINS, "Log-ins with unknown or wrong credentials");
    describe_counter!(
        LIMITED,
        "Device messages that went beyond a limit, by whose it is"
    );
    describe_counter!(
        REFUSED_APPENDS,
        "Device messages that the journal did not take or did not acknowledge"
    );
}

/// The metrics of one device server, looked up once.
pub(crate) struct TransportMetrics {
    pub(crate) messages: Counter,
    pub(crate) rejected: Counter,
    pub(crate) refused_logins: Counter,
    pub(crate) refused_appends: Counter,
    transport: &'static str,
}

impl TransportMetrics {
    pub(crate) fn of(transport: &'static str) -> Self {
        Self {
            messages: counter!(MESSAGES, "transport" => transport),
            rejected: counter!(REJECTED, "transport" => transport),
            refused_logins: counter!(REFUSED_LOGINS, "transport" => transport),
            refused_appends: counter!(REFUSED_APPENDS, "transport" => transport),
            transport,
        }
    }

    /// Counts a message that exceeds a limit, and logs the device and the limit.
    pub(crate) fn count_limited(&self, device: DeviceId, refused: &MessageRefusal) {
        let limit = match refused {
            MessageRefusal::UsedUp => "usage",
            MessageRefusal::TooOften(whose, _) => whose.name(),
        };
        self.rejected.increment(1);
        counter!(LIMITED, "transport" => self.transport, "limit" => limit).increment(1);
        if let Some(suppressed) = LIMITED_GATE.open() {
            info!(%device, reason = %refused, suppressed, "a message of a device was not taken");
        }
    }
}

/// The metrics of a device server that keeps connections.
pub(crate) struct ConnectionMetrics {
    pub(crate) open: Gauge,
    pub(crate) accepted: Counter,
}

impl ConnectionMetrics {
    pub(crate) fn of(transport: &'static str) -> Self {
        Self {
            open: gauge!(CONNECTIONS, "transport" => transport),
            accepted: counter!(ACCEPTED, "transport" => transport),
        }
    }
}
