//! What the nodes of rule chains have done, as shown to those who edit them.

use fieldline_model::{RuleChainId, RuleNodeId, TenantId};

/// Counters of one rule node since it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleNodeCounters {
    /// The node.
    pub id: RuleNodeId,
    /// How long it has been counted, milliseconds.
    pub age_ms: u64,
    /// Messages that came to it.
    pub input: u64,
    /// Messages that left it, by the label of its connections; those without a connection are not there.
    pub output: Vec<(Box<str>, u64)>,
    /// Messages that failed there.
    pub failures: u64,
    /// Time that it took of its queue's thread, microseconds, estimated from some of its runs.
    pub time_us: u64,
    /// Why the last message failed there, and how long ago, milliseconds.
    pub last_failure: Option<(Box<str>, u64)>,
}

/// Reads the counters of rule nodes.
pub trait RuleCounterSource: Send + Sync {
    /// The counters of a chain's nodes; `None` while the chain is not loaded.
    fn of_chain(&self, tenant: TenantId, chain: RuleChainId) -> Option<Vec<RuleNodeCounters>>;
}

/// For programs without a rule engine.
pub struct NoRuleCounters;

impl RuleCounterSource for NoRuleCounters {
    fn of_chain(&self, _: TenantId, _: RuleChainId) -> Option<Vec<RuleNodeCounters>> {
        None
    }
}
