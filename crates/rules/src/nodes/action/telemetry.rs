//! Nodes that save what messages say, or take it away: time series and attributes.

mod attributes;
mod delete;
mod fields;
#[cfg(test)]
mod tests;
mod timeseries;

use crate::node_types::NodeType;

pub(super) use attributes::configured_scope;

pub(crate) const NODES: &[NodeType] = &[timeseries::NODE, attributes::NODE, delete::NODE, fields::NODE];
