//! "Send email".

use std::sync::Arc;

use fieldline_connectors::NodeConfig as _;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::mail::{Email, MailClient, SendEmailConfig, SmtpConfig};
use fieldline_core::usage::{Feature, UsageKey};
use fieldline_model::message::MsgType;
use serde_json::json;

use super::outside::{External, Outside, Sending, failed, read, way_out, wrong};
use super::shared::Shared;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Sends the mail in a message through an SMTP server.",
    default_configuration: || {
        json!({
            "useSystemSmtpSettings": true, "smtpHost": "localhost", "smtpPort": 25, "username": null, "password": null,
            "smtpProtocol": "smtp", "timeout": 10000, "enableTls": false, "tlsVersion": "TLSv1.2",
            "enableProxy": false, "proxyHost": null, "proxyPort": null, "proxyUser": null, "proxyPassword": null,
        })
    },
    ..NodeType::new(
        "mail.TbSendEmailNode",
        "send email",
        ComponentType::External,
        make,
    )
}];

enum Server {
    Own(Arc<MailClient>),
    OfSystem(Arc<Shared<MailClient>>),
}

struct SendEmail(Server);

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let mail: SendEmailConfig = read(config)?;
    let server = match mail.use_system_smtp_settings {
        true => Server::OfSystem(Arc::default()),
        false => Server::Own(Arc::new(
            MailClient::new(&mail.smtp, &way_out(config)).map_err(wrong)?,
        )),
    };
    Ok(External::node(config, false, SendEmail(server)))
}

impl Outside for SendEmail {
    fn send(&self, ctx: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        if msg.kind != MsgType::SendEmail {
            let problem = format!("Not expected msg type {} for SendEmail Node", msg.kind);
            return Err(NodeError::new(problem));
        }
        let email = Email::from_json(&msg.data.to_text()).map_err(|error| NodeError::new(error.message))?;
        if !ctx.services.usage.is_allowed(ctx.tenant, Feature::Email) {
            return Err(NodeError::new("Email sending is disabled due to API limits!"));
        }
        let (services, tenant) = (Arc::clone(ctx.services), ctx.tenant);
        let shared = match &self.0 {
            Server::Own(client) => {
                let client = Arc::clone(client);
                return Ok(Box::pin(async move {
                    let sent = client.send(&email).await?;
                    services.usage.count(tenant, UsageKey::Emails, 1);
                    Ok(sent)
                }));
            }
            Server::OfSystem(shared) => Arc::clone(shared),
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
