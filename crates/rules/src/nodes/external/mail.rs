//! "Send email".

use std::sync::Arc;

use fieldline_connectors::ConnectorConfig as _;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mail::{MailClient, OutgoingEmail, SendEmailConfig, SmtpConfig};
use fieldline_core::usage::{ApiFeature, UsageKey};
use fieldline_model::message::MsgType;
use serde_json::json;

use super::client_cache::AccountClientCache;
use super::external_node::{ExternalNode, OutboundSender, SendFuture, failed, node_egress, read, wrong};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "mail.TbSendEmailNode",
    name: "send email",
    description: "Sends the mail in a message through an SMTP server.",
    default_configuration: || {
        json!({
            "useSystemSmtpSettings": true, "smtpHost": "localhost", "smtpPort": 25, "username": null, "password": null,
            "smtpProtocol": "smtp", "timeout": 10000, "enableTls": false, "tlsVersion": "TLSv1.2",
            "enableProxy": false, "proxyHost": null, "proxyPort": null, "proxyUser": null, "proxyPassword": null,
        })
    },
    schema: config_schema::of_connector::<SendEmailConfig>,
    make,
    ..NodeType::EXTERNAL
}];

enum MailClientSource {
    Own(Arc<MailClient>),
    OfSystem(Arc<AccountClientCache<MailClient>>),
}

struct SendEmailNode(MailClientSource);

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let mail: SendEmailConfig = read(config)?;
    let server = match mail.use_system_smtp_settings {
        true => MailClientSource::OfSystem(Arc::default()),
        false => MailClientSource::Own(Arc::new(
            MailClient::new(&mail.smtp, &node_egress(config)).map_err(wrong)?,
        )),
    };
    Ok(ExternalNode::node(config, false, SendEmailNode(server)))
}

impl OutboundSender for SendEmailNode {
    fn send(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        if msg.kind != MsgType::SendEmail {
            let problem = format!("Not expected msg type {} for SendEmail Node", msg.kind);
            return Err(NodeError::new(problem));
        }
        let email =
            OutgoingEmail::from_json(&msg.data.to_text()).map_err(|error| NodeError::new(error.message))?;
        if !ctx.services.usage.is_allowed(ctx.tenant, ApiFeature::Email) {
            return Err(NodeError::new("Email sending is disabled due to API limits!"));
        }
        let (services, tenant) = (Arc::clone(ctx.services), ctx.tenant);
        let shared = match &self.0 {
            MailClientSource::Own(client) => {
                let client = Arc::clone(client);
                return Ok(Box::pin(async move {
                    let sent = client.send(&email).await?;
                    services.usage.count(tenant, UsageKey::Emails, 1);
                    Ok(sent)
                }));
            }
            MailClientSource::OfSystem(shared) => Arc::clone(shared),
        };
        Ok(Box::pin(async move {
            let settings = services.external.accounts.settings(tenant, "mail").await;
            let settings = settings.map_err(|error| failed(error.to_string()))?;
            let settings =
                settings.ok_or_else(|| failed("Unable to send mail: no mail server is configured"))?;
            let client = shared.get(settings, |it| {
                MailClient::new(&SmtpConfig::from_json(it)?, &Egress::open())
            })?;
            let sent = client.send(&email).await?;
            services.usage.count(tenant, UsageKey::Emails, 1);
            Ok(sent)
        }))
    }
}
