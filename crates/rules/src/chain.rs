//! Rule chains, compiled: an index graph that messages walk in place.

use std::collections::HashMap;
use std::sync::Arc;

use fieldline_model::configuration_size::CONFIGURATION;
use fieldline_model::entity::{DebugSettings, RuleChain, RuleChainMetaData, RuleNode};
use fieldline_model::{RuleChainId, RuleNodeId, TenantId};
use serde_json::{Map, Value};

use crate::bounds::CompileAllowance;
use crate::node::{ConnectionLabel, Node, NodeInitContext};
use crate::node_counters::NodeCounters;
use crate::node_types::{self, NodeType};
use crate::services::NodeServices;

/// Makes a node of a chain, or says why it cannot run.
pub type ChainNodeFactory<'a> = dyn Fn(&RuleNode) -> Result<Arc<dyn Node>, Box<str>> + 'a;

/// A compiled chain.
pub struct CompiledChain {
    /// Its id.
    pub id: RuleChainId,
    /// Version that it was compiled from.
    pub version: i64,
    /// Its name.
    pub name: Box<str>,
    /// The node where messages enter.
    pub first: Option<usize>,
    /// Its nodes; edges refer to them by position.
    pub nodes: Vec<CompiledNode>,
}

/// A node within its chain.
pub struct CompiledNode {
    /// Its id.
    pub id: RuleNodeId,
    /// The name that a user gave it.
    pub name: Box<str>,
    /// Class, without its package prefix.
    pub class: Box<str>,
    /// The node, or the reason why it cannot run.
    pub node: Result<Arc<dyn Node>, Box<str>>,
    /// The queue that is set on the node.
    pub queue: Option<Box<str>>,
    /// The debug events that are stored.
    pub debug: DebugEventPolicy,
    edges: Vec<(Box<str>, usize)>,
    source: RuleNode,
    pub(crate) counters: NodeCounters,
}

/// The debug events of a node that are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DebugEventPolicy {
    /// Failures are stored.
    pub failures: bool,
    /// All events are stored until this time, milliseconds.
    pub all_until: i64,
}

impl DebugEventPolicy {
    fn of(settings: Option<&DebugSettings>) -> Self {
        let Some(settings) = settings else {
            return Self::default();
        };
        let until = if settings.all_enabled {
            i64::MAX
        } else {
            settings.all_enabled_until
        };
        Self {
            failures: settings.failures_enabled,
            all_until: until,
        }
    }

    /// Whether anything is stored at all.
    pub const fn is_on(self) -> bool {
        self.failures || self.all_until > 0
    }
}

impl CompiledNode {
    /// The nodes that a label leads to, compared without case.
    pub fn targets(&self, label: &ConnectionLabel) -> impl Iterator<Item = usize> {
        self.edges
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(&label.0))
            .map(|(_, to)| *to)
    }

    fn is_same(&self, other: &RuleNode) -> bool {
        let RuleNode {
            node_type,
            configuration,
            configuration_version,
            queue_name,
            name,
            ..
        } = &self.source;
        *node_type == other.node_type
            && *configuration == other.configuration
            && *configuration_version == other.configuration_version
            && *queue_name == other.queue_name
            && *name == other.name
    }
}

impl CompiledChain {
    /// Compiles a chain. A node that cannot run is kept with the reason. Nodes that are unchanged since `before` are
    /// reused with their state.
    pub fn compile(
        services: &Arc<NodeServices>,
        tenant: TenantId,
        chain: &RuleChain,
        metadata: &RuleChainMetaData,
        before: Option<&Self>,
    ) -> Self {
        let allowance = CompileAllowance::default();
        let make = |node: &RuleNode| make(services, tenant, node, &allowance).map_err(Into::into);
        Self::compile_with(chain, metadata, before, &make)
    }

    /// The chain with no runnable node, each for this reason.
    pub(crate) fn inactive(chain: &RuleChain, metadata: &RuleChainMetaData, why: &str) -> Self {
        Self::compile_with(chain, metadata, None, &|_| Err(why.into()))
    }

