//! Which states only mean something beside the log that they came from.

use uuid::Uuid;

use super::lane::LANE_STATE_OWNER;
use super::late_messages::NOTE_STATE_OWNER;
use super::marks::MARK_STATE_OWNER;

/// Whether states of a keeper are work that goes on: messages that wait in the order of their positions in a log, or what
/// tells that effects of a record are stored already. Both are gone once the work is done.
pub fn is_bound_to_log(owner: Uuid) -> bool {
    [MARK_STATE_OWNER, LANE_STATE_OWNER, NOTE_STATE_OWNER].contains(&owner)
}
