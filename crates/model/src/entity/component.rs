//! Descriptions of the classes of rule nodes: what the editor of rule chains shows and asks for.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

use super::RuleChainType;
use crate::fnv;

/// Id of a component descriptor, which nothing refers to; always the same for the same class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ComponentDescriptorId {
    /// Bare id.
    pub id: Uuid,
}

impl ComponentDescriptorId {
    /// The id of the descriptor of a class.
    pub fn of_class(class: &str) -> Self {
        let half = |basis| u128::from(fnv::hash(basis, class.bytes()));
        // Two halves: these ids only have to differ among a few dozen classes.
        let bits = half(fnv::BASIS) << 64 | half(0x6c62_272e_07bb_0142);
        Self {
            id: uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid(),
        }
    }
}

/// The group of the editor's palette that a node is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum ComponentType {
    Enrichment,
    Filter,
    Transformation,
    Action,
    External,
    Flow,
}

impl ComponentType {
    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "ENRICHMENT" => Self::Enrichment,
            "FILTER" => Self::Filter,
            "TRANSFORMATION" => Self::Transformation,
            "ACTION" => Self::Action,
            "EXTERNAL" => Self::External,
            "FLOW" => Self::Flow,
            _ => return None,
        })
    }
}

/// Whose messages a component sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the names are their own documentation")]
pub enum ComponentScope {
    System,
    #[default]
    Tenant,
}

/// On how many servers a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ClusteringMode {
    /// As the node says.
    UserPreference,
    /// On every one.
    #[default]
    Enabled,
    /// On one only.
    Singleton,
}

/// A class of rule nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentDescriptor {
    /// Id.
    pub id: ComponentDescriptorId,
    /// When it was created, milliseconds.
    pub created_time: i64,
    /// Its group.
    #[serde(rename = "type")]
    pub component_type: ComponentType,
    /// Whose messages it sees.
    pub scope: ComponentScope,
    /// On how many servers it runs.
    pub clustering_mode: ClusteringMode,
    /// Name in the palette.
    pub name: String,
    /// Full name of the class, as nodes have it in `type`.
    #[serde(rename = "clazz")]
    pub class: String,
    /// What the editor shows and asks for.
    pub configuration_descriptor: ConfigurationDescriptor,
    /// Version of the shape of the configuration.
    pub configuration_version: i32,
    /// Always absent.
    pub actions: Option<String>,
    /// Whether a node of it names a queue.
    pub has_queue_name: bool,
    /// The chains it may be part of.
    #[serde(skip, default = "all_chain_types")]
    pub rule_chain_types: Vec<RuleChainType>,
}

fn all_chain_types() -> Vec<RuleChainType> {
    vec![RuleChainType::Core, RuleChainType::Edge]
}

/// What the editor shows and asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationDescriptor {
    /// See [`NodeDefinition`].
    pub node_definition: NodeDefinition,
}

/// The JSON Schema of a configuration, made anew for whoever asks: seldom, and all of them together are large.
#[derive(Clone, Copy, Default)]
pub struct ConfigurationSchema(Option<fn() -> Value>);

impl ConfigurationSchema {
    /// The schema that a function makes.
    pub const fn new(make: fn() -> Value) -> Self {
        Self(Some(make))
    }

    /// Whether there is none.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The schema; null where there is none.
    pub fn to_value(self) -> Value {
        self.0.map_or(Value::Null, |make| make())
    }
}

impl Serialize for ConfigurationSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl PartialEq for ConfigurationSchema {
    fn eq(&self, other: &Self) -> bool {
        self.to_value() == other.to_value()
    }
}

impl fmt::Debug for ConfigurationSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_none() { "none" } else { "schema" })
    }
}

/// How a node is shown, and what it is made with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeDefinition {
    /// Long description.
    pub details: String,
    /// Short description.
    pub description: String,
    /// Whether connections may lead to it.
    pub in_enabled: bool,
    /// Whether connections may leave it.
    pub out_enabled: bool,
    /// Labels of its messages.
    pub relation_types: Vec<String>,
    /// Whether other labels may be used.
    pub custom_relations: bool,
    /// Whether it leads to another chain.
    pub rule_chain_node: bool,
    /// Configuration of a new node.
    pub default_configuration: Value,
    /// What a configuration may hold: a JSON Schema of the draft 2020-12.
    #[serde(skip_deserializing, skip_serializing_if = "ConfigurationSchema::is_none")]
    #[schema(value_type = Option<Object>)]
    pub configuration_schema: ConfigurationSchema,
    /// Scripts of the editor.
    pub ui_resources: Vec<String>,
    /// Form of the editor.
    pub config_directive: String,
    /// Name of a symbol.
    pub icon: String,
    /// Address of a symbol.
    pub icon_url: String,
    /// Address of its documentation.
    pub doc_url: String,
}
