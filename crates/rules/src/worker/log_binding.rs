//! Which states only mean something beside the log that they came from.

use uuid::Uuid;

use super::lane::LANE_STATE_OWNER;
use super::late_messages::NOTE_STATE_OWNER;
use super::marks::MARK_STATE_OWNER;

/// How a state is bound to the log whose records it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogBinding {
    /// Not at all: it belongs to its entity.
    None,
    /// It tells that effects of records were stored already, and is of no use once all records are stored.
    Records,
    /// It is work that waits, in the order of its positions in the log.
    Waiting,
}

/// Returns how states of a keeper are bound to the log.
pub fn log_binding(owner: Uuid) -> LogBinding {
    match owner {
        MARK_STATE_OWNER => LogBinding::Records,
        LANE_STATE_OWNER | NOTE_STATE_OWNER => LogBinding::Waiting,
        _ => LogBinding::None,
    }
}
