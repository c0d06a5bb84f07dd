//! What each tenant's rules use: time, bytes, and how often they were refused, by node and calculated field.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fieldline_core::overload::{
    OverloadKind, OverloadMeasure, OverloadSample, OverloadScope, OverloadSource,
};
use fieldline_core::ports::{EntityRuleUsage, RuleUsageCounters, RuleUsageReport, RuleUsageSource};
use fieldline_model::{EntityId, TenantId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Nodes and fields of a tenant that are counted apart; of further ones the largest are.
pub const MAX_OWNERS: usize = 256;

#[derive(Default)]
struct TenantUse {
    owners: FxHashMap<EntityId, RuleUsageCounters>,
    /// What nodes have used that are not counted apart any more.
    others: RuleUsageCounters,
    total: RuleUsageCounters,
    /// What was written as time series already.
    written: RuleUsageCounters,
}

impl TenantUse {
    fn add(&mut self, owner: Option<EntityId>, more: &RuleUsageCounters) {
        self.total.add(more);
        let Some(owner) = owner else {
            self.others.add(more);
            return;
        };
        if self.owners.len() >= MAX_OWNERS && !self.owners.contains_key(&owner) {
            let least = self.owners.iter().min_by_key(|(_, used)| used.weight());
            if let Some(least) = least.map(|(owner, _)| *owner)
                && let Some(used) = self.owners.remove(&least)
            {
                self.others.add(&used);
            }
        }
        self.owners.entry(owner).or_default().add(more);
    }
}

/// Counts since the program has begun. See the module.
#[derive(Default)]
pub struct ScriptLedger {
    tenants: Mutex<FxHashMap<TenantId, TenantUse>>,
    refused: AtomicU64,
    micros: AtomicU64,
}

impl ScriptLedger {
    fn add(&self, tenant: TenantId, owner: Option<EntityId>, more: &RuleUsageCounters) {
        self.tenants.lock().entry(tenant).or_default().add(owner, more);
    }

    /// A script was run, after it had waited.
    pub fn count_call(
        &self,
        tenant: TenantId,
        owner: EntityId,
        time: Duration,
        waited: Duration,
        bytes: usize,
    ) {
        let time_us = micros(time);
        self.micros.fetch_add(time_us, Ordering::Relaxed);
        let more = RuleUsageCounters {
            calls: 1,
            time_us,
            waited_us: micros(waited),
            bytes: bytes as u64,
            ..RuleUsageCounters::default()
        };
        self.add(tenant, Some(owner), &more);
    }

    /// An evaluation has gone beyond one of its limits.
    pub fn count_overrun(&self, tenant: TenantId, owner: EntityId) {
        let more = RuleUsageCounters {
            overruns: 1,
            ..RuleUsageCounters::default()
        };
        self.add(tenant, Some(owner), &more);
    }

    /// A call was refused because too much waited already, or because what it belongs to is switched off.
    pub fn count_refusal(&self, tenant: TenantId, owner: EntityId) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let more = RuleUsageCounters {
            refused: 1,
            ..RuleUsageCounters::default()
        };
        self.add(tenant, Some(owner), &more);
    }

    /// Messages of a tenant have taken so long on the thread of a worker, scripts aside.
    pub fn note_inline(&self, tenant: TenantId, time: Duration) {
        let more = RuleUsageCounters {
            inline_us: micros(time),
            ..RuleUsageCounters::default()
        };
        self.add(tenant, None, &more);
    }

    /// What tenants have used since this was last asked.
    pub(crate) fn take_new(&self) -> Vec<(TenantId, RuleUsageCounters)> {
        let mut tenants = self.tenants.lock();
        tenants
            .iter_mut()
            .filter_map(|(tenant, used)| {
                let new = used.total.since(&used.written);
                used.written = used.total;
                (new != RuleUsageCounters::default()).then_some((*tenant, new))
            })
            .collect()
    }

    /// Forgets a tenant that is no more.
    pub fn forget(&self, tenant: TenantId) {
        self.tenants.lock().remove(&tenant);
    }

    /// Shows the sums of all tenants to whoever watches the program.
    pub(crate) fn show(&self) {
        metrics::counter!("fieldline_script_calls_refused_total")
            .absolute(self.refused.load(Ordering::Relaxed));
        metrics::counter!("fieldline_script_microseconds_total")
            .absolute(self.micros.load(Ordering::Relaxed));
    }
}

