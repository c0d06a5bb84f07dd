//! "Send SMS".

use std::sync::Arc;

use fieldline_connectors::NodeConfig as _;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::sms::{SendSmsConfig, SmsClient, SmsProviderConfig};
use fieldline_core::usage::{Feature, UsageKey};
use serde_json::json;

use super::outside::{External, Outside, Sending, endpoint, failed, read, way_out, wrong};
use super::shared::Shared;
use crate::message::Msg;
use crate::node::{ConfigError, Ctx, Node, NodeConfig, NodeError};
use crate::nodes::pattern::Pattern;
use crate::registry::{ComponentType, NodeType};

pub(crate) const NODES: &[NodeType] = &[NodeType {
    description: "Sends text messages through an SMS provider.",
    default_configuration: || {
        json!({
            "numbersToTemplate": "${userPhone}",
            "smsMessageTemplate": "Device ${deviceName} has high temperature ${temp}", "useSystemSmsSettings": true,
            "smsProviderConfiguration": null,
        })
    },
    ..NodeType::new("sms.TbSendSmsNode", "send sms", ComponentType::External, make)
}];

enum Provider {
    Own(Arc<SmsClient>),
    OfSystem(Arc<Shared<SmsClient>>),
}

struct SendSms {
    provider: Provider,
    numbers: Pattern,
    message: Pattern,
}

fn make(config: &NodeConfig<'_>) -> Result<Arc<dyn Node>, ConfigError> {
    let sms: SendSmsConfig = read(config)?;
    let provider = match (&sms.sms_provider_configuration, sms.use_system_sms_settings) {
        (Some(own), false) => Provider::Own(Arc::new(
            SmsClient::with_endpoint(own, endpoint(config), &way_out(config)).map_err(wrong)?,
        )),
        _ => Provider::OfSystem(Arc::default()),
    };
    let outside = SendSms {
        provider,
        numbers: Pattern::new(&sms.numbers_to_template),
        message: Pattern::new(&sms.sms_message_template),
    };
    Ok(External::node(config, false, outside))
}

impl Outside for SendSms {
    fn send(&self, ctx: &Ctx<'_>, msg: &mut Msg) -> Result<Sending, NodeError> {
        let numbers = self.numbers.resolve(msg)?.into_owned();
        let message = self.message.resolve(msg)?.into_owned();
        let shared = match &self.provider {
            Provider::Own(client) => {
                let client = Arc::clone(client);
                return Ok(Box::pin(async move {
                    client.send(&numbers, &message).await.map(|(_, outcome)| outcome)
                }));
            }
            Provider::OfSystem(shared) => Arc::clone(shared),
        };
        if !ctx.services.usage.is_allowed(ctx.tenant, Feature::Sms) {
            return Err(NodeError::new("SMS sending is disabled due to API limits!"));
        }
        let (services, tenant) = (Arc::clone(ctx.services), ctx.tenant);
        Ok(Box::pin(async move {
            let settings = services.external.accounts.settings(tenant, "sms").await;
            let settings = settings.map_err(|error| failed(error.to_string()))?;
            let settings =
                settings.ok_or_else(|| failed("Unable to send SMS: no SMS provider is configured"))?;
            let client = shared.get(settings, |it| {
                SmsClient::new(&SmsProviderConfig::from_json(it)?, &Egress::open())
            })?;
            let (parts, outcome) = client.send(&numbers, &message).await?;
            services.usage.count(tenant, UsageKey::Sms, parts.into());
            Ok(outcome)
        }))
    }
}