    /// Like `compile`, with nodes that `make` creates.
    pub fn compile_with(
        chain: &RuleChain,
        metadata: &RuleChainMetaData,
        before: Option<&Self>,
        make: &ChainNodeFactory<'_>,
    ) -> Self {
        let before: HashMap<RuleNodeId, &CompiledNode> = before
            .into_iter()
            .flat_map(|before| &before.nodes)
            .map(|node| (node.id, node))
            .collect();
        let mut nodes: Vec<CompiledNode> = metadata
            .nodes
            .iter()
            .map(|node| {
                let id = node.id;
                let kept = before
                    .get(&id)
                    .filter(|kept| kept.is_same(node) && kept.node.is_ok());
                CompiledNode {
                    id,
                    name: node.name.as_str().into(),
                    class: node
                        .node_type
                        .strip_prefix(node_types::PREFIX)
                        .unwrap_or(&node.node_type)
                        .into(),
                    node: match kept {
                        Some(kept) => kept.node.clone(),
                        None => make(node),
                    },
                    queue: node
                        .queue_name
                        .as_deref()
                        .filter(|name| !name.is_empty())
                        .map(Into::into),
                    debug: DebugEventPolicy::of(node.debug_settings.as_ref()),
                    edges: Vec::new(),
                    source: node.clone(),
                    counters: NodeCounters::new([]),
                }
            })
            .collect();
        let count = nodes.len();
        for connection in metadata.connections() {
            let to = connection.to_index as usize;
            if let Some(from) = nodes.get_mut(connection.from_index as usize)
                && to < count
            {
                from.edges.push((connection.label.as_str().into(), to));
            }
        }
        for node in &mut nodes {
            let labels = node.edges.iter().map(|(label, _)| label.clone());
            node.counters = match before.get(&node.id) {
                Some(before) => NodeCounters::continuing(&before.counters, labels),
                None => NodeCounters::new(labels),
            };
        }
        Self {
            id: chain.id,
            version: metadata.version.unwrap_or_default(),
            name: chain.name.as_str().into(),
            first: metadata
                .first_node_index
                .map(|index| index as usize)
                .filter(|index| *index < count),
            nodes,
        }
    }

    /// A chain of nodes without configurations; messages enter at the first one.
    #[cfg(test)]
    pub(crate) fn of(
        id: RuleChainId,
        nodes: Vec<(RuleNodeId, Arc<dyn Node>)>,
        edges: &[(usize, usize, &str)],
    ) -> Self {
        let nodes = nodes
            .into_iter()
            .enumerate()
            .map(|(at, (id, node))| CompiledNode {
                id,
                name: format!("node {at}").into(),
                class: "".into(),
                node: Ok(node),
                queue: None,
                debug: DebugEventPolicy::default(),
                edges: edges
                    .iter()
                    .filter(|(from, ..)| *from == at)
                    .map(|(_, to, label)| ((*label).into(), *to))
                    .collect(),
                source: RuleNode::default(),
                counters: NodeCounters::new([]),
            });
        Self {
            id,
            version: 0,
            name: "made up".into(),
            first: Some(0),
            nodes: nodes.collect(),
        }
    }

    /// Position of a node.
    pub fn position(&self, id: RuleNodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }
}

/// Upgrades a configuration to the current version of its node type.
pub fn upgrade(node_type: &NodeType, version: i32, configuration: &Value) -> Value {
    if version < node_type.version {
        (node_type.upgrade)(version, configuration.clone())
    } else {
        configuration.clone()
    }
}

