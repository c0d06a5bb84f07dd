//! What the engine counts for each tenant and queue, kept as time series of the queue's statistics.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_core::ports::{EntityStores, StoreResult, TelemetryRow, TelemetrySaveStrategy};
use fieldline_core::queue_stats::stats_id;
use fieldline_core::usage::usage_subject;
use fieldline_model::kv::{KvValueRef, pack};
use fieldline_model::{EntityKey, TenantId};
use serde_json::json;
use tracing::warn;

use crate::engine::RuleEngineService;
use crate::strategy::MessageOutcome;

/// Counts of one tenant in one queue since they were last taken. The names are those of the stored series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub struct MessageCounts {
    pub total: u64,
    pub successful: u64,
    pub tmp_timeout: u64,
    pub tmp_failed: u64,
    pub timeout: u64,
    pub failed: u64,
    pub successful_iterations: u64,
    pub failed_iterations: u64,
}

impl MessageCounts {
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    pub tenants: HashMap<TenantId, (MessageCounts, Option<LastFailure>)>,
}

impl QueueCounts {
    /// Counts of a tenant, to be added to.
    pub fn of(&mut self, tenant: TenantId) -> &mut (MessageCounts, Option<LastFailure>) {
        self.tenants.entry(tenant).or_default()
    }
}

impl QueueCounts {
    /// Counts a single message that has ended, or is tried again.
    pub fn count_one(
        &mut self,
        tenant: TenantId,
        outcome: MessageOutcome,
        again: bool,
        failure: Option<&LastFailure>,
    ) {
        let (counts, last) = self.of(tenant);
        counts.total += u64::from(!again);
        let count = match (outcome, again) {
            (MessageOutcome::Done, _) => &mut counts.successful,
            (MessageOutcome::Failed, false) => &mut counts.failed,
            (MessageOutcome::Open, false) => &mut counts.timeout,
            (MessageOutcome::Failed, true) => &mut counts.tmp_failed,
            (MessageOutcome::Open, true) => &mut counts.tmp_timeout,
        };
        *count += 1;
        if let Some(failure) = failure {
            *last = Some(failure.clone());
        }
    }
}

/// Longest text of a failure, characters.
const MAX_FAILURE: usize = 4096;

/// Writes the statistics of all queues from time to time, for as long as the program runs.
pub async fn report(engine: Arc<RuleEngineService>) {
    loop {
        tokio::time::sleep(engine.statistics_interval()).await;
        write(&engine).await;
    }
}

/// Writes what was counted since the last time.
pub async fn write(engine: &RuleEngineService) {
    write_use(engine).await;
    for (_, queue) in engine.queues() {
        let counted = std::mem::take(&mut queue.counts.lock().tenants);
        for (tenant, (counts, failure)) in counted {
            if let Err(error) = write_tenant(engine, tenant, &queue.name, &counts, failure).await {
                warn!(%tenant, queue = %queue.name, %error, "cannot write the statistics of a queue");
            }
        }
    }
}

/// What tenants have used of the rule engine, as time series beside the rest of their usage.
async fn write_use(engine: &RuleEngineService) {
    let services = &engine.shared().services;
    let ts = services.now_ms();
    for (tenant, used) in services.scripts.ledger().take_new() {
        let ttl_seconds = match ttls(&services.stores, tenant).await {
            Ok([stats, _]) => stats,
            Err(error) => {
                warn!(%tenant, %error, "cannot write what a tenant has used of the rule engine");
                continue;
            }
        };
        let mut values = Vec::new();
        for (name, count) in used.series() {
            let count = KvValueRef::Long(i64::try_from(count).unwrap_or(i64::MAX));
            pack(name, count, &mut values);
        }
        let row = TelemetryRow {
            subject: usage_subject(tenant),
            ts,
            ttl_seconds,
            strategy: TelemetrySaveStrategy::ALL,
            values: values.as_slice(),
        };
        if let Err(error) = services.series.save(&[row]).await {
            warn!(%tenant, %error, "cannot write what a tenant has used of the rule engine");
        }
    }
}

async fn write_tenant(
    engine: &RuleEngineService,
    tenant: TenantId,
    queue: &str,
    counts: &MessageCounts,
    failure: Option<LastFailure>,
) -> StoreResult<()> {
    let services = &engine.shared().services;
    let subject = EntityKey {
        tenant,
        entity: stats_id(tenant, queue, &services.service_id).into(),
    };
    let [stats_ttl, failure_ttl] = ttls(&services.stores, tenant).await?;
    let ts = services.now_ms();
    let mut values = Vec::new();
    for (name, count) in counts.series() {
        pack(
            name,
            KvValueRef::Long(i64::try_from(count).unwrap_or(i64::MAX)),
            &mut values,
        );
    }
    let row = |values, ttl_seconds| TelemetryRow {
        subject,
        ts,
        ttl_seconds,
        strategy: TelemetrySaveStrategy::ALL,
        values,
    };
    let mut last = Vec::new();
    if let Some(failure) = failure {
        let error: String = failure.error.chars().take(MAX_FAILURE).collect();
        let text = json!({"ruleChainName": failure.chain, "ruleNodeName": failure.node, "message": error})
            .to_string();
        pack("ruleEngineException", KvValueRef::Json(&text), &mut last);
    }
    let mut rows = vec![row(values.as_slice(), stats_ttl)];
    if !last.is_empty() {
        rows.push(row(last.as_slice(), failure_ttl));
    }
    services.series.save(&rows).await
}

/// Seconds that statistics and failures of a tenant are kept; 0 for ever.
async fn ttls(stores: &EntityStores, tenant: TenantId) -> StoreResult<[u32; 2]> {
    let profile = match stores
        .tenants
        .get(tenant)
        .await?
        .and_then(|tenant| tenant.tenant_profile_id)
    {
        Some(id) => stores.tenant_profiles.get(id).await?,
        None => None,
    };
    let seconds = |name: &str| {
        let days = profile
            .as_ref()?
            .profile_data
            .pointer("/configuration")?
            .get(name)?
            .as_u64()?;
        u32::try_from(days.checked_mul(86_400)?).ok()
    };
    Ok(["queueStatsTtlDays", "ruleEngineExceptionsTtlDays"].map(|name| seconds(name).unwrap_or(0)))
}
