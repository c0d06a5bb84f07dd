//! "Send to Slack" and "send notification".

use std::sync::Arc;

use fieldline_connectors::Secret;
use fieldline_connectors::slack::{SlackClient, SlackConfig};
use serde_json::{Value, json};

use super::outside::{External, Outside, Sending, failed, read, wrong};
use super::shared::Shared;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError, Step};
use crate::nodes::pattern::Pattern;
use crate::registry::{Category, NodeType};

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
            Category::External,
            make_slack,
        )
    },
    NodeType {
        description: "Sends a notification to targets, using a template.",
        default_configuration: || json!({ "targets": null, "templateId": null }),
        ..NodeType::new(
            "notification.TbNotificationNode",
            "send notification",
            Category::External,
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
        false => Token::Own(Arc::new(SlackClient::new(&slack.bot_token).map_err(wrong)?)),
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
            let client = shared.get(settings, |it| SlackClient::new(&token(it)))?;
            client.send(&conversation, &message).await
        }))
    }
}

struct Notification;

fn make_notification(_: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
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
