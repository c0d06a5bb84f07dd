//! "AI request".

use std::sync::Arc;
use std::time::Duration;

use fieldline_connectors::ai::{AiClient, AiConfig, AiModelConfig, ChatRequest, PromptPart, ResponseFormat};
use fieldline_connectors::{ConnectorConfig as _, ConnectorError};
use fieldline_model::TenantId;
use serde_json::json;
use uuid::Uuid;

use super::client_cache::AccountClientCache;
use super::external_node::{ExternalNode, OutboundSender, SendFuture, failed, read};
use crate::config_schema;
use crate::message::RuleMessage;
use crate::node::{Node, NodeConfigError, NodeContext, NodeError, NodeInitContext};
use crate::node_types::NodeType;
use crate::nodes::text_template::TextTemplate;
use crate::services::NodeServices;

pub(crate) const NODES: &[NodeType] = &[NodeType {
    class: "ai.TbAiNode",
    name: "AI request",
    description: "Sends a request to an AI model, using system and user prompts.",
    default_configuration: || {
        json!({
            "modelId": null, "systemPrompt": AiConfig::default().system_prompt, "userPrompt": null,
            "resourceIds": null, "responseFormat": {"type": "JSON"}, "timeoutSeconds": 60, "forceAck": true,
        })
    },
    schema: config_schema::of_connector::<AiConfig>,
    make,
    ..NodeType::EXTERNAL
}];

struct AiNode {
    question: Arc<AiRequestSettings>,
    system_prompt: Option<TextTemplate>,
    user_prompt: TextTemplate,
}

/// What is the same for all messages.
struct AiRequestSettings {
    model: Uuid,
    resources: Vec<Uuid>,
    format: ResponseFormat,
    timeout: Duration,
    client: AccountClientCache<AiClient>,
}

fn make(config: &NodeInitContext<'_>) -> Result<Arc<dyn Node>, NodeConfigError> {
    let ai: AiConfig = read(config)?;
    let id = |field: &str, text: &str| {
        Uuid::parse_str(text.trim()).map_err(|_| NodeConfigError::new(field, format!("`{text}` is no id")))
    };
    let resources = ai.resource_ids.iter().map(|text| id("resourceIds", text));
    let question = AiRequestSettings {
        model: id("modelId", &ai.model_id)?,
        resources: resources.collect::<Result<_, _>>()?,
        format: ai.response_format,
        timeout: Duration::from_secs(ai.timeout_seconds.into()),
        client: AccountClientCache::default(),
    };
    let outside = AiNode {
        question: Arc::new(question),
        system_prompt: Some(ai.system_prompt)
            .filter(|prompt| !prompt.trim().is_empty())
            .map(|prompt| TextTemplate::new(&prompt)),
        user_prompt: TextTemplate::new(&ai.user_prompt),
    };
    Ok(ExternalNode::node(config, ai.force_ack, outside))
}

impl OutboundSender for AiNode {
    fn send(&self, ctx: &NodeContext<'_>, msg: &mut RuleMessage) -> Result<SendFuture, NodeError> {
        let system_prompt = match &self.system_prompt {
            Some(prompt) => Some(prompt.resolve(msg)?.into_owned()),
            None => None,
        };
        let user_prompt = self.user_prompt.resolve(msg)?.into_owned();
        let (question, services, tenant) = (Arc::clone(&self.question), Arc::clone(ctx.services), ctx.tenant);
        Ok(Box::pin(async move {
            let client = question.client(&services, tenant).await?;
            let contents = question.contents(&services, tenant, user_prompt).await?;
            let request = ChatRequest {
                system_prompt: system_prompt.as_deref(),
                contents: &contents,
                format: &question.format,
                timeout: question.timeout,
            };
            client.send(&request).await
        }))
    }
}

impl AiRequestSettings {
    async fn client(
        &self,
        services: &NodeServices,
        tenant: TenantId,
    ) -> Result<Arc<AiClient>, ConnectorError> {
        let model = services.external.accounts.ai_model(tenant, self.model).await;
        let model = model.map_err(|error| failed(error.to_string()))?;
        let missing = || {
            failed(format!(
                "[{tenant}] AI model with ID: [{}] was not found",
                self.model
            ))
        };
        self.client.get(model.ok_or_else(missing)?, |it| {
            AiClient::new(
                &AiModelConfig::from_json(it)?,
                &services.external.tenant_egress(tenant),
            )
        })
    }

    /// The prompt first, then what goes along with it.
    async fn contents(
        &self,
        services: &NodeServices,
        tenant: TenantId,
        prompt: String,
    ) -> Result<Vec<PromptPart>, ConnectorError> {
        let mut contents = vec![PromptPart::Text(prompt)];
        for id in &self.resources {
            let resource = services.external.accounts.resource(tenant, *id).await;
            let resource = resource.map_err(|error| failed(error.to_string()))?;
            let missing = || failed(format!("[{tenant}] Resource with ID: [{id}] was not found"));
            let resource = resource.ok_or_else(missing)?;
            contents.push(PromptPart::of_resource(&resource.media_type, resource.data));
        }
        Ok(contents)
    }
}
