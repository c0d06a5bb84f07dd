//! The compiled chains of all tenants, and their nodes that run by themselves (sources).

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use async_trait::async_trait;
use fieldline_core::events::{ChangeKind, EntityChange, EntityListener};
use fieldline_core::in_flight::{InFlightTracker, LoadInHand, LoadNote};
use fieldline_core::ports::{RuleCounterSource, RuleNodeCounters, StoreResult};
use fieldline_model::entity::{RuleChain, RuleChainType};
use fieldline_model::page::PageLink;
use fieldline_model::{EntityId, EntityKey, EntityType, RuleChainId, RuleNodeId, TenantId};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::chain::CompiledChain;
use crate::deletions::{Deletion, DeletionLog};
use crate::events::{EventRecorder, LifecycleChange};
use crate::fields::FieldRegistry;
use crate::node::NodeEmitter;
use crate::services::NodeServices;
use crate::tenant_cache::{StaleParts, TenantCache, TenantEpoch, TenantLoader};

const PAGE: u32 = 1000;

/// The chains of one tenant.
#[derive(Default)]
pub struct TenantChains {
    /// The chain for messages whose profile names no other chain.
    pub root: Option<RuleChainId>,
    chains: FxHashMap<RuleChainId, Arc<CompiledChain>>,
    nodes: FxHashMap<RuleNodeId, (RuleChainId, usize)>,
    /// Most nodes that a message may go through; 0 if the tenant has no limit of its own.
    pub max_hops: u32,
    /// Time to live of points for which neither message nor node sets one, seconds; 0 for ever.
    pub ttl_seconds: u32,
}

impl TenantChains {
    /// A chain.
    pub fn chain(&self, id: RuleChainId) -> Option<&Arc<CompiledChain>> {
        self.chains.get(&id)
    }

    /// The root chain.
    pub fn root(&self) -> Option<&Arc<CompiledChain>> {
        self.chain(self.root?)
    }

    /// A node of any chain.
    pub fn node(&self, id: RuleNodeId) -> Option<(&Arc<CompiledChain>, usize)> {
        let (chain, at) = self.nodes.get(&id)?;
        Some((self.chain(*chain)?, *at))
    }

    /// All chains.
    pub fn all(&self) -> impl Iterator<Item = &Arc<CompiledChain>> {
        self.chains.values()
    }

    /// Compiled chains as a tenant's chains in force.
    pub fn of(
        root: Option<RuleChainId>,
        chains: impl IntoIterator<Item = Arc<CompiledChain>>,
        max_hops: u32,
    ) -> Self {
        let chains: FxHashMap<_, _> = chains.into_iter().map(|chain| (chain.id, chain)).collect();
        let nodes = chains
            .values()
            .flat_map(|chain| {
                chain
                    .nodes
                    .iter()
                    .enumerate()
                    .map(|(at, node)| (node.id, (chain.id, at)))
            })
            .collect();
        Self {
            root,
            chains,
            nodes,
            max_hops,
            ttl_seconds: 0,
        }
    }
}

/// The chains of all tenants. They are compiled when first needed and whenever they are saved, and swapped as a whole.
pub struct ChainRegistry {
    services: Arc<NodeServices>,
    events: Arc<EventRecorder>,
    tenants: TenantCache<TenantChains, RuleChainId>,
    sources: Mutex<HashMap<RuleNodeId, (usize, JoinHandle<()>)>>,
    fields: Arc<FieldRegistry>,
    deletions: Arc<DeletionLog>,
    in_flight: OnceLock<Arc<InFlightTracker>>,
}

impl ChainRegistry {
    /// An empty registry; register it as a listener to entity events.
    pub fn new(services: Arc<NodeServices>, events: Arc<EventRecorder>) -> Arc<Self> {
        let gone = Arc::<DeletionLog>::default();
        let fields = FieldRegistry::new(services.clone(), events.clone(), gone.clone());
        Arc::new(Self {
            services,
            events,
            fields,
            deletions: gone,
            tenants: TenantCache::default(),
            sources: Mutex::default(),
            in_flight: OnceLock::new(),
        })
    }

