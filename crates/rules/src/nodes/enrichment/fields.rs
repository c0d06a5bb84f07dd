//! Fields of the originator.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::mapped::mapping;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::entities;
use crate::nodes::message_part::{MessagePart, required};
use crate::nodes::text::plain;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "metadata.TbGetOriginatorFieldsNode",
    name: "originator fields",
    description: "Adds fields of the originator, such as its name.",
    version: 1,
    upgrade,
    default_configuration: || {
        json!({
            "fetchTo": "METADATA",
            "dataMapping": {"name": "originatorName", "type": "originatorType"},
            "ignoreNullStrings": false,
        })
    },
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ENRICHMENT
}];

fn upgrade(from_version: i32, mut configuration: Value) -> Value {
    if from_version == 0
        && let Some(fields) = configuration.as_object_mut()
        && let Some(mapping) = fields.shift_remove("fieldsMapping")
    {
        fields.insert("dataMapping".to_owned(), mapping);
        fields.insert("fetchTo".to_owned(), json!("METADATA"));
    }
    configuration
}

/// A field of an entity as text; dots lead into objects. A field that does not exist is `None`, and so is an empty one
/// where those are ignored.
pub(super) fn field_text(entity: &Value, path: &str, ignore_empty: bool) -> Option<String> {
    let mut value = entity;
    for key in path.split('.') {
        value = value.get(key)?;
    }
    let text = plain(value);
    let empty = value.is_null() || (text.is_empty() && !value.is_object());
    (!(ignore_empty && empty)).then_some(text)
}

struct GetOriginatorFieldsNode {
    fetch_to: MessagePart,
    mapping: Vec<(TextTemplate, TextTemplate)>,
    ignore_empty: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "Add to")]
    fetch_to: Option<MessagePart>,
    #[schemars(schema_with = "config_schema::text_pairs")]
    data_mapping: Option<Map<String, Value>>,
    #[serde(default)]
    ignore_null_strings: bool,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: Config = config.parse()?;
    Ok(Arc::new(GetOriginatorFieldsNode {
        fetch_to: required(config.fetch_to, "fetchTo")?,
        mapping: mapping(config.data_mapping)?,
        ignore_empty: config.ignore_null_strings,
    }))
}

impl Node for GetOriginatorFieldsNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let pairs: Result<Vec<(String, String)>, NodeError> = self.fetch_to.check(&mut msg).and_then(|()| {
            let pairs = self.mapping.iter();
            pairs
                .map(|(field, target)| Ok((field.text().to_owned(), target.resolve(&mut msg)?.into_owned())))
                .collect()
        });
        let pairs = match pairs {
            Ok(pairs) => pairs,
            Err(error) => return NodeResult::Fail(msg, error),
        };
        let services = Arc::clone(ctx.services);
        let (fetch_to, ignore_empty) = (self.fetch_to, self.ignore_empty);
        NodeResult::wait(async move {
            let entity = match entities::fields(&services, msg.subject()).await {
                Ok(Some(entity)) => entity,
                Ok(None) => return NodeResult::fail(msg, "the originator was not found"),
                Err(error) => return NodeResult::Fail(msg, error),
            };
            for (field, target) in &pairs {
                if let Some(text) = field_text(&entity, field, ignore_empty)
                    && let Err(error) = fetch_to.put_json(&mut msg, target, Value::from(text))
                {
                    return NodeResult::Fail(msg, error);
                }
            }
            NodeResult::success(msg)
        })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;
    use fieldline_model::{EntityId, RuleNodeId};

    use super::*;
    use crate::nodes::tests::{World, nobody, upgraded};

    const CLASS: &str = "metadata.TbGetOriginatorFieldsNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn fields_of_the_originator_are_added() {
        let mut world = World::new().await;
        let customer = world.customer;
        let info = json!({"customerId": customer, "additionalInfo": {"description": "big"}});
        let device = world.device("d", info).await;
        let node = world.node(CLASS, json!({}));
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        let out = world.one(&node, msg.clone()).await;
        assert_eq!(out.meta("originatorName").as_deref(), Some("d"));
        assert_eq!(out.meta("originatorType").as_deref(), Some("default"));
        let mapping = json!({
            "customerId": "owner", "additionalInfo.description": "what", "label": "label", "none": "none", "name": "$[n]",
        });
        for (ignore, expected) in [
            (
                true,
                json!({"n": "N", "owner": customer.0, "what": "big", "N": "d"}),
            ),
            (
                false,
                json!({"n": "N", "owner": customer.0, "what": "big", "label": "null", "N": "d"}),
            ),
        ] {
            let patch = json!({"dataMapping": mapping, "fetchTo": "DATA", "ignoreNullStrings": ignore});
            let node = world.node(CLASS, patch);
            let msg = world.msg(MsgType::PostTelemetry, device, &json!({"n": "N"}));
            assert_eq!(world.one(&node, msg).await.body(), expected);
        }
        for originator in [EntityId::from(world.tenant), customer.into()] {
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            assert!(world.one(&node, msg).await.meta("originatorName").is_some());
        }
        for originator in [nobody(), RuleNodeId::new().into()] {
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            assert_eq!(world.one(&node, msg).await.label, "Failure");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wrong_and_older_configurations() {
        let world = World::new().await;
        assert_eq!(
            world.wrong(CLASS, json!({"dataMapping": {"name": 1}})),
            "dataMapping.name"
        );
        assert_eq!(world.wrong(CLASS, json!({"fetchTo": "BODY"})), "fetchTo");
        let new = json!({"dataMapping": {"name": "n"}, "fetchTo": "METADATA"});
        assert_eq!(upgraded(CLASS, 0, json!({"fieldsMapping": {"name": "n"}})), new);
    }
}
