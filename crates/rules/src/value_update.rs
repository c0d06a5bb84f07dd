//! What calculated fields and alarm rules are told.

use fieldline_model::EntityKey;
use fieldline_model::timeseries::AttributeScope;

use crate::message::RuleMessage;

/// Values that have changed.
#[derive(Debug, Clone, Copy)]
pub struct ValueUpdate<'a> {
    /// Whose they are.
    pub subject: EntityKey,
    /// What they are.
    pub values: UpdatedValues<'a>,
    /// The message that has changed them.
    pub msg: &'a RuleMessage,
}

/// Which values have changed.
#[derive(Debug, Clone, Copy)]
pub enum UpdatedValues<'a> {
    /// Values of one time, packed.
    Telemetry {
        /// Their time, milliseconds.
        ts: i64,
        /// Packed as in [`fieldline_model::kv`].
        values: &'a [u8],
    },
    /// Attributes of a scope, packed.
    Attributes {
        /// Their scope.
        scope: AttributeScope,
        /// Packed as in [`fieldline_model::kv`].
        values: &'a [u8],
    },
    /// Attributes of a scope that are gone.
    AttributesDeleted {
        /// Their scope.
        scope: AttributeScope,
        /// Their names.
        keys: &'a [String],
    },
}
