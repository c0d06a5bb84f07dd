//! "RabbitMQ".

use std::sync::Arc;

use fieldline_connectors::rabbitmq::{RabbitMqClient, RabbitMqConfig};
use serde_json::json;

use super::outside::{External, Outside, Sending, body, read, way_out, wrong};
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Publishes messages to RabbitMQ.",
    default_configuration: || {
        json!({
            "exchangeNamePattern": "", "routingKeyPattern": "", "messageProperties": null, "host": null, "port": 5672,
            "virtualHost": "/", "username": "guest", "password": "guest", "automaticRecoveryEnabled": false,
            "connectionTimeout": 60000, "handshakeTimeout": 10000, "clientProperties": {},
        })
    },
    ..NodeType::new(
        "rabbitmq.TbRabbitMqNode",
        "rabbitmq",
        ComponentType::External,
        make,
    )
}];

struct RabbitMq {
    client: Arc<RabbitMqClient>,
    exchange: Pattern,
    routing_key: Pattern,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let rabbit: RabbitMqConfig = read(config)?;
    let outside = RabbitMq {
        client: Arc::new(RabbitMqClient::new(&rabbit, &way_out(config)).map_err(wrong)?),
        exchange: Pattern::new(&rabbit.exchange_name_pattern),
        routing_key: Pattern::new(&rabbit.routing_key_pattern),
    };
    Ok(External::node(config, false, outside))
}

impl Outside for RabbitMq {
    fn send(&self, _: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let exchange = self.exchange.resolve(msg)?.into_owned();
        let routing_key = self.routing_key.resolve(msg)?.into_owned();
        let (client, body) = (Arc::clone(&self.client), body(msg));
        Ok(Box::pin(async move {
            client.send(&exchange, &routing_key, &body).await
        }))
    }
}
