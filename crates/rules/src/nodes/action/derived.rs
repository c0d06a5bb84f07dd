//! Ids that are the same whenever a node handles the same message again.

use fieldline_model::RuleNodeId;
use uuid::Uuid;

use crate::message::derive_id;
use crate::nodes::derived::salt;

/// The `number`-th id that a node makes from a message.
pub(super) fn id(msg: Uuid, node: RuleNodeId, number: u64) -> Uuid {
    derive_id(msg, salt(node, number))
}
