//! What calculated fields and alarm rules are told.

use fieldline_model::Subject;
use fieldline_model::timeseries::AttributeScope;

use crate::message::Msg;

/// Values that have changed.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// Whose they are.
    pub subject: Subject,
    /// What they are.
    pub what: What<'a>,
    /// The message that has changed them.
    pub msg: &'a Msg,
}

/// Which values have changed.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
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