/// Makes a node, counting its configuration against its chain's limits.
///
/// # Errors
/// The node cannot run; the text says why and names the field.
pub fn make(
    services: &Arc<NodeServices>,
    tenant: TenantId,
    node: &RuleNode,
    allowance: &CompileAllowance,
) -> Result<Arc<dyn Node>, String> {
    let node_type =
        node_types::find(&node.node_type).ok_or_else(|| format!("unknown node type `{}`", node.node_type))?;
    allowance
        .take(&node.configuration)
        .map_err(|error| error.to_string())?;
    let configuration = match upgrade(node_type, node.configuration_version, &node.configuration) {
        Value::Null => Value::Object(Map::new()),
        configuration @ Value::Object(_) => configuration,
        _ => return Err(format!("{CONFIGURATION}: must be a JSON object")),
    };
    let config = NodeInitContext {
        value: &configuration,
        name: &node.name,
        id: node.id.0,
        queue: node.queue_name.as_deref().filter(|name| !name.is_empty()),
        services,
        tenant,
        regexes: &allowance.regexes,
    };
    (node_type.make)(&config).map_err(|error| error.to_string())
}

/// Checks a chain before it is saved: connections to missing nodes, cycles, nodes that cannot run.
///
/// # Errors
/// The first mistake found, with the node's name.
pub fn check(services: &Arc<NodeServices>, metadata: &RuleChainMetaData) -> Result<(), String> {
    let count = metadata.nodes.len();
    if let Some(first) = metadata.first_node_index.filter(|first| *first as usize >= count) {
        return Err(format!(
            "First node {first} is not one of the {count} nodes of the rule chain!"
        ));
    }
    let name = |index: u32| metadata.nodes.get(index as usize).map(|node| node.name.as_str());
    let mut next = vec![Vec::new(); count];
    for connection in metadata.connections() {
        let (Some(from), Some(_)) = (name(connection.from_index), name(connection.to_index)) else {
            let known = name(connection.from_index)
                .or_else(|| name(connection.to_index))
                .unwrap_or("?");
            return Err(format!(
                "The connection '{}' at node '{known}' leads from {} to {}, but there are only {count} nodes!",
                connection.label, connection.from_index, connection.to_index
            ));
        };
        if connection.from_index == connection.to_index {
            return Err(format!("Can't create the relation to yourself: node '{from}'!"));
        }
        if let Some(next) = next.get_mut(connection.from_index as usize) {
            next.push(connection.to_index as usize);
        }
    }
    if let Some(at) = find_circle(&next) {
        let name = name(at as u32).unwrap_or_default();
        return Err(format!(
            "Can't create circling relations in rule chain: node '{name}' leads back to itself!"
        ));
    }
    let allowance = CompileAllowance::default();
    for node in &metadata.nodes {
        make(services, TenantId::NULL, node, &allowance)
            .map_err(|error| format!("Rule node '{}': {error}", node.name))?;
    }
    Ok(())
}

/// A node that lies on a cycle.
fn find_circle(next: &[Vec<usize>]) -> Option<usize> {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; next.len()];
    for start in 0..next.len() {
        // Iterative, not recursive, because a chain may be of any length.
        let mut path = vec![(start, 0)];
        while let Some((node, edge)) = path.last_mut() {
            let (at, edges) = (*node, next.get(*node)?);
            if *edge == 0 {
                if state.get(at) == Some(&DONE) {
                    path.pop();
                    continue;
                }
                *state.get_mut(at)? = OPEN;
            }
            match edges.get(*edge) {
                Some(to) => {
                    *edge += 1;
                    match state.get(*to) {
                        Some(&OPEN) => return Some(*to),
                        Some(&NEW) => path.push((*to, 0)),
                        _ => {}
                    }
                }
                None => {
                    *state.get_mut(at)? = DONE;
                    path.pop();
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_diamonds_are_none() {
        assert_eq!(find_circle(&[vec![1, 2], vec![3], vec![3], vec![]]), None);
        assert_eq!(find_circle(&[vec![1], vec![2], vec![0]]), Some(0));
        assert_eq!(
            find_circle(&[vec![], vec![2], vec![3], vec![1], vec![2]]),
            Some(1)
        );
        let long: Vec<Vec<usize>> = (0..200_000)
            .map(|at| if at < 199_999 { vec![at + 1] } else { vec![] })
            .collect();
        assert_eq!(find_circle(&long), None);
    }
}
