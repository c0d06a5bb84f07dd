//! Ports of what answers as a service does.

mod replay;
mod reprocess;

pub use replay::{NoRuleReplay, RuleReplay};
pub use reprocess::{FieldReprocess, NoFieldReprocess};
