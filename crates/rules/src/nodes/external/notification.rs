//! "Send to Slack" and "send notification".

use std::sync::Arc;

use fieldline_connectors::Secret;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::slack::{SlackClient, SlackConfig};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::outside::{External, Outside, Sending, endpoint, failed, read, way_out, wrong};
use super::shared::Shared;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[
    NodeType {
        description: "Writes messages into a conversation at Slack.",
        default_configuration: || {
            json!({
                "botToken": "xoxb-", "useSystemSettings": true,
                "messageTemplate": "Device ${deviceId}: temperature is $[temperature]",
                "conversationType": "PUBLIC_CHANNEL", "conversation": null,
            })
        },
        ..NodeType::new(
            "notification.TbSlackNode",
            "send to slack",
            ComponentType::External,
            make_slack,
        )
    },
    NodeType {
        description: "Sends a notification to targets, using a template.",
        default_configuration: || json!({ "targets": null, "templateId": null }),
        ..NodeType::new(
            "notification.TbNotificationNode",
            "send notification",
            ComponentType::External,
            make_notification,
        )
    },
];

enum Token {
    Own(Arc<SlackClient>),
    OfSystem(Arc<Shared<SlackClient>>),
}

struct Slack {
    token: Token,
    message: Pattern,
    conversation: String,
}

fn make_slack(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let slack: SlackConfig = read(config)?;
    let token = match slack.use_system_settings {
        true => Token::OfSystem(Arc::default()),
        false => Token::Own(Arc::new(
            SlackClient::with_endpoint(&slack.bot_token, endpoint(config), &way_out(config))
                .map_err(wrong)?,
        )),
    };
    let outside = Slack {
        token,
        message: Pattern::new(&slack.message_template),
        conversation: slack.conversation.id,
    };
    Ok(External::node(config, false, outside))
}

impl Outside for Slack {
    fn send(&self, ctx: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let (message, conversation) = (self.message.resolve(msg)?.into_owned(), self.conversation.clone());
        let shared = match &self.token {
            Token::Own(client) => {
                let client = Arc::clone(client);
                return Ok(Box::pin(
                    async move { client.send(&conversation, &message).await },
                ));
            }
            Token::OfSystem(shared) => Arc::clone(shared),
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

struct Notification;

fn make_notification(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Config {
        targets: Option<Vec<Uuid>>,
        template_id: Option<Template>,
    }
    #[derive(Deserialize)]
    struct Template {
        #[serde(rename = "id")]
        _id: Uuid,
    }
    let config: Config = config.parse()?;
    if config.targets.is_none_or(|targets| targets.is_empty()) {
        return Err(ConfigError::new("targets", "must not be empty"));
    }
    if config.template_id.is_none() {
        return Err(ConfigError::new("templateId", "must be given"));
    }
    Ok(Arc::new(Notification))
}

impl Node for Notification {
    fn handle(&self, _: &mut Ctx<'_>, msg: Msg) -> Step {
        Step::fail(
            msg,
            "Notifications are not supported: there is no notification center",
        )
    }
}
