//! Rule chains.

mod checks;
mod default_chain;
mod metadata;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) use default_chain::ensure_root;
use fieldline_core::events::EntityChange;
use fieldline_core::ports::{SavedBy, StoreErrorKind};
use fieldline_model::entity::{
    EntityDraft, EntityVersion, OutputLabelsUsage, RuleChain, RuleChainMetaData, RuleChainType,
    RuleChainVersion, RuleNode,
};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{EntityKey, EntityType, RuleChainId, TenantId};
use serde_json::Value;

use super::{ServiceContext, ServiceError, ServiceResult, quota, saving, validate, versions};

/// The node that passes messages to another chain.
pub const INPUT_NODE: &str = "org.thingsboard.rule.engine.flow.TbRuleChainInputNode";
/// The node that gives messages back to the chain they came from, with its name as their label.
pub const OUTPUT_NODE: &str = "org.thingsboard.rule.engine.flow.TbRuleChainOutputNode";

/// Profiles read at once.
const PAGE: u32 = 1_000;

/// Rules about rule chains.
#[derive(Clone)]
pub struct RuleChainService(Arc<ServiceContext>);

impl RuleChainService {
    pub(super) fn new(context: &Arc<ServiceContext>) -> Self {
        Self(Arc::clone(context))
    }

    /// Creates the chain without nodes, or updates it where it has an id. The root chain stays the root chain.
    ///
    /// # Errors
    /// A rule is broken.
    pub async fn save(
        &self,
        tenant: TenantId,
        mut chain: EntityDraft<RuleChain>,
    ) -> ServiceResult<RuleChain> {
        let stores = &*self.0.stores.rule_chains;
        chain.tenant_id = tenant;
        checks::check_chain(&chain)?;
        let old = saving::stored(stores, tenant, &chain).await?;
        if let Some(old) = &old {
            if old.root && old.chain_type != chain.chain_type {
                return Err(ServiceError::invalid(
                    "Type of a root rule chain can't be changed!",
                ));
            }
            chain.root |= old.root;
            self.check_root(&chain).await?;
            chain.first_rule_node_id = self.first_node(&chain, old).await?;
        } else {
            quota::check(&self.0, tenant, EntityType::RuleChain).await?;
            self.check_root(&chain).await?;
            chain.first_rule_node_id = None;
        }
        let saved = saving::save(&self.0, stores, chain, old.as_ref()).await?;
        self.tell_saved(tenant, saved.id);
        Ok(saved)
    }

    async fn check_root(&self, chain: &EntityDraft<RuleChain>) -> ServiceResult<()> {
        if !chain.root {
            return Ok(());
        }
        let root = self
            .0
            .stores
            .rule_chains
            .root(chain.tenant_id, chain.chain_type)
            .await?;
        if root.is_none_or(|root| Some(root.id) == chain.id) {
            return Ok(());
        }
        Err(ServiceError::invalid(match chain.chain_type {
            RuleChainType::Core => "Another root rule chain is present in scope of current tenant!",
            RuleChainType::Edge => {
                "Another edge template root rule chain is present in scope of current tenant!"
            }
        }))
    }

    /// The first node belongs to the metadata; one that is given here must be a node of the chain.
    async fn first_node(
        &self,
        chain: &EntityDraft<RuleChain>,
        old: &RuleChain,
    ) -> ServiceResult<Option<fieldline_model::RuleNodeId>> {
        let Some(first) = chain.first_rule_node_id else {
            return Ok(old.first_rule_node_id);
        };
        let node = self.0.stores.rule_chains.node(chain.tenant_id, first).await?;
        if node.is_some_and(|node| node.rule_chain_id == chain.id) {
            return Ok(Some(first));
        }
        Err(ServiceError::invalid(
            "First rule node should be a node of the rule chain!",
        ))
    }

    fn tell_saved(&self, tenant: TenantId, id: RuleChainId) {
        self.0.publish_change(EntityChange::saved(tenant, id));
    }

