//! "Send SMS".

use std::sync::Arc;

use fieldline_connectors::ConnectorConfig as _;
use fieldline_connectors::egress::Egress;
use fieldline_connectors::sms::{SendSmsConfig, SmsClient, SmsProviderConfig};
use fieldline_core::usage::{ApiFeature, UsageKey};
use serde_json::json;

use super::client_cache::AccountClientCache;
use super::external_node::{
    ExternalNode, OutboundSender, SendFuture, endpoint, failed, node_egress, read, wrong,
};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "sms.TbSendSmsNode",
    name: "send sms",
    description: "Sends text messages through an SMS provider.",
    default_configuration: || {
        json!({
            "numbersToTemplate": "${userPhone}",
            "smsMessageTemplate": "Device ${deviceName} has high temperature ${temp}", "useSystemSmsSettings": true,
            "smsProviderConfiguration": null,
        })
    },
    schema: config_schema::of_connector::<SendSmsConfig>,
    make,
    ..NodeType::EXTERNAL
}];

enum SmsClientSource {
    Own(Arc<SmsClient>),
    OfSystem(Arc<AccountClientCache<SmsClient>>),
}

struct SendSmsNode {
    provider: SmsClientSource,
    numbers: TextTemplate,
    message: TextTemplate,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let sms: SendSmsConfig = read(config)?;
    let provider = match (&sms.sms_provider_configuration, sms.use_system_sms_settings) {
        (Some(own), false) => SmsClientSource::Own(Arc::new(
            SmsClient::with_endpoint(own, endpoint(config), &node_egress(config)).map_err(wrong)?,
        )),
        _ => SmsClientSource::OfSystem(Arc::default()),
    };
    let outside = SendSmsNode {
        provider,
        numbers: TextTemplate::new(&sms.numbers_to_template),
        message: TextTemplate::new(&sms.sms_message_template),
    };
    Ok(ExternalNode::node(config, false, outside))
}

impl OutboundSender for SendSmsNode {
    fn send(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let numbers = self.numbers.resolve(msg)?.into_owned();
        let message = self.message.resolve(msg)?.into_owned();
        let shared = match &self.provider {
            SmsClientSource::Own(client) => {
                let client = Arc::clone(client);
                return Ok(Box::pin(async move {
                    client.send(&numbers, &message).await.map(|(_, outcome)| outcome)
                }));
            }
            SmsClientSource::OfSystem(shared) => Arc::clone(shared),
        };
        if !ctx.services.usage.is_allowed(ctx.tenant, ApiFeature::Sms) {
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
