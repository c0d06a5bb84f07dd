//! What the engine counts for each tenant and queue, kept as time series of the queue's statistics.

use std::collections::HashMap;

use fieldline_model::TenantId;

/// Counts of one tenant in one queue since they were last taken. The names are those of the stored series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct Counts {
    pub total: u64,
    pub successful: u64,
    pub tmp_timeout: u64,
    pub tmp_failed: u64,
    pub timeout: u64,
    pub failed: u64,
    pub successful_iterations: u64,
    pub failed_iterations: u64,
}

impl Counts {
    /// Name and value of each series.
    pub fn series(&self) -> [(&'static str, u64); 8] {
        [
            ("totalMsgs", self.total),
            ("successfulMsgs", self.successful),
            ("tmpTimeout", self.tmp_timeout),
            ("tmpFailed", self.tmp_failed),
            ("timeoutMsgs", self.timeout),
            ("failedMsgs", self.failed),
            ("successfulIterations", self.successful_iterations),
            ("failedIterations", self.failed_iterations),
        ]
    }

    /// Adds another one's counts.
    pub fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.successful += other.successful;
        self.tmp_timeout += other.tmp_timeout;
        self.tmp_failed += other.tmp_failed;
        self.timeout += other.timeout;
        self.failed += other.failed;
        self.successful_iterations += other.successful_iterations;
        self.failed_iterations += other.failed_iterations;
    }
}

/// Why the last message of a tenant failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// Name of the chain.
    pub chain: String,
    /// Name of the node.
    pub node: String,
    /// What went wrong.
    pub error: String,
}

/// Counts of all tenants in one queue.
#[derive(Debug, Default)]
pub struct QueueCounts {
    /// By tenant.
    pub tenants: HashMap<TenantId, (Counts, Option<LastFailure>)>,
}

impl QueueCounts {
    /// Counts of a tenant, to be added to.
    pub fn of(&mut self, tenant: TenantId) -> &mut (Counts, Option<LastFailure>) {
        self.tenants.entry(tenant).or_default()
    }
}
