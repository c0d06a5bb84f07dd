//! Rule chains with their nodes and connections.

use async_trait::async_trait;
use fieldline_model::entity::{RuleChain, RuleChainMetaData, RuleChainType, RuleNode};
use fieldline_model::page::{PageData, PageLink};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};

use super::{SavedBy, StoreResult, TenantEntityStore};

/// Rule chains. A second root chain of the same tenant and type is a conflict. An update leaves nodes and connections
/// unchanged; they are deleted with their chain, which cannot be deleted while a profile refers to it.
#[async_trait]
pub trait RuleChainStore: TenantEntityStore<RuleChain> {
    /// The oldest chain with this type and name; names are not unique.
    async fn by_name(
        &self,
        tenant: TenantId,
        chain_type: RuleChainType,
        name: &str,
    ) -> StoreResult<Option<RuleChain>>;
    /// The root chain of a type.
    async fn root(&self, tenant: TenantId, chain_type: RuleChainType) -> StoreResult<Option<RuleChain>>;
    /// Makes a chain the only root chain of its type; returns whether it exists.
    async fn set_root(&self, tenant: TenantId, id: RuleChainId) -> StoreResult<bool>;
    /// A page of chains, of one type or all; text search in the name. Sorts by createdTime, name, root.
    async fn list(
        &self,
        tenant: TenantId,
        chain_type: Option<RuleChainType>,
        page: &PageLink,
    ) -> StoreResult<PageData<RuleChain>>;
    /// Nodes and connections of a chain, if the tenant has it: nodes in the order in which they were saved, connections
    /// ordered by source node, target node and label.
    async fn metadata(&self, tenant: TenantId, id: RuleChainId) -> StoreResult<Option<RuleChainMetaData>>;
    /// Replaces nodes, connections and the first node of a chain at once; returns the stored metadata. No other chain
    /// may have a node with the same id. Versions as in [`EntityStore::update`](super::EntityStore::update), applied to
    /// the chain. What is saved is kept as a version (see [`VersionStore`](super::VersionStore)).
    async fn save_metadata(
        &self,
        tenant: TenantId,
        metadata: RuleChainMetaData,
        by: &SavedBy,
    ) -> StoreResult<RuleChainMetaData>;
    /// The node, if the tenant has it.
    async fn node(&self, tenant: TenantId, id: RuleNodeId) -> StoreResult<Option<RuleNode>>;
    /// All nodes of a class in any chain of the tenant.
    async fn nodes_of_type(&self, tenant: TenantId, class: &str) -> StoreResult<Vec<RuleNode>>;
}
