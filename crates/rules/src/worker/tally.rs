//! What is counted of packs.

use fieldline_core::ingest::Delivered;
use fieldline_model::TenantId;
use rustc_hash::FxHashMap;

use super::Worker;
use crate::stats::Counts;
use crate::strategy::{Outcome, Verdict};

impl Worker {
    /// Counts how it stands with the messages of the pack after a round, for each tenant and for all.
    pub(super) fn tally(&mut self, delivered: Option<&Delivered<'_>>, verdict: &Verdict, retries: u32) {
        let commits = *verdict == Verdict::Commit;
        let (mut failed, mut late) = (0_u64, 0_u64);
        let mut last = None;
        let mut tenants: FxHashMap<TenantId, Counts> = FxHashMap::default();
        let mut diverted = 0;
        for (index, outcome) in (0..).zip(self.pack.outcomes()) {
            if self.pack.is_diverted(index) {
                // It is counted where it ends.
                diverted += 1;
                continue;
            }
            failed += u64::from(outcome == Outcome::Failed);
            late += u64::from(outcome == Outcome::Open);
            let Some(of) = self.subject_of(index, delivered) else {
                continue;
            };
            if outcome != Outcome::Done {
                last = Some((index, of.tenant));
            }
            let counts = tenants.entry(of.tenant).or_default();
            counts.total += u64::from(commits);
            match (outcome, commits) {
                (Outcome::Done, true) => counts.successful += 1,
                (Outcome::Failed, true) => counts.failed += 1,
                (Outcome::Open, true) => counts.timeout += 1,
                (Outcome::Failed, false) => counts.tmp_failed += 1,
                (Outcome::Open, false) => counts.tmp_timeout += 1,
                (Outcome::Done, false) => {}
            }
        }
        let succeeded = failed == 0 && late == 0;
        let mut all = self.queue.counts.lock();
        for (tenant, mut counts) in tenants {
            counts.successful_iterations = u64::from(succeeded);
            counts.failed_iterations = u64::from(!succeeded);
            all.of(tenant).0.add(&counts);
        }
        if let Some((index, tenant)) = last
            && let Some(failure) = self.pack.failures.get(&index)
        {
            all.of(tenant).1 = Some(failure.clone());
        }
        drop(all);
        if commits {
            let messages = self.pack.entries.len() as u64 - diverted;
            metrics::counter!("fieldline_rules_messages_total").increment(messages);
            metrics::counter!("fieldline_rules_failed_total").increment(failed);
            metrics::counter!("fieldline_rules_timed_out_total").increment(late);
        } else {
            metrics::counter!("fieldline_rules_retries_total").increment(u64::from(retries > 0));
        }
    }
}
