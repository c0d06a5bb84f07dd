//! The languages of Anthropic and of Bedrock's Converse, both lists of content blocks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::client::{ChatRequest, PromptPart};
use super::config::{ResponseFormat, reduce_schema, schema_name};
use super::model::AiModelConfig;
use super::openai::{text_of, without_nulls};

/// What Anthropic's models answer at most where nothing is set; the field is mandatory.
const DEFAULT_MAX_TOKENS: i64 = 1024;

/// The body of a request to Anthropic.
pub(super) fn anthropic(model: &AiModelConfig, request: &ChatRequest<'_>) -> Value {
    let content: Vec<Value> = request
        .contents
        .iter()
        .map(|content| match content {
            PromptPart::Text(text) => json!({"type": "text", "text": text}),
            PromptPart::Image { media_type, data } => {
                json!({"type": "image", "source": source(media_type, data)})
            }
            PromptPart::Pdf(data) => json!({"type": "document", "source": source("application/pdf", data)}),
        })
        .collect();
    let output = match request.format {
        ResponseFormat::JsonSchema { schema } => {
            json!({"format": {"type": "json_schema", "schema": reduce_schema(schema)}})
        }
        ResponseFormat::Text | ResponseFormat::Json => Value::Null,
    };
    without_nulls(json!({
        "model": model.model_id,
        "max_tokens": model.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        "system": request.system_prompt(),
        "messages": [{"role": "user", "content": content}],
        "temperature": model.temperature,
        "top_p": model.top_p,
        "top_k": model.top_k,
        "output_config": output,
    }))
}

fn source(media_type: &str, data: &[u8]) -> Value {
    json!({"type": "base64", "media_type": media_type, "data": STANDARD.encode(data)})
}

/// Finds the text in an answer of Anthropic.
pub(super) fn anthropic_text(answer: &Value) -> Option<String> {
    text_of(answer.get("content")?)
}

/// The body of a request to Bedrock.
pub(super) fn converse(model: &AiModelConfig, request: &ChatRequest<'_>) -> Value {
    let content: Vec<Value> = request
        .contents
        .iter()
        .enumerate()
        .map(|(number, content)| match content {
            PromptPart::Text(text) => json!({"text": text}),
            PromptPart::Image { media_type, data } => {
                let format = media_type.strip_prefix("image/").unwrap_or(media_type);
                json!({"image": {"format": format, "source": {"bytes": STANDARD.encode(data)}}})
            }
            PromptPart::Pdf(data) => json!({"document": {
                "format": "pdf",
                "name": format!("document{number}"),
                "source": {"bytes": STANDARD.encode(data)},
            }}),
        })
        .collect();
    let system = match request.system_prompt() {
        Some(text) => json!([{"text": text}]),
        None => Value::Null,
    };
    let output = match request.format {
        // The schema goes as text.
        ResponseFormat::JsonSchema { schema } => json!({"textFormat": {
            "type": "json_schema",
            "structure": {"jsonSchema": {"name": schema_name(schema), "schema": reduce_schema(schema).to_string()}},
        }}),
        ResponseFormat::Text | ResponseFormat::Json => Value::Null,
    };
    let inference = without_nulls(json!({
        "temperature": model.temperature,
        "topP": model.top_p,
        "maxTokens": model.max_output_tokens,
    }));
    without_nulls(json!({
        "messages": [{"role": "user", "content": content}],
        "system": system,
        "inferenceConfig": inference,
        "outputConfig": output,
    }))
}

/// Finds the text in an answer of Bedrock.
pub(super) fn converse_text(answer: &Value) -> Option<String> {
    text_of(answer.pointer("/output/message/content")?)
}
