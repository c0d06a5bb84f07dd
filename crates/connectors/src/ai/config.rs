//! The configuration of `TbAiNode`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::config::{ConnectorConfig, ConnectorConfigError, require};
use crate::lenient;

/// The configuration of a node that asks a model.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AiConfig {
    /// The identifier of the model's entity.
    #[serde(deserialize_with = "entity_id")]
    #[schemars(schema_with = "entity_id_schema")]
    pub model_id: String,
    /// Pattern of what the model is told about its task; nothing if it is blank.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "template"))]
    pub system_prompt: String,
    /// Pattern of the question.
    #[serde(deserialize_with = "lenient::string")]
    #[schemars(extend("x-editor" = "template"))]
    pub user_prompt: String,
    /// The identifiers of resources that go along with the question.
    #[schemars(extend("x-editor" = "resourceIds"))]
    pub resource_ids: Vec<String>,
    /// What the answer has to look like.
    pub response_format: ResponseFormat,
    /// How long the answer may take, in seconds.
    #[serde(deserialize_with = "lenient::integer")]
    #[schemars(title = "Timeout", extend("x-unit" = "s"), range(min = 1, max = 600))]
    pub timeout_seconds: u32,
    /// Whether the message is acknowledged before the model is asked.
    #[serde(deserialize_with = "lenient::boolean")]
    pub force_ack: bool,
}

/// What an answer has to look like.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ResponseFormat {
    /// Anything.
    #[serde(rename = "TEXT")]
    Text,
    /// JSON.
    #[default]
    #[serde(rename = "JSON")]
    Json,
    /// JSON that follows a schema.
    #[serde(rename = "JSON_SCHEMA")]
    JsonSchema {
        /// The JSON Schema.
        #[schemars(schema_with = "json_schema_schema")]
        schema: Value,
    },
}

fn entity_id_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": ["object", "string", "null"],
        "properties": { "entityType": { "type": "string" }, "id": { "type": "string" } },
        "title": "AI model",
        "x-editor": "modelId",
    })
}

fn json_schema_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "title": "JSON Schema", "x-editor": "json" })
}

/// Takes `{"entityType": …, "id": …}`, or the identifier alone.
fn entity_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    value
        .get("id")
        .unwrap_or(&value)
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| serde::de::Error::custom("must be the identifier of an AI model"))
}

impl Default for AiConfig {
    fn default() -> Self {
        Self {
            model_id: String::new(),
            system_prompt:
                "You are a helpful AI assistant. Your primary function is to process the user's request \
                            and respond with a valid JSON object. Do not include any text, explanations, or \
                            markdown formatting before or after the JSON output."
                    .to_owned(),
            user_prompt: String::new(),
            resource_ids: Vec::new(),
            response_format: ResponseFormat::Json,
            timeout_seconds: 60,
            force_ack: true,
        }
    }
}

const MAX_PROMPT: usize = 500_000;

impl ConnectorConfig for AiConfig {
    fn validate(&self) -> Result<(), ConnectorConfigError> {
        require("modelId", &self.model_id)?;
        require("userPrompt", &self.user_prompt)?;
        for (field, prompt) in [
            ("systemPrompt", &self.system_prompt),
            ("userPrompt", &self.user_prompt),
        ] {
            if prompt.chars().count() > MAX_PROMPT {
                return Err(ConnectorConfigError::new(
                    field,
                    format!("must have at most {MAX_PROMPT} characters"),
                ));
            }
        }
        if !(1..=600).contains(&self.timeout_seconds) {
            return Err(ConnectorConfigError::new(
                "timeoutSeconds",
                "must be between 1 and 600",
            ));
        }
        match &self.response_format {
            ResponseFormat::JsonSchema { schema } if !schema.is_object() => Err(ConnectorConfigError::new(
                "responseFormat.schema",
                "must be a JSON Schema",
            )),
            _ => Ok(()),
        }
    }
}

/// Leaves of a schema what all models understand, as ThingsBoard does.
pub(super) fn reduce_schema(schema: &Value) -> Value {
    const SCHEMA_KEYWORDS: [&str; 7] = [
        "type",
        "description",
        "enum",
        "required",
        "additionalProperties",
        "properties",
        "items",
    ];
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    let kept = SCHEMA_KEYWORDS.iter().filter_map(|&name| {
        let value = object.get(name)?;
        let value = match (name, value) {
            ("properties", Value::Object(properties)) => Value::Object(
                properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), reduce_schema(schema)))
                    .collect(),
            ),
            ("items", items) => reduce_schema(items),
            _ => value.clone(),
        };
        Some((name.to_owned(), value))
    });
    Value::Object(kept.collect())
}

/// The name of a schema, which some models want.
pub(super) fn schema_name(schema: &Value) -> &str {
    schema.get("title").and_then(Value::as_str).unwrap_or("response")
}
