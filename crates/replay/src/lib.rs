//! Replays: stored telemetry goes through a rule chain once more, as it is saved or as somebody would like it to be, and the
//! answer says what it would have done.
//!
//! It is the engine's own worker that plays, with the engine's own nodes and alarm rules; what differs is what they work
//! with. Stores read through to the real ones, as of the replayed time, and keep in memory what is written; messages for
//! queues come back to the worker; the clock is set to the time of each message. Nodes that reach out of the platform pass
//! messages on.

mod alarms;
mod difference;
mod dry;
mod entities;
mod history;
mod plan;
mod play;
mod record;
mod report;
mod reprocess;
mod series;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use fieldline_entities::ports::RuleReplay;
use fieldline_entities::services::{ServiceError, ServiceErrorKind, ServiceResult};
use fieldline_model::entity::{RuleChain, RuleChainMetaData, RuleNode};
use fieldline_model::replay::{ReplayReport, ReplayRequest};
use fieldline_model::{RuleChainId, TenantId};
use fieldline_rules::bounds::CompileAllowance;
use fieldline_rules::chain::{self, CompiledChain};
use fieldline_rules::chain_registry::TenantChains;
use fieldline_rules::engine::EngineShared;
use fieldline_rules::message::RuleMessage;
use fieldline_rules::node::{Node, NodeContext, NodeResult};
use fieldline_rules::node_types::{self, ComponentType};
use fieldline_rules::services::NodeServices;
use fieldline_rules::worker::node_activity::NodeActivityLog;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::dry::{DryEngine, ReplaySetup};
use self::entities::ReplayDrafts;
use self::history::{HistoryReader, HistorySource};
use self::plan::ReplayPlan;
use self::play::{ReplayError, ReplayProgress, ReplayRun};
use self::record::ReplayRecord;
pub use self::reprocess::FieldReprocessor;

// The tests share files with those of the rule engine, in which these are modules of the crate.
#[cfg(test)]
use fieldline_rules::{chain_registry, engine, events, external, originators, script_pool, services};

/// Replays that run at the same time.
const MAX_CONCURRENT_REPLAYS: usize = 2;

/// Nodes besides the external ones that reach out of the platform, or write the log.
const NOT_EXECUTED: [&str; 4] = [
    "rpc.TbSendRPCRequestNode",
    "rpc.TbSendRPCReplyNode",
    "rest.TbSendRestApiCallReplyNode",
    "action.TbLogNode",
];

/// Whether nodes of a class do in a replay what they do.
fn is_executed(class: &str) -> bool {
    node_types::find(class)
        .is_none_or(|node| node.category != ComponentType::External && !NOT_EXECUTED.contains(&node.class))
}

/// A node that is not executed.
struct PassThroughNode;

impl Node for PassThroughNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        NodeResult::success(msg)
    }
}

/// Plays stored telemetry.
pub struct ChainReplayer {
    shared: Arc<EngineShared>,
    permits: Semaphore,
}

impl ChainReplayer {
    /// A replayer beside an engine.
    pub fn new(shared: Arc<EngineShared>) -> Self {
        Self {
            shared,
            permits: Semaphore::new(MAX_CONCURRENT_REPLAYS),
        }
    }
}