    /// Makes the registry note each compilation and start, and leave out chains that the process has died of. To be
    /// called before anything is compiled.
    pub fn note_loads(&self, in_hand: &Arc<InFlightTracker>) {
        // A second call has no effect.
        let _ = self.in_flight.set(in_hand.clone());
        self.fields.note_loads(in_hand);
        self.services.originators.note_loads(in_hand);
    }

    /// The calculated fields in force.
    pub fn fields(&self) -> &Arc<FieldRegistry> {
        &self.fields
    }

    /// Nodes, fields and entities that were deleted.
    pub fn deletions(&self) -> &DeletionLog {
        &self.deletions
    }

    /// The current epoch of a tenant's chains; a caller that caches them reads them again when the epoch is over.
    pub fn epoch(&self, tenant: TenantId) -> TenantEpoch {
        self.tenants.epoch(tenant)
    }

    /// The tenant's current chains.
    ///
    /// # Errors
    /// The store failed.
    pub async fn tenant(&self, tenant: TenantId) -> StoreResult<Arc<TenantChains>> {
        self.tenants.get(tenant, self).await
    }

    /// Puts chains in force that are in no store. Their nodes do not run by themselves.
    pub fn put(&self, tenant: TenantId, chains: TenantChains) {
        let chains = Arc::new(chains);
        let before = self.tenants.put(tenant, chains.clone());
        self.record_deletions(before.as_deref(), &chains);
    }

    /// Records deleted nodes, so that workers drop their states.
    fn record_deletions(&self, before: Option<&TenantChains>, now: &TenantChains) {
        for id in before.into_iter().flat_map(|before| before.nodes.keys()) {
            if !now.nodes.contains_key(id) {
                self.deletions.note(Deletion::Keeper(id.0));
            }
        }
    }

    /// Notes that a chain is being compiled; an error says why it must not be.
    async fn begin_load(
        &self,
        tenant: TenantId,
        chain: RuleChainId,
        version: Option<i64>,
    ) -> Result<Option<LoadNote>, Box<str>> {
        let Some(in_hand) = self.in_flight.get() else {
            return Ok(None);
        };
        let load = LoadInHand {
            tenant,
            id: chain.0,
            version: version.unwrap_or_default(),
        };
        in_hand.begin_load(load).await.map(Some)
    }

    /// Ends the scripts of nodes that are no longer in force, so that a repaired chain does not wait for the faulty
    /// scripts.
    fn end_scripts(&self, tenant: TenantId, before: Option<&TenantChains>, now: &TenantChains) {
        let address = |chains: &TenantChains, id| {
            let (chain, at) = chains.node(id)?;
            let node = chain.nodes.get(at)?.node.as_ref().ok()?;
            Some(Arc::as_ptr(node).addr())
        };
        for id in before.into_iter().flat_map(|before| before.nodes.keys()) {
            let was = before.and_then(|before| address(before, *id));
            if was.is_some() && was != address(now, *id) {
                self.services.scripts.cancel_owner(tenant, (*id).into());
            }
        }
    }

    async fn list(&self, tenant: TenantId) -> StoreResult<Vec<RuleChain>> {
        let mut all = Vec::new();
        for page in 0.. {
            let link = PageLink {
                page,
                page_size: PAGE,
                ..PageLink::default()
            };
            let found = self
                .services
                .stores
                .rule_chains
                .list(tenant, Some(RuleChainType::Core), &link)
                .await?;
            all.extend(found.data);
            if !found.has_next {
                break;
            }
        }
        Ok(all)
    }

