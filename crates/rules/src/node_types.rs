//! The node types there are.

use fieldline_model::entity::{ClusteringMode, RuleChainType};
use serde_json::Value;

use crate::node::{NodeConfigError, NodeFactory};

/// Where the editor of rule chains shows a node.
pub use fieldline_model::entity::ComponentType;

/// A type of node.
pub struct NodeType {
    /// Class behind `org.thingsboard.rule.engine.`, such as `filter.TbJsFilterNode`.
    pub class: &'static str,
    /// Name in the editor.
    pub name: &'static str,
    /// One sentence for the editor.
    pub description: &'static str,
    /// Where the editor shows it.
    pub category: ComponentType,
    /// Version of its configuration.
    pub version: i32,
    /// Labels of the connections that leave it.
    pub relations: &'static [&'static str],
    /// Whether it has other labels besides.
    pub custom_relations: bool,
    /// Whether messages can come to it.
    pub has_input: bool,
    /// Whether connections can leave it.
    pub has_output: bool,
    /// Whether it leads into another chain.
    pub enters_chain: bool,
    /// Whether a node of it may name a queue.
    pub has_queue: bool,
    /// On how many servers it runs.
    pub clustering: ClusteringMode,
    /// Kinds of chains that it may be part of.
    pub chain_types: &'static [RuleChainType],
    /// Its configuration where a person sets nothing.
    pub default_configuration: fn() -> Value,
    /// JSON Schema of its configuration.
    pub schema: fn() -> Value,
    /// Brings a configuration of an older version up to date.
    pub upgrade: fn(from_version: i32, configuration: Value) -> Value,
    /// Makes a node.
    pub make: NodeFactory,
}

impl NodeType {
    /// What most actions have: the outputs `Success` and `Failure`, and version 0.
    pub const ACTION: Self = Self {
        class: "",
        name: "",
        description: "",
        category: ComponentType::Action,
        version: 0,
        relations: SUCCESS_FAILURE,
        custom_relations: false,
        has_input: true,
        has_output: true,
        enters_chain: false,
        has_queue: false,
        clustering: ClusteringMode::Enabled,
        chain_types: &[RuleChainType::Core, RuleChainType::Edge],
        default_configuration: empty,
        schema: || Value::Null,
        upgrade: same,
        make: |_| Err(NodeConfigError::new("type", "has no node")),
    };
    /// The same for filters, with the outputs `True`, `False` and `Failure`.
    pub const FILTER: Self = Self {
        category: ComponentType::Filter,
        relations: TRUE_FALSE,
        ..Self::ACTION
    };
    /// The same for nodes that add to messages.
    pub const ENRICHMENT: Self = Self {
        category: ComponentType::Enrichment,
        ..Self::ACTION
    };
    /// The same for nodes that change messages.
    pub const TRANSFORMATION: Self = Self {
        category: ComponentType::Transformation,
        ..Self::ACTION
    };
    /// The same for nodes that send messages out.
    pub const EXTERNAL: Self = Self {
        category: ComponentType::External,
        ..Self::ACTION
    };
    /// The same for nodes that lead elsewhere.
    pub const FLOW: Self = Self {
        category: ComponentType::Flow,
        ..Self::ACTION
    };
}

/// The outputs of most nodes.
const SUCCESS_FAILURE: &[&str] = &["Success", "Failure"];
/// The outputs of most filters.
const TRUE_FALSE: &[&str] = &["True", "False", "Failure"];

/// Prefix of the class names in stored and exported chains.
pub const PREFIX: &str = "org.thingsboard.rule.engine.";

fn empty() -> Value {
    serde_json::json!({})
}

fn same(_: i32, configuration: Value) -> Value {
    configuration
}

/// The node type of a class name with its prefix.
pub fn find(class: &str) -> Option<&'static NodeType> {
    let short = class.strip_prefix(PREFIX)?;
    all().find(|node| node.class == short)
}

/// Every node type.
pub fn all() -> impl Iterator<Item = &'static NodeType> {
    crate::nodes::GROUPS.iter().flat_map(|group| group.iter())
}