impl OverloadSource for ScriptLedger {
    fn collect(&self, into: &mut Vec<OverloadSample>) {
        for (tenant, used) in &*self.tenants.lock() {
            let troubles = [
                (
                    "evaluations",
                    used.total.overruns,
                    "Scripts or other evaluations of nodes took more time, steps or memory than they may, and were ended",
                ),
                (
                    "waiting calls",
                    used.total.refused,
                    "Calls of scripts were refused, because too many of the tenant's waited already",
                ),
            ];
            for (subject, total, reason) in troubles.into_iter().filter(|(_, total, _)| *total > 0) {
                into.push(OverloadSample {
                    kind: OverloadKind::Scripts,
                    scope: OverloadScope::Tenant(*tenant),
                    subject: subject.into(),
                    measure: OverloadMeasure::Total(total),
                    limit: None,
                    reason: reason.into(),
                });
            }
        }
    }
}

impl RuleUsageSource for ScriptLedger {
    fn of_tenant(&self, tenant: TenantId) -> RuleUsageReport {
        let tenants = self.tenants.lock();
        let Some(used) = tenants.get(&tenant) else {
            return RuleUsageReport::default();
        };
        let mut parts: Vec<EntityRuleUsage> = used
            .owners
            .iter()
            .map(|(owner, used)| EntityRuleUsage {
                entity: *owner,
                used: *used,
            })
            .collect();
        sort(&mut parts);
        RuleUsageReport {
            total: used.total,
            parts,
        }
    }

    fn of_tenants(&self, limit: usize) -> RuleUsageReport {
        let tenants = self.tenants.lock();
        let mut report = RuleUsageReport::default();
        for (tenant, used) in tenants.iter() {
            report.total.add(&used.total);
            report.parts.push(EntityRuleUsage {
                entity: (*tenant).into(),
                used: used.total,
            });
        }
        drop(tenants);
        sort(&mut report.parts);
        report.parts.truncate(limit);
        report
    }
}

fn sort(parts: &mut [EntityRuleUsage]) {
    parts.sort_by_key(|part| (std::cmp::Reverse(part.used.weight()), part.entity.id));
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use fieldline_model::RuleNodeId;

    use super::*;

    const TIME: Duration = Duration::from_millis(2);

    #[test]
    fn only_the_largest_are_told_apart_and_nothing_is_lost() {
        let (ledger, tenant) = (ScriptLedger::default(), TenantId::new());
        let large = EntityId::from(RuleNodeId::new());
        ledger.count_call(tenant, large, TIME * 100, TIME, 10);
        for _ in 0..MAX_OWNERS + 50 {
            ledger.count_call(tenant, RuleNodeId::new().into(), TIME, TIME, 10);
        }
        let report = ledger.of_tenant(tenant);
        assert_eq!(report.parts.len(), MAX_OWNERS);
        assert_eq!(report.parts[0].entity, large);
        assert_eq!(report.total.calls, MAX_OWNERS as u64 + 51);
        assert_eq!(report.total.bytes, 10 * report.total.calls);
    }

    #[test]
    fn what_is_written_is_what_is_new() {
        let (ledger, tenant) = (ScriptLedger::default(), TenantId::new());
        let node = EntityId::from(RuleNodeId::new());
        ledger.count_refusal(tenant, node);
        assert_eq!(ledger.take_new().len(), 1);
        assert!(ledger.take_new().is_empty());
        ledger.count_overrun(tenant, node);
        ledger.note_inline(tenant, TIME);
        let [(of, new)] = ledger.take_new()[..] else {
            panic!("one tenant");
        };
        assert_eq!(
            (of, new.refused, new.overruns, new.inline_us),
            (tenant, 0, 1, 2000)
        );
        ledger.forget(tenant);
        assert_eq!(ledger.of_tenants(10), RuleUsageReport::default());
    }
}