    /// Returns the most nodes that a message may go through, and the time to live of points, seconds.
    async fn limits(&self, tenant: TenantId) -> StoreResult<(u32, u32)> {
        let stores = &self.services.stores;
        let Some(tenant) = stores.tenants.get(tenant).await? else {
            return Ok((0, 0));
        };
        let profile = match tenant.tenant_profile_id {
            Some(id) => stores.tenant_profiles.get(id).await?,
            None => None,
        };
        let Some(profile) = profile else {
            return Ok((0, 0));
        };
        let hops = profile.limit("maxRuleNodeExecutionsPerMessage");
        Ok((
            u32::try_from(hops).unwrap_or(u32::MAX),
            profile.storage_ttl_seconds(),
        ))
    }

    fn record_lifecycle(&self, tenant: TenantId, chain: &CompiledChain, is_update: bool) {
        info!(%tenant, chain = %chain.id, name = %chain.name, nodes = chain.nodes.len(), "rule chain in force");
        let life = if is_update {
            LifecycleChange::Updated
        } else {
            LifecycleChange::Started
        };
        self.events.lifecycle(tenant, chain.id.into(), life, None);
        for node in &chain.nodes {
            if let Err(error) = &node.node {
                warn!(%tenant, chain = %chain.name, node = %node.name, %error, "rule node cannot run");
                self.events.lifecycle(tenant, node.id.into(), life, Some(error));
            }
        }
    }

    /// Starts the sources that have come into force, and stops those that no longer are.
    fn start_sources(&self, tenant: TenantId, chains: &TenantChains) {
        let mut sources = self.sources.lock();
        let is_current = |id: &RuleNodeId, address: usize| {
            let node = chains.node(*id).and_then(|(chain, at)| chain.nodes.get(at));
            node.is_none_or(|node| {
                node.node
                    .as_ref()
                    .is_ok_and(|node| Arc::as_ptr(node).addr() == address)
            })
        };
        sources.retain(|id, (address, task)| {
            let stays = !task.is_finished() && is_current(id, *address);
            if !stays {
                task.abort();
            }
            stays
        });
        for chain in chains.chains.values() {
            for node in &chain.nodes {
                let Ok(compiled) = &node.node else { continue };
                if sources.contains_key(&node.id) {
                    continue;
                }
                let source = NodeEmitter {
                    services: self.services.clone(),
                    tenant,
                    chain: chain.id,
                    node: node.id,
                    queue: node.queue.as_deref().map(str::to_owned),
                };
                let note = self.in_flight.get().map(|in_hand| {
                    in_hand.note_start(LoadInHand {
                        tenant,
                        id: chain.id.0,
                        version: chain.version,
                    })
                });
                if let Some(work) = Arc::clone(compiled).run(source) {
                    let address = Arc::as_ptr(compiled).addr();
                    let work = noted_first(work, note);
                    sources.insert(node.id, (address, self.services.runtime.spawn(work)));
                }
            }
        }
    }

    fn end_sources(&self, gone: impl Fn(&RuleNodeId) -> bool) {
        self.sources.lock().retain(|id, (_, task)| {
            let ends = gone(id);
            if ends {
                task.abort();
            }
            !ends
        });
    }

    /// Stops all sources.
    pub fn stop(&self) {
        self.end_sources(|_| true);
    }

    fn mark_stale(self: &Arc<Self>, tenant: TenantId, chain: Option<RuleChainId>) {
        let known = self.tenants.peek(tenant);
        self.tenants.mark_stale(tenant, chain);
        if let (Some(known), Some(chain)) = (known, chain) {
            self.end_sources(|id| known.node(*id).is_some_and(|(of, _)| of.id == chain));
        }
        // Sources start now, without waiting for a message.
        let book = Arc::clone(self);
        self.services.runtime.spawn(async move {
            if let Err(error) = book.tenant(tenant).await {
                warn!(%tenant, %error, "cannot load rule chains");
            }
        });
    }

    /// Drops all chains, because something has changed that all of them depend on.
    fn mark_all_stale(self: &Arc<Self>) {
        for tenant in self.tenants.all() {
            self.mark_stale(tenant, None);
        }
    }

