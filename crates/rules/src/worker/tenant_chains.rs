//! The chains of tenants, as a worker last saw them.

use std::ops::ControlFlow;
use std::sync::Arc;

use fieldline_core::ingest::{EffectWriter, IngestShutdown};
use fieldline_core::logging::LogGate;
use fieldline_core::ports::{StateKey, StoreResult};
use fieldline_model::{RuleNodeId, TenantId};
use rustc_hash::FxHashMap;
use tracing::{error, warn};

use super::retry::{AttemptError, spawn_attempt, with_retry};
use crate::chain_registry::{ChainRegistry, TenantChains};
use crate::engine::EngineShared;
use crate::node::ConnectionLabel;
use crate::tenant_cache::TenantEpoch;

/// Nodes that a message may go through, whatever its tenant's profile says.
const MAX_HOPS: u32 = 10_000;
static LOAD_GATE: LogGate = LogGate::new(1);

/// The chains of the tenants that a worker has seen.
pub(super) struct TenantChainCache {
    pub(super) tenants: FxHashMap<TenantId, (TenantEpoch, Arc<TenantChains>)>,
    /// Nodes that a message of this tenant may go through, the one whose chains were last asked for.
    max_hops: (TenantId, u32),
}

impl Default for TenantChainCache {
    fn default() -> Self {
        Self {
            tenants: FxHashMap::default(),
            max_hops: (TenantId::NULL, MAX_HOPS),
        }
    }
}

impl TenantChainCache {
    /// The chains of a tenant that a message now goes through. Without them, the tenant's messages fail.
    pub(super) async fn get(
        &mut self,
        shared: &EngineShared,
        tenant: TenantId,
        writer: &EffectWriter,
    ) -> Result<Arc<TenantChains>, IngestShutdown> {
        if let Some((epoch, chains)) = self.tenants.get(&tenant)
            && epoch.is_current()
        {
            return Ok(chains.clone());
        }
        let epoch = shared.chains.epoch(tenant);
        let load = |registry: Arc<ChainRegistry>| async move { registry.tenant(tenant).await };
        let loaded = load_of_tenant(shared, tenant, "rule chains", load, writer).await?;
        let chains = loaded.unwrap_or_default();
        self.tenants.insert(tenant, (epoch, chains.clone()));
        Ok(chains)
    }

    /// Whether anybody is connected to what a node says with a label; yes where that is not known.
    pub(super) fn has_receiver(&self, key: &StateKey, label: &'static str) -> bool {
        let Some((_, chains)) = self.tenants.get(&key.subject.tenant) else {
            return true;
        };
        let Some((chain, at)) = chains.node(RuleNodeId(key.owner)) else {
            return true;
        };
        let label = ConnectionLabel::from(label);
        chain
            .nodes
            .get(at)
            .is_some_and(|node| node.targets(&label).next().is_some() || node.debug.is_on())
    }

    /// Messages of a tenant are about to go through its chains.
    pub(super) fn note_current(&mut self, tenant: TenantId, chains: &TenantChains) {
        self.max_hops = (tenant, max_hops_of(chains));
    }

    /// Nodes that a message of a tenant may go through.
    pub(super) fn max_hops(&self, tenant: TenantId) -> u32 {
        match self.max_hops {
            (known, limit) if known == tenant => limit,
            _ => self
                .tenants
                .get(&tenant)
                .map_or(MAX_HOPS, |(_, chains)| max_hops_of(chains)),
        }
    }
}

fn max_hops_of(chains: &TenantChains) -> u32 {
    match chains.max_hops {
        0 => MAX_HOPS,
        limit => limit.min(MAX_HOPS),
    }
}

/// What a tenant has, waiting until it can be loaded: a message that cannot find its chain must not be lost. `None` where it
/// can never be read, which is to cost nobody else.
pub(super) async fn load_of_tenant<T, F>(
    shared: &EngineShared,
    tenant: TenantId,
    what: &'static str,
    load: impl Fn(Arc<ChainRegistry>) -> F,
    writer: &EffectWriter,
) -> Result<Option<T>, IngestShutdown>
where
    T: Send + 'static,
    F: Future<Output = StoreResult<T>> + Send + 'static,
{
    let loaded = with_retry(
        writer,
        async || spawn_attempt(&shared.services, load(shared.chains.clone())).await,
        |error| {
            match error {
                AttemptError::Panicked(_) => {
                    error!(%tenant, %error, what, "loading what a tenant has has failed");
                    return ControlFlow::Continue(());
                }
                _ if !error.is_retryable() => {
                    error!(%tenant, %error, what, "what a tenant has cannot be read, it does without");
                }
                _ => {
                    if let Some(suppressed) = LOAD_GATE.open() {
                        warn!(%tenant, %error, what, suppressed, "cannot load what a tenant has, trying again");
                    }
                }
            }
            error.decide()
        },
    );
    Box::pin(loaded).await
}