#[async_trait]
impl RuleReplay for ChainReplayer {
    async fn replay(
        &self,
        tenant: TenantId,
        chain: RuleChainId,
        request: ReplayRequest,
    ) -> ServiceResult<ReplayReport> {
        let _permit = self.permits.try_acquire().map_err(|_| {
            let text = format!(
                "{MAX_CONCURRENT_REPLAYS} replays are running already, try again when one has ended!"
            );
            ServiceError::new(ServiceErrorKind::TooManyRequests, text)
        })?;
        let begun = Instant::now();
        let real = &self.shared.services;
        let plan = ReplayPlan::make(real, tenant, chain, request).await?;
        let devices = plan.device_ids();
        let bounds = (plan.start, plan.end);
        let (active, begun_alarms, is_cut) =
            difference::stored_alarms(&real.stores.alarms, tenant, &devices, bounds).await?;
        let dry = DryEngine::new(
            real,
            ReplaySetup {
                start: plan.start,
                drafts: ReplayDrafts {
                    profiles: plan.profiles(),
                    alarms: plan.alarm_rules.clone(),
                    fields: plan.fields.clone(),
                },
                active: active.clone(),
                replayed: plan.series.keys().copied().collect(),
                // What is tried out uses nothing up.
                usage: None,
            },
        );
        let chains = self.chains(&plan, &dry.shared.services).await?;
        let shown = report::nodes_of(&chains, plan.chain_id());
        dry.shared.chains.put(tenant, chains);
        let names = plan.names();
        let played = ReplayOutput {
            record: dry.record.clone(),
            watch: Arc::default(),
            progress: Arc::new(Mutex::new(ReplayProgress {
                until: plan.start,
                ..ReplayProgress::default()
            })),
        };
        let mut sources = Vec::with_capacity(plan.devices.len());
        for (subject, keys) in &plan.series {
            if let Some(originator) = dry.shared.services.originators.get(*subject).await? {
                sources.push(HistorySource {
                    subject: *subject,
                    originator,
                    keys: keys.clone(),
                });
            }
        }
        let play = ReplayRun {
            shared: dry.shared.clone(),
            store: dry.series.clone(),
            chain: plan.chain_id(),
            history: HistoryReader::new(real.series.clone(), sources, plan.start, plan.end),
            clock: dry.clock.clone(),
            pushes: dry.pushes.clone(),
            record: played.record.clone(),
            watch: played.watch.clone(),
            progress: played.progress.clone(),
            cancelled: Arc::new(AtomicBool::new(false)),
            end: plan.end,
            max_messages: plan.limits.messages,
            max_time: Duration::from_millis(plan.limits.time_ms),
        };
        play::play(play).await?;
        let progress = played.progress.lock().clone();
        // What was written is compared without its lock: nobody writes any more, but for one that hangs.
        let record = std::mem::take(&mut *played.record.lock());
        let compared = (plan.start, progress.until);
        let samples = plan.limits.samples;
        let points = difference::points(&real.series, &record, &plan.series, compared, samples).await?;
        let (courses, updates) = dry.alarms.timelines();
        let begun_alarms: Vec<_> = begun_alarms
            .into_iter()
            .filter(|alarm| alarm.start_ts < progress.until)
            .collect();
        let mut alarms = difference::alarms(
            &courses,
            (&active, &begun_alarms),
            progress.until,
            plan.alarm_tolerance_ms,
            &names,
            plan.limits.alarms,
        );
        alarms.incomplete = is_cut;
        let nodes = report::nodes(&shown, &played.watch.lock());
        let report = ReplayReport {
            summary: report::summary(&plan, &progress, &record, begun.elapsed()),
            stored: report::stored(&record, samples),
            alarms: report::alarms(&courses, updates, &names, plan.limits.alarms),
            nodes,
            difference: fieldline_model::replay::ReplayDifference { points, alarms },
        };
        Ok(report)
    }
}

impl From<ReplayError> for ServiceError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Store(error) => error.into(),
            ReplayError::Thread(error) => Self::new(ServiceErrorKind::Internal, error),
        }
    }
}

/// What a replay leaves behind.
struct ReplayOutput {
    record: Arc<Mutex<ReplayRecord>>,
    watch: Arc<Mutex<NodeActivityLog>>,
    progress: Arc<Mutex<ReplayProgress>>,
}

impl ChainReplayer {
    /// The chains of the tenant, compiled for a replay, with the draft in its place.
    async fn chains(&self, plan: &ReplayPlan, services: &Arc<NodeServices>) -> ServiceResult<TenantChains> {
        let tenant = plan.tenant;
        let compile = |chain: &RuleChain, metadata: &RuleChainMetaData| {
            let allowance = CompileAllowance::default();
            let make = |node: &RuleNode| -> Result<Arc<dyn Node>, Box<str>> {
                if is_executed(&node.node_type) {
                    chain::make(services, tenant, node, &allowance).map_err(Into::into)
                } else {
                    Ok(Arc::new(PassThroughNode))
                }
            };
            Arc::new(CompiledChain::compile_with(chain, metadata, None, &make))
        };
        if plan.is_draft {
            chain::check(services, &plan.metadata)
                .map_err(|error| ServiceError::invalid(format!("metadata: {error}")))?;
        }
        let mut root = plan.chain.root.then_some(plan.chain_id());
        let mut chains = vec![compile(&plan.chain, &plan.metadata)];
        for other in plan::core_chains(&self.shared.services, tenant).await? {
            let id = other.id;
            if id == plan.chain_id() {
                continue;
            }
            if other.root {
                root = Some(id);
            }
            if let Some(metadata) = self
                .shared
                .services
                .stores
                .rule_chains
                .metadata(tenant, id)
                .await?
            {
                chains.push(compile(&other, &metadata));
            }
        }
        let max_hops = self.shared.chains.tenant(tenant).await?.max_hops;
        Ok(TenantChains::of(root, chains, max_hops))
    }
}
