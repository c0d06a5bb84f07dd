//! "GCP Pub/Sub".

use std::sync::Arc;

use fieldline_connectors::gcp::{PubSubClient, PubSubConfig};
use serde_json::json;

use super::external_node::{
    ExternalNode, OutboundSender, SendFuture, body, endpoint, node_egress, read, wrong,
};
use super::pairs::TemplatePairs;
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "gcp.pubsub.TbPubSubNode",
    name: "gcp pubsub",
    description: "Publishes messages to Google Cloud Pub/Sub.",
    default_configuration: || {
        json!({
            "projectId": "my-google-cloud-project-id", "topicName": "my-pubsub-topic-name", "messageAttributes": {},
            "serviceAccountKey": null, "serviceAccountKeyFileName": null,
        })
    },
    schema: config_schema::of_connector::<PubSubConfig>,
    make,
    ..NodeType::EXTERNAL
}];

struct PubSubNode {
    client: Arc<PubSubClient>,
    attributes: TemplatePairs,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let pubsub: PubSubConfig = read(config)?;
    let outside = PubSubNode {
        client: Arc::new(
            PubSubClient::with_endpoint(&pubsub, endpoint(config), &node_egress(config)).map_err(wrong)?,
        ),
        attributes: TemplatePairs::of(&pubsub.message_attributes),
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for PubSubNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let attributes = self.attributes.resolve(msg)?;
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move { client.send(&body, &attributes).await }))
    }
}
