//! Saving the nodes and connections of a chain, and renaming labels in the chains that use it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fieldline_core::ports::{SavedBy, StoreError, StoreErrorKind};
use fieldline_model::entity::{ChainConnection, ClusteringMode, NodeConnection, RuleChainMetaData, RuleNode};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use serde_json::{Value, json};

use super::super::{ServiceContext, ServiceError, ServiceResult, debug};
use super::{INPUT_NODE, OUTPUT_NODE, RuleChainService, checks};

/// How often labels are renamed in a chain that is changed at the same time.
const MOST_TRIES: u32 = 5;

impl RuleChainService {
    /// Replaces nodes and connections of a chain. Nodes of the chain that are there again under their ids stay, the others
    /// go; configurations of older versions are brought up to date. With `update_related`, connections of other chains
    /// follow when labels that this chain gives back are renamed.
    ///
    /// # Errors
    /// A rule is broken, a node cannot run, or the chain is not there in the version that is given.
    pub async fn save_metadata(
        &self,
        tenant: TenantId,
        metadata: RuleChainMetaData,
        update_related: bool,
        by: &SavedBy,
    ) -> ServiceResult<RuleChainMetaData> {
        let id = metadata
            .rule_chain_id
            .ok_or_else(|| ServiceError::invalid("Rule chain id should be specified!"))?;
        let old = self.metadata(tenant, id).await?;
        let metadata = prepare(&self.0, tenant, metadata, &old).await?;
        let stores = &self.0.stores.rule_chains;
        let saved = stores.save_metadata(tenant, metadata, by).await?;
        self.tell_saved(tenant, id);
        let kept: BTreeSet<_> = saved.nodes.iter().map(|node| node.id).collect();
        for gone in &old.nodes {
            if !kept.contains(&gone.id) {
                self.forget_node(tenant, gone).await?;
            }
        }
        let renamed = renamed_labels(&old, &saved);
        if update_related && !renamed.is_empty() {
            for usage in self.output_labels_usage(tenant, id).await? {
                if usage.labels.iter().any(|label| renamed.contains_key(label)) {
                    self.rename_labels(tenant, usage.rule_chain_id, usage.rule_node_id, &renamed, by)
                        .await?;
                }
            }
        }
        Ok(saved)
    }

    async fn rename_labels(
        &self,
        tenant: TenantId,
        chain: RuleChainId,
        node: RuleNodeId,
        renamed: &BTreeMap<String, String>,
        by: &SavedBy,
    ) -> ServiceResult<()> {
        let stores = &self.0.stores.rule_chains;
        let mut lost: Option<StoreError> = None;
        for _ in 0..MOST_TRIES {
            let Some(mut metadata) = stores.metadata(tenant, chain).await? else {
                return Ok(());
            };
            let Some(index) = metadata.nodes.iter().position(|other| other.id == node) else {
                return Ok(());
            };
            for connection in metadata.connections.iter_mut().flatten() {
                if connection.from_index as usize == index
                    && let Some(label) = renamed.get(&connection.label)
                {
                    connection.label.clone_from(label);
                }
            }
            match stores.save_metadata(tenant, metadata, by).await {
                Err(error) if error.kind() == StoreErrorKind::VersionConflict => lost = Some(error),
                saved => {
                    saved?;
                    self.tell_saved(tenant, chain);
                    return Ok(());
                }
            }
        }
        lost.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Completes and checks what a client sends.
pub(super) async fn prepare(
    context: &ServiceContext,
    tenant: TenantId,
    mut metadata: RuleChainMetaData,
    old: &RuleChainMetaData,
) -> ServiceResult<RuleChainMetaData> {
    checks::check_metadata(&metadata)?;
    for connection in metadata.rule_chain_connections.take().unwrap_or_default() {
        let target = context
            .stores
            .rule_chains
            .get(tenant, connection.target_rule_chain_id)
            .await?;
        add_input_node(&mut metadata, connection, target.map(|chain| chain.name));
    }
    checks::check_metadata(&metadata)?;
    let (now, latest_end) = (context.now(), debug::latest_end(context, tenant).await?);
    let mut existing: HashMap<RuleNodeId, i64> = old
        .nodes
        .iter()
        .map(|node| (node.id, node.created_time))
        .collect();
    for node in &mut metadata.nodes {
        complete(context, node)?;
        // An id that the chain does not have, or has lent already, is as good as none.
        let known = existing.remove_entry(&node.id);
        let (id, created_time) = known.unwrap_or_else(|| (RuleNodeId::new(), now));
        node.id = id;
        node.created_time = created_time;
        node.rule_chain_id = metadata.rule_chain_id;
        node.debug_settings = debug::stored(node.debug_settings, node.debug_mode, latest_end);
        node.debug_mode = false;
    }
    context
        .rule_nodes
        .check_chain(&metadata)
        .map_err(ServiceError::invalid)?;
    Ok(metadata)
}

/// What the class of a node decides.
fn complete(context: &ServiceContext, node: &mut RuleNode) -> ServiceResult<()> {
    if let Some(class) = context.rule_nodes.descriptor(&node.node_type) {
        match class.clustering_mode {
            ClusteringMode::Enabled => node.singleton_mode = false,
            ClusteringMode::Singleton => node.singleton_mode = true,
            ClusteringMode::UserPreference => {}
        }
    }
    let configuration = std::mem::take(&mut node.configuration);
    let (version, configuration) = context
        .rule_nodes
        .upgrade(&node.node_type, node.configuration_version, configuration)
        .map_err(|error| {
            ServiceError::invalid(format!("'{}' node configuration is invalid: {error}", node.name))
        })?;
    node.configuration_version = version;
    node.configuration = configuration;
    Ok(())
}

/// A connection to another chain in the older form becomes a node and a connection to it.
fn add_input_node(metadata: &mut RuleChainMetaData, connection: ChainConnection, target: Option<String>) {
    let to_index = u32::try_from(metadata.nodes.len()).unwrap_or(u32::MAX);
    let mut layout = connection.additional_info;
    if let Some(Value::Object(layout)) = &mut layout {
        layout.remove("description");
        layout.remove("ruleChainNodeId");
    }
    metadata.nodes.push(RuleNode {
        node_type: INPUT_NODE.to_owned(),
        name: target.unwrap_or_else(|| "Rule Chain Input".to_owned()),
        configuration: json!({ "ruleChainId": connection.target_rule_chain_id.0 }),
        additional_info: layout,
        ..RuleNode::default()
    });
    metadata.connections.get_or_insert_default().push(NodeConnection {
        from_index: connection.from_index,
        to_index,
        label: connection.label,
    });
}

/// Which labels that a chain gives back have been renamed, and to what: none that was renamed to two different ones, or is
/// still there.
fn renamed_labels(old: &RuleChainMetaData, new: &RuleChainMetaData) -> BTreeMap<String, String> {
    let new_nodes: HashMap<RuleNodeId, &RuleNode> = new
        .nodes
        .iter()
        .filter(|node| node.node_type == OUTPUT_NODE)
        .map(|node| (node.id, node))
        .collect();
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    let mut confused = BTreeSet::new();
    for before in &old.nodes {
        let Some(after) = new_nodes.get(&before.id) else {
            continue;
        };
        if before.name != after.name {
            let former = renamed.insert(before.name.clone(), after.name.clone());
            if former.is_some_and(|former| former != after.name) {
                confused.insert(before.name.clone());
            }
        }
    }
    renamed
        .retain(|label, _| !confused.contains(label) && !new_nodes.values().any(|node| node.name == *label));
    renamed
}
