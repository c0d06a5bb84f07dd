//! What is counted of batches.

use fieldline_model::TenantId;
use rustc_hash::FxHashMap;

use super::rounds::BatchRun;
use crate::stats::MessageCounts;
use crate::strategy::{MessageOutcome, RetryDecision};

impl BatchRun<'_> {
    /// Counts how it stands with the messages of the batch after a round, for each tenant and for all.
    pub(super) fn tally(&mut self, verdict: &RetryDecision, retries: u32) {
        let commits = *verdict == RetryDecision::Commit;
        let (mut failed, mut late) = (0_u64, 0_u64);
        let mut last = None;
        let mut tenants: FxHashMap<TenantId, MessageCounts> = FxHashMap::default();
        let mut diverted = 0;
        for (index, outcome) in (0..).zip(self.worker.messages.batch.outcomes()) {
            if self.worker.messages.batch.is_diverted(index) {
                // It is counted where it ends.
                diverted += 1;
                continue;
            }
            failed += u64::from(outcome == MessageOutcome::Failed);
            late += u64::from(outcome == MessageOutcome::Open);
            let Some(of) = self.subject_of(index) else {
                continue;
            };
            if outcome != MessageOutcome::Done {
                last = Some((index, of.tenant));
            }
            let counts = tenants.entry(of.tenant).or_default();
            counts.total += u64::from(commits);
            match (outcome, commits) {
                (MessageOutcome::Done, true) => counts.successful += 1,
                (MessageOutcome::Failed, true) => counts.failed += 1,
                (MessageOutcome::Open, true) => counts.timeout += 1,
                (MessageOutcome::Failed, false) => counts.tmp_failed += 1,
                (MessageOutcome::Open, false) => counts.tmp_timeout += 1,
                (MessageOutcome::Done, false) => {}
            }
        }
        let succeeded = failed == 0 && late == 0;
        let mut all = self.worker.queue.counts.lock();
        for (tenant, mut counts) in tenants {
            counts.successful_iterations = u64::from(succeeded);
            counts.failed_iterations = u64::from(!succeeded);
            all.of(tenant).0.add(&counts);
        }
        if let Some((index, tenant)) = last
            && let Some(failure) = self.worker.messages.batch.failures.get(&index)
        {
            all.of(tenant).1 = Some(failure.clone());
        }
        drop(all);
        if commits {
            let messages = self.worker.messages.batch.entries.len() as u64 - diverted;
            metrics::counter!("fieldline_rules_messages_total").increment(messages);
            metrics::counter!("fieldline_rules_failed_total").increment(failed);
            metrics::counter!("fieldline_rules_timed_out_total").increment(late);
        } else {
            metrics::counter!("fieldline_rules_retries_total").increment(u64::from(retries > 0));
        }
    }
}
