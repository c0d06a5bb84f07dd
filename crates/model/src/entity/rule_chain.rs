//! Rule chains: nodes that messages pass, and the connections between them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DebugSettings;
use super::draft::stored_entity;
use crate::{RuleChainId, RuleNodeId, TenantId};

/// Where a rule chain runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum RuleChainType {
    /// On the platform.
    #[default]
    Core,
    /// On edges.
    Edge,
}

impl RuleChainType {
    /// The name in the REST API and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "CORE",
            Self::Edge => "EDGE",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Core, Self::Edge]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A rule chain without its nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleChain {
    /// Id; absent in a request to create.
    #[schema(value_type = Option<RuleChainId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: RuleChainId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// The tenant it belongs to; set by the platform.
    #[serde(deserialize_with = "super::null_as_default")]
    pub tenant_id: TenantId,
    /// Name.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// Where it runs.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub chain_type: RuleChainType,
    /// Where messages enter; messages of a chain without one are done.
    pub first_rule_node_id: Option<RuleNodeId>,
    /// Whether it handles what no profile sends elsewhere; one a tenant and type.
    #[serde(deserialize_with = "super::null_as_default")]
    pub root: bool,
    /// Of no effect; nodes are debugged each on its own.
    #[serde(deserialize_with = "super::null_as_default")]
    pub debug_mode: bool,
    /// Free-form JSON.
    pub configuration: Option<Value>,
    /// Free-form JSON.
    pub additional_info: Option<Value>,
    /// Id in the system it was imported from.
    pub external_id: Option<RuleChainId>,
    /// Counts the updates of chain and metadata, for optimistic locking.
    pub version: Option<i64>,
}

stored_entity!(RuleChain: RuleChainId);

/// A node of a rule chain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleNode {
    /// Id; absent for a node that is new.
    #[schema(value_type = Option<RuleNodeId>, default = json!(null))]
    #[serde(with = "super::id_or_null")]
    pub id: RuleNodeId,
    /// When it was created, milliseconds.
    #[serde(deserialize_with = "super::null_as_default")]
    pub created_time: i64,
    /// Its chain.
    pub rule_chain_id: Option<RuleChainId>,
    /// Full name of its class.
    #[serde(rename = "type")]
    #[serde(deserialize_with = "super::null_as_default")]
    pub node_type: String,
    /// Name; the label to return, for nodes that leave a nested chain.
    #[serde(deserialize_with = "super::null_as_default")]
    pub name: String,
    /// The older form of a request to store everything; never given back.
    #[serde(skip_serializing, deserialize_with = "super::null_as_default")]
    pub debug_mode: bool,
    /// Which debug events are stored.
    pub debug_settings: Option<DebugSettings>,
    /// Whether it runs on one server only.
    #[serde(deserialize_with = "super::null_as_default")]
    pub singleton_mode: bool,
    /// Queue that messages are put in, for nodes that do so.
    pub queue_name: Option<String>,
    /// Version of the shape of its configuration.
    #[serde(deserialize_with = "super::null_as_default")]
    pub configuration_version: i32,
    /// Its settings, by its class.
    pub configuration: Value,
    /// Id in the system it was imported from.
    pub external_id: Option<RuleNodeId>,
    /// `layoutX`, `layoutY`, `description`.
    pub additional_info: Option<Value>,
}

/// A connection between two nodes of a chain, by their positions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeConnection {
    /// Position of the node that messages leave.
    pub from_index: u32,
    /// Position of the node that they enter.
    pub to_index: u32,
    /// Label of the messages that go this way, regardless of case.
    #[serde(rename = "type")]
    pub label: String,
}

/// A connection to another chain, in the older form: read from imports, where it becomes a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainConnection {
    /// Position of the node that messages leave.
    pub from_index: u32,
    /// The chain that they enter.
    pub target_rule_chain_id: RuleChainId,
    /// `layoutX`, `layoutY` of the connection.
    pub additional_info: Option<Value>,
    /// Label of the messages that go this way.
    #[serde(rename = "type")]
    pub label: String,
}

/// The nodes of a rule chain and how they are connected.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleChainMetaData {
    /// The chain.
    pub rule_chain_id: Option<RuleChainId>,
    /// Version of the chain.
    pub version: Option<i64>,
    /// Position of the node where messages enter.
    pub first_node_index: Option<u32>,
    /// The nodes; connections name them by their positions from 0.
    #[serde(deserialize_with = "super::null_as_default")]
    pub nodes: Vec<RuleNode>,
    /// Connections between nodes; absent where there are none.
    pub connections: Option<Vec<NodeConnection>>,
    /// Connections to other chains in the older form; absent in answers.
    pub rule_chain_connections: Option<Vec<ChainConnection>>,
    /// Notes on the canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub notes: Option<Vec<Value>>,
}

impl RuleChainMetaData {
    /// The connections, none where absent.
    pub fn connections(&self) -> &[NodeConnection] {
        self.connections.as_deref().unwrap_or_default()
    }
}

/// Rule chains that are taken from one tenant to another.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleChainData {
    /// The chains.
    #[serde(deserialize_with = "super::null_as_default")]
    pub rule_chains: Vec<RuleChain>,
    /// Their nodes and connections.
    #[serde(deserialize_with = "super::null_as_default")]
    pub metadata: Vec<RuleChainMetaData>,
}

/// What became of an imported chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleChainImportResult {
    /// The chain as it is called here.
    pub rule_chain_id: Option<RuleChainId>,
    /// Its name.
    pub rule_chain_name: String,
    /// Whether it has replaced one of that name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub updated: bool,
    /// Why it was not imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A node that passes messages to a chain, and the labels of that chain's answers that it has connections for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputLabelsUsage {
    /// The chain of the node.
    pub rule_chain_id: RuleChainId,
    /// The node.
    pub rule_node_id: RuleNodeId,
    /// Name of the chain.
    pub rule_chain_name: String,
    /// Name of the node.
    pub rule_node_name: String,
    /// Labels of its connections.
    pub labels: BTreeSet<String>,
}
