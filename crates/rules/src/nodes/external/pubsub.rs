//! "GCP Pub/Sub".

use std::sync::Arc;

use fieldline_connectors::gcp::{PubSubClient, PubSubConfig};
use serde_json::json;

use super::outside::{External, Outside, Sending, body, endpoint, read, way_out, wrong};
use super::pairs::Pairs;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Publishes messages to Google Cloud Pub/Sub.",
    default_configuration: || {
        json!({
            "projectId": "my-google-cloud-project-id", "topicName": "my-pubsub-topic-name", "messageAttributes": {},
            "serviceAccountKey": null, "serviceAccountKeyFileName": null,
        })
    },
    ..NodeType::new(
        "gcp.pubsub.TbPubSubNode",
        "gcp pubsub",
        ComponentType::External,
        make,
    )
}];

struct PubSub {
    client: Arc<PubSubClient>,
    attributes: Pairs,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let pubsub: PubSubConfig = read(config)?;
    let outside = PubSub {
        client: Arc::new(
            PubSubClient::with_endpoint(&pubsub, endpoint(config), &way_out(config)).map_err(wrong)?,
        ),
        attributes: Pairs::of(&pubsub.message_attributes),
    };
    Ok(External::node(config, false, outside))
}

impl Outside for PubSub {
    fn send(&self, _: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let attributes = self.attributes.resolve(msg)?;
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move { client.send(&body, &attributes).await }))
    }
}
