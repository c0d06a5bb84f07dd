//! The credentials of the originator.

use std::sync::Arc;

use fieldline_model::entity::CredentialsType;
use fieldline_model::{DeviceId, EntityType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::message_part::{MessagePart, required, upgrade_flag};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "metadata.TbFetchDeviceCredentialsNode",
    name: "fetch device credentials",
    description: "Adds the credentials of the device that a message is from.",
    version: 1,
    upgrade: |from_version, mut configuration| {
        if from_version == 0 {
            upgrade_flag(
                &mut configuration,
                "fetchToMetadata",
                "fetchTo",
                MessagePart::Metadata,
            );
        }
        configuration
    },
    default_configuration: || json!({"fetchTo": "METADATA"}),
    schema: config_schema::of::<Config>,
    make,
    ..NodeType::ENRICHMENT
}];

struct FetchDeviceCredentialsNode(MessagePart);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[schemars(title = "Add to")]
    fetch_to: Option<MessagePart>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    Ok(Arc::new(FetchDeviceCredentialsNode(required(
        config.parse::<Config>()?.fetch_to,
        "fetchTo",
    )?)))
}

impl Node for FetchDeviceCredentialsNode {
    fn handle(&self, ctx: &mut NodeContext<'_>, mut msg: RuleMessage) -> NodeResult {
        let fetch_to = self.0;
        if let Err(error) = fetch_to.check(&mut msg) {
            return NodeResult::Fail(msg, error);
        }
        if msg.originator.entity_type != EntityType::Device {
            let text = format!("unsupported originator type: {}", msg.originator.entity_type);
            return NodeResult::fail(msg, text);
        }
        let services = Arc::clone(ctx.services);
        NodeResult::wait(async move {
            let device = DeviceId(msg.originator.id);
            let found = match services.stores.device_credentials.get(msg.tenant, device).await {
                Ok(Some(found)) => found,
                Ok(None) => return NodeResult::fail(msg, format!("device {device} has no credentials")),
                Err(error) => return NodeResult::Fail(msg, error.into()),
            };
            let info = match found.credentials_type {
                CredentialsType::AccessToken => json!(found.credentials_id),
                CredentialsType::X509Certificate => json!(found.credentials_value),
                CredentialsType::MqttBasic | CredentialsType::Lwm2mCredentials => {
                    let text = found.credentials_value.unwrap_or_default();
                    serde_json::from_str::<Value>(&text).unwrap_or(Value::Null)
                }
            };
            let put = fetch_to.put_json(&mut msg, "credentialsType", json!(found.credentials_type.name()));
            let done = put.and_then(|()| fetch_to.put_json(&mut msg, "credentials", info));
            NodeResult::after(msg, done)
        })
    }
}

#[cfg(test)]
mod tests {
    use fieldline_model::message::MsgType;

    use super::*;
    use crate::nodes::tests::{World, nobody, upgraded};

    const CLASS: &str = "metadata.TbFetchDeviceCredentialsNode";

    #[tokio::test(flavor = "multi_thread")]
    async fn credentials_are_added() {
        let mut world = World::new().await;
        let device = world.device("d", json!(null)).await;
        let msg = world.msg(MsgType::PostTelemetry, device, &json!({}));
        let to_meta = world.node(CLASS, json!({}));
        let out = world.one(&to_meta, msg.clone()).await;
        assert_eq!(out.meta("credentialsType").as_deref(), Some("ACCESS_TOKEN"));
        assert_eq!(out.meta("credentials").as_deref(), Some("token of d"));
        let stores = world.services.stores.clone();
        let id = DeviceId(device.id);
        let mut credentials = stores
            .device_credentials
            .get(world.tenant, id)
            .await
            .unwrap()
            .unwrap();
        credentials.credentials_type = CredentialsType::MqttBasic;
        credentials.credentials_value = Some(r#"{"userName": "u"}"#.to_owned());
        stores
            .device_credentials
            .save(world.tenant, credentials)
            .await
            .unwrap();
        let to_body = world.node(CLASS, json!({"fetchTo": "DATA"}));
        let body = world.one(&to_body, msg.clone()).await.body();
        assert_eq!(
            body,
            json!({"credentialsType": "MQTT_BASIC", "credentials": {"userName": "u"}})
        );
        assert_eq!(
            world.one(&to_meta, msg).await.meta("credentials").as_deref(),
            Some(r#"{"userName":"u"}"#)
        );
        for originator in [nobody(), world.tenant.into()] {
            let msg = world.msg(MsgType::PostTelemetry, originator, &json!({}));
            assert_eq!(world.one(&to_meta, msg).await.label, "Failure");
        }
        assert_eq!(world.wrong(CLASS, json!({"fetchTo": null})), "fetchTo");
        assert_eq!(
            upgraded(CLASS, 0, json!({"fetchToMetadata": true})),
            json!({"fetchTo": "METADATA"})
        );
    }
}
