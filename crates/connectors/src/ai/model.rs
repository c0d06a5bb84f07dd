//! The configuration of a model's entity.

use serde::Deserialize;

use super::config::ResponseFormat;
use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::lenient;
use crate::secret::Secret;

/// Who runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AiProvider {
    /// OpenAI, and whoever speaks its language.
    #[serde(rename = "OPENAI")]
    OpenAi,
    /// OpenAI's models at Azure.
    #[serde(rename = "AZURE_OPENAI")]
    AzureOpenAi,
    /// Google AI.
    GoogleAiGemini,
    /// Google Vertex AI.
    GoogleVertexAiGemini,
    /// Mistral AI.
    MistralAi,
    /// Anthropic.
    Anthropic,
    /// Amazon Bedrock.
    AmazonBedrock,
    /// GitHub Models.
    #[serde(rename = "GITHUB_MODELS")]
    GitHubModels,
    /// Ollama, on a machine of one's own.
    Ollama,
}

/// A model and how to ask it: the field `configuration` of an AI model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AiModelConfig {
    /// Who runs it.
    pub provider: AiProvider,
    /// How to reach it.
    #[serde(default)]
    pub provider_config: AiProviderConfig,
    /// Its name there.
    #[serde(default, deserialize_with = "lenient::string")]
    pub model_id: String,
    /// How freely it chooses words.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// From how much of the probability it chooses.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// From how many words it chooses.
    #[serde(default)]
    pub top_k: Option<u32>,
    /// How much it avoids what it has said often.
    #[serde(default)]
    pub frequency_penalty: Option<f64>,
    /// How much it avoids what it has said at all.
    #[serde(default)]
    pub presence_penalty: Option<f64>,
    /// The longest answer, in tokens.
    #[serde(default)]
    pub max_output_tokens: Option<i64>,
    /// How much Ollama lets it see, in tokens.
    #[serde(default)]
    pub context_length: Option<i64>,
    /// How long an answer may take outside of rule chains, in seconds.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
}

/// How to reach a model; each provider has its own of these fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AiProviderConfig {
    /// The base URL (OpenAI, Ollama).
    #[serde(deserialize_with = "lenient::string")]
    pub base_url: String,
    /// The key (OpenAI, Azure, Google AI, Mistral, Anthropic).
    pub api_key: Secret,
    /// The base URL (Azure).
    #[serde(deserialize_with = "lenient::string")]
    pub endpoint: String,
    /// The version of the interface (Azure).
    #[serde(deserialize_with = "lenient::string")]
    pub service_version: String,
    /// The project (Vertex).
    #[serde(deserialize_with = "lenient::string")]
    pub project_id: String,
    /// The location (Vertex).
    #[serde(deserialize_with = "lenient::string")]
    pub location: String,
    /// The key file of a service account (Vertex).
    pub service_account_key: Secret,
    /// The region (Bedrock).
    #[serde(deserialize_with = "lenient::string")]
    pub region: String,
    /// The access key (Bedrock).
    #[serde(deserialize_with = "lenient::string")]
    pub access_key_id: String,
    /// Its secret (Bedrock).
    pub secret_access_key: Secret,
    /// The token (GitHub).
    pub personal_access_token: Secret,
    /// How to prove who asks (Ollama).
    pub auth: OllamaAuth,
}

/// How to prove to Ollama, or what stands in front of it, who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "type")]
pub enum OllamaAuth {
    /// Not at all.
    #[default]
    #[serde(rename = "NONE")]
    None,
    /// User name and password.
    #[serde(rename = "BASIC")]
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    #[serde(rename = "TOKEN")]
    Token {
        /// The token.
        token: Secret,
    },
}

pub(super) const OPENAI: &str = "https://api.openai.com/v1";

impl ConnectorConfig for AiModelConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("modelId", &self.model_id)?;
        for (field, value, most) in [
            ("temperature", self.temperature, f64::MAX),
            ("topP", self.top_p, 1.0),
        ] {
            if value.is_some_and(|value| value < 0.0 || value > most) {
                return Err(ConnectorConfigError::new(field, "is out of range"));
            }
        }
        let config = &self.provider_config;
        let needed: &[(&str, &str)] = match self.provider {
            AiProvider::OpenAi if matches!(config.base_url.as_str(), "" | OPENAI) => {
                &[("apiKey", config.api_key.expose())]
            }
            AiProvider::OpenAi => &[],
            AiProvider::AzureOpenAi => &[
                ("endpoint", &config.endpoint),
                ("apiKey", config.api_key.expose()),
            ],
            AiProvider::GoogleAiGemini | AiProvider::MistralAi | AiProvider::Anthropic => {
                &[("apiKey", config.api_key.expose())]
            }
            AiProvider::GoogleVertexAiGemini => &[
                ("projectId", &config.project_id),
                ("location", &config.location),
                ("serviceAccountKey", config.service_account_key.expose()),
            ],
            AiProvider::AmazonBedrock => &[
                ("region", &config.region),
                ("accessKeyId", &config.access_key_id),
                ("secretAccessKey", config.secret_access_key.expose()),
            ],
            AiProvider::GitHubModels => &[("personalAccessToken", config.personal_access_token.expose())],
            AiProvider::Ollama => &[("baseUrl", &config.base_url)],
        };
        needed
            .iter()
            .try_for_each(|(field, value)| require(&format!("providerConfig.{field}"), value))
    }
}

impl AiModelConfig {
    /// Whether the model can be made to answer in this format.
    pub const fn supports(&self, format: &ResponseFormat) -> bool {
        match format {
            ResponseFormat::Json => {
                !matches!(self.provider, AiProvider::Anthropic | AiProvider::AmazonBedrock)
            }
            ResponseFormat::Text | ResponseFormat::JsonSchema { .. } => true,
        }
    }
}
