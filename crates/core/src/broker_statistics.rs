//! The series of what the MQTT broker counts, and the subject that has them. The subject is not stored: its id is always
//! the same.

use fieldline_model::{EntityKey, TenantId};

use crate::ports::BrokerStatistics;
use crate::queue_stats::{SERVICE_ID, stats_id};

/// Stands where other subjects have the name of a queue.
const NAME: &str = "MQTT broker";

/// The key under which the series are stored. There is one node, so all nodes together have no others.
pub fn subject() -> EntityKey {
    EntityKey {
        tenant: TenantId::NULL,
        entity: stats_id(TenantId::NULL, NAME, SERVICE_ID).into(),
    }
}

/// The statistics under the names that they have in TBMQ.
pub fn named(statistics: &BrokerStatistics) -> [(&'static str, u64); 9] {
    [
        ("incomingMsgs", statistics.incoming),
        ("outgoingMsgs", statistics.outgoing),
        ("droppedMsgs", statistics.dropped),
        ("sessions", statistics.sessions),
        ("subscriptions", statistics.subscriptions),
        ("retainedMsgs", statistics.retained),
        (
            "processedBytes",
            statistics.inbound_bytes + statistics.outbound_bytes,
        ),
        ("inboundPayloadTraffic", statistics.inbound_bytes),
        ("outboundPayloadTraffic", statistics.outbound_bytes),
    ]
}
