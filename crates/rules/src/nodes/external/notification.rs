//! "Send to Slack" and "send notification".

use std::sync::Arc;

use fieldline_connectors::Secret;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::slack::{SlackClient, SlackConfig};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client_cache::AccountClientCache;
use super::external_node::{
    ExternalNode, OutboundSender, SendFuture, endpoint, failed, node_egress, read, wrong,
};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext, NodeResult};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        class: "notification.TbSlackNode",
        name: "send to slack",
        description: "Writes messages into a conversation at Slack.",
        default_configuration: || {
            json!({
                "botToken": "xoxb-", "useSystemSettings": true,
                "messageTemplate": "Device ${deviceId}: temperature is $[temperature]",
                "conversationType": "PUBLIC_CHANNEL", "conversation": null,
            })
        },
        schema: config_schema::of_connector::<SlackConfig>,
        make: make_slack,
        ..NodeType::EXTERNAL
    },
    NodeType {
        class: "notification.TbNotificationNode",
        name: "send notification",
        description: "Sends a notification to targets, using a template.",
        default_configuration: || json!({ "targets": null, "templateId": null }),
        schema: config_schema::of::<NotificationConfig>,
        make: make_notification,
        ..NodeType::EXTERNAL
    },
];

enum SlackClientSource {
    Own(Arc<SlackClient>),
    OfSystem(Arc<AccountClientCache<SlackClient>>),
}

struct SlackNode {
    token: SlackClientSource,
    message: TextTemplate,
    conversation: String,
}

fn make_slack(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let slack: SlackConfig = read(config)?;
    let token = match slack.use_system_settings {
        true => SlackClientSource::OfSystem(Arc::default()),
        false => SlackClientSource::Own(Arc::new(
            SlackClient::with_endpoint(&slack.bot_token, endpoint(config), &node_egress(config))
                .map_err(wrong)?,
        )),
    };
    let outside = SlackNode {
        token,
        message: TextTemplate::new(&slack.message_template),
        conversation: slack.conversation.id,
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for SlackNode {
    fn send(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let (message, conversation) = (self.message.resolve(msg)?.into_owned(), self.conversation.clone());
        let shared = match &self.token {
            SlackClientSource::Own(client) => {
                let client = Arc::clone(client);
                return Ok(Box::pin(
                    async move { client.send(&conversation, &message).await },
                ));
            }
            SlackClientSource::OfSystem(shared) => Arc::clone(shared),
        };
        let (services, tenant) = (Arc::clone(ctx.services), ctx.tenant);
        Ok(Box::pin(async move {
            let settings = services.external.accounts.settings(tenant, "slack").await;
            let settings = settings.map_err(|error| failed(error.to_string()))?;
            let settings = settings.ok_or_else(|| failed("Slack token is missing"))?;
            let token =
                |it: &Value| Secret::new(it.get("botToken").and_then(Value::as_str).unwrap_or_default());
            let client = shared.get(settings, |it| SlackClient::new(&token(it), &Egress::open()))?;
            client.send(&conversation, &message).await
        }))
    }
}

struct NotificationNode;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NotificationConfig {
    #[schemars(with = "Option<Vec<String>>", extend("x-editor" = "targets"))]
    targets: Option<Vec<Uuid>>,
    #[schemars(title = "Template", extend("x-editor" = "templateId"))]
    template_id: Option<NotificationTemplateRef>,
}

#[derive(Deserialize, JsonSchema)]
struct NotificationTemplateRef {
    #[serde(rename = "id")]
    #[schemars(with = "String")]
    _id: Uuid,
}

fn make_notification(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let config: NotificationConfig = config.parse()?;
    if config.targets.is_none_or(|targets| targets.is_empty()) {
        return Err(NodeConfigError::new("targets", "must not be empty"));
    }
    if config.template_id.is_none() {
        return Err(NodeConfigError::new("templateId", "must be given"));
    }
    Ok(Arc::new(NotificationNode))
}

impl Node for NotificationNode {
    fn handle(&self, _: &mut NodeContext<'_>, msg: RuleMessage) -> NodeResult {
        NodeResult::fail(
            msg,
            "Notifications are not supported: there is no notification center",
        )
    }
}
