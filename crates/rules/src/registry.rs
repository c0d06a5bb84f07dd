//! The node types there are.

use serde_json::Value;

use crate::node::Factory;

/// Where the editor of rule chains shows a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Lets messages through, or sends them different ways.
    Filter,
    /// Adds to messages.
    Enrichment,
    /// Changes messages.
    Transformation,
    /// Does something in the platform.
    Action,
    /// Talks to something outside.
    External,
    /// Leads to other chains and queues.
    Flow,
    /// Makes values of many messages.
    Analytics,
}

impl Category {
    /// Name in the REST API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Filter => "FILTER",
            Self::Enrichment => "ENRICHMENT",
            Self::Transformation => "TRANSFORMATION",
            Self::Action => "ACTION",
            Self::External => "EXTERNAL",
            Self::Flow => "FLOW",
            Self::Analytics => "ANALYTICS",
        }
    }
}

/// A type of node.
pub struct NodeType {
    /// Class behind `org.thingsboard.rule.engine.`, such as `filter.TbJsFilterNode`.
    pub class: &'static str,
    /// Name in the editor.
    pub name: &'static str,
    /// One sentence for the editor.
    pub description: &'static str,
    /// Where the editor shows it.
    pub category: Category,
    /// Version of its configuration.
    pub version: i32,
    /// Labels of the connections that leave it.
    pub relations: &'static [&'static str],
    /// Whether it has other labels besides.
    pub custom_relations: bool,
    /// Whether messages can come to it.
    pub has_input: bool,
    /// Its configuration where a person sets nothing.
    pub default_configuration: fn() -> Value,
    /// Brings a configuration of an older version up to date.
    pub upgrade: fn(from_version: i32, configuration: Value) -> Value,
    /// Makes a node.
    pub make: Factory,
}

impl NodeType {
    /// A type with the outputs `Success` and `Failure` and version 0; the others are set by the struct update syntax.
    pub const fn new(class: &'static str, name: &'static str, category: Category, make: Factory) -> Self {
        Self {
            class,
            name,
            description: "",
            category,
            version: 0,
            relations: SUCCESS_FAILURE,
            custom_relations: false,
            has_input: true,
            default_configuration: empty,
            upgrade: same,
            make,
        }
    }
}

/// The outputs of most nodes.
pub const SUCCESS_FAILURE: &[&str] = &["Success", "Failure"];
/// The outputs of most filters.
pub const TRUE_FALSE: &[&str] = &["True", "False", "Failure"];

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
