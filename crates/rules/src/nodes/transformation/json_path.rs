//! What a JSONPath finds in the body.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::config_schema;
use crate::message::{MessageBody, RuleMessage};
use crate::node::{Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::json_path::JsonPath;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "transform.TbJsonPathNode",
    name: "json path",
    description: "Replaces the body by what a JSONPath finds in it.",
    default_configuration: || json!({"jsonPath": "$"}),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::TRANSFORMATION
}];

/// No path is that of the whole body.
struct JsonPathNode(Option<JsonPath>);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "JSONPath")]
    json_path: String,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let parsed: Config = config.parse()?;
    let path = match parsed.json_path.as_str() {
        "$" => None,
        path => Some(
            JsonPath::new(path, config.regexes).map_err(|error| NodeConfigError::new("jsonPath", error))?,
        ),
    };
    Ok(Arc::new(JsonPathNode(path)))
}

impl Node for JsonPathNode {
    fn handle(&self, _: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let Some(path) = &self.0 else {
            return NodeResult::success(msg);
        };
        let body = match msg.data.to_json() {
            Ok(body) => body,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        match path.read(&body, &mut msg.budget) {
            Ok(found) => {
                msg.data = MessageBody::json(found);
                NodeResult::success(msg)
            }
            Err(error) => NodeResult::Fail(msg, error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{World, nobody};

    #[tokio::test(flavor = "multi_thread")]
    async fn the_body_becomes_what_the_path_finds() {
        let mut world = World::new().await;
        let class = "transform.TbJsonPathNode";
        for (path, expected) in [
            ("$", Some(json!({"a": [{"b": 1}, {"b": 2}]}))),
            ("$.a[0].b", Some(json!(1))),
            ("$..b", Some(json!([1, 2]))),
            ("$.x", None),
        ] {
            let node = world.node(class, json!({ "jsonPath": path }));
            let msg = world.msg(
                MsgType::PostTelemetry,
                nobody(),
                &json!({"a": [{"b": 1}, {"b": 2}]}),
            );
            let out = world.one(&node, msg).await;
            assert_eq!((out.label == "Success").then(|| out.body()), expected);
        }
        assert_eq!(world.wrong(class, json!({"jsonPath": "$["})), "jsonPath");
    }
}
