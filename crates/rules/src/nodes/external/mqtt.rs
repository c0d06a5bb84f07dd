//! "MQTT" and "Azure IoT Hub".

use std::sync::{Arc, OnceLock};

use fieldline_connectors::azure::{AzureIotHubClient, AzureIotHubConfig};
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mqtt::{MqttClient, MqttConfig};
use fieldline_connectors::{ConfigError as WrongConfig, Outcome, SendError};
use fieldline_model::entity::ClusteringMode;
use serde_json::{Value, json};

use super::outside::{External, Outside, Sending, body, read};
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};
use crate::services::Services;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
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
        upgrade: upgrade_mqtt,
        ..NodeType::new("mqtt.TbMqttNode", "mqtt", ComponentType::External, make_mqtt)
    },
    NodeType {
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
        upgrade: upgrade_azure,
        ..NodeType::new(
            "mqtt.azure.TbAzureIotHubNode",
            "azure iot hub",
            ComponentType::External,
            make_azure,
        )
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
trait Publisher: Sized + Send + Sync + 'static {
    type Config: Send + Sync + 'static;
    fn open(config: &Self::Config, services: &Services, egress: &Egress) -> Result<Self, WrongConfig>;
    fn publish(&self, topic: &str, body: &str) -> impl Future<Output = Result<Outcome, SendError>> + Send;
}

impl Publisher for MqttClient {
    type Config = MqttConfig;

    fn open(config: &MqttConfig, services: &Services, egress: &Egress) -> Result<Self, WrongConfig> {
        Self::open(config, &services.service_id, egress)
    }

    async fn publish(&self, topic: &str, body: &str) -> Result<Outcome, SendError> {
        self.send(topic, body).await
    }
}

impl Publisher for AzureIotHubClient {
    type Config = AzureIotHubConfig;

    fn open(config: &AzureIotHubConfig, services: &Services, egress: &Egress) -> Result<Self, WrongConfig> {
        let (service, port) = (&services.service_id, services.external.endpoints.azure_port);
        match port {
            Some(port) => Self::open_at_port(config, service, port, egress),
            None => Self::open(config, service, egress),
        }
    }

    async fn publish(&self, topic: &str, body: &str) -> Result<Outcome, SendError> {
        self.send(topic, body).await
    }
}

struct Mqtt<P: Publisher> {
    topic: Pattern,
    config: P::Config,
    /// Made when the first message comes: chains that are only checked do not connect.
    client: OnceLock<Result<Arc<P>, NodeError>>,
}

fn make_mqtt(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let mqtt: MqttConfig = read(config)?;
    let topic = Pattern::new(&mqtt.topic_pattern);
    Ok(External::node(
        config,
        false,
        Mqtt::<MqttClient>::new(topic, mqtt),
    ))
}

fn make_azure(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let azure: AzureIotHubConfig = read(config)?;
    let topic = Pattern::new(&azure.topic_pattern);
    Ok(External::node(
        config,
        false,
        Mqtt::<AzureIotHubClient>::new(topic, azure),
    ))
}

impl<P: Publisher> Mqtt<P> {
    const fn new(topic: Pattern, config: P::Config) -> Self {
        Self {
            topic,
            config,
            client: OnceLock::new(),
        }
    }

    fn client(&self, ctx: &Ctx<'_>) -> Result<Arc<P>, NodeError> {
        let open = || {
            let _runtime = ctx.services.runtime.enter();
            let client = P::open(
                &self.config,
                ctx.services,
                &ctx.services.external.way_out(ctx.tenant),
            );
            client
                .map(Arc::new)
                .map_err(|error| NodeError::new(error.to_string()))
        };
        self.client.get_or_init(open).clone()
    }
}

impl<P: Publisher> Outside for Mqtt<P> {
    fn send(&self, ctx: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let topic = self.topic.resolve(msg)?.into_owned();
        let client = self.client(ctx)?;
        let body = body(msg);
        Ok(Box::pin(async move { client.publish(&topic, &body).await }))
    }
}