    fn forget(&self, tenant: TenantId) {
        if let Some(known) = self.tenants.forget(tenant) {
            self.end_sources(|id| known.node(*id).is_some());
            self.end_scripts(tenant, Some(&known), &TenantChains::default());
        }
        self.services.scripts.ledger().forget(tenant);
        self.deletions.note(Deletion::Tenant(tenant));
    }

    fn note_entity(&self, tenant: TenantId, entity: EntityId) {
        self.deletions
            .note(Deletion::Entity(EntityKey { tenant, entity }));
    }
}

impl RuleCounterSource for ChainRegistry {
    fn of_chain(&self, tenant: TenantId, chain: RuleChainId) -> Option<Vec<RuleNodeCounters>> {
        let known = self.tenants.peek(tenant)?;
        let nodes = known.chain(chain)?.nodes.iter();
        Some(nodes.map(|node| node.counters.read(node.id)).collect())
    }
}

#[async_trait]
impl TenantLoader<TenantChains, RuleChainId> for ChainRegistry {
    async fn load(
        &self,
        tenant: TenantId,
        before: Option<&TenantChains>,
        stale: Option<&StaleParts<RuleChainId>>,
    ) -> StoreResult<TenantChains> {
        let stores = &self.services.stores;
        let mut chains = Vec::new();
        let mut root = None;
        for chain in self.list(tenant).await? {
            let id = chain.id;
            if chain.root {
                root = Some(id);
            }
            let before = before.and_then(|before| before.chain(id));
            let is_current = stale.is_some_and(|stale| !stale.everything && !stale.parts.contains(&id));
            if let Some(current) = before.filter(|_| is_current) {
                chains.push(current.clone());
                continue;
            }
            let Some(metadata) = stores.rule_chains.metadata(tenant, id).await? else {
                continue;
            };
            let before = before.map(Arc::as_ref);
            let compiled = match self.begin_load(tenant, id, metadata.version).await {
                Ok(note) => {
                    let compiled = CompiledChain::compile(&self.services, tenant, &chain, &metadata, before);
                    if let Some(note) = note {
                        note.finish();
                    }
                    compiled
                }
                Err(why) => CompiledChain::inactive(&chain, &metadata, &why),
            };
            self.record_lifecycle(tenant, &compiled, before.is_some());
            chains.push(Arc::new(compiled));
        }
        let (max_hops, ttl_seconds) = self.limits(tenant).await?;
        Ok(TenantChains {
            ttl_seconds,
            ..TenantChains::of(root, chains, max_hops)
        })
    }

    fn activate(&self, tenant: TenantId, before: Option<&TenantChains>, now: &Arc<TenantChains>) {
        self.record_deletions(before, now);
        self.end_scripts(tenant, before, now);
        self.start_sources(tenant, now);
    }
}

/// Runs work, and keeps `note` until its first poll is over.
async fn noted_first(work: impl Future<Output = ()>, note: Option<LoadNote>) {
    let mut work = pin!(work);
    let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context)));
    if first.await.is_pending() {
        drop(note);
        work.await;
    }
}

/// Passes entity events on to a registry of chains.
pub struct ChainRegistryListener(pub Arc<ChainRegistry>);

impl EntityListener for ChainRegistryListener {
    fn on_change(&self, change: EntityChange) {
        self.0.fields.on_change(change);
        let EntityKey { tenant, entity } = change.subject;
        match (entity.entity_type, change.what) {
            (EntityType::RuleChain, ChangeKind::Saved | ChangeKind::Deleted) => {
                self.0.mark_stale(tenant, Some(RuleChainId(entity.id)));
            }
            (EntityType::Tenant, ChangeKind::Saved) => self.0.mark_stale(tenant, None),
            (EntityType::TenantProfile, ChangeKind::Saved | ChangeKind::Deleted) => self.0.mark_all_stale(),
            (EntityType::Tenant, ChangeKind::Deleted) => self.0.forget(tenant),
            (EntityType::Device | EntityType::Asset | EntityType::Customer, ChangeKind::Deleted) => {
                self.0.note_entity(tenant, entity);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
