//! Asking a model.

use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::config::ResponseFormat;
use super::model::{AiModelConfig, AiProvider, OPENAI, OllamaAuth};
use super::{gemini, messages, openai};
use crate::aws::{AwsClient, AwsRequest, AwsService};
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::config::{ConnectorConfig, ConnectorConfigError};
use crate::egress::{Egress, HttpClient};
use crate::gcp::{CLOUD_PLATFORM, TokenSource};
use crate::http;
use crate::outcome::{ConnectorError, ConnectorOutcome};
use crate::percent;

const AZURE_VERSION: &str = "2024-10-21";
const ANTHROPIC: &str = "https://api.anthropic.com/v1";
const ANTHROPIC_VERSION: &str = "2023-06-01";
const MISTRAL: &str = "https://api.mistral.ai/v1";
const GITHUB: &str = "https://models.github.ai/inference";
const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta";
const BEDROCK: AwsService = AwsService {
    host: "bedrock-runtime",
    signed: "bedrock",
    name: "BedrockRuntime",
};
/// The longest that a node waits for an answer.
const LONGEST: Duration = Duration::from_secs(600);
const MAX_PARALLEL: usize = 32;
const MAX_WAITING: usize = 1000;

/// Asks one model.
#[derive(Debug)]
pub struct AiClient {
    model: AiModelConfig,
    /// The base URL, without a slash at its end.
    base: String,
    client: HttpClient,
    /// For Vertex.
    tokens: Option<TokenSource>,
    /// For Bedrock.
    aws: Option<AwsClient>,
    gate: ConcurrencyLimiter,
}

/// A question; its patterns are resolved.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// What the model is told about its task; nothing if it is blank.
    pub system_prompt: Option<&'a str>,
    /// The question, and what goes along with it.
    pub contents: &'a [PromptPart],
    /// What the answer has to look like.
    pub format: &'a ResponseFormat,
    /// How long it may take.
    pub timeout: Duration,
}

impl ChatRequest<'_> {
    pub(super) fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.filter(|prompt| !prompt.trim().is_empty())
    }
}

/// A part of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its type, as `image/png`.
        media_type: String,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// A PDF document.
    Pdf(Vec<u8>),
}

impl PromptPart {
    /// Makes a part of a resource by its media type; what is neither image nor PDF is taken for text.
    pub fn of_resource(media_type: &str, data: Vec<u8>) -> Self {
        if media_type == "application/pdf" {
            Self::Pdf(data)
        } else if media_type.starts_with("image/") {
            Self::Image {
                media_type: media_type.to_owned(),
                data,
            }
        } else {
            Self::Text(String::from_utf8_lossy(&data).into_owned())
        }
    }
}

impl AiClient {
    /// Makes a client.
    pub fn new(model: &AiModelConfig, egress: &Egress) -> Result<Self, ConnectorConfigError> {
        Self::with_endpoint(model, None, egress)
    }

    /// Like [`Self::new`], with another base URL than that of the provider.
    pub fn with_endpoint(
        model: &AiModelConfig,
        endpoint: Option<&str>,
        egress: &Egress,
    ) -> Result<Self, ConnectorConfigError> {
        model.validate()?;
        let provider = &model.provider_config;
        let tokens = match model.provider {
            AiProvider::GoogleVertexAiGemini => Some(TokenSource::new(
                "providerConfig.serviceAccountKey",
                &provider.service_account_key,
                CLOUD_PLATFORM,
            )?),
            _ => None,
        };
        let aws = match model.provider {
            AiProvider::AmazonBedrock => Some(AwsClient::new(
                BEDROCK,
                (&provider.access_key_id, &provider.secret_access_key),
                &provider.region,
                endpoint,
                (http::CONNECT_TIMEOUT, LONGEST),
                egress,
            )?),
            _ => None,
        };
        let base = endpoint.map_or_else(|| base_url(model), str::to_owned);
        Ok(Self {
            base: base.trim_end_matches('/').to_owned(),
            client: http::service_client(egress, LONGEST)?,
            model: model.clone(),
            tokens,
            aws,
            gate: ConcurrencyLimiter::new(MAX_PARALLEL, MAX_WAITING),
        })
    }

    /// Asks, and makes the answer the body of the message. What is not a JSON object is put into one as `response`.
    pub async fn send(&self, request: &ChatRequest<'_>) -> Result<ConnectorOutcome, ConnectorError> {
        if !self.model.supports(request.format) {
            return Err(ConnectorError::bare("model does not support the response format"));
        }
        let answer = tokio::time::timeout(request.timeout.min(LONGEST), self.ask(request))
            .await
            .unwrap_or_else(|_| Err("model did not answer in time".to_owned()))
            .map_err(ConnectorError::bare)?;
        let is_object = serde_json::from_str::<Value>(&answer).is_ok_and(|value| value.is_object());
        let body = if is_object {
            answer
        } else {
            json!({"response": answer}).to_string()
        };
        Ok(ConnectorOutcome {
            body: Some(body),
            metadata: Vec::new(),
        })
    }

