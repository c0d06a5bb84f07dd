//! Usage of the rule engine by tenants, as shown to them and to the operator.

use fieldline_model::{EntityId, TenantId};

/// Counters of the use of the rule engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleUsageCounters {
    /// Script calls.
    pub calls: u64,
    /// Run time of scripts, microseconds.
    pub time_us: u64,
    /// Time that scripts waited for a thread, microseconds.
    pub waited_us: u64,
    /// Bytes of script arguments.
    pub bytes: u64,
    /// Evaluations that exceeded one of their limits.
    pub overruns: u64,
    /// Refused calls.
    pub refused: u64,
    /// Time that messages spent on queue threads, without scripts, microseconds.
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

    /// Adds the counters of another one.
    pub fn add(&mut self, other: &Self) {
        self.with(other, u64::saturating_add);
    }

    /// Returns the usage since `before`.
    pub fn since(mut self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub);
        self
    }

    /// The sort weight, largest first: time, then the sum of overruns, refusals and calls.
    pub fn weight(&self) -> (u64, u64) {
        (
            self.time_us.saturating_add(self.inline_us),
            self.overruns
                .saturating_add(self.refused)
                .saturating_add(self.calls),
        )
    }

    /// Name and value of each time series.
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

/// The usage of one rule node, calculated field or tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityRuleUsage {
    /// The entity.
    pub entity: EntityId,
    /// Its usage.
    pub used: RuleUsageCounters,
}

/// The usage since the program started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleUsageReport {
    /// The total usage.
    pub total: RuleUsageCounters,
    /// The known parts of the total, largest first.
    pub parts: Vec<EntityRuleUsage>,
}

/// Reports the usage of the rule engine by tenants.
pub trait RuleUsageSource: Send + Sync {
    /// The usage of a tenant, by rule node and calculated field.
    fn of_tenant(&self, tenant: TenantId) -> RuleUsageReport;

    /// The usage of the `limit` tenants that use the most.
    fn of_tenants(&self, limit: usize) -> RuleUsageReport;
}

/// For programs without a rule engine.
pub struct NoRuleUsage;

impl RuleUsageSource for NoRuleUsage {
    fn of_tenant(&self, _: TenantId) -> RuleUsageReport {
        RuleUsageReport::default()
    }

    fn of_tenants(&self, _: usize) -> RuleUsageReport {
        RuleUsageReport::default()
    }
}