    /// Makes the chain the only root chain of its type.
    ///
    /// # Errors
    /// There is no such chain.
    pub async fn set_root(&self, tenant: TenantId, id: RuleChainId) -> ServiceResult<RuleChain> {
        let stores = &self.0.stores.rule_chains;
        let gone = || ServiceError::not_found(format!("Rule chain with id [{id}] is not found"));
        let chain = stores.get(tenant, id).await?.ok_or_else(gone)?;
        let former = stores.root(tenant, chain.chain_type).await?;
        if !stores.set_root(tenant, id).await? {
            return Err(gone());
        }
        if let Some(former) = former.filter(|former| former.id != chain.id) {
            self.tell_saved(tenant, former.id);
        }
        self.tell_saved(tenant, id);
        stores.get(tenant, id).await?.ok_or_else(gone)
    }

    /// Deletes the chain with its nodes.
    ///
    /// # Errors
    /// It is a root chain, or a profile refers to it.
    pub async fn delete(&self, tenant: TenantId, chain: &RuleChain) -> ServiceResult<()> {
        if chain.root {
            return Err(ServiceError::invalid(
                "Deletion of Root Tenant Rule Chain is prohibited!",
            ));
        }
        let id = chain.id;
        let stores = &self.0.stores;
        match stores.rule_chains.delete(tenant, id).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => {
                let message = if self.in_device_profiles(tenant, id).await? {
                    "The rule chain referenced by the device profiles cannot be deleted!"
                } else {
                    "The rule chain referenced by the asset profiles cannot be deleted!"
                };
                return Err(ServiceError::from(error).with_message(message));
            }
            deleted => deleted?,
        };
        self.0.publish_change(EntityChange::deleted(tenant, id));
        let entity = id.into();
        Ok(super::calculated_fields::delete_of_entity(&self.0, tenant, entity).await?)
    }

    async fn forget_node(&self, tenant: TenantId, node: &RuleNode) -> ServiceResult<()> {
        let entity = node.id.into();
        Ok(self
            .0
            .stores
            .events
            .delete_subject(EntityKey { tenant, entity })
            .await?)
    }

    async fn in_device_profiles(&self, tenant: TenantId, id: RuleChainId) -> ServiceResult<bool> {
        let mut link = PageLink::first(PAGE);
        loop {
            let page = self.0.stores.device_profiles.list(tenant, &link).await?;
            let refers =
                |chain: Option<fieldline_model::EntityId>| chain.is_some_and(|chain| chain.id == id.0);
            if page
                .data
                .iter()
                .any(|profile| refers(profile.default_rule_chain_id))
            {
                return Ok(true);
            }
            if !page.has_next {
                return Ok(false);
            }
            link.page += 1;
        }
    }

    /// The labels that a chain gives messages back with, sorted.
    ///
    /// # Errors
    /// There is no such chain.
    pub async fn output_labels(&self, tenant: TenantId, id: RuleChainId) -> ServiceResult<BTreeSet<String>> {
        let metadata = self.metadata(tenant, id).await?;
        Ok(metadata
            .nodes
            .into_iter()
            .filter(|node| node.node_type == OUTPUT_NODE)
            .map(|node| node.name)
            .collect())
    }

    /// The nodes that pass messages to a chain and have connections, by the names of their chains and their own.
    ///
    /// # Errors
    /// The store failed.
    pub async fn output_labels_usage(
        &self,
        tenant: TenantId,
        id: RuleChainId,
    ) -> ServiceResult<Vec<OutputLabelsUsage>> {
        let stores = &self.0.stores.rule_chains;
        let mut of_chains: BTreeMap<RuleChainId, Vec<RuleNode>> = BTreeMap::new();
        for node in stores.nodes_of_type(tenant, INPUT_NODE).await? {
            if leads_to(&node, id)
                && let Some(chain) = node.rule_chain_id
            {
                of_chains.entry(chain).or_default().push(node);
            }
        }
        let mut usages = Vec::new();
        for (chain_id, nodes) in of_chains {
            let chain = stores.get(tenant, chain_id).await?;
            let (Some(chain), Some(metadata)) = (chain, stores.metadata(tenant, chain_id).await?) else {
                continue;
            };
            for node in nodes {
                let labels = labels_of(&metadata, &node);
                if !labels.is_empty() {
                    usages.push(OutputLabelsUsage {
                        rule_chain_id: chain_id,
                        rule_node_id: node.id,
                        rule_chain_name: chain.name.clone(),
                        rule_node_name: node.name,
                        labels,
                    });
                }
            }
        }
        let names = |usage: &OutputLabelsUsage| (usage.rule_chain_name.clone(), usage.rule_node_name.clone());
        usages.sort_by_key(names);
        Ok(usages)
    }

    /// Nodes and connections of a chain.
    ///
    /// # Errors
    /// There is no such chain.
    pub async fn metadata(&self, tenant: TenantId, id: RuleChainId) -> ServiceResult<RuleChainMetaData> {
        let metadata = self.0.stores.rule_chains.metadata(tenant, id).await?;
        metadata.ok_or_else(|| ServiceError::not_found(format!("Rule chain with id [{id}] is not found")))
    }

    /// A page of what was saved of the nodes of a chain, the newest first; that it was saved as it is now is always among it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn versions(
        &self,
        chain: &RuleChain,
        page: &PageLink,
    ) -> ServiceResult<PageData<EntityVersion>> {
        let present = EntityVersion {
            version: chain.version.unwrap_or_default(),
            created_time: chain.created_time,
            user_id: None,
            user_name: None,
            title: chain.name.clone(),
        };
        versions::list(&self.0, chain.tenant_id, chain.id.into(), present, page).await
    }

    /// The chain with its nodes as it was saved as a version.
    ///
    /// # Errors
    /// There is no such version any more.
    pub async fn version(&self, chain: &RuleChain, version: i64) -> ServiceResult<RuleChainVersion> {
        let (tenant, id) = (chain.tenant_id, chain.id);
        if let Some(mut saved) =
            versions::get::<RuleChainVersion>(&self.0, tenant, id.into(), version).await?
        {
            saved.rule_chain.version = Some(version);
            saved.metadata.version = Some(version);
            return Ok(saved);
        }
        if chain.version != Some(version) {
            return Err(versions::not_there(version));
        }
        Ok(RuleChainVersion {
            rule_chain: chain.clone(),
            metadata: self.metadata(tenant, id).await?,
        })
    }

    /// Creates a chain of that name with the nodes of the default root chain.
    ///
    /// # Errors
    /// A rule is broken.
    pub async fn create_default(
        &self,
        tenant: TenantId,
        name: &str,
        by: &SavedBy,
    ) -> ServiceResult<RuleChain> {
        validate::required("Rule chain name", name)?;
        let chain = RuleChain {
            name: name.to_owned(),
            additional_info: Some(serde_json::json!({ "description": "" })),
            ..RuleChain::default()
        };
        let chain = self.save(tenant, chain.into()).await?;
        let id = chain.id;
        default_chain::fill(&self.0, tenant, id, by).await?;
        self.tell_saved(tenant, id);
        let saved = self.0.stores.rule_chains.get(tenant, id).await?;
        Ok(saved.unwrap_or(chain))
    }
}

/// Whether an input node leads to a chain.
fn leads_to(node: &RuleNode, chain: RuleChainId) -> bool {
    let target = node.configuration.get("ruleChainId").and_then(Value::as_str);
    target.and_then(|target| target.parse().ok()) == Some(chain)
}

/// The labels of the connections that leave a node.
fn labels_of(metadata: &RuleChainMetaData, node: &RuleNode) -> BTreeSet<String> {
    let Some(index) = metadata.nodes.iter().position(|other| other.id == node.id) else {
        return BTreeSet::new();
    };
    metadata
        .connections()
        .iter()
        .filter(|connection| connection.from_index as usize == index)
        .map(|connection| connection.label.clone())
        .collect()
}
