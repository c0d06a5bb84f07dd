//! Nodes whose counterpart this platform does not have. Chains that hold them can be imported; messages that come to them
//! fail and say why, or the chain cannot be saved where a node could never work.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldline_model::entity::RuleChainType;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::telemetry::configured_scope;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "edge.TbMsgPushToEdgeNode",
        name: "push to edge",
        description: "Pushes messages from cloud to edge.",
        chain_types: &[RuleChainType::Core],
        default_configuration: server_scope,
        schema: config_schema::of::<PushConfig>,
        make: make_edge,
        ..NodeType::ACTION
    },
    NodeType {
        class: "edge.TbMsgPushToCloudNode",
        name: "push to cloud",
        description: "Pushes messages from edge to cloud.",
        chain_types: &[RuleChainType::Edge],
        default_configuration: server_scope,
        schema: config_schema::of::<PushConfig>,
        make: make_edge,
        ..NodeType::ACTION
    },
    NodeType {
        class: "action.TbSaveToCustomCassandraTableNode",
        name: "save to custom table",
        description: "Stores data from the message body in a custom Cassandra table.",
        version: 1,
        chain_types: &[RuleChainType::Core],
        default_configuration: || json!({ "tableName": "", "fieldsMapping": {"": ""}, "defaultTtl": 0 }),
        schema: config_schema::of::<TableConfig>,
        upgrade: upgrade_cassandra,
        make: make_cassandra,
        ..NodeType::ACTION
    },
];

fn server_scope() -> Value {
    json!({ "scope": "SERVER_SCOPE" })
}

struct PushToEdgeNode;

#[derive(Deserialize, JsonSchema)]
struct PushConfig {
    #[schemars(schema_with = "config_schema::attribute_scope")]
    scope: Option<String>,
}

fn make_edge(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    configured_scope(config.parse::<PushConfig>()?.scope.as_deref())?;
    Ok(Arc::new(PushToEdgeNode))
}

impl Node for PushToEdgeNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        NodeResult::fail(msg, "Edge is not supported")
    }
}

fn upgrade_cassandra(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
    {
        fields.entry("defaultTtl").or_insert_with(|| 0.into());
    }
    configuration
}

/// What is read of a node that can never work: enough to keep it as it is.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default)]
struct TableConfig {
    #[serde(rename = "tableName")]
    _table_name: Option<String>,
    #[serde(rename = "fieldsMapping")]
    #[schemars(schema_with = "config_schema::text_pairs")]
    _fields_mapping: Option<BTreeMap<String, String>>,
    #[serde(rename = "defaultTtl")]
    #[schemars(title = "Default TTL", extend("x-unit" = "s"))]
    _default_ttl: Option<i64>,
}

fn make_cassandra(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    config.parse::<TableConfig>()?;
    Err(NodeConfigError::new(
        "tableName",
        "no Cassandra database is configured on this server",
    ))
}
