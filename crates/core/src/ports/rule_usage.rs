//! What tenants use of the rule engine, as it is shown to them and to the operator.

use fieldline_model::{EntityId, TenantId};

/// What somebody has used of the rule engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleUsageCounters {
    /// Calls of scripts.
    pub calls: u64,
    /// Time that they have run, microseconds.
    pub time_us: u64,
    /// Time that they have waited for a thread, microseconds.
    pub waited_us: u64,
    /// Bytes of their arguments.
    pub bytes: u64,
    /// Evaluations that have gone beyond a limit of theirs.
    pub overruns: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Time that messages have taken on the threads of queues, scripts aside, microseconds.
    pub inline_us: u64,
}

impl RuleUsageCounters {
    fn with(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) {
        self.calls = join(self.calls, other.calls);
        self.time_us = join(self.time_us, other.time_us);
        self.waited_us = join(self.waited_us, other.waited_us);
        self.bytes = join(self.bytes, other.bytes);
        self.overruns = join(self.overruns, other.overruns);
        self.refused = join(self.refused, other.refused);
        self.inline_us = join(self.inline_us, other.inline_us);
    }

    /// Adds what another one has used.
    pub fn add(&mut self, other: &Self) {
        self.with(other, u64::saturating_add);
    }

    /// What was used since it was `before`.
    pub fn since(mut self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub);
        self
    }

    /// How much it is, to put the largest first: time, then what has gone wrong.
    pub fn weight(&self) -> (u64, u64) {
        (
            self.time_us.saturating_add(self.inline_us),
            self.overruns
                .saturating_add(self.refused)
                .saturating_add(self.calls),
        )
    }

    /// Name and value of each of its time series.
    pub fn series(&self) -> [(&'static str, u64); 7] {
        [
            ("scriptCalls", self.calls),
            ("scriptTimeMicros", self.time_us),
            ("scriptWaitMicros", self.waited_us),
            ("scriptBytes", self.bytes),
            ("evaluationOverruns", self.overruns),
            ("scriptCallsRefused", self.refused),
            ("ruleNodeTimeMicros", self.inline_us),
        ]
    }
}

/// What one rule node, calculated field or tenant has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityRuleUsage {
    /// Whose it is.
    pub entity: EntityId,
    /// How much it is.
    pub used: RuleUsageCounters,
}

/// What was used since the program has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleUsageReport {
    /// All of it.
    pub total: RuleUsageCounters,
    /// The parts of it that are known, the largest first.
    pub parts: Vec<EntityRuleUsage>,
}

/// Says what tenants use of the rule engine.
pub trait RuleUsageSource: Send + Sync {
    /// What a tenant has used, by rule node and calculated field.
    fn of_tenant(&self, tenant: TenantId) -> RuleUsageReport;

    /// What tenants have used: the `limit` largest.
    fn of_tenants(&self, limit: usize) -> RuleUsageReport;
}

/// Of a program without a rule engine.
pub struct NoRuleUsage;

impl RuleUsageSource for NoRuleUsage {
    fn of_tenant(&self, _: TenantId) -> RuleUsageReport {
        RuleUsageReport::default()
    }

    fn of_tenants(&self, _: usize) -> RuleUsageReport {
        RuleUsageReport::default()
    }
}
