//! "RabbitMQ".

use std::sync::Arc;

use fieldline_connectors::rabbitmq::{RabbitMqClient, RabbitMqConfig};
use serde_json::json;

use super::external_node::{ExternalNode, OutboundSender, SendFuture, body, node_egress, read, wrong};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "rabbitmq.TbRabbitMqNode",
    name: "rabbitmq",
    description: "Publishes messages to RabbitMQ.",
    default_configuration: || {
        json!({
            "exchangeNamePattern": "", "routingKeyPattern": "", "messageProperties": null, "host": null, "port": 5672,
            "virtualHost": "/", "username": "guest", "password": "guest", "automaticRecoveryEnabled": false,
            "connectionTimeout": 60000, "handshakeTimeout": 10000, "clientProperties": {},
        })
    },
    schema: config_schema::of_connector::<RabbitMqConfig>,
    make,
    ..NodeType::EXTERNAL
}];

struct RabbitMqNode {
    client: Arc<RabbitMqClient>,
    exchange: TextTemplate,
    routing_key: TextTemplate,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let rabbit: RabbitMqConfig = read(config)?;
    let outside = RabbitMqNode {
        client: Arc::new(RabbitMqClient::new(&rabbit, &node_egress(config)).map_err(wrong)?),
        exchange: TextTemplate::new(&rabbit.exchange_name_pattern),
        routing_key: TextTemplate::new(&rabbit.routing_key_pattern),
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for RabbitMqNode {
    fn send(&self, _: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let exchange = self.exchange.resolve(msg)?.into_owned();
        let routing_key = self.routing_key.resolve(msg)?.into_owned();
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move {
            client.send(&exchange, &routing_key, &body).await
        }))
    }
}