    /// Asks, and returns the text of the answer.
    async fn ask(&self, request: &ChatRequest<'_>) -> Result<String, String> {
        let _permit = self
            .gate
            .acquire()
            .await
            .map_err(|_| "too many questions wait".to_owned())?;
        let (answer, text): (Value, fn(&Value) -> Option<String>) = match self.model.provider {
            AiProvider::AmazonBedrock => (self.converse(request).await?, messages::converse_text),
            AiProvider::Anthropic => (
                self.post(self.anthropic(), &messages::anthropic(&self.model, request))
                    .await?,
                messages::anthropic_text,
            ),
            AiProvider::GoogleAiGemini | AiProvider::GoogleVertexAiGemini => (
                self.post(self.gemini().await?, &gemini::generate(&self.model, request))
                    .await?,
                gemini::text,
            ),
            AiProvider::Ollama => (
                self.post(self.ollama(), &openai::ollama(&self.model, request)?)
                    .await?,
                openai::ollama_text,
            ),
            AiProvider::OpenAi
            | AiProvider::AzureOpenAi
            | AiProvider::MistralAi
            | AiProvider::GitHubModels => (
                self.post(self.completions(), &openai::completion(&self.model, request))
                    .await?,
                openai::completion_text,
            ),
        };
        text(&answer).ok_or_else(|| "model answered without a text".to_owned())
    }

    fn completions(&self) -> RequestBuilder {
        let provider = &self.model.provider_config;
        if self.model.provider == AiProvider::AzureOpenAi {
            let version = match provider.service_version.as_str() {
                "" => AZURE_VERSION,
                version => version,
            };
            let url = format!(
                "{}/openai/deployments/{}/chat/completions?api-version={}",
                self.base,
                percent::encode(&self.model.model_id),
                percent::encode(version)
            );
            return self.client.post(url).header("api-key", provider.api_key.expose());
        }
        let request = self.client.post(format!("{}/chat/completions", self.base));
        let key = match self.model.provider {
            AiProvider::GitHubModels => &provider.personal_access_token,
            _ => &provider.api_key,
        };
        if key.is_empty() {
            request
        } else {
            request.bearer_auth(key.expose())
        }
    }

    fn anthropic(&self) -> RequestBuilder {
        self.client
            .post(format!("{}/messages", self.base))
            .header("x-api-key", self.model.provider_config.api_key.expose())
            .header("anthropic-version", ANTHROPIC_VERSION)
    }

    async fn gemini(&self) -> Result<RequestBuilder, String> {
        let model = percent::encode(&self.model.model_id);
        let Some(tokens) = &self.tokens else {
            let url = format!("{}/models/{model}:generateContent", self.base);
            let key = self.model.provider_config.api_key.expose();
            return Ok(self.client.post(url).header("x-goog-api-key", key));
        };
        let provider = &self.model.provider_config;
        let url = format!(
            "{}/v1/projects/{}/locations/{}/publishers/google/models/{model}:generateContent",
            self.base, provider.project_id, provider.location
        );
        let token = tokens.token(&self.client).await.map_err(|error| error.message)?;
        Ok(self.client.post(url).bearer_auth(token.expose()))
    }

    fn ollama(&self) -> RequestBuilder {
        let request = self.client.post(format!("{}/api/chat", self.base));
        match &self.model.provider_config.auth {
            OllamaAuth::None => request,
            OllamaAuth::Basic { username, password } => request.basic_auth(username, Some(password.expose())),
            OllamaAuth::Token { token } => request.bearer_auth(token.expose()),
        }
    }

    async fn converse(&self, request: &ChatRequest<'_>) -> Result<Value, String> {
        let aws = self.aws.as_ref().ok_or("no client for Bedrock")?;
        let target = format!("/model/{}/converse", percent::encode(&self.model.model_id));
        let call = AwsRequest {
            target: &target,
            endpoint: None,
            headers: &[("content-type", "application/json")],
            body: messages::converse(&self.model, request).to_string(),
        };
        parsed(&aws.call(call).await?.body)
    }

    async fn post(&self, request: RequestBuilder, body: &Value) -> Result<Value, String> {
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = http::exchange(&self.client, request).await?;
        if answer.status.is_success() {
            return parsed(&answer.body);
        }
        let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let message = ["/error/message", "/message", "/error", "/detail"]
            .iter()
            .find_map(|path| body.pointer(path)?.as_str());
        Err(match message {
            Some(message) => format!("{}: {message}", answer.status),
            None => answer.status.to_string(),
        })
    }
}

fn parsed(body: &str) -> Result<Value, String> {
    serde_json::from_str(body).map_err(|_| "model answered with something else than JSON".to_owned())
}

fn base_url(model: &AiModelConfig) -> String {
    let provider = &model.provider_config;
    match model.provider {
        AiProvider::OpenAi if provider.base_url.is_empty() => OPENAI.to_owned(),
        AiProvider::OpenAi | AiProvider::Ollama => provider.base_url.trim().to_owned(),
        AiProvider::AzureOpenAi => provider.endpoint.trim().to_owned(),
        AiProvider::MistralAi => MISTRAL.to_owned(),
        AiProvider::Anthropic => ANTHROPIC.to_owned(),
        AiProvider::GitHubModels => GITHUB.to_owned(),
        AiProvider::GoogleAiGemini => GEMINI.to_owned(),
        AiProvider::GoogleVertexAiGemini if provider.location == "global" => {
            "https://aiplatform.googleapis.com".to_owned()
        }
        AiProvider::GoogleVertexAiGemini => {
            format!("https://{}-aiplatform.googleapis.com", provider.location)
        }
        // Its own client knows where it is.
        AiProvider::AmazonBedrock => String::new(),
    }
}
