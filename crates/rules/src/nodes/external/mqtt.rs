//! "MQTT" and "Azure IoT Hub".

use std::sync::{Arc, OnceLock};

use fieldline_connectors::azure::{AzureIotHubClient, AzureIotHubConfig};
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mqtt::{MqttClient, MqttConfig};
use fieldline_connectors::{ConnectorConfigError as WrongConfig, ConnectorError, ConnectorOutcome};
use fieldline_model::entity::ClusteringMode;
use serde_json::{Value, json};

use super::external_node::{ExternalNode, OutboundSender, SendFuture, body, read};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "mqtt.TbMqttNode",
        name: "mqtt",
        description: "Publishes messages to an MQTT broker.",
        version: 2,
        clustering: ClusteringMode::UserPreference,
        default_configuration: || {
            json!({
                "topicPattern": "my-topic", "host": null, "port": 1883, "connectTimeoutSec": 10, "clientId": null,
                "appendClientIdSuffix": false, "retainedMessage": false, "cleanSession": true, "ssl": false,
                "parseToPlainText": false, "protocolVersion": "MQTT_3_1_1", "credentials": {"type": "anonymous"},
            })
        },
        schema: config_schema::of_connector::<MqttConfig>,
        upgrade: upgrade_mqtt,
        make: make_mqtt,
        ..NodeType::EXTERNAL
    },
    NodeType {
        class: "mqtt.azure.TbAzureIotHubNode",
        name: "azure iot hub",
        description: "Publishes messages to an Azure IoT Hub.",
        version: 1,
        clustering: ClusteringMode::Singleton,
        default_configuration: || {
            json!({
                "topicPattern": "devices/<device_id>/messages/events/", "host": "<iot-hub-name>.azure-devices.net",
                "port": 8883, "connectTimeoutSec": 10, "clientId": null, "appendClientIdSuffix": false,
                "retainedMessage": false, "cleanSession": true, "ssl": true, "parseToPlainText": false,
                "protocolVersion": "MQTT_3_1_1", "credentials": {"type": "sas", "sasKey": null, "caCert": null},
            })
        },
        schema: config_schema::of_connector::<AzureIotHubConfig>,
        upgrade: upgrade_azure,
        make: make_azure,
        ..NodeType::EXTERNAL
    },
];

fn upgrade_mqtt(from: i32, mut configuration: Value) -> Value {
    if let Some(fields) = configuration.as_object_mut() {
        if from < 1 {
            fields.entry("parseToPlainText").or_insert_with(|| false.into());
        }
        if from < 2 {
            fields
                .entry("protocolVersion")
                .or_insert_with(|| "MQTT_3_1".into());
        }
    }
    configuration
}

fn upgrade_azure(from: i32, mut configuration: Value) -> Value {
    if from < 1
        && let Some(fields) = configuration.as_object_mut()
    {
        fields
            .entry("protocolVersion")
            .or_insert_with(|| "MQTT_3_1_1".into());
    }
    configuration
}

/// A client that publishes.
trait MqttPublisher: Sized + Send + Sync + 'static {
    type Config: Send + Sync + 'static;
    fn open(config: &Self::Config, services: &NodeServices, egress: &Egress) -> Result<Self, WrongConfig>;
    fn publish(
        &self,
        topic: &str,
        body: &str,
    ) -> impl Future<Output = Result<ConnectorOutcome, ConnectorError>> + Send;
}

impl MqttPublisher for MqttClient {
    type Config = MqttConfig;

    fn open(config: &MqttConfig, services: &NodeServices, egress: &Egress) -> Result<Self, WrongConfig> {
        Self::open(config, &services.service_id, egress)
    }

    async fn publish(&self, topic: &str, body: &str) -> Result<ConnectorOutcome, ConnectorError> {
        self.send(topic, body).await
    }
}

impl MqttPublisher for AzureIotHubClient {
    type Config = AzureIotHubConfig;

    fn open(
        config: &AzureIotHubConfig,
        services: &NodeServices,
        egress: &Egress,
    ) -> Result<Self, WrongConfig> {
        let (service, port) = (&services.service_id, services.external.endpoints.azure_port);
        match port {
            Some(port) => Self::open_at_port(config, service, port, egress),
            None => Self::open(config, service, egress),
        }
    }

    async fn publish(&self, topic: &str, body: &str) -> Result<ConnectorOutcome, ConnectorError> {
        self.send(topic, body).await
    }
}

struct MqttNode<P: MqttPublisher> {
    topic: TextTemplate,
    config: P::Config,
    /// Made when the first message comes: chains that are only checked do not connect.
    client: OnceLock<Result<Arc<P>, NodeError>>,
}

fn make_mqtt(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let mqtt: MqttConfig = read(config)?;
    let topic = TextTemplate::new(&mqtt.topic_pattern);
    Ok(ExternalNode::node(
        config,
        false,
        MqttNode::<MqttClient>::new(topic, mqtt),
    ))
}

fn make_azure(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let azure: AzureIotHubConfig = read(config)?;
    let topic = TextTemplate::new(&azure.topic_pattern);
    Ok(ExternalNode::node(
        config,
        false,
        MqttNode::<AzureIotHubClient>::new(topic, azure),
    ))
}

impl<P: MqttPublisher> MqttNode<P> {
    const fn new(topic: TextTemplate, config: P::Config) -> Self {
        Self {
            topic,
            config,
            client: OnceLock::new(),
        }
    }

    fn client(&self, ctx: &NodeContext<'_>) -> Result<Arc<P>, NodeError> {
        let open = || {
            let _runtime = ctx.services.runtime.enter();
            let client = P::open(
                &self.config,
                ctx.services,
                &ctx.services.external.tenant_egress(ctx.tenant),
            );
            client
                .map(Arc::new)
                .map_err(|error| NodeError::new(error.to_string()))
        };
        self.client.get_or_init(open).clone()
    }
}

impl<P: MqttPublisher> OutboundSender for MqttNode<P> {
    fn send(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let topic = self.topic.resolve(msg)?.into_owned();
        let client = self.client(ctx)?;
        let body = body(msg);
        Ok(Box::pin(async move { client.publish(&topic, &body).await }))
    }
}
