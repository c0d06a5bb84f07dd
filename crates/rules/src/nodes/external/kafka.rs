//! "Kafka".

use std::sync::Arc;

use fieldline_connectors::kafka::{KafkaClient, KafkaConfig};
use serde_json::{Value, json};

use super::external_node::{ExternalNode, OutboundSender, SendFuture, body, node_egress, read, wrong};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "kafka.TbKafkaNode",
    name: "kafka",
    description: "Publishes messages to Kafka.",
    version: 1,
    default_configuration: || {
        json!({
            "topicPattern": "my-topic", "keyPattern": null, "bootstrapServers": "localhost:9092", "retries": 0,
            "batchSize": 16384, "linger": 0, "bufferMemory": 33_554_432, "acks": "-1", "otherProperties": {},
            "addMetadataKeyValuesAsKafkaHeaders": false, "kafkaHeadersCharset": "UTF-8",
        })
    },
    schema: config_schema::of_connector::<KafkaConfig>,
    upgrade,
    make,
    ..NodeType::EXTERNAL
}];

fn upgrade(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
    {
        fields.remove("keySerializer");
        fields.remove("valueSerializer");
    }
    configuration
}

struct KafkaNode {
    client: Arc<KafkaClient>,
    topic: TextTemplate,
    key: Option<TextTemplate>,
    with_metadata: bool,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let kafka: KafkaConfig = read(config)?;
    let name = format!(
        "producer-tb-kafka-node-{}-{}",
        config.id, config.services.service_id
    );
    let outside = KafkaNode {
        client: Arc::new(KafkaClient::new(&kafka, &name, &node_egress(config)).map_err(wrong)?),
        topic: TextTemplate::new(&kafka.topic_pattern),
        key: (!kafka.key_pattern.is_empty()).then(|| TextTemplate::new(&kafka.key_pattern)),
        with_metadata: kafka.add_metadata_key_values_as_kafka_headers,
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for KafkaNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let topic = self.topic.resolve(msg)?.into_owned();
        let key = match &self.key {
            Some(key) => Some(key.resolve(msg)?.into_owned()),
            None => None,
        };
        let metadata = match self.with_metadata {
            true => msg.meta.to_metadata().entries().to_vec(),
            false => Vec::new(),
        };
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move {
            client.send(&topic, key.as_deref(), &body, &metadata).await
        }))
    }
}
